#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Read-ahead between two appliances (NTT-5, NTT-6): off unless a rule asks for it; where one does, READs that follow a
# pattern are answered near their requester, with the right content, on a clean link and on one that
# loses packets.
#
# The hosts make their connections through the connection manager: it tells the appliances, too, when one ends.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK=(--delay-ms 10 --rate-mbps 1000)
PACE=(-g "wan-rate = 960M" -g "wan-burst = 550K")
READS=(--cm --op read --size 64K --depth 4 --mtu 4096)

# read_some NAME FROM ARGUMENT...: READs until they have all been answered, with the right content. What
# the requester's appliance said of the lane when it had not ended is $LAB/NAME-lane.json.
read_some()
{
	local name=$1 from=$2

	shift 2
	next_qpns
	rm -f "$LAB/$name-lane.json"
	transfer_begin "$name" "$from" "${READS[@]}" "$@"
	until ended "${pid[$name-req]}"; do
		lane_of "$from" >"$LAB/lane.json" && [ -s "$LAB/lane.json" ] &&
			mv "$LAB/lane.json" "$LAB/$name-lane.json"
		sleep 0.05
	done
	transfer_end "$name" && intact "$name"
}

lane_of() # SITE: the lane of the latest connection's requests from there, while it is held
{
	cli "$1" -j lane show direction out lqpn $((${qpn[$1]})) 2>/dev/null |
		jq -e '.[] | select(.state == "held")'
}

lane_says() # NAME FILTER
{
	jq -e "$2" "$LAB/$1-lane.json" >/dev/null
}

rate_above() # NAME NAME FACTOR: the first one's rate is that many times the second one's, or more
{
	awk -v a="$(delivered_rate "$1")" -v b="$(delivered_rate "$2")" -v f="$3" 'BEGIN {
		printf "%.1f and %.1f MB/s\n", a, b
		exit !(b > 0 && a >= f * b)
	}'
}

# While a connection is read ahead for, its host's READs hit, and what could not be foreseen was the beginning
hits()
{
	lane_says "$1" '."ahead-hits" > 100 and ."ahead-hits" > 10 * ."ahead-misses" and
		."ahead-guesses" >= ."ahead-hits" and ."ahead-flushed-signal" == 0 and ."read-depth" >= 1'
}

no_guesses() # NAME
{
	lane_says "$1" '."ahead-guesses" == 0 and ."ahead-hits" == 0 and ."ahead-bytes" == 0 and
		."psn-shift" == 0 and ."msn-shift" == 0'
}

details() # lane show -d, for people
{
	cli a -d lane show direction out >"$LAB/details.txt" && grep -q '^ahead-hits  *[0-9]' "$LAB/details.txt" &&
		grep -q '^psn-shift  *[0-9]' "$LAB/details.txt"
}

released() # no lane lives on after its connection's end
{
	jq_true a lane 'all(.state == "watch")' && jq_true b lane 'all(.state == "watch")'
}

# A write first: the lane is held, and READs behind it are followed, also where nobody reads ahead
mixed()
{
	local name=$1

	shift
	next_qpns
	transfer "$name" a --cm --op mix --count 600 --size 20000 --mtu 1024 && complete "$name" 600
}

lab_up
wan_start "${LINK[@]}"
it "without an appliance: the distance rules" read_some direct a --seconds 2

pair_start "${PACE[@]}"
it "off by default: READs pass, content right" read_some off a --seconds 2
it "off by default: rule show says so" jq_true a rule 'length == 1 and all(."read-ahead" == "off")'
nobody_guessed()
{
	jq_true a lane 'length > 0 and all(."ahead-guesses" == 0 and ."psn-shift" == 0)' &&
	jq_true b lane 'length > 0 and all(."ahead-guesses" == 0 and ."psn-shift" == 0)'
}
it "off by default: nobody guessed" nobody_guessed

reload() # KEY = VALUE of the rule, at both sites
{
	local s

	for s in a b; do
		gateway_config $s "${PACE[@]}" -r "$1"
		signal gw-$s HUP
	done
}
switched() # on or off
{
	jq_true a rule "all(.\"read-ahead\" == \"$1\")" && jq_true b rule "all(.\"read-ahead\" == \"$1\")"
}
reload "read-ahead = on"
it "SIGHUP: read-ahead = on is taken over" await 10 switched on
it "READ ahead at 20 ms: content right" read_some ahead a --seconds 4
it "READ ahead at 20 ms: three times as fast as direct, or more" rate_above ahead direct 3
it "READ ahead at 20 ms: lane show tells of the hits" hits ahead
it "READ ahead at 20 ms: and so does its text" details
it "released when the hosts disconnect" await 10 released
it "READ ahead from the other site" read_some other b --seconds 3
it "READ ahead from the other site: hits" hits other
it "READs through 16 MiB, over and over" read_some long a --seconds 4 --region 16M
it "a mix of all, in order, with read-ahead on" mixed mix

reload "read-ahead = off"
it "SIGHUP: read-ahead = off is taken over" await 10 switched off
it "off again: READs pass, content right" read_some again a --seconds 2
unguessed() # the latest connection's lanes
{
	jq_true a lane '[.[] | select(.lqpn == $q)] | length > 0 and all(."ahead-guesses" == 0)' \
		--argjson q $((${qpn[a]}))
}
it "off again: no guesses" unguessed
it "the appliances stop with nothing owed" pair_stop

wan_stop
wan_start "${LINK[@]}" --loss 0.005
it "0.5 % loss, without an appliance" read_some loss-direct a --seconds 2
pair_start "${PACE[@]}" -r "read-ahead = on"
it "0.5 % loss: content right" read_some loss a --seconds 5
it "0.5 % loss: faster than direct" rate_above loss loss-direct 1.5
it "0.5 % loss: hits" hits loss
it "0.5 % loss: a mix of all" mixed loss-mix
pair_stop
# what a READ brings must not be older than a moment: nothing is given that was asked for before it
pair_start "${PACE[@]}" -r "read-ahead = on" -r "read-ahead-max-age = 1ms"
too_old()
{
	read_some old a --seconds 2 && lane_says old '."ahead-flushed-age" > 0 or ."ahead-guesses" == 0'
}
it "read-ahead-max-age = 1ms: what is older is not given" too_old
exit $((tests_failed > 0))

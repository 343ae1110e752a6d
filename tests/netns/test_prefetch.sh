#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Prefetch between two appliances (NTT-5, NTT-6, POOL-7, CONV-3): off unless a rule asks for it; where one does, READs that follow a
# pattern are answered near their requester, with the right content, on a clean link and on one that
# loses packets.
#
# The hosts make their connections through the connection manager: it tells the appliances, too, when one ends.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK=(--delay-ms 10 --rate-mbps 1000)
PACE=(-g "wan-rate = 960M" -g "wan-burst = 550K")
# Where nothing is lost the hosts' timers are so long that they tell of nothing but a loss
READS=(--cm --op read --size 64K --depth 4 --mtu 4096 --timeout-exp 17)

# read_some NAME FROM ARGUMENT...: READs until they have all been answered, with the right content
read_some()
{
	local name=$1 from=$2

	shift 2
	next_qpns
	transfer "$name" "$from" "${READS[@]}" "$@" && intact "$name"
}

# read_until FILTER NAME FROM ARGUMENT...: READs until the filter holds for what the requester's appliance says of
# the lane, which is $LAB/NAME-lane.json then
read_until()
{
	local filter=$1 name=$2 from=$3

	shift 3
	next_qpns
	rm -f "$LAB/$name-lane.json"
	transfer_until 'lane_now "$name" "$from" && lane_says "$name" "$filter"' "$name" "$from" "${READS[@]}" "$@" &&
	intact "$name"
}

# The lane is looked at while it is there: with the hosts' disconnect it is forgotten.
lane_now() # NAME SITE
{
	lane_of "$2" >"$LAB/lane.json" && [ -s "$LAB/lane.json" ] && mv "$LAB/lane.json" "$LAB/$1-lane.json" &&
	cli "$2" -d lane show direction out >"$LAB/$1-lane.txt"
}

# read_unguessed NAME: READs from a of which neither appliance has guessed any, as both say after 100 of them
read_unguessed()
{
	local name=$1

	next_qpns
	transfer_until 'lane_now "$name" a && so_far_above "$name-req" messages 100 && lane_now "$name" a && no_guesses "$name" &&
		jq_true b lane "length > 0 and all(.\"ahead-guesses\" == 0 and .\"psn-shift\" == 0)"' \
		"$name" a "${READS[@]}" && intact "$name"
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

# faster NAME FACTOR: than NAME-direct was. What the distance allows is the same on any machine; what the appliances
# reach is not when they are not let run, so they may try again.
faster()
{
	local tries=6

	until rate_above "$1" "$1-direct" "$2"; do
		[ $((tries -= 1)) != 0 ] && read_until '."ahead-hits" > 3000' "$1" a || return
	done
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
	grep -q '^ahead-hits  *[0-9]' "$LAB/ahead-lane.txt" && grep -q '^psn-shift  *[0-9]' "$LAB/ahead-lane.txt"
}

released() # no lane lives on after its connection's end
{
	jq_true a lane 'all(.state == "watch")' && jq_true b lane 'all(.state == "watch")'
}

mixed()
{
	local name=$1

	shift
	next_qpns
	transfer "$name" a --cm --op mix --count 600 --size 20000 --mtu 1024 && complete "$name" 600
}

lab_up
wan_start "${LINK[@]}"
it "without an appliance: the distance rules" read_some ahead-direct a --seconds 2

pair_start "${PACE[@]}"
it "off by default: rule show says so" jq_true a rule 'length == 1 and all(."prefetch" == "off")'
it "off by default: READs pass, content right, and none is guessed" read_unguessed off

# reload FILTER LINE...: other lines in the rule, at both sites; until the filter holds for what both say of it
reload()
{
	local s filter=$1 lines=()

	for s in "${@:2}"; do
		lines+=(-r "$s")
	done
	for s in a b; do
		gateway_config $s "${PACE[@]}" "${lines[@]}"
		signal gw-$s HUP
	done
	await 30 jq_true a rule "all($filter)" && await 30 jq_true b rule "all($filter)"
}
it "SIGHUP: prefetch = on is taken over" reload '."prefetch" == "on"' "prefetch = on"
it "READ ahead at 20 ms: content right" read_until '."ahead-hits" > 3000' ahead a
it "READ ahead at 20 ms: three times as fast as direct, or more" faster ahead 3
it "READ ahead at 20 ms: lane show tells of the hits" hits ahead
it "READ ahead at 20 ms: and so does its text" details
it "released when the hosts disconnect" await 30 released
it "READ ahead from the other site" read_until '."ahead-hits" > 1000' other b
it "READ ahead from the other site: hits" hits other
it "READs through 16 MiB, again and again" read_until '."ahead-hits" > 100' long a --region 16M
it "READs through 16 MiB: the first pass is not guessed, the others are" lane_says long \
	'."ahead-misses" >= 256 and ."ahead-misses" < 300 and ."ahead-hits" > 100'
it "a mix of all, in order, with prefetch on" mixed mix

# What is guessed beyond the endpoint's region, which ends 4 KiB later, would be a fatal error
RANGE=0x100000-0x2100000
it "SIGHUP: ranges are taken over" reload ".\"prefetch-range\" == \"$RANGE\"" \
	"prefetch = on" "prefetch-range = $RANGE"
it "READs through 16 MiB within a range that the rule names" read_until '."ahead-hits" > 1000' \
	range a --region 16M
it "a range: the first pass is guessed, too" lane_says range '."ahead-misses" < 100 and ."ahead-hits" > 100'
made_by_other() # a has told of READs, b has made those of which it was told
{
	[ "$(stat_of a reads-told)" -gt 1000 ] && [ "$(stat_of b reads-made)" -gt 1000 ] && [ "$(stat_of a reads-made)" = 0 ]
}
it "SIGHUP: prefetch = responder is taken over" reload '."prefetch" == "responder"' \
	"prefetch = responder" "prefetch-range = $RANGE"
it "responder: READs through 16 MiB within the range" read_until '."ahead-hits" > 1000' there a --region 16M
it "responder: hits" hits there
it "responder: the first pass is guessed, too" lane_says there '."ahead-misses" < 100'
it "responder: the other appliance has made them" made_by_other
# what a READ brings must not be older than a moment: less than it takes to get here
it "SIGHUP: prefetch-max-age is taken over" reload '."prefetch-max-age-ms" == 1' \
	"prefetch = on" "prefetch-max-age = 1ms"
it "prefetch-max-age below the round trip: content right" read_until '."ahead-flushed-age" > 20' old a
it "prefetch-max-age below the round trip: what has come is too old to be given" lane_says old \
	'."ahead-flushed-age" > 0 and ."ahead-hits" == ."ahead-late-hits"'
it "SIGHUP: read-depth is taken over" reload '."read-depth" == 2' "prefetch = on" "read-depth = 2"
it "read-depth = 2: content right" read_until '."ahead-hits" > 500' shallow a
it "read-depth = 2: and the lane goes by it" lane_says shallow '."read-depth" == 2 and ."ahead-hits" > 20'
it "SIGHUP: prefetch = off is taken over" reload '."prefetch" == "off"' "prefetch = off"
it "off again: READs pass, content right, and none is guessed" read_unguessed again
it "the appliances stop with nothing owed" pair_stop

wan_stop
wan_start "${LINK[@]}" --loss 0.005
READS+=(--timeout-exp 14)
it "0.5 % loss, without an appliance" read_some loss-direct a --seconds 2
pair_start "${PACE[@]}" -r "prefetch = on"
it "0.5 % loss: content right" read_until '."ahead-hits" > 3000' loss a
it "0.5 % loss: twice as fast as direct, or more" faster loss 2
it "0.5 % loss: hits" hits loss
it "0.5 % loss: a mix of all" mixed loss-mix
it "the appliances stop with nothing owed, after loss" pair_stop
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# READs asked near the responder before their host asks (NTT-7): one appliance alone, at B; the host at A reads,
# one READ at a time, over 50 ms. The content is right, and comes at least twice as fast as without.
#
# The hosts make their connections through the connection manager, which tells how many READs the responder takes.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK=(--delay-ms 25 --rate-mbps 1000)
PACE=(-g "wan-rate = 960M" -g "wan-burst = 550K")
# its timer is longer than what the appliance holds READs back for, to measure
READS=(--cm --op read --size 64K --depth 1 --mtu 4096 --timeout-exp 17 --region 1M)

# read_some NAME ARGUMENT...: READs until they have all been answered, with the right content
read_some()
{
	local name=$1

	shift
	next_qpns
	transfer "$name" a "${READS[@]}" "$@" && intact "$name"
}

# read_until FILTER NAME ARGUMENT...: READs until the filter holds for what the appliance says of the lane, which
# is $LAB/NAME-lane.json then. The appliance measures the turns of a connection once; when one of those that take part is
# not let run just then, nothing is asked ahead of that host any more, as it should be, but of the next one.
read_until()
{
	local filter=$1 name=$2 tries=3

	shift 2
	until read_once "$@"; do
		intact "$name" && [ $((tries -= 1)) != 0 ] || return
	done
}

read_once() # ARGUMENT...: with $filter and $name
{
	next_qpns
	rm -f "$LAB/$name-lane.json"
	UNTIL_SECONDS=30 transfer_until 'lane_now "$name" && lane_says "$name" "$filter"' "$name" a "${READS[@]}" "$@" &&
	intact "$name"
}

lane_now() # NAME
{
	lane_of >"$LAB/lane.json" && [ -s "$LAB/lane.json" ] && mv "$LAB/lane.json" "$LAB/$1-lane.json"
}

lane_of() # the lane of the latest connection's READs
{
	cli b -j lane show direction in lqpn $((${qpn[b]})) 2>/dev/null | jq -e '.[] | select(.state == "held")'
}

lane_says() # NAME FILTER
{
	jq -e "$2" "$LAB/$1-lane.json" >/dev/null
}

rate_above() # NAME NAME FACTOR
{
	awk -v a="$(delivered_rate "$1")" -v b="$(delivered_rate "$2")" -v f="$3" 'BEGIN {
		printf "%.1f and %.1f MB/s\n", a, b
		exit !(b > 0 && a >= f * b)
	}'
}

# What the distance allows is the same on any machine; what the appliance reaches is not when it is not let run, so
# it may try again.
faster() # FACTOR: than direct
{
	local tries=3

	until rate_above one direct "$1"; do
		[ $((tries -= 1)) != 0 ] && read_until '."ahead-hits" > 500' one || return
	done
}

reload() # FILTER LINE...: other lines in the rule, until what the daemon says of it fits
{
	local s filter=$1 lines=()

	for s in "${@:2}"; do
		lines+=(-r "$s")
	done
	gateway_config b -s "${PACE[@]}" "${lines[@]}"
	signal gw-b HUP
	await 30 jq_true b rule "all($filter)"
}

no_fault()
{
	[ "$(stat_of b solo-reads)" -gt 100 ] && [ "$(stat_of b solo-faults)" = 0 ] && [ "$(stat_of b faults)" = 0 ]
}

unpinned() # what the hosts have disconnected depends on nobody
{
	gateway_stop b && ! grep -q 'cannot go on without longhauld' "$LAB/gw-b.err"
}

lab_up
wan_start "${LINK[@]}"
it "without an appliance: the distance rules" read_some direct --seconds 4
gateway_config b -s "${PACE[@]}"
gateway_start b
it "off by default: READs pass" read_some off --seconds 3
it "off by default: rule show says so" jq_true b rule 'all(."prefetch" == "off")'
it "off by default: nothing was asked" jq_true b lane 'all(."ahead-guesses" == 0)'
it "SIGHUP: prefetch = single is taken over" reload '."prefetch" == "single"' "prefetch = single"
it "NTT-7 one READ at a time, 50 ms: content right" read_until '."ahead-hits" > 500' one
it "NTT-7 twice as fast as direct, or more" faster 2
it "NTT-7 lane show tells of the hits" lane_says one '."ahead-hits" > 50 and ."ahead-hits" <= ."ahead-guesses"'
it "NTT-7 four at a time: content right" read_until '."ahead-hits" > 500' four --depth 4
it "NTT-7 four at a time: hits" lane_says four '."ahead-hits" > 50'
it "NTT-7 nothing failed" no_fault
it "SIGHUP: off again" reload '."prefetch" == "off"' "prefetch = off"
it "off again: READs pass" read_some again --seconds 2
it "the appliance stops with nothing owed and nothing held" unpinned
exit $((tests_failed > 0))

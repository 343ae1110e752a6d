#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make survive: real daemons killed and handed over at random times, at both sides, while hosts with ordinary timers
# (67 ms, seven retries) WRITE, SEND and READ what is read ahead. EVENTS (150) in all, two of three are kill -9. The
# last line is
#
#	survive: events=<n> host-errors=<n> lost-messages=<n> max-gap-ms=<x> median-pause-ms=<x> max-pause-ms=<x> adopted=<n> faulted=<n>
#
# The gap is the longest time between two completions that any of the hosts saw; hosts that are held back by a full pool
# see some of 50 ms and more without any event. The pause is the time in which no daemon moved packets, by its log. Status 0 when no host saw an error,
# nothing is lost, each next daemon went on where the former one ended, and no lane is in fault.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/netns/lib.sh

EVENTS=${EVENTS:-150}
PER=10 # events to each transfer
HOST=(--size 64K --depth 64 --mtu 4096 --timeout-exp 14 --retry 7 --region 8M --cm --seconds 3600)
pauses=() events=0 errors=0 lost=0 gap=0 adopted=0 faulted=0 bad=0

held_now()
{
	jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]}))
}

more() # NAME MESSAGES: so many more than until now
{
	await 60 so_far_above "$1" messages $(($(so_far "$1" messages) + $2))
}

event()
{
	local s signal=KILL

	s=$([ $((RANDOM % 2)) = 0 ] && echo a || echo b)
	[ $((RANDOM % 3)) != 0 ] || signal=USR2
	sleep 0.$((RANDOM % 5))$((RANDOM % 10)) # when it comes is what this is about
	events=$((events + 1))
	pid[old]=${pid[gw-$s]}
	mv "$LAB/gw-$s.err" "$LAB/old.err"
	signal old $signal
	gateway_start $s
	reap old
	if grep -q 'going on where a former longhauld ended' "$LAB/gw-$s.err"; then
		adopted=$((adopted + 1))
		pauses+=("$(sed -n 's/.*after a pause of \([0-9]*\) ms.*/\1/p' "$LAB/gw-$s.err")")
	else
		echo "# event $events: $signal at $s: $(tail -n 1 "$LAB/gw-$s.err")"
		bad=$((bad + 1))
	fi
}

amid() # OP: a transfer with PER events in it
{
	local name=$1-$events i g

	next_qpns
	transfer_begin "$name" a --op "$1" "${HOST[@]}"
	await 60 held_now
	for ((i = 0; i < PER && events < EVENTS; i++)); do
		event
		more "$name-req" 50 || bad=$((bad + 1))
	done
	enough "$name-req"
	transfer_end "$name" && intact "$name" || { echo "# $name did not end well"; bad=$((bad + 1)); }
	errors=$((errors + $(got "$name-req" errors) + $(got "$name-resp" errors)))
	[ "$1" = read ] || lost=$((lost + $(got "$name-req" messages) - $(got "$name-resp" rx-messages)))
	g=$(got "$name-req" gap-max-ms)
	echo "# $name: $(got "$name-req" messages) messages, longest gap $g ms"
	gap=$(jq -n --argjson a "$gap" --argjson b "$g" '[$a, $b] | max')
}

[ "$(id -u)" = 0 ] || { echo "make survive: needs root: network namespaces and XDP; try sudo make survive" >&2; exit 1; }
lab_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M" -r "prefetch = on"
while [ $events -lt "$EVENTS" ]; do
	for op in write send read; do
		[ $events -ge "$EVENTS" ] || amid $op
	done
done
faulted=$(($(stat_of a faults) + $(stat_of b faults)))
pair_stop
pause=$(printf '%s\n' "${pauses[@]}" | jq -rs 'sort | "median-pause-ms=\(.[length / 2 | floor]) max-pause-ms=\(last)"')
echo "survive: events=$events host-errors=$errors lost-messages=$lost max-gap-ms=$gap $pause adopted=$adopted faulted=$faulted"
[ $bad = 0 ] && [ "$errors" = 0 ] && [ "$lost" = 0 ] && [ "$faulted" = 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A host sends more than its appliance can read. Frames that find the receive ring full are dropped and
# counted; after the overload everything is as before: each frame arrives once and unaltered, and a counter shows
# each lost one.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOSTS=(-g "wan-rate = 400M" -l 10.77.1.0/24 -w 10.77.2.0/24)
HOSTS_B=(-g "wan-rate = 400M" -l 10.77.2.0/24 -w 10.77.1.0/24)

count() # SITE GROUP NAME
{
	cli "$1" -j stats show | jq --arg g "$2" --arg n "$3" \
		'map(select(.group == $g and .name == $n).value) | add // 0'
}

site_ip() # SITE NUMBER
{
	echo "10.77.$([ "$1" = a ] && echo 1 || echo 2).$2"
}

numbered() # SITE N: a capture of N frames that differ, from that site to the other; its name
{
	local s=$1 o file=$LAB/numbered-$1-$2.pcap

	o=$(other "$s")
	[ -e "$file" ] || perl tests/netns/frames.pl number "$file" "$(mac "$s" 1)" "$(mac "$o" 1)" \
		"$(site_ip "$s" 5)" "$(site_ip "$o" 5)" "$2" || return
	echo "$file"
}

# exactly_once FROM-SITE N: each of N frames is at the other host once and unaltered. Not in order: on a busy machine
# a daemon may be late with its sign of life, and some pass it by. Drops of the receiver's own are said apart.
exactly_once()
{
	local s=$1 n=$2 o file

	o=$(other "$s")
	file=$(numbered "$s" "$n") || return
	perl tests/netns/frames.pl list "$file" "$(site_ip "$s" 5)" | sort >"$LAB/frames.sent"
	rm -f "$LAB/recv.err" # of the one before: it says "ready"
	spawn recv "h$o" perl "$PWD/tests/netns/frames.pl" recv eth0 "$(site_ip "$s" 5)" "$n"
	await 10 grep -q ready "$LAB/recv.err"
	in_ns "h$s" perl "$PWD/tests/netns/frames.pl" send eth0 "$file" "$(site_ip "$s" 5)" 2000
	reap recv 20
	sort "$LAB/recv.out" >"$LAB/frames.came"
	cmp -s "$LAB/frames.came" "$LAB/frames.sent" && return
	echo "$(comm -23 "$LAB/frames.sent" "$LAB/frames.came" | wc -l) of $n missing, $(comm -13 "$LAB/frames.sent" \
		"$LAB/frames.came" | wc -l) doubled or altered; $(grep 'no room' "$LAB/recv.err")" >&2
	: >"$LAB/recv.out" # too long to be shown
	return 1
}

blast() # SITE N: frames of a queue pair that nobody knows, as fast as they go
{
	in_ns "h$1" "$B/tests/bench/frame_blast" -n "$2" eth0 80 "$(site_ip "$1" 9)" "$(site_ip "$(other "$1")" 9)"
}

overrun() # SITE: its ring has overrun in earnest
{
	[ "$(count "$1" port-lan rx-dropped)" -gt 1000 ]
}

flood() # SITE: its daemon reads as fast as it can
{
	blast "$1" 200000 && overrun "$1"
}

# Its daemon does not get to run for a moment, again and again, while the flood lasts. At a pace that a busy machine's
# kernel follows: what a veth has no room for, because nobody empties it, never comes to the ring. The daemon is stopped
# amid the flood, and shorter than it may give no sign of life: what begins later than that is let past it.
flood_stalled() # SITE
{
	local i

	spawn blast "h$1" "$B/tests/bench/frame_blast" -n 200000 -r 100000 eth0 80 "$(site_ip "$1" 9)" \
		"$(site_ip "$(other "$1")" 9)"
	for ((i = 0; i < 8; i++)); do
		signal "gw-$1" STOP
		sleep 0.3
		signal "gw-$1" CONT
		overrun "$1" && break
	done
	reap blast
	overrun "$1" && return
	# for who reads why this failed
	cli "$1" -j stats show | jq -c 'map(select(.value > 0 and (.group | test("port|xdp"))) |
		{"\(.group)/\(.name)": .value}) | add' >"$LAB/flood.err"
	return 1
}

# What the flood has left under way is through, for what comes behind it is
flood_is_over() # SITE
{
	await 30 exactly_once "$1" 1
}

all_accounted_for() # the counters agree once nothing is under way, and no chunk is in doubt
{
	local s side

	for s in a b; do
		cli $s -j stats show >"$LAB/stats.json" || return
		for side in lan wan; do
			jq -e --arg side $side '
				def n($g; $n): map(select(.group == $g + "-" + $side and .name == $n).value) | add // 0;
				n("xdp"; "taken") == n("port"; "rx") + n("port"; "rx-dropped") and
				n("port"; "rx-bad-chunk") == 0 and n("port"; "tx-bad-chunk") == 0 and
				n("port"; "rx-too-long") == 0' "$LAB/stats.json" >/dev/null || {
				echo "$s $side: $(jq -c 'map(select(.value > 0 and (.group | test("port|xdp"))) |
					{"\(.group)/\(.name)": .value}) | add' "$LAB/stats.json")" >&2
				return 1
			}
		done
	done
}

carried() # NAME FROM
{
	next_qpns
	transfer "$1" "$2" --op write --count 600 --mtu 1024 && intact "$1" &&
	jq_true "$2" qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' \
		--argjson q $((${qpn[$2]}))
}

lab_up
wan_start --delay-ms 5 --rate-mbps 1200
gateway_config a "${HOSTS[@]}"
gateway_config b "${HOSTS_B[@]}"
gateway_start a
gateway_start b
await 20 peers_up
it "before: 2000 frames, each arrives once" exactly_once a 2000
it "before: a transfer is carried" carried before a
# beside other work nobody may be fast enough for that; the flood that meets a stalled daemon is certain
if await 10 flood a; then
	it "a flood overruns the receive ring" true
else
	skip "a flood overruns the receive ring" "this machine reads faster than it floods"
fi
it "the flood is over" flood_is_over a
it "afterwards: 2000 frames, each arrives once" exactly_once a 2000
it "afterwards: a transfer is carried" carried after a
it "a flood while the daemon stands still" await 60 flood_stalled b
it "that flood is over" flood_is_over b
it "afterwards: 2000 frames, each arrives once" exactly_once b 2000
it "the other way, too" exactly_once a 2000
it "afterwards: a transfer is carried" carried after-stall b
it "each frame that a port took was read or counted" await 10 all_accounted_for
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# More frames than a port can take. Dropping some then is right; what must not be is anything wrong afterwards:
# frames lost or doubled that come when all is calm again.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

FRAMES=20000

# For few queue pairs, so that it is the port that has too much to do, not a table
overload() # COUNT
{
	forge ha eth0 a roce --qpn 0x5550 --qpns 8 --random-psn --payload 16 --seed $RANDOM --count "$1"
}

dropped() # what a's LAN port had no room for
{
	cli a -j stats show | jq '[.[] | select(.group == "port-lan" and .name == "rx-dropped") | .value] | add // 0'
}

# Once, and so much that the port has nothing left to receive with. Beside other work the sender may be too slow for
# that: a daemon that does not get to run for a moment is certain to have too much.
overloaded()
{
	local before

	before=$(dropped)
	overload 500000 && await 20 calm || return
	[ $(($(dropped) - before)) -le 1000 ] || return 0
	signal gw-a STOP
	overload 50000
	signal gw-a CONT
	await 20 calm && [ $(($(dropped) - before)) -gt 1000 ]
}

overloads()
{
	local i

	# behind the sender, or the two share the time and nothing overflows
	renice -n 15 -p "${pid[gw-a]}" >/dev/null
	for i in 1 2 3; do
		await 60 overloaded || return
	done
	renice -n -10 -p "${pid[gw-a]}" >/dev/null
}

calm() # the daemons have nothing to do any more: what they have received stands still
{
	local before

	before=$(stat_of a rx-lan) && sleep 0.2 && [ "$(stat_of a rx-lan)" = "$before" ]
}

probed() # NAME: numbered frames from a to b
{
	local name=$1

	spawn "$name" hb "$LAB_BIN/probe" --receive --if eth0 --from "$(addr a 1)" --count $FRAMES
	await 10 grep -q ready "$LAB/$name.err" || ! why="no receiver" || return
	in_ns ha "$LAB_BIN/probe" --send --if eth0 --from "$(addr a 1)" --to "$(addr b 1)" --to-mac "$(mac b 1)" \
		--count $FRAMES --rate 8000
	reap "$name" 40
	why=$(jq -r --argjson n $FRAMES 'if .got == $n and .doubled == 0 and .altered == 0 then "" else
		"wrong: of \($n) frames \(.lost) lost, \(.doubled) doubled, \(.altered) altered" end' "$LAB/$name.out")
	[ -z "$why" ]
}

clean() # NAME: a connection without a loss: nobody repeats anything
{
	carried_after "$1" || return
	# READs and timeouts apart, a repeated packet is a lost or doubled one
	[ "$(got "$1-req" retransmits)" = 0 ] ||
		! why="wrong: $(got "$1-req" retransmits) packets repeated on a link that loses none"
}

lab_up
wan_start --delay-ms 10 --rate-mbps 400
bare "numbered frames after an overload" eval 'overload 400000; probed bare-probe'
gateway_config a -g "wan-rate = 380M" -l 10.77.1.0/24 -w 10.77.2.0/24
gateway_config b -g "wan-rate = 380M" -l 10.77.2.0/24 -w 10.77.1.0/24
gateway_start a
gateway_start b
await 20 peers_up || die "the peers do not find each other"
attack "numbered frames before an overload" probed before
attack "a connection before an overload" clean before-transfer
overloads >"$LAB/overload.out" || die "cannot make an overload"
attack "numbered frames after an overload" probed after
attack "a connection after an overload" clean after-transfer
attack "the daemons after an overload" daemons_live

# Received by the daemon, sent by it, taken out of the ring: whatever it says it got, it must have passed on
balance()
{
	local rx tx t0 r0

	r0=$(stat_of a rx-lan) t0=$(stat_of a tx-wan)
	probed balance
	rx=$(($(stat_of a rx-lan) - r0)) tx=$(($(stat_of a tx-wan) - t0))
	[ "$rx" = "$FRAMES" ] && [ "$tx" -ge "$FRAMES" ] ||
		! why="wrong: of $FRAMES frames the daemon received $rx and sent $tx"
}
attack "the daemon's own count of them" balance
attack_exit

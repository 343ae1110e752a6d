#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon that does not run under load (stopped, swapped out, no processor), longer than it takes the XDP program to call
# it stale. Meanwhile packets of lanes in custody are dropped, and hosts retransmit them afterwards; nothing is lost,
# nothing is taken for executed that was not, and the lane is held as before. At both sides.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# Nobody gives up: how long it stands still is up to the machine.
HOST=(--size 64K --depth 64 --mtu 4096 --timeout-exp 14 --personality permissive --retry 7 --region 8M --cm
	--seconds 600)
TIMES=10 # that a host's timer (67 ms) runs out meanwhile, more than the 500 ms after which a daemon is stale

locked() # SITE: the memory that its daemon has custody in
{
	awk '/gw-'"$1"'.sock.state/ {here = 1} here && /^Locked:/ {print $2; exit}' "/proc/${pid[gw-$1]}/smaps" | grep -qv '^0$'
}

# goes_on NAME: the transfer does; if not, what its daemons know is printed before the host is told to give up
goes_on()
{
	local before s object

	before=$(so_far "$1-req" messages)
	await 40 so_far_above "$1-req" messages $((before + 100)) && return
	for s in a b; do
		for object in lane qp peer stats; do
			echo "# $s: $object" && cli $s -d $object show
		done
	done
	return 1
}

dropped_old() # SITE: how often its daemon has dropped what waited in its rings
{
	grep -c 'stood still: [0-9]* frames' "$LAB/gw-$1.err"
}

# still NAME OP CONDITION SITE: the daemon of that site stands still amid a transfer from a
still()
{
	local name=$1 op=$2 condition=$3 s=$4 status=0 i stood old

	next_qpns
	transfer_begin "$name" a --op "$op" "${HOST[@]}"
	await 60 "$condition" || status=1
	old=$(dropped_old $s)
	signal "gw-$s" STOP
	stood=$(date +%s%N)
	for ((i = 0; i < TIMES; i++)); do
		asks_again "$name-req" || status=1
	done
	await 60 stale "$stood"
	signal "gw-$s" CONT
	goes_on "$name" && await 60 "$condition" || status=1
	# hosts have sent again what waited in its rings
	[ "$(dropped_old $s)" -gt $old ] || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] || status=1
	[ "$(stat_of a faults)" = 0 ] && [ "$(stat_of b faults)" = 0 ] && return $status
}

stale() # SINCE: it is a second ago
{
	[ $(($(date +%s%N) - $1)) -gt 1000000000 ]
}

lab_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M" -r "prefetch = on"

for s in a b; do
	it "WRITE, the daemon at $s stands still for a second" still write-$s write held_now $s
	it "SEND, at $s" still send-$s send held_now $s
	it "READ asked ahead, at $s" still read-$s read ahead_now $s
done
it "memory in use is locked, at both" eval 'locked a && locked b'
it "everything stops in order" pair_stop

exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What happens to links and processes, amid a transfer: cut, down for a second, stopped for a second, a second daemon.
# The hosts are patient for some seconds (lib.sh, stream()): a bare link survives all of it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

patient() # NAME EVENT...
{
	local name=$1

	shift
	stream "$name" --count 1500 || return
	"$@" || ! why="${why:-could not do that}" || { finish "$name"; return 1; }
	finish "$name"
	kept "$name" && { ! running gw-a || daemons_live; }
}

# One second is the event itself, not a wait for something.
cut()
{
	signal wan USR1 && sleep 1 && signal wan USR2
}

down() # SITE INTERFACE
{
	ip -n "$P-g$1" link set "$2" down && sleep 1 && ip -n "$P-g$1" link set "$2" up && await 10 carrier
}

stopped() # SITE
{
	signal "gw-$1" STOP && sleep 1 && signal "gw-$1" CONT
}

narrow() # the MTU of the link's port, for a second
{
	ip -n $P-ga link set wan0 mtu 1500 && sleep 1 && ip -n $P-ga link set wan0 mtu $LAB_MTU
}

second_daemon() # with the same interfaces: refused, and the first does not suffer
{
	if in_ns ga env LONGHAUL_PINS="$LAB/bpf/a" timeout 10 "$B/longhauld" -c "$LAB/gw-a.conf" 2>"$LAB/second.err"; then
		why="a second daemon with the same ports ran"
		return 1
	fi
	[ -s "$LAB/second.err" ] || ! why="it was refused without a word"
}

log_full() # a log that takes nothing
{
	gateway_stop a
	spawn gw-a ga bash -c 'exec env LONGHAUL_PINS="$1" "$2" -v -c "$3" 2>/dev/full >/dev/full' log \
		"$LAB/bpf/a" "$B/longhauld" "$LAB/gw-a.conf"
	await 20 attached a && await 20 peers_up || ! why="dead: no daemon without a log" || return
	carried_after log-full
}

lab_up
wan_start --delay-ms 5 --rate-mbps 150
bare "the link cut for a second" patient bare-cut cut
bare "the LAN port down for a second" patient bare-lan down a lan0
bare "the WAN port down for a second" patient bare-wan down a wan0
pair_start -g "wan-rate = 140M"
attack "the link cut for a second" patient cut cut
attack "the LAN port down for a second" patient lan down a lan0
attack "the WAN port down for a second" patient wan down a wan0
attack "the WAN port narrow for a second" patient mtu narrow
attack "the daemon near the requester stopped for a second" patient stop-a stopped a
attack "the daemon near the responder stopped for a second" patient stop-b stopped b
attack "a second daemon on the same ports" patient second second_daemon
attack "a log on a full device" log_full
attack_exit

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Stop, restart and a rule that goes, under load, with the timers that network cards have by default (67 ms, seven
# retries). A bare link knows nothing of that, so no queue pair may.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

amid_stream() # NAME EVENT...
{
	local name=$1

	shift
	stream "$name" --seconds 4 --timeout-exp 14 || return
	"$@" || ! why="the daemon: ${why:-ended badly}" || { finish "$name"; return 1; }
	finish "$name"
	kept "$name"
}

rule_gone() # the rule is for another host from now on
{
	cp "$LAB/gw-a.conf" "$LAB/with-rule.conf"
	gateway_config a -g "wan-rate = 380M" -l 10.77.1.99
	signal gw-a HUP
}

restarted() # SITE
{
	gateway_stop "$1" && gateway_start "$1" && await 20 peers_up
}

lab_up
wan_start --delay-ms 25 --rate-mbps 400
pair_start -g "wan-rate = 380M"
attack "the rule goes under load" amid_stream rule rule_gone
cp "$LAB/with-rule.conf" "$LAB/gw-a.conf"
signal gw-a HUP
attack "restart near the requester under load" amid_stream near restarted a
attack "restart near the responder under load" amid_stream far restarted b
attack_exit

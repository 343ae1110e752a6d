#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the other end hears when a daemon stops, or takes its peer out of its configuration, where what it says waits for
# the end of a batch.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

reload() # SITE
{
	in_ns "g$1" "$B/longhauld" --reload -c "$LAB/gw-$1.conf"
}

lab_up
lab_keep
wan_start --delay-ms 2 --rate-mbps 800
pair_start -g "wan-rate = 760M"

stopped()
{
	gateway_stop b && await 30 log_has a 'it said goodbye (shutdown)' && ! log_has a 'down: nothing heard'
}
it "a daemon that stops says goodbye" stopped
gateway_start b && await 30 peers_up

removed()
{
	cp "$LAB/gw-a.conf" "$LAB/usual.conf"
	printf '[peer edge-c]\naddress = 10.77.9.9\nkey-file = %s\n' "$LAB/key" >>"$LAB/gw-a.conf"
	reload a && awk '/^\[/ {off = /^\[peer edge-b/} !off' "$LAB/gw-a.conf" | sed 's/^peer = edge-b/peer = edge-c/' >"$LAB/new.conf" &&
		cp "$LAB/new.conf" "$LAB/gw-a.conf" && reload a && await 30 log_has a 'peer edge-b is no peer any more' &&
		await 30 log_has b 'it said goodbye (this side is not in its configuration any more)'
}
it "and so does one that takes its peer out of its configuration" removed
it "both stop" pair_stop
exit $((tests_failed > 0))

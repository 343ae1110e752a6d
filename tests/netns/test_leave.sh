#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a peer receives when a daemon stops, or removes the peer from its configuration, if datagrams wait for the end of a
# batch; and what becomes of custody for or at such a peer when the daemon is killed meanwhile.
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
	local before

	before=$(grep -c 'down: nothing heard' "$LAB/gw-a.err")
	gateway_stop b && await 30 log_has a 'it said goodbye (shutdown)' &&
	[ "$(grep -c 'down: nothing heard' "$LAB/gw-a.err")" = "$before" ]
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

owed() # by SITE, in any lane
{
	jq_true "$1" qp 'map(."custody-packets" + ."transit-packets") | add // 0 | . > 0'
}
no_rule() # at a, and another peer than edge-b
{
	gateway_config a -l 10.99.1.1 -w 10.99.2.1 && sed -i 's/edge-b/edge-c/; s/^address = .*/address = 10.77.9.9/' "$LAB/gw-a.conf"
}
still_there() # edge-b, whose session goes on or is looked for
{
	jq_true a peer 'any(.name == "edge-b") and any(.name == "edge-c")'
}
# killed_amid NAME SITE: transfers from there, and a is killed when its peer is leaving and the link does not let anything
# pass
killed_amid()
{
	local name=$1 from=$2 status=0

	gateway_config a -g "wan-rate = 760M" && reload a && await 30 peers_up || return
	next_qpns
	transfer_begin "$name" "$from" --op write --size 64K --depth 16 --mtu 4096 --seconds 600
	await 60 jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]})) && more "$name-req" 100 || status=1
	signal wan STOP
	await 30 owed "$from" && no_rule && reload a && still_there || status=1
	next_daemon a KILL && still_there || status=1
	log_has a 'cannot be adopted' && status=1
	signal wan CONT
	await 60 log_has a 'peer edge-b is no peer any more' && jq_true a peer 'all(.name == "edge-c")' || status=1
	more "$name-req" 100 || status=1
	! jq_true a qp 'any(.state == "fault")' && [ "$(stat_of a faults)$(stat_of b faults)" = 00 ] || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] && [ $status = 0 ]
}
it "killed while a peer is leaving that is owed something: delivered by the next one" killed_amid near a
it "and what is owed to a host here" killed_amid far b

# What a has in custody for b is with nobody else when b comes back without its memory. a must see that b is another
# process, although it looks at b with a key that no process of its own had.
forgotten()
{
	local s status=0

	gateway_config a -g "wan-rate = 760M" && reload a && await 30 peers_up || return
	next_qpns
	transfer_begin forgotten a --op write --size 64K --depth 16 --mtu 4096 --seconds 600
	await 60 held_now && more forgotten-req 100 || status=1
	"$B/longhaul" keygen "$LAB/new" && sed -i "s|^key-file = .*|key-file = $LAB/new|" "$LAB"/gw-?.conf
	for s in a b; do signal gw-$s KILL && reap gw-$s; done
	rm -r "$RUN/gw-b.sock.state" "$LAB"/bpf/b/*
	gateway_start a && going_on a && gateway_start b && ! going_on b && await 30 peers_up || status=1
	await 30 log_has a 'peer edge-b restarted while this side was away' || status=1
	more forgotten-req 100 || status=1
	enough forgotten-req
	transfer_end forgotten && intact forgotten && [ "$(got forgotten-req errors)" = 0 ] && [ $status = 0 ]
}
it "a peer that restarted while this side changed its key: known as another process" forgotten
it "both stop" pair_stop
exit $((tests_failed > 0))

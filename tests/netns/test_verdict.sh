#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What goes wrong with a pair at work: for each fault the alarm that longhaul status shows at either end, within two
# seconds of being knowable. Mistakes of the configuration are in test_mistakes, slow alarms in test_health.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

now_ms()
{
	echo $((${EPOCHREALTIME/./} / 1000))
}

alarm() # SITE NAME TEXT: raised, with that in its reason, and a mend; nothing: no alarm is
{
	if [ $# = 1 ]; then
		jq_true "$1" status 'all(.state == "ok" or (.name | IN("daemon-late", "peer-late", "rx-dropped")))'
	else
		jq_true "$1" status 'any(.name == $n and .state == "raised" and (.reason | contains($t)) and (.mend | length > 10))' \
			--arg n "$2" --arg t "$3"
	fi
}

# soon MS COMMAND...: it succeeds, and within so many ms where the machine let the daemons run: longer if others want its
# processors
soon()
{
	local limit=$1 from ms load

	shift
	from=$(now_ms)
	await 60 "$@" || return
	ms=$(($(now_ms) - from))
	echo "$*: $ms ms" | tee -a "$LAB/times" >&2
	read -r load _ </proc/loadavg
	[ $ms -le $((limit + limit * ${load%.*} / $(nproc))) ] || grep -qE 'alarm (daemon|peer)-late' "$LAB"/gw-[ab].err
}

over() # ALARM: at both ends
{
	await 30 jq_true a status 'all(.name != $n or .state == "ok")' --arg n "$1" &&
	await 30 jq_true b status 'all(.name != $n or .state == "ok")' --arg n "$1"
}

calm() # nothing is raised
{
	await 90 alarm a && await 90 alarm b
}

# at_work NAME: a transfer that goes on; done_with ends it
at_work()
{
	next_qpns
	transfer_begin "$1" a --op write --mtu 4096 --rate-mbps 10 --seconds 600 && await 30 promised_now
}

done_with() # NAME
{
	enough "$1-req"
	transfer_end "$1" && intact "$1"
}

# A refusal of before the session came is no cause of its end
link_cut_early()
{
	gateway_config a && gateway_start a && await 30 jq_true a peer 'all(.note | contains("nothing listens"))' &&
	gateway_config b && gateway_start b && await 30 peers_up && await 5 settled && signal wan STOP &&
	soon 3900 alarm a peer-down "the link is cut" && soon 3900 alarm b peer-down "the link is cut" &&
	! log_has a 'alarm peer-down: .*nothing listens'
	local status=$?
	signal wan CONT
	await 60 peers_up && calm && [ $status = 0 ]
}

killed() # its machine is there, and says so
{
	signal gw-b KILL
	reap gw-b
	soon 3900 alarm a peer-down "answers that nothing listens on its UDP port 4797"
	local status=$?
	gateway_start b && await 60 peers_up && calm && [ $status = 0 ]
}

wan_mtu() # a port of the link gets a smaller MTU under a transfer
{
	at_work mtu || return
	ip -n $P-ga link set wan0 mtu 1500
	soon 2500 alarm a port-mtu "(path MTU 4096), and wan0 has MTU 1500" &&
	soon 2500 alarm b port-mtu "(path MTU 4096), and the WAN port of peer edge-a has MTU 1500"
	local status=$?
	ip -n $P-ga link set wan0 mtu $LAB_MTU
	done_with mtu && calm && [ $status = 0 ]
}

reach() # SITE FIELD VALUE: of its peer
{
	jq_true "$1" peer 'all(.[$f] == $v)' --arg f "$2" --argjson v "$3"
}

carries() # TO BYTES TEXT: how both ends of it name a link that begins at site a
{
	soon 2500 alarm a link-mtu "the link $1 peer edge-b carries packets of at most $2 bytes, and hosts send 4156 (path MTU 4096)" &&
	soon 500 alarm b link-mtu "the link from peer edge-a carries packets of at most $2 bytes, and hosts send 4156 (path MTU 4096)" &&
	jq_true a status 'any(.name == "link-mtu" and (.mend | contains("along the link to 4188") and contains("to 1024")))' ||
	{ cli a -j status | jq -c 'map(select(.name == "link-mtu"))' >&2; false; }
}

# What follows from it raises no alarm of its own; that packets were lost before is true
nothing_else()
{
	await 60 jq_true a status 'any(.name == "link-mtu" and .state == "raised" and ."since-ms" > 7000)' || return
	cli a -j status | jq -c 'map(select(.state == "raised") | .name)' >&2
	jq_true a status \
		'all(.name == "link-mtu" or .state == "ok" or (.name | IN("daemon-late", "peer-late", "rx-dropped", "pool", "loss")))' &&
	cli a -j doctor | jq -e 'any(.check == "peers" and .verdict == "wrong")' >/dev/null
}

has_parity()
{
	[ "$(stat_of a parity-sent)" -gt 0 ]
}

# A network on the way begins to drop what hosts send, without a word. Frames of parity, which are longer, are none of
# theirs.
link_mtu()
{
	local status=0

	at_work link && await 10 reach a link-mtu 4188 && await 10 reach b link-mtu-from 4188 || status=1
	wan_stop
	wan_start --delay-ms 10 --loss 0.005
	await 30 has_parity && echo "parity was sent" >&2 || status=1
	wan_stop
	wan_start --delay-ms 10 --mtu 1500
	carries to 1500 && nothing_else || status=1
	wan_stop
	wan_start --delay-ms 10
	done_with link && calm && [ $status = 0 ]
}

# A port of a switch on the way gets a smaller MTU, in both directions
switch_port()
{
	local status=0

	at_work switch || status=1
	ip -n $P-wan link set dev b mtu 2000
	carries to 2000 || status=1
	ip -n $P-wan link set dev b mtu $LAB_MTU
	done_with switch && calm && [ $status = 0 ]
}

# The link is narrow from the start: that is known before hosts send, and said when they send what it does not carry
narrow_from_start()
{
	local status=0

	wan_stop
	wan_start --delay-ms 10 --mtu 1500
	await 10 reach a link-mtu 1500 && await 10 reach b link-mtu 1500 && calm || status=1
	next_qpns
	transfer short a --op write --mtu 1024 --count 200 && intact short && alarm a || status=1
	next_qpns
	transfer_begin long a --op write --mtu 4096 --count 20 --timeout-exp 16 --retry 7
	carries to 1500 || status=1
	{ transfer_end long; } >/dev/null 2>&1
	wan_stop
	wan_start --delay-ms 10
	calm && [ $status = 0 ]
}

# A firewall on the way drops UDP port 4791 from site A or B on: both ends say so, unless the link has just changed.
firewall() # FROM
{
	local status=0 options=(--delay-ms 10 "--$([ "$1" = a ] && echo ab || echo ba)" --only-roce --loss 1)

	next_qpns
	wan_stop
	wan_start "${options[@]}"
	await 60 peers_up && transfer_begin "wall-$1" a --op write --mtu 4096 --rate-mbps 50 --seconds 600 --retry 255 &&
	soon 13900 alarm "$1" link-blocked "sent to peer edge-$(other "$1") none came (UDP port 4791)" &&
	soon 1900 alarm "$(other "$1")" link-blocked "sent from peer edge-$1 none came (UDP port 4791)" &&
	jq_true "$1" status 'any(.name == "link-blocked" and (.mend | contains("open UDP port 4791 in all firewalls")))' || status=1
	wan_stop
	wan_start --delay-ms 10
	done_with "wall-$1" && over link-blocked && [ $status = 0 ]
}

# What waits behind a lost packet does not wait for a host: when the link is cut then, nobody blames hosts.
cut_amid_loss()
{
	local status=0

	calm || return # doctor stops at what is left of the rows before
	wan_stop
	wan_start --delay-ms 10 --loss 0.1
	at_work holes || status=1
	for _ in {1..20}; do # at a moment at which something waits
		sleep 0.3
		signal wan STOP
		sleep 0.3
		jq_true b lane 'any(."transit-packets" > 0)' && break
		signal wan CONT
	done
	await 30 jq_true b lane 'any(."transit-oldest-ms" > 7000)' && jq_true b status 'all(.name != "responder-silent" or .state == "ok")' &&
	in_ns gb "$B/longhaul" -s "$RUN/gw-b.sock" -j doctor | jq -e 'any(.check == "peers" and .verdict == "wrong")' || status=1
	signal wan CONT
	wan_stop
	wan_start --delay-ms 10
	done_with holes && over peer-down && [ $status = 0 ]
}

# A port is taken out of its bridge: what longhaul takes still crosses, so nothing else shows it before hosts ask by ARP
left_bridge()
{
	ip -n $P-gb link set lan0 nomaster
	soon 2900 alarm b port-alone "lan0 is in no bridge"
	local status=$?
	ip -n $P-gb link set lan0 master br0 && await 30 carrier && neighbours b && over port-alone && [ $status = 0 ]
}

host_mtu() # what is behind a port does not take what the hosts send
{
	at_work host || return
	ip -n $P-hb link set eth0 mtu 1500
	soon 3000 alarm b tx-dropped "lan0 did not take"
	local status=$?
	# what follows from it raises no alarm of its own
	await 30 jq_true b lane 'any(."transit-oldest-ms" > 7000)' && jq_true b status \
		'all(.name != "responder-silent" or .state == "ok")' || status=1
	cli b -j doctor | jq -e 'any(.check == "ports" and .verdict == "wrong")' >/dev/null || status=1
	cli a -j doctor host 10.77.1.1 | jq -e 'any(.check == "answers" and .verdict == "wrong")' >/dev/null || status=1
	ip -n $P-hb link set eth0 mtu $LAB_MTU
	done_with host && [ $status = 0 ]
}

rule_gone() # by a reload at one end: both know
{
	sed -i.was 's/^lan = 10.*/lan = 10.66.0.1/; s/^wan = 10.*/wan = 10.65.0.1/' "$LAB/gw-b.conf"
	cli b reload >/dev/null && soon 2500 alarm a rule-missing "which has no rule for them" &&
	soon 2500 alarm b rule-missing "which has no rule for them"
	local status=$?
	mv "$LAB/gw-b.conf.was" "$LAB/gw-b.conf" && cli b reload >/dev/null && calm && [ $status = 0 ]
}

port_gone() # SITE PORT: under a transfer
{
	ip -n $P-g$1 link set "$2" down
	soon 2500 alarm "$1" port-down "$2 is down"
	local status=$?
	ip -n $P-g$1 link set "$2" up && await 30 carrier && neighbours "$1" && await 60 peers_up && calm && [ $status = 0 ]
}

lab_up
wan_start --delay-ms 10
it "the link is cut just after the peer came: the link, not what was before" link_cut_early
it "a daemon is killed: its machine says that nothing listens" killed
it "the MTU of the WAN port shrinks at runtime: both ends have the numbers" wan_mtu
it "a network on the way drops long packets: both ends have the number and the mend" link_mtu
it "a port of a switch on the way gets a smaller MTU" switch_port
it "a link that is narrow from the start: said when hosts send long packets" narrow_from_start
it "the host's port drops what is too long for it: tx-dropped" host_mtu
it "a firewall drops UDP port 4791 to the peer" firewall a
it "and from the peer" firewall b
it "a link that loses packets is cut amid a transfer: the hosts are not blamed" cut_amid_loss
it "a port leaves its bridge" left_bridge
it "a rule goes by a reload: both ends say which hosts" rule_gone
it "the LAN port goes" port_gone b lan0
it "the WAN port goes" port_gone a wan0
[ -z "${KEEP:-}" ] || cat "$LAB/times"
exit $((tests_failed > 0))

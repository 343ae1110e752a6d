#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The mistakes of an operator's first hour, and what `longhaul status` shows for each at either end: the name of one
# alarm, and words of its reason. Consequences of a mistake raise no other alarm.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# what is raised because a machine is busy; a transfer at full speed makes it so
busy='["daemon-late", "peer-late", "rx-dropped"]'

alarm() # SITE NAME TEXT: raised, with that in its reason; ok: all is well
{
	if [ "$2" = ok ]; then
		jq_true "$1" status "map(select(.state != \"ok\") | .name) - $busy == []"
	else
		jq_true "$1" status 'any(.name == $n and .state == "raised" and (.reason | contains($t)) and (.mend | length > 10))' \
			--arg n "$2" --arg t "$3" && alone "$1" "$2"
	fi
}

alone() # SITE NAME: no other alarm, but that a machine is busy
{
	jq_true "$1" status "map(select(.state == \"raised\") | .name) - $busy | unique == [\$n]" --arg n "$2"
}

# says A-ALARM A-TEXT B-ALARM B-TEXT: at both ends, in the end
says()
{
	await 60 alarm a "$1" "$2" && await 60 alarm b "$3" "$4"
}

configs() # both, without a mistake
{
	rm -f "$LAB/key2"
	gateway_config a -r "policy = early" && gateway_config b -r "policy = early"
}

ends() # stop what runs
{
	local s

	for s in a b; do
		running gw-$s && gateway_stop $s
	done
	return 0
}

# mistake CHANGE A-ALARM A-TEXT B-ALARM B-TEXT: the change is made, both are started; afterwards it is mended by a new start
mistake()
{
	local bad=0

	configs && eval "$1" && gateway_start a && gateway_start b && says "$2" "$3" "$4" "$5" || bad=1
	ends
	[ $bad = 0 ]
}

at() # SITE SED-SCRIPT
{
	sed -i "$2" "$LAB/gw-$1.conf"
}

# The first seconds: not yet well, and not an alarm either
starting()
{
	configs && gateway_start a
	await 30 eval 'cli a status >"$LAB/first.out"; grep -q "^STARTING: longhauld is starting, .* 0 of 1 peer up" "$LAB/first.out"' &&
	await 60 alarm a peer-unreached "answers that nothing listens on its UDP port 4797" &&
	{ cli a status; [ $? = 1 ]; } && gateway_start b && await 60 peers_up && says ok '' ok ''
}

# Sessions that were up, and a link that carries nothing any more: it is the link, once, at both ends
cut_and_back()
{
	next_qpns
	transfer_begin cut a --op write --mtu 1024 --seconds 600 &&
	await 60 promised_now && signal wan STOP &&
	says peer-down "the link is cut" peer-down "the link is cut" && signal wan CONT && await 60 peers_up &&
	says ok '' ok '' || { signal wan CONT; return 1; }
	enough cut-req
	transfer_end cut && intact cut &&
	! grep -hE 'alarm (loss|wan-rate|responder-silent)' "$LAB"/gw-[ab].err
}

# A port that hosts' packets do not fit: both ends tell the numbers, whichever has it
narrow()
{
	local bad=0

	ip -n $P-gb link set lan0 mtu 1500 && configs && gateway_start a && gateway_start b && await 60 peers_up || bad=1
	next_qpns
	host_start narrow-req a --op write --mtu 4096 --size 64K --seconds 600
	says port-mtu "(path MTU 4096), and the LAN port of peer edge-b has MTU 1500" \
		port-mtu "(path MTU 4096), and lan0 has MTU 1500" || bad=1
	signal narrow-req KILL
	reap narrow-req
	ends
	ip -n $P-gb link set lan0 mtu $LAB_MTU
	[ $bad = 0 ]
}

down() # the peer's WAN port
{
	local bad=0

	configs && gateway_start a && gateway_start b && await 60 peers_up && ip -n $P-gb link set wan0 down || bad=1
	says peer-down "the link is cut" port-down "wan0 is down" || bad=1
	ip -n $P-gb link set wan0 up && await 30 carrier && neighbours b &&
	await 30 eval 'cli b status | grep -q "port-down, for .*, ended .* ago: wan0 is down"' &&
	await 60 peers_up && says ok '' ok '' || bad=1
	ends
	[ $bad = 0 ]
}

# A tunnel without Ethernet, as WireGuard's, is no port, alone or beside one that is
no_ethernet()
{
	local ports

	ip -n $P-ga tuntap add dev tun0 mode tun && ip -n $P-ga link set tun0 up || return
	for ports in tun0 'wan0 tun0'; do
		configs && at a "s/^wan = wan0/wan = $ports/" || return
		in_ns ga "$B/longhauld" --check-config -c "$LAB/gw-a.conf" >"$LAB/tun.out" 2>&1 && return 1
		grep -q ":3: interface 'tun0' is no Ethernet interface" "$LAB/tun.out" || return
	done
	ip -n $P-ga link del tun0
}

lab_up
wan_start --delay-ms 5
it "a port without Ethernet is refused" no_ethernet
it "starting, then the cause, then well" starting
it "the link is cut: said once, at both ends" cut_and_back
it "longhauld is stopped at one end" eval 'gateway_stop b && await 60 alarm a peer-down "longhauld was stopped there"; s=$?; ends; [ $s = 0 ]'
it "another key" mistake '"$B/longhaul" keygen "$LAB/key2" && at b "s|$LAB/key|$LAB/key2|"' \
	peer-unreached 'has another key' peer-unreached 'has another key'
it "the port is closed, or another one" mistake 'at b "/^\[longhaul\]/a port = 4798"' \
	peer-unreached "answers that nothing listens on its UDP port 4797" \
	peer-unreached "answers that nothing listens on its UDP port 4798"
it "a wrong address of the peer" mistake 'at a "s/^address = .*/address = 10.77.2.99/"' \
	peer-unreached "datagrams come from $(addr b 2) port 4797, which is no peer's" \
	peer-unreached "nothing has ever come from $(addr a 2) port 4797"
it "the rule at one end only" mistake 'at b "s/^lan = 10.*/lan = 10.66.0.1/; s/^wan = 10.*/wan = 10.65.0.1/"' \
	rule-missing "looks for hosts $(addr b 1 4)/32 at peer edge-b, which has no rule for them" \
	rule-missing "looks for hosts 10.65.0.1/32 at peer edge-a, which has no rule for them"
it "the rule copied, and not exchanged" mistake \
	"at b 's|^lan = 10.*|lan = $(addr a 1 4), $(addr a 1 6)|; s|^wan = 10.*|wan = $(addr b 1 4), $(addr b 1 6)|'" \
	rule-missing "lan and wan are exchanged" rule-missing "lan and wan are exchanged"
it "the bridge is down" eval 'ip -n $P-gb link set br0 down; mistake true \
	peer-unreached "" peer-unreached "this host has no way to '"$(addr a 2)"'"; s=$?
	ip -n $P-gb link set br0 up; await 30 carrier; neighbours b; [ $s = 0 ]'
it "an MTU that is too small at the other end" narrow
it "a port of the other end is down" down
wan_stop
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# longhaul status as an operator sees it: each fault that can be made here raises an alarm with a reason, a mend and
# an exit status, and the alarm clears when the fault is gone. And watching: -w, rates, filters that cannot match.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

status() # SITE: the exit status of longhaul status
{
	cli "$1" status >"$LAB/status.out" 2>&1
	echo $?
}

alarm() # SITE NAME STATE
{
	jq_true "$1" status 'any(.name == $n and .state == $s)' --arg n "$2" --arg s "$3"
}

raised() # SITE NAME: with a reason and a mend, in the table and in the log
{
	await 60 alarm "$1" "$2" raised &&
	jq_true "$1" status 'any(.name == $n and .state == "raised" and (.reason | length > 10) and
		(.mend | length > 10) and .["raised-count"] >= 1)' --arg n "$2" &&
	cli "$1" status | grep -q -A 1 "$2, for " && cli "$1" status | grep -q "mend: " &&
	grep -q "alarm $2: " "$LAB/gw-$1.err"
}

over() # SITE NAME
{
	await 90 alarm "$1" "$2" ok && grep -q "alarm $2 is over" "$LAB/gw-$1.err"
}

well() # a machine that is busy with something else may be late, which is true
{
	jq_true "$1" status 'length > 15 and all(.state == "ok" or .name == "daemon-late" or .name == "peer-late")' &&
	[ "$(status "$1")" -le 1 ] && grep -qE '^(OK|WARNING): longhauld is running, .* 1 of 1 peer up, 1 rule$' "$LAB/status.out"
}

says() # STATUS PATTERN COMMAND...
{
	local want=$1 pattern=$2

	shift 2
	"$@" >"$LAB/says.out" 2>"$LAB/says.err"
	[ $? = "$want" ] && [ ! -s "$LAB/says.out" ] && [ "$(wc -l <"$LAB/says.err")" = 1 ] &&
	grep -q -- "$pattern" "$LAB/says.err"
}

rates_seen() # while a transfer runs: bits per second of the queue pair, about what its endpoint has
{
	cli a -j -w0.5 -n 6 qp >"$LAB/rates.json" &&
	jq -se '(flatten | map(select(."out-rate" != null))) as $r | ($r | length) >= 3 and
		any($r[]; ."out-rate" > 1000000 and ."message-rate" > 0 and .gain > 0)' "$LAB/rates.json" >/dev/null
}

watched()
{
	next_qpns
	transfer_until rates_seen watched a --op write --mtu 4096 --rate-mbps 10 && intact watched
}

peer_gone()
{
	gateway_stop b && raised a peer-down && [ "$(status a)" = 2 ] && grep -q '^CRITICAL: ' "$LAB/status.out"
}

peer_back()
{
	gateway_start b && await 30 peers_up && over a peer-down
}

silent() # the far host stops in the middle: both appliances say so, and that it is over when it goes on
{
	local bad=0

	next_qpns
	transfer_begin silent a --op write --mtu 4096 --rate-mbps 10 --seconds 600
	# before it has answered for what passed ahead of the lane, the lane is let go and nobody knows it
	await 30 jq_true a qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' \
		--argjson q $((${qpn[a]})) || bad=1
	signal silent-resp STOP
	raised b responder-silent && raised a responder-silent || bad=1
	signal silent-resp CONT
	over b responder-silent && over a responder-silent || bad=1
	enough silent-req
	transfer_end silent && [ $bad = 0 ]
}

# wan-rate is ten times what the link carries. The host has little under way: when the peers lose each other on a busy machine,
# for reports drown, it is alone with that link, and goes back again and again to all that it has under way.
overrun()
{
	local bad=0

	next_qpns
	transfer_begin overrun a --op write --mtu 4096 --seconds 600 --depth 4
	raised a wan-rate || raised a loss || bad=1
	running overrun-req && enough overrun-req
	TRANSFER_SECONDS=120 transfer_end overrun && [ $bad = 0 ]
}

lab_up
wan_start --delay-ms 5 --rate-mbps 300
pair_start -g "wan-rate = 280M"
it "status: all is well" await 60 well a
it "status -j: each alarm, with level and state" jq_true a status '
	map(.name) as $n | all("peer-down", "loss", "wan-rate", "pool", "responder-silent", "doubled-frames",
		"read-ahead-off", "half-known", "peer-late", "peer-unreached", "rule-missing", "port-mtu", "tx-dropped", "fault"; . as $x | $n | any(. == $x))'
it "-w: looks again and again, with rates of each queue pair" watched
it "the peer goes: critical" peer_gone
it "the peer comes back: over" peer_back
it "a responder is silent, and speaks again" silent
it "an interface is down: critical" eval 'ip -n $P-gb link set lan0 down && raised b port-down &&
	ip -n $P-gb link set lan0 up && over b port-down'
it "and so it is where what it is connected to is down" eval 'ip -n $P-hb link set eth0 down && raised b port-down &&
	ip -n $P-hb link set eth0 up && over b port-down && neighbours b && await 30 carrier'
it "status -w: again and again" eval '[ "$(cli a -w0.2 -n 3 status | grep -c "longhauld is running")" = 3 ]'
it "no daemon: status 3" says 3 "cannot reach longhauld" "$B/longhaul" -s "$LAB/none.sock" status
it "a filter that cannot match: a state" says 1 "state is one of" cli a qp state helt
it "a filter that cannot match: a number" says 1 "is a number" cli a qp lqpn seven
it "a filter that cannot match: an address" says 1 "address or a prefix" cli a qp lan-ip 10.77.1
it "a filter that cannot match: no such rule" says 1 "there is no rule 'host'; there are: hosts" cli a qp rule host
it "a filter that cannot match: no such peer" says 1 "there is no peer 'edge-x'; there are: edge-b" cli a peer name edge-x
it "a filter that cannot match: no such counter" says 1 "there is no counter 'retx'" cli a stats name retx
it "a filter that cannot match: no such alarm" says 3 "there is no alarm 'link-mut'; there are: fault" cli a status link-mut
it "a filter by prefix" eval 'cli a -j qp lan-ip 10.77.0.0/16 | jq -e "length > 0" >/dev/null &&
	cli a -j qp lan-ip 10.78.0.0/16 | jq -e "length == 0" >/dev/null'
it "-w and -n: wrong values" eval 'says 1 "seconds, not" cli a -wfast qp && says 1 "number from 1" cli a -w -n 0 qp'
pair_stop
wan_stop
wan_start --delay-ms 5 --rate-mbps 50
pair_start -g "wan-rate = 500M"
it "wan-rate above what the link carries" overrun
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two appliances at site a, and a spanning tree that lets one of them have the traffic. The other one is a standby: the
# same configuration, address and key, and no longhauld running until the first one has lost its power. Queue
# pairs with lost custody fail at both ends, as without a standby; new connections are held as soon as the tree lets frames pass.
#
#	P-ha: eth0 -- P-sa: brl --+-- lan0 P-ga: br0 wan0 --+-- brw -- P-wan ...
#	                          +-- lan0 P-gc: br0 wan0 --+
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOST=(--size 64K --depth 16 --mtu 4096 --timeout-exp 14 --region 8M)
# The shortest that the kernel's bridge can: listens and learns for 2 s each
STP=(stp_state 1 forward_delay 200 hello_time 100 max_age 600 mcast_snooping 0)

# cable NAMESPACE INTERFACE BRIDGE NAMESPACE INTERFACE BRIDGE
cable()
{
	ip -n "$P-$1" link add "$2" type veth peer name "$5" netns "$P-$4" && link_up "$1" "$2" && link_up "$4" "$5" &&
	ip -n "$P-$1" link set "$2" master "$3" && ip -n "$P-$4" link set "$5" master "$6"
}

# What ports a has become those of a switch, and behind it are two appliances
standby_up()
{
	ip netns add $P-sa && ip netns add $P-gc && ip -n $P-gc link set lo up &&
	ip -n $P-ga link set lan0 netns $P-sa name host && ip -n $P-ga link set wan0 netns $P-sa name away &&
	ip -n $P-sa link add brl type bridge priority 0 "${STP[@]}" &&
	ip -n $P-sa link add brw type bridge priority 61440 "${STP[@]}" &&
	ip -n $P-gc link add br0 type bridge priority 32768 "${STP[@]}" &&
	ip -n $P-ga link set br0 type bridge priority 16384 "${STP[@]}" &&
	link_up sa host && link_up sa away && link_up sa brl && link_up sa brw && link_up gc br0 &&
	ip -n $P-sa link set host master brl && ip -n $P-sa link set away master brw &&
	cable sa l1 brl ga lan0 br0 && cable sa l2 brl gc lan0 br0 &&
	cable sa w1 brw ga wan0 br0 && cable sa w2 brw gc wan0 br0
}

port_is() # PORT STATE: of the switch
{
	bridge -n $P-sa link show dev "$1" | grep -q "state $2"
}

tree_stands() # a has the traffic, nothing goes round in circles
{
	port_is host forwarding && port_is away forwarding && port_is l1 forwarding && port_is w1 forwarding &&
	port_is l2 forwarding && port_is w2 blocking
}

power_lost() # of the first one: its cables are dead
{
	signal gw-a KILL && reap gw-a
	ip -n $P-sa link set l1 down && ip -n $P-sa link set w1 down
}

# What VRRP does at that moment: the address moves, and the service is started
takes_over()
{
	ip -n $P-gc link set br0 address "$(mac a 2)" &&
	ip -n $P-gc addr add "$(addr a 2 4)/16" dev br0 && ip -n $P-gc addr add "$(addr a 2 6)/64" dev br0 nodad || return
	for f in 4 6; do
		ip -n $P-gc neigh replace "$(addr b 2 $f)" lladdr "$(mac b 2)" dev br0 || return
	done
	sed "s#gw-a.sock#gw-c.sock#" "$LAB/gw-a.conf" >"$LAB/gw-c.conf" && gateway_start c
}

failed() # NAME: the endpoint's queue pair
{
	[ "$(so_far "$1" errors)" -gt 0 ] || ended "${pid[$1]}"
}

held_at_c()
{
	jq_true c qp 'any(.lqpn == $q and .state == "held" and ."custody-packets" > 0)' --argjson q $((${qpn[a]}))
}

finds_peer()
{
	jq_true c peer 'length == 1 and all(.state == "up")'
}

fails_over()
{
	local status=0

	next_qpns
	transfer_begin old a --op write "${HOST[@]}" --timeout-exp 16 --seconds 600
	# more than can be under way: it is promised, and nobody else has it
	await 60 jq_true a qp 'any(.lqpn == $q and .state == "held" and ."custody-bytes" > 8000000)' --argjson q $((${qpn[a]})) &&
	power_lost && takes_over && await 60 port_is w2 forwarding && passes=$(date +%s%N) || status=1
	await 30 finds_peer && found=$(date +%s%N) || status=1
	await 60 failed old-req || status=1
	await 60 grep -q "FAULT: .*peer-restarted" "$LAB/gw-b.err" && [ "$(stat_of b faults)" -gt 0 ] || status=1
	reap old-req
	signal old-resp TERM && reap old-resp
	[[ $(got old-req first-error) == @(remote-operation|flushed) ]] || status=1
	jq -c '{messages, errors, "first-error", intact}' "$LAB/old-req.out" "$LAB/old-resp.out"
	return $status
}

anew() # a connection made afterwards
{
	next_qpns
	transfer_begin anew a --op write "${HOST[@]}" --retry 7 --seconds 600
	await 30 held_at_c && more anew-req 50
	enough anew-req
	transfer_end anew && intact anew && [ "$(got anew-req errors)" = 0 ]
}

passes=0 found=0
lab_up
standby_up || die "cannot make the standby"
await 60 tree_stands || die "no spanning tree: $(bridge -n $P-sa link show)"
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M"
it "power of one of two appliances lost: what was promised is broken at both ends" fails_over
echo "# from the first frame that the tree lets pass until the peers know each other: $(((found - passes) / 1000000)) ms"
it "a new connection through the standby is held" anew
it "the standby stops in order" gateway_stop c
it "the other site does, too" gateway_stop b
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# NTT-10: routed sites. Each appliance stands on the link between the router of its site and the router at the WAN:
#
#	ha --- ra --- ga --- wa === wan === wb --- gb --- rb --- hb
#	  10.77.1      10.78.1      10.79.0      10.78.2      10.77.2      and fd77:, fd78:, fd79:
#
# So frames have the MACs of routers, TTLs differ, and the peers reach each other over routers. The router of site a is two
# machines with one virtual MAC: what it is sent goes to that, what it sends bears the MAC of the machine in charge. That of
# site b is one machine with one MAC.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

n_of() # SITE
{
	[ "$1" = a ] && echo 1 || echo 2
}

# As in lib.sh, but the appliance is in another network than the host.
addr() # SITE, 1 host or 2 appliance [FAMILY]
{
	if [ "${3:-$FAMILY}" = 4 ]; then
		echo "10.7$((6 + $2)).$(n_of "$1").$2"
	else
		echo "fd7$((6 + $2)):$(n_of "$1")::$2"
	fi
}

net() # NAMESPACE INTERFACE 4-PREFIX 6-PREFIX LAST: its addresses
{
	ip -n "$P-$1" addr add "$3.$5/24" dev "$2" && ip -n "$P-$1" addr add "$4::$5/64" dev "$2" nodad
}

via() # NAMESPACE 4-PREFIX 6-PREFIX 4-NEXT 6-NEXT
{
	ip -n "$P-$1" route add "$2" via "$4" && ip -n "$P-$1" -6 route add "$3" via "$5"
}

# knows NAMESPACE INTERFACE 6-ADDRESS MAC: without a link-local address a router asks nobody
knows()
{
	ip -n "$P-$1" neigh replace "$3" lladdr "$4" dev "$2"
}

# The router of SITE toward the appliance: vr sends with one MAC, and its port wr has that to which it is sent.
router_up()
{
	local s=$1 n sends=6

	n=$(n_of "$s")
	[ "$s" = a ] || sends=7
	ip -n $P-r$s link add vr address "$(mac "$s" $sends)" type bridge stp_state 0 mcast_snooping 0 &&
	ip -n $P-r$s link set wr master vr && link_up r$s hr && link_up r$s wr && link_up r$s vr &&
	net r$s hr 10.77.$n fd77:$n 9 && net r$s vr 10.78.$n fd78:$n 1 &&
	via r$s default default 10.78.$n.3 fd78:$n::3 &&
	knows r$s hr fd77:$n::1 "$(mac "$s" 1)" && router_knows "$s"
}

router_knows() # SITE
{
	local n

	n=$(n_of "$1")
	knows r$1 vr fd78:$n::3 "$(mac "$1" 8)" && knows r$1 vr fd78:$n::2 "$(mac "$1" 2)"
}

wan_router_up() # SITE
{
	local s=$1 n o

	n=$(n_of "$s")
	o=$(n_of "$(other "$s")")
	link_up w$s lw && link_up w$s ww && net w$s lw 10.78.$n fd78:$n 3 && net w$s ww 10.79.0 fd79 $n &&
	via w$s default default 10.79.0.$o fd79::$o && via w$s 10.77.$n.0/24 fd77:$n::/64 10.78.$n.1 fd78:$n::1 &&
	knows w$s lw 10.78.$n.1 "$(mac "$s" 7)" && knows w$s lw fd78:$n::1 "$(mac "$s" 7)" &&
	knows w$s lw fd78:$n::2 "$(mac "$s" 2)" && knows w$s ww fd79::$o "$(mac "$(other "$s")" 9)"
}

# For its host the router of a site has the MAC that lib.sh gives the host at the other one.
routed_site()
{
	local s=$1 n ns

	n=$(n_of "$s")
	for ns in h r g w; do
		ip netns add $P-$ns$s && ip -n $P-$ns$s link set lo up || return
	done
	for ns in r w; do
		in_ns $ns$s sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 || return
	done
	ip -n $P-h$s link add eth0 address "$(mac "$s" 1)" type veth peer name hr address "$(mac "$(other "$s")" 1)" netns $P-r$s &&
	ip -n $P-r$s link add wr address "$(mac "$s" 7)" type veth peer name lan0 netns $P-g$s &&
	ip -n $P-g$s link add wan0 type veth peer name lw address "$(mac "$s" 8)" netns $P-w$s &&
	ip -n $P-w$s link add ww address "$(mac "$s" 9)" type veth peer name "$s" netns $P-wan &&
	ip -n $P-g$s link add br0 address "$(mac "$s" 2)" type bridge stp_state 0 mcast_snooping 0 &&
	ip -n $P-g$s link set lan0 master br0 && ip -n $P-g$s link set wan0 master br0 &&
	link_up h$s eth0 && link_up g$s lan0 && link_up g$s wan0 && link_up g$s br0 && link_up wan "$s" &&
	net h$s eth0 10.77.$n fd77:$n 1 && via h$s default default 10.77.$n.9 fd77:$n::9 &&
	net g$s br0 10.78.$n fd78:$n 2 && via g$s default default 10.78.$n.3 fd78:$n::3 &&
	router_up "$s" && wan_router_up "$s"
}

routed_up()
{
	[ "$(id -u)" = 0 ] || die "needs root: network namespaces and XDP"
	ip netns add $P-wan && ip -n $P-wan link set lo up && routed_site a && routed_site b ||
		die "cannot make the network namespaces"
	await 30 carrier || die "the bridges do not forward"
	mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
}

carried() # NAME FROM ARGUMENT...: content right, answered by the appliance near the requester
{
	next_qpns
	transfer "$@" --mtu 4096 && intact "$1" &&
	jq_true "$2" qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' --argjson q $((${qpn[$2]}))
}

reads() # NAME FROM: content right, through lanes
{
	next_qpns
	transfer "$1" "$2" --op read --count 200 --mtu 4096 && intact "$1" &&
	jq_true "$2" qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[$2]}))
}

held_at() # SITE
{
	jq_true "$1" qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[$1]}))
}

# Another machine of the pair takes charge: what the router sends bears another MAC.
takes_charge() # NUMBER
{
	ip -n $P-ra link set vr address "$(mac a "$1")" && router_knows a # the kernel has forgotten them
}

# Another router, with another MAC, takes the place of that of site b.
replaced() # NUMBER
{
	local new

	new=$(mac b "$1")
	ip -n $P-rb link set vr address "$new" && ip -n $P-rb link set wr address "$new" && router_knows b &&
	knows wb lw 10.78.2.1 "$new" && knows wb lw fd78:2::1 "$new"
}

# The router at the WAN of site a, too.
wan_replaced() # NUMBER
{
	local new f

	new=$(mac a "$1")
	ip -n $P-wa link set lw address "$new" && knows wa lw 10.78.1.1 "$(mac a 7)" && knows wa lw fd78:1::1 "$(mac a 7)" &&
	for f in 10.78.1.3 fd78:1::3; do
		knows ra vr $f "$new" && knows ga br0 $f "$new" || return
	done
}

amid() # NAME FROM OP COMMAND...: a stream of a host that tries seven times goes on over it, and nothing of it is wrong
{
	local name=$1 from=$2 op=$3 status=0

	shift 3
	next_qpns
	transfer_begin "$name" "$from" --op "$op" --mtu 4096 --timeout-exp 16 --retry 7 --size 8K --rate-mbps 10 --seconds 600
	await 60 held_at "$from" && more "$name-req" 100 && "$@" && more "$name-req" 200 || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] && [ $status = 0 ]
}

doctor_says() # SITE PATTERN; doctor pings from the machine of the appliance
{
	in_ns "g$1" "$B/longhaul" -s "$RUN/gw-$1.sock" doctor >"$LAB/doctor"
	grep -qE "$2" "$LAB/doctor"
}

narrow_router()
{
	local status=0

	next_qpns
	transfer_begin narrow a --op write --mtu 4096 --rate-mbps 50 --timeout-exp 16 --retry 255 --seconds 600
	await 60 held_at a || status=1
	ip -n $P-rb link set hr mtu 1500
	await 60 doctor_says b 'packets of more than 1(49.|500) bytes do not reach host 10.77.2.1, and hosts send 4156' &&
	grep -q 'to 4188, or lower the path MTU of the hosts to 1024' "$LAB/doctor" || { status=1; cat "$LAB/doctor"; }
	ip -n $P-rb link set hr mtu $LAB_MTU
	enough narrow-req
	transfer_end narrow && intact narrow && [ $status = 0 ]
}

routed_up
wan_start --delay-ms 10 --rate-mbps 800 --loss 0.001
pair_start
it "the appliances find each other over two routers" peers_up
it "WRITE from a" carried write-a a --op write --count 400
it "SEND from b" carried send-b b --op send --count 400
it "READ from a" reads read-a a
it "the router of site a fails over amid WRITEs from there" amid vrrp-write a write takes_charge 4
it "and back amid READs" amid vrrp-read a read takes_charge 6
it "and once more amid WRITEs to there" amid vrrp-far b write takes_charge 4
it "the router of site b is replaced amid WRITEs from there" amid new-write b write replaced 3
it "and amid WRITEs to there" amid new-far a write replaced 7
it "and amid READs from there" amid new-read b read replaced 3
it "the router at the WAN of site a is replaced amid WRITEs from there" amid wan-write a write wan_replaced c
it "and amid READs from there" amid wan-read a read wan_replaced 8
it "a router behind an appliance has a small MTU: doctor says which length passes" narrow_router
FAMILY=6
it "IPv6: WRITE from b" carried write6-b b --op write --count 400
it "IPv6: the router of site a fails over amid SENDs" amid vrrp6 a send takes_charge 6
it "IPv6: the router of site b is replaced amid SENDs" amid new6 b send replaced 7
FAMILY=4
it "everything stops in order" pair_stop
exit $((tests_failed > 0))

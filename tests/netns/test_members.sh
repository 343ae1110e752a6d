#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# CONV-10: several ports per side. At site a two links to the WAN, each with a bridge of its own, are two routes of the
# router of the site; each direction of a connection takes that which a router's hash selects. At site b two switches
# stand between the host, which uses one of its two ports at a time, and two LAN ports.
#
#	             lan0 br0 wan0 --- wa === wan === \               / --- lan0
#	ha --- ra ---      ga                          wb --- wan0 gb        |- sa: tor0 tor1 --- hb, e0 or e1
#	             lan1 br1 wan1 --- wc === wn  === /               \ --- lan1
#
# The peer's session of a has an address of its own, which both links lead to.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh
. tests/netns/members.sh

# As in lib.sh, but the sites are routed.
addr() # SITE, 1 host or 2 appliance
{
	case $1$2 in
	a1) echo 10.77.1.1 ;;
	a2) echo 10.80.1.1 ;;
	*) echo 10.78.2.$2 ;;
	esac
}

member_mac() # NUMBER: of a machine that lib.sh does not know
{
	echo "02:4c:48:00:0c:0$1"
}

namespace() # NAME...
{
	local ns

	for ns in "$@"; do
		ip netns add $P-$ns && ip -n $P-$ns link set lo up &&
		in_ns $ns sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1 \
			net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 || return
	done
}

make_bridge() # NAMESPACE NAME MAC INTERFACE...
{
	local ns=$1 br=$2 i

	ip -n $P-$ns link add "$br" address "$3" type bridge stp_state 0 mcast_snooping 0 || return
	shift 3
	for i in "$@"; do
		ip -n $P-$ns link set "$i" master "$br" && link_up $ns "$i" || return
	done
	link_up $ns "$br"
}

net() # NAMESPACE INTERFACE ADDRESS
{
	link_up "$1" "$2" && ip -n $P-$1 addr add "$3/24" dev "$2"
}

route() # NAMESPACE PREFIX NEXT...: over one, or over several
{
	local ns=$1 to=$2 hops= next

	shift 2
	for next in "$@"; do
		hops+=" nexthop via $next"
	done
	# shellcheck disable=SC2086
	ip -n $P-$ns route replace "$to" $hops
}

# The routers have found out which links there are: 0, 1 or both.
routes()
{
	local lan=() wan=()

	[[ $* != *0* ]] || { lan+=(10.78.1.3) wan+=(10.79.0.1); }
	[[ $* != *1* ]] || { lan+=(10.78.3.3) wan+=(10.79.1.1); }
	route ra default "${lan[@]}" && route ga default "${lan[@]}" && route wb 10.77.1.0/24 "${wan[@]}" &&
	route wb 10.80.1.0/24 "${wan[@]}"
}

site_a_up()
{
	ip -n $P-ha link add eth0 address "$(mac a 1)" type veth peer name hr address "$(mac b 1)" netns $P-ra &&
	ip -n $P-ra link add wr0 type veth peer name lan0 netns $P-ga && ip -n $P-ra link add wr1 type veth peer name lan1 netns $P-ga &&
	ip -n $P-ga link add wan0 type veth peer name lw netns $P-wa && ip -n $P-ga link add wan1 type veth peer name lw netns $P-wc &&
	ip -n $P-wa link add ww type veth peer name a netns $P-wan && ip -n $P-wc link add ww type veth peer name a netns $P-wn &&
	make_bridge ga br0 "$(member_mac 1)" lan0 wan0 && make_bridge ga br1 "$(member_mac 2)" lan1 wan1 &&
	net ha eth0 10.77.1.1 && net ra hr 10.77.1.9 && net ra wr0 10.78.1.1 && net ra wr1 10.78.3.1 &&
	net ga br0 10.78.1.2 && net ga br1 10.78.3.2 && ip -n $P-ga addr add 10.80.1.1/32 dev lo &&
	net wa lw 10.78.1.3 && net wa ww 10.79.0.1 && net wc lw 10.78.3.3 && net wc ww 10.79.1.1 &&
	route wa default 10.79.0.2 && route wc default 10.79.1.2 && route wa 10.77.1.0/24 10.78.1.1 && route wc 10.77.1.0/24 10.78.3.1 &&
	route wa 10.80.1.0/24 10.78.1.2 && route wc 10.80.1.0/24 10.78.3.2 && link_up wan a && link_up wn a
}

site_b_up()
{
	local i

	ip -n $P-wb link add w0 type veth peer name b netns $P-wan && ip -n $P-wb link add w1 type veth peer name b netns $P-wn &&
	ip -n $P-wb link add lw address "$(mac a 1)" type veth peer name wan0 netns $P-gb || return
	for i in 0 1; do
		ip -n $P-gb link add lan$i type veth peer name g$i netns $P-sa && ip -n $P-hb link add e$i type veth peer name h$i netns $P-sa &&
		make_bridge sa tor$i "$(member_mac $((3 + i)))" g$i h$i && link_up hb e$i && ip -n $P-hb link set e$i arp off || return
	done
	make_bridge gb br0 "$(mac b 2)" lan0 lan1 wan0 && make_bridge hb eth0 "$(mac b 1)" e0 && net hb eth0 10.78.2.1 && net gb br0 10.78.2.2 &&
	net wb lw 10.78.2.3 && net wb w0 10.79.0.2 && net wb w1 10.79.1.2 && link_up wan b && link_up wn b &&
	route hb default 10.78.2.3 && route gb default 10.78.2.3
}

all_forward()
{
	[ "$(bridge_ports ga)" = 4 ] && [ "$(bridge_ports gb)" = 3 ] && [ "$(bridge_ports sa)" = 4 ]
}

bridge_ports() # NAMESPACE: how many forward
{
	bridge -n $P-$1 link show | grep -c 'state forwarding'
}

members_up()
{
	[ "$(id -u)" = 0 ] || die "needs root: network namespaces and XDP"
	namespace wan wn ha ra ga wa wc wb gb sa hb && site_a_up && site_b_up && routes 0 1 || die "cannot make the network namespaces"
	await 30 all_forward || die "the bridges do not forward"
	mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
}

members_config()
{
	LAB_LAN='lan0 lan1' LAB_WAN='wan0 wan1' gateway_config a -g 'listen = 10.80.1.1' -r 'prefetch = on'
	LAB_LAN='lan0, lan1' gateway_config b -r 'prefetch = on'
}

spread() # NAME FROM
{
	next_qpns
	transfer_until "answered $2" "$@" --op write --size 16K --rate-mbps 100 --mtu 4096 && intact "$1"
}

# Connections until each of the four ports of a has received and sent: the hashes of the routers choose.
all_carry()
{
	local i

	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		spread "spread-a$i" a && spread "spread-b$i" b || return
		jq_true a port 'length == 4 and all(."rx-packets" > 20 and ."tx-packets" > 20)' && return
	done
	cli a port show
	return 1
}

# Link N to the WAN is cut at the appliance, the routers find out, and say it is back.
cut()
{
	local w=wa

	[ "$1" = 0 ] || w="wc"
	ip -n $P-$w link set lw down && routes $((1 - $1)) && await 30 port_is a "wan$1" down && await 30 alarmed a member-down
}

back()
{
	local w=wa

	[ "$1" = 0 ] || w="wc"
	# what the kernel forgot with the interface
	ip -n $P-$w link set lw up && route $w 10.77.1.0/24 "10.78.$((1 + 2 * $1)).1" && route $w 10.80.1.0/24 "10.78.$((1 + 2 * $1)).2" &&
	await 30 port_is a "wan$1" up && routes 0 1
}

cut_and_back()
{
	cut "$1" && sleep 0.3 && back "$1"
}

both_cut() # for a second
{
	ip -n $P-wa link set lw down && ip -n $P-wc link set lw down && sleep 1 && back 0 && back 1
}

# The routers change their mind with no cut: all goes over link N.
rerouted()
{
	routes "$1"
}

# The host at b uses its other port, and says something there, as bonds do; else no bridge would know.
moves() # NUMBER
{
	ip -n $P-hb link set e$((1 - $1)) nomaster && ip -n $P-hb link set e$1 master eth0 &&
	in_ns hb bash -c 'echo >/dev/udp/10.78.2.3/9'
}

# The appliance's port to the switch that the host uses goes down; so the host, of which that switch is the only way,
# uses the other one.
tor_cut() # NUMBER of the switch
{
	ip -n $P-sa link set g$1 down && moves $((1 - $1)) && await 30 alarmed b member-down
}

tor_back()
{
	ip -n $P-sa link set g$1 up && await 30 port_is b lan$1 up
}

restarted() # SITE SIGNAL
{
	next_daemon "$1" "$2"
}

# One port is down when the next process starts: that goes on without it, and a third one, when it is up again, with it.
without() # SITE PORT
{
	ip -n $P-g$1 link set "$2" down && next_daemon "$1" USR2 && log_has "$1" "$2 is missing or down" && port_is "$1" "$2" down &&
	ip -n $P-g$1 link set "$2" up && await 30 ended "${pid[gw-$1]}" && log_has "$1" "interface $2 is up again" &&
	! reap "gw-$1" && gateway_start "$1" && going_on "$1" && port_is "$1" "$2" up
}

members_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 800 --loss 0.001
spawn wan2 wn "${before_others[@]}" -10 "$LAB_BIN/../longhaul-wanem" --a a --b b --delay-ms 14 --rate-mbps 800 --loss 0.001
await 30 sockets_at_least wn 2 || die "the second WAN emulator does not start: $(cat "$LAB/wan2.err")"
members_config
gateway_start a
gateway_start b
it "the appliances find each other" await 30 peers_up
it "all ports of a carry data, whichever the routers choose" all_carry
it "READ from a" reads read-a a
it "a link to the WAN is cut amid WRITEs from a" amid cut-write a write cut 1
it "and comes back amid WRITEs to a" amid back-write b write back 1
it "the other one is cut and comes back amid READs from a" amid cut-read a read cut_and_back 0
it "all goes over one link amid WRITEs from a" amid re-write a write rerouted 0
it "and over the other amid WRITEs to a" amid re-far b write rerouted 1
routes 0 1
it "both are cut for a second amid WRITEs from a" amid both-write a write both_cut
it "the host at b moves to its other switch amid WRITEs to there" amid move-write a write moves 1
it "and back amid WRITEs from there" amid move-back b write moves 0
it "a LAN port of b loses its switch amid WRITEs to there" amid tor-write a write tor_cut 0
it "and gets it back" tor_back 0
it "and the other one amid READs from there" amid tor-read b read tor_cut 1
tor_back 1
it "the process at a is killed amid WRITEs from there" amid kill-write a write restarted a KILL
it "the process at b hands over amid WRITEs to there" amid hand-write a write restarted b USR2
it "a port is down at a start, and comes back, amid WRITEs" amid without-write a write without a wan1
it "everything stops in order" pair_stop
exit $((tests_failed > 0))

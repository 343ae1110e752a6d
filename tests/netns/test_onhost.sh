#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# NTT-10: longhaul on the host itself. An application there that has an interface of its own behind a veth is accelerated
# by the longhauld of its own host; an application at the host's own address is not, and works.
#
#	P-ha: eth0 -- cha              P-ga, the host
#	P-ca: eth0 -- cca  ctr0  up0 -- lan0  br0  wan0 -- a P-wan b -- wan0 P-gb: br0 lan0 -- eth0 P-hb
#
# At site a containers (ha, ca) are joined by a bridge ctr0, as container engines make it, and one veth joins that to the
# LAN port: containers come and go, and the port stays. At site b the veth of the one container (hb) is the LAN port. The
# LAN port may as well be the tap of a virtual machine: tests/vm.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

container_addr() # of P-ca
{
	[ "$FAMILY" = 4 ] && echo 10.77.1.5 || echo fd77::1:5
}

container_up() # NAME MAC-OF: behind ctr0
{
	ip netns add $P-$1 && ip -n $P-$1 link set lo up &&
	ip -n $P-ga link add c$1 type veth peer name eth0 address "$2" netns $P-$1 &&
	ip -n $P-ga link set c$1 master ctr0 && link_up ga c$1 && link_up $1 eth0
}

first_up()
{
	container_up ha "$(mac a 1)" && ip -n $P-ha addr add "$(addr a 1 4)/16" dev eth0 &&
	ip -n $P-ha addr add "$(addr a 1 6)/64" dev eth0 nodad
}

containers_up()
{
	ip -n $P-ga link del lan0 && ip netns del $P-ha &&
	ip -n $P-ga link add ctr0 type bridge stp_state 0 mcast_snooping 0 &&
	ip -n $P-ga link add lan0 type veth peer name up0 &&
	ip -n $P-ga link set up0 master ctr0 && ip -n $P-ga link set lan0 master br0 &&
	link_up ga ctr0 && link_up ga up0 && link_up ga lan0 && first_up &&
	container_up ca "$(mac a 5)" && ip -n $P-ca addr add 10.77.1.5/16 dev eth0 &&
	ip -n $P-ca addr add fd77::1:5/64 dev eth0 nodad && neighbours a
}

all_forward() # the ports of both bridges
{
	[ "$(bridge -n $P-ga link show | grep -c 'state forwarding')" = 5 ]
}

# An endpoint at another address than those of lib.sh, to the host of site b or to PEER. Sets nothing.
endpoint() # NAME NAMESPACE INTERFACE ADDRESS PEER PEER-MAC QPN-OF ARGUMENT...
{
	local name=$1 ns=$2 dev=$3 from=$4 to=$5 mac=$6 s=$7 o

	o=$(other "$s")
	shift 7
	spawn "$name" "$ns" "${before_others[@]}" 0 "$LAB_BIN/endpoint" --if "$dev" --ip "$from" --peer-ip "$to" --peer-mac "$mac" \
		--qpn ${qpn[$s]} --peer-qpn ${qpn[$o]} --psn ${psn[$s]} --peer-psn ${psn[$o]} --retry 250 "$@"
}

# another_begin NAME NAMESPACE INTERFACE ADDRESS MAC ARGUMENT...: from there to the host of site b
another_begin()
{
	local name=$1 ns=$2 dev=$3 from=$4 mac=$5 n

	shift 5
	n=$(packet_sockets hb)
	host_start "$name-resp" b --listen --peer-ip "$from" --peer-mac "$mac" "$@"
	await 30 socket_open "$name-resp" b $((n + 1))
	endpoint "$name-req" "$ns" "$dev" "$from" "$(addr b 1)" "$(mac b 1)" a "$@"
}

second_begin() # NAME ARGUMENT...
{
	local name=$1

	shift
	another_begin "$name" ca eth0 "$(container_addr)" "$(mac a 5)" "$@"
}

own_begin() # NAME ARGUMENT...: an application at the host's own address
{
	local name=$1

	shift
	another_begin "$name" ga br0 "$(addr a 2)" "$(mac a 2)" "$@"
}

held() # QPN
{
	jq_true a qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' --argjson q $(($1))
}

taken_never() # QPN
{
	jq_true a qp 'all(.lqpn != $q)' --argjson q $(($1))
}

carried() # NAME FROM ARGUMENT...: content right, answered by the host near the requester
{
	next_qpns
	transfer "$@" --mtu 4096 && intact "$1" &&
	jq_true "$2" qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' --argjson q $((${qpn[$2]}))
}

read_from_far()
{
	next_qpns
	transfer "$1" a --op read --count 200 --mtu 4096 && intact "$1" &&
	jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]}))
}

# Two containers and the host itself at the same time
three_at_once()
{
	local first second own status=0

	next_qpns
	first=${qpn[a]}
	transfer_begin first a --op write --count 800
	next_qpns
	second=${qpn[a]}
	second_begin second --op write --count 800
	next_qpns
	own=${qpn[a]}
	own_begin own --op write --count 100
	for n in first second own; do
		transfer_end $n && intact $n || status=1
	done
	held "$first" && held "$second" && taken_never "$own" && [ $status = 0 ]
}

# Between two containers, and between a container and the host that it runs on: no link is crossed, nothing is taken
local_transfer() # NAME RESPONDER-NAMESPACE INTERFACE ADDRESS MAC
{
	local name=$1 ns=$2 dev=$3 to=$4 mac=$5 taken

	next_qpns
	taken=$(cli a -j port | jq 'map(.taken) | add')
	endpoint "$name-resp" "$ns" "$dev" "$to" "$(addr a 1)" "$(mac a 1)" b --listen --op write --count 200
	await 30 sockets_at_least "$ns" 1
	endpoint "$name-req" ha eth0 "$(addr a 1)" "$to" "$mac" a --op write --count 200
	transfer_end "$name" && intact "$name" && taken_never ${qpn[a]} && [ "$(cli a -j port | jq 'map(.taken) | add')" = "$taken" ]
}

hint_of() # ADDRESS: status names it
{
	cli a status | grep -q "hint: RDMA to and from addresses of this host.*$1 (rule hosts)"
}

# The container ends amid a transfer, its interface with it. The next one of its name and address is accelerated.
container_again()
{
	local daemon=${pid[gw-a]}

	next_qpns
	transfer_begin gone a --op write --seconds 600
	await 60 held ${qpn[a]} || return
	signal gone-req KILL
	ip netns del $P-ha
	{ reap gone-req; } 2>/dev/null
	await 30 nobody cha
	first_up && neighbours a && await 30 all_forward || return
	signal gone-resp TERM
	reap gone-resp
	carried next a --op write --count 400 && [ "${pid[gw-a]}" = "$daemon" ] && running gw-a && jq_true a port 'all(.state == "up")'
}

nobody() # INTERFACE of the host
{
	! ip -n $P-ga link show "$1"
}

# The emulated link is 20 ms away: what a container gets bare, and with longhauld
faster()
{
	[ "$(jq -n --argjson a "$(delivered_rate accelerated)" --argjson b "$(delivered_rate bare)" '$a > 3 * $b')" = true ] ||
		{ echo "bare $(delivered_rate bare) MB/s, accelerated $(delivered_rate accelerated)" >&2; false; }
}

lab_up
containers_up || die "cannot make the containers"
await 30 all_forward || die "the bridges do not forward"
wan_start --delay-ms 10 --rate-mbps 1200
it "bare" eval 'transfer bare a --op write --count 60 --size 16384 --depth 4 --mtu 4096 && intact bare'
gateway_config a -l "10.77.1.0/24, fd77::1:0/112"
gateway_config b -w "10.77.1.0/24, fd77::1:0/112"
for s in a b; do
	gateway_start $s
done
await 30 peers_up || die "the peers do not find each other"

it "WRITE of a container" carried write a --op write --count 400
it "SEND to a container, from one whose veth is the port" carried send b --op send --count 400
it "READ of a container" read_from_far read
it "faster than bare" eval 'carried accelerated a --op write --count 400 --size 16384 --depth 4 && faster'
it "two containers and the host itself at once" three_at_once
it "status names the host's own address" hint_of 10.77.1.2
it "from one container to another one" local_transfer among ca eth0 "$(container_addr)" "$(mac a 5)"
it "from a container to its own host" local_transfer inward ga br0 "$(addr a 2)" "$(mac a 2)"
it "a container ends amid a transfer, and the next one comes" container_again
FAMILY=6
it "IPv6: WRITE of a container" carried write6 a --op write --count 400
it "IPv6: two containers and the host itself" three_at_once
FAMILY=4
it "nothing is left in custody" await 60 settled
it "everything stops in order" pair_stop
exit $((tests_failed > 0))

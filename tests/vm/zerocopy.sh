#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The driver reads and writes longhauld's memory itself (mode = zero-copy): the appliance at a runs in a guest with a
# kernel whose virtio-net can do that. The hosts and the appliance at b are in network namespaces.
#
#	ha eth0 -- h0 P-wan: bridge tor, t0 == lan0 - br0 - wan0 == a P-wan b -- wan0 P-gb: br0 lan0 -- eth0 hb
#
# A part of `make check-vm`. A line for each step, and at the end their sum:
#
#	vm: test=zerocopy mode=zero-copy step=write-a seconds=3 ok
#	vm: test=zerocopy steps=<n> failed=<n> seconds=<n> mode=zerocopy ok
#
# Exit status 0 when none failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh zerocopy) || { echo "vm: cannot run: $reason" >&2; exit 1; }
INITRD=initrd-zerocopy
KERNEL=kernel-new
. tests/vm/lib.sh
. tests/netns/members.sh
. tests/vm/edge.sh

MTU=2200 # path MTU 2048: this driver's zero copy takes frames of one buffer only
PATH_MTU=2048
INSIDE=a
NIC=,disable-legacy=on,iommu_platform=on # its memory is the driver's to map
about="zerocopy mode=zero-copy"

site_a_up()
{
	local i

	ip netns add $P-ha && ip -n $P-ha link add eth0 address "$(mac a 1)" type veth peer name h0 netns $P-wan &&
	ip -n $P-wan link add tor type bridge stp_state 0 mcast_snooping 0 forward_delay 0 || return
	for i in t0 a; do
		ip -n $P-wan tuntap add dev $i mode tap && link_up wan $i || return
	done
	ip -n $P-wan link set h0 master tor && ip -n $P-wan link set t0 master tor && link_up wan h0 && link_up wan tor &&
	link_up ha eth0 && ip -n $P-ha addr add "$(addr a 1)/16" dev eth0
}

guest_boot() # SITE
{
	edge_boot "$1" "$(mac "$1" 2)" "lh.mtu=$MTU lh.ports=lan0,wan0" t0 a
}

bridge_up()
{
	inside a "ip link add br0 address $(mac a 2) type bridge stp_state 0 mcast_snooping 0 forward_delay 0;" \
		"for i in lan0 wan0; do ip link set \$i up master br0; done; ip link set br0 up; ip addr add $(addr a 2)/16 dev br0"
}

start() # XDP-MODE
{
	gateway_config a -g "mode = $1" -g 'wan-rate = 40M' -r 'prefetch = on'
	put a "$LAB/gw-a.conf" && start_inside a && await 60 peers_up
}

memory_is() # copy or zero-copy
{
	cli a port show -d
	keep_logs
	! grep "zero-copy failed" "$LAB/gw-a.err" &&
	jq_true a port 'all(.driver == "virtio_net" and .xdp == "native" and .memory == $m)' --arg m "$1"
}

# Nothing was lost between the driver and longhauld, and no buffer was given back that was not given.
clean()
{
	jq_true a port 'all(.dropped == 0 and ."rx-packets" > 1000 and ."tx-packets" > 1000)' || { cli a -j port show; false; }
}

next_one() # SIGNAL: ends the daemon, and the next one goes on
{
	stop_inside a "$1" && start_inside a && await 60 peers_up
}

transfers()
{
	step write-a carried write-a a --op write --count 200
	step write-b carried write-b b --op write --count 200
	step read-a reads read-a a
	step read-b reads read-b b
}

[ "$(id -u)" = 0 ] || die "needs root: network namespaces and taps"
ip netns add $P-wan && ip -n $P-wan link set lo up && site_a_up && site_b_up || die "cannot make the network namespaces"
mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
guest_up a
bridge_up || die "no bridge in the guest"
wan_start --delay-ms 10 --rate-mbps 48
gateway_config b -g 'wan-rate = 40M' -r 'prefetch = on'
gateway_start b
put a "$LAB/key" || die "no key in the guest"
step start start zero-copy
step attached memory_is zero-copy
transfers
step clean clean
step kill-write amid kill-write a write next_one KILL
step kill-read amid kill-read a read next_one KILL
step hand-over amid hand-over b write next_one USR2
step attached memory_is zero-copy
transfers
step stop stop_inside a
step start start auto
step attached memory_is copy
step write-a carried write-a a --op write --count 200
step quiet no_alarm
step stop stop_inside a
gateway_stop b || die "the appliance at b did not end well"
echo "vm: test=zerocopy steps=$steps failed=$failed seconds=$SECONDS mode=zerocopy $([ $failed = 0 ] && echo ok || echo FAILED)"
[ $failed = 0 ]

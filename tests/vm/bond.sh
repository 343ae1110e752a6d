#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# CONV-10 on a kernel that has bonding: the appliance at a runs in a guest with Debian's kernel. Its LAN side is a bond of
# two virtio-net interfaces, which are the members of `lan =`; the bond is in the guest's bridge, with the WAN interface.
# The hosts and the appliance at b are in network namespaces, as is the switch that both members lead to.
#
#	ha eth0 -- h0 P-wan: bridge tor, t0 == lan0 \ guest: bond0 - br0 - wan0 == a P-wan b -- wan0 P-gb: br0 lan0 -- eth0 hb
#	                                 t1 == lan1 /
#
# With 802.3ad the switch is a second guest, s, that has a bond as well: t0 and t1 lead to u0 and u1, and its third
# interface to the bridge tor.
#
# A part of `make check-vm`. A line for each step, and at the end their sum:
#
#	vm: test=bond mode=active-backup xdp=native step=write-a seconds=3 ok
#	vm: test=bond steps=<n> failed=<n> seconds=<n> ok
#
# Exit status 0 when none failed. `tests/vm/bond.sh REGEX` takes those passes whose "mode=M" matches.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh gateway) || { echo "vm: cannot run: $reason" >&2; exit 1; }
INITRD=initrd-gateway
. tests/vm/lib.sh
. tests/netns/members.sh
. tests/vm/edge.sh

WANTED=${1:-}
MTU=2200 # path MTU 2048, the largest that Linux 6.1 takes
PATH_MTU=2048
INSIDE=a
mode=active-backup xdp=

declare -A address=([a]=$(addr a 2) [s]=10.77.1.9) own_mac=([a]=$(mac a 2) [s]=02:4c:48:00:0c:02)

site_a_up()
{
	local i

	ip netns add $P-ha && ip -n $P-ha link add eth0 address "$(mac a 1)" type veth peer name h0 netns $P-wan &&
	ip -n $P-wan link add tor type bridge stp_state 0 mcast_snooping 0 forward_delay 0 || return
	for i in t0 t1 u0 u1 u2 a; do
		ip -n $P-wan tuntap add dev $i mode tap && link_up wan $i || return
	done
	ip -n $P-wan link set h0 master tor || return
	link_up wan h0 && link_up wan tor && link_up ha eth0 && ip -n $P-ha addr add "$(addr a 1)/16" dev eth0
}

# Both taps are ports of the switch.
to_switch()
{
	ip -n $P-wan link set t0 master tor && ip -n $P-wan link set t1 master tor
}

# Each is one end of a cable to the guest that is the switch: all crosses, LACP too.
to_guest()
{
	local i p

	ip -n $P-wan link set u2 master tor || return
	for i in 0 1; do
		ip -n $P-wan link set t$i nomaster || return
		for p in "t u" "u t"; do
			tc -n $P-wan qdisc add dev "${p% *}$i" clsact &&
			tc -n $P-wan filter add dev "${p% *}$i" ingress pref 1 protocol all u32 match u32 0 0 \
				action mirred egress redirect dev "${p#* }$i" || return
		done
	done
}

guest_boot() # SITE TAP...: a, or s, the switch
{
	local s=$1 append

	shift
	append="lh.mtu=$MTU lh.addr4=${address[$s]}/16 lh.mac=${own_mac[$s]} lh.bond=$mode,miimon,100"
	[ "$mode" != 802.3ad ] || append+=,lacp_rate,fast,xmit_hash_policy,layer3+4
	edge_boot "$s" "${own_mac[$s]}" "$append" "$@"
}

link() # MEMBER on or off: the cable to the switch, seen from both its ends
{
	echo "set_link t$1 $2" >"$LAB/monitor-a.in"
	if [ "$mode" = 802.3ad ]; then
		echo "set_link u$1 $2" >"$LAB/monitor-s.in"
	else
		ip -n $P-wan link set "t$1" carrier "$2"
	fi
}

active_slave()
{
	inside a 'sed s/^lan// /sys/class/net/bond0/bonding/active_slave'
}

serves_alone() # MEMBER
{
	if [ "$mode" = 802.3ad ]; then
		[ "$(inside a 'cat /sys/class/net/bond0/bonding/ad_num_ports')" = 1 ]
	else
		[ "$(active_slave)" = "$1" ]
	fi
}

sent_by() # MEMBER
{
	cli a -j port show | jq ".[] | select(.name == \"lan$1\").\"tx-packets\""
}

# The bond and the daemon leave the slave without a carrier
cut() # MEMBER
{
	link "$1" off && await 60 serves_alone $((1 - $1)) && await 60 port_is a "lan$1" down && await 60 alarmed a member-down
}

# ... and the slave is there again, as the backup or as one of two
back() # MEMBER
{
	link "$1" on || return
	if [ "$mode" = 802.3ad ]; then
		await 60 both_up && await 60 port_is a "lan$1" up
	else
		await 60 port_is a "lan$1" backup && serves_alone $((1 - $1))
	fi
}

# Nothing but what comes from the bond's active slave counts on the other end: the switch would learn the wrong port
only_active() # COMMAND...
{
	local active before

	active=$(active_slave)
	before=$(sent_by $((1 - active)))
	"$@" || return
	echo "lan$active is active and has sent $(sent_by "$active") frames in all, the other $before before and $(sent_by $((1 - active))) now"
	[ "$(sent_by $((1 - active)))" = "$before" ] && [ "$(sent_by "$active")" -gt 100 ]
}

well_configured()
{
	inside a "longhauld --check-config -c $LAB/gw-a.conf"
}

attached_as() # native or generic
{
	local states='["backup","up","up"]'

	[ "$mode" != 802.3ad ] || states='["up","up","up"]'
	cli a port show
	jq_true a port '(map(.state) | sort) == $s and all(.driver == "virtio_net" and .xdp == $x)' --arg x "$1" --argjson s "$states"
}

both_up() # slaves and, with 802.3ad, in one aggregate
{
	[ "$mode" != 802.3ad ] || inside a 'grep -h . /sys/class/net/bond0/bonding/ad_num_ports /sys/class/net/lan?/bonding_slave/state' |
		tr '\n' ' ' | grep -qx '2 active active '
}

bonded() # the bond is in the bridge and has both slaves, with one address
{
	await 60 both_up
	inside a 'cat /proc/net/bonding/bond0; bridge link; /bin/ip -br link; cat /sys/class/net/bond0/bonding/ad_num_ports'
	inside a 'grep -c "^Slave Interface" /proc/net/bonding/bond0' | grep -qx 2 &&
	inside a 'bridge link | grep -c "bond0.*state forwarding"' | grep -qx 1 && both_up
}

# Several connections, the hash of some of which selects lan0, of others lan1. Before each the host at a sends something
# that the kernel's bridge sees, and is silent then until the daemon asks the bridge where that host is.
spread()
{
	local i

	for i in 1 2 3 4; do
		in_ns ha bash -c "echo >/dev/udp/$(addr b 2)/9" && sleep 1.2 &&
		carried "spread-$i" b --op write --count 100 || return
	done
}

through() # native or generic: the appliances as they are now
{
	local active=1 ops=("write a" "write b" "read a" "read b") op

	[ "$1" = native ] || ops=("write a")
	step check-config well_configured
	step session peers_up
	step attached attached_as "$1"
	step write-a carried write-a a --op write --count 100
	if [ "$mode" = active-backup ]; then
		step write-b only_active spread
	else
		step write-b spread
	fi
	step read-a reads read-a a
	step read-b reads read-b b
	for op in "${ops[@]}"; do
		# with 802.3ad one after the other
		active=$((1 - active))
		[ "$mode" = 802.3ad ] || active=$(active_slave)
		step "cut-${op/ /-}" amid "cut-${op/ /-}" "${op#* }" "${op% *}" cut "$active"
		step "after-${op/ /-}" carried after b --op write --count 100
		step "back-${op/ /-}" amid "back-${op/ /-}" "${op#* }" "${op% *}" back "$active"
	done
	step quiet no_alarm
}

appliances() # mode = native or generic
{
	xdp=$1 about="bond mode=$mode xdp=$1"
	LAB_LAN='lan0 lan1' gateway_config a -g "mode = $xdp" -g 'wan-rate = 40M' -r 'prefetch = on'
	put a "$LAB/gw-a.conf" || die "no configuration in the guest"
	start_inside a || die "longhauld in the guest ended: $(keep_logs; cat "$LAB/gw-a.err")"
	await 60 peers_up
}

pass() # MODE XDP...
{
	local x

	mode=$1 xdp=none about="bond mode=$1 xdp=none"
	shift
	[[ "mode=$mode" =~ $WANTED ]] || return 0
	guest_up a t0 t1 a
	if [ "$mode" = 802.3ad ]; then
		guest_up s u0 u1 u2
		to_guest || die "no cables between the guests"
	else
		to_switch || die "no cables to the switch"
	fi
	wan_start --delay-ms 10 --rate-mbps 48
	gateway_config b -g 'wan-rate = 40M' -r 'prefetch = on'
	gateway_start b
	put a "$LAB/key" || die "no key in the guest"
	step bonded bonded
	for x in "$@"; do
		appliances "$x"
		through "$x"
		step stop stop_inside a
	done
	gateway_stop b || die "the appliance at b did not end well"
	wan_stop
	guest_down a
	[ "$mode" != 802.3ad ] || guest_down s
}

[ "$(id -u)" = 0 ] || die "needs root: network namespaces and taps"
ip netns add $P-wan && ip -n $P-wan link set lo up && site_a_up && site_b_up || die "cannot make the network namespaces"
mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
pass active-backup native
pass 802.3ad native
echo "vm: test=bond steps=$steps failed=$failed seconds=$SECONDS $([ $failed = 0 ] && echo ok || echo FAILED)"
[ $failed = 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A link that the kernel encrypts: both appliances run in guests with Debian's kernel, whose WAN port is a macsec device
# over the network card, or a veth to a namespace that routes into WireGuard (doc/topologies.md). The hosts are in network
# namespaces.
#
#	ha eth0 -- ha P-wan: bridge tora, la == lan0 \ guest a: br0 - WAN port - nic0 == a P-wan b == guest b, likewise
#
# Each way is also gone without encryption, `clear` and `routed`: what the capture of the link must find there and nowhere
# else, and the rate to compare with. The processor is emulated and has no instructions for AES: the cost is an upper bound.
#
# A part of `make check-vm`. A line for each step, one for each way with its rates, as shares of those without encryption,
# and the guests' processor time, as a multiple of that; and at the end the sum:
#
#	vm: test=encrypted form=macsec step=write-a seconds=3 ok
#	vm: test=encrypted form=macsec write-mb=4.8 of-clear=0.35 cpu=2.46 read-mb=5.0 of-clear=0.45 cpu=2.45
#	vm: test=encrypted steps=<n> failed=<n> seconds=<n> ok
#
# Exit status 0 when none failed. `tests/vm/encrypted.sh REGEX` takes those forms whose "form=F" matches.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh gateway) || { echo "vm: cannot run: $reason" >&2; exit 1; }
command -v tcpdump >/dev/null || { echo "vm: cannot run: no tcpdump here" >&2; exit 1; }
INITRD=initrd-gateway
. tests/vm/lib.sh
. tests/netns/members.sh
. tests/vm/edge.sh

WANTED=${1:-}
MTU=2200 # path MTU 2048, the largest that Linux 6.1 takes
PATH_MTU=2048
LONGEST=2108 # what hosts send with it: 20 + 8 + 12 + 16 of headers, 4 of ICRC
INSIDE="a b"
form=
about=
declare -A key rate

n_of() # SITE
{
	[ "$1" = a ] && echo 1 || echo 2
}

nic() # SITE: the address of its card
{
	echo "02:4c:48:00:0$1:11"
}

site_up()
{
	local s=$1 i

	ip netns add $P-h$s && ip -n $P-h$s link add eth0 address "$(mac "$s" 1)" type veth peer name h$s netns $P-wan &&
	ip -n $P-wan link add tor$s type bridge stp_state 0 mcast_snooping 0 forward_delay 0 || return
	for i in l$s $s; do
		ip -n $P-wan tuntap add dev $i mode tap && link_up wan $i || return
	done
	ip -n $P-wan link set h$s master tor$s && ip -n $P-wan link set l$s master tor$s && link_up wan h$s &&
	link_up wan tor$s && link_up h$s eth0 && ip -n $P-h$s addr add "$(addr "$s" 1)/16" dev eth0
}

guest_boot() # SITE
{
	edge_boot "$1" "$(mac "$1" 2)" "lh.mtu=$MTU lh.ports=lan0,nic0" "l$1" "$1"
}

## The recipes

card() # SITE BYTES: its MTU has room for so many beside what the appliance sends
{
	inside "$1" "ip link set lan0 up; ip link set nic0 up mtu $((MTU + $2))"
}

bridge_up() # SITE WAN-PORT PREFIX-LENGTH
{
	inside "$1" "ip link add br0 address $(mac "$1" 2) type bridge stp_state 0 mcast_snooping 0 forward_delay 0;" \
		"ip link set lan0 master br0; ip link set $2 up master br0; ip link set br0 up; ip addr add $(addr "$1" 2)/$3 dev br0"
}

clear_up() # SITE
{
	card "$1" 0 && bridge_up "$1" nic0 16
}

macsec_up() # SITE
{
	local s=$1 o

	o=$(other "$s")
	card "$s" 32 &&
	inside "$s" "ip link add link nic0 macsec0 mtu $MTU type macsec encrypt on &&" \
		"ip macsec add macsec0 tx sa 0 pn 1 on key 01 ${key[$s]} &&" \
		"ip macsec add macsec0 rx port 1 address $(nic "$o") &&" \
		"ip macsec add macsec0 rx port 1 address $(nic "$o") sa 0 pn 1 on key 01 ${key[$o]}" &&
	bridge_up "$s" macsec0 16
}

# The namespace that routes, with one port to the appliance
router_up() # SITE
{
	local s=$1 n

	n=$(n_of "$s")
	# the lab's hosts take the MAC of the far host for that of their router
	inside "$s" "ip netns add wg && ip link add wan0 mtu $MTU type veth peer name up0 mtu $MTU" \
		"address $(mac "$(other "$s")" 1) netns wg && ethtool -K wan0 tx off >/dev/null;" \
		"ip -n wg addr add 10.77.$n.9/24 dev up0; ip -n wg link set up0 up;" \
		"ip netns exec wg sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'" &&
	bridge_up "$s" wan0 24 && inside "$s" "ip route add default via 10.77.$n.9"
}

routed_up() # SITE
{
	card "$1" 0 && router_up "$1" && inside "$1" "ip link set nic0 netns wg;" \
		"ip -n wg addr add 10.79.0.$(n_of "$1")/24 dev nic0; ip -n wg link set nic0 up;" \
		"ip -n wg route add 10.77.$(n_of "$(other "$1")").0/24 via 10.79.0.$(n_of "$(other "$1")")"
}

# Its encrypted packets leave from the namespace in which the device was made, that of the card.
wireguard_up() # SITE
{
	local s=$1 o far

	o=$(other "$s")
	far=10.77.$(n_of "$o").0/24
	card "$s" 60 && router_up "$s" &&
	inside "$s" "ip addr add 10.79.0.$(n_of "$s")/24 dev nic0;" \
		"ip link add wg0 mtu $MTU type wireguard && ip link set wg0 netns wg &&" \
		"ip netns exec wg wg set wg0 private-key /tmp/private listen-port 51820" \
		"peer ${key[$o]} allowed-ips $far endpoint 10.79.0.$(n_of "$o"):51820 &&" \
		"ip -n wg link set wg0 up && ip -n wg route add $far dev wg0"
}

keys()
{
	local s

	for s in a b; do
		case $form in
		macsec) key[$s]=$(od -An -N 16 -tx1 /dev/urandom | tr -d ' \n') ;;
		wireguard) key[$s]=$(inside $s "umask 077; wg genkey >/tmp/private; wg pubkey </tmp/private" | tr -d '\r\n') ;;
		esac
	done
}

link_made() # both ends of the form, and the appliances reach each other
{
	keys && "${form}_up" a && "${form}_up" b && await 30 inside a "ping -c 1 -W 1 $(addr b 2)"
}

link_gone() # and the appliances, with what they leave to the next ones, whose ports are others
{
	local s

	for s in a b; do
		stop_inside $s KILL
		inside $s "rm -rf /sys/fs/bpf/lh $RUN/gw-$s.sock*"
		inside $s "ip -n wg link set nic0 netns 1; ip netns del wg; ip link del macsec0; ip link del wan0; ip link del br0;" \
			"ip addr flush dev nic0" >/dev/null
		await 30 inside $s "ip link show nic0"
	done
}

## What is on the link

capture()
{
	local i

	for i in a b; do
		spawn "capture-$i" wan tcpdump -Z root -U -s 300 -Q in -i $i -w "$LAB/$i.pcap"
		await 30 grep -q 'listening on' "$LAB/capture-$i.err" || return
	done
}

captured()
{
	local i

	for i in a b; do
		signal "capture-$i" INT && reap "capture-$i" || return
	done
}

frames() # FILTER: its frames
{
	tcpdump -nnr "$LAB/a.pcap" -e "$@" 2>/dev/null
	tcpdump -nnr "$LAB/b.pcap" -e "$@" 2>/dev/null
}

# How often the addresses of the two hosts, which each packet of theirs has one after the other, are to be read
readable()
{
	cat "$LAB"/[ab].pcap | perl -0777 -ne 'print scalar(() = /\x0a\x4d\x01\x01\x0a\x4d\x02\x01|\x0a\x4d\x02\x01\x0a\x4d\x01\x01/g)'
}

hidden()
{
	local outer="ether proto 0x88e5" n

	[ $form = macsec ] || outer="udp port 51820"
	n=$(frames "$outer" | wc -l)
	echo "$n encrypted frames, $(frames udp port 4791 | wc -l) RoCEv2, $(readable) with readable addresses"
	[ "$n" -gt 1000 ] && [ "$(frames udp port 4791 | wc -l)" = 0 ] && [ "$(readable)" = 0 ]
}

seen() # the capture finds what is not encrypted
{
	[ "$(frames udp port 4791 | wc -l)" -gt 1000 ] && [ "$(readable)" -gt 1000 ]
}

# The longest packet that the WAN port takes crosses as one frame, which has so many bytes more. None is longer, or a fragment.
whole() # BYTES
{
	local want=$((14 + MTU + $1))

	inside a "ping -c 3 -s $((MTU - 28)) $(addr b 2)" || return
	frames | grep -o 'length [0-9]*: ' | sort -V | uniq -c | tail -n 3
	frames greater $want | grep -q . && ! frames greater $((want + 1)) | grep . && ! fragments | grep .
}

# WireGuard's packets have these addresses, and are so much longer. The other ones go: a packet that is still under way
# would make WireGuard answer where it came from.
outer() # ADDRESS BYTES: with N for the site's number
{
	local s o at

	for s in a b; do
		o=$(other $s)
		at=${1/N/$(n_of "$o")}
		[[ $at != *::* ]] || at="[$at]"
		inside $s "cd /proc/sys/net/ipv6/conf/nic0; echo 0 >disable_ipv6; echo 0 >accept_dad; ip link set nic0 mtu $((MTU + $2));" \
			"ip addr flush dev nic0; ip addr add ${1/N/$(n_of $s)}/24 dev nic0;" \
			"ip netns exec wg wg set wg0 peer ${key[$o]} endpoint '$at:51820'" || return
	done
}

over_ipv6()
{
	outer fd79::N 80 && whole 80
}

fragments()
{
	frames 'ip[6:2] & 0x3fff != 0 or ip6[6] = 44'
}

# What the card does not take WireGuard sends in fragments: nothing is lost, and nothing raised.
fragmented()
{
	outer 10.79.0.N -700 && inside a "ping -c 3 -s $((MTU - 28)) $(addr b 2)" && fragments | grep -q . && well &&
	outer 10.79.0.N 60
}

## The appliances

attached() # as it must be with the form's WAN port
{
	local driver=virtio_net xdp=native

	case $form in
	macsec) driver=macsec xdp=generic ;;
	routed | wireguard) driver=veth ;;
	esac
	cli a port show
	jq_true a port 'any(.side == "wan" and .driver == $d and .xdp == $x)' --arg d $driver --arg x $xdp
}

well() # nothing is raised, and the link carries what hosts of this path MTU may send
{
	no_alarm a && no_alarm b && jq_true a peer 'all(."link-mtu" == 2140 and ."link-mtu-from" == 2140)'
}

# a transfer that goes on, faster than nothing and slower than the guests
at_work()
{
	next_qpns
	transfer_begin "$1" a --op write --mtu $PATH_MTU --rate-mbps 4 --timeout-exp 17 --seconds 600 && await 60 promised_now
}

done_with()
{
	enough "$1-req"
	transfer_end "$1" && intact "$1"
}

named() # BYTES: both ends name what the link carries
{
	local text="carries packets of at most $1 bytes, and hosts send $LONGEST (path MTU $PATH_MTU)" s

	for s in a b; do
		await 60 jq_true $s status 'any(.name == "link-mtu" and .state == "raised" and (.reason | contains($t)))' --arg t "$text" ||
			{ cli $s status; cli $s peer -d | grep mtu; return 1; }
	done
}

# The link takes no more than 1500 bytes for a while
narrow() # BYTES
{
	local status=0

	at_work narrow || return
	ip -n $P-wan link set dev b mtu 1500
	named "$1" || status=1
	ip -n $P-wan link set dev b mtu $LAB_MTU
	done_with narrow && well && return $status
}

# ... and the inner device has the MTU that wg-quick gives it
default_mtu()
{
	local status=0

	at_work default || return
	inside b "ip -n wg link set wg0 mtu 1420"
	inside a "ip -n wg link set wg0 mtu 1420"
	named 1420 || status=1
	inside a "ip -n wg link set wg0 mtu $MTU"
	inside b "ip -n wg link set wg0 mtu $MTU"
	done_with default && well && return $status
}

used() # both guests' processor time so far, in hundredths of a second
{
	cat /proc/"${pid[guest-a]}"/stat /proc/"${pid[guest-b]}"/stat | awk '{ n += $14 + $15 } END { print n }'
}

# As fast as the guests can, the best of three: on a busy machine any of them may be slow. Few at a time: the lab's host is
# no guest, and would flood one.
fast() # OP
{
	local i best="0 0" from

	for i in 1 2 3; do
		next_qpns
		from=$(used)
		transfer "fast-$1" a --op "$1" --mtu $PATH_MTU --depth 2 --count 400 && intact "fast-$1" && held_at a || return
		best=$(echo "$best $(delivered_rate "fast-$1") $(($(used) - from))" |
			awk '{ print($1 > $3 ? $1 : $3, !$2 || $4 < $2 ? $4 : $2) }')
	done
	rate[$form,$1]=$best
}

cost() # FORM WITHOUT
{
	local op line="vm: test=encrypted form=$1"

	for op in write read; do
		[ -n "${rate[$1,$op]:-}" ] && [ -n "${rate[$2,$op]:-}" ] || return 0
		line+=$(echo "${rate[$1,$op]} ${rate[$2,$op]}" | awk -v op=$op -v form="$2" '{
			printf " %s-mb=%.1f of-%s=%.2f cpu=%.2f", op, $1, form, $1 / $3, $2 / $4 }')
	done
	echo "$line"
}

pass() # FORM WAN-PORT BYTES: those that it adds
{
	local s

	form=$1 about="encrypted form=$1"
	step link link_made
	step capture capture
	for s in a b; do
		LAB_WAN=$2 gateway_config $s -r 'prefetch = on'
		put $s "$LAB/gw-$s.conf" && start_inside $s || die "longhauld in guest $s ended: $(keep_logs; cat "$LAB/gw-$s.err")"
	done
	step session await 60 peers_up
	step attached attached
	step whole whole "$3"
	if [ $form = wireguard ]; then
		step over-ipv6 over_ipv6
		step fragmented fragmented
	fi
	step write-a carried write-a a --op write --count 200 --rate-mbps 16
	step read-a reads read-a a
	step write-b carried write-b b --op write --count 200 --rate-mbps 16
	step well well
	step captured captured
	case $form in
	macsec)
		step hidden hidden
		step narrow narrow 1468
		;;
	wireguard)
		step hidden hidden
		step narrow narrow 1440
		step default-mtu default_mtu
		;;
	*) step seen seen ;;
	esac
	step fast-write fast write
	step fast-read fast read
	link_gone
}

[ "$(id -u)" = 0 ] || die "needs root: network namespaces and taps"
ip netns add $P-wan && ip -n $P-wan link set lo up && site_up a && site_up b || die "cannot make the network namespaces"
mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
"$B/longhaul" keygen "$LAB/key" || die "no key"
for s in a b; do
	guest_up $s
	put $s "$LAB/key" || die "no key in the guest"
done
wan_start --delay-ms 10
for f in "clear nic0 0" "macsec macsec0 32" "routed wan0 0" "wireguard wan0 60"; do
	# shellcheck disable=SC2086 # three words
	[[ "form=${f%% *}" =~ $WANTED ]] && pass $f
	case $f in
	macsec*) cost macsec clear ;;
	wireguard*) cost wireguard routed ;;
	esac
done
echo "vm: test=encrypted steps=$steps failed=$failed seconds=$SECONDS $([ $failed = 0 ] && echo ok || echo FAILED)"
[ $failed = 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The plain forwarder between two hosts, in network namespaces of its own:
#
#	lhp-$$-h1 (h1) --- (lan0) lhp-$$-gw: bridge br0, afxdp_forward (wan0) --- (h2) lhp-$$-h2
#
# First what must hold: frames cross both ways, those too long for one buffer too; ARP, UDP and ICMP
# go over the bridge meanwhile; RoCEv2 does so again as soon as the forwarder has gone, killed or
# not. Then the rates.
#
#	afxdp_forward.sh DIRECTORY-OF-PROGRAMS [SECONDS-PER-MEASUREMENT]
set -u
bin=$1
secs=${2:-3}
h1=lhp-$$-h1 gw=lhp-$$-gw h2=lhp-$$-h2
log=$(mktemp)
fwd=
failed=0

cleanup()
{
	[ -n "$fwd" ] && kill -9 "$fwd" 2>/dev/null
	for n in $h1 $gw $h2; do ip netns del $n 2>/dev/null; done
	rm -f "$log"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

check()
{
	if eval "$2"; then
		echo "ok    $1"
	else
		echo "FAIL  $1"
		failed=1
	fi
}

in_ns()
{
	local ns=$1
	shift
	ip netns exec "$ns" "$@"
}

# packets that interface $2 of namespace $1 has received
received()
{
	in_ns "$1" cat /sys/class/net/"$2"/statistics/rx_packets
}

# wait until command $1 is true, 5 s at most
await()
{
	for _ in $(seq 100); do
		eval "$1" && return 0
		sleep 0.05
	done
	return 1
}

start()
{
	: >"$log"
	ip netns exec $gw "$bin"/afxdp_forward "$@" lan0 wan0 >"$log" 2>&1 &
	fwd=$!
	await 'grep -q ready "$log" || ! kill -0 $fwd 2>/dev/null'
	grep -q ready "$log" || { cat "$log"; exit 1; }
}

stop()
{
	kill -"${1:-TERM}" $fwd
	wait $fwd 2>/dev/null
	fwd=
	json=$(tail -1 "$log")
}

field() # counter $2 of side $1 in the forwarder's last words
{
	echo "$json" | sed -E "s/.*\"$1\":\{[^}]*\"$2\":([0-9]+).*/\1/"
}

for n in $h1 $gw $h2; do ip netns add $n; in_ns $n ip link set lo up; done
ip -n $gw link add lan0 type veth peer name h1 netns $h1
ip -n $gw link add wan0 type veth peer name h2 netns $h2
ip -n $gw link add br0 type bridge
for d in lan0 wan0; do ip -n $gw link set $d master br0; done
for d in lan0 wan0 br0; do ip -n $gw link set $d mtu 4500 addrgenmode none up; done
ip -n $h1 link set h1 mtu 4500 addrgenmode none up
ip -n $h2 link set h2 mtu 4500 addrgenmode none up
ip -n $h1 addr add 10.0.0.1/24 dev h1
ip -n $h2 addr add 10.0.0.2/24 dev h2

# A datagram of $1 bytes from host 1 to a port where nobody listens; succeed when the ICMP answer
# comes back. (Refused is status 1 of read, no answer is above 128.)
probe()
{
	in_ns $h1 bash -c "exec 3<>/dev/udp/10.0.0.2/9
		dd if=/dev/zero bs=$1 count=1 status=none >&3
		read -t 1 -u 3 x 2>/dev/null
		[ \$? = 1 ]"
}

burst() # send 100 frames of $1 bytes from $2 (h1 or h2); succeed when the other host gets them all
{
	local from to src dst before
	if [ "$2" = h1 ]; then
		from=$h1 to=$h2 src=10.0.0.1 dst=10.0.0.2 dev=h2
	else
		from=$h2 to=$h1 src=10.0.0.2 dst=10.0.0.1 dev=h1
	fi
	before=$(received $to $dev)
	in_ns $from "$bin"/frame_blast -n 100 -r 20000 "$2" "$1" $src $dst >/dev/null
	await "[ \$((\$(received $to $dev) - $before)) -ge 100 ]"
}

check "bridge alone: ARP, UDP, ICMP" "await 'probe 100'"
check "bridge alone: RoCEv2" "burst 4170 h1 && burst 4170 h2"

for mode in native generic; do
	start -m $mode
	for len in 62 1500 3840 3841 4170 4210; do
		check "$mode: $len bytes both ways" "burst $len h1 && burst $len h2"
	done
	in_ns $h1 ip neigh flush dev h1
	check "$mode: ARP, UDP, ICMP by the bridge meanwhile" "await 'probe 100'"
	check "$mode: and UDP of 4,400 bytes" "await 'probe 4372'"
	stop
	max=$(echo "$json" | sed -E 's/.*"max-frame":([0-9]+).*/\1/')
	for side in lan wan; do
		long=$(field $side too-long)
		check "$mode: $side: all of them counted, at most $max bytes by AF_XDP" \
			"[ $(($(field $side rx) + long)) = 600 ] && [ $max -lt 4210 -o $long = 0 ]"
	done
	lost=
	for c in rx-dropped tx-dropped tx-full; do lost+=$(field lan $c)$(field wan $c); done
	check "$mode: nothing lost" "[ $lost = 000000 ]"
	check "$mode: closed, the bridge takes RoCEv2" "burst 4170 h1 && burst 62 h2"
	start -m $mode
	stop KILL
	check "$mode: killed, the bridge takes RoCEv2" "burst 4170 h1 && burst 62 h2"
	start -m $mode -1
	check "$mode: no multi-buffer, long frames by the bridge" "burst 4170 h1 && burst 4170 h2"
	stop
	check "$mode: and passed up by the program" \
		"[ $(field lan rx) = 0 ] && [ $(field lan too-long) = 100 ]"
done

echo
printf '%-8s %-10s %6s  %10s %10s %8s %8s  %s\n' mode direction bytes "sent Mpps" "got Mpps" Gb/s lost% \
	"CPU of the forwarder (user + system)"
measure()
{
	local mode=$1 dirs=$2 len=$3 a b t0 t1 s1=0 s2=0 p1 p2 cpu=
	[ $mode = bridge ] || start -m $mode
	a=$(received $h1 h1) b=$(received $h2 h2) t0=$(date +%s%N)
	in_ns $h1 "$bin"/frame_blast -t $secs h1 $len 10.0.0.1 10.0.0.2 >"$log.1" &
	p1=$!
	if [ $dirs = both ]; then
		in_ns $h2 "$bin"/frame_blast -t $secs h2 $len 10.0.0.2 10.0.0.1 >"$log.2" &
		p2=$!
		wait $p2
		s2=$(sed -E 's/.*"sent":([0-9]+).*/\1/' "$log.2")
	fi
	wait $p1
	s1=$(sed -E 's/.*"sent":([0-9]+).*/\1/' "$log.1")
	t1=$(date +%s%N)
	a=$(($(received $h1 h1) - a)) b=$(($(received $h2 h2) - b))
	rm -f "$log.1" "$log.2"
	if [ $mode != bridge ]; then
		stop
		cpu=$(echo "$json" | sed -E 's/.*"user-seconds":([0-9.]+),"system-seconds":([0-9.]+).*/\1 \2/')
	fi
	awk -v m=$mode -v d=$dirs -v l=$len -v s=$((s1 + s2)) -v r=$((a + b)) -v ns=$((t1 - t0)) \
		-v c="$cpu" '
	BEGIN {
		t = ns / 1e9
		if (!r)
			r = 1
		printf "%-8s %-10s %6d  %10.3f %10.3f %8.2f %8.2f", m, d, l, s / t / 1e6, r / t / 1e6,
			r * l * 8 / t / 1e9, (1 - r / s) * 100
		if (split(c, u, " "))
			printf "  %.0f + %.0f ns a frame", u[1] * 1e9 / r, u[2] * 1e9 / r
		print ""
	}'
}
for mode in bridge native generic; do
	for len in 82 1082 4170; do
		measure $mode "LAN>WAN" $len
		measure $mode both $len
	done
done
exit $failed

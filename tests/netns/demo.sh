#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two data centres over an emulated link, bare and through two appliances: `make demo`. The last lines
# are one per transfer, in the form
#
#	demo: op=write rtt-ms=50 loss=0 direct-MBps=20.9 longhaul-MBps=140.1 gain=6.7 intact=yes
#
# Exit status 0 when every byte of every transfer arrived once and unaltered.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK_MBIT=1100	     # rate of the emulated link, for bare and longhaul alike
WAN_RATE=1080M	     # what the appliances send at: just below
WAN_BURST=550K	     # 4 ms of it: five programs share the processors here
DIRECT_SECONDS=3     # posting time of a bare transfer; its rate is steady from the start
LONGHAUL_SECONDS=7   # of one through the appliances, which first have to learn the connection
lines=()
table=
all_intact=yes
declare -A rate

# measure NAME OP SECONDS: one transfer; sets mbps and good
measure()
{
	local how=(--depth 16)

	# The connection manager tells the appliances, too, that a connection ends: there is no need to wait for
	# READs of what was read ahead of them.
	[ "$2" = read ] && how=(--depth 4 --cm)
	next_qpns
	transfer_begin "$1" a --op "$2" --seconds "$3" --size 64K --mtu "$mtu" "${how[@]}"
	if [ -z "$table" ] && [[ $1 = longhaul-* ]] && [ "$rtt" != 0 ] &&
	   await "$3" jq_true a qp 'any(.state == "held" and ."custody-bytes" > 0)'; then
		table=$(for s in a b; do
			echo "longhaul qp show, at the appliance of data centre $s:"
			cli $s qp show
			echo
		done)
	fi
	good=no
	TRANSFER_SECONDS=20 transfer_end "$1" && intact "$1" && good=yes
	[ $good = yes ] || all_intact=no
	mbps=$(delivered_rate "$1")
	mbps=$(printf %.1f "${mbps:-0}")
}

lab_up
wan_start
pair_start
# A kernel without multi-buffer AF_XDP takes frames of one buffer only.
mtu=4096
longest=$(sed -n 's/^WAN port.*frames up to \([0-9]*\) bytes.*/\1/p' "$LAB/gw-a.err")
[ "${longest:-0}" -ge 4170 ] || mtu=1024
pair_stop
wan_stop

cat <<EOM
Two data centres in network namespaces; host a sends to host b over a link of $LINK_MBIT Mbit/s.
RC messages of 64 KiB, 16 outstanding, path MTU $mtu. Direct: the kernel bridges alone, $DIRECT_SECONDS s of posting each;
longhaul: an appliance at each edge, $LONGHAUL_SECONDS s. MBps: payload delivered to the far host, 10^6 bytes per second,
from the first post to the last delivery, the time to learn the connection included.
READs: 4 outstanding, over the same 256 KiB of host b again and again; the appliances have prefetch = on.

EOM
for rtt in 0 50; do
	ops=(write send)
	[ $rtt = 0 ] || ops+=(read)
	for loss in 0 0.001; do
		link=(--delay-ms $((rtt / 2)) --rate-mbps $LINK_MBIT --loss $loss)
		declare -A direct=() intact=()
		wan_start "${link[@]}"
		for op in "${ops[@]}"; do
			measure direct-$op $op $DIRECT_SECONDS
			direct[$op]=$mbps intact[$op]=$good
		done
		pair_start -g "wan-rate = $WAN_RATE" -g "wan-burst = $WAN_BURST" -r "prefetch = on"
		for op in "${ops[@]}"; do
			measure longhaul-$op $op $LONGHAUL_SECONDS
			[ $good = yes ] || intact[$op]=no
			rate[$op,$rtt,$loss]=$mbps
			lines+=("$(awk -v op=$op -v rtt=$rtt -v loss=$loss -v d="${direct[$op]}" -v l="$mbps" \
				-v i="${intact[$op]}" 'BEGIN {
				printf "demo: op=%s rtt-ms=%s loss=%s direct-MBps=%s longhaul-MBps=%s gain=%.1f intact=%s",
					op, rtt, loss, d, l, (d > 0 ? l / d : 0), i }')")
			printf '.'
		done
		pair_stop || all_intact=no
		wan_stop
	done
done
printf '\n\n%s\n\n' "$table"
for op in write send; do
	awk -v op=$op -v near="${rate[$op,0,0]}" -v far="${rate[$op,50,0]}" -v lossy="${rate[$op,50,0.001]}" 'BEGIN {
		if (near > 0)
			printf "%s through the appliances at 50 ms: %.0f %% of its rate at 0 ms, with 0.1 %% loss %.0f %%\n",
				op, far / near * 100, lossy / near * 100 }'
done
echo
printf '%s\n' "${lines[@]}"
[ $all_intact = yes ]

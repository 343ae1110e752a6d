#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two data centres over an emulated link, bare and through two appliances: `make demo`. The last lines
# are one per transfer, in the form
#
#	demo: op=write rtt-ms=50 loss=0 direct-MBps=20.9 longhaul-MBps=140.1 gain=6.7 intact=yes
#
# and before them the same as a picture, a bar for each. Exit status 0 when every byte of every transfer arrived once
# and unaltered.
#
# SHORT=yes: two transfers at 50 ms alone, for tests/netns/test_readme.sh. BARS=ascii: whatever the terminal can.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK_MBIT=1100	     # rate of the emulated link, for bare and longhaul alike
WAN_RATE=1080M	     # what the appliances send at: just below
WAN_BURST=550K	     # 4 ms of it: five programs share the processors here
DIRECT_SECONDS=3     # posting time of a bare transfer; its rate is steady from the start
LONGHAUL_SECONDS=7   # of one through the appliances, which first have to learn the connection
rtts=(0 50)
losses=(0 0.001)
lines=()
table=
all_intact=yes
declare -A rate

if [ -n "${SHORT:-}" ]; then
	DIRECT_SECONDS=1 LONGHAUL_SECONDS=3 rtts=(50) losses=(0)
fi

# What the lines say, as a picture: a row for each transfer and a bar as long as its rate, up to what the link carries.
picture()
{
	local full='#' dots=.

	case ${BARS:-${LC_ALL:-${LC_CTYPE:-${LANG:-}}}} in
	*[Uu][Tt][Ff]8 | *[Uu][Tt][Ff]-8) full=█ dots=· ;;
	esac
	printf '%s\n' "${lines[@]}" | LC_ALL=C awk -v top=$((LINK_MBIT / 8)) -v width=40 -v full="$full" -v dots="$dots" '
	function bar(rate,   i, n, text) {
		n = int(rate / top * width + 0.5)
		n = n > width ? width : n == 0 && rate > 0 ? 1 : n
		for (i = 1; i <= width; i++)
			text = text (i <= n ? full : dots)
		return text
	}
	BEGIN {
		printf "%-5s  %10s  %6s  %-8s  %6s  %-*s  %s\n", "", "round trip", "loss", "", "MB/s", width, \
			"0 to " top " MB/s, what the link carries", "gain"
	}
	{
		for (i = 2; i <= NF; i++) {
			split($i, pair, "=")
			of[pair[1]] = pair[2]
		}
		printf "%-5s  %7d ms  %4.1f %%  %-8s  %6.1f  %s\n", of["op"], of["rtt-ms"], of["loss"] * 100, "bare", \
			of["direct-MBps"], bar(of["direct-MBps"])
		printf "%27s%-8s  %6.1f  %s  x %.1f%s\n", "", "longhaul", of["longhaul-MBps"], \
			bar(of["longhaul-MBps"]), of["gain"], \
			of["intact"] == "yes" ? "" : "  NOT INTACT"
	}'
}

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
for rtt in "${rtts[@]}"; do
	ops=(write send)
	[ -z "${SHORT:-}" ] || ops=(write)
	[ $rtt = 0 ] || ops+=(read)
	for loss in "${losses[@]}"; do
		link=(--delay-ms $((rtt / 2)) --rate-mbps "$LINK_MBIT" --loss "$loss")
		declare -A direct=() intact=()
		wan_start "${link[@]}"
		for op in "${ops[@]}"; do
			measure direct-$op $op $DIRECT_SECONDS
			direct[$op]=$mbps intact[$op]=$good
		done
		pair_start -g "wan-rate = $WAN_RATE" -g "wan-burst = $WAN_BURST" -r "prefetch = on" -r "learn = cm, psn"
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
	[ -z "${SHORT:-}" ] || break
	awk -v op=$op -v near="${rate[$op,0,0]}" -v far="${rate[$op,50,0]}" -v lossy="${rate[$op,50,0.001]}" 'BEGIN {
		if (near > 0)
			printf "%s through the appliances at 50 ms: %.0f %% of its rate at 0 ms, with 0.1 %% loss %.0f %%\n",
				op, far / near * 100, lossy / near * 100 }'
done
echo
picture
echo
printf '%s\n' "${lines[@]}"
[ $all_intact = yes ]

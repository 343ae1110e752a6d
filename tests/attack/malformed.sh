#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Frames that are damaged in every way: cut off, with lengths that lie, tags upon tags, extension headers, unknown
# opcodes, sizes; three of four with a right ICRC. From both LANs and from the link, idle and amid transfers.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

CAPTURES=("$PWD"/tests/data/*.pcap)

# damaged NAMESPACE INTERFACE SITE COUNT [OPTION...]: in the background, of both IP versions
damaged()
{
	local ns=$1 ifname=$2 s=$3 n=$4 o f

	shift 4
	o=$(other "$s")
	for f in 4 6; do
		spawn "mutate-$ns-$ifname-$f" "$ns" nice -n 10 "$LAB_BIN/mutate" --if "$ifname" --from "$(addr "$s" 1 $f)" \
			--to "$(addr "$o" 1 $f)" --to-mac "$(mac "$o" 1)" --count "$n" --rate 3000 --seed $RANDOM "$@" \
			"${CAPTURES[@]}"
	done
}

everywhere() # COUNT: frames for the queue pairs of the present transfer
{
	local name status=0

	damaged ha eth0 a "$1" --qpn "${qpn[b]}"
	damaged hb eth0 b "$1" --qpn "${qpn[a]}"
	damaged wan b a "$1" --qpn "${qpn[b]}"
	damaged wan a b "$1" --qpn "${qpn[a]}"
	for name in ha-eth0 hb-eth0 wan-a wan-b; do
		reap "mutate-$name-4" 60 || status=1
		reap "mutate-$name-6" 60 || status=1
	done
	[ $status = 0 ] || why="could not inject"
	return $status
}

idle()
{
	next_qpns
	everywhere 6000 && daemons_live
}

amid() # NAME OP
{
	local name=$1 op=$2

	next_qpns
	transfer_begin "$name" a --op "$op" --seconds 5 --depth 32 --size 16K --mtu 1024
	await 10 socket_open "$name-req" a 1 && await 20 completed "$name-req" 10 ||
		! why="nothing is completed" || { finish "$name" 1; return 1; }
	everywhere 4000 || return
	finish "$name"
	kept "$name" || return
	! running gw-a || daemons_live
}

lab_up
wan_start --delay-ms 5 --rate-mbps 300
bare "damaged frames amid WRITEs" amid bare-write write
bare "damaged frames amid SENDs" amid bare-send send
bare "damaged frames amid READs" amid bare-read read
pair_start -g "wan-rate = 280M" -r "prefetch = on"
attack "damaged frames while idle" idle
attack "damaged frames amid WRITEs" amid write write
attack "damaged frames amid SENDs" amid send send
attack "damaged frames amid READs" amid read read
attack "a new connection afterwards" carried_after after
attack "a stop in order afterwards" pair_stop
attack_exit

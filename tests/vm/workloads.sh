#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# No application is slower through the appliances than without them: UCX, rsockets, libfabric and NVMe over RDMA between
# two guests, at 20 ms without loss and at 50 ms with 0.1 %, bare and under each policy. A part of `make check-vm`, 10
# minutes at most. A line for each application, link and policy,
#
#	workloads: ucx-put-8k rtt=20 loss=0 policy=early direct-MBps=3.41 longhaul-MBps=8.12 gain=2.38 ok
#
# The rate is that of the payload where it arrives, from the first packet of the connection on, so what a connection costs
# at its beginning counts (NVMe: what fio says). An application has FAILED when it, or its server, ends with an error or
# hangs; when the appliances still have something for it, or a queue pair is in fault, after it has ended; or when it is
# slower than LEAST times its bare rate. A link with loss, and a busy machine, are a matter of luck: in the first RETRIES
# seconds what is slower is measured again, bare and through, twice at most. The lines of a try that is repeated begin with
# "#". An application that already fails bare cannot fail here. The last line:
#
#	workloads: cells=78 ok=78 failed=0 least=0.93 seconds=540
#
# Exit status 0 when no cell failed, and both appliances ended well each time. `tests/vm/workloads.sh REGEX` takes the
# cells whose line begins as the expression says, e.g. 'ucx.* rtt=20 .*policy=honest'; GATEWAY="wan-rate = 0" adds a line to
# both configurations, LEAST=0.9 is the ratio, RETRIES=420. What is to be known of a cell that failed is in $B/vm/failed-workloads.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh storage) || { echo "workloads: cannot run: $reason" >&2; exit 1; }
GUEST_MB=640 INITRD=initrd-storage
. tests/vm/lib.sh
. tests/vm/tools.sh
. tests/vm/protocols.sh

WANTED=${1:-}
LEAST=${LEAST:-0.9}
RETRIES=${RETRIES:-420}
FAILED=$B/vm/failed-workloads
# RTT-MS:LOSS
LINKS="20:0 50:0.001"
declare -A POLICIES=([early]="" [early+order]="order = hosts" [honest]="policy = honest")
# Over Ethernet the UD queue pairs by which UCX connects take a guest's own address for a stranger's.
UCX="UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=1 UCX_TLS=rc_verbs,ud_verbs:aux UCX_UD_VERBS_ETH_DGID_CHECK=n"
# NAME and what runs in both guests; the client also has the server's address. The numbers are for a second or so, bare.
APPS=(
	"ucx-put-8k ucx_perftest -t ucp_put_bw -s 8192 -n 800 -w 10"
	"ucx-get-64k ucx_perftest -t ucp_get -s 65536 -n 120 -w 4 -O 8"
	"ucx-tag-4k ucx_perftest -t tag_bw -s 4096 -n 1200 -w 10"
	"ucx-tag-256k-get UCX_RNDV_SCHEME=get_zcopy ucx_perftest -t tag_bw -s 262144 -n 40 -w 2"
	"ucx-tag-256k-put UCX_RNDV_SCHEME=put_zcopy ucx_perftest -t tag_bw -s 262144 -n 40 -w 2"
	"ucx-am-4k ucx_perftest -t ucp_am_bw -s 4096 -n 1200 -w 10"
	"ucx-fadd ucx_perftest -t ucp_fadd -s 8 -n 200 -w 2 -O 8"
	"rstream-64k rstream -T v -S 65536 -C 64 -I 3"
	"rstream-2m rstream -T v -B 2097152 -S 262144 -C 16 -I 3"
	"riostream-64k riostream -T v -S 65536 -C 64 -I 3"
	"fi-64k fi_pingpong -p verbs -e msg -d rxe0 -c -S 65536 -I 25"
	"nvme-read-64k --rw=read --bs=64k --iodepth=4"
	"nvme-write-1m --rw=write --bs=1m --iodepth=4"
)
declare -A direct
cells=0 cells_failed=0 least=

# MB/s into $rate
run_nvme() # FIO-OPTIONS
{
	nvme_connect 0 || ! why="the initiator does not connect: $reply" || return
	guest a 60 "$(one_line "fio --name=x --filename=$disk --direct=1 --thread --ioengine=libaio $1 --size=8M --ramp_time=1
		--time_based --runtime=2 --output-format=terse --terse-version=3 2>&1 | tail -n 1")" || why="fio: $reply"
	rate=$(cut -d';' -f5,7,48 <<<"$reply" | awk -F';' '$1 == 0 { printf "%.6f", ($2 + $3) * 1024 / 1e6 }')
	nvme_disconnect || ! why="the initiator does not disconnect: $reply"
}

run_tool() # PORT SERVER CLIENT
{
	local served status s

	capture_start tool bare
	serve 60 "$2" "$1" "$3"
	status=$? said=$reply
	[ -z "$why" ] || return
	if [ $status != 0 ]; then
		why="the client ended with $status: $said"
		guest_kill b "$served"
	fi
	guest_wait b "$served"
	status=$?
	[ -n "$why" ] || [ $status = 0 ] || why="the server ended with $status: $reply"
	[ $phase = bare ] || await 60 settled || why="the appliances still have something; $why"
	capture_stop
	rate=$(for s in a b; do "$VM/rate" "$(addr $s 1 4)" "$LAB/tool-lan-$s.pcap"; done | awk '{ r += $3 } END { print r + 0 }')
}

# Sets $rate, and $why when it is not good
run() # NAME COMMAND
{
	local to faulted=0

	to=$(addr b 1 4)
	rate=0 why=
	[ $phase = bare ] || faulted=$(faults)
	case $1 in
	ucx-*) run_tool 13337 "$UCX $2" "$UCX $2 $to" ;;
	rstream-* | riostream-*) run_tool cm "$2" "$2 -s $to" ;;
	fi-*) run_tool 47592 "$2" "$2 $to" ;;
	nvme-*) run_nvme "$2" ;;
	esac
	[ $phase = bare ] || [ "$(faults)" = "$faulted" ] || why="a queue pair is in fault; $why"
	[ -n "$why" ] || awk -v r="$rate" 'BEGIN { exit !(r > 0) }' || why="nothing arrived: $reply"
	[ -z "$why" ]
}

# wanted NAME POLICY: over this link; bare when some policy is
wanted()
{
	local p

	for p in ${2:-${!POLICIES[@]}}; do
		[[ "$1 rtt=$rtt loss=$loss policy=$p" =~ ^$WANTED ]] && return
	done
	return 1
}

bare() # of what is in $list
{
	local app name phase=bare

	for app in "${list[@]}"; do
		name=${app%% *}
		run "$name" "${app#* }" || echo "# workloads: $name rtt=$rtt loss=$loss bare FAILED: $(brief "$why")"
		direct[$name]=$rate
		[ -z "$why" ] || direct[$name]=0
	done
}

keep_failure() # NAME
{
	local s name=$1-$rtt-$loss-$policy

	mkdir -p "$FAILED" && echo "$why" >"$FAILED/$name.why"
	for s in a b; do
		{ cli $s -d qp; cli $s -d lane; cli $s -d peer; cli $s stats; } >"$FAILED/$name-$s.txt" 2>&1
		cp "$LAB/gw-$s.err" "$FAILED/$name-gw-$s.err"
		[ ! -e "$LAB/tool-lan-$s.pcap" ] || cp "$LAB/tool-lan-$s.pcap" "$FAILED/$name-lan-$s.pcap"
	done
}

# Prints the line; adds to $slow what is worth another try
judge() # APP
{
	local name=${1%% *} verdict=ok gain line

	gain=$(awk -v d="${direct[$name]}" -v l="$rate" 'BEGIN { printf "%.2f", (d > 0 ? l / d : 0) }')
	line=$(awk -v d="${direct[$name]}" -v l="$rate" '
		function mb(x) { return sprintf((x >= 0.1 ? "%.2f" : (x >= 0.001 ? "%.4f" : "%.6f")), x) }
		BEGIN { printf "direct-MBps=%s longhaul-MBps=%s", mb(d), mb(l) }')
	line="workloads: $name rtt=$rtt loss=$loss policy=$policy $line gain=$gain"
	if [ "${direct[$name]}" = 0 ]; then
		verdict="${why:+as bare}"
		verdict=${verdict:-ok}
	elif [ -n "$why" ]; then
		verdict="FAILED: $(brief "$why")"
	elif awk -v g="$gain" -v l="$LEAST" 'BEGIN { exit !(g < l) }'; then
		why="slower than $LEAST of bare" verdict="FAILED: slower than $LEAST of bare"
	fi
	[ -z "$why" ] || keep_failure "$name"
	if [[ $verdict = *slower* ]] && [ "$tries" -lt 3 ] && [ $SECONDS -lt "$RETRIES" ]; then
		slow+=("$1")
		echo "# $line: again"
		return
	fi
	cells=$((cells + 1))
	[[ $verdict != FAILED* ]] || cells_failed=$((cells_failed + 1))
	[ "${direct[$name]}" = 0 ] || least=$(awk -v a="$gain" -v b="${least:-$gain}" 'BEGIN { print (a < b ? a : b) }')
	echo "$line $verdict"
}

through()
{
	local app phase=longhaul

	pair_start ${GATEWAY:+-g "$GATEWAY"} ${POLICIES[$policy]:+-r "${POLICIES[$policy]}"}
	await 30 learns
	for app in "${list[@]}"; do
		run "${app%% *}" "${app#* }"
		judge "$app"
	done
	pair_stop && return
	echo "# workloads: rtt=$rtt loss=$loss policy=$policy: an appliance did not end well: $(tail -n 1 "$LAB"/gw-?.err)"
	unwell=$((unwell + 1))
}

select_apps() # [POLICY]: into $list
{
	local app

	list=()
	for app in "${APPS[@]}"; do
		# shellcheck disable=SC2086
		wanted "${app%% *}" $1 && list+=("$app")
	done
	[ ${#list[@]} != 0 ]
}

# Those that the guests have
installed()
{
	local app program have=()

	for app in "${APPS[@]}"; do
		program=$(grep -oE 'ucx_perftest|fi_pingpong' <<<"$app")
		[ -z "$program" ] || command -v "$program" >/dev/null || { echo "# workloads: no $program here: not ${app%% *}"; continue; }
		have+=("$app")
	done
	APPS=("${have[@]}")
}

over_link()
{
	local policy tries slow list

	select_apps "" || return
	wan_start --visible --only-roce --delay-ms $((rtt / 2)) --loss "$loss"
	bare
	for policy in early early+order honest; do
		select_apps $policy || continue
		for tries in 1 2 3; do
			slow=()
			through
			list=("${slow[@]}")
			[ ${#list[@]} = 0 ] && break
			bare
		done
	done
	wan_stop
}

unwell=0
rm -rf "$FAILED"
installed
vm_up
lab_keep
nvme_up || die "the target does not start: $reply"
for link in $LINKS; do
	rtt=${link%:*} loss=${link#*:}
	over_link
done
echo
echo "workloads: cells=$cells ok=$((cells - cells_failed)) failed=$cells_failed least=${least:-0} seconds=$SECONDS"
[ $((cells_failed + unwell)) = 0 ] && [ $cells != 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# CONV-5: NVMe over RDMA, iSER and NFS over RDMA between two guests: the kernel's initiator in a, its target in b with a
# disk in memory, and fio; bare and through the appliances with announce = auto. A part of `make check-vm`. A line for
# each cell,
#
#	vm: test=nvme-write-64k-qd1 inline=0 rtt-ms=20 loss=0 direct-MBps=1.28 longhaul-MBps=2.29 gain=1.79 ok
#	vm: test=nvme-verify inline=16384 rtt-ms=20 loss=0.001 event=kill-9-a ok
#
# and at the end the counts. Cells named verify write with headers and checksums, all sizes from 512 bytes to 1 MiB,
# and read back what they wrote; those without an event also look at the target's disk itself. EVENT is
#	reset			the initiator's controller is reset amid the I/O, and connects anew (NVMe)
#	target-gone		the target drops its connections, and takes none for a second (not NFS: the server would
#				forget who had opened what)
#	kill-9-a, kill-9-b	the appliance there is killed, and the next one started
#
# `tests/vm/storage.sh REGEX` takes the cells whose line fits the expression, PROTOCOLS="iser nfs" those protocols only.
# Exit status 0 when none failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh storage) || { echo "vm: cannot run: $reason" >&2; exit 1; }
GUEST_MB=640 INITRD=initrd-storage
. tests/vm/lib.sh
. tests/vm/protocols.sh

RTT=20
CELLS=${1:-}
PROTOCOLS=${PROTOCOLS:-nvme iser nfs}
RUN_SECONDS=${RUN_SECONDS:-4}
# RW:BLOCK:DEPTH
declare -A RATES=(
	[nvme]="write:64k:1 write:64k:4 read:64k:1 read:64k:4 randwrite:4k:1 randwrite:4k:4 write:512:1
		write:256k:1 write:1m:4 write:64k:32 read:64k:32"
	[iser]="write:64k:1 write:64k:4 read:64k:1 randwrite:4k:1 write:512:1"
	[nfs]="write:64k:1 write:64k:4 read:64k:1 randwrite:4k:1 write:512:1"
)
declare -A EVENTS=(
	[nvme]="none reset target-gone kill-9-a kill-9-b"
	[iser]="none target-gone kill-9-a kill-9-b"
	[nfs]="none kill-9-a kill-9-b"
)
# PROTOCOL:INLINE:LOSS
LINKS="nvme:0:0 nvme:0:0.001 nvme:16384:0 iser:0:0 iser:0:0.001 iser:65536:0 nfs:4096:0 nfs:4096:0.001"
declare -A direct
cells=0 cells_failed=0
why=

# fio_line FILE OPTION...: a command
fio_line()
{
	local file=$1

	shift
	echo "fio --name=x --filename=$file --direct=1 --thread --ioengine=libaio --output-format=terse --terse-version=3 $*"
}

# The rate of it, MB/s, into $rate
measure() # RW BLOCK DEPTH
{
	local error reads writes

	rate=0
	if ! guest a $((RUN_SECONDS + 60)) "$(fio_line "$disk" --rw="$1" --bs="$2" --iodepth="$3" --size=8M --time_based --runtime="$RUN_SECONDS") 2>&1 | tail -n 1"; then
		why="fio: $reply"
		return 1
	fi
	IFS=';' read -r error reads writes < <(echo "$reply" | cut -d';' -f5,7,48)
	rate=$(awk -v r="${reads:-0}" -v w="${writes:-0}" 'BEGIN { printf "%.2f", (r + w) * 1024 / 1e6 }')
	[ "$error" = 0 ] && awk -v r="$rate" 'BEGIN { exit !(r > 0) }' || ! why="fio: $reply"
}

# What it does to a disk, the same each time
VERIFY="--rw=randwrite --bssplit=512/20:4k/30:64k/40:1m/10 --iodepth=8 --size=8M --verify=crc32c --verify_fatal=1 --randrepeat=1"

event() # NAME
{
	case $1 in
	none) ;;
	reset) "${protocol}_reset" ;;
	target-gone) "${protocol}_break" ;;
	kill-9-*) next_daemon "${1#kill-9-}" KILL ;;
	esac
}

requests() # of all lanes at a
{
	cli a -j lane show | jq 'map(.requests) | add // 0'
}

more_requests() # THAN
{
	[ "$(requests)" -gt "$1" ]
}

verify() # EVENT
{
	local mine n loops=3 at options

	[ "$1" != none ] || loops=1
	guest_begin a 200 "$(fio_line "$disk" "$VERIFY" --loops=$loops) 2>&1"
	mine=$job
	if [ "$1" != none ]; then
		n=$(requests)
		await 60 more_requests $((n + 100))
		event "$1" || { why="the event: $reply"; guest_wait a "$mine"; return 1; }
	fi
	guest_wait a "$mine" || ! why="fio: $(echo "$reply" | tail -n 3 | cut -c 1-200)" || return
	[ "$1" = none ] || return 0
	read -r at options < <("${protocol}_at")
	guest b 60 "$(fio_line "$at" "$VERIFY" --verify_only "$options") 2>&1" || ! why="at the target: $(echo "$reply" | tail -n 3 | cut -c 1-200)"
}

wanted() # REST-OF-THE-LINE
{
	[[ $1 =~ $CELLS ]]
}

verdict() # LINE STATUS
{
	cells=$((cells + 1))
	if [ "$2" = 0 ]; then
		echo "vm: $1 ok"
	else
		cells_failed=$((cells_failed + 1))
		echo "vm: $1 FAILED: $why"
	fi
}

# So much faster at least: how much is for a quiet machine to say
gain_of() # NAME
{
	[[ $1 = *-write-64k-qd1 ]] && [ "$inline" -lt 65536 ] && echo 1.2 || echo 0
}

rates() # PHASE
{
	local t rw bs depth name line status gain

	for t in ${RATES[$protocol]}; do
		IFS=: read -r rw bs depth <<<"$t"
		name=$protocol-$rw-$bs-qd$depth
		line="test=$name inline=$inline rtt-ms=$RTT loss=$loss"
		wanted "$line" || continue
		measure "$rw" "$bs" "$depth"
		status=$?
		if [ "$1" = bare ]; then
			direct[$name]=$rate
			[ $status = 0 ] || verdict "$line bare" 1
			continue
		fi
		gain=$(awk -v a="$rate" -v b="${direct[$name]}" 'BEGIN { printf "%.2f", (b > 0 ? a / b : 0) }')
		line+=" direct-MBps=${direct[$name]} longhaul-MBps=$rate gain=$gain"
		[ $status != 0 ] || [ "$loss" != 0 ] || awk -v g="$gain" -v w="$(gain_of "$name")" 'BEGIN { exit !(g >= w) }' ||
			{ why="slower than it should be" status=1; }
		verdict "$line" $status
	done
}

verifies()
{
	local e line

	for e in ${EVENTS[$protocol]}; do
		line="test=$protocol-verify inline=$inline rtt-ms=$RTT loss=$loss event=$e"
		wanted "$line" || continue
		verify "$e"
		verdict "$line" $?
	done
}

# What the appliances say of the latest connection's commands
told()
{
	local at

	for at in a b; do
		cli $at -j lane show | jq -r --arg at $at 'max_by(."announce-commands") | to_entries |
			map(select(.key | startswith("announce")) | "\(.key)=\(.value)") | "# \($at): \(join(" "))"'
	done
}

# What is wanted of $LINKS, and the guests can do; the reason why it is left out
links()
{
	local l protocol inline loss

	for l in $LINKS; do
		IFS=: read -r protocol inline loss <<<"$l"
		[[ " $PROTOCOLS " = *" $protocol "* ]] || continue
		[ "$protocol" != iser ] || [ -e "$VM/iscsi" ] || { echo "# no iSER: its programs are not to be had" >&2; continue; }
		echo "$l"
	done
}

died() # WHAT SITE
{
	die "$protocol: $1: $reply $(tail -n 3 "$LAB/console-$2.log")"
}

vm_up
lab_keep
up=
for link in $(links); do
	IFS=: read -r protocol inline loss <<<"$link"
	[[ " $up " = *" $protocol "* ]] || "${protocol}_up" || died "the target does not start" b
	up+=" $protocol"
	wan_start --visible --only-roce --delay-ms $((RTT / 2)) --loss "$loss"
	"${protocol}_connect" "$inline" || died "the initiator does not connect" a
	rates bare
	"${protocol}_disconnect" || died "the initiator does not disconnect" a
	pair_start -r "announce = auto"
	"${protocol}_connect" "$inline" || died "the initiator does not connect through the appliances" a
	rates longhaul
	verifies
	told
	"${protocol}_disconnect" || died "the initiator does not disconnect from the appliances" a
	pair_stop || verdict "test=$protocol-stop inline=$inline rtt-ms=$RTT loss=$loss" 1
	wan_stop
done
echo
echo "vm: storage cells=$cells ok=$((cells - cells_failed)) failed=$cells_failed seconds=$SECONDS"
[ $cells_failed = 0 ] && [ $cells != 0 ]

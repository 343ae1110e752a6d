#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# CONV-5: NVMe over RDMA between two guests: the kernel's initiator in a, its target in b with a disk in memory, and fio; bare
# and through the appliances with announce = auto. A part of `make check-vm`. A line for each cell,
#
#	vm: test=nvme-write-64k-qd1 inline=0 rtt-ms=20 loss=0 direct-MBps=1.28 longhaul-MBps=2.29 gain=1.79 ok
#	vm: test=nvme-verify inline=16384 rtt-ms=20 loss=0.001 event=kill-9-a ok
#
# and at the end the counts. Cells named verify write with headers and checksums, all sizes from 512 bytes to 1 MiB,
# and read back what they wrote; those without an event also look at the target's disk itself. EVENT is
#	reset			the initiator's controller is reset amid the I/O, and connects anew
#	target-gone		the target drops its connections, and takes none for a second
#	kill-9-a, kill-9-b	the appliance there is killed, and the next one started
#
# `tests/vm/storage.sh REGEX` takes the cells whose line begins as the expression says. Exit status 0 when none failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh storage) || { echo "vm: cannot run: $reason" >&2; exit 1; }
GUEST_MB=640 INITRD=initrd-storage
. tests/vm/lib.sh

RTT=20
CELLS=${1:-}
RUN_SECONDS=${RUN_SECONDS:-4}
# RW:BLOCK:DEPTH
RATES="write:64k:1 write:64k:4 read:64k:1 read:64k:4 randwrite:4k:1 randwrite:4k:4 write:512:1 write:256k:1 write:1m:4 write:64k:32 read:64k:32"
EVENTS="none reset target-gone kill-9-a kill-9-b"
NVMET=/sys/kernel/config/nvmet
declare -A direct
cells=0 cells_failed=0
why=

one_line() # a command for a guest, which takes lines
{
	echo "$1" | tr -s '\n\t' '  '
}

# Target: a port for each size of inline data, 4420 and 4421
target_up()
{
	local to port=4420 size cmd

	to=$(addr b 1 4)
	cmd="mount -t configfs none /sys/kernel/config && cd $NVMET && mkdir subsystems/disk && cd subsystems/disk &&
		echo 1 >attr_allow_any_host && mkdir namespaces/1 && printf /dev/ram0 >namespaces/1/device_path &&
		echo 1 >namespaces/1/enable"
	for size in 0 16384; do
		cmd+=" && mkdir $NVMET/ports/$port && cd $NVMET/ports/$port && echo rdma >addr_trtype && echo ipv4 >addr_adrfam &&
			echo $to >addr_traddr && echo $port >addr_trsvcid && echo $size >param_inline_data_size &&
			ln -s $NVMET/subsystems/disk subsystems/disk"
		port=$((port + 1))
	done
	guest b 30 "$(one_line "$cmd")" || die "the target does not start: $reply $(tail -n 3 "$LAB/console-b.log")"
}

connect() # INLINE
{
	local port=4420

	[ "$1" = 0 ] || port=4421
	guest a 60 "$(one_line "echo 'transport=rdma,traddr=$(addr b 1 4),trsvcid=$port,nqn=disk,nr_io_queues=1,queue_size=64,reconnect_delay=1,hostnqn=nqn.2014-08.org.nvmexpress:uuid:6c6f6e67-6861-756c-0000-000000000001' >/dev/nvme-fabrics &&
		until [ -b /dev/nvme0n1 ]; do sleep 0.1; done")" || die "the initiator does not connect: $reply $(tail -n 3 "$LAB/console-a.log")"
}

disconnect()
{
	guest a 60 'for c in /sys/class/nvme/nvme*; do echo 1 >$c/delete_controller; done' || die "the initiator does not disconnect: $reply"
}

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
	if ! guest a $((RUN_SECONDS + 60)) "$(fio_line /dev/nvme0n1 --rw="$1" --bs="$2" --iodepth="$3" --size=8M --time_based --runtime="$RUN_SECONDS") 2>&1 | tail -n 1"; then
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
	reset) guest a 60 'for c in /sys/class/nvme/nvme*; do echo 1 >$c/reset_controller; done' ;;
	target-gone)
		guest b 60 "$(one_line "cd $NVMET/ports && for p in *; do rm \$p/subsystems/disk; done; sleep 1;
			for p in *; do ln -s $NVMET/subsystems/disk \$p/subsystems/disk; done")"
		;;
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
	local mine n loops=3

	[ "$1" != none ] || loops=1
	guest_begin a 200 "$(fio_line /dev/nvme0n1 "$VERIFY" --loops=$loops) 2>&1"
	mine=$job
	if [ "$1" != none ]; then
		n=$(requests)
		await 60 more_requests $((n + 100))
		event "$1" || { why="the event: $reply"; guest_wait a "$mine"; return 1; }
	fi
	guest_wait a "$mine" || ! why="fio: $(echo "$reply" | tail -n 3 | cut -c 1-200)" || return
	[ "$1" = none ] || return 0
	guest b 60 "$(fio_line /dev/ram0 "$VERIFY" --verify_only) 2>&1" || ! why="at the target: $(echo "$reply" | tail -n 3 | cut -c 1-200)"
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
	[ "$1" = nvme-write-64k-qd1 ] && echo 1.2 || echo 0
}

rates() # PHASE INLINE LOSS
{
	local t rw bs depth name line status gain

	for t in $RATES; do
		IFS=: read -r rw bs depth <<<"$t"
		name=nvme-$rw-$bs-qd$depth
		line="test=$name inline=$2 rtt-ms=$RTT loss=$3"
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
		[ $status != 0 ] || [ "$3" != 0 ] || awk -v g="$gain" -v w="$(gain_of "$name")" 'BEGIN { exit !(g >= w) }' ||
			{ why="slower than it should be" status=1; }
		verdict "$line" $status
	done
}

verifies() # INLINE LOSS
{
	local e line

	for e in $EVENTS; do
		line="test=nvme-verify inline=$1 rtt-ms=$RTT loss=$2 event=$e"
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

vm_up
lab_keep
target_up
for link in 0:0 0:0.001 16384:0; do
	inline=${link%:*} loss=${link#*:}
	wan_start --visible --only-roce --delay-ms $((RTT / 2)) --loss "$loss"
	connect "$inline"
	rates bare "$inline" "$loss"
	disconnect
	pair_start -r "announce = auto"
	connect "$inline"
	rates longhaul "$inline" "$loss"
	verifies "$inline" "$loss"
	told
	disconnect
	pair_stop || verdict "test=nvme-stop inline=$inline rtt-ms=$RTT loss=$loss" 1
	wan_stop
done
echo
echo "vm: storage cells=$cells ok=$((cells - cells_failed)) failed=$cells_failed seconds=$SECONDS"
[ $cells_failed = 0 ] && [ $cells != 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first part of `make check-vm`: appliances are restarted and killed amid transfers of the guests' tools, which
# must not notice (tests/vm/amid.sh). One line for each,
#
#	vm: test=write mtu=1024 rtt-ms=20 event=kill-9 site=a adopted=1 faulted=0 retries=2 ok
#
# site=a is near the requester, ab are both. Then hand-overs amid I/O over NVMe, all sizes from 512 bytes to 1 MiB, written
# and read back with checksums, eight near the initiator and two near the target:
#
#	vm: test=nvme mtu=4096 rtt-ms=20 event=restart site=a pause-ms=31 silent-ms=154 ok
#
# silent-ms is how long nothing passed from the hand-over on. It fails from 10 s on: NVMe itself waits 30 s. (Soft-RoCE dies
# of a capsule that is lost while others are under way: it goes back, registers memory for the second time, and may not.)
# At the end the sums:
#
#	vm: events=<n> ok=<n> failed=<n> adopted=<n> faulted=<n> seconds=<n>
#
# What is to be known of one that failed is in $B/vm/failed-amid. Exit status 0 when none failed. A part of it:
# `tests/vm/survive.sh REGEX` takes those whose line begins as the expression says, e.g. 'test=write .*event=kill-9'.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh storage) || { echo "vm: cannot run: $reason" >&2; exit 1; }
GUEST_MB=640 INITRD=initrd-storage
. tests/vm/lib.sh
. tests/vm/tools.sh
. tests/vm/protocols.sh
. tests/vm/amid.sh

RTT=20
EVENTS=${1:-}
FAILED=$B/vm/failed-amid
unwell=0

# pass LIST-OF-TEST:MTU [OPTION...]: all events, through appliances configured so
pass()
{
	local t event site begun= list=$1

	shift
	for t in $list; do
		for event in restart:a restart:b kill-9:a kill-9:b both-killed:ab; do
			[[ "test=${AHEAD:+ahead-}${t%:*} mtu=${t#*:} rtt-ms=$RTT event=${event%:*} site=${event#*:}" =~ $EVENTS ]] || continue
			[ -n "$begun" ] || pair_start "$@"
			begun=yes
			amid_cell "${t%:*}" "${t#*:}" $RTT "${event%:*}" "${event#*:}"
		done
	done
	[ -n "$begun" ] || return 0
	if ! pair_stop; then
		echo "vm: an appliance did not end well: $(tail -n 1 "$LAB"/gw-?.err)"
		unwell=$((unwell + 1))
	fi
}

ms_now()
{
	echo $((10#$(date +%s%N) / 1000000))
}

# A hand-over at SITE amid fio: sets $silent, and $why when it is not good
nvme_event() # SITE
{
	local n from mine

	why=
	longest_pause=0
	guest_begin a 120 "$(one_line "fio --name=x --filename=$disk --direct=1 --thread --ioengine=libaio --rw=randwrite
		--bssplit=512/20:4k/30:64k/40:1m/10 --iodepth=8 --size=8M --verify=crc32c --verify_fatal=1 --time_based
		--runtime=4 2>&1")"
	mine=$job
	n=$(through a)
	await 60 passed_more $((n + 300)) 0 || why="nothing passes"
	from=$(ms_now)
	restart_daemon "$1" || why="the next daemon does not go on: $(tail -n 2 "$LAB/gw-$1.err")"
	n=$(through a)
	await 60 passed_more $((n + 50)) 0 || why="nothing passes any more"
	silent=$(($(ms_now) - from))
	[ $silent -lt 10000 ] || why="a stall; $why"
	guest_wait a "$mine" || why="fio: $(echo "$reply" | tail -n 3 | cut -c 1-200) $why"
}

# The same as pass() for NVMe
nvme_pass()
{
	local site silent verdict faults_then begun=

	for site in a a a a b a a a a b; do
		[[ "test=nvme mtu=4096 rtt-ms=$RTT event=restart site=$site" =~ $EVENTS ]] || continue
		if [ -z "$begun" ]; then
			nvme_up || die "the target does not start: $reply"
			pair_start
			know
			nvme_connect 0 || die "the initiator does not connect: $reply"
			begun=yes
		fi
		faults_then=$(faults)
		nvme_event $site
		[ "$(faults)" = "$faults_then" ] || why="a queue pair is in fault; $why"
		amid_cells=$((amid_cells + 1)) amid_faulted=$((amid_faulted + $(faults) - faults_then))
		verdict=ok
		[ -z "$why" ] || verdict="FAILED: $(brief "$why")"
		[ -z "$why" ] || { amid_failed=$((amid_failed + 1)) && keep_failure nvme 4096 $RTT restart $site; }
		echo "vm: test=nvme mtu=4096 rtt-ms=$RTT event=restart site=$site pause-ms=$longest_pause silent-ms=$silent $verdict"
	done
	[ -n "$begun" ] || return 0
	nvme_disconnect || die "the initiator does not disconnect: $reply"
	pair_stop || { echo "vm: an appliance did not end well: $(tail -n 1 "$LAB"/gw-?.err)" && unwell=$((unwell + 1)); }
}

rm -rf "$FAILED"
vm_up
lab_keep
wan_start --visible --only-roce --delay-ms $((RTT / 2))
pass "write:1024 write:4096 read:1024 read:4096 rping:4096 contents:1024 contents:4096"
AHEAD=yes
pass "read:1024 read:4096" -r "prefetch = on"
nvme_pass
wan_stop
echo
echo "vm: events=$amid_cells ok=$((amid_cells - amid_failed)) failed=$amid_failed adopted=$amid_adopted faulted=$amid_faulted seconds=$SECONDS"
[ $((amid_failed + unwell)) = 0 ] && [ $amid_cells != 0 ]

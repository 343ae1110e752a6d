#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first part of `make check-vm`: appliances are restarted and killed amid transfers of the guests' tools, which
# must not notice (tests/vm/amid.sh). One line for each,
#
#	vm: test=write mtu=1024 rtt-ms=20 event=kill-9 site=a adopted=1 faulted=0 retries=2 ok
#
# site=a is near the requester, ab are both. At the end the sums:
#
#	vm: events=<n> ok=<n> failed=<n> adopted=<n> faulted=<n> seconds=<n>
#
# What is to be known of one that failed is in $B/vm/failed-amid. Exit status 0 when none failed. A part of it:
# `tests/vm/survive.sh REGEX` takes those whose line begins as the expression says, e.g. 'test=write .*event=kill-9'.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh) || { echo "vm: cannot run: $reason" >&2; exit 1; }
. tests/vm/lib.sh
. tests/vm/tools.sh
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

rm -rf "$FAILED"
vm_up
lab_keep
wan_start --visible --only-roce --delay-ms $((RTT / 2))
pass "write:1024 write:4096 read:1024 read:4096 rping:4096 contents:1024 contents:4096"
AHEAD=yes
pass "read:1024 read:4096" -r "prefetch = on"
wan_stop
echo
echo "vm: events=$amid_cells ok=$((amid_cells - amid_failed)) failed=$amid_failed adopted=$amid_adopted faulted=$amid_faulted seconds=$SECONDS"
[ $((amid_failed + unwell)) = 0 ] && [ $amid_cells != 0 ]

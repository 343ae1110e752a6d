#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make check-vm`: every test of tests/vm/tools.sh between two guests over each link, bare and through the
# appliances. One line a cell,
#
#	vm: test=write mtu=1024 rtt-ms=100 loss=0 direct-MBps=1.09 longhaul-MBps=6.90 gain=6.33 ok
#
# and at the end the counts. A cell that failed says why in place of ok; its captures are then in
# $B/vm/failed. Exit status 0 when none failed.
#
# A part of it: TESTS="write:1024 rping:4096" RTTS="0 100" LOSSES=0 make check-vm. One boot of the guests serves all.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh) || { echo "vm: cannot run: $reason" >&2; exit 1; }
. tests/netns/lib.sh
. tests/vm/lib.sh
. tests/vm/tools.sh

# TEST:MTU. Both path MTUs where the rate is the point, else one of them.
ALL="write:1024 write:4096 send:1024 send:4096 read:1024 read:4096 atomic:1024
	write-lat:1024 send-lat:4096 read-lat:1024 atomic-lat:1024
	write-bidir:4096 write-q8:1024 send-event:1024 write-cm:1024 send-v6:4096
	rc-pingpong:1024 srq-pingpong:4096 rping:4096 rping-v6:4096 uc-pingpong:1024 ud-pingpong:1024"
RTTS=${RTTS:-0 20 100}
LOSSES=${LOSSES:-0 0.001 0.01}
RUN_SECONDS=${RUN_SECONDS:-1.5}
FAILED=$B/vm/failed

# What is lost of these stays lost, bare or not: they have no acknowledgements.
unreliable()
{
	[[ $1 == u[cd]-* ]]
}

list=()
link_tests() # LOSS: sets $list
{
	local t

	list=()
	for t in ${TESTS:-$ALL}; do
		[ "$1" = 0 ] || ! unreliable "$t" || continue
		list+=("$t")
	done
}

over_link() # RTT-MS LOSS
{
	local t link=(--visible --only-roce --delay-ms "$(awk -v r="$1" 'BEGIN { print r / 2 }')" --loss "$2")

	link_tests "$2"
	verified=()
	wan_start "${link[@]}"
	for t in "${list[@]}"; do
		bare_cell "${t%:*}" "${t#*:}" "$1" "$2"
	done
	pair_start
	for t in "${list[@]}"; do
		longhaul_cell "${t%:*}" "${t#*:}" "$1" "$2"
	done
	if ! pair_stop; then
		echo "vm: rtt-ms=$1 loss=$2: an appliance did not end well: $(tail -n 1 "$LAB"/gw-?.err)"
		cells_failed=$((cells_failed + 1))
	fi
	wan_stop
}

rm -rf "$FAILED"
vm_up
for rtt in $RTTS; do
	for loss in $LOSSES; do
		over_link "$rtt" "$loss"
	done
done
echo
echo "vm: cells=$cells failed=$cells_failed seconds=$SECONDS"
[ $cells_failed = 0 ]

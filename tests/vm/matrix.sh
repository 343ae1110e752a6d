#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `make check-vm`, after tests/vm/survive.sh: every test of tests/vm/tools.sh between two guests over each link, bare and through the
# appliances. One line a cell,
#
#	vm: test=write mtu=1024 rtt-ms=100 loss=0 direct-MBps=1.09 longhaul-MBps=6.90 gain=6.33 ok
#
# and at the end the counts. A cell that failed says why in place of ok; its captures are then in
# $B/vm/failed. Exit status 0 when none failed.
#
# A part of it: `tests/vm/matrix.sh REGEX` (or CELLS=REGEX) takes those cells of the whole product, whose line begins
# as the expression says, e.g. 'test=(write|send) .*rtt-ms=100 loss=0$'. One boot of the guests serves all.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh) || { echo "vm: cannot run: $reason" >&2; exit 1; }
. tests/vm/lib.sh
. tests/vm/tools.sh

# TEST:MTU. Where the rate is the point: over every link, mostly with both path MTUs.
MAIN="write:1024 write:4096 send:1024 send:4096 read:1024 read:4096 write-q8:1024 rping:4096 rc-pingpong:1024"
# The others over some.
OTHERS="atomic:1024 write-lat:1024 send-lat:4096 read-lat:1024 atomic-lat:1024
	write-bidir:4096 send-event:1024 send-rnr:1024 write-cm:1024 send-v6:4096 rping-v6:4096 srq-pingpong:4096
	uc-pingpong:1024 ud-pingpong:1024"
# Requests are READs, one outstanding, and the appliances ask ahead.
AHEAD="read-one:1024 read-one:4096"
LINKS="100:0 20:0 0:0 100:0.01 20:0.01 20:0.001 100:0.001 0:0.001 0:0.01"
SOME_LINKS=" 0:0 20:0.001 20:0.01 100:0 100:0.01 "
AHEAD_LINKS=" 20:0 100:0 100:0.001 "
CELLS=${1:-${CELLS:-}}
RUN_SECONDS=${RUN_SECONDS:-1.5}
FAILED=$B/vm/failed

# What is lost of these stays lost, bare or not: they have no acknowledgements.
unreliable()
{
	[[ $1 == u[cd]-* ]]
}

# list_cells RTT-MS LOSS LINKS TEST...: adds to $list what is to be run over this link
list=()
list_cells()
{
	local rtt=$1 loss=$2 links=$3 t

	shift 3
	for t; do
		[ "$loss" = 0 ] || ! unreliable "$t" || continue
		if [ -n "$CELLS" ]; then
			[[ "test=${t%:*} mtu=${t#*:} rtt-ms=$rtt loss=$loss" =~ $CELLS ]] || continue
		else
			[[ $links == *" $rtt:$loss "* ]] || continue
		fi
		list+=("$t")
	done
}

# pass RTT-MS LOSS [OPTION...]: what is in $list over the link that stands, through appliances configured so
pass()
{
	local t rtt=$1 loss=$2

	shift 2
	[ ${#list[@]} != 0 ] || return 0
	verified=()
	for t in "${list[@]}"; do
		bare_cell "${t%:*}" "${t#*:}" "$rtt" "$loss"
	done
	pair_options=("$@")
	pair_start "$@"
	for t in "${list[@]}"; do
		longhaul_cell "${t%:*}" "${t#*:}" "$rtt" "$loss"
		# a queue pair that is being broken would be seen in the captures of the next one
		[ "$(faults)" = 0 ] || pair_again
	done
	if ! pair_stop; then
		echo "vm: rtt-ms=$rtt loss=$loss: an appliance did not end well: $(tail -n 1 "$LAB"/gw-?.err)"
		unwell=$((unwell + 1))
	fi
}

over_link() # RTT-MS LOSS
{
	local plain ahead

	list=()
	list_cells "$1" "$2" " $LINKS " $MAIN
	list_cells "$1" "$2" "$SOME_LINKS" $OTHERS
	plain=("${list[@]}") list=()
	list_cells "$1" "$2" "$AHEAD_LINKS" $AHEAD
	ahead=("${list[@]}")
	[ $((${#plain[@]} + ${#ahead[@]})) != 0 ] || return 0
	wan_start --visible --only-roce --delay-ms "$(awk -v r="$1" 'BEGIN { print r / 2 }')" --loss "$2"
	list=("${plain[@]}")
	pass "$1" "$2"
	list=("${ahead[@]}")
	pass "$1" "$2" -r "prefetch = on"
	wan_stop
}

unwell=0
rm -rf "$FAILED"
vm_up
for link in $LINKS; do
	over_link "${link%:*}" "${link#*:}"
done
echo
echo "vm: cells=$cells ok=$((cells - cells_failed)) failed=$cells_failed seconds=$SECONDS"
[ $((cells_failed + unwell)) = 0 ] && [ $cells != 0 ]

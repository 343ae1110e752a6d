#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Whether tests hold on a busy machine: `make check-busy`, or
#
#	tests/busy.sh [RUNS] [PART...]		20 times the parts vm and netns of tests/run.sh; PART may be
#						netns/NAME, too
#
# beside LOAD (2) processes that do nothing but use up the processor. They have one session of their own, as a build in
# another terminal would have: the kernel gives each session the same share of the processors, however nice
# one of its processes is. LOAD=0: something else is the load. Five tests run at once, AT_ONCE, for they wait much of
# their time. Ends at the first failure; the logs of that run are kept in $B/busy. The last line:
#
#	busy: runs=<n> failed=<n>
set -u
cd "$(dirname "$0")/.." || exit 1
export B=${B:-build} AT_ONCE=${AT_ONCE:-5}
times=20
case ${1:-} in
'' | *[!0-9]*) ;;
*)
	times=$1
	shift
	;;
esac
[ $# != 0 ] || set -- vm netns # the longest first
runs=0 failed=0 current=
load=()

end()
{
	trap - EXIT
	[ -z "$current" ] || { kill "$current" && wait "$current"; } 2>/dev/null
	[ ${#load[@]} = 0 ] || { kill "${load[@]}" && wait "${load[@]}"; } 2>/dev/null
	echo "busy: runs=$runs failed=$failed"
	exit "${1:-$((failed != 0 || runs < times))}"
}
trap end EXIT
trap 'end 130' INT
trap 'end 143' TERM HUP

if [ "${LOAD:-2}" != 0 ]; then
	# they end with this shell even when it is killed
	setsid setpriv --pdeathsig KILL bash -c '
		for ((i = 1; i < $1; i++)); do
			setpriv --pdeathsig KILL bash -c "while :; do :; done" &
		done
		while :; do :; done' load "${LOAD:-2}" &
	load+=($!)
fi
while [ $runs -lt $times ]; do
	tests/run.sh "$@" &
	current=$!
	wait $current
	status=$?
	current=
	runs=$((runs + 1))
	if [ $status != 0 ]; then
		failed=$((failed + 1))
		rm -rf "$B/busy" && cp -r "$B/check" "$B/busy" && echo "busy: the logs of this run are in $B/busy"
		break
	fi
done

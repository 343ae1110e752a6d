#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The models of this directory, searched by spin. Each line of tests/model/variants is one search:
#
#	sound NAME MODEL FLAGS    no error may be found, and the whole state space within the bounds must be searched
#	live NAME MODEL FLAGS     the same, and no cycle without progress
#	reach NAME MODEL FLAGS    the end must be reached, or the others prove nothing
#	fault NAME MODEL FLAGS    one rule is broken (-DBREAK_...): an error must be found; stall: a cycle without progress
#
# One line for each, and as the last
#
#	model: variants=N states=N errors=N faults=N found=N
#
#	run.sh [NAME ...]    only these
#
# B names the build directory; each search has a directory of its own in $B/model, with what spin and the search said
# and, after an error, the trail: spin -t -p -g FLAGS MODEL shows it. LIMIT is in seconds for one search, MEMORY in MB.
set -u
cd "$(dirname "$0")" || exit 1
case ${B:=build} in
/*) ;;
*) B=$(cd ../.. && pwd)/$B ;;
esac
models=$PWD
limit=${LIMIT:-300} memory=${MEMORY:-2500}
variants=0 states=0 errors=0 faults=0 found=0 bad=0

for tool in spin "${CC:=cc}"; do
	command -v "$tool" >/dev/null || { echo "model: no $tool here (make model-deps)" >&2; exit 1; }
done

# Sets $stored, $wrong (what was found, empty if nothing) and $cut (why the search is not complete, empty if it is).
search() # DIRECTORY MODEL KIND FLAGS...
{
	local dir=$1 model=$2 kind=$3 check=-DSAFETY opt=-O2 options='-m400000 -w22'

	shift 3
	stored=0 wrong='' cut=''
	rm -rf "$dir" && mkdir -p "$dir" && cp "$models/$model.pml" "$dir/" && cd "$dir" || exit 1
	case $kind in
	live | stall) check=-DNP options+=' -l' ;;
	esac
	case $kind in
	reach | fault | stall) opt=-O0 ;; # soon found
	esac
	if ! spin "$@" -a "$model.pml" >spin.log 2>&1 ||
	   ! "$CC" $opt -w $check -DNOREDUCE -DCOLLAPSE -DMEMLIM="$memory" -o pan pan.c >cc.log 2>&1; then
		cut='cannot be built'
		return
	fi
	# shellcheck disable=SC2086 # a list of words
	timeout -s INT -k 10 "$limit" nice -n 10 ./pan $options >log 2>&1
	stored=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log)
	wrong=$(sed -n 's/^pan:1: //p' log | head -n 1)
	if [ -z "$stored" ]; then
		stored=0 cut='no result'
	elif grep -q 'max search depth too small' log; then
		cut='depth limit'
	elif [ -z "$wrong" ] && grep -q 'Search not completed' log; then
		cut='time or memory limit'
	elif [ -z "$wrong" ] && ! grep -q 'errors: 0$' log; then
		cut='no verdict'
	fi
}

while read -r kind name model flags; do
	case $kind in
	'' | '#'*) continue ;;
	esac
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	t0=$(date +%s%N)
	# shellcheck disable=SC2086 # lists of words
	search "$B/model/$name" "$model" "$kind" $flags
	ms=$((($(date +%s%N) - t0) / 1000000))
	verdict='errors: 0'
	case $kind in
	sound | live)
		variants=$((variants + 1))
		states=$((states + stored))
		if [ -n "$wrong" ]; then
			errors=$((errors + 1)) verdict="ERROR: $wrong"
		elif [ -n "$cut" ]; then
			bad=1 verdict="INCOMPLETE: $cut"
		fi
		;;
	reach)
		verdict=reached
		[[ $wrong == *'assertion violated 0'* ]] || { bad=1 verdict="NOT REACHED: ${cut:-${wrong:-the search is complete}}"; }
		;;
	fault | stall)
		faults=$((faults + 1))
		if [[ $wrong == 'assertion violated'* || $wrong == 'non-progress cycle'* ]]; then
			found=$((found + 1)) verdict="found: ${wrong%% (at depth*}"
		else
			verdict="MISSED: ${cut:-${wrong:-errors: 0}}"
		fi
		;;
	*)
		echo "variants: what is '$kind'?" >&2
		exit 1
		;;
	esac
	printf '%-5s %-22s %9d states %5d.%d s  %s\n' "$kind" "$name" "$stored" $((ms / 1000)) $((ms / 100 % 10)) \
		"${verdict:0:110}"
done <"$models/variants"

echo "model: variants=$variants states=$states errors=$errors faults=$faults found=$found"
[ $errors = 0 ] && [ $bad = 0 ] && [ $faults = $found ] && [ $((variants + faults)) -gt 0 ]

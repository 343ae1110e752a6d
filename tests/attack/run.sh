#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The runner of `make attack`: each script tests/attack/*.sh, or those named, and as the very last line
#
#	attack: cases=<n> survived=<n>
#
# Status 0 when all were survived. A script that ends badly, or in which no case ran, counts as one case that was
# not. B names the build directory; what each script said is in $B/attack/.
#
#	tests/attack/run.sh [NAME ...]
set -u
cd "$(dirname "$0")/../.." || exit 1
export B=${B:-build}
out=$B/attack
LIMIT=600
cases=0 survived=0
current=

trap '[ -z "$current" ] || kill "$current" 2>/dev/null; exit 130' INT TERM HUP

if [ "$(id -u)" != 0 ]; then
	echo "tests/attack/run.sh: needs root: network namespaces and XDP" >&2
	exit 2
fi
mkdir -p "$out" || exit 1
names=("$@")
if [ ${#names[@]} = 0 ]; then
	for f in tests/attack/*.sh; do
		case $(basename "$f" .sh) in
		lib | run) ;;
		*) names+=("$(basename "$f" .sh)") ;;
		esac
	done
fi

for name in "${names[@]}"; do
	if [ ! -x "tests/attack/$name.sh" ]; then
		echo "tests/attack/run.sh: there is no attack '$name'" >&2
		exit 2
	fi
	log=$out/$name.log
	echo "== $name"
	timeout -k 10 $LIMIT "tests/attack/$name.sh" >"$log" 2>&1 </dev/null &
	current=$!
	wait $current
	status=$?
	current=
	good=$(grep -c '^survived - ' "$log")
	bad=$(grep -c '^not survived - ' "$log")
	grep -E '^(survived|not survived|# a bare link)' "$log"
	if [ $status = 124 ] || [ $status = 137 ]; then
		echo "not survived - $name: ended after $LIMIT s"
		bad=$((bad + 1))
	elif [ $((good + bad)) = 0 ] || { [ $status != 0 ] && [ "$bad" = 0 ]; }; then
		echo "not survived - $name: the script ended with status $status"
		tail -n 3 "$log"
		bad=$((bad + 1))
	fi
	cases=$((cases + good + bad)) survived=$((survived + good))
done
[ $cases = $survived ] || echo "what each said is in $out/"
echo
echo "attack: cases=$cases survived=$survived"
[ $cases -gt 0 ] && [ $cases = $survived ]

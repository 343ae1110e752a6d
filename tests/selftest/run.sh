#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Does the soak find what it is there to find? Each tests/selftest/*.fault breaks one rule in a copy of the
# engine; a soak with that copy must report a violation within its time, in a world in which the sound engine
# has none. Its worlds are calm, but where `options` of a fault say `--attack`. A fault that chance leads to too seldom
# names a world of tests/scenario/worlds instead: `world NAME`.
# The last line is
#
#	soak-selftest: faults=N found=N
#
#	run.sh [FAULT ...]    all of them without an argument
#
# From the Makefile: B, SOAK (the sound one), COMPILE (a compiler with its flags), OBJECTS and LIBS to link with. The copies stand
# before the library, so the linker takes them instead of what is there.
set -u
cd "$(dirname "$0")/../.." || exit 1
limit=${LIMIT:-60}
faults=0 found=0
[ $# -gt 0 ] || set -- tests/selftest/*.fault

for fault; do
	name=$(basename "$fault" .fault)
	dir=$B/selftest/$name
	rm -rf "$dir" && mkdir -p "$dir" || exit 1
	faults=$((faults + 1))
	# shellcheck disable=SC2086 # lists of words
	if ! sources=$(perl tests/selftest/apply.pl "$fault" "$dir") ||
	   ! $COMPILE -o "$dir/soak" $sources $OBJECTS $LIBS; then
		echo "$name: cannot be applied any more: mend tests/selftest/$name.fault"
		continue
	fi
	read -ra options < <(sed -n 's/^options //p' "$fault") || true
	options+=(--calm)
	t0=$(date +%s%N)
	world=$(sed -n 's/^world //p' "$fault")
	if [ -n "$world" ]; then
		world=tests/scenario/worlds/$world
		if "$SOAK" --script "$world" >"$dir/sound" 2>&1 && ! "$dir/soak" --script "$world" >"$dir/log" 2>&1; then
			found=$((found + 1))
			printf 'found  %-28s %7s  %s\n' "$name" '' "$world"
		else
			printf 'MISSED %-28s %7s  %s\n' "$name" '' "$world"
		fi
		continue
	fi
	# a world in which the sound engine fails too tells nothing of the fault, but must not be passed over in silence
	for try in 0 1 2; do
		timeout -k 5 $((limit * 10)) nice "$dir/soak" --seconds "$limit" --seed $((${SEED:-1} + try)) --first --no-shrink \
			"${options[@]}" >"$dir/log" 2>&1
		ms=$((($(date +%s%N) - t0) / 1000000))
		seed=$(sed -n 's/^soak: seed=\([0-9]*\): .*/\1/p' "$dir/log" | head -n 1)
		if [ -z "$seed" ] || "$SOAK" --runs 1 --seed "$seed" --no-shrink "${options[@]}" >"$dir/sound" 2>&1; then
			break
		fi
		echo "$name: the sound engine fails there too (seed $seed): another"
		: >"$dir/log"
	done
	what=$(sed -n 's/^soak: seed=\([0-9]*\): /seed \1: /p' "$dir/log" | head -n 1)
	if [ -n "$what" ]; then
		found=$((found + 1))
		printf 'found  %-28s %5d.%01d s  %s\n' "$name" $((ms / 1000)) $((ms / 100 % 10)) "$what"
	else
		printf 'MISSED %-28s %5d.%01d s  %s\n' "$name" $((ms / 1000)) $((ms / 100 % 10)) \
			"$(tail -n 1 "$dir/log")"
	fi
done
echo "soak-selftest: faults=$faults found=$found"
[ "$faults" = "$found" ]

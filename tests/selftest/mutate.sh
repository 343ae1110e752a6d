#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Which share of random mutations do the tests see? Each mutation changes one line of proxyd/engine (mutate.pl). The
# unit tests of the engine, the packet scripts, the worlds and other scenarios run on it until one fails, those named after
# the mutated file or its folder first. One line for each:
#
#	seen      by WHAT   FILE:LINE  KIND: OLD -> NEW
#	SURVIVED            FILE:LINE  KIND: OLD -> NEW
#
# A mutation that nobody could notice (mutate.pl), that does not compile, or compiles to the same code, is replaced by the
# next. The last line is
#
#	mutate: seed=N mutations=N seen=N share=N%
#
# A survivor needs a judgement by a person: a test is missing, or the mutation changes nothing that anybody can notice.
# Unit tests with sockets do not run here: on a busy machine they would fail for another reason.
# SEED draws others; ONLY=I tries mutation I of this SEED alone.
#
# From the Makefile: B, N, SEED, COMPILE, SCRIPTS and SCENARIO (what scripts and other scenarios are linked from) with
# SCRIPT_LIBS, UNIT and UNIT_LIBS, UNITS and SCENARIOS (names of the tests).
set -u
cd "$(dirname "$0")/../.." || exit 1
N=${N:-40} SEED=${SEED:-1}
dir=$B/selftest/mutate
rm -rf "$dir" && mkdir -p "$dir" || exit 1
mapfile -t sources < <(find proxyd/engine -name '*.c' | sort)

fails() # PROGRAM [ARGUMENT ...]: whether one of its tests fails, or it crashes or hangs; stops at the first
{
	! CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 900 "$@" 2>/dev/null | {
		if grep -qm 1 '^not ok'; then exit 1; fi
	}
	[ "${PIPESTATUS[*]}" != "0 0" ]
}

# Whether one of the unit tests on stdin sees the mutation whose object is $1; says which.
unit_sees() # OBJECT
{
	local test

	while read -r test; do
		# shellcheck disable=SC2086 # lists of words
		$COMPILE -o "${1%/*}/test" "$B/tests/unit/$test.o" "$1" $UNIT $UNIT_LIBS && fails "${1%/*}/test" && echo "$test" && return
	done
	return 1
}

# What sees the mutation of FILE whose object is $1; nothing on stdout when nothing does.
seen_by() # OBJECT FILE
{
	local at=${1%/*} test room named near far

	room=$(basename "$(dirname "$2")")
	named="_($room|$(basename "$2" .c))"
	mapfile -t near < <(find tests/scenario/scripts -path "*/$room/*.pkt")
	mapfile -t far < <(find tests/scenario/scripts -name '*.pkt' ! -path '*/open/*' ! -path "*/$room/*")
	# shellcheck disable=SC2086
	$COMPILE -o "$at/scripts" "$1" $SCRIPTS $SCRIPT_LIBS || return
	[ ${#near[@]} -gt 0 ] && fails "$at/scripts" "${near[@]}" && echo scripts && return
	tr ' ' '\n' <<<"$UNITS" | grep -E "$named" | unit_sees "$1" && return
	fails "$at/scripts" "${far[@]}" && echo scripts && return
	tr ' ' '\n' <<<"$UNITS" | grep -vE "$named" | unit_sees "$1" && return
	for test in $SCENARIOS $([ "$room" = announce ] && echo test_storage); do
		# shellcheck disable=SC2086
		$COMPILE -o "$at/test" "$B/tests/scenario/$test.o" "$1" $SCENARIO $SCRIPT_LIBS && fails "$at/test" && echo "$test" && return
	done
}

# Tries mutation number $1.
try()
{
	local at=$dir/$1 k copy file line what by object sound

	mkdir -p "$at"
	for ((k = 0; k < 20; k++)); do
		IFS=$'\t' read -r copy file line what < <(perl tests/selftest/mutate.pl $((SEED * 100000 + $1 * 100 + k)) "$at" "${sources[@]}") || continue
		object=${copy%.c}.o sound=$at/sound.o
		# shellcheck disable=SC2086
		$COMPILE -g0 -c -o "$object" "$copy" 2>/dev/null && $COMPILE -g0 -c -o "$sound" "$file" || continue
		[ "$(objdump -dr --no-addresses "$object" | tail -n +4)" != "$(objdump -dr --no-addresses "$sound" | tail -n +4)" ] && break
	done
	by=$(seen_by "$object" "$file")
	if [ -n "$by" ]; then
		printf 'seen      by %-22s %s:%s  %s\n' "$by" "$file" "$line" "$what"
	else
		printf 'SURVIVED  %-25s %s:%s  %s\n' "" "$file" "$line" "$what"
	fi | tee "$dir/$1.txt"
	rm -rf "$at"
}

# The sound engine must survive, or what sees a mutation sees anything.
mkdir -p "$dir/sound"
# shellcheck disable=SC2086
$COMPILE -c -o "$dir/sound/engine.o" proxyd/engine/engine.c || exit 1
by=$(seen_by "$dir/sound/engine.o" proxyd/engine/engine.c)
[ -z "$by" ] || { echo "mutate: $by fails with the sound engine, too"; exit 1; }

running=0
for ((i = 1; i <= N; i++)); do
	[ -z "${ONLY:-}" ] || [ "$ONLY" = "$i" ] || continue
	try "$i" &
	running=$((running + 1))
	[ $running -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
done
wait
all=$(cat "$dir"/*.txt | wc -l) seen=$(cat "$dir"/*.txt | grep -c '^seen')
echo "mutate: seed=$SEED mutations=$all seen=$seen share=$((all ? 100 * seen / all : 0))%"

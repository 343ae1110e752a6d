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
# SEED has an order of all mutations (mutate.pl), which an edit of the engine leaves nearly as it was. The first N are
# tried, without those that do not compile or compile to the same code. The last line is
#
#	mutate: seed=N mutations=N seen=N share=N%
#
# A survivor needs a judgement by a person: a test is missing, or the mutation changes nothing that anybody can notice.
# Unit tests with sockets do not run here: on a busy machine they would fail for another reason.
# ONLY=I tries the mutation of this SEED alone that I.txt in $B/selftest/mutate told of.
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
	! (ulimit -t 300 && CMOCKA_MESSAGE_OUTPUT=TAP exec "$@" 2>/dev/null) | {
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

# Compiles FILE with NEW in line LINE as mutation number $1; false when that fails or makes no difference.
differs() # NUMBER FILE LINE NEW
{
	local at=$dir/$1 name sound

	name=$(basename "$2" .c) sound=$dir/sound/${2//\//_}.o
	mkdir -p "$at"
	{ head -n $(($3 - 1)) "$2"; printf '%s\n' "$4"; tail -n +$(($3 + 1)) "$2"; } >"$at/$name.c"
	# shellcheck disable=SC2086
	[ -e "$sound" ] || $COMPILE -g0 -c -o "$sound" "$2"
	# shellcheck disable=SC2086
	$COMPILE -g0 -c -o "$at/$name.o" "$at/$name.c" 2>/dev/null &&
		! diff -q <(objdump -dr --no-addresses "$at/$name.o" | tail -n +4) <(objdump -dr --no-addresses "$sound" | tail -n +4) >/dev/null
}

# Tries mutation number $1.
try() # NUMBER FILE LINE WHAT
{
	local at=$dir/$1 by

	by=$(seen_by "$at/$(basename "$2" .c).o" "$2")
	if [ -n "$by" ]; then
		printf 'seen      by %-22s %s:%s  %s\n' "$by" "$2" "$3" "$4"
	else
		printf 'SURVIVED  %-25s %s:%s  %s\n' "" "$2" "$3" "$4"
	fi | tee "$dir/$1.txt"
	rm -rf "$at"
}

# The sound engine must survive, or what sees a mutation sees anything.
mkdir -p "$dir/sound"
# shellcheck disable=SC2086
$COMPILE -c -o "$dir/sound/engine.o" proxyd/engine/engine.c || exit 1
seen_by "$dir/sound/engine.o" proxyd/engine/engine.c >"$dir/sound/by" &
i=1 running=1
while [ $i -le "${ONLY:-$N}" ] && IFS=$'\t' read -r file line kind old new; do
	differs $i "$file" "$line" "$new" || continue
	if [ -z "${ONLY:-}" ] || [ "$ONLY" = $i ]; then
		try $i "$file" "$line" "$kind: $old  ->  $new" &
		running=$((running + 1))
	fi
	i=$((i + 1))
	[ $running -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
done < <(perl tests/selftest/mutate.pl "$SEED" "${sources[@]}")
wait
[ ! -s "$dir/sound/by" ] || { echo "mutate: $(cat "$dir/sound/by") fails with the sound engine, too"; exit 1; }
all=$(cat "$dir"/*.txt | wc -l) seen=$(cat "$dir"/*.txt | grep -c '^seen')
echo "mutate: seed=$SEED mutations=$all seen=$seen share=$((all ? 100 * seen / all : 0))%"

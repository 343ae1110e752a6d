#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Would the tests that doc/features.md names notice that a feature is gone? Each tests/selftest/scripts/*.fault
# removes one rule from a copy of a source file, and names the tests that must fail then:
#
#	by scripts/learning/immediate.pkt
#	by unit/test_engine_near test_running_length
#	by scenario/test_neighbours test_ack_after_full_ring
#
# Each of them must pass with the sound engine and fail with the broken one. Only the broken file is compiled.
# The last line is
#
#	scripts-selftest: faults=N found=N
#
#	scripts.sh [FAULT ...]    all of them without an argument
#
# From the Makefile: B, COMPILE (a compiler with its flags), SCRIPTS (what test_scripts is linked from) with
# SCRIPT_LIBS, UNIT (what a unit test is linked from besides its own object) with UNIT_LIBS, LD_test_NAME (what
# linking that one needs besides). The broken file stands before the libraries, so the linker takes it instead of what is there.
set -u
cd "$(dirname "$0")/../.." || exit 1
faults=0 found=0
[ $# -gt 0 ] || set -- tests/selftest/scripts/*.fault

# The program PROGRAM, sound (in $B) or broken (in DIRECTORY), on TEST; true when TEST passes. A test that does
# not exist, or a program that does not end, is neither.
passes() # PROGRAM FILE TEST
{
	local status

	if [ "$1" = scripts ]; then
		timeout -k 5 60 "$2" "tests/scenario/$3" >"$dir/log" 2>&1
	else
		CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 120 "$2" >"$dir/log" 2>&1
	fi
	status=$?
	grep -qE "^ok [0-9]+ - ${3#scripts/}$" "$dir/log" && return 0
	grep -qE "^not ok [0-9]+ - ${3#scripts/}$" "$dir/log" && return 1
	# one that ends in a crash has found something; 137: it was killed, for it did not end
	[ $status -gt 128 ] && [ $status != 137 ] && return 1
	return 2
}

# One line "by WHAT [TEST]": says what is wrong and returns false unless it finds the fault.
noticed() # WHAT [TEST]
{
	local kind=scripts program=$B/tests/scenario/test_scripts test=$1 broken=$dir/test_scripts flags

	if [ $# = 2 ]; then
		kind=unit program=$B/tests/$1 test=$2 broken=$dir/${1##*/}
	fi
	# shellcheck disable=SC2086 # lists of words
	if [ ! -e "$broken" ] && [ $kind = scripts ]; then
		$COMPILE -o "$broken" $objects $SCRIPTS $SCRIPT_LIBS || return 1
	elif [ ! -e "$broken" ]; then
		flags=LD_${1##*/}
		$COMPILE ${!flags:-} -o "$broken" "$program.o" $objects $UNIT $UNIT_LIBS || return 1
	fi
	passes $kind "$program" "$test"
	case $? in
	1) echo "$name: $* fails with the sound engine, too" && return 1 ;;
	2) echo "$name: $*: no such test" && return 1 ;;
	esac
	passes $kind "$broken" "$test"
	case $? in
	0) echo "$name: $* does not notice it" && return 1 ;;
	2) echo "$name: $* did not come to an end" && return 1 ;;
	esac
}

for fault; do
	name=$(basename "$fault" .fault)
	dir=$B/selftest/scripts/$name
	rm -rf "$dir" && mkdir -p "$dir" || exit 1
	faults=$((faults + 1))
	objects=
	sources=$(perl tests/selftest/apply.pl "$fault" "$dir") || sources=
	for s in $sources; do
		# shellcheck disable=SC2086 # a list of words
		$COMPILE -c -o "${s%.c}.o" "$s" && objects="$objects ${s%.c}.o" || sources=
	done
	if [ -z "$sources" ]; then
		echo "MISSED $name: cannot be applied any more: mend $fault"
		continue
	fi
	good=yes by=0
	while read -r what test; do
		by=$((by + 1))
		# shellcheck disable=SC2086 # the test is one word, or nothing
		noticed "$what" $test || good=no
	done < <(sed -n 's/^by //p' "$fault")
	[ $by -gt 0 ] || { echo "$name: names no test"; good=no; }
	if [ $good = yes ]; then
		found=$((found + 1))
		printf 'found  %-34s by %d\n' "$name" $by
	else
		printf 'MISSED %s\n' "$name"
	fi
done
echo "scripts-selftest: faults=$faults found=$found"
[ "$faults" = "$found" ]

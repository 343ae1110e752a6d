#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# run.sh SECONDS [TARGET ...]: each fuzzer for so long, from its corpus and what earlier runs added to it in
# $B/fuzz/found/TARGET. An input that makes it fail is kept beside that, with how to run it again. The last
# line is
#
#	fuzz: targets=N seconds=S findings=F
#
# and the status is 0 only without a finding.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
seconds=${1:?seconds}
shift
bin=$B/fuzz/tests/fuzz
found=$B/fuzz/found
targets=0 findings=0

# shellcheck disable=SC2046 # one word for each name
[ $# != 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
mkdir -p "$found" || exit 1
for t in "$@"; do
	if [ ! -x "$bin/fuzz_$t" ]; then
		echo "fuzz: $t: not built; is there a clang with its fuzzer runtime (libclang-rt-dev)?" >&2
		findings=$((findings + 1))
		continue
	fi
	mkdir -p "$found/$t"
	log=$found/$t.log
	corpus=()
	[ ! -d "tests/fuzz/corpus/$t" ] || corpus=("tests/fuzz/corpus/$t")
	"$bin/fuzz_$t" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$found/$t-" "$found/$t" "${corpus[@]}" >"$log" 2>&1
	status=$?
	targets=$((targets + 1))
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	cover=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
	printf 'fuzz: target=%s runs=%s edges=%s %s\n' "$t" "${runs:-0}" "${cover#cov: }" \
		"$([ $status = 0 ] && echo ok || echo "FINDING, status $status")"
	[ $status != 0 ] || continue
	findings=$((findings + 1))
	grep -E '^[^ ]+\.[ch]:[0-9]+: |^invariant: |runtime error:|ERROR: |^SUMMARY' "$log" | head -8 | sed 's/^/      /'
	input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
	echo "      all of it: $log"
	[ -z "$input" ] || echo "      again: $bin/fuzz_$t $input"
done
echo "fuzz: targets=$targets seconds=$seconds findings=$findings"
[ $findings = 0 ] && [ $targets != 0 ]

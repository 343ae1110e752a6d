#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# For `make coverage`: runs the unit tests and the packet scripts of a build with --coverage, then prints for each folder of
# proxyd how many of its lines they ran, and last of all
#
#	coverage: lines=N run=N percent=N
#
# What each file has is in $B/coverage.txt, and lines that nothing ran, by file. B names the build directory.
set -u
cd "$(dirname "$0")/.." || exit 1
B=${B:-build/cov}

[ -x "$B/tests/scenario/test_scripts" ] || { echo "coverage.sh: no build in $B; run make coverage" >&2; exit 1; }
find "$B" -name '*.gcda' -delete
timeout 600 env CMOCKA_MESSAGE_OUTPUT=TAP "$B/tests/scenario/test_scripts" >"$B/scripts.log" 2>&1 &
B=$B TIMES=4 tests/run.sh unit | grep -E '^FAIL|^[0-9]+ passed' | sed 's/^/unit: /'
wait
echo "scripts: $(grep -c '^ok' "$B/scripts.log") passed, $(grep -c '^not ok' "$B/scripts.log") failed"
# a file that nothing ran has left no .gcda, and counts
find "$B/proxyd" -name '*.gcno' | sort | xargs gcov -t 2>/dev/null | perl tests/coverage.pl "$B/coverage.txt"

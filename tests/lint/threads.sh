#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Which source files start threads. `make check-tsan` runs the test programs among them (`threads.sh programs` lists
# these); so none may start threads in a file that several programs share, where nobody would see which of them do.
. "$(dirname "$0")/report.inc"
# Each of these is run by check-tsan besides: the daemon's by netns/test_shards.
BESIDES='proxyd/shards/team\.c|proxyd/daemon/daemon_cores\.c|tests/bench/bench_shards\.c'
# The calls, and the daemon's function that makes one
STARTS='\b(pthread_create|thrd_create|clone3?|team_start|timer_create)\('

starters()
{
	grep -rlE "$STARTS" --include='*.[ch]' proxyd cli tests | grep -v '^proxyd/shards/team\.h$' | sort
}

programs()
{
	starters | grep -E '^tests/(unit|scenario|bpf)/test_[^/]*\.c$'
}

if [ "${1:-}" = programs ]; then
	programs
	exit
fi
[ -n "$(programs)" ] || { echo "Bail out! no test starts threads"; exit 1; }
report "what starts threads is a test program, or named here" \
	"$(comm -23 <(starters) <(programs) | grep -vxE "$BESIDES" | sed 's/$/ starts threads: does check-tsan run it?/')"
report "what is named here starts threads" \
	"$(tr '|' '\n' <<<"${BESIDES//\\/}" | comm -23 <(sort) <(starters 2>&1))"
summary

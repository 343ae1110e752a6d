#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How the engine's files hang together, measured from its object files, and who moves its marks (engine.pl). The
# last line sums it up, with two measures of style.sh beside:
#
#	lint: engine-files=N largest-cycle=N marks=N writers-per-mark=N functions-over-60=N columns-over-100=N
set -u
cd "$(dirname "$0")/../.." || exit 1

# Files of proxyd/engine that all reach each other. It only ever goes down, to 5.
CYCLE_MAX=5
# Files that move one mark.
WRITERS_MAX=1

failed=0
B=${B:-build}
if ! found=$(perl tests/lint/engine.pl "$B" 2>&1); then
	echo "not ok 1 - the engine can be measured"
	sed 's/^/# /' <<<"$found"
	echo "1..1"
	exit 1
fi
files=$(sed -n 's/^files //p' <<<"$found")
cycle=$(sed -n 's/^cycle \([0-9]*\) .*/\1/p' <<<"$found" | head -n 1)
marks=$(sed -n 's/^marks //p' <<<"$found")
writers=$(sed -n 's/^writers //p' <<<"$found")
outside=$(sed -n 's/^outside /# /p' <<<"$found")

verdict() # NUMBER GOOD NAME
{
	if [ "$2" = yes ]; then
		echo "ok $1 - $3"
	else
		echo "not ok $1 - $3"
		failed=1
	fi
}

verdict 1 "$([ "$cycle" -le $CYCLE_MAX ] && echo yes)" \
	"$cycle files of the engine call each other in a circle, $CYCLE_MAX may"
sed -n 's/^cycle \([0-9]*\) /# \1: /p' <<<"$found"
verdict 2 "$([ "$writers" -le $WRITERS_MAX ] && [ -z "$outside" ] && echo yes)" \
	"each of $marks marks is moved by its own file"
[ -z "$outside" ] || echo "$outside"
echo "1..2"

over() # functions|columns LIMIT DIRECTORY ...
{
	find "${@:3}" -name '*.[ch]' -exec perl tests/lint/measure.pl "$1" "$2" {} + | wc -l
}

echo "lint: engine-files=$files largest-cycle=$cycle marks=$marks writers-per-mark=$writers" \
	"functions-over-60=$(over functions 60 proxyd bpf cli) columns-over-100=$(over columns 100 proxyd bpf cli tests)"
exit $failed

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How the engine's files hang together, measured from its object files; which file moves its marks (engine.pl); how much
# there is to read. The last line sums it up, with two measures of style.sh beside:
#
#	lint: engine-files=N largest-cycle=N marks=N writers-per-mark=N functions-over-60=N columns-over-100=N
#		fields-per-struct=N engine-lines=N doc-words=N
set -u
cd "$(dirname "$0")/../.." || exit 1

# Files of proxyd/engine that all reach each other. It only ever goes down, to 5.
CYCLE_MAX=5
# Files that move one mark.
WRITERS_MAX=1
# How much there may be to read. These only ever go down: fields of the largest struct of proxyd/engine; lines of its
# files, to 21,000. Words of the documents and manuals are where they were to go.
FIELDS_MAX=80
LINES_MAX=25958
WORDS_MAX=32000

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
mapfile -t engine < <(find proxyd/engine -name '*.[ch]')
fields=$(perl tests/lint/measure.pl fields 0 "${engine[@]}" | sed 's/^\(.*\): \([0-9]*\) fields$/\2 \1/' | sort -rn | head -n 1)
lines=$(cat "${engine[@]}" | wc -l)
words=$(cat ./*.md doc/*.md man/*.[0-9] | wc -w)
verdict 3 "$([ "${fields%% *}" -le $FIELDS_MAX ] && echo yes)" \
	"no struct of the engine has more than $FIELDS_MAX fields (${fields#* }: ${fields%% *})"
verdict 4 "$([ "$lines" -le $LINES_MAX ] && echo yes)" "the engine has $lines lines, $LINES_MAX may be"
verdict 5 "$([ "$words" -le $WORDS_MAX ] && echo yes)" "documents and manuals have $words words, $WORDS_MAX may be"
echo "1..5"

over() # functions|columns LIMIT DIRECTORY ...
{
	find "${@:3}" -name '*.[ch]' -exec perl tests/lint/measure.pl "$1" "$2" {} + | wc -l
}

echo "lint: engine-files=$files largest-cycle=$cycle marks=$marks writers-per-mark=$writers" \
	"functions-over-60=$(over functions 60 proxyd bpf cli) columns-over-100=$(over columns 100 proxyd bpf cli tests)" \
	"fields-per-struct=${fields%% *} engine-lines=$lines doc-words=$words"
exit $failed

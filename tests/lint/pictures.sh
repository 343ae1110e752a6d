#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The README's pictures are those of the numbers beside them, and what doc/measured.md quotes is their last line.
set -u
cd "$(dirname "$0")/../.." || exit 1
dir=doc/pictures
number=0 failed=0
out=$(mktemp -d "${TMPDIR:-/tmp}/pictures.XXXXXX") || exit 1
trap 'rm -rf "$out"' EXIT

report() # NAME COMMAND...
{
	local name=$1

	shift
	number=$((number + 1))
	if "$@" >"$out/it.log" 2>&1; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		sed 's/^/# /' "$out/it.log"
		failed=1
	fi
}

drawn() # from these numbers, by make pictures
{
	local f n=0

	perl $dir/draw.pl $dir/bench-wan.txt "$out" || return
	for f in "$out"/*.svg; do
		cmp "$f" "$dir/${f##*/}" && grep -q "($dir/${f##*/})" README.md || return
		n=$((n + 1))
	done
	[ $n = "$(ls $dir/*.svg | wc -l)" ]
}

quoted()
{
	local last

	last=$(tail -n 1 $dir/bench-wan.txt) && [[ $last == bench-wan:* ]] && grep -qxF "    $last" doc/measured.md
}

no_numbers() # a result without the numbers is refused, and not drawn
{
	local to="$out/none"

	mkdir "$to" && head -n 12 $dir/bench-wan.txt >"$out/short.txt" && ! perl $dir/draw.pl "$out/short.txt" "$to" &&
		[ -z "$(ls "$to")" ]
}

report "the pictures are drawn from $dir/bench-wan.txt (else: make pictures), and README.md shows them" drawn
report "doc/measured.md quotes its last line" quoted
report "half a result is not drawn" no_numbers
echo "1..$number"
exit $failed

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The style of C sources: columns, clang-format, licence lines, length of functions.
. "$(dirname "$0")/report.inc"

# So many functions of proxyd, bpf and cli may have more than FUNCTION lines. It only ever goes down.
FUNCTIONS_MAX=0
FUNCTION=60
COLUMNS_WIDE=100
# Versions of clang-format differ in details; .clang-format is written for this one (Debian 12).
CLANG_FORMAT_MAJOR=14

mapfile -t all < <(find proxyd bpf cli tests -name '*.[ch]' | sort)
mapfile -t product < <(find proxyd bpf cli -name '*.[ch]' | sort)
[ ${#all[@]} -gt 100 ] || { echo "Bail out! the sources are not here"; exit 1; }

report "no line is wider than $COLUMNS_WIDE columns" \
	"$(perl tests/lint/measure.pl columns $COLUMNS_WIDE "${all[@]}" 2>&1)"

long=$(perl tests/lint/measure.pl functions $FUNCTION "${product[@]}" 2>&1)
n=$(grep -c . <<<"$long")
name="$n functions have more than $FUNCTION lines, $FUNCTIONS_MAX may"
if [ "$n" -le $FUNCTIONS_MAX ]; then
	report "$name" ""
	sed '/^$/d; s/^/# /' <<<"$long"
else
	report "$name" "$long"
fi

report "licence lines: // first in .c, /* */ first in .h" "$(
	for f in "${all[@]}"; do
		read -r first <"$f"
		case $f in
		*.c) want='// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause' ;;
		*) want='/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */' ;;
		esac
		[ "$first" = "$want" ] || echo "$f: the first line is not: $want"
	done)"

report "no mark of a merge is left" "$(git grep -nE '^(<<<<<<<|>>>>>>>)( |$)' -- . 2>/dev/null)"

major=$(clang-format --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
if [ "$major" = $CLANG_FORMAT_MAJOR ]; then
	report "clang-format changes nothing" "$(
		clang-format --dry-run "${all[@]}" 2>&1 | sed -n 's/^\([^ ]*: \)warning: .*/\1not as clang-format writes it/p' |
			sort -u -t: -k1,1)"
else
	number=$((number + 1))
	echo "ok $number - clang-format changes nothing # SKIP needs clang-format $CLANG_FORMAT_MAJOR, here is ${major:-none}"
fi
summary

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Citations of specifications and of rows of doc/features.md have one form, and each row that does something has code
# (cite.pl, which lists them).
set -u
cd "$(dirname "$0")/../.." || exit 1
number=0 failed=0

report() # NAME FINDINGS
{
	number=$((number + 1))
	if [ -z "$2" ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' <<<"$2"
		failed=1
	fi
}

found=$(perl tests/lint/cite.pl check 2>&1) || { echo "not ok 1 - $found"; exit 1; }
of()
{
	sed -n "s/^$1 //p" <<<"$found"
}

report "$(of spec) sections are cited, all in one form" "$(of form; of free)"
report "$(of rows) rows are cited, each is in doc/features.md" "$(of row)"
report "each row that works, if only partly, is cited where its code is" "$(of code)"
echo "1..$number"
exit $failed

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Citations of specifications and of rows of doc/features.md have one form, and each row that does something has code
# (cite.pl, which lists them).
. "$(dirname "$0")/report.inc"

found=$(perl tests/lint/cite.pl check 2>&1) || { echo "not ok 1 - $found"; exit 1; }
of()
{
	sed -n "s/^$1 //p" <<<"$found"
}

report "$(of spec) sections are cited, all in one form" "$(of form; of free)"
report "$(of rows) rows are cited, each is in doc/features.md" "$(of row)"
report "each row that works, if only partly, is cited where its code is" "$(of code)"
summary

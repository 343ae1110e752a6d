#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The table of proxyd/engine/owner/owner.c: packet scripts show each kind of evidence, and name it in a comment
# "# owner: KIND ..."; what they name is in the table.
. "$(dirname "$0")/report.inc"
rows=$(grep -oP '^\tROW\(\K\w+' proxyd/engine/owner/owner.c | sort -u)
named=$(grep -rhoP '^# owner: \K.*' tests/scenario/scripts | tr ' ' '\n' | sort -u)
[ -n "$rows" ] || { echo "Bail out! the table is not there"; exit 1; }
report "packet scripts name each kind of evidence" \
	"$(diff <(echo "$rows") <(echo "$named") | sed -n 's/^</no script names/p; s/^>/not in the table:/p')"
summary

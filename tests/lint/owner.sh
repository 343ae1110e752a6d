#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The table of proxyd/engine/owner/owner.c: packet scripts show each kind of evidence, and name it in a comment
# "# owner: KIND ..."; what they name is in the table.
set -u
cd "$(dirname "$0")/../.." || exit 1
rows=$(grep -oP '^\tROW\(\K\w+' proxyd/engine/owner/owner.c | sort -u)
named=$(grep -rhoP '^# owner: \K.*' tests/scenario/scripts | tr ' ' '\n' | sort -u)

if [ -n "$rows" ] && [ "$rows" = "$named" ]; then
	echo "ok 1 - packet scripts name each kind of evidence"
else
	echo "not ok 1 - packet scripts name each kind of evidence"
	diff <(echo "$rows") <(echo "$named") | sed -n 's/^</# no script names/p; s/^>/# not in the table:/p'
fi
echo "1..1"
[ -n "$rows" ] && [ "$rows" = "$named" ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every fault of tests/selftest still breaks the line that it was written for: whether it is found is for `make
# soak-selftest` and `make scripts-selftest`, which take long; whether there is anything to find shows at once. And
# what is to find it is there. Mutations that `make mutate` has once drawn come again after an edit of the engine.
set -u
cd "$(dirname "$0")/../.." || exit 1

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0 faults=0
for fault in tests/selftest/*.fault tests/selftest/scripts/*.fault; do
	faults=$((faults + 1))
	perl tests/selftest/apply.pl "$fault" "$dir" >/dev/null 2>>"$dir/said" || failed=$((failed + 1))
	while read -r how what _; do
		case $how in
		world) file=tests/scenario/worlds/$what ;;
		by) case $what in
			scripts/*) file=tests/scenario/$what ;;
			*) file=tests/$what.c ;;
			esac ;;
		esac
		[ -e "$file" ] && continue
		echo "$fault: there is no $file" >>"$dir/said"
		failed=$((failed + 1))
	done < <(grep -E '^(world|by) ' "$fault")
done
[ $failed = 0 ] && echo "ok 1 - $faults faults can be applied" || echo "not ok 1 - $failed of $faults faults cannot be applied"
[ ! -s "$dir/said" ] || sed 's/^/# /' "$dir/said"

mapfile -t sources < <(find proxyd/rate proxyd/rule proxyd/engine -name '*.c' ! -path proxyd/engine/engine.c)
sed '0,/^{$/s//{\n\tif (one \&\& two)\n\t\tfirst();/' proxyd/engine/engine.c >"$dir/engine.c"
change=$(diff <(perl tests/selftest/mutate.pl 1 proxyd/engine/engine.c "${sources[@]}" | cut -f 3-) \
	<(perl tests/selftest/mutate.pl 1 "$dir/engine.c" "${sources[@]}" | cut -f 3-) | grep '^[<>]' | LC_ALL=C sort)
want=$(printf '> %s\t%s\t%s\n' call 'first();' ';' condition 'if (one && two)' 'if (!(one && two))' \
	condition 'if (one && two)' 'if (one || two)')
if [ "$change" = "$want" ]; then
	echo "ok 2 - an edit adds its own mutations only"
else
	echo "not ok 2 - an edit draws other mutations"
	printf '%s\n' "$change" | sed 's/^/# /'
	failed=$((failed + 1))
fi
echo "1..2"
[ $failed = 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every fault of tests/selftest still breaks the line that it was written for: whether it is found is for `make
# soak-selftest` and `make scripts-selftest`, which take long; whether there is anything to find shows at once. And
# what is to find it is there.
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
echo "1..1"
[ $failed = 0 ]

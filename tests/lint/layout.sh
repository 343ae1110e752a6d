#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The layout of the memory that outlives a process (proxyd/layout.pl): other text makes no other layout, and neither do
# another compiler and other options; whatever makes the memory another one does.
set -u
cd "$(dirname "$0")/../.." || exit 1
top=$PWD number=0 failed=0
out=$(mktemp -d "${TMPDIR:-/tmp}/layout.XXXXXX") || exit 1
trap 'rm -rf "$out"' EXIT
HEADERS=(proxyd/{wire,store,engine,engine/*,peer}/*.h proxyd/daemon/daemon_kept.h)
SOURCES=(proxyd/store/*.c)

report() # NAME COMMAND...
{
	local name=$1

	shift
	number=$((number + 1))
	if "$@" >"$out/it.log" 2>&1; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		head -c 2000 "$out/it.log" | sed 's/^/# /'
		failed=1
	fi
}

layout() # COMPILER FILE...: of the copy
{
	local cc=$1

	shift
	(cd "$out" && "$top/proxyd/layout.pl" "$out" "$cc -std=gnu11 -D_GNU_SOURCE -Iproxyd -I$top/bpf" "$@")
}

changed() # FILE SED: which must change something in the copy; the layouts before and after it
{
	local file=$1 files=("${HEADERS[@]}") status=0

	[[ $file != *.c ]] || files=("$file")
	layout "$CC" "${files[@]}" >"$out/before" && cp "$out/$file" "$out/saved" &&
	sed -i "$2" "$out/$file" && ! cmp -s "$out/$file" "$out/saved" &&
	layout "$CC" "${files[@]}" >"$out/after" || status=1
	mv "$out/saved" "$out/$file"
	return $status
}

same()
{
	changed "$@" && [ -s "$out/before" ] && diff "$out/before" "$out/after"
}

differ() # WHAT: the two layouts, and only in that type
{
	[ "$(diff "$out/before" "$out/after" | grep '^[<>]' | cut -d' ' -f 2,3 | sort -u)" = "$1" ]
}

other() # WHAT FILE SED
{
	changed "$2" "$3" && differ "$1"
}

version() # WHAT COMPILER
{
	layout "$CC" "${HEADERS[@]}" >"$out/before" && layout "$2" "${HEADERS[@]}" >"$out/after" && differ "$1"
}

agree() # COMPILER COMPILER
{
	layout "$1" "${HEADERS[@]}" "${SOURCES[@]}" >"$out/before" && layout "$2" "${HEADERS[@]}" "${SOURCES[@]}" >"$out/after" &&
	[ "$(wc -l <"$out/before")" -gt 80 ] && diff "$out/before" "$out/after"
}

find proxyd -name '*.[ch]' | cpio -pd --quiet "$out" 2>/dev/null || cp -r proxyd "$out"
CC=${CC:-gcc}
learn=proxyd/engine/learn
report "gcc and clang agree, with other options, too" agree "gcc -O0" "clang -O2 -fsanitize=address"
report "a comment and another order of declarations: the same" \
	same $learn/cm_table.h 's,^struct cm_pending {,/* new */ struct longhaul_new; /* words */\n&,'
report "a source's comment and code: the same" same proxyd/store/wheel.c 's,^struct wheel {,static int new_one;\n/* new */\n&,'
report "a member more, in a gap" other "struct cm_pending" $learn/cm_table.h 's/^\tbool certain,/\tuint8_t more;\n&/'
report "a member of another size" other "struct cm_pending" $learn/cm_table.h 's/^\tuint8_t side, read_depth;/\tuint16_t side, read_depth;/'
report "a member of another type of that size" other "struct cm_pending" $learn/cm_table.h 's/^\tuint8_t side, read_depth;/\tint8_t side, read_depth;/'
report "two members in the other order" other "struct cm_pending" $learn/cm_table.h 's/^\tuint32_t lqpn, starting_psn,/\tuint32_t starting_psn, lqpn,/'
report "a bit field of another width" other "struct order_rec" proxyd/engine/report.h 's/^\tuint32_t psn : 24;/\tuint32_t psn : 23;/'
report "an enumeration's value" other "enum lane_state" proxyd/engine/engine.h 's/^\tLANE_DRAIN,/\tLANE_DRAIN = 4,/'
report "two enumerators in the other order" other "enum lane_state" proxyd/engine/engine.h \
	's/^\tLANE_DRAIN,/\tLANE_SWAP,/; s/^\tLANE_FAULT,/\tLANE_DRAIN,/; s/^\tLANE_SWAP,/\tLANE_FAULT,/'
report "the number that a human raises" other "enum kept_number" proxyd/engine/kept.h 's/KEPT_MEANING = 3,/KEPT_MEANING = 99,/'
report "a type that is private to a source" other "struct wheel" proxyd/store/wheel.c 's/^\tuint32_t timers;/\tuint64_t timers;/'
report "a session's" other "struct salt" proxyd/peer/session_priv.h 's/^\tbool shown;/\tuint16_t shown;/'
report "the daemon's" other "struct kept" proxyd/daemon/daemon_kept.h 's/^\tuint32_t max_conns, shards;/\tuint64_t max_conns, shards;/'
report "the version for tests of upgrades" version "struct engine" "$CC -DLONGHAUL_OTHER_LAYOUT"
echo "1..$number"
exit $failed

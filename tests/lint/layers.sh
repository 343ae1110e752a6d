#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the compiler does not check: a layer includes nothing of a higher one, the pure layers nothing that
# does I/O or reads a clock, and every file names its licence.
. "$(dirname "$0")/report.inc"

LAYERS=(wire store rate rule engine shards peer port control config host daemon)
PURE='sys/socket\.h|netinet/|poll\.h|time\.h|sys/time\.h|sys/epoll\.h|ev\.h|pthread\.h|stdio\.h'

# Files of directory $1 that include a header whose name matches $2
includes()
{
	grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]($2)" -r "$1" --include='*.[ch]'
}

above=
for ((i = ${#LAYERS[@]} - 1; i >= 0; i--)); do
	layer=${LAYERS[i]}
	# The XDP program's header is port's. The daemon shows a replay as the tool does.
	bpf= tool='cli/|version\.h|'
	case $layer in
	wire | store | rate | rule | engine | peer) bpf='|steer\.h|bpf/' ;;
	daemon) tool= ;;
	esac
	report "proxyd/$layer includes nothing above it" \
		"$(includes "proxyd/$layer" "${tool}tests/|proxyd/$above$bpf")"
	above+="|$layer/"
done
# The rooms of the engine, lowest first; roles.h and the files beside the rooms tie them together.
# number is core's other half: it translates the marks that core keeps.
ROOMS=(core/number owner learn fault reads prefetch announce link far near)
above='roles'
for ((i = ${#ROOMS[@]} - 1; i >= 0; i--)); do
	for room in ${ROOMS[i]//\// }; do
		report "proxyd/engine/$room includes no room above it" \
			"$(includes "proxyd/engine/$room" "engine/($above)[./][^\">]*")"
	done
	above+="|${ROOMS[i]//\//|}"
done
for layer in wire store rate rule engine; do
	report "proxyd/$layer is pure" "$(includes "proxyd/$layer" "$PURE")"
done
report "the engine and the wire layer do not allocate on the data path" \
	"$(grep -nE '[^_a-z](malloc|realloc)\(' -r proxyd/wire proxyd/rate proxyd/rule proxyd/engine --include='*.c')"
report "cli includes only itself, keys, values of the configuration, the CRC and the version" \
	"$(grep -nE '^#include "' -r cli --exclude-dir=wanem | grep -vE '"(cli/|peer/key\.h|config/config_value\.h|wire/crc32\.h|version\.h)')"
report "metrics includes only itself, the tool's client and the version" \
	"$(grep -nE '^#include "' -r cli/metrics --include='*.[ch]' | grep -vE '"(cli/metrics/|cli/client\.h|version\.h)')"
report "the probe includes only itself and the version" \
	"$(grep -nE '^#include "' -r cli/probe | grep -vE '"(cli/probe/|version\.h)')"
report "the emulator includes only itself, byte order and the version" \
	"$(grep -nE '^#include "' -r cli/wanem | grep -vE '"(cli/wanem/|wire/bytes\.h|version\.h)')"
report "bpf shares one header with the rest" \
	"$(grep -nE '^#include "' -r bpf | grep -v '"steer\.h"')"
report "every source names its licence in its first lines" "$(
	git ls-files 2>/dev/null | grep -E '\.(c|h|sh|pl|inc|service|bash-completion|[58])$|Makefile$' |
	while read -r f; do
		[ ! -e "$f" ] || head -n 3 "$f" | grep -q 'SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause' || echo "$f"
	done)"
summary

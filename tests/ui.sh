#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make check-ui: what an operator looks at, health, metrics and page. Every check on a line, and as the last one
#
#	ui: checks=<n> ok=<n>
set -u
cd "$(dirname "$0")/.." || exit 1
export B=${B:-build}
mkdir -p "$B/check" || exit 1
[ "$(id -u)" = 0 ] || { echo "make check-ui: needs root: network namespaces and XDP; try sudo make check-ui" >&2; exit 1; }

checks=0 ok=0
for t in tests/netns/test_health.sh tests/netns/test_metrics.sh; do
	timeout -k 10 900 "$t" </dev/null | tee "$B/check/ui.log"
	status=${PIPESTATUS[0]}
	n=$(grep -cE '^(not )?ok ' "$B/check/ui.log")
	good=$(grep -cE '^ok ' "$B/check/ui.log")
	# one that ends without a word has a check that failed
	[ "$status" = 0 ] || [ "$good" != "$n" ] || n=$((n + 1))
	checks=$((checks + n)) ok=$((ok + good))
done
echo "ui: checks=$checks ok=$ok"
[ "$checks" = "$ok" ]

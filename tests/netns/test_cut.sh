#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The WAN is cut amid a transfer at full load, for longer than hosts without appliances would wait (two seconds) and than
# the appliances wait for each other (900 ms), and comes back. Both appliances notice; hosts notice only the pause.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOST=(--size 64K --depth 16 --mtu 4096 --timeout-exp 16 --retry 7 --region 8M)
LINK=(--delay-ms 10 --rate-mbps 400)

losses() # SITE: how often it has told of a peer that is silent
{
	grep -c 'nothing heard from it' "$LAB/gw-$1.err"
}

cut() # OP: from a
{
	local status=0 sent timeouts s
	local -A before

	next_qpns
	transfer_begin "$1" a --op "$1" "${HOST[@]}" --seconds 600
	await 60 held_now && more "$1-req" 100 || status=1
	await 30 peers_up || status=1
	for s in a b; do
		before[$s]=$(losses $s)
	done
	timeouts=$(so_far "$1-req" timeouts)
	wan_stop
	for s in a b; do
		given_up $s && [ "$(losses $s)" -gt "${before[$s]}" ] &&
			await 30 log_has $s 'alarm peer-down: .*the link is cut' || status=1
	done
	# what was promised is in custody; beyond what that may hold hosts are kept waiting, without an error
	held_now || status=1
	sent=$(so_far "$1-req" messages)
	[ "$(so_far "$1-req" errors)" = 0 ] || status=1
	await 60 so_far_above "$1-req" timeouts $((timeouts + 10)) || status=1
	wan_start "${LINK[@]}"
	await 30 peers_up && await 60 so_far_above "$1-req" messages $((sent + 100)) || status=1
	enough "$1-req"
	transfer_end "$1" && intact "$1" && [ "$(got "$1-req" errors)" = 0 ] || status=1
	echo "longest gap: $(got "$1-req" gap-max-ms) ms"
	[ "$(stat_of a faults)" = 0 ] && [ "$(stat_of b faults)" = 0 ] && return $status
}

lab_up
lab_keep
wan_start "${LINK[@]}"
pair_start -g "wan-rate = 380M"
for op in write send; do
	it "the WAN cut and back: $op" cut $op
done
it "everything stops in order" pair_stop
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The host of an appliance loses its power, and all that it had in memory; it comes back, or a standby with the same address
# and key gets its cables, knowing nothing. The other appliance knows within a second. Near the responder nothing is lost.
# Near the requester, data that was acknowledged and not delivered is lost: both queue pairs fail, although their hosts would retry for
# ever, and new connections are held again.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOST=(--size 64K --depth 16 --mtu 4096 --timeout-exp 14 --region 8M)

power_lost() # SITE: nothing of the daemon is left anywhere
{
	signal "gw-$1" KILL && reap "gw-$1"
	rm -r "$(pins "$1")" && rm "$RUN/gw-$1.sock.state"
}

power_back() # SITE
{
	gateway_start "$1" && ! grep -q 'going on where' "$LAB/gw-$1.err" && await 30 peers_up
}

near_responder()
{
	local status=0

	next_qpns
	transfer_begin "$1" a --op "$1" "${HOST[@]}" --retry 7 --seconds 600
	await 60 promised_now 100 && power_lost b && given_up a && power_back b && more "$1-req" 100 || status=1
	enough "$1-req"
	transfer_end "$1" && intact "$1" && [ "$(got "$1-req" errors)" = 0 ] && [ "$(stat_of a faults)" = 0 ] && return $status
}

failed() # NAME: the endpoint's queue pair
{
	[ "$(so_far "$1" errors)" -gt 0 ] || ended "${pid[$1]}"
}

near_requester() # retries do not end: 250, a minute of them
{
	local status=0

	next_qpns
	transfer_begin "$1" a --op "$1" "${HOST[@]}" --timeout-exp 16 --seconds 600
	# more than can be under way: it is promised, and nobody else has it
	await 60 jq_true a qp 'any(.lqpn == $q and .state == "held" and ."custody-bytes" > 8000000)' --argjson q $((${qpn[a]})) &&
	power_lost a && given_up b && power_back a || status=1
	await 60 failed "$1-req" || status=1
	await 60 grep -q "FAULT: .*peer-restarted" "$LAB/gw-b.err" && [ "$(stat_of b faults)" -gt 0 ] || status=1
	reap "$1-req"
	signal "$1-resp" TERM && reap "$1-resp"
	[[ $(got "$1-req" first-error) == @(remote-operation|flushed) ]] || status=1
	jq -c '{messages, errors, "first-error", intact}' "$LAB/$1-req.out" "$LAB/$1-resp.out"
	return $status
}

anew() # a connection made afterwards is held, and works
{
	next_qpns
	transfer_begin anew a --op write "${HOST[@]}" --retry 7 --seconds 600
	await 30 held_now 100 && more anew-req 50
	enough anew-req
	transfer_end anew && intact anew && [ "$(got anew-req errors)" = 0 ]
}

lab_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M"
it "power lost near the responder: WRITE goes on, nothing is lost" near_responder write
it "power lost near the responder: SEND goes on, nothing is lost" near_responder send
it "power lost near the requester: what was promised is broken at both ends" near_requester write
it "a new connection through who comes next is held" anew
it "everything stops in order" pair_stop
exit $((tests_failed > 0))

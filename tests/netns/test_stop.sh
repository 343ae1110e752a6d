#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon ends in order, for good, or lets connections go, amid transfers at full load over 20 ms: their requests are
# carried until custody is empty, and then go over the bridge. The hosts' timers are those that network cards have by
# default (67 ms, seven retries). No queue pair fails, and the daemons drop nothing on the way.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOST=(--size 16K --rate-mbps 42 --depth 4 --mtu 4096 --timeout-exp 14 --retry 7 --region 8M)
# A busy machine may take longer over what is owed than the 10 s that are usual.
GLOBAL=(-g "wan-rate = 38M" -g "drain-timeout = 50s")
# Counters of what was dropped. Not rx-dropped: a daemon that a busy machine lets wait misses frames, and these are repaired
# like those that a link loses.
DROPS='["no-room", "foreign-requests", "order-dropped", "fault-dropped", "bad-icrc", "out-of-window", "unsealed",
	"seal-wrong", "tx-full", "tx-dropped", "faults", "lost-packets"]'

state_is() # SITE STATE: of the latest connection
{
	jq_true "$1" qp 'any(.lqpn == $q and .state == $s)' --argjson q $((${qpn[$1]})) --arg s "$2"
}

drops() # of the daemons that run, each of which must tell some
{
	local s

	for s in a b; do
		running gw-$s || continue
		cli $s -j stats show |
			jq -r --argjson d "$DROPS" --arg s $s '.[] | select(.name as $n | $d | index($n)) | "\($s) \(.group) \(.name) \(.value)"' |
			grep . || return
	done
}

none_dropped() # since $LAB/before, by the daemons that still run: a line each that tells of more
{
	drops >"$LAB/after" || return
	! grep -v -x -F -f "$LAB/before" "$LAB/after"
}

SITES=(a b) # where there are appliances

restore() # what the event has ended
{
	local s

	for s in "${SITES[@]}"; do
		running "gw-$s" || gateway_start "$s"
		cli "$s" bypass off all >/dev/null
		[ ${#SITES[@]} = 1 ] || rule_back "$s" || return
	done
	[ ${#SITES[@]} = 1 ] || await 30 peers_up
}

# amid NAME OP EVENT...: a stream from a that goes on while the event comes, and afterwards; once more where the retries of
# the host ran out, since nobody answers a READ for a far host that a busy machine does not let run
amid()
{
	local tries=3

	until stream "$@"; do
		[ $((tries -= 1)) != 0 ] && ran_out "$1" && restore || return
	done
}

stream()
{
	local name=$1 op=$2 status=0

	shift 2
	next_qpns
	transfer_begin "$name" a --op "$op" "${HOST[@]}" --seconds 600
	await 60 held_now && more "$name-req" 100 || status=1
	drops >"$LAB/before" || status=1
	"$@" || status=1
	more "$name-req" 200 || status=1
	none_dropped || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] || status=1
	echo "# $name: $(jq -r '"timeouts \(.timeouts), sent again \(.retransmits), longest gap \(."gap-max-ms") ms"' "$LAB/$name-req.out")" >>"$LAB/gaps"
	return $status
}

stop() # SITE: in order, with nothing left
{
	gateway_stop "$1" && grep -q 'stopped, nothing left in custody' "$LAB/gw-$1.err"
}

released()
{
	cli a release lqpn $((${qpn[a]})) || return
	await 30 grep -q "released: operator" "$LAB/gw-a.err" && await 60 held_now # it comes back by itself
}

bypassed()
{
	cli a bypass on all && await 30 state_is a watch && more "$1" 100 && cli a bypass off all && await 60 held_now
}

rule_gone() # SITE TRANSFER: there is no rule for it any more
{
	gateway_config "$1" "${GLOBAL[@]}" -l 10.99.1.1 -w 10.99.2.1
	in_ns "g$1" "$B/longhauld" --reload -c "$LAB/gw-$1.conf" && await 30 state_is "$1" watch && more "$2" 100
}

rule_back() # SITE
{
	gateway_config "$1" "${GLOBAL[@]}"
	in_ns "g$1" "$B/longhauld" --reload -c "$LAB/gw-$1.conf"
}

lab_up
wan_start --delay-ms 10 --rate-mbps 40
pair_start "${GLOBAL[@]}"
for op in write send read; do
	it "SIGTERM near the requester: $op" amid stop-a-$op $op stop a
	gateway_start a && await 30 peers_up
	it "SIGTERM near the responder: $op" amid stop-b-$op $op stop b
	gateway_start b && await 30 peers_up
done
for op in write read; do
	it "longhaul release: $op" amid release-$op $op released
	it "longhaul bypass: $op" amid bypass-$op $op bypassed bypass-$op-req
	it "a reload without the rule near the requester: $op" amid rule-a-$op $op rule_gone a rule-a-$op-req
	it "and with it again" rule_back a
	it "a reload without the rule near the responder: $op" amid rule-b-$op $op rule_gone b rule-b-$op-req
	it "and with it again" rule_back b
done
it "everything stops in order" pair_stop
SITES=(a)
gateway_config a -s
gateway_start a
it "SIGTERM of an appliance alone: write" amid stop-single write stop a

# The appliance near the responder is stopped while its host takes nothing, and without its peer, or that has lost its memory:
# what was on its way to the host is not delivered, and the log does not say that nothing is left.
left_behind() # NAME: a transfer; killed or forgets: what a does
{
	next_qpns
	transfer_begin "$1" a --op write "${HOST[@]}" --seconds 600
	await 60 held_now && more "$1-req" 100 && signal "$1-resp" STOP || return
	await 30 jq_true b lane 'any(."transit-packets" > 0)' || return
	signal gw-a KILL
	reap gw-a
	"$1" && ! log_has b 'nothing left in custody'
}

killed()
{
	given_up b && gateway_stop b && log_has b 'stopped, [1-9][0-9]* packets, .* hosts here: 0 of them, '
}

forgets()
{
	gateway_start a || return
	await 30 jq_true b lane 'any(.state == "drain" and ."transit-packets" > 0)' || return
	gateway_stop b
	[ $? = 1 ] && log_has b 'stopped, [1-9][0-9]* packets, .* hosts here: [1-9][0-9]* of them, '
}

begin_again()
{
	gateway_config a "${GLOBAL[@]}" && gateway_start a
	gateway_config b -g 'wan-rate = 38M' -g 'drain-timeout = 2s' && gateway_start b && await 30 peers_up
}
SITES=(a b)
it "a pair again" begin_again
it "SIGTERM near the responder, the peer is dead: it says what is left" left_behind killed
it "a pair again" begin_again
it "SIGTERM near the responder, the peer has lost its memory: it says what is lost" left_behind forgets
cat "$LAB/gaps"
exit $((tests_failed > 0))

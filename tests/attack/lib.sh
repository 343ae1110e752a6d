# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the attacks share: two sites as in tests/netns/lib.sh, a third party on their wires, and the judgement. The
# link is slow on purpose: an appliance owes something only as long as its LAN is faster, also on a busy machine.
#
# A case is a function that attacks and then judges. It sets `why` and fails when something was lost that a bare
# link keeps:
#
#	missing: ...   a completion without its delivery
#	wrong: ...     a byte that was not sent
#	dead: ...      a queue pair that failed
#	hangs: ...     one that neither works nor fails: nobody is told
#	anything else  another promise of the appliance that did not hold
#
# Where the attack can be made without appliances too, bare() runs the case so before they are started. What a
# bare link loses in the same way is no fault of the appliance: attack() then says so and counts it as survived.
. tests/netns/lib.sh

cases=0
not_survived=0
spoilt= # by the case before: what it left behind must not be blamed on the next
why=
declare -A bare_why

# attack NAME COMMAND...: one case, one line
attack()
{
	local name=$1 kind

	shift
	cases=$((cases + 1))
	[ -z "$spoilt" ] || sites_again
	spoilt=
	why=
	if "$@" >"$LAB/it.out" 2>"$LAB/it.err"; then
		echo "survived - $name"
		return 0
	fi
	kind=${why%%:*}
	spoilt=yes
	if [[ $kind == @(missing|wrong|dead|hangs) ]] && [[ ${bare_why[$name]:-} == "$kind":* ]]; then
		echo "survived - $name: no worse than a bare link ($why)"
		return 0
	fi
	not_survived=$((not_survived + 1))
	echo "not survived - $name: ${why:-see below}"
	explain
	return 1
}

# bare NAME COMMAND...: the same without appliances, for comparison; call it before they are started
bare()
{
	local name=$1

	shift
	why=
	if "$@" >"$LAB/it.out" 2>"$LAB/it.err"; then
		bare_why[$name]=
		echo "# a bare link survives: $name"
	else
		bare_why[$name]=${why:-unclear}
		echo "# a bare link does not survive: $name: $why"
	fi
	return 0
}

# Other daemons of the same configuration in the place of those that run
sites_again()
{
	local s

	for s in a b; do
		[ -n "${pid[gw-$s]:-}" ] || continue
		running gw-$s && signal gw-$s KILL
		reap gw-$s 5 2>/dev/null
		gateway_start $s
	done
	[ -z "${pid[gw-a]:-}" ] || [ -z "${pid[gw-b]:-}" ] || await 20 peers_up ||
		die "the peers do not find each other"
}

attack_exit()
{
	exit $((not_survived > 0))
}

## The third party

# forge NAMESPACE INTERFACE SITE MODE ARGUMENT...: frames there in the name of SITE's host, to the other one
forge()
{
	local ns=$1 ifname=$2 s=$3 mode=$4 o

	shift 4
	o=$(other "$s")
	in_ns "$ns" "$LAB_BIN/inject" "$mode" --if "$ifname" --from "$(addr "$s" 1)" --to "$(addr "$o" 1)" \
		--to-mac "$(mac "$o" 1)" "$@"
}

## What is known of a connection

# lane_field FIELD: of the lane of host a's requests, as a's appliance sees it
lane_field()
{
	cli a -j lane show | jq -r --argjson q $((${qpn[a]})) \
		"[.[] | select(.direction == \"out\" and .lqpn == \$q)][0].\"$1\""
}

# psn_near FIELD OFFSET: that far from a mark of the lane: epsn, the next PSN expected from the host; nxt, the next
# that was never sent over the link
psn_near()
{
	local mark

	mark=$(lane_field "$1")
	[ "$mark" != null ] || return
	echo $(((mark + $2) & 0xffffff))
}

# psn_before PSN FIELD: it is below that mark
psn_before()
{
	local mark

	mark=$(lane_field "$2")
	[ "$mark" != null ] && [ $((($1 - mark) & 0x800000)) != 0 ]
}

owes() # PACKETS: a's appliance holds more than that for its host
{
	jq_true a lane 'any(.lqpn == $q and .direction == "out" and .state == "held" and ."custody-packets" > $n)' \
		--argjson q $((${qpn[a]})) --argjson n "$1"
}

held() # the connection is in custody
{
	jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]}))
}

# No running appliance owes this connection anything; what other cases left behind does not matter
this_settled()
{
	local s

	for s in a b; do
		running gw-$s || continue
		jq_true $s qp 'map(select(.lqpn == $q or .rqpn == $q) | ."custody-packets" + ."transit-packets") |
			add // 0 | . == 0' --argjson q $((${qpn[a]})) || return
	done
}

## Transfers under attack

# stream NAME ARGUMENT...: WRITEs from a; with appliances, until they owe a lot. The hosts' timers are longer than any
# round trip here (4.096 us << 17), as whoever runs a bare link over that distance would set them.
stream()
{
	local name=$1

	shift
	for _ in 1 2 3; do
		next_qpns
		transfer_begin "$name" a --op write --depth 128 --size 64K --mtu 1024 \
			--timeout-exp 17 "$@"
		# a signal before it listens to signals would end it
		await 10 socket_open "$name-req" a 1
		if ! running gw-a; then
			why="nothing is completed"
			await 20 completed "$name-req" 10 && break
		else
			# on a machine with much else to do, a stream may have ended before it was learned
			why="the lane was never held with 2,000 packets"
			await 20 owes_or_ended "$name" 2000 && owes 2000 && break
		fi
		finish "$name" 1
	done
	running "$name-req" && why=
	[ -z "$why" ]
}

owes_or_ended() # NAME PACKETS
{
	owes "$2" || ! running "$1-req"
}

asked() # NAME LINES: the endpoint has said more than that
{
	[ "$(wc -l <"$LAB/$1.err")" -gt "$2" ] || ! running "$1"
}

# so_far NAME FIELD: of what an endpoint that still runs has done
so_far()
{
	local lines

	lines=$(wc -l <"$LAB/$1.err")
	running "$1" && signal "$1" USR1 && await 5 asked "$1" "$lines" && tail -n 1 "$LAB/$1.err" | jq -r ".\"$2\""
}

completed() # NAME COUNT: that many messages at least
{
	local n

	n=$(so_far "$1" messages) && [ "${n:-0}" -ge "$2" ]
}

delivered() # NAME COUNT
{
	local n

	n=$(so_far "$1" rx-messages) && [ "${n:-0}" -ge "$2" ]
}

# ends NAME SECONDS: the endpoint ends in that time, and while it runs something is completed every ten seconds
ends()
{
	local p=${pid[$1]} end=$((SECONDS + $2)) n=-1 next

	while [ $SECONDS -lt $end ]; do
		await 10 ended "$p" && return
		next=$(so_far "$1" messages)
		[ -n "$next" ] && [ "$next" -gt $n ] || return
		n=$next
	done
	return 1
}

# finish NAME [SECONDS]: until the requester has ended, nothing is owed, and the responder has had its time
finish()
{
	local name=$1 seconds=${2:-60} n

	if running "$name-req"; then
		ends "$name-req" "$seconds" || signal "$name-req" KILL
		reap "$name-req" 10
	fi
	if [ -s "$LAB/$name-req.out" ]; then
		await "$seconds" this_settled
		n=$(got "$name-req" messages)
		await 5 delivered "$name-resp" "${n:-0}"
	fi
	running "$name-resp" && signal "$name-resp" TERM
	reap "$name-resp" 10
	return 0
}

# kept NAME: every completion is a delivery, every byte is right, both queue pairs live
kept()
{
	local q=$LAB/$1-req.out r=$LAB/$1-resp.out

	if [ ! -s "$q" ] || [ ! -s "$r" ]; then
		why="hangs: $([ -s "$q" ] && echo responder || echo requester)"
		return 1
	fi
	why=$(jq -rs '.[0] as $q | .[1] as $r |
		if $q.op != "read" and $q.messages > $r."rx-messages" then
			"missing: \($q.messages) completions, \($r."rx-messages") delivered"
		elif ($q.intact and $r.intact) | not then "wrong: bytes that were not sent"
		elif $q.errors > 0 then "dead: requester, \($q."first-error")"
		elif $r.errors > 0 then "dead: responder, \($r."first-error")"
		elif $q.messages == 0 then "dead: nothing was completed"
		elif $q.op == "read" then ""
		elif $q.messages != $r."rx-messages" or $q.bytes != $r."rx-bytes" then
			"wrong: \($q.messages) messages sent, \($r."rx-messages") delivered"
		else "" end' "$q" "$r")
	[ -z "$why" ]
}

# carried_after NAME: a connection made afterwards is carried as ever
carried_after()
{
	next_qpns
	transfer_begin "$1" a --op write --count 600 --depth 64 --size 64K --mtu 1024 --timeout-exp 17
	finish "$1" 30
	kept "$1" || return
	jq_true a qp 'any(.lqpn == $q and ."pseudo-acks" > 0)' --argjson q $((${qpn[a]})) ||
		! why="a new connection is not accelerated: $(cli a -j qp show |
			jq -r --argjson q $((${qpn[a]})) '[.[] | select(.lqpn == $q) | .note // .state][0]')"
}

daemons_live()
{
	local s

	for s in a b; do
		running gw-$s && cli $s rule >/dev/null ||
			! why="the daemon at site $s is gone: $(tail -n 1 "$LAB/gw-$s.err")" || return
	done
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two appliances, one at each edge, on a link that loses, doubles, reorders and damages (NTT-1, NTT-10):
# every content is verified by both endpoints.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK=(--delay-ms 5 --rate-mbps 1200)

held() # SITE DIRECTION: that lane of the latest connection is in custody
{
	jq_true "$1" lane 'any(.lqpn == $q and .direction == $d and .state == "held")' --arg d "$2" \
		--argjson q $((${qpn[$1]}))
}

accelerated() # SITE: it has answered its host's latest requests in the responder's stead
{
	jq_true "$1" qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0 and
		(."learned-by" == "psn" or ."learned-by" == "peer"))' \
		--argjson q $((${qpn[$1]}))
}

# NAME FROM OP ARGUMENT...: content right, and it was the appliances that carried it
carried()
{
	local name=$1 from=$2

	shift 2
	next_qpns
	undisturbed by_appliances "$name" "$from" "$@"
}

by_appliances()
{
	transfer "$1" "$2" --op "${@:3}" && intact "$1" && accelerated "$2" && held "$(other "$2")" in
}

pseudo_acks_near() # the requester's appliance answers, the other one hides the true answers
{
	jq_true a qp 'map(."pseudo-acks") | add > 0' && jq_true b qp 'map(."pseudo-acks") | add == 0' &&
	jq_true b qp 'map(."true-acks") | add > 0' && [ "$(stat_of b true-acks)" -gt 0 ]
}

qp_shape()
{
	jq_true a qp 'type == "array" and length > 0 and all(
		(."lan-ip" == "10.77.1.1") and (."wan-ip" == "10.77.2.1") and
		(.lqpn | type == "number") and (.rqpn | type == "number") and
		(.state | type == "string") and (."learned-by" | type == "string") and
		(.policy | type == "string") and
		all(."custody-bytes", ."pseudo-acks", ."true-acks", ."dropped-duplicates", .retransmits;
			type == "number" and . >= 0))'
}

right_pair() # NTT-3: the QPNs of the endpoints, each on its side
{
	local l=$((${qpn[a]})) r=$((${qpn[b]}))

	jq_true a qp 'any(.lqpn == $l and .rqpn == $r)' --argjson l $l --argjson r $r &&
	jq_true b qp 'any(.lqpn == $r and .rqpn == $l)' --argjson l $l --argjson r $r
}

lab_up
wan_start "${LINK[@]}"
pair_start

it "NTT-1 WRITE from a: carried by the pair, content right" carried write-a a write --count 600 --mtu 4096
it "NTT-1 the near appliance answers, the far one keeps the true answers" pseudo_acks_near
it "NTT-3 the pair of queue pairs is the right one" right_pair
it "qp show: an array of objects with the fields that scripts rely on" qp_shape
it "NTT-1 WRITE from b" carried write-b b write --count 600 --mtu 4096
it "NTT-1 SEND from a" carried send-a a send --count 600 --mtu 4096
it "NTT-1 SEND from b" carried send-b b send --count 600 --mtu 4096
it "path MTU 1024, WRITE" carried write-1k a write --count 400 --mtu 1024
it "path MTU 1024, SEND of odd sizes" carried send-1k b send --count 2000 --size 5001 --mtu 1024

two_ways()
{
	next_qpns
	both_ways both 400 --op write --mtu 4096 && complete both 400 &&
	[ "$(got both-resp messages)" = 400 ] && held a out && held a in && held b out && held b in
}
it "one connection, WRITEs both ways at once: four lanes" undisturbed two_ways

two_qps()
{
	next_qpns
	transfer two a --op write --count 800 --qps 2 --mtu 4096 && intact two &&
	jq_true a qp '[.[] | select(.lqpn == $q or .lqpn == $q + 1) |
		select(.rqpn - .lqpn == $d and ."pseudo-acks" > 0)] | length == 2' \
		--argjson q $((${qpn[a]})) --argjson d $((${qpn[b]} - ${qpn[a]}))
}
it "two queue pairs at once, each with its partner" two_qps

# The first packet opens the lane, and has a link measured that was quiet: what explains its seal goes before it
opened_at_once()
{
	local bad opens

	next_qpns
	bad=$(stat_of b bad-icrc) opens=$(stat_of a opens)
	transfer at-once a --cm --op write --count 200 --size 64K --depth 100 --mtu 4096 && intact at-once &&
	[ "$(stat_of a opens)" -gt "$opens" ] && [ "$(stat_of b bad-icrc)" = "$bad" ] && [ "$(got at-once-resp bad-icrc)" = 0 ]
}
it "no frame comes before what explains it where a lane begins on a quiet link" opened_at_once

collective() # as NCCL: two channels of four queue pairs, each message cut over all, a flag on each, credits back
{
	next_qpns
	# 50 rounds, and a credit for each
	both_ways nccl 800 --op flags --qps 8 --size 32768 --mtu 4096 --expect-messages 850 && intact nccl && complete nccl 850 &&
	jq_true a qp '[.[] | select(.lqpn >= $q and .lqpn < $q + 8 and .rqpn - .lqpn == $d and ."pseudo-acks" > 0)] | length == 8' \
		--argjson q $((${qpn[a]})) --argjson d $((${qpn[b]} - ${qpn[a]}))
}
it "chunks cut over eight queue pairs, flags, credits: content right, all accelerated" undisturbed collective

same_psns() # the hardest case for learning by PSN: nothing but time tells them apart
{
	local s

	next_qpns
	for s in a b; do psn[$s]=0; done
	transfer same a --op send --count 600 --qps 4 --mtu 4096 --psn-step 0 && intact same &&
	jq_true a qp 'all(.[] | select(.lqpn >= $q and .rqpn != null); .rqpn - .lqpn == $d)' \
		--argjson q $((${qpn[a]})) --argjson d $((${qpn[b]} - ${qpn[a]}))
}
if "$LAB_BIN/endpoint" --help | grep -q psn-step; then
	it "four queue pairs that all start at PSN 0 are never paired wrongly" same_psns
else
	not_ours() # another endpoint program each, for the same PSNs
	{
		local s

		next_qpns
		for s in a b; do psn[$s]=0; done
		transfer_begin zero1 a --op send --count 300 --mtu 4096
		for s in a b; do qpn[$s]=$(printf '0x%x' $((${qpn[$s]} + 1))); done
		transfer_begin zero2 a --op send --count 300 --mtu 4096
		transfer_end zero1 && transfer_end zero2 && intact zero1 && intact zero2 &&
		jq_true a qp 'all(.[] | select(.lqpn >= $q and .rqpn != null); .rqpn - .lqpn == $d)' \
			--argjson q $((${qpn[a]} - 1)) --argjson d $((${qpn[b]} - ${qpn[a]}))
	}
	it "two queue pairs that both start at PSN 0 are never paired wrongly" not_ours
fi

wrap()
{
	psn[a]=0xfffff0
	carried wrap a write --count 600 --mtu 4096
}
it "PSNs wrap" wrap

reads()
{
	next_qpns
	transfer reads a --op read --count 300 --mtu 4096 && complete reads 300
}
it "READ passes" reads

atomics()
{
	next_qpns
	transfer atomics a --op atomic --count 300 && complete atomics 300
}
it "NTT-9 ATOMIC passes" atomics

mixed()
{
	next_qpns
	transfer mixed a --op mix --count 1500 --size 20000 --mtu 1024 && complete mixed 1500 &&
	jq_true a qp 'any(.lqpn == $q and ."pseudo-acks" > 0)' --argjson q $((${qpn[a]}))
}
it "SEND, WRITE, with and without immediate, READ and ATOMIC in one queue, in order with custody" mixed

wan_stop
wan_start "${LINK[@]}" --loss 0.01
it "1 % loss, WRITE" carried loss-write a write --count 1000 --mtu 4096
it "1 % loss, SEND" carried loss-send b send --count 1000 --mtu 4096
it "the appliances repaired it: no host saw most of it" eval '[ $(($(stat_of a retx-wan) + $(stat_of b parity-repaired))) -gt 50 ]'
it "1 % loss, a mix of all" mixed
it "1 % loss, both ways" undisturbed two_ways
wan_stop
wan_start "${LINK[@]}" --dup 0.01 --reorder 0.01 --corrupt 0.005 --loss 0.005
it "duplicates, disorder, damage and loss, WRITE" carried mess-write b write --count 800 --mtu 4096
it "duplicates, disorder, damage and loss, SEND" carried mess-send a send --count 800 --mtu 1024
it "damaged packets were refused by the appliance" eval '[ $(stat_of b bad-icrc) -gt 0 ]'

honest()
{
	next_qpns
	transfer honest a --op write --count 300 --mtu 4096 && intact honest &&
	jq_true a qp 'any(.policy == "honest" and .lqpn == $q and .state == "held")' \
		--argjson q $((${qpn[a]})) &&
	# a completion takes a true round trip, or more
	[ "$(got honest-req latency-us | cut -d. -f1)" -ge 10000 ]
}
off()
{
	next_qpns
	transfer off a --op write --count 300 --mtu 4096 && intact off &&
	jq_true a qp 'any(.policy == "off" and .lqpn == $q and .state == "held")' \
		--argjson q $((${qpn[a]})) && [ "$(got off-req latency-us | cut -d. -f1)" -ge 10000 ]
}
it "the appliances stop with nothing owed" pair_stop
wan_stop
wan_start "${LINK[@]}" --loss 0.001
pair_start -r "policy = honest"
it "policy honest: completions take the true round trip" honest
pair_stop
pair_start -r "policy = off"
it "policy off: only the responder acknowledges" off
pair_stop
# messages of one packet do not tell the path MTU
pair_start -g "busy-poll = 10ms" -r "path-mtu = 1024"
it "messages of one packet: WRITE" carried write-only a write --count 4000 --size 1000 --mtu 1024
it "messages of one packet: SEND" carried send-only b send --count 4000 --size 100 --mtu 1024

ticks_in() # SECONDS: of processor time of the appliance near a
{
	local before after

	before=$(awk '{ print $14 + $15 }' "/proc/${pid[gw-a]}/stat")
	sleep "$1"
	after=$(awk '{ print $14 + $15 }' "/proc/${pid[gw-a]}/stat")
	echo $((after - before))
}

# A message each 4 ms needs some hundredths of a processor.
looks()
{
	next_qpns
	transfer_begin slow a --op write --seconds 600 --size 1000 --mtu 1024 --rate-mbps 2 --depth 1 &&
		await 30 jq_true a qp 'any(.state == "held")' && await 30 uses 20 100 && enough slow-req &&
		transfer_end slow && await 30 uses 0 5
}
uses() # FROM TO: percent of a processor
{
	local n=$(($(ticks_in 1) * 100 / $(getconf CLK_TCK)))

	[ $n -ge "$1" ] && [ $n -le "$2" ]
}
it "busy-poll: an appliance looks for frames while some come, and sleeps when none do" looks
exit $((tests_failed > 0))

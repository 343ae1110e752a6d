#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# DSCP and ECN. What hosts set crosses both appliances as it is, also in what is sent again; a link that clears the DSCP
# does no harm; packets that it marks (ECN) are counted for each peer, and the mark reaches the host. With dscp in a rule
# that is what its packets bear on the WAN and behind it, and reports to its peer; a reload changes it amid a transfer.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# What an endpoint received, as "TOS TOS ...", those of fewer frames than a twentieth left out
heard() # NAME
{
	jq -r '."rx-tos" | (map(values) | add) as $all | [to_entries[] | select(.value * 20 > $all) | .key] | join(" ")' "$LAB/$1.out"
}

only() # NAME TOS: nothing but that, at all
{
	jq -e --arg t "$2" '."rx-tos" | keys == [$t]' "$LAB/$1.out" >/dev/null || { jq -c '."rx-tos"' "$LAB/$1.out" >&2; false; }
}

# NAME TOS FAR-TOS ARGUMENT...: from a to b, and held. Both hosts send TOS, the responder hears FAR-TOS. ACKs that the
# appliance at a makes bear what the far host's packets bear.
crosses()
{
	local name=$1 tos=$2 far=$3

	shift 3
	next_qpns
	transfer "$name" a --mtu 4096 --tos "$tos" "$@" && intact "$name" && only "$name-resp" "$far" && only "$name-req" "$tos" &&
	jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]}))
}

again() # it has been repaired on the WAN
{
	[ "$(stat_of a retx-wan)" -gt "$before" ]
}

dscp_of() # SITE VALUE: of the rule, as rule show has it
{
	jq_true "$1" rule 'all(.dscp == $v)' --argjson v "$2"
}

set_dscp() # SITE VALUE
{
	sed -i "/^dscp = /d; s/^policy = .*/&\ndscp = $2/" "$LAB/gw-$1.conf"
	cli "$1" reload >/dev/null
}

# A reload has been a while ago: PSNs tell queue pairs again
learnt()
{
	next_qpns
	transfer_until held_now "learnt-$1" a --op write --mtu 4096
}

reports_bear() # TOS: those from site a, as they come in at the emulator
{
	[ "$(in_ns wan timeout 20 tcpdump -nn -v -c 20 -i a -Q in "udp dst port 4797" 2>/dev/null | grep -o 'tos 0x[0-9a-f]*' | sort -u)" = "tos $1" ]
}

# Reloads amid a transfer, from cs5 (160): nothing of it is lost, and from then on its packets bear the new one
amid_reload()
{
	local status=0

	next_qpns
	transfer_begin live a --op write --mtu 4096 --tos 104 --rate-mbps 200 --seconds 600
	await 30 held_now || status=1
	set_dscp a ef && more live-req 300 || status=1
	set_dscp a keep && more live-req 300 || status=1
	enough live-req
	transfer_end live && intact live &&
		jq -e '."rx-tos" | keys == ["104", "160", "184"]' "$LAB/live-resp.out" >/dev/null && [ $status = 0 ]
}

marked() # SITE: packets
{
	cli "$1" -j peer | jq '.[0]."ecn-marked"'
}

lab_up
wan_start --delay-ms 5 --rate-mbps 800 --loss 0.01
pair_start
before=$(stat_of a retx-wan)
it "WRITE: DSCP 26 and ECT(0) as its host has set them" crosses write 106 106 --op write --count 500
it "also in what was sent again" again
it "SEND: DSCP 46" crosses send 184 184 --op send --count 300
it "READ: the answers, too" crosses read 106 106 --op read --count 200
FAMILY=6
it "IPv6" crosses v6 106 106 --op write --count 300
FAMILY=4
wan_stop
wan_start --delay-ms 5 --bleach --mark 0.05
it "a link that clears the DSCP and marks: held, content right" eval '
	next_qpns; await 20 peers_up; transfer bleached a --mtu 4096 --tos 106 --op write --count 500 && intact bleached'
it "the far host hears the marks and the ECN of others, without DSCP" eval 'jq -e ".\"rx-tos\" | keys == [\"2\", \"3\"]" "$LAB/bleached-resp.out"'
it "the peer counts what was marked" eval '[ "$(marked b)" -gt 100 ]'
it "READ over it" eval 'next_qpns; transfer bleached-read a --mtu 4096 --tos 106 --op read --count 100 && intact bleached-read'
wan_stop
wan_start --delay-ms 5
it "dscp = cs5 in the rule, by a reload" eval 'await 20 peers_up && set_dscp a cs5 && dscp_of a 40 && dscp_of b null'
it "connections are learned again" learnt cs5
it "the packets of its hosts bear it, and their ECN; those of the far side do not" crosses cs5 106 162 --op write --count 500
it "what passes as well: ATOMICs" eval 'next_qpns; transfer atomic a --tos 106 --op atomic --count 50 && only atomic-resp 162 &&
	only atomic-req 106'
it "IPv6" eval 'FAMILY=6 crosses cs5-v6 106 162 --op write --count 300'
if command -v tcpdump >/dev/null; then
	it "reports to the peer bear it" reports_bear 0xa0
else
	skip "reports to the peer bear it" "needs tcpdump"
fi
it "a reload amid a transfer" amid_reload
it "a value that is none is refused, and nothing changes" eval '! set_dscp a 64 2>/dev/null && dscp_of a null'
exit $((tests_failed > 0))

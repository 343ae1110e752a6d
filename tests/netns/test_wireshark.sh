#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Wireshark dissector (conf/longhaul.lua) decodes what two daemons send each other: kinds in clear, messages
# with the key. Skipped without tshark.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

if ! command -v tshark >/dev/null || ! command -v dumpcap >/dev/null; then
	skip "the dissector" "needs tshark"
	exit 0
fi

read_with() # OPTION...: tshark on the capture, with the dissector
{
	tshark -X "lua_script:conf/longhaul.lua" -r "$LAB/link.pcapng" "$@" 2>"$LAB/tshark.err"
}

fields() # FILTER FIELD...: of the opened messages
{
	local filter=$1 f args=()

	shift
	for f in "$@"; do args+=(-e "$f"); done
	read_with -o "longhaul.keys:$LAB/key" -Y "$filter" -T fields -E occurrence=a "${args[@]}"
}

lab_up
wan_start --delay-ms 2 --rate-mbps 1200 --loss 0.002
# what comes in at either side: the emulator's own frames bypass taps
spawn dump wan dumpcap -q -f "udp port 4797" -i a -i b -w "$LAB/link.pcapng"
await 30 grep -q "File:" "$LAB/dump.err" || die "dumpcap does not start: $(cat "$LAB/dump.err")"
pair_start -g "wan-rate = auto up to 1100M" -r "order = hosts"
transfer one a --op write --count 600 --mtu 4096
q=$(printf '0x%06x' $((${qpn[b]})))
await 30 jq_true a stats 'any(.name == "true-acks" and .value > 0)'
pair_stop
# it writes what it has a moment later
bye()
{
	fields "longhaul.type == 4" longhaul.bye | grep -q 1
}
await 30 bye
signal dump INT
reap dump

clear() # two HELLOs at least, and DATA
{
	[ "$(read_with -Y 'longhaul.kind == 1' | wc -l)" -ge 2 ] && [ "$(read_with -Y 'longhaul.kind == 2' | wc -l)" -ge 2 ] &&
	! read_with -Y longhaul.type | grep -q . && ! grep -qi "error" "$LAB/tshark.err"
}
it "without a key: kinds, sessions and numbers" clear
it "HELLO names both nodes" eval '[ "$(fields longhaul.node longhaul.node | sort -u | xargs)" = "edge-a edge-b" ]'
it "and what they serve" eval 'fields "longhaul.node == \"edge-b\"" longhaul.prefix | grep -q "::ffff:$(addr b 1)"'
it "heartbeats" eval 'fields longhaul.sent longhaul.held | grep -q "[1-9]"'
it "LANE OPEN names the queue pair and the path MTU" eval '
	fields "longhaul.type == 16" longhaul.qpn longhaul.path_mtu longhaul.source longhaul.destination |
	grep -i "$q.*4096" | grep "$(addr a 1).*$(addr b 1)"'
it "LANE OPEN bears the key of the seal" eval 'fields "longhaul.type == 16" longhaul.seal_key | grep -q "[0-9a-f]\{32\}"'
it "LANE OPEN tells the log of its hosts" eval 'fields "longhaul.type == 16" longhaul.log longhaul.birth | grep -q .'
it "ORDER gives records" eval 'fields "longhaul.type == 24" longhaul.record.lane longhaul.record.psn longhaul.record.kind | grep -q 0x'
it "METER tells what was sent and what came" eval '
	fields "longhaul.type == 26 && longhaul.got_bytes > 0" longhaul.sent_bytes longhaul.got_bytes longhaul.got_packets | grep -q "[1-9]"'
it "PROBE and PROBED tell what the link carries" eval '
	fields "longhaul.type == 6" longhaul.size longhaul.carried | grep -q 4188 && fields "longhaul.type == 7" longhaul.size | grep -q 4188'
it "LANE ACCEPT" eval 'fields "longhaul.type == 17" longhaul.lane | grep -q .'
it "LANE PROGRESS: marks that move, and holes" eval '
	[ "$(fields "longhaul.type == 19" longhaul.cum | tr , "\n" | sort -u | wc -l)" -gt 5 ] &&
	fields "longhaul.holes > 0" longhaul.hole.from longhaul.hole.end | grep -q 0x'
it "BYE" bye
it "all that is well formed is opened: nothing malformed, nothing left sealed" eval '
	[ "$(fields longhaul longhaul.kind | wc -l)" = "$(fields longhaul.type longhaul.kind | wc -l)" ] &&
	! read_with -o "longhaul.keys:$LAB/key" -Y "_ws.malformed || _ws.lua.error" | grep -q .'
"$B/longhaul" keygen "$LAB/other" || die "no key"
it "another key opens nothing" eval '! read_with -o "longhaul.keys:$LAB/other" -Y longhaul.type | grep -q .'
exit $((tests_failed > 0))

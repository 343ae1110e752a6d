#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What an operator does while transfers run: monitor, top, capture, release, bypass, clear, bundle. None of it costs
# a transfer a byte.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

q() # the queue pair number of the latest connection at site a, as jq's argument
{
	echo $((${qpn[a]}))
}

is_held()
{
	jq_true a qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' --argjson q "$(q)"
}

is_bypassed() # all of it passes, and the note says why
{
	jq_true a qp 'any(.lqpn == $q and .state == "watch" and (.note | startswith("bypassed")))' --argjson q "$(q)"
}

let_go() # since COUNT of log lines: released by the operator
{
	[ "$(grep -c 'released: operator' "$LAB/gw-a.err")" -gt "$1" ]
}

# amid NAME COMMAND...: while WRITEs from a are held; content right afterwards
amid()
{
	local name=$1 bad=0

	shift
	next_qpns
	transfer_begin "$name" a --op write --mtu 4096 --rate-mbps 10 --seconds 600
	await 90 is_held || bad=1
	"$@" || bad=1
	running "$name-req" && enough "$name-req"
	transfer_end "$name" && intact "$name" && [ $bad = 0 ]
}

released()
{
	local n

	n=$(grep -c 'released: operator' "$LAB/gw-a.err")
	cli a release lqpn "$(q)" | grep -q "^released 1 connection (lqpn $(q)): " && await 90 let_go "$n" && await 90 is_held
}

bypassed() # ANSWER WHAT...
{
	local answer=$1

	shift
	# answered by what was asked for, and the next look at the status has it
	cli a bypass on "$@" | grep -q "^bypass is on for $answer\$" &&
	jq_true a status 'any(.name == "bypass" and .state == "raised")' && await 90 is_bypassed &&
	cli a bypass off "$@" | grep -q 'bypass is off' && jq_true a status 'all(.name != "bypass" or .state == "ok")' &&
	await 90 is_held
}

bypassed_over_reload() # a rule keeps it by its name
{
	cli a bypass on rule hosts && await 90 is_bypassed &&
	printf '[rule before]\nlan = 10.99.0.0/16\nwan = 10.98.0.0/16\npolicy = early\n' >"$LAB/rules" &&
	cp "$LAB/gw-a.conf" "$LAB/old.conf" &&
	awk -v f="$LAB/rules" '/^\[rule hosts\]/ { while ((getline l < f) > 0) print l } { print }' \
		"$LAB/old.conf" >"$LAB/gw-a.conf"
	signal gw-a HUP && await 30 jq_true a rule 'length == 2 and .[0].name == "before"' &&
	is_bypassed && cli a bypass off all && await 90 is_held
}

captured() # what came and what left, at both ports, with comments that tshark shows
{
	local s

	for s in a b; do
		cli $s -n 2000 capture "$LAB/cap-$s.pcapng" lqpn $((${qpn[$s]})) 2>"$LAB/capture.err" &&
		grep -q '^2[0-9]* frames captured' "$LAB/capture.err" &&
		tshark -r "$LAB/cap-$s.pcapng" -T fields -e frame.interface_name -e frame.packet_flags_direction \
			-e frame.comment >"$LAB/cap-$s.txt" 2>/dev/null || return
	done
	grep -qE '^lan.*1.in at lan: taken into custody.*; lane out held epsn 0x' "$LAB/cap-a.txt" &&
	grep -qE '^wan.*2.out at wan: sent by the appliance in its turn' "$LAB/cap-a.txt" &&
	grep -qE '^lan.*2.out at lan: .*pseudo-acks \+' "$LAB/cap-a.txt" &&
	grep -qE '^wan.*1.in at wan: taken into custody' "$LAB/cap-b.txt" &&
	grep -qE '^lan.*2.out at lan: ' "$LAB/cap-b.txt" &&
	grep -qE '^lan.*1.in at lan: consumed: it acknowledges.*true-acks \+' "$LAB/cap-b.txt"
}

as_passed() # of a connection that is bypassed every frame leaves as it came
{
	cli a bypass on lqpn "$(q)" && await 90 is_bypassed &&
	cli a -n 100 capture "$LAB/pass.pcapng" lqpn "$(q)" 2>/dev/null &&
	tshark -r "$LAB/pass.pcapng" -T fields -e frame.comment 2>/dev/null >"$LAB/pass.txt" &&
	grep -q 'in at lan: passed on as it came' "$LAB/pass.txt" && grep -q 'out at wan: as it came' "$LAB/pass.txt" &&
	cli a bypass off all
}

one_capture() # at a time, and its end is noticed
{
	spawn cap1 ga "$B/longhaul" -s "$LAB/gw-a.sock" capture "$LAB/c1.pcapng" lqpn "$(q)"
	await 30 grep -q capturing "$LAB/cap1.err" || return
	says 1 "another capture runs" cli a capture "$LAB/c2.pcapng" lqpn "$(q)" || return
	signal cap1 INT && reap cap1 && await 30 cli a -n 1 capture "$LAB/c3.pcapng" lqpn "$(q)"
}

says() # STATUS PATTERN COMMAND...
{
	local want=$1 pattern=$2

	shift 2
	"$@" >"$LAB/says.out" 2>"$LAB/says.err"
	[ $? = "$want" ] && [ ! -s "$LAB/says.out" ] && grep -q -- "$pattern" "$LAB/says.err"
}

top_shown() # on a terminal: the queue pair with its rate
{
	COLUMNS=170 LINES=30 TERM=xterm script -qec "stty cols 170 rows 30; $B/longhaul -s $LAB/gw-a.sock -w0.5 -n 4 top" \
		"$LAB/top.out" >/dev/null </dev/null && tr -d '\r' <"$LAB/top.out" >"$LAB/top.txt" &&
	grep -q "LAN-IP" "$LAB/top.txt" && grep -q "OUT-BIT/S" "$LAB/top.txt" &&
	grep -qF "$(printf '0x%x' "$(q)")" "$LAB/top.txt" && grep -qE '[0-9][kMG]bit/s, in' "$LAB/top.txt"
}

monitored()
{
	local bad=0 e

	spawn monitor ga "$B/longhaul" -s "$LAB/gw-a.sock" monitor
	await 30 grep -q following "$LAB/monitor.out" || return
	transfer_again m1 || bad=1
	gateway_stop b && await 30 grep -q '"event":"peer-down"' "$LAB/monitor.out" &&
	await 30 grep -q '"event":"alarm","name":"peer-down"' "$LAB/monitor.out" || bad=1
	gateway_start b && await 30 peers_up || bad=1
	await 30 grep -q '"event":"alarm-over"' "$LAB/monitor.out" || bad=1
	for e in learned held peer-restarted; do
		grep -q "\"event\":\"$e\"" "$LAB/monitor.out" || bad=1
	done
	# every line is one object with a time
	jq -se '.[1:] | length > 3 and all(."time-ms" > 1600000000000 and (.event | type == "string"))' \
		"$LAB/monitor.out" >/dev/null || bad=1
	signal monitor INT
	reap monitor
	[ $bad = 0 ]
}

transfer_again()
{
	next_qpns
	transfer "$1" a --op write --count 300 --mtu 4096 && intact "$1"
}

cleared()
{
	local before after

	before=$(stat_of a rx-lan)
	cli a clear | grep -q 'counters cleared' && after=$(stat_of a rx-lan) &&
	[ "$before" -gt 1000 ] && [ "$after" -lt "$before" ] &&
	jq_true a stats 'any(.name == "rx-lan" and .total >= $b)' --argjson b "$before"
}

bundled()
{
	cli a bundle "$LAB/bundle.tar.gz" >/dev/null && tar -tzf "$LAB/bundle.tar.gz" >"$LAB/bundle.txt" &&
	for p in qp.json stats.json status.json uname.txt link.txt log.txt included.txt version.txt; do
		grep -q "$p" "$LAB/bundle.txt" || return
	done
	tar -xzOf "$LAB/bundle.tar.gz" ./qp.json | jq -e 'length > 0' >/dev/null &&
	! tar -xzOf "$LAB/bundle.tar.gz" | grep -qF "$(cat "$LAB/key")" &&
	[ "$(stat -c %a "$LAB/bundle.tar.gz")" = 600 ]
}

lab_up
wan_start --delay-ms 5 --rate-mbps 300
pair_start -g "wan-rate = 280M"
it "release: delivered, let go, held again; content right" amid release released
it "bypass of one connection, and off again" amid bypass-one eval 'bypassed "1 connection (lqpn $(q))" lqpn "$(q)"'
it "bypass of a rule" amid bypass-rule bypassed 'rule hosts' rule hosts
it "bypass of all" amid bypass-all bypassed everything all
it "bypass of a rule outlives a reload, by name" amid bypass-reload bypassed_over_reload
if command -v tshark >/dev/null; then
	it "capture: both ports, both directions, comments; tshark reads it" amid capture captured
	it "capture of what passes says so" amid capture-pass as_passed
else
	it "capture # SKIP needs tshark" true
fi
it "capture: one at a time" amid capture-one one_capture
it "top: rates on a terminal" amid top top_shown
it "top without a terminal: one line" says 1 "needs a terminal" cli a top
it "monitor: events as they happen" monitored
it "clear: counters count from now on, totals go on" cleared
it "bundle: everything, no key, for its owner only" bundled
it "bundle does not overwrite" says 1 "exists already" cli a bundle "$LAB/bundle.tar.gz"
it "release of nothing in particular: refused" says 1 "release what" cli a release
it "release of what is not there: one line" says 1 "no connection matches" cli a release lqpn 0xabcdef
it "bypass of what: one line" says 1 "bypass what" cli a bypass on
it "bypass of no rule: one line" says 1 "no such rule" cli a bypass on rule nobody
it "capture without a connection: one line" says 1 "write capture FILE\|no connection" cli a capture "$LAB/x.pcapng" lqpn 0xabcdef
exit $((tests_failed > 0))

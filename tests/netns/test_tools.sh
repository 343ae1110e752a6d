#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The tools as an operator sees them: views of a running daemon, the check of a configuration, refusals
# to start, replay.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

array() # OBJECT: -j is an array of objects, at least one
{
	jq_true a "$1" 'type == "array" and length > 0 and all(type == "object")'
}

pretty() # OBJECT: -p is the same objects, indented; counters may have moved
{
	# a counter that was zero is shown from then on
	await 30 same_keys "$1" &&
	[ "$(cli a -p "$1" | wc -l)" -gt "$(cli a -j "$1" | wc -l)" ]
}

same_keys() # OBJECT
{
	[ "$(cli a -p "$1" show | jq -S 'map(keys)')" = "$(cli a -j "$1" show | jq -S 'map(keys)')" ]
}

table() # OBJECT HEAD: a line of heads in capitals and one at least below it
{
	local out

	out=$(cli a "$1" show) || return
	[ "$(head -1 <<<"$out" | awk '{ print $1 }')" = "$2" ] && [ "$(wc -l <<<"$out")" -gt 1 ]
}

details() # OBJECT KEY: -d tells what the table leaves out
{
	cli a -d "$1" show | grep -q "$2" && ! cli a "$1" show | grep -q "$2"
}

one_line() # STATUS PATTERN COMMAND...: it fails with the status and one line that has the pattern
{
	local status=$1 pattern=$2

	shift 2
	"$@" >"$LAB/one.out" 2>"$LAB/one.err"
	[ $? = "$status" ] && [ ! -s "$LAB/one.out" ] && [ "$(wc -l <"$LAB/one.err")" = 1 ] &&
	grep -q -- "$pattern" "$LAB/one.err"
}

config() # TEXT: on top of a good [longhaul] and rule; prints the file's name
{
	printf '[longhaul]\nlan = lan0\nwan = wan0\n%s\n[rule r]\nlan = 10.1.0.0/16\nwan = 10.2.0.0/16\npolicy = early\n%s\n' \
		"$1" "${2:-}" >"$LAB/t.conf"
	echo "$LAB/t.conf"
}

check() # COMMAND of ga
{
	in_ns ga "$B/longhauld" --check-config -c "$@"
}

lab_up
wan_start --delay-ms 2 --rate-mbps 1200
pair_start
transfer one a --op write --count 300 --mtu 4096

for o in qp:LAN-IP lane:LAN-IP peer:NAME port:NAME rule:NAME stats:GROUP; do
	it "${o%:*} show -j: an array of objects" array ${o%:*}
	it "${o%:*} show -p: the same, indented" pretty ${o%:*}
	it "${o%:*} show: a table" table ${o%:*} ${o#*:}
done
it "qp show -d: more than the table" details qp custody-packets
it "lane show -d: more than the table" details lane naks-sent
it "peer show -d: more than the table" details peer boot
it "rule show -d: more than the table" details rule custody-messages
it "stats show -d: counters that are zero too" eval \
	'[ "$(cli a -d stats | wc -l)" -gt "$(cli a stats | wc -l)" ]'
it "lane show: one object per direction, with the ledger" jq_true a lane '
	length == 2 and (map(.direction) | sort == ["in", "out"]) and
	all(has("custody-messages") and has("custody-packets") and has("custody-bytes") and has("custody-oldest-ms"))'
it "peer show: up, named, with a round trip" jq_true a peer '
	length == 1 and .[0].name == "edge-b" and .[0].node == "edge-b" and .[0]."srtt-us" > 1000'
it "port show: how each is attached, what it took, and each cause of what it did not" jq_true a port '
	map([.name, .side, .state, .mtu, .driver, .xdp, .memory, .queues]) ==
		[["lan0", "lan", "up", 4300, "veth", "native", "copy", 1], ["wan0", "wan", "up", 4300, "veth", "native", "copy", 1]] and
	.[0]."rx-packets" >= 4800 and .[1]."tx-bytes" > 4096 * 4800 and all(."passed-no-rule" == 0 and
		.passed == (to_entries | map(select(.key | startswith("passed-")) | .value) | add) and
		.dropped == (to_entries | map(select(.key | startswith("dropped-")) | .value) | add) and (."memory-reason" | length > 10) and ."xdp-reason" == null)'
it "port show -d: more than the table" details port passed-tags
it "peer show: the MTU of its ports" jq_true a peer '.[0] | ."lan-mtu" == 4300 and ."wan-mtu" == 4300'
it "rule show: its connection and its ledger" jq_true a rule '
	length == 1 and .[0].name == "hosts" and .[0].connections == 1 and has(0) and (.[0] | has("custody-bytes"))'
it "stats show: what the host sent has been taken, or is said to have passed by" jq_true a stats '
	(map(select(.name == "rx-lan" or .name == "stale") | .value) | add) >= 4800 and
	any(.group == "engine" and .name == "rx-lan" and .value > 0)'
it "a filter" eval 'cli a -j qp lan-ip 10.77.1.1 state held | jq -e "length == 1" >/dev/null &&
	cli a -j qp lan-ip 10.77.1.9 | jq -e "length == 0" >/dev/null'
it "a name alone" eval 'cli a -j peer edge-b | jq -e "length == 1" >/dev/null &&
	cli a -j rule hosts policy early | jq -e "length == 1" >/dev/null'
it "a name that there is not: one line" one_line 1 "nobody" cli a peer nobody
it "columns: those that are chosen" eval '[ "$(cli a -c name,min-rtt-us peer | head -1 | tr -s " ")" = "NAME MIN-RTT-US" ] &&
	cli a -j -c lqpn,state qp | jq -e "all(keys == [\"lqpn\", \"state\"])" >/dev/null'
it "columns: one that there is not: one line" one_line 1 "has no .colour." cli a -c colour qp
it "a table fits 80 columns, that of queue pairs 100 by itself" eval '[ "$(COLUMNS=80 cli a qp | wc -L)" -le 80 ] && [ "$(cli a qp | wc -L)" -gt 80 ] &&
	[ "$(cli a qp | wc -L)" -le 100 ] &&
	COLUMNS=80 cli a qp | grep -q "LQPN.*STATE.*CUSTODY" && [ "$(COLUMNS=80 cli a lane | wc -L)" -le 80 ]'
it "no daemon at the socket: one line" one_line 1 "$LAB/none.sock" "$B/longhaul" -s "$LAB/none.sock" qp
it "an unknown object: one line" one_line 1 "unknown object" "$B/longhaul" colour
it "plan needs no daemon" eval '"$B/longhaul" -j plan --rate 10G --rtt 100ms --loss 1e-3 |
	jq -e ".[0].\"pool-bytes\" == 536870912 and length == 9" >/dev/null'
it "plan: a wrong option: one line" one_line 1 "unknown option or missing value .--lost" "$B/longhaul" plan --lost 1
it "plan: no value: one line" one_line 1 "missing value .--rate" "$B/longhaul" plan --rate
it "plan: a wrong value: one line" one_line 1 "rtt .5. has no unit" "$B/longhaul" plan --rate 10G --rtt 5
it "an option without effect: one line" eval '
	one_line 1 "w means nothing to longhaul plan" "$B/longhaul" -w plan --rate 10G --rtt 5ms &&
	one_line 1 "c means nothing to longhaul status" cli a -c name status &&
	one_line 1 "j means nothing to longhaul clear" cli a -j clear && one_line 1 "write -w, too" cli a -n 2 qp'
it "no columns, and words behind all: one line" eval 'one_line 1 "takes members" cli a -c "" qp &&
	one_line 1 "takes no more words" cli a release all lqpn 5'
it "a full disk: one line" eval '! "$B/longhaul" help >/dev/full 2>"$LAB/full.err" && grep -q "No space left" "$LAB/full.err" &&
	! "$B/longhaul" -V >/dev/full 2>/dev/null'
it "options of plan for another command: one line" one_line 1 "belong to longhaul plan" "$B/longhaul" qp --rate 10G
if [ -x "$B/longhaul-probe" ]; then
	# what it does with RDMA devices is shown in tests/vm
	it "longhaul-probe: wrong options: one line" eval 'for o in "-s 2M" "-s 4K,,1" "-d 513" "-d 0" "-t 0" "-o copy" "-t x"; do
		one_line 1 "longhaul-probe: -[sdto] takes" "$B/longhaul-probe" $o 127.0.0.1 || return; done'
	it "longhaul-probe: no RDMA device leads there: one line" one_line 1 "longhaul-probe: " in_ns ha "$B/longhaul-probe" 127.0.0.1
else
	skip "longhaul-probe" "there are no headers of rdma-core here"
fi
it "keygen does not overwrite a key" one_line 1 "exists already" "$B/longhaul" keygen "$LAB/key"
it "a second daemon on the same interfaces: refused, the first one stays" eval '
	sed "s/gw-a.sock/second.sock/" "$LAB/gw-a.conf" >"$LAB/second.conf" &&
	! in_ns ga timeout 10 "$B/longhauld" -c "$LAB/second.conf" 2>"$LAB/second.err" &&
	[ -s "$LAB/second.err" ] && jq_true a peer "all(.state == \"up\")"'

it "--check-config: the running configuration is good" check "$LAB/gw-a.conf"
it "--check-config: the sample is good" "$B/longhauld" --check-config --offline -c conf/longhaul.conf
it "--check-config: unknown key, with file and line" one_line 1 "t.conf:4: unknown key 'colour'" \
	check "$(config 'colour = blue')"
it "--check-config: more cores than queues" eval 'check "$(config "cores = 4")" 2>&1 | grep -q "cores = 4, and there is room for 1, limited by the"'
it "--check-config: missing interface" one_line 1 "t.conf:2: .*lan9" \
	check "$(config '' | tee "$LAB/name" >/dev/null; sed -i s/lan0/lan9/ "$LAB/t.conf"; cat "$LAB/name")"
it "--check-config: overlapping rules" one_line 1 "t.conf:.*overlap" \
	check "$(config '' $'[rule s]\nlan = 10.1.2.0/24\nwan = 10.2.0.0/15\npolicy = honest')"
it "--check-config: no such file" one_line 1 "$LAB/none.conf" check "$LAB/none.conf"
it "start with a missing interface: one line" one_line 1 "t.conf:3: .*wan9" \
	in_ns ga "$B/longhauld" -c "$(config '' | tee "$LAB/name" >/dev/null; sed -i s/wan0/wan9/ "$LAB/t.conf"; cat "$LAB/name")"

options() # MESSAGE OPTION...: of longhauld, refused with one line
{
	one_line 1 "longhauld: $1" timeout 10 "$B/longhauld" "${@:2}"
}
it "longhauld: an option that there is not: one line" eval '
	options "unknown option .--relod.; did you mean .--reload" --relod && options "unknown option .-x.; see" -fx &&
	options "unknown option .--colour.; see" --colour'
it "longhauld: a value that lacks, or is too many: one line" eval '
	options ".-c. lacks its value" -c && options ".--replay. lacks its value" --replay &&
	options ".--wait=5. has a value and takes none" --wait=5 && options ".--json=x. has a value" --json=x &&
	options ".word. is not expected" word'
it "longhauld: an option without effect: one line" eval '
	options "--offline belongs to --check-config" --offline && options "--json belongs to --replay" -j &&
	options "--wait means nothing to --reload" --wait --reload && options "--json means nothing to --check-config" --check-config -j &&
	options "--config means nothing to --replay" -c x --replay y &&
	options "--check-config and --reload are two things" --check-config --reload && options ".1x. is no process" --hand-over 1x'

replay() # FILE FILTER
{
	"$B/longhauld" --replay "tests/data/$1" -j 2>/dev/null | jq -e "$2" >/dev/null
}
it "--replay bidir-2qp.pcap: two pairs, learned by PSN" replay bidir-2qp.pcap '
	map([."lan-ip", .lqpn, ."wan-ip", .rqpn, ."learned-by"]) | sort ==
	[["10.98.0.1", 22, "10.98.0.2", 22, "psn"], ["10.98.0.1", 23, "10.98.0.2", 23, "psn"]]'
it "--replay cm-rping.pcap: one pair, learned by CM" replay cm-rping.pcap '
	map([."lan-ip", .lqpn, ."wan-ip", .rqpn, ."learned-by"]) == [["10.98.0.1", 24, "10.98.0.2", 24, "cm"]]'
it "--replay: a table for people" eval '"$B/longhauld" --replay tests/data/bidir-2qp.pcap 2>/dev/null |
	grep -q "10.98.0.1 *0x16 *10.98.0.2 *0x16 *psn"'
it "--replay of what is no capture: one line" one_line 1 "README" "$B/longhauld" --replay tests/data/README.md
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `cores = 2` and `cores = auto`: eight pairs of hosts at once, over both; kill -9, a hand-over and a change of the number
# under load. Each host has several addresses, so it is several hosts to the appliances.
set -u
cd "$(dirname "$0")/../.." || exit 1
CORES=2
. tests/netns/lib.sh

PAIRS=8
HOST=(--size 8K --depth 16 --mtu 4096 --timeout-exp 14 --region 1M --cm)
# The others send as fast as they can, for threads have nothing to share where little waits.
SLOW=(--rate-mbps 2)

pair_ip() # SITE NUMBER
{
	local n=1

	[ "$1" = a ] || n=2
	echo "10.77.$n.$((10 + $2))"
}

# The @NUMBER-th pair of hosts, as host_start
pair_host() # NAME SITE NUMBER ARGUMENT...
{
	local name=$1 s=$2 n=$3 o slow=()

	shift 3
	[ $((n % 2)) = 0 ] || slow=("${SLOW[@]}")
	o=$(other "$s")
	spawn "$name" "h$s" "${before_others[@]}" 0 "$LAB_BIN/endpoint" --if eth0 --ip "$(pair_ip "$s" "$n")" \
		--peer-ip "$(pair_ip "$o" "$n")" --peer-mac "$(mac "$o" 1)" --qpn $((qpn[$s] + n)) --peer-qpn $((qpn[$o] + n)) \
		--psn $((psn[$s] + n * 100)) --peer-psn $((psn[$o] + n * 100)) --retry 250 "${HOST[@]}" "${slow[@]}" "$@"
}

ops=(write send read write send read write write)

pairs_begin() # NAME
{
	local i

	for ((i = 0; i < PAIRS; i++)); do
		pair_host "$1-$i-resp" b $i --listen --op "${ops[i]}" --seconds 600
	done
	await 30 sockets_at_least hb $PAIRS || return
	for ((i = 0; i < PAIRS; i++)); do
		pair_host "$1-$i-req" a $i --op "${ops[i]}" --seconds 600
	done
}

all_held() # SITE
{
	jq_true "$1" qp '[.[] | select(.state == "held")] | length == $n' --argjson n $PAIRS
}

all_more() # NAME MESSAGES
{
	local i

	for ((i = 0; i < PAIRS; i++)); do
		more "$1-$i-req" "$2" || { echo "pair $i goes no further"; return 1; }
	done
}

pairs_end() # NAME: all intact, no host saw an error
{
	local i status=0

	for ((i = 0; i < PAIRS; i++)); do
		running "$1-$i-req" && enough "$1-$i-req"
	done
	for ((i = 0; i < PAIRS; i++)); do
		reap "$1-$i-req" || status=1
	done
	await 60 settled || status=1
	for ((i = 0; i < PAIRS; i++)); do
		running "$1-$i-resp" && signal "$1-$i-resp" TERM
		reap "$1-$i-resp" 30 || status=1
		intact "$1-$i" && [ "$(got "$1-$i-req" errors)" = 0 ] || { echo "pair $i: ${ops[i]}"; status=1; }
	done
	next_qpns
	return $status
}

lab_up
lab_keep
for ((i = 0; i < PAIRS; i++)); do
	for s in a b; do
		ip -n $P-h$s addr add "$(pair_ip $s $i)/16" dev eth0
		ip -n $P-h$s neigh replace "$(pair_ip "$(other $s)" $i)" lladdr "$(mac "$(other $s)" 1)" dev eth0
	done
done
wan_start --delay-ms 10 --rate-mbps 400
gateway_config a -l 10.77.1.0/24 -w 10.77.2.0/24 -r "prefetch = on"
gateway_config b -l 10.77.2.0/24 -w 10.77.1.0/24 -r "prefetch = on"
auto=yes
[ "$(nproc)" -gt 1 ] || auto=
[ -z "$auto" ] || sed -i 's/^cores = .*/cores = auto/; s/^pool = .*/pool = 128M/' "$LAB/gw-a.conf"
gateway_start a
gateway_start b
await 30 peers_up || die "the peers do not find each other"

two_threads() # SITE
{
	[ "$(grep -l longhauld-core "/proc/${pid[gw-$1]}"/task/*/comm | wc -l)" = 1 ]
}
it "each daemon has two threads" eval 'two_threads a && two_threads b'

two_by_auto()
{
	log_has a "cores = auto: 2, limited by" && in_ns ga "$B/longhauld" --reload -c "$LAB/gw-a.conf"
}
if [ -n "$auto" ]; then
	it "one of them by cores = auto, which a reload leaves alone" two_by_auto
else
	skip "one of them by cores = auto" "there is one processor"
fi

held_by_both() # SITE
{
	jq_true "$1" qp '[.[] | select(.state == "held") | .core] | unique == [0, 1]'
}

top_has_cores()
{
	COLUMNS=170 LINES=30 TERM=xterm script -qec "stty cols 170 rows 30; $B/longhaul -s $RUN/gw-a.sock -w0.5 -n 2 top" \
		"$LAB/top.out" >/dev/null </dev/null && tr -d '\r' <"$LAB/top.out" | grep -q 'CORE'
}

metrics_by_core() # samples of one name, with a label
{
	in_ns ga curl -sf http://127.0.0.1:9747/metrics >"$LAB/metrics.txt" &&
	grep -c '^longhaul_core_frames_total{core="[01]"} [1-9]' "$LAB/metrics.txt" | grep -qx 2 &&
	[ "$(grep -c '^# TYPE longhaul_core_frames_total' "$LAB/metrics.txt")" = 1 ]
}

metrics()
{
	local status=0

	command -v curl >/dev/null || return 0
	in_ns ga ip link set lo up
	spawn metrics ga "$B/longhaul-metrics" -s "$RUN/gw-a.sock"
	await 30 metrics_by_core || status=1
	signal metrics TERM
	reap metrics
	return $status
}

shared() # SITE: both have threads, for else only what waits for an OPEN is handed over to another core's shard
{
	[ "$(stat_of "$1" handed)" -gt 100 ]
}

transfers()
{
	local status=0

	pairs_begin all && await 30 held_by_both a && await 30 held_by_both b && await 60 shared a && await 60 shared b && top_has_cores && all_more all 30 || status=1
	pairs_end all && [ $status = 0 ]
}
it "eight pairs of hosts, WRITE, SEND, READ: held by both cores, in threads, as top shows, intact" transfers

frames_of_both() # SITE: each has taken a tenth of the frames at least
{
	jq_true "$1" stats '[.[] | select(.group | startswith("core-")) | select(.name == "frames") | .value] |
		length == 2 and add as $sum | all(. > $sum / 10)'
}
it "both cores have moved frames" eval 'frames_of_both a && frames_of_both b'
it "metrics tell the core" metrics

amid() # NAME EVENT...
{
	local name=$1 status=0

	shift
	pairs_begin "$name" && await 60 all_held a && all_more "$name" 8 || status=1
	"$@" || status=1
	all_more "$name" 8 || status=1
	pairs_end "$name" && [ $status = 0 ] && [ "$(stat_of a faults)$(stat_of b faults)" = 00 ]
}

cpus=$(taskset -cp $$)
cpus=${cpus##* }
one=${cpus%%[,-]*}

one_processor() # COMMAND...: with one only, which is all that the next daemon finds
{
	local status

	taskset -cp "$one" $$ && "$@"
	status=$?
	taskset -cp "$cpus" $$ && taskset -acp "$cpus" "${pid[gw-a]}" && return $status
}
it "kill -9 near the requesters, and one processor for the next" amid killed-a one_processor next_daemon a KILL
as_before()
{
	two_threads a && log_has a "cores = auto: 2, the number of the former longhauld" &&
		in_ns ga taskset -c "$one" "$B/longhauld" --check-config -c "$LAB/gw-a.conf" |
		grep -q "a restart: connections are handed over"
}
[ -z "$auto" ] || it "which has as many cores as before, and so will the one after a restart" as_before
it "kill -9 near the responders" amid killed-b next_daemon b KILL
it "hand-over near the requesters" amid hand-a next_daemon a USR2

# cores_now SITE NUMBER: the daemon ends in order, which delivers what it holds and lets hosts go, and the next one has so many
cores_now()
{
	sed -i "s/^cores = .*/cores = $2/" "$LAB/gw-$1.conf"
	! in_ns "g$1" "$B/longhauld" -c "$LAB/gw-$1.conf" --hand-over "${pid[gw-$1]}" 2>"$LAB/refused" || return
	grep -q "'cores' is another one" "$LAB/refused" && gateway_stop "$1" && gateway_start "$1"
}
# Where READs were asked ahead that no host wanted, its numbers differ for good, and it needs a longhauld: no READs here.
ops=(write send write send write send write send)
it "one core instead of two near the requesters: no hand-over, but no host notices" amid one-a cores_now a 1
it "and two again" amid two-a cores_now a 2
it "the same near the responders" amid one-b cores_now b 1

# With less pool, and a responder that takes nothing for a while, one pair of hosts has more in custody than three quarters
# of half the pool: the other core lent it memory.
less_pool()
{
	local s

	for s in a b; do
		gateway_stop $s || return
		sed -i 's/^pool = .*/pool = 24M/; s/^cores = .*/cores = 2/' "$LAB/gw-$s.conf"
		gateway_start $s || return
	done
	await 30 peers_up
}

more_than_its_share()
{
	jq_true a stats '[.[] | select(.group == "memory") | {(.name): .value}] | add | .["custody-used"] > .["pool-bytes"] * 0.45'
}

one_pair()
{
	local PAIRS=1 status=0
	local HOST=(--size 256K --depth 64 --mtu 4096 --timeout-exp 16 --region 16M --cm)

	pairs_begin lent && await 30 jq_true a qp 'any(.state == "held")' && more lent-0-req 8 && signal lent-0-resp STOP && await 30 more_than_its_share &&
		next_daemon a KILL && await 30 more_than_its_share || status=1
	signal lent-0-resp CONT
	all_more lent 8 || status=1
	pairs_end lent && [ $status = 0 ] && [ "$(stat_of a faults)$(stat_of b faults)" = 00 ]
}
await 30 settled
it "less pool" less_pool
it "one pair of hosts has more than its core's share of it, through a kill -9" one_pair

await 30 settled
it "stop with nothing owed" pair_stop
it "then nothing is left to go on with" eval '[ -z "$(ls "$RUN")" ]'

exit $((tests_failed > 0))

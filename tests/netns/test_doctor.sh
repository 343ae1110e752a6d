#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# longhaul doctor against real daemons: for each fault the first check that is wrong, its figure and the exit status; and
# why one host is slow, for each cause that can be made here.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# doctor SITE STATUS [ARGUMENT...]: its report in $LAB/doctor.json
doctor()
{
	local s=$1 want=$2

	shift 2
	cli "$s" -j doctor "$@" >"$LAB/doctor.json" 2>"$LAB/doctor.err"
	[ $? = "$want" ]
}

found() # CHECK VERDICT TEXT: in the latest report
{
	jq -e 'any(.check == $c and .verdict == $v and (.reason | contains($t)) and ($v != "wrong" or (.mend | length > 10)))' \
		--arg c "$1" --arg v "$2" --arg t "$3" "$LAB/doctor.json" >/dev/null
}

# stops_at SITE CHECK TEXT: the walk ends there, once the daemon knows
stops_at()
{
	await 60 walked "$@" && return
	sed 's/^/# doctor: /' "$LAB/doctor.json" "$LAB/doctor.err"
	return 1
}

walked()
{
	doctor "$1" 1 && found "$2" wrong "$3" && jq -e 'map(.verdict) | index("wrong") as $i |
		(.[:$i] | all(. == "ok" or . == "note")) and (.[$i + 1:] | all(. == "skipped"))' "$LAB/doctor.json" >/dev/null
}

well() # SITE: nothing is wrong, unless a machine is busy, which is the last check's
{
	doctor "$1" 0 && jq -e 'length == 10 and all(.verdict == "ok" or .verdict == "note")' "$LAB/doctor.json" >/dev/null ||
	found speed wrong "" && jq -e '.[:9] | all(.verdict == "ok" or .verdict == "note")' "$LAB/doctor.json" >/dev/null
}

# slow SITE ADDRESS CAUSE TEXT
slow()
{
	doctor "$1" 1 host "$2" && found "$3" wrong "$4"
}

# while_it_runs NAME CONDITION ARGUMENT...: a transfer of site a's host, until the condition holds
while_it_runs()
{
	next_qpns
	transfer_until "$2" "$1" a "${@:3}" && intact "$1"
}

restart() # [OPTION...]: both daemons with other options of gateway_config
{
	ends && for s in a b; do
		gateway_config $s "$@" && gateway_start $s || return
	done && await 60 peers_up
}

ends()
{
	local s

	for s in a b; do
		running gw-$s && gateway_stop $s
	done
	return 0
}

edit() # SITE SED-SCRIPT: and start it
{
	sed -i "$2" "$LAB/gw-$1.conf" && gateway_start "$1"
}

says() # STATUS PATTERN COMMAND...: one line on standard error
{
	local want=$1 pattern=$2

	shift 2
	"$@" >"$LAB/says.out" 2>"$LAB/says.err"
	[ $? = "$want" ] && [ ! -s "$LAB/says.out" ] && [ "$(wc -l <"$LAB/says.err")" = 1 ] && grep -q -- "$pattern" "$LAB/says.err"
}

one_way() # the far host does not answer
{
	local good=1

	next_qpns
	host_start lonely a --op write --mtu 4096 --seconds 600
	stops_at a frames "RoCEv2 frames have come by lan0 and none by wan0" && good=0
	signal lonely KILL
	reap lonely
	[ $good = 0 ]
}

strangers() # hosts that no rule has
{
	restart -l 10.66.0.1 -w 10.65.0.1 && edit_b_mirror || return
	next_qpns
	transfer_begin strangers a --op write --mtu 4096 --rate-mbps 300 --seconds 600
	stops_at a frames "from 10.77.1.1 to 10.77.2.1 (VLAN none): no rule has either"
	local status=$?
	enough strangers-req
	transfer_end strangers && [ $status = 0 ]
}

edit_b_mirror()
{
	gateway_stop b && edit b 's/^lan = 10.*/lan = 10.65.0.1/; s/^wan = 10.*/wan = 10.66.0.1/' && await 60 peers_up
}

lab_up
wan_start --delay-ms 10 --rate-mbps 600
it "no daemon: status 2, one line" says 2 "cannot reach longhauld" "$B/longhaul" -s "$LAB/none.sock" doctor
it "what it does not take: status 2, one line" eval 'says 2 "host ADDRESS" "$B/longhaul" doctor 10.1.0.5 &&
	says 2 "is an address" "$B/longhaul" doctor host edge-b'

gateway_config a && gateway_start a
it "the peer is not there" stops_at a peers "answers that nothing listens on its UDP port 4797"
gateway_config b && gateway_start b && await 60 peers_up
it "no traffic yet" stops_at a frames "no RoCEv2 has come since the start"
it "nobody answers the host" one_way
it "all is well while hosts are accelerated, at both ends" while_it_runs good 'held_now && well a && well b' --op write --mtu 4096 \
	--rate-mbps 100
it "for people: a line a check, and what next" eval 'cli a doctor >"$LAB/walk.out"; [ "$(grep -cE "^(ok|note) +[a-z]+ +" "$LAB/walk.out")" -ge 8 ]'
it "a port is down: before all else" eval 'ip -n $P-gb link set lan0 down && stops_at b ports "lan0 is down"; s=$?
	ip -n $P-gb link set lan0 up && await 30 carrier && [ $s = 0 ]'
it "a port that has left its bridge while hosts go on" eval 'ip -n $P-ga link set lan0 nomaster && stops_at a ports "lan0 is in no bridge"; s=$?
	ip -n $P-ga link set lan0 master br0 && [ $s = 0 ]'
it "an operator's bypass" eval 'cli a bypass on all >/dev/null && stops_at a rules "an operator has bypassed"; s=$?
	cli a bypass off all >/dev/null && [ $s = 0 ]'

it "slow: one READ at a time" while_it_runs reads 'slow a 10.77.1.1 reads "at most 1 READ at a time"' --op read --max-rd 1 --mtu 4096
it "slow: a timer shorter than the round trip" while_it_runs timer 'slow a 10.77.1.1 repeats "the requester repeats" &&
	grep -q "a timeout of 1[3-5] or more" "$LAB/doctor.json"' --op read --timeout-exp 9 --retry 255 --max-rd 4 --mtu 4096
it "slow: no receives, as the end near the responder knows" while_it_runs rnr 'slow b 10.77.2.1 receives "was not ready"' \
	--op send --recv-interval-us 20000 --recv-depth 2 --mtu 4096
it "slow: small packets, and a host that sends little" while_it_runs small 'doctor a 0 host 10.77.1.1 &&
	found path-mtu note "the path MTU is 1024" && found requester note "longhaul waits for the host"' --op write --rate-mbps 20
restart -r "policy = honest"
it "slow: a policy that waits" while_it_runs honest 'slow a 10.77.1.1 policy "has policy = honest" && found policy wrong "at most 1 was"' \
	--op write --depth 1 --mtu 4096
restart -g "wan-rate = 100M"
it "slow: the link is full" while_it_runs full 'slow a 10.77.1.1 link "as wan-rate says"' --op write --depth 128 --mtu 4096
ends
for s in a b; do
	gateway_config $s && edit $s 's/^pool = .*/pool = 8M/'
done
await 60 peers_up || die "the peers do not find each other"
it "slow: the pool is small" while_it_runs pool 'slow a 10.77.1.1 pool "of a pool of 8.0M"' --op write --depth 128 --mtu 4096

restart -r "policy = off"
it "policy = off" stops_at a rules "rule hosts has policy = off"
it "no rule has the hosts" strangers
restart && gateway_stop b && edit b 's/^lan = 10.*/lan = 10.66.0.1/; s/^wan = 10.*/wan = 10.65.0.1/' && await 60 peers_up
it "the rule at one end only, at both ends" eval 'stops_at a rules "which has no rule for them" && stops_at b rules "which has no rule"'
ends
wan_stop
exit $((tests_failed > 0))

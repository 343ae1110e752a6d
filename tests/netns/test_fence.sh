#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections with prefetch (NTT-5) while the daemon near their requester is away: killed, hung, stopped. Their packets
# bear other numbers on the WAN than at the host, and none may pass untranslated, in either direction. READs
# walk through a region with known bytes: the answer to another READ would be noticed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK=(--visible --delay-ms 10 --rate-mbps 400)
# Hosts that repeat themselves late: what ends the connection is the new daemon, not their patience.
STREAM=(--op read --size 64K --depth 4 --region 4M --mtu 4096 --timeout-exp 20 --visible)

roce_of() # CAPTURE SOURCE SINCE: how many RoCEv2 packets of that address, captured after that time
{
	tests/netns/frames.pl list "$LAB/$1.pcap" "$2" "$3" | grep -c '^.\{46\}11.\{24\}12b7'
}

capture_start() # NAME NAMESPACE INTERFACE
{
	spawn "cap-$1" "$2" "${before_others[@]}" -10 "$LAB_BIN/pcapcheck" --capture "$3" "$LAB/$1.pcap"
	await 30 grep -q 'capture: ready' "$LAB/cap-$1.err"
}

capture_stop() # NAME: nothing may be missing
{
	signal "cap-$1" TERM && reap "cap-$1"
}

ahead() # a asks for READs ahead of its host, and has numbers of its own
{
	jq_true a lane 'any(.lqpn == $q and .direction == "out" and ."psn-shift" > 0)' --argjson q $((${qpn[a]}))
}

attached_to() # SITE INTERFACE
{
	ip -n "$P-g$1" link show dev "$2" | grep -q xdp
}

detached() # SITE
{
	! attached_to "$1" lan0 && ! attached_to "$1" wan0
}

in_place() # SITE: the program is there, daemon or not
{
	attached_to "$1" lan0 && attached_to "$1" wan0 && [ -e "$(pins "$1")/held" ]
}

# stream NAME ARGUMENT...: READs from a that go on; until they are read ahead. What the host has read once may be; without
# the connection manager nobody tells the appliance that a host has ended and will not ask for the rest any more.
stream()
{
	local name=$1

	shift
	next_qpns
	transfer_begin "$name" a "${STREAM[@]}" --seconds 600 "$@"
	await 60 ahead
}

ended_well() # NAME: all was right that was completed, on both sides
{
	reap "$1-req"
	signal "$1-resp" TERM && reap "$1-resp"
	jq -es 'all(.[]; .intact) and .[0].messages > 0' "$LAB/$1-req.out" "$LAB/$1-resp.out" >/dev/null
}

lab_up
wan_start "${LINK[@]}"
# On a busy machine what was read ahead is older than a second before the host asks for it. What is thrown away for its age
# has taken numbers for nothing, and then nothing can be stopped in order any more.
pair_start -g 'wan-rate = 300M' -r 'prefetch = on' -r 'prefetch-max-age = 0s'

it "a rule with prefetch: pinned from the start" in_place a

# The daemon is killed amid a stream. From then on nothing of host a's crosses the WAN, although it asks again,
# and nothing that came on its way to it arrives.
killed()
{
	local gone status=0

	capture_start wan wan a && capture_start lan ha eth0 && stream killed || return
	kill -KILL "${pid[gw-a]}"
	reap gw-a
	# what it has sent may still wait for the kernel
	asks_again killed-req || status=1
	gone=$EPOCHREALTIME
	asks_again killed-req || status=1
	capture_stop wan && capture_stop lan || status=1
	echo "since then: $(roce_of lan "$(addr a 1)" $gone) of the host," \
		"$(roce_of wan "$(addr a 1)" $gone) of them crossed, $(roce_of lan "$(addr b 1)" $gone) to the host"
	# that there are any shows that the captures can be read
	[ "$(roce_of lan "$(addr b 1)" 0)" -gt 0 ] && [ "$(roce_of wan "$(addr a 1)" 0)" -gt 0 ] || status=1
	[ "$(roce_of lan "$(addr a 1)" $gone)" -gt 0 ] || status=1
	[ "$(roce_of wan "$(addr a 1)" $gone)" = 0 ] || status=1
	[ "$(roce_of lan "$(addr b 1)" $gone)" = 0 ] || status=1
	return $status
}
it "killed: the program stays in place, what the host asks again goes nowhere, answers end here" killed
it "it is pinned still" in_place a
it "the host hangs, it was told nothing" running killed-req

passes_other() # what is not held is bridged
{
	next_qpns
	transfer other a --op write --count 50 --mtu 1024 && intact other
}
it "another connection passes through the bridge meanwhile" passes_other

again()
{
	gateway_start a && await 30 peers_up && [ "$(grep -c 'a former longhauld ended with 1 connection ' "$LAB/gw-a.err")" = 1 ]
}
it "a new daemon takes over, and says how many connections there were" again

fails() # by a NAK, or broken by force, not by its own timeout
{
	ended_well killed && [[ $(got killed-req first-error) == @(remote-operation|flushed) ]]
}
it "the requester's queue pair fails, no byte was wrong" fails

anew()
{
	stream anew --cm && await 60 so_far_above anew-req messages 500 && enough anew-req &&
	ended_well anew && [ "$(got anew-req errors)" = 0 ]
}
it "a new connection works, with prefetch" anew

hung()
{
	local status=0

	stream hung --cm || return
	signal gw-a STOP
	asks_again hung-req || status=1
	signal gw-a CONT
	more hung-req 200 || status=1
	enough hung-req
	ended_well hung && [ $status = 0 ] && [ "$(got hung-req errors)" = 0 ] && [ "$(stat_of a held)" -gt 0 ]
}
it "hung for a while: held meanwhile, then it goes on as if nothing had been" hung

# Where the machine is so busy that an answer to what was asked ahead is lost in a ring, or has no room any more, its
# numbers remain, and no stop is in order: then once more. The host was told so by the stop, and asks no more, which is
# what the next daemon would wait for.
stopped()
{
	local tries=8

	while :; do
		stream stopped --cm || return
		cli a -j lane show | jq -c --argjson q $((${qpn[a]})) '.[] | select(.lqpn == $q)'
		gateway_stop a && ! grep -q 'cannot go on without' "$LAB/gw-a.err" && break
		tail -n 3 "$LAB/gw-a.err"
		[ $((tries -= 1)) != 0 ] || return
		enough stopped-req # fails by the next daemon, if not yet
		gateway_start a && await 30 peers_up && ended_well stopped || return
		gateway_stop a
		rm -rf "$(pins a)"
		gateway_start a && await 30 peers_up || return
	done
	await 30 detached a && [ ! -e "$(pins a)" ] &&
	more stopped-req 50 && enough stopped-req &&
	ended_well stopped &&
	[ "$(got stopped-req errors)" = 0 ]
}
it "stopped in order: the two ends agree first, the stream goes on without it, nothing stays pinned" stopped

# The WAN stands still, and what the host has asked is in custody; it would be patient. The daemon that stops puts its
# queue pair into the error state, which is seen: nothing is left that must be dropped meanwhile, nor for the next daemon to
# wait for. A host that waits for the first packet of an answer, and not for one of its middle, is told by a NAK before
# that. It is silent then, which is no proof, and stays fenced: then once more.
broken_by_stop()
{
	local status=0 tries=5

	sed -i 's/^\[longhaul\]$/&\ndrain-timeout = 1s/' "$LAB/gw-a.conf"
	while :; do
		gateway_start a && await 30 peers_up && stream broken --cm || { status=1; break; }
		signal wan STOP
		asks_again broken-req || status=1
		gateway_stop a && status=1
		signal wan CONT
		log_has a 'are put into the error state' && ended_well broken || status=1
		log_has a 'cannot go on without' || break
		[ "$(got broken-req first-error)" = remote-operation ] && [ $((tries -= 1)) != 0 ] || { status=1; break; }
		rm -r "$(pins a)" && await 30 detached a || { status=1; break; }
	done
	sed -i '/^drain-timeout/d' "$LAB/gw-a.conf"
	await 30 detached a && [ ! -e "$(pins a)" ] &&
	[ "$(got broken-req first-error)" = flushed ] && [ $status = 0 ]
}
it "stopped while the WAN stands still: its queue pair fails, and nothing stays pinned" broken_by_stop

given_up()
{
	gateway_start a && await 30 peers_up && stream given-up || return
	kill -KILL "${pid[gw-a]}"
	reap gw-a
	in_place a && rm -r "$(pins a)" && await 30 detached a || return
	signal given-up-req TERM
	signal given-up-resp TERM
	reap given-up-req
	reap given-up-resp
	return 0
}
it "killed, and given up by the operator: rm -r of the pins, and the bridge has all" given_up

unpinned()
{
	rm -rf "$LAB/bpf/a"
	gateway_start a && await 30 peers_up && in_place a &&
	sed -i 's/^prefetch = on/prefetch = off/' "$LAB/gw-a.conf" && signal gw-a HUP &&
	await 30 [ ! -e "$(pins a)" ] &&
	sed -i 's/^prefetch = off/prefetch = on/' "$LAB/gw-a.conf" && signal gw-a HUP &&
	await 30 in_place a
}
it "reload: pinned with prefetch only, within the sandbox" unpinned

nowhere() # no place to pin: it says so, and works without
{
	gateway_stop a
	gateway_start a /proc/longhaul && await 30 peers_up &&
	[ "$(grep -c 'prefetch and announce are off' "$LAB/gw-a.err")" = 1 ] && jq_true a rule 'all(."prefetch" != "on")' &&
	next_qpns && transfer nowhere a "${STREAM[@]}" --count 100 && complete nowhere 100
}
it "no BPF file system: one clear line, no prefetch, all else as ever" nowhere

it "everything stops in order" pair_stop
it "nothing is left attached or pinned" eval 'detached a && detached b && [ ! -e "$(pins a)" ] && [ ! -e "$(pins b)" ]'

exit $((tests_failed > 0))

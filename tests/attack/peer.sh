#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Datagrams to an appliance in its peer's name, without the key: noise, HELLOs, the right session with a wrong seal,
# all that was said before, and what it said itself. The session stands, transfers go on, and a peer that is gone is
# not kept alive by what it once said.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

PEER_PORT=12b6 # 4790

# datagram ARGUMENT...: from the other appliance to a's
datagram()
{
	in_ns wan "$LAB_BIN/inject" udp --if a --from "$(addr b 2)" --from-mac "$(mac b 2)" --to "$(addr a 2)" \
		--to-mac "$(mac a 2)" "$@"
}

said_by() # SITE: its appliance's datagrams in the capture, payload in hex
{
	tests/netns/frames.pl list "$LAB/peer.pcap" "$(addr "$1" 2)" | grep -E "^.{68}$PEER_PORT$PEER_PORT" |
		cut -c 85-
}

noise() # from strangers
{
	in_ns wan "$LAB_BIN/inject" udp --if a --from 10.77.9.1 --hosts 64 --to "$(addr a 2)" --to-mac "$(mac a 2)" \
		--ports 1000:4790 --head 4c480101 --junk 1200 --count 60000 --rate 30000
}

hellos()
{
	datagram --head 4c480101 --junk 1200 --count 60000 --rate 30000
}

data() # the session's number, a sequence number far ahead, and noise
{
	local session

	session=$(said_by b | grep '^4c480102' | tail -n 1 | cut -c 9-24)
	[ ${#session} = 16 ] || ! why="no DATA datagram captured" || return
	datagram --head "4c480102${session}0000010000000000" --junk 1200 --count 60000 --rate 30000
}

replayed() # all that b ever said to a
{
	local i

	for i in 1 2 3; do
		in_ns wan "$PWD/tests/netns/frames.pl" send a "$LAB/peer.pcap" "$(addr b 2)" || return
	done
}

reflected() # a's own words, as if b had said them; those short enough
{
	local line n=0

	while read -r line; do
		[ ${#line} -le 512 ] || continue
		datagram --head "$line" || return
		n=$((n + 1))
		[ $n -lt 50 ] || break
	done < <(said_by a)
	[ $n -gt 0 ] || ! why="no short datagram captured"
}

downs()
{
	cli a -j peer show | jq '.[0].downs'
}

amid_stream() # NAME ATTACK...
{
	local name=$1 before

	shift
	before=$(downs)
	stream "$name" --seconds 4 || return
	"$@" || ! why="${why:-could not inject}" || { finish "$name"; return 1; }
	finish "$name"
	kept "$name" && daemons_live || return
	peers_up && [ "$(downs)" = "$before" ] || ! why="dead: the session of the peers broke"
}

# The peer is killed, and all that it said is sent again and again: a knows all the same that it has gone
kept_alive()
{
	local end=$((SECONDS + 20)) gone=1

	signal gw-b KILL
	reap gw-b 5
	while [ $SECONDS -lt $end ] && [ $gone = 1 ]; do
		replayed
		jq_true a peer 'all(.state != "up")' && gone=0
	done
	gateway_start b
	await 20 peers_up || ! why="dead: the peers do not meet again" || return
	[ $gone = 0 ] || ! why="wrong: a dead peer is kept alive by a replay"
}

fresh_start() # a new daemon and a replay of an old session: it does not take that for its peer
{
	signal gw-b STOP
	signal gw-a KILL
	reap gw-a 5
	gateway_start a
	replayed
	jq_true a peer 'all(.state != "up")' || why="wrong: a replay makes a session"
	signal gw-b CONT
	await 20 peers_up || why="dead: the peers do not meet again"
	[ -z "$why" ]
}

lab_up
wan_start --visible --delay-ms 10 --rate-mbps 400
spawn capture wan "$LAB_BIN/pcapcheck" --capture a "$LAB/peer.pcap"
await 10 grep -q 'capture: ready' "$LAB/capture.err" || die "no capture: $(cat "$LAB/capture.err")"
pair_start -g "wan-rate = 380M"
# what there is to be replayed: a short transfer's reports
attack "a transfer, captured" carried_after captured
signal capture TERM
reap capture 10
attack "noise from strangers" amid_stream noise noise
attack "HELLOs in the peer's name" amid_stream hellos hellos
attack "its session with a wrong seal" amid_stream data data
attack "a replay of all it said" amid_stream replay replayed
attack "its own words" amid_stream reflect reflected
attack "a dead peer and a replay" kept_alive
attack "a new daemon and a replay of the old session" fresh_start
attack_exit

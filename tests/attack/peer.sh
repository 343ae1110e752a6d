#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Datagrams to an appliance in its peer's name, without the key: noise, HELLOs, the right session with a wrong seal,
# all that was said before, and what it said itself. The session stands, transfers go on, and a peer that is gone is
# not kept alive by what it once said.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

# datagram ARGUMENT...: from the other appliance to a's
datagram()
{
	in_ns wan "$LAB_BIN/inject" udp --if a --from "$(addr b 2)" --from-mac "$(mac b 2)" --to "$(addr a 2)" \
		--to-mac "$(mac a 2)" "$@"
}

# listen SITE: to what its appliance says on the link, ten seconds at most
listen()
{
	spawn "said-$1" wan perl "$PWD/tests/netns/frames.pl" recv "$1" "$(addr "$1" 2)" 400
	await 10 grep -q ready "$LAB/said-$1.err"
}

heard() # SITE: the payload of its datagrams between the ports 4797, in hex, into $LAB/said-SITE.hex
{
	reap "said-$1" 15
	sed -nE 's/^.{68}12bd12bd.{8}//p' "$LAB/said-$1.out" >"$LAB/said-$1.hex"
	[ "$(wc -l <"$LAB/said-$1.hex")" -gt 20 ] && grep -q '^4c480102' "$LAB/said-$1.hex"
}

noise() # from strangers
{
	in_ns wan "$LAB_BIN/inject" udp --if a --from 10.77.9.1 --hosts 64 --to "$(addr a 2)" --to-mac "$(mac a 2)" \
		--ports 1000:4797 --head 4c480101 --junk 1200 --count 60000 --rate 30000
}

hellos()
{
	datagram --head 4c480101 --junk 1200 --count 60000 --rate 30000
}

data() # the session's number, a sequence number far ahead, and noise
{
	local session

	session=$(grep '^4c480102' "$LAB/said-b.hex" | tail -n 1 | cut -c 9-24)
	[ ${#session} = 16 ] || return
	datagram --head "4c480102${session}0000010000000000" --junk 1200 --count 60000 --rate 30000
}

replayed() # what b said to a
{
	local i

	for i in 1 2 3; do
		datagram --heads "$LAB/said-b.hex" || return
	done
}

reflected() # a's own words, as if b had said them
{
	datagram --heads "$LAB/said-a.hex"
}

# Datagrams that a's appliance has refused: an attack that none of it met would prove nothing
refused()
{
	echo $(($(stat_of a unknown-source) + $(cli a -j peer show | jq '.[0] | [."bad-auth", .reflected, .replayed,
		."too-old", ."no-session", .foreign, .unproven, .limited] | add')))
}

downs()
{
	cli a -j peer show | jq '.[0].downs'
}

amid_stream() # NAME ATTACK...
{
	local name=$1 before refused

	shift
	before=$(downs)
	refused=$(refused)
	stream "$name" --seconds 4 || return
	"$@" || ! why="${why:-could not inject}" || { finish "$name"; return 1; }
	finish "$name"
	kept "$name" && daemons_live || return
	[ "$(refused)" -gt "$refused" ] || ! why="no datagram of the attack was refused" || return
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
wan_start --delay-ms 10 --rate-mbps 150
pair_start -g "wan-rate = 140M"
# what there is to be replayed: a short transfer's reports
listen a && listen b || die "nobody listens on the link"
attack "a transfer, its reports recorded" carried_after captured
heard a && heard b || die "the appliances say nothing"
attack "noise from strangers" amid_stream noise noise
attack "HELLOs in the peer's name" amid_stream hellos hellos
attack "its session with a wrong seal" amid_stream data data
attack "a replay of all it said" amid_stream replay replayed
attack "its own words" amid_stream reflect reflected
attack "a dead peer and a replay" kept_alive
attack "a new daemon and a replay of the old session" fresh_start
attack_exit

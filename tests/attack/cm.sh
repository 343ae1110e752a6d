#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connection manager datagrams that no host sent: with a wrong ICRC, or with a right one and ids of no connection.
# None ends custody, none lets a lane go, none makes a connection up.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

STRANGER=0x123456

# Of the streams, one is made by CM itself
options() # NAME
{
	[ "$1" != by-cm ] || echo --cm
}

amid_stream() # NAME ATTACK...: the data is all right, and the connection is in custody still
{
	local name=$1 closed gone=

	shift
	# shellcheck disable=SC2046
	stream "$name" --count 1500 $(options "$name") || return
	closed=$(lane_field reason)
	"$@" || ! why="could not inject" || return
	await 1 let_go && gone="let go: the lane is not held any more"
	[ "$(lane_field reason)" = "$closed" ] || gone="let go: $(lane_field reason)"
	finish "$name"
	# what was lost is worse than what was let go
	kept "$name" || return
	why=$gone
	[ -z "$why" ]
}

let_go()
{
	! held
}

dreq() # COUNT [ARGUMENT...]: from host a, of the live connection
{
	local n=$1

	shift
	forge ha eth0 a cm --type dreq --qpn "${qpn[b]}" --local-id 0x1111 --remote-id 0x2222 --count "$n" --rate 10 "$@"
}

# A REQ of a's live queue pair and a REP from across the link with a queue pair that does not exist: believed, they
# would make another connection of it.
other_partner() # [ARGUMENT...]
{
	forge ha eth0 a cm --type req --own-qpn "${qpn[a]}" --local-id 0x77aa --starting-psn $STRANGER "$@" &&
	forge wan a b cm --type rep --own-qpn 0x9999 --local-id 0x88bb --remote-id 0x77aa --starting-psn 1 "$@"
}

lab_up
wan_start --delay-ms 25 --rate-mbps 150
pair_start -g "wan-rate = 140M"
attack "one DREQ with a wrong ICRC" amid_stream bad-dreq dreq 1 --bad-icrc
attack "eight DREQs with a wrong ICRC" amid_stream bad-dreqs dreq 8 --bad-icrc
attack "REQ and REP with a wrong ICRC" amid_stream bad-rep other_partner --bad-icrc
attack "one DREQ whose ids fit no connection" amid_stream stray-dreq dreq 1
attack "REQ and REP of a live queue pair" amid_stream stray-rep other_partner

# A connection made by the connection manager: only its own two ids end it
attack "DREQs with other ids, connection made by CM" amid_stream by-cm dreq 4
attack_exit

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Frames with a right ICRC from a third party on the link between the appliances: requests with a PSN that it knows
# or guesses, answers in the responder's name. Nothing is delivered that the requester did not send, and nothing
# is given up for it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

WRITE_MIDDLE=7
ACK=17

amid_stream() # NAME MESSAGES ATTACK...
{
	local name=$1 count=$2

	shift 2
	stream "$name" --count "$count" || return
	# the PSN behind its last packet
	end=$(((psn[a] + count * 64) & 0xffffff))
	"$@" || { why=${why:-could not inject}; finish "$name"; return 1; }
	finish "$name" 120
	kept "$name"
}

# Some packets of junk that far ahead of what is on the link: the stream comes there later
ahead() # PACKETS
{
	local at

	for _ in 1 2 3 4 5; do
		at=$(psn_near nxt "$1") &&
		forge wan b a roce --opcode $WRITE_MIDDLE --qpn "${qpn[b]}" --psn "$at" --step 300 --count 8 \
			--payload 1024 || return
		# a stream goes on meanwhile: was it ahead in truth, and of the stream's own?
		if ! psn_before "$at" nxt; then
			[ $(((at + 2400 - end) & 0x800000)) != 0 ] || why="too late to inject"
			[ -z "$why" ]
			return
		fi
	done
	return 1
}

blind() # packets of junk, evenly over the circle of PSNs, from anywhere on; eight times 64
{
	local i

	for i in 1 2 3 4 5 6 7 8; do
		forge wan b a roce --opcode $WRITE_MIDDLE --qpn "${qpn[b]}" --psn $((RANDOM * 512)) --step 262144 \
			--count 64 --payload 1024 || return
	done
}

blind_many() # the same with 2,000: some lie within any window
{
	forge wan b a roce --opcode $WRITE_MIDDLE --qpn "${qpn[b]}" --random-psn --seed $RANDOM --count 2000 \
		--rate 2000 --payload 1024
}

# answer SYNDROME: as the responder, of the last PSN that its requester has sent. On a bare link a known PSN is
# enough to break a queue pair; between appliances only their reports say such things.
answer()
{
	local at

	at=$(psn_near nxt -1) &&
	forge wan a b roce --opcode $ACK --qpn "${qpn[a]}" --psn "$at" --syndrome "$1" --msn "$(lane_field msn)"
}

blind_answers() # ACKs and NAKs of every kind, evenly over the circle
{
	local s

	for s in 0x1f 0x60 0x61 0x63 0x20; do
		forge wan a b roce --opcode $ACK --qpn "${qpn[a]}" --psn $((RANDOM * 512)) --step 262144 --count 64 \
			--syndrome $s --msn $RANDOM || return
	done
}

guess() # a million requests amid the window, whose seals are guessed: no host takes one, and each is counted
{
	local at was

	was=$(stat_of b seal-wrong) &&
	at=$(psn_near nxt 100) &&
	forge wan b a roce --opcode $WRITE_MIDDLE --qpn "${qpn[b]}" --psn "$at" --step 1 --count 1000000 --rate 60000 \
		--guess-icrc --payload 64 || return
	# a busy machine loses some on their way
	why="only $(($(stat_of b seal-wrong) - was)) were counted"
	[ $(($(stat_of b seal-wrong) - was)) -gt 500000 ] && why=
	[ -z "$why" ]
}

lab_up
wan_start --delay-ms 25 --rate-mbps 150
bare "512 blind packets of junk" amid_stream bare-blind 800 blind
bare "2,000 blind packets of junk" amid_stream bare-many 800 blind_many
bare "blind ACKs and NAKs" amid_stream bare-answers 800 blind_answers
pair_start -g "wan-rate = 140M"
attack "512 blind packets of junk" amid_stream blind 1500 blind
attack "2,000 blind packets of junk" amid_stream many 1500 blind_many
attack "blind ACKs and NAKs" amid_stream answers 1200 blind_answers
attack "1,000,000 requests with guessed seals" amid_stream guess 5200 guess
attack "eight packets of junk 5,000 ahead" amid_stream near 1500 ahead 5000
attack "eight packets of junk 120,000 ahead" amid_stream far 3000 ahead 120000
attack "eight packets of junk 260,000 ahead" amid_stream farthest 5200 ahead 260000
attack "an ACK of a known PSN" amid_stream ack 1200 answer 0x1f
attack "a fatal NAK of a known PSN" amid_stream nak 1200 answer 0x61
attack_exit

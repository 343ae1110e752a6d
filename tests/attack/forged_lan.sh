#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Frames with a right ICRC from a third party in the requester's own segment. The ICRC is no signature: what the
# appliance owes must not be given up because of what anyone can send (doc/architecture.md, custody).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

# A slow link: what the host has been told is done stands in custody for seconds.
SLOW=(--delay-ms 50 --rate-mbps 60 --queue-kb 2000)
FAST=(--delay-ms 60 --rate-mbps 150)

# Where no appliance can be asked: a PSN that far from the first
from_first()
{
	echo $(((psn[a] + $1) & 0xffffff))
}

jump() # COUNT frames of one far PSN, nowhere near what the host uses
{
	forge ha eth0 a roce --qpn "${qpn[b]}" --psn "$(from_first 7000000)" --step 0 --count "$1"
}

other_opcode() # one SEND ONLY where the host's WRITEs are, in custody
{
	local at

	if ! running gw-a; then
		forge ha eth0 a roce --qpn "${qpn[b]}" --psn "$(from_first 200)"
		return
	fi
	for _ in 1 2 3 4 5; do
		at=$(psn_near epsn -200) && forge ha eth0 a roce --qpn "${qpn[b]}" --psn "$at" || return
		# a stream goes on meanwhile: was it in time? If not, it was a duplicate like any other
		psn_before "$at" una || return 0
	done
	return 1
}

# The host has all its completions, most of it is still owed, and then
told() # NAME ATTACK...
{
	local name=$1

	shift
	next_qpns
	transfer_begin "$name" a --op write --count 400 --depth 128 --size 64K --mtu 1024
	if running gw-a; then
		await 20 owes 5000 || ! why="the lane was never held with 5,000 packets" || return
	fi
	reap "$name-req" 20
	! running gw-a || owes 1000 || ! why="nothing was owed any more" || return
	"$@" || ! why="could not inject" || return
	finish "$name"
	kept "$name"
}

# In the midst of a stream
live() # NAME ATTACK...
{
	local name=$1

	shift
	stream "$name" --count 1500 || return
	"$@" || ! why="could not inject" || return
	finish "$name"
	kept "$name"
}

lab_up
wan_start "${FAST[@]}"
bare "three frames of a far PSN amid a stream" live bare-jump jump 3
bare "one frame with another opcode amid a stream" live bare-other other_opcode
pair_start -g "wan-rate = 140M"
attack "three frames of a far PSN amid a stream" live live-jump jump 3
attack "one frame with another opcode amid a stream" live live-other other_opcode
pair_stop
wan_stop

wan_start "${SLOW[@]}"
pair_start -g "wan-rate = 55M"
attack "three frames of a far PSN after the last completion" told told-jump jump 3
attack "one frame with another opcode after the last completion" told told-other other_opcode
attack "a thousand frames of a far PSN after the last completion" told told-flood jump 1000
attack_exit

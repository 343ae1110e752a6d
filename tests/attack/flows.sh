#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A host that sends frames for queue pairs that nobody has, as many as it can: what is known of them is little and
# must not take the room of connections, neither those that are there nor those that come.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

# flood COUNT [RATE]: each with another queue pair number and port, and from and to any host of the sites
flood()
{
	forge ha eth0 a roce --hosts 200 --qpns 16777216 --random-psn --payload 16 --seed $RANDOM --count "$1" \
		${2:+--rate "$2"}
}

sites_start()
{
	gateway_config a -g "wan-rate = 140M" -l 10.77.1.0/24 -w 10.77.2.0/24
	gateway_config b -g "wan-rate = 140M" -l 10.77.2.0/24 -w 10.77.1.0/24
	gateway_start a
	gateway_start b
	await 20 peers_up || die "the peers do not find each other"
}

# flooded NAME COUNT [RATE]: a connection in custody meanwhile. Its host has the patience of a minute: frames are
# dropped when a port is flooded, on a bare link as well.
flooded()
{
	local name=$1

	shift
	stream "$name" --seconds 5 --timeout-exp 18 || return
	flood "$@" || ! why="could not inject" || return
	finish "$name" 40
	kept "$name" && daemons_live
}

afterwards() # NAME
{
	carried_after "$1" && daemons_live
}

lab_up
wan_start --delay-ms 10 --rate-mbps 150
bare "a connection while 300,000 are made up at full speed" flooded bare 300000
sites_start
attack "a connection while 80,000 others are made up" flooded during 80000 20000
attack "a new connection after 80,000 were made up" afterwards after-some
attack "a connection while 300,000 are made up at full speed" flooded full 300000
attack "a new connection after 600,000 were made up" eval 'flood 300000 && afterwards after-many'

# Rules whose lan says any: the port says that a host is there. One frame of a host a that does not exist
# yet, by the wrong port, must not settle that for its connection.
any_start()
{
	local s

	for s in a b; do
		running gw-$s && gateway_stop $s
		gateway_config $s -g "wan-rate = 140M" -l any
		gateway_start $s
	done
	await 20 peers_up || die "the peers do not find each other"
}

wrong_side()
{
	# carried_after takes the numbers that come next
	in_ns wan "$LAB_BIN/inject" roce --if a --from "$(addr a 1)" --to "$(addr b 1)" --to-mac "$(mac b 1)" \
		--qpn $((qpn[b] + 0x10)) --psn 5 || ! why="could not inject" || return
	carried_after wrong-side
}

any_start
attack "a connection, rule any" carried_after any
attack "a connection whose first frame came by the wrong port, rule any" wrong_side
attack_exit

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What happens to the interfaces of an appliance amid a transfer: down and up, another MTU, renamed and back, deleted and
# created again. What is in custody is held, by the process or by the next one, which waits for the port (--wait, as the unit
# has it). The hosts' timers are patient here: without appliances they would need to be, too.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

down_for_a_while() # SITE INTERFACE
{
	ip -n "$P-g$1" link set "$2" down && await 30 log_has "$1" "is down" && ip -n "$P-g$1" link set "$2" up &&
	await 30 carrier && more load-req 100 && await 30 held_now
}

other_mtu() # SITE INTERFACE
{
	ip -n "$P-g$1" link set "$2" mtu 4250 && more load-req 100 && ip -n "$P-g$1" link set "$2" mtu $LAB_MTU && more load-req 100 && await 30 held_now
}

# The daemon ends by itself, as the port is gone; as the unit does, the next one is started at once, and waits
ends() # SITE
{
	reap "gw-$1"
	[ $? = 1 ] && log_has "$1" "was removed or renamed" || return
	cp "$LAB/gw-$1.err" "$LAB/old.err"
	spawn "gw-$1" "g$1" env LONGHAUL_PINS="$LAB/bpf/$1" "${before_others[@]}" -10 "$B/longhauld" --wait -c "$LAB/gw-$1.conf"
	await 30 log_has "$1" "waiting for interface $2: it does not exist"
}

goes_on() # SITE
{
	await 30 attached "$1" && log_has "$1" 'going on where a former longhauld ended' && await 30 carrier && await 30 peers_up &&
	more load-req 100 && await 30 held_now
}

renamed() # SITE INTERFACE
{
	ip -n "$P-g$1" link set "$2" down && ip -n "$P-g$1" link set "$2" name other0 && ends "$1" "$2" &&
	ip -n "$P-g$1" link set other0 name "$2" && ip -n "$P-g$1" link set "$2" up && goes_on "$1"
}

wan_new() # SITE: its WAN port is deleted, and made anew, with what is behind it
{
	local g=$P-g$1

	wan_stop
	ip -n "$g" link del wan0 && ends "$1" wan0 || return
	ip -n "$g" link add wan0 type veth peer name "$1" netns $P-wan && ip -n "$g" link set wan0 master br0 &&
	link_up "g$1" wan0 && link_up wan "$1" && wan_start --delay-ms 10 --rate-mbps 400 && goes_on "$1"
}

lab_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M"
# retries do not end: 250, a minute of them
transfer_begin load a --op write --rate-mbps 10 --seconds 600 --size 8K --depth 64 --mtu 4096 --timeout-exp 16
await 60 held_now
it "the LAN port near the requester is down for a while" down_for_a_while a lan0
it "the WAN port near the requester" down_for_a_while a wan0
it "the WAN port near the responder" down_for_a_while b wan0
it "the LAN port near the responder" down_for_a_while b lan0
for s in a b; do
	it "another MTU, still large enough, and back, LAN and WAN at $s" eval "other_mtu $s lan0 && other_mtu $s wan0"
done
it "the WAN port near the requester is renamed, and back" renamed a wan0
it "the LAN port near the responder is renamed, and back" renamed b lan0
it "the WAN port near the requester is deleted and made anew" wan_new a
it "the WAN port near the responder" wan_new b
more_queues() # SITE INTERFACE: the next daemon has sockets on all of them
{
	in_ns "g$1" ethtool -L "$2" rx 2 || return
	reap "gw-$1"
	[ $? = 1 ] && log_has "$1" "$2.* has another number of receive queues" || return
	gateway_start "$1" && goes_on "$1" && log_has "$1" "port $2: .* 2 queues"
}
name="the LAN port near the requester gets another receive queue"
if [ "$(in_ns ga ethtool -l lan0 | awk '/^RX:/ {print $2; exit}')" -gt 1 ]; then
	it "$name" more_queues a lan0
else
	skip "$name" "it cannot have more"
fi
none_lost()
{
	local s

	enough load-req
	transfer_end load && intact load && [ "$(got load-req errors)" = 0 ] || return
	for s in a b; do
		[ "$(stat_of $s faults)" = 0 ] || return
	done
}
it "the host has seen no error, and no byte is lost" none_lost
pair_stop

# Nothing outlives these daemons: what is at the place of the file is none
no_state() # SITE
{
	mkdir "$RUN/gw-$1.sock.state" && gateway_start "$1" && log_has "$1" 'nothing outlives this process'
}
begin_without() # NAME: a transfer from a, whose daemon has something in custody, and the next one would not
{
	next_qpns
	no_state a && gateway_start b && await 30 peers_up &&
	transfer_begin "$1" a --op write --size 64K --depth 64 --mtu 4096 --seconds 600 && await 60 promised_now 100
}
ends_alone() # SITE: with status 1, but not before it has done what can be
{
	reap "gw-$1"
	[ $? = 1 ] && log_has "$1" "was removed or renamed" && rmdir "$RUN/gw-$1.sock.state"
}
failed() # NAME: the endpoint's queue pair
{
	[ "$(so_far "$1" errors)" -gt 0 ] || ended "${pid[$1]}"
}
# what is in custody cannot be delivered: the log says how much it is, and the host is told. The peer stands still,
# or it might have said before that all of it has come.
wan_lost()
{
	local status=0

	begin_without lost || return
	signal gw-b STOP
	await 60 held_now 100 && ip -n $P-ga link set wan0 down && ip -n $P-ga link set wan0 name other0 && ends_alone a &&
	log_has a 'stopping with [1-9][0-9]* packets, [0-9]* bytes in custody undelivered' && await 60 failed lost-req ||
	status=1
	signal gw-b CONT
	return $status
}
it "the WAN port is gone, and nothing outlives the daemon: told to the log, and to the host" wan_lost
end_hosts() # NAME
{
	running "$1-req" && signal "$1-req" TERM
	reap "$1-req"
	signal "$1-resp" TERM && reap "$1-resp"
}
end_hosts lost
ip -n $P-ga link set other0 name wan0 && ip -n $P-ga link set wan0 up && await 30 carrier
gateway_stop b
lan_lost() # it can
{
	begin_without rest || return
	ip -n $P-ga link set lan0 down && ip -n $P-ga link set lan0 name other0 && ends_alone a &&
	log_has a 'stopped, nothing left in custody' && ! log_has a 'undelivered'
}
it "the LAN port is gone: what was promised is delivered first" lan_lost
end_hosts rest
ip -n $P-ga link set other0 name lan0 && ip -n $P-ga link set lan0 up
gateway_stop b

never() # comes the port, and nobody wants it any more
{
	ip -n $P-ga link set lan0 name other0 2>/dev/null || { ip -n $P-ga link set lan0 down && ip -n $P-ga link set lan0 name other0; }
	spawn never ga "$B/longhauld" --wait -c "$LAB/gw-a.conf"
	await 30 grep -q "waiting for interface lan0: it does not exist" "$LAB/never.err" && signal never TERM
	reap never
	[ $? = 143 ]
}
it "SIGTERM ends the wait" never
exit $((tests_failed > 0))

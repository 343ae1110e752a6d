#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A peer with a host name: found late, found elsewhere, looked up by a process without privileges; what
# --check-config reports of an unknown name.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# With a table of hosts of its own, which no other program sees: ip netns exec is in mounts of its own
with_hosts=(sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$LAB/hosts")

named_start() # site a's daemon
{
	spawn gw-a ga "${with_hosts[@]}" env LONGHAUL_PINS="$LAB/bpf/a" "${before_others[@]}" -10 \
		"$B/longhauld" -c "$LAB/gw-a.conf"
	await 30 attached a && running gw-a
}

unknown()
{
	named_start && await 30 log_has a "edge-b.example cannot be looked up" &&
	jq_true a peer 'all(.state == "down" and .address == null and .host == "edge-b.example")'
}

becomes_known()
{
	echo "10.77.2.2 edge-b.example" >"$LAB/hosts"
	await 60 peers_up && log_has a "edge-b.example is 10.77.2.2" && jq_true a peer 'all(.address == "10.77.2.2")'
}

carried()
{
	next_qpns
	transfer_until 'jq_true a qp "any(.state == \"held\" and .lqpn == $((${qpn[a]})))"' "$1" a --op write --mtu 4096 && intact "$1"
}

moves() # the peer stops, and comes back with another address
{
	gateway_stop b && ip -n $P-gb addr add 10.77.2.9/16 dev br0 &&
	ip -n $P-ga neigh replace 10.77.2.9 lladdr "$(mac b 2)" dev br0 &&
	sed -i 's/^\[longhaul\]$/&\nlisten = 10.77.2.9/' "$LAB/gw-b.conf" && gateway_start b || return
	echo "10.77.2.9 edge-b.example" >"$LAB/hosts"
	await 60 peers_up && jq_true a peer 'all(.address == "10.77.2.9")' && carried elsewhere
}

helper() # PID of it
{
	pgrep -P "${pid[gw-a]}"
}

nobody() # it can do nothing but ask
{
	local p

	p=$(helper) && [ "$(sed -n 's/^CapEff:\t*//p' /proc/$p/status)" = 0000000000000000 ] &&
	[ "$(sed -n 's/^NoNewPrivs:\t*//p' /proc/$p/status)" = 1 ]
}

reloaded()
{
	cli a reload && await 30 jq_true a peer 'all(.state == "up" and .address == "10.77.2.9")' &&
	sed -i 's/edge-b.example/10.77.2.9/' "$LAB/gw-a.conf" && cli a reload && await 30 jq_true a peer 'all(.state == "up" and .host == null)' &&
	sed -i 's/^address = 10.77.2.9/address = edge-b.example/' "$LAB/gw-a.conf" && cli a reload &&
	await 30 jq_true a peer 'all(.state == "up" and .address == "10.77.2.9" and .host != null)'
}

# With the name, what was found stays; an address in its place and the name again. A peer is down, too, when a busy machine
# lets it not run for 0.9 s: then once more.
reloads()
{
	local tries=3 before

	while :; do
		before=$(cli a -j peer show | jq '.[0].downs')
		reloaded || return
		jq_true a peer "all(.downs == $before)" && return
		[ $((tries -= 1)) != 0 ] || return
	done
}

first_name() # where none was named at the start there is nobody to look it up
{
	sed -i 's/^address = .*/address = edge-a.example/' "$LAB/gw-b.conf"
	! cli b reload 2>"$LAB/reload.err" && grep -q "the first peer whose address is a name needs a restart" "$LAB/reload.err"
}

helper_dies()
{
	kill -KILL "$(helper)" && await 30 log_has a "the process that looks up names of peers has ended" &&
	jq_true a peer 'all(.state == "up")' && carried alone
}

ends_alike()
{
	local p

	gateway_stop a && named_start && await 60 peers_up && p=$(helper) && gateway_stop a && await 30 ended "$p"
}

checked()
{
	in_ns ga "${with_hosts[@]}" "$B/longhauld" --check-config -c "$LAB/gw-a.conf" >"$LAB/check.out" 2>&1 &&
	! grep -q "cannot be looked up" "$LAB/check.out" && : >"$LAB/hosts" &&
	in_ns ga "${with_hosts[@]}" "$B/longhauld" --check-config -c "$LAB/gw-a.conf" 2>&1 |
		grep -q "gw-a.conf:[0-9]*: the address of peer 'edge-b', edge-b.example, cannot be looked up"
}

lab_up
wan_start
: >"$LAB/hosts"
for s in a b; do gateway_config $s; done
sed -i 's/^address = .*/address = edge-b.example/' "$LAB/gw-a.conf"
gateway_start b
it "a name that nobody knows yet: the daemon starts, and says so" unknown
it "once it is known the peer is found" becomes_known
it "and connections are held" carried first
it "the process that looks up names has no privileges" nobody
it "the peer comes back elsewhere, and the name with it: it is found there" moves
it "a reload keeps what was found; name and address take each other's place" reloads
it "the first name needs a restart, and a reload says so" first_name
it "that process killed: the log tells, what was found stays" helper_dies
it "it ends with the daemon" ends_alike
it "--check-config looks names up" checked
pair_stop
echo "1..$lab_number"
exit $((tests_failed > 0))

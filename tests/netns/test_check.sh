#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `longhauld --check-config` and the start report of a host, its ports and its link: each fault is made
# once, reported with cause and mend, and undone. tests/unit/test_host has what needs no interfaces.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

check() # SITE: its status; what it says is in $LAB/check.err
{
	# as ip netns exec leaves it, but for the place of pins
	in_ns "g$1" env LONGHAUL_PINS="$LAB/bpf/$1" "$B/longhauld" --check-config -c "$LAB/gw-$1.conf" \
		>"$LAB/check.out" 2>"$LAB/check.err"
}

# warns TEXT...: the check of site a is passed, with one warning that has all of them
warns()
{
	local text

	check a || return
	for text in "warning: .*gw-a.conf:" "$@"; do
		grep -q -- "$text" "$LAB/check.err" || { cat "$LAB/check.err"; return 1; }
	done
	[ "$(wc -l <"$LAB/check.err")" = 1 ] && grep -q ", 1 warning$" "$LAB/check.out"
}

# refuses TEXT...: it is not
refuses()
{
	local text

	! check a || return
	for text in "gw-a.conf:" "$@"; do
		grep -q -- "$text" "$LAB/check.err" || { cat "$LAB/check.err"; return 1; }
	done
	[ "$(wc -l <"$LAB/check.err")" = 1 ]
}

quiet()
{
	check a && [ ! -s "$LAB/check.err" ] && grep -q "no errors, 0 warnings" "$LAB/check.out"
}

on() # SITE COMMAND of ip...
{
	local s=$1

	shift
	ip -n "$P-g$s" "$@"
}

# at_start COMMAND...: the daemon's start says the last check's line as well
at_start() # which has less patience: on a busy machine not each time
{
	local line tries=5

	line=$(sed 's/^warning: //' "$LAB/check.err")
	while gateway_start a && gateway_stop a; do
		grep -qF -- "$line" "$LAB/gw-a.err" && return
		[ $((tries -= 1)) != 0 ] || break
	done
	return 1
}

lab_up
wan_start --delay-ms 5 --rate-mbps 1200
gateway_config a
in_ns ga ethtool -K wan0 tx off >/dev/null

it "nothing wrong: nothing said" quiet

offload()
{
	in_ns ga ethtool -K wan0 tx on >/dev/null && warns "'wan0' is a veth with checksum offload" "ethtool -K wan0 tx off" &&
	in_ns ga ethtool -K wan0 tx off >/dev/null
}
it "offload that leaves local datagrams without a checksum" offload

no_bridge()
{
	on a link set lan0 nomaster && warns "'lan0' is in no bridge" "ip link set dev lan0 master" && at_start
}
it "a port in no bridge, also at the start" no_bridge
two_bridges()
{
	on a link add br1 type bridge && on a link set br1 up && on a link set lan0 master br1 &&
	warns "'lan0' is in bridge 'br1', which has no port of the other side"
}
it "ports in two bridges" two_bridges
on a link set lan0 master br0
on a link del br1
await 30 carrier

it "a port that is down" eval 'on a link set wan0 down && refuses "interface .wan0. is down" "ip link set dev wan0 up"'
on a link set wan0 up
it "a port without carrier" eval 'ip -n $P-ha link set eth0 down &&
	await 10 warns "interface .lan0. has no carrier" && ip -n $P-ha link set eth0 up'
await 30 carrier

it "ports of different MTU" eval 'on a link set lan0 mtu 9000 && warns "MTU 4300.* 9000" "the same"'
on a link set lan0 mtu $LAB_MTU
small_ports()
{
	on a link set lan0 mtu 1500 && on a link set wan0 mtu 1500 && gateway_config a -g "max-path-mtu = 4096" &&
	warns "path MTU 4096 needs ports of MTU 4188, 'lan0' has 1500\|path MTU 4096 needs ports of MTU 4188, 'wan0' has 1500"
}
it "ports too small for the path MTU" small_ports
on a link set lan0 mtu $LAB_MTU
on a link set wan0 mtu $LAB_MTU
gateway_config a

narrow_link()
{
	ip -n $P-wan link set dev a mtu 2000 && warns "the link to peer 'edge-b' does not carry packets of 4188 bytes" "raise the MTU" &&
	at_start
}
it "a link too narrow for the path MTU, also at the start" narrow_link
it "the same over IPv6" eval 'gateway_config a -6 && warns "the link to peer .edge-b. does not carry packets of 4188 bytes"'
ip -n $P-wan link set dev a mtu $LAB_MTU
gateway_config a
it "the wide link again: nothing said" quiet

exchanged()
{
	sed -i 's/^lan = lan0/lan = wan0/; t; s/^wan = wan0/wan = lan0/' "$LAB/gw-a.conf" &&
	in_ns ga ethtool -K lan0 tx off >/dev/null &&
	warns "the ports look exchanged: $(addr b 2), which is on the LAN side\|the ports look exchanged: .* is behind" "exchange" && at_start
}
it "ports exchanged, also at the start" exchanged
gateway_config a
gateway_config a -g "listen = 10.77.1.99"
it "a listen address of somebody else, also at the start" eval 'refuses "listen address 10.77.1.99" "ip address" &&
	! in_ns ga timeout 20 "$B/longhauld" -c "$LAB/gw-a.conf" 2>"$LAB/start.err" && grep -q "listen address" "$LAB/start.err"'
gateway_config a -g "socket = $LAB/none/gw.sock"
it "no folder for the socket" eval 'sed -i "/^socket = .*gw-a.sock/d" "$LAB/gw-a.conf" && refuses "folder of socket" "make it"'
gateway_config a
sed -i "s/^address = .*/address = $(addr a 2)/" "$LAB/gw-a.conf"
it "the own address for a peer's" refuses "is this host's own"
gateway_config a
it "a pool above the memory" eval 'sed -i "s/^pool = .*/pool = 60G/" "$LAB/gw-a.conf" &&
	if [ "$(awk "/MemTotal/ { print int(\$2 / 1048576) }" /proc/meminfo)" -lt 60 ]; then refuses "a pool of 61440 MiB"
	else true; fi'
# memory_group: a control group of ours for memory, its name in $group and the file of its limit in $limit
memory_group()
{
	local root=/sys/fs/cgroup

	group=$root/memory/$P limit=memory.limit_in_bytes
	if [ ! -d $root/memory ]; then
		group=$root/$P limit=memory.max
		grep -qw memory $root/cgroup.controllers 2>/dev/null || return
		echo +memory >$root/cgroup.subtree_control || return
	fi 2>/dev/null
	mkdir "$group"
}
# in_group MIB OPTION...: this shell becomes a longhauld of site a with so much memory. Not by ip netns exec, which has
# a /sys of its own
in_group()
{
	echo "$1M" >"$group/$limit" && echo $BASHPID >"$group/cgroup.procs" || exit 3
	shift
	exec nsenter --net="/run/netns/$P-ga" env LONGHAUL_PINS="$LAB/bpf/a" "${before_others[@]}" -10 "$B/longhauld" -c "$LAB/gw-a.conf" "$@"
}
small_group()
{
	! (in_group 64 --check-config) >"$LAB/check.out" 2>"$LAB/check.err" || return
	grep -q "takes [0-9]* MiB with tables and ports, and the control group of this process allows 64" "$LAB/check.err" &&
	! (in_group 64) 2>"$LAB/start.err" && grep -q "control group of this process" "$LAB/start.err"
}
pool_fills() # more than half of it
{
	cli a -j -d stats show | jq -e '(.[] | select(.name == "custody-used").value) * 2 > (.[] | select(.name == "custody-cap").value)'
}
just_enough() # what it says that it takes, and what else it needs: then custody may fill the whole pool
{
	local need status=0

	need=$(sed -n 's/.* takes \([0-9]*\) MiB with.*/\1/p' "$LAB/check.err")
	(in_group $((need + 40)) --check-config) >"$LAB/check.out" 2>"$LAB/check.err" || return
	! grep "control group" "$LAB/check.err" || return # the /sys that it sees has other interfaces
	(in_group $((need + 40))) >"$LAB/gw-a.out" 2>"$LAB/gw-a.err" </dev/null &
	pid[gw-a]=$!
	lab_pids+=($!)
	gateway_config b && await 30 attached a && gateway_start b && await 30 peers_up || return
	next_qpns
	transfer_begin full a --op write --size 64K --depth 1024 --seconds 600 --timeout-exp 21
	# on a slow link the host would have sent it all before the lane is held, and no report would come through
	await 60 held_now && wan_stop && wan_start --delay-ms 5 --rate-mbps 20 && await 60 pool_fills || status=1
	signal full-req KILL && reap full-req
	signal full-resp KILL && reap full-resp
	running gw-a && signal gw-a KILL && reap gw-a
	gateway_stop b && wan_stop && wan_start --delay-ms 5 --rate-mbps 1200 && return $status
}
gateway_config a
if memory_group; then
	it "a pool above what the control group allows, also at the start" small_group
	it "a full pool in a control group that allows just that" just_enough
else
	skip "a control group that allows too little memory" "there is no control group of memory"
fi

no_bpffs()
{
	gateway_config a -r "prefetch = on" && mkdir -p "$LAB/plain" &&
	in_ns ga env LONGHAUL_PINS="$LAB/plain/a" "$B/longhauld" --check-config -c "$LAB/gw-a.conf" 2>"$LAB/check.err" &&
	grep -q "wants prefetch or announce, and there is no BPF file system at .*plain" "$LAB/check.err"
}
it "prefetch without a BPF file system" no_bpffs

no_mirror() # what only the peer can tell: as soon as it is up
{
	gateway_config a && gateway_config b -l 10.99.0.0/16 && gateway_start b && gateway_start a && await 30 peers_up &&
	await 30 grep -q "alarm rule-missing: rule hosts .* peer edge-b.* lan and wan exchanged" "$LAB/gw-a.err" &&
	await 30 grep -q "alarm rule-missing: .*peer edge-a" "$LAB/gw-b.err"
}
it "a rule missing at the peer" no_mirror
mirror()
{
	gateway_stop b && gateway_config b && gateway_start b &&
	await 30 grep -q "alarm rule-missing is over" "$LAB/gw-a.err"
}
it "the rule is there now" mirror
exit $((tests_failed > 0))

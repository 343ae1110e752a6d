#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# NTT-10: RDMA of an application on the appliance itself, at an address of its bridge that a rule covers: it is not taken, moves
# its data as without longhaul, and status names the address; also one that comes and goes while the daemon runs.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# NAME ADDRESS ARGUMENT...: from an endpoint on br0 of appliance a, with that address, to the host of site b
own_transfer()
{
	local name=$1 from=$2 n

	shift 2
	next_qpns
	n=$(packet_sockets hb)
	host_start "$name-resp" b --listen --peer-ip "$from" --peer-mac "$(mac a 2)" "$@"
	await 30 socket_open "$name-resp" b $((n + 1))
	spawn "$name-req" ga "${before_others[@]}" 0 "$LAB_BIN/endpoint" --if br0 --ip "$from" --peer-ip "$(addr b 1)" \
		--peer-mac "$(mac b 1)" --qpn ${qpn[a]} --peer-qpn ${qpn[b]} --psn ${psn[a]} --peer-psn ${psn[b]} \
		--retry 250 "$@"
	transfer_end "$name" && intact "$name" && jq_true a qp 'all(.lqpn != $q)' --argjson q $((${qpn[a]}))
}

hint_of() # ADDRESS: status names it
{
	cli a status | grep -q "hint: RDMA to and from addresses of this host.*$1 (rule hosts)"
}

lab_up
wan_start --delay-ms 5 --rate-mbps 1200
gateway_config a -l "10.77.1.0/24, fd77::1:0/112"
gateway_config b -w "10.77.1.0/24, fd77::1:0/112"
for s in a b; do
	gateway_start $s
done
await 30 peers_up || die "the peers do not find each other"

it "status and the log name the own address and the rule" eval 'hint_of 10.77.1.2 && hint_of fd77::1:2 &&
	log_has a "own addresses of this host that rules cover: .*10.77.1.2 (rule hosts)"'
it "WRITE from the own address to a far host" own_transfer write "$(addr a 2)" --op write --count 200
it "the ports say whose packets passed" jq_true a port 'any(.side == "wan" and ."unwanted-from" == "10.77.2.1" and
	."unwanted-to" == "10.77.1.2" and ."unwanted-vlan" == null and ."unwanted-ms" >= 0 and ."passed-no-rule" > 0)'
it "READ" own_transfer read "$(addr a 2)" --op read --count 100
FAMILY=6
it "WRITE over IPv6" own_transfer write6 "$(addr a 2)" --op write --count 100
FAMILY=4
next_qpns
it "the hosts of the rule are held as ever" eval 'transfer hosts a --op write --count 500 && intact hosts &&
	jq_true a qp "any(.lqpn == \$q and .state == \"held\")" --argjson q $((${qpn[a]}))'

ip -n "$P-ga" addr add 10.77.1.9/16 dev br0
it "an address that comes is seen" await 20 hint_of 10.77.1.9
it "and not taken" own_transfer later 10.77.1.9 --op write --count 100
ip -n "$P-ga" addr del 10.77.1.9/16 dev br0
it "one that goes is forgotten" await 20 eval '! hint_of 10.77.1.9'
it "the rest is as before" own_transfer again "$(addr a 2)" --op send --count 100
exit $((tests_failed > 0))

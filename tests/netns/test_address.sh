#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# IPv6 for the hosts and for the appliances, VLANs, and what rules leave alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# NAME FILTER ARGUMENT...: content right, and FILTER holds for the connection at site a ($q its QPN)
transfer_and()
{
	local name=$1 filter=$2

	shift 2
	next_qpns
	transfer "$name" a "$@" && intact "$name" &&
	jq_true a qp "any(.lqpn == \$q and ($filter))" --argjson q $((${qpn[a]}))
}

not_taken() # NAME ARGUMENT...: content right, and the appliance knows nothing of it
{
	local name=$1 taken

	shift
	taken=$(stat_of a taken)
	next_qpns
	transfer "$name" a "$@" && intact "$name" && [ "$(stat_of a taken)" = "$taken" ] &&
	jq_true a qp 'all(.lqpn != $q and .rqpn != $q)' --argjson q $((${qpn[a]}))
}

lab_up
wan_start --delay-ms 5 --rate-mbps 1200 --loss 0.002

pair_start -6
FAMILY=6
it "IPv6 hosts, appliances that talk over IPv6: WRITE" transfer_and v6 '
	.state == "held" and ."pseudo-acks" > 0 and ."lan-ip" == "fd77::1:1" and ."wan-ip" == "fd77::2:1"' \
	--op write --count 500 --mtu 4096
it "IPv6: SEND, path MTU 1024" transfer_and v6s '.state == "held" and ."path-mtu" == 1024' \
	--op send --count 300 --mtu 1024
narrow() # found out over IPv6
{
	wan_stop && wan_start --delay-ms 5 --mtu 1400 &&
	await 20 jq_true a peer 'all(."link-mtu" == 1400 and ."link-mtu-from" == 1400)' &&
	wan_stop && wan_start --delay-ms 5 --rate-mbps 1200 --loss 0.002 &&
	await 20 jq_true a peer 'all(."link-mtu" == 4188 and ."link-mtu-from" == 4188)'
}
it "IPv6: the peers know what the link carries" narrow
FAMILY=4
it "IPv4 hosts over the same appliances" transfer_and v4 '.state == "held"' --op write --count 300 --mtu 4096
pair_stop

pair_start -r "vlan = 42"
it "VLAN 42, and a rule for it: WRITE" transfer_and vlan '.state == "held" and .vlan == 42' \
	--op write --count 500 --mtu 4096 --vlan 42
it "VLAN 42: SEND" transfer_and vlans '.state == "held" and .vlan == 42' \
	--op send --count 500 --mtu 4096 --vlan 42
it "VLAN 43 is not the rule's: left to the bridge" not_taken other-vlan --op write --count 100 --mtu 4096 --vlan 43
it "untagged is not the rule's: left to the bridge" not_taken untagged --op write --count 100 --mtu 4096
pair_stop

pair_start -r "vlan = none"
it "a rule for untagged packets leaves VLAN 42 to the bridge" not_taken tagged \
	--op write --count 100 --mtu 4096 --vlan 42
pair_stop

pair_start
it "a rule for any VLAN takes VLAN 42" transfer_and any '.state == "held" and .vlan == 42' \
	--op write --count 300 --mtu 4096 --vlan 42
pair_stop

for s in a b; do
	gateway_config $s -l 10.99.1.0/24 -w 10.99.2.0/24
	gateway_start $s
done
it "hosts of no rule: left to the bridge" not_taken stranger --op write --count 100 --mtu 4096
exit $((tests_failed > 0))

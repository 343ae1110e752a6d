#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections made through the connection manager: learned from its datagrams, which
# pass unchanged (UD SEND to QPN 1).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

by_cm() # NAME OP MESSAGES ARGUMENT...: so many at least, and until it is seen to be carried
{
	local name=$1 op=$2 messages=$3

	shift 3
	next_qpns
	transfer_until "known && so_far_above $name-req messages $messages" "$name" a --cm --op "$op" --size 16K --rate-mbps 80 "$@" &&
	intact "$name"
}

known() # the latest connection, by CM, and its requests are answered here
{
	jq_true a qp 'any(.lqpn == $l and .rqpn == $r and ."learned-by" == "cm" and ."pseudo-acks" > 0)' \
		--argjson l $((${qpn[a]})) --argjson r $((${qpn[b]}))
}

hinted() # SITE: status names storage connections that would gain by announce, and that is no alarm
{
	cli "$1" status | grep -q '^  hint: writes of storage connections (nvme 1) ' &&
	jq_true "$1" status 'all(.[]; .name | test("hint|announce") | not)'
}

would_gain()
{
	next_qpns
	transfer_until "known && hinted a && hinted b" nvme a --cm --nvme --op send --mtu 4096 --rate-mbps 50 && intact nvme
}

released() # the hosts have disconnected
{
	jq_true a qp 'all(.[] | select(.lqpn == $q); .state == "watch")' --argjson q $((${qpn[a]}))
}

lab_up
wan_start --delay-ms 5 --rate-mbps 1200
pair_start -g "wan-rate = 400M"
it "learned by CM, WRITE" by_cm write write 1500 --mtu 4096
it "released when the hosts disconnect" await 30 released
it "learned by CM, SEND, path MTU 1024" by_cm send send 1000 --mtu 1024
it "two queue pairs by CM" by_cm two write 1500 --qps 2 --mtu 4096
it "NVMe without announce: a hint" would_gain
it "no hint once it is taken down" await 60 eval '! cli a status | grep -q hint:'
wan_stop
wan_start --delay-ms 5 --rate-mbps 1200 --loss 0.01
it "learned by CM with 1 % loss" by_cm loss write 1000 --mtu 4096
pair_stop

pair_start -g "wan-rate = 400M" -r "learn = cm"
not_by_psn()
{
	next_qpns
	transfer plain a --op write --count 60 --mtu 4096 && intact plain &&
	jq_true a qp 'all(.[]; .state == "watch" and ."pseudo-acks" == 0)'
}
wan_stop
wan_start --delay-ms 5 --rate-mbps 1200
it "learn = cm: a connection without CM only passes" not_by_psn
it "learn = cm: one with CM is carried" by_cm only-cm send 1000 --mtu 4096
exit $((tests_failed > 0))

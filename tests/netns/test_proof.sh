#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What PSNs say of two queue pairs is proved before it is used (NTT-3): the appliance near the responder sends requests
# again and hears when they are answered. Programs answer late on a busy machine, so it may take seconds.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

proved() # SITE: the appliance near the responder has asked, the other one has its word, and the lane is held
{
	jq_true "$1" qp 'any(.lqpn == $q and .state == "held" and ."learned-by" == "peer" and ."pseudo-acks" > 0)' \
		--argjson q $((${qpn[$1]})) &&
	[ "$(stat_of "$(other "$1")" learn-probes)" -gt 0 ]
}

carried() # NAME FROM OP ARGUMENT...
{
	next_qpns
	transfer "$1" "$2" --op "${@:3}" && intact "$1" && proved "$2"
}

lab_up
wan_start --delay-ms 5 --rate-mbps 400
pair_start -r "learn = cm, psn"

it "WRITE from a" carried write-a a write --count 6000 --mtu 4096
it "SEND from b" carried send-b b send --count 6000 --mtu 4096
exit $((tests_failed > 0))

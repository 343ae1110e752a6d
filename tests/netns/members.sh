# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # qpn is of lib.sh
#
# What tests with several ports a side ask of transfers and ports. For those who have sourced lib.sh.
# PATH_MTU is that of the transfers, 4096.

answered() # SITE: what the latest requester there sends is acknowledged by its appliance
{
	jq_true "$1" qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' --argjson q $((${qpn[$1]}))
}

carried() # NAME FROM ARGUMENT...: content right, answered by the appliance near the requester
{
	next_qpns
	transfer "$@" --mtu "${PATH_MTU:-4096}" && intact "$1" && answered "$2"
}

held_at() # SITE
{
	jq_true "$1" qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[$1]}))
}

reads() # NAME FROM: content right, through lanes
{
	next_qpns
	transfer "$1" "$2" --op read --count 200 --mtu "${PATH_MTU:-4096}" && intact "$1" && held_at "$2"
}

amid() # NAME FROM OP COMMAND...: a stream of a host that tries seven times goes on over it, and nothing of it is wrong
{
	local name=$1 from=$2 op=$3 status=0

	shift 3
	next_qpns
	transfer_begin "$name" "$from" --op "$op" --mtu "${PATH_MTU:-4096}" --timeout-exp 17 --retry 7 --size 8K --rate-mbps 10 --seconds 600
	await 60 held_at "$from" && more "$name-req" 100 && "$@" && more "$name-req" 200 || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] && [ $status = 0 ]
}

alarmed() # SITE ALARM
{
	jq_true "$1" status 'any(.name == $n and .state == "raised")' --arg n "$2"
}

port_is() # SITE PORT STATE
{
	jq_true "$1" port 'any(.name == $p and .state == $s)' --arg p "$2" --arg s "$3"
}

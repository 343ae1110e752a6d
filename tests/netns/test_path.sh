#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Packets that miss an appliance (ENG-19): for a few milliseconds, a loss that is repaired, and for seconds, which
# both ends report. Hosts see no error and no wrong byte, whichever appliance is missed in which direction.
set -u
cd "$(dirname "$0")/../.." || exit 1
SWITCH=1
. tests/netns/lib.sh

# shellcheck disable=SC2034 # handed over by name
WRITES=(--op write --size 16K --rate-mbps 63 --depth 8 --mtu 4096 --timeout-exp 14)
AHEAD=(--cm --op read --size 16K --rate-mbps 63 --depth 4 --mtu 4096 --timeout-exp 14)
# shellcheck disable=SC2034
READS=("${AHEAD[@]:1}")

# Who is missed by whose packets, of requests from a and their answers
WAYS=("a a" "b a" "b b" "a b")

at_first() # WAY: it is the first of the two appliances on the way, so that the other one sees packets without a seal
{
	[ "${1% *}" = "${1#* }" ]
}

flaps() # NAME WAY...: six times, for some milliseconds
{
	local name=$1 i way

	shift
	for i in {1..6}; do
		for way; do
			miss $way || return
		done
		sleep 0.003
		for way; do
			cross $way || return
		done
		more "$name-req" 20 || return
	done
}

unsealed() # of both
{
	echo $(($(stat_of a unsealed) + $(stat_of b unsealed)))
}

short() # NAME CONDITION OP WAY...: a transfer during which packets take those ways for a moment, again and again
{
	local name=$1 condition=$2 status=0 before
	local -n arguments=$3

	shift 3
	next_qpns
	before=$(unsealed)
	transfer_begin "$name" a "${arguments[@]}" --seconds 600
	await 60 eval "$condition" && flaps "$name" "$@" || status=1
	# a moment may be one in which nothing was sent
	for _ in {1..20}; do
		! at_first "$1" || [ "$(unsealed)" -gt "$before" ] || flaps "$name" "$@" || status=1
	done
	enough "$name-req"
	transfer_end "$name" && intact "$name" || status=1
	echo "without a seal: $(($(unsealed) - before))"
	[ $# != 1 ] || ! at_first "$1" || [ "$(unsealed)" -gt "$before" ] || status=1
	[ "$(stat_of a faults)" = 0 ] && [ "$(stat_of b faults)" = 0 ] && return $status
}

# missed_is SITE WORDS: the daemon there says so of the latest connection, and raises the alarm
missed_is()
{
	log_has "$1" "qpn ${qpn[$1]} .* lane .*: packets $2" &&
	jq_true "$1" status 'any(.name == "path-bypass" and .state == "raised" and (.mend | length > 10))'
}

# long NAME OP WAY [SITE WORDS]...: a transfer whose packets take that way until those ends say so, and then the right one again
long()
{
	local name=$1 way=$3 status=0 from to
	local -n arguments=$2

	shift 3
	next_qpns
	from=$(addr "${way#* }" 1)
	to=$(addr "$(other "${way#* }")" 1)
	transfer_begin "$name" a "${arguments[@]}" --seconds 600
	await 60 held_now && more "$name-req" 100 && miss $way || status=1
	while [ $# -ge 2 ]; do
		await 30 missed_is "$1" "from $from to $to miss $2" || status=1
		shift 2
	done
	cross $way
	more "$name-req" 50 || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" || status=1
	[ "$(stat_of a faults)" = 0 ] && [ "$(stat_of b faults)" = 0 ] && return $status
}

# Without READ ahead a lane whose packets miss an appliance can be let go. Hosts that go on alone need a link that takes
# less time for what they have under way than they wait.
restarted()
{
	pair_stop && wan_stop && wan_start --delay-ms 5 --rate-mbps 60 && pair_start -g "wan-rate = 57M"
}

lab_up
wan_start --delay-ms 5 --rate-mbps 60 # the load lasts as long as the changes of way; more only takes processors
pair_start -g "wan-rate = 57M" -r "prefetch = on"
for way in "${WAYS[@]}"; do
	it "packets from ${way#* } miss the appliance at ${way% *} for a moment: writes" short "w${way/ /}" promised_now WRITES "$way"
done
it "packets from a miss both for a moment: writes" short both promised_now WRITES "a a" "b a"
for way in "${WAYS[@]}"; do
	it "packets from ${way#* } miss the appliance at ${way% *} for a moment: reads ahead" short "r${way/ /}" ahead_now AHEAD "$way"
done
it "the appliances go on without READ ahead" restarted
it "writes miss the appliance near them until both ends say so" long laa WRITES "a a" b "the appliance of peer edge-a" a "this appliance"
it "writes miss the far appliance until the near one says so" long lba WRITES "b a" a "the appliance of peer edge-b"
it "ACKs miss the appliance near them until the other one says so" long lbb WRITES "b b" a "the appliance of peer edge-b"
it "READs miss the appliance near them until both ends say so" long raa READS "a a" b "the appliance of peer edge-a" a "this appliance"
it "READs miss the far appliance until the near one says so" long rba READS "b a" a "the appliance of peer edge-b"
it "answers miss the appliance near them until the other one says so" long rbb READS "b b" a "the appliance of peer edge-b"
it "answers miss the far appliance until it says so" long rab READS "a b" a "this appliance"
it "everything stops in order" pair_stop
exit $((tests_failed > 0))

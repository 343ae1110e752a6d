#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# To another version whose memory is laid out otherwise, and back, amid transfers at full load over 20 ms, as the unit does
# it: `longhauld --hand-over` of the new one reports that it cannot adopt the state of the running one, so that one releases
# its connections, and the new one learns them again. Hosts with ordinary timers (67 ms, seven retries) see no error.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOST=(--size 16K --rate-mbps 42 --depth 4 --mtu 4096 --timeout-exp 14 --retry 7 --region 8M)
DIR=([0]=$B [1]=$B/other) # of the two versions
now=0

restart() # SITE: of `systemctl restart`, with the version that does not run
{
	local new=${DIR[$((1 - now))]}

	now=$((1 - now))
	"$new/longhauld" --check-config -c "$LAB/gw-$1.conf" --offline >/dev/null || return
	in_ns "g$1" "$new/longhauld" --check-config -c "$LAB/gw-$1.conf" | grep -q "a restart: connections are released first: another version runs" || return
	if in_ns "g$1" "$new/longhauld" -c "$LAB/gw-$1.conf" --hand-over "${pid[gw-$1]}" 2>"$LAB/hand-over.err"; then
		return 1
	fi
	grep -q "another version runs" "$LAB/hand-over.err" || return
	gateway_stop "$1" && grep -q 'stopped, nothing left in custody' "$LAB/gw-$1.err" || return
	spawn "gw-$1" "g$1" env LONGHAUL_PINS="$LAB/bpf/$1" "${before_others[@]}" -10 "$new/longhauld" -c "$LAB/gw-$1.conf"
	await 30 attached "$1" && await 30 peers_up && ! grep -q "cannot be adopted\|going on where" "$LAB/gw-$1.err"
}

# amid NAME OP SITE: there and back; once more where the retries of the host ran out, since nobody answers a READ for a far
# host that a busy machine does not let run
amid()
{
	local tries=3

	until stream "$@"; do
		[ $((tries -= 1)) != 0 ] && ran_out "$1" || return
		! running "gw-$3" || gateway_stop "$3" || return
		now=0
		gateway_start "$3" && await 30 peers_up || return
	done
}

stream()
{
	local name=$1 status=0

	next_qpns
	transfer_begin "$name" a --op "$2" "${HOST[@]}" --seconds 600
	await 60 held_now && more "$name-req" 100 || status=1
	for _ in there back; do
		restart "$3" && more "$name-req" 100 && await 30 held_now || status=1
	done
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] || status=1
	for s in a b; do
		[ "$(stat_of $s faults)" = 0 ] || status=1
	done
	echo "# $name: $(jq -r '"timeouts \(.timeouts), longest gap \(."gap-max-ms") ms"' "$LAB/$name-req.out")" >>"$LAB/gaps"
	return $status
}

[ -x "$B/other/longhauld" ] || die "make tests first: there is no $B/other/longhauld"
lab_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 40
# a busy machine may take longer over what is owed than the 10 s that are usual
pair_start -g "wan-rate = 38M" -g "drain-timeout = 50s"
same()
{
	in_ns ga "$B/longhauld" --check-config -c "$LAB/gw-a.conf" | grep -q "a restart: connections are handed over"
}
it "the same version: --check-config says that a restart hands over" same
for op in write send read; do
	it "another layout and back near the requester: $op" amid a-$op $op a
	it "another layout and back near the responder: $op" amid b-$op $op b
done
it "everything stops in order" pair_stop
it "and nothing is left" eval '[ -z "$(ls "$RUN")" ]'
cat "$LAB/gaps"
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Captures of both LANs and of both ends of the WAN, judged afterwards: every ACK is preceded by its data, no ACK
# of the true responder leaks, nothing is forwarded twice, MSNs, PSNs, ICRCs and contents right (NTT-1); an
# RNR NAK is waited out near the responder, and nowhere else (ENG-5). An
# AF_XDP socket hides frames from captures on its interface, so these are taken at the hosts and in the
# emulator's namespace.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

LINK=(--visible --delay-ms 5 --rate-mbps 400)
declare -A where=([lan-a]="ha eth0" [wan-a]="wan a" [wan-b]="wan b" [lan-b]="hb eth0")

ready() # PLACE
{
	grep -q 'capture: ready' "$LAB/cap-$1.err"
}

captures_start()
{
	local p ns ifname

	for p in "${!where[@]}"; do
		read -r ns ifname <<<"${where[$p]}"
		spawn "cap-$p" "$ns" "${before_others[@]}" -10 "$LAB_BIN/pcapcheck" --capture "$ifname" "$LAB/$p.pcap"
	done
	for p in "${!where[@]}"; do
		await 30 ready "$p" || die "no capture of $p: $(cat "$LAB/cap-$p.err")"
	done
}

captures_stop()
{
	local p

	for p in "${!where[@]}"; do
		signal "cap-$p" TERM
	done
	for p in "${!where[@]}"; do
		reap "cap-$p"
	done
}

judged() # the captures are whole, and right
{
	local p args=()

	for p in "${!where[@]}"; do
		args+=("--$p" "$LAB/$p.pcap" --drops "$LAB/cap-$p.out")
	done
	# An acceptor passes what its opener resends although it had arrived, as it passes a host's own repeats.
	"$LAB_BIN/pcapcheck" "${args[@]}" --pass-repeats --lan-ms 600
}

watched() # NAME ENDPOINT-ARGUMENT...: a transfer under capture
{
	local name=$1 status=0

	shift
	next_qpns
	captures_start
	transfer "$name" a --visible --mtu 1024 "$@" || status=1
	captures_stop
	judged || status=1
	return $status
}

lab_up
wan_start "${LINK[@]}"
pair_start

it "WRITE, 5 ms: captures judged" undisturbed watched write --op write --count 400 --size 20000
it "SEND with receives posted one by one: RNR at the far side only" undisturbed watched rnr --op send --count 200 \
	--size 3000 --rnr-p 0.02
it "READ" undisturbed watched read --op read --count 200 --size 20000
it "a mix of all kinds on four queue pairs" undisturbed watched mix --op mix --count 800 --size 20000 --qps 4

cut_off() # half a capture: what was acknowledged never reached the far LAN, or the file has no end
{
	head -c $(($(stat -c %s "$LAB/lan-b.pcap") / 2)) "$LAB/lan-b.pcap" >"$LAB/half.pcap" &&
	! "$LAB_BIN/pcapcheck" --lan-a "$LAB/lan-a.pcap" --lan-b "$LAB/half.pcap"
}
it "half a capture is not taken for a whole one" cut_off

wan_stop
wan_start "${LINK[@]}" --loss 0.005
it "0.5 % loss, a mix of all kinds" undisturbed watched loss --op mix --count 800 --size 20000 --qps 2
exit $((tests_failed > 0))

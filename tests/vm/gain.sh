#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How much slower or faster applications are through the appliances than without them, in the configuration that an
# operator gets without setting anything: nothing is lost, and 20 ms lie between two guests. A part of `make check-vm`;
# about 4 minutes. For each application, bare first and then through longhaul,
#
#	gain: nvme-read-64k-qd4 direct-MBps=8.31 longhaul-MBps=8.12 gain=0.98 repeats=0 spurious=0
#
# repeats is how many packets both appliances sent again over the WAN, spurious how many of them they found to be
# needless: without loss all are. What the appliances say of their rate stands before it, as comments. The last line has
# the ratios alone:
#
#	gain: nvme-read-64k-qd4=0.98 nvme-write-1m-qd4=1.31 rstream=0.93 ucx-tag-read=1.02 least=0.93 seconds=207
#
# Exit status 0 when every application ran, and none is slower than LEAST (0, so no measurement fails by itself).
# `tests/vm/gain.sh REGEX` takes the applications whose names fit, GATEWAY="wan-rate = 0" adds a line to
# both configurations, RUN_SECONDS=4 is how long the disk is measured.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
reason=$(B=$B tests/vm/build.sh storage) || { echo "gain: cannot run: $reason" >&2; exit 1; }
GUEST_MB=640 INITRD=initrd-storage
. tests/vm/lib.sh
. tests/vm/tools.sh
. tests/vm/protocols.sh

RTT=20
WANTED=${1:-}
LEAST=${LEAST:-0}
RUN_SECONDS=${RUN_SECONDS:-4}
UCX="UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=1 UCX_TLS=rc_verbs UCX_SOCKADDR_TLS_PRIORITY=rdmacm UCX_RNDV_SCHEME=get_zcopy"
APPS="nvme-read-64k-qd4 nvme-write-1m-qd4 rstream ucx-tag-read"
declare -A direct
failed=0
ratios=

# MB/s of bytes that the disk's reader or writer moved, into $rate
run_nvme() # RW BLOCK DEPTH
{
	guest a $((RUN_SECONDS + 60)) "$(one_line "fio --name=x --filename=$disk --direct=1 --thread --ioengine=libaio --rw=$1
		--bs=$2 --iodepth=$3 --size=8M --ramp_time=1 --time_based --runtime=$RUN_SECONDS --output-format=terse
		--terse-version=3 2>&1 | tail -n 1")" || return
	rate=$(cut -d';' -f5,7,48 <<<"$reply" | awk -F';' '$1 == 0 { printf "%.2f", ($2 + $3) * 1024 / 1e6 }')
}

# rsockets: 64 messages of 64 KiB there, and as many back, eight times
run_rstream()
{
	local opts="-S 65536 -C 64 -I 8" to

	to=$(addr b 1 4)
	serve 120 "rstream $opts" cm "rstream -s $to $opts"
	[ $? = 0 ] || return
	rate=$(awk '$1 == "custom" { sub("s", "", $6); printf "%.2f", 2 * 65536 * 64 * 8 / $6 / 1e6 }' <<<"$reply")
	guest_wait b "$served"
}

# UCX, tag-matched sends of 256 KiB, four at a time: the receiver READs them. Each line that the client writes has the
# time.
run_ucx()
{
	local opts="-p 13337 -d 262144:262144" to n=200

	to=$(addr b 1 4)
	serve 120 "$UCX io_demo $opts" cm "$UCX io_demo $opts -i $n -w 4 -o write $to"
	[ -z "${DEBUG:-}" ] || echo "$reply" >&2
	rate=$(awk -F'[][]' -v n=$n '/connected to server/ { from = $2 } /end of the client run/ { to = $2 } /status .ok/ { ok = 1 }
		END { if (ok && to > from) printf "%.2f", 262144 * n / (to - from) / 1e6 }' <<<"$(tr A-Z a-z <<<"$reply")")
	guest_kill b "$served"
	guest_wait b "$served"
}

# MB/s into $rate, empty when there is none
run() # NAME
{
	rate=
	case $1 in
	nvme-read-64k-qd4) run_nvme read 64k 4 ;;
	nvme-write-1m-qd4) run_nvme write 1m 4 ;;
	rstream) run_rstream ;;
	ucx-tag-read) run_ucx ;;
	esac
	[ -n "$rate" ] && [ "$rate" != 0.00 ]
}

wanted()
{
	[[ $1 =~ $WANTED ]] || return
	[[ $1 != ucx* ]] || PATH=$PATH:/usr/sbin command -v io_demo >/dev/null || { echo "# no UCX here" >&2; return 1; }
}

sum_of() # COUNTER: of both appliances
{
	echo $(($(stat_of a "$1") + $(stat_of b "$1")))
}

measured() # NAME LONGHAUL-RATE REPEATS SPURIOUS
{
	local gain

	gain=$(awk -v a="$2" -v b="${direct[$1]:-0}" 'BEGIN { printf "%.2f", (b > 0 ? a / b : 0) }')
	echo "gain: $1 direct-MBps=${direct[$1]} longhaul-MBps=$2 gain=$gain repeats=$3 spurious=$4"
	ratios+=" $1=$gain"
	least=$(awk -v a="$gain" -v b="${least:-$gain}" 'BEGIN { print (a < b ? a : b) }')
}

bare()
{
	local t

	nvme_connect 0 || die "the initiator does not connect: $reply"
	for t in $APPS; do
		wanted "$t" || continue
		run "$t" || { echo "gain: $t bare FAILED: $(brief "$reply $why")"; failed=$((failed + 1)); }
		direct[$t]=${rate:-0}
	done
	nvme_disconnect || die "the initiator does not disconnect: $reply"
}

# What is to be known of the rate
pace()
{
	local s

	for s in a b; do
		cli $s peer show -d | grep -iE 'rate|pace|loss|queue|lost|repeat' | sed "s/^/# $1 $s: /"
	done
}

through()
{
	local t repeats spurious

	nvme_connect 0 || die "the initiator does not connect through the appliances: $reply"
	for t in $APPS; do
		wanted "$t" || continue
		repeats=$(sum_of retx-wan) spurious=$(sum_of retx-spurious)
		if run "$t"; then
			pace "$t"
			measured "$t" "$rate" $(($(sum_of retx-wan) - repeats)) $(($(sum_of retx-spurious) - spurious))
		else
			pace "$t"
			echo "gain: $t longhaul FAILED: $(brief "$reply $why")"
			failed=$((failed + 1))
		fi
	done
	nvme_disconnect || die "the initiator does not disconnect from the appliances: $reply"
}

vm_up
wan_start --visible --only-roce --delay-ms $((RTT / 2))
nvme_up || die "the target does not start: $reply"
bare
pair_start ${GATEWAY:+-g "$GATEWAY"}
through
pair_stop
wan_stop
echo
echo "gain:$ratios least=${least:-0} seconds=$SECONDS"
[ $failed = 0 ] && [ -n "$ratios" ] && awk -v a="$least" -v b="$LEAST" 'BEGIN { exit a < b }'

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Throughput on real clocks: real daemons, AF_XDP on veth, the WAN emulator, in network namespaces (root).
#
#	real.sh [LINK ...]    LINK: rtt-ms:Mbit/s, 0 for no limit; default all
#
# Between the two hosts are, in turn:
#
#	bare       the two bridges
#	forwarder  two plain AF_XDP forwarders (afxdp_forward), which do nothing to a packet
#	fixed      two daemons with `wan-rate` set: 4G without a limit, 96 % of the link with one
#	auto       two daemons as an operator gets them who sets nothing
#
# They are measured one after the other within each round, so that what disturbs the machine disturbs all of them
# alike, and compared as ratios of one round; the median of the rounds counts. What is only shown is measured in the first
# round, and what is compared with forwarders twice more. Transfers: WRITE and READ of
# 64 KiB, 128 outstanding (READ: 16), path MTU 4096. Beside each, a queue pair READs 64 bytes, one at a time: a ping.
# `limited` is the share of what the link carries at most: its rate is that of Ethernet frames, and of 66,480 bytes there
# 65,536 are payload (16 packets of 58 bytes of headers and ICRC each, and a RETH). So 1.00 is 492.9 Mb/s of payload.
# CPU: of the two daemons or forwarders. Custody is delivered before a transfer has ended, and counts as time.
#
# ROUNDS (3), SECONDS_EACH (2): how often, and how long each posts.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

ROUNDS=${ROUNDS:-3}
SECONDS_EACH=${SECONDS_EACH:-2}
LIMIT=500
links=("$@")
[ ${#links[@]} != 0 ] || links=(0:0 2:0 10:0 "0:$LIMIT" "2:$LIMIT" "10:$LIMIT")
ticks=$(getconf CLK_TCK)
rows=$LAB/rows

forwarders_start()
{
	local s

	for s in a b; do
		spawn "forward-$s" "g$s" "${before_others[@]}" -10 "$B/tests/bench/afxdp_forward" lan0 wan0
		await 30 grep -q ready "$LAB/forward-$s.err" || die "the forwarder does not start: $(cat "$LAB/forward-$s.err")"
	done
}

# between KIND MBPS: starts what is to be between the hosts
between()
{
	local rate=4G

	[ "$2" = 0 ] || rate=$(($2 * 96 / 100))M
	case $1 in
	bare) ;;
	forwarder) forwarders_start ;;
	fixed) pair_start -g "wan-rate = $rate" ;;
	auto) pair_start ;;
	esac
}

cpu_ticks() # of what is between the hosts
{
	local name sum=0 stat

	for name in {gw,forward}-{a,b}; do
		running "$name" || continue
		stat=$(cat "/proc/${pid[$name]}/stat")
		set -- ${stat##*) }
		sum=$((sum + ${12} + ${13}))
	done
	echo $sum
}


# measure KIND LINK OP: a row: kind, link, op, MB/s, CPU seconds a GB, p50 and p99 of the ping in us, intact
measure()
{
	local kind=$1 link=$2 op=$3 depth=128 good=no before after rate

	[ "$op" = write ] || depth=16
	next_qpns
	transfer_begin ping a --op read --size 64 --mtu 4096 --depth 1 --seconds 600
	next_qpns
	before=$(cpu_ticks)
	transfer_begin bulk a --op "$op" --size 64K --mtu 4096 --depth $depth --seconds "$SECONDS_EACH"
	reap bulk-req && good=yes
	after=$(cpu_ticks)
	enough ping-req
	transfer_end ping || good=no
	signal bulk-resp TERM && reap bulk-resp && intact bulk || good=no
	rate=$(delivered_rate bulk)
	echo "$kind $link $op $rate $(jq -r --argjson t $((after - before)) --argjson hz "$ticks" \
		'[$t / $hz / (if .bytes > 0 then .bytes else 1 end / 1e9)] | @tsv' "$LAB/bulk-req.out") $(
		jq -r '[."latency-p50-us", ."latency-p99-us"] | @tsv' "$LAB/ping-req.out") $good" >>"$rows"
	[ -z "${VERBOSE:-}" ] || tail -n 1 "$rows"
	[ $good = yes ] || echo "# $kind $link $op: not intact, or not at its end"
}

round() # NUMBER
{
	local link rtt mbps kind op kinds

	for link in "${links[@]}"; do
		rtt=${link%:*} mbps=${link#*:}
		case $1,$link in
		1,*:0) kinds=(bare forwarder fixed auto) ;;
		1,*) kinds=(bare fixed auto) ;;
		*,0:0) kinds=(forwarder fixed auto) ;;
		*,*:0) kinds=(fixed auto) ;;
		*) kinds=(auto) ;;
		esac
		wan_start --delay-ms "$(awk -v r="$rtt" 'BEGIN { print r / 2 }')" --rate-mbps "$mbps" --store-mb 64
		for kind in ${KINDS:-"${kinds[@]}"}; do
			between "$kind" "$mbps"
			for op in ${OPS:-write read}; do
				measure "$kind" "$link" "$op"
			done
			case $kind in
			fixed | auto) pair_stop || echo "# $kind $link: a daemon ended badly" ;;
			forwarder) for s in a b; do signal forward-$s TERM && reap forward-$s; done ;;
			esac
		done
		wan_stop
	done
}

# The table, medians; then the last line. A ratio is of the two in one round.
summary()
{
	LC_ALL=C awk -v limit="$(awk -v l=$LIMIT 'BEGIN { print l * 65536 / 66480 }')" '
	function median(list,   v, n, i, j, t) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
				t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
			}
		return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	{
		cell = $2 " " $3
		if (!(cell in seen)) { seen[cell] = ++cells; name[cells] = cell }
		if (!($1 in kinds)) { kinds[$1] = ++nkinds; kind[nkinds] = $1 }
		k = $1 " " cell
		n = ++count[k]
		rate[k, n] = $4; cpu[k, n] = $5
		rates[k] = rates[k] " " $4; cpus[k] = cpus[k] " " $5; p50[k] = p50[k] " " $6; p99[k] = p99[k] " " $7
		if ($8 != "yes") broken++
	}
	function ratio(what, a, b, cell,   i, list) {
		for (i = 1; i <= count[a " " cell] && i <= count[b " " cell]; i++)
			if ((what == "cpu" ? cpu[b " " cell, i] : rate[b " " cell, i]) > 0)
				list = list " " (what == "cpu" ? cpu[a " " cell, i] / cpu[b " " cell, i] : \
					rate[a " " cell, i] / rate[b " " cell, i])
		return list == "" ? -1 : median(list)
	}
	END {
		printf "%-8s %-6s %-6s %-10s %9s %10s %12s %12s\n", "rtt ms", "Mbit/s", "op", "between", "MB/s", \
			"CPU s/GB", "ping p50 us", "ping p99 us"
		vs_fixed = forward = limited = -1
		for (c = 1; c <= cells; c++) {
			split(name[c], part, "[: ]")
			for (i = 1; i <= nkinds; i++) {
				k = kind[i] " " name[c]
				if (!(k in count))
					continue
				printf "%-8s %-6s %-6s %-10s %9.1f %10.2f %12.0f %12.0f\n", part[1], \
					part[2] == 0 ? "none" : part[2], part[3], kind[i], median(rates[k]), median(cpus[k]), \
					median(p50[k]), median(p99[k])
			}
			if (part[2] == 0) {
				r = ratio("rate", "auto", "fixed", name[c])
				if (r >= 0 && (vs_fixed < 0 || r < vs_fixed))
					vs_fixed = r
				if (part[1] == 0 && part[3] == "write") {
					forward = ratio("rate", "auto", "forwarder", name[c])
					dear = ratio("cpu", "auto", "forwarder", name[c])
				}
			} else {
				r = median(rates["auto " name[c]]) * 8 / limit
				if (limited < 0 || r < limited)
					limited = r
			}
		}
		printf "\nbench-real: auto-vs-fixed=%.2f auto-vs-forwarder-0ms=%.2f limited=%.2f cpu-vs-forwarder=%.2f\n", \
			vs_fixed, forward, limited, dear
		exit broken > 0
	}' "$rows"
}

lab_up
for n in $(seq "$ROUNDS"); do
	round "$n"
done
case " ${links[*]} " in
*" 0:0 "*)
	links=(0:0) OPS=write
	KINDS=${KINDS:-forwarder auto}
	round 2
	round 2
	;;
esac
summary

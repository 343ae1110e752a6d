# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh and tools.sh set $reply and $job
#
# What happens to an appliance amid a transfer between the guests; after lib.sh and tools.sh, with daemons that leave
# what they know to the next one (lab_keep).
#
#	amid_cell TEST MTU RTT-MS EVENT SITE	prints a line; its status
#
# TEST is
#	write, read		perftest's, which go on until they are told to end. Completions are judged, content is not
#	rping			with validation at both ends
#	contents		vcheck: WRITEs, SENDs, READs and ATOMICs, round after round; every byte is looked at
# EVENT is
#	restart			by the command with which the unit hands over to the next daemon
#	kill-9			and the next daemon is started
#	both-killed		kill -9 of both appliances at once (SITE is ab), then both next ones are started
#
# A cell is good when no tool reports an error and content is right; when every lane that was held is held by the next
# daemon, with all that was counted of it (adopted), and none is in fault; and when more requests than the guests have
# outstanding pass through both appliances afterwards.
#
# The guests' timers are those that perftest has by itself: timeout 14 (67 ms), retry 7. Those of rping are chosen by
# the kernel's connection manager, vcheck has 0.5 s and 7. To soft-RoCE 7 retries are no limit (rxe_comp.c counts down
# from 6 at most), so how long a pause may be is not judged here: that is for `make survive`, whose hosts count to
# seven. The line says how often guests began to send again from the event on (retries).

AMID_SECONDS=300 # for a tool, at most
TIMERS="completer_retry_err retry_exceeded_err retry_rnr_exceeded_err send_err" # the first one is no error
declare -A known before
amid_cells=0 amid_failed=0 amid_adopted=0 amid_faulted=0

# Sets $server, $client, $port, $lingers as tool() does; $stop, the command for guest a that ends the client; and
# $plenty, how many requests are more than it has outstanding.
endless() # TEST MTU
{
	local to opts packets=$((65536 / $2))

	to=$(addr b 1 4)
	lingers=
	plenty=$((130 * packets))
	case $1 in
	rping)
		port=cm
		server="rping -s -V -a $to -S 4096"
		# what it has to say is a page for each round; a grep that finds nothing says so, too
		client="rping -c -V -v -a $to -S 4096 >/tmp/pings 2>&1; echo status=\$?"
		client+="; grep -v '^ping data: ' /tmp/pings; grep -c '^ping data: ' /tmp/pings"
		stop="killall -KILL rping"
		plenty=30
		;;
	contents)
		port=18600
		server="vcheck -m $2 -x $GID4 -n 32 wsria"
		client="rm -f /tmp/enough; vcheck -m $2 -x $GID4 -n 32 -u /tmp/enough wsria $to"
		stop="touch /tmp/enough"
		;;
	*)
		port=18515 lingers=yes
		# for an hour, of which nothing is left out at the beginning and the end; the alarm is that end
		opts="-d rxe0 -x $GID4 -F -m $2 -s 65536 -D 3600 -f 0"
		if [ -n "${AHEAD:-}" ]; then
			# one at a time leaves something to be asked ahead; and without the connection manager nobody tells
			# that what was asked ahead will not be wanted any more
			opts+=" -o 1 -t 1 -R"
			port=cm lingers=
		fi
		client="ib_${1}_bw $opts $to"
		server="ib_${1}_bw $opts${lingers:+ --wait_destroy 200}"
		stop="killall -ALRM ib_${1}_bw"
		[ "$1" != read ] || plenty=$([ -n "${AHEAD:-}" ] && echo 50 || echo 130)
		;;
	esac
}

# Which queue pairs are there before the transfer
know()
{
	local s

	for s in a b; do
		known[$s]=$(cli $s -j qp show | jq -c 'map(.lqpn)')
	done
}

# The others' lanes that are held at SITE, as JSON
held_lanes() # SITE
{
	cli "$1" -j lane show | jq -c --argjson known "${known[$1]}" 'map(select(.state == "held" and
		(.lqpn as $q | $known | index($q) | not)) | {lqpn, direction, requests, "psn-shift"})'
}

through() # SITE: requests in them
{
	held_lanes "$1" | jq 'map(.requests) | add // 0'
}

passed_more() # THAN-AT-A THAN-AT-B
{
	[ "$(through a)" -gt "$1" ] && [ "$(through b)" -gt "$2" ]
}

asked_ahead()
{
	held_lanes a | jq -e 'any(.direction == "out" and ."psn-shift" > 0)'
}

# Sets $retries and $exceeded: how often both guests asked again so far, and errors
guest_errors()
{
	local s first rest

	retries=0 exceeded=0
	for s in a b; do
		guest $s 20 "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && cat $TIMERS" ||
			die "guest $s does not tell its counters: $reply"
		read -r -d '' first rest <<<"$reply"
		retries=$((retries + first)) exceeded=$((exceeded + $(tr '\n' + <<<"$rest")0))
	done
}

both_killed()
{
	local s

	for s in a b; do
		mv "$LAB/gw-$s.err" "$LAB/old-$s.err"
		signal gw-$s KILL
	done
	{ reap gw-a; reap gw-b; } 2>/dev/null # the shell says that they were killed
	for s in a b; do
		gateway_start $s
		going_on $s || return
	done
}

event() # EVENT SITE: sets $hit, the sites
{
	hit=$2
	case $1 in
	restart) restart_daemon "$2" ;;
	kill-9) next_daemon "$2" KILL ;;
	both-killed)
		hit="a b"
		both_killed
		;;
	*) die "event: there is no $1" ;;
	esac
}

# Adds to $adopted. False when a lane that was held before is not, or begins anew
all_adopted() # SITE
{
	local n

	n=$(jq -n --argjson was "${before[$1]}" --argjson is "$(held_lanes "$1")" '[$was[] | . as $w |
		select($is | any(.lqpn == $w.lqpn and .direction == $w.direction and .requests >= $w.requests))] | length')
	adopted=$((adopted + n))
	[ "$n" = "$(jq length <<<"${before[$1]}")" ] && [ "$n" != 0 ]
}

amid_event() # EVENT SITE: the transfer runs; it has been and is through both appliances; sets $why if not
{
	local s

	if ! await 90 passed_more $plenty $plenty; then
		why="the transfer is not held"
		return
	fi
	[ -z "${AHEAD:-}" ] || await 60 asked_ahead || why="nothing is asked ahead"
	guest_errors
	retries_then=$retries
	for s in a b; do
		before[$s]=$(held_lanes $s)
	done
	event "$@" || why="the next daemon does not go on: $(tail -n 2 "$LAB/gw-$2.err")"
	for s in $hit; do
		all_adopted $s || why="of ${before[$s]} at $s there is $(held_lanes $s)"
	done
	[ -n "$why" ] || await 90 passed_more $(($(through a) + plenty)) $(($(through b) + plenty)) ||
		why="afterwards nothing goes through the appliances"
	[ -z "${AHEAD:-}" ] || [ -n "$why" ] || await 60 asked_ahead || why="afterwards nothing is asked ahead"
}

# rping knows no end but an error. It is stopped, and killed when the round is at rest: one that is amid a round leaves
# requests that nobody takes any more, a fault.
at_rest()
{
	guest a 20 "killall -STOP rping" && await 90 settled
}

# rping says that it was killed, and nothing but validated rounds, ten of them or more
good_rounds() # OUTPUT
{
	awk '/^(Killed|status=137)?$/ { next } /^[0-9]+$/ { n = $1; next } { bad = 1 } END { exit bad || n < 10 }' <<<"$1"
}

# The client has not ended by itself; ends it, and judges what it and the server say
amid_end()
{
	local status r

	if guest_await a "$asking" 0; then
		guest_wait a "$asking"
		why="the client ended by itself with $?: $reply"
	else
		[ "$test" != rping ] || at_rest || why="rping cannot be stopped, or something is owed that nobody takes: $reply"
		guest a 20 "$stop" || why="the client cannot be told to end: $reply"
		guest_wait a "$asking"
		status=$? r=$reply
		case $test in
		rping) good_rounds "$r" ;;
		contents) [ $status = 0 ] && grep -q 'all right' <<<"$r" ;;
		*) [ $status = 0 ] && grep -qE "^ *65536 +[0-9]+ +[0-9.]+" <<<"$r" ;;
		esac || why="the client ended with $status: $r"
	fi
	if [ -z "$why" ]; then
		finish 90
	else
		guest_kill b "$served"
		guest_wait b "$served"
		why+=" / the server: $reply"
	fi
}

keep_failure()
{
	local s name=amid-$1-$2-$4-$5

	[ -n "${FAILED:-}" ] && mkdir -p "$FAILED" || return
	echo "$why" >"$FAILED/$name.why"
	for s in "$LAB"/gw-?.err "$LAB"/old*.err "$LAB"/guests.txt "$LAB"/console-?.log; do
		[ ! -e "$s" ] || cp "$s" "$FAILED/$name-${s##*/}"
	done
	for s in a b; do
		{ cli $s qp; cli $s -d lane; cli $s stats; } >"$FAILED/$name-$s.txt" 2>&1
	done
}

amid() # as amid_cell: sets $adopted, $faulted, $retries, and $why when it is not good
{
	# shellcheck disable=SC2034 # tools.sh reads $phase
	local test=$1 phase=longhaul server client port lingers stop plenty served asking hit
	local exceeded retries_then exceeded_then faults_then

	why= adopted=0
	rm -f "$LAB/guests.txt"
	know
	guest_errors
	retries_then=$retries exceeded_then=$exceeded faults_then=$(faults)
	endless "$1" "$2"
	if serve_begin $AMID_SECONDS "$server" "$port" "$client"; then
		amid_event "$4" "$5"
		[ -z "$why" ] || guests_state >"$LAB/guests.txt"
		amid_end
	fi
	guest_errors
	retries=$((retries - retries_then)) faulted=$(($(faults) - faults_then))
	[ $faulted = 0 ] || why="a queue pair is in fault; $why"
	[ "$exceeded" = "$exceeded_then" ] || why="a guest gave up; $why"
	[ -z "$why" ] || keep_failure "$@"
	[ -z "$why" ]
}

amid_cell() # TEST MTU RTT-MS EVENT SITE
{
	local adopted faulted retries verdict=ok

	amid "$@" || verdict="FAILED: $(brief "$why")"
	amid_cells=$((amid_cells + 1))
	[ -z "$why" ] || amid_failed=$((amid_failed + 1))
	amid_adopted=$((amid_adopted + adopted)) amid_faulted=$((amid_faulted + faulted))
	echo "vm: test=${AHEAD:+ahead-}$1 mtu=$2 rtt-ms=$3 event=$4 site=$5 adopted=$adopted faulted=$faulted retries=$retries $verdict"
	[ -z "$why" ]
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make survive: real daemons killed, handed over and upgraded at random times, at both sides, while hosts with ordinary
# timers (67 ms, seven retries) WRITE, SEND and READ what is read ahead, at 85 % of the link. EVENTS (170) in all:
# of 17, ten are kill -9, five hand over, two let go and come back as a version whose memory is laid out otherwise. OPS
# (write send read) are the transfers to choose from; KEEP is a directory for the logs of those that fail. The last line
# is
#
#	survive: events=<n> host-errors=<n> lost-messages=<n> max-gap-ms=<x> median-pause-ms=<x> max-pause-ms=<x> adopted=<n> upgraded=<n> faulted=<n>
#
# The gap is the longest time between two completions that any of the hosts saw. (Hosts that are faster than the link
# are held back by a full pool, and see some of 50 ms and more without any event.) The pause is the time in which no
# daemon moved packets, by its log. Status 0 when no host saw an error, nothing is lost, each next daemon went on
# where the former one ended or began with nothing promised, and no lane is in fault.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/netns/lib.sh

EVENTS=${EVENTS:-170}
PER=10 # events to each transfer
HOST=(--size 64K --depth 16 --rate-mbps 340 --mtu 4096 --timeout-exp 14 --retry 7 --region 8M --cm --seconds 3600)
declare -A version=([a]=$B [b]=$B)
pauses=() what='' events=0 upgrades=0 errors=0 lost=0 gap=0 adopted=0 faulted=0 bad=0

held_now()
{
	jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]}))
}

more() # NAME MESSAGES: so many more than until now
{
	await 60 so_far_above "$1" messages $(($(so_far "$1" messages) + $2))
}

# Lines of FAULT of the transfer under way. Others are of connections that ended before: where an upgrade had come in
# between, the connection manager's farewell could not be known for theirs, and READs asked ahead were left over.
faults_now()
{
	cat "$LAB/all.err" "$LAB"/gw-?.err | grep -c "qpn $(printf '0x%x' $((${qpn[a]}))) .* FAULT: "
}

# The next daemon is a word away from its execve(), as it is where systemd starts it: entering a namespace with a shell
# or two takes longer than all that the daemon does itself.
stand_ready() # SITE
{
	pid[old]=${pid[gw-$1]}
	mv "$LAB/gw-$1.err" "$LAB/old.err"
	spawn "gw-$1" "g$1" env LONGHAUL_PINS="$LAB/bpf/$1" "${before_others[@]}" -10 \
		bash -c 'read -r _ <"$0" && exec "$@"' "$LAB/go" "${version[$1]}/longhauld" -c "$LAB/gw-$1.conf"
}

go()
{
	echo >&$go
}

# It goes on where the one before ended, which may be still at its end
goes_on() # SITE SIGNAL
{
	signal old "$2"
	go
	reap old 2>/dev/null
	await 30 going_on "$1" || return
	adopted=$((adopted + 1))
	pauses+=("$(sed -n 's/.*after a pause of \([0-9]*\) ms.*/\1/p' "$LAB/gw-$1.err")")
}

# It knows nothing, and the one before let its connections go
begins() # SITE
{
	signal old TERM
	reap old && grep -q 'stopped, nothing left in custody' "$LAB/old.err" || return
	go
	await 30 attached "$1" && await 30 peers_up && await 60 held_now || return
	upgrades=$((upgrades + 1))
}

event()
{
	local s kind=$((RANDOM % 17)) ok=yes

	s=$([ $((RANDOM % 2)) = 0 ] && echo a || echo b)
	if [ $kind -ge 15 ]; then
		version[$s]=$([ "${version[$s]}" = "$B" ] && echo "$B/other" || echo "$B")
	fi
	stand_ready $s
	sleep 0.$((RANDOM % 5))$((RANDOM % 10)) # when it comes is what this is about
	events=$((events + 1))
	what="event $events, kind $kind at $s"
	[ -z "${KEEP:-}" ] || date +"%s.%N $what" >>"$KEEP/events"
	case $kind in
	15 | 16) begins $s || ok=no ;;
	1[0-4]) goes_on $s USR2 || ok=no ;;
	*) goes_on $s KILL || ok=no ;;
	esac
	if [ $ok = no ]; then
		echo "# $what: $(tail -n 1 "$LAB/old.err") $(tail -n 1 "$LAB/gw-$s.err")"
		bad=$((bad + 1))
	fi
	cat "$LAB/old.err" >>"$LAB/all.err"
	await 30 attached $s
	running "gw-$s" || die "longhauld at site $s ended: $(cat "$LAB/gw-$s.err")"
}

longest() # NAME: tell which event made the longest gap until now, if that is long
{
	local g

	g=$(so_far "$1" gap-max-ms)
	[ "${g%.*}" -gt 100 ] && [ "$g" != "$told" ] || return
	told=$g
	echo "# $what: gap of $g ms in $1, timeouts $(so_far "$1" timeouts), pause ${pauses[-1]} ms"
}

ended_badly() # NAME
{
	echo "# $1 did not end well: $what; $(got "$1-req" first-error), $(got "$1-resp" first-error)"
	[ -z "${KEEP:-}" ] || cp -r "$LAB" "$KEEP/$1"
}

amid() # OP: a transfer with PER events in it
{
	local name=$1-$events i g told=

	next_qpns
	transfer_begin "$name" a --op "$1" "${HOST[@]}"
	await 60 held_now
	for ((i = 0; i < PER && events < EVENTS; i++)); do
		event
		running "$name-req" || break # told below, with the event
		more "$name-req" 50 || bad=$((bad + 1))
		longest "$name-req"
	done
	enough "$name-req"
	transfer_end "$name" && intact "$name" || { ended_badly "$name"; bad=$((bad + 1)); }
	faulted=$((faulted + $(faults_now)))
	errors=$((errors + $(got "$name-req" errors) + $(got "$name-resp" errors)))
	[ "$1" = read ] || lost=$((lost + $(got "$name-req" messages) - $(got "$name-resp" rx-messages)))
	g=$(got "$name-req" gap-max-ms)
	echo "# $name: $(got "$name-req" messages) messages, longest gap $g ms"
	gap=$(jq -n --argjson a "$gap" --argjson b "$g" '[$a, $b] | max')
}

[ "$(id -u)" = 0 ] || { echo "make survive: needs root: network namespaces and XDP; try sudo make survive" >&2; exit 1; }
lab_up
lab_keep
mkfifo "$LAB/go"
exec {go}<>"$LAB/go" # does not wait for who reads
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M" -r "prefetch = on"
while [ $events -lt "$EVENTS" ]; do
	for op in ${OPS:-write send read}; do
		[ $events -ge "$EVENTS" ] || amid $op
	done
done
pair_stop
pause=$(printf '%s\n' "${pauses[@]}" | jq -rs 'sort | "median-pause-ms=\(.[length / 2 | floor]) max-pause-ms=\(last)"')
echo "survive: events=$events host-errors=$errors lost-messages=$lost max-gap-ms=$gap $pause adopted=$adopted upgraded=$upgrades faulted=$faulted"
[ $bad = 0 ] && [ "$errors" = 0 ] && [ "$lost" = 0 ] && [ "$faulted" = 0 ]

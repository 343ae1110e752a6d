#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon ends amid a transfer, in order or killed, and another one goes on where it ended: with lanes, numbers,
# custody, READs ahead and the session with its peer. The hosts' timers are those that network cards have by default (67 ms, seven
# retries); they must not notice. On a busy machine the next one may take longer to begin than they wait: then once more.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

HOST=(--size 64K --depth 64 --mtu 4096 --timeout-exp 14 --retry 7)

PATIENCE_MS=300

# amid NAME OP CONDITION EVENT...: a stream from a that goes on while the event comes, and afterwards
amid()
{
	local tries=5

	while :; do
		longest_pause=0
		stream "$@" && return
		[ $((tries -= 1)) != 0 ] || return
		if [ $longest_pause -gt $PATIENCE_MS ]; then
			echo "again: there was no daemon for $longest_pause ms"
		else
			ran_out "$1" || return
		fi
	done
}

stream()
{
	local name=$1 op=$2 condition=$3 status=0 faults

	shift 3
	faults="$(stat_of a faults) $(stat_of b faults)"
	[[ $faults =~ ^[0-9]+\ [0-9]+$ ]] || return
	next_qpns
	# without the connection manager nobody tells that a host will not ask for what was read ahead
	transfer_begin "$name" a --op "$op" "${HOST[@]}" --region 8M --cm --seconds 600
	await 60 "$condition" || status=1
	"$@" || status=1
	more "$name-req" 100 && await 30 "$condition" || status=1
	enough "$name-req"
	transfer_end "$name" && intact "$name" && [ "$(got "$name-req" errors)" = 0 ] || status=1
	echo "longest gap: $(got "$name-req" gap-max-ms) ms"
	[ "$(stat_of a faults) $(stat_of b faults)" = "$faults" ] || { tries=1; return 1; }
	return $status
}

lab_up
lab_keep
wan_start --delay-ms 10 --rate-mbps 400
pair_start -g "wan-rate = 380M" -r "prefetch = on"

it "hand-over near the requester: WRITE" amid write-a write held_now next_daemon a USR2
it "hand-over near the responder: WRITE" amid write-b write held_now next_daemon b USR2
it "hand-over near the requester: SEND" amid send-a send held_now next_daemon a USR2
it "hand-over near the requester: READ asked ahead" amid read-a read ahead_now next_daemon a USR2
it "hand-over near the responder: READ asked ahead" amid read-b read ahead_now next_daemon b USR2

both()
{
	next_daemon a USR2 && next_daemon b USR2 && next_daemon a USR2
}
it "kill -9 near the requester: WRITE" amid killed-a write held_now next_daemon a KILL
it "kill -9 near the responder: WRITE" amid killed-b write held_now next_daemon b KILL
it "kill -9 near the requester: READ asked ahead" amid killed-read read ahead_now next_daemon a KILL

often() # at random times
{
	local i s

	for i in 1 2 3 4 5 6; do
		s=$([ $((RANDOM % 2)) = 0 ] && echo a || echo b)
		sleep 0.$((RANDOM % 3))$((RANDOM % 10)) # when it comes is what the test is about, not how long it takes
		next_daemon $s KILL || return
	done
}
it "kill -9 six times at random: WRITE" amid killed-often write held_now often

it "one hand-over after the other, at both sides: WRITE" amid write-both write held_now both

waits() # SITE: its daemon has opened what it will go on with, or has ended
{
	! running "gw-$1" || readlink "/proc/${pid[gw-$1]}"/fd/* | grep -q "gw-$1.sock.state"
}

# The next one is there before the one before ends. It waits for three seconds: on a busy machine these may be over before
# anything else has happened, or just before the other is killed, and it is started once more.
early() # SITE SIGNAL
{
	local tries=20

	while [ $((tries -= 1)) != 0 ]; do
		if running "gw-$1"; then
			pid[old]=${pid[gw-$1]}
			mv "$LAB/gw-$1.err" "$LAB/old.err"
		fi
		gateway_start "$1"
		await 30 waits "$1" && more killed-early-req 20 || return
		running "gw-$1" || continue
		signal old "$2"
		reap old
		await 30 took_over "$1"
		going_on "$1" && return
		gateway_start "$1"
		await 30 going_on "$1" || return
	done
	return 1
}
took_over() # SITE: its daemon has, or has ended
{
	! running "gw-$1" || going_on "$1"
}
it "kill -9 while the next one waits already: WRITE" amid killed-early write held_now early a KILL

in_frames() # SITE: its packet buffers are in the file that outlives it
{
	grep -q "gw-$1.sock.frames" "/proc/${pid[gw-$1]}/maps"
}

same_buffers()
{
	local file=$RUN/gw-a.sock.frames i

	i=$(stat -c %i "$file") && in_frames a && next_daemon a KILL && in_frames a && [ "$(stat -c %i "$file")" = "$i" ]
}
it "packet buffers are the same memory: WRITE" amid buffers write held_now same_buffers

no_buffers() # hosts do not wait for a file to be made
{
	rm "$RUN/gw-b.sock.frames" && next_daemon b KILL && ! in_frames b && [ ! -e "$RUN/gw-b.sock.frames" ]
}
it "there is no such memory: WRITE" amid no-buffers write held_now no_buffers

it "longhauld --hand-over: WRITE" amid by-command write held_now restart_daemon a

second() # daemon on what one has: refused, which the first one does not notice
{
	spawn second ga env LONGHAUL_PINS="$LAB/bpf/a" "$B/longhauld" -c "$LAB/gw-a.conf"
	! reap second && grep -q 'in use by another longhauld' "$LAB/second.err" && jq_true a peer 'all(.state == "up")'
}
it "a second daemon on the same memory is refused" second

it "everything stops in order" pair_stop
nothing_left()
{
	ls -l "$RUN"
	[ -z "$(ls "$RUN")" ]
}
it "then nothing is left to go on with" nothing_left
it "and nothing is pinned" eval '[ ! -e "$(pins a)" ] && [ ! -e "$(pins b)" ]'

foreign() # another version has written it: nothing is guessed, the queue pair fails
{
	local s status=0

	for s in a b; do gateway_start $s; done
	await 30 peers_up || return
	next_qpns
	transfer_begin foreign a --op write "${HOST[@]}" --seconds 600
	await 60 held_now || status=1
	signal gw-a USR2 && reap gw-a || status=1
	printf 'x' | dd of="$RUN/gw-a.sock.state" bs=1 seek=4096 conv=notrunc status=none
	! "$B/longhauld" -c "$LAB/gw-a.conf" --hand-over 1 2>/dev/null || status=1
	gateway_start a
	grep -q 'another version of longhauld wrote it' "$LAB/gw-a.err" &&
	grep -q 'in custody or with prefetch: .* put into the error state' "$LAB/gw-a.err" || status=1
	reap foreign-req
	[[ $(got foreign-req first-error) == @(remote-operation|flushed|retry-exceeded) ]] || status=1
	signal foreign-resp TERM && reap foreign-resp
	for s in a b; do signal gw-$s KILL && reap gw-$s; done
	return $status
}
it "written by another version: what was promised is lost, and the host is told" foreign

dies() # the daemon at a
{
	signal gw-a KILL
	reap gw-a
	return 0
}

# Two connections are held, and their state is lost. The next daemon, configured for one, makes both fail.
no_place()
{
	local name status=0

	rm -f "$RUN"/* && rm -rf "$(pins a)" "$(pins b)"
	for name in a b; do gateway_start $name; done
	await 30 peers_up || return
	for name in first second; do
		next_qpns
		transfer_begin $name a --op write "${HOST[@]}" --seconds 600
		await 60 held_now || status=1
	done
	dies && : >"$RUN/gw-a.sock.state"
	sed -i 's/^\[longhaul\]$/&\nmax-connections = 1/' "$LAB/gw-a.conf"
	gateway_start a && log_has a 'ended with 2 connections in custody' || status=1
	for name in {first,second}-req; do
		reap $name
		[[ $(got $name first-error) == @(remote-operation|flushed|retry-exceeded) ]] || status=1
	done
	dies && gateway_start a && log_has a 'going on where' || status=1
	for name in {first,second}-resp; do
		signal $name TERM
		reap $name
	done
	dies
	signal gw-b KILL
	reap gw-b
	return $status
}
it "state lost, and fewer places configured than are held: all fail" no_place

exit $((tests_failed > 0))

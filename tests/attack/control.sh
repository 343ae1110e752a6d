#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Bad clients of the control socket, bad configuration files, and files that change for the worse while the daemon
# runs: none of that reaches the connections.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/attack/lib.sh

amid_stream() # NAME ATTACK...
{
	local name=$1

	shift
	stream "$name" --seconds 4 || return
	"$@" || { why=${why:-failed}; finish "$name"; return 1; }
	finish "$name"
	kept "$name" && daemons_live
}

garbage()
{
	perl tests/attack/control.pl garbage "$LAB/gw-a.sock" || why="dead: a client gets no answer"
}

# A client that says nothing makes room for one that has something to ask
held_open()
{
	spawn hold ha perl "$PWD/tests/attack/control.pl" hold "$LAB/gw-a.sock" 1000
	await 40 grep -q holding "$LAB/hold.out" || ! why="the clients cannot connect" || return
	cli a rule >/dev/null || why="the operator is locked out"
	await 25 cli a rule || why="the operator is locked out for long"
	signal hold KILL
	reap hold 5
	await 5 cli a rule || why="the operator is locked out for good"
	[ -z "$why" ]
}

reload_spoilt() # files of every kind, one after the other, while the daemon runs: it keeps what it has
{
	local i

	cp "$LAB/gw-a.conf" "$LAB/good.conf"
	for i in {1..20}; do
		perl tests/attack/control.pl config $i "$LAB/good.conf" >"$LAB/spoilt.conf"
		# one that happens to be right would be taken over, and is allowed to
		if ! "$B/longhauld" --check-config --offline -c "$LAB/spoilt.conf" >/dev/null 2>&1; then
			cp "$LAB/spoilt.conf" "$LAB/gw-a.conf"
			signal gw-a HUP
			await 5 cli a rule || break
		fi
	done
	cp "$LAB/good.conf" "$LAB/gw-a.conf"
	signal gw-a HUP
	await 5 cli a rule || ! why="dead: the daemon does not answer after a bad file"
}

check_config() # many files: the daemon says yes or no, and nothing else happens
{
	local i status bad=0

	for i in {1..150}; do
		perl tests/attack/control.pl config $i conf/longhaul.conf >"$LAB/fuzz.conf"
		timeout 10 "$B/longhauld" --check-config --offline -c "$LAB/fuzz.conf" >/dev/null 2>"$LAB/fuzz.err"
		status=$?
		case $status in
		0) ;;
		1 | 2) [ -s "$LAB/fuzz.err" ] || ! why="file $i is refused without a word" || return ;;
		*) ! why="file $i: status $status" || return ;;
		esac
		[ $status = 0 ] || bad=$((bad + 1))
	done
	# else the files were not bad, and this proves nothing
	[ $bad -gt 50 ] || ! why="only $bad of 150 files were refused"
}

lab_up
wan_start --delay-ms 5 --rate-mbps 150
pair_start -g "wan-rate = 140M"
attack "control requests that are none" amid_stream garbage garbage
attack "1,000 control clients that say nothing" amid_stream idle held_open
attack "bad files at reload" amid_stream reload reload_spoilt
attack "150 bad configuration files" check_config
attack_exit

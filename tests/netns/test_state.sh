#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Which state of a former daemon the next one must, or must not, adopt: from before a boot of the host, a copy, of other
# ports, peers, sizes or rules, cut short, damaged, or one that crashes each process. Each refusal is one line of the log,
# and then the daemon works as if it had found nothing.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

boot=/proc/sys/kernel/random/boot_id

lab_up
lab_keep
gateway_config a
cp "$LAB/gw-a.conf" "$LAB/usual.conf"
STATE=$RUN/gw-a.sock.state

said() # TEXT: by the daemon at a that runs now
{
	log_has a "$1"
}

goes_on()
{
	said 'going on where a former longhauld ended' && ! said 'cannot be adopted'
}

# begins anew, for this reason
anew() # TEXT
{
	said "cannot be adopted: .*$1" && ! said 'going on where' && said 'ready:' && peers_shown
}

peers_shown() # as many as are configured
{
	jq_true a peer 'length == $n' --argjson n "$(grep -c '^\[peer' "$LAB/gw-a.conf")"
}

leave() # SIGNAL: what there is then is for the next one
{
	signal gw-a "$1" && { reap gw-a; [ -s "$STATE" ]; }
}

next() # COMMAND...: done between a daemon that is killed and the next one, which is started then
{
	leave KILL && "$@" && gateway_start a
}

conf() # SED-SCRIPT: the configuration is the usual one with this change
{
	sed "$1" "$LAB/usual.conf" >"$LAB/gw-a.conf"
}

nothing_done()
{
	:
}

strips() # on or off: both ports strip VLAN tags
{
	local i

	for i in lan0 wan0; do
		[ "$(in_ns ga ethtool -k $i | sed -n 's/^rx-vlan-offload: //p')" = "$1" ] || return
	done
}

strips on || die "the ports do not strip VLAN tags"
gateway_start a
it "killed, and nothing changed: the next one goes on" eval 'next nothing_done && goes_on'

program() # on that port
{
	ip -n $P-ga -d link show dev "$1" | grep -o 'prog/xdp id [0-9]*'
}

same_program() # as before, on both ports
{
	local lan wan

	lan=$(program lan0) wan=$(program wan0)
	next "$@" && goes_on && [ "$lan" ] && [ "$(program lan0) $(program wan0)" = "$lan $wan" ]
}
it "with the program that is on the ports" same_program nothing_done
no_program() # is pinned
{
	rm "$(pins a)/prog_wan"
}
it "or with its own, where that cannot be had" eval '! same_program no_program && goes_on && [ -e "$(pins a)/prog_wan" ]'
it "and then with that" same_program nothing_done
other_rule()
{
	conf 's/^lan = 10.*/lan = 10.99.0.0\/16/; s/^wan = 10.*/wan = 10.98.0.0\/16/'
}
it "whatever the rules are" same_program other_rule
conf ''
it "and as they were" same_program nothing_done

copied()
{
	cp -p "$STATE" "$STATE.copy" && mv "$STATE.copy" "$STATE"
}
it "a copy is not gone on with" eval 'next copied && anew "it is a copy"'
it "what begins anew can be gone on with" eval 'next nothing_done && goes_on'
it "a stop gives back to the ports what the first one of them all had turned off" eval 'strips off && gateway_stop a && strips on'
found_off() # by the first of two: it was so before
{
	in_ns ga ethtool -K lan0 rxvlan off && in_ns ga ethtool -K wan0 rxvlan off && gateway_start a && next nothing_done &&
	goes_on && gateway_stop a && strips off
}
it "and nothing that they did not have" found_off
gateway_start a

# as after a start of the host with a file that was saved; only this daemon sees another id
rebooted()
{
	leave KILL || return
	echo 01234567-89ab-cdef-0123-456789abcdef >"$LAB/boot"
	spawn gw-a ga env LONGHAUL_PINS="$LAB/bpf/a" sh -c 'mount --bind "$1" "$2" && exec "$3" -c "$4"' - "$LAB/boot" $boot \
		"$B/longhauld" "$LAB/gw-a.conf"
	await 30 attached a && running gw-a
}
it "of before a start of the host: not gone on with" eval 'rebooted && anew "the host was restarted"'
it "nor is that of another boot here" eval 'next nothing_done && anew "the host was restarted"'

unpinned() # pins bear the names of the ports
{
	rm -r "$LAB"/bpf/a/*
}
conf 's/^lan = lan0/lan = wan0/; s/^wan = wan0/wan = lan0/'
it "other ports: not gone on with" eval 'next unpinned && anew "its ports are others"'
conf ''
it "and back" eval 'next unpinned && anew "its ports are others"'

more_peers() # before the one that was there
{
	{
		sed '/^\[peer/,$d' "$LAB/usual.conf"
		printf '[peer another]\naddress = 10.77.9.9\nkey-file = %s\n' "$LAB/key"
		sed -n '/^\[peer/,$p' "$LAB/usual.conf"
	} >"$LAB/gw-a.conf"
}
it "another peer, before the one that was there: gone on with" eval 'more_peers; next nothing_done && goes_on && peers_shown'
it "the other way round: too" eval '
	awk "/^\\[peer another/ {f = 1} /^\\[(peer edge|rule)/ {f = 0} f {held = held \$0 \"\\n\"; next} /^\\[rule/ {printf \"%s\", held} 1" \
		"$LAB/gw-a.conf" >"$LAB/other.conf" && mv "$LAB/other.conf" "$LAB/gw-a.conf" && next nothing_done && goes_on && peers_shown'
conf ''
it "a peer is gone: not gone on with" eval 'next nothing_done && anew "a peer that it knows is not in the configuration"'

hand_over() # is refused, with this text, and the daemon runs on
{
	! "$B/longhauld" -c "$LAB/gw-a.conf" --hand-over "${pid[gw-a]}" 2>"$LAB/why" && grep -q "$1" "$LAB/why" && running gw-a
}
resized()
{
	conf 's/^pool = .*/pool = 64M/'
	hand_over "'pool', 'max-connections' or 'cores' is another one" && next nothing_done && goes_on &&
		said "'pool', 'max-connections' and 'cores' stay what they were"
}
it "another pool: a restart does not hand over, what is killed keeps its size" resized
conf ''
it "a hand-over to other ports is refused" eval '
	conf "s/^lan = lan0/lan = wan0/; s/^wan = wan0/wan = lan0/" && hand_over "its ports are others"'
conf 's/edge-b/edge-c/'
it "and to other peers" hand_over "a peer of the one that runs is not in the configuration"
conf ''
it "and to what is as it was done" eval '
	next nothing_done && "$B/longhauld" -c "$LAB/gw-a.conf" --hand-over "${pid[gw-a]}" && reap gw-a && gateway_start a && goes_on'

it "cut short: begins anew" eval 'next truncate -s 8192 "$STATE" && anew "it is empty, or none"'
cut_short() # there is nothing to hand over either
{
	truncate -s 100 "$STATE" && ! "$B/longhauld" -c "$LAB/gw-a.conf" --hand-over 99999999 2>"$LAB/why" &&
		grep -q 'state: it is empty, or cut short; nothing can be handed over' "$LAB/why"
}
it "cut very short: too" eval 'next cut_short && anew "it is empty, or none"'
no_file()
{
	rm "$STATE"
}
it "gone: begins anew, without a word" eval 'next no_file && ! said "cannot be adopted" && ! goes_on && peers_shown'
empty()
{
	: >"$STATE"
}
it "emptied: likewise" eval 'next empty && ! said "cannot be adopted" && peers_shown'
damaged() # BLOCK: a page of it
{
	dd if=/dev/urandom of="$STATE" bs=4096 seek="$1" count=1 conv=notrunc status=none
}
it "its head is damaged: begins anew" eval 'next damaged 0 && anew "it is empty, or none"'
it "its root is damaged: begins anew" eval 'next damaged 1 && anew "it was never finished"'

others() # not a file of ours: it works, and says that nothing outlives it
{
	leave KILL && chmod 644 "$STATE" && gateway_start a && said 'nothing outlives this process: .* cannot be used' && peers_shown
}
it "a file that others can read is not used" others
rm -f "$STATE"
it "a daemon without one is as ever" eval 'signal gw-a KILL && { reap gw-a; gateway_start a; } && [ -s "$STATE" ]'

second() # daemon that wants ports which the first one has, with a place of its own for the rest
{
	sed "s|^socket = .*|socket = $RUN/second.sock|; s|^wan = wan0|&\nport = 4999|" "$LAB/gw-a.conf" >"$LAB/second.conf"
	spawn second ga env LONGHAUL_PINS="$LAB/bpf/a" "$B/longhauld" -c "$LAB/second.conf"
	! reap second && grep -q 'another program has an AF_XDP socket on' "$LAB/second.err" && peers_shown &&
		[ -e "$(pins a)/lan" ]
}
it "a second daemon on the same ports, with its own socket: refused, the first one stays" second
same()
{
	spawn same ga env LONGHAUL_PINS="$LAB/bpf/a" "$B/longhauld" -c "$LAB/gw-a.conf"
	! reap same && grep -q 'in use by another longhauld' "$LAB/same.err" && peers_shown
}
it "and one on the same socket" same
it "what the first one left can be gone on with all the same" eval 'next nothing_done && goes_on'

crashes() # three in a row
{
	local i

	for i in 1 2 3; do
		leave SEGV && gateway_start a || return
		[ $i = 3 ] || goes_on || return
	done
	anew 'several processes in a row crashed with it'
}
it "what processes crash over three times is given up" crashes
it "and what is new is gone on with" eval 'leave SEGV && gateway_start a && goes_on'
killed_often() # kill -9 is no crash
{
	local i

	for i in 1 2 3 4 5; do
		next nothing_done && goes_on || return
	done
}
it "kill -9 is no crash, however often" killed_often

opened() # NAME: that daemon has opened the state
{
	readlink "/proc/${pid[$1]}"/fd/* | grep -q "$STATE"
}
waited() # gw-a, which waits for another one to end, has ended, or is ready
{
	! running gw-a || said 'ready:'
}

# Of the one before it the next one begins: what it opened is taken away then. It waits for three seconds: on a busy machine
# these may be over before the other has ended, and both are started once more.
amid_a_stop()
{
	local tries=10

	while :; do
		pid[old]=${pid[gw-a]}
		mv "$LAB/gw-a.err" "$LAB/old.err"
		spawn gw-a ga env LONGHAUL_PINS="$LAB/bpf/a" "${before_others[@]}" -10 "$B/longhauld" -c "$LAB/gw-a.conf"
		await 30 opened_or_ended && signal old TERM && reap old && await 30 waited || return
		running gw-a && break
		said 'in use by another' && [ $((tries -= 1)) != 0 ] || return
		gateway_start a
	done
	! said 'cannot be adopted' && [ -s "$STATE" ]
}
opened_or_ended()
{
	! running gw-a || opened gw-a
}
it "what begins amid a stop makes a state of its own, without a word" amid_a_stop
it "which is gone on with" eval 'next nothing_done && goes_on'

no_space() # for the state that the next one wants
{
	mount -o "remount,size=$(du -sk "$RUN" | cut -f 1)k" "$RUN" && unpinned
}
lived_long() # the daemon at a, for longer than crashes of its are counted
{
	[ "$(stat_of a uptime-ms)" -gt 12000 ] || ! running gw-a
}
left_behind() # with a file that it could not use
{
	conf 's/^lan = lan0/lan = wan0/; s/^wan = wan0/wan = lan0/; s/^pool = .*/pool = 192M/'
	next no_space && said 'cannot be adopted: its ports are others' && said 'nothing outlives this process: .* cannot be made' &&
		await 60 lived_long && running gw-a && peers_shown
}
it "what cannot be adopted, and no space for another: it works on without" left_behind
mount -o remount,size=512M "$RUN"
conf ''
it "and stops in order" eval 'gateway_stop a && [ -z "$(ls "$RUN")" ]'

exit $((tests_failed > 0))

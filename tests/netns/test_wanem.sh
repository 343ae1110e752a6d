#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# longhaul-wanem as its user sees it: hosts on either side of it, what it does to their packets, what it says of them,
# and what it says of wrong options and of ports that cannot be used. What the model of the link does in detail is shown
# by unit/test_lab_wan; that it carries RoCEv2, by all other tests here.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

says() # STATUS PATTERN OPTION...: it ends so, and says that in one line
{
	local status=$1 pattern=$2

	shift 2
	in_ns wan "$B/longhaul-wanem" "$@" >"$LAB/one.out" 2>"$LAB/one.err"
	[ $? = "$status" ] && [ ! -s "$LAB/one.out" ] && [ "$(wc -l <"$LAB/one.err")" = 1 ] &&
	grep -q -- "^longhaul-wanem: .*$pattern" "$LAB/one.err"
}

counted() # FILTER: of what it did, when it has ended
{
	jq -e "$1" "$LAB/wan.out" >/dev/null
}

told() # PATTERN: once, while it runs
{
	[ "$(grep -c "$1" "$LAB/wan.err")" = 1 ]
}

# Datagrams that came to host b, and what they say of themselves; each is answered
receive()
{
	n=$(udp_sockets)
	spawn recv hb perl -MIO::Socket::INET -e '
		$| = 1; $s = IO::Socket::INET->new(Proto => "udp", LocalPort => 7007) or die;
		while ($from = $s->recv($d, 9000)) { printf "%s %d\n", substr($d, 0, 1), length($d); $s->send($d, 0, $from) }'
	await 30 eval '[ "$(udp_sockets)" -gt '"$n"' ]'
}

udp_sockets()
{
	in_ns hb awk 'END { print NR }' /proc/net/udp
}

send() # LETTER NUMBER LENGTH: datagrams from host a, not in fragments
{
	in_ns ha perl -MIO::Socket::INET -e '
		$s = IO::Socket::INET->new(Proto => "udp", PeerAddr => "10.77.0.2:7007") or die;
		$s->setsockopt(0, 10, pack("i", 2));
		for (1 .. $ARGV[1]) { $s->send($ARGV[0] x $ARGV[2]) or exit 1 }' "$@"
}

came() # LETTER: so many
{
	grep -c "^$1 " "$LAB/recv.out" || true
}

came_at_least() # LETTER NUMBER
{
	[ "$(came "$1")" -ge "$2" ]
}

# Microseconds until an answer
round_trip()
{
	# shellcheck disable=SC2016 # the inner shell's
	in_ns ha bash -c 'exec 3<>/dev/udp/10.77.0.2/7007 && t=${EPOCHREALTIME/./} && printf r >&3 && read -rN1 -t 60 <&3 &&
		echo $((${EPOCHREALTIME/./} - t))'
}

host_up() # SITE NUMBER
{
	ip netns add "$P-h$1" && ip -n "$P-h$1" link add eth0 address "02:4c:48:00:0$2:01" type veth peer name "$1" netns $P-wan &&
	link_up "h$1" eth0 && link_up wan "$1" && ip -n "$P-h$1" addr add "10.77.0.$2/24" dev eth0 &&
	in_ns h$1 sh -c "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6" &&
	ip -n "$P-h$1" neigh replace "10.77.0.$((3 - $2))" lladdr "02:4c:48:00:0$((3 - $2)):01" dev eth0
}

[ "$(id -u)" = 0 ] || die "needs root: network namespaces"
ip netns add $P-wan && ip -n $P-wan link set lo up && host_up a 1 && host_up b 2 || die "cannot make the network namespaces"

it "--help and --version" eval '"$B/longhaul-wanem" --help | grep -q "^usage: longhaul-wanem" && "$B/longhaul-wanem" -V | grep -qE "^longhaul-wanem [0-9.]+$"'
it "every option of --help is in the manual page, and the other way round" eval '
	diff <("$B/longhaul-wanem" --help | grep -oE -- "--[a-z-]+" | sort -u) \
		<(grep -E "^\.(It )?Fl|^\.It" man/longhaul-wanem.8 | grep -oE " -[a-z][a-z-]*" | sed "s/^ /-/" | sort -u)'
it "options: one port" says 2 "no port is named by --b" --a a
it "options: one port twice" says 2 "same port" --a a --b a
it "options: a percentage for a probability" says 2 "probability from 0 to 1" --a a --b b --loss 1.5
it "options: what is no number" says 2 "--delay-ms takes a number" --a a --b b --delay-ms 10ms
it "options: a negative one" says 2 "--rate-mbps takes a number" --a a --b b --rate-mbps -1
it "options: an unknown one" says 2 "unknown option '--dely'" --a a --b b --dely 1
it "options: a value is missing" says 2 "--loss needs a value" --a a --b b --loss
it "options: a word too many" says 2 "unexpected 'c'" --a a --b b c
it "ports: one that there is not" says 1 "there is no interface 'c'" --a a --b c
on_wan()
{
	ip -n $P-wan "$@"
}
it "ports: one that is down" eval 'on_wan link set dev b down && says 1 "b is down; ip link set b up" --a a --b b; s=$?; on_wan link set dev b up; [ $s = 0 ]'
it "ports: one that is in a bridge" eval 'on_wan link add br0 type bridge && on_wan link set dev b master br0 && says 1 "b is a port of br0" --a a --b b
	s=$?; on_wan link del dev br0; [ $s = 0 ]'
it "ports: without rights" eval 'cp "$B/longhaul-wanem" "$LAB/wanem" && chmod 755 "$LAB" &&
	in_ns wan setpriv --reuid nobody --clear-groups "$LAB/wanem" --a a --b b 2>"$LAB/one.err"; [ $? = 1 ] &&
	grep -q "root, or with CAP_NET_RAW" "$LAB/one.err"'

receive
wan_start --delay-ms 10
it "delay: what is answered takes two of it at least" eval '[ "$(round_trip)" -ge 20000 ]'
wan_stop
# the last one, of a port of its own, gets through some time: those before it are lost, or there
wan_start --delay-ms 10 --ab --loss 0.25 --seed 1
it "loss: in the direction that it was asked for, and counted" eval '
	send x 200 100 && await 30 eval "send y 1 100; came_at_least y 1" && wan_stop &&
	counted ".\"a-to-b\" | .sent >= .delivered + .lost and .sent < .delivered + .lost + 20 and .lost > 20 and .lost < 100" && counted ".\"b-to-a\".lost == 0" &&
	[ $(($(jq ".\"a-to-b\".lost" "$LAB/wan.out") + $(came x))) -ge 200 ] && [ "$(came x)" -lt 180 ]'

# What is sent between cut and mend does not come, though what is sent later does. A signal that is taken late: once more.
cut_loses()
{
	local e f

	e=$(came e) f=$(($(came f) + 1))
	signal wan USR1 && send e 3 100 && signal wan USR2 && await 10 eval "send f 1 100; came_at_least f $f" &&
	[ "$(came e)" = "$e" ]
}

wan_start --delay-ms 1 --down
it "cut from the start, mended, cut and mended by signals" eval '
	send c 3 100 && signal wan USR2 && await 30 eval "send d 1 100; came_at_least d 1" &&
	await 30 cut_loses && [ "$(came c)" = 0 ]'
it "a port that was down is used again" eval 'on_wan link set dev a down && on_wan link set dev a up && await 30 eval "send g 1 100; came_at_least g 1"'
it "a port that was removed ends it: one line" eval 'on_wan link del dev a; reap wan; [ $? = 1 ] && told "^longhaul-wanem: a was removed" && counted ".\"a-to-b\".delivered > 0"'
ip netns del $P-ha && host_up a 1

LAB_MTU=9000
link_up wan a && link_up wan b && link_up ha eth0 && link_up hb eth0
wan_start --delay-ms 1
it "an MTU of 9000: the longest packets pass whole" eval 'send j 5 8972 && await 30 came_at_least j 5 && grep -q "^j 8972$" "$LAB/recv.out"'
wan_stop
wan_start --delay-ms 2000 --store-mb 0.1
it "too little memory: said once, with a mend, and counted" eval '
	send m 40 8000 && await 30 told "^longhaul-wanem: a: frames are lost because .* raise --store-mb" && send m 40 8000 && wan_stop &&
	told "raise --store-mb" && counted ".\"a-to-b\".\"no-room\" > 40"'
ip -n $P-ha link set dev eth0 gso_max_segs 64 gso_max_size 65536 && in_ns ha ethtool -K eth0 tso on gso on >/dev/null 2>&1
wan_start --delay-ms 1
n=$(in_ns hb awk 'END { print NR }' /proc/net/tcp)
spawn tcp hb perl -MIO::Socket::INET -e '
	$l = IO::Socket::INET->new(LocalPort => 7008, Listen => 1, ReuseAddr => 1) or die; $c = $l->accept; 1 while read($c, $d, 65536)'
await 30 eval '[ "$(in_ns hb awk "END { print NR }" /proc/net/tcp)" -gt $n ]'
spawn tcp-send ha perl -MIO::Socket::INET -e '
	$s = IO::Socket::INET->new("10.77.0.2:7008") or die; print $s "x" x 65536 for 1 .. 20'
it "packets that the sender merges: said once, with a mend, and counted" eval '
	await 30 told "^longhaul-wanem: a: frames longer than its MTU.* ethtool -K" && wan_stop && told ethtool && counted ".\"a-to-b\".oversize > 0"'
exit $((tests_failed > 0))

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the appliance does not carry passes: other protocols by the kernel bridge, other RoCEv2 services
# through the daemon, and all of it while the daemon is away.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# Hosts of the captures, as a rule's: their frames go through the daemons. The rate is given: what is found of a link whose
# ends are not let run may be little.
# shellcheck disable=SC2054 # the commas are the configuration's
CAPTURE=(-g "wan-rate = 400M" -l 10.98.0.0/31,10.77.1.1,fd77::1:1 -w 10.98.0.2/31,10.77.2.1,fd77::2:1)
# shellcheck disable=SC2054
CAPTURE_B=(-g "wan-rate = 400M" -l 10.98.0.2/31,10.77.2.1,fd77::2:1 -w 10.98.0.0/31,10.77.1.1,fd77::1:1)

# A datagram to a port where nobody listens: refused means that it and the ICMP answer came through
# shellcheck disable=SC2120 # the address comes through it
icmp() # [ADDRESS]
{
	in_ns ha bash -c "exec 3<>/dev/udp/${1:-10.77.2.1}/9 && echo >&3
		read -t 30 -u 3 x 2>/dev/null
		[ \$? = 1 ]"
}

listening() # PORT
{
	in_ns hb cat /proc/net/tcp | grep -q "$(printf ':%04X 00000000:0000 0A' "$1")"
}

tcp() # 1 MB, returned by the far host and compared
{
	head -c 1000000 /dev/urandom >"$LAB/tcp.in"
	spawn server hb perl -MIO::Socket::INET -e '
		my $l = IO::Socket::INET->new(Listen => 1, LocalPort => 5001, ReuseAddr => 1) or die $@;
		my $c = $l->accept or die;
		local $/;
		my $data = <$c>;
		print { $c } $data;'
	await 30 listening 5001
	spawn client ha perl -MIO::Socket::INET -e '
		my $c = IO::Socket::INET->new(PeerAddr => "10.77.2.1", PeerPort => 5001) or die $@;
		local $/;
		open(my $f, "<", $ARGV[0]) or die;
		print { $c } scalar(<$f>);
		$c->flush;
		shutdown($c, 1);
		print scalar(<$c>);' "$LAB/tcp.in"
	reap client && reap server && cmp -s "$LAB/tcp.in" "$LAB/client.out"
}

same_frames() # FILE FROM-SITE: of a capture sent there, the other host gets every byte
{
	local s=$2 o source n

	o=$(other "$s")
	[ "$s" = a ] && source=10.98.0.1 || source=10.98.0.2
	perl tests/netns/frames.pl list "tests/data/$1" $source | sort >"$LAB/frames.sent"
	n=$(wc -l <"$LAB/frames.sent")
	[ "$n" -gt 0 ] || return
	rm -f "$LAB/recv.err" # of the one before: it says "ready"
	spawn recv "h$o" perl "$PWD/tests/netns/frames.pl" recv eth0 $source "$n"
	await 30 grep -q ready "$LAB/recv.err"
	in_ns "h$s" perl "$PWD/tests/netns/frames.pl" send eth0 "$PWD/tests/data/$1" $source
	reap recv && sort "$LAB/recv.out" | cmp -s - "$LAB/frames.sent"
}

through_daemon() # NAME FROM COMMAND...: it succeeds, and site FROM's daemon had the packets
{
	local s=$1 before

	before=$(stat_of "$s" taken)
	shift
	"$@" && [ "$(stat_of "$s" taken)" -gt "$before" ]
}

bare() # NAME ARGUMENT...: the bridge alone carries it
{
	local name=$1

	shift
	next_qpns
	transfer "$name" a --op write --count 200 --mtu 4096 "$@" && intact "$name"
}

answered() # by the appliance near the requester
{
	jq_true a qp 'any(.lqpn == $q and .state == "held" and ."pseudo-acks" > 0)' --argjson q $((${qpn[a]}))
}

carried() # NAME: a transfer that lasts until it is held, however long that takes
{
	next_qpns
	transfer_until answered "$1" a --op write --mtu 4096 && intact "$1"
}

lab_up
wan_start --delay-ms 5 --rate-mbps 1200
it "bridge alone: UDP, ICMP" icmp
it "bridge alone: TCP" tcp
it "bridge alone: RoCEv2" bare bridge
gateway_config a "${CAPTURE[@]}"
gateway_config b "${CAPTURE_B[@]}"
gateway_start a
gateway_start b
await 30 peers_up
it "daemons running: UDP, ICMP pass" icmp
it "daemons running: ICMP over IPv6 passes" icmp fd77::2:1
if vlan_up 7 2>/dev/null; then
	it "daemons running: UDP, ICMP in a VLAN pass" icmp 10.78.7.2
else
	skip "daemons running: UDP, ICMP in a VLAN pass" "this kernel has no VLAN interfaces"
fi
it "daemons running: TCP passes" tcp
it "daemons running: UD passes through them, byte for byte" undisturbed through_daemon a same_frames ud.pcap a
it "daemons running: UC passes through them, byte for byte" undisturbed through_daemon a same_frames uc.pcap a
it "daemons running: UD the other way" undisturbed through_daemon b same_frames ud.pcap b
it "daemons running: RoCEv2 of the rule is carried" carried before

# ARP is not static for this one: hosts that are strangers to each other
arp()
{
	ip -n $P-ha neigh del 10.77.2.1 dev eth0 && icmp &&
	ip -n $P-ha neigh show dev eth0 to 10.77.2.1 | grep -q "$(mac b 1)"
}
it "daemons running: ARP passes" arp

it "SIGTERM: the daemon ends well" gateway_stop a
it "SIGTERM: and says so" log_has a "stopped, nothing left in custody"
it "SIGTERM: traffic goes on over the kernel bridge" bare after-term
it "SIGTERM: the other appliance knows that its peer has gone" \
	await 30 jq_true b peer 'all(.state != "up")'
gateway_start a
it "the daemon comes back and finds its peer" await 30 peers_up
it "and carries again" carried again

killed()
{
	signal gw-a KILL
	reap gw-a
	[ $? = 137 ] && bare after-kill
}
it "kill -9 while idle: traffic goes on over the kernel bridge" killed
gateway_start a
it "started again after kill -9, the peers meet" await 30 peers_up
it "and carry" carried third

# As when the disk of the journal is full, or who read the log has gone
log_full()
{
	local status=0

	gateway_stop a && spawn gw-a ga env LONGHAUL_PINS="$LAB/bpf/a" "${before_others[@]}" -10 bash -c \
		'exec "$1" -v -c "$2" >/dev/full 2>/dev/full' log "$B/longhauld" "$LAB/gw-a.conf" || return
	await 30 attached a && await 30 peers_up && carried "$1" || status=1
	gateway_stop a && return $status
}
it "a log that takes nothing: the daemon starts, carries, and ends well" log_full mute
# a busy machine may take longer over what is owed than the 10 s that are usual
sed -i 's/^\[longhaul\]$/&\ndrain-timeout = 55s/' "$LAB/gw-a.conf"
gateway_start a
it "and with its log again" await 30 peers_up

in_custody() # BYTES: the far host has not had more than so many of the latest connection
{
	jq_true a qp 'any(.lqpn == $q and ."custody-bytes" > $n)' --argjson q $((${qpn[a]})) --argjson n "$1"
}

under_load() # stop in the midst of a transfer, which then goes on for a while
{
	local status

	next_qpns
	transfer_begin load a --op write --rate-mbps 300 --seconds 600 --mtu 4096
	await 30 in_custody 0
	gateway_stop a
	status=$?
	more load-req 100 || status=1
	enough load-req
	transfer_end load && intact load && [ $status = 0 ]
}
it "SIGTERM under load: what is owed is delivered, the rest goes over the bridge" under_load

# Stop while the WAN stands still, for longer than drain-timeout. The host would be patient: its queue pair must fail.
undelivered()
{
	local status

	sed -i '/^drain-timeout/d; s/^\[longhaul\]$/&\ndrain-timeout = 1s/' "$LAB/gw-a.conf"
	gateway_start a && await 30 peers_up && next_qpns &&
	transfer_begin lost a --op write --rate-mbps 300 --seconds 600 --mtu 4096 && await 30 promised_now || return
	signal wan STOP
	# more than what is still under way could tell the end of
	await 30 in_custody 8000000
	gateway_stop a
	status=$?
	signal wan CONT
	reap lost-req
	signal lost-resp TERM && reap lost-resp
	sed -i '/^drain-timeout/d' "$LAB/gw-a.conf"
	[ $status = 1 ] && log_has a "in custody undelivered" && [ "$(got lost-req errors)" -gt 0 ] &&
	[[ $(got lost-req first-error) == @(remote-operation|flushed) ]]
}
it "SIGTERM while the WAN stands still: the queue pair whose data is lost fails, and the log says so" undelivered

gateway_start a
await 30 peers_up
policy_is() # SITE POLICY
{
	jq_true "$1" rule 'length == 1 and all(.policy == $p)' --arg p "$2"
}
reload()
{
	gateway_config a "${CAPTURE[@]}" -r "policy = honest"
	signal gw-a HUP
	await 30 policy_is a honest
}
it "SIGHUP: a changed rule is taken over" reload
honest_now()
{
	jq_true a qp 'any(.lqpn == $q and .policy == "honest" and .state == "held")' --argjson q $((${qpn[a]}))
}
honest()
{
	next_qpns
	transfer_until honest_now honest a --op write --mtu 4096 && intact honest
}
it "SIGHUP: and holds for new connections" honest
bad_reload()
{
	local status=0

	cp "$LAB/gw-a.conf" "$LAB/good.conf"
	echo "colour = blue" >>"$LAB/gw-a.conf"
	signal gw-a HUP
	await 30 log_has a "unknown key 'colour'" && policy_is a honest && carried unhurt || status=1
	cp "$LAB/good.conf" "$LAB/gw-a.conf"
	return $status
}
it "SIGHUP with a bad file: one line in the log, the old rules stay" bad_reload
no_rule()
{
	gateway_config a -l 10.99.1.1 -w 10.99.2.1
	signal gw-a HUP
	await 30 jq_true a rule 'all(.lan | tostring | contains("10.99.1.1"))' &&
	await 30 jq_true a qp 'all(.state == "watch")' && bare no-rule
}
it "SIGHUP without the rule: connections are released, traffic passes" no_rule
pair_stop
exit $((tests_failed > 0))

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of lib.sh
#
# Appliances inside guests (initrd-gateway), and the steps of a test with them. For those who have sourced lib.sh and
# tests/netns/members.sh. Variables that they set:
#	INSIDE   the sites whose appliance is in the guest of that name; the others' are in namespaces
#	NIC      further properties of the guests' network cards
#	about    what the line of a step says before its name: "TEST WORD=VALUE..."

steps=0
failed=0

# The site at b as in tests/netns/lib.sh, for where only the appliance at a is in a guest
site_b_up()
{
	ip netns add $P-hb && ip netns add $P-gb &&
	ip -n $P-hb link add eth0 address "$(mac b 1)" type veth peer name lan0 netns $P-gb &&
	ip -n $P-gb link add wan0 type veth peer name b netns $P-wan &&
	ip -n $P-gb link add br0 address "$(mac b 2)" type bridge stp_state 0 mcast_snooping 0 forward_delay 0 &&
	ip -n $P-gb link set lan0 master br0 && ip -n $P-gb link set wan0 master br0 &&
	link_up hb eth0 && link_up gb lan0 && link_up gb wan0 && link_up gb br0 && link_up wan b &&
	ip -n $P-hb addr add "$(addr b 1)/16" dev eth0 && ip -n $P-gb addr add "$(addr b 2)/16" dev br0
}

edge_boot() # SITE MAC-OF-THE-APPLIANCE APPEND TAP...
{
	local s=$1 mac=$2 append=$3 i n=0 nets=()

	shift 3
	for i in "$@"; do
		# LACP does nothing without a speed
		nets+=(-netdev "tap,id=$i,ifname=$i,script=no,downscript=no,vnet_hdr=off"
			-device "virtio-net-pci,netdev=$i,mac=${mac%:*}:1$n,romfile=,speed=1000,duplex=full${NIC:-}")
		n=$((n + 1))
	done
	guest_qemu "$s" wan 640 "$append" "${nets[@]}"
}

guest_up() # SITE ...: as guest_boot takes them
{
	guest_boot "$@"
	guest_await "$1" ready 120 || die "guest $1 does not start: $(tail -n 5 "$LAB/console-$1.log")"
	! grep ^init: "$LAB/console-$1.log" || die "guest $1 is not as it should be"
}

guest_down() # SITE
{
	signal "guest-$1" KILL
	signal "sink-$1" KILL
	{ reap "guest-$1" 10; reap "sink-$1" 10; } 2>/dev/null
	unset "answered[$1,ready]"
	guest_part[$1]=
}

# inside SITE COMMAND...: its output. Called by subshells as well, which have the guest to themselves then: ids that no
# answer of before has
inside()
{
	local s=$1 status

	shift
	guest_jobs=$((BASHPID * 100000 + RANDOM))
	# the shell takes its own ip otherwise
	guest "$s" 30 "ip() { /bin/ip \"\$@\"; }; $*"
	status=$?
	printf '%s' "$reply"
	return $status
}

cli()
{
	local s=$1

	shift
	if [[ " $INSIDE " == *" $s "* ]]; then
		inside "$s" "longhaul -s $RUN/gw-$s.sock $*"
	else
		"$B/longhaul" -s "$RUN/gw-$s.sock" "$@"
	fi
}

put() # SITE FILE: into the guest, where it has the same name
{
	inside "$1" "mkdir -p $LAB; echo $(base64 -w 0 "$2") | base64 -d >$2; chmod 600 $2"
}

keep_logs()
{
	local s

	for s in $INSIDE; do
		inside "$s" cat "/tmp/gw-$s.err" >"$LAB/gw-$s.err"
	done
}

start_inside() # SITE
{
	inside "$1" "cd /; LONGHAUL_PINS=/sys/fs/bpf/lh setsid longhauld -c $LAB/gw-$1.conf </dev/null >>/tmp/gw-$1.err 2>&1 &" &&
	await 60 inside "$1" "longhaul -s $RUN/gw-$1.sock rule" && pid[gw-$1]=${pid[guest-$1]} # the appliance runs
}

stop_inside() # SITE [SIGNAL]
{
	inside "$1" "kill -${2:-TERM}"' $(pidof longhauld); while pidof longhauld; do sleep 0.1; done >/dev/null' && unset "pid[gw-$1]"
}

# How often an appliance stood still, so that its peer gave it up or its XDP program passed by it: on a busy machine
stood_still()
{
	keep_logs
	echo $(($(cat "$LAB"/gw-?.err | grep -c 'nothing heard from it') + $(passed_by)))
}

tried() # COMMAND...: once more when it fails and an appliance stood still meanwhile
{
	local before

	before=$(stood_still)
	"$@" && return
	[ "$(stood_still)" != "$before" ] || return
	echo "again, an appliance stood still"
	"$@"
}

step() # NAME COMMAND...
{
	local name=$1 from=$SECONDS verdict=ok s

	shift
	tried "$@" >"$LAB/step.out" 2>&1 || verdict=FAILED
	steps=$((steps + 1))
	echo "vm: test=$about step=$name seconds=$((SECONDS - from)) $verdict"
	[ $verdict != ok ] || return 0
	failed=$((failed + 1))
	keep_logs
	tail -n 5 "$LAB"/step.out "$LAB"/gw-?.err | sed 's/^/# /'
	for s in $INSIDE; do
		cli "$s" port | sed "s/^/# $s: /"
	done
}

no_alarm() # [SITE]
{
	await 60 jq_true "${1:-a}" status 'all(.state != "raised" or .name == "healthy")' && return
	cli "${1:-a}" status
	return 1
}

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Two data centres in network namespaces of their own, for the demo and the netns tests:
#
#	P-ha: eth0 -- lan0 P-ga: br0 wan0 -- a P-wan b -- wan0 P-gb: br0 lan0 -- eth0 P-hb
#
# P is lh and this shell's process id, so that runs do not meet. Hosts and appliances are in one
# Ethernet: the bridges join lan0 and wan0, the emulator in P-wan relays frames between a and b with
# delay, rate and loss. The appliances talk to each other from br0's address over the same wan0, so
# that reports suffer what data suffers. Neighbours are static: no ARP must get through a lossy link.
#
# Everything that was started ends with the shell, however that ends. Nothing waits a fixed time:
# await() polls a condition. Its limit only keeps a test from hanging for ever: on a busy machine all
# of this takes several times as long, and passes.
#
# Variables that a caller may set before it calls something:
#	B        the build directory
#	FAMILY   4 or 6: addresses of the hosts' traffic
#	LAB_BIN  where the lab's endpoint is, $B/lab; longhaul-wanem is in the folder above
#	LAB_LAN, LAB_WAN  interfaces of gateway_config, lan0 and wan0
#	SANITIZED  when not empty, the daemons run without their sandbox: a sanitizer's run-time makes system
#	         calls of its own
#	CORES    of the daemons (1); QUEUES of the appliances' ports and the hosts', as many
#	SWITCH   when not empty, P-wan also has a switch around each appliance: packets can be made to miss it (miss)
#	KEEP     when not empty, the directory with logs and results is kept and named at the end

B=${B:-build}
LAB_BIN=${LAB_BIN:-$B/lab}
FAMILY=${FAMILY:-4}
CORES=${CORES:-1}
QUEUES=${QUEUES:-$CORES}
P=lh$$
LAB=$(mktemp -d "${TMPDIR:-/tmp}/$P.XXXXXX") || exit 1
LAB_MTU=4300
RUN=$LAB # of the daemons: their sockets, and on a tmpfs what outlives them
lab_pids=()
lab_failed=0
lab_number=0
tests_failed=0

lab_cleanup()
{
	local status=$? ns

	trap - EXIT
	[ $tests_failed = 0 ] || lab_failed=1
	[ ${#lab_pids[@]} = 0 ] || kill -KILL "${lab_pids[@]}" 2>/dev/null
	[ -z "${jq_kept_PID:-}" ] || { kill -KILL "$jq_kept_PID" && wait "$jq_kept_PID"; } 2>/dev/null
	wait 2>/dev/null
	for ns in ha ga wan gb hb sa gc ra rb wa wb wc wn ca; do
		ip netns del $P-$ns 2>/dev/null
	done
	umount -l "$LAB/bpf" "$LAB/run" 2>/dev/null
	rmdir /sys/fs/cgroup/$P /sys/fs/cgroup/memory/$P 2>/dev/null # test_check.sh
	if [ -n "${KEEP:-}" ]; then
		echo "# logs and results: $LAB"
	else
		rm -rf "$LAB"
	fi
	[ $status != 0 ] || [ $lab_failed = 0 ] || status=1
	exit $status
}
trap lab_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

die()
{
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# await SECONDS COMMAND...: until the command succeeds; its status if it never does. It looks less often the
# longer it takes: what it looks with takes time from what it waits for.
await()
{
	local end=$((SECONDS + $1 + 1)) naps=(0.02 0.02 0.03 0.04 0.06 0.1 0.15 0.2) i=0

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep "${naps[i]}"
		i=$((i + (i < ${#naps[@]} - 1)))
	done
}

in_ns() # NAMESPACE COMMAND...
{
	local ns=$P-$1

	shift
	ip netns exec "$ns" "$@"
}

# Background processes. spawn NAME NAMESPACE COMMAND...: output goes to $LAB/NAME.out and .err; its
# process is ${pid[NAME]}.
declare -A pid
spawn()
{
	local name=$1 ns=$P-$2

	shift 2
	# Here and not by the process itself, which may run late: nobody must read what another of that name said
	: >"$LAB/$name.out"
	: >"$LAB/$name.err"
	# exec: the process is the program itself, not a shell around it
	(exec ip netns exec "$ns" "$@") >"$LAB/$name.out" 2>"$LAB/$name.err" </dev/null &
	pid[$name]=$!
	lab_pids+=($!)
}

# before_others NICE COMMAND...: with that niceness, whatever the tests have. Some kernels share the processors out
# among sessions first (autogroup), so this gets one of its own with the same niceness, as a service has. It ends
# with this shell even when that is killed.
before_others=(setpriv --pdeathsig KILL setsid bash -c '
	{ echo "$0" >/proc/self/autogroup; } 2>/dev/null
	exec nice -n $(($0 - $(nice))) "$@"')

running() # NAME
{
	[ -n "${pid[$1]:-}" ] && kill -0 "${pid[$1]}" 2>/dev/null
}

# reap NAME [SECONDS]: wait for its end, for SECONDS at most (60), then it is killed; its status
reap()
{
	local p=${pid[$1]:-} status keep=() q

	[ -n "$p" ] || return 127
	if ! await "${2:-60}" ended "$p"; then
		echo "# $1 did not end in ${2:-60} s" >&2
		kill -KILL "$p" 2>/dev/null
	fi
	wait "$p"
	status=$?
	for q in "${lab_pids[@]}"; do
		[ "$q" = "$p" ] || keep+=("$q")
	done
	lab_pids=("${keep[@]}")
	unset "pid[$1]"
	return $status
}

ended() # PID, a child of this shell, gone or only waited for
{
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	[[ ${stat##*) } == Z* ]]
}

signal() # NAME SIGNAL; never to a stranger that has the number of one that ended
{
	local stat

	{ read -r stat <"/proc/${pid[$1]}/stat"; } 2>/dev/null || return
	[[ ${stat##*) } == ?\ $$\ * ]] && kill -"$2" "${pid[$1]}"
}

## The sites

mac() # SITE a or b, 1 host or 2 appliance
{
	echo "02:4c:48:00:0$1:0$2"
}

addr() # SITE, 1 host or 2 appliance [FAMILY]
{
	local n=1

	[ "$1" = a ] || n=2
	if [ "${3:-$FAMILY}" = 4 ]; then
		echo "10.77.$n.$2"
	else
		echo "fd77::$n:$2"
	fi
}

other()
{
	[ "$1" = a ] && echo b || echo a
}

queues=(numrxqueues "$QUEUES" numtxqueues "$QUEUES")

link_up() # NAMESPACE INTERFACE
{
	# No segmentation offload: what the packet sockets see must be packets. No address of its own.
	ip -n "$P-$1" link set dev "$2" addrgenmode none mtu $LAB_MTU gso_max_segs 1 up
}

# The switch of a site has four ports, which P-wan holds: toward the host, the appliance's lan0, its wan0, and the emulator.
#
#	P-ha: eth0 -- ha P-wan la -- lan0 P-ga: br0 wan0 -- wa P-wan ea -- a
switch_up() # SITE
{
	local s=$1 p

	ip -n $P-h$s link add eth0 address "$(mac "$s" 1)" type veth peer name h$s netns $P-wan &&
	ip -n $P-g$s link add lan0 "${queues[@]}" type veth peer name l$s "${queues[@]}" netns $P-wan &&
	ip -n $P-g$s link add wan0 "${queues[@]}" type veth peer name w$s "${queues[@]}" netns $P-wan &&
	ip -n $P-wan link add name "$s" type veth peer name e$s || return
	for p in h l w e; do
		link_up wan $p$s && tc -n $P-wan qdisc add dev $p$s clsact || return
	done
	for p in "h l" "l h" "w e" "e w"; do
		tc -n $P-wan filter add dev "${p% *}$s" ingress pref 2 protocol all u32 match u32 0 0 \
			action mirred egress redirect dev "${p#* }$s" || return
	done
}

# miss SITE FROM: from now on the switch at SITE moves what the host at FROM sends the other one around the appliance
miss()
{
	local way

	way=$(missed_way "$@")
	tc -n $P-wan filter add dev "${way% *}" ingress pref 1 protocol ip u32 match ip dst "$(addr "$(other "$2")" 1 4)/32" \
		action mirred egress redirect dev "${way#* }"
}

cross() # SITE FROM: these packets cross the appliance again
{
	local way

	way=$(missed_way "$@")
	tc -n $P-wan filter del dev "${way% *}" ingress pref 1
}

missed_way() # SITE FROM: from which port to which
{
	[ "$1" = "$2" ] && echo h$1 e$1 || echo e$1 h$1
}

site_up()
{
	local s=$1 g=$P-g$1 h=$P-h$1

	ip netns add "$h" && ip netns add "$g" || return
	if [ -n "${SWITCH:-}" ]; then
		switch_up "$s"
	else
		ip -n "$h" link add eth0 address "$(mac "$s" 1)" "${queues[@]}" type veth \
			peer name lan0 "${queues[@]}" netns "$g" &&
		ip -n "$g" link add wan0 "${queues[@]}" type veth peer name "$s" "${queues[@]}" netns $P-wan
	fi &&
	ip -n "$g" link add br0 address "$(mac "$s" 2)" type bridge stp_state 0 mcast_snooping 0 &&
	ip -n "$g" link set lan0 master br0 && ip -n "$g" link set wan0 master br0 || return
	ip -n "$h" link set lo up && ip -n "$g" link set lo up && link_up "h$s" eth0 &&
	link_up "g$s" lan0 && link_up "g$s" wan0 && link_up "g$s" br0 && link_up wan "$s" || return
	ip -n "$h" addr add "$(addr "$s" 1 4)/16" dev eth0 &&
	ip -n "$h" addr add "$(addr "$s" 1 6)/64" dev eth0 nodad &&
	ip -n "$g" addr add "$(addr "$s" 2 4)/16" dev br0 &&
	ip -n "$g" addr add "$(addr "$s" 2 6)/64" dev br0 nodad
}

neighbours() # SITE: it knows the other one's machines
{
	local f n o

	o=$(other "$1")
	for f in 4 6; do
		for n in 1 2; do
			ip -n "$P-h$1" neigh replace "$(addr "$o" $n $f)" lladdr "$(mac "$o" $n)" dev eth0 &&
			ip -n "$P-g$1" neigh replace "$(addr "$o" $n $f)" lladdr "$(mac "$o" $n)" dev br0 ||
			return
		done
	done
}

carrier() # all bridge ports forward, which the kernel lets them up to a second after their carrier is there
{
	local s

	for s in a b; do
		[ "$(bridge -n $P-g$s link show | grep -c 'state forwarding')" = 2 ] || return
	done
}

lab_up()
{
	[ "$(id -u)" = 0 ] || die "needs root: network namespaces and XDP"
	ip netns add $P-wan && ip -n $P-wan link set lo up && site_up a && site_up b &&
	neighbours a && neighbours b || die "cannot make the network namespaces"
	await 30 carrier || die "the bridges do not forward"
	# Where the daemons pin what must outlive them. `ip netns exec` hides /sys/fs/bpf, and both would use the
	# same names there.
	mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
}

# From here on daemons leave what they know to who comes after them.
lab_keep()
{
	mkdir "$LAB/run" && mount -t tmpfs -o mode=0700 tmpfs "$LAB/run" || die "no tmpfs"
	RUN=$LAB/run
}

pins() # SITE: the directory with its daemon's pins
{
	echo "$LAB/bpf/$1/lan0-wan0"
}

# VLAN interfaces on both hosts, for what is not RoCEv2 there
vlan_up() # ID
{
	local s o

	for s in a b; do
		o=$(other $s)
		ip -n $P-h$s link add link eth0 name "vlan$1" type vlan id "$1" &&
		link_up h$s "vlan$1" &&
		ip -n $P-h$s addr add "10.78.$1.$([ $s = a ] && echo 1 || echo 2)/24" dev "vlan$1" ||
		return
	done
}

## The link

packet_sockets() # NAMESPACE: how many are bound; until then a socket gets nothing
{
	in_ns "$1" awk 'NR > 1 && $6 == 1 { n++ } END { print n + 0 }' /proc/net/packet
}

sockets_at_least() # NAMESPACE NUMBER
{
	[ "$(packet_sockets "$1")" -ge "$2" ]
}

# wan_start OPTION...: the emulator from a to b, see longhaul-wanem(8)
wan_start()
{
	spawn wan wan "${before_others[@]}" -10 "$LAB_BIN/../longhaul-wanem" --a a --b b "$@"
	await 30 sockets_at_least wan 2 || die "the WAN emulator does not start: $(cat "$LAB/wan.err")"
}

# What it did is in $LAB/wan.out afterwards.
wan_stop()
{
	running wan || return 0
	signal wan TERM && reap wan
}

## The appliances

# gateway_config SITE [OPTION...]: writes $LAB/gw-SITE.conf. Options, each once or more:
#	-g LINE   a line for [longhaul]       -r LINE   a line for [rule]
#	-l LIST   prefixes of the rule on the LAN side, -w LIST beyond the WAN, instead of the hosts
#	-6        peers over IPv6             -s        single mode, no peer
gateway_config()
{
	local s=$1 o lines= rule= family=4 single= lan wan opt OPTIND=1

	shift
	o=$(other "$s")
	[ -z "${SANITIZED:-}" ] || lines="sandbox = off"$'\n'
	[ "$CORES" = 1 ] || lines+="cores = $CORES"$'\n'
	lan="$(addr "$s" 1 4), $(addr "$s" 1 6)"
	wan="$(addr "$o" 1 4), $(addr "$o" 1 6)"
	while getopts g:r:l:w:6s opt; do
		case $opt in
		g) lines+="$OPTARG"$'\n' ;;
		r) rule+="$OPTARG"$'\n' ;;
		l) lan=$OPTARG ;;
		w) wan=$OPTARG ;;
		6) family=6 ;;
		s) single=yes ;;
		*) die "gateway_config: bad option" ;;
		esac
	done
	[ -e "$LAB/key" ] || "$B/longhaul" keygen "$LAB/key" || die "no key"
	{
		printf '[longhaul]\nlan = %s\nwan = %s\nnode = edge-%s\n' "${LAB_LAN:-lan0}" "${LAB_WAN:-wan0}" "$s"
		printf 'socket = %s\npool = 96M\n%s' "$RUN/gw-$s.sock" "$lines"
		[ -n "$single" ] || printf '[peer edge-%s]\naddress = %s\nkey-file = %s\n' "$o" \
			"$(addr "$o" 2 $family)" "$LAB/key"
		printf '[rule hosts]\nlan = %s\nwan = %s\n' "$lan" "$wan"
		[ -n "$single" ] || printf 'peer = edge-%s\n' "$o"
		[[ $rule == *policy\ =* ]] || printf 'policy = early\n'
		# no packet can take another way here, and most transfers are over before a proof is
		[[ $rule == *learn\ =* ]] || printf 'learn = cm, psn-alone\n'
		printf '%s' "$rule"
	} >"$LAB/gw-$s.conf"
}

cli() # SITE ARGUMENT...: longhaul, asking that site's daemon
{
	local s=$1

	shift
	"$B/longhaul" -s "$RUN/gw-$s.sock" "$@"
}

attached() # SITE: the daemon answers, or has ended
{
	cli "$1" rule || ! running "gw-$1"
}

gateway_start() # SITE [PINS]: where it pins what must outlive it
{
	local s=$1

	# as the unit starts it
	spawn "gw-$s" "g$s" env LONGHAUL_PINS="${2:-$LAB/bpf/$s}" "${before_others[@]}" -10 "$B/longhauld" -c "$LAB/gw-$s.conf"
	await 30 attached "$s"
	running "gw-$s" || die "longhauld at site $s ended: $(cat "$LAB/gw-$s.err")"
}

gateway_stop() # SITE: its status
{
	signal "gw-$1" TERM && reap "gw-$1"
}

# going_on SITE: its daemon says that it goes on with what another one left. The longest time in which there was none is
# kept in $longest_pause, ms: on a busy machine that may be longer than hosts wait.
longest_pause=0
going_on()
{
	local ms

	ms=$(grep -o 'going on where a former longhauld ended.*' "$LAB/gw-$1.err" | grep -o 'pause of [0-9]*' | grep -o '[0-9]*$')
	[ -n "$ms" ] || return
	[ "$ms" -le "$longest_pause" ] || longest_pause=$ms
}

# next_daemon SITE SIGNAL: the daemon there ends by USR2 or KILL, and another one goes on where it ended. That one begins
# before the one before has quite ended, as after `systemctl restart`.
next_daemon()
{
	pid[old]=${pid[gw-$1]}
	mv "$LAB/gw-$1.err" "$LAB/old.err"
	signal old "$2"
	gateway_start "$1"
	reap old || [ "$2" = KILL ] || return
	await 30 attached "$1" # it may have been the old one that answered
	going_on "$1"
}

restart_daemon() # SITE: the same by the command with which the unit restarts
{
	in_ns "g$1" "$B/longhauld" -c "$LAB/gw-$1.conf" --hand-over "${pid[gw-$1]}" && reap "gw-$1" && gateway_start "$1" &&
	going_on "$1"
}

# jq_true SITE OBJECT FILTER [JQ-ARGUMENT...]: whether the filter holds for what the CLI says
jq_true()
{
	local s=$1 object=$2 filter=$3 said

	shift 3
	said=$(cli "$s" -j "$object" show)
	[ -n "$said" ] && holds "$filter" "$@" <<<"$said"
}

# holds FILTER [JQ-ARGUMENT...]: whether it does for what is read. To start, jq takes ten times the processor time of
# anything else here: one that is asked the same twice, as by await, stays for the next time.
last_filter='' kept_filter=''
holds()
{
	local filter=$1 key status answer=''

	key=$(printf '%q ' "$@")
	shift
	if [ "$key" != "$last_filter" ] || [ $BASHPID != $$ ]; then
		jq -e "$@" "$filter" >/dev/null
		status=$?
		[ $BASHPID != $$ ] || [ $status -gt 1 ] || last_filter=$key
		return $status
	fi
	if [ "$key" != "$kept_filter" ] || [ -z "${jq_kept_PID:-}" ]; then
		[ -z "${jq_kept_PID:-}" ] || { kill "$jq_kept_PID" && wait "$jq_kept_PID"; } 2>/dev/null
		kept_filter=$key
		{ coproc jq_kept { exec jq --unbuffered "$@" "[try ($filter) catch false] | if last then 1 else 0 end"; }; } 2>/dev/null
	fi
	cat >&"${jq_kept[1]}" && read -rt 30 answer <&"${jq_kept[0]}"
	[ "$answer" = 1 ]
}

peers_up()
{
	jq_true a peer 'length == 1 and all(.state == "up")' &&
	jq_true b peer 'length == 1 and all(.state == "up")'
}

# given_up SITE: its daemon has noticed that its peer is gone, less than a second after the latest word of it, by its
# own account; later where it was not let run itself, which it tells
given_up()
{
	local ms

	await 30 jq_true "$1" peer 'all(.state == "down")' || return
	ms=$(grep -o 'nothing heard from it for [0-9]*' "$LAB/gw-$1.err" | tail -n 1 | grep -o '[0-9]*$')
	echo "$1: silent for $ms ms"
	[ "$ms" -lt 1200 ] || await 30 log_has "$1" 'alarm daemon-late'
}

# ran_out NAME: nothing was wrong with that transfer but that its host was not answered in half a second, seven retries of
# a network card. It may be the far host or the WAN that was not let run. Where custody was lost something else is wrong.
ran_out()
{
	! grep -q ' FAULT' "$LAB"/gw-[ab].err &&
	jq -es 'all(.[]; .intact) and .[0]."first-error" == "retry-exceeded"' "$LAB/$1-req.out" "$LAB/$1-resp.out" >/dev/null &&
		echo "again: the retries of $1 ran out"
}

# Both appliances, as pair, with the given options of gateway_config
pair_start()
{
	local s

	for s in a b; do
		gateway_config $s "$@"
		gateway_start $s
	done
	await 30 peers_up || die "the peers do not find each other: $(tail -3 "$LAB"/gw-?.err)"
}

pair_stop()
{
	local s status=0

	for s in a b; do
		running gw-$s || continue
		gateway_stop $s || status=1
	done
	return $status
}

nothing_owed() # SITE
{
	jq_true "$1" qp 'map(."custody-packets" + ."transit-packets") | add // 0 | . == 0'
}

settled() # no running appliance owes anything
{
	local s

	for s in a b c; do # c: test_standby
		running gw-$s || continue
		nothing_owed $s || return
	done
}

held_now() # [PACKETS]: the latest connection is in custody at a, with more packets than that (0)
{
	jq_true a qp 'any(.lqpn == $q and .state == "held" and ."custody-packets" > $n)' --argjson q $((${qpn[a]})) --argjson n "${1:-0}"
}

# and its host goes on by our word alone: what has not been answered is let go when the host asks for it anew
promised_now() # [PACKETS]
{
	held_now "$@" && jq_true a qp 'any(.lqpn == $q and ."pseudo-acks" > 0)' --argjson q $((${qpn[a]}))
}

ahead_now() # its READs are asked ahead
{
	jq_true a lane 'any(.lqpn == $q and .direction == "out" and ."psn-shift" > 0)' --argjson q $((${qpn[a]}))
}

log_has() # SITE TEXT: what its daemon has said
{
	grep -q -- "$2" "$LAB/gw-$1.err"
}

stat_of() # SITE NAME: a counter of `stats show`, added up over its groups
{
	local said sum=0

	said=$(cli "$1" -j stats show name "$2")
	[ -n "$said" ] || return
	while [[ $said =~ \"value\":\ *([0-9]+)(.*) ]]; do
		sum=$((sum + BASH_REMATCH[1]))
		said=${BASH_REMATCH[2]}
	done
	echo $sum
}

## The hosts

# First queue pair number and first PSN of each site's endpoints. The QPNs differ on purpose: pairing
# them is the appliance's business.
declare -A qpn=([a]=0x1a0 [b]=0x2b0) psn=([a]=0x0a1000 [b]=0xb02000)

# host_start NAME SITE ARGUMENT...: an endpoint there. It asks again as ever, but for a quarter of a minute and
# not half a second: what does not answer may be a program that is not let run.
host_start()
{
	local name=$1 s=$2 o

	shift 2
	o=$(other "$s")
	spawn "$name" "h$s" "${before_others[@]}" 0 "$LAB_BIN/endpoint" --if eth0 --ip "$(addr "$s" 1)" --peer-ip "$(addr "$o" 1)" \
		--peer-mac "$(mac "$o" 1)" --qpn ${qpn[$s]} --peer-qpn ${qpn[$o]} --psn ${psn[$s]} \
		--peer-psn ${psn[$o]} --retry 250 "$@"
}

lines_of() # NAME: what it has said on stderr, whole lines only, into the array lines
{
	mapfile lines <"$LAB/$1.err"
	[ ${#lines[@]} = 0 ] || [[ ${lines[-1]} == *$'\n' ]] || unset 'lines[-1]'
}

says_more() # NAME LINES: the endpoint has said something beyond these, or has ended
{
	local lines

	lines_of "$1"
	! running "$1" || [ ${#lines[@]} -gt "$2" ]
}

field_of() # LINE FIELD: of an endpoint's result
{
	[[ $1 =~ \"$2\":\"?([^,\"}]*) ]] && echo "${BASH_REMATCH[1]}"
}

# so_far NAME FIELD: of what would be the endpoint's result if it ended now
so_far()
{
	local lines

	lines_of "$1"
	signal "$1" USR1 && await 30 says_more "$1" ${#lines[@]} && lines_of "$1" && field_of "${lines[-1]}" "$2"
}

so_far_above() # NAME FIELD NUMBER
{
	[ "$(so_far "$1" "$2")" -gt "$3" ]
}

above_or_ended() # NAME FIELD NUMBER
{
	! running "$1" || so_far_above "$@"
}

more() # NAME MESSAGES: so many more than until now
{
	local had

	had=$(so_far "$1" messages)
	[ -n "$had" ] && await 60 above_or_ended "$1" messages $((had + $2)) && running "$1"
}

asks_again() # NAME: until the host has sent more packets again than until now
{
	await 60 so_far_above "$1" retransmits "$(so_far "$1" retransmits)"
}

enough() # NAME: the endpoint posts no more, and ends when what it has posted is complete
{
	signal "$1" USR2
}

# Other numbers for the next transfer: to the appliances a new connection
next_qpns()
{
	local s

	for s in a b; do
		qpn[$s]=$(printf '0x%x' $((${qpn[$s]} + 0x10)))
		psn[$s]=$(printf '0x%x' $(((${psn[$s]} + 0x345678) & 0xffffff)))
	done
}

socket_open() # NAME SITE NUMBER: that many packet sockets, or it has ended
{
	sockets_at_least "h$2" "$3" || ! running "$1"
}

learns() # for two seconds from its start on, PSNs tell an appliance no pair
{
	local s

	for s in a b c; do
		running gw-$s || continue
		[ "$(stat_of $s uptime-ms)" -gt 2000 ] || return
	done
}

# transfer NAME FROM-SITE ARGUMENT...: an endpoint there as requester, one at the other site as
# responder, until the requester ends, the appliances owe nothing and the responder has had it all.
# Results are $LAB/NAME-req.out and $LAB/NAME-resp.out; the status is that of both.
transfer()
{
	transfer_begin "$@" && transfer_end "$1"
}

transfer_begin()
{
	local name=$1 from=$2 to n

	shift 2
	to=$(other "$from")
	n=$(packet_sockets "h$to")
	[[ " $* " == *' --cm '* ]] || await 5 learns # the connection manager tells a pair at any time
	host_start "$name-resp" "$to" --listen "$@"
	await 30 socket_open "$name-resp" "$to" $((n + 1))
	host_start "$name-req" "$from" "$@"
}

# transfer_until CONDITION NAME FROM-SITE ARGUMENT...: one that goes on until that command succeeds, which it
# must within UNTIL_SECONDS (60)
transfer_until()
{
	local condition=$1 status=0 end=$((SECONDS + ${UNTIL_SECONDS:-60}))

	shift
	transfer_begin "$@" --seconds 600
	until eval "$condition" >/dev/null 2>&1; do
		ended "${pid[$1-req]}" || [ $SECONDS -ge $end ] && status=1 && break
		sleep 0.05
	done
	running "$1-req" && enough "$1-req"
	transfer_end "$1" && [ $status = 0 ]
}

ended_or() # NAME CONDITION
{
	eval "$2" || ended "${pid[$1]}"
}

transfer_end()
{
	local name=$1 status=0

	reap "$name-req" "${TRANSFER_SECONDS:-60}" || status=1
	await "${TRANSFER_SECONDS:-60}" settled || status=1
	running "$name-resp" && signal "$name-resp" TERM
	reap "$name-resp" 30 || status=1
	return $status
}

got() # NAME FIELD: of an endpoint's result
{
	field_of "$(<"$LAB/$1.out")" "$2"
}

# complete NAME COUNT: COUNT requests of any kind completed, without an error or a wrong byte
complete()
{
	jq -es --argjson n "$2" '.[0].intact and .[1].intact and .[0].errors == 0 and .[1].errors == 0 and
		.[0].messages == $n' "$LAB/$1-req.out" "$LAB/$1-resp.out" >/dev/null
}

# both_ways NAME COUNT ARGUMENT...: the endpoints of both sites post COUNT messages each. None goes before the other
# one has all it wants.
both_ways()
{
	local name=$1 count=$2 status=0 e

	shift 2
	set -- --bidir --count "$count" --expect-messages "$count" --linger-ms 600000 "$@"
	host_start "$name-resp" b --listen "$@"
	await 30 socket_open "$name-resp" b 1
	host_start "$name-req" a "$@"
	for e in req resp; do
		await 60 ended_or "$name-$e" "grep -q 'all done' '$LAB/$name-$e.err'"
	done
	await 60 settled || status=1
	for e in req resp; do
		running "$name-$e" && signal "$name-$e" TERM
		reap "$name-$e" 30 || status=1
	done
	return $status
}

# MB/s of payload at the responder, from the requester's first post to the last delivery: what the
# appliances hold at the end counts as time, not as done. READs deliver to the requester.
delivered_rate() # NAME
{
	jq -s '(if .[0].op == "read" then [.[0]."last-ns", .[0].bytes] else [.[1]."last-ns", .[1]."rx-bytes"] end)
		as [$last, $bytes] | ($last - .[0]."first-ns") as $t | if $t > 0 then $bytes / $t * 1000 else 0 end' \
		"$LAB/$1-req.out" "$LAB/$1-resp.out"
}

# intact NAME: a transfer of SENDs, WRITEs or READs one way: every message completed, and arrived once and
# unaltered
intact()
{
	jq -es '.[0].intact and .[1].intact and .[0].errors == 0 and .[0].messages > 0 and (.[0].op == "read" or
		(.[0].messages == .[1]."rx-messages" and .[0].bytes == .[1]."rx-bytes"))' \
		"$LAB/$1-req.out" "$LAB/$1-resp.out" >/dev/null
}

## The tests

# Frames that an XDP program let pass because its daemon had not been seen for half a second
passed_by()
{
	local s sum=0

	for s in a b; do
		running "gw-$s" && sum=$((sum + $(stat_of $s stale)))
	done
	echo $sum
}

# undisturbed COMMAND...: once more when it fails and a daemon stood still meanwhile, since it was not let run: then
# frames go by the bridge, as they must. The daemons are the same before and after.
undisturbed()
{
	local before tries=3

	while :; do
		before=$(passed_by)
		"$@" && return
		[ $((tries -= 1)) != 0 ] && [ "$(passed_by)" != "$before" ] || return 1
		echo "again, a daemon stood still"
	done
}

# What a reader of a failed test wants to see first
explain()
{
	local s f

	# shellcheck disable=SC2010 # by age, and no name has blanks
	for f in "$LAB"/it.err $(ls -t "$LAB"/*.out "$LAB"/*.err | grep -v '/it\.err$' | head -6); do
		[ -s "$f" ] && tail -n 3 "$f" | sed "s|^|# ${f##*/}: |"
	done
	for s in a b; do
		running gw-$s || continue
		cli $s qp | tail -n 6 | sed "s/^/# $s: /"
		echo "# $s: passed by while the daemon stood still: $(stat_of $s stale)"
	done
}

skip() # NAME REASON
{
	lab_number=$((lab_number + 1))
	echo "ok $lab_number - $1 # SKIP $2"
}

# it NAME COMMAND...: one line of the report
it()
{
	local name=$1

	shift
	lab_number=$((lab_number + 1))
	if "$@" >"$LAB/it.out" 2>"$LAB/it.err"; then
		echo "ok $lab_number - $name"
		return 0
	fi
	echo "not ok $lab_number - $name"
	tests_failed=$((tests_failed + 1))
	explain
	return 1
}

# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh and the netns tests' set $reply, $job and $before_others
#
# The tools that run in the guests, each as a *test* with a name: perftest, rdmacm-utils, ibverbs-utils, and
# vcheck, which looks at content. A test has a server in guest b and a client in guest a.
#
#	measure TEST MTU RTT-MS LOSS PHASE	sets $rate, MB/s of payload where it arrives; its status
#
# PHASE is bare or longhaul. What went wrong is in $why.
#
# The rate is taken from captures at the guests (tests/vm/rate.c) and not from what the tools say: through
# the appliances completions come early. For the same reason perftest's server must not go as soon as its
# client is content: it is told to wait before it destroys its queue pair, and ended once the appliances have
# delivered everything.

GID4=1 GID6=2
rate=
why=

# tool TEST MTU ITERATIONS: sets $server, $client, $port (where the server listens; cm: at the
# connection manager), $lingers (the server waits to be ended)
tool()
{
	local test=$1 mtu=$2 n=$3 opts gid=$GID4 to what

	to=$(addr b 1 4)
	lingers=
	case $test in
	*-v6) gid=$GID6 ;;
	esac
	case $test in
	rping | rping-v6)
		[ "$test" = rping ] || to=$(addr b 1 6)
		port=cm
		server="rping -s -V -v -a $to -C $n -S 4096"
		client="rping -c -V -v -a $to -C $n -S 4096"
		;;
	rc-pingpong | uc-pingpong | ud-pingpong | srq-pingpong)
		port=18515
		opts="-d rxe0 -g $gid -n $n"
		case $test in
		# one receive posted at a time: the other side's next message finds none (RNR)
		rc-pingpong) opts+=" -m $mtu -s 16384 -r 1" ;;
		uc-pingpong) opts+=" -m $mtu -s 16384 -r 64" ;;
		# with more it goes while messages are on their way to all queue pairs but one, which then
		# cannot be delivered
		srq-pingpong) opts+=" -m $mtu -s 16384 -q 1" ;;
		ud-pingpong) opts+=" -s 1024 -r 64" ;;
		esac
		server="ibv_${test%-*}_pingpong $opts"
		client="$server $to"
		;;
	*)
		port=18515 lingers=yes
		what=${test%%-*}
		# a timeout of 0.5 s: with the default, 67 ms, they resend everything at 100 ms, and again and again
		opts="-d rxe0 -x $gid -F -n $n -u 17"
		case $what in
		atomic) ;; # 8 bytes, always
		*) opts+=" -m $mtu" ;;
		esac
		case $test in
		*-lat)
			opts+=" -s 4096"
			[ "$what" != atomic ] || opts=${opts% -s 4096}
			server=ib_${what}_lat
			;;
		*)
			opts+=" -s 65536"
			[ "$what" != atomic ] || opts=${opts% -s 65536}
			server=ib_${what}_bw
			;;
		esac
		case $test in
		*-bidir) opts+=" -b" ;;
		*-q8) opts+=" -q 8" ;;
		*-event) opts+=" -e" ;;
		*-rnr) opts+=" -r 1" ;;
		*-one) opts+=" -o 1 -t 1" ;;
		# these two part over the queue pair itself, after all that went before
		*-cm) opts+=" -R" port=cm lingers= ;;
		esac
		client="$server $opts $to"
		server="$server $opts${lingers:+ --wait_destroy 100}"
		;;
	esac
}

# So many iterations as take SECONDS or so, by what the guests can do.
iterations() # TEST MTU RTT-MS LOSS PHASE SECONDS
{
	awk -v test="$1" -v mtu="$2" -v rtt="$3" -v p="$4" -v phase="$5" -v s="$6" 'BEGIN {
		rtt /= 1000
		if (test ~ /lat$|ping/) {
			each = rtt + 0.008
			if (test ~ /^rping/)
				each = 4 * rtt + 0.02	# four turns a round
			if (p > 0)
				each *= 1.3 + 25 * p	# a timeout for some
			n = s / each
			max = test ~ /^rping/ ? 50 : 300
			min = test ~ /^rping/ ? 4 : 12
		} else if (test ~ /^atomic/) {
			n = s / (rtt + 0.01) * 8
			max = 1000
			min = 40
		} else {
			top = mtu == 4096 ? 11e6 : 7.4e6
			if (test ~ /bidir/)
				top /= 2
			r = top
			if (phase == "bare") {
				window = 128 * mtu
				if (test ~ /^read/ && window > 16 * 65536)
					window = 16 * 65536
				if (test ~ /-one/)
					window = 65536
				if (test ~ /q8/)
					window *= 8
				r = window / (rtt + window / top)
				if (p > 0) {
					lossy = mtu / p / (2 * rtt + 0.02)
					r = r < lossy ? r : lossy
				}
			} else if (test ~ /^read/ && test !~ /-one/) {
				r = 16 * 65536 / (rtt + 0.15)
			}
			n = r * s / 65536
			max = 2000
			min = 16
		}
		n = n > max ? max : n < min ? min : n
		printf "%d\n", n
	}'
}

# A connection is learned within the first few round trips, at the bare rate. Where the rate is the point and
# the way is long, that must not be a good part of it.
run_seconds() # TEST RTT-MS PHASE
{
	case $1,$3 in
	write,longhaul | send,longhaul | read-one,longhaul) awk -v s="${RUN_SECONDS:-2}" -v rtt="$2" 'BEGIN { print s + rtt / 25 }' ;;
	*) echo "${RUN_SECONDS:-2}" ;;
	esac
}

# What the guests are busy with, for who has to find out why something hangs
guests_state()
{
	local s hears

	for s in a b; do
		hears="ping -c 1 -W 2 $(addr $s 2 4) || echo its card does not even hear its bridge"
		guest $s 8 "ps; cat /proc/net/tcp /proc/net/tcp6 /proc/net/dev; rdma resource show qp; dmesg | tail -n 20; $hears"
		printf '== guest %s\n%s\n' $s "$reply"
	done
}

# listens PORT: a command for a guest that ends when something listens there
listens()
{
	if [ "$1" = cm ]; then
		echo "until rdma resource show cm_id 2>/dev/null | grep -q LISTEN; do sleep 0.05; done"
	else
		printf 'until grep -q ":%04X 0[^ ]* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done\n' "$1"
	fi
}

# serve SECONDS SERVER PORT CLIENT: server in b, and when it listens the client in a. Sets $served, the
# server's job, and $reply; the client's status.
serve()
{
	local asking

	serve_begin "$@" || return
	# while it still hangs
	guest_await a "$asking" $(($1 - 3)) || guests_state >"$LAB/guests.txt"
	guest_wait a "$asking"
}

serve_begin() # the same, but the client is not waited for: sets $asking, its job
{
	guest_begin b $(($1 + 20)) "$2"
	served=$job
	# in a guest that may have to wait for a processor
	if ! guest b 40 "$(listens "$3")"; then
		guests_state >"$LAB/guests.txt"
		guest_kill b "$served"
		guest_wait b "$served"
		why="the server does not listen: $reply"
		return 1
	fi
	guest_begin a "$1" "$4"
	asking=$job
}

# What the guests' network cards see from now on, into $LAB/NAME-lan-a.pcap and -lan-b.pcap; with
# appliances also what passes on their WAN sides
capture_start() # NAME PHASE
{
	local s

	for s in a b; do
		rm -f "$LAB/$1-lan-$s.pcap"
		printf 'object_add filter-dump,id=dump,netdev=n0,file=%s\n' "$LAB/$1-lan-$s.pcap" >"$LAB/monitor-$s.in"
		[ "$2" = bare ] || spawn capture-$s wan "${before_others[@]}" -10 "$B/lab/pcapcheck" --capture $s "$LAB/$1-wan-$s.pcap"
	done
	for s in a b; do
		await 30 [ -s "$LAB/$1-lan-$s.pcap" ] || die "no capture at guest $s"
		[ "$2" = bare ] || await 30 grep -q ready "$LAB/capture-$s.err" || die "no capture on the WAN of $s"
	done
}

capture_stop()
{
	local s

	for s in a b; do
		echo 'object_del dump' >"$LAB/monitor-$s.in"
		running capture-$s && signal capture-$s TERM
	done
	for s in a b; do
		[ -z "${pid[capture-$s]:-}" ] || reap capture-$s
	done
}

# Requests that the appliances have repeated by themselves toward the near responder
repeats()
{
	echo $(($(stat_of a retx-lan) + $(stat_of b retx-lan)))
}

# What passed on both sides of both appliances keeps the rules of the protocol and of custody. On a busy machine, too,
# an appliance may send again what had arrived, and the other one lets that through as a host's own repeats. REPEATS is
# how often the appliances have repeated a request because a guest that stood still did not answer in time.
judged() # NAME REPEATS
{
	local ahead=

	[[ $1 != read-one-* ]] || ahead=--prefetch
	"$B/lab/pcapcheck" $ahead --stalls --repeats "$2" --pass-repeats --local "$(addr a 1 4)" --local "$(addr a 1 6)" --max 5 \
		--drops "$LAB/capture-a.out" --drops "$LAB/capture-b.out" \
		--lan-a "$LAB/$1-lan-a.pcap" --wan-a "$LAB/$1-wan-a.pcap" \
		--lan-b "$LAB/$1-lan-b.pcap" --wan-b "$LAB/$1-wan-b.pcap" >"$LAB/$1.judged" 2>&1
}

# How many queue pairs have come to harm by the appliances
faults()
{
	echo $(($(stat_of a faults) + $(stat_of b faults)))
}

finish() # SECONDS: everything is delivered, and the server has ended
{
	local status

	if [ "$phase" = longhaul ] && ! await "$1" settled; then
		why="the appliances still owe something"
		guest_kill b "$served"
		guest_wait b "$served"
		return 1
	fi
	[ -z "$lingers" ] || guest_kill b "$served"
	guest_wait b "$served"
	status=$?
	case $test,$lingers in
	# its own end of the connection is an error to rping's server
	rping*) ;;
	# what it had to say may be lost with it
	*,yes) [ $status = 0 ] || [ $status = 124 ] || why="the server ended with $status: $reply" ;;
	*) [ $status = 0 ] || why="the server ended with $status: $reply" ;;
	esac
	[ -z "$why" ]
}

# good TEST N: the client's output is that of N good rounds
good()
{
	case $1 in
	rping*) [ "$(grep -c '^ping data: ' <<<"$reply")" = "$2" ] ;;
	*-pingpong) grep -q "^$2 iters in " <<<"$reply" ;;
	*-q8) grep -qE "^ *[0-9]+ +$(($2 * 8)) +[0-9.]+" <<<"$reply" ;;
	*) grep -qE "^ *[0-9]+ +$2 +[0-9.]+" <<<"$reply" ;;
	esac
}

# At the very end rping closes the channel of the connection manager that a thread of its own still waits for. Where that
# thread is let run before the process has ended, the status is 255, of a client that has done all.
closed_late() # TEST STATUS
{
	[[ $1 = rping* && $2 = 255 ]] && grep -q 'rdma_get_cm_event: Bad file descriptor' <<<"$reply"
}

measure() # TEST MTU RTT-MS LOSS PHASE
{
	local test=$1 phase=$5 n name=$1-$2-$3-$4-$5 status r f seconds=60
	local server client port lingers served before=0 repeated=0

	why= rate=0
	[ "$phase" = bare ] || { before=$(faults) && repeated=$(repeats); }
	n=$(iterations "$1" "$2" "$3" "$4" "$5" "$(run_seconds "$1" "$3" "$5")")
	tool "$1" "$2" "$n"
	capture_start "$name" "$phase"
	serve $seconds "$server" "$port" "$client"
	status=$?
	r=$reply
	if [ -n "$why" ]; then
		:
	elif [ $status != 0 ] && ! closed_late "$test" $status; then
		guest_kill b "$served"
		guest_wait b "$served"
		why="the client ended with $status: $r / the server: $reply"
	elif ! good "$test" "$n"; then
		why="the client does not tell of $n rounds: $r"
		guest_kill b "$served"
		guest_wait b "$served"
	else
		finish 60
	fi
	capture_stop
	rate=$({ "$VM/rate" "$(addr a 1 4)" "$LAB/$name-lan-a.pcap"
		 "$VM/rate" "$(addr b 1 4)" "$LAB/$name-lan-b.pcap"
		 "$VM/rate" "$(addr a 1 6)" "$LAB/$name-lan-a.pcap"
		 "$VM/rate" "$(addr b 1 6)" "$LAB/$name-lan-b.pcap"; } | awk '{ r += $3 } END { print r + 0 }')
	[ -n "$why" ] || [ "$phase" = bare ] || [ "$(faults)" = "$before" ] || why="a queue pair is in fault"
	[ -n "$why" ] || [ "$phase" = bare ] || judged "$name" $(($(repeats) - repeated)) || why="the captures: $(tail -n 4 "$LAB/$name.judged")"
	if [ -n "$why" ] && [ -n "${FAILED:-}" ]; then
		mkdir -p "$FAILED" && mv "$LAB/$name"[-.]* "$FAILED" && echo "$why" >"$FAILED/$name.why"
		for f in "$LAB"/gw-?.err "$LAB"/guests.txt "$LAB"/console-?.log; do
			[ ! -e "$f" ] || cp "$f" "$FAILED/$name-${f##*/}"
		done
		[ "$phase" = bare ] || for f in a b; do
			{ cli $f qp; cli $f stats; } >"$FAILED/$name-$f.txt"
		done
	elif [ -z "${KEEP:-}" ]; then
		rm -f "$LAB/$name"[-.]*
	fi
	[ -z "$why" ]
}

# Content, by vcheck; once for each set of arguments over the same link. OPS as vcheck has them, RECEIVES are
# posted at a time.
declare -A verified
verify() # OPS MTU GID [RECEIVES]
{
	local served key="$*" to run="vcheck -m $2 -x $3 -r ${4:-64} -n ${VERIFY_COUNT:-48} $1"

	why=
	[ -z "${verified[$key]:-}" ] || return 0
	to=$(addr b 1 4)
	serve 60 "$run" 18600 "$run $to"
	if [ $? != 0 ]; then
		[ -n "$why" ] || why="vcheck: $reply"
		guest_kill b "$served"
		guest_wait b "$served"
		why+=" / the responder: $reply"
		return 1
	fi
	if ! guest_wait b "$served"; then
		why="vcheck, the responder: $reply"
		return 1
	fi
	verified[$key]=yes
}

# Which letters of vcheck stand for a test. The connection manager's tests and those that are not RC verify
# nothing by it: rping does that by itself, and the others are none of the appliances' business.
ops_of() # TEST
{
	case $1 in
	write*) echo wi ;;
	send* | rc-pingpong | srq-pingpong) echo s ;;
	read*) echo r ;;
	atomic*) echo a ;;
	esac
}

## Cells: a test over a link, bare and through the appliances

declare -A direct direct_why
cells=0 cells_failed=0

bare_cell() # TEST MTU RTT-MS LOSS
{
	measure "$@" bare
	direct[$1,$2]=$rate direct_why[$1,$2]=$why
	[ -z "$why" ]
}

# What a cell must reach. Over a link with loss the bare rate is a matter of luck, and so is their ratio.
wanted_gain() # TEST MTU RTT-MS LOSS
{
	case $1:$2:$3:$4 in
	write:1024:100:0) echo 5 ;; # the guests' own limit is 7.4 MB/s, bare 1.14
	read-one:*:100:0) echo 8 ;; # bare 0.59 MB/s
	*:*:0:0) echo 0 ;; # hosts, appliances and the link are all on the same processors
	*:0) echo 0.7 ;;
	*) echo 0 ;;
	esac
}

# The beginning and the end, in one line; of the data that rping prints only that it came
brief()
{
	local text

	text=$(tr -s '\n\t -' ' ' <<<"$1" | sed -E 's/(ping data: rdma ping [0-9]+: [^ ]+ ?)+/(pings) /g')
	[ ${#text} -le 400 ] || text="${text:0:200} ... ${text: -200}"
	echo "$text"
}

# Both appliances anew, as they were
pair_again()
{
	pair_stop
	pair_start "${pair_options[@]}"
}
pair_options=()

# One try: sets $why and $gain
longhaul_try() # TEST MTU RTT-MS LOSS
{
	local d=${direct[$1,$2]} ops gid=$GID4

	measure "$@" longhaul
	[[ $1 != *-v6 ]] || gid=$GID6
	ops=$(ops_of "$1")
	[ -n "$why" ] || [ -z "$ops" ] || verify "$ops" "$2" $gid
	gain=$(awk -v d="$d" -v l="$rate" 'BEGIN { printf "%.2f", (d > 0 ? l / d : 0) }')
	[ -n "$why" ] || [ -z "${direct_why[$1,$2]}" ] || [ "$4" != 0 ] || why="bare: ${direct_why[$1,$2]}"
	[ -n "$why" ] || awk -v g="$gain" -v w="$(wanted_gain "$@")" 'BEGIN { exit g < w }' ||
		why="gain below $(wanted_gain "$@")"
}

# Prints the line. Fails when the tool fails, a queue pair comes to harm, a byte is wrong, the captures
# break a rule, or a link without loss carries clearly less than bare. What says more about this machine than
# about the appliances is tried again: a daemon was not let run, or the rate was too low once.
longhaul_cell() # TEST MTU RTT-MS LOSS
{
	local verdict=ok gain by tries=3

	while :; do
		by=$(passed_by)
		longhaul_try "$@"
		[ -n "$why" ] && [ $((tries -= 1)) != 0 ] || break
		if [ "$(passed_by)" != "$by" ]; then
			echo "# vm: $*: again, a daemon stood still: $(brief "$why")"
		elif [[ $why == gain\ * ]]; then
			echo "# vm: $*: again, $why: $gain"
		else
			break
		fi
		pair_again
	done
	cells=$((cells + 1))
	if [ -n "$why" ]; then
		cells_failed=$((cells_failed + 1))
		verdict="FAILED: $(brief "$why")"
	fi
	awk -v t="$1" -v m="$2" -v rtt="$3" -v p="$4" -v d="${direct[$1,$2]}" -v l="$rate" -v g="$gain" -v v="$verdict" '
		function mb(x) { return sprintf((x >= 0.1 ? "%.2f" : (x >= 0.001 ? "%.4f" : "%.6f")), x) }
		BEGIN {
			printf "vm: test=%s mtu=%s rtt-ms=%s loss=%s direct-MBps=%s longhaul-MBps=%s gain=%s %s\n",
				t, m, rtt, p, mb(d), mb(l), g, v
		}'
	[ -z "$why" ]
}

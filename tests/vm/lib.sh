# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Two data centres as in tests/netns/lib.sh, with guests as hosts: real kernels, their own soft-RoCE
# driver and tools that nobody here wrote.
#
#	guest a == lan0 P-ga: br0 wan0 -- a P-wan b -- wan0 P-gb: br0 lan0 == guest b
#
# lan0 is the tap of a guest's only network card, and the LAN port of an appliance. The processor is
# emulated, so the guests are slow: they judge behaviour and ratios.
#
# A guest runs commands that come over its second serial line (see guest-init), several at a time:
#
#	guest_begin a 30 "ib_write_bw ..."	# sets $job
#	guest_wait a $job			# sets $reply; its status
#	guest a 5 "rdma link"			# both
#
# Only this shell may call these, no subshell: answers to other jobs are kept in its variables.

. tests/netns/lib.sh

VM=$B/vm
GUEST_MTU=4200 # path MTU 4096
GUEST_MB=${GUEST_MB:-320}
INITRD=${INITRD:-initrd}
KERNEL=${KERNEL:-kernel}
declare -A guest_in guest_out guest_part answer answered
declare -a job_end
guest_jobs=0
job=
reply=

# The tap in place of the namespace of a model host
site_up()
{
	local s=$1 g=$P-g$1

	ip netns add "$g" &&
	ip -n "$g" tuntap add dev lan0 mode tap &&
	ip -n "$g" link add wan0 type veth peer name "$s" netns "$P-wan" &&
	ip -n "$g" link add br0 address "$(mac "$s" 2)" type bridge stp_state 0 mcast_snooping 0 &&
	ip -n "$g" link set lan0 master br0 && ip -n "$g" link set wan0 master br0 || return
	ip -n "$g" link set lo up && link_up "g$s" lan0 && link_up "g$s" wan0 && link_up "g$s" br0 &&
	link_up wan "$s" &&
	ip -n "$g" addr add "$(addr "$s" 2 4)/16" dev br0 &&
	ip -n "$g" addr add "$(addr "$s" 2 6)/64" dev br0 nodad
}

neighbours() # SITE
{
	local f n o

	o=$(other "$1")
	for f in 4 6; do
		for n in 1 2; do
			ip -n "$P-g$1" neigh replace "$(addr "$o" $n $f)" lladdr "$(mac "$o" $n)" dev br0 || return
		done
	done
}

# guest_qemu SITE NAMESPACE MB APPEND QEMU-ARGUMENT...: its words for the kernel, and its network cards
guest_qemu()
{
	local s=$1 ns=$2 mb=$3 append=$4

	shift 4
	rm -f "$LAB"/{serial,monitor}-"$s".{in,out}
	mkfifo "$LAB"/{serial,monitor}-"$s".{in,out} || die "no fifos"
	# shellcheck disable=SC1083,SC2093 # file descriptors into elements of arrays, which it does not know
	exec {guest_in[$s]}<>"$LAB/serial-$s.in" {guest_out[$s]}<>"$LAB/serial-$s.out"
	# what the monitor says is nobody's concern, but must be read
	spawn "sink-$s" "$ns" sh -c 'exec cat "$0" >/dev/null' "$LAB/monitor-$s.out"
	# An emulated processor on a busy machine may be late for what the kernel wants to see of its clocks. Room for a second
	# one: for a single one QEMU leaves out what orders memory between it and the card's thread, and in the end a card
	# hears nothing more.
	spawn "guest-$s" "$ns" "${before_others[@]}" -5 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-accel tcg,thread=multi -smp 1,maxcpus=2 -m "$mb" -kernel "$VM/$KERNEL/vmlinuz" -initrd "$VM/$INITRD" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check nowatchdog $append" -serial "file:$LAB/console-$s.log" \
		-chardev "pipe,id=line,path=$LAB/serial-$s" -serial chardev:line \
		-chardev "pipe,id=mon,path=$LAB/monitor-$s" -mon chardev=mon,mode=readline "$@"
}

guest_boot() # SITE
{
	local s=$1 o append

	o=$(other "$s")
	append="lh.mtu=$GUEST_MTU lh.addr4=$(addr "$s" 1 4)/16 lh.addr6=$(addr "$s" 1 6)/64"
	append+=" lh.neigh=$(addr "$o" 1 4)=$(mac "$o" 1),$(addr "$o" 1 6)=$(mac "$o" 1)"
	# no offloads: what crosses the tap must be what crosses a wire
	guest_qemu "$s" "g$s" "$GUEST_MB" "$append" -netdev tap,id=n0,ifname=lan0,script=no,downscript=no,vnet_hdr=off \
		-device "virtio-net-pci,netdev=n0,mac=$(mac "$s" 1),romfile="
}

# One line of what the guest answers, into the variables. False when none came within a second.
guest_listen() # SITE
{
	local s=$1 line id rest

	if ! IFS= read -r -t 1 -u "${guest_out[$s]}" line; then
		guest_part[$s]+=$line # the rest comes later
		return 1
	fi
	line=${guest_part[$s]:-}$line
	guest_part[$s]=
	case $line in
	ready) answered[$s,ready]=0 ;;
	*[0-9]'|'*)
		id=${line%%|*} rest=${line#*|}
		answer[$s,$id]+=${rest%$'\r'}$'\n'
		;;
	*[0-9]=*) answered[$s,${line%%=*}]=${line##*=} ;;
	esac
}

# guest_await SITE ID SECONDS
guest_await()
{
	local end=$((SECONDS + $3))

	until [ -n "${answered[$1,$2]:-}" ]; do
		guest_listen "$1" && continue
		running "guest-$1" || die "guest $1 ended: $(cat "$LAB/guest-$1.err" "$LAB/console-$1.log" | tail -n 5)"
		[ $SECONDS -lt $end ] || return 1
	done
}

guest_begin() # SITE SECONDS COMMAND
{
	guest_jobs=$((guest_jobs + 1))
	job=$guest_jobs
	job_end[job]=$((SECONDS + $2 + 10))
	printf '%s %s %s\n' "$job" "$2" "$3" >&"${guest_in[$1]}"
}

# 124 when the guest does not answer, or had to end the command
guest_wait() # SITE JOB
{
	local status left=$((job_end[$2] - SECONDS))

	reply=
	[ $left -gt 0 ] || left=1
	guest_await "$1" "$2" $left || return 124
	status=${answered[$1,$2]}
	reply=${answer[$1,$2]:-}
	unset "answered[$1,$2]" "answer[$1,$2]"
	# busybox's timeout tells a command that it ended by the signal's number
	[ "$status" != 143 ] || status=124
	return "$status"
}

guest() # SITE SECONDS COMMAND
{
	guest_begin "$@"
	guest_wait "$1" "$job"
}

guest_kill() # SITE JOB
{
	printf '%s kill\n' "$2" >&"${guest_in[$1]}"
}

# An emulated processor that is not let run at the wrong moment may miss a timer for ever while it boots
guest_again() # SITE
{
	echo "# guest $1 has not started in 90 s: again" >&2
	signal "guest-$1" KILL
	signal "sink-$1" KILL
	{ reap "guest-$1" 10; reap "sink-$1" 10; } 2>/dev/null
	unset "answered[$1,ready]"
	guest_part[$1]=
	guest_boot "$1"
	guest_await "$1" ready 120
}

# Guests and bridges, no link yet
vm_up()
{
	local s

	[ "$(id -u)" = 0 ] || die "needs root: network namespaces and taps"
	ip netns add $P-wan && ip -n $P-wan link set lo up && site_up a && site_up b &&
	neighbours a && neighbours b || die "cannot make the network namespaces"
	# see lab_up
	mkdir "$LAB/bpf" && mount -t bpf bpf "$LAB/bpf" || die "no BPF file system"
	for s in a b; do
		guest_boot $s
	done
	for s in a b; do
		guest_await $s ready 90 || guest_again $s ||
			die "guest $s does not start: $(tail -n 5 "$LAB/console-$s.log")"
		guest $s 40 "rdma link show rxe0/1" && [[ $reply == *ACTIVE* ]] ||
			die "guest $s has no soft-RoCE device: $(tail -n 5 "$LAB/console-$s.log") $reply"
	done
	! grep -h ^init: "$LAB"/console-?.log || die "the guests are not as they should be"
	await 30 carrier || die "the bridges do not forward"
}

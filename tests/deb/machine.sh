# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shares variables with those who source it
#
# A Debian with a real systemd, in namespaces of its own (process ids, mounts, network), so that nothing of this machine is
# touched: for check.sh and tests/systemd.sh. Who sources this has set $deb, a folder for roots that debootstrap makes and
# that are kept, and $suite; boot() starts $root.

MIRROR=${MIRROR:-http://deb.debian.org/debian}
number=0 failed=0
init=
boot=

mkdir -p "$deb" || exit 1
exec 3>&1

stop()
{
	[ -z "$init" ] || kill -KILL "$init" 2>/dev/null
	[ -z "$boot" ] || wait "$boot" 2>/dev/null
	init=''
	boot=''
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

die()
{
	echo "$(basename "$0"): $*" >&2
	exit 1
}

it() # TEXT COMMAND...
{
	local text="$suite: $1"

	shift
	number=$((number + 1))
	if "$@" >"$deb/it.log" 2>&1 </dev/null; then
		echo "ok $number - $text"
	else
		echo "not ok $number - $text"
		[ -z "$init" ] || inside journalctl -qn 6 -o cat -u longhauld -u longhaul-metrics >>"$deb/it.log" 2>&1
		sed 's/^/# /' "$deb/it.log" | tail -n 15
		failed=1 step_failed=1
	fi
}

await() # SECONDS COMMAND...
{
	local end=$((SECONDS + $1 + 1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

in_root() # ROOT COMMAND...
{
	local root=$1

	shift
	unshare --mount --pid --fork --kill-child bash -c '
		root=$1; shift
		mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" &&
		exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive B=build "$@"' in_root "$root" "$@"
}

# made ROOT FUNCTION...: the function fills it, unless an earlier run has
made()
{
	local root=$1

	shift
	[ ! -e "$root/.complete" ] || return 0
	rm -rf "$root"
	"$@" "$root" && touch "$root/.complete"
}

base_root() # ROOT
{
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,iproute2,procps "$suite" "$1" "$MIRROR"
}

boot()
{
	unshare --pid --mount --uts --ipc --net --cgroup --fork --kill-child --propagation private bash -c '
		mount --bind "$1" "$1" && cd "$1" && mount -t proc proc proc && mount -t sysfs sysfs sys &&
		mount -t tmpfs -o mode=755 tmpfs run && mount -t tmpfs tmpfs tmp &&
		mount -t tmpfs -o mode=755 dev dev && mkdir dev/pts dev/shm && mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts &&
		for n in null zero full random urandom tty; do touch dev/$n; mount --bind /dev/$n dev/$n || exit; done &&
		ln -s /proc/self/fd dev/fd && ln -s pts/ptmx dev/ptmx && mount -t cgroup2 cgroup2 sys/fs/cgroup && mount -t bpf -o mode=0700 bpf sys/fs/bpf &&
		pivot_root . mnt && umount -l /mnt &&
		exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init' boot "$root" \
		</dev/null >"$deb/boot.log" 2>&1 &
	boot=$!
	await 30 eval '[ -n "$(cat /proc/$boot/task/$boot/children 2>/dev/null)" ]' || die "the machine does not start"
	init=$(cat /proc/$boot/task/$boot/children)
	init=${init// /}
	await 120 inside eval 'systemctl is-system-running | grep -Eq "running|degraded"'
}

inside() # COMMAND...: a simple one, or eval 'TEXT'
{
	[ "$1" != eval ] || set -- bash -c "$2"
	nsenter -t "$init" -a -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "$@"
}

# A port is one end of a pair of veth; both are in a bridge, which has an address for the reports.
ports()
{
	inside eval 'ip link add br0 type bridge && ip link set br0 mtu 4300 up &&
		for p in lan wan; do
			ip link add ${p}0 mtu 4300 type veth peer name ${p}1 mtu 4300 &&
			ip link set ${p}0 master br0 up && ip link set ${p}1 up || exit
		done; ip addr add 192.0.2.1/30 dev br0 && { ethtool -K br0 tx off 2>/dev/null || true; }'
}

# Where this test may not raise limits (a container without CAP_SYS_RESOURCE), LimitMEMLOCK= of the unit does
# nothing; the capability does it instead. longhauld gives it up as the others.
locked_memory()
{
	prlimit --memlock=unlimited true 2>/dev/null && return
	echo "# no CAP_SYS_RESOURCE here: the service gets CAP_IPC_LOCK in place of LimitMEMLOCK" >&3
	inside eval 'mkdir -p /run/systemd/system/longhauld.service.d &&
		printf "[Service]\nAmbientCapabilities=CAP_IPC_LOCK\nCapabilityBoundingSet=CAP_IPC_LOCK\n" \
			>/run/systemd/system/longhauld.service.d/memlock.conf && systemctl daemon-reload'
}

configure()
{
	inside eval 'echo "192.0.2.2 edge-b.example" >>/etc/hosts && longhaul keygen /etc/longhaul/link.key && cat >/etc/longhaul/longhaul.conf <<-.
		[longhaul]
		lan = lan0
		wan = wan0
		pool = 32M
		[peer edge-b]
		address = edge-b.example
		key-file = /etc/longhaul/link.key
		[rule all]
		lan = 10.1.0.0/16
		wan = 10.2.0.0/16
		peer = edge-b
		policy = early
		prefetch = on
		.'
}

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make check-systemd: the unit under a real systemd, in a Debian of this machine's own release that debootstrap makes
# ($B/deb, kept for the next time) and that runs in namespaces: start, kill -9 again and again, restart, upgrade to a
# version with another layout of memory, a reload with a bad file, a port that is deleted and comes back, stop. Root; half a
# minute, three with debootstrap. TAP, then
#
#	systemd: starts=N failed=N
set -u
cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
deb=$PWD/$B/deb
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
. tests/deb/machine.sh
root=$deb/systemd
starts=0

# What is to be tried, as packages would have it
install_ours()
{
	local lib

	rm -rf "$root"
	cp -a "$deb/base-$suite" "$root" && make -s B="$B" DESTDIR="$root" prefix=/usr sysconfdir=/etc install >/dev/null || return
	for lib in $(ldd "$B/longhauld" "$B/longhaul" "$B/longhaul-metrics" | grep -o '/[^ ]*' | grep -v : | sort -u); do
		[ -e "$root$lib" ] || { mkdir -p "$root${lib%/*}" && cp -L "$lib" "$root$lib"; } || return
	done
	cp "$B/longhauld" "$root/root/one" && cp "$B/other/longhauld" "$root/root/other" || return
	in_root "$root" sh -c 'ldconfig; systemd-sysusers' # the folder for pins is made by the unit itself
}

begins() # COMMAND...: once more, and what the journal says of it is $said
{
	local cursor pid

	starts=$((starts + 1))
	pid=$(main_pid)
	cursor=$(inside journalctl -qn 1 --show-cursor | sed -n 's/^-- cursor: //p')
	inside "$@" && await 30 another_runs "$pid" || return
	said=$(inside journalctl -q -o cat -u longhauld --after-cursor "$cursor")
	echo "$said"
}

main_pid()
{
	inside systemctl show -P MainPID longhauld
}

another_runs() # PID: the service runs as another process
{
	[ "$(main_pid)" != "$1" ] && inside systemctl is-active longhauld && inside longhaul rule
}

says() # TEXT
{
	[[ $said == *"$1"* ]]
}

state_there()
{
	inside test -s /run/longhaul/longhaul.sock.state
}

killed()
{
	begins systemctl kill -s KILL longhauld && says "going on where a former longhauld ended"
}

killed_often() # more than a start limit would allow
{
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		killed >/dev/null || return
	done
	! inside systemctl is-failed longhauld
}

restarted()
{
	begins systemctl restart longhauld && says "handing over to the next longhauld" && says "going on where a former longhauld ended"
}

upgraded() # VERSION
{
	inside sh -c "cp /root/$1 /usr/sbin/new && mv /usr/sbin/new /usr/sbin/longhauld" &&
	inside eval 'longhauld --check-config | grep "a restart: connections are released first: another version runs"' &&
	begins systemctl restart longhauld && says "stopped, nothing left in custody" && ! says "going on where" && ! says "put into the error state"
}

bad_reload()
{
	local pid

	pid=$(main_pid)
	inside eval 'cp -p /etc/longhaul/longhaul.conf /root/good.conf && echo "colour = blue" >>/etc/longhaul/longhaul.conf
		! systemctl reload longhauld 2>/root/reload.err' || return
	inside eval 'cp -p /root/good.conf /etc/longhaul/longhaul.conf && systemctl is-active longhauld && systemctl reload longhauld' &&
	[ "$(main_pid)" = "$pid" ]
}

waits() # for the port that is gone
{
	inside eval 'systemctl status longhauld | grep "waiting for interface lan0: it does not exist"'
}

port_lost()
{
	local pid

	pid=$(main_pid)
	inside ip link del lan0 && await 30 waits && state_there && ! inside systemctl is-failed longhauld || return
	inside eval 'ip link add lan0 mtu 4300 type veth peer name lan1 mtu 4300 && ip link set lan0 master br0 up && ip link set lan1 up'
	starts=$((starts + 1))
	await 30 another_runs "$pid" && inside eval 'journalctl -qn 20 -o cat -u longhauld | grep "going on where a former longhauld ended"'
}

stopped()
{
	inside systemctl stop longhauld && ! state_there && ! inside systemctl is-failed longhauld &&
	inside eval 'journalctl -qn 5 -o cat -u longhauld | grep "stopped, nothing left in custody"'
}

stop_of_wait() # a stop is obeyed while it waits
{
	inside ip link set wan0 down
	inside systemctl start --no-block longhauld
	await 30 inside eval 'systemctl status longhauld | grep "waiting for interface wan0: it is down"' &&
	inside systemctl stop longhauld && inside ip link set wan0 up
}

[ "$(id -u)" = 0 ] || die "needs root: debootstrap and namespaces"
command -v debootstrap >/dev/null || die "needs debootstrap; apt-get install debootstrap"
[ -n "$suite" ] || die "this is no Debian"
[ -x "$B/other/longhauld" ] || die "make tests first: there is no $B/other/longhauld"
made "$deb/base-$suite" base_root >"$deb/base-$suite.log" 2>&1 ||
	die "debootstrap of $suite from $MIRROR failed: $(tail -n 1 "$deb/base-$suite.log")"
it "the unit and its programs in a root of their own" install_ours
it "it boots, systemd is process 1" boot
it "ports, key, configuration" eval 'ports && locked_memory && configure && inside longhauld --check-config'
it "start" begins systemctl start longhauld
it "kill -9: the next one goes on" killed
it "kill -9, twelve times: no start limit" killed_often
it "restart: a hand-over" restarted
it "restart into a version with another layout of memory: it lets go first" upgraded other
it "and back" upgraded one
it "reload with a bad file fails, and changes nothing" bad_reload
it "a port is deleted: the service waits for it, and goes on when it is there again" port_lost
it "a stop leaves nothing" stopped
it "a stop while it waits for a port" stop_of_wait
it "start once more" begins systemctl start longhauld
stop
[ -n "${KEEP:-}" ] || rm -rf "$root"
echo "1..$number"
echo "systemd: starts=$starts failed=$failed"
[ $failed = 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Debian packages in Debian 12 and 13: built there, installed, configured and run under a real systemd, upgraded,
# removed and purged. Each Debian is a root made by debootstrap, kept in $B/deb for the next time; systemd runs in
# it in namespaces of its own (process ids, mounts, network), so nothing of this machine is touched. Then those of
# Debian 12 in a guest (guest.sh). Root, a mirror of Debian, and about ten minutes; with kept roots three.
#
#	tests/deb/check.sh [SUITE ...]	bookworm trixie
#
# One line for each thing shown, in TAP; then
#
#	deb: installs=N ok=N
#
# KEEP=yes keeps the tried root, build/deb/try-SUITE; REUSE=yes takes the packages of the last run.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
deb=$PWD/$B/deb
installs=0 good=0
. tests/deb/machine.sh

# What `installs` counts: an installation, an upgrade, a purge; good when all that belongs to it was
begin()
{
	installs=$((installs + 1))
	step_failed=0
}
end()
{
	[ $step_failed = 0 ] && good=$((good + 1))
}

## Roots

build_root() # ROOT
{
	cp -a "$deb/base-$suite" "$1" && rm "$1/.complete" && mkdir "$1/src" && cp -r debian "$1/src/" &&
	in_root "$1" bash -c 'apt-get -q update && cd /src && apt-get -qy --no-install-recommends build-dep . &&
		apt-get -qy --no-install-recommends install lintian'
}

build()
{
	local root=$deb/build-$suite

	rm -rf "$root/src" "$deb/new-$suite" && mkdir -p "$root/src" "$deb/new-$suite" &&
	tar -c --exclude=./build --exclude="./$B" --exclude=./.git . | tar -x -C "$root/src" &&
	in_root "$root" bash /src/tests/deb/build.sh && cp "$root/src/build/deb/"*.deb "$deb/new-$suite/" &&
	rm -rf "$root/src"
}

# The same packages under a version from before them, to upgrade from
older()
{
	local d t=$deb/older.tmp

	rm -rf "$deb/old-$suite"
	mkdir "$deb/old-$suite"
	for d in "$deb/new-$suite"/*.deb; do
		case $d in *dbgsym*) continue ;; esac
		rm -rf "$t"
		dpkg-deb -R "$d" "$t" &&
		sed -i "s/$version/$version~before/" "$t/DEBIAN/control" &&
		dpkg-deb --root-owner-group -b "$t" "$deb/old-$suite" || return
	done
	rm -rf "$t"
}

try_root()
{
	root=$deb/try-$suite
	rm -rf "$root"
	cp -a "$deb/base-$suite" "$root" && cp -r "$deb/old-$suite" "$root/root/old" && cp -r "$deb/new-$suite" "$root/root/new" &&
	# what they depend on, so that no network is needed later
	in_root "$root" bash -c 'apt-get clean && apt-get -q update && apt-get -qy --download-only install /root/new/*.deb'
}

status_of() # FIELD: of the daemon's /proc/PID/status
{
	inside eval 'sed -n "s/^'"$1"':[[:space:]]*//p" /proc/$(systemctl show -P MainPID longhauld)/status'
}

installed()
{
	it "no configuration, no service: it waits for one" inside eval '
		systemctl is-enabled longhauld && ! systemctl is-active longhauld && ! systemctl is-failed longhauld'
	it "a user of its own" inside id longhaul
	it "the sample is a good configuration" inside longhauld --check-config --offline \
		-c /usr/share/doc/longhauld/examples/longhaul.conf
	it "the emulator and its manual page" inside eval 'longhaul-wanem --version && zcat /usr/share/man/man8/longhaul-wanem.8.gz | grep -q only-roce'
	it "completion of both" inside eval '
		for c in longhaul longhauld; do . /usr/share/bash-completion/completions/$c || exit; done
		complete -p longhaul && complete -p longhauld'
	it "the key belongs to the daemon" eval 'ports && locked_memory && configure &&
		[ "$(inside stat -c "%U %a" /etc/longhaul/link.key)" = "longhaul 600" ]'
	it "the configuration is good" inside longhauld --check-config
	it "it starts" inside systemctl enable --now longhauld
}

web() # PATH: what longhaul-metrics answers
{
	inside eval "exec 3<>/dev/tcp/127.0.0.1/9747 && printf 'GET $1 HTTP/1.0\r\n\r\n' >&3 && cat <&3"
}

metrics()
{
	local pid

	it "longhaul-metrics starts by its unit" inside systemctl restart longhaul-metrics
	pid=$(inside systemctl show -P MainPID longhaul-metrics)
	it "it is neither root nor longhaul, and has no capability" inside eval "
		uid=\$(sed -n 's/^Uid:[[:space:]]*\([0-9]*\).*/\1/p' /proc/$pid/status)
		[ \$uid -gt 0 ] && [ \$uid != \$(id -u longhaul) ] && grep -qx 'CapEff:[[:space:]]*0000000000000000' /proc/$pid/status &&
		grep -qx 'NoNewPrivs:[[:space:]]*1' /proc/$pid/status && grep -qx 'Seccomp:[[:space:]]*2' /proc/$pid/status"
	it "it has the daemon's numbers" eval 'web /metrics | grep -x "longhaul_up 1" && web /metrics | grep "^longhaul_daemon_uptime"'
	it "and the page" eval 'web / | grep "<title>longhaul</title>"'
	it "systemd-analyze security of it: 2.0 or better" inside systemd-analyze security --offline=true --threshold=20 \
		/lib/systemd/system/longhaul-metrics.service
}

running()
{
	it "systemd says that it is active" inside systemctl is-active longhauld
	it "longhaul sees both ports" inside eval 'longhaul -j stats | grep -q xdp-wan || longhaul -d stats | grep xdp-wan'
	it "it is no root" eval '[ "$(status_of Uid | cut -f1)" -gt 0 ] &&
		[ "$(status_of Uid | cut -f1)" = "$(inside id -u longhaul)" ]'
	# CAP_NET_ADMIN is 1 << 12, to give VLAN stripping back; CAP_BPF 1 << 39
	it "the name of its peer is looked up" await 20 inside eval 'longhaul -j peer | grep -q "\"address\":\"192.0.2.2\""'
	it "no capability but CAP_BPF and CAP_NET_ADMIN" eval '
		case $(status_of CapEff) in 0000008000000000 | 0000008000001000) ;; *) status_of CapEff; false ;; esac'
	it "none to hand on" eval '[ "$(status_of CapAmb)" = 0000000000000000 ]'
	it "system calls are filtered, no privilege can come back" eval '
		[ "$(status_of Seccomp)" = 2 ] && [ "$(status_of NoNewPrivs)" = 1 ]'
	it "what must outlive it is pinned" inside test -e /sys/fs/bpf/longhaul/lan0-wan0/held
	it "its group may ask, a stranger may not" inside eval '
		setpriv --reuid nobody --regid longhaul --clear-groups longhaul rule &&
		! setpriv --reuid nobody --regid nogroup --clear-groups longhaul rule'
	it "a reload of a file with errors fails, and nothing has changed" inside eval '
		cp -p /etc/longhaul/longhaul.conf /root/good.conf && echo "colour = blue" >>/etc/longhaul/longhaul.conf &&
		! systemctl reload longhauld && cp -p /root/good.conf /etc/longhaul/longhaul.conf &&
		systemctl is-active longhauld && longhaul rule | grep -q all'
	it "reload, by a daemon that is no root: keys are read again, too" inside eval '
		before=$(longhaul -j stats name reloads | grep -o "\"value\":[0-9]*") && systemctl reload longhauld &&
		[ "$(longhaul -j stats name reloads | grep -o "\"value\":[0-9]*")" != "$before" ]'
	metrics
	it "systemd-analyze security: 2.0 or better" inside systemd-analyze security --offline=true --threshold=20 /lib/systemd/system/longhauld.service
	it "restart" inside eval 'systemctl restart longhauld && systemctl is-active longhauld && longhaul rule'
}

# shellcheck disable=SC2034 # the texts that are given to eval read the variables
suite_check()
{
	local pid sum id

	made "$deb/base-$suite" base_root >"$deb/base-$suite.log" 2>&1 ||
		die "debootstrap of $suite from $MIRROR failed: $(tail -n 1 "$deb/base-$suite.log")"
	it "packages of what they are built with" made "$deb/build-$suite" build_root
	[ -n "${REUSE:-}" ] || it "built, lintian finds nothing" build
	it "an older version to upgrade from" older
	it "a root to try them in" try_root
	it "it boots, systemd is process 1" boot
	# what was downloaded above, then ours, as dpkg does it under apt
	begin
	it "install" inside eval '
		find /var/cache/apt/archives -name "*.deb" ! -name "longhaul*" -exec dpkg -i {} + && dpkg -i /root/old/*.deb'
	installed
	running
	end

	pid=$(inside systemctl show -P MainPID longhauld)
	sum=$(inside sha256sum /etc/longhaul/longhaul.conf)
	begin
	it "upgrade" inside eval 'dpkg -i /root/new/*.deb'
	it "the new version" inside eval "dpkg-query -W -f '\${Version}\n' longhauld longhaul-tools | grep -cx $version"
	it "it was started anew, the configuration is as it was" eval '
		[ "$(inside systemctl show -P MainPID longhauld)" != "$pid" ] &&
		[ "$(inside sha256sum /etc/longhaul/longhaul.conf)" = "$sum" ]'
	running
	it "debug symbols fit" eval 'id=$(readelf -n "$root/usr/sbin/longhauld" | sed -n "s/.*Build ID: //p") && [ "$id" ] &&
		[ -s "$root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ]'
	end

	begin
	it "remove: stopped, the configuration stays" inside eval '
		apt-get -qy remove longhauld longhaul-tools && ! pgrep -x longhauld && ! pgrep -x longhaul-metric && test -e /etc/longhaul/longhaul.conf &&
		! test -e /run/longhaul/longhaul.sock'
	it "purge" inside eval 'apt-get -qy purge "longhaul*"'
	it "nothing is left" inside eval '
		left=$(find / -xdev -not -path "/root/*" -not -path "/proc/*" -not -path "/var/cache/*" \
			-not -path "/var/lib/apt/*" -not -path "/var/log/*" -name "*longhaul*" 2>/dev/null
			ls -d /sys/fs/bpf/longhaul 2>/dev/null); echo "$left"; [ -z "$left" ]'
	end
	stop
	[ -n "${KEEP:-}" ] || rm -rf "$root"
}

guest() # what it says is in guest.tap; where there can be none that is said, and no failure
{
	local text="in a guest with Debian's kernel, AppArmor in force"

	B=$B tests/deb/guest.sh >"$deb/guest.tap" 2>&1
	case $? in
	77)
		number=$((number + 1))
		echo "ok $number - $suite: $text # SKIP $(cat "$deb/guest.tap")"
		;;
	0) it "$text" grep -c '^ok' "$deb/guest.tap" ;;
	*) it "$text" eval "grep -A8 '^not ok\|^Bail' $deb/guest.tap; false" ;;
	esac
}

[ "$(id -u)" = 0 ] || die "needs root: debootstrap and namespaces"
command -v debootstrap >/dev/null || die "needs debootstrap; apt-get install debootstrap"
version=$(dpkg-parsechangelog -S Version)
[ $# != 0 ] || set -- bookworm trixie
for suite in "$@"; do
	suite_check
done
if [ -e "$deb/new-bookworm" ]; then
	suite=bookworm
	guest
fi
echo "1..$number"
echo "deb: installs=$installs ok=$good"
[ $failed = 0 ]

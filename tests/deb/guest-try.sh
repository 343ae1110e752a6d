#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Inside the guest of guest.sh, as a service: longhauld on ports of its own, confined as the packages have it. TAP on
# the serial line, then the machine is turned off.
exec >/dev/ttyS0 2>&1
number=0

it() # TEXT COMMAND...
{
	local text=$1

	shift
	number=$((number + 1))
	if "$@" >/tmp/it.log 2>&1; then
		echo "ok $number - $text"
	else
		echo "not ok $number - $text"
		sed 's/^/# /' /tmp/it.log
		journalctl -qn 5 -o cat -u longhauld | sed 's/^/# /'
	fi
}

for m in llc stp bridge veth; do insmod /root/modules/$m.ko; done
ip link add br0 type bridge
ip link set br0 up
for p in lan wan; do
	ip link add ${p}0 type veth peer name ${p}1
	ip link set ${p}0 master br0 up
	ip link set ${p}1 up
done
ip addr add 192.0.2.1/30 dev br0
longhaul keygen /etc/longhaul/link.key
cat >/etc/longhaul/longhaul.conf <<-.
	[longhaul]
	lan = lan0
	wan = wan0
	pool = 32M
	[peer edge-b]
	address = 192.0.2.2
	key-file = /etc/longhaul/link.key
	[rule all]
	lan = 10.1.0.0/16
	wan = 10.2.0.0/16
	peer = edge-b
	policy = early
	prefetch = on
.
status()
{
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$(systemctl show -P MainPID longhauld)/status"
}

echo "# $(uname -r), $(cat /sys/kernel/security/lsm)"
it "AppArmor is there, the profile enforces" grep -x "longhauld (enforce)" /sys/kernel/security/apparmor/profiles
it "--check-config, by root" longhauld --check-config
it "--replay of a capture somewhere" longhauld --replay /root/test.pcap
it "it starts as the unit says, memory locked by LimitMEMLOCK" systemctl start longhauld
it "confined" eval 'grep "longhauld (enforce)" /proc/$(systemctl show -P MainPID longhauld)/attr/current'
it "CAP_BPF and CAP_NET_ADMIN alone" eval 'case $(status CapEff) in 0000008000000000 | 0000008000001000) ;; *) false ;; esac'
it "pinned" test -e /sys/fs/bpf/longhaul/lan0-wan0/held
it "the tool" longhaul rule
it "reload" eval 'systemctl reload longhauld && longhaul -j stats name reloads | grep "\"value\":1\b"'
it "restart" eval 'systemctl restart longhauld && systemctl is-active longhauld'
it "stop" eval 'systemctl stop longhauld && [ "$(systemctl show -P Result longhauld)" = success ]'
it "AppArmor had nothing to deny" eval '! journalctl -k | grep "apparmor=\"DENIED\".*longhauld"'
echo "1..$number"
systemctl poweroff --force --force

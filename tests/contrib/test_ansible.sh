#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# contrib/ansible: the role is run in a Debian with systemd, in namespaces of its own (tests/deb/machine.sh), by an Ansible in
# there: dry and real, on a new host and again; a change that a reload takes, one that needs a restart, and one that is an
# error. Root, debootstrap, a mirror of Debian and the packages of `make deb`; a minute with kept roots. What is
# missing is said, and nothing is tried then.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}

unable()
{
	echo "ok 1 - Ansible role # SKIP $1"
	exit 0
}

PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || unable "needs root"
command -v debootstrap >/dev/null || unable "no debootstrap here"
ls "$B"/deb/longhauld_*.deb >/dev/null 2>&1 || unable "no packages in $B/deb: make deb"
deb=$PWD/$B/deb
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
. tests/deb/machine.sh

ansible_root() # ROOT: with Ansible, and what the packages depend on, so that no network is needed later
{
	cp -a "$deb/base-$suite" "$1" && rm "$1/.complete" && mkdir "$1/root/debs" &&
	cp "$B"/deb/longhauld_*.deb "$B"/deb/longhaul-tools_*.deb "$1/root/debs/" && in_root "$1" bash -c '
		apt-get -q update && apt-get -qy --no-install-recommends install ansible-core python3-apt ethtool &&
		apt-get -qy --no-install-recommends --download-only install /root/debs/*.deb' && rm -r "$1/root/debs"
}

# The tree as it is here, as far as the playbook needs it
try_root()
{
	rm -rf "$root"
	cp -a "$deb/ansible-$suite" "$root" && mkdir -p "$root/root/build/deb" && cp -r contrib "$root/root/" &&
	cp "$B"/deb/longhauld_*.deb "$B"/deb/longhaul-tools_*.deb "$root/root/build/deb/" &&
	printf '[edge_a]\nedge ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n' >"$root/root/contrib/ansible/inventory"
}

play() # ARGUMENT...: what changed is in play.log
{
	inside eval "cd /root/contrib/ansible && ANSIBLE_NOCOLOR=1 ANSIBLE_LOCALHOST_WARNING=False ansible-playbook -i inventory -e @vars.yml $* site.yml" >"$deb/play.log" 2>&1
	local status=$?

	cat "$deb/play.log"
	return $status
}

changed() # NUMBER of tasks, and handlers
{
	grep -q "edge .* changed=$1 .*failed=0" "$deb/play.log"
}

pid_of()
{
	inside systemctl show -P MainPID longhauld
}

reloads()
{
	inside eval 'longhaul -j stats name reloads | grep -o "\"value\":[0-9]*"'
}

state() # all that the role may change
{
	inside eval 'cat /etc/longhaul/* 2>/dev/null; dpkg-query -W "longhaul*" 2>/dev/null; systemctl is-active longhauld'
	pid_of
}

vars() # LINE...: of [longhaul], beside its ports
{
	{
		echo "vault_longhaul_link_key: '$key'"
		echo "longhaul_config: {lan: lan0, wan: wan0, pool: 32M$(printf ', %s' "$@")}"
	} >"$root/root/contrib/ansible/vars.yml"
}

it "a Debian with systemd" made "$deb/base-$suite" base_root || exit 1
it "Ansible in one" made "$deb/ansible-$suite" ansible_root || exit 1
root=$deb/try-ansible-$suite
it "a root to try it in" try_root || exit 1
it "it boots" boot || exit 1
ports >/dev/null
locked_memory
rm -f "$deb/ansible.key"
"$B/longhaul" keygen "$deb/ansible.key" >/dev/null && key=$(cat "$deb/ansible.key") && rm "$deb/ansible.key" || exit 1

vars
it "a dry run on a new host changes nothing" eval 'before=$(state) && play --check && [ "$(state)" = "$before" ]'
it "the first run installs, configures and starts it" eval 'play && inside systemctl is-active longhauld && inside systemctl is-enabled longhauld'
it "the configuration is what the variables say, the key belongs to the daemon" eval '
	inside longhaul -j rule | grep -q "\"policy\":\"honest\"" && inside longhaul -j peer | grep -q 192.0.2.2 &&
	[ "$(inside stat -c "%U %a" /etc/longhaul/link.key)" = "longhaul 600" ]'
it "the second run changes nothing" eval 'before=$(state) && play && changed 0 && [ "$(state)" = "$before" ]'

vars 'idle-timeout: 9min'
it "a dry run with a change tells it, and makes none" eval 'before=$(state) && play --check --diff && changed "[12]" && grep -q "^+idle-timeout = 9min" "$deb/play.log" &&
	[ "$(state)" = "$before" ]'
it "a change that a reload takes is reloaded" eval 'before=$(reloads) pid=$(pid_of) && play && [ "$(reloads)" != "$before" ] && [ "$(pid_of)" = "$pid" ] &&
	inside grep -x "idle-timeout = 9min" /etc/longhaul/longhaul.conf'
vars 'idle-timeout: 9min' 'max-connections: 4096'
it "a change that needs a restart is restarted" eval 'pid=$(pid_of) && play && [ "$(pid_of)" != "$pid" ] && inside systemctl is-active longhauld'
key=$key.
vars 'idle-timeout: 9min' 'max-connections: 4096'
it "what is no key is refused, and the old one stays" eval 'before=$(state) && ! play && [ "$(state)" = "$before" ]'
key=${key%.}
vars 'colour: blue'
it "a file with errors is refused with the words of longhauld, and nothing has changed" eval '
	before=$(state) && ! play && grep -q "unknown key .*colour" "$deb/play.log" && [ "$(state)" = "$before" ]'
vars 'listen: 198.51.100.7'
it "and so is one that does not fit this host" eval '
	before=$(state) && ! play && grep -q "198.51.100.7" "$deb/play.log" && [ "$(state)" = "$before" ]'
stop
[ -n "${KEEP:-}" ] || rm -rf "$root"
echo "1..$number"
[ $failed = 0 ]

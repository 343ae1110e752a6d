#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# README.md is true for a newcomer: each of its commands is run here as it stands, or is named here with the test that
# runs it; a command that is neither is a failure. The section "Two sites" is followed at two edges in network
# namespaces: bridge, key, configuration, check, status; then a transfer is held.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

# The addresses of the text
addr() # SITE, 1 host or 2 appliance [FAMILY]
{
	local n=1

	[ "$1" = a ] || n=2
	if [ "${3:-$FAMILY}" = 6 ]; then
		echo "fd77::$n:$2"
	elif [ "$2" = 1 ]; then
		echo "10.$n.0.1"
	else
		echo "192.0.2.$n"
	fi
}

# Lines of code blocks that are commands, without comments and sudo: SECTION<tab>COMMAND; then the commands in prose
commands()
{
	awk '/^## / { section = substr($0, 4) }
		/^(    |        )[^ ]/ {
			sub(/^ +/, ""); sub(/ +#.*/, "")
			if (/^\[/)
				config = 1
			if (!config)
				print section "\t" $0
			next
		}
		!/^ *$/ { config = 0 }' README.md
	grep -oE '`(sudo )?(make|man|longhaul|longhauld) [^`]*`' README.md | tr -d '`' | sed 's/^/prose\t/'
}

# The configuration of edge A; that of edge B is told in words
config_of() # SITE
{
	awk '/^        \[longhaul\]/ { on = 1 } /^ *[^ ]/ && !/^        / { on = 0 } on { sub(/^        /, ""); print }' README.md |
		if [ "$1" = a ]; then
			cat
		else
			sed -e 's/edge-b/edge-a/; s/192\.0\.2\.2/192.0.2.1/' \
				-e '/^\[rule/,$ { s/^lan = /near = /; s/^wan = /lan = /; s/^near = /wan = / }'
		fi | sed -e "s|/etc/longhaul/|$LAB/etc/|" -e "/^\[longhaul\]/a socket = $LAB/gw-$1.sock\npool = 96M${SANITIZED:+\nsandbox = off}"
}

as_written() # SITE COMMAND...: at that edge, its own programs and files in place of the installed ones
{
	local s=$1

	shift
	in_ns "g$s" env PATH="$LAB/bin-$s:$PATH" bash -c "${*//\/etc\/longhaul\//$LAB/etc/}"
}

healthy() # SITE COMMAND: a machine that is busy with something else may make a daemon late, which is true
{
	as_written "$@" ||
		{ [ $? = 1 ] && jq_true "$1" status 'all(.state == "ok" or .name == "daemon-late" or .name == "peer-late")'; }
}

edges() # programs by their names, as installed there
{
	local s

	mkdir "$LAB/etc" || return
	for s in a b; do
		mkdir "$LAB/bin-$s" || return
		printf '#!/bin/sh\nexec "%s" -s "%s" "$@"\n' "$PWD/$B/longhaul" "$LAB/gw-$s.sock" >"$LAB/bin-$s/longhaul"
		printf '#!/bin/sh\nexec "%s" -c "%s" "$@"\n' "$PWD/$B/longhauld" "$LAB/gw-$s.conf" >"$LAB/bin-$s/longhauld"
		chmod +x "$LAB/bin-$s"/*
		config_of $s >"$LAB/gw-$s.conf"
		ip -n $P-g$s link del br0 || return
	done
	grep -q '^policy = ' "$LAB/gw-a.conf"
}

bridged() # COMMAND: at both edges, with the address of each
{
	as_written a "$1" && as_written b "${1/192.0.2.1\/30/192.0.2.2\/30}"
}

start() # what systemd does at both
{
	await 30 carrier && gateway_start a && gateway_start b && await 60 peers_up
}

cloned() # COMMAND...: with this tree for <this repository>
{
	local command=$1

	[ -e .git ] && command -v git || { echo "no git here" >&2; return; }
	command=${command/<this repository>/\"$PWD\"}
	(cd "$LAB" && eval "$command" && [ -e README.md ] && make -n demo check product install)
}

# The demo of two transfers: its lines, and a bar for each side of them
demo()
{
	SHORT=yes BARS=ascii make B="$B" demo >"$LAB/demo.out" &&
	[ "$(grep -c '^demo: op=.* rtt-ms=50 .* intact=yes$' "$LAB/demo.out")" = 2 ] &&
	[ "$(grep -cE '(bare|longhaul) +[0-9.]+  #+\.*' "$LAB/demo.out")" = 4 ] &&
	[[ $(tail -n 1 "$LAB/demo.out") == demo:* ]]
}

installs()
{
	make B="$B" DESTDIR="$LAB/root" install && "$LAB/root/usr/sbin/longhauld" --version &&
	[ -e "$LAB/root/etc/longhaul/longhaul.conf.sample" ] && make B="$B" DESTDIR="$LAB/root" uninstall &&
	[ ! -e "$LAB/root/usr/sbin/longhauld" ]
}

replayed()
{
	eval "${1/#build\//$B/}" | grep -q LQPN
}

known() # that make has the target, and that the test has it
{
	make B="$B" -n "$1" && [ -z "${2:-}" ] || grep -qE -- "$3" "$2"
}

try() # SECTION COMMAND
{
	local command=${2#sudo }

	case $command in
	'apt install git make') command -v apt-get && apt-get -s install git make ;;
	'git clone '*) cloned "$command" ;;
	'make demo') demo ;;
	'make check') known check ;; # it runs this
	build/longhauld*) replayed "$command" ;;
	'make deb') known deb tests/deb/check.sh 'tests/deb/build.sh' ;;
	'apt install ./build/deb/'*) grep -q 'install.*/root/new/' tests/deb/check.sh ;;
	'make' | 'make install' | 'make uninstall') installs ;;
	'make deps') make deps ;;
	'make bench-wan') known bench-wan ;;
	'ip '*) bridged "$command" ;;
	'longhaul keygen '*) as_written a "$command" ;;
	'longhauld --check-config') as_written a "$command" && as_written b "$command" ;;
	'systemctl enable --now longhauld') start && grep -qF "$command" tests/deb/check.sh ;;
	'longhaul status') await 60 healthy a "$command" && await 60 healthy b "$command" ;;
	'longhaul plan') as_written a "$command --rate 10G --rtt 50ms" ;;
	'longhaul doctor') as_written a "$command" | grep -q '^ok *peers .* is up' ;;
	'longhaul qp show') as_written a "$command" ;;
	*)
		echo "nobody tests '$command' of README.md, section $1" >&2
		return 1
		;;
	esac
}

pages() # what README.md names is there
{
	local f

	for f in $(grep -oE '\]\([^)#]+' README.md | sed 's/^](//'); do
		[ -e "$f" ] || ! echo "no $f" >&2 || return
	done
	[ "$(wc -l <README.md)" -le 180 ]
}

held_by_rule()
{
	jq_true a qp 'any(.state == "held" and .rule == "all" and .policy == "honest")'
}

it "README.md has at most 180 lines, and what it links to is there" pages
lab_up
wan_start
edges || die "no configuration in README.md"
declare -A done_already
while IFS=$'\t' read -r section command; do
	[ -z "${done_already[${command#sudo }]:-}" ] || continue
	done_already[${command#sudo }]=yes
	it "$section: ${command#sudo }" try "$section" "$command"
done < <(commands)
it "both edges serve what the text says: a transfer is held" \
	eval 'transfer_until held_by_rule readme a --op write --size 64K --mtu 1024 --depth 16 --rate-mbps 100 && intact readme'
it "both stop with nothing left" pair_stop
wan_stop
echo "1..$lab_number"
[ $tests_failed = 0 ]

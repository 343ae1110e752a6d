#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a running daemon takes over of a changed configuration, under transfers that go on; what it refuses, and that
# the command reports it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

reload() # SITE: as systemctl reload does it
{
	in_ns "g$1" "$B/longhauld" --reload -c "$LAB/gw-$1.conf"
}

# refused SITE TEXT: a reload fails, by both ways, and the one line that it is told with has the text
refused()
{
	! reload "$1" 2>"$LAB/reload.err" && [ "$(wc -l <"$LAB/reload.err")" = 1 ] && grep -q -- "$2" "$LAB/reload.err" &&
	! cli "$1" reload 2>"$LAB/reload.err" && [ "$(wc -l <"$LAB/reload.err")" = 1 ] && grep -q -- "$2" "$LAB/reload.err"
}

set_key() # SITE KEY VALUE: in [longhaul]
{
	sed -i "/^\[longhaul\]/,/^\[[pr]/{/^$2 = /d}; s|^\[longhaul\]\$|&\n$2 = $3|" "$LAB/gw-$1.conf"
}

flows() # the transfer goes on
{
	more flow-req "${1:-100}"
}

lab_up
wan_start --delay-ms 5 --rate-mbps 800
pair_start -g "wan-rate = 500M"
transfer_begin flow a --op write --rate-mbps 10 --seconds 600 --size 4K --mtu 4096 --depth 64
await 60 jq_true a qp 'any(.state == "held")'

## Limits

pace_is() # BITS
{
	jq_true a peer 'all(."pace-bps" == $n)' --argjson n "$1"
}
rate()
{
	pace_is 500000000 && set_key a wan-rate 100M && reload a && pace_is 100000000 && flows 20 &&
	set_key a wan-rate "auto up to 600M" && cli a reload && await 30 jq_true a peer 'all(.pace != "fixed" and ."pace-bps" <= 600000000)' &&
	flows && set_key a wan-rate 0 && reload a && jq_true a peer 'all(.pace == "fixed")' && flows
}
it "wan-rate: another one, auto, none, while a transfer goes on" rate

others()
{
	local k

	for k in "peer-timeout = 20s" "responder-timeout = 20s" "rnr-timeout = 20s" "idle-timeout = 20s" \
		"wan-burst = 1M" "node = other-name" "log-level = debug" "drain-timeout = 20s"; do
		set_key a "${k% = *}" "${k#* = }"
		reload a || return
	done
	await 30 jq_true b peer 'all(.node == "other-name")' && flows
}
it "timeouts, burst, log level; the peer is told another node name" others

## Keys and peers

both_take()
{
	reload a && reload b
}

set_keys() # SITE FILES: the peer's
{
	sed -i "s|^key-file = .*|key-file = $2|" "$LAB/gw-$1.conf"
}

key_in_use() # FILE
{
	jq_true a peer 'all(.state == "up" and ."key-file" == $k)' --arg k "$1" &&
	jq_true b peer 'all(.state == "up" and ."key-file" == $k)' --arg k "$1"
}

downs() # so far
{
	cli a -j peer show | jq '.[0].downs' && cli b -j peer show | jq '.[0].downs'
}

never_down() # since $before
{
	[ "$(downs)" = "$before" ] && jq_true a peer 'all(.restarts == 0)' && jq_true b peer 'all(.restarts == 0)'
}

key=$LAB/key

roll() # FILE: the three steps of longhaul.conf(5), with a transfer going on
{
	local s

	"$B/longhaul" keygen "$1" && await 30 key_in_use "$key" &&
	for s in a b; do set_keys $s "$key, $1"; reload $s && flows 20 || return; done &&
	for s in a b; do set_keys $s "$1, $key"; reload $s && flows 20 || return; done &&
	await 30 key_in_use "$1" &&
	for s in a b; do set_keys $s "$1"; reload $s && flows 20 || return; done &&
	await 30 key_in_use "$1" && key=$1
}

rolled() # a peer is down, too, when a busy machine lets it not run for 0.9 s: then with another key
{
	local tries=3 before

	while :; do
		before=$(downs)
		roll "$LAB/new.$tries" || return
		never_down && break
		[ $((tries -= 1)) != 0 ] && log_has a 'nothing heard from it for' || return
	done
	flows
}
it "a key is rolled: the peers are not down for a moment" rolled

bad_key()
{
	local before

	before=$(downs)
	set_keys a "$key, $LAB/nothing"
	! reload a 2>"$LAB/reload.err" && grep -q "$LAB/nothing: cannot open the key file" "$LAB/reload.err" || return
	set_keys a "$key"
	reload a && await 30 key_in_use "$key" && never_down
}
it "a key that is not there is refused" bad_key

third_edge() # another peer, which nobody is, and a rule for it, in a file of their own
{
	mkdir "$LAB/conf.d" && set_key a include "conf.d/*.conf" && reload a && jq_true a peer 'length == 1' || return
	printf '[peer edge-c]\naddress = 10.77.3.2\nkey-file = %s\n[rule third]\nlan = 10.97.1.0/24\nwan = 10.97.3.0/24\n' \
		"$LAB/key" >"$LAB/conf.d/edge-c.conf"
	printf 'peer = edge-c\npolicy = honest\n' >>"$LAB/conf.d/edge-c.conf"
	reload a && jq_true a peer 'length == 2 and any(.name == "edge-c" and .state == "down")' &&
	jq_true a rule 'any(.name == "third" and .peer == "edge-c")' && flows 20 &&
	await 30 jq_true a status 'any(.name == "peer-unreached" and .peer == "edge-c" and .state == "raised")'
}
it "another peer is added, by a file in conf.d" third_edge

bad_include()
{
	cp "$LAB/conf.d/edge-c.conf" "$LAB/edge-c.good" && echo "colour = blue" >>"$LAB/conf.d/edge-c.conf" &&
	! cli a reload 2>"$LAB/reload.err" && grep -q "conf.d/edge-c.conf:9: unknown key 'colour'" "$LAB/reload.err" &&
	cp "$LAB/edge-c.good" "$LAB/conf.d/edge-c.conf"
}
it "errors in that file are said of it" bad_include

without_third()
{
	local before

	before=$(downs)
	rm "$LAB/conf.d/edge-c.conf"
	reload a && await 30 jq_true a peer 'length == 1 and all(.name == "edge-b" and .state == "up")' &&
	jq_true a rule 'length == 1' && await 30 jq_true a status 'all(.peer != "edge-c")' &&
	log_has a "peer edge-c is no peer any more" && never_down && flows 20
}
it "and removed again" without_third

renamed()
{
	local before

	before=$(downs)
	sed -i 's/edge-b/far-edge/' "$LAB/gw-a.conf"
	reload a && jq_true a peer 'length == 1 and all(.name == "far-edge" and .state == "up")' &&
	jq_true a qp 'any(.state == "held" and .peer == "far-edge")' && never_down && flows 20
}
it "a peer gets another name: what is held stays held" renamed

moved() # its address changes: the same daemon behind another one
{
	ip -n $P-gb addr add 10.77.2.9/16 dev br0 && ip -n $P-ga neigh replace 10.77.2.9 lladdr "$(mac b 2)" dev br0 &&
	sed -i 's/^address = 10.77.2.2$/address = 10.77.2.9/' "$LAB/gw-a.conf" && reload a &&
	jq_true a peer 'all(.address == "10.77.2.9")' || return
	# it answers from its old one, and is a stranger there
	await 60 jq_true a peer 'all(.state == "down")' || return
	sed -i 's/^address = 10.77.2.9$/address = 10.77.2.2/' "$LAB/gw-a.conf"
	reload a && await 60 peers_up && await 60 jq_true a qp 'any(.state == "held")' && flows
}
it "a peer gets another address: it is looked for there" moved

## What is refused

unchanged() # whatever is refused, nothing has changed
{
	jq_true a rule 'length == 1 and all(.name == "hosts" and .policy == "early")' && flows 20
}

by_restart()
{
	local k

	cp "$LAB/gw-a.conf" "$LAB/good.conf"
	for k in "pool = 64M" "max-connections = 100" "mode = generic" "max-path-mtu = 1024" "listen = 10.77.1.2" \
		"port = 4999" "sandbox = $([ -z "${SANITIZED:-}" ] && echo off || echo on)" "lan = lan9"; do
		set_key a "${k% = *}" "${k#* = }"
		refused a "'${k% = *}' differs, which only a restart can change" || return
		cp "$LAB/good.conf" "$LAB/gw-a.conf"
	done
	unchanged
}
it "what only a restart can change is refused, and named" by_restart

bad_file()
{
	local status=0

	echo "colour = blue" >>"$LAB/gw-a.conf"
	! reload a 2>"$LAB/reload.err" && grep -q "unknown key 'colour'" "$LAB/reload.err" &&
	! cli a reload 2>"$LAB/reload.err" && grep -q "refused, the old.*unknown key 'colour'" "$LAB/reload.err" &&
	log_has a "unknown key 'colour'" && unchanged || status=1
	cp "$LAB/good.conf" "$LAB/gw-a.conf"
	reload a && return $status
}
it "a file with errors is refused, with its first error; then it is mended and taken" bad_file

no_daemon()
{
	! reload_of_nobody 2>"$LAB/reload.err" && [ "$(wc -l <"$LAB/reload.err")" = 1 ]
}
reload_of_nobody()
{
	sed "s|^socket = .*|socket = $LAB/nobody.sock|" "$LAB/gw-a.conf" >"$LAB/nobody.conf"
	in_ns ga "$B/longhauld" --reload -c "$LAB/nobody.conf"
}
it "without a daemon it fails, in one line" no_daemon

enough flow-req
it "the transfer that went on all the while is intact" eval 'transfer_end flow && intact flow'
it "both stop with nothing left" pair_stop
echo "1..$lab_number"
exit $((tests_failed > 0))

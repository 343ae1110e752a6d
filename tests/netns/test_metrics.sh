#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# longhaul-metrics: both formats, by promtool; scraped by Debian's prometheus, with the alert rules and what the
# dashboard asks; the page in a headless Chromium, whose rates are the tool's; bad clients. What a machine lacks is
# skipped and named.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/netns/lib.sh

BASE=http://127.0.0.1:9747
CHART=/usr/share/javascript/chart.js/chart.min.js
SHOTS=$B/check

get() # PATH [CURL-ARGUMENT...]
{
	local path=$1

	shift
	in_ns ga curl -sf --max-time 20 "$@" "$BASE$path"
}

promtool_clean()
{
	get /metrics >"$LAB/metrics.txt" && promtool check metrics <"$LAB/metrics.txt" >"$LAB/promtool.out" 2>&1 &&
	[ ! -s "$LAB/promtool.out" ]
}

text_format() # names by the rules: samples of a name together, counters end in _total, no name without help
{
	get /metrics >"$LAB/metrics.txt" &&
	grep -q '^longhaul_up 1$' "$LAB/metrics.txt" && grep -q '^longhaul_engine_rx_lan_total [1-9]' "$LAB/metrics.txt" &&
	grep -q '^longhaul_port_rx_bytes_total{port="wan"} ' "$LAB/metrics.txt" &&
	grep -q '^longhaul_peer_up{peer="edge-b"} 1$' "$LAB/metrics.txt" &&
	grep -q '^longhaul_alarm{alarm="peer-down",level="critical",peer="edge-b"} 0$' "$LAB/metrics.txt" &&
	awk '/^# TYPE/ { if (type[$3]++) bad = 1; now = $3; kind = $4; next } /^#/ { next }
		{ split($1, n, "{"); if (n[1] != now || (kind == "counter") != (n[1] ~ /_total$/)) bad = 1 }
		END { exit bad }' "$LAB/metrics.txt"
}

open_format()
{
	get /metrics -D "$LAB/head" -H 'Accept: application/openmetrics-text; version=1.0.0' >"$LAB/open.txt" &&
	grep -qi 'content-type: application/openmetrics-text' "$LAB/head" &&
	[ "$(tail -n 1 "$LAB/open.txt")" = "# EOF" ] && grep -q '^# TYPE longhaul_engine_rx_lan counter$' "$LAB/open.txt" &&
	grep -q '^# UNIT longhaul_daemon_uptime_seconds seconds$' "$LAB/open.txt"
}

each_format()
{
	in_ns ga curl -sf --max-time 20 http://127.0.0.1:9748/metrics |
		grep -q '^longhaul_connection_out_bytes_total{lan_ip="10.77.1.1",lqpn="0x'
}

query() # PROMQL JQ-FILTER
{
	in_ns ga curl -sfG --max-time 20 --data-urlencode "query=$1" http://127.0.0.1:9790/api/v1/query |
		jq -e ".data.result | $2" >/dev/null
}

prometheus_start()
{
	cat >"$LAB/prometheus.yml" <<-END
	global: {scrape_interval: 1s, evaluation_interval: 1s}
	rule_files: ['$PWD/conf/longhaul.rules.yml']
	scrape_configs:
	  - job_name: longhaul
	    static_configs: [{targets: ['127.0.0.1:9747']}]
	END
	spawn prometheus ga prometheus --config.file="$LAB/prometheus.yml" --storage.tsdb.path="$LAB/tsdb" \
		--web.listen-address=127.0.0.1:9790 --log.level=warn
	await 60 query 'longhaul_up' 'any(.value[1] == "1")'
}

rate_scraped() # while a transfer runs: Prometheus sees it
{
	await 60 query 'rate(longhaul_port_tx_bytes_total{port="wan"}[5s])' 'any(.value[1] | tonumber > 1e6)'
}

dashboard_answers() # each expression of the dashboard is understood
{
	local expr

	while read -r expr; do
		expr=${expr//\$instance/.*} expr=${expr//\$__rate_interval/30s}
		query "$expr" 'type == "array"' || ! echo "# not answered: $expr" || return
	done < <(jq -r '.panels[].targets[].expr' conf/longhaul-dashboard.json)
	query 'longhaul_memory_custody_limit_bytes' 'length == 1'
}

alert_fires() # the daemon goes: both verdicts arrive
{
	gateway_stop b && await 90 query 'ALERTS{alertname="LonghaulCritical",alertstate="firing"}' \
		'any(.metric.alarm == "peer-down" and .metric.peer == "edge-b")' &&
	gateway_start b && await 30 peers_up
}

# Chromium's clock runs ahead while nothing is being loaded, so the page asks as often in these 300 s of its own as in
# 300 of ours; rates are by the clock of longhaul-metrics, which does not.
page() # ARGUMENT...
{
	in_ns ga timeout 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$LAB/chromium" --virtual-time-budget=300000 --window-size=1300,1300 "$@" "$BASE/" \
		2>"$LAB/chromium.err"
}

shot() # a picture of it, kept
{
	mkdir -p "$SHOTS" && page --screenshot="$PWD/$SHOTS/status-page.png" && [ -s "$SHOTS/status-page.png" ]
}

several_looks()
{
	[ "$(grep -c out-rate "$LAB/watch.out")" -ge 3 ]
}

# The page shows the rate of the queue pair that the tool shows, within 10 % at some moment; both are means of about
# a second, on a machine that is busy
same_rate()
{
	local cli page

	for _ in {1..6}; do
		spawn watch ga "$B/longhaul" -s "$LAB/gw-a.sock" -j -w qp lqpn "$((${qpn[a]}))"
		page --dump-dom >"$LAB/dom.html" || return
		await 30 several_looks
		signal watch TERM
		reap watch
		page=$(grep -o "data-lqpn=\"${qpn[a]}\" data-out-bits=\"[0-9]*\"" "$LAB/dom.html" | grep -o '[0-9]*"$' | tr -d '"')
		cli=$(jq -s 'flatten | map(."out-rate" // empty) | sort | .[length / 2 | floor] // 0' "$LAB/watch.out")
		echo "# the page says ${page:-nothing}, the tool $cli bit/s"
		[ -n "$page" ] && [ "$cli" -gt 1000000 ] &&
			[ $((page * 10)) -ge $((cli * 9)) ] && [ $((page * 10)) -le $((cli * 11)) ] && return
	done
	return 1
}

page_looks_whole() # verdict, figures, drawn charts, connections
{
	page --dump-dom >"$LAB/dom.html" && grep -qE 'id="verdict" class="(ok|warning)">(OK|WARNING): longhauld is running' "$LAB/dom.html" &&
	grep -qE 'id="rtt">[0-9.]+ ms' "$LAB/dom.html" && grep -q 'data-lqpn="0x' "$LAB/dom.html" &&
	[ "$(grep -o 'canvas id="chart-[a-z]*"[^>]*style="display: block' "$LAB/dom.html" | wc -l)" = 4 ]
}

# The transfer has just begun, and an alarm of what was before may not be over yet.
page_whole()
{
	await 120 page_looks_whole && return
	grep -oE 'id="(verdict|rtt)"[^<]*<|data-lqpn="[^"]*"|canvas id="chart-[a-z]*"[^>]*' "$LAB/dom.html" | sed 's/^/# the page: /'
	return 1
}

page_served()
{
	get / | grep -q '<title>longhaul</title>' && get /status.js | grep -q data.json && get /status.css >/dev/null &&
	get /data.json | jq -e '.connections | length > 0' >/dev/null && ! get /../../../etc/passwd &&
	! get /main.c && [ "$(get /nothing -o /dev/null -w '%{http_code}' || true)" = 404 ] &&
	! in_ns ga curl -sf -X POST -d x=1 $BASE/metrics
}

idle_scrapers() # 1,000 that say nothing: whoever has a question is answered, and so is the operator
{
	spawn idle ga perl -MIO::Socket::INET -e '$| = 1;
		for (1 .. 1000) {
			my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:9747", Timeout => 10) or last;
			push @s, $s;
		}
		print "holding ", scalar(@s), "\n"; sleep 1 while 1'
	await 60 grep -q "holding 1000" "$LAB/idle.out" || return
	cli a status >/dev/null
	[ $? -le 1 ] && get /metrics >/dev/null
	local rc=$?
	signal idle KILL
	reap idle
	return $rc
}

is_down()
{
	get /metrics | grep -q '^longhaul_up 0$'
}

without_daemon()
{
	gateway_stop a && await 30 is_down && get /metrics >"$LAB/none.txt" &&
	[ "$(grep -vc '^#' "$LAB/none.txt")" = 2 ] && get /data.json | jq -e '.error | length > 10' >/dev/null
}

amid() # NAME COMMAND...: while a transfer from a runs
{
	local name=$1 bad=0

	shift
	next_qpns
	transfer_begin "$name" a --op write --mtu 4096 --rate-mbps 300 --seconds 600
	await 30 jq_true a qp 'any(.lqpn == $q and .state == "held")' --argjson q $((${qpn[a]})) || bad=1
	"$@" || bad=1
	running "$name-req" && enough "$name-req"
	transfer_end "$name" && [ $bad = 0 ]
}

needs() # PROGRAM-OR-FILE PACKAGE NAME COMMAND...
{
	local what=$1 package=$2 name=$3

	shift 3
	if [ -e "$what" ] || command -v "$what" >/dev/null; then
		it "$name" "$@"
	else
		it "$name # SKIP needs $package" true
	fi
}

says() # STATUS PATTERN COMMAND...
{
	local want=$1 pattern=$2

	shift 2
	"$@" >"$LAB/says.out" 2>"$LAB/says.err"
	[ $? = "$want" ] && [ "$(wc -l <"$LAB/says.err")" = 1 ] && grep -q -- "$pattern" "$LAB/says.err"
}

command -v curl >/dev/null || { echo "ok 1 - metrics # SKIP needs curl"; exit 0; }
lab_up
in_ns ga ip link set lo up
wan_start --delay-ms 5 --rate-mbps 120
# the host goes at the rate of the link and sends nothing twice
pair_start -g "wan-rate = 100M" -r "policy = honest"
spawn metrics ga "$B/longhaul-metrics" -s "$LAB/gw-a.sock" -p cli/metrics/page -c $CHART
spawn metrics-each ga "$B/longhaul-metrics" -s "$LAB/gw-a.sock" -p cli/metrics/page -l 127.0.0.1:9748 -e
await 30 get /metrics
transfer one a --op write --count 300 --mtu 4096
it "text format" text_format
it "OpenMetrics to who asks for it" open_format
it "-e: metrics of each connection" await 30 each_format
it "it has no capability left" eval 'grep -q "^CapEff:[[:space:]]*0*$" /proc/${pid[metrics]}/status'
it "the page's files, and nothing else" page_served
needs promtool prometheus "promtool check metrics is silent" promtool_clean
needs promtool prometheus "promtool check rules" promtool check rules conf/longhaul.rules.yml
if command -v prometheus >/dev/null; then
	it "prometheus scrapes" prometheus_start
	it "prometheus sees a transfer's rate" amid scraped rate_scraped
	it "the dashboard's expressions are answered" dashboard_answers
	it "an alert fires for the daemon's alarm" alert_fires
	signal prometheus TERM && reap prometheus
else
	it "prometheus # SKIP needs prometheus" true
fi
if command -v chromium >/dev/null && [ -e $CHART ]; then
	it "the page in Chromium: verdict, figures, charts, connections" amid page page_whole
	it "the page's rate is the tool's within 10 %" amid rate same_rate
	it "a picture of the page" amid shot shot
else
	it "the page in Chromium # SKIP needs chromium and libjs-chart.js" true
fi
it "1,000 idle scrapers lock nobody out" idle_scrapers
it "without longhauld: up is 0" without_daemon
it "a wrong address: one line" says 1 "takes ADDRESS:PORT" "$B/longhaul-metrics" -l nowhere
it "an address that is taken: one line" says 1 "cannot listen" in_ns ga "$B/longhaul-metrics"
exit $((tests_failed > 0))

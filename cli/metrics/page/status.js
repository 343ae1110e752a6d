// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Asks for /data.json each second. Rates are growth over the time between two answers, by the
// clock of the machine that gave them: a page that was asleep shows the mean of its sleep.
"use strict";

const SECONDS = 120, ROWS = 100;
const charts = {};
let before = null;

const byId = (id) => document.getElementById(id);
const put = (id, text) => { byId(id).textContent = text; };

function scaled(v, step, units) {
	let i = 0;

	while (v >= step && i < units.length - 1) {
		v /= step;
		i++;
	}
	return (i && v < 100 ? v.toFixed(1) : v.toFixed(0)) + units[i];
}

const bits = (v) => scaled(v, 1000, [" bit/s", " kbit/s", " Mbit/s", " Gbit/s", " Tbit/s"]);
const bytes = (v) => scaled(v, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const hex = (v) => v === null || v === undefined ? "?" : "0x" + v.toString(16);

function stat(data, group, name) {
	const s = data.stats.find((x) => x.group === group && x.name === name);

	return s ? s.total ?? s.value : 0;
}

function chart(id, names, colours) {
	if (typeof Chart === "undefined")
		return null;
	return new Chart(byId(id), {
		type: "line",
		data: {
			labels: Array.from({ length: SECONDS }, (_, i) => i - SECONDS + 1),
			datasets: names.map((label, i) => ({
				label, data: Array(SECONDS).fill(null), borderColor: colours[i],
				borderWidth: 1.6, pointRadius: 0, tension: 0.2,
			})),
		},
		options: {
			animation: false, maintainAspectRatio: false,
			plugins: { legend: { display: names.length > 1, labels: { boxWidth: 12 } } },
			scales: { y: { beginAtZero: true }, x: { ticks: { maxTicksLimit: 7 } } },
		},
	});
}

function add(c, values) {
	if (!c)
		return;
	values.forEach((v, i) => {
		c.data.datasets[i].data.push(v);
		c.data.datasets[i].data.shift();
	});
	c.update();
}

// Growth per second of what @of gives, 0 the first time and when a daemon began anew.
function rate(data, of) {
	const s = before ? (data["time-ms"] - before["time-ms"]) / 1000 : 0;
	const d = before ? of(data) - of(before) : 0;

	return s > 0 && d > 0 ? d / s : 0;
}

function showVerdict(data) {
	const raised = data.alarms.filter((a) => a.state === "raised");
	const d = data.daemon, missing = d["peers-up"] < d.peers;
	const level = raised.some((a) => a.level === "critical") ? "critical" : raised.length || missing ? "warning" : "ok";
	const word = raised.length || d.state !== "starting" ? level : "starting";

	byId("verdict").className = level;
	put("verdict", `${word.toUpperCase()}: longhauld is ${d.state}, ${d["peers-up"]} of ${d.peers} ` +
		`peer${d.peers === 1 ? "" : "s"} up, ` +
		`${d.rules} rule${d.rules === 1 ? "" : "s"}`);
	byId("alarms").replaceChildren(...raised.map((a) => {
		const li = document.createElement("li"), mend = document.createElement("small");

		li.className = a.level;
		li.textContent = `${a.name}: ${a.reason}`;
		mend.textContent = a.mend;
		li.append(mend);
		return li;
	}));
}

function showFigures(data) {
	const out = rate(data, (x) => stat(x, "port-wan", "tx-bytes")) * 8;
	const inwards = rate(data, (x) => stat(x, "port-wan", "rx-bytes")) * 8;
	const sent = rate(data, (x) => stat(x, "engine", "tx-wan"));
	const again = rate(data, (x) => stat(x, "engine", "retx-wan"));
	const loss = sent > 0 ? 100 * again / sent : 0;
	const custody = stat(data, "memory", "custody-used");
	const trips = data.peers.map((p) => p["srtt-us"]).filter((v) => v > 0);
	const rtt = trips.length ? Math.max(...trips) / 1000 : null;

	put("out-rate", bits(out));
	put("in-rate", bits(inwards));
	put("custody", bytes(custody));
	put("loss", loss.toFixed(2) + " %");
	put("rtt", rtt === null ? "-" : rtt.toFixed(1) + " ms");
	put("held", `${data.daemon.held} of ${data.daemon.connections}`);
	byId("out-rate").dataset.bits = Math.round(out);
	add(charts.rate, [out / 1e6, inwards / 1e6]);
	add(charts.custody, [custody / 1048576]);
	add(charts.loss, [loss]);
	add(charts.rtt, [rtt]);
}

function withRates(data) {
	const old = new Map(before ? before.connections.map((c) => [c.id, c]) : []);
	const s = before ? (data["time-ms"] - before["time-ms"]) / 1000 : 0;

	return data.connections.map((c) => {
		const o = old.get(c.id);
		const per = (key) => o && s > 0 && c[key] >= o[key] ? (c[key] - o[key]) * 8 / s : 0;

		return { ...c, out: per("out-bytes"), in: per("in-bytes") };
	}).sort((a, b) => b.out + b.in - a.out - a.in || a.id - b.id);
}

function showConnections(data) {
	const all = withRates(data);

	byId("connections").replaceChildren(...all.slice(0, ROWS).map((c) => {
		const tr = document.createElement("tr");

		for (const text of [c["lan-ip"], hex(c.lqpn), c["wan-ip"], hex(c.rqpn), c.state, bits(c.out),
			bits(c.in), bytes(c["custody-bytes"]), c["custody-oldest-ms"] + " ms", c.retransmits,
			c.note || ""]) {
			const td = document.createElement("td");

			td.textContent = text;
			tr.append(td);
		}
		tr.dataset.lqpn = hex(c.lqpn);
		tr.dataset.outBits = Math.round(c.out);
		return tr;
	}));
	put("more", all.length > ROWS ? `and ${all.length - ROWS} more with less traffic` : "");
}

async function look() {
	try {
		const data = await (await fetch("data.json")).json();

		if (data.error) {
			byId("verdict").className = "critical";
			put("verdict", data.error);
		} else if (!before || data["time-ms"] > before["time-ms"]) {
			showVerdict(data);
			showFigures(data);
			showConnections(data);
			before = data;
		}
	} catch (e) {
		byId("verdict").className = "critical";
		put("verdict", `longhaul-metrics does not answer: ${e.message}`);
	}
	setTimeout(look, 1000);
}

charts.rate = chart("chart-rate", ["out", "in"], ["#1f5fbf", "#1a7f4b"]);
charts.custody = chart("chart-custody", ["custody"], ["#7a3fb0"]);
charts.loss = chart("chart-loss", ["sent again"], ["#b3261e"]);
charts.rtt = chart("chart-rtt", ["round trip"], ["#a86400"]);
if (!charts.rate)
	put("more", "no charts: Chart.js is not installed (Debian: libjs-chart.js)");
look();

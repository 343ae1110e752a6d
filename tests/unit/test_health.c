// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Alarms: each is raised by the numbers that it is there for, not by numbers beside them, and does
 * not come and go while a figure is near its limit. Samples are made by hand, a second apart.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peer/session.h"
#include "tests/unit/control_data.h"
#include "tests/unit/health_rig.h"

#define PEER(kind) (HEALTH_KINDS + HEALTH_##kind)

static unsigned int raised[HEALTH_COUNT], over[HEALTH_COUNT];

static void say(void *ctx, unsigned int i, bool on)
{
	(void)ctx;
	(on ? raised : over)[i]++;
}

static int setup(void **state)
{
	(void)state;
	memset(&h, 0, sizeof(h));
	memset(raised, 0, sizeof(raised));
	memset(over, 0, sizeof(over));
	h.say = say;
	h.usual_loss = -1;
	h.sample.now = 5 * SECOND;
	h.sample.npeers = 1;
	h.sample.peer[0] = (struct health_peer){.name = "edge-b", .up = true};
	h.sample.calm_ns = 60 * SECOND;
	h.sample.mem = (struct engine_memory){.custody_cap = 1000, .transit_cap = 1000};
	health_judge(&h);
	return 0;
}

/* @seconds more, with so many packets sent and sent again in each. */
static void go_on(unsigned int seconds, uint64_t tx, uint64_t retx)
{
	for (unsigned int i = 0; i < seconds; i++) {
		h.sample.now += SECOND;
		h.sample.n.tx_wan += tx;
		h.sample.n.tx_wan_bytes += tx * 1000;
		h.sample.n.retx_wan += retx;
		health_judge(&h);
	}
}

static void test_quiet(void **state)
{
	(void)state;
	go_on(100, 0, 0);
	only(HEALTH_COUNT);
	go_on(100, 10000, 3); /* 0.03 % is what a link may lose */
	only(HEALTH_COUNT);
}

static void test_names(void **state)
{
	struct health_what w;

	(void)state;
	for (unsigned int i = 0; i < HEALTH_COUNT; i++) {
		assert_true(health_alarm_of(i, &w));
		assert_non_null(w.name);
		assert_true(strlen(w.mend) > 10);
		assert_int_equal(w.peer, i < HEALTH_KINDS
						 ? PEER_NONE
						 : (int)(i - HEALTH_KINDS) / HEALTH_PEER_KINDS);
	}
	assert_false(health_alarm_of(HEALTH_COUNT, &w));
}

/* Much loss while we send at the rate that was set: the link does not carry it. */
static void test_wan_rate(void **state)
{
	(void)state;
	h.sample.wan_rate = 10000 * 1000;
	go_on(20, 10000, 0);
	only(HEALTH_COUNT);
	go_on(20, 10000, 1000);
	only(HEALTH_WAN_RATE);
	assert_non_null(strstr(h.alarm[HEALTH_WAN_RATE].text, "wan-rate is 80 Mbit/s"));
	/* one alarm, however long it lasts, and over a while after it is mended */
	go_on(100, 10000, 1000);
	go_on(20, 10000, 0);
	assert_true(is(HEALTH_WAN_RATE));
	go_on(40, 10000, 0);
	assert_false(is(HEALTH_WAN_RATE));
	assert_int_equal(raised[HEALTH_WAN_RATE], 1);
	assert_int_equal(over[HEALTH_WAN_RATE], 1);
}

/* The same loss far below the rate is the link's own, and has another mend. */
static void test_loss(void **state)
{
	(void)state;
	h.sample.wan_rate = 100000ull * 1000;
	go_on(20, 10000, 5);
	only(HEALTH_COUNT);
	go_on(20, 10000, 700);
	only(HEALTH_LOSS);
	assert_non_null(strstr(health_mend(&h, HEALTH_LOSS), "longhaul status of the peer"));
	/* what the link carries is not known: it may be less than what the operator has set */
	assert_non_null(strstr(h.alarm[HEALTH_LOSS].text, "; wan-rate is 800 Mbit/s"));
	assert_non_null(strstr(health_mend(&h, HEALTH_LOSS), "carries less than wan-rate"));
	h.sample.wan_auto = true;
	go_on(1, 10000, 700);
	assert_null(strstr(h.alarm[HEALTH_LOSS].text, "wan-rate"));
	assert_null(strstr(health_mend(&h, HEALTH_LOSS), "wan-rate"));
	h.sample.wan_auto = false;
	go_on(60, 10000, 5);
	only(HEALTH_COUNT);
	/* delay that grows with it says that it is the rate after all */
	h.sample.peer[0].owd_above_ns = 30000000;
	h.sample.peer[0].rtt_min_ns = 20000000;
	go_on(20, 10000, 700);
	only(HEALTH_WAN_RATE);
}

/* A deep queue before the link loses nothing and delays all. A found rate is not at fault. */
static void test_wan_queue(void **state)
{
	(void)state;
	h.sample.wan_rate = 100000ull * 1000;
	h.sample.peer[0].rtt_min_ns = 20000000;
	h.sample.peer[0].owd_above_ns = 300000000;
	go_on(20, 10000, 0);
	only(HEALTH_WAN_RATE);
	assert_non_null(strstr(h.alarm[HEALTH_WAN_RATE].text, "packets wait before the link"));
	h.sample.wan_auto = true;
	go_on(40, 10000, 0);
	only(HEALTH_COUNT);
	go_on(20, 10000, 700);
	only(HEALTH_LOSS);
}

/* A link that always loses so much is no news; ten times as much is. */
static void test_usual_loss(void **state)
{
	(void)state;
	h.sample.wan_rate = 100000ull * 1000;
	go_on(3600, 10000, 100);
	only(HEALTH_COUNT);
	go_on(20, 10000, 450);
	only(HEALTH_LOSS);
}

/* What turned out not to be lost is not counted, nor is loss of a handful of packets. */
static void test_not_loss(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		h.sample.n.retx_spurious += 700;
		go_on(1, 10000, 700);
	}
	only(HEALTH_COUNT);
	go_on(30, 20, 10);
	only(HEALTH_COUNT);
}

static void test_pool(void **state)
{
	(void)state;
	h.sample.custody_full = 0.8;
	go_on(5, 0, 0);
	only(HEALTH_COUNT); /* a burst */
	go_on(10, 0, 0);
	only(HEALTH_POOL);
	/* near the limit it does not come and go */
	for (int i = 0; i < 200; i++) {
		h.sample.custody_full = i % 2 ? 0.69 : 0.71;
		go_on(1, 0, 0);
	}
	assert_int_equal(raised[HEALTH_POOL], 1);
	assert_int_equal(over[HEALTH_POOL], 0);
	h.sample.custody_full = 0.1;
	go_on(29, 0, 0);
	only(HEALTH_POOL);
	go_on(3, 0, 0);
	only(HEALTH_COUNT);
	h.sample.transit_full = 0.9;
	go_on(20, 0, 0);
	only(HEALTH_POOL);
	assert_string_equal(h.alarm[HEALTH_POOL].text,
			    "custody fills 10 % of its share of the pool now, transit 90 %");
	/* full for a moment, seen when it was over */
	h.sample.transit_full = 0;
	h.sample.sharded = true;
	h.sample.n.no_room++;
	go_on(1, 0, 0);
	assert_string_equal(h.alarm[HEALTH_POOL].text,
			    "1 packet found no room in 10 s; custody fills 10 % of its share of "
			    "the pool at one core now, transit 0 %");
}

static void test_peers(void **state)
{
	(void)state;
	/* one that is not there yet has five seconds, one that was there one */
	h.sample.peer[0].up = false;
	go_on(3, 0, 0);
	only(HEALTH_COUNT);
	go_on(5, 0, 0);
	only(PEER(PEER_UNREACHED));
	h.sample.peer[0].up = h.sample.peer[0].met = true;
	go_on(1, 0, 0);
	only(HEALTH_COUNT);
	h.sample.peer[0].up = false;
	go_on(2, 0, 0);
	only(PEER(PEER_DOWN));
	h.sample.peer[0].up = true;
	go_on(4, 0, 0);
	only(HEALTH_COUNT);
	h.sample.peer[0].late_ns = 800000000; /* between: neither raised, nor over */
	go_on(40, 0, 0);
	only(HEALTH_COUNT);
	h.sample.peer[0].late_ns = 1200000000;
	go_on(1, 0, 0);
	only(PEER(PEER_LATE));
	h.sample.peer[0].late_ns = 800000000;
	go_on(100, 0, 0);
	only(PEER(PEER_LATE));
	h.sample.peer[0].late_ns = 250000000;
	go_on(32, 0, 0);
	only(HEALTH_COUNT);
	/* one that beats more often is late sooner */
	h.sample.peer[0].beats = true;
	h.sample.peer[0].late_ns = 500000000;
	go_on(40, 0, 0);
	only(HEALTH_COUNT);
	h.sample.peer[0].late_ns = 900000000;
	go_on(1, 0, 0);
	only(PEER(PEER_LATE));
	/* but one that is down is not late as well */
	h.sample.peer[0].late_ns = 0;
	h.sample.peer[0].up = false;
	go_on(3, 0, 0);
	only(PEER(PEER_DOWN));
	h.sample.peer[0].up = true;
	go_on(3, 0, 0);
	only(HEALTH_COUNT);
	/* the second peer's are others */
	h.sample.npeers = 2;
	h.sample.peer[1] = (struct health_peer){.name = "edge-c"};
	go_on(8, 0, 0);
	only(PEER(PEER_UNREACHED) + HEALTH_PEER_KINDS);
	/* and over when a reload takes it away */
	h.sample.npeers = 1;
	go_on(8, 0, 0);
	only(HEALTH_COUNT);
}

/* A peer that is not up: what is known of it, and what is said. */
static void test_peer_causes(void **state)
{
	const struct {
		const char *what, *text, *mend;
		struct session_info si;
		struct peer_signs signs;
		bool named;
	} cases[] = {
		{"no answer", "nothing has ever come from 192.0.2.2 port 4797",
		 "UDP port 4797 open", .si = {0}},
		{"wrong key", "another key", "copy the key file", .si = {.other_key = true}},
		{"wrong key, and its port was closed before", "another key", "copy the key file",
		 .si = {.other_key = true}, .signs = {.trouble = ECONNREFUSED}},
		{"another version", "another version", "same release",
		 .si = {.other_version = true, .other_key = true}},
		{"own address", "own datagrams come back", "not to an own one",
		 .si = {.reflected = true}},
		{"port closed by a firewall there", "ours do not arrive there",
		 "in the firewall there", .si = {.calls = true}},
		{"no route here, as the other end still calls", "this host has no way to 192.0.2.2",
		 "ip route get 192.0.2.2", .si = {.heard = true, .calls = true},
		 .signs = {.trouble = ENETUNREACH}},
		{"a firewall here, likewise", "a firewall does not let datagrams to 192.0.2.2",
		 "firewall of this host", .si = {.calls = true}, .signs = {.trouble = EPERM}},
		{"no longhauld there", "nothing listens on its UDP port 4797",
		 "start longhauld there", .signs = {.trouble = ECONNREFUSED}},
		{"no such machine", "no machine answers at 192.0.2.2", "compare 'address'",
		 .signs = {.trouble = EHOSTUNREACH}},
		{"bridge down", "this host has no way to 192.0.2.2", "a route",
		 .signs = {.trouble = ENETUNREACH}},
		{"port closed by a firewall here", "a firewall does not let datagrams to 192.0.2.2",
		 "firewall of this host", .signs = {.trouble = EPERM}},
		{"wrong address", "datagrams come from 192.0.2.9 port 4797, which is no peer's",
		 "set 'address'", .signs = {.stranger = true, .port = 4797}},
		{"stopped", "longhauld was stopped there", "systemctl start longhauld",
		 .si = {.heard = true, .end = SESSION_END_STOPPED},
		 .signs = {.trouble = ECONNREFUSED}},
		{"removed", "it has removed this appliance", "add this appliance there",
		 .si = {.heard = true, .end = SESSION_END_REMOVED}},
		{"WAN cut", "for 3 s, after 1 session: the link is cut", "look at the link first",
		 .si = {.heard = true,
			.heard_ns = 3 * SECOND,
			.sessions = 1,
			.end = SESSION_END_SILENT}},
		{"WAN cut, and the neighbour is forgotten", "any more: the link is cut",
		 "look at the link", .si = {.heard = true, .end = SESSION_END_SILENT},
		 .signs = {.trouble = EHOSTUNREACH}},
		{"WAN cut, amid strangers", "the link is cut", "look at the link first",
		 .si = {.heard = true, .sessions = 2, .end = SESSION_END_SILENT},
		 .signs = {.stranger = true}},
		{"no name", "its name edge-b.example has no address", "getent hosts edge-b.example",
		 .named = true},
	};
	struct view_peer peer = {.name = "edge-b", .port = 4797}, named = peer;
	struct peer_cause cause;

	(void)state;
	ip_addr_parse("192.0.2.2", &peer.addr);
	named.host = "edge-b.example";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct session_info si = cases[i].si;
		struct peer_signs signs = cases[i].signs;

		si.state = SESSION_DOWN;
		ip_addr_parse("192.0.2.9", &signs.addr);
		assert_true(peer_cause(cases[i].named ? &named : &peer, &si, &signs, &cause));
		if (!strstr(cause.text, cases[i].text) || !strstr(cause.mend, cases[i].mend))
			fail_msg("%s: \"%s\", mend: \"%s\"", cases[i].what, cause.text, cause.mend);
		si.state = SESSION_UP;
		assert_false(peer_cause(&peer, &si, &signs, &cause));
	}
}

/* What follows from a link that is cut is not told beside it, nor for a while after it is back. */
static void test_cut(void **state)
{
	(void)state;
	h.sample.wan_rate = 100000ull * 1000;
	h.sample.peer[0].met = true;
	h.sample.calm_ns = 60 * SECOND;
	go_on(20, 10000, 5);
	go_on(20, 10000, 700);
	only(HEALTH_LOSS);
	h.sample.peer[0].up = false;
	h.sample.peer[0].late_ns = 900000000;
	h.sample.calm_ns = 0;
	go_on(2, 10000, 6600);
	only(PEER(PEER_DOWN));
	h.sample.peer[0].up = true;
	h.sample.peer[0].late_ns = 0;
	h.sample.calm_ns = 2 * SECOND;
	go_on(9, 10000, 6600);
	only(HEALTH_COUNT);
	h.sample.calm_ns = 11 * SECOND;
	go_on(6, 10000, 700);
	only(HEALTH_LOSS);
	/* of a port that is down all the rest follows */
	h.sample.port[STEER_WAN] = (struct health_port){.name = "wan0", .down = true};
	h.sample.peer[0].up = false;
	h.sample.scan.silent = 1;
	go_on(20, 10000, 6600);
	only(HEALTH_PORT_DOWN);
	assert_string_equal(h.alarm[HEALTH_PORT_DOWN].text, "wan0 is down or has no carrier");
	assert_non_null(strstr(health_mend(&h, HEALTH_PORT_DOWN), "ip link set dev wan0 up"));
}

/* What was lost while a port was down is no second fault when it is up again. */
static void test_dropped_by_port(void **state)
{
	(void)state;
	strcpy(h.sample.port[STEER_WAN].name, "wan0");
	h.sample.port[STEER_WAN].down = true;
	h.sample.n.tx[STEER_WAN] += 1000;
	h.sample.n.tx_dropped[STEER_WAN] += 900;
	go_on(3, 0, 0);
	only(HEALTH_PORT_DOWN);
	h.sample.port[STEER_WAN].down = false;
	go_on(3, 0, 0);
	only(HEALTH_PORT_DOWN);
	go_on(30, 0, 0);
	only(HEALTH_COUNT);
	assert_int_equal(raised[HEALTH_TX_DROPPED], 0);
}

/* A daemon that stood still heard nothing from its peer, which is not the peer's fault. */
static void test_own_pause(void **state)
{
	const char *text = h.alarm[HEALTH_DAEMON_LATE].text;

	(void)state;
	h.sample.peer[0].beats = true;
	h.sample.late_ns = 5000000000;
	h.sample.peer[0].late_ns = 5040000000;
	h.sample.n.stale += 70;
	go_on(1, 0, 0);
	only(HEALTH_DAEMON_LATE);
	assert_non_null(strstr(text, "for 5000 ms; 70 frames passed by it"));
	/* frames are told of for ten seconds, and so is the time */
	h.sample.late_ns = 53000000;
	h.sample.peer[0].late_ns = 60000000;
	go_on(3, 0, 0);
	only(HEALTH_DAEMON_LATE);
	assert_non_null(strstr(text, "for 5000 ms; 70 frames passed by it"));
	go_on(50, 0, 0);
	only(HEALTH_COUNT);
	h.sample.late_ns = 300000000;
	go_on(1, 0, 0);
	assert_non_null(strstr(text, "for 300 ms; 0 frames passed by it"));
	/* what it was silent for beyond that is */
	h.sample.peer[0].late_ns = 1000000000;
	go_on(1, 0, 0);
	assert_true(is(PEER(PEER_LATE)));
}

/* Those that are bad when one number is not 0. */
static void test_simple(void **state)
{
	struct {
		unsigned int alarm, clear;
		void *at;
		size_t size;
	} simple[] = {
		{HEALTH_DOUBLED, 602, &h.sample.bad_chunks, sizeof(uint64_t)},
		{HEALTH_SILENT, 12, &h.sample.scan.silent, sizeof(uint32_t)},
		{HEALTH_HALF_KNOWN, 12, &h.sample.scan.half, sizeof(uint32_t)},
		{HEALTH_PATH_MTU, 12, &h.sample.scan.no_mtu, sizeof(uint32_t)},
		{HEALTH_REFUSED, 12, &h.sample.scan.refused, sizeof(uint32_t)},
		{HEALTH_MISSED, 32, &h.sample.scan.missed, sizeof(uint32_t)},
		{HEALTH_BYPASS, 2, &h.sample.scan.bypassed, sizeof(uint32_t)},
		{HEALTH_FAULT, 615, &h.sample.scan.fault, sizeof(uint32_t)},
		/* these judge growth, which is seen for ten seconds */
		{HEALTH_FAULT, 615, &h.sample.n.faults, 0},
		{HEALTH_POOL, 45, &h.sample.n.no_room, 0},
		{HEALTH_RX_DROPPED, 45, &h.sample.n.rx_dropped, 0},
		{HEALTH_DAEMON_LATE, 45, &h.sample.n.stale, 0},
		{HEALTH_TABLE_FULL, 75, &h.sample.n.table_full, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
		for (int s = 0; s < 15; s++) {
			if (simple[i].size)
				memset(simple[i].at, 1, 1);
			else
				++*(uint64_t *)simple[i].at;
			go_on(1, 0, 0);
		}
		only(simple[i].alarm);
		if (simple[i].size)
			memset(simple[i].at, 0, simple[i].size);
		go_on(simple[i].clear, 0, 0);
		only(HEALTH_COUNT);
	}
	/* told for ten minutes: what is so now is not */
	assert_null(strstr(h.alarm[HEALTH_FAULT].text, "now"));
	h.sample.port[STEER_LAN] = (struct health_port){.name = "lan0", .down = true};
	go_on(15, 0, 0);
	only(HEALTH_PORT_DOWN);
	h.sample.port[STEER_LAN].down = false;
	go_on(7, 0, 0);
	only(HEALTH_COUNT);
	h.sample.ahead_off = "no BPF file system";
	go_on(1, 0, 0);
	only(HEALTH_READ_AHEAD);
	assert_non_null(strstr(h.alarm[HEALTH_READ_AHEAD].text, "no BPF file system"));
	h.sample.ahead_off = NULL;
	h.sample.bypass = "all";
	go_on(2, 0, 0);
	only(HEALTH_BYPASS);
	h.sample.bypass = NULL;
	h.sample.late_ns = 700000000;
	go_on(1, 0, 0);
	only(HEALTH_DAEMON_LATE);
}

/* A port on the way is too narrow, at either end: told by the numbers, not as dropped frames. */
static void test_mtu(void **state)
{
	struct health_peer *p = &h.sample.peer[0];

	(void)state;
	h.sample.port[STEER_WAN] = (struct health_port){.name = "wan0", .mtu = 1500};
	h.sample.port[STEER_LAN] = (struct health_port){.name = "lan0", .mtu = 4300};
	h.sample.port[STEER_WAN].longest = 14 + 4 + 1500;
	go_on(1, 0, 0);
	only(HEALTH_COUNT);
	h.sample.port[STEER_WAN].longest = 14 + 4156;
	h.sample.n.tx_dropped[STEER_WAN] = 100;
	go_on(1, 0, 0);
	only(HEALTH_PORT_MTU);
	assert_string_equal(h.alarm[HEALTH_PORT_MTU].text,
			    "hosts send packets of 4156 bytes (path MTU 4096), and wan0 has MTU "
			    "1500: it drops them");
	assert_non_null(strstr(health_mend(&h, HEALTH_PORT_MTU), "MTU of wan0 to 4188"));
	/* the port of the peer, as that has told */
	h.sample.port[STEER_WAN].mtu = 4300;
	p->mtu[STEER_LAN] = 1500;
	p->mtu[STEER_WAN] = 4300;
	go_on(1, 0, 0);
	only(HEALTH_PORT_MTU);
	assert_non_null(strstr(h.alarm[HEALTH_PORT_MTU].text,
			       "and the LAN port of peer edge-b has MTU 1500"));
	/* at the peer's end: its hosts' packets do not get here */
	h.sample.port[STEER_WAN].longest = 0;
	h.sample.port[STEER_LAN].mtu = 1500;
	p->mtu[STEER_LAN] = 4300;
	p->longest = 2100;
	go_on(1, 0, 0);
	only(HEALTH_PORT_MTU);
	assert_string_equal(h.alarm[HEALTH_PORT_MTU].text,
			    "hosts send packets of 2100 bytes (path MTU 2048), and lan0 has MTU "
			    "1500: it drops them");
	/* only its hosts send, and its own port is too narrow for them */
	h.sample.port[STEER_LAN].mtu = 4300;
	p->mtu[STEER_WAN] = 1500;
	go_on(1, 0, 0);
	only(HEALTH_PORT_MTU);
	assert_non_null(strstr(h.alarm[HEALTH_PORT_MTU].text,
			       "of 2100 bytes (path MTU 2048), and the WAN port of peer edge-b has "
			       "MTU 1500"));
	p->longest = 0;
	go_on(30, 0, 0);
	only(HEALTH_COUNT);
}

/* The link carries less than hosts send: told at either end, and nothing that follows from it. */
static void test_reach(void **state)
{
	unsigned int narrow = HEALTH_KINDS + HEALTH_LINK_MTU;
	struct health_peer *p = &h.sample.peer[0];

	(void)state;
	go_on(20, 10000, 10);
	p->reach[0] = (struct session_reach){.carried = 4160, .refused = 4161, .longest = 4160};
	go_on(1, 10000, 10);
	only(HEALTH_COUNT); /* hosts send nothing that long */
	p->reach[0] = (struct session_reach){.carried = 1500, .refused = 1501, .longest = 4156};
	h.sample.scan = (struct health_scan){.silent = 1, .silent_ns = 6 * SECOND, .missed = 1};
	h.sample.n.tx[STEER_WAN] += 1000;
	h.sample.n.tx_dropped[STEER_WAN] += 900; /* what is next to us dropped them */
	h.sample.n.unsealed += 100;
	go_on(8, 10000, 9000);
	only(narrow);
	assert_string_equal(h.alarm[narrow].text,
			    "the link to peer edge-b carries packets of at most 1500 bytes, and "
			    "hosts send 4156 (path MTU 4096): they vanish on it");
	assert_non_null(strstr(health_mend(&h, narrow), "along the link to 4188"));
	assert_non_null(strstr(health_mend(&h, narrow), "of the hosts to 1024"));
	p->reach[1] = p->reach[0];
	go_on(1, 10000, 9000);
	assert_non_null(strstr(h.alarm[narrow].text, "the link to and from peer edge-b"));
	p->reach[0].refused = 0;
	go_on(1, 10000, 9000);
	assert_non_null(strstr(h.alarm[narrow].text, "the link from peer edge-b"));
	/* a port that is known to be too small is the better word for it */
	p->mtu[STEER_WAN] = 1500;
	p->longest = 4156;
	go_on(1, 10000, 9000);
	only(HEALTH_PORT_MTU);
	p->mtu[STEER_WAN] = 0;
	h.sample.scan = (struct health_scan){0};
	p->reach[1].refused = 0;
	h.sample.calm_ns = 0;
	go_on(9, 10000, 10);
	only(HEALTH_COUNT);
}

/* Flows that found no place, though the table has many: raising its size would not mend it. */
static void test_table(void **state)
{
	const char *text = h.alarm[HEALTH_TABLE_FULL].text;

	(void)state;
	h.sample.mem.flows = 900;
	h.sample.mem.flows_max = 1000;
	h.sample.n.table_full = 7;
	go_on(1, 0, 0);
	only(HEALTH_TABLE_FULL);
	assert_non_null(strstr(text, "7 new flows found the table of 1000 full"));
	assert_non_null(strstr(health_mend(&h, HEALTH_TABLE_FULL), "raise max-connections"));
	h.sample.mem.flows = 300;
	go_on(1, 0, 0);
	assert_non_null(strstr(text, "have no known partner yet (300 of 1000 places are taken)"));
	assert_null(strstr(health_mend(&h, HEALTH_TABLE_FULL), "raise"));
}

static void test_dropped(void **state)
{
	(void)state;
	strcpy(h.sample.port[STEER_WAN].name, "wan0");
	for (int i = 0; i < 20; i++) {
		h.sample.n.tx[STEER_WAN] += 100000;
		h.sample.n.tx_dropped[STEER_WAN] += 5; /* 0.005 % */
		go_on(1, 0, 0);
	}
	only(HEALTH_COUNT);
	h.sample.n.tx_dropped[STEER_WAN] += 10000;
	go_on(1, 0, 0);
	only(HEALTH_TX_DROPPED);
	assert_non_null(strstr(h.alarm[HEALTH_TX_DROPPED].text,
			       "the interface or what is behind it dropped them"));
	h.sample.n.tx_full++;
	go_on(1, 0, 0);
	assert_non_null(strstr(h.alarm[HEALTH_TX_DROPPED].text, "its ring is full"));
	h.sample.n.tx_too_long++;
	go_on(1, 0, 0);
	assert_non_null(strstr(h.alarm[HEALTH_TX_DROPPED].text, "longer than the kernel takes"));
	go_on(45, 0, 0);
	only(HEALTH_COUNT);
	/* what the LAN port drops is not answered, which is no second fault */
	strcpy(h.sample.port[STEER_LAN].name, "lan0");
	h.sample.n.tx[STEER_LAN] += 100;
	h.sample.n.tx_dropped[STEER_LAN] += 100;
	h.sample.scan.silent = 1;
	go_on(1, 0, 0);
	only(HEALTH_TX_DROPPED);
	go_on(45, 0, 0);
	only(HEALTH_SILENT);
	h.sample.scan.silent = 0;
	go_on(15, 0, 0);
	only(HEALTH_COUNT);
}

/* What was lost with one of several ports is no second fault; a mend names the port of its text. */
static void test_dropped_by_member(void **state)
{
	(void)state;
	strcpy(h.sample.port[STEER_LAN].name, "lan0, lan1");
	strcpy(h.sample.port[STEER_WAN].name, "wan0");
	h.sample.n.tx[STEER_LAN] += 1000;
	h.sample.n.tx_dropped[STEER_LAN] += 100;
	go_on(1, 0, 0);
	only(HEALTH_TX_DROPPED);
	go_on(20, 0, 0);
	assert_non_null(strstr(h.alarm[HEALTH_TX_DROPPED].text, "lan0, lan1"));
	assert_non_null(strstr(health_mend(&h, HEALTH_TX_DROPPED), "lan0, lan1"));
	go_on(45, 0, 0);
	only(HEALTH_COUNT);
	strcpy(h.sample.port[STEER_LAN].lost, "lan0");
	h.sample.n.tx[STEER_LAN] += 1000;
	h.sample.n.tx_dropped[STEER_LAN] += 100;
	go_on(1, 0, 0);
	only(HEALTH_MEMBER_DOWN);
	*h.sample.port[STEER_LAN].lost = '\0';
	go_on(3, 0, 0);
	only(HEALTH_MEMBER_DOWN);
	go_on(15, 0, 0);
	only(HEALTH_COUNT);
}

/* Which hosts' packets miss which appliance, at either end of the lane. */
static void test_missed_words(void **state)
{
	const struct {
		enum path_miss how;
		enum lane_reason reason;
		enum lane_state state;
		const char *words;
	} cases[] = {
		{MISS_US, REASON_NONE, LANE_HELD,
		 "packets from 10.1.0.5 to 10.2.0.7 miss this "
		 "appliance"},
		{MISS_FROM, REASON_NONE, LANE_HELD,
		 "packets from 10.2.0.7 to 10.1.0.5 miss the "
		 "appliance of peer edge-b"},
		{MISS_TO, REASON_NONE, LANE_HELD,
		 "packets from 10.1.0.5 to 10.2.0.7 miss the "
		 "appliance of peer edge-b"},
		{MISS_NONE, REASON_BYPASS, LANE_WATCH,
		 "packets between 10.1.0.5 and 10.2.0.7 "
		 "missed one of the two appliances"},
		{MISS_NONE, REASON_BYPASS, LANE_HELD, NULL},
		{MISS_NONE, REASON_IDLE, LANE_WATCH, NULL},
	};
	struct view_source src = {.peers = {{.name = "edge-b"}}, .npeers = 1};
	struct conn_info ci = {.peer = 0};
	char words[VIEW_MISSED];

	(void)state;
	ip_addr_parse("10.1.0.5", &ci.lan_ip);
	ip_addr_parse("10.2.0.7", &ci.wan_ip);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lane_info l = {.bypassed = cases[i].how,
				      .reason = cases[i].reason,
				      .state = cases[i].state};

		assert_int_equal(view_missed(&src, &ci, &l, words), cases[i].words != NULL);
		if (cases[i].words)
			assert_string_equal(words, cases[i].words);
	}
}

/* By lanes, by an event that no look at all connections was in time for, and by a counter. */
static void test_missed(void **state)
{
	const struct health_alarm *a = &h.alarm[HEALTH_MISSED];

	(void)state;
	h.sample.scan.missed = 3;
	h.sample.scan.missed_now = true;
	snprintf(h.sample.scan.missed_name, VIEW_MISSED, "packets from a to b miss this appliance");
	go_on(2, 0, 0);
	only(HEALTH_COUNT); /* the peer may be going down */
	go_on(1, 0, 0);
	only(HEALTH_MISSED);
	assert_string_equal(a->text, "packets from a to b miss this appliance (3 connections)");
	assert_non_null(strstr(health_mend(&h, HEALTH_MISSED), "must cross both appliances"));
	assert_non_null(strstr(health_mend(&h, HEALTH_MISSED), "drops UDP port 4791"));
	/* they are let go: the event knows more than they do */
	h.sample.scan.missed_now = false;
	h.sample.missed = "packets from c to d miss this appliance";
	go_on(1, 0, 0);
	assert_string_equal(a->text, "packets from c to d miss this appliance (3 connections)");
	h.sample.scan.missed = 0;
	go_on(1, 0, 0);
	assert_string_equal(a->text, "packets from c to d miss this appliance (1 connection)");
	h.sample.missed = "";
	go_on(29, 0, 0);
	only(HEALTH_MISSED);
	go_on(3, 0, 0);
	only(HEALTH_COUNT);
	/* a few are left over when a lane ends */
	h.sample.n.unsealed += 9;
	go_on(20, 0, 0);
	only(HEALTH_COUNT);
	h.sample.n.unsealed += 10;
	go_on(3, 0, 0);
	only(HEALTH_MISSED);
	assert_non_null(strstr(a->text, "10 packets of held connections came without a seal"));
	go_on(45, 0, 0);
	only(HEALTH_COUNT);
	/* where the peer is down nobody can seal */
	h.sample.n.unsealed += 10;
	h.sample.peer[0].up = false;
	h.sample.peer[0].met = true;
	go_on(3, 0, 0);
	only(PEER(PEER_DOWN));
}

/* A peer that does not seal has an alarm, and what it refuses for that has no other. */
static void test_unsealed_peer(void **state)
{
	(void)state;
	h.sample.peer[0].unsealed = true;
	h.sample.scan.refused = 2;
	h.sample.scan.refusal = REASON_UNSEALED;
	go_on(2, 0, 0);
	only(PEER(PEER_UNSEALED));
	assert_non_null(strstr(h.alarm[PEER(PEER_UNSEALED)].text,
			       "peer edge-b is of an older version that does not seal"));
	assert_non_null(strstr(health_mend(&h, PEER(PEER_UNSEALED)), "seal = off at both ends"));
	/* it is updated, and the rule there says off */
	h.sample.peer[0].unsealed = false;
	go_on(4, 0, 0);
	only(HEALTH_REFUSED);
	assert_non_null(strstr(h.alarm[HEALTH_REFUSED].text, "one of the two ends seals"));
	h.sample.scan.refused = 0;
	h.sample.peer[0].unsealed = true;
	h.sample.peer[0].up = false;
	go_on(20, 0, 0);
	assert_false(is(PEER(PEER_UNSEALED)));
}

/* Each reason has words, and what the peer has refused is what raises the alarm. */
static void test_reasons(void **state)
{
	(void)state;
	assert_null(view_reason(REASON_NONE));
	for (enum lane_reason r = REASON_NONE + 1; r < REASONS; r++) {
		if (!view_reason(r))
			fail_msg("%s has no words", lane_reason_name(r));
		assert_int_equal(health_refusal(r), !strncmp(view_reason(r), "peer refused: ", 14));
	}
	assert_true(health_refusal(REASON_UNSEALED));
	assert_false(health_refusal(REASON_NONE));
}

#define TEST(fn) cmocka_unit_test_setup(fn, setup)

/* What hosts send does not come, in one direction, although the peer is there: each end says so.
 * Some bytes under way, or a few that nobody repeats, are no sign. */
static void test_link_blocked(void **state)
{
	unsigned int blocked = HEALTH_KINDS + HEALTH_LINK_BLOCKED;

	(void)state;
	h.sample.peer[0].blocked[0] = 511;
	go_on(5, 0, 0);
	only(HEALTH_COUNT);
	h.sample.peer[0].blocked[0] = 512;
	go_on(1, 0, 0);
	only(HEALTH_COUNT);
	go_on(1, 0, 0);
	only(blocked);
	assert_non_null(
		strstr(h.alarm[blocked].text, "512 bytes that hosts have sent to peer edge-b"));
	h.sample.peer[0].blocked[0] = 0;
	h.sample.peer[0].blocked[1] = 700;
	go_on(10, 0, 0);
	only(blocked);
	assert_non_null(strstr(h.alarm[blocked].text, "700 bytes that hosts have sent from peer"));
	h.sample.peer[0].up = false; /* it has an alarm of its own */
	go_on(10, 0, 0);
	assert_false(is(blocked));
	h.sample.peer[0].up = true;
	h.sample.peer[0].blocked[1] = 0;
	go_on(10, 0, 0);
	only(HEALTH_COUNT);
}

/* A METER may overtake the packets that it counts: only the next one shows that they are lost. */
static void test_blocked(void **state)
{
	struct health_way w = {0};
	struct link_count c = {.sent = 9000, .got = 9000};
	uint64_t now = SECOND;

	(void)state;
	assert_int_equal(health_blocked(&w, &c, now), 0);
	c.sent = 13154; /* the last packet before a silence is not counted there yet */
	for (int i = 0; i < 100; i++)
		assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
	c = (struct link_count){.sent = 17308, .got = 13154};
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
	c.sent = 20000;
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
	c.sent = 30000;
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 20000 - 17308);
	c.sent = 40000;
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 30000 - 17308);
	c.got = 13155;
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
	/* it is over, too, when nothing is sent for a minute, and when both count anew */
	c.sent = 50000;
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
	c.sent = 60000;
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 50000 - 40000);
	assert_int_equal(health_blocked(&w, &c, now += 59 * SECOND), 50000 - 40000);
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
	c = (struct link_count){0};
	assert_int_equal(health_blocked(&w, &c, now += SECOND), 0);
}

static void test_port_alone(void **state)
{
	(void)state;
	snprintf(h.sample.port[STEER_WAN].alone, IF_NAMESIZE, "wan0");
	go_on(2, 0, 0);
	only(HEALTH_PORT_ALONE);
	assert_non_null(strstr(h.alarm[HEALTH_PORT_ALONE].text, "wan0 is in no bridge"));
	assert_non_null(strstr(health_mend(&h, HEALTH_PORT_ALONE), "dev wan0 master"));
	h.sample.port[STEER_WAN].alone[0] = '\0';
	go_on(3, 0, 0);
	only(HEALTH_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_quiet),
		TEST(test_names),
		TEST(test_wan_rate),
		TEST(test_loss),
		TEST(test_wan_queue),
		TEST(test_usual_loss),
		TEST(test_not_loss),
		TEST(test_pool),
		TEST(test_peers),
		TEST(test_simple),
		TEST(test_reasons),
		TEST(test_peer_causes),
		TEST(test_cut),
		TEST(test_mtu),
		TEST(test_table),
		TEST(test_dropped),
		TEST(test_dropped_by_member),
		TEST(test_dropped_by_port),
		TEST(test_own_pause),
		TEST(test_missed),
		TEST(test_missed_words),
		TEST(test_unsealed_peer),
		TEST(test_reach),
		TEST(test_link_blocked),
		TEST(test_blocked),
		TEST(test_port_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

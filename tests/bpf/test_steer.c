// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The XDP program, frame by frame through BPF_PROG_TEST_RUN: each row says what goes in, on which
 * side, and which counter must move, which also says what becomes of the frame: STEER_TAKEN is
 * redirected to the socket of queue 0, STEER_HELD dropped, everything else passes up. Nothing is
 * attached and no traffic flows.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>
#include <linux/bpf.h>

#include "port/afxdp_priv.h"
#include "steer.skel.h"
#include "tests/bpf/steer_frame.h"

#define AREA (64 * AFXDP_CHUNK)
#define PAGE_LINEAR                                                                                \
	3520 /* what one page holds of a test frame: 4096 - 256 headroom - 320 at the end */

static struct steer_prog prog;
static uint8_t *area;
static struct xsk_umem *umem;
static struct xsk_socket *xsk;

static uint64_t vlans[STEER_VLANS];
static struct afxdp_prefix near[8], far[8];
static size_t nnear, nfar;

static struct afxdp_prefix prefix(const char *addr, unsigned int plen, uint64_t rules)
{
	struct afxdp_prefix p = {.plen = (uint8_t)plen, .rules = rules};

	if (strchr(addr, ':')) {
		assert_int_equal(inet_pton(AF_INET6, addr, p.addr), 1);
	} else {
		p.addr[10] = p.addr[11] = 0xff;
		assert_int_equal(inet_pton(AF_INET, addr, p.addr + 12), 1);
		p.plen = (uint8_t)(p.plen + 96);
	}
	return p;
}

/*
 * rule	near		far		VLAN
 * 0	10.1.0.0/16	10.2.0.0/16	untagged
 * 1	10.1.5.0/24	10.3.0.0/16	100
 * 2	fd00:1::/32	fd00:2::/32	untagged, 100, 0
 * 63	10.9.0.0/16	0.0.0.0/0	untagged
 */
static void set_rules(void)
{
	memset(vlans, 0, sizeof(vlans));
	vlans[STEER_UNTAGGED] = 1u | 4u | 1ull << 63;
	vlans[100] = 2u | 4u;
	vlans[0] = 4u;
	nnear = nfar = 0;
	near[nnear++] = prefix("10.1.0.0", 16, 1u);
	near[nnear++] = prefix("10.1.5.0", 24, 2u);
	near[nnear++] = prefix("fd00:1::", 32, 4u);
	near[nnear++] = prefix("10.9.0.0", 16, 1ull << 63);
	far[nfar++] = prefix("10.2.0.0", 16, 1u);
	far[nfar++] = prefix("10.3.0.0", 16, 2u);
	far[nfar++] = prefix("fd00:2::", 32, 4u);
	far[nfar++] = prefix("0.0.0.0", 0, 1ull << 63);
	assert_int_equal(steer_prog_rules(&prog, near, nnear, far, nfar, vlans), 0);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void set_socket(bool there)
{
	uint32_t zero = 0;

	if (there) {
		assert_int_equal(steer_prog_socket(&prog, STEER_LAN, 0, xsk_socket__fd(xsk)), 0);
		assert_int_equal(steer_prog_socket(&prog, STEER_WAN, 0, xsk_socket__fd(xsk)), 0);
	} else {
		bpf_map__delete_elem(prog.skel->maps.steer_xsk_lan, &zero, sizeof(zero), 0);
		bpf_map__delete_elem(prog.skel->maps.steer_xsk_wan, &zero, sizeof(zero), 0);
	}
}

/* The state that every test starts from: rules, a live daemon, a socket, long frames allowed. */
static int reset(void **state)
{
	(void)state;
	set_rules();
	set_socket(true);
	prog.config->max_frame = 9000;
	prog.config->stale_ns = 60000000000u;
	prog.config->linear_only = 0;
	steer_prog_heartbeat(&prog, now());
	assert_int_equal(prog.held, 0);
	assert_int_equal(prog.config->held, 0);
	return 0;
}

static int setup(void **state)
{
	const struct xsk_socket_config cfg = {
		.rx_size = 64,
		.tx_size = 64,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_COPY,
	};
	static struct xsk_ring_prod fill, tx;
	static struct xsk_ring_cons comp, rx;
	char err[256] = "";

	/* Test frames seem to come from queue 0 of "lo" of this namespace; a socket listens there.
 */
	if (unshare(CLONE_NEWNET)) {
		perror("a network namespace is needed (root)");
		return -1;
	}
	if (steer_prog_load(&prog, -1, 0, err, sizeof(err)) < 0) {
		fprintf(stderr, "%s\n", err);
		return -1;
	}
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || xsk_umem__create(&umem, area, AREA, &fill, &comp, NULL) ||
	    xsk_socket__create(&xsk, "lo", 0, umem, &rx, &tx, &cfg)) {
		perror("AF_XDP socket on lo");
		return -1;
	}
	return reset(state);
}

static int teardown(void **state)
{
	(void)state;
	xsk_socket__delete(xsk);
	xsk_umem__delete(umem);
	munmap(area, AREA);
	steer_prog_unload(&prog);
	return 0;
}

/* Returns the action, or a negative errno. @linear: bytes in the first buffer, 0: as the kernel
 * likes. */
static int run(enum steer_side side, const uint8_t *frame, uint32_t len, uint32_t linear)
{
	static uint8_t out[BUF];
	const struct bpf_program *p =
		side == STEER_LAN ? prog.skel->progs.steer_lan : prog.skel->progs.steer_wan;
	struct xdp_md ctx = {.data_end = linear};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = len, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = 1);
	int r;

	if (linear) {
		opts.ctx_in = &ctx;
		opts.ctx_size_in = sizeof(ctx);
	}
	r = bpf_prog_test_run_opts(bpf_program__fd(p), &opts);
	if (r < 0)
		return r;
	/* whatever it decides, it changes nothing */
	assert_int_equal(opts.data_size_out, len);
	assert_memory_equal(out, frame, len);
	return (int)opts.retval;
}

static const char *const counter_name[STEER_COUNTERS] = {
	[STEER_TAKEN] = "taken",       [STEER_OTHER] = "other", [STEER_NO_RULE] = "no rule",
	[STEER_FRAGMENT] = "fragment", [STEER_STALE] = "stale", [STEER_NO_SOCKET] = "no socket",
	[STEER_TOO_LONG] = "too long", [STEER_RUNT] = "runt",	   [STEER_HELD] = "held",
};

/* Run, and return the one counter that moved. */
static enum steer_counter judge(const char *name, enum steer_side side, const uint8_t *frame,
				uint32_t len, uint32_t linear)
{
	uint64_t before[STEER_SIDES][STEER_COUNTERS], after[STEER_SIDES][STEER_COUNTERS];
	int action, moved = -1, s, c;

	steer_prog_counters(&prog, before);
	action = run(side, frame, len, linear);
	steer_prog_counters(&prog, after);
	for (s = 0; s < STEER_SIDES; s++) {
		for (c = 0; c < STEER_COUNTERS; c++) {
			if (after[s][c] == before[s][c])
				continue;
			if (after[s][c] != before[s][c] + 1 || moved >= 0 || s != (int)side)
				fail_msg("%s: several counters moved, or the other side's", name);
			moved = c;
		}
	}
	if (moved < 0)
		fail_msg("%s (%u bytes): no counter moved, action %d", name, len, action);
	if (action != (moved == STEER_TAKEN  ? XDP_REDIRECT
		       : moved == STEER_HELD ? XDP_DROP
					     : XDP_PASS))
		fail_msg("%s: action %d, counted as %s", name, action, counter_name[moved]);
	return (enum steer_counter)moved;
}

static void expect(const char *name, enum steer_side side, const struct steer_frame *f,
		   enum steer_counter want)
{
	uint8_t frame[BUF];
	uint32_t len = steer_frame_build(frame, f, NULL);
	enum steer_counter got = judge(name, side, frame, len, 0);

	if (got != want)
		fail_msg("%s: %s, not %s", name, counter_name[got], counter_name[want]);
}

static bool passes(const char *name, enum steer_side side, const struct steer_frame *f)
{
	uint8_t frame[BUF];

	return judge(name, side, frame, steer_frame_build(frame, f, NULL), 0) != STEER_HELD;
}

#define LAN4 .src = "10.1.2.3", .dst = "10.2.200.1"
#define WAN4 .src = "10.2.200.1", .dst = "10.1.2.3"
#define LAN6 .src = "fd00:1::5", .dst = "fd00:2:9::7"

static const struct {
	const char *name;
	enum steer_side side;
	struct steer_frame f;
	enum steer_counter want;
} table[] = {
	{"hit", STEER_LAN, {LAN4}, STEER_TAKEN},
	{"hit from the WAN", STEER_WAN, {WAN4}, STEER_TAKEN},
	{"LAN's direction on the WAN", STEER_WAN, {LAN4}, STEER_NO_RULE},
	{"WAN's direction on the LAN", STEER_LAN, {WAN4}, STEER_NO_RULE},
	{"near source, unknown destination",
	 STEER_LAN,
	 {.src = "10.1.2.3", .dst = "10.4.0.1"},
	 STEER_NO_RULE},
	{"unknown source", STEER_LAN, {.src = "10.4.2.3", .dst = "10.2.0.1"}, STEER_NO_RULE},
	{"both near", STEER_LAN, {.src = "10.1.2.3", .dst = "10.1.2.4"}, STEER_NO_RULE},
	{"first address of a prefix",
	 STEER_LAN,
	 {.src = "10.1.0.0", .dst = "10.2.0.0"},
	 STEER_TAKEN},
	{"last address of a prefix",
	 STEER_LAN,
	 {.src = "10.1.255.255", .dst = "10.2.255.255"},
	 STEER_TAKEN},
	{"one below", STEER_LAN, {.src = "10.0.255.255", .dst = "10.2.0.0"}, STEER_NO_RULE},
	{"one above", STEER_LAN, {.src = "10.2.0.0", .dst = "10.2.0.0"}, STEER_NO_RULE},
	{"near of rule 0, far of rule 1",
	 STEER_LAN,
	 {.src = "10.1.2.3", .dst = "10.3.0.1"},
	 STEER_NO_RULE},
	{"covered by a shorter prefix",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.2.0.1"},
	 STEER_TAKEN},
	{"last rule, prefix of no bits",
	 STEER_LAN,
	 {.src = "10.9.1.1", .dst = "192.0.2.1"},
	 STEER_TAKEN},
	{"0/0 covers a longer prefix of another rule",
	 STEER_LAN,
	 {.src = "10.9.1.1", .dst = "10.2.0.1"},
	 STEER_TAKEN},

	{"VLAN",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100)}},
	 STEER_TAKEN},
	{"VLAN, from the WAN",
	 STEER_WAN,
	 {.src = "10.3.0.1", .dst = "10.1.5.9", .vlan = {TAG(100)}},
	 STEER_TAKEN},
	{"VLAN with priority bits",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100 | 0xf000)}},
	 STEER_TAKEN},
	{"VLAN rule, no tag", STEER_LAN, {.src = "10.1.5.9", .dst = "10.3.0.1"}, STEER_NO_RULE},
	{"untagged rule, tag", STEER_LAN, {LAN4, .vlan = {TAG(100)}}, STEER_NO_RULE},
	{"wrong VLAN",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(101)}},
	 STEER_NO_RULE},
	{"right VLAN, wrong prefix",
	 STEER_LAN,
	 {.src = "10.1.6.9", .dst = "10.3.0.1", .vlan = {TAG(100)}},
	 STEER_NO_RULE},
	{"priority tag", STEER_LAN, {LAN6, .vlan = {TAG(0)}}, STEER_TAKEN},
	{"priority tag, rule without", STEER_LAN, {LAN4, .vlan = {TAG(0)}}, STEER_NO_RULE},
	{"reserved VLAN id", STEER_LAN, {LAN4, .vlan = {TAG(4095)}}, STEER_OTHER},
	{"QinQ: the outer tag counts",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100), TAG(7)}, .tpid = 0x88a8},
	 STEER_TAKEN},
	{"QinQ: the inner does not",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(7), TAG(100)}, .tpid = 0x88a8},
	 STEER_NO_RULE},
	{"two tags of type 0x8100",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100), TAG(7)}},
	 STEER_TAKEN},
	{"QinQ, IPv6", STEER_LAN, {LAN6, .vlan = {TAG(100), TAG(7)}, .tpid = 0x88a8}, STEER_TAKEN},
	{"three tags", STEER_LAN, {LAN4, .vlan = {TAG(100), TAG(7), TAG(8)}}, STEER_OTHER},

	{"IPv6", STEER_LAN, {LAN6}, STEER_TAKEN},
	{"IPv6 from the WAN", STEER_WAN, {.src = "fd00:2::1", .dst = "fd00:1::1"}, STEER_TAKEN},
	{"IPv6, no rule", STEER_LAN, {.src = "fd00:3::1", .dst = "fd00:2::1"}, STEER_NO_RULE},
	{"IPv6, wrong side", STEER_WAN, {LAN6}, STEER_NO_RULE},
	{"IPv6, reserved next header", STEER_LAN, {LAN6, .proto = 0xff}, STEER_OTHER},
	{"IPv6 routing header", STEER_LAN, {LAN6, .proto = 43}, STEER_FRAGMENT},
	{"IPv6 fragment header", STEER_LAN, {LAN6, .proto = 44}, STEER_FRAGMENT},
	{"IPv6 destination options", STEER_LAN, {LAN6, .proto = 60}, STEER_FRAGMENT},
	{"IPv6 TCP", STEER_LAN, {LAN6, .proto = 6}, STEER_OTHER},
	{"IPv6 with version 4", STEER_LAN, {LAN6, .version = 4}, STEER_OTHER},

	{"first fragment", STEER_LAN, {LAN4, .frag = 0x2000}, STEER_FRAGMENT},
	{"later fragment", STEER_LAN, {LAN4, .frag = 0x0001}, STEER_FRAGMENT},
	{"last fragment", STEER_LAN, {LAN4, .frag = 0x1fff}, STEER_FRAGMENT},
	{"do not fragment", STEER_LAN, {LAN4, .frag = 0x4000}, STEER_TAKEN},
	{"IPv4 options", STEER_LAN, {LAN4, .options = 1}, STEER_FRAGMENT},
	{"as many as can be", STEER_LAN, {LAN4, .options = 10}, STEER_FRAGMENT},
	{"IPv4 with version 6", STEER_LAN, {LAN4, .version = 6}, STEER_OTHER},

	{"another UDP port", STEER_LAN, {LAN4, .dport = 4790}, STEER_OTHER},
	{"port with bytes swapped", STEER_LAN, {LAN4, .dport = 0xb712}, STEER_OTHER},
	{"TCP", STEER_LAN, {LAN4, .proto = 6}, STEER_OTHER},
	{"ICMP", STEER_LAN, {LAN4, .proto = 1}, STEER_OTHER},
	{"ARP", STEER_LAN, {LAN4, .ethertype = 0x0806}, STEER_OTHER},
	{"RoCEv1", STEER_LAN, {LAN6, .ethertype = 0x8915}, STEER_OTHER},
	{"LLDP", STEER_LAN, {LAN4, .ethertype = 0x88cc}, STEER_OTHER},
	{"802.3 length", STEER_LAN, {LAN4, .ethertype = 0x0040}, STEER_OTHER},
};

static void frames(void **state)
{
	uint8_t frame[BUF];
	struct steer_frame hop = {LAN6};
	uint32_t len;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect(table[i].name, table[i].side, &table[i].f, table[i].want);
	/* Hop-by-hop is next header 0, which the table takes for "UDP". */
	len = steer_frame_build(frame, &hop, NULL);
	frame[14 + 6] = 0;
	assert_int_equal(judge("hop-by-hop", STEER_LAN, frame, len, 0), STEER_FRAGMENT);
}

static const struct steer_frame whole[] = {
	{LAN4},
	{LAN6},
	{.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100)}},
	{.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100), TAG(7)}, .tpid = 0x88a8},
	{LAN6, .vlan = {TAG(100), TAG(7)}},
};

/* Cut off at every length: a runt as long as a BTH with its ICRC is not there, taken from then on.
 */
static void runts(void **state)
{
	uint8_t frame[BUF];
	uint32_t len, min, l;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		len = steer_frame_build(frame, &whole[i], &min);
		assert_true(min < len);
		for (l = 14; l <= len; l++) { /* test runs begin at 14 */
			enum steer_counter got = judge("runt", STEER_LAN, frame, l, 0);

			if (got != (l < min ? STEER_RUNT : STEER_TAKEN))
				fail_msg("frame %zu cut to %u: %s", i, l, counter_name[got]);
		}
	}
}

/* A driver may leave little or nothing of a long frame in the first buffer. */
static void short_first_buffer(void **state)
{
	struct steer_frame f;
	uint8_t frame[BUF];
	uint32_t len, l;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		f = whole[i];
		f.len = 300;
		len = steer_frame_build(frame, &f, NULL);
		if (i == 0 && run(STEER_LAN, frame, len, 100) == -EINVAL) {
			print_message(
				"this kernel cannot shorten the first buffer of a test frame\n");
			skip();
		}
		for (l = 14; l <= 120; l++)
			assert_int_equal(judge("short first buffer", STEER_LAN, frame, len, l),
					 STEER_TAKEN);
	}
	f = whole[0];
	f.len = 300;
	f.frag = 0x2000;
	len = steer_frame_build(frame, &f, NULL);
	assert_int_equal(judge("short first buffer, fragment", STEER_LAN, frame, len, 20),
			 STEER_FRAGMENT);
	prog.config->linear_only = 1;
	len = steer_frame_build(frame, &whole[0], NULL);
	assert_int_equal(judge("in one buffer", STEER_LAN, frame, len, 0), STEER_TAKEN);
	f.frag = 0;
	len = steer_frame_build(frame, &f, NULL);
	assert_int_equal(judge("in two buffers", STEER_LAN, frame, len, 200), STEER_TOO_LONG);
}

static void too_long(void **state)
{
	struct steer_frame f = {LAN4};

	(void)state;
	f.len = 4200;
	expect("4200 bytes", STEER_LAN, &f, STEER_TAKEN);
	f.len = 9000;
	expect("longest", STEER_LAN, &f, STEER_TAKEN);
	f.len = 9001;
	expect("one more", STEER_LAN, &f, STEER_TOO_LONG);
	prog.config->max_frame = 1500;
	f.len = 1500;
	expect("longest", STEER_LAN, &f, STEER_TAKEN);
	f.len = 1501;
	expect("one more", STEER_LAN, &f, STEER_TOO_LONG);

	/* without multi-buffer a frame must lie in one buffer, whatever its length */
	prog.config->max_frame = AFXDP_ONE_BUFFER;
	prog.config->linear_only = 1;
	f.len = PAGE_LINEAR;
	expect("one buffer", STEER_LAN, &f, STEER_TAKEN);
	f.len = PAGE_LINEAR + 1;
	expect("two buffers", STEER_LAN, &f, STEER_TOO_LONG);
}

static void heartbeat(void **state)
{
	const struct steer_frame hit = {LAN4}, miss = {LAN4, .dport = 1};

	(void)state;
	prog.config->stale_ns = 10000000000u; /* longer than a pause of this test can be */
	steer_prog_heartbeat(&prog, 0);
	expect("never", STEER_LAN, &hit, STEER_STALE);
	steer_prog_heartbeat(&prog, now() - prog.config->stale_ns - 1);
	expect("too old", STEER_LAN, &hit, STEER_STALE);
	expect("too old, not ours anyway", STEER_LAN, &miss, STEER_OTHER);
	steer_prog_heartbeat(&prog, now());
	expect("just now", STEER_LAN, &hit, STEER_TAKEN);
	steer_prog_heartbeat(&prog, now() + 1000000000u);
	expect("ahead of the program's clock", STEER_LAN, &hit, STEER_TAKEN);
}

static void no_socket(void **state)
{
	const struct steer_frame hit = {LAN4}, back = {WAN4};

	(void)state;
	set_socket(false);
	expect("no socket", STEER_LAN, &hit, STEER_NO_SOCKET);
	expect("no socket", STEER_WAN, &back, STEER_NO_SOCKET);
	set_socket(true);
	expect("socket", STEER_LAN, &hit, STEER_TAKEN);
}

/* The key of requests between two addresses. */
static struct flow_key requests(const char *src, const char *dst, uint32_t dqpn, uint16_t vlan)
{
	struct afxdp_prefix s = prefix(src, 0, 0), d = prefix(dst, 0, 0);
	struct flow_key k = {.dqpn = dqpn, .vlan = vlan};

	memcpy(k.src.b, s.addr, sizeof(s.addr));
	memcpy(k.dst.b, d.addr, sizeof(d.addr));
	return k;
}

enum away {
	AWAY_STALE,
	AWAY_SOCKET,
	AWAY_RULE,
	AWAY_TOO_LONG,
	AWAYS,
};

/* The daemon does not get packets any more, for this reason; the counter that says so. */
static enum steer_counter leave(enum away why)
{
	switch (why) {
	case AWAY_STALE:
		steer_prog_heartbeat(&prog, 0);
		return STEER_STALE;
	case AWAY_SOCKET:
		set_socket(false);
		return STEER_NO_SOCKET;
	case AWAY_RULE:
		assert_int_equal(steer_prog_rules(&prog, NULL, 0, NULL, 0, vlans), 0);
		return STEER_NO_RULE;
	default:
		prog.config->max_frame = 50;
		return STEER_TOO_LONG;
	}
}

static const struct {
	const char *lan, *wan;
	uint32_t tag[3];
	uint16_t tpid;
	uint16_t vlan;
} held_conns[] = {
	{"10.1.2.3", "10.2.200.1", {NO_TAG}, 0, FRAME_VLAN_NONE},
	{"fd00:1::5", "fd00:2:9::7", {NO_TAG}, 0, FRAME_VLAN_NONE},
	{"10.1.5.9", "10.3.0.1", {TAG(100 | 0x6000)}, 0, 100},
	{"10.1.5.9", "10.3.0.1", {TAG(100), TAG(7)}, 0x88a8, 100},
	{"fd00:1::5", "fd00:2:9::7", {TAG(100)}, 0, 100},
	{"fd00:1::5", "fd00:2:9::7", {TAG(0)}, 0, 0},
};

/* What is held is dropped when the daemon does not get it, and nothing else is. */
static void held(void **state)
{
	const uint32_t rqpn = 0xabcdef, lqpn = 0x000102;

	for (size_t i = 0; i < sizeof(held_conns) / sizeof(held_conns[0]); i++) {
		const char *l = held_conns[i].lan, *w = held_conns[i].wan;
		struct flow_key k = requests(l, w, rqpn, held_conns[i].vlan);
		struct steer_frame out = {.src = l, .dst = w, .tpid = held_conns[i].tpid, .qpn = rqpn}, in, f;

		memcpy(out.vlan, held_conns[i].tag, sizeof(out.vlan));
		in = out;
		in.src = w;
		in.dst = l;
		in.qpn = lqpn;
		for (enum away a = 0; a < AWAYS; a++) {
			enum steer_counter why;

			reset(state);
			assert_int_equal(steer_prog_hold(&prog, &k, lqpn), 0);
			expect("held, the daemon is there", STEER_LAN, &out, STEER_TAKEN);
			expect("held, the daemon is there", STEER_WAN, &in, STEER_TAKEN);
			why = leave(a);
			expect("held, requests", STEER_LAN, &out, STEER_HELD);
			expect("held, answers", STEER_WAN, &in, STEER_HELD);
			/* they are dropped on either port; another queue pair, host or VLAN is not */
			if (a == AWAY_STALE) {
				expect("held, a loop", STEER_WAN, &out, STEER_HELD);
				expect("held, a loop", STEER_LAN, &in, STEER_HELD);
			}
			f = out;
			f.qpn = lqpn;
			expect("requests to the other QPN", STEER_LAN, &f, why);
			f.qpn = rqpn ^ 0x010000;
			expect("highest byte", STEER_LAN, &f, why);
			f.qpn = rqpn ^ 0x000100;
			expect("middle byte", STEER_LAN, &f, why);
			f.qpn = rqpn ^ 0x000001;
			expect("lowest byte", STEER_LAN, &f, why);
			f = out;
			f.src = strchr(l, ':') ? "fd00:1::6" : "10.1.5.8";
			expect("another requester", STEER_LAN, &f, why);
			f = in;
			f.src = strchr(l, ':') ? "fd00:2:9::8" : held_conns[i].vlan == 100 ? "10.3.0.2"
											   : "10.2.0.2";
			expect("another responder", STEER_WAN, &f, why);
			f = out;
			f.dport = 4790;
			expect("not RoCEv2", STEER_LAN, &f, STEER_OTHER);
			f = out;
			memset(f.vlan, 0, sizeof(f.vlan));
			if (held_conns[i].vlan == FRAME_VLAN_NONE)
				f.vlan[0] = TAG(101);
			if (!passes("another VLAN", STEER_LAN, &f))
				fail_msg("another VLAN is held too");

			steer_prog_release(&prog, &k, lqpn);
			expect("let go", STEER_LAN, &out, why);
			expect("let go", STEER_WAN, &in, why);
		}
	}
	reset(state);
}

/* What is held is counted, found again, and let go of one by one. */
struct found {
	unsigned int n;
	struct flow_key key;
	uint32_t lqpn;
};

static void on_held(void *ctx, const struct flow_key *key, uint32_t lqpn)
{
	struct found *f = ctx;

	f->n++;
	f->key = *key;
	f->lqpn = lqpn;
}

static void held_map(void **state)
{
	struct flow_key a = requests("10.1.2.3", "10.2.200.1", 0x11, FRAME_VLAN_NONE);
	struct flow_key back = requests("10.2.200.1", "10.1.2.3", 0x22, FRAME_VLAN_NONE);
	struct flow_key v = requests("fd00:1::5", "fd00:2::1", 0x33, 100);
	struct steer_held half = {.dqpn = 0x44, .vid = STEER_UNTAGGED};
	struct steer_hold hold = {.other = 0x55, .what = STEER_REQUESTS};
	const struct bpf_map *map = prog.skel->maps.steer_held;
	struct found f = {0};

	assert_int_equal(steer_prog_held(&prog, on_held, &f), 0);
	assert_int_equal(steer_prog_hold(&prog, &a, 0x22), 0);
	assert_int_equal(steer_prog_hold(&prog, &a, 0x22), 0); /* twice is once */
	assert_int_equal(prog.config->held, 2);
	assert_int_equal(steer_prog_held(&prog, on_held, &f), 1);
	assert_memory_equal(&f.key, &a, sizeof(a));
	assert_int_equal(f.lqpn, 0x22);

	/* the same connection for the requests of its other end: both must let go */
	assert_int_equal(steer_prog_hold(&prog, &back, 0x11), 0);
	assert_int_equal(prog.config->held, 2);
	assert_int_equal(steer_prog_held(&prog, NULL, NULL), 2);
	steer_prog_release(&prog, &a, 0x22);
	assert_int_equal(prog.config->held, 2);
	assert_int_equal(steer_prog_held(&prog, on_held, &f), 1);
	assert_memory_equal(&f.key, &back, sizeof(back));
	assert_int_equal(f.lqpn, 0x11);

	assert_int_equal(steer_prog_hold(&prog, &v, 0x66), 0);
	assert_int_equal(prog.config->held, 4);
	steer_prog_release(&prog, &back, 0x77); /* of another connection: nothing */
	steer_prog_release(&prog, &back, 0xffffffff); /* whichever */
	assert_int_equal(prog.config->held, 2);
	f.n = 0;
	assert_int_equal(steer_prog_held(&prog, on_held, &f), 1);
	assert_int_equal(f.n, 1);
	assert_memory_equal(&f.key, &v, sizeof(v));
	assert_int_equal(f.lqpn, 0x66);

	/* the responder's QP is another requester's now: what the former lets go of is its own only */
	assert_int_equal(steer_prog_hold(&prog, &v, 0x67), 0);
	steer_prog_release(&prog, &v, 0x66);
	assert_int_equal(prog.config->held, 2);
	assert_int_equal(steer_prog_held(&prog, on_held, &f), 1);
	assert_int_equal(f.lqpn, 0x67);

	/* found at a start: halves are none, the rest stays */
	assert_int_equal(bpf_map__update_elem(map, &half, sizeof(half), &hold, sizeof(hold), 0), 0);
	half.dqpn = 0x45;
	hold.what = STEER_ANSWERS;
	assert_int_equal(bpf_map__update_elem(map, &half, sizeof(half), &hold, sizeof(hold), 0), 0);
	assert_int_equal(steer_prog_held_init(&prog), 0);
	assert_int_equal(prog.config->held, 2);
	assert_int_equal(steer_prog_held(&prog, on_held, &f), 1);
	assert_int_equal(f.lqpn, 0x67);
	steer_prog_release(&prog, &v, 0x67);
	reset(state);
}

/* As many as fit; one more is refused, and whatever was held is. */
static void held_full(void **state)
{
	struct flow_key k = requests("10.1.2.3", "10.2.200.1", 0, FRAME_VLAN_NONE);
	const struct steer_frame miss = {LAN4, .qpn = STEER_HELD_MAX}, hit = {LAN4, .qpn = 7};

	for (k.dqpn = 1; k.dqpn <= STEER_HELD_MAX / 2; k.dqpn++)
		if (steer_prog_hold(&prog, &k, k.dqpn ^ 0x800000))
			fail_msg("number %u", k.dqpn);
	k.dqpn = STEER_HELD_MAX;
	assert_int_equal(steer_prog_hold(&prog, &k, 1), -E2BIG);
	assert_int_equal(prog.config->held, STEER_HELD_MAX);
	assert_int_equal(steer_prog_held(&prog, NULL, NULL), STEER_HELD_MAX / 2);
	steer_prog_heartbeat(&prog, 0);
	expect("refused", STEER_LAN, &miss, STEER_STALE);
	expect("held", STEER_LAN, &hit, STEER_HELD);
	for (k.dqpn = 1; k.dqpn <= STEER_HELD_MAX / 2; k.dqpn++)
		steer_prog_release(&prog, &k, k.dqpn ^ 0x800000);
	expect("let go", STEER_LAN, &hit, STEER_STALE);
	reset(state);
}

/* Each change of rules takes effect, leaves nothing behind, or, when refused, changes nothing. */
static void rules(void **state)
{
	const struct steer_frame hit = {LAN4}, other = {.src = "10.7.0.1", .dst = "10.8.0.1"};
	struct afxdp_prefix n = prefix("10.7.0.0", 16, 1), f = prefix("10.8.0.0", 16, 1);
	struct afxdp_prefix bad[2] = {n, n};
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		assert_int_equal(steer_prog_rules(&prog, &n, 1, &f, 1, vlans), 0);
		expect("new rule", STEER_LAN, &other, STEER_TAKEN);
		expect("old rule", STEER_LAN, &hit, STEER_NO_RULE);
		set_rules();
		expect("new rule", STEER_LAN, &other, STEER_NO_RULE);
		expect("old rule", STEER_LAN, &hit, STEER_TAKEN);
	}
	bad[1].plen = 129;
	assert_int_equal(steer_prog_rules(&prog, bad, 2, &f, 1, vlans), -EINVAL);
	assert_int_equal(steer_prog_rules(&prog, &n, 1, bad, 2, vlans), -EINVAL);
	expect("refused change", STEER_LAN, &other, STEER_NO_RULE);
	expect("refused change", STEER_LAN, &hit, STEER_TAKEN);
	assert_int_equal(steer_prog_rules(&prog, NULL, 0, NULL, 0, vlans), 0);
	expect("no rules", STEER_LAN, &hit, STEER_NO_RULE);
}

static void most_prefixes(void **state)
{
	struct afxdp_prefix *p = calloc(STEER_PREFIXES + 1, sizeof(*p));
	const struct steer_frame last = {.src = "10.0.15.255", .dst = "10.0.0.0"},
				 beyond = {.src = "10.0.16.0", .dst = "10.0.0.0"};
	int i;

	(void)state;
	assert_non_null(p);
	for (i = 0; i <= STEER_PREFIXES; i++) {
		p[i] = prefix("10.0.0.0", 32, 1);
		p[i].addr[14] = (uint8_t)(i >> 8);
		p[i].addr[15] = (uint8_t)i;
	}
	for (i = 0; i < 3; i++) /* three: both sets are full, one of them for the second time */
		assert_int_equal(
			steer_prog_rules(&prog, p, STEER_PREFIXES, p, STEER_PREFIXES, vlans), 0);
	assert_int_equal(steer_prog_rules(&prog, p, STEER_PREFIXES + 1, p, 1, vlans), -E2BIG);
	expect("last of many", STEER_LAN, &last, STEER_TAKEN);
	expect("beyond many", STEER_LAN, &beyond, STEER_NO_RULE);
	free(p);
}

static bool has_prefix(const uint8_t *addr, const struct afxdp_prefix *p)
{
	unsigned int i;

	for (i = 0; i < p->plen; i++)
		if ((addr[i / 8] ^ p->addr[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

/* Longest match over expanded prefixes gives the rules of all prefixes that match. */
static void expansion(void **state)
{
	struct afxdp_prefix in[64], out[64];
	unsigned int round, k, b;
	long n, i, best;

	(void)state;
	srandom(4791);
	for (round = 0; round < 300; round++) {
		size_t count = 1 + (size_t)random() % 64;

		for (k = 0; k < count; k++) {
			/* two values a byte, lengths that nest: many duplicates, long chains */
			in[k] = (struct afxdp_prefix){.rules = 1ull << k};
			in[k].plen = (uint8_t)(random() % 4 ? random() % 41 : random() % 129);
			for (b = 0; b < 16; b++)
				in[k].addr[b] = random() & 1 ? 0x80 : 0;
		}
		n = steer_expand(in, count, out);
		assert_true(n > 0 && n <= (long)count);
		for (k = 0; k < 200; k++) {
			uint8_t addr[16];
			uint64_t want = 0;

			for (b = 0; b < 16; b++)
				addr[b] = random() & 1 ? 0x80 : 0;
			for (b = 0; b < count; b++)
				if (has_prefix(addr, &in[b]))
					want |= in[b].rules;
			for (i = 0, best = -1; i < n; i++)
				if (has_prefix(addr, &out[i]) &&
				    (best < 0 || out[i].plen > out[best].plen))
					best = i;
			assert_int_equal(best < 0 ? 0 : out[best].rules, want);
		}
	}
}

/* Damaged frames: whatever comes, one verdict, no change, no error. */
static void garbage(void **state)
{
	uint8_t frame[BUF];
	unsigned int i, k;

	(void)state;
	srandom(1);
	for (i = 0; i < 20000; i++) {
		uint32_t len = steer_frame_build(frame, &whole[(size_t)random() % 5], NULL);

		for (k = (unsigned int)random() % 4; k; k--)
			frame[(uint32_t)random() % len] = (uint8_t)random();
		judge("garbage", (enum steer_side)(random() & 1), frame,
		      14 + (uint32_t)random() % (len - 13), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(frames, reset),
		cmocka_unit_test_setup(runts, reset),
		cmocka_unit_test_setup(short_first_buffer, reset),
		cmocka_unit_test_setup(too_long, reset),
		cmocka_unit_test_setup(heartbeat, reset),
		cmocka_unit_test_setup(no_socket, reset),
		cmocka_unit_test_setup(held, reset),
		cmocka_unit_test_setup(held_map, reset),
		cmocka_unit_test_setup(held_full, reset),
		cmocka_unit_test_setup(rules, reset),
		cmocka_unit_test_setup(most_prefixes, reset),
		cmocka_unit_test(expansion),
		cmocka_unit_test_setup(garbage, reset),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

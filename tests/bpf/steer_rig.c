// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/bpf/steer_rig.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#define AREA (64 * AFXDP_CHUNK)

struct steer_prog prog;
uint64_t vlans[STEER_VLANS];

static uint8_t *area;
static struct xsk_umem *umem;
static struct xsk_socket *xsk;
static struct afxdp_prefix near[8], far[8];
static size_t nnear, nfar;

struct afxdp_prefix prefix(const char *addr, unsigned int plen, uint64_t rules)
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

void set_rules(void)
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

uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void set_socket(bool there)
{
	uint32_t zero = 0;

	if (there) {
		assert_int_equal(steer_prog_socket(&prog, STEER_LAN, 0, xsk_socket__fd(xsk)), 0);
		assert_int_equal(
			steer_prog_socket(&prog, STEER_PORT(STEER_WAN, 0), 0, xsk_socket__fd(xsk)),
			0);
	} else {
		bpf_map__delete_elem(prog.skel->maps.steer_xsk_lan, &zero, sizeof(zero), 0);
		bpf_map__delete_elem(prog.skel->maps.steer_xsk_wan, &zero, sizeof(zero), 0);
	}
}

int reset(void **state)
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

int setup(void **state)
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

int teardown(void **state)
{
	(void)state;
	xsk_socket__delete(xsk);
	xsk_umem__delete(umem);
	munmap(area, AREA);
	steer_prog_unload(&prog);
	return 0;
}

int run(enum steer_side side, const uint8_t *frame, uint32_t len, uint32_t linear)
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

const char *const counter_name[STEER_COUNTERS] = {
	[STEER_TAKEN] = "taken",       [STEER_OTHER] = "other", [STEER_NO_RULE] = "no rule",
	[STEER_FRAGMENT] = "fragment", [STEER_STALE] = "stale", [STEER_NO_SOCKET] = "no socket",
	[STEER_TOO_LONG] = "too long", [STEER_RUNT] = "runt",	[STEER_FENCED] = "held",
	[STEER_TAGS] = "tags",
};

enum steer_counter judge(const char *name, enum steer_side side, const uint8_t *frame, uint32_t len,
			 uint32_t linear)
{
	uint64_t before[STEER_PORTS][STEER_COUNTERS], after[STEER_PORTS][STEER_COUNTERS];
	int action, moved = -1, s, c;

	for (s = 0; s < STEER_PORTS; s++)
		steer_prog_counters(&prog, (unsigned int)s, before[s]);
	action = run(side, frame, len, linear);
	for (s = 0; s < STEER_PORTS; s++)
		steer_prog_counters(&prog, (unsigned int)s, after[s]);
	for (s = 0; s < STEER_PORTS; s++) {
		for (c = 0; c < STEER_COUNTERS; c++) {
			if (after[s][c] == before[s][c])
				continue;
			if (after[s][c] != before[s][c] + 1 || moved >= 0 ||
			    s != STEER_PORT((int)side, 0))
				fail_msg("%s: several counters moved, or another port's", name);
			moved = c;
		}
	}
	if (moved < 0)
		fail_msg("%s (%u bytes): no counter moved, action %d", name, len, action);
	if (action != (moved == STEER_TAKEN    ? XDP_REDIRECT
		       : moved == STEER_FENCED ? XDP_DROP
					       : XDP_PASS))
		fail_msg("%s: action %d, counted as %s", name, action, counter_name[moved]);
	return (enum steer_counter)moved;
}

void expect(const char *name, enum steer_side side, const struct steer_frame *f,
	    enum steer_counter want)
{
	uint8_t frame[BUF];
	uint32_t len = steer_frame_build(frame, f, NULL);
	enum steer_counter got = judge(name, side, frame, len, 0);

	if (got != want)
		fail_msg("%s: %s, not %s", name, counter_name[got], counter_name[want]);
}

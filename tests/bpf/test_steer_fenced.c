// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the XDP program holds: the packets of connections that only the daemon may carry
 * (steer_rig.h). */
#include <errno.h>

#include "tests/bpf/steer_rig.h"

static bool passes(const char *name, enum steer_side side, const struct steer_frame *f)
{
	uint8_t frame[BUF];

	return judge(name, side, frame, steer_frame_build(frame, f, NULL), 0) != STEER_FENCED;
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
	{"fd00:1::5", "fd00:2:9::7", {TAG(100)}, 0, 100},
	{"fd00:1::5", "fd00:2:9::7", {TAG(0x6000)}, 0, FRAME_VLAN_NONE},
};

/* What is held is dropped when the daemon does not get it, and nothing else is. */
static void held(void **state)
{
	const uint32_t rqpn = 0xabcdef, lqpn = 0x000102;

	for (size_t i = 0; i < sizeof(held_conns) / sizeof(held_conns[0]); i++) {
		const char *l = held_conns[i].lan, *w = held_conns[i].wan;
		struct flow_key k = requests(l, w, rqpn, held_conns[i].vlan);
		struct steer_frame out = {.src = l,
					  .dst = w,
					  .tpid = held_conns[i].tpid,
					  .qpn = rqpn},
				   in, f;

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
			expect("held, requests", STEER_LAN, &out, STEER_FENCED);
			expect("held, answers", STEER_WAN, &in, STEER_FENCED);
			/* they are dropped on either port; another queue pair, host or VLAN is not
			 * */
			if (a == AWAY_STALE) {
				expect("held, a loop", STEER_WAN, &out, STEER_FENCED);
				expect("held, a loop", STEER_LAN, &in, STEER_FENCED);
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
			f.src = strchr(l, ':')		    ? "fd00:2:9::8"
				: held_conns[i].vlan == 100 ? "10.3.0.2"
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
	steer_prog_release(&prog, &back, 0x77);	      /* of another connection: nothing */
	steer_prog_release(&prog, &back, 0xffffffff); /* whichever */
	assert_int_equal(prog.config->held, 2);
	f.n = 0;
	assert_int_equal(steer_prog_held(&prog, on_held, &f), 1);
	assert_int_equal(f.n, 1);
	assert_memory_equal(&f.key, &v, sizeof(v));
	assert_int_equal(f.lqpn, 0x66);

	/* the responder's QP is another requester's now: what the former lets go of is its own only
	 * */
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
	expect("held", STEER_LAN, &hit, STEER_FENCED);
	for (k.dqpn = 1; k.dqpn <= STEER_HELD_MAX / 2; k.dqpn++)
		steer_prog_release(&prog, &k, k.dqpn ^ 0x800000);
	expect("let go", STEER_LAN, &hit, STEER_STALE);
	reset(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(held, reset),
		cmocka_unit_test_setup(held_map, reset),
		cmocka_unit_test_setup(held_full, reset),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

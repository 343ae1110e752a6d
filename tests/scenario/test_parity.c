// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Parity of streams: most of what the WAN loses at the end of bursts is made from it, nothing is
 * made that was not sent, and neither bulk nor a link that loses nothing carries any.
 */
#include "engine/core/core.h"
#include "tests/scenario/scenario.h"
#include "wire/frame.h"
#include "wire/icrc.h"

#define RTT	 (40 * NSEC_PER_MSEC)
#define MESSAGES 1000u

static struct world *make_mtu(double loss, bool prefetch, bool altered, uint32_t mtu,
			      struct world_qp **q)
{
	struct rc_qp_config qc;
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.seed = 5;
	c.check_every = 101;
	c.check_custody = true;
	c.prefetch = prefetch;
	c.wan.delay_ns = RTT / 2;
	c.wan.rate_bps = 1000000000ull;
	c.engine.wan_rate = 120000000;
	c.engine.wan_auto = loss > 0 && loss < 0.005; /* METERs */
	w = world_create(&c);
	assert_non_null(w);
	scenario_qp(&qc, 1, mtu, RC_STRICT);
	if (mtu == PAYLOAD_MAX) {
		assert_int_equal(ip_addr_parse("fd00:1::1", &qc.src), 0);
		assert_int_equal(ip_addr_parse("fd00:2::1", &qc.dst), 0);
	}
	qc.depth = 32;
	qc.shadow = !altered;
	qc.no_verify = qc.no_land = altered;
	*q = world_connect(w, &qc, RC_STRICT);
	world_work(*q, 0, &(struct work){.ops = OPS_WRITE_SEND, .max = 32768, .left = 40});
	world_run_done(w, w->now + 60 * NSEC_PER_SEC);
	scenario_held(w, *q, 0);
	c.wan.loss = loss;
	for (int side = 0; side < 2; side++)
		world_set_wan(w, side, &c.wan);
	return w;
}

static struct world *make(double loss, bool prefetch, bool altered, struct world_qp **q)
{
	return make_mtu(loss, prefetch, altered, 1024, q);
}

/* So many messages are much less than a round trip of the link. */
#define BURST 10u

/* What WRITEs and SENDs, or READs, cost: packets sent again, and made. */
struct cost {
	uint64_t again, made, sent, wrong;
};

static struct cost run(struct world *w, struct world_qp *q, uint32_t ops, uint32_t burst)
{
	int from = ops & 1u << RC_READ ? 1 : 0; /* whose stream it is */
	struct cost c = {.again = engine_counter(w->engine[from], EC_RETX_WAN)};

	for (uint32_t n = 0; n < MESSAGES; n += burst) {
		world_work(q, 0,
			   &(struct work){.ops = ops,
					  .min = 32768,
					  .max = 32768,
					  .left = burst,
					  .outstanding = 8});
		scenario_finish(w, 120 * NSEC_PER_SEC);
	}
	c.again = engine_counter(w->engine[from], EC_RETX_WAN) - c.again;
	c.sent = engine_counter(w->engine[from], EC_PARITY_SENT);
	c.made = engine_counter(w->engine[!from], EC_PARITY_REPAIRED);
	c.wrong = engine_counter(w->engine[!from], EC_PARITY_WRONG);
	return c;
}

/* 32,000 packets, of which 1 % are lost: most of these are made. */
static void test_made(void **state)
{
	static const uint32_t ops[] = {OPS_WRITE_SEND, 1u << RC_READ};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world_qp *q;
		struct world *w = make(0.01, false, false, &q);
		const struct rc_stats *far = rc_qp_stats(q->side[1].qp);
		uint64_t again = far->duplicates;
		struct cost c = run(w, q, ops[i], BURST);

		print_message("made %d, sent again %d, parity %d, again to the responder %d\n",
			      (int)c.made, (int)c.again, (int)c.sent,
			      (int)(far->duplicates - again));
		assert_true(c.made > 150 && c.made + c.again / 2 < 450); /* 320 were lost */
		assert_true(c.again < c.made);
		assert_true(c.sent < 32000 / 8);
		assert_int_equal(c.wrong, 0);
		world_destroy(w);
	}
}

/* Six packets in a row are lost, in the mean: a peer of an older version gets them sent again, one
 * that knows of groups that lie apart makes most of them. */
static void test_in_a_row(void **state)
{
	struct cost c[2];

	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		struct world_qp *q;
		struct world *w = make(0, false, false, &q);
		struct engine *e = w->engine[0];
		struct wan_config wan = w->cfg.wan;

		if (!apart)
			engine_peer_features(e, 0, e->peer_features[0] & ~PEER_FEATURE_SPREAD);
		wan.burst_start = 0.001;
		wan.burst_end = 1.0 / 6;
		wan.burst_loss = 1;
		world_set_wan(w, 0, &wan);
		c[apart] = run(w, q, 1u << RC_WRITE, 3 * BURST);
		print_message("apart %d: made %d, sent again %d, parity %d\n", apart,
			      (int)c[apart].made, (int)c[apart].again, (int)c[apart].sent);
		assert_int_equal(c[apart].wrong, 0);
		assert_int_equal(e->link[0].depth, PARITY_DEPTH);
		world_destroy(w);
	}
	assert_true(c[1].made > 2 * c[0].made);
	assert_true(c[1].again < c[0].again / 2);
	assert_true(c[1].sent < 32000 / 8);
}

/* Amid a long transfer a repair hides behind what waits: parity follows only the last packets, two
 * round trips of 147 groups. */
static void test_bulk(void **state)
{
	struct world_qp *q;
	struct world *w = make(0.01, false, false, &q);
	struct cost c = run(w, q, 1u << RC_WRITE, MESSAGES);

	(void)state;
	print_message("made %d, sent again %d, parity %d\n", (int)c.made, (int)c.again,
		      (int)c.sent);
	assert_in_range(c.sent, PARITY_ROWS * 140, PARITY_ROWS * 300);
	assert_true(c.made > 50);
	world_destroy(w);
}

/* Where a round trip is nothing, processors have more to do than to add up parity. */
static void test_near(void **state)
{
	struct world_qp *q;
	struct world *w = make(0.01, false, false, &q);

	(void)state;
	for (int side = 0; side < 2; side++)
		engine_peer_rtt(w->engine[side], 0, 900 * NSEC_PER_USEC);
	assert_int_equal(run(w, q, OPS_WRITE_SEND, BURST).sent, 0);
	world_destroy(w);
}

static uint32_t drops, drops_in, seen;

/* A group in the second half of a burst loses so many packets, once. */
static bool some(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct frame f;

	(void)w;
	if (link != WORLD_WAN(0) || frame_parse(data, len, &f) != FRAME_OK ||
	    !(f.op->flags & OPF_REQUEST))
		return true;
	if (++seen > 200 && drops_in == PSN_NONE && f.psn % PARITY_GROUP == 0)
		drops_in = f.psn;
	if (drops_in == PSN_NONE || !drops || f.psn % PARITY_GROUP < 20)
		return true;
	drops--;
	return false;
}

/* Three of a group that end a burst are made, and nothing is sent again; of four none is made. */
static void test_rows(void **state)
{
	(void)state;
	for (uint32_t n = PARITY_ROWS; n <= PARITY_ROWS + 1; n++) {
		struct world_qp *q;
		struct world *w = make(0.01, false, false, &q);
		uint64_t made, again;

		run(w, q, 1u << RC_WRITE, BURST);
		w->cfg.wan.loss = 0;
		for (int side = 0; side < 2; side++)
			world_set_wan(w, side, &w->cfg.wan);
		made = engine_counter(w->engine[1], EC_PARITY_REPAIRED);
		again = engine_counter(w->engine[0], EC_RETX_WAN);
		drops = n;
		drops_in = PSN_NONE;
		seen = 0;
		w->filter = some;
		world_work(
			q, 0,
			&(struct work){
				.ops = 1u << RC_WRITE, .min = 32768, .max = 32768, .left = BURST});
		scenario_finish(w, NSEC_PER_SEC);
		assert_int_equal(drops, 0);
		made = engine_counter(w->engine[1], EC_PARITY_REPAIRED) - made;
		again = engine_counter(w->engine[0], EC_RETX_WAN) - again;
		assert_int_equal(made, n == PARITY_ROWS ? n : 0);
		assert_int_equal(again, n == PARITY_ROWS ? 0 : n);
		world_destroy(w);
	}
}

/* A link is known by what it loses, though most of that is made from parity and never told as lost:
 * METERs count what comes. */
static void test_hidden(void **state)
{
	struct world_qp *q;
	struct world *w = make(0.004, false, false, &q);
	const struct engine *e = w->engine[0];
	const struct lane *l = NULL;
	double loss;

	(void)state;
	run(w, q, 1u << RC_WRITE, BURST);
	for (uint32_t i = 0; i < e->nflows; i++)
		if (e->flows[i].used && e->flows[i].lane.role == ROLE_OPENER)
			l = &e->flows[i].lane;
	assert_non_null(l);
	loss = link_loss(e, l);
	print_message("loss %f\n", loss);
	assert_true(loss > 0.001 && loss < 0.006);
	world_destroy(w);
}

static void test_no_loss(void **state)
{
	struct world_qp *q;
	struct world *w = make(0, false, false, &q);

	(void)state;
	assert_int_equal(run(w, q, OPS_WRITE_SEND, BURST).sent, 0);
	world_destroy(w);
}

/* Somebody on the WAN who has no key changes the sum, and the ICRC accordingly. */
static bool forge(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	uint8_t *bytes = (uint8_t *)(uintptr_t)data;
	struct frame f;

	(void)w;
	(void)link;
	if (frame_parse(data, len, &f) != FRAME_OK || f.opcode != OP_PARITY_REQUESTS)
		return true;
	bytes[f.payload] ^= 1;
	put_le32(bytes + f.icrc, icrc_of(bytes, f.l3, f.icrc));
	return true;
}

static void test_forged(void **state)
{
	struct world_qp *q;
	struct world *w = make(0.01, false, false, &q);
	struct cost c;

	(void)state;
	w->filter = forge;
	c = run(w, q, OPS_WRITE_SEND, BURST);
	assert_int_equal(c.made, 0);
	assert_true(c.wrong > 100);
	world_destroy(w);
}

/* One packet of each group is another one at the far end than here, and its ICRC is right. */
static bool alter(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	uint8_t *bytes = (uint8_t *)(uintptr_t)data, b;
	struct frame f;

	(void)w;
	if (link != WORLD_WAN(0) || frame_parse(data, len, &f) != FRAME_OK ||
	    !(f.op->flags & OPF_REQUEST) || f.psn % PARITY_GROUP || !f.payload_len)
		return true;
	b = bytes[f.payload] ^ 1;
	icrc_patch(bytes, &f, f.payload, 1, &b);
	return true;
}

/* A CRC is linear: that of what would be made from it is right. Nothing may be made but that packet
 * itself, as it was sent: of 320 that are lost it is 10. */
static void test_altered(void **state)
{
	struct world_qp *q;
	struct world *w = make(0.01, false, true, &q);
	struct cost c;

	(void)state;
	w->filter = alter;
	c = run(w, q, 1u << RC_WRITE, BURST);
	assert_true(c.made < 30);
	assert_true(c.wrong > 100);
	world_destroy(w);
}

static uint64_t too_long;

/* A link of the MTU that we ask for, which drops what is longer. */
static bool narrow(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	(void)w;
	(void)link;
	(void)data;
	if (len <= ETH_HLEN_ + FRAME_MTU(PAYLOAD_MAX))
		return true;
	too_long++;
	return false;
}

/* Over IPv6 the first packet of a WRITE leaves no room for parity; the others are made all the
 * same. */
static void test_fits(void **state)
{
	struct world_qp *q;
	struct world *w = make_mtu(0.01, false, false, PAYLOAD_MAX, &q);
	struct cost c;

	(void)state;
	w->filter = narrow;
	c = run(w, q, 1u << RC_WRITE, BURST);
	assert_int_equal(too_long, 0);
	assert_int_equal(c.wrong, 0);
	assert_true(c.made > 30);
	world_destroy(w);
}

/* Parity tells no host of changed memory: what was READ ahead goes on to be given. */
static void test_no_signal(void **state)
{
	struct world_qp *q;
	struct world *w = make(0.01, true, false, &q);
	struct flow_key k = {0};
	struct cost c;
	uint32_t epoch;

	(void)state;
	assert_int_equal(ip_addr_parse("10.1.0.1", &k.src), 0);
	assert_int_equal(ip_addr_parse("10.2.0.1", &k.dst), 0);
	epoch = *pair_epoch(w->engine[0], &k);
	assert_true(epoch > 0);
	c = run(w, q, 1u << RC_READ, BURST);
	assert_true(c.made > 150);
	assert_int_equal(*pair_epoch(w->engine[0], &k), epoch);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),	  cmocka_unit_test(test_in_a_row),
		cmocka_unit_test(test_no_loss),	  cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_forged),	  cmocka_unit_test(test_altered),
		cmocka_unit_test(test_no_signal), cmocka_unit_test(test_fits),
		cmocka_unit_test(test_bulk),	  cmocka_unit_test(test_rows),
		cmocka_unit_test(test_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

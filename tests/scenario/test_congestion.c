// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast an appliance sends without reports of what arrives: over the WAN in single mode, in a
 * window, and the effect of congestion notifications; and how much goes to one port from many
 * lanes. Time is virtual, and each world the same in every run.
 */
#include "tests/scenario/scenario.h"

#include <inttypes.h>
#include <string.h>

#include "tests/scenario/world_priv.h"
#include "wire/build.h"

#define MIB   (1ull << 20)
#define RTT   (20 * MS)
#define MTU   1024u
#define GBIT  1000000000ull
#define LAN_G (25 * GBIT)

/* WRITEs of 64 KiB without end. */
static const struct work BULK = {
	.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = UINT64_MAX, .outstanding = 64};

/* One appliance, near the requester; the WAN carries @bps and queues @queue bytes at most, 0: no
 * limit. */
static struct world *single(uint64_t bps, uint64_t queue)
{
	struct world_config c;
	struct world *w;

	world_defaults(&c);
	c.single = true;
	c.appliance[1] = false;
	c.check_every = 997;
	c.path_mtu = MTU;
	c.wan.delay_ns = RTT / 2;
	c.wan.rate_bps = bps;
	c.wan.queue_bytes = queue;
	c.wan.store_bytes = 256 * MIB;
	c.lan.rate_bps = LAN_G;
	c.lan.store_bytes = 64 * MIB;
	c.engine.pool_bytes = 256 * MIB;
	w = world_create(&c);
	assert_non_null(w);
	return w;
}

/* A queue pair whose lane is held already, and small. */
static struct world_qp *hold(struct world *w, uint32_t ackreq_every)
{
	struct work k = {.ops = 1u << RC_SEND, .min = 64, .max = 64, .left = 64, .outstanding = 1};
	struct rc_qp_config qc;
	struct world_qp *q;

	scenario_qp(&qc, 1, MTU, RC_STRICT);
	qc.ackreq_every = ackreq_every;
	qc.timeout_exp = 17;
	q = world_connect(w, &qc, RC_STRICT);
	world_work(q, 0, &k);
	scenario_finish(w, 60 * SEC);
	scenario_held(w, q, 0);
	return q;
}

/* NTT-2: a host that asks for an ACK at the end of its messages only, and these are 4 MiB long: no
 * window of the appliance is over by a timeout. */
static void test_window_asks(void **state)
{
	struct work k = {.ops = 1u << RC_SEND, .min = 4 * MIB, .max = 4 * MIB, .left = 16};
	struct world *w = single(10 * GBIT, 0);
	struct world_qp *q = hold(w, 0);
	uint64_t began = w->now, before = engine_counter(w->engine[0], EC_TIMEOUTS);

	(void)state;
	world_work(q, 0, &k);
	scenario_finish(w, 60 * SEC);
	assert_int_equal(engine_counter(w->engine[0], EC_TIMEOUTS), before);
	assert_true(w->now - began < 15 * RTT);
	world_destroy(w);
}

struct usage {
	double share;	/* of what the link carries in a second */
	double dropped; /* by its queue, of what came to it */
};

/* A link of 1 Gb/s whose queue holds @queue bytes (0: any), in the second after the first one. */
static struct usage use(uint64_t queue)
{
	struct work k = BULK;
	struct world *w = single(GBIT, queue);
	struct world_qp *q = hold(w, 64);
	const struct wan_stats *s = wan_stats(w->link[WORLD_WAN(0)]);
	struct wan_stats before;
	struct usage u;
	uint64_t taken;

	world_work(q, 0, &k);
	world_run(w, w->now + SEC);
	before = *s;
	taken = rc_qp_stats(q->side[1].qp)->rx_bytes;
	world_run(w, w->now + SEC);
	assert_null(world_verify(w, false));
	u.share = (double)(rc_qp_stats(q->side[1].qp)->rx_bytes - taken) * 8 / GBIT;
	u.dropped = (double)(s->lost_queue - before.lost_queue) / (double)(s->sent - before.sent);
	print_message("queue %" PRIu64 ": %.1f %% of the link, %.2f %% dropped\n", queue,
		      100 * u.share, 100 * u.dropped);
	world_destroy(w);
	return u;
}

/* NTT-2: where the queue is short, the lane stays near what the link carries, and what it loses is
 * little; where it is long, the link is full. */
static void test_short_queue(void **state)
{
	struct usage u = use(GBIT / 8 / (SEC / RTT) / 10);

	(void)state;
	assert_true(u.share > 0.6);
	assert_true(u.dropped < 0.01);
	u = use(0);
	assert_true(u.share > 0.93); /* headers take 6 % */
	assert_true(u.dropped == 0);
}

/* ---- congestion notifications ---- */

#define SEEN   65536u
#define CNP_NS 50000u

/* The link marks what waits longer than @mark_ns, and the far host's network card says so. */
static struct {
	uint64_t mark_ns, said, cnps;
	uint64_t entered[SEEN];
	bool always; /* whatever waits: somebody forges them */
} notifier;

static void saw_enter(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct frame f;

	if (link == WORLD_WAN(0) && frame_parse(data, len, &f) == FRAME_OK)
		notifier.entered[f.psn % SEEN] = w->now;
}

static bool saw_leave(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct template t = {0};
	uint8_t cnp[BUILD_MAX];
	struct frame f;

	if (link != WORLD_WAN(0) || frame_parse(data, len, &f) != FRAME_OK ||
	    !(f.op->flags & OPF_REQUEST) || w->now < notifier.said + CNP_NS ||
	    (!notifier.always &&
	     w->now < notifier.entered[f.psn % SEEN] + w->cfg.wan.delay_ns + notifier.mark_ns))
		return true;
	notifier.said = w->now;
	notifier.cnps++;
	template_learn(&t, &f);
	template_mirror(&t);
	world_link_send(w, WORLD_WAN(1), cnp,
			build_cnp(cnp, &t, rc_qp_config(w->qp[0].side[0].qp)->lqpn));
	return true;
}

static void notify(struct world *w)
{
	memset(&notifier, 0, sizeof(notifier));
	notifier.mark_ns = MS;
	w->tap = saw_enter;
	w->filter = saw_leave;
}

/* ENG-20: a link that marks what waits for longer than 1 ms is used, loses nothing, and keeps its
 * queue short, though it could hold what fills it five times. */
static void test_notified(void **state)
{
	struct work k = BULK;
	struct world *w = single(GBIT, 5 * GBIT / 8 / (SEC / RTT));
	struct world_qp *q = hold(w, 64);
	const struct wan_stats *s = wan_stats(w->link[WORLD_WAN(0)]);
	struct conn_info ci;
	uint64_t taken;

	(void)state;
	notify(w);
	world_work(q, 0, &k);
	world_run(w, w->now + SEC);
	taken = rc_qp_stats(q->side[1].qp)->rx_bytes;
	world_run(w, w->now + SEC);
	assert_null(world_verify(w, false));
	assert_true(world_conn(w, 0, q, &ci));
	taken = rc_qp_stats(q->side[1].qp)->rx_bytes - taken;
	print_message("%.1f %% of the link, %" PRIu64 " lost, longest queue %" PRIu64 ", %" PRIu64
		      " notifications, %" PRIu64 " heeded\n",
		      100.0 * (double)taken * 8 / GBIT, s->lost_queue, s->queue_peak_bytes,
		      notifier.cnps, engine_counter(w->engine[0], EC_CNP_HEEDED));
	assert_int_equal(s->lost_queue, 0);
	assert_true((double)taken * 8 / GBIT > 0.8);
	assert_true(engine_counter(w->engine[0], EC_CNP_HEEDED) > 0);
	assert_true(engine_counter(w->engine[0], EC_CNP_HEEDED) <= 2 * SEC / RTT);
	world_destroy(w);
}

/* ENG-20: a stream of forged notifications reduces a lane to its smallest window, 16 packets in a
 * round trip, and no further. When it ends, the lane is as fast as before. */
static void test_notified_in_vain(void **state)
{
	struct work k = BULK;
	struct world *w = single(GBIT, 0);
	struct world_qp *q = hold(w, 64);
	uint64_t taken, slow, fast;

	(void)state;
	notify(w);
	notifier.always = true;
	world_work(q, 0, &k);
	world_run(w, w->now + SEC);
	taken = rc_qp_stats(q->side[1].qp)->rx_bytes;
	world_run(w, w->now + SEC);
	slow = rc_qp_stats(q->side[1].qp)->rx_bytes - taken;
	w->filter = NULL;
	world_run(w, w->now + SEC);
	taken = rc_qp_stats(q->side[1].qp)->rx_bytes;
	world_run(w, w->now + SEC);
	fast = rc_qp_stats(q->side[1].qp)->rx_bytes - taken;
	print_message("%" PRIu64 " and %" PRIu64 " bytes in a second\n", slow, fast);
	assert_true(slow > 15 * MTU * (SEC / RTT));
	assert_true(slow < 64 * MTU * (SEC / RTT));
	assert_true((double)fast * 8 / GBIT > 0.9);
	assert_null(world_verify(w, false));
	world_destroy(w);
}

/* ---- many lanes, one port ---- */

#define LANES 512u

/* So many lanes between two appliances, held already. The port to the far host takes no frame while
 * 512 KiB wait in it. */
static struct world *incast(struct world_qp *q[])
{
	struct work hello = {
		.ops = 1u << RC_SEND, .min = 64, .max = 64, .left = 16, .outstanding = 1};
	struct world_config c;
	struct rc_qp_config qc;
	struct world *w;

	world_defaults(&c);
	c.check_every = 99991;
	c.path_mtu = 4096;
	c.qps_max = LANES;
	c.engine.max_conns = 2 * LANES;
	c.engine.pool_bytes = 1024 * MIB;
	c.wan.delay_ns = RTT / 2;
	c.wan.rate_bps = 10 * GBIT;
	c.wan.store_bytes = c.lan.store_bytes = 512 * MIB;
	c.lan.rate_bps = 10 * GBIT;
	c.lan_ring = MIB / 2;
	w = world_create(&c);
	assert_non_null(w);
	for (uint32_t i = 0; i < LANES; i++) {
		scenario_qp(&qc, i, 4096, RC_STRICT);
		qc.timeout_exp = 19;
		qc.mr_size = qc.rmr_size = 65536;
		qc.shadow = false;
		q[i] = world_connect(w, &qc, RC_STRICT);
		world_work(q[i], 0, &hello);
	}
	scenario_finish(w, 60 * SEC);
	for (uint32_t i = 0; i < LANES; i++)
		scenario_held(w, q[i], 0);
	return w;
}

/*
 * FAST-6: what 512 lanes bring over the WAN goes to one host by a port with a quarter of its rate.
 * What the port does not take waits: nothing is lost in it and nothing is sent twice, and no lane
 * takes the delay of its turn for a loss.
 */
static void test_incast(void **state)
{
	struct work k = {.ops = 1u << RC_WRITE, .min = 65536, .max = 65536, .left = 8};
	static struct world_qp *q[LANES];
	struct world *w = incast(q);
	struct wan_config lan = w->cfg.lan;
	uint64_t again = engine_counter(w->engine[1], EC_RETX_LAN),
		 timeouts = engine_counter(w->engine[1], EC_TIMEOUTS), gaps = 0;

	(void)state;
	lan.rate_bps /= 4;
	wan_set(w->link[WORLD_LAN_OUT(1)], &lan);
	for (uint32_t i = 0; i < LANES; i++) {
		gaps += rc_qp_stats(q[i]->side[1].qp)->out_of_seq;
		world_work(q[i], 0, &k);
	}
	scenario_finish(w, 60 * SEC);
	again = engine_counter(w->engine[1], EC_RETX_LAN) - again;
	timeouts = engine_counter(w->engine[1], EC_TIMEOUTS) - timeouts;
	print_message("refused by the port %" PRIu64 ", longest queue %" PRIu64 ", again %" PRIu64
		      ", timeouts %" PRIu64 "\n",
		      engine_counter(w->engine[1], EC_TX_FULL),
		      wan_stats(w->link[WORLD_LAN_OUT(1)])->queue_peak_bytes, again, timeouts);
	for (uint32_t i = 0; i < LANES; i++)
		gaps -= rc_qp_stats(q[i]->side[1].qp)->out_of_seq;
	assert_int_equal(gaps, 0);
	assert_true(engine_counter(w->engine[1], EC_TX_FULL) > 0);
	assert_int_equal(again, 0);
	assert_int_equal(timeouts, 0);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window_asks), cmocka_unit_test(test_short_queue),
		cmocka_unit_test(test_notified),    cmocka_unit_test(test_notified_in_vain),
		cmocka_unit_test(test_incast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

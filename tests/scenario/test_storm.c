// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Everything at once, under audit. The audit looks at every ACK and NAK that reaches host 0 while
 * its lane is held, with the eyes of the requester itself: never the PSN of a READ or atomic, never
 * beyond what was sent, and the exact MSN.
 */
#include "tests/lab/model/rc_internal.h"
#include "tests/scenario/invariant_rig.h"
#include "wire/icrc.h"
#include "wire/psn.h"

/* ---- the audit ---- */

/*
 * The MSN of an ACK that covers all below some request must be the number of that before it; the
 * responder itself may have accepted READs and atomics right behind, and have said so already.
 */
static const char *audit_msn(const struct rc_qp *qp, uint64_t next, uint32_t msn)
{
	const struct rc_requester *q = &qp->req;

	for (uint64_t i = next; i < q->tail; i++) {
		const struct rc_wqe *w = rc_wqe(qp, i);

		if (((w->ssn - 1) & PSN_MASK) == msn)
			return NULL;
		if (!rc_op_answered(w->wr.op))
			return "audit: wrong MSN";
	}
	return (q->ssn & PSN_MASK) == msn ? NULL : "audit: wrong MSN";
}

static const char *audit_ack(const struct rc_qp *qp, const struct frame *f)
{
	const struct rc_requester *q = &qp->req;
	uint8_t s = frame_aeth_syndrome(f);
	uint32_t end = aeth_is_ack(s) ? psn_add(f->psn, 1) : f->psn;
	uint64_t i;

	if (psn_after(end, q->sent_end))
		return "audit: an ACK or NAK beyond anything sent";
	if (!psn_after(end, q->una))
		return NULL; /* says nothing new */
	for (i = q->head; i < q->tail; i++) {
		const struct rc_wqe *w = rc_wqe(qp, i);
		uint32_t w_end = psn_add(w->first_psn, w->npsn);

		if (psn_after(w_end, end))
			break;
		if (rc_op_answered(w->wr.op) && aeth_is_ack(s) && w_end == end)
			return "audit: an ACK bears the PSN of a READ or atomic";
	}
	return audit_msn(qp, i, frame_aeth_msn(f));
}

static bool audit(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct frame f;

	if (link != WORLD_LAN_OUT(0) || frame_parse(data, len, &f) != FRAME_OK ||
	    f.opcode != OP_ACK || !icrc_ok(&f))
		return true;
	for (uint32_t i = 0; i < w->nqps && !w->violation; i++) {
		struct rc_qp *qp = w->qp[i].side[0].qp;

		if (rc_qp_config(qp)->lqpn != f.dqpn || rc_qp_in_error(qp) ||
		    lane_state(w, 0, &w->qp[i]) != LANE_HELD)
			continue;
		w->violation = audit_ack(qp, &f);
	}
	return true;
}

/* ---- the storm ---- */

/*
 * Guards against the unforeseen: random work on a few queue pairs in both directions over impaired
 * links, while peers come and go, engines are emptied, rules change their policy, and acceptors
 * lose their memory; the audit listens. What was told and what was executed must be right at all
 * times, and permissive hosts, which never give up, must get through.
 */
static void storm(uint64_t seed, bool single)
{
	struct world_config c;
	struct world *w;
	struct prng r;
	uint32_t n;

	prng_init(&r, seed);
	world_defaults(&c);
	c.seed = seed;
	c.check_every = 199;
	c.single = single;
	c.appliance[1] = !single;
	c.policy = prng_below(&r, POLICIES);
	c.engine.pool_bytes = prng_below(&r, 2) ? 4 << 20 : 32 << 20;
	c.engine.wan_rate = prng_below(&r, 2) ? 120000000 : 0;
	c.wan.delay_ns = prng_below(&r, 5000) * 1000 + 1000;
	c.wan.loss = prng_below(&r, 3) * 0.01;
	c.wan.dup = prng_below(&r, 3) * 0.01;
	c.wan.reorder = prng_below(&r, 3) * 0.02;
	c.wan.reorder_ns = 1 * MS;
	c.wan.corrupt = prng_below(&r, 2) * 0.005;
	c.report_loss = prng_below(&r, 3) * 0.05;
	if (prng_below(&r, 2)) {
		c.lan.loss = 0.002;
		c.lan.dup = 0.002;
	}
	w = make(&c);
	w->filter = audit;
	n = 1 + prng_below(&r, 4);
	for (uint32_t i = 0; i < n; i++) {
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work k = {.ops = prng_below(&r, 2) ? OPS_ALL : OPS_WRITE_SEND,
				 .max = 1 + prng_below(&r, 30000),
				 .left = 800,
				 .outstanding = prng_below(&r, 2) ? 4 : 0};

		scenario_qp(&qc, i, 256u << prng_below(&r, 5), RC_PERMISSIVE);
		qc.sq_psn = (uint32_t)prng_next(&r) & PSN_MASK;
		qc.rq_psn = (uint32_t)prng_next(&r) & PSN_MASK;
		qc.rnr_p = prng_below(&r, 3) ? 0 : 0.02;
		q = world_connect(w, &qc, RC_PERMISSIVE);
		world_work(q, 0, &k);
		if (prng_below(&r, 2))
			world_work(q, 1, &k);
	}
	for (int i = 0; i < 12; i++) {
		int side = single ? 0 : (int)prng_below(&r, 2);

		world_run(w, w->now + prng_below(&r, 400) * MS);
		switch (prng_below(&r, 4)) {
		case 0:
			if (!single) {
				world_peer(w, side, PEER_DOWN);
				world_run(w, w->now + prng_below(&r, 300) * MS);
				world_peer(w, side, PEER_UP);
			}
			break;
		case 1:
			w->cfg.policy = prng_below(&r, POLICIES);
			for (int s = 0; s < 2 && !single; s++)
				rules(w, s, true, 0);
			break;
		default:
			break;
		}
	}
	scenario_finish(w, 600 * SEC);
	judge(w, w->faults[0] + w->faults[1] ? "custody was lost" : NULL);
	finish(w);
}

static void test_storm(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++)
		storm(seed, false);
	for (uint64_t seed = 20; seed <= 30; seed++)
		storm(seed, true);
	for (uint64_t seed = 101; seed <= 115; seed++)
		storm(seed, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

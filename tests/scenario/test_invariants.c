/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariants of engine.md under attack: each test drives one path on which a packet could be lost, told
 * wrongly, or wait for ever, as narrow as it can be made. Each begins with the sentence that says what it
 * guards against.
 *
 * The audit looks at every ACK and NAK that reaches host 0 while its lane is held, with the eyes of the
 * requester itself: never the PSN of a READ or atomic, never beyond what was sent, and the exact MSN.
 */
#include "tests/scenario/scenario.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lab/model/cm_emit.h"
#include "tests/lab/model/rc_internal.h"
#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/psn.h"

/* A loop without end must end the run, not hang it. */
#define WATCHDOG_S 240

static struct world *make(struct world_config *c)
{
	struct world *w = world_create(c);

	assert_non_null(w);
	alarm(WATCHDOG_S);
	return w;
}

static void finish(struct world *w)
{
	world_destroy(w);
	alarm(0);
}

static void judge(struct world *w, const char *bad)
{
	if (!bad)
		return;
	world_dump(w, stderr);
	fail_msg("seed %llu: %s", (unsigned long long)w->cfg.seed, bad);
}

static void post(struct world_qp *q, int side, enum rc_op op, uint32_t length)
{
	const struct rc_qp_config *c = rc_qp_config(q->side[side].qp);
	struct rc_wr wr = {.op = op, .length = length, .va = c->rmr_va};

	assert_int_equal(rc_post(q->side[side].qp, q->w->now, &wr), 0);
}

/* The lane of host 0's requests gets held, and everything is quiet then. */
static void get_held(struct world *w, struct world_qp *q)
{
	for (int i = 0; i < 40; i++) {
		post(q, 0, RC_WRITE, i ? 64 : 2 * rc_qp_config(q->side[0].qp)->mtu);
		world_run(w, w->now + 60 * MS);
	}
	scenario_finish(w, 20 * SEC);
	scenario_held(w, q, 0);
}

static uint8_t lane_state(struct world *w, int side, const struct world_qp *q)
{
	struct conn_info ci;

	return world_conn(w, side, q, &ci) ? ci.lane[LANE_OUT].state : LANE_WATCH;
}

/* ---- the audit ---- */

/*
 * The MSN of an ACK that covers all below some request must be the number of that before it; the responder
 * itself may have accepted READs and atomics right behind, and have said so already.
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

	if (link != WORLD_LAN_OUT(0) || frame_parse(data, len, &f) != FRAME_OK || f.opcode != OP_ACK ||
	    !icrc_ok(&f))
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

/* ---- reads ---- */

struct drop {
	int link;
	uint8_t opcode;
	uint32_t n; /* so many of them */
};

static bool drop_some(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct drop *d = w->user;
	struct frame f;

	if (link != d->link || !d->n || frame_parse(data, len, &f) != FRAME_OK || f.opcode != d->opcode)
		return true;
	d->n--;
	return false;
}

/*
 * Guards against a lane that waits for an answer that it has had: two READs, the first one's answer lost on
 * the responder's LAN, the second one's not, and silence then.
 */
static void test_answers_out_of_turn(void **state)
{
	(void)state;
	for (int single = 0; single < 2; single++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;
		struct drop d = {.link = single ? WORLD_WAN(1) : WORLD_LAN_IN(1),
				 .opcode = OP_READ_RESPONSE_ONLY};

		world_defaults(&c);
		c.check_every = 1;
		c.wan.delay_ns = 2 * MS;
		c.single = single;
		c.appliance[1] = !single;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, RC_STRICT);
		q = world_connect(w, &qc, RC_STRICT);
		get_held(w, q);
		w->filter = drop_some;
		w->user = &d;
		d.n = 1;
		post(q, 0, RC_READ, 512);
		post(q, 0, RC_READ, 512);
		scenario_finish(w, 20 * SEC);
		world_run(w, w->now + 60 * SEC);
		assert_int_equal(w->faults[0] + w->faults[1], 0);
		assert_int_equal(engine_custody(w->engine[0], -1, w->now).packets, 0);
		post(q, 0, RC_WRITE, 64);
		scenario_finish(w, 20 * SEC);
		assert_int_equal(w->faults[0], 0);
		finish(w);
	}
}

/*
 * Guards against an atomic that the responder no longer remembers: the reports of many answered atomics are
 * lost, then the acceptor loses its memory. What was answered must not be sent from the start again.
 */
static void test_atomics_over_restart(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct wan_config rep, lost;
	struct work k = {.ops = 1u << RC_FETCH_ADD, .left = 100000, .outstanding = 1};

	(void)state;
	world_defaults(&c);
	c.check_every = 1;
	c.wan.delay_ns = 1 * MS;
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	q = world_connect(w, &qc, RC_STRICT);
	get_held(w, q);
	rep = lost = *wan_config(w->reports[1]);
	lost.loss = 1;
	wan_set(w->reports[1], &lost);
	world_work(q, 0, &k);
	world_run(w, w->now + 400 * MS);
	assert_true(q->side[0].ok > 60);
	q->side[0].work.left = 5;
	wan_set(w->reports[1], &rep);
	world_restart(w, 1);
	world_run_done(w, w->now + 100 * SEC);
	judge(w, w->faults[0] + w->faults[1] ? "custody was lost" : NULL);
	scenario_finish(w, 1 * SEC);
	finish(w);
}

/*
 * Guards against an answer that comes before the acceptor has sent the question (it lost its memory meanwhile, or
 * the packet is a stranger's): the true answer must not be taken for one that was had already.
 */
static void test_answer_before_question(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	uint8_t out[FRAME_MAX], payload[512] = {0};
	struct template t;
	struct build_spec s = {.t = &t,
			       .opcode = OP_READ_RESPONSE_ONLY,
			       .syndrome = AETH_ACK_UNLIMITED,
			       .payload = payload,
			       .payload_len = sizeof(payload)};

	(void)state;
	world_defaults(&c);
	c.check_every = 1;
	c.wan.delay_ns = 1 * MS;
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	qc.recv_depth = 1;
	qc.min_rnr_timer = 31; /* half a second */
	q = world_connect(w, &qc, RC_STRICT);
	get_held(w, q);
	rc_qp_set_recv(q->side[1].qp, w->now, false, 0, 0);
	post(q, 0, RC_SEND, 64);
	post(q, 0, RC_SEND, 64);
	world_run(w, w->now + 10 * MS);
	/* this one waits at the acceptor for the end of the RNR delay */
	s.psn = rc_qp_sent_end(q->side[0].qp);
	post(q, 0, RC_READ, sizeof(payload));
	world_run(w, w->now + 10 * MS);
	s.dqpn = qc.lqpn;
	template_make(&t, qc.dmac, qc.smac, FRAME_VLAN_NONE, &qc.dst, &qc.src, qc.sport);
	engine_rx(w->engine[1], PORT_LAN, out, build_packet(out, &s), w->now);
	engine_tick(w->engine[1], w->now);
	/* the strict host ignores nothing in its window: what was let through to it is not looked at here */
	rc_qp_set_recv(q->side[1].qp, w->now, true, 0, 0);
	world_run(w, w->now + 60 * SEC);
	judge(w, w->violation);
	judge(w, w->faults[0] + w->faults[1] ? "custody was lost" : NULL);
	judge(w, engine_custody(w->engine[0], -1, w->now).packets ? "custody never ends" : NULL);
	finish(w);
}

/* Puts a packet of host 0's requester into engine 0 as if it came from the LAN. */
static void inject(struct world *w, struct world_qp *q, uint8_t opcode, uint32_t psn, uint32_t length,
		   uint32_t payload_len)
{
	const struct rc_qp_config *c = rc_qp_config(q->side[0].qp);
	uint8_t out[FRAME_MAX], payload[64] = {0};
	struct template t;
	struct build_spec s = {.t = &t,
			       .opcode = opcode,
			       .dqpn = c->rqpn,
			       .psn = psn,
			       .va = c->rmr_va,
			       .rkey = c->rmr_rkey,
			       .length = length,
			       .payload = payload,
			       .payload_len = payload_len};

	template_make(&t, c->smac, c->dmac, FRAME_VLAN_NONE, &c->src, &c->dst, c->sport);
	engine_rx(w->engine[0], PORT_LAN, out, build_packet(out, &s), w->now);
	engine_tick(w->engine[0], w->now);
}

/*
 * Guards against a READ whose range does not fit into 24 bits: it must not be kept for ever, nor leak what it
 * takes in the pool.
 */
static void test_endless_read(void **state)
{
	static const uint32_t length[] = {0xffffffffu, 0x80000001u, 0x80000000u, 0x7fffffffu};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;
		struct engine_memory m;
		uint32_t psn;

		world_defaults(&c);
		c.single = true;
		c.appliance[1] = false;
		c.path_mtu = 256;
		c.wan.delay_ns = 1 * MS;
		w = make(&c);
		scenario_qp(&qc, 1, 256, RC_STRICT);
		q = world_connect(w, &qc, RC_STRICT);
		get_held(w, q);
		psn = rc_qp_sent_end(q->side[0].qp);
		inject(w, q, OP_READ_REQUEST, psn, length[i], 0);
		judge(w, engine_check(w->engine[0]));
		world_run(w, w->now + 1 * SEC);
		/* the queue pair is used anew, far away */
		for (uint32_t n = 0; n < 8; n++)
			inject(w, q, OP_WRITE_ONLY, psn_add(psn, 0x345678 + n), 4, 4);
		world_run(w, w->now + 20 * SEC);
		judge(w, engine_check(w->engine[0]));
		engine_memory(w->engine[0], &m);
		assert_int_equal(m.custody_used, 0);
		finish(w);
	}
}

static void rules(struct world *w, int side, bool any, uint32_t path_mtu)
{
	struct rule r = {.nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .learn = LEARN_CM | LEARN_PSN,
			 .policy = (uint8_t)w->cfg.policy,
			 .path_mtu = path_mtu};

	engine_rules(w->engine[side], &r, any, w->now);
}

/* Guards against state that stays behind: a lane lives through more than 2^23 PSNs. */
static void test_long_life(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct wan_config cut;
	uint32_t from;

	(void)state;
	world_defaults(&c);
	c.wan.delay_ns = 100000;
	c.wan.rate_bps = c.lan.rate_bps = 0;
	c.check_every = 100003;
	w = make(&c);
	scenario_qp(&qc, 1, 256, RC_STRICT);
	qc.shadow = false;
	qc.no_verify = qc.no_land = true;
	qc.timeout_exp = 14;
	q = world_connect(w, &qc, RC_STRICT);
	get_held(w, q);
	from = rc_qp_una(q->side[0].qp);
	world_work(q, 0, &(struct work){.ops = 1u << RC_WRITE, .min = 262144, .max = 262144, .left = 8300});
	for (int i = 0; i < 600; i++) {
		world_run(w, w->now + 100 * MS);
		if (!q->side[0].work.left && !rc_qp_queued(q->side[0].qp))
			break;
		if (rc_qp_in_error(q->side[0].qp))
			break;
	}
	judge(w, w->violation);
	judge(w, rc_qp_in_error(q->side[0].qp) ? "a queue pair failed" : NULL);
	assert_true(((rc_qp_una(q->side[0].qp) - from) & PSN_MASK) > 1 << 23);
	for (int i = 0; i < 5; i++) {
		post(q, 0, RC_READ, 1000);
		post(q, 0, RC_WRITE, 1000);
		post(q, 0, RC_FETCH_ADD, 8);
	}
	world_run_done(w, w->now + 20 * SEC);
	judge(w, w->violation);
	judge(w, w->faults[0] + w->faults[1] ? "custody was lost" : NULL);
	judge(w, rc_qp_queued(q->side[0].qp) ? "a request is not completed" : NULL);
	judge(w, engine_custody(w->engine[0], -1, w->now).packets ? "custody never ends" : NULL);
	judge(w, rc_check_all(q->side[0].qp, q->side[1].qp) ? "not all has arrived" : NULL);
	/* a policy that begins to count only now */
	w->cfg.policy = POLICY_HONEST;
	for (int s = 0; s < 2; s++)
		rules(w, s, true, 0);
	cut = *wan_config(w->link[WORLD_WAN(0)]);
	cut.down = true;
	world_set_wan(w, 0, &cut);
	post(q, 0, RC_WRITE, 1000);
	world_run(w, w->now + 20 * MS);
	judge(w, rc_qp_queued(q->side[0].qp) ? NULL : "honest, and yet told before the responder has it");
	cut.down = false;
	world_set_wan(w, 0, &cut);
	world_run_done(w, w->now + 20 * SEC);
	judge(w, rc_check_all(q->side[0].qp, q->side[1].qp) ? "not all has arrived" : NULL);
	finish(w);
}

/* ---- lists ---- */

/* Guards against lists of lanes that a lane leaves by being closed: here that of lanes that wait for room. */
static void test_close_while_waiting_for_room(void **state)
{
	struct world_config c;
	struct world *w;
	struct world_qp *q[6];
	struct wan_config cut;

	(void)state;
	world_defaults(&c);
	c.engine.pool_bytes = 4 << 20;
	c.wan.delay_ns = 1 * MS;
	w = make(&c);
	for (uint32_t i = 0; i < 6; i++) {
		struct rc_qp_config qc;

		scenario_qp(&qc, i, 1024, RC_PERMISSIVE);
		q[i] = world_connect(w, &qc, RC_PERMISSIVE);
		get_held(w, q[i]);
	}
	cut = *wan_config(w->link[WORLD_WAN(0)]);
	cut.down = true;
	world_set_wan(w, 0, &cut);
	for (uint32_t i = 1; i < 6; i++)
		world_work(q[i], 0,
			   &(struct work){.ops = 1u << RC_WRITE, .min = 100000, .max = 200000, .left = 60});
	world_run(w, w->now + 3 * SEC);
	assert_true(engine_counter(w->engine[0], EC_NO_ROOM) > 0);
	/* several of them are taken down and used anew */
	for (uint32_t i = 2; i < 5; i++) {
		uint32_t psn = psn_add(rc_qp_sent_end(q[i]->side[0].qp), 0x345678);

		rc_qp_fail(q[i]->side[0].qp, w->now);
		rc_qp_fail(q[i]->side[1].qp, w->now);
		for (uint32_t n = 0; n < 8; n++)
			inject(w, q[i], OP_WRITE_ONLY, psn_add(psn, n), 4, 4);
	}
	cut.down = false;
	world_set_wan(w, 0, &cut);
	world_run_done(w, w->now + 200 * SEC);
	judge(w, world_verify(w, false));
	for (uint32_t i = 0; i < 6; i++)
		if (i < 2 || i > 4)
			judge(w, rc_qp_queued(q[i]->side[0].qp) || q[i]->side[0].failed ?
					 "another lane does not go on" :
					 NULL);
	finish(w);
}

/* A CM exchange for the queue pair of @q, straight into both engines without a tick in between. */
static void cm_exchange(struct world *w, struct world_qp *q, uint32_t id)
{
	const struct rc_qp_config *a = rc_qp_config(q->side[0].qp), *b = rc_qp_config(q->side[1].qp);
	uint8_t out[CM_FRAME_MAX];
	struct rc_header h;
	struct cm req = {.type = CM_REQ,
			 .local_id = id,
			 .lqpn = a->lqpn,
			 .starting_psn = a->rq_psn,
			 .path_mtu = a->mtu,
			 .rc = true};
	struct cm rep = {.type = CM_REP,
			 .local_id = id + 1000,
			 .remote_id = id,
			 .lqpn = b->lqpn,
			 .starting_psn = b->rq_psn};
	uint32_t len;

	rc_header_init(&h, a->smac, a->dmac, FRAME_VLAN_NONE, &a->src, &a->dst, a->sport);
	len = cm_emit(out, &h, &a->src, &a->dst, &req, 1);
	for (int s = 0; s < 2; s++)
		engine_rx(w->engine[s], s ? PORT_WAN : PORT_LAN, out, len, w->now);
	rc_header_init(&h, b->smac, b->dmac, FRAME_VLAN_NONE, &b->src, &b->dst, b->sport);
	len = cm_emit(out, &h, &b->src, &b->dst, &rep, 1);
	for (int s = 0; s < 2; s++)
		engine_rx(w->engine[s], s ? PORT_LAN : PORT_WAN, out, len, w->now);
}

static uint32_t qp_index;

static bool reuse_in_batch(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct world_qp *q = &w->qp[qp_index];
	struct frame f;

	if (w->user || link != WORLD_LAN_IN(0) || frame_parse(data, len, &f) != FRAME_OK ||
	    f.dqpn != rc_qp_config(q->side[0].qp)->rqpn || !(f.op->flags & OPF_REQUEST))
		return true;
	w->user = w;
	engine_rx(w->engine[0], PORT_LAN, data, len, w->now);
	cm_exchange(w, q, 7);
	return false;
}

/*
 * Guards against lists of lanes that a flow leaves by being freed: a CM exchange names a queue pair anew in the
 * batch in which its old lane has got something to acknowledge and to send.
 */
static void test_reuse_in_batch(void **state)
{
	(void)state;
	for (qp_index = 0; qp_index < 3; qp_index++) {
		struct world_config c;
		struct world *w;
		struct world_qp *q[3];

		world_defaults(&c);
		c.wan.delay_ns = 1 * MS;
		w = make(&c);
		for (uint32_t i = 0; i < 3; i++) {
			struct rc_qp_config qc;

			scenario_qp(&qc, i, 1024, RC_PERMISSIVE);
			q[i] = world_connect(w, &qc, RC_PERMISSIVE);
			get_held(w, q[i]);
		}
		w->filter = reuse_in_batch;
		for (uint32_t i = 0; i < 3; i++)
			post(q[i], 0, RC_WRITE, 1000);
		world_run(w, w->now + 20 * SEC);
		for (uint32_t i = 0; i < 3; i++)
			if (i != qp_index) {
				post(q[i], 0, RC_WRITE, 1000);
				post(q[i], 0, RC_WRITE, 1000);
			}
		world_run(w, w->now + 20 * SEC);
		judge(w, world_verify(w, false));
		for (uint32_t i = 0; i < 3; i++)
			if (i != qp_index)
				judge(w, rc_qp_queued(q[i]->side[0].qp) ? "another lane does not go on" :
									  NULL);
		finish(w);
	}
}

/* ---- the end of lanes ---- */

/*
 * Guards against custody that nobody delivers: while a transfer is under way the operator takes the rule away,
 * at the one end or the other. What was acknowledged must still arrive.
 */
static void test_rule_removed(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc;
		struct world_qp *q;

		world_defaults(&c);
		c.check_every = 101;
		c.wan.delay_ns = 10 * MS;
		c.wan.rate_bps = 1000000000;
		c.engine.wan_rate = 120000000;
		c.wan.loss = 0.01;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, RC_PERMISSIVE);
		q = world_connect(w, &qc, RC_PERMISSIVE);
		get_held(w, q);
		world_work(q, 0, &(struct work){.ops = OPS_WRITE_SEND, .min = 1, .max = 60000, .left = 500});
		world_run(w, w->now + 50 * MS);
		rules(w, side, false, 0);
		scenario_finish(w, 200 * SEC);
		assert_int_equal(w->faults[0] + w->faults[1], 0);
		finish(w);
	}
}

/*
 * Guards against the loss of what one appliance still has when the other one loses its memory: a message was
 * acknowledged to the requester and has reached the acceptor whole; the responder has no receive for it yet;
 * then the opener starts anew.
 */
static void test_opener_restarts(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;
	uint64_t ok;

	(void)state;
	world_defaults(&c);
	c.check_every = 1;
	c.wan.delay_ns = 5 * MS;
	w = make(&c);
	scenario_qp(&qc, 1, 1024, RC_STRICT);
	qc.recv_depth = 1;
	q = world_connect(w, &qc, RC_STRICT);
	get_held(w, q);
	rc_qp_set_recv(q->side[1].qp, w->now, false, 0, 0);
	ok = q->side[0].ok;
	for (int i = 0; i < 40; i++)
		post(q, 0, RC_SEND, 3000);
	world_run(w, w->now + 100 * MS);
	assert_int_equal(q->side[0].ok, ok + 40);
	assert_true(rc_messages(q->side[1].qp) < ok + 40);
	rc_qp_set_recv(q->side[1].qp, w->now, false, 5 * MS, 0);
	world_restart(w, 0);
	/* it takes them slowly, so that reports and their answers cross while much is still to be delivered */
	world_run(w, w->now + 20 * SEC);
	judge(w, world_verify(w, true));
	rc_qp_set_recv(q->side[1].qp, w->now, true, 0, 0);
	/* the acceptor had it all, so nothing was lost after all, and the connection goes on */
	q->side[0].lost = false;
	for (int i = 0; i < 40; i++)
		post(q, 0, RC_SEND, 3000);
	scenario_finish(w, 100 * SEC);
	finish(w);
}

/*
 * Guards against an acknowledgement for what another incarnation had sent: both hosts make their queue pairs
 * anew, by the same numbers and from the same PSN on, unseen by any connection manager.
 */
static void test_same_psns_again(void **state)
{
	(void)state;
	for (int p = 0; p < 2; p++) {
		struct world_config c;
		struct world *w;
		struct rc_qp_config qc, cfg[2];
		struct world_qp *q;
		uint64_t ok;

		world_defaults(&c);
		c.check_every = 1;
		c.wan.delay_ns = 2 * MS;
		w = make(&c);
		scenario_qp(&qc, 1, 1024, p ? RC_PERMISSIVE : RC_STRICT);
		q = world_connect(w, &qc, p ? RC_PERMISSIVE : RC_STRICT);
		get_held(w, q);
		for (int i = 0; i < 2; i++)
			cfg[i] = *rc_qp_config(q->side[i].qp);
		for (int i = 0; i < 2; i++) {
			rc_qp_destroy(q->side[i].qp);
			q->side[i].qp = rc_qp_create(w->host[i], &cfg[i], q);
			assert_non_null(q->side[i].qp);
		}
		ok = q->side[0].ok;
		for (int i = 0; i < 10; i++)
			post(q, 0, RC_WRITE, 100);
		world_run(w, w->now + 60 * SEC);
		judge(w, world_verify(w, false));
		ok = q->side[0].ok - ok;
		if (ok > rc_messages(q->side[1].qp))
			judge(w, "told to be done, and never executed");
		judge(w, ok < 10 ? "the new connection does not work" : NULL);
		finish(w);
	}
}

/* Guards against two appliances that count a READ's PSNs differently because their rules say so. */
static void test_path_mtu_differs(void **state)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;
	struct world_qp *q;

	(void)state;
	world_defaults(&c);
	c.check_every = 1;
	c.wan.delay_ns = 2 * MS;
	c.path_mtu = 4096;
	w = make(&c);
	rules(w, 1, true, 1024);
	scenario_qp(&qc, 1, 4096, RC_PERMISSIVE);
	q = world_connect(w, &qc, RC_PERMISSIVE);
	for (int i = 0; i < 40; i++) {
		post(q, 0, RC_WRITE, 64);
		world_run(w, w->now + 60 * MS);
	}
	for (int i = 0; i < 10; i++) {
		post(q, 0, RC_READ, 8192);
		post(q, 0, RC_WRITE, 64);
		scenario_finish(w, 20 * SEC);
	}
	assert_int_equal(w->faults[0] + w->faults[1], 0);
	finish(w);
}

/* ---- room ---- */

/*
 * Guards against a lane that waits for room that nobody tells it of: the last report of a lane with nothing
 * under way said that the far pool is full.
 */
static void test_room_comes_back(void **state)
{
	struct world_config c;
	struct world *w;
	struct world_qp *q[48];

	(void)state;
	world_defaults(&c);
	c.engine.pool_bytes = 4 << 20;
	c.wan.delay_ns = 1 * MS;
	w = make(&c);
	for (uint32_t i = 0; i < 48; i++) {
		struct rc_qp_config qc;

		scenario_qp(&qc, i, 1024, RC_PERMISSIVE);
		qc.recv_depth = 1;
		qc.min_rnr_timer = 14;
		q[i] = world_connect(w, &qc, RC_PERMISSIVE);
	}
	for (int n = 0; n < 20; n++) {
		for (uint32_t i = 0; i < 48; i++)
			post(q[i], 0, RC_WRITE, n ? 64 : 2048);
		world_run(w, w->now + 60 * MS);
	}
	scenario_finish(w, 20 * SEC);
	for (uint32_t i = 0; i < 48; i++) {
		rc_qp_set_recv(q[i]->side[1].qp, w->now, false, 0, 0);
	}
	post(q[0], 0, RC_SEND, 64);
	world_run(w, w->now + 10 * MS);
	for (uint32_t i = 1; i < 48; i++)
		for (int n = 0; n < 30; n++)
			post(q[i], 0, RC_SEND, 1000);
	world_run(w, w->now + 2 * SEC);
	rc_qp_set_recv(q[0]->side[1].qp, w->now, true, 0, 0);
	world_run(w, w->now + 2 * SEC);
	for (int n = 0; n < 30; n++)
		post(q[0], 0, RC_SEND, 1000);
	world_run(w, w->now + 2 * SEC);
	for (uint32_t i = 1; i < 48; i++)
		rc_qp_set_recv(q[i]->side[1].qp, w->now, true, 0, 0);
	scenario_finish(w, 100 * SEC);
	assert_int_equal(w->faults[0], 0);
	finish(w);
}

/* ---- everything at once ---- */

/*
 * Guards against what nobody thought of: random work on a few queue pairs in both directions over impaired
 * links, while peers come and go, engines are emptied, rules change their policy, and acceptors lose their
 * memory; the audit listens. What was told and what was executed must be right at all times, and permissive
 * hosts, which never give up, must get through.
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
	c.check_every = 31;
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
		cmocka_unit_test(test_answers_out_of_turn),
		cmocka_unit_test(test_atomics_over_restart),
		cmocka_unit_test(test_answer_before_question),
		cmocka_unit_test(test_endless_read),
		cmocka_unit_test(test_long_life),
		cmocka_unit_test(test_close_while_waiting_for_room),
		cmocka_unit_test(test_reuse_in_batch),
		cmocka_unit_test(test_rule_removed),
		cmocka_unit_test(test_opener_restarts),
		cmocka_unit_test(test_same_psns_again),
		cmocka_unit_test(test_path_mtu_differs),
		cmocka_unit_test(test_room_comes_back),
		cmocka_unit_test(test_storm),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

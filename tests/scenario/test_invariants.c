// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The invariants of custody under attack: each test drives one path on which a packet could be
 * lost, told wrongly, or wait for ever, as narrow as it can be made. Each begins with the sentence
 * that says what it guards against. How lanes end is in test_ends.c, and everything at once in
 * test_storm.c.
 */
#include "tests/lab/model/cm_emit.h"
#include "tests/scenario/invariant_rig.h"
#include "wire/build.h"
#include "wire/psn.h"

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

	if (link != d->link || !d->n || frame_parse(data, len, &f) != FRAME_OK ||
	    f.opcode != d->opcode)
		return true;
	d->n--;
	return false;
}

/*
 * ENG-8: guards against a lane that waits for an answer that it has had: two READs, the first
 * one's answer lost on the responder's LAN, the second one's not, and silence then.
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
 * Guards against an answer that comes before the acceptor has sent the question (it lost its memory
 * meanwhile, or the packet is a stranger's): the true answer must not be taken for one that was had
 * already.
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
	/* the strict host ignores nothing in its window: what was let through to it is not looked
	 * at here */
	rc_qp_set_recv(q->side[1].qp, w->now, true, 0, 0);
	world_run(w, w->now + 60 * SEC);
	judge(w, w->violation);
	judge(w, w->faults[0] + w->faults[1] ? "custody was lost" : NULL);
	judge(w, engine_custody(w->engine[0], -1, w->now).packets ? "custody never ends" : NULL);
	finish(w);
}

/* Puts a packet of host 0's requester into engine 0 as if it came from the LAN. */
static void inject(struct world *w, struct world_qp *q, uint8_t opcode, uint32_t psn,
		   uint32_t length, uint32_t payload_len)
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
 * Guards against a READ whose range does not fit into 24 bits: it must not be kept for ever, nor
 * leak what it takes in the pool.
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
	world_work(
		q, 0,
		&(struct work){.ops = 1u << RC_WRITE, .min = 262144, .max = 262144, .left = 8300});
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
	judge(w, rc_qp_queued(q->side[0].qp) ? NULL
					     : "honest, and yet told before the responder has it");
	cut.down = false;
	world_set_wan(w, 0, &cut);
	world_run_done(w, w->now + 20 * SEC);
	judge(w, rc_check_all(q->side[0].qp, q->side[1].qp) ? "not all has arrived" : NULL);
	finish(w);
}

/* ---- lists ---- */

/* Guards against lists of lanes that a lane leaves by being closed: here that of lanes that wait
 * for room. */
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
		world_work(
			q[i], 0,
			&(struct work){
				.ops = 1u << RC_WRITE, .min = 100000, .max = 200000, .left = 60});
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
			judge(w, rc_qp_queued(q[i]->side[0].qp) || q[i]->side[0].failed
					 ? "another lane does not go on"
					 : NULL);
	finish(w);
}

/* A CM exchange for the queue pair of @q, straight into both engines without a tick in between. */
static void cm_exchange(struct world *w, struct world_qp *q, uint32_t id)
{
	const struct rc_qp_config *a = rc_qp_config(q->side[0].qp),
				  *b = rc_qp_config(q->side[1].qp);
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
	uint8_t copy[FRAME_MAX];
	struct frame f;

	if (w->user || link != WORLD_LAN_IN(0) || frame_parse(data, len, &f) != FRAME_OK ||
	    f.dqpn != rc_qp_config(q->side[0].qp)->rqpn || !(f.op->flags & OPF_REQUEST))
		return true;
	w->user = w;
	memcpy(copy, data, len);
	engine_rx(w->engine[0], PORT_LAN, copy, len, w->now);
	cm_exchange(w, q, 7);
	return false;
}

/*
 * POOL-9: guards against lists of lanes that a flow leaves by being freed: a CM exchange names a
 * queue pair anew in the batch in which its old lane has got something to acknowledge and to
 * send.
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
				judge(w, rc_qp_queued(q[i]->side[0].qp)
						 ? "another lane does not go on"
						 : NULL);
		finish(w);
	}
}

/* ---- rules ---- */

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
 * FAST-7: guards against a lane that waits for room without being told of it: the last report of a
 * lane with nothing under way said that the far pool is full.
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_out_of_turn),
		cmocka_unit_test(test_answer_before_question),
		cmocka_unit_test(test_endless_read),
		cmocka_unit_test(test_long_life),
		cmocka_unit_test(test_close_while_waiting_for_room),
		cmocka_unit_test(test_reuse_in_batch),
		cmocka_unit_test(test_path_mtu_differs),
		cmocka_unit_test(test_room_comes_back),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

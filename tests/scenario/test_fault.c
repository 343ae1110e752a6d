// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CONV-8, FAULT (doc/architecture.md, custody lost): if data that was acknowledged is lost, its
 * application sees the queue pair fail. Always: on either host, with any posted requests, busy or
 * idle, and for any cause.
 */
#include "tests/scenario/scenario.h"

#include <string.h>
#include <unistd.h>

#include "tests/lab/model/rc_internal.h"
#include "wire/build.h"
#include "wire/psn.h"

#define WATCHDOG_S 240
#define TIMEOUT_NS (2 * SEC)

enum cause {
	LATE_NAK,	/* the responder refuses what was acknowledged long ago */
	RESPONDER_GONE, /* its QP answers nothing any more */
	PEER_LOST,	/* the WAN is cut */
	PEER_FORGOT,	/* the other appliance is a new one that does not want the connection */
	CAUSES,
};

static const char *const cause_names[CAUSES] = {"late NAK", "responder gone", "peer lost",
						"peer restarted"};

/* What the far host has sent before. */
enum inbound {
	NOTHING, /* its PSNs are not known to the appliance */
	SOME,	 /* requests, now held as well */
	HALF,	 /* and it is in the middle of a long message */
	INBOUNDS,
};

struct plan {
	enum cause cause;
	enum rc_personality host;
	enum rc_op op;
	enum inbound inbound;
	bool busy, single;
	bool nak_spent; /* the host has sent its one sequence NAK for a gap already */
	uint32_t drop;	/* so many of the requests that are to break the QP are lost on the LAN */
	bool forged;	/* each of them is refused in the host's name, before it has come */
};

/* What leaves toward the far host while the lane is in fault, and what the near host sees. */
struct watch {
	struct world_qp *q;
	uint64_t leaked, probes;
	uint32_t drop_lan;
};

static void judge(struct world *w, const struct plan *p, const char *bad)
{
	if (!bad)
		return;
	world_dump(w, stderr);
	fail_msg("%s, %s, %s, %s, inbound %d, %s: %s", cause_names[p->cause],
		 p->host == RC_STRICT ? "strict" : "permissive", rc_op_name(p->op),
		 p->busy ? "busy" : "idle", p->inbound, p->single ? "single" : "pair", bad);
}

static uint8_t out_state(struct world *w, const struct world_qp *q)
{
	struct conn_info ci;

	return world_conn(w, 0, q, &ci) ? ci.lane[LANE_OUT].state : LANE_WATCH;
}

static bool watch_frames(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	struct watch *o = w->user;
	struct frame f;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return true;
	/* but a far host whose own promises are broken is told so (abandoned.c) */
	if (link == WORLD_WAN(0) && (f.op->flags & OPF_RESPONSE) &&
	    (!f.aeth || frame_aeth_syndrome(&f) != AETH_NAK_OPERATION) &&
	    out_state(w, o->q) == LANE_FAULT)
		o->leaked++;
	if (link != WORLD_LAN_OUT(0))
		return true;
	if ((f.opcode == OP_SEND_MIDDLE || f.opcode == OP_WRITE_MIDDLE) && !f.payload_len) {
		o->probes++;
		if (o->drop_lan) {
			o->drop_lan--;
			return false;
		}
	}
	return true;
}

static void post(struct world_qp *q, int side, enum rc_op op, uint32_t length)
{
	struct rc_wr wr = {
		.op = op, .length = length, .va = rc_qp_config(q->side[side].qp)->rmr_va};

	assert_int_equal(rc_post(q->side[side].qp, q->w->now, &wr), 0);
}

/* Lanes get held, and everything is quiet then. */
static void settle(struct world *w, struct world_qp *q, const struct plan *p)
{
	for (int i = 0; i < 16; i++) {
		post(q, 0, p->op, i ? 64 : 2048);
		if (p->inbound != NOTHING)
			post(q, 1, RC_SEND, i ? 64 : 2048);
		world_run(w, w->now + 60 * MS);
	}
	scenario_finish(w, 20 * SEC);
	scenario_held(w, q, 0);
}

static void cut(struct world *w)
{
	struct wan_config dead = *wan_config(w->link[WORLD_WAN(0)]);

	dead.loss = 1;
	for (int s = 0; s < 2; s++) {
		wan_set(w->link[WORLD_WAN(s)], &dead);
		wan_set(w->reports[s], &dead);
		world_peer(w, s, PEER_DOWN);
	}
}

static void strike(struct world *w, struct world_qp *q, const struct plan *p)
{
	switch (p->cause) {
	case LATE_NAK:
		rc_qp_refuse_next(q->side[1].qp, AETH_NAK_ACCESS, 0);
		break;
	case RESPONDER_GONE:
		rc_qp_fail(q->side[1].qp, w->now);
		break;
	case PEER_LOST:
		cut(w);
		break;
	default: {
		struct rule none;

		world_restart(w, 1);
		engine_rules(w->engine[1], &none, 0, w->now);
	}
	}
}

static struct world *make(const struct plan *p, struct watch *o)
{
	struct world_config c;
	struct world *w;
	struct rc_qp_config qc;

	world_defaults(&c);
	c.check_every = 64;
	c.lan.rate_bps = c.wan.rate_bps = 1000000000;
	c.engine.pool_bytes = 8 << 20;
	c.check_custody = true;
	c.single = p->single;
	c.appliance[1] = !p->single;
	c.engine.responder_timeout_ns = c.engine.peer_timeout_ns = TIMEOUT_NS;
	if (p->forged) {
		c.actors.forge = 1u << FORGE_PROBED;
		c.actors.forge_at = FORGE_LAN(0);
	}
	w = world_create(&c);
	assert_non_null(w);
	alarm(WATCHDOG_S);
	scenario_qp(&qc, 1, 1024, p->host);
	qc.ackreq_every = 4;
	memset(o, 0, sizeof(*o));
	o->drop_lan = p->drop;
	o->q = world_connect(w, &qc, RC_STRICT);
	w->filter = watch_frames;
	w->user = o;
	return w;
}

/* Everything up to the moment at which the QP has failed. */
static void run(struct world *w, struct watch *o, const struct plan *p)
{
	struct world_qp *q = o->q;
	struct work busy = {
		.ops = 1u << p->op, .min = 1, .max = 5000, .left = 1000000, .outstanding = 16};
	struct rc_qp *host = q->side[0].qp;
	uint64_t until, told = 0, messages;

	settle(w, q, p);
	if (p->inbound == HALF) {
		/* it ends in the middle: what was sent last is lost with the cut, or frozen by the
		 * fault */
		struct work longish = {
			.ops = 1u << RC_SEND, .min = 8000000, .max = 8000000, .left = 1};

		world_work(q, 1, &longish);
		world_run(w, w->now + 10 * MS + 100000);
	}
	if (p->nak_spent) {
		uint8_t buf[FRAME_MAX];
		struct template t;
		const struct rc_qp_config *qc = rc_qp_config(host);
		struct build_spec s = {.t = &t,
				       .opcode = OP_SEND_MIDDLE,
				       .dqpn = qc->lqpn,
				       .psn = psn_add(rc_qp_epsn(host), 5)};

		template_make(&t, qc->dmac, qc->smac, qc->vlan, &qc->dst, &qc->src, qc->sport);
		rc_host_rx(w->host[0], w->now, buf, build_packet(buf, &s));
	}
	if (p->busy) {
		world_work(q, 0, &busy);
		world_run(w, w->now + 50 * MS);
		strike(w, q, p);
	} else {
		strike(w, q, p);
		for (int i = 0; i < 4; i++)
			post(q, 0, p->op, 3000);
		/* told at LAN speed that all is done; the WAN takes 10 ms */
		world_run(w, w->now + 2 * MS);
		if (rc_qp_queued(host))
			judge(w, p, "not idle: nothing to see here");
		told = q->side[0].ok;
	}
	messages = rc_messages(host);
	until = w->now + 3 * TIMEOUT_NS + 20 * SEC;
	while (!rc_qp_in_error(host) && w->now < until && !w->violation) {
		world_run(w, w->now + 10 * MS);
		if (w->faults[0] && !rc_qp_in_error(host) && engine_may_stop(w->engine[0]))
			judge(w, p, "a stop would not wait until the application has seen it");
	}
	judge(w, p, w->violation);
	if (!rc_qp_in_error(host))
		judge(w, p, "the application does not see that its data is lost");
	if (p->inbound == HALF && p->cause != PEER_FORGOT && host->resp.open != RC_OPEN_SEND)
		judge(w, p, "not in the middle of a message: nothing to see here");
	world_run(w, w->now + 1 * SEC);
	judge(w, p, world_verify(w, false));
	if (!w->faults[0])
		judge(w, p, "no fault was counted");
	if (o->leaked)
		judge(w, p, "answers of the near host leaked to the far one");
	if (!p->busy && q->side[0].ok != told)
		judge(w, p, "success after the fault");
	if ((p->inbound != HALF || p->cause != PEER_FORGOT) && rc_messages(host) != messages)
		judge(w, p, "the host executed something that nobody sent");
	if (!p->busy &&
	    (o->probes == 0 || o->probes != engine_counter(w->engine[0], EC_FAULT_PROBES) ||
	     engine_counter(w->engine[0], EC_FAULT_BROKEN) != 1))
		judge(w, p, "the counters do not show it");
}

static void finish(struct world *w)
{
	world_destroy(w);
	alarm(0);
}

static void one(const struct plan *p)
{
	struct watch o;
	struct world *w = make(p, &o);

	run(w, &o, p);
	finish(w);
}

/* Every cause, on both kinds of host, idle and busy, WRITEs and SENDs. */
static void matrix(enum cause cause)
{
	for (int host = RC_STRICT; host <= RC_PERMISSIVE; host++)
		for (int busy = 0; busy < 2; busy++)
			for (int op = 0; op < 2; op++)
				for (int inbound = NOTHING; inbound < INBOUNDS; inbound++)
					one(&(struct plan){.cause = cause,
							   .host = host,
							   .busy = busy,
							   .op = op ? RC_SEND : RC_WRITE,
							   .inbound = inbound});
}

static void test_late_nak(void **state)
{
	(void)state;
	matrix(LATE_NAK);
}

static void test_responder_gone(void **state)
{
	(void)state;
	matrix(RESPONDER_GONE);
}

static void test_peer_lost(void **state)
{
	(void)state;
	matrix(PEER_LOST);
}

static void test_peer_restarted(void **state)
{
	(void)state;
	matrix(PEER_FORGOT);
}

/* One appliance alone has the same promises to keep. */
static void test_single(void **state)
{
	(void)state;
	for (int cause = LATE_NAK; cause <= RESPONDER_GONE; cause++)
		for (int host = RC_STRICT; host <= RC_PERMISSIVE; host++)
			for (int busy = 0; busy < 2; busy++)
				one(&(struct plan){.cause = cause,
						   .host = host,
						   .busy = busy,
						   .op = RC_WRITE,
						   .inbound = host == RC_STRICT ? SOME : NOTHING,
						   .single = true});
}

/* A host that has sent its sequence NAK already says nothing to what is ahead: duplicates teach as
 * well. */
static void test_nak_spent(void **state)
{
	(void)state;
	for (int host = RC_STRICT; host <= RC_PERMISSIVE; host++)
		for (int inbound = NOTHING; inbound <= SOME; inbound++)
			one(&(struct plan){.cause = LATE_NAK,
					   .host = host,
					   .op = RC_WRITE,
					   .inbound = inbound,
					   .nak_spent = true});
}

/* The LAN is not perfect either. */
static void test_lossy_lan(void **state)
{
	(void)state;
	for (uint32_t drop = 1; drop <= 8; drop += 7)
		for (int inbound = NOTHING; inbound <= SOME; inbound++)
			one(&(struct plan){.cause = LATE_NAK,
					   .op = RC_SEND,
					   .inbound = inbound,
					   .drop = drop});
}

/* A forger on the LAN claims that the QP has failed, and it has not. */
static void test_forged_refusal(void **state)
{
	(void)state;
	for (int cause = LATE_NAK; cause < CAUSES; cause++)
		for (int host = RC_STRICT; host <= RC_PERMISSIVE; host++)
			for (int inbound = NOTHING; inbound <= SOME; inbound++)
				one(&(struct plan){.cause = cause,
						   .host = host,
						   .op = RC_WRITE,
						   .inbound = inbound,
						   .nak_spent = inbound == SOME,
						   .forged = true});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_nak),  cmocka_unit_test(test_responder_gone),
		cmocka_unit_test(test_peer_lost), cmocka_unit_test(test_peer_restarted),
		cmocka_unit_test(test_single),	  cmocka_unit_test(test_nak_spent),
		cmocka_unit_test(test_lossy_lan), cmocka_unit_test(test_forged_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

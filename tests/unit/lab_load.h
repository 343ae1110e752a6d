/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A random mix of requests in both directions of a pair, and the verdict at the end. For the lab's
 * own tests.
 */
#ifndef LAB_LOAD_H
#define LAB_LOAD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/lab/model/rc_pair.h"

/**
 * struct load
 * @ops:   bit mask of enum rc_op; 0: all
 * @count: requests per direction
 * @max_length: of SEND, WRITE, READ
 * @may_fail: a requester may run out of retries; what was executed must then be an exact prefix
 */
struct load {
	struct rc_pair pair;
	struct rc_qp *qp[2];
	struct prng prng;
	uint32_t ops, max_length;
	uint64_t count, posted[2], completed[2], failed[2], received[2];
	uint64_t not_intact, misordered, unchecked;
	enum rc_status last_error;
	bool may_fail;
};

/* Printed with a failure. */
static uint64_t load_seed;

#define LOAD_WRITTEN (512u << 10) /* WRITEs go below, READs mostly above */
#define LOAD_ATOMICS ((1u << 20) - 4096)

static void load_post(struct load *l, int side)
{
	struct rc_qp *qp = l->qp[side];

	while (l->posted[side] < l->count && rc_qp_room(qp)) {
		struct rc_wr wr = {.wr_id = l->posted[side]};
		uint64_t base = rc_qp_config(qp)->rmr_va;

		do
			wr.op = (enum rc_op)prng_below(&l->prng, RC_OPS);
		while (l->ops && !(l->ops & 1u << wr.op));
		wr.length = prng_below(&l->prng, l->max_length + 1);
		if (prng_below(&l->prng, 4) == 0)
			wr.length &= ~4095u;
		wr.imm = (uint32_t)prng_next(&l->prng);
		wr.unsignaled = prng_below(&l->prng, 4) == 0;
		if (wr.op == RC_WRITE || wr.op == RC_WRITE_IMM) {
			wr.va = base + prng_below(&l->prng, LOAD_WRITTEN - wr.length + 1);
		} else if (wr.op == RC_READ) {
			uint32_t from = prng_below(&l->prng, 8) ? LOAD_WRITTEN : 0;

			wr.va = base + from + prng_below(&l->prng, 400 * 1024 - wr.length);
		} else if (wr.op > RC_READ) {
			wr.va = base + LOAD_ATOMICS + 8 * prng_below(&l->prng, 16);
			wr.swap_add = prng_next(&l->prng);
			wr.compare = prng_next(&l->prng);
			if (prng_below(&l->prng, 2) && rc_qp_shadow(qp))
				memcpy(&wr.compare, rc_qp_shadow(qp) + (wr.va - base), 8);
		}
		assert_int_equal(rc_post(qp, l->pair.now, &wr), 0);
		l->posted[side]++;
	}
}

static void load_complete(struct rc_pair *p, int side, struct rc_qp *qp,
			  const struct rc_completion *c)
{
	struct load *l = p->user;

	(void)qp;
	if (c->wr_id != l->completed[side] + l->failed[side])
		l->misordered++;
	if (c->status == RC_OK) {
		l->completed[side]++;
	} else {
		l->failed[side]++;
		if (c->status != RC_FLUSHED)
			l->last_error = c->status;
	}
	l->not_intact += !c->intact;
	l->unchecked += c->op >= RC_READ && !c->checked;
	if (c->status == RC_OK)
		load_post(l, side);
}

static void load_receive(struct rc_pair *p, int side, struct rc_qp *qp, const struct rc_message *m)
{
	struct load *l = p->user;

	(void)qp;
	if (m->number != l->received[side]++)
		l->misordered++;
	l->not_intact += !m->intact;
}

static void load_init(struct load *l, const struct wan_config *link, struct rc_qp_config *cfg,
		      enum rc_personality other, uint64_t seed)
{
	struct rc_host_config host = {.seed = seed, .link_bps = 10000000000ull};

	memset(l, 0, sizeof(*l));
	assert_int_equal(rc_pair_init(&l->pair, &host, link), 0);
	l->pair.user = l;
	l->pair.complete = load_complete;
	l->pair.receive = load_receive;
	l->max_length = 20000;
	prng_init(&l->prng, seed);
	cfg->lqpn = cfg->lqpn ? cfg->lqpn : 0x11;
	cfg->rqpn = cfg->rqpn ? cfg->rqpn : 0x12;
	assert_int_equal(rc_pair_connect(&l->pair, cfg, other, l->qp), 0);
}

static void load_dump(struct load *l)
{
	for (int i = 0; i < 2; i++) {
		const struct rc_stats *s = rc_qp_stats(l->qp[i]);

		fprintf(stderr,
			"side %d: posted %lu completed %lu failed %lu (%s) retransmits %lu "
			"timeouts %lu "
			"seq-naks %lu rnr %lu implied %lu una %x end %x | epsn %x messages %lu dup "
			"%lu\n",
			i, (unsigned long)s->posted, (unsigned long)s->completed,
			(unsigned long)s->failed, rc_status_name(l->last_error),
			(unsigned long)s->retransmits, (unsigned long)s->timeouts,
			(unsigned long)s->rx_seq_naks, (unsigned long)s->rx_rnr,
			(unsigned long)s->implied_naks, rc_qp_una(l->qp[i]),
			rc_qp_sent_end(l->qp[i]), rc_qp_epsn(l->qp[i]),
			(unsigned long)s->rx_messages, (unsigned long)s->duplicates);
	}
}

/* Everything must arrive, once, in order, intact, within @limit ns of virtual time. */
static void load_run_all(struct load *l, uint64_t limit)
{
	bool ok;

	load_post(l, 0);
	load_post(l, 1);
	rc_pair_run(&l->pair, limit);
	ok = l->completed[0] == l->count && l->completed[1] == l->count && !l->not_intact &&
	     !l->misordered && !rc_check_all(l->qp[0], l->qp[1]) &&
	     !rc_check_all(l->qp[1], l->qp[0]) && rc_check_memory(l->qp[0], l->qp[1]) < 0 &&
	     rc_check_memory(l->qp[1], l->qp[0]) < 0;
	if (l->may_fail && l->failed[0] + l->failed[1]) {
		/* Neither wrong data nor a message that nobody sent, and never a hang. */
		assert_true(l->last_error == RC_RETRY_EXCEEDED || l->last_error == RC_RNR_EXCEEDED);
		assert_int_equal(l->not_intact, 0);
		assert_int_equal(l->misordered, 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(rc_check_prefix(l->qp[i], l->qp[!i]), 0);
		return;
	}
	if (!ok) {
		fprintf(stderr, "seed %lu\n", (unsigned long)load_seed);
		load_dump(l);
	}
	assert_int_equal(l->completed[0], l->count);
	assert_int_equal(l->completed[1], l->count);
	assert_int_equal(l->not_intact, 0);
	assert_int_equal(l->misordered, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rc_check_all(l->qp[i], l->qp[!i]), 0);
		assert_int_equal(rc_check_memory(l->qp[i], l->qp[!i]), -1);
		assert_int_equal(rc_qp_msn(l->qp[!i]), l->count & 0xffffff);
	}
}

#endif

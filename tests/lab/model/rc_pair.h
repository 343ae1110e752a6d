/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hosts and the link between them, in virtual time: the smallest world in which the models
 * live. For their own tests and measurements; the product's scenarios put appliances in between.
 */
#ifndef LAB_RC_PAIR_H
#define LAB_RC_PAIR_H

#include "tests/lab/model/rc_host.h"
#include "cli/wanem/wan.h"

struct rc_pair;

/** struct rc_side - one host and the direction that it sends into. */
struct rc_side {
	struct rc_pair *pair;
	struct rc_host *host;
	struct wan *out;
};

/**
 * struct rc_pair
 * @now:     virtual time, ns
 * @steps:   frames delivered
 * @filter:  sees each delivered frame first; false: drop it. May be NULL
 * @complete, @receive, @error: as in struct rc_host_ops, with the side; may be NULL
 */
struct rc_pair {
	struct rc_side side[2];
	uint64_t now, steps;
	void *user;
	bool (*filter)(struct rc_pair *p, int to, const uint8_t *data, uint32_t len);
	void (*complete)(struct rc_pair *p, int side, struct rc_qp *qp,
			 const struct rc_completion *c);
	void (*receive)(struct rc_pair *p, int side, struct rc_qp *qp, const struct rc_message *m);
	void (*error)(struct rc_pair *p, int side, struct rc_qp *qp, enum rc_status why);
};

/** rc_pair_init - @host and @link are for both sides; the second link's seed is @link->seed + 1. */
int rc_pair_init(struct rc_pair *p, const struct rc_host_config *host,
		 const struct wan_config *link);
void rc_pair_exit(struct rc_pair *p);
/** rc_pair_connect - a queue pair on each side: @a as given, its mirror on the other side with the
 *  personality @other. Addresses are filled in if @a has none. Returns 0 or -1. */
int rc_pair_connect(struct rc_pair *p, struct rc_qp_config *a, enum rc_personality other,
		    struct rc_qp *qp[2]);
/** rc_pair_step - advance to the next event; false when there is none before @until (then now =
 * until). */
bool rc_pair_step(struct rc_pair *p, uint64_t until);
/** rc_pair_run - until @until, or until nothing is left to happen. */
void rc_pair_run(struct rc_pair *p, uint64_t until);
/** rc_pair_inject - hand a frame to side @to now, as if it had arrived. */
void rc_pair_inject(struct rc_pair *p, int to, const uint8_t *data, uint32_t len);

#endif

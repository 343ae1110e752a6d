/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests asked before their host does. */
#ifndef LONGHAUL_ENGINE_PREFETCH_PREFETCH_H
#define LONGHAUL_ENGINE_PREFETCH_PREFETCH_H

#include "engine/reads/reads.h"

/* prefetch.c: OPENER */
bool prefetch_claim(struct engine *e, struct flow *fl, const struct frame *f,
		    struct wire_psn *wire);
void prefetch_saw(struct engine *e, const struct lane *l, struct lane_reads *x);
void prefetch_asked(struct engine *e, struct flow *fl, const struct frame *f, bool claimed);
void prefetch_depth(struct engine *e, struct flow *fl, struct lane_reads *x);
bool prefetch_has_all(const struct engine *e, const struct flow *fl, const struct lane_reads *x);
bool prefetch_fetch_add(struct engine *e, struct flow *fl, const struct read_range *r,
			uint64_t add);
void prefetch_idle(struct engine *e, struct flow *fl);
void prefetch_run(struct engine *e, struct flow *fl);

/* prefetch_atomic.c: FetchAdds that the host has not asked yet */
bool prefetch_atomic_claim(struct engine *e, struct flow *fl, const struct frame *f,
			   struct wire_psn *wire);
void prefetch_atomic_seen(struct engine *e, struct flow *fl, const struct frame *f);
void prefetch_atomic_run(struct engine *e, struct flow *fl);

/* solo.c: SOLO */
bool solo_may_begin(const struct engine *e, const struct flow *fl, const struct frame *f);
void solo_begin(struct engine *e, struct flow *fl, const struct frame *f);
void solo_request(struct engine *e, struct flow *fl, const struct frame *f);
void solo_response(struct engine *e, struct flow *fl, const struct frame *f, enum engine_port from);
void solo_timer(struct engine *e, struct flow *fl, unsigned int which);
bool solo_drain(struct engine *e, struct flow *fl, enum lane_reason why);
bool solo_owes(struct engine *e, const struct flow *fl);

#endif

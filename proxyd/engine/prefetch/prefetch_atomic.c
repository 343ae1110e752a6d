// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * FetchAdds asked before the host asks for them (pseudo ATOMIC commands; role OPENER, pair mode,
 * only where the rule says `atomic = prefetch`): the same one - address, key, operand - that the
 * host has asked for several times in a row, as hosts do that draw numbers from a counter.
 *
 * The machinery is that of prefetch.c: a guess is a request of the lane under a wire PSN of its
 * own, its response waits here, and the host's own request, if it is exactly that, ends here and
 * takes it over. What differs is that a guess is no look at memory but a change of it:
 *
 *	- A FetchAdd that the host then does not ask for has been executed all the same. Nothing can
 *	  undo it; it is counted (atomics-unasked). So few are ever ahead, and none at first.
 *	- It cannot be asked anew. What a responder does not repeat any more is lost, so from the
 *	  oldest whose response has not come to the newest there are never more than the responder
 *	  keeps responses for. Should a response be lost for good on its way here, the host will ask
 *	  again, and the responder repeats it: under the same PSN, so nothing is executed twice.
 *	- The host may still lack responses from before the lane opened. The appliance does not have
 *	  them, and the responder must not forget them. It has them after as many more requests.
 *	- Guesses are alike, so the oldest is claimed first, each by one request of the host: it
 *	  sees the values in the order of execution, and none twice.
 *	- What has happened between the hosts since must not be missing from what a guess brings, as
 *	  for READs: anything but these FetchAdds themselves that moves the epoch of the pair ends
 *	  them (@epoch: each of the host's own moves it by one). So does any other request.
 *	- READs are never guessed beside them: a READ of the host drops these, a FetchAdd those.
 *
 * row: NTT-9
 */
#include "engine/prefetch/prefetch.h"

/* So many in a row show what the host does. */
#define RUN	  4u
#define AHEAD_MAX 8u

static uint64_t operand(const struct frame *f)
{
	return get_be64(f->data + f->atomiceth + 12u);
}

static bool alike(const struct lane_reads *x, const struct frame *f)
{
	return f->opcode == OP_FETCH_ADD && x->fetch_add.run && x->fetch_add.add == operand(f) &&
	       x->fetch_add.va == get_be64(f->data + f->atomiceth) &&
	       x->fetch_add.rkey == get_be32(f->data + f->atomiceth + 8u);
}

/* The oldest guess, if it is a FetchAdd: then all are. */
static struct fetch *oldest_guess(struct engine *e, const struct lane_reads *x)
{
	mq_each (struct fetch, g, e->reads, &x->fetches)
		if (g->state == FETCH_GUESS)
			return g->opcode == OP_FETCH_ADD ? g : NULL;
	return NULL;
}

/* The host's FetchAdd @f, whose ICRC is right: if it was asked ahead, its response is for @wire. */
bool prefetch_atomic_claim(struct engine *e, struct flow *fl, const struct frame *f,
			   struct wire_psn *wire)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct rule *r = fl->rule < 0 ? NULL : &e->rules[fl->rule];
	struct fetch *g = oldest_guess(e, x);

	if (!g)
		return false; /* guessed READs are dropped when this is taken */
	if (!alike(x, f) || x->fetch_add.epoch + 1 != *pair_epoch(e, &fl->key) || !r ||
	    r->atomic != ATOMIC_PREFETCH ||
	    (r->prefetch_max_age_ns && e->now - g->issued > r->prefetch_max_age_ns)) {
		fetch_drop_guesses(e, fl, &x->info.flushed_pattern);
		x->fetch_add.run = 0; /* let it show again what it does */
		return false;
	}
	x->fetch_add.epoch++;
	g->state = FETCH_ASKED;
	x->guesses--;
	*wire = g->psn;
	return true;
}

/* Something was accepted from the host. */
void prefetch_atomic_seen(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (!alike(x, f)) {
		x->fetch_add.run = f->opcode == OP_FETCH_ADD;
		if (!x->fetch_add.run)
			return;
		x->fetch_add.va = get_be64(f->data + f->atomiceth);
		x->fetch_add.rkey = get_be32(f->data + f->atomiceth + 8u);
		x->fetch_add.add = operand(f);
	} else if (x->fetch_add.run < RUN) {
		x->fetch_add.run++;
	}
	if (!x->guesses)
		x->fetch_add.epoch = *pair_epoch(e, &fl->key);
	prefetch_atomic_run(e, fl);
}

/* Whether one more may be on its way: counted from the oldest whose response has not come. */
static bool room(struct engine *e, const struct lane_reads *x, uint32_t depth)
{
	uint32_t n = 0;

	mq_each (const struct fetch, g, e->reads, &x->fetches)
		if (n || g->arrived != g->span)
			n++;
	return n < depth;
}

/* Ask ahead as far as that is allowed. */
void prefetch_atomic_run(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct rule *r = fl->rule < 0 ? NULL : &e->rules[fl->rule];
	struct read_range what = {x->fetch_add.va, x->fetch_add.rkey, 0};
	uint32_t most = x->depth < AHEAD_MAX ? x->depth : AHEAD_MAX;
	bool any = false;

	/* a READ could not pass where the two ends count differently */
	if (!prefetch_has_all(e, fl, x) || l->no_mtu)
		return;
	if (x->fetch_add.run < RUN || !r || r->atomic != ATOMIC_PREFETCH ||
	    l->role != ROLE_OPENER || x->fetch_add.epoch != *pair_epoch(e, &fl->key) ||
	    (x->guesses && !oldest_guess(e, x)))
		return;
	while (x->guesses < most && room(e, x, x->depth) &&
	       prefetch_fetch_add(e, fl, &what, x->fetch_add.add)) {
		x->info.atomics_ahead++;
		COUNT(e, ATOMICS_AHEAD);
		any = true;
	}
	if (any)
		pace_run(e, fl);
}

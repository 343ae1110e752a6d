// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * READs answered past us: what the host asks for tells of them (roles OPENER and SINGLE).
 */
#include "engine/near/near_priv.h"
#include "engine/prefetch/prefetch.h"

/* An answer that has not passed here for so long may have taken another way. */
#define PAST_US_NS NSEC_PER_SEC

/*
 * No answer to a READ, say, has passed here since the lane opened, and the responder has executed
 * it. Its host sent it before that, and may have had the answer before, or in a part that it had
 * asked for again; or the answer took a way past us. Such a host asks for nothing from before the
 * READ's end any more, but repeats what follows it. The next owner of the number may do that, too.
 * It is the same host if it asks in the very words that we know, or if the responder says so.
 */
static bool may_be_unseen(const struct engine *e, const struct lane *l, const struct read_rec *r)
{
	bool past_us =
		(!r->got && psn_before(r->wire, l->overlap)) || e->now - r->asked >= PAST_US_NS;

	return past_us && !psn_before(l->una.psn, psn_add(r->wire, r->span)) &&
	       e->now - r->asked >= (2 * l->rtt.srtt_us + AGAIN_US) * NSEC_PER_USEC &&
	       e->now - r->heard >=
		       AGAIN_US * NSEC_PER_USEC; /* else it has asked for it in the same round */
}

/* Its host has the answer to @r, the oldest that is awaited. */
static void answered_unseen(struct engine *e, struct flow *fl, struct read_rec *r)
{
	struct lane *l = &fl->lane;
	struct host_psn end = psn_add(r->at.psn, r->span);

	r->done = true;
	if (reads_of(e, l))
		fetch_cancel(e, fl, r->wire);
	psn_raise(&l->near.told, end);
	frontier_trim(e, l);
}

/* Whether @f asks for what a READ or the like that is awaited did, while nothing has lately shown
 * that somebody else asks: for something from before the end of @r that is not @r. */
static bool in_its_words(struct engine *e, struct flow *fl, const struct read_rec *r,
			 const struct frame *f)
{
	const struct read_rec *same = reads_find(e, &fl->lane.reads, host_psn_of(f));

	return (!r->other || e->now - r->other > STUCK_NS) && (f->op->flags & OPF_ANSWERED) &&
	       same && !other_read(fl, same, f);
}

bool unseen_told(struct engine *e, struct flow *fl, const struct frame *f, bool moved)
{
	struct lane *l = &fl->lane;
	struct read_rec *r = reads_head(e, l);
	bool within, answered = f->op->flags & OPF_ANSWERED;

	if (!r)
		return false;
	within = psn_in(host_psn_of(f), r->at.psn, psn_add(r->at.psn, r->span));
	if (within || psn_before(host_psn_of(f), r->at.psn)) {
		if ((!within || other_read(fl, r, f)) &&
		    e->now - r->asked > AGAIN_US * NSEC_PER_USEC && icrc_ok(f))
			r->other = e->now;
		return false;
	}
	if (!may_be_unseen(e, l, r) || !icrc_ok(f))
		return false;
	if (moved ? r->other : !in_its_words(e, fl, r, f))
		return !moved && !answered && psn_before(psn_same_wire(host_psn_of(f)), l->una.psn);
	answered_unseen(e, fl, r);
	return false;
}

/** unseen_proved - the responder has all below una and counts as we do: our host asked. */
void unseen_proved(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct read_rec *r = reads_head(e, l);

	if (!r || psn_before(psn_same_host(l->owner.passed_from), psn_add(r->at.psn, r->span)) ||
	    !may_be_unseen(e, l, r))
		return;
	answered_unseen(e, fl, r);
	l->near.ack_repeat = true;
	ack_list(e, fl);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * READs ahead of the target's, near the initiator (role ACCEPTOR), and what waits for them.
 *
 * They are requests to the initiator's responder between those of the lane: asked when all of the
 * lane that was ever sent has been sent again where it had to be, and never amid a message. @before
 * is where in the lane that was. When the lane goes back, those behind that place go again, too, if
 * they are not answered. They are answered in their order, so only the oldest takes packets; one
 * for a later READ shows a loss, and what is missing is asked again, as hosts do.
 *
 * What the lane has for the responder next (announce_turn()):
 *
 *	- A response waits for all commands from before it that are to be READ ahead, also those
 *	  that have not been asked yet: it may be theirs, and behind it their buffers are gone.
 *	- A READ of a command that is READ ahead waits for that, and for room in the map of numbers.
 *	- READs of the target and ours together are never more than the responder takes.
 *
 * Nothing here waits for anything but the initiator and its LAN.
 */
#include "engine/announce/announce.h"

/* A longer one is none of those that targets take at a time. */
#define LENGTH_MAX (4u << 20)
#define POOL_BUSY  60u
/* READs that no responder takes at a time. */
#define MANY	   256u
/* At least so long after a READ was asked it is not asked again. */
#define AGAIN_NS   (1 * NSEC_PER_MSEC)

static bool may_begin(struct engine *e, const struct flow *fl, const struct lane_announce *y,
		      const struct command *c)
{
	const struct lane *l = &fl->lane;
	const struct lane_reads *x = reads_of(e, l);

	return y->phase == ANNOUNCE_PROVEN && x->announce && l->state == LANE_HELD && !l->closing &&
	       !l->refusal && !l->gone && !l->opaque && fl->path_mtu && e->peer_up[l->peer] &&
	       c->length <= LENGTH_MAX && !psn_before(l->una.psn, l->overlap) &&
	       pool_fill(e->pool, POOL_TRANSIT) < POOL_BUSY &&
	       y->held.bytes < pool_share(e->pool, POOL_TRANSIT) && mq_free_count(e->reads) > 1024;
}

void announce_queue(struct engine *e, struct flow *fl, struct command *c)
{
	struct lane_announce *y = announce_of(e, &fl->lane);

	if (!may_begin(e, fl, y, c)) {
		y->info.native += y->phase == ANNOUNCE_PROVEN;
		return;
	}
	if (!y->told) {
		y->told = true;
		engine_event(e, EVENT_ANNOUNCE, fl, 0, 0);
	}
	c->state = COMMAND_QUEUED;
	c->seq = ++y->seq;
	pace_run(e, fl);
}

/* ---- how many at a time ---- */

/* READs, the target's and ours, from the oldest unanswered on: the responder repeats so many. */
static uint32_t outstanding(struct engine *e, const struct lane *l, const struct lane_announce *y)
{
	const struct own_read *own = mq_at(e->reads, y->own.head);
	uint64_t oldest = own ? own->place : y->issued + 1;

	mq_each (const struct read_rec, r, e->reads, &l->reads) {
		/* those that have a place have gone, or are just about to */
		if (r->absorbed || r->done)
			continue;
		if (!psn_before(r->wire, l->nxt.psn))
			break;
		if (!r->given)
			return MANY; /* from before we counted */
		oldest = MIN(oldest, r->given);
		break;
	}
	return (uint32_t)(y->issued + 1 - oldest);
}

static uint32_t depth(const struct engine *e, const struct flow *fl, const struct lane_announce *y)
{
	uint32_t n = flow_read_depth(e, fl);

	if (!n)
		n = y->most;
	return n ? n : 1;
}

/* ---- asking ---- */

static bool begin_numbers(struct engine *e, struct flow *fl, struct lane_announce *y)
{
	struct lane *l = &fl->lane;

	if (y->far.numbered)
		return true;
	if (!lane_fence(e, fl))
		return false;
	far_map_begin(&y->far, &l->nxt);
	return true;
}

static bool send(struct engine *e, struct flow *fl, struct own_read *r)
{
	if (read_ask(e, fl, r->psn.v, &r->what, psn_past(r->next, r->psn)))
		return false;
	if (r->asked_again)
		COUNT(e, RETX_LAN);
	r->sent = e->now;
	r->again = false;
	r->asked_again = true;
	return true;
}

/* The next READ of @c. False when the port has no room. */
static bool ask(struct engine *e, struct flow *fl, struct lane_announce *y, struct command *c)
{
	struct lane *l = &fl->lane;
	uint32_t left = c->length - c->asked, piece = y->split - y->split % flow_mtu(fl);
	uint32_t length = piece && piece < left ? piece : left;
	struct own_read *r = mq_at(e->reads, mq_push(e->reads, &y->own));

	if (!r)
		return true; /* may_ask() has seen one */
	*r = (struct own_read){
		.before = l->nxt,
		.what = {c->va + c->asked, c->rkey, length},
		.psn = y->far.next.psn,
		.next = y->far.next.psn,
		.span = (length + flow_mtu(fl) - 1) / flow_mtu(fl),
		.first = psn_add(c->base, c->asked / flow_mtu(fl)),
		.command = c->psn,
		.part = c->part,
		.place = ++y->issued,
		.again = true,
	};
	mark_step(&y->far.next, r->span, true, false);
	if (mq_len(e->reads, &y->own) == 1 && psn_is(l->una.psn, l->nxt.psn))
		l->progress = e->now;
	c->asked += length;
	c->state = COMMAND_ASKED;
	y->info.bytes += length;
	return send(e, fl, r);
}

static bool under_way(struct engine *e, const struct lane_announce *y, const struct command *c)
{
	mq_each (struct own_read, r, e->reads, &y->own)
		if (psn_is(r->command, c->psn) && r->part == c->part)
			return true;
	return false;
}

/* Nothing more of @c is asked: the lane ends, or it is over. What was asked is still awaited. */
static void cut(struct engine *e, struct lane_announce *y, struct command *c)
{
	y->info.native += c->state == COMMAND_QUEUED;
	c->asked = c->length;
	c->holed = true;
	if (!under_way(e, y, c))
		c->state = COMMAND_LIVE;
}

/* The next command that is to be READ ahead. */
static struct command *next_command(struct engine *e, const struct lane_announce *y)
{
	mq_each (struct command, c, e->reads, &y->commands)
		if ((c->state == COMMAND_QUEUED && !c->over) ||
		    (c->state == COMMAND_ASKED && c->asked < c->length))
			return c;
	return NULL;
}

/* Whether the map has a segment for what follows a READ that is sent, or absorbed, now. */
static bool segment_left(struct lane_announce *y, const struct lane *l)
{
	if (segments_full(&y->far.seg, 2))
		far_map_trim(&y->far, l->una.psn);
	return !segments_full(&y->far.seg, 2);
}

static bool may_ask(struct engine *e, const struct flow *fl, struct lane_announce *y)
{
	const struct lane *l = &fl->lane;

	return !y->inside && psn_is(l->nxt.psn, y->far.numbered ? y->far.asked.psn : l->high) &&
	       !l->rnr_wait && !l->refusal && l->state == LANE_HELD && segment_left(y, l) &&
	       mq_free_count(e->reads) > 0 && outstanding(e, l, y) < depth(e, fl, y);
}

bool announce_run(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_announce *y = announce_of(e, l);
	struct command *c;

	if (!y)
		return false;
	mq_each (struct own_read, r, e->reads, &y->own) {
		if (psn_after(r->before.psn, l->nxt.psn))
			break;
		if (r->again && !send(e, fl, r))
			return true;
	}
	while ((c = next_command(e, y))) {
		if (c->over || l->state != LANE_HELD) {
			cut(e, y, c);
			continue;
		}
		if (!may_ask(e, fl, y))
			break;
		if (c->state == COMMAND_QUEUED &&
		    (!may_begin(e, fl, y, c) || !begin_numbers(e, fl, y) ||
		     !push_numbers(e, y, c, (c->length + flow_mtu(fl) - 1) / flow_mtu(fl)))) {
			c->state = COMMAND_LIVE;
			y->info.native++;
			continue;
		}
		y->info.commands += !c->asked;
		if (!ask(e, fl, y, c))
			return true;
	}
	return false;
}

/* Records may have run out amid a command, with no answer under way that would bring us back. */
void announce_go_on(struct engine *e, struct flow *fl)
{
	const struct lane_announce *y = announce_of(e, &fl->lane);

	if (y && y->own.head == MQ_NONE && next_command(e, y))
		pace_run(e, fl);
}

bool announce_waits(struct engine *e, const struct lane *l)
{
	const struct lane_announce *y = announce_of(e, l);

	return y && y->own.head != MQ_NONE;
}

void announce_resume(struct engine *e, struct lane *l, struct wire_psn psn)
{
	struct lane_announce *y = announce_of(e, l);

	if (y)
		mq_each (struct own_read, r, e->reads, &y->own)
			r->again |= psn_after(r->before.psn, psn);
}

/* Whether so long nothing has come of @r that it may be asked again. */
static bool late(const struct engine *e, const struct flow *fl, const struct own_read *r)
{
	return e->now - r->sent > fl->lane.rtt.srtt_us * NSEC_PER_USEC + AGAIN_NS;
}

static void ask_all_again(struct engine *e, struct flow *fl, const struct lane_announce *y)
{
	mq_each (struct own_read, r, e->reads, &y->own)
		r->again = true;
	pace_run(e, fl);
}

void announce_overdue(struct engine *e, struct flow *fl)
{
	const struct lane_announce *y = announce_of(e, &fl->lane);

	if (y && y->own.head != MQ_NONE)
		ask_all_again(e, fl, y);
}

/* ---- answers ---- */

static struct command *command_of(struct engine *e, const struct lane_announce *y,
				  const struct own_read *r)
{
	mq_each (struct command, c, e->reads, &y->commands)
		if (c->state == COMMAND_ASKED && psn_is(c->psn, r->command) && c->part == r->part)
			return c;
	return NULL;
}

void own_answer(struct engine *e, struct flow *fl, struct own_read *r, const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint32_t i = psn_past(far_psn_of(f), r->psn);
	struct command *c = command_of(e, y, r);

	if (!reads_fit(OP_READ_REQUEST, i, r->span, r->what.length, f, fl->path_mtu)) {
		COUNT(e, STRAY_RESPONSE);
		return;
	}
	if (r != mq_at(e->reads, y->own.head) || psn_after(far_psn_of(f), r->next)) {
		/* something of the oldest is lost, and what comes now has to come again, too */
		if (late(e, fl, mq_at(e->reads, y->own.head)))
			ask_all_again(e, fl, y);
		return;
	}
	if (!psn_is(far_psn_of(f), r->next))
		return; /* it came before */
	r->next = psn_add(r->next, 1);
	r->sent = e->now;
	if (c && !c->over && !c->holed) {
		i += psn_sub(r->first, c->base);
		c->holed = !push_keep(e, fl, c, i, f);
		c->got += !c->holed;
	}
	if (!psn_is(r->next, psn_add(r->psn, r->span)))
		return;
	mq_pop(e->reads, &y->own);
	if (c && c->asked == c->length && !under_way(e, y, c))
		c->state = c->holed ? COMMAND_LIVE : COMMAND_HERE;
	if (c && c->state == COMMAND_HERE && !c->over)
		parity_keep(e, fl, c);
	pace_run(e, fl); /* what waited for it */
}

/* ---- what waits ---- */

/* The response at nxt: whether READs ahead for commands from before it are still under way. */
static bool barred(struct engine *e, const struct lane *l, struct lane_announce *y)
{
	if (!psn_is(y->barrier_psn, l->nxt.psn)) {
		y->barrier_psn = l->nxt.psn;
		y->barrier = y->seq;
	}
	mq_each (const struct command, c, e->reads, &y->commands)
		if ((c->state == COMMAND_ASKED || (c->state == COMMAND_QUEUED && !c->over)) &&
		    (int32_t)(c->seq - y->barrier) <= 0)
			return true;
	return false;
}

/* The target's READ @f, which comes for the first time. */
static enum announce_turn turn_read(struct engine *e, struct flow *fl, struct lane_announce *y,
				    const struct frame *f)
{
	struct read_range what = range_of(f);
	struct lane *l = &fl->lane;
	uint32_t others = outstanding(e, l, y);
	struct command *c;

	c = psn_is(y->looked, wire_psn_of(f)) ? announce_match(e, y, &what)
					      : announce_read(e, fl, &what);
	y->looked = wire_psn_of(f);
	if (c && (c->state == COMMAND_ASKED || c->state == COMMAND_QUEUED))
		return ANNOUNCE_WAIT;
	if (c && c->state == COMMAND_HERE) {
		/* nobody could tell any more which number what follows has got: it would go again
		 * under another, which the responder executes, or takes for done */
		if (!segment_left(y, l))
			return ANNOUNCE_WAIT;
		answer_absorb(e, fl, c, f);
		return ANNOUNCE_SKIP;
	}
	/* the target may go on here before the responder has answered: it is for us to count */
	if (y->far.numbered && others >= depth(e, fl, y))
		return ANNOUNCE_WAIT;
	if (!y->far.numbered && others < MANY && others + 1 > y->most)
		y->most = others + 1;
	return ANNOUNCE_SEND;
}

enum announce_turn announce_turn(struct engine *e, struct flow *fl, struct pkt *d)
{
	struct lane *l = &fl->lane;
	struct lane_announce *y = announce_of(e, l);
	const struct read_rec *r;
	struct frame f;

	if (!y)
		return ANNOUNCE_SEND;
	/* sent before: a command that has come since does not hold it up */
	if (psn_before(l->nxt.psn, y->far.numbered ? y->far.asked.psn : l->high)) {
		r = d->flags & PKT_ANSWERED ? reads_find_wire(e, &l->reads, l->nxt.psn) : NULL;
		return r && r->absorbed ? ANNOUNCE_SKIP : ANNOUNCE_SEND;
	}
	if (frame_parse(lane_packet(e, d), d->len, &f) != FRAME_OK)
		return ANNOUNCE_SEND;
	if (f.opcode == OP_READ_REQUEST)
		return turn_read(e, fl, y, &f);
	if (!(f.op->flags & OPF_SEND) || !(f.op->flags & (OPF_FIRST | OPF_ONLY)))
		return ANNOUNCE_SEND;
	if (barred(e, l, y))
		return ANNOUNCE_WAIT;
	announce_response(e, fl, &f);
	return ANNOUNCE_SEND;
}

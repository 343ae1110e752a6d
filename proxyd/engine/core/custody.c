// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a lane holds: packets come in through lane_retain(), and leave through lane_release(), which
 * only a true ACK calls, or all at once when the lane ends. The ledger is kept here.
 *
 * row: ENG-3
 */
#include "engine/core/core.h"
#include "engine/core/roles.h"

/* What a lane holds in slots before it takes a superblock of its own. */
#define SMALL_BYTES 8192u
/* So many messages may have been done behind the PSN that an ACK to a duplicate bears. */
#define RECOUNT_MAX 256u

uint8_t *lane_packet(struct engine *e, const struct pkt *d)
{
	return pool_ptr(e->pool, d->loc);
}

/* The copy at @data goes on under another PSN; whatever damage it may yet take stays detectable. */
static void renumber(uint8_t *data, const struct frame *f, struct wire_psn psn)
{
	struct frame g = *f;
	uint8_t b[3];

	g.data = data;
	put_be24(b, psn.v);
	icrc_patch(data, &g, f->bth + 9u, sizeof(b), b);
}

static bool tells_early(const struct lane *l)
{
	return lane_keeps(l) && l->policy == POLICY_EARLY;
}

/* Whether @l would hold more than its share of the memory. The rest of its superblock is its own
 * already. What is missing of a stream is not refused for that: all behind it waits for it. Nor is
 * what takes the place of released packets when the share has become less: the requester sends that
 * because of an ACK, and a refusal may use up its retries. It is told little then (near/ease.c). */
static bool over_share(struct engine *e, struct lane *l, struct wire_psn psn, uint32_t len)
{
	if (l->role == ROLE_ACCEPTOR && psn_before(psn, l->end))
		return false;
	if (l->held.packets && l->held.bytes + len > pool_share(e->pool, lane_class(l)))
		return (l->held.log.block == POOL_NONE || l->held.log.used + len > POOL_BLOCK) &&
		       (!tells_early(l) || (l->held.bytes + len) / WITHIN > l->near.within);
	if (tells_early(l))
		l->near.within = (uint32_t)((l->held.bytes + len) / WITHIN);
	return false;
}

/* Room for the bytes of @f. A lane that holds little shares superblocks with others. So do
 * header-only requests: they may wait long for their answer, and must not pin a superblock. */
static pool_loc take_room(struct engine *e, struct lane *l, const struct frame *f,
			  struct wire_psn psn, bool *slot)
{
	enum pool_class c = lane_class(l);
	enum pool_need need = l->held.packets ? POOL_MORE : POOL_FIRST;

	*slot = true;
	if ((f->op->flags & OPF_ANSWERED) && f->len <= POOL_SLOT)
		return pool_slot_get(e->pool, c, f->len,
				     l->held.packets ? POOL_REQUEST : POOL_FIRST);
	if (over_share(e, l, psn, f->len))
		return POOL_NONE;
	if (l->held.log.block == POOL_NONE && l->held.bytes + f->len <= SMALL_BYTES)
		return pool_slot_get(e->pool, c, f->len, need);
	*slot = false;
	return pool_append(e->pool, c, &l->held.log, f->len);
}

static void give_back(struct engine *e, struct lane *l, pool_loc loc, uint32_t len, bool slot)
{
	if (slot)
		pool_slot_put(e->pool, loc);
	else
		pool_unappend(e->pool, &l->held.log, loc, len);
}

/* Order of writes: the bytes, then the descriptor, then - in the caller - the mark that
 * publishes them; an acknowledgement can only follow from a mark. */
struct pkt *lane_retain(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
			struct wire_psn psn, bool *bad)
{
	struct lane *l = &fl->lane;
	struct pkt *d = NULL;
	uint32_t flags;
	pool_loc loc;
	bool slot;

	*bad = false;
	if (!lane_must(e, l,
		       lane_keeps(l) ? psn_is(psn, l->epsn.psn)
				     : psn_past(psn, l->epsn.psn) < WINDOW_SPAN,
		       psn.v, l->epsn.psn.v))
		return NULL;
	loc = take_room(e, l, f, psn, &slot);
	if (loc == POOL_NONE)
		return NULL;
	*bad = !icrc_copy_ok(pool_ptr(e->pool, loc), f);
	if (*bad)
		e->counters[EC_BAD_ICRC] += !f->seal;
	else
		d = window_put(&l->held.win, e->pool, lane_class(l), psn.v);
	if (!d) {
		give_back(e, l, loc, f->len, slot);
		return NULL;
	}
	if (psn.v != f->psn)
		renumber(pool_ptr(e->pool, loc), f, psn);
	flags = PKT_USED | (slot ? PKT_SLOT : 0) | (f->ackreq ? PKT_ACKREQ : 0);
	if (f->op->flags & OPF_ANSWERED)
		flags |= PKT_ANSWERED | PKT_EOM;
	else if (f->op->flags & OPF_EOM)
		flags |= PKT_EOM;
	*d = (struct pkt){.loc = loc, .len = (uint16_t)f->len, .span = span, .flags = flags};
	l->messages += !!(flags & PKT_EOM);
	e->keepers += lane_keeps(l) && !l->held.packets;
	if (!l->held.packets++)
		l->waits_ms = ms_of(e->now);
	l->held.bytes += f->len;
	if (lane_keeps(l) && fl->rule >= 0)
		e->rule_bytes[fl->rule] += f->len;
	return d;
}

void lane_forget(struct engine *e, struct flow *fl, struct pkt *d, struct wire_psn psn)
{
	struct lane *l = &fl->lane;

	(void)lane_must(e, l, l->held.packets && l->held.bytes >= d->len, l->held.packets,
			l->held.bytes);
	if (lane_keeps(l) && fl->rule >= 0)
		e->rule_bytes[fl->rule] -= d->len;
	l->messages -= !!(d->flags & PKT_EOM);
	held_del(e, &l->held, d, psn.v);
	e->keepers -= lane_keeps(l) && !l->held.packets;
}

static void trail(struct engine *e, struct lane *l)
{
	struct psn_map *map = lane_keeps(l) ? map_of(e, l) : NULL;
	struct wire_psn to = psn_sub(l->una.psn, MARK_TRAIL);
	struct host_psn host;

	if (map) {
		psn_map_trim(map, l->una.psn);
		psn_raise(&map->proof, l->una.psn);
	}

	if (!psn_before(l->start, to))
		return;
	mark_start(l, to);
	if (map)
		map->trailed = true;
	psn_raise(&l->overlap, to);
	if (l->role != ROLE_OPENER)
		psn_raise(&l->far.ackreq_end, to);
	if (l->role == ROLE_ACCEPTOR)
		return;
	host = map ? psn_to_host(e, l, &l->una).psn : psn_same_host(l->una.psn);
	/* an answer that is missing holds the frontier back, and what is told */
	if (psn_after(host, l->near.frontier.psn))
		host = l->near.frontier.psn;
	host = psn_sub(host, MARK_TRAIL);
	psn_raise(&l->near.told, host);
	if (l->role == ROLE_OPENER) {
		psn_raise(&l->held.lost_from, to);
		psn_raise(&l->reached, to);
		psn_raise(&l->opener.reached_hi, to);
	}
	if (psn_before(l->near.acked.psn, host))
		l->near.acked = (struct host_mark){.psn = host};
	if (psn_known(l->keeper.reasked_psn) && psn_before(l->keeper.reasked_end, host))
		l->keeper.reasked_psn = HOST_NONE;
}

/* Everything before @next is truly acknowledged. The only way in which custody ends well. False
 * when something is wrong, and it does not end for all of that. */
static bool lane_release(struct engine *e, struct flow *fl, struct wire_psn next)
{
	struct lane *l = &fl->lane;
	struct wire_psn psn = l->una.psn, at;
	bool right = true;
	struct pkt *d;

	while (psn_before(psn, next) && (d = lane_pkt_next(e, l, psn, next, &at))) {
		uint32_t span = d->span;

		/* nothing that was promised is missing, and what goes is acknowledged as a whole */
		right = lane_must(e, l,
				  (psn_is(at, psn) || !lane_keeps(l)) && span <= psn_past(next, at),
				  at.v, next.v);
		if (!right) {
			next = psn;
			break;
		}
		lane_forget(e, fl, d, at);
		psn = psn_add(at, span);
	}
	(void)lane_must(e, l,
			l->held.packets ? psn_before(next, l->end)
					: !(l->held.bytes | l->messages | l->held.lost),
			l->held.packets, l->held.bytes);
	mark_una_psn(l, next);
	l->progress = e->now;
	l->waits_ms = ms_of(e->now);
	trail(e, l);
	if (!l->held.packets)
		pool_log_close(e->pool, &l->held.log);
	return right;
}

/* The responder has truly acknowledged more than was accepted here: while the lane was opening,
 * packets that we missed reached it past us. The requester knows, or will hear it. */
void lane_skip(struct engine *e, struct flow *fl, const struct wire_mark *m)
{
	struct lane *l = &fl->lane;
	struct wire_psn from = l->epsn.psn;
	uint32_t msn = l->una.msn, messages = l->messages;
	struct psn_map *map = lane_keeps(l) ? map_of(e, l) : NULL;
	struct wire_mark una;
	uint32_t over;

	if (!lane_release(e, fl, m->psn)) {
		una = l->una;
		if (psn_before(l->nxt.psn, una.psn))
			mark_resend(l, &una);
		return;
	}
	una = *m;
	/* where every packet was here our count is exact; an ACK to a duplicate has a newer MSN */
	if (!l->opaque && !psn_after(m->psn, from))
		una.msn = msn + (messages - l->messages);
	mark_una(l, &una);
	/* it began with such an ACK: never does one bear less than was done below it */
	over = psn_sub(una.msn, m->msn);
	if (!lane_keeps(l) && over && over <= RECOUNT_MAX)
		mark_recount(l, over);
	if (l->opaque && psn_is(m->psn, from)) {
		if (map)
			map->asked.msn = psn_add(map->asked.msn, psn_sub(m->msn, l->epsn.msn));
		mark_epsn_msn(l, m->msn);
		l->opaque = false;
	}
	if (psn_before(l->nxt.psn, m->psn))
		mark_resend(l, m);
	mark_high(l, m->psn);
	if (!psn_before(from, m->psn))
		return;
	mark_epsn(l, m);
	if (map)
		map->asked = mark_same_host(*m); /* only while opening it comes here */
	l->near.msg = MSG_UNKNOWN;
	l->near.msg_left = MSG_LEFT_UNKNOWN;
	l->near.nak_sent = false;
	if (psn_before(l->end, m->psn))
		mark_held(l, m->psn);
}

void lane_send_rest(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_psn psn = l->nxt.psn;
	struct pkt *d;

	if (l->state == LANE_OPENING && l->sealed) {
		l->sealed = false; /* the peer does not agree: only the host's own is understood */
		psn = l->una.psn;
	}
	while (psn_before(psn, l->end) && (d = lane_pkt_next(e, l, psn, l->end, &psn))) {
		if (engine_tx_kept(e, fl, other_port(fl->side), lane_packet(e, d), d->len))
			return; /* as on a link that is full */
		psn = psn_add(psn, d->span);
	}
}

/* The books of the lane are wrong. They are made from what is there, so that all of it goes. */
static void count_again(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_psn psn = l->una.psn;
	struct wire_psn end = psn_add(psn, WINDOW_SPAN);
	uint32_t had = l->held.packets;
	const struct pkt *d;

	l->held.packets = l->messages = l->held.lost = 0;
	l->held.bytes = 0;
	while (psn_before(psn, end) && (d = lane_pkt_next(e, l, psn, end, &psn))) {
		l->held.packets++;
		l->held.bytes += d->len;
		l->messages += !!(d->flags & PKT_EOM);
		l->held.lost += !!(d->flags & PKT_LOST);
		psn = psn_add(psn, 1);
	}
	if (lane_keeps(l))
		e->keepers += !!l->held.packets - !!had;
}

void lane_drop_all(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct wire_psn psn = l->una.psn, end = psn_add(psn, WINDOW_SPAN);
	struct pkt *d;

	if (l->broken)
		count_again(e, fl);
	while (l->held.packets && (d = lane_pkt_next(e, l, psn, end, &psn)))
		lane_forget(e, fl, d, psn);
	pool_log_close(e->pool, &l->held.log);
	mq_flush(e->reads, &l->reads);
	l->nreads = 0;
	if (l->role == ROLE_SINGLE)
		l->single.made = MQ_NONE;
	if (role_of(e, l)->end)
		role_of(e, l)->end(e, fl);
}

/* The responder has truly acknowledged all below @m. What that allows the tick tells. */
void lane_true_ack(struct engine *e, struct flow *fl, const struct wire_mark *m)
{
	struct lane *l = &fl->lane;

	if (psn_after(m->psn, l->una.psn)) {
		lane_skip(e, fl, m);
		(void)lane_marks_must(e, l);
		l->backoff = 0;
		/* the responder counts as we do: EVIDENCE_COUNTS (owner/owner.c) */
		if (l->owner.state != OWNER_PROVED)
			l->owner.state = OWNER_KNOWN;
		l->owner.held_once = false;
	}
	if (psn_after(l->una.psn, l->start))
		l->start_acked = true;
	if (l->reads_page != POOL_NONE)
		pace_run(e, flow_partner(e, fl)); /* what waited for something opaque before it */
	ack_list(e, fl);
}

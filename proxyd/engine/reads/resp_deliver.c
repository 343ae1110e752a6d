// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Responses on their way to the host (role OPENER), from what resp_rx.c holds.
 *
 * There is a record (struct read_rec) for each READ that the host asked, in its order; packet i of
 * the response is the one held at record.wire + i, given the host's PSN and MSN. When it is
 * through, the record moves to @kept, with its packets, as many records as a host may have READs
 * outstanding: a host that lost the response on its LAN gets it from there.
 *
 * row: ENG-11, FAST-5
 */
#include "engine/reads/reads.h"

/* So many READs a host may have outstanding, unless more are known; fewer if records are short. */
#define KEEP_MIN   32u
#define KEEP_SHORT 2u
#define KEEP_MAX   256u
/* A host that lost a response asks again within this, and so it does when that is lost too, but not
 * for ever. Later it may be another owner, who is given what is true today. */
#define KEPT_NS	   (1 * NSEC_PER_SEC)
#define RENEWED_NS (10 * NSEC_PER_SEC)
/* In percent. */
#define POOL_SHORT 60u

bool resp_drop_kept(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct read_rec *r = read_at(e, x->kept.head);

	if (!r)
		return false;
	if (r->renewed)
		fetch_abandon(e, fl, r->wire);
	if (!r->empty) /* its places may be those of later ones by now */
		resp_drop(e, x, r->wire, psn_add(r->wire, r->span));
	mq_pop(e->reads, &x->kept);
	return true;
}

void resp_keep(struct engine *e, struct flow *fl, const struct read_rec *r)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t most = 2 * x->most > KEEP_MIN ? 2 * x->most : KEEP_MIN;
	struct read_rec *k;

	if (resp_long(r->span))
		return;
	most = MIN(most, KEEP_MAX);
	if (mq_free_count(e->reads) < READS_MAX / 4)
		most = KEEP_SHORT;
	while (mq_len(e->reads, &x->kept) >= most)
		resp_drop_kept(e, fl);
	k = read_at(e, mq_push(e->reads, &x->kept));
	if (!k) {
		if (r->renewed)
			fetch_abandon(e, fl, r->wire);
		resp_drop(e, x, r->wire, psn_add(r->wire, r->span));
		return;
	}
	*k = *r;
	k->asked = k->given = e->now;
}

uint8_t resp_opcode(uint32_t i, uint32_t span)
{
	if (span == 1)
		return OP_READ_RESPONSE_ONLY;
	if (!i)
		return OP_READ_RESPONSE_FIRST;
	return i + 1 == span ? OP_READ_RESPONSE_LAST : OP_READ_RESPONSE_MIDDLE;
}

/* The packet that the host must see as number @i of @r, made of what is held. */
int resp_give(struct engine *e, struct flow *fl, const struct read_rec *r, uint32_t i,
	      const uint8_t *data, uint32_t len)
{
	struct host_psn psn = psn_add(r->at.psn, i);
	uint32_t msn = psn_add(r->at.msn, 1);
	uint8_t want = r->opcode == OP_READ_REQUEST ? resp_opcode(i, r->span) : 0;
	uint8_t out[FRAME_MAX], blank[FRAME_MAX];
	struct template t = {0};
	const struct frame *h;
	struct frame f, g;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return 0; /* it was one when it came */
	if (want && want != f.opcode) {
		struct build_spec s = {.t = &t,
				       .opcode = want,
				       .dqpn = f.dqpn,
				       .psn = psn.v,
				       .syndrome = lane_syndrome(&fl->lane),
				       .msn = msn,
				       .payload = data + f.payload,
				       .payload_len = f.payload_len};

		template_learn(&t, &f);
		return engine_tx_kept(e, fl, fl->side, out, build_packet(out, &s));
	}
	h = atomic_blank(&fl->lane, &f, &g, blank);
	if (r->wire.v == r->at.psn.v && (!f.aeth || !r->moved))
		return engine_tx_kept(e, fl, fl->side, h->data, len);
	return engine_tx_kept(e, fl, fl->side, out, psn_map_frame(out, h, psn.v, msn));
}

void resp_through(struct engine *e, struct flow *fl, struct read_rec *r)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct host_psn end = psn_add(r->at.psn, r->span);

	r->done = true;
	x->stuck = 0;
	psn_raise(&l->near.told, end);
	if (r->opcode == OP_READ_REQUEST)
		ranges_note(e, fl, &r->what);
	while ((r = reads_head(e, l)) && r->done) {
		if (opcode_info(r->opcode)->flags & OPF_ANSWERED)
			resp_keep(e, fl, r);
		mq_pop(e->reads, &l->reads);
		l->nreads--;
	}
}

/* The packet held that bears @psn: another a whole window away has the same place. */
static struct pkt *held_as(struct engine *e, const struct lane_reads *x, struct wire_psn psn)
{
	struct pkt *d = held_pkt(e, &x->held, psn);
	struct frame f;

	return d && frame_parse(pool_ptr(e->pool, d->loc), d->len, &f) == FRAME_OK && f.psn == psn.v
		       ? d
		       : NULL;
}

/* There is no room, and the host has got a part of a READ that is not through yet: that part goes.
 * Should the host have lost it, the responder is asked again, as for what was never kept. */
bool resp_drop_given(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct read_rec *r = reads_head(e, &fl->lane);
	struct wire_psn psn, end;
	uint32_t held = x->held.packets;

	if (!r || resp_long(r->span))
		return false;
	psn = r->wire;
	end = psn_add(psn, r->got);
	while (psn_before(psn, end) && held_next(e, &x->held, psn, end, &psn)) {
		/* the place of one that is gone may be that of a later one by now */
		if (held_as(e, x, psn))
			resp_drop(e, x, psn, psn_add(psn, 1));
		psn = psn_add(psn, 1);
	}
	return x->held.packets != held;
}

/* A turn toward the host. Returns true when there is more to give but it had to stop. */
bool resp_deliver(struct engine *e, struct flow *fl, uint32_t quantum, bool *moved)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t budget = quantum;
	bool stopped = false;
	struct read_rec *r;

	/* an answer tells that all before it is done: who may be another owner is told nothing */
	if (!x || l->state == LANE_FAULT || owner_unsure(l) || l->near.quiet)
		return false;
	while ((r = reads_head(e, l)) && (opcode_info(r->opcode)->flags & OPF_ANSWERED)) {
		uint32_t i = r->got;
		struct pkt *d = held_as(e, x, psn_add(r->wire, i));

		/* it would acknowledge what is before it, unknown to the acceptor (announce/) */
		if (!d || (l->renumbered && psn_before(l->near.frontier.psn, r->at.psn)))
			break;
		if (!lane_must(e, l, i < r->span && psn_before(r->at.psn, x->map.asked.psn), r->got,
			       r->at.psn.v))
			break;
		if (!budget || resp_give(e, fl, r, i, pool_ptr(e->pool, d->loc), d->len)) {
			stopped = true;
			break;
		}
		budget -= d->len < budget ? d->len : budget;
		r->got++;
		*moved = true;
		if (resp_long(r->span))
			resp_drop(e, x, psn_add(r->wire, i), psn_add(r->wire, i + 1));
		if (i + 1 == r->span)
			resp_through(e, fl, r);
	}
	if (*moved)
		ack_list(e, fl);
	return stopped;
}

/* Whether @k is kept for too long already to be given once more. */
static bool expired(const struct engine *e, const struct lane_reads *x, const struct read_rec *k)
{
	/* the responder will not answer in time */
	bool only_here = k->renewed || (x->guessed_ever && k->opcode != OP_READ_REQUEST);

	return e->now - k->asked > (only_here ? RENEWED_NS : KEPT_NS) ||
	       e->now - k->given > RENEWED_NS;
}

/* Memory is short: what nobody will be given any more makes room for what other hosts wait for. */
void resp_expire(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (!x || !x->held.packets || pool_fill(e->pool, POOL_TRANSIT) < POOL_SHORT)
		return;
	mq_each (struct read_rec, k, e->reads, &x->kept) {
		if (k->opcode != OP_READ_REQUEST || k->empty || !expired(e, x, k))
			continue;
		resp_drop(e, x, k->wire, psn_add(k->wire, k->span));
		k->empty = true;
	}
}

/* The READ or ATOMIC that was answered, up to the end of @f at least, and of which @f, @span
 * packets, asks for all or a part; or NULL. The rest may still be on its way. */
static struct read_rec *given(struct engine *e, struct flow *fl, const struct frame *f,
			      uint32_t span)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct read_rec *k = reads_find(e, &fl->lane.reads, host_psn_of(f));

	if (k) {
		if (psn_past(host_psn_of(f), k->at.psn) + span > k->got)
			return NULL;
		return reads_part(fl, k, f) ? k : NULL;
	}
	k = reads_find(e, &x->kept, host_psn_of(f));
	if (!k || k->empty || expired(e, x, k))
		return NULL;
	if (f->opcode == OP_READ_REQUEST)
		return reads_part(fl, k, f) ? k : NULL;
	if (!x->guessed_ever || f->opcode != k->opcode || !psn_is(host_psn_of(f), k->at.psn) ||
	    reads_digest(f) != k->digest)
		return NULL;
	return k;
}

bool resp_other(struct engine *e, const struct flow *fl, const struct frame *f)
{
	const struct lane_reads *x = reads_of(e, &fl->lane);
	const struct read_rec *k = x ? reads_find(e, &x->kept, host_psn_of(f)) : NULL;

	/* Else the responder can be asked whose it is. One without a length has only passed by, see
	 * resp_wire_psn(). */
	return k && x->guessed_ever && f->opcode == OP_READ_REQUEST && k->what.length &&
	       !reads_part(fl, k, f);
}

void resp_repeated(struct engine *e, struct flow *fl, struct host_psn psn)
{
	struct lane_keeper *k = &fl->lane.keeper;

	if (!psn_is(psn_add(psn, 1), k->reasked_end))
		return;
	k->reasked = 0;
	if (!psn_known(k->reasked_psn))
		return;
	k->reasked_psn = HOST_NONE;
	ack_schedule(e, fl);
}

/* The host asks again for what it had been given. @f may ask for a part of a READ, which is
 * answered from here if it is of whole packets. True when it was answered. */
bool resp_repeat(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t skip, span = frame_span(f, flow_mtu(fl));
	struct read_rec *k = given(e, fl, f, span), r;

	if (!k)
		return false;
	skip = psn_past(host_psn_of(f), k->at.psn);
	if (f->opcode == OP_READ_REQUEST && skip + span != k->span &&
	    frame_reth_length(f) % flow_mtu(fl))
		return false;
	for (uint32_t i = 0; i < span; i++)
		if (!held_as(e, x, psn_add(k->wire, skip + i)))
			return false;
	r = *k;
	r.at.psn = host_psn_of(f);
	r.wire = psn_add(k->wire, skip);
	r.span = span;
	for (uint32_t i = 0; i < span; i++) {
		struct pkt *d = held_pkt(e, &x->held, psn_add(r.wire, i));

		if (resp_give(e, fl, &r, i, pool_ptr(e->pool, d->loc), d->len))
			break; /* no room in the port: it asks once more */
	}
	if (x->guessed_ever && k->done)
		k->asked = e->now; /* the responder may have forgotten it */
	x->info.answered_again++;
	resp_repeated(e, fl, psn_add(host_psn_of(f), span - 1));
	return true;
}

/* The wire PSN of the READ or ATOMIC @f that is asked again past the lane; PSN_NONE: unknown. */
struct wire_psn resp_wire_psn(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct read_rec *r = reads_find(e, &fl->lane.reads, host_psn_of(f)), lost = {0};
	struct wire_psn wire;

	x->past_ms = some_ms(e);
	if (!r)
		r = reads_find(e, &x->kept, host_psn_of(f));
	if (r) {
		r->again = true;
		return psn_add(r->wire, psn_past(host_psn_of(f), r->at.psn));
	}
	wire = psn_to_wire(&x->map, host_psn_of(f));
	if (!psn_known(wire) || !x->guessed_ever)
		return wire;
	/* an ATOMIC: so that the response finds its way */
	lost.at.psn = host_psn_of(f);
	lost.at.msn = psn_sub(x->map.asked.msn, 1);
	lost.span = frame_span(f, flow_mtu(fl));
	lost.wire = wire;
	lost.opcode = f->opcode;
	lost.again = lost.moved = lost.done = lost.empty = true;
	resp_keep(e, fl, &lost);
	return wire;
}

/* Nothing has come or gone for long: what is kept in case the host lost it may go. */
void resp_idle(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	while (x && resp_drop_kept(e, fl))
		;
}

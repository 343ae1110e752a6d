/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers from the WAN, receiving end (role OPENER): what comes is kept by its wire PSN until the host has
 * asked for it and got it, in the order in which the host asked.
 *
 * Everything that was asked of the responder is a fetch, in the order of wire PSNs, so it is known exactly
 * which answer packets must come. @end is the first of them that has not come with nothing behind it that
 * has; an arrival beyond it leaves a hole. Wire PSNs between two fetches belong to other requests: a hole may
 * span them, and filling the last packet of a fetch fills up to the next one.
 *
 * The acceptor is told (REPORT_ANSWERS) what came and what is missing, at once when a hole opens or closes,
 * else after some packets or a short while, and again as long as something is missing.
 *
 * The host is answered from what is held: a record (struct read_rec) for each READ that it asked, in its order;
 * packet i of the answer is the one held at record.wire + i, given the host's PSN and MSN. When it is through,
 * the record moves to @kept, with its packets, as many records as a host may have READs outstanding: a host
 * that lost the answer on its LAN gets it from there. Older ones it cannot lack.
 *
 * Should the acceptor have lost an answer (it had no room, or it was restarted), the timer asks the responder
 * again, with a READ for the rest of the range under the PSNs of the first, which is what a host would do
 * (InfiniBand vol. 1, 9.7.5.1.1). Its answer begins with a FIRST of its own in the middle of the range: the opcode
 * that the host must see is made anew then. A responder keeps only few answers to repeat, though, and guesses
 * run ahead by many: what it does not answer is asked for anew, under new PSNs (ahead_anew()).
 */
#include "engine/answers.h"

/* A host may have so many READs outstanding, unless it is known to have more; when records are short, fewer. */
#define KEEP_MIN 32u
#define KEEP_SHORT 2u
#define KEEP_MAX 256u
/* A host that lost an answer asks again within this. Later it may be another incarnation of the QP that asks, and is given
 * what is true today. */
#define KEPT_NS (1 * NSEC_PER_SEC)
#define RENEWED_NS (10 * NSEC_PER_SEC)
#define OVERDUE_MIN_NS (200 * NSEC_PER_MSEC)

static struct read_rec *rec_at(struct engine *e, uint32_t id)
{
	return id == MQ_NONE ? NULL : mq_ptr(e->reads, id);
}

static bool in_fetch(const struct fetch *g, uint32_t psn)
{
	return psn_in(psn, g->psn, psn_add(g->psn, g->span));
}

/* The fetch that the answer packet @psn belongs to. Most packets belong to that of the latest one, or the next. */
static uint32_t find(struct engine *e, struct lane_reads *x, uint32_t psn)
{
	uint32_t id = x->hint;

	for (int i = 0; i < 2 && id != MQ_NONE; i++, id = mq_next(e->reads, id))
		if (in_fetch(fetch_at(e, id), psn))
			return id;
	for (id = x->fetches.head; id != MQ_NONE; id = mq_next(e->reads, id))
		if (in_fetch(fetch_at(e, id), psn))
			return id;
	return MQ_NONE;
}

/* Forget the fetches at the head that have come whole and that nobody will ask for. */
static void trim(struct engine *e, struct lane_reads *x)
{
	struct fetch *g;

	while ((g = fetch_at(e, x->fetches.head)) && g->arrived == g->span && g->state != FETCH_GUESS) {
		if (x->hint == x->fetches.head)
			x->hint = mq_next(e->reads, x->hint);
		x->gone -= g->state == FETCH_GONE;
		mq_pop(e->reads, &x->fetches);
	}
}

static uint64_t overdue_ns(const struct lane *l)
{
	return 4ull * l->srtt_us * NSEC_PER_USEC + OVERDUE_MIN_NS;
}

static void arm(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t id = TIMER_ID(flow_index(e, fl), TIMER_ANSWER);

	if (x->fetches.head == MQ_NONE)
		wheel_cancel(e->wheel, id);
	else if (!wheel_armed(e->wheel, id))
		wheel_arm(e->wheel, id, e->now + (overdue_ns(l) << x->backoff));
}

bool answers_expect(struct engine *e, struct flow *fl, const struct read_range *what, uint8_t opcode,
		    uint32_t psn, uint32_t span, enum fetch_state state)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	const struct fetch *last = fetch_at(e, x->fetches.tail);
	bool all = !last || !psn_before(x->end, psn_add(last->psn, last->span));
	uint32_t id = mq_push(e->reads, &x->fetches);
	struct fetch *g = fetch_at(e, id);

	if (!g)
		return false;
	*g = (struct fetch){
		.what = *what,
		.issued = e->now,
		.touched = e->now,
		.psn = psn,
		.span = span,
		.epoch = *ahead_epoch(e, &fl->key),
		.opcode = opcode,
		.state = (uint8_t)state,
	};
	x->unique += opcode != OP_READ_REQUEST;
	if (all)
		x->end = psn; /* nothing is awaited before it */
	if (x->hint == MQ_NONE)
		x->hint = id;
	if (!wheel_armed(e->wheel, TIMER_ID(flow_index(e, fl), TIMER_ANSWER))) {
		x->arrival = e->now;
		arm(e, fl);
	}
	return true;
}

/* ---- what is held ---- */

static void drop(struct engine *e, struct lane_reads *x, uint32_t from, uint32_t end)
{
	uint32_t psn = from;
	struct pkt *d;

	while (x->held && psn_before(psn, end) && (d = window_next(&x->win, e->pool, psn, end, &psn))) {
		x->held--;
		x->held_bytes -= d->len;
		pool_release(e->pool, &x->log, d->loc, d->len);
		window_del(&x->win, e->pool, psn);
		psn = psn_add(psn, 1);
	}
	if (!x->held)
		pool_log_close(e->pool, &x->log);
}

static bool drop_kept(struct engine *e, struct lane_reads *x)
{
	const struct read_rec *r = rec_at(e, x->kept.head);

	if (!r)
		return false;
	drop(e, x, r->wire, psn_add(r->wire, r->span));
	mq_pop(e->reads, &x->kept);
	x->nkept--;
	return true;
}

/* Its packets take their places one after the other. */
static bool long_read(const struct read_rec *r)
{
	return r->span > WINDOW_SPAN / 2;
}

static void keep(struct engine *e, struct lane_reads *x, const struct read_rec *r)
{
	uint32_t most = 2 * x->most > KEEP_MIN ? 2 * x->most : KEEP_MIN;
	struct read_rec *k;

	if (long_read(r))
		return;
	if (most > KEEP_MAX)
		most = KEEP_MAX;
	if (mq_free_count(e->reads) < READS_MAX / 4)
		most = KEEP_SHORT;
	while (x->nkept >= most)
		drop_kept(e, x);
	k = rec_at(e, mq_push(e->reads, &x->kept));
	if (!k) {
		drop(e, x, r->wire, psn_add(r->wire, r->span));
		return;
	}
	*k = *r;
	k->asked = e->now;
	x->nkept++;
}

/*
 * Two packets whose PSNs are a whole window apart have one place. So nothing is asked for before what was in the
 * places of its answer has gone: what is kept goes, what the host has not got yet must be waited for.
 */
bool answers_room(struct engine *e, struct flow *fl, uint32_t psn, uint32_t span)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t at;

	while (window_next(&x->win, e->pool, psn, psn_add(psn, span), &at))
		if (!drop_kept(e, x))
			return false;
	return true;
}

/* Retain the answer packet @f; NULL when there is no room for it (or it is damaged: @bad). */
static struct pkt *retain(struct engine *e, struct lane_reads *x, const struct frame *f, bool *bad)
{
	uint32_t loc;
	struct pkt *d;

	*bad = false;
	do {
		loc = pool_append(e->pool, POOL_TRANSIT, &x->log, f->len);
		if (loc == POOL_NONE)
			continue;
		if (!icrc_copy_ok(pool_ptr(e->pool, loc), f)) {
			pool_unappend(e->pool, &x->log, loc, f->len);
			*bad = true;
			return NULL;
		}
		d = window_put(&x->win, e->pool, POOL_TRANSIT, f->psn);
		if (d) {
			d->loc = loc;
			d->len = (uint16_t)f->len;
			d->span = 1;
			d->flags = PKT_USED;
			x->held++;
			x->held_bytes += f->len;
			return d;
		}
		pool_unappend(e->pool, &x->log, loc, f->len);
	} while (drop_kept(e, x));
	return NULL;
}

/* A guess that shall not be given: what came of it goes, and the rest need not come. answers_forgotten() follows. */
void answers_forget(struct engine *e, struct flow *fl, struct fetch *g)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	x->gone += g->state != FETCH_GONE;
	g->state = FETCH_GONE;
	g->arrived = g->span;
	x->info.wasted_bytes += g->what.length;
	x->guessed -= g->what.length;
	x->guesses--;
	drop(e, x, g->psn, psn_add(g->psn, g->span));
}

/* ---- to the host ---- */

static uint8_t opcode_at(uint32_t i, uint32_t span)
{
	if (span == 1)
		return OP_READ_RESPONSE_ONLY;
	if (!i)
		return OP_READ_RESPONSE_FIRST;
	return i + 1 == span ? OP_READ_RESPONSE_LAST : OP_READ_RESPONSE_MIDDLE;
}

/* The packet that the host must see as number @i of @r, made of what is held. */
static int give(struct engine *e, struct flow *fl, const struct read_rec *r, uint32_t i, const uint8_t *data,
		uint32_t len)
{
	uint32_t psn = psn_add(r->at.psn, i), msn = psn_add(r->at.msn, 1);
	uint8_t want = r->opcode == OP_READ_REQUEST ? opcode_at(i, r->span) : 0;
	struct template t = {0};
	uint8_t out[FRAME_MAX];
	struct frame f;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return 0; /* it was one when it came */
	if (want && want != f.opcode) {
		struct build_spec s = {.t = &t,
				       .opcode = want,
				       .dqpn = f.dqpn,
				       .psn = psn,
				       .syndrome = AETH_ACK_UNLIMITED,
				       .msn = msn,
				       .payload = data + f.payload,
				       .payload_len = f.payload_len};

		if (fl->lane.credit != 0xff)
			s.syndrome = fl->lane.credit;
		template_learn(&t, &f);
		return engine_tx(e, fl->side, out, build_packet(out, &s));
	}
	if (r->wire == r->at.psn && (!f.aeth || !r->moved))
		return engine_tx(e, fl->side, data, len);
	return engine_tx(e, fl->side, out, shift_frame(out, &f, psn, msn));
}

static void through(struct engine *e, struct flow *fl, struct read_rec *r)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t end = psn_add(r->at.psn, r->span);

	r->done = true;
	if (psn_after(end, l->told))
		l->told = end;
	if (r->opcode == OP_READ_REQUEST)
		ahead_good(e, fl, &(struct read_range){r->va, r->rkey, r->length});
	while ((r = reads_head(e, l)) && r->done) {
		if (opcode_info(r->opcode)->flags & OPF_ANSWERED)
			keep(e, x, r);
		mq_pop(e->reads, &l->reads);
		l->nreads--;
	}
}

/* A turn toward the host. Returns true when there is more to give but it had to stop. */
bool answers_deliver(struct engine *e, struct flow *fl, uint32_t quantum)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t budget = quantum;
	bool moved = false, stopped = false;
	struct read_rec *r;

	if (!x || l->state == LANE_FAULT)
		return false;
	while ((r = reads_head(e, l)) && (opcode_info(r->opcode)->flags & OPF_ANSWERED)) {
		uint32_t i = psn_sub(r->resp_next, r->at.psn);
		struct pkt *d = window_get(&x->win, e->pool, psn_add(r->wire, i));

		if (!d)
			break;
		if (!budget || give(e, fl, r, i, pool_ptr(e->pool, d->loc), d->len)) {
			stopped = true;
			break;
		}
		budget -= d->len < budget ? d->len : budget;
		r->resp_next = psn_add(r->resp_next, 1);
		moved = true;
		if (long_read(r))
			drop(e, x, psn_add(r->wire, i), psn_add(r->wire, i + 1));
		if (i + 1 == r->span)
			through(e, fl, r);
	}
	if (moved) {
		responder_settled(e, fl);
		ahead_run(e, fl);
	}
	return stopped;
}

/* The record of what the host asked as @psn, among those that wait and those that were answered. */
static struct read_rec *rec_of_host(struct engine *e, const struct lane_reads *x, uint32_t psn)
{
	for (uint32_t id = x->kept.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		struct read_rec *r = rec_at(e, id);

		if (psn_in(psn, r->at.psn, psn_add(r->at.psn, r->span)))
			return r;
	}
	return NULL;
}

static struct read_rec *rec_of_wire(struct engine *e, const struct lane_reads *x, uint32_t wire)
{
	for (uint32_t id = x->kept.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		struct read_rec *r = rec_at(e, id);

		if (psn_in(wire, r->wire, psn_add(r->wire, r->span)))
			return r;
	}
	return NULL;
}

/*
 * The host asks again for what it had been given. @f may ask for the end of a READ only. Returns true when it
 * was answered from what is held.
 */
bool answers_again(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct read_rec *k = rec_of_host(e, x, f->psn), r;
	uint32_t skip, span;
	bool only_here; /* nobody else will answer in time */

	if (!k || k->empty)
		return false;
	only_here = k->renewed || (x->guessed_ever && k->opcode != OP_READ_REQUEST);
	if (e->now - k->asked > (only_here ? RENEWED_NS : KEPT_NS))
		return false;
	skip = psn_sub(f->psn, k->at.psn);
	span = frame_span(f, fl->path_mtu);
	if (f->opcode != k->opcode || skip + span != k->span ||
	    (f->opcode == OP_READ_REQUEST &&
	     (frame_reth_rkey(f) != k->rkey || frame_reth_va(f) != k->va + (uint64_t)skip * fl->path_mtu ||
	      frame_reth_length(f) != k->length - skip * fl->path_mtu)))
		return false;
	for (uint32_t i = 0; i < span; i++)
		if (!window_get(&x->win, e->pool, psn_add(k->wire, skip + i)))
			return false;
	r = *k;
	r.at.psn = f->psn;
	r.wire = psn_add(k->wire, skip);
	r.span = span;
	for (uint32_t i = 0; i < span; i++) {
		struct pkt *d = window_get(&x->win, e->pool, psn_add(r.wire, i));

		if (give(e, fl, &r, i, pool_ptr(e->pool, d->loc), d->len))
			break; /* no room in the port: it asks once more */
	}
	x->info.answered_again++;
	if (fl->lane.again_psn != PSN_NONE && psn_add(f->psn, span) == fl->lane.again_end) {
		fl->lane.again_psn = PSN_NONE;
		responder_ack_due(e, fl);
	}
	return true;
}

/* The wire PSN of what the host asked as @host, a READ or its like, and now asks again past us; PSN_NONE when
 * nobody knows. */
uint32_t answers_wire(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct read_rec *r = reads_find(e, &fl->lane, f->psn), lost = {0};
	uint32_t wire;

	if (!r)
		r = rec_of_host(e, x, f->psn);
	if (r) {
		r->again = true;
		return psn_add(r->wire, psn_sub(f->psn, r->at.psn));
	}
	wire = shift_to_wire(x, f->psn);
	if (wire == PSN_NONE || !x->guessed_ever)
		return wire;
	/* an ATOMIC: so that the answer finds its way */
	lost.at.psn = f->psn;
	lost.at.msn = psn_sub(x->asked.msn, 1);
	lost.span = frame_span(f, fl->path_mtu);
	lost.wire = wire;
	lost.opcode = f->opcode;
	lost.again = lost.moved = lost.done = lost.empty = true;
	keep(e, x, &lost);
	return wire;
}

/*
 * The host asks again for a READ that is not held (any more). Where guesses were made the responder has
 * forgotten it, maybe, also one from before the handover: it is asked for anew, under other PSNs, and given
 * when the host asks once more.
 */
void answers_renew(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	struct read_range what = {frame_reth_va(f), frame_reth_rkey(f), frame_reth_length(f)};
	struct read_rec *r = rec_of_host(e, x, f->psn), renewed = {0};
	uint32_t wire;

	if (reads_find(e, &fl->lane, f->psn))
		return; /* its answer is on its way, and repaired where need be */
	if (r && find(e, x, r->wire) != MQ_NONE)
		return;
	if (!ahead_anew(e, fl, &what, &wire))
		return;
	COUNT(e, READS_RENUMBERED);
	if (r) {
		/* it is the same READ, or the end of one; what was held of it is too old or not all */
		drop(e, x, r->wire, psn_add(r->wire, r->span));
		r->at.psn = f->psn;
	} else {
		renewed.at.psn = f->psn;
		renewed.at.msn = psn_sub(x->asked.msn, 1);
		r = &renewed;
	}
	r->span = frame_span(f, fl->path_mtu);
	r->opcode = f->opcode;
	r->va = what.va;
	r->rkey = what.rkey;
	r->length = what.length;
	r->wire = wire;
	r->moved = r->done = r->renewed = true;
	r->asked = e->now;
	r->again = r->empty = false;
	if (r == &renewed)
		keep(e, x, r);
}

/* ---- from the WAN ---- */

/*
 * It came before, or (@unknown) belongs to no fetch: the host had it asked again past us. Where guesses were
 * made, what nobody is known to wait for may be one of them: a host must not see that.
 */
static void stray(struct engine *e, struct flow *fl, const struct frame *f, bool unknown)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	const struct read_rec *r = rec_of_wire(e, x, f->psn);
	uint8_t out[FRAME_MAX];

	COUNT(e, STRAY_RESPONSE);
	if (!icrc_ok(f))
		return;
	if (r && r->again) {
		uint32_t psn = psn_add(r->at.psn, psn_sub(f->psn, r->wire));

		if (psn == f->psn && !r->moved)
			engine_tx(e, fl->side, f->data, f->len);
		else
			engine_tx(e, fl->side, out, shift_frame(out, f, psn, psn_add(r->at.msn, 1)));
	} else if (!r && unknown && !x->guessed_ever && psn_before(f->psn, x->asked.psn)) {
		engine_tx(e, fl->side, f->data, f->len);
	} else {
		return;
	}
	responder_repeated(e, fl, f);
}

/* What is gone is not missing. */
static void settle(struct engine *e, struct lane_reads *x)
{
	uint32_t n = x->gone;

	for (uint32_t id = x->fetches.head; n && id != MQ_NONE; id = mq_next(e->reads, id)) {
		const struct fetch *g = fetch_at(e, id), *next = fetch_at(e, mq_next(e->reads, id));
		uint32_t end = next ? next->psn : psn_add(g->psn, g->span);

		if (g->state != FETCH_GONE)
			continue;
		n--;
		if (in_fetch(g, x->end))
			x->end = end;
		else if (x->holes != POOL_NONE && holes_room(e->pool, &x->holes, x->end, g->psn, end))
			holes_fill(e->pool, &x->holes, g->psn, end);
	}
}

/* After answers_forget(): the acceptor need not send it. */
void answers_forgotten(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (x->gone) {
		settle(e, x);
		answers_report_due(e, fl, true);
	}
	trim(e, x);
}

void answers_rx(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t id = find(e, x, f->psn), fill_end, next_id;
	struct fetch *g = fetch_at(e, id);
	struct read_rec *r;
	bool gap, bad = false, given = false;

	if (!g || !reads_fit(g->opcode, psn_sub(f->psn, g->psn), g->span, g->what.length, f, fl->path_mtu)) {
		if (psn_before(f->psn, x->end))
			answers_report_due(e, fl, true); /* that it came has not been heard */
		stray(e, fl, f, !g);
		return;
	}
	if (g->state == FETCH_GONE) {
		stray(e, fl, f, false);
		return;
	}
	if (psn_before(f->psn, x->end) && !holes_has(holes_at(e->pool, x->holes), f->psn)) {
		answers_report_due(e, fl, true);
		stray(e, fl, f, false);
		return;
	}
	gap = psn_after(f->psn, x->end);
	if (!holes_room(e->pool, &x->holes, x->end, f->psn, psn_add(f->psn, 1))) {
		COUNT(e, HOLES);
		answers_report_due(e, fl, true);
		return;
	}
	r = reads_head(e, l);
	if (!retain(e, x, f, &bad)) {
		uint32_t i = r ? psn_sub(r->resp_next, r->at.psn) : 0;

		if (bad || !icrc_ok(f)) {
			COUNT(e, BAD_ICRC);
			answers_report_due(e, fl, true);
			return;
		}
		/* no room to keep it; but the very next for the host can go on without */
		if (!r || psn_add(r->wire, i) != f->psn || give(e, fl, r, i, f->data, f->len)) {
			COUNT(e, NO_ROOM);
			answers_report_due(e, fl, true);
			return;
		}
		r->resp_next = psn_add(r->resp_next, 1);
		if (i + 1 == r->span)
			through(e, fl, r);
		given = true;
	}
	next_id = mq_next(e->reads, id);
	fill_end = psn_add(f->psn, 1);
	if (fill_end == psn_add(g->psn, g->span) && next_id != MQ_NONE)
		fill_end = fetch_at(e, next_id)->psn;
	if (gap) {
		holes_open(e->pool, x->holes, x->end, f->psn);
		x->end = fill_end;
	} else if (f->psn == x->end) {
		x->end = fill_end;
	} else {
		holes_fill(e->pool, &x->holes, f->psn, fill_end);
		gap = true; /* as urgent */
	}
	x->hint = id;
	x->latest = f->psn;
	x->arrival = e->now;
	x->backoff = 0;
	x->arrived_bytes += f->payload_len;
	g->arrived++;
	g->touched = e->now;
	if (psn_after(g->arrived == g->span ? psn_add(g->psn, g->span) : g->psn, x->proof))
		x->proof = g->arrived == g->span ? psn_add(g->psn, g->span) : g->psn;
	x->unique -= g->arrived == g->span && g->opcode != OP_READ_REQUEST;
	settle(e, x);
	trim(e, x);
	arm(e, fl);
	answers_report_due(e, fl, gap);
	pace_run(e, flow_partner(e, fl));
	if (given)
		responder_settled(e, fl);
}

/*
 * The acceptor is to begin anew where the true ACK is. That of which the answers are here need not be asked again, and
 * must not be where it is an ATOMIC of long ago, that no responder remembers.
 */
void answers_prove(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct mark m = {.msn = l->tack.msn};

	/* PSNs come round again in seconds */
	if (!x || l->opaque || e->now - x->arrival > 2 * NSEC_PER_SEC)
		return;
	m.psn = x->proof;
	for (uint32_t id = x->fetches.head; id != MQ_NONE; id = mq_next(e->reads, id)) {
		const struct fetch *g = fetch_at(e, id);

		if (g->arrived != g->span && psn_before(g->psn, m.psn))
			m.psn = g->psn;
	}
	if (psn_after(m.psn, l->tack.psn) && !psn_after(m.psn, l->accept.psn))
		responder_true_ack(e, fl, &m);
}

/* Nothing has come or gone for long: what is kept in case the host lost it may go. */
void answers_idle(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	while (x && drop_kept(e, x))
		;
}

/* ---- what the acceptor is told ---- */

#define REPORT_NS (200 * NSEC_PER_USEC)
#define REPORT_PACKETS 32u
#define REPEAT_NS (500 * NSEC_PER_USEC)
#define REPEAT_DOUBLINGS 7u

void answers_report_due(struct engine *e, struct flow *fl, bool urgent)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);

	if (l->peer == PEER_NONE)
		return;
	x->report_due = true;
	x->report_urgent |= urgent;
	x->report_count++;
	x->repeats = 0;
	if (!l->report_listed) {
		l->report_listed = true;
		l->next_report = e->report_head;
		e->report_head = flow_index(e, fl);
	}
	engine_wake_at(e, e->now);
}

static void report(struct engine *e, struct flow *fl, struct lane_reads *x)
{
	struct lane *l = &fl->lane;
	const struct holes *hs = holes_at(e->pool, x->holes);
	struct report r = {
		.type = REPORT_ANSWERS,
		.lane = flow_index(e, fl),
		.gen = l->gen,
		.key = fl->key,
		.seq = ++x->seq,
		.cum = hs && hs->n ? hs->h[0].from : x->end,
		.hi = x->end,
		.latest = x->latest,
		.depth = x->depth,
	};

	r.nholes = holes_show(hs, &x->hole_cursor, r.hole);
	x->report_due = x->report_urgent = false;
	x->report_count = 0;
	x->reported = e->now;
	e->sink.report(e->sink.ctx, (unsigned int)l->peer, &r);
}

/* Report now or later: called from the list of lanes that may have something to say. Returns when it wants to
 * be called again, 0 for never. */
uint64_t answers_report(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);
	uint32_t n;

	if (!x || fl->lane.state == LANE_FAULT)
		return 0;
	n = x->repeats < REPEAT_DOUBLINGS ? x->repeats : REPEAT_DOUBLINGS;
	if (x->report_due && (x->report_urgent || x->report_count >= REPORT_PACKETS ||
			      e->now - x->reported >= REPORT_NS)) {
		report(e, fl, x);
	} else if (!x->report_due && x->holes != POOL_NONE && e->now - x->reported >= REPEAT_NS << n) {
		x->repeats++;
		report(e, fl, x);
	}
	n = x->repeats < REPEAT_DOUBLINGS ? x->repeats : REPEAT_DOUBLINGS;
	if (x->report_due)
		return x->reported + REPORT_NS;
	return x->holes != POOL_NONE ? x->reported + (REPEAT_NS << n) : 0;
}

/* ---- when nothing comes ---- */

/* The READ for what is missing of @g, as a host would ask again for it. */
static void ask_again(struct engine *e, struct flow *fl, const struct fetch *g, uint32_t skip)
{
	struct build_spec s = {
		.t = &fl->tmpl,
		.opcode = OP_READ_REQUEST,
		.dqpn = fl->key.dqpn,
		.psn = psn_add(g->psn, skip),
		.ackreq = true,
		.va = g->what.va + (uint64_t)skip * fl->path_mtu,
		.rkey = g->what.rkey,
		.length = g->what.length - skip * fl->path_mtu,
	};
	uint8_t out[FRAME_MAX];

	COUNT(e, READS_ASKED_AGAIN);
	engine_tx(e, other_port(fl->side), out, build_packet(out, &s));
}

static uint32_t first_missing(struct engine *e, const struct lane_reads *x, const struct fetch *g)
{
	const struct holes *hs = holes_at(e->pool, x->holes);
	uint32_t i = 0;

	while (i + 1 < g->span && psn_before(psn_add(g->psn, i), x->end) && !holes_has(hs, psn_add(g->psn, i)))
		i++;
	return i;
}

/* Its answer is lost for good. Returns false when that is for later. */
static bool renumber(struct engine *e, struct flow *fl, struct lane_reads *x, uint32_t id)
{
	struct fetch *g = fetch_at(e, id);
	struct read_rec *r;
	uint32_t wire;

	for (uint32_t i = fl->lane.reads.head; i != MQ_NONE; i = mq_next(e->reads, i)) {
		r = rec_at(e, i);
		if (r->done || r->wire != g->psn || r->opcode != OP_READ_REQUEST)
			continue;
		if (!ahead_anew(e, fl, &g->what, &wire))
			return false;
		COUNT(e, READS_RENUMBERED);
		drop(e, x, g->psn, psn_add(g->psn, g->span));
		r->wire = wire;
		r->moved = true;
		break;
	}
	x->gone++;
	g->state = FETCH_GONE;
	g->arrived = g->span;
	return true;
}

/* So many at a time; the answer to one more wakes us again. */
#define OVERDUE_BATCH 16u

void answers_overdue(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	uint32_t n = 0;

	if (!x || l->state == LANE_FAULT)
		return;
	for (uint32_t id = x->fetches.head; id != MQ_NONE && n < OVERDUE_BATCH; id = mq_next(e->reads, id)) {
		struct fetch *g = fetch_at(e, id);
		uint32_t skip;

		if (g->arrived == g->span)
			continue;
		/* not executed yet, or not even there: the stream sees to it */
		if (!psn_before(g->psn, l->tack.psn) || g->opcode != OP_READ_REQUEST)
			break;
		/* what is missing before something that has come, or the next to come: it may just be slow */
		skip = first_missing(e, x, g);
		if (e->now - (psn_before(psn_add(g->psn, skip), x->end) ? g->touched : x->arrival) < overdue_ns(l))
			continue;
		if (g->state == FETCH_GUESS) {
			answers_forget(e, fl, g);
			continue;
		}
		n++;
		if (!x->guessed_ever || g->tries < ASKED_IN_VAIN) {
			g->tries += g->tries < UINT8_MAX;
			g->touched = e->now;
			ask_again(e, fl, g, skip);
		} else if (!renumber(e, fl, x, id)) {
			break;
		}
	}
	answers_forgotten(e, fl);
	if (!n)
		x->backoff = 0;
	else if (x->backoff < 4)
		x->backoff++;
	arm(e, fl);
}

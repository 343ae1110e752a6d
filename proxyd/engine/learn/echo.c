// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Proof by echo (row: NTT-3): which queue pair answers what is sent to another one.
 *
 * PSNs are a hint only (match.c). Of two connections in step each may miss the appliances in the
 * other direction: what is seen, the requests of one and the ACKs of the other, looks like a pair.
 * So this appliance asks. A responder acknowledges a duplicate of a WRITE or SEND, does not execute
 * it, and needs no receive buffer for it (spec: IBTA 1.6 9.7.5.1.4). The appliance sends a request
 * of the host, which has passed, again at secret times, and looks in which flow ACKs come at these
 * times that nothing else has asked for.
 *
 *  pattern  time is cut into SLOTS slots. A keyed hash of the flow, the slot, and when the pattern
 *           began says in which a copy is sent: in each with 1/4, in the first one always. Nothing
 *           is kept of that, and no host can know it.
 *  probe    of each flow of requests whose pair is a hint, or that runs in step with others and has
 *           none: the request that is sent again, and how far its pattern is. It begins when that
 *           was acknowledged: else a copy of a SEND could be refused for want of a receive buffer.
 *           Of a flow without a hint it begins at once, and only WRITEs without immediate data are
 *           sent again. Other requests of the flow do not end it, but a READ or ATOMIC does: an ACK
 *           that overtakes its answer makes the host ask again. It ends too when the flow is
 *           BEHIND_MOST PSNs further, or goes on elsewhere than loss explains: a copy could be new.
 *           The first packet of all is not sent again: the next owner of the queue pair number may
 *           begin with its PSN.
 *  log      of each such flow of answers: when it said again what it had said before, or a PSN up
 *           to which, from the one before on, no request has asked for an answer.
 *
 * Whatever else makes such answers (a probe of its own requester, a host's timer, another path, a
 * forger) is independent of the pattern. The first one is taken for that to one of the first FIRSTS
 * copies; from there on each slot counts, in sixteenths of a bit:
 *
 *	            a copy                         none
 *	an answer   ANSWER_RIGHT                   ANSWER_WRONG (late, or not to a copy)
 *	none        SILENCE_WRONG (lost, folded)   SILENCE_RIGHT
 *
 * Without a common cause 2^bits is expected to be at most 1 after any number of slots, whether
 * there is an answer (2^(31/16) / 4 + 3/4 x 2^(-67/16) < 1) or not (2^(-30/16) / 4 + 3/4 x 2^(5/16)
 * < 1). The choice among FIRSTS costs 2 bits a pattern. So it ever reaches 2^57 with 2^-57 at most
 * (Ville's inequality), and that takes some 20 copies, 80 slots. What the patterns of one pair tell
 * adds up, and begins again at 0 when it is below, at most 2^16 times (TRIES): a wrong pair has at
 * most 2^-41. One of flows without a hint begins with CANDIDATES less, for the PROBES flows that
 * were compared. It does not matter whether all flows between two hosts are seen here, nor which
 * UDP ports they bear.
 *
 * A NIC answers each packet at once. A program answers when it next runs, with one ACK for all
 * packets that came until then. So slots begin with SLOT_NS, and are four times as long after
 * TRIES_EACH patterns that told nothing, SLOT_SIZES sizes in turn.
 *
 * With a peer the appliance near the responder asks, over its LAN, and offers the other one to
 * agree (flow.c), which believes that. Without one it asks for the hosts of both sides. READs and
 * ATOMICs are not sent again: the responder may have withdrawn their memory, and would fail.
 * Nothing of this is kept across a restart.
 */
#include "engine/learn/learn_priv.h"

/* Probes and logs have places by their flow's index: these are powers of two. */
#define PROBES	      512u
#define LOGS	      1024u
#define SLOTS	      128u
#define SLOT_NS	      50000u
#define SLOT_SIZES    5u
/* Answers that a log keeps; PSNs asked for that a probe keeps; how far an answer is looked up. */
#define LOGGED	      64u
#define ASKED	      64u
#define ASKED_FAR     256u
/* Patterns of one size that told nothing; when they become rare, and how rare; most of all. */
#define TRIES_EACH    2u
#define TRIES_SOON    32u
#define TRIES_NS      NSEC_PER_SEC
#define TRIES	      UINT16_MAX
/* Sixteenths of a bit. */
#define ANSWER_RIGHT  31
#define ANSWER_WRONG  -67
#define SILENCE_RIGHT 5
#define SILENCE_WRONG -30
#define FIRSTS	      4u
#define FIRSTS_COST   (16 * 2)
#define PROVED	      (16 * 57)
#define HINT	      (16 * 24)
#define CANDIDATES    (16 * 9)
#define UNLIKELY      (-16 * 16) /* it cannot come to anything */
#define BEHIND_MOST   (1u << 20)
/* How far packets that were lost and are sent again are from the next one. */
#define NEAR	      1024u
/* What waits longer than this for its ACK gives way to a newer one. */
#define PROBE_NS      (50 * NSEC_PER_MSEC)
/* A probe or a log gives its place up when it was not used for so long. */
#define UNUSED_NS     (2 * NSEC_PER_SEC)
/* Copies are at most what passes of such flows, this much more, and so much a second, bytes. */
#define CREDIT_MOST   (4 << 20)
#define CREDIT_RATE   50000000ull

enum probe_state {
	PROBE_NONE,
	PROBE_WAITS, /* for the ACK of its request */
	PROBE_ASKS,
};

/** struct echo_probe - the request @psn of the flow @flow, which passed at @passed; copies of @len
 * bytes. @began: the pattern did; @slot: of the next copy, due at @at; @slot_ns: their length.
 * @bits: what earlier patterns have told of the pair with the flow @with. @tries: patterns that
 * told nothing. @next: the PSN with which its flow goes on; elsewhere its queue pair number may
 * have a new owner, and only what this one was asked counts. */
struct echo_probe {
	uint64_t at, passed, born, began;
	uint64_t with_born;
	uint32_t flow, with, len, psn, next, slot_ns;
	int32_t bits;
	uint16_t tries;
	uint8_t state;
	bool counts; /* what the log tells is not in @bits yet */
	int16_t slot;
	uint8_t nasked;
	uint32_t asked[ASKED]; /* PSNs of the latest requests that will be answered */
};

/** struct echo_log - the flow @flow has answered up to @top, and @n times unasked, lately @at. */
struct echo_log {
	uint64_t seen, born;
	uint32_t flow, top, n;
	uint64_t at[LOGGED];
};

struct echo {
	uint64_t credit_at; /* @credit, bytes, is whole at this time: what copies may be begun */
	int64_t credit;
	uint32_t asking; /* probes */
	uint64_t next;	 /* none is due before */
	struct echo_probe probe[PROBES];
	struct echo_log log[LOGS];
	uint8_t frame[PROBES][FRAME_MAX];
};

uint64_t echo_bytes(void)
{
	return sizeof(struct echo);
}

struct echo *echo_create(struct arena *a)
{
	return arena_alloc(a, sizeof(struct echo), 64);
}

void echo_forget(struct engine *e)
{
	memset(e->echo, 0, offsetof(struct echo, frame));
}

static bool is_of(const struct engine *e, const struct flow *fl, uint32_t i, uint64_t born)
{
	return fl->used && i == flow_index(e, fl) && born == fl->born;
}

/* Whether it is for this appliance to find out who answers @fl. */
static bool asks_for(struct engine *e, const struct flow *fl)
{
	const struct rule *r = fl->rule >= 0 ? &e->rules[fl->rule] : NULL;

	return r && r->learn & LEARN_MATCH && (r->peer == PEER_NONE || fl->side == PORT_WAN) &&
	       (fl->partner == FLOW_NONE ? pair_in_step(e, &fl->key) : !flow_proved(fl)) &&
	       !flow_let_go(e, fl);
}

/* In which slots of the pattern of @p that begin with @word * 64 copies are sent. */
static uint64_t pattern(const struct engine *e, const struct echo_probe *p, uint32_t word)
{
	const uint64_t key[2] = {e->cfg.seed, p->began};
	const uint64_t what[2] = {(uint64_t)p->flow << 32 | word * 2,
				  (uint64_t)p->flow << 32 | (word * 2 + 1)};

	return (keyed_hash(key, what, 1) & keyed_hash(key, what + 1, 1)) | !word;
}

static bool copied(const uint64_t *copies, uint32_t slot)
{
	return copies[slot / 64] >> slot % 64 & 1;
}

/* What the log @g tells, from its answer @i on, if that is to the copy in @slot. */
static int32_t weigh_from(const struct echo_log *g, uint32_t i, const struct echo_probe *p,
			  const uint64_t *copies, uint32_t slot)
{
	static const int8_t worth[2][2] = {{SILENCE_RIGHT, SILENCE_WRONG},
					   {ANSWER_WRONG, ANSWER_RIGHT}};
	uint64_t first = g->at[i % LOGGED] - (uint64_t)slot++ * p->slot_ns - p->slot_ns / 2;
	int32_t bits = 0;

	while (++i < g->n && bits > UNLIKELY) {
		uint64_t at = (g->at[i % LOGGED] - first) / p->slot_ns;

		if (at >= SLOTS)
			break;
		for (; slot <= at; slot++)
			bits += worth[slot == at][copied(copies, slot)];
	}
	return bits;
}

/* What the log @g tells of the pattern of @p, sixteenths of a bit. */
static int32_t weigh(const struct engine *e, const struct echo_log *g, const struct echo_probe *p)
{
	uint64_t copies[SLOTS / 64];
	uint32_t i = g->n > LOGGED ? g->n - LOGGED : 0;
	int32_t most = UNLIKELY;

	while (i < g->n && g->at[i % LOGGED] <= p->began)
		i++;
	if (i == g->n)
		return 0;
	for (uint32_t k = 0; k < SLOTS / 64; k++)
		copies[k] = pattern(e, p, k);
	for (uint32_t slot = 0, n = 0; n < FIRSTS && slot < SLOTS; slot++) {
		int32_t bits;

		if (!copied(copies, slot))
			continue;
		bits = weigh_from(g, i, p, copies, slot);
		most = bits > most ? bits : most;
		n++;
	}
	return most - FIRSTS_COST;
}

static void probe_end(struct engine *e, struct echo_probe *p)
{
	if (p->state == PROBE_ASKS) {
		e->echo->credit += (int64_t)(SLOTS - p->slot) / 4 * p->len;
		e->echo->asking--;
		p->tries += p->slot > (int)SLOTS / 4 && p->tries < TRIES;
	}
	p->state = PROBE_NONE;
}

static struct echo_probe *probe_of(struct engine *e, const struct flow *fl)
{
	struct echo_probe *p = &e->echo->probe[flow_index(e, fl) % PROBES];

	return is_of(e, fl, p->flow, p->born) ? p : NULL;
}

/* The place of @fl among the probes, or NULL where another flow uses it. */
static struct echo_probe *probe_take(struct engine *e, const struct flow *fl)
{
	struct echo_probe *p = &e->echo->probe[flow_index(e, fl) % PROBES];

	if (is_of(e, fl, p->flow, p->born))
		return p;
	if (p->passed && e->now - p->passed < UNUSED_NS &&
	    is_of(e, &e->flows[p->flow], p->flow, p->born) && asks_for(e, &e->flows[p->flow]))
		return NULL;
	probe_end(e, p);
	*p = (struct echo_probe){.flow = flow_index(e, fl), .born = fl->born, .next = PSN_NONE};
	return p;
}

static struct echo_log *log_of(struct engine *e, const struct flow *ack)
{
	struct echo_log *g = &e->echo->log[flow_index(e, ack) % LOGS];

	if (is_of(e, ack, g->flow, g->born))
		return g;
	if (g->seen && e->now - g->seen < UNUSED_NS)
		return NULL;
	*g = (struct echo_log){.flow = flow_index(e, ack), .born = ack->born, .top = PSN_NONE};
	return g;
}

/* Whether there is credit for @len bytes more; @passed have passed. */
static bool credit_for(struct engine *e, uint32_t len, uint32_t passed)
{
	struct echo *x = e->echo;
	uint64_t ns = e->now - x->credit_at;

	if (ns >= NSEC_PER_MSEC) {
		x->credit += (int64_t)((ns < NSEC_PER_SEC ? ns : NSEC_PER_SEC) * CREDIT_RATE /
				       NSEC_PER_SEC);
		x->credit_at = e->now;
	}
	x->credit += passed;
	if (x->credit > CREDIT_MOST)
		x->credit = CREDIT_MOST;
	return x->credit >= len;
}

/* The request of @p has been answered, or will be: begin a pattern. */
static void probe_begin(struct engine *e, struct echo_probe *p)
{
	struct echo *x = e->echo;

	if (p->tries == TRIES || (p->tries >= TRIES_SOON && e->now - p->began < TRIES_NS) ||
	    !credit_for(e, SLOTS / 4 * p->len, 0))
		return;
	x->credit -= SLOTS / 4 * p->len;
	p->state = PROBE_ASKS;
	p->counts = true;
	p->began = e->now;
	p->slot_ns = SLOT_NS << 2 * (p->tries / TRIES_EACH % SLOT_SIZES);
	p->at = e->now + p->slot_ns;
	p->slot = 0;
	if (!x->asking++ || p->at < x->next)
		x->next = p->at;
}

/* Whether copies of @f may follow it. */
static bool may_repeat(const struct flow *fl, const struct frame *f)
{
	if (fl->lane.watch.passing)
		return false;
	if (fl->partner == FLOW_NONE)
		return f->op->flags & OPF_WRITE && f->op->flags & OPF_EOM && !f->immdt;
	return f->ackreq && f->op->flags & OPF_EOM && f->op->flags & (OPF_SEND | OPF_WRITE);
}

/* Whether @psn is of the queue pair that was asked: the next one, or near it where packets are lost
 * and sent again. One that is not behind @p->psn may be a new owner's, to whom a copy is new. */
static bool same_owner(const struct echo_probe *p, const struct flow *fl, uint32_t psn)
{
	if (p->next == PSN_NONE)
		return fl->partner != FLOW_NONE;
	return psn == p->next || ((p->began || p->state != PROBE_NONE) && psn_after(psn, p->psn) &&
				  psn_in(psn, psn_sub(p->next, NEAR), psn_add(p->next, NEAR)));
}

void echo_passed(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct echo_probe *p;
	struct frame copy = *f;
	bool goes_on;

	if (!asks_for(e, fl))
		return;
	p = probe_take(e, fl);
	if (!p)
		return;
	credit_for(e, 0, f->len);
	goes_on = same_owner(p, fl, f->psn);
	if (!goes_on) {
		probe_end(e, p);
		p->bits = 0;
		p->counts = false;
		p->began = 0;
	}
	p->next = psn_add(f->psn, frame_span(f, flow_mtu(fl)));
	if (f->ackreq || f->op->flags & (OPF_EOM | OPF_ANSWERED))
		p->asked[p->nasked++ % ASKED] = psn_sub(p->next, 1) & PSN_MASK;
	if (f->op->flags & OPF_ANSWERED ||
	    (p->state != PROBE_NONE && (psn_sub(p->next, p->psn) & PSN_MASK) >= BEHIND_MOST) ||
	    (p->state == PROBE_WAITS && e->now - p->passed > PROBE_NS))
		probe_end(e, p);
	p->passed = p->state == PROBE_NONE ? e->now : p->passed;
	if (p->state != PROBE_NONE || !goes_on || !may_repeat(fl, f))
		return;
	icrc_with_ackreq(e->echo->frame[p - e->echo->probe], &copy);
	p->psn = f->psn;
	p->len = f->len;
	if (fl->partner != FLOW_NONE) {
		p->state = PROBE_WAITS;
		return;
	}
	probe_begin(e, p);
}

/* The next slot of @p in which a copy is sent. */
static void next_slot(const struct engine *e, struct echo_probe *p)
{
	do {
		p->slot++;
		p->at += p->slot_ns;
	} while (p->slot < (int)SLOTS &&
		 !(pattern(e, p, (uint32_t)p->slot / 64) >> p->slot % 64 & 1));
}

/* Send the request of @p once more, which is due. */
static void repeat(struct engine *e, struct echo_probe *p)
{
	const struct flow *fl = &e->flows[p->flow];

	if (p->slot >= (int)SLOTS || !is_of(e, fl, p->flow, p->born) || !asks_for(e, fl)) {
		probe_end(e, p);
		return;
	}
	e->via = (uint8_t)flow_link(e, fl);
	COUNT(e, LEARN_PROBES);
	engine_tx(e, fl, other_port(fl->side), e->echo->frame[p - e->echo->probe], p->len);
	next_slot(e, p);
}

void echo_tick(struct engine *e)
{
	struct echo *x = e->echo;

	if (!x->asking)
		return;
	if (e->now >= x->next) {
		x->next = UINT64_MAX;
		for (uint32_t i = 0; i < PROBES; i++) {
			struct echo_probe *p = &x->probe[i];

			if (p->state == PROBE_ASKS && p->at <= e->now)
				repeat(e, p);
			if (p->state == PROBE_ASKS && p->at < x->next)
				x->next = p->at;
		}
	}
	engine_wake_at(e, x->next);
}

static void probe_with(const struct engine *e, struct echo_probe *p, const struct flow *ack)
{
	p->with = flow_index(e, ack);
	p->with_born = ack->born;
}

/* The answers @g of @ack, unpaired, have said more than what was asked: is that the pattern of one
 * requester? That is a hint. */
static void echo_unpaired(struct engine *e, struct flow *ack, const struct echo_log *g)
{
	struct echo_probe *found = NULL;
	struct flow *req;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct echo_probe *p = &e->echo->probe[i];

		req = &e->flows[p->flow];
		if (!p->began || !is_of(e, req, p->flow, p->born) || req->partner != FLOW_NONE ||
		    !flow_reversed(req, ack) || weigh(e, g, p) < HINT)
			continue;
		if (found)
			return;
		found = p;
	}
	if (!found)
		return;
	probe_with(e, found, ack);
	found->bits = -CANDIDATES;
	req = flow_ref(e, found->flow);
	flow_pair(e, req, ack, LEARNED_HINT);
	probes_forget(&req->lane);
}

/* The same where the pair of @req and @ack is a hint. */
static void echo_paired(struct engine *e, struct flow *req, struct flow *ack, struct echo_log *g,
			uint32_t psn)
{
	struct echo_probe *p = probe_of(e, req);
	int32_t bits;

	if (!p)
		return;
	if (p->with != flow_index(e, ack) || p->with_born != ack->born) {
		probe_with(e, p, ack);
		p->bits = 0;
	}
	bits = p->bits + (p->counts ? weigh(e, g, p) : 0);
	if (p->state == PROBE_WAITS && (psn_sub(psn, p->psn) & PSN_MASK) < HOST_WINDOW) {
		p->tries -= bits - p->bits > HINT / 2 && p->tries; /* slots are long enough */
		p->bits = bits > 0 ? bits : 0;
		p->counts = false;
		p->state = PROBE_NONE;
		probe_begin(e, p);
	} else if (bits >= PROVED) {
		flow_pair(e, req, ack, LEARNED_ECHO);
		probe_end(e, p);
	} else if (p->state == PROBE_ASKS && bits - p->bits <= UNLIKELY) {
		p->tries += p->slot <= (int)SLOTS / 4;
		probe_end(e, p);
	}
}

/* Whether an answer in @ack behind @top, up to @psn, was asked for, but by a copy. Responders name
 * the latest that they have when they answer. Queue pairs in step ask under the same PSNs. */
static bool was_asked(struct engine *e, const struct flow *ack, const struct flow *req,
		      uint32_t top, uint32_t psn)
{
	const struct echo_probe *p = req ? probe_of(e, req) : NULL;

	if (psn_sub(psn, top) > ASKED_FAR)
		return true;
	for (uint32_t i = 0; p && i < ASKED; i++)
		if (psn_in(p->asked[i], psn_add(top, 1), psn_add(psn, 1)))
			return true;
	while (!req && top != psn) {
		top = psn_add(top, 1);
		if (match_noted(e, ack, top))
			return true;
	}
	return false;
}

void echo_heard(struct engine *e, struct flow *ack, uint32_t psn)
{
	struct flow *req = flow_partner(e, ack);
	struct echo_log *g;
	bool behind;

	if (req ? !asks_for(e, req) : !pair_in_step(e, &ack->key))
		return;
	g = log_of(e, ack);
	if (!g)
		return;
	g->seen = e->now;
	behind = g->top != PSN_NONE && psn_sub(g->top, psn) < HOST_WINDOW;
	if (behind || (g->top != PSN_NONE && !was_asked(e, ack, req, g->top, psn)))
		g->at[g->n++ % LOGGED] = e->now;
	if (!behind)
		g->top = psn;
	if (req)
		echo_paired(e, req, ack, g, psn);
	else if (g->n >= HINT / ANSWER_RIGHT / 2 && g->n % 4 == 0)
		echo_unpaired(e, ack, g);
}

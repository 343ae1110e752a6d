// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pairs by echo (row: NTT-3), for queue pairs that run in step from the same PSN, so that PSNs do
 * not tell them apart (match.c).
 *
 * A responder acknowledges each duplicate of a WRITE and does not execute it (spec: IBTA 1.6
 * 9.7.5.1.4). So this appliance asks: it sends a WRITE of the host, which has passed, again, a
 * secret number of times between 1 and SYMBOLS, and looks which flow of ACKs repeats the ACK of
 * that PSN so often. Copies are sent only while the requester is idle, and apart from each other,
 * since responders fold ACKs that they owe at one time into one, and answer a duplicate with the
 * PSN of the latest request. How far apart depends on the responder: a NIC answers each packet at
 * once, a program when it next runs. So copies begin SPACING_NS apart, and are four times as far
 * apart after each 64 packets that have not told the partner.
 *
 *  probe  the last packet of a WRITE has passed: a little later, while its flow has sent nothing
 *         else, the first copy follows, and so on. Another request of the flow ends that.
 *  log    of each unpaired flow that brings ACKs: the latest OBSERVED PSNs whose ACK was repeated,
 *         and how often. An ACK that was not repeated says nothing.
 *  pair   the latest entries of the log are what a flow of requests was to be repeated at these
 *         PSNs, and of no other flow of requests that is so. Some may be less: a copy is lost, or
 *         a responder that was busy folds two ACKs into one.
 *
 * How often a packet is sent again is a keyed hash of the flow, its run and the PSN, so nothing is
 * kept of what was sent, and no host can know it. A run ends where the flow's PSNs do not go on by
 * one: there its queue pair number may have a new owner, and only what this one was asked counts.
 *
 * Whatever repeats ACKs in a flow that does not answer the requester (a probe of its own
 * requester, a host's timer, another path, a forger) is independent of that: whatever the entry,
 * each number of copies has 1/SYMBOLS. So an entry that is right counts RIGHT quarters of a bit
 * for the two flows, one that is at most FOLDED short nothing, and any other WRONG against them.
 * Without a common cause 2^bits is expected to be at most 1 after any number of entries, as
 * (2^2.25 + 2 + 5 x 2^-2.5) / 8 < 1, so that it ever reaches 2^57 has 2^-57 at most (Ville's
 * inequality). That takes 26 right entries. At most PROBES flows of requests are compared (2^9),
 * for at most 2^8 entries of a log in the time of a connection: a wrong pair has at most 2^-40. It
 * does not matter whether all flows between two hosts are seen here, nor which UDP ports they
 * bear. What is cut short by the next request fits nothing, and costs time.
 *
 * Only flows between two hosts of which several were just seen at the same PSN are asked
 * (pair_in_step()). SENDs and immediate data are not repeated: a responder without a receive buffer
 * answers each copy with an RNR NAK, and the host counts those. What is not kept across a restart:
 * all of it. It begins again.
 */
#include "engine/learn/learn_priv.h"

/* Probes and logs have places by their flow's index: these are powers of two. */
#define PROBES	    512u
#define LOGS	    1024u
#define SYMBOLS	    8u
#define OBSERVED    64u
/* Quarters of a bit: of a right entry, of a wrong one; what makes a pair, and what makes none. */
#define RIGHT	    9
#define WRONG	    10
#define FOLDED	    2u
#define PAIRED	    (4 * 57)
#define UNLIKELY    (-4 * WRONG)
#define SPACING_NS  (50 * NSEC_PER_USEC)
/* A packet is not sent again later than this. */
#define PROBE_NS    (30 * NSEC_PER_MSEC)
/* A probe or a log gives its place up when it was not used for so long. */
#define UNUSED_NS   NSEC_PER_SEC
/* So many packets of a flow are tried. */
#define PROBED_MOST 255u
/* Copies are at most what passes of such flows, this much more, and so much a second, bytes. */
#define CREDIT_MOST (1 << 20)
#define CREDIT_RATE 1000000ull

/** struct echo_probe - the latest WRITE of the flow @flow; @left: times that it is to be sent
 * again, the next at @at; @passed: when it passed; @probed: so many were tried. @run: when its
 * present run began, which @next is to go on. */
struct echo_probe {
	uint64_t at, passed, born, run;
	uint32_t flow, len, next;
	uint8_t left, probed;
};

/** struct echo_log - what the flow @flow has repeated: @n entries, each a PSN and in its low byte
 * how often. @psn has come @count times. */
struct echo_log {
	uint64_t seen, born;
	uint32_t flow, psn;
	uint32_t count, n;
	uint32_t entry[OBSERVED];
};

struct echo {
	uint64_t credit_at; /* @credit, bytes, is whole at this time: what copies may be begun */
	int64_t credit;
	uint32_t waiting; /* probes with something left */
	uint64_t next;	  /* none is due before */
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

/* How often the packet @psn of @p is to be sent again. */
static uint32_t symbol(const struct engine *e, const struct echo_probe *p, uint32_t psn)
{
	const uint64_t key[2] = {e->cfg.seed, p->run}, word = (uint64_t)p->flow << 32 | psn;

	return (uint32_t)(keyed_hash(key, &word, 1) % SYMBOLS) + 1;
}

/* How far apart the copies of the latest packet are. */
static uint64_t spacing(const struct echo_probe *p)
{
	return SPACING_NS << 2 * (p->probed / 64);
}

static void probe_end(struct engine *e, struct echo_probe *p)
{
	e->echo->credit += p->left * p->len;
	e->echo->waiting -= p->left > 0;
	p->left = 0;
}

/* The place of @fl among the probes, or NULL where another flow uses it. */
static struct echo_probe *probe_take(struct engine *e, const struct flow *fl)
{
	struct echo_probe *p = &e->echo->probe[flow_index(e, fl) % PROBES];

	if (is_of(e, fl, p->flow, p->born))
		return p;
	if (p->passed && e->now - p->passed < UNUSED_NS &&
	    is_of(e, &e->flows[p->flow], p->flow, p->born) &&
	    e->flows[p->flow].partner == FLOW_NONE)
		return NULL;
	probe_end(e, p);
	*p = (struct echo_probe){.flow = flow_index(e, fl), .born = fl->born, .next = PSN_NONE};
	return p;
}

static bool may_repeat(const struct engine *e, const struct flow *fl, const struct frame *f)
{
	return f->op->flags & OPF_WRITE && f->op->flags & OPF_EOM && !f->immdt && fl->rule >= 0 &&
	       e->rules[fl->rule].learn & LEARN_PSN && !fl->lane.watch.passing &&
	       !flow_let_go(e, fl);
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

void echo_passed(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct echo_probe *p;
	struct frame copy;
	uint32_t times;

	if (fl->partner != FLOW_NONE || fl->side != PORT_LAN || !pair_in_step(e, &fl->key))
		return;
	p = probe_take(e, fl);
	if (!p)
		return;
	probe_end(e, p);
	if (f->psn != p->next)
		p->run = e->now;
	p->next = psn_add(f->psn, frame_span(f, flow_mtu(fl)));
	/* where the packet itself asks for no ACK its copies do, and one more is needed */
	times = symbol(e, p, f->psn) + !f->ackreq;
	if (!credit_for(e, times * f->len, f->len) || !may_repeat(e, fl, f) ||
	    p->probed == PROBED_MOST)
		return;
	p->probed++;
	p->passed = e->now;
	p->at = e->now + spacing(p);
	p->left = (uint8_t)times;
	p->len = f->len;
	copy = *f;
	icrc_with_ackreq(e->echo->frame[p - e->echo->probe], &copy);
	e->echo->credit -= times * f->len;
	if (!e->echo->waiting++ || p->at < e->echo->next)
		e->echo->next = p->at;
}

/* Send the packet of @p once more, which is due. */
static void repeat(struct engine *e, struct echo_probe *p)
{
	const struct flow *fl = &e->flows[p->flow];

	if (!is_of(e, fl, p->flow, p->born) || fl->partner != FLOW_NONE ||
	    e->now - p->passed > PROBE_NS) {
		probe_end(e, p);
		return;
	}
	e->via = (uint8_t)flow_link(e, fl);
	COUNT(e, LEARN_PROBES);
	engine_tx(e, fl, PORT_WAN, e->echo->frame[p - e->echo->probe], p->len);
	p->at = e->now + spacing(p);
	e->echo->waiting -= --p->left == 0;
}

void echo_tick(struct engine *e)
{
	struct echo *x = e->echo;

	if (!x->waiting)
		return;
	if (e->now >= x->next) {
		x->next = UINT64_MAX;
		for (uint32_t i = 0; i < PROBES; i++) {
			struct echo_probe *p = &x->probe[i];

			if (p->left && p->at <= e->now)
				repeat(e, p);
			if (p->left && p->at < x->next)
				x->next = p->at;
		}
	}
	engine_wake_at(e, x->next);
}

/* Whether the copies of @p draw the log @g, and @p has asked under @psn, which came next. */
static bool fits(const struct engine *e, const struct echo_log *g, const struct echo_probe *p,
		 uint32_t psn)
{
	int32_t bits = 0;

	if ((psn_sub(psn_sub(p->next, 1), psn) & PSN_MASK) > HOST_WINDOW)
		return false;
	for (uint32_t i = g->n; i-- > 0 && bits < PAIRED && bits > UNLIKELY;) {
		uint32_t less = symbol(e, p, g->entry[i] >> 8) - (g->entry[i] & 0xff);

		bits += !less ? RIGHT : less <= FOLDED ? 0 : -WRONG;
	}
	return bits >= PAIRED;
}

/* The only requester whose copies the log @g of @ack shows, or NULL. @psn: what @ack brings now. */
static struct flow *echo_find(struct engine *e, const struct flow *ack, const struct echo_log *g,
			      uint32_t psn)
{
	struct flow *found = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		const struct echo_probe *p = &e->echo->probe[i];
		struct flow *req = &e->flows[p->flow];

		if (!p->probed || !is_of(e, req, p->flow, p->born) || req->partner != FLOW_NONE ||
		    !flow_reversed(req, ack) || !fits(e, g, p, psn))
			continue;
		if (found)
			return NULL;
		found = req;
	}
	return found;
}

/* The PSN of @g is past: note how often its ACK was repeated. Returns true if the log is enough. */
static bool log_add(struct echo_log *g)
{
	if (g->count < 2)
		return false;
	if (g->n == OBSERVED)
		memmove(g->entry, g->entry + 1, sizeof(g->entry) - sizeof(g->entry[0]));
	else
		g->n++;
	g->entry[g->n - 1] = g->psn << 8 | (g->count - 1 < 0xff ? g->count - 1 : 0xff);
	return g->n * RIGHT >= PAIRED;
}

static struct echo_log *log_of(struct engine *e, const struct flow *ack)
{
	struct echo_log *g = &e->echo->log[flow_index(e, ack) % LOGS];

	if (is_of(e, ack, g->flow, g->born) && e->now - g->seen < MATCH_NS)
		return g;
	if (g->seen && e->now - g->seen < UNUSED_NS && !is_of(e, ack, g->flow, g->born))
		return NULL;
	*g = (struct echo_log){.flow = flow_index(e, ack), .born = ack->born, .psn = PSN_NONE};
	return g;
}

bool echo_heard(struct engine *e, struct flow *ack, uint32_t psn)
{
	struct flow *req = NULL;
	struct echo_log *g;

	if (ack->partner != FLOW_NONE || ack->side != PORT_WAN || !pair_in_step(e, &ack->key))
		return false;
	g = log_of(e, ack);
	if (!g)
		return false;
	g->seen = e->now;
	if (psn == g->psn) {
		g->count++;
		return false;
	}
	if (g->psn == PSN_NONE || (psn_sub(psn, g->psn) & PSN_MASK) > HOST_WINDOW)
		g->n = 0; /* not one run */
	else if (log_add(g))
		req = echo_find(e, ack, g, psn);
	g->psn = psn;
	g->count = 1;
	if (!req)
		return false;
	req = flow_ref(e, flow_index(e, req));
	probes_forget(&req->lane);
	return flow_pair(e, req, ack, LEARNED_ECHO);
}

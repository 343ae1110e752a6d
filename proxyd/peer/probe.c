// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which packets the link carries.
 *
 * Hosts' packets vanish where one of the networks on the way has a smaller MTU, and nothing tells:
 * RoCEv2 does not look for a path MTU. So each side sends the other datagrams that may not be
 * fragmented, as long as the hosts' longest packets, and asks which of them have come.
 *
 * A round is a set of sizes, sent as a burst, the longest first. The shortest, FLOOR, gets through
 * wherever a session does: if the peer has that one, the others of its burst were lost or are too
 * long. A round of one burst, each PERIOD_NS, sees whether all is as it was. If it is not, rounds
 * of FULL bursts narrow the limit down, to a byte: a size that came is carried, one of which no
 * copy came is not. The longest is in all of them: a single copy that comes ends the search.
 *
 * Bursts go with heartbeats, SETTLE_NS is for reordering. What is found is told to the peer in the
 * next PROBE, for its operator.
 *
 * Rounds of which nothing came tell nothing: the session goes down soon, or the peer cannot be
 * reached the way that hosts' packets go.
 */
#include <string.h>

#include "peer/session_priv.h"

#define FLOOR	    576
#define FULL	    3
#define PERIOD_NS   SEC
#define RARE_NS	    (5 * SEC)
#define PATIENCE_NS (300 * MS)
#define SETTLE_NS   (20 * MS)

void session_path(struct session *s, unsigned int peer, uint16_t want, uint16_t longest,
		  uint16_t overhead)
{
	struct peer *p = &s->peer[peer < PEER_MAX ? peer : 0];
	struct probing *b = &p->link.probing;

	if (peer >= PEER_MAX || p->state == SESSION_UNUSED)
		return;
	if (want > SESSION_PROBE_MAX + overhead)
		want = SESSION_PROBE_MAX + overhead;
	/* at once if it is longer than what is known to arrive, or hosts' packets have become such
	 */
	if (!b->waits && !b->bursts && (want > p->want || longest > p->longest))
		b->at = 0;
	p->want = want;
	p->longest = longest;
	p->overhead = overhead;
}

/* ---- of the peer's probes ---- */

void probe_rx(struct session *s, struct peer *p, const struct proto_probe *m, uint64_t seq)
{
	struct probing *b = &p->link.probing;
	bool longer = m->number != b->heard || m->size > b->heard_size;

	if (seq > b->told_seq) {
		b->told_seq = seq;
		b->from = (struct session_reach){m->carried, m->refused, m->longest};
	}
	if (longer) {
		b->heard = m->number;
		b->heard_size = m->size;
	}
	if (longer || m->last)
		outbox_probed(s, p,
			      &(struct proto_probed){
				      .number = m->number, .size = b->heard_size, .last = m->last});
}

/* ---- of ours ---- */

void probed_rx(struct peer *p, const struct proto_probed *m, uint64_t now)
{
	struct probing *b = &p->link.probing;

	if (m->number != b->number || m->size > b->size[0])
		return;
	if (m->size > b->came)
		b->came = m->size;
	if (m->last && !b->ended)
		b->ended = now;
}

/* @size joins the round, if it is below those that are in it. */
static void join(struct probing *b, uint16_t size)
{
	if (b->n < PROBE_SIZES && size && (!b->n || size < b->size[b->n - 1]))
		b->size[b->n++] = size;
}

static void round_begin(struct peer *p, bool full)
{
	struct probing *b = &p->link.probing;

	b->number++;
	b->n = 0;
	b->came = 0;
	b->ended = 0;
	b->waits = false;
	b->full = full;
	b->bursts = full ? FULL : 1;
	join(b, p->want);
	if (full) {
		/* places that are left by the longest, @low and FLOOR */
		for (uint32_t k = PROBE_SIZES - 3; k; k--)
			join(b, (uint16_t)(b->low +
					   k * (uint32_t)(b->high - b->low) / (PROBE_SIZES - 2)));
		join(b, b->low);
	} else if (b->to.refused) {
		join(b, b->to.refused);
		join(b, b->to.carried);
	}
	join(b, FLOOR);
}

/* What this host cannot send, as its own interface is too small, tells nothing of the link. */
static void burst(struct session *s, struct peer *p, uint64_t now)
{
	struct probing *b = &p->link.probing;
	unsigned int sent = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		bool last = i + 1 == b->n;
		struct proto_probe m = {.number = b->number,
					.size = b->size[i],
					.carried = b->to.carried,
					.refused = b->to.refused,
					.longest = p->longest,
					.last = last};

		if (outbox_probe(s, p, &m) || last)
			b->size[sent++] = b->size[i];
	}
	b->n = (uint8_t)sent;
	b->waits = !--b->bursts;
	b->at = now + PATIENCE_NS + 3 * p->link.delay.srtt;
}

/* The limit is known: nothing but time brings the next round, or the peer, which is told at once.
 */
static void settle(struct probing *b, uint16_t carried, uint16_t refused, uint64_t now)
{
	bool same = b->to.carried == carried && b->to.refused == refused;

	b->to.carried = carried;
	b->to.refused = refused;
	b->high = 0;
	b->at = same ? now + PERIOD_NS : now;
}

static void judge(struct peer *p, uint64_t now)
{
	struct probing *b = &p->link.probing;
	uint16_t above = b->size[0];

	b->waits = false;
	for (unsigned int i = 0; i < b->n && b->size[i] > b->came; i++)
		above = b->size[i];
	if (b->came == b->size[0]) {
		settle(b, b->came, 0, now);
		return;
	}
	if (!b->full && b->to.refused && b->came == b->to.carried) {
		b->at = now + PERIOD_NS; /* as it was */
		return;
	}
	if (!b->full) {
		b->low = b->came;
		b->high = b->size[0];
		round_begin(p, true);
		return;
	}
	b->low = b->came;
	if (above < b->high || b->high <= b->came)
		b->high = above;
	if (b->high - b->low <= 1)
		settle(b, b->low, b->high, now);
	else
		round_begin(p, true);
}

void probe_tick(struct session *s, struct peer *p, uint64_t now)
{
	struct probing *b = &p->link.probing;

	if (!s->sink.probe || !(p->hello.features & PROTO_F_PROBE) || !p->link.confirmed ||
	    p->want <= FLOOR)
		return;
	if (b->waits && b->ended && now - b->ended >= SETTLE_NS)
		judge(p, now);
	else if (b->waits && now >= b->at) {
		b->waits = false;
		b->high = 0;
		b->at = now + (b->came || b->to.carried ? PERIOD_NS : RARE_NS);
	}
	if (!b->waits && !b->bursts && now >= b->at)
		round_begin(p, false);
	if (b->bursts)
		burst(s, p, now);
}

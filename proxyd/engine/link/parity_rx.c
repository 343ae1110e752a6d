// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Parity of streams, the receiving end: core/stream_parity.c has the theory.
 */
#include "engine/core/roles.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

/* Reports get lost: so many tell of it. */
#define TOLD 4u

/* What is known of a group: the frames of parity that have come of it, and what is missing, in the
 * order of PSNs. */
struct group {
	struct parity_sum *s;
	const struct parity *of; /* NULL: nothing of it has gone on that was added */
	struct held *h;
	struct wire_psn at;
	uint32_t depth;
	uint32_t missing[PARITY_ROWS], nmissing;
};

/* The slot of the flow @from, whose packets are those of the lane @l; *@own: it is. */
static struct parity_sum *slot(struct engine *e, const struct flow *from, const struct lane *l,
			       bool *own)
{
	struct parity_sum *s = &e->cache.sums[flow_index(e, from) % PARITY_SUMS];

	*own = s->flow == flow_index(e, from) + 1 && s->gen == l->gen;
	return s;
}

void stream_parity_delivered(struct engine *e, const struct flow *fl, const struct pkt *d,
			     struct wire_psn psn)
{
	bool own;
	struct parity_sum *s = slot(e, fl, &fl->lane, &own);

	if (!own)
		return;
	if (!psn_is(s->block, parity_block(psn, s->depth))) {
		s->depth = s->told;
		s->block = parity_block(psn, s->depth);
		memset(s->of, 0, s->depth * sizeof(s->of[0]));
	}
	(void)parity_add(&fl->lane, &s->of[psn.v % s->depth], s->depth, lane_packet(e, d), d->len);
}

/* Make the packet of @from at @psn from what was added of it. False when it cannot be one. */
static bool rebuild(const struct flow *from, const uint8_t *what, struct wire_psn psn, uint8_t *out,
		    struct frame *f)
{
	const struct template *t = &from->tmpl;
	uint32_t len = get_be16(what + 2), bth = t->len - BTH_LEN, icrc = bth + len - ICRC_LEN;

	if (!t->len || len < BTH_LEN + ICRC_LEN || len - BTH_LEN > PARITY_BYTES - PARITY_FIELDS ||
	    bth + len > FRAME_MAX)
		return false;
	memcpy(out + bth, what + 6, 4);
	put_be32(out + bth + 4, from->key.dqpn);
	put_be32(out + bth + 8, (uint32_t)what[10] << 24 | psn.v);
	memcpy(out + bth + BTH_LEN, what + PARITY_FIELDS, len - BTH_LEN - ICRC_LEN);
	template_put(out, t, get_be16(what), get_be16(what + 4), bth + len);
	put_le32(out + icrc, icrc_of(out, t->l3, icrc));
	return frame_parse(out, bth + len, f) == FRAME_OK && f->psn == psn.v;
}

/* Whether the lane @l waits for the packet @psn. What has come, and is not held any more, is
 * neither needed nor known. */
static bool awaited(struct engine *e, const struct lane *l, struct wire_psn psn)
{
	return l->role == ROLE_OPENER ? resp_awaited(e, reads_of(e, l), psn)
				      : !psn_before(psn, l->epsn.psn);
}

static struct wire_psn member(const struct group *g, uint32_t i)
{
	return psn_add(g->at, i * g->depth);
}

/* Find what is missing of the group. False unless that can be made. */
static bool find_missing(struct engine *e, const struct lane *l, struct group *g)
{
	uint32_t left = g->s->got.members;

	if (g->of && g->of->members & ~left)
		return false; /* they are of other packets, too */
	if (g->of)
		left &= ~g->of->members;
	for (uint32_t i = 0; i < PARITY_GROUP; i++) {
		if (!(left & 1u << i) || held_pkt(e, g->h, member(g, i)))
			continue;
		if (g->nmissing == PARITY_ROWS || !awaited(e, l, member(g, i)))
			return false;
		g->missing[g->nmissing++] = i;
	}
	return g->nmissing > 0;
}

/* The sums of what is here of the group, and of its parity: what is missing is left. */
static void add_known(struct engine *e, const struct lane *l, const struct group *g,
		      struct parity *p)
{
	const struct pkt *d;
	uint32_t left;

	*p = g->of ? *g->of : (struct parity){0};
	left = g->s->got.members & ~p->members;
	for (uint32_t i = 0; i < PARITY_GROUP; i++)
		if (left & 1u << i && (d = held_pkt(e, g->h, member(g, i))))
			(void)parity_add(l, p, g->depth, lane_packet(e, d), d->len);
	for (uint32_t row = 0; row < PARITY_ROWS; row++)
		xor_bytes(p->sum[row], g->s->got.sum[row], PARITY_BYTES);
	p->proof ^= g->s->got.proof;
}

/* Make what is missing of the lane @fl in the flow @from. */
static void repair(struct engine *e, struct flow *fl, struct flow *from, struct group *g)
{
	uint8_t made[PARITY_ROWS][PARITY_BYTES], out[PARITY_ROWS][FRAME_MAX];
	struct frame f[PARITY_ROWS];
	struct parity p;
	bool right = true;

	if (!find_missing(e, &fl->lane, g))
		return;
	add_known(e, &fl->lane, g, &p);
	if (!parity_solve(&p, g->s->rows, g->missing, g->nmissing, made))
		return;
	for (uint32_t i = 0; i < g->nmissing && right; i++) {
		right = rebuild(from, made[i], member(g, g->missing[i]), out[i], &f[i]);
		if (right)
			p.proof ^= parity_proof(&fl->lane, &f[i]);
	}
	if (!right || p.proof) {
		COUNT(e, PARITY_WRONG);
		return;
	}
	for (uint32_t i = 0; i < g->nmissing; i++) {
		f[i].icrc_right = true;
		COUNT(e, PARITY_REPAIRED);
		if (fl->lane.role == ROLE_NONE)
			return; /* the one before has ended it */
		if (fl != from) {
			role_of(e, &fl->lane)->response(e, fl, &f[i], PORT_WAN);
			continue;
		}
		fl->lane.repaired = TOLD;
		role_of(e, &fl->lane)->request(e, fl, &f[i]);
	}
}

/* The frame @f, of the requests of @fl or of the @answers, as the peer sent it, or false. */
static bool opened(struct engine *e, const struct flow *fl, bool answers, const struct frame *f,
		   uint8_t *data)
{
	uint32_t tag = seal_tag(e, &fl->lane, answers, wire_psn_of(f));

	put_le32(data + f->icrc, get_le32(data + f->icrc) ^ tag ^ SEAL_PARITY);
	return tag && icrc_ok(f);
}

/* Keep the frame @f of parity of the group at @at in @s. False when it is none. */
static bool take(struct parity_sum *s, const struct frame *f, struct wire_psn at)
{
	const uint8_t *hdr = f->data + f->ext;
	uint32_t first = STREAM_PARITY_HDR - PARITY_SUM_AT, members = get_be32(hdr);
	uint32_t row = hdr[4] & 0xf;
	uint64_t proof = get_be64(hdr + 5);

	if (row >= PARITY_ROWS || f->payload_len > PARITY_BYTES - first)
		return false;
	if (!psn_is(s->got_group, at) || s->got.members != members || s->got.proof != proof) {
		memset(&s->got, 0, sizeof(s->got));
		s->got.members = members;
		s->got.proof = proof;
		s->got_group = at;
		s->rows = 0;
	}
	memset(s->got.sum[row], 0, PARITY_BYTES);
	memcpy(s->got.sum[row], hdr + PARITY_SUM_AT, first);
	memcpy(s->got.sum[row] + first, f->data + f->payload, f->payload_len);
	s->rows |= 1u << row;
	return true;
}

void stream_parity_rx(struct engine *e, struct flow *fl, struct flow *from, const struct frame *f,
		      uint8_t *data)
{
	struct lane *l = &fl->lane;
	bool answers = fl != from, own;
	struct lane_reads *x = reads_of(e, l);
	struct group g = {.depth = (f->data[f->ext + 4] >> 4) + 1u};
	struct parity_sum *s;
	struct wire_psn at;

	if (l->role != (answers ? ROLE_OPENER : ROLE_ACCEPTOR) || l->state != LANE_HELD ||
	    !l->sealed || (g.depth != 1 && g.depth != PARITY_DEPTH) || (answers && !x) ||
	    !opened(e, fl, answers, f, data)) {
		COUNT(e, PARITY_WRONG);
		return;
	}
	s = slot(e, from, l, &own);
	at = parity_block(wire_psn_of(f), g.depth);
	g.at = psn_add(at, f->psn % g.depth);
	if (!own) {
		memset(s, 0, offsetof(struct parity_sum, of));
		s->flow = flow_index(e, from) + 1;
		s->gen = l->gen;
		s->depth = g.depth;
		/* what went on of this one was not added */
		s->block = s->got_group = psn_add(at, PARITY_GROUP * g.depth);
		memset(s->of, 0, sizeof(s->of));
	}
	s->told = g.depth;
	if (!take(s, f, g.at)) {
		COUNT(e, PARITY_WRONG);
		return;
	}
	g.s = s;
	g.h = answers ? &x->held : &l->held;
	if (s->depth == g.depth && psn_is(s->block, at))
		g.of = &s->of[f->psn % g.depth];
	repair(e, fl, from, &g);
}

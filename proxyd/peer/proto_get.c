// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Decoding. Every message is read through a cursor that cannot leave its body, and must use the
 * body up exactly.
 */
#include <string.h>

#include "peer/proto_priv.h"
#include "wire/bytes.h"

struct in {
	const uint8_t *p;
	size_t left;
	bool bad; /* a read went past the end */
};

static const uint8_t *take(struct in *i, size_t n)
{
	static const uint8_t nothing[PROTO_SALT];
	const uint8_t *p = i->p;

	/* Callers take at most sizeof(nothing) at once, or compare with @left first. */
	if (i->bad || i->left < n) {
		i->bad = true;
		return nothing;
	}
	i->p += n;
	i->left -= n;
	return p;
}

static uint8_t take8(struct in *i)
{
	return *take(i, 1);
}

static uint16_t take16(struct in *i)
{
	return get_be16(take(i, 2));
}

static uint32_t take24(struct in *i)
{
	return get_be24(take(i, 3));
}

static uint32_t take32(struct in *i)
{
	return get_be32(take(i, 4));
}

static uint64_t take64(struct in *i)
{
	return get_be64(take(i, 8));
}

/* A count of elements that follow; more than @max makes the message bad. */
static uint8_t take_count(struct in *i, unsigned int max)
{
	uint8_t n = take8(i);

	i->bad |= n > max;
	return i->bad ? 0 : n;
}

static uint8_t take_ranges(struct in *i, struct psn_range *r, unsigned int max)
{
	uint8_t count = take_count(i, max);

	for (unsigned int n = 0; n < count; n++) {
		r[n].from = take24(i);
		r[n].end = take24(i);
	}
	return count;
}

static void take_prefixes(struct in *i, struct prefix *p, unsigned int n)
{
	for (unsigned int k = 0; k < n; k++) {
		memcpy(p[k].addr.b, take(i, 16), 16);
		p[k].len = take8(i);
	}
}

static bool get_hello(struct in *i, uint8_t flags, struct proto_hello *h)
{
	size_t name_len;

	memset(h, 0, sizeof(*h));
	h->version = take8(i);
	h->boot = take64(i);
	h->features = take32(i);
	h->window = take32(i);
	name_len = take8(i);
	h->nprefix = take8(i);
	h->more = flags & F_HELLO_MORE;
	if (i->bad || name_len >= PROTO_NAME || h->nprefix > PROTO_PREFIXES || i->left < name_len)
		return false;
	memcpy(h->name, take(i, name_len), name_len);
	/* A zero byte inside would let two different names look alike. */
	if (strlen(h->name) != name_len)
		return false;
	take_prefixes(i, h->prefix, h->nprefix);
	return !i->bad && proto_hello_ok(h);
}

static bool get_site(struct in *i, uint8_t flags, struct proto_site *t)
{
	uint8_t down;

	memset(t, 0, sizeof(*t));
	t->mtu[0] = take16(i);
	t->mtu[1] = take16(i);
	t->longest = take16(i);
	down = take8(i);
	t->down[0] = down & SITE_LAN_DOWN;
	t->down[1] = down & SITE_WAN_DOWN;
	t->more = flags & F_SITE_MORE;
	t->nwanted = take_count(i, PROTO_PREFIXES);
	take_prefixes(i, t->wanted, t->nwanted);
	return !i->bad && !(down & ~(SITE_LAN_DOWN | SITE_WAN_DOWN)) && proto_site_ok(t);
}

static bool get_probe(struct in *i, uint8_t flags, struct proto_probe *p)
{
	p->number = take32(i);
	p->size = take16(i);
	p->carried = take16(i);
	p->refused = take16(i);
	p->longest = take16(i);
	p->last = flags & F_PROBE_LAST;
	p->padding = take16(i);
	for (unsigned int k = 0; k < p->padding && !i->bad; k++)
		i->bad |= take8(i) != 0;
	return proto_probe_ok(p);
}

static void get_key(struct in *i, struct flow_key *k)
{
	memcpy(k->src.b, take(i, 16), 16);
	memcpy(k->dst.b, take(i, 16), 16);
	k->dqpn = take24(i);
	k->vlan = take16(i);
}

static void get_again(struct in *i, struct report *r)
{
	r->nagain = take_count(i, REPORT_AGAIN);
	i->bad |= !r->nagain; /* the flag without any such READ */
	for (unsigned int n = 0; n < r->nagain; n++)
		r->again[n] = take24(i);
}

static void get_progress(struct in *i, struct report *r)
{
	r->seq = take32(i);
	r->cum = take24(i);
	r->room = take24(i);
	r->una = take24(i);
	r->una_msn = take24(i);
	r->hi = take24(i);
	r->credit = take8(i);
	r->refusal = take8(i);
	r->refusal_psn = take24(i);
	r->reason = take8(i);
	r->nholes = take_ranges(i, r->hole, REPORT_HOLES);
}

static bool get_meter(struct in *i, uint8_t flags, struct meter *m)
{
	m->sent_at = take64(i);
	m->sent = take64(i);
	m->echo_at = take64(i);
	m->echo_sent = take64(i);
	m->got_at = take64(i);
	m->got = take64(i);
	m->packets = take64(i);
	m->marked = take64(i);
	m->held_us = take32(i);
	m->by_box = flags & F_METER_BOX;
	if (m->by_box) {
		m->waited_us = take32(i);
		m->unread = take32(i);
		m->early = take32(i);
		m->overrun = take64(i);
	}
	return !i->bad;
}

static void get_order(struct in *i, struct report *r)
{
	r->seq = take32(i);
	r->base = take32(i);
	r->step_us = take32(i);
	r->norder = take_count(i, REPORT_ORDER_RECS);
	for (unsigned int n = 0; n < r->norder; n++) {
		r->order[n].lane = take32(i);
		r->order[n].birth = take32(i);
		r->order[n].psn = take24(i);
		r->order[n].kind = take8(i);
	}
}

static void get_reads(struct in *i, struct read_series *s)
{
	s->va = take64(i);
	s->step = take64(i);
	s->rkey = take32(i);
	s->length = take32(i);
	s->psn = take24(i);
	s->end = take24(i);
	s->count = take8(i);
}

static void get_open(struct in *i, uint8_t flags, struct report *r)
{
	get_key(i, &r->key);
	r->lqpn = take24(i);
	r->start_psn = take24(i);
	r->start_msn = take24(i);
	r->path_mtu = take16(i);
	r->policy = take8(i);
	r->one_read = flags & F_OPEN_ONE_READ;
	r->own = flags & F_OPEN_OWN;
	r->sealed = flags & F_OPEN_SEALED;
	r->ordered = flags & F_OPEN_ORDERED;
	r->offer = flags & F_OPEN_OFFER;
	r->resume = !r->offer && flags & F_OPEN_RESUME;
	r->counted = r->offer && flags & F_OPEN_COUNTED;
	if (r->ordered) {
		r->log = take32(i);
		r->birth = take32(i);
		r->clear = take24(i);
	}
	if (r->sealed && !r->offer) {
		r->seal_key[0] = take64(i);
		r->seal_key[1] = take64(i);
	}
}

static void get_answers(struct in *i, uint8_t flags, struct report *r)
{
	get_key(i, &r->key);
	r->seq = take32(i);
	r->cum = take24(i);
	r->hi = take24(i);
	r->latest = take24(i);
	r->depth = take16(i);
	r->nholes = take_ranges(i, r->hole, REPORT_HOLES);
	r->announce = flags & F_ANSWERS_ANNOUNCE;
	if (r->announce) {
		r->announce_key[0] = take64(i);
		r->announce_key[1] = take64(i);
	}
}

static bool get_report(struct in *i, enum report_type type, uint8_t flags, struct report *r)
{
	memset(r, 0, sizeof(*r));
	r->type = (uint8_t)type;
	if (type == REPORT_METER)
		return get_meter(i, flags, &r->meter); /* it has no lane */
	r->lane = take32(i);
	r->gen = take32(i);
	switch (type) {
	case REPORT_METER:
		break;
	case REPORT_OPEN:
		get_open(i, flags, r);
		break;
	case REPORT_ACCEPT:
		break;
	case REPORT_REFUSE:
		r->reason = take8(i);
		break;
	case REPORT_CLOSE:
		get_key(i, &r->key);
		r->reason = take8(i);
		r->by_opener = flags & F_CLOSE_BY_OPENER;
		break;
	case REPORT_RESP:
		get_answers(i, flags, r);
		break;
	case REPORT_ORDER:
		get_order(i, r);
		r->by_opener = flags & F_ORDER_BY_OPENER;
		r->again_all = flags & F_ORDER_MISSING;
		break;
	case REPORT_AHEAD:
		get_reads(i, &r->reads);
		break;
	case REPORT_PROGRESS:
		get_progress(i, r);
		r->una_ackable = flags & F_PROGRESS_ACKABLE;
		if (flags & F_PROGRESS_AGAIN)
			get_again(i, r);
		r->bypassed = flags & F_PROGRESS_BYPASSED;
		r->repaired = flags & F_PROGRESS_REPAIRED;
		r->differs = flags & F_PROGRESS_DIFFERS;
		r->announced = flags & F_PROGRESS_ANNOUNCED;
		if (r->announced)
			r->resp_seq = take32(i);
		break;
	}
	return !i->bad && proto_report_ok(r);
}

/* Which flag bits a message may bear; -1 for types not known here. */
static int flags_known(uint8_t type)
{
	switch (type) {
	case PROTO_CHALLENGE:
		return F_CHALLENGE_SEEK | F_CHALLENGE_ESTABLISHED;
	case PROTO_HELLO:
		return F_HELLO_MORE;
	case PROTO_SITE:
		return F_SITE_MORE;
	case PROTO_LANE_OPEN:
		return F_OPEN_RESUME | F_OPEN_ONE_READ | F_OPEN_OLD | F_OPEN_ORDERED |
		       F_OPEN_OFFER | F_OPEN_SEALED | F_OPEN_OWN;
	case PROTO_LANE_ORDER:
		return F_ORDER_BY_OPENER | F_ORDER_MISSING;
	case PROTO_LANE_PROGRESS:
		return F_PROGRESS_ACKABLE | F_PROGRESS_AGAIN | F_PROGRESS_BYPASSED |
		       F_PROGRESS_ANNOUNCED | F_PROGRESS_DIFFERS | F_PROGRESS_REPAIRED;
	case PROTO_LANE_CLOSE:
		return F_CLOSE_BY_OPENER;
	case PROTO_LANE_ANSWERS:
		return F_ANSWERS_ANNOUNCE;
	case PROTO_METER:
		return F_METER_BOX;
	case PROTO_PROBE:
	case PROTO_PROBED:
		return F_PROBE_LAST;
	case PROTO_HEARTBEAT:
	case PROTO_BYE:
	case PROTO_LANE_ACCEPT:
	case PROTO_LANE_REFUSE:
	case PROTO_LANE_AHEAD:
		return 0;
	default:
		return -1;
	}
}

static bool get_body(struct in *i, uint8_t type, uint8_t flags, struct proto_message *m)
{
	uint8_t reason;

	m->type = type;
	switch (type) {
	case PROTO_CHALLENGE:
		memcpy(m->challenge.salt, take(i, PROTO_SALT), PROTO_SALT);
		memcpy(m->challenge.echo, take(i, PROTO_SALT), PROTO_SALT);
		m->challenge.seek = flags & F_CHALLENGE_SEEK;
		m->challenge.established = flags & F_CHALLENGE_ESTABLISHED;
		/* A peer with a session does not seek one. */
		return !(m->challenge.seek && m->challenge.established);
	case PROTO_HELLO:
		return get_hello(i, flags, &m->hello);
	case PROTO_HEARTBEAT:
		m->heartbeat.sent = take64(i);
		m->heartbeat.echo = take64(i);
		m->heartbeat.held_us = take32(i);
		return true;
	case PROTO_BYE:
		reason = take8(i);
		if (reason == 0 || reason >= BYE_REASONS)
			return false;
		m->bye = reason;
		return true;
	case PROTO_SITE:
		return get_site(i, flags, &m->site);
	case PROTO_PROBE:
		return get_probe(i, flags, &m->probe);
	case PROTO_PROBED:
		m->probed.number = take32(i);
		m->probed.size = take16(i);
		m->probed.last = flags & F_PROBE_LAST;
		return true;
	case PROTO_LANE_OPEN:
		return get_report(i, REPORT_OPEN, flags, &m->report);
	case PROTO_LANE_ACCEPT:
		return get_report(i, REPORT_ACCEPT, flags, &m->report);
	case PROTO_LANE_REFUSE:
		return get_report(i, REPORT_REFUSE, flags, &m->report);
	case PROTO_LANE_PROGRESS:
		return get_report(i, REPORT_PROGRESS, flags, &m->report);
	case PROTO_LANE_CLOSE:
		return get_report(i, REPORT_CLOSE, flags, &m->report);
	case PROTO_LANE_ANSWERS:
		return get_report(i, REPORT_RESP, flags, &m->report);
	case PROTO_METER:
		return get_report(i, REPORT_METER, flags, &m->report);
	case PROTO_LANE_ORDER:
		return get_report(i, REPORT_ORDER, flags, &m->report);
	case PROTO_LANE_AHEAD:
		return get_report(i, REPORT_AHEAD, flags, &m->report);
	default:
		return false;
	}
}

enum proto_verdict proto_next(const uint8_t *data, size_t len, size_t *pos, struct proto_message *m)
{
	const uint8_t *p = data + *pos;
	size_t left = len - *pos;
	uint8_t type, flags;
	uint16_t body;
	int known;

	if (left == 0)
		return PROTO_END;
	if (left < PROTO_HDR)
		return PROTO_BROKEN;
	type = p[0];
	flags = p[1];
	body = get_be16(p + 2);
	if (left - PROTO_HDR < body)
		return PROTO_BROKEN;
	*pos += PROTO_HDR + (size_t)body;

	known = flags_known(type);
	if (known < 0)
		return PROTO_UNKNOWN;
	if (flags & ~(unsigned int)known)
		return PROTO_MALFORMED;

	struct in i = {.p = p + PROTO_HDR, .left = body};

	if (!get_body(&i, type, flags, m) || i.bad || i.left != 0)
		return PROTO_MALFORMED;
	return PROTO_OK;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every message is read through a cursor that cannot leave its body, and must use the body up
 * exactly. Both directions run the same checks on the decoded form, so that nothing is sent that a
 * receiver of the same version refuses.
 */
#include "peer/proto.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/frame.h"
#include "wire/psn.h"

/* Flag bits by message; all others must be 0. */
#define F_CHALLENGE_SEEK	0x01u
#define F_CHALLENGE_ESTABLISHED 0x02u
#define F_HELLO_MORE		0x01u
#define F_OPEN_RESUME		0x01u
#define F_OPEN_ONE_READ		0x02u
#define F_OPEN_NAMES		0x04u
#define F_PROGRESS_ACKABLE	0x01u
#define F_PROGRESS_AGAIN	0x02u
#define F_PROGRESS_NAMES	0x04u
#define F_OPEN_ORDERED		0x08u
#define F_CLOSE_BY_OPENER	0x01u
#define F_ORDER_BY_OPENER	0x01u
#define F_ORDER_MISSING		0x02u

/* A hole lies within the span in which PSNs can be compared at all. */
#define SPAN_MAX (1u << 23)

/* ---- cursors ---- */

struct in {
	const uint8_t *p;
	size_t left;
	bool bad; /* something was asked for that is not there */
};

static const uint8_t *take(struct in *i, size_t n)
{
	static const uint8_t nothing[PROTO_SALT];
	const uint8_t *p = i->p;

	/* Callers take at most sizeof(nothing) at once, but for what they check against left. */
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

struct out {
	uint8_t *p;
	size_t room, len;
	bool full;
	uint8_t scrap
		[PROTO_NAME]; /* takes what does not fit; as long as the longest single piece */
};

static uint8_t *give(struct out *o, size_t n)
{
	uint8_t *p = o->p + o->len;

	if (o->full || o->room - o->len < n) {
		o->full = true;
		return o->scrap;
	}
	o->len += n;
	return p;
}

static void give8(struct out *o, uint8_t v)
{
	*give(o, 1) = v;
}

static void give16(struct out *o, uint16_t v)
{
	put_be16(give(o, 2), v);
}

static void give24(struct out *o, uint32_t v)
{
	put_be24(give(o, 3), v);
}

static void give32(struct out *o, uint32_t v)
{
	put_be32(give(o, 4), v);
}

static void give64(struct out *o, uint64_t v)
{
	put_be64(give(o, 8), v);
}

static void give_bytes(struct out *o, const void *data, size_t n)
{
	memcpy(give(o, n), data, n);
}

/* ---- what may be said ---- */

bool proto_name_ok(const char *name)
{
	size_t n = strnlen(name, PROTO_NAME);

	if (n == 0 || n == PROTO_NAME)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		/* It ends up in logs and on terminals: no byte that could mean something there. Not
		 * isalnum(), which depends on the locale. */
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}

static bool prefix_ok(const struct prefix *p)
{
	if (p->len > 128)
		return false;
	for (unsigned int bit = p->len; bit < 128;) {
		uint8_t mask = (uint8_t)(0xff >> (bit % 8));

		if (p->addr.b[bit / 8] & mask)
			return false;
		bit += 8 - bit % 8;
	}
	return true;
}

static bool v4_mapped(const struct ip_addr *a)
{
	static const uint8_t head[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(a->b, head, sizeof(head)) == 0;
}

static bool hello_ok(const struct proto_hello *h)
{
	if (h->version == 0 || h->boot == 0 || h->nprefix > PROTO_PREFIXES ||
	    !proto_name_ok(h->name))
		return false;
	for (unsigned int i = 0; i < h->nprefix; i++)
		if (!prefix_ok(&h->prefix[i]))
			return false;
	return true;
}

static bool key_ok(const struct flow_key *k)
{
	return k->dqpn <= PSN_MASK && (k->vlan <= 0xfff || k->vlan == FRAME_VLAN_NONE) &&
	       v4_mapped(&k->src) == v4_mapped(&k->dst);
}

static bool path_mtu_ok(uint32_t m)
{
	return m == 0 || m == 256 || m == 512 || m == 1024 || m == 2048 || m == 4096;
}

/* None of @n ranges is empty, and all lie between @cum and @hi. */
static bool ranges_ok(const struct psn_range *h, unsigned int n, uint32_t cum, uint32_t hi)
{
	uint32_t span = (hi - cum) & PSN_MASK;

	if (cum > PSN_MASK || hi > PSN_MASK || span >= SPAN_MAX)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		if (h[i].from > PSN_MASK || h[i].end > PSN_MASK)
			return false;

		uint32_t from = (h[i].from - cum) & PSN_MASK, end = (h[i].end - cum) & PSN_MASK;

		if (from >= end || end > span)
			return false;
	}
	return true;
}

/* What is missing must lie between cum and hi. */
static bool holes_ok(const struct report *r)
{
	return r->nholes <= REPORT_HOLES && ranges_ok(r->hole, r->nholes, r->cum, r->hi);
}

/* Names are missing between cum and the newest one. */
static bool unnamed_ok(const struct report *r)
{
	if (!r->names)
		return !r->nunnamed;
	return r->nunnamed <= REPORT_UNNAMED &&
	       ranges_ok(r->unnamed, r->nunnamed, r->cum, r->named);
}

/* Each packet takes one PSN, but for the last. */
static bool names_ok(const struct report *r)
{
	return key_ok(&r->key) && r->cum <= PSN_MASK && r->hi <= PSN_MASK && r->nnames > 0 &&
	       r->nnames <= REPORT_NAMED && ((r->hi - r->cum) & PSN_MASK) < SPAN_MAX &&
	       ((r->hi - r->cum) & PSN_MASK) >= r->nnames;
}

static bool progress_ok(const struct report *r)
{
	if (r->room > PSN_MASK || r->una > PSN_MASK || r->una_msn > PSN_MASK ||
	    r->refusal_psn > PSN_MASK || !holes_ok(r) || !unnamed_ok(r))
		return false;
	if (r->credit > AETH_ACK_UNLIMITED && r->credit != 0xff)
		return false;
	/* Any NAK but the one that asks for more: responders may give codes that are reserved. */
	if (r->refusal && (!aeth_is_nak(r->refusal) || r->refusal == AETH_NAK_SEQ))
		return false;
	if (r->nagain > REPORT_AGAIN)
		return false;
	for (unsigned int n = 0; n < r->nagain; n++)
		if (r->again[n] > PSN_MASK)
			return false;
	return r->reason < REASONS;
}

static bool answers_ok(const struct report *r)
{
	return key_ok(&r->key) && r->latest <= PSN_MASK && r->depth <= UINT16_MAX && holes_ok(r);
}

static bool order_ok(const struct report *r)
{
	if (r->norder > REPORT_ORDER_RECS || (r->norder && !r->by_opener))
		return false;
	for (unsigned int i = 0; i < r->norder; i++)
		if (r->order[i].kind == 0 || r->order[i].kind >= ORDER_KINDS)
			return false;
	return !(r->by_opener && r->again_all);
}

static bool report_ok(const struct report *r)
{
	switch (r->type) {
	case REPORT_ORDER:
		return order_ok(r);
	case REPORT_OPEN:
		return (!r->ordered || r->clear <= PSN_MASK) && key_ok(&r->key) &&
		       r->lqpn <= PSN_MASK && r->start_psn <= PSN_MASK &&
		       r->start_msn <= PSN_MASK && path_mtu_ok(r->path_mtu) && r->policy < POLICIES;
	case REPORT_ACCEPT:
		return true;
	case REPORT_REFUSE:
		return r->reason < REASONS;
	case REPORT_CLOSE:
		return key_ok(&r->key) && r->reason < REASONS;
	case REPORT_PROGRESS:
		return progress_ok(r);
	case REPORT_RESP:
		return answers_ok(r);
	case REPORT_METER:
		return true;
	case REPORT_NAMES:
		return names_ok(r);
	default:
		return false;
	}
}

/* ---- decoding ---- */

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
	for (unsigned int n = 0; n < h->nprefix; n++) {
		memcpy(h->prefix[n].addr.b, take(i, 16), 16);
		h->prefix[n].len = take8(i);
	}
	return !i->bad && hello_ok(h);
}

static void get_key(struct in *i, struct flow_key *k)
{
	memcpy(k->src.b, take(i, 16), 16);
	memcpy(k->dst.b, take(i, 16), 16);
	k->dqpn = take24(i);
	k->vlan = take16(i);
}

static void get_holes(struct in *i, struct report *r)
{
	r->nholes = take8(i);
	if (r->nholes > REPORT_HOLES) {
		i->bad = true;
		return;
	}
	for (unsigned int n = 0; n < r->nholes; n++) {
		r->hole[n].from = take24(i);
		r->hole[n].end = take24(i);
	}
}

static void get_again(struct in *i, struct report *r)
{
	r->nagain = take8(i);
	if (r->nagain == 0 || r->nagain > REPORT_AGAIN) {
		i->bad = true;
		return;
	}
	for (unsigned int n = 0; n < r->nagain; n++)
		r->again[n] = take24(i);
}

static void get_unnamed(struct in *i, struct report *r)
{
	r->names = true;
	r->named = take24(i);
	r->nunnamed = take8(i);
	if (r->nunnamed > REPORT_UNNAMED) {
		i->bad = true;
		return;
	}
	for (unsigned int n = 0; n < r->nunnamed; n++) {
		r->unnamed[n].from = take24(i);
		r->unnamed[n].end = take24(i);
	}
}

static void get_names(struct in *i, struct report *r)
{
	get_key(i, &r->key);
	r->cum = take24(i);
	r->hi = take24(i);
	r->nnames = take8(i);
	if (r->nnames > REPORT_NAMED) {
		i->bad = true;
		return;
	}
	for (unsigned int n = 0; n < r->nnames; n++)
		r->name[n] = take32(i);
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
	get_holes(i, r);
}

static bool get_meter(struct in *i, struct meter *m)
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
	return !i->bad;
}

static void get_order(struct in *i, struct report *r)
{
	r->seq = take32(i);
	r->base = take32(i);
	r->step_us = take32(i);
	r->norder = take8(i);
	if (r->norder > REPORT_ORDER_RECS) {
		i->bad = true;
		return;
	}
	for (unsigned int n = 0; n < r->norder; n++) {
		r->order[n].lane = take32(i);
		r->order[n].birth = take32(i);
		r->order[n].psn = take24(i);
		r->order[n].kind = take8(i);
	}
}

static void get_open(struct in *i, uint8_t flags, struct report *r)
{
	get_key(i, &r->key);
	r->lqpn = take24(i);
	r->start_psn = take24(i);
	r->start_msn = take24(i);
	r->path_mtu = take16(i);
	r->policy = take8(i);
	r->resume = flags & F_OPEN_RESUME;
	r->one_read = flags & F_OPEN_ONE_READ;
	r->names = flags & F_OPEN_NAMES;
	r->ordered = flags & F_OPEN_ORDERED;
	if (r->ordered) {
		r->log = take32(i);
		r->birth = take32(i);
		r->clear = take24(i);
	}
}

static bool get_report(struct in *i, enum report_type type, uint8_t flags, struct report *r)
{
	memset(r, 0, sizeof(*r));
	r->type = (uint8_t)type;
	if (type == REPORT_METER)
		return get_meter(i, &r->meter); /* it is about no lane */
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
		get_key(i, &r->key);
		r->seq = take32(i);
		r->cum = take24(i);
		r->hi = take24(i);
		r->latest = take24(i);
		r->depth = take16(i);
		get_holes(i, r);
		break;
	case REPORT_ORDER:
		get_order(i, r);
		r->by_opener = flags & F_ORDER_BY_OPENER;
		r->again_all = flags & F_ORDER_MISSING;
		break;
	case REPORT_PROGRESS:
		get_progress(i, r);
		r->una_ackable = flags & F_PROGRESS_ACKABLE;
		if (flags & F_PROGRESS_AGAIN)
			get_again(i, r);
		if (flags & F_PROGRESS_NAMES)
			get_unnamed(i, r);
		break;
	case REPORT_NAMES:
		get_names(i, r);
		break;
	}
	return !i->bad && report_ok(r);
}

/* Which flag bits a message may bear; -1 for types not known here. */
static int flags_known(uint8_t type)
{
	switch (type) {
	case PROTO_CHALLENGE:
		return F_CHALLENGE_SEEK | F_CHALLENGE_ESTABLISHED;
	case PROTO_HELLO:
		return F_HELLO_MORE;
	case PROTO_LANE_OPEN:
		return F_OPEN_RESUME | F_OPEN_ONE_READ | F_OPEN_NAMES | F_OPEN_ORDERED;
	case PROTO_LANE_ORDER:
		return F_ORDER_BY_OPENER | F_ORDER_MISSING;
	case PROTO_LANE_PROGRESS:
		return F_PROGRESS_ACKABLE | F_PROGRESS_AGAIN | F_PROGRESS_NAMES;
	case PROTO_LANE_CLOSE:
		return F_CLOSE_BY_OPENER;
	case PROTO_LANE_ANSWERS:
	case PROTO_METER:
	case PROTO_LANE_NAMES:
	case PROTO_HEARTBEAT:
	case PROTO_BYE:
	case PROTO_LANE_ACCEPT:
	case PROTO_LANE_REFUSE:
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
		/* Who has a session does not look for one. */
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
	case PROTO_LANE_NAMES:
		return get_report(i, REPORT_NAMES, flags, &m->report);
	case PROTO_LANE_ORDER:
		return get_report(i, REPORT_ORDER, flags, &m->report);
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

/* ---- encoding ---- */

static struct out begin(uint8_t *buf, size_t room, enum proto_type type, uint8_t flags)
{
	struct out o = {.p = buf, .room = room};

	give8(&o, (uint8_t)type);
	give8(&o, flags);
	give16(&o, 0);
	return o;
}

static int finish(struct out *o)
{
	if (o->full)
		return -ENOSPC;
	put_be16(o->p + 2, (uint16_t)(o->len - PROTO_HDR));
	return (int)o->len;
}

int proto_put_challenge(uint8_t *buf, size_t room, const struct proto_challenge *c)
{
	struct out o;

	if (c->seek && c->established)
		return -EINVAL;
	o = begin(buf, room, PROTO_CHALLENGE,
		  (uint8_t)((c->seek ? F_CHALLENGE_SEEK : 0) |
			    (c->established ? F_CHALLENGE_ESTABLISHED : 0)));
	give_bytes(&o, c->salt, PROTO_SALT);
	give_bytes(&o, c->echo, PROTO_SALT);
	return finish(&o);
}

int proto_put_hello(uint8_t *buf, size_t room, const struct proto_hello *h)
{
	struct out o;
	size_t name_len;

	if (!hello_ok(h))
		return -EINVAL;
	name_len = strlen(h->name);
	o = begin(buf, room, PROTO_HELLO, h->more ? F_HELLO_MORE : 0);
	give8(&o, h->version);
	give64(&o, h->boot);
	give32(&o, h->features);
	give32(&o, h->window);
	give8(&o, (uint8_t)name_len);
	give8(&o, h->nprefix);
	give_bytes(&o, h->name, name_len);
	for (unsigned int i = 0; i < h->nprefix; i++) {
		give_bytes(&o, h->prefix[i].addr.b, 16);
		give8(&o, h->prefix[i].len);
	}
	return finish(&o);
}

int proto_put_heartbeat(uint8_t *buf, size_t room, const struct proto_heartbeat *h)
{
	struct out o = begin(buf, room, PROTO_HEARTBEAT, 0);

	give64(&o, h->sent);
	give64(&o, h->echo);
	give32(&o, h->held_us);
	return finish(&o);
}

int proto_put_bye(uint8_t *buf, size_t room, enum proto_bye_reason reason)
{
	struct out o;

	if ((unsigned int)reason == 0 || reason >= BYE_REASONS)
		return -EINVAL;
	o = begin(buf, room, PROTO_BYE, 0);
	give8(&o, (uint8_t)reason);
	return finish(&o);
}

static void give_key(struct out *o, const struct flow_key *k)
{
	give_bytes(o, k->src.b, 16);
	give_bytes(o, k->dst.b, 16);
	give24(o, k->dqpn);
	give16(o, k->vlan);
}

static void give_holes(struct out *o, const struct report *r)
{
	give8(o, r->nholes);
	for (unsigned int i = 0; i < r->nholes; i++) {
		give24(o, r->hole[i].from);
		give24(o, r->hole[i].end);
	}
}

static void give_progress(struct out *o, const struct report *r)
{
	give32(o, r->seq);
	give24(o, r->cum);
	give24(o, r->room);
	give24(o, r->una);
	give24(o, r->una_msn);
	give24(o, r->hi);
	give8(o, r->credit);
	give8(o, r->refusal);
	give24(o, r->refusal_psn);
	give8(o, r->reason);
	give_holes(o, r);
	if (r->nagain) {
		give8(o, r->nagain);
		for (unsigned int i = 0; i < r->nagain; i++)
			give24(o, r->again[i]);
	}
	if (!r->names)
		return;
	give24(o, r->named);
	give8(o, r->nunnamed);
	for (unsigned int i = 0; i < r->nunnamed; i++) {
		give24(o, r->unnamed[i].from);
		give24(o, r->unnamed[i].end);
	}
}

static void give_names(struct out *o, const struct report *r)
{
	give_key(o, &r->key);
	give24(o, r->cum);
	give24(o, r->hi);
	give8(o, r->nnames);
	for (unsigned int i = 0; i < r->nnames; i++)
		give32(o, r->name[i]);
}

static uint8_t report_flags(const struct report *r)
{
	switch (r->type) {
	case REPORT_OPEN:
		return (uint8_t)((r->resume ? F_OPEN_RESUME : 0) |
				 (r->one_read ? F_OPEN_ONE_READ : 0) |
				 (r->names ? F_OPEN_NAMES : 0) | (r->ordered ? F_OPEN_ORDERED : 0));
	case REPORT_PROGRESS:
		return (uint8_t)((r->una_ackable ? F_PROGRESS_ACKABLE : 0) |
				 (r->nagain ? F_PROGRESS_AGAIN : 0) |
				 (r->names ? F_PROGRESS_NAMES : 0));
	case REPORT_CLOSE:
		return r->by_opener ? F_CLOSE_BY_OPENER : 0;
	case REPORT_ORDER:
		return (uint8_t)((r->by_opener ? F_ORDER_BY_OPENER : 0) |
				 (r->again_all ? F_ORDER_MISSING : 0));
	default:
		return 0;
	}
}

static void give_meter(struct out *o, const struct meter *m)
{
	give64(o, m->sent_at);
	give64(o, m->sent);
	give64(o, m->echo_at);
	give64(o, m->echo_sent);
	give64(o, m->got_at);
	give64(o, m->got);
	give64(o, m->packets);
	give64(o, m->marked);
	give32(o, m->held_us);
}

static void give_order(struct out *o, const struct report *r)
{
	give32(o, r->seq);
	give32(o, r->base);
	give32(o, r->step_us);
	give8(o, r->norder);
	for (unsigned int i = 0; i < r->norder; i++) {
		give32(o, r->order[i].lane);
		give32(o, r->order[i].birth);
		give24(o, r->order[i].psn);
		give8(o, r->order[i].kind);
	}
}

static void give_open(struct out *o, const struct report *r)
{
	give_key(o, &r->key);
	give24(o, r->lqpn);
	give24(o, r->start_psn);
	give24(o, r->start_msn);
	give16(o, (uint16_t)r->path_mtu);
	give8(o, r->policy);
	if (r->ordered) {
		give32(o, r->log);
		give32(o, r->birth);
		give24(o, r->clear);
	}
}

int proto_put_report(uint8_t *buf, size_t room, const struct report *r)
{
	static const uint8_t types[] = {
		[REPORT_OPEN] = PROTO_LANE_OPEN,
		[REPORT_ACCEPT] = PROTO_LANE_ACCEPT,
		[REPORT_REFUSE] = PROTO_LANE_REFUSE,
		[REPORT_CLOSE] = PROTO_LANE_CLOSE,
		[REPORT_PROGRESS] = PROTO_LANE_PROGRESS,
		[REPORT_RESP] = PROTO_LANE_ANSWERS,
		[REPORT_METER] = PROTO_METER,
		[REPORT_NAMES] = PROTO_LANE_NAMES,
		[REPORT_ORDER] = PROTO_LANE_ORDER,
	};
	struct out o;

	if (!report_ok(r))
		return -EINVAL;
	o = begin(buf, room, types[r->type], report_flags(r));
	if (r->type == REPORT_METER) {
		give_meter(&o, &r->meter);
		return finish(&o);
	}
	give32(&o, r->lane);
	give32(&o, r->gen);
	switch ((enum report_type)r->type) {
	case REPORT_METER:
		break; /* above: it is about no lane */
	case REPORT_OPEN:
		give_open(&o, r);
		break;
	case REPORT_ORDER:
		give_order(&o, r);
		break;
	case REPORT_ACCEPT:
		break;
	case REPORT_REFUSE:
		give8(&o, r->reason);
		break;
	case REPORT_CLOSE:
		give_key(&o, &r->key);
		give8(&o, r->reason);
		break;
	case REPORT_PROGRESS:
		give_progress(&o, r);
		break;
	case REPORT_RESP:
		give_key(&o, &r->key);
		give32(&o, r->seq);
		give24(&o, r->cum);
		give24(&o, r->hi);
		give24(&o, r->latest);
		give16(&o, (uint16_t)r->depth);
		give_holes(&o, r);
		break;
	case REPORT_NAMES:
		give_names(&o, r);
		break;
	}
	return finish(&o);
}

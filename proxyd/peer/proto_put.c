// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Encoding: messages into a buffer that may be too short, which is reported at the end. */
#include <errno.h>
#include <string.h>

#include "peer/proto_priv.h"
#include "wire/bytes.h"

struct out {
	uint8_t *p;
	size_t room, len;
	bool full;
	uint8_t scrap
		[PROTO_NAME]; /* receives what does not fit; as long as the longest single piece */
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

static void give_prefixes(struct out *o, const struct prefix *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		give_bytes(o, p[i].addr.b, 16);
		give8(o, p[i].len);
	}
}

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

	if (!proto_hello_ok(h))
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
	give_prefixes(&o, h->prefix, h->nprefix);
	return finish(&o);
}

int proto_put_site(uint8_t *buf, size_t room, const struct proto_site *t)
{
	struct out o;

	if (!proto_site_ok(t))
		return -EINVAL;
	o = begin(buf, room, PROTO_SITE, t->more ? F_SITE_MORE : 0);
	give16(&o, t->mtu[0]);
	give16(&o, t->mtu[1]);
	give16(&o, t->longest);
	give8(&o, (uint8_t)((t->down[0] ? SITE_LAN_DOWN : 0) | (t->down[1] ? SITE_WAN_DOWN : 0)));
	give8(&o, t->nwanted);
	give_prefixes(&o, t->wanted, t->nwanted);
	return finish(&o);
}

int proto_put_probe(uint8_t *buf, size_t room, const struct proto_probe *p)
{
	struct out o;

	if (!proto_probe_ok(p))
		return -EINVAL;
	o = begin(buf, room, PROTO_PROBE, p->last ? F_PROBE_LAST : 0);
	give32(&o, p->number);
	give16(&o, p->size);
	give16(&o, p->carried);
	give16(&o, p->refused);
	give16(&o, p->longest);
	give16(&o, p->padding);
	if (o.room - o.len < p->padding)
		return -ENOSPC;
	memset(give(&o, p->padding), 0, p->padding);
	return finish(&o);
}

int proto_put_probed(uint8_t *buf, size_t room, const struct proto_probed *p)
{
	struct out o = begin(buf, room, PROTO_PROBED, p->last ? F_PROBE_LAST : 0);

	give32(&o, p->number);
	give16(&o, p->size);
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

/* The count, then each. */
static void give_ranges(struct out *o, const struct psn_range *r, uint8_t n)
{
	give8(o, n);
	for (; n; n--, r++) {
		give24(o, r->from);
		give24(o, r->end);
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
	give_ranges(o, r->hole, r->nholes);
	if (r->nagain) {
		give8(o, r->nagain);
		for (unsigned int i = 0; i < r->nagain; i++)
			give24(o, r->again[i]);
	}
	if (r->announced)
		give32(o, r->resp_seq);
}

static void give_answers(struct out *o, const struct report *r)
{
	give_key(o, &r->key);
	give32(o, r->seq);
	give24(o, r->cum);
	give24(o, r->hi);
	give24(o, r->latest);
	give16(o, (uint16_t)r->depth);
	give_ranges(o, r->hole, r->nholes);
	if (r->announce) {
		give64(o, r->announce_key[0]);
		give64(o, r->announce_key[1]);
	}
}

static uint8_t report_flags(const struct report *r)
{
	switch (r->type) {
	case REPORT_OPEN:
		return (uint8_t)((r->resume ? F_OPEN_RESUME : 0) |
				 (r->counted ? F_OPEN_COUNTED : 0) |
				 (r->one_read ? F_OPEN_ONE_READ : 0) | (r->own ? F_OPEN_OWN : 0) |
				 (r->sealed ? F_OPEN_SEALED : 0) |
				 (r->ordered ? F_OPEN_ORDERED : 0) | (r->offer ? F_OPEN_OFFER : 0));
	case REPORT_PROGRESS:
		return (uint8_t)((r->una_ackable ? F_PROGRESS_ACKABLE : 0) |
				 (r->nagain ? F_PROGRESS_AGAIN : 0) |
				 (r->bypassed ? F_PROGRESS_BYPASSED : 0) |
				 (r->repaired ? F_PROGRESS_REPAIRED : 0) |
				 (r->announced ? F_PROGRESS_ANNOUNCED : 0) |
				 (r->differs ? F_PROGRESS_DIFFERS : 0));
	case REPORT_RESP:
		return r->announce ? F_ANSWERS_ANNOUNCE : 0;
	case REPORT_METER:
		return r->meter.by_box ? F_METER_BOX : 0;
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
	if (!m->by_box)
		return;
	give32(o, m->waited_us);
	give32(o, m->unread);
	give32(o, m->early);
	give64(o, m->overrun);
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

static void give_reads(struct out *o, const struct read_series *s)
{
	give64(o, s->va);
	give64(o, s->step);
	give32(o, s->rkey);
	give32(o, s->length);
	give24(o, s->psn);
	give24(o, s->end);
	give8(o, (uint8_t)s->count);
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
	if (r->sealed && !r->offer) {
		give64(o, r->seal_key[0]);
		give64(o, r->seal_key[1]);
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
		[REPORT_ORDER] = PROTO_LANE_ORDER,
		[REPORT_AHEAD] = PROTO_LANE_AHEAD,
	};
	struct out o;

	if (!proto_report_ok(r))
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
		break; /* done above: it has no lane */
	case REPORT_OPEN:
		give_open(&o, r);
		break;
	case REPORT_ORDER:
		give_order(&o, r);
		break;
	case REPORT_AHEAD:
		give_reads(&o, &r->reads);
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
		give_answers(&o, r);
		break;
	}
	return finish(&o);
}

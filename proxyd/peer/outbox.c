// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What we send under a session's keys. Messages are written straight into the datagram that will
 * carry them; it is sealed in place when it is full or when the batch ends.
 */
#include <string.h>

#include "peer/session_priv.h"

_Static_assert(SEAL_DATA_HDR + SEAL_TAG + PROTO_HELLO_MAX <= SESSION_DATAGRAM_MIN,
	       "longest message");
_Static_assert(SEAL_DATA_HDR + SEAL_TAG + PROTO_REPORT_MAX <= SESSION_DATAGRAM_MIN,
	       "longest message");

void outbox_send(struct session *s, struct peer *p, const uint8_t *data, size_t len)
{
	p->tx_datagrams++;
	p->tx_bytes += len;
	s->sink.send(s->sink.ctx, session_index(s, p), data, len);
}

void outbox_drop(struct peer *p)
{
	p->out_len = 0;
	p->nqueued = 0;
}

void outbox_flush(struct session *s, struct peer *p)
{
	size_t len = p->out_len;

	if (p->state != SESSION_UP || len == 0)
		return;
	outbox_drop(p);
	outbox_send(s, p, p->out, seal_data(&p->link.keys, p->out, len));
}

/* Append a message of @n bytes. The smallest datagram that can be configured holds the longest
 * one. */
static void append(struct session *s, struct peer *p, const uint8_t *message, int n)
{
	if (n <= 0)
		return;
	if (SEAL_DATA_HDR + p->out_len + (size_t)n + SEAL_TAG > s->cfg.datagram_max)
		outbox_flush(s, p);
	memcpy(p->out + SEAL_DATA_HDR + p->out_len, message, (size_t)n);
	p->out_len += (size_t)n;
}

/* Take queued message @i out of the datagram. */
static void cut(struct peer *p, unsigned int i)
{
	struct queued q = p->queued[i];
	uint8_t *at = p->out + SEAL_DATA_HDR + q.off;

	memmove(at, at + q.len, p->out_len - q.off - q.len);
	p->out_len -= q.len;
	p->nqueued--;
	memmove(&p->queued[i], &p->queued[i + 1], (p->nqueued - i) * sizeof(q));
	for (unsigned int j = 0; j < p->nqueued; j++)
		if (p->queued[j].off > q.off)
			p->queued[j].off = (uint16_t)(p->queued[j].off - q.len);
}

static void supersede(struct peer *p, const struct report *r)
{
	for (unsigned int i = 0; i < p->nqueued; i++) {
		if (p->queued[i].type == r->type && p->queued[i].lane == r->lane &&
		    p->queued[i].gen == r->gen) {
			cut(p, i);
			p->counter[SC_SUPERSEDED]++;
			p->tx_reports--;
			return;
		}
	}
}

int outbox_report(struct session *s, struct peer *p, const struct report *r)
{
	bool progress = r->type == REPORT_PROGRESS || r->type == REPORT_RESP;
	uint8_t message[PROTO_REPORT_MAX];
	struct report plain;
	int n;

	if (r->type == REPORT_METER && !(p->hello.features & PROTO_F_METER_BOX)) {
		plain = *r;
		plain.meter.by_box = false;
		r = &plain;
	}
	/* Encode it first: an invalid report must not replace an older one. */
	n = proto_put_report(message, sizeof(message), r);
	if (n < 0)
		return n;
	if (progress)
		supersede(p, r);
	append(s, p, message, n);
	if (progress && p->nqueued < QUEUED_MAX)
		p->queued[p->nqueued++] = (struct queued){
			.type = r->type,
			.lane = r->lane,
			.gen = r->gen,
			.off = (uint16_t)(p->out_len - (size_t)n),
			.len = (uint16_t)n,
		};
	p->tx_reports++;
	return 0;
}

void outbox_hello(struct session *s, struct peer *p)
{
	uint8_t message[PROTO_HELLO_MAX];

	append(s, p, message, proto_put_hello(message, sizeof(message), &s->self));
}

void outbox_site(struct session *s, struct peer *p)
{
	uint8_t message[PROTO_SITE_MAX];

	append(s, p, message, proto_put_site(message, sizeof(message), &p->own_site));
}

void outbox_heartbeat(struct session *s, struct peer *p, uint64_t now)
{
	struct proto_heartbeat h = {.sent = now ? now : 1};
	uint8_t message[PROTO_HDR + 20];

	if (p->link.beat_sent) {
		uint64_t held = (now - p->link.beat_at) / 1000;

		h.echo = p->link.beat_sent;
		h.held_us = held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
	}
	append(s, p, message, proto_put_heartbeat(message, sizeof(message), &h));
	/* At once: its time stamp is right only now. */
	outbox_flush(s, p);
}

void outbox_probed(struct session *s, struct peer *p, const struct proto_probed *m)
{
	uint8_t message[PROTO_HDR + 6];

	append(s, p, message, proto_put_probed(message, sizeof(message), m));
	outbox_flush(s, p);
}

bool outbox_probe(struct session *s, struct peer *p, struct proto_probe *m)
{
	uint8_t data[SESSION_PROBE_MAX];
	size_t less = (size_t)p->overhead + SEAL_DATA_HDR + PROTO_PROBE_LEN + SEAL_TAG;
	int n;

	if (m->size < less || m->size - p->overhead > (int)sizeof(data))
		return false;
	m->padding = (uint16_t)(m->size - less);
	n = proto_put_probe(data + SEAL_DATA_HDR, sizeof(data) - SEAL_DATA_HDR, m);
	if (n < 0)
		return false;
	less = seal_data(&p->link.keys, data, (size_t)n);
	if (!s->sink.probe(s->sink.ctx, session_index(s, p), data, less))
		return false;
	p->tx_datagrams++;
	p->tx_bytes += less;
	return true;
}

void outbox_bye(struct session *s, struct peer *p, enum proto_bye_reason reason)
{
	uint8_t message[PROTO_HDR + 1];

	append(s, p, message, proto_put_bye(message, sizeof(message), reason));
	outbox_flush(s, p);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "tests/lab/model/rc_pair.h"

static int side_index(const struct rc_side *s)
{
	return (int)(s - s->pair->side);
}

static uint8_t *side_buf(void *ctx)
{
	struct rc_side *s = ctx;

	return wan_buf(s->out);
}

static void side_tx(void *ctx, uint8_t *buf, uint32_t len)
{
	struct rc_side *s = ctx;

	(void)buf;
	wan_send(s->out, s->pair->now, len);
}

static void side_complete(void *ctx, struct rc_qp *qp, const struct rc_completion *c)
{
	struct rc_side *s = ctx;

	if (s->pair->complete)
		s->pair->complete(s->pair, side_index(s), qp, c);
}

static void side_receive(void *ctx, struct rc_qp *qp, const struct rc_message *m)
{
	struct rc_side *s = ctx;

	if (s->pair->receive)
		s->pair->receive(s->pair, side_index(s), qp, m);
}

static void side_error(void *ctx, struct rc_qp *qp, enum rc_status why)
{
	struct rc_side *s = ctx;

	if (s->pair->error)
		s->pair->error(s->pair, side_index(s), qp, why);
}

int rc_pair_init(struct rc_pair *p, const struct rc_host_config *host,
		 const struct wan_config *link)
{
	static const struct rc_host_ops ops = {.tx_buf = side_buf,
					       .tx = side_tx,
					       .complete = side_complete,
					       .receive = side_receive,
					       .error = side_error};

	memset(p, 0, sizeof(*p));
	for (int i = 0; i < 2; i++) {
		struct wan_config w = *link;
		struct rc_host_config h = *host;

		w.seed += (uint64_t)i;
		h.seed += (uint64_t)i;
		p->side[i].pair = p;
		p->side[i].host = rc_host_create(&h, &ops, &p->side[i]);
		p->side[i].out = wan_create(&w);
		if (!p->side[i].host || !p->side[i].out) {
			rc_pair_exit(p);
			return -1;
		}
	}
	return 0;
}

void rc_pair_exit(struct rc_pair *p)
{
	for (int i = 0; i < 2; i++) {
		rc_host_destroy(p->side[i].host);
		wan_destroy(p->side[i].out);
		p->side[i].host = NULL;
		p->side[i].out = NULL;
	}
}

int rc_pair_connect(struct rc_pair *p, struct rc_qp_config *a, enum rc_personality other,
		    struct rc_qp *qp[2])
{
	static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 1}, mac_b[6] = {2, 0, 0, 0, 0, 2};
	static const uint8_t ip_a[4] = {10, 0, 0, 1}, ip_b[4] = {10, 0, 0, 2};
	static const struct ip_addr none;
	struct rc_qp_config b;

	if (!memcmp(&a->src, &none, sizeof(none))) {
		memcpy(a->smac, mac_a, 6);
		memcpy(a->dmac, mac_b, 6);
		a->src = ip_addr_v4(ip_a);
		a->dst = ip_addr_v4(ip_b);
	}
	rc_qp_mirror(&b, a);
	if (b.personality != other) {
		b.personality = other;
		b.max_unacked = other == RC_PERMISSIVE ? 128 : 0;
	}
	qp[0] = rc_qp_create(p->side[0].host, a, NULL);
	qp[1] = rc_qp_create(p->side[1].host, &b, NULL);
	return qp[0] && qp[1] ? 0 : -1;
}

static uint64_t next_event(const struct rc_pair *p)
{
	uint64_t at = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		uint64_t a = wan_next(p->side[i].out), b = rc_host_next(p->side[i].host);

		at = a < at ? a : at;
		at = b < at ? b : at;
	}
	return at;
}

bool rc_pair_step(struct rc_pair *p, uint64_t until)
{
	uint64_t at = next_event(p);

	if (at > until) {
		if (until != UINT64_MAX)
			p->now = until;
		return false;
	}
	if (at > p->now)
		p->now = at;
	for (int i = 0; i < 2; i++) {
		const uint8_t *data;
		uint32_t len;

		while ((data = wan_pop(p->side[i].out, p->now, &len))) {
			p->steps++;
			if (!p->filter || p->filter(p, !i, data, len))
				rc_host_rx(p->side[!i].host, p->now, data, len);
			/* Only frames of the other direction are made here: data stays valid. */
			rc_host_poll(p->side[!i].host, p->now, 8);
		}
	}
	for (int i = 0; i < 2; i++)
		if (rc_host_next(p->side[i].host) <= p->now)
			rc_host_poll(p->side[i].host, p->now, 64);
	return true;
}

void rc_pair_run(struct rc_pair *p, uint64_t until)
{
	while (rc_pair_step(p, until))
		;
}

void rc_pair_inject(struct rc_pair *p, int to, const uint8_t *data, uint32_t len)
{
	rc_host_rx(p->side[to].host, p->now, data, len);
	rc_host_poll(p->side[to].host, p->now, 64);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rules for messages between two appliances, for both directions. */
#include <string.h>

#include "peer/proto_priv.h"
#include "wire/frame.h"
#include "wire/psn.h"

bool proto_name_ok(const char *name)
{
	size_t n = strnlen(name, PROTO_NAME);

	if (n == 0 || n == PROTO_NAME)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		/* The name goes to logs and terminals: no control character may be in it. Not
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

bool proto_hello_ok(const struct proto_hello *h)
{
	if (h->version == 0 || h->boot == 0 || h->nprefix > PROTO_PREFIXES ||
	    !proto_name_ok(h->name))
		return false;
	for (unsigned int i = 0; i < h->nprefix; i++)
		if (!prefix_ok(&h->prefix[i]))
			return false;
	return true;
}

bool proto_site_ok(const struct proto_site *t)
{
	if (t->nwanted > PROTO_PREFIXES)
		return false;
	for (unsigned int i = 0; i < t->nwanted; i++)
		if (!prefix_ok(&t->wanted[i]))
			return false;
	return true;
}

bool proto_probe_ok(const struct proto_probe *p)
{
	return p->size && (!p->refused || p->refused > p->carried);
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

static bool progress_ok(const struct report *r)
{
	if (r->room > PSN_MASK || r->una > PSN_MASK || r->una_msn > PSN_MASK ||
	    r->refusal_psn > PSN_MASK || !holes_ok(r))
		return false;
	if (r->credit > AETH_ACK_UNLIMITED && r->credit != 0xff)
		return false;
	/* Any NAK but the one that asks to go back: responders may send reserved codes. */
	if (r->refusal && (!aeth_is_nak(r->refusal) || r->refusal == AETH_NAK_SEQ))
		return false;
	if (r->nagain > REPORT_AGAIN || (r->differs && !r->announced))
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

/* As many PSNs for each READ, and no READ without any. */
static bool reads_ok(const struct read_series *s)
{
	uint32_t span = (s->end - s->psn) & PSN_MASK;

	return s->psn <= PSN_MASK && s->end <= PSN_MASK && s->length && s->count &&
	       s->count <= REPORT_READS && span && span < SPAN_MAX && span % s->count == 0;
}

bool proto_report_ok(const struct report *r)
{
	switch (r->type) {
	case REPORT_ORDER:
		return order_ok(r);
	case REPORT_AHEAD:
		return reads_ok(&r->reads);
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
	default:
		return false;
	}
}

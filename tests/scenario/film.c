// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/scenario/film.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/icrc.h"
#include "wire/psn.h"

/* A loop without end must end the run, not hang it. */
#define WATCHDOG_S 240

/* ---- films ---- */

void film_insert(struct film *f, uint32_t at, uint64_t t, const uint8_t *data, uint32_t len)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 1024;
		f->shot = realloc(f->shot, f->cap * sizeof(*f->shot));
	}
	memmove(&f->shot[at + 1], &f->shot[at], (f->n - at) * sizeof(*f->shot));
	f->shot[at] = (struct shot){.t = t, .len = len, .data = malloc(len)};
	memcpy(f->shot[at].data, data, len);
	f->n++;
}

void film_cut(struct film *f, uint32_t at)
{
	free(f->shot[at].data);
	f->n--;
	memmove(&f->shot[at], &f->shot[at + 1], (f->n - at) * sizeof(*f->shot));
}

static void record(struct world *w, int place, const uint8_t *data, uint32_t len)
{
	struct film *f = &((struct recorded *)w->user)->film[place];

	film_insert(f, f->n, w->now, data, len);
}

void film_free(struct recorded *r)
{
	for (int p = 0; p < PLACES; p++) {
		for (uint32_t i = 0; i < r->film[p].n; i++)
			free(r->film[p].shot[i].data);
		free(r->film[p].shot);
	}
	memset(r, 0, sizeof(*r));
}

void film_write(const struct film *f, const char *to)
{
	pcap_t *p =
		pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *d = pcap_dump_open(p, to);

	assert_non_null(d);
	for (uint32_t i = 0; i < f->n; i++) {
		struct pcap_pkthdr h = {.caplen = f->shot[i].len, .len = f->shot[i].len};

		h.ts.tv_sec = (time_t)(f->shot[i].t / SEC);
		h.ts.tv_usec = (suseconds_t)(f->shot[i].t % SEC);
		pcap_dump((u_char *)d, &h, f->shot[i].data);
	}
	pcap_dump_close(d);
	pcap_close(p);
}

/* ---- worlds ---- */

/* LANs are captured at the host's end, the WAN at either appliance's. */
static void on_enter(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	if (link < 2)
		record(w, lan_of(link), data, len);
	else if (link >= 4)
		record(w, wan_of(link & 1), data, len);
}

static bool on_leave(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	if (link == WORLD_LAN_OUT(0) || link == WORLD_LAN_OUT(1))
		record(w, lan_of(link & 1), data, len);
	else if (link >= 4)
		record(w, wan_of(!(link & 1)), data, len);
	return true;
}

void film_world(const struct film_kind *k, uint64_t seed, struct recorded *r)
{
	struct world_config c;
	struct world *w;

	memset(r, 0, sizeof(*r));
	world_defaults(&c);
	c.seed = seed;
	c.wan.delay_ns = 3 * MS;
	c.wan.loss = k->loss;
	c.wan.reorder = k->reorder;
	c.wan.reorder_ns = 1 * MS;
	c.wan.dup = k->dup;
	c.wan.corrupt = k->corrupt;
	c.lan.loss = k->lan_loss;
	c.policy = k->policy;
	c.unsealed = k->unchecked;
	c.single = k->single;
	c.appliance[0] = !k->bare;
	c.appliance[1] = !k->bare && !k->single;
	if (k->pool)
		c.engine.pool_bytes = k->pool;
	w = world_create(&c);
	alarm(WATCHDOG_S);
	w->user = r;
	w->tap = on_enter;
	w->filter = on_leave;
	for (uint32_t i = 0; i < (k->qps ? k->qps : 1); i++) {
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work work = {.ops = k->ops,
				    .max = k->max ? k->max : 12000,
				    .left = (k->messages ? k->messages : 400) /
					    (k->qps ? k->qps : 1),
				    .outstanding = 8};

		scenario_qp(&qc, i, k->mtu ? k->mtu : 1024,
			    k->permissive ? RC_PERMISSIVE : RC_STRICT);
		if (k->psn)
			qc.sq_psn = k->psn + i;
		qc.rnr_p = k->rnr;
		q = world_connect(w, &qc, k->permissive ? RC_PERMISSIVE : RC_STRICT);
		for (int side = 0; side < 2; side++)
			if (k->both_ways || side == k->side)
				world_work(q, side, &work);
	}
	scenario_finish(w, 600 * SEC);
	/* what is still on its way arrives */
	world_run(w, w->now + 100 * MS);
	world_destroy(w);
	alarm(0);
}

/* ---- frames ---- */

struct frame shot_view(const struct shot *x)
{
	struct frame f;

	assert_int_equal(frame_parse(x->data, x->len, &f), FRAME_OK);
	return f;
}

static bool is(const struct shot *x, enum shot_kind what)
{
	struct frame f = shot_view(x);

	switch (what) {
	case DATA:
		return (f.op->flags & OPF_REQUEST) && !(f.op->flags & OPF_ANSWERED) &&
		       f.payload_len > 8;
	case MIDDLE:
		return f.opcode == OP_WRITE_MIDDLE;
	case READ:
		return f.opcode == OP_READ_REQUEST;
	case ACK:
		return f.opcode == OP_ACK && aeth_is_ack(frame_aeth_syndrome(&f));
	default:
		return f.opcode == OP_READ_RESPONSE_MIDDLE;
	}
}

uint32_t film_find(const struct film *f, uint32_t from, enum shot_kind what)
{
	for (; from < f->n; from++)
		if (is(&f->shot[from], what))
			return from;
	fail_msg("no such frame");
	return 0;
}

void shot_renumber(struct shot *x, uint32_t psn, uint32_t msn, uint32_t syndrome)
{
	struct frame f = shot_view(x);

	if (psn != KEEP_IT)
		put_be24(x->data + f.bth + 9, psn & PSN_MASK);
	if (msn != KEEP_IT)
		put_be24(x->data + f.aeth + 1, msn & PSN_MASK);
	if (syndrome != KEEP_IT)
		x->data[f.aeth] = (uint8_t)syndrome;
	f = shot_view(x);
	icrc_fill(x->data, &f);
}

void shot_alter(struct shot *x)
{
	struct frame f = shot_view(x);

	x->data[f.payload + 3] ^= 0x10;
	icrc_fill(x->data, &f);
}

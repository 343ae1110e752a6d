// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The engine's calls, and what must hold around them, as somebody sees it who knows all inputs
 * (fuzz_engine.c). */
#include <xxhash.h>

#include "peer/proto.h"
#include "tests/lab/model/sealed.h"
#include "tests/fuzz/engine_fuzz.h"
#include "wire/icrc.h"

/* ---- a set of hashes ---- */

static uint64_t *slot(uint64_t h)
{
	uint64_t *s = &z.seen[h % SEEN];

	h |= 1; /* 0 is free */
	while (*s && *s != h)
		s = s + 1 == z.seen + SEEN ? z.seen : s + 1;
	return s;
}

static void remember(uint64_t h)
{
	*slot(h) = h | 1;
}

static bool known(uint64_t h)
{
	return *slot(h) != 0;
}

/* Of what a packet brings: its opcode's kind and its payload, whatever its numbers are. */
static uint64_t hash_content(const struct frame *f)
{
	uint16_t kind =
		f->op->flags & (OPF_SEND | OPF_WRITE | OPF_READ | OPF_ATOMIC | OPF_RESPONSE);

	return XXH3_64bits_withSeed(f->data + f->payload, f->payload_len, 0x10000u + kind);
}

static uint64_t hash_psn(uint32_t flow, uint32_t psn)
{
	return XXH3_64bits_withSeed(&psn, sizeof(psn), flow + 1);
}

/* Whether a host has sent the request @f. The engine may ask for an ACK where the host has not. */
static bool said(const struct frame *f)
{
	uint8_t buf[FRAME_MAX], b;

	if (known(XXH3_64bits(f->data, f->len)))
		return true;
	if (!f->ackreq)
		return false;
	memcpy(buf, f->data, f->len);
	b = buf[f->bth + 8u] & 0x7f;
	icrc_patch(buf, f, f->bth + 8u, 1, &b);
	return known(XXH3_64bits(buf, f->len));
}

/* ---- what the engine says ---- */

static void check_success_ack(const struct frame *f, enum engine_port port)
{
	struct flow_key k = {.src = f->src, .dst = f->dst, .dqpn = f->dqpn, .vlan = f->vlan};
	struct flow *answers = watched_flow(&k), *fl;
	const struct lane *l;
	uint32_t i;

	NEED(answers);
	fl = flow_partner(z.e, answers);
	NEED(fl && fl->side == (uint8_t)port);
	l = &fl->lane;
	NEED(lane_keeps(l) && l->state != LANE_FAULT);
	NEED(!psn_before(l->near.frontier.psn.v, psn_add(f->psn, 1)));
	i = flow_index(z.e, fl);
	if (reads_ahead())
		return; /* other numbers */
	NEED(known(hash_psn(i, f->psn)));
	/* it speaks for all before the handover as well */
	NEED(z.has_top[i] && !psn_before(z.top[i], l->start.v));
}

/* Somebody has just said that all requests of flow @i before @psn are done. */
static void say_done(uint32_t i, uint32_t psn, bool ack)
{
	/* an ACK to a lane that is only watched may begin anew elsewhere */
	bool anew = ack && !lane_keeps(&z.e->flows[i].lane);

	z.evidence_flow = i;
	z.evidence = psn;
	remember(hash_psn(i, psn_sub(psn, 1)));
	if (anew || !z.has_top[i] || psn_after(psn, z.top[i]))
		z.top[i] = psn;
	z.has_top[i] = true;
}

static int on_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len, uint32_t seal)
{
	struct frame f;
	struct kept *k;

	(void)ctx, (void)seal;
	NEED(port < PORTS && len);
	if (z.full[port])
		return -11;
	if (z.cur && len <= z.cur_len && memcmp(data, z.cur, len) == 0) {
		NEED(port != z.cur_port);
	} else {
		NEED(len <= FRAME_MAX);
		NEED(frame_parse(data, len, &f) == FRAME_OK && f.len == len && icrc_ok(&f));
		if (f.opcode == OP_ACK) {
			if (aeth_is_ack(frame_aeth_syndrome(&f)))
				check_success_ack(&f, port);
		} else if (f.opcode == OP_SEND_MIDDLE && z.faults) {
			; /* may be the request that breaks an idle queue pair */
		} else if (f.opcode == OP_READ_REQUEST) {
			; /* answers that were lost are asked for again, or READs ahead */
		} else if ((f.op->flags & OPF_RESPONSE) || reads_ahead()) {
			NEED(known(hash_content(&f))); /* other numbers, the same data */
		} else if (f.opcode != OP_CNP && f.opcode != OP_UD_SEND_ONLY) {
			NEED(said(&f));
		}
	}
	if (len <= sizeof(k->data)) {
		k = &z.out[z.nout++ % KEPT];
		k->port = port;
		k->len = len;
		memcpy(k->data, data, len);
	}
	return 0;
}

static void on_report(void *ctx, unsigned int peer, const struct report *r)
{
	uint8_t buf[PROTO_REPORT_MAX];

	(void)ctx;
	NEED(peer == 0 && !(z.setup[0] & SETUP_SINGLE));
	/* an answer to a stale report knows no key, and is for an engine of the same kind */
	if (r->type != REPORT_CLOSE || r->key.dqpn)
		NEED(proto_put_report(buf, sizeof(buf), r) > 0);
}

static void on_event(void *ctx, const struct engine_event *ev)
{
	(void)ctx;
	NEED(ev->conn < z.e->nflows && ev->reason < REASONS);
	NEED(ev->type != EVENT_INVARIANT);
	if (ev->requests_from_lan && ev->type == EVENT_FAULT)
		z.fault[ev->conn] = z.faults = true;
	if (ev->requests_from_lan && ev->type == EVENT_CLOSED)
		z.closed[ev->conn] = true;
}

const struct engine_sink watch_sink = {.tx = on_tx, .report = on_report, .event = on_event};

/* ---- calls, with what must hold around them ---- */

void watch_before(void)
{
	z.evidence_flow = FLOW_NONE;
	memset(z.fault, 0, sizeof(z.fault));
	memset(z.closed, 0, sizeof(z.closed));
	for (uint32_t i = 0; i < z.e->nflows; i++) {
		const struct flow *fl = &z.e->flows[i];
		struct before *b = &z.before[i];

		b->held = fl->used && lane_keeps(&fl->lane) && fl->lane.state != LANE_FAULT;
		b->opened = fl->lane.opened;
		b->una = fl->lane.una.psn.v;
		b->frontier = fl->lane.near.frontier.psn.v;
		/* answers of before are evidence too: they are used when the peer begins anew */
		b->proven = b->held && reads_of(z.e, &fl->lane);
		b->proof = b->proven ? reads_of(z.e, &fl->lane)->map.proof.v : 0;
		z.has_top[i] &= fl->used;
	}
}

/* Alone, an answer to a READ or ATOMIC that came before those to others counts when these have
 * come, too. */
static bool answered_before(uint32_t i)
{
	const struct lane *l = &z.e->flows[i].lane;

	return l->role == ROLE_SINGLE && z.has_top[i] && !psn_before(z.top[i], l->una.psn.v);
}

static void after_lane(uint32_t i)
{
	const struct flow *fl = &z.e->flows[i];
	const struct lane *l = &fl->lane;
	const struct before *b = &z.before[i];
	bool evidence = z.evidence_flow == i;
	uint32_t said = z.evidence;

	if (reads_ahead() && evidence)
		said = psn_add(b->frontier, 1u << 22); /* in numbers that are not ours to know */
	if (!z.closed[i] && fl->used && lane_keeps(l) && l->opened == b->opened) {
		if (l->state == LANE_FAULT) {
			NEED(z.fault[i]);
			return;
		}
		NEED(!psn_before(l->una.psn.v, b->una) &&
		     !psn_before(l->near.frontier.psn.v, b->frontier));
		if (l->una.psn.v != b->una)
			NEED((evidence && !psn_before(said, l->una.psn.v)) ||
			     (b->proven && !psn_before(b->proof, l->una.psn.v)) ||
			     answered_before(i));
		return;
	}
	NEED(z.closed[i]);
	if (psn_before(b->una, b->frontier) && !z.fault[i])
		NEED(evidence && !psn_before(said, b->frontier));
}

void watch_after(void)
{
	/* it looks at every packet held */
	const char *bad = z.calls++ % 3 ? NULL : engine_check(z.e);

	if (bad) {
		fprintf(stderr, "invariant: %s\n", bad);
		abort();
	}
	for (uint32_t i = 0; i < z.e->nflows; i++) {
		/* its answers travel in the other flow */
		NEED(!z.e->flows[i].used || z.e->flows[i].lane.role == ROLE_NONE ||
		     flow_partner(z.e, &z.e->flows[i]));
		if (z.before[i].held)
			after_lane(i);
	}
}

void watch_tick(void)
{
	watch_before();
	z.cur = NULL;
	engine_tick(z.e, z.now);
	watch_after();
}

static void note_frame(const uint8_t *data, uint32_t len)
{
	struct flow_key k;
	struct flow *fl, *req;
	struct frame f;
	bool nak;

	if (frame_parse(data, len, &f) != FRAME_OK || !icrc_ok(&f) || !(f.op->flags & OPF_RC))
		return;
	remember(XXH3_64bits(f.data, f.len));
	remember(hash_content(&f));
	k = (struct flow_key){.src = f.src, .dst = f.dst, .dqpn = f.dqpn, .vlan = f.vlan};
	fl = watched_flow(&k);
	req = fl ? flow_partner(z.e, fl) : NULL;
	if (!req || !(f.op->flags & OPF_RESPONSE))
		return;
	/* a NAK speaks for those before it */
	nak = f.opcode == OP_ACK && !aeth_is_ack(frame_aeth_syndrome(&f));
	say_done(flow_index(z.e, req), nak ? f.psn : psn_add(f.psn, 1), !nak);
}

/* A request that has arrived, under the number of its flow, which it may have made. */
static void note_request(const uint8_t *data, uint32_t len)
{
	struct flow_key k;
	struct flow *fl;
	struct frame f;

	if (frame_parse(data, len, &f) != FRAME_OK || !icrc_ok(&f) || !(f.op->flags & OPF_REQUEST))
		return;
	k = (struct flow_key){.src = f.src, .dst = f.dst, .dqpn = f.dqpn, .vlan = f.vlan};
	fl = watched_flow(&k);
	if (fl)
		remember(hash_psn(flow_index(z.e, fl), f.psn));
}

/* What comes over the WAN the peer has sealed: most of it. */
static void seal_it(enum engine_port port, uint8_t *data, uint32_t len)
{
	struct frame f;

	if (port == PORT_WAN && frame_parse(data, len, &f) == FRAME_OK && data[f.icrc] % 4)
		sealed_by_peer(z.e, data, len, false, false);
}

void watch_feed(enum engine_port port, const uint8_t *data, uint32_t len)
{
	uint8_t *d;

	if (z.inputs++ >= INPUTS_MAX || !len || len > FRAME_MAX + 64)
		return;
	d = block_of(data, len);
	if (data < z.in[0].data || data >= (uint8_t *)(z.in + KEPT)) {
		struct kept *k = &z.in[z.nin++ % KEPT];

		k->port = port;
		k->len = len;
		memcpy(k->data, data, len);
	}
	watch_before();
	note_frame(d, len);
	seal_it(port, d, len);
	z.cur = d;
	z.cur_len = len;
	z.cur_port = port;
	engine_rx(z.e, port, d, len, z.now);
	z.cur = NULL;
	note_request(d, len);
	watch_after();
	note_frame(d, len); /* it may have made the pair known */
	free(d);
}

void watch_report(const struct report *r)
{
	uint8_t buf[PROTO_REPORT_MAX];
	struct proto_message m;
	struct flow *fl = r->lane < z.e->nflows ? &z.e->flows[r->lane] : NULL;
	size_t pos = 0;
	int n;

	if (z.inputs++ >= INPUTS_MAX || (z.setup[0] & SETUP_SINGLE))
		return;
	n = proto_put_report(buf, sizeof(buf), r);
	if (n < 0)
		return; /* the peer layer lets nothing of the kind through */
	NEED(proto_next(buf, (size_t)n, &pos, &m) == PROTO_OK);
	watch_before();
	if (m.report.type == REPORT_PROGRESS && fl && fl->used &&
	    !psn_after(m.report.una, m.report.cum)) /* what has not arrived is not done */
		say_done(m.report.lane, m.report.una, true);
	engine_rx_report(z.e, 0, &m.report, z.now);
	watch_after();
}

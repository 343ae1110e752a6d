// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One engine as a state machine, fed with frames, reports, peer events, time and rules (engine_record.h).
 * Most records speak about a connection and near the marks of its lanes, so that PSNs, QPNs, generations and
 * ICRCs are mostly such that something comes of them; raw bytes are there, too.
 *
 * After every few calls engine_check() reads the invariants off the state. What it cannot see is watched from
 * outside, for all that a host, a peer or time may do:
 *
 *  - what is sent is what is received, passed or from the pool, byte for byte and with a right ICRC (answers
 *    to READs, and all where READs are asked for ahead, by their payload: their numbers may be others);
 *    besides it there are only packets that the engine originates (ACKs and NAKs, mostly)
 *  - a success ACK never leaves for a lane that is not held or at fault, never beyond the front, never for a
 *    packet that did not arrive whole, and not before all from before the handover is truly acknowledged
 *  - the true-ACK mark moves only if a response or a report has just said so, never by time or requests,
 *    and neither it nor the front goes back
 *  - a lane whose requester was told more than is truly acknowledged does not end without a fault
 *  - every report that leaves is one that the peer protocol can carry
 *  - the engine does not ask for a tick again and again at the same time
 *
 * A mutator of its own keeps records whole.
 */
#include <xxhash.h>

#include "engine/answers.h"
#include "peer/proto.h"
#include "tests/fuzz/engine_record.h"
#include "tests/fuzz/input.h"
#include "tests/lab/model/cm_emit.h"
#include "wire/bytes.h"

#define MS	   1000000ull
#define CONNS	   4
#define FLOWS	   12 /* capacity for few connections only, so that the table gets full */
#define SEEN	   16384
#define KEPT	   16
#define INPUTS_MAX 3000
#define CALLS_MAX  6000

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

struct kept {
	enum engine_port port;
	uint32_t len;
	uint8_t data[FRAME_MAX + 64];
};

/* A lane in custody before a call. */
struct before {
	bool held;
	uint8_t state;
	uint64_t opened;
	uint32_t tack, front, proof;
	bool proven;
};

static struct fuzz {
	struct engine *e;
	uint64_t now;
	uint8_t setup[SETUP];
	struct rc_header header[CONNS][2];
	struct template tmpl[CONNS][2];
	/* per connection and host: the next PSN of its requests, messages so far */
	uint32_t next[CONNS][2], msn[CONNS][2];
	uint32_t peer_gen[CONNS], report_seq;
	unsigned int inputs, calls;
	bool full[PORTS];
	/* the frame of the present call */
	const uint8_t *cur;
	uint32_t cur_len;
	enum engine_port cur_port;
	/* hashes of frames that arrived with a right ICRC, and of (flow, PSN) */
	uint64_t seen[SEEN];
	struct kept in[KEPT], out[KEPT];
	unsigned int nin, nout;
	struct before before[FLOWS];
	bool fault[FLOWS], closed[FLOWS], faults;
	uint32_t evidence_flow, evidence;
	/* per flow, how far its requests were truly acknowledged */
	uint32_t top[FLOWS];
	bool has_top[FLOWS];
} z;

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
	uint16_t kind = f->op->flags & (OPF_SEND | OPF_WRITE | OPF_READ | OPF_ATOMIC | OPF_RESPONSE);

	return XXH3_64bits_withSeed(f->data + f->payload, f->payload_len, 0x10000u + kind);
}

static uint64_t hash_psn(uint32_t flow, uint32_t psn)
{
	return XXH3_64bits_withSeed(&psn, sizeof(psn), flow + 1);
}

/* ---- who is who ---- */

static void host_addr(struct ip_addr *a, unsigned int conn, unsigned int host)
{
	uint8_t v4[4] = {10, (uint8_t)(host + 1), 0, 1};

	*a = ip_addr_v4(v4);
	if (conn == 2)
		*a = (struct ip_addr){.b = {[0] = 0xfd, [7] = (uint8_t)(host + 1), [15] = 1}};
}

static uint32_t host_qpn(unsigned int conn, unsigned int host)
{
	return (host ? 0x22u : 0x11u) + 0x100 * (conn & 1);
}

static uint16_t conn_vlan(unsigned int conn)
{
	return conn == 3 ? 5 : FRAME_VLAN_NONE;
}

/* Of the requests of @host. */
static void flow_key(struct flow_key *k, unsigned int conn, unsigned int host)
{
	memset(k, 0, sizeof(*k));
	host_addr(&k->src, conn, host);
	host_addr(&k->dst, conn, !host);
	k->dqpn = host_qpn(conn, !host);
	k->vlan = conn_vlan(conn);
}

static struct flow *find(const struct flow_key *k)
{
	uint32_t i = flow_table_find(z.e->table, k, z.e->flows, sizeof(struct flow));

	return i == FLOW_NONE ? NULL : &z.e->flows[i];
}

static struct flow *flow_of(unsigned int conn, unsigned int host)
{
	struct flow_key k;

	flow_key(&k, conn, host);
	return find(&k);
}

/* A mark of the lane, or where its requester would go on. */
static uint32_t mark_of(unsigned int conn, unsigned int host, uint8_t which, uint32_t *msn)
{
	const struct flow *fl = flow_of(conn, host);
	const struct lane *l = fl ? &fl->lane : NULL;
	struct mark m = {.psn = z.next[conn][host], .msn = z.msn[conn][host] & PSN_MASK};

	if (l && l->role != ROLE_NONE)
		switch (which % 9) {
		case 1:
			m = l->accept;
			break;
		case 2:
			m = l->tack;
			break;
		case 3:
			m = l->sent;
			break;
		case 4:
			m = l->front;
			break;
		case 5:
			m.psn = l->end;
			break;
		case 6:
			m.psn = l->high;
			break;
		case 7:
			m.psn = l->start;
			break;
		case 8:
			m.psn = l->told;
			break;
		}
	*msn = m.msn;
	return m.psn & PSN_MASK;
}

/* ---- what the engine says ---- */

/* Then PSNs differ between host and responder, and packets are given others (shift.c). */
static bool reads_ahead(void)
{
	return z.setup[1] & SETUP_READ_AHEAD;
}

static void check_success_ack(const struct frame *f, enum engine_port port)
{
	struct flow_key k = {.src = f->src, .dst = f->dst, .dqpn = f->dqpn, .vlan = f->vlan};
	struct flow *answers = find(&k), *fl;
	const struct lane *l;
	uint32_t i;

	NEED(answers);
	fl = flow_partner(z.e, answers);
	NEED(fl && fl->side == (uint8_t)port);
	l = &fl->lane;
	NEED(lane_keeps(l) && l->state != LANE_FAULT);
	NEED(!psn_before(l->front.psn, psn_add(f->psn, 1)));
	i = flow_index(z.e, fl);
	if (reads_ahead())
		return; /* other numbers */
	NEED(known(hash_psn(i, f->psn)));
	/* it speaks for all before the handover as well */
	NEED(z.has_top[i] && !psn_before(z.top[i], l->start));
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

static int on_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len)
{
	struct frame f;
	struct kept *k;

	(void)ctx;
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
			NEED(known(XXH3_64bits(data, len)));
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
	if (ev->requests_from_lan && ev->type == EVENT_FAULT)
		z.fault[ev->conn] = z.faults = true;
	if (ev->requests_from_lan && ev->type == EVENT_CLOSED)
		z.closed[ev->conn] = true;
}

/* ---- calls, with what must hold around them ---- */

static void before(void)
{
	z.evidence_flow = FLOW_NONE;
	memset(z.fault, 0, sizeof(z.fault));
	memset(z.closed, 0, sizeof(z.closed));
	for (uint32_t i = 0; i < z.e->nflows; i++) {
		const struct flow *fl = &z.e->flows[i];
		struct before *b = &z.before[i];

		b->held = fl->used && lane_keeps(&fl->lane) && fl->lane.state != LANE_FAULT;
		b->opened = fl->lane.opened;
		b->tack = fl->lane.tack.psn;
		b->front = fl->lane.front.psn;
		/* answers of before are evidence too: they are used when the peer begins anew */
		b->proven = b->held && reads_of(z.e, &fl->lane);
		b->proof = b->proven ? reads_of(z.e, &fl->lane)->proof : 0;
		z.has_top[i] &= fl->used;
	}
}

static void after_lane(uint32_t i)
{
	const struct flow *fl = &z.e->flows[i];
	const struct lane *l = &fl->lane;
	const struct before *b = &z.before[i];
	bool evidence = z.evidence_flow == i;
	uint32_t said = z.evidence;

	if (reads_ahead() && evidence)
		said = psn_add(b->front, 1u << 22); /* in numbers that are not ours to know */
	if (!z.closed[i] && fl->used && lane_keeps(l) && l->opened == b->opened) {
		if (l->state == LANE_FAULT) {
			NEED(z.fault[i]);
			return;
		}
		NEED(!psn_before(l->tack.psn, b->tack) && !psn_before(l->front.psn, b->front));
		if (l->tack.psn != b->tack)
			NEED((evidence && !psn_before(said, l->tack.psn)) ||
			     (b->proven && !psn_before(b->proof, l->tack.psn)));
		return;
	}
	NEED(z.closed[i]);
	if (psn_before(b->tack, b->front) && !z.fault[i])
		NEED(evidence && !psn_before(said, b->front));
}

static void after(void)
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

static void tick(void)
{
	before();
	z.cur = NULL;
	engine_tick(z.e, z.now);
	after();
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
	fl = find(&k);
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
	fl = find(&k);
	if (fl)
		remember(hash_psn(flow_index(z.e, fl), f.psn));
}

static void feed(enum engine_port port, const uint8_t *data, uint32_t len)
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
	before();
	note_frame(d, len);
	z.cur = d;
	z.cur_len = len;
	z.cur_port = port;
	engine_rx(z.e, port, d, len, z.now);
	z.cur = NULL;
	note_request(d, len);
	after();
	note_frame(d, len); /* it may have made the pair known */
	free(d);
}

static void feed_report(const struct report *r)
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
	before();
	if (m.report.type == REPORT_PROGRESS && fl && fl->used &&
	    !psn_after(m.report.tack, m.report.cum)) /* what has not arrived is not done */
		say_done(m.report.lane, m.report.tack, true);
	engine_rx_report(z.e, 0, &m.report, z.now);
	after();
}

/* ---- frames ---- */

static uint32_t build(uint8_t *out, unsigned int conn, unsigned int host, uint8_t opcode,
		      uint32_t psn, uint32_t len, uint32_t arg, uint8_t bits)
{
	static const uint8_t payload[PAYLOAD_MAX] = {0x61, 0x62, 0x63};
	struct build_spec s = {
		.t = &z.tmpl[conn][host],
		.opcode = opcode,
		.dqpn = host_qpn(conn, !host),
		.psn = psn & PSN_MASK,
		.ackreq = bits & FRAME_ACKREQ,
		.solicited = bits & FRAME_SOLICITED,
		.va = 0x10000,
		.rkey = 0x777,
		.length = arg,
		.syndrome = (uint8_t)(arg >> 24),
		.msn = arg & PSN_MASK,
		.immdt = arg,
		.payload = payload,
		.payload_len = len > PAYLOAD_MAX ? PAYLOAD_MAX : len,
	};
	uint32_t n;

	if (!(opcode_info(opcode)->flags & OPF_PAYLOAD))
		s.payload_len = 0;
	n = build_packet(out, &s);
	if (bits & FRAME_FECN) /* masked in the ICRC */
		out[s.t->len - BTH_LEN + 4] |= 0x80;
	if (bits & FRAME_DAMAGED)
		out[n - 1] ^= 0x40;
	if (bits & FRAME_PADDED) {
		memset(out + n, 0, 6);
		n += 6;
	}
	return n;
}

static void send(unsigned int conn, unsigned int host, uint8_t opcode, uint32_t psn, uint32_t len,
		 uint32_t arg, uint8_t bits)
{
	uint8_t out[FRAME_MAX + 64];
	uint32_t n = build(out, conn, host, opcode, psn, len, arg, bits);

	feed((enum engine_port)(host ^ !!(bits & FRAME_ASIDE)), out, n);
}

static uint32_t mtu_of(unsigned int conn, unsigned int host)
{
	const struct flow *fl = flow_of(conn, host);

	return fl && fl->path_mtu ? fl->path_mtu : 256;
}

static uint32_t length_of(uint8_t b, uint32_t mtu)
{
	switch (b & 7) {
	case 0:
		return mtu;
	case 1:
		return 0;
	case 2:
		return mtu + 4;
	case 3:
		return mtu - 1;
	case 4:
		return mtu * (b >> 3);
	default:
		return b;
	}
}

static const uint8_t rc_opcodes[] = {
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d,
	0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x1c, 0x1d, 0x81, 0x15, 0x2a,
};

static void rec_near_frame(struct input *in, unsigned int conn, unsigned int host)
{
	uint8_t mark = next8(in), op = rc_opcodes[next8(in) % sizeof(rc_opcodes)];
	int8_t off = (int8_t)next8(in);
	uint8_t length = next8(in), x = next8(in), y = next8(in), bits = next8(in);
	bool response = opcode_info(op)->flags & OPF_RESPONSE;
	uint32_t msn, psn = mark_of(conn, host ^ response, mark & 15, &msn), arg;
	uint32_t mtu = mtu_of(conn, host);

	psn = psn_add(psn, (uint32_t)off * (mark & 0x80 ? 0x10000 : mark & 0x40 ? 64 : 1));
	if (response)
		arg = (uint32_t)x << 24 | psn_add(msn, (uint32_t)(int8_t)y);
	else
		arg = y & 1 ? (uint32_t)x << (y & 0x1e) : length_of(x, mtu);
	send(conn, host, op, psn, length_of(length, mtu), arg, bits);
}

static void rec_frame(struct input *in, unsigned int conn, unsigned int host)
{
	uint8_t bits = next8(in), op = next8(in);
	uint32_t psn = next24(in), len = next16(in), arg = next32(in);

	send(conn, host, op, psn, len, arg, bits);
}

static void requests(unsigned int conn, unsigned int host, unsigned int n, uint8_t kind, uint8_t length)
{
	uint32_t *psn = &z.next[conn][host], *msn = &z.msn[conn][host];
	uint32_t mtu = mtu_of(conn, host), last = length % (mtu + 1);
	uint8_t bits = kind & 0x80 ? FRAME_ACKREQ : 0;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t parts = 1 + (kind >> 4 & 7);

		if ((kind & 7) >= 4) { /* READ of that many packets, CmpSwap, FetchAdd, ATOMIC WRITE */
			static const uint8_t op[] = {OP_READ_REQUEST, OP_CMP_SWAP, OP_FETCH_ADD,
						     OP_ATOMIC_WRITE};
			bool read = (kind & 7) == 4;

			send(conn, host, op[kind & 3], *psn, 8, read ? parts * mtu : 8, FRAME_ACKREQ);
			*psn = psn_add(*psn, read ? parts : 1);
		} else {
			uint8_t base = kind & 1 ? OP_WRITE_FIRST : OP_SEND_FIRST;
			uint32_t total = (parts - 1) * mtu + last;

			if (parts == 1)
				send(conn, host, base + 4, *psn, last, total, FRAME_ACKREQ);
			for (uint32_t j = 0; parts > 1 && j < parts; j++)
				send(conn, host, j == 0 ? base : j + 1 < parts ? base + 1 : base + 2,
				     psn_add(*psn, j), j + 1 < parts ? mtu : last, total,
				     j + 1 < parts ? bits : FRAME_ACKREQ);
			*psn = psn_add(*psn, parts);
		}
		*msn = psn_add(*msn, 1);
	}
}

static void ack(unsigned int conn, unsigned int host, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	send(conn, !host, OP_ACK, psn, 0, (uint32_t)syndrome << 24 | (msn & PSN_MASK), 0);
}

static void rec_ack(struct input *in, unsigned int conn, unsigned int host)
{
	static const uint8_t syndrome[] = {0x1f, 0x00, 0x05, 0x60, 0x61, 0x62, 0x63, 0x20,
					   0x21, 0x2e, 0x3f, 0x40, 0x64, 0x7f, 0x80, 0xff};
	uint32_t msn, psn = mark_of(conn, host, next8(in), &msn);

	psn = psn_add(psn, (uint32_t)(int8_t)next8(in) - 1);
	ack(conn, host, psn, syndrome[next8(in) & 15], msn + (uint32_t)(int8_t)next8(in));
}

/* Messages and their ACKs, until the pair is known. */
static void learn(unsigned int conn, unsigned int host, unsigned int n)
{
	uint32_t mtu = z.setup[0] & SETUP_MTU ? 0 : 256;

	for (unsigned int i = 0; i < n; i++) {
		requests(conn, host, 1, mtu && !i ? 0x90 : 0, 8);
		ack(conn, host, psn_sub(z.next[conn][host], 1), 0x1f, z.msn[conn][host]);
		tick();
	}
}

static void rec_again(struct input *in)
{
	const struct kept *k = &z.in[next8(in) % KEPT];
	uint8_t out[sizeof(k->data)], change = next8(in);
	uint32_t at = next16(in), len = k->len;

	memcpy(out, k->data, k->len);
	if (!len)
		return;
	switch (change & 7) {
	case 1:
		out[at % len] ^= (uint8_t)(1u << (change >> 5));
		break;
	case 2:
		len = at % len;
		break;
	case 3: { /* other bytes under the same numbers, and an ICRC that fits them */
		struct frame f;

		out[at % len] ^= change;
		if (frame_parse(out, len, &f) == FRAME_OK)
			icrc_fill(out, &f);
		break;
	}
	default: /* unchanged */
		break;
	}
	if (k->data == z.in[0].data + 0 && !z.nin)
		return;
	feed((enum engine_port)(k->port ^ !!(change & 0x10)), out, len);
}

static void rec_cm(struct input *in, unsigned int conn, unsigned int host)
{
	uint8_t out[CM_FRAME_MAX], type = next8(in), bits = next8(in), arg = next8(in);
	struct cm c = {.type = (enum cm_type)(CM_REQ + type % 7),
		       .transaction_id = 1,
		       .local_id = 0x100 + conn * 2 + host + 0x10u * (bits & 3),
		       .lqpn = host_qpn(conn, host),
		       .rqpn = host_qpn(conn, !host),
		       .starting_psn = psn_add(z.next[conn][!host], (uint32_t)(int8_t)arg),
		       .responder_resources = 16,
		       .initiator_depth = 16,
		       .rnr_retry = 7,
		       .path_mtu = 256u << (bits >> 2) % 5,
		       .retry_count = 7,
		       .ack_timeout = 14,
		       .rc = !(bits & 0x80)};
	struct ip_addr a[2];

	if (c.type != CM_REQ)
		c.remote_id = 0x100 + conn * 2 + !host + 0x10u * (bits & 3);
	host_addr(&a[0], conn, host);
	host_addr(&a[1], conn, !host);
	feed((enum engine_port)host, out,
	     cm_emit(out, &z.header[conn][host], &a[0], &a[1], &c, z.inputs));
}

/* ---- reports ---- */

#define PEER_LANE(conn) (100 + (conn))

static void send_open(unsigned int conn, bool fresh, bool resume, int8_t off)
{
	struct report r = {.type = REPORT_OPEN,
			   .lane = PEER_LANE(conn),
			   .lqpn = host_qpn(conn, 1),
			   .start_psn = psn_add(z.next[conn][1], (uint32_t)off),
			   .start_msn = z.msn[conn][1],
			   .path_mtu = mtu_of(conn, 1),
			   .resume = resume};

	z.peer_gen[conn] += fresh;
	r.gen = z.peer_gen[conn];
	flow_key(&r.key, conn, 1);
	feed_report(&r);
}

/* As the peer to which lane @fl of ours belongs. */
static void own_report(struct report *r, const struct flow *fl)
{
	r->lane = fl ? flow_index(z.e, fl) : 0;
	r->gen = fl ? fl->lane.gen : 0;
}

static void rec_report(struct input *in, unsigned int conn)
{
	uint8_t type = next8(in), bits = next8(in);
	const struct flow *fl = flow_of(conn, 0);
	uint32_t msn, tack_msn, i, room;
	struct report r = {.type = (uint8_t)(1 + type % 6), .credit = 0x1f};
	unsigned int host = r.type == REPORT_ANSWERS;
	uint8_t x;

	r.cum = mark_of(conn, host, next8(in), &msn);
	r.cum = psn_add(r.cum, (uint32_t)(int8_t)next8(in));
	r.tack = mark_of(conn, host, next8(in), &tack_msn);
	r.tack = psn_add(r.tack, (uint32_t)(int8_t)next8(in));
	r.hi = mark_of(conn, host, next8(in), &msn);
	r.hi = psn_add(r.hi, (uint32_t)(int8_t)next8(in));
	room = next8(in);
	r.tack_msn = psn_add(tack_msn, (uint32_t)(int8_t)next8(in));
	x = next8(in);
	if (r.type == REPORT_OPEN) {
		send_open(conn, bits & 1, bits & 2, (int8_t)x);
		return;
	}
	own_report(&r, fl);
	r.gen += bits & 0x80 ? x : 0;
	r.reason = r.type == REPORT_PROGRESS && !(bits & 8) ? 0 : x % REASONS;
	if (r.type == REPORT_CLOSE) {
		flow_key(&r.key, conn, bits & 1);
		r.by_opener = bits & 1;
		if (r.by_opener) {
			r.lane = PEER_LANE(conn);
			r.gen = z.peer_gen[conn];
		}
	}
	if (r.type == REPORT_ANSWERS) {
		flow_key(&r.key, conn, 1);
		r.lane = PEER_LANE(conn);
		r.gen = z.peer_gen[conn];
		r.latest = r.tack;
		r.depth = x;
	}
	if (psn_before(r.cum, r.tack) && (bits & 2))
		r.tack = r.cum;
	if (psn_before(r.hi, r.cum))
		r.hi = r.cum;
	r.room = psn_add(r.cum, room * (bits & 4 ? 64 : 1));
	r.tack_ackable = bits & 0x10;
	r.seq = bits & 0x20 ? x : ++z.report_seq;
	if (bits & 0x40) {
		r.refusal = 0x61 + x % 3;
		r.refusal_psn = r.cum;
	}
	/* every other packet is missing */
	if (bits & 1)
		for (i = 0; i < room && r.nholes < REPORT_HOLES && i * 2 < psn_diff(r.hi, r.cum) + 0u; i++)
			r.hole[r.nholes++] =
				(struct psn_range){psn_add(r.cum, i * 2), psn_add(r.cum, i * 2 + 1)};
	feed_report(&r);
}

static void rec_report_raw(struct input *in, unsigned int conn, unsigned int host)
{
	uint8_t bits = next8(in);
	size_t len = next16(in), pos = 0;
	const uint8_t *p = next_bytes(in, &len);
	struct proto_message m;
	enum proto_verdict v;

	while ((v = proto_next(p, len, &pos, &m)) != PROTO_END && v != PROTO_BROKEN) {
		if (v != PROTO_OK || m.type < PROTO_LANE_OPEN)
			continue;
		if (bits & REPORT_OWN)
			own_report(&m.report, flow_of(conn, host));
		if (bits & REPORT_KEY) {
			flow_key(&m.report.key, conn, host);
			m.report.lqpn = host_qpn(conn, host);
		}
		feed_report(&m.report);
	}
}

/* ---- the rest ---- */

static void set_rules(uint8_t which)
{
	static const uint16_t mtu[] = {0, 256, 1024, 4096};
	struct rule r[2] = {
		{.name = "lab",
		 .near = {{.len = 96 + 16}, {.len = 64}, {.len = 128}, {.len = 128}},
		 .far = {{.len = 96 + 16}, {.len = 64}, {.len = 128}, {.len = 128}},
		 .nnear = 4,
		 .nfar = 4,
		 .vlan = RULE_ANY_VLAN},
	};

	for (unsigned int h = 0; h < 2; h++) {
		struct prefix *p = h ? r[0].far : r[0].near;

		host_addr(&p[0].addr, 0, h);
		memset(p[0].addr.b + 14, 0, 2);
		host_addr(&p[1].addr, 2, h);
		p[1].addr.b[15] = 0;
		/* the hosts of the captures */
		NEED(ip_addr_parse(h ? "10.98.0.2" : "10.98.0.1", &p[2].addr) == 0);
		NEED(ip_addr_parse(h ? "fe80::5054:ff:fe00:2" : "fe80::5054:ff:fe00:1",
				   &p[3].addr) == 0);
	}
	r[0].peer = z.setup[0] & SETUP_SINGLE ? PEER_NONE : 0;
	r[0].policy = (z.setup[0] >> 1 & 3) % POLICIES;
	r[0].path_mtu = mtu[z.setup[0] >> 3 & 3];
	r[0].read_ahead = reads_ahead();
	r[0].learn = LEARN_CM | LEARN_PSN;
	if (z.setup[1] & SETUP_NO_CM)
		r[0].learn = LEARN_PSN;
	else if (z.setup[1] & SETUP_NO_PSN)
		r[0].learn = LEARN_CM;
	r[1] = r[0];
	switch (which & 7) {
	case 1: /* another policy */
		r[0].policy = (uint8_t)((r[0].policy + 1) % POLICIES);
		break;
	case 2: /* single mode, or with a peer */
		if (!(z.setup[0] & SETUP_SINGLE))
			r[0].peer = PEER_NONE;
		break;
	case 3:
		r[0].vlan = 5;
		break;
	case 4:
		r[0].cap = 100000;
		break;
	case 5: /* two rules */
		r[0].vlan = 5;
		r[1].vlan = FRAME_VLAN_NONE;
		r[1].policy = POLICY_OFF;
		break;
	}
	before();
	engine_rules(z.e, r, (which & 7) == 6 ? 0 : (which & 7) == 5 ? 2 : 1, z.now);
	after();
}

static void peer_event(uint8_t what)
{
	before();
	if (what == 0x55)
		engine_drain(z.e, z.now);
	else if (!(z.setup[0] & SETUP_SINGLE))
		engine_peer_event(z.e, 0, what % 3, z.now);
	after();
}

/* To the next deadline, @n times. */
static void wait_for(unsigned int n)
{
	unsigned int spins = 0;

	while (n-- && z.calls < CALLS_MAX) {
		uint64_t t = engine_deadline(z.e);

		if (t == UINT64_MAX)
			return;
		/* the same time once more may be right, for ever is not */
		spins = t <= z.now ? spins + 1 : 0;
		NEED(spins < 64);
		if (t > z.now)
			z.now = t;
		tick();
	}
}

static void hold(unsigned int conn)
{
	struct report r = {.type = REPORT_ACCEPT};
	uint8_t bits = z.setup[1];

	if (bits & (SETUP_LEARNED | SETUP_HELD | SETUP_ACCEPTOR)) {
		learn(conn, 0, 6);
		learn(conn, 1, 6);
	}
	if (bits & SETUP_HELD) {
		requests(conn, 0, 1, 0, 8);
		tick();
		own_report(&r, flow_of(conn, 0));
		feed_report(&r);
		tick();
	}
	if (bits & SETUP_ACCEPTOR) {
		send_open(conn, true, false, 0);
		tick();
	}
}

static void start(struct input *in)
{
	static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	struct engine_config cfg = {.max_conns = FLOWS / 2, .seed = 1};
	struct engine_sink sink = {.tx = on_tx, .report = on_report, .event = on_event};

	memset(&z, 0, sizeof(z));
	for (int i = 0; i < SETUP; i++)
		z.setup[i] = next8(in);
	cfg.pool_bytes = z.setup[0] & SETUP_SMALL ? 1 << 20 : 4 << 20;
	cfg.wan_rate = z.setup[0] & SETUP_PACED ? 10000000 : 0;
	z.now = 1000 * MS;
	for (unsigned int c = 0; c < CONNS; c++)
		for (unsigned int h = 0; h < 2; h++) {
			struct ip_addr a[2];

			host_addr(&a[0], c, h);
			host_addr(&a[1], c, !h);
			template_make(&z.tmpl[c][h], mac[h], mac[!h], conn_vlan(c), &a[0], &a[1],
				      0xc000);
			rc_header_init(&z.header[c][h], mac[h], mac[!h], conn_vlan(c), &a[0], &a[1],
				       0xc000);
			z.next[c][h] = (z.setup[0] & SETUP_WRAP ? 0xfffff0 : 0x100) + 16 * h;
			z.msn[c][h] = h;
		}
	z.e = engine_create(&cfg, &sink, z.now);
	NEED(z.e && z.e->nflows == FLOWS);
	set_rules(0);
	peer_event(PEER_UP);
	hold(0);
	if (z.setup[1] & SETUP_SECOND)
		hold(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	start(&in);
	while (in.left && z.inputs < INPUTS_MAX && z.calls < CALLS_MAX) {
		uint8_t b = next8(&in);
		unsigned int conn = REC_CONN(b), host = !!(b & REC_FAR), n;
		size_t len;
		const uint8_t *p;

		switch (b & 15) {
		case REC_NEAR_FRAME:
			rec_near_frame(&in, conn, host);
			break;
		case REC_FRAME:
			rec_frame(&in, conn, host);
			break;
		case REC_REQUESTS: {
			uint8_t count = next8(&in), kind = next8(&in);

			requests(conn, host, 1 + count % 64, kind, next8(&in));
			break;
		}
		case REC_ACK:
			rec_ack(&in, conn, host);
			break;
		case REC_RAW:
			len = next16(&in);
			p = next_bytes(&in, &len);
			feed((enum engine_port)host, p, (uint32_t)len);
			break;
		case REC_AGAIN:
			rec_again(&in);
			break;
		case REC_ECHO: {
			struct kept k = z.out[next8(&in) % KEPT];

			if (k.len)
				feed((enum engine_port)host, k.data, k.len);
			break;
		}
		case REC_REPORT:
			rec_report(&in, conn);
			break;
		case REC_REPORT_RAW:
			rec_report_raw(&in, conn, host);
			break;
		case REC_PEER:
			peer_event(next8(&in));
			break;
		case REC_TIME:
			z.now += rec_time(next16(&in));
			break;
		case REC_RULES:
			set_rules(next8(&in));
			break;
		case REC_FULL:
			n = next8(&in);
			z.full[PORT_LAN] = n & 1;
			z.full[PORT_WAN] = n & 2;
			break;
		case REC_CM:
			rec_cm(&in, conn, host);
			break;
		case REC_LEARN:
			learn(conn, host, 1 + next8(&in) % 8);
			break;
		case REC_WAIT:
			wait_for(1 + next8(&in) % 32);
			break;
		}
		if (!(b & REC_QUIET))
			tick();
	}
	z.full[PORT_LAN] = z.full[PORT_WAN] = false;
	tick();
	wait_for(40);
	NEED(!engine_check(z.e));
	engine_destroy(z.e);
	return 0;
}

/* ---- mutation by whole records ---- */

#define RECORDS 512

static uint32_t rnd(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525 + 1013904223;
	return n ? (*state >> 8) % n : 0;
}

/* A record with little in it, for the mutations to come. */
static size_t make_record(uint8_t *out, uint32_t *state)
{
	uint8_t op = (uint8_t)rnd(state, RECS);
	size_t n = 1u + rec_size[op];

	out[0] = (uint8_t)(op | (rnd(state, 2) ? REC_FAR : 0) |
			   (rnd(state, 4) ? 0 : rnd(state, 16) << 4 & 0xb0));
	for (size_t i = 1; i < n; i++)
		out[i] = (uint8_t)(rnd(state, 2) ? rnd(state, 10) : rnd(state, 256));
	if (op == REC_RAW || op == REC_REPORT_RAW)
		out[n - 2] = out[n - 1] = 0;
	return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint32_t state = seed, n = 0, a, b, way = rnd(&state, 8);
	size_t at[RECORDS + 1], pos = SETUP, len;
	uint8_t buf[4096];

	if (size <= SETUP || way == 0)
		return LLVMFuzzerMutate(data, size, max);
	while (pos < size && n < RECORDS) {
		at[n++] = pos;
		pos += rec_len(data + pos, size - pos);
	}
	at[n] = pos;
	a = rnd(&state, n);
	b = rnd(&state, n);
	switch (way) {
	case 1: /* some records less */
		b = a + 1 + rnd(&state, 4);
		b = b > n ? n : b;
		memmove(data + at[a], data + at[b], size - at[b]);
		return size - (at[b] - at[a]);
	case 2: /* one more, from elsewhere */
	case 3: /* or a new one */
		len = at[b + 1] - at[b];
		if (way == 2 && len <= sizeof(buf))
			memcpy(buf, data + at[b], len);
		else
			len = make_record(buf, &state);
		if (size + len > max)
			return LLVMFuzzerMutate(data, size, max);
		memmove(data + at[a] + len, data + at[a], size - at[a]);
		memcpy(data + at[a], buf, len);
		return size + len;
	case 4: /* one at the end, where the state is deepest */
		len = make_record(buf, &state);
		if (size + len > max)
			return LLVMFuzzerMutate(data, size, max);
		memcpy(data + size, buf, len);
		return size + len;
	default: /* one changed in place, its length kept */
		len = at[a + 1] - at[a];
		LLVMFuzzerMutate(data + at[a], len, len);
		return size;
	}
}

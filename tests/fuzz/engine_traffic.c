// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames of hosts and reports of the peer from records: most of them near the marks of a lane
 * (engine_record.h). */
#include "peer/proto.h"
#include "tests/fuzz/engine_fuzz.h"
#include "wire/bytes.h"

/* A mark of the lane, or where its requester would go on. */
static uint32_t mark_of(unsigned int conn, unsigned int host, uint8_t which, uint32_t *msn)
{
	const struct flow *fl = conn_flow(conn, host);
	const struct lane *l = fl ? &fl->lane : NULL;
	uint32_t psn = z.next[conn][host];

	*msn = z.msn[conn][host] & PSN_MASK;
	if (l && l->role != ROLE_NONE)
		switch (which % 9) {
		case 1:
			psn = l->epsn.psn.v;
			*msn = l->epsn.msn;
			break;
		case 2:
			psn = l->una.psn.v;
			*msn = l->una.msn;
			break;
		case 3:
			psn = l->nxt.psn.v;
			*msn = l->nxt.msn;
			break;
		case 4:
			psn = l->near.frontier.psn.v;
			*msn = l->near.frontier.msn;
			break;
		case 5:
			psn = l->end.v;
			break;
		case 6:
			psn = l->high.v;
			break;
		case 7:
			psn = l->start.v;
			break;
		case 8:
			psn = l->near.told.v;
			break;
		}
	return psn & PSN_MASK;
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

	watch_feed((enum engine_port)(host ^ !!(bits & FRAME_ASIDE)), out, n);
}

static uint32_t mtu_of(unsigned int conn, unsigned int host)
{
	const struct flow *fl = conn_flow(conn, host);

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

void rec_near_frame(struct input *in, unsigned int conn, unsigned int host)
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

void rec_frame(struct input *in, unsigned int conn, unsigned int host)
{
	uint8_t bits = next8(in), op = next8(in);
	uint32_t psn = next24(in), len = next16(in), arg = next32(in);

	send(conn, host, op, psn, len, arg, bits);
}

void traffic_requests(unsigned int conn, unsigned int host, unsigned int n, uint8_t kind,
		      uint8_t length)
{
	uint32_t *psn = &z.next[conn][host], *msn = &z.msn[conn][host];
	uint32_t mtu = mtu_of(conn, host), last = length % (mtu + 1);
	uint8_t bits = kind & 0x80 ? FRAME_ACKREQ : 0;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t parts = 1 + (kind >> 4 & 7);

		if ((kind & 7) >=
		    4) { /* READ of that many packets, CmpSwap, FetchAdd, ATOMIC WRITE */
			static const uint8_t op[] = {OP_READ_REQUEST, OP_CMP_SWAP, OP_FETCH_ADD,
						     OP_ATOMIC_WRITE};
			bool read = (kind & 7) == 4;

			send(conn, host, op[kind & 3], *psn, 8, read ? parts * mtu : 8,
			     FRAME_ACKREQ);
			*psn = psn_add(*psn, read ? parts : 1);
		} else {
			uint8_t base = kind & 1 ? OP_WRITE_FIRST : OP_SEND_FIRST;
			uint32_t total = (parts - 1) * mtu + last;

			if (parts == 1)
				send(conn, host, base + 4, *psn, last, total, FRAME_ACKREQ);
			for (uint32_t j = 0; parts > 1 && j < parts; j++)
				send(conn, host,
				     j == 0	     ? base
				     : j + 1 < parts ? base + 1
						     : base + 2,
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

void rec_ack(struct input *in, unsigned int conn, unsigned int host)
{
	static const uint8_t syndrome[] = {0x1f, 0x00, 0x05, 0x60, 0x61, 0x62, 0x63, 0x20,
					   0x21, 0x2e, 0x3f, 0x40, 0x64, 0x7f, 0x80, 0xff};
	uint32_t msn, psn = mark_of(conn, host, next8(in), &msn);

	psn = psn_add(psn, (uint32_t)(int8_t)next8(in) - 1);
	ack(conn, host, psn, syndrome[next8(in) & 15], msn + (uint32_t)(int8_t)next8(in));
}

/* Messages and their ACKs, until the pair is known. */
void traffic_learn(unsigned int conn, unsigned int host, unsigned int n)
{
	uint32_t mtu = z.setup[0] & SETUP_MTU ? 0 : 256;

	for (unsigned int i = 0; i < n; i++) {
		traffic_requests(conn, host, 1, mtu && !i ? 0x90 : 0, 8);
		ack(conn, host, psn_sub(z.next[conn][host], 1), 0x1f, z.msn[conn][host]);
		watch_tick();
	}
}

void rec_again(struct input *in)
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
	watch_feed((enum engine_port)(k->port ^ !!(change & 0x10)), out, len);
}

void rec_cm(struct input *in, unsigned int conn, unsigned int host)
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
	watch_feed((enum engine_port)host, out,
		   cm_emit(out, &z.header[conn][host], &a[0], &a[1], &c, z.inputs));
}

/* ---- reports ---- */

#define PEER_LANE(conn) (100 + (conn))

void traffic_open(unsigned int conn, bool fresh, bool resume, int8_t off)
{
	struct report r = {.type = REPORT_OPEN,
			   .lane = PEER_LANE(conn),
			   .lqpn = host_qpn(conn, 1),
			   .start_psn = psn_add(z.next[conn][1], (uint32_t)off),
			   .start_msn = z.msn[conn][1],
			   .path_mtu = mtu_of(conn, 1),
			   .resume = resume,
			   .sealed = z.setup[1] & SETUP_CHECKED,
			   .seal_key = {1, conn}};

	z.peer_gen[conn] += fresh;
	r.gen = z.peer_gen[conn];
	flow_key(&r.key, conn, 1);
	watch_report(&r);
}

/* As the peer to which lane @fl of ours belongs. */
void traffic_own(struct report *r, const struct flow *fl)
{
	r->lane = fl ? flow_index(z.e, fl) : 0;
	r->gen = fl ? fl->lane.gen : 0;
}

void rec_report(struct input *in, unsigned int conn)
{
	uint8_t type = next8(in), bits = next8(in);
	const struct flow *fl = conn_flow(conn, 0);
	uint32_t msn, una_msn, i, room;
	struct report r = {.type = (uint8_t)(1 + type % 8), .credit = 0x1f};
	unsigned int host = r.type == REPORT_RESP;
	uint8_t x;

	r.cum = mark_of(conn, host, next8(in), &msn);
	r.cum = psn_add(r.cum, (uint32_t)(int8_t)next8(in));
	r.una = mark_of(conn, host, next8(in), &una_msn);
	r.una = psn_add(r.una, (uint32_t)(int8_t)next8(in));
	r.hi = mark_of(conn, host, next8(in), &msn);
	r.hi = psn_add(r.hi, (uint32_t)(int8_t)next8(in));
	room = next8(in);
	r.una_msn = psn_add(una_msn, (uint32_t)(int8_t)next8(in));
	x = next8(in);
	if (r.type == REPORT_OPEN) {
		traffic_open(conn, bits & 1, bits & 2, (int8_t)x);
		return;
	}
	traffic_own(&r, fl);
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
	if (host) {
		flow_key(&r.key, conn, 1);
		r.lane = PEER_LANE(conn);
		r.gen = z.peer_gen[conn];
		r.latest = r.una;
		r.depth = x;
	}
	r.bypassed = x == 7;
	if (psn_before(r.cum, r.una) && (bits & 2))
		r.una = r.cum;
	if (psn_before(r.hi, r.cum))
		r.hi = r.cum;
	r.room = psn_add(r.cum, room * (bits & 4 ? 64 : 1));
	r.una_ackable = bits & 0x10;
	r.seq = bits & 0x20 ? x : ++z.report_seq;
	if (bits & 0x40) {
		r.refusal = 0x61 + x % 3;
		r.refusal_psn = r.cum;
	}
	/* every other packet is missing */
	if (bits & 1)
		for (i = 0;
		     i < room && r.nholes < REPORT_HOLES && i * 2 < psn_diff(r.hi, r.cum) + 0u; i++)
			r.hole[r.nholes++] = (struct psn_range){psn_add(r.cum, i * 2),
								psn_add(r.cum, i * 2 + 1)};
	watch_report(&r);
}

void rec_report_raw(struct input *in, unsigned int conn, unsigned int host)
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
			traffic_own(&m.report, conn_flow(conn, host));
		if (bits & REPORT_KEY) {
			flow_key(&m.report.key, conn, host);
			m.report.lqpn = host_qpn(conn, host);
		}
		watch_report(&m.report);
	}
}

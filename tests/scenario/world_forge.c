// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames of a third party: all as in the hosts' own, except what only they know. */
#include "tests/scenario/world_forge.h"

#include <string.h>

#include "wire/icrc.h"
#include "wire/psn.h"

/* Some forgers leave their own address on what they send. */
static const uint8_t own_mac[6] = {0x02, 0x66, 0x66, 0x66, 0x66, 0x66};

/* Headers of what host @from sends to the other. */
static void header_of(struct forger *f, const struct world_qp *q, int from, struct rc_header *h)
{
	const struct rc_qp_config *c = &q->cfg[from];
	struct rc_qp_config other = *c;

	/* it may know how hosts choose ports, and choose one for another queue pair */
	if (c->ports && prng_hit(&f->rng, 0.3)) {
		other.lqpn += prng_below(&f->rng, 4);
		other.rqpn += prng_below(&f->rng, 4);
		rc_qp_port(&other);
	}
	rc_header_init(h, prng_hit(&f->rng, 0.5) ? own_mac : c->smac, c->dmac, c->vlan, &c->src,
		       &c->dst, other.sport);
	h->migreq = prng_hit(&f->rng, 0.5);
	h->ip_id = (uint16_t)prng_next(&f->rng);
}

static uint32_t finish(struct forger *f, struct rc_header *h, struct rc_frame_spec *s, uint8_t *out)
{
	uint32_t crc, off = rc_frame_head(out, h, s, &crc);

	for (uint32_t i = 0; i < s->payload_len; i++)
		out[off + i] = (uint8_t)prng_next(&f->rng);
	crc = crc32_update(crc, out + off, s->payload_len);
	return rc_frame_tail(out, off, s->payload_len, crc);
}

/* A listener on the wire knows the region's address and key. */
static void put_reth(struct forger *f, const struct rc_qp_config *c, struct rc_frame_spec *s,
		     uint32_t length)
{
	bool right = prng_hit(&f->rng, 0.5);

	put_be64(s->ext, right ? c->rmr_va : prng_next(&f->rng));
	put_be32(s->ext + 8, right ? c->rmr_rkey : (uint32_t)prng_next(&f->rng));
	put_be32(s->ext + 12, length);
	s->ext_len = 16;
}

static void put_body(struct forger *f, const struct rc_qp_config *c, struct rc_frame_spec *s)
{
	const struct opcode_info *op = opcode_info(s->opcode);
	uint32_t any = 1 + prng_below(&f->rng, c->mtu);

	if (op->flags & OPF_ATOMIC) {
		put_reth(f, c, s, 0);
		put_be64(s->ext + 12, prng_next(&f->rng));
		s->ext_len = 28;
	} else if (op->flags & OPF_READ) {
		put_reth(f, c, s, any);
	} else {
		s->payload_len = op->flags & (OPF_FIRST | OPF_MIDDLE) ? c->mtu : any;
		if (op->headers & HDR_RETH)
			put_reth(f, c, s,
				 op->flags & OPF_FIRST ? c->mtu * (2 + prng_below(&f->rng, 8))
						       : any);
		s->ext_len += op->headers & (HDR_IMMDT | HDR_IETH) ? 4 : 0;
	}
}

uint32_t forge_request(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn)
{
	static const uint8_t ops[] = {
		OP_SEND_ONLY,	 OP_SEND_ONLY,	    OP_SEND_FIRST,    OP_SEND_MIDDLE,
		OP_SEND_LAST,	 OP_SEND_ONLY_IMM,  OP_SEND_LAST_IMM, OP_SEND_ONLY_INV,
		OP_WRITE_ONLY,	 OP_WRITE_FIRST,    OP_WRITE_MIDDLE,  OP_WRITE_LAST,
		OP_WRITE_MIDDLE, OP_WRITE_ONLY_IMM, OP_READ_REQUEST,  OP_READ_REQUEST,
		OP_CMP_SWAP,	 OP_FETCH_ADD,
	};
	const struct rc_qp_config *c = &t->q->cfg[t->s];
	struct rc_frame_spec s = {.opcode = ops[prng_below(&f->rng, sizeof(ops))],
				  .ackreq = prng_hit(&f->rng, 0.5),
				  .dqpn = c->rqpn,
				  .psn = psn};
	struct rc_header h;

	header_of(f, t->q, t->s, &h);
	put_body(f, c, &s);
	return finish(f, &h, &s, out);
}

uint32_t forge_send_only(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn)
{
	const struct rc_qp_config *c = &t->q->cfg[t->s];
	struct rc_frame_spec s = {.opcode = OP_SEND_ONLY,
				  .ackreq = true,
				  .dqpn = c->rqpn,
				  .psn = psn,
				  .payload_len = 64};
	struct rc_header h;

	header_of(f, t->q, t->s, &h);
	return finish(f, &h, &s, out);
}

uint32_t forge_vendor(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn)
{
	/* 0x18 and 0x19 have come to mean something */
	static const uint8_t ops[] = {0x15, 0x1a, 0x1b, 0x1e, 0x1f};
	const struct rc_qp_config *c = &t->q->cfg[t->s];
	struct rc_frame_spec s = {.opcode = ops[prng_below(&f->rng, sizeof(ops))],
				  .ackreq = true,
				  .dqpn = c->rqpn,
				  .psn = psn,
				  .payload_len = 4 * prng_below(&f->rng, 64)};
	struct rc_header h;

	header_of(f, t->q, t->s, &h);
	return finish(f, &h, &s, out);
}

uint32_t forge_answer(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn,
		      bool data)
{
	static const uint8_t syndromes[] = {
		AETH_ACK_UNLIMITED, AETH_ACK_UNLIMITED, 24, 0,
		AETH_NAK_SEQ,	    AETH_NAK_SEQ,	0,  AETH_RNR_NAK,
		AETH_NAK_INVALID,   AETH_NAK_ACCESS,	0};
	static const uint8_t ops[] = {OP_ACK,
				      OP_ACK,
				      OP_ACK,
				      OP_ATOMIC_ACK,
				      OP_READ_RESPONSE_ONLY,
				      OP_READ_RESPONSE_FIRST,
				      OP_READ_RESPONSE_LAST,
				      OP_READ_RESPONSE_MIDDLE};
	const struct rc_qp_config *c = &t->q->cfg[!t->s];
	struct rc_frame_spec s = {.opcode = data ? ops[prng_below(&f->rng, sizeof(ops))] : OP_ACK,
				  .dqpn = c->rqpn,
				  .psn = psn};
	struct rc_qp *resp = t->q->side[!t->s].qp;
	struct rc_header h;

	header_of(f, t->q, !t->s, &h);
	s.ext[0] = syndromes[prng_below(&f->rng, sizeof(syndromes))];
	if (s.ext[0] == AETH_RNR_NAK)
		s.ext[0] |= prng_below(&f->rng, 32);
	if (s.opcode != OP_ACK)
		s.ext[0] = AETH_ACK_UNLIMITED;
	put_be24(s.ext + 1, resp && prng_hit(&f->rng, 0.5)
				    ? psn_add(rc_qp_msn(resp), prng_below(&f->rng, 16))
				    : (uint32_t)prng_next(&f->rng) & PSN_MASK);
	s.ext_len = s.opcode == OP_ATOMIC_ACK ? 12 : s.opcode == OP_READ_RESPONSE_MIDDLE ? 0 : 4;
	if (opcode_info(s.opcode)->flags & OPF_READ)
		s.payload_len =
			s.opcode == OP_READ_RESPONSE_FIRST || s.opcode == OP_READ_RESPONSE_MIDDLE
				? c->mtu
				: 1 + prng_below(&f->rng, c->mtu);
	return finish(f, &h, &s, out);
}

static uint32_t nak(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn,
		    uint8_t syndrome)
{
	struct rc_qp *resp = t->q->side[!t->s].qp;
	struct rc_frame_spec s = {
		.opcode = OP_ACK, .dqpn = t->q->cfg[!t->s].rqpn, .psn = psn, .ext_len = 4};
	struct rc_header h;

	header_of(f, t->q, !t->s, &h);
	s.ext[0] = syndrome;
	put_be24(s.ext + 1, psn_sub(resp ? rc_qp_msn(resp) : 0, prng_below(&f->rng, 16)));
	return finish(f, &h, &s, out);
}

uint32_t forge_nak(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn)
{
	return nak(f, t, out, psn, AETH_NAK_SEQ);
}

uint32_t forge_refusal(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn)
{
	return nak(f, t, out, psn, AETH_NAK_INVALID);
}

uint32_t forge_cnp(struct forger *f, const struct forge_target *t, uint8_t *out, bool to_responder)
{
	int from = to_responder ? t->s : !t->s;
	struct rc_frame_spec s = {.opcode = OP_CNP, .dqpn = t->q->cfg[from].rqpn, .ext_len = 16};
	struct rc_header h;

	header_of(f, t->q, from, &h);
	return finish(f, &h, &s, out);
}

static struct cm cm_of(struct forger *f, const struct rc_qp_config *c, uint8_t type)
{
	return (struct cm){.type = type,
			   .transaction_id = prng_next(&f->rng),
			   .local_id = (uint32_t)prng_next(&f->rng) | 1u << 31,
			   .remote_id = (uint32_t)prng_next(&f->rng) | 1u << 31,
			   .lqpn = c->lqpn,
			   .rqpn = c->rqpn,
			   .starting_psn = (uint32_t)prng_next(&f->rng) & PSN_MASK,
			   .path_mtu = c->mtu,
			   .responder_resources = (uint8_t)c->resp_rd,
			   .initiator_depth = (uint8_t)c->max_rd,
			   .retry_count = 7,
			   .rnr_retry = 7,
			   .ack_timeout = 17,
			   .rc = true};
}

static uint32_t put_cm(struct forger *f, const struct forge_target *t, uint8_t *out, int from,
		       const struct cm *m)
{
	const struct rc_qp_config *c = &t->q->cfg[from];
	struct rc_header h;

	header_of(f, t->q, from, &h);
	h.migreq = false;
	return cm_emit(out, &h, &c->src, &c->dst, m, (uint32_t)prng_next(&f->rng) & PSN_MASK);
}

uint32_t forge_cm(struct forger *f, const struct forge_target *t, uint8_t *out, int from, bool ids)
{
	static const uint8_t types[] = {CM_REQ, CM_REP, CM_RTU, CM_REJ, CM_DREQ, CM_DREQ, CM_DREP};
	struct cm m = cm_of(f, &t->q->cfg[from], types[prng_below(&f->rng, sizeof(types))]);
	uint32_t len;

	if (ids && t->q->cm[from].out.local_id) {
		m.transaction_id = t->q->cm[from].out.transaction_id;
		m.local_id = t->q->cm[from].out.local_id;
		m.remote_id = t->q->cm[from].out.remote_id;
	}
	len = put_cm(f, t, out, from, &m);
	if (ids)
		out[len - 1 - prng_below(&f->rng, 4)] ^= 1u << prng_below(&f->rng, 8);
	return len;
}

uint32_t forge_cm_pair(struct forger *f, const struct forge_target *t, uint8_t *out, int from,
		       uint8_t type, const uint32_t id[2], bool other)
{
	struct cm m = cm_of(f, &t->q->cfg[from], type);

	m.local_id = id[type != CM_REQ];
	m.remote_id = id[type == CM_REQ];
	if (other)
		m.lqpn ^= 0x800000;
	return put_cm(f, t, out, from, &m);
}

/* Opcodes whose frames have the same form. */
static uint8_t sibling(struct forger *f, uint8_t opcode)
{
	static const uint8_t plain[] = {OP_SEND_FIRST, OP_SEND_MIDDLE,	OP_SEND_LAST,
					OP_SEND_ONLY,  OP_WRITE_MIDDLE, OP_WRITE_LAST};
	static const uint8_t reth[] = {OP_WRITE_FIRST, OP_WRITE_ONLY};

	if (opcode_info(opcode)->headers == 0)
		return plain[prng_below(&f->rng, sizeof(plain))];
	if (opcode_info(opcode)->headers == HDR_RETH && opcode_info(opcode)->flags & OPF_WRITE)
		return reth[prng_below(&f->rng, sizeof(reth))];
	return opcode;
}

bool forge_change(struct forger *f, uint8_t *data, uint32_t len)
{
	struct frame v;

	if (frame_parse(data, len, &v) != FRAME_OK || !(v.op->flags & OPF_REQUEST))
		return false;
	if (v.payload_len && prng_hit(&f->rng, 0.6)) {
		data[v.payload + prng_below(&f->rng, v.payload_len)] ^= 0x55;
	} else {
		uint8_t op = sibling(f, v.opcode);

		if (op == v.opcode)
			return false;
		data[v.bth] = op;
	}
	icrc_fill(data, &v);
	return true;
}

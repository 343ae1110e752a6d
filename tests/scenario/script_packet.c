// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets of scripts: from words to a frame, and back to words for messages.
 *
 * A frame is wholly determined by its words and its sender, payload included. So what the appliance
 * sends is compared byte for byte with what the host that it stands in for would have sent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/script_priv.h"
#include "wire/bytes.h"
#include "wire/icrc.h"

#define DEFAULT_LEN 64

enum cm_kind {
	NO_CM,
	CM_IS_REQ = 0x10,
	CM_IS_MRA = 0x11,
	CM_IS_REP = 0x13,
	CM_IS_RTU = 0x14,
	CM_IS_DREQ = 0x15,
	CM_IS_DREP = 0x16,
};

static const struct {
	const char *name;
	uint8_t opcode;
	uint8_t syndrome; /* of those whose opcode is ACK */
	uint8_t cm;
} kinds[] = {
	{"SEND_FIRST", OP_SEND_FIRST, 0, 0},
	{"SEND_MIDDLE", OP_SEND_MIDDLE, 0, 0},
	{"SEND_LAST", OP_SEND_LAST, 0, 0},
	{"SEND_LAST_IMM", OP_SEND_LAST_IMM, 0, 0},
	{"SEND_LAST_INV", OP_SEND_LAST_INV, 0, 0},
	{"SEND_ONLY", OP_SEND_ONLY, 0, 0},
	{"SEND_ONLY_IMM", OP_SEND_ONLY_IMM, 0, 0},
	{"SEND_ONLY_INV", OP_SEND_ONLY_INV, 0, 0},
	{"WRITE_FIRST", OP_WRITE_FIRST, 0, 0},
	{"WRITE_MIDDLE", OP_WRITE_MIDDLE, 0, 0},
	{"WRITE_LAST", OP_WRITE_LAST, 0, 0},
	{"WRITE_LAST_IMM", OP_WRITE_LAST_IMM, 0, 0},
	{"WRITE_ONLY", OP_WRITE_ONLY, 0, 0},
	{"WRITE_ONLY_IMM", OP_WRITE_ONLY_IMM, 0, 0},
	{"READ_REQUEST", OP_READ_REQUEST, 0, 0},
	{"READ_RESPONSE_FIRST", OP_READ_RESPONSE_FIRST, 0, 0},
	{"READ_RESPONSE_MIDDLE", OP_READ_RESPONSE_MIDDLE, 0, 0},
	{"READ_RESPONSE_LAST", OP_READ_RESPONSE_LAST, 0, 0},
	{"READ_RESPONSE_ONLY", OP_READ_RESPONSE_ONLY, 0, 0},
	{"ATOMIC_ACK", OP_ATOMIC_ACK, 0, 0},
	{"CMP_SWAP", OP_CMP_SWAP, 0, 0},
	{"FETCH_ADD", OP_FETCH_ADD, 0, 0},
	{"MASKED_CMP_SWAP", OP_MASKED_CMP_SWAP, 0, 0},
	{"MASKED_FETCH_ADD", OP_MASKED_FETCH_ADD, 0, 0},
	{"FLUSH", OP_FLUSH, 0, 0},
	{"ATOMIC_WRITE", OP_ATOMIC_WRITE, 0, 0},
	{"CNP", OP_CNP, 0, 0},
	{"UC_SEND_ONLY", 0x24, 0, 0},
	{"UNKNOWN_OPCODE", 0x1f, 0, 0},
	{"ACK", OP_ACK, 0, 0},
	{"RNR_NAK", OP_ACK, AETH_RNR_NAK, 0},
	{"NAK_SEQUENCE", OP_ACK, AETH_NAK_SEQ, 0},
	{"NAK_INVALID", OP_ACK, AETH_NAK_INVALID, 0},
	{"NAK_ACCESS", OP_ACK, AETH_NAK_ACCESS, 0},
	{"NAK_OPERATION", OP_ACK, AETH_NAK_OPERATION, 0},
	{"CM_REQ", OP_UD_SEND_ONLY, 0, CM_IS_REQ},
	{"CM_MRA", OP_UD_SEND_ONLY, 0, CM_IS_MRA},
	{"CM_REP", OP_UD_SEND_ONLY, 0, CM_IS_REP},
	{"CM_RTU", OP_UD_SEND_ONLY, 0, CM_IS_RTU},
	{"CM_DREQ", OP_UD_SEND_ONLY, 0, CM_IS_DREQ},
	{"CM_DREP", OP_UD_SEND_ONLY, 0, CM_IS_DREP},
	{"UD_SEND_ONLY", OP_UD_SEND_ONLY, 0, 0},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

int packet_kind_by_name(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return (int)i;
	return -1;
}

bool packet_echoes(unsigned int kind)
{
	return kinds[kind].opcode != OP_ACK;
}

/* ---- words to packet ---- */

void packet_parse(struct script *s, struct tokens *t, struct packet *p, bool expected)
{
	const char *name = token_next(s, t, "a packet");
	int kind = packet_kind_by_name(name);
	const struct opcode_info *op;
	uint16_t full;

	if (kind < 0)
		script_fail(s, "no packet is named \"%s\"", name);
	*p = (struct packet){.kind = (unsigned int)kind,
			     .credit = 31,
			     .near = 1,
			     .far = 1,
			     .id = 1,
			     .va = DEFAULT_VA,
			     .rkey = DEFAULT_RKEY};
	op = opcode_info(kinds[kind].opcode);
	full = op->flags & (OPF_FIRST | OPF_MIDDLE);
	if (kinds[kind].syndrome == AETH_RNR_NAK)
		p->credit = 12; /* 0.64 ms */
	while (tokens_left(t)) {
		if (token_is(t, "psn")) {
			p->psn = token_range(s, t, "psn");
			p->given |= SET_PSN;
			continue;
		}
		if (token_is(t, "msn")) {
			p->msn = token_range(s, t, "msn");
			p->given |= SET_MSN;
			continue;
		}
		if (token_is(t, "len")) {
			p->len = (uint32_t)token_number(s, t, "len");
			p->given |= SET_LEN;
			continue;
		}
		if (token_is(t, "total")) {
			p->total = (uint32_t)token_number(s, t, "total");
			p->given |= SET_TOTAL;
			continue;
		}
		if (token_is(t, "data")) {
			p->data = (uint32_t)token_number(s, t, "data");
			p->given |= SET_DATA;
			continue;
		}
		if (token_is(t, "of")) {
			p->of = (int32_t)token_number(s, t, "of");
			p->given |= SET_OF;
			continue;
		}
		if (token_is(t, "credit") || token_is(t, "timer")) {
			p->credit = (uint32_t)token_number(s, t, "credit") & 0x1f;
		} else if (token_is(t, "syndrome")) {
			p->syndrome = (uint8_t)token_number(s, t, "syndrome");
			p->given |= SET_SYNDROME;
		} else if (token_is(t, "imm")) {
			p->imm = (uint32_t)token_number(s, t, "imm");
		} else if (token_is(t, "value")) {
			p->value = (uint64_t)token_number(s, t, "value");
			p->given |= SET_VALUE;
		} else if (token_is(t, "va")) {
			p->va = (uint64_t)token_number(s, t, "va");
		} else if (token_is(t, "rkey")) {
			p->rkey = (uint32_t)token_number(s, t, "rkey");
		} else if (token_is(t, "qp")) {
			p->qpn = (uint32_t)token_number(s, t, "qp");
		} else if (token_is(t, "near")) {
			p->near = (uint32_t)token_number(s, t, "near");
		} else if (token_is(t, "far")) {
			p->far = (uint32_t)token_number(s, t, "far");
		} else if (token_is(t, "id")) {
			p->id = (uint32_t)token_number(s, t, "id");
		} else if (token_is(t, "passive-id")) {
			p->passive_id = (uint32_t)token_number(s, t, "passive-id");
		} else if (token_is(t, "service-time")) {
			p->service_time = (uint8_t)token_number(s, t, "service-time");
		} else if (token_is(t, "starting-psn")) {
			p->start_psn = (uint32_t)token_number(s, t, "starting-psn");
		} else if (token_is(t, "takes")) {
			p->takes = (uint8_t)token_number(s, t, "takes");
		} else if (token_is(t, "mtu")) {
			p->mtu = (uint32_t)token_number(s, t, "mtu");
		} else if (token_is(t, "ttl")) {
			p->ttl = (uint8_t)token_number(s, t, "ttl");
		} else if (token_is(t, "sport")) {
			p->sport = (uint16_t)token_number(s, t, "sport");
		} else if (token_is(t, "congested")) {
			p->congested = true;
		} else if (token_is(t, "ackreq")) {
			p->ackreq = true;
		} else if (token_is(t, "bad-icrc")) {
			p->bad_icrc = true;
		} else if (token_is(t, "no-credits")) {
			p->no_credits = true;
		} else if (token_is(t, "batch")) {
			p->batch = true;
		} else if (token_is(t, "native")) {
			p->native = true;
			continue;
		} else if (token_is(t, "sealed")) {
			p->sealed = true;
			continue;
		} else if (token_is(t, "own")) {
			p->own = true;
			continue;
		} else {
			script_fail(s, "a packet has no \"%s\"", t->word[t->at]);
		}
		p->given |= SET_OTHER;
	}
	if (!(p->given & SET_PSN) && (op->flags & OPF_RC))
		script_fail(s, "%s of which psn?", name);
	if (op->aeth && !(p->given & SET_MSN) && (!expected || !packet_echoes(p->kind)) &&
	    kinds[kind].opcode != OP_READ_RESPONSE_MIDDLE)
		script_fail(s, "%s with which msn?", name);
	if (expected)
		return;
	if (!(p->given & SET_LEN) && kinds[kind].cm == NO_CM && (op->flags & OPF_PAYLOAD))
		p->len = full					 ? script_mtu(s)
			 : kinds[kind].opcode == OP_ATOMIC_WRITE ? 8
			 : op->flags & OPF_ATOMIC		 ? 0
								 : DEFAULT_LEN;
	if (!(p->given & SET_TOTAL) && op->reth) {
		if ((op->flags & (OPF_FIRST | OPF_READ)) && kinds[kind].opcode != OP_FLUSH)
			script_fail(s, "%s of how many bytes in total?", name);
		p->total = p->len;
	}
	if (p->len > PAYLOAD_MAX)
		script_fail(s, "%u bytes do not fit a packet", p->len);
}

void packet_inherit(struct packet *p, const struct packet *sent)
{
	struct packet said = *p;

	*p = *sent;
	p->psn = said.psn;
	p->of = said.of;
	p->given = said.given;
	p->native = said.native;
	p->sealed = said.sealed;
	p->own = said.own;
	p->ackreq |= said.ackreq;
	if (said.given & SET_MSN)
		p->msn = said.msn;
	if (said.given & SET_LEN)
		p->len = said.len;
	if (said.given & SET_TOTAL)
		p->total = said.total;
	if (said.given & SET_DATA)
		p->data = said.data;
	if (said.given & SET_VALUE)
		p->value = said.value;
}

/* ---- packet to frame ---- */

void packet_address(const struct script_world *w, enum engine_port side, uint32_t host,
		    struct ip_addr *a)
{
	char text[IP_ADDR_STRLEN];

	snprintf(text, sizeof(text), w->ip6 ? "2001:db8:%u::%x" : "10.%u.0.%u",
		 side == PORT_LAN ? 1 : 2, host);
	ip_addr_parse(text, a);
}

/* Headers that show who sent a packet: each host has its own MAC, TTL, DSCP, flow label and source
 * port. */
static void headers(const struct script_world *w, const struct packet *p, enum engine_port from,
		    struct template *t)
{
	uint8_t mac[2][6] = {{2, 0, 0, 0, 1, (uint8_t)p->near}, {2, 0, 0, 0, 2, (uint8_t)p->far}};
	struct ip_addr near, far;
	bool lan = from == PORT_LAN;
	uint8_t *ip;

	packet_address(w, PORT_LAN, p->near, &near);
	packet_address(w, PORT_WAN, p->far, &far);
	template_make(t, mac[!lan], mac[lan], w->vlan, lan ? &near : &far, lan ? &far : &near,
		      p->sport ? p->sport : (uint16_t)(lan ? 0xc000 + p->near : 0xd000 + p->far));
	ip = t->hdr + t->l3;
	if (w->ip6) {
		ip[1] = lan ? 0x20 : 0x60;
		ip[2] = lan ? 0x12 : 0x34;
		ip[7] = p->ttl ? p->ttl : lan ? 64 : 61;
		ip[1] |= p->congested ? 0x30 : 0;
	} else {
		ip[1] = lan ? 0x6a : 0x0a;
		ip[8] = p->ttl ? p->ttl : lan ? 64 : 61;
		ip[1] |= p->congested ? 0x03 : 0;
	}
}

/* A MAD of the connection manager, spec: IBTA 12.6; @b: its first byte, which is
 * byte 20 of the BTH. The active side's comm id is 0xa00 + id, the
 * passive one's 0xb00 + passive-id;
 * @active: the sender is the active one (REQ, REP, RTU: that is clear). */
static void management(const struct script_world *w, const struct packet *p, bool active,
		       uint8_t *b)
{
	uint32_t ours = 0xa00 + p->id, theirs = 0xb00 + (p->passive_id ? p->passive_id : p->id);
	uint8_t attr = kinds[p->kind].cm;

	memset(b, 0, 256);
	b -= 20;
	b[20] = 1;
	b[21] = 7;
	b[22] = 2;
	b[23] = 3;
	put_be16(b + 36, attr);
	active = attr == CM_IS_REQ || attr == CM_IS_RTU || (attr != CM_IS_REP && active);
	put_be32(b + 44, active ? ours : theirs);
	if (attr != CM_IS_REQ)
		put_be32(b + 48, active ? theirs : ours);
	if (attr == CM_IS_REQ) {
		put_be24(b + 76, p->qpn);
		put_be24(b + 88, (w->psn_base + p->start_psn) & PSN_MASK);
		b[79] = p->takes;
		b[87] = !p->no_credits;
		b[94] = (uint8_t)((__builtin_ctz(p->mtu ? p->mtu : 256) - 7) << 4 | 7);
	} else if (attr == CM_IS_REP) {
		put_be24(b + 56, p->qpn);
		put_be24(b + 64, (w->psn_base + p->start_psn) & PSN_MASK);
		b[68] = p->takes;
		b[70] = !p->no_credits;
	} else if (attr == CM_IS_MRA) {
		b[53] = (uint8_t)(p->service_time << 3);
	} else if (attr == CM_IS_DREQ) {
		put_be24(b + 52, p->qpn);
	}
}

uint32_t packet_build(struct script *s, const struct packet *p, uint32_t i, enum engine_port from,
		      uint8_t *out)
{
	const struct script_world *w = script_world(s);
	uint8_t payload[PAYLOAD_MAX];
	struct template t;
	uint32_t step = p->msn.to > p->msn.from ? i : 0, len;
	uint32_t of = (uint32_t)((p->given & SET_OF) ? p->of : p->psn.from) + i;
	uint8_t syndrome = kinds[p->kind].syndrome;
	struct build_spec b = {
		.t = &t,
		.opcode = kinds[p->kind].opcode,
		.dqpn = from == PORT_LAN ? FAR_QPN : NEAR_QPN,
		.psn = psn_add(w->psn_base, (uint32_t)p->psn.from + i),
		.msn = psn_add(w->msn_base, (uint32_t)p->msn.from + step),
		.ackreq = p->ackreq,
		.va = p->va,
		.rkey = p->rkey,
		.length = p->total,
		.swap_add = 1ull + p->data,
		.atomic_value = p->value,
		.immdt = p->imm,
		.syndrome = aeth_is_nak(syndrome) ? syndrome : syndrome | (uint8_t)p->credit,
		.payload = payload,
		.payload_len = p->len,
	};

	headers(w, p, from, &t);
	if (p->given & SET_SYNDROME)
		b.syndrome = p->syndrome;
	for (uint32_t k = 0; k < p->len; k++)
		payload[k] = (uint8_t)(31 * of + 97 * p->data + k);
	if (kinds[p->kind].cm != NO_CM) {
		b.payload_len = 256;
		management(w, p, (from == PORT_WAN) == script_responder(s), payload);
		b.dqpn = b.sqpn = 1;
		b.qkey = 0x80010000u;
	} else if (p->qpn) {
		b.dqpn = p->qpn;
	}
	if (b.opcode == OP_CNP) {
		len = build_cnp(out, &t, b.dqpn);
	} else {
		len = build_packet(out, &b);
	}
	if (p->bad_icrc) /* a bit of what it covers: the last byte before it */
		out[len - ICRC_LEN - 1] ^= 0x10;
	return len;
}

/* ---- frame to words ---- */

int packet_kind(const uint8_t *data, uint32_t len)
{
	struct frame f;
	enum frame_verdict v = frame_parse(data, len, &f);

	if (v != FRAME_OK && v != FRAME_UNKNOWN_OPCODE)
		return -1;
	for (size_t i = 0; i < KINDS; i++) {
		uint8_t s = kinds[i].syndrome;

		if (kinds[i].opcode != f.opcode)
			continue;
		if (f.opcode == OP_ACK && aeth_known(OP_ACK, frame_aeth_syndrome(&f)) &&
		    s != (aeth_is_nak(frame_aeth_syndrome(&f)) ? frame_aeth_syndrome(&f)
							       : frame_aeth_syndrome(&f) & 0xe0))
			continue;
		if (kinds[i].cm && data[f.bth + 37] != kinds[i].cm)
			continue;
		return (int)i;
	}
	return -1;
}

void packet_describe(struct script *s, const uint8_t *data, uint32_t len, char *out, size_t size)
{
	const struct script_world *w = script_world(s);
	int kind = packet_kind(data, len);
	struct frame f;
	size_t n;

	if (kind < 0) {
		snprintf(out, size, "a frame of %u bytes that is none of ours", len);
		return;
	}
	frame_parse(data, len, &f);
	n = (size_t)snprintf(out, size, "%s psn %d", kinds[kind].name,
			     psn_diff(f.psn, w->psn_base));
	if (f.opcode == 0x1f) /* nothing beyond its BTH is known */
		return;
	if (f.aeth && n < size)
		n += (size_t)snprintf(out + n, size - n, " msn %d",
				      psn_diff(frame_aeth_msn(&f), w->msn_base));
	if (f.aeth && !aeth_known(f.opcode, frame_aeth_syndrome(&f)) && n < size)
		n += (size_t)snprintf(out + n, size - n, " syndrome 0x%x", frame_aeth_syndrome(&f));
	else if (f.opcode == OP_ACK && !aeth_is_nak(frame_aeth_syndrome(&f)) && n < size)
		n += (size_t)snprintf(out + n, size - n,
				      aeth_is_rnr(frame_aeth_syndrome(&f)) ? " timer %u"
									   : " credit %u",
				      frame_aeth_syndrome(&f) & 0x1f);
	if (f.reth && n < size)
		n += (size_t)snprintf(out + n, size - n, " total %u", frame_reth_length(&f));
	if (f.payload_len && n < size)
		n += (size_t)snprintf(out + n, size - n, " len %u", f.payload_len);
	if (f.dqpn != NEAR_QPN && f.dqpn != FAR_QPN && n < size)
		n += (size_t)snprintf(out + n, size - n, " qp 0x%x", f.dqpn);
	if (n < size)
		snprintf(out + n, size - n, "%s%s", f.ackreq ? " ackreq" : "",
			 icrc_ok(&f) ? "" : " bad-icrc");
}

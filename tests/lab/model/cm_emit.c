// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Offsets in put_*() below count from the BTH: BTH 12, DETH 8, then the
 * MAD of 256 bytes from 20 on.
 *
 * The starting PSN that a side announces is the one at which the *other* side will send: its own
 * rq_psn.
 */
#include <string.h>

#include "tests/lab/model/cm_emit.h"
#include "cli/wanem/prng.h"

#define MAD_LEN 256
#define RESENDS 15

static uint8_t mtu_code(uint32_t mtu)
{
	return (uint8_t)(__builtin_ctz(mtu ? mtu : 256) - 7);
}

static void put_req(uint8_t *b, const struct ip_addr *src, const struct ip_addr *dst,
		    const struct cm *c)
{
	/* rdma_cm, TCP port space, the port of NVMe over RDMA or any other */
	put_be64(b + 52, 0x0000000001060000ull | (c->storage == STORAGE_NVME ? 4420 : 7174));
	put_be64(b + 60, 0x505400fffe000000ull | src->b[15]);
	put_be24(b + 76, c->lqpn);
	b[79] = c->responder_resources;
	b[83] = c->initiator_depth;
	b[87] = (uint8_t)(20 << 3 | (c->rc ? 0 : 1) << 1 | c->flow_control);
	put_be24(b + 88, c->starting_psn);
	b[91] = (uint8_t)(20 << 3 | (c->retry_count & 7));
	put_be16(b + 92, 0xffff);
	b[94] = (uint8_t)(mtu_code(c->path_mtu) << 4 | (c->rnr_retry & 7));
	b[95] = 15 << 4;
	put_be32(b + 96, 0xffffffffu);
	memcpy(b + 100, src->b, 16);
	memcpy(b + 116, dst->b, 16);
	b[137] = 64;
	b[139] = (uint8_t)(c->ack_timeout << 3);
	/* Private data: the rdma_cm header with port and addresses. */
	b[185] = ip_addr_is_v4(src) ? 0x40 : 0x60;
	put_be16(b + 186, 0xba36);
	memcpy(b + 188, src->b, 16);
	memcpy(b + 204, dst->b, 16);
	if (ip_addr_is_v4(src)) {
		memset(b + 188, 0, 12);
		memset(b + 204, 0, 12);
	}
}

static void put_rep(uint8_t *b, const struct ip_addr *src, const struct cm *c)
{
	put_be24(b + 56, c->lqpn);
	put_be24(b + 64, c->starting_psn);
	b[68] = c->responder_resources;
	b[69] = c->initiator_depth;
	b[70] = (uint8_t)(15 << 3 | c->flow_control);
	b[71] = (uint8_t)(c->rnr_retry << 5);
	put_be64(b + 72, 0x505400fffe000000ull | src->b[15]);
}

uint32_t cm_emit(uint8_t *out, struct rc_header *h, const struct ip_addr *src,
		 const struct ip_addr *dst, const struct cm *c, uint32_t psn)
{
	struct rc_frame_spec s = {.opcode = OP_UD_SEND_ONLY,
				  .ackreq = true,
				  .dqpn = 1,
				  .psn = psn,
				  .payload_len = MAD_LEN,
				  .ext_len = 8};
	uint8_t body[20 + MAD_LEN] = {0};
	uint32_t off, crc;

	put_be32(s.ext, 0x80010000u);
	put_be32(s.ext + 4, 1);
	body[20] = 1;
	body[21] = 7;
	body[22] = 2;
	body[23] = 3;
	put_be64(body + 28, c->transaction_id);
	put_be16(body + 36, (uint16_t)c->type);
	put_be32(body + 44, c->local_id);
	if (c->type != CM_REQ)
		put_be32(body + 48, c->remote_id);
	if (c->type == CM_REQ)
		put_req(body, src, dst, c);
	else if (c->type == CM_REP)
		put_rep(body, src, c);
	else if (c->type == CM_DREQ)
		put_be24(body + 52, c->rqpn);
	off = rc_frame_head(out, h, &s, &crc);
	crc = crc32_copy(crc, out + off, body + 20, MAD_LEN);
	return rc_frame_tail(out, off, MAD_LEN, crc);
}

/* The handshake */

static void prepare(struct rc_cm *cm, enum cm_type type)
{
	cm->out.type = type;
	cm->pending = true;
	cm->tries = 0;
	cm->resend_at = 0;
}

void rc_cm_listen(struct rc_cm *cm, struct rc_qp_config *cfg, uint32_t id, uint64_t interval)
{
	memset(cm, 0, sizeof(*cm));
	cm->cfg = cfg;
	cm->interval = interval;
	cm->resend_at = RC_NEVER;
	rc_header_init(&cm->header, cfg->smac, cfg->dmac, cfg->vlan, &cfg->src, &cfg->dst,
		       cfg->sport);
	cm->out = (struct cm){.local_id = id,
			      .lqpn = cfg->lqpn,
			      .starting_psn = cfg->rq_psn,
			      .path_mtu = cfg->mtu,
			      .responder_resources = (uint8_t)cfg->resp_rd,
			      .initiator_depth = (uint8_t)cfg->max_rd,
			      .retry_count = cfg->retry_cnt > 7 ? 7 : cfg->retry_cnt,
			      .rnr_retry = cfg->rnr_retry,
			      .ack_timeout = cfg->timeout_exp,
			      .flow_control = cfg->credits,
			      .rc = true};
}

void rc_cm_connect(struct rc_cm *cm, struct rc_qp_config *cfg, uint32_t id, uint64_t interval)
{
	rc_cm_listen(cm, cfg, id, interval);
	cm->out.transaction_id = (uint64_t)id << 32 | splitmix64(id) >> 32;
	cm->state = RC_CM_REQ_SENT;
	prepare(cm, CM_REQ);
}

void rc_cm_disconnect(struct rc_cm *cm)
{
	cm->state = RC_CM_DREQ_SENT;
	cm->out.rqpn = cm->cfg->rqpn;
	prepare(cm, CM_DREQ);
}

static void learn(struct rc_cm *cm, const struct cm *in)
{
	cm->out.remote_id = in->local_id;
	cm->out.transaction_id = in->transaction_id;
	cm->cfg->rqpn = in->lqpn;
	cm->cfg->sq_psn = in->starting_psn;
	if (in->path_mtu && in->path_mtu < cm->cfg->mtu)
		cm->cfg->mtu = in->path_mtu;
}

bool rc_cm_rx(struct rc_cm *cm, uint64_t now, const struct frame *f)
{
	struct cm in;

	(void)now;
	if (cm_parse(f, &in) == CM_NONE || !ip_addr_eq(&f->src, &cm->cfg->dst))
		return false;
	if (in.type == CM_REQ) {
		if (cm->state == RC_CM_IDLE) {
			learn(cm, &in);
			cm->state = RC_CM_REP_SENT;
			prepare(cm, CM_REP);
			return true;
		}
		if (in.local_id != cm->out.remote_id)
			return false;
		if (cm->state == RC_CM_REP_SENT)
			cm->resend_at = 0; /* the REP was lost */
		return true;
	}
	if (in.remote_id != cm->out.local_id)
		return false;
	switch (in.type) {
	case CM_REP:
		if (cm->state == RC_CM_REQ_SENT) {
			learn(cm, &in);
			cm->state = RC_CM_UP;
		}
		if (cm->state == RC_CM_UP)
			prepare(cm, CM_RTU); /* again for a REP repeated */
		break;
	case CM_RTU:
		if (cm->state == RC_CM_REP_SENT) {
			cm->state = RC_CM_UP;
			cm->pending = false;
		}
		break;
	case CM_DREQ:
		cm->state = RC_CM_DOWN;
		prepare(cm, CM_DREP);
		break;
	case CM_DREP:
		if (cm->state == RC_CM_DREQ_SENT) {
			cm->state = RC_CM_DOWN;
			cm->pending = false;
		}
		break;
	case CM_REJ:
		cm->state = RC_CM_FAILED;
		cm->pending = false;
		break;
	default:
		break;
	}
	return true;
}

uint32_t rc_cm_poll(struct rc_cm *cm, uint64_t now, uint8_t *out)
{
	bool once = cm->out.type == CM_RTU || cm->out.type == CM_DREP;

	if (!cm->pending || now < cm->resend_at)
		return 0;
	if (cm->tries++ == RESENDS) {
		cm->state = RC_CM_FAILED;
		cm->pending = false;
		return 0;
	}
	cm->resend_at = now + cm->interval;
	cm->pending = !once;
	return cm_emit(out, &cm->header, &cm->cfg->src, &cm->cfg->dst, &cm->out, cm->psn++);
}

uint64_t rc_cm_next(const struct rc_cm *cm)
{
	return cm->pending ? cm->resend_at : RC_NEVER;
}

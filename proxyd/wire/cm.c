// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CM datagrams. A MAD has 256 bytes, so one check of the length covers every field read here.
 * Offsets are the CM message's own, from the first byte of the MAD (20 bytes after the BTH begins).
 */
#include "wire/cm.h"

#include <string.h>

#include "wire/bytes.h"

#define MAD_LEN		     256
#define MAD_BASE_VERSION     1
#define MAD_CLASS_CM	     0x07
#define MAD_CLASS_VERSION_CM 2
#define MAD_METHOD_SEND	     0x03
#define GSI_QPN		     1
#define GSI_QKEY	     0x80010000u

/* rdma_cm: service ids of RDMA_PS_TCP, with the port in the last two bytes; its header before
 * private data */
#define SERVICE_TCP   0x0000000001060000ull
#define SERVICE_PORT  0xffffull
#define PRIVATE_AT    164
#define RDMA_CM_BYTES 36

#define NVME_PORT     4420
#define ISER_PORT     3260
#define NFS_PORT      20049
#define RPCRDMA_MAGIC 0xf6ab0e18u

/* The protocol whose service the REQ @m asks for. A service at another port is not recognised,
 * unless it is RPC over RDMA, which has a magic number. */
static enum storage_protocol storage_service(const uint8_t *m)
{
	uint64_t service = get_be64(m + 32);

	if ((service & ~SERVICE_PORT) != SERVICE_TCP)
		return STORAGE_UNKNOWN;
	if (get_be32(m + PRIVATE_AT + RDMA_CM_BYTES) == RPCRDMA_MAGIC)
		return STORAGE_NFS;
	switch (service & SERVICE_PORT) {
	case NVME_PORT:
		return STORAGE_NVME;
	case ISER_PORT:
		return STORAGE_ISER;
	case NFS_PORT:
		return STORAGE_NFS;
	default:
		return STORAGE_UNKNOWN;
	}
}

enum cm_type cm_parse(const struct frame *f, struct cm *out)
{
	const uint8_t *m = f->data + f->payload;
	uint16_t attribute;

	memset(out, 0, sizeof(*out));
	if (f->opcode != OP_UD_SEND_ONLY || f->dqpn != GSI_QPN || f->payload_len < MAD_LEN ||
	    get_be32(f->data + f->deth) != GSI_QKEY)
		return CM_NONE;
	if (m[0] != MAD_BASE_VERSION || m[1] != MAD_CLASS_CM || m[3] != MAD_METHOD_SEND)
		return CM_NONE;
	attribute = get_be16(m + 16);
	if (attribute < CM_REQ || attribute > CM_DREP)
		return CM_NONE;

	out->type = (enum cm_type)attribute;
	out->transaction_id = get_be64(m + 8);
	out->local_id = get_be32(m + 24);
	if (out->type != CM_REQ)
		out->remote_id = get_be32(m + 28);
	switch (out->type) {
	case CM_REQ:
		out->lqpn = get_be24(m + 56);
		out->responder_resources = m[59];
		out->initiator_depth = m[63];
		/* Service type is 2 bits; the rest of the byte is flow control and remote CM
		 * timeout. */
		out->rc = (m[67] & 0x06) == 0;
		out->flow_control = m[67] & 1;
		out->starting_psn = get_be24(m + 68);
		out->retry_count = m[71] & 7;
		if (m[74] >> 4 >= 1 && m[74] >> 4 <= 5)
			out->path_mtu = 128u << (m[74] >> 4);
		out->rnr_retry = m[74] & 7;
		out->ack_timeout = m[119] >> 3;
		out->storage = storage_service(m);
		break;
	case CM_REP:
		out->lqpn = get_be24(m + 36);
		out->starting_psn = get_be24(m + 44);
		out->responder_resources = m[48];
		out->initiator_depth = m[49];
		out->flow_control = m[50] & 1;
		out->rnr_retry = m[51] >> 5;
		break;
	case CM_MRA:
		out->service_time = m[33] >> 3;
		break;
	case CM_DREQ:
		out->rqpn = get_be24(m + 32);
		break;
	default:
		break;
	}
	return out->type;
}

uint32_t cm_build_dreq(uint8_t *out, const struct template *t, uint32_t psn, uint64_t tid,
		       uint32_t local_id, uint32_t remote_id, uint32_t rqpn)
{
	uint8_t m[MAD_LEN] = {MAD_BASE_VERSION, MAD_CLASS_CM, MAD_CLASS_VERSION_CM,
			      MAD_METHOD_SEND};
	const struct build_spec s = {
		.t = t,
		.opcode = OP_UD_SEND_ONLY,
		.dqpn = GSI_QPN,
		.psn = psn,
		.ackreq = true, /* as the kernel does: its GSI sends are signalled */
		.qkey = GSI_QKEY,
		.sqpn = GSI_QPN,
		.payload = m,
		.payload_len = sizeof(m),
	};

	put_be64(m + 8, tid);
	put_be16(m + 16, CM_DREQ);
	put_be32(m + 24, local_id);
	put_be32(m + 28, remote_id);
	put_be24(m + 32, rqpn);
	return build_packet(out, &s);
}

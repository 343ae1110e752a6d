// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NVMe over RDMA, as far as it tells which memory the target is to READ (NVM Express base
 * specification 2.0, 3.3.1 and 4.1.2; RDMA transport specification 1.0). A capsule is a submission
 * queue entry of 64 bytes, little-endian, and data or more descriptors behind it:
 *
 *	0	opcode; its low two bits tell which way data goes. 0x7f: Fabrics command
 *	1	bits 0-1 fused, bits 6-7 how the data is described (01b, 10b: by SGL)
 *	2	command identifier
 *	4	of a Fabrics command its type, with the same two bits
 *	24	the first descriptor: address (8), length (3), key (4), type and subtype (1)
 *
 * Linux gives one keyed descriptor (type 4, subtype 0, or 15: invalidate the key), or data in the
 * capsule. SPDK may give a list of keyed descriptors instead, which stands in the capsule: that is
 * not looked into. A response is a completion queue entry of 16 bytes with the identifier at 12.
 *
 * A read command carries a keyed descriptor as well, for the target's WRITEs. Its memory may not be
 * READ.
 */
#include "wire/storage.h"

#include "wire/bytes.h"

#define SQE_BYTES	 64u
#define CQE_BYTES	 16u
#define OPCODE_FABRICS	 0x7fu
#define DATA_NONE	 0u
#define DATA_TO_TARGET	 1u
#define DATA_FROM_TARGET 2u
#define FUSED		 0x03u
#define TYPE_DATA	 0x0u /* with subtype 1: in the capsule */
#define TYPE_KEYED	 0x4u
#define SUBTYPE_ADDRESS	 0x0u
#define SUBTYPE_OFFSET	 0x1u
#define SUBTYPE_INV	 0xfu

static bool by_sgl(uint8_t flags)
{
	return flags >> 6 == 1 || flags >> 6 == 2;
}

enum storage_verdict nvme_command(const uint8_t *p, uint32_t len, struct storage_command *c)
{
	uint8_t way, type, subtype;

	if (len < SQE_BYTES)
		return STORAGE_NONE;
	way = (p[0] == OPCODE_FABRICS ? p[4] : p[0]) & 3;
	type = p[39] >> 4;
	subtype = p[39] & 15;
	*c = (struct storage_command){.va = get_le64(p + 24),
				      .length = get_le24(p + 32),
				      .rkey = get_le32(p + 35),
				      .id = get_le16(p + 2)};
	if (way == DATA_NONE || way == DATA_FROM_TARGET)
		return STORAGE_QUIET;
	if (type == TYPE_DATA && subtype == SUBTYPE_OFFSET)
		return STORAGE_QUIET;
	if (way != DATA_TO_TARGET || !by_sgl(p[1]) || p[1] & FUSED || type != TYPE_KEYED ||
	    (subtype != SUBTYPE_ADDRESS && subtype != SUBTYPE_INV) || len != SQE_BYTES)
		return STORAGE_LOOSE;
	if (!c->length)
		return STORAGE_QUIET;
	return c->va + c->length < c->va ? STORAGE_LOOSE : STORAGE_FETCH;
}

bool nvme_response(const uint8_t *p, uint32_t len, uint16_t *id)
{
	if (len != CQE_BYTES)
		return false;
	*id = get_le16(p + 12);
	return true;
}

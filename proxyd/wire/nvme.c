// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * NVMe over RDMA, as far as needed to know which memory the target will READ (NVM Express base
 * specification, spec: NVMe 2.0 3.3.1 and spec: NVMe 2.0 4.1.2; RDMA transport, spec: NVMe-RDMA
 * 1.0). A capsule is a submission queue entry of 64 bytes, little-endian, and data or more
 * descriptors behind it:
 *
 *	0	opcode; its low two bits tell which way data goes. 0x7f: Fabrics command
 *	1	bits 0-1 fused, bits 6-7 how the data is described (01b, 10b: by SGL)
 *	2	command identifier
 *	4	of a Fabrics command its type, with the same two bits
 *	16	metadata pointer
 *	24	the first descriptor: address (8), length (3), key (4), type and subtype (1)
 *	48	of a command that writes, bits 26-29: protection information
 *
 * Linux gives one keyed descriptor (type 4, subtype 0, or 15: invalidate the key), or data in the
 * capsule. SPDK may give a list: then the first descriptor has the length of the descriptors behind
 * the entry (type 3, the last segment, at offset 0), which are keyed; its target READs each. A
 * response is a completion queue entry of 16 bytes with the identifier at 12.
 *
 * A read command has a keyed descriptor, too, for the target's WRITEs. Its memory may not be READ.
 * A command with metadata or protection information (T10-PI) is STORAGE_LOOSE: the target's network
 * card may add or remove that information, so what it READs differs from the descriptor.
 */
#include "wire/storage.h"

#include "wire/bytes.h"

#define SQE_BYTES	 64u
#define CQE_BYTES	 16u
#define SGL_BYTES	 16u
#define OPCODE_FABRICS	 0x7fu
#define OPCODE_WRITE	 0x01u
#define OPCODE_COMPARE	 0x05u
#define OPCODE_APPEND	 0x7du
#define PROTECTION	 0x3c000000u /* of command dword 12: PRACT and PRCHK */
#define DATA_NONE	 0u
#define DATA_TO_TARGET	 1u
#define DATA_FROM_TARGET 2u
#define FUSED		 0x03u
#define TYPE_DATA	 0x0u /* with subtype 1: in the capsule */
#define TYPE_LAST	 0x3u
#define TYPE_KEYED	 0x4u
#define SUBTYPE_ADDRESS	 0x0u
#define SUBTYPE_OFFSET	 0x1u
#define SUBTYPE_INV	 0xfu

static bool by_sgl(uint8_t flags)
{
	return flags >> 6 == 1 || flags >> 6 == 2;
}

static bool protected(const uint8_t *p)
{
	bool blocks = p[0] == OPCODE_WRITE || p[0] == OPCODE_COMPARE || p[0] == OPCODE_APPEND;

	return get_le64(p + 16) || (blocks && get_le32(p + 48) & PROTECTION);
}

/* Add the keyed descriptor at @d to the buffers of @c. */
static bool keyed(const uint8_t *d, struct storage_command *c)
{
	uint8_t subtype = d[15] & 15;

	return d[15] >> 4 == TYPE_KEYED && (subtype == SUBTYPE_ADDRESS || subtype == SUBTYPE_INV) &&
	       storage_add(c, get_le64(d), get_le24(d + 8), get_le32(d + 11));
}

/* Read all descriptors of the capsule @s. False if it has anything else. */
static bool descriptors(const struct storage_send *s, struct storage_command *c)
{
	const uint8_t *first = s->p + 24;
	uint32_t bytes;

	if (!s->whole)
		return false;
	if (first[15] >> 4 == TYPE_KEYED)
		return s->len == SQE_BYTES && keyed(first, c);
	bytes = get_le32(first + 8);
	if (first[15] != (TYPE_LAST << 4 | SUBTYPE_OFFSET) || get_le64(first) || !bytes ||
	    bytes % SGL_BYTES || s->len - SQE_BYTES != bytes)
		return false;
	for (uint32_t at = SQE_BYTES; at < s->len; at += SGL_BYTES)
		if (!keyed(s->p + at, c))
			return false;
	return true;
}

enum storage_verdict nvme_command(const struct storage_send *s, struct storage_command *c)
{
	const uint8_t *p = s->p;
	uint8_t way;

	if (s->len < SQE_BYTES)
		return STORAGE_NONE;
	way = (p[0] == OPCODE_FABRICS ? p[4] : p[0]) & 3;
	c->id = get_le16(p + 2);
	c->count = 0;
	if (way == DATA_NONE || way == DATA_FROM_TARGET)
		return STORAGE_QUIET;
	if (p[39] == (TYPE_DATA << 4 | SUBTYPE_OFFSET))
		return STORAGE_QUIET;
	if (way != DATA_TO_TARGET || !by_sgl(p[1]) || p[1] & FUSED || protected(p) ||
	    !descriptors(s, c))
		return STORAGE_LOOSE;
	return c->count ? STORAGE_FETCH : STORAGE_QUIET;
}

enum storage_answer nvme_answer(const struct storage_send *s, uint32_t *id)
{
	if (!s->whole || s->len != CQE_BYTES)
		return STORAGE_FOREIGN;
	*id = get_le16(s->p + 12);
	return STORAGE_DONE;
}

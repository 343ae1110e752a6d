// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * iSCSI over RDMA, as far as needed to know which memory the target will READ (iSER, spec: RFC
 * 7145; iSCSI, spec: RFC 7143). Each iSCSI PDU is a SEND of the iSER header, the basic header
 * segment, additional ones, and data; there are no digests. All big-endian:
 *
 *	0	opcode in the high four bits: 1, an iSCSI PDU; 0x08: the write STag is valid,
 *		0x04: the read STag is
 *	4	write STag; 8: write base offset; 16: read STag; 20: read base offset
 *	28	basic header: opcode in the low six bits, 0x40: immediate
 *	29	of a SCSI command: 0x80 final, 0x40 data to the initiator, 0x20 data to the target
 *	32	length of the additional headers, in words; 33: length of the data, in bytes
 *	44	initiator task tag
 *	48	of a SCSI command: expected data transfer length
 *	60	command descriptor block
 *
 * A command that writes may bring the first of its data with it (immediate), and in PDUs of their
 * own behind it when it is not final. The target READs the rest, in the STag from the base offset
 * on. Linux has moved the base offset past the immediate data. If another initiator has not, the
 * target READs a different range, but what we take for the buffer still lies within it. How much
 * comes unsolicited behind the command is only in the login, so a command that is not final is
 * STORAGE_LOOSE; so is a bidirectional command, or one with protection information in its data.
 *
 * The SCSI response has the task tag. An aborted task has no response: only the answer to the task
 * management function ends it, and that does not tell which task it was.
 */
#include "wire/storage.h"

#include "wire/bytes.h"

#define ISER_BYTES     28u
#define HEADER_BYTES   (ISER_BYTES + 48)
#define ISER_CONTROL   0x10u
#define ISER_HELLOS    0x30u /* the answer to a Hello */
#define ISER_WSV       0x08u
#define ISER_RSV       0x04u
#define OPCODE	       0x3fu
#define SCSI_COMMAND   0x01u
#define NOP_IN	       0x20u
#define SCSI_RESPONSE  0x21u
#define TASK_RESPONSE  0x22u
#define LOGIN_RESPONSE 0x23u
#define TEXT_RESPONSE  0x24u
#define LOGOUT_ANSWER  0x26u
#define ASYNC_MESSAGE  0x32u
#define REJECT	       0x3fu
#define FINAL	       0x80u
#define DATA_IN	       0x40u
#define DATA_OUT       0x20u
#define WRPROTECT      0xe0u /* of the second byte of the command descriptor block */

/* Whether the data of the command descriptor block @cdb may bear protection information. */
static bool protected(const uint8_t *cdb)
{
	switch (cdb[0]) {
	case 0x2a: /* WRITE (10), (16), (12) */
	case 0x8a:
	case 0xaa:
	case 0x2e: /* WRITE AND VERIFY */
	case 0x8e:
	case 0xae:
	case 0x41: /* WRITE SAME */
	case 0x93:
	case 0x89: /* COMPARE AND WRITE */
	case 0x9c: /* WRITE ATOMIC (16) */
		return cdb[1] & WRPROTECT;
	case 0x7f: /* commands of 32 bytes, which continue in an additional header */
		return true;
	default:
		return false;
	}
}

/* Whether the length of @s fits its headers and @data bytes. */
static bool fits(const struct storage_send *s, uint32_t data)
{
	uint32_t bytes = HEADER_BYTES + 4u * s->p[32] + data;

	if (!s->whole)
		return s->len < bytes;
	return s->len == bytes || s->len == ((bytes + 3) & ~3u); /* padded */
}

enum storage_verdict iser_command(const struct storage_send *s, struct storage_command *c)
{
	const uint8_t *p = s->p;
	uint32_t data, expected;
	uint8_t flags;

	if (s->len < HEADER_BYTES || (p[0] & 0xf0) != ISER_CONTROL ||
	    (p[28] & ~0x40) != SCSI_COMMAND)
		return STORAGE_NONE;
	flags = p[29];
	data = get_be24(p + 33);
	c->id = get_be32(p + 44);
	expected = get_be32(p + 48);
	c->count = 0;
	if (!(flags & DATA_OUT) && !(p[0] & ISER_WSV))
		return STORAGE_QUIET;
	if (!(flags & DATA_OUT) || flags & DATA_IN || !(flags & FINAL) || data > expected ||
	    p[0] & 0x03 || p[0] & ISER_RSV || get_be24(p + 1) || protected(p + 60) ||
	    !fits(s, data))
		return STORAGE_LOOSE;
	if (data == expected)
		return STORAGE_QUIET;
	if (!(p[0] & ISER_WSV) ||
	    !storage_add(c, get_be64(p + 8), expected - data, get_be32(p + 4)))
		return STORAGE_LOOSE;
	return STORAGE_FETCH;
}

enum storage_answer iser_answer(const struct storage_send *s, uint32_t *id)
{
	const uint8_t *p = s->p;

	if (s->len >= ISER_BYTES && (p[0] & 0xf0) == ISER_HELLOS)
		return STORAGE_OTHER;
	if (s->len < HEADER_BYTES || (p[0] & 0xf0) != ISER_CONTROL)
		return STORAGE_FOREIGN;
	switch (p[28] & OPCODE) {
	case SCSI_RESPONSE:
		*id = get_be32(p + 44);
		return STORAGE_DONE;
	case NOP_IN:
	case LOGIN_RESPONSE:
	case TEXT_RESPONSE:
		return STORAGE_OTHER;
	case TASK_RESPONSE:
	case LOGOUT_ANSWER:
	case ASYNC_MESSAGE:
	case REJECT:
		return STORAGE_ENDS;
	default:
		return STORAGE_FOREIGN;
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands and responses of NVMe over RDMA, iSER and NFS over RDMA: see world_form.h. */
#include "tests/scenario/world_form.h"

#include <string.h>

#include "wire/bytes.h"

/* ---- NVMe ---- */

#define SQE_BYTES  64u
#define CQE_BYTES  16u
#define SGL_BYTES  16u
#define NVME_WRITE 0x01u
#define NVME_READ  0x02u
#define KEYED	   0x40u
#define KEYED_INV  0x4fu
#define IN_CAPSULE 0x01u
#define LAST	   0x31u

static void put_keyed(const struct form_io *io, uint32_t i, uint8_t *d)
{
	put_le64(d, io->part[i].va);
	put_le32(d + 8, io->part[i].length); /* 24 bits, and then the key */
	put_le32(d + 11, io->part[i].key);
	d[15] = io->one_key ? KEYED : KEYED_INV;
}

static uint32_t nvme_put(const struct form_io *io, uint8_t *b)
{
	memset(b, 0, SQE_BYTES);
	b[0] = io->write ? NVME_WRITE : NVME_READ;
	b[1] = 0x40;
	put_le16(b + 2, (uint16_t)io->id);
	put_le64(b + 40, io->number);
	if (io->inlined) {
		put_le32(b + 32, io->length);
		b[39] = IN_CAPSULE;
		return SQE_BYTES;
	}
	if (io->parts == 1) {
		put_keyed(io, 0, b + 24);
		return SQE_BYTES;
	}
	put_le32(b + 32, io->parts * SGL_BYTES);
	b[39] = LAST;
	for (uint32_t i = 0; i < io->parts; i++)
		put_keyed(io, i, b + SQE_BYTES + SGL_BYTES * i);
	return SQE_BYTES + SGL_BYTES * io->parts;
}

static bool nvme_get(const uint8_t *b, uint32_t len, struct form_io *io, uint32_t *data)
{
	const uint8_t *d = b + 24;

	if (len < SQE_BYTES)
		return false;
	io->write = b[0] == NVME_WRITE;
	io->id = get_le16(b + 2);
	io->number = get_le64(b + 40);
	*data = SQE_BYTES;
	if (d[15] == IN_CAPSULE) {
		io->inlined = io->length = get_le32(d + 8);
		return len == SQE_BYTES + io->length;
	}
	io->parts = 1;
	if (d[15] == LAST) {
		io->parts = get_le32(d + 8) / SGL_BYTES;
		if (io->parts > STORAGE_PARTS || len != SQE_BYTES + SGL_BYTES * io->parts)
			return false;
		d = b + SQE_BYTES;
	}
	for (uint32_t i = 0; i < io->parts; i++, d += SGL_BYTES) {
		io->part[i].va = get_le64(d);
		io->part[i].length = get_le24(d + 8);
		io->part[i].key = get_le32(d + 11);
		io->length += io->part[i].length;
	}
	return true;
}

/* ---- iSER ---- */

#define PDU_BYTES 76u
#define BHS	  28u
#define CDB	  60u

static uint32_t iser_pdu(uint8_t header, uint8_t opcode, uint8_t flags, uint32_t id, uint8_t *b)
{
	memset(b, 0, PDU_BYTES);
	b[0] = header;
	b[BHS] = opcode;
	b[BHS + 1] = flags;
	put_be32(b + BHS + 16, id);
	return PDU_BYTES;
}

static uint32_t iser_put(const struct form_io *io, uint8_t *b)
{
	uint8_t *stag = b + (io->write ? 4 : 16);

	iser_pdu(0x10, 0x01, io->write ? 0xa1 : 0xc1, io->id, b);
	put_be24(b + BHS + 5, io->inlined);
	put_be32(b + BHS + 20, io->length);
	b[CDB] = io->write ? 0x8a : 0x88;
	put_be64(b + CDB + 2, io->number);
	if (io->parts) {
		b[0] |= io->write ? 0x08 : 0x04;
		put_be32(stag, io->part[0].key);
		put_be64(stag + 4, io->part[0].va);
	}
	return PDU_BYTES;
}

static bool iser_get(const uint8_t *b, uint32_t len, struct form_io *io, uint32_t *data)
{
	const uint8_t *stag;

	if (len < PDU_BYTES || b[BHS] != 0x01)
		return false;
	io->write = b[BHS + 1] == 0xa1;
	io->id = get_be32(b + BHS + 16);
	io->inlined = get_be24(b + BHS + 5);
	io->length = get_be32(b + BHS + 20);
	io->number = get_be64(b + CDB + 2);
	stag = b + (io->write ? 4 : 16);
	io->parts = b[0] & 0x0c ? 1 : 0;
	io->part[0].key = get_be32(stag);
	io->part[0].va = get_be64(stag + 4);
	io->part[0].length = io->length - io->inlined;
	*data = PDU_BYTES;
	return len == PDU_BYTES + io->inlined;
}

/* ---- NFS ---- */

#define NFS_PROGRAM 100003u
#define CALLBACK    0x40000000u

static uint8_t *word(uint8_t *p, uint32_t v)
{
	put_be32(p, v);
	return p + 4;
}

static uint8_t *segment(uint8_t *p, const struct form_io *io, uint32_t i)
{
	p = word(p, io->part[i].key);
	p = word(p, io->part[i].length);
	put_be64(p, io->part[i].va);
	return p + 8;
}

static uint8_t *rdma_header(uint8_t *p, uint32_t xid)
{
	p = word(p, xid);
	p = word(p, 1);
	p = word(p, 32);
	return word(p, 0);
}

static uint32_t nfs_put(const struct form_io *io, uint8_t *b)
{
	uint8_t *p = rdma_header(b, io->id);

	for (uint32_t i = 0; i < io->parts && io->write; i++)
		p = segment(word(word(p, 1), 0x94), io, i);
	p = word(p, 0);
	if (!io->write) {
		p = word(word(p, 1), io->parts);
		for (uint32_t i = 0; i < io->parts; i++)
			p = segment(p, io, i);
	}
	p = word(word(p, 0), 0);
	p = word(word(word(p, io->id), 0), 2);
	p = word(word(word(p, NFS_PROGRAM), 3), io->write ? 7 : 6);
	put_be64(p, io->number);
	p = word(p + 8, io->inlined);
	return (uint32_t)(p - b);
}

static bool nfs_get(const uint8_t *b, uint32_t len, struct form_io *io, uint32_t *data)
{
	const uint8_t *p = b + 16;
	uint32_t listed = 0;

	if (len < 64 || get_be32(b + 12))
		return false;
	io->id = get_be32(b);
	io->write = true;
	for (; get_be32(p) && io->parts < STORAGE_PARTS; p += 24) {
		io->part[io->parts].key = get_be32(p + 8);
		io->part[io->parts].length = get_be32(p + 12);
		io->part[io->parts++].va = get_be64(p + 16);
	}
	p += 4;
	if (get_be32(p)) {
		io->write = false;
		listed = get_be32(p + 4);
		for (p += 8; listed && io->parts < STORAGE_PARTS; p += 16, listed--) {
			io->part[io->parts].key = get_be32(p);
			io->part[io->parts].length = get_be32(p + 4);
			io->part[io->parts++].va = get_be64(p + 8);
		}
	}
	p += 8 + 24; /* ends of the lists, the call */
	io->number = get_be64(p);
	io->inlined = io->length = get_be32(p + 8);
	for (uint32_t i = 0; i < io->parts; i++)
		io->length += io->part[i].length;
	*data = (uint32_t)(p + 12 - b);
	return len == *data + io->inlined;
}

static uint32_t nfs_answer(uint32_t xid, uint32_t type, uint8_t *b)
{
	uint8_t *p = rdma_header(b, xid);

	p = word(word(word(p, 0), 0), 0);
	p = word(word(p, xid), type);
	p = word(word(p, type ? 0 : 2), type ? 0 : CALLBACK);
	return (uint32_t)(p - b);
}

/* ---- all ---- */

uint32_t form_command(enum storage_form f, const struct form_io *io, uint8_t *out)
{
	return f == FORM_NVME	? nvme_put(io, out)
	       : f == FORM_ISER ? iser_put(io, out)
				: nfs_put(io, out);
}

bool form_read_command(enum storage_form f, const uint8_t *b, uint32_t len, struct form_io *io,
		       uint32_t *data)
{
	memset(io, 0, sizeof(*io));
	return f == FORM_NVME	? nvme_get(b, len, io, data)
	       : f == FORM_ISER ? iser_get(b, len, io, data)
				: nfs_get(b, len, io, data);
}

uint32_t form_response(enum storage_form f, uint32_t id, uint8_t *out)
{
	if (f == FORM_ISER)
		return iser_pdu(0x10, 0x21, 0x80, id, out);
	if (f == FORM_NFS)
		return nfs_answer(id, 1, out);
	memset(out, 0, CQE_BYTES);
	put_le16(out + 12, (uint16_t)id);
	return CQE_BYTES;
}

bool form_read_response(enum storage_form f, const uint8_t *b, uint32_t len, uint32_t *id)
{
	if (f == FORM_NVME) {
		*id = get_le16(b + 12);
		return len == CQE_BYTES;
	}
	*id = get_be32(f == FORM_ISER ? b + BHS + 16 : b);
	return f == FORM_ISER ? b[BHS] == 0x21 : get_be32(b + 32) == 1;
}

uint32_t form_chatter(enum storage_form f, uint32_t what, uint8_t *out)
{
	/* NOP-In; an asynchronous message, after which any command might be over */
	if (f == FORM_ISER)
		return iser_pdu(0x10, what % 2 ? 0x20 : 0x32, 0x80, 0xffffffff, out);
	if (f == FORM_NFS)
		return nfs_answer(what, 0, out); /* a call of the server */
	return 0;
}

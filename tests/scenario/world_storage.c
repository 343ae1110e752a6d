// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Initiator and target: see world_storage.h. */
#include "tests/scenario/world_storage.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/pattern.h"
#include "wire/bytes.h"

#define SQE_BYTES   64u
#define CQE_BYTES   16u
#define NVME_WRITE  0x01u
#define NVME_READ   0x02u
#define KEYED	    0x40u
#define KEYED_INV   0x4fu
#define IN_CAPSULE  0x01u
#define INLINE_MOST 8192u
/* Between two buffers, so that one that is overrun shows; before the first one what readers.h calls
 * fixed memory. */
#define GAP	    4096u
#define FIRST_AT    8192u
/* Work requests of the target: the command's number, and whether it is a READ. */
#define WR_READ	    (1ull << 32)

/* One command, as either side knows it. @left: READs that the target awaits; @sending: the capsule
 * is the host's, which may have to send it again */
struct command {
	bool live, sending, write, inlined, refused;
	uint16_t id;
	uint32_t key, length, left;
	uint64_t va, number, began;
	uint8_t capsule[SQE_BYTES + INLINE_MOST];
	uint8_t cqe[CQE_BYTES];
	uint8_t *data;
};

struct storage {
	struct storage_config cfg;
	struct storage_stats stats;
	struct prng rng;
	uint64_t begun;
	uint32_t key;
	struct command mine[STORAGE_DEPTH], its[STORAGE_DEPTH]; /* initiator's, target's */
};

static uint64_t slot_bytes(const struct storage_config *s)
{
	return ((uint64_t)s->max + GAP + 4095) & ~4095ull;
}

void storage_qp(struct rc_qp_config *c, const struct storage_config *s)
{
	c->shadow = false;
	c->mr_fixed = c->rmr_fixed = 64;
	c->mr_size = FIRST_AT + slot_bytes(s) * s->depth;
	c->rmr_size = 65536;
	c->recv_size = SQE_BYTES + INLINE_MOST;
	c->depth = 8192;
	c->journal = 65536;
}

static uint64_t key_of(const struct world_qp *q, uint64_t number)
{
	return pattern_key(q->w->cfg.seed ^ 0x5708a6e, number);
}

static void wrong(struct world_qp *q, const char *what)
{
	if (!q->w->violation)
		q->w->violation = what;
}

/* ---- initiator ---- */

static void make_capsule(const struct world_qp *q, struct command *c)
{
	const struct storage *s = q->storage;
	uint8_t *b = c->capsule;

	memset(b, 0, SQE_BYTES);
	b[0] = c->write ? NVME_WRITE : NVME_READ;
	b[1] = 0x40;
	put_le16(b + 2, c->id);
	put_le64(b + 40, c->number);
	if (c->inlined) {
		put_le32(b + 32, c->length);
		b[39] = IN_CAPSULE;
		pattern_fill(b + SQE_BYTES, key_of(q, c->number), 0, c->length);
		return;
	}
	put_le64(b + 24, c->va);
	put_le32(b + 32, c->length); /* 24 bits, and then the key */
	put_le32(b + 35, c->key);
	b[39] = s->cfg.one_key ? KEYED : KEYED_INV;
}

static bool begin_command(struct world_qp *q, uint32_t slot)
{
	struct storage *s = q->storage;
	struct command *c = &s->mine[slot];
	struct rc_qp *qp = q->side[0].qp;
	const struct rc_qp_config *qc = rc_qp_config(qp);
	struct rc_wr wr = {.op = RC_SEND, .wr_id = slot, .data = c->capsule};

	c->number = s->begun;
	c->id = (uint16_t)slot;
	c->length =
		s->cfg.min +
		(s->cfg.max > s->cfg.min ? prng_below(&s->rng, s->cfg.max - s->cfg.min + 1) : 0);
	c->write = prng_below(&s->rng, 1000) >= s->cfg.reads;
	c->inlined =
		c->write && c->length <= INLINE_MOST && prng_below(&s->rng, 1000) < s->cfg.inlined;
	c->key = s->cfg.one_key ? 0x77 : ++s->key << 8;
	c->va = qc->mr_va + FIRST_AT + slot * slot_bytes(&s->cfg);
	if (s->cfg.odd)
		c->va += prng_below(&s->rng, GAP / 2);
	c->began = q->w->now;
	make_capsule(q, c);
	pattern_fill(rc_qp_memory(qp) + (c->va - qc->mr_va),
		     key_of(q, c->write ? c->number : ~c->number), 0, c->length);
	wr.length = SQE_BYTES + (c->inlined ? c->length : 0);
	if (rc_post(qp, q->w->now, &wr))
		return false;
	s->begun++;
	c->live = c->sending = true;
	if (!s->stats.first)
		s->stats.first = q->w->now;
	return true;
}

static void begin_more(struct world_qp *q)
{
	struct storage *s = q->storage;

	for (uint32_t i = 0; i < s->cfg.depth && s->begun < s->cfg.count; i++)
		if (!s->mine[i].live && !s->mine[i].sending && !begin_command(q, i))
			return;
}

static void response(struct world_qp *q, const uint8_t *cqe)
{
	struct storage *s = q->storage;
	const struct rc_qp_config *qc = rc_qp_config(q->side[0].qp);
	uint16_t id = get_le16(cqe + 12);
	struct command *c = &s->mine[id % STORAGE_DEPTH];
	uint8_t *mem = rc_qp_memory(q->side[0].qp) + (c->va - qc->mr_va);
	uint64_t took;

	if (id >= s->cfg.depth || !c->live) {
		wrong(q, "a response to a command that was not asked");
		return;
	}
	if (!c->write && pattern_check(mem, key_of(q, c->number), 0, c->length) != c->length)
		wrong(q, "a read command is done, and its data is not there");
	c->live = false;
	/* whoever looks now sees something else */
	memset(mem, 0xee, c->length);
	took = q->w->now - c->began;
	s->stats.done++;
	s->stats.bytes += c->length;
	s->stats.last = q->w->now;
	s->stats.sum += took;
	if (took > s->stats.longest)
		s->stats.longest = took;
	begin_more(q);
}

bool storage_offered(struct world_qp *q, int side, uint32_t rkey, uint64_t va, uint32_t len)
{
	const struct storage *s = q->storage;

	for (uint32_t i = 0; !side && i < s->cfg.depth; i++) {
		const struct command *c = &s->mine[i];

		if (c->live && !c->inlined && c->key == rkey && va >= c->va &&
		    va + len <= c->va + c->length) {
			if (!c->write)
				wrong(q, "a READ of a read command's buffer");
			return true;
		}
	}
	wrong(q, "a READ of a buffer that is not offered");
	return false;
}

/* ---- target ---- */

static void respond(struct world_qp *q, struct command *c)
{
	const struct storage *s = q->storage;
	struct rc_wr wr = {.op = s->cfg.one_key || c->inlined ? RC_SEND : RC_SEND_INV,
			   .wr_id = c->id,
			   .length = CQE_BYTES,
			   .imm = c->key,
			   .data = c->cqe};

	memset(c->cqe, 0, sizeof(c->cqe));
	put_le16(c->cqe + 12, c->id);
	c->live = false;
	if (rc_post(q->side[1].qp, q->w->now, &wr) && !rc_qp_in_error(q->side[1].qp))
		wrong(q, "the model's target has no room");
}

static void read_data(struct world_qp *q, struct command *c)
{
	const struct storage *s = q->storage;
	uint32_t piece = s->cfg.split ? s->cfg.split : c->length;

	for (uint32_t at = 0; at < c->length; at += piece) {
		struct rc_wr wr = {.op = RC_READ,
				   .wr_id = WR_READ | c->id,
				   .va = c->va + at,
				   .rkey = c->key,
				   .length = c->length - at < piece ? c->length - at : piece};

		c->left++;
		if (rc_post(q->side[1].qp, q->w->now, &wr) && !rc_qp_in_error(q->side[1].qp))
			wrong(q, "the model's target has no room");
	}
}

static void write_data(struct world_qp *q, struct command *c)
{
	struct rc_wr wr = {
		.op = RC_WRITE, .wr_id = c->id, .va = c->va, .length = c->length, .data = c->data};

	pattern_fill(c->data, key_of(q, c->number), 0, c->length);
	rc_post(q->side[1].qp, q->w->now, &wr);
}

static void capsule(struct world_qp *q, const uint8_t *b, uint32_t length)
{
	struct storage *s = q->storage;
	uint16_t id = get_le16(b + 2);
	struct command *c = &s->its[id % STORAGE_DEPTH];

	if (length < SQE_BYTES || id >= s->cfg.depth || c->live) {
		wrong(q, "a capsule that was not sent");
		return;
	}
	c->live = true;
	c->id = id;
	c->number = get_le64(b + 40);
	c->write = b[0] == NVME_WRITE;
	c->inlined = b[39] == IN_CAPSULE;
	c->va = get_le64(b + 24);
	c->length = get_le32(b + 32) & (c->inlined ? UINT32_MAX : 0xffffff);
	c->key = get_le32(b + 35);
	c->left = 0;
	c->refused = c->write && prng_below(&s->rng, 1000) < s->cfg.refused;
	if (c->inlined) {
		if (pattern_check(b + SQE_BYTES, key_of(q, c->number), 0, c->length) != c->length)
			wrong(q, "data in a capsule is not what was sent");
	} else if (!c->write) {
		write_data(q, c);
	} else if (c->length && !c->refused) {
		read_data(q, c);
		return;
	}
	respond(q, c);
}

bool storage_read(struct world_qp *q, int side, const struct rc_read_data *d)
{
	const struct storage *s = q->storage;
	const struct command *c = &s->its[d->wr_id & 0xffff];
	uint64_t at = d->offset + rc_qp_config(q->side[side].qp)->rmr_va - c->va;

	if (pattern_check(d->data, key_of(q, c->number), at, d->len) == d->len)
		return true;
	wrong(q, "a target READ other bytes than its command's");
	return false;
}

/* ---- both ---- */

void storage_received(struct world_qp *q, int side, const struct rc_message *m)
{
	if (m->op > RC_SEND_INV)
		return;
	if (side)
		capsule(q, m->data, m->length);
	else
		response(q, m->data);
}

void storage_completed(struct world_qp *q, int side, const struct rc_completion *c)
{
	struct command *k = &q->storage->its[c->wr_id & 0xffff];

	if (!side && c->status == RC_OK) {
		q->storage->mine[c->wr_id].sending = false;
		begin_more(q);
	}
	if (!side || c->op != RC_READ || c->status != RC_OK || !k->live)
		return;
	if (!c->checked || !c->intact)
		wrong(q, "a READ is done without its data");
	if (!--k->left)
		respond(q, k);
}

bool storage_begin(struct world_qp *q, const struct storage_config *cfg)
{
	struct storage *s = calloc(1, sizeof(*s));

	q->storage = s;
	if (!s)
		return false;
	s->cfg = *cfg;
	prng_init(&s->rng, q->w->cfg.seed ^ q->id);
	for (uint32_t i = 0; i < cfg->depth && cfg->reads; i++) {
		s->its[i].data = malloc(cfg->max + 1);
		if (!s->its[i].data)
			return false;
	}
	begin_more(q);
	return true;
}

void storage_exit(struct world_qp *q)
{
	for (uint32_t i = 0; q->storage && i < STORAGE_DEPTH; i++)
		free(q->storage->its[i].data);
	free(q->storage);
	q->storage = NULL;
}

bool storage_done(const struct world_qp *q)
{
	return !q->storage || q->storage->stats.done == q->storage->cfg.count;
}

const struct storage_stats *storage_stats(const struct world_qp *q)
{
	return &q->storage->stats;
}

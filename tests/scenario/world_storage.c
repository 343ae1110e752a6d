// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Initiator and target: see world_storage.h. */
#include "tests/scenario/world_storage.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/pattern.h"
#include "tests/scenario/world_priv.h"
#include "wire/bytes.h"

#define INLINE_MOST 8192u
/* Between two buffers, so that one that is overrun shows; before the first one what readers.h calls
 * fixed memory. */
#define GAP	    4096u
#define FIRST_AT    8192u
/* Work requests of the target: the slot of the command, the part, and whether it is a READ; or that
 * it is the answer, with the number of its buffers. */
#define WR_SLOT	    0xffffu
#define WR_PART	    16u
#define WR_READ	    (1ull << 32)
#define WR_ANSWER   (1ull << 33)

/* One command, as either side knows it. @left: READs that the target awaits; @sending: the capsule
 * is the host's, which may have to send it again */
struct command {
	bool live, sending, refused;
	struct form_io io;
	uint32_t left;
	uint64_t began;
	uint8_t capsule[FORM_MOST + INLINE_MOST];
	uint32_t buffers;
};

/* What the target sends for a command. It stays as it is until the network card has an ACK, which
 * may come after the next command with the same id. */
struct buffers {
	bool busy;
	uint8_t answer[ANSWER_MOST], chatter[ANSWER_MOST], data[];
};

struct storage {
	struct storage_config cfg;
	struct storage_stats stats;
	struct prng rng;
	uint64_t begun;
	uint32_t key;
	struct command mine[STORAGE_DEPTH], its[STORAGE_DEPTH]; /* initiator's, target's */
	struct buffers **buffers;
	uint32_t nbuffers;
};

static uint64_t slot_bytes(const struct storage_config *s)
{
	return ((uint64_t)s->max + GAP * (s->parts > 1 ? s->parts : 1) + 4095) & ~4095ull;
}

void storage_qp(struct rc_qp_config *c, const struct storage_config *s)
{
	c->shadow = false;
	c->mr_fixed = c->rmr_fixed = 64;
	c->mr_size = FIRST_AT + slot_bytes(s) * s->depth;
	c->rmr_size = 65536;
	c->recv_size = FORM_MOST + INLINE_MOST;
	c->depth = 8192;
	c->journal = 65536;
}

static uint64_t key_of(const struct world_qp *q, uint64_t number)
{
	return pattern_key(q->w->cfg.seed ^ 0x5708a6e, number);
}

/* ---- initiator ---- */

/* How many bytes of the data of a write come with the command. */
static uint32_t inlined(struct storage *s, uint32_t length)
{
	bool iser = s->cfg.form == FORM_ISER;

	if ((!iser && length > INLINE_MOST) || prng_below(&s->rng, 1000) >= s->cfg.inlined)
		return 0;
	if (!iser)
		return length;
	return 1 + prng_below(&s->rng, length < INLINE_MOST ? length : INLINE_MOST);
}

/* Memory for what does not come with the command: one part, or several, with gaps or without. */
static void place(struct storage *s, struct form_io *io, uint64_t va)
{
	uint32_t left = io->length - io->inlined;
	uint32_t most = s->cfg.form == FORM_ISER || !s->cfg.parts ? 1 : s->cfg.parts;

	for (io->parts = 0; left; io->parts++) {
		uint32_t length = io->parts + 1 < most ? 1 + prng_below(&s->rng, left) : left;

		io->part[io->parts].va = va;
		io->part[io->parts].length = length;
		io->part[io->parts].key = s->cfg.one_key ? 0x77 : ++s->key << 8;
		left -= length;
		va += length;
		if (left && s->cfg.odd)
			va += prng_below(&s->rng, 2) * GAP / 2;
	}
}

static uint8_t *memory_at(struct rc_qp *qp, uint64_t va)
{
	return rc_qp_memory(qp) + (va - rc_qp_config(qp)->mr_va);
}

static void fill(struct rc_qp *qp, const struct form_io *io, uint64_t key)
{
	uint64_t at = io->inlined;

	for (uint32_t i = 0; i < io->parts; at += io->part[i++].length)
		pattern_fill(memory_at(qp, io->part[i].va), key, at, io->part[i].length);
}

static bool begin_command(struct world_qp *q, uint32_t slot)
{
	struct storage *s = q->storage;
	struct command *c = &s->mine[slot];
	struct rc_qp *qp = q->side[0].qp;
	struct rc_wr wr = {.op = RC_SEND, .wr_id = slot, .data = c->capsule};
	struct form_io *io = &c->io;
	uint64_t va = rc_qp_config(qp)->mr_va + FIRST_AT + slot * slot_bytes(&s->cfg);

	memset(io, 0, sizeof(*io));
	io->number = s->begun;
	io->one_key = s->cfg.one_key;
	/* NVMe has the same ones again and again */
	io->id = slot | (s->cfg.form == FORM_NVME ? 0 : (uint32_t)s->begun * STORAGE_DEPTH);
	io->length =
		s->cfg.min +
		(s->cfg.max > s->cfg.min ? prng_below(&s->rng, s->cfg.max - s->cfg.min + 1) : 0);
	io->write = prng_below(&s->rng, 1000) >= s->cfg.reads;
	if (io->write)
		io->inlined = inlined(s, io->length);
	if (s->cfg.odd)
		va += prng_below(&s->rng, GAP / 2);
	place(s, io, va);
	c->began = q->w->now;
	wr.length = form_command(s->cfg.form, io, c->capsule);
	pattern_fill(c->capsule + wr.length, key_of(q, io->number), 0, io->inlined);
	wr.length += io->inlined;
	fill(qp, io, key_of(q, io->write ? io->number : ~io->number));
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

static void response(struct world_qp *q, const struct rc_message *m)
{
	struct storage *s = q->storage;
	struct command *c;
	uint64_t took, at = 0;
	uint32_t id;

	if (!form_read_response(s->cfg.form, m->data, m->length, &id))
		return;
	c = &s->mine[id % STORAGE_DEPTH];
	if (id % STORAGE_DEPTH >= s->cfg.depth || !c->live || c->io.id != id) {
		world_wrong(q, "a response to a command that was not asked");
		return;
	}
	for (uint32_t i = 0; i < c->io.parts; at += c->io.part[i++].length) {
		uint32_t length = c->io.part[i].length;
		uint8_t *there = memory_at(q->side[0].qp, c->io.part[i].va);

		if (!c->io.write &&
		    pattern_check(there, key_of(q, c->io.number), at, length) != length)
			world_wrong(q, "a read command is done, and its data is not there");
		/* a READ from now on sees other data */
		memset(there, 0xee, length);
	}
	c->live = false;
	took = q->w->now - c->began;
	s->stats.done++;
	s->stats.bytes += c->io.length;
	s->stats.last = q->w->now;
	s->stats.sum += took;
	if (took > s->stats.longest)
		s->stats.longest = took;
	begin_more(q);
}

static bool within(const struct form_io *io, uint32_t rkey, uint64_t va, uint32_t len)
{
	for (uint32_t i = 0; i < io->parts; i++) {
		uint64_t from = io->part[i].va, end = from + io->part[i].length;

		/* what continues one part, under the same key, is of it */
		for (uint32_t k = i + 1;
		     k < io->parts && io->part[k].va == end && io->part[k].key == io->part[i].key;
		     k++)
			end += io->part[k].length;
		if (io->part[i].key == rkey && va >= from && va + len <= end)
			return true;
	}
	return false;
}

bool storage_offered(struct world_qp *q, int side, uint32_t rkey, uint64_t va, uint32_t len)
{
	const struct storage *s = q->storage;

	for (uint32_t i = 0; !side && i < s->cfg.depth; i++) {
		const struct command *c = &s->mine[i];

		if (!c->live || !within(&c->io, rkey, va, len))
			continue;
		if (!c->io.write)
			world_wrong(q, "a READ of a read command's buffer");
		return true;
	}
	world_wrong(q, "a READ of a buffer that is not offered");
	return false;
}

/* ---- target ---- */

static void post(struct world_qp *q, const struct rc_wr *wr)
{
	if (rc_post(q->side[1].qp, q->w->now, wr) && !rc_qp_in_error(q->side[1].qp))
		world_wrong(q, "the model's target has no room");
}

/* Those that are free, or new ones. */
static uint32_t take_buffers(struct storage *s)
{
	uint32_t i = 0;

	while (i < s->nbuffers && s->buffers[i]->busy)
		i++;
	if (i == s->nbuffers) {
		s->buffers = realloc(s->buffers, ++s->nbuffers * sizeof(*s->buffers));
		if (!s->buffers)
			abort();
		s->buffers[i] = malloc(sizeof(struct buffers) + s->cfg.max);
		if (!s->buffers[i])
			abort();
	}
	s->buffers[i]->busy = true;
	return i;
}

static void respond(struct world_qp *q, struct command *c)
{
	struct storage *s = q->storage;
	struct buffers *b = s->buffers[c->buffers];
	struct rc_wr wr = {.op = RC_SEND, .data = b->chatter};

	c->live = false;
	if (s->cfg.chatter && prng_below(&s->rng, 1000) < s->cfg.chatter) {
		wr.length = form_chatter(s->cfg.form, prng_below(&s->rng, 1u << 30), b->chatter);
		if (wr.length)
			post(q, &wr);
	}
	if (!s->cfg.one_key && c->io.parts) {
		wr.op = RC_SEND_INV;
		wr.imm = c->io.part[0].key;
	}
	wr.wr_id = WR_ANSWER | c->buffers;
	wr.data = b->answer;
	wr.length = form_response(s->cfg.form, c->io.id, b->answer);
	post(q, &wr);
}

/* READ or WRITE the parts. */
static void move_data(struct world_qp *q, struct command *c)
{
	const struct storage *s = q->storage;
	const struct form_io *io = &c->io;
	const uint8_t *data = s->buffers[c->buffers]->data;

	for (uint32_t i = 0; i < io->parts; data += io->part[i++].length) {
		uint32_t length = io->part[i].length;
		uint32_t piece = io->write && s->cfg.split ? s->cfg.split : length;

		for (uint32_t at = 0; at < length; at += piece) {
			struct rc_wr wr = {.op = io->write ? RC_READ : RC_WRITE,
					   .wr_id = io->id % STORAGE_DEPTH | i << WR_PART,
					   .va = io->part[i].va + at,
					   .rkey = io->part[i].key,
					   .length = length - at < piece ? length - at : piece};

			if (io->write) {
				wr.wr_id |= WR_READ;
				c->left++;
			} else {
				wr.rkey = 0;
				wr.data = data;
			}
			post(q, &wr);
		}
	}
}

static void capsule(struct world_qp *q, const uint8_t *b, uint32_t length)
{
	struct storage *s = q->storage;
	struct form_io io;
	struct command *c;
	uint32_t data;

	if (!form_read_command(s->cfg.form, b, length, &io, &data)) {
		world_wrong(q, "a capsule that was not sent");
		return;
	}
	c = &s->its[io.id % STORAGE_DEPTH];
	if (io.id % STORAGE_DEPTH >= s->cfg.depth || c->live) {
		world_wrong(q, "a capsule that was not sent");
		return;
	}
	c->io = io;
	c->live = true;
	c->left = 0;
	c->buffers = take_buffers(s);
	c->refused = io.write && prng_below(&s->rng, 1000) < s->cfg.refused;
	if (io.inlined &&
	    pattern_check(b + data, key_of(q, io.number), 0, io.inlined) != io.inlined)
		world_wrong(q, "data in a capsule is not what was sent");
	if (!io.write)
		pattern_fill(s->buffers[c->buffers]->data, key_of(q, io.number), 0, io.length);
	if (!c->refused)
		move_data(q, c);
	if (!c->left)
		respond(q, c);
}

bool storage_read(struct world_qp *q, int side, const struct rc_read_data *d)
{
	const struct storage *s = q->storage;
	const struct form_io *io = &s->its[d->wr_id & WR_SLOT].io;
	uint32_t part = (d->wr_id >> WR_PART) % STORAGE_PARTS;
	uint64_t at = d->offset + rc_qp_config(q->side[side].qp)->rmr_va - io->part[part].va;

	at += io->inlined;
	for (uint32_t i = 0; i < part; i++)
		at += io->part[i].length;
	if (pattern_check(d->data, key_of(q, io->number), at, d->len) == d->len)
		return true;
	world_wrong(q, "a target READ other bytes than its command's");
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
		response(q, m);
}

void storage_completed(struct world_qp *q, int side, const struct rc_completion *c)
{
	struct storage *s = q->storage;
	struct command *k;

	if (!side && c->status == RC_OK) {
		s->mine[c->wr_id].sending = false;
		begin_more(q);
	}
	if (side && c->wr_id & WR_ANSWER) {
		s->buffers[c->wr_id & ~WR_ANSWER]->busy = c->status != RC_OK;
		return;
	}
	k = &s->its[c->wr_id & WR_SLOT];
	if (!side || c->op != RC_READ || c->status != RC_OK || !k->live)
		return;
	if (!c->checked || !c->intact)
		world_wrong(q, "a READ is done without its data");
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
	begin_more(q);
	return true;
}

void storage_exit(struct world_qp *q)
{
	struct storage *s = q->storage;

	for (uint32_t i = 0; s && i < s->nbuffers; i++)
		free(s->buffers[i]);
	if (s)
		free(s->buffers);
	free(s);
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/core/state.h"
#include "engine/learn/learn.h"
#include "store/pool_priv.h"
#include "tests/lab/model/undone.h"

#define PAGE 4096u
#define KEPT 32 /* pages that stay writable from batch to batch */

/* The engine that is looked at. @was, @is: as much memory as its arena has; touched pages of it as
 * they were before the batch, and as undoing leaves them. @mark: which pages are touched, and which
 * of these have changed. The log lies below page @first. */
static struct {
	struct engine *e;
	uint8_t *base, *was, *is, *mark;
	size_t size, room, first;
	uint32_t *touched, ntouched;
	struct sigaction former;
} look;

enum { UNTOUCHED, TOUCHED, CHANGED };

static void keep(size_t page)
{
	memcpy(look.was + page * PAGE, look.base + page * PAGE, PAGE);
	look.mark[page] = TOUCHED;
}

static void on_write(int signo, siginfo_t *info, void *ctx)
{
	size_t at = (size_t)((uint8_t *)info->si_addr - look.base), page = at / PAGE;

	(void)ctx;
	if (!look.e || at >= look.size || page < look.first) {
		sigaction(signo, &look.former, NULL); /* and the instruction faults again */
		return;
	}
	keep(page);
	look.touched[look.ntouched++] = (uint32_t)page;
	mprotect(look.base + page * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void *reserve(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
}

/* There is memory for copies of an arena of @size bytes. */
static bool room(size_t size)
{
	if (size <= look.room)
		return true;
	if (look.room) {
		munmap(look.was, look.room);
		munmap(look.is, look.room);
		munmap(look.touched, look.room);
		munmap(look.mark, look.room);
	}
	look.was = reserve(size);
	look.is = reserve(size);
	look.touched = reserve(size);
	look.mark = reserve(size);
	look.room = size;
	return look.was != MAP_FAILED && look.is != MAP_FAILED && look.touched != MAP_FAILED &&
	       look.mark != MAP_FAILED;
}

static size_t log_at(const struct engine *e)
{
	return (size_t)((uint8_t *)e->undo - e->arena.base);
}

static void protect(int prot)
{
	mprotect(look.base + look.first * PAGE, look.size - look.first * PAGE, prot);
	while (look.ntouched)
		look.mark[look.touched[--look.ntouched]] = UNTOUCHED;
}

/* Protect all of @e's memory behind the log. */
static bool begin(struct engine *e)
{
	struct sigaction sa = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO};

	if (!room(e->arena.size))
		return false;
	look.e = e;
	look.base = e->arena.base;
	look.size = e->arena.size;
	look.first = (log_at(e) + sizeof(struct undo) + e->undo->size) / PAGE;
	sigfillset(&sa.sa_mask);
	sigaction(SIGSEGV, &sa, &look.former);
	protect(PROT_READ);
	return true;
}

bool undone_begin(struct engine *e)
{
	if (look.e && look.e != e)
		return false;
	if (!look.e)
		return begin(e);
	/* what was touched before will be again: to copy it costs less than a fault */
	if (look.ntouched > KEPT)
		protect(PROT_READ);
	for (uint32_t i = 0; i < look.ntouched; i++)
		if (look.mark[look.touched[i]] == CHANGED)
			keep(look.touched[i]);
	return true;
}

bool undone_looks(const struct engine *e)
{
	return look.e == e;
}

void undone_cancel(void)
{
	if (!look.e)
		return;
	protect(PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &look.former, NULL);
	look.e = NULL;
}

/* ---- what it found ---- */

struct region {
	const char *name;
	const void *at;
	size_t len, each;
};

/* Where @at lies, for the message. */
static const char *place(const struct engine *e, size_t at)
{
	static char text[160];
	const uint8_t *base = e->arena.base, *p = base + at;
	size_t n = e->nflows;
	const struct region r[] = {
		{"engine", e, sizeof(*e), sizeof(*e)},
		{"flow", e->flows, n * sizeof(struct flow), sizeof(struct flow)},
		{"match", e->match, MATCH_SLOTS * sizeof(*e->match), sizeof(*e->match)},
		{"cm", e->cm, cm_table_bytes(e->cfg.max_conns), 1},
		{"pool", e->pool, e->pool->data, sizeof(struct block)},
		{"block", block_ptr(e->pool, 0), (size_t)e->pool->most * POOL_BLOCK, POOL_BLOCK},
	};

	for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++)
		if (p >= (const uint8_t *)r[i].at && p < (const uint8_t *)r[i].at + r[i].len) {
			size_t off = (size_t)(p - (const uint8_t *)r[i].at);

			snprintf(text, sizeof(text), "not noted: %s %zu, byte %zu", r[i].name,
				 off / r[i].each, off % r[i].each);
			return text;
		}
	snprintf(text, sizeof(text),
		 "not noted: byte %zu (table %td wheel %td reads %td order %td accepted %td)", at,
		 (uint8_t *)e->table - base, (uint8_t *)e->wheel - base, (uint8_t *)e->reads - base,
		 (uint8_t *)e->order - base, (uint8_t *)e->accepted - base);
	return text;
}

static bool within(size_t at, size_t from, size_t len)
{
	return at >= from && at < from + len;
}

/* @len bytes at @at of the arena, as undoing leaves them. */
static void restored(void *to, size_t at, size_t len)
{
	for (size_t i = at, n; i < at + len; i += n) {
		n = PAGE - i % PAGE < at + len - i ? PAGE - i % PAGE : at + len - i;
		memcpy((uint8_t *)to + (i - at),
		       (look.mark[i / PAGE] == CHANGED ? look.is : look.base) + i, n);
	}
}

/* Whether somebody refers to byte @at of the pool's superblocks. A map of 16 bytes each would be
 * exact; here pages, and none of open logs. */
static bool referred(const struct engine *e, size_t at)
{
	size_t pool = (size_t)((const uint8_t *)e->pool - e->arena.base);
	uint32_t page = (uint32_t)(at % POOL_BLOCK / POOL_PAGE);
	struct block b;

	restored(&b, pool + offsetof(struct pool, block) + at / POOL_BLOCK * sizeof(b), sizeof(b));
	return b.use == BLOCK_LOG ||
	       (b.use == BLOCK_PAGES && (b.pages & 1u << page || !(b.dirty & 1u << page)));
}

/* Whether byte @at of the pool tells of zero pages that the next process does not believe in
 * (pool_adopted()). */
static bool disbelieved(const struct engine *e, size_t at)
{
	size_t table = offsetof(struct pool, block), off = (at - table) % sizeof(struct block);
	struct block b;

	if (!within(at, table, e->pool->most * sizeof(b)) ||
	    !within(off, offsetof(struct block, dirty), sizeof(b.dirty)))
		return false;
	restored(&b, (size_t)((const uint8_t *)e->pool - e->arena.base) + at - off, sizeof(b));
	return b.use != BLOCK_PAGES;
}

/* Whether the next process needs byte @at of the arena as the batch found it. */
static bool needed(const struct engine *e, size_t at)
{
	const uint8_t *base = e->arena.base;
	size_t engine = (size_t)((const uint8_t *)e - base);
	size_t pool = (size_t)((const uint8_t *)e->pool - base);

	/* the log itself; what the next process makes anew (create.c) */
	if (at < log_at(e) + sizeof(struct undo) + e->undo->size ||
	    within(at, engine, offsetof(struct engine, at)) ||
	    within(at, engine + offsetof(struct engine, cache), sizeof(e->cache)) ||
	    within(at, (size_t)((const uint8_t *)e->echo - base), echo_bytes()))
		return false;
	if (within(at, pool + e->pool->data, (size_t)e->pool->most * POOL_BLOCK))
		return referred(e, at - pool - e->pool->data);
	if (at >= pool && disbelieved(e, at - pool))
		return false;
	/* what says nothing but that something was noted */
	return !within(at, pool + offsetof(struct pool, slot), sizeof(e->pool->slot)) &&
	       !within(at, pool + e->pool->notes, e->pool->data - e->pool->notes);
}

static const char *compare(const struct engine *e, size_t from)
{
	const size_t word = sizeof(uint64_t);

	for (size_t w = from; w < from + PAGE; w += word) {
		if (!memcmp(look.was + w, look.is + w, word))
			continue;
		for (size_t at = w; at < w + word; at++)
			if (look.was[at] != look.is[at] && needed(e, at))
				return place(e, at);
	}
	return NULL;
}

const char *undone_end(struct engine *e)
{
	const char *bad = NULL;
	size_t log = log_at(e);

	if (look.e != e)
		return NULL;
	memcpy(look.is + log, look.base + log, sizeof(struct undo) + e->undo->used);
	for (uint32_t i = 0; i < look.ntouched; i++) {
		size_t page = look.touched[i], at = page * PAGE;

		if (!memcmp(look.was + at, look.base + at, PAGE))
			continue;
		look.mark[page] = CHANGED;
		memcpy(look.is + at, look.base + at, PAGE);
	}
	if (!undo_apply((struct undo *)(look.is + log)))
		return "a batch cannot be undone";
	for (uint32_t i = 0; i < look.ntouched && !bad; i++)
		if (look.mark[look.touched[i]] == CHANGED)
			bad = compare(e, (size_t)look.touched[i] * PAGE);
	return bad;
}

/* ---- every batch ---- */

static struct engine *watched;
static const char *found;

static void on_commit(struct undo *u, bool before)
{
	if (!watched || watched->undo != u)
		return;
	if (!before)
		undone_begin(watched);
	else if (!found)
		found = undone_end(watched);
}

void undone_watch(struct engine *e)
{
	undone_cancel();
	watched = e;
	found = NULL;
	undo_watch = e ? on_commit : NULL;
}

const char *undone_bad(void)
{
	return found;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Theory of operation
 *
 * Time is counted in ticks; an expiry is rounded up to a tick. A timer that is d ticks away lives
 * at level l where 256^l <= d < 256^(l+1), in slot (tick / 256^l) % 256. When the wheel comes to a
 * tick that is a multiple of 256^l, the timers of the level's current slot move to a lower level (a
 * cascade); those of level 0 are due. Hence a slot's turn comes 1 to 256 steps of its level from
 * now, at a fixed tick. So the wheel may jump from one occupied slot's turn to the next, found by
 * the occupancy bitmaps, and hours without a timer cost nothing.
 *
 * A timer beyond the range goes to the farthest slot, and is placed again when its turn comes.
 *
 * wheel_expire() first moves the wheel to now and gathers what is due on a list of its own, then
 * calls back; so a callback sees a consistent wheel and may cancel timers that are about to fire.
 * Timers that it arms for the past go to another list, @due, and fire at the next call.
 *
 * Lists are circular, with sentinels behind the timers in the same array, so that a timer can be
 * unlinked without its list. If both neighbours are then the same sentinel, the slot is empty.
 */
#include "store/wheel.h"
#include "store/undo.h"
#include "wire/must.h"

#include <string.h>

#define LEVELS	  4
#define SLOT_BITS 8
#define SLOTS	  (1u << SLOT_BITS)
#define RANGE	  (1ull << (LEVELS * SLOT_BITS))
#define WORDS	  (SLOTS / 64)

#define SLOT_LISTS (LEVELS * SLOTS)
#define LIST_DUE   SLOT_LISTS	    /* armed for the past */
#define LIST_BATCH (SLOT_LISTS + 1) /* being fired */
#define LISTS	   (SLOT_LISTS + 2)

#define NIL 0xffffffffu

/** struct node - a timer, or a list's sentinel. @next: NIL when not armed. */
struct node {
	uint32_t next, prev;
	uint64_t tick;
};

/**
 * struct wheel - @now: the tick that expired last.
 * @busy: slots with timers, one bit each
 * @node: timers, then LISTS sentinels
 */
struct wheel {
	int64_t undo;
	uint64_t now;
	uint64_t busy[LEVELS][WORDS];
	uint32_t timers;
	uint32_t armed;
	uint32_t noted;
	_Alignas(64) struct node node[]; /* four timers of an owner lie in one line */
};

static inline struct undo *undo_of(const struct wheel *w)
{
	return w->undo ? (struct undo *)((uint8_t *)w + w->undo) : NULL;
}

/* Note it: all but the nodes is about to change. */
static inline void change(struct wheel *w)
{
	undo_once(undo_of(w), &w->noted, w, sizeof(*w));
}

static inline void change_node(struct wheel *w, uint32_t id)
{
	undo_note(undo_of(w), &w->node[id], sizeof(w->node[id]));
}

void wheel_undo_by(struct wheel *w, struct undo *u)
{
	w->undo = (uint8_t *)u - (uint8_t *)w;
}

uint64_t wheel_arena_size(uint32_t timers)
{
	return sizeof(struct wheel) + ((uint64_t)timers + LISTS) * sizeof(struct node) + 64;
}

static void list_reset(struct wheel *w, uint32_t list)
{
	uint32_t s = w->timers + list;

	w->node[s].next = s;
	w->node[s].prev = s;
}

struct wheel *wheel_create(struct arena *a, uint32_t timers, uint64_t now_ns)
{
	struct wheel *w;

	if (timers > NIL - LISTS)
		return NULL;
	w = arena_alloc(a, wheel_arena_size(timers) - 64, 64);
	if (!w)
		return NULL;
	w->now = now_ns >> WHEEL_TICK_SHIFT;
	w->timers = timers;
	for (uint32_t i = 0; i < timers; i++)
		w->node[i].next = NIL;
	for (uint32_t i = 0; i < LISTS; i++)
		list_reset(w, i);
	return w;
}

static void list_add(struct wheel *w, uint32_t list, uint32_t id)
{
	uint32_t s = w->timers + list, last = w->node[s].prev;

	change(w);
	change_node(w, s);
	change_node(w, last);
	change_node(w, id);
	w->node[id].next = s;
	w->node[id].prev = last;
	w->node[last].next = id;
	w->node[s].prev = id;
	if (list < SLOT_LISTS)
		w->busy[list / SLOTS][list % SLOTS / 64] |= 1ull << list % 64;
}

static void list_del(struct wheel *w, uint32_t id)
{
	uint32_t next = w->node[id].next, prev = w->node[id].prev, list;

	change(w);
	change_node(w, prev);
	change_node(w, next);
	change_node(w, id);
	w->node[prev].next = next;
	w->node[next].prev = prev;
	w->node[id].next = NIL;
	if (next != prev || next < w->timers)
		return;
	list = next - w->timers;
	if (list < SLOT_LISTS)
		w->busy[list / SLOTS][list % SLOTS / 64] &= ~(1ull << list % 64);
}

/* Append all of @from to @to, which must not be a slot. */
static void list_move(struct wheel *w, uint32_t from, uint32_t to)
{
	uint32_t s = w->timers + from, t = w->timers + to;
	uint32_t first = w->node[s].next, last = w->node[s].prev, end = w->node[t].prev;

	if (first == s)
		return;
	change(w);
	change_node(w, s);
	change_node(w, t);
	change_node(w, end);
	change_node(w, first);
	change_node(w, last);
	w->node[end].next = first;
	w->node[first].prev = end;
	w->node[last].next = t;
	w->node[t].prev = last;
	list_reset(w, from);
	if (from < SLOT_LISTS)
		w->busy[from / SLOTS][from % SLOTS / 64] &= ~(1ull << from % 64);
}

/* Place a timer that is due now or later. If due now, it goes to the current slot of level 0. */
static void place(struct wheel *w, uint32_t id)
{
	uint64_t tick = w->node[id].tick, away = tick - w->now;
	uint32_t level;

	if (away >= RANGE) {
		away = RANGE - 1;
		tick = w->now + away;
	}
	level = (63 - (uint32_t)__builtin_clzll(away | 1)) / SLOT_BITS;
	list_add(w, level * SLOTS + (uint32_t)(tick >> (level * SLOT_BITS)) % SLOTS, id);
}

void wheel_arm(struct wheel *w, uint32_t id, uint64_t when_ns)
{
	struct node *n = &w->node[id];
	uint64_t tick;

	must(id < w->timers);
	if (when_ns == WHEEL_NEVER) {
		wheel_cancel(w, id);
		return;
	}
	tick = (when_ns >> WHEEL_TICK_SHIFT) + !!(when_ns & ((1u << WHEEL_TICK_SHIFT) - 1));
	change(w);
	if (n->next == NIL) {
		w->armed++;
	} else {
		if (n->tick == tick && tick > w->now)
			return;
		list_del(w, id);
	}
	change_node(w, id);
	n->tick = tick;
	if (tick <= w->now)
		list_add(w, LIST_DUE, id);
	else
		place(w, id);
}

void wheel_cancel(struct wheel *w, uint32_t id)
{
	must(id < w->timers);
	if (w->node[id].next == NIL)
		return;
	list_del(w, id);
	w->armed--;
}

void wheel_soon(const struct wheel *w, uint32_t id)
{
	__builtin_prefetch(&w->node[id], 1);
}

bool wheel_armed(const struct wheel *w, uint32_t id)
{
	must(id < w->timers);
	return w->node[id].next != NIL;
}

/* Steps from slot @cur to the next occupied one, 1 .. SLOTS; 0 when there is none. */
static uint32_t steps_to_busy(const uint64_t *busy, uint32_t cur)
{
	uint32_t start = (cur + 1) % SLOTS, word = start / 64;
	uint64_t bits = busy[word] & ~0ull << start % 64;

	/* The first word comes twice: first the rest of it, at last all of it. */
	for (uint32_t n = 0; n <= WORDS; n++) {
		if (bits) {
			uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);

			return (slot - start) % SLOTS + 1;
		}
		word = (word + 1) % WORDS;
		bits = busy[word];
	}
	return 0;
}

/* The tick of the first turn of an occupied slot; WHEEL_NEVER when all are empty. */
static uint64_t next_turn(const struct wheel *w)
{
	uint64_t best = WHEEL_NEVER;

	for (uint32_t level = 0; level < LEVELS; level++) {
		uint32_t shift = level * SLOT_BITS;
		uint64_t cur = w->now >> shift;
		uint32_t steps = steps_to_busy(w->busy[level], (uint32_t)cur % SLOTS);

		if (steps && (cur + steps) << shift < best)
			best = (cur + steps) << shift;
	}
	return best;
}

/* The wheel has come to @w->now: cascade from the top, then gather what is due. */
static void take_turn(struct wheel *w)
{
	for (uint32_t level = LEVELS - 1; level > 0; level--) {
		uint32_t shift = level * SLOT_BITS, id;
		uint32_t list = level * SLOTS + (uint32_t)(w->now >> shift) % SLOTS;

		if (w->now & ((1ull << shift) - 1))
			continue;
		/* None of them can come back to this slot: each is nearer than one turn. */
		while ((id = w->node[w->timers + list].next) < w->timers) {
			list_del(w, id);
			place(w, id);
		}
	}
	list_move(w, (uint32_t)w->now % SLOTS, LIST_BATCH);
}

void wheel_expire(struct wheel *w, uint64_t now_ns, void (*fire)(void *ctx, uint32_t id), void *ctx)
{
	uint64_t target = now_ns >> WHEEL_TICK_SHIFT;
	uint32_t batch = w->timers + LIST_BATCH, id;

	change(w);
	list_move(w, LIST_DUE, LIST_BATCH);
	while (w->now < target) {
		uint64_t turn = next_turn(w);

		if (turn > target) {
			w->now = target;
			break;
		}
		w->now = turn;
		take_turn(w);
	}
	while ((id = w->node[batch].next) != batch) {
		list_del(w, id);
		w->armed--;
		fire(ctx, id);
	}
}

uint64_t wheel_next(const struct wheel *w)
{
	uint32_t due = w->timers + LIST_DUE, batch = w->timers + LIST_BATCH;
	uint64_t turn;

	if (!w->armed)
		return WHEEL_NEVER;
	if (w->node[due].next != due || w->node[batch].next != batch)
		return w->now << WHEEL_TICK_SHIFT;
	turn = next_turn(w);
	return turn << WHEEL_TICK_SHIFT;
}

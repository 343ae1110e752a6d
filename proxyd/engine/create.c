// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine's memory: made anew, or taken over from a process that is gone.
 *
 * All of the engine's state lies in its arena, struct engine too, and refers to other parts by
 * index. What pointers there are (the sink, the parts of the arena) stand in struct engine and
 * struct order, and are written anew by whoever maps the arena: attach() takes them from offsets,
 * which never change, so an adoption that is itself cut off does no harm to the next one.
 *
 * The root stands at the arena's beginning. It names the layout (kept.h): a digest of all types in
 * here and of a number for what they mean, made by the build. Nothing else is adopted.
 *
 * An adopted engine goes on where the other one stopped, with its clock, which must not have gone
 * back. What passed meanwhile is as if the link had lost it. Its sizes stay what they were; what
 * else is configured is taken from the new configuration. What an engine did in a batch that it did
 * not end (state.h, batch_begin()) is undone first (store/undo.h): nothing that it said of it has
 * left. Then all invariants are looked at (check.c) before anything is believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine/kept.h"
#include "engine/link/order.h"
#include "engine/roles.h"

#if __has_include("layout.h")
#include "layout.h"
#else
#define LONGHAUL_LAYOUT 0ull
#endif

#define READY 0x79646165724c48ull

/* Bytes of flows that are worth huge pages. */
#define FLOWS_MANY (4u << 20)
/* Bytes of the pool that a batch can free and be undone, however small the share at first. */
#define POOL_UNDO  (1ull << 30)
/* A start does not take the time for more huge pages: it is less than a second. */
#define HUGE_MOST  ((size_t)1 << 30)

_Static_assert(ENGINE_LAYOUT_AT == ARENA_FIRST + offsetof(struct engine_root, layout) &&
		       ENGINE_CRASHES_AT == ARENA_FIRST + offsetof(struct engine_root, crashes),
	       "others look there");

static uint64_t or_default(uint64_t v, uint64_t def)
{
	return v ? v : def;
}

/* A power of two. */
static uint32_t accepted_slots(const struct engine_config *cfg)
{
	uint32_t n = 1;

	while (n < cfg->max_conns)
		n <<= 1;
	return n;
}

static uint32_t read_bytes(void)
{
	return MAX(sizeof(struct fetch), sizeof(struct read_rec));
}

/* The parts of the arena that struct engine points to, and their offsets. */
#define PARTS(X) X(flows) X(match) X(cm) X(echo) X(accepted) X(table) X(wheel) X(reads) X(pool)

static void attach(struct engine *e, const struct arena *a)
{
#define X(part) e->part = (void *)(a->base + e->at.part);
	PARTS(X)
#undef X
	e->arena = *a;
	e->order = (void *)(a->base + e->at.order);
	order_attach(e->order);
	e->roles = engine_roles;
}

static void note_parts(struct engine *e)
{
#define X(part) e->at.part = (uint64_t)((uint8_t *)e->part - e->arena.base);
	PARTS(X)
#undef X
	e->at.order = (uint64_t)((uint8_t *)e->order - e->arena.base);
}

/* Flows, their timers and what finds them: all that a frame looks at before its packet. With
 * thousands of lanes these are more pages than a TLB has entries. Few are not worth the time. */
static void into_huge_pages(const struct engine *e)
{
	const uint8_t *from = (const uint8_t *)e->flows;

	if (sizeof(struct flow) * e->nflows >= FLOWS_MANY)
		arena_huge(&e->arena, from, (size_t)((const uint8_t *)e->reads - from));
}

static bool tables_create(struct engine *e, uint64_t now_ns)
{
	static const unsigned int share[POOL_CLASSES] = {[POOL_CUSTODY] = 75, [POOL_TRANSIT] = 75};
	uint32_t slots = accepted_slots(&e->cfg);

	e->flows = arena_alloc(&e->arena, sizeof(struct flow) * e->nflows, 64);
	e->match = arena_alloc(&e->arena, sizeof(struct psn_match) * MATCH_SLOTS, 64);
	e->cm = cm_table_create(&e->arena, e->cfg.max_conns);
	e->echo = echo_create(&e->arena);
	e->accepted = arena_alloc(&e->arena, sizeof(*e->accepted) * slots, 64);
	e->table = flow_table_create(&e->arena, e->nflows, e->cfg.seed);
	e->wheel = wheel_create(&e->arena, e->nflows * TIMERS, now_ns);
	e->reads = mqueue_create(&e->arena, READS_MAX, read_bytes());
	if (!order_init(e)) /* before the pool: what that can grow to has no memory yet */
		return false;
	e->pool = pool_create(&e->arena, e->cfg.pool_bytes, e->cfg.pool_most, share);
	if (!e->flows || !e->match || !e->cm || !e->echo || !e->accepted || !e->table ||
	    !e->wheel || !e->reads || !e->pool)
		return false;
	for (uint32_t i = 0; i < e->nflows; i++)
		e->flows[i].next_free = i + 1 < e->nflows ? i + 1 : FLOW_NONE;
	e->accepted_mask = slots - 1;
	memset(e->accepted, 0xff, sizeof(*e->accepted) * slots);
	e->ack_head = e->report_head = FLOW_NONE;
	e->room.head = e->room.tail = FLOW_NONE;
	into_huge_pages(e);
	for (int k = 0; k < 2; k++)
		e->half[k].head = e->half[k].tail = FLOW_NONE;
	for (int p = 0; p < PORTS; p++)
		e->wait[p].acks = FLOW_NONE;
	return true;
}

static void defaults(struct engine_config *c)
{
	c->pool_bytes = or_default(c->pool_bytes, 256ull << 20);
	c->pool_most = MAX(c->pool_most, c->pool_bytes);
	c->max_conns = (uint32_t)or_default(c->max_conns, 16384);
	c->lane_span = (uint32_t)or_default(c->lane_span, WINDOW_SPAN);
	c->lane_span = MIN(c->lane_span, WINDOW_SPAN);
}

/* Room for a batch that changes every flow, and frees all that lanes hold of long packets; of what
 * the pool grows to, as much as POOL_UNDO notes. */
static uint64_t undo_bytes(const struct engine_config *c, uint32_t nflows)
{
	uint64_t pool = MAX(c->pool_bytes, MIN(c->pool_most, POOL_UNDO));

	return c->file || c->undo
		       ? (uint64_t)nflows * (sizeof(struct flow) + 64) + pool / 32 + (1u << 20)
		       : 0;
}

static uint64_t bare_bytes(const struct engine_config *c)
{
	return pool_bare_size(c->pool_bytes, c->pool_most);
}

/* From here on everything is noted. */
static void undo_from_here(struct engine *e, struct undo *u)
{
	e->undo = u;
	pool_undo_by(e->pool, u);
	wheel_undo_by(e->wheel, u);
	mqueue_undo_by(e->reads, u);
	flow_table_undo_by(e->table, u);
	order_undo_by(e->order, u);
}

static uint64_t arena_bytes(const struct engine_config *c, uint32_t nflows)
{
	return pool_arena_size(c->pool_most) + flow_table_arena_size(nflows) +
	       wheel_arena_size(nflows * TIMERS) + mqueue_arena_size(READS_MAX, read_bytes()) +
	       sizeof(struct flow) * nflows + sizeof(struct psn_match) * MATCH_SLOTS +
	       cm_table_bytes(c->max_conns) + echo_bytes() + sizeof(uint32_t) * accepted_slots(c) +
	       order_arena_size(nflows) + sizeof(struct engine) + c->kept_bytes +
	       undo_bytes(c, nflows) + (1u << 20);
}

static uint32_t flows_of(const struct engine_config *c)
{
	return c->max_conns * 2 + half_most(c);
}

uint64_t engine_bytes(const struct engine_config *cfg)
{
	struct engine_config c = *cfg;

	defaults(&c);
	return arena_bytes(&c, flows_of(&c)) - bare_bytes(&c);
}

struct engine *engine_create(const struct engine_config *cfg, const struct engine_sink *sink,
			     uint64_t now_ns)
{
	struct engine_config c = *cfg;
	struct engine_root *root;
	struct undo *u = NULL;
	struct arena a;
	struct engine *e;
	uint32_t nflows;
	uint64_t size;

	defaults(&c);
	nflows = flows_of(&c);
	size = arena_bytes(&c, nflows);
	if (c.file ? arena_init_file(&a, c.file, size, bare_bytes(&c)) : arena_init(&a, size))
		return NULL;
	root = arena_alloc(&a, sizeof(*root), 64);
	if (undo_bytes(&c, nflows)) {
		u = undo_create(&a, undo_bytes(&c, nflows));
		root->undo = (uint64_t)((uint8_t *)u - a.base);
	}
	e = arena_alloc(&a, sizeof(*e), 64);
	root->layout = LONGHAUL_LAYOUT;
	root->engine = (uint64_t)((uint8_t *)e - a.base);
	root->kept_bytes = c.kept_bytes;
	root->kept = (uint64_t)((uint8_t *)arena_alloc(&a, c.kept_bytes, 64) - a.base);

	e->sink = *sink;
	e->cfg = c;
	e->half_max = half_most(&c);
	e->nflows = nflows;
	e->now = now_ns;
	e->gen = (uint32_t)(cfg->seed ^ cfg->seed >> 32);
	e->arena = a;
	e->roles = engine_roles;
	if (!tables_create(e, now_ns)) {
		engine_destroy(e);
		return NULL;
	}
	note_parts(e);
	meter_init(e);
	engine_limits(e, &c, now_ns);
	pace_init(e);
	e->wake = UINT64_MAX;
	e->sweep_at = now_ns + 10 * NSEC_PER_MSEC;
	if (u)
		undo_from_here(e, u);
	root->ready = READY;
	return e;
}

/* What the new configuration wants, but for sizes, and without what an operator wanted before. */
static void configure(struct engine *e, const struct engine_config *cfg)
{
	struct engine_config c = *cfg;

	c.pool_bytes = e->cfg.pool_bytes;
	c.pool_most = e->cfg.pool_most;
	c.max_conns = e->cfg.max_conns;
	c.kept_bytes = e->cfg.kept_bytes;
	c.seed = e->cfg.seed;	      /* tables are made by it */
	c.wan_auto = e->cfg.wan_auto; /* what it was */
	defaults(&c);
	e->cfg = c;
	engine_limits(e, cfg, e->now);
	e->draining = e->all_bypassed = e->hushed = false;
	e->rules_bypassed = 0;
	/* most are not, and memory that is written to costs more than what is looked at */
	for (uint32_t i = 0; i < e->nflows; i++)
		if (e->flows[i].bypassed)
			e->flows[i].bypassed = false;
	memset(&e->soon, 0, sizeof(e->soon));
	for (int p = 0; p < PORTS; p++) {
		e->wait[p].again = e->wait[p].tries = 0;
		e->wait[p].full = false;
	}
}

/* The root of @a, NULL and why when it is not one of ours. */
static struct engine_root *root_of(const struct arena *a, const char **why)
{
	struct engine_root *root = (struct engine_root *)(a->base + ARENA_FIRST);

	if (a->used < ARENA_FIRST + sizeof(*root) || root->ready != READY)
		*why = "it was never finished";
	else if (root->layout != LONGHAUL_LAYOUT)
		*why = "another version of longhauld wrote it";
	else if (root->engine > a->used || !root->undo || root->undo > a->used ||
		 root->kept > a->used || a->used - root->undo < sizeof(struct undo) ||
		 a->used - root->undo - sizeof(struct undo) <
			 ((struct undo *)(a->base + root->undo))->size ||
		 a->used - root->engine < sizeof(struct engine) ||
		 a->used - root->kept < root->kept_bytes)
		*why = "it is damaged";
	else
		return root;
	return NULL;
}

struct engine *engine_adopt(int fd, const struct engine_config *cfg, const struct engine_sink *sink,
			    uint64_t now_ns, const char **why)
{
	struct engine_root *root;
	struct engine *e;
	struct arena a;
	struct undo *u;
	int rc;

	*why = "it cannot be mapped";
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	rc = arena_adopt(&a, fd);
	if (rc) {
		close(fd);
		*why = rc == -EINVAL ? "it is empty, or none" : *why;
		return NULL;
	}
	*why = NULL;
	root = root_of(&a, why);
	u = root ? (struct undo *)(a.base + root->undo) : NULL;
	e = root ? (struct engine *)(a.base + root->engine) : NULL;
	if (root && root->kept_bytes != cfg->kept_bytes)
		*why = "what is kept beside it has another size";
	else if (root && u->batch == UNDO_FIRST) /* it may not know yet what it was to fail */
		*why = "its longhauld ended in its first round";
	else if (root && !undo_apply(u))
		*why = "it ended amid more changes than can be undone";
	else if (root && now_ns < e->now)
		*why = "its clock is ahead of ours";
	if (*why) {
		arena_exit(&a);
		return NULL;
	}
	attach(e, &a);
	memset(&e->cache, 0, sizeof(e->cache)); /* a tag may be half written */
	echo_forget(e);
	e->sink = *sink;
	e->undo = u;
	configure(e, cfg);
	pool_adopted(e->pool);
	*why = engine_check(e);
	if (*why) {
		engine_destroy(e);
		return NULL;
	}
	e->left_at = e->now;
	engine_stood_still(e, e->now, now_ns);
	e->now = e->wake = now_ns;
	return e;
}

uint64_t engine_left_at(const struct engine *e)
{
	return e->left_at;
}

void *engine_kept(const struct engine *e)
{
	const struct engine_root *root = (struct engine_root *)(e->arena.base + ARENA_FIRST);

	return root->kept_bytes ? e->arena.base + root->kept : NULL;
}

static enum engine_left root_read(int fd, struct engine_root *root)
{
	if (pread(fd, root, sizeof(*root), ARENA_FIRST) != sizeof(*root))
		return ENGINE_LEFT_NONE;
	if (root->layout != LONGHAUL_LAYOUT)
		return ENGINE_LEFT_OTHER;
	return root->ready == READY ? ENGINE_LEFT_OURS : ENGINE_LEFT_UNFINISHED;
}

enum engine_left engine_left(int fd)
{
	struct engine_root root;

	return root_read(fd, &root);
}

uint64_t engine_kept_at(int fd)
{
	struct engine_root root;

	return root_read(fd, &root) == ENGINE_LEFT_OURS ? root.kept : 0;
}

int engine_lock(const struct engine *e)
{
	return arena_lock(&e->arena, e->cfg.file ? 0 : e->arena.size - bare_bytes(&e->cfg));
}

void engine_huge(const struct engine *e)
{
	const uint8_t *pool = (const uint8_t *)e->pool;
	size_t len = e->arena.size - bare_bytes(&e->cfg) - (size_t)(pool - e->arena.base);

	/* what is used first, and more than most ever use, lies at the beginning */
	arena_huge(&e->arena, pool, len < HUGE_MOST ? len : HUGE_MOST);
}

void engine_destroy(struct engine *e)
{
	struct arena a;

	if (!e)
		return;
	a = e->arena; /* the engine itself lies in there */
	arena_exit(&a);
}

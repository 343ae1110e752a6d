// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What engine_adopt() makes of what it finds: a batch that ended or not, with a log that was long
 * enough or not, another clock, another size, nothing, a part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/core/core.h"
#include "tests/unit/no_sink.h"

#define NOW 1000000000ull

static char path[64];
static struct engine_config cfg = {.pool_bytes = 4 << 20, .max_conns = 16, .kept_bytes = 64};

static struct engine *make(void)
{
	struct engine *e;

	snprintf(path, sizeof(path), "/tmp/test_engine_adopt.XXXXXX");
	cfg.file = mkstemp(path);
	assert_true(cfg.file >= 0);
	e = engine_create(&cfg, &no_sink, NOW);
	assert_non_null(e);
	engine_tick(e, NOW);
	return e;
}

/* The next process finds what is in the file. */
static struct engine *next_at(uint64_t now, const char **why)
{
	*why = NULL;
	return engine_adopt(cfg.file, &cfg, &no_sink, now, why);
}

static void refused(uint64_t now, const char *because)
{
	const char *why;

	assert_null(next_at(now, &why));
	assert_string_equal(why, because);
}

static void end(struct engine *e)
{
	engine_destroy(e);
	close(cfg.file);
	unlink(path);
}

/* One that has not ended its first batch may not know yet which queue pairs it was to fail. */
static void first_round(void **state)
{
	struct engine *e = make();

	(void)state;
	engine_destroy(e);
	e = engine_create(&cfg, &no_sink, NOW);
	assert_non_null(e);
	engine_peer_event(e, 3, PEER_UP, NOW);
	engine_destroy(e);
	refused(NOW, "its longhauld ended in its first round");
	e = engine_create(&cfg, &no_sink, NOW);
	e->undo->batch = UINT32_MAX; /* and a long time later it is not the first one again */
	engine_tick(e, NOW);
	engine_destroy(e);
	end(next_at(NOW, &(const char *){NULL}));
}

/* A batch that did not end has not happened; one that ended has. */
static void batches(void **state)
{
	struct engine *e = make();
	const char *why;

	(void)state;
	engine_peer_event(e, 3, PEER_UP, NOW);
	engine_destroy(e);
	e = next_at(NOW, &why);
	assert_non_null(e);
	assert_false(engine_peer_is_up(e, 3));
	engine_peer_event(e, 3, PEER_UP, NOW);
	engine_tick(e, NOW);
	engine_peer_event(e, 3, PEER_DOWN, NOW);
	engine_destroy(e);
	e = next_at(NOW, &why);
	assert_non_null(e);
	assert_true(engine_peer_is_up(e, 3));
	end(e);
}

/* Amid a batch that changes more than the log holds nothing is believed; once it has ended, all. */
static void log_full(void **state)
{
	struct engine *e = make();
	const char *why;

	(void)state;
	e->undo->size = 64;
	engine_peer_event(e, 3, PEER_UP, NOW);
	engine_tick(e, NOW);
	engine_destroy(e);
	e = next_at(NOW, &why);
	assert_non_null(e);
	assert_true(engine_peer_is_up(e, 3));
	engine_peer_event(e, 3, PEER_DOWN, NOW);
	engine_destroy(e);
	refused(NOW, "it ended amid more changes than can be undone");
	refused(NOW, "it ended amid more changes than can be undone");
	end(NULL);
}

/* Between two processes nobody looked at anything. */
static void pause_between(void **state)
{
	struct engine *e = make();

	(void)state;
	engine_tick(e, NOW + 5);
	assert_int_equal(e->stood, 0);
	engine_destroy(e);
	e = next_at(NOW + 100000000000, &(const char *){NULL});
	assert_non_null(e);
	assert_int_equal(e->stood, NOW + 100000000000);
	end(e);
}

/* The next process gives hosts again what the former one kept back at its end, and is told anew
 * what is to be bypassed. */
static void hushed(void **state)
{
	struct engine *e = make();

	(void)state;
	engine_hush(e, NOW);
	engine_tick(e, NOW);
	assert_true(e->hushed);
	e->flows[0].bypassed = e->flows[3].bypassed = true;
	engine_destroy(e);
	e = next_at(NOW, &(const char *){NULL});
	assert_non_null(e);
	assert_false(e->hushed || e->flows[0].bypassed || e->flows[3].bypassed);
	end(e);
}

/* Half-known flows are counted by host: the next process finds the count of each. */
static void half_known(void **state)
{
	struct engine *e = make();
	struct flow_key k = {.src.b = {1}, .dst.b = {2}};

	(void)state;
	for (k.dqpn = 1; k.dqpn <= 3; k.dqpn++)
		assert_non_null(flow_create(e, &k, PORT_LAN));
	engine_tick(e, NOW);
	engine_destroy(e);
	cfg.seed++; /* each process draws one */
	e = next_at(NOW, &(const char *){NULL});
	assert_non_null(e);
	for (k.dqpn = 1; k.dqpn <= 3; k.dqpn++)
		flow_free(e, flow_by_key(e, &k));
	for (uint32_t i = 0; i < HALF_HOSTS; i++)
		assert_int_equal(e->half_host[i], 0);
	end(e);
}

static void clocks(void **state)
{
	struct engine *e = make();

	(void)state;
	engine_tick(e, NOW + 5);
	engine_destroy(e);
	refused(NOW + 4, "its clock is ahead of ours");
	e = next_at(NOW + 5, &(const char *){NULL});
	assert_non_null(e);
	end(e);
}

static void sizes(void **state)
{
	struct engine *e = make();
	off_t len;

	(void)state;
	*(char *)engine_kept(e) = 'k';
	engine_destroy(e);
	cfg.kept_bytes = 128;
	refused(NOW, "what is kept beside it has another size");
	cfg.kept_bytes = 64;
	/* its own sizes stay what they were */
	cfg.pool_bytes *= 2;
	e = next_at(NOW, &(const char *){NULL});
	assert_non_null(e);
	assert_int_equal(e->cfg.pool_bytes, cfg.pool_bytes / 2);
	assert_int_equal(*(char *)engine_kept(e), 'k');
	engine_destroy(e);
	cfg.pool_bytes /= 2;
	len = lseek(cfg.file, 0, SEEK_END);
	assert_int_equal(engine_kept_at(cfg.file) % 64, 0);
	assert_int_equal(engine_left(cfg.file), ENGINE_LEFT_OURS);
	assert_int_equal(ftruncate(cfg.file, len - 4096), 0);
	refused(NOW, "it is empty, or none");
	assert_int_equal(ftruncate(cfg.file, 4096), 0);
	assert_int_equal(engine_kept_at(cfg.file), 0);
	assert_int_equal(engine_left(cfg.file), ENGINE_LEFT_NONE);
	refused(NOW, "it is empty, or none");
	assert_int_equal(ftruncate(cfg.file, 0), 0);
	refused(NOW, "it is empty, or none");
	end(NULL);
}

static void put(off_t at, uint64_t v)
{
	assert_int_equal(pwrite(cfg.file, &v, sizeof(v), at), sizeof(v));
}

static uint64_t get(off_t at)
{
	uint64_t v = 0;

	assert_int_equal(pread(cfg.file, &v, sizeof(v), at), sizeof(v));
	return v;
}

static void damaged(void **state)
{
	static const char *const why[] = {
		"another version of longhauld wrote it",
		"it is damaged", /* undo */
		"it is damaged", /* engine */
		"it is damaged", /* kept */
		"it is damaged", /* kept_bytes */
		"it was never finished",
	};

	(void)state;
	engine_destroy(make());
	for (int i = 0; i < 6; i++) {
		off_t at = ENGINE_LAYOUT_AT + 8 * i;
		uint64_t was = get(at);

		put(at, was + (1ull << 62));
		refused(NOW, why[i]);
		assert_int_equal(engine_left(cfg.file), i == 0	 ? ENGINE_LEFT_OTHER
							: i == 5 ? ENGINE_LEFT_UNFINISHED
								 : ENGINE_LEFT_OURS);
		put(at, was);
	}
	end(next_at(NOW, &(const char *){NULL}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches),	 cmocka_unit_test(log_full),
		cmocka_unit_test(pause_between), cmocka_unit_test(clocks),
		cmocka_unit_test(sizes),	 cmocka_unit_test(damaged),
		cmocka_unit_test(hushed),	 cmocka_unit_test(half_known),
		cmocka_unit_test(first_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

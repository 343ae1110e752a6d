// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sessions whose process is killed, and that another one goes on with. What a killed process leaves
 * is a copy of its memory, taken where it calls something: random numbers are drawn, keys derived;
 * or the call is left after any instruction (step.h).
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer_net.h"
#include "step.h"

#include "peer/session_priv.h"
#include "tests/unit/no_sink.h"

#define COPIES 64

static const uint8_t key[2][PEER_KEY_LEN] = {
	"an example, not secret at all!!",
	"another one, as little secret!!",
};

static uint8_t *copy[COPIES];
static unsigned int ncopies;
static struct net *derives; /* whose derivations are looked at */

static void copy_of(struct net *n)
{
	if (!n->node[A].s)
		return;
	assert_true(ncopies < COPIES);
	copy[ncopies] = malloc(session_size());
	assert_non_null(copy[ncopies]);
	memcpy(copy[ncopies++], n->node[A].memory, session_size());
}

/* Before the one in the library. */
int crypto_kdf_derive_from_key(unsigned char *subkey, size_t subkey_len, uint64_t subkey_id,
			       const char ctx[crypto_kdf_CONTEXTBYTES],
			       const unsigned char k[crypto_kdf_KEYBYTES])
{
	int (*real)(unsigned char *, size_t, uint64_t, const char *, const unsigned char *);
	void *sym = dlsym(RTLD_NEXT, "crypto_kdf_derive_from_key");

	memcpy(&real, &sym, sizeof(real));
	if (derives)
		copy_of(derives);
	return real(subkey, subkey_len, subkey_id, ctx, k);
}

static void forget_copies(void)
{
	while (ncopies)
		free(copy[--ncopies]);
}

/* Another process, with @k as its first key, at what @was left; NULL: at what is there. */
static void next_process(struct net *n, const uint8_t *k, const uint8_t *was)
{
	struct node *me = &n->node[A];

	if (was)
		memcpy(me->memory, was, session_size());
	me->s = NULL;
	start_with(n, A, k);
	me->seen_up = session_up(me->s, PEER);
}

static struct net *kept(uint64_t seed)
{
	struct net *n = net_new(seed);

	n->node[A].memory = calloc(1, session_size());
	assert_non_null(n->node[A].memory);
	return n;
}

static void end(struct net *n)
{
	void *memory = n->node[A].memory;

	net_free(n);
	free(memory);
	forget_copies();
}

static void two_keys(struct net *n, int id, unsigned int first)
{
	uint8_t list[2][PEER_KEY_LEN];

	memcpy(list[0], key[first], PEER_KEY_LEN);
	memcpy(list[1], key[!first], PEER_KEY_LEN);
	assert_int_equal(session_peer_keys(n->node[id].s, PEER, (const void *)list, 2,
					   n->now + n->node[id].offset),
			 0);
}

/* The peer need not even know. */
static void goes_on(void **state)
{
	struct net *n = kept(1);

	(void)state;
	start(n, A);
	start(n, B);
	run(n, SEC);
	assert_true(both_up(n));
	for (int i = 0; i < 10; i++) {
		next_process(n, psk, NULL);
		assert_true(session_up(n->node[A].s, PEER));
		run(n, 700 * MS);
	}
	assert_true(both_up(n));
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	assert_int_equal(info(n, B).sessions, 1);
	end(n);
}

/* It comes late: who waited has given it up, and it has not listened before it begins. */
static void comes_late(void **state)
{
	struct net *n = kept(3);

	(void)state;
	start(n, A);
	start(n, B);
	run(n, SEC);
	for (unsigned int i = 1; i <= 5; i++) {
		n->node[A].s = NULL;
		run(n, 700 * MS + i * 300 * MS);
		assert_int_equal(n->node[B].down, i);
		next_process(n, psk, NULL);
		assert_true(session_up(n->node[A].s, PEER));
		run(n, 100 * MS + 4 * n->delay);
		assert_int_equal(n->node[B].up, 1 + i);
		assert_true(both_up(n));
	}
	assert_int_equal(n->node[A].down + n->node[A].restarted + n->node[B].restarted, 0);
	end(n);
}

/* Killed while it draws a salt: what is half drawn is not shown to anybody. A SEEK of the peer's
 * from before it had heard any salt echoes zeroes. */
static void salt_half_drawn(void **state)
{
	struct net *n = kept(2);
	struct datagram seek;

	(void)state;
	start(n, B);
	run(n, 100 * MS);
	assert_true(n->nlog > 0 && n->log[0].to == A);
	seek = n->log[0];
	start(n, A);
	n->drawn = copy_of;
	run(n, 200 * MS);
	n->drawn = NULL;
	assert_true(both_up(n));
	assert_true(ncopies >= 2);
	n->cut[A] = n->cut[B] = true;
	n->nqueue = 0;
	for (unsigned int i = 0; i < ncopies; i++) {
		next_process(n, psk, copy[i]);
		if (session_up(n->node[A].s, PEER))
			continue; /* before it, or after it */
		run(n, 50 * MS);
		rx(n, A, seek.data, seek.len);
		assert_false(session_up(n->node[A].s, PEER));
	}
	end(n);
}

/* Killed while both change over to the same one of two keys: a session that goes on has the keys
 * that it says, for who derives them again counts its datagrams from 1. */
static void key_half_derived(void **state)
{
	struct net *n = kept(3);
	struct seal_session should;
	struct seal_psk k[2];
	struct session *s;
	struct peer *p;
	int low;

	(void)state;
	seal_psk_init(&k[0], key[0]);
	seal_psk_init(&k[1], key[1]);
	low = memcmp(k[0].hello, k[1].hello, sizeof(k[0].hello)) > 0;
	start_with(n, A, key[!low]);
	start_with(n, B, key[!low]);
	run(n, SEC);
	assert_true(both_up(n));
	two_keys(n, A, (unsigned int)!low);
	s = n->node[A].memory;
	p = &s->peer[PEER];
	p->link.confirmed = false;
	derives = n;
	assert_true(roll_adopt(p, &k[low]));
	derives = NULL;
	copy_of(n);
	assert_true(ncopies >= 4);
	for (unsigned int i = 0; i < ncopies; i++) {
		next_process(n, key[!low], copy[i]);
		if (!session_up(n->node[A].s, PEER))
			continue;
		assert_int_equal(
			seal_session_init(&should, &p->link.psk, p->link.own, p->link.other), 0);
		assert_memory_equal(should.tx_key, p->link.keys.tx_key, SEAL_KEY);
		assert_memory_equal(should.rx_key, p->link.keys.rx_key, SEAL_KEY);
		assert_memory_equal(should.tx_id, p->link.keys.tx_id, SEAL_ID);
		assert_memory_equal(should.rx_id, p->link.keys.rx_id, SEAL_ID);
	}
	end(n);
}

/* The last step of a roll, with a restart: the key that is gone opens nothing, and the session that
 * was under it ends. */
static void key_taken_away(void **state)
{
	struct net *n = kept(4);

	(void)state;
	start_with(n, A, key[0]);
	two_keys(n, A, 0);
	start_with(n, B, key[1]);
	run(n, 3 * SEC);
	assert_true(both_up(n));
	assert_int_equal(info(n, A).key, 1);
	/* with both, as before: it goes on */
	next_process(n, key[0], NULL);
	two_keys(n, A, 0);
	run(n, SEC);
	assert_true(both_up(n));
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	next_process(n, key[0], NULL);
	run(n, SEC);
	assert_false(session_up(n->node[A].s, PEER));
	run(n, 20 * SEC);
	assert_false(session_up(n->node[A].s, PEER));
	end(n);
}

/* Killed while a session with the next process of the peer's is made: whom the engine knew is not
 * known here any more, and who comes is no longer taken for him. */
static void restart_half_seen(void **state)
{
	struct net *n = kept(8);
	struct peer *p;

	(void)state;
	start(n, A);
	start(n, B);
	run(n, SEC);
	assert_true(both_up(n) && info(n, A).known);
	p = &((struct session *)n->node[A].memory)->peer[PEER];
	start(n, B);
	p->hello.boot = session_boot(n->node[B].s);
	p->changing = true;
	next_process(n, psk, NULL);
	assert_false(session_up(n->node[A].s, PEER));
	assert_false(info(n, A).known);
	run(n, 3 * SEC);
	assert_talk(n);
	assert_int_equal(n->node[A].restarted, 0);
	/* otherwise it is known as ever */
	next_process(n, psk, NULL);
	assert_true(info(n, A).known);
	end(n);
}

/* A peer that no configuration has any more: nobody tells its keys, and its session goes on under
 * the second of them. */
static void resumes(void **state)
{
	struct net *n = kept(7);
	struct node *me = &n->node[A];
	struct session_config cfg = {.local = {.name = "alpha"},
				     .memory = me->memory,
				     .random = net_random,
				     .random_ctx = n};
	struct session_sink sink = {me, on_send, on_event, on_report, on_log, NULL};

	(void)state;
	start_with(n, A, key[0]);
	two_keys(n, A, 0);
	start_with(n, B, key[1]);
	run(n, 3 * SEC);
	assert_true(both_up(n));
	me->s = session_create(&cfg, &sink, n->now + me->offset);
	assert_non_null(me->s);
	assert_false(session_peer_resume(me->s, PEER + 1, n->now + me->offset));
	assert_true(session_peer_resume(me->s, PEER, n->now + me->offset));
	assert_false(session_peer_resume(me->s, PEER, n->now + me->offset));
	run(n, 10 * SEC);
	assert_talk(n);
	assert_int_equal(n->node[A].down + n->node[B].down, 0);
	end(n);
}

/* ---- numbers ---- */

struct number {
	uint8_t id[SEAL_ID]; /* of the key */
	uint64_t seq;
};

static int by_number(const void *a, const void *b)
{
	const struct number *x = a, *y = b;
	int d = memcmp(x->id, y->id, SEAL_ID);

	return d ? d : (x->seq > y->seq) - (x->seq < y->seq);
}

/* No two datagrams of A's were sealed with the same key and number. How many there were. */
static size_t assert_numbers_once(const struct net *n)
{
	struct number *list = calloc(n->nlog + 1, sizeof(*list));
	size_t count = 0;

	assert_non_null(list);
	for (size_t i = 0; i < n->nlog; i++) {
		const uint8_t *data = n->log[i].data;

		if (n->log[i].to != B || is_hello(data))
			continue;
		memcpy(list[count].id, seal_data_id(data), SEAL_ID);
		list[count++].seq = seal_data_seq(data);
	}
	qsort(list, count, sizeof(*list), by_number);
	for (size_t i = 1; i < count; i++)
		assert_true(by_number(&list[i - 1], &list[i]) != 0);
	free(list);
	return count;
}

#ifdef STEPS
static unsigned int kills;

struct cut {
	void (*fn)(struct call *c);
	struct call *c;
};

static void cut_call(void *arg)
{
	struct cut *c = arg;

	c->fn(c->c);
}

static void killed(struct net *n, void (*fn)(struct call *c), struct call *c)
{
	struct cut cut = {fn, c};
	uint32_t dice = rnd(n);

	step_never = &n->outside;
	if (dice % 4) {
		fn(c);
	} else if (cut_off(cut_call, &cut, (long)(rnd(n) % (dice & 60 ? 600 : 20000)))) {
		kills++;
		next_process(n, psk, NULL);
	}
}

/* Killed after any instruction, over and over, while it talks and while sessions are made. */
static void numbers_once(void **state)
{
	struct net *n = kept(5);

	(void)state;
	kills = 0;
	start(n, A);
	start(n, B);
	n->kill = killed;
	for (uint32_t i = 1; i <= 600; i++) {
		struct report r = progress(i % 3, i, i % 5);

		call(n, call_report, (struct call){.me = &n->node[A], .report = &r});
		call(n, call_report, (struct call){.me = &n->node[B], .report = &r});
		if (i % 50 == 0)
			start(n, B);
		run(n, 50 * MS);
	}
	n->kill = NULL;
	assert_true(kills > 200);
	run(n, 5 * SEC);
	assert_talk(n);
	print_message("%zu datagrams, %u kills, %u sessions\n", assert_numbers_once(n), kills,
		      (unsigned int)info(n, B).sessions);
	end(n);
}

struct mark {
	struct replay r;
	uint64_t seq;
};

static void mark_it(void *arg)
{
	struct mark *m = arg;

	replay_mark(&m->r, m->seq);
}

/* What was taken is not taken again by the process after one that was killed as it noted another
 * one. */
static void seen_stays_seen(void **state)
{
	static const uint64_t jumps[] = {1, 2, 17, REPLAY_WINDOW - 1, REPLAY_WINDOW};
	struct replay full = {0};
	bool cut = true;

	(void)state;
	for (uint64_t seq = 1; seq <= 3000; seq++)
		replay_mark(&full, seq);
	for (size_t j = 0; j < sizeof(jumps) / sizeof(jumps[0]); j++, cut = true)
		for (long k = 0; cut; k += jumps[j] > 100 ? 997 : 1) {
			struct mark m = {full, 3000 + jumps[j]};

			cut = cut_off(mark_it, &m, k);
			for (uint64_t seq = 1; seq <= 3000; seq++)
				assert_int_not_equal(replay_check(&m.r, seq), REPLAY_FRESH);
		}
}
#else
static void numbers_once(void **state)
{
	(void)state;
	skip();
}

static void seen_stays_seen(void **state)
{
	(void)state;
	skip();
}
#endif

/* ---- beside an engine, whose batches are undone ---- */

static uint64_t latest_number(const struct net *n)
{
	for (size_t i = n->nlog; i--;)
		if (n->log[i].to == B && !is_hello(n->log[i].data))
			return seal_data_seq(n->log[i].data);
	return 0;
}

static void not_undone(void **state)
{
	struct engine_config cfg = {.pool_bytes = 4 << 20,
				    .max_conns = 16,
				    .kept_bytes = (uint32_t)session_size(),
				    .file = memfd_create("kept", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	struct net *n = net_new(6);
	struct engine *e = engine_create(&cfg, &no_sink, n->now), *next;
	struct report r = progress(1, 1, 0);
	const char *why = "";
	uint64_t number;

	(void)state;
	assert_non_null(e);
	n->node[A].memory = engine_kept(e);
	start(n, A);
	start(n, B);
	run(n, SEC);
	assert_true(both_up(n));
	engine_tick(e, n->now);
	/* a batch that does not end, and what the session says meanwhile */
	engine_peer_event(e, 0, PEER_UP, n->now);
	assert_true(engine_peer_is_up(e, 0));
	assert_int_equal(report(n, A, &r), 0);
	flush(n, A);
	number = latest_number(n);
	engine_destroy(e); /* its mapping; the file stays */
	next = engine_adopt(cfg.file, &cfg, &no_sink, n->now, &why);
	assert_string_equal(why ? why : "", "");
	assert_non_null(next);
	assert_false(engine_peer_is_up(next, 0)); /* undone */
	n->node[A].memory = engine_kept(next);
	next_process(n, psk, NULL);
	run(n, 100 * MS);
	assert_talk(n);
	assert_true(latest_number(n) > number && number);
	assert_numbers_once(n);
	net_free(n);
	engine_destroy(next);
	close(cfg.file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on),	    cmocka_unit_test(comes_late),
		cmocka_unit_test(not_undone),	    cmocka_unit_test(salt_half_drawn),
		cmocka_unit_test(key_half_derived), cmocka_unit_test(key_taken_away),
		cmocka_unit_test(resumes),	    cmocka_unit_test(restart_half_seen),
		cmocka_unit_test(numbers_once),	    cmocka_unit_test(seen_stays_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/bench/shard_load.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/opener.h"
#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define OPENER_POOL	(1ull << 30)
#define ACCEPTOR_POOL	(256ull << 20)
#define TICK_NS		10000u
/* Messages, by which both engines hold the lane. */
#define LEARN		16u
#define MAILS		256u
#define SLOT		4352u /* a packet with path MTU 4096, in lines of 64 */
#define MULTIPLICATIONS 8192u
#define CHAINS		6u

/* Reports from one engine to the other; each is read when it is due. @mask: room for so many, and
 * one. */
struct road {
	uint32_t head, tail, mask;
	struct {
		struct report report;
		uint64_t due;
	} on[];
};

struct mail {
	uint8_t data[FRAME_MAX];
	uint32_t len;
};

struct load {
	struct load_cell cell;
	struct opener o;
	struct frame frame[BATCH]; /* as they were made */
	uint8_t ring[BATCH][FRAME_MAX + 64];
	uint64_t now, sent;
	uint32_t psn, acked, seq;
	const char *wrong;

	/* a pair */
	struct engine *acceptor;
	struct road *to_acceptor, *to_opener;
	uint64_t lag, delivered; /* lag: ns */
	uint32_t msn, seal[BATCH], nseals;
	struct mail *mail[2]; /* by the engine that gets it: while lanes are learned */
	uint32_t nmail[2];
	bool held;

	/* a copy */
	uint8_t *copies;
	uint32_t at;
	uint64_t x[CHAINS];
};

static const uint8_t payload[4096];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Whether a packet begins a message, or ends one. */
static int place(uint32_t psn, uint32_t per)
{
	return psn % per == 0 ? 1 : psn % per == per - 1 ? 2 : 0;
}

/* The next BATCH packets of the host. Few begin or end a message where none did before. */
static void frames(struct load *l)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t psn = psn_add(l->psn, i), per = MESSAGE / l->cell.mtu;
		struct frame *f = &l->frame[i];
		uint8_t bytes[3];

		if (f->data && place(psn, per) == place(f->psn, per)) {
			put_be24(bytes, psn);
			icrc_patch(l->ring[i], f, f->bth + 9u, 3, bytes);
			continue;
		}
		if (frame_parse(l->ring[i], opener_frame(&l->o, l->ring[i], psn, payload), f) !=
		    FRAME_OK)
			abort();
	}
}

static void to_opener_engine(struct load *l)
{
	for (uint32_t i = 0; i < BATCH; i++)
		engine_rx(l->o.e, PORT_LAN, l->ring[i], l->frame[i].len, l->now);
}

static uint64_t opener_batch(struct load *l)
{
	uint32_t per = MESSAGE / l->cell.mtu;
	uint64_t t0 = now_ns();

	to_opener_engine(l);
	if (psn_diff(l->psn, l->acked) > (int32_t)(l->cell.custody / l->cell.mtu / per * per)) {
		l->acked = psn_add(l->acked, BATCH > per ? BATCH : per);
		opener_progress(&l->o, l->acked, l->acked / per, ++l->seq, l->now);
	}
	engine_tick(l->o.e, l->now);
	return now_ns() - t0;
}

/* ---- pairs ---- */

static struct road *road(uint32_t least)
{
	uint32_t n = 64;
	struct road *r;

	while (n < least)
		n <<= 1;
	r = calloc(1, sizeof(*r) + n * sizeof(r->on[0]));
	if (!r)
		abort();
	r->mask = n - 1;
	return r;
}

static void say(struct road *r, const struct report *what, uint64_t due)
{
	if (r->tail - r->head > r->mask)
		abort();
	r->on[r->tail & r->mask].report = *what;
	r->on[r->tail++ & r->mask].due = due;
}

static void hear(struct road *r, struct engine *e, uint64_t now)
{
	for (; r->head != r->tail && r->on[r->head & r->mask].due <= now; r->head++)
		engine_rx_report(e, 0, &r->on[r->head & r->mask].report, now);
}

static void opener_says(void *ctx, unsigned int peer, const struct report *r)
{
	struct load *l = ctx;

	(void)peer;
	say(l->to_acceptor, r, 0);
}

static void acceptor_says(void *ctx, unsigned int peer, const struct report *r)
{
	struct load *l = ctx;

	(void)peer;
	say(l->to_opener, r, l->now + l->lag);
}

static void post(struct load *l, int to, const uint8_t *data, uint32_t len, uint32_t seal)
{
	struct mail *m = &l->mail[to][l->nmail[to]++];

	if (l->nmail[to] > MAILS)
		abort();
	memcpy(m->data, data, len);
	m->len = len;
	put_le32(m->data + len - ICRC_LEN, get_le32(m->data + len - ICRC_LEN) ^ seal);
}

static int opener_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		     uint32_t seal)
{
	struct load *l = ctx;

	l->o.tx[port]++;
	if (port != PORT_WAN)
		return 0;
	if (!l->held)
		post(l, 1, data, len, seal);
	else if (l->nseals == BATCH ||
		 get_be24(data + l->frame[0].bth + 9) != psn_add(l->psn, l->nseals))
		l->wrong = "the opener sent what its host had not";
	else
		l->seal[l->nseals++] = seal;
	return 0;
}

static int acceptor_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		       uint32_t seal)
{
	struct load *l = ctx;

	if (port == PORT_LAN)
		l->delivered++;
	else if (!l->held)
		post(l, 0, data, len, seal);
	else
		l->wrong = "the acceptor sent a frame over the WAN";
	return 0;
}

/* Host B acknowledges all before @psn. */
static void host_acks(struct load *l, uint32_t psn)
{
	uint8_t buf[BUILD_MAX];

	engine_rx(l->acceptor, PORT_LAN, buf,
		  build_ack(buf, &l->o.to_near, LQPN, psn_add(psn, PSN_MASK), 0x1f, l->msn),
		  l->now);
}

static void deliver(struct load *l, int to, struct engine *e)
{
	for (uint32_t i = 0; i < l->nmail[to]; i++)
		engine_rx(e, PORT_WAN, l->mail[to][i].data, l->mail[to][i].len, l->now);
	l->nmail[to] = 0;
}

static void turn(struct load *l)
{
	l->now += TICK_NS;
	engine_tick(l->o.e, l->now);
	deliver(l, 1, l->acceptor);
	hear(l->to_acceptor, l->acceptor, l->now);
	engine_tick(l->acceptor, l->now);
	deliver(l, 0, l->o.e);
	hear(l->to_opener, l->o.e, l->now);
}

static bool holds(struct engine *e, int lane, uint64_t now)
{
	struct conn_info c;

	return engine_conn_next(e, 0, now, &c) && c.lane[lane].state == LANE_HELD &&
	       c.lane[lane].sealed;
}

/* Whole messages, until both engines hold the lane. */
static void learn(struct load *l)
{
	uint32_t per = MESSAGE / l->cell.mtu;
	uint8_t frame[FRAME_MAX];

	for (uint32_t m = 0; m < LEARN; m++) {
		for (uint32_t i = 0; i < per; i++, l->psn++)
			engine_rx(l->o.e, PORT_LAN, frame,
				  opener_frame(&l->o, frame, l->psn, payload), l->now);
		turn(l);
		l->msn++;
		host_acks(l, l->psn);
		for (uint64_t end = l->now + l->lag + 4 * TICK_NS; l->now < end;)
			turn(l);
	}
	if (!holds(l->o.e, LANE_OUT, l->now) || !holds(l->acceptor, LANE_IN, l->now))
		l->wrong = "the lane is not held";
	l->held = true;
}

static void pair_init(struct load *l)
{
	struct engine_config cfg = {
		.pool_bytes = ACCEPTOR_POOL, .max_conns = 16, .seed = 2, .undo = true};
	struct engine_sink sink = {.ctx = l, .tx = acceptor_tx, .report = acceptor_says};

	l->to_acceptor = road(1);
	l->to_opener = road(2 * l->cell.custody / l->cell.mtu / BATCH);
	l->mail[0] = calloc(MAILS, sizeof(struct mail));
	l->mail[1] = calloc(MAILS, sizeof(struct mail));
	if (!l->mail[0] || !l->mail[1])
		abort();
	l->acceptor = bench_engine_create(&cfg, &sink, l->cell.mtu);
	l->lag = (uint64_t)(l->cell.custody / l->cell.mtu / BATCH) * TICK_NS;
	learn(l);
}

static uint64_t pair_batch(struct load *l)
{
	uint32_t per = MESSAGE / l->cell.mtu, done = psn_add(l->psn, BATCH) / per * per;
	uint64_t before = l->delivered, t0 = now_ns(), spent;

	l->nseals = 0;
	to_opener_engine(l);
	hear(l->to_opener, l->o.e, l->now);
	engine_tick(l->o.e, l->now);
	spent = now_ns() - t0;

	if (l->nseals != BATCH)
		l->wrong = "the opener kept a frame back";
	for (uint32_t i = 0; i < BATCH; i++) {
		uint8_t *icrc = l->ring[i] + l->frame[i].icrc;

		put_le32(icrc, get_le32(icrc) ^ l->seal[i]);
	}

	t0 = now_ns();
	hear(l->to_acceptor, l->acceptor, l->now);
	for (uint32_t i = 0; i < BATCH; i++)
		engine_rx(l->acceptor, PORT_WAN, l->ring[i], l->frame[i].len, l->now);
	engine_tick(l->acceptor, l->now);
	if (l->delivered != before + BATCH)
		l->wrong = "the acceptor kept a frame back";
	if (done != l->acked) {
		l->msn = (l->msn + psn_sub(done, l->acked) / per) & PSN_MASK;
		l->acked = done;
		host_acks(l, done);
	}
	return spent + now_ns() - t0;
}

/* ---- without an engine ---- */

static uint64_t copy_batch(struct load *l)
{
	uint64_t t0 = now_ns();

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t n = l->frame[i].len;

		if (l->at + SLOT > l->cell.custody)
			l->at = 0;
		l->x[0] += crc32_copy(CRC32_INIT, l->copies + l->at, l->ring[i], n);
		l->at += (n + 63) & ~63u;
	}
	return now_ns() - t0;
}

/* Chains enough that the multiplier has work in every cycle: two threads of one core would have to
 * share it. */
static uint64_t count_batch(struct load *l)
{
	uint64_t t0 = now_ns(), x[CHAINS];

	memcpy(x, l->x, sizeof(x));
	for (uint32_t i = 0; i < MULTIPLICATIONS / CHAINS; i++) {
#pragma GCC unroll 6
		for (uint32_t k = 0; k < CHAINS; k++) {
			x[k] *= 6364136223846793005ull;
			__asm__ volatile("" : "+r"(x[k]));
		}
	}
	memcpy(l->x, x, sizeof(x));
	return now_ns() - t0;
}

struct load *load_create(const struct load_cell *c, uint8_t host)
{
	struct engine_sink sink = {.tx = opener_tx, .report = opener_says};
	struct load *l = aligned_alloc(128, (sizeof(*l) + 127) & ~127ul);

	if (!l)
		abort();
	memset(l, 0, sizeof(*l));
	sink.ctx = l;
	l->cell = *c;
	l->now = 3000;
	opener_init(&l->o, host, c->mtu, OPENER_POOL, true, c->kind == LOAD_PAIR ? &sink : NULL);
	if (c->kind == LOAD_PAIR)
		pair_init(l);
	else if (c->kind == LOAD_OPENER)
		l->psn = opener_hold(&l->o, payload);
	else if (!(l->copies = calloc(1, c->custody)))
		abort();
	l->acked = l->psn;
	l->o.tx[PORT_WAN] = 0;
	for (uint64_t n = 0; n < 3ull * c->custody / c->mtu; n += BATCH)
		load_batch(l);
	return l;
}

void load_destroy(struct load *l)
{
	engine_destroy(l->o.e);
	engine_destroy(l->acceptor);
	free(l->to_acceptor);
	free(l->to_opener);
	free(l->mail[0]);
	free(l->mail[1]);
	free(l->copies);
	free(l);
}

uint64_t load_batch(struct load *l)
{
	static uint64_t (*const batch[LOADS])(struct load *) = {
		[LOAD_OPENER] = opener_batch,
		[LOAD_PAIR] = pair_batch,
		[LOAD_COPY] = copy_batch,
		[LOAD_COUNT] = count_batch,
	};
	uint64_t ns;

	frames(l);
	l->now += TICK_NS;
	ns = batch[l->cell.kind](l);
	l->psn = psn_add(l->psn, BATCH);
	l->sent += BATCH;
	return ns;
}

const char *load_wrong(struct load *l)
{
	if (l->wrong)
		return l->wrong;
	if (l->cell.kind == LOAD_OPENER && l->o.tx[PORT_WAN] != l->sent)
		return "the opener sent more, or less, than its host";
	if (l->cell.kind == LOAD_PAIR && engine_check(l->acceptor))
		return engine_check(l->acceptor);
	return engine_check(l->o.e);
}

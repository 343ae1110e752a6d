// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lanes that begin, small packets, long links, tails, and one small message beside many long ones.
 * The rate of the link is found, or with --given-rate set. Reports take their turn in the queue of
 * the WAN.
 *
 *	cm, psn		what the first 16 MiB take, from the moment when the host may send until the
 *			far host has them; queue pairs that the connection manager makes, and others
 *	held		round trips until so many lanes are held, from cold, at 0.1 % of loss
 *	64B ...		share of the link that steady WRITEs get
 *	p999		128 MiB over a lane that is held, at 25 ms: the time of the 99.9th
 *			percentile against no loss; -100G: at 100 Gb/s, of which it is less than
 *			what is under way
 *	ping		a SEND of 64 bytes to and fro beside bulk lanes
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/link_bench.h"
#include "wire/psn.h"

#define TEN_G	   10000000000ull
#define BULK	   65536u
#define HEADERS	   62.0
#define FIRST	   (16ull << 20)
#define TAIL_BYTES (128ull << 20)
#define PINGS_MAX  4096u
#define LIMIT_NS   (600000 * MS)

static const struct options *opt;

/* What a world is like. */
struct setting {
	uint64_t rtt_ns, rate_bps;
	uint32_t mtu, size, depth, lanes;
	double queue_bdp, headroom; /* @headroom: of --given-rate */
	uint64_t pool;		    /* 0: what the rate needs */
};

static double bdp(const struct setting *s)
{
	return (double)s->rate_bps / 8e9 * (double)s->rtt_ns;
}

/* Bits per second that a far host can get. */
static double ceiling(const struct setting *s)
{
	double packets = ceil((double)s->size / s->mtu);

	/* the RETH of a WRITE is in one packet of the message */
	return (double)s->rate_bps * s->size / (s->size + packets * (HEADERS - 4) + 16);
}

static struct world *make(const struct setting *s, bool bare, uint64_t seed)
{
	struct world_config wc;

	world_defaults(&wc);
	wc.seed = seed;
	wc.appliance[0] = wc.appliance[1] = !bare;
	wc.wan.delay_ns = s->rtt_ns / 2;
	wc.wan.rate_bps = s->rate_bps;
	wc.wan.queue_bytes = (uint64_t)(s->queue_bdp * bdp(s));
	wc.wan.store_bytes = (uint64_t)(bdp(s) * (s->size < 1024 ? 6 : 3)) + (256u << 20);
	wc.lan.rate_bps = s->rate_bps * 5 / 2;
	wc.lan.store_bytes = 256u << 20;
	wc.reports_in_band = true;
	wc.engine.pool_bytes = s->pool ? s->pool : (uint64_t)(bdp(s) * 2.5) + (256u << 20);
	wc.engine.wan_auto = !opt->given_rate;
	if (opt->given_rate)
		wc.engine.wan_rate =
			(uint64_t)((double)s->rate_bps / 8 * (s->headroom ? s->headroom : 0.99));
	wc.engine.max_conns = 2048;
	wc.qps_max = 2048;
	return world_create(&wc);
}

/* Loss in both directions, with what @how says of it. */
static void set_losses(struct world *w, const struct wan_config *how)
{
	for (int i = 0; i < 2; i++) {
		struct wan_config c = *wan_config(w->link[WORLD_WAN(i)]);

		c.loss = how->loss;
		c.loss_by_length = how->loss_by_length;
		c.loss_swing = how->loss_swing;
		c.loss_swing_ns = how->loss_swing_ns;
		c.burst_start = how->burst_start;
		c.burst_end = how->burst_end;
		c.burst_loss = how->burst_loss;
		world_set_wan(w, i, &c);
	}
}

static void set_loss(struct world *w, double loss)
{
	set_losses(w, &(struct wan_config){.loss = loss});
}

static struct world_qp *pair(struct world *w, const struct setting *s, uint32_t i, bool cm)
{
	struct rc_qp_config qc;
	uint32_t depth = 16;

	while (depth < s->depth)
		depth *= 2;
	rc_qp_defaults(&qc, RC_STRICT);
	qc.lqpn = 0x1000 + i * 3;
	qc.rqpn = 0x9000 + i * 5;
	qc.sq_psn = (uint32_t)splitmix64(i * 7 + w->cfg.seed) & PSN_MASK;
	qc.rq_psn = (uint32_t)splitmix64(i * 11 + 5 + w->cfg.seed) & PSN_MASK;
	qc.mtu = s->mtu;
	qc.depth = depth;
	qc.timeout_exp = 17;
	qc.shadow = false;
	qc.no_verify = qc.no_land = true;
	qc.journal = 64;
	qc.mr_size = qc.rmr_size = 1u << 20;
	return cm ? world_connect_cm(w, &qc, RC_STRICT) : world_connect(w, &qc, RC_STRICT);
}

static struct work writes(const struct setting *s, uint64_t bytes)
{
	return (struct work){.ops = 1u << RC_WRITE,
			     .min = s->size,
			     .max = s->size,
			     .left = bytes == UINT64_MAX ? bytes : bytes / s->size,
			     .outstanding = s->depth};
}

static uint64_t executed(const struct world_qp *q)
{
	return rc_qp_stats(q->side[1].qp)->rx_bytes;
}

static bool dead(const struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		if (w->qp[i].side[0].qp && rc_qp_in_error(w->qp[i].side[0].qp))
			return true;
	return w->violation;
}

static void count_dead(const struct world *w, bool bare, struct last *out)
{
	if (!dead(w))
		return;
	printf(" (%s)", w->violation ? w->violation : "died");
	out->deaths += !bare;
}

/* Until the far host has @bytes; returns ns since @from. */
static uint64_t run_until(struct world *w, const struct world_qp *q, uint64_t bytes, uint64_t from)
{
	uint64_t step = w->cfg.wan.delay_ns / 200 + 1000;

	while (executed(q) < bytes && w->now < from + LIMIT_NS && !dead(w))
		world_run(w, w->now + step);
	return w->now - from;
}

/* ---- lanes that begin ---- */

struct cold {
	const char *name;
	bool cm;
	struct setting s;
	uint64_t bytes;
};

static double cold_ms(const struct cold *c, bool bare, double *held, struct last *out)
{
	struct work work = writes(&c->s, c->bytes);
	struct world *w = make(&c->s, bare, 1);
	struct world_qp *q = pair(w, &c->s, 0, c->cm);
	uint64_t from, ns = 0, step = c->s.rtt_ns / 1000;

	world_work(q, 0, &work);
	while (!q->up && !w->violation)
		world_run(w, w->now + 10000);
	from = w->now;
	*held = w->opened[0] ? 0 : NAN;
	while (!w->opened[0] && !bare && executed(q) < c->bytes && !dead(w))
		world_run(w, w->now + step);
	if (w->opened[0])
		*held = (double)(w->now - from) / (double)c->s.rtt_ns;
	if (!ns)
		ns = run_until(w, q, c->bytes, from);
	count_dead(w, bare, out);
	world_destroy(w);
	return (double)ns / 1e6;
}

static void cold_cell(const struct cold *c, struct last *out)
{
	double held, none, ours, bare;

	printf("%-22s", c->name);
	ours = cold_ms(c, false, &held, out);
	bare = opt->ours ? NAN : cold_ms(c, true, &none, out);
	printf("  %8.1f  %8.1f  %8.1f  %6.2f\n", ours, bare,
	       (double)c->s.rtt_ns / 2e6 + (double)c->bytes * 8e3 / ceiling(&c->s), held);
	if (!strcmp(c->name, "cm-16MiB-50ms"))
		out->cm_ms = ours;
	else if (!strcmp(c->name, "psn-16MiB-50ms"))
		out->psn_ms = ours;
}

static void cold(struct last *out)
{
#define COLD(name_, cm_, ms_, mtu_, size_, depth_, bytes_)                                         \
	{                                                                                          \
		.name = name_, .cm = cm_,                                                          \
		.s = {.rtt_ns = (ms_)*MS,                                                          \
		      .rate_bps = TEN_G,                                                           \
		      .mtu = mtu_,                                                                 \
		      .size = size_,                                                               \
		      .depth = depth_},                                                            \
		.bytes = bytes_                                                                    \
	}
	static const struct cold cells[] = {
		COLD("cm-16MiB-50ms", true, 50, 4096, BULK, 128, FIRST),
		COLD("cm-16MiB-50ms-16", true, 50, 4096, BULK, 16, FIRST),
		COLD("cm-4MiB-50ms-1", true, 50, 4096, BULK, 1, FIRST / 4),
		COLD("cm-1MiB-50ms-4096B", true, 50, 4096, 4096, 16, FIRST / 16),
		COLD("psn-16MiB-50ms", false, 50, 4096, BULK, 128, FIRST),
		COLD("psn-16MiB-50ms-16", false, 50, 4096, BULK, 16, FIRST),
		COLD("psn-4MiB-50ms-1", false, 50, 4096, BULK, 1, FIRST / 4),
		COLD("psn-1MiB-50ms-4096B", false, 50, 4096, 4096, 16, FIRST / 16),
		COLD("psn-64KiB-50ms-64B", false, 50, 4096, 64, 16, FIRST / 256),
		COLD("cm-16MiB-10ms", true, 10, 4096, BULK, 128, FIRST),
		COLD("psn-16MiB-10ms", false, 10, 4096, BULK, 128, FIRST),
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		if (!wanted(opt, cells[i].name))
			continue;
		if (!any)
			printf("\n%-22s  %8s  %8s  %8s  %6s\n", "first bytes, ms", "ours", "bare",
			       "limit", "held");
		any = true;
		cold_cell(&cells[i], out);
	}
}

static void many_held(struct last *out)
{
	struct setting s = {.rtt_ns = 20 * MS,
			    .rate_bps = TEN_G,
			    .mtu = 4096,
			    .size = BULK,
			    .depth = 16,
			    .queue_bdp = 1};
	struct work work = writes(&s, UINT64_MAX);

	if (!wanted(opt, "held-64"))
		return;
	for (int cm = 0; cm < 2; cm++) {
		struct world *w = make(&s, false, 3);
		uint64_t from = w->now;

		set_loss(w, 0.001);
		for (uint32_t i = 0; i < 64; i++)
			world_work(pair(w, &s, i, cm), 0, &work);
		while (w->opened[0] < 64 && w->now < from + 100 * s.rtt_ns && !w->violation)
			world_run(w, w->now + s.rtt_ns / 20);
		printf("held-64 (%s): %" PRIu64 " lanes after %.2f round trips", cm ? "cm" : "psn",
		       w->opened[0], (double)(w->now - from) / (double)s.rtt_ns);
		count_dead(w, false, out);
		printf("\n");
		world_destroy(w);
	}
}

/* ---- the whole link ---- */

struct steady {
	const char *name;
	struct setting s;
	uint32_t ramp, rounds; /* round trips */
};

/* A round trip at a time, with what is known of the link then. */
static void run_shown(struct world *w, const struct world_qp *q, const struct setting *s,
		      uint64_t until)
{
	struct link_info k;

	while (w->now < until) {
		uint64_t before = executed(q), from = w->now;

		world_run(w, min64(until, w->now + s->rtt_ns));
		if (!engine_link_info(w->engine[0], 0, &k))
			continue;
		printf("\n  %6.2f %% %-6s %-5s pace %7.3f delivered %7.3f lost %6u ppm queue %6.2f "
		       "ms",
		       (double)(executed(q) - before) * 8e11 / (double)(w->now - from) / ceiling(s),
		       k.phase, k.cause, (double)k.pace * 8e-9, (double)k.delivered * 8e-9,
		       k.lost_ppm, (double)k.queue_ns / 1e6);
	}
}

static void run_steady(struct world *w, const struct world_qp *q, const struct setting *s,
		       uint64_t rounds, bool bare)
{
	uint64_t until = w->now + rounds * s->rtt_ns;

	if (opt->verbose && !bare)
		run_shown(w, q, s, until);
	else
		world_run(w, until);
}

static double steady_share(const struct steady *c, bool bare, struct last *out)
{
	struct work work = writes(&c->s, UINT64_MAX);
	struct world *w = make(&c->s, bare, 1);
	struct world_qp *q = pair(w, &c->s, 0, false);
	uint64_t from, bytes;
	double share;

	world_work(q, 0, &work);
	run_steady(w, q, &c->s, (uint64_t)c->ramp * (opt->quick ? 1 : 2), bare);
	from = w->now;
	bytes = executed(q);
	run_steady(w, q, &c->s, c->rounds, bare);
	share = (double)(executed(q) - bytes) * 8e9 / (double)(w->now - from) / ceiling(&c->s);
	count_dead(w, bare, out);
	if (opt->verbose && !bare)
		world_dump(w, stdout);
	world_destroy(w);
	return 100 * share;
}

static void steady(struct last *out)
{
#define STEADY(name_, ms_, gbps_, mtu_, size_, depth_, room_, ramp_, rounds_)                      \
	{                                                                                          \
		.name = name_,                                                                     \
		.s = {.rtt_ns = (ms_)*MS,                                                          \
		      .rate_bps = (gbps_)*1000000000ull,                                           \
		      .mtu = mtu_,                                                                 \
		      .size = size_,                                                               \
		      .depth = depth_,                                                             \
		      .queue_bdp = 1,                                                              \
		      .headroom = room_},                                                          \
		.ramp = ramp_, .rounds = rounds_                                                   \
	}
	static const struct steady cells[] = {
		STEADY("64B-10ms", 10, 10, 4096, 64, 1024, 0.95, 30, 10),
		STEADY("64B-100ms", 100, 10, 4096, 64, 1024, 0.95, 10, 2),
		STEADY("25G-1024-200ms", 200, 25, 1024, BULK, 128, 0.99, 8, 3),
		STEADY("100G-4096-100ms", 100, 100, 4096, BULK, 128, 0.99, 8, 4),
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		const struct steady *c = &cells[i];
		double ours;

		if (!wanted(opt, c->name))
			continue;
		if (!any)
			printf("\n%-22s  %8s  %8s  %8s\n", "% of the link", "ours", "bare",
			       "limit");
		any = true;
		printf("%-22s", c->name);
		ours = steady_share(c, false, out);
		printf("  %8.2f", ours);
		printf("  %8.2f  %8.2f\n", opt->ours ? NAN : steady_share(c, true, out), 100.0);
		if (!strcmp(c->name, "64B-100ms"))
			out->small = ours;
		else if (!strcmp(c->name, "25G-1024-200ms"))
			out->lan25 = ours;
		else if (!strcmp(c->name, "100G-4096-100ms"))
			out->lan100 = ours;
	}
}

/* ---- tails ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double percentile(double *v, uint32_t n, double p)
{
	uint32_t i = (uint32_t)(p * n);

	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), ascending);
	return v[i < n ? i : n - 1];
}

/* @n: transfers (the 99.9th percentile of fewer than 1000 is the slowest), @few: with --quick */
struct tail {
	const char *name;
	uint32_t n, few;
	uint64_t rate_bps;
	struct wan_config loss;
	size_t last; /* where in struct last the ratio goes */
};

static double tail_ms(const struct tail *t, bool lossy, uint64_t seed, bool bare, struct last *out)
{
	struct setting s = {.rtt_ns = 25 * MS,
			    .rate_bps = t->rate_bps,
			    .mtu = 4096,
			    .size = BULK,
			    .depth = 128,
			    .queue_bdp = 1,
			    .pool = t->rate_bps > TEN_G ? 0 : 256u << 20};
	struct work work = writes(&s, 40ull << 20);
	struct world *w = make(&s, bare, seed);
	struct world_qp *q = pair(w, &s, 0, false);
	uint64_t before, ns;

	work.outstanding = 16;
	world_work(q, 0, &work);
	world_run_done(w, w->now + 20000 * MS);
	world_run(w, w->now + 3 * s.rtt_ns);
	before = executed(q);
	if (lossy)
		set_losses(w, &t->loss);
	work = writes(&s, TAIL_BYTES);
	world_work(q, 0, &work);
	ns = run_until(w, q, before + TAIL_BYTES, w->now);
	count_dead(w, bare, out);
	world_destroy(w);
	return (double)ns / 1e6;
}

#define TAIL_MAX 600u

static void tail_cell(const struct tail *t, struct last *out)
{
	uint32_t n = opt->quick ? t->few : t->n, few = opt->ours ? 0 : opt->quick ? 1 : 5;
	double ms[TAIL_MAX], ideal = tail_ms(t, false, 1, false, out), p50, p99, p999;

	for (uint32_t k = 0; k < n; k++)
		ms[k] = tail_ms(t, true, 1 + k, false, out);
	p50 = percentile(ms, n, 0.5);
	p99 = percentile(ms, n, 0.99);
	p999 = percentile(ms, n, 0.999);
	printf("  %8.1f  %8.1f  %8.1f  %8.1f  %8.2f", ideal, p50, p99, p999, p999 / ideal);
	for (uint32_t k = 0; k < few; k++)
		ms[k] = tail_ms(t, true, 1 + k, true, out);
	printf("  %8.1f\n", percentile(ms, few, 0.5));
	*(double *)(void *)((char *)out + t->last) = p999 / ideal;
}

/*
 * burst: 1 in 1000 is lost, in bursts of 8 in the mean. field: 1e-5 to 1e-2 of packets of 1 KiB, at
 * the worst what a provider's link lost; of packets of 4 KiB, as here, 5e-5 to 5e-2. It goes up and
 * down within two minutes. A transfer takes less than a second, so each has one loss, drawn by its
 * seed.
 */
#define BURST                                                                                      \
	{                                                                                          \
		.burst_start = 0.001 / 8 / 0.999, .burst_end = 1.0 / 8, .burst_loss = 1            \
	}
#define FIELD                                                                                      \
	{                                                                                          \
		.loss = 0.01, .loss_by_length = true, .loss_swing = 1000,                          \
		.loss_swing_ns = 120000 * MS                                                       \
	}

static void tail(struct last *out)
{
#define TAIL(name, gbps, n, few, loss, field)                                                      \
	{                                                                                          \
		name, n, few, (gbps)*1000000000ull, loss, offsetof(struct last, field)             \
	}
	static const struct tail cells[] = {
		TAIL("p999-1e-3", 10, TAIL_MAX, 40, {.loss = 0.001}, tail3),
		TAIL("p999-1e-2", 10, TAIL_MAX, 40, {.loss = 0.01}, tail2),
		TAIL("p999-burst", 10, TAIL_MAX, 12, BURST, burst),
		TAIL("p999-field", 10, TAIL_MAX, 12, FIELD, field),
		TAIL("p999-1e-3-100G", 100, 200, 12, {.loss = 0.001}, far3),
		TAIL("p999-1e-2-100G", 100, 200, 12, {.loss = 0.01}, far2),
		TAIL("p999-burst-100G", 100, 200, 12, BURST, far_burst),
		TAIL("p999-field-100G", 100, 200, 12, FIELD, far_field),
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		if (!wanted(opt, cells[i].name))
			continue;
		if (!any)
			printf("\n%-22s  %8s  %8s  %8s  %8s  %8s  %8s\n", "128 MiB, ms", "no loss",
			       "p50", "p99", "p99.9", "ratio", "bare");
		any = true;
		printf("%-22s", cells[i].name);
		tail_cell(&cells[i], out);
	}
}

/* ---- a small message beside many long ones ---- */

static struct {
	struct world_qp *q;
	uint64_t sent_at;
	double ms[PINGS_MAX];
	uint32_t n;
} ping;

static void ping_send(struct world *w, int side)
{
	struct rc_wr wr = {.op = RC_SEND, .length = 64};

	rc_post(ping.q->side[side].qp, w->now, &wr);
}

static void ping_received(struct world *w, struct world_qp *q, int side)
{
	if (q != ping.q)
		return;
	if (side == 0) {
		if (ping.n < PINGS_MAX)
			ping.ms[ping.n++] = (double)(w->now - ping.sent_at) / 1e6;
		ping.sent_at = w->now;
	}
	ping_send(w, side);
}

static void ping_beside(uint32_t lanes, double loss, bool bare, double *p50, double *p99,
			struct last *out)
{
	struct setting s = {.rtt_ns = 20 * MS,
			    .rate_bps = TEN_G,
			    .mtu = 4096,
			    .size = BULK,
			    .depth = 16,
			    .queue_bdp = 1,
			    .pool = 1ull << 30};
	struct world *w = make(&s, bare, 1);
	struct work work = writes(&s, UINT64_MAX);

	memset(&ping, 0, sizeof(ping));
	set_loss(w, loss);
	ping.q = pair(w, &s, 600, false);
	for (uint32_t i = 0; i < lanes; i++)
		world_work(pair(w, &s, i, false), 0, &work);
	w->received = ping_received;
	ping.sent_at = w->now;
	ping_send(w, 0);
	world_run(w, w->now + 1000 * MS);
	ping.n = 0;
	world_run(w, w->now + (opt->quick ? 1000 : 4000) * MS);
	*p50 = percentile(ping.ms, ping.n, 0.5);
	*p99 = percentile(ping.ms, ping.n, 0.99);
	count_dead(w, bare, out);
	if (opt->verbose && !bare)
		world_dump(w, stdout);
	world_destroy(w);
}

static void pings(struct last *out)
{
	static const struct {
		const char *name;
		uint32_t lanes;
		double loss;
	} cells[] = {{"ping-1", 1, 0}, {"ping-64", 64, 0}, {"ping-512", 512, 0}};
	bool any = false;

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		double p50, p99, bare50, bare99;

		if (!wanted(opt, cells[i].name))
			continue;
		if (!any)
			printf("\n%-22s  %8s  %8s  %8s  %8s  %8s\n", "64 B to and fro, ms", "p50",
			       "p99", "bare p50", "bare p99", "limit");
		any = true;
		printf("%-22s", cells[i].name);
		ping_beside(cells[i].lanes, cells[i].loss, false, &p50, &p99, out);
		bare50 = bare99 = NAN;
		if (!opt->ours)
			ping_beside(cells[i].lanes, cells[i].loss, true, &bare50, &bare99, out);
		printf("  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f\n", p50, p99, bare50, bare99, 20.0);
		if (cells[i].lanes == 512)
			out->ping_ms = p50;
	}
}

void link_lanes(const struct options *o, struct last *out)
{
	opt = o;
	cold(out);
	many_held(out);
	steady(out);
	tail(out);
	pings(out);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random worlds, one seed each, until the time is up or the packets are done: `make soak`.
 *
 *	soak [--seconds N] [--packets N] [--seed N] [--runs N] [--verbose]
 *
 * A world's seed decides everything: hosts, queue pairs, operations, impairments of WAN, LANs and reports,
 * policy, modes, pool size, and a list of incidents at random times. At the end the responders' memory and
 * message order are compared with what was posted. Where an incident allows a queue pair to fail (a fatal
 * NAK, a host without enough retries), it may; then what was executed must still be an exact prefix, and
 * whoever was told that a message is done although it was not must have seen its queue pair fail.
 *
 * A violation prints the seed, and `soak --seed N --runs 1 --verbose` shows the world again.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/scenario/scenario.h"

enum incident {
	INC_LINK_DOWN,	  /* both directions of the WAN for a while */
	INC_ONE_WAY_DOWN, /* one of them */
	INC_RATE,	  /* the WAN's rate changes */
	INC_LOSS,	  /* its loss changes */
	INC_PEER_SILENT,  /* reports stop for a while */
	INC_DRAIN,	  /* an engine lets go of its lanes and may take them again */
	INC_RNR_STORM,	  /* a responder has no receives for a while */
	INC_FATAL,	  /* a responder refuses a request */
	INCIDENTS,
};

struct run {
	struct world *w;
	struct prng rng;
	bool may_fail;
	bool strict;
};

static double pick(struct prng *r, const double *of, uint32_t n)
{
	return of[prng_below(r, n)];
}

static uint32_t between(struct prng *r, uint32_t lo, uint32_t hi)
{
	return lo + prng_below(r, hi - lo + 1);
}

static void random_config(struct run *x, struct world_config *c, uint64_t seed)
{
	static const double loss[] = {0, 0, 0.0001, 0.001, 0.01, 0.03, 0.1};
	static const double little[] = {0, 0, 0, 0.001, 0.01};
	static const double delay_ms[] = {0.01, 0.5, 2, 5, 10, 25};
	static const double gbps[] = {0.5, 1, 5, 10, 10};
	struct prng *r = &x->rng;

	world_defaults(c);
	c->seed = seed;
	c->check_every = 4001;
	c->frames_max = 20000000;
	c->wan.delay_ns = (uint64_t)(pick(r, delay_ms, 6) * 1e6);
	c->wan.rate_bps = (uint64_t)(pick(r, gbps, 5) * 1e9);
	c->wan.loss = pick(r, loss, 7);
	c->wan.dup = pick(r, loss, 6);
	c->wan.reorder = pick(r, loss, 7);
	c->wan.reorder_ns = c->wan.delay_ns / between(r, 2, 20) + 1;
	c->wan.corrupt = pick(r, little, 5);
	if (prng_hit(r, 0.2)) {
		c->wan.burst_start = 0.001;
		c->wan.burst_end = 0.1;
		c->wan.burst_loss = 0.5;
	}
	if (prng_hit(r, 0.3)) {
		c->lan.loss = pick(r, little, 5);
		c->lan.dup = pick(r, little, 5);
		c->lan.corrupt = pick(r, little, 5) / 4;
		c->lan.reorder = pick(r, little, 5);
		c->lan.reorder_ns = 50000;
	}
	c->report_loss = pick(r, loss, 7);
	c->policy = prng_below(r, POLICIES);
	if (prng_hit(r, 0.25)) {
		c->single = true;
		/* go-back-N over the WAN, and bare in the other direction: little loss, or it takes for ever */
		if (c->wan.loss > 0.01)
			c->wan.loss = 0.01;
		c->wan.burst_start = 0;
		if (c->wan.reorder > 0.01)
			c->wan.reorder = 0.01;
		c->appliance[prng_below(r, 2)] = prng_hit(r, 0.5);
	}
	c->engine.pool_bytes = prng_hit(r, 0.3) ? (uint64_t)between(r, 4, 8) << 20 : 64ull << 20;
	if (prng_hit(r, 0.3))
		c->engine.wan_rate = c->wan.rate_bps / 8 * 95 / 100;
}

static void random_qps(struct run *x)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096, 4096};
	static const uint32_t psns[] = {0, 0xfffff0, 0xfff000, 0x7ffff0, 0x123456};
	struct prng *r = &x->rng;
	uint32_t n = prng_hit(r, 0.5) ? 1 : between(r, 2, 8), mtu = mtus[prng_below(r, 6)];
	bool reads = prng_hit(r, 0.4);

	for (uint32_t i = 0; i < n; i++) {
		struct rc_qp_config qc;
		struct world_qp *q;

		scenario_qp(&qc, i, mtu, x->strict ? RC_STRICT : RC_PERMISSIVE);
		qc.sq_psn = prng_hit(r, 0.5) ? psns[prng_below(r, 5)] : (uint32_t)prng_next(r) & 0xffffff;
		qc.rq_psn = prng_hit(r, 0.5) ? qc.sq_psn : (uint32_t)prng_next(r) & 0xffffff;
		qc.depth = 1u << between(r, 0, 6);
		qc.rnr_p = prng_hit(r, 0.2) ? 0.02 : 0;
		qc.credits = prng_hit(r, 0.3);
		if (prng_hit(r, 0.2))
			qc.resend = RC_RESEND_HW_ALL;
		q = world_connect(x->w, &qc, x->strict ? RC_STRICT : RC_PERMISSIVE);
		for (int s = 0; s < 2; s++) {
			struct work k = {.ops = reads ? OPS_ALL : OPS_WRITE_SEND | 1u << RC_SEND_INV,
					 .max = prng_hit(r, 0.2) ? 200000 : between(r, 1, 40000),
					 .left = between(r, 20, 600) / n + 10};

			if (s == 0 || prng_hit(r, 0.7))
				world_work(q, s, &k);
		}
	}
}

static void incident(struct run *x, enum incident what)
{
	struct world *w = x->w;
	struct prng *r = &x->rng;
	struct wan_config c[2];
	uint64_t for_ns = (uint64_t)between(r, 1, 300) * MS;
	int side = (int)prng_below(r, 2);
	struct world_qp *q = &w->qp[prng_below(r, w->nqps)];

	for (int i = 0; i < 2; i++)
		c[i] = *wan_config(w->link[WORLD_WAN(i)]);
	switch (what) {
	case INC_LINK_DOWN:
	case INC_ONE_WAY_DOWN:
		for (int i = 0; i < 2; i++) {
			struct wan_config down = c[i];

			down.down = what == INC_LINK_DOWN || i == side;
			world_set_wan(w, i, &down);
		}
		world_run(w, w->now + for_ns);
		for (int i = 0; i < 2; i++)
			world_set_wan(w, i, &c[i]);
		break;
	case INC_RATE:
		c[side].rate_bps = (uint64_t)between(r, 100, 10000) * 1000000;
		world_set_wan(w, side, &c[side]);
		break;
	case INC_LOSS:
		c[side].loss = prng_hit(r, 0.5) ? 0 : 0.02;
		world_set_wan(w, side, &c[side]);
		break;
	case INC_PEER_SILENT: {
		struct wan_config reports = *wan_config(w->reports[side]), silent = reports;

		silent.down = true;
		wan_set(w->reports[side], &silent);
		world_run(w, w->now + for_ns);
		wan_set(w->reports[side], &reports);
		break;
	}
	case INC_DRAIN:
		if (w->engine[side])
			world_redeem(w, side);
		break;
	case INC_RNR_STORM:
		rc_qp_set_recv(q->side[side].qp, w->now, true, 0, 0.9);
		world_run(w, w->now + for_ns);
		rc_qp_set_recv(q->side[side].qp, w->now, true, 0, 0);
		break;
	case INC_FATAL:
		x->may_fail = true;
		rc_qp_refuse_next(q->side[side].qp, (uint8_t)(0x61 + prng_below(r, 3)),
				  prng_below(r, 50));
		break;
	default:
		break;
	}
}

/*
 * A requester that was told of more messages than the responder executed, and whose queue pair has not
 * failed: an acknowledged byte was lost in silence.
 */
static const char *lost_in_silence(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *req = w->qp[i].side[s].qp, *resp = w->qp[i].side[!s].qp;

			if (!rc_qp_in_error(req) && !rc_qp_queued(req) && rc_check_all(req, resp) &&
			    !rc_qp_in_error(resp))
				return "1: acknowledged messages were lost in silence";
		}
	return NULL;
}

static const char *one(uint64_t seed, bool verbose, uint64_t *packets, uint64_t *acked)
{
	struct run x = {0};
	struct world_config c;
	const char *bad;
	uint32_t n;
	bool done;

	prng_init(&x.rng, seed);
	x.strict = prng_hit(&x.rng, 0.4);
	random_config(&x, &c, seed);
	x.w = world_create(&c);
	random_qps(&x);
	x.may_fail = x.strict; /* it has seven retries, whatever the WAN does */
	n = prng_hit(&x.rng, 0.5) ? between(&x.rng, 1, 4) : 0;
	for (uint32_t i = 0; i < n && !x.w->violation; i++) {
		world_run(x.w, x.w->now + (uint64_t)between(&x.rng, 1, 200) * MS);
		incident(&x, prng_below(&x.rng, INCIDENTS));
	}
	done = world_run_done(x.w, x.w->now + 3000 * SEC);
	bad = world_verify(x.w, false);
	if (!bad)
		bad = lost_in_silence(x.w);
	if (!bad && !done)
		bad = "something waits for ever";
	if (!bad && !x.may_fail)
		bad = world_verify(x.w, true);
	/* one direction of such a world is bare, and bare hosts do turn in circles */
	if (bad && c.single && x.w->frames > c.frames_max)
		bad = NULL;
	if (bad || verbose) {
		fprintf(stderr, "soak: seed=%" PRIu64 ": %s\n", seed, bad ? bad : "right");
		if (verbose)
			world_dump(x.w, stderr);
	}
	*packets += x.w->frames;
	for (uint32_t i = 0; i < x.w->nqps; i++)
		*acked += x.w->qp[i].side[0].ok + x.w->qp[i].side[1].ok;
	world_destroy(x.w);
	return bad;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{"seconds", 1, NULL, 's'}, {"packets", 1, NULL, 'p'}, {"seed", 1, NULL, 'S'},
		{"runs", 1, NULL, 'r'},	   {"verbose", 0, NULL, 'v'}, {0}};
	double seconds = 0, packets_max = 0, start = now_s();
	uint64_t seed = 1, runs = 0, runs_max = 0, packets = 0, acked = 0, violations = 0;
	bool verbose = false;
	int o;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 's':
			seconds = atof(optarg);
			break;
		case 'p':
			packets_max = atof(optarg);
			break;
		case 'S':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			runs_max = strtoull(optarg, NULL, 0);
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (!seconds && !packets_max && !runs_max)
		seconds = 60;
	while ((!seconds || now_s() - start < seconds) &&
	       (!packets_max || (double)packets < packets_max) && (!runs_max || runs < runs_max)) {
		/* neighbouring start seeds share no world */
		uint64_t s = runs ? splitmix64(seed ^ runs << 40) : seed;

		violations += one(s, verbose, &packets, &acked) != NULL;
		runs++;
	}
	printf("soak: runs=%" PRIu64 " packets=%" PRIu64 " acked-messages=%" PRIu64
	       " violations=%" PRIu64 "\n",
	       runs, packets, acked, violations);
	return violations != 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Plans from seeds, to text and from text. Fields are described once, in tables; a field that is 0
 * is not printed.
 */
#include "tests/scenario/plan.h"
#include "tests/scenario/world_storage.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/scenario.h"

/* ---- text ---- */

enum kind {
	U32,
	U64,
	REAL,
	WHAT, /* enum incident by name */
};

struct field {
	const char *name;
	enum kind kind;
	size_t off;
};

#define F(type, member, name, kind)                                                                \
	{                                                                                          \
		name, kind, offsetof(struct type, member)                                          \
	}

static const struct field world_fields[] = {
	F(plan, seed, "seed", U64),
	F(plan, appliance0, "appliance0", U32),
	F(plan, appliance1, "appliance1", U32),
	F(plan, cores0, "cores0", U32),
	F(plan, cores1, "cores1", U32),
	F(plan, single, "single", U32),
	F(plan, policy, "policy", U32),
	F(plan, atomic, "atomic", U32),
	F(plan, prefetch, "prefetch", U32),
	F(plan, prefetch_responder, "prefetch-responder", U32),
	F(plan, proved, "proved", U32),
	F(plan, announce, "announce", U32),
	F(plan, unchecked, "wan-unchecked", U32),
	F(plan, read_age_ms, "read-age-ms", U32),
	F(plan, delay_ns, "delay-ns", U64),
	F(plan, rate_bps, "rate-bps", U64),
	F(plan, queue_bytes, "queue-bytes", U64),
	F(plan, reorder_ns, "reorder-ns", U64),
	F(plan, wan_rate, "wan-rate", U64),
	F(plan, wan_auto, "wan-auto", U32),
	F(plan, pool_bytes, "pool-bytes", U64),
	F(plan, lane_span, "lane-span", U64),
	F(plan, loss0, "loss0", REAL),
	F(plan, loss1, "loss1", REAL),
	F(plan, dup, "dup", REAL),
	F(plan, reorder, "reorder", REAL),
	F(plan, corrupt, "corrupt", REAL),
	F(plan, burst, "burst", REAL),
	F(plan, burst_length, "burst-length", U32),
	F(plan, by_length, "loss-by-length", U32),
	F(plan, swing, "loss-swing", U32),
	F(plan, swing_ms, "loss-swing-ms", U32),
	F(plan, lan_loss, "lan-loss", REAL),
	F(plan, lan_dup, "lan-dup", REAL),
	F(plan, lan_reorder, "lan-reorder", REAL),
	F(plan, lan_corrupt, "lan-corrupt", REAL),
	F(plan, report_loss, "report-loss", REAL),
	F(plan, report_reorder, "report-reorder", REAL),
	F(plan, report_replay, "report-replay", REAL),
	F(plan, report_forge, "report-forge", REAL),
	F(plan, actors.forge, "forge", U32),
	F(plan, actors.forge_at, "forge-at", U32),
	F(plan, actors.forge_every, "forge-every", U32),
	F(plan, actors.forge_max, "forge-max", U32),
	F(plan, actors.overload, "overload", U32),
	F(plan, actors.overload_every, "overload-every", U32),
	F(plan, actors.overload_us, "overload-us", U32),
	F(plan, actors.late, "late", U32),
	F(plan, actors.late_us, "late-us", U32),
	F(plan, actors.queues, "queues", U32),
	F(plan, actors.queue_us, "queue-us", U32),
	F(plan, actors.still, "still", U32),
	F(plan, actors.still_ms, "still-ms", U32),
	F(plan, actors.lag, "lag", U32),
	F(plan, actors.order, "order", U32),
	F(plan, actors.share, "share", U32),
	F(plan, in_band, "in-band", U32),
	F(plan, actors.cross_bps, "cross-bps", U64),
	F(plan, actors.cross_ms, "cross-ms", U32),
	{0},
};

static const struct field qp_fields[] = {
	F(plan_qp, strict, "strict", U32),
	F(plan_qp, mtu, "mtu", U32),
	F(plan_qp, depth, "depth", U32),
	F(plan_qp, max_rd, "max-rd", U32),
	F(plan_qp, sq_psn, "sq-psn", U32),
	F(plan_qp, rq_psn, "rq-psn", U32),
	F(plan_qp, credits, "credits", U32),
	F(plan_qp, resend, "resend", U32),
	F(plan_qp, ip6, "ip6", U32),
	F(plan_qp, vlan, "vlan", U32),
	F(plan_qp, cm, "cm", U32),
	F(plan_qp, mr_kib, "mr-kib", U32),
	F(plan_qp, change_us, "change-us", U32),
	F(plan_qp, ports, "ports", U32),
	F(plan_qp, rnr_p, "rnr", REAL),
	F(plan_qp, coalesce, "coalesce", U32),
	F(plan_qp, ack_us, "ack-us", U32),
	F(plan_qp, ackreq_every, "ackreq-every", U32),
	F(plan_qp, reply_us, "reply-us", U32),
	F(plan_qp, recv_us, "recv-us", U32),
	F(plan_qp, prio0, "prio0", U32),
	F(plan_qp, prio1, "prio1", U32),
	F(plan_qp, reuse, "reuse", U32),
	F(plan_qp, reuse_psn, "reuse-psn", U32),
	F(plan_qp, reuse_after, "reuse-after", U32),
	F(plan_qp, reuse_ms, "reuse-ms", U32),
	F(plan_qp, reuse_other, "reuse-other", U32),
	F(plan_qp, reuse_cm, "reuse-cm", U32),
	F(plan_qp, storage, "storage", U32),
	F(plan_qp, st_min, "st-min", U32),
	F(plan_qp, st_max, "st-max", U32),
	F(plan_qp, st_depth, "st-depth", U32),
	F(plan_qp, st_split, "st-split", U32),
	F(plan_qp, st_form, "st-form", U32),
	F(plan_qp, st_reads, "st-reads", U32),
	F(plan_qp, st_inlined, "st-inlined", U32),
	F(plan_qp, st_refused, "st-refused", U32),
	F(plan_qp, st_protocol, "st-protocol", U32),
	F(plan_qp, st_parts, "st-parts", U32),
	F(plan_qp, st_chatter, "st-chatter", U32),
	{0},
};

static const struct field work_fields[] = {
	F(plan_work, ops, "ops", U32),
	F(plan_work, min, "min", U32),
	F(plan_work, max, "max", U32),
	F(plan_work, count, "count", U32),
	F(plan_work, outstanding, "outstanding", U32),
	F(plan_work, streams, "streams", U32),
	F(plan_work, stream_len, "stream-len", U32),
	F(plan_work, break_permille, "break-permille", U32),
	F(plan_work, changing, "changing", U32),
	F(plan_work, counter, "counter", U32),
	F(plan_work, unsignaled, "unsignaled", U32),
	{0},
};

static const struct field incident_fields[] = {
	F(plan_incident, what, "what", WHAT),
	F(plan_incident, at, "at", U32),
	F(plan_incident, for_ms, "for-ms", U32),
	F(plan_incident, side, "side", U32),
	F(plan_incident, qp, "qp", U32),
	F(plan_incident, arg, "arg", U32),
	F(plan_incident, times, "times", U32),
	F(plan_incident, every_ms, "every-ms", U32),
	{0},
};

static const char *const incident_names[INCIDENTS] = {
	[INC_LINK_DOWN] = "link-down", [INC_ONE_WAY_DOWN] = "one-way-down",
	[INC_RATE] = "rate",	       [INC_DELAY] = "delay",
	[INC_LOSS] = "loss",	       [INC_PEER_SILENT] = "peer-silent",
	[INC_PEER_DOWN] = "peer-down", [INC_DRAIN] = "drain",
	[INC_RESTART] = "restart",     [INC_RNR_STORM] = "rnr-storm",
	[INC_FATAL] = "fatal",	       [INC_CLOCK] = "clock",
	[INC_REUSE] = "reuse",	       [INC_HOST_SILENT] = "host-silent",
	[INC_STILL] = "still",	       [INC_PATH] = "path",
	[INC_OPERATOR] = "operator",
};

static void print_fields(const struct field *f, const void *of, FILE *out)
{
	for (; f->name; f++) {
		const void *p = (const uint8_t *)of + f->off;

		if (f->kind == WHAT)
			fprintf(out, " %s %s", f->name, incident_names[*(const uint32_t *)p]);
		else if (f->kind == U32 && *(const uint32_t *)p)
			fprintf(out, " %s %" PRIu32, f->name, *(const uint32_t *)p);
		else if (f->kind == U64 && *(const uint64_t *)p)
			fprintf(out, " %s %" PRIu64, f->name, *(const uint64_t *)p);
		else if (f->kind == REAL && *(const double *)p > 0)
			fprintf(out, " %s %.17g", f->name, *(const double *)p);
	}
	fprintf(out, "\n");
}

void plan_print(const struct plan *p, FILE *out)
{
	fprintf(out, "world");
	print_fields(world_fields, p, out);
	for (uint32_t i = 0; i < p->nqps; i++) {
		fprintf(out, "qp");
		print_fields(qp_fields, &p->qp[i], out);
		for (uint32_t s = 0; s < 2; s++) {
			if (!p->qp[i].work[s].count)
				continue;
			fprintf(out, "work side %" PRIu32, s);
			print_fields(work_fields, &p->qp[i].work[s], out);
		}
	}
	for (uint32_t i = 0; i < p->nincidents; i++) {
		fprintf(out, "incident");
		print_fields(incident_fields, &p->incident[i], out);
	}
}

static bool set_field(const struct field *f, void *of, const char *value)
{
	void *p = (uint8_t *)of + f->off;
	char *end;

	switch (f->kind) {
	case WHAT:
		for (uint32_t i = 0; i < INCIDENTS; i++)
			if (!strcmp(value, incident_names[i])) {
				*(uint32_t *)p = i;
				return true;
			}
		return false;
	case U32:
		*(uint32_t *)p = (uint32_t)strtoul(value, &end, 0);
		return !*end;
	case U64:
		*(uint64_t *)p = strtoull(value, &end, 0);
		return !*end;
	default:
		*(double *)p = strtod(value, &end);
		return !*end;
	}
}

/* The rest of a line, as names and values. */
static bool read_fields(const struct field *fields, void *of, char **save)
{
	char *name, *value;

	while ((name = strtok_r(NULL, " \t\n", save))) {
		const struct field *f = fields;

		value = strtok_r(NULL, " \t\n", save);
		while (f->name && strcmp(f->name, name))
			f++;
		if (!f->name || !value || !set_field(f, of, value))
			return false;
	}
	return true;
}

static bool read_work(struct plan *p, char **save)
{
	char *side = strtok_r(NULL, " \t\n", save),
	     *n = side ? strtok_r(NULL, " \t\n", save) : NULL;

	if (!n || strcmp(side, "side") || (strcmp(n, "0") && strcmp(n, "1")) || !p->nqps)
		return false;
	return read_fields(work_fields, &p->qp[p->nqps - 1].work[*n - '0'], save);
}

static bool plan_ok(const struct plan *p)
{
	if (!p->nqps)
		return false;
	for (uint32_t i = 0; i < p->nincidents; i++)
		if (p->incident[i].side > 1 || p->incident[i].qp >= p->nqps ||
		    (p->incident[i].what == INC_PATH &&
		     (!p->incident[i].arg || p->incident[i].arg > 15)) ||
		    (p->incident[i].what == INC_OPERATOR && p->incident[i].arg >= WISHES))
			return false;
	for (uint32_t i = 0; i < p->nqps; i++)
		if (p->qp[i].ports >= RC_PORTS || p->qp[i].reuse_psn >= REUSE_PSNS ||
		    p->qp[i].reuse_other > 3 || p->qp[i].st_depth > STORAGE_DEPTH ||
		    p->qp[i].st_protocol >= FORMS || p->qp[i].st_parts > STORAGE_PARTS ||
		    (p->qp[i].storage && (!p->announce || p->qp[i].cm || !p->qp[i].st_depth)))
			return false;
	return !(p->actors.forge >> (FORGE_PROBED + 1)) && !(p->actors.forge_at >> 4) &&
	       !p->actors.forge == !p->actors.forge_at && p->actors.overload < 16 &&
	       p->actors.late < 32 && p->actors.still < 4 && p->actors.queues <= QUEUES_MAX &&
	       p->cores0 <= SHARDS_MAX && p->cores1 <= SHARDS_MAX;
}

uint32_t plan_read(struct plan *p, FILE *in)
{
	char line[1024];
	uint32_t n = 0;

	memset(p, 0, sizeof(*p));
	while (fgets(line, sizeof(line), in)) {
		char *save = NULL, *word = strtok_r(line, " \t\n", &save);
		bool ok;

		n++;
		if (!word || *word == '#')
			continue;
		if (!strcmp(word, "world"))
			ok = read_fields(world_fields, p, &save);
		else if (!strcmp(word, "qp"))
			ok = p->nqps < PLAN_QPS && read_fields(qp_fields, &p->qp[p->nqps++], &save);
		else if (!strcmp(word, "work"))
			ok = read_work(p, &save);
		else if (!strcmp(word, "incident"))
			ok = p->nincidents < PLAN_INCIDENTS &&
			     read_fields(incident_fields, &p->incident[p->nincidents++], &save);
		else
			ok = false;
		if (!ok)
			return n;
	}
	return plan_ok(p) ? 0 : n + 1;
}

/* ---- at random ---- */

static double pick(struct prng *r, const double *of, uint32_t n)
{
	return of[prng_below(r, n)];
}

static uint32_t between(struct prng *r, uint32_t lo, uint32_t hi)
{
	return lo + prng_below(r, hi - lo + 1);
}

static const double losses[] = {0, 0, 0.0001, 0.001, 0.01, 0.03, 0.1};
static const double little[] = {0, 0, 0, 0.001, 0.01};

static void random_links(struct plan *p, struct prng *r)
{
	static const double delay_ms[] = {0.01, 0.5, 2, 5, 10, 25};
	static const double gbps[] = {0.5, 1, 5, 10, 10};

	p->delay_ns = (uint64_t)(pick(r, delay_ms, 6) * 1e6);
	p->rate_bps = (uint64_t)(pick(r, gbps, 5) * 1e9);
	p->queue_bytes = (1ull << 20) << prng_below(r, 4);
	p->loss0 = p->loss1 = pick(r, losses, 7);
	if (prng_hit(r, 0.3))
		p->loss1 = pick(r, losses, 7);
	p->dup = pick(r, losses, 6);
	p->reorder = pick(r, losses, 7);
	p->reorder_ns = p->delay_ns / between(r, 2, 20) + 1;
	p->corrupt = pick(r, little, 5);
	if (prng_hit(r, 0.2))
		p->burst = 0.001;
	if (prng_hit(r, 0.3)) {
		p->lan_loss = pick(r, little, 5);
		p->lan_dup = pick(r, little, 5);
		p->lan_corrupt = pick(r, little, 5) / 4;
		p->lan_reorder = pick(r, little, 5);
	}
	p->report_loss = pick(r, losses, 7);
	if (prng_hit(r, 0.3))
		p->report_reorder = pick(r, losses, 7);
	if (prng_hit(r, 0.2))
		p->report_replay = pick(r, losses, 6);
	if (prng_hit(r, 0.2))
		p->report_forge = pick(r, losses, 6);
}

static void random_appliances(struct plan *p, struct prng *r)
{
	p->appliance0 = p->appliance1 = 1;
	p->policy = prng_below(r, POLICIES);
	if (prng_hit(r, 0.25)) {
		p->single = 1;
		/* go-back-N over the WAN, bare in the other direction: with much loss it takes for
		 * ever */
		if (p->loss0 > 0.01)
			p->loss0 = 0.01;
		if (p->loss1 > 0.01)
			p->loss1 = 0.01;
		p->burst = 0;
		if (p->reorder > 0.01)
			p->reorder = 0.01;
		if (prng_hit(r, 0.5)) {
			if (prng_hit(r, 0.5))
				p->appliance0 = 0;
			else
				p->appliance1 = 0;
		}
	}
	p->pool_bytes = 64ull << 20;
	if (prng_hit(r, 0.3)) {
		p->pool_bytes = (uint64_t)between(r, 4, 8) << 20;
		p->actors.share = 1000;
	}
	if (prng_hit(r, 0.3))
		p->wan_rate = p->rate_bps / 8 * 95 / 100;
	if (p->seed % 4 == 0) /* small messages fill it, as they fill 2^21 on long links */
		p->lane_span = 512 + p->seed / 4 % 4096;
}

static void random_work(const struct plan *p, struct prng *r, struct plan_work *k, bool reads,
			uint32_t mtu)
{
	k->ops = reads ? OPS_ALL : OPS_WRITE_SEND | 1u << RC_SEND_INV;
	k->max = between(r, 1, 40000);
	k->count = between(r, 20, 600) / p->nqps + 10;
	if (prng_hit(r, 0.2)) {
		k->max = 200000;
	} else if (prng_hit(r, 0.05)) {
		k->max = mtu * 1000;
		k->count = between(r, 5, 20) / p->nqps + 2;
	}
	if (prng_hit(r, 0.3))
		k->outstanding = between(r, 1, 16);
	if (!p->prefetch)
		return;
	/* mostly READs, in streams that something comes in between of now and then */
	k->ops = prng_hit(r, 0.3) ? 1u << RC_READ : OPS_ALL;
	k->streams = between(r, 1, 4);
	k->stream_len = 64u << prng_below(r, 11);
	k->break_permille = prng_hit(r, 0.5) ? between(r, 1, 100) : 0;
	k->changing = prng_hit(r, 0.5);
	k->max = between(r, 1, 10000);
	k->count = between(r, 200, 1000) / p->nqps + 10;
}

/* Often little before the numbers wrap, or before their half. */
static uint32_t random_psn(struct prng *r)
{
	uint32_t before = prng_below(r, 16u << prng_below(r, 9));

	switch (prng_below(r, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 0x7fffff - before;
	case 3:
	case 4:
	case 5:
		return 0xffffff - before;
	default:
		return (uint32_t)prng_next(r) & 0xffffff;
	}
}

static void random_qps(struct plan *p, struct prng *r, bool strict)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096, 4096};
	uint32_t mtu = mtus[prng_below(r, 6)];
	bool reads = prng_hit(r, 0.4), ip6 = prng_hit(r, 0.15), tagged = prng_hit(r, 0.15);

	p->nqps = prng_hit(r, 0.5) ? 1 : between(r, 2, PLAN_QPS);
	for (uint32_t i = 0; i < p->nqps; i++) {
		struct plan_qp *q = &p->qp[i];

		q->strict = strict;
		q->ip6 = ip6;
		q->vlan = tagged ? 100 : 0;
		q->mtu = mtu;
		q->sq_psn = random_psn(r);
		q->rq_psn = prng_hit(r, 0.5) ? q->sq_psn : random_psn(r);
		q->depth = 1u << between(r, 0, 6);
		q->max_rd = prng_hit(r, 0.5) ? 16 : between(r, 1, 16);
		q->rnr_p = prng_hit(r, 0.2) ? 0.02 : 0;
		q->credits = prng_hit(r, 0.3);
		q->resend = prng_hit(r, 0.2) ? RC_RESEND_HW_ALL : 0;
		q->cm = prng_hit(r, 0.3);
		q->mr_kib = 1024;
		for (int s = 0; s < 2; s++)
			if (s == 0 || prng_hit(r, 0.7)) {
				random_work(p, r, &q->work[s], reads, mtu);
				if (q->work[s].max > q->mr_kib << 9)
					q->mr_kib = q->work[s].max >> 9;
			}
		if (p->prefetch)
			q->change_us = prng_hit(r, 0.8) ? between(r, 20, 20000) : 0;
	}
}

static void random_incident(const struct plan *p, struct prng *r, struct plan_incident *i)
{
	i->what = prng_below(r, INC_STILL);
	i->at = between(r, 0, 1000);
	i->for_ms = between(r, 1, 300);
	i->side = prng_below(r, 2);
	i->qp = prng_below(r, p->nqps);
	switch (i->what) {
	case INC_RATE:
		i->arg = between(r, 100, 10000);
		break;
	case INC_DELAY:
		i->arg = between(r, 1, 30000);
		break;
	case INC_LOSS:
		i->arg = prng_hit(r, 0.5) ? 0 : 20000;
		break;
	case INC_FATAL:
		i->arg = between(r, 0x61, 0x63);
		break;
	case INC_CLOCK:
		i->arg = prng_hit(r, 0.5) ? 0 : between(r, 1, 2000);
		break;
	case INC_REUSE:
		i->arg = prng_below(r, 2);
		/* an owner that begins at its predecessor's PSNs can be told from it only by CM */
		if (!p->qp[i->qp].cm)
			i->arg = 1;
		break;
	default:
		break;
	}
}

/* ATOMICs in all that is done, and rules that let them be answered early. */
static void random_atomics(struct plan *p, uint64_t seed)
{
	struct prng r;

	prng_init(&r, splitmix64(seed ^ 0xa70));
	if (!p->single && prng_hit(&r, 0.2)) {
		p->atomic = ATOMIC_PREFETCH;
		for (uint32_t i = 0; i < p->nqps; i++)
			for (int s = 0; s < 2; s++) {
				struct plan_work *k = &p->qp[i].work[s];

				if (!k->count || prng_hit(&r, 0.2))
					continue;
				k->counter = 1;
				k->ops = 1u << RC_FETCH_ADD | 1u << RC_SEND | 1u << RC_READ;
				k->outstanding = prng_hit(&r, 0.7) ? between(&r, 1, 8) : 0;
				k->count += between(&r, 0, 600);
			}
		return;
	}
	if (p->policy != POLICY_EARLY || !prng_hit(&r, 0.4))
		return;
	p->atomic = ATOMIC_DISCARD;
	for (uint32_t i = 0; i < p->nqps; i++)
		for (int s = 0; s < 2; s++)
			if (p->qp[i].work[s].count && prng_hit(&r, 0.8))
				p->qp[i].work[s].ops |= 1u << RC_CMP_SWAP | 1u << RC_FETCH_ADD;
}

/* Some worlds of several queue pairs keep their order among them. */
static void random_order(struct plan *p, uint64_t seed)
{
	struct prng r;

	prng_init(&r, splitmix64(seed ^ 0x04de4));
	if (p->nqps < 2 || p->policy != POLICY_EARLY || p->prefetch > 1 ||
	    p->atomic == ATOMIC_DISCARD || !prng_hit(&r, 0.6))
		return;
	p->actors.order = prng_hit(&r, 0.1) ? 3 : 1;
}

void plan_random(struct plan *p, uint64_t seed, bool prefetch)
{
	struct prng r;
	bool strict;

	memset(p, 0, sizeof(*p));
	prng_init(&r, seed);
	p->seed = seed;
	p->prefetch = prefetch;
	if (prefetch)
		p->read_age_ms = (const uint32_t[]){0, 20, 200, 1000}[prng_below(&r, 4)];
	/* drawn apart from the rest */
	p->prefetch_responder = prefetch && splitmix64(seed ^ 0x4e5b) % 2;
	p->proved = splitmix64(seed ^ 0xec40) % 2;
	strict = prng_hit(&r, 0.4);
	random_links(p, &r);
	random_appliances(p, &r);
	random_qps(p, &r, strict);
	p->nincidents = prng_hit(&r, 0.5) ? between(&r, 1, 4) : 0;
	for (uint32_t i = 0; i < p->nincidents; i++)
		random_incident(p, &r, &p->incident[i]);
	random_atomics(p, seed);
	p->unchecked = splitmix64(seed ^ 0x4a3e) % 8 == 0;
	random_order(p, seed);
}

/* One queue pair of an initiator and a target. */
static void random_storage(struct prng *r, struct plan_qp *q)
{
	static const uint32_t splits[] = {0, 0, 120 << 10, 128 << 10, 20 << 10, 4096, 5000};

	memset(q->work, 0, sizeof(q->work));
	q->cm = q->change_us = q->recv_us = 0;
	q->storage = between(r, 60, 400);
	q->st_max = between(r, 1, prng_hit(r, 0.2) ? 400000 : 70000);
	q->st_min = prng_hit(r, 0.5) ? q->st_max : 1;
	q->st_depth = between(r, 1, 32);
	q->st_split = splits[prng_below(r, 7)];
	q->st_form = prng_below(r, 4);
	q->st_reads = prng_hit(r, 0.4) ? between(r, 1, 600) : 0;
	q->st_inlined = prng_hit(r, 0.3) ? between(r, 1, 300) : 0;
	q->st_refused = prng_hit(r, 0.3) ? between(r, 1, 100) : 0;
	q->st_protocol = prng_below(r, 2) ? FORM_NVME : between(r, FORM_ISER, FORM_NFS);
	q->st_parts = prng_hit(r, 0.3) ? between(r, 2, STORAGE_PARTS) : 0;
	q->st_chatter = prng_hit(r, 0.3) ? between(r, 1, 100) : 0;
}

/* Some initiators have many small commands at a time, for long: when a hole closes, as many
 * responses are due at once. Drawn separately, so that older seeds give the same worlds except for
 * this. */
static void random_deep(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0xdee9));
	if (prng_below(&r, 6))
		return;
	for (uint32_t i = 0; i < p->nqps; i++) {
		struct plan_qp *q = &p->qp[i];

		q->st_depth = between(&r, STORAGE_DEPTH - 16, STORAGE_DEPTH);
		q->storage = between(&r, 600, 1500);
		q->st_max = between(&r, 1, 4 * q->mtu);
		q->st_min = prng_hit(&r, 0.5) ? q->st_max : 1;
		if (prng_hit(&r, 0.8))
			q->st_reads = q->st_inlined = q->st_parts = q->st_chatter = 0;
	}
	if (prng_hit(&r, 0.8) && p->delay_ns < 2000000)
		p->delay_ns = 2000000;
	if (prng_hit(&r, 0.8) && p->loss1 < 0.02)
		p->loss1 = 0.02;
	if (prng_hit(&r, 0.5) && p->report_loss < 0.3)
		p->report_loss = 0.3;
}

void plan_announce(struct plan *p)
{
	uint32_t kept = 0;
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0xa7704));
	p->announce = 1;
	p->appliance0 = p->appliance1 = 1;
	p->single = p->prefetch = p->atomic = p->actors.order = p->lane_span = 0;
	if (p->nqps > 3)
		p->nqps = 3;
	/* bare hosts must be able to bring a whole READ through a LAN */
	p->lan_reorder /= 10;
	p->lan_loss /= 10;
	for (uint32_t i = 0; i < p->nqps; i++) {
		random_storage(&r, &p->qp[i]);
		if (p->qp[i].st_max > 200 * p->qp[i].mtu)
			p->qp[i].st_min = p->qp[i].st_max = 200 * p->qp[i].mtu;
	}
	/* near each other, on a LAN that loses: responses may catch up with READs ahead */
	if (prng_hit(&r, 0.2)) {
		p->delay_ns = 10000;
		p->lan_loss = 0.002;
		for (uint32_t i = 0; i < p->nqps; i++) {
			p->qp[i].st_max = between(&r, 1, 20 * p->qp[i].mtu);
			p->qp[i].st_min = 1;
			p->qp[i].st_refused = between(&r, 100, 500);
		}
	}
	/* an initiator that reconnects restarts its commands: not modelled */
	for (uint32_t i = 0; i < p->nincidents; i++) {
		p->incident[i].qp %= p->nqps;
		if (p->incident[i].what != INC_REUSE)
			p->incident[kept++] = p->incident[i];
	}
	p->nincidents = kept;
	random_deep(p);
}

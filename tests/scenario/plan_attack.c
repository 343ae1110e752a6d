// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Actors for random worlds (actors.h). Few in each world, so that findings can be told apart:
 * mostly one attacker, and network cards with one or two oddities.
 */
#include "tests/scenario/plan.h"

#include "tests/scenario/scenario.h"
#include "wire/frame.h"

static uint32_t between(struct prng *r, uint32_t lo, uint32_t hi)
{
	return lo + prng_below(r, hi - lo + 1);
}

static void attack_forger(struct plan *p, struct prng *r)
{
	struct actors_config *a = &p->actors;
	uint32_t kinds = prng_hit(r, 0.6) ? 1 : between(r, 2, FORGE_CM_PAIR);

	while (kinds--)
		a->forge |= 1u << prng_below(r, FORGE_CM_PAIR);
	a->forge_at = prng_hit(r, 0.6) ? 1u << prng_below(r, 4) : 15;
	/* kinds that are of one sort of place only */
	if (!(a->forge & ~(1u << FORGE_ANSWER_WAN | 1u << FORGE_DATA_WAN)))
		a->forge_at = FORGE_WAN(0) | FORGE_WAN(1);
	a->forge_every = 1u << between(r, 2, 9);
	a->forge_max = between(r, 1, 300);
	p->unchecked = 0; /* without seals a forger on the WAN cannot be stopped */
	if (prng_below(r, 8))
		return;
	/* both sides are within its reach */
	a->forge = 1u << FORGE_CM_PAIR;
	a->forge_at = 15;
}

static void attack_reuse(struct plan *p, struct prng *r)
{
	for (uint32_t i = 0; i < p->nqps; i++) {
		struct plan_qp *q = &p->qp[i];

		/* an initiator that connects again begins its commands anew: not modelled */
		if (prng_hit(r, 0.3) || q->storage)
			continue;
		/* many owners with little work, or few with much */
		q->reuse = prng_hit(r, 0.5) ? between(r, 50, 300) : between(r, 1, 10);
		q->reuse_psn = prng_below(r, REUSE_PSNS);
		q->reuse_after = 1u << between(r, 0, q->reuse > 10 ? 5 : 9);
		q->reuse_cm = prng_hit(r, 0.4) ? 3 : prng_below(r, 3);
		q->cm = q->reuse_cm == 3 || prng_hit(r, 0.7);
		q->reuse_other = prng_hit(r, 0.3) ? between(r, 1, 2) : 0;
		q->reuse_ms = prng_hit(r, 0.2) ? between(r, 0, 60000) : 0;
		if (q->reuse_ms && q->reuse > 60)
			q->reuse /= 5; /* or the world goes on for hours */
		for (int s = 0; s < 2; s++) {
			struct plan_work *k = &q->work[s];

			if (!k->count)
				continue;
			k->max = k->max < 4 * q->mtu ? k->max : 4 * q->mtu;
			k->outstanding = between(r, 1, 16);
			k->count = (q->reuse_after + k->outstanding) * (q->reuse + 1);
		}
	}
}

static void attack_ports(struct plan *p, struct prng *r)
{
	p->actors.overload = between(r, 1, 7) | OVERLOAD_FULL;
	p->actors.overload_every = 1u << between(r, 4, 12);
	p->actors.overload_us = 1u << between(r, 3, 12);
}

static void odd_nics(struct plan *p, struct prng *r)
{
	bool prio = prng_hit(r, 0.15), rare = prng_hit(r, 0.3), credits = prng_hit(r, 0.2);

	p->actors.lag = prng_hit(r, 0.2) ? between(r, 1, 3) : 0;
	for (uint32_t i = 0; i < p->nqps; i++) {
		struct plan_qp *q = &p->qp[i];

		if (prio && !q->vlan)
			*(prng_hit(r, 0.5) ? &q->prio0 : &q->prio1) = between(r, 1, 7);
		if (prng_hit(r, 0.3)) {
			q->coalesce = between(r, 2, 16);
			q->ack_us = between(r, 1, 200);
		}
		if (credits) {
			q->recv_us = between(r, 1, 500);
			q->rnr_p = 0;
		}
		if (prng_hit(r, 0.3))
			q->resend = RC_RESEND_HW_ALL;
		if (!rare)
			continue;
		q->ackreq_every = 1000;
		for (int s = 0; s < 2; s++)
			if (q->work[s].count)
				q->work[s].unsignaled = between(r, 500, 990);
	}
}

/* A host that is silent for a while, and a forger that sends in its name. Drawn separately, so that
 * older seeds give the same worlds except for this. */
static void attack_silent(struct plan *p)
{
	struct plan_incident *i = &p->incident[p->nincidents];
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x51e27));
	if (!p->actors.forge || p->nincidents == PLAN_INCIDENTS || prng_below(&r, 5))
		return;
	p->actors.forge |= 1u << FORGE_SILENT;
	p->nincidents++;
	*i = (struct plan_incident){.what = INC_HOST_SILENT,
				    .at = between(&r, 100, 900),
				    .for_ms = between(&r, 300, 2000),
				    .side = prng_below(&r, 2)};
}

/* A forger on the LAN claims that a queue pair has failed. Near the end, one of the hosts refuses
 * what its peer may have got an ACK for. */
static void attack_probed(struct plan *p)
{
	struct plan_incident *i = &p->incident[p->nincidents];
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x9b0bed));
	if (p->nincidents == PLAN_INCIDENTS || prng_below(&r, 3))
		return;
	p->actors.forge |= 1u << FORGE_PROBED;
	if (!p->actors.forge_at)
		p->actors.forge_at = FORGE_LAN(0) | FORGE_LAN(1);
	p->nincidents++;
	*i = (struct plan_incident){.what = INC_FATAL,
				    .at = between(&r, 900, 1000),
				    .for_ms = between(&r, 0, 20),
				    .qp = prng_below(&r, p->nqps),
				    .side = prng_below(&r, 2),
				    .arg = AETH_NAK_INVALID};
	/* then the PSN that the told host expects is unknown, and the first probe does not break it
	 */
	if (!p->qp[i->qp].storage && p->qp[i->qp].work[!i->side].count)
		p->qp[i->qp].work[i->side].count = 0;
}

void plan_still(struct plan *p)
{
	struct plan_incident *i = &p->incident[p->nincidents];
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x5711));
	if (p->nincidents == PLAN_INCIDENTS || prng_below(&r, 8))
		return;
	p->nincidents++;
	*i = (struct plan_incident){.what = INC_STILL,
				    .at = between(&r, 0, 900),
				    /* the NICs that give up do so after 536 ms of silence */
				    .for_ms = 1u << between(&r, 4, p->qp[0].strict ? 8 : 13),
				    .side = prng_below(&r, 2)};
}

/* All queue pairs alike, so that neither PSNs nor sizes tell them apart. @writes: and such that the
 * appliance may ask by repeating their requests. */
static void in_step(struct plan *p, bool writes)
{
	if (writes) {
		p->delay_ns = p->delay_ns > MS ? p->delay_ns : MS;
		p->qp[0].work[0].ops = 1u << RC_WRITE;
		p->qp[0].work[0].max = 200;
		p->qp[0].work[0].outstanding = 1;
		p->qp[0].work[0].count = 80;
		p->qp[0].work[0].unsignaled = 0;
	}
	for (uint32_t i = 0; i < p->nqps; i++) {
		if (writes) {
			p->qp[i].coalesce = p->qp[i].ack_us = p->qp[i].ackreq_every = 0;
			p->qp[i].mtu = p->qp[0].mtu;
		}
		p->qp[i].cm = p->qp[i].sq_psn = p->qp[i].rq_psn = 0;
		for (int s = 0; s < 2; s++) {
			p->qp[i].work[s] = p->qp[0].work[s];
			p->qp[i].work[s].min = p->qp[i].work[s].max;
		}
		p->qp[i].mr_kib = p->qp[0].mr_kib;
		p->qp[i].depth = p->qp[0].depth;
	}
}

void plan_ports(struct plan *p)
{
	struct prng r;
	uint32_t ports;

	prng_init(&r, splitmix64(p->seed ^ 0x90275));
	if (p->nqps < 2 || p->announce || prng_below(&r, 2))
		return;
	ports = prng_hit(&r, 0.6) ? RC_PORTS_BY_QPNS : prng_below(&r, RC_PORTS);
	for (uint32_t i = 0; i < p->nqps; i++)
		p->qp[i].ports = ports;
	if (prng_hit(&r, 0.7))
		in_step(p, prng_hit(&r, 0.7));
}

void plan_attack(struct plan *p)
{
	uint32_t what;
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0xa77ac4));
	/* most of these worlds are calm, so that what is found is the actor's doing */
	if (prng_hit(&r, 0.6)) {
		p->nincidents = 0;
		p->report_forge = p->report_replay = 0;
	}
	odd_nics(p, &r);
	what = prng_below(&r, 16);
	if (what < 7 || what == 15)
		attack_forger(p, &r);
	if ((what >= 7 && what < 13) || what == 15)
		attack_reuse(p, &r);
	if (what >= 13)
		attack_ports(p, &r);
	attack_silent(p);
	attack_probed(p);
}

/* Packets take another way for no more than this. */
#define PATH_MOST_MS 10000u

/* One incident, which takes effect once or many times. */
static void random_path(const struct plan *p, struct prng *r, struct plan_incident *i)
{
	bool strict = p->qp[0].strict;

	*i = (struct plan_incident){
		.what = INC_PATH,
		.at = prng_hit(r, 0.3) ? between(r, 0, 20) : between(r, 20, 950),
		/* the NICs that give up do so after 536 ms of silence */
		.for_ms = between(r, 1, strict ? 1u << between(r, 1, 8) : 1u << between(r, 1, 12)),
		.side = prng_below(r, 2),
		.arg = between(r, 1, 15)};
	if (i->for_ms > 3000)
		i->for_ms = 3000;
	if (prng_hit(r, 0.6))
		return;
	i->times = between(r, 2, 20);
	/* a path that is missed for 30 s is like a link that is cut: FAULT */
	if (i->times * i->for_ms > PATH_MOST_MS)
		i->times = PATH_MOST_MS / i->for_ms;
	i->every_ms = i->for_ms + (strict ? 1000 : between(r, 1, 1u << between(r, 1, 10)));
}

void plan_paths(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x9a7451));
	if (p->single)
		return; /* worlds-open/path-single.world */
	/* half of these worlds are calm, so that hosts alone would not fail in them */
	if (prng_hit(&r, 0.5)) {
		p->nincidents = 0;
		p->loss0 = p->loss1 = p->dup = p->reorder = p->corrupt = p->burst = 0;
		p->lan_loss = p->lan_dup = p->lan_reorder = p->lan_corrupt = 0;
	}
	for (uint32_t n = between(&r, 1, 4); n && p->nincidents < PLAN_INCIDENTS; n--)
		random_path(p, &r, &p->incident[p->nincidents++]);
}

/* Owners that come and go by the connection manager; most begin anywhere. */
static void pauses_reuse(struct plan *p, struct prng *r)
{
	for (uint32_t i = 0; i < p->nqps; i++) {
		struct plan_qp *q = &p->qp[i];

		if (q->storage || q->reuse || prng_hit(r, 0.2))
			continue;
		q->cm = 1;
		q->reuse = between(r, 1, 8);
		q->reuse_psn = prng_hit(r, 0.6) ? REUSE_FAR : prng_below(r, REUSE_PSNS);
		q->reuse_after = 1u << between(r, 3, 9);
		q->reuse_cm = prng_hit(r, 0.8) ? REUSE_DREQ | REUSE_REQ : REUSE_REQ;
		q->reuse_other = prng_hit(r, 0.2) ? between(r, 1, 2) : 0;
		for (int s = 0; s < 2; s++) {
			struct plan_work *k = &q->work[s];

			if (!k->count)
				continue;
			k->max = k->max < 8 * q->mtu ? k->max : 8 * q->mtu;
			k->min = k->min < k->max ? k->min : k->max;
			k->count = (q->reuse_after + q->depth) * (q->reuse + 1);
		}
	}
}

void plan_pauses(struct plan *p)
{
	struct prng r;

	prng_init(&r, splitmix64(p->seed ^ 0x9a05e5));
	/* worlds-open/still-forged-pair.world */
	p->actors.forge &= ~(1u << FORGE_CM_PAIR);
	p->actors.forge_at = p->actors.forge ? p->actors.forge_at : 0;
	/* worlds-open/still-not-held.world, path-single.world */
	p->actors.still = STILL_PORTS | (p->single || prng_hit(&r, 0.75) ? STILL_HELD : 0);
	p->actors.still_ms = prng_hit(&r, 0.8) ? between(&r, 100, 2000) : 0;
	p->in_band = 0;
	if (prng_hit(&r, 0.5))
		p->nincidents = 0;
	/* what passes goes back over the WAN: see random_appliances() */
	p->loss0 = p->loss0 > 0.01 ? 0.01 : p->loss0;
	p->loss1 = p->loss1 > 0.01 ? 0.01 : p->loss1;
	p->reorder = p->reorder > 0.01 ? 0.01 : p->reorder;
	p->burst = 0;
	if (p->actors.still & STILL_HELD)
		pauses_reuse(p, &r);
	for (uint32_t n = between(&r, 1, 4); n && p->nincidents < PLAN_INCIDENTS - 1; n--) {
		struct plan_incident *i = &p->incident[p->nincidents++];

		*i = (struct plan_incident){.what = INC_STILL,
					    .at = between(&r, 0, 950),
					    .for_ms = prng_hit(&r, 0.5) ? between(&r, 300, 1500)
									: between(&r, 1000, 10000),
					    .side = prng_below(&r, 2)};
		if (prng_below(&r, 4))
			continue;
		/* and the other one beside it */
		i[1] = *i;
		i[1].side = !i->side;
		i[1].for_ms = between(&r, 300, 10000);
		p->nincidents++;
	}
}

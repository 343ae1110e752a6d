// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Making a failing plan smaller: take something away, live it again, and keep that if it still ends
 * in the same violation. Big steps first: incidents, queue pairs, sides, impairments; then numbers
 * are halved. Again from the start until nothing more can go.
 *
 * One world may take minutes, and nothing in it asks for the time. So another process does all
 * this, and a timer ends it; what it has found so far is in memory that both see.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scenario/plan.h"

/* @best: where nothing is written is the plan of now, since the timer does not wait for a copy. */
struct found {
	volatile uint32_t kept, tried;
	struct plan best[2];
};

struct shrink {
	struct plan *p;
	const char *violation;
	struct found *found;
};

/* Whether @try is as bad; then it is the new plan. */
static bool keep(struct shrink *s, const struct plan *try)
{
	struct plan_result r;

	if (!memcmp(try, s->p, sizeof(*try)))
		return false;
	s->found->tried++;
	plan_run(try, &r, NULL, NULL);
	if (!r.violation || strcmp(r.violation, s->violation))
		return false;
	*s->p = *try;
	s->found->best[(s->found->kept + 1) % 2] = *try;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	s->found->kept++;
	return true;
}

static void drop_incident(struct plan *p, uint32_t n)
{
	p->nincidents--;
	memmove(&p->incident[n], &p->incident[n + 1], (p->nincidents - n) * sizeof(p->incident[0]));
	memset(&p->incident[p->nincidents], 0, sizeof(p->incident[0]));
}

static void drop_qp(struct plan *p, uint32_t n)
{
	p->nqps--;
	memmove(&p->qp[n], &p->qp[n + 1], (p->nqps - n) * sizeof(p->qp[0]));
	memset(&p->qp[p->nqps], 0, sizeof(p->qp[0]));
	for (uint32_t i = 0; i < p->nincidents; i++)
		if (p->incident[i].qp >= p->nqps || p->incident[i].qp > n)
			p->incident[i].qp -= p->incident[i].qp > 0;
}

static bool fewer(struct shrink *s)
{
	bool any = false;
	struct plan t;

	for (uint32_t i = s->p->nincidents; i--;) {
		t = *s->p;
		drop_incident(&t, i);
		any |= keep(s, &t);
	}
	for (uint32_t i = s->p->nqps; s->p->nqps > 1 && i--;) {
		t = *s->p;
		drop_qp(&t, i);
		any |= keep(s, &t);
	}
	for (uint32_t i = 0; i < s->p->nqps; i++)
		for (int side = 0; side < 2; side++) {
			t = *s->p;
			memset(&t.qp[i].work[side], 0, sizeof(t.qp[i].work[side]));
			any |= keep(s, &t);
		}
	return any;
}

#define WITHOUT(s, any, field)                                                                     \
	do {                                                                                       \
		struct plan t_ = *(s)->p;                                                          \
		t_.field = 0;                                                                      \
		(any) |= keep(s, &t_);                                                             \
	} while (0)

#define HALF(s, any, field, least)                                                                 \
	do {                                                                                       \
		struct plan t_ = *(s)->p;                                                          \
		t_.field /= 2;                                                                     \
		if (t_.field + 1 > (least))                                                        \
			(any) |= keep(s, &t_);                                                     \
	} while (0)

/* One bit of the mask at @off after another, but @keep. */
static void fewer_bits(struct shrink *s, bool *any, size_t off, uint32_t keep_bits)
{
	for (uint32_t bit = 0; bit < 32; bit++) {
		struct plan t = *s->p;
		uint32_t *m = (uint32_t *)(void *)((uint8_t *)&t + off);

		if (!(*m & ~keep_bits & 1u << bit) || *m == 1u << bit)
			continue;
		*m &= ~(1u << bit);
		*any |= keep(s, &t);
	}
}

static void calmer_actors(struct shrink *s, bool *any)
{
	struct plan t = *s->p;

	WITHOUT(s, *any, actors.lag);
	WITHOUT(s, *any, actors.late);
	WITHOUT(s, *any, actors.queues);
	WITHOUT(s, *any, actors.still);
	WITHOUT(s, *any, actors.still_ms);
	fewer_bits(s, any, offsetof(struct plan, actors.still), STILL_PORTS);
	fewer_bits(s, any, offsetof(struct plan, actors.late), 0);
	HALF(s, *any, actors.late_us, 1);
	HALF(s, *any, actors.queue_us, 1);
	WITHOUT(s, *any, actors.order);
	WITHOUT(s, *any, actors.share);
	WITHOUT(s, *any, actors.overload);
	t.actors.forge = t.actors.forge_at = 0;
	*any |= keep(s, &t);
	fewer_bits(s, any, offsetof(struct plan, actors.forge), 0);
	fewer_bits(s, any, offsetof(struct plan, actors.forge_at), 0);
	fewer_bits(s, any, offsetof(struct plan, actors.overload), OVERLOAD_FULL);
	HALF(s, *any, actors.forge_max, 1);
	HALF(s, *any, actors.forge_every, 1);
	HALF(s, *any, actors.overload_us, 1);
}

static bool calmer(struct shrink *s)
{
	bool any = false;

	WITHOUT(s, any, burst);
	WITHOUT(s, any, burst_length);
	WITHOUT(s, any, by_length);
	WITHOUT(s, any, swing);
	WITHOUT(s, any, lan_loss);
	WITHOUT(s, any, lan_dup);
	WITHOUT(s, any, lan_reorder);
	WITHOUT(s, any, lan_corrupt);
	WITHOUT(s, any, report_loss);
	WITHOUT(s, any, report_reorder);
	WITHOUT(s, any, report_replay);
	WITHOUT(s, any, actors.cross_bps);
	WITHOUT(s, any, wan_auto);
	WITHOUT(s, any, wan_rate);
	WITHOUT(s, any, report_forge);
	WITHOUT(s, any, loss0);
	WITHOUT(s, any, loss1);
	WITHOUT(s, any, dup);
	WITHOUT(s, any, reorder);
	WITHOUT(s, any, corrupt);
	WITHOUT(s, any, wan_rate);
	WITHOUT(s, any, wan_auto);
	WITHOUT(s, any, policy);
	WITHOUT(s, any, single);
	calmer_actors(s, &any);
	for (uint32_t i = 0; i < s->p->nqps; i++) {
		WITHOUT(s, any, qp[i].rnr_p);
		WITHOUT(s, any, qp[i].credits);
		WITHOUT(s, any, qp[i].resend);
		WITHOUT(s, any, qp[i].ip6);
		WITHOUT(s, any, qp[i].vlan);
		WITHOUT(s, any, qp[i].cm);
		WITHOUT(s, any, qp[i].change_us);
		WITHOUT(s, any, qp[i].sq_psn);
		WITHOUT(s, any, qp[i].rq_psn);
		WITHOUT(s, any, qp[i].strict);
		WITHOUT(s, any, qp[i].coalesce);
		WITHOUT(s, any, qp[i].ack_us);
		WITHOUT(s, any, qp[i].ackreq_every);
		WITHOUT(s, any, qp[i].reply_us);
		WITHOUT(s, any, qp[i].recv_us);
		WITHOUT(s, any, qp[i].prio0);
		WITHOUT(s, any, qp[i].prio1);
		WITHOUT(s, any, qp[i].reuse);
		WITHOUT(s, any, qp[i].reuse_ms);
		WITHOUT(s, any, qp[i].reuse_other);
		WITHOUT(s, any, qp[i].reuse_cm);
		WITHOUT(s, any, qp[i].reuse_psn);
		WITHOUT(s, any, qp[i].work[0].unsignaled);
		WITHOUT(s, any, qp[i].work[1].unsignaled);
	}
	return any;
}

static bool smaller(struct shrink *s)
{
	bool any = false;
	struct plan t;

	for (uint32_t i = 0; i < s->p->nqps; i++) {
		HALF(s, any, qp[i].depth, 1);
		HALF(s, any, qp[i].reuse, 1);
		HALF(s, any, qp[i].reuse_after, 1);
		for (int side = 0; side < 2; side++) {
			HALF(s, any, qp[i].work[side].count, 1);
			HALF(s, any, qp[i].work[side].max, 1);
			HALF(s, any, qp[i].work[side].streams, 1);
			WITHOUT(s, any, qp[i].work[side].break_permille);
			WITHOUT(s, any, qp[i].work[side].outstanding);
			for (uint32_t op = 0; op < RC_OPS; op++) {
				t = *s->p;
				t.qp[i].work[side].ops &= ~(1u << op);
				if (t.qp[i].work[side].ops)
					any |= keep(s, &t);
			}
		}
	}
	for (uint32_t i = 0; i < s->p->nincidents; i++) {
		HALF(s, any, incident[i].for_ms, 1);
		HALF(s, any, incident[i].at, 0);
		WITHOUT(s, any, incident[i].times);
		HALF(s, any, incident[i].times, 1);
		HALF(s, any, incident[i].every_ms, 1);
		if (s->p->incident[i].what == INC_PATH)
			fewer_bits(s, &any,
				   offsetof(struct plan, incident) +
					   i * sizeof(struct plan_incident) +
					   offsetof(struct plan_incident, arg),
				   0);
	}
	return any;
}

static void shrink(struct plan *p, const char *violation, struct found *found)
{
	struct shrink s = {.p = p, .violation = violation, .found = found};
	bool any;

	do {
		any = fewer(&s);
		any |= calmer(&s);
		any |= smaller(&s);
	} while (any);
}

/* A timer of this process, which ends it. */
static void end_after(double seconds)
{
	struct itimerval t = {.it_value = {.tv_sec = (time_t)seconds}};

	t.it_value.tv_usec = (suseconds_t)((seconds - (double)t.it_value.tv_sec) * 1e6);
	setitimer(ITIMER_REAL, &t, NULL);
}

uint32_t plan_shrink(struct plan *p, const char *violation, double seconds)
{
	struct found *f;
	uint32_t tried;
	pid_t pid;

	if (seconds < 0.001)
		return 0;
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f == MAP_FAILED)
		return 0;
	f->best[0] = *p;
	pid = fork();
	if (!pid) {
		end_after(seconds);
		shrink(p, violation, f);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	*p = f->best[f->kept % 2];
	tried = f->tried;
	munmap(f, sizeof(*f));
	return tried;
}

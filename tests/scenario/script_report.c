// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reports between two appliances in the words of scripts. PSNs and MSNs are relative, as in
 * packets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/script_priv.h"

const char *const report_names[REPORT_KINDS] = {"?",	    "OPEN",  "ACCEPT",	"REFUSE",
						"PROGRESS", "CLOSE", "ANSWERS", "METER",
						"?",	    "?",     "AHEAD"};

const char *report_name(uint8_t type)
{
	return report_names[type < REPORT_KINDS ? type : 0];
}

enum {
	IS_START,
	IS_CUM,
	IS_HI,
	IS_ROOM,
	IS_TRUE_ACKED,
	IS_REFUSAL_PSN,
	IS_MSN,
	IS_REASON,
	IS_CREDIT,
	IS_REFUSAL,
	IS_MISSING,
	IS_MTU,
	IS_POLICY,
	IS_RESUME,
	IS_QP,
	IS_ACKABLE,
	IS_AGAIN,
	IS_LATEST,
	IS_DEPTH,
	IS_BYPASSED,
	IS_READS,
};

int lane_reason_by_name(struct script *s, const char *name)
{
	for (int i = 0; i < REASONS; i++)
		if (!strcmp(lane_reason_name((enum lane_reason)i), name))
			return i;
	script_fail(s, "no reason is named \"%s\"", name);
}

static uint32_t psn_of(struct script *s, struct tokens *t, const char *what)
{
	return psn_add(script_world(s)->psn_base, (uint32_t)token_number(s, t, what));
}

/* "3,5..7": up to @most ranges of PSNs into @out, or "none"; their number */
static uint8_t ranges(struct script *s, struct tokens *t, const char *what, struct psn_range *out,
		      int most)
{
	const char *text = token_next(s, t, what);
	char copy[256], *save = NULL;
	int n = 0;

	if (!strcmp(text, "none"))
		return 0;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		struct range g = text_range(s, p);

		if (n == most)
			script_fail(s, "a report has %d of %s at most", most, what);
		out[n].from = psn_add(script_world(s)->psn_base, (uint32_t)g.from);
		out[n++].end = psn_add(script_world(s)->psn_base, (uint32_t)g.to + 1);
	}
	return (uint8_t)n;
}

/* "3,5": the PSNs that were refused and are asked for again */
static void again(struct script *s, struct tokens *t, struct report *r)
{
	char copy[256], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", token_next(s, t, "again"));
	r->nagain = 0;
	for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (r->nagain == REPORT_AGAIN)
			script_fail(s, "a report asks for %d again at most", REPORT_AGAIN);
		r->again[r->nagain++] =
			psn_add(script_world(s)->psn_base, (uint32_t)text_range(s, p).from);
	}
}

uint32_t report_parse(struct script *s, struct tokens *t, struct report *r)
{
	uint32_t set = 0;

	while (tokens_left(t)) {
		if (token_is(t, "start")) {
			r->start_psn = psn_of(s, t, "start");
			set |= 1u << IS_START;
		} else if (token_is(t, "cum")) {
			r->cum = psn_of(s, t, "cum");
			set |= 1u << IS_CUM;
		} else if (token_is(t, "hi")) {
			r->hi = psn_of(s, t, "hi");
			set |= 1u << IS_HI;
		} else if (token_is(t, "room")) {
			r->room = psn_of(s, t, "room");
			set |= 1u << IS_ROOM;
		} else if (token_is(t, "una")) {
			r->una = psn_of(s, t, "una");
			set |= 1u << IS_TRUE_ACKED;
		} else if (token_is(t, "at")) {
			r->refusal_psn = psn_of(s, t, "at");
			set |= 1u << IS_REFUSAL_PSN;
		} else if (token_is(t, "msn")) {
			r->una_msn = r->start_msn = psn_add(script_world(s)->msn_base,
							    (uint32_t)token_number(s, t, "msn"));
			set |= 1u << IS_MSN;
		} else if (token_is(t, "reason")) {
			r->reason = (uint8_t)lane_reason_by_name(s, token_next(s, t, "reason"));
			set |= 1u << IS_REASON;
		} else if (token_is(t, "credit")) {
			r->credit = (uint8_t)token_number(s, t, "credit");
			set |= 1u << IS_CREDIT;
		} else if (token_is(t, "refusal")) {
			r->refusal = (uint8_t)token_number(s, t, "refusal");
			set |= 1u << IS_REFUSAL;
		} else if (token_is(t, "missing")) {
			r->nholes = ranges(s, t, "missing", r->hole, REPORT_HOLES);
			set |= 1u << IS_MISSING;
		} else if (token_is(t, "bypassed")) {
			r->bypassed = true;
			set |= 1u << IS_BYPASSED;
		} else if (token_is(t, "native")) {
			r->sealed = false;
		} else if (token_is(t, "again")) {
			again(s, t, r);
			set |= 1u << IS_AGAIN;
		} else if (token_is(t, "latest")) {
			r->latest = psn_of(s, t, "latest");
			set |= 1u << IS_LATEST;
		} else if (token_is(t, "depth")) {
			r->depth = (uint32_t)token_number(s, t, "depth");
			set |= 1u << IS_DEPTH;
		} else if (token_is(t, "mtu")) {
			r->path_mtu = (uint32_t)token_number(s, t, "mtu");
			set |= 1u << IS_MTU;
		} else if (token_is(t, "policy")) {
			static const char *const names[] = {"early", "honest", "off"};

			r->policy = (uint8_t)token_choice(s, t, names, 3, "policy");
			set |= 1u << IS_POLICY;
		} else if (token_is(t, "qp")) {
			r->lqpn = (uint32_t)token_number(s, t, "qp");
			set |= 1u << IS_QP;
		} else if (token_is(t, "after-read")) {
			r->una_ackable = false;
			set |= 1u << IS_ACKABLE;
		} else if (token_is(t, "resume")) {
			r->resume = true;
			set |= 1u << IS_RESUME;
		} else if (token_is(t, "reads")) {
			r->reads.count = (uint32_t)token_number(s, t, "reads");
			set |= 1u << IS_READS;
		} else if (token_is(t, "psn")) {
			r->reads.psn = psn_of(s, t, "psn");
		} else if (token_is(t, "end")) {
			r->reads.end = psn_of(s, t, "end");
		} else if (token_is(t, "va")) {
			r->reads.va = (uint64_t)token_number(s, t, "va");
		} else if (token_is(t, "step")) {
			r->reads.step = (uint64_t)token_number(s, t, "step");
		} else if (token_is(t, "rkey")) {
			r->reads.rkey = (uint32_t)token_number(s, t, "rkey");
		} else if (token_is(t, "total")) {
			r->reads.length = (uint32_t)token_number(s, t, "total");
		} else if (token_is(t, "other-lane")) {
			set |= REPORT_SET_LANE;
		} else if (token_is(t, "other-generation")) {
			set |= REPORT_SET_GEN;
		} else if (token_is(t, "old")) {
			set |= REPORT_SET_OLD;
		} else {
			script_fail(s, "a report has no \"%s\"", t->word[t->at]);
		}
	}
	return set;
}

static bool same_ranges(const struct psn_range *a, unsigned int na, const struct psn_range *b,
			unsigned int nb)
{
	return na == nb && !memcmp(a, b, na * sizeof(*a));
}

static bool same_reads(const struct read_series *a, const struct read_series *b)
{
	return a->count == b->count && a->psn == b->psn && a->end == b->end && a->va == b->va &&
	       a->length == b->length && a->rkey == b->rkey &&
	       (a->count == 1 || a->step == b->step);
}

static bool same_again(const struct report *a, const struct report *b)
{
	return a->nagain == b->nagain &&
	       !memcmp(a->again, b->again, a->nagain * sizeof(a->again[0]));
}

bool report_matches(const struct report *g, const struct report *w, uint32_t set)
{
	uint32_t gmsn = g->type == REPORT_OPEN ? g->start_msn : g->una_msn;
	uint32_t wmsn = w->type == REPORT_OPEN ? w->start_msn : w->una_msn;

#define DIFFERS(is, field) ((set & (1u << (is))) && g->field != w->field)
	return g->type == w->type &&
	       !(DIFFERS(IS_START, start_psn) || DIFFERS(IS_CUM, cum) || DIFFERS(IS_HI, hi) ||
		 DIFFERS(IS_ROOM, room) || DIFFERS(IS_TRUE_ACKED, una) ||
		 DIFFERS(IS_REFUSAL_PSN, refusal_psn) || DIFFERS(IS_REASON, reason) ||
		 DIFFERS(IS_CREDIT, credit) || DIFFERS(IS_REFUSAL, refusal) ||
		 DIFFERS(IS_MTU, path_mtu) || DIFFERS(IS_POLICY, policy) ||
		 DIFFERS(IS_ACKABLE, una_ackable) || DIFFERS(IS_RESUME, resume) ||
		 DIFFERS(IS_QP, lqpn) || DIFFERS(IS_LATEST, latest) || DIFFERS(IS_DEPTH, depth) ||
		 ((set & (1u << IS_MSN)) && gmsn != wmsn) || DIFFERS(IS_BYPASSED, bypassed) ||
		 ((set & (1u << IS_MISSING)) &&
		  !same_ranges(g->hole, g->nholes, w->hole, w->nholes)) ||
		 ((set & (1u << IS_READS)) && !same_reads(&g->reads, &w->reads)) ||
		 ((set & (1u << IS_AGAIN)) && !same_again(g, w)));
#undef DIFFERS
}

void report_describe(struct script *s, const struct report *r, char *out, size_t size)
{
	const struct script_world *w = script_world(s);
	int n = snprintf(out, size, "%s", report_name(r->type));

#define REL(psn) psn_diff(psn, w->psn_base)
#define MORE(...)                                                                                  \
	do {                                                                                       \
		if (n >= 0 && (size_t)n < size)                                                    \
			n += snprintf(out + n, size - (size_t)n, __VA_ARGS__);                     \
	} while (0)
	if (r->type == REPORT_OPEN)
		MORE(" start %d msn %d mtu %u%s", REL(r->start_psn),
		     psn_diff(r->start_msn, w->msn_base), r->path_mtu, r->resume ? " resume" : "");
	if (r->type == REPORT_REFUSE || r->type == REPORT_CLOSE)
		MORE(" reason %s", lane_reason_name((enum lane_reason)r->reason));
	if (r->type == REPORT_AHEAD)
		MORE(" reads %u psn %d end %d va 0x%" PRIx64 " step %" PRId64 " total %u",
		     r->reads.count, REL(r->reads.psn), REL(r->reads.end), r->reads.va,
		     (int64_t)r->reads.step, r->reads.length);
	if (r->type == REPORT_RESP)
		MORE(" cum %d hi %d latest %d depth %u", REL(r->cum), REL(r->hi), REL(r->latest),
		     r->depth);
	if (r->type == REPORT_PROGRESS)
		MORE(" cum %d hi %d room %d una %d msn %d credit 0x%x%s", REL(r->cum), REL(r->hi),
		     REL(r->room), REL(r->una), psn_diff(r->una_msn, w->msn_base), r->credit,
		     r->una_ackable ? "" : " after-read");
	if (r->type != REPORT_PROGRESS && r->type != REPORT_RESP)
		return;
	if (r->bypassed)
		MORE(" bypassed");
	for (int i = 0; i < r->nholes; i++)
		MORE("%s%d..%d", i ? "," : " missing ", REL(r->hole[i].from),
		     REL(r->hole[i].end) - 1);
	for (int i = 0; i < r->nagain; i++)
		MORE("%s%d", i ? "," : " again ", REL(r->again[i]));
	if (r->refusal)
		MORE(" refusal 0x%x at %d", r->refusal, REL(r->refusal_psn));
	if (r->reason && r->type == REPORT_PROGRESS)
		MORE(" reason %s", lane_reason_name((enum lane_reason)r->reason));
#undef REL
#undef MORE
}

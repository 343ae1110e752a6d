// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which capture shows what of which lane, and the verdict.
 */
#include "tests/lab/check/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/check/view.h"

static const char *const rule_names[RULES] = {
	"frame", "icrc", "sequence", "psn",   "early", "msn",
	"read",	 "leak", "double",   "bytes", "lost",  "pair",
};

const char *check_rule_name(enum check_rule r)
{
	return r < RULES ? rule_names[r] : "?";
}

void check_defaults(struct check_config *c)
{
	memset(c, 0, sizeof(*c));
	c->single = -1;
	c->max = 20;
	c->lan_ns = 100000000;
	c->grace_ns = 1000000000;
}

static void lane_name(const struct judge *j, int n, char *buf, size_t len)
{
	const struct flow *f = n >= 0 ? &j->flow[n] : NULL;
	char src[IP_ADDR_STRLEN], dst[IP_ADDR_STRLEN];

	if (!f) {
		snprintf(buf, len, "-");
		return;
	}
	ip_addr_str(&f->src, src);
	ip_addr_str(&f->dst, dst);
	if (f->partner >= 0)
		snprintf(buf, len, "%s/%06x>%s/%06x", src, j->flow[f->partner].dqpn, dst, f->dqpn);
	else
		snprintf(buf, len, "%s>%s/%06x", src, dst, f->dqpn);
}

void judge_violation(struct judge *j, enum check_rule r, const struct trace *t,
		     const struct event *e, int flow, const char *fmt, ...)
{
	char lane[2 * IP_ADDR_STRLEN + 32];
	va_list ap;

	j->res->violations++;
	if (j->res->rule[r]++ >= j->cfg->max)
		return;
	lane_name(j, flow, lane, sizeof(lane));
	if (t && e)
		fprintf(j->out, "%s:%u %" PRIu64 ".%09u ", t->name, e->no, e->t / 1000000000u,
			(unsigned int)(e->t % 1000000000u));
	else
		fprintf(j->out, "- - ");
	fprintf(j->out, "%s %s: ", lane, rule_names[r]);
	va_start(ap, fmt);
	vfprintf(j->out, fmt, ap);
	va_end(ap);
	fputc('\n', j->out);
}

static struct trace *at_place(struct judge *j, int place)
{
	for (unsigned int i = 0; i < j->ntraces; i++)
		if (j->trace[i].place == place)
			return &j->trace[i];
	return NULL;
}

static struct trace *lan_of(struct judge *j, int site)
{
	return at_place(j, site ? PLACE_LAN_B : PLACE_LAN_A);
}

static struct trace *wan_of(struct judge *j, int site)
{
	return at_place(j, site ? PLACE_WAN_B : PLACE_WAN_A);
}

static struct view view_of(struct judge *j, struct trace *t, uint32_t lane, enum view_role role)
{
	return (struct view){.j = j, .t = t, .flow = lane, .mtu = j->flow[lane].mtu, .role = role};
}

static void say(struct judge *j, const struct view *v, const char *what)
{
	char lane[2 * IP_ADDR_STRLEN + 32];
	uint64_t requests = 0, repeats = 0;

	if (!j->cfg->verbose)
		return;
	for (uint32_t k = 0; k < v->nbooks; k++)
		for (uint32_t x = 0; x < v->book[k].n; x++) {
			requests += v->book[k].line[x].copies > 0;
			repeats +=
				v->book[k].line[x].copies > 1 ? v->book[k].line[x].copies - 1 : 0;
		}
	lane_name(j, (int)v->flow, lane, sizeof(lane));
	fprintf(j->out,
		"# %s %s %s: mtu %u, %u incarnations, %" PRIu64 " requests, %" PRIu64 " repeats",
		v->t->name, lane, what, v->mtu, v->nbooks, requests, repeats);
	if (v->role == VIEW_NEAR)
		fprintf(j->out, ", %" PRIu64 " ACKs made by the appliance", v->made);
	if (v->role == VIEW_FAR)
		fprintf(j->out, ", %" PRIu64 " came over the WAN again after the true ACK",
			v->wan_again);
	fputc('\n', j->out);
}

/* A lane between hosts without an appliance that could have custody of it. */
static void judge_bare(struct judge *j, struct trace *t, uint32_t lane)
{
	struct view v = view_of(j, t, lane, VIEW_BARE);

	v.judge_double = t->place < 0 ? !j->cfg->nlocal || !j->flow[lane].site
				      : t == lan_of(j, j->flow[lane].site);
	view_run(&v);
	say(j, &v, "bare");
	view_exit(&v);
}

static void judge_held(struct judge *j, uint32_t lane)
{
	int site = j->flow[lane].site;
	bool single = j->cfg->single >= 0;
	struct trace *nt = lan_of(j, site), *ft = single ? wan_of(j, site) : lan_of(j, !site);
	struct view near = {0}, far = {0};

	if (nt) {
		near = view_of(j, nt, lane, VIEW_NEAR);
		if (wan_of(j, site))
			view_twins(&near, wan_of(j, site), single, false);
		else if (ft)
			view_twins(&near, ft, true, true);
		if (j->cfg->pass_repeats && wan_of(j, site))
			view_repairs(&near, wan_of(j, site));
		else if (j->cfg->pass_repeats && ft)
			view_repairs(&near, ft);
		view_run(&near);
		if (!single && wan_of(j, site))
			view_seals(&near, wan_of(j, site));
		say(j, &near, "near");
		j->res->made += near.made;
		for (uint32_t k = 0; k < near.nbooks; k++)
			if (near.book[k].nheld) {
				j->res->custody++;
				break;
			}
	}
	if (ft) {
		struct trace *wt = wan_of(j, !site) ? wan_of(j, !site) : wan_of(j, site);

		far = view_of(j, ft, lane, VIEW_FAR);
		if (!single && wt)
			view_wan(&far, wt);
		view_run(&far);
	}
	join_views(j, nt ? &near : NULL, ft ? &far : NULL);
	if (ft)
		say(j, &far, "far");
	if (nt)
		view_exit(&near);
	if (ft)
		view_exit(&far);
}

static void judge_lane(struct judge *j, uint32_t lane)
{
	int single = j->cfg->single;

	if (j->trace[0].place < 0 || (single >= 0 && single != j->flow[lane].site)) {
		for (unsigned int i = 0; i < j->ntraces; i++)
			if (j->trace[i].place < 0 || j->trace[i].place == PLACE_LAN_A ||
			    j->trace[i].place == PLACE_LAN_B)
				judge_bare(j, &j->trace[i], lane);
		return;
	}
	judge_held(j, lane);
}

static bool load(struct judge *j)
{
	const struct check_config *c = j->cfg;

	for (unsigned int i = 0; i < c->nbare; i++)
		if (!trace_load(j, c->bare[i], -1))
			return false;
	/* in the order of the chain */
	for (int p = 0; p < PLACES && !c->nbare; p++)
		if (c->file[p] && !trace_load(j, c->file[p], p))
			return false;
	trace_wrong(j);
	if (j->ntraces)
		return true;
	fprintf(j->out, "pcapcheck: no capture given\n");
	return false;
}

enum check_status check_run(const struct check_config *c, FILE *out, struct check_result *res)
{
	struct judge *j = calloc(1, sizeof(*j));
	bool can;

	memset(res, 0, sizeof(*res));
	j->cfg = c;
	j->told = c->repeats;
	j->res = res;
	j->out = out;
	can = load(j) && pair_flows(j);
	for (uint32_t n = 0; can && n < j->nflows; n++)
		if (j->flow[n].requests) {
			res->lanes++;
			judge_lane(j, n);
		}
	for (unsigned int i = 0; i < j->ntraces; i++)
		free(j->trace[i].ev);
	free(j->flow);
	free(j);
	if (!can)
		return CHECK_CANNOT;
	for (int r = 0; r < RULES; r++)
		if (res->rule[r] > c->max)
			fprintf(out, "# %s: %" PRIu64 " more\n", rule_names[r],
				res->rule[r] - c->max);
	return res->violations ? CHECK_VIOLATIONS : CHECK_RIGHT;
}

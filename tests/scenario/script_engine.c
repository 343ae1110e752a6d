// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Scripts: time, what goes into the engine, and what comes out of it.
 *
 * What the engine sends is stamped with the time and queued per port. A line that expects something
 * takes the oldest of its port and compares it byte for byte. Before time passes, and before
 * anything is injected, all queues must be empty: what nobody expected fails the script, unless it
 * is allowed. So the order of lines within one moment matters per port only, and nothing can be
 * sent unseen.
 */
#include "tests/lab/model/sealed.h"
#include "tests/scenario/script_run.h"
#include "wire/cm.h"

bool script_allows(const struct script *s, const char *port, const char *name)
{
	if (!strcmp(name, "PROGRESS") || !strcmp(name, "ANSWERS"))
		return true; /* each tells the whole truth once more */
	for (unsigned int i = 0; i < s->nallow; i++)
		if (!strcmp(s->allow[i].port, port) && !strcmp(s->allow[i].name, name))
			return true;
	return false;
}

static bool frame_allowed(const struct script *s, const struct rig_frame *f)
{
	for (unsigned int i = 0; i < s->nallow; i++) {
		int kind = packet_kind(f->data, f->len);

		if (!strncmp(s->allow[i].port, port_names[f->port], strlen(port_names[f->port])) &&
		    kind >= 0 && packet_kind_by_name(s->allow[i].name) == kind)
			return true;
	}
	return false;
}

/* Whether @f is the question to a host whose queue pair is silent: a DREQ for QPN 0. */
static bool asks_host(const struct rig_frame *f)
{
	struct frame g;
	struct cm cm;

	return frame_parse(f->data, f->len, &g) == FRAME_OK && cm_parse(&g, &cm) == CM_DREQ &&
	       !cm.rqpn;
}

/* The host that got the question @f at @port answers. */
static void host_answers(struct script *s, enum engine_port port, const struct rig_frame *f)
{
	struct template t = {0};
	uint8_t out[FRAME_MAX], mad[256];
	struct frame g;
	struct build_spec b = {.t = &t,
			       .opcode = OP_UD_SEND_ONLY,
			       .dqpn = 1,
			       .sqpn = 1,
			       .qkey = 0x80010000u,
			       .payload = mad,
			       .payload_len = sizeof(mad)};

	frame_parse(f->data, f->len, &g);
	memcpy(mad, f->data + g.payload, sizeof(mad));
	mad[17] = CM_DREP;
	memcpy(mad + 24, f->data + g.payload + 28, 4);
	memcpy(mad + 28, f->data + g.payload + 24, 4);
	template_learn(&t, &g);
	template_mirror(&t);
	engine_rx(s->r->e, port, out, build_packet(out, &b), s->r->now);
}

/* After each call into the engine: when was it, and does everything hold? */
void script_after(struct script *s)
{
	struct rig *r = s->r;
	const char *bad = engine_check(r->e);
	unsigned int keep = 0;

	while (s->stamped < r->nout) {
		unsigned int i = s->stamped++;

		s->taken[i] = asks_host(&r->out[i]);
		s->when[i] = r->now;
		if (s->taken[i] && s->answers[r->out[i].port])
			host_answers(s, s->astray ? !r->out[i].port : r->out[i].port, &r->out[i]);
	}
	while (s->rep_stamped < r->nrep) {
		if (r->rep[s->rep_stamped].type == REPORT_OPEN)
			s->open = r->rep[s->rep_stamped];
		s->rep_taken[s->rep_stamped] = false;
		s->rep_when[s->rep_stamped++] = r->now;
	}
	/* of the reports that nobody must expect, the newest are enough */
	for (unsigned int i = 0; r->nrep > RIG_REPORTS / 2 && i < r->nrep; i++) {
		if (i < RIG_REPORTS / 4 && (s->rep_taken[i] || r->rep[i].type == REPORT_PROGRESS ||
					    r->rep[i].type == REPORT_RESP))
			continue;
		r->rep[keep] = r->rep[i];
		s->rep_when[keep] = s->rep_when[i];
		s->rep_taken[keep++] = s->rep_taken[i];
	}
	if (keep)
		r->nrep = s->rep_stamped = keep;
	if (bad)
		script_fail(s, "invariant: %s", bad);
	if (undone_bad())
		script_fail(s, "%s", undone_bad());
}

/* Nothing may be waiting that no line expected. */
void script_leftovers(struct script *s)
{
	struct rig *r = s->r;

	for (unsigned int i = 0; i < r->nout; i++) {
		char what[400];

		if (s->taken[i] || frame_allowed(s, &r->out[i]))
			continue;
		packet_describe(s, r->out[i].data, r->out[i].len, what, sizeof(what));
		script_fail(s, "nobody expected: %.6f %s< %s", script_seconds(s, s->when[i]),
			    port_names[r->out[i].port], what);
	}
	for (unsigned int i = 0; i < r->nrep; i++) {
		char what[400];

		if (s->rep_taken[i] || script_allows(s, "peer<", report_name(r->rep[i].type)))
			continue;
		report_describe(s, &r->rep[i], what, sizeof(what));
		script_fail(s, "nobody expected: %.6f peer< %s", script_seconds(s, s->rep_when[i]),
			    what);
	}
	for (int i = 0; i < EVENTS; i++) {
		if (r->events[i] && !script_allows(s, "event", event_names[i]))
			script_fail(s, "nobody expected: event %s", event_names[i]);
		r->events[i] = 0;
	}
	r->nout = r->nrep = s->stamped = s->rep_stamped = 0;
	memset(s->looked, 0, sizeof(s->looked));
}

void script_tick(struct script *s)
{
	engine_tick(s->r->e, s->r->now);
	script_after(s);
}

/* One step of time, at most to @end. */
void script_step(struct script *s, uint64_t end)
{
	uint64_t t = engine_deadline(s->r->e);

	s->r->now = t > end ? end : t > s->r->now ? t : s->r->now + 1000;
	script_tick(s);
}

void script_advance(struct script *s, uint64_t to)
{
	if (to == s->r->now)
		return;
	script_leftovers(s);
	while (s->r->now < to)
		script_step(s, to);
	script_leftovers(s);
}

/* ---- lines: packets ---- */

static const struct packet *find_sent(const struct script *s, enum engine_port from,
				      unsigned int kind, int32_t psn)
{
	for (unsigned int n = s->nsent; n > 0; n--) {
		const struct packet *p = &s->sent[(n - 1) % SENT].p;

		if (s->sent[(n - 1) % SENT].port == from && p->kind == kind && psn >= p->psn.from &&
		    psn <= p->psn.to)
			return p;
		if (s->nsent - n == SENT - 1)
			break;
	}
	return NULL;
}

void line_inject(struct script *s, enum engine_port from, struct tokens *t)
{
	struct packet p;

	packet_parse(s, t, &p, false);
	s->sent[s->nsent % SENT].port = from;
	s->sent[s->nsent++ % SENT].p = p;
	for (uint32_t i = 0; i <= (uint32_t)(p.psn.to - p.psn.from); i++) {
		uint8_t frame[FRAME_MAX];
		uint32_t len = packet_build(s, &p, i, from, frame);

		if (from == PORT_WAN && !p.native)
			sealed_by_peer(s->r->e, frame, len, p.sealed, p.own);
		engine_rx(s->r->e, from, frame, len, s->r->now);
		script_after(s);
		if (!p.batch)
			script_tick(s);
	}
	s->batch = p.batch;
}

static unsigned int first_on(struct script *s, enum engine_port port)
{
	unsigned int *i = &s->looked[port];

	while (*i < s->r->nout && (s->taken[*i] || s->r->out[*i].port != port))
		(*i)++;
	return *i < s->r->nout ? *i : RIG_OUT;
}

void script_check_time(struct script *s, const struct window *w, uint64_t when)
{
	if (when + EARLY_NS < w->from)
		script_fail(s, "too early: at %.6f, expected at %.6f", script_seconds(s, when),
			    script_seconds(s, w->from));
}

/* Whether the request @f left with the seal of one that the appliance has added. */
static bool sealed_as_own(struct script *s, const struct rig_frame *f)
{
	uint8_t copy[FRAME_MAX];

	memcpy(copy, f->data, f->len);
	sealed_by_peer(s->r->e, copy, f->len, false, true);
	return get_le32(copy + f->len - ICRC_LEN) ==
	       (get_le32(f->data + f->len - ICRC_LEN) ^ f->seal);
}

static void expect_one(struct script *s, enum engine_port to, const struct packet *p, uint32_t i,
		       const struct window *w)
{
	struct packet one = *p, said;
	const struct packet *sent = NULL;
	uint8_t want[FRAME_MAX];
	uint32_t len, at = 0;
	char wanted[400], got[400];

	one.psn.from = one.psn.to = p->psn.from + (int32_t)i;
	if (p->msn.to > p->msn.from)
		one.msn.from = one.msn.to = p->msn.from + (int32_t)i;
	if (p->given & SET_OF)
		one.of = p->of + (int32_t)i;
	else
		one.of = one.psn.from;
	if (packet_echoes(p->kind))
		sent = find_sent(s, to == PORT_LAN ? PORT_WAN : PORT_LAN, p->kind, one.of);
	if (sent) {
		said = *sent;
		if (sent->msn.to > sent->msn.from)
			said.msn.from = said.msn.to = sent->msn.from + one.of - sent->psn.from;
		packet_inherit(&one, &said);
	}
	len = packet_build(s, &one, 0, to == PORT_LAN ? PORT_WAN : PORT_LAN, want);
	packet_describe(s, want, len, wanted, sizeof(wanted));
	for (;;) {
		unsigned int k = first_on(s, to);
		const struct rig_frame *f = &s->r->out[k];

		if (k == RIG_OUT) {
			if (s->r->now >= w->to)
				script_fail(s, "expected %s< %s, and nothing was sent there",
					    port_names[to], wanted);
			script_leftovers(s);
			script_step(s, w->to);
			continue;
		}
		if (f->len == len && !memcmp(f->data, want, len)) {
			if (f->seal ? one.native : one.sealed)
				script_fail(s, "%s< %s %s", port_names[to], wanted,
					    f->seal ? "is sealed" : "has no seal");
			if (one.own && !sealed_as_own(s, f))
				script_fail(s, "%s< %s is sealed as its host's", port_names[to],
					    wanted);
			script_check_time(s, w, s->when[k]);
			s->taken[k] = true;
			return;
		}
		if (frame_allowed(s, f)) {
			s->taken[k] = true;
			continue;
		}
		packet_describe(s, f->data, f->len, got, sizeof(got));
		if (strcmp(got, wanted))
			script_fail(s, "expected %s< %s, not %s", port_names[to], wanted, got);
		while (at < len && at < f->len && f->data[at] == want[at])
			at++;
		script_fail(s, "%s< %s, but byte %u is 0x%02x, not 0x%02x", port_names[to], got, at,
			    at < f->len ? f->data[at] : 0, at < len ? want[at] : 0);
	}
}

void line_expect(struct script *s, enum engine_port to, struct tokens *t, const struct window *w)
{
	struct packet p;

	packet_parse(s, t, &p, true);
	for (uint32_t i = 0; i <= (uint32_t)(p.psn.to - p.psn.from); i++)
		expect_one(s, to, &p, i, w);
}

/* ---- lines: reports ---- */

static enum report_type report_type(struct script *s, struct tokens *t)
{
	return (enum report_type)token_choice(s, t, report_names, REPORT_KINDS, "report");
}

void line_report(struct script *s, struct tokens *t)
{
	enum report_type type = report_type(s, t);
	bool progress = type == REPORT_PROGRESS || type == REPORT_RESP;
	struct report r = progress ? s->progress : (struct report){0};
	uint32_t set;

	r.type = (uint8_t)type;
	r.lane = s->open.lane;
	r.gen = s->open.gen;
	r.key = s->open.key;
	if (type == REPORT_OPEN) {
		r.lqpn = FAR_QPN;
		r.path_mtu = s->mtu;
		r.seal_key[0] = r.gen;
		r.seal_key[1] = ~r.seal_key[0];
	}
	r.reads.rkey = DEFAULT_RKEY;
	r.by_opener = s->responder;
	r.hi = r.room = PSN_NONE;
	r.nholes = r.nagain = 0;
	r.sealed = s->rule.seal && type == REPORT_OPEN;
	r.refusal = r.reason = 0;
	r.una_ackable = true;
	set = report_parse(s, t, &r);
	if (r.hi == PSN_NONE)
		r.hi = r.cum;
	if (r.room == PSN_NONE)
		r.room = psn_add(r.cum, 10000);
	r.seq = s->progress.seq + 1;
	if (set & REPORT_SET_OLD)
		r.seq -= 2;
	else if (progress)
		s->progress = r;
	if (set & REPORT_SET_LANE)
		r.lane++;
	if (set & REPORT_SET_GEN)
		r.gen++;
	if (type == REPORT_OPEN)
		s->open.gen = r.gen;
	engine_rx_report(s->r->e, 0, &r, s->r->now);
	script_after(s);
	script_tick(s);
}

void line_expect_report(struct script *s, struct tokens *t, const struct window *w)
{
	enum report_type type = report_type(s, t);
	struct report want = {.type = (uint8_t)type, .reads.rkey = DEFAULT_RKEY};
	uint32_t set = report_parse(s, t, &want);
	char got[400];

	for (;;) {
		for (unsigned int i = 0; i < s->r->nrep; i++) {
			const struct report *r = &s->r->rep[i];

			if (s->rep_taken[i])
				continue;
			if (report_matches(r, &want, set)) {
				script_check_time(s, w, s->rep_when[i]);
				s->rep_taken[i] = true;
				return;
			}
			if (script_allows(s, "peer<", report_name(r->type)))
				continue;
			report_describe(s, r, got, sizeof(got));
			script_fail(s, "expected another report than %s", got);
		}
		if (s->r->now >= w->to)
			script_fail(s, "expected a report that did not come");
		script_leftovers(s);
		script_step(s, w->to);
	}
}

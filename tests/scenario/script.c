// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs scripts (script.h), line by line: words, times, and what stands before the first timed line.
 *
 * Most scripts begin with a connection that is known and held; the lines that lead there are in
 * prelude(), in the language itself.
 */
#include <ctype.h>

#include "tests/scenario/script_run.h"

const char *const port_names[PORTS] = {"host", "wan"};
const char *const event_names[EVENTS] = {
	[EVENT_PAIRED] = "paired",	 [EVENT_HELD] = "held",
	[EVENT_REFUSED] = "refused",	 [EVENT_CLOSED] = "closed",
	[EVENT_FAULT] = "fault",	 [EVENT_INCARNATION] = "incarnation",
	[EVENT_ANNOUNCE] = "announce",	 [EVENT_CROWDED] = "crowded",
	[EVENT_ABANDONED] = "abandoned", [EVENT_BYPASS] = "path-bypass",
	[EVENT_INVARIANT] = "invariant",
};

const struct script_world *script_world(const struct script *s)
{
	return s->w;
}

bool script_responder(const struct script *s)
{
	return s->responder;
}

uint32_t script_mtu(const struct script *s)
{
	return s->mtu;
}

/* ---- what went wrong ---- */

double script_seconds(const struct script *s, uint64_t t)
{
	return (double)(int64_t)(t - s->t0) / 1e9;
}

static void describe_pending(struct script *s, char *out, size_t size)
{
	size_t n = 0;
	char one[400];

	for (unsigned int i = 0; s->r && i < s->r->nout && n < size; i++) {
		if (s->taken[i])
			continue;
		packet_describe(s, s->r->out[i].data, s->r->out[i].len, one, sizeof(one));
		n += (size_t)snprintf(out + n, size - n, "\n    seen: %.6f %s< %s",
				      script_seconds(s, s->when[i]), port_names[s->r->out[i].port],
				      one);
	}
	for (unsigned int i = 0; s->r && i < s->r->nrep && n < size; i++) {
		if (s->rep_taken[i])
			continue;
		report_describe(s, &s->r->rep[i], one, sizeof(one));
		n += (size_t)snprintf(out + n, size - n, "\n    seen: %.6f peer< %s",
				      script_seconds(s, s->rep_when[i]), one);
	}
	for (int i = 0; s->r && i < EVENTS && n < size; i++)
		if (s->r->events[i])
			n += (size_t)snprintf(
				out + n, size - n, "\n    seen: event %s%s%s", event_names[i],
				s->r->last.type == (enum engine_event_type)i ? " reason " : "",
				s->r->last.type == (enum engine_event_type)i
					? lane_reason_name(s->r->last.reason)
					: "");
}

_Noreturn void script_fail(struct script *s, const char *fmt, ...)
{
	char why[1024], pending[3072] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	describe_pending(s, pending, sizeof(pending));
	snprintf(s->err, s->err_size, "%s:%d%s: %s\n    line: %s\n    at %.6f s, world %s%s",
		 s->name, s->line, s->in_prelude ? " (before the first timed line)" : "", why,
		 s->text, s->r ? script_seconds(s, s->r->now) : 0.0, s->w->name, pending);
	longjmp(s->env, 1);
}

/* ---- words ---- */

bool tokens_left(const struct tokens *t)
{
	return t->at < t->n;
}

const char *token_next(struct script *s, struct tokens *t, const char *what)
{
	if (!tokens_left(t))
		script_fail(s, "the line ends where it should say %s", what);
	return t->word[t->at++];
}

bool token_is(struct tokens *t, const char *word)
{
	if (!tokens_left(t) || strcmp(t->word[t->at], word))
		return false;
	t->at++;
	return true;
}

static int64_t text_number(struct script *s, const char *text, const char **end)
{
	char *e;
	int64_t v = strtoll(text, &e, 0);

	if (e == text)
		script_fail(s, "\"%s\" is no number", text);
	*end = e;
	return v;
}

int64_t token_number(struct script *s, struct tokens *t, const char *what)
{
	const char *text = token_next(s, t, what), *end;
	int64_t v = text_number(s, text, &end);

	if (!strcmp(end, "KiB"))
		return v << 10;
	if (!strcmp(end, "MiB"))
		return v << 20;
	if (*end)
		script_fail(s, "\"%s\" is no number", text);
	return v;
}

struct range text_range(struct script *s, const char *text)
{
	struct range g;
	const char *end;

	g.from = g.to = (int32_t)text_number(s, text, &end);
	if (!strncmp(end, "..", 2))
		g.to = (int32_t)text_number(s, end + 2, &end);
	if (*end || g.to < g.from)
		script_fail(s, "\"%s\" is no range", text);
	return g;
}

struct range token_range(struct script *s, struct tokens *t, const char *what)
{
	return text_range(s, token_next(s, t, what));
}

int token_choice(struct script *s, struct tokens *t, const char *const *names, int n,
		 const char *what)
{
	const char *word = token_next(s, t, what);

	for (int i = 0; i < n; i++)
		if (!strcmp(word, names[i]))
			return i;
	script_fail(s, "\"%s\" is no %s", word, what);
}

static uint64_t duration(struct script *s, const char *text, const char **end)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char number[32];
	size_t n = strspn(text, "0123456789");
	double v;

	/* a dot belongs to the number when a digit follows, else it is the first of two */
	if (text[n] == '.' && isdigit((unsigned char)text[n + 1]))
		n += 1 + strspn(text + n + 1, "0123456789");
	if (!n || n >= sizeof(number))
		script_fail(s, "\"%s\" is no time", text);
	memcpy(number, text, n);
	number[n] = '\0';
	v = strtod(number, NULL);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i].unit);

		if (!strncmp(text + n, units[i].unit, len)) {
			*end = text + n + len;
			return (uint64_t)(v * units[i].ns + 0.5);
		}
	}
	*end = text + n;
	return (uint64_t)(v * 1e9 + 0.5);
}

/* "+5ms", "+1ms..2ms", "0.250" */
uint64_t token_duration(struct script *s, struct tokens *t, const char *what)
{
	const char *text = token_next(s, t, what), *end;
	uint64_t ns = duration(s, text, &end);

	if (*end)
		script_fail(s, "\"%s\" is no time", text);
	return ns;
}

static struct window time_of(struct script *s, const char *text)
{
	uint64_t base = *text == '+' ? s->r->now : s->t0;
	const char *p = text + (*text == '+'), *end;
	struct window w;

	w.from = w.to = base + duration(s, p, &end);
	if (!strncmp(end, "..", 2))
		w.to = base + duration(s, end + 2, &end);
	if (*end || w.to < w.from)
		script_fail(s, "\"%s\" is no time", text);
	if (w.from < s->r->now)
		script_fail(s, "time goes back");
	return w;
}

/* ---- the head of a script, and what happens before its first timed line ---- */

static void head_line(struct script *s, struct tokens *t)
{
	static const char *const sides[] = {"requester", "responder"},
				 *const modes[] = {"pair", "single"},
				 *const starts[] = {"unknown", "learned", "held"},
				 *const policies[] = {"early", "honest", "off"},
				 *const atomics[ATOMIC_MODES] = {"ordered", "discard-result",
								 "ahead"};

	if (s->started)
		script_fail(s, "this must stand before the first timed line");
	if (token_is(t, "side")) {
		s->responder = token_choice(s, t, sides, 2, "side");
	} else if (token_is(t, "mode")) {
		s->single = token_choice(s, t, modes, 2, "mode");
	} else if (token_is(t, "start")) {
		s->start = (enum start)token_choice(s, t, starts, 3, "start");
	} else if (token_is(t, "policy")) {
		s->rule.policy = (uint8_t)token_choice(s, t, policies, 3, "policy");
	} else if (token_is(t, "mtu")) {
		s->mtu = s->rule.path_mtu = (uint32_t)token_number(s, t, "mtu");
	} else if (token_is(t, "mtu-unknown")) {
		s->rule.path_mtu = 0;
	} else if (token_is(t, "atomic")) {
		s->rule.atomic = (uint8_t)token_choice(s, t, atomics, ATOMIC_MODES, "atomic");
	} else if (token_is(t, "read-depth")) {
		s->rule.read_depth = (uint32_t)token_number(s, t, "read-depth");
	} else if (token_is(t, "prefetch")) {
		s->rule.prefetch = true;
	} else if (token_is(t, "prefetch-responder")) {
		s->rule.prefetch = PREFETCH_RESPONDER;
	} else if (token_is(t, "prefetch-range")) {
		s->rule.nread_ranges = 1;
		s->rule.read_range[0].from = (uint64_t)token_number(s, t, "prefetch-range");
		s->rule.read_range[0].end = (uint64_t)token_number(s, t, "prefetch-range");
	} else if (token_is(t, "no-ahead")) {
		s->features &= ~PEER_FEATURE_AHEAD;
	} else if (token_is(t, "prefetch-single")) {
		s->rule.prefetch = PREFETCH_SINGLE;
	} else if (token_is(t, "read-depth")) {
		s->rule.read_depth = (uint32_t)token_number(s, t, "read-depth");
	} else if (token_is(t, "prefetch-max-age")) {
		const char *end;

		s->rule.prefetch_max_age_ns =
			duration(s, token_next(s, t, "prefetch-max-age"), &end);
	} else if (token_is(t, "learn-immediate")) {
		s->rule.learn |= LEARN_IMMEDIATE;
	} else if (token_is(t, "order")) {
		s->rule.order = true;
	} else if (token_is(t, "unsealed")) {
		s->rule.seal = false;
	} else if (token_is(t, "answers")) {
		s->answers[token_choice(s, t, port_names, PORTS, "port")] = true;
		s->astray |= token_is(t, "astray");
	} else if (token_is(t, "disputes")) {
		s->features |= PEER_FEATURE_DISPUTE;
	} else if (token_is(t, "offers")) {
		s->features |= PEER_FEATURE_OFFER;
	} else if (token_is(t, "no-seals")) {
		s->features &= ~PEER_FEATURE_SEAL;
	} else if (token_is(t, "learn-off")) {
		s->rule.learn = 0;
	} else if (token_is(t, "pool")) {
		s->cfg.pool_bytes = (uint64_t)token_number(s, t, "pool");
	} else if (token_is(t, "cap")) {
		s->rule.cap = (uint64_t)token_number(s, t, "cap");
	} else if (token_is(t, "connections")) {
		s->cfg.max_conns = (uint32_t)token_number(s, t, "connections");
	} else if (token_is(t, "wan-rate")) {
		s->cfg.wan_rate = (uint64_t)token_number(s, t, "wan-rate");
	} else if (token_is(t, "wan-burst")) {
		s->cfg.wan_burst = (uint32_t)token_number(s, t, "wan-burst");
	} else if (token_is(t, "peer-timeout") || token_is(t, "responder-timeout") ||
		   token_is(t, "rnr-timeout") || token_is(t, "idle")) {
		const char *what = t->word[t->at - 1], *end;
		uint64_t ns = duration(s, token_next(s, t, what), &end);

		*(*what == 'p'	   ? &s->cfg.peer_timeout_ns
		  : *what == 'i'   ? &s->cfg.idle_ns
		  : what[1] == 'n' ? &s->cfg.rnr_timeout_ns
				   : &s->cfg.responder_timeout_ns) = ns;
	} else if (token_is(t, "allow")) {
		if (s->nallow == ALLOWED)
			script_fail(s, "too much is allowed");
		snprintf(s->allow[s->nallow].port, sizeof(s->allow[0].port), "%s",
			 token_next(s, t, "where"));
		snprintf(s->allow[s->nallow++].name, sizeof(s->allow[0].name), "%s",
			 token_next(s, t, "what"));
	} else {
		script_fail(s, "\"%s\" is no setting", token_next(s, t, "a setting"));
	}
}

static void run_line(struct script *s, const char *text);

static __attribute__((format(printf, 2, 3))) void say(struct script *s, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	run_line(s, line);
}

/* Learning, calibration and handover, in the language itself. */
static void prelude(struct script *s)
{
	const char *from = s->responder ? "wan" : "host", *to = s->responder ? "host" : "wan";
	int last = s->start == START_HELD && !s->responder ? -2 : -1;

	for (int psn = last - 4; psn <= last; psn++) {
		say(s, "+0 %s> SEND_ONLY psn %d ackreq", from, psn);
		say(s, "+0 %s< SEND_ONLY psn %d", to, psn);
		say(s, "+0 %s> ACK psn %d msn %d", to, psn, psn + 1);
		say(s, "+0 %s< ACK psn %d msn %d", from, psn, psn + 1);
		s->r->events[EVENT_PAIRED] = 0;
	}
	if (s->start == START_LEARNED)
		return;
	if (s->responder) {
		say(s, "+0 peer> OPEN start 0 msn 0");
		say(s, "+0 peer< ACCEPT");
		say(s, "+0 event held");
		say(s, "+0 peer< PROGRESS cum 0 una 0");
		return;
	}
	say(s, "+0 host> SEND_ONLY psn -1 ackreq");
	say(s, "+0 wan< SEND_ONLY psn -1");
	if (s->single) {
		say(s, "+0 event held");
		if (s->rule.policy == POLICY_EARLY)
			say(s, "+0 host< ACK psn -1 msn 0");
		say(s, "+10ms wan> ACK psn -1 msn 0");
	} else {
		say(s, "+0 peer< OPEN start -1 msn -1");
		say(s, "+10ms peer> ACCEPT");
		say(s, "+0 event held");
		if (s->rule.policy == POLICY_EARLY)
			say(s, "+0 host< ACK psn -1 msn 0");
		say(s, "+0 peer> PROGRESS cum 0 una 0 msn 0");
	}
	if (s->rule.policy != POLICY_EARLY)
		say(s, "+0 host< ACK psn -1 msn 0");
	say(s, "+0 lane state held custody 0 una 0");
}

static void start(struct script *s)
{
	struct prefix *near = &s->rule.near[s->rule.nnear++], *far = &s->rule.far[s->rule.nfar++];
	struct script_world any = {0};
	char text[sizeof(s->text)];

	/* the rig's rule has the IPv4 prefixes */
	any.ip6 = true;
	packet_address(&any, PORT_LAN, 0, &near->addr);
	packet_address(&any, PORT_WAN, 0, &far->addr);
	near->len = far->len = 48;
	s->rule.peer = s->single ? PEER_NONE : 0;
	s->r = rig_create(&s->cfg, &s->rule);
	if (!s->w->undone)
		undone_watch(NULL);
	engine_peer_features(s->r->e, 0, s->features);
	s->t0 = s->r->now;
	s->started = true;
	s->open.lane = 77;
	s->open.gen = 3;
	packet_address(s->w, PORT_WAN, 1, &s->open.key.src);
	packet_address(s->w, PORT_LAN, 1, &s->open.key.dst);
	s->open.key.dqpn = NEAR_QPN;
	s->open.key.vlan = s->w->vlan == FRAME_VLAN_NONE ? s->w->vlan : s->w->vlan & 0xfff;
	s->progress = (struct report){.una_ackable = true,
				      .credit = 31,
				      .cum = s->w->psn_base,
				      .una = s->w->psn_base,
				      .una_msn = s->w->msn_base,
				      .seq = 10};
	if (s->start != START_UNKNOWN) {
		memcpy(text, s->text, sizeof(text));
		s->in_prelude = true;
		prelude(s);
		script_leftovers(s);
		s->in_prelude = false;
		memcpy(s->text, text, sizeof(text));
	}
	for (int i = 0; i < EC_COUNT; i++)
		s->before[i] = engine_counter(s->r->e, (enum engine_counter)i);
	s->t0 = s->r->now;
}

/* ---- lines ---- */

static void timed_line(struct script *s, struct tokens *t)
{
	struct window w;
	bool point;

	w = time_of(s, t->word[t->at++]);
	point = w.from == w.to;
	if (point && w.to > s->r->now) {
		/* as exact as timers are, and 1 % */
		uint64_t slack = (w.to - s->r->now) / 100;

		w.to += slack > LATE_NS ? slack : LATE_NS;
	}
	if (token_is(t, "host<"))
		line_expect(s, PORT_LAN, t, &w);
	else if (token_is(t, "wan<"))
		line_expect(s, PORT_WAN, t, &w);
	else if (token_is(t, "peer<"))
		line_expect_report(s, t, &w);
	else if (token_is(t, "event"))
		line_event(s, t, &w);
	else if (!point)
		script_fail(s, "only what is expected can have a time from .. to");
	else
		goto now;
	return;
now:
	script_advance(s, w.from);
	if (token_is(t, "lane")) {
		line_lane(s, t);
		return;
	}
	if (token_is(t, "stat")) {
		line_counter(s, t);
		return;
	}
	if (!s->batch)
		script_leftovers(s);
	if (token_is(t, "host>"))
		line_inject(s, PORT_LAN, t);
	else if (token_is(t, "wan>"))
		line_inject(s, PORT_WAN, t);
	else if (token_is(t, "peer>"))
		line_report(s, t);
	else if (token_is(t, "do"))
		line_act(s, t);
	else if (!token_is(t, "quiet"))
		script_fail(s, "\"%s\" is no action", token_next(s, t, "an action"));
}

static void run_line(struct script *s, const char *text)
{
	struct tokens t = {0};
	char copy[sizeof(s->text)], *save = NULL;

	snprintf(s->text, sizeof(s->text), "%s", text);
	snprintf(copy, sizeof(copy), "%s", text);
	copy[strcspn(copy, "#")] = '\0';
	for (char *p = strtok_r(copy, " \t\r", &save); p; p = strtok_r(NULL, " \t\r", &save)) {
		if (t.n == SCRIPT_TOKENS)
			script_fail(s, "too long a line");
		t.word[t.n++] = p;
	}
	if (!t.n)
		return;
	if (t.word[0][0] != '+' && !isdigit((unsigned char)t.word[0][0])) {
		head_line(s, &t);
	} else {
		if (!s->started)
			start(s);
		timed_line(s, &t);
	}
	if (tokens_left(&t))
		script_fail(s, "what does \"%s\" mean here?", t.word[t.at]);
}

static void run_text(struct script *s, const char *text)
{
	while (*text) {
		char line[sizeof(s->text)];
		size_t n = strcspn(text, "\n");

		s->line++;
		if (n >= sizeof(line))
			script_fail(s, "too long a line");
		memcpy(line, text, n);
		line[n] = '\0';
		run_line(s, line);
		text += n + (text[n] == '\n');
	}
	if (!s->started)
		script_fail(s, "nothing happens in this script");
	snprintf(s->text, sizeof(s->text), "(the end)");
	script_leftovers(s);
}

bool script_run(const char *name, const char *text, const struct script_world *w, char *err,
		size_t err_size)
{
	static const struct engine_config small = {
		.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1, .fence = true};
	struct script *s = calloc(1, sizeof(*s));
	volatile bool good = false;

	assert_non_null(s);
	s->name = name;
	s->w = w;
	s->err = err;
	s->err_size = err_size;
	s->mtu = 1024;
	s->start = START_HELD;
	s->rule = rig_rule(0, POLICY_EARLY, s->mtu);
	s->rule.seal = true;
	s->features = PEER_FEATURE_SEAL | PEER_FEATURE_OWN | PEER_FEATURE_AHEAD;
	s->cfg = small;
	if (!setjmp(s->env)) {
		run_text(s, text);
		good = true;
	}
	if (s->r)
		rig_destroy(s->r);
	free(s);
	return good;
}

char *script_load(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &size, '\0', f) < 0) {
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of a peer.
 *
 * States
 *	UNUSED	-> DOWN by session_peer_add()
 *	DOWN	HELLO each hello_ns. Reports are refused. -> UP when the handshake proves that the
 *		peer is there now (handshake.c)
 *	UP	heartbeat each heartbeat_ns; reports both ways. -> DOWN when nothing authentic came
 *		for silent_ns (below), or on its BYE. Its keys are wiped then: only a new handshake
 *		brings it up again, so datagrams that the network held back cannot
 *	CLOSED	we sent BYE. Nothing is sent or accepted any more
 *
 *	A new session with a process that was up all the time for us is PEER_AGAIN: usually it had
 *	lost sight of us and got none of our reports meanwhile, so the engine must repeat them.
 *	A change of the peer's boot epoch is PEER_RESTARTED, whether or not we saw it down between.
 *
 * Silence
 *	silent_ns is below a second. It decides only what operators see and whether new connections
 *	are accelerated: custody waits for the peer-timeout of the engine, whatever happens here. A
 *	peer that announces it (PROTO_F_BEATS) sends a heartbeat each 50 ms, so 17 are expected in
 *	900 ms: a link that loses 30 % of all datagrams loses so many in a row once in 640 days, one
 *	that loses 10 % never. Heartbeats travel one way; the length of the round trip matters for
 *	the first one only. dead_ns is for that one, and for peers of older versions, which send
 *	one each 250 ms.
 *	Only time in which this process listened counts. A process that stood still first reads what
 *	came meanwhile; one that adopts the memory of another has not listened yet.
 *	A peer that has just fallen silent gets a HELLO each HELLO_GAP_NS: most breaks are short.
 *
 * Datagrams under session keys
 *	Session id, replay window, authentication, messages: in this order, the cheap ones first.
 *	A datagram that fails one of them only moves a counter. Reordering is fine: reports carry
 *	their own sequence numbers, and HELLO and HEARTBEAT messages are taken from newer
 *	datagrams only.
 *
 * Another process
 *	The memory of the sessions may outlive the process (session_config.memory). The next one
 *	goes on with its keys and sequence numbers, and the peer does not notice. The sequence
 *	number is increased before its datagram is sealed, so none is used twice. If the process
 *	died while it changed keys, the peer begins DOWN, under the same boot epoch and with new
 *	salts, for the old ones may be half written: a handshake follows.
 *
 * What can be lost
 *	Anything. HELLOs, CONFIRMs and heartbeats repeat, the engine repeats reports, a lost BYE
 *	costs silent_ns.
 */
#include "peer/session.h"

#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "peer/session_priv.h"

/* ---- small things ---- */

void session_say(struct session *s, struct peer *p, int prio, const char *fmt, ...)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "peer %s: ", p->name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	s->sink.log(s->sink.ctx, session_index(s, p), prio, line);
}

bool session_may_say(struct peer *p, enum log_about about, uint64_t now)
{
	if (now < p->quiet_until[about])
		return false;
	p->quiet_until[about] = now + LOG_GAP_NS;
	return true;
}

void session_random(struct session *s, void *buf, size_t len)
{
	if (s->cfg.random)
		s->cfg.random(s->cfg.random_ctx, buf, len);
	else
		randombytes_buf(buf, len);
}

unsigned int session_index(const struct session *s, const struct peer *p)
{
	return (unsigned int)(p - s->peer);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- making and unmaking ---- */

/* Receivers refuse a prefix with bits set beyond its length; callers need not clear them. */
static void clean_prefix(const struct prefix *from, struct prefix *to)
{
	unsigned int len = from->len;

	memset(to, 0, sizeof(*to));
	to->len = (uint8_t)len;
	memcpy(to->addr.b, from->addr.b, (len + 7) / 8);
	if (len % 8)
		to->addr.b[len / 8] &= (uint8_t)(0xff00 >> (len % 8));
}

static int set_local(struct session *s, const struct session_local *l)
{
	struct proto_hello h = s->self;

	if (!l->name || !proto_name_ok(l->name) || (l->nprefix && !l->prefix))
		return -EINVAL;
	snprintf(h.name, sizeof(h.name), "%s", l->name);
	h.features = l->features | PROTO_FEATURES;
	h.window = l->window;
	h.more = l->nprefix > PROTO_PREFIXES;
	h.nprefix = (uint8_t)(h.more ? PROTO_PREFIXES : l->nprefix);
	memset(h.prefix, 0, sizeof(h.prefix));
	for (unsigned int i = 0; i < h.nprefix; i++) {
		if (l->prefix[i].len > 128)
			return -EINVAL;
		clean_prefix(&l->prefix[i], &h.prefix[i]);
	}
	s->self = h;
	return 0;
}

size_t session_size(void)
{
	return sizeof(struct session);
}

/* @s was left by another process: each of its peers is UNUSED until it is added again. */
static void take_over(struct session *s)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct peer *p = &s->peer[i];

		outbox_drop(p);
		if (p->state != SESSION_UNUSED) {
			p->left_up = p->state == SESSION_UP && !p->changing;
			p->left = true;
			p->state = SESSION_UNUSED;
		}
		p->left_up &= !p->changing;
	}
}

static void defaults(struct session_config *c)
{
	if (!c->hello_ns)
		c->hello_ns = 500 * MS;
	if (!c->heartbeat_ns)
		c->heartbeat_ns = 50 * MS;
	if (!c->silent_ns)
		c->silent_ns = 900 * MS;
	if (!c->dead_ns)
		c->dead_ns = 3 * SEC;
	if (!c->datagram_max)
		c->datagram_max = 1400;
}

struct session *session_create(const struct session_config *cfg, const struct session_sink *sink,
			       uint64_t now_ns)
{
	struct session *s;

	(void)now_ns;
	if (seal_init() < 0) {
		errno = EIO;
		return NULL;
	}
	s = cfg->memory ? cfg->memory : calloc(1, sizeof(*s));
	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	s->cfg = *cfg;
	s->sink = *sink;
	defaults(&s->cfg);
	s->self.version = PROTO_VERSION;
	if (s->cfg.datagram_max < SESSION_DATAGRAM_MIN ||
	    s->cfg.datagram_max > SESSION_DATAGRAM_MAX || set_local(s, &cfg->local) < 0) {
		if (!cfg->memory)
			free(s);
		errno = EINVAL;
		return NULL;
	}
	/* The caller's strings and arrays need not outlive this call. */
	memset(&s->cfg.local, 0, sizeof(s->cfg.local));

	if (s->kept == SESSION_KEPT) {
		take_over(s);
		return s;
	}
	s->self.boot = s->cfg.boot;
	while (!s->self.boot)
		session_random(s, &s->self.boot, sizeof(s->self.boot));
	s->kept = SESSION_KEPT;
	return s;
}

void session_destroy(struct session *s)
{
	bool own;

	if (!s)
		return;
	own = !s->cfg.memory;
	sodium_memzero(s, sizeof(*s));
	if (own)
		free(s);
}

/* Whether the former process had @p under this name and key; if so, go on with its session. */
static bool goes_on(struct session *s, struct peer *p, const char *name, const struct seal_psk *psk,
		    uint64_t now)
{
	bool up = p->left_up;

	if (!p->left || strncmp(p->name, name, sizeof(p->name) - 1) || !p->nkeys ||
	    sodium_memcmp(&p->psk[0], psk, sizeof(*psk)))
		return false;
	p->left = p->left_up = false;
	p->known &= !p->changing; /* the sink may not have heard of that HELLO */
	/* the caller adds the others; a session under a removed key ends with the next heartbeat */
	p->nkeys = 1;
	p->next_beat = now;
	if (!up) {
		sodium_memzero(&p->link, sizeof(p->link));
		sodium_memzero(&p->old, sizeof(p->old));
		handshake_new_salts(s, p);
		p->since = p->next_hello = now;
	} else {
		p->link.heard = now;
	}
	peer_change(p, false);
	p->state = up ? SESSION_UP : SESSION_DOWN;
	return true;
}

bool session_peer_resume(struct session *s, unsigned int peer, uint64_t now_ns)
{
	struct peer *p = &s->peer[peer < PEER_MAX ? peer : 0];
	unsigned int nkeys = p->nkeys;

	if (peer >= PEER_MAX || p->state != SESSION_UNUSED ||
	    !goes_on(s, p, p->name, &p->psk[0], now_ns))
		return false;
	p->nkeys = nkeys;
	return true;
}

int session_peer_add(struct session *s, unsigned int peer, const char *name,
		     const uint8_t key[PEER_KEY_LEN], uint64_t now_ns)
{
	struct seal_psk psk;
	struct peer *p;

	if (peer >= PEER_MAX || !name || !*name)
		return -EINVAL;
	p = &s->peer[peer];
	if (p->state != SESSION_UNUSED)
		return -EEXIST;
	seal_psk_init(&psk, key);
	if (goes_on(s, p, name, &psk, now_ns)) {
		sodium_memzero(&psk, sizeof(psk));
		return 0;
	}
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->psk[0] = psk;
	sodium_memzero(&psk, sizeof(psk));
	p->nkeys = 1;
	handshake_new_salts(s, p);
	p->proven = p->unproven = (struct bucket){.tokens = ANSWERS_MAX, .refilled = now_ns};
	p->state = SESSION_DOWN;
	p->since = p->next_hello = now_ns;
	return 0;
}

void session_peer_rename(struct session *s, unsigned int peer, const char *name)
{
	if (peer < PEER_MAX && s->peer[peer].state != SESSION_UNUSED)
		snprintf(s->peer[peer].name, sizeof(s->peer[peer].name), "%s", name);
}

void session_peer_remove(struct session *s, unsigned int peer)
{
	struct peer *p;

	if (peer >= PEER_MAX)
		return;
	p = &s->peer[peer];
	if (p->state == SESSION_UP)
		outbox_bye(s, p, BYE_REMOVED);
	sodium_memzero(p, sizeof(*p));
}

int session_local(struct session *s, const struct session_local *local, uint64_t now_ns)
{
	if (set_local(s, local) < 0)
		return -EINVAL;
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct peer *p = &s->peer[i];

		if (p->state != SESSION_UP)
			continue;
		outbox_hello(s, p);
		p->next_tell = now_ns + TELL_NS;
	}
	return 0;
}

void session_site(struct session *s, unsigned int peer, const struct proto_site *site)
{
	struct proto_site clean = *site;
	struct peer *p;

	if (peer >= PEER_MAX || s->peer[peer].state == SESSION_UNUSED)
		return;
	p = &s->peer[peer];
	for (unsigned int i = 0; i < clean.nwanted && i < PROTO_PREFIXES; i++)
		clean_prefix(&site->wanted[i], &clean.wanted[i]);
	if (!memcmp(&clean, &p->own_site, sizeof(clean)))
		return;
	p->own_site = clean;
	if (p->state == SESSION_UP)
		outbox_site(s, p);
}

void session_bye(struct session *s, enum proto_bye_reason reason)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct peer *p = &s->peer[i];

		if (p->state == SESSION_UNUSED)
			continue;
		if (p->state == SESSION_UP)
			outbox_bye(s, p, reason);
		peer_change(p, true);
		p->state = SESSION_CLOSED;
		sodium_memzero(&p->link.keys, sizeof(p->link.keys));
		sodium_memzero(&p->old, sizeof(p->old));
		outbox_drop(p);
	}
}

/* ---- receiving ---- */

void session_down(struct session *s, struct peer *p, int prio, enum session_end end,
		  const char *why, uint64_t now)
{
	session_say(s, p, prio, "down: %s", why);
	p->end = end;
	sodium_memzero(&p->old, sizeof(p->old));
	p->state = SESSION_DOWN;
	peer_change(p, true);
	sodium_memzero(&p->link.keys, sizeof(p->link.keys));
	peer_change(p, false);
	outbox_drop(p);
	peer_note_refused(p);
	p->since = now;
	p->next_hello = now;
	p->downs++;
	s->sink.event(s->sink.ctx, session_index(s, p), PEER_DOWN, now);
}

static void heartbeat(struct peer *p, const struct proto_heartbeat *h, uint64_t seq, uint64_t now)
{
	struct link *l = &p->link;
	uint64_t held = (uint64_t)h->held_us * 1000;

	/* A heartbeat that was overtaken would show too long a delay. */
	if (seq <= l->beat_seq)
		return;
	l->beat_seq = seq;
	l->beat_sent = h->sent;
	l->beat_at = now;
	delay_oneway(&l->delay, h->sent, now);

	/* An echo from outside the time of this session is not of our heartbeats. */
	if (h->echo == 0 || h->held_us == UINT32_MAX || h->echo < l->started || h->echo > now ||
	    held > now - h->echo)
		return;
	delay_rtt(&l->delay, now - h->echo - held);
}

/* False when the session is over and the rest of the datagram means nothing. */
static bool message(struct session *s, struct peer *p, const struct proto_message *m, uint64_t seq,
		    uint64_t now)
{
	switch (m->type) {
	case PROTO_HEARTBEAT:
		heartbeat(p, &m->heartbeat, seq, now);
		return true;
	case PROTO_HELLO:
		/* The boot epoch belongs to the session; only a handshake changes it. */
		if (m->hello.boot != p->hello.boot) {
			p->counter[SC_MISPLACED]++;
		} else if (seq > p->link.hello_seq) {
			p->link.hello_seq = seq;
			p->hello = m->hello;
		}
		return true;
	case PROTO_SITE:
		if (seq > p->link.site_seq) {
			p->link.site_seq = seq;
			p->site = m->site;
		}
		return true;
	case PROTO_PROBE:
		probe_rx(s, p, &m->probe, seq);
		return true;
	case PROTO_PROBED:
		probed_rx(p, &m->probed, now);
		return true;
	case PROTO_BYE:
		session_down(s, p, LOG_NOTICE,
			     m->bye == BYE_REMOVED ? SESSION_END_REMOVED : SESSION_END_STOPPED,
			     m->bye == BYE_REMOVED ? "it said goodbye (this side is not in its "
						     "configuration any more)"
						   : "it said goodbye (shutdown)",
			     now);
		/* Do not seek at once: it has just gone. */
		p->next_hello = now + s->cfg.hello_ns;
		return false;
	case PROTO_CHALLENGE:
		p->counter[SC_MISPLACED]++;
		return true;
	default:
		p->rx_reports++;
		s->sink.report(s->sink.ctx, session_index(s, p), &m->report, now);
		return true;
	}
}

static void messages(struct session *s, struct peer *p, size_t len, uint64_t seq, uint64_t now)
{
	struct proto_message m;
	enum proto_verdict v;
	size_t pos = 0;

	while ((v = proto_next(s->plain, len, &pos, &m)) != PROTO_END) {
		switch (v) {
		case PROTO_OK:
			if (!message(s, p, &m, seq, now))
				return;
			break;
		case PROTO_UNKNOWN:
			p->counter[SC_UNKNOWN_TYPE]++;
			break;
		default:
			p->counter[SC_MALFORMED]++;
			if (v == PROTO_BROKEN)
				return;
		}
	}
}

static void rx_data(struct session *s, struct peer *p, const uint8_t *data, size_t len,
		    uint64_t now)
{
	struct link *l = &p->link;
	uint64_t seq = seal_data_seq(data);
	int n;

	if (p->state == SESSION_UP && memcmp(seal_data_id(data), l->keys.tx_id, SEAL_ID) == 0) {
		p->counter[SC_REFLECTED]++;
		return;
	}
	if (p->state != SESSION_UP || memcmp(seal_data_id(data), l->keys.rx_id, SEAL_ID) != 0) {
		n = p->state == SESSION_UP ? roll_rx_old(s, p, data, len, now) : -1;
		if (n >= 0) {
			/* its numbers are of another session: 0 is newer than nothing */
			messages(s, p, (size_t)n, 0, now);
			return;
		}
		p->counter[SC_NO_SESSION]++;
		/* It may not know that we restarted: send the next HELLO earlier. */
		if (p->state == SESSION_DOWN)
			p->next_hello = earlier(p->next_hello, p->last_hello + HELLO_GAP_NS);
		return;
	}
	switch (replay_check(&l->replay, seq)) {
	case REPLAY_FRESH:
		break;
	case REPLAY_SEEN:
		p->counter[SC_REPLAYED]++;
		return;
	case REPLAY_TOO_OLD:
		p->counter[SC_TOO_OLD]++;
		return;
	}
	n = seal_open_data(&l->keys, data, len, s->plain);
	if (n < 0) {
		p->counter[SC_BAD_AUTH]++;
		return;
	}
	replay_mark(&l->replay, seq);
	l->confirmed = true;
	l->heard = p->last_heard = now;
	p->was_heard = true;
	p->rx_datagrams++;
	p->rx_bytes += len;
	messages(s, p, (size_t)n, seq, now);
}

void session_rx(struct session *s, unsigned int peer, const uint8_t *data, size_t len,
		uint64_t now_ns)
{
	enum seal_verdict kind;
	struct peer *p;

	if (peer >= PEER_MAX)
		return;
	p = &s->peer[peer];
	if (p->state != SESSION_DOWN && p->state != SESSION_UP)
		return;

	kind = len > SESSION_PROBE_MAX ? SEAL_FOREIGN : seal_classify(data, len);
	if (len > SESSION_DATAGRAM_MAX && kind == SEAL_IS_HELLO)
		kind = SEAL_FOREIGN;
	switch (kind) {
	case SEAL_IS_HELLO:
		handshake_rx(s, p, data, len, now_ns);
		break;
	case SEAL_IS_DATA:
		rx_data(s, p, data, len, now_ns);
		break;
	case SEAL_BAD_VERSION:
		p->counter[SC_BAD_VERSION]++;
		if (session_may_say(p, ABOUT_VERSION, now_ns))
			session_say(s, p, LOG_WARNING,
				    "it speaks protocol version %u, this side version %u: run the "
				    "same release of longhaul on both appliances",
				    seal_version(data), PROTO_VERSION);
		break;
	case SEAL_FOREIGN:
		p->counter[SC_FOREIGN]++;
		break;
	}
}

/* ---- sending and time ---- */

int session_report(struct session *s, unsigned int peer, const struct report *r)
{
	struct peer *p;
	int err;

	if (peer >= PEER_MAX)
		return -ENOTCONN;
	p = &s->peer[peer];
	if (p->state != SESSION_UP) {
		p->counter[SC_NOT_UP]++;
		return -ENOTCONN;
	}
	err = outbox_report(s, p, r);
	if (err)
		p->counter[SC_BAD_REPORT]++;
	return err;
}

void session_flush(struct session *s)
{
	for (unsigned int i = 0; i < PEER_MAX; i++)
		outbox_flush(s, &s->peer[i]);
}

/* How long a peer that is up may be silent. */
static uint64_t patience(const struct session *s, const struct peer *p)
{
	bool beats = p->link.confirmed && p->hello.features & PROTO_F_BEATS;

	return beats ? earlier(s->cfg.silent_ns, s->cfg.dead_ns) : s->cfg.dead_ns;
}

static void tick_up(struct session *s, struct peer *p, uint64_t now)
{
	char why[64];

	if (now - p->link.heard >= patience(s, p)) {
		snprintf(why, sizeof(why), "nothing heard from it for %llu ms",
			 (unsigned long long)((now - p->link.heard) / MS));
		session_down(s, p, LOG_WARNING, SESSION_END_SILENT, why, now);
		p->seek_until = now + SEEK_FOR_NS;
		return;
	}
	if (now < p->next_beat)
		return;
	p->next_beat = now + s->cfg.heartbeat_ns;
	if (roll_index(p) < 0) {
		session_down(s, p, LOG_NOTICE, SESSION_END_KEY, ROLL_TAKEN, now);
		return;
	}
	if (roll_due(p, now))
		handshake_seek(s, p, &p->psk[0], now);
	if (!p->link.confirmed && now >= p->link.next_confirm) {
		p->link.next_confirm = now + CONFIRM_NS;
		handshake_confirm(s, p);
	}
	if (now >= p->next_tell) {
		p->next_tell = now + TELL_NS;
		outbox_hello(s, p);
		outbox_site(s, p);
	}
	outbox_heartbeat(s, p, now);
	probe_tick(s, p, now);
}

void session_tick(struct session *s, uint64_t now_ns)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct peer *p = &s->peer[i];

		if (p->state == SESSION_UP)
			tick_up(s, p, now_ns);
		/* Not else: at once if it has just gone down. */
		if (p->state == SESSION_DOWN && now_ns >= p->next_hello) {
			p->next_hello =
				now_ns + (now_ns < p->seek_until ? HELLO_GAP_NS : s->cfg.hello_ns);
			handshake_seek(s, p, roll_next(p), now_ns);
		}
	}
}

uint64_t session_deadline(const struct session *s)
{
	uint64_t t = UINT64_MAX;

	for (unsigned int i = 0; i < PEER_MAX; i++) {
		const struct peer *p = &s->peer[i];

		if (p->state == SESSION_UP)
			t = earlier(t, earlier(p->next_beat, p->link.heard + patience(s, p)));
		else if (p->state == SESSION_DOWN)
			t = earlier(t, p->next_hello);
	}
	return t;
}

/* ---- looking inside ---- */

bool session_up(const struct session *s, unsigned int peer)
{
	return peer < PEER_MAX && s->peer[peer].state == SESSION_UP;
}

/* More than any link takes, with its queue: a pause of our own process looks like that. */
#define RTT_MAX_NS 1000000000ull

uint64_t session_rtt(const struct session *s, unsigned int peer)
{
	const struct delay *d;

	if (peer >= PEER_MAX)
		return 0;
	d = &s->peer[peer].link.delay;
	return d->srtt < RTT_MAX_NS ? d->srtt : RTT_MAX_NS;
}

uint64_t session_boot(const struct session *s)
{
	return s->self.boot;
}

bool session_reach(const struct session *s, unsigned int peer, struct session_reach out[2])
{
	const struct probing *b = &s->peer[peer < PEER_MAX ? peer : 0].link.probing;

	if (!session_up(s, peer))
		return false;
	out[0] = b->to;
	out[0].longest = s->peer[peer].longest;
	out[1] = b->from;
	return true;
}

bool session_info(const struct session *s, unsigned int peer, uint64_t now_ns,
		  struct session_info *out)
{
	const struct peer *p;
	const struct delay *d;

	if (peer >= PEER_MAX || s->peer[peer].state == SESSION_UNUSED)
		return false;
	p = &s->peer[peer];
	d = &p->link.delay;
	*out = (struct session_info){
		.state = p->state,
		.known = p->known,
		.version = p->hello.version,
		.boot = p->hello.boot,
		.features = p->hello.features,
		.window = p->hello.window,
		.nprefix = p->hello.nprefix,
		.more = p->hello.more,
		.site_known = p->state == SESSION_UP && p->link.site_seq,
		.site = p->site,
		.since_ns = now_ns - p->since,
		.heard = p->was_heard,
		.beats = p->hello.features & PROTO_F_BEATS,
		.other_key = p->counter[SC_BAD_AUTH] != p->noted[SC_BAD_AUTH],
		.other_version = p->counter[SC_BAD_VERSION] != p->noted[SC_BAD_VERSION],
		.reflected = p->counter[SC_REFLECTED] != p->noted[SC_REFLECTED],
		.calls = p->state == SESSION_DOWN && now_ns - p->called < CALLED_NS &&
			 p->counter[SC_UNPROVEN] - p->noted[SC_UNPROVEN] >= CALLS,
		.end = p->end,
		.key = roll_index(p),
		.heard_ns = p->was_heard ? now_ns - p->last_heard : 0,
		.sessions = p->sessions,
		.restarts = p->restarts,
		.downs = p->downs,
		.rtt_samples = d->samples,
		.rtt_ns = d->rtt,
		.srtt_ns = d->srtt,
		.rtt_min_ns = d->rtt_min,
		.jitter_ns = d->jitter,
		.owd_above_ns = delay_above(d),
		.tx_datagrams = p->tx_datagrams,
		.tx_bytes = p->tx_bytes,
		.rx_datagrams = p->rx_datagrams,
		.rx_bytes = p->rx_bytes,
		.tx_reports = p->tx_reports,
		.rx_reports = p->rx_reports,
	};
	(void)session_reach(s, peer, out->reach);
	memcpy(out->name, p->name, sizeof(out->name));
	memcpy(out->node, p->hello.name, sizeof(out->node));
	memcpy(out->prefix, p->hello.prefix, sizeof(out->prefix));
	memcpy(out->counter, p->counter, sizeof(out->counter));
	return true;
}

const char *session_state_name(enum session_state st)
{
	static const char *const names[SESSION_STATES] = {
		[SESSION_UNUSED] = "unused",
		[SESSION_DOWN] = "down",
		[SESSION_UP] = "up",
		[SESSION_CLOSED] = "closed",
	};

	return (unsigned int)st < SESSION_STATES ? names[st] : "?";
}

const char *session_counter_name(enum session_counter c)
{
	static const char *const names[SC_COUNT] = {
#define X(id, name, help) [SC_##id] = name,
		SESSION_COUNTERS(X)
#undef X
	};

	return (unsigned int)c < SC_COUNT ? names[c] : "?";
}

const char *session_counter_help(enum session_counter c)
{
	static const char *const helps[SC_COUNT] = {
#define X(id, name, help) [SC_##id] = help,
		SESSION_COUNTERS(X)
#undef X
	};

	return (unsigned int)c < SC_COUNT ? helps[c] : "?";
}

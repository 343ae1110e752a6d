// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The peer protocol under random input. The first byte says at which door:
 *
 *	0 mod 3	 the messages of a decrypted datagram: what is accepted must be exactly what its
 *		 encoder writes again
 *	1 mod 3	 raw datagrams to a session that is up and to one that is down: nobody without the
 *		 key may cause an event, a report, or an answer
 *	2 mod 3	 a peer that has the key and does what it likes: whatever comes of it, reports are
 *		 well formed, events alternate, no nonce is used twice, and the session asks for
 *		 its timer
 */
#include "peer/seal.h"
#include "peer/session.h"
#include "peer/proto_priv.h"
#include "tests/fuzz/input.h"
#include "tests/unit/proto_encode.h"
#include "wire/bytes.h"

#define MS 1000000ull

static const uint8_t psk[PEER_KEY_LEN] = "a key that everybody may know..";

static void door_messages(struct input *in)
{
	uint8_t again[2048];
	struct proto_message m;
	enum proto_verdict v;
	size_t pos = 0, before = 0;

	while ((v = proto_next(in->p, in->left, &pos, &m)) != PROTO_END && v != PROTO_BROKEN) {
		NEED(pos > before && pos <= in->left);
		if (v == PROTO_OK) {
			int n = proto_encode(again, sizeof(again), &m);

			NEED(n == (int)(pos - before));
			/* what an older peer may say in an OPEN is read, and not said */
			if (m.type == PROTO_LANE_OPEN)
				again[1] |= in->p[before + 1] & F_OPEN_OLD;
			NEED(memcmp(again, in->p + before, (size_t)n) == 0);
		}
		before = pos;
	}
}

/* ---- a session with a hand in the place of the peer ---- */

struct world {
	struct session *s;
	uint64_t now;
	uint64_t random;
	unsigned int events, reports, sent;
	bool up;
	/* the hand */
	struct seal_psk psk;
	uint8_t salt[PROTO_SALT];  /* its own */
	uint8_t heard[PROTO_SALT]; /* the latest of the session's */
	uint64_t boot;
	bool keyed;
	struct seal_session keys;
	/* nonces seen */
	uint8_t last_id[SEAL_ID];
	uint64_t last_seq;
};

static void on_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct world *w = ctx;
	uint8_t plain[SESSION_DATAGRAM_MAX];
	struct proto_message m;
	size_t pos = 0;
	int n;

	NEED(peer == 0 && len <= 1400);
	w->sent++;
	if (seal_classify(data, len) == SEAL_IS_DATA) {
		NEED(memcmp(w->last_id, seal_data_id(data), SEAL_ID) != 0
			     ? seal_data_seq(data) == 1
			     : seal_data_seq(data) == w->last_seq + 1);
		memcpy(w->last_id, seal_data_id(data), SEAL_ID);
		w->last_seq = seal_data_seq(data);
		return;
	}
	NEED(seal_classify(data, len) == SEAL_IS_HELLO);
	n = seal_open_hello(&w->psk, data, len, plain);
	NEED(n > 0);
	NEED(proto_next(plain, (size_t)n, &pos, &m) == PROTO_OK && m.type == PROTO_CHALLENGE);
	if (m.challenge.established && memcmp(m.challenge.echo, w->salt, PROTO_SALT) == 0) {
		w->keyed = seal_session_init(&w->keys, &w->psk, w->salt, m.challenge.salt) == 0;
	} else {
		memcpy(w->heard, m.challenge.salt, PROTO_SALT);
	}
}

static void on_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now)
{
	struct world *w = ctx;

	NEED(peer == 0 && now == w->now);
	NEED(session_up(w->s, 0) == (ev != PEER_DOWN));
	NEED(ev == PEER_DOWN || ev == PEER_AGAIN ? w->up : ev == PEER_UP ? !w->up : true);
	w->up = ev != PEER_DOWN;
	w->events++;
}

static void on_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now)
{
	struct world *w = ctx;
	uint8_t buf[PROTO_REPORT_MAX];

	NEED(peer == 0 && now == w->now && w->up);
	NEED(proto_put_report(buf, sizeof(buf), r) > 0);
	w->reports++;
	if (w->reports % 3 == 0) /* an engine that answers */
		NEED(session_report(w->s, 0, r) == 0);
}

static void on_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	(void)ctx;
	(void)prio;
	NEED(peer == 0 && strlen(line) > 5 && !strchr(line, '\n'));
}

static void on_random(void *ctx, void *buf, size_t len)
{
	struct world *w = ctx;
	uint8_t *p = buf;

	while (len--) {
		w->random = w->random * 6364136223846793005u + 1442695040888963407u;
		*p++ = (uint8_t)(w->random >> 56);
	}
}

static void world_init(struct world *w)
{
	struct session_config cfg = {
		.local = {.name = "fuzz"}, .random = on_random, .random_ctx = w};
	struct session_sink sink = {w, on_send, on_event, on_report, on_log, NULL};

	memset(w, 0, sizeof(*w));
	w->now = 1000 * MS;
	w->boot = 1;
	memset(w->salt, 1, sizeof(w->salt));
	NEED(seal_init() == 0);
	seal_psk_init(&w->psk, psk);
	w->s = session_create(&cfg, &sink, w->now);
	NEED(w->s);
	NEED(session_peer_add(w->s, 0, "hand", psk, w->now) == 0);
	session_tick(w->s, w->now);
}

static void rx(struct world *w, const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	NEED(copy);
	if (len)
		memcpy(copy, data, len);
	session_rx(w->s, 0, copy, len, w->now);
	free(copy);
}

static void rx_hello(struct world *w, const uint8_t *messages, size_t len)
{
	uint8_t buf[SESSION_DATAGRAM_MAX], nonce[24] = {0};

	if (len > sizeof(buf) - SEAL_HELLO_HDR - SEAL_TAG)
		len = sizeof(buf) - SEAL_HELLO_HDR - SEAL_TAG;
	if (len)
		memcpy(buf + SEAL_HELLO_HDR, messages, len);
	rx(w, buf, seal_hello(&w->psk, buf, len, nonce));
}

static void hello(struct world *w, bool echo, bool seek, bool established)
{
	struct proto_challenge c = {.seek = seek, .established = established && !seek};
	struct proto_hello h = {.version = 1, .boot = w->boot, .name = "hand"};
	uint8_t m[256];
	int len;

	memcpy(c.salt, w->salt, PROTO_SALT);
	if (echo)
		memcpy(c.echo, w->heard, PROTO_SALT);
	len = proto_put_challenge(m, sizeof(m), &c);
	len += proto_put_hello(m + len, sizeof(m) - (size_t)len, &h);
	rx_hello(w, m, (size_t)len);
}

static void rx_data(struct world *w, const uint8_t *messages, size_t len)
{
	uint8_t buf[SESSION_DATAGRAM_MAX];

	if (len > sizeof(buf) - SEAL_DATA_HDR - SEAL_TAG)
		len = sizeof(buf) - SEAL_DATA_HDR - SEAL_TAG;
	if (len)
		memcpy(buf + SEAL_DATA_HDR, messages, len);
	rx(w, buf, seal_data(&w->keys, buf, len));
}

static void go_up(struct world *w)
{
	hello(w, false, true, false);
	hello(w, true, true, false);
	NEED(w->up && w->keyed);
}

static void tick(struct world *w, uint64_t ns)
{
	w->now += ns;
	session_tick(w->s, w->now);
	NEED(session_deadline(w->s) > w->now);
}

static void door_raw(struct input *in)
{
	struct world w;
	unsigned int events, sent;

	world_init(&w);
	if (next8(in) & 1)
		go_up(&w);
	events = w.events;
	sent = w.sent;
	while (in->left) {
		size_t len = next16(in) % 2048;
		const uint8_t *p = next_bytes(in, &len);

		rx(&w, p, len);
		session_flush(w.s);
		NEED(w.events == events && w.reports == 0 && w.sent == sent);
	}
	session_destroy(w.s);
}

static void door_key(struct input *in)
{
	struct session_info info;
	struct world w;

	world_init(&w);
	if (next8(in) & 1)
		go_up(&w);
	while (in->left) {
		uint8_t op = next8(in);
		size_t len;
		const uint8_t *p;

		switch (op % 8) {
		case 0: /* DATA with any messages; the sequence number may jump */
			w.keys.tx_seq +=
				(uint64_t)(int64_t)(int8_t)next8(in) * (op & 0x80 ? 100 : 1);
			/* fall through */
		case 1:
			len = next16(in) % 1500;
			p = next_bytes(in, &len);
			rx_data(&w, p, len);
			break;
		case 2: /* HELLO with any messages */
			len = next16(in) % 1500;
			p = next_bytes(in, &len);
			rx_hello(&w, p, len);
			break;
		case 3: /* HELLO that means something */
			hello(&w, op & 0x80, op & 0x40, op & 0x20);
			break;
		case 4: /* a new salt, a new process */
			w.salt[0] = next8(in);
			if (op & 0x80)
				w.boot = 1u + next8(in);
			break;
		case 5:
			tick(&w, (uint64_t)next16(in) * MS / (op & 0x80 ? 1 : 50));
			break;
		case 6: /* of our own side: a report as another engine might make it */
			for (unsigned int i = op >> 3; i; i--) {
				struct report r = {.type = REPORT_PROGRESS, .credit = 0xff};

				r.lane = next8(in);
				r.nholes = next8(in);
				r.hi = next8(in);
				for (unsigned int h = 0; h < r.nholes && h < REPORT_HOLES; h++)
					r.hole[h] = (struct psn_range){h * 2, h * 2 + 1};
				session_report(w.s, 0, &r);
			}
			break;
		default:
			session_flush(w.s);
			break;
		}
		NEED(session_up(w.s, 0) == w.up);
		NEED(session_info(w.s, 0, w.now, &info));
	}
	session_bye(w.s, BYE_SHUTDOWN);
	session_destroy(w.s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	switch (next8(&in) % 3) {
	case 0:
		door_messages(&in);
		break;
	case 1:
		door_raw(&in);
		break;
	case 2:
		door_key(&in);
		break;
	}
	return 0;
}

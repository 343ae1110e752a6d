/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
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
 *
 * Build and run:
 *	clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *		-D_GNU_SOURCE -Iproxyd tests/fuzz/fuzz_peer.c \
 *		proxyd/peer/{proto,session,handshake,outbox,seal,delay}.c -lsodium -o fuzz_peer
 *	mkdir -p found && ./fuzz_peer -max_len=4096 found tests/fuzz/corpus/peer
 * Only replay the corpus:
 *	./fuzz_peer -runs=0 tests/fuzz/corpus/peer
 * Write the seeds anew (compile with -DFUZZ_SEEDS and without fuzzer):
 *	./fuzz_peer_seeds tests/fuzz/corpus/peer
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer/seal.h"
#include "peer/session.h"
#include "wire/bytes.h"

#define MS 1000000ull
#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t psk[PEER_KEY_LEN] = "a key that everybody may know..";

struct input {
	const uint8_t *p;
	size_t left;
};

static uint8_t next8(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->p++;
}

static uint16_t next16(struct input *in)
{
	uint8_t high = next8(in);

	return (uint16_t)(high << 8 | next8(in));
}

/* Up to @len bytes; fewer when there are no more. */
static const uint8_t *next_bytes(struct input *in, size_t *len)
{
	const uint8_t *p = in->p;

	if (*len > in->left)
		*len = in->left;
	in->p += *len;
	in->left -= *len;
	return p;
}

static int encode(uint8_t *buf, size_t room, const struct proto_message *m)
{
	switch (m->type) {
	case PROTO_CHALLENGE:
		return proto_put_challenge(buf, room, &m->challenge);
	case PROTO_HELLO:
		return proto_put_hello(buf, room, &m->hello);
	case PROTO_HEARTBEAT:
		return proto_put_heartbeat(buf, room, &m->heartbeat);
	case PROTO_BYE:
		return proto_put_bye(buf, room, m->bye);
	default:
		return proto_put_report(buf, room, &m->report);
	}
}

static void door_messages(struct input *in)
{
	uint8_t again[2048];
	struct proto_message m;
	enum proto_verdict v;
	size_t pos = 0, before = 0;

	while ((v = proto_next(in->p, in->left, &pos, &m)) != PROTO_END && v != PROTO_BROKEN) {
		NEED(pos > before && pos <= in->left);
		if (v == PROTO_OK) {
			int n = encode(again, sizeof(again), &m);

			NEED(n == (int)(pos - before));
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
	NEED(ev == PEER_DOWN ? w->up : ev == PEER_UP ? !w->up : true);
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
	struct session_sink sink = {w, on_send, on_event, on_report, on_log};

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

#ifdef FUZZ_SEEDS
static uint8_t seed[4096];
static size_t seed_len;

static void add(const void *data, size_t len)
{
	NEED(seed_len + len <= sizeof(seed));
	memcpy(seed + seed_len, data, len);
	seed_len += len;
}

static void add8(uint8_t b)
{
	add(&b, 1);
}

static void add16(size_t n)
{
	add8((uint8_t)(n >> 8));
	add8((uint8_t)n);
}

static void write_seed(const char *dir, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	NEED(f && fwrite(seed, 1, seed_len, f) == seed_len && fclose(f) == 0);
	LLVMFuzzerTestOneInput(seed, seed_len); /* it is one that passes */
	seed_len = 0;
}

/* One message of each type. */
static int message(unsigned int i, uint8_t *buf, size_t room)
{
	static const struct ip_addr a = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
	static const struct ip_addr b = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
	struct proto_challenge c = {.seek = true};
	struct proto_hello h = {.version = 1,
				.boot = 1,
				.name = "seed",
				.nprefix = 2,
				.prefix = {{.addr = a, .len = 128}, {.len = 0}}};
	struct proto_heartbeat hb = {.sent = 1, .echo = 2, .held_us = 3};
	struct report r = {.lane = 1, .gen = 2};

	switch (i) {
	case 0:
		return proto_put_challenge(buf, room, &c);
	case 1:
		return proto_put_hello(buf, room, &h);
	case 2:
		return proto_put_heartbeat(buf, room, &hb);
	case 3:
		r.type = REPORT_OPEN;
		r.key = (struct flow_key){.src = a, .dst = b, .dqpn = 17, .vlan = FRAME_VLAN_NONE};
		r.lqpn = 18;
		r.path_mtu = 1024;
		break;
	case 4:
		r.type = REPORT_ACCEPT;
		break;
	case 5:
		r.type = REPORT_REFUSE;
		r.reason = REASON_ONE_WAY;
		break;
	case 6:
		r.type = REPORT_PROGRESS;
		r.cum = 0xfffff0;
		r.hi = 0x000020;
		r.credit = 0x1f;
		r.nholes = 2;
		r.hole[0] = (struct psn_range){0xfffff0, 0xfffff2};
		r.hole[1] = (struct psn_range){0xffffff, 0x000001};
		break;
	case 7:
		r.type = REPORT_CLOSE;
		r.key = (struct flow_key){.src = a, .dst = b, .dqpn = 17, .vlan = 5};
		r.reason = REASON_IDLE;
		r.by_opener = true;
		break;
	case 8:
		return proto_put_bye(buf, room, BYE_SHUTDOWN);
	default:
		return 0;
	}
	return proto_put_report(buf, room, &r);
}

int main(int argc, char **argv)
{
	static const uint8_t unknown[] = {200, 0, 0, 2, 1, 2};
	uint8_t m[512], all[2048];
	size_t all_len = 0;
	struct world w;
	int n;

	NEED(argc == 2);
	for (unsigned int i = 0; (n = message(i, m, sizeof(m))) > 0; i++) {
		char name[32];

		memcpy(all + all_len, m, (size_t)n);
		all_len += (size_t)n;
		add8(0);
		add(m, (size_t)n);
		snprintf(name, sizeof(name), "message-%u", i);
		write_seed(argv[1], name);
	}
	add8(0);
	add(all, all_len);
	add(unknown, sizeof(unknown));
	write_seed(argv[1], "messages");

	/* Headers of both kinds, and of another version. */
	for (unsigned int up = 0; up < 2; up++) {
		world_init(&w);
		add8(1);
		add8((uint8_t)up);
		for (unsigned int kind = 0; kind < 4; kind++) {
			uint8_t d[64] = {'L', 'H', PROTO_VERSION, (uint8_t)kind};

			add16(sizeof(d));
			add(d, sizeof(d));
		}
		add16(4);
		add("LH\x02\x01", 4);
		session_destroy(w.s);
		write_seed(argv[1], up ? "raw-up" : "raw-down");
	}

	/* A peer with the key: reports both ways, a restart, silence, goodbye. */
	add8(2);
	add8(1);
	add8(1);
	add16(all_len - 5); /* all but the BYE */
	add(all, all_len - 5);
	add8(0);
	add8(3);
	add16(sizeof(unknown));
	add(unknown, sizeof(unknown));
	add8(6 | 2 << 3);
	add("\x01\x00\x00\x01\x02\x08", 6);
	add8(7);
	write_seed(argv[1], "key-reports");

	add8(2);
	add8(1);
	add8(4 | 0x80);
	add("\x02\x07", 2);
	add8(3 | 0x40);
	add8(3 | 0x80 | 0x20);
	add8(5);
	add16(15000);
	add8(5 | 0x80);
	add16(4000);
	add8(3 | 0x40);
	add8(3 | 0x80 | 0x40);
	add8(1);
	add16(5);
	add(all + all_len - 5, 5);
	write_seed(argv[1], "key-restart");

	add8(2);
	add8(0);
	n = message(0, m, sizeof(m));
	n += message(1, m + n, sizeof(m) - (size_t)n);
	add8(2);
	add16((size_t)n);
	add(m, (size_t)n);
	add8(5);
	add16(30000);
	write_seed(argv[1], "key-hello");
	return 0;
}
#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One engine driven by hand, each batch of which can be undone (tests/lab/model/undone.h). Two
 * hosts: the near one on the LAN side, 10.1.0.1 with QP 0x11, and the far one beyond the WAN,
 * 10.2.0.1 with QP 0x22. Packets are written as hexadecimal text from the BTH to the end of the
 * payload; the headers before it and the ICRC behind it are added, without the builder that is
 * under test. What the engine sends is compared in the same notation.
 *
 *	04 40ffff 00000022 80000005 61*8
 *	|  |      |        | |      payload: eight times 0x61
 *	|  |      |        | PSN 5
 *	|  |      |        AckReq
 *	|  |      destination QP 0x22
 *	|  M bit, P_Key
 *	SEND ONLY
 *
 * '|' and blanks may stand between bytes. The text is a format: numbers may come from arguments.
 */
#ifndef LONGHAUL_TESTS_ENGINE_RIG_H
#define LONGHAUL_TESTS_ENGINE_RIG_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lab/model/sealed.h"
#include "tests/lab/model/undone.h"
#include "engine/engine.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define RIG_OUT	    16384
#define RIG_REPORTS 2048
#define RIG_HELD    64
#define RIG_MTU	    256u
#define RIG_MS	    1000000ull
#define RIG_BTH	    42 /* Ethernet, IPv4, UDP */

/* Where a frame comes from. */
enum rig_host {
	NEAR,
	FAR,
};

struct rig_frame {
	enum engine_port port;
	uint32_t len;
	uint8_t data[FRAME_MAX];
	uint32_t seal;
};

/* A connection whose packets are to be held while no engine is there. */
struct rig_held {
	bool used;
	struct flow_key requests;
	uint32_t lqpn;
	struct template headers;
};

struct rig {
	struct engine *e;
	uint64_t now;
	struct rig_frame *out; /* what was sent, and not looked at yet: [at, nout) */
	unsigned int at, nout;
	struct report *rep;
	unsigned int nrep;
	struct report open; /* of the lane in custody */
	uint32_t seq;
	unsigned int events[EVENT_TYPES];
	struct engine_event last;
	uint8_t host[2]; /* last byte of the hosts' addresses */
	bool native;	 /* what comes from afar has no seal */
	bool own;	 /* it has that of a request of the opener's own */
	bool breaks;	 /* the test breaks an invariant: the latest */
	struct engine_must must;
	struct rig_held held[RIG_HELD];
	bool full[PORTS]; /* the port has no room for what is to be sent */
};

static int rig_sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		       uint32_t seal)
{
	struct rig *r = ctx;
	struct rig_frame *f = &r->out[r->nout];

	if (r->full[port])
		return -EAGAIN;
	assert_true(r->nout < RIG_OUT);
	assert_true(len <= sizeof(f->data));
	f->port = port;
	f->len = len;
	f->seal = seal;
	memcpy(f->data, data, len);
	if (port == PORT_LAN && seal) /* it passes as it came */
		put_le32(f->data + len - ICRC_LEN, get_le32(f->data + len - ICRC_LEN) ^ seal);
	r->nout++;
	return 0;
}

static void rig_sink_report(void *ctx, unsigned int peer, const struct report *rep)
{
	struct rig *r = ctx;

	assert_int_equal(peer, 0);
	assert_true(r->nrep < RIG_REPORTS);
	r->rep[r->nrep++] = *rep;
}

static void rig_sink_event(void *ctx, const struct engine_event *ev)
{
	struct rig *r = ctx;

	if (ev->type == EVENT_INVARIANT && !r->breaks)
		fail_msg("%s:%u: %s", ev->must.file, ev->must.line, ev->must.what);
	if (ev->type == EVENT_INVARIANT)
		r->must = ev->must;
	r->events[ev->type]++;
	r->last = *ev;
}

static int rig_sink_hold(void *ctx, const struct flow_key *requests, uint32_t lqpn,
			 const struct template *headers, bool on)
{
	struct rig *r = ctx;
	struct rig_held *h = NULL;

	for (unsigned int i = 0; i < RIG_HELD; i++) {
		if (r->held[i].used && !memcmp(&r->held[i].requests, requests, sizeof(*requests)))
			h = &r->held[i];
		else if (!h && !r->held[i].used && on)
			h = &r->held[i];
	}
	if (!h)
		return on ? -1 : 0;
	*h = (struct rig_held){.used = on, .requests = *requests, .lqpn = lqpn};
	if (headers)
		h->headers = *headers;
	return 0;
}

/** rig_engine - an engine that knows nothing. */
static inline void rig_engine(struct rig *r, const struct engine_config *cfg,
			      const struct rule *rule)
{
	struct engine_config c = *cfg;
	struct engine_sink sink = {.ctx = r,
				   .tx = rig_sink_tx,
				   .report = rig_sink_report,
				   .event = rig_sink_event,
				   .hold = rig_sink_hold};

	c.undo = true;
	r->e = engine_create(&c, &sink, r->now);
	assert_non_null(r->e);
	undone_watch(r->e);
	engine_rules(r->e, rule, 1, r->now);
	engine_peer_features(r->e, 0, PEER_FEATURE_SEAL | PEER_FEATURE_OWN);
	engine_peer_event(r->e, 0, PEER_UP, r->now);
}

static inline struct rig *rig_create(const struct engine_config *cfg, const struct rule *rule)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->out = calloc(RIG_OUT, sizeof(*r->out));
	r->rep = calloc(RIG_REPORTS, sizeof(*r->rep));
	assert_non_null(r->out);
	assert_non_null(r->rep);
	r->now = 1000000000;
	r->host[NEAR] = r->host[FAR] = 1;
	rig_engine(r, cfg, rule);
	return r;
}

static inline void rig_destroy(struct rig *r)
{
	undone_watch(NULL);
	engine_destroy(r->e);
	free(r->out);
	free(r->rep);
	free(r);
}

/** rig_rule - hosts 10.1.0.0/16 near and 10.2.0.0/16 far, @peer 0 or PEER_NONE. */
static inline struct rule rig_rule(int8_t peer, enum ack_policy policy, uint32_t mtu)
{
	struct rule r = {.name = "rig",
			 .nnear = 1,
			 .nfar = 1,
			 .vlan = RULE_ANY_VLAN,
			 .peer = peer,
			 .policy = policy,
			 .learn = LEARN_CM | LEARN_ALONE,
			 .path_mtu = mtu};

	ip_addr_parse("10.1.0.0", &r.near[0].addr);
	ip_addr_parse("10.2.0.0", &r.far[0].addr);
	r.near[0].len = r.far[0].len = 96 + 16;
	return r;
}

/** rig_hex - bytes of @text to @out; returns how many. */
static inline uint32_t rig_hex(uint8_t *out, const char *text)
{
	uint32_t n = 0;

	while (*text) {
		unsigned int byte, times = 1;
		int used = 0;

		if (*text == ' ' || *text == '|') {
			text++;
			continue;
		}
		if (sscanf(text, "%2x%n", &byte, &used) != 1 || used != 2)
			fail_msg("no hexadecimal byte at \"%s\"", text);
		text += 2;
		if (*text == '*') {
			char *end;

			times = (unsigned int)strtoul(text + 1, &end, 10);
			text = end;
		}
		while (times--)
			out[n++] = (uint8_t)byte;
	}
	return n;
}

/** rig_build - the frame that @from sends with @text behind its UDP header. Returns its length. */
static inline uint32_t rig_build(const struct rig *r, uint8_t *out, enum rig_host from,
				 const char *text)
{
	char head[160];
	uint32_t len;

	snprintf(head, sizeof(head),
		 "02000000000%d 02000000000%d 080045 00 0000 0000 4000 40 11 0000 0a0%d00%02x "
		 "0a0%d00%02xc001 12b7 0000 0000",
		 from == NEAR ? 2 : 1, from == NEAR ? 1 : 2, from == NEAR ? 1 : 2, r->host[from],
		 from == NEAR ? 2 : 1, r->host[!from]);
	len = rig_hex(out, head);
	assert_int_equal(len, RIG_BTH);
	len += rig_hex(out + len, text);
	len += ICRC_LEN;
	put_be16(out + 16, (uint16_t)(len - 14));
	put_be16(out + 24, ip4_csum(out + 14));
	put_be16(out + 38, (uint16_t)(len - 34));
	put_le32(out + len - ICRC_LEN, icrc_of(out, 14, len - ICRC_LEN));
	return len;
}

static inline void rig_check(struct rig *r)
{
	const char *bad = engine_check(r->e);

	if (bad)
		fail_msg("invariant: %s", bad);
	if (undone_bad())
		fail_msg("%s", undone_bad());
}

/* What comes from afar of a lane that is sealed the peer has sealed. */
static inline void rig_rx_raw(struct rig *r, enum rig_host from, const uint8_t *data, uint32_t len)
{
	uint8_t frame[FRAME_MAX + 64];

	memcpy(frame, data, len);
	if (from == FAR && !r->native)
		sealed_by_peer(r->e, frame, len, false, r->own);
	engine_rx(r->e, from == NEAR ? PORT_LAN : PORT_WAN, frame, len, r->now);
}

static inline void rig_rx_frame(struct rig *r, enum rig_host from, const uint8_t *data,
				uint32_t len)
{
	rig_rx_raw(r, from, data, len);
	rig_check(r);
}

/** rig_arrives - @from sends a packet; nothing is checked, and nothing else is done. */
static inline __attribute__((format(printf, 3, 0))) void
rig_arrives(struct rig *r, enum rig_host from, const char *fmt, va_list ap)
{
	uint8_t data[FRAME_MAX];
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	rig_rx_raw(r, from, data, rig_build(r, data, from, text));
}

/** rig_rx - @from sends a packet; the engine does what is due at once. */
static inline __attribute__((format(printf, 3, 4))) void rig_rx(struct rig *r, enum rig_host from,
								const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	rig_arrives(r, from, fmt, ap);
	va_end(ap);
	rig_check(r);
	engine_tick(r->e, r->now);
	rig_check(r);
}

/** rig_pass - let @ns go by, with a tick whenever the engine wants one. */
static inline void rig_pass(struct rig *r, uint64_t ns)
{
	uint64_t end = r->now + ns;

	while (r->now < end) {
		uint64_t t = engine_deadline(r->e);

		r->now = t > end ? end : t > r->now ? t : r->now + 1000;
		engine_tick(r->e, r->now);
		rig_check(r);
	}
}

/** rig_forget - whatever was sent so far is of no interest. */
static inline void rig_forget(struct rig *r)
{
	r->at = r->nout = r->nrep = 0;
}

/* Failures are told with the line of the test, which is what one wants to know. */
#define rig_sent(r, port)	 rig_sent_at(r, port, __LINE__)
#define rig_quiet(r)		 rig_quiet_at(r, __LINE__)
#define rig_expect(r, port, ...) rig_expect_at(r, port, __LINE__, __VA_ARGS__)

/** rig_sent - the next frame that was sent; it must be for @port. */
static inline struct rig_frame *rig_sent_at(struct rig *r, enum engine_port port, int line)
{
	struct rig_frame *f = &r->out[r->at];

	if (r->at == r->nout)
		fail_msg("line %d: nothing was sent", line);
	if (f->port != port)
		fail_msg("line %d: sent to port %d: opcode 0x%02x PSN 0x%06x", line, f->port,
			 f->data[RIG_BTH], get_be24(f->data + RIG_BTH + 9));
	r->at++;
	return f;
}

/** rig_quiet - nothing else was sent. */
static inline void rig_quiet_at(struct rig *r, int line)
{
	if (r->at != r->nout)
		fail_msg("line %d: sent to port %d: opcode 0x%02x PSN 0x%06x", line,
			 r->out[r->at].port, r->out[r->at].data[RIG_BTH],
			 get_be24(r->out[r->at].data + RIG_BTH + 9));
}

/** rig_only_probes - nothing was sent but requests that are to break the near host's QP (broken.c),
 * and questions to its host (core/host.c). */
static inline void rig_only_probes(struct rig *r)
{
	while (r->at < r->nout) {
		uint8_t opcode = rig_sent(r, PORT_LAN)->data[RIG_BTH];

		assert_true(opcode == 0x01 || opcode == 0x64);
	}
}

/** rig_expect - the next frame sent is for @port, has a right ICRC and reads so from the BTH on. */
static inline __attribute__((format(printf, 4, 5))) void
rig_expect_at(struct rig *r, enum engine_port port, int line, const char *fmt, ...)
{
	uint8_t want[FRAME_MAX];
	struct rig_frame *got = rig_sent_at(r, port, line);
	struct frame f;
	char text[1024];
	uint32_t n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = rig_hex(want, text);
	assert_int_equal(frame_parse(got->data, got->len, &f), FRAME_OK);
	assert_true(icrc_ok(&f));
	if (got->len != RIG_BTH + n + ICRC_LEN || memcmp(got->data + RIG_BTH, want, n)) {
		for (uint32_t i = RIG_BTH; i < got->len - ICRC_LEN && i < RIG_BTH + 40; i++)
			print_error("%02x ", got->data[i]);
		fail_msg("line %d: the above was sent, not \"%s\"", line, text);
	}
}

/* Packets that most tests need. */
#define SEND_ONLY(psn) "04 40ffff 00000022 80" psn " 61*8" /* far QP, AckReq */
#define ACK_TO_NEAR    "11 40ffff 00000011 00%06x 1f%06x"  /* PSN, MSN */

/** rig_learn - five SENDs of the near host, PSN @psn and on, each acknowledged by the far one:
 * after that
 *  the pair is known and the MSN calibrated. Returns the next PSN; the next MSN is 6. */
static inline uint32_t rig_learn(struct rig *r, uint32_t psn)
{
	for (uint32_t msn = 1; msn <= 5; msn++, psn = psn_add(psn, 1)) {
		rig_rx(r, NEAR, SEND_ONLY("%06x"), psn);
		rig_rx(r, FAR, ACK_TO_NEAR, psn, msn);
	}
	assert_int_equal(r->nout, 10);
	for (unsigned int i = 0; i < 10; i++) /* watched: passed, nothing else */
		assert_int_equal(rig_sent(r, i & 1 ? PORT_LAN : PORT_WAN)->data[RIG_BTH],
				 i & 1 ? 0x11 : 0x04);
	assert_int_equal(engine_counter(r->e, EC_PASSED), 10);
	rig_forget(r);
	return psn;
}

/** rig_conn - the first connection. */
static inline struct conn_info rig_conn(struct rig *r)
{
	struct conn_info ci;

	assert_true(engine_conn_next(r->e, 0, r->now, &ci));
	return ci;
}

/** rig_pairs - how many connections are known as pairs. */
static inline unsigned int rig_pairs(struct rig *r)
{
	struct conn_info ci;
	unsigned int n = 0;

	for (uint32_t from = 0; engine_conn_next(r->e, from, r->now, &ci); from = ci.id + 1)
		n += ci.paired;
	return n;
}

/** rig_open - what the peer says when it opens the lane of the far host's requests, from PSN @psn
 * and MSN @msn on. */
static inline struct report rig_open(uint32_t psn, uint32_t msn, uint32_t mtu)
{
	struct report open = {.type = REPORT_OPEN,
			      .lane = 77,
			      .gen = 3,
			      .lqpn = 0x22,
			      .start_psn = psn,
			      .start_msn = msn,
			      .path_mtu = mtu};

	ip_addr_parse("10.2.0.1", &open.key.src);
	ip_addr_parse("10.1.0.1", &open.key.dst);
	open.key.dqpn = 0x11;
	open.key.vlan = FRAME_VLAN_NONE;
	return open;
}

/** rig_progress - the peer: all below @cum has arrived, all below @una is truly acknowledged, with
 * @msn. */
static inline void rig_progress(struct rig *r, uint32_t cum, uint32_t una, uint32_t msn)
{
	struct report p = r->open;

	p.type = REPORT_PROGRESS;
	p.seq = ++r->seq;
	p.cum = p.hi = cum;
	p.room = psn_add(cum, 10000);
	p.una = una;
	p.una_msn = msn;
	p.una_ackable = true;
	p.credit = 0x1f;
	engine_rx_report(r->e, 0, &p, r->now);
	engine_tick(r->e, r->now);
	rig_check(r);
}

/** rig_answer - the peer's ACCEPT or REFUSE of the lane that was opened last. */
static inline void rig_answer(struct rig *r, enum report_type type, enum lane_reason reason)
{
	struct report a = {.type = (uint8_t)type,
			   .lane = r->open.lane,
			   .gen = r->open.gen,
			   .reason = (uint8_t)reason};

	engine_rx_report(r->e, 0, &a, r->now);
	engine_tick(r->e, r->now);
	rig_check(r);
}

/**
 * rig_held - a rig whose lane from the near host is in custody since PSN 5, with @peer 0 or
 * PEER_NONE. PSN 5 is truly acknowledged; the near host goes on with PSN 6, the next message
 * completed is number 7.
 */
static inline struct rig *rig_held(const struct engine_config *cfg, int8_t peer,
				   enum ack_policy policy, uint32_t mtu)
{
	static const struct engine_config small = {
		.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(peer, policy, mtu);
	struct rig *r = rig_create(cfg ? cfg : &small, &rule);

	rig_learn(r, 0);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	if (peer != PEER_NONE) {
		assert_int_equal(r->nrep, 1);
		assert_int_equal(r->rep[0].type, REPORT_OPEN);
		r->open = r->rep[0];
		rig_answer(r, REPORT_ACCEPT, REASON_NONE);
		rig_progress(r, 6, 6, 6);
	} else {
		rig_rx(r, FAR, ACK_TO_NEAR, 5, 6);
	}
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].una, 6);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 0);
	rig_forget(r);
	return r;
}

#endif

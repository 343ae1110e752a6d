// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who belongs to whom: pairs found by matching PSNs and by the connection manager, pairs that must
 * not be found, and everything that is no business of the appliance, which passes as it came.
 */
#include "engine/core/core.h"
#include "tests/unit/engine_rig.h"

static const struct engine_config small = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};

static struct rig *start(const struct engine_config *cfg)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);

	return rig_create(cfg, &rule);
}

/* One request that ends a message to @rqpn at the far host, and its ACK to @lqpn, both watched. */
static void exchange(struct rig *r, uint32_t lqpn, uint32_t rqpn, uint32_t psn, uint32_t msn)
{
	rig_rx(r, NEAR, "04 40ffff 00%06x 80%06x 61*8", rqpn, psn);
	rig_rx(r, FAR, "11 40ffff 00%06x 00%06x 1f%06x", lqpn, psn, msn);
	rig_forget(r);
}

/*
 * NTT-3: two queue pairs of one local host are connected to two remote hosts, and there both have
 * the same number. A request names its destination only; the answer must go to the queue pair that
 * sent it.
 */
static void test_remotes_kept_apart(void **state)
{
	static const uint32_t lqpn[] = {0, 0x11, 0x12};
	static const uint32_t psn[] = {0, 0x100, 0xfffffe}; /* the second one wraps */
	struct rig *r = start(&small);
	struct conn_info ci;

	(void)state;
	for (uint32_t m = 0; m < 5; m++) {
		for (uint8_t h = 1; h <= 2; h++) {
			r->host[FAR] = h;
			exchange(r, lqpn[h], 0x22, psn_add(psn[h], m), 10 * h + m);
		}
	}
	assert_int_equal(rig_pairs(r), 2);
	for (uint32_t from = 0; engine_conn_next(r->e, from, r->now, &ci); from = ci.id + 1) {
		assert_int_equal(ci.rqpn, 0x22);
		assert_int_equal(ci.lqpn, lqpn[ci.wan_ip.b[15]]);
		assert_int_equal(ci.learned_by, LEARNED_PSN);
	}
	for (uint8_t h = 1; h <= 2; h++) {
		uint32_t next = psn_add(psn[h], 5);
		const struct rig_frame *f;

		r->host[FAR] = h;
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", next);
		f = rig_sent(r, PORT_WAN);
		assert_int_equal(f->data[33], h);
		f = &r->out[r->at];
		rig_expect(r, PORT_LAN, "11 40ffff 00%06x 00%06x 1f%06x", lqpn[h], next,
			   10 * h + 5);
		assert_int_equal(f->data[29], h); /* from the remote that was asked */
		rig_quiet(r);
	}
	rig_destroy(r);
}

/* NTT-3: two queue pairs between the same hosts in step with each other, both from PSN 0 on. The
 * ACKs of one are seen, but not whose they are, so nothing is taken; when they part, both are, and
 * rightly. */
static void test_same_psns(void **state)
{
	struct rig *r = start(&small);
	struct conn_info ci;

	(void)state;
	for (uint32_t psn = 0; psn < 20; psn++) {
		rig_rx(r, NEAR, "04 40ffff 00000021 80%06x 61*8", psn);
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", psn);
		rig_rx(r, FAR, "11 40ffff 00000011 00%06x 1f%06x", psn, psn + 1);
	}
	assert_int_equal(rig_pairs(r), 0);
	assert_int_equal(engine_counter(r->e, EC_PASSED), 60);
	rig_pass(r, 3000 * RIG_MS); /* notes grow old */
	for (uint32_t m = 0; m < 5; m++) {
		exchange(r, 0x11, 0x21, 100 + m, 100 + m);
		exchange(r, 0x12, 0x22, 200 + m, 200 + m);
	}
	assert_int_equal(rig_pairs(r), 2);
	for (uint32_t from = 0; engine_conn_next(r->e, from, r->now, &ci); from = ci.id + 1)
		assert_int_equal(ci.rqpn - ci.lqpn, 0x10);
	rig_destroy(r);
}

/* NTT-3: three ACKs speak for a pair, the fourth for another: the count starts again for all of
 * them. */
static void test_contradiction(void **state)
{
	struct rig *r = start(&small);

	(void)state;
	for (uint32_t psn = 0; psn < 3; psn++)
		exchange(r, 0x11, 0x22, psn, psn + 1);
	exchange(r, 0x13, 0x22, 3, 4);
	exchange(r, 0x11, 0x22, 4, 5);
	assert_int_equal(rig_pairs(r), 0);
	assert_true(engine_counter(r->e, EC_LEARN_CONTRADICTIONS) > 0);
	/* an ACK that is repeated is no new evidence */
	for (int i = 0; i < 10; i++)
		rig_rx(r, FAR, "11 40ffff 00000011 00000004 1f000005");
	assert_int_equal(rig_pairs(r), 0);
	for (uint32_t psn = 5; psn < 8; psn++)
		exchange(r, 0x11, 0x22, psn, psn + 1);
	assert_int_equal(rig_pairs(r), 1);
	rig_destroy(r);
}

/* A copy of a request goes out only while its PSN is not far behind: a responder may take one from
 * before the wrap of PSNs for new. */
static void test_copies_are_near(void **state)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct rig *r;
	uint32_t psn = 0xfffff0, n;
	uint64_t copies;

	(void)state;
	rule.learn = LEARN_CM | LEARN_PSN;
	r = rig_create(&small, &rule);
	undone_watch(NULL); /* too many packets */
	for (n = 0; n < 8; n++, psn = psn_add(psn, 1))
		exchange(r, 0x11, 0x22, psn, n);
	assert_int_equal(rig_pairs(r), 1);
	rig_pass(r, RIG_MS);
	assert_true(engine_counter(r->e, EC_LEARN_PROBES) > 1);
	for (n = 0; n < (1 << 20); n++, psn = psn_add(psn, 1)) {
		rig_rx(r, NEAR, "04 40ffff 00000022 00%06x 61*8", psn);
		rig_forget(r);
	}
	copies = engine_counter(r->e, EC_LEARN_PROBES);
	rig_pass(r, 2 * RIG_MS);
	assert_int_equal(engine_counter(r->e, EC_LEARN_PROBES), copies);
	rig_destroy(r);
}

/* Packets that are lost and sent again leave the pattern as it is. One that is not behind the
 * request whose copies are sent may be a new owner's, for whom a copy would be new, and one far
 * away is. */
static void test_copies_of_whom(void **state)
{
	static const struct {
		int32_t behind;
		bool goes_on;
	} next[] = {{20, true}, {1, true}, {1000, true}, {5000, false}, {0, false}, {-1, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(next) / sizeof(*next); i++) {
		struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
		uint64_t copies;
		uint32_t copied;
		struct rig *r;

		rule.learn = LEARN_CM | LEARN_PSN;
		r = rig_create(&small, &rule);
		for (uint32_t n = 0; n < 8; n++)
			exchange(r, 0x11, 0x22, 100 + n, n);
		assert_int_equal(rig_pairs(r), 1);
		rig_pass(r, RIG_MS);
		assert_true(r->nout > 0);
		copied = get_be24(r->out[r->nout - 1].data + RIG_BTH + 9);
		rig_rx(r, NEAR, "04 40ffff 00000022 00%06x 61*8", copied + next[i].behind);
		copies = engine_counter(r->e, EC_LEARN_PROBES);
		rig_pass(r, 2 * RIG_MS);
		assert_int_equal(engine_counter(r->e, EC_LEARN_PROBES) > copies, next[i].goes_on);
		rig_destroy(r);
	}
}

/* So many copies are sent where two queue pairs in step send @what behind their BTH. */
static uint64_t copies_of(unsigned int opcode, const char *what)
{
	struct rig *r = start(&small);
	uint64_t copies;
	char text[128];

	snprintf(text, sizeof(text), "%02x 40ffff 000000%%02x 80%%06x %s", opcode, what);
	for (uint32_t psn = 0; psn < 20; psn++)
		for (uint32_t qpn = 0x21; qpn <= 0x22; qpn++)
			rig_rx(r, NEAR, text, qpn, psn);
	rig_pass(r, 20 * RIG_MS);
	copies = engine_counter(r->e, EC_LEARN_PROBES);
	rig_destroy(r);
	return copies;
}

/* Nothing tells yet who answers: only that is sent again which a responder neither refuses nor
 * executes again, and acknowledges, whatever it has in hand. */
static void test_copies_are_writes(void **state)
{
	(void)state;
	assert_true(copies_of(0x0a, "00*8 00000007 00000008 61*8") > 0);
	assert_int_equal(copies_of(0x06, "00*8 00000007 00000200 61*256"), 0);
	assert_int_equal(copies_of(0x0b, "00*8 00000007 00000008 00000001 61*8"), 0);
	assert_int_equal(copies_of(0x04, "61*8"), 0);
	assert_int_equal(copies_of(0x0c, "00*8 00000007 00000008"), 0);
}

/* The pair, which is the only one. */
static struct conn_info pair(struct rig *r)
{
	struct conn_info ci = {0};

	assert_int_equal(rig_pairs(r), 1);
	for (uint32_t from = 0; engine_conn_next(r->e, from, r->now, &ci) && !ci.paired;)
		from = ci.id + 1;
	return ci;
}

/* PSNs have matched: that is a hint. What the peer says of one of the two queue pairs, and another
 * one, is worth more. */
static void test_hint_gives_way(void **state)
{
	static const struct {
		uint32_t lqpn, rqpn;
	} told[] = {{0x11, 0x33}, {0x13, 0x22}};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
		struct report open = rig_open(5, 5, RIG_MTU);
		struct rig *r;

		rule.learn = LEARN_CM | LEARN_PSN;
		r = rig_create(&small, &rule);
		for (uint32_t psn = 0; psn < 8; psn++)
			exchange(r, 0x11, 0x22, psn, psn + 1);
		assert_int_equal(pair(r).learned_by, LEARNED_HINT);
		exchange(r, 0x13, 0x33, 0x700, 1);
		open.key.dqpn = told[i].lqpn;
		open.lqpn = told[i].rqpn;
		engine_rx_report(r->e, 0, &open, r->now);
		assert_int_equal(r->rep[0].type, REPORT_ACCEPT);
		assert_int_equal(pair(r).lqpn, told[i].lqpn);
		assert_int_equal(pair(r).rqpn, told[i].rqpn);
		assert_int_equal(pair(r).learned_by, LEARNED_PEER);
		rig_destroy(r);
	}
}

/* A packet passes byte for byte to the other port, nothing else happens, and @counter says why. */
static __attribute__((format(printf, 4, 5))) void
passes(struct rig *r, enum rig_host from, enum engine_counter counter, const char *fmt, ...)
{
	uint64_t before = engine_counter(r->e, counter), passed = engine_counter(r->e, EC_PASSED);
	uint8_t data[FRAME_MAX];
	struct rig_frame *f;
	char text[256];
	uint32_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = rig_build(r, data, from, text);
	rig_rx_frame(r, from, data, len);
	engine_tick(r->e, r->now);
	f = rig_sent(r, from == NEAR ? PORT_WAN : PORT_LAN);
	assert_int_equal(f->len, len);
	assert_memory_equal(f->data, data, len);
	rig_quiet(r);
	assert_int_equal(engine_counter(r->e, EC_PASSED), passed + 1);
	assert_int_equal(engine_counter(r->e, counter), before + 1);
}

/* CONV-2: what goes to a destination that is not known, in either direction, passes and is counted;
 * so does what is of another service. */
static void test_unknown_passes(void **state)
{
	struct engine_config one = {.pool_bytes = 8 << 20, .max_conns = 1, .seed = 1};
	struct rig *r = start(&one);

	(void)state;
	/* a request whose partner is not known, an ACK for a QP that nobody asked */
	passes(r, NEAR, EC_PASSED, SEND_ONLY("000005"));
	passes(r, FAR, EC_PASSED, ACK_TO_NEAR, 77, 77);
	/* both places in the table are taken: a third destination */
	passes(r, NEAR, EC_TABLE_FULL, "04 40ffff 00000033 80000005 61*8");
	passes(r, FAR, EC_TABLE_FULL, "10 40ffff 00000034 00000008 1f000009 72*8");
	/* ENG-17: CNP; UD; UC SEND ONLY; an opcode that does not exist */
	passes(r, FAR, EC_CNP, "81 40ffff 40000011 00000000 00*16");
	passes(r, NEAR, EC_NOT_RC, "64 40ffff 00000009 00000001 | 11111111 00000009 | 61*8");
	passes(r, NEAR, EC_NOT_RC, "24 40ffff 00000022 00000001 61*8");
	passes(r, NEAR, EC_BAD_OPCODE, "1f 40ffff 00000022 00000001 61*8");
	/* BTH version 1: the hosts' NICs will judge it */
	passes(r, NEAR, EC_BAD_FRAME, "04 41ffff 00000022 80000005 61*8");
	rig_destroy(r);
}

/* CONV-2: hosts that no rule names. */
static void test_no_rule(void **state)
{
	struct rule rule = rig_rule(PEER_NONE, POLICY_EARLY, RIG_MTU);
	struct rig *r;

	(void)state;
	rule.far[0].len = 128; /* 10.2.0.0 alone */
	r = rig_create(&small, &rule);
	for (uint32_t psn = 0; psn < 10; psn++) {
		passes(r, NEAR, EC_NO_RULE, SEND_ONLY("%06x"), psn);
		passes(r, FAR, EC_NO_RULE, ACK_TO_NEAR, psn, psn + 1);
	}
	assert_int_equal(rig_pairs(r), 0);
	rig_destroy(r);
}

#define CM_HEAD	 "64 40ffff 00000001 00000001 | 80010000 00000001 | 01070203 00*4 00000000000000aa"
/* Attribute, local comm id; QPN of the sender, service type RC, starting PSN, path MTU 1024 */
#define CM_REQ_	 CM_HEAD "0010 0000 00*4 | 0000abcd 00*28 %06x 00*8 01 %06x 00*3 30 00*181"
/* Attribute, local and remote comm id; QPN of the sender, starting PSN */
#define CM_REP_	 CM_HEAD "0013 0000 00*4 | 00001234 0000abcd 00*4 %06x 00*5 %06x 00*3 01 00*205"
/* Attribute, both comm ids, QPN of the receiver */
#define CM_DREQ_ CM_HEAD "0015 0000 00*4 | 0000abcd 00001234 %06x 00*221"

/* The other host's answer to it */
#define CM_DREP_ CM_HEAD "0016 0000 00*4 | 00001234 0000abcd 00*224"

/* The connection manager names both; one acknowledged message more, and custody can begin. */
static void test_cm(void **state)
{
	struct rule rule =
		rig_rule(PEER_NONE, POLICY_EARLY, 0); /* the path MTU comes with the REQ */
	struct rig *r = rig_create(&small, &rule);
	struct conn_info ci;

	(void)state;
	rig_rx(r, NEAR, CM_REQ_, 0x11u, 0x700u);
	rig_rx(r, NEAR, CM_REQ_, 0x11u, 0x700u);
	rig_rx(r, FAR, CM_REP_, 0x22u, 0x900u);
	assert_int_equal(engine_counter(r->e, EC_CM), 3);
	assert_int_equal(r->nout, 3); /* they pass, of course */
	assert_int_equal(rig_pairs(r), 1);
	ci = rig_conn(r);
	assert_int_equal(ci.learned_by, LEARNED_CM);
	assert_int_equal(ci.lqpn, 0x11);
	assert_int_equal(ci.rqpn, 0x22);
	assert_int_equal(ci.path_mtu, 1024);
	rig_forget(r);

	/* no pseudo-ACK before the responder has told its MSN and credits */
	rig_rx(r, NEAR, SEND_ONLY("000900"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000900"));
	rig_quiet(r);
	rig_rx(r, FAR, ACK_TO_NEAR, 0x900, 1);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 0x900, 1);
	rig_rx(r, NEAR, SEND_ONLY("000901"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000901"));
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, 0x901, 2);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);

	/* DREQ and DREP: nothing new is taken, what is owed is delivered */
	rig_rx(r, FAR, CM_DREP_);
	rig_rx(r, NEAR, CM_DREQ_, 0x22u);
	rig_rx(r, NEAR, CM_DREP_);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	rig_rx(r, FAR, CM_DREP_);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_DRAIN);
	rig_rx(r, FAR, ACK_TO_NEAR, 0x901, 2);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_WATCH);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].reason, REASON_DISCONNECT);
	assert_int_equal(engine_counter(r->e, EC_LOST_PACKETS), 0);
	rig_rx(r, NEAR, SEND_ONLY("000000")); /* the numbers are free */
	assert_int_equal(rig_pairs(r), 0);
	rig_destroy(r);
}

/* POOL-9: a QPN is used again. Its old custody never meets the new life, and one stray packet does
 * not end the old one. */
static void test_new_incarnation(void **state)
{
	struct rig *r = rig_held(NULL, PEER_NONE, POLICY_EARLY, RIG_MTU);

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_forget(r);
	rig_rx(r, NEAR, SEND_ONLY("600000"));
	rig_rx(r, NEAR, SEND_ONLY("600001"));
	rig_rx(r, NEAR, SEND_ONLY("600002"));
	for (int i = 0; i < 5; i++) /* not even where it begins again: something is owed */
		rig_rx(r, NEAR, SEND_ONLY("600000"));
	rig_quiet(r);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].state, LANE_HELD);
	assert_int_equal(engine_counter(r->e, EC_FOREIGN), 8);
	rig_rx(r, FAR, ACK_TO_NEAR, 6, 7); /* delivered: now it may be another incarnation */
	rig_forget(r);
	rig_rx(r, NEAR, SEND_ONLY("600000"));
	rig_rx(r, NEAR, SEND_ONLY("600001"));
	rig_pass(r, 5 * RIG_MS);
	rig_rx(r, NEAR, SEND_ONLY("600000"));
	rig_quiet(r);
	rig_pass(r, 5 * RIG_MS);
	rig_rx(r, NEAR, SEND_ONLY("600000"));
	rig_expect(r, PORT_WAN, SEND_ONLY("600000"));
	assert_int_equal(r->events[EVENT_INCARNATION], 1);
	assert_int_equal(rig_pairs(r), 0);
	assert_int_equal(engine_counter(r->e, EC_LOST_PACKETS), 0);
	rig_pass(r, 5000 * RIG_MS);
	rig_quiet(r); /* nothing of the old one is sent any more */
	rig_destroy(r);
}

static bool knows(const struct rig *r, uint32_t rqpn)
{
	for (uint32_t i = 0; i < r->e->nflows; i++)
		if (r->e->flows[i].used && r->e->flows[i].key.dqpn == rqpn)
			return true;
	return false;
}

/* The table of flows that are known in one direction is full, most of them seen more than once: one
 * of these makes room for a new one, so that those seen once have their time, too. */
static void test_half_full(void **state)
{
	struct rig *r = start(&small);
	uint32_t most = r->e->half_max, again = most / 4 * 3 + 1;

	(void)state;
	for (uint32_t i = 0; i < most; i++)
		for (uint32_t k = 0; k < (i < most - again ? 1 : 2); k++)
			rig_rx(r, NEAR, "04 40ffff 00%06x 80%06x 61*8", 0x100 + i, k);
	rig_pass(r, 200 * RIG_MS);
	rig_rx(r, NEAR, "04 40ffff 00%06x 80000000 61*8", 0x100 + most);
	assert_true(knows(r, 0x100) && knows(r, 0x100 + most));
	assert_false(knows(r, 0x100 + most - again));
	rig_destroy(r);
}

/* And one host has a quarter of it, so that another one finds places. */
static void test_half_of_host(void **state)
{
	struct engine_config cfg = small;
	struct rig *r;
	uint32_t quarter;

	(void)state;
	cfg.max_conns = 1024;
	r = start(&cfg);
	quarter = r->e->half_max / 4;
	for (uint32_t i = 0; i <= quarter; i++)
		rig_rx(r, NEAR, "04 40ffff 00%06x 80000000 61*8", 0x100 + i);
	assert_true(knows(r, 0x100 + quarter - 1));
	assert_false(knows(r, 0x100 + quarter));
	r->host[NEAR] = 2;
	rig_rx(r, NEAR, "04 40ffff 00%06x 80000000 61*8", 0x100 + quarter);
	assert_true(knows(r, 0x100 + quarter));
	rig_destroy(r);
}

/* The packets @psn of two queue pairs in step, and the ACKs of @acked. */
static void in_step(struct rig *r, const uint32_t *psn, uint32_t n, uint32_t acked)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t qpn = 0x21; qpn <= 0x22; qpn++)
			rig_rx(r, NEAR, "04 40ffff 000000%02x 80%06x 61*8", qpn, psn[i]);
	for (uint32_t qpn = 0x11; qpn <= 0x12; qpn++)
		rig_rx(r, FAR, "11 40ffff 000000%02x 00%06x 1f000000", qpn, acked);
	assert_int_equal(rig_pairs(r), 0);
	rig_forget(r);
}

/* The peer has proved a pair, and offers to agree: what else it tells is in @what. */
static void told(struct rig *r, const struct report *what)
{
	struct report offer = *what;

	offer.type = REPORT_OPEN;
	offer.offer = true;
	offer.lqpn = 0x12;
	ip_addr_parse("10.1.0.1", &offer.key.src);
	ip_addr_parse("10.2.0.1", &offer.key.dst);
	offer.key.dqpn = 0x22;
	offer.key.vlan = FRAME_VLAN_NONE;
	engine_rx_report(r->e, 0, &offer, r->now);
	assert_int_equal(pair(r).learned_by, LEARNED_PEER);
}

/* Queue pairs in step, of which the peer tells one, and what the MSN was at some PSN. If requests
 * have come in order here from just there on, the next one begins a lane, which is held at once and
 * knows its MSN. Else an ACK must tell it first. NTT-3 */
static void test_told_count(void **state)
{
	static const struct {
		uint32_t psn[6], n, told, msn; /* @msn 0: it cannot be known */
		bool not ;
	} c[] = {
		{{0, 1, 2, 3}, 4, 0, 7 + 4, false},
		{{0xfffffe, 0xffffff, 0, 1}, 4, 0xfffffe, 7 + 4, false},
		{{0, 1, 2, 3}, 4, 1, 0, false},
		{{0, 1, 2, 3}, 4, 0, 0, true},
		/* a gap, at both sides, or not seen by the peer */
		{{0, 1, 3, 4}, 4, 3, 7 + 2, false},
		{{0, 1, 3, 4}, 4, 0, 0, false},
		/* sent again */
		{{0, 1, 2, 3, 1}, 5, 1, 0, false},
		{{0, 1, 2, 3, 2, 3}, 6, 2, 7 + 2, false},
		{{0, 1, 2, 3, 2, 3}, 6, 0, 0, false},
		/* another one begins */
		{{0, 1, 2, 0, 1, 2}, 6, 0, 7 + 3, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
		uint32_t next = psn_add(c[i].psn[c[i].n - 1], 1);
		struct rig *r;

		rule.learn = LEARN_CM | LEARN_PSN;
		r = rig_create(&small, &rule);
		in_step(r, c[i].psn, c[i].n, c[i].psn[0]);
		told(r, &(struct report){.start_psn = c[i].told,
					 .start_msn = 7,
					 .path_mtu = RIG_MTU,
					 .counted = !c[i].not });
		rig_rx(r, NEAR, "04 40ffff 00000022 80%06x 61*8", next);
		assert_int_equal(pair(r).lane[LANE_OUT].state, c[i].msn ? LANE_HELD : LANE_WATCH);
		assert_int_equal(r->nrep, c[i].msn ? 1 : 0);
		if (c[i].msn) {
			assert_int_equal(r->rep[0].start_psn, next);
			assert_int_equal(r->rep[0].start_msn, c[i].msn);
		}
		rig_destroy(r);
	}
}

/* How many PSNs a READ takes is not known without the path MTU, nor whether what follows is the
 * rest of it, asked again. */
static void test_told_count_of_reads(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 0);
	struct rig *r;

	(void)state;
	rule.learn = LEARN_CM | LEARN_PSN;
	r = rig_create(&small, &rule);
	in_step(r, (uint32_t[]){0, 1}, 2, 0);
	rig_rx(r, NEAR, "0c 40ffff 00000022 80000002 00*8 00000007 00002000");
	rig_rx(r, NEAR, "0c 40ffff 00000022 80000004 00*8 00000007 00000100");
	told(r, &(struct report){.counted = true});
	rig_rx(r, NEAR, "04 40ffff 00000022 80000005 61*8");
	assert_int_equal(pair(r).lane[LANE_OUT].state, LANE_WATCH);
	rig_destroy(r);
}

#define WRITE_ONLY(ackreq) "0a 40ffff 000000%02x " #ackreq "%06x 00*8 00000007 00000008 61*8"

/* The near host says that it has all before @end as soon as a request comes to it, or a copy. */
static void answer(struct rig *r, uint32_t end)
{
	while (r->at < r->nout) {
		const uint8_t *bth = r->out[r->at++].data + RIG_BTH;

		if (bth[0] == 0x0a)
			rig_rx(r, NEAR, "11 40ffff 000000%02x 00%06x 1f%06x", bth[7] + 0x10,
			       end - 1, 7 + end);
	}
}

/* Near the responder it is proved which of two in step belong together. The peer is told so, and
 * the MSN where their requests began, if that is known: what has passed before the proof tells it
 * only where all is acknowledged. */
static void tells_count(uint32_t acked)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r;

	rule.learn = LEARN_CM | LEARN_PSN;
	r = rig_create(&small, &rule);
	engine_peer_features(r->e, 0, PEER_FEATURE_SEAL | PEER_FEATURE_OFFER);
	r->native = true;
	for (uint32_t psn = 0; psn < 4; psn++) {
		for (uint32_t qpn = 0x11; qpn <= 0x12; qpn++)
			rig_rx(r, FAR, WRITE_ONLY(80), qpn, psn);
		answer(r, psn < acked ? psn + 1 : acked);
	}
	for (int i = 0; i < 1000 && r->nrep < 2; i++) {
		engine_tick(r->e, r->now += 10000);
		answer(r, acked);
	}
	assert_int_equal(r->nrep, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(r->rep[i].offer);
		assert_int_equal(r->rep[i].lqpn, r->rep[i].key.dqpn + 0x10);
		assert_int_equal(r->rep[i].counted, acked == 4);
		assert_int_equal(r->rep[i].start_psn, 0);
		assert_int_equal(r->rep[i].start_msn, acked == 4 ? 7 : 0);
	}
	rig_destroy(r);
}

static void test_tells_count(void **state)
{
	(void)state;
	tells_count(4);
	tells_count(3);
}

/* A WRITE asks for no ACK, and the next one has begun: the answer to its first copy names a packet
 * that has asked for none either. It is of the pattern like those to the others. */
static void test_first_copy_counts(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r;

	(void)state;
	rule.learn = LEARN_CM | LEARN_PSN;
	r = rig_create(&small, &rule);
	engine_peer_features(r->e, 0, PEER_FEATURE_SEAL | PEER_FEATURE_OFFER);
	r->native = true;
	for (uint32_t psn = 0; psn < 3; psn++)
		for (uint32_t qpn = 0x11; qpn <= 0x12; qpn++)
			rig_rx(r, FAR, WRITE_ONLY(00), qpn, psn);
	for (uint32_t qpn = 0x11; qpn <= 0x12; qpn++)
		rig_rx(r, NEAR, "11 40ffff 000000%02x 00000002 1f00000a", qpn + 0x10);
	for (uint32_t qpn = 0x11; qpn <= 0x12; qpn++)
		rig_rx(r, FAR, "06 40ffff 000000%02x 00000003 00*8 00000007 00000200 61*256", qpn);
	r->at = r->nout;
	for (int i = 0; i < 700 && r->nrep < 2; i++) {
		engine_tick(r->e, r->now += 10000);
		answer(r, 4);
	}
	assert_int_equal(r->nrep, 2);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remotes_kept_apart),
		cmocka_unit_test(test_same_psns),
		cmocka_unit_test(test_contradiction),
		cmocka_unit_test(test_copies_are_near),
		cmocka_unit_test(test_copies_of_whom),
		cmocka_unit_test(test_copies_are_writes),
		cmocka_unit_test(test_hint_gives_way),
		cmocka_unit_test(test_unknown_passes),
		cmocka_unit_test(test_no_rule),
		cmocka_unit_test(test_cm),
		cmocka_unit_test(test_new_incarnation),
		cmocka_unit_test(test_half_full),
		cmocka_unit_test(test_half_of_host),
		cmocka_unit_test(test_told_count),
		cmocka_unit_test(test_told_count_of_reads),
		cmocka_unit_test(test_tells_count),
		cmocka_unit_test(test_first_copy_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

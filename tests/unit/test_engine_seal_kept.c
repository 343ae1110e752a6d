// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The seal over time and processes (engine/core/seal.c): what was recorded is worth nothing in
 * another generation or another turn of the circle of PSNs; a lane that the next process takes over
 * goes on with the same key; guessed seals of all kinds of frames open nothing.
 */
#include <unistd.h>

#include "engine/core/core.h"
#include "tests/unit/seal_guess.h"
#include "wire/build.h"

#define GUESSES 300000u
#define SEND	"04 40ffff 00000011 80%06x 61*8"
#define LARGE	"04 40ffff 00000011 80%06x 61*1024"

static struct engine_config cfg = {.pool_bytes = 4 << 20, .max_conns = 16, .seed = 1};
static char path[64];

static struct rule sealing(void)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, 1024);

	rule.seal = true;
	return rule;
}

static struct lane *lane_in(struct rig *r)
{
	struct frame f;
	uint8_t data[FRAME_MAX];

	uint32_t len = rig_build(r, data, FAR, "04 40ffff 00000011 80000000 61*8");

	assert_int_equal(frame_parse(data, len, &f), FRAME_OK);
	return &flow_find(r->e, &f)->lane;
}

/* The opener asks for a lane from @psn on, in generation @gen. */
static void opened(struct rig *r, uint32_t psn, uint32_t gen)
{
	struct report open = rig_open(psn, 5, 1024);

	open.gen = gen;
	open.resume = gen > 3;
	open.sealed = true;
	open.seal_key[0] = gen;
	open.seal_key[1] = ~0ull - gen;
	engine_rx_report(r->e, 0, &open, r->now);
	engine_tick(r->e, r->now);
	assert_true(lane_in(r)->sealed);
	assert_int_equal(lane_in(r)->gen, gen);
}

/* An appliance near the responder, with a sealed lane from @psn on. */
static struct rig *accepting(uint32_t psn)
{
	struct rule rule = sealing();
	struct rig *r = rig_create(&cfg, &rule);

	rig_learn(r, 0);
	opened(r, psn, 3);
	rig_pass(r, 2000 * RIG_MS);
	rig_forget(r);
	return r;
}

/* What @r's peer sends now of the lane. */
static uint32_t recorded(struct rig *r, uint8_t *frame, const char *fmt, uint32_t psn)
{
	char text[1024];
	uint32_t len;

	snprintf(text, sizeof(text), fmt, psn);
	len = rig_build(r, frame, FAR, text);
	sealed_by_peer(r->e, frame, len, false, false);
	return len;
}

/* Whether the responder gets it. What has a wrong seal passes with a wrong ICRC. */
static bool taken(struct rig *r, const uint8_t *frame, uint32_t len)
{
	uint8_t copy[FRAME_MAX];
	uint32_t epsn = lane_in(r)->epsn.psn.v;

	memcpy(copy, frame, len);
	engine_rx(r->e, PORT_WAN, copy, len, r->now);
	engine_tick(r->e, r->now);
	rig_check(r);
	for (; r->at < r->nout; r->at++) {
		struct frame f;

		assert_int_equal(frame_parse(r->out[r->at].data, len, &f), FRAME_OK);
		assert_int_equal(icrc_ok(&f), lane_in(r)->epsn.psn.v != epsn);
	}
	rig_forget(r);
	return lane_in(r)->epsn.psn.v != epsn;
}

/* ENG-19: what was recorded is not taken one turn of the circle later; what is sealed then is. */
static void test_recorded_turn(void **state)
{
	uint8_t frame[FRAME_MAX];
	struct rig *r;
	uint32_t len;

	(void)state;
	for (int large = 0; large < 2; large++) {
		r = accepting(5);
		len = recorded(r, frame, large ? LARGE : SEND, 5);
		lane_in(r)->seal.turns++; /* after 2^24 PSNs all other marks are the same */
		assert_false(taken(r, frame, len));
		assert_int_equal(engine_counter(r->e, EC_SEAL_WRONG), 1);
		len = recorded(r, frame, large ? LARGE : SEND, 5);
		assert_true(taken(r, frame, len));
		rig_destroy(r);
	}
}

/* ENG-19: nor in the next generation, which has another key. */
static void test_recorded_generation(void **state)
{
	struct rig *r = accepting(5);
	uint8_t frame[FRAME_MAX];
	uint32_t len = recorded(r, frame, SEND, 5);

	(void)state;
	engine_peer_event(r->e, 0, PEER_RESTARTED, r->now);
	engine_tick(r->e, r->now);
	opened(r, 5, 4);
	rig_forget(r);
	assert_false(taken(r, frame, len));
	assert_int_equal(engine_counter(r->e, EC_SEAL_WRONG), 1);
	len = recorded(r, frame, SEND, 5);
	assert_true(taken(r, frame, len));
	rig_destroy(r);
}

static void guesses(struct rig *r, const char *text)
{
	uint8_t frame[FRAME_MAX];

	seal_guess(r, text, GUESSES, rig_build(r, frame, FAR, text));
}

static void test_guesses_of_all_kinds(void **state)
{
	struct rule rule = sealing();
	struct rig *r = accepting(5);

	(void)state;
	guesses(r, "04 40ffff 00000011 80000005 61*1024"); /* opened while it is copied */
	guesses(r, "04 40ffff 00000011 80000009 61*8");	   /* ahead of its turn */
	guesses(r, "0c 40ffff 00000011 80000005 00*8 00000007 00000800"); /* a READ */
	rig_rx(r, FAR, SEND, 5u);
	rig_expect(r, PORT_LAN, SEND, 5u);
	rig_destroy(r);

	r = rig_create(&cfg, &rule);
	rig_learn(r, 0);
	rig_rx(r, NEAR, "0c 40ffff 00000022 80000005 00*8 00000007 00000400");
	r->open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_progress(r, 5, 5, 5);
	rig_forget(r);
	guesses(r, "10 40ffff 00000011 00000005 1f000006 62*1024"); /* the answer */
	guesses(r, "10 40ffff 00000011 00000005 1f000006 62*64");
	guesses(r, "11 40ffff 00000011 00000005 63000006"); /* a NAK */
	rig_rx(r, FAR, "10 40ffff 00000011 00000005 1f000006 62*1024");
	rig_expect(r, PORT_LAN, "10 40ffff 00000011 00000005 1f000006 62*1024");
	rig_destroy(r);
}

/* The next process takes over what is in the file. */
static void next_process(struct rig *r)
{
	struct engine_sink sink = {
		.ctx = r, .tx = rig_sink_tx, .report = rig_sink_report, .event = rig_sink_event};
	struct rule rule = sealing();
	const char *why = NULL;

	engine_tick(r->e, r->now);
	engine_destroy(r->e);
	r->e = engine_adopt(cfg.file, &cfg, &sink, r->now, &why);
	assert_string_equal(why ? why : "", "");
	engine_rules(r->e, &rule, 1, r->now);
	engine_peer_features(r->e, 0, PEER_FEATURE_SEAL);
	engine_go_on(r->e, r->now);
	engine_tick(r->e, r->now);
	rig_check(r);
	rig_forget(r);
}

static void file_begin(void)
{
	snprintf(path, sizeof(path), "/tmp/test_engine_seal_kept.XXXXXX");
	cfg.file = mkstemp(path);
	assert_true(cfg.file >= 0);
}

static void file_end(void)
{
	close(cfg.file);
	cfg.file = 0;
	unlink(path);
}

/* ENG-19: what the opener had sealed under way opens in the next process, after PSNs came round. */
static void test_adopted_acceptor(void **state)
{
	uint8_t frame[FRAME_MAX], large[FRAME_MAX];
	uint32_t len, large_len;
	struct rig *r;

	(void)state;
	file_begin();
	r = accepting(0xfffffe);
	for (uint32_t psn = 0xfffffe; psn != 2; psn = psn_add(psn, 1))
		rig_rx(r, FAR, SEND, psn);
	rig_rx(r, NEAR, "11 40ffff 00000022 00000001 1f000009");
	assert_int_equal(lane_in(r)->seal.turns, 1);
	len = recorded(r, frame, SEND, 2);
	large_len = recorded(r, large, LARGE, 3);
	next_process(r);
	assert_int_equal(lane_in(r)->seal.turns, 1);
	assert_true(taken(r, frame, len));
	assert_true(taken(r, large, large_len));
	assert_int_equal(engine_counter(r->e, EC_SEAL_WRONG), 0);
	rig_destroy(r);
	file_end();
}

/* ENG-19: an opener seals what it repeats as the former process did, and what is new likewise. */
static void test_adopted_opener(void **state)
{
	struct rule rule = sealing();
	struct rig_frame *f;
	uint32_t seal;
	struct rig *r;

	(void)state;
	file_begin();
	r = rig_create(&cfg, &rule);
	rig_learn(r, 0);
	rig_rx(r, NEAR, SEND_ONLY("000005"));
	r->open = r->rep[0];
	rig_answer(r, REPORT_ACCEPT, REASON_NONE);
	rig_progress(r, 5, 5, 5);
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	seal = r->out[0].seal;
	assert_int_not_equal(seal, 0);
	next_process(r);
	rig_pass(r, 3000 * RIG_MS);
	f = rig_sent(r, PORT_WAN);
	assert_int_equal(get_be24(f->data + RIG_BTH + 9), 5);
	assert_int_equal(f->seal, seal);
	rig_forget(r);
	rig_rx(r, NEAR, SEND_ONLY("000007"));
	assert_int_not_equal(rig_sent(r, PORT_WAN)->seal, 0);
	assert_true(rig_conn(r).lane[LANE_OUT].sealed);
	rig_destroy(r);
	file_end();
}

/* The PSN of a frame is found behind every kind of headers that there is. */
static void test_headers(void **state)
{
	static const char *const from[] = {"10.1.0.1", "2001:db8:1::1"}, *const to[] = {
										 "10.2.0.1",
										 "2001:db8:2::1"};
	static const uint8_t mac[6] = {2};
	static struct engine e;
	struct lane l = {.sealed = true, .role = ROLE_OPENER, .seal = {.key = {1, 2}, .from = {3}}};
	uint8_t data[FRAME_MAX];
	struct template t;
	struct build_spec b = {.t = &t, .opcode = OP_SEND_ONLY, .dqpn = 0x22};
	struct ip_addr a, z;

	(void)state;
	for (int i = 0; i < 4; i++) {
		ip_addr_parse(from[i & 1], &a);
		ip_addr_parse(to[i & 1], &z);
		template_make(&t, mac, mac, i & 2 ? 100 : FRAME_VLAN_NONE, &a, &z, 0xc001);
		for (b.psn = 2; b.psn < 10; b.psn++) {
			build_packet(data, &b);
			l.role = ROLE_OPENER;
			assert_int_equal(seal_of(&e, &l, data),
					 seal_tag(&e, &l, false, (struct wire_psn){b.psn}));
			l.role = ROLE_ACCEPTOR;
			assert_int_equal(seal_of(&e, &l, data),
					 seal_tag(&e, &l, true, (struct wire_psn){b.psn}));
			assert_int_equal(!!seal_of(&e, &l, data), b.psn >= 3);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_turn),
		cmocka_unit_test(test_recorded_generation),
		cmocka_unit_test(test_guesses_of_all_kinds),
		cmocka_unit_test(test_adopted_acceptor),
		cmocka_unit_test(test_adopted_opener),
		cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests_name("engine, seal kept", tests, NULL, NULL);
}

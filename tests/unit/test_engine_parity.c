// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pushes and their parity, packet by packet: the near host is a storage target, the far one the
 * initiator, whose data the peer sends ahead of the target's READ.
 */
#include "tests/unit/engine_rig.h"

#include <unistd.h>

#include "daemon/event_log.h"
#include "engine/announce/announce.h"
#include "host/log.h"
#include "wire/crc32.h"

#define VA	0x1000u
#define PACKETS 16u
#define LENGTH	(PACKETS * RIG_MTU)

struct storage {
	struct rig *r;
	struct report open;	      /* of the lane of commands */
	uint32_t psn, own, msn, resp; /* next of the initiator's, of the target's; MSNs */
	uint32_t gen;
	uint64_t key[2];
};

/* The initiator tells its target to fetch @length bytes: command @id. */
static void tell(struct storage *s, unsigned int id, uint32_t length)
{
	rig_forget(s->r);
	rig_rx(s->r, FAR,
	       "04 40ffff 00000011 80%06x | 01 40 %02x 00 00*20 | 00 10 00*6 | %02x%02x00 | "
	       "07000000 | 40 00*24",
	       s->psn, id, length & 0xff, length >> 8);
	rig_rx(s->r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", s->psn++, ++s->msn);
}

/* The target READs. */
static void fetch(struct storage *s, uint32_t length)
{
	rig_forget(s->r);
	rig_rx(s->r, NEAR, "0c 40ffff 00000022 80%06x | 00*4 %08x 00000007 %08x", s->own, VA,
	       length);
}

/* The target has done command @id. */
static void done(struct storage *s, unsigned int id)
{
	rig_rx(s->r, NEAR, "04 40ffff 00000022 80%06x | 00*12 %02x 00 0000", s->own++, id);
	s->resp++;
	rig_progress(s->r, s->own, s->own, s->resp);
}

/* Commands tell what is READ. @mtu: 0 when no path MTU is known where the target's lane begins. */
static struct storage proven(enum ack_policy policy, uint16_t mtu)
{
	static const struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, policy, mtu);
	struct storage s = {.r = rig_held(&cfg, 0, policy, mtu),
			    .open = {.type = REPORT_OPEN,
				     .lane = 77,
				     .gen = 3,
				     .lqpn = 0x22,
				     .start_psn = 0x100,
				     .path_mtu = RIG_MTU},
			    .psn = 0x100,
			    .own = 6,
			    .resp = 6};

	rule.announce = ANNOUNCE_MODE_NVME;
	engine_rules(s.r->e, &rule, 1, s.r->now);
	engine_peer_features(s.r->e, 0,
			     PEER_FEATURE_SEAL | PEER_FEATURE_ANNOUNCE | PEER_FEATURE_PARITY);
	ip_addr_parse("10.2.0.1", &s.open.key.src);
	ip_addr_parse("10.1.0.1", &s.open.key.dst);
	s.open.key.dqpn = 0x11;
	s.open.key.vlan = FRAME_VLAN_NONE;
	engine_rx_report(s.r->e, 0, &s.open, s.r->now);
	engine_tick(s.r->e, s.r->now);
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].state, LANE_HELD);
	for (unsigned int id = 0; id < 4; id++) {
		tell(&s, id, RIG_MTU);
		fetch(&s, RIG_MTU);
		rig_progress(s.r, s.own + 1, s.own, s.resp);
		rig_rx(s.r, FAR, "10 40ffff 00000011 00%06x | 1f %06x | 61*%u", s.own, s.resp + 1,
		       RIG_MTU);
		s.own++;
		s.resp++;
		rig_forget(s.r);
		done(&s, id);
	}
	for (unsigned int i = 0; i < s.r->nrep; i++)
		if (s.r->rep[i].type == REPORT_RESP && s.r->rep[i].announce) {
			s.gen = s.r->rep[i].gen;
			memcpy(s.key, s.r->rep[i].announce_key, sizeof(s.key));
		}
	return s;
}

/* And the peer has been told that we know it. */
static struct storage begin_with(enum ack_policy policy)
{
	struct storage s = proven(policy, RIG_MTU);

	assert_int_not_equal(s.key[0], 0);
	return s;
}

static struct storage begin(void)
{
	return begin_with(POLICY_EARLY);
}

/* What the log says of the latest event, which ends with @text. */
static void logged(const struct rig *r, const char *text)
{
	struct view_source src = {.shards = shards_over(r->e)};
	struct event_log l = {.tokens = 1};
	FILE *f = tmpfile();
	int err = dup(2);
	char line[512];
	size_t n;

	assert_true(f && err >= 0 && dup2(fileno(f), 2) == 2);
	log_init(LOG_INFO);
	event_log_write(&l, &src, &r->last, r->now);
	shards_destroy(src.shards);
	dup2(err, 2);
	close(err);
	rewind(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	n = strlen(line) - 1; /* the end of the line */
	assert_true(n > strlen(text));
	assert_memory_equal(line + n - strlen(text), text, strlen(text));
}

/* It is told when READs ahead begin, and when and why they end. */
static void test_told(void **state)
{
	struct storage s = begin();
	const struct announce_info *a;
	struct conn_info ci;

	(void)state;
	assert_int_equal(s.r->events[EVENT_ANNOUNCE], 1);
	ci = rig_conn(s.r);
	a = &ci.lane[LANE_OUT].announce;
	assert_string_equal(a->phase, "on");
	assert_null(a->why);
	assert_null(ci.lane[LANE_IN].announce.why);
	logged(s.r, "lane out announce on");
	tell(&s, 4, RIG_MTU);
	rig_rx(s.r, NEAR, "0c 40ffff 00000022 80%06x | 00*4 %08x 00000007 %08x", s.own, VA - 1,
	       RIG_MTU);
	assert_int_equal(s.r->events[EVENT_ANNOUNCE], 2);
	ci = rig_conn(s.r);
	assert_string_equal(a->phase, "off");
	assert_string_equal(a->why, "the target READ what no command named");
	logged(s.r, "lane out announce off: the target READ what no command named");
	rig_destroy(s.r);
}

/* The peer answers, and says nothing of the lane. Such a lane cannot be agreed on anew, for only
 * the peer knows the initiator's numbers; and where it has lost the lane, what said so may be lost,
 * too. So it is asked, by the answers that are here, and a peer without that lane says so. */
static void test_deaf(void **state)
{
	struct storage s = begin();
	struct report gone = s.r->open;
	unsigned int asked = 0;

	(void)state;
	rig_rx(s.r, NEAR, "04 40ffff 00000022 80%06x | 00*12 09 00 0000", s.own++);
	rig_pass(s.r, 9000 * RIG_MS);
	rig_forget(s.r);
	rig_pass(s.r, 6000 * RIG_MS);
	for (unsigned int i = 0; i < s.r->nrep; i++)
		asked += s.r->rep[i].type == REPORT_RESP;
	assert_true(asked > 0);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].state, LANE_HELD);
	gone.type = REPORT_CLOSE;
	engine_rx_report(s.r->e, 0, &gone, s.r->now);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].state, LANE_FAULT);
	rig_destroy(s.r);
}

/* And why they have not begun. */
static void test_why_not(void **state)
{
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct rig *r = rig_held(NULL, 0, POLICY_EARLY, RIG_MTU);

	(void)state;
	assert_null(rig_conn(r).lane[LANE_OUT].announce.why);
	assert_int_equal(r->last.type, EVENT_HELD);
	rule.announce = ANNOUNCE_MODE_AUTO;
	engine_rules(r->e, &rule, 1, r->now);
	assert_string_equal(rig_conn(r).lane[LANE_OUT].announce.why, "the peer does not know it");
	engine_peer_features(r->e, 0, PEER_FEATURE_SEAL | PEER_FEATURE_ANNOUNCE);
	assert_string_equal(rig_conn(r).lane[LANE_OUT].announce.why, "no command seen");
	logged(r, "; announce not yet: no command seen");
	rig_destroy(r);
}

/* The lane of the target's READs began when no path MTU was known. The peer may not know one: a
 * long READ may have to pass yet, and the lane must not bind its connection to the appliances. */
static void test_not_without_mtu(void **state)
{
	struct storage s = proven(POLICY_EARLY, 0);

	(void)state;
	assert_string_equal(rig_conn(s.r).lane[LANE_OUT].announce.phase, "proven");
	assert_int_equal(s.key[0], 0);
	rig_destroy(s.r);
}

static uint8_t byte_of(uint32_t i)
{
	return (uint8_t)(0x21 + 5 * i);
}

/* The tag of what has the first 8 bytes @hdr and RIG_MTU times @byte; @proof: of parity. */
static uint64_t tag(const struct storage *s, uint64_t hdr, uint8_t byte, const uint64_t *proof)
{
	uint8_t data[RIG_MTU];
	uint64_t m[3] = {hdr};

	memset(data, byte, sizeof(data));
	m[1] = (uint64_t)s->gen << 32 | crc32_update(CRC32_INIT, data, sizeof(data));
	if (proof)
		m[2] = *proof;
	return keyed_hash(s->key, m, proof ? 3 : 2);
}

static uint64_t header(const struct storage *s, uint32_t i)
{
	return (uint64_t)(s->psn - 1) << 40 | (uint64_t)i << 16 | PACKETS;
}

static void push_as(struct storage *s, uint64_t h, uint32_t i)
{
	rig_rx(s->r, FAR, "d0 40ffff 00000011 00%06x | %016llx %016llx | %02x*%u", i,
	       (unsigned long long)h, (unsigned long long)tag(s, h, byte_of(i), NULL), byte_of(i),
	       RIG_MTU);
}

static void push(struct storage *s, uint32_t i)
{
	push_as(s, header(s, i), i);
}

/* 2^@n times each byte of @v, in GF(2^8) with 0x11d. */
static uint64_t times(uint64_t v, uint32_t n)
{
	while (n--)
		v = (v & 0x7f7f7f7f7f7f7f7f) << 1 ^ (v >> 7 & 0x0101010101010101) * 0x1d;
	return v;
}

/* The parity of all packets of the latest command, of row @row, but that @twist is added to its
 * data, and @bend to the tags of the packets. @forge is added to its own tag. */
static void parity_row(struct storage *s, uint32_t row, uint8_t twist, uint64_t bend,
		       uint64_t forge)
{
	uint64_t h = header(s, row << 14), tags = bend;
	uint8_t byte = twist;

	for (uint32_t i = 0; i < PACKETS; i++) {
		byte ^= (uint8_t)times(byte_of(i), i * row);
		tags ^= times(tag(s, header(s, i), byte_of(i), NULL), i * row);
	}
	rig_rx(s->r, FAR, "d1 40ffff 00000011 00%06x | %016llx %016llx %016llx | %02x*%u", 0,
	       (unsigned long long)h, (unsigned long long)(tag(s, h, byte, &tags) ^ forge),
	       (unsigned long long)tags, byte, RIG_MTU);
}

static void parity(struct storage *s, uint8_t twist, uint64_t bend, uint64_t forge)
{
	parity_row(s, 0, twist, bend, forge);
}

/* The target got packets [@from, @end) of the answer to its READ, and what stands in them is right;
 * and no more. */
static void got(struct storage *s, uint32_t from, uint32_t end)
{
	for (; s->r->at < s->r->nout; s->r->at++) {
		const struct rig_frame *f = &s->r->out[s->r->at];
		struct frame g;

		if (f->port != PORT_LAN)
			continue;
		assert_int_equal(frame_parse(f->data, f->len, &g), FRAME_OK);
		if (!(g.op->flags & OPF_READ))
			continue;
		assert_true(icrc_ok(&g));
		assert_int_equal(g.psn, s->own + from);
		assert_int_equal(g.payload_len, RIG_MTU);
		for (uint32_t i = 0; i < RIG_MTU; i++)
			assert_int_equal(f->data[g.payload + i], byte_of(from));
		from++;
	}
	assert_int_equal(from, end);
}

/* A command, of which the packets @a, @b and @d are lost (PACKETS: none). */
static void lose_three(struct storage *s, uint32_t a, uint32_t b, uint32_t d)
{
	tell(s, 5, LENGTH);
	fetch(s, LENGTH);
	for (uint32_t i = 0; i < PACKETS; i++)
		if (i != a && i != b && i != d)
			push(s, i);
	got(s, 0, a);
}

static void lose(struct storage *s, uint32_t a, uint32_t b)
{
	lose_three(s, a, b, PACKETS);
}

/* What is missing is made of the others, wherever it stands. */
static void test_repaired(void **state)
{
	static const uint32_t which[] = {0, 3, PACKETS - 1};

	(void)state;
	for (size_t i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
		struct storage s = begin();

		lose(&s, which[i], PACKETS);
		parity(&s, 0, 0, 0);
		got(&s, which[i], PACKETS);
		assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.repaired, 1);
		assert_int_equal(engine_counter(s.r->e, EC_PUSH_DROPPED), 0);
		rig_destroy(s.r);
	}
}

/* What is made must have the tag that the peer gave it. Parity of other data, or of other packets,
 * has a right tag of its own, and no byte of it is believed. */
static void test_not_proven(void **state)
{
	struct storage s = begin();

	(void)state;
	lose(&s, 3, PACKETS);
	parity(&s, 1, 0, 0);
	parity(&s, 0, 1, 0);
	parity(&s, 0, 0, 1); /* a stranger's, who has seen the rest */
	assert_int_equal(engine_counter(s.r->e, EC_PUSH_DROPPED), 3);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.repaired, 0);
	parity(&s, 0, 0, 0);
	got(&s, 3, PACKETS);
	rig_destroy(s.r);
}

/* As many are made as there are frames, whichever those are, and the last packet, too. */
static void test_rows(void **state)
{
	struct storage s = begin();

	(void)state;
	lose(&s, 3, 9);
	parity_row(&s, 2, 0, 0, 0);
	parity_row(&s, 2, 0, 0, 0);
	got(&s, 3, 3);
	parity_row(&s, 1, 0, 0, 0);
	got(&s, 3, PACKETS);
	rig_destroy(s.r);
	s = begin();
	lose_three(&s, 0, 1, PACKETS - 1);
	for (uint32_t row = 0; row < 3; row++) {
		got(&s, 0, 0);
		parity_row(&s, row, 0, 0, 0);
	}
	got(&s, 0, PACKETS);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.repaired, 3);
	assert_int_equal(engine_counter(s.r->e, EC_PUSH_DROPPED), 0);
	rig_destroy(s.r);
}

/* One frame of two is wrong: neither packet is believed. There is no fourth row. */
static void test_rows_not_proven(void **state)
{
	struct storage s = begin();

	(void)state;
	lose(&s, 3, 9);
	parity_row(&s, 3, 0, 0, 0);
	assert_int_equal(engine_counter(s.r->e, EC_PUSH_DROPPED), 1);
	parity_row(&s, 0, 0, 0, 0);
	parity_row(&s, 1, 1, 0, 0);
	assert_int_equal(engine_counter(s.r->e, EC_PUSH_DROPPED), 3);
	got(&s, 3, 3);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.repaired, 0);
	parity_row(&s, 1, 0, 0, 0);
	got(&s, 3, PACKETS);
	rig_destroy(s.r);
}

/* Of two that are missing one frame makes none; when one has come late, the other. */
static void test_two_missing(void **state)
{
	struct storage s = begin();

	(void)state;
	lose(&s, 3, 9);
	parity(&s, 0, 0, 0);
	got(&s, 3, 3);
	push(&s, 9);
	got(&s, 3, 3);
	parity(&s, 0, 0, 0);
	got(&s, 3, PACKETS);
	rig_destroy(s.r);
}

/* The peer has answered a packet itself, and then its push comes late: that is not one packet more
 * of the answer. */
static void test_answered_already(void **state)
{
	struct storage s = begin();

	(void)state;
	lose(&s, 3, 9);
	rig_rx(s.r, FAR, "0e 40ffff 00000011 00%06x | %02x*%u", s.own + 3, byte_of(3), RIG_MTU);
	got(&s, 3, 9);
	push(&s, 3);
	got(&s, 9, 9);
	push(&s, 9);
	got(&s, 9, PACKETS);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.served, PACKETS - 1);
	rig_destroy(s.r);
}

/* All is answered from what was pushed. Nothing is missing then, or the command is over, or was
 * never told. */
static void test_of_no_use(void **state)
{
	struct storage s = begin();

	(void)state;
	lose(&s, PACKETS, PACKETS);
	parity(&s, 0, 0, 0);
	got(&s, PACKETS, PACKETS);
	s.own += PACKETS;
	s.resp++;
	rig_progress(s.r, s.own, s.own, s.resp);
	done(&s, 5);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.served, PACKETS);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.unused, 0);
	rig_forget(s.r);
	parity(&s, 0, 0, 0);
	s.psn += 7;
	parity(&s, 0, 0, 0);
	got(&s, 0, 0);
	assert_int_equal(rig_conn(s.r).lane[LANE_OUT].announce.repaired, 0);
	rig_destroy(s.r);
}

/* A push of a command that is over, or that has another number of packets, is of no use. */
static void test_push_of_others(void **state)
{
	struct storage s = begin();

	(void)state;
	tell(&s, 5, LENGTH);
	fetch(&s, LENGTH);
	push(&s, 0);
	push_as(&s, header(&s, 1) - (1ull << 40), 1);
	push_as(&s, header(&s, 1) + 1, 1);
	got(&s, 0, 1);
	assert_int_equal(engine_counter(s.r->e, EC_PUSH_DROPPED), 0);
	push(&s, 1);
	got(&s, 1, 2);
	rig_destroy(s.r);
}

/* What is pushed answers READs of the command's memory only: it is no response to a FLUSH of it. */
static void test_flush_not_served(void **state)
{
	struct storage s = begin();

	(void)state;
	tell(&s, 5, LENGTH);
	rig_forget(s.r);
	rig_rx(s.r, NEAR, "1c 40ffff 00000022 80%06x | 00*4 | 00*4 %08x 00000007 %08x", s.own, VA,
	       RIG_MTU);
	push(&s, 0);
	got(&s, 0, 0);
	rig_destroy(s.r);
}

/* How many answers to READs the target was sent. */
static unsigned int answers(const struct rig *r)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->nout; i++)
		n += r->out[i].port == PORT_LAN && r->out[i].data[RIG_BTH] == 0x10;
	return n;
}

/* An answer acknowledges what is before it. Where the initiator's appliance may have made it that
 * must be true already, also for an answer that finds no memory, and goes on at once or not at
 * all. */
static void test_answer_before_ack(void **state)
{
	struct storage s = begin_with(POLICY_HONEST);
	struct rig *r = s.r;

	(void)state;
	rig_pass(r, 30000 * RIG_MS); /* answers that were kept are forgotten */
	tell(&s, 5, RIG_MTU);
	rig_rx(r, NEAR, "04 40ffff 00000022 80%06x | 61*8", s.own++);
	fetch(&s, RIG_MTU);
	while (pool_page_get_first(r->e->pool, POOL_TRANSIT) != POOL_NONE)
		;
	for (unsigned int i = 0; i < 2; i++) {
		struct report p = r->open;
		uint8_t data[FRAME_MAX];
		char text[128];

		rig_forget(r);
		snprintf(text, sizeof(text), "10 40ffff 00000011 00%06x | 1f %06x | 61*%u", s.own,
			 s.resp + 2, RIG_MTU);
		engine_rx(r->e, PORT_WAN, data, rig_build(r, data, FAR, text), r->now);
		engine_tick(r->e, r->now);
		assert_int_equal(answers(r), i);
		p.type = REPORT_PROGRESS; /* of the SEND */
		p.seq = ++r->seq;
		p.cum = p.hi = s.own + 1;
		p.room = s.own + 100;
		p.una = s.own;
		p.una_msn = s.resp + 1;
		p.una_ackable = true;
		p.credit = 0x1f;
		engine_rx_report(r->e, 0, &p, r->now);
		engine_tick(r->e, r->now);
	}
	rig_destroy(r);
}

/* While packets of the target get lost its READ goes twice, and both are paid for. */
static void test_twice_paid(void **state)
{
	struct engine_config cfg = {.wan_rate = 12500000, .wan_burst = 1 << 20};
	struct storage s = begin();
	unsigned int sent = 0, bytes = 0;
	struct flow *fl;
	int64_t tokens;

	(void)state;
	tell(&s, 5, RIG_MTU);
	fl = flow_ref(s.r->e, lane_index(s.r->open.lane));
	link_lost(s.r->e, &fl->lane, &fl->lane.held, 1, &(struct report){0});
	engine_limits(s.r->e, &cfg, s.r->now);
	tokens = s.r->e->tokens;
	fetch(&s, RIG_MTU);
	for (unsigned int i = 0; i < s.r->nout; i++)
		if (s.r->out[i].port == PORT_WAN)
			sent++, bytes += s.r->out[i].len;
	assert_int_equal(sent, 2);
	assert_int_equal(tokens - s.r->e->tokens, bytes);
	rig_destroy(s.r);
}

/* The peer says where it is, and nothing (@announced: or that it knows of READs ahead, and that no
 * numbers differ) of READs ahead. */
static void heard(struct storage *s, bool announced)
{
	struct report p = s->r->open;

	p.type = REPORT_PROGRESS;
	p.seq = ++s->r->seq;
	p.cum = p.hi = p.una = s->own;
	p.una_msn = s->resp;
	p.una_ackable = true;
	p.room = s->own + 100;
	p.credit = 0x1f;
	p.announced = announced;
	p.resp_seq = 1000;
	engine_rx_report(s->r->e, 0, &p, s->r->now);
	engine_tick(s->r->e, s->r->now);
}

/* READs ahead have ended. The connection needs the appliances until the peer has said since that no
 * numbers differ any more, and some seconds longer. */
static void test_settles_when_told(void **state)
{
	struct storage s = begin();
	const struct lane *l = &flow_ref(s.r->e, lane_index(s.r->open.lane))->lane;

	(void)state;
	heard(&s, true);
	rig_pass(s.r, 5000 * RIG_MS);
	fetch(&s, RIG_MTU); /* of no command */
	s.own++;
	s.resp++;
	heard(&s, false);
	rig_pass(s.r, 5000 * RIG_MS);
	assert_true(l->renumbered);
	heard(&s, true);
	rig_pass(s.r, 5000 * RIG_MS);
	assert_false(l->renumbered);
	rig_destroy(s.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_why_not),
		cmocka_unit_test(test_not_without_mtu),
		cmocka_unit_test(test_deaf),
		cmocka_unit_test(test_repaired),
		cmocka_unit_test(test_not_proven),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_rows_not_proven),
		cmocka_unit_test(test_two_missing),
		cmocka_unit_test(test_answered_already),
		cmocka_unit_test(test_of_no_use),
		cmocka_unit_test(test_push_of_others),
		cmocka_unit_test(test_flush_not_served),
		cmocka_unit_test(test_answer_before_ack),
		cmocka_unit_test(test_twice_paid),
		cmocka_unit_test(test_settles_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

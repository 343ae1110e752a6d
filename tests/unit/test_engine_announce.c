// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * READs ahead for storage commands, packet by packet: the near host is an initiator, the far one
 * its target, whose READs the peer opens a lane for.
 */
#include <unistd.h>

#include "tests/unit/no_records.h"
#include "tests/unit/storage_rig.h"

/* From four commands on it is known what the target READs, and the peer agrees. */
static void prove(struct storage *s)
{
	for (unsigned int id = 0; id < 4; id++) {
		tell(s, id);
		assert_true(give(s, fetch(s, VA)));
		done(s, id);
	}
	answers(s, s->psn);
}

/* It is told once when READs ahead begin. */
static void test_begin_told(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);

	(void)state;
	prove(&s);
	for (unsigned int id = 4; id < 6; id++) {
		assert_int_equal(s.r->events[EVENT_ANNOUNCE], id > 4);
		tell(&s, id);
		assert_true(give(&s, asked(&s)));
	}
	assert_int_equal(s.r->events[EVENT_ANNOUNCE], 1);
	assert_string_equal(rig_conn(s.r).lane[LANE_IN].announce.phase, "on");
	rig_destroy(s.r);
}

/* Where READs of ours have gone to the initiator, too, it may not repeat an answer for the peer. So
 * one that finds no room has not come: it is not sent on, and is asked for again. */
static void test_answer_without_room(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t at = 0;

	(void)state;
	prove(&s);
	tell(&s, 4); /* and is READ ahead */
	(void)give(&s, asked(&s));
	while (give(&s, at = fetch(&s, 0x100000)))
		assert_true(s.psn < 0x10000);
	assert_int_equal(engine_counter(s.r->e, EC_NO_ROOM), 1);
	assert_false(give(&s, at));
	answers(&s, s.psn - 1);
	assert_true(give(&s, at));
	rig_destroy(s.r);
}

/* The initiator lacks a packet before a READ of ours, and says so: it gets both again at once,
 * under their PSNs. */
static void test_asked_again_at_nak(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t at;

	(void)state;
	prove(&s);
	rig_forget(s.r);
	target(&s, "04 40ffff 00000011 80%06x | 61*16", s.psn++);
	tell(&s, 4);
	at = asked(&s);
	rig_forget(s.r);
	rig_rx(s.r, NEAR, "11 40ffff 00000022 00%06x 60 %06x", psn_sub(at, 1), s.msn);
	assert_int_equal(asked(&s), at);
	rig_destroy(s.r);
}

/* An ACK under the PSN of a READ of ours says nothing of it, and an RNR NAK neither: a responder
 * answers a READ by its response. */
static void test_own_read_acknowledged(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t at;

	(void)state;
	prove(&s);
	rig_forget(s.r);
	tell(&s, 4);
	at = asked(&s);
	rig_forget(s.r);
	rig_rx(s.r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", at, psn_add(s.msn, 1));
	rig_rx(s.r, NEAR, "11 40ffff 00000022 00%06x 20 %06x", at, s.msn);
	rig_quiet(s.r);
	for (unsigned int i = 0; i < s.r->nrep; i++)
		assert_int_equal(s.r->rep[i].refusal, 0);
	assert_true(give(&s, at));
	rig_destroy(s.r);
}

/* A READ of the target ends here, behind a completion. Returns the PSN of that completion near the
 * initiator. */
static uint32_t absorb(struct storage *s)
{
	uint32_t sent = PSN_NONE;

	prove(s);
	for (unsigned int id = 4; id < 6; id++) {
		tell(s, id);
		(void)give(s, asked(s));
	}
	rig_forget(s->r);
	rig_rx(s->r, FAR, "04 40ffff 00000011 80%06x | 00*12 04 00 0000", s->psn++);
	for (unsigned int i = 0; i < s->r->nout; i++)
		if (s->r->out[i].port == PORT_LAN && s->r->out[i].data[RIG_BTH] == 0x04)
			sent = get_be24(s->r->out[i].data + RIG_BTH + 9);
	assert_int_not_equal(sent, PSN_NONE);
	rig_rx(s->r, FAR, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", s->psn++, VA,
	       READ_LEN);
	assert_int_equal(rig_conn(s->r).lane[LANE_IN].announce.absorbed, 1);
	return sent;
}

/* A READ that ends here has no number near the initiator. An ACK of what stands before it is none
 * of the READ: the target may lack its response still, and would take it for done. */
static void test_ack_before_absorbed(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t sent;
	bool told = false;

	(void)state;
	sent = absorb(&s);
	rig_rx(s.r, FAR, "04 40ffff 00000011 80%06x | 00*12 05 00 0000", s.psn);
	rig_forget(s.r);
	rig_rx(s.r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", sent, ++s.msn);
	rig_pass(s.r, 2 * RIG_MS);
	for (unsigned int i = 0; i < s.r->nrep; i++) {
		const struct report *p = &s.r->rep[i];

		if (p->type != REPORT_PROGRESS || p->lane != s.open.lane || p->una != s.psn)
			continue;
		assert_false(p->una_ackable);
		told = true;
	}
	assert_true(told);
	rig_destroy(s.r);
}

/* The answer to a READ that ended here was lost on its way: it is given again, for the initiator
 * has never seen that READ; but not before the initiator has acknowledged what stands before it,
 * as the answer does that, too. Who asks for something else under its PSN gets nothing. */
static void test_absorbed_again(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t sent = absorb(&s), psn = s.psn - 1;

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		uint32_t off = k == 1 ? 8 : 0;
		bool answered = false;

		if (k == 1)
			rig_rx(s.r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", sent, ++s.msn);
		rig_pass(s.r, 200 * RIG_MS);
		rig_forget(s.r);
		rig_rx(s.r, FAR, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", psn,
		       VA + off, READ_LEN);
		for (unsigned int i = 0; i < s.r->nout; i++) {
			const struct rig_frame *f = &s.r->out[i];

			assert_int_not_equal(f->port, PORT_LAN);
			answered |=
				f->data[RIG_BTH] == 0x10 && get_be24(f->data + RIG_BTH + 9) == psn;
		}
		assert_int_equal(answered, k == 2);
	}
	rig_destroy(s.r);
}

/* What the latest PROGRESS of the target's lane said: whether the numbers differ. */
static bool told_to_differ(struct storage *s)
{
	const struct report *latest = NULL;

	rig_pass(s->r, 20 * RIG_MS);
	for (unsigned int i = 0; i < s->r->nrep; i++)
		if (s->r->rep[i].type == REPORT_PROGRESS && s->r->rep[i].lane == s->open.lane)
			latest = &s->r->rep[i];
	assert_non_null(latest);
	assert_true(latest->announced);
	return latest->differs;
}

/* A READ of ours, a completion, and a READ that ends here: the next packet has the same number on
 * the wire and near the initiator. But the completion has not, and must not be sent by anybody who
 * does not know: the numbers differ until the initiator has acknowledged it. */
static void test_numbers_meet(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t sent = PSN_NONE;

	(void)state;
	prove(&s);
	tell(&s, 4);
	(void)give(&s, asked(&s));
	rig_forget(s.r);
	target(&s, "04 40ffff 00000011 80%06x | 00*12 09 00 0000", s.psn);
	for (unsigned int i = 0; i < s.r->nout; i++)
		if (s.r->out[i].port == PORT_LAN && s.r->out[i].data[RIG_BTH] == 0x04)
			sent = get_be24(s.r->out[i].data + RIG_BTH + 9);
	assert_int_equal(sent, s.psn++ + 1);
	target(&s, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", s.psn++, VA, READ_LEN);
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].announce.absorbed, 1);
	rig_forget(s.r);
	answers(&s, s.psn);
	assert_true(told_to_differ(&s));
	rig_rx(s.r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", sent, ++s.msn);
	assert_false(told_to_differ(&s));
	rig_destroy(s.r);
}

/* The same bytes under another key are not what the command tells: the initiator judges. */
static void test_other_key(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	uint32_t own;

	(void)state;
	prove(&s);
	tell(&s, 4);
	own = asked(&s);
	(void)give(&s, own);
	rig_forget(s.r);
	target(&s, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000008 %08x", s.psn++, VA, READ_LEN);
	assert_int_equal(asked(&s), psn_add(own, 1));
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].announce.absorbed, 0);
	rig_destroy(s.r);
}

/* Where nobody has said how many READs the initiator takes at a time it is those that the target
 * asked at once. What it asked before they were counted tells nothing of that. */
static void test_depth_seen(void **state)
{
	struct storage s = begin_deep(ANNOUNCE_MODE_NVME, 0);
	uint32_t before = fetch(&s, 0x100000), at;

	(void)state;
	tell(&s, 0);
	at = fetch(&s, VA);
	(void)give(&s, before);
	(void)give(&s, at);
	done(&s, 0);
	prove(&s);
	tell_of(&s, 9, 0, 4);
	at = asked(&s);
	s.r->at++;
	assert_int_equal(asked_if(&s), PSN_NONE);
	(void)give(&s, at);
	s.r->at = 0;
	assert_int_equal(asked(&s), psn_add(at, 1));
	rig_destroy(s.r);
}

/* No record of a READ is left when the rest of a command is to be READ: it waits, and goes on when
 * there is one, also where no answer is awaited that would bring it back. (A daemon that looks for
 * a record for ever is ended by the alarm.) */
static void test_records_used_up(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	struct rig *r = s.r;
	struct mq_list taken;
	uint32_t at;

	(void)state;
	alarm(10);
	mq_list_init(&taken);
	prove(&s);
	rig_forget(r);
	rig_rx(r, NEAR,
	       "04 40ffff 00000022 80%06x | 01 40 04 00 00*20 | 00 10 00*6 | 006400 | 07000000 | "
	       "40 00*24",
	       s.own);
	rig_progress(r, s.own + 1, s.own + 1, s.own + 1);
	at = asked(&s);
	for (unsigned int i = 0; i < 64; i++, r->at++)
		assert_int_equal(asked(&s), psn_add(at, i));
	rig_forget(r);
	for (unsigned int i = 0; i < 64; i++) {
		records_rx(r, NEAR, "10 40ffff 00000022 00%06x | 1f %06x | 61*%u", psn_add(at, i),
			   ++s.msn, READ_LEN);
		records_take(r, &taken);
		engine_tick(r->e, r->now);
	}
	assert_int_equal(asked_if(&s), PSN_NONE);
	mq_flush(r->e->reads, &taken);
	rig_check(r);
	rig_pass(r, 1000 * RIG_MS);
	assert_int_equal(asked_if(&s), psn_add(at, 64));
	alarm(0);
	rig_destroy(r);
}

/* ---- many responses at once ---- */

/* What goes to the initiator: the PSN of each response of the target, by its command. */
struct numbers {
	uint32_t of[256];
	uint32_t last; /* command whose response was the latest */
};

/* A response keeps the number that it got, and no other has it. */
static void look(struct storage *s, struct numbers *n)
{
	for (; s->r->at < s->r->nout; s->r->at++) {
		const struct rig_frame *f = &s->r->out[s->r->at];
		uint32_t psn = get_be24(f->data + RIG_BTH + 9);
		uint8_t id = f->data[RIG_BTH + 12 + 12];

		if (f->port != PORT_LAN || f->data[RIG_BTH] != 0x04)
			continue;
		if (id > n->last) {
			assert_int_equal(id, n->last + 1);
			assert_true(n->last < 4 || psn_after(psn, n->of[n->last]));
			n->of[id] = psn;
			n->last = id;
		}
		assert_int_equal(psn, n->of[id]);
	}
}

/* The target READs buffer @id, which is command @id's, and answers: two packets. */
static void answered(struct storage *s, uint8_t id)
{
	rig_rx(s->r, FAR, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", s->psn++,
	       va_of(id), READ_LEN);
	rig_rx(s->r, FAR, "04 40ffff 00000011 80%06x | 00*12 %02x 00 0000", s->psn++, id);
}

/* The initiator acknowledges all responses from that to command @from on. */
static void acknowledge(struct storage *s, const struct numbers *n, uint32_t from)
{
	s->msn += n->last + 1 - from;
	rig_rx(s->r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", n->of[n->last], s->msn);
}

/* Commands 4 and on, @many, are READ ahead, and all that the target does of them comes at once. */
static void many(struct storage *s, struct numbers *n, uint32_t many)
{
	uint32_t end = 4 + many, first;

	*n = (struct numbers){.last = 3};
	prove(s);
	for (uint32_t id = 4; id < end; id++) {
		tell_of(s, id, (uint8_t)id, 1);
		(void)give(s, asked(s));
	}
	rig_forget(s->r);
	first = s->psn++; /* is late */
	rig_rx(s->r, FAR, "04 40ffff 00000011 80%06x | 00*12 04 00 0000", s->psn++);
	for (uint32_t id = 5; id < end; id++)
		answered(s, (uint8_t)id);
	assert_int_equal(s->r->nout, 0);
	rig_rx(s->r, FAR, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", first, va_of(4),
	       READ_LEN);
	look(s, n);
}

/* Where many READs end here and nothing was acknowledged yet, more numbers differ than can be kept
 * in mind. What is behind them waits: its number would be given twice. */
static void test_many_absorbed(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	struct numbers n;

	(void)state;
	many(&s, &n, 60);
	for (uint32_t next = 4; next < 64;) {
		uint32_t sent = n.last;

		rig_pass(s.r, 25 * RIG_MS);
		look(&s, &n);
		assert_int_equal(n.last, sent);
		assert_true(sent >= next);
		acknowledge(&s, &n, next);
		next = sent + 1;
		look(&s, &n);
	}
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].una, s.psn);
	rig_destroy(s.r);
}

/* All numbers that differ are acknowledged at once, and nothing else is awaited of the initiator:
 * a command that had to wait for that is READ ahead. */
static void test_all_acknowledged(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NVME);
	struct numbers n;

	(void)state;
	many(&s, &n, 46);
	assert_int_equal(n.last, 49);
	tell_of(&s, 50, 50, 1);
	assert_int_equal(asked_if(&s), PSN_NONE);
	rig_forget(s.r);
	acknowledge(&s, &n, 4);
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].una, s.psn);
	answered(&s, 50);
	rig_pass(s.r, 100 * RIG_MS);
	(void)give(&s, asked(&s));
	s.r->at = 0;
	look(&s, &n);
	assert_int_equal(n.last, 50);
	rig_destroy(s.r);
}

/* ---- the lane ends ---- */

/* As many READs as the initiator takes at a time are asked for @n pieces of command 4, and command
 * 5 waits for its turn. Returns the PSN of the first of them. */
static uint32_t queued(struct storage *s, uint8_t n)
{
	uint32_t own;

	prove(s);
	tell_of(s, 4, 4, n);
	own = asked(s);
	tell_of(s, 5, 5, 1);
	assert_int_equal(asked_if(s), PSN_NONE);
	rig_forget(s->r);
	assert_int_equal(rig_conn(s->r).lane[LANE_IN].announce.commands, 1);
	return own;
}

static void none_to_initiator(const struct storage *s)
{
	for (unsigned int i = 0; i < s->r->nout; i++)
		assert_int_not_equal(s->r->out[i].port, PORT_LAN);
}

/* The opener has forgotten the lane: what came in order is still delivered. */
static void restart(struct storage *s)
{
	engine_peer_event(s->r->e, 0, PEER_RESTARTED, s->r->now);
	engine_tick(s->r->e, s->r->now);
	rig_pass(s->r, 1 * RIG_MS);
	assert_int_equal(rig_conn(s->r).lane[LANE_IN].state, LANE_DRAIN);
	none_to_initiator(s);
}

/* The next that goes to the initiator has @opcode. Returns its PSN. */
static uint32_t to_initiator(struct storage *s, uint8_t opcode)
{
	const struct rig_frame *f;

	while (s->r->at < s->r->nout && s->r->out[s->r->at].port == PORT_WAN)
		s->r->at++;
	f = rig_sent(s->r, PORT_LAN);
	assert_int_equal(f->data[RIG_BTH], opcode);
	return get_be24(f->data + RIG_BTH + 9);
}

/* The initiator acknowledges the response @psn, the last: the lane ends. */
static void ends(struct storage *s, uint32_t psn)
{
	assert_int_equal(rig_conn(s->r).lane[LANE_IN].state, LANE_DRAIN);
	rig_rx(s->r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", psn, ++s->msn);
	assert_int_equal(rig_conn(s->r).lane[LANE_IN].state, LANE_WATCH);
}

/* A command that waits for its turn to be READ ahead is not any more: the target READs it. */
static void test_drain_queued(void **state)
{
	struct storage s = begin_deep(ANNOUNCE_MODE_NVME, 1);
	uint32_t own = queued(&s, 1), psn;

	(void)state;
	answered(&s, 5);
	restart(&s);
	(void)give(&s, own);
	rig_pass(s.r, 10 * RIG_MS);
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].announce.native, 1);
	s.r->at = 0;
	psn = to_initiator(&s, 0x0c);
	assert_int_equal(to_initiator(&s, 0x04), psn_add(psn, 1));
	rig_rx(s.r, NEAR, "10 40ffff 00000022 00%06x | 1f %06x | 61*%u", psn, ++s.msn, READ_LEN);
	ends(&s, psn_add(psn, 1));
	rig_destroy(s.r);
}

/* Nor is the rest of one that is half asked. A response waits for what was. */
static void test_drain_half_asked(void **state)
{
	struct storage s = begin_deep(ANNOUNCE_MODE_NVME, 2);
	uint32_t own = queued(&s, 3);

	(void)state;
	rig_rx(s.r, FAR, "04 40ffff 00000011 80%06x | 00*12 04 00 0000", s.psn++);
	restart(&s);
	(void)give(&s, own);
	rig_pass(s.r, 1 * RIG_MS);
	none_to_initiator(&s);
	(void)give(&s, psn_add(own, 1));
	s.r->at = 0;
	ends(&s, to_initiator(&s, 0x04));
	rig_destroy(s.r);
}

/* Of such a command not all is here: the READ of its target goes to the initiator. */
static void test_drain_half_read(void **state)
{
	struct storage s = begin_deep(ANNOUNCE_MODE_NVME, 2);
	uint32_t own = queued(&s, 3);

	(void)state;
	rig_rx(s.r, FAR, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", s.psn++, va_of(4),
	       3 * READ_LEN);
	restart(&s);
	(void)give(&s, own);
	none_to_initiator(&s);
	(void)give(&s, psn_add(own, 1));
	s.r->at = 0;
	(void)to_initiator(&s, 0x0c);
	rig_destroy(s.r);
}

/* The initiator has given a command up, of which the rest is to be READ: its buffer may be gone. */
static void test_half_asked_over(void **state)
{
	struct storage s = begin_deep(ANNOUNCE_MODE_NVME, 1);
	uint32_t own;

	(void)state;
	prove(&s);
	tell_of(&s, 4, 4, 2);
	own = asked(&s);
	tell_of(&s, 4, 5, 1);
	assert_int_equal(asked_if(&s), PSN_NONE);
	(void)give(&s, own);
	s.r->at = 0;
	own = asked(&s);
	assert_int_equal(get_be32(s.r->out[s.r->at].data + RIG_BTH + 16), va_of(5));
	(void)give(&s, own);
	assert_int_equal(asked_if(&s), PSN_NONE);
	/* a response waits for it no more */
	rig_forget(s.r);
	answered(&s, 5);
	assert_int_equal(rig_sent(s.r, PORT_LAN)->data[RIG_BTH], 0x04);
	rig_destroy(s.r);
}

/* ---- iSER ---- */

/* A SCSI command with task tag @id: READ_LEN bytes to be written. */
static void tell_iser(struct storage *s, unsigned int id)
{
	rig_forget(s->r);
	rig_rx(s->r, NEAR,
	       "04 40ffff 00000022 80%06x | 18 000000 00000007 00*6 1000 00*12 | "
	       "01 a1 00*14 000000%02x 00000100 00*8 2a 00*15",
	       s->own++, id);
	rig_progress(s->r, s->own, s->own, s->own);
}

/* The target's PDU with @opcode. @shift: READs of ours that the initiator has had. */
static void say_iser(struct storage *s, unsigned int opcode, unsigned int id, uint32_t shift)
{
	rig_rx(s->r, FAR, "04 40ffff 00000011 80%06x | 10 00*27 | %02x 80 00*14 000000%02x 00*28",
	       s->psn, opcode, id);
	rig_rx(s->r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", s->psn++ + shift, ++s->msn);
}

/* Four commands, and a fifth that was READ ahead. */
static struct storage begin_iser(enum announce_mode mode)
{
	struct storage s = begin(mode);

	for (unsigned int id = 0; id < 4; id++) {
		tell_iser(&s, id);
		assert_true(give(&s, fetch(&s, VA)));
		say_iser(&s, 0x21, id, 0);
	}
	answers(&s, s.psn);
	tell_iser(&s, 4);
	(void)give(&s, asked(&s));
	return s;
}

static void fetch_anyhow(struct storage *s)
{
	rig_forget(s->r);
	rig_rx(s->r, FAR, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", s->psn++, VA,
	       READ_LEN);
}

/* The target's READ ends here, also where the protocol has to be found. NOP-In ends nothing. */
static void test_iser(void **state)
{
	static const enum announce_mode modes[] = {ANNOUNCE_MODE_AUTO, ANNOUNCE_MODE_ISER};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct storage s = begin_iser(modes[i]);

		say_iser(&s, 0x20, 0xff, 1);
		fetch_anyhow(&s);
		assert_int_equal(asked_if(&s), PSN_NONE);
		rig_destroy(s.r);
	}
}

/* Tasks were aborted, and nobody says which: the initiator is asked for what it still has. */
static void test_iser_abort(void **state)
{
	struct storage s = begin_iser(ANNOUNCE_MODE_AUTO);

	(void)state;
	say_iser(&s, 0x22, 9, 1);
	fetch_anyhow(&s);
	assert_int_not_equal(asked_if(&s), PSN_NONE);
	assert_int_equal(engine_counter(s.r->e, EC_ANNOUNCE_MISMATCHES), 0);
	rig_destroy(s.r);
}

/* A rule that names another protocol. */
static void test_other_protocol(void **state)
{
	struct storage s = begin(ANNOUNCE_MODE_NFS);

	(void)state;
	for (unsigned int id = 0; id < 6; id++) {
		tell_iser(&s, id);
		assert_int_equal(asked_if(&s), PSN_NONE);
		assert_true(give(&s, fetch(&s, VA)));
		say_iser(&s, 0x21, id, 0);
	}
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].announce.commands, 0);
	rig_destroy(s.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begin_told),
		cmocka_unit_test(test_answer_without_room),
		cmocka_unit_test(test_asked_again_at_nak),
		cmocka_unit_test(test_own_read_acknowledged),
		cmocka_unit_test(test_ack_before_absorbed),
		cmocka_unit_test(test_absorbed_again),
		cmocka_unit_test(test_numbers_meet),
		cmocka_unit_test(test_records_used_up),
		cmocka_unit_test(test_other_key),
		cmocka_unit_test(test_depth_seen),
		cmocka_unit_test(test_many_absorbed),
		cmocka_unit_test(test_all_acknowledged),
		cmocka_unit_test(test_drain_queued),
		cmocka_unit_test(test_drain_half_asked),
		cmocka_unit_test(test_drain_half_read),
		cmocka_unit_test(test_half_asked_over),
		cmocka_unit_test(test_iser),
		cmocka_unit_test(test_iser_abort),
		cmocka_unit_test(test_other_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

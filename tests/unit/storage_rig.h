/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An engine near an initiator (engine_rig.h), whose target is the far host: commands go out, the
 * target's READs and responses come in a lane that the peer has opened.
 */
#ifndef LONGHAUL_TESTS_STORAGE_RIG_H
#define LONGHAUL_TESTS_STORAGE_RIG_H

#include "tests/unit/engine_rig.h"

#define VA	 0x1000u
#define READ_LEN 256u

struct storage {
	struct rig *r;
	struct report open;	/* of the target's lane */
	uint32_t psn, own, msn; /* next of the target's, of the initiator's; MSN near it */
	uint32_t seq;
};

static inline void report(struct storage *s, struct report *p)
{
	p->lane = s->open.lane;
	p->gen = s->open.gen;
	p->key = s->open.key;
	engine_rx_report(s->r->e, 0, p, s->r->now);
	engine_tick(s->r->e, s->r->now);
	rig_check(s->r);
}

/* The peer has all answers below @cum, and agrees to READs ahead. */
static inline void answers(struct storage *s, uint32_t cum)
{
	struct report p = {.type = REPORT_RESP,
			   .seq = ++s->seq,
			   .cum = cum,
			   .hi = cum,
			   .announce = true,
			   .announce_key = {1, 2}};

	report(s, &p);
}

/* Both lanes are in custody, and no command was told yet. The initiator takes @depth READs. @check:
 * the rule has seal = on. */
static inline struct storage begin_with(enum announce_mode mode, uint32_t depth, bool check)
{
	static const struct engine_config cfg = {.pool_bytes = 4 << 20, .max_conns = 16, .seed = 1};
	struct rule rule = rig_rule(0, POLICY_EARLY, RIG_MTU);
	struct storage s = {.r = rig_held(&cfg, 0, POLICY_EARLY, RIG_MTU),
			    .open = {.type = REPORT_OPEN,
				     .lane = 77,
				     .gen = 3,
				     .lqpn = 0x22,
				     .start_psn = 0x100,
				     .path_mtu = RIG_MTU,
				     .sealed = check,
				     .seal_key = {1, 2}},
			    .psn = 0x100,
			    .own = 6};

	rule.announce = (uint8_t)mode;
	rule.read_depth = depth;
	rule.seal = check;
	engine_rules(s.r->e, &rule, 1, s.r->now);
	engine_peer_features(s.r->e, 0, PEER_FEATURE_SEAL | PEER_FEATURE_ANNOUNCE);
	ip_addr_parse("10.2.0.1", &s.open.key.src);
	ip_addr_parse("10.1.0.1", &s.open.key.dst);
	s.open.key.dqpn = 0x11;
	s.open.key.vlan = FRAME_VLAN_NONE;
	report(&s, &s.open);
	assert_int_equal(rig_conn(s.r).lane[LANE_IN].state, LANE_HELD);
	rig_forget(s.r);
	return s;
}

static inline struct storage begin_checked(enum announce_mode mode, bool check)
{
	return begin_with(mode, 64, check);
}

static inline struct storage begin_deep(enum announce_mode mode, uint32_t depth)
{
	return begin_with(mode, depth, false);
}

static inline struct storage begin(enum announce_mode mode)
{
	return begin_deep(mode, 64);
}

/* The target sends a packet. */
static inline __attribute__((format(printf, 2, 3))) void target(struct storage *s, const char *fmt,
								...)
{
	va_list ap;

	va_start(ap, fmt);
	rig_arrives(s->r, FAR, fmt, ap);
	va_end(ap);
	engine_tick(s->r->e, s->r->now);
	rig_check(s->r);
}

/* The PSN of the READ that was sent to the initiator; PSN_NONE when none was. */
static inline uint32_t asked_if(struct storage *s)
{
	for (; s->r->at < s->r->nout; s->r->at++) {
		const struct rig_frame *f = &s->r->out[s->r->at];

		if (f->port == PORT_LAN && f->data[RIG_BTH] == 0x0c)
			return get_be24(f->data + RIG_BTH + 9);
	}
	return PSN_NONE;
}

static inline uint32_t asked(struct storage *s)
{
	uint32_t psn = asked_if(s);

	if (psn == PSN_NONE)
		fail_msg("nothing is READ");
	return psn;
}

/* The initiator tells its target to fetch @n times READ_LEN bytes, of its buffer @which: command
 * @id. */
static inline void tell_of(struct storage *s, unsigned int id, uint8_t which, uint8_t n)
{
	rig_forget(s->r);
	rig_rx(s->r, NEAR,
	       "04 40ffff 00000022 80%06x | 01 40 %02x 00 00*20 | 00 10 %02x 00*5 | 00%02x00 | "
	       "07000000 | 40 00*24",
	       s->own++, id, which, n);
	rig_progress(s->r, s->own, s->own, s->own);
}

static inline void tell(struct storage *s, unsigned int id)
{
	tell_of(s, id, 0, 1);
}

static inline uint32_t va_of(uint8_t which)
{
	return (uint32_t)which << 16 | VA;
}

/* The target READs. Returns the PSN that the READ has near the initiator. */
static inline uint32_t fetch(struct storage *s, uint32_t va)
{
	rig_forget(s->r);
	target(s, "0c 40ffff 00000011 80%06x | 00*4 %08x 00000007 %08x", s->psn++, va, READ_LEN);
	return asked(s);
}

/* The initiator's answer. Returns whether it was sent on. */
static inline bool give(struct storage *s, uint32_t psn)
{
	rig_forget(s->r);
	rig_rx(s->r, NEAR, "10 40ffff 00000022 00%06x | 1f %06x | 61*%u", psn, ++s->msn, READ_LEN);
	for (; s->r->at < s->r->nout; s->r->at++)
		if (s->r->out[s->r->at].port == PORT_WAN)
			return true;
	return false;
}

/* The target has done command @id. */
static inline void done(struct storage *s, unsigned int id)
{
	target(s, "04 40ffff 00000011 80%06x | 00*12 %02x 00 0000", s->psn, id);
	rig_rx(s->r, NEAR, "11 40ffff 00000022 00%06x 1f %06x", s->psn++, ++s->msn);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine's state: flows, what is known of pairs to come, lists of what is due.
 */
#ifndef LONGHAUL_ENGINE_CORE_STATE_H
#define LONGHAUL_ENGINE_CORE_STATE_H

#include "engine/core/lane.h"
#include "rate/rate.h"
#include "store/undo.h"

/** struct flow_meter - what came of a flow, in all. */
struct flow_meter {
	uint64_t packets, bytes;
};

/**
 * struct flow - one direction of packets to one QP. @key must be first (flow_table.h).
 * @partner:   flow of the other direction, FLOW_NONE while unpaired; @candidate: best guess so far
 * @side:      port that its packets come from
 * @tmpl:      headers of the latest packet seen, for cloning
 * @lqpn:      the sender's QPN when known (the partner's key has it), PSN_NONE else
 * @next_free: free list; @next_half, @prev_half: list of half-known flows (half.c)
 * @born:      when it got its number; what was noted under that before is another one's
 * @half:      only this direction is known; @again: and more than one packet of it was seen
 * @comm_id:   the sender's CM comm id, 0 when not known
 * @left: its hosts took the connection down; the next owners of the two numbers need not be a pair
 * @offered:    the peer will agree to a lane of these requests by the QPN in the low 24 bits, and
 *              knows the path MTU in the others (offer_of()); 0: it has not said so
 * @pledged:    we have told the peer so (the same of its lanes)
 * @read_depth: READs and ATOMICs that the responder of its requests takes at a time, 0: not known
 */
struct flow {
	struct flow_key key;
	uint32_t partner;
	uint16_t path_mtu;
	int8_t rule;
	uint8_t side;
	uint64_t seen;
	uint8_t learned;
	bool used : 1, half : 1, again : 1, left : 1, pledged : 1;
	bool bypassed : 1;	/* by the operator */
	bool stranded : 1;	/* its two ends count differently, and nobody translates any more */
	bool cut : 1;		/* stranded, and the QP of its near host has failed, or will */
	bool answered_last : 1; /* in its latest turn responses went after requests (turns.c) */
	uint8_t storage : 2;	/* enum storage_protocol, by the connection manager; 0: not known */
	uint8_t tmpl_age;
	uint8_t read_depth;
	uint16_t matches;
	uint32_t noted; /* number of the batch that it was noted in (flow_change()) */
	uint32_t comm_id;
	struct flow_meter meter;
	struct template tmpl;
	uint32_t candidate;
	struct lane lane;

	/* for flows that begin, pair or end */
	struct {
	} rare;
	uint16_t contradictions;
	uint32_t last_match_psn, offered;
	union {
		uint32_t next_free; /* not @used */
		struct {
			uint32_t next_half, prev_half; /* @half */
		};
		uint64_t retry_open; /* else: not before this time */
	};
	uint64_t born;
};

_Static_assert(sizeof(struct flow) <= 640, "state per lane");
_Static_assert(RULE_MAX <= 64, "a bit for each in rules_bypassed");

/** offer_of - what struct flow keeps of an offer: it is for the requester @lqpn, with @mtu. */
static inline uint32_t offer_of(uint32_t lqpn, uint32_t mtu)
{
	return lqpn | mtu / 256 << 24;
}

/* PSN matching: who sent a message end with this PSN lately? */
struct psn_match {
	uint32_t tag;  /* of host pair, VLAN and PSN */
	uint32_t flow; /* the latest */
	uint64_t when;
	uint32_t count;	    /* messages of the flow by then, as struct lane counts them; PSN_NONE */
	uint32_t shared_ms; /* until then another one counts, too: no evidence */
};

/* Lanes that have something to send, by flow index, in the order of their turns. */
struct run_list {
	uint32_t head, tail;
};

/**
 * struct run_queue - who sends next over one link, see turns.c; by class of the rule.
 * @fresh:  lanes that had nothing to send until now
 * @rest:   all others, and those that were fresh in this round
 * @passed: turns that lanes of higher classes have had while some of this one waited
 */
struct run_queue {
	struct {
		struct run_list fresh, rest;
		uint32_t passed;
	} of[CLASSES];
};

/* Links over the WAN: one to each peer, and what goes to no peer. */
#define LINK_ALONE PEER_MAX
#define LINKS	   (PEER_MAX + 1)

/**
 * struct wan_link - what goes over the WAN to one peer.
 * @run:    lanes with something to send
 * @tokens: bytes that may leave now by @rate; whole at @tokens_at, when a lane last wanted some
 * @passing: bytes that may pass by in a flood, whole at @passing_at (passing.c)
 * @sent:   bytes sent; @got, @packets, @marked: what came (meter.c)
 * @heard:  what the next METER echoes; @heard_at: 0 when there is nothing
 * @told_at, @told_sent, @told_got: of the latest METER sent; @told_heard: how much of the peer's it
 *          knew of
 * @out:    to the peer, as the latest METER heard compares
 * @rtt_us: of its session, 0: not known
 * @noted:  number of the batch in which all of that was noted (link_at())
 * @rate_noted: and what is from @rate on, which is large and changes with METERs only (link_rate())
 * @lossy:  when a packet was last found to be lost, ns; 0: never. @lost: bytes since @lost_since,
 *          when @sent was @lost_sent
 * @runs:   of packets in a row that were lost, lately, with @run_packets; @depth: link_depth()
 */
struct wan_link {
	struct run_queue run;
	uint32_t noted, rtt_us;
	uint64_t tokens_at, passing_at;
	int64_t tokens, passing;
	uint64_t sent, got, packets, marked;
	struct meter heard;
	uint64_t heard_at, told_at, told_sent, told_got, told_heard;
	struct link_count out;
	uint64_t lossy, lost, lost_since, lost_sent;
	uint32_t runs, run_packets, depth;
	struct rate rate;
	uint32_t rate_noted;
};

/* What any packet adds to a sum (core/stream_parity.c), a multiple of 32; frames of a group. */
#define PARITY_BYTES 4160u
#define PARITY_ROWS  3u
#define PARITY_DEPTH 8u
#define PARITY_SUMS  32u

/** struct parity - sums of packets of a group. @members: bits of their PSNs;
 * @proof: the exclusive or of their parity_proof(). */
struct parity {
	uint32_t members, len;
	uint64_t proof;
	uint8_t sum[PARITY_ROWS][PARITY_BYTES];
};

/** struct parity_sum - at the receiving end, of the packets in flow @flow - 1. @of: of those of
 * @block that have gone on, in @depth groups, and @told in the next block; @got: frames of parity
 * of the group at @got_group that have come, bits @rows. */
struct parity_sum {
	uint32_t flow, gen, rows, depth, told;
	struct wire_psn block, got_group;
	struct parity of[PARITY_DEPTH], got;
};

/** struct host_pair - two hosts, by their hash. @epoch: moved by what may tell that data has
 * changed; @untold: until then they wait, see pair_untold(). In full: it is looked at for ever;
 * @in_step: until then PSNs tell their flows not apart. */
struct host_pair {
	uint64_t untold, in_step;
	uint32_t epoch;
};

/**
 * struct port_wait - a port that has no room for what leaves.
 * @full:  the latest turn found it so
 * @again: when to try again, @tries: how often in a row that was in vain
 * @acks:  list of lanes whose ACK or NAK it refused, by flow index
 */
struct port_wait {
	uint64_t again;
	uint32_t acks;
	uint8_t tries;
	bool full;
};

/** struct half_list - half-known flows, oldest first. */
struct half_list {
	uint32_t head, tail, n;
};

/** struct soon - frames that will come, see soon.c. @hash: of their keys, where there is @some. */
#define SOON_STEP 4u
#define SOON_RING 16u
struct soon {
	uint32_t at;
	uint32_t hash[SOON_RING];
	bool some[SOON_RING];
};

#define HALF_HOSTS  4096u
#define MATCH_SLOTS 65536u
#define READS_MAX   131072u
#define PAIR_SLOTS  4096u
/* Refused packets that one batch of frames can name; more are found missing a little later. */
#define REFUSED_MAX 32u

/** struct refused - ACCEPTOR: what was refused since the latest report (row: FAST-1). */
struct refused {
	uint32_t flow, psn;
};

/** struct seal_tags - the latest tags, of two packets each (seal.c); of this process alone. */
#define SEAL_TAGS 64u
struct seal_tags {
	uint64_t key, two, hash;
};

/** struct engine_cache - data that can be computed again, or lost. A crash may leave it half
 * written, so a process that adopts the engine clears it. */
struct engine_cache {
	struct seal_tags tags[SEAL_TAGS];
	struct parity_sum sums[PARITY_SUMS];
	uint64_t rule_others[RULE_MAX]; /* custody per rule of other engines (lend.c) */
};

struct order;
struct cm_table;
struct echo;

struct engine {
	struct engine_sink sink;
	struct engine_config cfg;
	const struct role_ops *roles; /* by enum lane_role */
	struct arena arena;
	/* Offsets of the parts below, whose pointers are this process's (create.c). */
	struct {
		uint64_t flows, match, cm, echo, accepted, table, wheel, reads, pool, order;
	} at;
#ifdef LONGHAUL_OTHER_LAYOUT
	uint64_t other_layout; /* the tests' other version (tests/Makefile.inc) */
#endif
	struct undo *undo; /* NULL: nobody goes on with this engine */

	/* from here to @cold noted with each batch (batch_begin()) */
	uint64_t now;
	uint32_t noted;

	struct flow *flows;
	uint32_t nflows, free_flow, used_flows, conns;
	uint32_t flows_end; /* all flows ever used are below: low ones are used first */
	struct flow_table *table;
	struct half_list half[2]; /* seen once, seen again; see half.c */
	uint32_t half_max;
	uint64_t crowded_at; /* when that they are too many was told last, 0: never */
	uint64_t wanted_at;  /* when a connection last found no place, 0: there are some */
	uint32_t *accepted; /* lanes of role ACCEPTOR, by their openers' numbers: heads of chains */
	uint32_t accepted_mask;
	struct pool *pool;
	struct wheel *wheel;
	struct mqueue *reads; /* struct read_rec and struct fetch */
	struct psn_match *match;
	struct cm_table *cm; /* learn/cm_table.c */
	struct echo *echo;   /* learn/echo.c; not noted */

	struct soon soon;
	unsigned int nrules;
	uint64_t stood;	   /* engine_stood_still(): when the process last stood still */
	uint64_t left_at;  /* what the latest process before this one had in @now at its end */
	uint64_t taken_at; /* when the latest request of a near host was accepted */
	bool hushed;	   /* engine_hush() */
	bool peer_up[PEER_MAX];
	uint64_t peer_since[PEER_MAX];
	bool draining;
	bool all_bypassed;	 /* by the operator */
	uint64_t rules_bypassed; /* bit per rule */
	uint32_t in_fault;	 /* lanes in FAULT */
	bool broken;		 /* lane.broken of some, and nothing was done about it yet */

	/* lists of lanes with something to do, by flow index */
	uint32_t ack_head, report_head;
	struct run_list room; /* requesters to be asked for what was dropped */
	struct refused refused[REFUSED_MAX];
	uint32_t nrefused;
	uint64_t rule_bytes[RULE_MAX]; /* custody per rule */
	uint32_t keepers;	       /* OPENERs and SINGLEs with something in custody */
	uint64_t reserved; /* bytes for answers to guesses that have not come (reads/fetch.c) */
	struct run_queue run_lan;
	uint8_t via;	    /* link of the frame, timer or turn that is being looked at */
	uint8_t first_link; /* whose turn it is first */
	struct port_wait wait[PORTS];
	uint64_t tokens_at; /* pacing: tokens are whole at this time */
	int64_t tokens;	    /* bytes */
	uint64_t wake;	    /* earliest time that lists want to be looked at again */
	uint32_t sweep;
	uint64_t sweep_at;
	uint32_t gen;
	struct order *order; /* link/order.c */
	bool ordered;	     /* some rule wants it */
	uint32_t peer_features[PEER_MAX];
	uint64_t peer_new_at[PEER_MAX]; /* first heard of, or heard of as another process */
	bool prefetch;			/* some rule wants it, or ATOMICs ahead */
	struct engine_box box;
	uint64_t counters[EC_COUNT];

	/* noted where it changes */
	struct {
	} cold;
	struct engine_cache cache;	/* not noted */
	struct wan_link link[LINKS];	/* link_at(), link_rate() */
	uint16_t half_host[HALF_HOSTS]; /* half-known flows by the hash of their source */
	struct host_pair pair[PAIR_SLOTS];
	struct rule rules[RULE_MAX];
};

/* Timers of a lane. */
#define TIMER_LOSS	      0u
#define TIMER_AUX	      1u /* ACCEPTOR, SINGLE: RNR; OPENER: OPEN retry */
#define TIMER_RESP	      2u /* answers on their way over the WAN */
#define TIMER_PACE	      2u /* SINGLE: the next packet may go */
#define TIMER_REPORT	      3u /* a report to the peer that waits for more to tell */
#define TIMER_EASE	      4u /* OPENER, SINGLE: a host that is held back */
#define TIMERS		      5u
#define TIMER_ID(flow, which) ((flow)*TIMERS + (which))

#define COUNT(e, c) ((e)->counters[EC_##c]++)

/**
 * batch_begin - struct engine is about to change, at @now_ns: note its values. The tick ends the
 * batch, and only then frames leave. A crash before that undoes the batch (undo.h).
 */
static inline void batch_begin(struct engine *e, uint64_t now_ns)
{
	undo_once(e->undo, &e->noted, &e->now,
		  offsetof(struct engine, cold) - offsetof(struct engine, now));
	e->now = now_ns;
}

static inline void batch_end(struct engine *e)
{
	if (!e->undo)
		return;
	pool_batch_end(e->pool);
	undo_commit(e->undo);
}

/** engine_change - @len bytes at @p, anywhere in the arena, are about to change. */
static inline void engine_change(struct engine *e, const void *p, uint32_t len)
{
	undo_note(e->undo, p, len);
}

/** flow_change - @fl, its lane or its meter is about to change. Who finds a flow does that, by
 * flow_ref() or while it goes through all flows; those who are handed one may change it. */
static inline void flow_change(struct engine *e, struct flow *fl)
{
	struct undo *u = e->undo;

	if (!u || fl->noted == u->batch)
		return;
	undo_note(u, fl, sizeof(*fl));
	fl->noted = u->batch;
}

/** flow_ref - flow @i, to be changed. */
static inline struct flow *flow_ref(struct engine *e, uint32_t i)
{
	flow_change(e, &e->flows[i]);
	return &e->flows[i];
}

/** flow_each - go through the flows in use by @fl. */
#define flow_each(type, fl, e)                                                                     \
	for (type *fl = (e)->flows; fl < (e)->flows + (e)->flows_end; fl++)                        \
		if (fl->used)

/** link_at - link @i, to be changed, all but its rate. */
static inline struct wan_link *link_at(struct engine *e, unsigned int i)
{
	struct wan_link *k = &e->link[i];

	undo_once(e->undo, &k->noted, k, offsetof(struct wan_link, rate));
	return k;
}

/** link_rate - the rate of link @i, to be changed. */
static inline struct rate *link_rate(struct engine *e, unsigned int i)
{
	struct wan_link *k = &e->link[i];

	undo_once(e->undo, &k->rate_noted, &k->rate, sizeof(*k) - offsetof(struct wan_link, rate));
	return &k->rate;
}

static inline uint32_t flow_index(const struct engine *e, const struct flow *fl)
{
	return (uint32_t)(fl - e->flows);
}

/** lane_number - of the lane of @fl, in reports; lane_index - its flow's, in such a number. */
static inline uint32_t lane_number(const struct engine *e, const struct flow *fl)
{
	return flow_index(e, fl) | flow_slice(&fl->key) << LANE_SLICE;
}

static inline uint32_t lane_index(uint32_t number)
{
	return number & ((1u << LANE_SLICE) - 1);
}

/** timer_arm, timer_cancel, timer_armed - the timer @which of the lane of @fl. */
static inline void timer_arm(struct engine *e, const struct flow *fl, uint32_t which, uint64_t at)
{
	wheel_arm(e->wheel, TIMER_ID(flow_index(e, fl), which), at);
}

static inline void timer_cancel(struct engine *e, const struct flow *fl, uint32_t which)
{
	wheel_cancel(e->wheel, TIMER_ID(flow_index(e, fl), which));
}

static inline bool timer_armed(const struct engine *e, const struct flow *fl, uint32_t which)
{
	return wheel_armed(e->wheel, TIMER_ID(flow_index(e, fl), which));
}

/** flow_mtu - the path MTU of @fl; unknown, the largest: only READs of one PSN are held then. */
static inline uint32_t flow_mtu(const struct flow *fl)
{
	return fl->path_mtu ? fl->path_mtu : PAYLOAD_MAX;
}

static inline struct flow *flow_partner(struct engine *e, const struct flow *fl)
{
	return fl->partner == FLOW_NONE ? NULL : flow_ref(e, fl->partner);
}

/** conn_held - a lane of the connection of @fl is held: its packets matter even without a rule. */
static inline bool conn_held(struct engine *e, const struct flow *fl)
{
	const struct flow *other = flow_partner(e, fl);

	return fl->lane.role != ROLE_NONE || (other && other->lane.role != ROLE_NONE);
}

static inline enum engine_port other_port(enum engine_port p)
{
	return p == PORT_LAN ? PORT_WAN : PORT_LAN;
}

/** flow_let_go - the operator wants the connection of @fl to pass as if nobody stood between. */
static inline bool flow_let_go(const struct engine *e, const struct flow *fl)
{
	return e->draining || e->all_bypassed || fl->bypassed ||
	       (fl->rule >= 0 && (e->rules_bypassed >> fl->rule & 1));
}

/** now_us - the engine's clock in us modulo 2^32, for packet descriptors. */
static inline uint32_t now_us(const struct engine *e)
{
	return (uint32_t)(e->now / NSEC_PER_USEC);
}

/** ms_of - a time of that clock in ms modulo 2^32, for what may last longer. */
static inline uint32_t ms_of(uint64_t ns)
{
	return (uint32_t)(ns / NSEC_PER_MSEC);
}

/** some_ms - ms_of() now for times of which 0 means never; never later than now. */
static inline uint32_t some_ms(const struct engine *e)
{
	uint32_t ms = ms_of(e->now);

	return ms ? ms : UINT32_MAX;
}

/** icrc_wrong - whether the ICRC of @f is wrong; then that is counted. */
static inline bool icrc_wrong(struct engine *e, const struct frame *f)
{
	bool wrong = !icrc_ok(f);

	e->counters[EC_BAD_ICRC] += wrong;
	return wrong;
}

/** lane_class - which share of the pool the lane's packets belong to. */
static inline enum pool_class lane_class(const struct lane *l)
{
	return l->role == ROLE_ACCEPTOR ? POOL_TRANSIT : POOL_CUSTODY;
}

static inline bool lane_keeps(const struct lane *l)
{
	return l->role == ROLE_OPENER || l->role == ROLE_SINGLE;
}

/** opener_gone - ACCEPTOR: a lane that ends for @why has lost its opener and its promises. */
static inline bool opener_gone(enum lane_reason why)
{
	return why == REASON_PEER_LOST || why == REASON_PEER_RESTARTED;
}

/** numbers_lost - ACCEPTOR: the opener is no more, and has asked ahead of its host. What that host
 * sends bears other numbers than the responder expects, or may. */
static inline bool numbers_lost(const struct lane *l)
{
	return l->role == ROLE_ACCEPTOR && l->ahead && opener_gone(l->reason);
}

/** owner_unsure - the number may have another owner: the requester hears only the responder. */
static inline bool owner_unsure(const struct lane *l)
{
	return l->owner.state >= OWNER_NAMED && l->owner.state <= OWNER_WAITS;
}

#endif

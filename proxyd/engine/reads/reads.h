/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * READs, ATOMICs and their like: what a lane needs once one was asked, a page of the pool.
 *
 * Two numberings. The host numbers its requests; what goes to the responder is numbered by the
 * opener (*wire* PSNs and MSNs). They agree until the opener asks for something that the host then
 * does not ask for: a guess (prefetch.c) consumes PSNs at the responder. Everything behind the
 * opener's pseudo_responder.c - custody, both ends of the stream, the acceptor, the responder
 * itself - knows wire numbers only; psn_map.c translates at the door.
 *
 * Responses. The acceptor keeps each response packet that its responder gave until the opener has
 * it (resp_tx.c). The opener keeps them until the host has asked for them and got them, and a
 * little longer in case the host lost them (resp_rx.c, resp_deliver.c). Both find them by wire PSN.
 *
 *	host      opener                            acceptor   responder
 *	 | READ h ->|                                   |           |
 *	 |          | a fetch has it, or will have it?  |           |
 *	 |          | then no request crosses the WAN   |           |
 *	 |          |- else: READ at the next wire PSN->|---------->|
 *	 |          |<-- responses with wire PSNs ------|<----------|
 *	 |<---------| responses with host PSNs, in the order in which the host asked
 */
#ifndef LONGHAUL_ENGINE_READS_READS_H
#define LONGHAUL_ENGINE_READS_READS_H

#include "engine/core/holes.h"
#include "engine/core/core.h"
#include "engine/reads/predict.h"

/* A request that waits for data from the responder: READ, ATOMIC, FLUSH, ATOMIC WRITE. */
struct read_rec {
	struct host_mark at; /* its first PSN, and what an ACK below it would say */
	uint32_t span;	     /* PSNs */
	uint32_t got;	     /* response packets that have come, or were given, without a gap */
	uint64_t asked;	     /* when it was last sent on, or given, ns */
	uint64_t heard;	     /* when its host asked for it, ns */
	uint64_t given; /* when its response was given for the first time, ns; ACCEPTOR: its place
			   among the READs that went to the responder, 0: not known */
	uint64_t other; /* when something else was asked for, from before its end, ns; 0: never */
	struct read_range what;
	struct wire_psn wire; /* the PSN that it has toward the responder */
	uint32_t digest;      /* of what it asks for, but of a READ */
	uint8_t opcode;
	uint8_t tries; /* ACCEPTOR: times that it was asked again in vain */
	bool done, gap;
	bool moved;    /* its MSN on the wire is another one */
	bool made;     /* an ATOMIC that was answered here */
	bool again;    /* answered, and asked again past us since */
	bool empty;    /* answered, and nothing of it is held */
	bool renewed;  /* asked for anew because the host asked again; it will once more */
	bool absorbed; /* ACCEPTOR: answered here, and not for the responder (announce/) */
};

/** range_of - what the READ @f asks for. */
static inline struct read_range range_of(const struct frame *f)
{
	return (struct read_range){frame_reth_va(f), frame_reth_rkey(f), frame_reth_length(f)};
}

enum fetch_state {
	FETCH_ASKED, /* the host asked for it */
	FETCH_GUESS, /* it has not yet */
	FETCH_GONE,  /* nothing of it is awaited any more */
};

/* A responder that does not answer what it was asked again so often has forgotten it. */
#define ASKED_IN_VAIN 2u

/**
 * struct fetch - one request that is answered with data, in the order of wire PSNs (OPENER).
 * @psn, @span: wire PSNs
 * @arrived:    response packets that came, each counted once
 * @issued:     ns; when it was sent, or when the host asked for what a guess brings
 * @epoch:      of the host pair (engine.h) when it was issued
 * @tries:      times that it was asked again past the stream
 * @touched:    ns; when something of it last came, or was asked again
 * @room:       bytes reserved for what has not come of it: it was a guess
 */
struct fetch {
	struct read_range what;
	uint64_t issued, touched;
	struct wire_psn psn;
	uint32_t span, arrived, epoch;
	uint8_t opcode, state, tries;
	uint64_t room;
};

/* Ranges of addresses that a host has read with success. */
struct good_range {
	uint64_t from, end;
	uint32_t rkey, used; /* @used: when, for replacing the oldest */
};
#define GOOD_RANGES 16u

#define SOLO_RING 128u

/**
 * struct lane_solo - SOLO (prefetch/solo.c)
 * @seq:       READs so far; @behind: the host's outstanding; @first: @seq when the stall began
 * @end:       of what the host or the appliance asked, in the host's numbers
 * @left:      when the response to READ k had left, or 0; @left_early: latest packet unasked for
 * @skipped:   since when one is missing that was surely asked; @beyond: a non-READ shows it
 * @broken:    what was asked ahead is no part of the pattern any more
 * @slow:      the distance is doubled so often, @struck: and was
 * @wait:      READs to come as foreseen before more are asked ahead
 * @longest:   the two longest times between two READs, now and in the turn before
 */
struct lane_solo {
	uint8_t phase, slow, failures, late, samples, wait, struck, bad;
	bool broken, beyond;
	uint32_t run, calm, seq, first, behind;
	struct host_mark end;
	uint64_t longest[2][2];
	uint64_t last, again_at, measured, repeat, left_early, skipped;
	uint64_t left[SOLO_RING];
};

/* So many of the latest SENDs and WRITEs are known again. A host that lacks an ACK repeats all that
 * it has sent since, so the end of what it repeats is among them. */
#define PRINTS 256u

/**
 * struct lane_reads
 * @held:      responses held, by wire PSN
 * @seq:       of the latest report about responses: sent (OPENER), taken (ACCEPTOR)
 * @depth:     READs that the responder is to have at most at a time, 0: as they come
 *
 * @announce_page: struct lane_announce, POOL_NONE before the first command
 * @announce:  OPENER: the acceptor may READ ahead for storage commands; ACCEPTOR: so it was told.
 *             @announce_key: with this key; @announce_seq: OPENER: of the first report that says so
 *
 * ACCEPTOR:
 * @una:       all below are known to have arrived, or to be of no use; released
 * @nxt:       next wire PSN never sent
 * @end:       end of the highest packet held
 * @probe:     PSN of the latest request sent out of its turn, to learn how far the responder is
 *
 * OPENER:
 * @end:       wire PSN of the first response that has not arrived and has nothing arrived behind it
 * @gaps:      what is missing before it
 * @guessed_ever: responses may turn up that the host never asked for
 * @stop:      no guesses any more: the rule does not want them, or the lane is to end
 * @latest:    wire PSN of the latest arrival
 * @gone:      fetches in state FETCH_GONE
 * @past_ms:   when the host last asked for something again past the lane; 0: never
 * @unique:    those that have not come and cannot be asked for anew: ATOMICs
 * @fetches:   struct fetch, by wire PSN; @hint: where the latest response belonged
 * @kept:      struct read_rec that were answered: a host that lost a response can have it again
 * @most:      READs that the host has been seen to wait for at one time
 * @since:     READs and ATOMICs of the host since the lane was agreed upon
 * @stuck:     since when the host repeats what it was told to be done, 0: it does not
 * @round:     when the latest round of repeating began: lane.rounds.ms wraps too soon
 * @print:     of the latest SENDs and WRITEs accepted (icrc_print()), by the host's PSN
 * @window:    bytes that may be guessed ahead; @guessed: bytes that are; @guesses: how many
 */
struct lane_reads {
	struct psn_map map; /* first: number/psn_map.h finds it there */
	struct held held;
	struct gaps gaps; /* OPENER */
	uint32_t seq, depth;
	struct wire_psn una, nxt, end, latest;
	bool stop, guessed_ever, pattern_lost;
	bool announce;
	uint32_t announce_page, announce_seq;
	uint64_t announce_key[2];
	uint8_t backoff;

	/* ACCEPTOR */
	struct wire_psn probe;
	struct rtt rtt;

	/* OPENER */
	struct mq_list fetches, kept;
	uint32_t hint, most, gone, unique, past_ms;
	uint64_t arrival; /* ns */

	struct predictor predictor;
	struct good_range good[GOOD_RANGES];
	uint32_t good_clock;
	uint64_t window, guessed, grown, arrived_bytes, rate_bytes;
	uint32_t guesses, epoch, since;
	uint64_t rate_at;
	/* the FetchAdd that the host asked last, so often; @epoch: of the latest */
	struct {
		uint64_t va, add;
		uint32_t rkey, run, epoch;
	} fetch_add;
	uint64_t stuck, round;

	union {
		struct lane_solo solo;	/* SOLO */
		uint32_t print[PRINTS]; /* OPENER */
	};
	struct prefetch_info info;
};

_Static_assert(sizeof(struct lane_reads) <= READS_BYTES, "one page");

static inline struct lane_reads *reads_of(struct engine *e, const struct lane *l)
{
	return (struct lane_reads *)map_of(e, l);
}

static inline struct fetch *fetch_at(struct engine *e, uint32_t id)
{
	return mq_at(e->reads, id);
}

static inline struct read_rec *read_at(struct engine *e, uint32_t id)
{
	return mq_at(e->reads, id);
}

/** read_mark - what stands at @r on the wire, and what an ACK below it would say. ACCEPTOR, SINGLE:
 * nothing is added before them, so it is what the requester counts. */
static inline struct wire_mark read_mark(const struct read_rec *r)
{
	return (struct wire_mark){.psn = r->wire, .msn = r->at.msn, .ackable = r->at.ackable};
}

/* records.c: requests that wait for data */
enum read_verdict {
	READ_STRAY,    /* belongs to no pending request */
	READ_IN_ORDER, /* the next one */
	READ_COMPLETE, /* the next and last one */
	READ_GAP,      /* one before it is missing */
	READ_AGAIN,    /* had it already */
};
struct lane_reads *reads_begin(struct engine *e, struct flow *fl);
void reads_end(struct engine *e, struct flow *fl);
/** resp_drop - drop the responses held in [@from, @end). */
static inline void resp_drop(struct engine *e, struct lane_reads *x, struct wire_psn from,
			     struct wire_psn end)
{
	held_drop(e, &x->held, from.v, end.v);
}
bool reads_fit(uint8_t opcode, uint32_t at, uint32_t span, uint32_t length, const struct frame *f,
	       uint32_t mtu);
bool reads_add(struct engine *e, struct flow *fl, const struct frame *f, uint32_t span,
	       const struct host_mark *at, struct wire_psn wire);
enum read_verdict reads_response(struct engine *e, struct lane *l, const struct frame *f,
				 struct read_rec **rec);
bool reads_part(const struct flow *fl, const struct read_rec *r, const struct frame *f);
/** reads_find, reads_find_wire - the record in @list of what has the response packet @psn. */
struct read_rec *reads_find(struct engine *e, const struct mq_list *list, struct host_psn psn);
struct read_rec *reads_find_wire(struct engine *e, const struct mq_list *list, struct wire_psn psn);
bool reads_outran(struct engine *e, const struct flow *fl, struct host_psn psn);
uint32_t reads_digest(const struct frame *f);
/** reads_note_print - OPENER: the SEND or WRITE @f is accepted; its ICRC is right. */
void reads_note_print(struct lane_reads *x, const struct frame *f);
/** reads_has_print - whether @f repeats one of those. False where that is too long ago. */
bool reads_has_print(const struct lane_reads *x, const struct frame *f);
void reads_trim(struct engine *e, struct lane *l, struct wire_mark *end);
void reads_trim_to(struct engine *e, struct lane *l, struct wire_psn psn);
static inline struct read_rec *reads_head(struct engine *e, const struct lane *l)
{
	return read_at(e, l->reads.head);
}

static inline struct read_rec *reads_tail(struct engine *e, const struct lane *l)
{
	return read_at(e, l->reads.tail);
}

struct read_rec *reads_waiting(struct engine *e, const struct lane *l);

/* resp_tx.c: ACCEPTOR */
/** resp_tx_add - the responder gave @f, the next packet of a response, checked. */
void resp_tx_add(struct engine *e, struct flow *fl, const struct frame *f);
/** resp_tx_keep - the same, but without room nothing is done, and false returned. */
bool resp_tx_keep(struct engine *e, struct flow *fl, const struct frame *f);
bool resp_tx_run(struct engine *e, struct flow *fl, uint32_t quantum);
void resp_tx_progress(struct engine *e, struct flow *fl, const struct report *r);
void resp_tx_timeout(struct engine *e, struct flow *fl);
/** resp_tx_given - the response @f is kept as if it had been sent at @xmit, us. */
void resp_tx_given(struct engine *e, struct flow *fl, const struct frame *f, uint32_t xmit);
/** resp_tx_comes - whether all of the response to @f is kept here until the opener has it. */
bool resp_tx_comes(struct engine *e, const struct flow *fl, const struct frame *f);
/** resp_tx_again - the response @f was asked for again, and made here. */
void resp_tx_again(struct engine *e, struct flow *fl, const struct frame *f);
int32_t resp_depth_left(struct engine *e, const struct flow *fl, struct wire_psn psn);

/* fetch.c: OPENER */
bool fetch_room(struct engine *e, struct flow *fl, struct wire_psn psn, uint32_t span);
bool fetch_add(struct engine *e, struct flow *fl, const struct read_range *what, uint8_t opcode,
	       struct wire_psn psn, uint32_t span, enum fetch_state state);
uint32_t fetch_find(struct engine *e, struct lane_reads *x, struct wire_psn psn);
bool fetch_fits(struct engine *e, const struct flow *fl, uint32_t span);
void fetch_came(struct engine *e, struct fetch *g);
void fetch_gone(struct engine *e, struct lane_reads *x, struct fetch *g);
void fetch_forget(struct engine *e, struct flow *fl, struct fetch *g);
void fetch_forgotten(struct engine *e, struct flow *fl);
void fetch_cancel(struct engine *e, struct flow *fl, struct wire_psn wire);
void fetch_abandon(struct engine *e, struct flow *fl, struct wire_psn wire);
void fetch_drop_guesses(struct engine *e, struct flow *fl, uint32_t *why);
void fetch_settle(struct engine *e, struct lane_reads *x);
void fetch_trim(struct engine *e, struct lane_reads *x);

/* resp_rx.c: OPENER */
struct host_psn resp_rx(struct engine *e, struct flow *fl, const struct frame *f);
/** resp_serve - the response @data, made here, is as good as come. False without room. */
bool resp_serve(struct engine *e, struct flow *fl, const uint8_t *data, uint32_t len);
bool resp_awaited(struct engine *e, const struct lane_reads *x, struct wire_psn psn);
uint64_t resp_report(struct engine *e, struct flow *fl);
void resp_report_due(struct engine *e, struct flow *fl, bool urgent);
uint64_t resp_overdue_ns(const struct lane *l);
void resp_arm(struct engine *e, struct flow *fl);

/* resp_deliver.c: OPENER */
/** resp_repeated - an answer to nothing pending has gone to the host: ACKs may wait for @psn. */
void resp_repeated(struct engine *e, struct flow *fl, struct host_psn psn);
/** resp_long - the response's packets take their places one after the other; it is never kept. */
static inline bool resp_long(uint32_t span)
{
	return span > WINDOW_SPAN / 2;
}
/** resp_opcode - of packet @i of @span of the response to a READ. */
uint8_t resp_opcode(uint32_t i, uint32_t span);
bool resp_deliver(struct engine *e, struct flow *fl, uint32_t quantum, bool *moved);
/** resp_other - whether the READ @f has the PSN of one whose answer is kept, and asks for other
 * memory, where numbers may differ. */
bool resp_other(struct engine *e, const struct flow *fl, const struct frame *f);
bool resp_repeat(struct engine *e, struct flow *fl, const struct frame *f);
struct wire_psn resp_wire_psn(struct engine *e, struct flow *fl, const struct frame *f);
int resp_give(struct engine *e, struct flow *fl, const struct read_rec *r, uint32_t i,
	      const uint8_t *data, uint32_t len);
void resp_through(struct engine *e, struct flow *fl, struct read_rec *r);
void resp_keep(struct engine *e, struct flow *fl, const struct read_rec *r);
bool resp_drop_kept(struct engine *e, struct flow *fl);
bool resp_drop_given(struct engine *e, struct flow *fl);
void resp_idle(struct engine *e, struct flow *fl);
void resp_expire(struct engine *e, struct flow *fl);

/* resp_ask.c: OPENER */
void resp_overdue(struct engine *e, struct flow *fl);
bool resp_renew(struct engine *e, struct flow *fl, const struct frame *f, bool offered);
void resp_prove(struct engine *e, struct flow *fl);

/* own_request.c: READs of the appliance's own */
/** read_ask - ask the responder, as @psn, for @what but its first @skip packets (engine_tx()). */
int read_ask(struct engine *e, struct flow *fl, uint32_t psn, const struct read_range *what,
	     uint32_t skip);
/* OPENER: */
bool own_request_add(struct engine *e, struct flow *fl, struct lane_reads *x,
		     const struct read_range *r, uint8_t opcode, uint64_t add,
		     enum fetch_state state);
bool own_request_anew(struct engine *e, struct flow *fl, const struct read_range *r,
		      struct wire_psn *wire);

/* ranges.c */
bool ranges_named(const struct rule *rule, const struct read_range *r);
bool ranges_allow(const struct engine *e, const struct flow *fl, const struct lane_reads *x,
		  const struct read_range *r);
void ranges_note(struct engine *e, struct flow *fl, const struct read_range *r);

/* A requester may repeat what it was told to be done for so long. */
#define STUCK_NS (10 * NSEC_PER_SEC)

/* rounds.c */
/** rounds_begin - @psn is asked for: count rounds that begin there in lane.rounds. */
void rounds_begin(struct engine *e, struct lane *l, struct host_psn psn);
void rounds_forget(struct engine *e, struct lane *l);
/** rounds_stuck - whether @psn is asked for again and again for STUCK_NS. False without a page. */
bool rounds_stuck(struct engine *e, struct lane *l, struct host_psn psn);

/* atomic_resp.c */
bool atomic_is(uint8_t opcode);
bool atomic_discards(const struct lane *l);
const struct frame *atomic_blank(const struct lane *l, const struct frame *f, struct frame *g,
				 uint8_t *out);
bool atomic_dropped(struct engine *e, const struct lane *l, const struct frame *f);

#endif

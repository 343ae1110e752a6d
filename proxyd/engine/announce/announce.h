/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Storage commands announce their READs.
 *
 * A target READs what an initiator writes: a round trip after the command has crossed the WAN. But
 * the command names the buffer. So the appliance near the initiator READs that buffer itself, over
 * its LAN, as soon as it has accepted the command, and sends the data over the WAN right behind it.
 * The appliance near the target answers the target's READs from that.
 *
 *	initiator --SEND command--> A ~~~~~~~~~~ command ~~~~~~~~~> B --SEND command--> target
 *	initiator <--READ---------- A
 *	initiator --response------> A ~~~~~~~~~~ pushes ~~~~~~~~~~> B <--READ---------- target
 *	                            A <~~~~~~~~~ that READ ~~~~~~~~ B --response------> target
 *	initiator <--SEND response- A <~~~~~~~~~ response ~~~~~~~~~ B <--SEND response- target
 *
 * Two lanes: commands travel in one, of which A is the opener; the target's READs and responses in
 * the other, of which B is the opener, and to which all state here belongs.
 *
 * The target's READ still travels to A, as a request of its lane, in its order and custody, with
 * its own wire PSNs; but nobody waits for it. At A it ends (it is *absorbed*): what was READ for
 * the command answers it. A keeps those answers as if it had just sent them (reads/resp_tx.c), and
 * B takes what it makes of pushes for arrived. So a push that is lost is an answer that is lost,
 * and repaired as such: B names it as missing, A sends it again. Pushes need no repair of their
 * own, no order, no window and no report; the target's READ is what asks for the repair, and it
 * is sent as soon as anybody could know that something is missing.
 *
 * Numbers. Near its requester (B) nothing is renumbered. Near the responder (A) the initiator
 * gets READs that nobody else knows of, and does not get those that are absorbed: what goes to it
 * has another PSN and MSN than on the wire (number.c, number/far_map.c).
 *
 * What it rests on:
 *
 *	- Each end decodes the commands itself, and has seen READs match several (command.c). One
 *	  READ that matches none ends it for the connection.
 *	- A push bears the PSN of its command. When the target's response passes, the command is
 *	  over at that end: its data is dropped, and no more of it is taken.
 *	- A response is not given to the initiator before all READs of ours for commands from before
 *	  it are answered: behind it the buffer may be gone (own_read.c).
 *	- The initiator has never more READs to answer than it takes at a time.
 *	- A does nothing before B has agreed (@announce in reads.h): B then knows that the numbers
 *	  at the initiator differ, and that a lane that A has forgotten cannot be resumed. Its
 *	  consent bears a key, and each push a tag that nobody can make without (push.c).
 *	- Where memory, consent or a number is missing, the target's READ goes to the initiator.
 */
#ifndef LONGHAUL_ENGINE_ANNOUNCE_ANNOUNCE_H
#define LONGHAUL_ENGINE_ANNOUNCE_ANNOUNCE_H

#include "engine/number/far_map.h"
#include "engine/reads/reads.h"
#include "wire/storage.h"

enum announce_phase {
	ANNOUNCE_PROVING, /* whether commands tell what is READ */
	ANNOUNCE_PROVEN,
	ANNOUNCE_OFF, /* they do not */
};

enum announce_why {
	WHY_NONE,
	WHY_OTHER_READ, /* the target READ something else */
	WHY_PASSES,	/* its packets could pass without us, should we be gone */
	WHY_TOO_MANY,	/* commands at a time */
	WHYS,
};

enum command_state {
	COMMAND_PENDING, /* B: pushes came before the command */
	COMMAND_LIVE,	/* its READs go to the initiator (A), or what was pushed answers them (B) */
	COMMAND_LOOSE,	/* it may READ, and nobody knows what */
	COMMAND_QUEUED, /* A: to be READ ahead */
	COMMAND_ASKED,	/* A: some of it has been asked */
	COMMAND_HERE,	/* A: all of it is here */
};

/**
 * struct command - a buffer that an initiator has told its target, one for each of a command.
 * @psn:   of its capsule, on the wire; @part: which buffer of it (part_of())
 * @base, @count: numbers of its packets in @held
 * @read:  bytes of it that the target has READ; @used: B: those that pushes answered
 * @got:   packets that are here; @asked: A: bytes that were asked, or are not to be
 * @seq:   A: place among those that are READ ahead
 * @over:  the response has passed; only its place in the list is left
 * @holed: A: not all of it was READ, or could be kept
 */
struct command {
	uint64_t va;
	struct wire_psn psn;
	uint32_t length, rkey;
	uint32_t base, count, read, used, got, asked, seq;
	uint32_t id;
	uint8_t state, part;
	bool over, holed;
};

/**
 * struct own_read - a READ of ours, toward the initiator. In the order of PSNs.
 * @before: all that goes before it, on the wire
 * @psn, @span: toward the responder; @next: of the next response packet
 * @place:  among all READs that went to the responder
 * @first:  number of its first packet in @held
 * @again:  to be sent (again)
 */
struct own_read {
	struct wire_mark before;
	struct read_range what;
	uint64_t sent, place;
	struct far_psn psn, next;
	uint32_t span, first;
	struct wire_psn command;
	uint8_t part;
	bool again, asked_again;
};

_Static_assert(sizeof(struct command) <= sizeof(struct read_rec), "they share a pool");
_Static_assert(sizeof(struct own_read) <= sizeof(struct read_rec), "they share a pool");

/**
 * struct lane_announce - a page of the pool.
 * @protocol: enum storage_protocol, of the commands
 * @proofs, @misses: commands of which all was READ that was said, READs of something else
 * @commands: struct command; @hint: where the latest push belonged
 * @why: enum announce_why; @told: A: that READs ahead have begun
 * @held:      packets, by their numbers; @end: of the numbers in use
 *
 * A:
 * @far:       the numbers of what goes to the responder
 * @issued:    READs that went to the responder, the target's too
 * @inside:    a message has begun and not ended
 * @own:       struct own_read
 * @absorbed:  struct absorbed (answer.c), in the order of PSNs
 * @nxt:       number of the next packet to push
 * @looked:    PSN of the packet of the lane that was looked at last
 * @barrier_psn, @barrier: the response at that PSN waits for commands up to that place
 * @seq:       place of the latest command to be READ ahead
 * @split:     bytes that the target READs at a time, @most: READs that it had at a time
 */
struct lane_announce {
	uint32_t noted;
	uint8_t phase, proofs, why, protocol;
	bool told;
	uint32_t misses;
	struct mq_list commands, own, absorbed;
	uint32_t hint;
	struct held held;
	uint32_t end;
	struct far_map far;
	uint64_t issued;
	bool inside;
	uint64_t agreed; /* B: since then the numbers agree again, ns; 0: they do not */
	struct wire_psn looked, barrier_psn;
	uint32_t nxt, barrier, seq, split, most;
	struct announce_info info;
};

_Static_assert(sizeof(struct lane_announce) <= POOL_PAGE, "one page");

/** announce_of - the lane's, NULL without any; noted for a change. */
static inline struct lane_announce *announce_of(struct engine *e, const struct lane *l)
{
	const struct lane_reads *x = reads_of(e, l);
	struct lane_announce *y;

	if (!x || x->announce_page == POOL_NONE)
		return NULL;
	y = pool_page_ptr(e->pool, x->announce_page);
	undo_once(e->undo, &y->noted, y, sizeof(*y));
	return y;
}

/* What pushes say of the buffer @i of a command, beside its PSN: both ends must decode it alike. */
static inline uint8_t part_of(enum storage_protocol p, uint32_t i)
{
	return (uint8_t)((p - STORAGE_NVME) << 4 | i);
}

/* command.c: both ends. @fl: the flow of the target's requests, but for announce_capsule() */
/** announce_capsule - the SEND @f was accepted in the lane of commands @fl, as @psn. */
void announce_capsule(struct engine *e, struct flow *fl, const struct frame *f,
		      struct wire_psn psn);
/** announce_response - the target's SEND @f passes. */
void announce_response(struct engine *e, struct flow *fl, const struct frame *f);
/** announce_read - the target READs @r: of which command; NULL if that is not known. */
struct command *announce_read(struct engine *e, struct flow *fl, const struct read_range *r);
struct command *announce_match(struct engine *e, struct lane_announce *y,
			       const struct read_range *r);
/** announce_live - @r is of a command that is under way. */
bool announce_live(struct engine *e, const struct flow *fl, const struct read_range *r);
/** announce_why - why nothing of @fl's lane is READ ahead; NULL when that is not known, or is. */
const char *announce_why(struct engine *e, const struct flow *fl);
/** announce_lossy - it does, and packets that we send over the WAN get lost. */
bool announce_lossy(struct engine *e, const struct flow *fl);
/** announce_stop - nothing is READ ahead any more. */
void announce_stop(struct engine *e, struct flow *fl);
void announce_end(struct engine *e, struct flow *fl);
/** announce_heard - B: what the report @r of progress says of numbers. */
void announce_heard(struct engine *e, struct flow *fl, const struct report *r);
/** announce_settle - B: the numbers agree again for long enough: the lane may end. */
void announce_settle(struct engine *e, struct flow *fl);
/** announce_tell - A: what is to be said of them, into @r. */
void announce_tell(struct engine *e, struct flow *fl, struct report *r);
/** announce_differs - A: what goes to the responder may bear other numbers than on the wire. */
bool announce_differs(struct engine *e, const struct lane *l);
/** announce_numbered - A: READs of ours have gone to the responder. */
bool announce_numbered(struct engine *e, const struct lane *l);

/* own_read.c: A */
/** announce_queue - the command @c is to be READ ahead, if that is possible. */
void announce_queue(struct engine *e, struct flow *fl, struct command *c);
/** announce_run - send READs of ours that are due. True when the port has no room. */
bool announce_run(struct engine *e, struct flow *fl);
/** announce_go_on - where READs of ours wait for a record, look again whether there is one. */
void announce_go_on(struct engine *e, struct flow *fl);
/** announce_waits - some are not answered. */
bool announce_waits(struct engine *e, const struct lane *l);
/** announce_resume - sending goes on at @psn, on the wire. */
void announce_resume(struct engine *e, struct lane *l, struct wire_psn psn);
/** announce_overdue - the responder has been silent for long. */
void announce_overdue(struct engine *e, struct flow *fl);
/** own_answer - the packet @f answers @r, the oldest. */
void own_answer(struct engine *e, struct flow *fl, struct own_read *r, const struct frame *f);

enum announce_turn {
	ANNOUNCE_SEND,
	ANNOUNCE_WAIT, /* until READs of ours are answered */
	ANNOUNCE_SKIP, /* absorbed */
};
/** announce_turn - what to do with @d, the next packet of the lane to be sent. */
enum announce_turn announce_turn(struct engine *e, struct flow *fl, struct pkt *d);

/* number.c: A */
/** announce_sent - the packet @d at nxt was sent, or (@absorbed) need not be. */
void announce_sent(struct engine *e, struct lane *l, const struct pkt *d, bool absorbed);
/** announce_last - the last packet behind @psn that went to the responder, or @psn. */
struct wire_psn announce_last(struct engine *e, struct lane *l, struct wire_psn psn);
enum announce_answer {
	ANSWER_PASS,	/* not for us: *g, in the numbers of the wire */
	ANSWER_DROP,	/* of no use */
	ANSWER_TAKEN,	/* ours; acknowledges all before *m */
	ANSWER_MISSING, /* the responder lacks one of ours, and what comes behind *m */
	ANSWER_REFUSED, /* it refuses one of ours, behind *m */
};
/** announce_answer - what @f, which comes from the responder, is. @buf: FRAME_MAX bytes. */
enum announce_answer announce_answer(struct engine *e, struct flow *fl, const struct frame *f,
				     struct frame *g, uint8_t *buf, struct wire_mark *m);

/* push.c */

/** push_keep - A: the packet @i of the command @c, to be pushed. False without room. */
bool push_keep(struct engine *e, struct flow *fl, struct command *c, uint32_t i,
	       const struct frame *f);
/** push_run - A: a turn on the WAN. True when there is more. */
bool push_run(struct engine *e, struct flow *fl, uint32_t quantum);
/** push_bytes - @len bytes of the command @c from @at on; false when they are not all here. */
bool push_bytes(struct engine *e, const struct flow *fl, const struct lane_announce *y,
		const struct command *c, uint32_t at, uint32_t len, uint8_t *out, uint32_t *xmit);
/** push_spare - A: the @len bytes of @c from @at on go in an answer. True when they are just what
 *  one packet has that has not been pushed yet: it need not be. */
bool push_spare(struct engine *e, const struct flow *fl, struct lane_announce *y,
		const struct command *c, uint32_t at, uint32_t len);
/** push_rx - B: the frame @f, with the opcode of pushes, has come. */
void push_rx(struct engine *e, struct flow *fl, const struct frame *f);
/** push_store - keep the frame of @len bytes at @data under the number @n; NULL without room. */
struct pkt *push_store(struct engine *e, struct lane_announce *y, uint32_t n, const uint8_t *data,
		       uint32_t len, uint32_t busy);
/** push_known - B: the buffer that a push with the header @hdr belongs to; NULL if that is over. */
struct command *push_known(struct engine *e, struct lane_announce *y, const uint8_t *hdr);
/** push_proven - B: @f, a push or parity, is @sane, welcome and the peer's; else it is counted. */
bool push_proven(struct engine *e, const struct flow *fl, const struct frame *f, bool sane);
/** push_tag - the tag of a push, or @parity, with the header @hdr and @len bytes of data. */
uint64_t push_tag(const struct lane *l, const struct lane_reads *x, const uint8_t *hdr,
		  const uint8_t *data, uint32_t len, bool parity);
/* Of pushes, behind the BTH; of parity. In percent of the pool: what A begins to READ, B keeps. */
#define PUSH_HDR    16u
#define PARITY_HDR  24u
#define PUSH_BUSY_A 80u
#define PUSH_BUSY_B 40u /* it must have room for true responses, too */
/** push_numbers - give @c numbers for its packets; false when too many are in use. */
bool push_numbers(struct engine *e, struct lane_announce *y, struct command *c, uint32_t count);
/** push_header - what pushes of @c begin with, for packet or group @i. */
void push_header(uint8_t *hdr, const struct command *c, uint32_t i);

/* parity.c */
/** parity_groups - of a command of @count packets; PARITY_ROWS numbers behind them are for each. */
uint32_t parity_groups(uint32_t count);
/** parity_keep - A: all of @c is here: what repairs losses of it is pushed, too. */
void parity_keep(struct engine *e, struct flow *fl, const struct command *c);
/** parity_rx - B: the frame @f, with the opcode of parity, has come. */
void parity_rx(struct engine *e, struct flow *fl, const struct frame *f);

/* answer.c */
/** answer_absorb - A: the READ @f of the command @c is answered from what is here. */
void answer_absorb(struct engine *e, struct flow *fl, struct command *c, const struct frame *f);
/** answer_anew - A: the READ @f, which had its answer, is asked again. */
void answer_anew(struct engine *e, struct flow *fl, const struct frame *f);
/** answer_push - B: the bytes [@from, @end) of @c have come. */
void answer_push(struct engine *e, struct flow *fl, struct command *c, uint32_t from, uint32_t end);
/** announce_asked - B: the request @f was accepted from the host, as @wire. */
void announce_asked(struct engine *e, struct flow *fl, const struct frame *f, struct wire_psn wire);

#endif

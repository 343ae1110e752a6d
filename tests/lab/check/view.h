/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One lane as one capture shows it: a *book* for each incarnation of the queue pair, with a line
 * for every PSN from the first request seen to the last that was in order. Lines are counted from
 * the first, so PSNs may wrap.
 */
#ifndef LAB_CHECK_VIEW_H
#define LAB_CHECK_VIEW_H

#include "tests/lab/check/trace.h"

#define LINE_EOM      0x01 /* the message ends here */
#define LINE_ANSWERED 0x02 /* waits for an answer with data */
#define LINE_DATA     0x04 /* SEND or WRITE */
#define LINE_GOT      0x08 /* this PSN's answer was seen */
#define LINE_ASKED    0x10 /* a READ was asked again from here */
#define LINE_CHANGED  0x20 /* its answer was seen with different contents */

/**
 * struct line - one PSN.
 * @digest:   of the request; for the PSNs of a READ after its first 0
 * @answer:   digest of the answer's packet, with LINE_GOT; @answer2 of the latest
 * @head:     lines back to the READ that takes this PSN
 * @span:     PSNs that the request takes; 0 within a READ
 * @left:     of its answer's packets not seen yet
 * @msgs:     messages that end up to here
 * @copies:   times it was seen
 * @late:     of these, after it had been acknowledged; @quick: without any cause
 * @dbl:      event of the first such
 * @last, @acked_at: when it was last seen; when it was acknowledged, 0: not yet; @since: it may
 *            have been there since then
 */
struct line {
	uint64_t digest, answer, answer2, last, since, acked_at, va;
	const struct event *ev, *dbl;
	uint32_t head, span, left, msgs, length;
	uint32_t copies, late, quick;
	uint8_t flags, opcode;
};

/* An answer's MSN, judged when the number before the first message is known. */
struct msn_note {
	const struct event *e;
	uint32_t low, high, exact; /* counted from the book's first line; exact: the most that is
				      right, or high */
};

/* Lines in custody: from the first that an appliance's own ACK covered. The requester had sent
 * those below @later by then. */
struct span {
	uint32_t from, end, later;
};

struct book {
	uint32_t base; /* PSN of line 0 */
	struct line *line;
	uint32_t n, cap; /* n: the next expected */
	/* requests */
	uint32_t msg_left, msgs;
	uint8_t msg; /* enum msg_kind */
	bool repeats;
	uint64_t repeat_at;	    /* of the latest repeat, 0: none */
	const struct event *beyond; /* the latest that came after a gap */
	uint32_t *reads;	    /* lines that wait for an answer */
	uint32_t nreads, reads_cap, read_head;
	/* acknowledgements */
	uint32_t acked;	  /* lines that plain ACKs covered */
	uint32_t settled; /* lines that anything settled, for the far side */
	struct msn_note *note;
	uint32_t nnotes, notes_cap;
	bool fatal; /* a fatal NAK was seen: missing packets are then no violation */
	/* near: custody */
	struct span *held;
	uint32_t nheld, held_cap, owed; /* owed: lines acknowledged in custody */
	bool in_custody;
	/* far: causes to repeat */
	uint64_t cause;
	uint32_t cause_from;
};

enum view_role {
	VIEW_BARE, /* hosts by themselves */
	VIEW_NEAR,
	VIEW_FAR,
};

/* A twin: an ACK or NAK that came over the near WAN. */
struct twin {
	uint64_t key, t;
	bool used;
};

struct view {
	struct judge *j;
	struct trace *t;
	uint32_t flow; /* the lane's */
	uint32_t mtu;
	enum view_role role;
	bool judge_double; /* bare: the capture is the requester's own */
	struct book *book;
	uint32_t nbooks, books_cap;
	bool fresh; /* the next request begins a book */
	/* near */
	struct twin *twin;
	uint32_t ntwins;
	bool has_twins, lenient;
	uint64_t *again; /* when appliances sent requests again */
	uint32_t nagain, again_cap;
	uint64_t made;
	/* far: PSNs of the requests that came over the WAN, in order */
	uint32_t *wan;
	uint32_t nwan;
	uint64_t wan_again; /* repeats of what was acknowledged that came so */
};

/** view_run - walk through the trace; the books are then complete. */
void view_run(struct view *v);
void view_exit(struct view *v);

/**
 * view_twins - collect the answers to @v's lane in @from, for view_run() to tell made ACKs from
 * passed ones.
 * @lenient: what the responder says can be seen there even in custody, so an ACK of the appliance's
 * own may have a twin too
 * @far_lan: it is the far LAN, for want of the near WAN
 */
void view_twins(struct view *v, const struct trace *from, bool lenient, bool far_lan);

/** view_repairs - near: note when requests were sent again in @from, the WAN or the far LAN: an ACK
 * to such a
 *  repeat may come through (pass_repeats). */
void view_repairs(struct view *v, const struct trace *from);

/** view_wan - note how often each request came over the WAN, in @from. */
void view_wan(struct view *v, const struct trace *from);

/** view_seals - near: in @from, the WAN, nothing of what was asked in custody has no seal. */
void view_seals(struct view *v, const struct trace *from);

/** custody_answer - near: an ACK or NAK to the requester; @end: the line after those that it
 * covers. Returns
 *  whether it is the appliance's own and says something new. */
bool custody_answer(struct view *v, struct book *b, const struct event *e, uint32_t end);

/** join_views - compare what the two LANs saw of a lane. Either may be NULL. */
void join_views(struct judge *j, struct view *near, struct view *far);

static inline struct book *view_book(const struct view *v)
{
	return v->nbooks ? &v->book[v->nbooks - 1] : NULL;
}

/** book_at - the line of @psn; negative before the first. */
int64_t book_at(const struct book *b, uint32_t psn);

/** book_open_read - the first line whose answer is not complete, or the next expected line. */
uint32_t book_open_read(struct book *b);

#endif

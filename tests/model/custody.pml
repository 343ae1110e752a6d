/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Custody of one lane, as the engine's code has it: safety, with a network that forgets nothing.
 *
 *	host ---> pseudo_responder.c + stream_tx.c ---> stream_rx.c + pseudo_requester.c ---> host
 *	          (A, the opener)           WAN  (B, the acceptor)
 *
 * With -DSINGLE there is no B: pseudo_requester.c runs in A, over the WAN.
 *
 * The network. What was sent once may arrive at any time, any number of times, in any order, or never, for
 * as long as it is not older than OLD packets below the oldest that anybody waits for. That stands for loss,
 * duplication, reordering, all timeouts and all retransmissions at once, so neither queues nor timers need
 * any state: a timer can only put into the network what is there already. The price: nothing is said about
 * progress. That is progress.pml's.
 *
 * Numbers. A mark or a packet is known here by its index in what the host posted, 0 .. N - 1. The appliances
 * see only PSN(index), modulo M, and compare only by before(), after(), within(), which are those of wire/psn.h
 * with M for 2^24. Whatever an appliance keeps, it keeps under the PSN. So a comparison that goes wrong at the
 * wrap goes wrong here too; the index serves the assertions. N is greater than M: PSNs are used again.
 *
 * What stands for what: WIN for WINDOW_SPAN (store/window.h), HW for the host's send queue, TRAIL for MARK_TRAIL, JUMP for
 * JUMP_PSNS (pseudo_responder.c). As there, HW <= TRAIL, HW < JUMP, and HW + WIN + TRAIL does not exceed half the circle.
 * A packet is a message, either WRITE (or SEND) or READ (or any other request that is answered with data), of
 * one PSN; which ones are READs is chosen at the start.
 *
 * Checked, by the numbers of the list in tests/README.md:
 *	1	what was acknowledged to the host is executed, or retained by A, or the lane is in FAULT (check())
 *	2	the frontier is at most what is accepted and retained, and not beyond an unanswered READ (check()); A itself
 *		acknowledges no more than the frontier (pseudo())
 *	3	the responder executes what was posted, each once, in order (responder_rx())
 *	4	A releases only what the responder executed (a_true_ack())
 *	5	nothing is acknowledged after FAULT (tell())
 *
 * Left out: what only costs time or room (pacing, RNR delays, holes beyond count, a full pool, which is a loss to
 * everybody outside), policies that hold the frontier back further, MSNs, a READ's answer of several packets; numbers
 * that get another owner (reuse.pml).
 *
 * With -DFORGER=n a third party makes n frames that would be taken for the hosts' own.
 *
 * A planted fault per rule, BREAK_..., shows that its check can fail; REACH that the end is reached at all.
 */
#ifndef M
#define M 16
#endif
#ifndef N
#define N 18
#endif
#ifndef START
#define START 11 /* PSN of index 0 */
#endif
#ifndef WIN
#define WIN 3
#endif
#ifndef HW
#define HW 2
#endif
#ifndef OLD
#define OLD 2
#endif
#ifndef EVENTS
#define EVENTS 1 /* restarts, losses of a peer, drains, refusals to open: so many in all */
#endif
#ifndef GENS
#define GENS 2 /* generations of the lane */
#endif
#define TRAIL 3
#ifndef JUMP
#define JUMP 3
#endif
#ifdef SINGLE
#define RNET wan /* what the responder can receive from */
#else
#define RNET lan
#endif
#define NONE 255
#define HALF (M / 2)

#define PSN(i) ((START + (i)) % M)
#ifdef BREAK_WRAP
#define before(a, b) (PSN(a) < PSN(b))
#define after(a, b) (PSN(a) > PSN(b))
#else
#define before(a, b) ((PSN(a) + M - PSN(b)) % M >= HALF)
#define after(a, b) ((PSN(a) + M - PSN(b)) % M < HALF && PSN(a) != PSN(b))
#endif
#define within(x, from, end) ((PSN(x) + M - PSN(from)) % M < (PSN(end) + M - PSN(from)) % M)

#define only(i) (1 << (i))
#define has(set, i) (((set) >> (i)) & 1)
#define is_read(i) has(reads, i)
#define max(a, b) ((a) > (b) -> (a) : (b))
#define raise(v, x) v = max(v, x)

#ifdef SINGLE
#define NEED_SENT(x) && within(x, a_una, a_epsn)
#else
#define NEED_SENT(x)
#endif
#ifdef STRICT_READ
/* the letter of near/unseen.c: answered_unseen() goes by time alone. A READ whose answer was lost may count as answered */
#define UNSEEN(x) true
#else
#define UNSEEN(x) (has(ans_lan, x))
#endif

mtype = { WATCH, OPENING, HELD, DRAIN, FAULT };

int reads;		/* which of the posted are READs */

/* the host that requests: [h_una, h_max) is outstanding */
byte h_una, h_max;
bool h_err;

/* A: enum lane_state and the marks of struct lane */
mtype a_state = WATCH;
byte a_gen, a_start, a_frontier, a_una, a_epsn, a_told, a_overlap;
bool a_start_acked, a_accepted, a_reopen;
byte a_slot[M];		/* by PSN: index + 1 of what is retained */
int a_rec;		/* unanswered READs */
byte a_skipped;		/* lane_skip() jumped to here */
byte w_una = NONE, w_epsn = NONE; /* as watched before it opened */

/* B */
bool b_on, b_ref;
byte b_gen, b_start, b_una, b_epsn, b_overlap, b_ref_at;
byte b_slot[M];
int b_rec, b_done;	/* READs waiting, answered before an earlier one */
byte b_passed;		/* as watched */

/* the host that responds */
byte r_exec;		/* ePSN */
bool r_err;

/* in the network: indices that have been sent once */
int wan, lan;		/* requests A to B, B to the responder */
int ans_wan, ans_lan;	/* answers B to A, A to the host */
byte ack_wan;		/* genuine ACKs and NAKs that B let pass: of all below */
byte ack_lan;		/* what was acknowledged to the host, by whomever: all below */
bool fatal_lan;		/* a fatal NAK to the host */
byte rep_gen, rep_una, rep_ref_at; /* PROGRESS: what B can have said so far */
bool rep_ref, ever_fault;
byte close_gen;		/* CLOSE by the opener of this generation */
byte events = EVENTS;
#ifdef FORGER
byte forged;		/* so many of FORGER in all */
#endif
bool crashed;

byte i, k, lo, hi, m;	/* scratch, always 0 between two events */

/* The oldest that is still under way. */
#define oldest(a, b) ((a) < (b) -> (a) : (b))
#define waiting (a_state == WATCH || a_state == FAULT -> oldest(h_una, r_exec) : oldest(h_una, a_una))
#define floor (waiting > OLD -> waiting - OLD : 0)

/* first index >= from in set, N if none */
inline first(set, from, out)
{
	out = from;
	do
	:: out < N && !has(set, out) -> out++
	:: else -> break
	od
}

/* Success that travels to the host: everything below mark. */
inline tell(mark)
{
	assert(!ever_fault || mark <= ack_lan);	/* 5 */
	raise(ack_lan, mark);
}

/* The same, said by A itself. */
inline pseudo(mark)
{
	assert(!before(a_frontier, mark));		/* 2 */
	tell(mark)
}

inline check()
{
	k = r_exec;
	do
	:: k < ack_lan ->			/* 1 */
		assert(ever_fault || (a_state != WATCH && a_slot[PSN(k)] == k + 1));
		k++
	:: else -> break
	od;
	if
	:: a_state != WATCH && a_state != FAULT ->	/* 2 */
		assert(a_frontier <= a_epsn);
		k = a_una;
		do
		:: k < a_frontier -> assert(a_slot[PSN(k)] == k + 1); k++
		:: else -> break
		od;
		k = max(h_una, a_start);
		do
		:: k < a_frontier ->
			/* of what the host sent past A before the lane was agreed, the ACK settles READs, too */
			assert(!is_read(k) || has(ans_lan, k) || k < a_overlap || k < b_overlap || k < a_skipped);
			k++
		:: else -> break
		od
	:: else
	fi;
	k = 0
}

/* ---- A: marks ---- */

inline a_forget()
{
	k = 0;
	do
	:: k < M -> a_slot[k] = 0; k++
	:: else -> break
	od;
	a_rec = 0; k = 0
}

inline a_reset() /* lane_reset(): WATCH with nothing retained */
{
	a_forget();
	a_state = WATCH;
	close_gen = a_gen;
	a_start = 0; a_frontier = 0; a_una = 0; a_epsn = 0; a_told = 0; a_overlap = 0; a_skipped = 0; a_start_acked = 0; a_accepted = 0; a_reopen = 0;
	w_una = NONE; w_epsn = NONE
}

inline a_fault() /* lane_fault() */
{
	if
	:: !a_start_acked || !before(a_una, a_frontier) -> a_reset()
	:: else ->
		a_state = FAULT;
		ever_fault = 1;
		close_gen = a_gen;
		a_forget();
		a_una = a_epsn
	fi
}

/* responder_advance(): the least of all limits */
inline a_advance()
{
	if
	:: a_state != FAULT && a_state != WATCH && a_start_acked ->
		lo = a_epsn;
		first(a_rec, 0, k);
#ifndef BREAK_READ_BARRIER
		if
		:: k < N && before(k, lo) -> lo = k
		:: else
		fi;
#endif
#ifndef BREAK_PEER_AGREES
		if
		:: a_state == OPENING && before(a_una, lo) -> lo = a_una
		:: else
		fi;
#endif
		if
		:: after(lo, a_frontier) ->
			a_frontier = lo;
			/* an ACK never bears the PSN of a READ */
			if
			:: !is_read(a_frontier - 1) -> a_told = a_frontier; pseudo(a_frontier)
			:: else
			fi
		:: else
		fi;
		lo = 0; k = 0
	:: else
	fi
}

/* responder_true_ack(): the responder has acknowledged everything below mark */
inline a_true_ack(mark)
{
	if
	:: after(mark, a_una) ->
		assert(mark <= r_exec);		/* 4 */
		do
		:: before(a_una, mark) -> a_slot[PSN(a_una)] = 0; a_una++
		:: else -> break
		od;
		if
		:: before(a_epsn, a_una) -> a_epsn = a_una; a_skipped = a_una
		:: else
		fi;
		/* marks that nothing moves follow */
		if
		:: a_una > TRAIL && before(a_start, a_una - TRAIL) ->
			a_start = a_una - TRAIL;
			if
			:: before(a_told, a_start) -> a_told = a_start
			:: else
			fi;
			if
			:: before(a_overlap, a_start) -> a_overlap = a_start
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	if
	:: after(a_una, a_start) -> a_start_acked = 1
	:: else
	fi;
	a_advance();
	a_check_drained()
}

inline a_check_drained()
{
	if
	:: a_state == DRAIN && a_una == a_epsn ->
		a_advance();
		a_reset()
	:: else
	fi
}

/* responder_refused() */
inline a_refused(at)
{
	a_advance();
	if
#ifdef BREAK_REFUSED
	:: !a_start_acked -> a_fault()
#else
	:: before(at, a_frontier) || !a_start_acked -> a_fault()
#endif
	:: else ->
		fatal_lan = 1;
		a_reset()
	fi
}

/* ---- A: requests ---- */

inline a_pass(x)
{
	wan = wan | only(x)
}

inline a_open(x)
{
	a_gen++;
	a_start = x; a_frontier = x; a_una = x; a_epsn = x; a_told = x;
#ifdef BREAK_START_ACKED
	a_start_acked = 1;
#else
	a_start_acked = (w_una == x);
#endif
	a_overlap = (w_epsn != NONE && w_epsn > x -> w_epsn : x);
	w_una = NONE; w_epsn = NONE;
#ifdef SINGLE
	a_state = HELD;
	a_accepted = 1
#else
	a_state = OPENING
#endif
}

inline a_send(x)
{
	if
	:: a_slot[PSN(x)] && !a_reopen ->
		wan = wan | only(a_slot[PSN(x)] - 1);
#ifdef BREAK_RELEASE_AT_SENT
		a_slot[PSN(x)] = 0
#endif
	:: else
	fi
}

inline a_in_order(x)
{
	if
	:: a_state == DRAIN	/* dropped: the host asks again */
	:: a_state != DRAIN && a_una != a_epsn && (PSN(a_epsn) + 1 + M - PSN(a_una)) % M > WIN /* no room */
	:: else ->
#ifdef BREAK_ACK_BEFORE_COPY
		/* counted in, acknowledged, and then the copy turns out bad */
		if
		:: a_slot[PSN(x)] = x + 1
		:: skip
		fi;
#else
		a_slot[PSN(x)] = x + 1;
#endif
		if
		:: is_read(x) -> a_rec = a_rec | only(x)
		:: else
		fi;
		a_epsn++;
		a_advance();
		a_send(x)
	fi
}

inline a_duplicate(x)
{
	if
	:: a_state == OPENING || (!a_start_acked && before(x, a_start)) -> a_pass(x)
	:: else ->
		/* answered_unseen(): executed, and the host goes on behind it after a time */
		first(a_rec, 0, k);
		if
		:: k < N && !before(x, k + 1) && !before(a_una, k + 1) && UNSEEN(k) -> a_rec = a_rec & ~only(k)
		:: else
		fi;
		k = 0;
		if
#ifdef BREAK_FORWARD_DUP
		:: !is_read(x) ->
#else
		:: !is_read(x) && before(x, a_told) && before(x, a_una) ->
#endif
			/* past custody only what the responder is known to have */
			assert(x < r_exec && a_slot[PSN(x)] != x + 1);
			a_pass(x)
		:: is_read(x) && before(x, a_una) -> a_pass(x)
		:: else /* acknowledge once more, or the answer is on its way */
		fi
	fi
}

/* jumped(): further from what is expected than the host can have sent, as far as A knows */
#ifdef BREAK_JUMP
#define jump(x) false
#else
#define jump(x) ((PSN(x) + M - PSN(a_epsn)) % M >= JUMP && (PSN(x) + M - PSN(a_epsn)) % M < M - JUMP - WIN)
#endif

inline a_rx(x)
{
	if
	:: a_state != WATCH && jump(x) ->
		if
		:: a_reset(); a_pass(x)
		:: skip /* dropped until it is sure */
		fi
	:: a_state == FAULT && !jump(x) -> fatal_lan = 1
	:: a_state == WATCH ->
		w_epsn = (w_epsn == NONE || w_epsn < x + 1 -> x + 1 : w_epsn);
		a_pass(x)
	:: a_state != WATCH && a_state != FAULT && !jump(x) ->
		if
		:: PSN(x) == PSN(a_epsn) -> a_in_order(x)
		:: before(x, a_epsn) -> a_duplicate(x)
		:: else -> /* a gap; a sequence NAK acknowledges what is before it */
			if
			:: a_state == OPENING -> a_pass(x)
#ifdef BREAK_GAP_NAK
			:: a_state != OPENING && a_state != DRAIN -> pseudo(a_epsn)
#else
			:: a_state != OPENING && a_state != DRAIN && a_start_acked && a_frontier == a_epsn -> pseudo(a_frontier)
#endif
			:: else
			fi
		fi
	fi;
	check()
}

/* ---- A: what comes back ---- */

/* lane_old_response(), for an ACK (mark: all below) and a sequence NAK alike */
inline a_old_response(mark, is_nak)
{
	tell(mark);
	if
	:: !is_nak && !before(mark, a_start) ->
		if
		:: after(mark, a_told) -> a_told = mark
		:: else
		fi;
		a_start_acked = 1;
		a_advance()
	:: is_nak && !a_start_acked && before(mark, a_start) ->
		a_reset();
		w_una = mark
	:: else
	fi
}

#ifdef SINGLE
inline bound_by_read()	/* cut hi down to the first unanswered READ; the overlap settles itself */
{
	first(a_rec, 0, k);
	do
	:: k < N && before(k, a_overlap) && !after(k + 1, hi) ->
		a_rec = a_rec & ~only(k);
		first(a_rec, 0, k)
	:: else -> break
	od;
	if
	:: k < N && before(k, hi) -> hi = k
	:: else
	fi;
	k = 0
}
#endif

/* a genuine ACK (everything below mark; it bears mark - 1) or sequence NAK (it bears mark) */
inline a_rx_ack(mark, is_nak)
{
	if
	:: a_state == FAULT
	:: a_state == WATCH ->
		tell(mark);
		w_una = (w_una == NONE || w_una < mark -> mark : w_una)
	:: a_state != FAULT && a_state != WATCH ->
		lo = (is_nak -> mark : mark - 1);
#ifdef SINGLE
		if
		:: before(lo, a_start) -> lo = 0; a_old_response(mark, is_nak)
		:: !before(lo, a_start) && !within(lo, a_una, (after(a_overlap, a_epsn) -> a_overlap : a_epsn)) ->
			if
			:: before(lo, a_una) -> tell(mark)
			:: else
			fi;
			lo = 0
		:: else ->
			lo = 0;
			hi = mark;
			bound_by_read();
			i = hi;
			hi = 0;
			a_true_ack(i)
		fi
#else
		if
		:: a_state == OPENING || before(lo, a_start) -> lo = 0; a_old_response(mark, is_nak)
		:: a_state != OPENING && !before(lo, a_start) && before(lo, a_una) -> lo = 0; tell(mark)
		:: else -> lo = 0 /* the acceptor will report it */
		fi
#endif
	fi;
	i = 0;
	check()
}

inline pass_answer(x)
{
	ans_lan = ans_lan | only(x);
	assert(x < r_exec)
}

inline a_rx_answer(x)
{
	if
	:: a_state == FAULT
	:: a_state == WATCH -> pass_answer(x)
	:: a_state != FAULT && a_state != WATCH ->
		pass_answer(x);
		if
		:: !before(x, a_start) && has(a_rec, x) NEED_SENT(x) ->
#ifdef SINGLE
			/* it acknowledges what was asked before it, and itself if nothing before it waits */
			first(a_rec, 0, k);
			hi = x;
			if
			:: k < x -> hi = k
			:: else -> hi = x + 1
			fi;
			k = 0;
			a_rec = a_rec & ~only(x);
			if
			:: after(x + 1, a_told) -> a_told = x + 1
			:: else
			fi;
			i = hi;
			hi = 0;
			a_true_ack(i)
#else
			a_rec = a_rec & ~only(x);
			if
			:: after(x + 1, a_told) -> a_told = x + 1
			:: else
			fi;
			a_advance();
			a_check_drained()
#endif
		:: else
		fi
	fi;
	i = 0;
	check()
}

/* ---- B ---- */

inline b_forget()
{
	k = 0;
	do
	:: k < M -> b_slot[k] = 0; k++
	:: else -> break
	od;
	k = 0;
	b_on = 0; b_ref = 0; b_ref_at = 0; b_gen = 0; b_start = 0; b_una = 0; b_epsn = 0; b_overlap = 0;
	b_rec = 0; b_done = 0
}

/* What it has to say, it may have said. */
inline b_report()
{
	if
#ifdef BREAK_RELEASE_AT_PEER
	:: b_on -> rep_gen = b_gen; rep_una = b_epsn; rep_ref = b_ref; rep_ref_at = b_ref_at
#else
	:: b_on -> rep_gen = b_gen; rep_una = b_una; rep_ref = b_ref; rep_ref_at = b_ref_at
#endif
	:: else
	fi
}

inline b_open(gen, from)
{
	lo = (b_on -> b_epsn : b_passed);
	b_forget();
	b_on = 1; b_gen = gen; b_start = from; b_una = from; b_epsn = from;
	if
	:: b_overlap = from	/* it has not seen them all */
	:: lo > from -> b_overlap = lo
	fi;
	lo = 0;
	b_passed = 0;
	b_report()
}

inline b_deliver()
{
	do
	:: b_slot[PSN(b_epsn)] ->
		k = b_slot[PSN(b_epsn)] - 1;
		if
		:: is_read(k) -> b_rec = b_rec | only(k)
		:: else
		fi;
		lan = lan | only(k);
		b_epsn++
	:: else -> break
	od;
	k = 0
}

inline b_rx(x)
{
	if
	:: b_on && before(x, b_epsn) ->
		if
		:: before(x, b_start) || before(x, b_una) -> lan = lan | only(x)
		:: else
		fi
	:: b_on && !before(x, b_epsn) && !b_ref && (PSN(x) + M - PSN(b_una)) % M < WIN + HW ->
		if
#ifdef BREAK_RELEASE_AT_PEER
		:: !b_slot[PSN(x)] -> b_slot[PSN(x)] = x + 1; b_deliver(); b_report()
#else
		:: !b_slot[PSN(x)] -> b_slot[PSN(x)] = x + 1; b_deliver()
#endif
		:: else
		fi
	:: else
	fi
}

inline b_true_ack(mark)
{
	if
	:: after(mark, b_una) ->
		assert(mark <= r_exec);
		do
		:: before(b_una, mark) -> b_slot[PSN(b_una)] = 0; b_una++
		:: else -> break
		od;
		if
		:: before(b_epsn, b_una) -> b_epsn = b_una; b_deliver()
		:: else
		fi;
		if
		:: b_una > TRAIL && before(b_start, b_una - TRAIL) ->
			b_start = b_una - TRAIL;
			if
			:: before(b_overlap, b_start) -> b_overlap = b_start
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	b_report()
}

inline b_bound_by_read()
{
	first(b_rec, 0, k);
	do
	:: k < N && before(k, b_overlap) && !after(k + 1, hi) ->
		b_rec = b_rec & ~only(k);
		b_trim();
		first(b_rec, 0, k)
	:: else -> break
	od;
	if
	:: k < N && before(k, hi) -> hi = k
	:: else
	fi;
	k = 0
}

/* forget the answered at the head; i: end of the last of them, or NONE */
inline b_trim()
{
	first(b_rec, 0, k);
	i = NONE;
	do
	:: k < N && has(b_done, k) ->
		b_rec = b_rec & ~only(k);
		b_done = b_done & ~only(k);
		i = k + 1;
		first(b_rec, 0, k)
	:: else -> break
	od;
	k = 0
}

inline b_rx_ack(mark, is_nak)
{
	lo = (is_nak -> mark : mark - 1);
	if
	:: before(lo, b_start) -> raise(ack_wan, mark)
	:: !before(lo, b_start) && !within(lo, b_una, (after(b_overlap, b_epsn) -> b_overlap : b_epsn)) ->
		if
		:: before(lo, b_una) -> raise(ack_wan, mark)
		:: else
		fi
	:: else ->
		hi = mark;
		b_bound_by_read();
		b_true_ack(hi)
	fi;
	lo = 0; hi = 0; i = 0
}

inline b_rx_answer(x)
{
	if
	:: before(x, b_start) || !has(b_rec, x) || !within(x, b_una, b_epsn) -> ans_wan = ans_wan | only(x)
	:: else ->
		if
		:: has(b_done, x) /* again */
		:: else ->
			ans_wan = ans_wan | only(x);
			b_done = b_done | only(x);
			hi = x;
			if
			:: after(x, b_una) -> b_bound_by_read()
			:: else
			fi;
			first(b_rec, 0, k);
			if
			:: k == x -> b_trim(); hi = i
			:: else
			fi;
			k = 0; i = 0;
			b_true_ack(hi)
		fi
	fi;
	hi = 0; i = 0
}

/* ---- the responder ---- */

inline responder_rx(x)
{
	if
	:: r_err
	:: !r_err && PSN(x) == PSN(r_exec) ->
		assert(x == r_exec);		/* 3 */
#ifdef FATAL
		if
		:: x >= FATAL && !is_read(x) -> r_err = 1
		:: r_exec++
		fi
#else
		r_exec++
#endif
	:: else /* a duplicate is answered again, after a gap it complains: all that is in the network already */
	fi
}

/* ---- the host ---- */

inline host_rx_ack(mark)	/* of everything below mark; it bears mark - 1 */
{
	/* strict: nothing past an unanswered READ */
	first(reads, h_una, k);
	h_una = (k < mark -> k : mark);
	k = 0
}

inline host_rx_answer(x)
{
	first(reads, h_una, k);
	if
	:: k == x -> h_una = x + 1
	:: else
	fi;
	k = 0
}

/* any index in [from, end), which is not empty */
#define pick(from, end) \
	i = from; \
	do \
	:: i + 1 < (end) -> i++ \
	:: break \
	od

#ifdef SINGLE
#define b_sees()
#else
#define b_sees() \
	lan = lan | wan; \
	do \
	:: (wan >> b_passed) && b_passed < N -> b_passed++ \
	:: else -> break \
	od;
#endif

/*
 * What nobody would take notice of need not be remembered: requests that the responder has had and B, or a B that
 * begins anew, does not wait for. And where there is no B, nothing stops between A and the responder.
 */
#define b_waits (b_on -> b_epsn : (a_state == WATCH || a_state == FAULT -> r_exec : a_una))
#define prune() \
	if \
	:: !b_on -> /* it passes at once */ \
		b_sees() \
		raise(ack_wan, r_exec); \
		ans_wan = ans_wan | (reads & (only(r_exec) - 1)) \
	:: else \
	fi; \
	lan = lan & ~(only(r_exec) - 1); \
	hi = b_waits; \
	hi = oldest(hi, r_exec); \
	wan = wan & ~(only(hi) - 1); \
	hi = floor; \
	ans_wan = ans_wan & ~(only(hi) - 1); \
	hi = 0

init {
	/* which are READs: none, single ones, neighbours, the first after the wrap */
	atomic {
		if
		:: reads = 0
#ifndef NO_READS
		:: reads = only(1) | only(5) | only(13)
		:: reads = only(2) | only(3) | only(6) | only(8) | only(10) | only(15)
#endif
		fi;
#ifndef HANDOVER
		/* from the beginning */
		w_una = 0;
		a_open(0);
#ifndef SINGLE
		a_state = HELD;
		a_accepted = 1;
		b_passed = 0;
		b_open(1, 0);
#endif
#else
		b_passed = 0;
#endif
	};
end:	do
#ifdef REACH
	:: h_una == N && a_una == N -> assert(false)
#endif
	/* the host posts; and sends again whatever is outstanding, or what it sent before arrives late */
	:: atomic { h_max < N && h_max - h_una < HW && !h_err -> h_max++ }
	:: atomic { floor < h_max -> pick(floor, h_max); m = i; i = 0; a_rx(m); prune(); m = 0 }
#ifdef HANDOVER
	/* lane_may_open(): at the oldest not truly acknowledged, or at the newest packet */
	:: atomic { a_state == WATCH && a_gen < GENS && w_una != NONE && w_una >= h_una && w_una < h_max &&
		!is_read(w_una) -> m = w_una; a_open(m); a_rx(m); m = 0 }
	:: atomic { a_state == WATCH && a_gen < GENS && w_una != NONE && h_max > h_una && !is_read(h_max - 1) &&
		w_epsn != NONE && w_epsn + 1 == h_max -> m = h_max - 1; w_epsn = h_max; a_open(m); a_rx(m); m = 0 }
#endif
#ifdef BREAK_ACK_AFTER_FAULT
	:: atomic { a_state == FAULT && ack_lan < h_max -> tell(ack_lan + 1) }
#endif
	/* genuine ACKs and NAKs at A */
	:: atomic { floor + 1 <= ack_wan -> pick(floor + 1, ack_wan + 1); m = i; i = 0;
		if
		:: true -> a_rx_ack(m, 0)
		:: true -> a_rx_ack(m, 1)
		fi;
		prune(); m = 0 }
	/* answers at A */
	:: atomic { ans_wan -> first(ans_wan, 0, i); do
		:: (ans_wan >> (i + 1)) -> i++; first(ans_wan, i, k); i = k; k = 0
		:: break
		od; m = i; i = 0; a_rx_answer(m); prune(); m = 0 }
	/* the responder's, at B; in single mode they are on the WAN at once */
#ifndef SINGLE
	:: atomic { b_on && floor + 1 <= r_exec -> pick(floor + 1, r_exec + 1); m = i; i = 0;
		if
		:: true -> b_rx_ack(m, 0)
		:: true -> b_rx_ack(m, 1)
		fi; m = 0 }
	:: atomic { b_on && floor < r_exec && (reads >> floor) -> pick(floor, r_exec); m = i; i = 0;
		if
		:: is_read(m) -> b_rx_answer(m)
		:: else
		fi; m = 0 }
	/* requests at B, at the responder */
	:: atomic { b_on && wan -> first(wan, 0, i); do
		:: (wan >> (i + 1)) -> i++; first(wan, i, k); i = k; k = 0
		:: break
		od; m = i; i = 0; b_rx(m); prune(); m = 0 }
	/* reports at A: the newest, or an older one that is still news */
	:: atomic { a_accepted && !a_reopen && a_state != WATCH && a_state != FAULT && rep_gen == a_gen &&
		(rep_una != a_una || rep_ref) ->
		if
		:: m = rep_una
		:: rep_una > a_una -> m = a_una + 1
		fi;
		a_true_ack(m);
		if
		:: rep_ref && m == rep_una && a_state != WATCH -> m = rep_ref_at; a_refused(m)
		:: else
		fi;
		check(); prune(); m = 0 }
	/* OPEN and ACCEPT */
	:: atomic { (a_state == OPENING || a_reopen) && (!b_on || b_gen != a_gen) -> m = (a_reopen -> a_una : a_start);
		b_open(a_gen, m); m = 0; crashed = 0 }
	:: atomic { b_on && b_gen == a_gen && (!a_accepted || a_reopen) && a_state != WATCH && a_state != FAULT ->
		a_accepted = 1;
		if
		:: a_reopen -> /* all from the last true ACK on is sent again */
			a_reopen = 0;
			m = a_una;
			do
			:: before(m, a_epsn) -> a_send(m); m++
			:: else -> break
			od;
			m = 0
		:: else
		fi;
		if
		:: a_state == OPENING -> a_state = HELD
		:: else
		fi;
		a_advance(); check() }
	/* CLOSE */
	:: atomic { b_on && b_gen == close_gen -> b_passed = b_epsn; b_forget(); prune() }
	/* B forgets everything; A learns it some time */
	:: atomic { events && b_on && a_gen < GENS -> events--; b_forget(); crashed = 1; prune() }
	:: atomic { crashed && (a_state == HELD || a_state == DRAIN) && !a_reopen && a_gen < GENS ->
		a_gen++; a_reopen = 1 }
	/* B is lost for good, or the responder is silent for too long */
	:: atomic { events && a_state == HELD -> events--; a_fault(); check() }
	:: atomic { events && b_on && !b_ref && before(b_una, b_epsn) -> events--;
		b_ref = 1; b_ref_at = b_una; b_report() }
	/* the responder's fatal NAK */
	:: atomic { r_err && b_on && !b_ref && within(r_exec, b_una, (after(b_overlap, b_epsn) -> b_overlap : b_epsn)) ->
		m = r_exec; hi = m; b_bound_by_read(); b_true_ack(hi); hi = 0; i = 0; b_ref = 1; b_ref_at = m; b_report(); m = 0 }
	:: atomic { r_err && !b_on && !fatal_lan -> fatal_lan = 1 }
	/* the peer refuses */
	:: atomic { events && a_state == OPENING -> events--; a_reset(); check() }
#else
	:: atomic { events && a_state == HELD && before(a_una, a_epsn) -> events--; m = a_una; a_refused(m); check(); m = 0 }
	:: atomic { r_err && a_state == HELD && within(r_exec, a_una, (after(a_overlap, a_epsn) -> a_overlap : a_epsn)) ->
		m = r_exec; hi = m; bound_by_read(); i = hi; hi = 0; a_true_ack(i); i = 0;
		if
		:: a_state != WATCH -> a_refused(m)
		:: else
		fi;
		check(); m = 0 }
	:: atomic { r_err && a_state == WATCH && !fatal_lan -> fatal_lan = 1 }
#endif
	:: atomic { RNET -> first(RNET, 0, i); do
		:: (RNET >> (i + 1)) -> i++; first(RNET, i, k); i = k; k = 0
		:: break
		od; m = i; i = 0; responder_rx(m); prune(); m = 0 }
#ifdef FORGER
	/*
	 * A third party on A's LAN, with requests of any PSN but the next: those that look like a jump let go of a
	 * lane that owes nothing, and those before the next are repetitions, which past custody pass.
	 */
	:: atomic { forged < FORGER && a_state != WATCH && a_state != FAULT -> forged++;
		if
#ifdef BREAK_OWES
		:: true -> a_reset()
#else
		:: a_una == a_epsn -> a_reset()
#endif
		:: skip
		fi;
		check(); prune() }
	/* and on the WAN, in the responder's name: an ACK of anything, which a pair of appliances does not need */
	:: atomic { forged < FORGER && a_state == HELD -> forged++;
#ifdef BREAK_FORGED_ACK
		pick(a_una, a_epsn + 1); m = i; i = 0; a_true_ack(m); m = 0;
#endif
		check(); prune() }
#endif
	/* the operator's wish */
	:: atomic { events && a_state == HELD -> events--; a_state = DRAIN; a_check_drained(); check() }
	/* the host */
	:: atomic { !h_err && h_una < ack_lan && h_una < h_max -> pick(h_una + 1, (ack_lan < h_max -> ack_lan : h_max) + 1);
		m = i; i = 0; host_rx_ack(m); prune(); m = 0 }
	:: atomic { !h_err && (ans_lan >> h_una) -> first(ans_lan, h_una, i); m = i; i = 0; host_rx_answer(m); prune(); m = 0 }
	:: d_step { fatal_lan && !h_err && h_una < h_max -> h_err = 1 }
	od
}

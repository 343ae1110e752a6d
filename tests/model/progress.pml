/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Progress of a held lane under fair loss: liveness, with small queues and timers.
 *
 *	host --h2a--> A: pseudo_responder.c, stream_tx.c --a2b--> B: stream_rx.c, pseudo_requester.c --b2r--> responder
 *	host <--a2h-- A <--------------------------b2a---- B <-------------------------r2b---- responder
 *
 * Fair loss. Any packet and any report may be lost, but at most LOSSES between two steps forward of the host: what is
 * sent again often enough arrives. Then there must be no cycle in which the host never gets further (spin's
 * non-progress cycles), and no end: the host never stops posting. Losses go on for ever in such a run, and PSNs go
 * round and round.
 *
 * LANs are faster than the WAN: what is under way on them arrives before anything else happens.
 *
 * Timers. One fires only when nothing is under way and nobody has anything to send: it is longer than any round
 * trip. Which one is free, but every armed timer fires once before any fires again: the host's, A's loss timer, B's
 * loss timer. An engine's timeouts double up to some seconds, so they all come in the end.
 *
 * Packets are messages of one PSN; which are READs is fixed by the PSN (READS). PSNs are modulo M here and compare
 * as in wire/psn.h; nobody knows anything else. Queues are first in, first out, and answers come before a report
 * (custody.pml has reordering); a full one loses for nothing, as switches do. Reports bear the whole state of B; a newer one takes the place of an older one.
 *
 * What is simplified: retry counts (the host asks for ever), RNR, pacing, room, damage; A sends again by its timer
 * only, not on a report's word; every request asks for an ACK. The host is a strict one: at an ACK past an unanswered
 * READ it starts again from the READ, but only once before its timer fires (RETRIES: so often). With RESTARTS B forgets everything, so often in a run, and A learns it.
 *
 * Each BREAK_... takes a rule away that progress needs. RETRIES asserts that no host starts so often from a READ at LAN
 * speed.
 */
#define M 8
#define HALF 4
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef READS
#define READS 4 /* a bit per PSN */
#endif
#define HW 2	/* the host's send queue */
#define WIN 2	/* custody */
#define NONE 255

#define next(a) (((a) + 1) % M)
#define prev(a) (((a) + M - 1) % M)
#define dist(a, b) (((a) + M - (b)) % M)
#define before(a, b) (dist(a, b) >= HALF)
#define after(a, b) (dist(a, b) < HALF && (a) != (b))
#define within(x, from, end) (dist(x, from) < dist(end, from))
#define only(p) (1 << (p))
#define has(set, p) (((set) >> (p)) & 1)
#define is_read(p) has(READS, p)

mtype = { ACK, NAK, ANSWER };	/* ACK: bears the PSN acknowledged; NAK: the one expected */

chan h2a = [HW] of { byte };
chan a2h = [2] of { mtype, byte };
chan a2b = [2] of { byte };
chan b2a = [2] of { mtype, byte };
chan b2r = [2] of { byte };
chan r2b = [2] of { mtype, byte };

byte losses;			/* since the host's latest step */
bool moved;			/* it has just made one */

/* host */
byte h_una, h_nxt;
bool h_again;
#ifdef RETRIES
byte h_tries;
#endif

/* A; @a_reached: B is known to have all below; @a_dup_psn: a READ that the host has asked again, since before the host's last timeout or not */
byte a_frontier, a_acked, a_una, a_reached, a_nxt, a_epsn, a_dup_psn = NONE;
bool a_nak_due, a_nak_sent, a_reopen, a_dup_old;
byte a_rec;			/* READs without an answer */

/* B */
bool b_on = true;
byte b_una, b_nxt, b_high, b_epsn, b_have, b_rec;
bool b_probing;

/* reports: PROGRESS, OPEN, ACCEPT; B has restarted and A does not know */
bool rep, open_out, accept_out, crashed;
byte rep_una, rep_epsn;
byte restarts = RESTARTS;

/* responder */
byte r_exp;
bool r_naked;

/* timers that have fired in this round */
bool t_h, t_a, t_b;

mtype w;			/* scratch, 0 between two events */
byte p, q, x;
bool force;

/* It is sent, or lost. */
inline put(c, x)
{
	if
	:: nfull(c) -> c!x
	:: full(c)
	:: losses < LOSSES -> losses++
	fi
}

inline put2(c, kind, x)
{
	if
	:: nfull(c) -> c!kind, x
	:: full(c)
	:: losses < LOSSES -> losses++
	fi
}

inline raise_flag(flag)
{
	if
	:: flag = 1
	:: losses < LOSSES -> losses++
	fi
}

/* ---- host ---- */

/* the host knows all below q to be done */
inline h_step()
{
	if
	:: after(q, h_una) ->
		h_una = q;
		moved = 1;
		h_again = 0;
#ifdef RETRIES
		h_tries = 0;
#endif
		if
		:: before(h_nxt, h_una) -> h_nxt = h_una
		:: else
		fi
	:: else
	fi
}

inline h_rx(kind, x)
{
	if
	:: kind == ANSWER ->
		if
		:: x == h_una && is_read(x) -> q = next(x); h_step()
		:: else
		fi
	:: else ->
		/* everything below p; nothing from an unanswered READ on */
		p = (kind == ACK -> next(x) : x);
		if
		:: after(p, h_una) && dist(p, h_una) <= HW ->
			q = h_una;
			do
			:: q != p && !is_read(q) -> q = next(q)
			:: else -> break
			od;
			h_step();
			if
			:: q != p && !h_again -> h_nxt = q; h_again = 1
#ifdef RETRIES
			:: q != p && h_again -> h_nxt = q; h_tries++; assert(h_tries < RETRIES)
#endif
			:: else
			fi
		:: else
		fi;
		if
		:: kind == NAK && p == h_una -> h_nxt = h_una
		:: else
		fi
	fi;
	p = 0; q = 0
}

/* ---- A ---- */

inline a_flush()
{
	/* responder_advance() */
	do
	:: before(a_frontier, a_epsn) && !has(a_rec, a_frontier) -> a_frontier = next(a_frontier)
	:: else -> break
	od;
	if
	:: a_dup_psn == NONE ->
		q = (is_read(prev(a_frontier)) -> a_acked : a_frontier);
		if
		:: !is_read(prev(q)) && (force || after(q, a_acked)) -> put2(a2h, ACK, prev(q)); a_acked = q
		:: else
		fi;
		if
		:: a_nak_due && a_frontier == a_epsn -> a_nak_due = 0; a_nak_sent = 1; put2(a2h, NAK, a_frontier)
		:: else
		fi
	:: else
	fi;
	force = 0; q = 0
}

/* A READ is asked past custody when the responder has executed it. The answer that has passed says it sooner than the
 * true ACK. */
#ifdef BREAK_ANSWER_SAYS
#define gone(x) before(x, a_una)
#else
#define gone(x) (before(x, a_una) || !has(a_rec, x))
#endif

inline a_duplicate(x)
{
	if
	:: is_read(x) && gone(x) ->
#ifdef BREAK_DUP_READ
		skip
#else
		if
		:: !has(a_rec, x) -> a_dup_psn = x; a_dup_old = 0
		:: else
		fi;
		put(a2b, x)
#endif
	:: is_read(x) && !gone(x)	/* it is on its way, or its answer is */
	:: !is_read(x) && before(x, a_acked) && before(x, a_una) -> put(a2b, x)
	:: !is_read(x) && !(before(x, a_acked) && before(x, a_una)) ->
		if
		:: a_dup_psn != NONE && after(x, a_dup_psn) && a_dup_old -> a_dup_psn = NONE
		:: else
		fi;
		force = 1;
		a_flush()
	fi
}

inline a_rx(x)
{
	if
	:: x == a_epsn && dist(a_epsn, a_una) < WIN ->
		if
		:: is_read(x) -> a_rec = a_rec | only(x)
		:: else
		fi;
		a_epsn = next(a_epsn);
		a_nak_sent = 0; a_nak_due = 0;
		a_flush()
	:: x == a_epsn && dist(a_epsn, a_una) >= WIN	/* no room */
	:: before(x, a_epsn) -> a_duplicate(x)
	:: after(x, a_epsn) ->
		if
		:: !a_nak_sent && !a_nak_due -> a_nak_due = 1; a_flush()
		:: else
		fi
	fi
}

inline a_rx_back(kind, x)
{
	if
	:: kind == ANSWER ->
		put2(a2h, ANSWER, x);
		if
		:: has(a_rec, x) -> a_rec = a_rec & ~only(x)
#ifndef BREAK_AGAIN
		:: !has(a_rec, x) && a_dup_psn == x -> a_dup_psn = NONE
#endif
		:: else
		fi;
		a_flush()
	:: kind != ANSWER && before(x, a_una) -> put2(a2h, kind, x)
	:: else /* it will be reported */
	fi
}

inline a_rx_report()
{
	if
	:: !a_reopen && !before(rep_epsn, a_una) ->
		if
		:: after(rep_epsn, a_reached) -> a_reached = rep_epsn
		:: else
		fi;
		if
		:: after(rep_una, a_una) ->
			a_una = rep_una;
			if
			:: before(a_nxt, a_una) -> a_nxt = a_una
			:: else
			fi;
			if
			:: before(a_epsn, a_una) -> a_epsn = a_una
			:: else
			fi
		:: else
		fi;
		a_flush()
	:: else
	fi
}

inline a_timeout()
{
	if
	:: a_reopen -> raise_flag(open_out)
	:: !a_reopen && before(a_reached, a_nxt) -> a_nxt = a_reached
	:: else -> put(a2b, prev(a_nxt))	/* it has all: let it report again */
	fi
}

/* ---- B ---- */

inline b_report()
{
	if
	:: rep = 1; rep_una = b_una; rep_epsn = b_epsn
	:: losses < LOSSES -> losses++
	fi
}

inline b_rx(x)
{
	if
	:: !b_on -> put(b2r, x)	/* WATCH */
	:: b_on && before(x, b_epsn) ->
#ifndef BREAK_REPORT_AGAIN
		b_report();
#endif
		if
		:: before(x, b_una) -> put(b2r, x)
		:: else
		fi
	:: b_on && !before(x, b_epsn) && dist(x, b_una) < HALF ->
		b_have = b_have | only(x);
		do
		:: has(b_have, b_epsn) ->
			b_have = b_have & ~only(b_epsn);
			if
			:: is_read(b_epsn) -> b_rec = b_rec | only(b_epsn)
			:: else
			fi;
			b_epsn = next(b_epsn)
		:: else -> break
		od;
		b_report()
	:: else
	fi
}

/* all below p, but for an unanswered READ and what is behind it; q: where that ends */
inline b_true_ack()
{
	q = b_una;
	do
	:: q != p && !has(b_rec, q) -> q = next(q)
	:: else -> break
	od;
	if
	:: q != b_una ->
		b_una = q;
		if
		:: before(b_nxt, b_una) -> b_nxt = b_una
		:: else
		fi;
		if
		:: before(b_epsn, b_una) -> b_epsn = b_una
		:: else
		fi;
		b_report()
	:: else
	fi
}

inline b_rx_back(kind, x)
{
	if
	:: !b_on -> put2(b2a, kind, x)
	:: b_on && kind == ANSWER ->
		put2(b2a, ANSWER, x);
		if
		:: has(b_rec, x) && within(x, b_una, b_high) ->
			/* it acknowledges what is before it, and itself */
			p = x;
			b_true_ack();
			if
			:: q == x ->
				b_rec = b_rec & ~only(x);
				p = next(x);
				b_true_ack()
			:: else
			fi
		:: else
		fi
	:: b_on && kind != ANSWER && !within(x, b_una, b_high) ->
		if
		:: before(x, b_una) -> put2(b2a, kind, x)
		:: else
		fi
	:: b_on && kind != ANSWER && within(x, b_una, b_high) ->
		p = (kind == ACK -> next(x) : x);
		b_true_ack();
		if
		:: kind == NAK || q != p || b_probing -> b_nxt = q
		:: else
		fi;
		b_probing = 0
	fi;
	p = 0; q = 0
}

inline b_forget()
{
	b_on = 0; b_una = 0; b_nxt = 0; b_high = 0; b_epsn = 0; b_have = 0; b_rec = 0; b_probing = 0
}

/* ---- the responder ---- */

inline r_rx(x)
{
	if
	:: x == r_exp ->
		r_exp = next(r_exp);
		r_naked = 0;
		w = (is_read(x) -> ANSWER : ACK);
		put2(r2b, w, x)
	:: before(x, r_exp) ->
		if
		:: is_read(x) -> put2(r2b, ANSWER, x)
		:: else -> put2(r2b, ACK, prev(r_exp))
		fi
	:: else ->
		if
		:: !r_naked -> r_naked = 1; put2(r2b, NAK, r_exp)
		:: else
		fi
	fi
}

#define h_sends (dist(h_nxt, h_una) < HW)
#define a_sends (!a_reopen && before(a_nxt, a_epsn))
#define a_can (a_sends && len(a2b) < 2)
#define b_sends (b_on && before(b_nxt, b_epsn))
/* LANs first, and what an appliance can send it sends; then the WAN and the host in any order; then timers */
#define lan_a (!moved)
#define lan_b (lan_a && len(h2a) == 0 && len(a2h) == 0)
#define far (lan_b && len(r2b) == 0 && len(b2r) == 0 && !b_sends && !a_can)
#define quiet (far && len(a2b) == 0 && len(b2a) == 0 && !rep && !open_out && !accept_out && !crashed && !h_sends && !a_sends)
#define h_armed (h_una != h_nxt)
#ifdef BREAK_TIMER_A
#define a_armed false
#else
#define a_armed (a_una != a_epsn || a_reopen)
#endif
#ifdef BREAK_TIMER_B
#define b_armed false
#else
#define b_armed (b_on && b_una != b_nxt)
#endif
#define round_over ((!h_armed || t_h) && (!a_armed || t_a) && (!b_armed || t_b))

active proctype world()
{
	do
	:: moved -> losses = 0;
progress:	moved = 0
	:: atomic { far && h_sends -> put(h2a, h_nxt); h_nxt = next(h_nxt) }
	:: atomic { lan_a && len(a2h) > 0 -> a2h?w, x; h_rx(w, x); w = 0; x = 0 }
	:: atomic { lan_a && len(a2h) == 0 && len(h2a) > 0 -> h2a?x; a_rx(x); x = 0 }
	:: atomic { lan_b && a_can -> put(a2b, a_nxt); a_nxt = next(a_nxt) }
	:: atomic { far && len(b2a) > 0 -> b2a?w, x; a_rx_back(w, x); w = 0; x = 0 }
	:: atomic { far && rep && len(b2a) == 0 -> rep = 0; a_rx_report(); rep_una = 0; rep_epsn = 0 }
	:: atomic { far && len(a2b) > 0 -> a2b?x; b_rx(x); x = 0 }
	:: atomic { lan_b && !a_can && len(r2b) == 0 && len(b2r) == 0 && b_sends -> put(b2r, b_nxt); b_nxt = next(b_nxt);
		if
		:: after(b_nxt, b_high) -> b_high = b_nxt
		:: else
		fi }
	:: atomic { lan_b && !a_can && len(r2b) > 0 -> r2b?w, x; b_rx_back(w, x); w = 0; x = 0 }
	:: atomic { lan_b && !a_can && len(r2b) == 0 && len(b2r) > 0 -> b2r?x; r_rx(x); w = 0; x = 0 }
	/* a restart, and how the lane is agreed anew */
	:: atomic { far && restarts && b_on && !a_reopen -> restarts--; b_forget(); rep = 0; rep_una = 0; rep_epsn = 0;
		crashed = 1 }
	:: atomic { far && crashed -> crashed = 0; a_reopen = 1;
#ifdef BREAK_RESUME
		a_una = a_reached;
#endif
		a_nxt = a_una; a_reached = a_una; raise_flag(open_out) }
	:: atomic { far && open_out -> open_out = 0;
		if
		:: !b_on -> b_on = 1; b_una = a_una; b_nxt = a_una; b_high = a_una; b_epsn = a_una
		:: else
		fi;
		raise_flag(accept_out) }
	:: atomic { far && accept_out -> accept_out = 0; a_reopen = 0 }
	/* timers */
	:: atomic { quiet && h_armed && !t_h -> t_h = 1; h_nxt = h_una; h_again = 0; a_dup_old = 1 }
	:: atomic { quiet && a_armed && !t_a -> t_a = 1; a_timeout() }
	:: atomic { quiet && b_armed && !t_b -> t_b = 1; put(b2r, b_una); b_probing = 1 }
	:: atomic { quiet && round_over && (t_h || t_a || t_b) -> t_h = 0; t_a = 0; t_b = 0 }
	od
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two numberings of one lane: safety of the rules for prefetch.
 *
 * The rules, not the code: psn_map.c keeps segments of equal distance instead of a record per request, and prefetch.c lets
 * the host claim guesses in another order than they were made in. Neither is in here; nor are epochs and ages,
 * answers of several packets, MSNs, restarts.
 *
 *	host, PSN = HPSN(i) ---> appliance: a record per request ---> responder, PSN = RPSN(r)
 *
 * The appliance issues pseudo READs on a guess. One that the host then asks for, as its next request and with the
 * same address, is claimed: it becomes the host's. The others have consumed PSNs at the responder, and from there
 * on r runs ahead of i. Rules:
 *
 *	- what is sent is numbered anew: a record for each request has the host's number (none for a pseudo READ) and
 *	  the responder's, and lasts until the true ACK and as long as the host may ask again, whichever is later:
 *	  the host asks again for the latest HW requests at most;
 *	- unclaimed pseudo READs are the latest records; the host's next request claims the oldest of them or drops
 *	  them all;
 *	- a true ACK or an answer is looked up by the responder's PSN; what it means in the host's numbers is the
 *	  latest request of the host's own among the records that it covers, so pseudo READs mean nothing;
 *	- one that is claimed after its true ACK came is truly acknowledged by the claim;
 *	- a fatal NAK goes to the host under the number of the record that it names; if that is a pseudo READ's, the
 *	  custody is lost: FAULT;
 *	- a request of the host whose record is gone is answered, or dropped; it has no number of its own any more;
 *	- nothing passes by the appliance while the numbers differ.
 *
 * As in custody.pml the network forgets nothing: what was sent may arrive at any time and again; a retransmission
 * needs no step of its own. Requests are WRITEs or READs of one address (-DTWO: of one of two), chosen as the host posts them; the guess
 * is free, too. PSNs are modulo M in both numberings, with starts that differ; both pass zero, and are used again.
 *
 * A planted fault per rule, BREAK_..., shows that its check can fail; REACH that the end is reached at all, with numbers
 * that differ by more than a whole circle.
 *
 * Checked: the responder executes the host's requests in order, each once, with nothing but pseudo READs in between;
 * no true ACK means more in the host's numbers than what was executed; the host is told of nothing that is neither
 * executed nor kept; it gets the answer that it asked for; a fatal NAK names the request that was refused.
 */
#ifndef M
#define M 8
#endif
#ifndef N
#define N 10 /* requests of the host */
#endif
#ifndef RN
#define RN 16 /* and with pseudo READs */
#endif
#define WIN 3 /* records not truly acknowledged */
#define HW 2  /* the host's window */
#define HSTART 5
#define RSTART 5 /* the numbers agree at first */
#define HALF (M / 2)
#define NONE 255
#define PSEUDO 254

#define HPSN(i) ((HSTART + (i)) % M)
#define RPSN(r) ((RSTART + (r)) % M)
#define rbefore(a, b) ((RPSN(a) + M - RPSN(b)) % M >= HALF)
#define rwithin(x, from, end) (!rbefore(x, from) && rbefore(x, end))

/* requests of the host: 0 WRITE, 1 and 2 READ of that address */
byte op[N];
byte h_una, h_max;
bool h_err;

/* records, by the responder's PSN */
byte rec_host[M] = NONE;	/* the host's index, PSEUDO, or NONE: no record */
byte rec_op[M];
byte answered;			/* by PSN: the answer is here */
byte s_una, s_nxt;		/* responder's numbers: not truly acknowledged, next */
byte s_claim;			/* first unclaimed pseudo READ, s_nxt without any */
byte s_epsn;			/* host's numbers: next request expected */
byte s_frontier, s_una_host;		/* acknowledged to the host, truly acknowledged */
bool fault;

/* the responder */
byte r_exec;			/* ePSN */
byte done;			/* requests of the host's own executed */
bool r_err;

/* a request that went past the records, with the PSN it bears; NONE: nothing */
byte raw = NONE, raw_psn;

byte i, k, p, x;	/* scratch, always 0 between two events */

#define only(x) (1 << (x))
#define ans(r) ((answered >> RPSN(r)) & 1)
#define host_of(r) rec_host[RPSN(r)]
#define op_of(r) rec_op[RPSN(r)]

/* What the host was told is executed or kept */
inline check()
{
	k = done;
	do
	:: k < s_frontier && !fault ->
		i = s_una;
		do
		:: i < s_nxt && host_of(i) != k -> i++
		:: else -> break
		od;
		assert(i < s_nxt);
		k++
	:: else -> break
	od;
	i = 0; k = 0
}

/* The frontier: all accepted, but for the first READ without an answer */
inline advance()
{
	do
	:: s_frontier < s_epsn && !fault ->
		if
		:: op[s_frontier] == 0
		:: else ->
			find(s_frontier);
			if
			:: p != NONE && ans(p)
			:: else -> break
			fi
		fi;
		s_frontier++
	:: else -> break
	od;
	p = 0;
	check()
}

/* p: the record of the host's request x */
inline find(x)
{
	p = (s_nxt > M - 1 -> s_nxt - M + 1 : 0);
	do
	:: p < s_nxt && host_of(p) != x -> p++
	:: else -> break
	od;
	if
	:: p == s_nxt -> p = NONE
	:: else
	fi
}

/* A record goes when it is truly acknowledged and the host does not ask for it any more. */
inline tidy()
{
	p = (s_nxt > M -> s_nxt - M : 0);
	do
	:: p < s_una && p < s_claim ->
		if
		:: host_of(p) == PSEUDO || host_of(p) + HW < s_epsn ->
			host_of(p) = NONE;
			op_of(p) = 0;
			answered = answered & ~only(RPSN(p))
		:: else
		fi;
		p++
	:: else -> break
	od;
	p = 0;
	do
	:: p + 1 < h_una && p < done -> op[p] = 0; p++
	:: else -> break
	od;
	p = 0
}

#define place (rec_host[RPSN(s_nxt)] == NONE)

inline issue(host, what)
{
	rec_host[RPSN(s_nxt)] = host;
	rec_op[RPSN(s_nxt)] = what;
	answered = answered & ~only(RPSN(s_nxt));
	s_nxt++
}

inline s_rx(x)	/* the host's request x, which bears HPSN(x) */
{
	if
	:: fault
	:: !fault && HPSN(x) == HPSN(s_epsn) ->
		if
#ifdef BREAK_CLAIM
		:: s_claim < s_nxt && op[x] ->
#else
		:: s_claim < s_nxt && op[x] && op_of(s_claim) == op[x] ->
#endif
			rec_host[RPSN(s_claim)] = x;
			/* it may be executed already, and then all before it is; acknowledged, too */
			if
			:: s_claim < r_exec -> assert(done == x); done++
			:: else
			fi;
			if
			:: s_claim < s_una -> s_una_host = x + 1
			:: else
			fi;
			s_claim++;
			s_epsn++
		:: else ->
			s_claim = s_nxt;	/* a break of the pattern */
			if
			:: place && s_nxt - s_una < WIN && s_nxt < RN ->
				issue(x, op[x]);
				s_claim = s_nxt;
				s_epsn++
			:: else /* no room: it asks again */
			fi
		fi;
		advance();
		tidy()
	:: else /* asked again: acknowledged again, or sent again from its record */
#ifdef BREAK_SHIFT_DUP
		if
		:: raw == NONE && x < s_una_host -> raw = x; raw_psn = (HPSN(x) + s_claim - s_epsn) % M
		:: else
		fi
#endif
	fi
}

/* The responder has acknowledged everything below mark, in its numbers. */
inline true_ack(mark)
{
	/* an unanswered READ: nothing from there on */
	k = s_una;
	do
	:: k < mark && (!op_of(k) || ans(k)) -> k++
	:: else -> break
	od;
	do
	:: s_una < k ->
#ifndef BREAK_SHIFT_ACK
		if
		:: host_of(s_una) != PSEUDO -> s_una_host = host_of(s_una) + 1
		:: else
		fi;
#endif
		s_una++
	:: else -> break
	od;
#ifdef BREAK_SHIFT_ACK
	/* by the difference between the numbers as it is now, not by the record */
	if
	:: s_una > s_claim - s_epsn && s_una - (s_claim - s_epsn) > s_una_host -> s_una_host = s_una - (s_claim - s_epsn)
	:: else
	fi;
#endif
	k = 0;
	assert(s_una_host <= done);
	assert(s_una <= r_exec);
	if
	:: s_frontier < s_una_host && !fault -> s_frontier = s_una_host
	:: else
	fi;
	check();
	tidy()
}

inline s_rx_ack(r)	/* bears RPSN(r) */
{
	if
	:: rwithin(r, s_una, s_nxt) -> true_ack(r + 1)
	:: else
	fi
}

inline s_rx_answer(r)
{
	if
	:: rwithin(r, s_una, s_nxt) && op_of(r) && !ans(r) ->
		/* in order only; it acknowledges what is before it, and itself */
		k = s_una;
		do
		:: k < r && (!op_of(k) || ans(k)) -> k++
		:: else -> break
		od;
		if
		:: k == r ->
			answered = answered | only(RPSN(r));
			true_ack(r + 1);
			advance()
		:: else
		fi;
		k = 0
	:: else
	fi
}

inline s_rx_fatal(r)
{
	if
	:: rwithin(r, s_una, s_nxt) && !fault ->
		true_ack(r);
#ifdef BREAK_SHIFT_NAK
		p = r - (s_claim - s_epsn);
		if
		:: host_of(r) == PSEUDO || p < s_frontier -> fault = 1
#else
		p = host_of(r);
		if
		:: p == PSEUDO || p < s_frontier -> fault = 1
#endif
		:: else ->
			/* what the host learns to be refused is what was refused */
			assert(p == done);
			h_err = 1
		fi;
		p = 0
	:: else
	fi
}

inline back(r)
{
	if
	:: true -> s_rx_ack(r)
	:: true -> s_rx_answer(r)
	fi;
	x = 0
}

#define h_done() h_una++; tidy()

inline execute(host, what)
{
	if
	:: host == PSEUDO -> assert(what)
	:: else ->
		assert(host == done);
		assert(op[host] == what);
		done++
	fi;
	r_exec++
}

init {
end:	do
#ifdef REACH
	:: h_una == N && s_nxt > N + M -> assert(false)
#endif
	:: atomic { h_max < N && h_max - h_una < HW && !h_err ->
		if
		:: op[h_max] = 0
		:: op[h_max] = 1
#ifdef TWO
		:: op[h_max] = 2
#endif
		fi;
		h_max++ }
	/* any request of the host that is outstanding, or a late copy */
	:: atomic { h_max > h_una -> x = h_una; s_rx(x); x = 0 }
	:: atomic { h_max > h_una + 1 -> x = h_una + 1; s_rx(x); x = 0 }
	:: atomic { h_una > 0 -> x = h_una - 1; s_rx(x); x = 0 }
#ifdef BREAK_BYPASS
	:: atomic { raw == NONE && h_max > s_epsn -> raw = s_epsn; raw_psn = HPSN(s_epsn) }
#endif
	/* a guess */
	:: atomic { !fault && s_nxt - s_una < WIN && s_nxt < RN && s_nxt - s_claim < 2 && place ->
		if
		:: issue(PSEUDO, 1)
#ifdef TWO
		:: issue(PSEUDO, 2)
#endif
		fi }
	/* what was sent arrives: in order it is executed; a duplicate is only answered once more */
	:: atomic { !r_err && rwithin(r_exec, s_una, s_nxt) && r_exec < s_nxt ->
		if
		:: execute(host_of(r_exec), op_of(r_exec))
#ifdef FATAL
		:: host_of(r_exec) == PSEUDO || op_of(r_exec) == 0 -> r_err = 1
#endif
		fi }
	:: atomic { raw != NONE && !r_err ->
		if
		:: raw_psn == RPSN(r_exec) -> assert(raw == done && done < s_epsn + 1); r_exec++; done++
		:: else ->
			/* acknowledged as a duplicate, by its own PSN, and the ACK goes past the records too */
			if
			:: (RPSN(r_exec) + M - raw_psn) % M < HALF && raw >= h_una -> assert(raw < done)
			:: else
			fi
		fi;
		raw = NONE; raw_psn = 0 }
	/* ACKs and answers, late ones too */
	:: atomic { r_exec > 0 -> x = r_exec - 1; back(x) }
	:: atomic { r_exec > 1 -> x = r_exec - 2; back(x) }
	:: atomic { r_exec > 2 -> x = r_exec - 3; back(x) }
	:: atomic { r_exec > 3 -> x = r_exec - 4; back(x) }
#ifdef FATAL
	:: atomic { r_err && !fault && !h_err -> s_rx_fatal(r_exec) }
#endif
	/* the host: an ACK of some of what was acknowledged, not past an unanswered READ */
	:: atomic { h_una < s_frontier && h_una < h_max && op[h_una] == 0 && !h_err -> h_done() }
	:: atomic { h_una < h_max && op[h_una] && !h_err ->
		find(h_una);
		if
		:: p != NONE && ans(p) -> assert(op_of(p) == op[h_una]); p = 0; h_done()
		:: else -> p = 0
		fi }
	od
}

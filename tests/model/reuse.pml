/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue pair number that gets another owner while a lane has custody of the former one's messages, without a
 * word of the connection manager, its PSNs beginning anywhere: safety of the rules of owner/owner.c,
 * near/duplicate.c and far/ack_rx.c that tell the two owners apart.
 *
 *	host, owner 0, later 1 ---> appliance with one lane ---> responder, owner 0, then gone, later 1
 *
 * Each owner posts messages of one packet. What a message is (who posted it, which) is its content; the appliance
 * compares contents, PSNs and MSNs, and sees nothing else. A packet arrives at once or is lost; whatever is outstanding
 * or in custody may be sent again at any time, and a responder may say again at any time what it has said before. That
 * stands for loss, disorder and all timers. Nothing of the former owner is under way any more when the next one
 * begins: that would harm a bare link in the same way.
 *
 * Assumed, and dropped by a switch each, which shows that it is needed and what nobody can tell then (doc/guarantees.md,
 * known gaps):
 *	SAME	the new PSNs do not meet what is in custody for the former owner. With SILENT besides, the new
 *		responder never hears of anything, and then all is well again
 *	QUICK	a responder that goes while something is in custody stays away for STALL_NS, before the next one
 *		has its number
 *	OLD_MSN	the former owner has done more messages than the new one does meanwhile
 *	LAN	what the hosts send comes to the appliance, and in order
 *
 * Checked:
 *	1	what a host is told of its own message is true: executed by its own responder, or retained for it, or a
 *		FAULT has been told (host_rx()). So nothing is acknowledged that only passed by, and no ACK of the
 *		former owner completes a message of the new one
 *	2	what was told and is let go of is executed, or a FAULT (forget())
 *	3	a responder executes what its own requester posted, each once, in order (responder_rx())
 *	4	custody is released when its own responder has executed it (true_ack())
 *
 * Left out: READs, the second appliance (owner.c has the same rules for both; custody.pml has the pair), how a lane
 * opens anew for the next owner (custody.pml, HANDOVER), third parties (custody.pml, FORGER).
 *
 * A planted fault per rule, BREAK_..., shows that its check can fail; REACH that the new owner's messages get done.
 */
#define M 16		/* PSNs */
#define HALF (M / 2)
#define JUMP 5		/* JUMP_PSNS */
#ifndef NOLD
#define NOLD 3		/* messages of the former owner */
#endif
#ifndef NNEW
#define NNEW 2		/* and of the new one */
#endif
#ifndef HW
#define HW 2		/* outstanding at a host */
#endif
#ifndef WIN
#define WIN 2		/* room in custody */
#endif
#define OLD_START 12
#ifndef OLD_MSN
#define OLD_MSN 4	/* the former one has done this many before */
#endif

#define dist(a, b) (((a) + M - (b)) % M) /* from b to a */
#define before(a, b) (dist(a, b) >= HALF)
#define after(a, b) (dist(a, b) < HALF && (a) != (b))
#define within(x, from, end) (dist(x, from) < dist(end, from))
#define inc(x) x = ((x) + 1) % M
#define psn(o, n) (((o) -> start : OLD_START) + (n)) % M
#define msn(o, n) (((o) -> 0 : OLD_MSN) + (n))
#define content(o, n) (1 + 8 * (o) + (n))
#define whose(c) (((c) - 1) / 8)
#define which(c) (((c) - 1) % 8)

mtype = { WATCH, HELD, FAULT };

/* hosts */
bit owner;		/* of the requester's number */
byte start;		/* first PSN of the new owner */
byte h_una, h_max;	/* [h_una, h_max) is outstanding, counted from the owner's first */
byte h_sent;		/* sent for the first time: below it */
bool h_err;
bool faulted[2];	/* a FAULT was told of this owner's custody */

/* responders: the number is owned, or by nobody */
bit responder;
bool gone, spoken;	/* @spoken: something has come, so it may answer */
byte exec[2];		/* messages executed */

/* the lane */
mtype state = HELD;
byte una = OLD_START, epsn = OLD_START, frontier = OLD_START, told = OLD_START, nxt = OLD_START;
byte una_msn = OLD_MSN;
byte slot[M];		/* by PSN: content in custody */
byte passed_from;
bool asked;		/* lane_asked(): something from below una has passed lately */
bool suspect, disputed, held_back, held_once;
bool stalled;		/* lane_stalled() */

byte i, k, m, p;	/* scratch, always 0 between two events */
byte word, count;	/* of the packet that comes */
bool alike;

#define owes (before(una, frontier))
#define executed(c) (which(c) < exec[whose(c)])

/* All below @mark is done, the host is told. */
inline host_rx(mark)
{
	p = psn(owner, h_una);
	if
	:: !h_err && h_una < h_max && dist(mark, p) <= h_max - h_una ->
		k = dist(mark, p);
		do
		:: k ->
			i = content(owner, h_una);
			p = psn(owner, h_una);
			assert(executed(i) || (state == HELD && slot[p] == i) || faulted[owner]);	/* 1 */
			h_una++;
			k--
		:: else -> break
		od
	:: else
	fi;
	i = 0; p = 0; k = 0
}

/* What the appliance says itself: it arrives, or is lost. */
inline tell(mark)
{
	if
	:: host_rx(mark)
	:: skip
	fi
}

/* lane_close() and lane_fault(): @how is WATCH or FAULT. What was promised is counted and told as a fault in both. */
inline forget(how)
{
	if
	:: owes ->
#ifdef BREAK_OWING
		skip
#else
		p = una;
		do
		:: p != frontier -> faulted[whose(slot[p])] = 1; inc(p)
		:: else -> break
		od
#endif
	:: else
	fi;
	p = una;
	do
	:: p != epsn ->
		assert(executed(slot[p]) || faulted[whose(slot[p])] || !before(p, frontier));		/* 2 */
		slot[p] = 0;
		inc(p)
	:: else -> break
	od;
	p = 0;
	state = how;
	una = 0; epsn = 0; frontier = 0; told = 0; nxt = 0; una_msn = 0; passed_from = 0;
	asked = 0; suspect = 0; disputed = 0; held_back = 0; held_once = 0; stalled = 0
}

/* lane_fault(): whoever sends anything is told */
inline fault()
{
	if
	:: owes -> forget(FAULT)
	:: else -> forget(WATCH)
	fi
}

/* advance() and flush() of near/ack_tx.c */
inline advance()
{
	if
	:: state == HELD && !suspect && frontier != epsn -> frontier = epsn
	:: state == HELD && suspect && after(una, frontier) -> frontier = una
	:: else
	fi;
	if
	:: state == HELD && !suspect && after(frontier, told) -> told = frontier; tell(frontier)
	:: else
	fi
}

inline sure()
{
	suspect = 0; disputed = 0; held_back = 0; held_once = 0;
	advance()
}

/* ---- the responder ---- */

inline responder_rx(c)
{
	if
#ifndef SILENT
	:: !gone ->
		spoken = 1;
		if
		:: psn(whose(c), which(c)) == psn(responder, exec[responder]) &&
		   exec[responder] < (responder -> NNEW : NOLD) ->
			assert(whose(c) == responder && which(c) == exec[responder]);			/* 3 */
			exec[responder]++
		:: else /* a duplicate, or after a gap: answered, below */
		fi
#endif
	:: else
	fi
}

/* ---- requests ---- */

inline pass(c)
{
	if
	:: responder_rx(c)
	:: skip
	fi
}

/* owner_passed() */
inline passed(x)
{
	if
	:: !asked || before(x, passed_from) -> passed_from = x
	:: else
	fi;
	asked = 1;
#ifndef BREAK_PASSED
	suspect = 1;
#endif
	if
	:: una != nxt && stalled && !held_once -> held_back = 1; held_once = 1
	:: else
	fi
}

/* may_be_another(): three rounds of it, and nothing is owed */
inline another(c)
{
	if
	:: !owes -> forget(WATCH); pass(c)
	:: skip
	fi
}

inline below(x, c) /* duplicate_request() */
{
	if
	:: disputed && stalled -> forget(WATCH); pass(c)
#ifdef BREAK_REPEAT
	:: !(disputed && stalled) && before(x, una) -> told = frontier; tell(frontier)
#else
	:: !(disputed && stalled) && before(x, told) && before(x, una) -> passed(x); pass(c)
#endif
	:: else ->
#ifndef BREAK_CONTENT
		alike = !within(x, una, epsn) || slot[x] == c;
#else
		alike = 1;
#endif
		if
		:: alike && !suspect -> told = frontier; tell(frontier)
		:: alike && suspect
		:: !alike ->
			if
			:: stalled -> suspect = 1
			:: else
			fi;
			another(c)
		fi;
		alike = 0
	fi
}

inline lane_rx(x, c)
{
	if
	:: state == WATCH -> pass(c)
	:: state == FAULT -> h_err = 1
	:: state == HELD && x == epsn ->
		if
		:: dist(epsn, una) < WIN -> slot[x] = c; inc(epsn); advance()
		:: else /* no room */
		fi
	:: state == HELD && x != epsn && dist(x, epsn) < JUMP ->
		if
		:: frontier == epsn && !suspect -> tell(frontier) /* a sequence NAK acknowledges what is before it */
		:: another(c) /* incarnation_gone_on() */
		fi
	:: state == HELD && dist(x, epsn) >= JUMP && dist(x, epsn) < M - JUMP -> another(c)
	:: state == HELD && dist(x, epsn) >= M - JUMP -> below(x, c)
	fi
}

/* ---- what comes back ---- */

inline true_ack(mark, count)
{
	do
	:: before(una, mark) ->
		assert(executed(slot[una]));								/* 4 */
		slot[una] = 0;
		inc(una)
	:: else -> break
	od;
	una_msn = count;
	advance()
}

/* owner_judge() */
inline replaced()
{
	if
	:: owes && !stalled -> disputed = 1
	:: else -> forget(WATCH)
	fi
}

#define counts_alike(count) ((count) >= una_msn && (count) - una_msn <= dist(epsn, una))

/* @x: its PSN; @mark: what it acknowledges is below */
inline lane_rx_ack(x, mark, count, nak)
{
	if
	:: state == WATCH -> host_rx(mark)
	:: state == FAULT
	:: state == HELD && within(x, una, nxt) ->
		if
#ifndef BREAK_STRANGE
		:: count < una_msn && stalled -> fault()
		:: !(count < una_msn && stalled) ->
#else
		:: true ->
#endif
			stalled = 0; held_once = 0;
			if
			:: counts_alike(count) -> sure()
			:: else
			fi;
			if
			:: state == HELD -> true_ack(mark, count)
			:: else
			fi
		fi
	:: state == HELD && !within(x, una, nxt) && before(x, una) && asked ->
		host_rx(mark);
		if
		:: before(x, passed_from)
		:: !before(x, passed_from) && counts_alike(count) ->
			if
			:: (x + 1) % M == una && !nak -> sure()
			:: else
			fi
#ifdef BREAK_SURE
		:: !before(x, passed_from) && !counts_alike(count) -> sure()
#else
		:: !before(x, passed_from) && !counts_alike(count) -> replaced()
#endif
		fi
	:: else
	fi
}

#ifdef QUICK
#define long_enough true
#else
#define long_enough (state != HELD || una == epsn || stalled)
#endif

#ifdef LAN
#define may_send h_max
#else
#define may_send (h_sent < h_max -> h_sent + 1 : h_max)
#endif

/* any number in [from, end], into m */
#define pick(from, end) \
	m = from; \
	do \
	:: m < (end) -> m++ \
	:: break \
	od

init {
end:	do
#ifdef REACH
	:: owner && h_una == NNEW -> assert(false)
#endif
	/* the host posts, sends, and sends again */
	:: atomic { !h_err && h_max - h_una < HW && h_max < (owner -> NNEW : NOLD) -> h_max++ }
	:: atomic { !h_err && h_una < may_send -> pick(h_una, may_send - 1);
		h_sent = (m == h_sent -> m + 1 : h_sent);
		word = psn(owner, m); count = content(owner, m); m = 0;
		lane_rx(word, count); word = 0; count = 0 }
	/* the lane sends what is next, or anything in custody again; by then it may be held back */
	:: atomic { state == HELD && nxt != epsn && !held_back ->
		m = nxt; inc(nxt); pass(slot[m]); m = 0 }
	:: atomic { state == HELD && una != nxt && !held_back -> m = una;
		do
		:: (m + 1) % M != nxt -> inc(m)
		:: break
		od;
		pass(slot[m]); m = 0 }
	:: atomic { held_back -> held_back = 0 }
	/* what passed is not recent any more; nobody has answered for long */
	:: atomic { asked -> asked = 0; passed_from = 0 }
	:: atomic { state == HELD && !stalled && una != epsn -> stalled = 1 }
	/* and for very long */
	:: atomic { state == HELD && stalled && una != epsn -> fault() }
	/* the responder's word, now or from before it went: an ACK or a sequence NAK, with the MSN of then or of now */
	:: atomic { spoken -> pick(0, exec[responder]);
		p = psn(responder, m);
		k = msn(responder, m);
		if
		:: true
		:: true -> k = msn(responder, exec[responder])
		fi;
		i = p; p = 0; m = k; k = 0;
		if
		:: word = i; count = m; i = 0; m = 0; lane_rx_ack((word + M - 1) % M, word, count, 0)
		:: word = i; count = m; i = 0; m = 0; lane_rx_ack(word, word, count, 1)
		fi;
		word = 0; count = 0 }
	/* the former owner's responder goes */
	:: atomic { !gone && !responder -> gone = 1 }
	/* and both numbers have a new owner, at any PSN */
	:: atomic { gone && !owner && long_enough -> m = 0;
		do
		:: m < M - 1 -> m++
		:: break
		od;
#ifndef SAME
		/* not within custody, nor up to it from below */
		if
		:: state == HELD && una != epsn -> i = 1
		:: else
		fi;
		if
		:: i && (within(m, una, epsn) || dist(una, m) <= NNEW) -> i = 2
		:: else
		fi;
#endif
		if
		:: i == 2
		:: else ->
			start = m; owner = 1; responder = 1; gone = 0; spoken = 0; h_una = 0; h_max = 0; h_sent = 0; h_err = 0
		fi;
		i = 0; m = 0 }
	od
}

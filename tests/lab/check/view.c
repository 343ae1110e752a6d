// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A walk through one capture for one lane. Requests are entered in order, as a responder takes
 * them: what comes after a gap does not count until the gap is filled. Answers are judged against
 * what was entered before them.
 */
#include "tests/lab/check/view.h"

#include <stdlib.h>
#include <string.h>

#include "wire/psn.h"

/* As the appliance: further from the expected PSN than this it is another incarnation. */
#define JUMP_AHEAD  65536
#define JUMP_BEHIND (65536 + (1 << 18))
/* What was sent no longer ago than this cannot have timed out: an appliance waits 4 ms at least. */
#define SILENCE_NS  2000000ull

enum msg_kind {
	MSG_UNKNOWN, /* seen from its middle */
	MSG_NONE,
	MSG_SEND,
	MSG_WRITE,
};

#define LEFT_UNKNOWN UINT32_MAX

int64_t book_at(const struct book *b, uint32_t psn)
{
	return (int64_t)b->n + psn_diff(psn, psn_add(b->base, b->n & PSN_MASK));
}

uint32_t book_open_read(struct book *b)
{
	while (b->read_head < b->nreads && !b->line[b->reads[b->read_head]].left)
		b->read_head++;
	return b->read_head < b->nreads ? b->reads[b->read_head] : b->n;
}

static uint32_t span_of(const struct view *v, const struct event *e)
{
	if (e->opcode != OP_READ_REQUEST || !e->length || !v->mtu)
		return 1;
	return (e->length - 1) / v->mtu + 1;
}

/* spec: IBTA 9.7.7: a message has 2^31 bytes at most. Here much less is sane, and a book
 * has a line for each PSN. */
#define SPAN_MAX (1u << 21)

/* ---- requests ---- */

#define WRONG(v, rule, e, ...) judge_violation((v)->j, rule, (v)->t, e, (int)(v)->flow, __VA_ARGS__)

/* Opcode and length in the open message. */
static const char *out_of_sequence(struct view *v, struct book *b, const struct event *e)
{
	uint16_t fl = opcode_info(e->opcode)->flags;
	uint8_t kind = (fl & OPF_WRITE) ? MSG_WRITE : MSG_SEND;

	if (fl & OPF_ANSWERED)
		return b->msg > MSG_NONE ? "inside a message" : NULL;
	if (b->msg != MSG_UNKNOWN) {
		if (fl & (OPF_FIRST | OPF_ONLY) && b->msg != MSG_NONE)
			return "inside a message";
		if (!(fl & (OPF_FIRST | OPF_ONLY)) && b->msg != kind)
			return "without the beginning of its message";
	}
	if ((fl & (OPF_FIRST | OPF_MIDDLE)) && e->payload_len != v->mtu)
		return "with a payload that is not the path MTU";
	if (v->mtu && e->payload_len > v->mtu)
		return "with more than the path MTU";
	if (kind == MSG_WRITE && (fl & (OPF_FIRST | OPF_ONLY)))
		b->msg_left = e->length;
	if (kind == MSG_WRITE && b->msg_left != LEFT_UNKNOWN) {
		if ((fl & OPF_EOM) ? e->payload_len != b->msg_left : e->payload_len >= b->msg_left)
			return "with another length than the WRITE announced";
		b->msg_left -= e->payload_len;
	}
	return NULL;
}

static void enter(struct view *v, struct book *b, const struct event *e)
{
	const struct opcode_info *op = opcode_info(e->opcode);
	uint32_t span = span_of(v, e), first = b->n;
	const char *bad = out_of_sequence(v, b, e);

	if (span > SPAN_MAX) {
		WRONG(v, RULE_SEQUENCE, e, "a READ of %u B, PSN %06x", e->length, e->psn);
		return;
	}
	if (bad)
		WRONG(v, RULE_SEQUENCE, e, "%s %s, PSN %06x", op->name, bad, e->psn);
	if (op->flags & OPF_EOM || op->flags & OPF_ANSWERED) {
		b->msg = MSG_NONE;
		b->msg_left = LEFT_UNKNOWN;
		b->msgs++;
	} else if (b->msg != MSG_UNKNOWN || (op->flags & OPF_FIRST)) {
		b->msg = (op->flags & OPF_WRITE) ? MSG_WRITE : MSG_SEND;
	}
	for (uint32_t i = 0; i < span; i++) {
		struct line *l;

		b->line = grow(b->line, b->n, &b->cap, sizeof(*b->line));
		l = &b->line[b->n++];
		memset(l, 0, sizeof(*l));
		l->head = i;
		l->opcode = e->opcode;
		l->msgs = b->msgs;
		l->ev = e;
		l->flags = (op->flags & OPF_ANSWERED) ? LINE_ANSWERED : LINE_DATA;
	}
	b->line[b->n - 1].flags |= b->msg == MSG_NONE ? LINE_EOM : 0;
	b->line[first].digest = e->digest;
	b->line[first].va = e->va;
	b->line[first].length = e->length;
	b->line[first].span = span;
	b->line[first].copies = 1;
	b->line[first].last = e->t;
	b->line[first].since = e->since;
	if (op->flags & OPF_ANSWERED) {
		b->line[first].left = span;
		b->reads = grow(b->reads, b->nreads, &b->reads_cap, sizeof(*b->reads));
		b->reads[b->nreads++] = first;
	}
	if (b->beyond && book_at(b, b->beyond->psn) < (int64_t)b->n)
		b->beyond = NULL;
}

/* Far: whether an appliance or host had a cause to send line @x once more. */
static bool has_cause(const struct view *v, struct book *b, const struct line *l, uint32_t x,
		      uint64_t t)
{
	/* what was sent while the NAK was on its way is lost too */
	if (b->cause && l->last < b->cause + v->j->cfg->lan_ns && x >= b->cause_from)
		return true;
	/* an answer that did not come makes it go back, too */
	if (book_open_read(b) > x && t - l->since < SILENCE_NS)
		return false;
	/* what follows was found to be missing by the answer to this one */
	b->cause = t;
	b->cause_from = b->settled < x ? b->settled : x;
	return true;
}

static void repeat(struct view *v, struct book *b, const struct event *e, uint32_t x)
{
	struct line *l = &b->line[x], *head = l - l->head;
	bool read = l->opcode == OP_READ_REQUEST && e->opcode == OP_READ_REQUEST;
	bool settled;

	b->repeats = true;
	b->repeat_at = e->t;
	if (read && (e->va != head->va + (uint64_t)l->head * v->mtu ||
		     e->length != head->length - l->head * v->mtu))
		WRONG(v, RULE_PSN, e,
		      "a READ of PSN %06x asks for something else than the first time", e->psn);
	else if (!read && (l->head || e->digest != l->digest || e->opcode != l->opcode))
		WRONG(v, RULE_PSN, e, "PSN %06x used again for another request", e->psn);
	if (read)
		l->flags |= LINE_ASKED;
	settled = head->acked_at && !head->left;
	if (settled && e->since > head->acked_at + v->j->cfg->lan_ns) {
		head->late++;
		head->dbl = e;
	} else if (!settled && !has_cause(v, b, head, x, e->t)) {
		head->quick++;
		head->dbl = e;
	}
	head->copies++;
	head->last = e->t;
	head->since = e->since;
}

static void request(struct view *v, const struct event *e)
{
	struct book *b = view_book(v);
	int64_t x = b ? book_at(b, e->psn) : 0;
	bool jump = b && (x - (int64_t)b->n >= JUMP_AHEAD || x - (int64_t)b->n < -JUMP_BEHIND);

	if (!b || jump || v->fresh) {
		v->book = grow(v->book, v->nbooks, &v->books_cap, sizeof(*v->book));
		b = &v->book[v->nbooks++];
		*b = (struct book){.base = e->psn, .msg_left = LEFT_UNKNOWN};
		v->fresh = false;
		x = 0;
	}
	if (x == (int64_t)b->n)
		enter(v, b, e);
	else if (x > (int64_t)b->n)
		b->beyond = e;
	else if (x >= 0)
		repeat(v, b, e, (uint32_t)x);
}

/* ---- answers ---- */

static void note_msn(struct book *b, const struct event *e, uint32_t low, bool exact, uint32_t end)
{
	struct msn_note *n;
	uint32_t most = low;

	/* READs right behind may have been accepted by the time of the ACK */
	for (uint32_t i = end; exact && i < b->n && (b->line[i].flags & LINE_ANSWERED); i++)
		most = b->line[i].msgs;
	b->note = grow(b->note, b->nnotes, &b->notes_cap, sizeof(*b->note));
	n = &b->note[b->nnotes++];
	*n = (struct msn_note){
		.e = e, .low = low, .high = b->msgs, .exact = exact ? most : b->msgs};
}

/* Everything below @end has been answered for. */
static void settle(struct book *b, uint32_t end, uint64_t t)
{
	for (; b->settled < end; b->settled++)
		if (!b->line[b->settled].acked_at)
			b->line[b->settled].acked_at = t;
}

static const char *misfit(const struct view *v, const struct line *l, const struct event *e)
{
	const struct line *head = l - l->head;
	uint32_t i = l->head, last = head->span - 1, want;
	bool again = l->flags & LINE_ASKED, fits;

	if (!(l->flags & LINE_ANSWERED))
		return "answers a SEND or WRITE";
	if (opcode_info(head->opcode)->flags & OPF_ATOMIC)
		return e->opcode == OP_ATOMIC_ACK ? NULL : "answers an ATOMIC";
	if (head->opcode != OP_READ_REQUEST)
		return e->opcode == OP_READ_RESPONSE_ONLY ? NULL
							  : "answers a FLUSH or ATOMIC WRITE";
	switch (e->opcode) {
	case OP_READ_RESPONSE_FIRST:
		fits = (i == 0 || again) && i < last;
		break;
	case OP_READ_RESPONSE_MIDDLE:
		fits = i > 0 && i < last;
		break;
	case OP_READ_RESPONSE_LAST:
		fits = i > 0 && i == last;
		break;
	case OP_READ_RESPONSE_ONLY:
		fits = i == last && (i == 0 || again);
		break;
	default:
		fits = false;
	}
	if (!fits)
		return "has the wrong place in its READ";
	want = i < last ? v->mtu : head->length - last * v->mtu;
	return e->payload_len == want ? NULL : "has the wrong length for its READ";
}

static void data_answer(struct view *v, struct book *b, const struct event *e, uint32_t x)
{
	struct line *l = &b->line[x], *head = l - l->head;
	const char *bad = misfit(v, l, e);

	if (bad) {
		WRONG(v, RULE_READ, e, "%s, PSN %06x, %u B, %s", opcode_info(e->opcode)->name,
		      e->psn, e->payload_len, bad);
		return;
	}
	settle(b, x - l->head, e->t);
	if (!(l->flags & LINE_GOT)) {
		l->flags |= LINE_GOT;
		l->answer = e->digest;
		if (!--head->left) {
			head->acked_at = e->t;
			settle(b, x - l->head + head->span, e->t);
		}
	} else if (e->digest != l->answer) {
		l->flags |= LINE_CHANGED;
	}
	l->answer2 = e->digest;
	if (opcode_info(e->opcode)->headers & HDR_AETH)
		note_msn(b, e, head->msgs, false, x);
}

static void ack(struct view *v, struct book *b, const struct event *e)
{
	bool nak = !aeth_is_ack(e->syndrome);
	int64_t at = book_at(b, e->psn), end = nak ? at : at + 1;
	bool advances = end > (int64_t)b->acked, made = false;

	if (end < 0 || (!nak && end == 0))
		return; /* of what was before the capture */
	if (end > (int64_t)b->n || (aeth_is_rnr(e->syndrome) && at >= (int64_t)b->n)) {
		WRONG(v, RULE_EARLY, e, "%s of PSN %06x, but requests were seen only up to %06x",
		      nak ? "NAK" : "ACK", e->psn, psn_add(b->base, (b->n - 1) & PSN_MASK));
		return;
	}
	if (nak && e->syndrome != AETH_NAK_SEQ && !aeth_is_rnr(e->syndrome))
		b->fatal = true;
	if (v->role == VIEW_NEAR)
		made = custody_answer(v, b, e, (uint32_t)end);
	/* an ACK to a repeat may bear an older PSN with today's MSN */
	note_msn(b, e, end ? b->line[end - 1].msgs : 0, advances && (made || !b->repeats),
		 (uint32_t)end);
	if (nak) {
		b->cause = e->t;
		b->cause_from = (uint32_t)end;
	}
	settle(b, (uint32_t)end, e->t);
	if (!nak && advances)
		b->acked = (uint32_t)end;
}

static void answer(struct view *v, const struct event *e)
{
	struct book *b = view_book(v);
	int64_t x;

	if (!b || v->fresh)
		return;
	x = book_at(b, e->psn);
	if (x < -JUMP_BEHIND || x >= (int64_t)b->n + JUMP_AHEAD)
		return; /* of another incarnation */
	if (e->opcode == OP_ACK)
		ack(v, b, e);
	else if (x >= (int64_t)b->n)
		WRONG(v, RULE_EARLY, e, "%s of PSN %06x, which was not asked for yet",
		      opcode_info(e->opcode)->name, e->psn);
	else if (x >= 0)
		data_answer(v, b, e, (uint32_t)x);
}

/* ---- what only the end tells ---- */

static uint32_t from_base(uint32_t msn, uint32_t base)
{
	return (msn - base) & PSN_MASK;
}

/* Whether there were other than @base messages before line 0 if @n is right. */
static bool contradicts(const struct msn_note *n, uint32_t base)
{
	return from_base(n->e->msn, psn_add(base, n->low & PSN_MASK)) > n->exact - n->low;
}

/* How many notes are wrong if @base is right. */
static uint32_t contradictions(const struct book *b, uint32_t base)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < b->nnotes; i++)
		wrong += contradicts(&b->note[i], base);
	return wrong;
}

/*
 * Messages before line 0. Most of the notes may agree upon it, or none: the answers to a pipeline
 * of ATOMICs, some of which are asked again, may count any number of later ones. Then it is the
 * least that any says. Which of the two it is, shows in how many notes it would make wrong.
 */
static uint32_t msn_base(const struct book *b)
{
	uint32_t most = 0, votes = 0, least = 0;

	for (uint32_t i = 0; i < b->nnotes; i++) {
		uint32_t says = from_base(b->note[i].e->msn, b->note[i].low);

		if (!votes)
			most = says;
		votes += says == most ? 1 : (uint32_t)-1;
		if (!i || psn_before(says, least))
			least = says;
	}
	return contradictions(b, least) < contradictions(b, most) ? least : most;
}

static void judge_msns(struct view *v, struct book *b)
{
	uint32_t base = msn_base(b);

	for (uint32_t i = 0; i < b->nnotes; i++) {
		const struct msn_note *n = &b->note[i];

		if (!contradicts(n, base))
			continue;
		WRONG(v, RULE_MSN, n->e,
		      "%s of PSN %06x with MSN %u, where %u messages are complete%s",
		      opcode_info(n->e->opcode)->name, n->e->psn, n->e->msn,
		      psn_add(base, n->low & PSN_MASK), n->exact > n->low ? " at least" : "");
	}
}

static void judge_end(struct view *v, struct book *b)
{
	uint32_t open = 0;

	judge_msns(v, b);
	if (b->beyond)
		WRONG(v, RULE_PSN, b->beyond, "a gap at PSN %06x was never filled",
		      psn_add(b->base, b->n & PSN_MASK));
	if (b->fatal || v->role == VIEW_FAR)
		return;
	for (uint32_t i = 0; i < b->nreads; i++) {
		struct line *l = &b->line[b->reads[i]];

		if (l->left && !open++)
			WRONG(v, RULE_READ, l->ev,
			      "%s of PSN %06x, %u B: %u of %u answer packets never came",
			      opcode_info(l->opcode)->name, l->ev->psn, l->length, l->left,
			      l->span);
	}
}

/* A host's own repeats, seen where it sends them: it knows what it was told. */
static void judge_bare_doubles(struct view *v, struct book *b)
{
	for (uint32_t i = 0; v->judge_double && i < b->n; i++)
		if (b->line[i].late)
			WRONG(v, RULE_DOUBLE, b->line[i].dbl,
			      "PSN %06x again, after it was acknowledged", b->line[i].dbl->psn);
}

void view_run(struct view *v)
{
	int partner = v->j->flow[v->flow].partner;

	for (uint32_t i = 0; i < v->t->n; i++) {
		const struct event *e = &v->t->ev[i];

		if (e->kind == EVENT_ANSWER) {
			if ((int)e->flow == partner)
				answer(v, e);
		} else if (e->flow == v->flow) {
			if (e->kind == EVENT_FRESH)
				v->fresh = true;
			else
				request(v, e);
		}
	}
	for (uint32_t i = 0; i < v->nbooks; i++) {
		judge_end(v, &v->book[i]);
		if (v->role == VIEW_BARE)
			judge_bare_doubles(v, &v->book[i]);
	}
}

void view_exit(struct view *v)
{
	for (uint32_t i = 0; i < v->nbooks; i++) {
		free(v->book[i].line);
		free(v->book[i].reads);
		free(v->book[i].note);
		free(v->book[i].held);
	}
	free(v->book);
	free(v->twin);
	free(v->again);
	free(v->wan);
	memset(v, 0, sizeof(*v));
}

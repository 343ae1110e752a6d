// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The commands of a connection that are under way, as either end sees them: from when the capsule
 * was accepted until the response passes. And the proof that capsules tell what the target READs.
 *
 * A command ends at the response that bears its identifier; where the initiator uses the identifier
 * again before that (it has given up), at that capsule. Any other SEND to the initiator ends all.
 *
 * The proof. A connection may carry anything that looks like capsules. So nothing is READ ahead
 * before PROOFS commands in a row were READ exactly as they said, as this end saw it. From there on
 * one READ of something else ends it for good. Commands that are not understood in full
 * (COMMAND_LOOSE) may be READ anyhow; while one is under way no READ is judged.
 */
#include "engine/announce/announce.h"

#define PROOFS	     4u
/* After so many other READs the proof is given up. READs from before the lane count, too. */
#define MISSES_MAX   4096u
#define COMMANDS_MAX 1024u
#define SETTLE_NS    (4 * NSEC_PER_SEC)

static const struct rule *rule_of(const struct engine *e, const struct flow *fl)
{
	return fl->rule < 0 ? NULL : &e->rules[fl->rule];
}

/* Whether the lane of the target's requests @fl may have to do with storage commands. */
static bool wanted(const struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	const struct rule *r = rule_of(e, fl);

	return r && r->announce && !r->prefetch && !r->atomic && !r->order && !l->ordered &&
	       (l->role == ROLE_OPENER || l->role == ROLE_ACCEPTOR) && l->state == LANE_HELD &&
	       l->peer != PEER_NONE && e->peer_features[l->peer] & PEER_FEATURE_ANNOUNCE;
}

const char *announce_why(struct engine *e, const struct flow *fl)
{
	static const char *const names[WHYS] = {
		[WHY_OTHER_READ] = "the target READ what no command named",
		[WHY_PASSES] = "its packets would pass without this appliance",
		[WHY_TOO_MANY] = "too many commands at a time",
	};
	const struct lane_announce *y = announce_of(e, &fl->lane);
	const struct flow *back = flow_partner(e, fl);
	const struct rule *r = rule_of(e, fl);

	if (y)
		return names[y->why];
	if (!r || !r->announce || !back || announce_of(e, &back->lane))
		return NULL;
	if (r->prefetch || r->atomic || r->order)
		return "the rule has prefetch, atomic or order";
	if (r->peer == PEER_NONE)
		return "the rule has no peer";
	if (!(e->peer_features[r->peer] & PEER_FEATURE_ANNOUNCE))
		return e->peer_up[r->peer] ? "the peer does not know it" : "the peer is away";
	return fl->lane.state == LANE_HELD ? "no command seen" : "not in custody";
}

static struct lane_announce *begin(struct engine *e, struct flow *fl)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	struct lane_reads *x;
	uint32_t page;

	if (y)
		return y;
	x = reads_begin(e, fl);
	if (!x)
		return NULL;
	page = pool_page_get(e->pool, POOL_TRANSIT);
	if (page == POOL_NONE)
		return NULL;
	x->announce_page = page;
	y = announce_of(e, &fl->lane);
	mq_list_init(&y->commands);
	mq_list_init(&y->own);
	mq_list_init(&y->absorbed);
	y->hint = MQ_NONE;
	held_init(&y->held);
	y->inside = true; /* until a message is seen to end */
	y->far.asked.psn = fl->lane.high;
	y->looked = WIRE_NONE;
	return y;
}

/* ---- the list ---- */

/* What is here of @c is of no more use. */
static void drop(struct engine *e, const struct flow *fl, struct lane_announce *y,
		 struct command *c)
{
	uint64_t bytes = (uint64_t)c->got * flow_mtu(fl);
	uint32_t used = fl->lane.role == ROLE_OPENER ? c->used : c->read;

	if (c->state != COMMAND_PENDING && bytes > c->length)
		bytes = c->length;
	if (bytes > used)
		y->info.unused += bytes - used;
	c->got = 0;
	held_drop(e, &y->held, c->base,
		  psn_add(c->base, c->count + parity_groups(c->count) * PARITY_ROWS));
}

static void end_command(struct engine *e, const struct flow *fl, struct lane_announce *y,
			struct command *c)
{
	if (c->over)
		return;
	c->over = true;
	drop(e, fl, y, c);
}

/* Those at the head that are over, and that no READ of ours waits for, go. */
static void trim(struct engine *e, struct lane_announce *y)
{
	struct command *c;

	while ((c = mq_at(e->reads, y->commands.head)) && c->over && c->state != COMMAND_ASKED) {
		if (y->hint == y->commands.head)
			y->hint = MQ_NONE;
		mq_pop(e->reads, &y->commands);
	}
	if (y->commands.head == MQ_NONE)
		mq_flush(e->reads, &y->absorbed);
}

static void end_by_id(struct engine *e, const struct flow *fl, struct lane_announce *y, uint32_t id)
{
	mq_each (struct command, c, e->reads, &y->commands)
		if (!c->over && c->state != COMMAND_PENDING && c->id == id)
			end_command(e, fl, y, c);
	trim(e, y);
}

static void end_all(struct engine *e, const struct flow *fl, struct lane_announce *y)
{
	mq_each (struct command, c, e->reads, &y->commands)
		end_command(e, fl, y, c);
	trim(e, y);
}

/* The target has ended commands without saying which. So pushes answer no READ of any command under
 * way, and any such READ counts as right. Commands that are being READ ahead are not among them:
 * they came after the target had sent this (own_read.c, barred()). */
static void doubt_all(struct engine *e, const struct flow *fl, struct lane_announce *y)
{
	mq_each (struct command, c, e->reads, &y->commands) {
		if (c->over || (c->state != COMMAND_LIVE && c->state != COMMAND_HERE))
			continue;
		drop(e, fl, y, c);
		c->state = COMMAND_LOOSE;
	}
}

static struct command *pending(struct engine *e, const struct lane_announce *y, struct wire_psn psn,
			       uint8_t part)
{
	mq_each (struct command, c, e->reads, &y->commands)
		if (c->state == COMMAND_PENDING && !c->over && psn_is(c->psn, psn) &&
		    c->part == part)
			return c;
	return NULL;
}

/* ---- the proof ---- */

/* For the life of the connection. */
static void turn_off(struct engine *e, struct flow *fl, struct lane_announce *y,
		     enum announce_why why)
{
	bool was = y->phase != ANNOUNCE_OFF;

	y->phase = ANNOUNCE_OFF;
	announce_stop(e, fl);
	if (!was)
		return;
	y->why = (uint8_t)why;
	engine_event(e, EVENT_ANNOUNCE, fl, 0, 0);
}

/* The opener agrees to what the acceptor may do from now on: first somebody else keeps packets from
 * passing should we be gone, then it is noted that numbers differ, then the peer is told. */
static void agree(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct lane_announce *y = announce_of(e, l);
	uint64_t what[3] = {e->cfg.seed, (uint64_t)flow_index(e, fl) << 32 | l->gen, e->now};

	if (l->role != ROLE_OPENER || x->announce || x->stop || y->phase != ANNOUNCE_PROVEN ||
	    !wanted(e, fl) || !l->start_acked || !l->accepted || l->reopen || l->closing ||
	    l->no_mtu)
		return;
	if (!l->numbered && !lane_fence(e, fl)) {
		turn_off(e, fl, y, WHY_PASSES);
		return;
	}
	x->announce_key[0] = keyed_hash(what, what, 3);
	what[2]++;
	x->announce_key[1] = keyed_hash(what, what, 3);
	x->announce = true;
	y->agreed = 0;
	x->announce_seq = x->seq + 1;
	x->guessed_ever = true; /* what the acceptor absorbs the responder cannot repeat */
	l->renumbered = true;
	resp_report_due(e, fl, true);
	engine_event(e, EVENT_ANNOUNCE, fl, 0, 0);
}

/* The flow of the target's requests in @fl's connection; NULL where nothing is announced. */
static const struct flow *announced(struct engine *e, const struct flow *fl)
{
	const struct rule *r = rule_of(e, fl);
	const struct flow *back = r && r->announce ? flow_partner(e, fl) : NULL;
	const struct lane_announce *y = back ? announce_of(e, &fl->lane) : NULL;

	if (back && !y) {
		fl = back;
		y = announce_of(e, &fl->lane);
	}
	return y && y->phase == ANNOUNCE_PROVEN ? fl : NULL;
}

bool announce_lossy(struct engine *e, const struct flow *fl)
{
	const struct lane_reads *x;

	fl = announced(e, fl);
	x = fl ? reads_of(e, &fl->lane) : NULL;
	return x && x->announce && link_lossy(e, &fl->lane);
}

void announce_stop(struct engine *e, struct flow *fl)
{
	struct lane_reads *x = reads_of(e, &fl->lane);

	if (!x || !x->announce || fl->lane.role != ROLE_OPENER)
		return;
	x->announce = false;
	x->announce_seq = x->seq + 1;
	resp_report_due(e, fl, true);
}

static void mismatch(struct engine *e, struct flow *fl, struct lane_announce *y)
{
	COUNT(e, ANNOUNCE_MISMATCHES);
	y->misses++;
	y->proofs = 0;
	if (y->phase == ANNOUNCE_PROVEN || y->misses >= MISSES_MAX)
		turn_off(e, fl, y, WHY_OTHER_READ);
}

/* The command that @r is a part of; NULL when there is none, or more than one. */
struct command *announce_match(struct engine *e, struct lane_announce *y,
			       const struct read_range *r)
{
	struct command *found = NULL;

	mq_each (struct command, c, e->reads, &y->commands) {
		if (c->over || c->state == COMMAND_LOOSE || c->state == COMMAND_PENDING ||
		    c->rkey != r->rkey || r->va < c->va || r->va + r->length > c->va + c->length)
			continue;
		if (found)
			return NULL;
		found = c;
	}
	return found;
}

static bool loose(struct engine *e, const struct lane_announce *y)
{
	mq_each (struct command, c, e->reads, &y->commands)
		if (c->state == COMMAND_LOOSE && !c->over)
			return true;
	return false;
}

struct command *announce_read(struct engine *e, struct flow *fl, const struct read_range *r)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	struct command *c = announce_match(e, y, r);

	if (!c) {
		if (y->phase != ANNOUNCE_OFF && !loose(e, y))
			mismatch(e, fl, y);
		return NULL;
	}
	if (!c->read && r->length > y->split)
		y->split = r->length;
	c->read += r->length;
	return c;
}

/* ---- capsules and responses ---- */

static void judge(struct engine *e, struct flow *fl, struct lane_announce *y, uint32_t id)
{
	bool found = false, all = true;

	mq_each (const struct command, c, e->reads, &y->commands) {
		if (c->over || c->state == COMMAND_PENDING || c->id != id)
			continue;
		found = true;
		all &= c->length && c->read == c->length;
	}
	if (found && all && y->phase == ANNOUNCE_PROVING && ++y->proofs >= PROOFS)
		y->phase = ANNOUNCE_PROVEN;
	agree(e, fl);
}

static struct storage_send send_of(const struct frame *f)
{
	return (struct storage_send){
		.p = f->data + f->payload, .len = f->payload_len, .whole = f->op->flags & OPF_ONLY};
}

void announce_response(struct engine *e, struct flow *fl, const struct frame *f)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	struct storage_send s = send_of(f);
	uint32_t id;

	if (!y || !(f->op->flags & (OPF_FIRST | OPF_ONLY)))
		return;
	switch (storage_answer(y->protocol, &s, &id)) {
	case STORAGE_DONE:
		judge(e, fl, y, id);
		end_by_id(e, fl, y, id);
		break;
	case STORAGE_OTHER:
		break;
	case STORAGE_ENDS:
		doubt_all(e, fl, y);
		break;
	case STORAGE_FOREIGN:
		end_all(e, fl, y);
		mismatch(e, fl, y);
	}
}

bool announce_live(struct engine *e, const struct flow *fl, const struct read_range *r)
{
	struct lane_announce *y = announce_of(e, &fl->lane);

	return y && announce_match(e, y, r);
}

/* The protocol of @s: what the rule says, or what shows as long as nothing is proven. */
static enum storage_protocol protocol_of(const struct engine *e, const struct flow *fl,
					 const struct lane_announce *y,
					 const struct storage_send *s)
{
	static const uint8_t by_rule[ANNOUNCE_MODES] = {[ANNOUNCE_MODE_NVME] = STORAGE_NVME,
							[ANNOUNCE_MODE_ISER] = STORAGE_ISER,
							[ANNOUNCE_MODE_NFS] = STORAGE_NFS};
	enum storage_protocol p = by_rule[rule_of(e, fl)->announce];

	if (y && (y->proofs || y->phase != ANNOUNCE_PROVING))
		return y->protocol;
	if (p == STORAGE_UNKNOWN)
		p = storage_guess(s);
	return p == STORAGE_UNKNOWN && y ? y->protocol : p;
}

/* The buffer @i of the command @s, whose capsule is @psn, of the target @fl. False without room. */
static bool note(struct engine *e, struct flow *fl, const struct storage_command *s, uint32_t i,
		 enum storage_verdict v, struct wire_psn psn)
{
	struct lane_announce *y = announce_of(e, &fl->lane);
	uint8_t part = part_of(y->protocol, i);
	struct command *c = pending(e, y, psn, part);

	if (!c && mq_len(e->reads, &y->commands) < COMMANDS_MAX)
		c = mq_at(e->reads, mq_push(e->reads, &y->commands));
	if (!c)
		return false;
	c->psn = psn;
	c->part = part;
	c->id = s->id;
	c->state = COMMAND_LOOSE;
	if (v == STORAGE_LOOSE)
		return true;
	c->va = s->buffer[i].va;
	c->rkey = s->buffer[i].rkey;
	c->length = s->buffer[i].length;
	c->state = COMMAND_LIVE;
	if (fl->lane.role == ROLE_ACCEPTOR)
		announce_queue(e, fl, c);
	return true;
}

void announce_capsule(struct engine *e, struct flow *fl, const struct frame *f, struct wire_psn psn)
{
	struct flow *req = flow_partner(e, fl);
	struct storage_send send = send_of(f);
	struct storage_command s;
	enum storage_protocol p;
	enum storage_verdict v;
	struct lane_announce *y;

	if (!req || !wanted(e, req) || !(f->op->flags & (OPF_FIRST | OPF_ONLY)))
		return;
	y = announce_of(e, &req->lane);
	p = protocol_of(e, req, y, &send);
	v = storage_command(p, &send, &s);
	if (y && p != y->protocol)
		end_all(e, req, y);
	else if (y && v != STORAGE_NONE)
		end_by_id(e, req, y, s.id);
	/* where numbers differ it matters still what is under way */
	if (v == STORAGE_NONE || v == STORAGE_QUIET ||
	    (y && y->phase == ANNOUNCE_OFF && !y->far.numbered && !req->lane.renumbered))
		return;
	y = begin(e, req);
	if (!y)
		return;
	y->protocol = p;
	for (uint32_t i = 0; i < (v == STORAGE_LOOSE ? 1 : s.count); i++) {
		if (note(e, req, &s, i, v, psn))
			continue;
		turn_off(e, req, y, WHY_TOO_MANY); /* what it READs could not be told */
		return;
	}
}

/* ---- what the two ends tell each other of numbers ---- */

bool announce_differs(struct engine *e, const struct lane *l)
{
	const struct lane_announce *y = announce_of(e, l);

	return y && y->far.numbered &&
	       (y->own.head != MQ_NONE || far_map_differs(&y->far, l->una.psn));
}

bool announce_numbered(struct engine *e, const struct lane *l)
{
	const struct lane_announce *y = announce_of(e, l);

	return y && y->far.numbered;
}

void announce_tell(struct engine *e, struct flow *fl, struct report *r)
{
	const struct lane_reads *x = reads_of(e, &fl->lane);
	const struct lane_announce *y = announce_of(e, &fl->lane);

	if (!y)
		return;
	r->announced = true;
	r->resp_seq = x->seq;
	r->differs = announce_differs(e, &fl->lane);
}

void announce_heard(struct engine *e, struct flow *fl, const struct report *r)
{
	struct lane *l = &fl->lane;
	const struct lane_reads *x = reads_of(e, l);
	struct lane_announce *y = announce_of(e, l);

	if (!y || !r->announced || x->announce || !l->renumbered ||
	    (int32_t)(r->resp_seq - x->announce_seq) < 0)
		return;
	if (r->differs)
		y->agreed = 0;
	else if (!y->agreed)
		y->agreed = e->now;
}

/* What was absorbed the initiator cannot be asked for again, should the target have lost its answer
 * on the LAN. The target asks again within SETTLE_NS, and we have it. */
void announce_settle(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	const struct lane_announce *y = l->renumbered ? announce_of(e, l) : NULL;

	if (y && e->now - fl->seen > e->cfg.idle_ns / 2)
		announce_stop(e, fl); /* so that it can be forgotten */
	if (!y || !y->agreed || reads_of(e, l)->announce || e->now - y->agreed < SETTLE_NS)
		return;
	l->renumbered = false;
	lane_settled(e, fl);
}

void announce_end(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct lane_reads *x = reads_of(e, l);
	struct lane_announce *y = announce_of(e, l);

	l->renumbered = false;
	if (!y)
		return;
	end_all(e, fl, y);
	mq_flush(e->reads, &y->commands);
	mq_flush(e->reads, &y->own);
	mq_flush(e->reads, &y->absorbed);
	pool_page_put(e->pool, x->announce_page);
	x->announce_page = POOL_NONE;
}

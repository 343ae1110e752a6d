// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host: its queue pairs, the turn each gets to send, and the timers. See rc_internal.h for the
 * scheme.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/model/rc_internal.h"
#include "wire/icrc.h"

/* Frames a queue pair may send before the next has its turn. */
#define QUANTUM		16
/* How far ahead of the line a host may hand out frames: four of the largest. */
#define LINE_AHEAD_BITS (4 * 8 * 4200ull)

static const char *const op_names[RC_OPS] = {"send",	  "send-imm", "send-inv", "write",
					     "write-imm", "read",     "cmp-swap", "fetch-add"};
static const char *const status_names[RC_STATUSES] = {"ok",
						      "retry-exceeded",
						      "rnr-exceeded",
						      "remote-invalid",
						      "remote-access",
						      "remote-operation",
						      "bad-response",
						      "flushed"};

const char *rc_op_name(enum rc_op op)
{
	return op < RC_OPS ? op_names[op] : "?";
}

const char *rc_status_name(enum rc_status s)
{
	return s < RC_STATUSES ? status_names[s] : "?";
}

/* Timers: a binary heap of queue pairs by (a lower bound of) their deadline. */

static void heap_set(struct rc_host *h, uint32_t i, struct rc_qp *qp)
{
	h->heap[i] = qp;
	qp->heap_pos = i;
}

static void heap_up(struct rc_host *h, uint32_t i)
{
	struct rc_qp *qp = h->heap[i];

	for (; i && h->heap[(i - 1) / 2]->heap_key > qp->heap_key; i = (i - 1) / 2)
		heap_set(h, i, h->heap[(i - 1) / 2]);
	heap_set(h, i, qp);
}

static void heap_down(struct rc_host *h, uint32_t i)
{
	struct rc_qp *qp = h->heap[i];

	for (uint32_t c; (c = 2 * i + 1) < h->heap_len; i = c) {
		if (c + 1 < h->heap_len && h->heap[c + 1]->heap_key < h->heap[c]->heap_key)
			c++;
		if (h->heap[c]->heap_key >= qp->heap_key)
			break;
		heap_set(h, i, h->heap[c]);
	}
	heap_set(h, i, qp);
}

static void heap_remove(struct rc_host *h, struct rc_qp *qp)
{
	uint32_t i = qp->heap_pos;
	struct rc_qp *last;

	if (i == RC_HEAP_NONE)
		return;
	qp->heap_pos = RC_HEAP_NONE;
	last = h->heap[--h->heap_len];
	if (last == qp)
		return;
	heap_set(h, i, last);
	heap_up(h, i);
	heap_down(h, last->heap_pos);
}

void rc_arm(struct rc_qp *qp, uint64_t at)
{
	struct rc_host *h = qp->h;

	if (at == RC_NEVER)
		return;
	if (qp->heap_pos == RC_HEAP_NONE) {
		qp->heap_key = at;
		heap_set(h, h->heap_len, qp);
		heap_up(h, h->heap_len++);
	} else if (at < qp->heap_key) {
		qp->heap_key = at;
		heap_up(h, qp->heap_pos);
	}
}

static uint64_t qp_deadline(const struct rc_qp *qp)
{
	uint64_t a = rc_requester_deadline(qp), b = rc_responder_deadline(qp);

	return a < b ? a : b;
}

static void run_timers(struct rc_host *h, uint64_t now)
{
	while (h->heap_len && h->heap[0]->heap_key <= now) {
		struct rc_qp *qp = h->heap[0];

		heap_remove(h, qp);
		if (qp_deadline(qp) <= now) {
			if (!qp->error)
				rc_requester_timer(qp, now);
			/* An ACK that is due is sent by the queue pair's turn, which may have to
			 * wait. */
			if (rc_responder_deadline(qp) <= now)
				rc_activate(qp);
		}
		if (rc_requester_deadline(qp) > now)
			rc_arm(qp, rc_requester_deadline(qp));
		if (rc_responder_deadline(qp) > now)
			rc_arm(qp, rc_responder_deadline(qp));
	}
}

/* Turns */

void rc_activate(struct rc_qp *qp)
{
	struct rc_host *h = qp->h;

	if (qp->active)
		return;
	qp->active = true;
	qp->next_active = NULL;
	if (h->active_tail)
		h->active_tail->next_active = qp;
	else
		h->active_head = qp;
	h->active_tail = qp;
}

static void pop_active(struct rc_host *h)
{
	struct rc_qp *qp = h->active_head;

	h->active_head = qp->next_active;
	if (!h->active_head)
		h->active_tail = NULL;
	qp->active = false;
}

uint8_t *rc_tx_buf(struct rc_host *h)
{
	return h->ops.tx_buf(h->ctx);
}

void rc_tx(struct rc_host *h, uint8_t *buf, uint32_t len)
{
	h->stats.tx_frames++;
	h->stats.tx_bytes += len;
	if (h->cfg.link_bps) {
		if (h->link_free < h->now)
			h->link_free = h->now;
		/* Preamble, gap and FCS take the line too. */
		h->link_free += (len + 24) * 8000000000ull / h->cfg.link_bps;
	}
	h->ops.tx(h->ctx, buf, len);
}

static uint64_t line_open_at(const struct rc_host *h)
{
	uint64_t ahead;

	if (!h->cfg.link_bps)
		return 0;
	ahead = LINE_AHEAD_BITS * 1000000000ull / h->cfg.link_bps;
	return h->link_free > ahead ? h->link_free - ahead : 0;
}

/* One turn: an answer and a request alternate, so that neither starves the other. */
static enum rc_step turn(struct rc_qp *qp, uint64_t now, uint32_t budget, uint32_t *sent)
{
	for (*sent = 0; *sent < budget;) {
		enum rc_step a, b;

		if (line_open_at(qp->h) > now)
			return RC_SENT;
		a = rc_responder_step(qp, now);
		if (a == RC_BLOCKED)
			return a;
		*sent += a == RC_SENT;
		b = rc_requester_step(qp, now);
		if (b == RC_BLOCKED)
			return b;
		*sent += b == RC_SENT;
		if (a == RC_IDLE && b == RC_IDLE)
			return RC_IDLE;
	}
	return RC_SENT;
}

uint32_t rc_host_poll(struct rc_host *h, uint64_t now, uint32_t budget)
{
	uint32_t total = 0;

	h->now = now;
	h->blocked = false;
	run_timers(h, now);
	while (h->active_head && total < budget && line_open_at(h) <= now) {
		struct rc_qp *qp = h->active_head;
		uint32_t left = budget - total, sent;
		enum rc_step step = turn(qp, now, left < QUANTUM ? left : QUANTUM, &sent);

		total += sent;
		if (step == RC_BLOCKED) {
			h->blocked = true;
			break;
		}
		pop_active(h);
		if (step == RC_SENT)
			rc_activate(qp);
	}
	return total;
}

uint64_t rc_host_next(const struct rc_host *h)
{
	uint64_t at = h->heap_len ? h->heap[0]->heap_key : RC_NEVER;

	if (h->active_head && !h->blocked) {
		uint64_t open = line_open_at(h);

		at = open < at ? open : at;
	}
	return at;
}

/* Frames in */

static struct rc_qp *lookup(const struct rc_host *h, uint32_t qpn)
{
	struct rc_qp *qp = h->buckets[(qpn * 0x9e3779b1u >> 8) & h->bucket_mask];

	while (qp && qp->cfg.lqpn != qpn)
		qp = qp->next_hash;
	return qp;
}

static struct rc_qp *accept_frame(struct rc_host *h, const uint8_t *data, uint32_t len,
				  struct frame *f)
{
	enum frame_verdict v = frame_parse(data, len, f);
	struct rc_qp *qp;

	h->stats.rx_frames++;
	h->stats.rx_bytes += len;
	if (v != FRAME_OK) {
		if (v == FRAME_NOT_ROCE)
			h->stats.rx_not_roce++;
		else
			h->stats.rx_malformed++;
		return NULL;
	}
	if (!h->cfg.skip_icrc && !icrc_ok(f)) {
		h->stats.rx_bad_icrc++;
		return NULL;
	}
	if (f->opcode == OP_UD_SEND_ONLY) {
		h->stats.rx_ud++;
		return NULL;
	}
	qp = lookup(h, f->dqpn);
	if (!qp) {
		h->stats.rx_no_qp++;
		return NULL;
	}
	if (!ip_addr_eq(&f->src, &qp->cfg.dst) || !ip_addr_eq(&f->dst, &qp->cfg.src)) {
		h->stats.rx_wrong_address++;
		return NULL;
	}
	if (f->opcode == OP_CNP) {
		h->stats.rx_cnp++;
		return NULL;
	}
	return qp;
}

void rc_host_rx(struct rc_host *h, uint64_t now, const uint8_t *data, uint32_t len)
{
	struct frame f;
	struct rc_qp *qp = accept_frame(h, data, len, &f);

	if (!qp)
		return;
	h->now = now;
	if (!(f.op->flags & OPF_RC)) {
		h->stats.rx_not_rc++;
	} else if (f.op->flags & OPF_RESPONSE) {
		if (qp->error)
			return;
		if (qp->cfg.personality == RC_STRICT)
			rc_response_strict(qp, now, &f);
		else
			rc_response_permissive(qp, now, &f);
	} else if (f.op->flags & OPF_REQUEST) {
		rc_responder_rx(qp, now, &f);
	}
}

/* Hosts and queue pairs */

struct rc_host *rc_host_create(const struct rc_host_config *cfg, const struct rc_host_ops *ops,
			       void *ctx)
{
	struct rc_host *h = calloc(1, sizeof(*h));
	uint32_t buckets = 16;

	if (!h)
		return NULL;
	h->cfg = *cfg;
	if (!h->cfg.qps_max)
		h->cfg.qps_max = 64;
	h->ops = *ops;
	h->ctx = ctx;
	prng_init(&h->prng, cfg->seed);
	while (buckets < 2 * h->cfg.qps_max)
		buckets *= 2;
	h->bucket_mask = buckets - 1;
	h->buckets = calloc(buckets, sizeof(*h->buckets));
	h->heap = calloc(h->cfg.qps_max, sizeof(*h->heap));
	if (!h->buckets || !h->heap) {
		rc_host_destroy(h);
		return NULL;
	}
	return h;
}

void rc_host_destroy(struct rc_host *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; h->buckets && i <= h->bucket_mask; i++)
		while (h->buckets[i])
			rc_qp_destroy(h->buckets[i]);
	free(h->buckets);
	free(h->heap);
	free(h);
}

void rc_qp_defaults(struct rc_qp_config *c, enum rc_personality p)
{
	memset(c, 0, sizeof(*c));
	c->personality = p;
	c->mtu = 1024;
	c->vlan = FRAME_VLAN_NONE;
	c->sport = 0xc000;
	c->depth = 128;
	c->max_unacked = p == RC_PERMISSIVE ? 128 : 0;
	c->max_rd = 16;
	c->resp_rd = 16;
	c->timeout_exp = 14;
	c->retry_cnt = 7;
	c->rnr_retry = 7;
	c->ackreq_every = 64;
	c->min_rnr_timer = 12;
	c->recv_auto = true;
	c->recv_depth = 128;
	c->ack_coalesce = 1;
	c->mr_va = 0x100000;
	c->mr_size = 1u << 20;
	c->mr_rkey = 0x1234;
	c->rmr_va = 0x100000;
	c->rmr_size = 1u << 20;
	c->rmr_rkey = 0x1234;
	c->tx_seed = 1;
	c->rx_seed = 2;
	c->mr_seed = 3;
	c->rmr_seed = 4;
	c->journal = 16384;
	c->shadow = true;
}

#define SWAP_IN(field_a, field_b)                                                                  \
	do {                                                                                       \
		peer->field_a = c->field_b;                                                        \
		peer->field_b = c->field_a;                                                        \
	} while (0)

void rc_qp_mirror(struct rc_qp_config *peer, const struct rc_qp_config *c)
{
	*peer = *c;
	SWAP_IN(lqpn, rqpn);
	SWAP_IN(sq_psn, rq_psn);
	SWAP_IN(prio, rprio);
	memcpy(peer->smac, c->dmac, 6);
	memcpy(peer->dmac, c->smac, 6);
	SWAP_IN(src, dst);
	SWAP_IN(tx_seed, rx_seed);
	SWAP_IN(mr_va, rmr_va);
	SWAP_IN(mr_size, rmr_size);
	SWAP_IN(mr_seed, rmr_seed);
	SWAP_IN(mr_fixed, rmr_fixed);
	SWAP_IN(mr_rkey, rmr_rkey);
}

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool config_ok(const struct rc_qp_config *c)
{
	return power_of_two(c->mtu) && c->mtu >= 256 && c->mtu <= 4096 && power_of_two(c->depth) &&
	       power_of_two(c->journal) && c->resp_rd && c->max_rd && c->mr_size <= UINT32_MAX &&
	       c->rmr_size <= UINT32_MAX && c->timeout_exp < 32 && c->rnr_retry < 8 &&
	       c->min_rnr_timer < 32 &&
	       ((c->lqpn | c->rqpn | c->sq_psn | c->rq_psn) & ~PSN_MASK) == 0 &&
	       c->max_unacked < 1u << 22;
}

struct rc_qp *rc_qp_create(struct rc_host *h, const struct rc_qp_config *cfg, void *user)
{
	struct rc_qp *qp, **bucket;

	if (!config_ok(cfg) || h->qps == h->cfg.qps_max || lookup(h, cfg->lqpn))
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->h = h;
	qp->cfg = *cfg;
	qp->user = user;
	qp->heap_pos = RC_HEAP_NONE;
	qp->mtu_shift = (uint32_t)__builtin_ctz(cfg->mtu);
	rc_header_init(&qp->header, cfg->smac, cfg->dmac,
		       cfg->vlan == FRAME_VLAN_NONE && cfg->prio ? (uint16_t)(cfg->prio << 13)
								 : cfg->vlan,
		       &cfg->src, &cfg->dst, cfg->sport);
	qp->header.migreq = cfg->personality == RC_STRICT;
	if (rc_requester_init(qp) || rc_responder_init(qp)) {
		rc_requester_exit(qp);
		rc_responder_exit(qp);
		free(qp);
		return NULL;
	}
	qp->resp.recv_last = h->now;
	bucket = &h->buckets[(cfg->lqpn * 0x9e3779b1u >> 8) & h->bucket_mask];
	qp->next_hash = *bucket;
	*bucket = qp;
	h->qps++;
	return qp;
}

static void add_stats(struct rc_stats *sum, const struct rc_stats *s)
{
	uint64_t *a = (uint64_t *)sum;
	const uint64_t *b = (const uint64_t *)s;

	for (size_t i = 0; i < sizeof(*s) / sizeof(*a); i++)
		a[i] += b[i];
}

static void leave_active(struct rc_host *h, struct rc_qp *qp)
{
	struct rc_qp **p = &h->active_head, *before = NULL;

	if (!qp->active)
		return;
	while (*p != qp) {
		before = *p;
		p = &(*p)->next_active;
	}
	*p = qp->next_active;
	if (h->active_tail == qp)
		h->active_tail = before;
}

void rc_qp_destroy(struct rc_qp *qp)
{
	struct rc_host *h = qp->h;
	struct rc_qp **p = &h->buckets[(qp->cfg.lqpn * 0x9e3779b1u >> 8) & h->bucket_mask];

	while (*p != qp)
		p = &(*p)->next_hash;
	*p = qp->next_hash;
	heap_remove(h, qp);
	leave_active(h, qp);
	add_stats(&h->gone, &qp->stats);
	h->qps--;
	rc_requester_exit(qp);
	rc_responder_exit(qp);
	free(qp);
}

struct rc_qp *rc_qp_find(struct rc_host *h, uint32_t qpn)
{
	return lookup(h, qpn);
}

void rc_fail(struct rc_qp *qp, uint64_t now, enum rc_status why)
{
	if (qp->error)
		return;
	qp->error = true;
	/* The NAK that explains it is still sent, after the earlier answers; nothing else is. */
	if (!aeth_is_nak(qp->resp.nak) || qp->resp.nak == AETH_NAK_SEQ) {
		qp->resp.nak = 0;
		qp->resp.reply_count = 0;
	}
	qp->resp.ack_due = false;
	if (qp->h->ops.error)
		qp->h->ops.error(qp->h->ctx, qp, why);
	rc_requester_flush(qp, now, why);
}

void rc_qp_fail(struct rc_qp *qp, uint64_t now)
{
	rc_fail(qp, now, RC_FLUSHED);
}

void rc_qp_refuse_next(struct rc_qp *qp, uint8_t syndrome, uint32_t skip)
{
	qp->resp.refuse = syndrome;
	qp->resp.refuse_skip = skip;
}

struct rc_stats rc_host_totals(const struct rc_host *h)
{
	struct rc_stats sum = h->gone;

	for (uint32_t i = 0; i <= h->bucket_mask; i++)
		for (const struct rc_qp *qp = h->buckets[i]; qp; qp = qp->next_hash)
			add_stats(&sum, &qp->stats);
	return sum;
}

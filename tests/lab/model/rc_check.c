// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queries about queue pairs: state for invariants, and whether two ends agree.
 */
#include <errno.h>
#include <string.h>

#include "tests/lab/model/rc_internal.h"

uint64_t rc_order_hash(uint64_t prev, enum rc_op op, uint32_t length, uint64_t va, uint32_t imm)
{
	if (op <= RC_SEND_INV)
		va = 0;
	if (!rc_op_has_imm(op))
		imm = 0;
	return splitmix64(splitmix64(splitmix64(prev ^ va) ^ ((uint64_t)length << 32 | imm)) + op);
}

uint64_t rc_atomic_hash(uint64_t prev, enum rc_op op, uint64_t data, uint64_t va, uint64_t swap_add,
			uint64_t compare)
{
	return splitmix64(splitmix64(splitmix64(splitmix64(prev ^ va) ^ data) ^ swap_add) ^
			  compare) +
	       op;
}

/* Each atomic once, in its place among all that was posted. */
static int check_atomics(const struct rc_qp *requester, const struct rc_qp *responder)
{
	const struct rc_requester *q = &requester->req;
	const struct rc_responder *r = &responder->resp;

	if (r->atomics_done == 0 || requester->cfg.atomics_more)
		return 0;
	if (r->atomics_done > q->atomics_posted)
		return -EBADMSG;
	if (q->atomics_posted - r->atomics_done >= requester->cfg.journal)
		return -ERANGE;
	return q->atomic_journal[(r->atomics_done - 1) & (requester->cfg.journal - 1)] ==
			       r->atomic_hash
		       ? 0
		       : -EBADMSG;
}

int rc_check_prefix(const struct rc_qp *requester, const struct rc_qp *responder)
{
	const struct rc_requester *q = &requester->req;
	const struct rc_responder *r = &responder->resp;
	int err = check_atomics(requester, responder);

	if (err || r->data_done == 0)
		return err;
	if (r->data_done > q->data_posted)
		return -EBADMSG;
	if (q->data_posted - r->data_done >= requester->cfg.journal)
		return -ERANGE;
	return q->journal[(r->data_done - 1) & (requester->cfg.journal - 1)] == r->order_hash
		       ? 0
		       : -EBADMSG;
}

int rc_check_all(const struct rc_qp *requester, const struct rc_qp *responder)
{
	if (requester->req.data_posted != responder->resp.data_done ||
	    requester->req.atomics_posted > responder->resp.atomics_done ||
	    (requester->req.atomics_posted < responder->resp.atomics_done &&
	     !requester->cfg.atomics_more))
		return -EBADMSG;
	return rc_check_prefix(requester, responder);
}

int64_t rc_check_memory(struct rc_qp *requester, struct rc_qp *responder)
{
	const uint8_t *a = requester->req.shadow, *b = responder->resp.mr;
	uint64_t n = requester->cfg.rmr_size;

	if (!a || n != responder->cfg.mr_size)
		return 0;
	if (requester->cfg.rmr_fixed)
		n = requester->cfg.rmr_fixed;
	if (!memcmp(a, b, n))
		return -1;
	for (uint64_t i = 0; i < n; i++)
		if (a[i] != b[i])
			return (int64_t)i;
	return -1;
}

uint64_t rc_messages(const struct rc_qp *qp)
{
	return qp->resp.data_done;
}

uint64_t rc_atomics(const struct rc_qp *qp)
{
	return qp->resp.atomics_done;
}

uint64_t rc_messages_posted(const struct rc_qp *qp)
{
	return qp->req.data_posted;
}

const struct rc_host_stats *rc_host_stats(const struct rc_host *h)
{
	return &h->stats;
}

const struct rc_qp_config *rc_qp_config(const struct rc_qp *qp)
{
	return &qp->cfg;
}

const struct rc_stats *rc_qp_stats(const struct rc_qp *qp)
{
	return &qp->stats;
}

void *rc_qp_user(const struct rc_qp *qp)
{
	return qp->user;
}

bool rc_qp_in_error(const struct rc_qp *qp)
{
	return qp->error;
}

uint32_t rc_qp_queued(const struct rc_qp *qp)
{
	return (uint32_t)(qp->req.tail - qp->req.head);
}

uint32_t rc_qp_room(const struct rc_qp *qp)
{
	return qp->error ? 0 : qp->cfg.depth - rc_qp_queued(qp);
}

uint8_t *rc_qp_memory(struct rc_qp *qp)
{
	return qp->resp.mr;
}

uint8_t *rc_qp_shadow(struct rc_qp *qp)
{
	return qp->req.shadow;
}

uint32_t rc_qp_una(const struct rc_qp *qp)
{
	return qp->req.una;
}

uint32_t rc_qp_sent_end(const struct rc_qp *qp)
{
	return qp->req.sent_end;
}

uint32_t rc_qp_epsn(const struct rc_qp *qp)
{
	return qp->resp.epsn;
}

uint32_t rc_qp_msn(const struct rc_qp *qp)
{
	return (uint32_t)qp->resp.msn & PSN_MASK;
}

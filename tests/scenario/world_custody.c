// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What must hold at every moment: what was acknowledged to a host, and what goes over the WAN. */
#include "tests/scenario/world_priv.h"

#include <string.h>

#include "wire/icrc.h"
#include "wire/psn.h"

bool world_lane(struct world_qp *q, int s, struct lane_info *out)
{
	struct world *w = q->w;
	const struct rc_qp_config *c = &q->cfg[s];
	struct conn_info ci;

	if (w->engine[s] && shards_conn_next(w->shards[s], q->side[s].conn, w->now, &ci) &&
	    ci.paired && ci.lqpn == c->lqpn && ci.rqpn == c->rqpn) {
		*out = ci.lane[LANE_OUT];
		return true;
	}
	if (!world_conn(w, s, q, &ci))
		return false;
	q->side[s].conn = ci.id;
	*out = ci.lane[LANE_OUT];
	return true;
}

bool world_owed_near(struct world_qp *q, uint32_t psns)
{
	for (int s = 0; s < 2; s++) {
		uint32_t lqpn = s ? q->cfg[0].rqpn : q->cfg[0].lqpn,
			 rqpn = s ? q->cfg[0].lqpn : q->cfg[0].rqpn,
			 psn = s ? q->cfg[0].rq_psn : q->cfg[0].sq_psn, from = 0;
		struct conn_info ci;

		while (q->w->engine[s] && shards_conn_next(q->w->shards[s], from, q->w->now, &ci)) {
			const struct lane_info *l = &ci.lane[LANE_OUT];

			from = ci.id + 1;
			/* one of its numbers may have had another partner */
			if (ci.paired && (ci.lqpn == lqpn || ci.rqpn == rqpn) &&
			    l->custody.packets &&
			    (psn_sub(psn, l->una) < psns || psn_sub(l->una, psn) < psns))
				return true;
		}
	}
	return false;
}

bool world_owed(struct world_qp *q)
{
	return world_owed_near(q, PSN_MASK + 1);
}

void world_wrong(struct world_qp *q, const char *what)
{
	if (q->debt)
		q->w->excuse = EXCUSE_REUSE;
	else if (world_astray(q))
		q->wrong = q->wrong ? q->wrong : what;
	else if (!q->w->violation)
		q->w->violation = what;
}

/* The ICRC that @f would have if it asked for no ACK: who keeps an order asks for some more, and so
 * does who is alone. */
static uint32_t icrc_unasked(const struct world *w, const struct frame *f)
{
	uint8_t copy[FRAME_MAX], b = f->data[f->bth + 8u] & 0x7f;
	uint32_t icrc;

	if (!f->ackreq || (!w->cfg.actors.order && !w->cfg.single) || f->len > FRAME_MAX) {
		memcpy(&icrc, f->data + f->icrc, 4);
		return icrc;
	}
	memcpy(copy, f->data, f->len);
	icrc_patch(copy, f, f->bth + 8u, 1, &b);
	memcpy(&icrc, copy + f->icrc, 4);
	return icrc;
}

/*
 * No frame of a request that is in custody goes over the WAN but the one that was retained. Hosts
 * number their IPv4 packets, so what a host sends again differs from what it sent first.
 */
void world_check_forwarded(struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct world_seen *seen;
	struct world_qp *q;
	struct lane_info l;
	struct rc_qp *qp;
	struct frame f;
	uint32_t icrc;

	if (frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_REQUEST) ||
	    (f.op->flags & OPF_ANSWERED))
		return;
	qp = rc_qp_find(w->host[!side], f.dqpn);
	q = qp ? rc_qp_user(qp) : NULL;
	if (!q || !q->up || !q->side[side].seen || (w->cfg.lan.corrupt > 0 && !icrc_ok(&f)))
		return; /* a damaged frame may belong to no lane; the host must judge it */
	switch (world_forged(w, data, len)) {
	case FORGED_INSIDE:
		w->violation = "a forged request with a PSN in custody went over the WAN";
		return;
	case FORGED:
		return; /* what is not in custody passes, and is the hosts' own risk */
	default:
		break;
	}
	seen = &q->side[side].seen[f.psn % WORLD_SEEN];
	icrc = icrc_unasked(w, &f);
	if (seen->psn != f.psn || seen->gen != w->held_gen[side]) {
		*seen = (struct world_seen){f.psn, icrc, w->held_gen[side]};
		return;
	}
	if (seen->icrc == icrc || q->reused || !world_lane(q, side, &l) ||
	    (l.state != LANE_HELD && l.state != LANE_DRAIN) || !psn_in(f.psn, l.una, l.epsn))
		return;
	w->violation = "a host's duplicate of what is in custody went over the WAN";
}

static uint64_t beyond(uint64_t told, uint64_t done)
{
	return told > done ? told - done : 0;
}

/* Whether all that was acknowledged to host @s is executed, or in an appliance's custody. */
static const char *check_custody(struct world_qp *q, int s)
{
	struct rc_qp *req = q->side[s].qp, *resp = q->side[!s].qp;
	struct lane_info l;
	uint32_t una, epsn;
	uint64_t ahead;

	if (!q->up)
		return NULL;
	ahead = beyond(q->side[s].ok_data, rc_messages(resp)) +
		beyond(q->side[s].ok_atomics, rc_atomics(resp));
	una = rc_qp_una(req);
	epsn = rc_qp_epsn(resp);
	if (rc_qp_in_error(req) || rc_qp_in_error(resp) || q->side[s].lost ||
	    (q->reused && !q->reuse.after))
		return NULL;
	if (world_renumbers(q->w)) {
		/* the appliances may count in PSNs of their own: go by messages */
		if (!ahead)
			return NULL;
	} else if (!psn_after(una, epsn)) {
		return NULL;
	}
	if (!world_lane(q, s, &l) ||
	    (l.state != LANE_HELD && l.state != LANE_DRAIN && l.state != LANE_FAULT))
		return "1: acknowledged, not executed, and in no custody";
	if (l.state == LANE_FAULT) {
		if (!q->side[s].fault_at) {
			q->side[s].fault_at = q->w->now;
			q->side[s].fault_una = una;
		} else if (q->w->now <= q->side[s].fault_at + MS) {
			q->side[s].fault_una = una; /* what was on its way to the host */
		} else if (una != q->side[s].fault_una) {
			return "5: success after a fault";
		}
		return NULL;
	}
	if (world_renumbers(q->w))
		return l.custody.messages < ahead
			       ? "1: acknowledged and not executed, and too little is in custody"
			       : NULL;
	if (psn_before(l.epsn, una))
		return "1: acknowledged beyond what is held";
	if (psn_after(l.una, epsn))
		return "4: released before the responder had it";
	return NULL;
}

void world_check_told(struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct rc_qp *qp;
	struct frame f;

	if (w->violation || frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_RESPONSE))
		return;
	qp = rc_qp_find(w->host[side], f.dqpn);
	if (qp) {
		const char *bad = check_custody(rc_qp_user(qp), side);

		if (bad)
			world_wrong(rc_qp_user(qp), bad);
	}
}

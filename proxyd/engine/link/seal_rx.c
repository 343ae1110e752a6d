// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What comes over the WAN for a lane that is sealed (core/seal.c), before any room looks at it.
 *
 *	right	the peer has sent it: the host's ICRC is put back, and it goes its way
 *	native	its ICRC is right without a seal: it comes from its host, and has missed the peer,
 *		or somebody forged it. It is not delivered
 *	wrong	neither: it is damaged, or forged, or of another pair of appliances in whose WAN we
 *		stand. Hosts drop what has such an ICRC, so it does no harm to pass it on, and the
 *		other pair needs it
 *
 * A native frame is taken all the same where nobody can have sealed it: the peer has not agreed to
 * the lane yet, or has let go of it, or is gone. (A peer that is silent for PEER_GONE_NS is
 * believed to be no more. Where the responder knows other numbers, announce/, an opener that lives
 * could not agree anew: there it has as long as it waits itself before it gives up custody.)
 *
 * row: ENG-19
 */
#include "engine/announce/announce.h"
#include "engine/link/link.h"
#include "engine/reads/reads.h"

#define PEER_GONE_NS (10 * NSEC_PER_SEC)
/* Of what bears more, and is to be kept, the copy computes the ICRC (stream_rx.c, resp_rx.c). */
#define SMALL_BYTES  256u

/* ACCEPTOR: whether the responder may know other numbers than the host. */
static bool differs(struct engine *e, const struct lane *l)
{
	return announce_numbered(e, l) || l->ahead;
}

static bool peer_gone(struct engine *e, const struct lane *l)
{
	uint64_t after = PEER_GONE_NS;

	if (differs(e, l))
		after = MAX(after, MAX(e->cfg.peer_timeout_ns, e->cfg.responder_timeout_ns));
	return !e->peer_up[l->peer] && e->now - e->peer_since[l->peer] >= after;
}

/* Whether nobody can have sealed a frame of the lane. */
static bool alone(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;
	bool strange;

	if (l->role == ROLE_OPENER)
		return !seal_sure(l);
	if (l->state != LANE_HELD)
		return true;
	if (e->peer_up[l->peer] || !peer_gone(e, l))
		return false;
	/* the opener is no more: what came in order is still delivered */
	strange = differs(e, l);
	lane_drain(e, fl, REASON_PEER_LOST);
	return !strange;
}

static void put_back(struct frame *f, uint8_t *data)
{
	put_le32(data + f->icrc, get_le32(data + f->icrc) ^ f->seal);
}

/* Whether the frame @f of the lane @l is copied before its use. What has come before is not. */
static bool copied(struct engine *e, const struct lane *l, const struct frame *f)
{
	struct lane_reads *x = reads_of(e, l);

	if (f->payload_len <= SMALL_BYTES)
		return false;
	if (l->role == ROLE_ACCEPTOR)
		return !psn_before(wire_psn_of(f), l->epsn.psn);
	return x && resp_awaited(e, x, wire_psn_of(f));
}

/* Whether @f is a request of the opener's own (seal.c). It is for the responder like any other, but
 * the host's numbers are the opener's knowledge from here on. */
static bool opens_own(struct lane *l, struct frame *f, uint8_t *data)
{
	uint32_t stored = get_le32(data + f->icrc);

	if (l->role != ROLE_ACCEPTOR || !(f->op->flags & OPF_ANSWERED))
		return false;
	put_le32(data + f->icrc, stored ^ SEAL_OWN);
	if (icrc_ok(f)) {
		f->seal ^= SEAL_OWN;
		l->ahead = true;
		return true;
	}
	put_le32(data + f->icrc, stored);
	return false;
}

/* A frame of a connection whose lane was let go: it may have been on its way since before. */
static void open_left(struct frame *f, uint8_t *data)
{
	f->icrc_right = icrc_ok(f);
	if (!f->icrc_right) {
		put_back(f, data);
		f->icrc_right = icrc_ok(f);
	}
	if (!f->icrc_right)
		put_back(f, data);
	f->seal = 0;
}

bool seal_open(struct engine *e, struct flow *fl, struct frame *f, uint8_t *data)
{
	bool response = f->op->flags & OPF_RESPONSE;
	struct lane *l;

	if (response)
		fl = flow_partner(e, fl);
	l = fl ? &fl->lane : NULL;
	if (!l || l->state == LANE_FAULT ||
	    !(l->sealed || (l->role == ROLE_NONE && l->seal.key[0])) ||
	    fl->side != (response ? PORT_LAN : PORT_WAN))
		return true;
	f->seal = seal_tag(e, l, response, wire_psn_of(f));
	if (!f->seal)
		return true; /* from before the handover */
	if (!l->sealed) {
		open_left(f, data);
		return true;
	}
	put_back(f, data); /* as its host sent it, if the peer has sealed it */
	if (copied(e, l, f) && !alone(e, fl))
		return true;
	f->icrc_right = icrc_ok(f) || opens_own(l, f, data);
	if (f->icrc_right) {
		seal_right(l);
		return true;
	}
	if (!seal_came_native(f) || !alone(e, fl)) {
		seal_failed(e, fl, f);
		/* whatever it is, the true one may have been damaged to it */
		if (l->role == ROLE_ACCEPTOR)
			stream_rx_refuse(e, fl, wire_psn_of(f));
		else if (l->role == ROLE_OPENER && reads_of(e, l))
			resp_report_due(e, fl, true);
		return false;
	}
	put_back(f, data);
	f->seal = 0;
	f->icrc_right = true;
	return true;
}

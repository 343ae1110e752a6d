// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Is the host there whose queue pair answers nothing?
 *
 * A queue pair that is destroyed, or in the error state, is silent. So is one that cannot be
 * reached, and that one may live. Its host can tell the two apart: a connection manager answers
 * each disconnect request, also for a connection that it does not know (spec: IBTA 12.6; Linux does
 * so). The host gets such a request in the name of its peer, with communication ids that no
 * connection has, and for QPN 0, which no connection can have. An answer shows that packets reach
 * the host, and its answers us. A queue pair that is silent all the same was given up.
 *
 * The transaction id is a secret, and each answer makes a new one necessary. Who does not see the
 * question cannot answer it, and a doubled answer counts once.
 */
#include <xxhash.h>

#include "engine/core/core.h"
#include "wire/cm.h"

/* In FAULT it is the requester that is silent, else the responder. */
static bool asks_requester(const struct flow *fl)
{
	return fl->lane.state == LANE_FAULT;
}

static uint64_t secret(const struct engine *e, const struct flow *fl)
{
	const struct lane *l = &fl->lane;
	uint64_t what[] = {(uint64_t)flow_index(e, fl) << 32 | l->gen, l->progress,
			   (uint64_t)l->present << 1 | asks_requester(fl)};

	return XXH3_64bits_withSeed(what, sizeof(what), e->cfg.seed);
}

void host_ask(struct engine *e, struct flow *fl)
{
	const struct flow *back = flow_partner(e, fl);
	const struct template *t = asks_requester(fl) ? (back ? &back->tmpl : NULL) : &fl->tmpl;
	uint64_t tid = secret(e, fl);
	uint8_t buf[FRAME_MAX];
	uint32_t len;

	if (!t || !t->len || fl->lane.present == PRESENT_MAX)
		return;
	len = cm_build_dreq(buf, t, (uint32_t)tid & PSN_MASK, tid, flow_index(e, fl),
			    (uint32_t)(tid >> 32), 0);
	engine_tx(e, NULL, asks_requester(fl) ? fl->side : other_port(fl->side), buf, len);
	COUNT(e, HOSTS_ASKED);
}

bool host_answered(struct engine *e, enum engine_port from, const struct frame *f)
{
	struct flow *fl;
	bool requester;
	struct cm cm;

	if (cm_parse(f, &cm) != CM_DREP || cm.remote_id >= e->nflows)
		return false;
	fl = flow_ref(e, cm.remote_id);
	if (!fl->used || fl->lane.role == ROLE_NONE || cm.transaction_id != secret(e, fl) ||
	    !icrc_ok(f))
		return false;
	requester = asks_requester(fl);
	if (from != (requester ? fl->side : (uint8_t)other_port(fl->side)) ||
	    !ip_addr_eq(&f->src, requester ? &fl->key.src : &fl->key.dst))
		return false;
	fl->lane.present += fl->lane.present < PRESENT_MAX;
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets that take another way for a while: past the first appliance on their way, the second or
 * both, as after a change of route, or when a member of a link group fails. What passes the first
 * appliance goes straight into the WAN, what passes the second straight to the LAN of the other
 * host, whose network card drops what has a wrong ICRC. The reports of the appliances stay on
 * their path, since they go from box to box.
 *
 * The rules of some worlds make the two hosts of a connection count differently (two numberings).
 * There a packet that misses both appliances may be taken for another one, and nothing on its way
 * can prevent that. The queue pair is astray then: it may fail, if both ends are told. Nor can an
 * order between queue pairs be kept for such a packet.
 */
#include "tests/scenario/world_priv.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/cm.h"

#define MISSES_BOTH (MISS_FIRST | MISS_SECOND)

void world_path(struct world *w, const struct path *p)
{
	w->path = *p;
	w->path.since = w->now;
	w->path_used = false;
}

/* Whether the frame, from host @side, belongs to the directions that keep to the straight path. */
static bool stays(const struct world *w, int side, const uint8_t *data, uint32_t len)
{
	struct rc_qp *qp;
	struct frame f;

	if (!w->path.apart || frame_parse(data, len, &f) != FRAME_OK)
		return false;
	qp = rc_qp_find(w->host[!side], f.dqpn);
	return qp && ((const struct world_qp *)rc_qp_user(qp) - w->qp) % 2 != side;
}

/* What packets from host @side miss now. */
static uint32_t missed_now(const struct world *w, int side)
{
	const struct path *p = &w->path;
	uint64_t t = w->now - p->since;

	if (!p->every || t >= p->every * p->times || t % p->every >= p->on)
		return 0;
	return p->miss[side];
}

/* The ICRC of a frame, which the frame keeps wherever it is copied. */
static uint32_t icrc_of(const uint8_t *data, uint32_t len)
{
	return len < ICRC_LEN ? 0 : get_le32(data + len - ICRC_LEN);
}

static uint32_t *place_of(struct world *w, int side, uint32_t icrc)
{
	return &w->strayed[side][icrc % PATH_STRAYED];
}

static void note(struct world_qp *q, bool both)
{
	q->missed_first = true;
	q->missed_both |= both;
}

/* A frame from host @side misses the first appliance, or after that the second, too. */
static void missed(struct world *w, int side, const uint8_t *data, uint32_t len, bool both)
{
	struct rc_qp *qp;
	struct frame f;
	struct cm cm;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return;
	qp = rc_qp_find(w->host[!side], f.dqpn);
	if (qp)
		note(rc_qp_user(qp), both);
	if (qp || cm_parse(&f, &cm) == CM_NONE)
		return;
	/* the appliances do not know that the numbers have another owner */
	for (uint32_t i = 0; i < w->nqps; i++)
		if (w->qp[i].shaking && cm.local_id == w->qp[i].cm[side].out.local_id)
			note(&w->qp[i], both);
}

bool world_path_takes(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	int side = link & 1;
	uint32_t miss = missed_now(w, side), icrc = icrc_of(data, len);

	if (miss && stays(w, side, data, len))
		return false;
	if (link < 2 && miss & MISS_FIRST && w->engine[side]) {
		*place_of(w, side, icrc) = icrc;
		missed(w, side, data, len, false);
		world_link_send(w, WORLD_WAN(side), data, len);
	} else if (link >= 4 && miss & MISS_SECOND && w->engine[!side]) {
		if (*place_of(w, side, icrc) == icrc)
			missed(w, side, data, len, true);
		world_link_send(w, WORLD_LAN_OUT(!side), data, len);
	} else {
		return false;
	}
	w->paths += !w->path_used;
	w->path_used = true;
	return true;
}

bool world_path_told(const struct world_qp *q)
{
	return q->up && rc_qp_in_error(q->side[0].qp) && rc_qp_in_error(q->side[1].qp);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The door between the numbers of the wire and those of the responder (role ACCEPTOR). Everything
 * behind it - the stream, custody, the peer - knows wire numbers only.
 *
 * A packet gets its number when it is sent for the first time, and keeps it. Numbers are given in
 * order: to packets of the lane and to READs of ours, as they are sent first. So the map needs a
 * new segment only where a READ of ours went between two packets of the lane, or a packet of the
 * lane was absorbed.
 */
#include "engine/core/core.h"
#include "engine/number/far_map.h"

void far_map_begin(struct far_map *m, const struct mark *nxt)
{
	m->next = m->map.asked = *nxt;
	m->numbered = true;
}

void far_map_sent(struct engine *e, struct far_map *m, const struct mark *nxt, uint32_t span,
		  bool eom, bool ackable, bool absorbed)
{
	if (!m->numbered) {
		m->map.asked = *nxt;
	} else if (!absorbed) {
		psn_map_note(e, &m->map, &m->next);
		mark_step(&m->next, span, eom, ackable);
	}
	mark_step(&m->map.asked, span, eom, ackable);
}

bool far_map_differs(const struct far_map *m)
{
	return m->next.psn != m->map.asked.psn || m->next.msn != m->map.asked.msn;
}

struct mark far_map_to_wire(const struct far_map *m, const struct mark *at)
{
	return psn_map_back(&m->map, m->next.psn, at);
}

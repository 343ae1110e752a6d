// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The door between the numbers of the wire and those of the responder (role ACCEPTOR). Everything
 * behind it - the stream, custody, the peer - knows wire numbers only.
 *
 * A packet gets its number when it is sent for the first time, and keeps it. Numbers are given in
 * order: to packets of the lane and to READs of ours, as they are sent first. So a segment is
 * needed only where a READ of ours went between two packets of the lane, or one was absorbed.
 */
#include "engine/core/core.h"
#include "engine/number/far_map.h"

void far_map_begin(struct far_map *m, const struct wire_mark *nxt)
{
	m->asked = *nxt;
	m->next = (struct far_mark){{nxt->psn.v}, nxt->msn, nxt->ackable};
	m->numbered = true;
}

void far_map_sent(struct engine *e, struct far_map *m, const struct wire_mark *nxt, uint32_t span,
		  bool eom, bool ackable, bool absorbed)
{
	if (!m->numbered) {
		m->asked = *nxt;
	} else if (!absorbed) {
		if (!segments_note(&m->seg, plain(m->asked), plain(m->next)))
			COUNT(e, NUMBERS_FULL);
		mark_step(&m->next, span, eom, ackable);
	}
	mark_step(&m->asked, span, eom, ackable);
}

bool far_map_differs(const struct far_map *m, struct wire_psn una)
{
	return m->next.psn.v != m->asked.psn.v || m->next.msn != m->asked.msn ||
	       (psn_before(una, m->asked.psn) && segments_differ(&m->seg, una.v));
}

struct wire_mark far_to_wire(const struct far_map *m, const struct far_mark *at)
{
	struct plain_mark w = plain(*at);

	if (m->seg.n || m->asked.psn.v != m->next.psn.v)
		w = segments_back(&m->seg, plain(m->asked), w);
	return (struct wire_mark){{w.psn}, w.msn, w.ackable};
}

struct far_psn psn_to_far(const struct far_map *m, struct wire_psn psn)
{
	if (!psn_before(psn, m->asked.psn))
		return m->next.psn;
	return (struct far_psn){segments_on(&m->seg, psn.v)};
}

void far_map_trim(struct far_map *m, struct wire_psn una)
{
	segments_trim(&m->seg, psn_to_far(m, una).v);
}

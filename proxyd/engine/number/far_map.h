/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The door toward the responder of an ACCEPTOR that adds READs of its own (announce/): between the
 * numbers of the wire and those that the responder gets.
 */
#ifndef LONGHAUL_ENGINE_NUMBER_FAR_MAP_H
#define LONGHAUL_ENGINE_NUMBER_FAR_MAP_H

#include "engine/number/psn_map.h"

/**
 * struct far_map - what comes in bears wire numbers, what goes on the responder's.
 * @map:      @map.asked: next wire number to be sent to the responder for the first time
 * @next:     the number that it will have there
 * @numbered: the two may differ
 */
struct far_map {
	struct psn_map map;
	struct mark next;
	bool numbered;
};

/** far_map_begin - from the wire mark @nxt on the responder's numbers may differ. */
void far_map_begin(struct far_map *m, const struct mark *nxt);
/** far_map_sent - the packet at the wire mark @nxt, of @span PSNs, was sent for the first time;
 * @absorbed: it need not be sent. */
void far_map_sent(struct engine *e, struct far_map *m, const struct mark *nxt, uint32_t span,
		  bool eom, bool ackable, bool absorbed);
/** far_map_differs - the next packet will have another PSN or MSN there. */
bool far_map_differs(const struct far_map *m);
/** far_map_to_wire - the mark @at of the responder, on the wire. */
struct mark far_map_to_wire(const struct far_map *m, const struct mark *at);

/** far_map_number - the PSN toward the responder of what has @psn on the wire. */
static inline uint32_t far_map_number(const struct far_map *m, uint32_t psn)
{
	return psn_before(psn, m->map.asked.psn) ? psn_to_wire(&m->map, psn) : m->next.psn;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The door between the wire and the responder of an ACCEPTOR with READs of its own (announce/).
 */
#ifndef LONGHAUL_ENGINE_NUMBER_FAR_MAP_H
#define LONGHAUL_ENGINE_NUMBER_FAR_MAP_H

#include "engine/core/state.h"
#include "engine/number/segments.h"

/**
 * struct far_map
 * @asked:    next on the wire to be sent to the responder for the first time
 * @next:     what it will be there
 * @numbered: the two may differ
 */
struct far_map {
	struct wire_mark asked;
	struct far_mark next;
	struct segments seg;
	bool numbered;
};

/** far_map_begin - from @nxt on the responder's numbers may differ. */
void far_map_begin(struct far_map *m, const struct wire_mark *nxt);
/** far_map_sent - the packet at @nxt, of @span PSNs, was sent first; @absorbed: it need not be. */
void far_map_sent(struct engine *e, struct far_map *m, const struct wire_mark *nxt, uint32_t span,
		  bool eom, bool ackable, bool absorbed);
/** far_map_differs - a packet from @una on has, or will have, another PSN or MSN there. */
bool far_map_differs(const struct far_map *m, struct wire_psn una);
/** far_to_wire - the mark @at of the responder, on the wire. */
struct wire_mark far_to_wire(const struct far_map *m, const struct far_mark *at);
/** psn_to_far - the PSN toward the responder of what has @psn on the wire. */
struct far_psn psn_to_far(const struct far_map *m, struct wire_psn psn);
/** far_map_trim - nothing below @una is asked about any more. */
void far_map_trim(struct far_map *m, struct wire_psn una);

#endif

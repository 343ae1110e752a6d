/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The door toward the host (psn_map.c): PSNs and MSNs as the host counts them, and as they are on
 * the wire. They agree until the appliance near the host adds requests of its own.
 *
 * row: CONV-1
 */
#ifndef LONGHAUL_ENGINE_NUMBER_PSN_MAP_H
#define LONGHAUL_ENGINE_NUMBER_PSN_MAP_H

#include "engine/core/state.h"
#include "engine/number/segments.h"

/**
 * struct psn_map - stands first in the page that a lane has once a request for data was accepted.
 * @asked:     what was accepted from the host, in its own numbers (lane.epsn counts wire numbers)
 * @proof:     what came shows that the responder has executed all before this PSN
 * @trailed:   lane.start is not the handover PSN any more
 */
struct psn_map {
	struct host_mark asked;
	struct wire_psn proof;
	struct segments seg;
	bool trailed;
	uint32_t noted; /* number of the batch that the page was noted in */
};

/* What a lane has there is not longer (reads.h). */
#define READS_BYTES POOL_PAGE

/** map_of - the lane's, NULL while it needs none: both numberings are the same then. */
static inline struct psn_map *map_of(struct engine *e, const struct lane *l)
{
	struct psn_map *map;

	if (l->reads_page == POOL_NONE)
		return NULL;
	map = pool_page_ptr(e->pool, l->reads_page);
	undo_once(e->undo, &map->noted, map, READS_BYTES);
	return map;
}

/** psn_map_moved - the host's numbers and those of the wire may differ somewhere. */
bool psn_map_moved(const struct psn_map *map, const struct lane *l);
/** psn_map_differs - the host's next request has another PSN or MSN at the responder. */
bool psn_map_differs(struct engine *e, const struct lane *l);
/** psn_map_strange - what is below lane.start may bear numbers that the host does not know. */
bool psn_map_strange(struct engine *e, const struct lane *l);
/** psn_map_note - the host appends what goes on as @next. */
void psn_map_note(struct engine *e, struct psn_map *map, const struct wire_mark *next);
/** psn_map_trim - nothing below @una is asked about any more. */
void psn_map_trim(struct psn_map *map, struct wire_psn una);
/** psn_to_host - the mark @wire in the host's numbers. */
struct host_mark psn_to_host(struct engine *e, const struct lane *l, const struct wire_mark *wire);
/** psn_to_wire - the wire PSN of a request that the host appended as @host; WIRE_NONE when that is
 * too long ago to be known. @map: NULL where there is none. */
struct wire_psn psn_to_wire(const struct psn_map *map, struct host_psn host);
/** psn_map_asked - the host's PSN of what is @wire, and in @msn_shift how much less its MSN is.
 * False where the host never asked for it, or that is not known. */
bool psn_map_asked(const struct psn_map *map, struct wire_psn wire, struct host_psn *host,
		   uint32_t *msn_shift);

/** psn_map_frame - a copy of @f with the receiver's PSN @psn and MSN @msn (PSN_NONE: as it is). */
uint32_t psn_map_frame(uint8_t *out, const struct frame *f, uint32_t psn, uint32_t msn);

/** host_epsn - the next request that the host is to send, in its own numbers. */
struct host_mark host_epsn(struct engine *e, const struct lane *l);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two numberings of one lane: PSNs and MSNs as its host counts them, and as they are toward the
 * responder (*wire*). They agree until the appliance adds requests of its own; see psn_map.c.
 *
 * row: CONV-1
 */
#ifndef LONGHAUL_ENGINE_NUMBER_PSN_MAP_H
#define LONGHAUL_ENGINE_NUMBER_PSN_MAP_H

#include "engine/core/state.h"

/** struct segment - from wire PSN @wire on the numbers differ by those of this pair. @ackable: see
 * struct mark */
struct segment {
	uint32_t wire, host;
	uint32_t wire_msn, host_msn : 24, ackable : 8;
};
#define SEGMENTS 48u

/**
 * struct psn_map - stands first in the page that a lane has once a request for data was accepted.
 * @asked:     what was accepted from the host, in its own numbers (lane.epsn counts wire numbers)
 * @proof:     what came shows that the responder has executed all before this wire PSN
 * @trailed:   lane.start is not the handover PSN any more
 * @trimmed:   segments of long ago are forgotten
 */
struct psn_map {
	struct mark asked;
	uint32_t proof;
	uint32_t nsegments;
	struct segment segment[SEGMENTS];
	bool trimmed, trailed;
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

bool psn_map_differs(struct engine *e, const struct lane *l);
bool psn_map_strange(struct engine *e, const struct lane *l);
void psn_map_note(struct engine *e, struct psn_map *map, const struct mark *next);
struct mark psn_map_back(const struct psn_map *map, uint32_t end, const struct mark *wire);
void psn_map_trim(struct psn_map *map, uint32_t una);
struct mark psn_to_host(struct engine *e, const struct lane *l, const struct mark *wire);
uint32_t psn_to_wire(const struct psn_map *map, uint32_t host);
uint32_t psn_map_frame(uint8_t *out, const struct frame *f, uint32_t psn, uint32_t msn);

/** host_epsn - the next request that the host is to send, in its own numbers. */
const struct mark *host_epsn(struct engine *e, const struct lane *l);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The door between the numbers of the host and of the wire (reads.h). The opener asks ahead of its
 * host, so it gives other numbers to what it sends on (segments.c): what the host appended to the
 * lane is shifted by the guesses that the host did not ask for. A guess that it does ask for takes
 * the numbers that it would have got anyway, as long as guesses are asked for in their order. One
 * that is asked for out of order has a record of its own (struct read_rec), and its place is within
 * the same segment, since every request that is not a READ makes the opener drop its guesses. So:
 *
 *	- SENDs, WRITEs, ATOMICs, and READs that were not guessed: exact by segment;
 *	- a mark (all before it is done) that lies among guesses: all that the host appended before
 *	  them is done. READs are bounded by their own records, not by marks.
 */
#include "engine/core/core.h"

bool psn_map_moved(const struct psn_map *map, const struct lane *l)
{
	return map->seg.n || map->seg.trimmed || map->asked.psn.v != l->epsn.psn.v;
}

bool psn_map_differs(struct engine *e, const struct lane *l)
{
	const struct psn_map *map = map_of(e, l);

	return l->renumbered ||
	       (map && lane_keeps(l) && (psn_map_moved(map, l) || map->asked.msn != l->epsn.msn));
}

bool psn_map_strange(struct engine *e, const struct lane *l)
{
	return psn_map_differs(e, l) && map_of(e, l)->trailed;
}

void psn_map_note(struct engine *e, struct psn_map *map, const struct wire_mark *next)
{
	/* who adds requests has to see to it that there is a place */
	if (!segments_note(&map->seg, plain(map->asked), plain(*next)))
		COUNT(e, NUMBERS_FULL);
}

void psn_map_trim(struct psn_map *map, struct wire_psn una)
{
	segments_trim(&map->seg, una.v);
}

struct host_mark psn_to_host(struct engine *e, const struct lane *l, const struct wire_mark *wire)
{
	const struct psn_map *map = map_of(e, l);
	struct plain_mark m;

	if (!map || (!map->seg.n && map->asked.psn.v == l->epsn.psn.v))
		return mark_same_host(*wire);
	m = segments_back(&map->seg, plain(map->asked), plain(*wire));
	return (struct host_mark){{m.psn}, m.msn, m.ackable};
}

struct wire_psn psn_to_wire(const struct psn_map *map, struct host_psn host)
{
	return map ? (struct wire_psn){segments_on(&map->seg, host.v)} : psn_same_wire(host);
}

bool psn_map_asked(const struct psn_map *map, struct wire_psn wire, struct host_psn *host,
		   uint32_t *msn_shift)
{
	return segments_asked(&map->seg, wire.v, &host->v, msn_shift);
}

/* The ICRC is patched, so damage stays visible. @out: FRAME_MAX bytes. Returns its length. */
uint32_t psn_map_frame(uint8_t *out, const struct frame *f, uint32_t psn, uint32_t msn)
{
	uint8_t b[3];

	memcpy(out, f->data, f->len);
	put_be24(b, psn);
	icrc_patch(out, f, f->bth + 9u, 3, b);
	if (f->aeth && msn != PSN_NONE) {
		struct frame g = *f;

		g.data = out;
		put_be24(b, msn);
		icrc_patch(out, &g, f->aeth + 1u, 3, b);
	}
	return f->len;
}

struct host_mark host_epsn(struct engine *e, const struct lane *l)
{
	const struct psn_map *map = map_of(e, l);

	return map ? map->asked : mark_same_host(l->epsn);
}

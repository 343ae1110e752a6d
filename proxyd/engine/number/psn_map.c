// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two numberings of one lane, and how to get from one to the other (reads.h).
 *
 * Who adds requests of its own sends more on than came in, and numbers what it sends on anew. That
 * is the opener, which asks ahead of its host (what came in: *host* numbers; what goes on: *wire*),
 * or the acceptor, which asks ahead of what comes over the WAN (announce/). The names below are the
 * opener's; the acceptor has a map of its own (far_map.h), in which what comes in are wire numbers,
 * and what goes on are the responder's.
 *
 * What the host appended to the lane bears host PSN + s on the wire, where s is constant over a
 * *segment* and grows from segment to segment by the guesses between them that the host did not ask
 * for. A guess that it does ask for takes the numbers that it would have got anyway, as long as
 * guesses are asked for in their order; one that is asked for out of order has a record of its own
 * (struct read_rec), and its place is within the same segment, since every request that is not a
 * READ makes the opener drop its guesses. So:
 *
 *	- SENDs, WRITEs, ATOMICs, and READs that were not guessed: exact by segment;
 *	- a mark (all before it is done) that lies among guesses: all that the host appended before
 *	  them is done. READs are bounded by their own records, not by marks.
 *
 * A mark never translates to more than the host has asked for, nor to more than where the next
 * segment begins. Segments that lie wholly below the true ACK are forgotten; with a full table
 * nothing is guessed, and nothing is absorbed, so that no segment can be needed.
 */
#include "engine/core/core.h"

static uint32_t shift_of(const struct segment *s)
{
	return psn_sub(s->wire, s->host);
}

static uint32_t msn_shift_of(const struct segment *s)
{
	return psn_sub(s->wire_msn, s->host_msn);
}

/* Whether the next request of the host would bear another PSN or MSN at the responder. */
bool psn_map_differs(struct engine *e, const struct lane *l)
{
	const struct psn_map *map = map_of(e, l);

	return l->renumbered || (map && lane_keeps(l) &&
				 (map->nsegments || map->trimmed || map->asked.psn != l->epsn.psn ||
				  map->asked.msn != l->epsn.msn));
}

/* Whether what is below lane.start may bear numbers that the host does not know. Below the handover
 * both are the same. */
bool psn_map_strange(struct engine *e, const struct lane *l)
{
	return psn_map_differs(e, l) && map_of(e, l)->trailed;
}

/* The host appends what goes on as @next: is the distance another than that of the latest
 * segment? */
void psn_map_note(struct engine *e, struct psn_map *map, const struct mark *next)
{
	const struct segment *s = map->nsegments ? &map->segment[map->nsegments - 1] : NULL;
	uint32_t shift = psn_sub(next->psn, map->asked.psn),
		 msn = psn_sub(next->msn, map->asked.msn);

	if (s ? shift == shift_of(s) && msn == msn_shift_of(s) : !shift && !msn)
		return;
	if (map->nsegments == SEGMENTS) {
		COUNT(e, NUMBERS_FULL); /* who adds requests has to see to it that this cannot be */
		return;
	}
	map->segment[map->nsegments++] = (struct segment){
		.wire = next->psn,
		.host = map->asked.psn,
		.wire_msn = next->msn,
		.host_msn = map->asked.msn,
		.ackable = map->asked.ackable,
	};
}

/* Nothing below @una is asked about any more. */
void psn_map_trim(struct psn_map *map, uint32_t una)
{
	uint32_t n = 0;

	/* the one that @una lies in stays, moved up so that it never comes to lie half the circle
	 * behind */
	while (n + 1 < map->nsegments && !psn_before(una, map->segment[n + 1].wire))
		n++;
	if (n) {
		map->trimmed = true;
		map->nsegments -= n;
		memmove(map->segment, map->segment + n, map->nsegments * sizeof(map->segment[0]));
	}
	if (map->nsegments && psn_diff(una, map->segment[0].wire) > (int32_t)MARK_TRAIL) {
		struct segment *s = &map->segment[0];
		uint32_t by = psn_sub(psn_sub(una, MARK_TRAIL), s->wire);

		s->wire = psn_add(s->wire, by);
		s->host = psn_add(s->host, by);
		map->trimmed = true;
	}
}

/* The mark @wire in the numbers of what came in; @end: the next number of what goes on. */
struct mark psn_map_back(const struct psn_map *map, uint32_t end, const struct mark *wire)
{
	const struct segment *s = NULL, *next = NULL;
	struct mark m = *wire, most;

	if (!map->nsegments && map->asked.psn == end)
		return m;
	for (uint32_t i = 0; i < map->nsegments; i++) {
		if (psn_after(map->segment[i].wire, wire->psn)) {
			next = &map->segment[i];
			break;
		}
		s = &map->segment[i];
	}
	if (s) {
		m.psn = psn_sub(m.psn, shift_of(s));
		m.msn = psn_sub(m.msn, msn_shift_of(s));
	}
	most = map->asked;
	if (next)
		most = (struct mark){
			.psn = next->host, .msn = next->host_msn, .ackable = next->ackable};
	return psn_after(m.psn, most.psn) ? most : m;
}

struct mark psn_to_host(struct engine *e, const struct lane *l, const struct mark *wire)
{
	const struct psn_map *map = map_of(e, l);

	return map ? psn_map_back(map, l->epsn.psn, wire) : *wire;
}

/* The wire PSN of a request that the host appended as @host; PSN_NONE when that is too long ago to
 * be known. */
uint32_t psn_to_wire(const struct psn_map *map, uint32_t host)
{
	uint32_t i = map->nsegments;

	while (i > 0 && psn_after(map->segment[i - 1].host, host))
		i--;
	if (!i)
		return map->trimmed ? PSN_NONE : host;
	return psn_add(host, shift_of(&map->segment[i - 1]));
}

/*
 * A copy of @f with another PSN, and another MSN where it has one (PSN_NONE: as it is). The ICRC
 * follows by the difference, so that damage stays what it was. @out: FRAME_MAX bytes. Returns its
 * length.
 */
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

/* What was accepted from the requester, in its own numbers. */
const struct mark *host_epsn(struct engine *e, const struct lane *l)
{
	const struct psn_map *map = map_of(e, l);

	return map ? &map->asked : &l->epsn;
}

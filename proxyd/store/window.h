/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packets of one lane, found by PSN: a sparse array of 16-byte descriptors over a sliding range
 * of PSNs. A window that holds little has up to four leaves, small slots of the pool for the
 * descriptors of 16 PSNs each. If that is too little, it grows: a directory page points to
 * descriptor pages of 256 PSNs each, for 2^18 PSNs in all; there are up to eight directories. Pages
 * and leaves come from the pool when first needed and go back when empty, so an idle lane costs
 * only its struct window, and only a lane that holds much takes much.
 *
 * A packet is stored at its first PSN. A READ request consumes several PSNs but has one descriptor;
 * the rest of its range is empty.
 *
 * The caller keeps all PSNs held within one WINDOW_SPAN, and asks only for PSNs of that span: only
 * the low 21 bits of a PSN are used, so PSNs 2^21 apart are the same here. A PSN from a packet,
 * which may be forged, must be compared with the lane's limits (psn_in()) first. As 2^21 divides
 * 2^24, the wrap of the PSN needs no special case.
 */
#ifndef LONGHAUL_STORE_WINDOW_H
#define LONGHAUL_STORE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "store/pool.h"

#define WINDOW_LEAVES	 4u
#define WINDOW_LEAF_PSNS 16u
#define WINDOW_PAGE_PSNS 256u
#define WINDOW_PAGES	 1024u /* of descriptors, for each directory */
#define WINDOW_DIRS	 8u
#define WINDOW_DIR_PSNS	 (WINDOW_PAGE_PSNS * WINDOW_PAGES)
#define WINDOW_SPAN	 (WINDOW_DIR_PSNS * WINDOW_DIRS) /* 2^21, well under 2^22 */

/* struct pkt flags */
#define PKT_USED     0x01u /* the descriptor holds a packet */
#define PKT_EOM	     0x02u /* LAST or ONLY: a message ends here */
#define PKT_ANSWERED 0x04u /* READ, ATOMIC, ...: a gap in the range that may be acknowledged */
#define PKT_SENT     0x08u /* sent at least once */
#define PKT_SLOT     0x10u /* its bytes are in a slot of the pool, not in the lane's log */
#define PKT_LOST     0x20u /* taken for lost, to be sent again */
#define PKT_RETX     0x40u /* sent more than once */
#define PKT_ACKREQ   0x80u
#define PKT_OWN	     0x100u /* OPENER: a request of its own, which its host does not know */

/**
 * struct pkt - descriptor of a retained packet, 16 bytes.
 * @loc:   where its bytes are; the frame starts at the Ethernet header
 * @xmit:  time of the latest transmission, us modulo 2^32
 * @span:  PSNs that it consumes (1 but for READ)
 * @flags: PKT_*; PKT_USED must stay set until window_del()
 * @len:   bytes of the frame
 * @asked: ACCEPTOR, SINGLE: AckReq was set by us and not by the host, and not just for a probe
 */
struct pkt {
	pool_loc loc;
	uint32_t xmit;
	uint32_t span : 23;
	uint32_t flags : 9;
	uint16_t len;
	uint16_t asked;
};

_Static_assert(sizeof(struct pkt) == 16, "a page holds the descriptors of 256 PSNs");

/**
 * struct window - zero is not valid, window_init() is.
 * @dir:    directory pages, by bits 18..20 of the PSN; POOL_NONE if nothing is held
 * @in:     descriptor pages of each directory
 * @leaf:   slots of the first @leaves, in no order; @base: their PSNs / WINDOW_LEAF_PSNS; @held:
 *          packets in each
 * @pages:  descriptor pages in all; 0: leaves only, or nothing
 */
struct window {
	union {
		struct {
			uint32_t dir[WINDOW_DIRS];
			uint16_t in[WINDOW_DIRS];
		};
		struct {
			uint32_t leaf[WINDOW_LEAVES], base[WINDOW_LEAVES];
			uint8_t held[WINDOW_LEAVES];
		};
	};
	uint16_t pages;
	uint16_t leaves;
};

void window_init(struct window *w);

/** window_put - the descriptor at @psn, zeroed but for PKT_USED, taking leaves or pages as needed;
 *  NULL when the pool is at its cap or a packet is there already, which stays, since it must be
 *  delivered. Invalidates descriptors that were found before. */
struct pkt *window_put(struct window *w, struct pool *p, enum pool_class c, uint32_t psn);

/** window_get - the packet at exactly @psn; NULL when there is none. */
struct pkt *window_get(const struct window *w, struct pool *p, uint32_t psn);

/** window_follow - as window_get(@psn), given @d, the packet at @psn - 1. Mostly it is the next
 * descriptor. */
static inline struct pkt *window_follow(const struct window *w, struct pool *p, struct pkt *d,
					uint32_t psn)
{
	if (!w->pages || psn % WINDOW_PAGE_PSNS == 0)
		return window_get(w, p, psn);
	return d[1].flags & PKT_USED ? d + 1 : NULL;
}

/** window_del - forget the packet at @psn, if there is one (the caller releases its bytes). A
 *  descriptor page goes back when its last packet goes, a directory with its last page. */
void window_del(struct window *w, struct pool *p, uint32_t psn);

/** window_next - first packet at or after @psn and before @end; NULL when there is none. @found:
 *  its PSN. Skips empty pages. A range longer than WINDOW_SPAN is cut to it. */
struct pkt *window_next(const struct window *w, struct pool *p, uint32_t psn, uint32_t end,
			uint32_t *found);

/** window_stamp - the stamp (pool_page_stamp()) of the page with the descriptor of @psn; NULL where
 *  there is no such page. */
uint32_t *window_stamp(const struct window *w, struct pool *p, uint32_t psn);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames live in a byte ring in the order in which they were sent, each behind a small header. Most
 * arrive in that order too, so a pointer walks the ring; only duplicates and reordered frames go
 * through a heap. A frame's bytes are free again when it and all sent before it have been
 * delivered, which is soon: nothing stays longer than the delay and the reordering delay together.
 *
 * The ring never wraps inside a frame: if what is left at the end could be too short, a filler
 * takes it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/wanem/wan.h"
#include "wire/bytes.h"

#define STORE_DEFAULT (32ull << 20)
#define STRAY_MAX     4096u
#define ALIGN	      64u
/*
 * log 10 / log 8: how loss grows with the length of a frame. A provider's link of 350 km lost 1e-4
 * to 1e-2 of packets of 1 KiB within minutes, and ten times that, 1e-3 to 1e-1, of those of 8 KiB.
 */
#define LENGTH_POWER  1.1073

struct record {
	uint64_t arrival;
	uint32_t size; /* of header, frame and slack */
	uint32_t len;  /* 0: filler */
	uint16_t refs; /* deliveries to come, and one while the owner looks at it */
	bool in_order; /* delivered by the walk, not by the heap */
};

struct stray {
	uint64_t arrival, order;
	uint64_t at;
};

/* Positions count bytes ever written; the offset is the position modulo the size. */
struct wan {
	struct wan_config cfg;
	struct wan_stats stats;
	struct prng prng;
	uint8_t *store;
	uint64_t size;
	uint64_t head, tail, walk;
	uint64_t link_free, last_arrival;
	double phase; /* of the swing of the loss, in periods */
	bool bad_state;
	struct stray *strays;
	uint32_t stray_count;
	uint64_t order;
	struct record *shown;
};

static struct record *record_at(const struct wan *w, uint64_t pos)
{
	return (struct record *)(void *)(w->store + pos % w->size);
}

struct wan *wan_create(const struct wan_config *cfg)
{
	struct wan *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->cfg = *cfg;
	w->size = (cfg->store_bytes ? cfg->store_bytes : STORE_DEFAULT) & ~(uint64_t)(ALIGN - 1);
	if (w->size < 4 * WAN_FRAME_MAX)
		w->size = 4 * WAN_FRAME_MAX;
	w->store = mmap(NULL, w->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	w->strays = calloc(STRAY_MAX, sizeof(*w->strays));
	if (w->store == MAP_FAILED || !w->strays) {
		if (w->store != MAP_FAILED)
			munmap(w->store, w->size);
		free(w->strays);
		free(w);
		return NULL;
	}
	prng_init(&w->prng, cfg->seed);
	/* apart from the stream, so that links without it draw the same numbers */
	w->phase = (double)(splitmix64(cfg->seed ^ 0x5319) >> 11) * 0x1p-53;
	return w;
}

void wan_destroy(struct wan *w)
{
	if (!w)
		return;
	munmap(w->store, w->size);
	free(w->strays);
	free(w);
}

void wan_set(struct wan *w, const struct wan_config *cfg)
{
	uint64_t seed = w->cfg.seed, store = w->cfg.store_bytes;

	w->cfg = *cfg;
	w->cfg.seed = seed;
	w->cfg.store_bytes = store;
}

const struct wan_config *wan_config(const struct wan *w)
{
	return &w->cfg;
}

const struct wan_stats *wan_stats(const struct wan *w)
{
	return &w->stats;
}

/* Out of order: a heap by arrival, then by order of sending. */

static bool stray_before(const struct stray *a, const struct stray *b)
{
	return a->arrival != b->arrival ? a->arrival < b->arrival : a->order < b->order;
}

static void stray_push(struct wan *w, uint64_t arrival, uint64_t at)
{
	struct stray s = {arrival, w->order++, at};
	uint32_t i = w->stray_count++;

	for (; i && stray_before(&s, &w->strays[(i - 1) / 2]); i = (i - 1) / 2)
		w->strays[i] = w->strays[(i - 1) / 2];
	w->strays[i] = s;
}

static struct stray stray_pop(struct wan *w)
{
	struct stray top = w->strays[0], s = w->strays[--w->stray_count];
	uint32_t i = 0;

	for (uint32_t c; (c = 2 * i + 1) < w->stray_count; i = c) {
		if (c + 1 < w->stray_count && stray_before(&w->strays[c + 1], &w->strays[c]))
			c++;
		if (!stray_before(&w->strays[c], &s))
			break;
		w->strays[i] = w->strays[c];
	}
	w->strays[i] = s;
	return top;
}

/* In */

static void reclaim(struct wan *w)
{
	while (w->tail != w->head && !record_at(w, w->tail)->refs)
		w->tail += record_at(w, w->tail)->size;
	if (w->tail == w->head && !w->shown) {
		/* Empty: start over, so that a short-lived link stays in the cache. */
		w->head = w->tail = w->walk = 0;
	}
}

uint8_t *wan_buf(struct wan *w)
{
	uint32_t need = (sizeof(struct record) + WAN_FRAME_MAX + ALIGN - 1) & ~(ALIGN - 1);
	uint64_t left = w->size - w->head % w->size;
	struct record *r;

	if (w->size - (w->head - w->tail) < need + (left < need ? left : 0))
		return NULL;
	if (left < need) {
		r = record_at(w, w->head);
		*r = (struct record){.size = (uint32_t)left};
		w->head += left;
	}
	return (uint8_t *)(record_at(w, w->head) + 1);
}

void wan_no_room(struct wan *w)
{
	w->stats.sent++;
	w->stats.no_room++;
}

/* Where the IP header begins, behind up to two VLAN tags; 0 when there is none. */
static uint32_t ip_at(const uint8_t *data, uint32_t len)
{
	uint32_t at = 12;
	uint16_t type;

	for (int tags = 0;; tags++) {
		if (at + 2 > len)
			return 0;
		type = get_be16(data + at);
		at += 2;
		if ((type != 0x8100 && type != 0x88a8) || tags == 2)
			break;
		at += 2;
	}
	if ((type == 0x0800 && at + 20 <= len) || (type == 0x86dd && at + 40 <= len))
		return at;
	return 0;
}

bool wan_is_roce(const uint8_t *data, uint32_t len)
{
	uint32_t at = ip_at(data, len), udp;

	if (!at)
		return false;
	udp = at + (data[at] >> 4 == 4 ? (data[at] & 15) * 4u : 40);
	if (data[at] >> 4 == 4 && get_be16(data + at + 6) & 0x1fff)
		return false;
	return data[at + (data[at] >> 4 == 4 ? 9 : 6)] == 17 && udp + 4 <= len &&
	       get_be16(data + udp + 2) == 4791;
}

/* Traffic class: DSCP and ECN. */
static uint8_t get_class(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(get_be16(ip) >> 4);
}

static void set_class(uint8_t *ip, uint8_t class)
{
	uint32_t sum;

	if (ip[0] >> 4 != 4) {
		put_be16(ip, (uint16_t)((get_be16(ip) & 0xf00f) | class << 4));
		return;
	}
	/* the checksum is corrected by what has changed */
	sum = (uint16_t)~get_be16(ip + 10) + (uint16_t)~get_be16(ip);
	ip[1] = class;
	sum += get_be16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(ip + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
}

/* What routers on the way do to a packet. False when one drops it. */
static bool route(struct wan *w, uint8_t *data, uint32_t len, bool impair)
{
	const struct wan_config *c = &w->cfg;
	uint32_t at = ip_at(data, len);

	if (!at)
		return true;
	if (c->mtu && len - at > c->mtu) {
		w->stats.lost_mtu++;
		return false;
	}
	if (c->bleach)
		set_class(data + at, get_class(data + at) & 3);
	if (impair && c->mark > 0 && get_class(data + at) & 3 && prng_hit(&w->prng, c->mark)) {
		set_class(data + at, get_class(data + at) | 3);
		w->stats.marked++;
	}
	return true;
}

/* The loss of a frame of @len bytes at @now. Its swing is even in the logarithm: each order of
 * magnitude lasts as long as any other. */
static double loss_of(const struct wan *w, uint64_t now, uint32_t len)
{
	const struct wan_config *c = &w->cfg;
	double p = c->loss;

	if (c->loss_by_length)
		p *= pow(len / 1024.0, LENGTH_POWER);
	if (c->loss_swing > 1 && c->loss_swing_ns) {
		double periods = (double)now / (double)c->loss_swing_ns + w->phase;

		p *= pow(c->loss_swing, -fabs(2 * (periods - floor(periods)) - 1));
	}
	return p;
}

static bool lost(struct wan *w, uint64_t now, uint32_t len)
{
	const struct wan_config *c = &w->cfg;

	if (c->burst_start > 0) {
		if (prng_hit(&w->prng, w->bad_state ? c->burst_end : c->burst_start))
			w->bad_state = !w->bad_state;
		if (w->bad_state && prng_hit(&w->prng, c->burst_loss)) {
			w->stats.lost_burst++;
			return true;
		}
	}
	if (prng_hit(&w->prng, loss_of(w, now, len))) {
		w->stats.lost++;
		return true;
	}
	return false;
}

/* One to three bits, anywhere behind the Ethernet header and its VLAN tag (which a real link's CRC
 * guards: a frame damaged there would not arrive). */
static void corrupt(struct wan *w, uint8_t *data, uint32_t len)
{
	uint32_t flips = 1 + prng_below(&w->prng, 3), from = 14;

	if (len > 18 && get_be16(data + 12) == 0x8100)
		from = 18;
	if (len <= from)
		return;
	while (flips--) {
		uint32_t bit = prng_below(&w->prng, (len - from) * 8);

		data[from + bit / 8] ^= (uint8_t)(1u << (bit & 7));
	}
	w->stats.corrupted++;
}

/* The bottleneck: when the frame has left it, or WAN_NEVER when the queue is full. */
uint64_t wan_waiting(const struct wan *w, uint64_t now)
{
	if (w->link_free <= now)
		return 0;
	return (uint64_t)((double)(w->link_free - now) * (double)w->cfg.rate_bps / 8e9);
}

static uint64_t serialize(struct wan *w, uint64_t now, uint32_t len)
{
	const struct wan_config *c = &w->cfg;
	uint64_t waiting;

	if (!c->rate_bps)
		return now;
	if (w->link_free < now)
		w->link_free = now;
	waiting = wan_waiting(w, now);
	if (c->queue_bytes && waiting + len > c->queue_bytes)
		return WAN_NEVER;
	if (waiting + len > w->stats.queue_peak_bytes)
		w->stats.queue_peak_bytes = waiting + len;
	w->link_free += len * 8000000000ull / c->rate_bps;
	return w->link_free;
}

void wan_send(struct wan *w, uint64_t now, uint32_t len)
{
	const struct wan_config *c = &w->cfg;
	struct record *r = record_at(w, w->head);
	uint8_t *data = (uint8_t *)(r + 1);
	bool impair = !c->only_roce || wan_is_roce(data, len);
	uint64_t arrival;

	w->stats.sent++;
	w->stats.sent_bytes += len;
	if (c->down) {
		w->stats.lost_down++;
		return;
	}
	if (!route(w, data, len, impair))
		return;
	arrival = serialize(w, now, len);
	if (arrival == WAN_NEVER) {
		w->stats.lost_queue++;
		return;
	}
	/* behind the bottleneck: it has taken its share of the rate */
	if (impair && lost(w, now, len))
		return;
	arrival += c->delay_ns;
	if (impair && prng_hit(&w->prng, c->corrupt))
		corrupt(w, data, len);
	r->len = len;
	r->size = (uint32_t)((sizeof(*r) + len + ALIGN - 1) & ~(uint64_t)(ALIGN - 1));
	r->refs = 1;
	r->in_order = true;
	if (impair && w->stray_count < STRAY_MAX && prng_hit(&w->prng, c->reorder)) {
		r->in_order = false;
		stray_push(w, arrival + c->reorder_ns, w->head);
		w->stats.reordered++;
	} else if (arrival < w->last_arrival) {
		arrival = w->last_arrival; /* the delay was made shorter; the order stays */
	}
	if (r->in_order)
		w->last_arrival = arrival;
	r->arrival = arrival;
	if (impair && w->stray_count < STRAY_MAX && prng_hit(&w->prng, c->dup)) {
		r->refs++;
		stray_push(w, arrival, w->head);
		w->stats.duplicated++;
	}
	w->head += r->size;
	if (w->head - w->tail > w->stats.store_peak_bytes)
		w->stats.store_peak_bytes = w->head - w->tail;
}

/* Out */

/* The walk stands on a frame to be delivered in order, or at the head. */
static struct record *in_order_next(struct wan *w)
{
	while (w->walk != w->head) {
		struct record *r = record_at(w, w->walk);

		if (r->len && r->in_order)
			return r;
		w->walk += r->size;
	}
	return NULL;
}

const uint8_t *wan_pop(struct wan *w, uint64_t now, uint32_t *len)
{
	struct record *r;

	if (w->shown) {
		w->shown->refs--;
		w->shown = NULL;
		reclaim(w);
	}
	r = in_order_next(w); /* first, so that the walk never stands on what is reclaimed */
	if (w->stray_count && (!r || w->strays[0].arrival < r->arrival)) {
		if (w->strays[0].arrival > now)
			return NULL;
		r = record_at(w, stray_pop(w).at);
	} else {
		if (!r || r->arrival > now)
			return NULL;
		w->walk += r->size;
	}
	w->shown = r;
	w->stats.delivered++;
	w->stats.delivered_bytes += r->len;
	*len = r->len;
	return (const uint8_t *)(r + 1);
}

uint64_t wan_next(const struct wan *w)
{
	uint64_t pos = w->walk, at = w->stray_count ? w->strays[0].arrival : WAN_NEVER;

	while (pos != w->head) {
		const struct record *r = record_at(w, pos);

		if (r->len && r->in_order)
			return r->arrival < at ? r->arrival : at;
		pos += r->size;
	}
	return at;
}

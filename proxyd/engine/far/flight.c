// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How much may be on its way to a responder at a time: by lane, and to a near host in all.
 *
 * A lane has a window (cwnd, in units of CWND_ONE for one packet).
 *
 * To a near responder (ACCEPTOR) it is wide open: enough for any LAN, little enough not to flood a
 * switch when a hole closes and thousands of packets become due together. A host that does not keep
 * up loses some, and with it all that was sent after it: then half of that is enough, and from
 * there on one packet more each round trip. Where nothing on its way asks for an ACK, waiting for
 * one would be for ever.
 *
 * Over the WAN (SINGLE) nobody can be asked for single packets: a loss costs all that was sent
 * after it. The window doubles each round trip up to a threshold and grows by one packet from
 * there on. A loss halves it, once per round trip, and leaves the threshold where it was cut. After
 * a timeout it begins at its least, with half of what was under way as the threshold.
 *
 * Congestion notifications (CNP) of the responder's host speak of what its requester sends, and
 * that is us. We do as DCQCN does, but with a window, not with a rate: alpha is how congested it
 * was lately; a CNP raises it by 1/16 of what is missing to 1, each round trip without one takes
 * 1/16 away. A CNP cuts the window by alpha / 2, once per round trip, down to two packets; it grows
 * again by one packet each round trip. There is no faster recovery.
 *
 * Many lanes to one near host (incast) fill the buffer of its switch port together, however small
 * their windows are. So what is under way to one host has a limit, too. A loss lowers it to three
 * quarters of what was under way; it is raised by an eighth when nothing was lost for ten seconds,
 * so that a port which holds less loses one packet in a long while, not in every round trip. A
 * lane with nothing under way may always send one packet, so none waits for another. Lanes that
 * wait for answers with data do not count: their PSNs are no bytes toward the host. Hosts are told
 * apart by a hash; two that share a place share a limit.
 */
#include "engine/far/flight.h"

#include "engine/far/far.h"

#define FLIGHT_BYTES (2u << 20)
#define HOST_MIN     (64u << 10)
#define HOST_RAISE   (10 * NSEC_PER_SEC)
#define CWND_MIN     (16u * CWND_ONE)
#define CWND_CNP     (2u * CWND_ONE)
#define CWND_MAX     (65536u * CWND_ONE)
#define ALPHA_ONE    1024u
#define CNP_MIN_US   50u

struct far_lane {
	uint32_t gen;
	uint32_t threshold; /* SINGLE */
	uint32_t under_way; /* bytes, as the host's sum has them */
	uint16_t alpha;
	uint32_t cnp_us;
};

struct far_host {
	uint64_t under_way, raise_at;
	uint32_t limit; /* 0: FLIGHT_BYTES */
	uint32_t cut_us;
};

#define FAR_HOSTS 1024u

struct flights {
	struct far_lane *lanes; /* by flow */
	struct far_host hosts[FAR_HOSTS];
};

uint64_t flight_arena_size(uint32_t nflows)
{
	return sizeof(struct flights) + (uint64_t)nflows * sizeof(struct far_lane) + 256;
}

bool flight_init(struct engine *e)
{
	struct flights *x = arena_alloc(&e->arena, sizeof(*x), 64);

	if (!x)
		return false;
	x->lanes = arena_alloc(&e->arena, sizeof(*x->lanes) * e->nflows, 64);
	e->flights = x;
	return x->lanes;
}

static struct far_lane *side(struct engine *e, const struct flow *fl)
{
	struct far_lane *s = &e->flights->lanes[flow_index(e, fl)];

	if (s->gen != fl->lane.gen)
		*s = (struct far_lane){.gen = fl->lane.gen,
				       .threshold = CWND_MAX,
				       .under_way = s->under_way,
				       .alpha = ALPHA_ONE};
	return s;
}

static struct far_host *host_of(struct engine *e, const struct flow *fl)
{
	uint64_t h = (get_be64(fl->key.dst.b) ^ get_be64(fl->key.dst.b + 8)) * 0x9e3779b97f4a7c15u;

	return &e->flights->hosts[h >> 50 & (FAR_HOSTS - 1)];
}

static uint32_t under_way(const struct lane *l)
{
	return (l->nxt.psn - l->una.psn) & PSN_MASK;
}

void flight_moved(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;
	struct far_lane *s = side(e, fl);
	struct far_host *h = host_of(e, fl);
	uint32_t bytes = 0;

	if (l->role == ROLE_ACCEPTOR && !l->nreads)
		bytes = under_way(l) * (fl->path_mtu ? fl->path_mtu : 4096u);
	h->under_way += bytes - (uint64_t)s->under_way;
	s->under_way = bytes;
}

void flight_end(struct engine *e, struct flow *fl)
{
	struct far_lane *s = side(e, fl);

	host_of(e, fl)->under_way -= s->under_way;
	s->under_way = 0;
}

bool flight_full(struct engine *e, struct flow *fl)
{
	const struct lane *l = &fl->lane;
	uint32_t full = FLIGHT_BYTES / (fl->path_mtu ? fl->path_mtu : 4096u);
	const struct far_host *h;

	/* a READ of many PSNs goes alone, if need be */
	if (l->nxt.psn == l->una.psn)
		return false;
	if (l->role == ROLE_SINGLE)
		return under_way(l) >= l->cwnd / CWND_ONE;
	if (!psn_after(l->ackreq_end, l->una.psn))
		return false;
	if (l->cwnd / CWND_ONE < full)
		full = l->cwnd / CWND_ONE;
	if (under_way(l) >= full)
		return true;
	h = host_of(e, fl);
	return h->under_way - side(e, fl)->under_way +
		       (uint64_t)under_way(l) * (fl->path_mtu ? fl->path_mtu : 4096u) >=
	       (h->limit ? h->limit : FLIGHT_BYTES);
}

static void host_lost(struct engine *e, struct flow *fl)
{
	struct far_host *h = host_of(e, fl);
	uint64_t was = h->limit ? h->limit : FLIGHT_BYTES;

	h->raise_at = e->now + HOST_RAISE;
	if (now_us(e) - h->cut_us < fl->lane.rtt.srtt_us)
		return;
	h->cut_us = now_us(e);
	if (h->under_way < was)
		was = h->under_way;
	if (was > HOST_MIN)
		h->limit = was * 3 / 4 > HOST_MIN ? (uint32_t)(was * 3 / 4) : HOST_MIN;
}

static uint32_t least(uint32_t cwnd, uint32_t floor)
{
	return cwnd > floor ? cwnd : floor;
}

void flight_lost(struct engine *e, struct flow *fl, bool timeout)
{
	struct lane *l = &fl->lane;
	uint32_t was = l->cwnd;

	if (l->role == ROLE_ACCEPTOR)
		host_lost(e, fl);
	if (now_us(e) - l->cut_us < l->rtt.srtt_us)
		return;
	l->cut_us = now_us(e);
	if (under_way(l) < was / CWND_ONE && (l->role == ROLE_ACCEPTOR || timeout))
		was = under_way(l) * CWND_ONE;
	if (l->role == ROLE_SINGLE)
		side(e, fl)->threshold = least(timeout ? was / 2 : was, CWND_MIN);
	if (l->role == ROLE_SINGLE && timeout)
		l->cwnd = CWND_MIN;
	else if (l->cwnd > CWND_MIN)
		l->cwnd = least(was / 2, CWND_MIN);
}

void flight_acked(struct engine *e, struct flow *fl, uint32_t n)
{
	struct lane *l = &fl->lane;
	struct far_host *h = host_of(e, fl);

	if (l->role == ROLE_SINGLE && l->cwnd < side(e, fl)->threshold)
		l->cwnd += n * CWND_ONE;
	else
		l->cwnd += (uint32_t)((uint64_t)n * CWND_ONE * CWND_ONE / l->cwnd) + 1;
	if (l->cwnd > CWND_MAX)
		l->cwnd = CWND_MAX;
	if (h->limit && e->now >= h->raise_at) {
		h->limit += h->limit / 8;
		h->raise_at = e->now + HOST_RAISE;
		if (h->limit >= FLIGHT_BYTES)
			h->limit = 0;
	}
}

void far_congested(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	struct far_lane *s = side(e, fl);
	uint32_t since = now_us(e) - s->cnp_us;
	uint32_t turn = l->rtt.srtt_us > CNP_MIN_US ? l->rtt.srtt_us : CNP_MIN_US;
	uint32_t way = under_way(l) * CWND_ONE;

	if (s->cnp_us && since < turn)
		return;
	COUNT(e, CNP_HEEDED);
	for (uint32_t i = since / turn; s->cnp_us && i > 1 && s->alpha > ALPHA_ONE / 16; i--)
		s->alpha -= s->alpha / 16;
	s->alpha += (ALPHA_ONE - s->alpha) / 16;
	s->cnp_us = now_us(e) | 1;
	if (!way)
		return; /* it speaks of what has arrived since */
	if (l->cwnd > way)
		l->cwnd = least(way, CWND_CNP);
	l->cwnd = least(l->cwnd - (uint32_t)((uint64_t)l->cwnd * s->alpha / (2 * ALPHA_ONE)),
			CWND_CNP);
	if (l->role == ROLE_SINGLE)
		s->threshold = l->cwnd;
}

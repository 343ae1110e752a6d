// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections whose packets nobody but the daemon may pass on: their two ends number packets
 * differently (engine/answers.h), and one that went by untranslated could be taken for another.
 *
 * Theory of operation
 *
 * They stand in a map that the XDP program looks into before it passes anything up (steer.bpf.c).
 * That must outlive the daemon, however it ends. So the map and both links are pinned
 * (afxdp_pins.c).
 *
 * This is done ahead of need, with afxdp_pin(), while it can still fail without harm; afxdp_fence()
 * then only writes into the map. Without pins it refuses. The pins go when nothing is held and they
 * are not wanted any more, or the port is closed.
 *
 * A daemon that finds pins loads its program with the map that is there, so that there is one truth
 * throughout, and puts the program in the place of the old one on the links, which is one step for
 * the packets. The mode (native or generic) stays what it is while something is held, whatever the
 * configuration wants: changing it would mean a moment without a program. As long as that daemon
 * has not begun (no heartbeat), and when it cannot even begin, all stays as it was found.
 *
 * A connection is two entries, one for each direction. The requests' entry is written last: a
 * daemon that died in between had not renumbered anything, so half a connection is none
 * (held_init()).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/afxdp_priv.h"
#include "steer.skel.h"

#define QPN_MAX 0xffffffu

/* ---- the map ---- */

/* Both directions of a connection. */
struct pair {
	struct steer_held requests, answers;
};

static struct pair pair_of(const struct flow_key *requests, uint32_t lqpn)
{
	struct pair p = {.requests = {.dqpn = requests->dqpn}, .answers = {.dqpn = lqpn}};

	p.requests.vid = requests->vlan == FRAME_VLAN_NONE ? STEER_UNTAGGED : requests->vlan;
	p.answers.vid = p.requests.vid;
	memcpy(p.requests.src, requests->src.b, sizeof(p.requests.src));
	memcpy(p.requests.dst, requests->dst.b, sizeof(p.requests.dst));
	memcpy(p.answers.src, requests->dst.b, sizeof(p.answers.src));
	memcpy(p.answers.dst, requests->src.b, sizeof(p.answers.dst));
	return p;
}

struct steer_held steer_requests_key(const struct flow_key *requests)
{
	return pair_of(requests, 0).requests;
}

static bool entry_get(const struct steer_prog *p, const struct steer_held *key,
		      struct steer_hold *h)
{
	return bpf_map__lookup_elem(p->skel->maps.steer_held, key, sizeof(*key), h, sizeof(*h),
				    0) == 0;
}

static void set_count(struct steer_prog *p, uint32_t n)
{
	p->held = n;
	__atomic_store_n(&p->config->held, n, __ATOMIC_RELEASE);
}

/* An entry with another QPN at the other end is of an earlier connection: replaced by the newer
 * one. */
static int entry_set(struct steer_prog *p, const struct steer_held *key, uint32_t other,
		     uint32_t what)
{
	struct steer_hold old, h = {.other = other, .what = what};
	bool there = entry_get(p, key, &old);
	int r;

	if (there && old.other == other)
		h.what |= old.what;
	r = bpf_map__update_elem(p->skel->maps.steer_held, key, sizeof(*key), &h, sizeof(h),
				 BPF_ANY);
	if (r == 0 && !there)
		set_count(p, p->held + 1);
	return r;
}

/* 0, also when there is none, or negative errno with the entry as it was. */
static int entry_clear(struct steer_prog *p, const struct steer_held *key, uint32_t other,
		       uint32_t what)
{
	struct steer_hold h;
	int r;

	if (!entry_get(p, key, &h) || h.other != other || !(h.what & what))
		return 0;
	h.what &= ~what;
	if (h.what)
		return bpf_map__update_elem(p->skel->maps.steer_held, key, sizeof(*key), &h,
					    sizeof(h), BPF_ANY);
	r = bpf_map__delete_elem(p->skel->maps.steer_held, key, sizeof(*key), 0);
	if (r == 0)
		set_count(p, p->held - 1);
	return r;
}

int steer_prog_hold(struct steer_prog *p, const struct flow_key *requests, uint32_t lqpn)
{
	struct pair k = pair_of(requests, lqpn);
	int r = entry_set(p, &k.answers, requests->dqpn, STEER_ANSWERS);

	if (r == 0)
		r = entry_set(p, &k.requests, lqpn, STEER_REQUESTS);
	if (r < 0) /* should this fail, too: half a connection is none */
		(void)entry_clear(p, &k.answers, requests->dqpn, STEER_ANSWERS);
	return r;
}

int steer_prog_release(struct steer_prog *p, const struct flow_key *requests, uint32_t lqpn)
{
	struct pair k = pair_of(requests, lqpn);
	struct steer_hold h;
	int r, r2;

	if (lqpn > QPN_MAX && entry_get(p, &k.requests, &h)) {
		lqpn = h.other;
		k = pair_of(requests, lqpn);
	}
	r = entry_clear(p, &k.requests, lqpn, STEER_REQUESTS);
	r2 = entry_clear(p, &k.answers, requests->dqpn, STEER_ANSWERS);
	return r ? r : r2;
}

/* All keys, to be freed by the caller, also after an error. */
static int all_keys(const struct steer_prog *p, struct steer_held **keys, size_t *n)
{
	const struct bpf_map *map = p->skel->maps.steer_held;
	size_t room = 0;
	int r;

	*keys = NULL;
	*n = 0;
	for (;;) {
		if (*n == room) {
			void *more;

			room = room ? 2 * room : 64;
			more = realloc(*keys, room * sizeof(**keys));
			if (!more) {
				free(*keys);
				*keys = NULL;
				return -ENOMEM;
			}
			*keys = more;
		}
		r = bpf_map__get_next_key(map, *n ? *keys + *n - 1 : NULL, *keys + *n,
					  sizeof(**keys));
		if (r)
			return r == -ENOENT ? 0 : r;
		++*n;
	}
}

/* @key in the engine's words. */
static struct flow_key flow_of(const struct steer_held *key)
{
	struct flow_key k = {.dqpn = key->dqpn};

	memcpy(k.src.b, key->src, sizeof(key->src));
	memcpy(k.dst.b, key->dst, sizeof(key->dst));
	k.vlan = key->vid == STEER_UNTAGGED ? FRAME_VLAN_NONE : (uint16_t)key->vid;
	return k;
}

/* @key as the requests' entry of a connection that is whole: what it is in the engine's words. */
static bool whole(const struct steer_prog *p, const struct steer_held *key,
		  struct flow_key *requests, uint32_t *lqpn)
{
	struct steer_hold h, back;
	struct pair k;

	if (!entry_get(p, key, &h) || !(h.what & STEER_REQUESTS))
		return false;
	*requests = flow_of(key);
	*lqpn = h.other;
	k = pair_of(requests, *lqpn);
	return entry_get(p, &k.answers, &back) && back.other == key->dqpn &&
	       back.what & STEER_ANSWERS;
}

int steer_prog_held(const struct steer_prog *p, afxdp_held_fn fn, void *ctx)
{
	struct flow_key requests;
	struct steer_held *keys;
	uint32_t lqpn;
	int found = 0;
	size_t n;
	int r = all_keys(p, &keys, &n);

	for (size_t i = 0; i < n; i++) {
		if (!whole(p, &keys[i], &requests, &lqpn))
			continue;
		found++;
		if (fn)
			fn(ctx, &requests, lqpn);
	}
	free(keys);
	return r < 0 ? r : found;
}

int steer_prog_held_init(struct steer_prog *p)
{
	struct steer_hold h, back;
	struct steer_held *keys;
	struct flow_key requests;
	uint32_t lqpn;
	size_t n;
	int r = all_keys(p, &keys, &n);

	if (r == 0)
		set_count(p, (uint32_t)n);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct steer_held other = {.vid = keys[i].vid};

		if (!entry_get(p, &keys[i], &h))
			continue;
		if (h.what & STEER_REQUESTS && !whole(p, &keys[i], &requests, &lqpn))
			r = entry_clear(p, &keys[i], h.other, STEER_REQUESTS);
		if (r || !(h.what & STEER_ANSWERS))
			continue;
		memcpy(other.src, keys[i].dst, sizeof(other.src));
		memcpy(other.dst, keys[i].src, sizeof(other.dst));
		other.dqpn = h.other;
		if (!entry_get(p, &other, &back) || back.other != keys[i].dqpn ||
		    !(back.what & STEER_REQUESTS))
			r = entry_clear(p, &keys[i], h.other, STEER_ANSWERS);
	}
	free(keys);
	return r;
}

/* ---- the port ---- */

int afxdp_pin(struct afxdp *x, bool wanted, char *err, size_t errlen)
{
	int r;

	x->pins.wanted = wanted;
	if (wanted)
		return steer_pins_set(&x->pins, &x->prog, err, errlen);
	if (x->prog.held)
		return 0;
	r = steer_pins_remove(&x->pins);
	return r < 0 ? port_fail(err, errlen, r, "the pins in %s cannot be removed: %s",
				 x->pins.dir, strerror(-r))
		     : 0;
}

int afxdp_fence(struct afxdp *x, const struct flow_key *requests, uint32_t lqpn, bool on)
{
	int r;

	if (on)
		return x->pins.pinned == x->pins.all ? steer_prog_hold(&x->prog, requests, lqpn)
						     : -ENOTCONN;
	r = steer_prog_release(&x->prog, requests, lqpn);
	/* Pins that stay do no harm while nothing is held; afxdp_close() tries again. */
	if (!x->prog.held && !x->pins.wanted)
		(void)steer_pins_remove(&x->pins);
	return r;
}

int afxdp_fenced(const struct afxdp *x, afxdp_held_fn fn, void *ctx)
{
	return steer_prog_held(&x->prog, fn, ctx);
}

int afxdp_left(const char *pins, const char (*ifname)[IF_NAMESIZE], afxdp_held_fn fn, void *ctx)
{
	int map = steer_pins_map(pins, ifname), r = map < 0 ? map : 0;
	struct steer_held key, *before = NULL;
	struct flow_key requests;
	struct steer_hold h;

	while (map >= 0 && !bpf_map_get_next_key(map, before, &key)) {
		before = &key;
		requests = flow_of(&key);
		if (!bpf_map_lookup_elem(map, &key, &h) && h.what & STEER_REQUESTS)
			fn(ctx, &requests, h.other);
	}
	if (map >= 0)
		close(map);
	return r;
}

const char *afxdp_pins(const struct afxdp *x)
{
	return x->pins.dir;
}

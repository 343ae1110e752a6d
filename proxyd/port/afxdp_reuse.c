// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program that a former daemon left on its interfaces, gone on with as it is: loading another
 * one and putting it in the place of this one takes the kernel 30 ms and more, in which hosts wait.
 *
 * That is possible when it is the same text, which the program's configuration tells, and when
 * nothing but our pins is believed: each link is on its interface (afxdp_pins.c) and has the
 * program that is pinned beside it, which uses the maps that are pinned beside it. All of these are
 * pinned with the links, in the same directory:
 *
 *	prog_lan prog_wan config near far vlan counters unwanted xsk_lan xsk_wan
 *
 * As long as the sockets of another process are in the maps of sockets nothing is changed in any of
 * them: that process may live.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "port/afxdp_priv.h"
#include "steer.skel.h"

#define MAPS	8
#define MAP_IDS 32
#define PINS	(MAPS + STEER_SIDES)

static const char *const names[PINS] = {
	"config",   "near",    "far",	  "vlan",     "counters",
	"unwanted", "xsk_lan", "xsk_wan", "prog_lan", "prog_wan",
};

/* In the order of their names; that of held connections is pinned by itself. */
static void maps_of(const struct steer_prog *p, struct bpf_map *maps[MAPS])
{
	struct bpf_map *const m[MAPS] = {
		p->skel->maps.steer_config,   p->skel->maps.steer_near,
		p->skel->maps.steer_far,      p->skel->maps.steer_vlan,
		p->skel->maps.steer_counters, p->skel->maps.steer_unwanted,
		p->skel->maps.steer_xsk_lan,  p->skel->maps.steer_xsk_wan,
	};

	memcpy(maps, m, sizeof(m));
}

uint64_t steer_text(void)
{
	const void *b;
	size_t n;

	b = steer_bpf__elf_bytes(&n);
	return XXH3_64bits(b, n);
}

static void path_of(const struct steer_pins *pins, unsigned int i, char path[PIN_PATH])
{
	snprintf(path, PIN_PATH, "%s/%s", pins->dir, names[i]);
}

void steer_reuse_pin(const struct steer_pins *pins, const struct steer_prog *p)
{
	struct bpf_map *maps[MAPS];
	char path[PIN_PATH];

	if (p->reused)
		return;
	maps_of(p, maps);
	for (unsigned int i = 0; i < PINS; i++) {
		int fd = i < MAPS    ? bpf_map__fd(maps[i])
			 : i == MAPS ? bpf_program__fd(p->skel->progs.steer_lan)
				     : bpf_program__fd(p->skel->progs.steer_wan);

		path_of(pins, i, path);
		(void)unlink(path);
		(void)bpf_obj_pin(fd, path); /* one that is missing: not gone on with */
	}
}

int steer_reuse_unpin(const struct steer_pins *pins)
{
	char path[PIN_PATH];
	int r = 0;

	for (unsigned int i = 0; i < PINS; i++) {
		path_of(pins, i, path);
		if (unlink(path) && errno != ENOENT)
			r = -errno;
	}
	return r;
}

static bool uses(const uint32_t *ids, uint32_t n, int map)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(map, &info, &len))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] == info.id)
			return true;
	return false;
}

/* Whether @link has the program @prog, and that uses these maps. */
static bool has(int link, int prog, enum steer_side side, const int *fd, int held)
{
	struct bpf_link_info li = {0};
	uint32_t ids[MAP_IDS], len = sizeof(li);
	struct bpf_prog_info pi = {.nr_map_ids = MAP_IDS, .map_ids = (uint64_t)(uintptr_t)ids};

	if (bpf_obj_get_info_by_fd(link, &li, &len))
		return false;
	len = sizeof(pi);
	if (bpf_obj_get_info_by_fd(prog, &pi, &len) || pi.id != li.prog_id ||
	    pi.nr_map_ids > MAP_IDS || !uses(ids, pi.nr_map_ids, held))
		return false;
	for (unsigned int i = 0; i < MAPS; i++) {
		if (!strncmp(names[i], "xsk_", 4) && i != MAPS - 2u + side)
			continue;
		if (!uses(ids, pi.nr_map_ids, fd[i]))
			return false;
	}
	return true;
}

static bool same_mode(const struct netif *nif, enum afxdp_mode mode, bool *native)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	if (bpf_xdp_query((int)nif->index, 0, &q))
		return false;
	*native = q.attach_mode == XDP_ATTACHED_DRV;
	return (mode != AFXDP_NATIVE && mode != AFXDP_GENERIC) || *native == (mode == AFXDP_NATIVE);
}

static bool same_text(int config)
{
	struct steer_config c;
	uint32_t zero = 0;

	return !bpf_map_lookup_elem(config, &zero, &c) && c.text == steer_text();
}

static bool take(struct steer_prog *p, const int *fd, int held)
{
	struct bpf_map *maps[MAPS];

	p->skel = steer_bpf__open();
	if (!p->skel)
		return false;
	maps_of(p, maps);
	for (unsigned int i = 0; i < MAPS; i++)
		if (bpf_map__reuse_fd(maps[i], fd[i]))
			return false;
	return !bpf_map__reuse_fd(p->skel->maps.steer_held, held) && !steer_prog_map(p);
}

bool steer_reuse(struct steer_prog *p, const struct steer_pins *pins,
		 const struct netif *const nif[STEER_PORTS], enum afxdp_mode mode)
{
	char path[PIN_PATH];
	int fd[PINS];
	bool ok = pins->pinned && pins->pinned == pins->all;

	memset(p, 0, sizeof(*p));
	memset(p->link, 0xff, sizeof(p->link));
	memset(fd, 0xff, sizeof(fd));
	for (unsigned int i = 0; i < PINS && ok; i++) {
		path_of(pins, i, path);
		fd[i] = bpf_obj_get(path);
		ok = fd[i] >= 0;
	}
	for (unsigned int port = 0; port < STEER_PORTS && ok; port++) {
		unsigned int side = port / STEER_MEMBERS;

		if (nif[port] && nif[port]->index)
			ok = has(pins->link[port], fd[MAPS + side], side, fd, pins->map) &&
			     same_mode(nif[port], mode, &p->native[port]);
	}
	ok = ok && same_text(fd[0]) && take(p, fd, pins->map);
	for (unsigned int i = 0; i < PINS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (!ok)
		steer_prog_unload(p);
	p->reused = ok;
	return ok;
}

/* What is in @trie, of either set, to be deleted when the set is used again. */
static int keys_of(const struct bpf_map *trie, struct steer_prog *p, bool near)
{
	struct steer_prefix key, *last = NULL;
	int r;

	while (!(r = bpf_map__get_next_key(trie, last, &key, sizeof(key)))) {
		struct steer_set *s = &p->set[key.set % STEER_SETS];
		struct afxdp_prefix **list = near ? &s->near : &s->far, *more;
		size_t *n = near ? &s->nnear : &s->nfar;

		more = realloc(*list, (*n + 1) * sizeof(**list));
		if (!more)
			return -ENOMEM;
		*list = more;
		more[*n] = (struct afxdp_prefix){.plen = (uint8_t)(key.plen - STEER_SET_BITS)};
		memcpy(more[(*n)++].addr, key.addr, sizeof(key.addr));
		last = &key;
	}
	return r == -ENOENT ? 0 : r;
}

int steer_reuse_begin(struct steer_prog *p)
{
	int cpus = libbpf_num_possible_cpus(), r = 0;
	uint64_t *zero = cpus > 0 ? calloc((size_t)cpus, sizeof(*zero)) : NULL;

	for (uint32_t i = 0; zero && i < STEER_PORTS * STEER_COUNTERS; i++)
		(void)bpf_map__update_elem(p->skel->maps.steer_counters, &i, sizeof(i), zero,
					   (size_t)cpus * sizeof(*zero), BPF_ANY);
	free(zero);
	r = keys_of(p->skel->maps.steer_near, p, true);
	return r ? r : keys_of(p->skel->maps.steer_far, p, false);
}

int steer_reuse_attach(struct steer_prog *p, unsigned int port, int link)
{
	p->link[port] = fcntl(link, F_DUPFD_CLOEXEC, 0);
	return p->link[port] < 0 ? -errno : 0;
}

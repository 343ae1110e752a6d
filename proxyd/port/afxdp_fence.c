// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections whose packets nobody but the daemon may pass on: their two ends number packets
 * differently (engine/answers.h), and one that went by untranslated could be taken for another.
 *
 * Theory of operation
 *
 * They stand in a map that the XDP program looks into before it passes anything up (steer.bpf.c).
 * That must outlive the daemon, however it ends. So the map and both links, which keep the program
 * on the interfaces, are pinned:
 *
 *	/sys/fs/bpf/longhaul/LAN-WAN/held
 *	/sys/fs/bpf/longhaul/LAN-WAN/lan	link of the LAN interface
 *	/sys/fs/bpf/longhaul/LAN-WAN/wan
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
 *
 * Pins that belong to interfaces of another network namespace with the same names are recognized by
 * their program, which is not the one on our interface.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "port/afxdp_priv.h"
#include "steer.skel.h"

#define BPFFS "/sys/fs/bpf"

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

#define QPN_MAX 0xffffffu

static const char *const link_names[STEER_SIDES] = {"lan", "wan"};

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

static void entry_clear(struct steer_prog *p, const struct steer_held *key, uint32_t other,
			uint32_t what)
{
	struct steer_hold h;

	if (!entry_get(p, key, &h) || h.other != other || !(h.what & what))
		return;
	h.what &= ~what;
	if (h.what)
		bpf_map__update_elem(p->skel->maps.steer_held, key, sizeof(*key), &h, sizeof(h),
				     BPF_ANY);
	else if (bpf_map__delete_elem(p->skel->maps.steer_held, key, sizeof(*key), 0) == 0)
		set_count(p, p->held - 1);
}

int steer_prog_hold(struct steer_prog *p, const struct flow_key *requests, uint32_t lqpn)
{
	struct pair k = pair_of(requests, lqpn);
	int r = entry_set(p, &k.answers, requests->dqpn, STEER_ANSWERS);

	if (r == 0)
		r = entry_set(p, &k.requests, lqpn, STEER_REQUESTS);
	if (r < 0)
		entry_clear(p, &k.answers, requests->dqpn, STEER_ANSWERS);
	return r;
}

void steer_prog_release(struct steer_prog *p, const struct flow_key *requests, uint32_t lqpn)
{
	struct pair k = pair_of(requests, lqpn);
	struct steer_hold h;

	if (lqpn > QPN_MAX && entry_get(p, &k.requests, &h)) {
		lqpn = h.other;
		k = pair_of(requests, lqpn);
	}
	entry_clear(p, &k.requests, lqpn, STEER_REQUESTS);
	entry_clear(p, &k.answers, requests->dqpn, STEER_ANSWERS);
}

/* All keys, to be freed by the caller. */
static int all_keys(const struct steer_prog *p, struct steer_held **keys, size_t *n)
{
	const struct bpf_map *map = p->skel->maps.steer_held;
	size_t room = 0;

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
		if (bpf_map__get_next_key(map, *n ? *keys + *n - 1 : NULL, *keys + *n,
					  sizeof(**keys)))
			return 0;
		++*n;
	}
}

/* @key as the requests' entry of a connection that is whole: what it is in the engine's words. */
static bool whole(const struct steer_prog *p, const struct steer_held *key,
		  struct flow_key *requests, uint32_t *lqpn)
{
	struct steer_hold h, back;
	struct pair k;

	if (!entry_get(p, key, &h) || !(h.what & STEER_REQUESTS))
		return false;
	memset(requests, 0, sizeof(*requests));
	memcpy(requests->src.b, key->src, sizeof(key->src));
	memcpy(requests->dst.b, key->dst, sizeof(key->dst));
	requests->dqpn = key->dqpn;
	requests->vlan = key->vid == STEER_UNTAGGED ? FRAME_VLAN_NONE : (uint16_t)key->vid;
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

	if (r < 0)
		return r;
	set_count(p, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		struct steer_held other = {.vid = keys[i].vid};

		if (!entry_get(p, &keys[i], &h))
			continue;
		if (h.what & STEER_REQUESTS && !whole(p, &keys[i], &requests, &lqpn))
			entry_clear(p, &keys[i], h.other, STEER_REQUESTS);
		if (!(h.what & STEER_ANSWERS))
			continue;
		memcpy(other.src, keys[i].dst, sizeof(other.src));
		memcpy(other.dst, keys[i].src, sizeof(other.dst));
		other.dqpn = h.other;
		if (!entry_get(p, &other, &back) || back.other != keys[i].dqpn ||
		    !(back.what & STEER_REQUESTS))
			entry_clear(p, &keys[i], h.other, STEER_ANSWERS);
	}
	free(keys);
	return 0;
}

/* ---- pins ---- */

static void pin_path(const struct steer_pins *pins, const char *name, char *out, size_t len)
{
	snprintf(out, len, "%s/%s", pins->dir, name);
}

/* The object of that name, -ENOENT when there is none. */
static int pin_get(const struct steer_pins *pins, const char *name)
{
	char path[PIN_PATH];
	int fd;

	pin_path(pins, name, path, sizeof(path));
	fd = bpf_obj_get(path);
	return fd < 0 && errno == ENOTDIR ? -ENOENT : fd;
}

/* Is @link on the interface @nif? 0, -ENODEV when on none any more, -EXDEV when on another. */
static int link_where(int link, const struct netif *nif)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	struct bpf_link_info info = {0};
	uint32_t len = sizeof(info);
	int r = bpf_obj_get_info_by_fd(link, &info, &len);

	if (r < 0)
		return r;
	if (info.type != BPF_LINK_TYPE_XDP)
		return -EXDEV;
	if (!info.xdp.ifindex)
		return -ENODEV;
	if (info.xdp.ifindex != nif->index)
		return -EXDEV;
	/* interfaces of other network namespaces have the same numbers */
	r = bpf_xdp_query((int)nif->index, 0, &q);
	if (r < 0)
		return r;
	return info.prog_id == q.prog_id || info.prog_id == q.drv_prog_id ||
			       info.prog_id == q.skb_prog_id
		       ? 0
		       : -EXDEV;
}

static bool map_fits(int fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && info.type == BPF_MAP_TYPE_HASH &&
	       info.key_size == sizeof(struct steer_held) &&
	       info.value_size == sizeof(struct steer_hold);
}

static int find_fail(const struct steer_pins *pins, int code, const char *what, char *err,
		     size_t errlen)
{
	return port_fail(err, errlen, code,
			 "%s: %s; `rm -r %s` gives up what it holds, if no other longhauld uses "
			 "it, and LONGHAUL_PINS names another place",
			 pins->dir, what, pins->dir);
}

void steer_pins_init(struct steer_pins *pins)
{
	*pins = (struct steer_pins){.map = -1, .link = {-1, -1}};
}

int steer_pins_find(struct steer_pins *pins, const char *root, const struct netif *lan,
		    const struct netif *wan, char *err, size_t errlen)
{
	const struct netif *nif[STEER_SIDES] = {lan, wan};
	size_t at;
	int fd, r;

	if (!root)
		return 0;
	if (snprintf(pins->root, sizeof(pins->root), "%s", root) >= (int)sizeof(pins->root))
		return port_fail(err, errlen, -ENAMETOOLONG, "%s is too long a path", root);
	at = strlen(root);
	snprintf(pins->dir, sizeof(pins->dir), "%s/%s-%s", root, lan->name, wan->name);
	/* a BPF file system knows no dots, VLAN interfaces have one */
	for (char *c = pins->dir + at; *c; c++)
		if (*c == '.')
			*c = '_';

	for (int side = 0; side < STEER_SIDES; side++) {
		fd = pin_get(pins, link_names[side]);
		/* who may not look is told so when the program is loaded */
		if (fd == -ENOENT || fd == -EPERM || fd == -EACCES)
			continue;
		if (fd < 0)
			return find_fail(pins, fd, strerror(-fd), err, errlen);
		pins->there = true;
		r = link_where(fd, nif[side]);
		if (r == 0) {
			pins->link[side] = fd;
			pins->pinned |= 1u << side;
			continue;
		}
		close(fd);
		if (r != -ENODEV)
			return find_fail(pins, r,
					 r == -EXDEV ? "pins of other interfaces of these names"
						     : strerror(-r),
					 err, errlen);
	}
	fd = pin_get(pins, "held");
	if (fd == -ENOENT || fd == -EPERM || fd == -EACCES)
		return 0;
	if (fd < 0)
		return find_fail(pins, fd, strerror(-fd), err, errlen);
	if (!map_fits(fd)) {
		close(fd);
		return find_fail(pins, -EINVAL, "written by another version", err, errlen);
	}
	pins->map = fd;
	pins->there = true;
	pins->pinned |= PINNED_MAP;
	return 0;
}

void steer_pins_close(struct steer_pins *pins)
{
	for (int side = 0; side < STEER_SIDES; side++) {
		if (pins->link[side] >= 0)
			close(pins->link[side]);
		pins->link[side] = -1;
	}
	if (pins->map >= 0)
		close(pins->map);
	pins->map = -1;
}

static bool is_bpffs(const char *path)
{
	struct statfs s;

	return statfs(path, &s) == 0 && (uint64_t)s.f_type == BPF_FS_MAGIC;
}

/* In a mount namespace of our own (`ip netns exec` makes one) it would vanish together with us. */
static bool mounts_last(void)
{
	struct stat own, init;

	return stat("/proc/self/ns/mnt", &own) == 0 && stat("/proc/1/ns/mnt", &init) == 0 &&
	       own.st_ino == init.st_ino && own.st_dev == init.st_dev;
}

static int make_dir(struct steer_pins *pins, char *err, size_t errlen)
{
	char buf[PIN_PATH], *parent;

	snprintf(buf, sizeof(buf), "%s", pins->root);
	parent = is_bpffs(buf) ? buf : dirname(buf);
	if (!is_bpffs(parent) && !strcmp(parent, BPFFS) && mounts_last())
		(void)!mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME,
			     "mode=0700");
	if (!is_bpffs(parent))
		return port_fail(err, errlen, -ENODEV,
				 "no BPF file system at %s: `mount -t bpf bpf %s` where it lasts",
				 parent, parent);
	/* mkdirat(), unlinkat(): what the sandbox knows */
	if ((mkdirat(AT_FDCWD, pins->root, 0700) && errno != EEXIST) ||
	    (mkdirat(AT_FDCWD, pins->dir, 0700) && errno != EEXIST))
		return port_fail(err, errlen, -errno, "%s cannot be made: %s", pins->dir,
				 strerror(errno));
	return 0;
}

static int pin(struct steer_pins *pins, unsigned int bit, int fd, const char *name, char *err,
	       size_t errlen)
{
	char path[PIN_PATH];

	if (pins->pinned & bit)
		return 0;
	pin_path(pins, name, path, sizeof(path));
	pins->there = true;
	unlink(path); /* of an interface that is no more */
	if (bpf_obj_pin(fd, path))
		return port_fail(err, errlen, -errno, "%s cannot be pinned: %s", path,
				 strerror(errno));
	pins->pinned |= bit;
	return 0;
}

int steer_pins_set(struct steer_pins *pins, const struct steer_prog *p, char *err, size_t errlen)
{
	int r;

	if (pins->pinned == PINNED_ALL)
		return 0;
	if (!pins->root[0])
		return port_fail(err, errlen, -ENODEV, "no place for pins");
	r = make_dir(pins, err, errlen);
	/* the map first: where a link lasts, it does */
	if (r == 0)
		r = pin(pins, PINNED_MAP, bpf_map__fd(p->skel->maps.steer_held), "held", err,
			errlen);
	for (int side = 0; side < STEER_SIDES && r == 0; side++)
		r = pin(pins, 1u << side, p->link[side], link_names[side], err, errlen);
	return r;
}

void steer_pins_remove(struct steer_pins *pins)
{
	char path[PIN_PATH];

	if (!pins->there)
		return;
	for (int side = 0; side < STEER_SIDES; side++) {
		pin_path(pins, link_names[side], path, sizeof(path));
		unlink(path);
	}
	pin_path(pins, "held", path, sizeof(path));
	unlink(path);
	pins->pinned = 0;
	pins->there = false;
	unlinkat(AT_FDCWD, pins->dir, AT_REMOVEDIR);
	unlinkat(AT_FDCWD, pins->root, AT_REMOVEDIR); /* stays when others use it */
}

/* ---- the port ---- */

int afxdp_pin(struct afxdp *x, bool wanted, char *err, size_t errlen)
{
	x->pins.wanted = wanted;
	if (wanted)
		return steer_pins_set(&x->pins, &x->prog, err, errlen);
	if (!x->prog.held)
		steer_pins_remove(&x->pins);
	return 0;
}

int afxdp_fence(struct afxdp *x, const struct flow_key *requests, uint32_t lqpn, bool on)
{
	if (on)
		return x->pins.pinned == PINNED_ALL ? steer_prog_hold(&x->prog, requests, lqpn)
						    : -ENOTCONN;
	steer_prog_release(&x->prog, requests, lqpn);
	if (!x->prog.held && !x->pins.wanted)
		steer_pins_remove(&x->pins);
	return 0;
}

int afxdp_fenced(const struct afxdp *x, afxdp_held_fn fn, void *ctx)
{
	return steer_prog_held(&x->prog, fn, ctx);
}

const char *afxdp_pins(const struct afxdp *x)
{
	return x->pins.dir;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What outlives the process: the map of held connections (afxdp_fence.c) and the links, which keep
 * the program on the interfaces, are pinned:
 *
 *	/sys/fs/bpf/longhaul/LAN-WAN/held
 *	/sys/fs/bpf/longhaul/LAN-WAN/lan	link of the LAN interface
 *	/sys/fs/bpf/longhaul/LAN-WAN/wan
 *	/sys/fs/bpf/longhaul/LAN-WAN/headers	see afxdp_headers.c
 *
 * A side of several interfaces is named by all of them, with + between; the links of the others are
 * lan1, lan2, lan3, wan1 and so on.
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

static const char *const link_names[STEER_PORTS] = {"lan", "lan1", "lan2", "lan3",
						    "wan", "wan1", "wan2", "wan3"};

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
	*pins = (struct steer_pins){.map = -1, .headers = -1};
	memset(pins->link, 0xff, sizeof(pins->link));
}

/* Add the names of one side's interfaces to the path. */
static void add_names(struct steer_pins *pins, const struct netif *const *nif, char before)
{
	for (unsigned int m = 0; m < STEER_MEMBERS && nif[m]; m++, before = '+') {
		size_t at = strlen(pins->dir);

		snprintf(pins->dir + at, sizeof(pins->dir) - at, "%c%s", before, nif[m]->name);
	}
}

/* The directory of these interfaces. */
static int find_dir(struct steer_pins *pins, const char *root,
		    const struct netif *const nif[STEER_PORTS], char *err, size_t errlen)
{
	size_t at = strlen(root);

	if (snprintf(pins->root, sizeof(pins->root), "%s", root) >= (int)sizeof(pins->root))
		return port_fail(err, errlen, -ENAMETOOLONG, "%s is too long a path", root);
	memcpy(pins->dir, pins->root, at + 1);
	add_names(pins, &nif[STEER_PORT(STEER_LAN, 0)], '/');
	add_names(pins, &nif[STEER_PORT(STEER_WAN, 0)], '-');
	/* a BPF file system knows no dots, VLAN interfaces have one */
	for (char *c = pins->dir + at; *c; c++)
		if (*c == '.')
			*c = '_';
	return 0;
}

int steer_pins_map(const char *root, const char (*ifname)[IF_NAMESIZE])
{
	const struct netif *nif[STEER_PORTS] = {0};
	struct netif named[STEER_PORTS] = {0};
	struct steer_pins pins = {0};
	char err[256];
	int r;

	for (unsigned int port = 0; port < STEER_PORTS; port++) {
		snprintf(named[port].name, IF_NAMESIZE, "%s", ifname[port]);
		nif[port] = *ifname[port] ? &named[port] : NULL;
	}
	r = find_dir(&pins, root, nif, err, sizeof(err));
	return r ? r : pin_get(&pins, "held");
}

int steer_pins_find(struct steer_pins *pins, const char *root,
		    const struct netif *const nif[STEER_PORTS], char *err, size_t errlen)
{
	int fd, r;

	pins->all = PINNED_MAP;
	for (unsigned int port = 0; port < STEER_PORTS; port++)
		if (nif[port] && nif[port]->index)
			pins->all |= 1u << port;

	if (!root)
		return 0;
	r = find_dir(pins, root, nif, err, errlen);
	if (r)
		return r;
	for (unsigned int port = 0; port < STEER_PORTS; port++) {
		if (!(pins->all >> port & 1))
			continue;
		fd = pin_get(pins, link_names[port]);
		/* who may not look is told so when the program is loaded */
		if (fd == -ENOENT || fd == -EPERM || fd == -EACCES)
			continue;
		if (fd < 0)
			return find_fail(pins, fd, strerror(-fd), err, errlen);
		pins->there = true;
		r = link_where(fd, nif[port]);
		if (r == 0) {
			pins->link[port] = fd;
			pins->pinned |= 1u << port;
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
	for (unsigned int port = 0; port < STEER_PORTS; port++) {
		if (pins->link[port] >= 0)
			close(pins->link[port]);
		pins->link[port] = -1;
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
	(void)unlink(path); /* of an interface that is no more; what stays is found below */
	if (bpf_obj_pin(fd, path))
		return port_fail(err, errlen, -errno, "%s cannot be pinned: %s", path,
				 strerror(errno));
	pins->pinned |= bit;
	return 0;
}

int steer_pins_set(struct steer_pins *pins, const struct steer_prog *p, char *err, size_t errlen)
{
	int r;

	if (pins->pinned == pins->all) {
		steer_headers_pin(pins);
		steer_reuse_pin(pins, p);
		return 0;
	}
	if (!pins->root[0])
		return port_fail(err, errlen, -ENODEV, "no place for pins");
	r = make_dir(pins, err, errlen);
	/* the map first: where a link lasts, it does */
	if (r == 0)
		r = pin(pins, PINNED_MAP, bpf_map__fd(p->skel->maps.steer_held), "held", err,
			errlen);
	for (unsigned int port = 0; port < STEER_PORTS && r == 0; port++)
		if (pins->all & 1u << port)
			r = pin(pins, 1u << port, p->link[port], link_names[port], err, errlen);
	if (r == 0) {
		steer_headers_pin(pins);
		steer_reuse_pin(pins, p);
	}
	return r;
}

int steer_pins_remove(struct steer_pins *pins)
{
	char path[PIN_PATH];
	int r;

	if (!pins->there)
		return 0;
	r = steer_reuse_unpin(pins);
	if (steer_headers_unpin(pins) < 0)
		r = -EBUSY;
	for (unsigned int i = 0; i <= STEER_PORTS; i++) {
		pin_path(pins, i < STEER_PORTS ? link_names[i] : "held", path, sizeof(path));
		if (unlink(path) && errno != ENOENT)
			r = -errno;
	}
	pins->pinned = 0;
	if (r < 0)
		return r;
	pins->there = false;
	(void)unlinkat(AT_FDCWD, pins->dir, AT_REMOVEDIR);
	(void)unlinkat(AT_FDCWD, pins->root, AT_REMOVEDIR); /* stays when others use it */
	return 0;
}

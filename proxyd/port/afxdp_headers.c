// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How to speak to the requesters of held connections: the headers of packets to them.
 *
 * A daemon that finds connections held (afxdp_fence.c), and has lost all else, must put their queue
 * pairs into the error state. An idle one says nothing that would show its addresses, for hours,
 * and one that was destroyed never will. So the headers are in a map of their own, pinned beside
 * the others, which the XDP program does not use:
 *
 *	/sys/fs/bpf/longhaul/LAN-WAN/headers
 *
 * Without it, or without an entry, the daemon waits until the queue pair is used. So what a version
 * without this map has left is gone on with as before.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#include "port/afxdp_priv.h"

#define NAME "headers"

static void path_of(const struct steer_pins *pins, char path[PIN_PATH])
{
	snprintf(path, PIN_PATH, "%s/" NAME, pins->dir);
}

static bool fits(int fd)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && info.type == BPF_MAP_TYPE_HASH &&
	       info.key_size == sizeof(struct steer_held) &&
	       info.value_size == sizeof(struct template);
}

void steer_headers_open(struct steer_pins *pins, uint32_t max)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	char path[PIN_PATH];

	if (!pins->root[0])
		return;
	path_of(pins, path);
	pins->headers = bpf_obj_get(path);
	pins->headers_pinned = pins->headers >= 0 && fits(pins->headers);
	if (pins->headers_pinned)
		return;
	if (pins->headers >= 0)
		close(pins->headers);
	pins->headers =
		bpf_map_create(BPF_MAP_TYPE_HASH, "steer_headers", sizeof(struct steer_held),
			       sizeof(struct template), max ? max : STEER_HELD_MAX, &opts);
}

void steer_headers_pin(struct steer_pins *pins)
{
	char path[PIN_PATH];

	if (pins->headers < 0 || pins->headers_pinned)
		return;
	path_of(pins, path);
	(void)unlink(path);
	pins->headers_pinned = !bpf_obj_pin(pins->headers, path);
}

int steer_headers_unpin(struct steer_pins *pins)
{
	char path[PIN_PATH];

	path_of(pins, path);
	pins->headers_pinned = false;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

void steer_headers_close(struct steer_pins *pins)
{
	if (pins->headers >= 0)
		close(pins->headers);
	pins->headers = -1;
}

void afxdp_headers_keep(struct afxdp *x, const struct flow_key *requests, const struct template *t)
{
	struct steer_held key = steer_requests_key(requests);

	if (x->pins.headers < 0)
		return;
	if (t && t->len)
		(void)bpf_map_update_elem(x->pins.headers, &key, t, BPF_ANY);
	else
		(void)bpf_map_delete_elem(x->pins.headers, &key);
}

bool afxdp_headers(const struct afxdp *x, const struct flow_key *requests, struct template *t)
{
	struct steer_held key = steer_requests_key(requests);

	return x->pins.headers >= 0 && !bpf_map_lookup_elem(x->pins.headers, &key, t) && t->len &&
	       t->len <= sizeof(t->hdr) && t->l3 < t->len;
}

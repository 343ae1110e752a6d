// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The XDP program as user space sees it: load, attach, rules, counters.
 *
 * Attached through a BPF link, which the kernel removes when its last descriptor is closed. So
 * whatever becomes of the daemon, the bridge has the packets back at once; a daemon that lives but
 * hangs is covered by the heartbeat in the program's configuration. Where the program must outlive
 * the daemon, the links are pinned (afxdp_pins.c). A daemon that is started anew takes the links
 * over, which also spares it and the driver the detaching and attaching. The
 * dispatcher of libxdp is not used: it pins programs that outlive the daemon, and it needs kernel
 * features of its own.
 *
 * Rules are replaced by filling the set that is not in force and switching over (steer.h). A packet
 * on another CPU may still be reading the old set at that moment; it is touched again by the next
 * replacement only.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/afxdp_priv.h"
#include "steer.skel.h"

static void *map_memory(const struct bpf_map *map, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

int steer_prog_map(struct steer_prog *p)
{
	p->config = map_memory(p->skel->maps.steer_config, sizeof(*p->config));
	p->vlan = map_memory(p->skel->maps.steer_vlan, STEER_SETS * STEER_VLANS * sizeof(*p->vlan));
	return p->config && p->vlan ? 0 : -ENOMEM;
}

/* The kernel's check of a program asks for more than the load itself does. */
static bool may_read_pointers(void)
{
	return !capng_get_caps_process() && (capng_have_capability(CAPNG_EFFECTIVE, CAP_PERFMON) ||
					     capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN));
}

int steer_prog_load(struct steer_prog *p, int held, uint32_t held_max, char *err, size_t errlen)
{
	int r;

	memset(p, 0, sizeof(*p));
	memset(p->link, 0xff, sizeof(p->link));

	p->skel = steer_bpf__open();
	if (!p->skel)
		return port_fail(err, errlen, -errno, "XDP program cannot be read: %s",
				 strerror(errno));
	bpf_program__set_flags(p->skel->progs.steer_lan, BPF_F_XDP_HAS_FRAGS);
	bpf_program__set_flags(p->skel->progs.steer_wan, BPF_F_XDP_HAS_FRAGS);
	r = 0;
	if (held >= 0)
		r = bpf_map__reuse_fd(p->skel->maps.steer_held, held);
	else if (held_max)
		r = bpf_map__set_max_entries(p->skel->maps.steer_held, held_max);
	if (r == 0)
		r = steer_bpf__load(p->skel);
	if (r < 0) {
		if (r == -EPERM || (r == -EACCES && !may_read_pointers()))
			port_fail(err, errlen, r,
				  "no permission to load the XDP program: " AFXDP_NEED_CAPS);
		else
			port_fail(err, errlen, r,
				  "the kernel refuses the XDP program (%s): Linux 6.1 or later is "
				  "needed; LONGHAUL_DEBUG=1 shows why",
				  strerror(-r));
		goto fail;
	}
	if (steer_prog_map(p)) {
		r = port_fail(err, errlen, -ENOMEM, "BPF maps cannot be mapped: %s",
			      strerror(errno));
		goto fail;
	}
	p->config->text = steer_text();
	return 0;

fail:
	steer_prog_unload(p);
	return r;
}

void steer_prog_unload(struct steer_prog *p)
{
	int i;

	if (!p->skel)
		return;
	steer_prog_detach(p);
	if (p->config)
		munmap(p->config, sizeof(*p->config));
	if (p->vlan)
		munmap(p->vlan, STEER_SETS * STEER_VLANS * sizeof(*p->vlan));
	for (i = 0; i < STEER_SETS; i++) {
		free(p->set[i].near);
		free(p->set[i].far);
	}
	steer_bpf__destroy(p->skel);
	memset(p, 0, sizeof(*p));
	memset(p->link, 0xff, sizeof(p->link));
}

static const struct bpf_program *program(const struct steer_prog *p, unsigned int port)
{
	return port < STEER_PORT(STEER_WAN, 0) ? p->skel->progs.steer_lan
					       : p->skel->progs.steer_wan;
}

static int attach(const struct bpf_program *prog, unsigned int ifindex, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = flags);

	return bpf_link_create(bpf_program__fd(prog), (int)ifindex, BPF_XDP, &opts);
}

int steer_prog_attach(struct steer_prog *p, unsigned int port, const struct netif *nif,
		      enum afxdp_mode mode, char *err, size_t errlen)
{
	const struct bpf_program *prog = program(p, port);
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	int fd = -EOPNOTSUPP;

	if (bpf_xdp_query((int)nif->index, 0, &q) == 0 && q.attach_mode != XDP_ATTACHED_NONE) {
		uint32_t id = q.prog_id;

		if (!id) /* attached in several modes at once */
			id = q.drv_prog_id ? q.drv_prog_id : q.skb_prog_id;
		return port_fail(
			err, errlen, -EBUSY,
			"another XDP program (id %u) is attached to %s: stop what attached it, or "
			"`ip link set dev %s xdp off`; where it is longhauld's own, under other "
			"interface names, `rm -r` its pins in " AFXDP_PINS,
			id, nif->name, nif->name);
	}
	if (mode != AFXDP_GENERIC) {
		fd = attach(prog, nif->index, XDP_FLAGS_DRV_MODE);
		p->native[port] = fd >= 0;
		p->native_error[port] = fd < 0 ? -fd : 0;
	}
	if (fd < 0 && mode != AFXDP_NATIVE && fd != -EPERM && fd != -EBUSY)
		fd = attach(prog, nif->index, XDP_FLAGS_SKB_MODE);
	p->link[port] = fd;
	if (fd >= 0)
		return 0;

	p->link[port] = -1;
	if (fd == -EPERM)
		return port_fail(err, errlen, fd, "no permission to attach to %s: " AFXDP_NEED_CAPS,
				 nif->name);
	if (fd == -EBUSY)
		return port_fail(err, errlen, fd,
				 "another XDP program is attached to %s: stop what attached it, or "
				 "`ip link set dev %s xdp off`",
				 nif->name, nif->name);
	if (mode == AFXDP_NATIVE && fd == -EOPNOTSUPP)
		return port_fail(err, errlen, fd,
				 "the driver of %s has no native XDP: choose mode auto or generic",
				 nif->name);
	if (mode == AFXDP_NATIVE)
		return port_fail(err, errlen, fd,
				 "the driver of %s refuses native XDP (%s), often for its MTU (%u) "
				 "or its offloads: lower the MTU, or choose mode auto or generic",
				 nif->name, strerror(-fd), nif->mtu);
	return port_fail(err, errlen, fd,
			 "XDP cannot be attached to %s (%s): turn `ethtool -K %s lro off`, or "
			 "choose another interface",
			 nif->name, strerror(-fd), nif->name);
}

/* @mode: AFXDP_AUTO takes either. The link's descriptor is copied when all is well. */
static int adopt(struct steer_prog *p, unsigned int port, const struct netif *nif,
		 enum afxdp_mode mode, int link)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	struct bpf_link_info info = {0};
	uint32_t len = sizeof(info);
	bool native;
	int r;

	r = bpf_obj_get_info_by_fd(link, &info, &len);
	if (r == 0)
		r = bpf_xdp_query((int)nif->index, 0, &q);
	native = q.attach_mode == XDP_ATTACHED_DRV;
	if (r == 0 && (info.type != BPF_LINK_TYPE_XDP || info.xdp.ifindex != nif->index ||
		       (native ? mode == AFXDP_GENERIC : mode == AFXDP_NATIVE)))
		r = -EINVAL;
	if (r == 0)
		r = bpf_link_update(link, bpf_program__fd(program(p, port)), NULL);
	if (r < 0)
		return r;
	r = fcntl(link, F_DUPFD_CLOEXEC, 0);
	if (r < 0)
		return -errno;
	p->link[port] = r;
	p->native[port] = native;
	return 0;
}

int steer_prog_adopt(struct steer_prog *p, unsigned int port, const struct netif *nif,
		     enum afxdp_mode mode, int link)
{
	int r = adopt(p, port, nif, mode, link);

	if (r < 0) /* where it stays, steer_prog_attach() finds it and says so */
		(void)bpf_link_detach(link);
	return r;
}

int steer_prog_take_over(struct steer_prog *p, unsigned int port, const struct netif *nif, int link)
{
	return adopt(p, port, nif, AFXDP_AUTO, link);
}

void steer_prog_detach(struct steer_prog *p)
{
	/* One that stays attached passes everything up: there is no heartbeat. */
	for (unsigned int port = 0; port < STEER_PORTS; port++)
		if (p->link[port] >= 0)
			(void)bpf_link_detach(p->link[port]);
	steer_prog_leave(p);
}

void steer_prog_leave(struct steer_prog *p)
{
	for (unsigned int port = 0; port < STEER_PORTS; port++) {
		if (p->link[port] >= 0)
			close(p->link[port]);
		p->link[port] = -1;
	}
}

static int cmp_prefix(const void *a, const void *b)
{
	const struct afxdp_prefix *x = a, *y = b;
	int d = memcmp(x->addr, y->addr, sizeof(x->addr));

	return d ? d : x->plen - y->plen;
}

static bool covers(const struct afxdp_prefix *p, const struct afxdp_prefix *q)
{
	uint8_t whole = p->plen / 8, rest = p->plen % 8;

	if (p->plen > q->plen || memcmp(p->addr, q->addr, whole))
		return false;
	return !rest || !((p->addr[whole] ^ q->addr[whole]) >> (8 - rest));
}

static void clear_host_bits(struct afxdp_prefix *p)
{
	uint8_t i = p->plen / 8, rest = p->plen % 8;

	if (rest)
		p->addr[i++] &= (uint8_t)(0xff << (8 - rest));
	memset(p->addr + i, 0, sizeof(p->addr) - i);
}

long steer_expand(const struct afxdp_prefix *in, size_t n, struct afxdp_prefix *out)
{
	size_t open[129]; /* prefixes that may cover the next one: each covers the one after it */
	size_t depth = 0, kept = 0, i;

	for (i = 0; i < n; i++) {
		if (in[i].plen > 128)
			return -EINVAL;
		out[i] = in[i];
		clear_host_bits(&out[i]);
	}
	/* In this order a prefix comes after every prefix that covers it. */
	qsort(out, n, sizeof(*out), cmp_prefix);
	for (i = 0; i < n; i++) {
		if (kept && cmp_prefix(&out[kept - 1], &out[i]) == 0) {
			/* excluded stays excluded, whatever rules have the same address */
			out[kept - 1].rules = out[kept - 1].rules && out[i].rules
						      ? out[kept - 1].rules | out[i].rules
						      : 0;
			continue;
		}
		while (depth && !covers(&out[open[depth - 1]], &out[i]))
			depth--;
		out[kept] = out[i];
		if (depth && out[i].rules)
			out[kept].rules |= out[open[depth - 1]].rules;
		open[depth++] = kept++;
	}
	return (long)kept;
}

static struct steer_prefix trie_key(const struct afxdp_prefix *p, uint32_t set)
{
	struct steer_prefix key = {.plen = STEER_SET_BITS + p->plen, .set = set};

	memcpy(key.addr, p->addr, sizeof(key.addr));
	return key;
}

/* 0, or negative errno and in @list what is still there: nothing of a former set may stay. */
static int trie_clear(const struct bpf_map *trie, uint32_t set, struct afxdp_prefix **list,
		      size_t *n)
{
	for (; *n; --*n) {
		struct steer_prefix key = trie_key(&(*list)[*n - 1], set);
		int r = bpf_map__delete_elem(trie, &key, sizeof(key), 0);

		if (r && r != -ENOENT)
			return r;
	}
	free(*list);
	*list = NULL;
	return 0;
}

static int trie_fill(const struct bpf_map *trie, uint32_t set, const struct afxdp_prefix *in,
		     size_t n, struct afxdp_prefix **list, size_t *count)
{
	long kept;
	int r = trie_clear(trie, set, list, count);

	if (r < 0)
		return r;
	if (n > STEER_PREFIXES)
		return -E2BIG;
	if (!n)
		return 0;
	*list = malloc(n * sizeof(**list));
	if (!*list)
		return -ENOMEM;
	kept = steer_expand(in, n, *list);
	if (kept < 0)
		return (int)kept;
	while (*count < (size_t)kept && r == 0) {
		struct steer_prefix key = trie_key(&(*list)[*count], set);

		r = bpf_map__update_elem(trie, &key, sizeof(key), &(*list)[*count].rules,
					 sizeof(uint64_t), BPF_ANY);
		if (r == 0)
			++*count;
	}
	return r;
}

int steer_prog_rules(struct steer_prog *p, const struct afxdp_prefix *near, size_t nnear,
		     const struct afxdp_prefix *far, size_t nfar, const uint64_t *vlan_rules)
{
	uint32_t set = !p->config->set;
	struct steer_set *s = &p->set[set];
	int r;

	r = trie_fill(p->skel->maps.steer_near, set, near, nnear, &s->near, &s->nnear);
	if (r == 0)
		r = trie_fill(p->skel->maps.steer_far, set, far, nfar, &s->far, &s->nfar);
	if (r < 0)
		return r;
	memcpy(p->vlan + STEER_VLAN_INDEX(set, 0), vlan_rules, STEER_VLANS * sizeof(*p->vlan));
	__atomic_store_n(&p->config->set, set, __ATOMIC_RELEASE);
	return 0;
}

int steer_prog_socket(struct steer_prog *p, unsigned int port, uint32_t queue, int fd)
{
	const struct bpf_map *map = port < STEER_PORT(STEER_WAN, 0) ? p->skel->maps.steer_xsk_lan
								    : p->skel->maps.steer_xsk_wan;
	uint32_t at = STEER_SOCKET(port % STEER_MEMBERS, queue);

	return bpf_map__update_elem(map, &at, sizeof(at), &fd, sizeof(fd), BPF_ANY);
}

void steer_prog_heartbeat(struct steer_prog *p, uint64_t now_ns)
{
	__atomic_store_n(&p->config->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
}

void steer_prog_counters(const struct steer_prog *p, unsigned int port,
			 uint64_t out[STEER_COUNTERS])
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	uint64_t *v = cpus > 0 ? calloc((size_t)cpus, sizeof(*v)) : NULL;

	memset(out, 0, STEER_COUNTERS * sizeof(*out));
	for (uint32_t c = 0; v && c < STEER_COUNTERS; c++) {
		uint32_t i = port * STEER_COUNTERS + c;

		if (bpf_map__lookup_elem(p->skel->maps.steer_counters, &i, sizeof(i), v,
					 (size_t)cpus * sizeof(*v), 0))
			continue;
		for (cpu = 0; cpu < cpus; cpu++)
			out[c] += v[cpu];
	}
	free(v);
}

bool steer_prog_unwanted(const struct steer_prog *p, enum steer_side side,
			 struct steer_unwanted *out)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	struct steer_unwanted *v = cpus > 0 ? calloc((size_t)cpus, sizeof(*v)) : NULL;
	uint32_t i = side;

	*out = (struct steer_unwanted){.at_ns = 0};
	if (v && !bpf_map__lookup_elem(p->skel->maps.steer_unwanted, &i, sizeof(i), v,
				       (size_t)cpus * sizeof(*v), 0))
		for (cpu = 0; cpu < cpus; cpu++)
			if (v[cpu].at_ns > out->at_ns)
				*out = v[cpu];
	free(v);
	return out->at_ns;
}

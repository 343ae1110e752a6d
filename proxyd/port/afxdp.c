// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The two ports through AF_XDP.
 *
 * Theory of operation
 *
 * A port transmits through the socket of its queue 0 alone: one thread sends, and packets of one
 * flow must keep their order.
 *
 * Frames above one chunk: since Linux 6.6 (XDP_USE_SG) a frame may occupy several descriptors, all
 * but the last marked XDP_PKT_CONTD. Received ones are joined in a buffer of the socket before they
 * are handed over, sent ones are cut here. An older kernel has none: the XDP program passes
 * them up.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "port/afxdp_priv.h"

#define DEFAULT_STALE_NS 500000000u

static int quiet_bpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

static int quiet_xdp(enum libxdp_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

bool afxdp_multibuffer(void)
{
	/* bind() checks its flags first and looks for the interface then, so that asking for one
	 * that cannot exist tells a kernel that knows the flag (ENODEV) from one that does not
	 * (EINVAL). */
	const struct sockaddr_xdp nowhere = {
		.sxdp_family = AF_XDP,
		.sxdp_flags = XDP_COPY | XDP_USE_SG,
		.sxdp_ifindex = INT32_MAX,
	};
	static int known = -1;
	int fd;

	if (known >= 0)
		return known;
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	known = bind(fd, (const struct sockaddr *)&nowhere, sizeof(nowhere)) < 0 && errno == ENODEV;
	close(fd);
	return known;
}

static int choose_max_frame(struct afxdp *x, const struct afxdp_config *cfg, char *err,
			    size_t errlen)
{
	struct utsname u;

	x->multibuffer = !cfg->single_buffer && afxdp_multibuffer();
	x->max_frame = x->multibuffer ? FRAME_MAX : AFXDP_ONE_BUFFER;
	x->max_tx = x->multibuffer ? FRAME_MAX : AFXDP_CHUNK;
	if (cfg->max_frame > AFXDP_ONE_BUFFER && !x->multibuffer) {
		if (cfg->single_buffer)
			return port_fail(err, errlen, -EOPNOTSUPP,
					 "frames of %u bytes need multi-buffer, which is turned "
					 "off: turn it on, or limit frames to %u (path MTU 2048)",
					 cfg->max_frame, AFXDP_ONE_BUFFER);
		uname(&u);
		return port_fail(
			err, errlen, -EOPNOTSUPP,
			"frames of %u bytes need AF_XDP multi-buffer, which Linux %s lacks: use "
			"6.6 or later, or path MTU 2048 on the hosts and frames up to %u",
			cfg->max_frame, u.release, AFXDP_ONE_BUFFER);
	}
	if (cfg->max_frame && cfg->max_frame < x->max_frame)
		x->max_frame = cfg->max_frame;
	return 0;
}

static int attach(struct afxdp *x, enum steer_side side, const struct afxdp_config *cfg, char *err,
		  size_t errlen)
{
	const struct netif *nif = &x->port[side].nif;
	int r;

	if (x->prog.reused)
		return steer_reuse_attach(&x->prog, side, x->pins.link[side]);
	if (x->pins.link[side] >= 0 && x->prog.held) {
		r = steer_prog_take_over(&x->prog, side, nif, x->pins.link[side]);
		if (r < 0)
			return port_fail(err, errlen, r,
					 "the program on %s cannot be replaced (%s): `rm -r %s` "
					 "gives up the connections that it holds",
					 nif->name, strerror(-r), x->pins.dir);
		return 0;
	}
	if (x->pins.link[side] >= 0) {
		if (steer_prog_adopt(&x->prog, side, nif, cfg->mode, x->pins.link[side]) == 0)
			return 0;
		x->pins.pinned &= ~(1u << side);
	}
	if (cfg->links && cfg->links[side] >= 0 &&
	    steer_prog_adopt(&x->prog, side, nif, cfg->mode, cfg->links[side]) == 0)
		return 0;
	return steer_prog_attach(&x->prog, side, nif, cfg->mode, err, errlen);
}

static int load_rules(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	int r = afxdp_rules(x, cfg->near, cfg->nnear, cfg->far, cfg->nfar, cfg->vlan_rules);

	if (r < 0)
		port_fail(err, errlen, r,
			  r == -E2BIG ? "more than %d prefixes on one side: merge some of them"
				      : "the kernel does not take the prefixes (at most %d a side)",
			  STEER_PREFIXES);
	return r;
}

/* What the program is to do. */
static int configure(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	x->prog.config->max_frame = x->max_frame;
	x->prog.config->stale_ns = cfg->stale_ns ? cfg->stale_ns : DEFAULT_STALE_NS;
	x->prog.config->linear_only = !x->multibuffer;
	return load_rules(x, cfg, err, errlen);
}

/* All but the links: the program, what it is to do, and the sockets. That of a former daemon is
 * told nothing before the sockets are ours, for that daemon may live. */
static int begin(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	const struct netif *const nif[STEER_SIDES] = {&x->port[STEER_LAN].nif,
						      &x->port[STEER_WAN].nif};
	int r = 0;

	if (!steer_reuse(&x->prog, &x->pins, nif, cfg->mode)) {
		r = steer_prog_load(&x->prog, x->pins.map, 2 * cfg->max_held, err, errlen);
		if (r >= 0)
			r = configure(x, cfg, err, errlen);
	}
	if (r >= 0)
		r = sockets_open(x, cfg, err, errlen);
	if (r < 0)
		return r;
	/* nobody else has them, so the map that was found is ours, too */
	r = steer_prog_held_init(&x->prog);
	if (r < 0)
		return port_fail(err, errlen, r, "the map of held flows cannot be read: %s",
				 strerror(-r));
	if (!x->prog.reused)
		return 0;
	r = steer_reuse_begin(&x->prog);
	if (r < 0)
		return port_fail(err, errlen, r, "the prefixes in force cannot be read: %s",
				 strerror(-r));
	return configure(x, cfg, err, errlen);
}

struct afxdp *afxdp_open(const struct afxdp_config *cfg, char *err, size_t errlen)
{
	struct afxdp *x = calloc(1, sizeof(*x));
	int side, r;

	if (!x) {
		port_fail(err, errlen, -ENOMEM, "out of memory");
		return NULL;
	}
	steer_pins_init(&x->pins);
	if (!getenv("LONGHAUL_DEBUG")) {
		libbpf_set_print(quiet_bpf);
		libxdp_set_print(quiet_xdp);
	}
	for (side = 0; side < STEER_SIDES; side++) {
		r = netif_open(&x->port[side].nif, cfg->ifname[side], err, errlen);
		if (r < 0)
			goto fail;
		x->port[side].nif.vlan_strip |= cfg->vlan_strip[side];
	}
	if (x->port[STEER_LAN].nif.index == x->port[STEER_WAN].nif.index) {
		port_fail(err, errlen, -EINVAL,
			  "%s is both the LAN and the WAN interface: name two different ones",
			  cfg->ifname[STEER_LAN]);
		goto fail;
	}
	r = choose_max_frame(x, cfg, err, errlen);
	if (r < 0)
		goto fail;
	r = steer_pins_find(&x->pins, cfg->pins, &x->port[STEER_LAN].nif, &x->port[STEER_WAN].nif,
			    err, errlen);
	if (r < 0)
		goto fail;
	steer_headers_open(&x->pins, cfg->max_held);
	r = begin(x, cfg, err, errlen);
	/* last, so that no frame is taken which nobody would read */
	for (side = 0; side < STEER_SIDES && r >= 0; side++)
		r = attach(x, side, cfg, err, errlen);
	steer_pins_close(&x->pins);
	if (r >= 0 && x->prog.held) /* an interface may be another one than before */
		r = steer_pins_set(&x->pins, &x->prog, err, errlen);
	if (r >= 0)
		return x;
fail:
	afxdp_close(x);
	return NULL;
}

/* What is held stays held, and what was not taken over yet (an error in between) is not ours. */
static void let_go(struct afxdp *x)
{
	if (x->prog.held) {
		steer_prog_leave(&x->prog);
		return;
	}
	/* A pin that stays is of a link without an interface then: taken away by the next start. */
	if (x->prog.link[STEER_LAN] >= 0 && x->prog.link[STEER_WAN] >= 0)
		(void)steer_pins_remove(&x->pins);
	steer_prog_detach(&x->prog);
}

void afxdp_close(struct afxdp *x)
{
	int side;

	if (!x)
		return;
	/* one that was found and not begun with may be another process's */
	if (x->prog.skel && (!x->prog.reused || x->prog.link[STEER_WAN] >= 0)) {
		steer_prog_heartbeat(&x->prog, 0);
		let_go(x);
	}
	steer_pins_close(&x->pins);
	steer_headers_close(&x->pins);
	if (x->umem)
		afxdp_flush(x);
	sockets_close(x);
	for (side = 0; side < STEER_SIDES; side++)
		netif_close(&x->port[side].nif);
	steer_prog_unload(&x->prog);
	free(x);
}

int afxdp_rules(struct afxdp *x, const struct afxdp_prefix *near, size_t nnear,
		const struct afxdp_prefix *far, size_t nfar, const uint64_t *vlan_rules)
{
	return steer_prog_rules(&x->prog, near, nnear, far, nfar, vlan_rules);
}

int afxdp_fds(const struct afxdp *x, int *fds, int max)
{
	unsigned int i;
	int side, n = 0;

	for (side = 0; side < STEER_SIDES; side++)
		for (i = 0; i < x->port[side].nq && n < max; i++)
			fds[n++] = xsk_socket__fd(x->port[side].q[i].xsk);
	return n;
}

void afxdp_heartbeat(struct afxdp *x, uint64_t now_ns)
{
	steer_prog_heartbeat(&x->prog, now_ns);
}

bool afxdp_native(const struct afxdp *x, enum steer_side side)
{
	return x->prog.native[side];
}

const char *afxdp_name(const struct afxdp *x, enum steer_side side)
{
	return x->port[side].nif.name;
}

const char *afxdp_driver(const struct afxdp *x, enum steer_side side)
{
	return x->port[side].nif.driver;
}

bool afxdp_zero_copy(const struct afxdp *x, enum steer_side side)
{
	for (unsigned int i = 0; i < x->port[side].nq; i++) {
		struct xdp_options o = {0};
		socklen_t len = sizeof(o);

		if (getsockopt(xsk_socket__fd(x->port[side].q[i].xsk), SOL_XDP, XDP_OPTIONS, &o,
			       &len) ||
		    !(o.flags & XDP_OPTIONS_ZEROCOPY))
			return false;
	}
	return x->port[side].nq > 0;
}

int afxdp_native_error(const struct afxdp *x, enum steer_side side)
{
	return x->prog.native_error[side];
}

int afxdp_link(const struct afxdp *x, enum steer_side side)
{
	return x->prog.link[side];
}

uint32_t afxdp_max_frame(const struct afxdp *x)
{
	return x->max_frame;
}

unsigned int afxdp_queues(const struct afxdp *x, enum steer_side side)
{
	return x->port[side].nq;
}

int afxdp_check(const struct afxdp *x)
{
	static const int worst_first[] = {-ENODEV, -ESTALE, -ENETDOWN};
	int lan = netif_check(&x->port[STEER_LAN].nif), wan = netif_check(&x->port[STEER_WAN].nif);

	for (size_t i = 0; i < sizeof(worst_first) / sizeof(worst_first[0]); i++)
		if (lan == worst_first[i] || wan == worst_first[i])
			return worst_first[i];
	return 0;
}

bool afxdp_gone(const struct afxdp *x, enum steer_side side)
{
	return netif_check(&x->port[side].nif) == -ENODEV;
}

bool afxdp_down(const struct afxdp *x, enum steer_side side)
{
	return netif_check(&x->port[side].nif) == -ENETDOWN;
}

uint32_t afxdp_mtu(const struct afxdp *x, enum steer_side side)
{
	return netif_mtu(&x->port[side].nif);
}

uint32_t afxdp_longest(struct afxdp *x, enum steer_side side)
{
	uint32_t longest = x->port[side].longest;

	x->port[side].longest = 0;
	return longest;
}

bool afxdp_strips(const struct afxdp *x, enum steer_side side)
{
	return x->port[side].nif.vlan_strip;
}

bool afxdp_restores(const struct afxdp *x)
{
	return afxdp_strips(x, STEER_LAN) || afxdp_strips(x, STEER_WAN);
}

static bool kernel_stats(const struct afxdp *x, enum steer_side side, unsigned int queue,
			 struct xdp_statistics *k)
{
	socklen_t len = sizeof(*k);

	memset(k, 0, sizeof(*k));
	return !getsockopt(xsk_socket__fd(x->port[side].q[queue].xsk), SOL_XDP, XDP_STATISTICS, k,
			   &len);
}

uint64_t afxdp_overrun(const struct afxdp *x, enum steer_side side)
{
	struct xdp_statistics k;
	uint64_t n = 0;

	for (unsigned int i = 0; i < x->port[side].nq; i++)
		if (kernel_stats(x, side, i, &k))
			n += k.rx_dropped + k.rx_ring_full;
	return n;
}

void afxdp_stats(struct afxdp *x, struct afxdp_stats *out)
{
	unsigned int i;
	int side;

	*out = x->stats;
	steer_prog_counters(&x->prog, out->steer);
	for (side = 0; side < STEER_SIDES; side++) {
		for (i = 0; i < x->port[side].nq; i++) {
			struct xdp_statistics k;

			if (!kernel_stats(x, side, i, &k))
				continue;
			out->rx_dropped[side] += k.rx_dropped + k.rx_ring_full;
			out->rx_bad_chunk[side] += k.rx_invalid_descs;
			out->tx_dropped[side] += k.tx_invalid_descs;
		}
	}
}

bool afxdp_unwanted(const struct afxdp *x, enum steer_side side, struct afxdp_unwanted *out)
{
	struct steer_unwanted u;

	if (!steer_prog_unwanted(&x->prog, side, &u))
		return false;
	memcpy(out->src.b, u.src, sizeof(out->src.b));
	memcpy(out->dst.b, u.dst, sizeof(out->dst.b));
	out->vlan = u.vid == STEER_UNTAGGED ? FRAME_VLAN_NONE : (uint16_t)u.vid;
	out->at_ns = u.at_ns;
	return true;
}

uint64_t afxdp_bad_chunks(const struct afxdp *x)
{
	uint64_t n = 0;
	int side;

	for (side = 0; side < STEER_SIDES; side++)
		n += x->stats.rx_bad_chunk[side] + x->stats.tx_bad_chunk[side];
	return n;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The two ports through AF_XDP.
 *
 * Theory of operation
 *
 * All sockets share one UMEM, an array of 4 KiB chunks, but no two of them share a chunk. It is cut
 * up once, in afxdp_open(), and a chunk never changes its owner:
 *
 *	half		receive: an equal share for each socket, one socket a port and receive queue
 *	a quarter each	transmit: one share for each port
 *
 * So neither direction nor port can starve another, whatever is stuck where. A receive share is as
 * large as its fill ring and its receive ring: a chunk goes round fill ring, kernel, receive ring,
 * us, fill ring, and there is always room for it. A transmit share is as large as its transmit ring
 * and its completion ring; chunks that are free lie on a stack, so that the one used last, still in
 * the cache, is used next.
 *
 * A port transmits through the socket of its queue 0 alone: one thread sends, and packets of one
 * flow must keep their order.
 *
 * Frames above one chunk: since Linux 6.6 (XDP_USE_SG) a frame may occupy several descriptors, all
 * but the last marked XDP_PKT_CONTD. Received ones are joined in a buffer of the socket before they
 * are handed over, sent ones are cut here. An older kernel has none: the XDP program passes
 * them up.
 *
 * Sockets are in copy mode. There the kernel transmits within our sendto(), a bounded number of
 * frames for each call, and a frame that the device refuses is gone; afxdp_ring.c deals with both.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "port/afxdp_priv.h"

/* From newer kernels' headers than Debian 12 has. */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

#define DEFAULT_FRAMES	 16384u
#define DEFAULT_STALE_NS 500000000u
#define RING_MIN	 64u
#define RING_MAX	 32768u
#define BUSY_MS		 1000 /* how long to wait for a queue that another socket holds */

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
	bind(fd, (const struct sockaddr *)&nowhere, sizeof(nowhere));
	known = errno == ENODEV;
	close(fd);
	return known;
}

static uint32_t pow2_floor(uint32_t v)
{
	return v ? 1u << (31 - __builtin_clz(v)) : 0;
}

/* Returns the socket's descriptor to poll, or a negative errno. */
static int open_queue(struct afxdp *x, enum steer_side side, unsigned int queue, uint64_t rx_base,
		      char *err, size_t errlen)
{
	struct port *p = &x->port[side];
	struct rxq *q = &p->q[queue];
	const struct xsk_socket_config cfg = {
		.rx_size = q->nchunks,
		.tx_size = p->nchunks,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = (uint16_t)(XDP_COPY | XDP_USE_NEED_WAKEUP |
					 (x->multibuffer ? XDP_USE_SG : 0)),
	};
	int budget = (int)p->nchunks;
	/* Every frame in flight is charged to the socket with its bookkeeping; the default limit is
	 * about 40 long frames. */
	int sndbuf = (int)(p->nchunks * 2 * AFXDP_CHUNK);
	int tries = BUSY_MS, r;
	uint32_t idx = 0, i;

	q->side = side;
	/* The kernel lets go of a closed socket's queue some time after the close: a daemon that
	 * starts anew at once has to wait for its forerunner's. */
	do {
		r = xsk_socket__create_shared(&q->xsk, p->nif.name, queue, x->umem, &q->rx,
					      queue ? NULL : &p->tx, &q->fill, &q->comp, &cfg);
	} while (r == -EBUSY && tries-- && usleep(1000) == 0);
	if (r == -EBUSY)
		return port_fail(err, errlen, r,
				 "another program has an AF_XDP socket on %s queue %u: stop it "
				 "(`ss --xdp -p` names it)",
				 p->nif.name, queue);
	if (r < 0)
		return port_fail(err, errlen, r, "no AF_XDP socket on %s queue %u: %s", p->nif.name,
				 queue, strerror(-r));
	r = xsk_socket__fd(q->xsk);
	setsockopt(r, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
	setsockopt(r, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));

	xsk_ring_prod__reserve(&q->fill, q->nchunks, &idx);
	for (i = 0; i < q->nchunks; i++)
		*xsk_ring_prod__fill_addr(&q->fill, idx + i) = rx_base + (uint64_t)i * AFXDP_CHUNK;
	xsk_ring_prod__submit(&q->fill, q->nchunks);
	return r;
}

static int open_umem(struct afxdp *x, uint32_t ring_rx, uint32_t ring_tx, char *err, size_t errlen)
{
	const struct xsk_umem_config cfg = {
		.fill_size = ring_rx,
		.comp_size = ring_tx,
		.frame_size = AFXDP_CHUNK,
	};
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct rxq *first = &x->port[STEER_LAN].q[0];
	int r;

	x->area =
		mmap(NULL, x->area_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (x->area == MAP_FAILED) {
		x->area = NULL;
		return port_fail(err, errlen, -ENOMEM,
				 "no memory for %zu MiB of packet buffers: set fewer frames",
				 x->area_len >> 20);
	}
	madvise(x->area, x->area_len, MADV_HUGEPAGE);
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* else UMEM counts against it; may be refused */

	r = xsk_umem__create(&x->umem, x->area, x->area_len, &first->fill, &first->comp, &cfg);
	if (r == -EPERM)
		return port_fail(err, errlen, r,
				 "no permission to open an AF_XDP socket: " AFXDP_NEED_CAPS);
	if (r == -EAFNOSUPPORT)
		return port_fail(err, errlen, r,
				 "the kernel has no AF_XDP: use one with CONFIG_XDP_SOCKETS");
	if (r == -ENOBUFS || r == -ENOMEM)
		return port_fail(err, errlen, r,
				 "%zu MiB of packet buffers cannot be locked in memory: raise "
				 "LimitMEMLOCK (`ulimit -l unlimited`) or set fewer frames",
				 x->area_len >> 20);
	if (r < 0)
		return port_fail(err, errlen, r, "packet buffers cannot be registered: %s",
				 strerror(-r));
	return 0;
}

/* Cut up the UMEM, open the sockets, point the XDP program at them. */
static int open_sockets(struct afxdp *x, uint32_t frames, char *err, size_t errlen)
{
	struct port *lan = &x->port[STEER_LAN], *wan = &x->port[STEER_WAN];
	uint32_t nsock = lan->nif.queues + wan->nif.queues, ring_rx, ring_tx, i;
	uint64_t rx_base = 0;
	unsigned int queue;
	int side, r;

	if (frames > STEER_SIDES * 2 * RING_MAX)
		frames = STEER_SIDES * 2 * RING_MAX;
	ring_rx = pow2_floor(frames / 2 / nsock);
	ring_tx = pow2_floor(frames / 4);
	if (ring_rx < RING_MIN || ring_tx < RING_MIN)
		return port_fail(err, errlen, -EINVAL,
				 "%u frames are too few for %u receive queues: set %u or more",
				 frames, nsock, nsock * 2 * RING_MIN);
	x->area_len = ((size_t)nsock * ring_rx + (size_t)STEER_SIDES * ring_tx) * AFXDP_CHUNK;

	for (side = 0; side < STEER_SIDES; side++) {
		struct port *p = &x->port[side];

		p->nq = p->nif.queues;
		p->q = calloc(p->nq, sizeof(*p->q));
		p->nchunks = ring_tx;
		p->free = calloc(ring_tx, sizeof(*p->free));
		p->busy = calloc(ring_tx, 1);
		if (!p->q || !p->free || !p->busy)
			return port_fail(err, errlen, -ENOMEM, "out of memory");
		for (i = 0; i < ring_tx; i++)
			p->free[p->nfree++] = i;
		p->base = ((uint64_t)nsock * ring_rx + (uint64_t)side * ring_tx) * AFXDP_CHUNK;
	}
	r = open_umem(x, ring_rx, ring_tx, err, errlen);
	if (r < 0)
		return r;
	for (side = 0; side < STEER_SIDES; side++) {
		for (queue = 0; queue < x->port[side].nq; queue++) {
			x->port[side].q[queue].nchunks = ring_rx;
			r = open_queue(x, side, queue, rx_base, err, errlen);
			if (r < 0)
				return r;
			rx_base += (uint64_t)ring_rx * AFXDP_CHUNK;
			r = steer_prog_socket(&x->prog, side, queue, r);
			if (r < 0)
				return port_fail(err, errlen, r,
						 "socket of %s queue %u not accepted: %s",
						 x->port[side].nif.name, queue, strerror(-r));
		}
	}
	return 0;
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
	r = steer_prog_load(&x->prog, x->pins.map, 2 * cfg->max_held, err, errlen);
	if (r < 0)
		goto fail;
	x->prog.config->max_frame = x->max_frame;
	x->prog.config->stale_ns = cfg->stale_ns ? cfg->stale_ns : DEFAULT_STALE_NS;
	x->prog.config->linear_only = !x->multibuffer;
	r = afxdp_rules(x, cfg->near, cfg->nnear, cfg->far, cfg->nfar, cfg->vlan_rules);
	if (r < 0) {
		port_fail(err, errlen, r,
			  r == -E2BIG ? "more than %d prefixes on one side: merge some of them"
				      : "the kernel does not take the prefixes (at most %d a side)",
			  STEER_PREFIXES);
		goto fail;
	}
	r = open_sockets(x, cfg->frames ? cfg->frames : DEFAULT_FRAMES, err, errlen);
	/* Nobody else has the sockets, so the map that was found is ours. */
	if (r >= 0) {
		r = steer_prog_held_init(&x->prog);
		if (r < 0)
			port_fail(err, errlen, r, "the map of held flows cannot be read: %s",
				  strerror(-r));
	}
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
	if (x->prog.link[STEER_LAN] >= 0 && x->prog.link[STEER_WAN] >= 0)
		steer_pins_remove(&x->pins);
	steer_prog_detach(&x->prog);
}

void afxdp_close(struct afxdp *x)
{
	unsigned int i;
	int side;

	if (!x)
		return;
	if (x->prog.skel) {
		steer_prog_heartbeat(&x->prog, 0);
		let_go(x);
	}
	steer_pins_close(&x->pins);
	if (x->umem)
		afxdp_flush(x);
	for (side = 0; side < STEER_SIDES; side++) {
		for (i = 0; i < x->port[side].nq; i++)
			xsk_socket__delete(x->port[side].q[i].xsk);
		netif_close(&x->port[side].nif);
	}
	if (x->umem)
		xsk_umem__delete(x->umem);
	if (x->area)
		munmap(x->area, x->area_len);
	steer_prog_unload(&x->prog);
	for (side = 0; side < STEER_SIDES; side++) {
		free(x->port[side].q);
		free(x->port[side].free);
		free(x->port[side].busy);
	}
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
	int lan = netif_check(&x->port[STEER_LAN].nif), wan = netif_check(&x->port[STEER_WAN].nif);

	return lan == -ENODEV || !wan ? lan : wan;
}

void afxdp_stats(struct afxdp *x, struct afxdp_stats *out)
{
	unsigned int i;
	int side;

	*out = x->stats;
	steer_prog_counters(&x->prog, out->steer);
	for (side = 0; side < STEER_SIDES; side++) {
		for (i = 0; i < x->port[side].nq; i++) {
			struct xdp_statistics k = {0};
			socklen_t len = sizeof(k);

			getsockopt(xsk_socket__fd(x->port[side].q[i].xsk), SOL_XDP, XDP_STATISTICS,
				   &k, &len);
			out->rx_dropped[side] += k.rx_dropped + k.rx_ring_full;
			out->tx_dropped[side] += k.tx_invalid_descs;
		}
	}
}

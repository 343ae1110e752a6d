// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ports through AF_XDP.
 *
 * Theory of operation
 *
 * A side has one port or several. All are received from. By which of several a frame leaves is
 * decided for each frame (afxdp_fdb.c): by that which its destination is behind, and has a carrier.
 *
 * As many threads as there are parts receive and send at the same time. A part has of each port the
 * receive queues whose number it has, modulo the parts, and transmits through the socket of one
 * queue alone, that with its own number: packets of one flow, which one thread sends, must keep
 * their order. Parts share nothing that one of them writes, so there is no lock; what they do share
 * changes only while none of their threads is in a call. Which member a frame leaves by is learned
 * from frames of all of them: ports with several members have one part.
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

static int attach(struct afxdp *x, unsigned int port, const struct afxdp_config *cfg, char *err,
		  size_t errlen)
{
	const struct netif *nif = &x->port[port].nif;
	int r;

	if (x->prog.reused)
		return steer_reuse_attach(&x->prog, port, x->pins.link[port]);
	if (x->pins.link[port] >= 0 && x->prog.held) {
		r = steer_prog_take_over(&x->prog, port, nif, x->pins.link[port]);
		if (r < 0)
			return port_fail(err, errlen, r,
					 "the program on %s cannot be replaced (%s): `rm -r %s` "
					 "gives up the connections that it holds",
					 nif->name, strerror(-r), x->pins.dir);
		return 0;
	}
	if (x->pins.link[port] >= 0) {
		if (steer_prog_adopt(&x->prog, port, nif, cfg->mode, x->pins.link[port]) == 0)
			return 0;
		x->pins.pinned &= ~(1u << port);
	}
	return steer_prog_attach(&x->prog, port, nif, cfg->mode, err, errlen);
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
	for (unsigned int p = 0; p < STEER_PORTS; p++)
		x->prog.config->ifindex[p] = x->port[p].nif.index;
	return load_rules(x, cfg, err, errlen);
}

/* NULL where there is no port; one that was left out has a name and no index. */
static void ports_of(const struct afxdp *x, const struct netif *nif[STEER_PORTS])
{
	for (unsigned int p = 0; p < STEER_PORTS; p++)
		nif[p] = x->port[p].nif.name[0] ? &x->port[p].nif : NULL;
}

/* All but the links: the program, what it is to do, and the sockets. That of a former daemon is
 * told nothing before the sockets are ours, for that daemon may live. */
static int begin(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	const struct netif *nif[STEER_PORTS];
	int r = 0;

	ports_of(x, nif);
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

/* An interface that another port has. */
static bool twice(const struct afxdp *x, unsigned int port)
{
	port_each (x, p)
		if (p != port && x->port[p].nif.index == x->port[port].nif.index)
			return true;
	return false;
}

/* Leaves the port out when its interface is missing or down: 0, and the reason is in @err. */
static int open_port(struct afxdp *x, unsigned int port, const struct afxdp_config *cfg, char *err,
		     size_t errlen)
{
	const char *name = cfg->ifname[port] ? cfg->ifname[port] : "";
	struct port *p = &x->port[port];
	int r;

	p->side = port / STEER_MEMBERS;
	if (port % STEER_MEMBERS && !*name)
		return 0;
	r = netif_open(&p->nif, name, err, errlen);
	if (r == -ENODEV || r == -ENETDOWN) {
		memset(&p->nif, 0, sizeof(p->nif));
		snprintf(p->nif.name, sizeof(p->nif.name), "%s", name);
		x->absent |= 1u << port;
		return 0;
	}
	if (r < 0)
		return r;
	p->nif.vlan_strip |= cfg->vlan_strip[port];
	x->members[p->side]++;
	x->have |= 1u << port;
	if (twice(x, port))
		return port_fail(err, errlen, -EINVAL,
				 "%s is both the LAN and the WAN interface, or named twice: name "
				 "different ones",
				 name);
	return 0;
}

static int open_ports(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen)
{
	char why[STEER_SIDES][256];
	int r = 0;

	for (unsigned int p = 0; p < STEER_PORTS && r >= 0; p++) {
		char *first = why[p / STEER_MEMBERS];
		bool none = !(x->absent >> (p - p % STEER_MEMBERS) & ((1u << STEER_MEMBERS) - 1));

		r = open_port(x, p, cfg, none ? first : err, none ? sizeof(*why) : errlen);
		if (r < 0 && none)
			snprintf(err, errlen, "%s", first);
	}
	for (int side = 0; side < STEER_SIDES && r >= 0; side++)
		if (!x->members[side])
			r = port_fail(err, errlen, -ENODEV, "%s", why[side]);
	for (int side = 0; side < STEER_SIDES && r >= 0; side++) {
		if (x->members[side] < 2)
			continue;
		x->fdb[side] = fdb_open();
		if (!x->fdb[side])
			r = port_fail(err, errlen, -errno, "no list of MAC addresses: %s",
				      strerror(errno));
	}
	x->links = fdb_open();
	if (r >= 0)
		afxdp_carrier(x);
	return r;
}

/* A program in the stack never gets frames that the driver wrote to our memory itself. */
static bool mixed(const struct afxdp *x)
{
	port_each (x, p)
		if (x->port[p].zero_copy && !x->prog.native[p])
			return true;
	return false;
}

struct afxdp *afxdp_open(const struct afxdp_config *cfg, char *err, size_t errlen)
{
	struct afxdp *x = calloc(1, sizeof(*x));
	const struct netif *nif[STEER_PORTS];
	int r;

	if (!x) {
		port_fail(err, errlen, -ENOMEM, "out of memory");
		return NULL;
	}
	steer_pins_init(&x->pins);
	if (!getenv("LONGHAUL_DEBUG")) {
		libbpf_set_print(quiet_bpf);
		libxdp_set_print(quiet_xdp);
	}
	r = open_ports(x, cfg, err, errlen);
	if (r >= 0)
		r = choose_max_frame(x, cfg, err, errlen);
	if (r < 0)
		goto fail;
	ports_of(x, nif);
	r = steer_pins_find(&x->pins, cfg->pins, nif, err, errlen);
	if (r < 0)
		goto fail;
	steer_headers_open(&x->pins, cfg->max_held);
	r = begin(x, cfg, err, errlen);
	/* last, so that no frame is taken which nobody would read */
	port_each (x, p)
		if (r >= 0)
			r = attach(x, p, cfg, err, errlen);
	steer_pins_close(&x->pins);
	if (r >= 0 && x->prog.held) /* an interface may be another one than before */
		r = steer_pins_set(&x->pins, &x->prog, err, errlen);
	if (r >= 0 && !mixed(x))
		return x;
	if (r >= 0) {
		struct afxdp_config copy = *cfg;

		copy.mode = AFXDP_AUTO;
		afxdp_close(x);
		return afxdp_open(&copy, err, errlen);
	}
fail:
	afxdp_close(x);
	return NULL;
}

static bool all_attached(const struct afxdp *x)
{
	port_each (x, p)
		if (x->prog.link[p] < 0)
			return false;
	return true;
}

/* What is held stays held, and what was not taken over yet (an error in between) is not ours. */
static void let_go(struct afxdp *x)
{
	if (x->prog.held) {
		steer_prog_leave(&x->prog);
		return;
	}
	/* A pin that stays is of a link without an interface then: taken away by the next start. */
	if (all_attached(x))
		(void)steer_pins_remove(&x->pins);
	steer_prog_detach(&x->prog);
}

void afxdp_close(struct afxdp *x)
{
	if (!x)
		return;
	/* one that was found and not begun with may be another process's */
	if (x->prog.skel && (!x->prog.reused || all_attached(x))) {
		steer_prog_heartbeat(&x->prog, 0);
		let_go(x);
	}
	steer_pins_close(&x->pins);
	steer_headers_close(&x->pins);
	for (unsigned int k = 0; k < x->parts; k++)
		afxdp_flush(x, k);
	sockets_close(x);
	port_each (x, p)
		netif_close(&x->port[p].nif);
	for (int side = 0; side < STEER_SIDES; side++)
		fdb_close(x->fdb[side]);
	fdb_close(x->links);
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
	int n = 0;

	port_each (x, p)
		for (unsigned int i = 0; i < x->port[p].nq && n < max; i++)
			fds[n++] = xsk_socket__fd(x->port[p].q[i].xsk);
	return n;
}

void afxdp_heartbeat(struct afxdp *x, uint64_t now_ns)
{
	steer_prog_heartbeat(&x->prog, now_ns);
}

bool afxdp_has(const struct afxdp *x, unsigned int port)
{
	return port < STEER_PORTS && x->have >> port & 1;
}

bool afxdp_absent(const struct afxdp *x, unsigned int port)
{
	return x->absent >> port & 1;
}

bool afxdp_native(const struct afxdp *x, unsigned int port)
{
	return x->prog.native[port];
}

const char *afxdp_name(const struct afxdp *x, unsigned int port)
{
	return x->port[port].nif.name;
}

const char *afxdp_driver(const struct afxdp *x, unsigned int port)
{
	return x->port[port].nif.driver;
}

bool afxdp_zero_copy(const struct afxdp *x, unsigned int port)
{
	return x->port[port].zero_copy;
}

int afxdp_refused(const struct afxdp *x, unsigned int port)
{
	return x->port[port].refused;
}

int afxdp_native_error(const struct afxdp *x, unsigned int port)
{
	return x->prog.native_error[port];
}

unsigned int afxdp_parts(const struct afxdp *x)
{
	return x->parts;
}

uint32_t afxdp_max_frame(const struct afxdp *x)
{
	return x->max_frame;
}

unsigned int afxdp_queues(const struct afxdp *x, unsigned int port)
{
	return x->port[port].nq;
}

int afxdp_check(const struct afxdp *x, unsigned int *port)
{
	static const int worst_first[] = {-ENODEV, -ESTALE, -ENETDOWN, 0};
	size_t worst = sizeof(worst_first) / sizeof(worst_first[0]) - 1;

	for (unsigned int p = 0; p < STEER_PORTS; p++) {
		int r = afxdp_has(x, p) ? netif_check(&x->port[p].nif)
			: afxdp_absent(x, p) && netif_is_up(x->port[p].nif.name) ? -ESTALE
										 : 0;

		for (size_t i = 0; i < worst; i++) {
			if (r != worst_first[i])
				continue;
			worst = i;
			*port = p;
		}
	}
	return worst_first[worst];
}

bool afxdp_gone(const struct afxdp *x, enum steer_side side)
{
	port_each (x, p)
		if (x->port[p].side == side && netif_check(&x->port[p].nif) != -ENODEV)
			return false;
	return true;
}

bool afxdp_down(const struct afxdp *x, unsigned int port)
{
	return netif_check(&x->port[port].nif) == -ENETDOWN;
}

bool afxdp_backup(const struct afxdp *x, unsigned int port)
{
	return x->port[port].carrier == CARRIER_BACKUP;
}

bool afxdp_alone(const struct afxdp *x, unsigned int port)
{
	return x->links && fdb_alone(x->links, x->port[port].nif.index);
}

uint32_t afxdp_mtu(const struct afxdp *x, unsigned int port)
{
	return netif_mtu(&x->port[port].nif);
}

void afxdp_carrier(struct afxdp *x)
{
	enum port_carrier best[STEER_SIDES] = {0};

	port_each (x, p) {
		struct port *port = &x->port[p];

		port->carrier = CARRIER_SERVES;
		if (x->fdb[port->side])
			port->carrier = fdb_look(x->fdb[port->side], port);
		if (port->carrier > best[port->side])
			best[port->side] = port->carrier;
	}
	port_each (x, p) {
		struct port *port = &x->port[p];
		bool avoid = port->carrier < best[port->side];

		for (unsigned int k = 0; port->umem && k < port->ntx; k++) {
			struct txq *t = &port->tx[k];

			if (avoid && !port->avoid)
				tx_drop(t, port->zero_copy);
			t->waiting |= port->avoid && !avoid; /* for what was dropped */
		}
		port->avoid = avoid;
	}
}

bool afxdp_members(const struct afxdp *x)
{
	return x->members[STEER_LAN] > 1 || x->members[STEER_WAN] > 1;
}

uint32_t afxdp_longest(struct afxdp *x, enum steer_side side)
{
	uint32_t longest = 0;

	for (unsigned int k = 0; k < x->parts; k++) {
		uint32_t *l = &x->part[k].longest[side];

		longest = *l > longest ? *l : longest;
		*l = 0;
	}
	return longest;
}

bool afxdp_strips(const struct afxdp *x, unsigned int port)
{
	return x->port[port].nif.vlan_strip;
}

bool afxdp_restores(const struct afxdp *x)
{
	port_each (x, p)
		if (afxdp_strips(x, p))
			return true;
	return false;
}

/* Sum over the port's sockets; @out is added to. */
static void kernel_counts(const struct port *p, struct afxdp_counts *out)
{
	for (unsigned int i = 0; i < p->nq; i++) {
		struct xdp_statistics k = {0};
		socklen_t len = sizeof(k);

		if (getsockopt(xsk_socket__fd(p->q[i].xsk), SOL_XDP, XDP_STATISTICS, &k, &len))
			continue;
		out->rx_dropped += k.rx_dropped + k.rx_ring_full;
		out->rx_bad_chunk += k.rx_invalid_descs;
		out->tx_dropped += k.tx_invalid_descs;
	}
}

uint64_t afxdp_overrun(const struct afxdp *x, enum steer_side side)
{
	struct afxdp_counts n = {0};

	port_each (x, p)
		if (x->port[p].side == side)
			kernel_counts(&x->port[p], &n);
	return n.rx_dropped;
}

static void add(struct afxdp_counts *out, const struct afxdp_counts *n)
{
	const uint64_t *from = (const uint64_t *)n;
	uint64_t *to = (uint64_t *)out;

	for (size_t i = 0; i < sizeof(*n) / sizeof(*to); i++)
		to[i] += from[i];
}

/* Frames missed since the start. A driver may reset its counter. */
static uint64_t missed(const struct netif *nif)
{
	uint64_t n = nif->index ? netif_missed(nif) : 0;

	return n < nif->missed ? n : n - nif->missed;
}

void afxdp_port_counts(const struct afxdp *x, unsigned int port, struct afxdp_counts *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int k = 0; k < x->port[port].ntx; k++)
		add(out, &x->port[port].tx[k].n);
	steer_prog_counters(&x->prog, port, out->steer);
	kernel_counts(&x->port[port], out);
	out->rx_missed = missed(&x->port[port].nif);
}

void afxdp_side_counts(const struct afxdp *x, enum steer_side side, struct afxdp_counts *out)
{
	struct afxdp_counts n;

	memset(out, 0, sizeof(*out));
	port_each (x, p) {
		if (x->port[p].side != side)
			continue;
		afxdp_port_counts(x, p, &n);
		add(out, &n);
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

	port_each (x, p)
		for (unsigned int k = 0; k < x->port[p].ntx; k++)
			n += x->port[p].tx[k].n.rx_bad_chunk + x->port[p].tx[k].n.tx_bad_chunk;
	return n;
}

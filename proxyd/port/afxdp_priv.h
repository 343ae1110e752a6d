/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the AF_XDP port share among themselves: the interface, the XDP program.
 */
#ifndef LONGHAUL_PORT_AFXDP_PRIV_H
#define LONGHAUL_PORT_AFXDP_PRIV_H

#include <net/if.h>
#include <xdp/xsk.h>

#include "port/afxdp.h"
#include "wire/frame.h"

/* From newer kernels' headers than Debian 12 has. */
#ifndef XDP_USE_SG
#define XDP_USE_SG    (1 << 4)
#define XDP_PKT_CONTD (1 << 0)
#endif

#define AFXDP_NEED_CAPS "run as root or with CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON"

/* afxdp_if.c: questions to an interface */

/**
 * struct netif
 * @driver:    its name, "" when it does not tell
 * @queues:    receive queues in use, @tx_queues: transmit queues
 * @index:     0: there is no such port
 * @missed:    netif_missed() at the start
 * @vlan_strip: the NIC stripped VLAN tags, and we, or a port before this one, turned that off
 */
struct netif {
	char name[IF_NAMESIZE], driver[32];
	unsigned int index;
	unsigned int mtu;
	unsigned int queues;
	unsigned int tx_queues;
	uint64_t missed;
	bool vlan_strip;
};

/** netif_open - fill @nif, keep VLAN tags in frames. 0, or negative errno and a line in @err. */
int netif_open(struct netif *nif, const char *name, char *err, size_t errlen);

/** netif_close - undo what netif_open() changed. */
void netif_close(struct netif *nif);

/** netif_missed - frames that the NIC had no room for, since it counts; 0 if it does not tell. */
uint64_t netif_missed(const struct netif *nif);

/** netif_mtu - as it is now, 0: not known. */
unsigned int netif_mtu(const struct netif *nif);

/** netif_is_up - whether there is an interface @name, and it is up. */
bool netif_is_up(const char *name);

/** netif_check - 0, -ENETDOWN when it is down or has no carrier, -ENODEV when the name means
 *  nothing or another interface now, -ESTALE when it has another number of receive queues. */
int netif_check(const struct netif *nif);

/* afxdp_prog.c: the XDP program */

struct steer_bpf;
struct bpf_program;

/* The prefixes of one set as they stand in the tries: to delete before the set is used again. */
struct steer_set {
	struct afxdp_prefix *near, *far;
	size_t nnear, nfar;
};

/**
 * struct steer_prog - the loaded program with its maps.
 * @config, @vlan: the maps' memory, shared with the kernel
 * @link:          one per attached port, else -1
 * @native_error:  errno of a failed attempt to attach in the driver
 * @held:          entries in the map of held flows
 * @reused:        it is that of a former daemon, on all interfaces already
 */
struct steer_prog {
	struct steer_bpf *skel;
	struct steer_config *config;
	uint64_t *vlan;
	struct steer_set set[STEER_SETS];
	int link[STEER_PORTS];
	bool native[STEER_PORTS];
	int native_error[STEER_PORTS];
	uint32_t held;
	bool reused;
};

/**
 * steer_prog_load - load into the kernel; nothing attached, no rules, heartbeat "never".
 * @held:     map of held flows to go on with (steer_pins_find()), -1: a new one
 * @held_max: entries of a new one, 0: STEER_HELD_MAX
 */
int steer_prog_load(struct steer_prog *p, int held, uint32_t held_max, char *err, size_t errlen);

/** steer_prog_map - make its configuration accessible. 0 or negative errno. */
int steer_prog_map(struct steer_prog *p);

/** steer_prog_unload - detach, free. Safe on a zeroed struct and twice. */
void steer_prog_unload(struct steer_prog *p);

/** steer_prog_attach - attach to the interface of @port. The link dies with its last descriptor. */
int steer_prog_attach(struct steer_prog *p, unsigned int port, const struct netif *nif,
		      enum afxdp_mode mode, char *err, size_t errlen);

/**
 * steer_prog_adopt - put our program in the place of that on an existing link.
 * 0, or negative errno when @link is no XDP link on @nif or not in the mode that is wanted;
 * detached then.
 */
int steer_prog_adopt(struct steer_prog *p, unsigned int port, const struct netif *nif,
		     enum afxdp_mode mode, int link);

/**
 * steer_prog_take_over - likewise, in whatever mode the link is; an error leaves the link as it
 * was.
 * @link: known to be on @nif
 */
int steer_prog_take_over(struct steer_prog *p, unsigned int port, const struct netif *nif,
			 int link);

/**
 * steer_prog_detach - detach the program from all ports, also where another process holds the
 * link.
 */
void steer_prog_detach(struct steer_prog *p);

/**
 * steer_prog_leave - close the links; the program stays where a pin or another process holds
 * one.
 */
void steer_prog_leave(struct steer_prog *p);

/** steer_prog_rules - as afxdp_rules(). */
int steer_prog_rules(struct steer_prog *p, const struct afxdp_prefix *near, size_t nnear,
		     const struct afxdp_prefix *far, size_t nfar, const uint64_t *vlan_rules);

/** steer_prog_socket - frames of @queue of @port go to socket @fd. 0 or negative errno. */
int steer_prog_socket(struct steer_prog *p, unsigned int port, uint32_t queue, int fd);

/** steer_prog_heartbeat - set the time of the latest sign of life, CLOCK_MONOTONIC, 0: never. */
void steer_prog_heartbeat(struct steer_prog *p, uint64_t now_ns);

/** steer_prog_counters - the program's counters of @port, summed over CPUs. */
void steer_prog_counters(const struct steer_prog *p, unsigned int port,
			 uint64_t out[STEER_COUNTERS]);

/** steer_prog_unwanted - the latest of the packets that the program kept of that side; false when
 * it kept none. */
bool steer_prog_unwanted(const struct steer_prog *p, enum steer_side side,
			 struct steer_unwanted *out);

/**
 * steer_expand - prefixes as the tries need them: host bits cleared, duplicates merged, each with
 * the rules of all prefixes that cover it, or with none if it has none itself.
 * @out: room for @n. Returns how many, or -EINVAL for a prefix length above 128.
 */
long steer_expand(const struct afxdp_prefix *in, size_t n, struct afxdp_prefix *out);

/* afxdp_fence.c: flows that must not go by; afxdp_pins.c: what keeps the program without us */

#define PIN_PATH   320
#define PINNED_MAP (1u << STEER_PORTS) /* 1u << port: that port's link */

/**
 * struct steer_pins
 * @root:   directory for the pins of this host, @dir: of these interfaces; empty: never pinned
 * @map, @link: found at the start, to be taken over; -1
 * @all:    bits of all that is to be pinned; @pinned: what is pinned in @dir and ours; @there:
 *          there is something in @dir
 * @wanted: also while nothing is held
 */
struct steer_pins {
	char root[PIN_PATH - 192], dir[PIN_PATH - 16];
	int map, link[STEER_PORTS], headers;
	unsigned int all, pinned;
	bool there, wanted, headers_pinned;
};

void steer_pins_init(struct steer_pins *pins);

/**
 * steer_pins_find - open what is pinned under @root (NULL: nowhere) for the interfaces @nif, by
 * port; NULL: no port, index 0: one that was left out.
 * 0, also when there is nothing; or negative errno and a line in @err when it is of no use to us.
 */
int steer_pins_find(struct steer_pins *pins, const char *root,
		    const struct netif *const nif[STEER_PORTS], char *err, size_t errlen);

/** steer_pins_map - the map of held flows that is pinned under @root for the interfaces @ifname, to
 * be closed by the caller; or a negative errno. */
int steer_pins_map(const char *root, const char (*ifname)[IF_NAMESIZE]);

/** steer_pins_close - what find opened; the pins stay. */
void steer_pins_close(struct steer_pins *pins);

/** steer_pins_set - pin all that is not pinned. 0 or negative errno and a line in @err. */
int steer_pins_set(struct steer_pins *pins, const struct steer_prog *p, char *err, size_t errlen);

/** steer_pins_remove - unpin. Nothing may be held. 0 or negative errno: something stays pinned. */
int steer_pins_remove(struct steer_pins *pins);

/* afxdp_reuse.c: the program of a former daemon */

/** steer_text - digest of the program. */
uint64_t steer_text(void);

/** steer_reuse - instead of steer_prog_load(): go on with the program that @pins have. False: there
 * is none that could be. Nothing is changed in it before steer_reuse_begin(). */
bool steer_reuse(struct steer_prog *p, const struct steer_pins *pins,
		 const struct netif *const nif[STEER_PORTS], enum afxdp_mode mode);

/** steer_reuse_begin - its sockets are ours: begin with it as with a new one. */
int steer_reuse_begin(struct steer_prog *p);

/** steer_reuse_attach - instead of steer_prog_attach(): it is there. */
int steer_reuse_attach(struct steer_prog *p, unsigned int port, int link);

/** steer_reuse_pin - pin what the next daemon needs for it, as far as that is possible. */
void steer_reuse_pin(const struct steer_pins *pins, const struct steer_prog *p);
int steer_reuse_unpin(const struct steer_pins *pins);

/* afxdp_headers.c */

/** steer_headers_open - the map that is pinned, or a new one for @max connections (0: as many as
 * can be held). After steer_pins_find(). Without one nothing is kept. */
void steer_headers_open(struct steer_pins *pins, uint32_t max);
void steer_headers_pin(struct steer_pins *pins);
int steer_headers_unpin(struct steer_pins *pins);
void steer_headers_close(struct steer_pins *pins);

/** steer_requests_key - the entry of its requests. */
struct steer_held steer_requests_key(const struct flow_key *requests);

/** steer_prog_hold, steer_prog_release - both directions of a connection, see afxdp_fence(). 0 or
 * negative errno. */
int steer_prog_hold(struct steer_prog *p, const struct flow_key *requests, uint32_t lqpn);
int steer_prog_release(struct steer_prog *p, const struct flow_key *requests, uint32_t lqpn);

/** steer_prog_held - as afxdp_fenced(). */
int steer_prog_held(const struct steer_prog *p, afxdp_held_fn fn, void *ctx);

/** steer_prog_held_init - count what is in a map that was found, drop half connections. Before the
 * program is attached. */
int steer_prog_held_init(struct steer_prog *p);

/* afxdp.c opens and closes, afxdp_sock.c the sockets; afxdp_rx.c, afxdp_tx.c move frames */

/* Who has a receive chunk. */
enum chunk_owner {
	CHUNK_OURS,   /* being read, or in rxq.back */
	CHUNK_KERNEL, /* from the fill ring on until we see it in the receive ring */
};

/* What two threads write often is never in one line of the cache. */
#define PORT_LINE 64u

/**
 * struct part - what a part has besides its share of each port. Written by its thread alone.
 * @longest: [side] -> see afxdp_longest()
 */
struct part {
	_Alignas(PORT_LINE) uint32_t longest[STEER_SIDES];
	port_soon_fn soon;
	void *soon_ctx;
};

/**
 * struct rxq - one socket.
 * @part:    whose it is; @n: that part's counters of the port
 * @first:   number of its first receive chunk in the port's UMEM; @nchunks: how many it owns
 * @owner:   [chunk] -> enum chunk_owner, counted from @first, as in @back
 * @back:    chunks of ours to be given to the kernel, all that are CHUNK_OURS once a batch is read
 * @at:      where a frame of several descriptors begins: in its first chunk, or in @join
 * @joined:  bytes of it so far
 * @skip:    the unfinished frame is not to be handed over
 */
struct rxq {
	_Alignas(PORT_LINE) struct xsk_socket *xsk;
	struct part *part;
	struct afxdp_counts *n;
	struct xsk_ring_cons rx, comp;
	struct xsk_ring_prod fill;
	uint8_t *owner;
	uint32_t *back;
	uint32_t first, nchunks, nback;
	uint8_t *at;
	uint32_t joined;
	bool joining, skip;
	uint8_t join[FRAME_MAX];
};

/**
 * struct txq - what a part has of a port besides receive queues: its share to transmit by, and its
 * counters of the port, those of received frames among them.
 * @ring:    transmit ring, of the socket @q of the queue with the part's number, whose completion
 *           ring belongs to it
 * @base:    UMEM address of the first transmit chunk
 * @free:    stack of transmit chunks at hand, as indices from @base
 * @busy:    [chunk] -> the kernel has it
 * @queued:  descriptors written and not shown to the kernel yet
 * @waiting: the kernel may not have sent all that it was shown
 */
struct txq {
	_Alignas(PORT_LINE) struct xsk_ring_prod ring;
	struct rxq *q;
	uint64_t base;
	uint32_t *free;
	uint8_t *busy;
	uint32_t nfree, nchunks;
	uint32_t queued;
	bool waiting;
	struct afxdp_counts n;
};

/* The better ones last. */
enum port_carrier {
	CARRIER_NONE,
	CARRIER_BACKUP, /* the bond that it belongs to does not use it: nothing comes in by it */
	CARRIER_SERVES,
};

/**
 * struct port - one interface. Nothing of it changes while the threads of parts are in calls.
 * @carrier: see there; @avoid: another port of its side has a better one (afxdp_carrier())
 * @bridge:  interface index of the kernel's bridge above it, 0: none; @bridge_port: of what that
 *           bridge has as its port: the interface itself, or the bond that it belongs to
 * @area:    its piece of the packet memory, @area_len bytes, and @umem, what the kernel made of it
 * @zero_copy: the driver reads and writes @area itself; @refused: errno of such an attempt, else 0
 * @max_tx:  longest frame that its sockets take
 * @q:       [queue], @nq of them; @tx: [part], @ntx of them
 */
struct port {
	struct netif nif;
	enum steer_side side;
	enum port_carrier carrier;
	bool avoid;
	unsigned int bridge, bridge_port;
	struct rxq *q;
	unsigned int nq;
	uint8_t *area;
	size_t area_len;
	struct xsk_umem *umem;
	bool zero_copy;
	int refused;
	uint32_t max_tx;
	struct txq *tx;
	unsigned int ntx;
};

struct fdb;

/**
 * struct afxdp
 * @have:    ports that there are, as bits; @absent: left out
 * @members: [side] -> how many ports it has
 * @part:    [@parts]
 * @fdb:     [side] -> which member a MAC address is behind, NULL where there is one member only.
 *           Frames received and sent change it: where there is one, there is one part
 * @links:   to ask the kernel what the ports belong to, NULL: not asked
 */
struct afxdp {
	uint8_t *area;
	size_t area_len;
	struct port port[STEER_PORTS];
	unsigned int have, absent;
	unsigned int members[STEER_SIDES];
	struct part *part;
	unsigned int parts;
	struct fdb *fdb[STEER_SIDES];
	struct fdb *links;
	struct steer_prog prog;
	struct steer_pins pins;
	uint32_t max_frame, busy_poll_us;
	bool multibuffer;
};

/** next_port - the first port of @x from number @p on, STEER_PORTS: there is none. */
static inline unsigned int next_port(const struct afxdp *x, unsigned int p)
{
	unsigned int left = x->have >> p << p;

	return left ? (unsigned int)__builtin_ctz(left) : STEER_PORTS;
}

#define port_each(x, p)                                                                            \
	for (unsigned int p = next_port(x, 0); p < STEER_PORTS; p = next_port(x, p + 1))

/* afxdp_fdb.c: by which member a frame leaves */

/** fdb_open - for one side. NULL: no memory, or no netlink socket (errno). */
struct fdb *fdb_open(void);
void fdb_close(struct fdb *f);

/** fdb_clock - read the clock: before a batch of frames. */
void fdb_clock(struct fdb *f);

/** fdb_learn - the frame @data of @len bytes came in by @member. */
void fdb_learn(struct fdb *f, unsigned int member, const uint8_t *data, uint32_t len);

/** fdb_member - by which of the @ports of one side, STEER_MEMBERS of them, the frame @data of @len
 * bytes is to leave. At least one is to be used. */
unsigned int fdb_member(struct fdb *f, const struct port *ports, const uint8_t *data, uint32_t len);

/** fdb_look - whether port @p has a carrier; and note what is above it. */
enum port_carrier fdb_look(struct fdb *f, struct port *p);

/** fdb_alone - whether interface @index is there, and neither it nor its bond is in a bridge, of
 * the kernel or of Open vSwitch. */
bool fdb_alone(struct fdb *f, unsigned int index);

/* afxdp_tx.c */

/** tx_drop - drop what the kernel has not begun to send. @zero_copy: of its port */
void tx_drop(struct txq *t, bool zero_copy);

/** sockets_open - cut up the UMEM, open the sockets of all queues, point the program at them. */
int sockets_open(struct afxdp *x, const struct afxdp_config *cfg, char *err, size_t errlen);

/**
 * area_map - @len bytes for the UMEMs, in the file @fd if that is not 0 and holds them; see
 * afxdp_area.c
 * @make:   whether a new area may be made in the file
 * @layout: number of the way in which it is cut
 * NULL: no memory
 */
uint8_t *area_map(int fd, bool make, size_t len, uint32_t layout);

/**
 * rxq_give_back - give the kernel what is in @q->back, as far as the fill ring has room. Returns
 * how many of the chunks stay there.
 */
uint32_t rxq_give_back(struct rxq *q);

/** sockets_close - also after a sockets_open() that failed half-way. */
void sockets_close(struct afxdp *x);

/** port_fail - write a line into @err, return @code. */
int port_fail(char *err, size_t errlen, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif

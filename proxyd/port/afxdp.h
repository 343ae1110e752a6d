/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Ethernet ports of the appliance through AF_XDP: the XDP program and a UMEM on each, one
 * socket a port and queue. Frames longer than one chunk arrive and leave in several descriptors
 * (multi-buffer) and are joined here.
 *
 * A side, LAN or WAN, has one port or several (members): those of one bond, or to two switches or
 * routers. Ports are numbered as in steer.h (STEER_PORT()). Frames are received from all of them;
 * by which one a frame leaves is decided here (afxdp_fdb.c).
 *
 * Several threads can use it at the same time, without locks, each a part of it (afxdp_parts()).
 * The thread of a part may call these for its part while others do so for theirs: afxdp_rx(),
 * afxdp_tx(), afxdp_flush(), afxdp_tx_drop(), afxdp_room(), afxdp_waits(), afxdp_soon(). Any one
 * thread may call afxdp_heartbeat() meanwhile, and what tells what afxdp_open() chose, from
 * afxdp_has() to afxdp_native_error() below; and, one at a time, afxdp_fence() and
 * afxdp_headers_keep(). All else needs that no other thread is in a call.
 */
#ifndef LONGHAUL_PORT_AFXDP_H
#define LONGHAUL_PORT_AFXDP_H

#include <net/if.h>
#include <stddef.h>

#include "port/port.h"
#include "store/flow_table.h"
#include "wire/build.h"

/* Where pins go unless the caller names another place (afxdp_config.pins). */
#define AFXDP_PINS "/sys/fs/bpf/longhaul"

enum afxdp_mode {
	AFXDP_AUTO,	 /* native, else generic */
	AFXDP_NATIVE,	 /* in the driver */
	AFXDP_GENERIC,	 /* in the stack, any driver */
	AFXDP_ZERO_COPY, /* as AFXDP_AUTO, and drivers that can write to our memory do so */
};

/* The UMEMs have so many chunks where nothing else is said, of so many bytes. */
#define AFXDP_FRAMES 16384u
#define AFXDP_CHUNK  4096u

/**
 * struct afxdp_prefix - one prefix that rules want.
 * @addr: v4-mapped for IPv4; @plen: 0 .. 128 (IPv4 prefix length + 96)
 * @rules: bit i set when rule i has this prefix; 0: no rule has what it covers (@plen 128)
 */
struct afxdp_prefix {
	uint8_t addr[16];
	uint8_t plen;
	uint64_t rules;
};

/**
 * struct afxdp_config
 * @ifname:    [port] -> its interface, NULL or "": no such port. Of several on one side those that
 *             are missing or down are left out (afxdp_absent()), but not all
 * @max_frame: longest frame to take, bytes; above AFXDP_ONE_BUFFER needs multi-buffer; 0: as long
 *             as possible, at most FRAME_MAX
 * @single_buffer: do without multi-buffer even where the kernel has it
 * @near, @far: prefixes on the LAN side and beyond the WAN; copied
 * @vlan_rules: [vlan id] -> rules that take this VLAN, [STEER_UNTAGGED] for untagged frames; 4096
 *             words. Priority-tagged frames count as untagged.
 * @frames:    chunks of 4 KiB in all UMEMs (AFXDP_FRAMES when 0)
 * @file:      descriptor of a file in memory that the UMEMs are to be in, so that the next process
 *             need not wait for other pages, 0: none. Nobody else may use it at the same time
 * @file_new:  it may be made anew where it is of no use as it is, which takes up to a second
 * @stale_ns:  heartbeat older than this: everything passes to the kernel (default 500 ms when 0)
 * @pins:      directory, in a BPF file system, for what afxdp_pin() pins; what a former port pinned
 *             there is taken over. NULL: neither
 * @max_held:  connections that can be held at once (AFXDP_FRAMES when 0)
 * @vlan_strip: a former port turned VLAN stripping off there, and did not come to restore it
 * @busy_poll_us: the driver is polled for frames by afxdp_rx() when there are none, 0: it is not
 * @parts:     how many threads are to use the port at the same time, 0: one; see afxdp_parts()
 *
 * A packet is taken when one rule has its near prefix, its far prefix and its VLAN. ::/0 covers
 * IPv4 as well.
 */
struct afxdp_config {
	const char *ifname[STEER_PORTS];
	enum afxdp_mode mode;
	uint32_t max_frame;
	bool single_buffer;
	const struct afxdp_prefix *near, *far;
	size_t nnear, nfar;
	const uint64_t *vlan_rules;
	uint32_t frames;
	int file;
	bool file_new;
	uint64_t stale_ns;
	const char *pins;
	uint32_t max_held;
	bool vlan_strip[STEER_PORTS];
	unsigned int parts;
	uint32_t busy_poll_us;
};

/* Longest frame that one receive chunk holds: 4 KiB less the headroom that the kernel keeps. */
#define AFXDP_ONE_BUFFER 3840u

struct afxdp;

/** struct afxdp_counts - of one port, or of all ports of one side; @steer: by the XDP program. */
struct afxdp_counts {
	uint64_t rx, tx, rx_bytes, tx_bytes;
	uint64_t tx_full;     /* frames refused because no room was left */
	uint64_t tx_too_long; /* frames longer than the kernel takes, refused */
	uint64_t tx_dropped;  /* taken, then refused by the device or the kernel */
	uint64_t tx_errors;   /* calls to send refused as a whole, nothing lost */
	uint64_t rx_too_long; /* frames of more chunks than FRAME_MAX needs */
	uint64_t rx_dropped;  /* by the kernel: no chunk, ring full */
	uint64_t rx_missed;   /* by the network card: its ring full */
	/* Batches cut short because the fill ring had no room to give the chunks back. */
	uint64_t rx_fill_full;
	/* Receive chunks of which the kernel and we have different opinions, which must not happen:
	 * frames in chunks that it did not have, dropped; addresses that it refused. */
	uint64_t rx_bad_chunk;
	/* Transmit chunks that the kernel gave back and did not have: not believed. */
	uint64_t tx_bad_chunk;
	uint64_t steer[STEER_COUNTERS];
};

/**
 * afxdp_multibuffer - whether this kernel hands frames over in several descriptors. Tried, not
 * guessed from a version number.
 */
bool afxdp_multibuffer(void);

/**
 * afxdp_open - attach the program and bind the sockets.
 * Nothing is taken from the kernel before the first afxdp_heartbeat(). VLAN stripping in the NIC is
 * turned off while the port is open (XDP would not see the tags), and restored by afxdp_close().
 * libbpf and libxdp are kept silent unless LONGHAUL_DEBUG is set in the environment. On failure
 * returns NULL and a one-line cause with its mend in @err (@errlen bytes).
 */
struct afxdp *afxdp_open(const struct afxdp_config *cfg, char *err, size_t errlen);

/**
 * afxdp_close - send what is queued as far as the kernel takes it, detach and free. From then on
 * the kernel bridges everything. Frames received and not yet read are lost. A process that dies is
 * closed likewise. But what is held (afxdp_fence()) stays held, and the program in place.
 */
void afxdp_close(struct afxdp *x);

/**
 * afxdp_rules - replace prefixes and VLANs of a running port (config reload), all at once: no
 * packet meets half of the old and half of the new. 0, or negative errno with the old rules still
 * in force.
 */
int afxdp_rules(struct afxdp *x, const struct afxdp_prefix *near, size_t nnear,
		const struct afxdp_prefix *far, size_t nfar, const uint64_t *vlan_rules);

/** afxdp_fds - file descriptors to poll for reading; returns how many (at most @max). */
int afxdp_fds(const struct afxdp *x, int *fds, int max);

/**
 * afxdp_parts - how many parts there are, numbered from 0 on: the least of what was asked for, and
 * of the receive and of the transmit queues of each port; one where a side has several members. A
 * part has of each port the receive queues whose number it has, modulo the number of parts, and a
 * transmit share by the queue with its own number.
 */
unsigned int afxdp_parts(const struct afxdp *x);

/** afxdp_most_parts - how many parts the queues of interface @ifname allow. */
unsigned int afxdp_most_parts(const char *ifname);

/** afxdp_soon - whom to tell of frames of a part before they come. */
void afxdp_soon(struct afxdp *x, unsigned int part, port_soon_fn fn, void *ctx);

/** afxdp_rx - hand over up to @budget frames per socket of the part; returns how many. Never
 * blocks. */
unsigned int afxdp_rx(struct afxdp *x, unsigned int part, unsigned int budget, port_rx_fn fn,
		      void *ctx);

/** afxdp_waits - descriptors that wait in the part's receive rings of that side; a frame has one or
 * more. */
uint32_t afxdp_waits(const struct afxdp *x, unsigned int part, enum steer_side side);

/** afxdp_unread - bytes of the frames that wait in the receive rings of that side, of all parts. */
uint64_t afxdp_unread(const struct afxdp *x, enum steer_side side);

/** afxdp_wan_read - bytes that afxdp_rx() has handed over of the WAN side, so far. */
uint64_t afxdp_wan_read(const struct afxdp *x);

/** afxdp_overrun - frames that the kernel has dropped because the receive rings of that side were
 *  full, so far. Makes system calls. */
uint64_t afxdp_overrun(const struct afxdp *x, enum steer_side side);

/**
 * afxdp_tx - queue one frame (copied), its last four bytes XORed with those of @seal, the least
 * significant first. 0; -EAGAIN when there is no room: try after afxdp_flush();
 * -EMSGSIZE, -EINVAL when it can never be sent (longer than the kernel takes, shorter than its
 * header).
 */
int afxdp_tx(struct afxdp *x, unsigned int part, enum steer_side side, const uint8_t *data,
	     uint32_t len, uint32_t seal);

/**
 * afxdp_room - how many frames of up to 4 KiB afxdp_tx() has room for now; longer ones count twice.
 * Only afxdp_flush() makes more.
 */
uint32_t afxdp_room(struct afxdp *x, unsigned int part, enum steer_side side);

/**
 * afxdp_flush - kick the kernel for what the part has queued, reap completions. Call once per
 * batch. Returns true while frames of it wait in a ring for the kernel (call again soon; while an
 * interface is down they stay).
 */
bool afxdp_flush(struct afxdp *x, unsigned int part);

/** afxdp_tx_drop - drop what the part has queued and the kernel has not begun to send. Not in
 * zero-copy mode: there the driver sends on its own. */
void afxdp_tx_drop(struct afxdp *x, unsigned int part);

/** afxdp_heartbeat - tell the program that the daemon is alive at CLOCK_MONOTONIC @now_ns. */
void afxdp_heartbeat(struct afxdp *x, uint64_t now_ns);

/** afxdp_has - whether there is a port @port. The functions below need that. afxdp_absent - whether
 * it was left out, as its interface was missing or down; its name is known. */
bool afxdp_has(const struct afxdp *x, unsigned int port);
bool afxdp_absent(const struct afxdp *x, unsigned int port);

/** afxdp_native, afxdp_max_frame, afxdp_queues - what was chosen: the mode, the longest frame,
 * sockets. */
bool afxdp_native(const struct afxdp *x, unsigned int port);
uint32_t afxdp_max_frame(const struct afxdp *x);
unsigned int afxdp_queues(const struct afxdp *x, unsigned int port);

/** afxdp_name, afxdp_driver - of the interface; the driver "" when it is not known.
 * afxdp_zero_copy - whether its driver reads and writes our memory itself. afxdp_refused - the
 * errno of an attempt at that, 0: there was none. */
const char *afxdp_name(const struct afxdp *x, unsigned int port);
const char *afxdp_driver(const struct afxdp *x, unsigned int port);
bool afxdp_zero_copy(const struct afxdp *x, unsigned int port);
int afxdp_refused(const struct afxdp *x, unsigned int port);

/** afxdp_native_error - why AFXDP_AUTO fell back to generic: the errno of the native attempt, else
 * 0. */
int afxdp_native_error(const struct afxdp *x, unsigned int port);

/**
 * afxdp_pin - make sure that the XDP program and what it holds outlive this process, or (@wanted
 * false) that they need not once nothing is held. Makes directories and, where it can, mounts the
 * BPF file system: call it before privileges are dropped. 0, or negative errno and a line in @err.
 */
int afxdp_pin(struct afxdp *x, bool wanted, char *err, size_t errlen);

/**
 * afxdp_fence - from now on, and whatever becomes of this process, no packet of this connection
 * goes by: not while there is no daemon, not when no rule wants it. @on false: as any other
 * connection again. Needs afxdp_pin().
 * @requests: key of its requests; @lqpn: the requester's QPN, to let go also none (above 24 bits)
 * 0, or negative errno: it is not held; or, with @on false, it still is.
 */
int afxdp_fence(struct afxdp *x, const struct flow_key *requests, uint32_t lqpn, bool on);

/** afxdp_fenced - call @fn, when not NULL, for each connection that is held; those of a former port
 * are, too. How many there are, or negative errno. @fn may let go of them. */
typedef void (*afxdp_held_fn)(void *ctx, const struct flow_key *requests, uint32_t lqpn);
int afxdp_fenced(const struct afxdp *x, afxdp_held_fn fn, void *ctx);

/** afxdp_left - the same before the port with the interfaces @ifname is opened, and perhaps halves
 * of connections. 0 or negative errno. */
int afxdp_left(const char *pins, const char (*ifname)[IF_NAMESIZE], afxdp_held_fn fn, void *ctx);

/** afxdp_headers_keep - @t are the headers of packets to the requester of a held connection; NULL:
 * forget them. afxdp_headers - those that are known, perhaps from a former port. */
void afxdp_headers_keep(struct afxdp *x, const struct flow_key *requests, const struct template *t);
bool afxdp_headers(const struct afxdp *x, const struct flow_key *requests, struct template *t);

/** afxdp_pins - the directory of this port's pins, "" when it has none. */
const char *afxdp_pins(const struct afxdp *x);

/**
 * afxdp_check - whether all interfaces still serve. It makes system calls: for a slow timer.
 * Returns
 *  0          they do
 *  -ENETDOWN  one is down or has no carrier
 *  -ENODEV    one was removed or renamed, and its sockets are dead: close
 *  -ESTALE    one has more or fewer receive queues, so that some are not read; or one that was
 *             left out is up: open again
 * @port: which one it is
 */
int afxdp_check(const struct afxdp *x, unsigned int *port);

/** afxdp_down - whether the interface is down or has no carrier. A system call. */
bool afxdp_down(const struct afxdp *x, unsigned int port);

/** afxdp_backup - whether the port is up, and the bond that it belongs to does not use it. */
bool afxdp_backup(const struct afxdp *x, unsigned int port);

/** afxdp_alone - whether the port is in no bridge: what is not taken is lost. System calls. */
bool afxdp_alone(const struct afxdp *x, unsigned int port);

/** afxdp_mtu - of the interface as it is now, 0: not known. A system call. */
uint32_t afxdp_mtu(const struct afxdp *x, unsigned int port);

/**
 * afxdp_carrier - look which ports have a carrier, and are used by the bond that they belong to. By
 * one that has none, or is not, nothing leaves any more while another one of its side has one and
 * is, and what the kernel has not sent by it yet is dropped. To
 * be called each AFXDP_CARRIER_MS where afxdp_members() is true; makes system calls.
 */
#define AFXDP_CARRIER_MS 20u
void afxdp_carrier(struct afxdp *x);
bool afxdp_members(const struct afxdp *x);

/**
 * afxdp_longest - bytes of the longest frame of hosts on the way to that side since the latest
 * call, as it came in by the LAN port or left there: what longhauld itself adds to a link has
 * limits of its own.
 */
uint32_t afxdp_longest(struct afxdp *x, enum steer_side side);

/** afxdp_gone - whether all of that side's interfaces were removed or renamed. */
bool afxdp_gone(const struct afxdp *x, enum steer_side side);

/** afxdp_restores - whether closing gives something back to an interface, which needs
 * CAP_NET_ADMIN; afxdp_strips: to that one its VLAN stripping. */
bool afxdp_restores(const struct afxdp *x);
bool afxdp_strips(const struct afxdp *x, unsigned int port);

/**
 * struct afxdp_unwanted - a recent RoCEv2 packet that no rule wanted.
 * @vlan: FRAME_VLAN_NONE without a tag; @at_ns: CLOCK_MONOTONIC
 */
struct afxdp_unwanted {
	struct ip_addr src, dst;
	uint16_t vlan;
	uint64_t at_ns;
};

/** afxdp_unwanted - one of that side, false when there was none. Makes system calls. */
bool afxdp_unwanted(const struct afxdp *x, enum steer_side side, struct afxdp_unwanted *out);

/** afxdp_port_counts, afxdp_side_counts - make system calls. */
void afxdp_port_counts(const struct afxdp *x, unsigned int port, struct afxdp_counts *out);
void afxdp_side_counts(const struct afxdp *x, enum steer_side side, struct afxdp_counts *out);

/** afxdp_bad_chunks - sum of rx_bad_chunk and tx_bad_chunk as far as we counted them ourselves. */
uint64_t afxdp_bad_chunks(const struct afxdp *x);

#endif

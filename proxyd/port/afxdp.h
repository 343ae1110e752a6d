/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two Ethernet ports of the appliance through AF_XDP: the XDP program on both, one UMEM, one socket a
 * port and queue. Frames longer than one chunk arrive and leave in several descriptors (multi-buffer) and
 * are joined here.
 */
#ifndef LONGHAUL_PORT_AFXDP_H
#define LONGHAUL_PORT_AFXDP_H

#include <stddef.h>

#include "port/port.h"

enum afxdp_mode {
	AFXDP_AUTO,    /* native, else generic */
	AFXDP_NATIVE,  /* in the driver */
	AFXDP_GENERIC, /* in the stack, any driver */
};

/**
 * struct afxdp_prefix - one prefix that rules want.
 * @addr: v4-mapped for IPv4; @plen: 0 .. 128 (IPv4 prefix length + 96)
 * @rules: bit i set when rule i has this prefix
 */
struct afxdp_prefix {
	uint8_t addr[16];
	uint8_t plen;
	uint64_t rules;
};

/**
 * struct afxdp_config
 * @ifname:    LAN and WAN interface
 * @max_frame: longest frame to take, bytes; above 3,840 needs multi-buffer; 0: as long as possible
 * @near, @far: prefixes on the LAN side and beyond the WAN; copied
 * @vlan_rules: [vlan id] -> rules that take this VLAN, [STEER_UNTAGGED] for untagged frames; 4096 words
 * @frames:    chunks of 4 KiB in the UMEM (default 16384 when 0)
 */
struct afxdp_config {
	const char *ifname[STEER_SIDES];
	enum afxdp_mode mode;
	uint32_t max_frame;
	const struct afxdp_prefix *near, *far;
	size_t nnear, nfar;
	const uint64_t *vlan_rules;
	uint32_t frames;
	uint64_t stale_ns; /* heartbeat older than this: everything passes to the kernel */
};

struct afxdp;

/** struct afxdp_stats - what the port layer counted; steer[][] sums the XDP program's counters. */
struct afxdp_stats {
	uint64_t rx[STEER_SIDES], tx[STEER_SIDES], rx_bytes[STEER_SIDES], tx_bytes[STEER_SIDES];
	uint64_t tx_full[STEER_SIDES];	  /* frames refused because no room was left */
	uint64_t rx_too_long[STEER_SIDES]; /* frames of more chunks than FRAME_MAX needs */
	uint64_t rx_dropped[STEER_SIDES]; /* by the kernel: no chunk, ring full */
	uint64_t steer[STEER_SIDES][STEER_COUNTERS];
};

/**
 * afxdp_multibuffer - whether this kernel hands frames over in several descriptors. Tried, not guessed
 * from a version number.
 */
bool afxdp_multibuffer(void);

/**
 * afxdp_open - attach the program and bind the sockets.
 * On failure returns NULL and a one-line cause with its mend in @err (@errlen bytes).
 */
struct afxdp *afxdp_open(const struct afxdp_config *cfg, char *err, size_t errlen);

/** afxdp_close - detach and free. From then on the kernel bridges everything. */
void afxdp_close(struct afxdp *x);

/** afxdp_rules - replace prefixes and VLANs of a running port (config reload). 0 or negative errno. */
int afxdp_rules(struct afxdp *x, const struct afxdp_prefix *near, size_t nnear,
		const struct afxdp_prefix *far, size_t nfar, const uint64_t *vlan_rules);

/** afxdp_fds - file descriptors to poll for reading; returns how many (at most @max). */
int afxdp_fds(const struct afxdp *x, int *fds, int max);

/** afxdp_rx - hand over up to @budget frames per socket; returns how many. Never blocks. */
unsigned int afxdp_rx(struct afxdp *x, unsigned int budget, port_rx_fn fn, void *ctx);

/** afxdp_tx - queue one frame (copied). 0, or -EAGAIN when there is no room: try after afxdp_flush(). */
int afxdp_tx(struct afxdp *x, enum steer_side side, const uint8_t *data, uint32_t len);

/** afxdp_flush - kick the kernel for what is queued, reap completions. Call once per batch. Returns true
 *  while sent frames wait in a ring for the kernel (call again soon). */
bool afxdp_flush(struct afxdp *x);

/** afxdp_heartbeat - tell the program that the daemon is alive at CLOCK_MONOTONIC @now_ns. */
void afxdp_heartbeat(struct afxdp *x, uint64_t now_ns);

/** afxdp_native, afxdp_max_frame - what was chosen: the mode, the longest frame. */
bool afxdp_native(const struct afxdp *x, enum steer_side side);
uint32_t afxdp_max_frame(const struct afxdp *x);

void afxdp_stats(struct afxdp *x, struct afxdp_stats *out);

#endif

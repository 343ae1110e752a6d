/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A capture of one queue pair: every frame of it as it came in at a port and as it left one, each
 * with a comment on what was decided. tcpdump sees nothing of them: AF_XDP hands frames to the
 * daemon before the kernel makes packets of them, and sends past packet sockets as well.
 *
 * What was decided is read off the engine from outside, by what a call changed: which frames it
 * sent, which counters it moved, where the lanes' marks are after it. So a call's frames are kept
 * until it is over, and then told.
 */
#ifndef LONGHAUL_CONTROL_CAPTURE_H
#define LONGHAUL_CONTROL_CAPTURE_H

#include "control/feed.h"
#include "control/view.h"

#define CAPTURE_FRAMES 128	  /* of one call of the engine, that are told */
#define CAPTURE_BYTES  (1u << 20) /* of one call of the engine */
#define CAPTURE_RING   (8u << 20)

/** struct capture_frame - @at: of its bytes; @in: it came in, else it left */
struct capture_frame {
	uint32_t at, len, kept;
	uint8_t port;
	bool in;
};

/**
 * struct capture - zero but for @feed.size to begin with.
 * @conn: id in the engine, looked up anew when it changes; addresses and QPNs are what is compared
 * @snap: bytes kept of each frame
 * @held: packets held for it before the call
 */
struct capture {
	struct feed feed;
	struct ip_addr lan_ip, wan_ip;
	uint32_t lqpn, rqpn, snap, conn;
	uint64_t held;
	uint64_t before[EC_COUNT];
	struct capture_frame frame[CAPTURE_FRAMES];
	unsigned int nframe, left_out;
	uint32_t used;
	uint8_t *bytes;
};

/** capture_begin - what request @req wants; the first line for the client, NULL with @err. */
json_t *capture_begin(struct capture *c, const struct view_source *src, const json_t *req,
		      uint64_t now_ns, char *err, size_t errlen);

/** capture_on - whether anybody reads. */
static inline bool capture_on(const struct capture *c)
{
	return c->feed.readers != 0;
}

/** capture_before - a call of the engine begins. */
void capture_before(struct capture *c, const struct view_source *src, uint64_t now_ns);

/** capture_frame - the frame came in at @port (@in), or leaves there with @seal (engine_sink). */
void capture_frame(struct capture *c, unsigned int port, bool in, const uint8_t *data, uint32_t len,
		   uint32_t seal);

/** capture_after - the call is over: what it did is told. */
void capture_after(struct capture *c, const struct view_source *src, uint64_t now_ns);

/** capture_exit - free what it holds. */
void capture_exit(struct capture *c);

#endif

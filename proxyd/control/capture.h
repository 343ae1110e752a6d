/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A capture of one queue pair: every frame as it came in at a port and as it left one, each with a
 * comment on what was decided. tcpdump sees none of these frames: AF_XDP hands them to the daemon
 * before the kernel's packet sockets, and sends past those, too.
 *
 * The decision is derived from what a call of the engine changed: frames sent, counters moved, the
 * lanes' marks afterwards. So the frames of a call are kept until it returns, and then written to
 * the feed.
 */
#ifndef LONGHAUL_CONTROL_CAPTURE_H
#define LONGHAUL_CONTROL_CAPTURE_H

#include "control/feed.h"
#include "control/view.h"

#define CAPTURE_FRAMES 128	  /* written to the feed for one call of the engine */
#define CAPTURE_BYTES  (1u << 20) /* of one call of the engine */
#define CAPTURE_RING   (8u << 20)

/** struct capture_frame - @at: offset of its bytes; @in: it came in, else it left */
struct capture_frame {
	uint32_t at, len, kept;
	uint8_t port;
	bool in;
};

/**
 * struct capture - all zero but @feed.size at first.
 * @conn: id in the engine; looked up again when it changes, by addresses and QPNs
 * @snap: bytes kept of each frame
 * @held: packets held for the connection before the call
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

/** capture_begin - start the capture that request @req asks for; the first line for the client,
 * NULL with @err. */
json_t *capture_begin(struct capture *c, const struct view_source *src, const json_t *req,
		      uint64_t now_ns, char *err, size_t errlen);

/** capture_on - whether a client reads it. */
static inline bool capture_on(const struct capture *c)
{
	return c->feed.readers != 0;
}

/** capture_before - to be called before each call of the engine. */
void capture_before(struct capture *c, const struct view_source *src, uint64_t now_ns);

/** capture_frame - the frame came in at @port (@in), or leaves by it with @seal (engine_sink). */
void capture_frame(struct capture *c, unsigned int port, bool in, const uint8_t *data, uint32_t len,
		   uint32_t seal);

/** capture_after - the call has returned: write its frames and effects to the feed. */
void capture_after(struct capture *c, const struct view_source *src, uint64_t now_ns);

/** capture_exit - free what it holds. */
void capture_exit(struct capture *c);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "port/afxdp.h"

#define SNAP_DEFAULT 256u
#define COMMENT_MAX  768

static bool read_conn(struct capture *c, const struct view_source *src, const json_t *req,
		      uint64_t now_ns)
{
	const json_t *id = json_object_get(req, "id");
	json_int_t n = json_integer_value(id);
	struct conn_info ci;

	if (!json_is_integer(id) || n < 0 || n > UINT32_MAX ||
	    !shards_conn(src->shards, (uint32_t)n, now_ns, &ci))
		return false;
	c->conn = ci.id;
	c->lan_ip = ci.lan_ip;
	c->wan_ip = ci.wan_ip;
	c->lqpn = ci.lqpn;
	c->rqpn = ci.rqpn;
	return true;
}

json_t *capture_begin(struct capture *c, const struct view_source *src, const json_t *req,
		      uint64_t now_ns, char *err, size_t errlen)
{
	const json_t *snap = json_object_get(req, "snap");
	json_int_t n = json_is_integer(snap) ? json_integer_value(snap) : (json_int_t)SNAP_DEFAULT;

	if (capture_on(c)) {
		snprintf(err, errlen, "another capture runs; only one at a time");
		return NULL;
	}
	if (n < 64 || n > (json_int_t)FRAME_MAX) {
		snprintf(err, errlen, "snap is 64 to %d bytes", (int)FRAME_MAX);
		return NULL;
	}
	if (!read_conn(c, src, req, now_ns)) {
		snprintf(err, errlen, "the connection is gone; look again with qp show");
		return NULL;
	}
	c->snap = (uint32_t)n;
	if (!c->bytes)
		c->bytes = malloc(CAPTURE_BYTES);
	if (!c->bytes) {
		snprintf(err, errlen, "out of memory");
		return NULL;
	}
	c->nframe = c->left_out = c->used = 0;
	return json_pack("{s:s, s:i}", "event", "following", "snap", (int)c->snap);
}

void capture_exit(struct capture *c)
{
	free(c->bytes);
	c->bytes = NULL;
}

/* Packets that are held for the connection, @ci filled; 0 when it is gone. */
static uint64_t held(const struct capture *c, const struct view_source *src, uint64_t now_ns,
		     struct conn_info *ci)
{
	uint64_t sum = 0;

	if (!shards_conn(src->shards, c->conn, now_ns, ci))
		return 0;
	for (int i = 0; i < 2; i++)
		sum += ci->lane[i].custody.packets + ci->lane[i].transit.packets;
	return sum;
}

void capture_before(struct capture *c, const struct view_source *src, uint64_t now_ns)
{
	struct conn_info ci;

	c->nframe = c->left_out = c->used = 0;
	c->held = held(c, src, now_ns, &ci);
	for (int i = 0; i < EC_COUNT; i++)
		c->before[i] = shards_counter(src->shards, i);
}

/* Whether the frame belongs to the queue pair. Packets name only the destination QP. */
static bool ours(const struct capture *c, const uint8_t *data, uint32_t len)
{
	struct frame f;

	if (frame_parse(data, len, &f) != FRAME_OK)
		return false;
	if (ip_addr_eq(&f.dst, &c->lan_ip) && ip_addr_eq(&f.src, &c->wan_ip))
		return f.dqpn == c->lqpn;
	return ip_addr_eq(&f.dst, &c->wan_ip) && ip_addr_eq(&f.src, &c->lan_ip) &&
	       f.dqpn == c->rqpn;
}

void capture_frame(struct capture *c, unsigned int port, bool in, const uint8_t *data, uint32_t len,
		   uint32_t seal)
{
	uint32_t kept = len < FRAME_MAX ? len : FRAME_MAX;

	if (!ours(c, data, len))
		return;
	if (c->nframe == CAPTURE_FRAMES || c->used + kept > CAPTURE_BYTES) {
		c->left_out++;
		return;
	}
	memcpy(c->bytes + c->used, data, kept);
	if (kept == len) {
		uint8_t *icrc = c->bytes + c->used + len - ICRC_LEN;

		put_le32(icrc, get_le32(icrc) ^ seal);
	}
	c->frame[c->nframe++] = (struct capture_frame){
		.at = c->used, .len = len, .kept = kept, .port = (uint8_t)port, .in = in};
	c->used += kept;
}

/* Counters of all frames do not tell what was decided. */
static bool is_decision(int counter)
{
	return counter != EC_RX_LAN && counter != EC_RX_WAN && counter != EC_TX_LAN &&
	       counter != EC_TX_WAN && counter != EC_PASSED;
}

/* "pseudo-acks +2, retx-wan +1" */
static void moved_text(const struct capture *c, const struct view_source *src, char *buf,
		       size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < EC_COUNT && used < len; i++) {
		uint64_t d = shards_counter(src->shards, i) - c->before[i];

		if (d && is_decision(i))
			used += (size_t)snprintf(buf + used, len - used, "%s%s +%llu",
						 used ? ", " : "", engine_counter_name(i),
						 (unsigned long long)d);
	}
}

static void psn_text(uint32_t psn, char *buf, size_t len)
{
	if (psn > 0xffffff)
		snprintf(buf, len, "-");
	else
		snprintf(buf, len, "0x%06x", psn);
}

/* The lanes' marks after the call. */
static void lanes_text(const struct conn_info *ci, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < 2 && used < len; i++) {
		const struct lane_info *l = &ci->lane[i];
		char epsn[12], frontier[12], una[12];

		psn_text(l->epsn, epsn, sizeof(epsn));
		psn_text(l->opener ? l->frontier : UINT32_MAX, frontier, sizeof(frontier));
		psn_text(l->una, una, sizeof(una));
		used += (size_t)snprintf(buf + used, len - used,
					 "; lane %s %s epsn %s frontier %s una %s",
					 i == LANE_OUT ? "out" : "in", lane_state_name(l->state),
					 epsn, frontier, una);
	}
}

/* Compares all but the ICRC, which may be sealed on the WAN. */
static bool same_bytes(const struct capture *c, const struct capture_frame *a,
		       const struct capture_frame *b)
{
	return a->len == b->len && !memcmp(c->bytes + a->at, c->bytes + b->at, a->kept - ICRC_LEN);
}

/* What became of frame @i, in words. */
static const char *fate(const struct capture *c, unsigned int i, uint64_t now_held)
{
	const struct capture_frame *f = &c->frame[i];

	for (unsigned int k = 0; k < c->nframe; k++) {
		const struct capture_frame *o = &c->frame[k];

		if (o->in == f->in || o->port == f->port)
			continue;
		if (same_bytes(c, f, o))
			return f->in ? "passed on as it came" : "as it came";
	}
	if (f->in)
		return now_held > c->held   ? "taken into custody, to be sent on in its turn"
		       : now_held < c->held ? "consumed: it acknowledges what is held"
					    : "goes no further";
	for (unsigned int k = 0; k < c->nframe; k++)
		if (c->frame[k].in)
			return "sent because of what came in";
	return "sent by the appliance in its turn";
}

static json_t *frame_object(const struct capture *c, unsigned int i, const char *moved,
			    const char *lanes, uint64_t now_held)
{
	static const char digits[] = "0123456789abcdef";
	const struct capture_frame *f = &c->frame[i];
	uint32_t snap = f->kept < c->snap ? f->kept : c->snap;
	char comment[COMMENT_MAX], hex[2 * FRAME_MAX + 1];
	struct timespec t;

	for (uint32_t k = 0; k < snap; k++) {
		hex[2 * k] = digits[c->bytes[f->at + k] >> 4];
		hex[2 * k + 1] = digits[c->bytes[f->at + k] & 15];
	}
	hex[2 * snap] = '\0';
	snprintf(comment, sizeof(comment), "%s at %s: %s%s%s%s", f->in ? "in" : "out",
		 f->port == PORT_LAN ? "lan" : "wan", fate(c, i, now_held), *moved ? "; " : "",
		 moved, lanes);
	clock_gettime(CLOCK_REALTIME, &t);
	return json_pack("{s:s, s:I, s:s, s:b, s:i, s:s, s:s}", "event", "frame", "time-ns",
			 (json_int_t)t.tv_sec * 1000000000 + t.tv_nsec, "port",
			 f->port == PORT_LAN ? "lan" : "wan", "in", f->in, "length", (int)f->len,
			 "data", hex, "comment", comment);
}

void capture_after(struct capture *c, const struct view_source *src, uint64_t now_ns)
{
	char moved[256], lanes[256] = "";
	struct conn_info ci;
	uint64_t now_held;

	if (!c->nframe)
		return;
	moved_text(c, src, moved, sizeof(moved));
	ci.id = ~c->conn;
	now_held = held(c, src, now_ns, &ci);
	if (ci.id == c->conn)
		lanes_text(&ci, lanes, sizeof(lanes));
	for (unsigned int i = 0; i < c->nframe; i++)
		feed_put(&c->feed, frame_object(c, i, moved, lanes, now_held));
	if (c->left_out)
		feed_put(&c->feed,
			 json_pack("{s:s, s:i}", "event", "lost", "lines", (int)c->left_out));
}

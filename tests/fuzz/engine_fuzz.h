/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of fuzz_engine share. */
#ifndef LONGHAUL_TESTS_FUZZ_ENGINE_FUZZ_H
#define LONGHAUL_TESTS_FUZZ_ENGINE_FUZZ_H

#include "engine/reads/reads.h"
#include "tests/fuzz/engine_record.h"
#include "tests/fuzz/input.h"
#include "tests/lab/model/cm_emit.h"

#define MS	   1000000ull
#define CONNS	   4
#define FLOWS	   24 /* capacity for few connections only, so that the table gets full */
#define SEEN	   16384
#define KEPT	   16
#define INPUTS_MAX 3000
#define CALLS_MAX  6000

struct kept {
	enum engine_port port;
	uint32_t len;
	uint8_t data[FRAME_MAX + 64];
};

/* A lane in custody before a call. */
struct before {
	bool held;
	uint8_t state;
	uint64_t opened;
	uint32_t una, frontier, proof;
	bool proven;
};

struct fuzz {
	struct engine *e;
	uint64_t now;
	uint8_t setup[SETUP];
	struct rc_header header[CONNS][2];
	struct template tmpl[CONNS][2];
	/* per connection and host: the next PSN of its requests, messages so far */
	uint32_t next[CONNS][2], msn[CONNS][2];
	uint32_t peer_gen[CONNS], report_seq;
	unsigned int inputs, calls;
	bool full[PORTS];
	/* the frame of the present call */
	const uint8_t *cur;
	uint32_t cur_len;
	enum engine_port cur_port;
	/* hashes of frames that arrived with a right ICRC, and of (flow, PSN) */
	uint64_t seen[SEEN];
	struct kept in[KEPT], out[KEPT];
	unsigned int nin, nout;
	struct before before[FLOWS];
	bool fault[FLOWS], closed[FLOWS], faults;
	uint32_t evidence_flow, evidence;
	/* per flow, how far its requests were truly acknowledged */
	uint32_t top[FLOWS];
	bool has_top[FLOWS];
};

extern struct fuzz z;

/* ---- who is who ---- */

static inline void host_addr(struct ip_addr *a, unsigned int conn, unsigned int host)
{
	uint8_t v4[4] = {10, (uint8_t)(host + 1), 0, 1};

	*a = ip_addr_v4(v4);
	if (conn == 2)
		*a = (struct ip_addr){.b = {[0] = 0xfd, [7] = (uint8_t)(host + 1), [15] = 1}};
}

static inline uint32_t host_qpn(unsigned int conn, unsigned int host)
{
	return (host ? 0x22u : 0x11u) + 0x100 * (conn & 1);
}

static inline uint16_t conn_vlan(unsigned int conn)
{
	return conn == 3 ? 5 : FRAME_VLAN_NONE;
}

/* Of the requests of @host. */
static inline void flow_key(struct flow_key *k, unsigned int conn, unsigned int host)
{
	memset(k, 0, sizeof(*k));
	host_addr(&k->src, conn, host);
	host_addr(&k->dst, conn, !host);
	k->dqpn = host_qpn(conn, !host);
	k->vlan = conn_vlan(conn);
}

static inline struct flow *watched_flow(const struct flow_key *k)
{
	uint32_t i = flow_table_find(z.e->table, k, z.e->flows, sizeof(struct flow));

	return i == FLOW_NONE ? NULL : &z.e->flows[i];
}

static inline struct flow *conn_flow(unsigned int conn, unsigned int host)
{
	struct flow_key k;

	flow_key(&k, conn, host);
	return watched_flow(&k);
}

/* Then PSNs differ between host and responder, and packets are given others (psn_map.c). */
static inline bool reads_ahead(void)
{
	return z.setup[1] & SETUP_PREFETCH;
}

/* ---- calls of the engine, with what must hold around them (engine_watch.c) ---- */

extern const struct engine_sink watch_sink;

/* Around a call that is made elsewhere. */
void watch_before(void);
void watch_after(void);

void watch_tick(void);
void watch_feed(enum engine_port port, const uint8_t *data, uint32_t len);
void watch_report(const struct report *r);

/* ---- frames and reports of hosts and of the peer (engine_traffic.c) ---- */

/* @n messages of host @host in order; @kind: bits of the record. */
void traffic_requests(unsigned int conn, unsigned int host, unsigned int n, uint8_t kind,
		      uint8_t length);

/* Messages and their ACKs, until the pair is known. */
void traffic_learn(unsigned int conn, unsigned int host, unsigned int n);

/* The peer opens a lane for the requests from beyond the WAN. */
void traffic_open(unsigned int conn, bool fresh, bool resume, int8_t off);

/* As the peer to which lane @fl of ours belongs. */
void traffic_own(struct report *r, const struct flow *fl);

/* One record each. */
void rec_near_frame(struct input *in, unsigned int conn, unsigned int host);
void rec_frame(struct input *in, unsigned int conn, unsigned int host);
void rec_ack(struct input *in, unsigned int conn, unsigned int host);
void rec_again(struct input *in);
void rec_cm(struct input *in, unsigned int conn, unsigned int host);
void rec_report(struct input *in, unsigned int conn);
void rec_report_raw(struct input *in, unsigned int conn, unsigned int host);

#endif

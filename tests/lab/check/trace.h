/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Captures in memory: what of each frame matters later, and the flows that they belong to. A *flow*
 * is one direction of packets to one queue pair; two flows that answer each other are partners. The
 * lane of the requests in a flow goes by the flow's number.
 */
#ifndef LAB_CHECK_TRACE_H
#define LAB_CHECK_TRACE_H

#include "tests/lab/check/check.h"

enum event_kind {
	EVENT_REQUEST,
	EVENT_ANSWER,
	EVENT_FRESH, /* the connection manager sets up this queue pair anew */
};

/**
 * struct event - one RC frame with a right ICRC.
 * @t:      ns
 * @since:  the frame was on its way at @t, but may have come any time since this
 * (check_config.stalls)
 * @no:     number in its file, from 1
 * @digest: of everything that must not change on the way: request: opcode, extended headers,
 *          payload; answer: payload and atomic value
 * @va, @rkey, @length: of RETH or AtomicETH
 * @native: between two appliances: it has no seal
 */
struct event {
	uint64_t t, since, digest, va;
	uint32_t no, flow, psn, rkey, length, msn;
	uint16_t payload_len;
	uint8_t kind, opcode, syndrome;
	bool ackreq, native;
};

/**
 * struct flow
 * @partner: number of the flow that answers this one, -1
 * @mtu:     longest payload of a packet that is not its message's last; 0 when there was none
 * @site:    0, 1: where its source is; -1 unknown
 * @psns:    for pairing: which PSNs of the latest ones end a message or ask for an ACK
 */
struct flow {
	struct ip_addr src, dst;
	uint32_t dqpn;
	uint16_t vlan;
	int partner;
	int site;
	uint32_t mtu;
	uint64_t requests, answers;
	/* pairing, within one trace */
	bool seen;
	uint32_t first, end;
	uint8_t *psns;
};

struct trace {
	const char *name;
	int place; /* enum check_place, or -1: bare */
	struct event *ev;
	uint32_t n, cap, frames;
};

struct judge {
	const struct check_config *cfg;
	struct check_result *res;
	FILE *out;
	struct trace trace[PLACES + CHECK_BARE];
	unsigned int ntraces;
	struct flow *flow;
	uint32_t nflows, flows_cap;
	struct {
		struct ip_addr src;
		uint32_t comm_id, lqpn;
	} req[64]; /* latest CM REQs */
	unsigned int nreqs;
	uint64_t told; /* of check_config.repeats, not accounted for yet */
	bool parity;   /* requests that were lost may have been made from it */
	/* of frames between two appliances: hashes from the BTH on */
	uint64_t *sealed;
	uint32_t nsealed, sealed_cap;
	/* those with a wrong ICRC that a host got */
	struct wrong {
		uint64_t hash;
		unsigned int trace;
		uint32_t no, psn;
		uint64_t t;
		int flow;
		uint8_t opcode;
	} * wrong;
	uint32_t nwrong, wrong_cap;
};

/** trace_load - read @path; false after printing why it cannot. */
bool trace_load(struct judge *j, const char *path, int place);

/** trace_wrong - judge the frames with a wrong ICRC that hosts got, when all is loaded. */
void trace_wrong(struct judge *j);

/** pair_flows - find partners, sites and path MTUs; false after printing why that cannot be done.
 * */
bool pair_flows(struct judge *j);

uint32_t flow_number(struct judge *j, const struct ip_addr *src, const struct ip_addr *dst,
		     uint16_t vlan, uint32_t dqpn);

/** judge_violation - one more; @flow of the lane, or -1. */
void judge_violation(struct judge *j, enum check_rule r, const struct trace *t,
		     const struct event *e, int flow, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

void *grow(void *p, uint32_t n, uint32_t *cap, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frames that a forger makes: world_forge.c builds them, world_forger.c sends and judges. */
#ifndef SCENARIO_WORLD_FORGE_H
#define SCENARIO_WORLD_FORGE_H

#include "tests/scenario/world_priv.h"

#define FORGE_OLD 64u

/* A frame that was seen, and where it came from. */
struct forge_old {
	int link;
	uint32_t len;
	uint8_t data[FRAME_MAX];
};

/*
 * What the world remembers of a forged frame. @held: the appliance that it was given to had custody
 * of the lane then, so that it answers for what becomes of it; @inside: of something with this PSN,
 * and had promised something. @hits: times that it would have
 * taken in a host
 */
struct forge_mark {
	uint32_t icrc, psn, dqpn;
	bool held, inside;
	uint8_t hits;
};

#define FORGE_MARKS  65536u
#define FORGE_PLACES 16u /* where a mark may be, from its hash on */

struct forger {
	struct prng rng;
	uint64_t due; /* frames moved when the next act comes */
	uint32_t acts;
	struct forge_mark *marks;
	struct forge_old *old;
	uint32_t nold;
};

/**
 * struct forge_target - where a forged frame goes, and what it is about.
 * @q, @s:  the lane: requests of host @s of this queue pair
 * @at, @port: the appliance that gets it, and where
 * @held:   this appliance has custody of the lane; @ci: the connection as it shows it, with @known
 */
struct forge_target {
	struct world_qp *q;
	int s, at;
	enum engine_port port;
	bool known, held;
	struct conn_info ci;
};

/** forge_lane - the target's lane as its appliance shows it. */
static inline struct lane_info *forge_lane(struct forge_target *t)
{
	return &t->ci.lane[t->at == t->s ? LANE_OUT : LANE_IN];
}

/** forge_request - any request with @psn to the responder. Returns the frame's length, as all here
 * do; @out has FRAME_MAX bytes. */
uint32_t forge_request(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn);
/** forge_send_only - a short SEND_ONLY. */
uint32_t forge_send_only(struct forger *f, const struct forge_target *t, uint8_t *out,
			 uint32_t psn);
/** forge_vendor - a request with an opcode that has no meaning. */
uint32_t forge_vendor(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn);
/** forge_answer - an ACK or NAK, or with @data maybe an answer with data, to the requester. */
uint32_t forge_answer(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn,
		      bool data);
/** forge_nak - a sequence NAK of @psn, with an MSN of late. */
uint32_t forge_nak(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn);
/** forge_refusal - a fatal one. */
uint32_t forge_refusal(struct forger *f, const struct forge_target *t, uint8_t *out, uint32_t psn);
/** forge_cnp - to either host. */
uint32_t forge_cnp(struct forger *f, const struct forge_target *t, uint8_t *out, bool to_responder);
/** forge_cm - a datagram of the connection manager, from host @from. @ids: with the ids of the
 * connection and a wrong ICRC; else the other way round. */
uint32_t forge_cm(struct forger *f, const struct forge_target *t, uint8_t *out, int from, bool ids);
/** forge_cm_pair - REQ (@type CM_REQ) or REP of a handshake with the ids @id, of host @from; with
 * its own queue pair, or for @other with one that does not exist. */
uint32_t forge_cm_pair(struct forger *f, const struct forge_target *t, uint8_t *out, int from,
		       uint8_t type, const uint32_t id[2], bool other);
/** forge_change - another payload, or another opcode of the same form, in an old request. Returns
 * false when that cannot be. */
bool forge_change(struct forger *f, uint8_t *data, uint32_t len);

#endif

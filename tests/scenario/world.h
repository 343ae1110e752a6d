/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hosts, two appliances' engines and everything between them in virtual time, from one seed.
 *
 *	host 0 --lan 0-- engine 0 --wan-- engine 1 --lan 1-- host 1
 *
 * Each of the three links has two directions with settings of their own. Reports travel in a channel of
 * their own beside the WAN with the WAN's delay and its own loss. Either engine can be left out (then a
 * wire joins its ports), so one appliance at either side, two and none are the same world.
 */
#ifndef SCENARIO_WORLD_H
#define SCENARIO_WORLD_H

#include <stdio.h>

#include "engine/engine.h"
#include "tests/lab/model/rc_host.h"
#include "tests/lab/model/wan.h"

#define WORLD_QPS 64

/**
 * struct world_config
 * @appliance:   engine 0, engine 1 present
 * @single:      rules without a peer
 * @wan, @lan:   settings of both directions; seeds are derived from @seed
 * @report_loss: of reports, besides that they share the WAN's delay
 * @check_every: engine_check() after every so many events, 0: at the end only
 * @engine:      of both engines; seed is derived
 */
struct world_config {
	uint64_t seed;
	bool appliance[2];
	bool single;
	struct wan_config wan, lan;
	double report_loss;
	enum ack_policy policy;
	struct engine_config engine;
	uint32_t path_mtu; /* told by the rule, 0: learned */
	uint32_t check_every;
	uint32_t qps_max;
	uint64_t frames_max; /* a world that moves more is a violation: it turns in circles; 0: no limit */
};

/**
 * struct work - what one side of a QP pair does: @left messages, posted as room allows, of operations drawn
 * from @ops (bits of enum rc_op) with sizes drawn from @min .. @max.
 */
struct work {
	uint32_t ops;
	uint32_t min, max;
	uint64_t left;
	uint32_t outstanding; /* most at one time, 0: as the queue allows */
};

struct world;

/** struct world_qp - one queue pair on each host. @side[i]: what host i's end did. */
struct world_qp {
	struct world *w;
	uint32_t id;
	struct {
		struct world_qp *up;
		struct rc_qp *qp;
		struct work work;
		struct prng rng;
		uint64_t ok, failed, bytes, last_ok_at;
		enum rc_status status; /* of the first failure */
		bool data_wrong;
	} side[2];
};

struct world {
	struct world_config cfg;
	uint64_t now, events, frames;
	struct rc_host *host[2];
	struct engine *engine[2];
	/* link[i]: 0, 1: lan of side i toward the engine; 2, 3: toward the host; 4, 5: wan from side i */
	struct wan *link[6];
	struct wan *reports[2]; /* from side i */
	struct world_qp qp[WORLD_QPS];
	uint32_t nqps;
	uint64_t opened[2], refused[2], faults[2], closed[2];
	const char *violation;
	struct {
		struct world *w;
		int side;
	} ctx[2];
	/* sees every frame that leaves a link: 0 lan, 1 wan, 2 lan of the other side; false drops it */
	bool (*filter)(struct world *w, int link, const uint8_t *data, uint32_t len);
	void *user;
};

#define WORLD_LAN_IN(side) (side)
#define WORLD_LAN_OUT(side) (2 + (side))
#define WORLD_WAN(side) (4 + (side))

void world_defaults(struct world_config *c);
struct world *world_create(const struct world_config *cfg);
void world_destroy(struct world *w);

/** world_connect - one more QP pair; @a: host 0's end, host 1 gets the mirror with personality @other. */
struct world_qp *world_connect(struct world *w, struct rc_qp_config *a, enum rc_personality other);

/** world_work - let host @side of @q do @work from now on. */
void world_work(struct world_qp *q, int side, const struct work *work);

/** world_run - until @until or until nothing but idle timers is left; stops at a violation. */
void world_run(struct world *w, uint64_t until);

/** world_run_done - until all work is completed (or failed) and custody is empty, at most to @until. True
 *  when it got there. */
bool world_run_done(struct world *w, uint64_t until);

/** world_restart - engine @side loses all its memory and starts anew (kill -9). */
void world_restart(struct world *w, int side);

/** world_redeem - engine @side pays all its debts and starts anew without memory (an orderly restart). Runs the
 *  world until its custody is empty, 100 s at most. */
void world_redeem(struct world *w, int side);

/** world_verify - compare what responders executed with what requesters were told; NULL when all is right.
 *  @complete: everything must have arrived. */
const char *world_verify(struct world *w, bool complete);

/** world_conn - the connection of @q as engine @side shows it; false when it shows none. */
bool world_conn(struct world *w, int side, const struct world_qp *q, struct conn_info *out);

/** world_set_wan - change the WAN of direction @from. */
void world_set_wan(struct world *w, int from, const struct wan_config *c);

/** world_peer - raise a peer event in engine @side. */
void world_peer(struct world *w, int side, enum peer_event ev);

void world_dump(struct world *w, FILE *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of a world share. world.c makes and joins engines, hosts and links; world_qp.c
 * makes queue pairs and gives them work; world_run.c lets time pass; world_custody.c looks at every
 * moment, world_verify.c at the end.
 */
#ifndef SCENARIO_WORLD_PRIV_H
#define SCENARIO_WORLD_PRIV_H

#include "tests/scenario/world.h"

#define MS 1000000ull

static inline uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* world_still.c: whether an appliance that stands still does not look at that link yet, and whether
 * the frame that was just taken of it had no room in the ring; all of it has been looked at; when
 * the other appliance will take one for gone. */
bool world_still_holds(const struct world *w, int link);
bool world_still_drops(struct world *w, int link);
/* Whether what appliance @side says to the other one is not heard, since they have no session. */
bool world_still_unheard(const struct world *w, int side);
void world_still_seen(struct world *w, int link);
uint64_t world_still_next(const struct world *w);
void world_still_run(struct world *w);

/* world_crash.c: what happens to an appliance, which may be killed by it and another one adopt its
 * engines. */
void world_rx(struct world *w, int side, enum engine_port port, const uint8_t *data, uint32_t len);
/* False, and nothing is done, when the daemon of @side waits with the frame (world_late.c). */
bool world_rx_ask(struct world *w, int side, enum engine_port port, const uint8_t *data,
		  uint32_t len);
void world_rx_report(struct world *w, int side, unsigned int peer, const struct report *r);
void world_tick(struct world *w, int side);
/* What an engine says while its batch may still be undone; false when it cannot be. */
bool world_crash_tx(struct world *w, int side, unsigned int shard, uint32_t port,
		    const uint8_t *data, uint32_t len, uint32_t seal);
bool world_crash_report(struct world *w, int side, unsigned int shard, unsigned int peer,
			const struct report *r);
bool world_crash_event(struct world *w, int side, unsigned int shard,
		       const struct engine_event *ev);
/* All engines of appliance @side were told something: it may die when some have committed that. */
void world_crash_soon(struct world *w, int side);
/* An engine says that an invariant is broken. */
void world_broken(struct world *w, int side, const struct engine_event *ev);
/* And what becomes of it at last. @kind: 0 frame, 1 report, 2 event */
void world_said(struct world *w, int side, int kind, uint32_t port, const void *data, uint32_t len);
const char *world_adopt(struct world *w, int side, const int *files);
void world_crash_init(struct world *w);
/* New files for the engines of @side, NULL: they have none. */
const int *world_crash_files(struct world *w, int side);
void world_crash_exit(struct world *w);
/* The process of @side dies before it has ended a batch. */
void world_crash_unsaid(struct world *w, int side);

/* New engines of @side in @files, since nobody can read what the former ones left. */
void world_replace(struct world *w, int side, const int *files);

/* A connection that the port of an appliance holds, whose packets never pass. */
struct port_held {
	bool used;
	struct flow_key requests;
	uint32_t lqpn;
	struct template headers;
};

#define HELD_MAX (4 * WORLD_QPS)

/* Each that the port of @side holds, if there is a table of them. */
#define held_each(w, side, h)                                                                      \
	for (struct port_held *h = (w)->held[side], *end_ = h ? h + HELD_MAX : NULL; h < end_;     \
	     h++)                                                                                  \
		if (h->used)

/* world_port.c: what the ports of an appliance do that stands still, and what they hold. */
int world_port_init(struct world *w);
void world_port_exit(struct world *w);
void world_port_hold(struct world *w, int side, const struct flow_key *k, uint32_t lqpn,
		     const struct template *headers, bool on);
/* Whether the process at the end of @link does not read this frame now. */
bool world_port_takes(struct world *w, int link, const uint8_t *data, uint32_t len);
/* The process of @side reads what waits in its rings; whether something does. */
void world_port_read(struct world *w, int side);
bool world_port_waits(const struct world *w, int side);
/* A frame comes to appliance @side. */
void world_to_port(struct world *w, int side, enum engine_port port, const uint8_t *data,
		   uint32_t len);

/* world_heir.c: a place in @s for each that the port of @side holds, and what becomes of it. */
void world_heirs_init(struct world *w);
void world_heirs_exit(struct world *w);
void world_heirs_expect(struct world *w, int side, struct shards *s);
void world_heirs_found(struct world *w, int side, bool adopted);
/* The process of @side was killed: have another one follow, with @files or new ones. False: custody
 * was lost. */
bool world_heirs_follow(struct world *w, int side, const int *files);

/* What carries the report @r from appliance @side. */
struct wan *world_reports(const struct world *w, int side, const struct report *r);

/* world_cores.c: NULL, or what the engines of an appliance do not agree about. */
const char *world_agree(const struct world *w, int side);
unsigned int world_cores(const struct world *w, int side);
/* Have the engines of @side know its rules, and its peer as it comes up or goes. */
void world_rules(struct world *w, int side);
void world_tell_peer(struct world *w, int side);

/* Send a copy of a frame into a link. */
void world_link_send(struct world *w, int link, const uint8_t *data, uint32_t len);

/* The lane of the requests of host @s, as its own appliance shows it. */
/** world_wrong - something is wrong with @q. Nobody can know better where its numbers got another
 *  owner without a word while an appliance had messages of the former one to deliver: then it is
 *  the end of the world, but no violation (doc/guarantees.md). Where @q is astray it is noted, and
 *  judged at the end. */
void world_wrong(struct world_qp *q, const char *what);
bool world_lane(struct world_qp *q, int s, struct lane_info *out);

/* Look at a frame that appliance @side sends into the WAN, and at one that has reached host @side.
 * */
void world_check_forwarded(struct world *w, int side, const uint8_t *data, uint32_t len);
void world_check_told(struct world *w, int side, const uint8_t *data, uint32_t len);

/* Post of host @side's work as much as there is room for. */
void world_post_more(struct world_qp *q, int side);

/* The connection manager's handshakes: what is due, when the next thing is, and a frame that host
 * @side gets. */
void world_shake_run(struct world *w);
uint64_t world_shake_next(const struct world *w);
void world_shake_rx(struct world *w, int side, const uint8_t *data, uint32_t len);

#endif

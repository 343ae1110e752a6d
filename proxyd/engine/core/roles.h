/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a role does: one table for each, so that the core need not know which roles there are. The
 * tables stand in engine/roles.c, above all rooms; the core calls through them what is due.
 */
#ifndef LONGHAUL_ENGINE_CORE_ROLES_H
#define LONGHAUL_ENGINE_CORE_ROLES_H

#include "engine/core/core.h"

/**
 * struct role_ops - every entry may be NULL: there is nothing to do then.
 * @request:   a request of the lane, arrived at its own side
 * @unknown:   a packet in the requests' direction whose opcode has no row
 * @response:  a response to its requests, arrived at the port @from
 * @congested: the responder says that what is sent to it meets congestion
 * @timer:     one of its timers has fired (TIMER_*)
 * @send:      a turn of requests onward, @quantum bytes at most; true when there is more
 * @send_resp: the same of responses back to where the requests came from
 * @report:    tell the peer what is due, now or later; returns when to ask again, ns, 0 for never
 * @tell:      tell the near requester what is due
 * @sweep:     a look at it every second or so
 * @peer:      its peer is there again, or our process is; @restarted: the peer has lost its memory
 * @drain:     finish what is owed; true when the role has seen to that by itself
 * @owes:      hosts cannot go on without this appliance
 * @strands:   without it the two ends would count differently
 * @end:       let go of what the role holds besides custody
 */
struct role_ops {
	void (*request)(struct engine *e, struct flow *fl, const struct frame *f);
	void (*unknown)(struct engine *e, struct flow *fl, const struct frame *f);
	void (*response)(struct engine *e, struct flow *fl, const struct frame *f,
			 enum engine_port from);
	void (*congested)(struct engine *e, struct flow *fl);
	void (*timer)(struct engine *e, struct flow *fl, unsigned int which);
	bool (*send)(struct engine *e, struct flow *fl, uint32_t quantum);
	bool (*send_resp)(struct engine *e, struct flow *fl, uint32_t quantum);
	uint64_t (*report)(struct engine *e, struct flow *fl);
	void (*tell)(struct engine *e, struct flow *fl);
	void (*sweep)(struct engine *e, struct flow *fl);
	void (*peer)(struct engine *e, struct flow *fl, bool restarted);
	bool (*drain)(struct engine *e, struct flow *fl, enum lane_reason why);
	bool (*owes)(struct engine *e, const struct flow *fl);
	bool (*strands)(struct engine *e, const struct flow *fl);
	void (*end)(struct engine *e, struct flow *fl);
};

/** role_of - the table of the lane's role. */
static inline const struct role_ops *role_of(const struct engine *e, const struct lane *l)
{
	return &e->roles[l->role];
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process that stood still: stopped, swapped out, not let run, or ended and followed by another.
 *
 * All clocks went on meanwhile. A responder or a peer seems to have been silent for as long as we
 * were deaf: beyond its timeout custody would be given up before anybody was asked. And what was
 * sent before seems to be on its way for as long: what rings dropped is missed too late for hosts.
 */
#include "engine/core/core.h"

/* After a longer pause hosts are told nothing before they speak: by a handshake that passed unseen
 * a queue pair number may have another owner, who would take an old ACK for one of its own. */
#define QUIET_NS NSEC_PER_SEC

/* @t as it would be had nobody stood still from @since until @now_ns. */
static uint64_t moved(uint64_t t, uint64_t since, uint64_t now_ns)
{
	return now_ns - (since > t ? since - t : 0);
}

static uint32_t moved_ms(uint32_t t, uint64_t since, uint64_t now_ns)
{
	return ms_of(now_ns) - (uint32_t)MAX((int32_t)(ms_of(since) - t), 0);
}

void engine_stood_still(struct engine *e, uint64_t since, uint64_t now_ns)
{
	bool quiet = now_ns > since + QUIET_NS;

	e->stood = now_ns;
	/* Not noted for a successor: either value is right for one that begins in the middle. In
	 * WATCH @waits_ms is about what is no lane's any more (fault/abandoned.c). */
	for (uint32_t i = 0; i < e->flows_end; i++) {
		struct lane *l = &e->flows[i].lane;

		if (!e->flows[i].used || l->role == ROLE_NONE)
			continue;
		l->progress = moved(l->progress, since, now_ns);
		l->waits_ms = moved_ms(l->waits_ms, since, now_ns);
		l->near.quiet |= quiet && lane_keeps(l);
		l->near.ack_due &= !(quiet && l->state == LANE_FAULT); /* its port was full */
		if (l->role == ROLE_OPENER)
			l->opener.had_ms = moved_ms(l->opener.had_ms, since, now_ns);
	}
	/* what brings a peer back may wait behind the frames that are looked at first */
	for (unsigned int i = 0; i < PEER_MAX; i++)
		if (!e->peer_up[i])
			e->peer_since[i] = moved(e->peer_since[i], since, now_ns);
}

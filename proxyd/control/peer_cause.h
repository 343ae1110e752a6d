/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a peer is not up, and what to do: the most specific cause that is known at this end.
 */
#ifndef LONGHAUL_CONTROL_PEER_CAUSE_H
#define LONGHAUL_CONTROL_PEER_CAUSE_H

#include "control/view.h"
#include "peer/session.h"

#define PEER_CAUSE_TEXT 192

/**
 * struct peer_signs - what is known besides the session.
 * @trouble:  errno of datagrams that did not leave or arrive lately, 0: none
 * @stranger: datagrams came lately from @addr and @port, which is no peer's
 */
struct peer_signs {
	int trouble;
	bool stranger;
	struct ip_addr addr;
	uint16_t port;
};

/** struct peer_cause - @text: the cause, to follow a colon; @mend: what to do */
struct peer_cause {
	char text[PEER_CAUSE_TEXT], mend[PEER_CAUSE_TEXT];
};

/** peer_cause - false when the peer is up. @signs: NULL when nothing is known. */
bool peer_cause(const struct view_peer *peer, const struct session_info *si,
		const struct peer_signs *signs, struct peer_cause *out);

#endif

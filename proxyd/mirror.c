// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A peer's HELLO names the hosts near it that its rules have. A rule of ours wants hosts beyond
 * the WAN; where the peer serves none of them it has no such rule, and will refuse each
 * connection. That is said as soon as the peer is up, before any connection was tried. Prefixes
 * need not be equal: a wider rule at one side is no fault.
 */
#include "mirror.h"

#include <stdio.h>
#include <syslog.h>

#include "log.h"

const struct prefix *mirror_missing(const struct rule *r, const struct session_info *peer)
{
	/* what it does not name may be among those it has more of */
	if (peer->more)
		return NULL;
	for (unsigned int i = 0; i < r->nfar; i++) {
		bool there = false;

		for (unsigned int k = 0; k < peer->nprefix && !there; k++)
			there = prefixes_overlap(&r->far[i], &peer->prefix[k]);
		if (!there)
			return &r->far[i];
	}
	return NULL;
}

static void say(const struct rule *r, const struct session_info *peer, const struct prefix *p)
{
	char text[PREFIX_STRLEN];

	log_line(LOG_WARNING,
		 "rule %s: peer %s serves nothing of %s, so it will refuse these connections; "
		 "give it the same rule with lan and wan exchanged",
		 r->name, peer->name, prefix_str(p, text));
}

void mirror_check(struct mirror *m, const struct rule *rules, unsigned int n,
		  const struct session *s, uint64_t now_ns)
{
	struct session_info si;

	for (unsigned int i = 0; i < n; i++) {
		const struct rule *r = &rules[i];
		const struct prefix *p;

		if (r->peer == PEER_NONE || !session_up(s, (unsigned int)r->peer) ||
		    !session_info(s, (unsigned int)r->peer, now_ns, &si) || !si.known)
			continue;
		p = mirror_missing(r, &si);
		if (p && !m->said[i])
			say(r, &si, p);
		if (!p && m->said[i])
			log_line(LOG_NOTICE, "rule %s: peer %s serves its hosts now", r->name,
				 si.name);
		m->said[i] = p != NULL;
	}
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the rules of a peer can be the mirror image of ours, from the prefixes that it says it
 * serves.
 */
#ifndef LONGHAUL_MIRROR_H
#define LONGHAUL_MIRROR_H

#include <stdbool.h>

#include "engine/rule.h"
#include "peer/session.h"

/** mirror_missing - the first of the prefixes of @r's far side that has nothing in common with what
 *  the peer serves; NULL when each has, or when the peer has not told all. */
const struct prefix *mirror_missing(const struct rule *r, const struct session_info *peer);

/**
 * struct mirror - what the log has been told.
 * @said: by rule: the log knows that the peer has no rule for it
 */
struct mirror {
	bool said[RULE_MAX];
};

/** mirror_check - look at all @n rules, say in the log what has changed. Once a second. */
void mirror_check(struct mirror *m, const struct rule *rules, unsigned int n,
		  const struct session *s, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the rules of a peer can be the mirror image of ours, from the hosts that it says it
 * serves and those that it looks for here. Known as soon as the peer is up, before any connection.
 */
#ifndef LONGHAUL_CONTROL_MIRROR_H
#define LONGHAUL_CONTROL_MIRROR_H

#include <stdbool.h>

#include "rule/rule.h"
#include "peer/session.h"

#define MIRROR_TEXT 256

/** mirror_missing - the first prefix of @r's far side that overlaps nothing the peer serves; NULL
 * when there is none, or when the peer has not told all. */
const struct prefix *mirror_missing(const struct rule *r, const struct session_info *peer);

/** struct mirror_fault - @text: which rule is missing, and where; @mend: what to do */
struct mirror_fault {
	char text[MIRROR_TEXT], mend[MIRROR_TEXT];
};

/** mirror_fault - the first conflict between those of the @n rules that name peer @index and what
 * that peer tells of itself in @peer; false when there is none. */
bool mirror_fault(const struct rule *rules, unsigned int n, unsigned int index,
		  const struct session_info *peer, struct mirror_fault *out);

/** mirror_unsealed - rule @r wants connections with peer @index sealed, but that peer, which is up,
 * cannot seal: they pass unaccelerated. */
bool mirror_unsealed(const struct rule *r, unsigned int index, const struct session_info *peer);

/** mirror_wanted - the hosts that rules look for beyond peer @index. */
void mirror_wanted(const struct rule *rules, unsigned int n, unsigned int index,
		   struct proto_site *out);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A rule works when the peer has the same one with lan and wan exchanged. Prefixes need not be
 * equal: a wider rule at one side is no fault.
 *
 * Each end looks at its own rules and at what the peer has told (HELLO: the hosts that it serves;
 * SITE: those that it looks for here), so both ends see a rule that is missing at either.
 */
#include "control/mirror.h"

#include <stdio.h>

static bool among(const struct prefix *p, const struct prefix *list, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (prefixes_overlap(p, &list[i]))
			return true;
	return false;
}

const struct prefix *mirror_missing(const struct rule *r, const struct session_info *peer)
{
	/* a prefix that it does not name may be among those it left out */
	if (peer->more)
		return NULL;
	for (unsigned int i = 0; i < r->nfar; i++)
		if (!among(&r->far[i], peer->prefix, peer->nprefix))
			return &r->far[i];
	return NULL;
}

/* The first of the hosts near us in @r that the peer does not look for. */
static const struct prefix *not_wanted(const struct rule *r, const struct session_info *peer)
{
	if (!peer->site_known || peer->site.more)
		return NULL;
	for (unsigned int i = 0; i < r->nnear; i++)
		if (!among(&r->near[i], peer->site.wanted, peer->site.nwanted))
			return &r->near[i];
	return NULL;
}

static bool missing_there(const struct rule *r, const struct session_info *peer,
			  struct mirror_fault *out)
{
	const struct prefix *far = mirror_missing(r, peer), *near = NULL;
	char text[PREFIX_STRLEN];

	if (!far)
		near = not_wanted(r, peer);
	for (unsigned int i = 0; far && i < r->nnear; i++) {
		if (!among(&r->near[i], peer->prefix, peer->nprefix))
			continue;
		snprintf(out->text, MIRROR_TEXT,
			 "rule %s has %s near this appliance, and peer %s has them near it, too: "
			 "lan and wan are exchanged in the rule of one of the two",
			 r->name, prefix_str(&r->near[i], text), peer->name);
		snprintf(out->mend, MIRROR_TEXT,
			 "lan names the hosts near the appliance, wan those beyond the link: "
			 "correct the rule where it is the other way round, then systemctl reload "
			 "longhauld");
		return true;
	}
	if (far)
		snprintf(out->text, MIRROR_TEXT,
			 "rule %s looks for hosts %s at peer %s, which has no rule for them and "
			 "refuses their connections",
			 r->name, prefix_str(far, text), peer->name);
	else if (near)
		snprintf(out->text, MIRROR_TEXT,
			 "rule %s has hosts %s, which no rule of peer %s looks for here, so it "
			 "refuses their connections",
			 r->name, prefix_str(near, text), peer->name);
	else
		return false;
	snprintf(out->mend, MIRROR_TEXT,
		 "give peer %s rule %s with lan and wan exchanged, or correct the prefixes",
		 peer->name, r->name);
	return true;
}

static bool missing_here(const struct rule *rules, unsigned int n, unsigned int index,
			 const struct session_info *peer, struct mirror_fault *out)
{
	char text[PREFIX_STRLEN];

	for (unsigned int i = 0; peer->site_known && i < peer->site.nwanted; i++) {
		const struct prefix *p = &peer->site.wanted[i];
		bool there = false;

		for (unsigned int k = 0; k < n && !there; k++)
			there = rules[k].peer == (int8_t)index &&
				among(p, rules[k].near, rules[k].nnear);
		if (there)
			continue;
		snprintf(
			out->text, MIRROR_TEXT,
			"peer %s has a rule for hosts %s here, and no rule here has them with that "
			"peer, so their connections are refused",
			peer->name, prefix_str(p, text));
		snprintf(out->mend, MIRROR_TEXT,
			 "add the peer's rule here with lan and wan exchanged and peer = %s, or "
			 "correct the prefixes",
			 peer->name);
		return true;
	}
	return false;
}

bool mirror_fault(const struct rule *rules, unsigned int n, unsigned int index,
		  const struct session_info *peer, struct mirror_fault *out)
{
	if (peer->state != SESSION_UP || !peer->known)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (rules[i].peer == (int8_t)index && missing_there(&rules[i], peer, out))
			return true;
	return missing_here(rules, n, index, peer, out);
}

bool mirror_unsealed(const struct rule *r, unsigned int index, const struct session_info *peer)
{
	return r->peer == (int8_t)index && r->seal && peer->state == SESSION_UP &&
	       !(peer->features & PEER_FEATURE_SEAL);
}

void mirror_wanted(const struct rule *rules, unsigned int n, unsigned int index,
		   struct proto_site *out)
{
	out->nwanted = 0;
	out->more = false;
	for (unsigned int i = 0; i < n; i++) {
		if (rules[i].peer != (int8_t)index)
			continue;
		for (unsigned int k = 0; k < rules[i].nfar; k++) {
			out->more |= out->nwanted == PROTO_PREFIXES;
			if (out->nwanted < PROTO_PREFIXES)
				out->wanted[out->nwanted++] = rules[i].far[k];
		}
	}
}

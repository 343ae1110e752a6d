// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The surest cause comes first: what the peer said, or what only one mistake explains; then what
 * the network said; silence last.
 */
#include "control/peer_cause.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void __attribute__((format(printf, 2, 3))) put(char *buf, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, PEER_CAUSE_TEXT, fmt, ap);
	va_end(ap);
}

/* What the peer has said, or why its datagrams were refused. */
static bool said(const struct session_info *si, struct peer_cause *out)
{
	const struct {
		bool so;
		const char *text, *mend;
	} known[] = {
		{si->other_version, "it speaks another version of the protocol",
		 "install the same release of longhaul at both ends"},
		{si->other_key, "it has another key: what it sends fails authentication",
		 "copy the key file of one appliance to the other, then reload that one"},
		{si->reflected, "this appliance's own datagrams come back from its address",
		 "set 'address' of the peer to the other appliance's address, not to an own one"},
		{si->calls, "its datagrams arrive here, ours do not arrive there",
		 "open the UDP port in the firewall there, and compare 'address' and 'port' of "
		 "this appliance in its configuration"},
		{si->end == SESSION_END_REMOVED,
		 "it has removed this appliance from its configuration",
		 "remove the peer here, too, or add this appliance there again"},
		{si->end == SESSION_END_STOPPED, "longhauld was stopped there",
		 "start it there: systemctl start longhauld"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!known[i].so)
			continue;
		put(out->text, "%s", known[i].text);
		put(out->mend, "%s", known[i].mend);
		return true;
	}
	return false;
}

/* What this host or the network answers. */
static bool answered(const struct view_peer *peer, bool heard, int err, const char *addr,
		     struct peer_cause *out)
{
	switch (err) {
	case 0:
		return false;
	case ECONNREFUSED:
		put(out->text, "%s answers that nothing listens on its UDP port %u", addr,
		    peer->port);
		put(out->mend, "start longhauld there, and compare its 'port', %u here",
		    peer->port);
		return true;
	case EHOSTUNREACH:
	case EHOSTDOWN:
		put(out->text, "no machine answers at %s%s", addr,
		    heard ? " any more: the link is cut, or that machine is off" : "");
		put(out->mend, "compare 'address' with that of the other appliance; look at the "
			       "link and at that machine");
		return true;
	case ENETUNREACH:
	case ENETDOWN:
		put(out->text, "this host has no way to %s", addr);
		put(out->mend,
		    "set the bridge up, give it its address and, between routers, a route: ip "
		    "addr, ip route get %s",
		    addr);
		return true;
	case EPERM:
	case EACCES:
		put(out->text, "a firewall does not let datagrams to %s port %u leave", addr,
		    peer->port);
		put(out->mend, "open UDP port %u in the firewall of this host", peer->port);
		return true;
	default:
		put(out->text, "datagrams to %s cannot be sent: %s", addr, strerror(err));
		put(out->mend, "look at the routes and the firewall of this host");
		return true;
	}
}

/* Whether this host itself refuses to send: a peer that still calls cannot know more of it. */
static bool unsent(int err)
{
	return err == ENETUNREACH || err == ENETDOWN || err == EPERM || err == EACCES;
}

/* The configured address is silent, and datagrams come from another one. */
static bool elsewhere(const struct view_peer *peer, const struct session_info *si,
		      const struct peer_signs *signs, const char *addr, struct peer_cause *out)
{
	bool absent = !signs->trouble || signs->trouble == EHOSTUNREACH ||
		      signs->trouble == EHOSTDOWN || signs->trouble == ECONNREFUSED;
	char from[IP_ADDR_STRLEN];

	if (!signs->stranger || si->heard || !absent)
		return false;
	put(out->text,
	    "nothing came from %s port %u, but datagrams come from %s port %u, which is no "
	    "peer's",
	    addr, peer->port, ip_addr_str(&signs->addr, from), signs->port);
	put(out->mend, "if that is the other appliance, set 'address' and 'port' of the "
		       "peer to it");
	return true;
}

static void silent(const struct view_peer *peer, const struct session_info *si, const char *addr,
		   struct peer_cause *out)
{
	if (si->heard) {
		put(out->text,
		    "nothing has come from it for %llu s, after %llu session%s: the link "
		    "is cut, or its machine is off",
		    (unsigned long long)(si->heard_ns / 1000000000),
		    (unsigned long long)si->sessions, si->sessions == 1 ? "" : "s");
		put(out->mend, "look at the link first, then at that machine; custody waits for "
			       "peer-timeout");
	} else {
		put(out->text, "nothing has ever come from %s port %u", addr, peer->port);
		put(out->mend,
		    "is longhauld running there, is UDP port %u open, and is 'address' "
		    "right at both ends?",
		    peer->port);
	}
}

bool peer_cause(const struct view_peer *peer, const struct session_info *si,
		const struct peer_signs *signs, struct peer_cause *out)
{
	static const struct peer_signs nothing;
	static const struct ip_addr unknown;
	char addr[IP_ADDR_STRLEN];

	if (si->state == SESSION_UP)
		return false;
	if (!signs)
		signs = &nothing;
	ip_addr_str(&peer->addr, addr);
	if (peer->host && ip_addr_eq(&peer->addr, &unknown)) {
		put(out->text, "its name %s has no address", peer->host);
		put(out->mend, "look at the name service (getent hosts %s), or write its address",
		    peer->host);
	} else if (si->calls && unsent(signs->trouble)) {
		(void)answered(peer, si->heard, signs->trouble, addr, out);
	} else if (!said(si, out) && !elsewhere(peer, si, signs, addr, out) &&
		   !answered(peer, si->heard, signs->trouble, addr, out)) {
		silent(peer, si, addr, out);
	}
	return true;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What decoding (proto_get.c) and encoding (proto_put.c) share: flag bits, and the rules for the
 * content of messages (proto_rules.c). Both directions run the same checks on the decoded form, so
 * that nothing is sent that a receiver of the same version refuses.
 */
#ifndef LONGHAUL_PEER_PROTO_PRIV_H
#define LONGHAUL_PEER_PROTO_PRIV_H

#include "peer/proto.h"

/* Flag bits by message; all others must be 0. */
#define F_CHALLENGE_SEEK	0x01u
#define F_CHALLENGE_ESTABLISHED 0x02u
#define F_HELLO_MORE		0x01u
#define F_SITE_MORE		0x01u
#define F_PROBE_LAST		0x01u
#define F_OPEN_RESUME		0x01u
#define F_OPEN_COUNTED		0x01u /* of an offer */
#define F_OPEN_ONE_READ		0x02u
#define F_PROGRESS_ACKABLE	0x01u
#define F_PROGRESS_AGAIN	0x02u
#define F_PROGRESS_ANNOUNCED	0x08u
#define F_PROGRESS_DIFFERS	0x10u
#define F_PROGRESS_BYPASSED	0x20u
#define F_PROGRESS_REPAIRED	0x40u
#define F_ANSWERS_ANNOUNCE	0x01u
#define F_METER_BOX		0x01u
#define F_OPEN_ORDERED		0x08u
#define F_OPEN_OFFER		0x20u
#define F_OPEN_SEALED		0x40u
#define F_OPEN_OWN		0x80u
/* Versions without seals set these; they mean nothing now. */
#define F_OPEN_OLD		0x14u
#define F_CLOSE_BY_OPENER	0x01u
#define F_ORDER_BY_OPENER	0x01u
#define F_ORDER_MISSING		0x02u

/* Ports that are down, in SITE */
#define SITE_LAN_DOWN 0x01u
#define SITE_WAN_DOWN 0x02u

/* A hole lies within the span in which PSNs can be compared at all. */
#define SPAN_MAX (1u << 23)

/** proto_hello_ok, proto_site_ok, proto_probe_ok, proto_report_ok - whether a message with this
 *  content may be sent or believed. */
bool proto_hello_ok(const struct proto_hello *h);
bool proto_site_ok(const struct proto_site *t);
bool proto_probe_ok(const struct proto_probe *p);
bool proto_report_ok(const struct report *r);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The encoder of a message that was decoded. */
#ifndef LONGHAUL_TESTS_PROTO_ENCODE_H
#define LONGHAUL_TESTS_PROTO_ENCODE_H

#include "peer/proto.h"

static inline int proto_encode(uint8_t *buf, size_t room, const struct proto_message *m)
{
	switch (m->type) {
	case PROTO_CHALLENGE:
		return proto_put_challenge(buf, room, &m->challenge);
	case PROTO_HELLO:
		return proto_put_hello(buf, room, &m->hello);
	case PROTO_HEARTBEAT:
		return proto_put_heartbeat(buf, room, &m->heartbeat);
	case PROTO_BYE:
		return proto_put_bye(buf, room, m->bye);
	case PROTO_SITE:
		return proto_put_site(buf, room, &m->site);
	case PROTO_PROBE:
		return proto_put_probe(buf, room, &m->probe);
	case PROTO_PROBED:
		return proto_put_probed(buf, room, &m->probed);
	default:
		return proto_put_report(buf, room, &m->report);
	}
}

#endif

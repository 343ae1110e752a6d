/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What travels inside a datagram once it is decrypted: a sequence of messages, each
 *
 *	type (1) flags (1) length of the body (2) body
 *
 * all big-endian. This is encoding and decoding only; session.c decides which messages are allowed
 * when. A message is taken as a whole or not at all: one field out of range refuses it, and
 * decoding goes on with the next message. A type that this version does not know is skipped by its
 * length. A length that runs past the datagram ends it. doc/peer-protocol.md is the specification.
 */
#ifndef LONGHAUL_PEER_PROTO_H
#define LONGHAUL_PEER_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/report.h"
#include "rule/rule.h"

#define PROTO_VERSION	 1
#define PROTO_HDR	 4  /* type, flags, length */
#define PROTO_NAME	 64 /* node name with its final zero byte */
#define PROTO_PREFIXES	 32 /* prefixes that a HELLO can name */
#define PROTO_SALT	 32
/* Longest message of each kind that this version writes, header included. */
#define PROTO_HELLO_MAX	 (PROTO_HDR + 19 + (PROTO_NAME - 1) + PROTO_PREFIXES * 17)
#define PROTO_SITE_MAX	 (PROTO_HDR + 8 + PROTO_PREFIXES * 17)
#define PROTO_PROBE_LEN	 (PROTO_HDR + 14) /* without padding */
#define PROTO_REPORT_MAX (PROTO_HDR + 63 + REPORT_HOLES * 6 + 1 + REPORT_AGAIN * 3)

enum proto_type {
	PROTO_CHALLENGE = 1, /* salts of the handshake */
	PROTO_HELLO = 2,
	PROTO_HEARTBEAT = 3,
	PROTO_BYE = 4,
	PROTO_SITE = 5,
	PROTO_PROBE = 6,
	PROTO_PROBED = 7,
	PROTO_LANE_OPEN = 16,
	PROTO_LANE_ACCEPT = 17,
	PROTO_LANE_REFUSE = 18,
	PROTO_LANE_PROGRESS = 19,
	PROTO_LANE_CLOSE = 20,
	PROTO_LANE_ANSWERS = 21,
	PROTO_LANE_ORDER = 24,
	PROTO_METER = 26,
	PROTO_LANE_AHEAD = 27,
};

/**
 * struct proto_challenge
 * @salt: the sender's own, random; half of what the session keys are made of
 * @echo: the salt that the sender has heard, zero when none
 * @seek: the sender has no session and wants one
 * @established: the sender has a session made of exactly these two salts
 */
struct proto_challenge {
	uint8_t salt[PROTO_SALT], echo[PROTO_SALT];
	bool seek, established;
};

/* It sends a heartbeat each 50 ms while it is up. 0x02, 0x08, 0x10, 0x40, 0x80, 0x200, 0x400:
 * PEER_FEATURE_* (engine/report.h); 0x01, 0x04: from versions of protocol 1 without seals */
#define PROTO_F_BEATS	  0x20u
/* METER has the fields that struct meter.by_box marks as known */
#define PROTO_F_METER_BOX 0x100u
/* It answers PROBE. 0x800: PEER_FEATURE_* */
#define PROTO_F_PROBE	  0x1000u
/* What this version understands. */
#define PROTO_FEATURES	  (PROTO_F_BEATS | PROTO_F_METER_BOX | PROTO_F_PROBE)

/**
 * struct proto_hello - who a node is and what it serves.
 * @version:  highest protocol version that it speaks
 * @boot:     boot epoch: random, drawn once per process; never 0
 * @features: PROTO_F_*: things beyond version 1 that it understands; unknown bits are ignored
 * @window:   stream packets of one lane that it can hold out of order, 0: unknown
 * @prefix:   the hosts near it; @more: and others that found no place here
 * @name:     1 to 63 of [A-Za-z0-9._-]
 */
struct proto_hello {
	uint8_t version;
	uint64_t boot;
	uint32_t features, window;
	char name[PROTO_NAME];
	uint8_t nprefix;
	bool more;
	struct prefix prefix[PROTO_PREFIXES];
};

/**
 * struct proto_heartbeat
 * @sent: the sender's clock, ns; the receiver only sends it back
 * @echo: @sent of the newest heartbeat heard from the other side, 0 when none
 * @held_us: how long ago that arrived, us; 0xffffffff: longer than fits
 */
struct proto_heartbeat {
	uint64_t sent, echo;
	uint32_t held_us;
};

/**
 * struct proto_site - what the receiver cannot see but its operator must know. Ports: LAN, WAN.
 * @mtu:     of the ports, 0: not known
 * @down:    the port is down or has no carrier
 * @longest: longest packet that left by the WAN port lately, bytes from the IP header on
 * @wanted:  hosts that the sender's rules look for beyond the receiver; @more: and others
 */
struct proto_site {
	uint16_t mtu[2], longest;
	bool down[2], more;
	uint8_t nwanted;
	struct prefix wanted[PROTO_PREFIXES];
};

/**
 * struct proto_probe - a datagram that was padded to see whether the link carries it (probe.c).
 * Lengths are bytes of a packet, from the IP header on.
 * @number: of the round; @size: of the packet that this is in; @last: of a burst
 * @carried: longest packet that the receiver got, as far as the sender knows, 0: not known
 * @refused: shortest that does not arrive there, 0: none
 * @longest: that the sender's hosts send there now, 0: not known
 * @padding: bytes
 */
struct proto_probe {
	uint32_t number;
	uint16_t size, carried, refused, longest, padding;
	bool last;
};

/** struct proto_probed - @size: longest packet of the round @number that came. */
struct proto_probed {
	uint32_t number;
	uint16_t size;
	bool last;
};

enum proto_bye_reason {
	BYE_SHUTDOWN = 1, /* the process ends */
	BYE_REMOVED,	  /* the peer is no longer configured */
	BYE_REASONS,
};

/** struct proto_message - one decoded message; @type tells which member is valid. */
struct proto_message {
	enum proto_type type;
	union {
		struct proto_challenge challenge;
		struct proto_hello hello;
		struct proto_heartbeat heartbeat;
		enum proto_bye_reason bye;
		struct proto_site site;
		struct proto_probe probe;
		struct proto_probed probed;
		struct report report;
	};
};

enum proto_verdict {
	PROTO_END,	 /* no message left */
	PROTO_OK,	 /* a message */
	PROTO_UNKNOWN,	 /* a type that this version does not know; skipped */
	PROTO_MALFORMED, /* a message with a field out of range; skipped */
	PROTO_BROKEN,	 /* a length that runs past the end; nothing more can be read */
};

/**
 * proto_next - decode the next message.
 * @data, @len: the decrypted datagram
 * @pos:        where to read; start with 0. Moved past the message
 * Reads nothing outside @data .. @data + @len. @m is valid only with PROTO_OK. Every call with
 * another verdict than PROTO_END and PROTO_BROKEN moves @pos forward, so a loop over it ends.
 */
enum proto_verdict proto_next(const uint8_t *data, size_t len, size_t *pos,
			      struct proto_message *m);

/*
 * Encoders. Each writes one whole message to @buf and returns its length, or -EINVAL a field is out
 *  of range: a receiver would refuse it -ENOSPC it does not fit into @room bytes
 */
int proto_put_challenge(uint8_t *buf, size_t room, const struct proto_challenge *c);
int proto_put_hello(uint8_t *buf, size_t room, const struct proto_hello *h);
int proto_put_heartbeat(uint8_t *buf, size_t room, const struct proto_heartbeat *h);
int proto_put_bye(uint8_t *buf, size_t room, enum proto_bye_reason reason);
int proto_put_site(uint8_t *buf, size_t room, const struct proto_site *t);
int proto_put_probe(uint8_t *buf, size_t room, const struct proto_probe *p);
int proto_put_probed(uint8_t *buf, size_t room, const struct proto_probed *p);
int proto_put_report(uint8_t *buf, size_t room, const struct report *r);

/** proto_name_ok - whether @name may be a node's name. */
bool proto_name_ok(const char *name);

#endif

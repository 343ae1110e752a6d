/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The envelope of a datagram: headers in clear, keys, sealing and opening, replay window.
 * Everything cryptographic of the peer protocol is here and is libsodium's: XChaCha20-Poly1305
 * (IETF construction) to seal, keyed BLAKE2b through crypto_kdf and crypto_generichash to derive.
 *
 * Two kinds of datagram:
 *
 *	HELLO	"LH" version(1) kind(1) nonce(24) sealed messages, tag(16)
 *	DATA	"LH" version(1) kind(1) session id(8) sequence number(8) sealed messages, tag(16)
 *
 * The header is authenticated as associated data. Keys, from the pre-shared key P:
 *
 *	hello key = kdf(P, 1, "lhpeerps")	both directions
 *	root      = kdf(P, 2, "lhpeerps")
 *	session   = blake2b(key root, "longhaul peer session 1", lower salt, higher salt)
 *	keys, ids = kdf(session, 1 .. 3, "lhpeerss")	one of each per direction
 *
 * Nonces never meet the same key twice:
 * - HELLOs of both sides share a key for the whole life of P, so theirs are 192 bits at random.
 * - a DATA nonce is the sequence number. Its key belongs to one direction of one session, and a
 *   session is made of a salt of ours that is used for one session only (session.c sees to that),
 *   so even a peer that repeats its salts cannot make us derive a key twice.
 * - "direction" is which side has the lower salt. Equal salts are refused.
 */
#ifndef LONGHAUL_PEER_SEAL_H
#define LONGHAUL_PEER_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/key.h"
#include "peer/proto.h"

#define SEAL_TAG       16
#define SEAL_KEY       32
#define SEAL_ID	       8
#define SEAL_HELLO_HDR 28
#define SEAL_DATA_HDR  20
#define REPLAY_WINDOW  1024u

enum seal_kind {
	SEAL_HELLO = 1,
	SEAL_DATA = 2,
};

/** enum seal_verdict - what the header in clear tells. */
enum seal_verdict {
	SEAL_IS_HELLO,
	SEAL_IS_DATA,
	SEAL_FOREIGN,	  /* not this protocol, or too short for its kind */
	SEAL_BAD_VERSION, /* this protocol, another version */
};

/** struct seal_psk - what is kept of a pre-shared key. */
struct seal_psk {
	uint8_t hello[SEAL_KEY], root[SEAL_KEY];
};

/**
 * struct seal_session - keys of one session, seen from one side.
 * @tx_seq: sequence number of the last datagram sent
 */
struct seal_session {
	uint8_t tx_key[SEAL_KEY], rx_key[SEAL_KEY];
	uint8_t tx_id[SEAL_ID], rx_id[SEAL_ID];
	uint64_t tx_seq;
};

/** seal_init - start libsodium; 0 or -EIO. Any number of times. */
int seal_init(void);

void seal_psk_init(struct seal_psk *k, const uint8_t psk[PEER_KEY_LEN]);

/** seal_session_init - keys for salts @own and @other. 0, or -EINVAL when they are equal. */
int seal_session_init(struct seal_session *s, const struct seal_psk *k,
		      const uint8_t own[PROTO_SALT], const uint8_t other[PROTO_SALT]);

/** seal_classify - look at the header of @len bytes at @data; costs the same for any length. */
enum seal_verdict seal_classify(const uint8_t *data, size_t len);

/** seal_version - the version byte of a datagram that is SEAL_BAD_VERSION. */
uint8_t seal_version(const uint8_t *data);

/** seal_data_id, seal_data_seq - fields of a datagram that is SEAL_IS_DATA. */
const uint8_t *seal_data_id(const uint8_t *data);
uint64_t seal_data_seq(const uint8_t *data);

/**
 * seal_hello, seal_data - seal in place: @len bytes of messages stand at @buf + SEAL_HELLO_HDR or
 * SEAL_DATA_HDR; header and tag are added. Returns the length of the datagram; @buf has room for
 * it.
 * @nonce: 24 random bytes
 */
size_t seal_hello(const struct seal_psk *k, uint8_t *buf, size_t len, const uint8_t nonce[24]);
size_t seal_data(struct seal_session *s, uint8_t *buf, size_t len);

/**
 * seal_open_hello, seal_open_data - verify and decrypt a datagram of that kind into @out, which has
 * room for @len bytes. Length of the messages, or -EBADMSG. Does not look for replays.
 */
int seal_open_hello(const struct seal_psk *k, const uint8_t *data, size_t len, uint8_t *out);
int seal_open_data(const struct seal_session *s, const uint8_t *data, size_t len, uint8_t *out);

/**
 * struct replay - which of the last REPLAY_WINDOW sequence numbers were seen. Zero is the initial
 * state. Number 0 is never sent.
 */
struct replay {
	uint64_t high;
	uint64_t seen[REPLAY_WINDOW / 64];
};

enum replay_verdict {
	REPLAY_FRESH,
	REPLAY_SEEN,
	REPLAY_TOO_OLD,
};

/** replay_check - whether @seq is new. Changes nothing: ask before the work of opening. */
enum replay_verdict replay_check(const struct replay *r, uint64_t seq);

/** replay_mark - @seq was seen; only after the datagram proved authentic. */
void replay_mark(struct replay *r, uint64_t seq);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "peer/seal.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "wire/bytes.h"

#define OFF_VERSION 2
#define OFF_KIND    3
#define OFF_NONCE   4
#define OFF_ID	    4
#define OFF_SEQ	    12

#define NONCE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

_Static_assert(SEAL_TAG == crypto_aead_xchacha20poly1305_ietf_ABYTES, "tag");
_Static_assert(SEAL_KEY == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key");
_Static_assert(SEAL_KEY == crypto_kdf_KEYBYTES && PEER_KEY_LEN == crypto_kdf_KEYBYTES, "kdf key");
_Static_assert(SEAL_HELLO_HDR == OFF_NONCE + NONCE, "nonce");
_Static_assert(SEAL_DATA_HDR == OFF_SEQ + 8, "sequence number");
_Static_assert(2 * SEAL_ID >= crypto_kdf_BYTES_MIN, "both ids come from one derivation");

int seal_init(void)
{
	return sodium_init() < 0 ? -EIO : 0;
}

void seal_psk_init(struct seal_psk *k, const uint8_t psk[PEER_KEY_LEN])
{
	static const char ctx[crypto_kdf_CONTEXTBYTES + 1] = "lhpeerps";

	crypto_kdf_derive_from_key(k->hello, sizeof(k->hello), 1, ctx, psk);
	crypto_kdf_derive_from_key(k->root, sizeof(k->root), 2, ctx, psk);
}

int seal_session_init(struct seal_session *s, const struct seal_psk *k,
		      const uint8_t own[PROTO_SALT], const uint8_t other[PROTO_SALT])
{
	static const char ctx[crypto_kdf_CONTEXTBYTES + 1] = "lhpeerss";
	static const char label[] = "longhaul peer session 1";
	uint8_t master[crypto_kdf_KEYBYTES], ids[2 * SEAL_ID];
	int order = memcmp(own, other, PROTO_SALT);
	bool low = order < 0;
	crypto_generichash_state h;

	if (order == 0)
		return -EINVAL;

	crypto_generichash_init(&h, k->root, sizeof(k->root), sizeof(master));
	crypto_generichash_update(&h, (const uint8_t *)label, sizeof(label) - 1);
	crypto_generichash_update(&h, low ? own : other, PROTO_SALT);
	crypto_generichash_update(&h, low ? other : own, PROTO_SALT);
	crypto_generichash_final(&h, master, sizeof(master));

	/* The side with the lower salt sends with key 1, the other with key 2. */
	crypto_kdf_derive_from_key(low ? s->tx_key : s->rx_key, SEAL_KEY, 1, ctx, master);
	crypto_kdf_derive_from_key(low ? s->rx_key : s->tx_key, SEAL_KEY, 2, ctx, master);
	crypto_kdf_derive_from_key(ids, sizeof(ids), 3, ctx, master);
	memcpy(low ? s->tx_id : s->rx_id, ids, SEAL_ID);
	memcpy(low ? s->rx_id : s->tx_id, ids + SEAL_ID, SEAL_ID);
	s->tx_seq = 0;

	sodium_memzero(master, sizeof(master));
	sodium_memzero(&h, sizeof(h));
	return 0;
}

enum seal_verdict seal_classify(const uint8_t *data, size_t len)
{
	if (len <= OFF_KIND || data[0] != 'L' || data[1] != 'H')
		return SEAL_FOREIGN;
	if (data[OFF_VERSION] != PROTO_VERSION)
		return SEAL_BAD_VERSION;
	if (data[OFF_KIND] == SEAL_HELLO && len >= SEAL_HELLO_HDR + SEAL_TAG)
		return SEAL_IS_HELLO;
	if (data[OFF_KIND] == SEAL_DATA && len >= SEAL_DATA_HDR + SEAL_TAG)
		return SEAL_IS_DATA;
	return SEAL_FOREIGN;
}

uint8_t seal_version(const uint8_t *data)
{
	return data[OFF_VERSION];
}

const uint8_t *seal_data_id(const uint8_t *data)
{
	return data + OFF_ID;
}

uint64_t seal_data_seq(const uint8_t *data)
{
	return get_be64(data + OFF_SEQ);
}

static void header(uint8_t *buf, enum seal_kind kind)
{
	buf[0] = 'L';
	buf[1] = 'H';
	buf[OFF_VERSION] = PROTO_VERSION;
	buf[OFF_KIND] = (uint8_t)kind;
}

static void seq_nonce(uint8_t nonce[NONCE], uint64_t seq)
{
	memset(nonce, 0, NONCE);
	put_be64(nonce + NONCE - 8, seq);
}

static size_t seal(uint8_t *buf, size_t hdr, size_t len, const uint8_t *nonce, const uint8_t *key)
{
	unsigned long long sealed;

	crypto_aead_xchacha20poly1305_ietf_encrypt(buf + hdr, &sealed, buf + hdr, len, buf, hdr,
						   NULL, nonce, key);
	return hdr + (size_t)sealed;
}

static int open_(const uint8_t *data, size_t hdr, size_t len, const uint8_t *nonce,
		 const uint8_t *key, uint8_t *out)
{
	unsigned long long opened;

	if (crypto_aead_xchacha20poly1305_ietf_decrypt(out, &opened, NULL, data + hdr, len - hdr,
						       data, hdr, nonce, key) != 0)
		return -EBADMSG;
	return (int)opened;
}

size_t seal_hello(const struct seal_psk *k, uint8_t *buf, size_t len, const uint8_t nonce[24])
{
	header(buf, SEAL_HELLO);
	memcpy(buf + OFF_NONCE, nonce, NONCE);
	return seal(buf, SEAL_HELLO_HDR, len, buf + OFF_NONCE, k->hello);
}

size_t seal_data(struct seal_session *s, uint8_t *buf, size_t len)
{
	uint8_t nonce[NONCE];

	/* No wrap: 2^64 datagrams outlast any machine. */
	s->tx_seq++;
	header(buf, SEAL_DATA);
	memcpy(buf + OFF_ID, s->tx_id, SEAL_ID);
	put_be64(buf + OFF_SEQ, s->tx_seq);
	seq_nonce(nonce, s->tx_seq);
	return seal(buf, SEAL_DATA_HDR, len, nonce, s->tx_key);
}

int seal_open_hello(const struct seal_psk *k, const uint8_t *data, size_t len, uint8_t *out)
{
	return open_(data, SEAL_HELLO_HDR, len, data + OFF_NONCE, k->hello, out);
}

int seal_open_data(const struct seal_session *s, const uint8_t *data, size_t len, uint8_t *out)
{
	uint8_t nonce[NONCE];

	seq_nonce(nonce, seal_data_seq(data));
	return open_(data, SEAL_DATA_HDR, len, nonce, s->rx_key, out);
}

/* ---- replay window: bit seq % REPLAY_WINDOW of a ring, valid for (high - REPLAY_WINDOW, high]
 * ---- */

enum replay_verdict replay_check(const struct replay *r, uint64_t seq)
{
	if (seq > r->high)
		return REPLAY_FRESH;
	if (seq == 0 || r->high - seq >= REPLAY_WINDOW)
		return REPLAY_TOO_OLD;
	return r->seen[seq % REPLAY_WINDOW / 64] >> (seq % 64) & 1 ? REPLAY_SEEN : REPLAY_FRESH;
}

void replay_mark(struct replay *r, uint64_t seq)
{
	uint64_t was = r->high;

	if (seq > was) {
		/* First: if killed in here, the next process may take unseen numbers for seen, but
		 * never a seen one for fresh. */
		*(volatile uint64_t *)&r->high = seq;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (seq - was >= REPLAY_WINDOW)
			memset(r->seen, 0, sizeof(r->seen));
		else
			for (uint64_t n = was + 1; n < seq; n++)
				r->seen[n % REPLAY_WINDOW / 64] &= ~(1ull << (n % 64));
	}
	r->seen[seq % REPLAY_WINDOW / 64] |= 1ull << (seq % 64);
}

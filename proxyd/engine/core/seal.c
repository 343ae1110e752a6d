// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The seal: what two appliances send each other for a held lane shows that they sent it.
 *
 * Every frame of the lane that crosses the WAN between them bears its ICRC XORed with 32 bits:
 *
 *	SipHash-2-4(key of the lane; direction, extended PSN / 2)
 *
 * whose 64 bits are the tags of two PSNs. All else in the frame stays as it is. So:
 *
 *	- A frame that misses the far appliance has a wrong ICRC, and the host's NIC drops it. The
 *	  host never executes what bears other numbers than it expects.
 *	- A frame that misses the near appliance comes without a seal, and is not delivered
 *	  (link/seal_rx.c). Nor is what is forged without the key: that takes 2^32 tries.
 *	- No packet is needed to tell what was sent, and nothing waits for one.
 *
 * The ICRC remains the check against damage: the receiver computes it, XORs the tag, and compares.
 * That is no signature. A CRC is linear, so whoever can read a sealed frame and send another in its
 * place can forge one. Against him the link itself must be protected (MACsec, IPsec).
 *
 * The opener draws a key for each generation of the lane, and tells it in OPEN, which only the peer
 * can read. So a key of the peers may be rolled, and a session begin anew, and the lane goes on;
 * and what was recorded of one generation is no good in the next. Within a generation the PSN is
 * extended by the number of times that the true ACK has come round to 0: what was recorded is no
 * good a circle later either. Both ends count that, less than half a circle apart.
 *
 * A request that the opener has added (reads/own_request.c) bears another seal, SEAL_OWN. So the
 * acceptor knows that host and responder may number otherwise, should the opener lose its memory.
 *
 * Sealed is what has the handover PSN or a later one, in both directions. What is older was sent
 * when no appliance held the lane. Packets whose opcode nobody knows, congestion notifications and
 * messages of the connection manager have no seal; pushes have one of their own (announce/push.c).
 *
 * The opener seals from the first packet on, before the peer has agreed. Should the peer refuse,
 * it sends all of that once more as the host did (lane_send_rest()).
 *
 * When a lane is let go (near/let_go.c), either end has sealed packets under way to the other. They
 * are opened as before, until the connection has another lane: the hosts have the same numbers.
 *
 * row: ENG-19
 */
#include <sodium.h>

#include "engine/core/core.h"

_Static_assert(crypto_shorthash_KEYBYTES == 16 && crypto_shorthash_BYTES == 8, "SipHash-2-4");

uint64_t keyed_hash(const uint64_t key[2], const uint64_t *words, uint32_t n)
{
	uint8_t k[crypto_shorthash_KEYBYTES], in[HASH_WORDS * 8], out[crypto_shorthash_BYTES];

	put_le64(k, key[0]);
	put_le64(k + 8, key[1]);
	for (uint32_t i = 0; i < n; i++)
		put_le64(in + 8 * i, words[i]);
	crypto_shorthash(out, in, n * 8, k);
	return get_le64(out);
}

bool seal_possible(const struct engine *e, const struct rule *r)
{
	return !r->seal || r->peer == PEER_NONE ||
	       (e->peer_features[r->peer] & PEER_FEATURE_SEAL) != 0;
}

void seal_begin(struct engine *e, struct flow *fl)
{
	struct lane *l = &fl->lane;
	uint64_t what[3] = {e->cfg.seed, (uint64_t)flow_index(e, fl) << 32 | l->gen, e->now};

	l->sealed = true;
	l->seal = (struct seal){.from = l->una.psn};
	for (int i = 0; i < 2; i++, what[2] ^= UINT64_MAX)
		l->seal.key[i] = keyed_hash(what, what, 3);
}

void seal_tell(const struct lane *l, struct report *r)
{
	r->sealed = l->sealed;
	memcpy(r->seal_key, l->seal.key, sizeof(r->seal_key));
}

void seal_agree(struct lane *l, const struct report *r)
{
	l->sealed = r->sealed;
	memcpy(l->seal.key, r->seal_key, sizeof(l->seal.key));
}

bool seal_same(const struct lane *l, const struct report *r)
{
	return l->sealed == r->sealed &&
	       (!r->sealed || !memcmp(l->seal.key, r->seal_key, sizeof(r->seal_key)));
}

void seal_leave(struct lane *l, const struct lane *was)
{
	if (!was->sealed)
		return;
	l->seal = was->seal;
	l->seal.una = was->una.psn;
}

uint32_t seal_tag(struct engine *e, const struct lane *l, bool response, struct wire_psn psn)
{
	struct wire_psn una = l->sealed ? l->una.psn : l->seal.una;
	int64_t at = ((int64_t)l->seal.turns << 24 | una.v) + psn_diff(psn, una);
	uint64_t two = (uint64_t)at >> 1 | (uint64_t)response << 63;
	struct seal_tags *t = &e->cache.tags[(two ^ l->seal.key[0]) % SEAL_TAGS];

	if (at < (int64_t)l->seal.from.v)
		return 0;
	if (t->key != l->seal.key[0] || t->two != two)
		*t = (struct seal_tags){l->seal.key[0], two, keyed_hash(l->seal.key, &two, 1)};
	return (uint32_t)(t->hash >> (at & 1 ? 32 : 0));
}

uint32_t seal_of(struct engine *e, const struct lane *l, const uint8_t *data)
{
	uint32_t l3 = ETH_HLEN_ + (get_be16(data + 12) == ETHERTYPE_CTAG ? VLAN_HLEN_ : 0);
	uint32_t bth = l3 + (data[l3] >> 4 == 4 ? 20 : 40) + 8;

	return seal_tag(e, l, l->role == ROLE_ACCEPTOR,
			(struct wire_psn){get_be24(data + bth + 9)});
}

bool seal_sure(const struct lane *l)
{
	return l->sealed && l->accepted && !l->reopen;
}

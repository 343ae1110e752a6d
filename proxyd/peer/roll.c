// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two keys at a time, so that one can replace the other without a gap.
 *
 * A peer has one key or two. Either opens its HELLOs, and the answer uses the same key. While the
 * peer is down we seek under each key in turn, since the peer may know only one of them. So a key
 * is rolled in three steps, each at both appliances in any order: the new key as second, the new
 * key as first, the new key alone.
 *
 * When the first key changes while a session is up, we send a SEEK under the new first key. A peer
 * that knows the key answers as if it had lost sight of us (handshake.c), and a new session begins.
 * A peer that does not know it yet stays in the present session, and gets another SEEK from time to
 * time. Neither side goes down meanwhile, and datagrams of the former session are accepted for a
 * while.
 *
 * A session whose key was taken away ends at once: that key may have been stolen.
 *
 * Both sides can have proof of the same pair of salts at the same moment, each under another of the
 * two keys. Then both know both keys, and the session of the key with the lower HELLO key wins: the
 * other side changes over when it receives the peer's CONFIRM. No session key is derived twice by
 * that, since a change goes only to the lower key.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <syslog.h>

#include "peer/session_priv.h"

static bool same_key(const struct seal_psk *a, const struct seal_psk *b)
{
	return sodium_memcmp(a, b, sizeof(*a)) == 0;
}

int roll_index(const struct peer *p)
{
	for (unsigned int i = 0; p->state == SESSION_UP && i < p->nkeys; i++)
		if (same_key(&p->psk[i], &p->link.psk))
			return (int)i;
	return -1;
}

int session_peer_keys(struct session *s, unsigned int peer, const uint8_t (*keys)[PEER_KEY_LEN],
		      unsigned int n, uint64_t now_ns)
{
	struct peer *p;

	if (peer >= PEER_MAX || !n || n > SESSION_KEYS)
		return -EINVAL;
	p = &s->peer[peer];
	if (p->state == SESSION_UNUSED)
		return -ENOENT;
	sodium_memzero(p->psk, sizeof(p->psk));
	for (unsigned int i = 0; i < n; i++)
		seal_psk_init(&p->psk[i], keys[i]);
	p->nkeys = n;
	peer_note_refused(p);
	p->rolling = true;
	p->next_roll = now_ns;
	if (p->state != SESSION_UP)
		p->next_hello = now_ns;
	else if (roll_index(p) < 0)
		session_down(s, p, LOG_NOTICE, SESSION_END_KEY, ROLL_TAKEN, now_ns);
	return 0;
}

const struct seal_psk *roll_open(const struct peer *p, const uint8_t *data, size_t len,
				 uint8_t *plain, int *n)
{
	for (unsigned int i = 0; i < p->nkeys; i++) {
		*n = seal_open_hello(&p->psk[i], data, len, plain);
		if (*n >= 0)
			return &p->psk[i];
	}
	return NULL;
}

const struct seal_psk *roll_next(struct peer *p)
{
	return &p->psk[p->turn++ % p->nkeys];
}

bool roll_due(struct peer *p, uint64_t now)
{
	/* done as soon as the session is under the first key, whichever side began it */
	p->rolling &= roll_index(p) != 0;
	if (!p->rolling || now < p->next_roll)
		return false;
	p->next_roll = now + ROLL_NS;
	return true;
}

bool roll_adopt(struct peer *p, const struct seal_psk *psk)
{
	struct link *l = &p->link;
	struct seal_session keys;

	if (l->confirmed || memcmp(psk->hello, l->psk.hello, sizeof(psk->hello)) >= 0 ||
	    seal_session_init(&keys, psk, l->own, l->other) < 0)
		return false;
	/* if killed in here, the next process could derive the same keys and count from 1 again */
	peer_change(p, true);
	l->keys = keys;
	l->psk = *psk;
	memset(&l->replay, 0, sizeof(l->replay));
	l->hello_seq = l->beat_seq = 0;
	peer_change(p, false);
	sodium_memzero(&keys, sizeof(keys));
	return true;
}

void roll_keep(struct peer *p, const struct seal_psk *next, uint64_t now)
{
	struct link *l = &p->link;

	if (p->state != SESSION_UP || !l->confirmed || same_key(next, &l->psk))
		return;
	p->old = (struct old_link){
		.keys = l->keys, .replay = l->replay, .until = now + SALT_LIFE_NS};
}

int roll_rx_old(struct session *s, struct peer *p, const uint8_t *data, size_t len, uint64_t now)
{
	struct old_link *o = &p->old;
	uint64_t seq = seal_data_seq(data);
	int n;

	if (now >= o->until || memcmp(seal_data_id(data), o->keys.rx_id, SEAL_ID) != 0 ||
	    replay_check(&o->replay, seq) != REPLAY_FRESH)
		return -1;
	n = seal_open_data(&o->keys, data, len, s->plain);
	if (n >= 0)
		replay_mark(&o->replay, seq);
	return n;
}

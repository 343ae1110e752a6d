// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How two appliances that share a key find each other.
 *
 * Goals
 *	Nothing counts before it is authenticated, and nothing authenticated counts as fresh
 *	before it answers a challenge of ours. A HELLO that was recorded and is replayed at any
 *	time must neither start a session, nor end or change a running one, nor keep a dead one
 *	alive. Our own HELLOs, sent back to us, must not pass for the peer's. A peer that restarted
 *	is recognised within a round trip and a half; until it has proved itself, the session with
 *	its former process goes on.
 *	No roles: both sides run the same code and may start at the same instant.
 *	No forward secrecy: with the pre-shared key, recorded reports can be read. They bear no
 *	user data.
 *
 * Messages
 *	A HELLO datagram carries CHALLENGE (our salt, echo of theirs, two flags) and HELLO (who
 *	we are).
 *
 *	    SEEK     our next salt, and the salt heard last: "no session, talk to me"
 *	    ANSWER   our next salt, and theirs: "if that was you, echo my salt"
 *	    CONFIRM  both salts of our current session: "this is our session"
 *
 *	SEEK bears the seek flag, which says that the sender is down (or wants another key,
 *	roll.c), CONFIRM the established flag, ANSWER neither.
 *
 * A salt
 *	is 32 random bytes. It becomes part of one session at most: as soon as a session is made
 *	of it, it is forgotten and the next one is drawn. So a peer that echoes our *next* salt has
 *	heard from us since the last session began, and holds the key. That is the proof; it cannot
 *	be replayed later, because by then the salt is used up. For the same reason no DATA key is
 *	derived twice. A salt offered for SALT_LIFE_NS is replaced even if it was not used, and is
 *	valid for as long again, for answers that are under way. So an answer that the network
 *	holds back for longer is worthless.
 *
 * What is done with an authentic HELLO (salt S, echo E): the first rule that fits
 *	1 S is a salt of ours, or it bears our boot epoch: reflected, dropped
 *	2 S is the peer's salt of our session, and the HELLO does not claim to be established in
 *		another one: the peer is in this session, or will be when it knows. CONFIRM, unless
 *		it says established already
 *	3 E is our next salt: proof. New session of (our next salt, S).
 *		CONFIRM, unless it says established already
 *	4 we are down: SEEK, with S echoed
 *	5 it is established in another session, and ours is not confirmed: SEEK
 *	6 it seeks: ANSWER
 *	7 else dropped: an ANSWER that we did not ask for
 *
 *	Rule 7 keeps a replayed SEEK from making two healthy sides change keys: the replay causes
 *	an ANSWER, and its receiver did not seek. Only the proof changes state that matters, and a
 *	HELLO is never a sign of life. Every answer is as long as its question, goes to the address
 *	that the operator configured and takes a token from a bucket. HELLOs with proof have another
 *	bucket than those without, so that a flood of replays cannot keep a handshake from its
 *	CONFIRM.
 *	Rule 5 is for HELLOs that overtook each other while a salt was replaced: both sides can
 *	then have proof, of different pairs of salts. Each sees that from the other's CONFIRM.
 *
 * Examples (a, b: salts)
 *	both down     A: SEEK a,0       B: SEEK b,a              A has proof: session ab
 *	              A: CONFIRM a,b                             B has proof: session ab
 *	B restarted   B: SEEK b',0      A (up): ANSWER a',b'     B has proof: session a'b'
 *	              B: CONFIRM b',a'                           A has proof, leaves ab for a'b'
 *	CONFIRM lost  repeated each CONFIRM_NS until DATA under the new keys arrives
 *	replay to A   X: SEEK b_old,0   A (up): ANSWER a',b_old  B (up): not its salt, dropped
 */
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <syslog.h>

#include "peer/session_priv.h"

static bool spend(struct bucket *b, uint64_t now)
{
	uint64_t due = (now - b->refilled) / ANSWER_NS;

	if (due) {
		b->tokens =
			due >= ANSWERS_MAX - b->tokens ? ANSWERS_MAX : b->tokens + (uint32_t)due;
		b->refilled += due * ANSWER_NS;
	}
	if (!b->tokens)
		return false;
	b->tokens--;
	return true;
}

void handshake_new_salts(struct session *s, struct peer *p)
{
	memset(p->salt, 0, sizeof(p->salt));
	session_random(s, p->salt[0].b, PROTO_SALT);
}

_Static_assert(SEAL_HELLO_HDR + SEAL_TAG + PROTO_HDR + 2 * PROTO_SALT + PROTO_HELLO_MAX <=
		       SESSION_DATAGRAM_MIN,
	       "the longest HELLO");

/* The one place where a HELLO datagram is made. */
static void send_hello(struct session *s, struct peer *p, const struct seal_psk *psk,
		       const uint8_t *salt, const uint8_t *echo, bool seek, bool established)
{
	uint8_t buf[SESSION_DATAGRAM_MAX], nonce[24];
	struct proto_challenge c = {.seek = seek, .established = established};
	size_t room = sizeof(buf) - SEAL_HELLO_HDR - SEAL_TAG;
	uint8_t *at = buf + SEAL_HELLO_HDR;
	int n, m;

	memcpy(c.salt, salt, PROTO_SALT);
	memcpy(c.echo, echo, PROTO_SALT);
	n = proto_put_challenge(at, room, &c);
	if (n < 0)
		return;
	m = proto_put_hello(at + n, room - (size_t)n, &s->self);
	if (m < 0)
		return;
	session_random(s, nonce, sizeof(nonce));
	outbox_send(s, p, buf, seal_hello(psk, buf, (size_t)n + (size_t)m, nonce));
}

static void offer(struct session *s, struct peer *p, const struct seal_psk *psk,
		  const uint8_t *echo, bool seek, uint64_t now)
{
	struct salt *salt = &p->salt[0];

	if (salt->shown && now - salt->since >= SALT_LIFE_NS) {
		p->salt[1] = *salt;
		session_random(s, salt->b, PROTO_SALT);
		salt->shown = false;
	}
	if (!salt->shown) {
		salt->shown = true;
		salt->since = now;
	}
	p->last_hello = now;
	send_hello(s, p, psk, salt->b, echo, seek, false);
}

void handshake_seek(struct session *s, struct peer *p, const struct seal_psk *psk, uint64_t now)
{
	offer(s, p, psk, p->heard_salt, true, now);
}

void handshake_confirm(struct session *s, struct peer *p)
{
	send_hello(s, p, &p->link.psk, p->link.own, p->link.other, false, true);
}

static bool same(const uint8_t *a, const uint8_t *b)
{
	return sodium_memcmp(a, b, PROTO_SALT) == 0;
}

/* The salt of ours that @echo repeats, which proves that the peer received it; NULL when none. */
static const struct salt *proven(const struct peer *p, const uint8_t *echo, uint64_t now)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct salt *salt = &p->salt[i];

		if (salt->shown && now - salt->since < 2 * SALT_LIFE_NS && same(echo, salt->b))
			return salt;
	}
	return NULL;
}

static bool is_ours(const struct peer *p, const uint8_t *salt)
{
	return same(salt, p->salt[0].b) || same(salt, p->salt[1].b) ||
	       (p->state == SESSION_UP && same(salt, p->link.own));
}

static void establish(struct session *s, struct peer *p, const struct seal_psk *psk,
		      const struct salt *own, const struct proto_challenge *c,
		      const struct proto_hello *h, uint64_t now)
{
	bool was_up = p->state == SESSION_UP;
	bool restarted = p->known && p->hello.boot != h->boot;
	uint64_t old_boot = p->hello.boot;
	struct link *l = &p->link;
	struct seal_session keys;
	enum peer_event ev;
	bool rolled;

	if (seal_session_init(&keys, psk, own->b, c->salt) < 0)
		return; /* equal salts: handshake_rx() has refused them as reflected */

	/* What was queued for the peer's former process means nothing to the new one. */
	if (!was_up || restarted)
		outbox_drop(p);

	if (!restarted)
		roll_keep(p, psk, now);
	rolled = was_up && sodium_memcmp(psk, &l->psk, sizeof(*psk)) != 0;
	peer_change(p, true);
	sodium_memzero(l, sizeof(*l));
	l->psk = *psk;
	memcpy(l->own, own->b, PROTO_SALT);
	memcpy(l->other, c->salt, PROTO_SALT);
	l->keys = keys;
	sodium_memzero(&keys, sizeof(keys));
	handshake_new_salts(s, p); /* *own is no longer valid */

	l->started = l->heard = p->last_heard = now;
	l->next_confirm = now + CONFIRM_NS;
	p->was_heard = true;
	p->hello = *h;
	p->known = true;
	p->sessions++;
	if (!was_up) {
		p->state = SESSION_UP;
		p->since = now;
	}
	p->next_beat = now + s->cfg.heartbeat_ns;
	p->next_tell = now + CONFIRM_NS; /* by then both have the keys */
	peer_change(p, false);

	if (!c->established)
		handshake_confirm(s, p);
	outbox_heartbeat(s, p, now);

	if (restarted) {
		p->restarts++;
		session_say(s, p, LOG_NOTICE,
			    "restarted: node %s, boot %016" PRIx64 ", before it %016" PRIx64,
			    h->name, h->boot, old_boot);
		ev = PEER_RESTARTED;
	} else if (!was_up) {
		session_say(s, p, LOG_NOTICE, "up: node %s, boot %016" PRIx64, h->name, h->boot);
		ev = PEER_UP;
	} else {
		session_say(s, p, LOG_INFO, "new session: %s",
			    rolled ? "its key has changed" : "it had lost sight of this side");
		ev = PEER_AGAIN; /* also if rolled: it may have been down meanwhile */
	}
	s->sink.event(s->sink.ctx, session_index(s, p), ev, now);
}

static bool may_answer(struct peer *p, struct bucket *b, uint64_t now)
{
	if (spend(b, now))
		return true;
	p->counter[SC_LIMITED]++;
	return false;
}

static void take(struct session *s, struct peer *p, const struct seal_psk *psk,
		 const struct proto_challenge *c, const struct proto_hello *h, uint64_t now)
{
	bool up = p->state == SESSION_UP, seek;
	const struct salt *own;

	if (h->boot == s->self.boot || is_ours(p, c->salt)) {
		p->counter[SC_REFLECTED]++;
		if (session_may_say(p, ABOUT_REFLECTED, now))
			session_say(s, p, LOG_WARNING,
				    "this side's own HELLO came back from its address: the "
				    "peer's address is this node's own, or the path loops; check "
				    "the peer's address");
		return;
	}
	p->rx_datagrams++;

	if (up && same(c->salt, p->link.other) && (!c->established || same(c->echo, p->link.own))) {
		if (c->established && roll_adopt(p, psk))
			handshake_confirm(s, p);
		if (!c->established && may_answer(p, &p->proven, now))
			handshake_confirm(s, p);
		return;
	}
	own = proven(p, c->echo, now);
	if (own) {
		establish(s, p, psk, own, c, h, now);
		return;
	}

	p->counter[SC_UNPROVEN]++;
	p->called = now;
	memcpy(p->heard_salt, c->salt, PROTO_SALT);
	seek = !up || (c->established && !p->link.confirmed);
	if ((seek || c->seek) && may_answer(p, &p->unproven, now))
		offer(s, p, psk, c->salt, seek, now);
}

void handshake_rx(struct session *s, struct peer *p, const uint8_t *data, size_t len, uint64_t now)
{
	struct proto_challenge challenge;
	struct proto_hello hello;
	bool have_challenge = false, have_hello = false;
	struct proto_message m;
	enum proto_verdict v;
	size_t pos = 0;
	int n = 0;
	const struct seal_psk *psk = roll_open(p, data, len, s->plain, &n);

	if (!psk) {
		p->counter[SC_BAD_AUTH]++;
		if (session_may_say(p, ABOUT_AUTH, now))
			session_say(s, p, LOG_WARNING,
				    "a HELLO from its address fails authentication: put the same "
				    "key file on both appliances, unless a stranger is sending");
		return;
	}

	while ((v = proto_next(s->plain, (size_t)n, &pos, &m)) != PROTO_END) {
		if (v == PROTO_UNKNOWN) {
			p->counter[SC_UNKNOWN_TYPE]++;
		} else if (v != PROTO_OK) {
			/* Both messages or none. */
			p->counter[SC_MALFORMED]++;
			return;
		} else if (m.type == PROTO_CHALLENGE && !have_challenge) {
			challenge = m.challenge;
			have_challenge = true;
		} else if (m.type == PROTO_HELLO && !have_hello) {
			hello = m.hello;
			have_hello = true;
		} else {
			p->counter[SC_MISPLACED]++;
			return;
		}
	}
	if (!have_challenge || !have_hello) {
		p->counter[SC_MALFORMED]++;
		return;
	}
	p->rx_bytes += len;
	take(s, p, psk, &challenge, &hello, now);
}

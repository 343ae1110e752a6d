/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What session.c (life of a peer, timers), handshake.c (HELLOs), roll.c (two keys) and outbox.c
 * (what we send) share.
 */
#ifndef LONGHAUL_PEER_SESSION_PRIV_H
#define LONGHAUL_PEER_SESSION_PRIV_H

#include "peer/delay.h"
#include "peer/seal.h"
#include "peer/session.h"

#define MS  1000000ull
#define SEC 1000000000ull

#define SALT_LIFE_NS (10 * SEC) /* how long one salt is offered to whoever seeks */
#define HELLO_GAP_NS (100 * MS) /* HELLOs that a stranger can provoke are at least so far apart */
#define CALLED_NS    (2 * SEC)	/* so long a HELLO that proves nothing counts as a call */
#define CALLS	     3u		/* and so many of them are no handshake under way */
#define SEEK_FOR_NS  (5 * SEC)	/* so long they are no farther apart, to one that fell silent */
#define CONFIRM_NS   (250 * MS) /* CONFIRM, until it is known to have arrived */
#define TELL_NS	     (5 * SEC)	/* HELLO message in DATA: repeated, because one can be lost */
#define LOG_GAP_NS   (60 * SEC) /* between log lines that a stranger can provoke */
#define ROLL_NS	     (5 * SEC)	/* a peer that does not know our first key is asked again */
#define ANSWERS_MAX  8u		/* answers to HELLOs: a bucket of so many */
#define ANSWER_NS    (50 * MS)	/* and one more each so often */

/* PROGRESS messages that fit into one datagram, at most. */
#define QUEUED_MAX (SESSION_DATAGRAM_MAX / (PROTO_HDR + 34) + 1)

/** struct bucket - how many answers are left. */
struct bucket {
	uint32_t tokens;
	uint64_t refilled;
};

/** struct salt - @shown: it has been sent; @since: when first. One that was never sent proves
 *  nothing. */
struct salt {
	uint8_t b[PROTO_SALT];
	bool shown;
	uint64_t since;
};

/** struct queued - a PROGRESS or ANSWERS message waiting in the outbox, at @off of the datagram. */
struct queued {
	uint32_t lane, gen;
	uint16_t off, len;
	uint8_t type;
};

/**
 * struct link - the current session with a peer; meaningless unless it is UP.
 * @own, @other: the two salts that its keys are made of, and @psk, the key
 * @confirmed:   a datagram under these keys has arrived, so the other side has them too
 * @heard:       when the latest authentic datagram came
 * @hello_seq, @site_seq: sequence number of the newest datagram whose HELLO, SITE was taken
 * @beat_seq, @beat_sent, @beat_at: newest heartbeat: datagram's number, sender's clock, our clock
 */
struct link {
	uint8_t own[PROTO_SALT], other[PROTO_SALT];
	struct seal_psk psk;
	struct seal_session keys;
	struct replay replay;
	bool confirmed;
	uint64_t started, heard, next_confirm;
	uint64_t hello_seq, site_seq;
	uint64_t beat_seq, beat_sent, beat_at;
	struct delay delay;
};

/** struct old_link - the session before a change of keys; reports of it are taken @until then. */
struct old_link {
	struct seal_session keys;
	struct replay replay;
	uint64_t until;
};

enum log_about {
	ABOUT_VERSION,
	ABOUT_AUTH,
	ABOUT_REFLECTED,
	ABOUT_KINDS,
};

/**
 * struct peer
 * @psk, @nkeys: its keys, the one to begin with first
 * @turn:       which of them is the next to seek under, modulo @nkeys
 * @rolling, @next_roll: a session under another than the first is to be made anew; when to try
 * @changing:   keys and states are being replaced: whoever finds it so cannot go on with them
 * @left_up, @left: the process before this one knew it; it was up, and so it is when it is added
 * @salt:       ours for the next session, and the one that was offered before it
 * @heard_salt: the latest salt heard, zero when none: saves a seeking pair a round trip
 * @seek_until: it has just fallen silent: HELLOs come faster until then
 * @hello:      latest HELLO of a proven peer; @known: there was one
 * @noted:      its counters when it went down, or got other keys (peer_note_refused())
 * @own_site:   what we tell it of ours; @site: what it has told of its own
 * @called:     when its latest HELLO came that proved nothing; @end: how its latest session ended
 * @out:        datagram being filled: header, then @out_len bytes of messages
 */
struct peer {
	enum session_state state;
	bool changing, left, left_up;
	char name[RULE_NAME];
	struct seal_psk psk[SESSION_KEYS];
	unsigned int nkeys, turn;
	bool rolling;
	uint64_t next_roll;
	struct salt salt[2];
	uint8_t heard_salt[PROTO_SALT];
	struct link link;
	struct old_link old;
	uint64_t since;
	uint64_t next_hello, last_hello, next_beat, next_tell, seek_until;
	struct bucket proven, unproven;
	bool known;
	struct proto_hello hello;
	bool was_heard;
	uint64_t last_heard;
	uint64_t quiet_until[ABOUT_KINDS];
	uint8_t out[SESSION_DATAGRAM_MAX];
	size_t out_len;
	struct queued queued[QUEUED_MAX];
	unsigned int nqueued;
	uint64_t sessions, restarts, downs;
	uint64_t tx_datagrams, tx_bytes, rx_datagrams, rx_bytes, tx_reports, rx_reports;
	uint64_t counter[SC_COUNT];
	uint64_t noted[SC_COUNT];
	struct proto_site own_site, site;
	uint64_t called;
	enum session_end end;
};

struct session {
	uint64_t kept; /* SESSION_KEPT once it is made */
	struct session_config cfg;
	struct session_sink sink;
	struct proto_hello self;
	struct peer peer[PEER_MAX];
	uint8_t plain[SESSION_DATAGRAM_MAX]; /* the datagram being taken apart */
};

/* Memory that a session is in. */
#define SESSION_KEPT 0x6e6f697373657331ull

/** peer_change - @on: from here on what is known of @p is not to be believed by anybody else. */
static inline void peer_change(struct peer *p, bool on)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile bool *)&p->changing = on;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** peer_note_refused - what was refused until now is not why the peer will not be there. */
static inline void peer_note_refused(struct peer *p)
{
	memcpy(p->noted, p->counter, sizeof(p->noted));
}

/* session.c */
void session_say(struct session *s, struct peer *p, int prio, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool session_may_say(struct peer *p, enum log_about about, uint64_t now);
void session_random(struct session *s, void *buf, size_t len);
unsigned int session_index(const struct session *s, const struct peer *p);

/** session_down - a peer that was up is not any more; @why for the log. */
void session_down(struct session *s, struct peer *p, int prio, enum session_end end,
		  const char *why, uint64_t now);

/* roll.c */
#define ROLL_TAKEN "the key of its session was taken away"

/** roll_index - which of its keys the session is under, -1: none, or there is no session. */
int roll_index(const struct peer *p);
/** roll_open - the key that opens a HELLO, NULL; its messages are @plain, of @n bytes. */
const struct seal_psk *roll_open(const struct peer *p, const uint8_t *data, size_t len,
				 uint8_t *plain, int *n);
/** roll_next - the key to seek under now. */
const struct seal_psk *roll_next(struct peer *p);
/** roll_due - whether a session is to be made anew under the first key. */
bool roll_due(struct peer *p, uint64_t now);
/** roll_adopt - the peer has made our session of the same salts, but under @psk: change over, or
 *  false, when it will. */
bool roll_adopt(struct peer *p, const struct seal_psk *psk);
/** roll_keep - a session under @next follows the present one. */
void roll_keep(struct peer *p, const struct seal_psk *next, uint64_t now);
/** roll_rx_old - length of a datagram of the session before, in s->plain; -1: it is not. */
int roll_rx_old(struct session *s, struct peer *p, const uint8_t *data, size_t len, uint64_t now);

/* handshake.c */
/** handshake_rx - a datagram that looks like a HELLO. */
void handshake_rx(struct session *s, struct peer *p, const uint8_t *data, size_t len, uint64_t now);
/** handshake_seek - say HELLO under @psk to a peer that is down, or is to change keys. */
void handshake_seek(struct session *s, struct peer *p, const struct seal_psk *psk, uint64_t now);
/** handshake_confirm - show a peer that we have the current session. */
void handshake_confirm(struct session *s, struct peer *p);
/** handshake_new_salts - one of the old ones has been used, or there are none yet. */
void handshake_new_salts(struct session *s, struct peer *p);

/* outbox.c */
/** outbox_send - hand a finished datagram to the sink. */
void outbox_send(struct session *s, struct peer *p, const uint8_t *data, size_t len);
/** outbox_flush - seal and send what is queued; nothing happens when nothing is. */
void outbox_flush(struct session *s, struct peer *p);
/** outbox_drop - forget what is queued. */
void outbox_drop(struct peer *p);
int outbox_report(struct session *s, struct peer *p, const struct report *r);
void outbox_hello(struct session *s, struct peer *p);
void outbox_site(struct session *s, struct peer *p);
void outbox_heartbeat(struct session *s, struct peer *p, uint64_t now);
void outbox_bye(struct session *s, struct peer *p, enum proto_bye_reason reason);

#endif

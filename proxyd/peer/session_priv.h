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

#define SALT_LIFE_NS (10 * SEC) /* how long one salt is offered */
#define HELLO_GAP_NS (100 * MS) /* at least, between HELLOs that strangers can cause */
#define CALLED_NS    (2 * SEC)	/* a HELLO without proof counts as a call for so long */
#define CALLS	     3u		/* so many calls are no handshake under way */
#define SEEK_FOR_NS  (5 * SEC)	/* time of HELLOs at HELLO_GAP_NS to a peer that fell silent */
#define CONFIRM_NS   (250 * MS) /* between CONFIRMs, until one has arrived */
#define TELL_NS	     (5 * SEC)	/* between HELLO messages in DATA, which can be lost */
#define LOG_GAP_NS   (60 * SEC) /* between log lines that strangers can cause */
#define ROLL_NS	     (5 * SEC)	/* between SEEKs under a first key that the peer does not know */
#define ANSWERS_MAX  8u		/* answers to HELLOs: size of the bucket */
#define ANSWER_NS    (50 * MS)	/* interval at which it gains one */

/* PROGRESS messages that fit into one datagram, at most. */
#define QUEUED_MAX (SESSION_DATAGRAM_MAX / (PROTO_HDR + 34) + 1)

/** struct bucket - answers that may be sent now. */
struct bucket {
	uint32_t tokens;
	uint64_t refilled;
};

/** struct salt - @shown: it has been sent; @since: when first. A salt that was never sent proves
 * nothing. */
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

/* Sizes in a burst of probes, at most. */
#define PROBE_SIZES 16

/**
 * struct probing - what is known of the packets that the link carries (probe.c).
 * @to, @from:   by our probes, and as the peer says of its own
 * @told_seq:    sequence number of the newest datagram whose PROBE was taken
 * @number, @size, @n: the round, and the sizes of its bursts, the longest first
 * @bursts:      that are still to be sent; @full: there were enough of them to tell
 * @came, @ended: longest of the round that came; when the end of a burst had come, 0: not yet
 * @at:          when the next round begins, or this one is given up
 * @low, @high:  while the limit is looked for: it came, it did not. @high 0: it is not
 * @heard, @heard_size: round of the peer, and the longest that came of it
 */
struct probing {
	struct session_reach to, from;
	uint64_t told_seq, ended, at;
	uint32_t number, heard;
	uint16_t heard_size;
	uint16_t size[PROBE_SIZES];
	uint8_t n, bursts;
	bool full, waits;
	uint16_t came, low, high;
};

/**
 * struct link - the current session with a peer; meaningless unless it is UP.
 * @own, @other: the two salts that its keys are made of, and @psk, the key
 * @confirmed:   a datagram under these keys has arrived, so the peer has them, too
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
	struct probing probing;
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
 * @psk, @nkeys: its keys, the preferred one first
 * @turn:       which of them is the next to seek under, modulo @nkeys
 * @rolling, @next_roll: the session's key is not the first: replace the session; when to try
 * @changing:   keys and states are being replaced: a process that finds it set cannot use them
 * @left_up, @left: the former process had it, and had it up: it is up when it is added
 * @salt:       ours for the next session, and the one offered before
 * @heard_salt: the latest salt heard, zero when none: saves a seeking pair a round trip
 * @seek_until: it has just fallen silent: HELLOs come faster until then
 * @hello:      latest HELLO of a proven peer; @known: there was one
 * @noted:      its counters when it went down or got other keys (peer_note_refused())
 * @own_site:   what it is told of our ports and rules; @site: what it told of its own
 * @want, @longest, @overhead: see session_path()
 * @called:     when its latest HELLO without proof came; @end: how its latest session ended
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
	uint16_t want, longest, overhead;
};

struct session {
	uint64_t kept; /* SESSION_KEPT once it is initialized */
	struct session_config cfg;
	struct session_sink sink;
	struct proto_hello self;
	struct peer peer[PEER_MAX];
	uint8_t plain[SESSION_PROBE_MAX]; /* the datagram being decoded */
};

/* Marks memory that holds sessions. */
#define SESSION_KEPT 0x6e6f697373657331ull

/** peer_change - @on: from here on another process must not go on with what is in @p. */
static inline void peer_change(struct peer *p, bool on)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile bool *)&p->changing = on;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** peer_note_refused - counts of refusals until now must not explain why the peer goes down later.
 */
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

/** session_down - take a peer down that was up; @why for the log. */
void session_down(struct session *s, struct peer *p, int prio, enum session_end end,
		  const char *why, uint64_t now);

/* roll.c */
#define ROLL_TAKEN "the key of its session was taken away"

/** roll_index - which of its keys the session is under, -1: none, or there is no session. */
int roll_index(const struct peer *p);
/** roll_open - the key that opens a HELLO, or NULL; @plain gets its messages, @n bytes. */
const struct seal_psk *roll_open(const struct peer *p, const uint8_t *data, size_t len,
				 uint8_t *plain, int *n);
/** roll_next - the key to seek under now. */
const struct seal_psk *roll_next(struct peer *p);
/** roll_due - whether to try to replace the session by one under the first key. */
bool roll_due(struct peer *p, uint64_t now);
/** roll_adopt - the peer made a session of our salts, but under @psk: change over to it; false if
 * the peer will change over instead. */
bool roll_adopt(struct peer *p, const struct seal_psk *psk);
/** roll_keep - a session under @next follows the present one. */
void roll_keep(struct peer *p, const struct seal_psk *next, uint64_t now);
/** roll_rx_old - decrypt a datagram of the former session into s->plain: its length, -1 if it is
 * none. */
int roll_rx_old(struct session *s, struct peer *p, const uint8_t *data, size_t len, uint64_t now);

/* handshake.c */
/** handshake_rx - a datagram that looks like a HELLO. */
void handshake_rx(struct session *s, struct peer *p, const uint8_t *data, size_t len, uint64_t now);
/** handshake_seek - send a SEEK under @psk to a peer that is down, or shall change keys. */
void handshake_seek(struct session *s, struct peer *p, const struct seal_psk *psk, uint64_t now);
/** handshake_confirm - send CONFIRM: we have the current session. */
void handshake_confirm(struct session *s, struct peer *p);
/** handshake_new_salts - draw new salts: one of the old ones was used, or there are none yet. */
void handshake_new_salts(struct session *s, struct peer *p);

/* outbox.c */
/** outbox_send - hand a finished datagram to the sink. */
void outbox_send(struct session *s, struct peer *p, const uint8_t *data, size_t len);
/** outbox_flush - seal and send what is queued, if anything. */
void outbox_flush(struct session *s, struct peer *p);
/** outbox_drop - forget what is queued. */
void outbox_drop(struct peer *p);
int outbox_report(struct session *s, struct peer *p, const struct report *r);
void outbox_hello(struct session *s, struct peer *p);
void outbox_site(struct session *s, struct peer *p);
void outbox_heartbeat(struct session *s, struct peer *p, uint64_t now);
void outbox_probed(struct session *s, struct peer *p, const struct proto_probed *m);
/** outbox_probe - send @m in a datagram that makes a packet of its size; false: not possible. */
bool outbox_probe(struct session *s, struct peer *p, struct proto_probe *m);
void outbox_bye(struct session *s, struct peer *p, enum proto_bye_reason reason);

/* probe.c */
/** probe_tick - with each heartbeat of a peer that is up. */
void probe_tick(struct session *s, struct peer *p, uint64_t now);
/** probe_rx, probed_rx - messages of the peer; @seq: of their datagram. */
void probe_rx(struct session *s, struct peer *p, const struct proto_probe *m, uint64_t seq);
void probed_rx(struct peer *p, const struct proto_probed *m, uint64_t now);

#endif

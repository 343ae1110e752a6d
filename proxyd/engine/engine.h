/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine: frames and reports in and out; no socket, no clock, no allocation after
 * engine_create(), one owner thread. Time is CLOCK_MONOTONIC in ns, given with every event.
 */
#ifndef LONGHAUL_ENGINE_ENGINE_H
#define LONGHAUL_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/counters.h"
#include "engine/report.h"
#include "rule/rule.h"
#include "rate/rate.h"
#include "wire/build.h"
#include "wire/storage.h"

enum engine_port {
	PORT_LAN,
	PORT_WAN,
	PORTS,
};

enum lane_state {
	LANE_WATCH,   /* passes through unchanged, learning */
	LANE_OPENING, /* retains from the handover PSN on, acknowledges when the peer agrees */
	LANE_HELD,    /* custody */
	LANE_DRAIN,   /* no new custody; what is owed is still delivered; then WATCH */
	LANE_FAULT,   /* custody was lost; the requester's QP is being broken */
	LANE_STATES,
};

enum learn_source {
	LEARNED_NOT,
	LEARNED_CM,	   /* connection manager */
	LEARNED_PSN,	   /* PSN matching alone, where the rule says that it is enough */
	LEARNED_IMMEDIATE, /* the requests' immediate data, and the PSN of their ACKs */
	LEARNED_ECHO,	   /* requests sent again, and when their answers came */
	LEARNED_PEER,	   /* told by the peer when it opened the lane */
	LEARNED_HINT,	   /* PSN matching, or what echo has told so far: no lane begins */
	LEARN_SOURCES,
};

const char *lane_state_name(enum lane_state v);
const char *learn_source_name(enum learn_source v);

/** enum engine_event_type - things that an operator wants in the log. */
enum engine_event_type {
	EVENT_PAIRED,	   /* a connection was learned */
	EVENT_HELD,	   /* custody begins */
	EVENT_REFUSED,	   /* the peer refused a lane */
	EVENT_CLOSED,	   /* a lane went back to WATCH */
	EVENT_FAULT,	   /* custody was lost */
	EVENT_INCARNATION, /* a QPN was reused */
	EVENT_ANNOUNCE,	   /* storage commands announce their READs from now on, or no more */
	EVENT_CROWDED, /* too many flows of which one direction only is known; @packets: how many */
	EVENT_ABANDONED, /* both hosts gave it up with something in custody */
	EVENT_BYPASS,	 /* packets of a lane miss one of the two appliances */
	EVENT_INVARIANT, /* what must hold of a lane does not: @must */
	EVENT_TYPES,
};

/** struct engine_must - the invariant @what, checked in line @line of @file, broke; @x, @y: why. */
struct engine_must {
	const char *file, *what;
	uint32_t line;
	uint64_t x, y;
};

struct engine_event {
	enum engine_event_type type;
	uint32_t conn;		/* for engine_conn_info() */
	bool requests_from_lan; /* which lane */
	enum lane_reason reason;
	uint32_t packets; /* FAULT, ABANDONED: in custody then */
	uint64_t bytes;
	struct engine_must must; /* INVARIANT */
};

/**
 * struct engine_sink - where outputs go; all called from inside engine_*() calls.
 * @tx:     send a frame. @data is valid during the call only. Its last four bytes, which are the
 *          ICRC, leave XORed with @seal, as put_le32() would store that. 0; -EAGAIN when the port
 * has no room: what is retained and what the engine has to say itself it tries again, what only
 * passes is dropped; -EMSGSIZE or -EINVAL when the port can never send this: dropped, counted
 * @report: send a report to peer @peer
 * @event:  something for the log
 * @hold:   from now on (@on) the packets of the connection whose requests have the key @requests,
 *          and whose requester has the QPN @lqpn, must not pass but through the engine, not even
 *          when it is gone: they bear other numbers on the WAN than the host gave them, or
 *          (engine_config, @fence) are in custody. The next engine has them, or is told by
 *          engine_fail_orphan(), with the @headers of packets to that requester. 0, or -errno when
 *          that cannot be had: then they keep their numbers. May be NULL: it can
 */
struct engine_sink {
	void *ctx;
	int (*tx)(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		  uint32_t seal);
	void (*report)(void *ctx, unsigned int peer, const struct report *r);
	void (*event)(void *ctx, const struct engine_event *ev);
	int (*hold)(void *ctx, const struct flow_key *requests, uint32_t lqpn,
		    const struct template *headers, bool on);
};

/**
 * struct engine_config - zero means default.
 * @pool_bytes:      retention memory, default 256 MiB; @pool_most: it can grow to, with @shared
 * @max_conns:       connections, default 16,384 (two flows each, and places for half-known ones)
 * @wan_rate:        bytes per second on the WAN, 0: not paced
 * @wan_auto:        the pace is found for each peer (rate/rate.h), up to @wan_rate
 * @share:           what is wanted of a link that others use, with @wan_auto
 * @wan_burst:       bytes that may leave at once, default 64 KiB or 1 ms of the rate
 * @peer_timeout_ns: how long custody waits for a lost peer, default 60 s
 * @responder_timeout_ns: how long it waits for a silent near responder, default 30 s
 * @rnr_timeout_ns:  how long it waits for a responder that is never ready, default 5 min
 * @lane_span:       PSNs that a lane may have in custody, default and most WINDOW_SPAN
 * @idle_ns:         a flow without packets is forgotten after this, default 10 min
 * @seed:            of the flow table's hash and of lane generations
 * @file:            make the engine's memory in this file, for engine_adopt(); 0: nobody adopts it
 * @undo:            what a batch changes can be undone; always with @file
 * @kept_bytes:      memory beside it that the caller keeps (engine_kept())
 * @shared:          it is one of several that have links and memory in common (engine_follow())
 * @fence:           connections with custody are held (struct engine_sink, @hold)
 */
struct engine_config {
	uint64_t pool_bytes, pool_most;
	uint32_t max_conns;
	uint64_t wan_rate;
	bool wan_auto;
	enum rate_share share;
	uint32_t wan_burst, lane_span;
	uint64_t peer_timeout_ns, responder_timeout_ns, rnr_timeout_ns, idle_ns;
	uint64_t seed;
	int file;
	bool undo;
	uint32_t kept_bytes;
	bool fence, shared;
};

struct engine;

/** engine_bytes - the memory that an engine of @cfg takes, from its beginning. */
uint64_t engine_bytes(const struct engine_config *cfg);

/** engine_create - NULL when memory is short. @now_ns: first value of the clock. */
struct engine *engine_create(const struct engine_config *cfg, const struct engine_sink *sink,
			     uint64_t now_ns);
/** engine_lock - reserve its memory, and keep it from being swapped out. 0 or negative errno. */
int engine_lock(const struct engine *e);

/** engine_huge - have the pool in huge pages if the kernel can, which takes some time. A packet is
 *  written to pages that no TLB has, and read from them later; and they need not be mapped one by
 *  one when hosts send at last. After engine_lock(): a page that was never taken cannot join. */
void engine_huge(const struct engine *e);

/** engine_destroy - lanes are not asked; what lies in a file stays there. */
void engine_destroy(struct engine *e);

/**
 * engine_adopt - go on with the engine that another process made in the file @fd (@cfg->file there)
 * and left, with all that it knew. Its sizes stay as they are. Call engine_rules(),
 * engine_peer_event() for what has changed with the peers, and engine_go_on(). @fd stays the
 * caller's. NULL with @why when there is nothing that can be proved to be right.
 */
struct engine *engine_adopt(int fd, const struct engine_config *cfg, const struct engine_sink *sink,
			    uint64_t now_ns, const char **why);

/** engine_kept - the caller's memory beside the engine, zeroed when it is new; NULL without any. */
void *engine_kept(const struct engine *e);

/* Where in a file (engine_config, @file) the layout of its engine stands, 8 bytes. */
#define ENGINE_LAYOUT_AT 4096

/* And where 4 bytes are that the engine leaves to its caller, zero when it is new. */
#define ENGINE_CRASHES_AT (ENGINE_LAYOUT_AT + 6 * 8)

/** enum engine_left - engines of the same layout can adopt each other's memory. */
enum engine_left {
	ENGINE_LEFT_NONE,	/* the file is too short */
	ENGINE_LEFT_OTHER,	/* an engine of another layout */
	ENGINE_LEFT_UNFINISHED, /* one of this layout that was never finished */
	ENGINE_LEFT_OURS,
};

/** engine_left - what is in the file @fd, as its root says; nothing else of it is looked at. */
enum engine_left engine_left(int fd);

/**
 * engine_stood_still - from @since to @now_ns this process looked at nothing: it was not let run,
 * or another one ended and this one goes on. So others were not silent, what was on its way tells
 * no round trip, and for two seconds PSNs tell no pair. Call it before looking at what came
 * meanwhile, and after engine_create() where hosts may have begun; engine_adopt() does it.
 */
void engine_stood_still(struct engine *e, uint64_t since, uint64_t now_ns);

/** engine_left_at - when the engine that was adopted last looked at its clock. */
uint64_t engine_left_at(const struct engine *e);

/** engine_kept_at - where in the file @fd the caller's memory is; 0: it is not ENGINE_LEFT_OURS. */
uint64_t engine_kept_at(int fd);

/** engine_holds - whether the engine wants the connection with these requests held. */
bool engine_holds(struct engine *e, const struct flow_key *requests);

/**
 * engine_hush - another process is to go on: from now on near hosts get no ACK, and nothing that is
 * kept here. A host that waits for those falls silent, so that nothing of it is lost while there is
 * no process. engine_taken_at - when the latest request of a host was accepted.
 */
void engine_hush(struct engine *e, uint64_t now_ns);
uint64_t engine_taken_at(const struct engine *e);

/**
 * engine_go_on - after an adoption: say once more what must be held, and tell hosts and peers where
 * every lane stands. What they sent meanwhile is lost, and so may be what they were told last; by
 * themselves they would notice when their timers run out, which have backed off by then.
 */
void engine_go_on(struct engine *e, uint64_t now_ns);

/** engine_peer_is_up - what the engine thinks. */
bool engine_peer_is_up(const struct engine *e, unsigned int peer);

/** engine_rules - replace the rules (copied). Lanes without a rule, or with another peer, drain. */
void engine_rules(struct engine *e, const struct rule *rules, unsigned int n, uint64_t now_ns);

/**
 * engine_limits - take only pace (@wan_rate, @wan_auto, @share, @wan_burst) and timeouts of @cfg,
 * by the same defaults as engine_create(), for what is under way, too.
 */
void engine_limits(struct engine *e, const struct engine_config *cfg, uint64_t now_ns);

/** engine_rx - a frame from a port. Its seal (core/seal.c) is taken off at @data. */
void engine_rx(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
	       uint64_t now_ns);

/**
 * engine_rx_ask - the same, but false, and nothing is done, for a frame that a report may explain
 * which was sent before it: read what peers have sent, then call engine_rx().
 */
bool engine_rx_ask(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
		   uint64_t now_ns);

/**
 * engine_rx_soon - engine_rx() will be called with this frame after ENGINE_SOON others, or sooner
 * when there are fewer. For speed only. NULL: nothing will come in this turn.
 */
#define ENGINE_SOON 12u
void engine_rx_soon(struct engine *e, const uint8_t *data, uint32_t len);

/**
 * struct engine_box - how late this process reads what has arrived.
 * @unread:    bytes in the receive rings of the WAN port
 * @early:     bytes of that port that the engine was given since all datagrams of peers were last
 *             read: a report that is read now may have arrived before them
 * @overrun:   frames that those rings have lost so far
 * @waited_ns: how long the report waited in the socket
 */
struct engine_box {
	uint64_t unread, early, overrun, waited_ns;
};

/** engine_box - call it before engine_rx_report(); what it says holds until the next call. */
void engine_box(struct engine *e, const struct engine_box *b);

/** engine_rx_report - an authenticated report from peer @peer. */
void engine_rx_report(struct engine *e, unsigned int peer, const struct report *r, uint64_t now_ns);

enum peer_event {
	PEER_UP,	/* reports flow */
	PEER_DOWN,	/* no sign of life: lanes keep custody and wait */
	PEER_RESTARTED, /* up again with a new boot epoch: it has lost its lanes */
	PEER_AGAIN,	/* up all the time, but may not have heard what was said for a while */
};
/** engine_peer_features - what the peer can do (PEER_FEATURE_*); before it is said to be up. */
void engine_peer_features(struct engine *e, unsigned int peer, uint32_t features);
void engine_peer_event(struct engine *e, unsigned int peer, enum peer_event ev, uint64_t now_ns);

/** engine_peer_rtt - how long a report to the peer and its answer take. Until it is told, a repeat
 * of what is truly acknowledged is taken for a host's, however soon it comes. */
void engine_peer_rtt(struct engine *e, unsigned int peer, uint64_t rtt_ns);

/** engine_peer_forget - there is no peer of this number any more; the next one is another. */
void engine_peer_forget(struct engine *e, unsigned int peer, uint64_t now_ns);

/** engine_tick - run what is due: batched ACKs and reports, timers, paced sending. Call after every
 * batch of frames and when engine_deadline() has come. */
void engine_tick(struct engine *e, uint64_t now_ns);

/**
 * engine_follow - @n engines (engine_config, @shared) have the links to peers in common: what all
 * send and get counts as that of the first, which finds the pace, and they share what may be sent.
 * To be called before engines tick. Only the first is given METERs, and sends them: engine_meter(),
 * when the frames of all have left. One thread calls both, while no other calls any of the engines.
 */
#define ENGINES_MAX 16u
void engine_follow(struct engine *const *e, unsigned int n, uint64_t now_ns);
void engine_meter(struct engine *e, uint64_t now_ns);

/**
 * engine_lend - give @to up to @bytes of the pool's memory that @from can do without; @from NULL:
 * that no engine has. False: the system has not so much. To be called after all have ticked, as
 * engine_caps(): what the others hold counts for the cap of a rule, too.
 */
bool engine_lend(struct engine *from, struct engine *to, uint64_t bytes, uint64_t now_ns);
void engine_caps(struct engine *const *e, unsigned int n);

/** engine_deadline - when engine_tick() wants to be called next, UINT64_MAX for never. */
uint64_t engine_deadline(const struct engine *e);

/** engine_drain - begin to end all lanes; engine_custody().packets tells what is left. */
void engine_drain(struct engine *e, uint64_t now_ns);

/**
 * engine_give_up - time for a drain is over: custody is given up, and queue pairs that were
 * promised it are put into the error state. That takes some seconds; engine_may_stop() tells when
 * it is done. Returns how many queue pairs are being broken, for whatever reason.
 */
uint32_t engine_give_up(struct engine *e, uint64_t now_ns);

/** enum bypass - what an operator lets pass: everything, what a rule wants, one connection. */
enum bypass {
	BYPASS_ALL,
	BYPASS_RULE,
	BYPASS_CONN,
};

/**
 * engine_bypass - from now on (@on) packets pass as if no appliance stood between: what is held is
 * delivered first, nothing new is taken; or (not @on) they may be held again. @index: of the rule,
 * as in engine_rules(), or id of the connection. Rules keep it over engine_rules().
 */
bool engine_bypass(struct engine *e, enum bypass what, uint32_t index, bool on, uint64_t now_ns);

/** engine_bypassed - connections that pass because an operator said so. Looks at all of them. */
uint32_t engine_bypassed(const struct engine *e);

/** engine_bypass_rules - those of @rules, bits by index, and no others; after engine_rules(). */
void engine_bypass_rules(struct engine *e, uint64_t rules, uint64_t now_ns);

/** engine_release - deliver what is held for a connection and let it go; it is held again with a
 *  later request. False when there is no such connection, or nothing is held for it. */
bool engine_release(struct engine *e, uint32_t conn, uint64_t now_ns);

/** engine_may_stop - whether nothing is in custody and no connection needs the engine any more. */
bool engine_may_stop(struct engine *e);

/** engine_fail_orphan - a former engine held this connection (struct engine_sink, @hold) and is
 * gone. None of its packets passes any more; the queue pair near this appliance is put into the
 * error state: at once where the @headers of packets to it are known (not NULL), else when it is
 * used. Call after engine_rules(). False when nothing was promised here: it need not be held. */
bool engine_fail_orphan(struct engine *e, const struct flow_key *requests, uint32_t lqpn,
			const struct template *headers, uint64_t now_ns);

/** struct ledger - packets that are kept. @oldest_ns: least possible age of the oldest. */
struct ledger {
	uint64_t messages, packets, bytes, oldest_ns;
};

/**
 * struct prefetch_info - of the lane's READs (reads.h).
 * @hits:     READs of the host that had been guessed; @late: whose answer was still on its way
 * @misses:   READs that had not been guessed
 * @guesses:  READs asked ahead of the host
 * @wasted_bytes: answers asked for ahead and not used
 * @flushed_*: times that guesses were dropped: by a signal, a READ out of the pattern, age
 * @atomics_ahead: FetchAdds asked ahead of the host; @atomics_unasked: those of them that it did
 *            not ask, before something else came: they have changed memory all the same
 * @answered_again: READs asked again and answered from what was held
 * @window:   bytes that may be guessed ahead now; @ahead: bytes that are
 * @shift, @shift_msn: PSNs and MSNs by which the responder's numbers are ahead of the host's
 * @held_bytes: answers held
 */
struct prefetch_info {
	uint64_t hits, late, misses, guesses, wasted_bytes;
	uint64_t atomics_ahead, atomics_unasked;
	uint32_t flushed_signal, flushed_pattern, flushed_age, answered_again;
	uint64_t window, ahead, held_bytes;
	uint32_t shift, shift_msn, depth;
};

/**
 * struct announce_info - of storage commands in the other lane, whose READs are this one's.
 * @phase:    name of how far it is, NULL while no command was seen; @why: that it is not on, where
 *            that is known, else NULL; @proofs: commands that were READ as they said
 * @commands: READ ahead (near the initiator), or of which pushes came (near the target)
 * @bytes:    of them, READ ahead or come; @unused: those that the target did not READ, or had from
 *            another answer; @late: that came when their command was over
 * @absorbed: READs of the target that ended here, @served: response packets made of pushes
 * @native:   commands of a proven connection that were not READ ahead
 * @parity:   packets sent to repair lost ones (near the initiator); @repaired: made of them
 */
struct announce_info {
	const char *phase, *why;
	uint32_t proofs, mismatches;
	uint64_t commands, bytes, unused, late, absorbed, served, native, parity, repaired;
};

/** enum path_miss - which appliance packets of a lane miss, while the peer is there. */
enum path_miss {
	MISS_NONE,
	MISS_US,   /* from the LAN they come to the peer past us */
	MISS_FROM, /* from the WAN they come here past the peer */
	MISS_TO,   /* what we send does not come to the peer */
	MISS_PAST, /* what the peer sends goes past us to its host */
};

/**
 * struct lane_info - one requester direction, for people.
 * @epsn:     next PSN expected from the near requester (custody side) or from the stream
 * @frontier: next PSN not acknowledged to the requester yet (PSN after F); custody side only
 * @una:     next PSN not truly acknowledged by the responder
 * @nxt:     next PSN never sent on yet
 * @msn:      messages completed at @frontier
 * @lingers:  it ends, and until then its packets must go on coming here, whatever the rules say
 * @custody:  retained for the near requester; @transit: held on the way to the near responder
 * @silent_ns: so long the responder has not answered what it has, or its appliance, as far as known
 * @reads_pending: READ and ATOMIC requests not answered yet
 * @sealed:   nothing is taken from the WAN without a seal
 * @bypassed: packets of it take another way
 */
struct lane_info {
	enum lane_state state;
	enum ack_policy policy;
	enum lane_reason reason; /* of the latest refusal, close or fault */
	bool opener, lingers;
	uint32_t epsn, frontier, una, nxt, msn;
	struct ledger custody, transit;
	uint32_t reads_pending;
	bool sealed;
	enum path_miss bypassed;
	uint64_t requests, pseudo_acks, true_acks, dropped_duplicates, retransmits, naks_sent,
		timeouts, rnr;
	uint64_t srtt_ns, silent_ns;
	struct prefetch_info reads;
	struct announce_info announce;
};

#define LANE_OUT 0 /* requests from the LAN side */
#define LANE_IN	 1 /* requests from beyond the WAN */

/**
 * struct conn_info - a connection, or one direction of it that has not found its partner.
 * @paired:  false: only one QPN is known, the other is PSN_NONE
 * @rule, @peer: indices, -1 for none
 * @from_lan, @from_wan: frames and their bytes that came of it, whatever became of them
 * @bypassed: the operator wants it to pass (engine_bypass())
 * @storage:  what it speaks, where the connection manager told that; not once it was taken down
 * @candidates: unpaired: how many matches speak for the best candidate; @contradictions: against it
 */
struct conn_info {
	uint32_t id;
	bool paired;
	struct ip_addr lan_ip, wan_ip;
	uint32_t lqpn, rqpn;
	uint16_t vlan;
	enum learn_source learned_by;
	int rule, peer;
	uint32_t path_mtu;
	uint32_t candidates, contradictions;
	struct {
		uint64_t packets, bytes;
	} from_lan, from_wan;
	bool bypassed;
	uint64_t idle_ns;
	enum storage_protocol storage;
	struct lane_info lane[2];
};

/**
 * engine_conn_next - the first connection or half with id >= @from, or false. Ids are stable.
 */
bool engine_conn_next(struct engine *e, uint32_t from, uint64_t now_ns, struct conn_info *out);

/** engine_custody - the ledger of a rule, or in all with @rule -1. */
struct ledger engine_custody(struct engine *e, int rule, uint64_t now_ns);

uint64_t engine_counter(const struct engine *e, enum engine_counter c);

/** struct engine_memory - for `stats show`. @pool_most: what it can grow to; @pool_spare: what it
 * can do without, @pool_short: it should have more (engine_lend()). */
struct engine_memory {
	bool pool_short;
	uint64_t pool_bytes, pool_most, pool_spare, custody_used, custody_cap, transit_used,
		transit_cap;
	uint32_t flows, flows_max, conns;
	uint32_t lane_bytes; /* state per lane besides packets */
};
void engine_memory(const struct engine *e, struct engine_memory *out);

/** struct link_count - bytes of connections, carried or passed on, in one direction of a link: sent
 * by the time of one METER, and of these come. */
struct link_count {
	uint64_t sent, got;
};

/**
 * struct link_info - the link to one peer (rate/rate.h).
 * @sent, @got: bytes of connections, carried or passed on; @marked: packets with a congestion mark
 * @out, @in:   both ends compared, to the peer and from it
 * @pace:       bytes per second that may be sent, 0: no limit
 * @delivered:  bytes per second that arrived, of the latest window
 * @lost_ppm, @noise_ppm: share of the bytes lost in that window, and at any pace
 * @queue_ns:   how much longer than at best packets are under way
 * @rtt_ns:     least round trip, 0 when not known
 * @share:      enum rate_share, by its name; NULL when the pace is not looked for
 * @phase, @cause: names: what is done, and what showed the latest limit
 * @cuts:       how often the link was seen full
 */
struct link_info {
	uint64_t sent, got, marked;
	struct link_count out, in;
	uint64_t pace, delivered, queue_ns, rtt_ns, cuts;
	uint32_t lost_ppm, noise_ppm;
	const char *phase, *cause, *share;
};

/** engine_link_info - false when @peer is out of range. */
bool engine_link_info(const struct engine *e, unsigned int peer, struct link_info *out);

/** engine_check - the first invariant that does not hold, by name, or NULL; for tests. */
const char *engine_check(struct engine *e);

#endif

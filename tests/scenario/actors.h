/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attackers and disturbances in a world: a forger (world_forger.c, world_forge.c), hosts that reuse
 * queue pair numbers (world_reuser.c), ports that are overloaded (world_overload.c) or not read
 * (world_port.c), and appliances that read reports and frames in another order than they were sent
 * (world_late.c). And what the
 * checkers of order and shares need (world_order.c).
 */
#ifndef SCENARIO_ACTORS_H
#define SCENARIO_ACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct world;
struct world_qp;

/* Why a world that went wrong is not judged. Each needs a forger, or a number that was reused
 * without the connection manager, or hosts without appliances in one direction, or packets that
 * miss the appliances. */
enum excuse {
	EXCUSE_NONE,
	EXCUSE_LUCK,	/* the forger was so lucky that a bare host would have been taken in */
	EXCUSE_BARE,	/* with the same forger the same hosts do no better without appliances */
	EXCUSE_REUSE,	/* a number was reused without CM while its former owner had custody */
	EXCUSE_PATH,	/* renumbered packets missed both appliances, and both hosts see it */
	EXCUSE_SILENT,	/* the same, and a host does not see it */
	EXCUSE_CIRCLES, /* hosts retransmit for ever where one direction is bare (single mode) */
	EXCUSES,
};
struct rc_completion;

/*
 * What the forger sends. It is a third party with a right ICRC (but where a kind says otherwise),
 * the addresses and the QPN of a live connection, in the name of either host. It does not know the
 * connection's PSNs, so the *blind* kinds draw them from the whole circle. The *near* kinds stand
 * for a long attack with luck: they draw from PSNs that matter, and the world tells whether a bare
 * pair of hosts would have accepted the frame. A frame that a bare pair accepts is never judged
 * (world_forger.c).
 */
enum forge_kind {
	FORGE_REQUEST,	   /* blind: a request of any opcode */
	FORGE_ANSWER,	   /* blind: an ACK, NAK, RNR NAK or answer with data */
	FORGE_JUMP,	   /* blind: three to five SEND_ONLY in a row with a far PSN */
	FORGE_VENDOR,	   /* an unknown opcode: blind, or at the PSNs in use */
	FORGE_INSIDE,	   /* near: a request with the PSN of one in custody, or just answered */
	FORGE_AHEAD,	   /* near: up to 2^18 ahead of the host */
	FORGE_REPLAY,	   /* a frame seen before, as it was, or with another payload or opcode */
	FORGE_ANSWER_NEAR, /* near: an answer just outside of what is outstanding */
	FORGE_ANSWER_WAN,  /* an ACK or NAK from the WAN for what a pair of appliances holds */
	FORGE_CNP,	   /* many at once */
	FORGE_CM_ICRC,	   /* REQ, REP, DREQ with the right ids and a wrong ICRC */
	FORGE_CM_ID,	   /* with a right ICRC, the right QPNs, and unknown ids */
	FORGE_DATA_WAN,	   /* a response with data, from the WAN, to a READ between appliances */
	/* a REQ from one side, and from the other a REP that gives its queue pair another partner,
	 * or another queue pair its partner */
	FORGE_CM_PAIR,
	FORGE_KINDS,
	/* as often as a host has been cut off its LAN (INC_HOST_SILENT): NAKs in the name of its
	 * responders, of what they have acknowledged */
	FORGE_SILENT = FORGE_KINDS,
	/* fatal NAKs in the name of its responder, at once, of what an appliance sends a host to
	 * break its queue pair (proxyd/engine/fault) */
	FORGE_PROBED,
};

/* Where it sits: @forge_at, bits. */
#define FORGE_LAN(side) (1u << (side))
#define FORGE_WAN(side) (4u << (side)) /* toward the appliance of @side */

/* Kinds of overload. */
#define OVERLOAD_TX    1u /* a port has no room: the engine is told so */
#define OVERLOAD_BURST 2u /* frames arrive late, many at once */
#define OVERLOAD_STALE 4u /* an earlier frame arrives in the place of another */
#define OVERLOAD_FULL  8u /* but only after a burst: worlds older than this finding lack it */

#define QUEUES_MAX 4u

/* An appliance that stands still: its ports do what those of the daemon do (world_port.c), and two
 * may stand still at a time; and they hold what is in custody, as where its memory is kept. */
#define STILL_PORTS 1u
#define STILL_HELD  2u

/* What appliance @side reads late: reports, or frames from the WAN; LATE_OPEN: of the reports only
 * OPENs, which others overtake. */
#define LATE_REPORTS(side) (1u << (side))
#define LATE_FRAMES(side)  (4u << (side))
#define LATE_OPEN	   16u

/**
 * struct actors_config
 * @forge, @forge_at: bits of enum forge_kind, places. @forge_every: one act in so many frames that
 * move, on average. @forge_max: acts in all
 * @overload:      OVERLOAD_*; @overload_every: one time of overload begins in so many frames;
 * @overload_us: how long it lasts
 * @late: bits of LATE_*; @late_us: by so much at most
 * @queues: each port of an appliance has so many receive queues (world_queues.c), at most
 * QUEUES_MAX; 0: one, read at once. @queue_us: read so much later at most
 * @still: STILL_*; @still_ms: owners of numbers leave that got nothing done for so long while an
 * appliance stands still; 0: they do not
 * @lag:           hosts (bits) whose source MAC changes from frame to frame
 * @order:         check that hosts' messages keep their causes (world_order.c): 1 where the rules
 * have order = hosts, 2 where they have not, 3 where they have and appliances know nothing of it
 * @cross_bps, @cross_ms: bits per second of others on the WAN (world_cross.c), and in how much of
 * each second they send
 * @share:         check that no lane grows beyond so many thousandths of its share, 0: do not
 */
struct actors_config {
	uint32_t forge, forge_at, forge_every, forge_max;
	uint32_t overload, overload_every, overload_us;
	uint32_t late, late_us;
	uint32_t queues, queue_us;
	uint32_t still, still_ms;
	uint32_t lag;
	uint32_t order, share;
	uint64_t cross_bps;
	uint32_t cross_ms;
};

/* ---- forger ---- */

struct forger;

int world_forger_init(struct world *w);
void world_forger_exit(struct world *w);
/** world_forger_saw - a frame moves on a link: it may be replayed later, or answered at once. */
void world_forger_saw(struct world *w, int link, const uint8_t *data, uint32_t len);
/** world_forger_run - forge what is due. */
void world_forger_run(struct world *w);

/** world_forger_silent - host @side has been silent for a while, and is about to be heard again. */
void world_forger_silent(struct world *w, int side);
enum forged {
	FORGED_NOT,
	FORGED,
	FORGED_INSIDE, /* with a PSN that the appliance had in custody */
};

/** world_forged - whether the forger made this frame. */
enum forged world_forged(const struct world *w, const uint8_t *data, uint32_t len);
/** world_forger_arrives - a frame reaches host @side. Returns whether it is a forged one that the
 * host must not see, since a bare host would have been taken in, too. */
bool world_forger_arrives(struct world *w, int side, const uint8_t *data, uint32_t len);
/** world_forger_forget - the queue pair is another one now. */
void world_forger_forget(struct world *w);

/* ---- reuser ---- */

enum reuse_psn {
	REUSE_SAME, /* the PSNs that its predecessor began with */
	REUSE_NEAR, /* about where it had got */
	REUSE_FAR,
	REUSE_ANY, /* one of these, drawn each time */
	REUSE_PSNS,
};

#define REUSE_DREQ 1u
#define REUSE_REQ  2u

/**
 * struct reuse - how often, and how, a queue pair's numbers get another owner.
 * @left:  so many times more
 * @psn:   enum reuse_psn
 * @other: hosts (bits) whose end gets a new number each time: the other's number is used again with
 * another partner
 * @by_cm: REUSE_DREQ: the connection manager tells that an owner goes, REUSE_REQ: that one comes
 * @after: requests that each owner ends before it goes; it also goes when its queue pair fails
 * @pause_ns: between two owners
 * @must:  each owner's work must succeed
 * @first, @left_off: PSNs of its hosts' requests when the first owner began, and the latest ended
 * @back_at, @ended: when the next one comes, 0: one is there; what it found done
 * @came: when the latest one came
 */
struct reuse {
	uint32_t left, psn, after, other;
	uint32_t by_cm;
	bool must;
	uint64_t pause_ns;
	uint32_t first[2], left_off[2];
	uint64_t back_at, ended, came;
};

/** world_reuser_repeats - whether requests of the next owner may be the former one's word for word,
 * whose values an appliance keeps in case it lost them. */
bool world_reuser_repeats(const struct world_qp *q, uint32_t psn0, uint32_t psn1);

void world_reuser_run(struct world *w);
uint64_t world_reuser_next(const struct world *w);

/* ---- others on the WAN ---- */

void world_cross_run(struct world *w);
uint64_t world_cross_next(const struct world *w);
/** world_reuser_busy - whether the queue pair will get another owner. */
bool world_reuser_busy(const struct world_qp *q);

/* ---- paths ---- */

/* What packets of one direction miss: the first appliance on their way, the second. */
#define MISS_FIRST   1u
#define MISS_SECOND  2u
#define PATH_STRAYED 4096u

/**
 * struct path - packets take another way @times times, from @since on, each time for @on ns.
 * @miss:  what packets from host i miss then, MISS_*
 * @every: ns from the beginning of one time to that of the next
 * @apart: and only one direction of each connection does: of every other one that from host 0
 */
struct path {
	uint32_t miss[2], times;
	bool apart;
	uint64_t since, on, every;
};

/** world_path - from now on packets take @p, and no other one. */
void world_path(struct world *w, const struct path *p);
/** world_path_takes - the frame that leaves @link misses the appliance there; it has been sent
 * past it. */
bool world_path_takes(struct world *w, int link, const uint8_t *data, uint32_t len);
/** world_path_told - both hosts of @q see that their connection has failed. */
bool world_path_told(const struct world_qp *q);

/* ---- overload ---- */

struct overload {
	uint64_t full_until[2][2]; /* side, port: nothing can be sent */
	uint64_t held_until[6];	   /* link: nothing arrives */
	bool spoils[6];		   /* and its ring goes wrong if something waits then */
	bool stale[6];
	uint32_t last_len[6];
	uint8_t *last[6];
};

int world_overload_init(struct world *w);
void world_overload_exit(struct world *w);
/** world_overload_run - a frame has moved: a time of overload may begin. */
void world_overload_run(struct world *w);
uint64_t world_overload_next(const struct world *w);
/** world_overload_holds - whether nothing arrives on @link yet; @first: when the first frame was
 * due. */
bool world_overload_holds(struct world *w, int link, uint64_t first);
/** world_overload_forget - the queue pair is another one now. */
void world_overload_forget(struct world *w);
/** world_overload_swap - the frame that arrives on @link instead of @data. */
const uint8_t *world_overload_swap(struct world *w, int link, const uint8_t *data, uint32_t *len);

/* ---- what is read late ---- */

enum late_what {
	LATE_READS_FRAMES,
	LATE_READS_REPORTS,
	LATE_READS_OPENS, /* of LATE_OPEN */
	LATE_WHATS,
};

struct late;

int world_late_init(struct world *w);
void world_late_exit(struct world *w);
/** world_late_holds - whether @what of appliance @side, of which the first came at @first, is not
 * read yet. */
bool world_late_holds(struct world *w, int side, enum late_what what, uint64_t first);
/** world_late_due - when what came at @first is read, as far as it is known. */
uint64_t world_late_due(const struct world *w, int side, enum late_what what, uint64_t first);
/** world_late_rx - a frame for appliance @side: its daemon may have it wait for an OPEN. */
void world_late_rx(struct world *w, int side, enum engine_port port, const uint8_t *data,
		   uint32_t len);
/** world_late_waits - a frame does; the appliance does nothing but read reports. */
bool world_late_waits(const struct world *w, int side);
/** world_late_run - frames that wait are tried again. */
void world_late_run(struct world *w);
uint64_t world_late_next(const struct world *w);
/** world_late_drop - the process of appliance @side is another one, and what waited is lost. */
void world_late_drop(struct world *w, int side);

/* ---- receive queues ---- */

struct queues;

int world_queues_init(struct world *w);
void world_queues_exit(struct world *w);
/** world_queues_put - a frame for appliance @side goes into a queue. False: there are none. */
bool world_queues_put(struct world *w, int side, enum engine_port port, const uint8_t *data,
		      uint32_t len);
/** world_queues_run - what is to be read is read. */
void world_queues_run(struct world *w);
uint64_t world_queues_next(const struct world *w);
/** world_queues_drop - the process of appliance @side has ended, and its rings with it. */
void world_queues_drop(struct world *w, int side);

/* ---- order and shares ---- */

void world_order_posted(struct world_qp *q, int side, uint64_t number);
void world_order_told(struct world_qp *q, int side, const struct rc_completion *c);
/** world_order_received - host @side executes message @number of the other's. */
void world_order_received(struct world_qp *q, int side, uint64_t number);
void world_order_exit(struct world_qp *q);
/** world_check_share - NULL, or which rule is broken. */
const char *world_check_share(struct world *w);

#endif

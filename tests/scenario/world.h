/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hosts, two appliances' engines and everything between them in virtual time, from one seed.
 *
 *	host 0 --lan 0-- engine 0 --wan-- engine 1 --lan 1-- host 1
 *
 * Each of the three links has two directions with settings of their own. Reports travel in a
 * channel of their own beside the WAN with the WAN's delay and its own loss. Either engine can be
 * left out (then a wire joins its ports), so one appliance at either side, two and none are the
 * same world.
 */
#ifndef SCENARIO_WORLD_H
#define SCENARIO_WORLD_H

#include <stdio.h>

#include "daemon/ask.h"
#include "engine/engine.h"
#include "shards/shards.h"
#include "tests/lab/model/cm_emit.h"
#include "tests/lab/model/rc_host.h"
#include "tests/lab/model/versions.h"
#include "cli/wanem/wan.h"
#include "tests/scenario/actors.h"

#define WORLD_QPS	  640
#define WORLD_IN_BAND	  65536u
/* Ethernet types, of those for experiments: a report (reports_in_band), traffic of others. */
#define WORLD_TYPE_REPORT 0x88b6u
#define WORLD_TYPE_OTHER  0x88b5u

/**
 * struct world_config
 * @appliance:   appliance 0, appliance 1 present
 * @cores:       engines of each, 0: one
 * @single:      rules without a peer
 * @wan, @lan:   settings of both directions; seeds are derived from @seed
 * @lan_ring:    an engine's port to its LAN takes no frame while so many bytes wait in it; 0: it
 * always does
 * @report_loss: of reports, besides that they share the WAN's delay
 * @report_reorder, @report_replay, @report_forge: probabilities per report: comes late; one from
 *               long ago comes again after it; it comes again with garbage in it (another
 *               generation, lane, type, peer, or marks that cannot be)
 * @reports_in_band: they take their turn in the queue of the WAN as the packets do, and are lost as
 *               these are; @report_loss and the like do not apply
 * @check_every: engine_check() after every so many events, 0: at the end only
 * @check_custody: after every answer to a host, and for every frame to the WAN: what was
 *                 acknowledged is held or executed, nothing in custody goes out in two forms, no
 *                 success after a fault, a completion means what the policy says
 * @check_range: a READ outside of the responder's region is a violation
 * @announce:    the rules say announce = auto
 * @storage:     queue pairs may be an initiator's and a target's (world_storage.h)
 * @atomic:      of the rules
 * @unsealed: they have seal = off
 * @proved:   they have learn = cm, psn: what PSNs say must be proved (learn/echo.c)
 * @prefetch:  the rules allow it
 * @prefetch_responder: with @prefetch: by READs that are made near the responder
 * @prefetch_single: they say so to an appliance alone, near the responder
 * @read_depth:  READs that responders take at a time, by the rules
 * @prefetch_max_age_ns: with @prefetch: READs may bring content that was current so long before
 *               they were posted, if no signal has come since; 0: however long
 * @read_from, @read_end: the rules name this range of addresses for reading ahead; none when both
 * are 0
 * @engine:      of both engines; seed is derived
 * @actors:      attackers and disturbances (actors.h)
 * @trace:       file for every frame and report (trace.c), or NULL
 */
struct world_config {
	uint64_t seed;
	bool appliance[2];
	uint32_t cores[2];
	bool single;
	struct wan_config wan, lan;
	uint64_t lan_ring;
	double report_loss, report_reorder, report_replay, report_forge;
	bool reports_in_band;
	enum ack_policy policy;
	enum atomic_mode atomic;
	struct engine_config engine;
	uint32_t path_mtu; /* told by the rule, 0: learned */
	uint32_t check_every;
	uint32_t qps_max;
	uint64_t frames_max; /* a world that moves more until a request ends turns in circles: a
				violation; 0: no limit */
	bool check_custody, check_range, storage, announce, proved;
	bool prefetch, prefetch_single, prefetch_responder, unsealed;
	uint32_t read_depth;
	uint64_t prefetch_max_age_ns;
	uint64_t read_from, read_end;
	struct actors_config actors;
	FILE *trace;
};

/**
 * struct work - what one side of a QP pair does: @left messages, posted as room allows, of
 * operations drawn from @ops (bits of enum rc_op) with sizes drawn from @min .. @max.
 *
 * @streams:    READs go in so many streams (readers.h), 0: anywhere and of any size
 * @stream_len: of @stream_len bytes each; a stream starts somewhere else with probability @break_p
 * @ring:       streams go through the whole region, over and over
 * @unsignaled: so many thousandths of the requests ask for no ACK of their own
 * @counter:    FetchAdds all add 1 to the 8 bytes at 4096 of the peer's region, which nothing else
 *              changes (so @ops has no WRITEs and CmpSwaps), and most requests are such: each must
 *              bring more than the one before
 * @changing:   in the part of the peer's region that the peer changes
 */
struct work {
	uint32_t ops;
	uint32_t min, max;
	uint64_t left;
	uint32_t outstanding; /* most at one time, 0: as the queue allows */
	uint32_t streams, stream_len;
	double break_p;
	uint32_t unsignaled;
	bool changing;
	bool ring;
	bool counter;
};

struct world;
struct order;
struct storage;

/* What went over the WAN under a PSN (check_custody). */
#define WORLD_SEEN 8192u

struct world_seen {
	uint32_t psn, icrc, gen;
};

/**
 * struct world_qp - one queue pair on each host. @side[i]: what host i's end did.
 * @lost:      an appliance lost its memory while it had custody of this side's requests: the queue
 *             pair may fail, and must not succeed as if nothing had happened
 * @holed:     an appliance lost its memory with some of this side's requests in custody, if only
 *             the beginning of a message: the responder will never be told of them
 * @cfg, @cm:  what each end is made of; the handshake that makes them, and later takes them down
 * @up:        both ends exist; they need not while there is a handshake, or between two
 * incarnations
 * @shaking:   the handshake is not over
 * @reused:    the QPNs had another owner, without CM: an appliance may still have custody for it
 * @debt:      and something of the former one was in custody then, or may be given to the next for
 *             its own
 * @pending:   work to begin with
 * @change_ns: host i changes the upper half of its region so often (readers.h), 0: never; set
 * before world_work()
 * @reuse: the owners that its QPNs will have
 * @storage: of an initiator and a target, or NULL
 * @unseen: an appliance that stood still did not see the handshake of its owner (world_port.c);
 * @ever_unseen: of any owner
 * @missed_first, @missed_both: a packet of it has missed the first appliance on its way, or both
 * (world_path.c); @wrong: what was found wrong since then, where they may number: both ends must be
 * told of it
 * @fault_una: una when the lane was first seen in FAULT, at @fault_at (0: not)
 */
struct world_qp {
	struct world *w;
	uint32_t id, incarnation;
	struct rc_qp_config cfg[2];
	struct rc_cm cm[2];
	bool up, shaking, reused, debt, missed_first, missed_both, unseen, ever_unseen, broken;
	const char *wrong;
	struct work pending[2];
	uint64_t change_ns[2];
	struct reuse reuse;
	struct storage *storage;
	struct {
		struct world_qp *up;
		struct rc_qp *qp;
		struct work work;
		struct prng rng;
		uint64_t drawn; /* from a counter, and one more */
		uint64_t ok, ok_data, ok_atomics, failed, bytes, last_ok_at;
		enum rc_status status; /* of the first failure */
		bool data_wrong;
		bool lost, holed;
		uint8_t passed; /* requests of its: appliances that stood still, MISS_* */
		/* of its requests, while its appliance gives them other numbers */
		struct flow_key numbered;
		struct flow_key numbered_far; /* the same, at the other end (announce/) */
		bool stranded;		      /* and was restarted then */
		uint32_t conn, fault_una;
		uint64_t fault_at;
		struct world_seen *seen;
		struct readers *readers;
		struct order *order;   /* world_order.c */
		uint64_t within_bytes; /* the latest in custody that was within its share */
		uint64_t absent;       /* no connection was known; the event to look again at */
		/* world_forger.c: how often it had repeated requests, and the end of these */
		uint64_t repeated;
		uint32_t repeated_end;
	} side[2];
};

/* What callbacks of @side's engine and host get. */
struct world_ctx {
	struct world *w;
	int side;
};

struct world {
	struct world_config cfg;
	uint64_t now, events, frames;
	uint64_t moment, moment_events; /* of the latest event; of that time */
	uint64_t cross_at;		/* when others send next */
	uint64_t packets;		/* that hosts sent */
	uint64_t frames_at;		/* when the latest request ended */
	uint64_t finished,
		pause_at; /* requests ended; world_run() returns when so many have, 0: never */
	struct rc_host *host[2];
	struct shards *shards[2]; /* of each appliance, NULL: there is none */
	struct engine *engine[2]; /* the first of these */
	/* what the session knows of the other appliance: that it is up; that it has restarted, and
	 * not all engines have committed that */
	struct {
		bool up, restarted;
	} peer[2];
	bool unruled[2];	  /* its rules want nothing for now */
	struct engine_box box[2]; /* of the reports that it reads */
	/* link[i]: 0, 1: lan of side i toward the engine; 2, 3: toward the host; 4, 5: wan from
	 * side i */
	struct wan *link[6];
	struct wan *reports[2];	   /* from side i */
	struct wan *opens[2];	   /* of these, with LATE_OPEN; else NULL */
	struct report *in_band[2]; /* WORLD_IN_BAND of each side, those under way among them */
	uint32_t nin_band[2];
	struct report past[2][64];
	uint32_t npast[2];
	uint32_t held_gen[2]; /* changes with every lane that is taken or let go */
	struct prng rng;
	struct versions_clock changes[2]; /* of host i's memory */
	uint64_t known[2];	  /* the latest change of the other host's that host i knows of */
	uint64_t report_bytes[2]; /* what they would take on the WAN as PROGRESS datagrams */
	struct world_qp qp[WORLD_QPS];
	uint32_t nqps, shaking;
	uint64_t opened[2], refused[2], faults[2], closed[2];
	uint64_t broken; /* invariants, as engines say */
	const char *violation;
	struct forger *forger;
	struct overload *overload;
	struct late *late;
	struct queues *queues;
	struct ports *ports;	   /* whose processes may stand still */
	struct port_held *held[2]; /* by these */
	uint64_t passed, unseen;   /* so many frames, and owners of numbers, no process saw */
	struct ask ask[2];	   /* as the daemon has; with @late */
	/* how often something was read late, a frame waited for an OPEN, and one came */
	uint64_t late_reads, late_waits, late_found;
	struct still {
		uint64_t since;	  /* an appliance stands still since then, 0: it does not */
		uint64_t went_on; /* when it last did */
		uint64_t away; /* then the other one takes it for gone; 0: it has, or never will */
		bool told;     /* it has, and does not know better yet */
		uint64_t back; /* then the other one, or after that this one, has a new session */
		bool was_long; /* so long that frames that came meanwhile are dropped */
		bool full[6];  /* what of link[i] came meanwhile was not looked at yet */
		uint32_t took[6]; /* of that, frames so far */
	} still[2];
	uint64_t forged, reused; /* frames, queue pairs */
	struct path path;	 /* world_path.c */
	uint64_t paths;		 /* of these, how many a packet has taken */
	bool path_overtaken;	 /* a message that missed both appliances missed their order, too */
	uint64_t
		share[2]; /* world_check_share(): bytes that a lane might have at the latest step */
	bool path_used;	  /* the present one is counted */
	uint32_t strayed[2][PATH_STRAYED]; /* ICRCs of what missed the first appliance */
	uint64_t told[2];		   /* messages, by world_order.c */
	uint64_t lag[2];		   /* frames of hosts with two source MACs */
	enum excuse excuse;		   /* nothing is judged any more */
	struct world_ctx ctx[2];
	struct rule rule;    /* of both engines */
	struct crash *crash; /* they are killed now and then */
	struct heirs *heirs; /* and who follows may find what they left unreadable */
	/* sees every frame that leaves a link: 0 lan, 1 wan, 2 lan of the other side; false drops
	 * it */
	bool (*filter)(struct world *w, int link, const uint8_t *data, uint32_t len);
	/* sees every frame that enters one; may be NULL */
	void (*tap)(struct world *w, int link, const uint8_t *data, uint32_t len);
	/* a responder, of host @side, has a message; may be NULL */
	void (*received)(struct world *w, struct world_qp *q, int side);
	void *user;
	/* world_join(): who else is on the WAN of this one; whether this one is a guest */
	struct world *guest;
	bool is_guest;
};

/* The addresses of hosts end in this in a world that is the guest of another. */
#define WORLD_GUEST_HOST 2u

#define WORLD_LAN_IN(side)  (side)
#define WORLD_LAN_OUT(side) (2 + (side))
#define WORLD_WAN(side)	    (4 + (side))

/* world_crash.c: mean number of calls of this process's engines between two kills, 0: none; how
 * many there were, lanes that were adopted, and that ended in fault for it, and batches of which it
 * was looked at whether they could be undone. */
extern uint64_t world_crash_calls, world_kills, world_adopted, world_faulted, world_watched;

/* And how often one died when some of its engines had ended a batch and others had not; how many
 * rounds ended with memory of the pool lent by one engine to another. */
extern uint64_t world_parted, world_lent;

/* world_heir.c: those that follow may find unreadable what was left; how often they have, and how
 * many died as they began. */
extern bool world_heirs;
extern uint64_t world_unread, world_stillborn;

void world_defaults(struct world_config *c);
struct world *world_create(const struct world_config *cfg);
void world_destroy(struct world *w);

/** world_connect - one more QP pair; @a: host 0's end, host 1 gets the mirror with personality
 * @other. */
struct world_qp *world_connect(struct world *w, struct rc_qp_config *a, enum rc_personality other);

/** world_connect_cm - as world_connect(), but by the connection manager: the ends exist when the
 * handshake has got
 *  that far, and begin their work (world_work()) then. */
struct world_qp *world_connect_cm(struct world *w, struct rc_qp_config *a,
				  enum rc_personality other);

/** world_disconnect - both ends are gone, whatever they were doing; @tell: with a DREQ, if they
 * were made by the
 *  connection manager. What is left of their work waits. */
void world_disconnect(struct world_qp *q, bool tell);

/** world_renumbers - whether appliances may give packets other numbers than the hosts do. */
static inline bool world_renumbers(const struct world *w)
{
	return w->cfg.prefetch || w->cfg.announce || w->cfg.atomic == ATOMIC_PREFETCH;
}

/** world_astray - whether packets of @q have missed both appliances, which may number. */
static inline bool world_astray(const struct world_qp *q)
{
	return q->missed_both && world_renumbers(q->w);
}

/** world_owed - whether an appliance has custody for the owner of @q, who may be gone. */
bool world_owed(struct world_qp *q);
/** world_owed_near - and it begins within so many PSNs of what is in custody. */
bool world_owed_near(struct world_qp *q, uint32_t psns);
/** world_reconnect - the same QPNs again, with other data, from these PSNs on; the work goes on. */
void world_reconnect(struct world_qp *q, uint32_t sq_psn, uint32_t rq_psn, bool by_cm);

/** world_work - have host @side of @q do @work from now on. */
void world_work(struct world_qp *q, int side, const struct work *work);

/** world_run - until @until or until nothing but idle timers is left; stops at a violation. */
void world_run(struct world *w, uint64_t until);

/** world_run_done - until all work is completed (or failed) and custody is empty, at most to
 * @until. True
 *  when it got there. */
bool world_run_done(struct world *w, uint64_t until);

/** world_end - appliance @side is gone, and hosts' packets pass. */
void world_end(struct world *w, int side);

/** world_restart - engine @side loses all its memory and restarts (kill -9). Requests that were
 * acknowledged
 *  and not executed are lost; the queue pairs are marked. */
void world_restart(struct world *w, int side);

/** world_redeem - engine @side delivers all custody and restarts without memory (an orderly
 *  restart). Runs the world until its custody is empty, 100 s at most. */
void world_redeem(struct world *w, int side);

/** world_verify - compare what responders executed with what requesters were told; NULL when all is
 * right.
 *  @complete: everything must have arrived. */
const char *world_verify(struct world *w, bool complete);

/** world_verify_qp - the same for the requests of host @s of @q. */
const char *world_verify_qp(struct world_qp *q, int s, bool complete);

/** world_conn - the connection of @q as engine @side shows it; false when it shows none. */
bool world_conn(struct world *w, int side, const struct world_qp *q, struct conn_info *out);

/** world_join - @guest has the WAN of @w instead of its own, and lives when @w is run. */
void world_join(struct world *w, struct world *guest);

/** world_set_wan - change the WAN of direction @from. */
void world_set_wan(struct world *w, int from, const struct wan_config *c);

/** world_stand_still - appliance @side looks at nothing until world_go_on(); false: it cannot. */
bool world_stand_still(struct world *w, int side);
void world_go_on(struct world *w, int side);

/** world_peer - raise a peer event in appliance @side. */
void world_peer(struct world *w, int side, enum peer_event ev);

/** enum world_wish - what an operator changes: nothing is wanted, the pace is another one, all is
 * bypassed. */
enum world_wish {
	WISH_NO_RULES,
	WISH_LIMITS,
	WISH_BYPASS,
	WISHES,
};

/** world_wish - an operator of appliance @side changes @what, or (not @on) changes it back. */
void world_wish(struct world *w, int side, enum world_wish what, bool on);

/** world_drain - appliance @side ends all its lanes, unless it does so already. */
void world_drain(struct world *w, int side);

void world_dump(struct world *w, FILE *out);

/** world_injects - invariants are broken on purpose (test_must.c), and the queue pair concerned may
 * fail; else that is a violation. */
extern bool world_injects;

/* trace.c */
void trace_frame(const struct world *w, int link, const uint8_t *data, uint32_t len);
void trace_report(const struct world *w, int from, const struct report *r);
void trace_forged(const struct world *w, int side, bool lan, const uint8_t *data, uint32_t len);

#endif

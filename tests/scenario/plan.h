/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A random world as data: everything that a soak run depends on, drawn from one seed, or read from
 * a script. Because it is data it can be made smaller piece by piece (shrink.c), printed, and run
 * again.
 *
 * As text, one line for the world, one for each queue pair, one for what each of its sides does,
 * and one for each incident. A line is a word and then names with values; what is not named is 0:
 *
 *	world seed 17 appliance0 1 appliance1 1 policy 1 delay-ns 500000 ... loss0 0.01 ...
 *	qp mtu 1024 depth 16 sq-psn 1048560 rq-psn 0
 *	work qp 0 side 0 ops 255 max 40000 count 66
 *	incident what link-down at 370 for-ms 120
 */
#ifndef SCENARIO_PLAN_H
#define SCENARIO_PLAN_H

#include <stdio.h>

#include "tests/scenario/world.h"

#define PLAN_QPS       8
#define PLAN_INCIDENTS 16

enum incident {
	INC_LINK_DOWN,	  /* both directions of the WAN for a while */
	INC_ONE_WAY_DOWN, /* one of them */
	INC_RATE,	  /* the WAN's rate changes */
	INC_DELAY,	  /* its delay changes */
	INC_LOSS,	  /* its loss changes */
	INC_PEER_SILENT,  /* reports stop for a while */
	INC_PEER_DOWN,	  /* and the engine is told so */
	INC_DRAIN,	  /* an engine lets go of its lanes and may take them again */
	INC_RESTART,	  /* an engine loses its memory: custody may be lost */
	INC_RNR_STORM,	  /* a responder has no receives for a while */
	INC_FATAL,	  /* a responder refuses a request */
	INC_CLOCK,	  /* a host's retry timers jump */
	INC_REUSE,	  /* the same QPNs again: another incarnation */
	INC_HOST_SILENT,  /* a host's LAN is cut for a while */
	INC_STILL,	  /* an appliance stands still; drawn by plan_still() */
	INC_PATH,	  /* packets miss an appliance, or both; drawn by plan_paths() */
	INC_OPERATOR,	  /* an operator changes something; drawn by plan_cores() */
	INCIDENTS,
};

/** struct plan_work - see struct work. @change_us: its host changes its memory at this interval */
struct plan_work {
	uint32_t ops, min, max, count, outstanding;
	uint32_t streams, stream_len, break_permille, changing, counter, unsignaled;
};

/**
 * struct plan_qp - see struct rc_qp_config, struct reuse, struct storage_config.
 * @storage: so many storage commands instead of work; @st_form: 1: one key, 2: buffers anywhere;
 *           @st_protocol: enum storage_form
 * @ports: enum rc_ports
 * @ackreq_every: 0: the model's own
 * @reply_us: its responders take so long for each packet that a READ is answered with
 * @recv_us: a receive is posted every so often, and credits tell of them; 0: there always is one
 */
struct plan_qp {
	uint32_t strict, mtu, depth, max_rd, sq_psn, rq_psn, credits, resend, ip6, vlan, cm, mr_kib;
	uint32_t change_us, ports;
	uint32_t coalesce, ack_us, ackreq_every, reply_us, recv_us, prio0, prio1;
	uint32_t reuse, reuse_psn, reuse_after, reuse_ms, reuse_other, reuse_cm;
	uint32_t storage, st_min, st_max, st_depth, st_split, st_form, st_reads, st_inlined,
		st_refused, st_protocol, st_parts, st_chatter;
	double rnr_p;
	struct plan_work work[2];
};

/**
 * struct plan_incident
 * @what:     enum incident
 * @at:       when so many thousandths of all work are done
 * @for_ms:   how long, where that has a meaning
 * @times:    of a path: so many times (0: once), from one to the next @every_ms
 * @side, @qp: the host and queue pair concerned
 * @arg:      rate in Mbit/s, loss in millionths, syndrome and so on; of a path: what packets from
 *            @side miss, the first appliance on their way (1), the second (2), and those from the
 *            other side (4, 8); of a restart: 1: the list of renumbered connections is lost, too;
 *            of an operator: enum world_wish
 */
struct plan_incident {
	uint32_t what, at, for_ms, side, qp, arg, times, every_ms;
};

/**
 * struct plan - see struct world_config, struct wan_config.
 * @cores0, @cores1: engines of each appliance, 0: one; where one has more, queue pairs are of
 *         several pairs of hosts
 * @burst: burst_start; @burst_length: all of so many packets in the mean is lost, 0: half of 10
 * @by_length, @swing, @swing_ms: how loss0 and loss1 depend on length and time
 */
struct plan {
	uint64_t seed;
	uint32_t appliance0, appliance1, cores0, cores1, single, policy, atomic, prefetch,
		read_age_ms, unchecked;
	uint32_t prefetch_responder, proved, announce, wan_auto, in_band;
	uint64_t delay_ns, rate_bps, queue_bytes, reorder_ns, wan_rate, pool_bytes, lane_span;
	double loss0, loss1, dup, reorder, corrupt, burst;
	uint32_t burst_length, by_length, swing, swing_ms;
	double lan_loss, lan_dup, lan_reorder, lan_corrupt;
	double report_loss, report_reorder, report_replay, report_forge;
	struct actors_config actors;
	uint32_t nqps, nincidents;
	struct plan_qp qp[PLAN_QPS];
	struct plan_incident incident[PLAN_INCIDENTS];
};

/** struct plan_result - @violation: NULL when all was right, or @excuse says why it is not judged.
 * @broken: broken invariants that engines report
 * @late, @waits, @explained: how often something was read late, a frame waited for an OPEN, and one
 * came (world_late.c)
 * @passed, @unseen: frames, and owners of numbers, that no process saw (world_port.c)
 */
struct plan_result {
	const char *violation;
	uint64_t packets, frames, acked, forged, reused, paths, broken;
	uint64_t late, waits, explained;
	uint64_t passed, unseen;
	uint32_t died; /* failed queue pairs, except by packets that missed both appliances */
	enum excuse excuse;
	uint64_t now;
};

/** plan_random - the world of @seed. @prefetch: with READ streams, and appliances that read ahead
 * */
void plan_random(struct plan *p, uint64_t seed, bool prefetch);

/** plan_attack - with actors (actors.h), in a world that plan_random() has made. */
void plan_attack(struct plan *p);

/** plan_still - in some worlds an appliance stands still. Drawn apart from the rest. */
void plan_still(struct plan *p);

/** plan_ports - in some worlds hosts choose UDP source ports as drivers do, and queue pairs run in
 * step from PSN 0. Drawn apart from the rest. */
void plan_ports(struct plan *p);

/** plan_slow - in some worlds responders answer READs slowly. Drawn apart from the rest. */
void plan_slow(struct plan *p);

/** plan_paths - the same world, in which packets take another way for a while, some times. */
void plan_paths(struct plan *p);

/** plan_late - the same world, whose appliances read reports late, or frames. */
void plan_late(struct plan *p);

/** plan_queues - the same world, whose ports have several receive queues. */
void plan_queues(struct plan *p);

/** plan_pauses - the same world, whose appliances stand still, and numbers get other owners
 * meanwhile. */
void plan_pauses(struct plan *p);

/** plan_cores - the same world, whose appliances have several engines. */
void plan_cores(struct plan *p);

/** plan_link - the same world with a link that is shared, or whose rate is told wrong. */
void plan_link(struct plan *p);

/** plan_field - in some worlds loss is as the field has it. Drawn apart from the rest. */
void plan_field(struct plan *p);

/** plan_announce - the same world with storage commands, and rules that say announce = auto. */
void plan_announce(struct plan *p);

/** plan_run - run it. @dump: file for the world at its end, @trace: file for all that moves, or
 * NULL. */
void plan_run(const struct plan *p, struct plan_result *r, FILE *dump, FILE *trace);

/** plan_print, plan_read - as text. plan_read() returns the number of a bad line, 0 when all is
 * well. */
void plan_print(const struct plan *p, FILE *out);
uint32_t plan_read(struct plan *p, FILE *in);

/** plan_shrink - make @p smaller as long as it ends with @violation, for at most @seconds by the
 * clock. Returns how many worlds were tried. */
uint32_t plan_shrink(struct plan *p, const char *violation, double seconds);

#endif

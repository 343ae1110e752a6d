/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A script while it runs: script.c reads its lines, script_engine.c moves time and compares,
 * script_look.c looks at what the engine shows. */
#ifndef SCENARIO_SCRIPT_RUN_H
#define SCENARIO_SCRIPT_RUN_H

#include "tests/scenario/script_priv.h"
#include "tests/unit/engine_rig.h"

#define ALLOWED	 16
#define SENT	 8192
/* An expectation at a point in time: how much earlier or later it may happen. Timers round up. */
#define EARLY_NS 2000ull
#define LATE_NS	 150000ull
#define EVENTS	 EVENT_TYPES

enum start {
	START_UNKNOWN, /* nothing has been seen yet */
	START_LEARNED, /* paired and calibrated, watched */
	START_HELD,    /* in custody */
};

struct window {
	uint64_t from, to;
};

struct script {
	const char *name;
	const struct script_world *w;
	char *err;
	size_t err_size;
	jmp_buf env;
	int line;
	char text[512]; /* of the line */
	bool in_prelude, started, batch;

	/* what the head of the script says */
	bool responder, single;
	uint32_t features; /* of the peer */
	uint32_t mtu;
	enum start start;
	struct rule rule;
	struct engine_config cfg;
	struct {
		char port[8], name[32];
	} allow[ALLOWED];
	unsigned int nallow;
	bool answers[PORTS]; /* the host there, when it is asked whether it is there */
	bool astray;	     /* the answers arrive at the other port */

	struct rig *r;
	uint64_t t0;
	uint64_t when[RIG_OUT], rep_when[RIG_REPORTS];
	bool taken[RIG_OUT], rep_taken[RIG_REPORTS];
	unsigned int stamped, rep_stamped;
	unsigned int looked[PORTS]; /* nothing before it is for a line that expects */
	struct {
		enum engine_port port;
		struct packet p;
	} sent[SENT]; /* injected, newest at nsent - 1 */
	unsigned int nsent;
	struct report open, progress;
	uint64_t before[EC_COUNT];
};

extern const char *const port_names[PORTS];
extern const char *const event_names[EVENTS];

double script_seconds(const struct script *s, uint64_t t);

/* script_engine.c */
/** script_after - to be called after each call into the engine. */
void script_after(struct script *s);
void script_tick(struct script *s);
void script_step(struct script *s, uint64_t end);
/** script_leftovers - nothing may be waiting that no line expected. */
void script_leftovers(struct script *s);
void script_advance(struct script *s, uint64_t to);
void script_check_time(struct script *s, const struct window *w, uint64_t when);
bool script_allows(const struct script *s, const char *where, const char *name);
/* the lines that inject and expect */
void line_inject(struct script *s, enum engine_port from, struct tokens *t);
void line_expect(struct script *s, enum engine_port to, struct tokens *t, const struct window *w);
void line_report(struct script *s, struct tokens *t);
void line_expect_report(struct script *s, struct tokens *t, const struct window *w);

/* script_look.c */
void line_event(struct script *s, struct tokens *t, const struct window *w);
void line_lane(struct script *s, struct tokens *t);
void line_counter(struct script *s, struct tokens *t);
void line_act(struct script *s, struct tokens *t);

#endif

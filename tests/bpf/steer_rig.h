/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rig for the XDP program: frames go through it by BPF_PROG_TEST_RUN and seem to come from
 * queue 0 of an interface on which a socket listens. Nothing is attached and no traffic flows. What
 * a frame counted as also says what becomes of it: STEER_TAKEN is redirected to the socket of queue
 * 0, STEER_FENCED dropped, everything else passes up.
 */
#ifndef LONGHAUL_TESTS_STEER_RIG_H
#define LONGHAUL_TESTS_STEER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "port/afxdp_priv.h"
#include "steer.skel.h"
#include "tests/bpf/steer_frame.h"

extern struct steer_prog prog;
extern uint64_t vlans[STEER_VLANS];
extern const char *const counter_name[STEER_COUNTERS];

struct afxdp_prefix prefix(const char *addr, unsigned int plen, uint64_t rules);

/*
 * rule	near		far		VLAN
 * 0	10.1.0.0/16	10.2.0.0/16	untagged
 * 1	10.1.5.0/24	10.3.0.0/16	100
 * 2	fd00:1::/32	fd00:2::/32	untagged, 100, 0
 * 63	10.9.0.0/16	0.0.0.0/0	untagged
 */
void set_rules(void);

uint64_t now(void);
void set_socket(bool there);

/* Of the group of tests. */
int setup(void **state);
int teardown(void **state);

/* The state that every test starts from: rules, a live daemon, a socket, long frames allowed. */
int reset(void **state);

/* Returns the action, or a negative errno. @linear: bytes in the first buffer, 0: as the kernel
 * likes. */
int run(enum steer_side side, const uint8_t *frame, uint32_t len, uint32_t linear);

/* Run, and return the one counter that moved. */
enum steer_counter judge(const char *name, enum steer_side side, const uint8_t *frame, uint32_t len,
			 uint32_t linear);
void expect(const char *name, enum steer_side side, const struct steer_frame *f,
	    enum steer_counter want);

/* Between hosts for which there are rules. */
#define LAN4 .src = "10.1.2.3", .dst = "10.2.200.1"
#define WAN4 .src = "10.2.200.1", .dst = "10.1.2.3"
#define LAN6 .src = "fd00:1::5", .dst = "fd00:2:9::7"

#endif

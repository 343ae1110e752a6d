/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rig for the AF_XDP port on real interfaces: two veth pairs in a network namespace of the
 * test's own,
 *
 *	host1 --- lan0 [the port under test] wan0 --- host2
 *
 * Packet sockets on host1 and host2 play the hosts. The namespace, and all in it, goes with the
 * process.
 */
#ifndef LONGHAUL_TESTS_AFXDP_RIG_H
#define LONGHAUL_TESTS_AFXDP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "port/afxdp.h"
#include "tests/bpf/steer_frame.h"

#define SECOND	1000000000ull
/* What comes, comes; when, is up to whatever else the machine does. A wait so long is for nothing.
 * */
#define FOREVER (30 * SECOND)

extern int host[STEER_SIDES]; /* packet sockets on host1, host2 */
extern char err[256];	      /* what the port says, of the latest call that takes it */

uint64_t now(void);
void sh(const char *cmd);
void both_counts(const struct afxdp *x, struct afxdp_counts out[STEER_SIDES]);
int packet_socket(const char *ifname);

/* Of the group of tests, and of each. */
int setup(void **state);
int links_up(void **state);
int links_down(void **state);

#define ON_LINKS(f) cmocka_unit_test_setup_teardown(f, links_up, links_down)

struct afxdp_config config(enum afxdp_mode mode);
struct afxdp *open_port(const struct afxdp_config *cfg);

/* The port must not open, and say why in one line that has @part in it. */
void expect_error(struct afxdp_config cfg, const char *part);

/* The frame number @seq from @side's host to the other: its content says which it is. */
uint32_t make(uint8_t *out, enum steer_side side, uint32_t len, uint32_t seq, uint32_t tag);
void host_send(enum steer_side side, const uint8_t *frame, uint32_t len);

/* What a host receives next; 0 when nothing comes. */
uint32_t host_recv(enum steer_side side, uint8_t *out);

struct seen {
	uint32_t n, len;
	enum steer_side side;
	uint8_t data[BUF];
};

/* Receives into a struct seen. */
void keep(void *ctx, enum steer_side side, uint8_t *data, uint32_t len);

/* Read until @n frames came. */
uint32_t rx_wait(struct afxdp *x, struct seen *s, uint32_t n);
void flush(struct afxdp *x);

/* How many frames of @side met with @fate, when they are @n or more: the kernel may put off what it
 * does with a frame that has been sent. */
uint64_t steered(struct afxdp *x, enum steer_side side, int fate, uint64_t n);

/* An XDP program is attached to that interface. */
bool attached(const char *name);

#endif

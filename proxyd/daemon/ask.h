/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames from the WAN that an OPEN may explain which is not read yet. Of what arrived together the
 * kernel shows the frames first, and an OPEN a few microseconds later though it came before them.
 * So the datagrams are read until it is there:
 *
 *	while (!ask_rx(a, engine, port, data, len, now))
 *		if (!ask_over(a, clock))
 *			read datagrams
 *
 * The worlds of tests/scenario wait by the same rules.
 */
#ifndef LONGHAUL_DAEMON_ASK_H
#define LONGHAUL_DAEMON_ASK_H

#include "engine/engine.h"

/* So long an OPEN is waited for, and not again for so long after it did not come: anybody can send
 * frames with a wrong ICRC. */
#define ASK_WAIT_NS  200000ull
#define ASK_AGAIN_NS 10000000ull

/** struct ask - @until: the frame of now waits, 0: none does; @again: none waits before */
struct ask {
	uint64_t until, again;
};

/** ask_rx - engine_rx(), but false, and nothing is done, when the frame is to wait. */
static inline bool ask_rx(struct ask *a, struct engine *e, enum engine_port port, uint8_t *data,
			  uint32_t len, uint64_t now)
{
	if (now < a->again)
		engine_rx(e, port, data, len, now);
	else if (!engine_rx_ask(e, port, data, len, now))
		return false;
	a->until = 0;
	return true;
}

/** ask_over - whether the frame has waited long enough; then ask_rx() takes it. */
static inline bool ask_over(struct ask *a, uint64_t clock)
{
	if (!a->until)
		a->until = clock + ASK_WAIT_NS;
	if (clock <= a->until)
		return false;
	a->again = clock + ASK_AGAIN_NS;
	return true;
}

#endif

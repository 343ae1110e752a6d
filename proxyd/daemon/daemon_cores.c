// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The part of a round that moves frames (daemon.c), which several threads may do at the same time.
 *
 * Theory of operation
 *
 * A core is a part of the ports (port/afxdp.h), and the shards (shards/shards.h) whose number it
 * has, modulo the number of cores. In a round each core takes the frames of its receive queues,
 * gives its shards a tick and sends what they have to say. Then the daemon's own thread has
 * everything to itself again: reports, control, housekeeping. So all of those need no lock and know
 * nothing of cores. A round takes a few hundred microseconds at most.
 *
 * shared() decides for each round which cores do their work in a thread of their own. To wake a
 * thread costs as much as to move some frames. So a round is shared only if the queues of at least
 * two cores have ENOUGH frames, and the shards of at least two got ENOUGH in the round before.
 * Otherwise the daemon's thread does the work of all cores, as with one pair of hosts.
 *
 * A frame may come in a queue of another core than that of its shard, as NICs choose queues by
 * hashes of their own, so with N cores only one in N comes by the right one. While threads work it
 * is copied to the other core, which takes it in the next round. Frames of one queue keep their
 * order.
 *
 * What an OPEN may explain that is not read yet (ask.h) waits, and what came by the same way behind
 * it, until the daemon has read datagrams between two rounds.
 *
 * Engines say things while cores work: reports, events, connections to hold. These take turns by a
 * lock, and touch nothing that belongs to another core's shard.
 */
#include <errno.h>
#include <string.h>

#include "control/monitor.h"
#include "daemon/daemon_priv.h"
#include "host/log.h"
#include "port/afxdp.h"

#define RX_BUDGET   128u /* frames per socket and round */
#define ENOUGH	    16u	 /* frames; 48 gave no more, with four pairs of hosts on two processors */
/* More than any ring holds. */
#define LAST_ROUNDS 64

_Static_assert(PORT_SOON == ENGINE_SOON, "both reckon with frames that are as far ahead");

static struct engine *engine_of(const struct core *c, unsigned int shard)
{
	return shards_engine(c->d->shards, shard);
}

/* Give the frame to its engine. False when it is to wait for datagrams. */
static bool give(struct core *c, struct ask *a, unsigned int shard, enum engine_port port,
		 uint8_t *data, uint32_t len)
{
	struct daemon *d = c->d;

	while (!ask_rx(a, engine_of(c, shard), port, data, len, d->now)) {
		if (ask_over(a, loop_now()))
			continue;
		if (d->ncores > 1)
			return false;
		if (d->session)
			daemon_datagrams(d);
	}
	c->given++;
	return true;
}

/* Only what has a place is taken (budget()). */
static void hand_over(struct core *c, struct core *to, unsigned int shard, enum engine_port port,
		      const uint8_t *data, uint32_t len)
{
	c->handed += to != c;
	if (!inbox_put(to->from[c->index], shard, port, data, len))
		c->dropped++;
}

static void take(struct core *c, enum engine_port port, uint8_t *data, uint32_t len)
{
	struct daemon *d = c->d;
	unsigned int shard = shards_of_frame(d->shards, data, len);
	struct core *to = &d->core[shard % d->ncores];
	const struct inbox *box = to->from[c->index];

	/* behind what waits */
	if ((to != c && d->shared) || (box && inbox_frames(box)) ||
	    !give(to, &to->ask[c->index], shard, port, data, len))
		hand_over(c, to, shard, port, data, len);
}

static void on_frame(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	struct core *c = ctx;
	struct daemon *d = c->d;

	if (!capture_on(&d->capture)) {
		take(c, (enum engine_port)side, data, len);
		return;
	}
	capture_before(&d->capture, &d->view, d->now);
	capture_frame(&d->capture, side, true, data, len, 0);
	take(c, (enum engine_port)side, data, len);
	capture_after(&d->capture, &d->view, d->now);
}

static void on_soon(void *ctx, const uint8_t *data, uint32_t len)
{
	const struct core *c = ctx;
	const struct daemon *d = c->d;
	unsigned int shard = data ? shards_of_frame(d->shards, data, len) : 0;

	if (data) {
		if (shard % d->ncores == c->index || !d->shared)
			engine_rx_soon(engine_of(c, shard), data, len);
		return;
	}
	for (shard = 0; shard < shards_n(d->shards); shard++)
		if (shard % d->ncores == c->index || !d->shared)
			engine_rx_soon(engine_of(c, shard), NULL, 0);
}

/* Frames that others had for us in the round before. */
static unsigned int take_handed(struct core *c)
{
	unsigned int taken = 0;

	for (unsigned int i = 0; i < c->d->ncores; i++) {
		struct inbox *b = c->from[i];
		uint32_t n = b ? inbox_frames(b) : 0;

		for (; n; n--) {
			struct inbox_frame f = inbox_first(b);

			if (!give(c, &c->ask[i], f.shard, f.port, f.data, f.len))
				break;
			inbox_done(b);
			taken++;
		}
	}
	return taken;
}

/* So many frames of each socket find a place, whosever they are. */
static unsigned int budget(const struct core *c)
{
	const struct daemon *d = c->d;
	uint32_t room = RX_BUDGET * d->sockets;

	if (d->ncores == 1)
		return RX_BUDGET;
	for (unsigned int i = 0; i < d->ncores; i++) {
		uint32_t r = inbox_room(d->core[i].from[c->index]);

		room = r < room ? r : room;
	}
	return room / d->sockets;
}

/* Much of what a tick does has the engine ask for another one at once, which mostly finds nothing.
 * That one is given here: a round would cost several system calls. */
static void tick(struct core *c)
{
	struct daemon *d = c->d;
	bool told = capture_on(&d->capture);

	if (told)
		capture_before(&d->capture, &d->view, d->now);
	for (unsigned int i = c->index; i < shards_n(d->shards); i += d->ncores) {
		shard_tick(d->shards, i, d->now);
		if (engine_deadline(engine_of(c, i)) <= d->now)
			shard_tick(d->shards, i, d->now);
	}
	if (told)
		capture_after(&d->capture, &d->view, d->now);
}

/* What the core has to say leaves, unless this process has stood still since it was due. */
static bool flush(struct core *c)
{
	if (loop_now() - c->d->now > OLD_NS)
		afxdp_tx_drop(c->d->port, c->index);
	return afxdp_flush(c->d->port, c->index);
}

static void receive(struct core *c)
{
	struct daemon *d = c->d;

	afxdp_soon(d->port, c->index, on_soon, c);
	c->moved = take_handed(c);
	c->moved += afxdp_rx(d->port, c->index, budget(c), on_frame, c);
	c->frames += c->moved;
}

static void speak(struct core *c)
{
	tick(c);
	/* an OPEN goes before the frames that it explains */
	c->waiting = c->opened || flush(c);
}

/* One core's part of a round, in a thread of its own. */
static void work(void *ctx, unsigned int index)
{
	struct daemon *d = ctx;

	receive(&d->core[index]);
	speak(&d->core[index]);
}

static uint32_t handed(const struct core *c)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < c->d->ncores; i++)
		n += c->from[i] ? inbox_frames(c->from[i]) : 0;
	return n;
}

/* What there is for a core to take; of the ports, descriptors. */
static uint32_t backlog(const struct core *c)
{
	return afxdp_waits(c->d->port, c->index, STEER_LAN) +
	       afxdp_waits(c->d->port, c->index, STEER_WAN) + handed(c);
}

bool cores_have_frames(const struct daemon *d, bool moved)
{
	for (unsigned int i = 0; i < d->ncores; i++)
		if (moved ? backlog(&d->core[i]) : handed(&d->core[i]))
			return true;
	return false;
}

/* The cores that have a thread each in this round: none, or two at least. */
static uint32_t shared(const struct daemon *d)
{
	uint32_t waits = 0, given = 0;

	/* a capture looks at all shards while a frame is in hand */
	if (d->ncores == 1 || capture_on(&d->capture))
		return 0;
	for (unsigned int i = 0; i < d->ncores; i++) {
		waits |= (uint32_t)(backlog(&d->core[i]) >= ENOUGH) << i;
		given |= (uint32_t)(d->core[i].given >= ENOUGH) << i;
	}
	return waits & (waits - 1) && given & (given - 1) ? waits : 0;
}

unsigned int cores_run(struct daemon *d)
{
	uint32_t own = shared(d);
	unsigned int moved = 0;

	d->shared = own;
	for (unsigned int i = 0; i < d->ncores; i++)
		d->core[i].given = 0;
	for (unsigned int i = 0; i < d->ncores; i++)
		if (!(own >> i & 1))
			receive(&d->core[i]);
	for (unsigned int i = 0; i < d->ncores; i++)
		if (!(own >> i & 1))
			speak(&d->core[i]);
	if (own)
		team_run(d->team, own);
	for (unsigned int i = 0; i < d->ncores; i++)
		moved += d->core[i].moved;
	return moved;
}

bool cores_flush(struct daemon *d)
{
	bool waiting = false, opened = false;

	for (unsigned int i = 0; i < d->ncores; i++)
		opened |= d->core[i].opened;
	if (opened)
		session_flush(d->session);
	for (unsigned int i = 0; i < d->ncores; i++) {
		struct core *c = &d->core[i];

		if (c->opened)
			c->waiting = flush(c);
		c->opened = false;
		waiting |= c->waiting;
	}
	return waiting;
}

uint64_t cores_unread(const struct daemon *d)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < d->ncores; i++)
		for (unsigned int k = 0; k < d->ncores; k++)
			if (d->core[i].from[k])
				bytes += inbox_bytes(d->core[i].from[k], PORT_WAN);
	return bytes;
}

static void on_old(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	(void)ctx, (void)side, (void)data, (void)len;
}

unsigned int cores_drop(struct daemon *d)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < d->ncores; i++) {
		unsigned int some = 1;

		afxdp_tx_drop(d->port, i);
		for (int r = 0; r < LAST_ROUNDS && some; r++)
			n += some = afxdp_rx(d->port, i, RX_BUDGET, on_old, NULL);
		for (unsigned int k = 0; k < d->ncores; k++) {
			struct inbox *b = d->core[i].from[k];

			for (; b && inbox_frames(b); n++)
				inbox_done(b);
		}
	}
	return n;
}

void cores_last_frames(struct daemon *d)
{
	for (int r = 0; r < LAST_ROUNDS; r++) {
		unsigned int n;

		d->now = loop_now();
		n = cores_run(d);
		(void)cores_flush(d);
		if (!n)
			return;
	}
}

/* ---- what engines say, one at a time ---- */

static int sink_tx(void *ctx, unsigned int shard, enum engine_port port, const uint8_t *data,
		   uint32_t len, uint32_t seal)
{
	struct daemon *d = ctx;
	int rc = d->port ? afxdp_tx(d->port, shard % d->ncores, (enum steer_side)port, data, len,
				    seal)
			 : -EAGAIN;

	if (!rc && capture_on(&d->capture))
		capture_frame(&d->capture, port, false, data, len, seal);
	return rc;
}

static void lock(struct daemon *d)
{
	if (d->ncores > 1)
		pthread_mutex_lock(&d->says);
}

static void unlock(struct daemon *d)
{
	if (d->ncores > 1)
		pthread_mutex_unlock(&d->says);
}

static void sink_report(void *ctx, unsigned int shard, unsigned int peer, const struct report *r)
{
	struct daemon *d = ctx;
	struct core *c = &d->core[shard % d->ncores];

	/* A report to a peer that is down is counted and lost; what matters is repeated when it is
	 * back (engine_peer_event()). Reports wait in the socket if it has no room. */
	if (!d->session)
		return;
	lock(d);
	/* an OPEN goes before the frames that it explains, whose seals the peer cannot open without
	 * it; a METER goes behind the frames that it counts */
	if (r->type == REPORT_METER && c->opened) {
		session_flush(d->session);
		c->opened = false;
	}
	session_report(d->session, peer, r);
	c->opened |= r->type == REPORT_OPEN;
	unlock(d);
}

static void sink_event(void *ctx, unsigned int shard, const struct engine_event *ev)
{
	struct daemon *d = ctx;

	(void)shard;
	lock(d);
	event_log_write(&d->events, &d->view, ev, d->now);
	monitor_event(&d->view, ev, d->now);
	if (ev->type == EVENT_BYPASS)
		health_missed(&d->health, &d->view, ev->conn, d->now);
	unlock(d);
}

static int sink_hold(void *ctx, unsigned int shard, const struct flow_key *requests, uint32_t lqpn,
		     const struct template *headers, bool on)
{
	struct daemon *d = ctx;
	int rc;

	(void)shard;
	lock(d);
	rc = daemon_fence(d, requests, lqpn, headers, on);
	unlock(d);
	return rc;
}

const struct shards_sink cores_sink = {
	.tx = sink_tx,
	.report = sink_report,
	.event = sink_event,
	.hold = sink_hold,
};

/* ---- open, close ---- */

void cores_open(struct daemon *d)
{
	d->ncores = 1;
	d->core[0].d = d;
	pthread_mutex_init(&d->says, NULL);
}

int cores_begin(struct daemon *d)
{
	unsigned int n = afxdp_parts(d->port);

	for (unsigned int port = 0; port < STEER_PORTS; port++) {
		if (!afxdp_has(d->port, port))
			continue;
		d->sockets += (afxdp_queues(d->port, port) + n - 1) / n;
	}
	for (unsigned int i = 0; n > 1 && i < n; i++) {
		d->core[i].d = d;
		d->core[i].index = i;
		for (unsigned int k = 0; k < n; k++) {
			d->core[i].from[k] = inbox_new();
			if (!d->core[i].from[k])
				return -ENOMEM;
		}
	}
	if (n > 1)
		d->team = team_start(n, work, d);
	if (n > 1 && !d->team)
		return -errno;
	d->ncores = n;
	d->view.ncores = n;
	for (unsigned int i = 0; i < n; i++)
		d->view.core[i] = (struct view_core){&d->core[i].frames, &d->core[i].handed,
						     &d->core[i].dropped};
	return 0;
}

void cores_close(struct daemon *d)
{
	team_stop(d->team);
	for (unsigned int i = 0; i < SHARDS_MAX; i++)
		for (unsigned int k = 0; k < SHARDS_MAX; k++)
			inbox_free(d->core[i].from[k]);
	pthread_mutex_destroy(&d->says);
}

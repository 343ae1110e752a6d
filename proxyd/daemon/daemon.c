// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One loop in one thread. Descriptors only wake it; the work is done in turns (work()): frames from
 * the ports and datagrams from the peers go into the engine, the engine's tick produces frames and
 * reports, and all of it leaves in one batch. With several cores only that moving of frames is done
 * by several threads (daemon_cores.c). While there is more to do a turn repeats, a bounded
 * number of times, so that signals and the control socket are served every few hundred microseconds
 * at any load.
 *
 * Housekeeping is every HOUSE_NS: the heartbeat for the XDP program, which passes frames up to the
 * bridge without it; control clients that ran out of time; the log's rate limit; and each second
 * the service manager's watchdog and status.
 *
 * A stop is a drain: nothing more is acknowledged for hosts, and what was is delivered, for
 * drain-timeout at most; the log tells what is left then. A second signal ends it at once.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <systemd/sd-daemon.h>

#include "config/config_value.h"
#include "control/mirror.h"
#include "control/monitor.h"
#include "daemon/daemon_kept.h"
#include "daemon/daemon_priv.h"
#include "host/log.h"
#include "port/afxdp.h"

#define PEER_BUDGET 64 /* datagrams per round */
#define ROUNDS	    8  /* per turn */
/* After a turn with so many frames the next ones gather for as long as that turn took, but no
 * longer than REST_NS. This process is often faster than what feeds it, and would be woken for a
 * few frames each time. At a steady rate, what comes in a rest is at most half of what the next
 * turn reads, so that it fits in the rings. */
#define BUSY_FRAMES 8u
#define REST_NS	    80000ull
#define HOUSE_NS    50000000ull
#define STOOD_NS    (4 * HOUSE_NS) /* no round for so long: this process did not run */
#define OVERRUN_NS  1000000ull	   /* between queries of what the rings have lost */
#define LOOK_NS	    50000ull	   /* datagrams of which no turn of the loop told wait no longer */
#define SECOND_NS   1000000000ull
/* Time to put queue pairs into the error state (engine/fault). */
#define FAILING_NS  6000000000ull
/* If frames or reports wait for the kernel to take them: try again after this, doubled at most so
 * many times, since the interface may be down. */
#define TX_WAIT_NS  50000ull
#define TX_WAITS    3u

void daemon_clock(struct daemon *d)
{
	uint64_t before = d->now;

	d->now = loop_now();
	if (d->now - before > STOOD_NS)
		shards_stood_still(d->shards, before, d->now);
	d->stood_long |= d->now - before > OLD_NS;
}

static void on_datagram(void *ctx, unsigned int peer, const uint8_t *data, size_t len,
			uint64_t waited_ns)
{
	struct daemon *d = ctx;

	/* This clock is read after the one for @waited_ns. In the other order a datagram could seem
	 * to have arrived too early, and its delay would stay the smallest. */
	daemon_clock(d);
	d->box.waited_ns = waited_ns;
	session_rx(d->session, peer, data, len, d->now);
}

/* The engine answers a METER with what it had received when the METER arrived, so it must know
 * which frames it may have read before or after that moment. Returns how many were read; some may
 * be left when it is PEER_BUDGET. */
int daemon_datagrams(struct daemon *d)
{
	uint64_t read = afxdp_wan_read(d->port);
	int n;

	if (d->now >= d->overrun_at) {
		d->overrun_at = d->now + OVERRUN_NS;
		d->box.overrun = afxdp_overrun(d->port, STEER_WAN);
	}
	d->box.unread = afxdp_unread(d->port, STEER_WAN) + cores_unread(d);
	d->box.early = read - d->wan_read;
	n = peer_socket_rx(d->sock, PEER_BUDGET, on_datagram, d);
	if (!n && d->sock_told)
		peer_socket_troubles(d->sock);
	d->sock_told = false;
	if (n == PEER_BUDGET)
		d->look_at = 0;
	else
		d->wan_read = read;
	return n;
}

/* What an operator has bypassed, besides single connections. */
static const char *bypassed(const struct daemon *d)
{
	return d->operate.text[0] ? d->operate.text : NULL;
}

void daemon_on_control(void *ctx, int fd)
{
	struct daemon *d = ctx;

	(void)fd;
	control_service(d->control, loop_now());
	/* the next command must show it */
	if (d->operate.changed)
		health_bypass(&d->health, &d->view, bypassed(d), loop_now());
	d->operate.changed = false;
}

static void finish(struct daemon *d, int exit_code)
{
	d->phase = STOPPED;
	d->exit_code |= exit_code; /* a clean drain does not undo the error that began it */
	loop_stop(d->loop);
}

/* What was to go on to hosts here. @alone: of that, what no peer has any more. */
static struct ledger undelivered(struct daemon *d, struct ledger *alone)
{
	struct ledger all = {0};
	struct conn_info ci;

	*alone = all;
	for (uint32_t id = 0; shards_conn_next(d->shards, id, d->now, &ci); id = ci.id + 1) {
		for (unsigned int i = LANE_OUT; i <= LANE_IN; i++) {
			const struct lane_info *l = &ci.lane[i];

			all.packets += l->transit.packets;
			all.bytes += l->transit.bytes;
			alone->packets += l->state == LANE_DRAIN ? l->transit.packets : 0;
		}
	}
	return all;
}

/* Nothing is in custody. daemon_release() logs which connections cannot go on. */
static void stopped(struct daemon *d)
{
	struct ledger alone, left = undelivered(d, &alone);

	if (!left.packets)
		log_line(LOG_INFO, "stopped, nothing left in custody");
	else
		log_line(alone.packets ? LOG_ERR : LOG_WARNING,
			 "stopped, %llu packets, %llu bytes not delivered to hosts here: %llu of "
			 "them, whose peer is gone, are lost; the peer has the others in custody: "
			 "start longhauld again within the peer's peer-timeout",
			 (unsigned long long)left.packets, (unsigned long long)left.bytes,
			 (unsigned long long)alone.packets);
	finish(d, alone.packets ? 1 : 0);
}

/* While draining: end it when it is done or its time is over. */
static void check_drain(struct daemon *d)
{
	struct ledger left = shards_custody(d->shards, -1, d->now);
	uint32_t failing;

	if (d->phase == FAILING) {
		if (shards_may_stop(d->shards) || d->now >= d->drain_until)
			finish(d, 1);
		return;
	}
	if (shards_may_stop(d->shards)) {
		stopped(d);
	} else if (d->now >= d->drain_until) {
		failing = shards_give_up(d->shards, d->now);
		if (!failing) {
			stopped(d);
			return;
		}
		log_line(LOG_ERR,
			 "stopping with %llu packets, %llu bytes in custody undelivered: the queue "
			 "pairs of these transfers, %u, are put into the error state; %s",
			 (unsigned long long)left.packets, (unsigned long long)left.bytes, failing,
			 d->port_gone ? "set 'socket' to a place on a tmpfs for the next longhauld "
					"to go on"
				      : "raise drain-timeout to wait longer");
		d->phase = FAILING;
		d->drain_until = d->now + FAILING_NS;
	}
}

/* Log an alarm that was raised or cleared, with what to do about it. */
void daemon_on_alarm(void *ctx, unsigned int i, bool raised)
{
	struct daemon *d = ctx;
	const struct health_alarm *a = &d->health.alarm[i];
	struct health_what w;

	if (!health_alarm_of(i, &w))
		return;
	monitor_alarm(&d->view, i, raised);
	if (raised)
		log_line(w.level == HEALTH_CRITICAL ? LOG_ERR : LOG_WARNING, "alarm %s: %s; %s",
			 w.name, a->text, health_mend(&d->health, i));
	else
		log_line(LOG_INFO, "alarm %s is over: %s", w.name, a->text);
}

static void daemon_health(struct daemon *d)
{
	const struct health_source more = {
		.wan_rate = d->cfg->wan_rate & ~PACE_AUTO,
		.wan_auto = d->cfg->wan_rate & PACE_AUTO,
		.ahead_off = d->ahead_off[0] ? d->ahead_off : NULL,
		.bypass = bypassed(d),
	};

	d->stopping = d->phase != RUNNING;
	health_tick(&d->health, &d->view, &more, d->now);
}

/* Custody is delivered first; nothing new is taken into it. */
static void begin_stop(struct daemon *d)
{
	struct ledger left = shards_custody(d->shards, -1, d->now);

	d->phase = DRAINING;
	d->drain_until = d->now + d->cfg->drain_ns;
	d->next_house = d->now; /* check at once whether anything is in custody */
	sd_notify(0, "STOPPING=1");
	monitor_say(&d->view, "stopping", "custody is delivered first");
	log_line(LOG_INFO, "stopping: %llu packets, %llu bytes in custody to be delivered first",
		 (unsigned long long)left.packets, (unsigned long long)left.bytes);
	shards_drain(d->shards, d->now);
}

/*
 * The port's sockets are dead, or miss a part of its frames. Another process can open the port as
 * it is then and go on. If nothing outlives this process, stop: without the LAN port custody can
 * still be delivered; without the WAN port hosts can at least be told that it is lost.
 */
static void port_gone(struct daemon *d, unsigned int port, const char *what)
{
	d->port_gone = true;
	log_line(LOG_ERR, "interface %s %s; ending", d->cfg->ifname[port], what);
	if (d->state_fd) {
		d->hand_over = true;
		finish(d, 1);
		return;
	}
	d->exit_code = 1;
	if (d->phase == RUNNING)
		begin_stop(d);
	if (d->phase == DRAINING && afxdp_gone(d->port, STEER_WAN))
		d->drain_until = d->now;
}

/* Tell peers what their operators must know of this appliance. */
static void tell_sites(struct daemon *d)
{
	struct proto_site site;

	for (unsigned int i = 0; d->session && i < d->view.npeers; i++) {
		site = (struct proto_site){0};
		health_site(&d->health, &site);
		mirror_wanted(d->cfg->rules, d->cfg->nrules, i, &site);
		session_site(d->session, i, &site);
	}
}

static void tell_round_trips(struct daemon *d)
{
	for (unsigned int i = 0; d->session && i < d->view.npeers; i++)
		if (session_rtt(d->session, i))
			shards_peer_rtt(d->shards, i, session_rtt(d->session, i));
}

/* Memory that one core lent another and the system did not give back: others have taken it. */
static void tell_lacking(struct daemon *d)
{
	uint64_t lacks = shards_lacking(d->shards);
	bool lacking = lacks >= (1u << 20);

	if (lacking && !d->lacking)
		log_line(LOG_WARNING,
			 "the system has no memory for %llu MiB of 'pool': enlarge the file system "
			 "of %s, or raise MemoryMax of the unit",
			 (unsigned long long)lacks >> 20, d->cfg->socket);
	d->lacking = lacking;
}

static void every_second(struct daemon *d)
{
	struct engine_memory mem;
	unsigned int port = 0;
	int rc = afxdp_check(d->port, &port);
	bool back = rc == -ESTALE && afxdp_absent(d->port, port);

	daemon_names(d);
	daemon_own(d);
	if (d->uptime_ms >= KEPT_LIVES_MS)
		kept_lives();
	tell_sites(d);
	daemon_path(d);
	shards_memory(d->shards, &mem);
	tell_lacking(d);
	sd_notifyf(0,
		   "WATCHDOG=1\nSTATUS=%u rules, %u connections, %llu KiB of memory in custody%s",
		   d->cfg->nrules, mem.conns, (unsigned long long)mem.custody_used >> 10,
		   d->phase != RUNNING ? ", stopping" : "");
	/* one that comes back is no reason to stop where no other process can go on */
	if ((rc == -ENODEV || rc == -ESTALE) && !d->port_gone && (!back || d->state_fd))
		port_gone(d, port,
			  rc == -ENODEV ? "was removed or renamed"
			  : back	? "is up again"
					: "has another number of receive queues");
}

static void housekeeping(struct daemon *d)
{
	d->next_house = d->now + HOUSE_NS;
	if (afxdp_members(d->port)) {
		afxdp_carrier(d->port);
		d->next_house = d->now + AFXDP_CARRIER_MS * 1000000ull;
	}
	d->uptime_ms = (d->now - d->started) / 1000000;
	afxdp_heartbeat(d->port, d->now);
	control_tick(d->control, d->now);
	daemon_health(d);
	tell_round_trips(d);
	event_log_tick(&d->events, d->now);
	if (d->lingering)
		daemon_linger(d);
	if (d->now >= d->next_second) {
		d->next_second = d->now + SECOND_NS;
		every_second(d);
	}
	if (d->phase == DRAINING || d->phase == FAILING)
		check_drain(d);
}

void daemon_on_datagrams(void *ctx, int fd)
{
	struct daemon *d = ctx;

	(void)fd;
	d->look_at = 0;
	d->sock_told = true;
}

/* Whether to look for datagrams, a system call that finds none in most rounds. Before frames of the
 * WAN it is always made, as these may need what a datagram explains. */
static bool look_for_datagrams(struct daemon *d)
{
	bool wan = false;

	for (unsigned int i = 0; i < d->ncores && d->now < d->look_at; i++)
		wan |= afxdp_waits(d->port, i, STEER_WAN);
	if (d->now < d->look_at && !wan)
		return false;
	d->look_at = d->now + LOOK_NS;
	return true;
}

/* Frames from before a long pause of this process, in and out. Since then the hosts have sent their
 * packets again, past us, and a queue pair number may have another owner, for whom an ACK of so
 * long ago is not meant. */
static void drop_old(struct daemon *d)
{
	unsigned int n = cores_drop(d);

	if (n)
		log_line(LOG_NOTICE,
			 "this process stood still: %u frames that waited meanwhile are dropped",
			 n);
	d->stood_long = false;
}

/* Process all that is there, in and out; returns when there will be more to do. */
static uint64_t one_round(struct daemon *d)
{
	uint64_t deadline, t;
	bool waiting = false, more = false;
	unsigned int moved;

	daemon_clock(d);
	if (d->stood_long)
		drop_old(d); /* the heartbeat of housekeeping has new ones come */
	if (d->now >= d->next_house)
		housekeeping(d);
	/* datagrams first: an OPEN must not be read after the frames that it explains */
	if (d->session && look_for_datagrams(d))
		more = daemon_datagrams(d) == PEER_BUDGET;
	/* its events for the engine belong to this batch */
	if (d->session && d->now >= session_deadline(d->session))
		session_tick(d->session, d->now);
	shards_begin(d->shards, d->now);
	moved = cores_run(d);
	d->frames += moved;
	if (d->session && !d->boots_known)
		daemon_state_told(d);
	deadline = d->next_house;
	waiting = cores_flush(d);
	shards_end(d->shards, d->now);
	if (d->session) {
		session_flush(d->session);
		waiting |= peer_socket_flush(d->sock);
		t = session_deadline(d->session);
		deadline = t < deadline ? t : deadline;
	}
	more |= cores_have_frames(d, moved);
	t = shards_deadline(d->shards);
	if (!waiting)
		d->tx_waits = 0;
	else if (d->now + (TX_WAIT_NS << d->tx_waits) < t)
		t = d->now + (TX_WAIT_NS << d->tx_waits);
	if (waiting && !moved)
		d->tx_waits += d->tx_waits < TX_WAITS;
	return more ? 0 : t < deadline ? t : deadline;
}

static uint64_t work(void *ctx)
{
	struct daemon *d = ctx;
	uint64_t deadline = 0, silent, began = loop_now(), took;

	d->turns++;
	d->frames = 0;
	for (int i = 0; i < ROUNDS && d->phase != STOPPED; i++) {
		deadline = one_round(d);
		if (deadline > d->now)
			break;
	}
	took = loop_now() - began;
	if (d->frames)
		d->busy_until = began + took + d->cfg->busy_poll_ns;
	if (d->phase == RUNNING && began + took < d->busy_until)
		return 0;
	if (d->frames >= BUSY_FRAMES && !d->cfg->busy_poll_ns)
		loop_rest(d->loop, took < REST_NS ? took : REST_NS);
	if (d->phase != HUSHED)
		return deadline;
	silent = daemon_hushed(d);
	if (!silent)
		finish(d, 0);
	return deadline < silent ? deadline : silent;
}

void daemon_on_stop(void *ctx, int signo)
{
	struct daemon *d = ctx;
	struct ledger left;

	(void)signo;
	d->now = loop_now();
	if (d->phase == HUSHED) {
		finish(d, 0); /* another process goes on, as planned */
		return;
	}
	left = shards_custody(d->shards, -1, d->now);
	if (d->phase != RUNNING) {
		log_line(left.packets ? LOG_ERR : LOG_INFO,
			 "stopped at once by a second signal, %llu packets, %llu bytes in custody "
			 "undelivered",
			 (unsigned long long)left.packets, (unsigned long long)left.bytes);
		finish(d, left.packets || d->phase == FAILING ? 1 : 0);
		return;
	}
	begin_stop(d);
}

/*
 * From here on frames go to the bridge. Frames that are still in the sockets' rings are processed
 * as ever, so that a stop drops nothing.
 */
void daemon_last_frames(struct daemon *d)
{
	if (!d->port)
		return;
	afxdp_heartbeat(d->port, 0);
	cores_last_frames(d);
}

int daemon_run(struct daemon *d)
{
	sd_notify(0, "READY=1");
	loop_run(d->loop, work, d);
	return d->exit_code;
}

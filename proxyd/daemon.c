// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One thread, one loop. Descriptors only wake it; the work is done in turns (work()): frames from the
 * ports and datagrams from the peers go into the engine, the engine's tick says what there is to say, all
 * of it leaves in one batch. While there is more to do a turn repeats, a bounded number of times, so that
 * signals and the control socket are looked at every few hundred microseconds however high the load.
 *
 * Housekeeping is every HOUSE_NS: the heartbeat by which the XDP program knows that somebody reads,
 * impatient control clients, the log's ration, and each second the service manager's watchdog and status.
 *
 * A stop is a drain: no new custody, what is owed is still delivered, for drain-timeout at most; whatever
 * is left then is said in the log. A second signal ends it at once.
 */
#include "daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>

#include "control/control.h"
#include "engine/engine.h"
#include "event_log.h"
#include "log.h"
#include "loop.h"
#include "peer/session.h"
#include "peer/socket.h"
#include "port/afxdp.h"
#include "privilege.h"
#include "steering.h"

#define RX_BUDGET 128	 /* frames per socket and round */
#define PEER_BUDGET 64	 /* datagrams per round */
#define ROUNDS 8	 /* per turn */
#define HOUSE_NS 50000000ull
#define SECOND_NS 1000000000ull
/* Frames wait for the kernel to take them: look again, but not in a tight circle, the interface may be
 * down. */
#define TX_WAIT_NS 50000ull
#define FDS_MAX (2 * STEER_QUEUES)

_Static_assert((int)PORT_LAN == (int)STEER_LAN && (int)PORT_WAN == (int)STEER_WAN, "same numbers");

enum phase {
	RUNNING,
	DRAINING, /* signalled once */
	STOPPED,
};

struct daemon {
	struct config *cfg;
	struct engine *engine;
	struct afxdp *port;
	struct peer_socket *sock;
	struct session *session;
	struct control *control;
	struct loop *loop;
	struct view_source view;
	struct event_log events;
	enum phase phase;
	int exit_code;
	bool port_down;
	uint64_t now, started, next_house, next_second, drain_until;
	uint64_t uptime_ms, turns, reloads, reloads_refused;
	struct view_counter counters[8];
};

/* ---- the engine's and the session's outputs ---- */

static int sink_tx(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len)
{
	struct daemon *d = ctx;

	return afxdp_tx(d->port, (enum steer_side)port, data, len);
}

static void sink_report(void *ctx, unsigned int peer, const struct report *r)
{
	struct daemon *d = ctx;

	/* A report that cannot go is counted there; the engine says again what matters. */
	if (d->session)
		session_report(d->session, peer, r);
}

static void sink_event(void *ctx, const struct engine_event *ev)
{
	struct daemon *d = ctx;

	event_log_write(&d->events, &d->view, ev, d->now);
}

static void session_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct daemon *d = ctx;

	peer_socket_send(d->sock, peer, data, len);
}

static void session_on_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now_ns)
{
	struct daemon *d = ctx;

	engine_peer_event(d->engine, peer, ev, now_ns);
}

static void session_on_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now_ns)
{
	struct daemon *d = ctx;

	engine_rx_report(d->engine, peer, r, now_ns);
}

static void session_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	(void)ctx, (void)peer;
	log_line(prio, "%s", line);
}

/* ---- one turn ---- */

static void on_frame(void *ctx, enum steer_side side, const uint8_t *data, uint32_t len)
{
	struct daemon *d = ctx;

	engine_rx(d->engine, (enum engine_port)side, data, len, d->now);
}

static void on_datagram(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct daemon *d = ctx;

	session_rx(d->session, peer, data, len, d->now);
}

static void on_control(void *ctx, int fd)
{
	struct daemon *d = ctx;

	(void)fd;
	control_service(d->control, loop_now());
}

static void finish(struct daemon *d, int exit_code)
{
	d->phase = STOPPED;
	d->exit_code = exit_code;
	loop_stop(d->loop);
}

/* While draining: is it done, or is time up? */
static void check_drain(struct daemon *d)
{
	struct ledger left = engine_custody(d->engine, -1, d->now);

	if (!left.packets) {
		log_line(LOG_INFO, "stopped, nothing left in custody");
		finish(d, 0);
	} else if (d->now >= d->drain_until) {
		log_line(LOG_ERR,
			 "stopped with %llu packets, %llu bytes in custody undelivered: these transfers were "
			 "acknowledged and are lost; raise drain-timeout to wait longer",
			 (unsigned long long)left.packets, (unsigned long long)left.bytes);
		finish(d, 1);
	}
}

static void every_second(struct daemon *d)
{
	struct engine_memory mem;
	int rc = afxdp_check(d->port);

	engine_memory(d->engine, &mem);
	sd_notifyf(0, "WATCHDOG=1\nSTATUS=%u rules, %u connections, %llu KiB of memory in custody%s",
		   d->cfg->nrules, mem.conns, (unsigned long long)mem.custody_used >> 10,
		   d->phase == DRAINING ? ", stopping" : "");
	if (rc == -ENODEV) {
		log_line(LOG_ERR, "interface %s or %s was removed or renamed; ending", d->cfg->ifname[STEER_LAN],
			 d->cfg->ifname[STEER_WAN]);
		finish(d, 1);
	}
	if ((rc == -ENETDOWN) != d->port_down) {
		d->port_down = !d->port_down;
		log_line(LOG_WARNING, "interface %s or %s %s", d->cfg->ifname[STEER_LAN],
			 d->cfg->ifname[STEER_WAN], d->port_down ? "is down" : "is up again");
	}
}

static void housekeeping(struct daemon *d)
{
	d->next_house = d->now + HOUSE_NS;
	d->uptime_ms = (d->now - d->started) / 1000000;
	afxdp_heartbeat(d->port, d->now);
	control_tick(d->control, d->now);
	event_log_tick(&d->events, d->now);
	if (d->now >= d->next_second) {
		d->next_second = d->now + SECOND_NS;
		every_second(d);
	}
	if (d->phase == DRAINING)
		check_drain(d);
}

/* Everything that is there now, in and out; returns when there will be more to do. */
static uint64_t one_round(struct daemon *d)
{
	uint64_t deadline, t;
	bool waiting;
	int more = 0;

	d->now = loop_now();
	if (d->now >= d->next_house)
		housekeeping(d);
	more |= afxdp_rx(d->port, RX_BUDGET, on_frame, d) > 0;
	if (d->session)
		more |= peer_socket_rx(d->sock, PEER_BUDGET, on_datagram, d) > 0;
	engine_tick(d->engine, d->now);
	deadline = d->next_house;
	if (d->session) {
		if (d->now >= session_deadline(d->session))
			session_tick(d->session, d->now);
		session_flush(d->session);
		t = session_deadline(d->session);
		deadline = t < deadline ? t : deadline;
	}
	waiting = afxdp_flush(d->port);
	t = engine_deadline(d->engine);
	if (waiting && d->now + TX_WAIT_NS < t)
		t = d->now + TX_WAIT_NS;
	return more ? 0 : t < deadline ? t : deadline;
}

static uint64_t work(void *ctx)
{
	struct daemon *d = ctx;
	uint64_t deadline = 0;

	d->turns++;
	for (int i = 0; i < ROUNDS && d->phase != STOPPED; i++) {
		deadline = one_round(d);
		if (deadline > d->now)
			break;
	}
	return deadline;
}

/* ---- signals ---- */

static void on_stop(void *ctx, int signo)
{
	struct daemon *d = ctx;
	struct ledger left;

	(void)signo;
	d->now = loop_now();
	left = engine_custody(d->engine, -1, d->now);
	if (d->phase != RUNNING) {
		log_line(left.packets ? LOG_ERR : LOG_INFO,
			 "stopped at once by a second signal, %llu packets, %llu bytes in custody undelivered",
			 (unsigned long long)left.packets, (unsigned long long)left.bytes);
		finish(d, left.packets ? 1 : 0);
		return;
	}
	d->phase = DRAINING;
	d->drain_until = d->now + d->cfg->drain_ns;
	d->next_house = d->now; /* look at once whether anything is owed at all */
	sd_notify(0, "STOPPING=1");
	log_line(LOG_INFO, "stopping: %llu packets, %llu bytes in custody to be delivered first",
		 (unsigned long long)left.packets, (unsigned long long)left.bytes);
	engine_drain(d->engine, d->now);
}

static void set_rules(struct daemon *d)
{
	d->view.rules = d->cfg->rules;
	d->view.nrules = d->cfg->nrules;
	engine_rules(d->engine, d->cfg->rules, d->cfg->nrules, d->now);
}

/* The hosts that peers are told of: those near us in rules that name a peer. */
static void served_prefixes(const struct config *cfg, struct session_local *local, struct prefix *buf)
{
	memset(local, 0, sizeof(*local));
	local->name = cfg->node;
	local->prefix = buf;
	for (unsigned int i = 0; i < cfg->nrules; i++) {
		const struct rule *r = &cfg->rules[i];

		if (r->peer == PEER_NONE)
			continue;
		memcpy(buf + local->nprefix, r->near, r->nnear * sizeof(*buf));
		local->nprefix += r->nnear;
	}
}

/* Take over the rules of @new; a negative errno when the port does not take them, nothing changed then. */
static int take_rules(struct daemon *d, struct config *new)
{
	struct prefix *buf = calloc(RULE_MAX * RULE_PREFIXES, sizeof(*buf));
	struct steering *s = malloc(sizeof(*s));
	struct session_local local;
	int rc = buf && s ? 0 : -ENOMEM;

	if (!rc) {
		steering_init(s, new->rules, new->nrules);
		rc = afxdp_rules(d->port, s->near, s->nnear, s->far, s->nfar, s->vlan);
	}
	if (!rc) {
		memcpy(d->cfg->rules, new->rules, sizeof(new->rules));
		memcpy(d->cfg->rule_line, new->rule_line, sizeof(new->rule_line));
		d->cfg->nrules = new->nrules;
		d->cfg->log_level = new->log_level;
		d->cfg->drain_ns = new->drain_ns;
		log_init(d->cfg->log_level);
		set_rules(d);
		served_prefixes(d->cfg, &local, buf);
		if (d->session)
			session_local(d->session, &local, d->now);
	}
	free(buf);
	free(s);
	return rc;
}

static bool reload(struct daemon *d, struct config *new, struct config_errors *errs)
{
	const char *other;
	int rc;

	if (config_load(d->cfg->file, new, errs)) {
		for (unsigned int i = 0; i < errs->n && i < CONFIG_ERRORS; i++)
			log_line(LOG_ERR, "%s", errs->text[i]);
		return false;
	}
	other = config_restart_needed(d->cfg, new);
	if (other) {
		log_line(LOG_ERR, "%s: '%s' differs, which only a restart can change; systemctl restart longhauld, "
			 "or set it back", d->cfg->file, other);
		return false;
	}
	rc = take_rules(d, new);
	if (rc)
		log_line(LOG_ERR, "the XDP program does not take the rules: %s", strerror(-rc));
	return !rc;
}

static void on_reload(void *ctx, int signo)
{
	struct config_errors *errs = malloc(sizeof(*errs));
	struct config *new = malloc(sizeof(*new));
	struct daemon *d = ctx;

	(void)signo;
	d->now = loop_now();
	if (errs && new && reload(d, new, errs)) {
		d->reloads++;
		log_line(LOG_INFO, "%s read again, %u rules", d->cfg->file, d->cfg->nrules);
	} else {
		d->reloads_refused++;
		log_line(LOG_ERR, "configuration not changed, the old one stays in force");
	}
	free(new);
	free(errs);
}

/* ---- start ---- */

static int open_engine(struct daemon *d, char *err, size_t errlen)
{
	const struct config *cfg = d->cfg;
	struct engine_config ec = {
		.pool_bytes = cfg->pool_bytes,
		.max_conns = cfg->max_conns,
		.wan_rate = cfg->wan_rate,
		.peer_timeout_ns = cfg->peer_timeout_ns,
		.responder_timeout_ns = cfg->responder_timeout_ns,
		.idle_ns = cfg->idle_ns,
	};
	struct engine_sink sink = {
		.ctx = d, .tx = sink_tx, .report = sink_report, .event = sink_event };

	if (getrandom(&ec.seed, sizeof(ec.seed), 0) != sizeof(ec.seed)) {
		snprintf(err, errlen, "no random numbers: %s", strerror(errno));
		return -EIO;
	}
	d->engine = engine_create(&ec, &sink, d->now);
	if (!d->engine) {
		snprintf(err, errlen, "not enough memory for a pool of %llu MiB and %u connections; lower 'pool' or "
			 "'max-connections'", (unsigned long long)cfg->pool_bytes >> 20, cfg->max_conns);
		return -ENOMEM;
	}
	d->view.engine = d->engine;
	set_rules(d);
	return 0;
}

static int open_port(struct daemon *d, char *err, size_t errlen)
{
	const struct config *cfg = d->cfg;
	struct steering *s = malloc(sizeof(*s));
	struct afxdp_config ac = {
		.ifname = { cfg->ifname[STEER_LAN], cfg->ifname[STEER_WAN] },
		.mode = cfg->mode,
		.max_frame = cfg->max_path_mtu ? FRAME_HDR_MAX + cfg->max_path_mtu + ICRC_LEN : 0,
	};

	if (!s) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	steering_init(s, cfg->rules, cfg->nrules);
	ac.near = s->near;
	ac.nnear = s->nnear;
	ac.far = s->far;
	ac.nfar = s->nfar;
	ac.vlan_rules = s->vlan;
	d->port = afxdp_open(&ac, err, errlen);
	free(s);
	d->view.port = d->port;
	return d->port ? 0 : -EIO;
}

static int add_peer(struct daemon *d, unsigned int i, char *err, size_t errlen)
{
	const struct config_peer *p = &d->cfg->peers[i];
	uint8_t key[PEER_KEY_LEN];
	int rc = key_read(p->key_file, key, err, errlen);

	if (rc)
		return rc;
	rc = peer_socket_map(d->sock, i, &p->addr, p->port);
	if (!rc)
		rc = session_peer_add(d->session, i, p->name, key, d->now);
	explicit_bzero(key, sizeof(key));
	if (rc)
		snprintf(err, errlen, "%s:%u: peer '%s' cannot be reached from the address in 'listen': %s",
			 d->cfg->file, p->line, p->name, strerror(-rc));
	d->view.peers[i] = (struct view_peer){ .name = p->name, .addr = p->addr, .port = p->port };
	return rc;
}

static int open_peers(struct daemon *d, char *err, size_t errlen)
{
	const struct config *cfg = d->cfg;
	struct session_sink sink = {
		.ctx = d,
		.send = session_send,
		.event = session_on_event,
		.report = session_on_report,
		.log = session_log,
	};
	struct session_config sc = { 0 };
	struct prefix *buf;
	int rc = 0;

	if (!cfg->npeers)
		return 0;
	d->sock = peer_socket_open(&cfg->listen, cfg->port, err, errlen);
	if (!d->sock)
		return -EIO;
	buf = calloc(RULE_MAX * RULE_PREFIXES, sizeof(*buf));
	if (buf) {
		served_prefixes(cfg, &sc.local, buf);
		d->session = session_create(&sc, &sink, d->now);
		free(buf);
	}
	if (!d->session) {
		snprintf(err, errlen, "peer sessions cannot start: %s", strerror(errno));
		return -EIO;
	}
	d->view.npeers = cfg->npeers;
	d->view.session = d->session;
	d->view.sock = d->sock;
	for (unsigned int i = 0; i < cfg->npeers && !rc; i++)
		rc = add_peer(d, i, err, errlen);
	return rc;
}

static void name_counters(struct daemon *d)
{
	const struct control_stats *cs = control_stats(d->control);
	const struct view_counter list[] = {
		{ "uptime-ms", "since the daemon started", &d->uptime_ms },
		{ "turns", "turns of its loop", &d->turns },
		{ "reloads", "configurations taken over by SIGHUP", &d->reloads },
		{ "reloads-refused", "configurations that were not", &d->reloads_refused },
		{ "control-requests", "requests answered", &cs->requests },
		{ "control-errors", "requests answered with an error", &cs->errors },
		{ "control-refused", "control clients refused, too many at once", &cs->refused },
		{ "control-dropped", "control clients that went away or kept the daemon waiting", &cs->dropped },
	};

	_Static_assert(sizeof(list) == sizeof(d->counters), "room for all");
	memcpy(d->counters, list, sizeof(list));
	d->view.daemon = d->counters;
	d->view.ndaemon = sizeof(list) / sizeof(list[0]);
}

static int open_loop(struct daemon *d, char *err, size_t errlen)
{
	int fds[FDS_MAX], n = afxdp_fds(d->port, fds, FDS_MAX), rc = 0;

	d->loop = loop_create();
	if (!d->loop) {
		snprintf(err, errlen, "no event loop: %s", strerror(errno));
		return -EIO;
	}
	for (int i = 0; i < n && !rc; i++)
		rc = loop_add_fd(d->loop, fds[i], NULL, NULL);
	if (!rc && d->sock)
		rc = loop_add_fd(d->loop, peer_socket_fd(d->sock), NULL, NULL);
	if (!rc)
		rc = loop_add_fd(d->loop, control_fd(d->control), on_control, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGTERM, on_stop, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGINT, on_stop, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGHUP, on_reload, d);
	if (rc)
		snprintf(err, errlen, "no event loop: %s", strerror(-rc));
	return rc;
}

static int open_control(struct daemon *d, char *err, size_t errlen)
{
	d->control = control_open(d->cfg->socket, &d->view, err, errlen);
	if (!d->control)
		return -EIO;
	name_counters(d);
	return 0;
}

static void say_hello(const struct daemon *d)
{
	const struct config *cfg = d->cfg;

	for (int side = 0; side < STEER_SIDES; side++) {
		int e = afxdp_native_error(d->port, side);

		log_line(LOG_INFO, "%s port %s: %s XDP, %u queue%s, frames up to %u bytes%s%s",
			 side == STEER_LAN ? "LAN" : "WAN", cfg->ifname[side],
			 afxdp_native(d->port, side) ? "native" : "generic", afxdp_queues(d->port, side),
			 afxdp_queues(d->port, side) == 1 ? "" : "s", afxdp_max_frame(d->port),
			 e ? "; native XDP failed: " : "", e ? strerror(e) : "");
	}
	if (afxdp_max_frame(d->port) < FRAME_MAX && !cfg->max_path_mtu)
		log_line(LOG_WARNING, "this kernel has no multi-buffer AF_XDP: packets of path MTU 4096 pass by "
			 "unaccelerated; use Linux 6.6 or later, or path MTU 2048 on the hosts");
	log_line(LOG_INFO, "ready: %u rules, %u peers, node %s", cfg->nrules, cfg->npeers, cfg->node);
}

struct daemon *daemon_start(struct config *cfg, char *err, size_t errlen)
{
	struct daemon *d = calloc(1, sizeof(*d));

	if (!d) {
		snprintf(err, errlen, "out of memory");
		free(cfg);
		return NULL;
	}
	d->cfg = cfg;
	d->now = d->started = loop_now();
	event_log_tick(&d->events, d->now);
	if (open_engine(d, err, errlen) || open_peers(d, err, errlen) || open_control(d, err, errlen) ||
	    open_port(d, err, errlen) || open_loop(d, err, errlen) ||
	    privilege_drop(cfg->sandbox, err, errlen)) {
		daemon_stop(d);
		return NULL;
	}
	say_hello(d);
	return d;
}

int daemon_run(struct daemon *d)
{
	sd_notify(0, "READY=1");
	loop_run(d->loop, work, d);
	return d->exit_code;
}

void daemon_stop(struct daemon *d)
{
	if (!d)
		return;
	if (d->session)
		session_bye(d->session, BYE_SHUTDOWN);
	control_close(d->control);
	afxdp_close(d->port);
	session_destroy(d->session);
	peer_socket_close(d->sock);
	loop_destroy(d->loop);
	engine_destroy(d->engine);
	free(d->cfg);
	free(d);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Opening and closing: each part is created and connected to the next one; at last privileges are
 * dropped. Ports come late, so that no frame is taken before the engine can process it.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control/monitor.h"
#include "daemon/daemon_priv.h"
#include "daemon/steering.h"
#include "host/host.h"
#include "host/log.h"
#include "host/privilege.h"
#include "port/afxdp.h"

#define MONITOR_RING (512u << 10)

#define FDS_MAX (2 * STEER_QUEUES)

_Static_assert((int)PORT_LAN == (int)STEER_LAN && (int)PORT_WAN == (int)STEER_WAN, "same numbers");

/* ---- the session's outputs ---- */

static void session_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len)
{
	struct daemon *d = ctx;

	peer_socket_send(d->sock, peer, data, len);
}

bool daemon_fits(const struct daemon *d, uint32_t features)
{
	return shards_n(d->shards) == 1 || features & PEER_FEATURE_SLICES;
}

/* Tell the engine what the peer that has come up can do; log what our rules want and it cannot.
 * False: nothing can be done with it. */
static bool know_features(struct daemon *d, unsigned int peer)
{
	struct session_info si;

	if (!session_info(d->session, peer, d->now, &si))
		return true;
	if (!daemon_fits(d, si.features)) {
		log_line(LOG_WARNING,
			 "peer %s is of an older version that works with one core only: its "
			 "connections pass unaccelerated; update longhaul there, or set cores = 1 "
			 "here",
			 si.name);
		return false;
	}
	shards_peer_features(d->shards, peer, si.features);
	for (unsigned int i = 0; i < d->cfg->nrules; i++) {
		const struct rule *r = &d->cfg->rules[i];

		if (r->peer != (int8_t)peer)
			continue;
		if (mirror_unsealed(r, peer, &si))
			log_line(LOG_WARNING,
				 "peer %s is of an older version that does not seal: its "
				 "connections in rule %s pass unaccelerated; update longhaul "
				 "there, or set seal = off at both ends (wan-check = off there)",
				 si.name, r->name);
		if (r->order && !(si.features & PEER_FEATURE_ORDER))
			log_line(
				LOG_WARNING,
				"peer %s cannot keep order between queue pairs: rule %s works with "
				"it as with policy = honest; update longhaul there",
				si.name, r->name);
	}
	return true;
}

static void session_on_event(void *ctx, unsigned int peer, enum peer_event ev, uint64_t now_ns)
{
	struct daemon *d = ctx;

	ev = daemon_state_event(d, peer, ev);
	if (ev == PEER_DOWN || know_features(d, peer))
		shards_peer_event(d->shards, peer, ev, now_ns);
	d->boots_known = false;
	if (ev == PEER_DOWN)
		health_peer_down(&d->health, &d->view, peer, now_ns);
	if (ev != PEER_AGAIN) /* for operators it was up all the time */
		monitor_peer(&d->view, peer, ev);
}

static void session_on_report(void *ctx, unsigned int peer, const struct report *r, uint64_t now_ns)
{
	struct daemon *d = ctx;

	bool told = capture_on(&d->capture);

	if (told)
		capture_before(&d->capture, &d->view, d->now);
	if (shards_n(d->shards) == 1 || shards_peer_is_up(d->shards, peer))
		shards_report(d->shards, peer, r, &d->box, now_ns);
	if (told)
		capture_after(&d->capture, &d->view, now_ns);
}

static void session_log(void *ctx, unsigned int peer, int prio, const char *line)
{
	(void)ctx, (void)peer;
	log_line(prio, "%s", line);
}

/* ---- one part after the other ---- */

static int open_engine(struct daemon *d, char *err, size_t errlen)
{
	const struct config *cfg = d->cfg;
	struct engine_config ec = daemon_limits(cfg);
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	int rc;

	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
	ec.pool_bytes = cfg->pool_bytes;
	ec.max_conns = cfg->max_conns;
	if (getrandom(&ec.seed, sizeof(ec.seed), 0) != sizeof(ec.seed)) {
		snprintf(err, errlen, "no random numbers: %s", strerror(errno));
		return -EIO;
	}
	daemon_engines(d, &ec);
	if (!d->shards) {
		snprintf(err, errlen,
			 "not enough memory for a pool of %llu MiB and %u connections; lower "
			 "'pool' or 'max-connections'",
			 (unsigned long long)cfg->pool_bytes >> 20, cfg->max_conns);
		return -ENOMEM;
	}
	rc = shards_lock(d->shards);
	if (rc)
		log_line(
			LOG_WARNING,
			"packets in custody may be swapped out, and hosts wait then: their memory "
			"cannot be locked (%s); raise LimitMEMLOCK, lower 'pool', or turn swap off",
			strerror(-rc));
	if (!d->adopted) /* when adopting, hosts wait */
		shards_huge(d->shards);
	d->view.shards = d->shards;
	daemon_set_rules(d);
	return 0;
}

static int open_port(struct daemon *d, char *err, size_t errlen)
{
	const struct config *cfg = d->cfg;
	struct steering *s = malloc(sizeof(*s));
	struct afxdp_config ac = {
		.mode = cfg->mode,
		.max_frame = cfg->max_path_mtu ? FRAME_HDR_MAX + cfg->max_path_mtu + ICRC_LEN : 0,
		.pins = host_pins(),
		.max_held = cfg->max_conns,
		.file = daemon_frames(d),
		.file_new = !d->adopted, /* when adopting, hosts wait */
		.parts = shards_n(d->shards),
		.busy_poll_us = (uint32_t)(cfg->busy_poll_ns / 1000),
	};

	for (unsigned int port = 0; port < STEER_PORTS; port++)
		ac.ifname[port] = cfg->ifname[port];
	memcpy(ac.vlan_strip, d->vlan_strip, sizeof(ac.vlan_strip));
	if (!s) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	steering_init(s, cfg->rules, cfg->nrules);
	d->lingering = d->adopted && daemon_lingers(d);
	if (d->lingering)
		steering_add_all(s);
	daemon_own_open(d);
	steering_own(s, d->own.addr, d->own.n);
	ac.near = s->near;
	ac.nnear = s->nnear;
	ac.far = s->far;
	ac.nfar = s->nfar;
	ac.vlan_rules = s->vlan;
	d->port = afxdp_open(&ac, err, errlen);
	free(s);
	if (ac.file)
		close(ac.file);
	d->view.port = d->port;
	if (!d->port)
		return -EIO;
	daemon_state_ports(d);
	daemon_prefetch(d);
	daemon_set_rules(d);
	return daemon_orphans(d, err, errlen);
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
		.probe = daemon_probe,
	};
	struct session_config sc = {.memory = daemon_session_memory(d)};
	struct prefix *buf;
	int rc;

	if (!cfg->npeers)
		return 0;
	d->sock = peer_socket_open(&cfg->listen, cfg->port, err, errlen);
	if (!d->sock)
		return -EIO;
	daemon_path_open(d);
	/* reports of a batch must not leave before it is committed */
	if (d->state_fd && peer_socket_wait(d->sock)) {
		snprintf(err, errlen, "no memory for datagrams that wait");
		return -ENOMEM;
	}
	buf = calloc(RULE_MAX * RULE_PREFIXES, sizeof(*buf));
	if (buf) {
		daemon_served(cfg, &sc.local, buf);
		d->session = session_create(&sc, &sink, d->now);
		free(buf);
	}
	if (!d->session) {
		snprintf(err, errlen, "peer sessions cannot start: %s", strerror(errno));
		return -EIO;
	}
	d->view.session = d->session;
	d->view.sock = d->sock;
	rc = daemon_add_peers(d, err, errlen);
	if (!rc)
		daemon_state_peers(d);
	return rc;
}

static void name_counters(struct daemon *d)
{
	const struct control_stats *cs = control_stats(d->control);
	const struct view_counter list[] = {
		{"uptime-ms", "since the daemon started", &d->uptime_ms},
		{"turns", "turns of its loop", &d->turns},
		{"reloads", "configurations taken over by SIGHUP", &d->reloads},
		{"reloads-refused", "configurations that were not", &d->reloads_refused},
		{"control-requests", "requests answered", &cs->requests},
		{"control-errors", "requests answered with an error", &cs->errors},
		{"control-refused", "control clients refused, too many at once", &cs->refused},
		{"control-dropped", "control clients that went away or kept the daemon waiting",
		 &cs->dropped},
	};

	_Static_assert(sizeof(list) == sizeof(d->counters), "room for all");
	memcpy(d->counters, list, sizeof(list));
	d->view.daemon = d->counters;
	d->view.ndaemon = sizeof(list) / sizeof(list[0]);
}

static int open_loop(struct daemon *d, char *err, size_t errlen)
{
	int fds[FDS_MAX], n = afxdp_fds(d->port, fds, FDS_MAX), rc = 0;

	signal(SIGPIPE, SIG_IGN); /* the reader of our log may go away; custody must not */
	d->loop = loop_create();
	if (!d->loop) {
		snprintf(err, errlen, "no event loop: %s", strerror(errno));
		return -EIO;
	}
	for (int i = 0; i < n && !rc; i++)
		rc = loop_add_fd(d->loop, fds[i], NULL, NULL);
	if (!rc && d->sock)
		rc = loop_add_fd(d->loop, peer_socket_fd(d->sock), daemon_on_datagrams, d);
	if (!rc)
		rc = d->resolver ? loop_add_fd(d->loop, resolver_fd(d->resolver), daemon_on_name, d)
				 : 0;
	if (!rc)
		rc = loop_add_fd(d->loop, control_fd(d->control), daemon_on_control, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGTERM, daemon_on_stop, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGINT, daemon_on_stop, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGHUP, daemon_on_reload, d);
	if (!rc)
		rc = loop_on_signal(d->loop, SIGUSR2, daemon_on_hand_over, d);
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

/* The cores' threads keep no right that this one gives up. */
static int give_up_privileges(struct daemon *d, char *err, size_t errlen)
{
	int rc = privilege_drop(afxdp_restores(d->port), err, errlen);

	if (rc)
		return rc;
	rc = cores_begin(d);
	if (rc) {
		snprintf(err, errlen, "%u cores cannot be used: %s; set a lower 'cores'",
			 afxdp_parts(d->port), strerror(-rc));
		return rc;
	}
	return d->cfg->sandbox ? privilege_sandbox(err, errlen) : 0;
}

static void say_port(const struct daemon *d, unsigned int port)
{
	const char *side = port < STEER_PORT(STEER_WAN, 0) ? "LAN" : "WAN";
	unsigned int queues;
	int e, refused;

	if (afxdp_absent(d->port, port))
		log_line(LOG_WARNING,
			 "%s port %s is missing or down: going on without it until it "
			 "is up",
			 side, afxdp_name(d->port, port));
	if (!afxdp_has(d->port, port))
		return;
	e = afxdp_native_error(d->port, port);
	refused = afxdp_refused(d->port, port);
	queues = afxdp_queues(d->port, port);
	log_line(LOG_INFO, "%s port %s: %s XDP%s, %u queue%s, frames up to %u bytes%s%s%s%s", side,
		 afxdp_name(d->port, port), afxdp_native(d->port, port) ? "native" : "generic",
		 afxdp_zero_copy(d->port, port) ? ", zero-copy" : "", queues,
		 queues == 1 ? "" : "s", afxdp_max_frame(d->port), e ? "; native XDP failed: " : "",
		 e ? strerror(e) : "", refused ? "; zero-copy failed: " : "",
		 refused ? strerror(refused) : "");
}

static void say_hello(const struct daemon *d)
{
	const struct config *cfg = d->cfg;

	for (unsigned int port = 0; port < STEER_PORTS; port++)
		say_port(d, port);
	if (afxdp_max_frame(d->port) < FRAME_MAX && !cfg->max_path_mtu)
		log_line(LOG_WARNING,
			 "this kernel has no multi-buffer AF_XDP: packets of path MTU 4096 pass by "
			 "unaccelerated; use Linux 6.6 or later, or path MTU 2048 on the hosts");
	if (d->adopted) {
		struct ledger l = shards_custody(d->shards, -1, d->now);

		log_line(
			LOG_NOTICE,
			"going on where a former longhauld ended, with %llu packets, %llu bytes in "
			"custody, after a pause of %llu ms",
			(unsigned long long)l.packets, (unsigned long long)l.bytes,
			(unsigned long long)(loop_now() - shards_left_at(d->shards)) / 1000000);
	}
	if (d->ncores < shards_n(d->shards))
		log_line(LOG_WARNING,
			 "%u core%s in use, not %u: %s; ethtool -L sets the number of "
			 "queues",
			 d->ncores, d->ncores == 1 ? " is" : "s are", shards_n(d->shards),
			 afxdp_members(d->port) ? "a side has several ports"
						: "a port has fewer queues");
	if (d->ncores > 1)
		log_line(LOG_INFO, "%u cores", d->ncores);
	log_line(LOG_INFO, "ready: %u rule%s, %u peer%s, node %s", cfg->nrules,
		 cfg->nrules == 1 ? "" : "s", cfg->npeers, cfg->npeers == 1 ? "" : "s", cfg->node);
}

struct daemon *daemon_start(struct config *cfg, char *err, size_t errlen)
{
	struct daemon *d = aligned_alloc(_Alignof(struct daemon), sizeof(*d));

	if (d)
		memset(d, 0, sizeof(*d));
	if (!d) {
		snprintf(err, errlen, "out of memory");
		free(cfg);
		return NULL;
	}
	d->cfg = cfg;
	d->health.say = daemon_on_alarm;
	d->health.ctx = d;
	d->view.health = &d->health;
	d->view.stopping = &d->stopping;
	d->monitor.size = MONITOR_RING;
	d->capture.feed.size = CAPTURE_RING;
	d->view.monitor = &d->monitor;
	d->view.capture = &d->capture;
	d->view.operate = &d->operate;
	d->view.reload = daemon_reload;
	d->view.reload_ctx = d;
	d->now = d->started = loop_now();
	cores_open(d);
	if (daemon_names_wanted(cfg)) {
		d->resolver = resolver_start();
		if (!d->resolver)
			log_line(LOG_ERR, "names of peers cannot be looked up: %s",
				 strerror(errno));
	}
	event_log_tick(&d->events, d->now);
	if (daemon_state_open(d, err, errlen)) {
		daemon_stop(d);
		return NULL;
	}
	/* the former process may have worked until now */
	d->now = d->started = loop_now();
	if (open_engine(d, err, errlen) || open_peers(d, err, errlen) ||
	    open_control(d, err, errlen) || open_port(d, err, errlen) ||
	    open_loop(d, err, errlen) || give_up_privileges(d, err, errlen)) {
		daemon_stop(d);
		return NULL;
	}
	say_hello(d);
	return d;
}

void daemon_stop(struct daemon *d)
{
	bool ran, free_ = true; /* no connection depends on a longhauld */

	if (!d)
		return;
	/* Another process will go on: tell peers nothing, undo nothing, leave closing to the
	 * kernel. The same if this process adopted a state and could not start. */
	ran = d->loop && d->phase == STOPPED;
	if (d->hand_over || (d->adopted && !ran)) {
		daemon_last_words(d);
		control_close(d->control);
		return;
	}
	if (ran)
		daemon_last_frames(d);
	if (d->session) {
		session_bye(d->session, BYE_SHUTDOWN);
		(void)peer_socket_flush(d->sock); /* datagrams that wait for a commit */
	}
	control_close(d->control);
	if (d->port)
		free_ = daemon_release(d);
	cores_close(d);
	afxdp_close(d->port);
	d->port = NULL; /* the engine may still release flows */
	session_destroy(d->session);
	peer_socket_close(d->sock);
	loop_destroy(d->loop);
	resolver_stop(d->resolver);
	if (d->own_fd)
		close(d->own_fd);
	shards_destroy(d->shards);
	daemon_state_close(d, free_);
	capture_exit(&d->capture);
	free(d->cfg);
	free(d);
}

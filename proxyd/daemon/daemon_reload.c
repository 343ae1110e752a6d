// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rules and limits of the running daemon, and their replacement by a new file, on SIGHUP or by a
 * command: all of it or nothing. A command gets the result as its answer.
 *
 * Connections that no rule wants any more may have packets in custody. Those need the responder's
 * acknowledgements, so the port goes on taking what the old rules wanted until no lane drains any
 * more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_value.h"
#include "control/monitor.h"
#include "daemon/daemon_priv.h"
#include "daemon/steering.h"
#include "host/log.h"
#include "port/afxdp.h"

/* Of reports to @peer, which serve all rules that name it: the highest one of these. */
static unsigned int report_dscp(const struct config *c, unsigned int peer)
{
	unsigned int dscp = 0;

	for (unsigned int i = 0; i < c->nrules; i++)
		if (c->rules[i].peer == (int)peer && (c->rules[i].dscp & ~RULE_DSCP) > dscp)
			dscp = c->rules[i].dscp & ~RULE_DSCP;
	return dscp;
}

void daemon_set_rules(struct daemon *d)
{
	d->view.rules = d->cfg->rules;
	d->view.nrules = d->cfg->nrules;
	/* hosts may have begun before a rule named them, or before this process ran */
	shards_stood_still(d->shards, d->now, d->now);
	shards_rules(d->shards, d->cfg->rules, d->cfg->nrules, d->now);
	operate_rules(&d->view, d->now);
	for (unsigned int i = 0; d->sock && i < PEER_MAX; i++)
		peer_socket_class(d->sock, i, (uint8_t)(report_dscp(d->cfg, i) << 2));
}

struct engine_config daemon_limits(const struct config *cfg)
{
	return (struct engine_config){
		.wan_rate = cfg->wan_rate & ~PACE_AUTO,
		.wan_auto = cfg->wan_rate & PACE_AUTO,
		.share = cfg->share,
		.wan_burst = cfg->wan_burst,
		.peer_timeout_ns = cfg->peer_timeout_ns,
		.responder_timeout_ns = cfg->responder_timeout_ns,
		.rnr_timeout_ns = cfg->rnr_timeout_ns,
		.idle_ns = cfg->idle_ns,
	};
}

void daemon_served(const struct config *cfg, struct session_local *local, struct prefix *buf)
{
	memset(local, 0, sizeof(*local));
	local->name = cfg->node;
	local->features = PEER_FEATURE_ORDER | PEER_FEATURE_OFFER | PEER_FEATURE_ANNOUNCE |
			  PEER_FEATURE_PARITY | PEER_FEATURE_DISPUTE | PEER_FEATURE_SEAL |
			  PEER_FEATURE_OWN | PEER_FEATURE_AHEAD | PEER_FEATURE_REPAIR |
			  PEER_FEATURE_SLICES | PEER_FEATURE_SPREAD;
	local->prefix = buf;
	for (unsigned int i = 0; i < cfg->nrules; i++) {
		const struct rule *r = &cfg->rules[i];

		if (r->peer == PEER_NONE)
			continue;
		memcpy(buf + local->nprefix, r->near, r->nnear * sizeof(*buf));
		local->nprefix += r->nnear;
	}
}

static int set_steering(struct daemon *d, struct steering *s)
{
	steering_own(s, d->own.addr, d->own.n);
	return afxdp_rules(d->port, s->near, s->nnear, s->far, s->nfar, s->vlan);
}

int daemon_steer(struct daemon *d)
{
	struct steering *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	steering_init(s, d->cfg->rules, d->cfg->nrules);
	if (d->lingering)
		steering_add_all(s);
	rc = set_steering(d, s);
	free(s);
	return rc;
}

/* Have the port take what @new wants and, for now, what the old rules wanted. */
static int steer_both(struct daemon *d, const struct config *new)
{
	struct steering *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	steering_init(s, new->rules, new->nrules);
	/* the rules before the last reload are not recorded */
	if (d->lingering)
		steering_add_all(s);
	else
		steering_add(s, d->cfg->rules, d->cfg->nrules);
	rc = set_steering(d, s);
	free(s);
	return rc;
}

bool daemon_lingers(struct daemon *d)
{
	struct conn_info ci;

	for (uint32_t id = 0; shards_conn_next(d->shards, id, d->now, &ci); id = ci.id + 1)
		if (ci.lane[0].lingers || ci.lane[1].lingers)
			return true;
	return d->leaving;
}

#define LINGER_CONNS 256 /* looked at per call */

void daemon_linger(struct daemon *d)
{
	struct conn_info ci;

	for (int i = 0; i < LINGER_CONNS; i++) {
		if (!shards_conn_next(d->shards, d->linger_conn, d->now, &ci)) {
			d->lingering = false;
			d->lingering = daemon_steer(d) != 0;
			d->linger_conn = 0;
			daemon_peers_left(d);
			return;
		}
		for (int lane = 0; lane < 2; lane++) {
			if (ci.lane[lane].lingers) {
				d->linger_conn = 0; /* from the start, next time */
				return;
			}
		}
		d->linger_conn = ci.id + 1;
	}
}

/* Take over what can change of @new; a negative errno when the port refuses the rules, and nothing
 * changed. */
static int take(struct daemon *d, struct config *new, const struct peer_keys *keys)
{
	struct prefix *buf = calloc(RULE_MAX * RULE_PREFIXES, sizeof(*buf));
	struct engine_config limits;
	struct session_local local;
	int rc = buf ? steer_both(d, new) : -ENOMEM;

	if (!rc) {
		d->lingering = true;
		d->linger_conn = 0;
		daemon_peers_take(d, new, keys);
		config_take(d->cfg, new);
		log_init(d->cfg->log_level);
		limits = daemon_limits(d->cfg);
		shards_limits(d->shards, &limits, d->now);
		daemon_prefetch(d);
		daemon_set_rules(d);
		daemon_state_site(d);
		daemon_served(d->cfg, &local, buf);
		if (d->session)
			session_local(d->session, &local, d->now);
	}
	free(buf);
	return rc;
}

static bool reload(struct daemon *d, struct config *new, struct config_errors *errs)
{
	struct peer_keys keys[PEER_MAX];
	const char *other;
	int rc = -EINVAL;

	if (config_load(d->cfg->file, new, errs))
		return false;
	other = config_restart_needed(d->cfg, new);
	if (other) {
		config_error(errs, d->cfg->file, 0,
			     "'%s' differs, which only a restart can change; systemctl restart "
			     "longhauld, or set it back",
			     other);
		return false;
	}
	if (daemon_peers_plan(d, new, keys, errs))
		rc = take(d, new, keys);
	explicit_bzero(keys, sizeof(keys));
	if (rc && !errs->n)
		config_error(errs, d->cfg->file, 0, "the XDP program does not take the rules: %s",
			     strerror(-rc));
	return !rc;
}

/* All errors go to the log, the first one to the command's answer. */
static void refused(struct daemon *d, const struct config_errors *errs, char *err, size_t errlen)
{
	int used = snprintf(err, errlen, "refused, the old configuration stays in force: %.300s",
			    errs->n ? errs->text[0] : "out of memory");

	if (errs->n > 1 && (size_t)used < errlen)
		snprintf(err + used, errlen - (size_t)used, "; and %u more, see the log",
			 errs->n - 1);
	for (unsigned int i = 0; i < errs->n && i < CONFIG_ERRORS; i++)
		log_line(LOG_ERR, "%s", errs->text[i]);
	d->reloads_refused++;
	monitor_say(&d->view, "reload-refused", "configuration not changed; the log says why");
	log_line(LOG_ERR, "configuration not changed, the old one stays in force");
}

bool daemon_reload(void *ctx, char *err, size_t errlen)
{
	static const struct config_errors none;
	struct config_errors *errs = calloc(1, sizeof(*errs));
	struct config *new = malloc(sizeof(*new));
	struct daemon *d = ctx;
	bool ok;

	d->now = loop_now();
	ok = errs && new &&reload(d, new, errs);
	if (ok) {
		d->reloads++;
		monitor_say(&d->view, "reload", "configuration read again");
		log_line(LOG_INFO, "%s read again, %u rule%s", d->cfg->file, d->cfg->nrules,
			 d->cfg->nrules == 1 ? "" : "s");
	} else {
		refused(d, errs ? errs : &none, err, errlen);
	}
	free(new);
	free(errs);
	return ok;
}

void daemon_on_reload(void *ctx, int signo)
{
	char err[OPERATE_ERROR];

	(void)signo;
	daemon_reload(ctx, err, sizeof(err));
}

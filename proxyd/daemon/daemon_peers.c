// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The peers of the daemon, at the start and when a reload changes them.
 *
 * The engine knows a peer by its place in the configuration, so a peer keeps its place as long as
 * it is configured (config_places()). Its address, port and keys can change while its session goes
 * on.
 *
 * A removed peer is leaving until no lane drains any more, because it may have custody of ours to
 * deliver, or we of its. Its place stays taken until then. Connections of old rules drain in the
 * same way (daemon_reload.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_priv.h"
#include "host/log.h"

/* The keys of @p; a negative errno with one line in @err. */
static int read_keys(const struct config_peer *p, struct peer_keys *k, char *err, size_t errlen)
{
	for (k->n = 0; k->n < p->nkeys; k->n++) {
		int rc = key_read(p->key_file[k->n], k->key[k->n], err, errlen);

		if (rc)
			return rc;
	}
	return 0;
}

static void show(struct daemon *d, unsigned int i)
{
	const struct config_peer *p = &d->cfg->peers[i];

	d->view.peers[i] = (struct view_peer){.name = p->name, .addr = p->addr, .port = p->port};
	if (p->host[0])
		d->view.peers[i].host = p->host;
	for (unsigned int k = 0; k < p->nkeys; k++)
		d->view.peers[i].key_file[k] = p->key_file[k];
	if (i >= d->view.npeers)
		d->view.npeers = i + 1;
}

static int add(struct daemon *d, unsigned int i, const struct peer_keys *k)
{
	const struct config_peer *p = &d->cfg->peers[i];
	int rc = session_peer_add(d->session, i, p->name, k->key[0], d->now);

	if (!rc && k->n > 1)
		rc = session_peer_keys(d->session, i, k->key, k->n, d->now);
	show(d, i);
	return rc;
}

/* Go on with peers that were leaving when the former process ended, under the keys that it knew.
 * Other peers may have their addresses now. */
static void resume_leaving(struct daemon *d)
{
	for (unsigned int i = 0; i < d->cfg->npeers; i++) {
		const struct config_peer *p = &d->cfg->peers[i];

		if (!(d->leaving & 1u << i))
			continue;
		if (session_peer_resume(d->session, i, d->now))
			(void)peer_socket_map(d->sock, i, &p->addr, p->port);
		show(d, i);
	}
}

int daemon_add_peers(struct daemon *d, char *err, size_t errlen)
{
	struct peer_keys k;
	int rc = 0;

	for (unsigned int i = 0; i < d->cfg->npeers && !rc; i++) {
		const struct config_peer *p = &d->cfg->peers[i];

		if (!p->name[0] || d->leaving & 1u << i)
			continue;
		rc = read_keys(p, &k, err, errlen);
		if (rc)
			break;
		rc = p->host[0] ? 0 : peer_socket_map(d->sock, i, &p->addr, p->port);
		if (!rc)
			rc = add(d, i, &k);
		if (rc)
			snprintf(err, errlen,
				 "%s:%u: peer '%s' cannot be reached from the address in "
				 "'listen': %s",
				 config_file(d->cfg, p->file), p->line, p->name, strerror(-rc));
	}
	explicit_bzero(&k, sizeof(k));
	if (!rc)
		resume_leaving(d);
	return rc;
}

bool daemon_peers_plan(struct daemon *d, struct config *new, struct peer_keys *keys,
		       struct config_errors *errs)
{
	char err[CONFIG_ERROR_LEN];

	if (config_places(d->cfg, new)) {
		config_error(
			errs, new->file, 0,
			"no room for another peer until the lanes of removed peers have ended; "
			"try again later");
		return false;
	}
	if (new->npeers && !d->session) {
		config_error(errs, new->file, 0,
			     "the first '[peer]' needs a restart, since its socket is opened "
			     "before privileges are given up; systemctl restart longhauld");
		return false;
	}
	if (daemon_names_wanted(new) && !d->resolver) {
		config_error(
			errs, new->file, 0,
			"the first peer whose address is a name needs a restart, since the "
			"process that looks it up is started with longhauld; systemctl restart "
			"longhauld, or write its address");
		return false;
	}
	for (unsigned int i = 0; i < new->npeers; i++) {
		const struct config_peer *p = &new->peers[i];

		if (!p->name[0])
			continue;
		if (read_keys(p, &keys[i], err, sizeof(err)))
			config_error(errs, config_file(new, p->file), p->key_line, "%s", err);
		if (!p->host[0] && !peer_socket_reaches(d->sock, &p->addr))
			config_error(errs, config_file(new, p->file), p->line,
				     "peer '%s' cannot be reached from the address in 'listen'",
				     p->name);
	}
	return !errs->n;
}

/* Unmap all changed addresses first: two peers may have exchanged theirs, or a peer may have taken
 * that of a leaving one. */
static void move(struct daemon *d, struct config *new)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		const struct config_peer *was = &d->cfg->peers[i];
		struct config_peer *p = &new->peers[i];

		for (unsigned int k = 0; !p->name[0] && k < PEER_MAX; k++)
			if (new->peers[k].name[0] && !config_moved(was, &new->peers[k]))
				peer_socket_unmap(d->sock, i);
		if (p->name[0] && config_moved(was, p)) {
			peer_socket_unmap(d->sock, i);
			d->next_ask[i] = 0;
		}
		if (p->host[0])
			p->addr = was->addr; /* until a lookup of its name gives another one */
	}
	for (unsigned int i = 0; i < PEER_MAX; i++)
		if (new->peers[i].name[0])
			peer_socket_map(d->sock, i, &new->peers[i].addr, new->peers[i].port);
}

void daemon_peers_take(struct daemon *d, struct config *new, const struct peer_keys *keys)
{
	if (!d->session)
		return;
	move(d, new);
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		struct config_peer *p = &d->cfg->peers[i];
		bool had = p->name[0];

		d->leaving &= ~(1u << i);
		if (!new->peers[i].name[0]) {
			d->leaving |= (unsigned int)had << i;
			continue;
		}
		*p = new->peers[i];
		if (!had) {
			add(d, i, &keys[i]);
			continue;
		}
		session_peer_rename(d->session, i, p->name);
		session_peer_keys(d->session, i, keys[i].key, keys[i].n, d->now);
		show(d, i);
	}
	d->cfg->npeers = d->view.npeers;
	daemon_names(d);
}

void daemon_peers_left(struct daemon *d)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		if (!(d->leaving & 1u << i))
			continue;
		log_line(LOG_INFO, "peer %s is no peer any more", d->cfg->peers[i].name);
		session_peer_remove(d->session, i);
		session_flush(d->session);
		peer_socket_unmap(d->sock, i);
		shards_peer_forget(d->shards, i, d->now);
		d->boot_told[i] = 0;
		memset(&d->cfg->peers[i], 0, sizeof(d->cfg->peers[i]));
		memset(&d->view.peers[i], 0, sizeof(d->view.peers[i]));
	}
	d->leaving = 0;
	while (d->view.npeers && !d->view.peers[d->view.npeers - 1].name)
		d->view.npeers--;
	d->cfg->npeers = d->view.npeers;
	daemon_state_site(d);
}

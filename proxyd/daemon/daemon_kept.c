// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether this process can use what a former one left. Conditions: the same boot of the host, since
 * its times count from there; this very file, since a copy would bring back used sequence numbers;
 * the same ports; and all of its peers still configured, except those that a reload had removed.
 * Peers keep their places, whatever their order in the configuration is now; new ones get free
 * places.
 *
 * A state that makes one process after the other crash must be given up, or hosts would wait for
 * ever. So signals of program errors and of the watchdog are counted in the file before they end
 * the process. kill -9 is none of these, and a process that lives for KEPT_LIVES_MS resets the
 * count.
 */
#include "daemon/daemon_kept.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine.h"
#include "host/log.h"

static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

#define NFAULTS (sizeof(faults) / sizeof(faults[0]))

static struct sigaction before[NFAULTS];
static volatile uint32_t *crashes;
static void *crashes_page;

/* Null when the host does not tell. */
static sd_id128_t host_boot(void)
{
	sd_id128_t id;

	return sd_id128_get_boot(&id) < 0 ? SD_ID128_NULL : id;
}

void kept_note_peers(struct kept *k, const struct config *cfg, uint32_t leaving)
{
	for (unsigned int i = 0; i < PEER_MAX; i++) {
		const char *name = i < cfg->npeers ? cfg->peers[i].name : "";
		struct kept_peer *p = &k->peer[i];

		if (strncmp(p->name, name, RULE_NAME))
			snprintf(p->name, RULE_NAME, "%s", name);
		if (!name[0])
			p->boot = 0; /* the next peer here is no process that we knew */
		p->addr = cfg->peers[i].addr;
		p->port = cfg->peers[i].port;
		p->leaving = leaving >> i & 1;
	}
}

void kept_note(struct kept *k, const struct config *cfg, unsigned int shards, const int *fds)
{
	struct stat st = {0};

	memcpy(k->ifname, cfg->ifname, sizeof(k->ifname));
	kept_note_peers(k, cfg, 0);
	k->host_boot = host_boot();
	(void)fstat(fds[0], &st);
	k->dev = st.st_dev;
	k->ino = st.st_ino;
	k->shards = shards;
	for (unsigned int i = 1; i < shards; i++)
		if (!fstat(fds[i], &st))
			k->other_ino[i] = st.st_ino;
	k->pool_bytes = cfg->pool_bytes;
	k->max_conns = cfg->max_conns;
}

const char *kept_others(const struct kept *k, const int *fds)
{
	struct stat st;

	for (unsigned int i = 1; i < k->shards; i++)
		if (fstat(fds[i], &st) || st.st_dev != k->dev || st.st_ino != k->other_ino[i])
			return "a file of another core is missing or a copy";
	return NULL;
}

bool kept_read(int fd, struct kept *k)
{
	uint64_t at = engine_kept_at(fd);

	return at && pread(fd, k, sizeof(*k), (off_t)at) == sizeof(*k);
}

const char *kept_strange(const struct kept *k, const struct config *cfg, int fd)
{
	struct stat st;

	if (!sd_id128_equal(k->host_boot, host_boot()))
		return "the host was restarted since";
	if (fstat(fd, &st) || st.st_dev != k->dev || st.st_ino != k->ino)
		return "it is a copy";
	for (unsigned int port = 0; port < STEER_PORTS; port++)
		if (strncmp(k->ifname[port], cfg->ifname[port], IF_NAMESIZE))
			return "its ports are others";
	return NULL;
}

bool kept_strips(const struct kept *k, const struct config *cfg, unsigned int port)
{
	bool stripped = false;

	/* LAN and WAN may have been exchanged since */
	for (unsigned int was = 0; was < STEER_PORTS; was++)
		stripped |= k->vlan_strip[was] &&
			    !strncmp(k->ifname[was], cfg->ifname[port], IF_NAMESIZE);
	return stripped && sd_id128_equal(k->host_boot, host_boot());
}

static bool has_peer(const struct config *c, const char *name)
{
	for (unsigned int i = 0; i < c->npeers; i++)
		if (!strcmp(c->peers[i].name, name))
			return true;
	return false;
}

static void drop_rules(struct config *c, unsigned int peer)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->nrules; i++) {
		if (c->rules[i].peer == (int)peer)
			continue;
		c->rules[n] = c->rules[i];
		c->rule_src[n] = c->rule_src[i];
		c->rules[n].peer -= c->rules[n].peer > (int)peer;
		n++;
	}
	c->nrules = n;
}

/* Take the last new peer of @c, one that is not in @was, and its rules out of @c for now: as with a
 * reload, a peer that still drains keeps its place. */
static void let_wait(const struct config *was, struct config *c)
{
	unsigned int i = c->npeers;

	while (i && has_peer(was, c->peers[i - 1].name))
		i--;
	if (!i)
		return;
	log_line(LOG_WARNING,
		 "no room for peer %s until the lanes of removed peers have ended: until then "
		 "neither it nor rules that name it are in force; reload later",
		 c->peers[i - 1].name);
	drop_rules(c, i - 1);
	memmove(&c->peers[i - 1], &c->peers[i], (c->npeers - i) * sizeof(c->peers[0]));
	memset(&c->peers[--c->npeers], 0, sizeof(c->peers[0]));
}

bool kept_places(const struct kept *k, struct config *cfg)
{
	struct config *was = calloc(1, sizeof(*was));
	bool ok = was;

	for (unsigned int i = 0; ok && i < PEER_MAX; i++) {
		struct config_peer *p = &was->peers[i];

		memcpy(p->name, k->peer[i].name, RULE_NAME);
		p->name[RULE_NAME - 1] = '\0';
		p->port = 0; /* no peer has port 0: compare names only */
		if (p->name[0])
			was->npeers = i + 1;
		ok = !p->name[0] || k->peer[i].leaving || has_peer(cfg, p->name);
	}
	for (unsigned int i = 0; ok && i < PEER_MAX && config_places(was, cfg); i++)
		let_wait(was, cfg);
	free(was);
	return ok;
}

uint32_t kept_leaving(const struct kept *k, struct config *cfg)
{
	uint32_t leaving = 0;

	for (unsigned int i = 0; i < PEER_MAX; i++) {
		const struct kept_peer *was = &k->peer[i];
		struct config_peer *p = &cfg->peers[i];

		if (!was->leaving || !was->name[0] || (i < cfg->npeers && p->name[0]))
			continue; /* it may be configured again */
		*p = (struct config_peer){.addr = was->addr, .port = was->port};
		memcpy(p->name, was->name, RULE_NAME - 1);
		leaving |= 1u << i;
		if (i >= cfg->npeers)
			cfg->npeers = i + 1;
	}
	return leaving;
}

enum peer_event kept_event(const struct kept *k, unsigned int peer, enum peer_event ev,
			   uint64_t boot)
{
	bool other = k->peer[peer].boot && k->peer[peer].boot != boot;

	return ev == PEER_UP && other ? PEER_RESTARTED : ev;
}

bool kept_resized(const struct kept *k, const struct config *cfg)
{
	return k->pool_bytes != cfg->pool_bytes || k->max_conns != cfg->max_conns ||
	       (cfg->cores && k->shards != cfg->cores);
}

static void on_fault(int signo)
{
	++*crashes;
	for (size_t i = 0; i < NFAULTS; i++)
		if (faults[i] == signo)
			sigaction(signo, &before[i], NULL);
	raise(signo);
}

uint32_t kept_crashes(int fd)
{
	const struct sigaction sa = {.sa_handler = on_fault};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), off = ENGINE_CRASHES_AT % page;
	struct stat st;
	uint8_t *at;

	if (crashes)
		return *crashes;
	if (fstat(fd, &st) || (uint64_t)st.st_size < ENGINE_CRASHES_AT - off + page)
		return 0;
	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		  (off_t)(ENGINE_CRASHES_AT - off));
	if (at == MAP_FAILED)
		return 0;
	crashes_page = at;
	crashes = (volatile uint32_t *)(at + off);
	for (size_t i = 0; i < NFAULTS; i++)
		sigaction(faults[i], &sa, &before[i]);
	return *crashes;
}

void kept_crashes_end(void)
{
	if (!crashes)
		return;
	for (size_t i = 0; i < NFAULTS; i++)
		sigaction(faults[i], &before[i], NULL);
	crashes = NULL;
	munmap(crashes_page, (size_t)sysconf(_SC_PAGESIZE));
	crashes_page = NULL;
}

void kept_lives(void)
{
	if (crashes)
		*crashes = 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What outlives the process: the engines' memory and the peers' sessions, in a file beside the
 * control socket, which must be in memory (tmpfs). The next process goes on with it:
 *
 *	hand-over	SIGUSR2: the process ends between two turns of its loop and leaves
 *			everything as it is. A new process must follow.
 *	stop		SIGTERM: custody is delivered first; then nothing is left to go on with,
 *			and the file is removed.
 *
 * What hosts send while there is no process is lost, and they retransmit it. For a few milliseconds
 * before a hand-over we send them nothing, no ACKs, requests or kept responses, but still take what
 * they send: a host that waits for responses, as storage does, then has nothing left to send, and
 * loses nothing. Linux' soft-RoCE needs that: it cannot go back past a memory registration in its
 * send queue, and sends nothing more.
 *
 * A second file has the memory of the port's packet buffers. Its content is not used; it only saves
 * the time to allocate pages (port/afxdp_area.c).
 *
 * The file is locked as long as its process lives. If a process with the file ends in any other way
 * than by SIGTERM, the XDP program holds connections with custody (afxdp_fence.c): it drops their
 * packets, and hosts retransmit, until another process goes on.
 *
 * A file that cannot be adopted (of another version, or damaged) is replaced. Then the custody of
 * all connections in the table of held ones is lost, and their queue pairs are put into the error
 * state: however few connections are configured, the engines have a place for each of them, since
 * what no engine knew would pass. If there can be no such file, the daemon works without and logs
 * that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/daemon_kept.h"
#include "daemon/daemon_priv.h"
#include "host/host.h"
#include "host/log.h"
#include "port/afxdp.h"

#define STATE_SUFFIX  ".state"
#define FRAMES_SUFFIX ".frames"
/* A killed process holds its lock until the kernel has freed it. */
#define LOCK_TRIES    3000
#define LOCK_SLEEP_US 1000
/* Retries, since a process that ends may remove the file while we wait for its lock. */
#define NAME_TRIES    10
/* Hosts that sent nothing for the first time are silent; a hand-over waits at most the second for
 * that, since hosts' timers run. */
#define SILENT_NS     10000000u
#define HUSH_MOST_NS  30000000u
/* So many processes in a row may crash with a file before it is given up. */
#define CRASHES	      3u

static void state_path(const struct config *cfg, char *path, size_t len)
{
	snprintf(path, len, "%s" STATE_SUFFIX, cfg->socket);
}

uint32_t daemon_kept_bytes(void)
{
	return (uint32_t)(sizeof(struct kept) + session_size());
}

bool daemon_state_left(const struct config *cfg)
{
	char path[STATE_PATH];
	struct stat st;

	state_path(cfg, path, sizeof(path));
	return !lstat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

static bool in_memory(int fd)
{
	struct statfs s;

	return !fstatfs(fd, &s) &&
	       ((uint64_t)s.f_type == TMPFS_MAGIC || (uint64_t)s.f_type == HUGETLBFS_MAGIC ||
		(uint64_t)s.f_type == RAMFS_MAGIC);
}

static int lock(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		usleep(LOCK_SLEEP_US);
	}
	return -EBUSY;
}

/* To be asked before a file is created there. */
static bool folder_in_memory(const char *path)
{
	char dir[STATE_PATH];
	char *slash;
	int fd;
	bool yes;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		return false;
	slash[slash == dir] = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	yes = fd >= 0 && in_memory(fd);
	if (fd >= 0)
		close(fd);
	return yes;
}

/* Whether only this user can read the file and have created it. */
static bool ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IRWXG | S_IRWXO)) && st.st_nlink == 1;
}

/* Whether the file still has its name: its former owner may have removed it. */
static bool named(int fd, const char *path)
{
	struct stat st, at;

	return !fstat(fd, &st) && !lstat(path, &at) && st.st_dev == at.st_dev &&
	       st.st_ino == at.st_ino;
}

/* Open the file @path, created if absent, and lock it; or a negative errno. */
static int open_locked(const char *path)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), rc;
		bool gone;

		if (fd < 0)
			return -errno;
		rc = ours(fd) ? lock(fd) : -EPERM;
		gone = !named(fd, path);
		if (!rc && !gone)
			return fd;
		close(fd);
		if (!gone)
			return rc;
	}
	return -ESTALE;
}

int daemon_state_open(struct daemon *d, char *err, size_t errlen)
{
	char *path = d->state_path;
	int fd;

	state_path(d->cfg, path, sizeof(d->state_path));
	d->state_fd = 0;
	if (!folder_in_memory(path)) {
		log_line(LOG_INFO,
			 "nothing outlives this process, for %s would not be in memory: set "
			 "'socket' to a place on a tmpfs, such as " CONFIG_SOCKET,
			 path);
		return 0;
	}
	fd = open_locked(path);
	if (fd == -EBUSY) {
		snprintf(err, errlen,
			 "%s is in use by another longhauld: stop that or set 'socket'", path);
		return fd; /* it is another process's */
	}
	if (fd < 0)
		log_line(LOG_WARNING,
			 "nothing outlives this process: %s cannot be used: %s; remove it", path,
			 fd == -EPERM ? "it is not a file of ours alone" : strerror(-fd));
	else
		d->state_fd = fd;
	return 0;
}

static struct kept *kept_of(const struct daemon *d)
{
	return d->state_fd ? shards_kept(d->shards) : NULL;
}

void *daemon_session_memory(const struct daemon *d)
{
	struct kept *k = kept_of(d);

	return k ? k + 1 : NULL;
}

void daemon_state_site(struct daemon *d)
{
	struct kept *k = kept_of(d);

	if (k)
		kept_note_peers(k, d->cfg, d->leaving);
}

void daemon_state_ports(struct daemon *d)
{
	struct kept *k = kept_of(d);

	for (unsigned int port = 0; k && port < STEER_PORTS; port++)
		k->vlan_strip[port] = afxdp_strips(d->port, port);
}

/* Why the content of the file cannot be used; NULL if it can. Gives peers their former places. */
static const char *strange(struct daemon *d)
{
	const char *why = NULL;
	struct kept k;

	if (!kept_read(d->state_fd, &k))
		return NULL; /* engine_adopt() tells why */
	for (unsigned int port = 0; port < STEER_PORTS; port++)
		d->vlan_strip[port] = kept_strips(&k, d->cfg, port);
	if (kept_crashes(d->state_fd) >= CRASHES)
		return "several processes in a row crashed with it";
	why = kept_strange(&k, d->cfg, d->state_fd);
	if (!why && !kept_places(&k, d->cfg))
		why = "a peer that it knows is not in the configuration";
	return why;
}

/* The file of shard @i, beside that of the first. */
static void shard_path(const struct config *cfg, unsigned int i, char path[STATE_PATH])
{
	snprintf(path, STATE_PATH, "%s" STATE_SUFFIX ".%u", cfg->socket, i);
}

static void close_shards(struct daemon *d)
{
	for (unsigned int i = 1; i < SHARDS_MAX; i++) {
		if (d->shard_fd[i])
			close(d->shard_fd[i]);
		d->shard_fd[i] = 0;
	}
}

/* Open the files of @n shards. The lock on the first file protects all of them. */
static bool open_shards(struct daemon *d, unsigned int n)
{
	char path[STATE_PATH];
	int fd;

	d->shard_fd[0] = d->state_fd;
	for (unsigned int i = 1; i < n; i++) {
		shard_path(d->cfg, i, path);
		fd = open_locked(path);
		if (fd < 0) {
			close_shards(d);
			errno = -fd;
			return false;
		}
		d->shard_fd[i] = fd;
	}
	return true;
}

static void remove_shards(struct daemon *d)
{
	char path[STATE_PATH];

	for (unsigned int i = 1; i < SHARDS_MAX; i++) {
		shard_path(d->cfg, i, path);
		(void)unlink(path);
	}
}

/* Engines of as many files as the former process had. */
static const char *adopt_shards(struct daemon *d, struct engine_config *ec)
{
	struct shards_sink sink = cores_sink;
	const char *why = NULL;
	struct kept k;

	sink.ctx = d;
	if (!kept_read(d->state_fd, &k))
		k.shards = 1; /* engine_adopt() tells why */
	if (!k.shards || k.shards > SHARDS_MAX)
		return "it is damaged";
	if (!open_shards(d, k.shards))
		return strerror(errno);
	why = kept_others(&k, d->shard_fd);
	if (!why)
		d->shards = shards_new(k.shards, &sink);
	if (d->shards && !shards_adopt(d->shards, ec, d->shard_fd, d->now, &why)) {
		shards_destroy(d->shards);
		d->shards = NULL;
	}
	return d->shards ? NULL : why ? why : "out of memory";
}

static bool adopt(struct daemon *d, struct engine_config *ec)
{
	struct stat st;
	const char *why;

	if (fstat(d->state_fd, &st) || !st.st_size)
		return false;
	why = strange(d);
	if (!why)
		why = adopt_shards(d, ec);
	if (!d->shards) {
		close_shards(d);
		log_line(LOG_ERR,
			 "%s cannot be adopted: %s; what a former longhauld had in custody is "
			 "lost, and queue pairs that it held are put into the error state",
			 d->state_path, why);
		return false;
	}
	if (kept_resized(shards_kept(d->shards), d->cfg))
		log_line(LOG_WARNING,
			 "'pool', 'max-connections' and 'cores' stay what they were, because this "
			 "longhauld goes on where another one ended; systemctl restart longhauld "
			 "to change them");
	if (!d->cfg->cores)
		log_line(LOG_INFO,
			 "cores = auto: %u, the number of the former longhauld; to have it chosen "
			 "again, stop longhauld and start it",
			 shards_n(d->shards));
	d->leaving = kept_leaving(shards_kept(d->shards), d->cfg);
	kept_note_peers(shards_kept(d->shards), d->cfg, d->leaving);
	d->adopted = true;
	return true;
}

/* How many engines a new start has. */
static unsigned int choose_cores(const struct daemon *d)
{
	char why[HOST_WHY];
	unsigned int n = host_cores(d->cfg, why);

	if (*why)
		log_line(LOG_INFO, "cores = auto: %u, limited by %s", n, why);
	return n;
}

static void expect(void *ctx, const struct flow_key *requests, uint32_t lqpn)
{
	(void)lqpn;
	shards_expect(ctx, requests);
}

/* @n new engines, in files or (@fds NULL) not, with a place for each connection that is held. */
static bool create(struct daemon *d, const struct engine_config *ec, unsigned int n, const int *fds)
{
	struct shards_sink sink = cores_sink;

	sink.ctx = d;
	d->shards = shards_new(n, &sink);
	if (d->shards)
		(void)afxdp_left(host_pins(), d->cfg->ifname, expect, d->shards);
	if (d->shards && shards_create(d->shards, ec, fds, d->now))
		return true;
	shards_destroy(d->shards);
	d->shards = NULL;
	return false;
}

void daemon_engines(struct daemon *d, struct engine_config *ec)
{
	unsigned int n;

	if (d->state_fd) {
		ec->kept_bytes = daemon_kept_bytes();
		ec->fence = true;
		if (adopt(d, ec))
			return;
	}
	n = choose_cores(d);
	if (d->state_fd) {
		remove_shards(d);
		if (open_shards(d, n) && create(d, ec, n, d->shard_fd)) {
			kept_note(shards_kept(d->shards), d->cfg, n, d->shard_fd);
			(void)kept_crashes(d->state_fd);
			return;
		}
		log_line(LOG_WARNING,
			 "nothing outlives this process: %s cannot be made: %s; lower 'pool', or "
			 "enlarge its file system",
			 d->state_path, strerror(errno));
		daemon_state_close(d, true);
		ec->fence = false;
		ec->kept_bytes = 0;
	}
	(void)create(d, ec, n, NULL);
}

void daemon_state_peers(struct daemon *d)
{
	struct kept *k = kept_of(d);
	struct session_info si;

	for (unsigned int i = 0; k && d->adopted && i < d->cfg->npeers; i++) {
		bool up = session_up(d->session, i);

		/* a leaving peer may have undelivered data but no session */
		if (!session_info(d->session, i, d->now, &si) && !(d->leaving & 1u << i))
			continue;
		up = up && daemon_fits(d, si.features);
		if (up)
			shards_peer_features(d->shards, i, si.features);
		/* the former process may have died before it told the engine */
		if (up)
			d->boot_told[i] = si.boot;
		if (up && k->peer[i].boot && si.boot != k->peer[i].boot)
			shards_peer_event(d->shards, i, PEER_RESTARTED, d->now);
		else
			shards_peer_settle(d->shards, i, up, d->now);
	}
	d->boots_known = false;
}

/* The session may have forgotten the peer's epoch that the engine knows: the key is another one, or
 * the former process died while it changed the session. */
enum peer_event daemon_state_event(struct daemon *d, unsigned int peer, enum peer_event ev)
{
	const struct kept *k = kept_of(d);
	struct session_info si;
	enum peer_event is = ev;

	if (ev == PEER_DOWN || !session_info(d->session, peer, d->now, &si))
		return ev;
	d->boot_told[peer] = si.boot;
	if (k)
		is = kept_event(k, peer, ev, si.boot);
	if (is != ev)
		log_line(LOG_NOTICE, "peer %s restarted while this side was away", si.name);
	return is;
}

void daemon_state_told(struct daemon *d)
{
	struct kept *k = kept_of(d);

	d->boots_known = true;
	for (unsigned int i = 0; k && i < PEER_MAX; i++)
		if (d->boot_told[i])
			k->peer[i].boot = d->boot_told[i];
}

/* A connection that is held in the port's table. */
static void found(void *ctx, const struct flow_key *requests, uint32_t lqpn)
{
	struct daemon *d = ctx;
	struct template t;
	bool known = afxdp_headers(d->port, requests, &t);
	bool goes_on = d->adopted && shards_holds(d->shards, requests);
	bool fails = !d->adopted &&
		     shards_fail_orphan(d->shards, requests, lqpn, known ? &t : NULL, d->now);

	d->orphans += fails;
	d->lost += fails && !shards_holds(d->shards, requests);
	if (!fails && !goes_on)
		(void)afxdp_fence(d->port, requests, lqpn, false);
}

int daemon_orphans(struct daemon *d, char *err, size_t errlen)
{
	int n;

	d->orphans = d->lost = 0;
	n = afxdp_fenced(d->port, found, d);
	if (n < 0 || d->lost) {
		snprintf(
			err, errlen,
			"data that a former longhauld acknowledged is lost, and %s; the packets of "
			"these connections are dropped: restart their applications, then `rm -r "
			"%s`",
			n < 0 ? "which connections it held cannot be read"
			      : "some connections cannot be made to fail",
			afxdp_pins(d->port));
		return n < 0 ? n : -ENOSPC;
	}
	if (d->orphans)
		log_line(LOG_WARNING,
			 "a former longhauld ended with %u connection%s in custody or with "
			 "prefetch: %s put into the error state, because it is not known any more "
			 "what was acknowledged, or which response belongs to which READ",
			 d->orphans, d->orphans == 1 ? "" : "s",
			 d->orphans == 1 ? "its queue pair is" : "their queue pairs are");
	if (d->adopted)
		shards_go_on(d->shards, d->now);
	return 0;
}

void daemon_on_hand_over(void *ctx, int signo)
{
	struct daemon *d = ctx;

	(void)signo;
	if (!d->state_fd) {
		log_line(LOG_ERR, "no hand-over: nothing outlives this process (see its start)");
		return;
	}
	log_line(LOG_INFO, "handing over to the next longhauld");
	d->hand_over = true;
	d->now = loop_now();
	d->hush_until = d->now + HUSH_MOST_NS;
	if (d->phase == HUSHED)
		d->hush_until = d->now; /* a second request: at once */
	d->phase = HUSHED;
	shards_hush(d->shards, d->now);
}

uint64_t daemon_hushed(const struct daemon *d)
{
	uint64_t silent = shards_taken_at(d->shards) + SILENT_NS;
	uint64_t when = silent < d->hush_until ? silent : d->hush_until;

	return d->now < when ? when : 0;
}

/* Whether this program with @cfg can adopt the file @fd. */
static int look(int fd, struct config *cfg, const char *path, char *err, size_t errlen)
{
	enum engine_left left = fd < 0 ? ENGINE_LEFT_NONE : engine_left(fd);
	const char *why;
	struct kept k;

	if (left == ENGINE_LEFT_NONE) {
		snprintf(err, errlen, "%s: %s; nothing can be handed over", path,
			 fd < 0 ? strerror(errno) : "it is empty, or cut short");
		return -ENOENT;
	}
	if (left == ENGINE_LEFT_OTHER) {
		snprintf(err, errlen,
			 "another version runs, and this one cannot go on with its connections");
		return -EXDEV;
	}
	why = kept_read(fd, &k) ? kept_strange(&k, cfg, fd) : "it was never finished";
	if (!why && !kept_places(&k, cfg))
		why = "a peer of the one that runs is not in the configuration";
	if (!why && kept_resized(&k, cfg))
		why = "'pool', 'max-connections' or 'cores' is another one";
	if (why)
		snprintf(err, errlen, "%s: %s; nothing can be handed over", path, why);
	return why ? -EXDEV : 0;
}

bool daemon_restart(struct config *cfg, char *what, size_t len)
{
	char path[STATE_PATH], why[256];
	int fd, rc;

	state_path(cfg, path, sizeof(path));
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		snprintf(what, len, "only root can read what it does to connections");
		return errno == EACCES;
	}
	rc = look(fd, cfg, path, why, sizeof(why));
	close(fd);
	if (rc)
		snprintf(what, len, "connections are released first: %s", why);
	else
		snprintf(what, len, "connections are handed over");
	return true;
}

int daemon_hand_over(struct config *cfg, long pid, char *err, size_t errlen)
{
	char path[STATE_PATH];
	int fd, rc;

	state_path(cfg, path, sizeof(path));
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	rc = look(fd, cfg, path, err, errlen);
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	if (pid <= 1 || kill((pid_t)pid, SIGUSR2)) {
		snprintf(err, errlen, "process %ld cannot be told to hand over: %s", pid,
			 pid <= 1 ? "no such longhauld" : strerror(errno));
		return -ESRCH;
	}
	for (int i = 0; i < LOCK_TRIES && !kill((pid_t)pid, 0); i++)
		usleep(LOCK_SLEEP_US);
	return 0;
}

void daemon_last_words(struct daemon *d)
{
	/* signals or clients may have changed the engine since the latest turn */
	if (d->shards) {
		daemon_clock(d);
		shards_tick(d->shards, d->now);
	}
	if (d->session) {
		session_flush(d->session);
		(void)peer_socket_flush(d->sock);
	}
	for (unsigned int i = 0; d->port && i < d->ncores; i++)
		(void)afxdp_flush(d->port, i);
}

static void frames_path(const struct daemon *d, char path[STATE_PATH])
{
	snprintf(path, STATE_PATH, "%s" FRAMES_SUFFIX, d->cfg->socket);
}

int daemon_frames(const struct daemon *d)
{
	char path[STATE_PATH];
	int fd;

	if (!d->state_fd)
		return 0;
	frames_path(d, path);
	fd = open(path, O_RDWR | (d->adopted ? 0 : O_CREAT) | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && ours(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return 0;
}

void daemon_state_close(struct daemon *d, bool gone)
{
	char path[STATE_PATH];

	if (!d->state_fd)
		return;
	kept_crashes_end();
	if (gone) {
		/* the state file last: as soon as it is gone, another process may create one */
		frames_path(d, path);
		(void)unlink(path);
		remove_shards(d);
		(void)unlink(d->state_path);
	}
	close_shards(d);
	close(d->state_fd);
	d->state_fd = 0;
}

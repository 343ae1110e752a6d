// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul-wanem: a WAN between two interfaces. Relays every Ethernet frame both ways through the
 * link model, in real time.
 *
 * Each frame's delay counts from the kernel's time stamp of its arrival, so the loop may look at
 * the ring late without being late. It sleeps in ppoll() when nothing is under way; under load it
 * sleeps a short fixed time instead (--coalesce-us) and handles what has come meanwhile in one
 * batch, or a wake-up per frame would cost more than the frame.
 *
 * SIGUSR1 cuts the link, SIGUSR2 mends it. SIGTERM or --seconds ends; one JSON line tells what was
 * done.
 */
#include <err.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/wanem/options.h"
#include "cli/wanem/pkt_ring.h"
#include "cli/wanem/wan.h"

#define SECOND	1000000000ull
#define BATCH	256
#define HEADERS 22u /* Ethernet and two VLAN tags */

/* From port to the other: a link, and what happened beside it. */
struct side {
	const char *ifname;
	struct pkt_ring *ring;
	struct wan_config cfg;
	struct wan *link; /* of what this port receives */
	uint64_t oversize, tx_full, late_max, late_sum;
	bool told_oversize, told_room;
};

static struct side sides[2];
static uint64_t skew;			     /* CLOCK_REALTIME - CLOCK_MONOTONIC */
static volatile sig_atomic_t stop, cut = -1; /* until a signal says */

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		cut = 1;
	else if (sig == SIGUSR2)
		cut = 0;
	else
		stop = 1;
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* The relay */

/* Losses that are none of the link's, once each: they would be taken for it. */
static void tell_oversize(struct side *s)
{
	s->oversize++;
	if (!s->told_oversize)
		warnx("%s: frames longer than its MTU are lost, for they were merged before; "
		      "ethtool -K PORT gso off tso off gro off lro off",
		      s->ifname);
	s->told_oversize = true;
}

static void tell_no_room(struct side *s)
{
	wan_no_room(s->link);
	if (!s->told_room)
		warnx("%s: frames are lost because %" PRIu64
		      " MB are under way; set --rate-mbps and --queue-kb, or raise --store-mb",
		      s->ifname, s->cfg.store_bytes >> 20);
	s->told_room = true;
}

/* What the port has received, into its link. Returns how many. */
static int take_in(struct side *s, uint64_t now)
{
	struct pkt_ring_frame f;
	int n = 0;

	for (; n < BATCH && pkt_ring_next(s->ring, &f); n++) {
		uint64_t at = f.ts_ns - skew;
		uint8_t *buf;

		if (at > now)
			at = now; /* the clock was set */
		if (!f.whole || f.len > WAN_FRAME_MAX) {
			tell_oversize(s);
		} else if (!(buf = wan_buf(s->link))) {
			tell_no_room(s);
		} else {
			if (f.csum_missing)
				pkt_fix_checksum(f.data, f.len);
			memcpy(buf, f.data, f.len);
			wan_send(s->link, at, f.len);
		}
		pkt_ring_release(s->ring);
	}
	return n;
}

/* What has arrived at the other end. Returns how many. */
static int let_out(struct side *s, struct side *to, uint64_t now)
{
	const uint8_t *data;
	uint32_t len;
	int n = 0;

	while (n < BATCH) {
		uint64_t due = wan_next(s->link);
		uint8_t *buf;

		if (due > now)
			break;
		buf = pkt_ring_buf(to->ring);
		if (!buf) {
			s->tx_full++;
			break;
		}
		data = wan_pop(s->link, now, &len);
		if (!data)
			break;
		memcpy(buf, data, len);
		pkt_ring_queue(to->ring, len);
		s->late_sum += now - due;
		if (now - due > s->late_max)
			s->late_max = now - due;
		n++;
	}
	pkt_ring_flush(to->ring);
	return n;
}

/* A signal is for both directions, whatever --down said of them. */
static void apply_cut(void)
{
	static int applied = -1;
	int now_cut = cut;

	if (applied == now_cut)
		return;
	applied = now_cut;
	for (int i = 0; i < 2; i++) {
		struct wan_config c = sides[i].cfg;

		c.down = now_cut;
		wan_set(sides[i].link, &c);
	}
}

/* False if a port is gone for good. One that is down comes back, and the socket is bound to it
 * still. */
static bool ports_there(void)
{
	for (int i = 0; i < 2; i++) {
		if (pkt_ring_there(sides[i].ring))
			continue;
		warnx("%s was removed; ending", sides[i].ifname);
		return false;
	}
	return true;
}

static void wait_for_work(uint64_t now, uint64_t end, uint64_t coalesce_ns)
{
	struct pollfd p[2] = {{.fd = pkt_ring_fd(sides[0].ring), .events = POLLIN},
			      {.fd = pkt_ring_fd(sides[1].ring), .events = POLLIN}};
	uint64_t a = wan_next(sides[0].link), b = wan_next(sides[1].link);
	uint64_t at = a < b ? a : b, most = now + SECOND / 10;
	struct timespec ts;

	if (at > most)
		at = most;
	if (at > end)
		at = end;
	if (coalesce_ns) {
		/* A little late on purpose: several frames fall due in one such sleep. */
		ts.tv_sec = (time_t)(coalesce_ns / SECOND);
		ts.tv_nsec = (long)(coalesce_ns % SECOND);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		return;
	}
	if (at <= now)
		return;
	ts.tv_sec = (time_t)((at - now) / SECOND);
	ts.tv_nsec = (long)((at - now) % SECOND);
	ppoll(p, 2, &ts, NULL);
	for (int i = 0; i < 2; i++)
		if (p[i].revents & POLLERR)
			pkt_ring_there(sides[i].ring);
}

/* Returns the exit status. */
static int relay(const struct options *o)
{
	uint64_t start = clock_of(CLOCK_MONOTONIC);
	uint64_t end = o->seconds > 0 ? start + (uint64_t)(o->seconds * 1e9) : UINT64_MAX;
	uint64_t window = start, look = start;
	int recent = 0;

	while (!stop) {
		uint64_t now = clock_of(CLOCK_MONOTONIC);
		int n;

		if (now >= end)
			break;
		/* A port goes down first, and is not there any more a little later. */
		if (now >= look) {
			look = now + SECOND / 2;
			if (!ports_there())
				return 1;
		}
		skew = clock_of(CLOCK_REALTIME) - now;
		apply_cut();
		n = take_in(&sides[0], now) + take_in(&sides[1], now);
		now = clock_of(CLOCK_MONOTONIC);
		n += let_out(&sides[0], &sides[1], now) + let_out(&sides[1], &sides[0], now);
		/* Busy: more than twenty frames this millisecond, or forty in the last. */
		if (now - window > 1000000) {
			window = now;
			recent = recent > 40 ? 21 : 0;
		}
		recent += n;
		if (n < BATCH)
			wait_for_work(clock_of(CLOCK_MONOTONIC), end,
				      recent > 20 ? o->coalesce_ns : 0);
	}
	return 0;
}

static void report_side(const char *name, struct side *s, const struct side *to)
{
	const struct wan_stats *w = wan_stats(s->link);

	printf("\"%s\":{\"sent\":%" PRIu64 ",\"sent-bytes\":%" PRIu64 ",\"delivered\":%" PRIu64
	       ",\"delivered-bytes\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"lost-burst\":%" PRIu64
	       ",\"lost-queue\":%" PRIu64 ",\"lost-down\":%" PRIu64 ",\"lost-mtu\":%" PRIu64
	       ",\"no-room\":%" PRIu64 ",\"duplicated\":%" PRIu64 ",\"reordered\":%" PRIu64
	       ",\"corrupted\":%" PRIu64 ",\"marked\":%" PRIu64 ",\"queue-peak\":%" PRIu64
	       ",\"store-peak\":%" PRIu64 ",\"oversize\":%" PRIu64 ",\"tx-full\":%" PRIu64
	       ",\"tx-refused\":%" PRIu64 ",\"ring-drops\":%" PRIu64
	       ",\"late-us\":%.1f,\"late-max-us\":%.1f}",
	       name, w->sent, w->sent_bytes, w->delivered, w->delivered_bytes, w->lost,
	       w->lost_burst, w->lost_queue, w->lost_down, w->lost_mtu, w->no_room, w->duplicated,
	       w->reordered, w->corrupted, w->marked, w->queue_peak_bytes, w->store_peak_bytes,
	       s->oversize, s->tx_full, pkt_ring_refused(to->ring), pkt_ring_dropped(s->ring),
	       w->delivered ? (double)s->late_sum / (double)w->delivered / 1e3 : 0,
	       (double)s->late_max / 1e3);
}

static void report(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("{");
	report_side("a-to-b", &sides[0], &sides[1]);
	printf(",");
	report_side("b-to-a", &sides[1], &sides[0]);
	printf(",\"cpu-seconds\":%.3f}\n",
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	fflush(stdout);
}

/* Ports */

static unsigned int flags_of(const char *ifname, unsigned int *mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};
	unsigned int flags = 0;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (ioctl(fd, SIOCGIFMTU, &ifr) >= 0)
		*mtu = (unsigned int)ifr.ifr_mtu;
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) >= 0)
		flags = (unsigned short)ifr.ifr_flags;
	close(fd);
	return flags;
}

/* A port that the link can end at; its MTU into @mtu. */
static bool port_ready(const char *ifname, unsigned int *mtu)
{
	char path[64 + IFNAMSIZ], master[256];
	ssize_t n;

	if (strlen(ifname) >= IFNAMSIZ || !if_nametoindex(ifname)) {
		warnx("there is no interface '%.40s'; 'ip link' lists them", ifname);
		return false;
	}
	if (!(flags_of(ifname, mtu) & IFF_UP)) {
		warnx("%s is down; ip link set %s up", ifname, ifname);
		return false;
	}
	snprintf(path, sizeof(path), "/sys/class/net/%s/master", ifname);
	n = readlink(path, master, sizeof(master) - 1);
	if (n > 0) {
		master[n] = '\0';
		warnx("%s is a port of %s, which would carry frames beside the emulator; ip link "
		      "set "
		      "%s nomaster",
		      ifname, strrchr(master, '/') ? strrchr(master, '/') + 1 : master, ifname);
		return false;
	}
	return true;
}

static bool open_sides(const struct options *o)
{
	unsigned int mtu = 0, longest = 0;

	for (int i = 0; i < 2; i++) {
		if (!port_ready(o->ifname[i], &mtu))
			return false;
		longest = mtu > longest ? mtu : longest;
	}
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		s->ifname = o->ifname[i];
		s->cfg = o->link[i];
		s->ring = pkt_ring_open(s->ifname, 4096, 1024, true, longest + HEADERS);
		s->link = s->ring ? wan_create(&s->cfg) : NULL;
		if (s->ring && !s->link)
			warnx("no memory for %" PRIu64 " MB under way; lower --store-mb",
			      s->cfg.store_bytes >> 20);
		if (!s->link || (o->visible && pkt_ring_visible(s->ring) < 0))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct options o;
	int rc;

	rc = options_parse(argc, argv, &o);
	if (rc)
		return rc - 1;
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	prctl(PR_SET_TIMERSLACK, 1000UL);
	/* A link is not slowed by busy hosts; where this is not permitted, it is a little. */
	setpriority(PRIO_PROCESS, 0, -10);
	rc = 1;
	if (open_sides(&o)) {
		rc = relay(&o);
		report();
	}
	for (int i = 0; i < 2; i++) {
		pkt_ring_close(sides[i].ring);
		wan_destroy(sides[i].link);
	}
	return rc;
}

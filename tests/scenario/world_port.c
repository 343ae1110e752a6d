// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The ports of an appliance whose process does not read them (actors.h, @still).
 *
 * Frames come into their rings as long as the latest heartbeat is not stale. From then on the XDP
 * program passes them up, and they go past the engine, but for those of queue pairs that are held:
 * these are dropped. Datagrams of the connection manager are never held, so that a number may get
 * another owner, whom no engine knows. When the process goes on it reads what its rings have, or
 * drops that if the pause was long.
 *
 * What is held outlives processes (world_heir.c), and changes at once, not with a batch.
 */
#include "tests/scenario/world_priv.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/cm.h"
#include "wire/psn.h"

#define STALE_NS   500000000ull	 /* as port/afxdp.c has it */
#define BEAT_NS	   50000000ull	 /* between two heartbeats */
#define OLD_NS	   1000000000ull /* frames that waited so long are dropped */
#define RING	   2048u	 /* frames */
#define RING_BYTES (16u << 20)
/* A queue pair cannot be told from one that begins nearer to what is in custody. */
#define NEAR	   (1u << 22)

/* Of the ports of one appliance; @frames: that are in each ring */
struct port {
	struct wan *ring[PORTS];
	uint32_t frames[PORTS];
};

struct ports {
	struct port of[2];
};

int world_port_init(struct world *w)
{
	const struct wan_config as_is = {.store_bytes = RING_BYTES};

	if (!w->cfg.actors.still && !world_heirs)
		return 0;
	w->held[0] = mmap(NULL, 2 * HELD_MAX * sizeof(struct port_held), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->held[0] == MAP_FAILED)
		abort();
	w->held[1] = w->held[0] + HELD_MAX;
	w->cfg.engine.fence = world_heirs || w->cfg.actors.still & STILL_HELD;
	if (!w->cfg.actors.still)
		return 0;
	w->ports = calloc(1, sizeof(*w->ports));
	for (int i = 0; w->ports && i < 2 * PORTS; i++)
		w->ports->of[i / PORTS].ring[i % PORTS] = wan_create(&as_is);
	return w->ports ? 0 : -1;
}

void world_port_exit(struct world *w)
{
	if (w->held[0])
		munmap(w->held[0], 2 * HELD_MAX * sizeof(struct port_held));
	w->held[0] = w->held[1] = NULL;
	for (int i = 0; w->ports && i < 2 * PORTS; i++)
		wan_destroy(w->ports->of[i / PORTS].ring[i % PORTS]);
	free(w->ports);
	w->ports = NULL;
}

/* ---- what is held ---- */

static void enter(struct port_held *table, const struct flow_key *k, uint32_t lqpn,
		  const struct template *t, bool on)
{
	struct port_held *h = NULL;

	for (uint32_t i = 0; i < HELD_MAX; i++) {
		if (table[i].used && !memcmp(&table[i].requests, k, sizeof(*k)))
			h = &table[i];
		else if (!table[i].used && !h && on)
			h = &table[i];
		if (h && h->used)
			break;
	}
	if (!h)
		return;
	h->requests = *k;
	h->lqpn = lqpn <= PSN_MASK ? lqpn : h->lqpn;
	h->headers = on && t ? *t : (struct template){0};
	h->used = on;
}

void world_port_hold(struct world *w, int side, const struct flow_key *k, uint32_t lqpn,
		     const struct template *headers, bool on)
{
	sigset_t alarm, was;

	if (!w->held[side])
		return;
	/* the kernel's table has all of an entry or nothing of it */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, &was);
	enter(w->held[side], k, lqpn, headers, on);
	sigprocmask(SIG_SETMASK, &was, NULL);
}

static bool holds(const struct world *w, int side, const struct frame *f)
{
	held_each (w, side, h) {
		const struct flow_key *k = &h->requests;

		if (k->vlan != f->vlan)
			continue;
		if ((k->dqpn == f->dqpn && ip_addr_eq(&k->src, &f->src) &&
		     ip_addr_eq(&k->dst, &f->dst)) ||
		    (h->lqpn == f->dqpn && ip_addr_eq(&k->src, &f->dst) &&
		     ip_addr_eq(&k->dst, &f->src)))
			return true;
	}
	return false;
}

/* ---- an appliance that stands still ---- */

/* What no process reads of appliance @side: a packet of a queue pair of host @from. */
static void passes(struct world *w, int side, int from, const struct frame *f)
{
	struct rc_qp *qp = rc_qp_find(w->host[!from], f->dqpn);
	struct world_qp *q = qp ? rc_qp_user(qp) : NULL;

	if (q && f->op->flags & OPF_REQUEST)
		q->side[from].passed |= side == from ? MISS_FIRST : MISS_SECOND;
}

/* Nobody reads a datagram of the connection manager from host @from's side: who has not seen the
 * handshake does not know the owner that a number gets. (One who goes is known by the next one.) */
static void unseen(struct world *w, int from, const struct frame *f)
{
	struct cm cm;

	if (cm_parse(f, &cm) == CM_NONE || cm.type == CM_DREQ || cm.type == CM_DREP)
		return;
	for (uint32_t i = 0; i < w->nqps; i++) {
		struct world_qp *q = &w->qp[i];

		if (!q->shaking || cm.local_id != q->cm[from].out.local_id)
			continue;
		w->unseen += !q->unseen;
		q->unseen = q->ever_unseen = true;
		q->debt |= world_owed_near(q, NEAR) ||
			   world_reuser_repeats(q, q->cfg[0].sq_psn, q->cfg[0].rq_psn);
	}
}

bool world_port_takes(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	int from = link & 1, side = link < 2 ? from : !from;
	enum engine_port port = link < 2 ? PORT_LAN : PORT_WAN;
	struct port *p = w->ports ? &w->ports->of[side] : NULL;
	uint64_t beat = splitmix64(w->cfg.seed ^ w->still[side].since) % BEAT_NS;
	struct frame f;
	uint8_t *b;

	if (!p || link == WORLD_LAN_OUT(from) || !w->still[side].since)
		return false;
	if (w->now - w->still[side].since < STALE_NS - beat) {
		b = p->frames[port] < RING ? wan_buf(p->ring[port]) : NULL;
		if (!b)
			return true;
		memcpy(b, data, len);
		wan_send(p->ring[port], w->now, len);
		p->frames[port]++;
		return true;
	}
	if (frame_parse(data, len, &f) == FRAME_OK) {
		if (holds(w, side, &f))
			return true;
		passes(w, side, from, &f);
		unseen(w, from, &f);
	}
	w->passed++;
	world_link_send(w, link < 2 ? WORLD_WAN(side) : WORLD_LAN_OUT(side), data, len);
	return true;
}

void world_port_read(struct world *w, int side)
{
	bool old = w->still[side].was_long;
	const uint8_t *data;
	uint32_t len;

	for (int port = 0; w->ports && !w->still[side].since && port < PORTS; port++) {
		struct port *p = &w->ports->of[side];

		while (p->frames[port] && (old || !world_late_waits(w, side)) &&
		       (data = wan_pop(p->ring[port], w->now, &len))) {
			p->frames[port]--;
			if (!old)
				world_to_port(w, side, (enum engine_port)port, data, len);
		}
	}
}

bool world_port_waits(const struct world *w, int side)
{
	return w->ports && !w->still[side].since &&
	       (w->ports->of[side].frames[PORT_LAN] || w->ports->of[side].frames[PORT_WAN]);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Time: what is under way arrives, engines and hosts do what is due. */
#include "tests/scenario/world_priv.h"

#include <string.h>

#include "tests/scenario/readers.h"
#include "tests/scenario/world_storage.h"
#include "wire/bytes.h"
#include "wire/psn.h"

/* More cannot happen within a nanosecond. */
#define MOMENT_EVENTS 100000u

static bool seen(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	w->frames++;
	w->packets += link < 2;
	if (w->cfg.trace)
		trace_frame(w, link, data, len);
	world_forger_saw(w, link, data, len);
	world_overload_run(w);
	return !w->filter || w->filter(w, link, data, len);
}

/* The world that this frame from the WAN belongs to. */
static struct world *owner_of(struct world *w, const uint8_t *data)
{
	if (!w->guest)
		return w;
	if (get_be16(data + 12) == WORLD_TYPE_REPORT)
		return data[18] ? w->guest : w;
	return get_be16(data + 12) == 0x0800 && data[33] == WORLD_GUEST_HOST ? w->guest : w;
}

/* Whether the appliance at the end of link @i does nothing but wait for an OPEN. */
static bool waits(const struct world *w, int i)
{
	return i < 2 ? world_late_waits(w, i) : i >= 4 && world_late_waits(w, !(i & 1));
}

static bool holds(struct world *w, int i)
{
	uint64_t first = wan_next(w->link[i]);

	return world_overload_holds(w, i, first) || world_still_holds(w, i) || waits(w, i) ||
	       (i >= 4 && world_late_holds(w, !(i & 1), LATE_READS_FRAMES, first));
}

/* A report that has come in band may wait in the socket, like any other. */
static void to_socket(struct world *w, int from, const struct report *r)
{
	struct wan *to = world_reports(w, from, r);
	uint32_t late = w->cfg.actors.late;
	uint8_t *b;

	if (!(late & LATE_REPORTS(!from)) || (late & LATE_OPEN && r->type != REPORT_OPEN)) {
		world_rx_report(w, !from, 0, r);
		return;
	}
	b = wan_buf(to);
	if (!b)
		return;
	memcpy(b, r, sizeof(*r));
	wan_send(to, w->now - wan_config(to)->delay_ns, sizeof(*r));
}

void world_to_port(struct world *w, int side, enum engine_port port, const uint8_t *data,
		   uint32_t len)
{
	if (!world_queues_put(w, side, port, data, len))
		world_late_rx(w, side, port, data, len);
}

static void deliver_link(struct world *of, int i)
{
	struct world *w = of;
	const uint8_t *data;
	uint32_t len;

	if (i >= 4 && w->is_guest)
		return; /* its host looks at what has arrived */
	if (holds(w, i))
		return;
	while ((data = wan_pop(of->link[i], of->now, &len))) {
		int side = i & 1;

		if (world_still_drops(w, i))
			continue;

		w = i >= 4 ? owner_of(of, data) : of;
		if (w->overload)
			data = world_overload_swap(w, i, data, &len);
		if (i >= 4 && get_be16(data + 12) == WORLD_TYPE_REPORT) {
			uint32_t n = get_be32(data + 14);

			if (w->engine[!side] && n < WORLD_IN_BAND) /* else it was corrupted */
				to_socket(w, side, &w->in_band[side][n]);
			continue;
		}
		if (i >= 4 && w->cfg.actors.cross_bps && get_be16(data + 12) == WORLD_TYPE_OTHER)
			continue;
		if (!seen(w, i, data, len))
			continue;
		if (world_path_takes(w, i, data, len) || world_port_takes(w, i, data, len))
			continue;
		if (i >= 4) { /* from side's WAN port to the other appliance */
			if (w->engine[!side])
				world_to_port(w, !side, PORT_WAN, data, len);
			else
				world_link_send(w, WORLD_LAN_OUT(!side), data, len);
		} else if (i < 2) {
			if (w->engine[side])
				world_to_port(w, side, PORT_LAN, data, len);
			else
				world_link_send(w, WORLD_WAN(side), data, len);
		} else {
			if (w->forger && world_forger_arrives(w, side, data, len))
				continue;
			if (w->shaking)
				world_shake_rx(w, side, data, len);
			rc_host_rx(w->host[side], w->now, data, len);
			if (w->cfg.check_custody)
				world_check_told(w, side, data, len);
		}
		if (waits(w, i))
			return;
	}
	world_still_seen(of, i);
}

/* The same report with content of a forger who knows the format, but not the state. */
static void forge(struct world *w, int from, struct report r)
{
	struct prng *p = &w->rng;
	unsigned int peer = 0;

	switch (prng_below(p, 5)) {
	case 0:
		r.gen += 1 + prng_below(p, UINT32_MAX);
		break;
	case 1:
		r.lane = prng_hit(p, 0.5) ? prng_below(p, 16) : (uint32_t)prng_next(p);
		r.gen += 1 + prng_below(p, UINT32_MAX);
		break;
	case 2:
		r.type = (uint8_t)prng_below(p, 256);
		r.gen += 1 + prng_below(p, UINT32_MAX);
		break;
	case 3:
		peer = 1 + prng_below(p, PEER_MAX);
		break;
	default:
		if (r.type == REPORT_ORDER) { /* it is about numbers: none is like the next */
			r.seq = (uint32_t)prng_next(p);
			r.base = (uint32_t)prng_next(p);
			break;
		}
		r.seq++;
		r.cum = (uint32_t)prng_next(p) & PSN_MASK;
		r.hi = (uint32_t)prng_next(p) & PSN_MASK;
		r.una = (uint32_t)prng_next(p) & PSN_MASK;
		r.room = (uint32_t)prng_next(p) & PSN_MASK;
		r.start_psn = (uint32_t)prng_next(p) & PSN_MASK;
		r.key.dqpn = (uint32_t)prng_next(p) & PSN_MASK;
		r.nholes = (uint8_t)prng_below(p, REPORT_HOLES + 1);
		for (uint8_t i = 0; i < r.nholes; i++)
			r.hole[i] = (struct psn_range){(uint32_t)prng_next(p) & PSN_MASK,
						       (uint32_t)prng_next(p) & PSN_MASK};
	}
	world_rx_report(w, !from, peer, &r);
}

static void deliver_reports(struct world *w, int from, enum late_what what)
{
	struct wan *of = what == LATE_READS_OPENS ? w->opens[from] : w->reports[from];
	const uint8_t *data;
	uint32_t len;

	if (!of || w->still[!from].since || world_late_holds(w, !from, what, wan_next(of)))
		return;
	while ((data = wan_pop(of, w->now, &len))) {
		struct report r;

		memcpy(&r, data, sizeof(r));
		if (!w->engine[!from])
			continue;
		if (w->cfg.trace)
			trace_report(w, from, &r);
		world_rx_report(w, !from, 0, &r);
		if (w->cfg.reports_in_band)
			continue;
		if (prng_hit(&w->rng, w->cfg.report_replay) && w->npast[from])
			world_rx_report(
				w, !from, 0,
				&w->past[from][prng_below(
					&w->rng, w->npast[from] < 64 ? w->npast[from] : 64)]);
		if (w->cfg.report_replay > 0 && prng_hit(&w->rng, 0.1))
			w->past[from][w->npast[from]++ % 64] = r;
		if (prng_hit(&w->rng, w->cfg.report_forge))
			forge(w, from, r);
	}
}

static uint64_t next_report(const struct world *w, int from)
{
	uint64_t t;

	if (w->still[!from].since)
		return UINT64_MAX;
	t = world_late_due(w, !from, LATE_READS_REPORTS, wan_next(w->reports[from]));
	if (w->opens[from])
		t = min64(t, world_late_due(w, !from, LATE_READS_OPENS, wan_next(w->opens[from])));
	return t;
}

static uint64_t next_event(struct world *w)
{
	uint64_t t = w->changes[0].when || w->changes[1].when ? readers_next(w) : UINT64_MAX;

	for (int i = 0; i < (w->is_guest ? 4 : 6); i++) {
		uint64_t at = world_still_holds(w, i) ? UINT64_MAX : wan_next(w->link[i]);

		if (w->overload && at < w->overload->held_until[i])
			at = w->overload->held_until[i];
		if (i >= 4)
			at = world_late_due(w, !(i & 1), LATE_READS_FRAMES, at);
		t = min64(t, waits(w, i) ? UINT64_MAX : at);
	}
	if (w->overload)
		t = min64(t, world_overload_next(w));
	t = min64(t, world_late_next(w));
	t = min64(t, world_queues_next(w));
	t = min64(t, world_still_next(w));
	t = min64(t, world_reuser_next(w));
	t = min64(t, world_cross_next(w));
	if (w->shaking)
		t = min64(t, world_shake_next(w));
	for (int i = 0; i < 2; i++) {
		t = min64(t, rc_host_next(w->host[i]));
		t = min64(t, next_report(w, i));
		if (w->engine[i] && !w->still[i].since && !world_late_waits(w, i))
			t = min64(t, shards_deadline(w->shards[i]));
	}
	return w->guest ? min64(t, next_event(w->guest)) : t;
}

static void step(struct world *w)
{
	w->events++;
	w->moment_events = w->now == w->moment ? w->moment_events + 1 : 0;
	w->moment = w->now;
	if (w->guest)
		w->guest->now = w->now;
	if (w->moment_events > MOMENT_EVENTS && !w->violation)
		w->violation =
			"time stands still: an engine asks for the same moment again and again";
	if (w->cfg.frames_max && w->frames - w->frames_at > w->cfg.frames_max)
		w->violation = "frames without end";
	if (w->changes[0].when || w->changes[1].when)
		readers_run(w);
	world_still_run(w);
	for (int i = 0; i < 6; i++)
		deliver_link(w, i);
	world_queues_run(w);
	for (int i = 0; i < 2; i++) {
		deliver_reports(w, i, LATE_READS_REPORTS);
		deliver_reports(w, i, LATE_READS_OPENS);
	}
	world_late_run(w);
	world_forger_run(w);
	world_reuser_run(w);
	world_cross_run(w);
	if (w->shaking)
		world_shake_run(w);
	for (int i = 0; i < 2; i++) {
		if (w->engine[i] && !w->still[i].since && !world_late_waits(w, i))
			world_tick(w, i);
		rc_host_poll(w->host[i], w->now, 64);
	}
	if (w->guest) {
		step(w->guest);
		w->violation = w->violation ? w->violation : w->guest->violation;
	}
	if (w->cfg.actors.share && !w->violation)
		w->violation = world_check_share(w);
	if (w->cfg.check_every && w->events % w->cfg.check_every == 0)
		for (int i = 0; i < 2; i++)
			if (w->engine[i] && !w->violation)
				w->violation = shards_check(w->shards[i]);
}

void world_run(struct world *w, uint64_t until)
{
	while (!w->violation && !w->excuse) {
		uint64_t t = next_event(w);

		if (t > until) {
			w->now = until;
			return;
		}
		if (t > w->now)
			w->now = t;
		step(w);
		if (w->pause_at && w->finished >= w->pause_at)
			return;
	}
}

static bool done(struct world *w)
{
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *qp = w->qp[i].side[s].qp;

			if (w->qp[i].shaking || world_reuser_busy(&w->qp[i]))
				return false;
			if (!w->qp[i].up)
				continue;
			/* a permissive host asks a dead one, or for lost data, for ever */
			if (!rc_qp_in_error(qp) && !rc_qp_in_error(w->qp[i].side[!s].qp) &&
			    !w->qp[i].side[s].lost &&
			    (w->qp[i].side[s].work.left || rc_qp_queued(qp) ||
			     !storage_done(&w->qp[i])))
				return false;
		}
	for (int s = 0; s < 2; s++)
		if (w->engine[s] && shards_custody(w->shards[s], -1, w->now).packets)
			return false;
	return true;
}

bool world_run_done(struct world *w, uint64_t until)
{
	while (!w->violation && !w->excuse && w->now < until) {
		if (done(w))
			return true;
		for (int i = 0; i < 1000 && !w->violation; i++) {
			uint64_t t = next_event(w);

			if (t > until) {
				w->now = until;
				break;
			}
			/* after the end there is nothing but idle timers: look often then */
			if (t > w->now + MS)
				i += 500;
			if (t > w->now)
				w->now = t;
			step(w);
		}
	}
	return done(w) && !w->violation;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How the end of a world is verified, and what is printed when it is wrong. */
#include "tests/scenario/world_priv.h"

#include <inttypes.h>

bool world_injects;

/* The queue pair that the engine knows as connection @conn. */
static struct world_qp *qp_of(struct world *w, int side, uint32_t conn)
{
	struct conn_info ci;

	for (uint32_t i = 0; i < w->nqps; i++)
		if (world_conn(w, side, &w->qp[i], &ci) && ci.id == conn)
			return &w->qp[i];
	return NULL;
}

void world_broken(struct world *w, int side, const struct engine_event *ev)
{
	static char what[256];
	struct world_qp *q = world_injects ? qp_of(w, side, ev->conn) : NULL;

	w->broken++;
	if (q) {
		q->broken = true;
	} else if (!w->violation) {
		snprintf(what, sizeof(what), "an invariant is broken at %s:%u: %s", ev->must.file,
			 ev->must.line, ev->must.what);
		w->violation = what;
	}
}

const char *world_verify_qp(struct world_qp *q, int s, bool complete)
{
	struct rc_qp *req = q->side[s].qp, *resp = q->side[!s].qp;
	const char *bad = NULL;

	if (!q->up)
		return NULL;
	if (q->w->cfg.check_range && rc_qp_stats(resp)->reads_out_of_range)
		bad = "a READ went outside of the responder's region";
	else if (q->side[s].data_wrong)
		bad = "a READ or atomic brought wrong data";
	else if (rc_check_prefix(req, resp))
		bad = "3: what was executed is not a prefix of what was posted";
	if (bad && (q->debt || world_astray(q))) {
		world_wrong(q, bad); /* it may be the former owner's, or be told yet */
		return NULL;
	}
	if (bad || !complete)
		return bad;
	if (q->side[s].failed || rc_qp_in_error(req))
		return "a queue pair failed";
	if (rc_check_all(req, resp))
		return "something that was posted did not arrive";
	if (rc_qp_config(req)->shadow && rc_check_memory(req, resp) >= 0)
		return "the responder's memory is not what it must be";
	return NULL;
}

const char *world_verify(struct world *w, bool complete)
{
	if (w->violation)
		return w->violation;
	for (int s = 0; s < 2; s++)
		if (w->engine[s]) {
			const char *bad = shards_check(w->shards[s]);

			if (!bad)
				bad = world_agree(w, s);
			if (bad)
				return bad;
		}
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			const char *bad = world_verify_qp(&w->qp[i], s, complete);

			if (bad)
				return bad;
		}
	return NULL;
}

bool world_conn(struct world *w, int side, const struct world_qp *q, struct conn_info *out)
{
	const struct rc_qp_config *c = &q->cfg[side];
	uint32_t from = 0;

	while (w->engine[side] && shards_conn_next(w->shards[side], from, w->now, out)) {
		from = out->id + 1;
		if (out->paired && out->lqpn == c->lqpn && out->rqpn == c->rqpn)
			return true;
	}
	return false;
}

void world_dump(struct world *w, FILE *out)
{
	fprintf(out, "seed %" PRIu64 " now %.3f ms events %" PRIu64 " frames %" PRIu64 "\n",
		w->cfg.seed, (double)w->now / 1e6, w->events, w->frames);
	for (int s = 0; s < 2; s++) {
		struct conn_info ci;
		uint32_t from = 0;

		if (!w->engine[s])
			continue;
		while (shards_conn_next(w->shards[s], from, w->now, &ci)) {
			from = ci.id + 1;
			fprintf(out,
				"engine %d: lqpn %06x rqpn %06x paired %d learned %s mtu %u rule "
				"%d\n",
				s, ci.lqpn, ci.rqpn, ci.paired, learn_source_name(ci.learned_by),
				ci.path_mtu, ci.rule);
			for (int l = 0; l < 2; l++) {
				struct lane_info *i = &ci.lane[l];

				fprintf(out,
					"  %s %s%s epsn %06x frontier %06x una %06x sent %06x "
					"msn %u "
					"custody %" PRIu64 " transit %" PRIu64
					" reads %u req %" PRIu64 " packs %" PRIu64 " tacks %" PRIu64
					" dup %" PRIu64 " retx %" PRIu64 " naks %" PRIu64
					" to %" PRIu64 " rnr %" PRIu64 " srtt %.2f ms reason %s\n",
					l ? "in " : "out", lane_state_name(i->state),
					i->opener ? " opener" : "", i->epsn, i->frontier, i->una,
					i->nxt, i->msn, i->custody.packets, i->transit.packets,
					i->reads_pending, i->requests, i->pseudo_acks, i->true_acks,
					i->dropped_duplicates, i->retransmits, i->naks_sent,
					i->timeouts, i->rnr, (double)i->srtt_ns / 1e6,
					lane_reason_name(i->reason));
			}
		}
		for (int c = 0; c < EC_COUNT; c++)
			if (shards_counter(w->shards[s], c))
				fprintf(out, "  %s=%" PRIu64, engine_counter_name(c),
					shards_counter(w->shards[s], c));
		fprintf(out, "\n");
	}
	for (uint32_t i = 0; i < w->nqps; i++)
		for (int s = 0; s < 2; s++) {
			struct rc_qp *qp = w->qp[i].side[s].qp;
			const struct rc_stats *st;

			if (!qp) {
				fprintf(out, "qp %u side %d: none\n", i, s);
				continue;
			}
			st = rc_qp_stats(qp);
			fprintf(out,
				"qp %u side %d: ok %" PRIu64 " failed %" PRIu64
				" (%s) queued %u una %06x end %06x epsn %06x msn %u retx %" PRIu64
				" timeouts %" PRIu64 " naks %" PRIu64 " rnr %" PRIu64
				" rx msgs %" PRIu64 " dups %" PRIu64 " oos %" PRIu64 "%s\n",
				i, s, w->qp[i].side[s].ok, w->qp[i].side[s].failed,
				rc_status_name(w->qp[i].side[s].status), rc_qp_queued(qp),
				rc_qp_una(qp), rc_qp_sent_end(qp), rc_qp_epsn(qp), rc_qp_msn(qp),
				st->retransmits, st->timeouts, st->rx_seq_naks, st->rx_rnr,
				st->rx_messages, st->duplicates, st->out_of_seq,
				rc_qp_in_error(qp) ? " ERROR" : "");
		}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What happens in a world, one line for each frame that arrives and each report: time in us, where,
 * what.
 *
 *	1068.556 host0 -> app0   READ_REQUEST q000201 psn 0004a0 va 1000 len 8192
 *	1068.600 !lan  -> app0   SEND_ONLY q000201 psn 7a04a0		(the forger's)
 *	1072.528 app1  -> app0   report answers cum 0004a2 hi 0004c0 holes 0004a2-0004a4
 */
#include <inttypes.h>

#include "tests/scenario/world.h"
#include "wire/cm.h"
#include "wire/icrc.h"

static const char *const places[6][2] = {
	{"host0", "app0"}, {"host1", "app1"}, {"app0", "host0"},
	{"app1", "host1"}, {"app0", "app1"},  {"app1", "app0"},
};

static void frame_line(const struct world *w, const char *from, const char *to, const uint8_t *data,
		       uint32_t len)
{
	FILE *out = w->cfg.trace;
	struct frame f;
	struct cm cm;

	enum frame_verdict v = frame_parse(data, len, &f);

	if (v != FRAME_OK && v != FRAME_UNKNOWN_OPCODE)
		return;
	fprintf(out, "%10" PRIu64 ".%03u %-5s -> %-5s ", w->now / 1000,
		(unsigned int)(w->now % 1000), from, to);
	if (v == FRAME_UNKNOWN_OPCODE) {
		fprintf(out, "OPCODE_%02x q%06x psn %06x\n", f.opcode, f.dqpn, f.psn);
		return;
	}
	fprintf(out, "%s q%06x psn %06x", f.op->name, f.dqpn, f.psn);
	if (f.reth)
		fprintf(out, " va %" PRIx64 " len %u", frame_reth_va(&f), frame_reth_length(&f));
	if (f.aeth)
		fprintf(out, " syndrome %02x msn %06x", frame_aeth_syndrome(&f),
			frame_aeth_msn(&f));
	if (f.opcode == OP_UD_SEND_ONLY && cm_parse(&f, &cm) != CM_NONE)
		fprintf(out, " CM type %02x ids %08x %08x%s", cm.type, cm.local_id, cm.remote_id,
			icrc_ok(&f) ? "" : " wrong ICRC");
	fprintf(out, " +%u%s\n", f.payload_len, f.ackreq ? " A" : "");
}

void trace_frame(const struct world *w, int link, const uint8_t *data, uint32_t len)
{
	frame_line(w, places[link][0], places[link][1], data, len);
}

void trace_forged(const struct world *w, int side, bool lan, const uint8_t *data, uint32_t len)
{
	frame_line(w, lan ? "!lan" : "!wan", places[2 + side][0], data, len);
}

static void ranges(FILE *out, const struct psn_range *h, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		fprintf(out, " %06x-%06x", h[i].from, h[i].end);
}

void trace_report(const struct world *w, int from, const struct report *r)
{
	static const char *const names[] = {
		[REPORT_OPEN] = "open",	    [REPORT_ACCEPT] = "accept",
		[REPORT_REFUSE] = "refuse", [REPORT_PROGRESS] = "progress",
		[REPORT_CLOSE] = "close",   [REPORT_RESP] = "answers",
		[REPORT_AHEAD] = "ahead",
	};
	FILE *out = w->cfg.trace;

	fprintf(out, "%10" PRIu64 ".%03u app%d  -> app%d  report %s lane %u gen %u", w->now / 1000,
		(unsigned int)(w->now % 1000), from, !from,
		r->type <= REPORT_AHEAD && names[r->type] ? names[r->type] : "?", r->lane, r->gen);
	switch (r->type) {
	case REPORT_OPEN:
		fprintf(out, " start %06x msn %06x%s", r->start_psn, r->start_msn,
			r->resume ? " resume" : "");
		break;
	case REPORT_PROGRESS:
		fprintf(out, " cum %06x hi %06x una %06x msn %06x room %06x refusal %02x", r->cum,
			r->hi, r->una, r->una_msn, r->room, r->refusal);
		ranges(out, r->hole, r->nholes);
		if (r->bypassed)
			fprintf(out, " bypassed");
		break;
	case REPORT_RESP:
		fprintf(out, " cum %06x hi %06x depth %u", r->cum, r->hi, r->depth);
		ranges(out, r->hole, r->nholes);
		break;
	case REPORT_AHEAD:
		fprintf(out, " %06x-%06x %u reads va %" PRIx64 " len %u", r->reads.psn,
			r->reads.end, r->reads.count, r->reads.va, r->reads.length);
		break;
	default:
		fprintf(out, " %s", lane_reason_name(r->reason));
		break;
	}
	fputc('\n', out);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tests/lab/check/trace.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "wire/cm.h"
#include "wire/icrc.h"
#include "wire/psn.h"

void *grow(void *p, uint32_t n, uint32_t *cap, size_t size)
{
	if (n < *cap)
		return p;
	*cap = *cap ? *cap * 2 : 256;
	p = realloc(p, *cap * size);
	if (!p) {
		fprintf(stderr, "pcapcheck: out of memory\n");
		exit(CHECK_CANNOT);
	}
	return p;
}

uint32_t flow_number(struct judge *j, const struct ip_addr *src, const struct ip_addr *dst,
		     uint16_t vlan, uint32_t dqpn)
{
	struct flow *f;

	for (uint32_t i = 0; i < j->nflows; i++) {
		f = &j->flow[i];
		if (f->dqpn == dqpn && f->vlan == vlan && ip_addr_eq(&f->dst, dst) &&
		    ip_addr_eq(&f->src, src))
			return i;
	}
	j->flow = grow(j->flow, j->nflows, &j->flows_cap, sizeof(*j->flow));
	j->flow[j->nflows] = (struct flow){
		.src = *src, .dst = *dst, .vlan = vlan, .dqpn = dqpn, .partner = -1, .site = -1};
	return j->nflows++;
}

static struct event *new_event(struct trace *t)
{
	t->ev = grow(t->ev, t->n, &t->cap, sizeof(*t->ev));
	memset(&t->ev[t->n], 0, sizeof(t->ev[0]));
	return &t->ev[t->n++];
}

/* A REQ and the REP that names it tell both queue pair numbers; both are fresh from here on. */
static void take_cm(struct judge *j, struct trace *t, const struct frame *f, const struct event *at)
{
	struct cm cm;

	cm_parse(f, &cm);
	if (cm.type == CM_REQ && cm.rc) {
		unsigned int i = j->nreqs++ % 64;

		j->req[i].src = f->src;
		j->req[i].comm_id = cm.local_id;
		j->req[i].lqpn = cm.lqpn;
		return;
	}
	if (cm.type != CM_REP)
		return;
	for (unsigned int i = 0; i < 64 && i < j->nreqs; i++) {
		uint32_t out, back;
		struct event *e;

		if (j->req[i].comm_id != cm.remote_id || !ip_addr_eq(&j->req[i].src, &f->dst))
			continue;
		out = flow_number(j, &f->dst, &f->src, f->vlan, cm.lqpn);
		back = flow_number(j, &f->src, &f->dst, f->vlan, j->req[i].lqpn);
		j->flow[out].partner = (int)back;
		j->flow[back].partner = (int)out;
		for (int k = 0; k < 2; k++) {
			e = new_event(t);
			*e = *at;
			e->kind = EVENT_FRESH;
			e->flow = k ? back : out;
		}
	}
}

static void take_rc(struct judge *j, struct trace *t, const struct frame *f, const struct event *at)
{
	uint16_t fl = f->op->flags;
	uint32_t n = flow_number(j, &f->src, &f->dst, f->vlan, f->dqpn);
	struct flow *flow = &j->flow[n];
	struct event *e = new_event(t);

	*e = *at;
	e->flow = n;
	e->psn = f->psn;
	e->opcode = f->opcode;
	e->payload_len = (uint16_t)f->payload_len;
	e->ackreq = f->ackreq;
	if (f->reth) {
		e->va = frame_reth_va(f);
		e->rkey = frame_reth_rkey(f);
		e->length = frame_reth_length(f);
	} else if (f->atomiceth) {
		e->va = get_be64(f->data + f->atomiceth);
		e->rkey = get_be32(f->data + f->atomiceth + 8);
	}
	if (f->aeth) {
		e->syndrome = (uint8_t)frame_aeth_syndrome(f);
		e->msn = frame_aeth_msn(f);
	}
	if ((fl & (OPF_FIRST | OPF_MIDDLE)) && f->payload_len > flow->mtu)
		flow->mtu = f->payload_len;
	if (fl & OPF_REQUEST) {
		e->kind = EVENT_REQUEST;
		e->digest = XXH3_64bits_withSeed(f->data + f->ext, f->icrc - f->ext, f->opcode);
		flow->requests++;
	} else {
		uint32_t from = f->atomicack ? f->atomicack : f->payload;

		e->kind = EVENT_ANSWER;
		e->digest = XXH3_64bits(f->data + from, f->icrc - from);
		flow->answers++;
	}
}

/* All of a frame that its ICRC covers and no router changes, and the ICRC. */
static uint64_t body(const struct frame *f)
{
	return XXH3_64bits(f->data + f->bth, f->icrc + ICRC_LEN - f->bth);
}

/* Between two appliances the ICRC of a held lane's frames is sealed, with a key that no capture
 * tells. */
static bool between(const struct judge *j, const struct trace *t)
{
	return j->cfg->single < 0 && (t->place == PLACE_WAN_A || t->place == PLACE_WAN_B);
}

static void note_wan(struct judge *j, const struct frame *f)
{
	j->sealed = grow(j->sealed, j->nsealed, &j->sealed_cap, sizeof(*j->sealed));
	j->sealed[j->nsealed++] = body(f);
}

/*
 * A host got @f with a wrong ICRC: its card drops it. An appliance passes such frames as they came
 * over the WAN, where it does not know the lane yet, or they are damaged, or not sealed for it. But
 * none may be on a LAN only (trace_wrong()).
 */
static void note_wrong(struct judge *j, const struct trace *t, const struct frame *f,
		       const struct event *at)
{
	j->wrong = grow(j->wrong, j->nwrong, &j->wrong_cap, sizeof(*j->wrong));
	j->wrong[j->nwrong++] =
		(struct wrong){.hash = body(f),
			       .trace = (unsigned int)(t - j->trace),
			       .no = at->no,
			       .psn = f->psn,
			       .t = at->t,
			       .flow = (int)flow_number(j, &f->src, &f->dst, f->vlan, f->dqpn),
			       .opcode = f->opcode};
}

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void trace_wrong(struct judge *j)
{
	if (j->nsealed)
		qsort(j->sealed, j->nsealed, sizeof(*j->sealed), by_hash);
	for (uint32_t i = 0; i < j->nwrong; i++) {
		const struct wrong *w = &j->wrong[i];
		const struct opcode_info *op = opcode_info(w->opcode);
		struct event at = {.t = w->t, .no = w->no};

		if (!j->nsealed ||
		    !bsearch(&w->hash, j->sealed, j->nsealed, sizeof(*j->sealed), by_hash))
			judge_violation(j, RULE_ICRC, &j->trace[w->trace], &at, w->flow,
					"wrong ICRC in %s, PSN %06x",
					op && op->name ? op->name : "?", w->psn);
	}
	free(j->sealed);
	free(j->wrong);
}

static void take(struct judge *j, struct trace *t, const struct pcap_pkthdr *h, const uint8_t *data)
{
	struct event at = {.t = (uint64_t)h->ts.tv_sec * 1000000000u + (uint64_t)h->ts.tv_usec,
			   .no = t->frames};
	enum frame_verdict v;
	struct frame f;

	if (h->caplen < h->len) {
		judge_violation(j, RULE_FRAME, t, &at, -1, "only %u of %u bytes were captured",
				h->caplen, h->len);
		return;
	}
	v = frame_parse(data, h->caplen, &f);
	if (v == FRAME_NOT_ROCE)
		return;
	j->res->frames++;
	if (v == FRAME_UNKNOWN_OPCODE)
		return; /* of another transport */
	if (v != FRAME_OK) {
		if (!j->cfg->damage)
			judge_violation(j, RULE_FRAME, t, &at, -1, "%s", frame_verdict_name(v));
		return;
	}
	if (f.opcode == OP_PARITY_REQUESTS)
		j->parity = true;
	if (between(j, t)) {
		note_wan(j, &f);
		at.native = icrc_ok(&f);
		if (j->cfg->damage && !at.native)
			return;
	} else if (!icrc_ok(&f)) {
		if (!j->cfg->damage)
			note_wrong(j, t, &f, &at);
		return;
	}
	if (f.opcode == OP_UD_SEND_ONLY && f.dqpn == 1)
		take_cm(j, t, &f, &at);
	else if (f.op->flags & OPF_RC)
		take_rc(j, t, &f, &at);
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return x->no < y->no ? -1 : x->no > y->no;
}

/*
 * The kernel stamps a frame before it delivers it, but a host may answer it, and the answer be
 * captured before the frame itself: sort by time stamps.
 */
static void sort_events(struct trace *t)
{
	if (t->n)
		qsort(t->ev, t->n, sizeof(*t->ev), by_time);
}

/* A host that stood still takes what has come meanwhile within this time. */
#define CATCH_UP_NS 10000000u
#define STALL_NS    1000000u

static void find_stalls(const struct judge *j, struct trace *t)
{
	uint64_t stood = 0, moves = 0; /* since when it stood still, and when it moved again */

	for (uint32_t i = 0; i < t->n; i++) {
		struct event *e = &t->ev[i];

		if (i && e->t - e[-1].t > STALL_NS) {
			stood = e[-1].t;
			moves = e->t;
		}
		e->since = j->cfg->stalls && moves && e->t - moves < CATCH_UP_NS ? stood : e->t;
	}
}

bool trace_load(struct judge *j, const char *path, int place)
{
	struct trace *t = &j->trace[j->ntraces++];
	char cause[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *h;
	const uint8_t *data;
	pcap_t *p;
	int r;

	t->name = path;
	t->place = place;
	p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, cause);
	if (!p) {
		fprintf(j->out, "pcapcheck: %s: %s\n", path, cause);
		return false;
	}
	if (pcap_datalink(p) != DLT_EN10MB) {
		fprintf(j->out, "pcapcheck: %s: link type is not Ethernet\n", path);
		pcap_close(p);
		return false;
	}
	while ((r = pcap_next_ex(p, &h, &data)) == 1) {
		t->frames++;
		take(j, t, h, data);
	}
	sort_events(t);
	find_stalls(j, t);
	if (r != PCAP_ERROR_BREAK)
		fprintf(j->out, "pcapcheck: %s: %s\n", path, pcap_geterr(p));
	pcap_close(p);
	return r == PCAP_ERROR_BREAK;
}

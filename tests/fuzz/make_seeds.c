// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes the seeds of the wire, cm, engine and peer fuzzers: make_seeds DIRECTORY. They come from
 * the captures in tests/data, from peer_seeds.c and, for the engine, from small scenario worlds:
 * what one engine of a world is given, in its order, becomes records. The linker puts the __wrap_
 * functions below between the world and its engines.
 *
 * `make fuzz-seeds` runs it; seeds have names, while what a fuzzer found and was kept has a hash
 * for a name.
 */
#include <errno.h>
#include <sys/stat.h>

#include "peer/proto.h"
#include "tests/fuzz/engine_record.h"
#include "tests/fuzz/seed.h"
#include "tests/lab/model/cm_emit.h"
#include "tests/scenario/scenario.h"
#include "tests/unit/pcap_data.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define MS	     1000000ull
#define WIRE_PARAMS  32
#define FUZZ_QPN_LAN 0x11
#define FUZZ_QPN_WAN 0x22

static const char *top;
static unsigned int written;

uint8_t seed_data[SEED_MAX + 2 * FRAME_MAX];
size_t seed_len;

void seed_put(const char *target, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, target);
	NEED(mkdir(path, 0777) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%s/%s", top, target, name);
	f = fopen(path, "wb");
	NEED(f && fwrite(seed_data, 1, seed_len, f) == seed_len && fclose(f) == 0);
	seed_len = 0;
	written++;
}

/* ---- wire ---- */

static void wire_seed(uint8_t door, const uint8_t *data, uint32_t len, const char *name)
{
	uint8_t param[WIRE_PARAMS] = {door, 1, 2,    3, 0xff, 0xff, 0xfe, 7,
				      0,    1, 0x60, 4, 5,    9,    0x80};

	add(param, sizeof(param));
	add(data, len);
	seed_put("wire", name);
}

/* The shortest frame of every opcode in each capture, once as it is, once tagged. */
static void wire_captures(void)
{
	for (size_t i = 0; i < PCAP_DATA_FILES; i++) {
		struct pcap_data d = pcap_data_load(pcap_data_all[i]);
		const uint32_t none = d.n;
		uint32_t best[256];

		for (unsigned int op = 0; op < 256; op++)
			best[op] = none;
		for (uint32_t j = 0; j < d.n; j++) {
			struct frame f;

			if (frame_parse(d.pkt[j], d.len[j], &f) != FRAME_OK)
				continue;
			if (best[f.opcode] == none || d.len[j] < d.len[best[f.opcode]])
				best[f.opcode] = j;
		}
		for (unsigned int op = 0; op < 256; op++) {
			uint8_t tagged[FRAME_MAX + 4];
			char name[64];
			uint32_t n;

			if (best[op] == none)
				continue;
			n = d.len[best[op]];
			snprintf(name, sizeof(name), "%s-%02x", pcap_data_all[i], op);
			wire_seed(0, d.pkt[best[op]], n, name);
			if (n > 200)
				continue;
			memcpy(tagged, d.pkt[best[op]], 12);
			memcpy(tagged + 12, op & 1 ? "\x81\x00\x60\x07" : "\x88\xa8\x00\x05", 4);
			memcpy(tagged + 16, d.pkt[best[op]] + 12, n - 12);
			snprintf(name, sizeof(name), "%s-%02x-tagged", pcap_data_all[i], op);
			wire_seed(2, tagged, n + 4, name);
		}
		pcap_data_free(&d);
	}
}

static void wire_built(void)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *o = opcode_info((uint8_t)op);
		uint8_t payload[37];
		char name[32];

		if (!o->name)
			continue;
		memset(payload, (int)op, sizeof(payload));
		add8(3);
		add8(op);
		add8(op % 16);
		add24(0x1234);
		add24(op * 77);
		while (seed_len < WIRE_PARAMS)
			add8(0x40 + seed_len);
		add(payload, op & 1 ? sizeof(payload) : 4);
		snprintf(name, sizeof(name), "built-%02x", op);
		seed_put("wire", name);
	}
}

/* ---- cm ---- */

static void cm_seeds(void)
{
	struct pcap_data d = pcap_data_load("cm-rping");
	char name[32];

	for (uint32_t i = 0; i < d.n; i++) {
		struct frame f;
		struct cm c;

		if (frame_parse(d.pkt[i], d.len[i], &f) != FRAME_OK || cm_parse(&f, &c) == CM_NONE)
			continue;
		add8(0);
		add(d.pkt[i], d.len[i]);
		snprintf(name, sizeof(name), "frame-%02x", c.type);
		seed_put("cm", name);
		add8(1);
		add8(i & 3);
		add(f.data + f.payload, f.payload_len);
		snprintf(name, sizeof(name), "mad-%02x", c.type);
		seed_put("cm", name);
	}
	pcap_data_free(&d);
	for (unsigned int type = 0; type < 7; type++) {
		add8(2);
		add8(type & 3);
		add8(type);
		for (unsigned int i = 0; i < 40; i++)
			add8(i * 37 + type);
		snprintf(name, sizeof(name), "fields-%02x", 0x10 + type);
		seed_put("cm", name);
	}
	add8(3);
	for (unsigned int i = 0; i < 24; i++)
		add8(i * 11);
	seed_put("cm", "dreq");
}

/* ---- engine ---- */

static void setup(uint8_t a, uint8_t b)
{
	add8(a);
	add8(b);
	add16(0);
}

/* At least @ns; time goes on a little faster than it did. */
static void add_time(uint64_t ns, bool quiet)
{
	uint64_t m = (ns + 63) / 64;
	unsigned int e = 0;

	for (; m > 0xfff; e++)
		m = (m + 3) / 4;
	add8(REC_TIME | (quiet ? REC_QUIET : 0));
	add16((uint32_t)m | e << 12);
}

/* Whether it is one of RC; no tick after it. */
static bool add_frame(unsigned int conn, unsigned int host, const uint8_t *data, uint32_t len)
{
	struct frame f;
	uint8_t bits;
	uint32_t arg = 0;

	if (frame_parse(data, len, &f) != FRAME_OK || !(f.op->flags & OPF_RC))
		return false;
	bits = (f.ackreq ? FRAME_ACKREQ : 0) | (f.solicited ? FRAME_SOLICITED : 0) |
	       (icrc_ok(&f) ? 0 : FRAME_DAMAGED);
	if (f.reth)
		arg = frame_reth_length(&f);
	if (f.aeth)
		arg = (uint32_t)frame_aeth_syndrome(&f) << 24 | frame_aeth_msn(&f);
	add8(REC_FRAME | conn << 4 | (host ? REC_FAR : 0) | REC_QUIET);
	add8(bits);
	add8(f.opcode);
	add24(f.psn);
	add16(f.payload_len);
	add32(arg);
	return true;
}

/* A capture as it passes an appliance: the first frames as they are, or all by numbers. */
static void engine_capture(const char *file, bool raw, uint8_t a)
{
	struct pcap_data d = pcap_data_load(file);
	char name[64];
	struct frame f;

	setup(a, 0);
	for (uint32_t i = 0; i < d.n && seed_len < SEED_MAX - 64; i++) {
		unsigned int host;

		if (frame_parse(d.pkt[i], d.len[i], &f) != FRAME_OK)
			continue;
		host = f.src.b[15] == 2;
		if (!raw && !add_frame(0, host, d.pkt[i], d.len[i]))
			continue;
		if (raw) {
			if (seed_len + d.len[i] > SEED_MAX)
				break;
			add8(REC_RAW | (host ? REC_FAR : 0) | REC_QUIET);
			add16(d.len[i]);
			add(d.pkt[i], d.len[i]);
		}
		add_time(50000, false);
	}
	if (seed_len == SETUP) { /* its first frame is too long for a seed */
		seed_len = 0;
		pcap_data_free(&d);
		return;
	}
	snprintf(name, sizeof(name), "capture-%s%s-%02x", file, raw ? "-raw" : "", a);
	seed_put("engine", name);
	pcap_data_free(&d);
}

/* What the engine @target of a world is given. */
static struct {
	struct world *w;
	int target;
	uint64_t now;
	size_t last; /* the latest record of a call at this time, 0: none */
} tape;

void __real_engine_rx(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
		      uint64_t now_ns);
void __wrap_engine_rx(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
		      uint64_t now_ns);
void __real_engine_rx_report(struct engine *e, unsigned int peer, const struct report *r,
			     uint64_t now_ns);
void __wrap_engine_rx_report(struct engine *e, unsigned int peer, const struct report *r,
			     uint64_t now_ns);
void __real_engine_tick(struct engine *e, uint64_t now_ns);
void __wrap_engine_tick(struct engine *e, uint64_t now_ns);

static bool taped(const struct engine *e)
{
	return tape.w && tape.w->engine[tape.target] == e && seed_len < SEED_MAX;
}

static void at(uint64_t now)
{
	if (now > tape.now)
		add_time(now - tape.now, true);
	tape.now = now;
	tape.last = seed_len;
}

void __wrap_engine_rx(struct engine *e, enum engine_port port, uint8_t *data, uint32_t len,
		      uint64_t now_ns)
{
	if (taped(e)) {
		struct frame f;
		unsigned int conn = 0;

		at(now_ns);
		if (frame_parse(data, len, &f) == FRAME_OK)
			conn = f.dqpn >> 8 & 1;
		if (!add_frame(conn, port == PORT_WAN, data, len) && len < 400) {
			add8(REC_RAW | (port == PORT_WAN ? REC_FAR : 0) | REC_QUIET);
			add16(len);
			add(data, len);
		}
	}
	__real_engine_rx(e, port, data, len, now_ns);
}

void __wrap_engine_rx_report(struct engine *e, unsigned int peer, const struct report *r,
			     uint64_t now_ns)
{
	uint8_t buf[PROTO_REPORT_MAX];
	int n = proto_put_report(buf, sizeof(buf), r);

	if (taped(e) && n > 0) {
		bool opens = r->type == REPORT_OPEN || (r->type == REPORT_CLOSE && r->by_opener);

		at(now_ns);
		add8(REC_REPORT_RAW | (opens ? REC_FAR : 0) | REC_QUIET);
		add8(opens ? REPORT_KEY : REPORT_OWN);
		add16((uint32_t)n);
		add(buf, (size_t)n);
	}
	__real_engine_rx_report(e, peer, r, now_ns);
}

void __wrap_engine_tick(struct engine *e, uint64_t now_ns)
{
	if (taped(e)) {
		if (tape.last) {
			seed_data[tape.last] &= (uint8_t)~REC_QUIET;
		} else if (engine_deadline(e) <= now_ns) {
			add_time(now_ns - tape.now, false);
			tape.now = now_ns;
		}
		tape.last = 0;
	}
	__real_engine_tick(e, now_ns);
}

struct play {
	const char *name;
	uint32_t ops;
	uint32_t min, max;
	enum ack_policy policy;
	bool single, both;
	double loss, corrupt, reorder, rnr;
	bool restart, ahead;
};

static const struct play plays[] = {
	{.name = "send", .ops = 1u << RC_SEND | 1u << RC_SEND_IMM, .min = 1, .max = 700},
	{.name = "write", .ops = 1u << RC_WRITE, .min = 0, .max = 1500},
	{.name = "write-honest",
	 .ops = 1u << RC_WRITE,
	 .min = 1,
	 .max = 900,
	 .policy = POLICY_HONEST},
	{.name = "send-off", .ops = 1u << RC_SEND_INV, .min = 1, .max = 300, .policy = POLICY_OFF},
	{.name = "read", .ops = 1u << RC_READ, .min = 1, .max = 2000},
	{.name = "prefetch", .ops = 1u << RC_READ, .min = 512, .max = 512, .ahead = true},
	{.name = "mixed", .ops = (1u << RC_OPS) - 1, .min = 1, .max = 800, .both = true},
	{.name = "loss", .ops = 1u << RC_WRITE | 1u << RC_SEND, .min = 1, .max = 900, .loss = 0.1},
	{.name = "corrupt", .ops = (1u << RC_OPS) - 1, .min = 1, .max = 900, .corrupt = 0.08},
	{.name = "reorder",
	 .ops = 1u << RC_SEND | 1u << RC_READ,
	 .min = 1,
	 .max = 900,
	 .reorder = 0.2},
	{.name = "rnr", .ops = 1u << RC_SEND, .min = 1, .max = 500, .rnr = 0.3},
	{.name = "restart", .ops = 1u << RC_WRITE, .min = 1, .max = 900, .restart = true},
	{.name = "single",
	 .ops = 1u << RC_WRITE | 1u << RC_SEND,
	 .min = 1,
	 .max = 900,
	 .single = true},
	{.name = "single-loss",
	 .ops = (1u << RC_OPS) - 1,
	 .min = 1,
	 .max = 900,
	 .single = true,
	 .loss = 0.08},
};

static void engine_world(const struct play *p, int target, bool wrap)
{
	struct work k = {.ops = p->ops, .min = p->min, .max = p->max, .left = 60, .outstanding = 3};
	struct world_config c;
	struct rc_qp_config qc;
	struct world_qp *q;
	struct world *w;
	char name[64];

	world_defaults(&c);
	c.seed = 7 + (uint64_t)target;
	c.policy = p->policy;
	c.single = p->single;
	c.path_mtu = 256;
	c.prefetch = p->ahead;
	c.wan.delay_ns = MS;
	c.wan.loss = p->loss;
	c.wan.corrupt = p->corrupt;
	c.wan.reorder = p->reorder;
	c.wan.reorder_ns = MS / 2;
	c.report_loss = p->loss / 2;
	w = world_create(&c);
	scenario_qp(&qc, 1, 256, RC_STRICT);
	/* the numbers of the fuzzer's connection 0, seen from the taped side */
	qc.lqpn = target ? FUZZ_QPN_WAN : FUZZ_QPN_LAN;
	qc.rqpn = target ? FUZZ_QPN_LAN : FUZZ_QPN_WAN;
	qc.rnr_p = p->rnr;
	if (wrap)
		qc.sq_psn = qc.rq_psn = 0xffffe8;
	q = world_connect(w, &qc, RC_STRICT);
	NEED(q);
	setup((uint8_t)(1 << 3 | p->policy << 1 | (p->single ? SETUP_SINGLE : 0)),
	      p->ahead ? SETUP_PREFETCH : 0);
	tape.w = w;
	tape.target = target;
	tape.now = w->now;
	tape.last = 0;
	if (p->ops == 1u << RC_READ) {
		/* no lane opens at a READ */
		world_work(q, 0,
			   &(struct work){
				   .ops = 1u << RC_SEND, .max = 9, .left = 9, .outstanding = 1});
		world_run_done(w, w->now + 1000 * MS);
	}
	world_work(q, 0, &k);
	if (p->both)
		world_work(q, 1, &k);
	if (p->restart) {
		world_run(w, w->now + 20 * MS);
		world_restart(w, !target);
		if (seed_len < SEED_MAX) {
			add8(REC_PEER);
			add8(PEER_RESTARTED);
		}
	}
	world_run_done(w, w->now + 3000 * MS);
	tape.w = NULL;
	snprintf(name, sizeof(name), "world-%s-%d", p->name, target);
	seed_put("engine", name);
	world_destroy(w);
}

/* The short ways to each state, for the mutator to go on from. */
static void engine_states(void)
{
	static const uint8_t ends[][8] = {
		{REC_REQUESTS, 5, 0x91, 100, REC_WAIT, 4},
		{REC_REQUESTS, 3, 4, 0, REC_ACK, 1, 0, 0},
		{REC_REQUESTS, 9, 0, 30, REC_PEER, 0x55, REC_WAIT, 9},
		{REC_PEER, PEER_RESTARTED, REC_REQUESTS, 9, 0xb1, 30, REC_WAIT, 9},
		{REC_ACK, 1, 1, 4, 0, REC_RULES, 6, REC_QUIET | REC_WAIT},
		{REC_REQUESTS | REC_FAR, 9, 0xb1, 30, REC_CM, 5, 0, 0},
		{REC_FULL, 3, REC_REQUESTS, 9, 0xb1, 30, REC_FULL, 0},
	};

	for (unsigned int a = 0; a < 256; a += 0x1a)
		for (unsigned int b = 0; b < 8; b += 2) {
			unsigned int e = (a + b) % (sizeof(ends) / sizeof(ends[0]));
			char name[32];

			setup((uint8_t)a, (uint8_t)(b | 1 | (e & 1 ? SETUP_PREFETCH : 0)));
			add(ends[e], sizeof(ends[e]));
			snprintf(name, sizeof(name), "state-%02x-%x", a, b);
			seed_put("engine", name);
		}
}

int main(int argc, char **argv)
{
	NEED(argc == 2);
	top = argv[1];
	wire_captures();
	wire_built();
	cm_seeds();
	for (size_t i = 0; i < PCAP_DATA_FILES; i++) {
		engine_capture(pcap_data_all[i], true, 0);
		if (strncmp(pcap_data_all[i], "u", 1)) /* UC and UD have no numbers for us */
			engine_capture(pcap_data_all[i], false,
				       i & 1 ? 2 << 3 : SETUP_SINGLE | 2 << 3);
	}
	for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		for (int target = 0; target < 2; target++)
			engine_world(&plays[i], target, i & 1);
	engine_states();
	peer_seeds();
	printf("%u seeds\n", written);
	return 0;
}

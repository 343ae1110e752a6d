// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine, fed from a file: a rule wants all frames, none goes out, and the rule's peer never
 * comes up, so that lanes are watched and never held. The capture's timestamps are the clock.
 *
 * A capture does not tell which port a frame arrived at: of each pair of hosts, the first one that
 * sends counts as the near one.
 */
#include "daemon/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "cli/render.h"
#include "control/view.h"
#include "port/pcap_port.h"
#include "wire/frame.h"

#define REPLAY_POOL  (16u << 20)
#define REPLAY_CONNS 65536u

/* Two hosts, as the first frame between them named them. */
struct host_pair {
	struct {
		struct ip_addr near, far;
	} key;
	UT_hash_handle hh;
};

struct replay {
	struct engine *engine;
	struct rule rule;
	struct host_pair *pairs;
	uint64_t now, frames, roce, cut;
	bool no_memory;
	uint8_t frame[FRAME_MAX + 64]; /* with Ethernet's padding */
};

static int drop_frame(void *ctx, enum engine_port port, const uint8_t *data, uint32_t len,
		      uint32_t seal)
{
	(void)ctx, (void)port, (void)data, (void)len, (void)seal;
	return 0;
}

static void drop_report(void *ctx, unsigned int peer, const struct report *r)
{
	(void)ctx, (void)peer, (void)r;
}

static void drop_event(void *ctx, const struct engine_event *ev)
{
	(void)ctx, (void)ev;
}

/* The engine starts at the time of the first frame, so that its clock does not jump. */
static bool start_engine(struct replay *r)
{
	const struct engine_config cfg = {.pool_bytes = REPLAY_POOL,
					  .max_conns = REPLAY_CONNS,
					  .idle_ns = UINT64_MAX / 2,
					  .seed = 1};
	const struct engine_sink sink = {
		.ctx = r, .tx = drop_frame, .report = drop_report, .event = drop_event};

	r->rule = (struct rule){.name = "replay",
				.nnear = 1,
				.nfar = 1,
				.vlan = RULE_ANY_VLAN,
				.peer = 0,
				.policy = POLICY_OFF,
				.learn = LEARN_CM | LEARN_ALONE};
	r->engine = engine_create(&cfg, &sink, r->now);
	if (r->engine)
		engine_rules(r->engine, &r->rule, 1, r->now);
	return r->engine;
}

static struct host_pair *find_pair(struct replay *r, const struct ip_addr *near,
				   const struct ip_addr *far)
{
	struct host_pair key, *p;

	memset(&key, 0, sizeof(key));
	key.key.near = *near;
	key.key.far = *far;
	HASH_FIND(hh, r->pairs, &key.key, sizeof(key.key), p);
	return p;
}

static enum engine_port port_of(struct replay *r, const struct frame *f)
{
	struct host_pair *p;

	if (find_pair(r, &f->src, &f->dst))
		return PORT_LAN;
	if (find_pair(r, &f->dst, &f->src))
		return PORT_WAN;
	p = calloc(1, sizeof(*p));
	if (!p) {
		r->no_memory = true;
		return PORT_LAN;
	}
	p->key.near = f->src;
	p->key.far = f->dst;
	HASH_ADD(hh, r->pairs, key, sizeof(p->key), p);
	return PORT_LAN;
}

static void on_frame(void *ctx, uint64_t ts_ns, const uint8_t *data, uint32_t caplen, uint32_t len)
{
	struct replay *r = ctx;
	enum frame_verdict v;
	struct frame f;

	r->frames++;
	/* Captures of several interfaces may step back a little; the engine's clock may not. */
	if (ts_ns > r->now)
		r->now = ts_ns;
	if (!r->engine && !start_engine(r))
		r->no_memory = true;
	if (r->no_memory)
		return;
	r->cut += caplen < len;
	v = frame_parse(data, caplen, &f);
	if (v != FRAME_OK && v != FRAME_UNKNOWN_OPCODE)
		return;
	r->roce++;
	if (caplen > sizeof(r->frame))
		return;
	memcpy(r->frame, data, caplen);
	engine_rx(r->engine, port_of(r, &f), r->frame, caplen, r->now);
	engine_tick(r->engine, r->now);
}

static void free_pairs(struct replay *r)
{
	struct host_pair *p, *next;

	HASH_ITER(hh, r->pairs, p, next)
	{
		/* HASH_ITER has read the next one: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		HASH_DEL(r->pairs, p);
		free(p);
	}
}

static const struct column columns[] = {
	{"lan-ip", "LAN-IP", COL_TEXT, COL_TABLE},
	{"lqpn", "LQPN", COL_HEX, COL_TABLE},
	{"wan-ip", "WAN-IP", COL_TEXT, COL_TABLE},
	{"rqpn", "RQPN", COL_HEX, COL_TABLE},
	{"vlan", "VLAN", COL_NUMBER, COL_PRESENT},
	{"learned-by", "LEARNED-BY", COL_TEXT, COL_TABLE},
	{"state", "STATE", COL_TEXT, COL_TABLE},
	{"path-mtu", "PATH-MTU", COL_NUMBER, COL_TABLE},
	{"requests", "REQUESTS", COL_NUMBER, COL_TABLE},
	{"note", "NOTE", COL_TEXT, COL_PRESENT},
	{NULL, NULL, 0, 0},
};
static const struct object replay_object = {"qp", "", columns, false, NULL, false};

/* Remove members that have a meaning only in a running appliance. */
static void strip(json_t *o)
{
	bool paired = json_is_integer(json_object_get(o, "lqpn")) &&
		      json_is_integer(json_object_get(o, "rqpn"));

	if (paired)
		json_object_del(o, "note");
	json_object_del(o, "rule");
	json_object_del(o, "peer");
	json_object_del(o, "policy");
}

static int write_table(struct replay *r, bool json, FILE *f)
{
	struct view_source src = {.shards = shards_over(r->engine), .rules = &r->rule, .nrules = 1};
	struct render *out = render_begin(&replay_object, json ? RENDER_JSON : RENDER_TABLE, f);
	struct view_cursor cur = {0};
	json_t *o;

	if (!out) {
		shards_destroy(src.shards);
		return -ENOMEM;
	}
	while (src.shards && view_qp(&src, &cur, r->now, &o) == VIEW_OBJECT) {
		strip(o);
		render_add(out, o);
		json_decref(o);
	}
	shards_destroy(src.shards);
	return render_end(out) ? -EIO : 0;
}

int replay_run(const char *path, bool json, FILE *f, FILE *note, char *err, size_t errlen)
{
	struct replay r = {0};
	int rc = pcap_port_replay(path, on_frame, &r, err, errlen);

	if (!rc && r.no_memory) {
		rc = -ENOMEM;
		snprintf(err, errlen, "not enough memory to replay %s", path);
	}
	if (!rc) {
		rc = write_table(&r, json, f);
		if (rc)
			snprintf(err, errlen, "the table cannot be written: %s", strerror(-rc));
	}
	if (!rc) {
		fprintf(note, "%llu frames, %llu of them RoCEv2", (unsigned long long)r.frames,
			(unsigned long long)r.roce);
		if (r.cut)
			fprintf(note, ", %llu cut short: capture whole frames (tcpdump -s 0)",
				(unsigned long long)r.cut);
		fputc('\n', note);
	}
	engine_destroy(r.engine);
	free_pairs(&r);
	return rc;
}

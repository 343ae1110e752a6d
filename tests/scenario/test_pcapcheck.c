/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The judge of captures, judged: worlds of many kinds are captured at the four places where a real run would
 * be, and must be found right. Then one fault is planted into the captures of a right world, and must be found,
 * by the rule that it breaks.
 */
#include "tests/scenario/scenario.h"

#include <dirent.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lab/check/check.h"
#include "wire/icrc.h"
#include "wire/psn.h"

/* A loop without end must end the run, not hang it. */
#define WATCHDOG_S 240

static const char *const place_names[PLACES] = {"lan-a", "wan-a", "wan-b", "lan-b"};

struct shot {
	uint64_t t;
	uint32_t len;
	uint8_t *data;
};

struct film {
	struct shot *shot;
	uint32_t n, cap;
};

struct recorded {
	struct film film[PLACES];
};

/* ---- recording ---- */

static void insert(struct film *f, uint32_t at, uint64_t t, const uint8_t *data, uint32_t len)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 1024;
		f->shot = realloc(f->shot, f->cap * sizeof(*f->shot));
	}
	memmove(&f->shot[at + 1], &f->shot[at], (f->n - at) * sizeof(*f->shot));
	f->shot[at] = (struct shot){.t = t, .len = len, .data = malloc(len)};
	memcpy(f->shot[at].data, data, len);
	f->n++;
}

static void cut(struct film *f, uint32_t at)
{
	free(f->shot[at].data);
	f->n--;
	memmove(&f->shot[at], &f->shot[at + 1], (f->n - at) * sizeof(*f->shot));
}

static void record(struct world *w, int place, const uint8_t *data, uint32_t len)
{
	struct film *f = &((struct recorded *)w->user)->film[place];

	insert(f, f->n, w->now, data, len);
}

static int lan_of(int side)
{
	return side ? PLACE_LAN_B : PLACE_LAN_A;
}

static int wan_of(int side)
{
	return side ? PLACE_WAN_B : PLACE_WAN_A;
}

/* LANs are captured at the host's end, the WAN at either appliance's. */
static void on_enter(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	if (link < 2)
		record(w, lan_of(link), data, len);
	else if (link >= 4)
		record(w, wan_of(link & 1), data, len);
}

static bool on_leave(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	if (link == WORLD_LAN_OUT(0) || link == WORLD_LAN_OUT(1))
		record(w, lan_of(link & 1), data, len);
	else if (link >= 4)
		record(w, wan_of(!(link & 1)), data, len);
	return true;
}

static void film_free(struct recorded *r)
{
	for (int p = 0; p < PLACES; p++) {
		for (uint32_t i = 0; i < r->film[p].n; i++)
			free(r->film[p].shot[i].data);
		free(r->film[p].shot);
	}
	memset(r, 0, sizeof(*r));
}

/* ---- files ---- */

static char dir[] = "/tmp/pcapcheck.XXXXXX";
static char path[PLACES][64];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	for (int p = 0; p < PLACES; p++)
		snprintf(path[p], sizeof(path[p]), "%s/%s.pcap", dir, place_names[p]);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	for (int p = 0; p < PLACES && !getenv("KEEP"); p++)
		unlink(path[p]);
	return getenv("KEEP") ? 0 : rmdir(dir);
}

static void write_film(const struct film *f, const char *to)
{
	pcap_t *p = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, 65535, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *d = pcap_dump_open(p, to);

	assert_non_null(d);
	for (uint32_t i = 0; i < f->n; i++) {
		struct pcap_pkthdr h = {.caplen = f->shot[i].len, .len = f->shot[i].len};

		h.ts.tv_sec = (time_t)(f->shot[i].t / SEC);
		h.ts.tv_usec = (suseconds_t)(f->shot[i].t % SEC);
		pcap_dump((u_char *)d, &h, f->shot[i].data);
	}
	pcap_dump_close(d);
	pcap_close(p);
}

static struct check_result judge(struct recorded *r, struct check_config *c, FILE *out, enum check_status want)
{
	struct check_result res;
	enum check_status got;

	for (int p = 0; p < PLACES; p++)
		if (c->file[p])
			write_film(&r->film[p], path[p]);
	got = check_run(c, out, &res);
	assert_int_equal(got, want);
	return res;
}

static struct check_config all_files(void)
{
	struct check_config c;

	check_defaults(&c);
	for (int p = 0; p < PLACES; p++)
		c.file[p] = path[p];
	/* LANs of microseconds */
	c.lan_ns = 2 * MS;
	return c;
}

/* ---- worlds ---- */

struct kind {
	const char *name;
	uint32_t ops;
	uint32_t qps, mtu, max, messages;
	double loss, reorder, dup, corrupt, lan_loss, rnr;
	enum ack_policy policy;
	uint32_t psn;
	bool both_ways, single, permissive, no_custody, bare;
	int side; /* whose requests, unless both_ways */
	uint64_t pool;
};

static const struct kind kinds[] = {
	{.name = "write", .ops = 1u << RC_WRITE},
	{.name = "send of odd sizes", .ops = 1u << RC_SEND | 1u << RC_SEND_IMM, .max = 5001},
	{.name = "all kinds, several queue pairs both ways", .ops = OPS_ALL, .qps = 5, .both_ways = true},
	{.name = "reads", .ops = 1u << RC_READ | 1u << RC_WRITE},
	{.name = "reads and loss", .ops = 1u << RC_READ | 1u << RC_WRITE, .loss = 0.01, .permissive = true},
	{.name = "atomics", .ops = 1u << RC_FETCH_ADD | 1u << RC_CMP_SWAP | 1u << RC_SEND},
	{.name = "PSN wrap", .ops = OPS_ALL, .psn = 0xffff00},
	{.name = "loss", .ops = OPS_WRITE_SEND, .loss = 0.02, .both_ways = true},
	{.name = "loss, all kinds", .ops = OPS_ALL, .loss = 0.01, .permissive = true, .qps = 3},
	{.name = "disorder and duplicates", .ops = OPS_ALL, .reorder = 0.02, .dup = 0.02, .permissive = true},
	{.name = "damage", .ops = OPS_WRITE_SEND, .corrupt = 0.01, .qps = 2},
	{.name = "RNR", .ops = OPS_WRITE_SEND, .rnr = 0.02},
	{.name = "loss on the LANs", .ops = OPS_ALL, .lan_loss = 0.002, .permissive = true},
	{.name = "all of it", .ops = OPS_ALL, .loss = 0.01, .reorder = 0.01, .dup = 0.01, .lan_loss = 0.002,
	 .rnr = 0.01, .permissive = true, .both_ways = true, .qps = 4},
	{.name = "a small pool", .ops = OPS_WRITE_SEND, .pool = 4 << 20, .qps = 8, .permissive = true},
	{.name = "policy honest", .ops = OPS_ALL, .policy = POLICY_HONEST, .loss = 0.002, .permissive = true},
	{.name = "policy off", .ops = OPS_ALL, .policy = POLICY_OFF, .loss = 0.002, .permissive = true},
	{.name = "single mode", .ops = OPS_ALL, .single = true, .permissive = true},
	{.name = "single mode, loss", .ops = OPS_WRITE_SEND, .single = true, .loss = 0.002, .both_ways = true,
	 .permissive = true},
	{.name = "single mode, honest", .ops = OPS_WRITE_SEND, .single = true, .policy = POLICY_HONEST,
	 .no_custody = true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void run_world(const struct kind *k, uint64_t seed, struct recorded *r)
{
	struct world_config c;
	struct world *w;

	memset(r, 0, sizeof(*r));
	world_defaults(&c);
	c.seed = seed;
	c.wan.delay_ns = 3 * MS;
	c.wan.loss = k->loss;
	c.wan.reorder = k->reorder;
	c.wan.reorder_ns = 1 * MS;
	c.wan.dup = k->dup;
	c.wan.corrupt = k->corrupt;
	c.lan.loss = k->lan_loss;
	c.policy = k->policy;
	c.single = k->single;
	c.appliance[0] = !k->bare;
	c.appliance[1] = !k->bare && !k->single;
	if (k->pool)
		c.engine.pool_bytes = k->pool;
	w = world_create(&c);
	alarm(WATCHDOG_S);
	w->user = r;
	w->tap = on_enter;
	w->filter = on_leave;
	for (uint32_t i = 0; i < (k->qps ? k->qps : 1); i++) {
		struct rc_qp_config qc;
		struct world_qp *q;
		struct work work = {.ops = k->ops,
				    .max = k->max ? k->max : 12000,
				    .left = (k->messages ? k->messages : 400) / (k->qps ? k->qps : 1),
				    .outstanding = 8};

		scenario_qp(&qc, i, k->mtu ? k->mtu : 1024, k->permissive ? RC_PERMISSIVE : RC_STRICT);
		if (k->psn)
			qc.sq_psn = k->psn + i;
		qc.rnr_p = k->rnr;
		q = world_connect(w, &qc, k->permissive ? RC_PERMISSIVE : RC_STRICT);
		for (int side = 0; side < 2; side++)
			if (k->both_ways || side == k->side)
				world_work(q, side, &work);
	}
	scenario_finish(w, 600 * SEC);
	/* what is still on its way arrives */
	world_run(w, w->now + 100 * MS);
	world_destroy(w);
	alarm(0);
}

static void test_right_worlds(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < KINDS; i++) {
		const struct kind *k = &kinds[i];
		struct check_config c = all_files();
		struct check_result res;
		struct recorded r;

		for (uint64_t seed = 1; seed <= 3; seed++) {
			if (getenv("V"))
				fprintf(stderr, "# %s, seed %d\n", k->name, (int)seed);
			run_world(k, seed, &r);
			c.damage = k->corrupt > 0;
			c.single = k->single ? 0 : -1;
			c.lan_loss = k->lan_loss > 0;
			/* an acceptor passes what its opener resends needlessly */
			c.pass_repeats = k->loss > 0 || k->reorder > 0 || k->dup > 0 || k->corrupt > 0;
			res = judge(&r, &c, stderr, CHECK_RIGHT);
			assert_int_equal(res.lanes, (k->qps ? k->qps : 1) * (1 + k->both_ways));
			if (!k->no_custody)
				assert_true(res.made > 20);
			film_free(&r);
		}
	}
}

/* ---- plants ---- */

static struct frame view(const struct shot *x)
{
	struct frame f;

	assert_int_equal(frame_parse(x->data, x->len, &f), FRAME_OK);
	return f;
}

enum what {
	DATA,	 /* a SEND or WRITE */
	MIDDLE,	 /* of a WRITE */
	READ,	 /* a READ request */
	ACK,
	ANSWER, /* the middle of a READ's answer */
};

static bool is(const struct shot *x, enum what what)
{
	struct frame f = view(x);

	switch (what) {
	case DATA:
		return (f.op->flags & OPF_REQUEST) && !(f.op->flags & OPF_ANSWERED) && f.payload_len > 8;
	case MIDDLE:
		return f.opcode == OP_WRITE_MIDDLE;
	case READ:
		return f.opcode == OP_READ_REQUEST;
	case ACK:
		return f.opcode == OP_ACK && aeth_is_ack(frame_aeth_syndrome(&f));
	default:
		return f.opcode == OP_READ_RESPONSE_MIDDLE;
	}
}

/* The first such frame from @from on. */
static uint32_t find(const struct film *f, uint32_t from, enum what what)
{
	for (; from < f->n; from++)
		if (is(&f->shot[from], what))
			return from;
	fail_msg("no such frame");
	return 0;
}

static uint32_t find_psn(const struct film *f, uint32_t psn, bool request)
{
	for (uint32_t i = 0; i < f->n; i++) {
		struct frame v = view(&f->shot[i]);

		if (v.psn == psn && !!(v.op->flags & OPF_REQUEST) == request)
			return i;
	}
	fail_msg("no such PSN");
	return 0;
}

static uint32_t at_time(const struct film *f, uint64_t t)
{
	uint32_t i = f->n;

	while (i && f->shot[i - 1].t > t)
		i--;
	return i;
}

static struct shot *add(struct film *f, const struct shot *x, uint64_t t)
{
	struct shot copy = *x;
	uint32_t i = at_time(f, t);

	insert(f, i, t, copy.data, copy.len);
	return &f->shot[i];
}

#define KEEP_IT 0xffffffffu

/* Other numbers, and a right ICRC. */
static void renumber(struct shot *x, uint32_t psn, uint32_t msn, uint32_t syndrome)
{
	struct frame f = view(x);

	if (psn != KEEP_IT)
		put_be24(x->data + f.bth + 9, psn & PSN_MASK);
	if (msn != KEEP_IT)
		put_be24(x->data + f.aeth + 1, msn & PSN_MASK);
	if (syndrome != KEEP_IT)
		x->data[f.aeth] = (uint8_t)syndrome;
	f = view(x);
	icrc_fill(x->data, &f);
}

static void alter(struct shot *x)
{
	struct frame f = view(x);

	x->data[f.payload + 3] ^= 0x10;
	icrc_fill(x->data, &f);
}

/*
 * The four films from the requester's side on. @mid: an index in the second half of the near one.
 */
struct scene {
	struct film *near, *near_wan, *far_wan, *far;
	uint32_t near_mid, far_mid;
};

static void an_early_ack(struct scene *s)
{
	uint32_t i = find(s->near, s->near_mid, ACK), k;
	struct shot x = s->near->shot[i];

	k = find_psn(s->near, view(&x).psn, true);
	insert(s->near, k, s->near->shot[k].t, x.data, x.len);
	cut(s->near, i + 1);
}

static void an_ack_past_a_read(struct scene *s)
{
	uint32_t r = find(s->near, s->near_mid, READ), d = find(s->near, r, DATA), a;
	struct shot *x = &s->near->shot[find(s->near, s->near_mid, ACK)];

	a = add(s->near, x, s->near->shot[d].t) - s->near->shot;
	renumber(&s->near->shot[a], view(&s->near->shot[d]).psn, KEEP_IT, KEEP_IT);
}

static void an_ack_of_a_read(struct scene *s)
{
	uint32_t r = find(s->near, s->near_mid, READ);
	struct shot *x = &s->near->shot[find(s->near, s->near_mid, ACK)];

	x = add(s->near, x, s->near->shot[r].t);
	renumber(x, view(&s->near->shot[r]).psn, KEEP_IT, KEEP_IT);
}

static void a_true_ack_leaks(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, ACK)];

	add(s->far_wan, &x, x.t + 5000);
	add(s->near_wan, &x, x.t + 3 * MS);
	add(s->near, &x, x.t + 3 * MS + 5000);
}

static void an_ack_out_of_nowhere(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, ACK)];

	add(s->near, &x, x.t + 3 * MS);
}

static void a_nak_leaks(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, ACK)];

	renumber(add(s->near_wan, &x, x.t + 3 * MS), KEEP_IT, KEEP_IT, AETH_NAK_SEQ);
	renumber(add(s->near, &x, x.t + 3 * MS + 5000), KEEP_IT, KEEP_IT, AETH_NAK_SEQ);
}

static void a_nak_of_its_own(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, ACK)];

	renumber(add(s->near, &x, x.t + 3 * MS), KEEP_IT, KEEP_IT, AETH_NAK_SEQ);
}

static void an_rnr_nak_leaks(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, ACK)];

	renumber(add(s->near_wan, &x, x.t + 3 * MS), KEEP_IT, KEEP_IT, AETH_RNR_NAK | 5);
	renumber(add(s->near, &x, x.t + 3 * MS + 5000), KEEP_IT, KEEP_IT, AETH_RNR_NAK | 5);
}

static void a_request_twice(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, DATA)];

	add(s->far, &x, x.t + 1);
}

static void a_request_after_its_ack(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, DATA)];

	add(s->far, &x, x.t + 20 * MS);
}

static void a_read_after_its_answer(struct scene *s)
{
	struct shot x = s->far->shot[find(s->far, s->far_mid, READ)];

	add(s->far, &x, x.t + 20 * MS);
}

static void damage_near(struct scene *s)
{
	s->near->shot[find(s->near, s->near_mid, DATA)].data[80] ^= 1;
}

static void damage_wan(struct scene *s)
{
	s->far_wan->shot[find(s->far_wan, s->far_wan->n / 2, DATA)].data[80] ^= 1;
}

static void damage_far(struct scene *s)
{
	s->far->shot[find(s->far, s->far_mid, ACK)].data[50] ^= 1;
}

static void an_answer_is_missing(struct scene *s)
{
	cut(s->near, find(s->near, s->near_mid, ANSWER));
}

static void an_answer_is_short(struct scene *s)
{
	struct shot *x = &s->near->shot[find(s->near, s->near_mid, ANSWER)];
	struct frame f = view(x);

	x->data[f.bth] = OP_READ_RESPONSE_ONLY;
	x->data[f.bth + 1] = (uint8_t)(x->data[f.bth + 1] & ~0x30);
	f = view(x);
	icrc_fill(x->data, &f);
}

static void a_request_altered(struct scene *s)
{
	alter(&s->far->shot[find(s->far, s->far_mid, DATA)]);
}

static void an_answer_altered(struct scene *s)
{
	alter(&s->near->shot[find(s->near, s->near_mid, ANSWER)]);
}

static void a_request_invented(struct scene *s)
{
	struct shot *x = NULL;
	uint32_t end = 0;

	for (uint32_t i = 0; i < s->far->n; i++) {
		struct frame f = view(&s->far->shot[i]);

		if (!(f.op->flags & OPF_REQUEST))
			continue;
		end = psn_add(f.psn, frame_span(&f, 1024));
		if (f.opcode == OP_WRITE_ONLY)
			x = &s->far->shot[i];
	}
	assert_non_null(x);
	x = add(s->far, x, s->far->shot[s->far->n - 1].t + MS);
	renumber(x, end, KEEP_IT, KEEP_IT);
}

static void an_msn_too_high(struct scene *s)
{
	struct shot *x = &s->near->shot[find(s->near, s->near_mid, ACK)];
	struct frame f = view(x);

	renumber(x, KEEP_IT, frame_aeth_msn(&f) + 3, KEEP_IT);
}

static void an_msn_too_low(struct scene *s)
{
	struct shot *x = &s->near->shot[find(s->near, s->near_mid, ACK)];
	struct frame f = view(x);

	renumber(x, KEEP_IT, frame_aeth_msn(&f) - 1, KEEP_IT);
}

static void a_request_is_missing(struct scene *s)
{
	cut(s->far, find(s->far, s->far_mid, MIDDLE));
}

static void the_rest_is_lost(struct scene *s)
{
	while (s->far->n > s->far_mid)
		cut(s->far, s->far->n - 1);
}

static void a_middle_for_a_last(struct scene *s)
{
	struct shot *x = &s->near->shot[find(s->near, s->near_mid, MIDDLE)];
	struct frame f = view(x);

	x->data[f.bth] = OP_WRITE_LAST;
	f = view(x);
	icrc_fill(x->data, &f);
}

static void a_psn_for_something_else(struct scene *s)
{
	uint32_t i = find(s->near, s->near_mid, DATA), k = find(s->near, i + 1, DATA);
	uint32_t psn = view(&s->near->shot[i]).psn;

	renumber(add(s->near, &s->near->shot[k], s->near->shot[k].t), psn, KEEP_IT, KEEP_IT);
}

static const struct plant {
	const char *name;
	void (*fn)(struct scene *s);
	enum check_rule rule;
	bool near_only; /* found without the other captures too */
	bool read_ahead; /* found even where PSNs need not agree */
} plants[] = {
	{"a pseudo-ACK before its data", an_early_ack, RULE_EARLY, true, true},
	{"a pseudo-ACK past an unanswered READ", an_ack_past_a_read, RULE_EARLY, false, true},
	{"a pseudo-ACK with the PSN of a READ", an_ack_of_a_read, RULE_EARLY, false, true},
	{"a true ACK leaks", a_true_ack_leaks, RULE_LEAK, false, true},
	{"an old ACK from nowhere", an_ack_out_of_nowhere, RULE_LEAK, false, true},
	{"a sequence NAK leaks", a_nak_leaks, RULE_LEAK, false, true},
	{"a sequence NAK below the front", a_nak_of_its_own, RULE_LEAK, false, true},
	{"an RNR NAK leaks", an_rnr_nak_leaks, RULE_LEAK, false, true},
	{"a request doubled at once", a_request_twice, RULE_DOUBLE, false, true},
	{"a request again after its ACK", a_request_after_its_ack, RULE_DOUBLE, false, true},
	{"a READ again after its answer", a_read_after_its_answer, RULE_DOUBLE, false, true},
	{"a damaged request on the near LAN", damage_near, RULE_ICRC, true, true},
	{"a damaged request on the WAN", damage_wan, RULE_ICRC, false, true},
	{"a damaged ACK on the far LAN", damage_far, RULE_ICRC, false, true},
	{"a missing READ response", an_answer_is_missing, RULE_READ, true, true},
	{"a READ response out of place", an_answer_is_short, RULE_READ, true, true},
	{"a request altered on its way", a_request_altered, RULE_BYTES, false, true},
	{"an answer altered on its way", an_answer_altered, RULE_BYTES, false, true},
	{"a request that nobody sent", a_request_invented, RULE_BYTES, false, true},
	{"an MSN too high", an_msn_too_high, RULE_MSN, true, true},
	{"an MSN too low", an_msn_too_low, RULE_MSN, true, true},
	{"a request that never arrives", a_request_is_missing, RULE_PSN, false, true},
	{"all is lost from somewhere on", the_rest_is_lost, RULE_LOST, false, true},
	{"a message with a LAST in its middle", a_middle_for_a_last, RULE_SEQUENCE, true, true},
	{"a PSN used twice", a_psn_for_something_else, RULE_PSN, true, true},
};
#define PLANTS (sizeof(plants) / sizeof(plants[0]))

/* What is found is of no interest but for its rule. */
static FILE *nowhere(void)
{
	static FILE *f;

	if (!f)
		f = getenv("V") ? stderr : fopen("/dev/null", "we");
	return f;
}

static const struct kind for_plants = {.ops = 1u << RC_WRITE | 1u << RC_READ | 1u << RC_SEND};

static struct scene scene_of(struct recorded *r, int side)
{
	struct scene s = {.near = &r->film[lan_of(side)],
			  .near_wan = &r->film[wan_of(side)],
			  .far_wan = &r->film[wan_of(!side)],
			  .far = &r->film[lan_of(!side)]};

	s.near_mid = s.near->n * 6 / 10;
	s.far_mid = s.far->n * 6 / 10;
	return s;
}

static void plant(const struct plant *p, int side, bool read_ahead, bool near_only)
{
	struct kind k = for_plants;
	struct check_config c = all_files();
	struct check_result res;
	struct recorded r;
	struct scene s;

	k.side = side;
	c.read_ahead = read_ahead;
	run_world(&k, 7, &r);
	s = scene_of(&r, side);
	if (near_only) {
		memset(c.file, 0, sizeof(c.file));
		c.file[lan_of(side)] = path[lan_of(side)];
		assert_int_equal(ip_addr_parse("10.1.0.1", &c.local[c.nlocal++]), 0);
	}
	judge(&r, &c, stderr, CHECK_RIGHT);
	p->fn(&s);
	res = judge(&r, &c, nowhere(), CHECK_VIOLATIONS);
	if (!res.rule[p->rule])
		fail_msg("%s (requests from side %d%s): not found", p->name, side, read_ahead ? ", read-ahead" : "");
	film_free(&r);
}

static void test_plants(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PLANTS; i++)
		for (int side = 0; side < 2; side++) {
			if (getenv("V"))
				fprintf(stderr, "# %s, side %d\n", plants[i].name, side);
			plant(&plants[i], side, false, false);
			if (plants[i].near_only)
				plant(&plants[i], side, false, true);
			if (plants[i].read_ahead)
				plant(&plants[i], side, true, false);
		}
}

/*
 * What read-ahead makes of the far side: a READ that the host did not ask for, with its answer, and other numbers
 * for all that comes after it.
 */
static void read_ahead_shift(struct scene *s)
{
	uint32_t r = find(s->far, s->far_mid, READ), at = r, span, from;
	struct frame first = view(&s->far->shot[r]);
	uint64_t t;

	span = frame_span(&first, 1024);
	from = psn_add(first.psn, span);
	/* before the first request behind that READ; the answer is before it then, or it would be refused here */
	do
		at++;
	while (!(view(&s->far->shot[at]).op->flags & OPF_REQUEST));
	t = s->far->shot[at].t;
	assert_int_equal(view(&s->far->shot[at]).psn, from);
	for (uint32_t i = at; i < s->far->n; i++) {
		struct frame f = view(&s->far->shot[i]);

		if (!psn_before(f.psn, from))
			renumber(&s->far->shot[i], psn_add(f.psn, span),
				 f.aeth ? psn_add(frame_aeth_msn(&f), 1) : KEEP_IT, KEEP_IT);
	}
	for (uint32_t i = r, n = at; i < n; i++) {
		struct frame f = view(&s->far->shot[i]);

		if (i != r && !psn_in(f.psn, first.psn, from))
			continue;
		insert(s->far, at, t, s->far->shot[i].data, s->far->shot[i].len);
		renumber(&s->far->shot[at], psn_add(f.psn, span),
			 f.aeth ? psn_add(frame_aeth_msn(&f), 1) : KEEP_IT, KEEP_IT);
		at++;
	}
}

static void test_read_ahead(void **state)
{
	struct check_config c = all_files();
	struct recorded r;
	struct scene s;

	(void)state;
	run_world(&for_plants, 7, &r);
	s = scene_of(&r, 0);
	read_ahead_shift(&s);
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_BYTES] > 0);
	c.read_ahead = true;
	judge(&r, &c, stderr, CHECK_RIGHT);
	/* and behind the shift a fault is a fault */
	alter(&s.far->shot[find(s.far, s.far->n * 9 / 10, DATA)]);
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_BYTES] > 0);
	film_free(&r);
}

/* Captures by qemu of guests that were started at another time: their clocks say nothing to the kernel's. */
static void set_clocks(struct recorded *r, int which, int64_t sign)
{
	static const int64_t ahead[2] = {37 * (int64_t)SEC, -500 * (int64_t)MS};

	for (int side = 0; side < 2; side++) {
		struct film *f = &r->film[lan_of(side)];

		for (uint32_t n = 0; n < f->n; n++)
			f->shot[n].t += (uint64_t)(sign * ahead[side ^ which]);
	}
}

static void test_other_clocks(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PLANTS; i++) {
		struct check_config c = all_files();
		struct recorded r;
		struct scene s;

		assert_int_equal(ip_addr_parse("10.1.0.1", &c.local[c.nlocal++]), 0);
		run_world(&for_plants, 7, &r);
		s = scene_of(&r, 0);
		set_clocks(&r, i & 1, 1);
		judge(&r, &c, stderr, CHECK_RIGHT);
		set_clocks(&r, i & 1, -1);
		plants[i].fn(&s); /* by time */
		set_clocks(&r, i & 1, 1);
		if (!judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[plants[i].rule])
			fail_msg("%s (other clocks): not found", plants[i].name);
		film_free(&r);
	}
}

/* ---- hosts by themselves ---- */

static struct check_result judge_bare(struct recorded *r, int place, enum check_status want)
{
	struct check_config c;
	struct check_result res;

	check_defaults(&c);
	c.bare[c.nbare++] = path[place];
	ip_addr_parse(place == PLACE_LAN_A ? "10.1.0.1" : "10.2.0.1", &c.local[c.nlocal++]);
	write_film(&r->film[place], path[place]);
	assert_int_equal(check_run(&c, want == CHECK_RIGHT ? stderr : nowhere(), &res), want);
	return res;
}

static void test_bare(void **state)
{
	struct kind lossy = {.ops = OPS_ALL, .loss = 0.01, .both_ways = true, .permissive = true, .qps = 3, .bare = true};
	struct kind clean = for_plants;
	struct recorded r;

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		run_world(&lossy, seed, &r);
		assert_int_equal(judge_bare(&r, PLACE_LAN_A, CHECK_RIGHT).lanes, 6);
		assert_int_equal(judge_bare(&r, PLACE_LAN_B, CHECK_RIGHT).lanes, 6);
		film_free(&r);
	}
	clean.bare = true;
	for (unsigned int i = 0; i < PLANTS; i++) {
		struct scene s;

		if (!plants[i].near_only)
			continue;
		run_world(&clean, 7, &r);
		judge_bare(&r, PLACE_LAN_A, CHECK_RIGHT);
		s = scene_of(&r, 0);
		plants[i].fn(&s);
		if (!judge_bare(&r, PLACE_LAN_A, CHECK_VIOLATIONS).rule[plants[i].rule])
			fail_msg("%s (bare): not found", plants[i].name);
		film_free(&r);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right_worlds),
		cmocka_unit_test(test_plants),
		cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_other_clocks),
		cmocka_unit_test(test_bare),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The judge of captures, judged: worlds of many kinds are captured at the four places where a real
 * run would be (film.c), and must be found right. Then one fault is planted into the captures of a
 * right world (plant.c), and must be found, by the rule that it breaks.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/scenario/plant.h"
#include "wire/psn.h"

static const char *const place_names[PLACES] = {"lan-a", "wan-a", "wan-b", "lan-b"};

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

static struct check_result judge(struct recorded *r, struct check_config *c, FILE *out,
				 enum check_status want)
{
	struct check_result res;
	enum check_status got;

	for (int p = 0; p < PLACES; p++)
		if (c->file[p])
			film_write(&r->film[p], path[p]);
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

/* What is found is of no interest but for its rule. */
static FILE *nowhere(void)
{
	static FILE *f;

	if (!f)
		f = getenv("V") ? stderr : fopen("/dev/null", "we");
	return f;
}

/* ---- right worlds ---- */

static const struct film_kind kinds[] = {
	{.name = "write", .ops = 1u << RC_WRITE},
	{.name = "send of odd sizes", .ops = 1u << RC_SEND | 1u << RC_SEND_IMM, .max = 5001},
	{.name = "all kinds, several queue pairs both ways",
	 .ops = OPS_ALL,
	 .qps = 5,
	 .both_ways = true},
	{.name = "reads", .ops = 1u << RC_READ | 1u << RC_WRITE},
	{.name = "reads and loss",
	 .ops = 1u << RC_READ | 1u << RC_WRITE,
	 .loss = 0.01,
	 .permissive = true},
	{.name = "atomics", .ops = 1u << RC_FETCH_ADD | 1u << RC_CMP_SWAP | 1u << RC_SEND},
	{.name = "PSN wrap", .ops = OPS_ALL, .psn = 0xffff00},
	{.name = "loss", .ops = OPS_WRITE_SEND, .loss = 0.02, .both_ways = true},
	{.name = "loss, all kinds", .ops = OPS_ALL, .loss = 0.01, .permissive = true, .qps = 3},
	{.name = "disorder and duplicates",
	 .ops = OPS_ALL,
	 .reorder = 0.02,
	 .dup = 0.02,
	 .permissive = true},
	{.name = "damage", .ops = OPS_WRITE_SEND, .corrupt = 0.01, .qps = 2},
	{.name = "RNR", .ops = OPS_WRITE_SEND, .rnr = 0.02},
	{.name = "loss on the LANs", .ops = OPS_ALL, .lan_loss = 0.002, .permissive = true},
	{.name = "all of it",
	 .ops = OPS_ALL,
	 .loss = 0.01,
	 .reorder = 0.01,
	 .dup = 0.01,
	 .lan_loss = 0.002,
	 .rnr = 0.01,
	 .permissive = true,
	 .both_ways = true,
	 .qps = 4},
	{.name = "a small pool",
	 .ops = OPS_WRITE_SEND,
	 .pool = 4 << 20,
	 .qps = 8,
	 .permissive = true},
	{.name = "policy honest",
	 .ops = OPS_ALL,
	 .policy = POLICY_HONEST,
	 .loss = 0.002,
	 .permissive = true},
	{.name = "policy off",
	 .ops = OPS_ALL,
	 .policy = POLICY_OFF,
	 .loss = 0.002,
	 .permissive = true},
	{.name = "single mode", .ops = OPS_ALL, .single = true, .permissive = true},
	{.name = "single mode, loss",
	 .ops = OPS_WRITE_SEND,
	 .single = true,
	 .loss = 0.002,
	 .both_ways = true,
	 .permissive = true},
	{.name = "single mode, honest",
	 .ops = OPS_WRITE_SEND,
	 .single = true,
	 .policy = POLICY_HONEST,
	 .no_custody = true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void test_right_worlds(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < KINDS; i++) {
		const struct film_kind *k = &kinds[i];
		struct check_config c = all_files();
		struct check_result res;
		struct recorded r;
		uint64_t made = 0;

		for (uint64_t seed = 1; seed <= 3; seed++) {
			if (getenv("V"))
				fprintf(stderr, "# %s, seed %d\n", k->name, (int)seed);
			film_world(k, seed, &r);
			c.damage = k->corrupt > 0;
			c.single = k->single ? 0 : -1;
			c.lan_loss = k->lan_loss > 0;
			/* an acceptor passes what its opener resends needlessly */
			c.pass_repeats =
				k->loss > 0 || k->reorder > 0 || k->dup > 0 || k->corrupt > 0;
			res = judge(&r, &c, stderr, CHECK_RIGHT);
			assert_int_equal(res.lanes, (k->qps ? k->qps : 1) * (1 + k->both_ways));
			made += res.made;
			film_free(&r);
		}
		if (!k->no_custody)
			assert_true(made > 60);
	}
}

/* ---- plants ---- */

static const struct film_kind for_plants = {.ops = 1u << RC_WRITE | 1u << RC_READ | 1u << RC_SEND};

static void plant(const struct plant *p, int side, bool prefetch, bool near_only)
{
	struct film_kind k = for_plants;
	struct check_config c = all_files();
	struct check_result res;
	struct recorded r;
	struct scene s;

	k.side = side;
	c.prefetch = prefetch;
	film_world(&k, 7, &r);
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
		fail_msg("%s (requests from side %d%s): not found", p->name, side,
			 prefetch ? ", prefetch" : "");
	film_free(&r);
}

static void test_plants(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < nplants; i++)
		for (int side = 0; side < 2; side++) {
			if (getenv("V"))
				fprintf(stderr, "# %s, side %d\n", plants[i].name, side);
			plant(&plants[i], side, false, false);
			if (plants[i].near_only)
				plant(&plants[i], side, false, true);
			if (plants[i].prefetch)
				plant(&plants[i], side, true, false);
		}
}

/*
 * What prefetch makes of the far side: a READ that the host did not ask for, with its answer, and
 * other numbers for all that comes after it.
 */
static void read_ahead_shift(struct scene *s)
{
	uint32_t r = film_find(s->far, s->far_mid, READ), at = r, span, from;
	struct frame first = shot_view(&s->far->shot[r]);
	uint64_t t;

	span = frame_span(&first, 1024);
	from = psn_add(first.psn, span);
	/* before the first request behind that READ; the answer is before it then, or it would be
	 * refused here */
	do
		at++;
	while (!(shot_view(&s->far->shot[at]).op->flags & OPF_REQUEST));
	t = s->far->shot[at].t;
	assert_int_equal(shot_view(&s->far->shot[at]).psn, from);
	for (uint32_t i = at; i < s->far->n; i++) {
		struct frame f = shot_view(&s->far->shot[i]);

		if (!psn_before(f.psn, from))
			shot_renumber(&s->far->shot[i], psn_add(f.psn, span),
				      f.aeth ? psn_add(frame_aeth_msn(&f), 1) : KEEP_IT, KEEP_IT);
	}
	for (uint32_t i = r, n = at; i < n; i++) {
		struct frame f = shot_view(&s->far->shot[i]);

		if (i != r && !psn_in(f.psn, first.psn, from))
			continue;
		film_insert(s->far, at, t, s->far->shot[i].data, s->far->shot[i].len);
		shot_renumber(&s->far->shot[at], psn_add(f.psn, span),
			      f.aeth ? psn_add(frame_aeth_msn(&f), 1) : KEEP_IT, KEEP_IT);
		at++;
	}
}

static void test_prefetch(void **state)
{
	struct check_config c = all_files();
	struct recorded r;
	struct scene s;

	(void)state;
	film_world(&for_plants, 7, &r);
	s = scene_of(&r, 0);
	read_ahead_shift(&s);
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_BYTES] > 0);
	c.prefetch = true;
	judge(&r, &c, stderr, CHECK_RIGHT);
	/* and behind the shift a fault is a fault */
	shot_alter(&s.far->shot[film_find(s.far, s.far->n * 9 / 10, DATA)]);
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_BYTES] > 0);
	film_free(&r);
}

/*
 * A responder's answer may count what it has done since, and most answers to a pipeline of ATOMICs
 * may: that most of them say the same does not make it the number of their own message.
 */
static void test_answers_count_more(void **state)
{
	struct film_kind k = {.ops = 1u << RC_FETCH_ADD};
	struct check_config c = all_files();
	uint32_t asked = 0, answered = 0, more = 0;
	struct recorded r;
	struct scene s;

	(void)state;
	film_world(&k, 7, &r);
	s = scene_of(&r, 0);
	memset(c.file, 0, sizeof(c.file));
	c.file[lan_of(0)] = path[lan_of(0)];
	assert_int_equal(ip_addr_parse("10.1.0.1", &c.local[c.nlocal++]), 0);
	for (uint32_t i = 0; i < s.near->n; i++) {
		struct frame f = shot_view(&s.near->shot[i]);

		asked += f.opcode == OP_FETCH_ADD;
		if (f.opcode != OP_ATOMIC_ACK || ++answered <= 4 || asked == answered)
			continue;
		shot_renumber(&s.near->shot[i], KEEP_IT, psn_add(frame_aeth_msn(&f), 1), KEEP_IT);
		more++;
	}
	assert_true(more > answered / 2);
	judge(&r, &c, stderr, CHECK_RIGHT);
	film_free(&r);
}

/* What the far appliance has repeated by itself, it says; one more than it says is a violation as
 * ever. */
static void test_told_repeats(void **state)
{
	unsigned int tried = 0;

	(void)state;
	for (unsigned int i = 0; i < nplants; i++)
		for (int ahead = 0; ahead < 2; ahead++) {
			struct check_config c = all_files();
			struct recorded r;
			struct scene s;

			if (plants[i].rule != RULE_DOUBLE || plants[i].near_only ||
			    (ahead && !plants[i].prefetch))
				continue;
			c.prefetch = ahead;
			film_world(&for_plants, 7, &r);
			s = scene_of(&r, 0);
			plants[i].fn(&s);
			c.repeats = 1;
			judge(&r, &c, stderr, CHECK_RIGHT);
			plants[i].fn(&s);
			assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_DOUBLE] >
				    0);
			c.repeats = 2;
			judge(&r, &c, stderr, CHECK_RIGHT);
			film_free(&r);
			tried++;
		}
	assert_true(tried >= 4);
}

/* What came over the WAN twice, a moment apart, is twice on the far LAN: before the first is
 * acknowledged, and the responder has refused nothing. */
static void test_wan_repeats(void **state)
{
	struct check_config c = all_files();
	uint32_t lan, wan, psn;
	struct recorded r;
	struct scene s;
	struct shot *x;

	(void)state;
	film_world(&for_plants, 7, &r);
	s = scene_of(&r, 0);
	lan = film_find(s.far, s.far_mid, DATA);
	x = &s.far->shot[lan];
	psn = shot_view(x).psn;
	film_insert(s.far, lan + 1, x->t + 1000, x->data, x->len);
	for (wan = 0; shot_view(&s.far_wan->shot[wan]).psn != psn; wan++)
		assert_true(wan + 1 < s.far_wan->n);
	c.pass_repeats = true;
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_DOUBLE] > 0);
	x = &s.far_wan->shot[wan];
	film_insert(s.far_wan, wan + 1, x->t + 1000, x->data, x->len);
	judge(&r, &c, stderr, CHECK_RIGHT);
	c.pass_repeats = false;
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_DOUBLE] > 0);
	film_free(&r);
}

/* A host that stood still finds a request and its repeat side by side: when the one was sent and
 * when the other is not to be seen. */
static void test_stalls(void **state)
{
	struct check_config c = all_files();
	struct recorded r;
	struct shot *x;
	struct scene s;
	uint32_t i;

	(void)state;
	film_world(&for_plants, 7, &r);
	s = scene_of(&r, 0);
	i = film_find(s.far, s.far_mid, DATA);
	for (uint32_t n = i; n < s.far->n; n++)
		s.far->shot[n].t += 30 * MS;
	x = &s.far->shot[i];
	film_insert(s.far, i + 1, x->t + 1000, x->data, x->len);
	assert_true(judge(&r, &c, nowhere(), CHECK_VIOLATIONS).rule[RULE_DOUBLE] > 0);
	c.stalls = true;
	judge(&r, &c, stderr, CHECK_RIGHT);
	film_free(&r);
}

/* Captures by qemu of guests that were started at another time: their clocks say nothing to the
 * kernel's. */
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
	for (unsigned int i = 0; i < nplants; i++) {
		struct check_config c = all_files();
		struct recorded r;
		struct scene s;

		assert_int_equal(ip_addr_parse("10.1.0.1", &c.local[c.nlocal++]), 0);
		film_world(&for_plants, 7, &r);
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
	film_write(&r->film[place], path[place]);
	assert_int_equal(check_run(&c, want == CHECK_RIGHT ? stderr : nowhere(), &res), want);
	return res;
}

static void test_bare(void **state)
{
	struct film_kind lossy = {.ops = OPS_ALL,
				  .loss = 0.01,
				  .both_ways = true,
				  .permissive = true,
				  .qps = 3,
				  .bare = true};
	struct film_kind clean = for_plants;
	struct recorded r;

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		film_world(&lossy, seed, &r);
		assert_int_equal(judge_bare(&r, PLACE_LAN_A, CHECK_RIGHT).lanes, 6);
		assert_int_equal(judge_bare(&r, PLACE_LAN_B, CHECK_RIGHT).lanes, 6);
		film_free(&r);
	}
	clean.bare = true;
	for (unsigned int i = 0; i < nplants; i++) {
		struct scene s;

		if (!plants[i].near_only)
			continue;
		film_world(&clean, 7, &r);
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
		cmocka_unit_test(test_prefetch),
		cmocka_unit_test(test_told_repeats),
		cmocka_unit_test(test_answers_count_more),
		cmocka_unit_test(test_wan_repeats),
		cmocka_unit_test(test_stalls),
		cmocka_unit_test(test_other_clocks),
		cmocka_unit_test(test_bare),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

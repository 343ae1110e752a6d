// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The control socket: what is shown through it.
 */
#include <sys/stat.h>

#include "cli/object.h"
#include "tests/unit/control_client.h"

static void test_qp(void **state)
{
	(void)state;
	check_qps();
}

static void test_unpaired(void **state)
{
	json_t *all, *o;
	bool seen = false;
	size_t i;

	(void)state;
	control_data_halves(src.shards, 1);
	all = show("qp-show");
	assert_int_equal(json_array_size(all), 3);
	json_array_foreach (all, i, o) {
		if (!json_is_null(json_object_get(o, "lqpn")))
			continue;
		seen = true;
		assert_int_equal(number(o, "rqpn"), 0x1000);
		assert_string_equal(string(o, "learned-by"), "none");
		assert_string_equal(string(o, "note"), "looking for its partner: 0 matches");
	}
	assert_true(seen);
	json_decref(all);
}

/* ENG-14: what a lane is, marks and counts, is open to the operator. */
static void test_lane(void **state)
{
	json_t *all = show("lane-show"), *o;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(all), 4);
	json_array_foreach (all, i, o) {
		assert_string_equal(string(o, "direction"), i % 2 ? "in" : "out");
		assert_int_equal(number(o, "lqpn"), i < 2 ? 0x16 : 0x17);
		assert_true(number(o, "epsn") <= 0xffffff);
		assert_true(number(o, "requests") > 0);
	}
	json_decref(all);
}

static void test_rule(void **state)
{
	json_t *all = show("rule-show"), *o = json_array_get(all, 0);

	(void)state;
	assert_int_equal(json_array_size(all), 2);
	assert_string_equal(string(o, "name"), "storage");
	assert_string_equal(string(o, "lan"), "10.98.0.0/16");
	assert_string_equal(string(o, "vlan"), "any");
	assert_string_equal(string(o, "learn"), "cm, psn-alone");
	assert_int_equal(number(o, "connections"), 2);
	assert_int_equal(number(json_array_get(all, 1), "connections"), 0);
	json_decref(all);
}

struct shown {
	const char *key;
	long long value;
};

/* @o has these members, and the tool a column for each. */
static void assert_shown(const json_t *o, const struct shown *s, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		assert_int_equal(number(o, s[k].key), s[k].value);
		assert_non_null(column_find(object_find("lane"), s[k].key));
	}
}

/* Each number of READs ahead of storage commands under its own name. */
static void test_announced(void **state)
{
	const struct announce_info info = {
		.phase = "on",
		.mismatches = 1,
		.commands = 2,
		.bytes = 1ull << 40,
		.unused = 3,
		.late = 4,
		.absorbed = 5,
		.served = 6,
		.native = 7,
		.why = "for a reason",
		.parity = 8,
		.repaired = 9,
	};
	static const struct shown shown[] = {
		{"announce-mismatches", 1},    {"announce-commands", 2},
		{"announce-bytes", 1ll << 40}, {"announce-unused-bytes", 3},
		{"announce-late-bytes", 4},    {"announce-absorbed", 5},
		{"announce-served", 6},	       {"announce-native", 7},
		{"announce-parity", 8},	       {"announce-repaired", 9},
	};
	json_t *o = json_object();

	(void)state;
	view_put_announce(o, &info);
	assert_string_equal(json_string_value(json_object_get(o, "announce")), "on");
	assert_string_equal(json_string_value(json_object_get(o, "announce-reason")),
			    "for a reason");
	assert_int_equal(json_object_size(o), sizeof(shown) / sizeof(shown[0]) + 2);
	assert_shown(o, shown, sizeof(shown) / sizeof(shown[0]));
	json_decref(o);
}

/* ENG-19: whether a lane is sealed, why not, and which appliance its packets miss. */
static void test_sealed(void **state)
{
	const struct {
		struct lane_info lane;
		int peer;
		bool rule;
		const char *seal, *reason, *bypass;
	} cases[] = {
		{{.state = LANE_WATCH}, 0, true, NULL, NULL, NULL},
		{{.state = LANE_HELD}, PEER_NONE, true, NULL, NULL, NULL},
		{{.state = LANE_HELD, .sealed = true}, 0, true, "on", NULL, NULL},
		{{.state = LANE_HELD, .sealed = true}, 0, false, "on", NULL, NULL},
		{{.state = LANE_HELD}, 0, false, "off", "the rule has seal = off", NULL},
		{{.state = LANE_OPENING, .opener = true},
		 0,
		 true,
		 "off",
		 "the peer has not agreed yet",
		 NULL},
		{{.state = LANE_HELD}, 0, true, "off", "it began with seal = off", NULL},
		{{.state = LANE_HELD, .opener = true},
		 0,
		 true,
		 "off",
		 "it began with seal = off, or its peer must agree to it again",
		 NULL},
		{{.state = LANE_HELD, .sealed = true, .bypassed = MISS_US},
		 0,
		 true,
		 "on",
		 NULL,
		 "past-this-appliance"},
		{{.state = LANE_HELD, .sealed = true, .bypassed = MISS_FROM},
		 0,
		 true,
		 "on",
		 NULL,
		 "comes-past-the-peer"},
		{{.state = LANE_HELD, .sealed = true, .bypassed = MISS_TO},
		 0,
		 true,
		 "on",
		 NULL,
		 "does-not-reach-the-peer"},
		{{.state = LANE_HELD, .sealed = true, .bypassed = MISS_PAST},
		 0,
		 true,
		 "on",
		 NULL,
		 "comes-past-this-appliance"},
	};
	static const char *const keys[] = {"seal", "seal-reason", "path-bypass"};
	struct rule rule = {.peer = 0};
	const struct view_source of = {.rules = &rule, .nrules = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *words[] = {cases[i].seal, cases[i].reason, cases[i].bypass};
		struct conn_info ci = {.peer = cases[i].peer};
		json_t *o = json_object();

		rule.seal = cases[i].rule;
		view_put_seal(o, &of, &ci, &cases[i].lane);
		for (int k = 0; k < 3; k++) {
			const char *is = json_string_value(json_object_get(o, keys[k]));

			assert_string_equal(is ? is : "-", words[k] ? words[k] : "-");
			assert_non_null(column_find(object_find("lane"), keys[k]));
		}
		json_decref(o);
	}
}

/* NTT-9, ENG-14: each number of prefetch under its own name, in every lane, known to the tool. */
static void test_reads(void **state)
{
	static const struct prefetch_info info = {
		.hits = 1,
		.late = 2,
		.misses = 3,
		.guesses = 4,
		.wasted_bytes = 1ull << 40,
		.flushed_pattern = 5,
		.flushed_signal = 6,
		.flushed_age = 7,
		.atomics_ahead = 14,
		.atomics_unasked = 15,
		.window = 1ull << 33,
		.ahead = 8,
		.held_bytes = 9,
		.answered_again = 10,
		.depth = 11,
		.shift = 12,
		.shift_msn = 13,
	};
	static const struct shown shown[] = {
		{"ahead-hits", 1},
		{"ahead-late-hits", 2},
		{"ahead-misses", 3},
		{"ahead-guesses", 4},
		{"ahead-wasted-bytes", 1ll << 40},
		{"ahead-flushed-pattern", 5},
		{"ahead-flushed-signal", 6},
		{"ahead-flushed-age", 7},
		{"atomics-ahead", 14},
		{"atomics-unasked", 15},
		{"ahead-window-bytes", 1ll << 33},
		{"ahead-bytes", 8},
		{"reads-held-bytes", 9},
		{"reads-answered-again", 10},
		{"read-depth", 11},
		{"psn-shift", 12},
		{"msn-shift", 13},
	};
	json_t *all = show("lane-show"), *o = json_object(), *lane;
	size_t i;

	(void)state;
	view_put_reads(o, &info);
	assert_int_equal(json_object_size(o), sizeof(shown) / sizeof(shown[0]));
	assert_shown(o, shown, sizeof(shown) / sizeof(shown[0]));
	/* nobody reads ahead in single mode */
	json_array_foreach (all, i, lane)
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++)
			assert_int_equal(number(lane, shown[k].key), 0);
	json_decref(o);
	json_decref(all);
}

/* NTT-8: what a rule says of prefetch, also what it does not say. */
static void test_rule_read_ahead(void **state)
{
	json_t *all, *o;

	(void)state;
	rules[0].prefetch = true;
	rules[0].prefetch_max_age_ns = 1500000000;
	rules[0].atomic = ATOMIC_DISCARD;
	rules[0].read_depth = 16;
	rules[0].seal = true;
	rules[0].nread_ranges = 2;
	rules[0].read_range[0].from = 0x7f0000000000;
	rules[0].read_range[0].end = 0x7f0040000000;
	rules[0].read_range[1].from = 0;
	rules[0].read_range[1].end = UINT64_MAX;
	all = show("rule-show");
	o = json_array_get(all, 0);
	assert_string_equal(string(o, "prefetch"), "on");
	assert_string_equal(string(o, "atomic"), "discard-result");
	assert_int_equal(number(o, "prefetch-max-age-ms"), 1500);
	assert_string_equal(string(o, "prefetch-range"),
			    "0x7f0000000000-0x7f0040000000, 0x0-0xffffffffffffffff");
	assert_int_equal(number(o, "read-depth"), 16);
	assert_true(json_is_null(json_object_get(o, "seal"))); /* no peer */
	o = json_array_get(all, 1);
	assert_string_equal(string(o, "atomic"), "ordered");
	assert_string_equal(string(o, "prefetch"), "off");
	assert_true(json_is_null(json_object_get(o, "prefetch-range")));
	assert_true(json_is_null(json_object_get(o, "read-depth")));
	assert_true(json_is_null(json_object_get(o, "seal")));
	json_decref(all);
}

/* Every counter of the engine is there, by its name, once, with its value. */
static void test_stats(void **state)
{
	json_t *all = show("stats-show"), *o;
	size_t i;

	(void)state;
	for (int c = 0; c < EC_COUNT; c++) {
		int seen = 0;

		json_array_foreach (all, i, o) {
			if (strcmp(string(o, "group"), "engine") ||
			    strcmp(string(o, "name"), engine_counter_name(c)))
				continue;
			seen++;
			assert_int_equal(number(o, "value"), shards_counter(src.shards, c));
			assert_string_equal(string(o, "help"), engine_counter_help(c));
		}
		assert_int_equal(seen, 1);
	}
	json_decref(all);
}

static void test_no_peers(void **state)
{
	(void)state;
	check_no_peers();
}

/* Connections that come and go while they are listed. */
static void test_changes_under_way(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int fd = client_connect();

	(void)state;
	control_data_halves(src.shards, 100);
	assert_int_equal(send(fd, req, sizeof(req) - 1, 0), sizeof(req) - 1);
	for (int i = 0; i < 4; i++)
		turn();
	control_data_halves(src.shards, 500);
	src.nrules = 1;
	shards_rules(src.shards, rules, 0, now);
	check_objects(read_answer(fd, NULL));
	close(fd);
	src.nrules = 2;
}

static void test_socket_file(void **state)
{
	struct control *second;
	char err[256], other[80];
	struct stat st;
	FILE *f;
	int fd;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	second = control_open(path, &src, err, sizeof(err));
	assert_null(second);
	assert_non_null(strstr(err, "another longhauld serves it"));
	assert_int_equal(stat(path, &st), 0);

	/* what a killed daemon leaves behind is replaced */
	snprintf(other, sizeof(other), "%s/other", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	{
		struct sockaddr_un addr = {.sun_family = AF_UNIX};

		strcpy(addr.sun_path, other);
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	}
	close(fd);
	second = control_open(other, &src, err, sizeof(err));
	assert_non_null(second);
	control_close(second);
	assert_int_equal(stat(other, &st), -1);

	/* a file that is something else is not */
	f = fopen(other, "w");
	assert_non_null(f);
	fclose(f);
	assert_null(control_open(other, &src, err, sizeof(err)));
	assert_non_null(strstr(err, "no socket is in the way"));
	assert_int_equal(unlink(other), 0);
	assert_null(control_open("/nonexistent/dir/sock", &src, err, sizeof(err)));
	assert_non_null(strstr(err, "No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_qp),
		TEST(test_unpaired),
		TEST(test_lane),
		TEST(test_rule),
		TEST(test_reads),
		TEST(test_announced),
		TEST(test_sealed),
		TEST(test_rule_read_ahead),
		TEST(test_stats),
		TEST(test_no_peers),
		TEST(test_changes_under_way),
		TEST(test_socket_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The control socket: a real server and real clients in one process, taking turns, with a clock
 * that the tests turn by hand.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/object.h"
#include "control/control.h"
#include "control/feed.h"
#include "control/monitor.h"
#include "control/operate.h"
#include "tests/unit/control_data.h"
#include "tests/unit/temp_dir.h"

#define HALVES 3000u

static char path[64];
static struct view_source src;
static struct rule rules[2];
static struct control *ctl;
static uint64_t now = TEST_NOW;

static int setup(void **state)
{
	char err[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/sock", dir);
	control_data_open(&src, rules);
	ctl = control_open(path, &src, err, sizeof(err));
	return ctl ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	control_close(ctl);
	engine_destroy(src.engine);
	return 0;
}

static int client_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* One turn of the server, if it has anything to do. */
static bool turn(void)
{
	struct pollfd p = {.fd = control_fd(ctl), .events = POLLIN};

	if (poll(&p, 1, 0) <= 0)
		return false;
	control_service(ctl, now);
	return true;
}

/* Read what the server says on @fd until it closes; a string that the caller frees. */
static char *read_answer(int fd, size_t *len)
{
	char *buf = NULL;
	size_t used = 0;
	ssize_t n;

	for (int idle = 0; idle < 2;) {
		buf = realloc(buf, used + 65536 + 1);
		assert_non_null(buf);
		n = recv(fd, buf + used, 65536, 0);
		if (n > 0)
			used += (size_t)n;
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			break;
		/* nothing to read and nothing to serve, twice: the server waits for us */
		idle = turn() || n > 0 ? 0 : idle + 1;
	}
	buf[used] = '\0';
	if (len)
		*len = used;
	return buf;
}

static char *ask_bytes(const void *req, size_t len, bool half_close)
{
	int fd = client_connect();
	char *answer;

	/* the server may have refused already */
	if (send(fd, req, len, MSG_NOSIGNAL) < 0)
		assert_int_equal(errno, EPIPE);
	if (half_close)
		shutdown(fd, SHUT_WR);
	answer = read_answer(fd, NULL);
	close(fd);
	return answer;
}

static char *ask(const char *req)
{
	return ask_bytes(req, strlen(req), false);
}

/* The objects of an answer as an array; the end line is checked and left out. */
static json_t *objects_of(const char *answer)
{
	json_t *all = json_array();
	const char *p = answer;
	bool end = false;

	while (*p) {
		const char *nl = strchr(p, '\n');
		json_error_t why;
		json_t *o;

		assert_non_null(nl);
		assert_false(end);
		o = json_loadb(p, (size_t)(nl - p), JSON_REJECT_DUPLICATES, &why);
		assert_true(json_is_object(o));
		end = json_is_true(json_object_get(o, "end"));
		if (end)
			assert_int_equal(json_integer_value(json_object_get(o, "count")),
					 json_array_size(all));
		else
			json_array_append(all, o);
		json_decref(o);
		p = nl + 1;
	}
	assert_true(end);
	return all;
}

/* @answer is objects and an end line, how many does not matter; frees it. */
static void check_objects(char *answer)
{
	json_decref(objects_of(answer));
	free(answer);
}

static json_t *show(const char *cmd)
{
	char req[64], *answer;
	json_t *all;

	snprintf(req, sizeof(req), "{\"cmd\": \"%s\"}\n", cmd);
	answer = ask(req);
	all = objects_of(answer);
	free(answer);
	return all;
}

static long long number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static const char *string(const json_t *o, const char *key)
{
	assert_true(json_is_string(json_object_get(o, key)));
	return json_string_value(json_object_get(o, key));
}

static void test_qp(void **state)
{
	static const char *const numbers[] = {
		"id",	       "custody-packets", "custody-bytes",	"custody-oldest-ms",
		"pseudo-acks", "true-acks",	  "dropped-duplicates", "retransmits",
		"path-mtu"};
	json_t *all = show("qp-show"), *o;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(all), 2);
	json_array_foreach (all, i, o) {
		assert_string_equal(string(o, "lan-ip"), "10.98.0.1");
		assert_string_equal(string(o, "wan-ip"), "10.98.0.2");
		assert_int_equal(number(o, "lqpn"), number(o, "rqpn"));
		assert_string_equal(string(o, "learned-by"), "psn");
		assert_string_equal(string(o, "policy"), "early");
		assert_string_equal(string(o, "rule"), "storage");
		assert_true(json_is_null(json_object_get(o, "peer")));
		assert_true(json_is_null(json_object_get(o, "vlan")));
		string(o, "state");
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			number(o, numbers[k]);
	}
	assert_int_equal(number(json_array_get(all, 0), "lqpn"), 0x16);
	assert_int_equal(number(json_array_get(all, 1), "lqpn"), 0x17);
	json_decref(all);
}

static void test_unpaired(void **state)
{
	json_t *all, *o;
	bool seen = false;
	size_t i;

	(void)state;
	control_data_halves(src.engine, 1);
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

/* NTT-9: each number of prefetch under its own name, in every lane, and known to the tool. */
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
	static const struct {
		const char *key;
		long long value;
	} shown[] = {
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
	for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++) {
		assert_int_equal(number(o, shown[k].key), shown[k].value);
		assert_non_null(column_find(object_find("lane"), shown[k].key));
		/* nobody reads ahead in single mode */
		json_array_foreach (all, i, lane)
			assert_int_equal(number(lane, shown[k].key), 0);
	}
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
	rules[0].wan_check = true;
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
	assert_true(json_is_null(json_object_get(o, "wan-check"))); /* no peer */
	o = json_array_get(all, 1);
	assert_string_equal(string(o, "atomic"), "ordered");
	assert_string_equal(string(o, "prefetch"), "off");
	assert_true(json_is_null(json_object_get(o, "prefetch-range")));
	assert_true(json_is_null(json_object_get(o, "read-depth")));
	assert_true(json_is_null(json_object_get(o, "wan-check")));
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
	assert_string_equal(string(o, "learn"), "cm, psn");
	assert_int_equal(number(o, "connections"), 2);
	assert_int_equal(number(json_array_get(all, 1), "connections"), 0);
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
			assert_int_equal(number(o, "value"), engine_counter(src.engine, c));
			assert_string_equal(string(o, "help"), engine_counter_help(c));
		}
		assert_int_equal(seen, 1);
	}
	json_decref(all);
}

static void test_no_peers(void **state)
{
	json_t *all = show("peer-show");

	(void)state;
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
}

/* @answer is one line with an error that contains @text. */
static void check_error(char *answer, const char *text)
{
	json_error_t why;
	json_t *o = json_loads(answer, JSON_REJECT_DUPLICATES, &why);

	assert_non_null(o);
	assert_ptr_equal(strchr(answer, '\n'), answer + strlen(answer) - 1);
	assert_int_equal(json_object_size(o), 1);
	if (!strstr(string(o, "error"), text))
		fail_msg("expected \"%s\" in \"%s\"", text, answer);
	json_decref(o);
	free(answer);
}

static void test_bad_requests(void **state)
{
	static const struct {
		const char *req, *error;
	} bad[] = {
		{"\n", "no JSON object"},
		{"hello\n", "no JSON object"},
		{"[]\n", "no JSON object"},
		{"3\n", "no JSON object"},
		{"{}\n", "no \"cmd\""},
		{"{\"cmd\": 3}\n", "no \"cmd\""},
		{"{\"cmd\": null}\n", "no \"cmd\""},
		{"{\"cmd\": \"\"}\n", "unknown cmd ''"},
		{"{\"cmd\": \"qp\"}\n", "unknown cmd 'qp'"},
		{"{\"cmd\": \"qp-show\", \"cmd\": \"qp-show\"}\n", "duplicate"},
		{"{\"cmd\": \"qp-show\"\n", "no JSON object"},
		{"{\"cmd\": \"qp-show\"} {}\n", "no JSON object"},
		{"\xff\xfe\xfd\n", "no JSON object"},
		{"{\"cmd\": "
		 "\"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f-a-very-long-name-of-a-command-"
		 "\xe2\x82\xac\xe2\x82\xac\"}\n",
		 "unknown cmd"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_error(ask(bad[i].req), bad[i].error);
	assert_int_equal(control_stats(ctl)->errors, sizeof(bad) / sizeof(bad[0]));
	assert_int_equal(control_stats(ctl)->requests, 0);
}

static void test_binary(void **state)
{
	uint8_t noise[512];

	(void)state;
	srand(7);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)rand();
		free(ask_bytes(noise, sizeof(noise), true));
	}
	test_qp(state);
}

static void test_length(void **state)
{
	char req[CONTROL_REQUEST_MAX * 2];

	(void)state;
	/* a request as long as one may be: blanks are JSON */
	memset(req, ' ', sizeof(req));
	memcpy(req, "{\"cmd\": \"qp-show\"", 17);
	memcpy(req + CONTROL_REQUEST_MAX - 2, "}\n", 2);
	check_objects(ask_bytes(req, CONTROL_REQUEST_MAX, false));
	/* longer by one, and much longer, with no newline ever */
	req[CONTROL_REQUEST_MAX - 1] = ' ';
	req[CONTROL_REQUEST_MAX] = '\n';
	check_error(ask_bytes(req, CONTROL_REQUEST_MAX + 1, false), "longer than");
	req[CONTROL_REQUEST_MAX] = ' ';
	check_error(ask_bytes(req, sizeof(req), false), "longer than");
}

static void test_half_requests(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int fd;

	(void)state;
	check_error(ask_bytes(req, 9, true), "without a newline");
	/* in two pieces it is as good as in one */
	fd = client_connect();
	assert_int_equal(send(fd, req, 9, 0), 9);
	while (turn())
		;
	assert_int_equal(send(fd, req + 9, sizeof(req) - 10, 0), sizeof(req) - 10);
	check_objects(read_answer(fd, NULL));
	close(fd);
	/* nothing at all */
	fd = client_connect();
	while (turn())
		;
	close(fd);
	while (turn())
		;
	test_qp(state);
}

/* Whoever never completes a request holds a place for a while and no longer. */
static void test_patience(void **state)
{
	int fds[CONTROL_CLIENTS];
	char buf[256];
	ssize_t n;

	(void)state;
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		fds[i] = client_connect();
		assert_int_equal(send(fds[i], "{", 1, 0), 1);
	}
	while (turn())
		;
	now += CONTROL_PATIENCE_NS;
	control_tick(ctl, now);
	assert_int_equal(control_stats(ctl)->dropped, 0);
	now++;
	control_tick(ctl, now);
	assert_int_equal(control_stats(ctl)->dropped, CONTROL_CLIENTS);
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		n = recv(fds[i], buf, sizeof(buf), 0);
		assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
		close(fds[i]);
	}
	check_objects(ask("{\"cmd\": \"qp-show\"}\n"));
}

/* A thousand clients that say nothing lock nobody out: the one that waits longest makes room. */
static void test_idle_clients(void **state)
{
	int fds[1000];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		fds[i] = client_connect();
		if (i % 2)
			assert_int_equal(send(fds[i], "{", 1, 0), 1);
		now += 1000;
		while (turn())
			;
		if (i % 100 == 99)
			check_objects(ask("{\"cmd\": \"qp-show\"}\n"));
	}
	assert_int_equal(control_stats(ctl)->refused, 0);
	assert_int_equal(control_stats(ctl)->requests, 10);
	for (int i = 0; i < 1000; i++)
		close(fds[i]);
	while (turn())
		;
}

/* Nor do clients that ask and never read, a second after they did for the last time. */
static void test_deaf_clients(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int fds[CONTROL_CLIENTS];

	(void)state;
	control_data_halves(src.engine, HALVES);
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		fds[i] = client_connect();
		assert_int_equal(send(fds[i], req, sizeof(req) - 1, 0), sizeof(req) - 1);
	}
	while (turn())
		;
	check_error(ask(req), "too many clients");
	assert_int_equal(control_stats(ctl)->refused, 1);
	now += CONTROL_IDLE_NS + 1;
	check_objects(ask(req));
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		close(fds[i]);
}

/* What was read on @fd since the last time, with a tick in between. */
static void follow(int fd, char *buf, size_t len)
{
	ssize_t n;

	control_tick(ctl, now);
	while (turn())
		;
	n = recv(fd, buf, len - 1, 0);
	buf[n > 0 ? n : 0] = '\0';
}

/* Followers are told what happens, cost nothing else, and are forgotten when they go. */
static void test_follow(void **state)
{
	struct feed feed = {.size = 65536};
	int fds[CONTROL_FOLLOWERS];
	char buf[65536];

	(void)state;
	src.monitor = &feed;
	assert_false(feed_wanted(&feed));
	monitor_say(&src, "unheard", "");
	for (int i = 0; i < CONTROL_FOLLOWERS; i++) {
		fds[i] = client_connect();
		assert_int_equal(send(fds[i], "{\"cmd\":\"monitor\"}\n", 18, 0), 18);
		while (turn())
			;
		follow(fds[i], buf, sizeof(buf));
		assert_string_equal(buf, "{\"event\":\"following\"}\n");
	}
	check_error(ask("{\"cmd\":\"monitor\"}\n"), "too many clients follow");
	check_objects(ask("{\"cmd\":\"qp-show\"}\n"));
	monitor_say(&src, "reload", "one");
	assert_false(turn()); /* a tick looks after them */
	for (int i = 0; i < CONTROL_FOLLOWERS; i++) {
		follow(fds[i], buf, sizeof(buf));
		assert_non_null(strstr(buf, "\"event\":\"reload\",\"text\":\"one\"}\n"));
	}
	/* it is no matter of patience while there is nothing to tell */
	now += 10 * CONTROL_PATIENCE_NS;
	follow(fds[0], buf, sizeof(buf));
	monitor_say(&src, "reload", "two");
	follow(fds[0], buf, sizeof(buf));
	assert_non_null(strstr(buf, "two"));
	for (int i = 0; i < CONTROL_FOLLOWERS; i++)
		close(fds[i]);
	while (turn())
		;
	assert_int_equal(feed.readers, 0);
	assert_null(feed.ring);
	src.monitor = NULL;
}

/* Who is too slow for a feed loses lines, is told how many, and goes on with whole ones. */
static void test_feed_overrun(void **state)
{
	struct feed feed = {.size = 65536};
	struct feed_reader slow, quick;
	char buf[2 * FEED_LINE_MAX];
	size_t n;

	(void)state;
	src.monitor = &feed;
	assert_int_equal(feed_join(&feed, &slow), 0);
	assert_int_equal(feed_join(&feed, &quick), 0);
	for (int i = 0; i < 2000; i++) {
		monitor_say(&src, "reload",
			    "a line of about a hundred bytes, with its time and its name");
		n = feed_read(&feed, &quick, buf, sizeof(buf));
		assert_true(n > 0 && buf[n - 1] == '\n' && buf[0] == '{');
		assert_false(feed_pending(&feed, &quick));
	}
	n = feed_read(&feed, &slow, buf, sizeof(buf));
	buf[n] = '\0';
	assert_string_equal(buf, "{\"event\":\"lost\",\"lines\":2000}\n");
	monitor_say(&src, "reload", "x");
	n = feed_read(&feed, &slow, buf, sizeof(buf));
	assert_true(n > 0 && buf[0] == '{' && buf[n - 1] == '\n');
	/* one that is too long for any is lost to all */
	memset(buf, 'x', sizeof(buf));
	buf[FEED_LINE_MAX] = '\0';
	monitor_say(&src, "reload", buf);
	assert_false(feed_pending(&feed, &quick) && feed_pending(&feed, &slow));
	feed_leave(&feed);
	feed_leave(&feed);
	src.monitor = NULL;
}

static void test_actions(void **state)
{
	struct operate op = {0};
	json_t *all, *o;
	char req[128];
	size_t i;

	(void)state;
	check_error(ask("{\"cmd\":\"stats-clear\"}\n"), "nothing to operate on");
	src.operate = &op;
	check_error(ask("{\"cmd\":\"release\"}\n"), "no \"id\"");
	check_error(ask("{\"cmd\":\"release\",\"id\":-1}\n"), "no \"id\"");
	check_error(ask("{\"cmd\":\"release\",\"id\":4294967296}\n"), "no \"id\"");
	check_error(ask("{\"cmd\":\"release\",\"id\":4294967295}\n"), "is gone");
	check_error(ask("{\"cmd\":\"bypass\",\"all\":true}\n"), "no \"on\"");
	check_error(ask("{\"cmd\":\"bypass\",\"on\":true}\n"), "no \"id\"");
	check_error(ask("{\"cmd\":\"bypass\",\"on\":true,\"rule\":\"x\"}\n"), "no such rule");
	all = show("qp-show");
	o = json_array_get(all, 0);
	/* under this id there is another connection now */
	snprintf(req, sizeof(req), "{\"cmd\":\"bypass\",\"on\":true,\"id\":%lld,\"lqpn\":1}\n",
		 number(o, "id"));
	check_error(ask(req), "is gone");
	snprintf(req, sizeof(req), "{\"cmd\":\"bypass\",\"on\":true,\"id\":%lld,\"lqpn\":%lld}\n",
		 number(o, "id"), number(o, "lqpn"));
	check_objects(ask(req));
	json_decref(all);
	all = show("qp-show");
	assert_non_null(strstr(string(json_array_get(all, 0), "note"), "bypassed"));
	json_decref(all);
	/* rules keep it by their names, whatever place they have */
	check_objects(ask("{\"cmd\":\"bypass\",\"on\":true,\"rule\":\"storage\"}\n"));
	assert_string_equal(op.text, "bypassed rules storage");
	operate_rules(&src, now);
	check_objects(ask("{\"cmd\":\"bypass\",\"on\":false,\"all\":true}\n"));
	assert_string_equal(op.text, "");
	/* counters count from now on, and their totals do not go back */
	check_objects(ask("{\"cmd\":\"stats-clear\"}\n"));
	all = show("stats-show");
	json_array_foreach (all, i, o) {
		if (strcmp(string(o, "group"), "engine"))
			continue;
		assert_int_equal(number(o, "value"), 0);
		if (!strcmp(string(o, "name"), "rx-lan"))
			assert_true(number(o, "total") > 0);
	}
	json_decref(all);
	src.operate = NULL;
}

static bool reload_says(void *ctx, char *err, size_t errlen)
{
	const char *text = ctx;

	snprintf(err, errlen, "%s", text ? text : "");
	return !text;
}

/* A reload is answered with what became of it. */
static void test_reload(void **state)
{
	static struct operate op;

	(void)state;
	src.operate = &op;
	check_error(ask("{\"cmd\":\"reload\"}\n"), "nothing to reload");
	src.reload = reload_says;
	check_objects(ask("{\"cmd\":\"reload\"}\n"));
	src.reload_ctx = "t.conf:3: unknown key 'colour'";
	check_error(ask("{\"cmd\":\"reload\"}\n"), "t.conf:3: unknown key 'colour'");
	src.reload = NULL;
	src.reload_ctx = NULL;
	src.operate = NULL;
}

/* A long answer is made bit by bit; a client that does not read holds up nobody, and goes. */
static void test_slow_reader(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int slow = client_connect();
	unsigned int turns = 0;
	json_t *all;

	(void)state;
	control_data_halves(src.engine, HALVES);
	assert_int_equal(send(slow, req, sizeof(req) - 1, 0), sizeof(req) - 1);
	/* until the server can send no more: then it is quiet */
	while (turn())
		turns++;
	assert_true(turns > 2);
	assert_true(turns < HALVES);
	all = show("qp-show");
	assert_int_equal(json_array_size(all), HALVES + 2);
	json_decref(all);
	now += CONTROL_PATIENCE_NS + 1;
	control_tick(ctl, now);
	assert_int_equal(control_stats(ctl)->dropped, 1);
	close(slow);
}

/* No turn does more than its share, however long the answer. */
static void test_bounded_turn(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int fd = client_connect();
	char buf[65536];

	(void)state;
	control_data_halves(src.engine, HALVES);
	assert_int_equal(send(fd, req, sizeof(req) - 1, 0), sizeof(req) - 1);
	for (int i = 0; i < 20; i++) {
		ssize_t n;
		int lines = 0;

		turn();
		n = recv(fd, buf, sizeof(buf), 0);
		for (ssize_t k = 0; k < n; k++)
			lines += buf[k] == '\n';
		assert_true(lines <= 16);
	}
	/* and a client that leaves in the middle leaves nothing behind */
	close(fd);
	while (turn())
		;
	assert_int_equal(control_stats(ctl)->dropped, 1);
	test_no_peers(state);
}

/* Connections that come and go while they are listed. */
static void test_changes_under_way(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int fd = client_connect();

	(void)state;
	control_data_halves(src.engine, 100);
	assert_int_equal(send(fd, req, sizeof(req) - 1, 0), sizeof(req) - 1);
	for (int i = 0; i < 4; i++)
		turn();
	control_data_halves(src.engine, 500);
	src.nrules = 1;
	engine_rules(src.engine, rules, 0, now);
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

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_qp),		 TEST(test_unpaired),	  TEST(test_lane),
		TEST(test_rule),	 TEST(test_reads),	  TEST(test_rule_read_ahead),
		TEST(test_stats),	 TEST(test_no_peers),	  TEST(test_bad_requests),
		TEST(test_binary),	 TEST(test_length),	  TEST(test_half_requests),
		TEST(test_idle_clients), TEST(test_deaf_clients), TEST(test_follow),
		TEST(test_feed_overrun), TEST(test_actions),	  TEST(test_patience),
		TEST(test_slow_reader),	 TEST(test_bounded_turn), TEST(test_changes_under_way),
		TEST(test_socket_file),	 TEST(test_reload),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

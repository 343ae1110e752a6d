// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The control socket: what an operator does through it, and who follows what happens.
 */
#include "control/feed.h"
#include "control/monitor.h"
#include "control/operate.h"
#include "tests/unit/control_client.h"

/* No error: of many that are named some may have gone meanwhile. */
static void check_gone(char *answer, const char *key)
{
	json_t *all = objects_of(answer), *o = json_array_get(all, 0);

	assert_true(json_is_false(json_object_get(o, key)));
	assert_true(json_is_true(json_object_get(o, "gone")));
	json_decref(all);
	free(answer);
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
	check_gone(ask("{\"cmd\":\"release\",\"id\":4294967295}\n"), "released");
	check_error(ask("{\"cmd\":\"bypass\",\"all\":true}\n"), "no \"on\"");
	check_error(ask("{\"cmd\":\"bypass\",\"on\":true}\n"), "no \"id\"");
	check_error(ask("{\"cmd\":\"bypass\",\"on\":true,\"rule\":\"x\"}\n"), "no such rule");
	all = show("qp-show");
	o = json_array_get(all, 0);
	/* under this id there is another connection now */
	snprintf(req, sizeof(req), "{\"cmd\":\"bypass\",\"on\":true,\"id\":%lld,\"lqpn\":1}\n",
		 number(o, "id"));
	check_gone(ask(req), "bypassed");
	snprintf(req, sizeof(req), "{\"cmd\":\"bypass\",\"on\":true,\"id\":%lld,\"lqpn\":%lld}\n",
		 number(o, "id"), number(o, "lqpn"));
	check_objects(ask(req));
	json_decref(all);
	all = show("qp-show");
	assert_non_null(strstr(string(json_array_get(all, 0), "note"), "bypassed"));
	json_decref(all);
	/* rules keep it by their names, whatever place they have */
	check_objects(ask("{\"cmd\":\"bypass\",\"on\":true,\"rule\":\"storage\"}\n"));
	assert_string_equal(op.text, "rule storage");
	operate_rules(&src, now);
	/* also when a reload has removed one, and off is off for that one alone */
	check_objects(ask("{\"cmd\":\"bypass\",\"on\":true,\"rule\":\"idle\"}\n"));
	src.nrules = 1;
	operate_rules(&src, now);
	check_error(ask("{\"cmd\":\"bypass\",\"on\":true,\"rule\":\"idle\"}\n"), "no such rule");
	check_objects(ask("{\"cmd\":\"bypass\",\"on\":false,\"rule\":\"idle\"}\n"));
	assert_string_equal(op.text, "rule storage");
	check_error(ask("{\"cmd\":\"bypass\",\"on\":false,\"rule\":\"idle\"}\n"), "no such rule");
	src.nrules = 2;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_actions),
		TEST(test_reload),
		TEST(test_follow),
		TEST(test_feed_overrun),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

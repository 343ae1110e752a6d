// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The control socket and clients that ask wrongly, slowly, or not at all: they harm nobody else.
 */
#include "tests/unit/control_client.h"

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
	check_qps();
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
	check_qps();
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
	control_data_halves(src.shards, HALVES);
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

/* A long answer is made bit by bit; a client that does not read holds up nobody, and goes. */
static void test_slow_reader(void **state)
{
	static const char req[] = "{\"cmd\": \"qp-show\"}\n";
	int slow = client_connect();
	unsigned int turns = 0;
	json_t *all;

	(void)state;
	control_data_halves(src.shards, HALVES);
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
	control_data_halves(src.shards, HALVES);
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
	check_no_peers();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bad_requests),  TEST(test_binary),	  TEST(test_length),
		TEST(test_half_requests), TEST(test_patience),	  TEST(test_idle_clients),
		TEST(test_deaf_clients),  TEST(test_slow_reader), TEST(test_bounded_turn),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests of the control socket: a real server and real clients in one process, taking turns,
 * with a clock that the tests turn by hand.
 */
#ifndef TESTS_UNIT_CONTROL_CLIENT_H
#define TESTS_UNIT_CONTROL_CLIENT_H

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/control.h"
#include "tests/unit/control_data.h"
#include "tests/unit/temp_dir.h"

#define HALVES 3000u

static char path[64];
static struct view_source src;
static struct rule rules[2];
static struct control *ctl;
static uint64_t now = TEST_NOW;

static inline int setup(void **state)
{
	char err[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/sock", dir);
	control_data_open(&src, rules);
	ctl = control_open(path, &src, err, sizeof(err));
	return ctl ? 0 : -1;
}

static inline int teardown(void **state)
{
	(void)state;
	control_close(ctl);
	shards_destroy(src.shards);
	return 0;
}

static inline int client_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* One turn of the server, if it has anything to do. */
static inline bool turn(void)
{
	struct pollfd p = {.fd = control_fd(ctl), .events = POLLIN};

	if (poll(&p, 1, 0) <= 0)
		return false;
	control_service(ctl, now);
	return true;
}

/* Read what the server says on @fd until it closes; a string that the caller frees. */
static inline char *read_answer(int fd, size_t *len)
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

static inline char *ask_bytes(const void *req, size_t len, bool half_close)
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

static inline char *ask(const char *req)
{
	return ask_bytes(req, strlen(req), false);
}

/* The objects of an answer as an array; the end line is checked and left out. */
static inline json_t *objects_of(const char *answer)
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
static inline void check_objects(char *answer)
{
	json_decref(objects_of(answer));
	free(answer);
}

static inline json_t *show(const char *cmd)
{
	char req[64], *answer;
	json_t *all;

	snprintf(req, sizeof(req), "{\"cmd\": \"%s\"}\n", cmd);
	answer = ask(req);
	all = objects_of(answer);
	free(answer);
	return all;
}

static inline long long number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static const char *string(const json_t *o, const char *key)
{
	assert_true(json_is_string(json_object_get(o, key)));
	return json_string_value(json_object_get(o, key));
}

/* @answer is one line with an error that contains @text. */
static inline void check_error(char *answer, const char *text)
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

/* The two queue pairs of the capture are told, whatever happened before. */
static inline void check_qps(void)
{
	static const char *const numbers[] = {
		"id",	       "custody-packets", "custody-bytes",	"custody-oldest-ms",
		"pseudo-acks", "true-acks",	  "dropped-duplicates", "retransmits",
		"path-mtu"};
	json_t *all = show("qp-show"), *o;
	size_t i;

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

static inline void check_no_peers(void)
{
	json_t *all = show("peer-show");

	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

#endif

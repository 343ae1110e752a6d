// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tool and the daemon at the other end of its control socket, or what is there in its place.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "control/control.h"
#include "tests/unit/control_data.h"
#include "tests/unit/temp_dir.h"

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

struct server {
	pthread_t thread;
	int stop; /* eventfd */
	char path[64];
	struct control *ctl;
	struct view_source src;
	struct rule rules[2];
};

static void *serve(void *arg)
{
	struct server *s = arg;
	struct pollfd p[2] = {{.fd = control_fd(s->ctl), .events = POLLIN},
			      {.fd = s->stop, .events = POLLIN}};

	for (;;) {
		poll(p, 2, -1);
		if (p[1].revents)
			return NULL;
		control_service(s->ctl, TEST_NOW);
	}
}

static void server_start(struct server *s)
{
	char err[256];

	memset(s, 0, sizeof(*s));
	snprintf(s->path, sizeof(s->path), "%s/sock", dir);
	control_data_open(&s->src, s->rules);
	s->ctl = control_open(s->path, &s->src, err, sizeof(err));
	assert_non_null(s->ctl);
	s->stop = eventfd(0, 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	assert_int_equal(eventfd_write(s->stop, 1), 0);
	pthread_join(s->thread, NULL);
	close(s->stop);
	control_close(s->ctl);
	shards_destroy(s->src.shards);
}

static void collect(void *ctx, json_t *o)
{
	json_array_append(ctx, o);
}

static void test_request(void **state)
{
	json_t *all = json_array(), *big = json_array();
	struct server s;
	char err[256] = "";

	(void)state;
	server_start(&s);
	assert_int_equal(client_request(s.path, "qp-show", collect, all, err, sizeof(err)), 0);
	assert_int_equal(json_array_size(all), 2);
	assert_int_equal(client_request(s.path, "nonsense", collect, all, err, sizeof(err)), -1);
	assert_string_equal(
		err, "longhauld: unknown cmd 'nonsense'; tool and daemon may differ in version");
	server_stop(&s);

	server_start(&s);
	control_data_halves(s.src.shards, 2000);
	assert_int_equal(client_request(s.path, "qp-show", collect, big, err, sizeof(err)), 0);
	assert_int_equal(json_array_size(big), 2002);
	server_stop(&s);
	json_decref(all);
	json_decref(big);
}

static void check_values(const char *socket, int n, char **words, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	complete_values(socket, n, words, f);
	fclose(f);
	assert_string_equal(text, expected);
	free(text);
}

/* Behind a key the shell is offered what there is now. */
static void test_complete_values(void **state)
{
	struct server s;

	(void)state;
	server_start(&s);
	check_values(s.path, 2, WORDS("rule", "name"), "storage\nidle\n");
	check_values(s.path, 3, WORDS("rule", "show", "name"), "storage\nidle\n");
	check_values(s.path, 4, WORDS("rule", "name", "idle", "name"), "idle\n");
	/* a key is what comes next, or nothing that is known */
	check_values(s.path, 1, WORDS("rule"), "storage\nidle\n");
	check_values(s.path, 2, WORDS("rule", "show"), "storage\nidle\n");
	check_values(s.path, 2, WORDS("rule", "idle"), "");
	check_values(s.path, 3, WORDS("rule", "idle", "name"), "idle\n");
	check_values(s.path, 1, WORDS("qp"), "");
	check_values(s.path, 3, WORDS("rule", "name", "idle"), "");
	check_values(s.path, 2, WORDS("rule", "colour"), "");
	check_values(s.path, 0, WORDS(NULL), "");
	check_values(s.path, 2, WORDS("doctor", "host"), "10.98.0.1\n");
	check_values(s.path, 1, WORDS("doctor"), "");
	server_stop(&s);
	check_values(s.path, 2, WORDS("rule", "name"), "");
}

/* What the daemon tells of lanes and rules has a format, and may be selected by. */
static void test_members_known(void **state)
{
	static const char *const shown[] = {"qp", "lane", "rule"};
	char cmd[32], err[256] = "";
	const char *key;
	struct server s;
	json_t *all, *v;

	(void)state;
	server_start(&s);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		all = json_array();
		snprintf(cmd, sizeof(cmd), "%s-show", shown[i]);
		assert_int_equal(client_request(s.path, cmd, collect, all, err, sizeof(err)), 0);
		assert_true(json_array_size(all) > 0);
		json_object_foreach (json_array_get(all, 0), key, v)
			if (!column_find(object_find(shown[i]), key))
				fail_msg("%s: '%s' is not known to the tool", shown[i], key);
		json_decref(all);
	}
	server_stop(&s);
}

static void test_no_daemon(void **state)
{
	char path[64], err[256], expected[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_int_equal(client_request(path, "qp-show", collect, NULL, err, sizeof(err)), -1);
	snprintf(expected, sizeof(expected),
		 "cannot reach longhauld at %s: No such file or directory (is it running? "
		 "systemctl start longhauld)",
		 path);
	assert_string_equal(err, expected);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(
		client_request("/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
			       "qp-show", collect, NULL, err, sizeof(err)),
		-1);
	assert_non_null(strstr(err, "give a shorter one with -s"));
}

/* A peer that is no longhauld: whatever it says, one line explains. */
static const char *strange_answer;
static void *strange(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);
	char buf[256];

	if (fd < 0 || recv(fd, buf, sizeof(buf), 0) < 0 ||
	    send(fd, strange_answer, strlen(strange_answer), MSG_NOSIGNAL) < 0)
		return NULL;
	close(fd);
	return NULL;
}

static void test_strange_answers(void **state)
{
	static const struct {
		const char *answer, *error;
	} cases[] = {
		{"", "went away in the middle"},
		{"{\"a\":1}\n", "went away in the middle"},
		{"{\"a\":", "no JSON object"},
		{"HTTP/1.1 400\n", "no JSON object"},
		{"[]\n", "no JSON object"},
		{"{\"error\":\"too many clients; try again\"}\n", "longhauld: too many clients"},
	};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char err[256];
	json_t *all = json_array();
	pthread_t thread;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/strange", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 4), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strange_answer = cases[i].answer;
		assert_int_equal(pthread_create(&thread, NULL, strange, &fd), 0);
		assert_int_equal(
			client_request(addr.sun_path, "qp-show", collect, all, err, sizeof(err)),
			-1);
		if (!strstr(err, cases[i].error))
			fail_msg("expected \"%s\", got \"%s\"", cases[i].error, err);
		pthread_join(thread, NULL);
	}
	close(fd);
	unlink(addr.sun_path);
	json_decref(all);
}

/* A bug report when it is needed most: the daemon takes connections and says nothing. */
static void test_bundle_silent(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct options opt = {.socket = addr.sun_path};
	int used, n = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char err[256], file[64], nowhere[64];
	const struct command *cmd;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/silent", dir);
	snprintf(file, sizeof(file), "%s/b.tgz", dir);
	snprintf(nowhere, sizeof(nowhere), "%s/none/b.tgz", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 16), 0);
	cmd = command_find(1, WORDS("bundle"), &used, err, sizeof(err));
	client_patience_s = 1;
	assert_int_equal(cmd->run(cmd, &opt, 1, WORDS(nowhere)), 1);
	assert_int_equal(poll(&p, 1, 0), 0); /* told before anything is asked */
	assert_int_equal(cmd->run(cmd, &opt, 1, WORDS(file)), 0);
	client_patience_s = 10;
	for (; poll(&p, 1, 0) > 0; n++)
		close(accept(fd, NULL, NULL));
	assert_int_equal(n, 1);
	assert_int_equal(access(file, R_OK), 0);
	close(fd);
	unlink(file);
	unlink(addr.sun_path);
}

/* A table takes two looks for its rates. A daemon that does not answer the first is not asked
 * again: it may take ten seconds each time. */
static void test_asked_once(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct options opt = {.socket = addr.sun_path, .mode = RENDER_TABLE};
	int used, fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	const struct command *cmd;
	pthread_t thread;
	char err[256];

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/once", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 4), 0);
	strange_answer = "";
	assert_int_equal(pthread_create(&thread, NULL, strange, &fd), 0);
	cmd = command_find(1, WORDS("qp"), &used, err, sizeof(err));
	assert_int_equal(cmd->run(cmd, &opt, 0, NULL), 1);
	pthread_join(thread, NULL);
	assert_int_equal(poll(&p, 1, 0), 0);
	close(fd);
	unlink(addr.sun_path);
}

/* A daemon with three connections, the second of which goes as soon as it has shown it. */
static char forgetful_heard[1024];
static void *forgetful(void *arg)
{
	char req[256];
	ssize_t n;
	int fd;

	for (; (fd = accept(*(int *)arg, NULL, NULL)) >= 0; close(fd)) {
		size_t used = strlen(forgetful_heard);

		n = recv(fd, req, sizeof(req) - 1, 0);
		if (n <= 0)
			continue;
		req[n] = '\0';
		snprintf(forgetful_heard + used, sizeof(forgetful_heard) - used, "%s", req);
		if (strstr(req, "qp-show"))
			for (int id = 1; id <= 3; id++)
				dprintf(fd, "{\"id\":%d,\"lqpn\":5,\"rqpn\":6}\n", id);
		else if (strstr(req, "\"id\":2"))
			dprintf(fd, "{\"released\":false,\"bypassed\":false,\"gone\":true}\n");
		else
			dprintf(fd, "{\"released\":true,\"bypassed\":true}\n");
		dprintf(fd, "{\"end\":true}\n");
	}
	return NULL;
}

/* What one command prints while it talks with that daemon. */
static void check_forgetful(const struct options *opt, int fd, command_fn run, int n, char **words,
			    const char *expected)
{
	FILE *out = tmpfile();
	int keep = dup(STDOUT_FILENO);
	pthread_t thread;
	char text[256];
	size_t len;

	assert_non_null(out);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(pthread_create(&thread, NULL, forgetful, &fd), 0);
	fflush(stdout);
	assert_true(dup2(fileno(out), STDOUT_FILENO) >= 0);
	n = run(NULL, opt, n, words);
	fflush(stdout);
	assert_true(dup2(keep, STDOUT_FILENO) >= 0);
	shutdown(fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	rewind(out);
	len = fread(text, 1, sizeof(text) - 1, out);
	text[len] = '\0';
	fclose(out);
	close(keep);
	assert_int_equal(n, 0);
	assert_string_equal(text, expected);
}

/* Of many connections one is gone: what was asked for is done to all others. */
static void test_some_gone(void **state)
{
	const struct {
		command_fn run;
		int n;
		char **words;
		const char *said;
	} cases[] = {
		{run_release, 1, WORDS("all"),
		 "released 2 connections (all): what is in custody is delivered first, and later "
		 "requests are held again\n1 connection was gone meanwhile\n"},
		{run_bypass, 3, WORDS("on", "lqpn", "5"),
		 "bypass is on for 2 connections (lqpn 5)\n1 connection was gone meanwhile\n"},
		{run_bypass, 3, WORDS("off", "id", "3"), "bypass is off for 1 connection (id 3)\n"},
	};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct options opt = {.socket = addr.sun_path};

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/forgetful", dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
		forgetful_heard[0] = '\0';
		check_forgetful(&opt, fd, cases[i].run, cases[i].n, cases[i].words, cases[i].said);
		assert_non_null(strstr(forgetful_heard, "\"id\":3")); /* the last one, too */
		close(fd);
		unlink(addr.sun_path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),		cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_complete_values), cmocka_unit_test(test_members_known),
		cmocka_unit_test(test_strange_answers), cmocka_unit_test(test_some_gone),
		cmocka_unit_test(test_asked_once),	cmocka_unit_test(test_bundle_silent),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

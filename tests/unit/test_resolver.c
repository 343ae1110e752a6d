// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The process that looks up names: it answers, fails in words, and ends when nobody wants it. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/resolver.h"

#define PATIENCE_MS 30000

static struct resolver_answer wait_answer(struct resolver *r)
{
	struct pollfd p = {.fd = resolver_fd(r), .events = POLLIN};
	struct resolver_answer a;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(resolver_next(r, &a), 0);
	return a;
}

/* A label of 64 characters is no name: no name server is asked for it. */
#define NO_NAME "a234567890123456789012345678901234567890123456789012345678901234.example"

static void test_answers(void **state)
{
	struct resolver *r = resolver_start();
	struct resolver_answer a;
	struct ip_addr want;

	(void)state;
	assert_non_null(r);
	assert_int_equal(resolver_next(r, &a), -EAGAIN);
	assert_true(resolver_ask(r, 7, "localhost", AF_INET));
	assert_true(resolver_ask(r, 8, "192.0.2.7", AF_UNSPEC));
	assert_true(resolver_ask(r, 9, NO_NAME, AF_UNSPEC));
	assert_true(resolver_ask(r, 10, "192.0.2.7", AF_INET6));
	a = wait_answer(r);
	assert_int_equal(a.tag, 7);
	assert_string_equal(a.name, "localhost");
	assert_string_equal(a.error, "");
	assert_int_equal(ip_addr_parse("127.0.0.1", &want), 0);
	assert_true(ip_addr_eq(&a.addr, &want));
	a = wait_answer(r);
	assert_int_equal(a.tag, 8);
	assert_int_equal(ip_addr_parse("192.0.2.7", &want), 0);
	assert_true(ip_addr_eq(&a.addr, &want));
	a = wait_answer(r);
	assert_int_equal(a.tag, 9);
	assert_true(a.error[0]);
	a = wait_answer(r);
	assert_true(a.error[0]);
	resolver_stop(r);
	/* the helper has no other reason to live */
	assert_true(wait(NULL) > 0);
}

/* A helper that has ended is noticed; asking it does no harm. */
static void test_gone(void **state)
{
	struct resolver *r = resolver_start();
	struct pollfd p;
	struct resolver_answer a;

	(void)state;
	assert_non_null(r);
	p = (struct pollfd){.fd = resolver_fd(r), .events = POLLIN};
	/* half a question ends it */
	assert_int_equal(send(resolver_fd(r), "x", 1, 0), 1);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(resolver_next(r, &a), -EPIPE);
	assert_false(resolver_ask(r, 1, "localhost", AF_UNSPEC));
	resolver_stop(r);
	resolver_stop(NULL);
	assert_true(wait(NULL) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

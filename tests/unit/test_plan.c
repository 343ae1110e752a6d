// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul plan: the arithmetic, against figures computed by hand; and the command's answers. How
 * true the arithmetic is, scenario/test_plan shows.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/command.h"
#include "cli/plan_cost.h"
#include "cli/plan_model.h"

#define MIB 1048576.0
#define GIB 1073741824.0

static struct plan_link link_of(double gbps, double ms, double loss)
{
	return (struct plan_link){.rate = gbps * 125e6,
				  .rtt = ms / 1e3,
				  .loss = loss,
				  .mtu = 4096,
				  .outstanding = 128};
}

static void close_to(double v, double want)
{
	if (!(fabs(v - want) <= want * 0.005))
		fail_msg("%g instead of %g", v, want);
}

static void test_pool(void **state)
{
	struct plan_link l = link_of(10, 100, 0);

	(void)state;
	close_to(plan_bdp(&l), 125e6);
	assert_int_equal(plan_rounds(&l), 0);
	close_to(plan_want(&l), 250e6);
	close_to(plan_pool(&l), 256 * MIB);
	/* 30,518 packets: 30 are lost, and parity does not make one in 60 round trips */
	l.loss = 1e-3;
	assert_int_equal(plan_rounds(&l), 1);
	close_to(plan_want(&l), 500e6);
	close_to(plan_pool(&l), 512 * MIB);
	l.loss = 1e-2;
	assert_int_equal(plan_rounds(&l), 1);
	close_to(plan_pool_least(&l), 250e6);
	l.mtu = 1024;
	assert_int_equal(plan_rounds(&l), 2);
	close_to(plan_want(&l), 250e6 * 3 * 1.05);
	/* the default, and the most */
	l = link_of(1, 10, 0.001);
	close_to(plan_pool(&l), 256 * MIB);
	l = link_of(400, 300, 0);
	close_to(plan_pool(&l), 28672 * MIB);
	l.loss = 0.01;
	close_to(plan_pool(&l), 64 * GIB);
}

static void test_goodput(void **state)
{
	struct plan_link l = link_of(10, 100, 0);
	struct plan_goodput g;

	(void)state;
	/* 16 packets of 58 bytes, a RETH; 128 x 64 KiB a round trip (doc/pictures/bench-wan.txt) */
	close_to(plan_ceiling(&l, 65536) * 8, 9.858e9);
	g = plan_goodput(&l, 65536, 1);
	close_to(g.bare * 8, 0.6711e9);
	close_to(g.honest, g.bare);
	close_to(g.early * 8, 9.858e9);
	assert_int_equal(g.limit, PLAN_BY_LINK);
	/* 2,048 packets, two of which are lost: 0.2867 there */
	l.loss = 1e-3;
	g = plan_goodput(&l, 65536, 1);
	close_to(g.bare * 8, 0.2860e9);
	/* two frames of parity for 32 packets */
	close_to(g.early * 8, 9.848e9 / 1.0625);
	assert_true(g.honest > g.bare && g.honest < 0.6711e9 / 8);
	/* 4 us a packet of 4 KiB */
	g = plan_goodput(&l, 65536, 4000);
	close_to(g.early, 1.024e9);
	assert_int_equal(g.limit, PLAN_BY_CORE);
	/* one message at a time, answered after 50 us */
	l.outstanding = 1;
	g = plan_goodput(&l, 4096, 1);
	close_to(g.early, 4096 / (50e-6 + 4170 / 1.25e9));
	assert_int_equal(g.limit, PLAN_BY_ANSWER);
	close_to(plan_packet_ns(4096, 0.04, 0.05), 2200 + 4096 * 0.53);
	/* 1,572,864 PSNs of 1 KiB a round trip; with loss, for three of these */
	l = link_of(400, 300, 0);
	l.mtu = 1024;
	g = plan_goodput(&l, 65536, 0.1);
	close_to(g.early, 1572864.0 * 1024 / 0.3);
	assert_int_equal(g.limit, PLAN_BY_SPAN);
	l.loss = 1e-2;
	close_to(plan_goodput(&l, 65536, 0.1).early, 1572864.0 * 1024 / 0.3 / 3);
}

static void sane(const struct plan_link *l, double size, double packet_ns)
{
	struct plan_goodput g = plan_goodput(l, size, packet_ns);
	double most = plan_ceiling(l, size) * 1.000001;

	assert_true(g.bare >= 0 && g.bare <= most);
	assert_true(g.early >= 0 && g.early <= most);
	assert_true(g.honest >= 0 && g.honest <= g.early);
	assert_true(g.limit < PLAN_LIMITS);
	assert_true(plan_pool(l) >= 256 * MIB && plan_pool(l) <= 64 * GIB);
	assert_true(plan_want(l) >= plan_pool_least(l));
}

static void test_extremes(void **state)
{
	static const double rates[] = {0, 0.001, 400, 10000}, rtts[] = {0, 1, 300, 10000};
	static const double losses[] = {0, 1e-9, 0.5, 1};
	static const uint32_t mtus[] = {100, 256, 4096};

	(void)state;
	for (int i = 0; i < 4 * 4 * 4 * 3; i++) {
		struct plan_link l = link_of(rates[i % 4], rtts[i / 4 % 4], losses[i / 16 % 4]);

		l.mtu = mtus[i / 64];
		for (double size = 1; size < 1e10; size *= 37)
			sane(&l, size, 1000);
	}
}

/* More of @a than of @b is needed, and not more is carried. */
static void worse(const struct plan_link *a, const struct plan_link *b)
{
	struct plan_goodput x = plan_goodput(a, 65536, 1), y = plan_goodput(b, 65536, 1);

	assert_true(plan_want(a) >= plan_want(b) && plan_pool(a) >= plan_pool(b));
	assert_true(x.bare <= y.bare && x.honest <= y.honest && x.early <= y.early);
}

static void test_monotone(void **state)
{
	static const double up[] = {0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1};

	(void)state;
	for (int i = 1; i < 7; i++) {
		struct plan_link a = link_of(25, 40, up[i]), b = link_of(25, 40, up[i - 1]);

		worse(&a, &b);
	}
	for (int i = 1; i < 12; i++) {
		struct plan_link a = link_of(10, 1 << i, 1e-3), b = link_of(10, 1 << (i - 1), 1e-3);

		worse(&a, &b);
		a = link_of(1 << i, 20, 1e-3);
		b = link_of(1 << (i - 1), 20, 1e-3);
		assert_true(plan_pool(&a) >= plan_pool(&b));
		assert_true(plan_goodput(&a, 65536, 1).early >= plan_goodput(&b, 65536, 1).early);
	}
}

static void test_cost(void **state)
{
	double copy = 0, crc = 0;

	(void)state;
	assert_true(plan_cost(&copy, &crc));
	assert_true(copy > 0 && copy < 100 && crc > 0 && crc < 100);
}

/* What the command writes to descriptor @fd, into @text. */
static int run(int fd, const struct options *opt, int argc, char **argv, char *text, size_t len)
{
	FILE *out = tmpfile();
	int keep = dup(fd), rc;

	assert_non_null(out);
	fflush(stdout);
	assert_true(dup2(fileno(out), fd) >= 0);
	rc = run_plan(NULL, opt, argc, argv);
	fflush(stdout);
	assert_true(dup2(keep, fd) >= 0);
	close(keep);
	rewind(out);
	text[fread(text, 1, len - 1, out)] = '\0';
	fclose(out);
	return rc;
}

static void test_errors(void **state)
{
	static const struct {
		const char *value[PLAN_OPTIONS], *error;
	} bad[] = {
		{{0},
		 "plan needs the rate of the link and its round trip; write longhaul plan "
		 "--rate 10G --rtt 50ms"},
		{{"10G"}, "plan needs the rate"},
		{{NULL, "50ms"}, "plan needs the rate"},
		{{"fast", "50ms"}, "--rate 'fast' is no rate; write bits per second"},
		{{"0", "50ms"}, "--rate '0' is no rate of a link; write 1M or more"},
		{{"20000G", "50ms"}, "--rate '20000G' is out of range"},
		{{"10G", "50"}, "--rtt '50' has no unit; write 50s or 50ms"},
		{{"10G", "0ms"}, "--rtt '0ms' is out of range; write a duration from 1ms to 10s"},
		{{"10G", "50ms", "1"}, "--loss '1' is no share of packets; write a number from 0"},
		{{"10G", "50ms", "0.1%"}, "--loss '0.1%' is no share"},
		{{"10G", "50ms", "nan"}, "--loss 'nan' is no share"},
		{{"10G", "50ms", NULL, "100"}, "--mtu '100' is no path MTU"},
		{{"10G", "50ms", NULL, NULL, "0"}, "--outstanding '0' is out of range; write a"},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct options opt = {0};

		memcpy(opt.plan, bad[i].value, sizeof(opt.plan));
		assert_int_equal(run(STDERR_FILENO, &opt, 0, NULL, text, sizeof(text)), 1);
		if (strncmp(text, "longhaul: ", 10) || !strstr(text, bad[i].error) ||
		    strchr(text, '\n') != text + strlen(text) - 1)
			fail_msg("\"%s\" instead of \"%s\"", text, bad[i].error);
	}
	assert_int_equal(run(STDERR_FILENO, &(struct options){0}, 1, (char *[]){"10G", NULL}, text,
			     sizeof(text)),
			 1);
	assert_non_null(strstr(text, "plan takes no word such as '10G'"));
}

static void test_output(void **state)
{
	struct options opt = {.plan = {"10G", "100ms", "1e-3"}};
	char text[8192];
	json_t *list, *o;

	(void)state;
	assert_int_equal(run(STDOUT_FILENO, &opt, 0, NULL, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "pool = 512M at both ends;"));
	assert_non_null(strstr(text, "multi-buffer"));
	assert_non_null(strstr(text, "MESSAGE"));
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		assert_true(end - line <= 100);
	opt.mode = RENDER_JSON;
	opt.plan[PLAN_MTU] = "1024";
	opt.plan[PLAN_OUTSTANDING] = "16";
	assert_int_equal(run(STDOUT_FILENO, &opt, 0, NULL, text, sizeof(text)), 0);
	list = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(list), 9);
	o = json_array_get(list, 0);
	assert_int_equal(json_integer_value(json_object_get(o, "rate")), 10000000000);
	assert_int_equal(json_integer_value(json_object_get(o, "path-mtu")), 1024);
	assert_int_equal(json_integer_value(json_object_get(o, "outstanding")), 16);
	assert_true(json_real_value(json_object_get(o, "cores")) > 0);
	o = json_array_get(list, 8);
	assert_int_equal(json_integer_value(json_object_get(o, "message-bytes")), 64 << 20);
	assert_true(json_is_integer(json_object_get(o, "early-rate")));
	json_decref(list);
}

/* As if others had the processor, six milliseconds after each two of ours. */
static void others(int signal)
{
	(void)signal;
	nanosleep(&(struct timespec){.tv_nsec = 6000000}, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 2000}, NULL);
}

static double own_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A busy machine is not thought to be slow: all rounds took no less than the fastest. */
static void test_busy(void **state)
{
	const double bytes = 6.0 * 15000 * 4096; /* ROUNDS, SLOTS and PACKET of plan_cost.c */
	double copy, crc, from, spent;

	(void)state;
	signal(SIGALRM, others);
	others(SIGALRM);
	from = own_time_ns();
	assert_true(plan_cost(&copy, &crc));
	spent = own_time_ns() - from;
	signal(SIGALRM, SIG_IGN);
	if ((copy + crc) * bytes > spent)
		fail_msg("%g and %g ns a byte, but %g ns were spent", copy, crc, spent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy),	 cmocka_unit_test(test_pool),
		cmocka_unit_test(test_goodput),	 cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_monotone), cmocka_unit_test(test_cost),
		cmocka_unit_test(test_errors),	 cmocka_unit_test(test_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

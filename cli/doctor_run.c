// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The command: asks the daemon, several times within a second, and prints what doctor.c finds.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/filter.h"
#include "cli/ping.h"

#define NOT_ASKED  2 /* exit status */
#define SAMPLES	   4 /* of lanes between the two looks: what is outstanding changes quickly */
#define APART_S	   0.2
#define LANES_MOST 4000 /* in samples, about */
/* Of the first packet of a WRITE, from the IP header on. */
#define HEADERS4   60
#define HEADERS6   80

/* The walk compares ports only. Each object costs the daemon time between packets. */
static const struct {
	const char *name;
	bool before_walk;
} views[] = {
	{"daemon", false}, {"status", false}, {"port", true},  {"peer", false},
	{"rule", false},   {"qp", false},     {"lane", false}, {"stats", true},
};

/* Views as members of one object; NULL with @err. @all: not only what the walk compares. */
static json_t *ask(const struct options *opt, bool all, char *err, size_t errlen)
{
	json_t *look = json_object();
	char cmd[32];

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		json_t *list;

		if (!all && !views[i].before_walk)
			continue;
		snprintf(cmd, sizeof(cmd), "%s-show", views[i].name);
		list = client_collect(opt->socket, cmd, err, errlen);
		if (!list) {
			json_decref(look);
			return NULL;
		}
		json_object_set_new(look, views[i].name, list);
	}
	return look;
}

/* Of each lane of @look the most outstanding that was seen, as a member "...-most" of it. @most has
 * what earlier samples saw, and learns it. */
static void sample(json_t *most, const json_t *lanes)
{
	static const char *const keys[] = {"reads-pending", "custody-messages"};
	char name[64], member[32];
	json_t *o;
	size_t i;

	json_array_foreach (lanes, i, o) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			json_int_t v = doctor_number(o, keys[k]), had;

			snprintf(name, sizeof(name), "%lld %s %s",
				 (long long)doctor_number(o, "id"), doctor_text(o, "direction"),
				 keys[k]);
			snprintf(member, sizeof(member), "%s-most", keys[k]);
			had = doctor_number(most, name);
			json_object_set_new(most, name, json_integer(v > had ? v : had));
			json_object_set_new(o, member, json_integer(v > had ? v : had));
		}
	}
}

/* Two looks; for a host (@host) with samples between them. False with @err. */
static bool look_twice(const struct options *opt, bool host, json_t **before, json_t **now,
		       char *err, size_t errlen)
{
	json_t *most = json_object(), *lanes;
	size_t seen = 0;
	bool good;

	*now = NULL;
	*before = ask(opt, host, err, errlen);
	good = *before != NULL;
	for (int i = 0; i < SAMPLES && good; i++) {
		cli_sleep(APART_S);
		if (!host || seen > LANES_MOST)
			continue;
		lanes = client_collect(opt->socket, "lane-show", err, errlen);
		good = lanes != NULL;
		sample(most, lanes);
		seen += json_array_size(lanes);
		json_decref(lanes);
	}
	if (good)
		cli_sleep(APART_S);
	if (good)
		*now = ask(opt, true, err, errlen);
	sample(most, doctor_list(*now, "lane"));
	json_decref(most);
	return *now != NULL;
}

/* Ping the host that does not answer; @of: only that one, or NULL. */
static void ping_silent(json_t *now, const char *of)
{
	const char *host;
	unsigned int path_mtu, len;
	json_int_t ms = doctor_silent(doctor_list(now, "lane"), of, &host, &path_mtu);
	struct ping p;

	if (!ms)
		return;
	len = path_mtu + (strchr(host, ':') ? HEADERS6 : HEADERS4);
	if (ping_host(host, len, &p))
		json_object_set_new(now, "ping",
				    json_pack("[{s:s, s:I, s:b, s:b, s:i, s:i}]", "address", host,
					      "silent-ms", ms, "answers", p.answers, "no-route",
					      p.no_route, "carried", (int)p.carried, "length",
					      (int)len));
}

static void print(const json_t *findings)
{
	const json_t *o;
	size_t i;

	json_array_foreach (findings, i, o) {
		const char *verdict = doctor_text(o, "verdict");
		bool skipped = !strcmp(verdict, "skipped");

		printf("%-6s %-9s  %s\n",
		       skipped			  ? "-"
		       : strcmp(verdict, "wrong") ? verdict
						  : "WRONG",
		       doctor_text(o, "check"),
		       skipped ? "not looked at" : doctor_text(o, "reason"));
		if (*doctor_text(o, "mend"))
			printf("%18smend: %s\n", "", doctor_text(o, "mend"));
	}
}

/* The address of `host ADDRESS' into @host, as the daemon writes it; NULL with @err if there is
 * something else. */
static const char *host_of(int argc, char **argv, char host[INET6_ADDRSTRLEN], char *err,
			   size_t errlen)
{
	unsigned char bytes[16];
	unsigned int bits;
	int family;

	if (argc == 1 && *argv[0] && !strncmp("host", argv[0], strlen(argv[0])))
		snprintf(err, errlen, "no address after '%.40s'; write host ADDRESS", argv[0]);
	else if (argc != 2 || !*argv[0] || strncmp("host", argv[0], strlen(argv[0])))
		snprintf(err, errlen, "doctor takes nothing, or host ADDRESS, not '%.40s'",
			 argv[0]);
	else if (strchr(argv[1], '/') || !filter_prefix(argv[1], &family, bytes, &bits))
		snprintf(err, errlen, "host is an address, not '%.40s'", argv[1]);
	else
		return inet_ntop(family, bytes, host, INET6_ADDRSTRLEN);
	return NULL;
}

static int report(const struct options *opt, json_t *findings, bool walk)
{
	bool wrong = doctor_wrong(findings);

	if (opt->mode == RENDER_JSON || opt->mode == RENDER_PRETTY) {
		json_dumpf(findings, stdout, opt->mode == RENDER_PRETTY ? JSON_INDENT(2) : 0);
		putchar('\n');
	} else {
		print(findings);
		if (walk && !wrong)
			puts("Nothing is wrong. If one host is slow: longhaul doctor host ADDRESS");
	}
	if (fflush(stdout)) {
		cli_error("cannot write the answer: %m");
		return NOT_ASKED;
	}
	return wrong;
}

int run_doctor(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	json_t *now, *before, *findings;
	const char *host = NULL;
	struct doctor_look d;
	char err[1024], address[INET6_ADDRSTRLEN];
	int rc = NOT_ASKED;

	(void)cmd;
	if (argc)
		host = host_of(argc, argv, address, err, sizeof(err));
	if (argc && !host) {
		cli_error("%s", err);
		return NOT_ASKED;
	}
	if (look_twice(opt, host != NULL, &before, &now, err, sizeof(err))) {
		ping_silent(now, host);
		d = (struct doctor_look){
			.now = now,
			.before = before,
			.seconds = (double)(doctor_stat(now, "daemon", "uptime-ms") -
					    doctor_stat(before, "daemon", "uptime-ms")) /
				   1e3};
		findings = host ? doctor_host(&d, host) : doctor_walk(&d);
		rc = report(opt, findings, !host);
		json_decref(findings);
	} else {
		cli_error("%s", err);
	}
	json_decref(before);
	json_decref(now);
	return rc;
}

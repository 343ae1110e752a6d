// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul capture: frames of one queue pair at both ports, from the daemon into a pcapng file.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/operate.h"
#include "cli/pcapng.h"

#define FRAME_BYTES 8192

struct capture {
	FILE *f;
	long frames, lost, most;
	bool begun;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
	(void)signo;
	interrupted = 1;
}

static uint32_t from_hex(const char *text, uint8_t *out)
{
	uint32_t n = 0;
	unsigned int byte;

	while (n < FRAME_BYTES && sscanf(text + 2 * (size_t)n, "%2x", &byte) == 1)
		out[n++] = (uint8_t)byte;
	return n;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t ? t : "";
}

static void put_frame(struct capture *c, const json_t *o)
{
	uint8_t data[FRAME_BYTES];
	struct pcapng_packet p = {
		.interface = strcmp(text_of(o, "port"), "lan") ? 1 : 0,
		.in = json_is_true(json_object_get(o, "in")),
		.time_ns = (uint64_t)json_integer_value(json_object_get(o, "time-ns")),
		.data = data,
		.kept = from_hex(text_of(o, "data"), data),
		.len = (uint32_t)json_integer_value(json_object_get(o, "length")),
		.comment = text_of(o, "comment"),
	};

	pcapng_packet(c->f, &p);
	c->frames++;
}

static bool take(void *ctx, json_t *o)
{
	struct capture *c = ctx;
	const char *event = text_of(o, "event");

	if (!c->begun) {
		pcapng_begin(c->f, (uint32_t)json_integer_value(json_object_get(o, "snap")));
		fprintf(stderr, "capturing; end with Ctrl-C\n");
		c->begun = true;
	} else if (!strcmp(event, "frame")) {
		put_frame(c, o);
	} else if (!strcmp(event, "lost")) {
		c->lost += json_integer_value(json_object_get(o, "lines"));
	}
	fflush(c->f);
	return !interrupted && !ferror(c->f) && (!c->most || c->frames < c->most);
}

/* The one connection that the words select; NULL with @err. */
static json_t *choose_one(const struct options *opt, int argc, char **argv, char *err,
			  size_t errlen)
{
	json_t *chosen = operate_choose(opt, argc, argv, err, errlen), *one = NULL;

	if (!chosen)
		return NULL;
	if (json_array_size(chosen) == 1)
		one = json_incref(json_array_get(chosen, 0));
	else
		snprintf(err, errlen, "%zu connections match; say which, for instance lqpn 0x11",
			 json_array_size(chosen));
	json_decref(chosen);
	return one;
}

int run_capture(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal}; /* no SA_RESTART: reading ends */
	struct capture c = {.most = opt->count};
	char err[1024] = "";
	json_t *qp;
	int rc;

	(void)cmd;
	if (argc < 1)
		return cli_error("write capture FILE KEY VALUE ..., as of qp show");
	qp = choose_one(opt, argc - 1, argv + 1, err, sizeof(err));
	if (!qp)
		return cli_error("%s", err);
	c.f = strcmp(argv[0], "-") ? fopen(argv[0], "w") : stdout;
	if (!c.f) {
		json_decref(qp);
		return cli_error("cannot write %s: %m", argv[0]);
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	rc = client_follow(opt->socket, operate_request("capture", qp), take, &c, err, sizeof(err));
	json_decref(qp);
	rc = ferror(c.f) || (c.f != stdout && fclose(c.f)) ? -2 : rc;
	fprintf(stderr, "%ld frames captured, %ld lost\n", c.frames, c.lost);
	if (rc == -2)
		return cli_error("cannot write %s: %m", argv[0]);
	return rc ? cli_error("%s", err) : 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Commands that change something: release, bypass, reload, clear. Connections are selected as for
 * `qp show`, and sent to the daemon as id and QPNs.
 */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/operate.h"

static void take_answer(void *ctx, json_t *object)
{
	json_t **out = ctx;

	json_decref(*out);
	*out = json_incref(object);
}

/* The one object of the answer (a new reference), NULL with @err. Takes over @req. */
static json_t *act(const char *socket, json_t *req, char *err, size_t errlen)
{
	json_t *out = NULL;

	if (client_ask(socket, req, take_answer, &out, err, errlen)) {
		json_decref(out);
		return NULL;
	}
	return out ? out : json_object();
}

json_t *operate_choose(const struct options *opt, int argc, char **argv, char *err, size_t errlen)
{
	const struct object *qp = object_find("qp");
	struct filter filter;
	json_t *all, *chosen, *o;
	size_t i;

	if (filter_parse(qp, argc, argv, &filter, err, errlen))
		return NULL;
	all = client_collect(opt->socket, "qp-show", err, errlen);
	if (!all)
		return NULL;
	chosen = json_array();
	json_array_foreach (all, i, o)
		if (filter_match(&filter, o))
			json_array_append(chosen, o);
	json_decref(all);
	if (json_array_size(chosen) || filter_known(qp, &filter, opt->socket, err, errlen)) {
		if (json_array_size(chosen))
			return chosen;
	} else {
		snprintf(err, errlen, "no connection matches; see longhaul qp show");
	}
	json_decref(chosen);
	return NULL;
}

json_t *operate_request(const char *cmd, const json_t *qp)
{
	return json_pack("{s:s, s:O, s:O, s:O}", "cmd", cmd, "id", json_object_get(qp, "id"),
			 "lqpn", json_object_get(qp, "lqpn"), "rqpn", json_object_get(qp, "rqpn"));
}

/* Send @cmd for each of @chosen, with @on if not NULL. Returns how many answers have @key true, -1
 * on error. *@gone counts connections that are gone meanwhile, which is no error. */
static int each(const struct options *opt, const json_t *chosen, const char *cmd, const bool *on,
		const char *key, unsigned int *gone, char *err, size_t errlen)
{
	json_t *qp;
	size_t i;
	int n = 0;

	*gone = 0;
	json_array_foreach (chosen, i, qp) {
		json_t *req = operate_request(cmd, qp), *answer;

		if (on)
			json_object_set_new(req, "on", json_boolean(*on));
		answer = act(opt->socket, req, err, errlen);
		if (!answer)
			return -1;
		n += json_is_true(json_object_get(answer, key));
		*gone += json_is_true(json_object_get(answer, "gone"));
		json_decref(answer);
	}
	return n;
}

/* The words of the command. */
static const char *scope(int argc, char **argv, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < argc && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? " " : "", argv[i]);
	return buf;
}

static void say_gone(unsigned int gone)
{
	if (gone)
		printf("%u connection%s gone meanwhile\n", gone, gone == 1 ? " was" : "s were");
}

int run_release(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	bool all = argc == 1 && !strcmp(argv[0], "all");
	unsigned int gone;
	char err[1024], asked[256];
	json_t *chosen;
	int n;

	(void)cmd;
	if (!argc)
		return cli_error("release what? write release KEY VALUE ..., as of qp show, or "
				 "release all");
	if (argc > 1 && !strcmp(argv[0], "all"))
		return cli_error("release all takes no more words; leave out all, or what follows");
	chosen = operate_choose(opt, all ? 0 : argc, argv, err, sizeof(err));
	if (!chosen)
		return cli_error("%s", err);
	n = each(opt, chosen, "release", NULL, "released", &gone, err, sizeof(err));
	json_decref(chosen);
	if (n < 0)
		return cli_error("%s", err);
	printf("released %d connection%s (%s): what is in custody is delivered first, and later "
	       "requests are held again\n",
	       n, n == 1 ? "" : "s", scope(argc, argv, asked, sizeof(asked)));
	say_gone(gone);
	return 0;
}

static int bypass_request(const struct options *opt, json_t *req, bool on, const char *what)
{
	char err[1024];
	json_t *answer;

	json_object_set_new(req, "on", json_boolean(on));
	answer = act(opt->socket, req, err, sizeof(err));
	if (!answer)
		return cli_error("%s", err);
	json_decref(answer);
	printf("bypass is %s for %s\n", on ? "on" : "off", what);
	return 0;
}

int run_bypass(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	bool on = argc && !strcmp(argv[0], "on"), off = argc && !strcmp(argv[0], "off");
	unsigned int gone;
	char err[1024], asked[256];
	json_t *chosen;
	int n;

	(void)cmd;
	if (!on && !off)
		return cli_error("write bypass on or bypass off, then all, rule NAME or KEY VALUE "
				 "..., as of qp show");
	argc--, argv++;
	if (!argc)
		return cli_error("bypass what? all, rule NAME or KEY VALUE ..., as of qp show");
	if (argc == 1 && !strcmp(argv[0], "all"))
		return bypass_request(opt, json_pack("{s:s, s:b}", "cmd", "bypass", "all", 1), on,
				      "everything");
	if (argc == 2 && !strcmp(argv[0], "rule"))
		return bypass_request(opt,
				      json_pack("{s:s, s:s}", "cmd", "bypass", "rule", argv[1]), on,
				      scope(argc, argv, asked, sizeof(asked)));
	chosen = operate_choose(opt, argc, argv, err, sizeof(err));
	if (!chosen)
		return cli_error("%s", err);
	n = each(opt, chosen, "bypass", &on, "bypassed", &gone, err, sizeof(err));
	if (n < 0) {
		json_decref(chosen);
		return cli_error("%s", err);
	}
	n = (int)json_array_size(chosen) - (int)gone;
	printf("bypass is %s for %d connection%s (%s)\n", on ? "on" : "off", n, n == 1 ? "" : "s",
	       scope(argc, argv, asked, sizeof(asked)));
	say_gone(gone);
	json_decref(chosen);
	return 0;
}

int run_reload(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	char err[1024];
	json_t *answer;
	json_int_t rules;

	(void)cmd, (void)argv;
	if (argc)
		return cli_error("reload takes no words: longhauld reads its own file again");
	answer = act(opt->socket, json_pack("{s:s}", "cmd", "reload"), err, sizeof(err));
	if (!answer)
		return cli_error("%s", err);
	rules = json_integer_value(json_object_get(answer, "rules"));
	printf("configuration read again, %lld rule%s\n", (long long)rules, rules == 1 ? "" : "s");
	json_decref(answer);
	return 0;
}

int run_clear(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	char err[1024];
	json_t *answer;

	(void)cmd, (void)argv;
	if (argc)
		return cli_error("clear takes no words: it clears the counters of stats show");
	answer = act(opt->socket, json_pack("{s:s}", "cmd", "stats-clear"), err, sizeof(err));
	if (!answer)
		return cli_error("%s", err);
	printf("%lld counters cleared\n",
	       (long long)json_integer_value(json_object_get(answer, "cleared")));
	json_decref(answer);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/filter.h"

struct show {
	struct filter filter;
	struct render *render;
};

static void take(void *ctx, json_t *object)
{
	struct show *s = ctx;

	if (filter_match(&s->filter, object))
		render_add(s->render, object);
}

int run_show(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	/* What was not whole must not look whole: the answer is written when all of it is there. */
	char request[64], err[1024] = "", *text = NULL;
	size_t len = 0;
	struct show s;
	FILE *f;
	int rc;

	if (filter_parse(cmd->object, argc, argv, &s.filter, err, sizeof(err)))
		return cli_error("%s", err);
	f = open_memstream(&text, &len);
	s.render = f ? render_begin(cmd->object, opt->mode, f) : NULL;
	if (!s.render)
		return cli_error("out of memory");
	snprintf(request, sizeof(request), "%s-%s", cmd->object->name, cmd->verb);
	rc = client_request(opt->socket, request, take, &s, err, sizeof(err));
	if (render_end(s.render) && !rc) {
		rc = -1;
		snprintf(err, sizeof(err), "out of memory");
	}
	fclose(f);
	if (!rc && (fwrite(text, 1, len, stdout) != len || fflush(stdout))) {
		rc = -1;
		snprintf(err, sizeof(err), "cannot write the answer: %m");
	}
	free(text);
	return rc ? cli_error("%s", err) : 0;
}

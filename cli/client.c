// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int client_patience_s = 10;

static int connect_to(const char *path, char *err, size_t errlen)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = client_patience_s};
	const char *mend;
	int fd, e;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(err, errlen,
			 "socket path of more than %zu characters; give a shorter one with -s",
			 sizeof(addr.sun_path) - 1);
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) &&
	    !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	e = errno;
	if (fd >= 0)
		close(fd);
	mend = e == EACCES   ? "run as root or as a member of its group"
	       : e == EAGAIN ? "it does not answer; systemctl status longhauld"
			     : "is it running? systemctl start longhauld";
	snprintf(err, errlen, "cannot reach longhauld at %s: %s (%s)", path, strerror(e), mend);
	return -1;
}

/* Takes over @req. */
static int send_request(int fd, json_t *req)
{
	char line[4096];
	size_t len = json_dumpb(req, line, sizeof(line) - 1, JSON_COMPACT);

	json_decref(req);
	if (!len || len >= sizeof(line) - 1)
		return -1;
	line[len++] = '\n';
	return send(fd, line, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

/* Process one line of the answer: 1 when it was the last, 0 for an object, -1 on error. */
static int take_line(const char *line, client_fn fn, void *ctx, char *err, size_t errlen)
{
	json_error_t why;
	json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &why);
	const char *error = json_string_value(json_object_get(o, "error"));
	int rc = 0;

	if (!json_is_object(o)) {
		snprintf(err, errlen,
			 "longhauld answers with something that is no JSON object; is that its "
			 "socket?");
		rc = -1;
	} else if (error) {
		snprintf(err, errlen, "longhauld: %s", error);
		rc = -1;
	} else if (json_is_true(json_object_get(o, "end"))) {
		rc = 1;
	} else {
		if (fn)
			fn(ctx, o);
	}
	json_decref(o);
	return rc;
}

/* Connect, send @req (taken over); the stream of lines, NULL with @err. */
static FILE *begin(const char *path, json_t *req, char *err, size_t errlen)
{
	int fd = connect_to(path, err, errlen);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f) {
		json_decref(req);
		if (fd >= 0) {
			snprintf(err, errlen, "out of memory");
			close(fd);
		}
		return NULL;
	}
	/* A daemon without a free slot sends an error line and closes at once: show that, not our
	 * EPIPE. */
	(void)!send_request(fd, req);
	return f;
}

static void say_gone(const char *path, char *err, size_t errlen)
{
	if (errno == EAGAIN)
		snprintf(err, errlen,
			 "no answer from longhauld at %s within %d s; systemctl status longhauld",
			 path, client_patience_s);
	else
		snprintf(err, errlen,
			 "longhauld at %s went away in the middle of its answer; try again", path);
}

int client_ask(const char *path, json_t *req, client_fn fn, void *ctx, char *err, size_t errlen)
{
	FILE *f = begin(path, req, err, errlen);
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;

	if (!f)
		return -1;
	while (!rc) {
		errno = 0;
		if (getline(&line, &cap, f) < 0) {
			say_gone(path, err, errlen);
			rc = -1;
			break;
		}
		rc = take_line(line, fn, ctx, err, errlen);
	}
	free(line);
	fclose(f);
	return rc < 0 ? -1 : 0;
}

int client_request(const char *path, const char *cmd, client_fn fn, void *ctx, char *err,
		   size_t errlen)
{
	return client_ask(path, json_pack("{s:s}", "cmd", cmd), fn, ctx, err, errlen);
}

struct follow {
	client_follow_fn fn;
	void *ctx;
	bool on;
};

static void follow_line(void *ctx, json_t *object)
{
	struct follow *w = ctx;

	w->on = w->fn(w->ctx, object);
}

int client_follow(const char *path, json_t *req, client_follow_fn fn, void *ctx, char *err,
		  size_t errlen)
{
	struct follow w = {.fn = fn, .ctx = ctx, .on = true};
	FILE *f = begin(path, req, err, errlen);
	const struct timeval for_ever = {0};
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;

	if (!f)
		return -1;
	while (!rc && w.on) {
		errno = 0;
		if (getline(&line, &cap, f) < 0) {
			if (errno == EINTR)
				break;
			say_gone(path, err, errlen);
			rc = -1;
			break;
		}
		rc = take_line(line, follow_line, &w, err, errlen);
		/* the first line comes at once, the next ones when something happens */
		setsockopt(fileno(f), SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof(for_ever));
	}
	free(line);
	fclose(f);
	return rc < 0 ? -1 : 0;
}

static void append(void *ctx, json_t *object)
{
	json_array_append(ctx, object);
}

json_t *client_collect(const char *path, const char *cmd, char *err, size_t errlen)
{
	json_t *all = json_array();

	if (!client_request(path, cmd, append, all, err, errlen))
		return all;
	json_decref(all);
	return NULL;
}

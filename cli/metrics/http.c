// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libmicrohttpd's one thread answers one request after the other, so nothing here is locked. It
 * waits for the daemon's answer; that is asked for at most twice a second, however many ask.
 */
#include "cli/metrics/http.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/metrics/openmetrics.h"
#include "cli/metrics/snapshot.h"
#include "version.h"

#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TEXT	    "text/plain; version=0.0.4; charset=utf-8"

struct http {
	struct http_config cfg;
	struct snapshot now;
	struct MHD_Daemon *mhd;
};

static enum MHD_Result answer(struct MHD_Connection *c, unsigned int status, const char *type,
			      struct MHD_Response *r)
{
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Content-Security-Policy",
				"default-src 'self'; style-src 'self' 'unsafe-inline'");
	rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned int status, const char *type,
				   char *text, size_t len, bool free_it)
{
	return answer(c, status, type,
		      MHD_create_response_from_buffer(
			      len, text, free_it ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned int status, const char *text)
{
	return answer_text(c, status, "text/plain; charset=utf-8", (char *)text, strlen(text),
			   false);
}

static enum MHD_Result put_metrics(struct http *h, struct MHD_Connection *c)
{
	const char *accept =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool open = accept && strstr(accept, "application/openmetrics-text");
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return MHD_NO;
	snapshot_take(&h->now);
	openmetrics_write(f, &h->now, open, h->cfg.each);
	fclose(f);
	return answer_text(c, MHD_HTTP_OK, open ? OPENMETRICS : TEXT, text, len, true);
}

static enum MHD_Result put_data(struct http *h, struct MHD_Connection *c)
{
	json_t *all = json_object();
	char *text;

	json_object_set_new(all, "version", json_string(LONGHAUL_VERSION));
	if (snapshot_take(&h->now)) {
		json_object_set(all, "daemon", json_array_get(h->now.daemon, 0));
		json_object_set(all, "stats", h->now.stats);
		json_object_set(all, "peers", h->now.peers);
		json_object_set(all, "rules", h->now.rules);
		json_object_set(all, "alarms", h->now.alarms);
		json_object_set(all, "connections", h->now.qps);
	} else {
		json_object_set_new(all, "error", json_string(h->now.err));
	}
	json_object_set_new(all, "time-ms", json_integer((json_int_t)h->now.time_ms));
	text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	return text ? answer_text(c, MHD_HTTP_OK, "application/json", text, strlen(text), true)
		    : MHD_NO;
}

static enum MHD_Result put_file(struct MHD_Connection *c, const char *path, const char *type)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		return answer(c, MHD_HTTP_OK, type,
			      MHD_create_response_from_fd((uint64_t)st.st_size, fd));
	if (fd >= 0)
		close(fd);
	return refuse(c, MHD_HTTP_NOT_FOUND, "not installed\n");
}

static enum MHD_Result put_page(struct http *h, struct MHD_Connection *c, const char *url)
{
	static const struct {
		const char *url, *file, *type;
	} files[] = {
		{"/", "index.html", "text/html; charset=utf-8"},
		{"/status.js", "status.js", "text/javascript; charset=utf-8"},
		{"/status.css", "status.css", "text/css; charset=utf-8"},
	};
	char path[512];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(url, files[i].url))
			continue;
		snprintf(path, sizeof(path), "%s/%s", h->cfg.page, files[i].file);
		return put_file(c, path, files[i].type);
	}
	if (!strcmp(url, "/chart.js"))
		return put_file(c, h->cfg.chart, "text/javascript; charset=utf-8");
	return refuse(c, MHD_HTTP_NOT_FOUND, "there are /, /metrics and /data.json\n");
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_len, void **state)
{
	static int seen;
	struct http *h = ctx;

	(void)version, (void)body;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	if (!*state) { /* headers only so far: a GET's answer comes with the second call */
		*state = &seen;
		return MHD_YES;
	}
	if (*body_len) {
		*body_len = 0;
		return MHD_YES;
	}
	if (!strcmp(url, "/metrics"))
		return put_metrics(h, c);
	if (!strcmp(url, "/data.json"))
		return put_data(h, c);
	return put_page(h, c, url);
}

/* As many as there may be files, less a few for us; idle ones must not keep others out. */
static unsigned int client_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return 64;
	r.rlim_cur = r.rlim_max < HTTP_CLIENTS + 64 ? r.rlim_max : HTTP_CLIENTS + 64;
	setrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_cur > 128 ? (unsigned int)r.rlim_cur - 64 : 64;
}

struct http *http_open(const struct http_config *cfg, const struct sockaddr *addr, char *err,
		       size_t errlen)
{
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
	struct http *h = calloc(1, sizeof(*h));

	if (!h) {
		snprintf(err, errlen, "out of memory");
		return NULL;
	}
	if (addr->sa_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	h->cfg = *cfg;
	h->now.socket = cfg->socket;
	h->mhd = MHD_start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_SOCK_ADDR, addr,
				  MHD_OPTION_CONNECTION_LIMIT, client_limit(),
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_MEMORY,
				  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)HTTP_SECONDS,
				  MHD_OPTION_END);
	if (!h->mhd) {
		snprintf(err, errlen, "cannot listen: %m; is the address here, and the port free?");
		free(h);
		return NULL;
	}
	return h;
}

void http_close(struct http *h)
{
	MHD_stop_daemon(h->mhd);
	snapshot_exit(&h->now);
	free(h);
}

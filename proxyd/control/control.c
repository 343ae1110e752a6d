// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All descriptors of this file are in one epoll instance of its own. The daemon's loop watches only
 * that one: it is readable when one of its members is ready.
 *
 * A client is READING until its request line is complete, then ANSWERING: its output buffer is
 * refilled from the view whenever it has been sent, at most CONTROL_STEPS steps of all views a
 * turn. With nothing to send the client would be ready again at once (level-triggered), so a long
 * answer goes on turn by turn between packets.
 *
 * A client that follows a feed has nothing to be sent most of the time. It is then only watched for
 * its end; control_tick() looks whether the feed has gone on.
 *
 * When all places are taken, a new client replaces the one that has been idle for longest: first
 * one that has not sent a request, then one that does not read its answer.
 */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/capture.h"
#include "control/feed.h"
#include "control/operate.h"

#define CONTROL_STEPS	16	     /* of views, per turn */
#define CONTROL_ACCEPTS 4	     /* new clients per turn */
#define CONTROL_OUT	(128 * 1024) /* bytes of answer made ahead of the reader */
#define OBJECT_MAX	8192	     /* longest line of an answer */

enum client_state {
	CLIENT_FREE,
	CLIENT_READING,
	CLIENT_ANSWERING, /* the view has more */
	CLIENT_LAST,	  /* @out has the rest; close when it is sent */
	CLIENT_FOLLOWING, /* a feed, for ever */
};

struct client {
	enum client_state state;
	int fd;
	char in[CONTROL_REQUEST_MAX];
	size_t in_len;
	char *out;
	size_t out_len, out_sent;
	const struct view *view;
	struct view_cursor cursor;
	struct feed *feed;
	struct feed_reader reader;
	uint64_t count;
	uint64_t seen; /* latest progress */
	uint64_t now;  /* when its request was read */
};

struct control {
	int epfd, fd;
	struct sockaddr_un addr;
	const struct view_source *src;
	int steps; /* left in this turn */
	struct control_stats stats;
	struct client clients[CONTROL_CLIENTS];
};

static void client_close(struct client *cl)
{
	if (cl->feed)
		feed_leave(cl->feed);
	close(cl->fd);
	free(cl->out);
	memset(cl, 0, sizeof(*cl));
}

static void client_drop(struct control *c, struct client *cl)
{
	c->stats.dropped++;
	client_close(cl);
}

/* Append @o as one line; the reference is taken over. */
static void put_line(struct client *cl, json_t *o)
{
	size_t room = CONTROL_OUT - cl->out_len;
	size_t n = json_dumpb(o, cl->out + cl->out_len, room - 1, JSON_COMPACT);

	json_decref(o);
	/* OBJECT_MAX keeps the room ahead of every object, so this drops nothing in practice. */
	if (!n || n >= room - 1)
		return;
	cl->out_len += n;
	cl->out[cl->out_len++] = '\n';
}

/* From now on wait until the client can be written to. */
static void answer(struct control *c, struct client *cl, enum client_state state)
{
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = cl};

	cl->state = state;
	epoll_ctl(c->epfd, EPOLL_CTL_MOD, cl->fd, &ev);
}

static void answer_error(struct control *c, struct client *cl, const char *text)
{
	char ascii[OPERATE_ERROR];
	size_t i;

	/* @text may quote the request, cut within a character; JSON must be valid UTF-8. */
	for (i = 0; i < sizeof(ascii) - 1 && text[i]; i++)
		ascii[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	ascii[i] = '\0';
	c->stats.errors++;
	put_line(cl, json_pack("{s:s}", "error", ascii));
	answer(c, cl, CLIENT_LAST);
}

/* From now on the client gets the lines of @f; first @hello. */
static void follow(struct control *c, struct client *cl, struct feed *f, json_t *hello)
{
	int following = 0;

	for (int i = 0; i < CONTROL_CLIENTS; i++)
		following += c->clients[i].state == CLIENT_FOLLOWING;
	if (following >= CONTROL_FOLLOWERS || feed_join(f, &cl->reader)) {
		json_decref(hello);
		answer_error(c, cl, "too many clients follow; end one of them");
		return;
	}
	cl->feed = f;
	c->stats.requests++;
	put_line(cl, hello);
	answer(c, cl, CLIENT_FOLLOWING);
}

static void run_action(struct control *c, struct client *cl, const struct action *a,
		       const json_t *req)
{
	char err[OPERATE_ERROR];
	json_t *out = NULL;

	if (!c->src->operate || !a->run(c->src, req, cl->now, &out, err, sizeof(err))) {
		answer_error(c, cl, c->src->operate ? err : "nothing to operate on");
		return;
	}
	c->stats.requests++;
	put_line(cl, out);
	put_line(cl, json_pack("{s:b, s:i}", "end", 1, "count", 1));
	answer(c, cl, CLIENT_LAST);
}

static void run_command(struct control *c, struct client *cl, const char *cmd, const json_t *req)
{
	const struct action *a = action_find(cmd);
	char text[128];
	json_t *hello;

	cl->view = view_find(cmd);
	if (cl->view) {
		c->stats.requests++;
		answer(c, cl, CLIENT_ANSWERING);
	} else if (a) {
		run_action(c, cl, a, req);
	} else if (!strcmp(cmd, "monitor") && c->src->monitor) {
		follow(c, cl, c->src->monitor, json_pack("{s:s}", "event", "following"));
	} else if (!strcmp(cmd, "capture") && c->src->capture) {
		hello = capture_begin(c->src->capture, c->src, req, cl->now, text, sizeof(text));
		if (hello)
			follow(c, cl, &c->src->capture->feed, hello);
		else
			answer_error(c, cl, text);
	} else {
		snprintf(text, sizeof(text),
			 "unknown cmd '%.40s'; tool and daemon may differ in version", cmd);
		answer_error(c, cl, text);
	}
}

static void handle_request(struct control *c, struct client *cl, size_t len)
{
	json_error_t why;
	json_t *req = json_loadb(cl->in, len, JSON_REJECT_DUPLICATES, &why);
	const char *cmd = json_string_value(json_object_get(req, "cmd"));
	char text[128];

	if (!req) {
		snprintf(text, sizeof(text), "request is no JSON object: %.80s", why.text);
		answer_error(c, cl, text);
	} else if (!json_is_object(req)) {
		answer_error(c, cl,
			     "request is no JSON object; send such as {\"cmd\": \"qp-show\"}");
	} else if (!cmd) {
		answer_error(c, cl, "request has no \"cmd\"; send such as {\"cmd\": \"qp-show\"}");
	} else {
		run_command(c, cl, cmd, req);
	}
	json_decref(req);
}

static void client_read(struct control *c, struct client *cl, uint64_t now_ns)
{
	ssize_t n = recv(cl->fd, cl->in + cl->in_len, sizeof(cl->in) - cl->in_len, MSG_DONTWAIT);
	char *nl;

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			client_drop(c, cl);
		return;
	}
	if (!n && !cl->in_len) {
		client_close(cl);
		return;
	}
	cl->in_len += n;
	cl->now = now_ns;
	nl = memchr(cl->in, '\n', cl->in_len);
	if (nl)
		handle_request(c, cl, nl - cl->in);
	else if (!n)
		answer_error(c, cl, "request ends without a newline");
	else if (cl->in_len == sizeof(cl->in))
		answer_error(c, cl, "request is longer than 4095 bytes");
}

/* Make more of the answer, as much as one turn may. */
static void client_fill(struct control *c, struct client *cl, uint64_t now_ns)
{
	cl->out_len = cl->out_sent = 0;
	for (; c->steps > 0 && cl->out_len + OBJECT_MAX <= CONTROL_OUT; c->steps--) {
		json_t *o = NULL;

		switch (cl->view->next(c->src, &cl->cursor, now_ns, &o)) {
		case VIEW_OBJECT:
			cl->count++;
			put_line(cl, o);
			break;
		case VIEW_AGAIN:
			break;
		case VIEW_END:
			put_line(cl,
				 json_pack("{s:b, s:I}", "end", 1, "count", (json_int_t)cl->count));
			cl->state = CLIENT_LAST;
			return;
		}
	}
}

/* More of the feed; without any the client is only watched for its end. */
static void client_feed(struct control *c, struct client *cl)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = cl};

	cl->out_len = cl->out_sent = 0;
	if (feed_pending(cl->feed, &cl->reader))
		cl->out_len = feed_read(cl->feed, &cl->reader, cl->out, CONTROL_OUT);
	else
		epoll_ctl(c->epfd, EPOLL_CTL_MOD, cl->fd, &ev);
}

static void client_write(struct control *c, struct client *cl, uint64_t now_ns)
{
	ssize_t n;

	if (cl->out_sent == cl->out_len && cl->state == CLIENT_ANSWERING)
		client_fill(c, cl, now_ns);
	else if (cl->out_sent == cl->out_len && cl->state == CLIENT_FOLLOWING)
		client_feed(c, cl);
	if (cl->out_sent < cl->out_len) {
		n = send(cl->fd, cl->out + cl->out_sent, cl->out_len - cl->out_sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR)
				client_drop(c, cl);
			return;
		}
		cl->out_sent += n;
	}
	if (cl->out_sent < cl->out_len)
		return;
	cl->seen = now_ns;
	if (cl->state == CLIENT_LAST)
		client_close(cl);
}

/* Whether @cl may be dropped for a new client. */
static bool is_idle(const struct client *cl, uint64_t now_ns)
{
	return cl->state == CLIENT_READING ||
	       (cl->state != CLIENT_FOLLOWING && now_ns - cl->seen > CONTROL_IDLE_NS);
}

static struct client *client_new(struct control *c, uint64_t now_ns)
{
	struct client *oldest = NULL;

	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *cl = &c->clients[i];

		if (cl->state == CLIENT_FREE)
			return cl;
		if (is_idle(cl, now_ns) &&
		    (!oldest || (cl->state == CLIENT_READING) > (oldest->state == CLIENT_READING) ||
		     (cl->state == oldest->state && cl->seen < oldest->seen)))
			oldest = cl;
	}
	if (oldest)
		client_drop(c, oldest);
	return oldest;
}

static void refuse(struct control *c, int fd)
{
	static const char text[] = "{\"error\":\"too many clients; try again\"}\n";

	c->stats.refused++;
	/* A fresh socket has room for a line; if not, the client sees the end of the stream. */
	if (send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		c->stats.dropped++;
	close(fd);
}

static void accept_clients(struct control *c, uint64_t now_ns)
{
	for (int i = 0; i < CONTROL_ACCEPTS; i++) {
		int fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct epoll_event ev = {.events = EPOLLIN};
		struct client *cl;

		if (fd < 0)
			return;
		cl = client_new(c, now_ns);
		ev.data.ptr = cl;
		if (cl)
			cl->out = malloc(CONTROL_OUT);
		if (!cl || !cl->out || epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd, &ev)) {
			if (cl) {
				free(cl->out);
				cl->out = NULL;
			}
			refuse(c, fd);
			continue;
		}
		cl->fd = fd;
		cl->state = CLIENT_READING;
		cl->seen = now_ns;
	}
}

void control_service(struct control *c, uint64_t now_ns)
{
	struct epoll_event ev[CONTROL_CLIENTS + 1];
	int n = epoll_wait(c->epfd, ev, CONTROL_CLIENTS + 1, 0);

	c->steps = CONTROL_STEPS;
	for (int i = 0; i < n; i++) {
		struct client *cl = ev[i].data.ptr;

		if (!cl)
			accept_clients(c, now_ns);
		else if (cl->state == CLIENT_READING)
			client_read(c, cl, now_ns);
		else if (cl->state == CLIENT_FOLLOWING && !(ev[i].events & EPOLLOUT))
			client_close(cl); /* it closed, or sent more, which it must not */
		else if (cl->state != CLIENT_FREE)
			client_write(c, cl, now_ns);
	}
}

void control_tick(struct control *c, uint64_t now_ns)
{
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *cl = &c->clients[i];

		if (cl->state == CLIENT_FOLLOWING && cl->out_sent == cl->out_len) {
			cl->seen = now_ns;
			if (feed_pending(cl->feed, &cl->reader))
				answer(c, cl, CLIENT_FOLLOWING);
		}
		if (cl->state != CLIENT_FREE && now_ns > cl->seen + CONTROL_PATIENCE_NS)
			client_drop(c, cl);
	}
}

/* Whether a daemon answers at the address. */
static bool somebody_listens(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool yes = false;

	if (fd >= 0) {
		yes = !connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) || errno == EAGAIN;
		close(fd);
	}
	return yes;
}

/* Bind and listen; on failure a negative errno with @err filled. */
static int listen_at(struct control *c, char *err, size_t errlen)
{
	const char *path = c->addr.sun_path;
	struct epoll_event ev = {.events = EPOLLIN};
	struct stat st;
	mode_t old;
	int rc;

	if (!lstat(path, &st)) {
		if (!S_ISSOCK(st.st_mode)) {
			snprintf(err, errlen,
				 "control socket %s: a file that is no socket is in the way; "
				 "remove it or set 'socket'",
				 path);
			return -EEXIST;
		}
		if (somebody_listens(&c->addr)) {
			snprintf(err, errlen,
				 "control socket %s: another longhauld serves it; stop that or set "
				 "'socket'",
				 path);
			return -EADDRINUSE;
		}
		unlink(path);
	}
	old = umask(0117);
	rc = bind(c->fd, (struct sockaddr *)&c->addr, sizeof(c->addr)) ? -errno : 0;
	umask(old);
	if (rc) {
		snprintf(err, errlen, "control socket %s: %s; make its folder or set 'socket'",
			 path, strerror(-rc));
		return rc;
	}
	if (listen(c->fd, CONTROL_CLIENTS) || epoll_ctl(c->epfd, EPOLL_CTL_ADD, c->fd, &ev)) {
		rc = -errno;
		snprintf(err, errlen, "control socket %s: %s", path, strerror(errno));
		unlink(path);
	}
	return rc;
}

struct control *control_open(const char *path, const struct view_source *src, char *err,
			     size_t errlen)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c || strlen(path) >= sizeof(c->addr.sun_path)) {
		snprintf(err, errlen, "control socket %s: %s", path,
			 c ? "path too long" : "out of memory");
		free(c);
		return NULL;
	}
	c->src = src;
	c->addr.sun_family = AF_UNIX;
	strcpy(c->addr.sun_path, path);
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->epfd >= 0 && c->fd >= 0) {
		if (!listen_at(c, err, errlen))
			return c;
	} else {
		snprintf(err, errlen, "control socket %s: %s", path, strerror(errno));
	}
	if (c->fd >= 0)
		close(c->fd);
	if (c->epfd >= 0)
		close(c->epfd);
	free(c);
	return NULL;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		if (c->clients[i].state != CLIENT_FREE)
			client_close(&c->clients[i]);
	unlink(c->addr.sun_path);
	close(c->fd);
	close(c->epfd);
	free(c);
}

int control_fd(const struct control *c)
{
	return c->epfd;
}

const struct control_stats *control_stats(const struct control *c)
{
	return &c->stats;
}

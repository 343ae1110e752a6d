// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The side that is probed: it looks at what arrives. */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/probe/link.h"

/* What the prober is doing: @next is the number that the next SEND must have. */
struct turn {
	struct word_msg what;
	uint64_t next, wrong;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
	(void)signo;
	interrupted = 1;
}

static void begin(struct probe_link *l, struct turn *t, const struct word_msg *w)
{
	*t = (struct turn){.what = *w};
	if (w->op == OP_READ)
		for (uint32_t i = 0; i < w->slots; i++)
			probe_fill(l->data + (size_t)i * w->size, w->size, i);
	else
		memset(l->data, 0, DATA_BYTES);
}

/* Of WRITEs each place must hold the last one that went there. */
static uint64_t check(const struct probe_link *l, const struct turn *t, uint64_t count)
{
	uint32_t slots = t->what.slots;
	uint64_t wrong = t->wrong;

	if (t->what.op == OP_SEND)
		return wrong + (t->next != count);
	for (uint64_t i = 0; t->what.op == OP_WRITE && i < slots && i < count; i++) {
		uint64_t last = i + (count - 1 - i) / slots * slots;

		wrong += !probe_right(l->data + i * t->what.size, t->what.size, last);
	}
	return wrong;
}

/* A word of the prober; 1: it was the last one. */
static int hear(struct probe_link *l, struct turn *t, struct word_msg w)
{
	if (w.word == WORD_BYE)
		return 1;
	if (w.word == WORD_BEGIN) {
		if (w.op >= OPS || !w.size || w.size > SIZE_MAX_ || !w.slots ||
		    (uint64_t)w.size * w.slots > DATA_BYTES)
			return -1;
		begin(l, t, &w);
	}
	if (w.word != WORD_PING && w.word != WORD_BEGIN && w.word != WORD_CHECK)
		return -1;
	if (link_say(l, &w))
		return -1;
	if (w.word != WORD_CHECK)
		return 0;
	w.word = WORD_RESULT;
	w.wrong = check(l, t, w.count);
	return link_say(l, &w);
}

static int serve_one(struct probe_link *l, char *err, size_t len)
{
	uint64_t end = probe_now() + SILENCE_NS;
	struct turn t = {0};
	struct link_got g;
	int rc;

	snprintf(err, len, "it said something that makes no sense");
	for (;;) {
		rc = link_get(l, &g, err, len);
		if (rc < 0 || link_sent(l, DEPTH_MAX, err, len) < 0)
			return -1;
		if (!rc) {
			if (interrupted || probe_now() > end) {
				snprintf(err, len, interrupted ? "interrupted" : "it fell silent");
				return -1;
			}
			continue;
		}
		end = probe_now() + SILENCE_NS;
		if (!g.is_word) {
			t.wrong += g.len != t.what.size || !probe_right(g.data, g.len, t.next);
			t.next++;
		}
		if (link_again(l, &g))
			return -1;
		rc = g.is_word ? hear(l, &t, g.word) : 0;
		if (rc)
			return rc < 0 ? -1 : 0;
	}
}

int probe_serve(const char *host, const char *port, bool once)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct rdma_cm_id *listener;
	struct probe_link l;
	char err[256];
	int rc = 0;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	listener = link_listen(host, port, err, sizeof(err));
	if (!listener) {
		warnx("%s", err);
		return 1;
	}
	do {
		rc = link_accept(&l, listener, err, sizeof(err)) ? -1
								 : serve_one(&l, err, sizeof(err));
		if (rc && !interrupted)
			warnx("%s", err);
		link_close(&l);
	} while (!once && !interrupted);
	rdma_destroy_id(listener);
	return rc && !interrupted ? 1 : 0;
}

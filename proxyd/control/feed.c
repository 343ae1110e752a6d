// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ring_copy(const struct feed *f, uint64_t pos, char *to, size_t n)
{
	size_t at = pos % f->size, first = f->size - at < n ? f->size - at : n;

	memcpy(to, f->ring + at, first);
	memcpy(to + first, f->ring, n - first);
}

void feed_put(struct feed *f, json_t *o)
{
	size_t n, at, first;

	if (!feed_wanted(f)) {
		json_decref(o);
		return;
	}
	n = json_dumpb(o, f->line, FEED_LINE_MAX - 1, JSON_COMPACT);
	json_decref(o);
	f->lines++; /* counted even if it is dropped: readers then see that a line is missing */
	if (!n || n >= FEED_LINE_MAX - 1)
		return;
	f->line[n++] = '\n';
	at = f->head % f->size;
	first = f->size - at < n ? f->size - at : n;
	memcpy(f->ring + at, f->line, first);
	memcpy(f->ring, f->line + first, n - first);
	f->head += n;
}

int feed_join(struct feed *f, struct feed_reader *r)
{
	if (!f->readers) {
		f->ring = malloc(f->size);
		f->line = malloc(FEED_LINE_MAX);
		if (!f->ring || !f->line) {
			free(f->ring);
			free(f->line);
			f->ring = f->line = NULL;
			return -ENOMEM;
		}
	}
	f->readers++;
	*r = (struct feed_reader){.pos = f->head, .lines = f->lines};
	return 0;
}

void feed_leave(struct feed *f)
{
	if (--f->readers)
		return;
	free(f->ring);
	free(f->line);
	f->ring = f->line = NULL;
}

bool feed_pending(const struct feed *f, const struct feed_reader *r)
{
	return f->head != r->pos;
}

size_t feed_read(const struct feed *f, struct feed_reader *r, char *buf, size_t len)
{
	size_t n = 0, whole = 0;

	if (f->head - r->pos > f->size) {
		/* overwritten: what is left begins in the middle of a line, so go on at the end */
		n = (size_t)snprintf(buf, len, "{\"event\":\"lost\",\"lines\":%" PRIu64 "}\n",
				     f->lines - r->lines);
		r->pos = f->head;
		r->lines = f->lines;
		return n;
	}
	n = f->head - r->pos < len ? f->head - r->pos : len;
	ring_copy(f, r->pos, buf, n);
	for (size_t i = 0; i < n; i++) {
		if (buf[i] != '\n')
			continue;
		whole = i + 1;
		r->lines++;
	}
	r->pos += whole;
	return whole;
}

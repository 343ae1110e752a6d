// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RPC over RDMA version 1, which carries NFS, as far as needed to know which memory the server will
 * READ (spec: RFC 8166; RPC, spec: RFC 5531; calls of the server, spec: RFC 8167). All in words of
 * four bytes, big-endian:
 *
 *	xid, version (1), credits, procedure (0 MSG, 1 NOMSG, 4 ERROR)
 *	read list: 1, position, handle, length, offset (8) for each segment; 0
 *	write list: 1, count, then handle, length, offset (8) for each segment, for each chunk; 0
 *	reply chunk: 0, or like one of the write list
 *	and then, of MSG, the RPC message: xid, type (0 call, 1 reply), of a call the version (2)
 *
 * A segment of the read list is memory of the client that belongs to the call, at a position of the
 * message: the server READs all of them, and nothing else. If the message itself is too long, it is
 * in the segments of position 0, and the procedure is NOMSG. The reply has the xid; after it the
 * segments are invalid.
 *
 * Servers may call, too, with xids of their own; clients reply to these.
 */
#include "wire/storage.h"

#include "wire/bytes.h"

#define RPCRDMA_VERSION 1u
#define RPC_VERSION	2u
#define CALL		0u
#define REPLY		1u

enum procedure {
	PROC_MSG,
	PROC_NOMSG,
	PROC_MSGP,
	PROC_DONE,
	PROC_ERROR,
};

/* The rest of a message. @cut: a read went past the end; @bad: any other error. */
struct words {
	const uint8_t *p;
	uint32_t left;
	bool cut, bad;
};

static uint32_t take(struct words *w)
{
	uint32_t v;

	if (w->left < 4) {
		w->cut = true;
		return 0;
	}
	v = get_be32(w->p);
	w->p += 4;
	w->left -= 4;
	return v;
}

/* Whether an optional element is there. */
static bool present(struct words *w)
{
	uint32_t v = take(w);

	w->bad |= v > 1;
	return v == 1;
}

/* Skip one chunk of the write list: count and segments. */
static void skip_chunk(struct words *w)
{
	uint32_t n = take(w);

	if (n > w->left / 16) {
		w->cut = true;
		w->left = 0;
		return;
	}
	w->p += 16 * n;
	w->left -= 16 * n;
}

/* Read the read list into @c. False when it is not understood. */
static bool read_list(struct words *w, enum procedure proc, struct storage_command *c)
{
	bool good = true;

	for (bool first = true; present(w) && !w->cut; first = false) {
		uint32_t position = take(w), handle = take(w), length = take(w);
		uint64_t offset = (uint64_t)take(w) << 32;

		offset |= take(w);
		/* position 0 is for NOMSG, which must have it first */
		if (proc == PROC_MSG ? !position : first && position)
			good = false;
		if (w->cut || !storage_add(c, offset, length, handle))
			good = false;
	}
	return good;
}

static void skip_written(struct words *w)
{
	while (!w->cut && !w->bad && present(w))
		skip_chunk(w);
	if (present(w))
		skip_chunk(w);
}

/* Read the header of @s. False when it has none. */
static bool begin(const struct storage_send *s, struct words *w, uint32_t *xid, uint32_t *credits,
		  enum procedure *proc)
{
	uint32_t version, what;

	*w = (struct words){.p = s->p, .left = s->len};
	*xid = take(w);
	version = take(w);
	*credits = take(w);
	what = take(w);
	*proc = what;
	return !w->cut && version == RPCRDMA_VERSION && what <= PROC_ERROR;
}

enum storage_verdict rpcrdma_command(const struct storage_send *s, struct storage_command *c)
{
	enum procedure proc;
	uint32_t credits;
	struct words w;
	bool good;

	if (!begin(s, &w, &c->id, &credits, &proc) || !credits || proc > PROC_NOMSG)
		return STORAGE_NONE;
	c->count = 0;
	good = read_list(&w, proc, c);
	skip_written(&w);
	if (w.bad)
		return STORAGE_NONE;
	if (proc == PROC_NOMSG) {
		good &= s->whole && !w.cut && !w.left;
	} else if (!w.cut) {
		uint32_t xid = take(&w), type = take(&w), version = take(&w);

		if (w.cut || xid != c->id || type != CALL || version != RPC_VERSION)
			return STORAGE_NONE;
	}
	if (w.cut)
		return s->whole ? STORAGE_NONE : STORAGE_LOOSE;
	if (!good)
		return STORAGE_LOOSE;
	return c->count ? STORAGE_FETCH : STORAGE_QUIET;
}

enum storage_answer rpcrdma_answer(const struct storage_send *s, uint32_t *id)
{
	struct storage_command none = {0};
	enum procedure proc;
	struct words w;
	uint32_t xid = 0, type = REPLY, credits; /* some servers send 0, and mean 1 */
	bool good;

	if (!begin(s, &w, id, &credits, &proc))
		return STORAGE_FOREIGN;
	if (proc == PROC_ERROR)
		return STORAGE_DONE;
	if (proc == PROC_DONE || proc == PROC_MSGP)
		return STORAGE_FOREIGN;
	good = read_list(&w, proc, &none) && !none.count;
	skip_written(&w);
	if (w.bad)
		return STORAGE_FOREIGN;
	if (proc == PROC_MSG) {
		xid = take(&w);
		type = take(&w);
	}
	if (w.cut)
		return s->whole ? STORAGE_FOREIGN : STORAGE_ENDS;
	if (!good)
		return STORAGE_ENDS;
	if (proc == PROC_NOMSG)
		return STORAGE_DONE;
	if (xid != *id || type > REPLY)
		return STORAGE_FOREIGN;
	return type == REPLY ? STORAGE_DONE : STORAGE_OTHER;
}

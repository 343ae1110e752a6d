/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What storage protocols over RDMA say of the buffers that a target will READ. A decoder for each
 * protocol looks at the first packet of one SEND, and says no more than the SEND does. What it does
 * not know for sure it does not say.
 */
#ifndef LONGHAUL_WIRE_STORAGE_H
#define LONGHAUL_WIRE_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

enum storage_protocol {
	STORAGE_UNKNOWN,
	STORAGE_NVME,
	STORAGE_ISER,
	STORAGE_NFS,
	STORAGE_PROTOCOLS,
};

/* A command that names more is not looked into. */
#define STORAGE_BUFFERS 16u

/**
 * struct storage_send - the first packet of a SEND.
 * @p, @len: its payload
 * @whole:   it is the only one
 */
struct storage_send {
	const uint8_t *p;
	uint32_t len;
	bool whole;
};

/* Memory that the target is to READ. */
struct storage_buffer {
	uint64_t va;
	uint32_t length, rkey;
};

/**
 * struct storage_command
 * @id:     bears the response, too
 * @count:  of @buffer (STORAGE_FETCH); no two of them share a byte, none is empty
 */
struct storage_command {
	uint32_t id, count;
	struct storage_buffer buffer[STORAGE_BUFFERS];
};

enum storage_verdict {
	STORAGE_NONE,  /* no command of this protocol */
	STORAGE_QUIET, /* a command whose data, if any, no READ fetches */
	STORAGE_FETCH, /* the target is to READ the buffers, and nothing else */
	STORAGE_LOOSE, /* it may READ, and what is not understood */
};

enum storage_answer {
	STORAGE_FOREIGN, /* nothing that a target of this protocol sends */
	STORAGE_OTHER,	 /* ends no command */
	STORAGE_DONE,	 /* ends the command @id */
	STORAGE_ENDS,	 /* may end any, and does not say which */
};

/** storage_name - "nvme", ...; "" when it is not known. */
const char *storage_name(enum storage_protocol p);

/** storage_guess - the protocol in which @s is a command that says what the target is to READ;
 *  STORAGE_UNKNOWN when it is none, or more than one. */
enum storage_protocol storage_guess(const struct storage_send *s);

/** storage_command - what @s, from an initiator, is in the protocol @p. @c is set but for
 *  STORAGE_NONE. */
enum storage_verdict storage_command(enum storage_protocol p, const struct storage_send *s,
				     struct storage_command *c);

/** storage_answer - what @s, from a target, is. @id is set for STORAGE_DONE. */
enum storage_answer storage_answer(enum storage_protocol p, const struct storage_send *s,
				   uint32_t *id);

/** storage_add - one more buffer of @c. False when it cannot be told apart from the others, or
 *  there are too many. What continues the one before becomes a part of it; an empty one is none. */
bool storage_add(struct storage_command *c, uint64_t va, uint32_t length, uint32_t rkey);

/* The decoders. */
enum storage_verdict nvme_command(const struct storage_send *s, struct storage_command *c);
enum storage_answer nvme_answer(const struct storage_send *s, uint32_t *id);
enum storage_verdict iser_command(const struct storage_send *s, struct storage_command *c);
enum storage_answer iser_answer(const struct storage_send *s, uint32_t *id);
enum storage_verdict rpcrdma_command(const struct storage_send *s, struct storage_command *c);
enum storage_answer rpcrdma_answer(const struct storage_send *s, uint32_t *id);

#endif

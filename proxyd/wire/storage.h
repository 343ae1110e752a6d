/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What storage protocols over RDMA tell of the buffers that a target will READ. A decoder for each
 * protocol reads the first packet of one SEND, and reports only what that SEND says for sure.
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

/* Commands with more are STORAGE_LOOSE. */
#define STORAGE_BUFFERS 16u

/**
 * struct storage_send - the first packet of a SEND.
 * @p, @len: its payload
 * @whole:   it is the only packet
 */
struct storage_send {
	const uint8_t *p;
	uint32_t len;
	bool whole;
};

/* Memory that the target will READ. */
struct storage_buffer {
	uint64_t va;
	uint32_t length, rkey;
};

/**
 * struct storage_command
 * @id:     the response has it, too
 * @count:  of @buffer (STORAGE_FETCH); no two of them share a byte, none is empty
 */
struct storage_command {
	uint32_t id, count;
	struct storage_buffer buffer[STORAGE_BUFFERS];
};

enum storage_verdict {
	STORAGE_NONE,  /* no command of this protocol */
	STORAGE_QUIET, /* a command without data that a READ would fetch */
	STORAGE_FETCH, /* the target will READ the buffers, and nothing else */
	STORAGE_LOOSE, /* the target may READ, but we cannot tell what */
};

enum storage_answer {
	STORAGE_FOREIGN, /* not from a target of this protocol */
	STORAGE_OTHER,	 /* ends no command */
	STORAGE_DONE,	 /* ends the command @id */
	STORAGE_ENDS,	 /* may end any command, without telling which */
};

/** storage_name - "nvme", ...; "" when it is not known. */
const char *storage_name(enum storage_protocol p);

/** storage_guess - the protocol in which @s is a command that tells what the target will READ;
 * STORAGE_UNKNOWN when there is none, or more than one. */
enum storage_protocol storage_guess(const struct storage_send *s);

/** storage_command - decode @s, from an initiator, in the protocol @p. Sets @c, except for
 * STORAGE_NONE. */
enum storage_verdict storage_command(enum storage_protocol p, const struct storage_send *s,
				     struct storage_command *c);

/** storage_answer - decode @s, from a target. Sets @id for STORAGE_DONE. */
enum storage_answer storage_answer(enum storage_protocol p, const struct storage_send *s,
				   uint32_t *id);

/** storage_add - add a buffer to @c, or extend the last one if it continues that; ignores an empty
 * one. False if it overlaps another, or there are too many. */
bool storage_add(struct storage_command *c, uint64_t va, uint32_t length, uint32_t rkey);

/* The decoders. */
enum storage_verdict nvme_command(const struct storage_send *s, struct storage_command *c);
enum storage_answer nvme_answer(const struct storage_send *s, uint32_t *id);
enum storage_verdict iser_command(const struct storage_send *s, struct storage_command *c);
enum storage_answer iser_answer(const struct storage_send *s, uint32_t *id);
enum storage_verdict rpcrdma_command(const struct storage_send *s, struct storage_command *c);
enum storage_answer rpcrdma_answer(const struct storage_send *s, uint32_t *id);

#endif

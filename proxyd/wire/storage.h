/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What storage protocols over RDMA say of the buffers that a target will READ. A decoder for each
 * protocol looks at the payload of one SEND, and says no more than the SEND does.
 */
#ifndef LONGHAUL_WIRE_STORAGE_H
#define LONGHAUL_WIRE_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

enum storage_verdict {
	STORAGE_NONE,  /* no command of this protocol */
	STORAGE_QUIET, /* a command whose data, if any, no READ fetches */
	STORAGE_FETCH, /* the target is to READ one buffer */
	STORAGE_LOOSE, /* it may READ, and what is not understood */
};

/**
 * struct storage_command
 * @id:     bears the response, too
 * @va, @length, @rkey: the buffer (STORAGE_FETCH)
 */
struct storage_command {
	uint64_t va;
	uint32_t length, rkey;
	uint16_t id;
};

/** nvme_command - an NVMe over Fabrics command capsule, from its first byte; @len: bytes of the
 *  first packet. @c is set but for STORAGE_NONE. */
enum storage_verdict nvme_command(const uint8_t *p, uint32_t len, struct storage_command *c);

/** nvme_response - a response capsule: to which command; false when it is none. */
bool nvme_response(const uint8_t *p, uint32_t len, uint16_t *id);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Capsules. The input is the payload of a SEND, as long as it is.
 *
 * What is to be READ is a buffer that the command names for data to the target, by a keyed
 * descriptor, and never one of a read command; nothing is read outside of the payload (the
 * sanitizer sees to that).
 */
#include "tests/fuzz/input.h"
#include "wire/storage.h"

static void check(const uint8_t *p, uint32_t len)
{
	struct storage_command c;
	uint64_t va = 0;
	uint16_t id;

	if (nvme_command(p, len, &c) == STORAGE_FETCH) {
		NEED(len == 64 && (p[39] == 0x40 || p[39] == 0x4f));
		NEED(((p[0] == 0x7f ? p[4] : p[0]) & 3) == 1);
		for (int i = 7; i >= 0; i--)
			va = va << 8 | p[24 + i];
		NEED(c.va == va && c.va + c.length > c.va && c.length < 1u << 24);
		NEED(c.rkey == (p[35] | (uint32_t)p[36] << 8 | (uint32_t)p[37] << 16 |
				(uint32_t)p[38] << 24));
	}
	if (nvme_response(p, len, &id))
		NEED(len == 16 && id == (p[12] | p[13] << 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		return 0;
	if (size)
		memcpy(exact, data, size);
	check(exact, (uint32_t)size);
	free(exact);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets come from the cache, where the kernel has just put them, and go through so much memory
 * that no cache has the place. Time of this thread counts, not that of others on a busy machine,
 * and of several rounds the fastest: other work only ever adds.
 */
#include "cli/plan_cost.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "wire/crc32.h"

#define PACKET 4096u
#define SLOT   4352u /* with headers, in lines of 64 */
#define SLOTS  15000u
#define ROUNDS 6

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One round: ns a byte. */
static double copy_round(uint8_t *to, const uint8_t *packet, bool crc)
{
	double from = now_ns();

	for (uint32_t i = 0; i < SLOTS; i++) {
		if (crc)
			(void)crc32_copy(i, to + (size_t)i * SLOT, packet, PACKET);
		else
			memcpy(to + (size_t)i * SLOT, packet, PACKET);
		/* the copies are wanted */
		__asm__ volatile("" ::"r"(to) : "memory");
	}
	return (now_ns() - from) / SLOTS / PACKET;
}

bool plan_cost(double *copy_ns, double *crc_ns)
{
	static const uint8_t packet[PACKET] __attribute__((aligned(64))) = {1};
	size_t len = (size_t)SLOTS * SLOT;
	uint8_t *to = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	double ns;

	if (to == MAP_FAILED)
		return false;
	*copy_ns = *crc_ns = 1e9;
	for (int i = 0; i < ROUNDS; i++) {
		ns = copy_round(to, packet, false);
		*copy_ns = ns < *copy_ns ? ns : *copy_ns;
		ns = copy_round(to, packet, true);
		*crc_ns = ns < *crc_ns ? ns : *crc_ns;
	}
	munmap(to, len);
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The memory of the UMEM.
 *
 * The kernel pins each page of it when it is registered. Pages that nobody had before must be found
 * and cleared for that, 64 MiB of them while hosts wait: a few milliseconds as huge pages when they
 * are at hand, half a second when they are not, or when this is a guest whose host has none behind
 * them yet. So they are in a file in memory where there is one (struct afxdp_config), which
 * outlives the process as huge pages, and the next one pins the same ones again, in less than a
 * millisecond.
 *
 * Only the memory is gone on with: what is in it means nothing to the next process, which begins
 * with all chunks its own. The sockets of the former one may still write to them, or read what they
 * are to send, until the kernel has taken them apart. But each chunk belongs to one queue, whose
 * next socket cannot be bound before the former one has let go (afxdp_sock.c); that is so where the
 * chunks are cut up in the same way, and what is not is made anew: the size of the file says which.
 * What the network still sends of a former process's may be overwritten on its way; its ICRC tells.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "port/afxdp_priv.h"

#define HUGE_PAGE ((size_t)2 << 20)
/* From newer headers than Debian 12's. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
/* A start does not wait for huge pages any longer. */
#define COLLAPSE_S 1

static bool late(const struct timespec *end)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end->tv_sec ||
	       (now.tv_sec == end->tv_sec && now.tv_nsec > end->tv_nsec);
}

/* Whatever the system's setting is; an older kernel does not know it. */
static void make_huge(uint8_t *area, size_t len)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += COLLAPSE_S;
	for (size_t at = 0; at + HUGE_PAGE <= len && !late(&end); at += HUGE_PAGE)
		if (madvise(area + at, HUGE_PAGE, MADV_COLLAPSE))
			return;
}

/* As large as @len; the rest of its length says how it is cut. */
static bool file_ready(int fd, bool make, size_t len, uint32_t layout, bool *fresh)
{
	off_t want = (off_t)(len + (size_t)layout * AFXDP_CHUNK);
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*fresh = st.st_size != want;
	if (!*fresh)
		return true;
	if (!make)
		return false;
	if (!ftruncate(fd, 0) && !ftruncate(fd, want) && !fallocate(fd, 0, 0, (off_t)len))
		return true;
	(void)!ftruncate(fd, 0);
	return false;
}

/* @len bytes at a multiple of a huge page, for who puts something there; NULL. */
static uint8_t *room_for(size_t len)
{
	uint8_t *all = mmap(NULL, len + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (all == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)all & (HUGE_PAGE - 1);
	if (before)
		munmap(all, before);
	munmap(all + before + len, HUGE_PAGE - before);
	return all + before;
}

static uint8_t *map_file(int fd, bool make, size_t len, uint32_t layout)
{
	uint8_t *area;
	bool fresh;

	if (!file_ready(fd, make, len, layout, &fresh))
		return NULL;
	area = room_for(len);
	if (!area)
		return NULL;
	if (mmap(area, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(area, len);
		return NULL;
	}
	if (fresh)
		make_huge(area, len);
	return area;
}

uint8_t *area_map(int fd, bool make, size_t len, uint32_t layout)
{
	uint8_t *area = fd ? map_file(fd, make, len, layout) : NULL;

	if (area)
		return area;
	area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return NULL;
	/* May be refused: small pages are slower. */
	(void)madvise(area, len, MADV_HUGEPAGE);
	return area;
}

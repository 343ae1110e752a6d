// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The first page has the region's size and fill, since the next process that maps it has only the
 * descriptor. The memfd is sealed against a change of size: another process with the descriptor
 * cannot cause SIGBUS here by truncating it. A file cannot be sealed: the caller protects it by its
 * mode and a lock. Memory is allocated before it is used, since a full file system would cause
 * SIGBUS later.
 */
#include "store/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_MAGIC 0x31414e455241484cull /* "LHARENA1" in memory order */
#define ARENA_HUGE  ((size_t)2 << 20) /* a huge page of x86-64, and of ARM with pages of 4 KiB */
#define ARENA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

struct arena_head {
	uint64_t magic;
	uint64_t size;
	uint64_t used;
};

/* Map @fd at a multiple of the size of huge pages, so that it can have them. */
static int arena_map(struct arena *a, int fd, size_t size)
{
	size_t whole = (size + 4095) & ~(size_t)4095;
	uint8_t *room = mmap(NULL, whole + ARENA_HUGE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before, after;
	void *base;

	if (room == MAP_FAILED)
		return -errno;
	before = -(uintptr_t)room % ARENA_HUGE;
	after = ARENA_HUGE - before;
	/* NORESERVE: not all of it may ever have memory (arena_back()) */
	base = mmap(room + before, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED) {
		int ret = -errno;

		munmap(room, whole + ARENA_HUGE);
		return ret;
	}
	if (before)
		munmap(room, before);
	munmap(room + before + whole, after);
	a->base = base;
	a->size = size;
	a->fd = fd;
	return 0;
}

/* Initialize the region in @fd; closes @fd on failure. */
static int arena_make(struct arena *a, int fd, size_t size)
{
	struct arena_head *head;
	int ret = arena_map(a, fd, size);

	if (ret) {
		close(fd);
		return ret;
	}
	a->used = ARENA_FIRST;
	head = (struct arena_head *)a->base;
	head->magic = ARENA_MAGIC;
	head->size = size;
	head->used = a->used;
	return 0;
}

static size_t with_head(size_t size)
{
	return ARENA_FIRST + ((size + 4095) & ~(size_t)4095);
}

int arena_init(struct arena *a, size_t size)
{
	int fd, ret;

	if (size > SIZE_MAX / 2)
		return -ENOMEM;
	size = with_head(size);

	fd = memfd_create("longhaul", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, ARENA_SEALS)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return arena_make(a, fd, size);
}

int arena_init_file(struct arena *a, int fd, size_t size, size_t bare)
{
	if (size > SIZE_MAX / 2)
		return -ENOMEM;
	size = with_head(size);
	/* the former content must not be read again as if it were zeroes */
	if (ftruncate(fd, 0) || ftruncate(fd, (off_t)size) ||
	    fallocate(fd, 0, 0, (off_t)(size - bare))) {
		int ret = -errno;

		(void)!ftruncate(fd, 0);
		return ret;
	}
	(void)fcntl(fd, F_ADD_SEALS, ARENA_SEALS); /* a memfd can be sealed */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : arena_make(a, fd, size);
}

int arena_adopt(struct arena *a, int fd)
{
	const struct arena_head *head;
	struct stat st;
	int seals, ret;

	if (fstat(fd, &st))
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	/* a descriptor without a name must be a sealed memfd */
	if (!st.st_nlink && (seals < 0 || (seals & ARENA_SEALS) != ARENA_SEALS))
		return -EINVAL;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)ARENA_FIRST)
		return -EINVAL;
	ret = arena_map(a, fd, (size_t)st.st_size);
	if (ret)
		return ret;
	head = (const struct arena_head *)a->base;
	if (head->magic != ARENA_MAGIC || head->size != a->size || head->used < ARENA_FIRST ||
	    head->used > a->size) {
		munmap(a->base, a->size);
		memset(a, 0, sizeof(*a));
		a->fd = -1;
		return -EINVAL;
	}
	a->used = head->used;
	return 0;
}

int arena_lock(const struct arena *a, size_t reserve)
{
	if (reserve && fallocate(a->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)reserve))
		return -errno;
	/* ONFAULT: locking all of it at once would take long, and hosts wait during a hand-over. */
	return mlock2(a->base, a->size, MLOCK_ONFAULT) ? -errno : 0;
}

int arena_back(const struct arena *a, const void *p, size_t size)
{
	off_t at = (const uint8_t *)p - a->base;

	return fallocate(a->fd, FALLOC_FL_KEEP_SIZE, at, (off_t)size) ? -errno : 0;
}

void arena_unback(const struct arena *a, const void *p, size_t size)
{
	off_t at = (const uint8_t *)p - a->base;

	/* Where that is impossible, the memory stays; it is written before it is read again. */
	(void)fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)size);
}

void arena_huge(const struct arena *a, const void *p, size_t size)
{
	size_t from = (size_t)((const uint8_t *)p - a->base), end = from + size;

	for (from = from / ARENA_HUGE * ARENA_HUGE; from < end; from += ARENA_HUGE)
		if (from + ARENA_HUGE <= a->size)
			(void)madvise(a->base + from, ARENA_HUGE, MADV_COLLAPSE);
}

void arena_exit(struct arena *a)
{
	if (a->base) {
		munmap(a->base, a->size);
		close(a->fd);
	}
	memset(a, 0, sizeof(*a));
	a->fd = -1;
}

void *arena_alloc(struct arena *a, size_t size, size_t align)
{
	size_t start;

	if (!align || align > 4096 || (align & (align - 1)))
		return NULL;
	start = (a->used + align - 1) & ~(align - 1);
	if (start > a->size || size > a->size - start)
		return NULL;
	a->used = start + size;
	((struct arena_head *)a->base)->used = a->used;
	return a->base + start;
}

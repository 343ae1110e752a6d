// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The arena: alignment, limits, adoption by another mapping. */
#include "tests/unit/store_test.h"

#include <errno.h>
#include <fcntl.h>

static void test_alloc(void **state)
{
	struct arena a;
	uint8_t *p, *q;

	(void)state;
	assert_int_equal(arena_init(&a, 10000), 0);
	p = arena_alloc(&a, 1, 1);
	assert_ptr_equal(p, a.base + ARENA_FIRST);
	for (size_t align = 1; align <= 4096; align *= 2) {
		q = arena_alloc(&a, 3, align);
		if (align <= 2048)
			assert_non_null(q);
		if (!q)
			continue;
		assert_int_equal((uintptr_t)q % align, 0);
		assert_true(q > p);
		for (int i = 0; i < 3; i++)
			assert_int_equal(q[i], 0);
		memset(q, 0xff, 3);
		p = q + 2;
	}
	assert_null(arena_alloc(&a, 1, 0));
	assert_null(arena_alloc(&a, 1, 3));
	assert_null(arena_alloc(&a, 1, 8192));
	assert_null(arena_alloc(&a, SIZE_MAX, 1));
	assert_null(arena_alloc(&a, SIZE_MAX - 100, 64));
	assert_null(arena_alloc(&a, 20000, 1));
	arena_exit(&a);
	arena_exit(&a);
}

/* What is asked for can be had to the last byte, and not one more. */
static void test_exact(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, 3 * 4096), 0);
	assert_non_null(arena_alloc(&a, 4096, 4096));
	assert_non_null(arena_alloc(&a, 8192, 4096));
	assert_null(arena_alloc(&a, 1, 1));
	assert_non_null(arena_alloc(&a, 0, 1));
	arena_exit(&a);
	assert_int_equal(arena_init(&a, SIZE_MAX), -ENOMEM);
}

/* Nothing changes but the size of the pages, if the kernel has such at all; who maps it next can
 * have them, too. */
static void test_huge(void **state)
{
	const size_t size = 7u << 20, huge = 2u << 20;
	struct arena a, b;
	uint8_t *p, *q;

	(void)state;
	assert_int_equal(arena_init(&a, size), 0);
	assert_int_equal((uintptr_t)a.base % huge, 0);
	p = arena_alloc(&a, size, 4096);
	for (size_t i = 0; i < size; i += 512)
		p[i] = (uint8_t)(i / 512 * 7);
	arena_huge(&a, p + 100, size - 100);
	arena_huge(&a, p, 0);
	assert_int_equal(arena_adopt(&b, fcntl(a.fd, F_DUPFD_CLOEXEC, 0)), 0);
	assert_int_equal((uintptr_t)b.base % huge, 0);
	q = b.base + (p - a.base);
	for (size_t i = 0; i < size; i += 512) {
		assert_int_equal(p[i], (uint8_t)(i / 512 * 7));
		assert_int_equal(q[i], p[i]);
		assert_int_equal(p[i + 1], 0);
	}
	arena_exit(&a);
	arena_exit(&b);
}

static void test_adopt(void **state)
{
	struct arena a, b;
	uint32_t *p, *q;

	(void)state;
	assert_int_equal(arena_init(&a, 100000), 0);
	p = arena_alloc(&a, 4096, 64);
	p[0] = 0xfeedbeef;
	assert_int_equal(arena_adopt(&b, fcntl(a.fd, F_DUPFD_CLOEXEC, 0)), 0);
	assert_ptr_not_equal(a.base, b.base);
	assert_int_equal(b.size, a.size);
	assert_int_equal(b.used, a.used);
	arena_exit(&a);
	q = (uint32_t *)(b.base + ARENA_FIRST);
	assert_int_equal(q[0], 0xfeedbeef);
	assert_true((uint8_t *)arena_alloc(&b, 16, 1) >= b.base + ARENA_FIRST + 4096);
	arena_exit(&b);
}

/* A file is made anew whatever was in it, and holds all when its process has gone. */
static void test_file(void **state)
{
	char path[] = "/tmp/arena.XXXXXX";
	int fd = mkstemp(path);
	struct arena a, b;
	uint32_t *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, path, sizeof(path)), sizeof(path));
	assert_int_equal(arena_init_file(&a, fd, 10000, 0), 0);
	assert_int_not_equal(a.fd, fd);
	p = arena_alloc(&a, 8, 8);
	assert_int_equal(p[0], 0);
	p[0] = 0x5eed;
	arena_exit(&a);
	assert_int_equal(arena_adopt(&b, fcntl(fd, F_DUPFD_CLOEXEC, 0)), 0);
	assert_int_equal(*(uint32_t *)(b.base + ARENA_FIRST), 0x5eed);
	arena_exit(&b);
	assert_int_equal(arena_init_file(&a, fd, SIZE_MAX, 0), -ENOMEM);
	assert_true(arena_init_file(&a, fd, (size_t)1 << 60, 0) < 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* nothing to be found by anybody */
	assert_int_equal(arena_adopt(&b, fd), -EINVAL);
	close(fd);
	unlink(path);
}

static void test_adopt_refuses(void **state)
{
	struct arena a, b;
	int fd, null;

	(void)state;
	assert_int_equal(arena_adopt(&b, -1), -EBADF);
	null = open("/dev/null", O_RDWR);
	assert_int_equal(arena_adopt(&b, null), -EINVAL);
	close(null);

	/* could be truncated under us */
	fd = memfd_create("t", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(arena_adopt(&b, fd), -EINVAL);
	/* sealed, but not ours */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(arena_adopt(&b, fd), -EINVAL);
	close(fd);

	/* ours, with a fill beyond its end */
	assert_int_equal(arena_init(&a, 4096), 0);
	assert_int_equal(ftruncate(a.fd, 4096), -1);
	((uint64_t *)a.base)[2] = a.size + 1;
	assert_int_equal(arena_adopt(&b, a.fd), -EINVAL);
	((uint64_t *)a.base)[2] = 0;
	assert_int_equal(arena_adopt(&b, a.fd), -EINVAL);
	arena_exit(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc), cmocka_unit_test(test_exact),
		cmocka_unit_test(test_adopt), cmocka_unit_test(test_huge),
		cmocka_unit_test(test_file),  cmocka_unit_test(test_adopt_refuses),
	};

	return cmocka_run_group_tests_name("store/arena", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tests that run once for each kernel of the CRC: it is their state. */
#ifndef LONGHAUL_TESTS_WIRE_KERNEL_H
#define LONGHAUL_TESTS_WIRE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/crc32.h"

/* The kernel of this test, or no test where the processor lacks it. */
static inline void use(void **state)
{
	if (!crc32_use((enum crc32_kernel)(uintptr_t)*state))
		skip();
}

/* Teardown: the kernel that is best here, for the tests that do not care. */
static inline int best(void **state)
{
	(void)state;
	for (int k = CRC32_KERNELS; k--;)
		if (crc32_use((enum crc32_kernel)k))
			return 0;
	return 1;
}

/* A test for each kernel. */
#define WIRE_ON(f, k)                                                                              \
	{                                                                                          \
#f " " #k, f, NULL, best, (void *)CRC32_##k                                        \
	}
#define EACH(f) WIRE_ON(f, LIBRARY), WIRE_ON(f, PCLMUL), WIRE_ON(f, AVX2), WIRE_ON(f, AVX512)

#endif

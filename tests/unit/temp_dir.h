/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A directory of the test program's own: setup and teardown of its group. Tests leave nothing
 * behind in it. */
#ifndef LONGHAUL_TESTS_TEMP_DIR_H
#define LONGHAUL_TESTS_TEMP_DIR_H

#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/longhaul-test-XXXXXX";

static inline int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call that is left after so many instructions, as a killed process leaves it: what it has stored
 * until then is there, what it would have stored is not. By the processor's trap flag, so on x86-64
 * only; STEPS is defined where it works.
 */
#ifndef TESTS_UNIT_STEP_H
#define TESTS_UNIT_STEP_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define STEPS

static sigjmp_buf step_out;
static volatile long steps_left;
static volatile bool *step_never; /* while it is true the call is not left */

static void on_step(int signo)
{
	(void)signo;
	if (steps_left > 0)
		steps_left--;
	else if (!step_never || !*step_never)
		siglongjmp(step_out, 1);
}

/* below what the caller may have beneath its stack pointer */
#define STEP_FLAG(op)                                                                              \
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" op                                 \
			 ", (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::                          \
				 : "cc", "memory")

/* fn(@arg), left after @n instructions: true. False: it came to its end before. */
static bool cut_off(void (*fn)(void *arg), void *arg, long n)
{
	struct sigaction sa = {.sa_handler = on_step}, before;
	volatile bool cut = true;

	sigaction(SIGTRAP, &sa, &before);
	steps_left = n;
	if (!sigsetjmp(step_out, 1)) {
		STEP_FLAG("orq $0x100");
		fn(arg);
		STEP_FLAG("andq $~0x100");
		cut = false;
	}
	sigaction(SIGTRAP, &before, NULL);
	return cut;
}
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon gives up once everything is open: capabilities that it needs no more, and every
 * system call that it never makes.
 */
#ifndef LONGHAUL_PRIVILEGE_H
#define LONGHAUL_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * privilege_drop - irrevocable. @sandbox: system calls too, not only capabilities.
 * 0, or a negative errno with one line in @err. A system call that is not on the list fails with
 * EPERM afterwards; nothing is killed.
 */
int privilege_drop(bool sandbox, char *err, size_t errlen);

#endif

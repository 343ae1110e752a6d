/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon gives up when everything is open: capabilities that it no longer needs, and
 * system calls that it never makes.
 */
#ifndef LONGHAUL_PRIVILEGE_H
#define LONGHAUL_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * privilege_drop - give up capabilities, irrevocably; threads that are made later have none either.
 * @net_admin: keep CAP_NET_ADMIN, to restore an interface's setting at the end
 * 0, or a negative errno with one line in @err.
 */
int privilege_drop(bool net_admin, char *err, size_t errlen);

/**
 * privilege_sandbox - restrict system calls, irrevocably, in all threads: one that is not on the
 * list fails with EPERM afterwards; nothing is killed. After privilege_drop(); as that.
 */
int privilege_sandbox(char *err, size_t errlen);

#endif

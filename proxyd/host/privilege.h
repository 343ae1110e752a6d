/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon gives up when everything is open: capabilities that it no longer needs, and
 * system calls that it never makes.
 */
#ifndef LONGHAUL_PRIVILEGE_H
#define LONGHAUL_PRIVILEGE_H

#include <stddef.h>

/**
 * enum privilege - options of privilege_drop().
 * @PRIVILEGE_SANDBOX:   restrict system calls, too
 * @PRIVILEGE_NET_ADMIN: keep CAP_NET_ADMIN, to restore an interface's setting at the end
 */
enum privilege {
	PRIVILEGE_SANDBOX = 1u << 0,
	PRIVILEGE_NET_ADMIN = 1u << 1,
};

/**
 * privilege_drop - irrevocable. @flags: of enum privilege. 0, or a negative errno with one line in
 * @err. A system call that is not on the list fails with EPERM afterwards; nothing is killed.
 */
int privilege_drop(unsigned int flags, char *err, size_t errlen);

#endif

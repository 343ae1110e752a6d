/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LONGHAUL_WIRE_NAMES_H
#define LONGHAUL_WIRE_NAMES_H

/* NAMES - the function @fn, which names the values of an enum of @count. */
#define NAMES(fn, type, count, ...)                                                                \
	const char *fn(type v)                                                                     \
	{                                                                                          \
		static const char *const names[count] = {__VA_ARGS__};                             \
                                                                                                   \
		return v < count ? names[v] : "?";                                                 \
	}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LONGHAUL_VERSION_H
#define LONGHAUL_VERSION_H

#define LONGHAUL_VERSION "0.1.0"

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of all roles (core/roles.h). */
#ifndef LONGHAUL_ENGINE_ROLES_H
#define LONGHAUL_ENGINE_ROLES_H

#include "engine/announce/announce.h"
#include "engine/core/roles.h"
#include "engine/far/far.h"
#include "engine/fault/fault.h"
#include "engine/learn/learn.h"
#include "engine/link/link.h"
#include "engine/near/near.h"
#include "engine/prefetch/prefetch.h"

extern const struct role_ops engine_roles[ROLES];

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How fast this machine copies packets: what the cost of a packet depends on. */
#ifndef LONGHAUL_CLI_PLAN_COST_H
#define LONGHAUL_CLI_PLAN_COST_H

#include <stdbool.h>

/** plan_cost - ns a byte of packets that go into memory: copied; copied with their CRC, as the pool
 * does it. Takes about 0.1 s. False without the memory for it. */
bool plan_cost(double *copy_ns, double *crc_ns);

#endif

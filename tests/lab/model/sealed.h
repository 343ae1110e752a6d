/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests with one appliance: its peer seals what it sends of a held lane (engine/core/seal.c).
 * */
#ifndef LONGHAUL_TESTS_SEALED_H
#define LONGHAUL_TESTS_SEALED_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

/** sealed_by_peer - seal the frame @data, which is to come to @e over the WAN, as its peer would:
 * with the key that @e has for the lane. A frame of no sealed lane stays as it is. @left: also with
 * the key of a lane that was let go. @own: as a request of the peer's own. */
void sealed_by_peer(struct engine *e, uint8_t *data, uint32_t len, bool left, bool own);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets in and out. A port layer hands over whole, contiguous frames and takes frames to send;
 * how they travel (AF_XDP, a capture file) stays behind this interface.
 */
#ifndef LONGHAUL_PORT_PORT_H
#define LONGHAUL_PORT_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "steer.h" /* STEER_LAN, STEER_WAN: the two ports */

/**
 * port_rx_fn - one received frame.
 * @data: @len contiguous bytes from the Ethernet header on, until the function returns; it may
 *        change them
 */
typedef void (*port_rx_fn)(void *ctx, enum steer_side side, uint8_t *data, uint32_t len);

/** port_soon_fn - the frame will most likely come after @PORT_SOON others, or sooner when there are
 * fewer; NULL: none will come then. Nothing is to be done but to make ready. */
typedef void (*port_soon_fn)(void *ctx, const uint8_t *data, uint32_t len);
#define PORT_SOON 12u

#endif

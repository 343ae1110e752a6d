/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UDP socket between appliances, and which address belongs to which peer. Never blocks. Only
 * this file and key.c do I/O in this folder.
 */
#ifndef LONGHAUL_PEER_SOCKET_H
#define LONGHAUL_PEER_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h" /* struct ip_addr */

struct peer_socket;

/**
 * peer_socket_open - bind @addr (all zero or :: for any, IPv4 and IPv6 alike; v4-mapped 0.0.0.0 for
 * any IPv4) and @port.
 * NULL with one line in @err (cause and mend, no newline).
 */
struct peer_socket *peer_socket_open(const struct ip_addr *addr, uint16_t port, char *err,
				     size_t err_len);

/** peer_socket_close - NULL is fine. */
void peer_socket_close(struct peer_socket *ps);

/** peer_socket_fd - to poll for reading. */
int peer_socket_fd(const struct peer_socket *ps);

/** peer_socket_port - the port that is bound (tests bind 0). */
uint16_t peer_socket_port(const struct peer_socket *ps);

/** peer_socket_map - peer @peer is at @addr and @port: datagrams from there are its, and those for
 *  it go there. 0, -EINVAL (index, address family that the socket cannot reach, port 0), -EEXIST
 *  (address and port of another peer). */
int peer_socket_map(struct peer_socket *ps, unsigned int peer, const struct ip_addr *addr,
		    uint16_t port);

/** peer_socket_class - the DSCP and ECN of datagrams to @peer; 0 at first. */
void peer_socket_class(struct peer_socket *ps, unsigned int peer, uint8_t tos);

/** peer_socket_reaches - whether the socket's family has a way to @addr. */
bool peer_socket_reaches(const struct peer_socket *ps, const struct ip_addr *addr);

/** peer_socket_unmap - forget @peer's address. */
void peer_socket_unmap(struct peer_socket *ps, unsigned int peer);

/** peer_socket_fn - a datagram from @peer; @data valid during the call only. @waited_ns: how long
 *  it had waited in the socket, 0 when not known. */
typedef void (*peer_socket_fn)(void *ctx, unsigned int peer, const uint8_t *data, size_t len,
			       uint64_t waited_ns);

/**
 * peer_socket_rx - hand what is waiting to @fn, at most @budget datagrams (0: all), from known
 * peers only. How many were read, unknown senders' included; 0 when none waits; a negative errno.
 */
int peer_socket_rx(struct peer_socket *ps, unsigned int budget, peer_socket_fn fn, void *ctx);

/** peer_socket_troubles - read what was refused. The kernel wakes us as long as it has some of it,
 * which peer_socket_rx() notices mostly, and not always: to be called when that found nothing. */
void peer_socket_troubles(struct peer_socket *ps);

/** peer_socket_trouble - errno with which this host or the network refused a datagram to @peer
 * since the latest call and the latest datagram of that peer; 0: none. */
int peer_socket_trouble(struct peer_socket *ps, unsigned int peer);

/** peer_socket_wait - from here on datagrams leave with peer_socket_flush() only; they are lost if
 * there is no room to wait. To be called before the first one. 0 or -ENOMEM. */
int peer_socket_wait(struct peer_socket *ps);

/** peer_socket_send - fits struct session_sink's send with @ctx the socket. A datagram that finds
 *  no room waits for peer_socket_flush(). A datagram that cannot be sent, or finds too many
 *  waiting, is counted and lost: the senders repeat every message that matters. */
void peer_socket_send(void *ctx, unsigned int peer, const uint8_t *data, size_t len);

/** peer_socket_probe - send @data at once, or not at all, and not in fragments, whatever was
 * learned of the path's MTU. @ifindex: the interface by which it shall leave, 0: as the route says.
 * False when this host did not send it. */
bool peer_socket_probe(struct peer_socket *ps, unsigned int peer, unsigned int ifindex,
		       const uint8_t *data, size_t len);

/** peer_socket_mtu - of the interface @name, 0: not known. */
unsigned int peer_socket_mtu(const struct peer_socket *ps, const char *name);

/** peer_socket_overhead - bytes of IP and UDP headers of a datagram to @peer. */
unsigned int peer_socket_overhead(const struct peer_socket *ps, unsigned int peer);

/** peer_socket_flush - send what waits. True while some still waits: call again soon. */
bool peer_socket_flush(struct peer_socket *ps);

/**
 * struct peer_socket_stats
 * @unknown_source: datagrams from other than peers' addresses, dropped unread
 * @unknown_addr, @unknown_port: source of the latest of them, to find a wrong address in a
 *                               configuration
 * @oversize:       longer than any datagram of the protocol, dropped
 * @overrun:        datagrams that the kernel dropped because the receive buffer was full
 * @tx_full:        not sent: no room in the send buffer for long, or too many of one batch
 * @tx_errors:      not sent for another reason
 * @rcvbuf:         bytes of receive buffer that the kernel granted
 */
struct peer_socket_stats {
	uint64_t rx, tx, unknown_source, oversize, overrun, tx_full, tx_errors, rx_errors;
	struct ip_addr unknown_addr;
	uint16_t unknown_port;
	int tx_errno;
	uint32_t rcvbuf;
};
void peer_socket_stats(const struct peer_socket *ps, struct peer_socket_stats *out);

#endif

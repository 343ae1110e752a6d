/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One interface as a packet socket with memory-mapped rings (TPACKET_V2): frames are read where the
 * kernel put them and sent from where they were built; one system call sends a batch. Tests
 * play hosts on it.
 */
#ifndef LONGHAUL_CLI_WANEM_PKT_RING_H
#define LONGHAUL_CLI_WANEM_PKT_RING_H

#include <stdbool.h>
#include <stdint.h>

/* Longest frame that fits a slot, and a long one, for networks with a larger MTU. */
#define PKT_RING_FRAME_MAX  4352u
#define PKT_RING_FRAME_LONG 9216u

struct pkt_ring;

/**
 * struct pkt_ring_frame - a received frame, in the ring until pkt_ring_release().
 * @ts_ns: kernel time of arrival, CLOCK_REALTIME
 * @whole: false if it was longer than a slot: only its head is here
 * @csum_missing: a local sender left the TCP or UDP checksum to the device
 */
struct pkt_ring_frame {
	uint8_t *data;
	uint32_t len;
	uint64_t ts_ns;
	bool whole, csum_missing;
};

/**
 * pkt_ring_open - @rx_slots, @tx_slots frames of memory each way. @promisc: frames for other
 * addresses too. @frame: the longest that will come; a slot holds PKT_RING_FRAME_MAX bytes, or
 * PKT_RING_FRAME_LONG if that is less. NULL with a one-line cause on stderr.
 */
struct pkt_ring *pkt_ring_open(const char *ifname, uint32_t rx_slots, uint32_t tx_slots,
			       bool promisc, uint32_t frame);
void pkt_ring_close(struct pkt_ring *r);
int pkt_ring_fd(const struct pkt_ring *r);
const uint8_t *pkt_ring_mac(const struct pkt_ring *r);
/** pkt_ring_there - false if the interface was removed. Takes the socket's error, so that poll()
 *  waits again. */
bool pkt_ring_there(const struct pkt_ring *r);
/** pkt_ring_visible - let captures on the interface see what is sent here: slower. */
int pkt_ring_visible(struct pkt_ring *r);

/** pkt_ring_next - the next received frame into @f; false when there is none. */
bool pkt_ring_next(struct pkt_ring *r, struct pkt_ring_frame *f);
/** pkt_ring_release - the frame last got by pkt_ring_next() back to the kernel. */
void pkt_ring_release(struct pkt_ring *r);

/** pkt_ring_buf - room for a frame to send, NULL when the ring is full. */
uint8_t *pkt_ring_buf(struct pkt_ring *r);
/** pkt_ring_queue - the frame in the buffer last got is complete; sent by the next
 * pkt_ring_flush(). */
void pkt_ring_queue(struct pkt_ring *r, uint32_t len);
/** pkt_ring_flush - send what is queued. */
void pkt_ring_flush(struct pkt_ring *r);
/** pkt_ring_refused - frames that the device did not take: they are dropped. */
uint64_t pkt_ring_refused(const struct pkt_ring *r);
/** pkt_ring_dropped - frames that the kernel dropped because the receive ring was full. */
uint64_t pkt_ring_dropped(struct pkt_ring *r);

/** pkt_fix_checksum - compute the TCP or UDP checksum that a local sender left out. */
void pkt_fix_checksum(uint8_t *data, uint32_t len);

#endif

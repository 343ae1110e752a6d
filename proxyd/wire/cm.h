/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connection manager datagrams (spec: IBTA 12.6): UD SEND ONLY to QPN 1 with the CM class.
 * Decoding only; the appliance sends none but DREQ.
 */
#ifndef LONGHAUL_WIRE_CM_H
#define LONGHAUL_WIRE_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/build.h"
#include "wire/frame.h"
#include "wire/storage.h"

enum cm_type {
	CM_NONE = 0, /* not a CM datagram, or too short */
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
};

/**
 * struct cm - the content of a CM datagram; fields that its type lacks are 0.
 * @local_id, @remote_id: comm ids, the sender's view
 * @lqpn:         REQ, REP: the sender's QPN; @rqpn: DREQ: the receiver's QPN
 * @starting_psn: REQ, REP: the PSN at which the *receiver* of this datagram will send
 * @path_mtu:     REQ: bytes (256 .. 4096), 0 when the code is invalid
 * @service_time: MRA: how long the answer may take, log2 of 4.096 us
 * @rc:           REQ: the service type is RC
 * @flow_control: REQ, REP: the sender's queue pair sends credits in its ACKs
 * @storage:      REQ: protocol of the requested service, by its port and private data
 */
struct cm {
	enum cm_type type;
	uint64_t transaction_id;
	uint32_t local_id, remote_id;
	uint32_t lqpn, rqpn;
	uint32_t starting_psn;
	uint32_t path_mtu;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry, ack_timeout;
	uint8_t service_time;
	bool rc, flow_control;
	enum storage_protocol storage;
};

/** cm_parse - decode @f; returns @out->type (CM_NONE for anything else). */
enum cm_type cm_parse(const struct frame *f, struct cm *out);

/**
 * cm_build_dreq - a DREQ from the template's sender, as a whole frame.
 * @out: FRAME_MAX bytes. @psn: PSN of the UD packet, any. @tid: transaction id, echoed by the DREP.
 * @local_id, @remote_id, @rqpn: the connection, as the sender sees it.
 * Returns the frame's length.
 */
uint32_t cm_build_dreq(uint8_t *out, const struct template *t, uint32_t psn, uint64_t tid,
		       uint32_t local_id, uint32_t remote_id, uint32_t rqpn);

#endif

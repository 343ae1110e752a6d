/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connection manager datagrams as a host sends them: built from the tables of
 * spec: IBTA 12.6, and laid out as in tests/data/cm-rping.pcap; and the handshake of one connection
 * as a small state machine, so that learning from it can be tested.
 */
#ifndef LAB_CM_EMIT_H
#define LAB_CM_EMIT_H

#include "tests/lab/model/rc_frame.h"
#include "tests/lab/model/rc_host.h"
#include "wire/cm.h"

#define CM_FRAME_MAX (14 + 8 + 40 + 8 + BTH_LEN + 8 + 256 + ICRC_LEN)

/**
 * cm_emit - one datagram of type @c->type into @out (CM_FRAME_MAX bytes); returns its length.
 * @h:    the sender's headers. @src, @dst: for the GIDs and the private data of a REQ
 * @c:    what it says. @psn: of the datagram itself (QPN 1 counts its own)
 */
uint32_t cm_emit(uint8_t *out, struct rc_header *h, const struct ip_addr *src,
		 const struct ip_addr *dst, const struct cm *c, uint32_t psn);

enum rc_cm_state {
	RC_CM_IDLE,	/* passive: waiting for a REQ */
	RC_CM_REQ_SENT, /* active: until the REP */
	RC_CM_REP_SENT, /* passive: until the RTU, or the first request */
	RC_CM_UP,
	RC_CM_DREQ_SENT,
	RC_CM_DOWN,
	RC_CM_FAILED, /* no answer, or rejected */
};

/**
 * struct rc_cm - one connection's handshake. Owned by the caller; no resources behind it.
 * @cfg:  the queue pair to be made. Own values must be set; rqpn and sq_psn are learnt from the
 *        peer
 */
struct rc_cm {
	struct rc_qp_config *cfg;
	struct rc_header header;
	enum rc_cm_state state;
	struct cm out;
	bool pending;
	uint32_t psn, tries;
	uint64_t resend_at, interval;
};

/** rc_cm_listen - passive. @id: own comm id, unique on the host. @interval: ns between resends. */
void rc_cm_listen(struct rc_cm *cm, struct rc_qp_config *cfg, uint32_t id, uint64_t interval);
/** rc_cm_connect - active: a REQ is due at once. */
void rc_cm_connect(struct rc_cm *cm, struct rc_qp_config *cfg, uint32_t id, uint64_t interval);
/** rc_cm_disconnect - a DREQ is due at once. */
void rc_cm_disconnect(struct rc_cm *cm);
/** rc_cm_rx - a frame that may be a CM datagram of this connection; returns whether it was. */
bool rc_cm_rx(struct rc_cm *cm, uint64_t now, const struct frame *f);
/** rc_cm_poll - what is to be sent now, into @out; returns its length, 0 for nothing. */
uint32_t rc_cm_poll(struct rc_cm *cm, uint64_t now, uint8_t *out);
/** rc_cm_next - when rc_cm_poll() has something, RC_NEVER for not by itself. */
uint64_t rc_cm_next(const struct rc_cm *cm);

#endif

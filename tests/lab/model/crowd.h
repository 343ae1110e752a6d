/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One engine and many connections through it, without host models: the caller decides which lane
 * sends its next request and what the far side answers. For tests and benches of what many lanes
 * cost each other. Of those only this file knows how lanes are learned and agreed.
 *
 * Lane n has requests to QPN CROWD_RQPN + n from QPN CROWD_LQPN + n, SEND ONLY all of them, and
 * PSNs of its own to begin with, so that its halves are paired by PSN. With @vlans it is in VLAN
 * 1 + n % @vlans, so that rules can tell lanes apart; else it has none.
 */
#ifndef LAB_CROWD_H
#define LAB_CROWD_H

#include "engine/engine.h"
#include "wire/build.h"

#define CROWD_RQPN  0x10000u
#define CROWD_LQPN  0x40000u
#define CROWD_LEARN 6u /* requests with which a lane is learned */

/**
 * struct crowd_lane - one of them.
 * @psn:  of its next request. @msn: how many it has sent
 * @id, @gen: as its engine named it to the peer, opener only
 * @seq:  of the latest PROGRESS
 */
struct crowd_lane {
	uint32_t psn, msn, id, gen, seq;
};

/**
 * struct crowd - @refuse: ports that have no room now, by a bit each; @impossible: ports that say
 * that they can never send this; @refused: frames that met either
 * @tx, @events, @reports: how much came out; @last: what went to the LAN last; @asks_place: reports
 * that say that the peer is to give an idle lane up
 * @sent: sees what lane @i's requests are sent on; may be NULL
 * @vlans: how many the lanes are spread over; to be set after crowd_start()
 */
struct crowd {
	struct engine *e;
	uint64_t now;
	uint32_t n;
	struct crowd_lane *lane;
	enum engine_port from;
	uint32_t payload;
	unsigned int refuse, impossible;
	uint64_t tx[PORTS], refused, events[8], reports, asks_place;
	struct template to_far, to_near;
	unsigned int vlans;
	void (*sent)(struct crowd *c, uint32_t i);
	void *user;
	struct {
		uint32_t psn, msn, qpn;
		uint8_t syndrome;
	} last;
};

/** crowd_start - an engine and @n lanes that it has not seen yet. @from: where their requests come
 *  from; @peer: 0, or PEER_NONE for an appliance alone. False when memory is short. */
bool crowd_start(struct crowd *c, uint32_t n, uint64_t pool, enum engine_port from, int peer);
/** crowd_start_places - in an engine with room for @places connections. */
bool crowd_start_places(struct crowd *c, uint32_t n, uint32_t places, uint64_t pool,
			enum engine_port from, int peer);
void crowd_end(struct crowd *c);

/** crowd_learn - requests and true ACKs of lane @i, until its halves are one connection. */
void crowd_learn(struct crowd *c, uint32_t i);
/** crowd_hold - and into custody, with one request more: the peer agrees, or opens it itself. Soon
 *  after it was learned: a lane that is to be opened does not wait for its peer for long. */
void crowd_hold(struct crowd *c, uint32_t i);

/** crowd_hold_all - all lanes, and near their requesters the peer has what they sent. False when
 *  not all of them are held then. */
bool crowd_hold_all(struct crowd *c);

/** crowd_frame - the next request of lane @i into @out (FRAME_MAX); returns its length. */
uint32_t crowd_frame(struct crowd *c, uint32_t i, uint8_t *out);
/** crowd_request - give that request to the engine. @skip: so many before it never come. */
void crowd_request(struct crowd *c, uint32_t i, uint32_t skip);
/** crowd_answer - an AETH from lane @i's responder. @psn, @msn: counted from its first request. */
void crowd_answer(struct crowd *c, uint32_t i, uint32_t psn, uint8_t syndrome, uint32_t msn);

/** crowd_progress - the peer has all that lane @i has sent, and so has the responder. */
void crowd_progress(struct crowd *c, uint32_t i);
/** crowd_report_hole - the peer has the last @have of what lane @i has sent, but not the rest. */
void crowd_report_hole(struct crowd *c, uint32_t i, uint32_t have);
/** crowd_room - the peer has the first @arrived of what lane @i ever sent, knows of no more, and
 *  can take @packets beyond what was sent. */
void crowd_room(struct crowd *c, uint32_t i, uint32_t arrived, uint32_t packets);
/** crowd_place - the peer has all that lane @i has sent, and wants its place for another one. */
void crowd_place(struct crowd *c, uint32_t i);
/** crowd_close - the peer, who opened lane @i, closes it. */
void crowd_close(struct crowd *c, uint32_t i);

/** crowd_tick - @ns pass, then what is due is done. */
void crowd_tick(struct crowd *c, uint64_t ns);

#endif

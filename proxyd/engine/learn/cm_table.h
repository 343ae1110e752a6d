/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Handshakes and disconnects of the connection manager that are under way, see cm_table.c. */
#ifndef LONGHAUL_ENGINE_LEARN_CM_TABLE_H
#define LONGHAUL_ENGINE_LEARN_CM_TABLE_H

#include "engine/core/core.h"

/**
 * struct cm_rep - what a REP says.
 * @id:  the sender's comm id; @qpn: its queue pair, 0: there is no REP
 * @psn: of the requests to it
 * @depth: READs that it takes as a responder; @credits: its queue pair gives credits
 */
struct cm_rep {
	uint32_t id, qpn, psn;
	uint8_t depth;
	bool credits;
};

/** struct cm_key - what finds a place: two hosts, the sender of the REQ or DREQ first, and @id. */
struct cm_key {
	struct ip_addr src, dst;
	uint16_t vlan;
	uint32_t id;
};

/* What @id of the key is: the sender's comm id in a handshake, in a disconnect; its queue pair in a
 * REQ that waits for its REP. */
enum cm_kind { CM_BY_ID, CM_BY_LEAVING_ID, CM_BY_QPN };
#define CM_CHAINS 2 /* CM_BY_ID or CM_BY_LEAVING_ID, CM_BY_QPN */

/**
 * struct cm_pending - a REQ, or a DREQ, that is not answered yet, or has been lately.
 * @starting_psn: of the requests to @lqpn
 * @rep:         the latest REP; @other: the one before it that said something else
 * @read_depth:  READs that the REQ's sender takes as a responder
 * @req_credits: its queue pair gives credits
 * @storage:     enum storage_protocol of the service that the REQ asks for
 * @certain:     the RTU has come; @made: flows were made for the two
 * @offer:       an offer came before the REP, for the requests to @offer_rqpn
 * @when:        when the REQ came first, or the DREQ; @until: forgotten then
 * @chain, @before, @after: of the table; numbers of places, from 1
 */
struct cm_pending {
	struct cm_key key;
	uint32_t lqpn, starting_psn, path_mtu;
	struct cm_rep rep, other;
	uint32_t offer, offer_rqpn;
	uint8_t side, read_depth;
	bool certain, leaving, made, req_credits;
	uint8_t storage, list;
	uint64_t when, until;
	uint32_t chain[CM_CHAINS], before, after;
};

/* Places by list: LIST_WAITING and on are of sources, by a hash, that wait for an answer. */
#define CM_SOURCES 64u
enum cm_list_number { LIST_OVER, LIST_ANSWERED, LIST_WAITING, LISTS = LIST_WAITING + CM_SOURCES };

struct cm_list {
	uint32_t head, tail, n;
};

/**
 * struct cm_table - behind the places are the heads of the chains, @mask + 1 for each of CM_CHAINS.
 * @used: places that were ever used
 */
struct cm_table {
	uint32_t size, mask, used;
	struct cm_list list[LISTS];
	struct cm_pending place[];
};

struct cm_pending *cm_find(struct engine *e, const struct cm_key *k, enum cm_kind kind);
/** cm_next - the next one after @p with the same key of kind CM_BY_QPN. */
struct cm_pending *cm_next(struct engine *e, struct cm_pending *p);
/** cm_begin - a place for @what; NULL when there is none. */
struct cm_pending *cm_begin(struct engine *e, const struct cm_pending *what);
/** cm_heard - something of @p has come: it waits for the next, @ns more than usual. */
void cm_heard(struct engine *e, struct cm_pending *p, uint64_t ns);
/** cm_over - nothing more is waited for. It is still found, until another one needs the place. */
void cm_over(struct engine *e, struct cm_pending *p);
/** cm_forget - nor is it to be found. */
void cm_forget(struct engine *e, struct cm_pending *p);

#endif

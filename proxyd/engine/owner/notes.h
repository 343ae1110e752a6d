/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What owner/ and learn/ share: notes of which flow asked under which PSN. */
#ifndef LONGHAUL_ENGINE_OWNER_NOTES_H
#define LONGHAUL_ENGINE_OWNER_NOTES_H

#include "engine/owner/owner.h"

/* A note is fresh for so long. */
#define MATCH_NS       (2 * NSEC_PER_SEC)
/* So many answers make a pair. */
#define MATCHES_NEEDED 4

/* notes.c */
struct psn_match *match_slot(struct engine *e, const struct ip_addr *from, const struct ip_addr *to,
			     uint16_t vlan, uint32_t psn, uint32_t lqpn, uint32_t *tag);
bool match_tells(const struct engine *e, const struct psn_match *m, uint32_t tag);
void match_write(const struct engine *e, struct psn_match *m, uint32_t tag, uint32_t i);
void match_note(struct engine *e, struct flow *fl, uint32_t psn, uint32_t lqpn);
/* match_noted - a flow that @ack may answer has just asked with @psn. */
bool match_noted(struct engine *e, const struct flow *ack, uint32_t psn);
void match_count(struct engine *e, struct flow *fl, uint32_t psn);
bool match_loose(struct engine *e, const struct flow *fl);
bool match_unanswered(struct engine *e, const struct flow *fl);
struct flow *match_find(struct engine *e, const struct flow *ack, uint32_t psn, uint32_t lqpn);

/* answers.c */
void match_contradicts(struct engine *e, struct flow *fl);
void match_other_requester(struct engine *e, const struct flow *ack, uint32_t psn);

#endif

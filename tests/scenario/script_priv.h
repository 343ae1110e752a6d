/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the script runner share: words. Text to packet and back is script_packet.c,
 * reports are script_report.c; script_run.h has the rest. */
#ifndef SCENARIO_SCRIPT_PRIV_H
#define SCENARIO_SCRIPT_PRIV_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "tests/scenario/script.h"
#include "wire/build.h"
#include "wire/psn.h"

#define SCRIPT_TOKENS 48
#define NEAR_QPN      0x11u
#define FAR_QPN	      0x22u

/** struct tokens - the words of a line from @at on. */
struct tokens {
	char *word[SCRIPT_TOKENS];
	unsigned int n, at;
};

/** struct range - @from .. @to, both included. */
struct range {
	int32_t from, to;
};

/**
 * struct packet - a packet as a script describes it; PSN and MSN relative to the world's bases.
 * @kind:  index of its name
 * @given: SET_* of what was said, the rest are defaults
 * @near:  number of the host on the LAN side, @far: beyond the WAN
 */
struct packet {
	unsigned int kind, given;
	struct range psn, msn;
	uint32_t len, total, credit, data, imm, qpn, near, far;
	uint64_t value, va;
	uint32_t rkey;
	int32_t of;		     /* SET_OF: whose payload */
	uint32_t id, start_psn, mtu; /* connection manager */
	uint32_t passive_id;	     /* 0: as id */
	uint8_t service_time;	     /* CM_MRA */
	uint8_t takes;		     /* CM_REQ, CM_REP: READs and ATOMICs at a time */
	bool no_credits;	     /* CM_REQ, CM_REP: the sender's queue pair gives none */
	uint16_t sport;		     /* 0: the host's own */
	uint8_t ttl, syndrome;	     /* SET_SYNDROME */
	bool ackreq, bad_icrc, batch, congested;
	bool native, sealed; /* injected, expected: without a seal, with one */
	bool own;	     /* with that of a request of the opener's own */
};

#define SET_PSN	     0x001u
#define SET_MSN	     0x002u
#define SET_LEN	     0x004u
#define SET_TOTAL    0x008u
#define SET_DATA     0x010u
#define SET_OTHER    0x020u
#define SET_OF	     0x040u
#define SET_VALUE    0x080u
#define SET_SYNDROME 0x100u
#define DEFAULT_VA   0x100000u
#define DEFAULT_RKEY 7u

struct script; /* script_run.h */

/** script_fail - ends the run: the line, and @fmt. */
_Noreturn void script_fail(struct script *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const struct script_world *script_world(const struct script *s);
uint32_t script_mtu(const struct script *s);
bool script_responder(const struct script *s);

/* words: script.c */
bool tokens_left(const struct tokens *t);
const char *token_next(struct script *s, struct tokens *t, const char *what);
bool token_is(struct tokens *t, const char *word);
int64_t token_number(struct script *s, struct tokens *t, const char *what);
uint64_t token_duration(struct script *s, struct tokens *t, const char *what); /* ns */
struct range token_range(struct script *s, struct tokens *t, const char *what);
struct range text_range(struct script *s, const char *text);
/** token_choice - index of the next word in @names, @n of them. */
int token_choice(struct script *s, struct tokens *t, const char *const *names, int n,
		 const char *what);

/* script_packet.c */
/** packet_parse - @expected: an ACK must say its MSN. */
void packet_parse(struct script *s, struct tokens *t, struct packet *p, bool expected);
/** packet_build - number @i of the packet's range as the host on side @from sends it, into @out
 * (FRAME_MAX
 *  bytes); returns the length of the frame. */
uint32_t packet_build(struct script *s, const struct packet *p, uint32_t i, enum engine_port from,
		      uint8_t *out);
/** packet_describe - the frame in the words of the language. */
void packet_describe(struct script *s, const uint8_t *data, uint32_t len, char *out, size_t size);
/** packet_kind - index of the frame's name, -1 when it has none. */
int packet_kind(const uint8_t *data, uint32_t len);
int packet_kind_by_name(const char *name);
/** packet_inherit - @p as the script said it, and what it did not say as @sent had it. */
void packet_inherit(struct packet *p, const struct packet *sent);
/** packet_echoes - whether a packet of this kind, when expected, may be one that was sent before.
 * */
bool packet_echoes(unsigned int kind);
void packet_address(const struct script_world *w, enum engine_port side, uint32_t host,
		    struct ip_addr *a);

/* script_report.c */
/** report_parse - fields named in @t into @r, which holds the defaults. Returns REPORT_SET_* of
 * them. */
uint32_t report_parse(struct script *s, struct tokens *t, struct report *r);
/** report_matches - whether @got has the fields @set of @want. */
bool report_matches(const struct report *got, const struct report *want, uint32_t set);
void report_describe(struct script *s, const struct report *r, char *out, size_t size);
int lane_reason_by_name(struct script *s, const char *name);
extern const char *const report_names[];
#define REPORT_KINDS 11
const char *report_name(uint8_t type);
#define REPORT_SET_LANE 0x80000000u /* "other-lane", "other-generation", "old": spoilt on purpose */
#define REPORT_SET_GEN	0x40000000u
#define REPORT_SET_OLD	0x20000000u

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judging captures of a run after it: `pcapcheck' and its tests. It shares the header layer
 * (proxyd/wire) with the product and nothing else.
 *
 *	host A -- lan-a -- appliance A -- wan-a  ~~~  wan-b -- appliance B -- lan-b -- host B
 *
 * A *lane* is the requests of one queue pair and what answers them. Its *near* LAN is the
 * requester's, its *far* LAN the responder's (in single mode: the appliance's WAN side, where it is
 * the requester). Within one file the order of times counts. Times of different files are compared
 * only to tell which of two equal ACKs came first, and to learn where the hosts are.
 *
 * Custody. A lane that is watched passes everything through, and then most rules about
 * acknowledgements do not apply: the ACKs are the hosts'. An ACK on the near LAN is *made* by the
 * appliance when the same ACK did not come over the near WAN, else it *passed*. The first made one
 * begins custody. A passed ACK or NAK with news ends custody, since an appliance that has released
 * a lane passes everything again; a passed one without news has leaked.
 *
 * Rules:
 *
 *	frame	 headers and lengths are sound
 *	icrc	 the invariant CRC is right on a LAN, or the frame came so over the WAN; between two
 *		 appliances, requests in custody and their answers are sealed
 *	sequence requests follow each other as FIRST, MIDDLE, LAST or ONLY with the lengths that
 *		 they announce
 *	psn	 requests are contiguous except repeats; gaps are filled in the end; repeats are the
 *		 same as the first time
 *	early	 an ACK or NAK covers only what was seen before it; in custody, no READ without
 *		 its answer
 *	msn	 an ACK's MSN counts the messages that it covers
 *	read	 every READ, ATOMIC, FLUSH and ATOMIC WRITE is answered, with the opcodes and
 *		 lengths that its PSNs demand
 *	leak	 in custody, no ACK or NAK of the true responder reaches the requester, and the
 *		 appliance sends none twice without a request for it
 *	double	 a request reaches the responder again only with a cause: a NAK, silence, or a
 *		 repeat by the requester
 *	bytes	 the far LAN has what the near LAN has, PSN by PSN, in requests and answers
 *	lost	 what was acknowledged in custody reached the far LAN
 *	pair	 the captures tell the two queue pairs of a connection
 */
#ifndef LAB_CHECK_H
#define LAB_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wire/frame.h"

enum check_place {
	PLACE_LAN_A,
	PLACE_WAN_A,
	PLACE_WAN_B,
	PLACE_LAN_B,
	PLACES,
};

enum check_rule {
	RULE_FRAME,
	RULE_ICRC,
	RULE_SEQUENCE,
	RULE_PSN,
	RULE_EARLY,
	RULE_MSN,
	RULE_READ,
	RULE_LEAK,
	RULE_DOUBLE,
	RULE_BYTES,
	RULE_LOST,
	RULE_PAIR,
	RULES,
};

const char *check_rule_name(enum check_rule r);

#define CHECK_LOCALS 16
#define CHECK_BARE   8

/**
 * struct check_config
 * @file:       captures by place, NULL where there is none
 * @bare, @nbare: instead of those: captures of hosts without appliances, each judged by itself
 * @local, @nlocal: hosts at site A; with none they are learned (not in bare captures: there each
 *                  lane is judged as if the capture had been taken at its requester)
 * @single:     -1: pair mode; 0, 1: only site A, B has an appliance
 * @held:       lanes were in custody before the captures began, and stay so
 * @prefetch: PSNs of the two LANs need not agree, and READs may have been asked ahead
 * @damage:     the WAN damages packets: what is malformed or has a wrong ICRC is no violation
 * @lan_loss:   LANs lose packets between a capture and the appliance, so it cannot be told why an
 *              appliance repeats requests, nor whether it had passed an answer before its ACK
 * @pass_repeats: a request that an appliance sends over the WAN again, after it had arrived and was
 *                truly acknowledged, may reach the responder again, and the responder's ACK to a
 *                repeat by an appliance the requester
 * @stalls:     the LANs were captured by hosts that stand still at times: what they then find may
 *              have come any time since, so repeats may look to have had no silence before them
 * @repeats:    so many requests the far appliance says to have repeated by itself, toward its
 *              responder. Captures of hosts that stand still do not show what it knew at the time:
 *              so many are taken for its timers' doing
 * @path_mtu:   0: learned
 * @max:        print so many violations of a rule
 * @lan_ns:     how long an ACK and a repeated request may be on their way past each other on a far
 * LAN
 * @grace_ns:   how long after a requester's repeat an ACK may answer it
 * @skew_ns:    how far the clocks of two captures may differ beyond what requests in both tell
 * @verbose:    a line for each lane
 */
struct check_config {
	const char *file[PLACES];
	const char *bare[CHECK_BARE];
	unsigned int nbare;
	struct ip_addr local[CHECK_LOCALS];
	unsigned int nlocal;
	int single;
	bool held, prefetch, damage, pass_repeats, lan_loss, stalls, verbose;
	uint32_t path_mtu;
	uint32_t max;
	uint64_t repeats;
	uint64_t lan_ns, grace_ns, skew_ns;
};

struct check_result {
	uint64_t frames, lanes, violations, rule[RULES];
	uint64_t custody; /* lanes that were in custody at some time */
	uint64_t made;	  /* ACKs made by appliances */
};

enum check_status {
	CHECK_RIGHT = 0,
	CHECK_VIOLATIONS = 1,
	CHECK_CANNOT = 2, /* a reason was printed */
};

void check_defaults(struct check_config *c);

/** check_run - judge, and write one line for each violation to @out. */
enum check_status check_run(const struct check_config *c, FILE *out, struct check_result *res);

/**
 * check_capture - write what passes @ifname to @path until a signal (SIGTERM, SIGINT) or for
 * @seconds (0: no limit). Returns a check_status: CHECK_VIOLATIONS when frames were dropped.
 */
int check_capture(const char *ifname, const char *path, double seconds);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Toward the near requester, packet by packet: what is acknowledged, when, with which bytes, and what is
 * not. The link is a peer that says what the test lets it say.
 */
#include "tests/unit/engine_rig.h"

#define HELD(policy, mtu) rig_held(NULL, 0, policy, mtu)

/* Sent on as it came, and acknowledged up to it. */
static void accepted(struct rig *r, const char *packet, uint32_t psn, uint32_t msn)
{
	rig_rx(r, NEAR, "%s", packet);
	rig_expect(r, PORT_WAN, "%s", packet);
	rig_expect(r, PORT_LAN, ACK_TO_NEAR, psn, msn);
	rig_quiet(r);
}

/* NTT-1: the pseudo-ACK to the last byte: the responder's addresses, source port, TTL and P_Key, the
 * requester's QPN, MSN and credits, checksum and ICRC. */
static void test_pseudo_ack_bytes(void **state)
{
	struct rig *r = HELD(POLICY_EARLY, RIG_MTU);
	uint8_t want[128];
	uint32_t n = rig_hex(want, "020000000001 020000000002 0800"
				   "45 00 0030 0000 4000 40 11 26b9 0a020001 0a010001"
				   "c001 12b7 001c 0000"
				   "11 40ffff 00000011 00000006"
				   "1f 000007"
				   "1bb15b41");
	struct rig_frame *f;

	(void)state;
	rig_rx(r, NEAR, SEND_ONLY("000006"));
	rig_expect(r, PORT_WAN, SEND_ONLY("000006"));
	f = rig_sent(r, PORT_LAN);
	assert_int_equal(f->len, n);
	assert_memory_equal(f->data, want, n);
	rig_quiet(r);
	assert_int_equal(rig_conn(r).lane[LANE_OUT].custody.packets, 1);
	rig_destroy(r);
}

/* NTT-1: all kinds of SEND and WRITE are answered at their ends; the true answers are not heard twice. */
static void test_pseudo_ack_kinds(void **state)
{
	struct rig *r = HELD(POLICY_EARLY, RIG_MTU);

	(void)state;
	/* SEND ONLY with immediate, with invalidate; WRITE ONLY, with immediate; a SEND of no bytes */
	accepted(r, "05 40ffff 00000022 80000006 | 0000abcd | 61*8", 6, 7);
	accepted(r, "17 40ffff 00000022 80000007 | 00000055 | 61*8", 7, 8);
	accepted(r, "0a 40ffff 00000022 80000008 | 0000000000001000 00000007 00000008 | 61*8", 8, 9);
	accepted(r, "0b 40ffff 00000022 80000009 | 0000000000001000 00000007 00000005 | 0000abcd | 61*8",
		 9, 10) /* fails its length check below if it did not have a pad */;
	rig_destroy(r);
}

int main(void)
{
	return 0;
}

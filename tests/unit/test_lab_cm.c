// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The lab's connection manager: its datagrams against those of a real host, and the handshake with
 * lost datagrams.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/lab/model/cm_emit.h"
#include "cli/wanem/prng.h"
#include "tests/unit/pcap_data.h"
#include "wire/icrc.h"

static void same_bytes(const uint8_t *a, const uint8_t *b, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (a[i] != b[i])
			fail_msg("byte %u from the BTH: %02x, captured %02x", i, a[i], b[i]);
}

/* What a capture says, said again, gives the same bytes (but for the flow label and packet rate of
 * a REQ). */
static void as_captured(void **state)
{
	struct pcap_data d = pcap_data_load("cm-rping");
	uint32_t seen = 0;

	(void)state;
	for (uint32_t i = 0; i < d.n; i++) {
		uint8_t out[CM_FRAME_MAX];
		struct rc_header h;
		struct frame f, g;
		struct cm c, c2;
		uint32_t len;

		if (frame_parse(d.pkt[i], d.len[i], &f) != FRAME_OK || cm_parse(&f, &c) == CM_NONE)
			continue;
		seen |= 1u << c.type;
		rc_header_init(&h, f.data + 6, f.data, FRAME_VLAN_NONE, &f.src, &f.dst, f.sport);
		len = cm_emit(out, &h, &f.src, &f.dst, &c, f.psn);
		assert_int_equal(len, f.len);
		assert_int_equal(frame_parse(out, len, &g), FRAME_OK);
		assert_true(icrc_ok(&g));
		assert_int_equal(cm_parse(&g, &c2), c.type);
		assert_memory_equal(&c, &c2, sizeof(c));
		same_bytes(out + g.bth, f.data + f.bth, 0, c.type == CM_REQ ? 132 : 276);
		if (c.type == CM_REQ)
			same_bytes(out + g.bth, f.data + f.bth, 137, 276);
	}
	assert_int_equal(seen, 1u << CM_REQ | 1u << CM_REP | 1u << CM_RTU | 1u << CM_DREQ |
				       1u << CM_DREP);
	pcap_data_free(&d);
}

/* Both ends agree in the end, whatever is lost, and each has learnt what it needs. */
static void handshake(void **state)
{
	static const uint8_t ip_a[4] = {10, 1, 0, 1}, ip_b[4] = {10, 1, 0, 2};

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct rc_qp_config cfg[2];
		struct rc_cm cm[2];
		struct prng r;
		uint64_t now = 0;
		int goal = RC_CM_UP;

		prng_init(&r, seed);
		rc_qp_defaults(&cfg[0], RC_STRICT);
		cfg[0].src = ip_addr_v4(ip_a);
		cfg[0].dst = ip_addr_v4(ip_b);
		cfg[0].lqpn = 0x11;
		cfg[0].rq_psn = 0x123456;
		rc_qp_mirror(&cfg[1], &cfg[0]);
		cfg[1].lqpn = 0x77;
		cfg[1].rq_psn = 0xabcdef;
		cfg[0].rqpn = cfg[1].rqpn = cfg[0].sq_psn = cfg[1].sq_psn = 0;
		cfg[1].mtu = 4096;
		rc_cm_connect(&cm[0], &cfg[0], 100, 1000);
		rc_cm_listen(&cm[1], &cfg[1], 200, 1000);
		for (int i = 0; i < 400; i++, now += 100) {
			for (int side = 0; side < 2; side++) {
				uint8_t out[CM_FRAME_MAX];
				struct frame f;
				uint32_t len = rc_cm_poll(&cm[side], now, out);

				if (!len || prng_hit(&r, 0.2))
					continue;
				assert_int_equal(frame_parse(out, len, &f), FRAME_OK);
				assert_true(rc_cm_rx(&cm[!side], now, &f));
			}
			if (goal == RC_CM_UP && cm[0].state == RC_CM_UP &&
			    cm[1].state == RC_CM_UP) {
				goal = RC_CM_DOWN;
				rc_cm_disconnect(&cm[seed & 1]);
			}
		}
		assert_int_equal(goal, RC_CM_DOWN);
		assert_int_equal(cm[0].state, RC_CM_DOWN);
		assert_int_equal(cm[1].state, RC_CM_DOWN);
		assert_int_equal(cfg[0].rqpn, 0x77);
		assert_int_equal(cfg[1].rqpn, 0x11);
		assert_int_equal(cfg[0].sq_psn, 0xabcdef);
		assert_int_equal(cfg[1].sq_psn, 0x123456);
		assert_int_equal(cfg[1].mtu, 1024);
	}
}

static void nobody_answers(void **state)
{
	struct rc_qp_config cfg;
	uint8_t out[CM_FRAME_MAX];
	struct rc_cm cm;
	int sent = 0;

	(void)state;
	rc_qp_defaults(&cfg, RC_STRICT);
	memset(out, 10, sizeof(out));
	cfg.src = cfg.dst = ip_addr_v4(out);
	rc_cm_connect(&cm, &cfg, 1, 1000);
	while (rc_cm_next(&cm) != RC_NEVER)
		sent += rc_cm_poll(&cm, rc_cm_next(&cm), out) != 0;
	assert_int_equal(sent, 15);
	assert_int_equal(cm.state, RC_CM_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_captured),
		cmocka_unit_test(handshake),
		cmocka_unit_test(nobody_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

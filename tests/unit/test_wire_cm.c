// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CM datagrams: the golden set-up and tear-down of cm-rping, and what must not pass for CM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/pcap_data.h"
#include "wire/bytes.h"
#include "wire/build.h"
#include "wire/cm.h"
#include "wire/icrc.h"

enum { REQ_AT, REP_AT, RTU_AT, DREQ_AT = 39, DREP_AT };

static struct pcap_data d;

static int load(void **state)
{
	(void)state;
	d = pcap_data_load("cm-rping");
	return 0;
}

static int unload(void **state)
{
	(void)state;
	pcap_data_free(&d);
	return 0;
}

static struct cm parse_at(uint32_t i)
{
	struct frame f;
	struct cm cm;

	assert_int_equal(frame_parse(d.pkt[i], d.len[i], &f), FRAME_OK);
	cm_parse(&f, &cm);
	return cm;
}

static void request(void **state)
{
	struct cm cm = parse_at(REQ_AT);

	(void)state;
	assert_int_equal(cm.type, CM_REQ);
	assert_int_equal(cm.transaction_id, 0x0000000291289ccfull);
	assert_int_equal(cm.local_id, 0xcf9c2891);
	assert_int_equal(cm.remote_id, 0);
	assert_int_equal(cm.lqpn, 0x18);
	assert_int_equal(cm.rqpn, 0);
	assert_int_equal(cm.starting_psn, 0x04e8fb);
	assert_int_equal(cm.responder_resources, 1);
	assert_int_equal(cm.initiator_depth, 1);
	assert_int_equal(cm.retry_count, 7);
	assert_int_equal(cm.rnr_retry, 7);
	assert_int_equal(cm.path_mtu, 4096);
	assert_int_equal(cm.ack_timeout, 0x13);
	assert_true(cm.rc);
}

/* Which storage protocol a REQ asks for shows in its service id, or in NFS's private data. */
static void storage_service(void **state)
{
	static const struct {
		uint64_t service;
		uint32_t magic;
		enum storage_protocol storage;
	} want[] = {
		{0x0000000001061144, 0, STORAGE_NVME},
		{0x0000000001060cbc, 0, STORAGE_ISER},
		{0x0000000001064e51, 0, STORAGE_NFS},
		{0x0000000001061144, 0xf6ab0e18, STORAGE_NFS},
		{0x0000000001060801, 0xf6ab0e18, STORAGE_NFS},
		{0x0000000001060801, 0, STORAGE_UNKNOWN},
		{0x0000000001061145, 0, STORAGE_UNKNOWN},
		/* another port space, and no service of rdma_cm's at all */
		{0x0000000001111144, 0, STORAGE_UNKNOWN},
		{0x1000000001061144, 0xf6ab0e18, STORAGE_UNKNOWN},
	};
	struct frame f;
	struct cm cm;

	(void)state;
	assert_int_equal(parse_at(REQ_AT).storage, STORAGE_UNKNOWN);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint8_t pkt[FRAME_MAX];

		memcpy(pkt, d.pkt[REQ_AT], d.len[REQ_AT]);
		assert_int_equal(frame_parse(pkt, d.len[REQ_AT], &f), FRAME_OK);
		put_be64(pkt + f.payload + 32, want[i].service);
		put_be32(pkt + f.payload + 200, want[i].magic);
		assert_int_equal(cm_parse(&f, &cm), CM_REQ);
		assert_int_equal(cm.storage, want[i].storage);
	}
	assert_int_equal(parse_at(REP_AT).storage, STORAGE_UNKNOWN);
}

static void reply(void **state)
{
	struct cm cm = parse_at(REP_AT);

	(void)state;
	assert_int_equal(cm.type, CM_REP);
	assert_int_equal(cm.transaction_id, 0x0000000291289ccfull);
	assert_int_equal(cm.local_id, 0xa4048fa3);
	assert_int_equal(cm.remote_id, 0xcf9c2891);
	assert_int_equal(cm.lqpn, 0x18);
	assert_int_equal(cm.starting_psn, 0x491f72);
	assert_int_equal(cm.responder_resources, 1);
	assert_int_equal(cm.initiator_depth, 1);
	assert_int_equal(cm.rnr_retry, 7);
	assert_int_equal(cm.path_mtu, 0);
}

static void ready_and_disconnect(void **state)
{
	struct cm cm = parse_at(RTU_AT);

	(void)state;
	assert_int_equal(cm.type, CM_RTU);
	assert_int_equal(cm.local_id, 0xcf9c2891);
	assert_int_equal(cm.remote_id, 0xa4048fa3);
	assert_int_equal(cm.lqpn, 0);

	cm = parse_at(DREQ_AT);
	assert_int_equal(cm.type, CM_DREQ);
	assert_int_equal(cm.local_id, 0xcf9c2891);
	assert_int_equal(cm.remote_id, 0xa4048fa3);
	assert_int_equal(cm.rqpn, 0x18);

	cm = parse_at(DREP_AT);
	assert_int_equal(cm.type, CM_DREP);
	assert_int_equal(cm.local_id, 0xa4048fa3);
	assert_int_equal(cm.remote_id, 0xcf9c2891);
	assert_int_equal(cm.rqpn, 0);
}

/* spec: IBTA 12.6: the PSN in a datagram is the one at which its receiver will send. */
static void starting_psn_belongs_to_the_receiver(void **state)
{
	struct cm req = parse_at(REQ_AT), rep = parse_at(REP_AT);
	struct frame fr, f;
	bool active = false, passive = false;

	(void)state;
	assert_int_equal(frame_parse(d.pkt[REQ_AT], d.len[REQ_AT], &fr), FRAME_OK);
	for (uint32_t i = RTU_AT + 1; i < d.n && !(active && passive); i++) {
		assert_int_equal(frame_parse(d.pkt[i], d.len[i], &f), FRAME_OK);
		if (!(f.op->flags & OPF_REQUEST))
			continue;
		if (ip_addr_eq(&f.src, &fr.src)) {
			if (!active)
				assert_int_equal(f.psn, rep.starting_psn);
			assert_int_equal(f.dqpn, rep.lqpn);
			active = true;
		} else {
			if (!passive)
				assert_int_equal(f.psn, req.starting_psn);
			assert_int_equal(f.dqpn, req.lqpn);
			passive = true;
		}
	}
	assert_true(active && passive);
}

static void data_is_not_cm(void **state)
{
	struct pcap_data ud = pcap_data_load("ud");
	struct frame f;
	struct cm cm;

	(void)state;
	for (uint32_t i = RTU_AT + 1; i < DREQ_AT; i++)
		assert_int_equal(parse_at(i).type, CM_NONE);
	for (uint32_t i = 0; i < ud.n; i++) {
		assert_int_equal(frame_parse(ud.pkt[i], ud.len[i], &f), FRAME_OK);
		assert_int_equal(cm_parse(&f, &cm), CM_NONE);
	}
	pcap_data_free(&ud);
}

static enum cm_type with_byte(uint32_t i, uint32_t from_bth, uint8_t v, struct cm *cm)
{
	uint8_t *copy = malloc(d.len[i]);
	enum cm_type type;
	struct frame f;

	memcpy(copy, d.pkt[i], d.len[i]);
	assert_int_equal(frame_parse(copy, d.len[i], &f), FRAME_OK);
	copy[f.bth + from_bth] = v;
	assert_int_equal(frame_parse(copy, d.len[i], &f), FRAME_OK);
	type = cm_parse(&f, cm);
	free(copy);
	return type;
}

static void every_gate_is_checked(void **state)
{
	struct cm cm;

	(void)state;
	assert_int_equal(with_byte(REQ_AT, 7, 2, &cm), CM_NONE);  /* QPN 2 */
	assert_int_equal(with_byte(REQ_AT, 12, 0, &cm), CM_NONE); /* Q_Key */
	assert_int_equal(with_byte(REQ_AT, 20, 2, &cm), CM_NONE); /* base version */
	assert_int_equal(with_byte(REQ_AT, 21, 3, &cm), CM_NONE); /* class: subnet administration */
	assert_int_equal(with_byte(REQ_AT, 23, 0x81, &cm), CM_NONE); /* method */
	assert_int_equal(with_byte(REQ_AT, 36, 1, &cm), CM_NONE);
	assert_int_equal(with_byte(REQ_AT, 37, 0x0f, &cm), CM_NONE);
	assert_int_equal(with_byte(REQ_AT, 37, 0x17, &cm), CM_NONE); /* SIDR REQ */
	for (int a = CM_REQ; a <= CM_DREP; a++)
		assert_int_equal(with_byte(REQ_AT, 37, (uint8_t)a, &cm), a);
	/* Fields of the request. */
	assert_int_equal(with_byte(REQ_AT, 87, 0x02, &cm), CM_REQ);
	assert_false(cm.rc);
	assert_int_equal(with_byte(REQ_AT, 94, 0x36, &cm), CM_REQ);
	assert_int_equal(cm.path_mtu, 1024);
	assert_int_equal(cm.rnr_retry, 6);
	assert_int_equal(with_byte(REQ_AT, 94, 0x07, &cm), CM_REQ);
	assert_int_equal(cm.path_mtu, 0);
	assert_int_equal(with_byte(REQ_AT, 94, 0x67, &cm), CM_REQ);
	assert_int_equal(cm.path_mtu, 0);
}

/* A datagram that claims to be CM and is shorter than a MAD. */
static void short_mad_is_none(void **state)
{
	uint8_t out[FRAME_MAX];
	struct template t;
	struct frame f;
	struct cm cm;

	(void)state;
	assert_int_equal(frame_parse(d.pkt[REQ_AT], d.len[REQ_AT], &f), FRAME_OK);
	template_learn(&t, &f);
	for (uint32_t n = 0; n <= 256; n += 4) {
		const struct build_spec s = {
			.t = &t,
			.opcode = OP_UD_SEND_ONLY,
			.dqpn = 1,
			.qkey = 0x80010000,
			.sqpn = 1,
			.payload = d.pkt[REQ_AT] + f.payload,
			.payload_len = n,
		};
		uint32_t len = build_packet(out, &s);
		uint8_t *exact = malloc(len);
		struct frame g;

		memcpy(exact, out, len);
		assert_int_equal(frame_parse(exact, len, &g), FRAME_OK);
		assert_int_equal(cm_parse(&g, &cm), n == 256 ? CM_REQ : CM_NONE);
		free(exact);
	}
}

/* Our DREQ is the kernel's, byte for byte (the template is its sender's REQ but for the IP id). */
static void dreq_like_the_kernels(void **state)
{
	struct cm want = parse_at(DREQ_AT);
	uint8_t out[FRAME_MAX];
	struct template t;
	struct frame f;

	(void)state;
	assert_int_equal(frame_parse(d.pkt[DREQ_AT], d.len[DREQ_AT], &f), FRAME_OK);
	template_learn(&t, &f);
	assert_int_equal(cm_build_dreq(out, &t, f.psn, want.transaction_id, want.local_id,
				       want.remote_id, want.rqpn),
			 d.len[DREQ_AT]);
	assert_memory_equal(out, d.pkt[DREQ_AT], d.len[DREQ_AT]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request),
		cmocka_unit_test(storage_service),
		cmocka_unit_test(reply),
		cmocka_unit_test(ready_and_disconnect),
		cmocka_unit_test(starting_psn_belongs_to_the_receiver),
		cmocka_unit_test(data_is_not_cm),
		cmocka_unit_test(every_gate_is_checked),
		cmocka_unit_test(short_mad_is_none),
		cmocka_unit_test(dreq_like_the_kernels),
	};

	return cmocka_run_group_tests(tests, load, unload);
}

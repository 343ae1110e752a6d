// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two customers behind one pair of appliances, with the same addresses and queue pair numbers, told
 * apart by the tags of their frames only. Each gets what is its own, with its own tags on it:
 * connections in two VLANs are held apart, and what one tag cannot tell apart passes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/scenario/scenario.h"
#include "tests/scenario/world_priv.h"

#define TAGS_MAX 8

/**
 * struct tenant - @tags: of its frames, from the Ethernet type on; those of host 1 if they are
 * others. @w: its hosts
 */
struct tenant {
	struct tags {
		uint32_t len;
		uint8_t b[TAGS_MAX];
	} tags[2];
	struct world *w;
	struct world_qp *q;
};

static struct tenant tenant[2];
static unsigned int strange; /* frames with tags that neither has */

static const struct tags none = {0}, vlan10 = {4, {0x81, 0, 0, 10}}, vlan20 = {4, {0x81, 0, 0, 20}},
			 prio = {4, {0x81, 0, 0xa0, 0}}, service10 = {4, {0x88, 0xa8, 0, 10}},
			 inner10 = {8, {0x88, 0xa8, 0, 100, 0x81, 0, 0, 10}},
			 inner20 = {8, {0x88, 0xa8, 0, 100, 0x81, 0, 0, 20}},
			 vlans10 = {8, {0x81, 0, 0, 100, 0x81, 0, 0, 10}},
			 vlans20 = {8, {0x81, 0, 0, 100, 0x81, 0, 0, 20}};

static bool bears(const struct tags *t, const uint8_t *data)
{
	uint32_t type = 12 + t->len;

	return !memcmp(data + 12, t->b, t->len) && data[type] == 0x08 && !data[type + 1];
}

/* To the host @side of the tenant with these tags, without them. */
static void arrives(int side, const uint8_t *data, uint32_t len)
{
	uint8_t buf[FRAME_MAX];

	for (int i = 0; i < 2; i++) {
		const struct tags *t = &tenant[i].tags[!side];

		if (!bears(t, data))
			continue;
		memcpy(buf, data, 12);
		memcpy(buf + 12, data + 12 + t->len, len - 12 - t->len);
		rc_host_rx(tenant[i].w->host[side], tenant[i].w->now, buf, len - t->len);
		return;
	}
	strange++;
}

/* All frames of both tenants pass the appliances of the first one's world. */
static bool filter(struct world *w, int link, const uint8_t *data, uint32_t len)
{
	const struct tenant *from = &tenant[w != tenant[0].w];
	uint8_t buf[FRAME_MAX + TAGS_MAX];

	if (link < 2) {
		const struct tags *t = &from->tags[link];

		memcpy(buf, data, 12);
		memcpy(buf + 12, t->b, t->len);
		memcpy(buf + 12 + t->len, data + 12, len - 12);
		world_rx(tenant[0].w, link, PORT_LAN, buf, len + t->len);
		return false;
	}
	if (link < 4) {
		arrives(link - 2, data, len);
		return false;
	}
	return true;
}

static void start(const struct tags *a, const struct tags *back, const struct tags *b)
{
	for (int i = 0; i < 2; i++) {
		struct work k = {
			.ops = OPS_WRITE_SEND | 1u << RC_READ, .min = 1, .max = 8000, .left = 600};
		struct world_config wc;
		struct rc_qp_config qc;

		tenant[i].tags[0] = i ? *b : *a;
		tenant[i].tags[1] = i ? *b : *back;
		world_defaults(&wc);
		wc.seed = 1 + (uint64_t)i;
		wc.wan.delay_ns = MS;
		wc.wan.loss = i ? 0 : 0.001;
		wc.appliance[0] = wc.appliance[1] = !i;
		tenant[i].w = world_create(&wc);
		tenant[i].w->filter = filter;
		scenario_qp(&qc, 0, 1024, RC_STRICT);
		qc.timeout_exp = 14;
		if (i) {
			qc.sq_psn += 37;
			qc.rq_psn += 51;
			qc.tx_seed += 7;
			qc.rx_seed += 7;
		}
		tenant[i].q = world_connect(tenant[i].w, &qc, RC_STRICT);
		world_work(tenant[i].q, 0, &k);
		world_work(tenant[i].q, 1, &k);
	}
	strange = 0;
}

static bool done(const struct world_qp *q)
{
	for (int s = 0; s < 2; s++)
		if (q->side[s].work.left || rc_qp_queued(q->side[s].qp))
			return false;
	return !rc_check_all(q->side[0].qp, q->side[1].qp) &&
	       !rc_check_all(q->side[1].qp, q->side[0].qp);
}

static uint32_t held(void)
{
	struct conn_info ci;
	uint32_t n = 0;

	for (uint32_t at = 0; engine_conn_next(tenant[0].w->engine[0], at, tenant[0].w->now, &ci);
	     at = ci.id + 1)
		n += ci.lane[LANE_OUT].state == LANE_HELD || ci.lane[LANE_IN].state == LANE_HELD;
	return n;
}

/* Host 0 of the first tenant sends with tags @a, its other host with @back, both of the second
 * with @b. Of the two connections @want are held. */
static void together(const struct tags *a, const struct tags *back, const struct tags *b,
		     uint32_t want)
{
	uint64_t t = 0;

	start(a, back, b);
	while (t < 20 * SEC && !(done(tenant[0].q) && done(tenant[1].q))) {
		t += 5000;
		for (int i = 0; i < 2; i++) {
			world_run(tenant[i].w, t);
			assert_null(tenant[i].w->violation);
		}
	}
	assert_int_equal(strange, 0);
	for (int i = 0; i < 2; i++)
		for (int s = 0; s < 2; s++)
			assert_null(world_verify_qp(tenant[i].q, s, true));
	assert_int_equal(held(), want);
	for (int i = 1; i >= 0; i--)
		world_destroy(tenant[i].w);
}

static void test_vlans(void **state)
{
	(void)state;
	together(&vlan10, &vlan10, &vlan20, 2);
	together(&vlan10, &vlan10, &none, 2);
	together(&vlan10, &vlan10, &prio, 2);
}

/* A priority tag is no VLAN, also where only one of the two hosts sends it. */
static void test_priority(void **state)
{
	(void)state;
	together(&prio, &none, &vlan10, 2);
	together(&none, &prio, &vlan10, 2);
}

static void test_two_tags(void **state)
{
	(void)state;
	together(&inner10, &inner10, &inner20, 0);
	together(&vlans10, &vlans10, &vlans20, 0);
}

/* The same number in a service tag is another network. */
static void test_service_tag(void **state)
{
	(void)state;
	together(&vlan10, &vlan10, &service10, 1);
	together(&vlan10, &vlan10, &inner10, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vlans),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_two_tags),
		cmocka_unit_test(test_service_tag),
	};

	return cmocka_run_group_tests_name("scenario/tenants", tests, NULL, NULL);
}

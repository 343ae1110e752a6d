/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An engine that has learned something, for views and renderers to show.
 */
#ifndef LONGHAUL_TESTS_CONTROL_DATA_H
#define LONGHAUL_TESTS_CONTROL_DATA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/view.h"
#include "tests/unit/no_sink.h"
#include "tests/unit/pcap_data.h"
#include "wire/build.h"

#define TEST_NOW 1000000000ull

/* Two rules: "storage" for the captures' hosts in single mode, "idle" for others. */
static inline void control_data_rules(struct rule rules[2])
{
	memset(rules, 0, 2 * sizeof(*rules));
	for (int i = 0; i < 2; i++) {
		struct rule *r = &rules[i];

		snprintf(r->name, sizeof(r->name), "%s", i ? "idle" : "storage");
		ip_addr_parse(i ? "10.99.0.0" : "10.98.0.0", &r->near[0].addr);
		r->far[0] = r->near[0];
		r->near[0].len = r->far[0].len = 96 + 16;
		r->nnear = r->nfar = 1;
		r->vlan = RULE_ANY_VLAN;
		r->peer = PEER_NONE;
		r->learn = LEARN_CM | LEARN_ALONE;
	}
}

/* A source over a new engine that has seen capture bidir-2qp. */
static inline void control_data_open(struct view_source *src, struct rule rules[2])
{
	const struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 4096, .seed = 1};
	struct pcap_data d = pcap_data_load("bidir-2qp");

	memset(src, 0, sizeof(*src));
	control_data_rules(rules);
	src->rules = rules;
	src->nrules = 2;
	src->shards = some_shards(1, &cfg, TEST_NOW);
	if (!src->shards)
		exit(1);
	shards_rules(src->shards, rules, 2, TEST_NOW);
	for (uint32_t i = 0; i < d.n; i++) {
		bool lan = d.len[i] > 30 && d.pkt[i][29] == 1; /* last byte of the IPv4 source */

		engine_rx(shards_engine(src->shards, 0), lan ? PORT_LAN : PORT_WAN, d.pkt[i],
			  d.len[i], TEST_NOW);
		shards_tick(src->shards, TEST_NOW);
	}
	pcap_data_free(&d);
}

/* @n queue pairs whose partners never answer. */
static inline void control_data_halves_at(struct shards *s, unsigned int n, uint64_t now)
{
	struct pcap_data d = pcap_data_load("write");
	struct frame f;

	if (frame_parse(d.pkt[0], d.len[0], &f) != FRAME_OK)
		exit(1);
	for (unsigned int i = 0; i < n; i++) {
		struct ip_addr from = f.src;
		struct template t;
		struct build_spec b = {.t = &t, .opcode = OP_SEND_ONLY, .dqpn = 0x1000 + i};
		uint8_t out[FRAME_MAX];

		/* of one host alone there may not be so many */
		from.b[15] = (uint8_t)(from.b[15] + i / 500);
		template_make(&t, f.data, f.data + 6, f.vlan, &from, &f.dst, 0xc001);
		engine_rx(shards_engine(s, 0), PORT_LAN, out, build_packet(out, &b), now);
	}
	pcap_data_free(&d);
}

static inline void control_data_halves(struct shards *s, unsigned int n)
{
	control_data_halves_at(s, n, TEST_NOW);
}

#endif

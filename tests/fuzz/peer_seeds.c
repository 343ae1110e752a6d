// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The seeds of fuzz_peer: a message of each type, headers of both kinds, a peer that has the key.
 * */
#include "peer/proto.h"
#include "tests/fuzz/seed.h"

/* One message of each type. */
static int message(unsigned int i, uint8_t *buf, size_t room)
{
	static const struct ip_addr a = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};
	static const struct ip_addr b = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
	struct proto_challenge c = {.seek = true};
	struct proto_hello h = {.version = 1,
				.boot = 1,
				.name = "seed",
				.nprefix = 2,
				.prefix = {{.addr = a, .len = 128}, {.len = 0}}};
	struct proto_heartbeat hb = {.sent = 1, .echo = 2, .held_us = 3};
	struct report r = {.lane = 1, .gen = 2};

	switch (i) {
	case 0:
		return proto_put_challenge(buf, room, &c);
	case 1:
		return proto_put_hello(buf, room, &h);
	case 2:
		return proto_put_heartbeat(buf, room, &hb);
	case 3:
		r.type = REPORT_OPEN;
		r.key = (struct flow_key){.src = a, .dst = b, .dqpn = 17, .vlan = FRAME_VLAN_NONE};
		r.lqpn = 18;
		r.path_mtu = 1024;
		break;
	case 4:
		r.type = REPORT_ACCEPT;
		break;
	case 5:
		r.type = REPORT_REFUSE;
		r.reason = REASON_ONE_WAY;
		break;
	case 6:
		r.type = REPORT_PROGRESS;
		r.cum = 0xfffff0;
		r.hi = 0x000020;
		r.credit = 0x1f;
		r.nholes = 2;
		r.hole[0] = (struct psn_range){0xfffff0, 0xfffff2};
		r.hole[1] = (struct psn_range){0xffffff, 0x000001};
		break;
	case 7:
		r.type = REPORT_CLOSE;
		r.key = (struct flow_key){.src = a, .dst = b, .dqpn = 17, .vlan = 5};
		r.reason = REASON_IDLE;
		r.by_opener = true;
		break;
	case 8:
		return proto_put_bye(buf, room, BYE_SHUTDOWN);
	case 9:
		return proto_put_site(buf, room,
				      &(struct proto_site){.mtu = {4300, 1500},
							   .longest = 4178,
							   .down = {false, true},
							   .nwanted = 1,
							   .wanted = {{.addr = a, .len = 128}}});
	case 10:
		return proto_put_probe(
			buf, room,
			&(struct proto_probe){
				.number = 1, .size = 4188, .carried = 1500, .padding = 40});
	case 11:
		return proto_put_probed(buf, room,
					&(struct proto_probed){.number = 1, .size = 1500});
	default:
		return 0;
	}
	return proto_put_report(buf, room, &r);
}

void peer_seeds(void)
{
	static const uint8_t unknown[] = {200, 0, 0, 2, 1, 2};
	uint8_t m[512], all[2048];
	size_t all_len = 0;
	int n;

	for (unsigned int i = 0; (n = message(i, m, sizeof(m))) > 0; i++) {
		char name[32];

		memcpy(all + all_len, m, (size_t)n);
		all_len += (size_t)n;
		add8(0);
		add(m, (size_t)n);
		snprintf(name, sizeof(name), "message-%u", i);
		seed_put("peer", name);
	}
	add8(0);
	add(all, all_len);
	add(unknown, sizeof(unknown));
	seed_put("peer", "messages");

	/* Headers of both kinds, and of another version. */
	for (unsigned int up = 0; up < 2; up++) {
		add8(1);
		add8(up);
		for (unsigned int kind = 0; kind < 4; kind++) {
			uint8_t d[64] = {'L', 'H', PROTO_VERSION, (uint8_t)kind};

			add16(sizeof(d));
			add(d, sizeof(d));
		}
		add16(4);
		add("LH\x02\x01", 4);
		seed_put("peer", up ? "raw-up" : "raw-down");
	}

	/* A peer with the key: reports both ways, a restart, silence, goodbye. */
	add8(2);
	add8(1);
	add8(1);
	add16((uint32_t)all_len - 5); /* all but the BYE */
	add(all, all_len - 5);
	add8(0);
	add8(3);
	add16(sizeof(unknown));
	add(unknown, sizeof(unknown));
	add8(6 | 2 << 3);
	add("\x01\x00\x00\x01\x02\x08", 6);
	add8(7);
	seed_put("peer", "key-reports");

	add8(2);
	add8(1);
	add8(4 | 0x80);
	add("\x02\x07", 2);
	add8(3 | 0x40);
	add8(3 | 0x80 | 0x20);
	add8(5);
	add16(15000);
	add8(5 | 0x80);
	add16(4000);
	add8(3 | 0x40);
	add8(3 | 0x80 | 0x40);
	add8(1);
	add16(5);
	add(all + all_len - 5, 5);
	seed_put("peer", "key-restart");

	add8(2);
	add8(0);
	n = message(0, m, sizeof(m));
	n += message(1, m + n, sizeof(m) - (size_t)n);
	add8(2);
	add16((uint32_t)n);
	add(m, (size_t)n);
	add8(5);
	add16(30000);
	seed_put("peer", "key-hello");
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One engine as a state machine, fed with frames, reports, peer events, time and rules
 * (engine_record.h). Most records speak about a connection and near the marks of its lanes, so that
 * PSNs, QPNs, generations and ICRCs are mostly such that something comes of them; raw bytes are
 * there, too.
 *
 * After every few calls engine_check() reads the invariants off the state. What it cannot see is
 * watched from outside, for all that a host, a peer or time may do:
 *
 *  - what is sent is what is received, passed or from the pool, byte for byte and with a right ICRC
 *    (answers to READs, and all where READs are asked for ahead, by their payload: their numbers
 *    may be others); besides it there are only packets that the engine originates (ACKs and NAKs,
 *    mostly)
 *  - a success ACK never leaves for a lane that is not held or at fault, never beyond the frontier,
 *    never for a packet that did not arrive whole, and not before all from before the handover is
 *    truly acknowledged
 *  - the true-ACK mark moves only if a response or a report has just said so, never by time or
 *    requests, and neither it nor the frontier goes back
 *  - a lane whose requester was told more than is truly acknowledged does not end without a fault
 *  - every report that leaves is one that the peer protocol can carry
 *  - the engine does not ask for a tick again and again at the same time
 *
 * That is engine_watch.c. What records make of connections and marks is engine_traffic.c; a mutator
 * of its own keeps records whole (engine_mutate.c).
 */
#include "tests/fuzz/engine_fuzz.h"

struct fuzz z;

static void set_rules(uint8_t which)
{
	static const uint16_t mtu[] = {0, 256, 1024, 4096};
	struct rule r[2] = {
		{.name = "lab",
		 .near = {{.len = 96 + 16}, {.len = 64}, {.len = 128}, {.len = 128}},
		 .far = {{.len = 96 + 16}, {.len = 64}, {.len = 128}, {.len = 128}},
		 .nnear = 4,
		 .nfar = 4,
		 .vlan = RULE_ANY_VLAN},
	};

	for (unsigned int h = 0; h < 2; h++) {
		struct prefix *p = h ? r[0].far : r[0].near;

		host_addr(&p[0].addr, 0, h);
		memset(p[0].addr.b + 14, 0, 2);
		host_addr(&p[1].addr, 2, h);
		p[1].addr.b[15] = 0;
		/* the hosts of the captures */
		NEED(ip_addr_parse(h ? "10.98.0.2" : "10.98.0.1", &p[2].addr) == 0);
		NEED(ip_addr_parse(h ? "fe80::5054:ff:fe00:2" : "fe80::5054:ff:fe00:1",
				   &p[3].addr) == 0);
	}
	r[0].peer = z.setup[0] & SETUP_SINGLE ? PEER_NONE : 0;
	r[0].policy = (z.setup[0] >> 1 & 3) % POLICIES;
	r[0].path_mtu = mtu[z.setup[0] >> 3 & 3];
	r[0].prefetch = reads_ahead();
	r[0].seal = z.setup[1] & SETUP_CHECKED;
	r[0].learn = LEARN_CM | LEARN_ALONE;
	if (z.setup[1] & SETUP_NO_CM)
		r[0].learn = LEARN_ALONE;
	else if (z.setup[1] & SETUP_NO_PSN)
		r[0].learn = LEARN_CM;
	r[1] = r[0];
	switch (which & 7) {
	case 1: /* another policy */
		r[0].policy = (uint8_t)((r[0].policy + 1) % POLICIES);
		break;
	case 2: /* single mode, or with a peer */
		if (!(z.setup[0] & SETUP_SINGLE))
			r[0].peer = PEER_NONE;
		break;
	case 3:
		r[0].vlan = 5;
		break;
	case 4:
		r[0].cap = 100000;
		break;
	case 5: /* two rules */
		r[0].vlan = 5;
		r[1].vlan = FRAME_VLAN_NONE;
		r[1].policy = POLICY_OFF;
		break;
	}
	watch_before();
	engine_rules(z.e, r, (which & 7) == 6 ? 0 : (which & 7) == 5 ? 2 : 1, z.now);
	watch_after();
}

static void peer_event(uint8_t what)
{
	watch_before();
	if (what == 0x55)
		engine_drain(z.e, z.now);
	else if (!(z.setup[0] & SETUP_SINGLE))
		engine_peer_event(z.e, 0, what % 3, z.now);
	watch_after();
}

/* To the next deadline, @n times. */
static void wait_for(unsigned int n)
{
	unsigned int spins = 0;

	while (n-- && z.calls < CALLS_MAX) {
		uint64_t t = engine_deadline(z.e);

		if (t == UINT64_MAX)
			return;
		/* the same time once more may be right, for ever is not */
		spins = t <= z.now ? spins + 1 : 0;
		NEED(spins < 64);
		if (t > z.now)
			z.now = t;
		watch_tick();
	}
}

static void hold(unsigned int conn)
{
	struct report r = {.type = REPORT_ACCEPT};
	uint8_t bits = z.setup[1];

	if (bits & (SETUP_LEARNED | SETUP_HELD | SETUP_ACCEPTOR)) {
		traffic_learn(conn, 0, 6);
		traffic_learn(conn, 1, 6);
	}
	if (bits & SETUP_HELD) {
		traffic_requests(conn, 0, 1, 0, 8);
		watch_tick();
		traffic_own(&r, conn_flow(conn, 0));
		watch_report(&r);
		watch_tick();
	}
	if (bits & SETUP_ACCEPTOR) {
		traffic_open(conn, true, false, 0);
		watch_tick();
	}
}

static void start(struct input *in)
{
	static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	struct engine_config cfg = {.max_conns = FLOWS / 4, .seed = 1};

	memset(&z, 0, sizeof(z));
	for (int i = 0; i < SETUP; i++)
		z.setup[i] = next8(in);
	cfg.pool_bytes = z.setup[0] & SETUP_SMALL ? 1 << 20 : 4 << 20;
	cfg.wan_rate = z.setup[0] & SETUP_PACED ? 10000000 : 0;
	z.now = 1000 * MS;
	for (unsigned int c = 0; c < CONNS; c++)
		for (unsigned int h = 0; h < 2; h++) {
			struct ip_addr a[2];

			host_addr(&a[0], c, h);
			host_addr(&a[1], c, !h);
			template_make(&z.tmpl[c][h], mac[h], mac[!h], conn_vlan(c), &a[0], &a[1],
				      0xc000);
			rc_header_init(&z.header[c][h], mac[h], mac[!h], conn_vlan(c), &a[0], &a[1],
				       0xc000);
			z.next[c][h] = (z.setup[0] & SETUP_WRAP ? 0xfffff0 : 0x100) + 16 * h;
			z.msn[c][h] = h;
		}
	z.e = engine_create(&cfg, &watch_sink, z.now);
	NEED(z.e && z.e->nflows == FLOWS);
	set_rules(0);
	peer_event(PEER_UP);
	hold(0);
	if (z.setup[1] & SETUP_SECOND)
		hold(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	start(&in);
	while (in.left && z.inputs < INPUTS_MAX && z.calls < CALLS_MAX) {
		uint8_t b = next8(&in);
		unsigned int conn = REC_CONN(b), host = !!(b & REC_FAR), n;
		size_t len;
		const uint8_t *p;

		switch (b & 15) {
		case REC_NEAR_FRAME:
			rec_near_frame(&in, conn, host);
			break;
		case REC_FRAME:
			rec_frame(&in, conn, host);
			break;
		case REC_REQUESTS: {
			uint8_t count = next8(&in), kind = next8(&in);

			traffic_requests(conn, host, 1 + count % 64, kind, next8(&in));
			break;
		}
		case REC_ACK:
			rec_ack(&in, conn, host);
			break;
		case REC_RAW:
			len = next16(&in);
			p = next_bytes(&in, &len);
			watch_feed((enum engine_port)host, p, (uint32_t)len);
			break;
		case REC_AGAIN:
			rec_again(&in);
			break;
		case REC_ECHO: {
			struct kept k = z.out[next8(&in) % KEPT];

			if (k.len)
				watch_feed((enum engine_port)host, k.data, k.len);
			break;
		}
		case REC_REPORT:
			rec_report(&in, conn);
			break;
		case REC_REPORT_RAW:
			rec_report_raw(&in, conn, host);
			break;
		case REC_PEER:
			peer_event(next8(&in));
			break;
		case REC_TIME:
			z.now += rec_time(next16(&in));
			break;
		case REC_RULES:
			set_rules(next8(&in));
			break;
		case REC_FULL:
			n = next8(&in);
			z.full[PORT_LAN] = n & 1;
			z.full[PORT_WAN] = n & 2;
			break;
		case REC_CM:
			rec_cm(&in, conn, host);
			break;
		case REC_LEARN:
			traffic_learn(conn, host, 1 + next8(&in) % 8);
			break;
		case REC_WAIT:
			wait_for(1 + next8(&in) % 32);
			break;
		}
		if (!(b & REC_QUIET))
			watch_tick();
	}
	z.full[PORT_LAN] = z.full[PORT_WAN] = false;
	watch_tick();
	wait_for(40);
	NEED(!engine_check(z.e));
	engine_destroy(z.e);
	return 0;
}

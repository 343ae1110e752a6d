// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/plan_model.h"

#include <math.h>

#define MIB	    1048576.0
#define RETH	    16.0 /* of each message */
/* PSNs that a queue pair may have outstanding: bare; in custody, before ACKs wait. */
#define SPAN_BARE   8388608.0
#define SPAN_OURS   (0.75 * 2097152.0)
/* A lane gets this part of the pool before its host is held back. */
#define LANE_SHARE  0.5
/* Parity: core/stream_parity.c, core/meter.c of the engine. */
#define GROUP	    32.0
#define TWICE_FROM  2e-4
#define PARITY_MOST 0.05
/* What a lost packet costs counts if it happens once in so many round trips. */
#define SELDOM	    500.0
/* What a packet costs, besides the copy with its CRC: so much, and as much as so many copies; how
 * soon the appliance answers a host. Measured on veth, see doc/sizing.md. */
#define PACKET_NS   2200.0
#define COPIES	    12.0
#define ANSWER_S    50e-6

double plan_bdp(const struct plan_link *l)
{
	return l->rate * l->rtt;
}

/* Frames of parity that follow a group of packets where the pool is no larger than it must be. */
static unsigned int parity(const struct plan_link *l)
{
	return l->loss <= 0 || l->loss > PARITY_MOST ? 0 : 2;
}

/* Share of packets that are lost @k times in a row, and not made from parity. From TWICE_FROM on
 * what is sent again goes twice. */
static double lost(const struct plan_link *l, unsigned int k)
{
	double p = l->loss, none = pow(1 - p, GROUP + parity(l) - 1.0);
	double others = (GROUP + 1) * p * none / (1 - p);

	if (parity(l))
		p *= 1 - none - others;
	return p * pow(l->loss, (k - 1.0) * (parity(l) && l->loss >= TWICE_FROM ? 2 : 1));
}

/* How often a packet is lost in a row, if that happens more than once in SELDOM round trips. */
unsigned int plan_rounds(const struct plan_link *l)
{
	double packets = plan_bdp(l) / l->mtu;
	unsigned int k = 0;

	while (k < 64 && packets * lost(l, k + 1) * SELDOM > 1)
		k++;
	return k;
}

/* Round trips that a packet is in custody for: each repair takes one more. */
static double stay(const struct plan_link *l)
{
	return 1 + plan_rounds(l);
}

/* Descriptors of short packets count. */
static double per_byte(const struct plan_link *l)
{
	return (l->mtu <= 1024 ? 1.05 : 1) / LANE_SHARE;
}

double plan_pool_least(const struct plan_link *l)
{
	return plan_bdp(l) * per_byte(l);
}

double plan_want(const struct plan_link *l)
{
	return plan_pool_least(l) * stay(l);
}

double plan_pool(const struct plan_link *l)
{
	double want = ceil(plan_want(l) / (64 * MIB)) * 64 * MIB;

	return fmin(fmax(want, PLAN_POOL_DEFAULT), PLAN_POOL_MOST);
}

double plan_packet_ns(uint32_t mtu, double copy_ns, double crc_ns)
{
	return PACKET_NS + (crc_ns + COPIES * copy_ns) * mtu;
}

double plan_ceiling(const struct plan_link *l, double size)
{
	return l->rate * size / (size + ceil(size / l->mtu) * PLAN_HEADERS + RETH);
}

/* Of @packets that are on their way, what comes before the first one that is lost with @p. */
static double until_lost(double p, double packets)
{
	double all = fmax(packets, 1) * p;

	return all > 1e-6 ? -expm1(fmax(packets, 1) * log1p(-p)) / all : 1;
}

/* A host goes back to a packet that is lost, and sends again all behind it. */
static double bare(const struct plan_link *l, double size, double window)
{
	double link = plan_ceiling(l, size), way = fmin(window, link * l->rtt);

	window = fmin(window, SPAN_BARE * l->mtu);
	return fmin(link, window / (l->rtt + size / link)) * until_lost(l->loss, way / l->mtu);
}

/* How often, on average, the unluckiest of @packets is lost: the sum over k of the probability that
 * one of them is lost k times or more. */
static double repairs(const struct plan_link *l, double packets)
{
	double sum = 0;

	for (unsigned int k = 1; k < 64 && packets * lost(l, k) > 1e-3; k++)
		sum += -expm1(fmax(packets, 1) * log1p(-lost(l, k)));
	return sum;
}

struct plan_goodput plan_goodput(const struct plan_link *l, double size, double packet_ns)
{
	double window = l->outstanding * size, link = plan_ceiling(l, size);
	double packets = fmin(window, link * l->rtt) / l->mtu, wait;
	struct plan_goodput g = {.bare = bare(l, size, window)};
	const double most[PLAN_LIMITS] = {
		[PLAN_BY_LINK] = link * (1 - l->loss) / (1 + parity(l) / GROUP),
		[PLAN_BY_CORE] = l->mtu * 1e9 / packet_ns,
		[PLAN_BY_SPAN] = SPAN_OURS * l->mtu / (l->rtt * stay(l)),
		[PLAN_BY_ANSWER] = window / (ANSWER_S + size / link),
	};

	g.early = most[PLAN_BY_LINK];
	for (int i = 1; i < PLAN_LIMITS; i++) {
		if (most[i] < g.early) {
			g.early = most[i];
			g.limit = (enum plan_limit)i;
		}
	}
	/* what is behind a loss waits for its repair, and of what is before it one half */
	wait = l->rtt * (1 + repairs(l, packets) * (1 - until_lost(lost(l, 1), packets) / 2));
	g.honest = fmin(g.early, window / (wait + size / link));
	return g;
}

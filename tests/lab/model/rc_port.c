// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* UDP source ports as hosts choose them. Written apart from what is under test. */
#include "cli/wanem/prng.h"
#include "tests/lab/model/rc_host.h"

/* A flow label of 20 bits from both numbers, and its two ends folded into 14 bits. */
static uint32_t by_qpns(uint32_t lqpn, uint32_t rqpn)
{
	uint64_t product = (uint64_t)lqpn * (uint64_t)rqpn, label;

	label = product ^ (product >> 20);
	label = (label ^ (label >> 40)) % (1u << 20);
	return (uint32_t)((label % (1u << 14)) ^ (label / (1u << 14)));
}

void rc_qp_port(struct rc_qp_config *c)
{
	uint32_t low = c->lqpn < c->rqpn ? c->lqpn : c->rqpn, high = c->lqpn ^ c->rqpn ^ low, n;

	switch (c->ports) {
	case RC_PORTS_BY_QPNS:
		n = by_qpns(c->lqpn, c->rqpn);
		break;
	case RC_PORTS_EQUAL:
		n = (uint32_t)splitmix64((uint64_t)high << 32 | low) % (1u << 14);
		break;
	case RC_PORTS_OWN:
		n = c->lqpn % (1u << 14);
		break;
	case RC_PORTS_OWN_HASH:
		n = (uint32_t)(c->lqpn * 0x61c88647u) / (1u << 18);
		break;
	default:
		return;
	}
	c->sport = (uint16_t)(0xc000 + n);
}

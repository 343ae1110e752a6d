/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The queue pair of the benchmarks over distance. */
#ifndef BENCH_QP_H
#define BENCH_QP_H

#include "tests/lab/model/rc_host.h"

/** bench_qp - its timer, 0.5 s, is no reason to ask again at these distances. */
static inline struct rc_qp_config bench_qp(uint32_t mtu)
{
	struct rc_qp_config qc;

	rc_qp_defaults(&qc, RC_STRICT);
	qc.lqpn = 0x100;
	qc.rqpn = 0x200;
	qc.sq_psn = 0x1000;
	qc.rq_psn = 0x777000;
	qc.mtu = mtu;
	qc.timeout_exp = 17;
	return qc;
}

#endif

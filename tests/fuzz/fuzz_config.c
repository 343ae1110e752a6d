// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a configuration file: accepted, or refused with messages that are one printable line
 * each. What is accepted keeps the promises that the rest of the daemon relies on.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config cfg;
	static struct config_errors errs;
	FILE *f = size ? fmemopen((void *)data, size, "r") : NULL;
	int rc;

	if (!f)
		return 0;
	rc = config_parse(f, "fuzz", &cfg, &errs);
	fclose(f);
	require((rc != 0) == (errs.n != 0));
	for (unsigned int i = 0; i < errs.n && i < CONFIG_ERRORS; i++)
		require(errs.text[i][0] && !strpbrk(errs.text[i], "\n\r\033"));
	if (rc)
		return 0;
	require(cfg.nrules && cfg.nrules <= RULE_MAX && cfg.npeers <= PEER_MAX);
	require(cfg.ifname[STEER_LAN][0] && cfg.ifname[STEER_PORT(STEER_WAN, 0)][0] &&
		cfg.socket[0] == '/');
	for (unsigned int i = 0; i < cfg.nrules; i++) {
		const struct rule *r = &cfg.rules[i];

		require(r->nnear && r->nnear <= RULE_PREFIXES && r->nfar &&
			r->nfar <= RULE_PREFIXES);
		require(r->name[0] && r->peer < (int)cfg.npeers && r->policy < POLICIES &&
			r->learn);
		require(r->read_depth <= 255 && r->nread_ranges <= RULE_READ_RANGES &&
			(!r->prefetch ||
			 (r->prefetch == PREFETCH_SINGLE) == (r->peer == PEER_NONE)));
		for (unsigned int k = 0; k < r->nread_ranges; k++)
			require(r->read_range[k].from < r->read_range[k].end);
	}
	return 0;
}

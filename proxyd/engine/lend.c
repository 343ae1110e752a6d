// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Engines of one process share the memory of the pool: an engine that is short of it gets some from
 * one that can spare it.
 */
#include "engine/core/core.h"

bool engine_lend(struct engine *from, struct engine *to, uint64_t bytes, uint64_t now_ns)
{
	if (from) {
		batch_begin(from, now_ns);
		bytes = pool_shrink(from->pool, bytes);
		batch_end(from); /* or a successor of each could have it */
		pool_give_back(from->pool, &from->arena, bytes);
	}
	batch_begin(to, now_ns);
	bytes -= pool_grow(to->pool, &to->arena, bytes);
	batch_end(to);
	return !bytes;
}

void engine_caps(struct engine *const *e, unsigned int n)
{
	for (unsigned int r = 0; r < e[0]->nrules; r++) {
		uint64_t all = 0;

		if (!e[0]->rules[r].cap)
			continue;
		for (unsigned int i = 0; i < n; i++)
			all += e[i]->rule_bytes[r];
		for (unsigned int i = 0; i < n; i++)
			e[i]->cache.rule_others[r] = all - e[i]->rule_bytes[r];
	}
}

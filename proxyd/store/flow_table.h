/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the key that a packet carries to the number of its flow: open addressing, linear probing,
 * backward shift on removal, fixed capacity. Hash: XXH3 with a random seed, so that an attacker
 * cannot aim at one bucket. Keys live with the flows; the table holds (hash, index) pairs.
 *
 * row: ENG-15
 */
#ifndef LONGHAUL_STORE_FLOW_TABLE_H
#define LONGHAUL_STORE_FLOW_TABLE_H

#include <stdint.h>

#include "store/arena.h"
#include "wire/frame.h"

#define FLOW_NONE 0xffffffffu

/**
 * struct flow_key - one direction of packets to one QP, as every packet carries it. No padding:
 * compared and hashed as bytes.
 * @vlan: FRAME_VLAN_NONE when untagged (tenants on different VLANs are kept apart)
 * @zero: must be 0
 */
struct flow_key {
	struct ip_addr src, dst;
	uint32_t dqpn;
	uint16_t vlan;
	uint16_t zero;
};

_Static_assert(sizeof(struct flow_key) == 40, "no padding in what is hashed");

struct flow_table;

/** flow_table_create - for up to @capacity flows (at most 2^30); NULL when @a is too small. */
struct flow_table *flow_table_create(struct arena *a, uint32_t capacity, uint64_t seed);
uint64_t flow_table_arena_size(uint32_t capacity);

/** flow_table_undo_by - note changes in @u from here on (undo.h). */
struct undo;
void flow_table_undo_by(struct flow_table *t, struct undo *u);

/** flow_table_find - index of the flow with @key, FLOW_NONE when unknown.
 *  @keys: base of an array whose element i starts with the struct flow_key of flow i; @stride:
 *  bytes per element. */
uint32_t flow_table_find(const struct flow_table *t, const struct flow_key *key, const void *keys,
			 uint32_t stride);

/** flow_table_soon - the key's hash; prefetches what flow_table_likely() reads. */
uint32_t flow_table_soon(const struct flow_table *t, const struct flow_key *key);

/** flow_table_likely - index of a flow with this hash, most likely the right one; FLOW_NONE if the
 * first bucket has none. */
uint32_t flow_table_likely(const struct flow_table *t, uint32_t hash);

/** flow_table_insert - add flow @index (not FLOW_NONE), whose key is not in the table yet. 0, or
 *  -ENOSPC. */
int flow_table_insert(struct flow_table *t, const struct flow_key *key, uint32_t index);

/** flow_table_remove - remove flow @index with @key, if it is there. */
void flow_table_remove(struct flow_table *t, const struct flow_key *key, uint32_t index);

uint32_t flow_table_count(const struct flow_table *t);

#endif

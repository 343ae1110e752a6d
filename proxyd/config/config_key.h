/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keys of the configuration file, their possible values, and where values are stored.
 */
#ifndef LONGHAUL_CONFIG_KEY_H
#define LONGHAUL_CONFIG_KEY_H

#include "config/config.h"

enum value_type {
	V_TEXT,
	V_PORTS,
	V_NAME,
	V_NUMBER,
	V_AUTO_NUMBER,
	V_SIZE,
	V_PACE,
	V_DURATION,
	V_PATH_MTU,
	V_BOOL,
	V_ADDRESS,
	V_FILES,
	V_HOST,
	V_NEAR,
	V_FAR,
	V_VLAN,
	V_DSCP,
	V_CHOICE,
	V_LEARN,
	V_LEVEL,
	V_PEER,
	V_RANGES,
};

/**
 * struct key - one key of a section.
 * @off, @size: place of the value in the section's struct
 * @min, @max:  bounds; @names: of a V_CHOICE
 */
struct key {
	const char *name;
	enum value_type type;
	bool required;
	size_t off, size;
	uint64_t min, max;
	const char *const *names;
};

/* Of [longhaul], [peer NAME] and [rule NAME]; the last of each has no name. */
extern const struct key longhaul_keys[], peer_keys[], rule_keys[];

/** key_apply - store @text, the value of @k, in @base, the struct of the open section of @c. NULL
 * or what is wrong with it. */
const char *key_apply(const struct key *k, struct config *c, void *base, const char *text);

/** key_live - whether a running daemon can take over another value of key @k of [longhaul]. */
bool key_live(const struct key *k);

/** key_mend - what to do if the required @k is absent, NULL: just add it. */
const char *key_mend(const struct key *k);

/** key_note_line - note that the latest rule of @c has @k on @line, for messages of config_check().
 */
void key_note_line(const struct key *k, struct config *c, unsigned int line);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scripts in the manner of packetdrill: timed lines, each of which injects a packet into one engine
 * or expects one from it. scripts/README.md is the language; this is how to run one.
 */
#ifndef SCENARIO_SCRIPT_H
#define SCENARIO_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct script_world - what a script leaves open, so that it must hold for all of it.
 * @psn_base: the PSN that the script calls 0; @msn_base: the MSN that it calls 0
 * @vlan: the tag (with its priority) of every frame, FRAME_VLAN_NONE for none
 * @undone: look whether each batch could be undone (tests/lab/model/undone.h); that takes time
 */
struct script_world {
	const char *name;
	uint32_t psn_base, msn_base;
	bool ip6;
	uint16_t vlan;
	bool undone;
};

/** script_load - the text of the file at @path; free() it. NULL when it cannot be read. */
char *script_load(const char *path);

/**
 * script_run - one script in one world. True when everything happened as the script says and
 * nothing else.
 * @name: for messages, the file's name; @err: what went wrong with its line, what was expected and
 * what was seen
 */
bool script_run(const char *name, const char *text, const struct script_world *w, char *err,
		size_t err_size);

#endif

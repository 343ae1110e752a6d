/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands of an operator that change something: release, bypass, clear counters, reload. Each is
 * one request with members, answered by one object. Bypassed rules are noted by name, so that a
 * reload does not move the bypass to other rules.
 */
#ifndef LONGHAUL_CONTROL_OPERATE_H
#define LONGHAUL_CONTROL_OPERATE_H

#include <stdbool.h>

#include "control/view.h"

#define OPERATE_COUNTERS 384 /* of stats-show, at most */
#define OPERATE_ERROR	 512 /* bytes of an error answer */

/**
 * struct operate - all zero at first.
 * @all, @rules: what is bypassed; @text: the same in words; @changed: health has not been told yet
 * @base: values of counters when they were cleared, in the order of stats-show
 */
struct operate {
	bool all, changed;
	char rules[RULE_MAX][RULE_NAME];
	unsigned int nrules;
	char text[256];
	uint64_t base[OPERATE_COUNTERS];
};

/** struct action - @run: false with one line in @err; else @out is the answer (a new reference). */
struct action {
	const char *cmd;
	bool (*run)(const struct view_source *src, const json_t *req, uint64_t now_ns, json_t **out,
		    char *err, size_t errlen);
};

/** action_find - the action that request @cmd asks for, NULL. */
const struct action *action_find(const char *cmd);

/** operate_rules - the rules have changed: bypass those with the noted names again. */
void operate_rules(const struct view_source *src, uint64_t now_ns);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Requests name connections by the id that `qp-show` gave, and by QPNs: the id may belong to
 * another connection by now, which must be left alone. A connection that is gone is no error: a
 * client that names many goes on with the others.
 */
#include "control/operate.h"

#include <stdio.h>
#include <string.h>

static bool wrong(char *err, size_t errlen, const char *text)
{
	snprintf(err, errlen, "%s", text);
	return false;
}

enum named {
	NAMED_WRONG, /* @err is filled */
	NAMED_GONE,  /* @out is filled */
	NAMED_CONN,  /* @ci is filled */
};

/* Find the connection that @req names; @key is the member of the answer that says what was done. */
static enum named conn_of(const struct view_source *src, const json_t *req, uint64_t now_ns,
			  struct conn_info *ci, const char *key, json_t **out, char *err,
			  size_t errlen)
{
	const json_t *id = json_object_get(req, "id"), *rqpn = json_object_get(req, "rqpn");
	const json_t *lqpn = json_object_get(req, "lqpn");
	json_int_t n = json_integer_value(id);

	if (!json_is_integer(id) || n < 0 || n > UINT32_MAX) {
		wrong(err, errlen, "request has no \"id\" of a connection");
		return NAMED_WRONG;
	}
	if (!shards_conn(src->shards, (uint32_t)n, now_ns, ci) ||
	    (json_is_integer(lqpn) && json_integer_value(lqpn) != ci->lqpn) ||
	    (json_is_integer(rqpn) && json_integer_value(rqpn) != ci->rqpn)) {
		*out = json_pack("{s:b, s:b}", key, 0, "gone", 1);
		return NAMED_GONE;
	}
	return NAMED_CONN;
}

static bool run_release(const struct view_source *src, const json_t *req, uint64_t now_ns,
			json_t **out, char *err, size_t errlen)
{
	enum named named;
	struct conn_info ci;
	bool held;

	named = conn_of(src, req, now_ns, &ci, "released", out, err, errlen);
	if (named != NAMED_CONN)
		return named == NAMED_GONE;
	held = shards_release(src->shards, ci.id, now_ns);
	*out = json_pack("{s:b}", "released", held);
	return true;
}

/* Set @text: "everything", or names of rules; health is told of the change. */
static void say_bypassed(struct operate *op)
{
	const char *first = op->nrules == 1 ? "rule " : "rules ";
	size_t used = 0;

	op->changed = true;
	snprintf(op->text, sizeof(op->text), "%s", op->all ? "everything" : "");
	for (unsigned int i = 0; !op->all && i < op->nrules && used < sizeof(op->text); i++)
		used += (size_t)snprintf(op->text + used, sizeof(op->text) - used, "%s%s",
					 i ? ", " : first, op->rules[i]);
}

static void note_rule(struct operate *op, const char *name, bool on)
{
	for (unsigned int i = 0; i < op->nrules; i++) {
		if (strcmp(op->rules[i], name))
			continue;
		if (!on)
			memmove(op->rules[i], op->rules[op->nrules - 1], RULE_NAME);
		op->nrules -= !on;
		return;
	}
	if (on && op->nrules < RULE_MAX)
		snprintf(op->rules[op->nrules++], RULE_NAME, "%s", name);
}

static bool rule_noted(const struct operate *op, const char *name)
{
	for (unsigned int i = 0; i < op->nrules; i++)
		if (!strcmp(op->rules[i], name))
			return true;
	return false;
}

static int rule_index(const struct view_source *src, const char *name)
{
	for (unsigned int i = 0; i < src->nrules; i++)
		if (!strcmp(src->rules[i].name, name))
			return (int)i;
	return -1;
}

static bool run_bypass(const struct view_source *src, const json_t *req, uint64_t now_ns,
		       json_t **out, char *err, size_t errlen)
{
	const char *rule = json_string_value(json_object_get(req, "rule"));
	struct operate *op = src->operate;
	bool on = json_is_true(json_object_get(req, "on"));
	struct conn_info ci;
	int i;

	if (!json_is_boolean(json_object_get(req, "on")))
		return wrong(err, errlen, "request has no \"on\", true or false");
	if (json_is_true(json_object_get(req, "all"))) {
		shards_bypass(src->shards, BYPASS_ALL, 0, on, now_ns);
		op->all = on;
		op->nrules = on ? op->nrules : 0;
	} else if (rule) {
		i = rule_index(src, rule);
		/* a reload may have removed a bypassed rule; a rule of that name would be bypassed
		 * again */
		if (i < 0 && (on || !rule_noted(op, rule)))
			return wrong(err, errlen, "there is no such rule; see rule show");
		if (i >= 0)
			shards_bypass(src->shards, BYPASS_RULE, (uint32_t)i, on, now_ns);
		note_rule(op, rule, on);
	} else {
		enum named named = conn_of(src, req, now_ns, &ci, "bypassed", out, err, errlen);

		if (named != NAMED_CONN)
			return named == NAMED_GONE;
		shards_bypass(src->shards, BYPASS_CONN, ci.id, on, now_ns);
	}
	say_bypassed(op);
	*out = json_pack("{s:b}", "bypassed", on);
	return true;
}

void operate_rules(const struct view_source *src, uint64_t now_ns)
{
	struct operate *op = src->operate;
	uint64_t rules = 0;

	if (!op)
		return;
	for (unsigned int i = 0; i < src->nrules; i++)
		rules |= (uint64_t)rule_noted(op, src->rules[i].name) << i;
	shards_bypass_rules(src->shards, rules, now_ns);
}

static bool run_clear(const struct view_source *src, const json_t *req, uint64_t now_ns,
		      json_t **out, char *err, size_t errlen)
{
	struct view_cursor cur = {0};
	enum view_step step;
	uint64_t n = 0;

	(void)req, (void)err, (void)errlen;
	do {
		json_t *o = NULL;
		uint32_t at = cur.conn;

		step = view_stats(src, &cur, now_ns, &o);
		if (step != VIEW_OBJECT)
			continue;
		/* only counters have a total */
		if (at < OPERATE_COUNTERS && json_object_get(o, "total")) {
			src->operate->base[at] =
				(uint64_t)json_integer_value(json_object_get(o, "total"));
			n++;
		}
		json_decref(o);
	} while (step != VIEW_END);
	*out = json_pack("{s:I}", "cleared", (json_int_t)n);
	return true;
}

static bool run_reload(const struct view_source *src, const json_t *req, uint64_t now_ns,
		       json_t **out, char *err, size_t errlen)
{
	(void)req, (void)now_ns;
	if (!src->reload)
		return wrong(err, errlen, "nothing to reload");
	if (!src->reload(src->reload_ctx, err, errlen))
		return false;
	*out = json_pack("{s:b, s:i}", "reloaded", 1, "rules", (int)src->nrules);
	return true;
}

static const struct action actions[] = {
	{"release", run_release}, {"bypass", run_bypass}, {"stats-clear", run_clear},
	{"reload", run_reload},	  {NULL, NULL},
};

const struct action *action_find(const char *cmd)
{
	for (const struct action *a = actions; a->cmd; a++)
		if (!strcmp(a->cmd, cmd))
			return a;
	return NULL;
}

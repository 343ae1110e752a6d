// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libinih does the syntax. It does not say on which line it is, nor where sections begin, so the
 * reader that feeds it does both: it counts lines and opens and closes sections; the handler then
 * sees keys of the section that is open. What may stand where is in the key tables below.
 */
#include "config.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "config_value.h"
#include "peer/proto.h"

#define MS		 1000000ull
#define SEC		 (1000 * MS)
#define LINE_MAX_	 4096 /* bytes of one line of the file */
#define GIB		 (1ull << 30)
/* Of a guess, counted from when it was asked for: more than two round trips to anywhere on earth,
 * for the answer takes one of them and the window runs ahead of the host by the other. */
#define PREFETCH_MAX_AGE SEC

void config_error(struct config_errors *errs, const char *file, unsigned int line, const char *fmt,
		  ...)
{
	unsigned int n = errs->n++;
	int used;
	va_list ap;

	if (n >= CONFIG_ERRORS)
		return;
	if (line)
		used = snprintf(errs->text[n], CONFIG_ERROR_LEN, "%s:%u: ", file, line);
	else
		used = snprintf(errs->text[n], CONFIG_ERROR_LEN, "%s: ", file);
	if (used < 0 || used >= CONFIG_ERROR_LEN)
		return;
	va_start(ap, fmt);
	vsnprintf(errs->text[n] + used, CONFIG_ERROR_LEN - used, fmt, ap);
	va_end(ap);
	/* The file may hold anything; a message is one line of printable text. */
	for (char *p = errs->text[n]; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

enum value_type {
	V_TEXT,
	V_NAME,
	V_NUMBER,
	V_SIZE,
	V_RATE,
	V_DURATION,
	V_PATH_MTU,
	V_BOOL,
	V_ADDRESS,
	V_NEAR,
	V_FAR,
	V_VLAN,
	V_CHOICE,
	V_LEARN,
	V_LEVEL,
	V_PEER,
	V_DEPTH,
	V_RANGES,
};

/**
 * struct key - one key of a section.
 * @off, @size: where the value goes, counted from the section's struct
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

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)0)->member)

static const char *const mode_names[] = {"auto", "native", "generic", NULL};
static const char *const policy_names[] = {"early", "honest", "off", NULL};
static const char *const ahead_names[] = {"off", "on", "single", NULL}; /* enum prefetch */
static const char *const atomic_names[] = {"ordered", "discard-result", "prefetch",
					   NULL};			   /* enum atomic_mode */
static const char *const learn_names[] = {"cm", "psn", "immediate", NULL}; /* LEARN_* */
static const char *const level_names[] = {"error", "warning", "info", "debug", NULL};
static const int levels[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

#define C(member) FIELD(struct config, member)
static const struct key longhaul_keys[] = {
	{"lan", V_TEXT, true, C(ifname[STEER_LAN]), 0, 0, NULL},
	{"wan", V_TEXT, true, C(ifname[STEER_WAN]), 0, 0, NULL},
	{"socket", V_TEXT, false, C(socket), 0, 0, NULL},
	{"pool", V_SIZE, false, C(pool_bytes), 8ull << 20, 64 * GIB, NULL},
	{"max-connections", V_NUMBER, false, C(max_conns), 1, 1u << 20, NULL},
	{"mode", V_CHOICE, false, C(mode), 0, 0, mode_names},
	{"wan-rate", V_RATE, false, C(wan_rate), 0, 0, NULL},
	{"wan-burst", V_SIZE, false, C(wan_burst), 16u << 10, 64u << 20, NULL},
	{"max-path-mtu", V_PATH_MTU, false, C(max_path_mtu), 1024, 0, NULL},
	{"listen", V_ADDRESS, false, C(listen), 0, 0, NULL},
	{"port", V_NUMBER, false, C(port), 1, 65535, NULL},
	{"node", V_NAME, false, C(node), 0, 0, NULL},
	{"peer-timeout", V_DURATION, false, C(peer_timeout_ns), SEC, 24 * 3600 * SEC, NULL},
	{"responder-timeout", V_DURATION, false, C(responder_timeout_ns), 100 * MS, 3600 * SEC,
	 NULL},
	{"rnr-timeout", V_DURATION, false, C(rnr_timeout_ns), SEC, 3600 * SEC, NULL},
	{"idle-timeout", V_DURATION, false, C(idle_ns), SEC, 24 * 3600 * SEC, NULL},
	{"drain-timeout", V_DURATION, false, C(drain_ns), 0, 3600 * SEC, NULL},
	{"log-level", V_LEVEL, false, C(log_level), 0, 0, NULL},
	{"sandbox", V_BOOL, false, C(sandbox), 0, 0, NULL},
	{NULL, 0, false, 0, 0, 0, 0, NULL},
};

#define P(member) FIELD(struct config_peer, member)
static const struct key peer_keys[] = {
	{"address", V_ADDRESS, true, P(addr), 0, 0, NULL},
	{"port", V_NUMBER, false, P(port), 1, 65535, NULL},
	{"key-file", V_TEXT, true, P(key_file), 0, 0, NULL},
	{NULL, 0, false, 0, 0, 0, 0, NULL},
};

#define R(member) FIELD(struct rule, member)
static const struct key rule_keys[] = {
	{"lan", V_NEAR, true, 0, 0, 0, 0, NULL},
	{"wan", V_FAR, true, 0, 0, 0, 0, NULL},
	{"vlan", V_VLAN, false, R(vlan), 0, 0, NULL},
	{"peer", V_PEER, false, 0, 0, 0, 0, NULL},
	{"policy", V_CHOICE, false, R(policy), 0, 0, policy_names},
	{"learn", V_LEARN, false, R(learn), 0, 0, NULL},
	{"path-mtu", V_PATH_MTU, false, R(path_mtu), 256, 0, NULL},
	{"pool", V_SIZE, false, R(cap), 1ull << 20, 64 * GIB, NULL},
	{"atomic", V_CHOICE, false, R(atomic), 0, 0, atomic_names},
	{"prefetch", V_CHOICE, false, R(prefetch), 0, 0, ahead_names},
	{"prefetch-max-age", V_DURATION, false, R(prefetch_max_age_ns), 0, 3600 * SEC, NULL},
	{"prefetch-range", V_RANGES, false, 0, 0, 0, 0, NULL},
	{"read-depth", V_DEPTH, false, R(read_depth), 1, 255, NULL},
	{"wan-check", V_BOOL, false, R(wan_check), 0, 0, NULL},
	{NULL, 0, false, 0, 0, 0, 0, NULL},
};

enum section {
	S_NONE, /* before the first section: no key may stand here */
	S_SKIP, /* the section's head was wrong; its keys are not worth complaints */
	S_LONGHAUL,
	S_PEER,
	S_RULE,
};

/**
 * struct parser
 * @line:      of what libinih looks at now
 * @kind, @base, @keys, @head, @head_line: the open section; @base is what its keys fill
 * @seen:      keys that it had, bits by index in @keys
 */
struct parser {
	struct config *c;
	struct config_errors *errs;
	const char *name;
	FILE *f;
	char *buf;
	size_t cap;
	unsigned int line;
	enum section kind;
	void *base;
	const struct key *keys;
	char head[64];
	unsigned int head_line;
	uint64_t seen;
};

static void complain(struct parser *p, unsigned int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void complain(struct parser *p, unsigned int line, const char *fmt, ...)
{
	char text[CONFIG_ERROR_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config_error(p->errs, p->name, line, "%s", text);
}

static void section_close(struct parser *p)
{
	if (p->kind == S_LONGHAUL || p->kind == S_PEER || p->kind == S_RULE)
		for (unsigned int i = 0; p->keys[i].name; i++)
			if (p->keys[i].required && !(p->seen & 1ull << i))
				complain(p, p->head_line,
					 "[%s] has no '%s'; add the line '%s = ...'", p->head,
					 p->keys[i].name, p->keys[i].name);
	p->kind = S_SKIP;
	p->seen = 0;
}

static void open_longhaul(struct parser *p)
{
	if (p->c->line) {
		complain(p, p->line,
			 "second [longhaul] section, the first is on line %u; join them",
			 p->c->line);
		return;
	}
	p->c->line = p->line;
	p->kind = S_LONGHAUL;
	p->keys = longhaul_keys;
	p->base = p->c;
}

static void open_peer(struct parser *p, const char *name)
{
	struct config *c = p->c;
	struct config_peer *peer = &c->peers[c->npeers];
	const char *w;

	for (unsigned int i = 0; i < c->npeers; i++) {
		if (!strcmp(c->peers[i].name, name)) {
			complain(p, p->line,
				 "second peer '%s', the first is on line %u; rename or join them",
				 name, c->peers[i].line);
			return;
		}
	}
	if (c->npeers == PEER_MAX) {
		complain(p, p->line, "too many peers; at most %u are possible", PEER_MAX);
		return;
	}
	w = value_name(name, peer->name, sizeof(peer->name));
	if (w) {
		complain(p, p->line, "peer name '%s' %s", name, w);
		return;
	}
	peer->line = p->line;
	c->npeers++;
	p->kind = S_PEER;
	p->keys = peer_keys;
	p->base = peer;
}

static void open_rule(struct parser *p, const char *name)
{
	struct config *c = p->c;
	struct rule *r = &c->rules[c->nrules];
	const char *w;

	for (unsigned int i = 0; i < c->nrules; i++) {
		if (!strcmp(c->rules[i].name, name)) {
			complain(p, p->line,
				 "second rule '%s', the first is on line %u; rename or join them",
				 name, c->rule_src[i].line);
			return;
		}
	}
	if (c->nrules == RULE_MAX) {
		complain(p, p->line, "too many rules; at most %u are possible", RULE_MAX);
		return;
	}
	w = value_name(name, r->name, sizeof(r->name));
	if (w) {
		complain(p, p->line, "rule name '%s' %s", name, w);
		return;
	}
	r->vlan = RULE_ANY_VLAN;
	r->peer = PEER_NONE;
	r->policy = POLICY_EARLY;
	r->learn = LEARN_CM | LEARN_PSN;
	r->wan_check = true;
	r->prefetch_max_age_ns = PREFETCH_MAX_AGE;
	c->rule_src[c->nrules++].line = p->line;
	p->kind = S_RULE;
	p->keys = rule_keys;
	p->base = r;
}

/* A section begins with @head, the text between the brackets. */
static void section_open(struct parser *p, char *head)
{
	static const char *const kinds[] = {"longhaul", "peer", "rule", NULL};
	char *save = NULL, *kind, *name, *more, hint[64];

	section_close(p);
	snprintf(p->head, sizeof(p->head), "%s", head);
	p->head_line = p->line;
	kind = strtok_r(head, " \t", &save);
	name = strtok_r(NULL, " \t", &save);
	more = strtok_r(NULL, " \t", &save);
	if (!kind || (strcmp(kind, "longhaul") && strcmp(kind, "peer") && strcmp(kind, "rule")))
		complain(p, p->line, "unknown section [%s]%s", p->head,
			 kind && value_nearest(kind, kinds)
				 ? value_suggestion(kind, kinds, hint, sizeof(hint))
				 : "; write [longhaul], [peer NAME] or [rule NAME]");
	else if (!strcmp(kind, "longhaul") && !name)
		open_longhaul(p);
	else if (!strcmp(kind, "longhaul"))
		complain(p, p->line, "section [longhaul] takes no name; write just [longhaul]");
	else if (!name || more)
		complain(p, p->line, "section [%s] needs one name; write [%s NAME]", p->head, kind);
	else if (!strcmp(kind, "peer"))
		open_peer(p, name);
	else
		open_rule(p, name);
}

/* fgets for libinih: the next line into @str; lines that cannot be read right are told and fed as
 * empty. */
static char *read_line(char *str, int num, void *stream)
{
	struct parser *p = stream;
	ssize_t len = getline(&p->buf, &p->cap, p->f);
	char *s = p->buf, *end;

	if (len < 0)
		return NULL;
	p->line++;
	snprintf(str, num, "\n");
	if (memchr(s, '\0', len)) {
		complain(p, p->line, "holds a zero byte; the configuration is a text file");
		return str;
	}
	if (len >= num || len >= LINE_MAX_) {
		complain(p, p->line, "line of %zd bytes; write at most %d, or split the rule", len,
			 LINE_MAX_ - 1);
		return str;
	}
	if (p->line == 1 && !strncmp(s, "\xef\xbb\xbf", 3))
		s += 3;
	s += strspn(s, " \t");
	if (*s != '[') {
		memcpy(str, p->buf, len + 1);
		return str;
	}
	end = strchr(s, ']');
	if (end) {
		*end = '\0';
		section_open(p, s + 1);
	} else {
		section_close(p);
		complain(p, p->line, "section without ']'; write it as [rule NAME]");
	}
	/* libinih need not see section heads; what is open is known here. */
	return str;
}

static void store(void *to, size_t size, uint64_t v)
{
	uint8_t v8 = v;
	uint16_t v16 = v;
	uint32_t v32 = v;

	switch (size) {
	case 1:
		memcpy(to, &v8, 1);
		break;
	case 2:
		memcpy(to, &v16, 2);
		break;
	case 4:
		memcpy(to, &v32, 4);
		break;
	default:
		memcpy(to, &v, 8);
	}
}

/* Note on which line the rule has @k, where a check of the whole configuration may name it. */
static void note_line(struct parser *p, const struct key *k)
{
	struct config_rule_src *src = &p->c->rule_src[p->c->nrules ? p->c->nrules - 1 : 0];

	if (p->kind != S_RULE)
		return;
	if (k->type == V_PATH_MTU)
		src->mtu_line = p->line;
	else if (k->type == V_PEER)
		src->peer_line = p->line;
	else if (k->type == V_SIZE)
		src->pool_line = p->line;
	else if (k->names == ahead_names)
		src->ahead_line = p->line;
	else if (k->names == atomic_names)
		src->atomic_line = p->line;
}

/* The number that @text is as a value of @k; NULL or what is wrong with it. */
static const char *number_of(const struct key *k, const char *text, uint64_t *v)
{
	unsigned int choice = 0;
	const char *w;

	switch (k->type) {
	case V_NUMBER:
		return value_number(text, k->min, k->max, v);
	case V_DEPTH:
		if (strcmp(text, "auto") && value_number(text, k->min, k->max, v))
			return "is no number of READs; write auto, or a number from 1 to 255";
		return NULL;
	case V_SIZE:
		return value_size(text, k->min, k->max, v);
	case V_RATE:
		return value_rate(text, v);
	case V_DURATION:
		return value_duration(text, k->min, k->max, v);
	case V_CHOICE:
		w = value_choice(text, k->names, &choice);
		*v = choice;
		return w;
	case V_LEARN:
		w = value_flags(text, learn_names, &choice);
		*v = choice;
		return w;
	case V_LEVEL:
		w = value_choice(text, level_names, &choice);
		*v = w ? 0 : levels[choice];
		return w;
	default:
		return "is no number"; /* apply() reads the other types */
	}
}

/* Put @text into the field of @k; NULL or what is wrong with it. */
static const char *apply(struct parser *p, const struct key *k, const char *text)
{
	void *to = (char *)p->base + k->off;
	struct rule *r = p->base;
	const char *w;
	uint64_t v = 0;

	note_line(p, k);
	switch (k->type) {
	case V_TEXT:
		return value_text(text, to, k->size);
	case V_NAME:
		return value_name(text, to, k->size);
	case V_BOOL:
		return value_bool(text, to);
	case V_ADDRESS:
		return value_address(text, to);
	case V_VLAN:
		return value_vlan(text, to);
	case V_NEAR:
		return value_prefixes(text, r->near, RULE_PREFIXES, &r->nnear);
	case V_FAR:
		return value_prefixes(text, r->far, RULE_PREFIXES, &r->nfar);
	case V_PATH_MTU:
		return value_path_mtu(text, k->min, to);
	case V_PEER:
		return value_name(text, p->c->rule_src[p->c->nrules - 1].peer, RULE_NAME);
	case V_RANGES:
		return value_read_ranges(text, r);
	default:
		w = number_of(k, text, &v);
		if (!w)
			store(to, k->size, v);
		return w;
	}
}

static void unknown_key(struct parser *p, const char *name)
{
	const char *names[sizeof(longhaul_keys) / sizeof(longhaul_keys[0])];
	char hint[64];
	unsigned int n;

	for (n = 0; p->keys[n].name; n++)
		names[n] = p->keys[n].name;
	names[n] = NULL;
	value_suggestion(name, names, hint, sizeof(hint));
	complain(p, p->line, "unknown key '%s' in [%s]%s", name, p->head,
		 hint[0] ? hint : "; longhaul.conf(5) lists the keys");
}

/* libinih: one key. Always 1: complaints are kept here, and a 0 would hide the line of a syntax
 * error. */
static int handle_key(void *user, const char *section, const char *name, const char *value)
{
	struct parser *p = user;
	const char *w;

	(void)section;
	if (p->kind == S_NONE) {
		complain(p, p->line, "'%s' stands before any section; begin with [longhaul]", name);
		p->kind = S_SKIP;
	}
	if (p->kind == S_SKIP)
		return 1;
	for (unsigned int i = 0; p->keys[i].name; i++) {
		if (strcmp(p->keys[i].name, name))
			continue;
		if (p->seen & 1ull << i) {
			complain(p, p->line, "second '%s' in [%s]; keep one of them", name,
				 p->head);
			return 1;
		}
		p->seen |= 1ull << i;
		if (p->kind == S_LONGHAUL && i < STEER_SIDES)
			p->c->if_line[i] = p->line;
		if (p->kind == S_PEER && !strcmp(name, "key-file"))
			p->c->peers[p->c->npeers - 1].key_line = p->line;
		w = apply(p, &p->keys[i], value);
		if (w)
			complain(p, p->line, "%s '%.60s' %s", name, value, w);
		return 1;
	}
	unknown_key(p, name);
	return 1;
}

static void defaults(struct config *c)
{
	memset(c, 0, sizeof(*c));
	strcpy(c->socket, CONFIG_SOCKET);
	c->pool_bytes = 256ull << 20;
	c->max_conns = 16384;
	c->port = CONFIG_PORT;
	c->peer_timeout_ns = 60 * SEC;
	c->responder_timeout_ns = 30 * SEC;
	c->rnr_timeout_ns = 300 * SEC;
	c->idle_ns = 600 * SEC;
	c->drain_ns = 10 * SEC;
	c->log_level = LOG_INFO;
	c->sandbox = true;
	if (gethostname(c->node, sizeof(c->node) - 1))
		strcpy(c->node, "longhaul");
	c->node[strcspn(c->node, ".")] = '\0';
	if (!proto_name_ok(c->node))
		strcpy(c->node, "longhaul");
}

int config_parse(FILE *f, const char *name, struct config *c, struct config_errors *errs)
{
	struct parser *p = calloc(1, sizeof(*p));
	int rc;

	errs->n = 0;
	if (!p) {
		config_error(errs, name, 0, "out of memory");
		return -EINVAL;
	}
	defaults(c);
	snprintf(c->file, sizeof(c->file), "%s", name);
	p->c = c;
	p->errs = errs;
	p->name = name;
	p->f = f;
	/* Indented keys are keys, not continued values; '#' may follow a value. */
	ini_allow_multiline = false;
	ini_inline_comment_prefixes = (char *)";#";
	ini_use_stack = false;
	ini_max_line = ini_initial_alloc = LINE_MAX_ + 4;
	rc = ini_parse_stream(read_line, p, handle_key, p);
	section_close(p);
	if (rc > 0)
		complain(p, rc, "is neither '[section]' nor 'key = value'");
	else if (rc < 0)
		complain(p, 0, "out of memory");
	if (ferror(f))
		complain(p, 0, "cannot be read: %s", strerror(errno));
	else
		config_check(c, errs);
	free(p->buf);
	free(p);
	return errs->n ? -EINVAL : 0;
}

int config_load(const char *path, struct config *c, struct config_errors *errs)
{
	FILE *f;
	int rc;

	errs->n = 0;
	if (strlen(path) >= sizeof(c->file)) {
		config_error(errs, path, 0, "path of more than %zu characters; use a shorter one",
			     sizeof(c->file) - 1);
		return -EINVAL;
	}
	f = fopen(path, "re");
	if (!f) {
		config_error(errs, path, 0,
			     "cannot be opened: %s; name the file with -c, or copy the sample "
			     "longhaul.conf there",
			     strerror(errno));
		return -EINVAL;
	}
	rc = config_parse(f, path, c, errs);
	fclose(f);
	return rc;
}

static bool same_peers(const struct config *a, const struct config *b)
{
	if (a->npeers != b->npeers)
		return false;
	for (unsigned int i = 0; i < a->npeers; i++) {
		const struct config_peer *x = &a->peers[i], *y = &b->peers[i];

		if (strcmp(x->name, y->name) || strcmp(x->key_file, y->key_file) ||
		    x->port != y->port || !ip_addr_eq(&x->addr, &y->addr))
			return false;
	}
	return true;
}

const char *config_restart_needed(const struct config *a, const struct config *b)
{
	for (unsigned int i = 0; longhaul_keys[i].name; i++) {
		const struct key *k = &longhaul_keys[i];
		const char *x = (const char *)a + k->off, *y = (const char *)b + k->off;
		bool text = k->type == V_TEXT || k->type == V_NAME;

		if (k->off == offsetof(struct config, log_level) ||
		    k->off == offsetof(struct config, drain_ns))
			continue;
		if (text ? strcmp(x, y) : memcmp(x, y, k->size))
			return k->name;
	}
	return same_peers(a, b) ? NULL : "[peer]";
}

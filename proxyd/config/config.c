// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libinih does the syntax. It does not tell line numbers or where sections begin, so the reader
 * that feeds it counts lines and opens and closes sections; the handler then gets keys of the open
 * section. The tables of config_key.c have the keys of each section.
 */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "config/config_key.h"
#include "config/config_value.h"
#include "peer/proto.h"

#define SEC		 1000000000ull
#define LINE_MAX_	 4096 /* bytes of one line of the file */
/* Age of prefetched data since its request: more than two round trips to anywhere on earth, one for
 * the response, and one that the window runs ahead of the host. */
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

enum section {
	S_NONE, /* before the first section: no key is allowed */
	S_SKIP, /* the section's head was wrong: its keys cause no further errors */
	S_LONGHAUL,
	S_PEER,
	S_RULE,
};

/**
 * struct parser
 * @file:      the open file, index in config.files; @name: its name in messages
 * @line:      the line that libinih reads now
 * @kind, @base, @keys, @head, @head_line: the open section; @base is what its keys fill
 * @seen:      keys of the section so far, bits by index in @keys
 */
struct parser {
	struct config *c;
	struct config_errors *errs;
	const char *name;
	uint8_t file;
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

static void missing_key(struct parser *p, const struct key *k)
{
	const char *mend = key_mend(k);

	if (mend)
		complain(p, p->head_line, "[%s] has no '%s'%s", p->head, k->name, mend);
	else
		complain(p, p->head_line, "[%s] has no '%s'; add the line '%s = ...'", p->head,
			 k->name, k->name);
}

static void section_close(struct parser *p)
{
	if (p->kind == S_LONGHAUL || p->kind == S_PEER || p->kind == S_RULE)
		for (unsigned int i = 0; p->keys[i].name; i++)
			if (p->keys[i].required && !(p->seen & 1ull << i))
				missing_key(p, &p->keys[i]);
	p->kind = S_SKIP;
	p->seen = 0;
}

static void open_longhaul(struct parser *p)
{
	if (p->file) {
		complain(p, p->line,
			 "[longhaul] in an included file, which can have peers and rules; move it "
			 "to %s",
			 p->c->file);
		return;
	}
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

/* "on line 4", with the file's name if it is another one. */
static const char *place(const struct parser *p, uint8_t file, unsigned int line, char *buf,
			 size_t len)
{
	if (file == p->file)
		snprintf(buf, len, "on line %u", line);
	else
		snprintf(buf, len, "at %s:%u", config_file(p->c, file), line);
	return buf;
}

static void open_peer(struct parser *p, const char *name)
{
	char at[CONFIG_FILE_NAME + 16];
	struct config *c = p->c;
	struct config_peer *peer = &c->peers[c->npeers];
	const char *w;

	for (unsigned int i = 0; i < c->npeers; i++) {
		if (!strcmp(c->peers[i].name, name)) {
			complain(p, p->line,
				 "second peer '%s', the first is %s; rename or join them", name,
				 place(p, c->peers[i].file, c->peers[i].line, at, sizeof(at)));
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
	peer->file = p->file;
	c->npeers++;
	p->kind = S_PEER;
	p->keys = peer_keys;
	p->base = peer;
}

static void open_rule(struct parser *p, const char *name)
{
	char at[CONFIG_FILE_NAME + 16];
	struct config *c = p->c;
	struct rule *r = &c->rules[c->nrules];
	const char *w;

	for (unsigned int i = 0; i < c->nrules; i++) {
		if (!strcmp(c->rules[i].name, name)) {
			complain(
				p, p->line,
				"second rule '%s', the first is %s; rename or join them", name,
				place(p, c->rule_src[i].file, c->rule_src[i].line, at, sizeof(at)));
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
	r->learn = LEARN_CM | LEARN_PSN;
	r->seal = r->parity = true;
	r->prefetch_max_age_ns = PREFETCH_MAX_AGE;
	c->rule_src[c->nrules].file = p->file;
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

/* fgets for libinih: the next line into @str; bad lines cause an error and are fed as empty. */
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
	/* libinih need not see section heads: the open section is known here */
	return str;
}

static void unknown_key(struct parser *p, const char *name)
{
	const char *names[64];
	char hint[64];
	unsigned int n;

	for (n = 0; p->keys[n].name && n < sizeof(names) / sizeof(names[0]) - 1; n++)
		names[n] = p->keys[n].name;
	names[n] = NULL;
	value_suggestion(name, names, hint, sizeof(hint));
	complain(p, p->line, "unknown key '%s' in [%s]%s", name, p->head,
		 hint[0] ? hint : "; longhaul.conf(5) lists the keys");
}

/* Two names of one key, the old one after the new one, share a bit in @seen. */
static unsigned int seen_bit(const struct key *keys, unsigned int i)
{
	return i && keys[i].size && keys[i].off == keys[i - 1].off ? i - 1 : i;
}

/* Called by libinih for one key. Always returns 1: errors are collected here, and a 0 would hide
 * the line of a syntax error. */
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
		if (p->seen & 1ull << seen_bit(p->keys, i)) {
			complain(p, p->line, "second '%s' in [%s]; keep one of them",
				 p->keys[seen_bit(p->keys, i)].name, p->head);
			return 1;
		}
		p->seen |= 1ull << seen_bit(p->keys, i);
		if (p->kind == S_LONGHAUL)
			p->c->key_line[i] = p->line;
		if (p->kind == S_PEER && !strcmp(name, "key-file"))
			p->c->peers[p->c->npeers - 1].key_line = p->line;
		if (p->kind == S_RULE)
			key_note_line(&p->keys[i], p->c, p->line);
		w = key_apply(&p->keys[i], p->c, p->base, value);
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
	c->cores = 1;
	c->wan_rate = PACE_AUTO;
	c->port = CONFIG_PORT;
	c->peer_timeout_ns = 60 * SEC;
	c->responder_timeout_ns = 30 * SEC;
	c->rnr_timeout_ns = 300 * SEC;
	c->idle_ns = 600 * SEC;
	c->drain_ns = 10 * SEC;
	c->log_level = LOG_INFO;
	c->sandbox = true;
	c->nfiles = 1;
	if (gethostname(c->node, sizeof(c->node) - 1))
		strcpy(c->node, "longhaul");
	c->node[strcspn(c->node, ".")] = '\0';
	if (!proto_name_ok(c->node))
		strcpy(c->node, "longhaul");
}

static void parse_file(struct parser *p, FILE *f)
{
	int rc;

	p->name = config_file(p->c, p->file);
	p->f = f;
	p->line = 0;
	p->kind = S_NONE;
	rc = ini_parse_stream(read_line, p, handle_key, p);
	section_close(p);
	if (rc > 0)
		complain(p, rc, "is neither '[section]' nor 'key = value'");
	else if (rc < 0)
		complain(p, 0, "out of memory");
	if (ferror(f))
		complain(p, 0, "cannot be read: %s", strerror(errno));
}

/* O_NONBLOCK: the running daemon must not hang on a FIFO that a pattern matches. NULL with errno,
 * which is 0 if it is no regular file. */
static FILE *open_included(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	FILE *f;

	if (fd < 0)
		return NULL;
	errno = 0;
	f = !fstat(fd, &st) && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	if (!f)
		close(fd);
	return f;
}

static void parse_included(struct parser *p, const char *path)
{
	struct config *c = p->c;
	FILE *f;

	if (c->nfiles == CONFIG_FILES || strlen(path) >= sizeof(c->files[0])) {
		complain(p, 0,
			 c->nfiles == CONFIG_FILES ? "more than %d files are included; join some"
						   : "an included path has more than %d characters",
			 c->nfiles == CONFIG_FILES ? CONFIG_FILES - 1 : CONFIG_FILE_NAME - 1);
		return;
	}
	strcpy(c->files[c->nfiles], path);
	p->file = (uint8_t)c->nfiles++;
	f = open_included(path);
	if (f) {
		parse_file(p, f);
		fclose(f);
	} else {
		config_error(p->errs, path, 0, "cannot be read: %s",
			     errno ? strerror(errno) : "it is no regular file");
	}
	p->file = 0;
	p->name = config_file(c, 0);
}

/* For glob(): an absent folder counts as empty; an unreadable one is an error. */
static int folder_error(const char *path, int e)
{
	(void)path;
	errno = e;
	return e != ENOENT;
}

/* Read the files of `include', in the order of their names; a relative pattern is relative to the
 * main file's folder. A pattern without a match is fine, an absent file is an error. */
static void parse_includes(struct parser *p)
{
	const char *include = p->c->include, *slash = strrchr(p->c->file, '/');
	char pattern[2 * CONFIG_FILE_NAME];
	glob_t found = {0};
	int rc;

	if (!*include)
		return;
	snprintf(pattern, sizeof(pattern), "%.*s%s",
		 *include == '/' || !slash ? 0 : (int)(slash + 1 - p->c->file), p->c->file,
		 include);
	rc = glob(pattern, 0, folder_error, &found);
	if (rc && (rc != GLOB_NOMATCH || !strpbrk(include, "*?[")))
		complain(p, config_line(p->c, "include"),
			 "include '%s' names nothing that can be read: %s", include,
			 rc == GLOB_NOMATCH ? "there is no such file" : strerror(errno));
	for (size_t i = 0; !rc && i < found.gl_pathc; i++)
		parse_included(p, found.gl_pathv[i]);
	globfree(&found);
}

int config_parse(FILE *f, const char *name, struct config *c, struct config_errors *errs)
{
	struct parser *p = calloc(1, sizeof(*p));

	errs->n = 0;
	if (!p) {
		config_error(errs, name, 0, "out of memory");
		return -EINVAL;
	}
	defaults(c);
	snprintf(c->file, sizeof(c->file), "%s", name);
	p->c = c;
	p->errs = errs;
	/* Indented keys are keys, not continued values; '#' may follow a value. */
	ini_allow_multiline = false;
	ini_inline_comment_prefixes = (char *)";#";
	ini_use_stack = false;
	ini_max_line = ini_initial_alloc = LINE_MAX_ + 4;
	parse_file(p, f);
	parse_includes(p);
	if (!ferror(f))
		config_check(c, errs);
	free(p->buf);
	free(p);
	return errs->n ? -EINVAL : 0;
}

const char *config_file(const struct config *c, unsigned int file)
{
	return file ? c->files[file] : c->file;
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
		config_error(
			errs, path, 0, "cannot be opened: %s; %s", strerror(errno),
			errno == EACCES
				? "run as root, or as the user of the service"
				: "name the file with -c, or copy the sample longhaul.conf there");
		return -EINVAL;
	}
	rc = config_parse(f, path, c, errs);
	fclose(f);
	return rc;
}

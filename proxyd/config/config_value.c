// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config/config_value.h"

#include <ctype.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong. The caller copies it before the next call; only one thread reads configurations.
 */
static char why[256];

static const char *wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static const char *wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return why;
}

/* Read a decimal number and its end; false when there is none or it does not fit. */
static bool number_prefix(const char *text, uint64_t *out, const char **end)
{
	char *e;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &e, 10);
	*end = e;
	return !errno;
}

const char *value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end;

	if (!number_prefix(text, out, &end) || *end)
		return wrong("is no whole number; write one from %llu to %llu",
			     (unsigned long long)min, (unsigned long long)max);
	if (*out < min || *out > max)
		return wrong("is out of range; write a number from %llu to %llu",
			     (unsigned long long)min, (unsigned long long)max);
	return NULL;
}

const char *value_auto_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	*out = 0;
	if (!strcmp(text, "auto") || !value_number(text, min, max, out))
		return NULL;
	return wrong("is no number to be used here; write auto, or a number from %llu to %llu",
		     (unsigned long long)min, (unsigned long long)max);
}

/* The factor of suffix @s, 0 when it is none. */
static uint64_t suffix_factor(const char *s, uint64_t kilo)
{
	if (!*s)
		return 1;
	if (s[1])
		return 0;
	switch (toupper((unsigned char)*s)) {
	case 'K':
		return kilo;
	case 'M':
		return kilo * kilo;
	case 'G':
		return kilo * kilo * kilo;
	default:
		return 0;
	}
}

static bool scaled(const char *text, uint64_t kilo, uint64_t *out)
{
	const char *end;
	uint64_t f;

	if (!number_prefix(text, out, &end))
		return false;
	f = suffix_factor(end, kilo);
	return f && !__builtin_mul_overflow(*out, f, out);
}

static const char *size_text(uint64_t bytes, char *buf, size_t len)
{
	static const char units[] = "\0KMG";
	unsigned int u = 0;

	while (u < 3 && bytes && !(bytes % 1024)) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, len, "%llu%.1s", (unsigned long long)bytes, units + u);
	return buf;
}

const char *value_size(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char lo[32], hi[32];

	size_text(min, lo, sizeof(lo));
	size_text(max, hi, sizeof(hi));
	if (!scaled(text, 1024, out))
		return wrong("is no size; write a whole number with K, M or G, such as 512M");
	if (*out < min || *out > max)
		return wrong("is out of range; write a size from %s to %s", lo, hi);
	return NULL;
}

const char *value_rate(const char *text, uint64_t *out)
{
	uint64_t bits;

	if (!scaled(text, 1000, &bits))
		return wrong("is no rate; write bits per second with K, M or G, such as 10G");
	if (bits && bits < 1000000)
		return wrong("is too slow to be meant; write bits per second, 1M or more, or 0");
	if (bits > 10000000000000ull)
		return wrong("is out of range; write 10000G or less");
	*out = bits / 8;
	return NULL;
}

const char *value_pace(const char *text, uint64_t *out)
{
	static const char upto[] = "auto up to ";
	const char *w = NULL;

	*out = 0;
	if (!strcmp(text, "auto")) {
		*out = PACE_AUTO;
	} else if (!strncmp(text, upto, sizeof(upto) - 1)) {
		w = value_rate(text + sizeof(upto) - 1, out);
		*out |= PACE_AUTO;
	} else {
		w = value_rate(text, out);
	}
	return w;
}

static const char *duration_text(uint64_t ns, char *buf, size_t len)
{
	if (ns % 1000000000ull)
		snprintf(buf, len, "%llums", (unsigned long long)(ns / 1000000));
	else
		snprintf(buf, len, "%llus", (unsigned long long)(ns / 1000000000));
	return buf;
}

const char *value_duration(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{"us", 1000ull},	 {"ms", 1000000ull},	  {"s", 1000000000ull},
		{"min", 60000000000ull}, {"h", 3600000000000ull},
	};
	char lo[32], hi[32];
	const char *end;

	duration_text(min, lo, sizeof(lo));
	duration_text(max, hi, sizeof(hi));
	if (!number_prefix(text, out, &end))
		return wrong("is no duration; write a whole number with us, ms, s, min or h, such "
			     "as 30s");
	while (*end == ' ')
		end++;
	if (!*end)
		return wrong("has no unit; write %ss or %sms", text, text);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		if (__builtin_mul_overflow(*out, units[i].ns, out) || *out < min || *out > max)
			return wrong("is out of range; write a duration from %s to %s", lo, hi);
		return NULL;
	}
	return wrong("has an unknown unit; write us, ms, s, min or h");
}

const char *value_path_mtu(const char *text, uint32_t min, uint32_t *out)
{
	static const char *const names[] = {"256", "512", "1024", "2048", "4096", "auto", NULL};
	unsigned int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			break;
	*out = i < 5 ? 256u << i : 0;
	if (!names[i] || (*out && *out < min))
		return wrong("is no path MTU to be used here; write auto, %s1024, 2048 or 4096",
			     min <= 256 ? "256, 512, " : "");
	return NULL;
}

/* Numbers, and the usual names: class selectors, assured, expedited, lower effort. */
const char *value_dscp(const char *text, uint8_t *out)
{
	unsigned int a, b = 0;
	char end;

	if (!strcmp(text, "keep"))
		*out = 0;
	else if (!strcmp(text, "ef"))
		*out = RULE_DSCP | 46;
	else if (!strcmp(text, "le"))
		*out = RULE_DSCP | 1;
	else if (sscanf(text, "cs%1u%c", &a, &end) == 1 && a < 8)
		*out = (uint8_t)(RULE_DSCP | a << 3);
	else if (sscanf(text, "af%1u%1u%c", &a, &b, &end) == 2 && a - 1 < 4 && b - 1 < 3)
		*out = (uint8_t)(RULE_DSCP | a << 3 | b << 1);
	else if (sscanf(text, "%2u%c", &a, &end) == 1 && a < 64 && text[0] >= '0' && text[0] <= '9')
		*out = (uint8_t)(RULE_DSCP | a);
	else
		return wrong("is no DSCP; write keep, 0 to 63, cs0 to cs7, af11 to af43, ef or le");
	return NULL;
}

const char *value_bool(const char *text, bool *out)
{
	if (strcmp(text, "on") && strcmp(text, "off"))
		return wrong("is neither on nor off");
	*out = !strcmp(text, "on");
	return NULL;
}

const char *value_text(const char *text, char *out, size_t size)
{
	size_t len = strlen(text);

	if (!len)
		return wrong("is empty; write a value or leave the line out");
	if (len >= size)
		return wrong("is too long; write at most %zu characters", size - 1);
	memcpy(out, text, len + 1);
	return NULL;
}

const char *value_name(const char *text, char *out, size_t size)
{
	const char *w = value_text(text, out, size);

	if (w)
		return w;
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return wrong(
				"holds characters other than letters, digits, '-', '_' and '.'");
	return NULL;
}

const char *value_address(const char *text, struct ip_addr *out)
{
	if (ip_addr_parse(text, out))
		return wrong(
			"is no IPv4 or IPv6 address; write one, such as 192.0.2.1 or 2001:db8::1");
	return NULL;
}

/* Unspecified, multicast, broadcast, or IPv6 link-local, since no interface is given. */
static bool of_no_host(const struct ip_addr *a)
{
	static const struct ip_addr none;
	bool v4 = ip_addr_is_v4(a);
	const uint8_t *b = a->b + (v4 ? 12 : 0);

	if (v4)
		return !memcmp(b, "\0\0\0", 4) || (b[0] & 0xf0) == 0xe0 ||
		       !memcmp(b, "\xff\xff\xff\xff", 4);
	return ip_addr_eq(a, &none) || b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

/* A host name has a letter, which no number or IPv4 address has. */
const char *value_host(const char *text, struct ip_addr *out, char *name, size_t size)
{
	bool letter = false;

	name[0] = '\0';
	if (!ip_addr_parse(text, out))
		return of_no_host(out) ? wrong("is of no single host that can be reached; write "
					       "one, such as 192.0.2.1 or 2001:db8::1")
				       : NULL;
	for (const char *p = text; *p; p++) {
		letter |= isalpha((unsigned char)*p);
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
			return wrong("is no IPv4 or IPv6 address and no host name; write such as "
				     "192.0.2.1, 2001:db8::1 or edge-b.example.net");
	}
	if (!letter)
		return wrong("is no IPv4 or IPv6 address; write one, such as 192.0.2.1 or "
			     "2001:db8::1, or a host name");
	memset(out, 0, sizeof(*out));
	return value_text(text, name, size);
}

/* Clear all bits of @a behind the first @len; true when there were any. */
static bool clear_host_bits(struct ip_addr *a, unsigned int len)
{
	bool any = false;

	for (unsigned int bit = len; bit < 128; bit++) {
		uint8_t mask = 0x80 >> (bit % 8);

		any |= a->b[bit / 8] & mask;
		a->b[bit / 8] &= ~mask;
	}
	return any;
}

/* Read one prefix, or an address as a prefix of full length. */
static const char *one_prefix(char *text, struct prefix *out)
{
	char *slash = strchr(text, '/'), buf[IP_ADDR_STRLEN];
	unsigned int width, base;
	const char *end;
	uint64_t len;

	if (slash)
		*slash = '\0';
	if (ip_addr_parse(text, &out->addr))
		return wrong(
			"holds '%s', which is no IPv4 or IPv6 prefix; write such as 10.1.0.0/16",
			text);
	/* A v4-mapped prefix in IPv6 form (::ffff:10.0.0.0/104) counts all 128 bits. */
	base = ip_addr_is_v4(&out->addr) && !strchr(text, ':') ? 96 : 0;
	width = 128 - base;
	len = width;
	if (slash && (!number_prefix(slash + 1, &len, &end) || *end || len > width))
		return wrong("holds '%s/%s' with a bad prefix length; write 0 to %u", text,
			     slash + 1, width);
	out->len = base + len;
	if (clear_host_bits(&out->addr, out->len))
		return wrong("holds '%s/%u' with host bits set; write %s/%u", text,
			     (unsigned int)len, ip_addr_str(&out->addr, buf), (unsigned int)len);
	return NULL;
}

static const char *add_prefix(const struct prefix *p, struct prefix *out, unsigned int max,
			      unsigned int *n)
{
	if (*n == max)
		return wrong(
			"holds too many prefixes; write at most %u in one rule, or split the rule",
			max);
	out[(*n)++] = *p;
	return NULL;
}

#define LIST_SEPARATORS ", \t"

const char *value_ports(const char *text, char (*out)[IF_NAMESIZE], unsigned int max)
{
	unsigned int n = 0;
	size_t len;

	memset(out, 0, max * sizeof(*out));
	for (text += strspn(text, LIST_SEPARATORS); *text; text += strspn(text, LIST_SEPARATORS)) {
		len = strcspn(text, LIST_SEPARATORS);
		if (len >= IF_NAMESIZE)
			return wrong("is too long for an interface's name, which has at most %d "
				     "letters",
				     IF_NAMESIZE - 1);
		if (n == max)
			return wrong("are too many; name at most %u interfaces", max);
		memcpy(out[n++], text, len);
		text += len;
	}
	return n ? NULL : wrong("is empty; name an interface, or several");
}

const char *value_prefixes(const char *text, struct prefix *out, unsigned int max, unsigned int *n)
{
	static const uint8_t zero4[4];
	const struct prefix any4 = {.addr = ip_addr_v4(zero4), .len = 96}, any6 = {.len = 0};
	char *copy = strdup(text), *save = NULL;
	const char *w = NULL;
	struct prefix p;

	*n = 0;
	if (!copy)
		return wrong("does not fit into memory");
	for (char *t = strtok_r(copy, LIST_SEPARATORS, &save); t && !w;
	     t = strtok_r(NULL, LIST_SEPARATORS, &save)) {
		if (!strcmp(t, "any")) {
			w = add_prefix(&any4, out, max, n);
			if (!w)
				w = add_prefix(&any6, out, max, n);
			continue;
		}
		w = one_prefix(t, &p);
		if (!w)
			w = add_prefix(&p, out, max, n);
	}
	free(copy);
	if (!w && !*n)
		return wrong(
			"is empty; write prefixes such as 10.1.0.0/16, 2001:db8:1::/48, or any");
	return w;
}

/* Read a number of 64 bits, decimal or with 0x, and its end; a leading 0 does not make it octal. */
static bool address_prefix(const char *text, uint64_t *out, const char **end)
{
	char *e;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X'))
		return number_prefix(text, out, end);
	if (!isxdigit((unsigned char)text[2]))
		return false;
	errno = 0;
	*out = strtoull(text + 2, &e, 16);
	*end = e;
	return !errno;
}

static const char *one_range(const char *text, uint64_t *from, uint64_t *to)
{
	const char *end;

	if (!address_prefix(text, from, &end) || *end != '-' ||
	    !address_prefix(end + 1, to, &end) || *end)
		return wrong("holds '%s', which is no range; write FROM-END without blanks, such "
			     "as 0x7f0000000000-0x7f0040000000",
			     text);
	if (*to <= *from)
		return wrong("holds '%s', which is empty: the end, which lies behind the last "
			     "byte, is not above the start; exchange or correct them",
			     text);
	return NULL;
}

const char *value_read_ranges(const char *text, struct rule *r)
{
	char *copy = strdup(text), *save = NULL;
	const char *w = NULL;
	uint64_t from = 0, to = 0;

	r->nread_ranges = 0;
	if (!copy)
		return wrong("does not fit into memory");
	for (char *t = strtok_r(copy, LIST_SEPARATORS, &save); t && !w;
	     t = strtok_r(NULL, LIST_SEPARATORS, &save)) {
		w = one_range(t, &from, &to);
		if (!w && r->nread_ranges == RULE_READ_RANGES)
			w = wrong(
				"holds too many ranges; write at most %u in one rule, or join them",
				RULE_READ_RANGES);
		if (w)
			break;
		r->read_range[r->nread_ranges].from = from;
		r->read_range[r->nread_ranges++].end = to;
	}
	free(copy);
	if (!w && !r->nread_ranges)
		return wrong("is empty; leave the line out or name a range, such as "
			     "0x7f0000000000-0x7f0040000000");
	return w;
}

const char *value_vlan(const char *text, uint16_t *out)
{
	uint64_t id = 0;

	if (!strcmp(text, "any")) {
		*out = RULE_ANY_VLAN;
	} else if (!strcmp(text, "none")) {
		*out = FRAME_VLAN_NONE;
	} else {
		if (value_number(text, 1, 4094, &id))
			return wrong("is no VLAN; write 1 to 4094, none (untagged only) or any");
		*out = id;
	}
	return NULL;
}

/* "a, b or c" */
static const char *names_text(const char *const *names, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; names[i] && used < len; i++)
		used += snprintf(buf + used, len - used, "%s%s",
				 !i		? ""
				 : names[i + 1] ? ", "
						: " or ",
				 names[i]);
	return buf;
}

const char *value_choice(const char *text, const char *const *names, unsigned int *out)
{
	char buf[128];

	for (unsigned int i = 0; names[i]; i++) {
		if (!strcmp(text, names[i])) {
			*out = i;
			return NULL;
		}
	}
	return wrong("is not known; write %s", names_text(names, buf, sizeof(buf)));
}

const char *value_flags(const char *text, const char *const *names, unsigned int *out)
{
	char *copy = strdup(text), *save = NULL;
	const char *w = NULL;
	unsigned int i = 0;

	*out = 0;
	if (!copy)
		return wrong("does not fit into memory");
	for (char *t = strtok_r(copy, LIST_SEPARATORS, &save); t && !w;
	     t = strtok_r(NULL, LIST_SEPARATORS, &save)) {
		w = value_choice(t, names, &i);
		if (!w)
			*out |= 1u << i;
	}
	free(copy);
	if (!w && !*out)
		return wrong("is empty; leave the line out or name at least one");
	return w;
}

/* Levenshtein distance; names here are short. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[64], la = strlen(a), lb = strlen(b);

	if (la >= 64 || lb >= 64)
		return 64;
	for (unsigned int j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned int i = 1; i <= la; i++) {
		unsigned int diag = row[0];

		row[0] = i;
		for (unsigned int j = 1; j <= lb; j++) {
			unsigned int d = diag + (a[i - 1] != b[j - 1]);

			diag = row[j];
			if (row[j] + 1 < d)
				d = row[j] + 1;
			if (row[j - 1] + 1 < d)
				d = row[j - 1] + 1;
			row[j] = d;
		}
	}
	return row[lb];
}

const char *value_nearest(const char *text, const char *const *names)
{
	const char *best = NULL;
	unsigned int least = 64;

	for (; *names; names++) {
		unsigned int d = distance(text, *names);

		if (d < least) {
			least = d;
			best = *names;
		}
	}
	/* With at least half of the letters right it may be a typing error. */
	return best && least * 2 <= strlen(best) ? best : NULL;
}

const char *value_suggestion(const char *text, const char *const *names, char *buf, size_t len)
{
	const char *near = value_nearest(text, names);

	buf[0] = '\0';
	if (near)
		snprintf(buf, len, "; did you mean '%s'?", near);
	return buf;
}

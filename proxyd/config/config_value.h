/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values of the configuration file: text to numbers, addresses, prefixes. Each function returns
 * NULL if the text is right, else what is wrong and how to correct it, as a part of a message.
 */
#ifndef LONGHAUL_CONFIG_VALUE_H
#define LONGHAUL_CONFIG_VALUE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule/rule.h"

/** value_number - decimal, @min .. @max. */
const char *value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/** value_auto_number - likewise, or "auto", which gives 0. */
const char *value_auto_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/** value_size - bytes with K, M, G in powers of 1024. */
const char *value_size(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/** value_rate - bits per second with K, M, G in powers of 1000; @out in bytes per second. 0 is
 * allowed. */
const char *value_rate(const char *text, uint64_t *out);

/** value_pace - a rate as above, "auto", or "auto up to" a rate: then @out has PACE_AUTO added to
 * the maximum, 0 for none. */
#define PACE_AUTO (1ull << 63)
const char *value_pace(const char *text, uint64_t *out);

/** value_duration - with unit ms, s, min or h; @out and the bounds in ns. */
const char *value_duration(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/** value_path_mtu - 256, 512, 1024, 2048, 4096, not below @min; "auto" gives 0. */
/** value_dscp - RULE_DSCP and the number, or 0 for keep. */
const char *value_dscp(const char *text, uint8_t *out);
const char *value_path_mtu(const char *text, uint32_t min, uint32_t *out);

/** value_bool - on or off. */
const char *value_bool(const char *text, bool *out);

/** value_text - @text into @out (@size bytes); an error when empty or too long. */
const char *value_text(const char *text, char *out, size_t size);

/** value_name - likewise, and only letters, digits, '-', '_', '.'. */
const char *value_name(const char *text, char *out, size_t size);

/** value_address - IPv4 or IPv6. */
const char *value_address(const char *text, struct ip_addr *out);

/** value_host - likewise, or a host name: then it goes to @name (@size bytes), and @out is all
 * zero. */
const char *value_host(const char *text, struct ip_addr *out, char *name, size_t size);

/** value_ports - list of at most @max interfaces separated by commas or blanks, into @out; the rest
 * of it is cleared. */
const char *value_ports(const char *text, char (*out)[IF_NAMESIZE], unsigned int max);

/** value_prefixes - list separated by commas or blanks; "any" is 0.0.0.0/0 and ::/0. */
const char *value_prefixes(const char *text, struct prefix *out, unsigned int max, unsigned int *n);

/** value_read_ranges - list of FROM-END, decimal or hexadecimal with 0x, END is after the last
 * byte; into @r. */
const char *value_read_ranges(const char *text, struct rule *r);

/** value_vlan - VLAN id 1 .. 4094, "none", "any". */
const char *value_vlan(const char *text, uint16_t *out);

/** value_choice - index of @text in @names (NULL-terminated). */
const char *value_choice(const char *text, const char *const *names, unsigned int *out);

/** value_flags - list of @names separated by commas or blanks, bit i for @names[i]; at least one.
 */
const char *value_flags(const char *text, const char *const *names, unsigned int *out);

/** value_nearest - the one of @names (NULL-terminated) that was probably meant by @text, or NULL.
 */
const char *value_nearest(const char *text, const char *const *names);

/** value_suggestion - "; did you mean 'x'?" into @buf, or nothing; returns @buf. */
const char *value_suggestion(const char *text, const char *const *names, char *buf, size_t len);

#endif

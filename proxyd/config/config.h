/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration file, checked as a whole before anything starts. Every error names file and
 * line, the cause and the mend; up to CONFIG_ERRORS of them are collected, so that all can be
 * corrected at once.
 */
#ifndef LONGHAUL_CONFIG_H
#define LONGHAUL_CONFIG_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config/resolver.h" /* RESOLVER_NAME */
#include "rule/rule.h"
#include "peer/session.h" /* SESSION_KEYS */
#include "port/afxdp.h"

#define CONFIG_PATH	 "/etc/longhaul/longhaul.conf"
#define CONFIG_SOCKET	 "/run/longhaul/longhaul.sock"
#define CONFIG_PORT	 4797
#define CONFIG_NODE	 64
#define CONFIG_FILE_NAME 256
#define CONFIG_KEYS	 23 /* of [longhaul] */
#define CONFIG_FILES	 65 /* the main file and those that it includes */
#define CONFIG_ERRORS	 20
#define CONFIG_ERROR_LEN 512

/**
 * struct config_peer - the appliance at the other end.
 * @addr, @port: of its reports and for ours; @host: host name for @addr, empty if the file has an
 *               address. @addr is all zero until the name is looked up
 * @key_file, @nkeys: the shared keys, the preferred one first
 * @file, @line: of [peer NAME]; @key_line: of key-file
 */
struct config_peer {
	char name[RULE_NAME];
	struct ip_addr addr;
	char host[RESOLVER_NAME];
	uint16_t port;
	char key_file[SESSION_KEYS][CONFIG_FILE_NAME];
	unsigned int nkeys;
	uint8_t file;
	unsigned int line, key_line;
};

/**
 * struct config_rule_src - what struct rule lacks: lines, for messages, and the peer's name.
 * @file, @line: of [rule NAME]; @peer_line, @pool_line, @mtu_line, @ahead_line, @atomic_line,
 * @announce_line: of the keys, 0 when absent
 */
struct config_rule_src {
	uint8_t file;
	unsigned int line, peer_line, pool_line, mtu_line, ahead_line, atomic_line, announce_line,
		seal_line;
	char peer[RULE_NAME];
};

/**
 * struct config
 * @file:          as given, for messages; @files, @nfiles: what it includes, from 1 on
 * @include:       pattern of those
 * @ifname:        [port] -> its interface, "": none
 * @line:          of [longhaul], 0 if absent; @key_line: of its keys (config_line()), of 'lan' and
 *                 'wan' by the side
 * @socket:        path of the control socket
 * @pool_bytes:    retention memory; @cores: 0: auto (host_cores())
 * @busy_poll_ns:  how long to look for frames before sleeping
 * @wan_rate:      bytes (not bits) per second, 0: not paced; with PACE_AUTO (config_value.h) the
 *                 rate is found, and this is the maximum
 * @share:         enum rate_share
 * @wan_burst:     bytes that may leave in one burst, 0: the engine's default
 * @max_path_mtu:  bytes, 0: as much as the kernel can
 * @listen:        own address for reports, all zero: any
 * @port:          own UDP port for reports
 * @drain_ns:      how long a stop waits for custody to be delivered
 * @log_level:     syslog level; less important messages are not written
 * @rule_src:      lines of each rule
 */
struct config {
	char file[CONFIG_FILE_NAME];
	char files[CONFIG_FILES][CONFIG_FILE_NAME];
	unsigned int nfiles;
	char include[CONFIG_FILE_NAME];
	char ifname[STEER_PORTS][IF_NAMESIZE];
	unsigned int line, key_line[CONFIG_KEYS];
	char socket[108];
	uint64_t pool_bytes;
	uint32_t max_conns, cores;
	uint64_t busy_poll_ns;
	enum afxdp_mode mode;
	uint64_t wan_rate;
	uint8_t share;
	uint32_t wan_burst;
	uint32_t max_path_mtu;
	struct ip_addr listen;
	uint16_t port;
	char node[CONFIG_NODE];
	uint64_t peer_timeout_ns, responder_timeout_ns, rnr_timeout_ns, idle_ns, drain_ns;
	int log_level;
	bool sandbox;
	struct config_peer peers[PEER_MAX];
	unsigned int npeers;
	struct rule rules[RULE_MAX];
	struct config_rule_src rule_src[RULE_MAX];
	unsigned int nrules;
};

/** struct config_errors - one line each, no newline; @n also counts those beyond CONFIG_ERRORS. */
struct config_errors {
	unsigned int n;
	char text[CONFIG_ERRORS][CONFIG_ERROR_LEN];
};

/**
 * config_load - read and check @path into @c; checks only the file itself. 0, or -EINVAL with @errs
 * filled. @c must not be used after an error.
 */
int config_load(const char *path, struct config *c, struct config_errors *errs);

/** config_parse - likewise from an open @f that messages call @name (tests, fuzzing). */
int config_parse(FILE *f, const char *name, struct config *c, struct config_errors *errs);

/** config_wants_pins - true if rule @i wants what needs the XDP program's pins. */
bool config_wants_pins(const struct config *c, unsigned int i);

/** config_file - name of the file with this index in peers and rules. */
const char *config_file(const struct config *c, unsigned int file);

/** config_line - line of key @name of [longhaul], or of that section if it is not there. */
unsigned int config_line(const struct config *c, const char *name);

/** config_check - the checks that need the whole file; part of config_parse(). Adds to @errs and
 * resolves the rules' peers. */
void config_check(struct config *c, struct config_errors *errs);

/** config_restart_needed - names the first setting of @b that differs from @a and that a running
 * daemon cannot take over, NULL when there is none. It can take over rules, peers, and the keys
 * that are key_live(). */
const char *config_restart_needed(const struct config *a, const struct config *b);

/**
 * config_places - give each peer of @c its place in @was, by its name, or by address and port if it
 * was renamed; new peers get places that are free there. Places without a name are empty; adjusts
 * the rules. 0, or -ENOSPC.
 */
int config_places(const struct config *was, struct config *c);

/** config_moved - whether peer @b has another address, host name or port than @a. */
bool config_moved(const struct config_peer *a, const struct config_peer *b);

/** config_take - copy what a running daemon can take over, except peers. */
void config_take(struct config *to, const struct config *from);

/** config_error - add one message about @line of @file (0: about the file as a whole). */
void config_error(struct config_errors *errs, const char *file, unsigned int line, const char *fmt,
		  ...) __attribute__((format(printf, 4, 5)));

#endif

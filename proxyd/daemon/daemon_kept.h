/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a daemon leaves beside its engine for the next one, which checks it before it uses anything
 * else.
 */
#ifndef LONGHAUL_DAEMON_KEPT_H
#define LONGHAUL_DAEMON_KEPT_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#include "config/config.h"
#include "engine/engine.h" /* enum peer_event */
#include "shards/shards.h"

/**
 * struct kept_peer - the peer at this place.
 * @boot:    the peer's boot epoch that the engine knows, 0: none
 * @leaving: it was removed from the configuration, and stays until its custody is delivered; @addr,
 *           @port: where it was
 */
struct kept_peer {
	char name[RULE_NAME];
	uint64_t boot;
	struct ip_addr addr;
	uint16_t port;
	uint8_t leaving;
};

/**
 * struct kept - beside the engine; the sessions follow.
 * @host_boot:             id of the host's boot, with which its clock begins
 * @dev, @ino:             of the file: a copy has old sequence numbers
 * @pool_bytes, @max_conns, @shards: that it was made for; @other_ino: of the other shards' files
 * @vlan_strip:            VLAN stripping that the ports get back at the end (afxdp_config)
 */
struct kept {
	_Alignas(64) char ifname[STEER_PORTS][IF_NAMESIZE];
	struct kept_peer peer[PEER_MAX];
	sd_id128_t host_boot;
	uint64_t dev, ino, pool_bytes;
	uint32_t max_conns, shards;
	uint64_t other_ino[SHARDS_MAX];
	uint8_t vlan_strip[STEER_PORTS];
};

/** kept_note - fill in all of it, for new files @fds of so many @shards. */
void kept_note(struct kept *k, const struct config *cfg, unsigned int shards, const int *fds);

/** kept_others - why the files @fds of the other shards are not those of @k; NULL if they are. */
const char *kept_others(const struct kept *k, const int *fds);

/** kept_note_peers - update the peers, after a reload, too; @leaving: removed ones, bits by place.
 */
void kept_note_peers(struct kept *k, const struct config *cfg, uint32_t leaving);

/** kept_read - read it from the file @fd, unchecked. */
bool kept_read(int fd, struct kept *k);

/** kept_strange - why the content @k of the file @fd cannot be used with @cfg; NULL if it can. */
const char *kept_strange(const struct kept *k, const struct config *cfg, int fd);

/** kept_strips - whether that interface of @cfg gets its VLAN stripping back, even if nothing else
 * of @k can be used. */
bool kept_strips(const struct kept *k, const struct config *cfg, unsigned int port);

/** kept_places - give the peers of @cfg their former places, and none the place of a leaving one.
 * New peers without a free place, and their rules, are taken out of @cfg, with a line in the log.
 * False: former peers are missing, and @cfg is unchanged. */
bool kept_places(const struct kept *k, struct config *cfg);

/** kept_leaving - put leaving peers into @cfg, at their places, without keys: bits by place. After
 * kept_places(). */
uint32_t kept_leaving(const struct kept *k, struct config *cfg);

/** kept_event - event for the engine from @ev of peer @peer with epoch @boot: the engine may know
 * another epoch. */
enum peer_event kept_event(const struct kept *k, unsigned int peer, enum peer_event ev,
			   uint64_t boot);

/** kept_resized - whether @cfg has other sizes than it was made for. With cores = auto any number
 * of shards is right, so that nothing keeps the next process from going on. */
bool kept_resized(const struct kept *k, const struct config *cfg);

/** kept_crashes - how many processes crashed with the file @fd since one of them lived for long;
 * from here on a crash of this one is counted. */
uint32_t kept_crashes(int fd);

/** kept_crashes_end - count no crash any more: the file may be truncated now. */
void kept_crashes_end(void);

/** kept_lives - this process has lived for KEPT_LIVES_MS: reset the count. */
#define KEPT_LIVES_MS 10000
void kept_lives(void);

#endif

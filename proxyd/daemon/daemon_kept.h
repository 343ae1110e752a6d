/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a daemon leaves beside its engine for the next one, which looks at it before it believes
 * anything else.
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

/**
 * struct kept_peer - who had this number.
 * @boot:    epoch of the peer's that the engine knows, 0: none
 * @leaving: it is in no configuration any more, and stays until what is owed has been delivered;
 *           @addr, @port: where it was
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
 * @host_boot:             of the host: its clock begins anew with another one
 * @dev, @ino:             of the file: a copy is of another time, and so are its sessions' numbers
 * @pool_bytes, @max_conns: that its sizes were made for
 * @vlan_strip:            what the ports are to have back at the end (afxdp_config)
 */
struct kept {
	_Alignas(64) char ifname[STEER_SIDES][IF_NAMESIZE];
	struct kept_peer peer[PEER_MAX];
	sd_id128_t host_boot;
	uint64_t dev, ino, pool_bytes;
	uint32_t max_conns;
	uint8_t vlan_strip[STEER_SIDES];
};

/** kept_note - all of it, for a new file @fd. */
void kept_note(struct kept *k, const struct config *cfg, int fd);

/** kept_note_peers - they may be others after a reload; @leaving: that one removed, bits by place.
 */
void kept_note_peers(struct kept *k, const struct config *cfg, uint32_t leaving);

/** kept_read - from the file @fd, nothing of which is believed yet. */
bool kept_read(int fd, struct kept *k);

/** kept_strange - why what is in the file @fd, with @k in it, is of no use for @cfg; NULL. */
const char *kept_strange(const struct kept *k, const struct config *cfg, int fd);

/** kept_strips - whether that interface of @cfg is to have its VLAN stripping back. That holds
 *  whatever else of @k is of no use. */
bool kept_strips(const struct kept *k, const struct config *cfg, enum steer_side side);

/** kept_places - the peers of @cfg get the places that they had, and none that of one that is
 * leaving. New ones for which none is left wait: they and their rules are taken out of @cfg, with a
 * line in the log. False: some that were there are missing, and @cfg is as it was. */
bool kept_places(const struct kept *k, struct config *cfg);

/** kept_leaving - put those that are leaving into @cfg, at their places, without keys: bits by
 *  place. After kept_places(). */
uint32_t kept_leaving(const struct kept *k, struct config *cfg);

/** kept_event - what @ev of peer @peer, of epoch @boot, is to an engine that may know another. */
enum peer_event kept_event(const struct kept *k, unsigned int peer, enum peer_event ev,
			   uint64_t boot);

/** kept_resized - whether @cfg wants other sizes than were made. */
bool kept_resized(const struct kept *k, const struct config *cfg);

/** kept_crashes - how often processes crashed over the file @fd since one of them lived for long;
 *  from here on it is noted when this one does. */
uint32_t kept_crashes(int fd);

/** kept_crashes_end - nothing is noted in that file any more, which may be cut to nothing now. */
void kept_crashes_end(void);

/** kept_lives - this process has lived for KEPT_LIVES_MS. */
#define KEPT_LIVES_MS 10000
void kept_lives(void);

#endif

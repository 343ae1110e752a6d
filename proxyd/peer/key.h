/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Key files: one line, 32 random bytes in base64, readable by their owner alone. Both appliances of
 * a pair have the same one.
 */
#ifndef LONGHAUL_PEER_KEY_H
#define LONGHAUL_PEER_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_KEY_LEN  32
#define PEER_KEY_TEXT 46	 /* 44 characters of base64, newline, final zero byte */
#define PEER_KEY_USER "longhaul" /* the user that systemd/longhauld.service runs the daemon as */

/**
 * key_read - read the key in file @path.
 * 0, or a negative errno with one line in @err (cause and mend, no newline). @key is zero after an
 * error.
 */
int key_read(const char *path, uint8_t key[PEER_KEY_LEN], char *err, size_t err_len);

/** key_owner - the user that should own key files: PEER_KEY_USER, root if there is no such user. */
uid_t key_owner(void);

/**
 * key_parse - the key in @len characters at @text: base64 with white space before and after; a part
 * of a key is refused. 0, or -EINVAL with one line in @err, which names @what.
 */
int key_parse(const char *what, const char *text, size_t len, uint8_t key[PEER_KEY_LEN], char *err,
	      size_t err_len);

/** key_text - @key as a line for a key file, newline included. Returns @text. */
const char *key_text(const uint8_t key[PEER_KEY_LEN], char text[PEER_KEY_TEXT]);

/** key_generate - a new random key as such a line. Returns @text, NULL when libsodium cannot
 *  start. */
const char *key_generate(char text[PEER_KEY_TEXT]);

#endif

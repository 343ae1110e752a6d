// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "peer/key.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A key file is one line; a much longer file was named by mistake. */
#define FILE_MAX 1024

_Static_assert(sodium_base64_ENCODED_LEN(PEER_KEY_LEN, sodium_base64_VARIANT_ORIGINAL) + 1 ==
		       PEER_KEY_TEXT,
	       "base64, newline, zero");

static int fail(int e, char *err, size_t err_len, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static int fail(int e, char *err, size_t err_len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, err_len, fmt, ap);
	va_end(ap);
	return -e;
}

static bool space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int key_parse(const char *what, const char *text, size_t len, uint8_t key[PEER_KEY_LEN], char *err,
	      size_t err_len)
{
	size_t got = 0;

	sodium_memzero(key, PEER_KEY_LEN);
	while (len && space(text[len - 1]))
		len--;
	while (len && space(*text)) {
		text++;
		len--;
	}
	if (len == 0)
		return fail(EINVAL, err, err_len,
			    "%s: no key in it; make one with `longhaul keygen`, the same for both "
			    "appliances",
			    what);
	if (sodium_base642bin(key, PEER_KEY_LEN, text, len, NULL, &got, NULL,
			      sodium_base64_VARIANT_ORIGINAL) != 0 ||
	    got != PEER_KEY_LEN) {
		sodium_memzero(key, PEER_KEY_LEN);
		return fail(EINVAL, err, err_len,
			    "%s: not a key: it must be %d bytes in base64 (44 characters on one "
			    "line); make one with `longhaul keygen`",
			    what, PEER_KEY_LEN);
	}
	if (sodium_is_zero(key, PEER_KEY_LEN))
		return fail(EINVAL, err, err_len,
			    "%s: the key is all zero, which is no secret; make one with `longhaul "
			    "keygen`",
			    what);
	return 0;
}

/* All that is in @fd, up to @room bytes; or a negative errno. */
static ssize_t read_all(int fd, char *buf, size_t room)
{
	size_t len = 0;

	while (len < room) {
		ssize_t n = read(fd, buf + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

uid_t key_owner(void)
{
	const struct passwd *pw = getpwnam(PEER_KEY_USER);

	return pw ? pw->pw_uid : 0;
}

/* root may read the daemon's files, too, to check a configuration. */
static bool may_own(uid_t uid)
{
	return uid == 0 || uid == geteuid() || (geteuid() == 0 && uid == key_owner());
}

static int read_open(int fd, const char *path, uint8_t key[PEER_KEY_LEN], char *err, size_t err_len)
{
	char text[FILE_MAX + 1];
	struct stat st;
	ssize_t n;
	int ret;

	if (fstat(fd, &st) < 0)
		return fail(errno, err, err_len, "%s: cannot look at it: %s", path,
			    strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(
			EINVAL, err, err_len,
			"%s: not a regular file; key-file must name the file that holds the key",
			path);
	if (st.st_mode & 077)
		return fail(EPERM, err, err_len,
			    "%s: others than its owner may use it (mode %04o); chmod 600 it, and "
			    "make a new key if strangers could have read it",
			    path, (unsigned int)st.st_mode & 07777);
	if (!may_own(st.st_uid))
		return fail(
			EPERM, err, err_len,
			"%s: it belongs to user %u, who could change it; chown it to " PEER_KEY_USER
			", or to root where longhauld runs as root",
			path, (unsigned int)st.st_uid);

	n = read_all(fd, text, sizeof(text));
	if (n < 0)
		ret = fail((int)-n, err, err_len, "%s: cannot read it: %s", path,
			   strerror((int)-n));
	else if (n > FILE_MAX)
		ret = fail(EINVAL, err, err_len,
			   "%s: too long for a key file, which is one line; make one with "
			   "`longhaul keygen`",
			   path);
	else
		ret = key_parse(path, text, (size_t)n, key, err, err_len);
	sodium_memzero(text, sizeof(text));
	return ret;
}

int key_read(const char *path, uint8_t key[PEER_KEY_LEN], char *err, size_t err_len)
{
	int fd, ret;

	sodium_memzero(key, PEER_KEY_LEN);
	/* O_NONBLOCK: do not hang if @path is a FIFO. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return fail(
			errno, err, err_len, "%s: cannot open the key file: %s%s", path,
			strerror(errno),
			errno == ENOENT ? "; make one with `longhaul keygen`"
			: errno == EACCES
				? "; chown it to the user that longhauld runs as, " PEER_KEY_USER
				: "");
	ret = read_open(fd, path, key, err, err_len);
	close(fd);
	return ret;
}

const char *key_text(const uint8_t key[PEER_KEY_LEN], char text[PEER_KEY_TEXT])
{
	sodium_bin2base64(text, PEER_KEY_TEXT - 1, key, PEER_KEY_LEN,
			  sodium_base64_VARIANT_ORIGINAL);
	text[PEER_KEY_TEXT - 2] = '\n';
	text[PEER_KEY_TEXT - 1] = '\0';
	return text;
}

const char *key_generate(char text[PEER_KEY_TEXT])
{
	uint8_t key[PEER_KEY_LEN];

	if (sodium_init() < 0)
		return NULL;
	randombytes_buf(key, sizeof(key));
	key_text(key, text);
	sodium_memzero(key, sizeof(key));
	return text;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Key files: what is taken, what is refused, and whether the refusal says what to do.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "peer/key.h"

static char dir[] = "/tmp/longhaul-key-XXXXXX";
static char path[64];
static char err[256];
static uint8_t key[PEER_KEY_LEN];

static const uint8_t zero[PEER_KEY_LEN];
static const uint8_t sample[PEER_KEY_LEN] = "an example, not secret at all!!";

static void put(const char *text, size_t len, mode_t mode)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int get(void)
{
	int ret;

	memset(key, 0xee, sizeof(key));
	memset(err, 0, sizeof(err));
	ret = key_read(path, key, err, sizeof(err));
	if (ret < 0) {
		assert_memory_equal(key, zero, sizeof(key));
		assert_true(strlen(err) > 20);
		assert_null(strchr(err, '\n'));
		assert_non_null(strstr(err, path));
	} else {
		assert_string_equal(err, "");
	}
	return ret;
}

static void refused(const char *text, const char *because)
{
	put(text, strlen(text), 0600);
	assert_int_equal(get(), -EINVAL);
	assert_non_null(strstr(err, because));
	assert_non_null(strstr(err, "keygen"));
}

static void round_trip(void **state)
{
	char text[PEER_KEY_TEXT], again[PEER_KEY_TEXT], padded[200];

	(void)state;
	assert_ptr_equal(key_text(sample, text), text);
	assert_int_equal(strlen(text), 45);
	assert_int_equal(text[44], '\n');
	assert_string_equal(text, "YW4gZXhhbXBsZSwgbm90IHNlY3JldCBhdCBhbGwhIQA=\n");

	put(text, strlen(text), 0600);
	assert_int_equal(get(), 0);
	assert_memory_equal(key, sample, sizeof(key));
	put(text, 44, 0400); /* no newline, read-only */
	assert_int_equal(get(), 0);
	assert_memory_equal(key, sample, sizeof(key));
	snprintf(padded, sizeof(padded), "\n \t%.44s \r\n\n", text);
	put(padded, strlen(padded), 0600);
	assert_int_equal(get(), 0);
	assert_memory_equal(key, sample, sizeof(key));

	assert_ptr_equal(key_generate(text), text);
	key_generate(again);
	assert_string_not_equal(text, again);
	put(text, strlen(text), 0600);
	assert_int_equal(get(), 0);
	assert_string_equal(key_text(key, again), text);
}

static void permissions(void **state)
{
	char text[PEER_KEY_TEXT];

	(void)state;
	key_text(sample, text);
	for (unsigned int mode = 0; mode < 0777; mode++) {
		if (!(mode & 0400))
			continue;
		put(text, 45, (mode_t)mode);
		if (mode & 077) {
			char octal[16];

			snprintf(octal, sizeof(octal), "mode %04o", mode);
			assert_int_equal(get(), -EPERM);
			assert_non_null(strstr(err, octal));
			assert_non_null(strstr(err, "chmod 600"));
		} else {
			assert_int_equal(get(), 0);
		}
	}
	if (geteuid() == 0) {
		put(text, 45, 0600);
		assert_int_equal(chown(path, 12345, 0), 0);
		assert_int_equal(get(), -EPERM);
		assert_non_null(strstr(err, "12345"));
		assert_non_null(strstr(err, "chown"));
	}
}

static void wrong_content(void **state)
{
	char text[PEER_KEY_TEXT], longer[60], big[3000];

	(void)state;
	key_text(sample, text);
	refused("", "no key");
	refused(" \n\n", "no key");
	refused("hello\n", "44 characters");
	refused("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", "all zero");
	refused("YW4gZXhhbXBsZSwgbm90IHNlY3JldCBhdCBhbGwhIQA\n", "44 characters"); /* pad missing */
	refused("YW4gZXhhbXBsZSwgbm90IHNlY3JldCBhdCBhbGwhIQ==\n", "44 characters");  /* 31 bytes */
	refused("YW4gZXhhbXBsZSwgbm90IHNlY3JldCBhdCBhbGwhIQAA\n", "44 characters");  /* 33 bytes */
	refused("YW4gZXhhbXBsZSwg bm90IHNlY3JldCBhdCBhbGwhIQA=\n", "44 characters"); /* inside */
	refused("YW4gZXhhbXBsZSwgbm90IHNlY3JldCBhdCBhbGwhI-A=\n",
		"44 characters"); /* URL variant */
	snprintf(longer, sizeof(longer), "%.44sx\n", text);
	refused(longer, "44 characters");
	snprintf(longer, sizeof(longer), "%.44s\nx\n", text);
	refused(longer, "44 characters");

	/* Raw bytes instead of text, a zero byte behind a good key, another file by mistake. */
	put((const char *)sample, sizeof(sample), 0600);
	assert_int_equal(get(), -EINVAL);
	memcpy(longer, text, 44);
	longer[44] = '\0';
	put(longer, 45, 0600);
	assert_int_equal(get(), -EINVAL);
	memset(big, 'A', sizeof(big));
	put(big, sizeof(big), 0600);
	assert_int_equal(get(), -EINVAL);
	assert_non_null(strstr(err, "too long"));
	memset(big, '\n', sizeof(big));
	memcpy(big, text, 44);
	put(big, 1024, 0600);
	assert_int_equal(get(), 0);
	put(big, 1025, 0600);
	assert_int_equal(get(), -EINVAL);
}

static void wrong_file(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(get(), -ENOENT);
	assert_non_null(strstr(err, "keygen"));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(get(), -EINVAL);
	assert_non_null(strstr(err, "regular file"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(get(), -EINVAL); /* and no waiting for a writer */
	assert_int_equal(unlink(path), 0);
}

static void parse(void **state)
{
	char text[PEER_KEY_TEXT], tiny[8];

	(void)state;
	key_text(sample, text);
	assert_int_equal(key_parse("here", text, 45, key, err, sizeof(err)), 0);
	assert_memory_equal(key, sample, sizeof(key));
	for (size_t len = 0; len < 44; len++) {
		assert_int_equal(key_parse("here", text, len, key, err, sizeof(err)), -EINVAL);
		assert_memory_equal(key, zero, sizeof(key));
		assert_ptr_equal(strstr(err, "here: "), err);
	}
	assert_int_equal(key_parse("here", text, 1, key, tiny, sizeof(tiny)), -EINVAL);
	assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/key", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),	 cmocka_unit_test(permissions),
		cmocka_unit_test(wrong_content), cmocka_unit_test(wrong_file),
		cmocka_unit_test(parse),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

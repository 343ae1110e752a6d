// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Replay of capture files: what comes out of good ones, what is said about bad ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <pcap/pcap.h>

#include "port/pcap_port.h"
#include "tests/unit/pcap_data.h"

#define FRAMES 5

static char path[] = "/tmp/test-port-pcap-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static uint32_t frame_len(unsigned int i)
{
	return 60 + i * 1000;
}

static uint32_t frame_caplen(unsigned int i)
{
	return i == 3 ? 100 : frame_len(i);
}

static uint64_t frame_ts(unsigned int i)
{
	return 1700000000000000000u + i * 1000000007u;
}

/* A capture of FRAMES frames; number 3 was captured in part. */
static void write_capture(int linktype)
{
	pcap_t *p =
		pcap_open_dead_with_tstamp_precision(linktype, 65535, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *d = pcap_dump_open(p, path);
	uint8_t data[8192];
	unsigned int i;

	assert_non_null(d);
	for (i = 0; i < FRAMES; i++) {
		struct pcap_pkthdr h = {
			.ts = {.tv_sec = (time_t)(frame_ts(i) / 1000000000u),
			       .tv_usec = (suseconds_t)(frame_ts(i) % 1000000000u)},
			.caplen = frame_caplen(i),
			.len = frame_len(i),
		};

		memset(data, 'a' + (int)i, sizeof(data));
		pcap_dump((u_char *)d, &h, data);
	}
	pcap_dump_close(d);
	pcap_close(p);
}

static void on_frame(void *ctx, uint64_t ts_ns, const uint8_t *data, uint32_t caplen, uint32_t len)
{
	unsigned int *n = ctx;

	assert_int_equal(ts_ns, frame_ts(*n));
	assert_int_equal(len, frame_len(*n));
	assert_int_equal(caplen, frame_caplen(*n));
	assert_int_equal(data[0], 'a' + (int)*n);
	assert_int_equal(data[caplen - 1], 'a' + (int)*n);
	++*n;
}

static void frames_in_order(void **state)
{
	unsigned int n = 0;
	char err[256] = "";

	(void)state;
	write_capture(DLT_EN10MB);
	assert_int_equal(pcap_port_replay(path, on_frame, &n, err, sizeof(err)), 0);
	assert_int_equal(n, FRAMES);
	assert_string_equal(err, "");
}

static void count_bytes(void *ctx, uint64_t ts_ns, const uint8_t *data, uint32_t caplen,
			uint32_t len)
{
	uint64_t *bytes = ctx;

	assert_true(ts_ns > 1000000000000000000u);
	assert_int_equal(caplen, len);
	assert_non_null(data);
	*bytes += len;
}

static void real_capture(void **state)
{
	const char *dir = getenv("TEST_DATA");
	struct pcap_data want = pcap_data_load("send-mtu4096");
	uint64_t bytes = 0, expected = 0;
	char file[512], err[256];
	uint32_t i;

	(void)state;
	for (i = 0; i < want.n; i++)
		expected += want.len[i];
	snprintf(file, sizeof(file), "%s/send-mtu4096.pcap", dir ? dir : "tests/data");
	assert_int_equal(pcap_port_replay(file, count_bytes, &bytes, err, sizeof(err)), 0);
	assert_int_equal(bytes, expected);
	pcap_data_free(&want);
}

static void no_such_file(void **state)
{
	char err[256] = "";

	(void)state;
	assert_int_equal(pcap_port_replay("/nonexistent/x.pcap", on_frame, NULL, err, sizeof(err)),
			 -ENOENT);
	assert_string_equal(err, "/nonexistent/x.pcap: No such file or directory");
}

static void not_a_capture(void **state)
{
	char err[256] = "";
	FILE *f = fopen(path, "w");

	(void)state;
	fputs("This text is no capture, whatever its name may be.", f);
	fclose(f);
	assert_int_equal(pcap_port_replay(path, on_frame, NULL, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "unknown file format"));

	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(pcap_port_replay(path, on_frame, NULL, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "truncated"));
}

static void not_ethernet(void **state)
{
	unsigned int n = 0;
	char err[256] = "";

	(void)state;
	write_capture(DLT_LINUX_SLL);
	assert_int_equal(pcap_port_replay(path, on_frame, &n, err, sizeof(err)), -EPROTONOSUPPORT);
	assert_non_null(strstr(err, "not Ethernet"));
	assert_int_equal(n, 0);
}

static void cut_short(void **state)
{
	unsigned int n = 0;
	char err[256] = "";
	long size = 24;
	unsigned int i;

	(void)state;
	for (i = 0; i < FRAMES; i++)
		size += 16 + frame_caplen(i);
	write_capture(DLT_EN10MB);
	assert_int_equal(truncate(path, size - 1), 0); /* within the last frame */
	assert_int_equal(pcap_port_replay(path, on_frame, &n, err, sizeof(err)), -EBADMSG);
	assert_int_equal(n, FRAMES - 1);
	assert_non_null(strstr(err, "truncated"));

	n = 0; /* within a record header */
	assert_int_equal(truncate(path, size - frame_caplen(FRAMES - 1) - 8), 0);
	assert_int_equal(pcap_port_replay(path, on_frame, &n, err, sizeof(err)), -EBADMSG);
	assert_int_equal(n, FRAMES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_in_order), cmocka_unit_test(real_capture),
		cmocka_unit_test(no_such_file),	   cmocka_unit_test(not_a_capture),
		cmocka_unit_test(not_ethernet),	   cmocka_unit_test(cut_short),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

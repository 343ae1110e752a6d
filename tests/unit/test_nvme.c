// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a capsule says of memory to be READ, and what it does not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/bytes.h"
#include "wire/storage.h"

/* As a Linux initiator writes it: 64 KiB, the key to be invalidated by the response. */
static void capsule(uint8_t sqe[64])
{
	memset(sqe, 0, 64);
	sqe[0] = 0x01;
	sqe[1] = 0x40;
	put_le16(sqe + 2, 0x1234);
	put_le64(sqe + 24, 0x7f00112233445000);
	put_le32(sqe + 32, 0x10000);
	put_le32(sqe + 35, 0xa1b2c3d4);
	sqe[39] = 0x4f;
}

static enum storage_verdict with(uint32_t at, uint8_t value)
{
	struct storage_command c;
	uint8_t sqe[64];

	capsule(sqe);
	sqe[at] = value;
	return nvme_command(sqe, sizeof(sqe), &c);
}

static void test_write(void **state)
{
	struct storage_command c;
	uint8_t sqe[64];

	(void)state;
	capsule(sqe);
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_FETCH);
	assert_int_equal(c.id, 0x1234);
	assert_true(c.va == 0x7f00112233445000);
	assert_int_equal(c.length, 0x10000);
	assert_int_equal(c.rkey, 0xa1b2c3d4);
	assert_int_equal(with(39, 0x40), STORAGE_FETCH); /* SPDK: the key stays */
	assert_int_equal(with(1, 0x80), STORAGE_FETCH);
	assert_int_equal(with(0, 0x05), STORAGE_FETCH); /* Compare */
}

static void test_no_read(void **state)
{
	struct storage_command c;
	uint8_t sqe[64];

	(void)state;
	assert_int_equal(with(0, 0x02), STORAGE_QUIET); /* Read */
	assert_int_equal(with(0, 0x00), STORAGE_QUIET); /* Flush */
	assert_int_equal(with(0, 0x08), STORAGE_QUIET); /* Write Zeroes */
	assert_int_equal(with(39, 0x01), STORAGE_QUIET);
	capsule(sqe);
	sqe[39] = 0x01;
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_QUIET);
	capsule(sqe);
	put_le32(sqe + 32, 0xd4000000);
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_QUIET); /* nothing to write */
}

static void test_fabrics(void **state)
{
	struct storage_command c;
	uint8_t sqe[64];

	(void)state;
	capsule(sqe);
	sqe[0] = 0x7f;
	sqe[4] = 0x01; /* Connect: data to the target */
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_FETCH);
	sqe[4] = 0x04; /* Property Get */
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_QUIET);
	sqe[4] = 0x06; /* Authentication Receive */
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_QUIET);
}

static void test_left_alone(void **state)
{
	struct storage_command c;
	uint8_t sqe[80];

	(void)state;
	assert_int_equal(with(0, 0x03), STORAGE_LOOSE);	 /* both ways */
	assert_int_equal(with(1, 0x41), STORAGE_LOOSE);	 /* fused */
	assert_int_equal(with(1, 0x00), STORAGE_LOOSE);	 /* PRP, which Fabrics do not have */
	assert_int_equal(with(39, 0x31), STORAGE_LOOSE); /* a list of descriptors */
	assert_int_equal(with(39, 0x41), STORAGE_LOOSE);
	assert_int_equal(with(39, 0x00), STORAGE_LOOSE);
	assert_int_equal(with(31, 0x7f), STORAGE_FETCH);
	capsule(sqe);
	put_le64(sqe + 24, UINT64_MAX - 100);
	assert_int_equal(nvme_command(sqe, 64, &c), STORAGE_LOOSE); /* beyond all memory */
	capsule(sqe);
	assert_int_equal(nvme_command(sqe, 80, &c), STORAGE_LOOSE);
	assert_int_equal(nvme_command(sqe, 63, &c), STORAGE_NONE);
	assert_int_equal(nvme_command(sqe, 0, &c), STORAGE_NONE);
}

static void test_response(void **state)
{
	uint8_t cqe[17] = {[12] = 0x34, [13] = 0x12};
	uint16_t id = 0;

	(void)state;
	assert_true(nvme_response(cqe, 16, &id));
	assert_int_equal(id, 0x1234);
	assert_false(nvme_response(cqe, 15, &id));
	assert_false(nvme_response(cqe, 17, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),	 cmocka_unit_test(test_no_read),
		cmocka_unit_test(test_fabrics),	 cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

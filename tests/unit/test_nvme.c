// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a capsule says of memory to be READ, and what it does not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/bytes.h"
#include "wire/storage.h"

static struct storage_command c;

static enum storage_verdict look(const uint8_t *p, uint32_t len)
{
	return nvme_command(&(struct storage_send){.p = p, .len = len, .whole = true}, &c);
}

static void keyed(uint8_t *d, uint64_t va, uint32_t length, uint32_t rkey, uint8_t type)
{
	put_le64(d, va);
	put_le32(d + 8, length);
	put_le32(d + 11, rkey);
	d[15] = type;
}

/* As a Linux initiator writes it: 64 KiB, the key to be invalidated by the response. */
static void capsule(uint8_t sqe[64])
{
	memset(sqe, 0, 64);
	sqe[0] = 0x01;
	sqe[1] = 0x40;
	put_le16(sqe + 2, 0x1234);
	keyed(sqe + 24, 0x7f00112233445000, 0x10000, 0xa1b2c3d4, 0x4f);
}

/* As an SPDK initiator writes it: @n keyed descriptors behind the entry. Its bytes. */
static uint32_t list(uint8_t sqe[64 + 17 * 16], uint32_t n)
{
	capsule(sqe);
	memset(sqe + 24, 0, 16);
	put_le32(sqe + 32, n * 16);
	sqe[39] = 0x31;
	for (uint32_t i = 0; i < n; i++)
		keyed(sqe + 64 + 16 * i, 0x7f0011200000 + i * 0x400000ull, 0x1000 * (i + 1), 0x55,
		      0x40);
	return 64 + 16 * n;
}

static enum storage_verdict with(uint32_t at, uint8_t value)
{
	uint8_t sqe[64];

	capsule(sqe);
	sqe[at] = value;
	return look(sqe, sizeof(sqe));
}

static void test_write(void **state)
{
	uint8_t sqe[64];

	(void)state;
	capsule(sqe);
	assert_int_equal(look(sqe, 64), STORAGE_FETCH);
	assert_int_equal(c.id, 0x1234);
	assert_int_equal(c.count, 1);
	assert_true(c.buffer[0].va == 0x7f00112233445000);
	assert_int_equal(c.buffer[0].length, 0x10000);
	assert_int_equal(c.buffer[0].rkey, 0xa1b2c3d4);
	assert_int_equal(with(39, 0x40), STORAGE_FETCH); /* SPDK: the key stays */
	assert_int_equal(with(1, 0x80), STORAGE_FETCH);
	assert_int_equal(with(0, 0x05), STORAGE_FETCH); /* Compare */
}

static void test_list(void **state)
{
	uint8_t sqe[64 + 17 * 16];
	uint32_t len = list(sqe, 3);

	(void)state;
	assert_int_equal(look(sqe, len), STORAGE_FETCH);
	assert_int_equal(c.id, 0x1234);
	assert_int_equal(c.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(c.buffer[i].va == 0x7f0011200000 + i * 0x400000ull);
		assert_int_equal(c.buffer[i].length, 0x1000 * (i + 1));
		assert_int_equal(c.buffer[i].rkey, 0x55);
	}
	keyed(sqe + 96, 0x7f0011200000 + 0x400000 + 0x2000, 0x1000, 0x55, 0x4f);
	assert_int_equal(look(sqe, len), STORAGE_FETCH); /* it continues the second */
	assert_int_equal(c.count, 2);
	assert_int_equal(c.buffer[1].length, 0x3000);
	keyed(sqe + 96, 0, 0, 0x55, 0x40);
	assert_int_equal(look(sqe, len), STORAGE_FETCH); /* empty */
	assert_int_equal(c.count, 2);
	assert_int_equal(look(sqe, list(sqe, 16)), STORAGE_FETCH);
	assert_int_equal(c.count, 16);
	assert_int_equal(look(sqe, list(sqe, 17)), STORAGE_LOOSE);
}

static void test_list_left_alone(void **state)
{
	uint8_t sqe[64 + 17 * 16];
	uint32_t len = list(sqe, 3);

	(void)state;
	assert_int_equal(look(sqe, len - 1), STORAGE_LOOSE);
	assert_int_equal(look(sqe, len + 16), STORAGE_LOOSE);
	assert_int_equal(nvme_command(&(struct storage_send){sqe, len, false}, &c), STORAGE_LOOSE);
	sqe[24] = 16; /* the list is somewhere else */
	assert_int_equal(look(sqe, len), STORAGE_LOOSE);
	list(sqe, 3);
	sqe[39] = 0x21; /* there is another segment */
	assert_int_equal(look(sqe, len), STORAGE_LOOSE);
	list(sqe, 3);
	sqe[64 + 15] = 0x01; /* a part of the data is in the capsule */
	assert_int_equal(look(sqe, len), STORAGE_LOOSE);
	list(sqe, 3);
	sqe[64 + 15] = 0x10; /* a bit bucket */
	assert_int_equal(look(sqe, len), STORAGE_LOOSE);
	list(sqe, 3);
	keyed(sqe + 96, 0x7f0011200fff, 0x1000, 0x55, 0x40);
	assert_int_equal(look(sqe, len), STORAGE_LOOSE); /* the first once more */
	keyed(sqe + 96, 0x7f0011200fff, 0x1000, 0x56, 0x40);
	assert_int_equal(look(sqe, len), STORAGE_FETCH); /* other memory */
}

static void test_no_read(void **state)
{
	uint8_t sqe[64 + 17 * 16];

	(void)state;
	assert_int_equal(with(0, 0x02), STORAGE_QUIET); /* Read */
	assert_int_equal(with(0, 0x00), STORAGE_QUIET); /* Flush */
	assert_int_equal(with(0, 0x08), STORAGE_QUIET); /* Write Zeroes */
	assert_int_equal(with(39, 0x01), STORAGE_QUIET);
	capsule(sqe);
	sqe[39] = 0x01;
	assert_int_equal(look(sqe, 64), STORAGE_QUIET);
	sqe[24] = 0x10; /* not at the beginning of the data */
	assert_int_equal(look(sqe, 80), STORAGE_QUIET);
	capsule(sqe);
	put_le32(sqe + 32, 0xd4000000);
	assert_int_equal(look(sqe, 64), STORAGE_QUIET); /* nothing to write */
	list(sqe, 3);
	sqe[0] = 0x02;
	assert_int_equal(look(sqe, 112), STORAGE_QUIET);
}

static void test_fabrics(void **state)
{
	uint8_t sqe[64];

	(void)state;
	capsule(sqe);
	sqe[0] = 0x7f;
	sqe[4] = 0x01; /* Connect: data to the target */
	assert_int_equal(look(sqe, 64), STORAGE_FETCH);
	sqe[51] = 0x3c; /* whatever that is there */
	assert_int_equal(look(sqe, 64), STORAGE_FETCH);
	sqe[4] = 0x04; /* Property Get */
	assert_int_equal(look(sqe, 64), STORAGE_QUIET);
	sqe[4] = 0x06; /* Authentication Receive */
	assert_int_equal(look(sqe, 64), STORAGE_QUIET);
}

/* T10-PI, made, checked or beside the data. */
static void test_protected(void **state)
{
	static const uint8_t opcodes[] = {0x01, 0x05, 0x7d};
	uint8_t sqe[64 + 17 * 16];

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		capsule(sqe);
		sqe[0] = opcodes[i];
		sqe[51] = 0xc3; /* retries, deallocation */
		assert_int_equal(look(sqe, 64), STORAGE_FETCH);
		for (uint8_t bit = 0x04; bit <= 0x20; bit = (uint8_t)(bit << 1)) {
			sqe[51] = bit;
			assert_int_equal(look(sqe, 64), STORAGE_LOOSE);
		}
	}
	assert_int_equal(with(16, 0x01), STORAGE_LOOSE);
	assert_int_equal(with(23, 0x7f), STORAGE_LOOSE);
	list(sqe, 2);
	sqe[51] = 0x20;
	assert_int_equal(look(sqe, 96), STORAGE_LOOSE);
}

static void test_left_alone(void **state)
{
	uint8_t sqe[80];

	(void)state;
	assert_int_equal(with(0, 0x03), STORAGE_LOOSE);	 /* both ways */
	assert_int_equal(with(1, 0x41), STORAGE_LOOSE);	 /* fused */
	assert_int_equal(with(1, 0x00), STORAGE_LOOSE);	 /* PRP, which Fabrics do not have */
	assert_int_equal(with(39, 0x31), STORAGE_LOOSE); /* a list that is not there */
	assert_int_equal(with(39, 0x41), STORAGE_LOOSE);
	assert_int_equal(with(39, 0x00), STORAGE_LOOSE);
	assert_int_equal(with(31, 0x7f), STORAGE_FETCH);
	capsule(sqe);
	put_le64(sqe + 24, UINT64_MAX - 100);
	assert_int_equal(look(sqe, 64), STORAGE_LOOSE); /* beyond all memory */
	capsule(sqe);
	assert_int_equal(look(sqe, 80), STORAGE_LOOSE);
	assert_int_equal(look(sqe, 63), STORAGE_NONE);
	assert_int_equal(look(sqe, 0), STORAGE_NONE);
}

static void test_response(void **state)
{
	uint8_t cqe[17] = {[12] = 0x34, [13] = 0x12};
	struct storage_send s = {.p = cqe, .len = 16, .whole = true};
	uint32_t id = 0;

	(void)state;
	assert_int_equal(nvme_answer(&s, &id), STORAGE_DONE);
	assert_int_equal(id, 0x1234);
	s.whole = false;
	assert_int_equal(nvme_answer(&s, &id), STORAGE_FOREIGN);
	s.whole = true;
	s.len = 15;
	assert_int_equal(nvme_answer(&s, &id), STORAGE_FOREIGN);
	s.len = 17;
	assert_int_equal(nvme_answer(&s, &id), STORAGE_FOREIGN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),	   cmocka_unit_test(test_list),
		cmocka_unit_test(test_no_read),	   cmocka_unit_test(test_list_left_alone),
		cmocka_unit_test(test_fabrics),	   cmocka_unit_test(test_protected),
		cmocka_unit_test(test_left_alone), cmocka_unit_test(test_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an RPC over RDMA says of memory to be READ, and what it does not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/bytes.h"
#include "wire/storage.h"

#define XID					  0x8ca91f03u
/* The words of a read segment, of 1 MiB at most. */
#define SEGMENT(position, handle, length, offset) 1, position, handle, length, 0x7f00, offset
/* Those of a call to WRITE of NFS version 3, as far as anybody looks. */
#define NFS_CALL				  XID, 0, 2, 100003, 3, 7, 1, 24
#define REPLY_TO				  XID, 1, 0, 0, 0, 0

static struct storage_command c;
static uint8_t message[4096];
static uint32_t len;

static void put(const uint32_t *words, uint32_t n)
{
	len = 4 * n;
	for (uint32_t i = 0; i < n; i++)
		put_be32(message + 4 * i, words[i]);
}

#define MESSAGE(...)                                                                               \
	do {                                                                                       \
		const uint32_t words[] = {__VA_ARGS__};                                            \
		put(words, sizeof(words) / sizeof(words[0]));                                      \
	} while (0)

static struct storage_send sent(void)
{
	return (struct storage_send){.p = message, .len = len, .whole = true};
}

static enum storage_verdict look(void)
{
	struct storage_send s = sent();

	return rpcrdma_command(&s, &c);
}

/* spec: RFC 8166 4: a WRITE of 64 KiB, as Linux sends it. */
static void test_write(void **state)
{
	struct storage_send s;

	(void)state;
	MESSAGE(XID, 1, 32, 0,					/* RDMA_MSG */
		SEGMENT(0x94, 0x00a1b2c3, 0x10000, 0x11223000), /* the data */
		0,						/* no more of the read list */
		0,						/* no write list */
		0,						/* no reply chunk */
		NFS_CALL);
	assert_int_equal(look(), STORAGE_FETCH);
	assert_int_equal(c.id, XID);
	assert_int_equal(c.count, 1);
	assert_true(c.buffer[0].va == 0x7f0011223000);
	assert_int_equal(c.buffer[0].length, 0x10000);
	assert_int_equal(c.buffer[0].rkey, 0x00a1b2c3);
	s = sent();
	assert_int_equal(storage_guess(&s), STORAGE_NFS);
	s.whole = false; /* a longer call */
	assert_int_equal(rpcrdma_command(&s, &c), STORAGE_FETCH);
}

static void test_segments(void **state)
{
	(void)state;
	/* registered apart, and what rounds the data up to words */
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 0x40000, 0x200000),
		SEGMENT(0x94, 0xa2, 0x3ffff, 0x800000), SEGMENT(0x94, 0xa3, 1, 0x9000), 0, 0, 0,
		NFS_CALL);
	assert_int_equal(look(), STORAGE_FETCH);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.buffer[1].rkey, 0xa2);
	assert_true(c.buffer[1].va == 0x7f0000800000);
	assert_int_equal(c.buffer[1].length, 0x3ffff);
	assert_int_equal(c.buffer[2].length, 1);
	/* a write chunk of two segments, one of none, and a reply chunk */
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 0x1000, 0x200000), 0, 1, 2, 0xb1, 0x1000, 0, 0,
		0xb2, 0x1000, 0, 0, 1, 0, 0, 1, 1, 0xb3, 0x1000, 0, 0, NFS_CALL);
	assert_int_equal(look(), STORAGE_FETCH);
	assert_int_equal(c.count, 1);
	/* one that continues another */
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 0x1000, 0x200000),
		SEGMENT(0x94, 0xa1, 0x1000, 0x201000), 0, 0, 0, NFS_CALL);
	assert_int_equal(look(), STORAGE_FETCH);
	assert_int_equal(c.count, 1);
	assert_int_equal(c.buffer[0].length, 0x2000);
}

/* The message itself does not fit. */
static void test_long_call(void **state)
{
	struct storage_send s;

	(void)state;
	MESSAGE(XID, 1, 32, 1, SEGMENT(0, 0xa1, 0x1000, 0x200000),
		SEGMENT(0x94, 0xa2, 0x1000, 0x800000), 0, 0, 0);
	assert_int_equal(look(), STORAGE_FETCH);
	assert_int_equal(c.count, 2);
	s = sent();
	s.whole = false;
	assert_int_equal(rpcrdma_command(&s, &c), STORAGE_LOOSE);
	MESSAGE(XID, 1, 32, 1, SEGMENT(4, 0xa1, 0x1000, 0x200000), 0, 0, 0);
	assert_int_equal(look(), STORAGE_LOOSE);
	MESSAGE(XID, 1, 32, 1, SEGMENT(0, 0xa1, 0x1000, 0x200000), 0, 0, 0, 0);
	assert_int_equal(look(), STORAGE_LOOSE);
}

static void test_no_read(void **state)
{
	(void)state;
	MESSAGE(XID, 1, 32, 0, 0, 0, 0, NFS_CALL); /* GETATTR, or a short WRITE */
	assert_int_equal(look(), STORAGE_QUIET);
	assert_int_equal(c.id, XID);
	MESSAGE(XID, 1, 32, 0, 0, 1, 1, 0xb1, 0x10000, 0, 0, 0, 0, NFS_CALL); /* READ */
	assert_int_equal(look(), STORAGE_QUIET);
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 0, 0x200000), 0, 0, 0, NFS_CALL);
	assert_int_equal(look(), STORAGE_QUIET);
}

static void test_no_command(void **state)
{
	(void)state;
	MESSAGE(XID, 1, 32, 0, 0, 0, 0, REPLY_TO); /* to a call of the server */
	assert_int_equal(look(), STORAGE_NONE);
	MESSAGE(XID, 2, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, NFS_CALL); /* version */
	assert_int_equal(look(), STORAGE_NONE);
	MESSAGE(XID, 1, 0, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, NFS_CALL); /* credits */
	assert_int_equal(look(), STORAGE_NONE);
	for (uint32_t proc = 2; proc < 7; proc++) {
		MESSAGE(XID, 1, 32, proc, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, NFS_CALL);
		assert_int_equal(look(), STORAGE_NONE);
	}
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 2, 0, 0, NFS_CALL);
	assert_int_equal(look(), STORAGE_NONE);
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, XID + 1, 0, 2, 100003);
	assert_int_equal(look(), STORAGE_NONE);
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, XID, 0, 3, 100003);
	assert_int_equal(look(), STORAGE_NONE);
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, NFS_CALL);
	for (uint32_t n = 0; n < 64; n++) {
		len = n;
		assert_int_equal(look(), STORAGE_NONE);
	}
}

static void test_left_alone(void **state)
{
	uint32_t all[4 + 6 * 17 + 3 + 8] = {XID, 1, 32, 0}, n = 4;
	static const uint32_t rest[] = {0, 0, 0, NFS_CALL};
	struct storage_send s;

	(void)state;
	MESSAGE(XID, 1, 32, 0, SEGMENT(0, 0xa1, 64, 0), 0, 0, 0, NFS_CALL); /* before the call? */
	assert_int_equal(look(), STORAGE_LOOSE);
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), SEGMENT(0x94, 0xa1, 64, 63), 0, 0, 0,
		NFS_CALL); /* the same memory */
	assert_int_equal(look(), STORAGE_LOOSE);
	MESSAGE(XID, 1, 32, 0, 1, 0x94, 0xa1, 0x10000, 0xffffffff, 0xffffff00, 0, 0, 0, NFS_CALL);
	assert_int_equal(look(), STORAGE_LOOSE); /* beyond all memory */
	for (uint32_t i = 0; i < 17; i++) {
		const uint32_t segment[] = {SEGMENT(0x94, 0xa0 + i, 0x1000, 0)};

		memcpy(all + n, segment, sizeof(segment));
		n += 6;
	}
	memcpy(all + n, rest, sizeof(rest));
	put(all, n + sizeof(rest) / 4);
	assert_int_equal(look(), STORAGE_LOOSE);
	/* it goes on in another packet */
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 1, 9);
	s = sent();
	assert_int_equal(rpcrdma_command(&s, &c), STORAGE_NONE);
	s.whole = false;
	assert_int_equal(rpcrdma_command(&s, &c), STORAGE_LOOSE);
}

static enum storage_answer answer(uint32_t *id)
{
	struct storage_send s = sent();

	return rpcrdma_answer(&s, id);
}

static void test_answers(void **state)
{
	struct storage_send s;
	uint32_t id = 0;

	(void)state;
	MESSAGE(XID, 1, 32, 0, 0, 0, 0, REPLY_TO);
	assert_int_equal(answer(&id), STORAGE_DONE);
	assert_int_equal(id, XID);
	MESSAGE(XID, 1, 0, 0, 0, 0, 0, REPLY_TO); /* one credit is meant */
	assert_int_equal(answer(&id), STORAGE_DONE);
	MESSAGE(XID, 1, 32, 0, 0, 1, 1, 0xb1, 0x1000, 0, 0, 0, 0, REPLY_TO);
	assert_int_equal(answer(&id), STORAGE_DONE);
	MESSAGE(XID, 1, 32, 1, 0, 0, 1, 1, 0xb3, 0x1000, 0, 0); /* all of it was WRITTEN */
	assert_int_equal(answer(&id), STORAGE_DONE);
	MESSAGE(XID, 1, 32, 4, 2); /* ERR_CHUNK */
	assert_int_equal(answer(&id), STORAGE_DONE);
	MESSAGE(XID, 1, 32, 0, 0, 0, 0, XID, 0, 2, 0x40000000, 1, 1); /* a call of the server */
	assert_int_equal(answer(&id), STORAGE_OTHER);
	/* what it is cannot be seen */
	MESSAGE(XID, 1, 32, 0, 0, 1, 9);
	s = sent();
	assert_int_equal(rpcrdma_answer(&s, &id), STORAGE_FOREIGN);
	s.whole = false;
	assert_int_equal(rpcrdma_answer(&s, &id), STORAGE_ENDS);
	MESSAGE(XID, 1, 32, 0, SEGMENT(0x94, 0xa1, 64, 0), 0, 0, 0, REPLY_TO);
	assert_int_equal(answer(&id), STORAGE_ENDS);
	MESSAGE(XID, 1, 32, 0, 0, 0, 0, XID + 1, 1, 0);
	assert_int_equal(answer(&id), STORAGE_FOREIGN);
	MESSAGE(XID, 1, 32, 0, 0, 0, 0, XID, 2, 0);
	assert_int_equal(answer(&id), STORAGE_FOREIGN);
	MESSAGE(XID, 1, 32, 3);
	assert_int_equal(answer(&id), STORAGE_FOREIGN);
	MESSAGE(XID, 3, 32, 0, 0, 0, 0, REPLY_TO);
	assert_int_equal(answer(&id), STORAGE_FOREIGN);
	len = 15;
	assert_int_equal(answer(&id), STORAGE_FOREIGN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),	   cmocka_unit_test(test_segments),
		cmocka_unit_test(test_long_call),  cmocka_unit_test(test_no_read),
		cmocka_unit_test(test_no_command), cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

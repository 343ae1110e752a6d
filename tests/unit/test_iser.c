// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an iSCSI PDU over RDMA says of memory to be READ, and what it does not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/bytes.h"
#include "wire/storage.h"

#define PDU 76u

static struct storage_command c;

static enum storage_verdict look(const uint8_t *p, uint32_t len, bool whole)
{
	return iser_command(&(struct storage_send){.p = p, .len = len, .whole = whole}, &c);
}

/* spec: RFC 7145 9.1, with the header of spec: RFC 7143 11.3: WRITE (10) of 16 blocks of 4 KiB,
 * nothing of it with the command. */
static const uint8_t write64k[PDU] = {
	0x18, 0,    0,	  0,				/* control type, write STag valid */
	0xa1, 0xb2, 0xc3, 0xd4,				/* write STag */
	0x00, 0x00, 0x7f, 0x00, 0x11, 0x22, 0x30, 0x00, /* write base offset */
	0,    0,    0,	  0,				/* read STag */
	0,    0,    0,	  0,	0,    0,    0,	  0,	/* read base offset */
	0x01, 0xa1, 0,	  0,				/* SCSI Command; F, W, simple */
	0x00, 0x00, 0x00, 0x00,				/* no additional header, no data */
	0x00, 0x01, 0,	  0,	0,    0,    0,	  0,	/* LUN */
	0x10, 0x00, 0x00, 0x27,				/* initiator task tag */
	0x00, 0x01, 0x00, 0x00,				/* expected data transfer length */
	0x00, 0x00, 0x00, 0x31,				/* CmdSN */
	0x00, 0x00, 0x00, 0x19,				/* ExpStatSN */
	0x2a, 0x00, 0x00, 0x00, 0x12, 0x80, 0x00, 0x00, /* WRITE (10) */
	0x10, 0x00, 0,	  0,	0,    0,    0,	  0,
};

/* spec: RFC 7143 11.4. */
static const uint8_t response[PDU] = {
	0x10,	     0,		  0,	       0, /* control type */
	[28] = 0x21, [29] = 0x80,		  /* SCSI Response, F */
	[44] = 0x10, [47] = 0x27,		  /* initiator task tag */
	[55] = 0x1a, [59] = 0x32, [63] = 0x72,	  /* StatSN, ExpCmdSN, MaxCmdSN */
};

static uint8_t pdu[PDU + 9000];

static void begin(void)
{
	memset(pdu, 0, sizeof(pdu));
	memcpy(pdu, write64k, PDU);
}

static enum storage_verdict with(uint32_t at, uint8_t value)
{
	begin();
	pdu[at] = value;
	return look(pdu, PDU, true);
}

static void test_write(void **state)
{
	(void)state;
	assert_int_equal(look(write64k, PDU, true), STORAGE_FETCH);
	assert_int_equal(c.id, 0x10000027);
	assert_int_equal(c.count, 1);
	assert_true(c.buffer[0].va == 0x7f0011223000);
	assert_int_equal(c.buffer[0].length, 0x10000);
	assert_int_equal(c.buffer[0].rkey, 0xa1b2c3d4);
	assert_int_equal(with(28, 0x41), STORAGE_FETCH); /* to be delivered at once */
	assert_int_equal(with(60, 0x8a), STORAGE_FETCH); /* WRITE (16) */
	assert_int_equal(with(60, 0x15), STORAGE_FETCH); /* MODE SELECT: any that has data */
	assert_int_equal(with(61, 0x08), STORAGE_FETCH); /* force unit access */
}

/* The first 8 KiB come with the command, in the same SEND: the rest is READ. */
static void test_immediate_data(void **state)
{
	(void)state;
	begin();
	put_be24(pdu + 33, 8192);
	assert_int_equal(look(pdu, PDU + 8192, true), STORAGE_FETCH);
	assert_true(c.buffer[0].va == 0x7f0011223000); /* which is past what has come */
	assert_int_equal(c.buffer[0].length, 0x10000 - 8192);
	assert_int_equal(look(pdu, 1024, false), STORAGE_FETCH);
	assert_int_equal(look(pdu, 1024, true), STORAGE_LOOSE); /* where is the rest? */
	assert_int_equal(look(pdu, PDU + 8192, false), STORAGE_LOOSE);
	assert_int_equal(look(pdu, PDU + 8191, true), STORAGE_LOOSE);
	put_be24(pdu + 33, 8191);
	assert_int_equal(look(pdu, PDU + 8191, true), STORAGE_FETCH);
	assert_int_equal(c.buffer[0].length, 0x10000 - 8191);
	assert_int_equal(look(pdu, PDU + 8192, true), STORAGE_FETCH); /* padded */
	/* all of it comes with the command */
	put_be24(pdu + 33, 4096);
	put_be32(pdu + 48, 4096);
	assert_int_equal(look(pdu, PDU + 4096, true), STORAGE_QUIET);
	pdu[0] = 0x10;
	assert_int_equal(look(pdu, PDU + 4096, true), STORAGE_QUIET);
	put_be32(pdu + 48, 4095);
	assert_int_equal(look(pdu, PDU + 4096, true), STORAGE_LOOSE); /* more than all */
}

/* A long command descriptor block goes on in an additional header. */
static void test_additional_header(void **state)
{
	(void)state;
	begin();
	pdu[32] = 3;
	assert_int_equal(look(pdu, PDU, true), STORAGE_LOOSE);
	assert_int_equal(look(pdu, PDU + 12, true), STORAGE_FETCH);
	pdu[60] = 0x7f; /* WRITE (32) may have protection information */
	assert_int_equal(look(pdu, PDU + 12, true), STORAGE_LOOSE);
}

static void test_no_read(void **state)
{
	(void)state;
	begin();
	pdu[0] = 0x14; /* read STag only */
	pdu[29] = 0xc1;
	pdu[60] = 0x28;
	assert_int_equal(look(pdu, PDU, true), STORAGE_QUIET);
	assert_int_equal(c.id, 0x10000027);
	pdu[0] = 0x10; /* TEST UNIT READY */
	pdu[29] = 0x81;
	pdu[60] = 0;
	put_be32(pdu + 48, 0);
	assert_int_equal(look(pdu, PDU, true), STORAGE_QUIET);
	pdu[29] = 0xa1; /* a WRITE of no blocks */
	assert_int_equal(look(pdu, PDU, true), STORAGE_QUIET);
}

/* PDUs that are no commands, even where they bear a command's tag. */
static void test_no_command(void **state)
{
	static const uint8_t opcodes[] = {0x40, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x1c, 0x21};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++)
		assert_int_equal(with(28, opcodes[i]), STORAGE_NONE);
	assert_int_equal(with(0, 0x20), STORAGE_NONE); /* Hello */
	assert_int_equal(with(0, 0x00), STORAGE_NONE);
	begin();
	assert_int_equal(look(pdu, PDU - 1, true), STORAGE_NONE);
	assert_int_equal(look(pdu, 0, true), STORAGE_NONE);
}

static void test_left_alone(void **state)
{
	static const uint8_t protectable[] = {0x2a, 0x8a, 0xaa, 0x2e, 0x8e,
					      0xae, 0x41, 0x93, 0x89, 0x9c};

	(void)state;
	assert_int_equal(with(29, 0x21), STORAGE_LOOSE); /* data comes behind it, too */
	assert_int_equal(with(29, 0xe1), STORAGE_LOOSE); /* both ways */
	assert_int_equal(with(29, 0x81), STORAGE_LOOSE); /* a STag, and nothing to write */
	assert_int_equal(with(0, 0x10), STORAGE_LOOSE);	 /* something to write, and no STag */
	assert_int_equal(with(0, 0x1c), STORAGE_LOOSE);
	assert_int_equal(with(0, 0x19), STORAGE_LOOSE);
	assert_int_equal(with(2, 0x01), STORAGE_LOOSE);
	assert_int_equal(look(write64k, PDU, false), STORAGE_LOOSE);
	for (size_t i = 0; i < sizeof(protectable); i++) {
		begin();
		pdu[60] = protectable[i];
		assert_int_equal(look(pdu, PDU, true), STORAGE_FETCH);
		pdu[61] = 0x20; /* WRPROTECT */
		assert_int_equal(look(pdu, PDU, true), STORAGE_LOOSE);
	}
	begin();
	memset(pdu + 8, 0xff, 8);
	assert_int_equal(look(pdu, PDU, true), STORAGE_LOOSE); /* beyond all memory */
}

static enum storage_answer answer(uint8_t header, uint8_t opcode, uint32_t len, uint32_t *id)
{
	uint8_t p[PDU + 4];

	memset(p, 0, sizeof(p));
	memcpy(p, response, PDU);
	p[0] = header;
	p[28] = opcode;
	return iser_answer(&(struct storage_send){.p = p, .len = len, .whole = true}, id);
}

static void test_answers(void **state)
{
	uint32_t id = 0;

	(void)state;
	assert_int_equal(answer(0x10, 0x21, PDU, &id), STORAGE_DONE);
	assert_int_equal(id, 0x10000027);
	assert_int_equal(iser_answer(&(struct storage_send){response, PDU, false}, &id),
			 STORAGE_DONE); /* sense data, in further packets */
	assert_int_equal(answer(0x10, 0x20, PDU, &id), STORAGE_OTHER); /* NOP-In */
	assert_int_equal(answer(0x10, 0x23, PDU, &id), STORAGE_OTHER);
	assert_int_equal(answer(0x10, 0x24, PDU, &id), STORAGE_OTHER);
	assert_int_equal(answer(0x30, 0, 28, &id), STORAGE_OTHER); /* to a Hello */
	/* a task was aborted, or a PDU refused: which one is not said */
	assert_int_equal(answer(0x10, 0x22, PDU, &id), STORAGE_ENDS);
	assert_int_equal(answer(0x10, 0x26, PDU, &id), STORAGE_ENDS);
	assert_int_equal(answer(0x10, 0x32, PDU, &id), STORAGE_ENDS);
	assert_int_equal(answer(0x10, 0x3f, PDU, &id), STORAGE_ENDS);
	/* READs and WRITEs do the work of these */
	assert_int_equal(answer(0x10, 0x25, PDU, &id), STORAGE_FOREIGN);
	assert_int_equal(answer(0x10, 0x31, PDU, &id), STORAGE_FOREIGN);
	assert_int_equal(answer(0x10, 0x01, PDU, &id), STORAGE_FOREIGN);
	assert_int_equal(answer(0x40, 0x21, PDU, &id), STORAGE_FOREIGN);
	assert_int_equal(answer(0x10, 0x21, PDU - 1, &id), STORAGE_FOREIGN);
}

/* Each command shows which protocol it is of. */
static void test_guess(void **state)
{
	(void)state;
	assert_int_equal(storage_guess(&(struct storage_send){write64k, PDU, true}), STORAGE_ISER);
	assert_int_equal(storage_guess(&(struct storage_send){response, PDU, true}),
			 STORAGE_UNKNOWN);
	assert_string_equal(storage_name(STORAGE_ISER), "iser");
	assert_string_equal(storage_name(STORAGE_UNKNOWN), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_immediate_data),
		cmocka_unit_test(test_additional_header),
		cmocka_unit_test(test_no_read),
		cmocka_unit_test(test_no_command),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

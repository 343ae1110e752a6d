/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Storage commands and responses as they look on the cable, in each of the protocols that the
 * model initiator and target speak (world_storage.h). Written apart from the decoders under test.
 */
#ifndef SCENARIO_WORLD_FORM_H
#define SCENARIO_WORLD_FORM_H

#include <stdbool.h>
#include <stdint.h>

#define STORAGE_PARTS 4u
/* Bytes of a command without data, at most. */
#define FORM_MOST     256u
#define ANSWER_MOST   80u

enum storage_form {
	FORM_NVME,
	FORM_ISER,
	FORM_NFS,
	FORMS,
};

/**
 * struct form_io - what a command says.
 * @number:  which of all commands it is
 * @length:  bytes of data, of which the first @inlined are in the command
 * @part:    memory for the rest, in its order; @parts
 * @one_key: the key stays
 */
struct form_io {
	uint64_t number;
	uint32_t id, length, inlined, parts;
	bool write, one_key;
	struct {
		uint64_t va;
		uint32_t length, key;
	} part[STORAGE_PARTS];
};

/** form_command - @io into @out, without the data. Its bytes. */
uint32_t form_command(enum storage_form f, const struct form_io *io, uint8_t *out);
/** form_read_command - the reverse; the data in the command begins at *@data. */
bool form_read_command(enum storage_form f, const uint8_t *b, uint32_t len, struct form_io *io,
		       uint32_t *data);
uint32_t form_response(enum storage_form f, uint32_t id, uint8_t *out);
/** form_read_response - to which command; false when @b is something else that a target says. */
bool form_read_response(enum storage_form f, const uint8_t *b, uint32_t len, uint32_t *id);
/** form_chatter - something else that a target may say at any time, @what of it. 0: nothing. */
uint32_t form_chatter(enum storage_form f, uint32_t what, uint8_t *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection between two probes: one RC queue pair made by the connection manager, memory for
 * what is moved over it, and the few messages by which the two agree on what they do. Those are
 * SENDs with immediate data on the same queue pair, so each arrives behind the data before it.
 */
#ifndef LONGHAUL_CLI_PROBE_LINK_H
#define LONGHAUL_CLI_PROBE_LINK_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_PORT  "18515"
#define DATA_BYTES  (64u << 20)
#define SIZE_MAX_   (1u << 20) /* of one message */
#define DEPTH_MAX   512u
#define RECVS	    48u
#define SILENCE_NS  120000000000ull /* without any completion: the other side is gone */
#define NSEC_PER_MS 1000000.0

enum op {
	OP_WRITE,
	OP_SEND,
	OP_READ,
	OPS,
};

enum word {
	WORD_HELLO = 1, /* each side, first: @addr and @rkey of its memory */
	WORD_PING,	/* answered by the same */
	WORD_BEGIN,	/* @op with messages of @size, in @slots places; answered by the same */
	WORD_CHECK,	/* @count of them were sent: answered by the same at once, for it has come
			   behind them, then by WORD_RESULT */
	WORD_RESULT,	/* @wrong messages */
	WORD_BYE,
};

/** struct word_msg - in the byte order of x86; both sides are this program. */
struct word_msg {
	uint32_t magic, word;
	uint64_t addr;
	uint32_t rkey, op, size, slots;
	uint64_t count, wrong;
};

/**
 * struct probe_link
 * @data:  DATA_BYTES that the other side writes and reads, or buffers of what is sent
 * @recv:  RECVS buffers of SIZE_MAX_
 * @words: for outgoing words, in turn
 * @peer_addr, @peer_rkey: the other side's @data
 */
struct probe_link {
	struct rdma_cm_id *id;
	uint8_t *data, *recv;
	struct word_msg *words;
	unsigned int nwords;
	struct ibv_mr *data_mr, *recv_mr, *words_mr;
	struct ibv_cq *send_cq, *recv_cq;
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

/** link_connect, link_accept - make the connection; @listener: of link_listen(). 0, or -1 with
 * @err. */
int link_connect(struct probe_link *l, const char *host, const char *port, char *err, size_t len);
struct rdma_cm_id *link_listen(const char *host, const char *port, char *err, size_t len);
int link_accept(struct probe_link *l, struct rdma_cm_id *listener, char *err, size_t len);
void link_close(struct probe_link *l);

/** link_post - message @n of @size: to or from place @slot there, and @buffer here. */
int link_post(struct probe_link *l, enum op op, uint32_t size, uint32_t slot, uint8_t *buffer);

/** link_sent - completions of what was posted, words not counted, up to @max; -1: failed. */
int link_sent(struct probe_link *l, unsigned int max, char *err, size_t len);

/** link_say - send a word. */
int link_say(struct probe_link *l, const struct word_msg *w);

/** struct link_got - something that has come: a word, or @len bytes of a SEND at @data. */
struct link_got {
	bool is_word;
	struct word_msg word;
	const uint8_t *data;
	uint32_t len;
	uint64_t buffer; /* for link_again() */
};

/** link_get - 1: something has come, to be given back by link_again(); 0: nothing yet; -1. */
int link_get(struct probe_link *l, struct link_got *g, char *err, size_t len);
int link_again(struct probe_link *l, const struct link_got *g);

/** link_wait - until word @word comes. 0, or -1 with @err. */
int link_wait(struct probe_link *l, enum word word, struct word_msg *out, char *err, size_t len);

uint64_t probe_now(void);

/** probe_fill, probe_right - content of message @n: a function of it and of the place in it. */
void probe_fill(uint8_t *buf, uint32_t size, uint64_t n);
bool probe_right(const uint8_t *buf, uint32_t size, uint64_t n);

/** probe_serve - serve one prober after the other, or one with @once; until interrupted. */
int probe_serve(const char *host, const char *port, bool once);

#endif

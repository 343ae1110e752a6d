// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/probe/link.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAGIC	0x4c685062u
#define WORDS	16u
#define IS_WORD 1u  /* immediate data of a word */
#define READS	16u /* that a queue pair has outstanding, at most */
#define TIMEOUT 17  /* 0.5 s: the distance is no reason to send everything again */
#define WR_WORD (~0ull)

uint64_t probe_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t word_of(uint64_t n, uint32_t at)
{
	uint64_t x = n * 0x9e3779b97f4a7c15ull ^ at;

	x ^= x >> 29;
	x *= 0xff51afd7ed558ccdull;
	return x ^ x >> 32;
}

void probe_fill(uint8_t *buf, uint32_t size, uint64_t n)
{
	for (uint32_t at = 0; at < size; at += 8) {
		uint64_t w = word_of(n, at);

		memcpy(buf + at, &w, size - at < 8 ? size - at : 8);
	}
}

bool probe_right(const uint8_t *buf, uint32_t size, uint64_t n)
{
	for (uint32_t at = 0; at < size; at += 8) {
		uint64_t w = word_of(n, at);

		if (memcmp(buf + at, &w, size - at < 8 ? size - at : 8))
			return false;
	}
	return true;
}

static int fail(char *err, size_t len, const char *what)
{
	snprintf(err, len, "%s: %s", what, strerror(errno));
	return -1;
}

static int post_recv(struct probe_link *l, uint64_t i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(l->recv + i * SIZE_MAX_),
			      .length = SIZE_MAX_,
			      .lkey = l->recv_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	errno = ibv_post_recv(l->id->qp, &wr, &bad);
	return errno ? -1 : 0;
}

static struct ibv_mr *memory(struct probe_link *l, void **at, size_t size)
{
	*at = aligned_alloc(4096, size);
	if (!*at)
		return NULL;
	memset(*at, 0, size);
	return ibv_reg_mr(l->id->pd, *at, size,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
}

/* Memory and queue pair of an id whose device is known. */
static int prepare(struct probe_link *l, char *err, size_t len)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH_MAX + WORDS,
			.max_recv_wr = RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	uint8_t timeout = TIMEOUT;

	(void)rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			      sizeof(timeout));
	l->send_cq = attr.send_cq = ibv_create_cq(l->id->verbs, DEPTH_MAX + WORDS, NULL, NULL, 0);
	l->recv_cq = attr.recv_cq = ibv_create_cq(l->id->verbs, RECVS, NULL, NULL, 0);
	if (!attr.send_cq || !attr.recv_cq || rdma_create_qp(l->id, NULL, &attr))
		return fail(err, len, "no queue pair");
	l->data_mr = memory(l, (void **)&l->data, DATA_BYTES);
	l->recv_mr = memory(l, (void **)&l->recv, (size_t)RECVS * SIZE_MAX_);
	l->words_mr = memory(l, (void **)&l->words, 4096);
	if (!l->data_mr || !l->recv_mr || !l->words_mr)
		return fail(err, len,
			    "memory cannot be registered; raise the limit of locked memory");
	for (uint64_t i = 0; i < RECVS; i++)
		if (post_recv(l, i))
			return fail(err, len, "no receive can be posted");
	return 0;
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){.responder_resources = READS,
					.initiator_depth = READS,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

/* Each tells the other where its memory is. */
static int greet(struct probe_link *l, char *err, size_t len)
{
	struct word_msg w = {
		.word = WORD_HELLO, .addr = (uintptr_t)l->data, .rkey = l->data_mr->rkey};

	if (link_say(l, &w))
		return fail(err, len, "nothing can be sent");
	if (link_wait(l, WORD_HELLO, &w, err, len))
		return -1;
	l->peer_addr = w.addr;
	l->peer_rkey = w.rkey;
	return 0;
}

int link_connect(struct probe_link *l, const char *host, const char *port, char *err, size_t len)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai = NULL;
	struct rdma_conn_param param = parameters();

	memset(l, 0, sizeof(*l));
	if (rdma_getaddrinfo(host, port, &hints, &ai))
		return fail(err, len, host);
	if (rdma_create_id(NULL, &l->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(l->id, NULL, ai->ai_dst_addr, 10000) ||
	    rdma_resolve_route(l->id, 10000)) {
		rdma_freeaddrinfo(ai);
		return fail(err, len, "no RDMA device leads there");
	}
	rdma_freeaddrinfo(ai);
	if (prepare(l, err, len))
		return -1;
	if (rdma_connect(l->id, &param))
		return fail(err, len, "no longhaul-probe answers there");
	return greet(l, err, len);
}

struct rdma_cm_id *link_listen(const char *host, const char *port, char *err, size_t len)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *ai;
	struct rdma_cm_id *id = NULL;

	if (rdma_getaddrinfo(host, port, &hints, &ai)) {
		fail(err, len, host ? host : port);
		return NULL;
	}
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, ai->ai_src_addr) ||
	    rdma_listen(id, 4)) {
		fail(err, len, "cannot listen");
		id = NULL;
	}
	rdma_freeaddrinfo(ai);
	return id;
}

int link_accept(struct probe_link *l, struct rdma_cm_id *listener, char *err, size_t len)
{
	struct rdma_conn_param param = parameters();

	memset(l, 0, sizeof(*l));
	if (rdma_get_request(listener, &l->id))
		return fail(err, len, "no request");
	if (prepare(l, err, len))
		return -1;
	if (rdma_accept(l->id, &param))
		return fail(err, len, "the connection was not made");
	return greet(l, err, len);
}

void link_close(struct probe_link *l)
{
	if (!l->id)
		return;
	rdma_disconnect(l->id);
	if (l->id->qp)
		rdma_destroy_qp(l->id);
	if (l->data_mr)
		ibv_dereg_mr(l->data_mr);
	if (l->recv_mr)
		ibv_dereg_mr(l->recv_mr);
	if (l->words_mr)
		ibv_dereg_mr(l->words_mr);
	if (l->send_cq)
		ibv_destroy_cq(l->send_cq);
	if (l->recv_cq)
		ibv_destroy_cq(l->recv_cq);
	free(l->data);
	free(l->recv);
	free(l->words);
	rdma_destroy_id(l->id);
	l->id = NULL;
}

int link_post(struct probe_link *l, enum op op, uint32_t size, uint32_t slot, uint8_t *buffer)
{
	static const enum ibv_wr_opcode opcode[OPS] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						       IBV_WR_RDMA_READ};
	struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = size, .lkey = l->data_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode[op]}, *bad;

	wr.wr.rdma.remote_addr = l->peer_addr + (uint64_t)slot * size;
	wr.wr.rdma.rkey = l->peer_rkey;
	errno = ibv_post_send(l->id->qp, &wr, &bad);
	return errno ? -1 : 0;
}

int link_say(struct probe_link *l, const struct word_msg *w)
{
	struct word_msg *at = &l->words[l->nwords++ % WORDS];
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = sizeof(*at), .lkey = l->words_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = WR_WORD,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .imm_data = IS_WORD},
			   *bad;

	*at = *w;
	at->magic = MAGIC;
	errno = ibv_post_send(l->id->qp, &wr, &bad);
	return errno ? -1 : 0;
}

static int broken(const struct ibv_wc *wc, char *err, size_t len)
{
	snprintf(err, len, "the connection broke: %s", ibv_wc_status_str(wc->status));
	return -1;
}

int link_sent(struct probe_link *l, unsigned int max, char *err, size_t len)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	while (n < max && ibv_poll_cq(l->send_cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			return broken(&wc, err, len);
		n += wc.wr_id != WR_WORD;
	}
	return (int)n;
}

int link_get(struct probe_link *l, struct link_got *g, char *err, size_t len)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(l->recv_cq, 1, &wc) <= 0) {
		sched_yield();
		return 0;
	}
	if (wc.status != IBV_WC_SUCCESS)
		return broken(&wc, err, len);
	g->buffer = wc.wr_id;
	g->data = l->recv + wc.wr_id * SIZE_MAX_;
	g->len = wc.byte_len;
	g->is_word = wc.wc_flags & IBV_WC_WITH_IMM;
	if (!g->is_word)
		return 1;
	memcpy(&g->word, g->data, sizeof(g->word));
	if (g->len == sizeof(g->word) && g->word.magic == MAGIC)
		return 1;
	snprintf(err, len, "the other side is no longhaul-probe, or of another version");
	return -1;
}

int link_again(struct probe_link *l, const struct link_got *g)
{
	return post_recv(l, g->buffer);
}

int link_wait(struct probe_link *l, enum word word, struct word_msg *out, char *err, size_t len)
{
	uint64_t end = probe_now() + SILENCE_NS;
	struct link_got g;
	int rc;

	for (;;) {
		rc = link_get(l, &g, err, len);
		if (rc < 0 || (rc && link_again(l, &g)))
			return -1;
		if (rc && g.is_word && g.word.word == word) {
			*out = g.word;
			return 0;
		}
		/* what was sent is of no interest here, but its room is needed */
		if (link_sent(l, WORDS, err, len) < 0)
			return -1;
		if (probe_now() < end)
			continue;
		snprintf(err, len, "nothing came from the other side for two minutes");
		return -1;
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The AF_XDP port's rings against a kernel that is played here, in memory: one that is late in
 * releasing slots, and one that shows what it must not. What the real one does is in
 * tests/bpf/test_afxdp_overload.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "port/afxdp_priv.h"

#define CHUNKS 64u
#define FIRST  32u /* the chunks before belong to another socket, those behind to transmit */
#define AREA   (FIRST + CHUNKS + CHUNKS)
#define LEN    100u

/*
 * @taken:  entries of the fill ring that the kernel has taken; those that it shows as released are
 *          in @fill_cons, and never more
 * @has:    [chunk of the area] -> the kernel has it and may write
 * @next:   number of the next frame to write, @seen: of the next one to be read
 */
struct kernel {
	struct afxdp x;
	struct rxq q;
	struct txq tx;
	struct part part;
	uint8_t area[AREA * AFXDP_CHUNK];
	uint8_t owner[CHUNKS], busy[CHUNKS], has[AREA];
	uint32_t back[CHUNKS], free[CHUNKS];
	uint64_t fill_ring[2 * CHUNKS], comp_ring[CHUNKS];
	struct xdp_desc rx_ring[CHUNKS], tx_ring[CHUNKS];
	uint32_t fill_prod, fill_cons, rx_prod, rx_cons, tx_prod, tx_cons, comp_prod, comp_cons;
	uint32_t flags, taken, next, seen;
};

static struct kernel k;

static void ring_to_kernel(struct xsk_ring_prod *r, void *ring, uint32_t size, uint32_t *prod,
			   uint32_t *cons)
{
	*r = (struct xsk_ring_prod){
		.cached_cons = size,
		.mask = size - 1,
		.size = size,
		.producer = prod,
		.consumer = cons,
		.ring = ring,
		.flags = &k.flags,
	};
}

static void ring_from_kernel(struct xsk_ring_cons *r, void *ring, uint32_t size, uint32_t *prod,
			     uint32_t *cons)
{
	*r = (struct xsk_ring_cons){
		.mask = size - 1,
		.size = size,
		.producer = prod,
		.consumer = cons,
		.ring = ring,
		.flags = &k.flags,
	};
}

static int begin(void **state)
{
	struct port *lan = &k.x.port[STEER_PORT(STEER_LAN, 0)];

	(void)state;
	memset(&k, 0, sizeof(k));
	k.x.max_frame = lan->max_tx = FRAME_MAX;
	lan->area = k.area;
	k.x.part = &k.part;
	k.x.parts = 1;
	k.q.part = &k.part;
	k.q.n = &k.tx.n;
	k.q.owner = k.owner;
	k.q.back = k.back;
	k.q.first = FIRST;
	k.q.nchunks = CHUNKS;
	ring_to_kernel(&k.q.fill, k.fill_ring, 2 * CHUNKS, &k.fill_prod, &k.fill_cons);
	ring_from_kernel(&k.q.rx, k.rx_ring, CHUNKS, &k.rx_prod, &k.rx_cons);
	ring_from_kernel(&k.q.comp, k.comp_ring, CHUNKS, &k.comp_prod, &k.comp_cons);
	k.x.have = 1u << STEER_PORT(STEER_LAN, 0);
	lan->q = &k.q;
	lan->nq = 1;
	lan->tx = &k.tx;
	lan->ntx = 1;
	k.tx.q = &k.q;
	k.tx.nchunks = CHUNKS;
	k.tx.base = (FIRST + CHUNKS) * AFXDP_CHUNK;
	k.tx.free = k.free;
	k.tx.busy = k.busy;
	ring_to_kernel(&k.tx.ring, k.tx_ring, CHUNKS, &k.tx_prod, &k.tx_cons);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		k.back[k.q.nback++] = i;
		k.free[k.tx.nfree++] = i;
	}
	assert_int_equal(rxq_give_back(&k.q), 0);
	return 0;
}

/* Whose the chunk is that the kernel takes from the fill ring: nobody may give it twice. */
static bool kernel_take(uint64_t *addr)
{
	if (k.taken == k.fill_prod)
		return false;
	*addr = k.fill_ring[k.taken++ % (2 * CHUNKS)];
	assert_int_equal(*addr % AFXDP_CHUNK, 0);
	assert_in_range(*addr / AFXDP_CHUNK, FIRST, FIRST + CHUNKS - 1);
	assert_false(k.has[*addr / AFXDP_CHUNK]);
	k.has[*addr / AFXDP_CHUNK] = 1;
	return true;
}

static void show(uint64_t addr, uint32_t len, uint32_t options)
{
	assert_true(k.rx_prod - k.rx_cons < CHUNKS);
	k.rx_ring[k.rx_prod++ % CHUNKS] =
		(struct xdp_desc){.addr = addr, .len = len, .options = options};
}

/* A frame as the kernel writes it; false when it has no chunk for it. Slots are not released. */
static bool kernel_rx(void)
{
	uint64_t addr;

	if (!kernel_take(&addr))
		return false;
	k.has[addr / AFXDP_CHUNK] = 0;
	addr += 256; /* headroom */
	memset(k.area + addr, (int)k.next, LEN);
	memcpy(k.area + addr, &k.next, sizeof(k.next));
	k.next++;
	show(addr, LEN, 0);
	return true;
}

static void kernel_release(void)
{
	k.fill_cons = k.taken;
}

/* The frames as they were written, each once, in order. */
static void check(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	uint32_t n;

	(void)ctx;
	assert_int_equal(side, STEER_LAN);
	assert_int_equal(len, LEN);
	memcpy(&n, data, sizeof(n));
	assert_int_equal(n, k.seen);
	assert_int_equal(data[LEN - 1], (uint8_t)n);
	k.seen++;
}

static uint32_t rx(uint32_t budget)
{
	return afxdp_rx(&k.x, 0, budget, check, NULL);
}

/* All chunks are with the kernel: it can receive that many frames and no more. */
static void all_there(void)
{
	uint32_t n = 0;

	kernel_release();
	while (rx(CHUNKS))
		kernel_release();
	while (kernel_rx())
		n++;
	kernel_release();
	assert_int_equal(n, CHUNKS);
	assert_int_equal(rx(CHUNKS), CHUNKS);
	assert_int_equal(k.seen, k.next);
}

/* The kernel shows frames before it releases the slots that their chunks came from. */
static void test_late_release(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_true(kernel_rx());
		assert_int_equal(rx(CHUNKS), 1);
		kernel_release();
	}
	for (uint32_t i = 0; i < CHUNKS; i++)
		assert_true(kernel_rx());
	assert_int_equal(rx(CHUNKS), CHUNKS);
	assert_int_equal(k.tx.n.rx_fill_full, 0);
	all_there();
}

/* What waits is counted in bytes of frames, whatever chunks they take, and without reading it. */
static void test_unread(void **state)
{
	(void)state;
	assert_int_equal(afxdp_waits(&k.x, 0, STEER_LAN), 0);
	for (uint32_t n = 1; n <= CHUNKS; n++) {
		assert_true(kernel_rx());
		assert_int_equal(afxdp_waits(&k.x, 0, STEER_LAN), n);
		assert_int_equal(afxdp_unread(&k.x, STEER_LAN), n * LEN);
		assert_int_equal(afxdp_unread(&k.x, STEER_WAN), 0);
		assert_int_equal(afxdp_waits(&k.x, 0, STEER_WAN), 0);
	}
	kernel_release();
	assert_int_equal(rx(10), 10);
	assert_int_equal(afxdp_unread(&k.x, STEER_LAN), (CHUNKS - 10) * LEN);
	assert_true(kernel_rx()); /* round the end of the ring */
	assert_int_equal(afxdp_unread(&k.x, STEER_LAN), (CHUNKS - 9) * LEN);
	kernel_release();
	all_there();
}

/* Later than the kernel ever is: what cannot be given back is not read, and is not lost. */
static void test_no_release(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < 3 * CHUNKS; i++) {
		kernel_rx();
		n += rx(7);
	}
	assert_int_equal(n, CHUNKS);
	assert_int_equal(k.rx_prod - k.rx_cons, CHUNKS);
	assert_true(k.tx.n.rx_fill_full > 0);
	all_there();
	assert_int_equal(k.tx.n.rx_bad_chunk, 0);
}

/* A chunk that finds no room waits for the next time. */
static void test_waiting(void **state)
{
	uint32_t idx = 0, c;

	(void)state;
	for (uint32_t i = 0; i < CHUNKS; i++)
		assert_true(kernel_rx());
	assert_int_equal(rx(CHUNKS), CHUNKS);
	assert_true(kernel_rx());
	/* as if it had been read: the fill ring is full, nothing was released */
	assert_int_equal(xsk_ring_cons__peek(&k.q.rx, 1, &idx), 1);
	c = (uint32_t)(xsk_ring_cons__rx_desc(&k.q.rx, idx)->addr / AFXDP_CHUNK - FIRST);
	xsk_ring_cons__release(&k.q.rx, 1);
	k.owner[c] = CHUNK_OURS;
	k.q.back[k.q.nback++] = c;
	k.seen++;
	assert_int_equal(rxq_give_back(&k.q), 1);
	assert_true(kernel_rx());
	assert_int_equal(rx(CHUNKS), 0);
	kernel_release();
	assert_int_equal(rx(CHUNKS), 1);
	all_there();
}

/* Any order of receiving, releasing and reading. */
static void test_random(void **state)
{
	uint32_t r = 1, dropped = 0;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		bool slow = i / 1000 % 2; /* an overload */

		r = r * 1664525 + 1013904223;
		switch (r >> 29) {
		case 0:
		case 1:
		case 2:
		case 3:
			dropped += !kernel_rx();
			break;
		case 4:
			kernel_release();
			break;
		default:
			rx(slow ? 1 : r >> 24 & 7);
		}
	}
	assert_true(dropped > 0);
	all_there();
	assert_int_equal(k.tx.n.rx_bad_chunk, 0);
}

/* Addresses that are not this socket's, and frames that do not end in their chunk. */
static void test_foreign(void **state)
{
	static const uint64_t addr[] = {
		0,
		(FIRST - 1) * AFXDP_CHUNK,
		(FIRST + CHUNKS) * AFXDP_CHUNK,
		UINT64_MAX - 8,
		UINT64_MAX / 2,
	};
	uint64_t mine;

	(void)state;
	for (size_t i = 0; i < sizeof(addr) / sizeof(addr[0]); i++) {
		show(addr[i], LEN, 0);
		assert_true(kernel_rx());
		kernel_release();
		assert_int_equal(rx(CHUNKS), 1);
		assert_int_equal(k.tx.n.rx_bad_chunk, i + 1);
	}
	assert_true(kernel_take(&mine));
	k.has[mine / AFXDP_CHUNK] = 0;
	show(mine + 256, AFXDP_CHUNK - 255, 0);
	kernel_release();
	assert_int_equal(rx(CHUNKS), 0);
	assert_int_equal(k.tx.n.rx_bad_chunk, 6);
	assert_int_equal(k.tx.n.rx, 5);
	all_there();
}

/* A chunk shown twice, within a batch and later, is read and given back once. */
static void test_twice(void **state)
{
	struct xdp_desc *d;

	(void)state;
	assert_true(kernel_rx());
	d = &k.rx_ring[(k.rx_prod - 1) % CHUNKS];
	show(d->addr, d->len, 0);
	assert_true(kernel_rx());
	assert_int_equal(rx(CHUNKS), 2);
	assert_int_equal(k.tx.n.rx_bad_chunk, 1);
	kernel_release();
	all_there();
}

/* One bad descriptor spoils its frame, the whole of it, and no other. */
static void test_bad_part(void **state)
{
	uint64_t a, b;

	(void)state;
	for (int bad = 0; bad < 3; bad++) {
		assert_true(kernel_take(&a) && kernel_take(&b));
		k.has[a / AFXDP_CHUNK] = k.has[b / AFXDP_CHUNK] = 0;
		if (bad == 0)
			show(7, LEN, XDP_PKT_CONTD);
		show(a, LEN, XDP_PKT_CONTD);
		if (bad == 1)
			show(7, LEN, XDP_PKT_CONTD);
		show(b, LEN, bad == 2 ? XDP_PKT_CONTD : 0);
		if (bad == 2)
			show(7, LEN, 0);
		assert_true(kernel_rx());
		assert_int_equal(rx(CHUNKS), 1);
		kernel_release();
		assert_int_equal(k.tx.n.rx_bad_chunk, bad + 1);
	}
	assert_int_equal(k.tx.n.rx_too_long, 0);
	all_there();
}

/* Byte @i of the long frame @n. */
static uint8_t byte_of(uint32_t n, uint32_t i)
{
	return (uint8_t)(n * 37 + i * 7 + i / 251);
}

/*
 * A frame of @len bytes as the kernel writes a long one: each chunk filled to its end before the
 * next one of the fill ring. @swap: it had got the first two chunks in the other order.
 */
static void kernel_rx_long(uint32_t len, bool swap)
{
	uint64_t addr[3], other;
	uint32_t parts = 0, off = 0, n;

	for (; parts * (AFXDP_CHUNK - 256) < len; parts++)
		assert_true(kernel_take(&addr[parts]));
	if (swap) {
		other = addr[0];
		addr[0] = addr[1];
		addr[1] = other;
	}
	for (uint32_t p = 0; p < parts; p++, off += n) {
		n = len - off < AFXDP_CHUNK - 256 ? len - off : AFXDP_CHUNK - 256;
		k.has[addr[p] / AFXDP_CHUNK] = 0;
		for (uint32_t i = 0; i < n; i++)
			k.area[addr[p] + 256 + i] = byte_of(k.next, off + i);
		show(addr[p] + 256, n, p + 1 < parts ? XDP_PKT_CONTD : 0);
	}
	k.next++;
}

/* The kernel writes to what it has at any time: nothing of it may be a part of a frame. */
static void kernel_scribbles(void)
{
	for (uint32_t i = 0; i < AREA; i++)
		if (k.has[i])
			memset(k.area + i * AFXDP_CHUNK, 0xee, AFXDP_CHUNK);
	for (uint32_t i = k.taken; i != k.fill_prod; i++)
		memset(k.area + k.fill_ring[i % (2 * CHUNKS)], 0xee, AFXDP_CHUNK);
}

/* @ctx: [2], frames that lay where they came, and frames in the buffer */
static void check_long(void *ctx, enum steer_side side, uint8_t *data, uint32_t len)
{
	uint32_t *where = ctx;

	assert_int_equal(side, STEER_LAN);
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != byte_of(k.seen, i))
			fail_msg("frame %u of %u bytes: byte %u is wrong", k.seen, len, i);
	where[data == k.q.join]++;
	k.seen++;
}

/*
 * Frames of several chunks are whole: where the next chunk lies behind, where it does not, and
 * where a batch ends within the frame, whose first chunk the kernel has again then.
 */
static void test_joined(void **state)
{
	uint32_t where[2] = {0}, len;

	(void)state;
	for (uint32_t i = 0; i < 6 * CHUNKS; i++) {
		uint32_t budget = i / CHUNKS % 2 ? 1 : CHUNKS;

		len = i % 5 == 4 ? FRAME_MAX : 3841 + i * 11 % (FRAME_MAX - 3841);
		kernel_rx_long(len, i % 7 == 6);
		kernel_scribbles();
		for (uint32_t n = k.seen; k.seen == n;) {
			kernel_release();
			afxdp_rx(&k.x, 0, budget, check_long, where);
			kernel_scribbles();
		}
		assert_int_equal(k.seen, k.next);
	}
	assert_true(where[0] >= CHUNKS);
	assert_true(where[1] >= 3 * CHUNKS);
	assert_int_equal(k.tx.n.rx, 6 * CHUNKS);
	assert_int_equal(k.tx.n.rx_bad_chunk, 0);
	k.next = k.seen = 0;
	all_there();
}

/* The kernel has sent what it was shown, and gives the chunks back before the slots. */
static void kernel_tx(void)
{
	for (uint32_t i = k.tx_cons; i != k.tx_prod; i++)
		k.comp_ring[k.comp_prod++ % CHUNKS] = k.tx_ring[i % CHUNKS].addr;
}

static void kernel_tx_release(void)
{
	k.tx_cons = k.tx_prod;
}

/* What is refused is said, and no chunk goes astray. */
static void test_tx_refused(void **state)
{
	uint8_t frame[LEN] = {0};
	uint32_t n;

	(void)state;
	k.q.xsk = (void *)&k; /* there is a socket, which needs no call */
	assert_int_equal(afxdp_room(&k.x, 0, STEER_LAN), CHUNKS);
	for (n = 0; afxdp_tx(&k.x, 0, STEER_LAN, frame, LEN, 0) == 0; n++)
		assert_true(n < CHUNKS);
	assert_int_equal(n, CHUNKS);
	assert_int_equal(k.tx.n.tx_full, 1);
	assert_int_equal(afxdp_room(&k.x, 0, STEER_LAN), 0);
	assert_true(afxdp_flush(&k.x, 0));
	kernel_tx();
	assert_int_equal(afxdp_room(&k.x, 0, STEER_LAN), 0);
	assert_int_equal(afxdp_tx(&k.x, 0, STEER_LAN, frame, LEN, 0), -EAGAIN);
	assert_int_equal(k.tx.n.tx_full, 2);
	assert_int_equal(k.tx.nfree, CHUNKS);
	kernel_tx_release();
	assert_int_equal(afxdp_room(&k.x, 0, STEER_LAN), CHUNKS);
	assert_int_equal(afxdp_tx(&k.x, 0, STEER_LAN, frame, LEN, 0), 0);
	assert_int_equal(k.tx.n.tx, CHUNKS + 1);
}

/* Completions of what was not on its way are not believed. */
static void test_tx_twice(void **state)
{
	uint8_t frame[LEN] = {0};

	(void)state;
	k.q.xsk = (void *)&k;
	for (uint32_t i = 0; i < CHUNKS - 2; i++)
		assert_int_equal(afxdp_tx(&k.x, 0, STEER_LAN, frame, LEN, 0), 0);
	afxdp_flush(&k.x, 0);
	kernel_tx();
	k.comp_ring[k.comp_prod++ % CHUNKS] = k.tx_ring[0].addr;
	k.comp_ring[k.comp_prod++ % CHUNKS] = 0;
	afxdp_flush(&k.x, 0);
	assert_int_equal(k.tx.nfree, CHUNKS);
	assert_int_equal(k.tx.n.tx_bad_chunk, 2);
}

/* A driver without copies sends without being called, and reads descriptors at any time. */
static void test_tx_zero_copy(void **state)
{
	uint8_t frame[LEN] = {0};
	uint64_t addr;

	(void)state;
	k.q.xsk = (void *)&k;
	assert_int_equal(afxdp_tx(&k.x, 0, STEER_LAN, frame, LEN, 0), 0);
	assert_true(afxdp_flush(&k.x, 0));
	addr = k.tx_ring[0].addr;
	tx_drop(&k.tx, true);
	assert_int_equal(k.tx_ring[0].addr, addr);
	assert_int_equal(k.tx.nfree, CHUNKS - 1);
	assert_true(afxdp_flush(&k.x, 0));
	kernel_tx();
	kernel_tx_release();
	assert_false(afxdp_flush(&k.x, 0));
	assert_int_equal(k.tx.nfree, CHUNKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_late_release, begin),
		cmocka_unit_test_setup(test_unread, begin),
		cmocka_unit_test_setup(test_no_release, begin),
		cmocka_unit_test_setup(test_waiting, begin),
		cmocka_unit_test_setup(test_random, begin),
		cmocka_unit_test_setup(test_foreign, begin),
		cmocka_unit_test_setup(test_twice, begin),
		cmocka_unit_test_setup(test_bad_part, begin),
		cmocka_unit_test_setup(test_joined, begin),
		cmocka_unit_test_setup(test_tx_refused, begin),
		cmocka_unit_test_setup(test_tx_twice, begin),
		cmocka_unit_test_setup(test_tx_zero_copy, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

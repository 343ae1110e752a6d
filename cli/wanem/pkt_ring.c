// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TPACKET_V2 rather than V3: V3 hands over whole blocks and retires a part-filled one by a timer of
 * at least a millisecond, too coarse for an emulator that must be exact to a fifth of that.
 *
 * Sending from the ring maps its pages into the packet, so the kernel copies only the headers; a
 * slot is free again when the receiver at the other end of the veth has taken the packet.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/wanem/pkt_ring.h"
#include "wire/bytes.h"

/* 16-byte multiples, the kernel's header included. */
#define SLOT	  (PKT_RING_FRAME_MAX + 128u)
#define SLOT_LONG (PKT_RING_FRAME_LONG + 128u)
#define BLOCK	  65536u
/* Where the kernel looks for the data of a frame to send. */
#define TX_DATA	  (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

/* A length that no device takes: the kernel drops such a frame and goes on (PACKET_LOSS). */
#define NO_FRAME UINT32_MAX
#define PATIENCE 5000000u
#define MEMORY	 1000000000u

struct ring {
	uint8_t *map;
	uint32_t slots, at, slot_size;
};

struct pkt_ring {
	int fd, ifindex;
	uint8_t mac[6];
	void *map;
	size_t map_len;
	struct ring rx, tx;
	uint32_t queued;
	uint64_t dropped, refused;
	/* the frame that the device refuses, and since when; its latest refusal, and the shortest
	 * frame that it refused for good */
	const struct tpacket2_hdr *refuses;
	uint64_t since, latest;
	uint32_t too_long;
};

static uint32_t per_block(const struct ring *r)
{
	return BLOCK / r->slot_size;
}

static struct tpacket2_hdr *slot(const struct ring *r)
{
	return (struct tpacket2_hdr *)(void *)(r->map + (size_t)(r->at / per_block(r)) * BLOCK +
					       (size_t)(r->at % per_block(r)) * r->slot_size);
}

static size_t bytes_of(const struct ring *r)
{
	return (size_t)r->slots / per_block(r) * BLOCK;
}

static void advance(struct ring *r)
{
	r->at = r->at + 1 == r->slots ? 0 : r->at + 1;
}

static int set_ring(int fd, int which, uint32_t slots, struct ring *r)
{
	uint32_t blocks = (slots + per_block(r) - 1) / per_block(r);
	struct tpacket_req req = {.tp_block_size = BLOCK,
				  .tp_block_nr = blocks,
				  .tp_frame_size = r->slot_size,
				  .tp_frame_nr = blocks * per_block(r)};

	r->slots = req.tp_frame_nr;
	return setsockopt(fd, SOL_PACKET, which, &req, sizeof(req));
}

static int set_int(int fd, int opt, int v)
{
	return setsockopt(fd, SOL_PACKET, opt, &v, sizeof(v));
}

static int bind_to(struct pkt_ring *r, const char *ifname, bool promisc)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq mr = {.mr_type = PACKET_MR_PROMISC};
	struct ifreq ifr = {0};

	ll.sll_ifindex = (int)if_nametoindex(ifname);
	if (!ll.sll_ifindex)
		return -1;
	mr.mr_ifindex = r->ifindex = ll.sll_ifindex;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (ioctl(r->fd, SIOCGIFHWADDR, &ifr) < 0)
		return -1;
	memcpy(r->mac, ifr.ifr_hwaddr.sa_data, 6);
	if (promisc && setsockopt(r->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mr, sizeof(mr)) < 0)
		return -1;
	return bind(r->fd, (struct sockaddr *)&ll, sizeof(ll));
}

struct pkt_ring *pkt_ring_open(const char *ifname, uint32_t rx_slots, uint32_t tx_slots,
			       bool promisc, uint32_t frame)
{
	struct pkt_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->map = MAP_FAILED;
	r->too_long = NO_FRAME;
	r->rx.slot_size = r->tx.slot_size = frame > PKT_RING_FRAME_MAX ? SLOT_LONG : SLOT;
	r->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (r->fd < 0 || set_int(r->fd, PACKET_VERSION, TPACKET_V2) < 0 ||
	    set_int(r->fd, PACKET_LOSS, 1) < 0 || set_int(r->fd, PACKET_QDISC_BYPASS, 1) < 0 ||
	    set_int(r->fd, PACKET_IGNORE_OUTGOING, 1) < 0 ||
	    set_ring(r->fd, PACKET_RX_RING, rx_slots, &r->rx) < 0 ||
	    set_ring(r->fd, PACKET_TX_RING, tx_slots, &r->tx) < 0)
		goto fail;
	r->map_len = bytes_of(&r->rx) + bytes_of(&r->tx);
	r->map =
		mmap(NULL, r->map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, 0);
	if (r->map == MAP_FAILED)
		goto fail;
	r->rx.map = r->map;
	r->tx.map = r->rx.map + bytes_of(&r->rx);
	if (bind_to(r, ifname, promisc) < 0)
		goto fail;
	return r;
fail:
	warnx("packet socket on %s: %s%s", ifname, strerror(errno),
	      errno == EPERM ? "; run it as root, or with CAP_NET_RAW" : "");
	pkt_ring_close(r);
	return NULL;
}

bool pkt_ring_there(const struct pkt_ring *r)
{
	char name[IF_NAMESIZE];
	int err;
	socklen_t len = sizeof(err);

	getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return if_indextoname((unsigned int)r->ifindex, name);
}

int pkt_ring_visible(struct pkt_ring *r)
{
	return set_int(r->fd, PACKET_QDISC_BYPASS, 0);
}

void pkt_ring_close(struct pkt_ring *r)
{
	if (!r)
		return;
	if (r->map != MAP_FAILED)
		munmap(r->map, r->map_len);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

int pkt_ring_fd(const struct pkt_ring *r)
{
	return r->fd;
}

const uint8_t *pkt_ring_mac(const struct pkt_ring *r)
{
	return r->mac;
}

bool pkt_ring_next(struct pkt_ring *r, struct pkt_ring_frame *f)
{
	struct tpacket2_hdr *h = slot(&r->rx);
	uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
	uint8_t *data;

	if (!(status & TP_STATUS_USER))
		return false;
	data = (uint8_t *)h + h->tp_mac;
	f->len = h->tp_snaplen;
	f->whole = h->tp_snaplen == h->tp_len;
	f->csum_missing = status & TP_STATUS_CSUMNOTREADY;
	f->ts_ns = h->tp_sec * 1000000000ull + h->tp_nsec;
	if ((status & TP_STATUS_VLAN_VALID) && f->len >= 12) {
		/* The kernel took the tag off; the slot has room before the frame to put it
		 * back. */
		uint16_t tpid = status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : 0x8100;

		memmove(data - 4, data, 12);
		put_be16(data + 8, tpid);
		put_be16(data + 10, h->tp_vlan_tci);
		data -= 4;
		f->len += 4;
	}
	f->data = data;
	return true;
}

void pkt_ring_release(struct pkt_ring *r)
{
	__atomic_store_n(&slot(&r->rx)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	advance(&r->rx);
}

uint8_t *pkt_ring_buf(struct pkt_ring *r)
{
	struct tpacket2_hdr *h = slot(&r->tx);

	if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE) {
		/* Full of frames not handed over yet, perhaps. */
		pkt_ring_flush(r);
		if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
			return NULL;
	}
	return (uint8_t *)h + TX_DATA;
}

void pkt_ring_queue(struct pkt_ring *r, uint32_t len)
{
	struct tpacket2_hdr *h = slot(&r->tx);

	h->tp_len = len;
	__atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
	advance(&r->tx);
	r->queued++;
}

/* The frame that the kernel is to send next, NULL: none. The oldest come first, from where the next
 * one will be put. */
static struct tpacket2_hdr *next_to_send(const struct pkt_ring *r)
{
	struct ring look = r->tx;

	for (uint32_t i = 0; i < look.slots; i++, advance(&look)) {
		struct tpacket2_hdr *h = slot(&look);

		if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_SEND_REQUEST)
			return h;
	}
	return NULL;
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whether the device refuses frame @h for good: it is as long as one that was refused for PATIENCE
 * within the last second. */
static bool for_good(struct pkt_ring *r, const struct tpacket2_hdr *h)
{
	uint64_t now = clock_ns();

	if (now - r->latest > MEMORY)
		r->too_long = NO_FRAME;
	r->latest = now;
	if (h->tp_len >= r->too_long)
		return true;
	if (r->refuses != h) {
		r->refuses = h;
		r->since = now;
	}
	if (now - r->since < PATIENCE)
		return false;
	r->too_long = h->tp_len;
	return true;
}

/* What the kernel does not take now, it mostly takes a little later. A frame that it never takes,
 * such as one that is too long for the other end of a veth, would keep back all those behind it. */
void pkt_ring_flush(struct pkt_ring *r)
{
	struct tpacket2_hdr *h;
	bool busy;

	if (!r->queued)
		return;
	r->queued = 0;
	while (send(r->fd, NULL, 0, MSG_DONTWAIT) < 0) {
		busy = errno == EAGAIN || errno == EINTR;
		h = next_to_send(r);
		if (!h)
			return;
		if (busy || h->tp_len == NO_FRAME || !for_good(r, h)) {
			r->queued = 1; /* try again with the next flush */
			return;
		}
		h->tp_len = NO_FRAME;
		r->refused++;
	}
	r->refuses = NULL;
}

uint64_t pkt_ring_refused(const struct pkt_ring *r)
{
	return r->refused;
}

uint64_t pkt_ring_dropped(struct pkt_ring *r)
{
	struct tpacket_stats st;
	socklen_t len = sizeof(st);

	/* The kernel's counters restart with each reading. */
	if (!getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &st, &len))
		r->dropped += st.tp_drops;
	return r->dropped;
}

static uint32_t sum_words(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (; len > 1; p += 2, len -= 2)
		sum += get_be16(p);
	if (len)
		sum += (uint32_t)p[0] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

void pkt_fix_checksum(uint8_t *data, uint32_t len)
{
	uint32_t at = 12, l4_len, sum = 0, field;
	uint8_t proto;
	uint8_t *l4;

	while (at + 2 <= len && (get_be16(data + at) == 0x8100 || get_be16(data + at) == 0x88a8))
		at += 4;
	if (at + 2 + 20 > len)
		return;
	if (get_be16(data + at) == 0x0800) {
		uint8_t *ip = data + at + 2;
		uint32_t hlen = (ip[0] & 15) * 4u;

		proto = ip[9];
		l4 = ip + hlen;
		if (get_be16(ip + 2) < hlen || at + 2 + get_be16(ip + 2) > len)
			return;
		l4_len = get_be16(ip + 2) - hlen;
		sum = sum_words(ip + 12, 8, sum);
	} else if (get_be16(data + at) == 0x86dd && at + 2 + 40 <= len) {
		uint8_t *ip = data + at + 2;

		proto = ip[6];
		l4 = ip + 40;
		l4_len = get_be16(ip + 4);
		if (at + 2 + 40 + l4_len > len)
			return;
		sum = sum_words(ip + 8, 32, sum);
	} else {
		return;
	}
	field = proto == 6 ? 16 : 6;
	if ((proto != 6 && proto != 17) || l4_len < field + 2)
		return;
	put_be16(l4 + field, 0);
	sum = sum_words(l4, l4_len, sum + proto + l4_len);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	put_be16(l4 + field, (uint16_t)(sum || proto == 6 ? sum : 0xffff));
}

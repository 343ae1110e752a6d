// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which packets go to the daemon.
 *
 * Theory of operation
 *
 * The appliance's ports are members of a kernel bridge. This program runs below it, on each port,
 * and takes exactly one kind of frame: RoCEv2 that a rule wants, while the daemon is alive
 * and a socket is there to receive it. All else, and everything in doubt, goes up to the bridge
 * (XDP_PASS), so that an error here can at worst bridge a packet.
 *
 * One kind of packet must not be bridged: those of connections that the daemon renumbers, so that
 * the two hosts use different numbers (prefetch). If bridged, such a packet may be taken for
 * another one, and its data, too. The daemon enters these connections into a map. A packet in the
 * map that would go up to the bridge is dropped, and hosts retransmit until the daemon is back. The
 * map is read only for packets that go up, never on the way to the daemon.
 *
 * A rule names a VLAN, prefixes near (on the LAN side) and prefixes far (beyond the WAN). Rules are
 * bits of a 64-bit word: each of the three maps gives the rules that fit that part of the packet,
 * and the packet is wanted if the three have a bit in common. The two instances differ in which end
 * is near and which is far:
 *
 *	steer_lan	near[source] & far[destination] & vlan[vid]
 *	steer_wan	far[source] & near[destination] & vlan[vid]
 *
 * So a reply from the wrong side (a loop, a moved host) is not taken.
 *
 * A VLAN tag is part of a connection's key, so there may be only one. Frames with two, or with a
 * service tag (802.1ad), are not taken: behind one outer tag two customers may use the same
 * addresses and queue pair numbers.
 *
 * IP fragments, IPv4 options and IPv6 extension headers are not taken: RoCEv2 senders do not use
 * them, and the daemon's parser would refuse them.
 *
 * Headers are read in place. A driver may leave the linear part of a long frame short or empty (the
 * striding receive queues of one well-known NIC do, with multi-buffer). Then the headers are copied
 * to the stack first and parsed there by the same code.
 *
 * User space loads this with BPF_F_XDP_HAS_FRAGS, which also lets it attach to a port whose MTU
 * exceeds one page. The flag came with Linux 5.18, as did the helpers used here. AF_XDP itself
 * takes frames of several buffers since 6.6; before that it would deliver the first buffer as if it
 * were the frame. Hence config.linear_only.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "steer.h"

#define VLAN_HLEN	   4
#define VLAN_VID_MASK	   0x0fff
#define IP4_HLEN	   20
#define IP6_HLEN	   40
#define UDP_HLEN	   8
#define ROCE_MIN	   (12 + 4) /* BTH and ICRC */
#define IP4_MORE_OR_OFFSET 0x3fff   /* all of frag_off but DF and the reserved bit */
#define HEADERS_MAX	   (ETH_HLEN + VLAN_HLEN + IP6_HLEN + UDP_HLEN + ROCE_MIN)

#define NEXTHDR_HOP	 0
#define NEXTHDR_ROUTING	 43
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_DEST	 60

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, STEER_SETS *STEER_PREFIXES);
	__type(key, struct steer_prefix);
	__type(value, __u64);
} steer_near SEC(".maps"), steer_far SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEER_SETS *STEER_VLANS);
	__type(key, __u32);
	__type(value, __u64);
} steer_vlan SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_config);
} steer_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_PORTS *STEER_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} steer_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_SIDES);
	__type(key, __u32);
	__type(value, struct steer_unwanted);
} steer_unwanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, STEER_MEMBERS *STEER_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} steer_xsk_lan SEC(".maps"), steer_xsk_wan SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, STEER_HELD_MAX);
	__type(key, struct steer_held);
	__type(value, struct steer_hold);
} steer_held SEC(".maps");

/* The fields that rules match, and the queue pair. The caller fills in plen and set of the keys. */
struct flow {
	struct steer_prefix src, dst;
	__u32 vid, dqpn;
};

static __always_inline int verdict(__u32 port, enum steer_counter counter, int action)
{
	__u32 i = port * STEER_COUNTERS + counter;
	__u64 *n = bpf_map_lookup_elem(&steer_counters, &i);

	if (n)
		++*n;
	return action;
}

static __always_inline void v4_mapped(__u8 out[16], const __u8 *be4)
{
	__builtin_memset(out, 0, 10);
	out[10] = 0xff;
	out[11] = 0xff;
	__builtin_memcpy(out + 12, be4, 4);
}

static __always_inline __u16 load16(const __u8 *p)
{
	return (__u16)(p[0] << 8 | p[1]);
}

static __always_inline int is_tag(__u16 ethertype)
{
	return ethertype == ETH_P_8021Q || ethertype == ETH_P_8021AD;
}

/*
 * Fill @f from the headers at @p. Returns STEER_TAKEN when this is RoCEv2 (whether a rule wants it
 * is the caller's question), else the counter that says why not.
 */
static __always_inline enum steer_counter parse(const __u8 *p, const __u8 *end, struct flow *f)
{
	__u16 type;

	f->vid = STEER_UNTAGGED;
	if (p + ETH_HLEN > end)
		return STEER_RUNT;
	type = load16(p + 12);
	p += ETH_HLEN;
	if (type == ETH_P_8021Q) {
		if (p + VLAN_HLEN > end)
			return STEER_RUNT;
		f->vid = load16(p) & VLAN_VID_MASK;
		if (f->vid == STEER_UNTAGGED)
			return STEER_OTHER; /* a reserved id, and our index for "no tag" */
		if (!f->vid)
			f->vid = STEER_UNTAGGED; /* a priority tag: as frame_parse() has it */
		type = load16(p + 2);
		p += VLAN_HLEN;
	}
	if (is_tag(type))
		return STEER_TAGS;

	if (type == ETH_P_IP) {
		if (p + IP4_HLEN > end)
			return STEER_RUNT;
		if (p[0] >> 4 != 4 || p[9] != IPPROTO_UDP)
			return STEER_OTHER;
		if (p[0] != 0x45 || load16(p + 6) & IP4_MORE_OR_OFFSET)
			return STEER_FRAGMENT;
		v4_mapped(f->src.addr, p + 12);
		v4_mapped(f->dst.addr, p + 16);
		p += IP4_HLEN;
	} else if (type == ETH_P_IPV6) {
		if (p + IP6_HLEN > end)
			return STEER_RUNT;
		if (p[0] >> 4 != 6)
			return STEER_OTHER;
		if (p[6] == NEXTHDR_HOP || p[6] == NEXTHDR_ROUTING || p[6] == NEXTHDR_FRAGMENT ||
		    p[6] == NEXTHDR_DEST)
			return STEER_FRAGMENT;
		if (p[6] != IPPROTO_UDP)
			return STEER_OTHER;
		__builtin_memcpy(f->src.addr, p + 8, 16);
		__builtin_memcpy(f->dst.addr, p + 24, 16);
		p += IP6_HLEN;
	} else {
		return STEER_OTHER;
	}

	if (p + UDP_HLEN > end)
		return STEER_RUNT;
	if (load16(p + 2) != STEER_ROCE_PORT)
		return STEER_OTHER;
	if (p + UDP_HLEN + ROCE_MIN > end)
		return STEER_RUNT;
	p += UDP_HLEN;
	f->dqpn = (__u32)p[5] << 16 | load16(p + 6);
	return STEER_TAKEN;
}

static __always_inline enum steer_counter parse_frame(struct xdp_md *ctx, __u64 len, struct flow *f)
{
	const __u8 *data = (const __u8 *)(long)ctx->data;
	const __u8 *end = (const __u8 *)(long)ctx->data_end;
	__u8 copy[HEADERS_MAX];

	if (data + HEADERS_MAX <= end || end - data >= len)
		return parse(data, end, f);
	/* So short a frame never has several buffers; if it had, it would pass up. */
	if (bpf_xdp_load_bytes(ctx, 0, copy, sizeof(copy)))
		return STEER_RUNT;
	return parse(copy, copy + sizeof(copy), f);
}

static __always_inline __u64 rules_of(void *trie, const struct steer_prefix *key)
{
	__u64 *rules = bpf_map_lookup_elem(trie, key);

	return rules ? *rules : 0;
}

/* Pass RoCEv2 up to the bridge instead of to the daemon, counted as @why, unless it is held. */
static __always_inline int pass_up(__u32 port, enum steer_counter why,
				   const volatile struct steer_config *cfg, const struct flow *f)
{
	struct steer_held key;

	if (!cfg->held)
		return verdict(port, why, XDP_PASS);
	__builtin_memcpy(key.src, f->src.addr, sizeof(key.src));
	__builtin_memcpy(key.dst, f->dst.addr, sizeof(key.dst));
	key.dqpn = f->dqpn;
	key.vid = f->vid;
	if (bpf_map_lookup_elem(&steer_held, &key))
		return verdict(port, STEER_FENCED, XDP_DROP);
	return verdict(port, why, XDP_PASS);
}

static __always_inline void unwanted(enum steer_side side, const struct flow *f)
{
	__u32 i = side;
	struct steer_unwanted *u = bpf_map_lookup_elem(&steer_unwanted, &i);

	if (!u || u->count++ % STEER_UNWANTED_EACH)
		return;
	__builtin_memcpy(u->src, f->src.addr, sizeof(u->src));
	__builtin_memcpy(u->dst, f->dst.addr, sizeof(u->dst));
	u->vid = f->vid;
	u->at_ns = bpf_ktime_get_ns();
}

/* Which of the interfaces of its side the packet came in by. */
static __always_inline __u32 member(const struct xdp_md *ctx, enum steer_side side,
				    const volatile struct steer_config *cfg)
{
#pragma unroll
	for (__u32 m = 1; m < STEER_MEMBERS; m++)
		if (cfg->ifindex[STEER_PORT(side, m)] == ctx->ingress_ifindex)
			return m;
	return 0;
}

static __always_inline int steer(struct xdp_md *ctx, enum steer_side side, void *src_trie,
				 void *dst_trie, void *sockets)
{
	__u64 len = bpf_xdp_get_buff_len(ctx);
	const volatile struct steer_config *cfg;
	__u32 zero = 0, set, vlan, m, port, queue;
	enum steer_counter c;
	struct flow f;
	__u64 heartbeat, *rules;

	cfg = bpf_map_lookup_elem(&steer_config, &zero);
	if (!cfg)
		return XDP_PASS;
	m = member(ctx, side, cfg);
	port = STEER_PORT(side, m);
	c = parse_frame(ctx, len, &f);
	if (c != STEER_TAKEN)
		return verdict(port, c, XDP_PASS);

	set = cfg->set;
	f.src.plen = f.dst.plen = STEER_SET_BITS + 128;
	f.src.set = f.dst.set = set;
	vlan = STEER_VLAN_INDEX(set, f.vid);
	rules = bpf_map_lookup_elem(&steer_vlan, &vlan);
	if (!rules || !(*rules & rules_of(src_trie, &f.src) & rules_of(dst_trie, &f.dst))) {
		unwanted(side, &f);
		return pass_up(port, STEER_NO_RULE, cfg, &f);
	}

	if (len > cfg->max_frame || (cfg->linear_only && (__u64)(ctx->data_end - ctx->data) < len))
		return pass_up(port, STEER_TOO_LONG, cfg, &f);
	/* Signed: another CPU may write a heartbeat after we read the clock: that is not stale. */
	heartbeat = cfg->heartbeat_ns;
	if (!heartbeat || (__s64)(bpf_ktime_get_ns() - heartbeat) > (__s64)cfg->stale_ns)
		return pass_up(port, STEER_STALE, cfg, &f);
	/* lookup and redirect in one: between the two the socket could vanish */
	queue = ctx->rx_queue_index;
	if (queue >= STEER_QUEUES ||
	    bpf_redirect_map(sockets, STEER_SOCKET(m, queue), XDP_PASS) != XDP_REDIRECT)
		return pass_up(port, STEER_NO_SOCKET, cfg, &f);
	return verdict(port, STEER_TAKEN, XDP_REDIRECT);
}

/* Not "xdp.frags": libbpf would then force the flag, which user space decides on. */
SEC("xdp")
int steer_lan(struct xdp_md *ctx)
{
	return steer(ctx, STEER_LAN, &steer_near, &steer_far, &steer_xsk_lan);
}

SEC("xdp")
int steer_wan(struct xdp_md *ctx)
{
	return steer(ctx, STEER_WAN, &steer_far, &steer_near, &steer_xsk_wan);
}

char _license[] SEC("license") = "Dual BSD/GPL";

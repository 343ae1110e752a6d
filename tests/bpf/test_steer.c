// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The XDP program, frame by frame (steer_rig.h): each row says what goes in, on which side, and
 * which counter must move.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "tests/bpf/steer_rig.h"

/* what one page holds of a test frame: 4096 - 256 headroom - 320 at the end */
#define PAGE_LINEAR 3520

static const struct {
	const char *name;
	enum steer_side side;
	struct steer_frame f;
	enum steer_counter want;
} table[] = {
	{"hit", STEER_LAN, {LAN4}, STEER_TAKEN},
	{"hit from the WAN", STEER_WAN, {WAN4}, STEER_TAKEN},
	{"LAN's direction on the WAN", STEER_WAN, {LAN4}, STEER_NO_RULE},
	{"WAN's direction on the LAN", STEER_LAN, {WAN4}, STEER_NO_RULE},
	{"near source, unknown destination",
	 STEER_LAN,
	 {.src = "10.1.2.3", .dst = "10.4.0.1"},
	 STEER_NO_RULE},
	{"unknown source", STEER_LAN, {.src = "10.4.2.3", .dst = "10.2.0.1"}, STEER_NO_RULE},
	{"both near", STEER_LAN, {.src = "10.1.2.3", .dst = "10.1.2.4"}, STEER_NO_RULE},
	{"first address of a prefix",
	 STEER_LAN,
	 {.src = "10.1.0.0", .dst = "10.2.0.0"},
	 STEER_TAKEN},
	{"last address of a prefix",
	 STEER_LAN,
	 {.src = "10.1.255.255", .dst = "10.2.255.255"},
	 STEER_TAKEN},
	{"one below", STEER_LAN, {.src = "10.0.255.255", .dst = "10.2.0.0"}, STEER_NO_RULE},
	{"one above", STEER_LAN, {.src = "10.2.0.0", .dst = "10.2.0.0"}, STEER_NO_RULE},
	{"near of rule 0, far of rule 1",
	 STEER_LAN,
	 {.src = "10.1.2.3", .dst = "10.3.0.1"},
	 STEER_NO_RULE},
	{"covered by a shorter prefix",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.2.0.1"},
	 STEER_TAKEN},
	{"last rule, prefix of no bits",
	 STEER_LAN,
	 {.src = "10.9.1.1", .dst = "192.0.2.1"},
	 STEER_TAKEN},
	{"0/0 covers a longer prefix of another rule",
	 STEER_LAN,
	 {.src = "10.9.1.1", .dst = "10.2.0.1"},
	 STEER_TAKEN},

	{"VLAN",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100)}},
	 STEER_TAKEN},
	{"VLAN, from the WAN",
	 STEER_WAN,
	 {.src = "10.3.0.1", .dst = "10.1.5.9", .vlan = {TAG(100)}},
	 STEER_TAKEN},
	{"VLAN with priority bits",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100 | 0xf000)}},
	 STEER_TAKEN},
	{"VLAN rule, no tag", STEER_LAN, {.src = "10.1.5.9", .dst = "10.3.0.1"}, STEER_NO_RULE},
	{"untagged rule, tag", STEER_LAN, {LAN4, .vlan = {TAG(100)}}, STEER_NO_RULE},
	{"wrong VLAN",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(101)}},
	 STEER_NO_RULE},
	{"right VLAN, wrong prefix",
	 STEER_LAN,
	 {.src = "10.1.6.9", .dst = "10.3.0.1", .vlan = {TAG(100)}},
	 STEER_NO_RULE},
	{"priority tag", STEER_LAN, {LAN6, .vlan = {TAG(0)}}, STEER_TAKEN},
	{"priority tag, rule for untagged", STEER_LAN, {LAN4, .vlan = {TAG(0)}}, STEER_TAKEN},
	{"priority bits, rule for untagged", STEER_LAN, {LAN4, .vlan = {TAG(0x6000)}}, STEER_TAKEN},
	{"priority tag, VLAN rule",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(0)}},
	 STEER_NO_RULE},
	{"priority tag, then a VLAN", STEER_LAN, {LAN4, .vlan = {TAG(0), TAG(7)}}, STEER_TAGS},
	{"reserved VLAN id", STEER_LAN, {LAN4, .vlan = {TAG(4095)}}, STEER_OTHER},
	{"service tag and VLAN tag",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100), TAG(7)}, .tpid = 0x88a8},
	 STEER_TAGS},
	{"service tag, the VLAN of a rule within",
	 STEER_WAN,
	 {.src = "10.3.0.1", .dst = "10.1.5.9", .vlan = {TAG(7), TAG(100)}, .tpid = 0x88a8},
	 STEER_TAGS},
	{"service tag only",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100)}, .tpid = 0x88a8},
	 STEER_TAGS},
	{"service tag of VLAN 0", STEER_LAN, {LAN4, .vlan = {TAG(0)}, .tpid = 0x88a8}, STEER_TAGS},
	{"two tags of type 0x8100",
	 STEER_LAN,
	 {.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100), TAG(7)}},
	 STEER_TAGS},
	{"QinQ, IPv6", STEER_LAN, {LAN6, .vlan = {TAG(100), TAG(7)}, .tpid = 0x88a8}, STEER_TAGS},
	{"three tags", STEER_LAN, {LAN4, .vlan = {TAG(100), TAG(7), TAG(8)}}, STEER_TAGS},

	{"IPv6", STEER_LAN, {LAN6}, STEER_TAKEN},
	{"IPv6 from the WAN", STEER_WAN, {.src = "fd00:2::1", .dst = "fd00:1::1"}, STEER_TAKEN},
	{"IPv6, no rule", STEER_LAN, {.src = "fd00:3::1", .dst = "fd00:2::1"}, STEER_NO_RULE},
	{"IPv6, wrong side", STEER_WAN, {LAN6}, STEER_NO_RULE},
	{"IPv6, reserved next header", STEER_LAN, {LAN6, .proto = 0xff}, STEER_OTHER},
	{"IPv6 routing header", STEER_LAN, {LAN6, .proto = 43}, STEER_FRAGMENT},
	{"IPv6 fragment header", STEER_LAN, {LAN6, .proto = 44}, STEER_FRAGMENT},
	{"IPv6 destination options", STEER_LAN, {LAN6, .proto = 60}, STEER_FRAGMENT},
	{"IPv6 TCP", STEER_LAN, {LAN6, .proto = 6}, STEER_OTHER},
	{"IPv6 with version 4", STEER_LAN, {LAN6, .version = 4}, STEER_OTHER},

	{"first fragment", STEER_LAN, {LAN4, .frag = 0x2000}, STEER_FRAGMENT},
	{"later fragment", STEER_LAN, {LAN4, .frag = 0x0001}, STEER_FRAGMENT},
	{"last fragment", STEER_LAN, {LAN4, .frag = 0x1fff}, STEER_FRAGMENT},
	{"do not fragment", STEER_LAN, {LAN4, .frag = 0x4000}, STEER_TAKEN},
	{"IPv4 options", STEER_LAN, {LAN4, .options = 1}, STEER_FRAGMENT},
	{"as many as can be", STEER_LAN, {LAN4, .options = 10}, STEER_FRAGMENT},
	{"IPv4 with version 6", STEER_LAN, {LAN4, .version = 6}, STEER_OTHER},

	{"another UDP port", STEER_LAN, {LAN4, .dport = 4790}, STEER_OTHER},
	{"port with bytes swapped", STEER_LAN, {LAN4, .dport = 0xb712}, STEER_OTHER},
	{"TCP", STEER_LAN, {LAN4, .proto = 6}, STEER_OTHER},
	{"ICMP", STEER_LAN, {LAN4, .proto = 1}, STEER_OTHER},
	{"ARP", STEER_LAN, {LAN4, .ethertype = 0x0806}, STEER_OTHER},
	{"RoCEv1", STEER_LAN, {LAN6, .ethertype = 0x8915}, STEER_OTHER},
	{"LLDP", STEER_LAN, {LAN4, .ethertype = 0x88cc}, STEER_OTHER},
	{"802.3 length", STEER_LAN, {LAN4, .ethertype = 0x0040}, STEER_OTHER},
};

static void frames(void **state)
{
	uint8_t frame[BUF];
	struct steer_frame hop = {LAN6};
	uint32_t len;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		expect(table[i].name, table[i].side, &table[i].f, table[i].want);
	/* Hop-by-hop is next header 0, which the table takes for "UDP". */
	len = steer_frame_build(frame, &hop, NULL);
	frame[14 + 6] = 0;
	assert_int_equal(judge("hop-by-hop", STEER_LAN, frame, len, 0), STEER_FRAGMENT);
}

static const struct steer_frame whole[] = {
	{LAN4},
	{LAN6},
	{.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100)}},
	{.src = "10.1.5.9", .dst = "10.3.0.1", .vlan = {TAG(100 | 0x6000)}},
	{LAN6, .vlan = {TAG(0)}},
};

/* Cut off at every length: a runt as long as a BTH with its ICRC is not there, taken from then on.
 */
/* Of packets that no rule wants the first is kept, then one in so many. */
static void unwanted(void **state)
{
	const struct steer_frame first = {.src = "10.4.2.3", .dst = "10.2.0.1"};
	const struct steer_frame later = {.src = "fd00:9::1", .dst = "fd00:2::1", .vlan = {TAG(7)}};
	struct steer_unwanted u;
	struct ip_addr a;
	cpu_set_t one;

	(void)state;
	CPU_ZERO(&one); /* each has a map of its own */
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_false(steer_prog_unwanted(&prog, STEER_WAN, &u));
	for (int i = 0; i < STEER_UNWANTED_EACH; i++)
		expect("unwanted", STEER_WAN, &first, STEER_NO_RULE);
	assert_true(steer_prog_unwanted(&prog, STEER_WAN, &u));
	assert_int_equal(ip_addr_parse(first.src, &a), 0);
	assert_memory_equal(u.src, a.b, sizeof(u.src));
	assert_int_equal(ip_addr_parse(first.dst, &a), 0);
	assert_memory_equal(u.dst, a.b, sizeof(u.dst));
	assert_int_equal(u.vid, STEER_UNTAGGED);
	assert_true(u.at_ns && u.at_ns <= now());
	expect("unwanted", STEER_WAN, &later, STEER_NO_RULE);
	assert_true(steer_prog_unwanted(&prog, STEER_WAN, &u));
	assert_int_equal(ip_addr_parse(later.src, &a), 0);
	assert_memory_equal(u.src, a.b, sizeof(u.src));
	assert_int_equal(u.vid, 7);
}

static void runts(void **state)
{
	uint8_t frame[BUF];
	uint32_t len, min, l;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		len = steer_frame_build(frame, &whole[i], &min);
		assert_true(min < len);
		for (l = 14; l <= len; l++) { /* test runs begin at 14 */
			enum steer_counter got = judge("runt", STEER_LAN, frame, l, 0);

			if (got != (l < min ? STEER_RUNT : STEER_TAKEN))
				fail_msg("frame %zu cut to %u: %s", i, l, counter_name[got]);
		}
	}
}

/* A driver may leave little or nothing of a long frame in the first buffer. */
static void short_first_buffer(void **state)
{
	struct steer_frame f;
	uint8_t frame[BUF];
	uint32_t len, l;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		f = whole[i];
		f.len = 300;
		len = steer_frame_build(frame, &f, NULL);
		if (i == 0 && run(STEER_LAN, frame, len, 100) == -EINVAL) {
			print_message(
				"this kernel cannot shorten the first buffer of a test frame\n");
			skip();
		}
		for (l = 14; l <= 120; l++)
			assert_int_equal(judge("short first buffer", STEER_LAN, frame, len, l),
					 STEER_TAKEN);
	}
	f = whole[0];
	f.len = 300;
	f.frag = 0x2000;
	len = steer_frame_build(frame, &f, NULL);
	assert_int_equal(judge("short first buffer, fragment", STEER_LAN, frame, len, 20),
			 STEER_FRAGMENT);
	prog.config->linear_only = 1;
	len = steer_frame_build(frame, &whole[0], NULL);
	assert_int_equal(judge("in one buffer", STEER_LAN, frame, len, 0), STEER_TAKEN);
	f.frag = 0;
	len = steer_frame_build(frame, &f, NULL);
	assert_int_equal(judge("in two buffers", STEER_LAN, frame, len, 200), STEER_TOO_LONG);
}

static void too_long(void **state)
{
	struct steer_frame f = {LAN4};

	(void)state;
	f.len = 4200;
	expect("4200 bytes", STEER_LAN, &f, STEER_TAKEN);
	f.len = 9000;
	expect("longest", STEER_LAN, &f, STEER_TAKEN);
	f.len = 9001;
	expect("one more", STEER_LAN, &f, STEER_TOO_LONG);
	prog.config->max_frame = 1500;
	f.len = 1500;
	expect("longest", STEER_LAN, &f, STEER_TAKEN);
	f.len = 1501;
	expect("one more", STEER_LAN, &f, STEER_TOO_LONG);

	/* without multi-buffer a frame must lie in one buffer, whatever its length */
	prog.config->max_frame = AFXDP_ONE_BUFFER;
	prog.config->linear_only = 1;
	f.len = PAGE_LINEAR;
	expect("one buffer", STEER_LAN, &f, STEER_TAKEN);
	f.len = PAGE_LINEAR + 1;
	expect("two buffers", STEER_LAN, &f, STEER_TOO_LONG);
}

static void heartbeat(void **state)
{
	const struct steer_frame hit = {LAN4}, miss = {LAN4, .dport = 1};

	(void)state;
	prog.config->stale_ns = 10000000000u; /* longer than a pause of this test can be */
	steer_prog_heartbeat(&prog, 0);
	expect("never", STEER_LAN, &hit, STEER_STALE);
	steer_prog_heartbeat(&prog, now() - prog.config->stale_ns - 1);
	expect("too old", STEER_LAN, &hit, STEER_STALE);
	expect("too old, not ours anyway", STEER_LAN, &miss, STEER_OTHER);
	steer_prog_heartbeat(&prog, now());
	expect("just now", STEER_LAN, &hit, STEER_TAKEN);
	steer_prog_heartbeat(&prog, now() + 1000000000u);
	expect("ahead of the program's clock", STEER_LAN, &hit, STEER_TAKEN);
}

static void no_socket(void **state)
{
	const struct steer_frame hit = {LAN4}, back = {WAN4};

	(void)state;
	set_socket(false);
	expect("no socket", STEER_LAN, &hit, STEER_NO_SOCKET);
	expect("no socket", STEER_WAN, &back, STEER_NO_SOCKET);
	set_socket(true);
	expect("socket", STEER_LAN, &hit, STEER_TAKEN);
}

/* Damaged frames: whatever comes, one verdict, no change, no error. */
static void garbage(void **state)
{
	uint8_t frame[BUF];
	unsigned int i, k;

	(void)state;
	srandom(1);
	for (i = 0; i < 20000; i++) {
		uint32_t len = steer_frame_build(frame, &whole[(size_t)random() % 5], NULL);

		for (k = (unsigned int)random() % 4; k; k--)
			frame[(uint32_t)random() % len] = (uint8_t)random();
		judge("garbage", (enum steer_side)(random() & 1), frame,
		      14 + (uint32_t)random() % (len - 13), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(unwanted, reset), /* first: what others leave would count */
		cmocka_unit_test_setup(frames, reset),
		cmocka_unit_test_setup(runts, reset),
		cmocka_unit_test_setup(short_first_buffer, reset),
		cmocka_unit_test_setup(too_long, reset),
		cmocka_unit_test_setup(heartbeat, reset),
		cmocka_unit_test_setup(no_socket, reset),
		cmocka_unit_test_setup(garbage, reset),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

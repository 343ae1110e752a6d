// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A third party on the wire: sends frames in the name of a host or of an appliance, with only what
 * such a party can know or guess. RoCEv2 frames of any opcode, PSN, QPN and payload, with the right
 * ICRC or a wrong one; connection manager datagrams; UDP datagrams with any payload. One frame, a
 * series over PSNs, or a flood.
 *
 * The tests of tests/attack are its users; the attacked appliance must not be able to tell its
 * frames from a host's except by their content. So the product's own wire library builds the
 * frames, and they are wrong only where an option says so.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lab/model/cm_emit.h"
#include "cli/wanem/pkt_ring.h"
#include "cli/wanem/prng.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define SECOND	   1000000000ull
#define TX_SLOTS   1024
#define BATCH	   32
#define UDP_HEADER (14 + 20 + 8)
#define UDP_MAX	   1472
#define HEADS	   512

enum mode { MODE_ROCE, MODE_CM, MODE_UDP, MODES };

static const char *const mode_names[MODES] = {"roce", "cm", "udp"};

static struct {
	enum mode mode;
	const char *ifname;
	struct ip_addr from, to;
	uint8_t from_mac[6], to_mac[6];
	uint64_t count, rate, seed, qpns, hosts;
	bool bad_icrc, guess_icrc, random_psn, ackreq;
	/* roce */
	uint32_t opcode, qpn, psn, step, payload, fill, syndrome, msn, va, rkey, length;
	/* cm */
	struct cm cm;
	/* udp */
	uint32_t sport, dport, junk;
} opt = {
	.from_mac = {2, 0x66, 0x66, 0x66, 0x66, 0x66},
	.to_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	.count = 1,
	.seed = 1,
	.qpns = 1,
	.hosts = 1,
	.opcode = OP_SEND_ONLY,
	.step = 1,
	.payload = 64,
	.fill = 0xee,
	.syndrome = AETH_ACK_UNLIMITED,
	.cm = {.type = CM_DREQ, .rc = true, .path_mtu = 1024, .transaction_id = 0x6c68},
	.sport = 4797,
	.dport = 4797,
};

static const char help[] =
	"usage: inject roce|cm|udp --if IF --from IP --to IP [option ...]\n"
	"Sends frames in another's name and prints {\"sent\":N,\"refused\":N}.\n"
	"  --from-mac M (02:66:66:66:66:66)  --to-mac M (broadcast)\n"
	"  --count N (1)               frames\n"
	"  --rate N                    frames per second (as fast as it goes)\n"
	"  --seed N (1)                of all that is random\n"
	"  --hosts N (1)               addresses: N of each side, drawn, counting up from --from "
	"and --to\n"
	"roce and cm:\n"
	"  --bad-icrc                  the ICRC is wrong by one bit\n"
	"  --guess-icrc                it is combined with 32 random bits: a seal, guessed\n"
	"roce:\n"
	"  --opcode N (4: SEND ONLY)   17: ACK, 129: CNP; any other of 256, with or without a row\n"
	"  --qpn N (0)                 destination   --qpns N (1): drawn among N of them, each "
	"with its\n"
	"                              own UDP source port\n"
	"  --psn N (0)                 of the first frame   --step N (1): from frame to frame\n"
	"  --random-psn                drawn for each frame\n"
	"  --payload BYTES (64)        --fill BYTE (0xee)   --ackreq\n"
	"  --va N --rkey N --length N  of the RETH or AtomicETH, where the opcode has one\n"
	"  --syndrome N (0x1f) --msn N of the AETH, where it has one; 0x60 to 0x63 are NAKs\n"
	"cm:\n"
	"  --type req|rep|rtu|dreq     (dreq)\n"
	"  --local-id N --remote-id N  communication ids, as the sender sees them\n"
	"  --own-qpn N                 REQ, REP: the sender's   --qpn N: DREQ: the receiver's\n"
	"  --starting-psn N\n"
	"udp (IPv4):\n"
	"  --ports FROM:TO (4797:4797)\n"
	"  --head HEX                  the datagram begins with it   --junk BYTES (0): random ones "
	"behind\n"
	"  --heads FILE                the same with a line of FILE for each, and --count as "
	"many\n";

enum option_id {
	O_IF = 1,
	O_FROM,
	O_TO,
	O_FROM_MAC,
	O_TO_MAC,
	O_COUNT,
	O_RATE,
	O_SEED,
	O_HOSTS,
	O_BAD_ICRC,
	O_GUESS_ICRC,
	O_OPCODE,
	O_QPN,
	O_QPNS,
	O_PSN,
	O_STEP,
	O_RANDOM_PSN,
	O_PAYLOAD,
	O_FILL,
	O_ACKREQ,
	O_VA,
	O_RKEY,
	O_LENGTH,
	O_SYNDROME,
	O_MSN,
	O_TYPE,
	O_LOCAL_ID,
	O_REMOTE_ID,
	O_OWN_QPN,
	O_STARTING_PSN,
	O_PORTS,
	O_HEAD,
	O_HEADS,
	O_JUNK,
	O_HELP,
};

static const struct option longs[] = {
	{"if", 1, NULL, O_IF},
	{"from", 1, NULL, O_FROM},
	{"to", 1, NULL, O_TO},
	{"from-mac", 1, NULL, O_FROM_MAC},
	{"to-mac", 1, NULL, O_TO_MAC},
	{"count", 1, NULL, O_COUNT},
	{"rate", 1, NULL, O_RATE},
	{"seed", 1, NULL, O_SEED},
	{"hosts", 1, NULL, O_HOSTS},
	{"bad-icrc", 0, NULL, O_BAD_ICRC},
	{"guess-icrc", 0, NULL, O_GUESS_ICRC},
	{"opcode", 1, NULL, O_OPCODE},
	{"qpn", 1, NULL, O_QPN},
	{"qpns", 1, NULL, O_QPNS},
	{"psn", 1, NULL, O_PSN},
	{"step", 1, NULL, O_STEP},
	{"random-psn", 0, NULL, O_RANDOM_PSN},
	{"payload", 1, NULL, O_PAYLOAD},
	{"fill", 1, NULL, O_FILL},
	{"ackreq", 0, NULL, O_ACKREQ},
	{"va", 1, NULL, O_VA},
	{"rkey", 1, NULL, O_RKEY},
	{"length", 1, NULL, O_LENGTH},
	{"syndrome", 1, NULL, O_SYNDROME},
	{"msn", 1, NULL, O_MSN},
	{"type", 1, NULL, O_TYPE},
	{"local-id", 1, NULL, O_LOCAL_ID},
	{"remote-id", 1, NULL, O_REMOTE_ID},
	{"own-qpn", 1, NULL, O_OWN_QPN},
	{"starting-psn", 1, NULL, O_STARTING_PSN},
	{"ports", 1, NULL, O_PORTS},
	{"head", 1, NULL, O_HEAD},
	{"heads", 1, NULL, O_HEADS},
	{"junk", 1, NULL, O_JUNK},
	{"help", 0, NULL, O_HELP},
	{0},
};

/* What datagrams begin with, in turn. */
static struct {
	uint32_t len;
	uint8_t data[UDP_MAX];
} heads[HEADS];
static uint32_t nheads;

static struct prng prng;
static struct rc_header header;
static uint8_t payload[PAYLOAD_MAX];

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Frames */

static struct ip_addr one_of(struct ip_addr first)
{
	first.b[15] = (uint8_t)(first.b[15] + prng_below(&prng, (uint32_t)opt.hosts));
	return first;
}

static uint32_t roce_frame(uint8_t *out, uint64_t number)
{
	uint32_t choice = prng_below(&prng, (uint32_t)opt.qpns);
	struct ip_addr from = one_of(opt.from), to = one_of(opt.to);
	struct build_spec s = {
		.opcode = (uint8_t)opt.opcode,
		.dqpn = (opt.qpn + choice) & PSN_MASK,
		.psn = psn_add(opt.psn, (uint32_t)number * opt.step),
		.ackreq = opt.ackreq,
		.va = opt.va,
		.rkey = opt.rkey,
		.length = opt.length,
		.syndrome = (uint8_t)opt.syndrome,
		.msn = opt.msn,
		.payload = payload,
		.payload_len = opt.payload,
	};
	struct template t;

	template_make(&t, opt.from_mac, opt.to_mac, FRAME_VLAN_NONE, &from, &to,
		      (uint16_t)(0xc000 | (choice & 0x3fff)));
	s.t = &t;
	if (opt.random_psn)
		s.psn = prng_below(&prng, PSN_MASK + 1);
	if (s.opcode == OP_CNP)
		return build_cnp(out, &t, s.dqpn);
	if (s.opcode == OP_ACK)
		return build_ack(out, &t, s.dqpn, s.psn, s.syndrome, s.msn);
	return build_packet(out, &s);
}

static uint32_t udp_datagram(uint8_t *out, uint64_t number)
{
	uint32_t which = nheads ? (uint32_t)(number % nheads) : 0, head = heads[which].len;
	uint32_t len = head + opt.junk > UDP_MAX ? UDP_MAX : head + opt.junk;
	struct ip_addr from = one_of(opt.from);
	uint8_t *ip = out + 14, *udp = ip + 20;

	memcpy(out, opt.to_mac, 6);
	memcpy(out + 6, opt.from_mac, 6);
	put_be16(out + 12, 0x0800);
	memset(ip, 0, 28);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(28 + len));
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, from.b + 12, 4);
	memcpy(ip + 16, opt.to.b + 12, 4);
	put_be16(udp, (uint16_t)opt.sport);
	put_be16(udp + 2, (uint16_t)opt.dport);
	put_be16(udp + 4, (uint16_t)(8 + len));
	memcpy(udp + 8, heads[which].data, head);
	for (uint32_t i = head; i < len; i++)
		udp[8 + i] = (uint8_t)prng_next(&prng);
	put_be16(ip + 10, ip4_csum(ip));
	return UDP_HEADER + len;
}

static uint32_t next_frame(uint8_t *out, uint64_t number)
{
	uint32_t len;

	if (opt.mode == MODE_UDP)
		return udp_datagram(out, number);
	if (opt.mode == MODE_CM)
		len = cm_emit(out, &header, &opt.from, &opt.to, &opt.cm, (uint32_t)number + 5);
	else
		len = roce_frame(out, number);
	if (opt.bad_icrc)
		out[len - 1] ^= 1;
	if (opt.guess_icrc)
		put_le32(out + len - ICRC_LEN,
			 get_le32(out + len - ICRC_LEN) ^ (uint32_t)prng_next(&prng));
	return len;
}

/* Frames that are due by now: all of them without a rate. */
static uint64_t due(uint64_t t0)
{
	uint64_t n;

	if (!opt.rate)
		return opt.count;
	n = (uint64_t)((double)(clock_ns() - t0) / SECOND * (double)opt.rate) + 1;
	return n < opt.count ? n : opt.count;
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = {.tv_nsec = (long)ns};

	nanosleep(&ts, NULL);
}

static int send_all(struct pkt_ring *ring)
{
	uint64_t t0 = clock_ns(), sent = 0, refused = 0;

	while (sent < opt.count) {
		uint64_t upto = due(t0), batch = 0;

		for (; sent < upto && batch < BATCH; batch++) {
			uint8_t *buf = pkt_ring_buf(ring);

			if (!buf) {
				refused++;
				break;
			}
			pkt_ring_queue(ring, next_frame(buf, sent++));
		}
		pkt_ring_flush(ring);
		if (batch < BATCH)
			pause_ns(50000);
	}
	/* The kernel has what was queued once the whole ring is free again. */
	for (int i = 0; i < 1000 && !pkt_ring_buf(ring); i++)
		pause_ns(1000000);
	pkt_ring_flush(ring);
	printf("{\"sent\":%" PRIu64 ",\"refused\":%" PRIu64 "}\n", sent, refused);
	return 0;
}

/* Options */

static void bad(const char *option, const char *value, const char *mend)
{
	fprintf(stderr, "inject: --%s %s: %s\n", option, value, mend);
	exit(2);
}

static uint32_t number(const char *option, const char *text, uint64_t max)
{
	char *end;
	uint64_t v = strtoull(text, &end, 0);
	char mend[64];

	if (end == text || *end || v > max) {
		snprintf(mend, sizeof(mend), "must be a number up to %" PRIu64, max);
		bad(option, text, mend);
	}
	return (uint32_t)v;
}

static void address(const char *option, const char *text, struct ip_addr *a)
{
	if (ip_addr_parse(text, a))
		bad(option, text, "must be an IPv4 or IPv6 address");
}

static void mac(const char *option, const char *text, uint8_t *m)
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4, m + 5) !=
	    6)
		bad(option, text, "must be six bytes in hex with colons between");
}

static void hex(const char *option, const char *text)
{
	uint32_t n = 0;

	if (nheads == HEADS)
		return; /* enough */
	for (; text[2 * n] && text[2 * n] != '\n'; n++) {
		if (n == UDP_MAX || sscanf(text + 2 * n, "%2hhx", &heads[nheads].data[n]) != 1 ||
		    !text[2 * n + 1] || text[2 * n + 1] == '\n')
			bad(option, text, "must be up to 1472 bytes in hex");
	}
	heads[nheads++].len = n;
}

static void hex_lines(const char *option, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[2 * UDP_MAX + 3];

	if (!f)
		bad(option, path, "cannot be read");
	while (fgets(line, sizeof(line), f))
		hex(option, line);
	fclose(f);
	if (!nheads)
		bad(option, path, "has no lines");
	opt.count = nheads;
}

static void cm_type(const char *option, const char *text)
{
	static const struct {
		const char *name;
		enum cm_type type;
	} types[] = {{"req", CM_REQ}, {"rep", CM_REP}, {"rtu", CM_RTU}, {"dreq", CM_DREQ}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcmp(text, types[i].name)) {
			opt.cm.type = types[i].type;
			return;
		}
	}
	bad(option, text, "must be req, rep, rtu or dreq");
}

static void ports(const char *option, const char *text)
{
	if (sscanf(text, "%" SCNu32 ":%" SCNu32, &opt.sport, &opt.dport) != 2 ||
	    opt.sport > 65535 || opt.dport > 65535)
		bad(option, text, "must be two port numbers with a colon between");
}

/* Where the number of a plain option goes, and its limit. */
static uint32_t *plain(enum option_id id, uint64_t *max)
{
	*max = UINT32_MAX;
	switch (id) {
	case O_OPCODE:
		*max = 255;
		return &opt.opcode;
	case O_PSN:
		*max = PSN_MASK;
		return &opt.psn;
	case O_STEP:
		*max = PSN_MASK;
		return &opt.step;
	case O_PAYLOAD:
		*max = PAYLOAD_MAX;
		return &opt.payload;
	case O_FILL:
		*max = 255;
		return &opt.fill;
	case O_SYNDROME:
		*max = 255;
		return &opt.syndrome;
	case O_MSN:
		*max = PSN_MASK;
		return &opt.msn;
	case O_JUNK:
		*max = UDP_MAX;
		return &opt.junk;
	case O_VA:
		return &opt.va;
	case O_RKEY:
		return &opt.rkey;
	case O_LENGTH:
		return &opt.length;
	case O_LOCAL_ID:
		return &opt.cm.local_id;
	case O_REMOTE_ID:
		return &opt.cm.remote_id;
	case O_OWN_QPN:
		*max = PSN_MASK;
		return &opt.cm.lqpn;
	case O_STARTING_PSN:
		*max = PSN_MASK;
		return &opt.cm.starting_psn;
	default:
		return NULL;
	}
}

static void take(enum option_id id, const char *name, const char *arg)
{
	uint64_t max;
	uint32_t *where = plain(id, &max);

	opt.bad_icrc |= id == O_BAD_ICRC;
	opt.guess_icrc |= id == O_GUESS_ICRC;
	opt.random_psn |= id == O_RANDOM_PSN;
	opt.ackreq |= id == O_ACKREQ;
	if (where) {
		*where = number(name, arg, max);
		return;
	}
	switch (id) {
	case O_IF:
		opt.ifname = arg;
		break;
	case O_FROM:
		address(name, arg, &opt.from);
		break;
	case O_TO:
		address(name, arg, &opt.to);
		break;
	case O_FROM_MAC:
		mac(name, arg, opt.from_mac);
		break;
	case O_TO_MAC:
		mac(name, arg, opt.to_mac);
		break;
	case O_COUNT:
		opt.count = number(name, arg, UINT32_MAX);
		break;
	case O_RATE:
		opt.rate = number(name, arg, UINT32_MAX);
		break;
	case O_SEED:
		opt.seed = number(name, arg, UINT32_MAX);
		break;
	case O_HOSTS:
		opt.hosts = number(name, arg, 255);
		break;
	case O_QPN:
		opt.qpn = opt.cm.rqpn = number(name, arg, PSN_MASK);
		break;
	case O_QPNS:
		opt.qpns = number(name, arg, PSN_MASK + 1);
		break;
	case O_TYPE:
		cm_type(name, arg);
		break;
	case O_PORTS:
		ports(name, arg);
		break;
	case O_HEAD:
		hex(name, arg);
		break;
	case O_HEADS:
		hex_lines(name, arg);
		break;
	case O_HELP:
		fputs(help, stdout);
		exit(0);
	default:
		break;
	}
}

static void parse_options(int argc, char **argv)
{
	static const struct ip_addr none;
	int id, which = 0;

	while (argc > 1 && opt.mode < MODES && strcmp(argv[1], mode_names[opt.mode]))
		opt.mode++;
	if (argc > 1 && !strcmp(argv[1], "--help")) {
		fputs(help, stdout);
		exit(0);
	}
	if (argc < 2 || opt.mode == MODES) {
		fputs(help, stderr);
		exit(2);
	}
	while ((id = getopt_long(argc - 1, argv + 1, "", longs, &which)) != -1) {
		if (id == '?')
			exit(2); /* getopt_long() has printed why */
		take((enum option_id)id, longs[which].name, optarg);
	}
	if (optind != argc - 1 || !opt.ifname || !memcmp(&opt.from, &none, sizeof(none)) ||
	    !memcmp(&opt.to, &none, sizeof(none))) {
		fputs("inject: --if, --from and --to are needed, and nothing besides options; see "
		      "--help\n",
		      stderr);
		exit(2);
	}
	if (opt.mode == MODE_UDP && (!ip_addr_is_v4(&opt.from) || !ip_addr_is_v4(&opt.to))) {
		fputs("inject: udp is for IPv4 addresses\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct pkt_ring *ring;

	parse_options(argc, argv);
	prng_init(&prng, opt.seed);
	memset(payload, (int)opt.fill, sizeof(payload));
	rc_header_init(&header, opt.from_mac, opt.to_mac, FRAME_VLAN_NONE, &opt.from, &opt.to,
		       0xc0de);
	ring = pkt_ring_open(opt.ifname, 32, TX_SLOTS, false, PKT_RING_FRAME_MAX);
	if (!ring)
		return 1;
	send_all(ring);
	pkt_ring_close(ring);
	return 0;
}

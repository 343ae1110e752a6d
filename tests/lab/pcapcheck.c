// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The offline judge of a run: reads captures from both sides of one or both appliances and reports
 * where a rule of the protocol, or of custody, was broken. The rules are in
 * tests/lab/check/check.h.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/check/check.h"

static const char usage_text[] =
	"usage: pcapcheck [OPTION...] [--lan-a FILE] [--wan-a FILE] [--wan-b FILE] [--lan-b FILE]\n"
	"       pcapcheck --bare [OPTION...] FILE...\n"
	"       pcapcheck --capture INTERFACE FILE [--seconds N]\n"
	"\n"
	"Judges captures of one run. Both directions of a link are in one file. The chain is\n"
	"    host A -- lan-a -- appliance A -- wan-a -- wan-b -- appliance B -- lan-b -- host B\n"
	"and any of the four may be missing; what needs a missing one is not judged. With the near "
	"WAN, ACKs\n"
	"that the appliance made are told from those that it passed. An AF_XDP socket hides frames "
	"from\n"
	"captures on its own interface: capture at the other end of the veth pair, or let qemu do "
	"it\n"
	"(-object filter-dump).\n"
	"\n"
	"  --local IP        a host at site A, once for each; else learned from the order of "
	"times. With --bare:\n"
	"                    hosts at whose side the captures were taken\n"
	"  --single SITE     only site a or b has an appliance, in single mode\n"
	"  --bare            no appliance: rules of the protocol only; each FILE by itself\n"
	"  --held            lanes were in custody before the captures began, and stay so\n"
	"  --prefetch      PSNs may differ between the two LANs, and READs may be asked ahead\n"
	"  --path-mtu N      else learned from the packets\n"
	"  --damage          the WAN damages packets: malformed frames and wrong ICRCs are no "
	"violation\n"
	"  --lan-loss        the LANs lose packets: what reaches the responder twice is not "
	"judged\n"
	"  --stalls          the LANs were captured by hosts that stand still at times (qemu on a "
	"busy machine): a\n"
	"                    frame that follows a pause may have come any time in it\n"
	"  --repeats N       the far appliance says that it repeated so many requests by itself: "
	"such are not judged\n"
	"  --pass-repeats    what an appliance sent over the WAN again although it had arrived may "
	"reach the\n"
	"                    responder again, and the ACK to an appliance's repeat the requester\n"
	"  --skew-ms N       clocks may differ so much beyond what can be learned from the packets "
	"(0)\n"
	"  --lan-ms N        an ACK and a repeat may pass each other on a LAN for so long, which "
	"is\n"
	"                    how far an appliance on a busy machine may lag behind (100)\n"
	"  --grace-ms N      an ACK may answer a requester's repeat after so long (1000)\n"
	"  --drops FILE      what --capture printed, once for each; a dropped frame makes captures "
	"useless\n"
	"                    (status 2)\n"
	"  --max N           print the first N violations of each rule (20)\n"
	"  --verbose         also a line for each lane\n"
	"  --capture INTERFACE FILE   write a capture until SIGTERM, SIGINT or --seconds; says\n"
	"                    `capture: ready' on standard error when it has begun, and at the end "
	"on\n"
	"                    standard output `capture: frames=N dropped=N'; status 1 with drops\n"
	"\n"
	"One line for each violation: FILE:FRAME TIME LANE RULE: WHAT; then\n"
	"    pcapcheck: frames=N lanes=N violations=N\n"
	"Status: 0 right, 1 violations, 2 cannot be judged.\n";

enum {
	OPT_FILE = 256, /* and the next three: enum check_place */
	OPT_LOCAL = OPT_FILE + PLACES,
	OPT_SINGLE,
	OPT_BARE,
	OPT_HELD,
	OPT_PREFETCH,
	OPT_PATH_MTU,
	OPT_DAMAGE,
	OPT_LAN_LOSS,
	OPT_PASS_REPEATS,
	OPT_STALLS,
	OPT_REPEATS,
	OPT_SKEW,
	OPT_LAN_MS,
	OPT_GRACE,
	OPT_DROPS,
	OPT_MAX,
	OPT_VERBOSE,
	OPT_CAPTURE,
	OPT_SECONDS,
	OPT_HELP,
};

static const struct option options[] = {
	{"lan-a", 1, NULL, OPT_FILE + PLACE_LAN_A},
	{"wan-a", 1, NULL, OPT_FILE + PLACE_WAN_A},
	{"wan-b", 1, NULL, OPT_FILE + PLACE_WAN_B},
	{"lan-b", 1, NULL, OPT_FILE + PLACE_LAN_B},
	{"local", 1, NULL, OPT_LOCAL},
	{"single", 1, NULL, OPT_SINGLE},
	{"bare", 0, NULL, OPT_BARE},
	{"held", 0, NULL, OPT_HELD},
	{"prefetch", 0, NULL, OPT_PREFETCH},
	{"path-mtu", 1, NULL, OPT_PATH_MTU},
	{"damage", 0, NULL, OPT_DAMAGE},
	{"lan-loss", 0, NULL, OPT_LAN_LOSS},
	{"pass-repeats", 0, NULL, OPT_PASS_REPEATS},
	{"stalls", 0, NULL, OPT_STALLS},
	{"repeats", 1, NULL, OPT_REPEATS},
	{"skew-ms", 1, NULL, OPT_SKEW},
	{"lan-ms", 1, NULL, OPT_LAN_MS},
	{"grace-ms", 1, NULL, OPT_GRACE},
	{"drops", 1, NULL, OPT_DROPS},
	{"max", 1, NULL, OPT_MAX},
	{"verbose", 0, NULL, OPT_VERBOSE},
	{"capture", 1, NULL, OPT_CAPTURE},
	{"seconds", 1, NULL, OPT_SECONDS},
	{"help", 0, NULL, OPT_HELP},
	{0},
};

static int usage(const char *cause, const char *what)
{
	fprintf(stderr, "pcapcheck: %s%s; see --help\n", cause, what);
	return CHECK_CANNOT;
}

/* False if the kernel dropped frames of the capture, or its end does not tell. */
static bool complete(const char *path)
{
	const char *dropped = NULL;
	FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		dropped = strstr(line, "dropped=");
		if (dropped)
			break;
	}
	if (f)
		fclose(f);
	if (!dropped)
		fprintf(stderr, "pcapcheck: %s: not the end of a capture\n", path);
	else if (strtoull(dropped + 8, NULL, 10))
		fprintf(stderr, "pcapcheck: %s: frames were dropped\n", path);
	else
		return true;
	return false;
}

static uint64_t ms(const char *text)
{
	return (uint64_t)(strtod(text, NULL) * 1e6);
}

int main(int argc, char **argv)
{
	const char *capture = NULL;
	struct check_result res;
	struct check_config c;
	enum check_status st;
	bool bare = false, whole = true;
	double seconds = 0;
	int o;

	check_defaults(&c);
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case OPT_FILE + PLACE_LAN_A:
		case OPT_FILE + PLACE_WAN_A:
		case OPT_FILE + PLACE_WAN_B:
		case OPT_FILE + PLACE_LAN_B:
			c.file[o - OPT_FILE] = optarg;
			break;
		case OPT_LOCAL:
			if (c.nlocal == CHECK_LOCALS || ip_addr_parse(optarg, &c.local[c.nlocal++]))
				return usage("not an address, or too many: ", optarg);
			break;
		case OPT_SINGLE:
			if (strcmp(optarg, "a") && strcmp(optarg, "b"))
				return usage("there is no site ", optarg);
			c.single = *optarg - 'a';
			break;
		case OPT_BARE:
			bare = true;
			break;
		case OPT_HELD:
			c.held = true;
			break;
		case OPT_PREFETCH:
			c.prefetch = true;
			break;
		case OPT_PATH_MTU:
			c.path_mtu = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case OPT_DAMAGE:
			c.damage = true;
			break;
		case OPT_PASS_REPEATS:
			c.pass_repeats = true;
			break;
		case OPT_STALLS:
			c.stalls = true;
			break;
		case OPT_REPEATS:
			c.repeats = strtoull(optarg, NULL, 0);
			break;
		case OPT_LAN_LOSS:
			c.lan_loss = true;
			break;
		case OPT_SKEW:
			c.skew_ns = ms(optarg);
			break;
		case OPT_LAN_MS:
			c.lan_ns = ms(optarg);
			break;
		case OPT_GRACE:
			c.grace_ns = ms(optarg);
			break;
		case OPT_DROPS:
			whole &= complete(optarg);
			break;
		case OPT_MAX:
			c.max = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case OPT_VERBOSE:
			c.verbose = true;
			break;
		case OPT_CAPTURE:
			capture = optarg;
			break;
		case OPT_SECONDS:
			seconds = strtod(optarg, NULL);
			break;
		case OPT_HELP:
			fputs(usage_text, stdout);
			return 0;
		default:
			return usage("bad option", "");
		}
	}
	if (capture) {
		if (argc - optind != 1)
			return usage("--capture needs an interface and a file", "");
		return check_capture(capture, argv[optind], seconds);
	}
	for (; bare && optind < argc; optind++) {
		if (c.nbare == CHECK_BARE)
			return usage("too many files", "");
		c.bare[c.nbare++] = argv[optind];
	}
	if (optind < argc)
		return usage("what is this: ", argv[optind]);
	if (!whole)
		return CHECK_CANNOT;
	st = check_run(&c, stdout, &res);
	if (st != CHECK_CANNOT)
		printf("pcapcheck: frames=%" PRIu64 " lanes=%" PRIu64 " violations=%" PRIu64 "\n",
		       res.frames, res.lanes, res.violations);
	return (int)st;
}

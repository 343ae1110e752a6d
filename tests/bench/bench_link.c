// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any size, any rate, any link, in virtual time: `make bench-link`; QUICK=1 takes a few minutes,
 * and CELL=NAME measures those cells only whose name contains NAME.
 *
 *	bench_link [--cell NAME] [--seconds S] [--quick] [--unpaced] [--given-rate] [--ours]
 *		   [--verbose]
 *
 * Each cell is measured with two appliances (single-...: with one), and bare, with a wire in their
 * place; beside stands what the link would carry at most. The last line sums up.
 */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#include "tests/bench/link_bench.h"

static bool parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"cell", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
		{"quick", no_argument, NULL, 'q'},	{"unpaced", no_argument, NULL, 'u'},
		{"given-rate", no_argument, NULL, 'g'}, {"ours", no_argument, NULL, 'o'},
		{"verbose", no_argument, NULL, 'v'},	{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->only = optarg;
			break;
		case 's':
			o->seconds = strtod(optarg, NULL);
			break;
		case 'q':
			o->quick = true;
			break;
		case 'u':
			o->unpaced = true;
			break;
		case 'g':
			o->given_rate = true;
			break;
		case 'o':
			o->ours = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		default:
			return false;
		}
	}
	return true;
}

static void field(const char *name, double value, int digits)
{
	if (!isnan(value))
		printf(" %s=%.*f", name, digits, value);
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct last l = {0,   NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
			 NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

	if (!parse(&o, argc, argv))
		return 2;
	if (o.seconds <= 0)
		o.seconds = o.quick ? 1 : 4;
	setvbuf(stdout, NULL, _IOLBF, 0);
	link_share(&o, &l);
	link_lanes(&o, &l);
	link_single(&o, &l);
	link_policy(&o, &l);
	link_ring(&o, &l);
	printf("bench-link: deaths=%d", l.deaths);
	field("unset-1bdp", l.unset, 1);
	field("unset-0.1bdp", l.unset_short, 1);
	field("twice-1bdp", l.twice, 1);
	field("link-bytes", l.bytes, 3);
	field("cross5", l.cross5, 2);
	field("cubic-jain", l.cubic_jain, 2);
	field("pairs-jain", l.pairs_jain, 2);
	field("step-rtts", l.step_rtts, 0);
	field("slices", l.slices, 1);
	field("cm-16MiB-50ms", l.cm_ms, 1);
	field("psn-16MiB-50ms", l.psn_ms, 1);
	field("64B-100ms", l.small, 1);
	field("25G-1024-200ms", l.lan25, 1);
	field("100G-4096-100ms", l.lan100, 1);
	field("p999-1e-3", l.tail3, 2);
	field("p999-1e-2", l.tail2, 2);
	field("ping-512", l.ping_ms, 2);
	field("policy-least", l.policy, 3);
	field("ring-least", l.ring, 2);
	field("p999-burst", l.burst, 2);
	field("p999-field", l.field, 2);
	field("p999-1e-3-100G", l.far3, 2);
	field("p999-1e-2-100G", l.far2, 2);
	field("p999-burst-100G", l.far_burst, 2);
	field("p999-field-100G", l.far_field, 2);
	printf("\n");
	return l.deaths != 0;
}

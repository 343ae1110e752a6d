// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A table has each option of a direction: the field that it sets, its unit and its range. A value
 * out of range ends the program: else a loss in per cent would be taken for a probability.
 */
#include <err.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/wanem/options.h"
#include "version.h"

#define STORE_LEAST (32ull << 20)

static const char help[] =
	"usage: longhaul-wanem --a PORT --b PORT [OPTIONS]     a long link between two ports\n"
	"\n"
	"  --ab, --ba, --both   what follows is for a to b, for b to a, for both (default)\n"
	"\n"
	"Of a direction; P is a probability from 0 to 1:\n"
	"  --delay-ms N         one way: half of the round trip that it adds\n"
	"  --rate-mbps N        0: no limit\n"
	"  --queue-kb N         before the rate; what does not fit is lost; 0: no limit\n"
	"  --loss P --dup P --corrupt P\n"
	"  --reorder P          that a frame comes --reorder-ms N (1) later\n"
	"  --burst-start P --burst-end P --burst-loss P\n"
	"                       bad times: that one begins and ends with a frame, and the loss in "
	"it\n"
	"  --mtu N              longer IP packets are lost\n"
	"  --mark P             ECN: congestion experienced, where packets know ECN\n"
	"  --bleach             DSCP becomes 0\n"
	"  --only-roce          only RoCEv2 suffers; delay, rate, MTU and DSCP are for all frames\n"
	"  --down               start with the link cut\n"
	"  --store-mb N         memory for frames under way (what --rate-mbps needs; 32 at least)\n"
	"\n"
	"  --seed N (0)         the same seed loses the same frames of the same traffic\n"
	"  --seconds N          then end; 0: when a signal says so (default)\n"
	"  --coalesce-us N (50) sleep between batches under load; 0: wake for each frame\n"
	"  --visible            captures on the ports see what is sent there, too; slower\n"
	"  -h, --help           this text\n"
	"  -V, --version        the version\n"
	"\n"
	"SIGUSR1 cuts the link, SIGUSR2 mends it; SIGTERM or SIGINT ends, with counts as JSON.\n";

enum scale { CHANCE, BYTES, MS, MBPS, KB, MB, FLAG, GLOBAL };

/* Where each option of a direction goes, and the most it may be. Of GLOBAL ones @offset says
 * whether they have no value. */
static const struct row {
	const char *name;
	enum scale scale;
	size_t offset;
	double most;
} rows[] = {
	{"delay-ms", MS, offsetof(struct wan_config, delay_ns), 60000},
	{"rate-mbps", MBPS, offsetof(struct wan_config, rate_bps), 1e6},
	{"queue-kb", KB, offsetof(struct wan_config, queue_bytes), 1e9},
	{"store-mb", MB, offsetof(struct wan_config, store_bytes), 1e6},
	{"reorder-ms", MS, offsetof(struct wan_config, reorder_ns), 60000},
	{"loss", CHANCE, offsetof(struct wan_config, loss), 1},
	{"dup", CHANCE, offsetof(struct wan_config, dup), 1},
	{"reorder", CHANCE, offsetof(struct wan_config, reorder), 1},
	{"corrupt", CHANCE, offsetof(struct wan_config, corrupt), 1},
	{"burst-start", CHANCE, offsetof(struct wan_config, burst_start), 1},
	{"burst-end", CHANCE, offsetof(struct wan_config, burst_end), 1},
	{"burst-loss", CHANCE, offsetof(struct wan_config, burst_loss), 1},
	{"mtu", BYTES, offsetof(struct wan_config, mtu), 65535},
	{"mark", CHANCE, offsetof(struct wan_config, mark), 1},
	{"bleach", FLAG, offsetof(struct wan_config, bleach), 0},
	{"only-roce", FLAG, offsetof(struct wan_config, only_roce), 0},
	{"down", FLAG, offsetof(struct wan_config, down), 0},
	{"a", GLOBAL, 0, 0},
	{"b", GLOBAL, 0, 0},
	{"seed", GLOBAL, 0, 0x1p53},
	{"seconds", GLOBAL, 0, 1e9},
	{"coalesce-us", GLOBAL, 0, 1e6},
	{"visible", GLOBAL, 1, 0},
	{"ab", GLOBAL, 1, 0},
	{"ba", GLOBAL, 1, 0},
	{"both", GLOBAL, 1, 0},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
	return 2 + 1;
}

/* A value within what row @r allows, into @v. */
static int number(const struct row *r, const char *text, double *v)
{
	char *end;

	*v = strtod(text, &end);
	if (end != text && !*end && *v >= 0 && *v <= r->most)
		return 0;
	if (r->scale == CHANCE)
		return wrong("--%s takes a probability from 0 to 1 (0.01 is 1 %%), not '%.40s'",
			     r->name, text);
	return wrong("--%s takes a number from 0 to %.0f, not '%.40s'", r->name, r->most, text);
}

static void set_link(struct wan_config *c, const struct row *r, double v)
{
	static const double factor[] = {
		[BYTES] = 1, [MS] = 1e6, [MBPS] = 1e6, [KB] = 1024, [MB] = 1 << 20};
	char *where = (char *)c + r->offset;

	if (r->scale == CHANCE)
		memcpy(where, &v, sizeof(v));
	else if (r->scale == FLAG)
		*(bool *)where = true;
	else
		*(uint64_t *)(void *)where = (uint64_t)(v * factor[r->scale]);
}

/* @first and @last: the directions that options are for. */
static int set_global(struct options *o, const struct row *r, int *first, int *last)
{
	const char *name = r->name;
	double v = 0;

	if (r->most > 0 && number(r, optarg, &v))
		return 2 + 1;
	if (!strcmp(name, "a")) {
		o->ifname[0] = optarg;
	} else if (!strcmp(name, "b")) {
		o->ifname[1] = optarg;
	} else if (!strcmp(name, "seed")) {
		o->link[0].seed = (uint64_t)v;
		o->link[1].seed = ~o->link[0].seed;
	} else if (!strcmp(name, "seconds")) {
		o->seconds = v;
	} else if (!strcmp(name, "coalesce-us")) {
		o->coalesce_ns = (uint64_t)(v * 1000);
	} else if (!strcmp(name, "visible")) {
		o->visible = true;
	} else {
		*first = !strcmp(name, "ba");
		*last = strcmp(name, "ab") != 0;
	}
	return 0;
}

static int take(struct options *o, const struct row *r, int *first, int *last)
{
	double v = 0;

	if (r->scale == GLOBAL)
		return set_global(o, r, first, last);
	if (r->scale != FLAG && number(r, optarg, &v))
		return 2 + 1;
	for (int i = *first; i <= *last; i++)
		set_link(&o->link[i], r, v);
	return 0;
}

/* Twice what the rate brings while a frame is under way: a small frame takes up to twice its
 * length. */
static uint64_t store_for(const struct wan_config *c)
{
	double most = 2 * ((double)c->rate_bps / 8e9 * (double)(c->delay_ns + c->reorder_ns) +
			   (double)c->queue_bytes);

	return most > (double)STORE_LEAST ? (uint64_t)most : STORE_LEAST;
}

/* What all of them together must be. */
static int settle(struct options *o, int argc, char **argv)
{
	if (optind != argc)
		return wrong("unexpected '%.40s'; the ports are named by --a and --b",
			     argv[optind]);
	if (!o->ifname[0] || !o->ifname[1])
		return wrong("no port is named by --%c; see --help", o->ifname[0] ? 'b' : 'a');
	if (!strcmp(o->ifname[0], o->ifname[1]))
		return wrong("--a and --b are the same port '%.40s'; a link has two ends",
			     o->ifname[0]);
	for (int i = 0; i < 2; i++)
		if (!o->link[i].store_bytes)
			o->link[i].store_bytes = store_for(&o->link[i]);
	return 0;
}

int options_parse(int argc, char **argv, struct options *o)
{
	struct option longs[ROWS + 3] = {0};
	int c, rc, which = 0, first = 0, last = 1;

	for (size_t i = 0; i < ROWS; i++) {
		bool value = rows[i].scale == GLOBAL ? !rows[i].offset : rows[i].scale != FLAG;

		longs[i] = (struct option){rows[i].name, value, NULL, 1};
	}
	longs[ROWS] = (struct option){"help", no_argument, NULL, 'h'};
	longs[ROWS + 1] = (struct option){"version", no_argument, NULL, 'V'};
	*o = (struct options){.coalesce_ns = 50000};
	o->link[0].reorder_ns = o->link[1].reorder_ns = 1000000;
	o->link[1].seed = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":hV", longs, &which)) != -1) {
		switch (c) {
		case 1:
			rc = take(o, &rows[which], &first, &last);
			if (rc)
				return rc;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		case 'V':
			printf("longhaul-wanem %s\n", LONGHAUL_VERSION);
			return 1;
		case ':':
			return wrong("%.40s needs a value; see --help", argv[optind - 1]);
		default:
			return wrong("unknown option '%.40s'; see --help", argv[optind - 1]);
		}
	}
	return settle(o, argc, argv);
}

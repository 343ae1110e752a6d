// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul plan: what an appliance for a link needs, before there is one. No daemon is asked.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/plan_cost.h"
#include "cli/plan_model.h"
#include "config/config_value.h"

#define RTT_LEAST      1000000ull
#define RTT_MOST       10000000000ull
#define LOSS_MOST      0.5
/* Above it a frame takes more than one buffer of AF_XDP. */
#define MTU_ONE_BUFFER 2048
/* How often a payload crosses the memory bus: it comes, is copied five times, leaves. */
#define PASSES	       12.0
#define MIB	       1048576.0

static const double sizes[] = {4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};

static const char *const limits[PLAN_LIMITS] = {
	[PLAN_BY_LINK] = "link",
	[PLAN_BY_CORE] = "core",
	[PLAN_BY_SPAN] = "packet numbers",
	[PLAN_BY_ANSWER] = "host",
};

static const struct column columns[] = {
	{"message-bytes", "MESSAGE", COL_BYTES, COL_TABLE},
	{"bare-rate", "BARE", COL_RATE, COL_TABLE},
	{"honest-rate", "HONEST", COL_RATE, COL_TABLE},
	{"early-rate", "EARLY", COL_RATE, COL_TABLE},
	{"limit", "LIMITED BY", COL_TEXT, COL_TABLE},
	{0},
};
static const struct object table = {.name = "plan", .help = "", .columns = columns};

static const char *read_loss(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end || !(*out >= 0 && *out <= LOSS_MOST))
		return "is no share of packets; write a number from 0 to 0.5, such as 1e-3";
	return NULL;
}

/* The value of option @i into @l; NULL, or what is wrong with it. */
static const char *read_option(int i, const char *text, struct plan_link *l)
{
	const char *wrong = NULL;
	uint64_t v = 0;

	switch ((enum plan_option)i) {
	case PLAN_RATE:
		wrong = value_rate(text, &v);
		l->rate = (double)v;
		return wrong || v ? wrong : "is no rate of a link; write 1M or more";
	case PLAN_RTT:
		wrong = value_duration(text, RTT_LEAST, RTT_MOST, &v);
		l->rtt = (double)v / 1e9;
		return wrong;
	case PLAN_LOSS:
		return read_loss(text, &l->loss);
	case PLAN_MTU:
		wrong = value_path_mtu(text, 256, &l->mtu);
		l->mtu = l->mtu ? l->mtu : 4096;
		return wrong;
	case PLAN_OUTSTANDING:
		wrong = value_number(text, 1, 65536, &v);
		l->outstanding = (uint32_t)v;
		return wrong;
	default:
		return NULL;
	}
}

static int read_link(const struct options *opt, struct plan_link *l)
{
	static const char *const names[PLAN_OPTIONS] = PLAN_NAMES;

	if (!opt->plan[PLAN_RATE] || !opt->plan[PLAN_RTT])
		return cli_error("plan needs the rate of the link and its round trip; write "
				 "longhaul plan --rate 10G --rtt 50ms");
	for (int i = 0; i < PLAN_OPTIONS; i++) {
		const char *text = opt->plan[i], *wrong = text ? read_option(i, text, l) : NULL;

		if (wrong)
			return cli_error("--%s '%.40s' %s", names[i], text, wrong);
	}
	return 0;
}

static json_t *bits(double bytes)
{
	return json_integer(llround(bytes * 8));
}

static json_t *message(const struct plan_link *l, double size, double packet_ns)
{
	struct plan_goodput g = plan_goodput(l, size, packet_ns);

	return json_pack("{sI so so so ss}", "message-bytes", (json_int_t)size, "bare-rate",
			 bits(g.bare), "honest-rate", bits(g.honest), "early-rate", bits(g.early),
			 "limit", limits[g.limit]);
}

/* Threads that the link would keep busy. */
static double cores(const struct plan_link *l, double packet_ns)
{
	return plan_ceiling(l, 64 * MIB) / l->mtu * packet_ns / 1e9;
}

static json_t *summary(const struct plan_link *l, double packet_ns)
{
	return json_pack("{so sI sf sI sI sI sI sI sI so sf sI}", "rate", bits(l->rate), "rtt-us",
			 (json_int_t)llround(l->rtt * 1e6), "loss", l->loss, "path-mtu",
			 (json_int_t)l->mtu, "outstanding", (json_int_t)l->outstanding, "way-bytes",
			 (json_int_t)plan_bdp(l), "pool-bytes", (json_int_t)plan_pool(l),
			 "pool-lossless-bytes", (json_int_t)plan_pool_least(l), "packet-ns",
			 (json_int_t)llround(packet_ns), "core-rate",
			 bits(l->mtu * 1e9 / packet_ns), "cores", cores(l, packet_ns),
			 "memory-bytes-per-second", (json_int_t)(l->rate * PASSES));
}

/* A number as tables show it. */
static const char *show(enum column_format f, double v, char buf[COLUMN_TEXT])
{
	const struct column c = {.format = f};
	json_t *j = json_integer(llround(v));

	column_text(&c, j, buf);
	json_decref(j);
	return buf;
}

static void print_link(const struct plan_link *l)
{
	char a[COLUMN_TEXT], b[COLUMN_TEXT];

	printf("link         %sbit/s, %.0f ms, %g %% lost: %s on its way; headers take %.1f %%\n",
	       show(COL_RATE, l->rate * 8, a), l->rtt * 1e3, l->loss * 100,
	       show(COL_BYTES, plan_bdp(l), b), 100 * (1 - plan_ceiling(l, 64 * MIB) / l->rate));
}

static void print_pool(const struct plan_link *l)
{
	double want = plan_want(l);
	char a[COLUMN_TEXT];

	printf("pool         pool = %.0fM at both ends%s; twice that if both directions are busy\n",
	       plan_pool(l) / MIB,
	       want <= PLAN_POOL_DEFAULT ? ", the default"
	       : want > PLAN_POOL_MOST	 ? ", the most there may be"
					 : "");
	printf("             (%s while nothing is lost", show(COL_BYTES, plan_pool_least(l), a));
	if (plan_rounds(l))
		printf("; %u times that to repair what is", 1 + plan_rounds(l));
	printf(")\n             there must be room for it in /run, see longhauld(8), FILES\n"
	       "huge pages   none to reserve: longhauld asks the kernel for them\n");
}

static void print_rest(const struct plan_link *l, double packet_ns)
{
	double need = cores(l, packet_ns);
	char a[COLUMN_TEXT];

	printf("cores        here one carries about %sbit/s in all (%.1f us a packet): ",
	       show(COL_RATE, l->mtu * 8e9 / packet_ns, a), packet_ns / 1e3);
	if (need > 1)
		printf("this link\n             needs %.1f of them, and as many queues; one pair "
		       "of hosts has one core only\n",
		       need);
	else
		printf("enough for\n             this link\n");
	printf("memory       %sB/s of bandwidth: a payload crosses the bus %.0f times (model)\n",
	       show(COL_RATE, l->rate * PASSES, a), PASSES);
	printf("NIC          native XDP (generic is slower)%s\n             zero copy saves "
	       "copies, "
	       "where the driver has it; RSS is needed with several cores only\n",
	       l->mtu > MTU_ONE_BUFFER ? ", multi-buffer, Linux 6.6; path MTU 2048: neither" : "");
}

static int print_plan(const struct plan_link *l, enum render_mode mode, double packet_ns)
{
	struct render *r = render_begin(&table, mode, stdout);
	json_t *o;

	if (!r)
		return -1;
	if (mode == RENDER_JSON || mode == RENDER_PRETTY) {
		o = summary(l, packet_ns);
		render_add(r, o);
		json_decref(o);
	} else {
		print_link(l);
		print_pool(l);
		print_rest(l, packet_ns);
		printf("\nGoodput in bit/s of one queue pair, path MTU %u, %u messages "
		       "outstanding: bare hosts,\nlonghaul with policy = honest, with policy = "
		       "early\n\n",
		       l->mtu, l->outstanding);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		o = message(l, sizes[i], packet_ns);
		render_add(r, o);
		json_decref(o);
	}
	return render_end(r);
}

int run_plan(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	struct plan_link l = {.mtu = 4096, .outstanding = 128};
	double copy_ns, crc_ns;

	(void)cmd;
	if (argc)
		return cli_error("plan takes no word such as '%.40s'; write longhaul plan --rate "
				 "10G --rtt 50ms",
				 argv[0]);
	if (read_link(opt, &l))
		return 1;
	if (!plan_cost(&copy_ns, &crc_ns))
		return cli_error("there are no 64 MiB of memory to measure with; end something "
				 "else");
	if (print_plan(&l, opt->mode, plan_packet_ns(l.mtu, copy_ns, crc_ns)) || fflush(stdout))
		return cli_error("cannot write the plan: %m");
	return 0;
}

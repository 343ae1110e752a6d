// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Why one host is slow: causes that the lanes of its connections show, the likeliest first. Each
 * lane is judged at the end that knows: READs, repeats, policy and pool near the requester,
 * receives near the responder.
 */
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"

#define FEW	   10 /* packets that tell nothing */
#define NIC_READS  16 /* that a network card has outstanding, at most */
#define LATE_MS	   50 /* a responder on the LAN answers sooner */
#define MISSING_MS 1000
#define SMALL_MTU  1024
#define LATELY_MS  3000

/**
 * struct host_lane - a lane with what belongs to it.
 * @rate: bits per second from the requester; @rtt_us: of the link, 0: not known
 */
struct host_lane {
	const struct doctor_look *d;
	const json_t *lane, *qp, *rule;
	double rate, rtt_us;
	char name[160];
};

static bool near_requester(const struct host_lane *l)
{
	const char *role = doctor_text(l->lane, "role");

	return !strcmp(role, "opener") ||
	       (!strcmp(role, "single") && !strcmp(doctor_text(l->lane, "direction"), "out"));
}

static json_int_t grown(const struct host_lane *l, const char *key)
{
	return doctor_grown(l->d, "lane", l->lane, key);
}

static json_int_t per_second(const struct host_lane *l, json_int_t n)
{
	return l->d->seconds > 0 ? (json_int_t)((double)n / l->d->seconds + 0.5) : 0;
}

static const char *rtt_of(const struct host_lane *l)
{
	return doctor_shown("lane", "srtt-us", (json_int_t)l->rtt_us);
}

static bool not_held(const struct host_lane *l, struct doctor_finding *f)
{
	const char *state = doctor_text(l->qp, "state");

	if (!strcmp(state, "held"))
		return false;
	doctor_put(f, DOCTOR_WRONG, doctor_mend(l->d, l->qp), "%s are not accelerated (%s): %s",
		   l->name, state, doctor_text(l->qp, "note"));
	return true;
}

static bool no_receives(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t n = grown(l, "rnr");

	if (!n)
		return false;
	doctor_put(
		f, DOCTOR_WRONG, "have the application there post more receives, and earlier",
		"%s: the responder was not ready %lld times in a second (RNR): it has no receive "
		"posted",
		l->name, (long long)per_second(l, n));
	return true;
}

/* Its timer runs out before what it waits for can come. */
static bool repeats(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t n = grown(l, "dropped-duplicates"), all = grown(l, "requests");
	int timeout = 1;
	char mend[DOCTOR_TEXT];

	if (!near_requester(l) || n < FEW || n < all / 50)
		return false;
	/* a queue pair's timeout means 4.096 us x 2^timeout */
	while (timeout < 31 && 4.096 * (double)(1ull << timeout) < 2 * l->rtt_us)
		timeout++;
	if (doctor_number(l->lane, "reads-pending-most"))
		snprintf(mend, sizeof(mend),
			 "its timer is shorter than the round trip of %s, which READs and ATOMICs "
			 "take: a timeout of %d or more in its queue pairs",
			 rtt_of(l), timeout);
	else
		snprintf(mend, sizeof(mend),
			 "acknowledgements get lost on its LAN, or its timer is short: look at ip "
			 "-s link there, and at the timeout of its queue pairs");
	doctor_put(f, DOCTOR_WRONG, mend,
		   "%s: the requester repeats %lld packets a second; they go no further", l->name,
		   (long long)per_second(l, n));
	return true;
}

static bool waits_for_reads(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t most = doctor_number(l->lane, "reads-pending-most");
	json_int_t hits = grown(l, "ahead-hits"), misses = grown(l, "ahead-misses");
	bool ahead = strcmp(doctor_text(l->rule, "prefetch"), "off") != 0;

	if (!near_requester(l) || !most || most > NIC_READS || (ahead && hits > misses))
		return false;
	doctor_put(
		f, DOCTOR_WRONG,
		ahead ? "its READs follow no pattern that can be foreseen (longhaul.conf(5), "
			"PREFETCH): more of them at a time"
		      : "prefetch = on in the rule, if it suits (longhaul.conf(5), PREFETCH); else "
			"more READs at a time, larger ones, or WRITEs",
		"%s: at most %lld READ%s at a time, and each takes the round trip of %s: %.0f a "
		"second at most%s",
		l->name, (long long)most, most == 1 ? "" : "s", rtt_of(l),
		l->rtt_us > 0 ? (double)most * 1e6 / l->rtt_us : 0,
		most == NIC_READS ? " (16 is the limit of many network cards)" : "");
	return true;
}

static bool honest(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t most = doctor_number(l->lane, "custody-messages-most");

	if (!near_requester(l) || strcmp(doctor_text(l->lane, "policy"), "honest") || !most)
		return false;
	doctor_put(
		f, DOCTOR_WRONG,
		"more messages under way, or policy = early where completions may come before the "
		"far host has the data (longhaul.conf(5), POLICIES)",
		"%s: rule %s has policy = honest, so each message completes after the round trip "
		"of %s; at most %lld %s under way",
		l->name, doctor_text(l->rule, "name"), rtt_of(l), (long long)most,
		most == 1 ? "was" : "were");
	return true;
}

static const json_t *peer_of(const struct host_lane *l)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(l->d->now, "peer"), i, o)
		if (!strcmp(doctor_text(o, "name"), doctor_text(l->lane, "peer")))
			return o;
	return NULL;
}

/* Bits per second that leave by the WAN port. */
static double wan_rate(const struct doctor_look *d)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "port"), i, o)
		if (!strcmp(doctor_text(o, "side"), "wan") && d->seconds > 0)
			return (double)doctor_grown(d, "port", o, "tx-bytes") * 8 / d->seconds;
	return 0;
}

static bool peer_up(const struct host_lane *l)
{
	const json_t *peer = peer_of(l);

	return !peer || !strcmp(doctor_text(peer, "state"), "up");
}

/* Nothing crosses the link, whatever the hosts do. */
static bool link_down(const struct host_lane *l, struct doctor_finding *f)
{
	const json_t *peer = peer_of(l);

	if (peer_up(l))
		return false;
	doctor_put(f, DOCTOR_WRONG, "longhaul status says what to do", "%s: peer %s is %s: %s",
		   l->name, doctor_text(peer, "name"), doctor_text(peer, "state"),
		   doctor_text(peer, "note"));
	return true;
}

static bool link_full(const struct host_lane *l, struct doctor_finding *f)
{
	double pace = (double)doctor_number(peer_of(l), "pace-bps"), rate = wan_rate(l->d);
	const char *cause = doctor_text(peer_of(l), "pace-cause");
	bool found = *cause && strcmp(cause, "none") != 0, loss = !strcmp(cause, "loss");

	if (!near_requester(l) || pace <= 0 || rate < 0.9 * pace)
		return false;
	doctor_put(f, DOCTOR_WRONG,
		   loss	   ? "if it carries more, it loses packets for another reason: look at its "
			     "interfaces and optics; a wan-rate (longhaul.conf(5)) heeds no loss"
		   : found ? "nothing, unless it carries more: then wan-rate (longhaul.conf(5))"
			   : "raise wan-rate if the link carries more",
		   "the link to peer %s is full: %s bit/s leave, and its pace is %s%s%s",
		   doctor_text(l->lane, "peer"), doctor_shown("port", "tx-rate", (json_int_t)rate),
		   doctor_shown("port", "tx-rate", (json_int_t)pace),
		   found ? ", found by " : ", as wan-rate says", found ? cause : "");
	return true;
}

/* Round trip without what waits on the link, us, as far as it is known. */
static double least_rtt(const struct host_lane *l)
{
	double least = (double)doctor_number(peer_of(l), "min-rtt-us");

	return least > 0 && least < l->rtt_us ? least : l->rtt_us;
}

/* Acknowledgements are withheld: from how many bytes on a round trip has enough under way. */
static bool held_back(const struct host_lane *l, json_int_t *times, double *flight)
{
	*times = doctor_engine(l->d, "held-back");
	*flight = l->rate / 8 * least_rtt(l) / 1e6;
	return near_requester(l) && *times > 0 && doctor_number(l->lane, "custody-bytes");
}

/* Custody holds much more than is under way: it waits to be sent. */
static bool sends_slowly(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t n, custody = doctor_number(l->lane, "custody-bytes");
	double flight;

	if (!held_back(l, &n, &flight) || (double)custody <= 2 * flight)
		return false;
	doctor_put(f, DOCTOR_WRONG,
		   "nothing if the link is full (longhaul peer -d has its pace); else longhaul "
		   "doctor host ADDRESS at the other appliance, for the responder may be slow; "
		   "else look at the load of both machines",
		   "%s: the host is faster than what leaves, %s bit/s: %s wait here, a round trip "
		   "needs %s, and acknowledgements were withheld",
		   l->name, doctor_shown("port", "tx-rate", (json_int_t)wan_rate(l->d)),
		   doctor_shown("lane", "custody-bytes", custody),
		   doctor_shown("lane", "custody-bytes", (json_int_t)flight));
	return true;
}

static bool pool_full(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t n, custody = doctor_number(l->lane, "custody-bytes");
	char mend[DOCTOR_TEXT];
	double flight;

	if (!held_back(l, &n, &flight) || (double)custody > 2 * flight)
		return false;
	/* as doc/sizing.md has it; without a peer the link's rate is not known */
	snprintf(mend, sizeof(mend),
		 "raise 'pool', and that of the rule, %s: each Gbit/s takes %s at least",
		 peer_of(l) ? "at both ends" : "unless the link is full",
		 doctor_shown("rule", "pool", (json_int_t)(2 * 1e9 / 8 * least_rtt(l) / 1e6)));
	doctor_put(f, DOCTOR_WRONG, mend,
		   "%s: custody is full: %s of it are under way, of a pool of %s, and "
		   "acknowledgements were withheld %lld times",
		   l->name, doctor_shown("lane", "custody-bytes", custody),
		   doctor_shown("rule", "pool", doctor_stat(l->d->now, "memory", "pool-bytes")),
		   (long long)n);
	return true;
}

/* Near the requester: the same packet has been the oldest for all of the time between the looks. */
static bool answers_missing(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t ms = doctor_number(l->lane, "custody-oldest-ms");

	if (!near_requester(l) || ms < MISSING_MS || !peer_up(l) ||
	    (double)grown(l, "custody-oldest-ms") < 800 * l->d->seconds)
		return false;
	doctor_put(f, DOCTOR_WRONG,
		   "longhaul doctor at the appliance near the responder, and with that host",
		   "%s: the responder has acknowledged nothing for %s, and %s wait for it", l->name,
		   doctor_shown("lane", "custody-oldest-ms", ms),
		   doctor_shown("lane", "custody-bytes", doctor_number(l->lane, "custody-bytes")));
	return true;
}

/* Near the responder. */
static bool answers_late(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t ms = doctor_number(l->lane, "transit-oldest-ms");

	if (ms < LATE_MS)
		return false;
	if (!strcmp(doctor_text(json_array_get(doctor_list(l->d->now, "ping"), 0), "address"),
		    doctor_text(l->lane, "lan-ip")) &&
	    doctor_reach(l->d, f) == DOCTOR_WRONG)
		return true;
	doctor_put(f, DOCTOR_WRONG,
		   "look at the responder, its LAN (ip -s link), and MTUs of routers before it",
		   "%s: %s wait here for the responder, the oldest for %s", l->name,
		   doctor_shown("lane", "transit-bytes", doctor_number(l->lane, "transit-bytes")),
		   doctor_shown("lane", "transit-oldest-ms", ms));
	return true;
}

static bool small_packets(const struct host_lane *l, struct doctor_finding *f)
{
	json_int_t mtu = doctor_number(l->lane, "path-mtu");

	if (!mtu || mtu > SMALL_MTU)
		return false;
	doctor_put(
		f, DOCTOR_NOTE,
		"interfaces, switches and link of MTU 4300 allow a path MTU of 4096",
		"%s: the path MTU is %lld: %lld times the packets of 4096, and as much more work",
		l->name, (long long)mtu, (long long)(4096 / mtu));
	return true;
}

/* What is left, where longhaul delays nothing. */
static bool requester(const struct host_lane *l, struct doctor_finding *f)
{
	if (!near_requester(l)) {
		doctor_put(
			f, DOCTOR_NOTE, "longhaul doctor host ADDRESS at that appliance",
			"%s: nothing slows them here; the appliance near the requester knows more",
			l->name);
		return true;
	}
	doctor_put(f, DOCTOR_NOTE, "look at the host: how much it posts at a time, and its load",
		   "%s: longhaul waits for the host, which sends %s bit/s, %lld messages a second, "
		   "and is not held back",
		   l->name, doctor_shown("port", "tx-rate", (json_int_t)l->rate),
		   (long long)per_second(l, grown(l, "msn")));
	return true;
}

static const struct {
	const char *name;
	enum doctor_verdict verdict;
	bool (*look)(const struct host_lane *l, struct doctor_finding *f);
	bool rest; /* only if nothing was found before it */
} causes[] = {
	{"held", DOCTOR_WRONG, not_held, false},
	{"link", DOCTOR_WRONG, link_down, false},
	{"receives", DOCTOR_WRONG, no_receives, false},
	{"answers", DOCTOR_WRONG, answers_missing, false},
	{"answers", DOCTOR_WRONG, answers_late, false},
	{"repeats", DOCTOR_WRONG, repeats, false},
	{"reads", DOCTOR_WRONG, waits_for_reads, false},
	{"policy", DOCTOR_WRONG, honest, false},
	{"link", DOCTOR_WRONG, link_full, false},
	{"link", DOCTOR_WRONG, sends_slowly, true},
	{"pool", DOCTOR_WRONG, pool_full, true},
	{"requester", DOCTOR_NOTE, requester, true},
	{"path-mtu", DOCTOR_NOTE, small_packets, false},
};

/* Whether requests came between the two looks, or a little before and something waits. */
static bool in_use(const struct host_lane *l)
{
	bool waits = doctor_number(l->lane, "reads-pending-most") ||
		     doctor_number(l->lane, "custody-packets") ||
		     doctor_number(l->lane, "transit-packets");

	return grown(l, "requests") || (waits && doctor_number(l->qp, "idle-ms") < LATELY_MS);
}

static bool of_host(const json_t *o, const char *host)
{
	return !strcmp(doctor_text(o, "lan-ip"), host) || !strcmp(doctor_text(o, "wan-ip"), host);
}

static const json_t *rule_of(const struct doctor_look *d, const json_t *lane)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "rule"), i, o)
		if (!strcmp(doctor_text(o, "name"), doctor_text(lane, "rule")))
			return o;
	return NULL;
}

static struct host_lane lane_of(const struct doctor_look *d, const json_t *lane)
{
	bool out = !strcmp(doctor_text(lane, "direction"), "out");
	struct host_lane l = {
		.d = d,
		.lane = lane,
		.qp = doctor_find(d, "qp", lane),
		.rule = rule_of(d, lane),
		.rtt_us = (double)doctor_number(lane, "srtt-us"),
	};

	if (d->seconds > 0)
		l.rate = (double)doctor_grown(d, "qp", l.qp, out ? "out-bytes" : "in-bytes") * 8 /
			 d->seconds;
	snprintf(l.name, sizeof(l.name), "requests of %s qpn %s to %s qpn %s",
		 doctor_text(lane, out ? "lan-ip" : "wan-ip"),
		 doctor_shown("qp", "lqpn", doctor_number(lane, out ? "lqpn" : "rqpn")),
		 doctor_text(lane, out ? "wan-ip" : "lan-ip"),
		 doctor_shown("qp", "lqpn", doctor_number(lane, out ? "rqpn" : "lqpn")));
	return l;
}

/* One finding of a cause: the first lane that shows it, and how many more do. */
static bool add_cause(const struct doctor_look *d, const char *host, size_t c, json_t *all)
{
	struct doctor_finding f, first = {"", ""};
	unsigned int n = 0;
	const json_t *o;
	size_t i, used;

	json_array_foreach (doctor_list(d->now, "lane"), i, o) {
		struct host_lane l;

		if (!of_host(o, host))
			continue;
		l = lane_of(d, o);
		if (!in_use(&l) || !causes[c].look(&l, &f))
			continue;
		if (!n++)
			first = f;
	}
	used = strlen(first.reason);
	if (n > 1)
		snprintf(first.reason + used, sizeof(first.reason) - used, " (and %u more like it)",
			 n - 1);
	if (n)
		doctor_add(all, causes[c].name, causes[c].verdict, &first);
	return n > 0;
}

/* Queue pairs of the host, by whether the partner is known. */
static void count_qps(const struct doctor_look *d, const char *host, unsigned int *known,
		      unsigned int *half, const json_t **one)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "qp"), i, o) {
		bool pair = json_is_integer(json_object_get(o, "lqpn")) &&
			    json_is_integer(json_object_get(o, "rqpn"));

		if (!of_host(o, host))
			continue;
		*known += pair;
		*half += !pair;
		if (!pair)
			*one = o;
	}
}

json_t *doctor_host(const struct doctor_look *look, const char *host)
{
	struct doctor_look indexed = *look, *d = &indexed;
	struct doctor_finding f = {"", ""};
	unsigned int known = 0, half = 0;
	json_t *all = json_array();
	const json_t *one = NULL;
	bool any = false;

	doctor_index(d);
	count_qps(d, host, &known, &half, &one);
	if (half)
		doctor_add(all, "pairs",
			   doctor_put(&f, known ? DOCTOR_NOTE : DOCTOR_WRONG, "longhaul doctor",
				      "the partner of %u of its queue pairs is not known: %s", half,
				      doctor_text(one, "note")),
			   &f);
	else if (!known)
		doctor_add(all, "pairs",
			   doctor_put(&f, DOCTOR_WRONG, "start a transfer, then longhaul doctor",
				      "no queue pair of %s is known here", host),
			   &f);
	for (size_t c = 0; c < sizeof(causes) / sizeof(causes[0]); c++)
		if (!causes[c].rest || !any)
			any |= add_cause(d, host, c, all);
	if (!json_array_size(all))
		doctor_add(all, "idle",
			   doctor_put(&f, DOCTOR_OK, "",
				      "none of its %u connection%s was in use during the look",
				      known, known == 1 ? "" : "s"),
			   &f);
	doctor_unindex(d);
	return all;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The walk's look at the frames: whether RoCEv2 comes, both ways, and is taken; and if no rule
 * wants it, which rule comes closest and what it lacks.
 */
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"
#include "cli/filter.h"

#define FEW 10 /* frames that tell nothing */

/* RoCEv2 at a port: since the start, or (@recent) between the two looks. */
struct traffic {
	const json_t *port;
	bool recent;
	json_int_t taken, passed;
};

static json_int_t count(const struct doctor_look *d, const struct traffic *t, const char *key)
{
	return t->recent ? doctor_grown(d, "port", t->port, key) : doctor_number(t->port, key);
}

static struct traffic traffic_of(const struct doctor_look *d, const char *side, bool recent)
{
	struct traffic t = {.port = doctor_port(d, side), .recent = recent};

	t.taken = count(d, &t, "rx-packets");
	t.passed = count(d, &t, "passed");
	return t;
}

/* Whether @addr lies in one of the prefixes of @list, as longhaul rule shows them. */
static bool in_prefixes(const char *list, const char *addr)
{
	char one[80];

	while (*list) {
		size_t len = strcspn(list, ", ");

		snprintf(one, sizeof(one), "%.*s", (int)len, list);
		if (filter_address(addr, one))
			return true;
		list += len + strspn(list + len, ", ");
	}
	return false;
}

/* What a rule lacks for a packet between @near, on the LAN side, and @far. */
enum lack {
	LACKS_NOTHING,
	LACKS_VLAN,
	LACKS_FAR,
	LACKS_NEAR,
	EXCHANGED,
	LACKS_BOTH,
};

static enum lack lack_of(const json_t *rule, const char *near, const char *far, const char *vlan)
{
	const char *lan = doctor_text(rule, "lan"), *wan = doctor_text(rule, "wan");
	const char *want = doctor_text(rule, "vlan");
	bool n = in_prefixes(lan, near), f = in_prefixes(wan, far);

	if (n && f)
		return strcmp(want, "any") && strcmp(want, vlan) ? LACKS_VLAN : LACKS_NOTHING;
	if (in_prefixes(wan, near) && in_prefixes(lan, far))
		return EXCHANGED;
	return n ? LACKS_FAR : f ? LACKS_NEAR : LACKS_BOTH;
}

/* What the rule @name lacks, in words. */
static void say_lack(struct doctor_finding *f, enum lack lack, const char *name, const char *near,
		     const char *far)
{
	switch (lack) {
	case LACKS_NOTHING:
		doctor_more(f, "rule %s has both, but one is an address of this host itself", name);
		snprintf(f->mend, sizeof(f->mend),
			 "RDMA of this host itself is never taken: longhaul accelerates hosts "
			 "behind its LAN port");
		break;
	case LACKS_VLAN:
		doctor_more(f, "rule %s is for another VLAN", name);
		break;
	case LACKS_FAR:
		doctor_more(f, "rule %s has no %s in wan", name, far);
		break;
	case LACKS_NEAR:
		doctor_more(f, "rule %s has no %s in lan", name, near);
		break;
	case EXCHANGED:
		doctor_more(f, "in rule %s lan and wan are exchanged, or the two ports are", name);
		break;
	case LACKS_BOTH:
		doctor_more(f, "no rule has either");
		break;
	}
}

/* Add whose packets no rule wanted, and what the rule that comes closest to them lacks. */
static void add_unwanted(const struct doctor_look *d, const struct traffic *t,
			 struct doctor_finding *f)
{
	const char *from = doctor_text(t->port, "unwanted-from");
	const char *to = doctor_text(t->port, "unwanted-to"), *name = "";
	bool lan = !strcmp(doctor_text(t->port, "side"), "lan");
	const char *near = lan ? from : to, *far = lan ? to : from;
	const json_t *vlan = json_object_get(t->port, "unwanted-vlan"), *o;
	enum lack least = LACKS_BOTH;
	char id[24] = "none";
	size_t i;

	if (!*from)
		return;
	if (json_is_integer(vlan))
		snprintf(id, sizeof(id), "%lld", (long long)json_integer_value(vlan));
	json_array_foreach (doctor_list(d->now, "rule"), i, o) {
		enum lack l = lack_of(o, near, far, id);

		if (l >= least)
			continue;
		least = l;
		name = doctor_text(o, "name");
	}
	doctor_more(f, ", such as from %s to %s (VLAN %s): ", from, to, id);
	say_lack(f, least, name, near, far);
}

/* Why most of what passed did so, if it is enough to matter. */
static enum doctor_verdict judge_passed(const struct doctor_look *d, const struct traffic *t,
					struct doctor_finding *f)
{
	static const struct {
		const char *key, *what, *mend;
	} causes[] = {
		{"passed-no-rule", "no rule wants them",
		 "compare their addresses and VLAN (tcpdump shows what passes) with lan, wan and "
		 "vlan of the rules (longhaul rule)"},
		{"passed-no-daemon", "longhauld was late",
		 "give longhauld a processor of its own: CPUAffinity=, Nice= in its unit"},
		{"passed-no-socket", "they came by a receive queue without a socket",
		 "restart longhauld: it opens one for each queue"},
		{"passed-too-long", "they are longer than the kernel can hand over",
		 "Linux 6.6 or newer, max-path-mtu, or a path MTU of 2048 at the hosts"},
		{"passed-tags", "they have two VLAN tags, or a service tag",
		 "longhaul takes one tag, or none"},
		{"passed-fragment", "they are IP fragments, or have IP options",
		 "RoCEv2 has neither: look at what is between the hosts and this port"},
	};
	const char *name = doctor_text(t->port, "name");
	json_int_t most = 0, all = t->taken + t->passed;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		json_int_t n = count(d, t, causes[i].key);

		if (n <= most)
			continue;
		most = n;
		at = i;
	}
	if (most < FEW || most < all / 10)
		return DOCTOR_OK;
	doctor_put(f, DOCTOR_WRONG, causes[at].mend,
		   "%lld of %lld RoCEv2 frames at %s passed unaccelerated %s, for %s",
		   (long long)most, (long long)all, name,
		   t->recent ? "just now" : "since the start", causes[at].what);
	if (at)
		return DOCTOR_WRONG;
	add_unwanted(d, t, f);
	/* hosts of no rule may be meant to pass, beside others */
	return doctor_number(t->port, "rx-packets") ? DOCTOR_NOTE : DOCTOR_WRONG;
}

/* Nothing came, or by one port only. */
static enum doctor_verdict judge_ways(const struct doctor_look *d, const struct traffic *lan,
				      const struct traffic *wan, struct doctor_finding *f)
{
	json_int_t l = lan->taken + lan->passed, w = wan->taken + wan->passed;
	const struct traffic *some = l ? lan : wan, *none = l ? wan : lan;

	if (!l && !w)
		return doctor_put(
			f, DOCTOR_WRONG,
			"start a transfer; if one runs, its packets do not cross this machine: "
			"look at bridge, routes and VLANs, and with tcpdump for udp port 4791",
			"no RoCEv2 has come since the start, only %lld other frames by %s and %lld "
			"by %s",
			(long long)doctor_number(lan->port, "other"),
			doctor_text(lan->port, "name"),
			(long long)doctor_number(wan->port, "other"),
			doctor_text(wan->port, "name"));
	if (l + w >= FEW && (!l || !w) && !doctor_pairs(d))
		return doctor_put(
			f, DOCTOR_WRONG,
			"both directions must cross this machine: look at routes, ECMP, LAG and "
			"firewalls (UDP port 4791); if they do, the hosts behind the silent port "
			"do not answer",
			"%lld RoCEv2 frames have come by %s and none by %s", (long long)(l + w),
			doctor_text(some->port, "name"), doctor_text(none->port, "name"));
	return DOCTOR_OK;
}

enum doctor_verdict doctor_frames(const struct doctor_look *d, struct doctor_finding *f)
{
	struct traffic lan = traffic_of(d, "lan", false), wan = traffic_of(d, "wan", false);
	enum doctor_verdict v = DOCTOR_OK;

	for (int side = 0; side < 2 && v == DOCTOR_OK; side++) {
		struct traffic t = traffic_of(d, side ? "wan" : "lan", true);

		/* what passed long ago may be mended; but nothing else may have come since */
		if (t.taken + t.passed < FEW && !doctor_number(t.port, "rx-packets"))
			t = side ? wan : lan;
		v = judge_passed(d, &t, f);
	}
	if (v != DOCTOR_WRONG && judge_ways(d, &lan, &wan, f) == DOCTOR_WRONG)
		v = DOCTOR_WRONG;
	if (v != DOCTOR_OK)
		return v;
	return doctor_put(f, DOCTOR_OK, "", "%lld RoCEv2 frames taken at %s, %lld at %s",
			  (long long)lan.taken, doctor_text(lan.port, "name"), (long long)wan.taken,
			  doctor_text(wan.port, "name"));
}

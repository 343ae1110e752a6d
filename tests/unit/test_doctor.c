// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * longhaul doctor: which check speaks for what the daemon tells, and that it is the first one that
 * is wrong. What the daemon tells is JSON made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/doctor.h"
#include "control/health.h"

/* A pair at work: one connection, whose lane `out' is held here. Quotes are single. */
static const char well[] =
	"{'daemon': [{'state': 'running', 'own-in-rules': null}],"
	" 'status': [],"
	" 'port': [{'name': 'lan0', 'side': 'lan', 'state': 'up', 'mtu': 4300, 'xdp': 'native',"
	"   'rx-packets': 5000, 'tx-bytes': 0, 'passed': 0, 'other': 3},"
	"  {'name': 'wan0', 'side': 'wan', 'state': 'up', 'mtu': 4300, 'xdp': 'native',"
	"   'rx-packets': 60, 'tx-bytes': 20000000, 'passed': 0, 'other': 900}],"
	" 'peer': [{'name': 'edge-b', 'state': 'up', 'srtt-us': 30000, 'pace-bps': 1000000000,"
	"   'pace-cause': 'queue'}],"
	" 'rule': [{'name': 'hosts', 'policy': 'early', 'connections': 1, 'custody-bytes': 1048576,"
	"   'custody-oldest-ms': 30, 'prefetch': 'off'}],"
	" 'qp': [{'id': 7, 'lan-ip': '10.1.0.5', 'lqpn': 17, 'wan-ip': '10.2.0.7', 'rqpn': 34,"
	"   'state': 'held', 'idle-ms': 2, 'out-packets': 5000, 'in-packets': 60,"
	"   'out-bytes': 20000000, 'in-bytes': 4000}],"
	" 'lane': [{'id': 7, 'direction': 'out', 'lan-ip': '10.1.0.5', 'lqpn': 17,"
	"   'wan-ip': '10.2.0.7', 'rqpn': 34, 'role': 'opener', 'state': 'held', 'policy': 'early',"
	"   'rule': 'hosts', 'peer': 'edge-b', 'path-mtu': 4096, 'requests': 5000, 'msn': 300,"
	"   'srtt-us': 30000, 'custody-bytes': 1048576, 'custody-packets': 256, "
	"'custody-oldest-ms': 30,"
	"   'reads-pending-most': 0, 'custody-messages-most': 16},"
	"  {'id': 7, 'direction': 'in', 'lan-ip': '10.1.0.5', 'lqpn': 17, 'wan-ip': '10.2.0.7',"
	"   'rqpn': 34, 'role': null, 'state': 'watch', 'policy': 'early', 'rule': 'hosts',"
	"   'path-mtu': 4096, 'requests': 0}],"
	" 'stats': [{'group': 'daemon', 'name': 'uptime-ms', 'value': 60000},"
	"  {'group': 'engine', 'name': 'held-back', 'value': 5},"
	"  {'group': 'engine', 'name': 'retx-wan', 'value': 0},"
	"  {'group': 'engine', 'name': 'retx-spurious', 'value': 0},"
	"  {'group': 'memory', 'name': 'pool-bytes', 'value': 268435456}]}";

static json_t *now, *before;

static json_t *parse(const char *quoted)
{
	char *text = strdup(quoted);
	json_error_t why;
	json_t *o;

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	o = json_loads(text, JSON_DECODE_ANY, &why);
	if (!o)
		fail_msg("%s at %d of %s", why.text, why.position, text);
	free(text);
	return o;
}

/* Member @key of object @i of @what is @value. */
static void set(json_t *look, const char *what, size_t i, const char *key, const char *value)
{
	json_t *o = json_array_get(json_object_get(look, what), i);

	assert_non_null(o);
	json_object_set_new(o, key, parse(value));
}

static void add(const char *what, const char *object)
{
	json_array_append_new(json_object_get(now, what), parse(object));
}

/* The second look is a second later, and the connection has carried 1000 packets since. */
static int setup(void **state)
{
	(void)state;
	before = parse(well);
	now = parse(well);
	set(now, "lane", 0, "requests", "6000");
	set(now, "lane", 0, "msn", "360");
	set(now, "qp", 0, "out-bytes", "24000000");
	set(now, "port", 0, "rx-packets", "6000");
	set(now, "port", 1, "tx-bytes", "24000000");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(now);
	json_decref(before);
	return 0;
}

static struct doctor_look looks(void)
{
	return (struct doctor_look){.now = now, .before = before, .seconds = 1};
}

static const json_t *finding(const json_t *all, const char *check)
{
	const json_t *o;
	size_t i;

	json_array_foreach (all, i, o)
		if (!strcmp(doctor_text(o, "check"), check))
			return o;
	return NULL;
}

static void assert_finding(const json_t *all, const char *check, const char *verdict,
			   const char *reason)
{
	const json_t *o = finding(all, check);

	if (!o)
		fail_msg("%s: no finding", check);
	if (strcmp(doctor_text(o, "verdict"), verdict) || !strstr(doctor_text(o, "reason"), reason))
		fail_msg("%s: %s, not %s: '%s', without '%s'", check, doctor_text(o, "verdict"),
			 verdict, doctor_text(o, "reason"), reason);
	if (!strcmp(verdict, "wrong"))
		assert_true(strlen(doctor_text(o, "mend")) > 10);
}

/* The walk stops at @check, which says @reason; all before it is well, none after it is made. */
static void stops(const char *check, const char *reason)
{
	struct doctor_look d = looks();
	json_t *all = doctor_walk(&d);
	const json_t *o;
	bool after = false;
	size_t i;

	assert_finding(all, check, "wrong", reason);
	assert_true(doctor_wrong(all));
	json_array_foreach (all, i, o) {
		bool it = !strcmp(doctor_text(o, "check"), check);

		if (!it && after != !strcmp(doctor_text(o, "verdict"), "skipped"))
			fail_msg("%s is %s", doctor_text(o, "check"), doctor_text(o, "verdict"));
		after |= it;
	}
	json_decref(all);
}

/* The walk goes on to its end, and @check has a note; NULL: none has. */
static void notes(const char *check, const char *reason)
{
	struct doctor_look d = looks();
	json_t *all = doctor_walk(&d);
	const json_t *o;
	size_t i;

	assert_false(doctor_wrong(all));
	json_array_foreach (all, i, o) {
		bool it = check && !strcmp(doctor_text(o, "check"), check);

		assert_finding(all, doctor_text(o, "check"), it ? "note" : "ok", it ? reason : "");
		assert_true(*doctor_text(o, "reason"));
	}
	json_decref(all);
}

static void test_well(void **state)
{
	(void)state;
	notes(NULL, NULL);
}

/* Each alarm belongs to one check, which says its reason and mend. */
static void test_alarms(void **state)
{
	struct health_what w;
	char alarm[256];

	for (unsigned int i = 0; i < HEALTH_KINDS + HEALTH_PEER_KINDS; i++) {
		const char *check = NULL;

		assert_true(health_alarm_of(i, &w));
		for (const struct doctor_check *c = doctor_checks; c->name; c++) {
			char list[256], *save, *word;

			snprintf(list, sizeof(list), "%s", c->alarms);
			for (word = strtok_r(list, " ", &save); word;
			     word = strtok_r(NULL, " ", &save)) {
				if (strcmp(word, w.name))
					continue;
				assert_null(check);
				check = c->name;
			}
		}
		if (!check)
			fail_msg("no check has alarm %s", w.name);
		snprintf(alarm, sizeof(alarm),
			 "{'name': '%s', 'state': 'raised', 'reason': 'figures of it', 'mend': "
			 "'mend it so and so'}",
			 w.name);
		add("status", alarm);
		stops(check, "figures of it");
		teardown(state);
		setup(state);
	}
	add("status", "{'name': 'loss', 'state': 'ok', 'reason': null, 'mend': null}");
	notes(NULL, NULL);
}

/* A warning whose cause has ended hides nothing that is wrong now. */
static void test_ended(void **state)
{
	(void)state;
	add("status",
	    "{'name': 'tx-dropped', 'level': 'warning', 'state': 'raised', 'ended-ms': 4000,"
	    " 'reason': 'wan0 did not take them', 'mend': 'mend the queue'}");
	notes("ports", "wan0 did not take them (alarm tx-dropped, ended 4.0s ago)");
	set(now, "peer", 0, "state", "'down'");
	set(now, "peer", 0, "note", "'nothing listens there'");
	stops("peers", "nothing listens there");
	set(now, "peer", 0, "state", "'up'");
	add("status",
	    "{'name': 'port-down', 'level': 'critical', 'state': 'raised', 'ended-ms': 900,"
	    " 'reason': 'wan0 is down', 'mend': 'look at the cable'}");
	stops("ports", "wan0 is down (alarm port-down, ended 900ms ago)");
}

struct change {
	const char *what;
	size_t i;
	const char *key, *value;
};

static void apply(const struct change *c, size_t n)
{
	for (size_t i = 0; i < n && c[i].what; i++)
		set(now, c[i].what, c[i].i, c[i].key, c[i].value);
}

static void test_wrong(void **state)
{
	static const struct {
		struct change change[6];
		const char *check, *reason;
	} cases[] = {
		{{{"daemon", 0, "state", "'stopping'"}}, "daemon", "is stopping"},
		{{{"port", 1, "bridged", "'no'"}}, "ports", "wan0 is in no bridge"},
		{{{"peer", 0, "state", "'down'"}, {"peer", 0, "note", "'it has another key'"}},
		 "peers",
		 "edge-b is down: it has another key"},
		{{{"rule", 0, "policy", "'off'"}}, "rules", "rule hosts has policy = off"},
		/* a cause that is no rule's, though others were taken */
		{{{"port", 0, "passed", "2000"}, {"port", 0, "passed-tags", "2000"}},
		 "frames",
		 "2000 of 3000 RoCEv2 frames at lan0 passed unaccelerated just now, for they have "
		 "two "
		 "VLAN tags"},
		{{{"port", 1, "passed", "60"}, {"port", 1, "passed-too-long", "60"}},
		 "frames",
		 "60 of 60 RoCEv2 frames at wan0"},
		{{{"qp", 0, "state", "'watch'"},
		  {"qp", 0, "note", "'peer refused: it has no rule for this connection'"},
		  {"lane", 0, "reason", "'no-rule-at-peer'"}},
		 "held",
		 "1 of 1 connections in use is not accelerated, that of 10.1.0.5 qpn 0x11 and "
		 "10.2.0.7 qpn 0x22: peer refused"},
		{{{"qp", 0, "rqpn", "null"},
		  {"qp", 0, "in-packets", "0"},
		  {"qp", 0, "state", "'watch'"}},
		 "pairs",
		 "asymmetric path"},
		{{{"qp", 0, "rqpn", "null"},
		  {"qp", 0, "note", "'looking for its partner: 2 matches'"}},
		 "pairs",
		 "such as 10.1.0.5 qpn 0x11 and 10.2.0.7: looking for its partner: 2 matches"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		apply(cases[i].change, 6);
		stops(cases[i].check, cases[i].reason);
		teardown(state);
		setup(state);
	}
}

/* What is no fault: the walk goes on. */
static void test_notes(void **state)
{
	static const struct {
		struct change change[3];
		const char *check, *reason;
	} cases[] = {
		{{{"port", 0, "xdp", "'generic'"}, {"port", 0, "xdp-reason", "'refused it'"}},
		 "ports",
		 "generic XDP: refused it"},
		{{{"port", 1, "mtu", "1500"}}, "ports", "MTU 1500"},
		{{{"peer", 0, "lan-mtu", "4300"}, {"peer", 0, "wan-mtu", "1500"}},
		 "peers",
		 "edge-b is up, round trip 30.0ms; its WAN port has MTU 1500"},
		/* hosts without a rule beside others that have one */
		{{{"port", 0, "passed", "900"}, {"port", 0, "passed-no-rule", "900"}},
		 "frames",
		 "900 of 1900 RoCEv2 frames at lan0"},
		{{{"rule", 0, "policy", "'honest'"}}, "custody", "policy = honest"},
		{{{"port", 1, "tx-bytes", "140000000"}}, "speed", "the link is full: 960M bit/s"},
		{{{"port", 1, "tx-packets", "20000"},
		  {"stats", 2, "value", "420"},
		  {"stats", 3, "value", "20"}},
		 "speed",
		 "; 2.0 % of the packets were lost on the way and sent again"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		apply(cases[i].change, 3);
		notes(cases[i].check, cases[i].reason);
		teardown(state);
		setup(state);
	}
	json_array_clear(json_object_get(now, "peer"));
	notes("peers", "works alone");
}

/* No connection yet: what the ports have seen says why. */
static void test_frames(void **state)
{
	struct change none[] = {{"port", 0, "rx-packets", "0"}, {"port", 1, "rx-packets", "0"}};
	struct change strangers[] = {{"port", 0, "passed", "80"},
				     {"port", 0, "passed-no-rule", "80"}};
	struct change one_way[] = {{"port", 0, "rx-packets", "80"}, {"port", 1, "rx-packets", "0"}};

	(void)state;
	for (int i = 0; i < 2; i++)
		set(before, "port", (size_t)i, "rx-packets", "0");
	json_array_clear(json_object_get(now, "qp"));
	json_array_clear(json_object_get(now, "lane"));
	apply(none, 2);
	stops("frames",
	      "no RoCEv2 has come since the start, only 3 other frames by lan0 and 900 by wan0");
	apply(strangers, 2);
	stops("frames",
	      "80 of 80 RoCEv2 frames at lan0 passed unaccelerated just now, for no rule wants");
	/* the same, and nobody sends at the moment */
	set(before, "port", 0, "passed", "80");
	set(before, "port", 0, "passed-no-rule", "80");
	stops("frames", "passed unaccelerated since the start");
	set(now, "port", 0, "passed", "0");
	set(now, "port", 0, "passed-no-rule", "0");
	apply(one_way, 2);
	stops("frames", "80 RoCEv2 frames have come by lan0 and none by wan0");
}

/* Of packets that no rule wanted: which rule comes closest, and what it lacks. */
static void test_unwanted(void **state)
{
	static const struct {
		const char *side, *from, *to, *vlan, *reason;
	} cases[] = {
		{"'lan'", "'10.1.0.9'", "'10.2.0.7'", "null",
		 "such as from 10.1.0.9 to 10.2.0.7 (VLAN none): rule hosts has both, but one is "
		 "an "
		 "address of this host itself"},
		{"'lan'", "'10.1.0.9'", "'10.2.0.7'", "100",
		 "(VLAN 100): rule hosts is for another VLAN"},
		{"'lan'", "'10.1.0.9'", "'10.3.0.7'", "null", "rule hosts has no 10.3.0.7 in wan"},
		{"'lan'", "'10.4.0.9'", "'10.2.0.7'", "null", "rule hosts has no 10.4.0.9 in lan"},
		{"'wan'", "'10.2.0.7'", "'10.4.0.9'", "null", "rule hosts has no 10.4.0.9 in lan"},
		{"'lan'", "'10.2.0.7'", "'10.1.0.9'", "null",
		 "in rule hosts lan and wan are exchanged, or the two ports are"},
		{"'lan'", "'fd01::1'", "'fd02::2'", "100", "rule six has no fd02::2 in wan"},
		{"'lan'", "'10.5.0.1'", "'fd02::2'", "null", "no rule has either"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_array_clear(json_object_get(now, "rule"));
		add("rule", "{'name': 'six', 'policy': 'early', 'lan': 'fd01::/64', 'wan': "
			    "'fd03::/64', 'vlan': 'any'}");
		add("rule",
		    "{'name': 'hosts', 'policy': 'early', 'lan': '10.8.0.0/16, 10.1.0.0/16', "
		    "'wan': '10.2.0.0/16', 'vlan': 'none'}");
		set(now, "port", 0, "side", cases[i].side);
		set(now, "port", 1, "side", strcmp(cases[i].side, "'lan'") ? "'lan'" : "'wan'");
		set(now, "port", 0, "passed", "80");
		set(now, "port", 0, "passed-no-rule", "80");
		set(now, "port", 0, "rx-packets", "0");
		set(now, "port", 0, "unwanted-from", cases[i].from);
		set(now, "port", 0, "unwanted-to", cases[i].to);
		set(now, "port", 0, "unwanted-vlan", cases[i].vlan);
		stops("frames", cases[i].reason);
		teardown(state);
		setup(state);
	}
}

/* What slows a host: the causes, each with its figure. */
static void test_host(void **state)
{
	static const struct {
		struct change change[6];
		const char *cause, *verdict, *reason;
	} cases[] = {
		{{{"lane", 0, "dropped-duplicates", "0"}},
		 "requester",
		 "note",
		 "which sends 32.0M bit/s, 60 messages a second"},
		{{{"qp", 0, "state", "'watch'"}, {"qp", 0, "note", "'peer edge-b is down'"}},
		 "held",
		 "wrong",
		 "are not accelerated (watch): peer edge-b is down"},
		{{{"lane", 0, "rnr", "40"}}, "receives", "wrong", "not ready 40 times in a second"},
		{{{"lane", 0, "dropped-duplicates", "300"}, {"lane", 0, "reads-pending-most", "2"}},
		 "repeats",
		 "wrong",
		 "repeats 300 packets a second"},
		{{{"lane", 0, "reads-pending-most", "1"}},
		 "reads",
		 "wrong",
		 "at most 1 READ at a time, and each takes the round trip of 30.0ms: 33 a second"},
		{{{"lane", 0, "reads-pending-most", "16"}},
		 "reads",
		 "wrong",
		 "16 READs at a time, and each takes the round trip of 30.0ms: 533 a second at "
		 "most (16 "
		 "is the limit"},
		{{{"lane", 0, "policy", "'honest'"}, {"lane", 0, "custody-messages-most", "1"}},
		 "policy",
		 "wrong",
		 "at most 1 was under way"},
		{{{"port", 1, "tx-bytes", "140000000"}},
		 "link",
		 "wrong",
		 "960M bit/s leave, and its pace is 1.0G, found by queue"},
		{{{"stats", 1, "value", "50"}},
		 "link",
		 "wrong",
		 "1.0M wait here, a round trip needs 117K"},
		{{{"stats", 1, "value", "50"}, {"lane", 0, "custody-bytes", "200000"}},
		 "pool",
		 "wrong",
		 "195K of it are under way, of a pool of 256M, and acknowledgements were withheld "
		 "45"},
		{{{"lane", 0, "role", "'acceptor'"}, {"lane", 0, "transit-oldest-ms", "70"}},
		 "answers",
		 "wrong",
		 "the oldest for 70ms"},
		{{{"lane", 0, "custody-oldest-ms", "4000"}},
		 "answers",
		 "wrong",
		 "the responder has acknowledged nothing for 4.0s, and 1.0M wait for it"},
		{{{"lane", 0, "path-mtu", "1024"}},
		 "path-mtu",
		 "note",
		 "4 times the packets of 4096"},
		{{{"lane", 0, "requests", "5000"}, {"qp", 0, "idle-ms", "60000"}},
		 "idle",
		 "ok",
		 "none of its 1 connection was in use"},
		{{{"qp", 0, "rqpn", "null"},
		  {"lane", 0, "requests", "5000"},
		  {"qp", 0, "idle-ms", "60000"}},
		 "pairs",
		 "wrong",
		 "the partner of 1 of its queue pairs is not known"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct doctor_look d = looks();
		json_t *all;

		apply(cases[i].change, 6);
		all = doctor_host(&d, i % 2 ? "10.1.0.5" : "10.2.0.7");
		assert_finding(all, cases[i].cause, cases[i].verdict, cases[i].reason);
		assert_int_equal(doctor_wrong(all), !strcmp(cases[i].verdict, "wrong"));
		json_decref(all);
		teardown(state);
		setup(state);
	}
}

static void test_host_mends(void **state)
{
	struct doctor_look d = looks();
	json_t *all;

	(void)state;
	/* 4.096 us x 2^14 is 67 ms, more than twice the round trip */
	set(now, "lane", 0, "dropped-duplicates", "300");
	set(now, "lane", 0, "reads-pending-most", "2");
	all = doctor_host(&d, "10.1.0.5");
	assert_non_null(
		strstr(doctor_text(finding(all, "repeats"), "mend"), "a timeout of 14 or more"));
	json_decref(all);
	/* READs that are foreseen wait for nothing */
	set(now, "lane", 0, "dropped-duplicates", "0");
	set(now, "rule", 0, "prefetch", "'on'");
	set(now, "lane", 0, "ahead-hits", "90");
	set(now, "lane", 0, "ahead-misses", "10");
	all = doctor_host(&d, "10.1.0.5");
	assert_null(finding(all, "reads"));
	json_decref(all);
	set(now, "lane", 0, "ahead-misses", "100");
	all = doctor_host(&d, "10.1.0.5");
	assert_non_null(strstr(doctor_text(finding(all, "reads"), "mend"), "follow no pattern"));
	json_decref(all);
	/* what a connection waits for */
	set(now, "qp", 0, "state", "'watch'");
	set(now, "qp", 0, "path-mtu", "0");
	all = doctor_host(&d, "10.1.0.5");
	assert_non_null(
		strstr(doctor_text(finding(all, "held"), "mend"), "set path-mtu in the rule"));
	json_decref(all);
	set(now, "lane", 0, "reason", "'no-room-at-peer'");
	all = doctor_host(&d, "10.1.0.5");
	assert_string_equal(doctor_text(finding(all, "held"), "mend"),
			    "raise max-connections there");
	json_decref(all);
	all = doctor_host(&d, "10.1.0.9");
	assert_finding(all, "pairs", "wrong", "no queue pair of 10.1.0.9 is known");
	json_decref(all);
	/* a link that is full by its losses may be a bad one */
	set(now, "port", 1, "tx-bytes", "150000000");
	set(now, "peer", 0, "pace-cause", "'loss'");
	all = doctor_host(&d, "10.1.0.5");
	assert_non_null(strstr(doctor_text(finding(all, "link"), "mend"), "interfaces and optics"));
	json_decref(all);
}

/* While the peer is down no host is to blame. */
static void test_host_cut(void **state)
{
	struct doctor_look d = looks();
	json_t *all;

	(void)state;
	set(now, "lane", 0, "custody-oldest-ms", "7300");
	set(before, "lane", 0, "custody-oldest-ms", "6300");
	all = doctor_host(&d, "10.1.0.5");
	assert_finding(all, "answers", "wrong", "has acknowledged nothing for 7.3s");
	json_decref(all);
	set(now, "peer", 0, "state", "'down'");
	set(now, "peer", 0, "note", "'the link is cut'");
	all = doctor_host(&d, "10.1.0.5");
	assert_finding(all, "link", "wrong", "peer edge-b is down: the link is cut");
	assert_null(finding(all, "answers"));
	json_decref(all);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* A responder here is silent: what its pings told is the finding, in the walk and of the host. */
static void test_reach(void **state)
{
	struct doctor_look d = looks();
	unsigned int path_mtu;
	const char *host;
	json_t *all;

	(void)state;
	set(now, "lane", 1, "silent-ms", "1999");
	set(now, "lane", 1, "transit-packets", "1");
	assert_int_equal(doctor_silent(doctor_list(now, "lane"), NULL, &host, &path_mtu), 0);
	set(now, "lane", 1, "silent-ms", "7000");
	set(now, "lane", 1, "transit-oldest-ms", "7000");
	set(now, "lane", 1, "transit-packets", "0"); /* it is at the peer */
	assert_int_equal(doctor_silent(doctor_list(now, "lane"), NULL, &host, &path_mtu), 0);
	set(now, "lane", 1, "transit-packets", "1");
	assert_int_equal(doctor_silent(doctor_list(now, "lane"), NULL, &host, &path_mtu), 7000);
	assert_string_equal(host, "10.1.0.5");
	assert_int_equal(doctor_silent(doctor_list(now, "lane"), "10.2.0.7", &host, &path_mtu), 0);
	assert_int_equal(path_mtu, 4096);
	all = doctor_walk(&d);
	assert_finding(all, "hosts", "ok", "no host here");
	json_decref(all);
	json_object_set_new(now, "ping",
			    parse("[{'address': '10.1.0.5', 'silent-ms': 7000, 'answers': true,"
				  "'carried': 1498, 'length': 4156}]"));
	stops("hosts", "packets of more than 1498 bytes do not reach host 10.1.0.5, and hosts send "
		       "4156: it has not answered for 7.0s");
	all = doctor_walk(&d);
	assert_non_null(strstr(doctor_text(finding(all, "hosts"), "mend"), "there to 4188"));
	assert_non_null(strstr(doctor_text(finding(all, "hosts"), "mend"), "hosts to 1024"));
	json_decref(all);
	set(now, "ping", 0, "carried", "4150");
	stops("hosts", "although it answers pings of 4150 bytes");
	set(now, "lane", 1, "transit-packets", "8");
	set(now, "lane", 1, "requests", "9");
	all = doctor_host(&d, "10.1.0.5");
	assert_finding(all, "answers", "wrong", "although it answers pings");
	json_decref(all);
	set(now, "ping", 0, "address", "'10.1.0.6'"); /* another host is no cause */
	all = doctor_host(&d, "10.1.0.5");
	assert_finding(all, "answers", "wrong", "wait here for the responder");
	json_decref(all);
	set(now, "ping", 0, "address", "'10.1.0.5'");
	set(now, "ping", 0, "answers", "false");
	stops("hosts", "nor does it answer pings");
	set(now, "ping", 0, "no-route", "true");
	stops("hosts", "has no route to it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_well),       TEST(test_ended),    TEST(test_alarms),	 TEST(test_wrong),
		TEST(test_notes),      TEST(test_frames),   TEST(test_unwanted), TEST(test_host),
		TEST(test_host_mends), TEST(test_host_cut), TEST(test_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

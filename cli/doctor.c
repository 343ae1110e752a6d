// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The walk: what must be right before anything is accelerated, in the order in which one thing
 * needs the other. Up to `rules' nothing needs traffic, so a new pair can be looked at before its
 * hosts send. What the daemon judges already is not judged again: an alarm that is raised is the
 * finding of the check that lists it.
 */
#include "cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/object.h"

#define LOSS_OF	  1000	/* of so many packets, one that is lost is not told of */
#define ACTIVE_MS 10000 /* a connection that was silent for longer is idle */

const json_t *doctor_list(const json_t *look, const char *what)
{
	return json_object_get(look, what);
}

const char *doctor_text(const json_t *o, const char *key)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t ? t : "";
}

json_int_t doctor_number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* What tells an object from others of its kind. */
static const char *key_of(const char *what, const json_t *o, char key[128])
{
	snprintf(key, 128, "%s %s %s %lld %s", what, doctor_text(o, "group"),
		 doctor_text(o, "name"), (long long)doctor_number(o, "id"),
		 strcmp(what, "lane") ? "" : doctor_text(o, "direction"));
	return key;
}

enum look {
	NOW,
	BEFORE,
};

void doctor_index(struct doctor_look *d)
{
	const json_t *const looks[] = {d->now, d->before};
	const char *what;
	json_t *list, *o;
	char key[128];
	size_t i;

	for (int l = NOW; l <= BEFORE; l++) {
		d->index[l] = json_object();
		json_object_foreach ((json_t *)looks[l], what, list)
			json_array_foreach (list, i, o)
				json_object_set(d->index[l], key_of(what, o, key), o);
	}
}

void doctor_unindex(struct doctor_look *d)
{
	for (int l = NOW; l <= BEFORE; l++)
		json_decref(d->index[l]);
}

static const json_t *find(const struct doctor_look *d, enum look l, const char *what,
			  const json_t *o)
{
	char key[128];

	return json_object_get(d->index[l], key_of(what, o, key));
}

const json_t *doctor_find(const struct doctor_look *d, const char *what, const json_t *o)
{
	return find(d, NOW, what, o);
}

json_int_t doctor_grown(const struct doctor_look *d, const char *what, const json_t *o,
			const char *key)
{
	const json_t *b = find(d, BEFORE, what, o);
	json_int_t n = b ? doctor_number(o, key) - doctor_number(b, key) : 0;

	return n > 0 ? n : 0;
}

json_int_t doctor_stat(const json_t *look, const char *group, const char *name)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(look, "stats"), i, o)
		if (!strcmp(doctor_text(o, "group"), group) &&
		    !strcmp(doctor_text(o, "name"), name))
			return doctor_number(o, "value");
	return 0;
}

json_int_t doctor_engine(const struct doctor_look *d, const char *name)
{
	return doctor_stat(d->now, "engine", name) - doctor_stat(d->before, "engine", name);
}

const char *doctor_shown(const char *what, const char *key, json_int_t v)
{
	static char buf[8][COLUMN_TEXT];
	static unsigned int at;
	json_t *n = json_integer(v);
	const char *text;

	at = (at + 1) % 8;
	text = column_text(column_find(object_find(what), key), n, buf[at]);
	json_decref(n);
	return text;
}

enum doctor_verdict doctor_put(struct doctor_finding *f, enum doctor_verdict v, const char *mend,
			       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->reason, sizeof(f->reason), fmt, ap);
	va_end(ap);
	snprintf(f->mend, sizeof(f->mend), "%s", mend);
	return v;
}

static const char *plural(json_int_t n)
{
	return n == 1 ? "" : "s";
}

static enum doctor_verdict look_daemon(const struct doctor_look *d, struct doctor_finding *f)
{
	const json_t *o = json_array_get(doctor_list(d->now, "daemon"), 0);

	if (!strcmp(doctor_text(o, "state"), "stopping"))
		return doctor_put(f, DOCTOR_WRONG, "start it again: systemctl start longhauld",
				  "longhauld is stopping: it takes nothing new into custody");
	return doctor_put(
		f, DOCTOR_OK, "", "longhauld has been running for %s",
		doctor_shown("peer", "since-ms", doctor_stat(d->now, "daemon", "uptime-ms")));
}

void doctor_more(struct doctor_finding *f, const char *fmt, ...)
{
	size_t used = strlen(f->reason);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->reason + used, sizeof(f->reason) - used, fmt, ap);
	va_end(ap);
}

static enum doctor_verdict look_ports(const struct doctor_look *d, struct doctor_finding *f)
{
	enum doctor_verdict v = DOCTOR_OK;
	json_int_t mtu = 0;
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "port"), i, o)
		if (!strcmp(doctor_text(o, "bridged"), "no"))
			return doctor_put(f, DOCTOR_WRONG,
					  "put it into one with a port of the other side: ip link "
					  "set dev INTERFACE master BRIDGE",
					  "%s is in no bridge: what longhaul does not take, ARP "
					  "among it, is lost",
					  doctor_text(o, "name"));
	f->reason[0] = f->mend[0] = '\0';
	json_array_foreach (doctor_list(d->now, "port"), i, o) {
		bool generic = !strcmp(doctor_text(o, "xdp"), "generic");

		doctor_more(f, "%s%s (%s) is %s, MTU %s, %s XDP", i ? "; " : "",
			    doctor_text(o, "name"), doctor_text(o, "side"), doctor_text(o, "state"),
			    doctor_shown("port", "mtu", doctor_number(o, "mtu")),
			    doctor_text(o, "xdp"));
		if (generic) {
			doctor_more(f, ": %s", doctor_text(o, "xdp-reason"));
			snprintf(f->mend, sizeof(f->mend),
				 "a driver with native XDP costs much less processor time");
			v = DOCTOR_NOTE;
		}
		if (i && mtu != doctor_number(o, "mtu")) {
			snprintf(f->mend, sizeof(f->mend),
				 "give both ports, the bridge and the link the MTU of the larger "
				 "one: what is longer than the smaller one does not cross");
			v = DOCTOR_NOTE;
		}
		mtu = doctor_number(o, "mtu");
	}
	return v;
}

/* A port of peer @o with a smaller MTU than all ports here: not all that hosts send crosses it. */
static bool narrow_peer(const struct doctor_look *d, const json_t *o, struct doctor_finding *f)
{
	static const char *const keys[] = {"wan-mtu", "lan-mtu"};
	json_int_t lan = doctor_number(doctor_port(d, "lan"), "mtu");
	json_int_t wan = doctor_number(doctor_port(d, "wan"), "mtu");

	for (int k = 0; k < 2; k++) {
		json_int_t mtu = doctor_number(o, keys[k]);

		if (!mtu || mtu >= (lan < wan ? lan : wan))
			continue;
		doctor_more(f, "; its %s port has MTU %lld, less than the ports here",
			    k ? "LAN" : "WAN", (long long)mtu);
		snprintf(f->mend, sizeof(f->mend),
			 "raise it, or see that hosts send no longer packets");
		return true;
	}
	return false;
}

static enum doctor_verdict look_peers(const struct doctor_look *d, struct doctor_finding *f)
{
	enum doctor_verdict v = DOCTOR_OK;
	const json_t *o;
	size_t i;

	f->reason[0] = f->mend[0] = '\0';
	json_array_foreach (doctor_list(d->now, "peer"), i, o) {
		if (strcmp(doctor_text(o, "state"), "up"))
			return doctor_put(f, DOCTOR_WRONG,
					  "if it stays: longhaul status says what to do",
					  "peer %s is %s: %s", doctor_text(o, "name"),
					  doctor_text(o, "state"), doctor_text(o, "note"));
		doctor_more(f, "%s%s is up, round trip %s", i ? "; " : "", doctor_text(o, "name"),
			    doctor_shown("peer", "srtt-us", doctor_number(o, "srtt-us")));
		if (narrow_peer(d, o, f))
			v = DOCTOR_NOTE;
	}
	if (!json_array_size(doctor_list(d->now, "peer")))
		return doctor_put(f, DOCTOR_NOTE,
				  "an appliance at the other end, as its peer, gains more",
				  "no peer is configured: this appliance works alone");
	return v;
}

static enum doctor_verdict look_rules(const struct doctor_look *d, struct doctor_finding *f)
{
	size_t i, n = json_array_size(doctor_list(d->now, "rule")), off = 0;
	const char *name = "";
	const json_t *o;

	json_array_foreach (doctor_list(d->now, "rule"), i, o) {
		if (strcmp(doctor_text(o, "policy"), "off"))
			continue;
		off++;
		name = doctor_text(o, "name");
	}
	if (off)
		return doctor_put(f, off == n ? DOCTOR_WRONG : DOCTOR_NOTE,
				  "policy = early or honest in that rule, longhaul.conf(5)",
				  "rule %s has policy = off: its connections pass unaccelerated",
				  name);
	o = json_array_get(doctor_list(d->now, "rule"), 0);
	doctor_put(f, DOCTOR_OK, "", "rule %s is for hosts %.80s here and %.80s there",
		   doctor_text(o, "name"), doctor_text(o, "lan"), doctor_text(o, "wan"));
	if (n > 1)
		doctor_more(f, "; %zu rules more", n - 1);
	return DOCTOR_OK;
}

const json_t *doctor_port(const struct doctor_look *d, const char *side)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "port"), i, o)
		if (!strcmp(doctor_text(o, "side"), side))
			return o;
	return NULL;
}

static bool paired(const json_t *qp)
{
	return json_is_integer(json_object_get(qp, "lqpn")) &&
	       json_is_integer(json_object_get(qp, "rqpn"));
}

static bool active(const json_t *qp)
{
	return doctor_number(qp, "idle-ms") < ACTIVE_MS;
}

json_int_t doctor_pairs(const struct doctor_look *d)
{
	json_int_t n = 0;
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "qp"), i, o)
		n += paired(o);
	return n;
}

/* "10.1.0.5 qpn 0x11 and 10.2.0.7 qpn 0x22" */
static const char *name_of(const json_t *qp, char *buf, size_t len)
{
	char l[24], r[24];

	snprintf(l, sizeof(l), " qpn %s", doctor_shown("qp", "lqpn", doctor_number(qp, "lqpn")));
	snprintf(r, sizeof(r), " qpn %s", doctor_shown("qp", "rqpn", doctor_number(qp, "rqpn")));
	snprintf(buf, len, "%s%s and %s%s", doctor_text(qp, "lan-ip"),
		 json_is_integer(json_object_get(qp, "lqpn")) ? l : "", doctor_text(qp, "wan-ip"),
		 json_is_integer(json_object_get(qp, "rqpn")) ? r : "");
	return buf;
}

/* Queue pairs in use whose partner is not known: those that come by one port only miss the other
 * direction. */
static enum doctor_verdict look_pairs(const struct doctor_look *d, struct doctor_finding *f)
{
	json_int_t half = 0, out = 0, in = 0, known = doctor_pairs(d);
	const json_t *o, *one = NULL;
	char name[128];
	size_t i;

	json_array_foreach (doctor_list(d->now, "qp"), i, o) {
		if (paired(o) || !active(o))
			continue;
		half++;
		out += doctor_number(o, "out-packets") > 0;
		in += doctor_number(o, "in-packets") > 0;
		one = o;
	}
	if (!half)
		return doctor_put(f, known ? DOCTOR_OK : DOCTOR_NOTE, "",
				  known ? "%lld connection%s known"
					: "%lld connection%s known: none was in use lately",
				  (long long)known, plural(known));
	name_of(one, name, sizeof(name));
	if (!out || !in)
		return doctor_put(f, known ? DOCTOR_NOTE : DOCTOR_WRONG,
				  "route both directions through here",
				  "%lld queue pair%s send%s through here and get%s no answer, such "
				  "as %s: asymmetric path, or a host that does not answer",
				  (long long)half, plural(half), half == 1 ? "s" : "",
				  half == 1 ? "s" : "", name);
	return doctor_put(f, known ? DOCTOR_NOTE : DOCTOR_WRONG,
			  "it takes about four acknowledged messages; if it stays, have "
			  "applications use the connection manager, which tells pairs",
			  "the partner of %lld queue pair%s is not known yet, such as %s: %s",
			  (long long)half, plural(half), name, doctor_text(one, "note"));
}

/* The reason of a lane of connection @qp. */
static const char *reason_of(const struct doctor_look *d, const json_t *qp)
{
	const json_t *o;
	size_t i;

	json_array_foreach (doctor_list(d->now, "lane"), i, o)
		if (doctor_number(o, "id") == doctor_number(qp, "id") && *doctor_text(o, "reason"))
			return doctor_text(o, "reason");
	return "";
}

const char *doctor_mend(const struct doctor_look *d, const json_t *qp)
{
	static const struct {
		const char *reason, *mend;
	} mends[] = {
		{"not-seen-by-peer",
		 "the other appliance must be on the path: look at ECMP and routes there"},
		{"one-direction-only",
		 "both directions must cross the other appliance, at the right ports"},
		{"pair-mismatch", "compare longhaul qp and path-mtu at both ends"},
		{"no-rule-at-peer", "make the rules of both appliances mirror images"},
		{"no-room-at-peer", "raise max-connections there"},
		{"not-sealed", "the same seal and version at both ends"},
		{"path-bypass", "every path must cross both appliances: ECMP, LAG, routes"},
		{"pool-full", "raise 'pool'"},
		{"path-mtu-unknown", "set path-mtu in the rule"},
	};
	const char *reason = reason_of(d, qp);

	for (size_t i = 0; i < sizeof(mends) / sizeof(mends[0]); i++)
		if (!strcmp(mends[i].reason, reason))
			return mends[i].mend;
	if (json_is_integer(json_object_get(qp, "path-mtu")) && !doctor_number(qp, "path-mtu"))
		return "its path MTU is not known, for its packets do not show it: set path-mtu in "
		       "the rule";
	return "if it stays: longhaul doctor at the other appliance; the log tells what it goes "
	       "through (journalctl -u longhauld)";
}

static enum doctor_verdict look_held(const struct doctor_look *d, struct doctor_finding *f)
{
	json_int_t held = 0, wait = 0, idle = 0;
	const json_t *o, *one = NULL;
	char name[128];
	size_t i;

	json_array_foreach (doctor_list(d->now, "qp"), i, o) {
		if (!paired(o))
			continue;
		if (!strcmp(doctor_text(o, "state"), "held")) {
			held++;
		} else if (active(o)) {
			wait++;
			one = o;
		} else {
			idle++;
		}
	}
	if (wait)
		return doctor_put(f, held ? DOCTOR_NOTE : DOCTOR_WRONG, doctor_mend(d, one),
				  "%lld of %lld connections in use %s accelerated, %s %s: %s",
				  (long long)wait, (long long)(wait + held),
				  wait == 1 ? "is not" : "are not",
				  wait == 1 ? "that of" : "such as",
				  name_of(one, name, sizeof(name)), doctor_text(one, "note"));
	return doctor_put(f, held || !idle ? DOCTOR_OK : DOCTOR_NOTE, "",
			  "%lld connection%s accelerated, %lld idle", (long long)held,
			  held == 1 ? " is" : "s are", (long long)idle);
}

static enum doctor_verdict look_custody(const struct doctor_look *d, struct doctor_finding *f)
{
	json_int_t bytes = 0, oldest = 0;
	const json_t *o, *honest = NULL;
	size_t i;

	json_array_foreach (doctor_list(d->now, "rule"), i, o) {
		bytes += doctor_number(o, "custody-bytes");
		if (doctor_number(o, "custody-oldest-ms") > oldest)
			oldest = doctor_number(o, "custody-oldest-ms");
		if (doctor_number(o, "connections") && !strcmp(doctor_text(o, "policy"), "honest"))
			honest = o;
	}
	if (honest)
		return doctor_put(f, DOCTOR_NOTE,
				  "policy = early, where completions may come before the far host "
				  "has the data: longhaul.conf(5), POLICIES",
				  "rule %s has policy = honest: each message completes after a "
				  "round trip, so few messages under way are slow",
				  doctor_text(honest, "name"));
	return doctor_put(f, DOCTOR_OK, "", "%s in custody, the oldest for %s",
			  doctor_shown("rule", "custody-bytes", bytes),
			  doctor_shown("rule", "custody-oldest-ms", oldest));
}

/* What the link loses, if that is worth a word. */
static enum doctor_verdict look_loss(const struct doctor_look *d, const json_t *wan,
				     struct doctor_finding *f, enum doctor_verdict v)
{
	json_int_t sent = doctor_grown(d, "port", wan, "tx-packets");
	json_int_t lost = doctor_engine(d, "retx-wan") - doctor_engine(d, "retx-spurious");

	if (sent < LOSS_OF || lost <= sent / LOSS_OF)
		return v;
	doctor_more(f, "; %.1f %% of the packets were lost on the way and sent again",
		    (double)lost * 100 / (double)sent);
	if (!*f->mend)
		snprintf(f->mend, sizeof(f->mend),
			 "nothing here; the link loses them: look at the counters of its "
			 "interfaces, and its optics");
	return DOCTOR_NOTE;
}

static enum doctor_verdict look_speed(const struct doctor_look *d, struct doctor_finding *f)
{
	const json_t *wan = doctor_port(d, "wan"), *o;
	json_int_t rate = 0, pace = 0;
	enum doctor_verdict v;
	size_t i;

	if (d->seconds > 0)
		rate = (json_int_t)((double)doctor_grown(d, "port", wan, "tx-bytes") * 8 /
				    d->seconds);
	json_array_foreach (doctor_list(d->now, "peer"), i, o)
		pace += doctor_number(o, "pace-bps");
	if (pace && rate > pace / 10 * 9)
		v = doctor_put(f, DOCTOR_NOTE,
			       "nothing, unless the link carries more: then wan-rate, "
			       "longhaul.conf(5)",
			       "the link is full: %s bit/s leave, its pace is %s bit/s",
			       doctor_shown("port", "tx-rate", rate),
			       doctor_shown("port", "tx-rate", pace));
	else
		v = doctor_put(f, DOCTOR_OK, "", "%s bit/s leave by %s",
			       doctor_shown("port", "tx-rate", rate), doctor_text(wan, "name"));
	return look_loss(d, wan, f, v);
}

const struct doctor_check doctor_checks[] = {
	{"daemon", "doubled-frames", look_daemon},
	{"ports", "port-down member-down port-alone port-mtu tx-dropped", look_ports},
	{"peers", "peer-down peer-unreached link-mtu link-blocked peer-version", look_peers},
	{"rules", "bypass rule-missing read-ahead-off", look_rules},
	{"frames", "", doctor_frames},
	{"pairs", "half-known path-mtu table-full", look_pairs},
	{"held", "path-bypass refused", look_held},
	{"hosts", "", doctor_reach},
	{"custody", "fault responder-silent pool", look_custody},
	{"speed", "rx-dropped wan-rate loss peer-late daemon-late", look_speed},
	{NULL, NULL, NULL},
};

/* Whether @word is one of @words. */
static bool among(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == len && !strncmp(p, word, len))
			return true;
	return false;
}

/* A raised alarm of @names into @f. A warning whose cause has ended is a note only: what is wrong
 * now must not be hidden behind it. */
static enum doctor_verdict alarm_of(const struct doctor_look *d, const char *names,
				    struct doctor_finding *f)
{
	enum doctor_verdict v = DOCTOR_OK;
	char ended[COLUMN_TEXT + 16];
	const json_t *a;
	size_t i;

	json_array_foreach (doctor_list(d->now, "status"), i, a) {
		bool over = json_is_integer(json_object_get(a, "ended-ms"));
		bool note = over && strcmp(doctor_text(a, "level"), "critical") != 0;

		if (strcmp(doctor_text(a, "state"), "raised") ||
		    !among(names, doctor_text(a, "name")) || (note && v == DOCTOR_NOTE))
			continue;
		snprintf(ended, sizeof(ended), ", ended %s ago",
			 doctor_shown("status", "ended-ms", doctor_number(a, "ended-ms")));
		v = doctor_put(f, note ? DOCTOR_NOTE : DOCTOR_WRONG, doctor_text(a, "mend"),
			       "%s (alarm %s%s)", doctor_text(a, "reason"), doctor_text(a, "name"),
			       over ? ended : "");
		if (v == DOCTOR_WRONG)
			break;
	}
	return v;
}

/* What the daemon judges, else what is looked at here. */
static enum doctor_verdict verdict_of(const struct doctor_look *d, const struct doctor_check *c,
				      struct doctor_finding *f)
{
	struct doctor_finding alarm = {"", ""};
	enum doctor_verdict v = alarm_of(d, c->alarms, &alarm), seen;

	if (v != DOCTOR_WRONG) {
		seen = c->look(d, f);
		if (v == DOCTOR_OK || seen == DOCTOR_WRONG)
			return seen;
	}
	*f = alarm;
	return v;
}

void doctor_add(json_t *all, const char *check, enum doctor_verdict v,
		const struct doctor_finding *f)
{
	static const char *const names[] = {"ok", "note", "wrong", "skipped"};

	json_array_append_new(all, json_pack("{s:s, s:s, s:s*, s:s*}", "check", check, "verdict",
					     names[v], "reason", f && *f->reason ? f->reason : NULL,
					     "mend", f && *f->mend ? f->mend : NULL));
}

json_t *doctor_walk(const struct doctor_look *look)
{
	struct doctor_look indexed = *look, *d = &indexed;
	json_t *all = json_array();
	bool bad = false;

	doctor_index(d);

	for (const struct doctor_check *c = doctor_checks; c->name; c++) {
		struct doctor_finding f = {"", ""};
		enum doctor_verdict v = bad ? DOCTOR_SKIPPED : verdict_of(d, c, &f);

		doctor_add(all, c->name, v, &f);
		bad |= v == DOCTOR_WRONG;
	}
	doctor_unindex(d);
	return all;
}

bool doctor_wrong(const json_t *findings)
{
	const json_t *o;
	size_t i;

	json_array_foreach (findings, i, o)
		if (!strcmp(doctor_text(o, "verdict"), "wrong"))
			return true;
	return false;
}

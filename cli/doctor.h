/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * longhaul doctor: the first thing that is wrong, or why one host is slow. Both only judge what the
 * daemon has told, so tests give them JSON.
 */
#ifndef LONGHAUL_CLI_DOCTOR_H
#define LONGHAUL_CLI_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DOCTOR_TEXT 640

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE,  /* worth knowing, no fault */
	DOCTOR_WRONG, /* this keeps connections from being accelerated, or slows them */
	DOCTOR_SKIPPED,
};

/**
 * struct doctor_look - what the daemon told, twice.
 * @now, @before: the answers to "port-show", "qp-show", ..., each as a member "port", "qp", ...
 *                @now has a member "ping", too, where doctor_silent() found a host: one object with
 *                its "address", for how long it was silent ("silent-ms"), whether it "answers" or
 *                this machine has "no-route", the longest packet that it answers ("carried") and
 *                that of hosts ("length"), bytes
 * @seconds:      between the two
 * @index:        their objects by kind and identity; doctor_walk() and doctor_host() make it
 */
struct doctor_look {
	const json_t *now, *before;
	double seconds;
	json_t *index[2];
};

/** struct doctor_finding - @reason: with figures; @mend: what to do, "" if nothing. */
struct doctor_finding {
	char reason[DOCTOR_TEXT], mend[DOCTOR_TEXT];
};

/**
 * struct doctor_check - one step of the walk.
 * @alarms: names, separated by blanks: if one of them is raised it is the finding
 * @look:   what no alarm tells
 */
struct doctor_check {
	const char *name, *alarms;
	enum doctor_verdict (*look)(const struct doctor_look *d, struct doctor_finding *f);
};

/** doctor_checks - in the order of the walk, ended by one without a name. */
extern const struct doctor_check doctor_checks[];

/** doctor_walk - an array of {check, verdict, reason, mend}; what follows the first one that is
 * wrong is not looked at. */
json_t *doctor_walk(const struct doctor_look *look);

/** doctor_host - the same about the connections of the host with address @host: all that slows
 * them, the most likely first. */
json_t *doctor_host(const struct doctor_look *look, const char *host);

/** doctor_wrong - whether one of @findings is. */
bool doctor_wrong(const json_t *findings);

/* For the checks. */

/** doctor_list - the objects of kind @what; never NULL. */
const json_t *doctor_list(const json_t *look, const char *what);

/** doctor_text, doctor_number - of a member; "" and 0 when it is absent. */
const char *doctor_text(const json_t *o, const char *key);
json_int_t doctor_number(const json_t *o, const char *key);

/** doctor_index - make the index of a look, which doctor_unindex() frees. */
void doctor_index(struct doctor_look *d);
void doctor_unindex(struct doctor_look *d);

/** doctor_find - the object of kind @what of now with the identity of @o; NULL without one. */
const json_t *doctor_find(const struct doctor_look *d, const char *what, const json_t *o);

/** doctor_grown - by how much member @key of @o has grown since. */
json_int_t doctor_grown(const struct doctor_look *d, const char *what, const json_t *o,
			const char *key);

/** doctor_stat - value of counter @name of @group; @look: now or before. */
json_int_t doctor_stat(const json_t *look, const char *group, const char *name);

/** doctor_engine - by how much counter @name of the engine has grown since. */
json_int_t doctor_engine(const struct doctor_look *d, const char *name);

/** doctor_shown - @v in the units of member @key of objects @what: "41.0M", "30.1ms". The text is
 * good until eight more were made. */
const char *doctor_shown(const char *what, const char *key, json_int_t v);

/** doctor_put - write a finding; @mend may be "". Returns @v. */
enum doctor_verdict doctor_put(struct doctor_finding *f, enum doctor_verdict v, const char *mend,
			       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** doctor_more - append to the reason. */
void doctor_more(struct doctor_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** doctor_port - the port of @side ("lan", "wan"); doctor_pairs - how many pairs are known. */
const json_t *doctor_port(const struct doctor_look *d, const char *side);
json_int_t doctor_pairs(const struct doctor_look *d);

/** doctor_mend - what to do about connection @qp, which is not held. */
const char *doctor_mend(const struct doctor_look *d, const json_t *qp);

/** doctor_frames - a check; see doctor_frames.c. */
enum doctor_verdict doctor_frames(const struct doctor_look *d, struct doctor_finding *f);

/** doctor_reach - why the host that has not answered for longest does not, by what its pings told:
 * see struct doctor_look. DOCTOR_OK when there is none. */
enum doctor_verdict doctor_reach(const struct doctor_look *d, struct doctor_finding *f);

/** doctor_silent - the lane of @lanes whose responder, behind this appliance, has not answered for
 * longest, and for long. @of: of that host alone, or NULL; @host, @path_mtu: what was found.
 * Returns for how long, ms, 0: there is none. */
json_int_t doctor_silent(const json_t *lanes, const char *of, const char **host,
			 unsigned int *path_mtu);

/** doctor_add - append a finding to @all. */
void doctor_add(json_t *all, const char *check, enum doctor_verdict v,
		const struct doctor_finding *f);

#endif

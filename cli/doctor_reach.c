// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host that does not answer: is it there, does a packet of that length reach it, or does it only
 * not take these requests?
 */
#include <string.h>

#include "cli/doctor.h"
#include "cli/ping.h"

#define SILENT_MS 2000

json_int_t doctor_silent(const json_t *lanes, const char *of, const char **host,
			 unsigned int *path_mtu)
{
	json_int_t most = 0;
	const json_t *o;
	size_t i;

	json_array_foreach (lanes, i, o) {
		json_int_t ms = doctor_number(o, "silent-ms");

		/* a host that does not answer the peer cannot be pinged from here */
		if (ms < SILENT_MS || ms <= most || !doctor_number(o, "path-mtu") ||
		    !doctor_number(o, "transit-packets") ||
		    (of && strcmp(doctor_text(o, "lan-ip"), of)))
			continue;
		most = ms;
		*host = doctor_text(o, "lan-ip");
		*path_mtu = (unsigned int)doctor_number(o, "path-mtu");
	}
	return most;
}

enum doctor_verdict doctor_reach(const struct doctor_look *d, struct doctor_finding *f)
{
	const json_t *o = json_array_get(doctor_list(d->now, "ping"), 0);
	json_int_t carried = doctor_number(o, "carried"), length = doctor_number(o, "length");
	const char *host = doctor_text(o, "address"), *silent;
	char mend[DOCTOR_TEXT];
	unsigned int fits = 256;

	if (!o)
		return doctor_put(f, DOCTOR_OK, "", "no host here lets requests wait for long");
	silent = doctor_shown("lane", "silent-ms", doctor_number(o, "silent-ms"));
	snprintf(mend, sizeof(mend),
		 "look at that host, at its routes, and at the way to it: ip route get %s", host);
	if (json_is_true(json_object_get(o, "no-route")))
		return doctor_put(f, DOCTOR_WRONG, mend,
				  "host %s has not answered requests for %s; this machine has no "
				  "route to it, and cannot ping it",
				  host, silent);
	if (!json_is_true(json_object_get(o, "answers")))
		return doctor_put(f, DOCTOR_WRONG, mend,
				  "host %s has not answered requests for %s, nor does it answer "
				  "pings from here",
				  host, silent);
	if (carried + PING_CLOSE >= length)
		return doctor_put(
			f, DOCTOR_WRONG,
			"its answers must come through here, not past this appliance "
			"(path-bypass at the peer): look at its routes; let UDP port 4791 "
			"in at its firewall; else its queue pair may be gone",
			"host %s has not answered requests for %s, although it answers "
			"pings of %lld bytes",
			host, silent, (long long)carried);
	while (fits < 2048 && (json_int_t)fits * 2 + length % 256 <= carried + PING_CLOSE)
		fits *= 2;
	snprintf(mend, sizeof(mend),
		 "raise the MTU of all routers and ports between here and there to %lld, or lower "
		 "the path MTU of the hosts to %u",
		 (long long)length + 32, fits);
	return doctor_put(f, DOCTOR_WRONG, mend,
			  "packets of more than %lld bytes do not reach host %s, and hosts send "
			  "%lld: it has not answered for %s",
			  (long long)carried, host, (long long)length, silent);
}

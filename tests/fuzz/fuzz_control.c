// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes on the control socket: the answer is one line with an error, or objects and an end
 * line.
 */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control.h"
#include "control/operate.h"
#include "tests/unit/no_sink.h"

#define NOW 1000000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct view_source src;
static struct operate operate;
static struct control *ctl;
static char path[64];

static void clean_up(void)
{
	control_close(ctl);
	shards_destroy(src.shards);
}

static void set_up(void)
{
	const struct engine_config cfg = {.pool_bytes = 8 << 20, .max_conns = 16, .seed = 1};
	char err[256];

	src.operate = &operate;
	src.shards = some_shards(1, &cfg, NOW);
	snprintf(path, sizeof(path), "/tmp/fuzz-control-%d", getpid());
	ctl = src.shards ? control_open(path, &src, err, sizeof(err)) : NULL;
	if (!ctl)
		abort();
	atexit(clean_up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	static char answer[1 << 18];
	size_t used = 0;
	ssize_t n;
	int fd;

	if (!ctl)
		set_up();
	if (size > 2 * CONTROL_REQUEST_MAX)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	strcpy(addr.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		abort();
	(void)!send(fd, data, size, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	for (int turns = 0; turns < 1000 && used < sizeof(answer) - 1; turns++) {
		control_service(ctl, NOW);
		n = recv(fd, answer + used, sizeof(answer) - 1 - used, 0);
		if (!n || (n < 0 && errno != EAGAIN))
			break;
		used += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	answer[used] = '\0';
	/* every line is an object */
	for (char *p = answer, *nl; *p; p = nl + 1) {
		json_t *o;

		nl = strchr(p, '\n');
		o = nl ? json_loadb(p, (size_t)(nl - p), 0, NULL) : NULL;
		if (!json_is_object(o))
			abort();
		json_decref(o);
	}
	if (size && !used)
		abort();
	return 0;
}

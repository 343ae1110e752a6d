// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "peer/key.h"

/* Create a file that only the daemon's user can read; never overwrites one. */
static int write_new(const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int e;

	if (fd < 0)
		return errno == EEXIST ? cli_error("%s exists already and is left as it is; name "
						   "another file",
						   path)
				       : cli_error("cannot make %s: %s", path, strerror(errno));
	/* The daemon must read it, and does not run as root. */
	if ((geteuid() || !fchown(fd, key_owner(), -1)) && write(fd, text, len) == (ssize_t)len &&
	    !fsync(fd) && !close(fd))
		return 0;
	e = errno;
	unlink(path);
	return cli_error("cannot write %s: %s", path, strerror(e));
}

int run_keygen(const struct command *cmd, const struct options *opt, int argc, char **argv)
{
	char text[PEER_KEY_TEXT];
	int rc = 0;

	(void)cmd, (void)opt;
	if (argc > 1)
		return cli_error("keygen takes one file; write longhaul keygen [FILE]");
	if (!key_generate(text))
		return cli_error("libsodium cannot start");
	if (argc)
		rc = write_new(argv[0], text);
	else if (fputs(text, stdout) < 0 || fflush(stdout))
		rc = cli_error("cannot write the key: %s", strerror(errno));
	explicit_bzero(text, sizeof(text));
	return rc;
}

#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Whole or not at all: a daemon that comes back must never read half a status. */
void write_status(int code, int signal, bool oom, int64_t time_ns)
{
    AUTO_CLOSE int fd = open("status.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (dprintf(fd, "exited %d %d %d %" PRId64 "\n", code, signal, oom, time_ns) < 0) return;
    if (fsync(fd) < 0) return;
    if (rename("status.tmp", "status") < 0) return;
}

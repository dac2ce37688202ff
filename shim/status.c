#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The folder may be that of an earlier run, whose status must not be taken for ours.
void forget_last_run(void) {
  static const char *const files[] = {"status",       "pid",       "runtime.log", "shim.sock",
                                      "console.sock", "probe.pid", "probe.log"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
}

// Written atomically: a new daemon must never read half a status.
bool write_status(const char *text) {
  AUTO_CLOSE int fd = open("status.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || dprintf(fd, "%s", text) != (int)strlen(text) || fsync(fd) < 0) return false;
  return rename("status.tmp", "status") == 0;
}

// gantry-rootless FOLDER PROGRAM [ARGUMENT...]: runs PROGRAM as root of the caller's own namespaces, which a keeper holds.
#define _GNU_SOURCE
#include "rootless.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void refuse(const char *format, ...) {
  va_list values;
  va_start(values, format);
  fputs("gantry: ", stderr);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  va_end(values);
  exit(1);
}

// Whoever may write here could lead the daemon anywhere, so a folder that another user has made is none of ours.
static int open_state(const char *path) {
  struct stat found;
  if (mkdir(path, 0700) < 0 && errno != EEXIST) refuse("%s cannot be made: %s", path, strerror(errno));
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &found) < 0) refuse("%s cannot be opened: %s", path, strerror(errno));
  if (found.st_uid != getuid() || (found.st_mode & 077) != 0)
    refuse("%s must belong to you alone (mode 0700): it holds the engine's sockets", path);
  return fd;
}

static int open_file(int state, const char *name) {
  int fd = openat(state, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) refuse("%s cannot be opened: %s", name, strerror(errno));
  return fd;
}

static void lock(int fd, int kind) {
  while (flock(fd, kind) < 0)
    if (errno != EINTR) refuse("a lock is refused: %s", strerror(errno));
}

// The keeper holds a lock on the file with its process id.
static pid_t find_keeper(int state) {
  AUTO_CLOSE int fd = open_file(state, "keeper");
  char text[32] = "";
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return -1;
  if (pread(fd, text, sizeof text - 1, 0) <= 0) refuse("the keeper of the namespaces has not written its id");
  return atoi(text);
}

static void enter(pid_t keeper) {
  static const char *const names[] = {"user", "net", "mnt"};
  int namespaces[3];
  char path[64];
  for (int at = 0; at < 3; at++) {
    snprintf(path, sizeof path, "/proc/%d/ns/%s", keeper, names[at]);
    namespaces[at] = open(path, O_RDONLY | O_CLOEXEC);
    if (namespaces[at] < 0) refuse("%s cannot be opened: %s", path, strerror(errno));
  }
  for (int at = 0; at < 3; at++)
    if (setns(namespaces[at], 0) < 0) refuse("the namespace %s cannot be entered: %s", names[at], strerror(errno));
  if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
    refuse("the ids of the namespace cannot be taken: %s", strerror(errno));
}

int main(int argc, char **argv) {
  if (argc < 3) refuse("usage: gantry-rootless FOLDER PROGRAM [ARGUMENT...]");
  if (geteuid() == 0) refuse("this is for users that are not root");
  AUTO_CLOSE int state = open_state(argv[1]);
  AUTO_CLOSE int starting = open_file(state, "starting"); // two daemons that start at once make one keeper
  lock(starting, LOCK_EX);
  int daemon = open_file(state, "daemon");
  lock(daemon, LOCK_SH);
  pid_t keeper = find_keeper(state);
  if (keeper < 0) {
    start_keeper(state);
    keeper = find_keeper(state);
  }
  if (keeper < 0) refuse("the namespaces could not be made");
  enter(keeper);
  // The daemon inherits this lock: the keeper looks for an end only when nobody has it.
  if (fcntl(daemon, F_SETFD, 0) < 0 || setenv("GANTRY_ROOTLESS", argv[1], 1) < 0)
    refuse("the daemon cannot be prepared: %s", strerror(errno));
  execvp(argv[2], argv + 2);
  refuse("%s cannot be run: %s", argv[2], strerror(errno));
}

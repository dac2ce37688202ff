#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

static struct watch oom;
static long kills_seen;
static bool signals_before, told;
static char usual_score[16];

// The kernel's own count of processes that it killed in this cgroup; v1 and v2 name the line alike.
static long kills(void) {
  static const char *const files[] = {"/sys/fs/cgroup/memory%s/memory.oom_control", "/sys/fs/cgroup%s/memory.events"};
  for (size_t i = 0; i < 2 && options.cgroup != NULL; i++) {
    char path[PATH_MAX], text[512];
    snprintf(path, sizeof path, files[i], options.cgroup);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ssize_t length = read(fd, text, sizeof text - 1);
    if (length <= 0) continue;
    text[length] = 0;
    const char *line = strstr(text, "oom_kill ");
    long count = 0;
    if (line != NULL && sscanf(line, "oom_kill %ld", &count) == 1) return count;
  }
  return 0;
}

static int watch_v1(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.oom_control", options.cgroup);
  AUTO_CLOSE int control = open(path, O_RDONLY | O_CLOEXEC);
  if (control < 0) return -1;
  snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/cgroup.event_control", options.cgroup);
  AUTO_CLOSE int registration = open(path, O_WRONLY | O_CLOEXEC);
  int fd = registration < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd >= 0 && dprintf(registration, "%d %d", fd, control) < 0) close_fd(&fd);
  return fd;
}

static int watch_v2(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", options.cgroup);
  if (access(path, R_OK) < 0) return -1;
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd >= 0 && inotify_add_watch(fd, path, IN_MODIFY) < 0) close_fd(&fd);
  return fd;
}

static void tell_oom(void) {
  told = true;
  tell_controls("oom\n");
}

static void forget_signals(int fd) {
  char bytes[1024];
  while (read(fd, bytes, sizeof bytes) > 0) continue;
}

// v1 signals before it kills, and once more when the cgroup is removed; v2 signals every change of its counts.
static void oom_ready(struct watch *watch, uint32_t events) {
  (void)events;
  forget_signals(watch->fd);
  long count = kills();
  if (signals_before ? phase == RUNNING : count > kills_seen) tell_oom();
  if (count > kills_seen) kills_seen = count;
}

void watch_oom(void) {
  if (options.cgroup == NULL) return;
  int fd = watch_v1();
  signals_before = fd >= 0;
  if (fd < 0) fd = watch_v2();
  if (fd < 0) return;
  watch_surely(&oom, fd, EPOLLIN, oom_ready);
  kills_seen = kills(); // the process may have ended before
  if (kills_seen == 0) return;
  forget_signals(fd);
  tell_oom();
}

// An out-of-memory kill may happen before our registration, so the count is read once more at the end. By then systemd
// may have removed a scope, so earlier readings count too.
bool was_oom_killed(void) {
  bool killed = kills_seen > 0 || (options.cgroup != NULL && kills() > 0);
  if (killed && !told) tell_oom();
  return killed;
}

// Refused without CAP_SYS_RESOURCE: then the usual score stays.
void spare_from_oom(void) {
  AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, usual_score, sizeof usual_score - 1);
  if (length <= 0 || pwrite(fd, "-999", 4, 0) != 4) usual_score[0] = 0;
}

// The runtime and the container must not inherit it. An exec inherits its own score, because no runtime sets that; a
// lower score than the usual one is refused without CAP_SYS_RESOURCE, and the usual one stays.
void restore_oom_score(const char *wanted) {
  AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (usual_score[0] != 0 && (fd < 0 || write(fd, usual_score, strlen(usual_score)) < 0)) _exit(127);
  if (wanted != NULL && pwrite(fd, wanted, strlen(wanted), 0) < 0 && errno != EACCES) _exit(127);
}

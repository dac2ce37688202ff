#define _GNU_SOURCE
#include "shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Removes the remains of a killed or failed runtime: helpers that became our children, processes in the container's
// cgroup, the cgroup itself, the runtime's record. Repeats, because killed processes may just have forked.

static void close_folder(DIR **folder) {
  if (*folder != NULL) closedir(*folder);
}

static void close_file(FILE **file) {
  if (*file != NULL) fclose(*file);
}
#define AUTO_FOLDER __attribute__((cleanup(close_folder))) DIR
#define AUTO_FILE __attribute__((cleanup(close_file))) FILE

// Returns how many there were.
static int kill_listed(int fd) {
  int count = 0, pid;
  AUTO_FILE *list = fd < 0 ? NULL : fdopen(fd, "r");
  // 0 stands for a process outside of our pid namespace.
  while (list != NULL && fscanf(list, "%d", &pid) == 1) count += pid > 0 && kill(pid, SIGKILL) == 0;
  return count;
}

// Orphans of the runtime become our children, because we are its subreaper; excludes those that we still wait for.
static int kill_children(void) { return kill_listed(open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC)); }

static void write_to(int folder, const char *name, const char *text) {
  AUTO_CLOSE int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
  if (fd >= 0) dprintf(fd, "%s", text);
}

static DIR *open_below(int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd < 0 ? NULL : fdopendir(fd);
}

static struct dirent *next_in(DIR *folder) {
  struct dirent *entry;
  do entry = readdir(folder);
  while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
  return entry;
}

static int kill_in(int parent, const char *name) {
  AUTO_FOLDER *folder = open_below(parent, name);
  if (folder == NULL) return 0;
  int fd = dirfd(folder);
  // Frozen processes cannot fork while we read the list; killed ones die when they are thawed. Version 2 can do it by
  // itself.
  write_to(fd, "freezer.state", "FROZEN");
  write_to(fd, "cgroup.kill", "1");
  int count = kill_listed(openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC));
  for (struct dirent *entry; (entry = next_in(folder)) != NULL;)
    if (entry->d_type == DT_DIR) count += kill_in(fd, entry->d_name);
  write_to(fd, "freezer.state", "THAWED");
  write_to(fd, "cgroup.freeze", "0");
  return count;
}

// Returns whether it is gone. The files of a cgroup go with it, and refuse to go before.
static bool remove_in(int parent, const char *name) {
  AUTO_FOLDER *folder = open_below(parent, name);
  if (folder == NULL) return true;
  for (struct dirent *entry; (entry = next_in(folder)) != NULL;) {
    if (entry->d_type == DT_DIR)
      remove_in(dirfd(folder), entry->d_name);
    else
      unlinkat(dirfd(folder), entry->d_name, 0);
  }
  return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

static int kill_cgroup(const char *path) { return kill_in(AT_FDCWD, path); }

static int remove_cgroup(const char *path) { return remove_in(AT_FDCWD, path) ? 0 : 1; }

static pid_t session_to_kill;

static pid_t session_of(int pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (length <= 0) return -1;
  text[length] = 0;
  int session;
  const char *name_end = strrchr(text, ')'); // a name may have brackets and blanks
  return name_end != NULL && sscanf(name_end, ") %*c %*d %*d %d", &session) == 1 ? session : -1;
}

static int kill_session_in(int parent, const char *name) {
  AUTO_FOLDER *folder = open_below(parent, name);
  if (folder == NULL) return 0;
  int count = 0, pid, fd = openat(dirfd(folder), "cgroup.procs", O_RDONLY | O_CLOEXEC);
  AUTO_FILE *list = fd < 0 ? NULL : fdopen(fd, "r");
  while (list != NULL && fscanf(list, "%d", &pid) == 1)
    if (pid > 0 && session_of(pid) == session_to_kill) count += kill(pid, SIGKILL) == 0;
  for (struct dirent *entry; (entry = next_in(folder)) != NULL;)
    if (entry->d_type == DT_DIR) count += kill_session_in(dirfd(folder), entry->d_name);
  return count;
}

static int kill_session_below(const char *path) { return kill_session_in(AT_FDCWD, path); }

// In every hierarchy that is mounted; returns the sum of the answers.
static int in_each_hierarchy(int (*work)(const char *path)) {
  int sum = 0;
  AUTO_FILE *mounts = fopen("/proc/self/mountinfo", "re");
  char line[2 * PATH_MAX], mount[PATH_MAX], path[2 * PATH_MAX];
  while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
    if (strstr(line, " - cgroup") == NULL || sscanf(line, "%*s %*s %*s %*s %4095s", mount) != 1) continue;
    snprintf(path, sizeof path, "%s%s", mount, options.cgroup);
    sum += work(path);
  }
  return sum;
}

// Each process of the container that is in it; again, because one may have forked meanwhile.
void kill_session(pid_t session) {
  session_to_kill = session;
  for (int round = 0; round < 10 && in_each_hierarchy(kill_session_below) > 0; round++) continue;
}

// A runtime does not find its incomplete records.
static bool remove_record(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", options.runtime_root, options.id);
  return remove_in(AT_FDCWD, path);
}

// An exec has neither cgroup nor record of its own: both are its container's.
bool clear_remains(void) {
  int left = kill_children();
  if (options.exec_container != NULL) return left == 0;
  if (options.cgroup != NULL) left += in_each_hierarchy(kill_cgroup);
  if (left > 0 || (options.cgroup != NULL && in_each_hierarchy(remove_cgroup) > 0)) return false;
  return remove_record();
}

#define _GNU_SOURCE
#include "../shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Rotated files of the log are compressed one after the other, by gzip at a low priority. A file has its plain name
// until the compressed one is complete, so an interruption loses nothing: the next rotation or run begins again.

#define NICE 10

extern char **environ;

static pid_t compressor = -1;
static int compressing = -1; // the plain file: its name may change meanwhile, and nothing else gets its inode

static void unfinished_name(char *name) { snprintf(name, PATH_MAX, "%s.gz.new", options.log_path); }

static bool has_ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

static pid_t spawn_gzip(const char *option, int from, int to) {
  char *arguments[] = {"gzip", (char *)(uintptr_t)option, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  pid_t pid = -1;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
  if (posix_spawnp(&pid, "gzip", &actions, &attributes, arguments, environ) != 0) pid = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// An empty member, whose comment is the inode of the plain file: a reader that still has that one open knows it again.
// Other programs skip it.
static bool put_head(int fd, ino_t inode) {
  static const unsigned char head[] = {0x1f, 0x8b, 8, 0x10, 0, 0, 0, 0, 0, 3},
                             nothing[] = {3, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  unsigned char bytes[64];
  memcpy(bytes, head, sizeof head);
  size_t length = sizeof head;
  length += (size_t)snprintf((char *)bytes + length, 32, "inode %" PRIu64, (uint64_t)inode) + 1;
  memcpy(bytes + length, nothing, sizeof nothing);
  length += sizeof nothing;
  return write(fd, bytes, length) == (ssize_t)length;
}

// The oldest file that is still plain; -1: there is none.
static int open_plain(void) {
  for (int number = options.log_max_files - 1; number > 0; number--) {
    char name[PATH_MAX];
    rotated_name(name, number, "");
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) return fd;
  }
  return -1;
}

void compress_rotated(void) {
  if (!options.log_compress || compressor > 0) return;
  struct stat information;
  compressing = open_plain();
  if (compressing < 0 || fstat(compressing, &information) < 0) return;
  char name[PATH_MAX];
  unfinished_name(name);
  AUTO_CLOSE int to = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  compressor = to >= 0 && put_head(to, information.st_ino) ? spawn_gzip("-c", compressing, to) : -1;
  if (compressor > 0) {
    setpriority(PRIO_PROCESS, (id_t)compressor, NICE);
    return;
  }
  unlink(name);
  close_fd(&compressing);
}

// It may have been rotated meanwhile, also out of the log.
static bool take_compressed(const char *made) {
  struct stat own;
  if (fstat(compressing, &own) < 0) return false;
  for (int number = 1; number < options.log_max_files; number++) {
    char plain[PATH_MAX], packed[PATH_MAX];
    struct stat information;
    rotated_name(plain, number, "");
    if (stat(plain, &information) < 0 || information.st_ino != own.st_ino) continue;
    rotated_name(packed, number, ".gz");
    return rename(made, packed) == 0 && unlink(plain) == 0;
  }
  unlink(made);
  return true;
}

// After a failure, such as on a full disk, the next rotation tries again.
bool compressor_ended(pid_t pid, int status) {
  if (pid != compressor) return false;
  compressor = -1;
  char name[PATH_MAX];
  unfinished_name(name);
  bool taken = has_ended_well(status) && take_compressed(name);
  close_fd(&compressing);
  if (taken)
    compress_rotated();
  else
    unlink(name);
  return true;
}

// Waits for it: only clients that attach to old lines need this, and `max-size` limits the length of a file.
int unpacked(int packed) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s.unpacked", options.log_path);
  int plain = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (plain < 0) return -1;
  unlink(name);
  pid_t pid = spawn_gzip("-dc", packed, plain);
  int status = -1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (pid < 0 || !has_ended_well(status)) close_fd(&plain);
  return plain;
}

// gantry-resolver FOLDER: see README.md. The process that is called ends when its descendant answers.
#include "resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 250
#define IDLE_MS 30000
#define PAUSE_MS 100

// Nothing is left that a later one would go on with.
static void quit(void) {
  if (can_be_found()) {
    remove_journal();
    close_control();
  }
  exit(0);
}

static void work(const char *folder, int ready) {
  unsigned seed = 0;
  if (getrandom(&seed, sizeof seed, 0) == sizeof seed) srandom(seed);
  if (!open_loop()) exit(1);
  open_journal(folder);
  open_control(folder);
  if (ready >= 0 && write(ready, "", 1) == 1) close(ready);
  for (uint64_t used = now_ms, tick = now_ms;;) {
    wait_for_event(TICK_MS);
    if (must_quit) quit();
    if (now_ms - tick >= TICK_MS) {
      tick = now_ms;
      expire_questions();
      close_idle_connections();
      complete_journal();
      if (!can_be_found()) exit(1);
    }
    if (boxes != NULL || is_controlled()) used = now_ms;
    if (now_ms - used > IDLE_MS) quit(); // the daemon is gone, and so are its containers
  }
}

// False: the folder was removed, and another resolver may be in its place.
static bool has_lock(int lock, const char *path) {
  struct stat own, found;
  return fstat(lock, &own) == 0 && stat(path, &found) == 0 && own.st_ino == found.st_ino && own.st_dev == found.st_dev;
}

// Starts a new worker whenever one fails. It does next to nothing, so that it has no reason to fail itself.
static void supervise(const char *folder, int ready, int lock, const char *lock_path) {
  for (bool is_first = true;; is_first = false) {
    pid_t child = fork();
    if (child == 0) {
      work(folder, ready);
      _exit(1);
    }
    if (ready >= 0) close(ready);
    ready = -1;
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) exit(0);
    if (child > 0 && is_first && WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_LISTEN) exit(1);
    if (!has_lock(lock, lock_path)) exit(1);
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000l}, NULL);
  }
}

int main(int argc, char **argv) {
  if (argc != 2 || argv[1][0] != '/') {
    fprintf(stderr, "usage: gantry-resolver FOLDER\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_DUMPABLE, 0); // a hostile packet that ends it must not fill the disk with its memory, again and again
  char path[512];
  snprintf(path, sizeof path, "%s/lock", argv[1]);
  int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return 1;
  }
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return 1;
  pid_t supervisor = fork();
  if (supervisor < 0) return 1;
  if (supervisor == 0) {
    close(ready[0]);
    setsid();
    supervise(argv[1], ready[1], lock, path);
  }
  close(ready[1]);
  char byte;
  return read(ready[0], &byte, 1) == 1 ? 0 : 1;
}

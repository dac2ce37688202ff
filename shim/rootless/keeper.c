#define _GNU_SOURCE
#include "rootless.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int fd) {
  if (write(fd, "+", 1) != 1) exit(1);
}

// The other side ends without a word when it has failed, and has said why.
static bool hear(int fd) {
  char byte;
  ssize_t length;
  while ((length = read(fd, &byte, 1)) < 0 && errno == EINTR) continue;
  return length == 1;
}

static void raise_loopback(void) {
  AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0) refuse("the loopback stays down: %s", strerror(errno));
}

// cgroups of version 1 cannot be delegated to users: nobody is to try, and no container is to see the machine's.
static void hide_cgroups(void) {
  if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0) return;
  if (mount("tmpfs", "/sys/fs/cgroup", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=4k") < 0)
    refuse("the cgroups cannot be hidden: %s", strerror(errno));
}

static void silence(void) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++) dup2(null, fd);
  close(null);
}

// pasta names itself after the instructions that it is built for, such as pasta.avx2.
static bool is_way_out(const char *name) {
  static const char *const names[] = {"pasta", "passt", "slirp4netns"};
  for (size_t at = 0; at < sizeof names / sizeof *names; at++)
    if (strstr(name, names[at]) == name) return true;
  return false;
}

// Shims and what else outlives a daemon live in this user namespace; those of pasta and of containers do not matter.
static bool is_alone(void) {
  struct stat own, other;
  char path[300], name[20];
  DIR *processes = opendir("/proc");
  if (processes == NULL || stat("/proc/self/ns/user", &own) < 0) return false;
  bool alone = true;
  for (struct dirent *entry; alone && (entry = readdir(processes)) != NULL;) {
    int pid = atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    if (stat(path, &other) < 0 || other.st_ino != own.st_ino) continue;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    alone = is_way_out(name);
  }
  closedir(processes);
  return alone;
}

// Ends when the daemon has ended and left no container. A daemon that starts meanwhile waits for the lock, and finds out.
static void __attribute__((noreturn)) hold(int state, int own) {
  int daemon = openat(state, "daemon", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  for (;;) {
    if (flock(daemon, LOCK_EX) < 0) continue;
    if (is_alone()) {
      flock(own, LOCK_UN);
      exit(0);
    }
    flock(daemon, LOCK_UN);
    sleep(1);
  }
}

static void __attribute__((noreturn)) be_keeper(int state, int made, int mapped) {
  char text[32];
  if (unshare(CLONE_NEWUSER) < 0)
    refuse("this user may make no user namespace: %s (see docs/rootless.md)", strerror(errno));
  say(made);
  if (!hear(mapped)) exit(1);
  if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
    refuse("the ids of the namespace cannot be taken: %s", strerror(errno));
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0) refuse("the namespaces cannot be made: %s", strerror(errno));
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) refuse("the mounts cannot be parted: %s", strerror(errno));
  raise_loopback();
  hide_cgroups();
  int own = openat(state, "keeper", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  snprintf(text, sizeof text, "%d\n", getpid());
  if (own < 0 || flock(own, LOCK_EX | LOCK_NB) < 0 || ftruncate(own, 0) < 0 ||
      pwrite(own, text, strlen(text), 0) != (ssize_t)strlen(text))
    refuse("the keeper's file cannot be written: %s", strerror(errno));
  say(made);
  if (!hear(mapped)) exit(1);
  silence();
  close(made);
  close(mapped);
  hold(state, own);
}

// Stays outside: it opens the machine's ports, and the way out lives as long as it does.
static void __attribute__((noreturn)) be_outside(int state, int ready) {
  int made[2], mapped[2];
  if (setsid() < 0 || chdir("/") < 0 || pipe2(made, O_CLOEXEC) < 0 || pipe2(mapped, O_CLOEXEC) < 0)
    refuse("the keeper cannot start: %s", strerror(errno));
  int listener = listen_for_requests(state);
  pid_t keeper = fork();
  if (keeper == 0) {
    close(made[0]);
    close(mapped[1]);
    close(listener);
    close(ready);
    be_keeper(state, made[1], mapped[0]);
  }
  close(made[1]);
  close(mapped[0]);
  if (keeper < 0 || !hear(made[0])) exit(1);
  map_ids(keeper);
  say(mapped[1]);
  if (!hear(made[0])) exit(1);
  start_way_out(keeper);
  int pidfd = (int)syscall(SYS_pidfd_open, keeper, 0);
  if (pidfd < 0) refuse("the keeper cannot be watched: %s", strerror(errno));
  say(mapped[1]);
  say(ready);
  close(ready);
  silence();
  serve_requests(listener, pidfd);
  exit(0);
}

void start_keeper(int state) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) < 0) refuse("the keeper cannot start: %s", strerror(errno));
  pid_t outside = fork();
  if (outside < 0) refuse("the keeper cannot start: %s", strerror(errno));
  if (outside == 0) {
    state = fcntl(state, F_DUPFD_CLOEXEC, 100);
    int told = fcntl(ready[1], F_DUPFD_CLOEXEC, 100);
    // Neither the launch's locks nor sockets that systemd has passed.
    // Not a child of the daemon, which this process is about to be.
    if (fork() != 0) _exit(0);
    if (state < 0 || told < 0 || syscall(SYS_close_range, 3, 99, 0) < 0) _exit(1);
    be_outside(state, told);
  }
  close(ready[1]);
  waitpid(outside, NULL, 0);
  if (!hear(ready[0])) exit(1); // it has said why
  close(ready[0]);
}

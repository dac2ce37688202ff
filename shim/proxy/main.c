// gantry-proxy LOCK-FILE {tcp|udp FD ADDRESS PORT}…: serves the sockets FD, which it has inherited, until it is killed.
#include "proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define NOBODY 65534
#define TICK_MS 100
#define WORDS_OF_PORT 4

static void fail(const char *what) {
  perror(what);
  exit(1);
}

// The lock tells the daemon that a process serves a port, and which one.
static void hold_lock(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0) fail(path);
}

static bool read_target(const char *address, const char *port, struct target *target) {
  memset(target, 0, sizeof *target);
  struct sockaddr_in *four = (struct sockaddr_in *)&target->address;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)&target->address;
  if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)atoi(port));
    target->length = sizeof *four;
    return true;
  }
  memset(target, 0, sizeof *target);
  if (inet_pton(AF_INET6, address, &six->sin6_addr) != 1) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons((uint16_t)atoi(port));
  target->length = sizeof *six;
  return true;
}

// Bytes of clients and containers are handled without privileges.
static void drop_rights(void) {
  if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
    fail("setresuid");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS");
  prctl(PR_SET_DUMPABLE, 0); // no core, and nothing for other processes of that user
}

int main(int argc, char **argv) {
  if (argc < 2 + WORDS_OF_PORT || (argc - 2) % WORDS_OF_PORT != 0) {
    fprintf(stderr, "usage: gantry-proxy LOCK-FILE {tcp|udp FD ADDRESS PORT}...\n");
    return 1;
  }
  hold_lock(argv[1]);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  drop_rights();
  if (!open_loop()) fail("epoll");
  for (char **words = argv + 2; *words != NULL; words += WORDS_OF_PORT) {
    struct target target;
    if (!read_target(words[2], words[3], &target)) fail(words[2]);
    int fd = atoi(words[1]);
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) fail(words[1]);
    (strcmp(words[0], "tcp") == 0 ? serve_tcp : serve_udp)(fd, &target);
  }
  for (bool is_busy = false;;) {
    wait_for_event(is_busy ? 0 : TICK_MS);
    is_busy = go_on_tcp();
    expire_udp();
  }
}

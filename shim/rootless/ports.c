#define _GNU_SOURCE
#include "rootless.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_BYTES 128
#define CLIENT_MS 10000

// By the descriptor of the folder: its path may be longer than the address of a socket.
int listen_for_requests(int state) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/ports", state);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  unlink(address.sun_path);
  umask(0177);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 64) < 0)
    refuse("the socket of ports cannot be opened: %s", strerror(errno));
  umask(077);
  return fd;
}

// As the engine reserves ports itself: with SO_REUSEADDR, IPv6 by itself, and TCP listens.
static int open_port(const char *protocol, const char *ip, unsigned port) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  bool is_six = strchr(ip, ':') != NULL, is_tcp = strcmp(protocol, "tcp") == 0;
  int one = 1;
  if (inet_pton(is_six ? AF_INET6 : AF_INET, ip, is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr) != 1 ||
      port > 65535) {
    errno = EINVAL;
    return -1;
  }
  int fd = socket(is_six ? AF_INET6 : AF_INET, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const struct sockaddr *address = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
  if ((is_six && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) < 0) ||
      (is_tcp && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0) ||
      bind(fd, address, is_six ? sizeof six : sizeof four) < 0 || (is_tcp && listen(fd, 4096) < 0)) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

// One number, 0 or the error; with the socket.
static void answer(int client, int error, int fd) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {.iov_base = &error, .iov_len = sizeof error};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  sendmsg(client, &message, MSG_NOSIGNAL);
}

static bool is_own(int client) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid();
}

static void serve(int client) {
  char text[REQUEST_BYTES] = "", protocol[8], ip[64];
  unsigned port;
  struct pollfd asks = {.fd = client, .events = POLLIN};
  if (!is_own(client) || poll(&asks, 1, CLIENT_MS) != 1) return;
  if (recv(client, text, sizeof text - 1, 0) <= 0) return;
  if (sscanf(text, "%7s %63s %u", protocol, ip, &port) != 3) {
    answer(client, EINVAL, -1);
    return;
  }
  AUTO_CLOSE int fd = open_port(protocol, ip, port);
  answer(client, fd < 0 ? errno : 0, fd);
}

void serve_requests(int listener, int keeper) {
  struct pollfd watched[] = {{.fd = listener, .events = POLLIN}, {.fd = keeper, .events = POLLIN}};
  for (;;) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    if (watched[1].revents != 0) return;
    if ((watched[0].revents & POLLIN) == 0) continue;
    AUTO_CLOSE int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client >= 0) serve(client);
  }
}

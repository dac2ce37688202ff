// Datagrams: each client has a socket of its own towards the target, so that answers find back.
#include "proxy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOWS_MAX 1024
#define IDLE_MS 90000
#define DATAGRAM_BYTES 65536

struct server {
  struct watch watch;
  int fd;
  struct target target;
};

struct flow {
  struct watch watch;
  int fd;
  const struct server *server;
  struct sockaddr_in6 client;
  uint64_t used_ms;
  struct flow *next;
};

// The most recently used comes first.
static struct flow *flows;
static int count;
static char bytes[DATAGRAM_BYTES];

static bool is_of(const struct flow *one, const struct server *server, const struct sockaddr_in6 *client) {
  return one->server == server && memcmp(&one->client, client, sizeof *client) == 0;
}

static void put_first(struct flow **place) {
  struct flow *one = *place;
  *place = one->next;
  one->next = flows;
  one->used_ms = now_ms;
  flows = one;
}

static void close_last(void) {
  struct flow **place = &flows;
  while ((*place)->next != NULL) place = &(*place)->next;
  close((*place)->fd);
  free(*place);
  *place = NULL;
  count--;
}

static void answer(struct watch *watch, uint32_t events) {
  (void)events;
  struct flow *one = (struct flow *)watch;
  ssize_t length = recv(one->fd, bytes, sizeof bytes, MSG_DONTWAIT); // also reads an error, such as a missing listener
  if (length < 0) return;
  struct flow **place = &flows;
  while (*place != one) place = &(*place)->next;
  put_first(place);
  sendto(one->server->fd, bytes, (size_t)length, MSG_DONTWAIT, (struct sockaddr *)&one->client, sizeof one->client);
}

static struct flow *flow_of(const struct server *server, const struct sockaddr_in6 *client) {
  for (struct flow **place = &flows; *place != NULL; place = &(*place)->next) {
    if (!is_of(*place, server, client)) continue;
    put_first(place);
    return flows;
  }
  if (count == FLOWS_MAX) close_last();
  struct flow *one = calloc(1, sizeof *one);
  int fd = socket(server->target.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (one == NULL || fd < 0) goto refused;
  *one = (struct flow){.fd = fd, .server = server, .client = *client, .used_ms = now_ms, .next = flows};
  if (connect(fd, (const struct sockaddr *)&server->target.address, server->target.length) != 0) goto refused;
  if (!watch_fd(&one->watch, fd, EPOLLIN, answer)) goto refused;
  flows = one;
  count++;
  return one;
refused:
  free(one);
  if (fd >= 0) close(fd);
  return NULL;
}

static void ask(struct watch *watch, uint32_t events) {
  (void)events;
  struct server *server = (struct server *)watch;
  struct sockaddr_in6 client = {0}; // that of IPv4 is shorter
  socklen_t size = sizeof client;
  ssize_t length = recvfrom(server->fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&client, &size);
  if (length < 0) return;
  struct flow *flow = flow_of(server, &client);
  if (flow != NULL) send(flow->fd, bytes, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void expire_udp(void) {
  static uint64_t looked_ms;
  if (now_ms - looked_ms < 1000) return;
  looked_ms = now_ms;
  for (struct flow *last = flows; last != NULL;) {
    while (last->next != NULL) last = last->next;
    if (now_ms - last->used_ms < IDLE_MS) return;
    close_last();
    last = flows;
  }
}

void serve_udp(int fd, const struct target *target) {
  struct server *server = calloc(1, sizeof *server);
  if (server == NULL) abort();
  *server = (struct server){.fd = fd, .target = *target};
  if (!watch_fd(&server->watch, fd, EPOLLIN, ask)) abort();
}

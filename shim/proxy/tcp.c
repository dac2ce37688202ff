// Connections: what one side sends goes to the other, and so does its end.
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BACKLOG 4096
#define BUFFER_BYTES (16 * 1024)
#define CONNECTIONS_MAX 4096
// At most this number of buffers are moved before it is the turn of other connections.
#define BUFFERS_AT_ONCE 16
#define EDGES (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

struct listener {
  struct watch watch;
  int fd;
  struct target target;
  bool is_waiting; // for room; its clients queue in the kernel
  struct listener *next;
};

struct connection;

// One side. `bytes` is what it has sent and the other has not taken yet.
struct side {
  struct watch watch;
  struct connection *connection;
  int fd;
  bool has_ended, is_told; // it sends no more; the other side knows
  size_t from, to;
  char bytes[BUFFER_BYTES];
};

struct connection {
  struct side client, target;
  bool is_connecting, is_over, is_listed;
  struct connection *next_busy;
};

static struct listener *listeners;
static struct connection *busy;
static int connections;

// Connections with work are listed, and served in `go_on_tcp`: only there a connection is freed.
static void list(struct connection *one) {
  if (one->is_listed) return;
  one->is_listed = true;
  one->next_busy = busy;
  busy = one;
}

// Moves what it can. True: there may be more. The connection is over after an error.
static bool move(struct connection *one, struct side *source, struct side *sink) {
  for (int turn = 0; turn < BUFFERS_AT_ONCE; turn++) {
    while (source->from < source->to) {
      ssize_t sent = send(sink->fd, source->bytes + source->from, source->to - source->from, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno != EAGAIN) one->is_over = true;
      if (sent < 0) return false;
      source->from += (size_t)sent;
    }
    if (source->has_ended) {
      if (!source->is_told) shutdown(sink->fd, SHUT_WR);
      source->is_told = true;
      return false;
    }
    ssize_t got = recv(source->fd, source->bytes, BUFFER_BYTES, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) one->is_over = true;
    if (got < 0) return false;
    source->from = 0;
    source->to = (size_t)got;
    source->has_ended = got == 0;
  }
  return true;
}

static bool finish_connecting(struct connection *one) {
  int reason = 0;
  socklen_t length = sizeof reason;
  if (getsockopt(one->target.fd, SOL_SOCKET, SO_ERROR, &reason, &length) != 0 || reason != 0) return false;
  struct sockaddr_storage peer;
  socklen_t peer_length = sizeof peer;
  one->is_connecting = getpeername(one->target.fd, (struct sockaddr *)&peer, &peer_length) != 0;
  return true;
}

static void free_connection(struct connection *one) {
  close(one->client.fd);
  close(one->target.fd);
  free(one);
  connections--;
  for (struct listener *each = listeners; each != NULL; each = each->next) {
    if (!each->is_waiting) continue;
    each->is_waiting = !watch_change(&each->watch, EPOLLIN);
  }
}

bool go_on_tcp(void) {
  struct connection *now = busy;
  busy = NULL;
  while (now != NULL) {
    struct connection *one = now;
    now = one->next_busy;
    one->is_listed = false;
    if (one->is_connecting) one->is_over = one->is_over || !finish_connecting(one);
    if (!one->is_over && !one->is_connecting) {
      bool has_more = move(one, &one->client, &one->target);
      if (!one->is_over && move(one, &one->target, &one->client)) has_more = true;
      if (one->client.is_told && one->target.is_told) one->is_over = true;
      if (has_more && !one->is_over) list(one);
    }
    if (one->is_over) free_connection(one);
  }
  return busy != NULL;
}

static void side_ready(struct watch *watch, uint32_t events) {
  (void)events; // an error is found by reading or writing
  list(((struct side *)watch)->connection);
}

static void connect_to(const struct target *target, int client) {
  struct connection *one = calloc(1, sizeof *one);
  int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (one == NULL || fd < 0) goto refused;
  if (connect(fd, (const struct sockaddr *)&target->address, target->length) != 0 && errno != EINPROGRESS) goto refused;
  one->client = (struct side){.connection = one, .fd = client};
  one->target = (struct side){.connection = one, .fd = fd};
  one->is_connecting = true;
  if (!watch_fd(&one->client.watch, client, EDGES, side_ready)) goto refused;
  if (!watch_fd(&one->target.watch, fd, EDGES, side_ready)) goto refused;
  connections++;
  return;
refused:
  free(one);
  if (fd >= 0) close(fd);
  close(client);
}

static void accept_client(struct watch *watch, uint32_t events) {
  (void)events;
  struct listener *listener = (struct listener *)watch;
  int client = connections < CONNECTIONS_MAX ? accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
  if (client >= 0) {
    connect_to(&listener->target, client);
  } else if (connections > 0 &&
             (connections == CONNECTIONS_MAX || errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    watch_pause(&listener->watch);
    listener->is_waiting = true;
  }
}

void serve_tcp(int fd, const struct target *target) {
  struct listener *listener = calloc(1, sizeof *listener);
  if (listener == NULL || listen(fd, BACKLOG) != 0) abort();
  *listener = (struct listener){.fd = fd, .target = *target, .next = listeners};
  listeners = listener;
  if (!watch_fd(&listener->watch, fd, EPOLLIN, accept_client)) abort();
}

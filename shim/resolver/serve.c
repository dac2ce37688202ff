// Questions of containers, by UDP and by TCP.
#include "resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_ONCE 64
#define CONNECTIONS_MAX 64 // of a container
#define IDLE_MS 10000
#define HEADER 12

#define FORMAT_ERROR 1
#define NOT_IMPLEMENTED 4

// A TCP connection: one question after the other.
struct connection {
  struct watch watch;
  struct box *box;
  int fd;
  size_t filled;
  bool waiting; // for the answer
  uint64_t since;
  uint8_t bytes[2 + 4096];
  struct connection *next;
};

static struct connection *connections;

static void refuse(const struct client *client, const uint8_t *message, unsigned code) {
  uint8_t answer[HEADER] = {0};
  memcpy(answer, message, 4);
  answer[2] = (uint8_t)(0x80 | (message[2] & 0x79));
  answer[3] = (uint8_t)(0x80 | code);
  reply(client, answer, sizeof answer);
}

static void ask(struct client *client, const uint8_t *message, size_t length) {
  static uint8_t answer[MESSAGE_MAX];
  struct question question;
  size_t size;
  if (length < HEADER || (message[2] & 0x80) != 0) return; // not a question; an answer could begin a loop
  if ((message[2] & 0x78) != 0) {
    refuse(client, message, NOT_IMPLEMENTED);
    return;
  }
  if (!read_question(message, length, &question)) {
    refuse(client, message, FORMAT_ERROR);
    return;
  }
  client->id = get16(message);
  if (client->connection != NULL) question.limit = MESSAGE_MAX;
  client->limit = question.limit;
  if (answer_locally(client->box, &question, message, answer, &size) ||
      cached(client->box, &question, message, answer, &size))
    reply(client, answer, size);
  else
    forward(client, &question, message, length);
}

void serve_udp(struct watch *watch, uint32_t events) {
  (void)events;
  static uint8_t message[MESSAGE_MAX];
  struct box *box = (struct box *)((char *)watch - offsetof(struct box, udp_watch));
  for (int n = 0; n < AT_ONCE; n += 1) {
    struct client client = {.box = box};
    socklen_t size = sizeof client.address;
    ssize_t length = recvfrom(box->udp, message, sizeof message, 0, (struct sockaddr *)&client.address, &size);
    if (length < 0) return;
    ask(&client, message, (size_t)length);
  }
}

static void end_connection(struct connection *connection) {
  struct connection **place = &connections;
  while (*place != connection) place = &(*place)->next;
  *place = connection->next;
  forget_questions(connection->box, connection);
  connection->box->connections -= 1;
  close(connection->fd);
  free(connection);
}

// False: the connection is gone.
static bool take_question(struct connection *connection) {
  if (connection->waiting || connection->filled < 2) return true;
  size_t length = get16(connection->bytes);
  if (length + 2 > sizeof connection->bytes) {
    end_connection(connection);
    return false;
  }
  if (connection->filled < length + 2) return true;
  uint8_t message[sizeof connection->bytes];
  memcpy(message, connection->bytes + 2, length);
  connection->filled -= length + 2;
  memmove(connection->bytes, connection->bytes + 2 + length, connection->filled);
  connection->waiting = true;
  connection->since = now_ms;
  struct client client = {.box = connection->box, .connection = connection};
  ask(&client, message, length);
  return true;
}

static void read_more(struct watch *watch, uint32_t events) {
  (void)events;
  struct connection *connection = (struct connection *)watch;
  size_t space = sizeof connection->bytes - connection->filled;
  ssize_t length = space == 0 ? 0 : recv(connection->fd, connection->bytes + connection->filled, space, 0);
  if (length < 0 && errno == EAGAIN) return;
  if (length <= 0) {
    end_connection(connection);
    return;
  }
  connection->filled += (size_t)length;
  take_question(connection);
}

void serve_tcp(struct watch *watch, uint32_t events) {
  (void)events;
  struct box *box = (struct box *)((char *)watch - offsetof(struct box, tcp_watch));
  int fd = accept4(box->tcp, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  struct connection *connection = box->connections < CONNECTIONS_MAX ? calloc(1, sizeof *connection) : NULL;
  if (connection == NULL) {
    close(fd);
    return;
  }
  *connection = (struct connection){.box = box, .fd = fd, .since = now_ms, .next = connections};
  connections = connection;
  box->connections += 1;
  watch_fd(&connection->watch, fd, EPOLLIN, read_more);
}

// Sends an answer. By TCP a client is dropped when the kernel does not take all at once: it does not read.
void reply(const struct client *client, uint8_t *answer, size_t length) {
  struct connection *connection = client->connection;
  if (connection == NULL) {
    sendto(client->box->udp, answer, length, 0, (const struct sockaddr *)&client->address, sizeof client->address);
    return;
  }
  uint8_t head[2];
  put16(head, (uint16_t)length);
  struct iovec parts[] = {{head, 2}, {answer, length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  connection->waiting = false;
  connection->since = now_ms;
  if (sendmsg(connection->fd, &message, MSG_NOSIGNAL) != (ssize_t)length + 2) shutdown(connection->fd, SHUT_RDWR);
}

void close_connections(const struct box *box) {
  for (struct connection *one = connections, *next; one != NULL; one = next) {
    next = one->next;
    if (one->box == box) end_connection(one);
  }
}

// Called once in a while. It also takes up the questions that came together with one before.
void close_idle_connections(void) {
  for (struct connection *one = connections, *next; one != NULL; one = next) {
    next = one->next;
    if (now_ms - one->since > IDLE_MS)
      end_connection(one);
    else
      take_question(one);
  }
}

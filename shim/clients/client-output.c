#define _GNU_SOURCE
#include "../shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SMALL_BUFFER (16 * 1024)

size_t client_room(const struct client *client) {
  return client->length < CLIENT_BUFFER ? CLIENT_BUFFER - client->length : 0;
}

// It takes no more output, but may still send stdin.
void client_lose(struct client *client) {
  let_go(client->replay);
  client->replay = NULL;
  client->length = 0;
  client->output_ended = true;
  client->follows = false;
  if (client->kind != ATTACHED) client->dead = true;
}

static bool grow(struct client *client, size_t needed) {
  size_t capacity = client->capacity > 0 ? client->capacity : SMALL_BUFFER;
  while (capacity < needed) capacity *= 2;
  unsigned char *larger = malloc(capacity);
  if (larger == NULL) return false;
  size_t first = client->capacity - client->start;
  if (first > client->length) first = client->length;
  if (client->length > 0) {
    memcpy(larger, client->buffer + client->start, first);
    memcpy(larger + first, client->buffer, client->length - first);
  }
  free(client->buffer);
  client->buffer = larger;
  client->capacity = capacity;
  client->start = 0;
  return true;
}

static void store(struct client *client, const unsigned char *bytes, size_t length) {
  if (length == 0) return;
  if (client->length + length > client->capacity && !grow(client, client->length + length)) {
    client->dead = true;
    return;
  }
  if (client->length == 0) client->start = 0; // touches few pages
  size_t at = (client->start + client->length) % client->capacity;
  size_t first = client->capacity - at < length ? client->capacity - at : length;
  memcpy(client->buffer + at, bytes, first);
  memcpy(client->buffer, bytes + first, length - first);
  client->length += length;
}

static size_t send_now(struct client *client, struct iovec *parts, size_t count) {
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
  ssize_t sent = sendmsg(client->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) client_lose(client);
  return sent > 0 ? (size_t)sent : 0;
}

// Two parts, so that a frame's header needs no copy of the payload.
static void queue_parts(struct client *client, struct iovec head, struct iovec body, bool push) {
  if (client->dead || client->output_ended) return;
  size_t sent = push && client->length == 0 ? send_now(client, (struct iovec[]){head, body}, 2) : 0;
  if (client->output_ended || sent == head.iov_len + body.iov_len) return;
  if (sent < head.iov_len) store(client, (unsigned char *)head.iov_base + sent, head.iov_len - sent);
  size_t skipped = sent > head.iov_len ? sent - head.iov_len : 0;
  store(client, (unsigned char *)body.iov_base + skipped, body.iov_len - skipped);
}

void client_tell(struct client *client, const char *text) {
  struct iovec nothing = {NULL, 0}, body = {(void *)(uintptr_t)text, strlen(text)};
  queue_parts(client, nothing, body, true);
}

// Without a terminal each piece has an 8-byte header. `push`: to the socket at once, past the buffer.
void client_queue(struct client *client, enum stream stream, const unsigned char *bytes, size_t length, bool push) {
  unsigned char header[8] = {(unsigned char)stream,
                             0,
                             0,
                             0,
                             (unsigned char)(length >> 24),
                             (unsigned char)(length >> 16),
                             (unsigned char)(length >> 8),
                             (unsigned char)length};
  struct iovec head = {header, options.tty ? 0 : sizeof header}, body = {(void *)(uintptr_t)bytes, length};
  queue_parts(client, head, body, push);
}

void client_flush(struct client *client) {
  while (client->length > 0) {
    size_t first = client->capacity - client->start;
    if (first > client->length) first = client->length;
    struct iovec parts[2] = {{client->buffer + client->start, first}, {client->buffer, client->length - first}};
    size_t sent = send_now(client, parts, 2);
    if (sent == 0) return;
    client->start = (client->start + sent) % client->capacity;
    client->length -= sent;
  }
}

// Frees the buffer of a client that was slow.
void client_shrink(struct client *client) {
  if (client->length > 0 || client->replay != NULL || client->capacity <= SMALL_BUFFER) return;
  free(client->buffer);
  client->buffer = NULL;
  client->capacity = 0;
}

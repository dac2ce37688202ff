#define _GNU_SOURCE
#include "../shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct client *clients;
static struct watch listener;

static void client_ready(struct watch *watch, uint32_t events);

static void accept_clients(struct watch *watch, uint32_t events) {
  (void)events;
  for (int fd; (fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) add_client(fd, false);
}

// Bound by a relative name: a socket's whole path would be limited to 107 bytes.
void listen_for_clients(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "shim.sock"};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 64) < 0) fail("listen");
  watch_surely(&listener, fd, EPOLLIN, accept_clients);
}

void stop_listening(void) {
  if (listener.fd < 0) return;
  unlink("shim.sock");
  watch_close(&listener);
}

void add_client(int fd, bool is_control) {
  struct client *client = calloc(1, sizeof *client);
  if (client == NULL) fail("memory");
  client->next = clients;
  clients = client;
  watch_surely(&client->watch, fd, EPOLLIN, client_ready);
  if (is_control) greet_control(client);
}

bool has_clients(bool control) {
  for (struct client *client = clients; client != NULL; client = client->next)
    if (!client->dead && client->kind == (control ? CONTROL : ATTACHED)) return true;
  return false;
}

void tell_controls(const char *text) {
  for (struct client *client = clients; client != NULL; client = client->next)
    if (client->kind == CONTROL) client_tell(client, text);
}

// ---- output to clients ----

void client_attach(struct client *client, bool logs) {
  client->kind = ATTACHED;
  if (logs && current_log != NULL) client->replay = oldest_log();
}

// Without a log a slow client cannot catch up, so the container waits for the slowest one. After the exit there is room
// for the rest in the pipes, so that no client can hold up the end.
bool clients_have_room(void) {
  if (current_log != NULL) return phase == DRAINING || !log_is_held_up();
  size_t limit = CLIENT_BUFFER + (phase == DRAINING ? 3 * PIPE_BYTES : 0);
  for (struct client *client = clients; client != NULL; client = client->next)
    if (client->kind == ATTACHED && client->follows && client->length + CHUNK > limit) return false;
  return true;
}

static void fall_behind(struct client *client) {
  client->replay = hold(current_log);
  client->replay_offset = current_log->end;
  for (enum stream stream = STDOUT; stream <= STDERR; stream++) client->skip[stream] = log_pending(stream, NULL);
}

void send_output(enum stream stream, const unsigned char *bytes, size_t length) {
  for (struct client *client = clients; client != NULL; client = client->next) {
    if (client->kind != ATTACHED || !client->follows || client->dead || client->replay != NULL) continue;
    if (!client->takes[stream]) continue;
    if (current_log == NULL || client_room(client) >= length + 8)
      client_queue(client, stream, bytes, length, true);
    else
      fall_behind(client);
  }
  if (current_log != NULL) log_output(stream, bytes, length);
}

// ---- input from clients ----

// StdinOnce: stdin ends with the last client that had it. With a terminal or without StdinOnce it stays open, and the
// client's session ends instead.
static void end_input(struct client *client) {
  if (client->input_ended) return;
  client->input_ended = true;
  if (!client->takes[STDIN]) return;
  if (options.tty || !options.stdin_once) {
    client->follows = false;
    return;
  }
  for (struct client *other = clients; other != NULL; other = other->next)
    if (other->takes[STDIN] && !other->input_ended) return;
  end_stdin();
}

static void read_input(struct client *client) {
  static unsigned char bytes[CHUNK];
  while (!client->input_ended && (!client->takes[STDIN] || stdin_has_room())) {
    ssize_t length = recv(client->watch.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0)
      end_input(client);
    else if (client->takes[STDIN])
      feed_stdin(bytes, (size_t)length);
  }
}

// Reads no further than the line's end: the bytes behind a handshake are stdin. Returns whether a line is whole.
static bool read_line(struct client *client) {
  char *space = client->line + client->line_length;
  size_t room = sizeof client->line - 1 - client->line_length;
  ssize_t seen = recv(client->watch.fd, space, room, MSG_PEEK | MSG_DONTWAIT);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (seen <= 0) { // it is gone, or its line is too long
    client->dead = true;
    return false;
  }
  char *end = memchr(space, '\n', (size_t)seen);
  size_t length = end != NULL ? (size_t)(end - space) + 1 : (size_t)seen;
  if (recv(client->watch.fd, space, length, MSG_DONTWAIT) != (ssize_t)length) client->dead = true;
  client->line_length = end != NULL ? 0 : client->line_length + length;
  if (end != NULL) *end = 0;
  return end != NULL;
}

static void client_ready(struct watch *watch, uint32_t events) {
  struct client *client = (struct client *)watch;
  while (!client->dead && client->kind != ATTACHED && read_line(client)) handle_line(client);
  if (client->dead) return;
  if (client->kind == ATTACHED && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_input(client);
  if (events & (EPOLLHUP | EPOLLERR)) client_lose(client);
  if (events & EPOLLOUT) client_flush(client);
}

// ---- after each round of events ----

static void catch_up(struct client *client) {
  for (int block = 0; block < 8 && client->replay != NULL && !client->dead; block++) {
    client_flush(client);
    if (client->replay == NULL || client_room(client) < CLIENT_BUFFER / 2 || !replay(client)) return;
  }
}

static bool has_everything(const struct client *client) {
  bool deaf = !client->takes[STDOUT] && !client->takes[STDERR] && client->input_ended;
  bool over = phase == EXITED || phase == FAILED || !client->follows || deaf;
  return over && client->replay == NULL && client->length == 0;
}

// The end of the output is a half-close; later bytes of the client are read and dropped until it closes. Closing with
// unread bytes, or while it writes, would reset the connection and lose the output that it has not read yet.
static void settle(struct client *client) {
  if (client->kind != ATTACHED || client->dead) return;
  catch_up(client);
  client_flush(client);
  client_shrink(client);
  if (!client->output_ended && has_everything(client)) {
    shutdown(client->watch.fd, SHUT_WR);
    client->output_ended = true;
  }
  if (client->output_ended && !client->input_ended) read_input(client);
  if (client->output_ended && client->input_ended) client->dead = true;
}

static void update_watch(struct client *client) {
  bool attached = client->kind == ATTACHED;
  bool reading = !attached || (!client->input_ended && (!client->takes[STDIN] || stdin_has_room()));
  bool writing = client->length > 0 || client->replay != NULL;
  uint32_t events = (reading ? EPOLLIN : 0) | (writing ? EPOLLOUT : 0);
  if (events == 0 && client->output_ended)
    watch_pause(&client->watch);
  else
    change_surely(&client->watch, events);
}

static void remove_client(struct client *client) {
  if (client->kind == ATTACHED) end_input(client);
  watch_close(&client->watch);
  client_lose(client);
  free(client->buffer);
  free(client);
}

void settle_clients(void) {
  bool replaying = false;
  for (struct client **link = &clients; *link != NULL;) {
    struct client *client = *link;
    settle(client);
    if (client->dead) {
      *link = client->next;
      remove_client(client);
      continue;
    }
    update_watch(client);
    replaying = replaying || client->replay != NULL;
    link = &client->next;
  }
  if (!replaying) end_replays();
}

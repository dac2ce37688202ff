// The daemon's commands: lines on a socket, each answered in its turn.
#include "resolver.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1048576
#define READ_BYTES 65536
#define ANSWER_MAX_BYTES 160

struct session {
  struct watch watch;
  int fd;
  pid_t pid; // of the peer
  bool must_close;
  size_t filled, size;
  char *bytes;
  struct session *next;
};

bool must_quit;

static struct watch listener;
static int listening = -1;
static struct stat own_socket;
static char socket_path[512];
static struct session *sessions;
static struct session *daemon_session; // the one whose commands count

bool is_controlled(void) { return sessions != NULL; }

static void mark_all(void) {
  for (struct box *box = boxes; box != NULL; box = box->next) box->marked = true;
  for (struct network *one = networks; one != NULL; one = one->next) {
    one->marked = true;
    for (struct member *member = one->members; member != NULL; member = member->next) member->marked = true;
  }
}

static void remove_marked(void) {
  for (struct box *box = boxes, *next; box != NULL; box = next) {
    next = box->next;
    if (box->marked) remove_box(box);
  }
  for (struct network *one = networks, *next; one != NULL; one = next) {
    next = one->next;
    if (one->marked && !is_in_use(one)) {
      remove_network(one);
      continue;
    }
    for (struct member *member = one->members, *after; member != NULL; member = after) {
      after = member->next;
      if (member->marked) remove_member(one, member->owner);
    }
  }
}

static void close_session(struct session *session) {
  struct session **place = &sessions;
  while (*place != session) place = &(*place)->next;
  *place = session->next;
  if (daemon_session == session) daemon_session = NULL;
  close(session->fd);
  free(session->bytes);
  free(session);
}

static bool has_hung_up(const struct session *session) {
  struct pollfd poller = {.fd = session->fd};
  return poll(&poller, 1, 0) == 1 && (poller.revents & (POLLHUP | POLLERR)) != 0;
}

// The daemon begins a session with the complete state. A daemon that is there is not replaced by another process.
static const char *begin(struct session *session) {
  struct session *before = daemon_session;
  if (before != NULL && before != session) {
    if (before->pid != session->pid && !has_hung_up(before)) return "another daemon commands it";
    close_session(before);
  }
  daemon_session = session;
  mark_all();
  return NULL;
}

// The start time of the container's process goes into the journal, so that no other process is taken for it.
static char *with_start(const char *line) {
  const char *last = strrchr(line, ' ');
  int pid = 0;
  char *to;
  size_t size;
  if (strncmp(line, "box ", 4) != 0 || last == NULL || sscanf(line, "box %*s %d", &pid) != 1) return strdup(line);
  FILE *text = open_memstream(&to, &size);
  fprintf(text, "%.*s %llu", (int)(last - line), line, (unsigned long long)start_of(pid));
  fclose(text);
  return to;
}

static const char *take_change(const char *text) {
  char *line = with_start(text);
  const char *problem = change(line);
  if (problem == NULL) append_journal(line);
  free(line);
  return problem;
}

// A session without the complete state has no say, and is closed.
static const char *obey(struct session *session, const char *line) {
  bool is_beginning = strcmp(line, "begin") == 0;
  const char *problem = is_beginning                ? begin(session)
                        : session == daemon_session ? NULL
                                                    : "the complete state comes first";
  session->must_close = problem != NULL;
  if (problem != NULL || is_beginning) return problem;
  if (strcmp(line, "end") == 0) {
    remove_marked();
    write_journal();
  } else if (strcmp(line, "quit") == 0) {
    must_quit = true;
  } else {
    return take_change(line);
  }
  return NULL;
}

// Obeys the whole lines. The answers go out together: a daemon that does not read them does not hold up the containers.
static void obey_lines(struct session *session) {
  char *answers = NULL, *at = session->bytes, *rest = session->bytes + session->filled, *end;
  size_t length;
  FILE *to = open_memstream(&answers, &length);
  while (!session->must_close && !must_quit && (end = memchr(at, '\n', (size_t)(rest - at))) != NULL) {
    *end = 0;
    const char *problem = memchr(at, 0, (size_t)(end - at)) == NULL ? obey(session, at) : "not understood";
    if (problem == NULL)
      fprintf(to, "ok\n");
    else
      fprintf(to, "error %.*s\n", ANSWER_MAX_BYTES, problem);
    at = end + 1;
  }
  session->filled = (size_t)(rest - at);
  memmove(session->bytes, at, session->filled);
  if (session->filled > LINE_MAX_BYTES) {
    fprintf(to, "error the command is too long\n");
    session->must_close = true;
  }
  fclose(to);
  if (send(session->fd, answers, length, MSG_DONTWAIT) != (ssize_t)length) session->must_close = true;
  free(answers);
}

static void hear(struct watch *watch, uint32_t events) {
  (void)events;
  struct session *session = (struct session *)watch;
  if (session->size - session->filled < READ_BYTES) {
    session->size = session->filled + READ_BYTES + session->filled / 2;
    session->bytes = realloc(session->bytes, session->size);
  }
  ssize_t size = recv(session->fd, session->bytes + session->filled, READ_BYTES, MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN) return;
  if (size > 0) {
    session->filled += (size_t)size;
    obey_lines(session);
  }
  // The end of the process closes the session in which it was told to quit, which tells the daemon.
  if ((size <= 0 || session->must_close) && !must_quit) close_session(session);
}

static void accept_session(struct watch *watch, uint32_t events) {
  (void)watch;
  (void)events;
  struct ucred peer;
  socklen_t size = sizeof peer;
  int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
    close(fd);
    return;
  }
  struct session *session = calloc(1, sizeof *session);
  *session = (struct session){.fd = fd, .pid = peer.pid, .next = sessions};
  sessions = session;
  watch_fd(&session->watch, fd, EPOLLIN, hear);
}

// Listens for the daemon.
void open_control(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
  // The path may be longer than an address has room for.
  if (chdir(folder) != 0) exit(CANNOT_LISTEN);
  snprintf(address.sun_path, sizeof address.sun_path, "socket.new");
  unlink(address.sun_path);
  listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  umask(0177);
  if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 8) != 0 ||
      rename(address.sun_path, "socket") != 0) { // who sees it appear can connect
    fprintf(stderr, "socket: %s\n", strerror(errno));
    exit(CANNOT_LISTEN);
  }
  if (chdir("/") != 0 || stat(socket_path, &own_socket) != 0) exit(CANNOT_LISTEN);
  watch_fd(&listener, listening, EPOLLIN, accept_session);
}

// False: the socket was removed, or another process has taken its place.
bool can_be_found(void) {
  struct stat now;
  return stat(socket_path, &now) == 0 && now.st_ino == own_socket.st_ino && now.st_dev == own_socket.st_dev;
}

// The daemon sees that no process listens any more before this one has ended.
void close_control(void) { unlink(socket_path); }

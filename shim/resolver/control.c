// The daemon's commands, lines on a socket, and the journal of them, from which a new process goes on.
#include "resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WORDS_MAX 512
#define LINE_MAX_BYTES 65536
#define JOURNAL_SLACK 1048576

// The daemon; a new one may connect before the last is gone.
struct session {
  struct watch watch;
  int fd;
  size_t filled;
  char bytes[LINE_MAX_BYTES];
};

bool must_quit;

static struct watch listener;
static int listening = -1, journal = -1;
static size_t journal_bytes;
static char journal_path[512], fresh_path[520];
static unsigned sessions;

bool is_controlled(void) { return sessions > 0; }

static void write_line(int fd, const char *line) {
  size_t size = strlen(line);
  char *copy = malloc(size + 2);
  memcpy(copy, line, size);
  copy[size] = '\n';
  if (write(fd, copy, size + 1) != (ssize_t)size + 1) fprintf(stderr, "journal: %s\n", strerror(errno));
  journal_bytes += size + 1;
  free(copy);
}

// Writes the current state beside the old journal, and puts it in its place.
static void write_journal(void) {
  int fd = open(fresh_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  journal_bytes = 0;
  for (struct network *one = networks; one != NULL; one = one->next) {
    write_line(fd, one->line);
    for (struct member *member = one->members; member != NULL; member = member->next) write_line(fd, member->line);
  }
  for (struct box *box = boxes; box != NULL; box = box->next) write_line(fd, box->line);
  rename(fresh_path, journal_path);
  if (journal >= 0) close(journal);
  journal = fd;
}

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
    if (one->marked) {
      remove_network(one);
      continue;
    }
    for (struct member *member = one->members, *after; member != NULL; member = after) {
      after = member->next;
      if (member->marked) remove_member(one, member->owner);
    }
  }
}

static const char *forget_network(const char *id) {
  struct network *network = find_network(id);
  if (network == NULL) return NULL;
  for (struct box *box = boxes; box != NULL; box = box->next)
    for (size_t n = 0; n < box->network_count; n += 1)
      if (box->networks[n] == network) return "a container is in it";
  remove_network(network);
  return NULL;
}

static void remember(char **line, const char *text) {
  free(*line);
  *line = strdup(text);
}

// net ID NAME · unnet ID · name NETWORK OWNER IP4 IP6 NAME… · unname NETWORK OWNER · box … · unbox ID · begin · end · quit
static const char *obey(char **words, size_t count, const char *line) {
  const char *verb = words[0];
  struct network *network;
  if (strcmp(verb, "net") == 0 && count == 3) {
    remember(&add_network(words[1], words[2])->line, line);
  } else if (strcmp(verb, "unnet") == 0 && count == 2) {
    return forget_network(words[1]);
  } else if (strcmp(verb, "name") == 0 && count >= 6) {
    if ((network = find_network(words[1])) == NULL) return "no such network";
    remember(&add_member(network, words[2], words[3], words[4], words + 5, count - 5)->line, line);
  } else if (strcmp(verb, "unname") == 0 && count == 3) {
    if ((network = find_network(words[1])) != NULL) remove_member(network, words[2]);
  } else if (strcmp(verb, "box") == 0) {
    return add_box(words, count, line);
  } else if (strcmp(verb, "unbox") == 0 && count == 2) {
    struct box *box = find_box(words[1]);
    if (box != NULL) remove_box(box);
  } else if (strcmp(verb, "begin") == 0) {
    mark_all();
  } else if (strcmp(verb, "end") == 0) {
    remove_marked();
    write_journal();
  } else if (strcmp(verb, "quit") == 0) {
    must_quit = true;
  } else {
    return "not understood";
  }
  return NULL;
}

// The start time of the container's process goes into the journal, so that no other process is taken for it.
static void with_start(const char *line, char *to, size_t size) {
  const char *last = strrchr(line, ' ');
  int pid = 0;
  if (strncmp(line, "box ", 4) != 0 || last == NULL || strcmp(last, " 0") != 0 || sscanf(line, "box %*s %d", &pid) != 1)
    snprintf(to, size, "%s", line);
  else
    snprintf(to, size, "%.*s %llu", (int)(last - line), line, (unsigned long long)start_of(pid));
}

static const char *take_line(char *text) {
  static char line[LINE_MAX_BYTES + 32];
  char *words[WORDS_MAX], *rest = NULL;
  size_t count = 0;
  with_start(text, line, sizeof line);
  char *copy = strdup(line);
  for (char *word = strtok_r(copy, " ", &rest); word != NULL && count < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
    words[count++] = word;
  const char *problem = count == 0 ? "not understood" : obey(words, count, line);
  free(copy);
  return problem;
}

static void close_session(struct session *session) {
  close(session->fd);
  free(session);
  sessions -= 1;
}

static void hear(struct watch *watch, uint32_t events) {
  (void)events;
  struct session *session = (struct session *)watch;
  ssize_t size = read(session->fd, session->bytes + session->filled, sizeof session->bytes - 1 - session->filled);
  if (size < 0 && errno == EAGAIN) return;
  if (size <= 0) {
    close_session(session);
    return;
  }
  session->filled += (size_t)size;
  session->bytes[session->filled] = 0;
  char *at = session->bytes, *end;
  while ((end = strchr(at, '\n')) != NULL) {
    *end = 0;
    char copy[160];
    bool changes = strncmp(at, "begin", 5) != 0 && strncmp(at, "end", 3) != 0;
    char *kept = strdup(at);
    const char *problem = take_line(at);
    if (problem == NULL && changes && journal >= 0) {
      char *line = malloc(strlen(kept) + 32);
      with_start(kept, line, strlen(kept) + 32);
      write_line(journal, line);
      free(line);
    }
    free(kept);
    int length = problem == NULL ? snprintf(copy, sizeof copy, "ok\n") : snprintf(copy, sizeof copy, "error %s\n", problem);
    if (write(session->fd, copy, (size_t)length) != length) {
      close_session(session);
      return;
    }
    at = end + 1;
  }
  if (must_quit) { // the end of the process closes it, which tells the daemon
    free(session);
    return;
  }
  session->filled = strlen(at);
  memmove(session->bytes, at, session->filled);
  if (session->filled == sizeof session->bytes - 1) close_session(session);
  if (journal_bytes > JOURNAL_SLACK) write_journal();
}

static void accept_session(struct watch *watch, uint32_t events) {
  (void)watch;
  (void)events;
  int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  struct session *session = calloc(1, sizeof *session);
  session->watch.ready = hear;
  session->fd = fd;
  sessions += 1;
  watch_fd(fd, EPOLLIN, &session->watch);
}

static void read_journal(void) {
  FILE *file = fopen(journal_path, "re");
  if (file == NULL) return;
  char *line = NULL;
  size_t size = 0;
  for (ssize_t length; (length = getline(&line, &size, file)) > 0;) {
    if (line[length - 1] != '\n') break; // cut off
    line[length - 1] = 0;
    const char *problem = take_line(line);
    if (problem != NULL) fprintf(stderr, "%s: %s\n", line, problem);
  }
  free(line);
  fclose(file);
}

// Takes up the journal, and listens for the daemon.
void open_control(const char *folder) {
  snprintf(journal_path, sizeof journal_path, "%s/journal", folder);
  snprintf(fresh_path, sizeof fresh_path, "%s/journal.new", folder);
  read_journal();
  write_journal();
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  // The path may be longer than an address has room for.
  if (chdir(folder) != 0) exit(1);
  snprintf(address.sun_path, sizeof address.sun_path, "socket.new");
  unlink(address.sun_path);
  listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  umask(0177);
  if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 8) != 0 ||
      rename(address.sun_path, "socket") != 0) { // who sees it appear can connect
    fprintf(stderr, "socket: %s\n", strerror(errno));
    exit(1);
  }
  if (chdir("/") != 0) exit(1);
  listener.ready = accept_session;
  watch_fd(listening, EPOLLIN, &listener);
}

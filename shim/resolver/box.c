// Containers that are served: their sockets, opened in their namespaces.
#include "resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADDRESS "127.0.0.11"
#define BACKLOG 64

struct box *boxes;

struct box *find_box(const char *id) {
  for (struct box *one = boxes; one != NULL; one = one->next)
    if (strcmp(one->id, id) == 0) return one;
  return NULL;
}

bool is_in_use(const struct network *network) {
  for (const struct box *box = boxes; box != NULL; box = box->next)
    for (size_t n = 0; n < box->network_count; n += 1)
      if (box->networks[n] == network) return true;
  return false;
}

// A socket in a namespace; -1 with errno. This process has one thread, so that moving it moves all of it.
static int socket_in(int netns, int family, int type) {
  static int home = -1;
  if (home < 0) home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0 || (netns >= 0 && setns(netns, CLONE_NEWNET) != 0)) return -1;
  int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int reason = errno;
  if (netns >= 0 && setns(home, CLONE_NEWNET) != 0)
    abort(); // the namespace is lost: the supervisor starts a new worker
  errno = reason;
  return fd;
}

int socket_for(const struct box *box, const struct upstream *upstream, int type) {
  return socket_in(upstream->inside ? box->netns : -1, upstream->address.ss_family, type);
}

static int open_bound(int netns, int type, uint16_t port) {
  int fd = socket_in(netns, AF_INET, type);
  if (fd < 0) return -1;
  int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, ADDRESS, &address.sin_addr);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool is_open = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (is_open && type == SOCK_STREAM) is_open = listen(fd, BACKLOG) == 0;
  if (is_open) return fd;
  int reason = errno;
  close(fd);
  errno = reason;
  return -1;
}

// When a process started, in clock ticks, which tells it from a later one with the same pid; 0: no such process.
uint64_t start_of(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = 0;
  char *at = strrchr(text, ')'); // the name before it may contain anything
  for (int field = 2; at != NULL && field < 22; field += 1) at = strchr(at + 1, ' ');
  return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

// The container has ended while no daemon was there to say so.
static void ended(struct watch *watch, uint32_t events) {
  (void)events;
  remove_box((struct box *)((char *)watch - offsetof(struct box, end_watch)));
}

static bool read_upstream(const char *text, struct upstream *upstream) {
  memset(upstream, 0, sizeof *upstream);
  upstream->inside = text[0] == 'c';
  const char *at = strchr(text, ':');
  if (at == NULL) return false;
  struct sockaddr_in *four = (struct sockaddr_in *)&upstream->address;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)&upstream->address;
  if (inet_pton(AF_INET, at + 1, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(53);
    upstream->length = sizeof *four;
  } else if (inet_pton(AF_INET6, at + 1, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(53);
    upstream->length = sizeof *six;
  }
  return upstream->length > 0;
}

static void read_upstreams(struct box *box, char *list) {
  // Answers of one server must not reach clients of another.
  box->upstream_hash = hash_of(list, strchr(list, 'c') == NULL ? 1 : hash_of(box->id, 1));
  char *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest))
    if (box->upstream_count < UPSTREAMS_MAX && read_upstream(one, &box->upstreams[box->upstream_count]))
      box->upstream_count += 1;
}

static void read_networks(struct box *box, char *list) {
  char *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
    struct network *network = decode(one) ? find_network(one) : NULL;
    if (network == NULL) continue;
    box->networks = realloc(box->networks, (box->network_count + 1) * sizeof *box->networks);
    box->networks[box->network_count++] = network;
  }
}

static void read_links(struct box *box, char *list) {
  char *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
    char *target = strchr(one, '=');
    if (target == NULL) continue;
    *target++ = 0;
    if (!decode(one) || !decode(target) || !is_name(one) || !is_name(target)) continue;
    struct link *link = calloc(1, sizeof *link);
    link->alias = strdup(one);
    link->target = strdup(target);
    link->next = box->links;
    box->links = link;
  }
}

static void forget_settings(struct box *box) {
  free(box->networks);
  box->networks = NULL;
  box->network_count = box->upstream_count = 0;
  for (struct link *link = box->links, *next; link != NULL; link = next) {
    next = link->next;
    free(link->alias);
    free(link->target);
    free(link);
  }
  box->links = NULL;
}

static const char *open_box(struct box *box, pid_t pid, const char *path, uint16_t port) {
  box->netns = open(path, O_RDONLY | O_CLOEXEC);
  if (box->netns < 0) return "its namespace is gone";
  box->end = (int)syscall(SYS_pidfd_open, pid, 0);
  if (box->end < 0) return "its process is gone";
  box->udp = open_bound(box->netns, SOCK_DGRAM, port);
  box->tcp = open_bound(box->netns, SOCK_STREAM, port);
  if (box->udp < 0 || box->tcp < 0) return strerror(errno);
  watch_fd(&box->udp_watch, box->udp, EPOLLIN, serve_udp);
  watch_fd(&box->tcp_watch, box->tcp, EPOLLIN, serve_tcp);
  watch_fd(&box->end_watch, box->end, EPOLLIN, ended);
  return NULL;
}

// box ID PID NAMESPACE PORT NETWORKS UPSTREAMS LINKS START: serves a container, or changes what it is served.
const char *add_box(char **fields, size_t count, const char *line) {
  (void)count;
  pid_t pid = (pid_t)atoi(fields[2]);
  uint64_t start = strtoull(fields[8], NULL, 10);
  if (!decode(fields[1]) || !decode(fields[3])) return "not understood";
  if (start == 0 || start != start_of(pid)) return "its process is gone";
  struct box *box = find_box(fields[1]);
  if (box == NULL) {
    box = calloc(1, sizeof *box);
    box->udp = box->tcp = box->end = box->netns = -1;
    box->id = strdup(fields[1]);
    box->next = boxes;
    boxes = box;
    const char *problem = open_box(box, pid, fields[3], (uint16_t)atoi(fields[4]));
    if (problem != NULL) {
      static char kept[128];
      snprintf(kept, sizeof kept, "%s", problem);
      remove_box(box);
      return kept;
    }
  }
  forget_settings(box);
  read_networks(box, fields[5]);
  read_upstreams(box, fields[6]);
  read_links(box, fields[7]);
  free(box->line);
  box->line = strdup(line);
  box->marked = false;
  return NULL;
}

void remove_box(struct box *box) {
  struct box **place = &boxes;
  while (*place != box) place = &(*place)->next;
  *place = box->next;
  close_connections(box);
  forget_questions(box, NULL);
  forget_settings(box);
  int fds[] = {box->udp, box->tcp, box->end, box->netns};
  for (size_t n = 0; n < 4; n += 1)
    if (fds[n] >= 0) close(fds[n]);
  free(box->id);
  free(box->line);
  free(box);
}

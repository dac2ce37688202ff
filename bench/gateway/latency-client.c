/*
 * Requests at a steady rate, each timed from the moment at which it was due: one that finds no free connection, or that
 * this program sends late, counts as waiting since then.
 *
 *   latency-client PORT RATE WARMUP_SECONDS SECONDS CONNECTIONS CALLERS
 *
 * Prints one line of JSON: how many answers, their percentiles in milliseconds, and for how many milliseconds this program
 * waited for a core.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 16384, REQUEST_BYTES = 256, EVENTS = 256 };

struct connection {
  int fd;
  uint64_t due;
  size_t have, want;
  char answer[ANSWER_BYTES];
};

static struct connection *connections, **idle;
static size_t idle_count;
static uint64_t *times;
static size_t answered;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void open_connection(struct connection *c, int port, int epoll) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0) fail("connect");
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) fail("epoll_ctl");
}

static void ask(struct connection *c, uint64_t due, uint64_t number, uint64_t callers) {
  char request[REQUEST_BYTES];
  uint64_t caller = number * 7 % callers;
  int length = snprintf(request, sizeof request,
                        "GET /repos/gantry/r%d HTTP/1.1\r\nhost: a\r\nauthorization: Bearer token-of-%d\r\n\r\n",
                        (int)(caller % 50), (int)caller);
  c->due = due;
  c->have = c->want = 0;
  if (send(c->fd, request, (size_t)length, MSG_NOSIGNAL) != length) fail("send");
}

/** True when all of the answer is there. The head must have a length, and come with status 200. */
static bool complete(struct connection *c) {
  ssize_t got = recv(c->fd, c->answer + c->have, sizeof c->answer - 1 - c->have, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) fail("recv");
  c->have += (size_t)got;
  c->answer[c->have] = '\0';
  if (c->want == 0) {
    char *end = strstr(c->answer, "\r\n\r\n"), *length = strcasestr(c->answer, "\r\ncontent-length:");
    if (end == NULL) return false;
    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0 || length == NULL) {
      fprintf(stderr, "an unexpected answer:\n%s\n", c->answer);
      exit(1);
    }
    c->want = (size_t)(end - c->answer) + 4 + strtoul(length + 17, NULL, 10);
  }
  return c->have >= c->want;
}

static int by_size(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return (a > b) - (a < b);
}

static double percentile(double share) {
  size_t at = (size_t)((double)answered * share);
  return (double)times[at < answered ? at : answered - 1] / 1e6;
}

static double waited(void) {
  unsigned long long ran, waited_ns = 0;
  FILE *file = fopen("/proc/self/schedstat", "r");
  if (file == NULL || fscanf(file, "%llu %llu", &ran, &waited_ns) != 2) fail("schedstat");
  fclose(file);
  return (double)waited_ns / 1e6;
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  int port = atoi(argv[1]);
  double rate = atof(argv[2]);
  uint64_t warm = (uint64_t)(atof(argv[3]) * rate), total = warm + (uint64_t)(atof(argv[4]) * rate);
  size_t count = strtoul(argv[5], NULL, 10);
  uint64_t callers = strtoul(argv[6], NULL, 10);
  prctl(PR_SET_TIMERSLACK, 1);
  connections = calloc(count, sizeof *connections);
  idle = calloc(count, sizeof(struct connection *));
  times = calloc(total + 1, sizeof *times);
  int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  if (connections == NULL || idle == NULL || times == NULL || epoll < 0 || timer < 0) fail("start");
  for (size_t i = 0; i < count; i++) {
    open_connection(&connections[i], port, epoll);
    idle[idle_count++] = &connections[i];
  }
  struct epoll_event wake = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &wake);
  uint64_t start = now() + 1000000, sent = 0, back = 0;
#define DUE(n) (start + (uint64_t)((double)(n) * 1e9 / rate))
  while (back < total) {
    for (uint64_t t = now(); sent < total && idle_count > 0 && DUE(sent) <= t; sent++) {
      ask(idle[--idle_count], DUE(sent), sent, callers);
    }
    if (sent < total && idle_count > 0) {
      uint64_t next = DUE(sent);
      struct itimerspec at = {.it_value = {.tv_sec = (time_t)(next / 1000000000u), .tv_nsec = (long)(next % 1000000000u)}};
      timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
    }
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(epoll, events, EVENTS, 10000);
    if (ready == 0 || (ready < 0 && errno != EINTR)) fail("no answer within 10 s");
    for (int i = 0; i < ready; i++) {
      struct connection *c = events[i].data.ptr;
      if (c == NULL) {
        uint64_t expired;
        if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) fail("timer");
      } else if (complete(c)) {
        // `back` is no number of a request, but the warm-up is over for all by its end.
        if (back++ >= warm) times[answered++] = now() - c->due;
        idle[idle_count++] = c;
      }
    }
  }
  qsort(times, answered, sizeof *times, by_size);
  printf("{\"answers\":%zu,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f,\"waited\":%.3f}\n", answered,
         percentile(.5), percentile(.9), percentile(.99), percentile(.999), percentile(1), waited());
}

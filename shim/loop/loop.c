#include "loop.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static int epoll_fd = -1;
uint64_t now_ms;

int64_t steady_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t steady_ms(void) { return steady_ns() / 1000000; }

void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

bool open_loop(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  now_ms = (uint64_t)steady_ms();
  return epoll_fd >= 0;
}

bool watch_fd(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t)) {
  *watch = (struct watch){.fd = fd, .ready = ready};
  return watch_change(watch, events);
}

bool watch_change(struct watch *watch, uint32_t events) {
  if (watch->registered && watch->events == events) return true;
  struct epoll_event event = {.events = events, .data.ptr = watch};
  if (epoll_ctl(epoll_fd, watch->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd, &event) < 0) return false;
  watch->registered = true;
  watch->events = events;
  return true;
}

void watch_pause(struct watch *watch) {
  if (watch->registered) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
  watch->registered = false;
}

void watch_close(struct watch *watch) {
  if (watch->ready == NULL) return; // it was never opened
  watch_pause(watch);
  close_fd(&watch->fd);
}

bool wait_for_event(int milliseconds) {
  struct epoll_event event;
  int count = epoll_wait(epoll_fd, &event, 1, milliseconds);
  now_ms = (uint64_t)steady_ms();
  if (count < 0) return errno == EINTR;
  if (count == 1) ((struct watch *)event.data.ptr)->ready(event.data.ptr, event.events);
  return true;
}

// The event loop of gantry-shim, gantry-resolver and gantry-proxy: one thread, one epoll.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

// A descriptor and the function that is called when it is ready.
struct watch {
  void (*ready)(struct watch *watch, uint32_t events);
  int fd;
  uint32_t events;
  bool registered;
};

// False: out of descriptors or memory.
bool open_loop(void);
bool watch_fd(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t));
bool watch_change(struct watch *watch, uint32_t events);
void watch_pause(struct watch *watch); // also for hang-ups, which epoll reports repeatedly
void watch_close(struct watch *watch);

// Time of the last event, on the steady clock.
extern uint64_t now_ms;

// Waits for one ready descriptor and calls its function; -1 waits without a limit. One at a time, because a function may
// close other descriptors and free their watches. False: epoll failed.
bool wait_for_event(int milliseconds);

// Times of the steady clock, which does not follow the wall clock.
int64_t steady_ns(void);
int64_t steady_ms(void);

void close_fd(int *fd);
#define AUTO_CLOSE __attribute__((cleanup(close_fd)))

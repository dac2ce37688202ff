#ifndef ROOTLESS_H
#define ROOTLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define AUTO_CLOSE __attribute__((cleanup(close_descriptor)))

// Says why on stderr and ends this process.
void __attribute__((noreturn, format(printf, 1, 2))) refuse(const char *format, ...);

static inline void close_descriptor(int *fd) {
  extern int close(int);
  if (*fd >= 0) close(*fd);
}

// keeper.c: makes the namespaces and returns when they can be entered. `state` is the open folder of state.
void start_keeper(int state);

// ids.c: gives the user namespace of `pid` the user's own ids and those of /etc/subuid and /etc/subgid.
void map_ids(pid_t pid);

// way-out.c: starts pasta or slirp4netns for the namespaces of `pid`; -1 where there is none, or nowhere to go.
pid_t start_way_out(pid_t pid);

// ports.c: answers requests for sockets of the machine on the socket `listener`, while `keeper` lives.
int listen_for_requests(int state);
void serve_requests(int listener, int keeper);

#endif

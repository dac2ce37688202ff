// gantry-proxy: published ports on the loopback of IPv6, see README.md.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../loop/loop.h"

// Where a published port leads.
struct target {
  struct sockaddr_storage address;
  socklen_t length;
};

// Serves a listening or bound socket from now on.
void serve_tcp(int fd, const struct target *target);
void serve_udp(int fd, const struct target *target);

// Called in each turn of the loop. `go_on_tcp` returns whether there is work left that need not wait.
bool go_on_tcp(void);
void expire_udp(void);

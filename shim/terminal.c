#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// The runtime makes the terminal and sends us its other end over this socket.
static struct watch console;
static bool console_accepted;
static struct winsize size;
static bool size_known;

static void console_ready(struct watch *watch, uint32_t events);

void listen_for_terminal(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "console.sock"};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 1) < 0)
    fail("listen for the terminal");
  watch_surely(&console, fd, EPOLLIN, console_ready);
}

// The runtime connects early and sends the terminal when it has made it: nothing here may wait for it.
static int receive_descriptor(int connection) {
  char text[256];
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec vector = {text, sizeof text};
  struct msghdr message = {
      .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) return -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return -1;
  int fd;
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

static void accept_console(void) {
  int connection = accept4(console.fd, NULL, NULL, SOCK_CLOEXEC);
  if (connection < 0) return;
  watch_close(&console);
  unlink("console.sock");
  console_accepted = true;
  watch_surely(&console, connection, EPOLLIN, console_ready);
}

void receive_console(void) {
  if (console.ready == NULL || console.fd < 0) return;
  if (!console_accepted) accept_console();
  int master = console_accepted ? receive_descriptor(console.fd) : -1;
  if (master < 0) return;
  watch_close(&console);
  if (size_known) ioctl(master, TIOCSWINSZ, &size);
  take_terminal(master);
}

static void console_ready(struct watch *watch, uint32_t events) {
  bool accepted = console_accepted;
  receive_console();
  // Closed without a terminal: the runtime's exit explains it.
  if (accepted && watch->fd >= 0 && events & (EPOLLHUP | EPOLLERR)) watch_pause(watch);
}

// A size that is set before the terminal exists is kept for it.
void resize_terminal(int width, int height) {
  size = (struct winsize){.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
  size_known = true;
  int master = terminal();
  if (master >= 0) ioctl(master, TIOCSWINSZ, &size);
}

void forget_terminal(void) {
  watch_close(&console);
  if (options.tty) unlink("console.sock");
}

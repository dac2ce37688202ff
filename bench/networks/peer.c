// The programs at both ends of the measured traffic. In C, so that what is measured is the network and not them.
//
//   peer serve CLOSING ECHOING      closes each connection at once on one port, sends back on the other
//   peer connect HOST PORT COUNT    so many connections to CLOSING, one after the other
//   peer trips HOST PORT COUNT      so many bytes to ECHOING and back
//   peer ask NAME COUNT AT_ONCE     questions for a name, so many of them under way at a time
//
// `serve` prints a line when it listens, the others the milliseconds that they took, and those of the processor. Exit
// code 1: something failed.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NAME_SERVER "127.0.0.11"
#define DNS_PORT 53
#define HEADER 12

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double processor_ms(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  struct timeval sum;
  timeradd(&used.ru_utime, &used.ru_stime, &sum);
  return (double)sum.tv_sec * 1e3 + (double)sum.tv_usec / 1e3;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static struct sockaddr_in address_of(const char *host, const char *port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
  return address;
}

static int listening(const char *port) {
  struct sockaddr_in address = address_of("0.0.0.0", port);
  int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 511) != 0) fail("listen");
  return fd;
}

static void watch_fd(int poll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

static void serve(const char *closing, const char *echoing) {
  char bytes[4096];
  int poll = epoll_create1(0), to_close = listening(closing), to_echo = listening(echoing);
  watch_fd(poll, to_close);
  watch_fd(poll, to_echo);
  puts("ready");
  fflush(stdout);
  for (struct epoll_event event; epoll_wait(poll, &event, 1, -1) == 1;) {
    int fd = event.data.fd;
    if (fd == to_close) {
      close(accept(fd, NULL, NULL));
    } else if (fd == to_echo) {
      int on = 1, connection = accept(fd, NULL, NULL);
      setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      watch_fd(poll, connection);
    } else {
      ssize_t size = read(fd, bytes, sizeof bytes);
      if (size <= 0 || write(fd, bytes, (size_t)size) != size) close(fd);
    }
  }
}

static int connected(const struct sockaddr_in *address) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) fail("connect");
  return fd;
}

static void connect_often(const struct sockaddr_in address, int count) {
  char byte;
  for (int n = 0; n < count; n += 1) {
    int fd = connected(&address);
    if (read(fd, &byte, 1) != 0) fail("read");
    close(fd);
  }
}

static void send_and_receive(const struct sockaddr_in address, int count) {
  char byte = 'x';
  int on = 1, fd = connected(&address);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (int n = 0; n < count; n += 1)
    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1) fail("round trip");
}

static void ask(const char *name, int count, int at_once) {
  unsigned char question[512] = {0, 0, 1, 0, 0, 1}, answer[4096];
  size_t length = strlen(name), size = HEADER + 1 + length + 1 + 4;
  question[HEADER] = (unsigned char)length;
  memcpy(question + HEADER + 1, name, length);
  question[size - 3] = question[size - 1] = 1; // the addresses of IPv4, of the Internet
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(DNS_PORT)};
  inet_pton(AF_INET, NAME_SERVER, &server.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (connect(fd, (struct sockaddr *)&server, sizeof server) != 0) fail("connect");
  for (int sent = 0, got = 0; got < count;) {
    for (; sent < count && sent - got < at_once; sent += 1) {
      question[0] = (unsigned char)(sent >> 8);
      question[1] = (unsigned char)sent;
      if (send(fd, question, size, 0) != (ssize_t)size) fail("send");
    }
    ssize_t received = recv(fd, answer, sizeof answer, 0);
    if (received < HEADER || (answer[3] & 15) != 0 || answer[7] != 1) fail("answer");
    got += 1;
  }
}

int main(int argc, char **argv) {
  const char *what = argc == 5 || argc == 4 ? argv[1] : "";
  double started = now_ms();
  if (strcmp(what, "serve") == 0) serve(argv[2], argv[3]);
  else if (strcmp(what, "connect") == 0) connect_often(address_of(argv[2], argv[3]), atoi(argv[4]));
  else if (strcmp(what, "trips") == 0) send_and_receive(address_of(argv[2], argv[3]), atoi(argv[4]));
  else if (strcmp(what, "ask") == 0) ask(argv[2], atoi(argv[3]), atoi(argv[4]));
  else return 2;
  printf("%f %f\n", now_ms() - started, processor_ms());
  return 0;
}

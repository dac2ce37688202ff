#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static struct watch outputs[3]; // by stream; the terminal is STDOUT
static int child_ends[3] = {-1, -1, -1};
static struct watch input;
static int terminal_peer = -1; // the process's end of the terminal

static unsigned char *pending; // stdin that the process has not taken yet
static size_t pending_start, pending_length;
static bool input_ending;

static void output_ready(struct watch *watch, uint32_t events);
static void input_ready(struct watch *watch, uint32_t events);

static int make_pipe(enum stream stream, int ours) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0) fail("make a pipe");
  child_ends[stream] = ends[1 - ours];
  return ends[ours];
}

static void open_output(enum stream stream, int fd) {
  outputs[stream] = (struct watch){.fd = fd, .ready = output_ready};
}

static void open_input(int fd) { input = (struct watch){.fd = fd, .ready = input_ready}; }

void prepare_streams(void) {
  if (options.tty) {
    listen_for_terminal();
    return;
  }
  if (options.stdin_open) open_input(make_pipe(STDIN, 1));
  for (enum stream stream = STDOUT; stream <= STDERR; stream++) {
    int fd = make_pipe(stream, 0);
    fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); // refused beyond the user's limit: then it keeps the usual size
    open_output(stream, fd);
  }
}

int child_end(enum stream stream) { return child_ends[stream]; }

void close_child_ends(void) {
  for (enum stream stream = STDIN; stream <= STDERR; stream++) close_fd(&child_ends[stream]);
}

// The terminal that the runtime has made is all three streams. A process may close all of it and open it again later:
// reads would fail meanwhile, and without a notice of the next opening. So we hold it open as well.
void take_terminal(int master) {
  fcntl(master, F_SETFL, O_NONBLOCK);
  terminal_peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  open_output(STDOUT, master);
  // A descriptor of its own: epoll knows each only once.
  if (options.stdin_open) open_input(fcntl(master, F_DUPFD_CLOEXEC, 0));
  feed_stdin(NULL, 0);
}

static ssize_t fill(int fd, unsigned char *bytes) {
  size_t length = 0;
  ssize_t got;
  do { // a terminal gives 4 KB at once
    got = read(fd, bytes + length, CHUNK - length);
    if (got > 0) length += (size_t)got;
  } while (options.tty && got > 0 && length < CHUNK);
  return length > 0 ? (ssize_t)length : got;
}

// Whether at least FLOOD_BYTES came within a millisecond, now or in the one before.
static bool is_flood(size_t length) {
  static int64_t since;
  static size_t bytes, bytes_before;
  int64_t now = steady_ns(), passed = now - since;
  if (passed > FLOOD_NS) {
    bytes_before = passed < 2 * FLOOD_NS ? bytes : 0;
    bytes = 0;
    since = now;
  }
  bytes += length;
  return bytes >= FLOOD_BYTES || bytes_before >= FLOOD_BYTES;
}

// Delays the read from a process that writes much in small pieces, so that the next read gets many of them: each piece
// costs the client as much as a large one, and wakes us up.
static void let_more_come(size_t length) {
  if (is_flood(length) && length < CHUNK / 2) nanosleep(&(struct timespec){.tv_nsec = FLOOD_PAUSE_NS}, NULL);
}

// Returns whether there may be more at once.
static bool read_output(enum stream stream) {
  static unsigned char bytes[CHUNK];
  ssize_t length = fill(outputs[stream].fd, bytes);
  if (length > 0) {
    send_output(stream, bytes, (size_t)length);
    if (phase == RUNNING) let_more_come((size_t)length);
    return true;
  }
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  watch_close(&outputs[stream]); // the end of a terminal is EIO
  return false;
}

static bool output_is_open(enum stream stream) { return outputs[stream].ready != NULL && outputs[stream].fd >= 0; }

// -1 before the runtime has made it, and after the end.
int terminal(void) { return options.tty && output_is_open(STDOUT) ? outputs[STDOUT].fd : -1; }

static void output_ready(struct watch *watch, uint32_t events) {
  (void)events;
  if (!clients_have_room()) return;
  read_output(watch == &outputs[STDERR] ? STDERR : STDOUT);
  if (phase == DRAINING && !output_is_open(STDOUT) && !output_is_open(STDERR)) output_ended();
}

void drain_output(void) {
  close_fd(&terminal_peer);
  for (enum stream stream = STDOUT; stream <= STDERR; stream++)
    while (output_is_open(stream) && clients_have_room() && read_output(stream)) continue;
  if (!output_is_open(STDOUT) && !output_is_open(STDERR)) output_ended();
}

void update_output(void) {
  // Not before the runtime has succeeded: until then it is the runtime's own messages.
  bool reading = (phase == RUNNING || phase == DRAINING) && clients_have_room();
  for (enum stream stream = STDOUT; stream <= STDERR; stream++) {
    if (!output_is_open(stream)) continue;
    if (reading)
      change_surely(&outputs[stream], EPOLLIN);
    else
      watch_pause(&outputs[stream]);
  }
}

static void close_input(void) {
  watch_close(&input);
  pending_length = 0;
  options.stdin_open = false;
}

bool stdin_has_room(void) { return pending_length == 0; }

static void flush_input(void) {
  if (input.ready == NULL || input.fd < 0) return;
  while (pending_length > 0) {
    ssize_t written = write(input.fd, pending + pending_start, pending_length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      change_surely(&input, EPOLLOUT);
      return;
    }
    if (written < 0) { // it is no longer read
      close_input();
      return;
    }
    pending_start += (size_t)written;
    pending_length -= (size_t)written;
  }
  watch_pause(&input);
  if (input_ending) close_input();
}

static void input_ready(struct watch *watch, uint32_t events) {
  (void)watch, (void)events;
  flush_input();
}

// Input that the process does not read at once is kept; clients are not read until it is written.
void feed_stdin(const unsigned char *bytes, size_t length) {
  if (!options.stdin_open || input_ending) return;
  if (pending == NULL && (pending = malloc(CHUNK)) == NULL) fail("memory");
  if (length > 0) {
    memcpy(pending, bytes, length);
    pending_start = 0;
    pending_length = length;
  }
  flush_input();
}

void end_stdin(void) {
  input_ending = true;
  flush_input();
}

void close_streams(void) {
  close_input();
  for (enum stream stream = STDOUT; stream <= STDERR; stream++) watch_close(&outputs[stream]);
  close_child_ends();
  forget_terminal();
  close_fd(&terminal_peer);
}

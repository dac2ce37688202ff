#define _GNU_SOURCE
#include "../shim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static char now[40]; // when the chunk at hand was read
static struct {
  unsigned char bytes[LINE_LIMIT];
  size_t length;
  bool split;    // a piece of this line is in the log already
  char time[40]; // of its first piece: docker gives it to all of them
} lines[3];

// RFC 3339 with nanoseconds, without trailing zeros, as Go prints it.
static void take_time(void) {
  struct timespec time;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &time);
  gmtime_r(&time.tv_sec, &parts);
  size_t length = strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S", &parts);
  length += (size_t)snprintf(now + length, sizeof now - length, ".%09ld", time.tv_nsec);
  while (now[length - 1] == '0') length--;
  if (now[length - 1] == '.') length--;
  now[length] = 'Z';
  now[length + 1] = 0;
}

static void entry(enum stream stream, const unsigned char *bytes, size_t length, const char *time) {
  rotate_when_due();
  if (json_length > JSON_BATCH) log_flush();
  PUT("{\"log\":\"");
  bool valid = put_escaped(bytes, length);
  if (stream == STDOUT)
    PUT("\",\"stream\":\"stdout\"");
  else
    PUT("\",\"stream\":\"stderr\"");
  if (options.log_attributes != NULL) {
    PUT(",\"attrs\":");
    put(options.log_attributes, strlen(options.log_attributes));
  }
  PUT(",\"time\":\"");
  put(time, strlen(time));
  if (!valid) { // docker's readers pass over this field; with it no byte is lost
    PUT("\",\"raw\":\"");
    put_base64(bytes, length);
  }
  if (options.log_number == 0) {
    PUT("\"}\n");
    return;
  }
  char number[40];
  put(number, (size_t)snprintf(number, sizeof number, "\",\"seq\":%" PRId64 "}\n", options.log_number++));
}

// A line, or a piece of one that is too long. Its bytes are those that are held, or come directly from the chunk.
static void log_piece(enum stream stream, const unsigned char *bytes, size_t length, bool whole) {
  if (!whole && !lines[stream].split) memcpy(lines[stream].time, now, sizeof now);
  entry(stream, bytes, length, !whole || lines[stream].split ? lines[stream].time : now);
  lines[stream].split = !whole;
}

// Docker cuts after exactly 16 KB; we do not cut inside of a character.
static void split_line(enum stream stream) {
  unsigned char *bytes = lines[stream].bytes;
  size_t cut = whole_sequences(bytes, LINE_LIMIT);
  log_piece(stream, bytes, cut, false);
  lines[stream].length = LINE_LIMIT - cut;
  memmove(bytes, bytes + cut, LINE_LIMIT - cut);
}

static size_t take_from(enum stream stream, const unsigned char *bytes, size_t length) {
  size_t held = lines[stream].length;
  size_t limit = LINE_LIMIT - held < length ? LINE_LIMIT - held : length;
  const unsigned char *end = memchr(bytes, '\n', limit);
  size_t taken = end != NULL ? (size_t)(end - bytes) + 1 : limit;
  if (held == 0 && end != NULL) {
    log_piece(stream, bytes, taken, true);
    return taken;
  }
  memcpy(lines[stream].bytes + held, bytes, taken);
  lines[stream].length += taken;
  if (end != NULL) {
    log_piece(stream, lines[stream].bytes, lines[stream].length, true);
    lines[stream].length = 0;
  } else if (lines[stream].length == LINE_LIMIT) {
    split_line(stream);
  }
  return taken;
}

void log_output(enum stream stream, const unsigned char *bytes, size_t length) {
  take_time();
  for (size_t done = 0; done < length;) done += take_from(stream, bytes + done, length - done);
  log_flush();
}

// A last line without a newline is logged without one.
void log_finish(void) {
  if (current_log == NULL) return;
  take_time();
  for (enum stream stream = STDOUT; stream <= STDERR; stream++) {
    if (lines[stream].length > 0) log_piece(stream, lines[stream].bytes, lines[stream].length, true);
    lines[stream].length = 0;
  }
  log_flush();
}

size_t log_pending(enum stream stream, const unsigned char **bytes) {
  if (bytes != NULL) *bytes = lines[stream].bytes;
  return lines[stream].length;
}

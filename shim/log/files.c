#define _GNU_SOURCE
#include "../shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct generation *current_log;

static off_t rotate_at; // the length of the present file at which the next one is begun
static off_t retired_bytes;
static int retired_files;

struct generation *hold(struct generation *generation) {
  generation->references++;
  return generation;
}

// A file that is held also holds those after it, up to the present one.
void let_go(struct generation *generation) {
  while (generation != NULL && --generation->references == 0) {
    struct generation *next = generation->next;
    if (generation->retired) {
      retired_files--;
      retired_bytes -= generation->end;
    }
    close(generation->fd);
    free(generation);
    generation = next;
  }
}

// Slow clients must not fill the disk with files that have no name any more.
bool log_is_held_up(void) { return retired_files > HELD_LOG_FILES || retired_bytes > HELD_LOG_BYTES; }

static struct generation *new_generation(int fd) {
  struct stat information;
  struct generation *made = fd < 0 || fstat(fd, &information) < 0 ? NULL : calloc(1, sizeof *made);
  if (made == NULL)
    close_fd(&fd);
  else
    *made = (struct generation){.fd = fd, .end = information.st_size, .references = 1};
  return made;
}

// `ending`: ".gz" for a compressed one.
void rotated_name(char *name, int number, const char *ending) {
  if (number == 0)
    snprintf(name, PATH_MAX, "%s%s", options.log_path, ending);
  else
    snprintf(name, PATH_MAX, "%s.%d%s", options.log_path, number, ending);
}

static struct generation *open_current(void) {
  return new_generation(open(options.log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

// Behind the number of the last line of a file; 0 when it has none. No text of a line can hold this: its quotes are escaped.
static int64_t number_after(const struct generation *generation) {
  static const char name[] = ",\"seq\":";
  char *tail = calloc(1, ENTRY_LIMIT + 1); // once in a run: not worth memory of its own
  off_t from = generation->end > ENTRY_LIMIT ? generation->end - ENTRY_LIMIT : 0;
  ssize_t length = tail == NULL ? -1 : pread(generation->fd, tail, ENTRY_LIMIT, from);
  int64_t next = 0;
  for (ssize_t at = length - (ssize_t)sizeof name; at >= 0 && next == 0; at--) {
    if (memcmp(tail + at, name, sizeof name - 1) != 0) continue;
    char *end;
    int64_t number = strtoll(tail + at + sizeof name - 1, &end, 10);
    if (*end == '}') next = number + 1;
  }
  free(tail);
  return next;
}

// Numbers go on where the last run ended, so that a reader sees what is missing.
static void continue_numbers(void) {
  struct generation *oldest = oldest_log();
  for (struct generation *each = oldest; each != NULL; each = each->next) {
    int64_t next = number_after(each);
    if (next > options.log_number) options.log_number = next;
  }
  let_go(oldest);
}

void open_log(void) {
  if (options.log_attributes != NULL && strlen(options.log_attributes) > ATTRIBUTES_LIMIT) {
    errno = E2BIG;
    fail("take the log's attributes");
  }
  current_log = open_current();
  if (current_log == NULL) fail("open the log");
  rotate_at = options.log_max_bytes;
  // The next line must not be appended to a line that a crash truncated.
  char last = '\n';
  if (current_log->end > 0 && pread(current_log->fd, &last, 1, current_log->end - 1) == 1 && last != '\n')
    if (write(current_log->fd, "\n", 1) == 1) current_log->end++;
  if (options.log_number > 0) continue_numbers();
  compress_rotated(); // what the last run has left plain
}

static struct generation *open_rotated(int number) {
  char name[PATH_MAX];
  rotated_name(name, number, "");
  struct generation *plain = new_generation(open(name, O_RDONLY | O_CLOEXEC));
  if (plain != NULL || !options.log_compress) return plain;
  rotated_name(name, number, ".gz");
  struct generation *packed = new_generation(open(name, O_RDONLY | O_CLOEXEC));
  if (packed != NULL) packed->packed = true;
  return packed;
}

// The files of the log from the oldest on, chained up to the present one; the caller lets the first one go.
struct generation *oldest_log(void) {
  struct generation *first = hold(current_log);
  for (int number = 1; number < options.log_max_files; number++) {
    struct generation *older = open_rotated(number);
    if (older == NULL) break;
    older->next = first;
    first = older;
  }
  return first;
}

// Writes what entries are waiting in `json`.
void log_flush(void) {
  size_t done = 0;
  while (done < json_length) {
    ssize_t written = write(current_log->fd, json + done, json_length - done);
    if (written <= 0) break;
    done += (size_t)written;
  }
  // On a full disk the rest is lost, but no half line stays.
  if (done < json_length && ftruncate(current_log->fd, current_log->end) == 0) done = 0;
  current_log->end += (off_t)done;
  json_length = 0;
}

// A file is plain or compressed; of one that was just being replaced there are both, and the plain one counts.
static void shift(int number) {
  char from[PATH_MAX], to[PATH_MAX], packed_from[PATH_MAX], packed_to[PATH_MAX];
  rotated_name(from, number - 1, "");
  rotated_name(to, number, "");
  if (!options.log_compress) {
    rename(from, to);
    return;
  }
  rotated_name(packed_from, number - 1, ".gz");
  rotated_name(packed_to, number, ".gz");
  if (rename(from, to) == 0)
    unlink(packed_to);
  else if (rename(packed_from, packed_to) == 0)
    unlink(to);
}

// With one file only, it is replaced and not emptied: a client that still reads it keeps it. Where there is no room for a
// new file the old one goes on, as long again.
static void rotate(void) {
  log_flush();
  char fresh[PATH_MAX];
  snprintf(fresh, sizeof fresh, "%s.new", options.log_path);
  struct generation *next = new_generation(open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (next == NULL) {
    rotate_at = current_log->end + options.log_max_bytes;
    return;
  }
  for (int number = options.log_max_files - 1; number > 0; number--) shift(number);
  rename(fresh, options.log_path);
  rotate_at = options.log_max_bytes;
  current_log->next = hold(next);
  current_log->retired = true;
  retired_files++;
  retired_bytes += current_log->end;
  let_go(current_log);
  current_log = next;
  compress_rotated();
}

// Begins the next file when the entries so far fill the present one.
void rotate_when_due(void) {
  if (options.log_max_bytes > 0 && current_log->end + (off_t)json_length >= rotate_at) rotate();
}

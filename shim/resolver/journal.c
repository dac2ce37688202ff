// The journal: the lines from which a new worker goes on when the last one has failed.
//
// It is always a whole state and lines after it. What a full disk does not take is written once there is room.
#include "resolver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLACK_BYTES 1048576
#define RETRY_MS 1000

static char path[512], fresh_path[520];
static int journal = -1;
static size_t bytes, bytes_at_first; // now, and when it was written anew
static bool is_due;                  // the journal lacks something
static uint64_t tried;

static bool write_all(int fd, const char *text, size_t length) {
  while (length > 0) {
    ssize_t size = write(fd, text, length);
    if (size <= 0) return false;
    text += size;
    length -= (size_t)size;
  }
  return true;
}

// The lines of the current state.
static char *state(size_t *length) {
  char *text = NULL;
  FILE *to = open_memstream(&text, length);
  for (struct network *one = networks; one != NULL; one = one->next) {
    fprintf(to, "%s\n", one->line);
    for (struct member *member = one->members; member != NULL; member = member->next) fprintf(to, "%s\n", member->line);
  }
  for (struct box *box = boxes; box != NULL; box = box->next) fprintf(to, "%s\n", box->line);
  fclose(to);
  return text;
}

// Writes the current state beside the old journal, which is replaced when all of it is written.
void write_journal(void) {
  size_t length;
  char *text = state(&length);
  int fd = open(fresh_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  is_due = fd < 0 || !write_all(fd, text, length) || rename(fresh_path, path) != 0;
  tried = now_ms;
  free(text);
  if (!is_due) {
    if (journal >= 0) close(journal);
    journal = fd;
    bytes = bytes_at_first = length;
  } else if (fd >= 0) {
    close(fd);
    unlink(fresh_path);
  }
}

// Adds the line of a change. A part of a line would spoil the next one, and is taken back.
void append_journal(const char *line) {
  size_t length = strlen(line);
  if (is_due) return;
  if (!write_all(journal, line, length) || !write_all(journal, "\n", 1)) {
    is_due = true;
    tried = now_ms;
    if (ftruncate(journal, (off_t)bytes) == 0) lseek(journal, (off_t)bytes, SEEK_SET);
    return;
  }
  bytes += length + 1;
  if (bytes > 2 * bytes_at_first + SLACK_BYTES) write_journal();
}

// Called once in a while.
void complete_journal(void) {
  if (is_due && now_ms - tried >= RETRY_MS) write_journal();
}

// Ends at a line that was cut off, or damaged. A line that does not apply any more is passed over, such as that of a
// container that has ended.
static void read_journal(void) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return;
  char *line = NULL;
  size_t size = 0;
  for (ssize_t length; (length = getline(&line, &size, file)) > 0;) {
    if (line[length - 1] != '\n' || memchr(line, 0, (size_t)length) != NULL) break;
    line[length - 1] = 0;
    change(line);
  }
  free(line);
  fclose(file);
}

void open_journal(const char *folder) {
  snprintf(path, sizeof path, "%s/journal", folder);
  snprintf(fresh_path, sizeof fresh_path, "%s/journal.new", folder);
  read_journal();
  write_journal();
}

// After the end of all, nothing is left to go on with.
void remove_journal(void) { unlink(path); }

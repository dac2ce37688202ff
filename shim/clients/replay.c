#define _GNU_SOURCE
#include "../shim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Allocated only while a client is behind, so that a container without slow clients does not pay for it.
static struct {
  unsigned char block[ENTRY_LIMIT];
  unsigned char text[CHUNK]; // entries that follow each other on one stream go into one frame
} * buffers;
static size_t text_length;
static enum stream text_stream;

#define USUAL_BLOCK (64 * 1024)

static int digit(unsigned char byte) {
  if (byte >= 'A' && byte <= 'Z') return byte - 'A';
  if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
  if (byte >= '0' && byte <= '9') return byte - '0' + 52;
  return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

static size_t decode_base64(const unsigned char *s, const unsigned char *end, unsigned char *to) {
  size_t length = 0;
  uint32_t bits = 0;
  int have = 0;
  for (int value; s < end && (value = digit(*s)) >= 0; s++) {
    bits = bits << 6 | (uint32_t)value;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    if (length < LINE_LIMIT) to[length++] = (unsigned char)(bits >> have);
  }
  return length;
}

static unsigned hexadecimal(const unsigned char *s) {
  unsigned value = 0;
  for (int i = 0; i < 4; i++) value = value << 4 | ((unsigned)(s[i] <= '9' ? s[i] - '0' : (s[i] | 32) - 'a' + 10) & 15);
  return value;
}

static size_t put_rune(unsigned char *to, unsigned rune) {
  if (rune < 0x80) {
    to[0] = (unsigned char)rune;
    return 1;
  }
  if (rune < 0x800) {
    to[0] = (unsigned char)(0xc0 | rune >> 6);
    to[1] = (unsigned char)(0x80 | (rune & 63));
    return 2;
  }
  to[0] = (unsigned char)(0xe0 | rune >> 12);
  to[1] = (unsigned char)(0x80 | (rune >> 6 & 63));
  to[2] = (unsigned char)(0x80 | (rune & 63));
  return 3;
}

// Decodes the escapes up to the closing quote, and moves `s` there. Text longer than our own entries is skipped: it has
// replacement characters, and its bytes are in the field `raw`.
static size_t unescape(const unsigned char **s, const unsigned char *end, unsigned char *to) {
  static const char from[] = "nrtbf", meant[] = "\n\r\t\b\f";
  const unsigned char *at = *s;
  size_t length = 0;
  while (at < end && *at != '"') {
    if (length > LINE_LIMIT) length = LINE_LIMIT;
    if (*at != '\\') {
      to[length++] = *at++;
    } else if (end - at >= 6 && at[1] == 'u') {
      length += put_rune(to + length, hexadecimal(at + 2));
      at += 6;
    } else if (end - at >= 2) {
      const char *found = at[1] != 0 ? strchr(from, at[1]) : NULL;
      to[length++] = found != NULL ? (unsigned char)meant[found - from] : at[1];
      at += 2;
    } else {
      break;
    }
  }
  *s = at;
  return length < LINE_LIMIT ? length : LINE_LIMIT;
}

// The bytes of an entry that is not text are its last field, behind attributes that may have the same name.
static const unsigned char *find_raw(const unsigned char *line, const unsigned char *end) {
  static const char name[] = "\"raw\":\"";
  if (end - line < 2 || memcmp(end - 2, "\"}", 2) != 0) return NULL;
  const unsigned char *quote = memrchr(line, '"', (size_t)(end - 2 - line));
  if (quote == NULL || quote - line < (ptrdiff_t)sizeof name) return NULL;
  return memcmp(quote + 2 - sizeof name, name, sizeof name - 1) == 0 ? quote + 1 : NULL;
}

// Puts the text of an entry at `to`. Returns its length; 0 for a line that is not an entry of a log.
static size_t decode(const unsigned char *line, const unsigned char *end, enum stream *stream, unsigned char *to) {
  static const char head[] = "{\"log\":\"", middle[] = "\",\"stream\":\"std";
  if ((size_t)(end - line) < sizeof head || memcmp(line, head, sizeof head - 1) != 0) return 0;
  const unsigned char *at = line + sizeof head - 1;
  size_t length = unescape(&at, end, to);
  if ((size_t)(end - at) < sizeof middle || memcmp(at, middle, sizeof middle - 1) != 0) return 0;
  at += sizeof middle - 1;
  *stream = *at == 'e' ? STDERR : STDOUT;
  const unsigned char *raw = find_raw(at, end);
  return raw == NULL ? length : decode_base64(raw, end, to);
}

static void send_text(struct client *client) {
  if (text_length > 0) client_queue(client, text_stream, buffers->text, text_length, false);
  text_length = 0;
}

// Skips the part that it had before it fell behind: the beginning of the first entry of each stream.
static void add_text(struct client *client, enum stream stream, const unsigned char *bytes, size_t length) {
  size_t skipped = client->skip[stream] < length ? client->skip[stream] : length;
  client->skip[stream] -= skipped;
  if (length == skipped || !client->takes[stream]) return;
  if (text_length > 0 && stream != text_stream) {
    unsigned char kept[LINE_LIMIT];
    memcpy(kept, bytes, length); // it lies behind the text, where the next text will begin
    send_text(client);
    memcpy(buffers->text, kept + skipped, length - skipped);
  } else {
    memmove(buffers->text + text_length, bytes + skipped, length - skipped);
  }
  text_stream = stream;
  text_length += length - skipped;
}

// The log has no unfinished lines; the present has.
static void become_live(struct client *client) {
  for (enum stream stream = STDOUT; stream <= STDERR; stream++) {
    const unsigned char *bytes;
    size_t length = log_pending(stream, &bytes);
    if (client->follows) add_text(client, stream, bytes, length);
    send_text(client);
    client->skip[stream] = 0;
  }
  let_go(client->replay);
  client->replay = NULL;
}

static void next_file(struct client *client) {
  struct generation *next = hold(client->replay->next);
  let_go(client->replay);
  client->replay = next;
  client->replay_offset = 0;
}

// Returns how many bytes of the block were whole entries that the client had room for.
static size_t take_entries(struct client *client, size_t length) {
  const unsigned char *line = buffers->block, *end = line + length;
  for (const unsigned char *stop; (stop = memchr(line, '\n', (size_t)(end - line))) != NULL; line = stop + 1) {
    if (text_length + LINE_LIMIT + 3 > sizeof buffers->text) send_text(client);
    if (client_room(client) < text_length + 2 * LINE_LIMIT) break;
    enum stream stream = STDOUT;
    unsigned char *to = buffers->text + text_length;
    size_t size = decode(line, stop, &stream, to);
    if (size > 0) add_text(client, stream, to, size);
  }
  send_text(client);
  return (size_t)(line - buffers->block);
}

// An unreadable one is skipped.
static void unpack(struct generation *generation) {
  int plain = unpacked(generation->fd);
  close(generation->fd);
  generation->fd = plain;
  generation->packed = false;
}

static size_t read_entries(struct client *client) {
  if (client->replay->packed) unpack(client->replay);
  for (size_t size = USUAL_BLOCK;; size = sizeof buffers->block) { // one entry may be longer than the usual block
    ssize_t length = pread(client->replay->fd, buffers->block, size, client->replay_offset);
    size_t taken = length > 0 ? take_entries(client, (size_t)length) : 0;
    if (taken > 0 || length < (ssize_t)size || size == sizeof buffers->block) return taken;
  }
}

// Queues the log from the client's cursor on. Returns whether there was progress.
bool replay(struct client *client) {
  if (client_room(client) < 4 * LINE_LIMIT) return false;
  if (buffers == NULL && (buffers = malloc(sizeof *buffers)) == NULL) {
    client->dead = true;
    return false;
  }
  size_t taken = read_entries(client);
  client->replay_offset += (off_t)taken;
  if (taken > 0) return true;
  if (client->replay != current_log)
    next_file(client);
  else
    become_live(client);
  return true;
}

// No client is behind any more.
void end_replays(void) {
  free(buffers);
  buffers = NULL;
}

#define _GNU_SOURCE
#include "../shim.h"

#include <stdio.h>
#include <string.h>

unsigned char json[JSON_BATCH + ENTRY_LIMIT];
size_t json_length;

void put(const void *bytes, size_t length) {
  memcpy(json + json_length, bytes, length);
  json_length += length;
}

static size_t announced_length(unsigned char first) {
  return first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

// Length of the valid UTF-8 sequence at `s`, 0 when there is none.
static size_t sequence(const unsigned char *s, size_t left) {
  size_t length = announced_length(s[0]);
  if (length == 1) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4 || length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0; // longer than needed
  if (s[0] == 0xed && s[1] > 0x9f) return 0; // half of a surrogate pair
  if (s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
  return length;
}

// Where text of this length can be cut without cutting the last character in two.
size_t whole_sequences(const unsigned char *s, size_t length) {
  for (size_t back = 1; back <= 3 && back <= length; back++) {
    unsigned char byte = s[length - back];
    if ((byte & 0xc0) == 0x80) continue;
    return byte >= 0xc2 && byte <= 0xf4 && announced_length(byte) > back ? length - back : length;
  }
  return length;
}

#define BLOCK 16
typedef uint8_t block __attribute__((vector_size(BLOCK)));

// Bytes that need no escape; the compiler vectorizes this loop.
static bool is_plain(const unsigned char *s) {
  block bytes;
  memcpy(&bytes, s, sizeof bytes);
  block special = (block)(bytes - 0x20 > 0x5f) | (block)(bytes == '"') | (block)(bytes == '\\') |
                  (block)(bytes == '<') | (block)(bytes == '>') | (block)(bytes == '&');
  uint64_t halves[2];
  memcpy(halves, &special, sizeof halves);
  return (halves[0] | halves[1]) == 0;
}

// The escape of each byte below 0x80, and the replacement for invalid UTF-8: up to six bytes, and their number.
static struct escape {
  char text[7];
  uint8_t length;
} escapes[256];

static void fill_escapes(void) {
  for (int byte = 0; byte < 256; byte++) {
    struct escape *escape = &escapes[byte];
    if (byte >= 0x80)
      strcpy(escape->text, "\\ufffd");
    else if (byte == '"' || byte == '\\')
      snprintf(escape->text, sizeof escape->text, "\\%c", byte);
    else if (byte == '\n')
      strcpy(escape->text, "\\n");
    else if (byte == '\r')
      strcpy(escape->text, "\\r");
    else if (byte < 0x20 || strchr("<>&", byte) != NULL)
      snprintf(escape->text, sizeof escape->text, "\\u%04x", byte);
    else
      escape->text[0] = (char)byte;
    escape->length = (uint8_t)strlen(escape->text);
  }
}

static unsigned char *put_escape(unsigned char *to, unsigned char byte) {
  memcpy(to, &escapes[byte], sizeof escapes[byte]); // one store; the next one begins where the text ended
  return to + escapes[byte].length;
}

// A character of several bytes, or an invalid byte. Returns the number of bytes consumed.
static size_t put_wide(unsigned char **to, const unsigned char *s, size_t left, bool *valid) {
  size_t wide = sequence(s, left);
  if (wide == 0) {
    *valid = false;
    *to = put_escape(*to, *s);
    return 1;
  }
  if (wide == 3 && s[0] == 0xe2 && s[1] == 0x80 && (s[2] & 0xfe) == 0xa8) { // ends of lines for JavaScript
    memcpy(*to, s[2] == 0xa8 ? "\\u2028" : "\\u2029", 6);
    *to += 6;
    return wide;
  }
  for (size_t i = 0; i < wide; i++) (*to)[i] = s[i];
  *to += wide;
  return wide;
}

// Escapes as docker's json-file does; returns whether all of it was valid UTF-8.
bool put_escaped(const unsigned char *s, size_t length) {
  bool valid = true;
  unsigned char *to = json + json_length;
  if (escapes[0].length == 0) fill_escapes();
  for (size_t i = 0; i < length;) {
    size_t end = length;
    if (length - i >= BLOCK) {
      end = i + BLOCK;
      if (is_plain(s + i)) {
        memcpy(to, s + i, BLOCK);
        to += BLOCK;
        i = end;
        continue;
      }
    }
    while (i < end) {
      if (s[i] < 0x80)
        to = put_escape(to, s[i++]);
      else
        i += put_wide(&to, s + i, length - i, &valid);
    }
  }
  json_length = (size_t)(to - json);
  return valid;
}

void put_base64(const unsigned char *s, size_t length) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned char *to = json + json_length;
  for (size_t i = 0; i < length; i += 3) {
    uint32_t bits = (uint32_t)s[i] << 16;
    if (i + 1 < length) bits |= (uint32_t)s[i + 1] << 8;
    if (i + 2 < length) bits |= s[i + 2];
    *to++ = (unsigned char)digits[bits >> 18];
    *to++ = (unsigned char)digits[bits >> 12 & 63];
    *to++ = (unsigned char)(i + 1 < length ? digits[bits >> 6 & 63] : '=');
    *to++ = (unsigned char)(i + 2 < length ? digits[bits & 63] : '=');
  }
  json_length = (size_t)(to - json);
}

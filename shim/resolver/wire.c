// The wire format of DNS messages, RFC 1035 and 6891. Everything read here was written by a container or a foreign server.
#include "resolver.h"

#include <ctype.h>
#include <string.h>

#define HEADER 12
#define TYPE_OPT 41
#define PLAIN_LIMIT 512
#define EDNS_LIMIT 4096

uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
uint32_t get32(const uint8_t *at) { return (uint32_t)get16(at) << 16 | get16(at + 2); }

void put16(uint8_t *at, uint16_t value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
}

void put32(uint8_t *at, uint32_t value) {
  put16(at, (uint16_t)(value >> 16));
  put16(at + 2, (uint16_t)value);
}

// The end of a name, compressed or not; 0 when it leads out of the message.
size_t skip_name(const uint8_t *message, size_t length, size_t at) {
  while (at < length) {
    uint8_t size = message[at];
    if (size == 0) return at + 1;
    if ((size & 0xc0) == 0xc0) return at + 2 <= length ? at + 2 : 0;
    if ((size & 0xc0) != 0) return 0;
    at += (size_t)size + 1;
  }
  return 0;
}

// The name of a question, which is never compressed. Dots and NULs within a label are refused.
static size_t read_name(const uint8_t *message, size_t length, size_t at, char *name) {
  size_t used = 0;
  for (;;) {
    if (at >= length) return 0;
    uint8_t size = message[at++];
    if (size == 0) break;
    if (size > 63 || at + size > length || used + size + 2 > NAME_MAX_BYTES) return 0;
    if (used > 0) name[used++] = '.';
    for (uint8_t n = 0; n < size; n += 1) {
      uint8_t byte = message[at + n];
      if (byte == 0 || byte == '.') return 0;
      name[used++] = (char)tolower(byte);
    }
    at += size;
  }
  name[used] = 0;
  return at;
}

static void read_edns(const uint8_t *message, size_t length, size_t at, struct question *question) {
  unsigned records = get16(message + 6) + get16(message + 8) + get16(message + 10);
  for (; records > 0; records -= 1) {
    size_t end = skip_name(message, length, at);
    if (end == 0 || end + 10 > length) return;
    if (get16(message + end) == TYPE_OPT) {
      uint16_t limit = get16(message + end + 2);
      question->has_edns = true;
      question->wants_dnssec = (message[end + 6] & 0x80) != 0;
      question->limit = limit < PLAIN_LIMIT ? PLAIN_LIMIT : limit > EDNS_LIMIT ? EDNS_LIMIT : limit;
      return;
    }
    at = end + 10 + get16(message + end + 8);
    if (at > length) return;
  }
}

// False for anything but a single question.
bool read_question(const uint8_t *message, size_t length, struct question *question) {
  memset(question, 0, sizeof *question);
  question->limit = PLAIN_LIMIT;
  if (length < HEADER || (message[2] & 0x80) != 0 || get16(message + 4) != 1) return false;
  size_t at = read_name(message, length, HEADER, question->name);
  if (at == 0 || at + 4 > length) return false;
  question->type = get16(message + at);
  question->class = get16(message + at + 2);
  question->end = at + 4;
  question->checking_disabled = (message[3] & 0x10) != 0;
  read_edns(message, length, question->end, question);
  return true;
}

// Writes header and question of an answer; `code` is its RCODE.
size_t begin_answer(uint8_t *answer, const uint8_t *query, const struct question *question, unsigned code) {
  memcpy(answer, query, question->end);
  answer[2] = (uint8_t)(0x80 | (query[2] & 0x79));        // an answer; opcode and RD as asked
  answer[3] = (uint8_t)(0x80 | (query[3] & 0x10) | code); // RA; CD as asked
  put16(answer + 4, 1);
  memset(answer + 6, 0, 6);
  return question->end;
}

void add_count(uint8_t *answer) { put16(answer + 6, (uint16_t)(get16(answer + 6) + 1)); }

// Adds EDNS where the question had it.
size_t finish_answer(uint8_t *answer, size_t length, const struct question *question) {
  if (!question->has_edns) return length;
  static const uint8_t opt[11] = {0, 0, TYPE_OPT, EDNS_LIMIT >> 8, EDNS_LIMIT & 255};
  memcpy(answer + length, opt, sizeof opt);
  put16(answer + 10, 1);
  return length + sizeof opt;
}

// Answers from the table: addresses of names and aliases, names of addresses.
#include "resolver.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_A 1
#define TYPE_PTR 12
#define TYPE_AAAA 28
#define CLASS_IN 1
#define TTL_SECONDS 600 // dockerd's
#define MEMBERS_MAX 256

// Room is left for EDNS, and for one more record than fits.
#define ROOM 64

struct found {
  size_t count;
  const struct member *members[MEMBERS_MAX];
};

static bool is_same(const struct member *one, const struct member *other) {
  return one == other || (one->has4 && other->has4 && one->ip4.s_addr == other->ip4.s_addr);
}

static void find_in(const struct network *network, const char *text, struct found *found) {
  for (const struct name *name = names_in(network, text); name != NULL; name = name->next) {
    if (found->count == MEMBERS_MAX || strcmp(name->text, text) != 0) continue;
    bool known =
        false; // one container may have a name twice; a task has its own as a container, and as one of the cluster
    for (size_t n = 0; n < found->count; n += 1) known = known || is_same(found->members[n], name->member);
    if (!known) found->members[found->count++] = name->member;
  }
}

// A link's alias stands for the name of the container that it leads to.
static const char *linked(const struct box *box, const char *name) {
  for (const struct link *link = box->links; link != NULL; link = link->next)
    if (strcmp(link->alias, name) == 0) return link->target;
  return name;
}

// The first of the container's networks that knows the name. `name.network` is looked for in that network alone; both may
// have dots, and the shortest network comes first, as in dockerd.
static void find_name(const struct box *box, const char *asked, struct found *found) {
  const char *name = linked(box, asked);
  for (size_t n = 0; n < box->network_count && found->count == 0; n += 1) find_in(box->networks[n], name, found);
  char first[NAME_MAX_BYTES];
  snprintf(first, sizeof first, "%s", name);
  for (char *dot; found->count == 0 && (dot = strrchr(first, '.')) != NULL;) {
    *dot = 0;
    const char *label = name + (dot - first) + 1;
    for (size_t n = 0; n < box->network_count && found->count == 0; n += 1)
      if (strcmp(box->networks[n]->label, label) == 0) find_in(box->networks[n], linked(box, first), found);
  }
}

static size_t add_record(uint8_t *answer, size_t at, uint16_t type, const void *content, uint16_t size) {
  put16(answer + at, 0xc00c); // the name of the question
  put16(answer + at + 2, type);
  put16(answer + at + 4, CLASS_IN);
  put32(answer + at + 6, TTL_SECONDS);
  put16(answer + at + 10, size);
  memcpy(answer + at + 12, content, size);
  add_count(answer);
  return at + 12 + size;
}

// From a random one on: clients that take the first get another one each time.
static size_t add_addresses(uint8_t *answer, size_t at, const struct found *found, const struct question *question) {
  size_t first = (size_t)random() % found->count;
  for (size_t n = 0; n < found->count; n += 1) {
    const struct member *member = found->members[(first + n) % found->count];
    if (at + ROOM > question->limit) {
      answer[2] |= 2; // there are more: ask by TCP
      return at;
    }
    if (question->type == TYPE_A && member->has4) at = add_record(answer, at, TYPE_A, &member->ip4, 4);
    if (question->type == TYPE_AAAA && member->has6) at = add_record(answer, at, TYPE_AAAA, &member->ip6, 16);
  }
  return at;
}

// A question for the name of an address.
struct reverse {
  bool is_six;
  struct in_addr ip4;
  struct in6_addr ip6;
};

static bool has_address(const struct member *member, const struct reverse *reverse) {
  if (reverse->is_six) return member->has6 && memcmp(&member->ip6, &reverse->ip6, sizeof reverse->ip6) == 0;
  return member->has4 && member->ip4.s_addr == reverse->ip4.s_addr;
}

static const struct member *member_at(const struct box *box, const struct reverse *reverse, const struct network **of) {
  for (size_t n = 0; n < box->network_count; n += 1)
    for (const struct member *one = box->networks[n]->members; one != NULL; one = one->next)
      if (has_address(one, reverse)) {
        *of = box->networks[n];
        return one;
      }
  return NULL;
}

// 32 hexadecimal digits, the last of the address first, each with a dot after it, and `ip6.arpa`
static bool read_reverse6(const char *name, struct in6_addr *ip) {
  static const char digits[] = "0123456789abcdef";
  if (strlen(name) != 64 + 8 || strcmp(name + 64, "ip6.arpa") != 0) return false;
  for (int n = 0; n < 32; n += 1) {
    const char *digit = strchr(digits, name[2 * n]);
    if (digit == NULL || name[2 * n + 1] != '.') return false;
    unsigned value = (unsigned)(digit - digits);
    uint8_t *byte = &ip->s6_addr[15 - n / 2];
    *byte = (uint8_t)(n % 2 == 0 ? value : *byte | value << 4);
  }
  return true;
}

// `4.3.2.1.in-addr.arpa`, or the same of IPv6
static bool read_reverse(const char *name, struct reverse *reverse) {
  unsigned a, b, c, d;
  int end = 0;
  reverse->is_six = read_reverse6(name, &reverse->ip6);
  if (reverse->is_six) return true;
  if (sscanf(name, "%3u.%3u.%3u.%3u.in-addr.arpa%n", &d, &c, &b, &a, &end) != 4 || end == 0 || name[end] != 0)
    return false;
  if (a > 255 || b > 255 || c > 255 || d > 255) return false;
  reverse->ip4.s_addr = htonl(a << 24 | b << 16 | c << 8 | d);
  return true;
}

static size_t encode_name(uint8_t *to, const char *name) {
  size_t at = 0;
  while (*name != 0) {
    size_t size = strcspn(name, ".");
    if (size == 0 || size > 63 || at + size + 2 > NAME_MAX_BYTES) return 0;
    to[at++] = (uint8_t)size;
    memcpy(to + at, name, size);
    at += size;
    name += size + (name[size] == '.');
  }
  to[at++] = 0;
  return at;
}

static bool answer_reverse(const struct box *box, const struct question *question, uint8_t *answer, size_t *length) {
  struct reverse reverse;
  const struct network *network;
  if (!read_reverse(question->name, &reverse)) return false;
  const struct member *member = member_at(box, &reverse, &network);
  if (member == NULL || member->name_count == 0) return false;
  char name[NAME_MAX_BYTES * 2];
  uint8_t encoded[NAME_MAX_BYTES];
  snprintf(name, sizeof name, "%s%s%s", member->names[0], *network->label == 0 ? "" : ".", network->label);
  size_t size = encode_name(encoded, name);
  if (size > 0) *length = add_record(answer, *length, TYPE_PTR, encoded, (uint16_t)size);
  return size > 0;
}

// False: the table does not know the name, others are to be asked. A known name has no other records than addresses.
bool answer_locally(const struct box *box, const struct question *question, const uint8_t *query, uint8_t *answer,
                    size_t *length) {
  if (question->class != CLASS_IN) return false;
  *length = begin_answer(answer, query, question, 0);
  if (question->type == TYPE_PTR) {
    if (!answer_reverse(box, question, answer, length)) return false;
  } else {
    struct found found = {0};
    find_name(box, question->name, &found);
    if (found.count == 0) return false;
    *length = add_addresses(answer, *length, &found, question);
  }
  *length = finish_answer(answer, *length, question);
  return true;
}

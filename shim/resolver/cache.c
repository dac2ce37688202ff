// Answers of other servers, for as long as these allow. One answer per place: a new one replaces what is there.
#include "resolver.h"

#include <stdlib.h>
#include <string.h>

#define PLACES 4096
#define ANSWER_MAX 4096
#define MAX_SECONDS 3600
#define TYPE_SOA 6
#define TYPE_OPT 41

struct kept {
  uint64_t hash, since, until; // milliseconds
  struct question question;
  uint64_t upstreams;
  size_t length;
  uint8_t answer[];
};

static struct kept *places[PLACES];

// Visits the records of an answer. Returns the least TTL, of a negative answer that of its SOA record; 0: not to be kept.
// `passed`: seconds to take from every TTL.
static uint32_t walk(uint8_t *answer, size_t length, size_t at, uint32_t passed) {
  uint32_t least = MAX_SECONDS;
  unsigned records = get16(answer + 6) + get16(answer + 8) + get16(answer + 10);
  bool any = false;
  for (; records > 0; records -= 1) {
    size_t end = skip_name(answer, length, at);
    if (end == 0 || end + 10 > length) return 0;
    uint16_t type = get16(answer + end);
    at = end + 10 + get16(answer + end + 8);
    if (at > length) return 0;
    if (type == TYPE_OPT) continue; // its TTL field is not a TTL
    uint32_t ttl = get32(answer + end + 4);
    if (type == TYPE_SOA && get16(answer + 6) == 0 && at >= end + 14 && get32(answer + at - 4) < ttl)
      ttl = get32(answer + at - 4);
    put32(answer + end + 4, ttl > passed ? ttl - passed : 0);
    if (ttl < least) least = ttl;
    any = true;
  }
  return any ? least : 0;
}

static uint64_t hash_for(uint64_t upstreams, const struct question *question) {
  uint64_t seed = upstreams * 31 + question->type * 65599u + question->class;
  return hash_of(question->name, seed * 4 + question->wants_dnssec * 2 + question->checking_disabled);
}

// Whether two questions have the same answer.
bool is_same_question(const struct question *one, const struct question *other) {
  return one->type == other->type && one->class == other->class && one->has_edns == other->has_edns &&
         one->wants_dnssec == other->wants_dnssec && one->checking_disabled == other->checking_disabled &&
         strcmp(one->name, other->name) == 0;
}

bool cached(const struct box *box, const struct question *question, const uint8_t *query, uint8_t *answer,
            size_t *length) {
  uint64_t hash = hash_for(box->upstream_hash, question);
  const struct kept *kept = places[hash % PLACES];
  if (kept == NULL || kept->hash != hash || kept->until <= now_ms || kept->length > question->limit) return false;
  if (box->upstream_count == 0 || kept->upstreams != box->upstream_hash) return false;
  if (!is_same_question(&kept->question, question)) return false;
  memcpy(answer, kept->answer, kept->length);
  memcpy(answer + 12, query + 12, question->end - 12); // the name as it was asked
  put16(answer, get16(query));
  answer[2] = (uint8_t)((answer[2] & 0xfe) | (query[2] & 1));
  walk(answer, kept->length, question->end, (uint32_t)((now_ms - kept->since) / 1000));
  *length = kept->length;
  return true;
}

void keep(uint64_t upstreams, const struct question *question, const uint8_t *answer, size_t length) {
  unsigned code = answer[3] & 15;
  if ((code != 0 && code != 3) || (answer[2] & 2) != 0 || length > ANSWER_MAX) return;
  struct kept *kept = malloc(sizeof *kept + length);
  if (kept == NULL) return;
  *kept = (struct kept){.hash = hash_for(upstreams, question),
                        .since = now_ms,
                        .question = *question,
                        .upstreams = upstreams,
                        .length = length};
  memcpy(kept->answer, answer, length);
  uint32_t seconds = walk(kept->answer, length, question->end, 0);
  kept->until = now_ms + seconds * 1000ull;
  if (seconds == 0) {
    free(kept);
    return;
  }
  free(places[kept->hash % PLACES]);
  places[kept->hash % PLACES] = kept;
}

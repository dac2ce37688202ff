// Networks, their members, and the names of these: hashed, so that a network of 500 answers as one of two.
#include "resolver.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct network *networks;

uint64_t hash_of(const char *text, uint64_t seed) {
  uint64_t hash = 14695981039346656037ull ^ seed;
  for (; *text != 0; text += 1) hash = (hash ^ (uint8_t)*text) * 1099511628211ull;
  return hash;
}

struct network *find_network(const char *id) {
  for (struct network *one = networks; one != NULL; one = one->next)
    if (strcmp(one->id, id) == 0) return one;
  return NULL;
}

struct network *add_network(const char *id, const char *label) {
  struct network *network = find_network(id);
  if (network == NULL) {
    network = calloc(1, sizeof *network);
    network->id = strdup(id);
    network->bucket_count = 16;
    network->buckets = calloc(network->bucket_count, sizeof *network->buckets);
    network->next = networks;
    networks = network;
  }
  free(network->label);
  network->label = strdup(label);
  network->marked = false;
  return network;
}

static struct name **bucket_of(const struct network *network, const char *text) {
  return &network->buckets[hash_of(text, 0) % network->bucket_count];
}

static void grow(struct network *network) {
  struct name **old = network->buckets;
  size_t count = network->bucket_count;
  network->bucket_count = count * 4;
  network->buckets = calloc(network->bucket_count, sizeof *network->buckets);
  for (size_t n = 0; n < count; n += 1)
    for (struct name *one = old[n], *next; one != NULL; one = next) {
      next = one->next;
      struct name **bucket = bucket_of(network, one->text);
      one->next = *bucket;
      *bucket = one;
    }
  free(old);
}

static void add_name(struct network *network, struct member *member, char *text) {
  if (network->name_count >= network->bucket_count) grow(network);
  struct name **bucket = bucket_of(network, text);
  struct name *name = calloc(1, sizeof *name);
  name->text = text;
  name->member = member;
  name->next = *bucket;
  *bucket = name;
  network->name_count += 1;
}

// The first entry of the name's bucket: the caller looks on for those with the same text.
struct name *names_in(const struct network *network, const char *name) {
  return *bucket_of(network, name);
}

struct member *add_member(struct network *network, const char *owner, const char *ip4, const char *ip6, char **names,
                          size_t count) {
  remove_member(network, owner);
  struct member *member = calloc(1, sizeof *member);
  member->owner = strdup(owner);
  member->has4 = inet_pton(AF_INET, ip4, &member->ip4) == 1;
  member->has6 = inet_pton(AF_INET6, ip6, &member->ip6) == 1;
  member->names = calloc(count + 1, sizeof *member->names);
  for (size_t n = 0; n < count; n += 1) {
    char *text = member->names[n] = strdup(names[n]);
    for (char *at = text; *at != 0; at += 1) *at = (char)tolower((unsigned char)*at);
    add_name(network, member, text);
  }
  member->name_count = count;
  member->next = network->members;
  network->members = member;
  return member;
}

void remove_member(struct network *network, const char *owner) {
  struct member **place = &network->members;
  while (*place != NULL && strcmp((*place)->owner, owner) != 0) place = &(*place)->next;
  struct member *member = *place;
  if (member == NULL) return;
  *place = member->next;
  for (size_t n = 0; n < member->name_count; n += 1) {
    struct name **at = bucket_of(network, member->names[n]);
    while (*at != NULL && ((*at)->member != member || (*at)->text != member->names[n])) at = &(*at)->next;
    struct name *name = *at;
    if (name != NULL) {
      *at = name->next;
      free(name);
      network->name_count -= 1;
    }
    free(member->names[n]);
  }
  free(member->names);
  free(member->owner);
  free(member->line);
  free(member);
}

// The boxes of a network must be gone.
void remove_network(struct network *network) {
  while (network->members != NULL) remove_member(network, network->members->owner);
  struct network **place = &networks;
  while (*place != network) place = &(*place)->next;
  *place = network->next;
  free(network->buckets);
  free(network->label);
  free(network->line);
  free(network->id);
  free(network);
}

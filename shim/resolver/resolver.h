// gantry-resolver: the name server of containers on user networks. README.md tells how it lives and what it is told.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../loop/loop.h"

#define MESSAGE_MAX 65535
#define NAME_MAX_BYTES 256
#define UPSTREAMS_MAX 8
#define CANNOT_LISTEN 3 // exit code of a worker

struct upstream {
  struct sockaddr_storage address;
  socklen_t length;
  bool inside; // asked from within the container's namespace
};

struct link {
  char *alias, *target;
  struct link *next;
};

// A container that is served.
struct box {
  struct watch udp_watch, tcp_watch, end_watch;
  char *id, *line; // `line`: the command that made it, for the journal
  int udp, tcp, end, netns;
  size_t network_count;
  struct network **networks;
  struct link *links;
  size_t upstream_count;
  struct upstream upstreams[UPSTREAMS_MAX];
  uint64_t upstream_hash;
  unsigned connections, questions; // under way
  bool marked;
  struct box *next;
};

// A container's names and addresses in one network.
struct member {
  char *owner, *line;
  struct in_addr ip4;
  struct in6_addr ip6;
  bool has4, has6, marked;
  size_t name_count;
  char **names; // the first is the one that an address is translated to
  struct member *next;
};

struct name {
  char *text;
  struct member *member;
  struct name *next;
};

struct network {
  char *id, *label, *line;
  bool marked;
  struct member *members;
  size_t bucket_count, name_count;
  struct name **buckets;
  struct network *next;
};

struct connection;

// The client that waits for an answer.
struct client {
  struct box *box;
  struct connection *connection; // NULL: by UDP
  struct sockaddr_in address;
  uint16_t id;
  uint16_t limit; // of the answer's bytes
};

// A question, read from a message.
struct question {
  char name[NAME_MAX_BYTES]; // lower case, without the last dot
  uint16_t type, class;
  size_t end; // of the question in the message
  uint16_t limit;
  bool has_edns, wants_dnssec, checking_disabled;
};

// wire.c
bool read_question(const uint8_t *message, size_t length, struct question *question);
size_t skip_name(const uint8_t *message, size_t length, size_t at);
size_t begin_answer(uint8_t *answer, const uint8_t *query, const struct question *question, unsigned code);
size_t finish_answer(uint8_t *answer, size_t length, const struct question *question);
void add_count(uint8_t *answer);
uint16_t get16(const uint8_t *at);
uint32_t get32(const uint8_t *at);
void put16(uint8_t *at, uint16_t value);
void put32(uint8_t *at, uint32_t value);

// table.c
extern struct network *networks;
extern struct box *boxes;
struct network *find_network(const char *id);
struct network *add_network(const char *id, const char *label);
void remove_network(struct network *network);
struct member *add_member(struct network *network, const char *owner, const char *ip4, const char *ip6, char **names,
                          size_t count);
void remove_member(struct network *network, const char *owner);
struct name *names_in(const struct network *network, const char *name);
uint64_t hash_of(const char *text, uint64_t seed);

// box.c
const char *add_box(char **fields, size_t count, const char *line);
struct box *find_box(const char *id);
bool is_in_use(const struct network *network);
void remove_box(struct box *box);
int socket_for(const struct box *box, const struct upstream *upstream, int type);
uint64_t start_of(pid_t pid);

// serve.c
void serve_udp(struct watch *watch, uint32_t events);
void serve_tcp(struct watch *watch, uint32_t events);
void reply(const struct client *client, uint8_t *answer, size_t length);
void close_connections(const struct box *box);
void close_idle_connections(void);

// answer.c
bool answer_locally(const struct box *box, const struct question *question, const uint8_t *query, uint8_t *answer,
                    size_t *length);

// forward.c
void forward(const struct client *client, const struct question *question, const uint8_t *query, size_t length);
void forget_questions(const struct box *box, const struct connection *connection);
void expire_questions(void);

// cache.c
bool is_same_question(const struct question *one, const struct question *other);
bool cached(const struct box *box, const struct question *question, const uint8_t *query, uint8_t *answer,
            size_t *length);
void keep(uint64_t upstreams, const struct question *question, const uint8_t *answer, size_t length);

// commands.c
const char *change(const char *line);
bool decode(char *word);
bool is_name(const char *text);

// journal.c
void open_journal(const char *folder);
void append_journal(const char *line);
void write_journal(void);
void complete_journal(void);
void remove_journal(void);

// control.c
void open_control(const char *folder);
void close_control(void);
bool is_controlled(void);
bool can_be_found(void);
extern bool must_quit;

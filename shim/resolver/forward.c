// Questions for other servers: those of the container's settings, one after the other.
#include "resolver.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUESTIONS_MAX 8192
#define QUESTIONS_OF_A_BOX 512
#define QUERY_MAX 1500
#define QUESTION_MAX (12 + NAME_MAX_BYTES + 4)
#define ATTEMPT_MS 2000
#define ROUNDS 2
#define SHUNNED_MS 30000
#define SHUNNED_COUNT 64

#define SERVER_FAILURE 2
#define REFUSED 5

// Another client of the container with the same question: it gets the same answer.
struct waiter {
  struct client client;
  struct waiter *next;
  uint8_t query[QUESTION_MAX]; // head and question
};

// A question that is under way to a server.
struct pending {
  struct watch watch;
  struct client client;
  struct question question;
  int fd;
  unsigned attempts;
  size_t server, filled;
  uint16_t id;
  uint64_t deadline;
  bool by_tcp;
  uint8_t *received; // by TCP
  size_t length;
  uint8_t query[2 + QUERY_MAX]; // after its length, which is sent by TCP alone
  struct waiter *waiters;
  struct pending *previous, *next;
};

// In the order of their deadlines, because every attempt takes as long.
static struct pending *first, *last;
static size_t count;

// Servers that have not answered lately are asked after the others.
static struct {
  struct sockaddr_storage address;
  uint64_t until;
} shunned[SHUNNED_COUNT];

static bool is_shunned(const struct upstream *upstream) {
  for (size_t n = 0; n < SHUNNED_COUNT; n += 1)
    if (shunned[n].until > now_ms && memcmp(&shunned[n].address, &upstream->address, sizeof upstream->address) == 0)
      return true;
  return false;
}

static void shun(const struct upstream *upstream) {
  size_t place = 0;
  for (size_t n = 0; n < SHUNNED_COUNT; n += 1) {
    if (memcmp(&shunned[n].address, &upstream->address, sizeof upstream->address) == 0) {
      place = n;
      break;
    }
    if (shunned[n].until < shunned[place].until) place = n;
  }
  shunned[place].address = upstream->address;
  shunned[place].until = now_ms + SHUNNED_MS;
}

static void unlink_pending(struct pending *one) {
  *(one->previous == NULL ? &first : &one->previous->next) = one->next;
  *(one->next == NULL ? &last : &one->next->previous) = one->previous;
}

static void append_pending(struct pending *one) {
  one->deadline = now_ms + ATTEMPT_MS;
  one->previous = last;
  one->next = NULL;
  *(last == NULL ? &first : &last->next) = one;
  last = one;
}

static void drop(struct pending *one) {
  unlink_pending(one);
  if (one->fd >= 0) close(one->fd);
  for (struct waiter *waiter = one->waiters, *next; waiter != NULL; waiter = next) {
    next = waiter->next;
    one->client.box->questions -= 1;
    count -= 1;
    free(waiter);
  }
  one->client.box->questions -= 1;
  count -= 1;
  free(one->received);
  free(one);
}

static void fail(const struct client *client, const struct question *question, const uint8_t *query, unsigned code) {
  uint8_t answer[NAME_MAX_BYTES * 2 + 64];
  size_t length = begin_answer(answer, query, question, code);
  reply(client, answer, finish_answer(answer, length, question));
}

static void received(struct watch *watch, uint32_t events);

// The server of the next attempt: in the order of the list, those that did not answer lately last.
static size_t next_server(const struct box *box, unsigned attempt) {
  size_t order[UPSTREAMS_MAX], used = 0;
  for (int late = 0; late < 2; late += 1)
    for (size_t n = 0; n < box->upstream_count; n += 1)
      if (is_shunned(&box->upstreams[n]) == (late == 1)) order[used++] = n;
  return order[attempt % box->upstream_count];
}

static bool send_query(struct pending *one) {
  const struct box *box = one->client.box;
  one->server = next_server(box, one->attempts);
  const struct upstream *upstream = &box->upstreams[one->server];
  one->fd = socket_for(box, upstream, one->by_tcp ? SOCK_STREAM : SOCK_DGRAM);
  if (one->fd < 0) return false;
  // With the port it is all that prevents forged answers: the generator must not be predictable from what a server sees.
  if (getrandom(&one->id, sizeof one->id, 0) != sizeof one->id) return false;
  put16(one->query + 2, one->id);
  one->filled = 0;
  bool connected = connect(one->fd, (const struct sockaddr *)&upstream->address, upstream->length) == 0;
  if (!connected && errno != EINPROGRESS) return false;
  if (!watch_fd(&one->watch, one->fd, one->by_tcp ? EPOLLOUT : EPOLLIN, received)) return false;
  return one->by_tcp || send(one->fd, one->query + 2, one->length, 0) == (ssize_t)one->length;
}

// Asks the next server, or gives up.
static void attempt(struct pending *one) {
  for (;;) {
    if (one->fd >= 0) close(one->fd);
    one->fd = -1;
    free(one->received); // of the server before
    one->received = NULL;
    if (one->attempts >= one->client.box->upstream_count * ROUNDS) break;
    bool sent = send_query(one);
    one->attempts += 1;
    if (!sent) continue;
    unlink_pending(one);
    append_pending(one);
    return;
  }
  put16(one->query + 2, one->client.id);
  fail(&one->client, &one->question, one->query + 2, SERVER_FAILURE);
  for (const struct waiter *waiter = one->waiters; waiter != NULL; waiter = waiter->next)
    fail(&waiter->client, &one->question, waiter->query, SERVER_FAILURE);
  drop(one);
}

// Whether an answer is to the question that was sent: number, and name as it was written.
static bool fits(const struct pending *one, const uint8_t *answer, size_t length) {
  size_t end = one->question.end;
  if (length < end || get16(answer) != one->id || (answer[2] & 0x80) == 0 || get16(answer + 4) != 1) return false;
  for (size_t at = 12; at < end - 4; at += 1)
    if (tolower(answer[at]) != tolower(one->query[2 + at])) return false;
  return memcmp(answer + end - 4, one->query + 2 + end - 4, 4) == 0; // type and class
}

// Sends a server's answer to one of those who asked.
static void give(const struct client *client, const struct question *question, const uint8_t *query, uint8_t *answer,
                 size_t length) {
  uint8_t head[12];
  memcpy(head, answer, sizeof head);
  put16(answer, client->id);
  answer[2] = (uint8_t)((answer[2] & 0xfe) | (query[2] & 1));
  memcpy(answer + 12, query + 12, question->end - 12); // as the client wrote it
  if (length > client->limit) {
    answer[2] |= 2;
    memset(answer + 6, 0, 6);
    length = question->end;
  }
  reply(client, answer, length);
  memcpy(answer, head, sizeof head);
}

static void settle(struct pending *one, uint8_t *answer, size_t length) {
  unsigned code = answer[3] & 15;
  bool others = one->attempts < one->client.box->upstream_count;
  if ((code == SERVER_FAILURE || code == REFUSED) && others) {
    attempt(one);
    return;
  }
  keep(one->client.box->upstream_hash, &one->question, answer, length);
  give(&one->client, &one->question, one->query + 2, answer, length);
  for (const struct waiter *waiter = one->waiters; waiter != NULL; waiter = waiter->next)
    give(&waiter->client, &one->question, waiter->query, answer, length);
  drop(one);
}

// By TCP: sends the query as soon as it is connected, then reads.
static void received_by_tcp(struct pending *one, uint32_t events) {
  if (one->received == NULL) {
    if ((events & EPOLLOUT) == 0 ||
        send(one->fd, one->query, one->length + 2, MSG_NOSIGNAL) != (ssize_t)one->length + 2) {
      attempt(one);
      return;
    }
    one->received = malloc(MESSAGE_MAX + 2);
    watch_change(&one->watch, EPOLLIN);
    return;
  }
  ssize_t size = recv(one->fd, one->received + one->filled, MESSAGE_MAX + 2 - one->filled, 0);
  if (size < 0 && errno == EAGAIN) return;
  one->filled += size > 0 ? (size_t)size : 0;
  bool whole = one->filled >= 2 && one->filled >= (size_t)get16(one->received) + 2;
  if (whole && fits(one, one->received + 2, get16(one->received))) {
    settle(one, one->received + 2, get16(one->received));
  } else if (whole || size <= 0) {
    attempt(one);
  }
}

static void received(struct watch *watch, uint32_t events) {
  static uint8_t answer[MESSAGE_MAX];
  struct pending *one = (struct pending *)watch;
  if (one->by_tcp) {
    received_by_tcp(one, events);
    return;
  }
  ssize_t length = recv(one->fd, answer, sizeof answer, 0);
  if (length < 0 && errno == EAGAIN) return;
  if (length < 0)
    attempt(one); // no listener there
  else if (fits(one, answer, (size_t)length))
    settle(one, answer, (size_t)length);
}

// Finds an equal question of the same container that is pending by UDP.
static struct pending *under_way(const struct box *box, const struct question *question) {
  for (struct pending *one = first; one != NULL; one = one->next)
    if (one->client.box == box && !one->by_tcp && is_same_question(&one->question, question)) return one;
  return NULL;
}

// Lets a client wait for the answer to a question that is under way. Were each sent by itself, a forged answer would have to
// hit the number and the port of any of them.
static bool join(const struct client *client, const struct question *question, const uint8_t *query) {
  struct pending *one = client->connection == NULL ? under_way(client->box, question) : NULL;
  if (one == NULL || question->end > QUESTION_MAX) return false;
  struct waiter *waiter = malloc(sizeof *waiter);
  if (waiter == NULL) return false;
  waiter->client = *client;
  memcpy(waiter->query, query, question->end);
  waiter->next = one->waiters;
  one->waiters = waiter;
  client->box->questions += 1;
  count += 1;
  return true;
}

void forward(const struct client *client, const struct question *question, const uint8_t *query, size_t length) {
  struct box *box = client->box;
  bool possible = box->upstream_count > 0 && length <= QUERY_MAX;
  bool crowded = count >= QUESTIONS_MAX || box->questions >= QUESTIONS_OF_A_BOX;
  if (possible && !crowded && join(client, question, query)) return;
  struct pending *one = possible && !crowded ? calloc(1, sizeof *one) : NULL;
  if (one == NULL) {
    fail(client, question, query, crowded ? REFUSED : SERVER_FAILURE);
    return;
  }
  one->client = *client;
  one->question = *question;
  one->fd = -1;
  one->by_tcp = client->connection != NULL;
  one->length = length;
  put16(one->query, (uint16_t)length);
  memcpy(one->query + 2, query, length);
  box->questions += 1;
  count += 1;
  append_pending(one);
  attempt(one);
}

// Forgets the questions of a container that is gone, or of one connection.
void forget_questions(const struct box *box, const struct connection *connection) {
  for (struct pending *one = first, *next; one != NULL; one = next) {
    next = one->next;
    if (one->client.box == box && (connection == NULL || one->client.connection == connection)) drop(one);
  }
}

void expire_questions(void) {
  while (first != NULL && first->deadline <= now_ms) {
    struct pending *one = first;
    shun(&one->client.box->upstreams[one->server]);
    attempt(one);
  }
}

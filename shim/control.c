#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool released;

static void greet(struct client *client) {
  char text[32];
  snprintf(text, sizeof text, "ok %d %d\n", PROTOCOL_VERSION, getpid());
  client_tell(client, text);
}

// A reconnected daemon first gets the state that it missed.
void greet_control(struct client *client) {
  char text[200];
  client->kind = CONTROL;
  greet(client);
  describe_state(text, sizeof text);
  client_tell(client, text);
  if (gone) client_tell(client, "gone\n");
}

static bool has_flag(const char *line, const char *flag) {
  const char *found = strstr(line, flag);
  return found != NULL && (found[strlen(flag)] == ' ' || found[strlen(flag)] == 0);
}

static void greet_attached(struct client *client) {
  greet(client);
  client->follows = has_flag(client->line, " stream=1");
  client->takes[STDIN] = client->follows && has_flag(client->line, " stdin=1");
  client->takes[STDOUT] = has_flag(client->line, " stdout=1");
  client->takes[STDERR] = has_flag(client->line, " stderr=1");
  client_attach(client, has_flag(client->line, " logs=1"));
}

static void refuse(struct client *client, const char *answer) {
  client_tell(client, answer);
  client->dead = true;
}

// Daemons are upgraded while we run: one that offers a later version gets ours as the answer, and then speaks ours.
static void handshake(struct client *client) {
  int version = 0;
  char kind[16] = "", too_old[64];
  snprintf(too_old, sizeof too_old, "refused this shim speaks no version below %d\n", PROTOCOL_VERSION);
  if (sscanf(client->line, "GANTRY %d %15s", &version, kind) != 2)
    refuse(client, "refused this is no handshake\n");
  else if (version < PROTOCOL_VERSION)
    refuse(client, too_old);
  else if (strcmp(kind, "control") == 0)
    greet_control(client);
  else if (strcmp(kind, "attach") == 0)
    greet_attached(client);
  else
    refuse(client, "refused there is no such kind of connection\n");
}

// Answers 0 or an errno; answers come in the order of the commands.
static int command(const char *line) {
  int first, second;
  long long milliseconds;
  if (strcmp(line, "start") == 0) {
    if (phase != WAITING) return EALREADY;
    begin_start();
  } else if (sscanf(line, "signal %d", &first) == 1) {
    return signal_process(first);
  } else if (sscanf(line, "resize %d %d", &first, &second) == 2) {
    resize_terminal(first, second);
  } else if (sscanf(line, "probe %d %lld %d", &first, &milliseconds, &second) == 3) {
    return begin_probe(first, milliseconds, second);
  } else if (strcmp(line, "cancel-probe") == 0) {
    cancel_probe();
  } else if (strcmp(line, "release") == 0) {
    released = true;
  } else if (strcmp(line, "abandon") == 0) {
    return abandon() ? 0 : EBUSY;
  } else {
    return EINVAL;
  }
  return 0;
}

void handle_line(struct client *client) {
  if (client->kind == HANDSHAKE) {
    handshake(client);
    return;
  }
  char answer[32];
  snprintf(answer, sizeof answer, "done %d\n", command(client->line));
  client_tell(client, answer);
}

#define _GNU_SOURCE
#include "rootless.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANGES 32
#define WORD 16

struct range {
  unsigned long first, count;
};

// Lines are NAME:FIRST:COUNT, where NAME may also be the number of the user.
static int ranges_of(const char *path, struct range *ranges) {
  FILE *file = fopen(path, "re");
  const struct passwd *user = getpwuid(getuid());
  char line[512], number[WORD];
  int count = 0;
  snprintf(number, sizeof number, "%u", getuid());
  while (file != NULL && count < RANGES && fgets(line, sizeof line, file) != NULL) {
    char *colon = strchr(line, ':');
    if (colon == NULL) continue;
    *colon = 0;
    if (strcmp(line, number) != 0 && (user == NULL || strcmp(line, user->pw_name) != 0)) continue;
    if (sscanf(colon + 1, "%lu:%lu", &ranges[count].first, &ranges[count].count) == 2 && ranges[count].count > 0)
      count++;
  }
  if (file != NULL) fclose(file);
  const char *name = user == NULL ? number : user->pw_name;
  if (count == 0)
    refuse("%s has no ids for %s. As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", path,
           name, name);
  return count;
}

static void run(const char *program, char *const *words) {
  pid_t pid = fork();
  if (pid == 0) {
    execvp(program, words);
    if (errno == ENOENT) refuse("%s is missing. As root: apt-get install uidmap", program);
    refuse("%s: %s", program, strerror(errno));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) refuse("%s: %s", program, strerror(errno));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) refuse("%s refused the ids of this user", program);
}

// The user is root inside; the subordinate ids follow from 1 on.
static void map(const char *program, const char *path, pid_t pid, unsigned own) {
  struct range ranges[RANGES];
  char text[2 + 3 * (RANGES + 1)][WORD], *words[3 + 3 * (RANGES + 1)];
  int count = ranges_of(path, ranges), at = 0;
  unsigned long inside = 1;
  snprintf(text[at++], WORD, "%d", pid);
  snprintf(text[at++], WORD, "0");
  snprintf(text[at++], WORD, "%u", own);
  snprintf(text[at++], WORD, "1");
  for (int each = 0; each < count; each++) {
    snprintf(text[at++], WORD, "%lu", inside);
    snprintf(text[at++], WORD, "%lu", ranges[each].first);
    snprintf(text[at++], WORD, "%lu", ranges[each].count);
    inside += ranges[each].count;
  }
  words[0] = (char *)program;
  for (int each = 0; each < at; each++) words[each + 1] = text[each];
  words[at + 1] = NULL;
  run(program, words);
}

void map_ids(pid_t pid) {
  map("newuidmap", "/etc/subuid", pid, getuid());
  map("newgidmap", "/etc/subgid", pid, getgid());
}

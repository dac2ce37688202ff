// Changes of the table and of the containers that are served: lines of words, from the daemon or from the journal.
//
// Words are percent-encoded: a name contains neither a blank, a comma nor the end of a line, and cannot become a command.
#include "resolver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_MAX_BYTES 63
#define NAME_LENGTH_MAX 253
#define ID_LENGTH_MAX 128

static int digit_of(char letter) {
  static const char digits[] = "0123456789ABCDEF";
  const char *at = letter == 0 ? NULL : strchr(digits, letter);
  return at == NULL ? -1 : (int)(at - digits);
}

// Decodes `%XX` in place. False: the code is broken, or stands for a NUL.
bool decode(char *word) {
  char *to = word;
  for (const char *from = word; *from != 0; to += 1) {
    if (*from != '%') {
      *to = *from++;
      continue;
    }
    int high = digit_of(from[1]), low = high < 0 ? -1 : digit_of(from[2]);
    if (low < 0 || high + low == 0) return false;
    *to = (char)(high << 4 | low);
    from += 3;
  }
  *to = 0;
  return true;
}

// A name that a question can ask for: labels of 1 to 63 bytes, without blanks and control characters.
bool is_name(const char *text) {
  size_t label = 0;
  if (strlen(text) > NAME_LENGTH_MAX) return false;
  for (const char *at = text; *at != 0; at += 1) {
    if ((unsigned char)*at <= ' ' || *at == 0x7f) return false;
    label = *at == '.' ? 0 : label + 1;
    if (label > LABEL_MAX_BYTES || (*at == '.' && (at == text || at[-1] == '.'))) return false;
  }
  return label > 0;
}

static bool is_id(const char *text) { return *text != 0 && strlen(text) <= ID_LENGTH_MAX; }

static void remember(char **line, const char *text) {
  free(*line);
  *line = strdup(text);
}

// net ID NAME
static const char *set_network(char **words, size_t count, const char *line) {
  (void)count;
  bool has_label = strcmp(words[2], "-") != 0;
  if (!decode(words[1]) || !is_id(words[1])) return "the network has no id";
  if (has_label && (!decode(words[2]) || !is_name(words[2]))) return "the network's name is not one";
  remember(&add_network(words[1], has_label ? words[2] : "")->line, line);
  return NULL;
}

// unnet ID
static const char *forget_network(char **words, size_t count, const char *line) {
  (void)count;
  (void)line;
  struct network *network = decode(words[1]) ? find_network(words[1]) : NULL;
  if (network == NULL) return NULL;
  if (is_in_use(network)) return "a container is in it";
  remove_network(network);
  return NULL;
}

// name NETWORK OWNER IP4 IP6 NAME…
static const char *set_names(char **words, size_t count, const char *line) {
  struct network *network = decode(words[1]) ? find_network(words[1]) : NULL;
  if (network == NULL) return "no such network";
  if (!decode(words[2]) || !is_id(words[2])) return "the names have no owner";
  for (size_t n = 5; n < count; n += 1)
    if (!decode(words[n]) || !is_name(words[n])) return "not a name";
  remember(&add_member(network, words[2], words[3], words[4], words + 5, count - 5)->line, line);
  return NULL;
}

// unname NETWORK OWNER
static const char *forget_names(char **words, size_t count, const char *line) {
  (void)count;
  (void)line;
  struct network *network = decode(words[1]) ? find_network(words[1]) : NULL;
  if (network != NULL && decode(words[2])) remove_member(network, words[2]);
  return NULL;
}

// unbox ID
static const char *forget_box(char **words, size_t count, const char *line) {
  (void)count;
  (void)line;
  struct box *box = decode(words[1]) ? find_box(words[1]) : NULL;
  if (box != NULL) remove_box(box);
  return NULL;
}

static const struct {
  const char *verb;
  size_t min, max; // words
  const char *(*run)(char **words, size_t count, const char *line);
} changes[] = {
    {"net", 3, 3, set_network},     {"unnet", 2, 2, forget_network}, {"name", 6, SIZE_MAX, set_names},
    {"unname", 3, 3, forget_names}, {"box", 9, 9, add_box},          {"unbox", 2, 2, forget_box},
};

// Applies a line. Returns the reason of a refusal, which changes nothing, or NULL.
const char *change(const char *line) {
  const char *problem = "not understood";
  size_t count = 0;
  char *copy = strdup(line), *rest = NULL;
  char **words = calloc(strlen(line) / 2 + 1, sizeof *words); // each has a letter and a blank before or after it
  for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) words[count++] = word;
  for (size_t n = 0; count > 0 && n < sizeof changes / sizeof *changes; n += 1)
    if (strcmp(words[0], changes[n].verb) == 0 && count >= changes[n].min && count <= changes[n].max)
      problem = changes[n].run(words, count, line);
  free(words);
  free(copy);
  return problem;
}

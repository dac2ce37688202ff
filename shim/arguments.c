#include "shim.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

struct options options = {.log_max_files = 1, .runtime_seconds = RUNTIME_SECONDS};

enum name {
  ID = 1,
  DIRECTORY,
  RUNTIME,
  ROOT,
  SECONDS,
  EXEC,
  BASE,
  MOUNT,
  TARGET,
  MEMORY,
  SHARED,
  PLACE_SOURCE,
  PLACE_OVERLAY,
  PLACE_SUBPATH,
  PLACE_TARGET,
  PLACE_MAPPED,
  MAPPED_ROOT,
  MAPPED,
  USERNS_OF,
  GIVEN,
  LOG,
  SIZE,
  FILES,
  ATTRIBUTES,
  NUMBER,
  COMPRESS,
  CGROUP,
  HIDE,
  SCORE,
  NETNS,
  TTY,
  INPUT,
  ONCE,
  SYSTEMD
};

static const struct option names[] = {{"id", 1, 0, ID},
                                      {"directory", 1, 0, DIRECTORY},
                                      {"runtime", 1, 0, RUNTIME},
                                      {"runtime-root", 1, 0, ROOT},
                                      {"runtime-seconds", 1, 0, SECONDS},
                                      {"exec", 1, 0, EXEC},
                                      {"rootfs-base", 1, 0, BASE},
                                      {"rootfs-options", 1, 0, MOUNT},
                                      {"rootfs-target", 1, 0, TARGET},
                                      {"memory-of", 1, 0, MEMORY},
                                      {"memory-target", 1, 0, SHARED},
                                      {"place-source", 1, 0, PLACE_SOURCE},
                                      {"place-overlay", 1, 0, PLACE_OVERLAY},
                                      {"place-subpath", 1, 0, PLACE_SUBPATH},
                                      {"place-target", 1, 0, PLACE_TARGET},
                                      {"place-mapped", 0, 0, PLACE_MAPPED},
                                      {"mapped-root", 1, 0, MAPPED_ROOT},
                                      {"mapped", 1, 0, MAPPED},
                                      {"userns-of", 1, 0, USERNS_OF},
                                      {"files-target", 1, 0, GIVEN},
                                      {"log", 1, 0, LOG},
                                      {"log-max-size", 1, 0, SIZE},
                                      {"log-max-files", 1, 0, FILES},
                                      {"log-attributes", 1, 0, ATTRIBUTES},
                                      {"log-number", 1, 0, NUMBER},
                                      {"log-compress", 0, 0, COMPRESS},
                                      {"cgroup", 1, 0, CGROUP},
                                      {"exec-oom-score", 1, 0, SCORE},
                                      {"runtime-hide", 1, 0, HIDE},
                                      {"netns", 0, 0, NETNS},
                                      {"tty", 0, 0, TTY},
                                      {"stdin", 0, 0, INPUT},
                                      {"stdin-once", 0, 0, ONCE},
                                      {"systemd-cgroup", 0, 0, SYSTEMD},
                                      {0, 0, 0, 0}};

// A source begins a place; the other arguments of it follow.
static struct place *last_place(bool begins) {
  if (begins) {
    options.places = realloc(options.places, (options.place_count + 1) * sizeof *options.places);
    if (options.places == NULL) exit(2);
    options.places[options.place_count++] = (struct place){.subpath = "."};
  }
  if (options.place_count == 0) exit(2);
  return &options.places[options.place_count - 1];
}

static void take(enum name name, const char *value) {
  switch (name) {
  case ID:
    options.id = value;
    break;
  case DIRECTORY:
    options.directory = value;
    break;
  case RUNTIME:
    options.runtime = value;
    break;
  case ROOT:
    options.runtime_root = value;
    break;
  case SECONDS:
    options.runtime_seconds = atoi(value);
    break;
  case EXEC:
    options.exec_container = value;
    break;
  case BASE:
    options.rootfs_base = value;
    break;
  case MOUNT:
    options.rootfs_options = value;
    break;
  case TARGET:
    options.rootfs_target = value;
    break;
  case MEMORY:
    options.memory_of = value;
    break;
  case SHARED:
    options.memory_target = value;
    break;
  case GIVEN:
    options.files_target = value;
    break;
  case PLACE_SOURCE:
    last_place(true)->source = value;
    break;
  case PLACE_OVERLAY:
    last_place(false)->overlay = value;
    break;
  case PLACE_SUBPATH:
    last_place(false)->subpath = value;
    break;
  case PLACE_TARGET:
    last_place(false)->target = value;
    break;
  case PLACE_MAPPED:
    last_place(false)->mapped = true;
    break;
  case MAPPED_ROOT:
    options.mapped_root = value;
    break;
  case MAPPED:
    options.mapped = realloc(options.mapped, (options.mapped_count + 1) * sizeof *options.mapped);
    if (options.mapped == NULL) exit(2);
    options.mapped[options.mapped_count++] = value;
    break;
  case USERNS_OF:
    options.userns_of = value;
    break;
  case LOG:
    options.log_path = value;
    break;
  case SIZE:
    options.log_max_bytes = atoll(value);
    break;
  case FILES:
    options.log_max_files = atoi(value);
    break;
  case ATTRIBUTES:
    options.log_attributes = value;
    break;
  case NUMBER:
    options.log_number = atoll(value);
    break;
  case COMPRESS:
    options.log_compress = true;
    break;
  case CGROUP:
    options.cgroup = value;
    break;
  case HIDE:
    options.runtime_hidden = value;
    break;
  case SCORE:
    options.exec_oom_score = value;
    break;
  case NETNS:
    options.netns = true;
    break;
  case TTY:
    options.tty = true;
    break;
  case INPUT:
    options.stdin_open = true;
    break;
  case ONCE:
    options.stdin_once = true;
    break;
  case SYSTEMD:
    options.systemd_cgroup = true;
    break;
  }
}

void parse_arguments(int argc, char **argv) {
  for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
    if (name == '?') exit(2);
    take((enum name)name, optarg);
  }
  if (options.id && options.directory && options.runtime && options.runtime_root) return;
  fprintf(stderr, "gantry-shim: --id, --directory, --runtime and --runtime-root are needed\n");
  exit(2);
}

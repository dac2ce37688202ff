#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// From <linux/openat2.h>, which musl does not have.
struct how {
  uint64_t flags, mode, resolve;
};
#define RESOLVE_NO_MAGICLINKS 2
#define RESOLVE_IN_ROOT 16
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

// The kernel resolves the path in one step, as a process whose root is the folder: no link and no change of a link
// meanwhile leads out.
static int open_inside(const char *folder, const char *path) {
  AUTO_CLOSE int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;
  struct how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  for (;;) {
    int found = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    // EAGAIN: a rename meanwhile might have moved the path out of the root.
    if (found >= 0 || errno != EAGAIN) return found;
  }
}

static bool make_target(const char *target, bool is_folder) {
  if (is_folder) return mkdir(target, 0700) == 0 || errno == EEXIST;
  AUTO_CLOSE int made = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  return made >= 0;
}

static void mount_place(const struct place *place) {
  char found_at[40];
  if (place->overlay != NULL) mount_overlay_as_mapped(place->source, MS_RDONLY, place->overlay);
  AUTO_CLOSE int found = open_inside(place->source, place->subpath);
  struct stat status;
  if (found < 0 && (errno == ENOENT || errno == ENOTDIR)) fail_missing(place->subpath);
  if (found < 0 || fstat(found, &status) < 0) fail("find the subpath of a mount");
  if (!make_target(place->target, S_ISDIR(status.st_mode))) fail("make the place of a mount");
  snprintf(found_at, sizeof found_at, "/proc/self/fd/%d", found);
  if (place->mapped) {
    if (!mount_mapped(found_at, place->target)) fail("map the owners of a volume");
    return;
  }
  if (mount(found_at, place->target, NULL, MS_BIND | MS_REC, NULL) < 0) fail("mount a subpath");
}

// Parts of volumes, and images, in our own mount namespace, where the runtime finds them.
void mount_places(void) {
  if (options.place_count == 0) return;
  // Relative lower folders keep the options below the kernel's limit of one page.
  if (chdir(options.rootfs_base) < 0) fail("enter the layers");
  for (size_t i = 0; i < options.place_count; i++) mount_place(&options.places[i]);
}

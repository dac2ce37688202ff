#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// From <linux/mount.h>, which musl does not have.
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif

static void close_file(FILE **file) {
  if (*file != NULL) fclose(*file);
}

// Mount points are written with blanks and backslashes as three octal digits.
static void unescape(char *path) {
  char *to = path;
  for (const char *from = path; *from; to++) {
    if (*from == '\\' && strlen(from) >= 4) {
      *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = 0;
}

// The clone of the host's mounts includes the daemon's mounts of containers at this moment, for copies. Those of other
// containers would stay busy as long as we live. Only mounts that are private are dropped: others would be unmounted on
// the host as well. Returns whether our own root is among them: the kernel wants one mount of a writable layer, so it
// is ours as well.
static bool drop_other_roots(void) {
  bool is_mounted = false;
  char target[PATH_MAX], folder[PATH_MAX];
  if (realpath(options.rootfs_target, target) == NULL) return false;
  snprintf(folder, sizeof folder, "%s", target);
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder) return false;
    *slash = 0;
  }
  size_t length = strlen(folder);
  __attribute__((cleanup(close_file))) FILE *mounts = fopen("/proc/self/mountinfo", "re");
  char line[2 * PATH_MAX], path[PATH_MAX], optional[64];
  while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
    if (sscanf(line, "%*s %*s %*s %*s %4095s %*s %63s", path, optional) != 2) continue;
    unescape(path);
    if (strncmp(path, folder, length) != 0 || path[length] != '/' || strcmp(optional, "-") != 0) continue;
    // One of the daemon's that is not mapped is no use to a container with a map.
    if (strcmp(path, target) == 0 && options.mapped_root == NULL)
      is_mounted = true;
    else
      umount2(path, MNT_DETACH);
  }
  return is_mounted;
}

// Two mounts may show the same folder; only the mount id differs.
static int mount_id(int fd) {
  char path[40], line[64];
  int id = -1;
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  __attribute__((cleanup(close_file))) FILE *info = fopen(path, "re");
  while (info != NULL && fgets(line, sizeof line, info) != NULL && sscanf(line, "mnt_id: %d", &id) != 1) continue;
  return id;
}

// In a chroot the mount namespace has another root than we, and a process that enters the namespace of a container,
// such as an exec, would get that root: the machine's. So our root becomes the root of our own namespace. Mounts and
// unmounts here must not be visible on the host, hence no shared mounts.
static void leave_chroot(void) {
  char path[PATH_MAX];
  AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  AUTO_CLOSE int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  // Entering a namespace, even one's own, leads to its root.
  if (root < 0 || mounts < 0 || setns(mounts, CLONE_NEWNS) < 0) fail("look for the outermost root");
  AUTO_CLOSE int outermost = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (outermost < 0) fail("look at the root");
  if (mount_id(root) == mount_id(outermost)) return;
  if (fchdir(root) < 0 || getcwd(path, sizeof path) == NULL) fail("enter the root");
  // Only a mount can become the root.
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 || mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
    fail("mount the root");
  if (chdir(path) < 0 || syscall(SYS_pivot_root, ".", ".") < 0) fail("change the root");
  if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) fail("drop the outer root");
}

static bool root_is_mounted;
static int held_root = -1;

// The root file system is mounted in a mount namespace of our own: when the container and we are gone, the kernel
// drops it. The clone keeps the propagation of the host's mounts, so that shared binds work; the daemon has made its
// data folder private, so that this mount does not show on the host.
void enter_own_mounts(void) {
  if (options.rootfs_target == NULL) return;
  if (unshare(CLONE_NEWNS) < 0) fail("unshare mounts");
  leave_chroot();
  root_is_mounted = drop_other_roots();
}

void mount_root(void) {
  if (options.rootfs_target == NULL || root_is_mounted) return;
  // Relative lower folders keep the options below the kernel's limit of one page.
  if (chdir(options.rootfs_base) < 0) fail("enter the layers");
  mount_overlay_as_mapped(options.rootfs_target, 0, options.rootfs_options);
  if (options.mapped_root == NULL) return;
  held_root = (int)syscall(SYS_open_tree, AT_FDCWD, options.rootfs_target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (held_root < 0 || umount2(options.rootfs_target, MNT_DETACH) < 0) fail("hold the root");
}

// The runtime enters the root as the container's user, who may not pass through the folders of the host. So the folder
// of all containers is covered by one that has this root alone, in our namespace. It hides the layers as well.
void show_mapped_root(void) {
  char folder[PATH_MAX];
  if (held_root < 0) return;
  snprintf(folder, sizeof folder, "%s", options.rootfs_target);
  char *own = strrchr(folder, '/');
  *own = 0;
  char *all = strrchr(folder, '/');
  *all = 0;
  if (mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711,size=64k") < 0) fail("cover the layers");
  *all = '/';
  if (mkdir(folder, 0711) < 0 || chmod(folder, 0711) < 0) fail("make the folder of the root");
  *own = '/';
  if (mkdir(folder, 0711) < 0) fail("make the place of the root");
  if (syscall(SYS_move_mount, held_root, "", AT_FDCWD, folder, MOVE_MOUNT_F_EMPTY_PATH) < 0) fail("show the root");
  close(held_root);
}

// Secrets and configs are written by the daemon, through /proc, into a memory file system of our namespace: no file of
// the host ever has them, and the kernel drops them with the container and us.
void mount_files(void) {
  if (options.files_target == NULL) return;
  if (mount("tmpfs", options.files_target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711") < 0)
    fail("mount the memory of files");
}

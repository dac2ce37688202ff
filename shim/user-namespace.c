#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

// From <linux/mount.h> and <linux/nsfs.h>, which musl does not have.
struct attributes {
  uint64_t set, clear, propagation, userns_fd;
};
#define IDMAP 0x100000
#define TREE_CLONE 1
#define TREE_RECURSIVE 0x8000
#define OPEN_CLOEXEC O_CLOEXEC
#define EMPTY_PATH 0x1000
#define MOVE_FROM_EMPTY 4
#define CREATE_FILESYSTEM 6
#define GET_USER_NAMESPACE 0xb701
#define NO_FIXUP 4 // SECBIT_NO_SETUID_FIXUP
#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static bool leave_root(const char *uid, const char *gid) {
  uid_t user = (uid_t)strtoul(uid, NULL, 10);
  gid_t group = (gid_t)strtoul(gid, NULL, 10);
  return setgroups(0, NULL) == 0 && setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0;
}

static bool enter_users_of(const char *pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/ns/user", atoi(pid));
  AUTO_CLOSE int users = open(path, O_RDONLY | O_CLOEXEC);
  return users >= 0 && setns(users, CLONE_NEWUSER) == 0;
}

// `gantry-shim --make-namespaces UID GID`: makes a user namespace with a network namespace, tells the daemon, which
// writes the map and takes them, and ends with the connection. The owner is the user that the map makes root, not the
// host's root: an owner has all capabilities in it, also from a container that has no map and few capabilities.
// `--make-namespaces PID`: makes a network namespace in the user namespace of a process.
int make_namespaces(int count, char **words) {
  char byte = 0;
  bool is_new = count == 2;
  if (is_new ? !leave_root(words[0], words[1]) : !enter_users_of(words[0])) return 1;
  if (unshare((is_new ? CLONE_NEWUSER : 0) | CLONE_NEWNET) < 0) return 1;
  if (write(CONTROL_FD, &byte, 1) != 1) return 1;
  while (read(CONTROL_FD, &byte, 1) > 0) continue;
  return 0;
}

// The namespace is the owner of the container's network namespace, or that of the process whose namespaces are shared.
// The runtime finds it by its number.
void take_user_namespace(void) {
  char path[40];
  if (options.mapped_root == NULL || options.exec_container != NULL) return;
  int found;
  if (options.userns_of != NULL) {
    snprintf(path, sizeof path, "/proc/%d/ns/user", atoi(options.userns_of));
    found = open(path, O_RDONLY | O_CLOEXEC);
  } else {
    found = ioctl(NETNS_FD, GET_USER_NAMESPACE);
  }
  if (found < 0) fail("find the user namespace");
  if (found == USERNS_FD) {
    if (fcntl(found, F_SETFD, FD_CLOEXEC) < 0) fail("keep the user namespace");
    return;
  }
  if (dup3(found, USERNS_FD, O_CLOEXEC) < 0) fail("keep the user namespace");
  close(found);
}

// The tree at `source`, whose owners on the disk are ids of the container, as a mount with the ids of the host.
int open_mapped(const char *source, bool recursive) {
  unsigned flags = TREE_CLONE | OPEN_CLOEXEC | (recursive ? TREE_RECURSIVE : 0);
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, source, flags);
  if (tree < 0) return -1;
  struct attributes attributes = {.set = IDMAP, .userns_fd = USERNS_FD};
  if (syscall(SYS_mount_setattr, tree, "", EMPTY_PATH | (recursive ? TREE_RECURSIVE : 0), &attributes,
              sizeof attributes) < 0) {
    int error = errno;
    close(tree);
    errno = error;
    return -1;
  }
  return tree;
}

bool mount_mapped(const char *source, const char *target) {
  AUTO_CLOSE int tree = open_mapped(source, false);
  return tree >= 0 && syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_FROM_EMPTY) == 0;
}

// The folders of the root are mapped only while the overlay is made, which keeps copies of its own: no mount by which
// a container could reach the folders themselves is left.
void map_folders(void) {
  if (options.mapped_root == NULL) return;
  for (size_t i = 0; i < options.mapped_count; i++)
    if (!mount_mapped(options.mapped[i], options.mapped[i])) fail("map the owners of files");
}

void unmap_folders(void) {
  if (options.mapped_root == NULL) return;
  for (size_t i = options.mapped_count; i > 0; i--)
    if (umount2(options.mapped[i - 1], MNT_DETACH) < 0) fail("drop a mapped folder");
}

// The overlay works on its layers as the user who mounts it. That must be one of the map: the host's root has no id on
// a mapped layer, and the overlay would come up read-only. The capabilities stay those of the host's root, so that the
// layers' `trusted` attributes count, with which removed folders are marked.
void mount_overlay_as_mapped(const char *target, unsigned long flags, const char *text) {
  unsigned user = 0, group = 0;
  bool mapped = options.mapped_root != NULL && sscanf(options.mapped_root, "%u:%u", &user, &group) == 2;
  int bits = prctl(PR_GET_SECUREBITS);
  if (mapped) {
    if (prctl(PR_SET_SECUREBITS, bits | NO_FIXUP) < 0) fail("keep the capabilities");
    setfsgid(group);
    setfsuid(user);
  }
  int result = mount("overlay", target, "overlay", flags, text), error = errno;
  if (mapped) {
    setfsuid(0);
    setfsgid(0);
    prctl(PR_SET_SECUREBITS, bits);
  }
  errno = error;
  if (result < 0) fail("mount the root");
}

// A /dev/null of our own, on a mount that is nowhere: a runtime gives the streams to the container's user, and would
// change the owner of the host's.
int open_null(void) {
  if (options.mapped_root == NULL) return open("/dev/null", O_RDWR | O_CLOEXEC);
  AUTO_CLOSE int made = (int)syscall(SYS_fsopen, "tmpfs", 1);
  if (made < 0 || syscall(SYS_fsconfig, made, CREATE_FILESYSTEM, NULL, NULL, 0) < 0) return -1;
  AUTO_CLOSE int folder = (int)syscall(SYS_fsmount, made, 1, 0);
  if (folder < 0 || mknodat(folder, "null", S_IFCHR | 0666, makedev(1, 3)) < 0) return -1;
  if (fchmodat(folder, "null", 0666, 0) < 0) return -1;
  return openat(folder, "null", O_RDWR | O_CLOEXEC);
}

#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// From <linux/mount.h>, which musl does not have.
#define OPEN_TREE_CLONE 1
#define MOVE_MOUNT_F_EMPTY_PATH 4

// Above USERNS_FD, which the runtime reads later.
#define TREE_FD 6

// A mount of another namespace cannot be bound into ours, but a clone that was made over there can be moved. Entering
// it changes the root folder, in a chroot to another one: a child enters, and shares only its descriptors with us.
static void fetch_memory(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/mnt", options.memory_of);
  int there = open(path, O_RDONLY | O_CLOEXEC);
  if (there < 0 || setns(there, CLONE_NEWNS) < 0) _exit(1);
  close(there);
  long tree = syscall(SYS_open_tree, AT_FDCWD, "/dev/shm", OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);
  if (tree < 0 || dup2((int)tree, TREE_FD) != TREE_FD) _exit(1);
  if (tree != TREE_FD) close((int)tree);
  _exit(0);
}

// Puts the /dev/shm of a running container's process at `memory_target`, for the runtime to bind.
void borrow_memory(void) {
  if (options.memory_of == NULL) return;
  pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) fetch_memory();
  int status;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) fail("fork");
  if (status != 0) fail("find the shared memory of the other container");
  if (syscall(SYS_move_mount, TREE_FD, "", AT_FDCWD, options.memory_target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
    fail("mount the shared memory of the other container");
  syscall(SYS_close_range, TREE_FD, ~0U, 0); // and what else the child has opened
}

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Before the start the daemon still has the inherited connection, and waits for its greeting.
void fail(const char *what) {
  if (phase == WAITING) dprintf(CONTROL_FD, "refused %s: %s\n", what, strerror(errno));
  exit(1);
}

void fail_missing(const char *path) {
  if (phase == WAITING) dprintf(CONTROL_FD, "missing %s\n", path);
  exit(1);
}

static void take_descriptors(void) {
  if (options.netns)
    fcntl(NETNS_FD, F_SETFD, FD_CLOEXEC);
  else
    close(NETNS_FD);
  fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC);
  if (fcntl(CONTROL_FD, F_SETFL, O_NONBLOCK) < 0) exit(1);
  syscall(SYS_close_range, CONTROL_FD + 1, ~0U, 0); // descriptors that the daemon's parent leaked
}

static bool may_leave(void) {
  if (phase == WAITING) return !has_clients(true); // the daemon died before it said `start`
  if (!gone) return false;
  if (phase == FAILED) return true;
  return !has_clients(false) && (released || !has_clients(true));
}

int main(int argc, char **argv) {
  bool makes = argc > 2 && strcmp(argv[1], "--make-namespaces") == 0;
  if (makes) return make_namespaces(argc - 2, argv + 2);
  parse_arguments(argc, argv);
  take_descriptors();
  umask(077);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) fail("become the subreaper");
  spare_from_oom();
  take_user_namespace();
  enter_own_mounts();
  map_folders();
  mount_root();
  mount_places();
  unmap_folders();
  show_mapped_root();
  mount_files();
  borrow_memory();
  if (chdir(options.directory) < 0) fail("enter the directory");
  forget_last_run();
  if (!open_loop()) fail("epoll");
  watch_children(child_ended);
  prepare_streams();
  if (options.log_path != NULL) open_log();
  listen_for_clients();
  add_client(CONTROL_FD, true);
  for (;;) {
    settle_clients();
    update_output();
    if (may_leave()) break;
    wait_for_events();
  }
  if (!gone) stop_listening();
  return 0;
}

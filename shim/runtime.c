#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_pid = -1, delete_pid = -1;

static int open_private(const char *path) { return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }

// In the format of the runtime's own messages, because the daemon reads those.
static void complain(const char *path, int error) {
  AUTO_CLOSE int log = open_private(path);
  dprintf(log, "{\"level\":\"error\",\"msg\":\"cannot run the runtime %s: %s\"}\n", options.runtime, strerror(error));
}

// In a mount namespace of its own; mounts below a shared mount would be unmounted on the host as well.
static int hide_mount(const char *path) {
  char parent[PATH_MAX];
  snprintf(parent, sizeof parent, "%s", path);
  char *slash = strrchr(parent, '/');
  if (slash == NULL) return -1;
  *slash = 0;
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, parent, NULL, MS_PRIVATE, NULL) < 0) return -1;
  return umount2(path, MNT_DETACH);
}

// By the kernel's own call: our parent may have left signals ignored that the C library reserves.
static void default_signals(void) {
  static const struct {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
  } none;
  for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, &none, NULL, sizeof none.mask);
}

pid_t spawn_runtime(const struct runtime_call *call) {
  close(open_private(call->log)); // the runtime would create it readable for everybody
  pid_t parent = getpid(), pid = fork();
  if (pid > 0) setpgid(pid, pid); // to be killed with its helpers; by both, as either may be the first
  if (pid != 0) return pid;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL); // a container that it starts after our end would have no owner
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  default_signals();
  restore_oom_score(call->oom_score);
  umask(022); // the runtime makes files of the container
  int null = open_null();
  for (enum stream stream = STDIN; stream <= STDERR; stream++) {
    int end = call->ends[stream] >= 0 ? call->ends[stream] : null;
    if (dup2(end, (int)stream) < 0) _exit(127);
  }
  setenv("_LIBCONTAINER_STATEDIR", options.directory, 1); // crun's copy of itself, which stays when it is killed
  if (options.runtime_hidden == NULL || hide_mount(options.runtime_hidden) == 0) {
    execvp(options.runtime, (char *const *)call->arguments);
  }
  complain(call->log, errno);
  _exit(127);
}

#define GLOBAL_ARGUMENTS options.runtime, "--root", options.runtime_root, "--log", "runtime.log", "--log-format", "json"

void run_runtime(void) {
  const char *arguments[20] = {GLOBAL_ARGUMENTS};
  size_t count = 7;
  if (options.systemd_cgroup) arguments[count++] = "--systemd-cgroup";
  arguments[count++] = options.exec_container ? "exec" : "run";
  arguments[count++] = "--detach";
  arguments[count++] = "--pid-file";
  arguments[count++] = "pid";
  if (options.tty) {
    arguments[count++] = "--console-socket";
    arguments[count++] = "console.sock";
  }
  if (options.exec_container) {
    arguments[count++] = "--process";
    arguments[count++] = "process.json";
  }
  arguments[count++] = options.exec_container ? options.exec_container : options.id;
  start_pid = spawn_runtime(&(struct runtime_call){
      .arguments = arguments,
      .ends = {child_end(STDIN), child_end(STDOUT), child_end(STDERR)},
      .oom_score = options.exec_oom_score,
      .log = "runtime.log",
  });
  close_child_ends();
  if (start_pid < 0) runtime_failed("fork failed");
}

// Also without a daemon: a stopped container must not keep its cgroup.
void delete_container(void) {
  const char *const arguments[] = {GLOBAL_ARGUMENTS, "delete", "--force", options.id, NULL};
  delete_pid =
      spawn_runtime(&(struct runtime_call){.arguments = arguments, .ends = {-1, -1, -1}, .log = "runtime.log"});
  if (delete_pid < 0) runtime_deleted();
}

void kill_runtime(void) {
  if (start_pid > 0) kill(-start_pid, SIGKILL);
  if (delete_pid > 0) kill(-delete_pid, SIGKILL);
}

pid_t read_pid_file(const char *name) {
  char text[32];
  AUTO_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (length <= 0) return -1;
  text[length] = 0;
  return atoi(text);
}

static void start_ended(int status) {
  receive_console();
  pid_t pid = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? read_pid_file("pid") : -1;
  if (pid > 0) {
    runtime_started(pid);
    return;
  }
  char reason[80];
  if (WIFSIGNALED(status))
    snprintf(reason, sizeof reason, "the runtime was ended by signal %d", WTERMSIG(status));
  else
    snprintf(reason, sizeof reason, "the runtime ended with code %d", WEXITSTATUS(status));
  runtime_failed(reason);
}

bool runtime_child_ended(pid_t pid, int status) {
  if (pid == start_pid) {
    start_pid = -1;
    start_ended(status);
    return true;
  }
  if (pid != delete_pid) return false;
  delete_pid = -1;
  runtime_deleted();
  return true;
}

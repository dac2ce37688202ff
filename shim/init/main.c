// docker-init -- COMMAND [ARGUMENT]…: the first process of a container. Runs the command, forwards signals to it, reaps
// orphans, and ends with the command's exit code.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_EXECUTABLE 126
#define NOT_FOUND 127
#define BY_SIGNAL 128

// Signals of faults of this process itself, and of its terminal: these are not forwarded.
static const int own_signals[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGABRT, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU};

static void fail(const char *what) {
  perror(what);
  exit(1);
}

// A process group of its own, in the foreground of the terminal: the keys of the terminal reach the command alone.
static void run_command(char **command, const sigset_t *usual) {
  setpgid(0, 0);
  signal(SIGTTOU, SIG_IGN);
  if (tcsetpgrp(STDIN_FILENO, getpgrp()) < 0 && errno != ENOTTY && errno != ENXIO && errno != EBADF) {
    perror("docker-init: tcsetpgrp");
  }
  signal(SIGTTOU, SIG_DFL);
  sigprocmask(SIG_SETMASK, usual, NULL);
  execvp(command[0], command);
  int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
  fprintf(stderr, "docker-init: exec %s failed: %s\n", command[0], strerror(errno));
  _exit(code);
}

static int code_of(int status) { return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status); }

// Returns whether the command has ended; `code` is its exit code then.
static int reap(pid_t command, int *code) {
  int status, has_ended = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != command) continue;
    *code = code_of(status);
    has_ended = 1;
  }
  return has_ended;
}

int main(int argc, char **argv) {
  int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
  if (first >= argc) {
    fprintf(stderr, "usage: docker-init -- COMMAND [ARGUMENT]...\n");
    return 1;
  }

  sigset_t forwarded, usual;
  sigfillset(&forwarded);
  for (size_t i = 0; i < sizeof own_signals / sizeof *own_signals; i++) sigdelset(&forwarded, own_signals[i]);
  if (sigprocmask(SIG_SETMASK, &forwarded, &usual) < 0) fail("docker-init: sigprocmask");

  pid_t command = fork();
  if (command < 0) fail("docker-init: fork");
  if (command == 0) run_command(argv + first, &usual);

  for (;;) {
    int signal_number = sigwaitinfo(&forwarded, NULL);
    int code;
    if (signal_number < 0 && errno != EINTR) fail("docker-init: sigwaitinfo");
    if (signal_number > 0 && signal_number != SIGCHLD) kill(command, signal_number);
    if (signal_number == SIGCHLD && reap(command, &code)) return code;
  }
}

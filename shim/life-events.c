#define _GNU_SOURCE
#include "shim.h"

#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct watch signals;
static void (*tell_ended)(pid_t, int);
static struct {
  int64_t ms;
  void (*passed)(void);
} deadlines[DEADLINES];

int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
}

void watch_surely(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t)) {
  if (!watch_fd(watch, fd, events, ready)) fail("watch");
}

void change_surely(struct watch *watch, uint32_t events) {
  if (!watch_change(watch, events)) fail("watch");
}

static void reap(struct watch *watch, uint32_t events) {
  (void)events;
  struct signalfd_siginfo information;
  while (read(watch->fd, &information, sizeof information) > 0) continue;
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) tell_ended(pid, status);
}

// We end only with our container, not by signals for the daemon.
void watch_children(void (*ended)(pid_t pid, int status)) {
  static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
  signal(SIGCHLD, SIG_DFL); // if a parent has left it ignored, we would lose exit codes
  tell_ended = ended;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) fail("block SIGCHLD");
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) fail("signalfd");
  watch_surely(&signals, fd, EPOLLIN, reap);
}

void set_deadline(enum deadline which, int64_t milliseconds, void (*passed)(void)) {
  deadlines[which].ms = milliseconds > 0 ? steady_ms() + milliseconds : 0;
  deadlines[which].passed = passed;
}

static int milliseconds_left(void) {
  int64_t least = -1;
  for (int i = 0; i < DEADLINES; i++) {
    if (deadlines[i].ms == 0) continue;
    int64_t left = deadlines[i].ms - steady_ms();
    if (left < 0) left = 0;
    if (least < 0 || left < least) least = left;
  }
  return least > INT_MAX ? INT_MAX : (int)least;
}

void wait_for_events(void) {
  if (!wait_for_event(milliseconds_left())) fail("wait for events");
  for (int i = 0; i < DEADLINES; i++) {
    if (deadlines[i].ms == 0 || steady_ms() < deadlines[i].ms) continue;
    deadlines[i].ms = 0;
    deadlines[i].passed();
  }
}

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

// A health check: probe.json is run as a second process of the container. There is one at a time, and the last message
// about each is `probed`. Only the daemon waits for it: one whose daemon has died ends all the same.
static enum { IDLE, ENTERING, CHECKING, EMPTYING } step;
static pid_t entering = -1, process = -1, session = -1;
static int number; // the daemon's, to know it by
static bool is_cancelled, is_cut;
static int outcome; // as wait() has it
static int64_t ended_ns;
static struct watch output;
static unsigned char text[PROBE_OUTPUT];
static size_t text_length;

// Children that ended before the runtime reported which one is the check.
static struct {
  pid_t pid;
  int status;
} ended[64];
static size_t ended_count;

static void tell_end(const char *what) {
  size_t before = json_length; // entries of the log may wait there
  char head[128];
  snprintf(head, sizeof head, "probed %d %s %" PRId64 " %d ", number, what, ended_ns, is_cut);
  put(head, strlen(head));
  put_base64(text, text_length);
  PUT("\n\0");
  json_length = before;
  tell_controls((const char *)json + before);
}

static void over(const char *what) {
  set_deadline(OF_PROBE, 0, NULL);
  watch_close(&output);
  if (is_cancelled && session > 0) kill_session(session);
  step = IDLE;
  process = session = -1;
  tell_end(what);
}

static void emptied(void) {
  char what[32];
  int code = WIFSIGNALED(outcome) ? 128 + WTERMSIG(outcome) : WEXITSTATUS(outcome);
  snprintf(what, sizeof what, "exited %d", code);
  over(what);
}

// Returns whether there may be more. Bytes beyond the limit are read as well, or the check would wait for ever.
static bool read_some(void) {
  unsigned char bytes[4096];
  ssize_t length = read(output.fd, bytes, sizeof bytes);
  if (length <= 0) return length < 0 && errno == EINTR;
  size_t kept = sizeof text - text_length;
  if (kept > (size_t)length) kept = (size_t)length;
  memcpy(text + text_length, bytes, kept);
  text_length += kept;
  if (kept < (size_t)length) is_cut = true;
  return true;
}

static void output_ready(struct watch *watch, uint32_t events) {
  (void)watch;
  if (events & EPOLLIN)
    read_some();
  else
    watch_close(&output); // all have closed it
  if (step == EMPTYING && output.fd < 0) emptied();
}

static void process_is_over(int status) {
  outcome = status;
  ended_ns = now_ns();
  step = EMPTYING;
  if (is_cancelled) {
    emptied();
    return;
  }
  for (int reads = 0; reads < 64 && output.fd >= 0 && read_some(); reads++) continue;
  if (output.fd < 0)
    emptied();
  else
    set_deadline(OF_PROBE, DRAIN_SECONDS * 1000LL, emptied); // others may hold it open, and are left alone
}

static void kill_all(void) {
  is_cancelled = true;
  if (entering > 0) kill(-entering, SIGKILL);
  if (process > 0) kill(process, SIGKILL);
}

// The daemon records at once that it took too long; its end is told as well.
static void is_late(void) {
  char line[32];
  snprintf(line, sizeof line, "probe-late %d\n", number);
  tell_controls(line);
  if (process < 0) {
    kill_all();
    return;
  }
  is_cancelled = true;
  kill(process, SIGTERM);
  set_deadline(OF_PROBE, PROBE_GRACE_SECONDS * 1000LL, kill_all);
}

static bool open_output(int *theirs) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return false;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  watch_surely(&output, ends[0], EPOLLIN, output_ready);
  *theirs = ends[1];
  return true;
}

int begin_probe(int id, int64_t milliseconds, int oom_score) {
  if (phase != RUNNING) return ESRCH;
  if (step != IDLE) return EBUSY;
  AUTO_CLOSE int end = -1;
  if (!open_output(&end)) return errno;
  char score[16];
  snprintf(score, sizeof score, "%d", oom_score);
  unlink("probe.pid");
  unlink("probe.log");
  const char *const arguments[] = {
      options.runtime, "--root",     options.runtime_root, "--log",     "probe.log",  "--log-format", "json", "exec",
      "--detach",      "--pid-file", "probe.pid",          "--process", "probe.json", options.id,     NULL};
  entering = spawn_runtime(
      &(struct runtime_call){.arguments = arguments, .ends = {-1, end, end}, .oom_score = score, .log = "probe.log"});
  if (entering < 0) {
    watch_close(&output);
    return EAGAIN;
  }
  step = ENTERING;
  number = id;
  process = session = -1;
  is_cancelled = is_cut = false;
  text_length = ended_count = 0;
  set_deadline(OF_PROBE, milliseconds, is_late);
  return 0;
}

// Also at the end of the container, with which most of it ends anyway.
void cancel_probe(void) {
  if (step == ENTERING || step == CHECKING)
    kill_all();
  else if (step == EMPTYING)
    emptied();
}

// Runtimes give each process of an exec a session, by which its children are found. -1: it has none, or has ended.
static pid_t own_session(void) {
  pid_t of_check = getsid(process);
  return of_check == getsid(0) || of_check == session_of_container() ? -1 : of_check;
}

static void entered(int status) {
  entering = -1;
  process = read_pid_file("probe.pid");
  if (process <= 0) {
    ended_ns = now_ns();
    over(WIFSIGNALED(status) ? "failed killed" : "failed runtime");
    return;
  }
  step = CHECKING;
  session = own_session();
  if (status != 0) is_cancelled = true; // the runtime was killed: by us, or it has not set up everything
  for (size_t i = 0; i < ended_count; i++) {
    if (ended[i].pid != process) continue;
    process_is_over(ended[i].status);
    return;
  }
  if (is_cancelled) kill(process, SIGKILL);
}

bool probe_child_ended(pid_t pid, int status) {
  if (step == IDLE) return false;
  if (pid == entering) {
    entered(status);
    return true;
  }
  if (step == CHECKING && pid == process) {
    process_is_over(status);
    return true;
  }
  if (step != ENTERING) return false;
  if (ended_count == sizeof ended / sizeof *ended) memmove(ended, ended + 1, --ended_count * sizeof *ended);
  ended[ended_count].pid = pid;
  ended[ended_count++].status = status;
  return false;
}

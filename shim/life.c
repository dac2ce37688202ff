#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum phase phase = WAITING;
bool gone;

static pid_t process_pid = -1;
static int64_t started_ns, exit_ns;
static int exit_code, exit_signal;
static bool exit_oom, exit_told, stuck;
static char failure[160];

#define MAX_PAUSE_MS 500
static int64_t sweep_end_ms, sweep_pause_ms = 5;

// The process may end before the runtime has reported its pid.
static struct {
  pid_t pid;
  int status;
} early[16];
static size_t early_count;

// Clients still get their unread output, but another shim may use the folder now.
static void leave_directory(void) {
  stop_listening();
  gone = true;
  tell_controls("gone\n");
}

static void runtime_stuck(void) {
  stuck = true;
  kill_runtime();
}

void begin_start(void) {
  phase = STARTING;
  set_deadline(OF_LIFE, options.runtime_seconds * 1000LL, runtime_stuck);
  run_runtime();
}

// Returns false for a process that runs: that one is ended by a signal.
bool abandon(void) {
  if (phase == STARTING) kill_runtime();
  if (phase != WAITING) return phase == STARTING || phase == FAILED;
  phase = FAILED;
  leave_directory();
  return true;
}

static void remove_container(void) {
  set_deadline(OF_LIFE, options.runtime_seconds * 1000LL, kill_runtime);
  if (options.exec_container == NULL)
    delete_container();
  else
    runtime_deleted();
}

// The daemon removes what remains after this time.
static void sweep(void) {
  bool may_stay = options.exec_container != NULL && phase == EXITED; // an exec leaves its processes to the container
  if (!may_stay && !clear_remains() && steady_ms() < sweep_end_ms) {
    set_deadline(OF_LIFE, sweep_pause_ms, sweep);
    if (sweep_pause_ms < MAX_PAUSE_MS) sweep_pause_ms *= 2;
    return;
  }
  set_deadline(OF_LIFE, 0, NULL);
  if (phase == FAILED) {
    char text[200];
    snprintf(text, sizeof text, "failed %s\n", failure);
    tell_controls(text);
  }
  leave_directory();
}

// Reported when everything is removed, because a new start of the same container needs the same names.
void runtime_failed(const char *reason) {
  phase = FAILED;
  if (stuck)
    snprintf(failure, sizeof failure, "the runtime did not answer within %d seconds", options.runtime_seconds);
  else
    snprintf(failure, sizeof failure, "%s", reason);
  close_streams();
  remove_container();
}

void runtime_deleted(void) {
  sweep_end_ms = steady_ms() + options.runtime_seconds * 1000LL;
  sweep();
}

static void process_ended(int status) {
  cancel_probe();
  exit_ns = now_ns();
  exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit_code = exit_signal > 0 ? 128 + exit_signal : WEXITSTATUS(status);
  phase = DRAINING;
  set_deadline(OF_LIFE, DRAIN_SECONDS * 1000LL, output_ended);
  drain_output();
}

void runtime_started(pid_t pid) {
  set_deadline(OF_LIFE, 0, NULL);
  phase = RUNNING;
  process_pid = pid;
  started_ns = now_ns();
  char text[96];
  describe_state(text, sizeof text);
  tell_controls(text);
  watch_oom();
  for (size_t i = 0; i < early_count; i++)
    if (early[i].pid == pid) process_ended(early[i].status);
}

// On a full disk it cannot be written: we then stay, as its only holder, until there is room or a daemon has recorded
// it.
static void keep_status(void) {
  char text[96];
  describe_state(text, sizeof text);
  bool kept = write_status(text);
  if (!exit_told) tell_controls(text);
  exit_told = true;
  if (kept || released)
    remove_container();
  else
    set_deadline(OF_LIFE, MAX_PAUSE_MS, keep_status);
}

// All output is read before the exit is reported, so that a stream's end, the log and the status agree.
void output_ended(void) {
  if (phase != DRAINING) return;
  log_finish();
  exit_oom = was_oom_killed();
  phase = EXITED;
  close_streams();
  keep_status();
}

void child_ended(pid_t pid, int status) {
  if (runtime_child_ended(pid, status) || probe_child_ended(pid, status) || compressor_ended(pid, status)) return;
  if (pid == process_pid && phase == RUNNING) {
    process_ended(status);
  } else if (phase == STARTING && early_count < sizeof early / sizeof *early) {
    early[early_count].pid = pid;
    early[early_count++].status = status;
  }
}

pid_t session_of_container(void) { return getsid(process_pid); }

// We are the parent, so the pid cannot have been given to another process. Returns 0 or an errno.
int signal_process(int number) {
  if (phase != RUNNING) return ESRCH;
  return kill(process_pid, number) < 0 ? errno : 0;
}

void describe_state(char *text, size_t size) {
  switch (phase) {
  case WAITING:
    snprintf(text, size, "waiting\n");
    break;
  case STARTING:
    snprintf(text, size, "starting\n");
    break;
  case RUNNING:
  case DRAINING:
    snprintf(text, size, "started %d %" PRId64 "\n", process_pid, started_ns);
    break;
  case EXITED:
    snprintf(text, size, "exited %d %d %d %" PRId64 "\n", exit_code, exit_signal, exit_oom, exit_ns);
    break;
  case FAILED:
    snprintf(text, size, gone ? "failed %s\n" : "starting\n", failure);
    break;
  }
}

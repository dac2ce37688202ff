#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options options;
enum phase phase = WAITING;
int epoll_fd = -1;

static char signal_tag;
static char output_tags[3];
static int64_t exit_ns, quiet_since_ns;
static int exit_status, exit_code, exit_signal;
static bool exit_oom;

/* A daemon that dies between spawning us and saying `start` must not leave us behind. */
#define CONTACT_SECONDS 30
/* After the exit another process may hold the output open: it is waited for as long as it writes. */
#define QUIET_NS 300000000LL

void fail(const char *what)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
    exit(1);
}

void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
}

void watch(int fd, uint32_t events, void *tag)
{
    struct epoll_event event = {.events = events, .data.ptr = tag};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll add");
}

void rewatch(int fd, uint32_t events, void *tag)
{
    struct epoll_event event = {.events = events, .data.ptr = tag};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void unwatch(int fd)
{
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void parse(int argc, char **argv)
{
    enum { ID = 1, DIRECTORY, RUNTIME, RUNTIME_ROOT, EXEC, BASE, MOUNT, TARGET, LOG, SIZE, FILES, CGROUP, TTY, IN, ONCE };
    static const struct option names[] = {
        {"id", 1, 0, ID}, {"directory", 1, 0, DIRECTORY}, {"runtime", 1, 0, RUNTIME},
        {"runtime-root", 1, 0, RUNTIME_ROOT}, {"exec", 1, 0, EXEC}, {"rootfs-base", 1, 0, BASE},
        {"rootfs-options", 1, 0, MOUNT}, {"rootfs-target", 1, 0, TARGET}, {"log", 1, 0, LOG},
        {"log-max-size", 1, 0, SIZE}, {"log-max-files", 1, 0, FILES}, {"cgroup", 1, 0, CGROUP},
        {"tty", 0, 0, TTY}, {"stdin", 0, 0, IN}, {"stdin-once", 0, 0, ONCE}, {0, 0, 0, 0}};
    options.log_max_files = 1;
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (name) {
        case ID: options.id = optarg; break;
        case DIRECTORY: options.directory = optarg; break;
        case RUNTIME: options.runtime = optarg; break;
        case RUNTIME_ROOT: options.runtime_root = optarg; break;
        case EXEC: options.exec_container = optarg; break;
        case BASE: options.rootfs_base = optarg; break;
        case MOUNT: options.rootfs_options = optarg; break;
        case TARGET: options.rootfs_target = optarg; break;
        case LOG: options.log_path = optarg; break;
        case SIZE: options.log_max_bytes = atoll(optarg); break;
        case FILES: options.log_max_files = atoi(optarg); break;
        case CGROUP: options.cgroup = optarg; break;
        case TTY: options.tty = true; break;
        case IN: options.stdin_open = true; break;
        case ONCE: options.stdin_once = true; break;
        default: exit(2);
        }
    }
    if (!options.id || !options.directory || !options.runtime || !options.runtime_root) {
        dprintf(STDERR_FILENO, "gantry-shim: --id, --directory, --runtime and --runtime-root are needed\n");
        exit(2);
    }
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) fail("block SIGCHLD");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) fail("signalfd");
    return fd;
}

static void reap(int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) > 0) continue;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) child_ended(pid, status);
}

void init_ended(int status)
{
    exit_ns = quiet_since_ns = now_ns();
    exit_status = status;
    phase = DRAINING;
}

void describe_exit(char *text, size_t size)
{
    snprintf(text, size, "exited %d %d %d %lld\n", exit_code, exit_signal, exit_oom, (long long)exit_ns);
}

static bool read_output(enum stream stream)
{
    static unsigned char bytes[CHUNK];
    ssize_t length = read(output_fds[stream], bytes, sizeof bytes);
    if (length > 0) {
        quiet_since_ns = now_ns();
        send_output(stream, bytes, (size_t)length);
        return true;
    }
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    /* The end; a terminal whose last process is gone says EIO. Before the start nobody has opened it yet. */
    unwatch(output_fds[stream]);
    close_fd(&output_fds[stream]);
    return false;
}

static void finish(void)
{
    log_finish();
    exit_signal = WIFSIGNALED(exit_status) ? WTERMSIG(exit_status) : 0;
    exit_code = exit_signal > 0 ? 128 + exit_signal : WEXITSTATUS(exit_status);
    exit_oom = was_oom_killed();
    phase = EXITED;
    close_streams();
    write_status(exit_code, exit_signal, exit_oom, exit_ns);
    char text[96];
    describe_exit(text, sizeof text);
    tell_controls("%s", text);
    if (options.exec_container == NULL) delete_container();
}

/* Everything that has come is read before the exit is told: a stream's end, the log and the status must agree. */
static void drain(void)
{
    bool more = false;
    for (enum stream stream = STDOUT; stream <= STDERR; stream++) {
        while (output_fds[stream] >= 0 && clients_have_room() && read_output(stream)) continue;
        more = more || output_fds[stream] >= 0;
    }
    if (!clients_have_room()) return;
    if (!more || now_ns() - quiet_since_ns > QUIET_NS) finish();
}

static void wait_for_events(int signal_fd, int timeout_ms)
{
    struct epoll_event events[32];
    int count = epoll_wait(epoll_fd, events, 32, timeout_ms);
    for (int i = 0; i < count; i++) {
        void *tag = events[i].data.ptr;
        if (tag == &signal_tag) reap(signal_fd);
        else if (tag == &listener_tag) accept_client();
        else if (tag == &console_tag) accept_console();
        else if (tag == &oom_tag) oom_event();
        else if (tag == &output_tags[0]) flush_stdin();
        else if (tag == &output_tags[STDOUT] || tag == &output_tags[STDERR]) {
            enum stream stream = tag == &output_tags[STDOUT] ? STDOUT : STDERR;
            if (output_fds[stream] >= 0 && phase == RUNNING && clients_have_room()) read_output(stream);
        } else {
            struct client *client = tag;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) client_readable(client, events[i].events);
            if (events[i].events & EPOLLOUT && !client->dead) client_writable(client);
        }
    }
}

void *output_tag(enum stream stream)
{
    return &output_tags[stream];
}

void *stdin_tag(void)
{
    return &output_tags[0];
}

static bool may_leave(void)
{
    if (phase == WAITING) return false;
    if (phase == FAILED) return count_clients(CONTROL) == 0;
    if (phase != EXITED || count_clients(ATTACHED) > 0) return false;
    return released || count_clients(CONTROL) == 0;
}

/* For a daemon that comes back: the network namespace is found through our descriptor. */
static void write_pid(void)
{
    AUTO_CLOSE int fd = open("shim.pid", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "%d\n", getpid()) < 0) fail("write the pid");
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) fail("epoll");
    int signal_fd = open_signals();
    watch(signal_fd, EPOLLIN, &signal_tag);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    umask(022);
    enter_own_mounts();
    if (chdir(options.directory) < 0) fail("enter the directory");
    if (options.log_path != NULL) open_log();
    prepare_streams();
    write_pid();
    listen_for_clients();
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) fail("report readiness");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);

    int64_t contact_until = now_ns() + CONTACT_SECONDS * 1000000000LL;
    bool contacted = false;
    for (;;) {
        update_interests();
        int timeout = phase == DRAINING ? 50 : phase == WAITING && !contacted ? 1000 : -1;
        wait_for_events(signal_fd, timeout);
        sweep_clients();
        if (phase == DRAINING) drain();
        sweep_clients();
        contacted = contacted || count_clients(CONTROL) > 0;
        if (phase == WAITING && count_clients(CONTROL) == 0 && (contacted || now_ns() > contact_until)) break;
        if (may_leave() && !runtime_busy) break;
    }
    unlink("shim.sock");
    return 0;
}

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t init_pid = -1;
int output_fds[3] = {-1, -1, -1};
int64_t started_ns;
char console_tag;
bool runtime_busy, deleted;

static int child_ends[3] = {-1, -1, -1}; /* what the container gets as 0, 1, 2 */
static int stdin_fd = -1, console_listener = -1;
static pid_t runtime_pid = -1, delete_pid = -1;
static struct winsize size;
static bool size_known;

static unsigned char *pending; /* stdin that the container has not taken yet */
static size_t pending_start, pending_length;
static bool stdin_ending, stdin_watched;

/* The init may end before the runtime has told us which pid it is. */
static struct { pid_t pid; int status; } early[16];
static size_t early_count;

static void make_pipe(int *ours, int *theirs, bool we_read)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) fail("pipe");
    *ours = ends[we_read ? 0 : 1];
    *theirs = ends[we_read ? 1 : 0];
    if (fcntl(*ours, F_SETFL, O_NONBLOCK) < 0) fail("make the pipe non-blocking");
}

static void listen_for_console(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "console.sock"};
    unlink(address.sun_path);
    console_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (console_listener < 0 || bind(console_listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(console_listener, 1) < 0)
        fail("listen for the terminal");
    watch(console_listener, EPOLLIN, &console_tag);
}

void prepare_streams(void)
{
    child_ends[0] = child_ends[1] = child_ends[2] = -1;
    if (options.tty) {
        listen_for_console();
        return;
    }
    if (options.stdin_open) make_pipe(&stdin_fd, &child_ends[0], false);
    make_pipe(&output_fds[STDOUT], &child_ends[1], true);
    make_pipe(&output_fds[STDERR], &child_ends[2], true);
}

static void watch_output(enum stream stream)
{
    watch(output_fds[stream], EPOLLIN, output_tag(stream));
}

static pid_t spawn_runtime(const char *const *arguments, bool with_streams)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) {
        int end = with_streams && child_ends[fd] >= 0 ? child_ends[fd] : null;
        if (dup2(end, fd) < 0) _exit(127);
    }
    execvp(options.runtime, (char *const *)arguments);
    _exit(127);
}

void start_runtime(void)
{
    const char *arguments[24];
    size_t count = 0;
    const char *const common[] = {options.runtime, "--root", options.runtime_root, "--log", "runtime.log", "--log-format", "json"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) arguments[count++] = common[i];
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
        arguments[count++] = options.exec_container;
    } else {
        arguments[count++] = options.id;
    }
    arguments[count] = NULL;
    phase = STARTING;
    runtime_busy = true;
    started_ns = now_ns();
    runtime_pid = spawn_runtime(arguments, true);
    if (runtime_pid < 0) fail("fork");
    for (int fd = 0; fd < 3; fd++) close_fd(&child_ends[fd]);
}

/* Also without a daemon: a stopped container must not keep its cgroup. */
void delete_container(void)
{
    const char *const arguments[] = {options.runtime, "--root", options.runtime_root, "--log", "runtime.log",
                                     "--log-format", "json", "delete", "--force", options.id, NULL};
    delete_pid = spawn_runtime(arguments, false);
    runtime_busy = delete_pid > 0;
}

static pid_t read_pid_file(void)
{
    char text[32];
    AUTO_CLOSE int fd = open("pid", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0) return -1;
    text[length] = 0;
    return atoi(text);
}

static void start_failed(int status)
{
    phase = FAILED;
    close_streams();
    tell_controls("failed %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (options.exec_container == NULL) delete_container();
}

static void started(void)
{
    phase = RUNNING;
    watch_oom();
    for (enum stream stream = STDOUT; stream <= STDERR; stream++)
        if (output_fds[stream] >= 0) watch_output(stream);
    tell_controls("started %d %" PRId64 "\n", init_pid, started_ns);
    for (size_t i = 0; i < early_count; i++)
        if (early[i].pid == init_pid) init_ended(early[i].status);
}

static void runtime_ended(int status)
{
    runtime_pid = -1;
    runtime_busy = false;
    if (console_listener >= 0) accept_console();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || phase == FAILED || (init_pid = read_pid_file()) <= 0) {
        start_failed(status);
        return;
    }
    started();
}

void child_ended(pid_t pid, int status)
{
    if (pid == runtime_pid) {
        runtime_ended(status);
    } else if (pid == delete_pid) {
        delete_pid = -1;
        runtime_busy = false;
        deleted = true;
        tell_controls("gone\n");
    } else if (pid == init_pid && phase == RUNNING) {
        init_ended(status);
    } else if (phase == STARTING && early_count < sizeof early / sizeof *early) {
        early[early_count].pid = pid;
        early[early_count++].status = status;
    }
}

void cancel_runtime(void)
{
    if (phase == WAITING) phase = FAILED;
    if (runtime_pid > 0) kill(runtime_pid, SIGKILL);
}

static int receive_descriptor(int connection)
{
    char byte[256], control[CMSG_SPACE(sizeof(int))];
    struct iovec vector = {byte, sizeof byte};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) < 0) return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_type != SCM_RIGHTS) return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

void accept_console(void)
{
    AUTO_CLOSE int connection = accept4(console_listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0) return;
    int master = receive_descriptor(connection);
    if (master < 0) return;
    fcntl(master, F_SETFL, O_NONBLOCK);
    output_fds[STDOUT] = master;
    if (options.stdin_open) stdin_fd = fcntl(master, F_DUPFD_CLOEXEC, 0);
    if (size_known) ioctl(master, TIOCSWINSZ, &size);
    unwatch(console_listener);
    close_fd(&console_listener);
    unlink("console.sock");
    flush_stdin();
}

/* We are the parent, so the pid cannot have been given to another process. Returns 0 or an errno. */
int signal_init(int number)
{
    if (phase != RUNNING) return ESRCH;
    return kill(init_pid, number) < 0 ? errno : 0;
}

/* A size that comes before the terminal is there waits for it. */
void resize_terminal(int width, int height)
{
    size = (struct winsize){.ws_col = (unsigned short)width, .ws_row = (unsigned short)height};
    size_known = true;
    if (options.tty && output_fds[STDOUT] >= 0) ioctl(output_fds[STDOUT], TIOCSWINSZ, &size);
}

static void close_stdin(void)
{
    if (stdin_watched) unwatch(stdin_fd);
    stdin_watched = false;
    close_fd(&stdin_fd);
    pending_length = 0;
    options.stdin_open = false;
}

bool stdin_has_room(void)
{
    return pending_length == 0;
}

/* What the container does not take at once is kept; no more is read from clients until it is gone. */
void feed_stdin(const unsigned char *bytes, size_t length)
{
    if (!options.stdin_open || length > CHUNK) return;
    if (pending == NULL && (pending = malloc(CHUNK)) == NULL) fail("memory");
    memcpy(pending, bytes, length);
    pending_start = 0;
    pending_length = length;
    flush_stdin();
}

void flush_stdin(void)
{
    if (stdin_fd < 0) return;
    while (pending_length > 0) {
        ssize_t written = write(stdin_fd, pending + pending_start, pending_length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) {
            if (!stdin_watched) watch(stdin_fd, EPOLLOUT, stdin_tag());
            stdin_watched = true;
            return;
        }
        if (written < 0) { /* nobody reads it any more */
            close_stdin();
            return;
        }
        pending_start += (size_t)written;
        pending_length -= (size_t)written;
    }
    if (stdin_watched) unwatch(stdin_fd);
    stdin_watched = false;
    if (stdin_ending) close_stdin();
}

/* A terminal has no end of input of its own: it stays open. */
void end_stdin(void)
{
    if (options.tty) return;
    stdin_ending = true;
    flush_stdin();
}

void close_streams(void)
{
    close_stdin();
    for (enum stream stream = STDOUT; stream <= STDERR; stream++) close_fd(&output_fds[stream]);
    for (int fd = 0; fd < 3; fd++) close_fd(&child_ends[fd]);
    close_fd(&console_listener);
}

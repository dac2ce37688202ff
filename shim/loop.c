#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int epoll_fd = -1;
static struct watch signals;
static void (*tell_ended)(pid_t, int);
static struct { int64_t ms; void (*passed)(void); } deadlines[DEADLINES];

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Deadlines must not change with the wall clock. */
int64_t steady_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t steady_ms(void)
{
    return steady_ns() / 1000000;
}

void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void open_loop(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) fail("epoll");
}

void watch_fd(struct watch *watch, int fd, uint32_t events, void (*ready)(struct watch *, uint32_t))
{
    *watch = (struct watch){.fd = fd, .ready = ready};
    watch_change(watch, events);
}

void watch_change(struct watch *watch, uint32_t events)
{
    if (watch->registered && watch->events == events) return;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(epoll_fd, watch->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd, &event) < 0) fail("watch");
    watch->registered = true;
    watch->events = events;
}

void watch_pause(struct watch *watch)
{
    if (watch->registered) epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->registered = false;
}

void watch_close(struct watch *watch)
{
    if (watch->ready == NULL) return; /* it was never opened */
    watch_pause(watch);
    close_fd(&watch->fd);
}

static void reap(struct watch *watch, uint32_t events)
{
    (void)events;
    struct signalfd_siginfo information;
    while (read(watch->fd, &information, sizeof information) > 0) continue;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) tell_ended(pid, status);
}

/* We end only with our container, not by signals for the daemon. */
void watch_children(void (*ended)(pid_t pid, int status))
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* if a parent has left it ignored, we would lose exit codes */
    tell_ended = ended;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) fail("block SIGCHLD");
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) fail("signalfd");
    watch_fd(&signals, fd, EPOLLIN, reap);
}

void set_deadline(enum deadline which, int64_t milliseconds, void (*passed)(void))
{
    deadlines[which].ms = milliseconds > 0 ? steady_ms() + milliseconds : 0;
    deadlines[which].passed = passed;
}

static int milliseconds_left(void)
{
    int64_t least = -1;
    for (int i = 0; i < DEADLINES; i++) {
        if (deadlines[i].ms == 0) continue;
        int64_t left = deadlines[i].ms - steady_ms();
        if (left < 0) left = 0;
        if (least < 0 || left < least) least = left;
    }
    return least > INT_MAX ? INT_MAX : (int)least;
}

void wait_for_events(void)
{
    struct epoll_event events[16];
    int count = epoll_wait(epoll_fd, events, 16, milliseconds_left());
    if (count < 0 && errno != EINTR) fail("wait for events");
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        /* An earlier one of this round may have closed or paused it. */
        if (watch->registered) watch->ready(watch, events[i].events);
    }
    for (int i = 0; i < DEADLINES; i++) {
        if (deadlines[i].ms == 0 || steady_ms() < deadlines[i].ms) continue;
        deadlines[i].ms = 0;
        deadlines[i].passed();
    }
}

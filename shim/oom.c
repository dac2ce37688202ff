#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

char oom_tag;
static int oom_fd = -1;
static long kills_seen;

/* The kernel's own count of processes that it killed in this cgroup; v1 and v2 name the line alike. */
static long kills(void)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory%s/memory.oom_control", "/sys/fs/cgroup%s/memory.events"};
    for (size_t i = 0; i < 2 && options.cgroup != NULL; i++) {
        char path[PATH_MAX], text[512];
        snprintf(path, sizeof path, files[i], options.cgroup);
        AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        ssize_t length = read(fd, text, sizeof text - 1);
        if (length <= 0) continue;
        text[length] = 0;
        const char *line = strstr(text, "oom_kill ");
        long count = 0;
        if (line != NULL && sscanf(line, "oom_kill %ld", &count) == 1) return count;
    }
    return 0;
}

static bool watch_v1(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.oom_control", options.cgroup);
    AUTO_CLOSE int control = open(path, O_RDONLY | O_CLOEXEC);
    if (control < 0) return false;
    snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/cgroup.event_control", options.cgroup);
    AUTO_CLOSE int registration = open(path, O_WRONLY | O_CLOEXEC);
    if (registration < 0) return false;
    oom_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return oom_fd >= 0 && dprintf(registration, "%d %d", oom_fd, control) > 0;
}

static bool watch_v2(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", options.cgroup);
    if (access(path, R_OK) < 0) return false;
    oom_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return oom_fd >= 0 && inotify_add_watch(oom_fd, path, IN_MODIFY) >= 0;
}

void watch_oom(void)
{
    if (options.cgroup == NULL || !(watch_v1() || watch_v2())) return;
    watch(oom_fd, EPOLLIN, &oom_tag);
}

/* v1 also signals when the cgroup is removed: only a new kill counts. */
void oom_event(void)
{
    char bytes[4096];
    while (read(oom_fd, bytes, sizeof bytes) > 0) continue;
    long count = kills();
    if (count > kills_seen) tell_controls("oom\n");
    kills_seen = count > kills_seen ? count : kills_seen;
}

/* An out-of-memory kill may be quicker than our registration: the count is asked once more at the end. */
bool was_oom_killed(void)
{
    return kills_seen > 0 || kills() > 0;
}

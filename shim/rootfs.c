#define _GNU_SOURCE
#include "shim.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void close_file(FILE **file)
{
    if (*file != NULL) fclose(*file);
}

/* Mount points are written with blanks and backslashes as three octal digits. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        if (*from == '\\' && strlen(from) >= 4) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = 0;
}

/*
 * The clone of the host's mounts holds what the daemon had mounted of other containers at this moment, such as the
 * root of a stopped one that somebody copies from. It would stay busy as long as we live. Only mounts that are private
 * are dropped: others would be unmounted on the host as well.
 */
static void drop_other_roots(void)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", options.rootfs_target);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash == folder) return;
        *slash = 0;
    }
    size_t length = strlen(folder);
    __attribute__((cleanup(close_file))) FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_MAX], path[PATH_MAX], optional[64];
    while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
        if (sscanf(line, "%*s %*s %*s %*s %4095s %*s %63s", path, optional) != 2) continue;
        unescape(path);
        if (strncmp(path, folder, length) != 0 || path[length] != '/' || strcmp(optional, "-") != 0) continue;
        umount2(path, MNT_DETACH);
    }
}

/*
 * The root file system is mounted in a mount namespace of our own: when the container and we are gone, the kernel
 * drops it. The clone keeps the propagation of the host's mounts, so that shared binds work; the daemon has made its
 * data folder private, so that this mount does not show on the host.
 */
void enter_own_mounts(void)
{
    if (options.rootfs_target == NULL) return;
    if (unshare(CLONE_NEWNS) < 0) fail("unshare mounts");
    drop_other_roots();
    /* Relative lower folders keep the options below the kernel's limit of one page. */
    if (chdir(options.rootfs_base) < 0) fail("enter the layers");
    if (mount("overlay", options.rootfs_target, "overlay", 0, options.rootfs_options) < 0) fail("mount the root");
}

#define _GNU_SOURCE
#include "shim.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

/*
 * The root file system is mounted in a mount namespace of our own: when the container and we are gone, the kernel
 * drops it. The clone keeps the propagation of the host's mounts, so that shared binds work; the daemon has made its
 * data folder private, so that this mount does not show on the host.
 */
void enter_own_mounts(void)
{
    if (options.rootfs_target == NULL) return;
    if (unshare(CLONE_NEWNS) < 0) fail("unshare mounts");
    /* Relative lower directories keep the options below the kernel's limit of one page. */
    if (chdir(options.rootfs_base) < 0) fail("enter the layers");
    if (mount("overlay", options.rootfs_target, "overlay", 0, options.rootfs_options) < 0) fail("mount the root");
}

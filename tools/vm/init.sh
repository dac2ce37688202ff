#!/bin/busybox sh
# First process of the machine: the drivers of its disks, then the real root. In a probe it only says that it lives.
mount -t devtmpfs dev /dev
mount -t proc proc /proc
case "$(cat /proc/cmdline)" in
  *gantry.probe*)
    echo '@@gantry alive' >/dev/ttyS0
    poweroff -f
    ;;
esac
for module in /modules/*; do insmod "$module"; done
until [ -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /root && mount --move /dev /root/dev && umount /proc && exec switch_root /root /sbin/init
poweroff -f

#!/bin/sh
# Runs in the machine: makes it ready, then the job, then tells its end, which the host waits for.
set -u
cd /gantry || exit 1
stty -F /dev/ttyS0 -onlcr
mount /dev/vdb /mnt
for folder in node_modules .node; do
  mkdir -p $folder
  mount --bind /mnt/$folder $folder
done
fallocate -l 256M /swapfile && chmod 600 /swapfile && mkswap -q /swapfile && swapon /swapfile
systemctl unmask --quiet containerd.service
systemctl start --no-block containerd.service
GANTRY_CONTAINERD=/run/containerd/containerd.sock
PATH="$(echo "$PWD"/.node/node_modules/node-linux-*/bin):$PATH"
NODE_COMPILE_CACHE=$PWD/.node/compile-cache
export GANTRY_CONTAINERD PATH NODE_COMPILE_CACHE

# Made by the host, where it takes seconds; its folder is named after Node.
cache=$(node -p 'require("node:module").getCompileCacheDir()')
mkdir -p "$cache"
mv compile-cache/*/* "$cache"

echo '@@gantry "begins"'
. /etc/os-release
echo "$PRETTY_NAME, kernel $(uname -r), systemd $(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p'), $(runc --version | head -n 1), $(crun --version | head -n 1)"
status=0
NO_COLOR=1 node tools/vm/guest.ts || status=$?
echo "@@gantry {\"ends\":$status}"

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

# Fills Node's compile cache. Without it each daemon takes the types out of its files anew, by WebAssembly, in which
# Node 26 now and then aborts on a slow machine (Runtime_WasmTriggerTierUp: "it->second.Size() > offset").
warm_up() {
  mkdir -p /tmp/warm
  node -- engine/main.ts --data-root=/tmp/warm/data --exec-root=/tmp/warm/exec --pidfile=/tmp/warm/pid \
    --host=unix:///tmp/warm/sock >/tmp/warm/log 2>&1 </dev/null &
  while kill -0 $! 2>/dev/null && ! grep -q '"msg":"ready"' /tmp/warm/log; do sleep 0.5; done
  kill -TERM $! 2>/dev/null
  wait $!
}
warm_up || warm_up || warm_up
rm -rf /tmp/warm

echo '@@gantry "begins"'
. /etc/os-release
echo "$PRETTY_NAME, kernel $(uname -r), systemd $(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p'), $(runc --version | head -n 1), $(crun --version | head -n 1)"
status=0
NO_COLOR=1 node tools/vm/guest.ts || status=$?
echo "@@gantry {\"ends\":$status}"

import type { Row } from './run-flags.ts';

/** A command line of a flag that version 1.24 has not; `since`: the version from which the command line takes it. */
export type NewerFlag = Row & Readonly<{ since: `1.${number}` }>;

type Since = NewerFlag['since'];

const split = (flags: string): string[] => flags.split(' ').filter((word) => word !== '');

const run =
  (since: Since) =>
  (flags: string, script = 'true', chosen?: Row['chosen']): NewerFlag => ({
    since,
    command: 'run',
    flags: split(flags),
    words: ['busybox', 'sh', '-c', script],
    chosen,
  });

const made =
  (since: Since) =>
  (flags: string, chosen?: Row['chosen']): NewerFlag => ({
    since,
    command: 'create',
    flags: split(flags),
    words: ['busybox', 'true'],
    chosen,
  });

const [run25, made25, run40, made40, run41, made41] = [
  run('1.25'),
  made('1.25'),
  run('1.40'),
  made('1.40'),
  run('1.41'),
  made('1.41'),
];
const [run44, made44, run45, made45, run48, made48] = [
  run('1.44'),
  made('1.44'),
  run('1.45'),
  made('1.45'),
  run('1.48'),
  made('1.48'),
];

const chosen = (why: string, ...places: string[]): Row['chosen'] => ({ places, why });
const early = chosen('refused at the creation', 'code', 'stdout', 'stderr', 'inspect');
const inWords = chosen('another text for the same', 'stderr', 'State');
const noLabels = chosen('there is no SELinux to disable', 'HostConfig.SecurityOpt');
const imagePath = chosen(
  'the place of its files is not told, nor that it were an experiment',
  'stderr',
  'Mounts',
  'State',
);
const resolver = chosen('the registry is asked in other words', 'stderr');
const ofOrder = chosen('the network of the mode is eth0, others follow by name; dockerd has no order', 'stdout');
const asWritten = chosen('the mode as the client has written it', 'HostConfig.NetworkMode');

const links = 'ip -o link | cut -d: -f2 | cut -d@ -f1';
const addresses = 'ip -o address | grep -v -e fe80 -e " lo " | tr -s " " | cut -d" " -f2-4';

export const NEWER_FLAGS: Readonly<Record<string, readonly NewerFlag[]>> = {
  life: [
    run44('', 'head -c 1 /proc/interrupts | wc -c; ls /sys/devices/virtual/powercap 2>&1 | head -n 3'),
    run25('--rm', 'exit 3'),
    run25('--rm -u nowho'),
    run25('--rm --entrypoint nowhere'),
    run25('--entrypoint nowhere'),
    run25('--init', 'ps -o pid,comm | head -n 2'),
    run25('--init --rm', 'exit 9'),
    made25('--stop-timeout 0'),
    made25('--stop-timeout 7 --stop-signal INT'),
    made25('--stop-timeout=-1'),
    made25('--health-cmd true --health-start-period 5s'),
    made44('--health-cmd true --health-start-period 5s --health-start-interval 2s'),
    made44('--health-cmd true --health-start-interval 1us'),
    made44('--health-cmd true --health-start-interval=-1s'),
    made25('--health-retries=-1 --health-cmd true'),
    made44('--annotation a=b --annotation c'),
    made44('--annotation =b'),
    made41('--platform linux/amd64'),
    made41('--platform linux/arm64', resolver),
    made41('--platform odd/odd', resolver),
    made41('--pull missing'),
    run41('--quiet --pull never'),
    run25('--restart unless-stopped --stop-timeout 1 -d', 'sleep 1000'),
    run25('--log-driver local --log-opt compress=false', 'echo out'),
    made25('--log-driver odd'),
    made25('--log-driver none --log-opt max-size=1m'),
    made25('--log-opt mode=odd'),
    made25('--log-driver syslog --log-opt syslog-address=udp://127.0.0.1:1 --log-opt tag={{.ID}}'),
  ],
  namespaces: [
    made25('--ipc shareable'),
    made25('--ipc private'),
    made41('--cgroupns host'),
    made41('--cgroupns private'),
    made41('--cgroupns odd'),
    made25('--pid container:running'),
    made25('--userns host'),
    made25('--uts host'),
    made25('--privileged', noLabels),
    made25('--security-opt no-new-privileges=true --security-opt seccomp=builtin'),
    made44('--security-opt writable-cgroups=true'),
    made25('--sysctl net.core.somaxconn=99 --sysctl kernel.msgmax=9999'),
    run25('--sysctl net.core.somaxconn=99 --network bridge', 'cat /proc/sys/net/core/somaxconn'),
    made25('--sysctl net.ipv4.conf.eth0.forwarding=1 --network bridge'),
    made25('--group-add 5 --user 1:2'),
    made25('--hostname box --domainname lan'),
    made40('--gpus all', early),
    run40('--gpus 1', 'true', early),
    run40('--gpus device=0,capabilities=utility', 'true', early),
    made25('--device-cgroup-rule a'),
    made25('--device /dev/null:/dev/zzz:rwm'),
    run44('--device vendor.example/class=name'),
  ],
  limits: [
    made25('--cpus 1.5'),
    made25('--cpus 0.001'),
    made25('--cpus 999', inWords),
    made25('--cpus 1 --cpu-quota 1000'),
    made25('--cpu-rt-runtime 5000 --cpu-rt-period 10000'),
    made40('--pids-limit 0'),
    made25('-m 64m --memory-swap 64m --memory-reservation 10m --oom-score-adj 7'),
    made25('--shm-size 1g'),
    made25('--ulimit nproc=5 --ulimit core=0:0 --ulimit memlock=-1:-1'),
    made25('--storage-opt size=1G', inWords),
    made25('--blkio-weight 0'),
  ],
  mounts: [
    run25('--mount type=bind,src={dir}/folder,dst=/m,ro', 'touch /m/x'),
    run25('--mount type=bind,src={dir}/folder,dst=/m,readonly=true,bind-propagation=rprivate'),
    run44('--mount type=bind,src={dir}/folder,dst=/m,bind-recursive=disabled'),
    run44('--mount type=bind,src={dir}/folder,dst=/m,ro,bind-recursive=writable'),
    run44('--mount type=bind,src={dir}/folder,dst=/m,ro,bind-recursive=readonly,bind-propagation=rprivate'),
    made44('--mount type=bind,src={dir}/folder,dst=/m,bind-recursive=readonly'),
    made25('--mount type=bind,src={dir}/nowhere,dst=/m'),
    run25('--mount type=volume,src=new-one,dst=/m,volume-nocopy', 'touch /m/x'),
    run45('--mount type=volume,src=new-two,dst=/m,volume-subpath=a', 'true', inWords),
    run45('--mount type=volume,src=new-three,dst=/etc,volume-subpath=network', 'true', inWords),
    made45('--mount type=volume,dst=/m,volume-subpath=../x'),
    run25('--mount type=volume,dst=/m', 'touch /m/x'),
    run25(
      '--mount type=tmpfs,dst=/m,tmpfs-size=64k,tmpfs-mode=1700',
      'stat -c %a /m; df -k /m | tail -n 1 | cut -c1-40',
    ),
    run48('--mount type=image,src=busybox,dst=/m', 'ls /m/bin/sh; touch /m/x', imagePath),
    run48('--mount type=image,src=busybox,dst=/m,image-subpath=etc', 'ls /m/passwd', imagePath),
    run48('--mount type=image,src=busybox,dst=/m,image-subpath=nowhere', 'true', imagePath),
    run48('--mount type=image,src=nosuch.invalid/x,dst=/m', 'true', resolver),
    made48('--mount type=image,dst=/m'),
    made25('--mount type=cluster,src=x,dst=/m'),
    made25('--read-only --tmpfs /run:rw,noexec,nosuid,size=65536k'),
    run25('-v {dir}/folder:/m:ro,rslave'),
    made25('-v {dir}/folder:/m:cached'),
    made25('-v {dir}/folder:/m:delegated,ro'),
  ],
  networks: [
    made44('--network one'),
    run44('--network name=one,ip=10.91.0.9,alias=here,alias=there', addresses),
    run44('--network name=one,mac-address=02:42:0a:00:00:09', 'cat /sys/class/net/eth0/address'),
    run44(
      '--network name=one,driver-opt=com.docker.network.endpoint.sysctls=net.ipv4.conf.IFNAME.forwarding=1',
      'cat /proc/sys/net/ipv4/conf/eth0/forwarding',
    ),
    run44('--network name=one,driver-opt=com.docker.network.endpoint.ifname=here0', links),
    run48(
      '--network name=one,gw-priority=5 --network name=two,gw-priority=9',
      'ip route | grep -c "default via 10.92"',
    ),
    run44('--network one --network two', addresses),
    run44('--network two --network one --network-alias x --ip 10.92.0.77', addresses, ofOrder),
    run44('--network name=two,ip6=fd00:92::9', addresses),
    run44('--network two --ip6 fd00:92::10 --ip 10.92.0.10', addresses),
    made44('--network name=one,ip=1.2.3.4'),
    made44('--network name=one,ip=odd', inWords),
    made44('--network name=one,link-local-ip=169.254.3.3'),
    run44('--network name=one,link-local-ip=169.254.3.3', addresses),
    made44('--network one --network one'),
    made44('--network one --network host'),
    made44('--network host --network one'),
    made44('--network one --network none'),
    made44('--network one --network container:running'),
    made44('--network one --network nosuch'),
    run44('--network one --network nosuch'),
    made44('--network one --mac-address 02:42:0a:00:00:0a'),
    made44('--network name=one,mac-address=02:42:0a:00:00:0b --mac-address 02:42:0a:00:00:0a'),
    made44('--network name=host,ip=1.2.3.4', inWords),
    made44('--network name=bridge,alias=x'),
    made44('--network bridge --ip 172.17.0.9'),
    made44('--network one --link running:r --network-alias y'),
    run44('--network one --hostname box --domainname lan', 'hostname -f; cut -f2 /etc/hosts | tail -n 1'),
    run44('--network one -p 8301:80 -p 127.0.0.1:8302:81/udp -P --expose 99'),
    run44('--network two -p 8303:80 -p [::1]:8304:80'),
    made44('--network bridge --expose 1000-1002 -P'),
    made44('--network internal -p 80:80'),
    run44('--network internal -p 80:80', 'ip route | grep -c default'),
    run44('--network default', links, asWritten),
    run44('--network none', links),
    run44('--network one --dns 9.9.9.9 --dns-opt ndots:2', 'grep -v -e "^#" -e "^$" /etc/resolv.conf | sort'),
    run44('--network one --add-host=gate=host-gateway', 'grep -c gate /etc/hosts'),
  ],
};

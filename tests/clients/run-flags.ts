import { existsSync } from 'node:fs';

/** Where a row may differ from dockerd, by its places in the outcome, and why. */
export type Chosen = Readonly<{ places: readonly string[]; why: string }>;

/** A command line of docker that makes a container of `words`: image and command. */
export type Row = Readonly<{
  command: 'run' | 'create';
  flags: readonly string[];
  words: readonly string[];
  chosen?: Chosen | undefined;
}>;

type Flags = string | readonly string[];

/** `docker run`, of a script in busybox. */
const row = (flags: Flags, script = 'true', chosen?: Chosen): Row =>
  run(flags, ['busybox', 'sh', '-c', script], chosen);

const run = (flags: Flags, words: readonly string[], chosen?: Chosen): Row => ({
  command: 'run',
  flags: split(flags),
  words,
  chosen,
});

/** `docker create`: what is asked for is refused, or shows in an inspect. */
const made = (flags: Flags, chosen?: Chosen): Row => ({
  command: 'create',
  flags: split(flags),
  words: ['busybox', 'true'],
  chosen,
});

function split(flags: Flags): readonly string[] {
  return typeof flags === 'string' ? flags.split(' ').filter((word) => word !== '') : flags;
}

const mounted = (path: string): string => `grep " ${path} " /proc/mounts | cut -d" " -f3,4`;

const chosen = (why: string, ...places: string[]): Chosen => ({ places, why });
const early = chosen('refused at the creation, in other words', 'code', 'stdout', 'stderr', 'inspect');
const earlySame = chosen('refused at the creation, in the same words', 'inspect');
const inWords = chosen('another text for the same', 'stderr', 'State');
const strictNames = chosen('the specification wants a host name of RFC 1123', 'code', 'stdout', 'stderr', 'inspect');
const strictPaths = chosen('a path of a volume is absolute', 'code', 'stdout', 'stderr', 'inspect');
const strictLimits = chosen('checked also where the kernel has no such limit', 'code', 'stdout', 'stderr', 'inspect');
const twice = chosen('two mounts on one path', 'code', 'stdout', 'stderr', 'inspect');
const warned = chosen('warned of, where dockerd is silent', 'stderr', 'NetworkSettings.Networks');
const noIPv6 = chosen('published ports are IPv4', 'code', 'stdout', 'stderr', 'inspect');
const noMtab = chosen('no /etc/mtab where the image has none', 'stdout');
const noFolder = chosen('the working directory is made at the start', 'stderr', 'inspect');
const noLabels = chosen('there is no SELinux to disable', 'HostConfig.SecurityOpt');
const noOptions = chosen('no options of the local driver', 'code', 'stdout', 'stderr', 'inspect');
const linkOrder = chosen('the state is looked at before the network', 'stderr', 'State', 'NetworkSettings');
/** dockerd 20.10 knows no weights of BFQ on version 1 of cgroups. */
const bfqWeights = existsSync('/sys/fs/cgroup/blkio/blkio.bfq.io_serviced')
  ? chosen('the weights of BFQ are used', 'stderr', 'HostConfig.BlkioWeight')
  : undefined;
const crunDiffers = chosen('crun takes an empty word for a folder', 'code', 'stderr', 'State');

/**
 * Flags of `docker run`, by subject. Rows name no network unless they are about it: without one dockerd starts a
 * container in half the time. `{dir}` is a folder of the side's host, `{disk}` a block device.
 */
export const runFlags: Readonly<Record<string, readonly Row[]>> = {
  'streams and codes': [
    row('', 'echo out; echo err >&2; exit 3'),
    row('-a stdout', 'echo out; echo err >&2'),
    row('-d', 'sleep 1000'),
    row('--rm', 'exit 7'),
    row('-t', 'tty; echo err >&2; stty size'),
    row('-i', 'cat'),
    made('--detach-keys ctrl-a,a'),
    made('--detach-keys ctrl-!'),
    run('', ['busybox', 'nowhere']),
    run('', ['busybox', '/etc']),
    run('', ['busybox', ''], crunDiffers),
    run('', ['busybox']),
    run('--entrypoint /bin/echo', ['busybox', 'a', 'b']),
    run(['--entrypoint', ''], ['rich', 'pwd']),
    run(['--entrypoint', ''], ['rich']),
    run('', ['rich', 'other']),
  ],
  'names, environment and labels': [
    row('-h box', 'hostname; cat /etc/hostname; echo $HOSTNAME'),
    made('-h box.lan'),
    row('-h box --domainname lan', 'hostname; hostname -d; grep box /etc/hosts'),
    made('-h -bad', strictNames),
    row('-h under_score', 'hostname; cat /etc/hostname'),
    row('-e A=1 -e A=2 -e EMPTY= -e FROM_CLIENT -e NOT_SET', 'env | sort'),
    row('--env-file {dir}/env', 'env | sort'),
    row('--env-file {dir}/env -e B', 'env | sort'),
    made('--env-file {dir}/nowhere'),
    made('-e =x'),
    run('--entrypoint env -e B -e C=', ['rich']),
    run('--entrypoint env -e PATH', ['rich']),
    row('-t -e TERM=dumb', 'echo $TERM'),
    row('-e PATH=/bin -e HOME=/x', 'echo $PATH $HOME'),
    made('-l a=1 -l b -l c='),
    made('--label-file {dir}/labels'),
    row('--cidfile {dir}/cid'),
  ],
  'user, directory and root': [
    row('-w /made/here', 'pwd'),
    made('-w relative'),
    row('-w /etc/passwd', 'pwd', noFolder),
    row('-u daemon', 'id; echo $HOME'),
    row('-u 1234', 'id'),
    row('-u nobody:wheel', 'id'),
    row('-u nowho'),
    row('-u root:nogroup-at-all'),
    row('-u 0 --group-add wheel --group-add 77', 'id -G'),
    row('--group-add nowhere', 'true', inWords),
    row('--read-only', 'touch /x; touch /tmp/x; touch /dev/x'),
    row('--read-only --tmpfs /tmp', 'touch /tmp/x && ls /tmp'),
    row('', 'ls -a / /dev | sort | grep -v core'),
    row('', 'cat /proc/mounts | cut -d" " -f2,3 | grep -v -e proc -e sys | sort'),
  ],
  'volumes and binds': [
    row(
      '-v {dir}/folder:/a:ro -v {dir}/file:/b/file -v {dir}/missing:/c -v {dir}/folder://d//x/../y/ -v named2:/e:ro',
      'touch /a/x; cat /b/file; touch /c/x; cat /d/y/greeting; touch /e/x',
    ),
    row('-v {dir}/folder:/m', `cat /m/greeting; ${mounted('/m')}`),
    made('-v {dir}/folder:/m:ro,rw'),
    made('-v {dir}/folder:/m:fast'),
    row('-v {dir}/folder:/m:rslave'),
    row('-v {dir}/folder:/m:rshared'),
    made('-v {dir}/folder:/m:private,z'),
    made('-v {dir}/folder:relative'),
    made('-v {dir}/folder:/'),
    made('-v {dir}/folder:/m -v {dir}/file:/m'),
    row('-v named:/etc', 'ls /etc | sort', noMtab),
    row('-v named-nocopy:/etc:nocopy', 'ls -A /etc | sort'),
    made('-v named2:/m:rshared'),
    made('-v na/me:/m'),
    made('-v /anonymous'),
    made('-v /etc'),
    row('-v /', 'true', early),
    made('-v relative-alone', strictPaths),
    made('-v nv:/a --tmpfs /a'),
    row('-v /a --tmpfs /a', mounted('/a')),
    made('-v {dir}/folder:/a --tmpfs /a'),
    run('--entrypoint ls', ['rich', '/made', '/etc/passwd']),
    run('--entrypoint ls -v {dir}/folder:/made', ['rich', '/made']),
    run('--entrypoint ls --tmpfs /made', ['rich', '/made']),
    row('--volumes-from lender:ro', 'touch /lent/x; touch /bound/x'),
    made('--volumes-from lender:fast'),
    made('--volumes-from nobody'),
    row('--volumes-from lender -v {dir}/file:/lent', 'cat /lent'),
    made('--volume-driver local -v driven:/m'),
  ],
  'mounts and tmpfs': [
    row(
      [
        ...[
          '--mount',
          'type=bind,src={dir}/folder,dst=/a,readonly',
          '--mount',
          'type=volume,src=mounted-ro,dst=/b,readonly',
        ],
        ...['--mount', 'type=volume,src=mounted-etc,dst=/etc', '--mount', 'type=volume,dst=/c'],
        ...['--mount', 'type=tmpfs,dst=/d', '--mount', 'type=tmpfs,dst=/d/e', '--mount', 'type=tmpfs,dst=/f,readonly'],
      ],
      `touch /a/x; touch /b/x; ls /etc/passwd; touch /c/x; ${mounted('/d')}; ${mounted('/d/e')}; touch /f/x`,
    ),
    row(
      '--tmpfs /a --tmpfs /b:size=1m,mode=700 --tmpfs /c:suid,dev --tmpfs /d:ro --tmpfs /e:uid=5,gid=6 --tmpfs /etc',
      `${['/a', '/b', '/c', '/d', '/e'].map(mounted).join('; ')}; ls -A /etc`,
    ),
    row('--mount type=bind,src={dir}/folder,dst=/m', `cat /m/greeting; ${mounted('/m')}`),
    made('--mount type=bind,src={dir}/nowhere,dst=/m'),
    row('--mount type=bind,src={dir}/folder,dst=/m,bind-propagation=rslave'),
    made('--mount type=bind,src={dir}/folder,dst=/m,bind-propagation=odd'),
    made('--mount type=bind,src={dir}/folder,dst=/'),
    made('--mount type=bind,src={dir}/folder,dst=relative'),
    made('--mount type=bind,dst=/m'),
    row('--mount type=volume,src=mounted,dst=/m', 'touch /m/x; ls /m'),
    row('--mount type=volume,src=mounted-etc2,dst=/etc,volume-nocopy', 'ls -A /etc'),
    made('--mount dst=/m'),
    made('--mount type=volume,src=labelled,dst=/m,volume-label=a=b'),
    made('--mount type=volume,src=driven3,dst=/m,volume-driver=local'),
    made('--mount type=volume,src=optioned,dst=/m,volume-opt=type=tmpfs,volume-opt=device=tmpfs', noOptions),
    made('--mount type=volume,src=a/b,dst=/m'),
    made('--mount type=volume,src=/abs,dst=/m'),
    row('--mount type=tmpfs,dst=/m,tmpfs-size=1m,tmpfs-mode=0700', `${mounted('/m')}; ls -ld /m | cut -c1-10`),
    made('--mount type=tmpfs,src=x,dst=/m'),
    made('--mount type=tmpfs,dst=/'),
    made('--mount type=npipe,src=a,dst=/m'),
    made('--mount type=odd,dst=/m'),
    made('--mount type=tmpfs,dst=/m --mount type=volume,dst=/m'),
    made('--mount type=tmpfs,dst=/m -v {dir}/folder:/m'),
    made('--mount type=tmpfs,dst=/m --tmpfs /m', twice),
    made('--mount type=bind,src={dir}/folder,dst=/m -v /m'),
    row('--tmpfs /t:exec', mounted('/t')),
    row('--tmpfs /t:odd=1', 'true', earlySame),
    made('--tmpfs relative'),
    made('--tmpfs /'),
    made('--shm-size 0'),
    made('--shm-size=-1'),
  ],
  'networks and ports': [
    row('--network bridge', 'ip -o link | cut -d: -f2 | cut -d@ -f1; cat /etc/resolv.conf | grep -c nameserver'),
    row('--network host'),
    row('--network nosuch'),
    row('--network container:lender'),
    made('--network container:lender -h x'),
    made('--network container:lender -p 80'),
    made('--network container:lender --expose 80'),
    made('--network container:lender --dns 1.1.1.1'),
    made('--network container:lender --add-host a:1.2.3.4'),
    made('--network container:lender --mac-address 02:00:00:00:00:01'),
    row('--network container:nobody'),
    row('--network container:running', 'hostname'),
    row('--network bridge --ip 172.17.0.99', 'true', earlySame),
    made('--network bridge --network-alias x'),
    made('--network bridge --link-local-ip 169.254.1.1', warned),
    made('--network bridge --mac-address 02:42:ac:11:00:63'),
    made('--network bridge --mac-address odd'),
    row('--network bridge -p 8080:80 -p 127.0.0.1:8081:80/udp -p 8090-8092:90-92'),
    row('--network bridge -p 8190-8192:90'),
    row('--network bridge -p 1.2.3.4:8083:80'),
    made('--network bridge -p [::1]:8084:80', noIPv6),
    made('--network bridge -p 8085:80/sctp', early),
    made('--network bridge -p 0:80'),
    made('--network bridge -p 70000:80'),
    made('--network bridge -p x:80'),
    made('--network bridge --expose 80 --expose 90-91/udp'),
    made('--network bridge --expose x'),
    run('--network bridge --entrypoint true', ['rich']),
    made('--network host -p 80:80'),
    made('--network none -p 80:80'),
    made('--add-host db:10.9.8.7 --add-host gate:host-gateway --network bridge'),
    made('--add-host bad'),
    made('--add-host bad:1.2.3'),
    row('--dns 10.1.1.1 --dns-search lan --dns-option ndots:3 --network bridge', 'cat /etc/resolv.conf'),
    made('--dns odd'),
    row('--link running:r --network bridge', 'grep -c r /etc/hosts; env | grep -c R_NAME'),
    row('--link lender --network bridge', 'true', linkOrder),
    made('--link nobody --network bridge'),
    made('--link running --network host'),
  ],
  'namespaces and privileges': [
    made('--pid host', noLabels),
    row('--pid container:running', 'ps | grep -c "[s]leep 1000"'),
    row('--pid container:lender'),
    made('--pid container:nobody'),
    made('--pid odd'),
    row('--ipc host', mounted('/dev/shm'), noLabels),
    row('--ipc none', 'ls -d /dev/shm; grep -c /dev/shm /proc/mounts'),
    made('--ipc shareable'),
    row('--ipc container:running', mounted('/dev/shm')),
    row('--ipc container:lender'),
    made('--ipc odd', early),
    made('--uts host'),
    made('--uts host -h x'),
    made('--uts odd'),
    made('--userns host'),
    made('--userns odd'),
    row('--cap-add cap_net_admin --cap-drop chown', 'grep -e CapEff -e CapBnd /proc/self/status'),
    made('--cap-drop ALL'),
    made('--cap-drop ALL --cap-add CHOWN'),
    made('--cap-add ODD'),
    row('-u 1 --cap-add NET_ADMIN', 'grep Cap /proc/self/status'),
    made('--security-opt no-new-privileges'),
    made('--security-opt no-new-privileges:false'),
    made('--security-opt seccomp=unconfined'),
    row('--security-opt seccomp={dir}/seccomp.json', 'mkdir /x; grep Seccomp: /proc/self/status'),
    row('--security-opt seccomp={dir}/file'),
    made('--security-opt apparmor=unconfined'),
    made('--security-opt label=disable'),
    made('--security-opt label=odd'),
    row('--security-opt systempaths=unconfined', 'grep -c -e " /proc/kcore " -e " /proc/sys " /proc/mounts'),
    made('--security-opt odd=1'),
    made('--security-opt odd'),
    row('--device /dev/full', 'ls -l /dev/full | cut -c1-10'),
    row('--device /dev/full:/dev/brim:r', 'echo x >/dev/brim'),
    row('--device /dev/nosuch'),
    made('--device /dev/full:/dev/brim:odd'),
    row('--device {dir}/folder'),
    made(['--device-cgroup-rule', 'c 1:* rwm']),
    made(['--device-cgroup-rule', 'odd']),
    made('--sysctl net.ipv4.ip_forward=1'),
    row('--sysctl kernel.odd=1'),
    row('--sysctl net.ipv4.ip_forward=1 --network host', 'true', inWords),
    made('--runtime runc'),
    made('--runtime odd'),
    made('--cgroup-parent /docker'),
  ],
  limits: [
    made('-m 64m'),
    made('-m 1k'),
    made('-m 64m --memory-swap 128m'),
    made('-m 64m --memory-swap 32m'),
    made('-m 64m --memory-swap -1'),
    made('--memory-swap 64m'),
    made('--memory-reservation 32m'),
    made('-m 32m --memory-reservation 64m'),
    made('--memory-reservation 1m'),
    made('--kernel-memory 32m'),
    made('--memory-swappiness 0'),
    made('--memory-swappiness 50'),
    made('--memory-swappiness -1'),
    made('--memory-swappiness 101'),
    made('--oom-kill-disable'),
    made('--oom-kill-disable -m 64m'),
    made('--oom-score-adj 500'),
    made('--oom-score-adj 1001'),
    made('--cpu-shares 512'),
    row('--cpu-shares 1', 'true', early),
    made('--cpu-period 50000 --cpu-quota 25000'),
    made('--cpu-quota -1'),
    made('--cpu-period 10'),
    made('--cpu-quota 10'),
    made('--cpuset-cpus 0'),
    made('--cpuset-cpus 99'),
    made('--cpuset-cpus x'),
    made('--cpuset-mems 0'),
    made('--cpuset-mems 9'),
    made('--pids-limit 77'),
    made('--pids-limit -1'),
    made('--pids-limit 0'),
    made('--blkio-weight 100', bfqWeights),
    made('--blkio-weight 5', strictLimits),
    made('--blkio-weight-device {disk}:100'),
    made('--blkio-weight-device {disk}:5'),
    made('--device-read-bps {disk}:1mb'),
    made('--device-write-bps {disk}:1mb'),
    made('--device-read-iops {disk}:10'),
    made('--device-write-iops {disk}:10'),
    row('--device-read-bps /dev/nosuch:1mb'),
    made('--ulimit nofile=99:100'),
    made('--ulimit nofile=99'),
    made('--ulimit nofile=100:99'),
    made('--ulimit core=-1'),
    made('--ulimit cpu=10:-1'),
    row('--ulimit odd=1'),
    made('--cpu-count 1'),
    made('--cpu-percent 5'),
    made('--io-maxiops 5'),
    made('--io-maxbandwidth 5'),
    made('--storage-opt odd=1'),
  ],
  'life and logs': [
    made('--restart no'),
    row('--restart on-failure:2', 'exit 0'),
    made('--restart always:2'),
    made('--restart on-failure:-1'),
    made('--restart odd'),
    row('--restart always --rm'),
    made('--stop-signal TERM'),
    made('--stop-signal 9'),
    made('--stop-signal ODD'),
    made('--stop-timeout 5'),
    made('--health-cmd true --health-interval 1s --health-retries 2 --health-timeout 3s'),
    made('--health-interval 1us --health-cmd true'),
    made('--no-healthcheck'),
    made('--no-healthcheck --health-cmd true'),
    run('--entrypoint true --no-healthcheck', ['rich']),
    row('--log-driver none', 'echo out'),
    row('--log-driver json-file --log-opt max-size=1m --log-opt max-file=2', 'echo out'),
    made('--log-opt max-size=odd', early),
    made('--log-opt odd=1'),
    row('--log-opt labels=a --log-opt env=A --log-opt tag={{.Name}}', 'echo out'),
    made('--log-opt mode=non-blocking --log-opt max-buffer-size=1m'),
    made('--pull never'),
  ],
};

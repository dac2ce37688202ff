import { existsSync } from 'node:fs';

/** A value of a field of a creation's body, and its probe. */
export type Probe = Readonly<{
  value: unknown;
  /** Other fields that belong to it. */
  beside?: Readonly<Record<string, unknown>>;
  /** Run in the container when it can be made; its output counts. Without one the container is not started. */
  script?: string;
  /** Why the outcome may differ from dockerd's. */
  chosen?: string;
}>;

const MB = 1024 * 1024;
/** A parent of cgroups that a client names: no engine removes it. */
export const PARENT = '/gantry-clients';
const groups = '/sys/fs/cgroup';
const none = { NetworkMode: 'none' };
/** dockerd 20.10 knows no weights of BFQ on version 1 of cgroups. */
const bfq = existsSync(`${groups}/blkio/blkio.bfq.io_serviced`) ? 'the weights of BFQ are used' : undefined;
const oneDisk = [{ Path: '{disk}', Rate: 1_000_000 }];
const throttled = (file: string): string => `cut -d" " -f2 ${groups}/blkio/blkio.throttle.${file}`;

const value = (given: unknown, script?: string, chosen?: string): Probe => ({
  value: given,
  ...(script !== undefined && { script }),
  ...(chosen !== undefined && { chosen }),
});

/** The fields of the container's configuration. */
export const configFields: Readonly<Record<string, readonly Probe[]>> = {
  Hostname: [value('box', 'hostname'), value('-bad', undefined, 'a host name of RFC 1123')],
  Domainname: [value('lan', 'hostname -d')],
  User: [value('daemon', 'id'), value('1:2', 'id'), value('nobody:nowhere', 'id')],
  AttachStdin: [value(true)],
  AttachStdout: [value(true)],
  AttachStderr: [value(true)],
  ExposedPorts: [value({ '80/tcp': {}, '53/udp': {} }), value({ 'x/tcp': {} }, undefined, 'refused at once')],
  Tty: [value(true, 'tty')],
  OpenStdin: [value(true)],
  StdinOnce: [value(true)],
  Env: [value(['A=1', 'B'], 'echo $A-$B'), value(['=x']), value([''])],
  Cmd: [value(['sh', '-c', 'true']), value([]), value(null)],
  Healthcheck: [
    value({ Test: ['NONE'] }),
    value({ Test: ['CMD', 'true'], Interval: 1_000_000_000, Retries: 2 }),
    value({ Test: ['CMD', 'true'], Interval: 1 }),
  ],
  ArgsEscaped: [value(true, undefined, 'of another system, and not shown')],
  Image: [value('nowhere:1'), value('', undefined, 'nothing can be made of no image')],
  Volumes: [value({ '/v': {} }, 'touch /v/x; grep -c " /v " /proc/mounts'), value({ '/v/': {}, '/v/../w': {} })],
  WorkingDir: [value('/made', 'pwd'), value('made')],
  Entrypoint: [value(['echo', 'a']), value([], undefined, 'none is shown as null'), value([''])],
  NetworkDisabled: [value(true, 'ls /sys/class/net')],
  MacAddress: [value('02:42:ac:11:00:63'), value('odd', undefined, 'refused at once')],
  OnBuild: [value(['RUN true'])],
  Labels: [value({ a: '1', b: '' })],
  StopSignal: [value('SIGUSR1'), value('ODD')],
  StopTimeout: [value(7)],
  Shell: [value(['/bin/sh'], undefined, 'a setting of a build, and not shown')],
};

/** The fields of HostConfig. */
export const hostConfigFields: Readonly<Record<string, readonly Probe[]>> = {
  Binds: [
    value(['named:/b', '{dir}/folder:/t:ro'], 'touch /b/x; touch /t/x'),
    value(['aa:/b', 'cc:/b']),
    value(['x']),
    value(['/:/b:ro']),
    value(['/:/b:ro,rprivate']),
    value(['/:/b:ro,slave']),
  ],
  ContainerIDFile: [value('/x')],
  LogConfig: [
    value({ Type: 'json-file', Config: { 'max-size': '1m' } }),
    value({ Type: 'json-file', Config: { odd: '1' } }),
    value({ Type: 'none', Config: {} }),
  ],
  NetworkMode: [value('host', 'true'), value('none', 'ls /sys/class/net'), value('nowhere', 'true')],
  PortBindings: [value({ '80/tcp': [{ HostPort: '8080' }] }), value({ '80': null }, undefined, 'with its protocol')],
  RestartPolicy: [
    value({ Name: 'on-failure', MaximumRetryCount: 2 }),
    value({ Name: 'odd' }),
    value({ Name: 'always', MaximumRetryCount: 1 }),
  ],
  AutoRemove: [value(true)],
  VolumeDriver: [value('local')],
  VolumesFrom: [value(['lender'], 'ls -d /lent'), value(['nobody']), value(['lender:odd'])],
  CapAdd: [value(['NET_ADMIN'], 'grep CapEff /proc/self/status'), value(['ODD'])],
  CapDrop: [value(['ALL'], 'grep CapEff /proc/self/status'), value(['ODD'])],
  CgroupnsMode: [value('host'), value('private', 'grep memory: /proc/self/cgroup'), value('odd')],
  Dns: [value(['10.1.1.1'], 'cat /etc/resolv.conf')],
  DnsOptions: [value(['ndots:3'], 'grep options /etc/resolv.conf')],
  DnsSearch: [value(['lan'], 'grep search /etc/resolv.conf')],
  ExtraHosts: [value(['db:10.9.8.7'], 'grep db /etc/hosts'), value(['bad'])],
  GroupAdd: [value(['77', 'wheel'], 'id -G')],
  IpcMode: [
    value('private'),
    value('none', 'ls /dev | grep -c shm'),
    value('host', 'readlink /proc/self/ns/ipc | cut -c1-4'),
    value('odd', undefined, 'refused at once'),
  ],
  Cgroup: ['', 'container:running', 'odd'].map((given) => value(given, 'true')),
  Links: [value(['running:r'], 'grep -c "r running" /etc/hosts'), value(['nobody:x'])],
  OomScoreAdj: [value(77, 'cat /proc/self/oom_score_adj'), value(1001)],
  PidMode: [value('host', 'readlink /proc/self/ns/pid | cut -c1-4'), value('container:nobody')],
  Privileged: [value(true)],
  PublishAllPorts: [value(true)],
  ReadonlyRootfs: [value(true, 'touch /x')],
  SecurityOpt: [
    value(['no-new-privileges'], 'grep NoNewPrivs /proc/self/status'),
    value(['seccomp=unconfined'], 'grep Seccomp: /proc/self/status'),
    value(['odd=1']),
    value(['odd']),
    ...['=1', '=t', '=false', ':true', '=odd', '='].map((given) =>
      value([`no-new-privileges${given}`], 'grep NoNewPrivs /proc/self/status'),
    ),
    value(['no-new-privileges', 'no-new-privileges=false'], 'grep NoNewPrivs /proc/self/status'),
    ...['=disable', ':disable', '=user:u', '=type:t', '=', '=odd'].map((given) => value([`label${given}`], 'true')),
    value(['disable', 'label=level:s0'], 'true'),
    ...['', '=', ':unconfined', '=unconfined'].map((given) => value([`apparmor${given}`], 'true')),
    ...['', '=', ':unconfined'].map((given) => value([`seccomp${given}`], 'grep Seccomp: /proc/self/status')),
    value(['seccomp={"defaultAction":"SCMP_ACT_ALLOW"}'], 'grep Seccomp: /proc/self/status'),
    value(['seccomp=unconfined', 'seccomp='], 'grep Seccomp: /proc/self/status'),
    value(['seccomp=odd'], 'true', 'refused with another text'),
    value(['apparmor=odd', 'apparmor=unconfined'], 'true'),
  ],
  StorageOpt: [value({ size: '1g' }, undefined, 'refused as a bad parameter'), value({ odd: '1' })],
  Tmpfs: [value({ '/t': 'exec,size=1m' }, 'grep " /t " /proc/mounts | cut -d" " -f4'), value({ t: '' })],
  UTSMode: [value('host'), value('odd')],
  UsernsMode: ['host', 'private', 'odd'].map((given) => value(given, 'cat /proc/self/uid_map')),
  ShmSize: [value(3 * MB, 'df -k /dev/shm | tail -1'), value(-1)],
  Sysctls: [value({ 'net.ipv4.ip_forward': '1' }, 'cat /proc/sys/net/ipv4/ip_forward')],
  Runtime: [value('runc'), value('odd')],
  ConsoleSize: [value([33, 101])],
  Isolation: [value('default'), value('Default'), value('process'), value('odd')],
  CpuShares: [
    value(512, `cat ${groups}/cpu/cpu.shares`),
    value(1, 'true', 'refused at once'),
    value(300_000, 'true', 'refused at once'),
  ],
  Memory: [value(64 * MB, `cat ${groups}/memory/memory.limit_in_bytes`), value(1)],
  NanoCpus: [
    value(500_000_000, `cat ${groups}/cpu/cpu.cfs_quota_us`),
    value(1e15),
    { value: 500_000_000, beside: { CpuQuota: 5000 } },
    { value: 500_000_000, beside: { CpuPeriod: 5000 } },
  ],
  CgroupParent: [
    value('/docker', 'grep memory: /proc/self/cgroup | cut -d/ -f2-3'),
    value(`${PARENT}/of/tests`, 'grep memory: /proc/self/cgroup | cut -d/ -f2-4'),
  ],
  BlkioWeight: [value(100, undefined, bfq)],
  BlkioWeightDevice: [value([{ Path: '/dev/zero', Weight: 100 }])],
  BlkioDeviceReadBps: [value([{ Path: '/dev/nosuch', Rate: 1 }], 'true'), value(oneDisk, throttled('read_bps_device'))],
  BlkioDeviceWriteBps: [
    value([{ Path: '/dev/nosuch', Rate: 1 }], 'true'),
    value(oneDisk, throttled('write_bps_device')),
  ],
  BlkioDeviceReadIOps: [
    value([{ Path: '/dev/nosuch', Rate: 1 }], 'true'),
    value(oneDisk, throttled('read_iops_device')),
  ],
  BlkioDeviceWriteIOps: [
    value([{ Path: '/dev/nosuch', Rate: 1 }], 'true'),
    value(oneDisk, throttled('write_iops_device')),
  ],
  CpuPeriod: [value(50_000, `cat ${groups}/cpu/cpu.cfs_period_us`), value(10)],
  CpuQuota: [value(-1, `cat ${groups}/cpu/cpu.cfs_quota_us`), value(10)],
  CpuRealtimePeriod: [value(1000), value(-1, undefined, 'refused at once')],
  CpuRealtimeRuntime: [value(1000), { value: 1001, beside: { CpuRealtimePeriod: 1000 } }],
  CpusetCpus: [value('0', `cat ${groups}/cpuset/cpuset.cpus`), value('99'), value('x')],
  CpusetMems: [value('0', `cat ${groups}/cpuset/cpuset.mems`), value('9')],
  Devices: [
    value([{ PathOnHost: '/dev/zero', PathInContainer: '/dev/z', CgroupPermissions: 'r' }], 'head -c 1 /dev/z | wc -c'),
    value([{ PathOnHost: '/dev/nosuch', PathInContainer: '/dev/z', CgroupPermissions: 'r' }], 'true'),
    value([{ PathOnHost: '', PathInContainer: '/dev/z', CgroupPermissions: 'r' }], 'true'),
    value([{ PathOnHost: '/dev/zero/', PathInContainer: '/dev/z', CgroupPermissions: 'r' }], 'true'),
    value([{ PathOnHost: '/dev/fd', PathInContainer: '/dev/z', CgroupPermissions: 'r' }], 'true'),
    value([{ PathOnHost: '{dir}/folder', PathInContainer: '/dev/z', CgroupPermissions: 'r' }], 'true'),
  ],
  DeviceCgroupRules: [value(['c 1:* rwm'], 'true'), value(['odd'], 'true', 'refused at once')],
  DeviceRequests: [value([{ Driver: 'x', Capabilities: [['gpu']] }], 'true', 'refused at once')],
  KernelMemory: [value(1), value(64 * MB, 'true')],
  KernelMemoryTCP: [value(64 * MB)],
  MemoryReservation: [value(32 * MB, `cat ${groups}/memory/memory.soft_limit_in_bytes`), value(1)],
  MemorySwap: [value(64 * MB), { value: -1, beside: { Memory: 64 * MB } }],
  MemorySwappiness: [value(0, `cat ${groups}/memory/memory.swappiness`), value(-1), value(101)],
  OomKillDisable: [value(true), value(true, `head -1 ${groups}/memory/memory.oom_control`)],
  PidsLimit: [value(-1, `cat ${groups}/pids/pids.max`), value(77, `cat ${groups}/pids/pids.max`), value(0)],
  Ulimits: [
    value([{ Name: 'core', Soft: -1, Hard: -1 }], 'ulimit -c'),
    value([{ Name: 'nofile', Soft: 99, Hard: 100 }], 'ulimit -n'),
    value([{ Name: 'nofile', Soft: 2, Hard: 1 }], undefined, 'refused at once'),
  ],
  CpuCount: [value(1)],
  CpuPercent: [value(5)],
  IOMaximumIOps: [value(5)],
  IOMaximumBandwidth: [value(5)],
  Mounts: [
    value([{ Type: 'volume', Source: 'mounted', Target: '/m' }], 'touch /m/x; grep -c " /m " /proc/mounts'),
    value([{ Type: 'volume', Target: '/etc', VolumeOptions: { NoCopy: true } }], 'ls /etc/passwd'),
    value([{ Type: 'volume', Target: '/m', ReadOnly: true }]),
    value([{ Type: 'volume', Source: 'labelled', Target: '/m', VolumeOptions: { Labels: { a: 'b' } } }]),
    value([{ Type: 'volume', Target: '/m', BindOptions: {} }]),
    value([{ Type: 'bind', Source: '{dir}/folder', Target: '/m', ReadOnly: true }], 'touch /m/x'),
    value([{ Type: 'bind', Source: '/nowhere', Target: '/m' }]),
    value([{ Type: 'bind', Source: 'tmp', Target: '/m' }]),
    value([{ Type: 'bind', Source: '/tmp', Target: '/m', BindOptions: { Propagation: 'odd' } }]),
    value([{ Type: 'bind', Source: '/tmp', Target: '/m', VolumeOptions: {} }]),
    value(
      [{ Type: 'tmpfs', Target: '/m', TmpfsOptions: { SizeBytes: MB, Mode: 0o700 } }],
      'grep " /m " /proc/mounts | cut -d" " -f4; ls -ld /m | cut -c1-10',
    ),
    value([{ Type: 'tmpfs', Target: '/m', ReadOnly: true }], 'touch /m/x'),
    value([{ Type: 'tmpfs', Source: 'x', Target: '/m' }]),
    value([{ Type: 'tmpfs', Target: '' }]),
    value([{ Type: 'odd', Target: '/m' }]),
    value([{ Target: '/m' }]),
  ],
  MaskedPaths: [value([], 'ls /proc/kcore; grep -c kcore /proc/mounts'), value(['/proc/version'], 'cat /proc/version')],
  ReadonlyPaths: [value(['/proc/irq'], 'grep -c " /proc/bus " /proc/mounts; grep -c " /proc/irq " /proc/mounts')],
  Init: [value(true, 'cat /proc/1/comm'), value(false)],
};

/** The rest of a probe's HostConfig: none needs a network, but those that are about it. */
export function besides(field: string): Readonly<Record<string, unknown>> {
  const needsBridge = ['Links', 'Dns', 'DnsOptions', 'DnsSearch', 'MacAddress', 'NetworkDisabled', 'NetworkMode'];
  return needsBridge.includes(field) ? {} : none;
}

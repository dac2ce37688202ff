import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import type { CreateBody } from '@gantry/client/containers.ts';

import { parse } from '../command-line/parse.ts';
import { applyFlags, CREATE_FLAGS } from './flags.ts';
import { bodyOf, emptyRequest } from './request.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gantry-cli-'));
  await writeFile(
    join(folder, 'env'),
    '\uFEFF# comment\n\nA=1\n  B= two words \nGANTRY_TEST_GIVEN\nGANTRY_TEST_ABSENT\n',
  );
  await writeFile(join(folder, 'wrong'), 'A B=1\n');
  await writeFile(join(folder, 'seccomp.json'), '{ "defaultAction": "SCMP_ACT_ALLOW" }');
  process.env['GANTRY_TEST_GIVEN'] = 'given';
});
after(async () => {
  await rm(folder, { recursive: true });
  delete process.env['GANTRY_TEST_GIVEN'];
});

function bodyFor(...argv: readonly string[]): CreateBody {
  const parsed = parse({ flags: CREATE_FLAGS, passesOn: true }, argv);
  assert.ok(!parsed.help);
  const request = emptyRequest({ image: 'busybox', command: [], attached: new Set(['stdin', 'stdout', 'stderr']) });
  applyFlags(request, parsed.flags);
  return bodyOf(request);
}

const plain = { Image: 'busybox', AttachStdin: true, AttachStdout: true, AttachStderr: true };
const Network = { NetworkMode: 'default' };

/** Flags, the fields beside the image and the streams, and those of HostConfig. */
for (const [argv, config, host] of [
  [[], {}, {}],
  [
    ['-h', 'web', '--domainname', 'd', '-u', '1:2', '-w', '/w'],
    { Hostname: 'web', Domainname: 'd', User: '1:2', WorkingDir: '/w' },
    {},
  ],
  [['-it'], { OpenStdin: true, Tty: true, StdinOnce: true }, {}],
  [
    ['-e', 'A=1', '-e', 'B=', '--env', 'GANTRY_TEST_GIVEN', '-e', 'GANTRY_TEST_ABSENT'],
    { Env: ['A=1', 'B=', 'GANTRY_TEST_GIVEN=given', 'GANTRY_TEST_ABSENT'] },
    {},
  ],
  [['-l', 'a=b=c', '--label', 'd'], { Labels: { a: 'b=c', d: '' } }, {}],
  [['--entrypoint', 'sh'], { Entrypoint: ['sh'] }, {}],
  [['--entrypoint='], { Entrypoint: [] }, {}],
  [
    ['--stop-signal', 'INT', '--stop-timeout', '0', '--mac-address', '92:d0:c6:0a:29:33'],
    { StopSignal: 'INT', StopTimeout: 0, MacAddress: '92:d0:c6:0a:29:33' },
    {},
  ],
  [
    ['--health-cmd', 'true', '--health-interval', '5s', '--health-retries', '3'],
    { Healthcheck: { Test: ['CMD-SHELL', 'true'], Interval: 5e9, Retries: 3 } },
    {},
  ],
  [['--no-healthcheck'], { Healthcheck: { Test: ['NONE'] } }, {}],
  [['-p', '80'], { ExposedPorts: { '80/tcp': {} } }, { PortBindings: { '80/tcp': [{ HostIp: '', HostPort: '' }] } }],
  [
    ['-p', '127.0.0.1:8080:80/udp', '-p', '[::1]::81', '-p', '9000-9010:82'],
    { ExposedPorts: { '80/udp': {}, '81/tcp': {}, '82/tcp': {} } },
    {
      PortBindings: {
        '80/udp': [{ HostIp: '127.0.0.1', HostPort: '8080' }],
        '81/tcp': [{ HostIp: '::1', HostPort: '' }],
        '82/tcp': [{ HostIp: '', HostPort: '9000-9010' }],
      },
    },
  ],
  [
    ['-p', '8080-8081:80-81', '--expose', '90-91', '-P'],
    { ExposedPorts: { '80/tcp': {}, '81/tcp': {}, '90/tcp': {}, '91/tcp': {} } },
    {
      PublishAllPorts: true,
      PortBindings: { '80/tcp': [{ HostIp: '', HostPort: '8080' }], '81/tcp': [{ HostIp: '', HostPort: '8081' }] },
    },
  ],
  [
    ['-p', 'target=80,published=8080,protocol=udp'],
    { ExposedPorts: { '80/udp': {} } },
    { PortBindings: { '80/udp': [{ HostIp: '', HostPort: '8080' }] } },
  ],
  [
    ['-v', '/anonymous', '-v', 'named:/n:ro', '-v', '/host:/h'],
    { Volumes: { '/anonymous': {} } },
    { Binds: ['named:/n:ro', '/host:/h'] },
  ],
  [['-v', './here:/h'], {}, { Binds: [`${process.cwd()}/here:/h`] }],
  [['--mount', 'type=volume,src=v,dst=/d'], {}, { Mounts: [{ Type: 'volume', Source: 'v', Target: '/d' }] }],
  [
    ['--mount', 'source=v,target=/d,readonly,volume-nocopy=true'],
    {},
    { Mounts: [{ Type: 'volume', Source: 'v', Target: '/d', ReadOnly: true, VolumeOptions: { NoCopy: true } }] },
  ],
  [
    ['--mount', 'type=bind,"src=/a,b",dst=/d,bind-propagation=rshared,ro=false'],
    {},
    {
      Mounts: [
        { Type: 'bind', Source: '/a,b', Target: '/d', BindOptions: { Propagation: 'rshared' }, ReadOnly: false },
      ],
    },
  ],
  [['--mount', 'dst=/d'], {}, { Mounts: [{ Type: 'volume', Target: '/d' }] }],
  [
    ['--mount', 'type=tmpfs,dst=/t,tmpfs-size=1m,tmpfs-mode=1770', '--tmpfs', '/u:exec', '--tmpfs', '/w'],
    {},
    {
      Mounts: [{ Type: 'tmpfs', Target: '/t', TmpfsOptions: { SizeBytes: 2 ** 20, Mode: 0o1770 } }],
      Tmpfs: { '/u': 'exec', '/w': '' },
    },
  ],
  [
    [
      '--memory',
      '64m',
      '--memory-swap',
      '-1',
      '--memory-reservation',
      '1k',
      '--kernel-memory',
      '1g',
      '--shm-size',
      '1m',
      '--memory-swappiness',
      '0',
    ],
    {},
    {
      Memory: 2 ** 26,
      MemorySwap: -1,
      MemoryReservation: 1024,
      KernelMemory: 2 ** 30,
      ShmSize: 2 ** 20,
      MemorySwappiness: 0,
    },
  ],
  [['--cpus', '1.5'], {}, { NanoCpus: 1.5e9 }],
  [
    ['-c', '512', '--cpu-period', '1000', '--cpu-quota', '-1', '--cpuset-cpus', '0-1', '--cpuset-mems', '0'],
    {},
    { CpuShares: 512, CpuPeriod: 1000, CpuQuota: -1, CpusetCpus: '0-1', CpusetMems: '0' },
  ],
  [
    [
      '--blkio-weight',
      '10',
      '--blkio-weight-device',
      '/dev/x:20',
      '--device-read-bps',
      '/dev/x:1m',
      '--device-write-iops',
      '/dev/x:5',
    ],
    {},
    {
      BlkioWeight: 10,
      BlkioWeightDevice: [{ Path: '/dev/x', Weight: 20 }],
      BlkioDeviceReadBps: [{ Path: '/dev/x', Rate: 2 ** 20 }],
      BlkioDeviceWriteIOps: [{ Path: '/dev/x', Rate: 5 }],
    },
  ],
  [
    ['--ulimit', 'nofile=10:20', '--ulimit', 'core=-1'],
    {},
    {
      Ulimits: [
        { Name: 'nofile', Soft: 10, Hard: 20 },
        { Name: 'core', Soft: -1, Hard: -1 },
      ],
    },
  ],
  [
    ['--device', '/dev/a', '--device', '/dev/a:/dev/b', '--device', '/dev/a:r', '--device', '/dev/a:/dev/b:rw'],
    {},
    {
      Devices: [
        { PathOnHost: '/dev/a', PathInContainer: '/dev/a', CgroupPermissions: 'rwm' },
        { PathOnHost: '/dev/a', PathInContainer: '/dev/b', CgroupPermissions: 'rwm' },
        { PathOnHost: '/dev/a', PathInContainer: '/dev/a', CgroupPermissions: 'r' },
        { PathOnHost: '/dev/a', PathInContainer: '/dev/b', CgroupPermissions: 'rw' },
      ],
    },
  ],
  [
    ['--cap-add', 'NET_ADMIN', '--cap-drop', 'ALL', '--privileged', '--read-only', '--group-add', 'g'],
    {},
    { CapAdd: ['NET_ADMIN'], CapDrop: ['ALL'], Privileged: true, ReadonlyRootfs: true, GroupAdd: ['g'] },
  ],
  [
    ['--add-host', 'a:1.2.3.4', '--dns', '1.1.1.1', '--dns-option', 'ndots:1', '--dns-search', 'x.y'],
    {},
    { ExtraHosts: ['a:1.2.3.4'], Dns: ['1.1.1.1'], DnsOptions: ['ndots:1'], DnsSearch: ['x.y'] },
  ],
  [
    ['--link', 'db', '--link', 'db:other', '--volumes-from', 'x:ro', '--volume-driver', 'local'],
    {},
    { Links: ['db:db', 'db:other'], VolumesFrom: ['x:ro'], VolumeDriver: 'local' },
  ],
  [
    ['--network', 'host', '--pid', 'host', '--ipc', 'container:x', '--uts', 'host', '--userns', 'host'],
    {},
    { NetworkMode: 'host', PidMode: 'host', IpcMode: 'container:x', UTSMode: 'host', UsernsMode: 'host' },
  ],
  [['--net', 'none'], {}, { NetworkMode: 'none' }],
  [
    ['--log-driver', 'json-file', '--log-opt', 'max-size=1m', '--log-opt', 'max-file=2'],
    {},
    { LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '2' } } },
  ],
  [['--restart', 'on-failure:3'], {}, { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 3 } }],
  [['--restart', 'no'], {}, { RestartPolicy: { Name: 'no', MaximumRetryCount: 0 } }],
  [
    [
      '--oom-kill-disable',
      '--oom-score-adj',
      '-5',
      '--pids-limit',
      '-1',
      '--sysctl',
      'net.x=1',
      '--storage-opt',
      'size=1g',
      '--cgroup-parent',
      '/p',
      '--runtime',
      'runc',
    ],
    {},
    {
      OomKillDisable: true,
      OomScoreAdj: -5,
      PidsLimit: -1,
      Sysctls: { 'net.x': '1' },
      StorageOpt: { size: '1g' },
      CgroupParent: '/p',
      Runtime: 'runc',
    },
  ],
  [
    ['--security-opt', 'no-new-privileges', '--security-opt', 'seccomp=unconfined', '--security-opt', 'label:disable'],
    {},
    { SecurityOpt: ['no-new-privileges', 'seccomp=unconfined', 'label:disable'] },
  ],
] as const) {
  test(`run ${argv.join(' ')}`, () => {
    assert.deepEqual(bodyFor(...argv), { ...plain, ...config, HostConfig: { ...Network, ...host } });
  });
}

test('variables of files come before those of the line, labels of files too', () => {
  const { Env, Labels } = bodyFor('-e', 'A=2', '--env-file', join(folder, 'env'), '--label-file', join(folder, 'env'));

  assert.deepEqual(Env, ['A=1', 'B= two words ', 'GANTRY_TEST_GIVEN=given', 'A=2']);
  assert.equal(Labels?.['A'], '1');
});

test('addresses and aliases belong to the network that the container is in', () => {
  const { NetworkingConfig } = bodyFor(
    '--network',
    'back',
    '--ip',
    '10.0.0.2',
    '--network-alias',
    'a',
    '--net-alias',
    'b',
  );

  assert.deepEqual(NetworkingConfig, {
    EndpointsConfig: { back: { IPAMConfig: { IPv4Address: '10.0.0.2' }, Aliases: ['a', 'b'] } },
  });
});

test('a seccomp profile’s file is read here', () => {
  assert.deepEqual(bodyFor('--security-opt', `seccomp=${join(folder, 'seccomp.json')}`).HostConfig?.SecurityOpt, [
    'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}',
  ]);
});

for (const argv of [
  ['-p', 'x'],
  ['-p', '80-70'],
  ['-p', '1-3:5-6'],
  ['-p', '99999:1'],
  ['--expose', 'x'],
  ['--mount', 'type=volume,src=v'],
  ['--mount', 'type=volume,dst=/x,unheard=of'],
  ['--mount', 'type=volume,dst=/x,readonly=maybe'],
  ['--annotation', 'a=b'],
  ['--mount', 'type=tmpfs,dst=/x,volume-nocopy'],
  ['--ulimit', 'nofile'],
  ['--ulimit', 'nofile=20:10'],
  ['--restart', 'sometimes'],
  ['--restart', 'always:3'],
  ['--health-cmd', 'true', '--no-healthcheck'],
  ['--device-read-bps', '/dev/x'],
  ['--env-file', '/nowhere'],
  ['-e', '=x'],
  ['--ip', '1.2.3.4', '--network', 'host'],
  ['--security-opt', 'seccomp=/nowhere'],
]) {
  test(`run ${argv.join(' ')} is refused with 125`, () => assert.throws(() => bodyFor(...argv), { code: 125 }));
}

test('a name with blanks in a file of variables is refused', () => {
  assert.throws(() => bodyFor('--env-file', join(folder, 'wrong')), /contains blanks/);
});

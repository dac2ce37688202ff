import assert from 'node:assert/strict';
import { test } from 'node:test';

import { effectiveCapabilities } from '../../../host/confinement/privileges.ts';
import type { Namespaces } from '../../../oci/description.ts';
import { ociSpec } from '../../../oci/spec.ts';
import type { HostConfigBody } from '../../settings/host-config/host-config-schema.ts';
import { completeHostConfig } from '../../settings/host-config/host-config.ts';
import { parseBind } from '../../settings/mounts/mount-points.ts';
import type { Container } from '../../store.ts';
import { describeContainer } from './process.ts';

type Spec = {
  process: {
    env: string[];
    args: string[];
    cwd: string;
    capabilities: Record<string, string[]>;
    noNewPrivileges: boolean;
    rlimits: { type: string; soft: number; hard: number }[];
  };
  root: { readonly: boolean };
  mounts: { destination: string; type: string; source: string; options: string[] }[];
  linux: {
    namespaces: { type: string; path?: string }[];
    resources: {
      memory: Record<string, unknown>;
      cpu: Record<string, unknown>;
      pids?: { limit: number };
      devices: object[];
    };
    devices: { path: string }[];
    maskedPaths: string[];
    readonlyPaths: string[];
    seccomp?: { defaultAction: string; syscalls: { names: string[]; action: string }[] };
  };
};

const none: Namespaces = { network: '/proc/1/fd/3', pid: undefined, ipc: undefined, uts: undefined };
const emptyRoot = import.meta.dirname;
const files = { hostname: '/c/hostname', hosts: '/c/hosts', resolvConf: '/c/resolv.conf' };

function specOf(
  body: HostConfigBody = {},
  config: Partial<Container['config']> = {},
  namespaces = none,
  uid = 0,
): Spec {
  const hostConfig = completeHostConfig(body, { logDriver: 'none', logOpts: {}, runtime: 'runc' });
  const container = {
    id: 'c1',
    path: 'sleep',
    args: ['1'],
    hostConfig,
    mounts: (hostConfig.Binds ?? []).map((bind) => parseBind(bind, '/var/lib/gantry')),
    config: { Hostname: 'box', Domainname: '', User: '', Tty: false, WorkingDir: '', Env: [], ...config },
  } as unknown as Container;
  const description = describeContainer(container, {
    root: { path: '/root', visibleAt: emptyRoot },
    user: { uid, gid: 0, additionalGids: [0], home: '/root' },
    namespaces,
    users: undefined,
    files,
    linkVariables: [],
    shm: undefined,
    cgroup: { path: '/docker/c1', bySystemd: false },
    defaultUlimits: { core: { soft: 0, hard: 0 } },
    devices: { env: [], deviceNodes: [], mounts: [], hooks: [] },
  });
  return ociSpec(description) as Spec;
}

const mountAt = (spec: Spec, path: string) => spec.mounts.find(({ destination }) => destination === path);

test('a plain container has the usual capabilities, as far as the daemon has them', () => {
  const { capabilities } = specOf().process;

  const held = effectiveCapabilities();
  assert.equal(capabilities.bounding?.includes('CAP_SYS_ADMIN'), false);
  assert.equal(capabilities.bounding?.includes('CAP_CHOWN'), held.has('CAP_CHOWN'));
  assert.ok(capabilities.effective?.every((name) => held.has(name)));
});

test('another user than root has no effective capability', () => {
  const { capabilities } = specOf({}, {}, none, 1000).process;

  assert.deepEqual(capabilities.effective, []);
  assert.notDeepEqual(capabilities.bounding, []);
});

test('a privileged container has no filter and no masked path', () => {
  const { linux } = specOf({ Privileged: true });

  assert.equal(linux.seccomp, undefined);
  assert.deepEqual(linux.maskedPaths, []);
  assert.ok(linux.devices.some(({ path }) => path === '/dev/null'));
});

test('a plain container has a filter, masked and read-only paths', () => {
  const { linux } = specOf();

  assert.ok(linux.seccomp);
  assert.ok(linux.maskedPaths.includes('/proc/kcore'));
  assert.ok(linux.readonlyPaths.includes('/proc/sys'));
});

test('the filter can be switched off', () => {
  assert.equal(specOf({ SecurityOpt: ['seccomp=unconfined'] }).linux.seccomp, undefined);
});

test('a filter of the client takes the place of the default', () => {
  const profile = JSON.stringify({
    defaultAction: 'SCMP_ACT_ALLOW',
    syscalls: [{ names: ['mkdir'], action: 'SCMP_ACT_ERRNO' }],
  });

  const { seccomp } = specOf({ SecurityOpt: [`seccomp=${profile}`] }).linux;

  assert.equal(seccomp?.defaultAction, 'SCMP_ACT_ALLOW');
  assert.deepEqual(seccomp?.syscalls, [{ names: ['mkdir'], action: 'SCMP_ACT_ERRNO' }]);
});

test('no new privileges in both of its spellings', () => {
  const spellings = [['no-new-privileges'], ['no-new-privileges:true'], ['no-new-privileges=false'], []];

  assert.deepEqual(
    spellings.map((SecurityOpt) => specOf({ SecurityOpt }).process.noNewPrivileges),
    [true, true, false, false],
  );
});

test('the environment has defaults that the container can change and take away', () => {
  assert.deepEqual(
    new Set(specOf({}, { Env: ['PATH=/mine', 'A=1', 'HOSTNAME'] }).process.env),
    new Set(['PATH=/mine', 'A=1', 'HOME=/root']),
  );
  assert.ok(specOf({}, { Tty: true }).process.env.includes('TERM=xterm'));
});

test('memory has as much swap again unless something is said', () => {
  const { memory } = specOf({ Memory: 64 * 1024 * 1024 }).linux.resources;

  assert.equal(memory.limit, 64 * 1024 * 1024);
  assert.ok(memory.swap === undefined || memory.swap === 128 * 1024 * 1024);
});

test('a missing limit is not mentioned', () => {
  const { memory, cpu, pids } = specOf().linux.resources;

  assert.deepEqual({ memory, cpu, pids }, { memory: undefined, cpu: undefined, pids: undefined });
});

test('a negative limit of processes or time is none, and a swappiness of 0 is one', () => {
  const { memory, cpu, pids } = specOf({ PidsLimit: -1, CpuQuota: -1, MemorySwappiness: 0 }).linux.resources;

  assert.deepEqual({ memory, cpu, pids }, { memory: { swappiness: 0 }, cpu: undefined, pids: undefined });
  assert.equal(specOf({ PidsLimit: 20 }).linux.resources.pids?.limit, 20);
});

test('billionths of a CPU are a share of the usual period', () => {
  assert.deepEqual(specOf({ NanoCpus: 500_000_000 }).linux.resources.cpu, { quota: 50_000, period: 100_000 });
});

test('paths are hidden unless the client says which, also in a record that says nothing of them', () => {
  const { maskedPaths, readonlyPaths } = specOf({ MaskedPaths: [], ReadonlyPaths: ['/proc/bus'] }).linux;

  assert.deepEqual([maskedPaths, readonlyPaths], [[], ['/proc/bus']]);
  assert.ok(specOf().linux.maskedPaths.includes('/proc/kcore'));
  assert.deepEqual(specOf({ Privileged: true }).linux.maskedPaths, []);
});

test('an outer mount does not cover an inner one', () => {
  const { mounts } = specOf({ Binds: ['/x:/a/b', '/y:/a'] });

  const order = mounts.map(({ destination }) => destination);
  assert.ok(order.indexOf('/a') < order.indexOf('/a/b'));
});

test("the client's mount wins over the daemon's own", () => {
  const spec = specOf({ Binds: ['/mine:/etc/hosts:ro'] });

  assert.equal(mountAt(spec, '/etc/hosts')?.source, '/mine');
  assert.ok(mountAt(spec, '/etc/hosts')?.options.includes('ro'));
  assert.equal(mountAt(spec, '/etc/hostname')?.source, files.hostname);
});

test('/dev/shm has the wanted size', () => {
  assert.ok(mountAt(specOf({ ShmSize: 4096 }), '/dev/shm')?.options.includes('size=4096'));
});

test('a tmpfs can take back the careful defaults', () => {
  const options = mountAt(specOf({ Tmpfs: { '/run': 'exec,size=1m' } }), '/run')?.options ?? [];

  assert.ok(options.lastIndexOf('exec') > options.lastIndexOf('noexec'));
  assert.ok(options.includes('size=1m'));
});

test("a namespace of the host's is not made, one of another's is joined", () => {
  const { namespaces } = specOf({}, {}, { network: 'host', pid: '/proc/7/ns/pid', ipc: undefined, uts: 'host' }).linux;

  assert.deepEqual(namespaces, [{ type: 'mount' }, { type: 'pid', path: '/proc/7/ns/pid' }, { type: 'ipc' }]);
});

test("a limit without CAP_SYS_RESOURCE is cut to the daemon's own", () => {
  const { rlimits } = specOf({ Ulimits: [{ Name: 'nofile', Soft: 1_000_000_000, Hard: 1_000_000_000 }] }).process;

  const nofile = rlimits.find(({ type }) => type === 'RLIMIT_NOFILE')!;
  assert.equal(nofile.hard < 1_000_000_000, !effectiveCapabilities().has('CAP_SYS_RESOURCE'));
  assert.ok(rlimits.some(({ type }) => type === 'RLIMIT_CORE'));
});

test('a device is given with the permissions of the cgroup', () => {
  const { linux } = specOf({
    Devices: [{ PathOnHost: '/dev/full', PathInContainer: '/dev/brim', CgroupPermissions: 'r' }],
  });

  assert.deepEqual(
    linux.devices.map(({ path }) => path),
    ['/dev/brim'],
  );
  assert.deepEqual(linux.resources.devices.at(-1), { allow: true, type: 'c', major: 1, minor: 7, access: 'r' });
});

test('a missing device is refused', () => {
  assert.throws(() => specOf({ Devices: [{ PathOnHost: '/dev/nothing-here' }] }), { kind: 'failed' });
});

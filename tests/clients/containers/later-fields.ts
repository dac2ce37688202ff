import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { unframe } from '@gantry/client/frames.ts';
import type { Api } from '@gantry/testing/api.ts';

/** An engine, a version of its API, and a folder of its host. */
export type LaterSide = Readonly<{ api: Api; host: string; version: string }>;

/** Work at several versions of the API, and its outcome as dockerd 28.5 has it. */
export type LaterRow = Readonly<{
  title: string;
  work: (side: LaterSide) => Promise<unknown>;
  expected: Readonly<Record<string, unknown>>;
  /** Why the outcome differs from that of dockerd 28.5. */
  chosen?: string;
}>;

export type Json = Record<string, unknown>;
type Shown = { Config: Json; HostConfig: Json; Mounts: Json[] };
type Look = (shown: Shown) => unknown;

const NO_LOOK: Look = () => undefined;

/** The answer to a creation: 201 with a part of an inspect, or the message of the refusal. */
export async function created({ api }: LaterSide, body: Json, look: Look = NO_LOOK): Promise<unknown> {
  const { status, body: made } = await api.post<{ Id: string; Warnings: string[]; message: string }>(
    '/containers/create',
    { Image: 'busybox', Cmd: ['true'], ...body },
  );
  if (status !== 201) return [status, made.message];
  const { body: shown } = await api.get<Shown>(`/containers/${made.Id}/json`);
  await api.delete(`/containers/${made.Id}?v=1`);
  const seen = look(shown);
  return [status, ...(made.Warnings.length === 0 ? [] : [made.Warnings]), ...(seen === undefined ? [] : [seen])];
}

/** Lines of a container's output, sorted: two streams have no order. A refusal is its status. */
export async function output({ api }: LaterSide, script: string, body: Json): Promise<unknown> {
  const { status, body: made } = await api.post<{ Id: string; message: string }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['sh', '-c', script],
    ...body,
  });
  if (status !== 201) return [status, made.message];
  const started = await api.post<{ message?: string } | undefined>(`/containers/${made.Id}/start`);
  await api.post(`/containers/${made.Id}/wait`);
  const { raw } = await api.get(`/containers/${made.Id}/logs?stdout=1&stderr=1`);
  await api.delete(`/containers/${made.Id}?v=1`);
  if (started.status !== 204) return [started.status, started.body?.message];
  const { stdout, stderr } = unframe(raw);
  return `${stdout}${stderr}`.trim().split('\n').toSorted();
}

/** A folder of the host with another mount below it, which is gone with the machine's namespace of the test. */
export function makeTree(host: string): () => void {
  mkdirSync(join(host, 'tree/below'), { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(host, 'tree/below')]);
  return () => execFileSync('umount', [join(host, 'tree/below')]);
}

export const mounts = (mount: Json): Json => ({ HostConfig: { Mounts: [{ Target: '/m', ...mount }] } });
const tree = ({ host }: LaterSide, more: Json = {}): Json =>
  mounts({ Type: 'bind', Source: join(host, 'tree'), ReadOnly: true, ...more });
const WRITES = 'touch /m/x && echo top; touch /m/below/x && echo below; rm -f /m/x /m/below/x';
const refusal = (path: string): string => `touch: ${path}: Read-only file system`;
const FLAT = ['below', refusal('/m/x')];
const RECURSIVE = [refusal('/m/below/x'), refusal('/m/x')];

const foreign = (Type: string, field: string, body: Json, expected: LaterRow['expected']): LaterRow => ({
  title: `${field} of a mount of type ${Type}`,
  work: async (side) => {
    const answer = (await created(side, mounts({ Type, ...body, [field]: {} }))) as [number];
    return answer[0];
  },
  expected,
});

const tmpfs = (options: readonly string[][], expected: unknown): LaterRow => ({
  title: `tmpfs with Options ${JSON.stringify(options)}`,
  work: async (side) =>
    await output(
      side,
      'grep " /m " /proc/mounts | cut -d" " -f4 | sed s/,inode64//',
      mounts({ Type: 'tmpfs', TmpfsOptions: { Options: options } }),
    ),
  expected: { '1.51': expected },
});

const field = (title: string, body: Json, look: Look, expected: LaterRow['expected'], chosen?: string): LaterRow => ({
  title,
  work: async (side) => await created(side, body, look),
  expected,
  ...(chosen !== undefined && { chosen }),
});

const secured = (option: string, expected: unknown): LaterRow => ({
  title: `--security-opt ${option}`,
  work: async (side) =>
    await output(side, 'mkdir /sys/fs/cgroup/pids/x && rmdir /sys/fs/cgroup/pids/x; echo $?', {
      HostConfig: { SecurityOpt: [option] },
    }),
  expected: { '1.51': expected },
});

const HELD = "mkdir: can't create directory '/sys/fs/cgroup/pids/x': Read-only file system";
const IGNORED =
  "WARNING: the container-wide volume-driver configuration is ignored for volumes specified via 'mount'. " +
  "Use '--mount type=volume,volume-driver=...' instead";
const bothDrivers = {
  HostConfig: { VolumeDriver: 'local', Mounts: [{ Type: 'volume', Source: 'driven', Target: '/m' }] },
};
const annotations = (Annotations: Json): Json => ({ HostConfig: { Annotations } });
const shownAnnotations: Look = ({ HostConfig }) => HostConfig.Annotations ?? 'none';
const healthcheck = (Healthcheck: Json): Json => ({ Healthcheck });
const honoured = 'a field that is written counts at any version';

export const LATER_ROWS: readonly LaterRow[] = [
  foreign('bind', 'TmpfsOptions', { Source: '/tmp' }, { '1.41': 201, '1.42': 400, '1.51': 400 }),
  foreign('bind', 'VolumeOptions', { Source: '/tmp' }, { '1.41': 400, '1.42': 400 }),
  foreign('volume', 'TmpfsOptions', { Source: 'vol' }, { '1.41': 201, '1.42': 400 }),
  foreign('volume', 'BindOptions', { Source: 'vol' }, { '1.41': 400, '1.42': 400 }),
  foreign('tmpfs', 'VolumeOptions', {}, { '1.41': 201, '1.42': 400 }),
  foreign('tmpfs', 'BindOptions', {}, { '1.41': 400, '1.42': 400 }),
  {
    title: 'CreateMountpoint of a missing source: created by the start',
    work: async (side) => {
      const Source = join(side.host, `made-${side.version}`);
      const body = mounts({ Type: 'bind', Source, BindOptions: { CreateMountpoint: true } });
      const answer = await created(side, body);
      const before = existsSync(Source);
      return [answer, before, await output(side, 'ls -d /m', body), existsSync(Source)];
    },
    expected: { '1.42': [[201], false, ['/m'], true], '1.51': [[201], false, ['/m'], true] },
  },
  {
    title: 'a read-only bind of Mounts, and the mount below it',
    work: async (side) => await output(side, WRITES, tree(side)),
    expected: { '1.41': FLAT, '1.43': FLAT, '1.44': RECURSIVE, '1.51': RECURSIVE },
  },
  {
    title: 'a read-only bind of Binds, and the mount below it',
    work: async (side) => await output(side, WRITES, { HostConfig: { Binds: [`${join(side.host, 'tree')}:/m:ro`] } }),
    expected: { '1.24': FLAT, '1.43': FLAT, '1.44': RECURSIVE },
  },
  {
    title: 'a read-only bind of a file',
    work: async (side) => {
      const file = mounts({ Type: 'bind', Source: '/etc/hostname', ReadOnly: true });
      return await output(side, 'echo x > /m', file);
    },
    expected: { '1.44': ["sh: can't create /m: Read-only file system"] },
  },
  {
    title: 'a privileged container with a read-only bind, and the mount below it',
    work: async (side) => {
      const { HostConfig } = tree(side) as { HostConfig: Json };
      return await output(side, WRITES, { HostConfig: { ...HostConfig, Privileged: true } });
    },
    expected: { '1.43': FLAT, '1.44': RECURSIVE },
  },
  {
    title: 'ReadOnlyNonRecursive',
    work: async (side) => await output(side, WRITES, tree(side, { BindOptions: { ReadOnlyNonRecursive: true } })),
    expected: { '1.43': FLAT, '1.44': FLAT },
  },
  {
    title: 'ReadOnlyForceRecursive',
    work: async (side) => await output(side, WRITES, tree(side, { BindOptions: { ReadOnlyForceRecursive: true } })),
    expected: { '1.44': RECURSIVE },
  },
  {
    title: 'NonRecursive: the mount below is not there',
    work: async (side) => await output(side, WRITES, tree(side, { BindOptions: { NonRecursive: true } })),
    expected: { '1.44': RECURSIVE },
  },
  ...(
    [
      [false, { ReadOnlyNonRecursive: true }, '!ReadOnly && BindOptions.ReadOnlyNonRecursive'],
      [false, { ReadOnlyForceRecursive: true }, '!ReadOnly && BindOptions.ReadOnlyForceRecursive'],
      [
        true,
        { ReadOnlyForceRecursive: true, ReadOnlyNonRecursive: true },
        'ReadOnlyNonRecursive && BindOptions.ReadOnlyForceRecursive',
      ],
    ] as const
  ).map(([ReadOnly, BindOptions, conflict]): LaterRow => ({
    title: `${ReadOnly ? 'read-only' : 'writable'} with ${JSON.stringify(BindOptions)}`,
    work: async (side) => await output(side, 'true', tree(side, { ReadOnly, BindOptions })),
    expected: { '1.44': [400, `mount options conflict: ${conflict}`] },
    chosen: 'refused at the creation, not at the start',
  })),
  tmpfs([['exec']], ['rw,nosuid,nodev,relatime']),
  tmpfs([['noexec']], ['rw,nosuid,nodev,noexec,relatime']),
  ...[[['size', '1m']], [['suid']], [['exec'], ['ro']], [['']]].map((options) =>
    tmpfs(options, [400, `invalid mount config for type "tmpfs": invalid option: ${options.at(-1)![0]!}`]),
  ),
  tmpfs([[]], [400, 'invalid mount config for type "tmpfs": invalid option array length']),
  tmpfs([['a', 'b', 'c']], [400, 'invalid mount config for type "tmpfs": invalid option array length']),
  field('VolumeDriver beside Mounts', bothDrivers, NO_LOOK, { '1.47': [201], '1.48': [201, [IGNORED]] }),
  field('Annotations', annotations({ 'a.b': 'c' }), shownAnnotations, {
    '1.43': [201, { 'a.b': 'c' }],
    '1.51': [201, { 'a.b': 'c' }],
  }),
  field(
    'Annotations at 1.41',
    annotations({ 'a.b': 'c' }),
    shownAnnotations,
    { '1.41': [201, { 'a.b': 'c' }] },
    honoured,
  ),
  field('no Annotations', annotations({}), shownAnnotations, { '1.51': [201, 'none'] }),
  field('an empty key of Annotations', annotations({ '': 'x' }), shownAnnotations, {
    '1.51': [400, 'invalid Annotations: the empty string is not permitted as an annotation key'],
  }),
  field('StartInterval', healthcheck({ StartInterval: 1e9 }), ({ Config }) => Config.Healthcheck, {
    '1.44': [201, { StartInterval: 1e9 }],
  }),
  field('a StartInterval below 1 ms', healthcheck({ StartInterval: 5 }), NO_LOOK, {
    '1.44': [400, 'StartInterval in Healthcheck cannot be less than 1ms'],
  }),
  ...[
    [
      [24, 80],
      [24, 80],
    ],
    [[1], [1, 0]],
    [
      [1, 2, 3],
      [1, 2],
    ],
  ].map(([ConsoleSize, shown]) =>
    field(
      `ConsoleSize ${JSON.stringify(ConsoleSize)}`,
      { Tty: true, HostConfig: { ConsoleSize } },
      ({ HostConfig }) => HostConfig.ConsoleSize,
      {
        '1.42': [201, shown],
      },
    ),
  ),
  secured('writable-cgroups=true', ['0']),
  secured('writable-cgroups', ['0']),
  secured('writable-cgroups=false', ['1', HELD]),
  {
    title: 'Umask of the first process and of an exec',
    work: async (side) => await output(side, 'umask', { HostConfig: { Umask: 0o27 } }),
    expected: { '1.55': ['0027'] },
    chosen: 'dockerd 28.5 does not know it',
  },
];

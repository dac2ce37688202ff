import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Processor time of the daemon's main thread for one request, which no other request can have; minutes without limits. */
const MAX_SECONDS = 3;
/** The first bodies of a daemon make its heap grow: 71 MB were measured. */
const MAX_GROWTH_MB = 96;

const list = <T>(count: number, of: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => of(n));
const map = <T>(count: number, of: (n: number) => [string, T]): Record<string, T> =>
  Object.fromEntries(list(count, of));

/** Bodies with as many values as fit into a request. */
const rows: readonly (readonly [name: string, status: number, body: () => object])[] = [
  ['Binds', 400, () => ({ HostConfig: { Binds: list(99_000, (n) => `/tmp:/b${n}`) } })],
  ['Mounts', 400, () => ({ HostConfig: { Mounts: list(20_000, (n) => ({ Type: 'tmpfs', Target: `/b${n}` })) } })],
  ['Tmpfs', 400, () => ({ HostConfig: { Tmpfs: map(99_000, (n) => [`/t${n}`, '']) } })],
  ['Volumes', 400, () => ({ Volumes: map(99_000, (n) => [`/v${n}`, {}]) })],
  ['1,000 binds', 201, () => ({ HostConfig: { Binds: list(1000, (n) => `/tmp:/b${n}`) } })],
  ['1,000 volumes', 201, () => ({ Volumes: map(1000, (n) => [`/v${n}`, {}]) })],
  ['Labels', 400, () => ({ Labels: map(90_000, (n) => [`l${n}`, 'x']) })],
  ['20,000 labels', 201, () => ({ Labels: map(20_000, (n) => [`l${n}`, 'x']) })],
  ['Env', 201, () => ({ Env: list(99_000, (n) => `E${n}=x`) })],
  ['Cmd', 201, () => ({ Cmd: list(99_000, () => 'x') })],
  ['ExtraHosts', 201, () => ({ HostConfig: { ExtraHosts: list(99_000, (n) => `h${n}:1.2.3.4`) } })],
  ['Dns', 201, () => ({ HostConfig: { Dns: list(99_000, () => '1.2.3.4') } })],
  ['GroupAdd', 201, () => ({ HostConfig: { GroupAdd: list(99_000, String) } })],
  ['CapAdd', 201, () => ({ HostConfig: { CapAdd: list(99_000, () => 'NET_ADMIN') } })],
  ['Sysctls', 201, () => ({ HostConfig: { Sysctls: map(90_000, (n) => [`net.a${n}`, '1']) } })],
  ['SecurityOpt', 201, () => ({ HostConfig: { SecurityOpt: list(99_000, () => 'no-new-privileges') } })],
  ['PortBindings', 201, () => ({ HostConfig: { PortBindings: map(20_000, (n) => [`${n + 1}/tcp`, [{}]]) } })],
  ['Links', 400, () => ({ HostConfig: { Links: list(99_000, () => 'nope:b') } })],
  [
    'options of a log driver',
    400,
    () => ({ HostConfig: { LogConfig: { Type: 'json-file', Config: map(90_000, (n) => [`o${n}`, 'x']) } } }),
  ],
];

const LABELS = map(90_000, (n) => [`l${n}`, 'x']);
const VALUES = list(1500, (n) => `v${n}`);
/** Each is a program to be compiled, and run on each name. */
const PATTERNS = list(900, (n) => `(a?b?){9}${n}`);
const subnets = (of: (n: number) => string): object[] => list(40_000, (n) => ({ Subnet: of(n) }));
const byte = (n: number): number => n & 255;

/** Other requests; a filter has as many values as fit into the head of a request. */
const others: readonly (readonly [status: number, method: 'GET' | 'POST', path: string, body?: object])[] = [
  [400, 'POST', '/commit?container=long', { Labels: LABELS }],
  [400, 'POST', '/volumes/create', { Name: 'long', Labels: LABELS }],
  [400, 'POST', '/volumes/create', { Name: 'options', DriverOpts: LABELS }],
  [400, 'POST', '/networks/create', { Name: 'labels', Labels: LABELS }],
  [201, 'POST', '/networks/create', { Name: 'options', Options: LABELS }],
  [201, 'POST', '/networks/create', { Name: 'ipam', IPAM: { Options: LABELS } }],
  [
    400,
    'POST',
    '/networks/create',
    { Name: 'n', IPAM: { Config: subnets((n) => `10.${byte(n >> 8)}.${byte(n)}.0/24`) } },
  ],
  [400, 'POST', '/networks/create', { Name: 'n', IPAM: { Config: subnets(() => '10.0.0.0/24') } }],
  [400, 'POST', '/networks/create', { Name: 'n', IPAM: { Config: subnets((n) => `fd00:${n.toString(16)}::/64`) } }],
  ...['/containers/json', '/images/json', '/volumes', '/networks'].map(
    (path) => [200, 'GET', `${path}?filters=${encodeURIComponent(JSON.stringify({ label: VALUES }))}`] as const,
  ),
  ...['/containers/json', '/volumes', '/networks'].map(
    (path) => [400, 'GET', `${path}?filters=${encodeURIComponent(JSON.stringify({ name: PATTERNS }))}`] as const,
  ),
  [
    400,
    'GET',
    `/images/json?filters=${encodeURIComponent(JSON.stringify({ reference: list(900, (n) => `*a*b*${n}?`) }))}`,
  ],
  [
    200,
    'GET',
    `/containers/json?filters=${encodeURIComponent(JSON.stringify({ name: list(900, (n) => `^/web-${n}$`) }))}`,
  ],
  ...['/containers/prune', '/images/prune', '/volumes/prune', '/networks/prune'].map(
    (path) => [200, 'POST', `${path}?filters=${encodeURIComponent(JSON.stringify({ 'label!': VALUES }))}`] as const,
  ),
];

suite('long lists in a request', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: '1.41' });
    await engine.create(['true'], {}, 'long');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function ask(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
  ): Promise<{ status: number; body: { Id?: string }; raw: Buffer }> {
    const [seconds, megabytes] = [cpuSeconds(engine.pid), memoryMb(engine.pid)];

    const answer =
      method === 'GET' ? await engine.get<{ Id?: string }>(path) : await engine.post<{ Id?: string }>(path, body);

    assert.ok(cpuSeconds(engine.pid) - seconds < MAX_SECONDS, `${cpuSeconds(engine.pid) - seconds} s`);
    assert.ok(memoryMb(engine.pid) - megabytes < MAX_GROWTH_MB, `${memoryMb(engine.pid) - megabytes} MB`);
    return answer;
  }

  for (const [name, status, body] of rows) {
    test(`${name}: answered soon, with ${status}`, async () => {
      const answer = await ask('POST', '/containers/create', { Image: 'busybox', Cmd: ['true'], ...body() });

      assert.equal(answer.status, status, answer.raw.toString().slice(0, 200));
      if (answer.body.Id !== undefined)
        assert.equal((await engine.delete(`/containers/${answer.body.Id}?v=1`)).status, 204);
    });
  }

  for (const [status, method, path, body] of others) {
    test(`${path.slice(0, 40)} ${JSON.stringify(body)?.slice(0, 60)}: answered soon, with ${status}`, async () => {
      const answer = await ask(method, path, body);

      assert.equal(answer.status, status, answer.raw.toString().slice(0, 200));
    });
  }
});

/** Seconds of the main thread, in which requests are answered. */
function cpuSeconds(pid: number): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8').split(') ');
  const [user, system] = fields.split(' ').slice(11, 13);
  return (Number(user) + Number(system)) / 100;
}

function memoryMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Processor time of the daemon's main thread for one request, which no other request can have. */
const MAX_SECONDS = 1;
const MAX_GROWTH_MB = 160;

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
  ['Labels', 201, () => ({ Labels: map(90_000, (n) => [`l${n}`, 'x']) })],
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

suite('long lists in a creation', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const [name, status, body] of rows) {
    test(`${name}: answered soon, with ${status}`, async () => {
      const sent = { Image: 'busybox', Cmd: ['true'], ...body() };
      const [seconds, megabytes] = [cpuSeconds(engine.pid), memoryMb(engine.pid)];

      const answer = await engine.post<{ Id?: string; message?: string }>('/containers/create', sent);

      assert.equal(answer.status, status, answer.raw.toString().slice(0, 200));
      assert.ok(cpuSeconds(engine.pid) - seconds < MAX_SECONDS, `${cpuSeconds(engine.pid) - seconds} s`);
      assert.ok(memoryMb(engine.pid) - megabytes < MAX_GROWTH_MB, `${memoryMb(engine.pid) - megabytes} MB`);
      if (answer.body.Id !== undefined)
        assert.equal((await engine.delete(`/containers/${answer.body.Id}?v=1`)).status, 204);
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

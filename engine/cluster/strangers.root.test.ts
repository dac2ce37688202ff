import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';

/** Keeps so many connections of each kind open, and opens another one for each that ends. Prints a line when all have been opened. */
const ATTACK = `
const [host, counts] = JSON.parse(process.argv[1]);
const { connect: tcp } = process.getBuiltinModule('node:net');
const { connect: tls } = process.getBuiltinModule('node:tls');
const secure = () => tls({ host, port: 2377, rejectUnauthorized: false });
const head = ' HTTP/1.1\\r\\nHost: x\\r\\n';
const KINDS = {
  bodies: () => said(secure(), 'POST /v1/certificates' + head + 'Content-Length: 1048000\\r\\n\\r\\n' + ' '.repeat(1000000)),
  heads: () => said(secure(), 'POST /v1/certificates' + head),
  upgrades: () => said(secure(), 'POST /v1/session' + head + 'Connection: Upgrade\\r\\nUpgrade: gantry-session\\r\\n\\r\\n'),
  handshakes: () => said(tcp(2377, host), Buffer.from([22, 3, 1, 2, 0, 1])),
  plain: () => said(tcp(2377, host), 'GET /v1/ca' + head + '\\r\\n'),
  garbage: () => said(tcp(2377, host), Buffer.alloc(100000, 0xfe)),
  idle: () => tcp({ port: 2377, host, allowHalfOpen: true }),
};
function said(socket, bytes) {
  socket.write(bytes);
  return socket;
}
function keep(kind) {
  const socket = KINDS[kind]();
  socket.on('error', () => {});
  socket.on('end', () => socket.destroy());
  socket.on('close', () => setTimeout(keep, 500, kind));
}
const open = Object.entries(counts).flatMap(([kind, count]) => Array(count).fill(kind));
(function next() {
  for (const kind of open.splice(0, 100)) keep(kind);
  if (open.length > 0) setTimeout(next, 20);
  else console.log('all');
})();
`;

const MAX_GROWTH_MB = 64;

suite('strangers at port 2377', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let [manager, worker, stranger]: ClusterHost[] = [];
  before(async () => {
    hosts = await ClusterHosts.start(3);
    [manager, worker, stranger] = hosts.hosts;
    await manager!.init();
    await worker!.join(manager!, 'Worker');
    await leave(worker!);
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  for (const counts of [
    { bodies: 500, heads: 100 },
    { upgrades: 150, handshakes: 300, plain: 50, garbage: 50 },
    { idle: 10_000 },
  ]) {
    const name = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
    test(`a worker joins beside ${name.join(', ')}, which cost little and leave nothing`, async () => {
      const { pid } = manager!.engine;
      const descriptors = descriptorsOf(pid);
      await assertSmallGrowth(pid, MAX_GROWTH_MB, async () => {
        const attack = spawn('nsenter', [
          `--net=${stranger!.engine.netns}`,
          ...[process.execPath, '-e', ATTACK, JSON.stringify([manager!.ip, counts])],
        ]);
        await once(createInterface({ input: attack.stdout }), 'line');
        await worker!.join(manager!, 'Worker');
        await manager!.node('host2', ({ Status }) => Status.State === 'ready');
        attack.kill('SIGKILL');
        await once(attack, 'exit');
        await leave(worker!);
        await eventually('the descriptors of before', async () => {
          return await Promise.resolve(descriptorsOf(pid) <= descriptors + 5 ? true : undefined);
        });
      });
    });
  }

  async function leave(host: ClusterHost): Promise<void> {
    assert.equal((await host.engine.post('/swarm/leave')).status, 200);
    const { ID } = await manager!.node(host.name, ({ Status }) => Status.State === 'down');
    assert.equal((await manager!.engine.delete(`/nodes/${ID}`)).status, 200);
  }
});

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

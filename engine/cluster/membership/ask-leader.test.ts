import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';

import pino from 'pino';
import { Type } from 'typebox';

import { systemClock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { issue, newAuthority, newKey } from '../ca/certificates.ts';
import { NotLeader, WireClient } from '../wire/client.ts';
import { Nothing } from '../wire/schemas.ts';
import { route, WireServer } from '../wire/server.ts';
import { askLeader } from './ask-leader.ts';

const NOW = systemClock.now();
const root = newAuthority('root', NOW);

/** The address of a manager that answers the route `/ask`. */
async function manager(parts: AsyncDisposableStack, answer: () => unknown): Promise<string> {
  const { publicKey, privateKey } = newKey();
  const subject = { name: 'manager', unit: 'swarm-manager', organization: 'cluster' };
  const wanted = { subject, publicKey, now: NOW, lifeSeconds: 3600, dnsNames: ['swarm-manager'] };
  const port = await freePort();
  const server = await WireServer.open({
    ip: '127.0.0.1',
    port,
    identity: {
      certificate: issue(root, wanted),
      key: privateKey,
      root: root.certificate,
      clusterId: 'cluster',
    },
    routes: { 'POST /ask': route('anyone', Nothing, async () => await Promise.resolve(answer())) },
    admits: () => true,
    session: () => undefined,
    log: pino({ level: 'silent' }),
  });
  parts.use(server);
  return `127.0.0.1:${port}`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

test('why the leader cannot do it is told, also when the managers that are asked last do not lead or are away', async () => {
  await using parts = new AsyncDisposableStack();
  using client = new WireClient({ root: root.certificate }, systemClock);
  let asked = 0;
  const leader = await manager(parts, () => {
    asked += 1;
    throw new EngineError('unavailable', 'no authority signs');
  });
  const follower = await manager(parts, () => {
    throw new NotLeader(leader);
  });
  const away = `127.0.0.1:${await freePort()}`;
  const request = { path: '/ask', body: {}, answer: Type.Object({}), milliseconds: 500 };

  for (const managers of [
    [leader, away],
    [follower, away],
    [away, follower, leader],
  ]) {
    const before = asked;
    await assert.rejects(
      askLeader({ client, clock: systemClock }, () => managers, request),
      { message: 'no authority signs' },
    );
    assert.ok(asked > before + 1, 'it is asked again');
  }
});

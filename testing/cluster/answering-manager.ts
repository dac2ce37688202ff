import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

import { issue, newAuthority, newKey } from '@gantry/engine/cluster/ca/certificates.ts';
import { route, WireServer } from '@gantry/engine/cluster/wire/server.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';
import pino from 'pino';
import { Type } from 'typebox';

const NOW = systemClock.now();
export const root = newAuthority('root', NOW);

/** The address of a manager, for tests, that answers one path with what `answer` returns or throws. */
export async function answeringManager(
  parts: AsyncDisposableStack,
  path: string,
  answer: (body: unknown) => unknown,
): Promise<string> {
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
    routes: { [`POST ${path}`]: route('anyone', Type.Unknown(), async (body) => await answer(body)) },
    admits: () => true,
    upgrades: {},
    clock: systemClock,
    log: pino({ level: 'silent' }),
  });
  parts.use(server);
  return `127.0.0.1:${port}`;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

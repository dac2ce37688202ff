import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';

import { internalWord } from '@gantry/testing/internal-words.ts';
import { Type } from 'typebox';

import { systemClock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { issue, newAuthority, newKey } from '../ca/certificates.ts';
import { WireClient } from './client.ts';

const now = systemClock.now();
const root = newAuthority('root', now);

/** Address of a manager that answers every request, also an upgrade, with this text. */
async function answering(parts: DisposableStack, text: string, from = root, at = now): Promise<string> {
  const { publicKey, privateKey } = newKey();
  const wanted = { subject: { name: 'x' }, publicKey, now: at, lifeSeconds: 3600, dnsNames: ['swarm-manager'] };
  const server = createServer({ cert: issue(from, wanted), key: privateKey }, (_request, response) => {
    response.writeHead(400, { Connection: 'close' }).end(text);
  }).listen(0, '127.0.0.1');
  parts.defer(() => server.close());
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

suite('a manager that answers badly', () => {
  for (const text of ['hello', '', '['.repeat(100_000), 'null', '{"kind":7}', '{"__proto__":{"kind":"conflict"}}']) {
    test(`is an error: ${text.slice(0, 40)}`, async () => {
      using parts = new DisposableStack();
      const address = await answering(parts, text);
      using client = new WireClient({ root: root.certificate }, systemClock);

      for (const asked of [
        client.upgrade(address, '/v1/session', 60_000),
        client.ask(address, '/v1/ping', {}, Type.Object({}), 60_000),
      ]) {
        await assert.rejects(asked, (error) => {
          assert.equal(internalWord(messageOf(error)), undefined, messageOf(error));
          return true;
        });
      }
    });
  }
});

const [PAST, FUTURE] = [now.subtract({ hours: 21 * 365 * 24 }), now.add({ hours: 48 })];
suite('a certificate of a manager at the wrong time', () => {
  for (const [name, from, at, reason] of [
    ['an expired root', newAuthority('root', PAST), now, 'has expired'],
    ['a root that is not yet valid', newAuthority('root', FUTURE), now, 'is not yet valid'],
    ['an expired certificate', root, now.subtract({ hours: 2 }), 'has expired'],
    ['a certificate that is not yet valid', root, FUTURE, 'is not yet valid'],
  ] as const) {
    test(`${name} is not believed, and named`, async () => {
      using parts = new DisposableStack();
      const address = await answering(parts, '{}', from, at);
      using client = new WireClient({ root: from.certificate }, systemClock);
      const words = `${address}: its certificate or the cluster's root ${reason}: compare the clocks of both machines`;

      await assert.rejects(client.ask(address, '/v1/ping', {}, Type.Object({}), 60_000), { message: words });
      await assert.rejects(client.upgrade(address, '/v1/session', 60_000), { message: words });
    });
  }
});

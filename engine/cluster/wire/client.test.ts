import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
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

type Answer = (response: ServerResponse) => void;

/** Address of a manager that answers every request, also an upgrade, with this text, or as it likes. */
async function answering(parts: DisposableStack, answer: string | Answer, from = root, at = now): Promise<string> {
  const { publicKey, privateKey } = newKey();
  const wanted = { subject: { name: 'x' }, publicKey, now: at, lifeSeconds: 3600, dnsNames: ['swarm-manager'] };
  const server = createServer({ cert: issue(from, wanted), key: privateKey }, (_request, response) => {
    if (typeof answer === 'string') response.writeHead(400, { Connection: 'close' }).end(answer);
    else answer(response);
  }).listen(0, '127.0.0.1');
  parts.defer(() => {
    server.close();
    server.closeAllConnections();
  });
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

/** Answers that do not come to an end, and the reasons for which they are given up. */
const ENDLESS: readonly (readonly [name: string, answer: Answer, reason: RegExp])[] = [
  ['nothing', () => undefined, /^\S+ (?:has not answered \/v1\/ping for 0\.3 s|does not answer)$/],
  [
    'a head',
    (response) => response.writeHead(400).flushHeaders(),
    /^\S+ (?:has not answered \/v1\/ping for 0\.3 s|does not answer)$/,
  ],
  [
    'a byte at times',
    (response) => {
      const timer = setInterval(() => response.write(' '), 20);
      response.once('close', () => clearInterval(timer));
    },
    /^\S+ (?:has not answered \/v1\/ping for 0\.3 s|does not answer)$/,
  ],
  ['5 MB', (response) => response.writeHead(400).end(' '.repeat(5e6)), /^an answer is larger than 4 MB$/],
];
suite('an endless answer of a manager', () => {
  for (const [name, answer, reason] of ENDLESS) {
    test(`is given up: ${name}`, async () => {
      using parts = new DisposableStack();
      const address = await answering(parts, answer);
      using client = new WireClient({ root: root.certificate }, systemClock);
      const milliseconds = name === '5 MB' ? 60_000 : 300;

      await assert.rejects(client.ask(address, '/v1/ping', {}, Type.Object({}), milliseconds), { message: reason });
      await assert.rejects(client.upgrade(address, '/v1/session', milliseconds), { message: reason });
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

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { Etcd } from './gateway.ts';

/** Ends of a member's connection, as if it was killed then. */
const ENDS: readonly (readonly [when: string, end: (client: Socket) => void])[] = [
  ['before it has read the request', (client) => client.destroy()],
  ['amid the request', (client) => client.once('data', () => client.destroy())],
  [
    'amid the answer',
    (client) => client.once('data', () => client.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"succeeded":')),
  ],
];

for (const [when, end] of ENDS) {
  test(`a member that ends ${when} does not run, be the request short or long`, async () => {
    await using undo = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'gantry-gateway-'));
    undo.defer(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'client:0');
    const server = createServer((client) => end(client.on('error', () => undefined))).listen(path);
    undo.defer(() => void server.close());
    await once(server, 'listening');
    const etcd = undo.use(new Etcd(path, systemClock));

    // The kernel keeps a part of the long one that nobody has read, which resets the connection.
    for (const bytes of [10, 10_000_000]) {
      const stored = etcd.store({}, [{ put: 'a', value: 'x'.repeat(bytes) }], 60_000);
      await assert.rejects(stored, { name: 'EtcdError', code: 14 });
    }
  });
}

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

test('a thousand clients wait for a busy daemon, and none is refused', async () => {
  await using engine = await TestEngine.start({ image: false });
  const longest = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  const count = Math.min(1000, longest);
  const closed = AbortSignal.timeout(120_000);

  process.kill(engine.pid, 'SIGSTOP');
  const clients = Array.from({ length: count }, () => connect({ path: engine.socketPath }));
  const answers = clients.map(async (client) => {
    await once(client, 'connect', { signal: closed });
    client.end('GET /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const [first] = (await once(client, 'data', { signal: closed })) as [Buffer];
    client.destroy();
    return first.toString('latin1', 0, 15);
  });
  const settled = Promise.allSettled(answers);
  process.kill(engine.pid, 'SIGCONT');

  const refused = (await settled).filter(({ status }) => status === 'rejected');
  assert.deepEqual(refused, []);
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(['HTTP/1.1 200 OK']));
});

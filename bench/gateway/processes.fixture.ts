/** A bench that starts a Redis and a Node, says so, and then measures without end. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { endingOnSignals, freePorts, outputOf, startNode } from './processes.ts';

await endingOnSignals(async () => {
  await using undo = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'));
  undo.defer(async () => await rm(folder, { recursive: true }));
  undo.use(await TestRedis.start());
  const [port = 0] = await freePorts(1);
  const proxy = join(import.meta.dirname, 'peers/bare-proxy.ts');
  await startNode(undo, [proxy, String(port), 'http://127.0.0.1:1'], port);
  const measuring = outputOf('sleep', ['infinity']);
  console.log('measuring');
  await measuring;
});

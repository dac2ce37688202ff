import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { jsonLines } from '@gantry/client/json-lines.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { UsageLine } from './schema.ts';

suite('GET /containers/stats', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: '1.51' });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('each line has all running containers, also those started later, and their counters grow', async () => {
    const busy = await engine.run(['sh', '-c', 'while :; do :; done'], { HostConfig: { Memory: 64 << 20 } });
    await engine.wait(await engine.run(['true']));
    const stream = await engine.stream('GET', '/containers/stats?interval=1');
    const lines = jsonLines<UsageLine>(stream.on('error', () => undefined));
    const next = async (): Promise<UsageLine> => ((await lines.next()) as { value: UsageLine }).value;

    const first = await next();
    const later = await engine.run(['sleep', '1000']);
    let last = await next();
    while (!last.Containers.some(({ Id }) => Id === later)) last = await next();
    stream.destroy();

    assert.deepEqual(
      first.Containers.map(({ Id }) => Id),
      [busy],
    );
    const [before] = first.Containers;
    const after = last.Containers.find(({ Id }) => Id === busy);
    assert.ok(after!.CPU > before!.CPU);
    assert.ok(last.SystemCPU > first.SystemCPU);
    assert.equal(after!.MemoryLimit, 64 << 20);
    assert.ok(after!.PIDs >= 1 && after!.Memory > 0);
  });
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { contextOf } from './compared.ts';

const MB = 1_000_000;
const MAX_GROWTH_MB = 64;

suite('the output of a build', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function begin(file: string, query = ''): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const path = `/v1.24/build?nocache=1&networkmode=none&${query}`;
    const headers = { 'Content-Type': 'application/x-tar' };
    const asking = request({ socketPath: engine.socketPath, method: 'POST', path, headers });
    asking
      .on('response', resolve)
      .on('error', reject)
      .end(contextOf({ Dockerfile: file }));
    return await promise;
  }

  /** The bytes that the process of the only running container has written so far; undefined without one. */
  async function written(): Promise<number | undefined> {
    const { body } = await engine.get<{ Id: string }[]>('/containers/json');
    if (body[0] === undefined) return undefined;
    const { State } = (await engine.get<{ State: { Pid: number } }>(`/containers/${body[0].Id}/json`)).body;
    return Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${State.Pid}/io`, 'utf8'))?.[1]);
  }

  test('makes its process wait for a client that does not read, and is complete when it does', async () => {
    let answer: IncomingMessage | undefined;
    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      answer?.destroy();
      while ((await written()) !== undefined) await setTimeout(50);
      answer = await begin(`FROM busybox\nRUN exec seq 1 3000000\n`);
      for (let last = 0; ; await setTimeout(500)) {
        const now = (await written()) ?? 0;
        if (now > 0 && now === last) break; // it waits
        assert.ok(now > 0 || last === 0, 'it has ended, though nobody reads its output');
        last = now;
      }
    });
    let lines = 0;
    let last = '';
    for await (const line of createInterface(answer!)) {
      lines += line.split('\\n').length - 1;
      last = line;
    }

    assert.ok(lines >= 3_000_000, `${lines} lines`);
    assert.match(last, /Successfully built/);
  });

  test('of a stage that has to wait for an earlier one is on the disk, and clipped beyond 64 MB', async () => {
    const mount = '--mount=type=cache,id=signal,target=/c';
    const file = [
      'FROM busybox AS first',
      `RUN ${mount} rm -f /c/go; until test -e /c/go; do sleep 0.1; done; echo the $((0+1))st has ended`,
      'FROM busybox AS second',
      `RUN ${mount} head -c ${70 * MB} /dev/zero | tr '\\0' x; touch /c/go`,
      'FROM busybox',
      'COPY --from=first /bin/sh /a',
      'COPY --from=second /bin/sh /b',
    ].join('\n');
    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      const [first = '', second = ''] = (await text(await begin(file))).split('the 1st has ended');

      assert.doesNotMatch(first, /xxx/);
      const letters = second.match(/x/g)?.length ?? 0;
      assert.ok(letters > 60 * MB && letters < 69.5 * MB, `${letters} letters`);
      assert.match(second, /output clipped[^]*Successfully built/);
    });
  });

  test('of a quiet build that fails has its last megabyte', async () => {
    const lines = (await text(await begin(`FROM busybox\nRUN seq 1 500000; exit 3\n`, 'q=1'))).split('\n');

    const shown = lines
      .map((line) => (line === '' ? '' : ((JSON.parse(line) as { stream?: string }).stream ?? '')))
      .join('');
    assert.match(shown, /\n499999\n500000\n/);
    assert.doesNotMatch(shown, /\n1\n/);
    assert.ok(shown.length > 800_000 && shown.length < 1_100_000, `${shown.length} letters`);
    assert.match(lines.at(-2)!, /returned a non-zero code: 3/);
  });
});

import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** More than twice as many as there are threads, so that several have a view of the same container. */
const COPIES = 9;
/** More than waits on the way for more of an archive. */
const LARGE = Buffer.alloc(1 << 20);

suite('several copies of one container at once', () => {
  let engine: TestEngine;
  let id: string;
  before(async () => {
    engine = await TestEngine.start();
    id = await engine.run(['sleep', '1000'], { HostConfig: { Binds: ['shared:/v'] } });
  });
  after(async () => {
    await engine.delete(`/containers/${id}?force=1`);
    await engine[Symbol.asyncDispose]();
  });

  test('a view that ends first takes nothing from the others: their files go into the volume', async () => {
    const volume = join(engine.dataRoot, 'volumes/shared/_data');
    const puts = Array.from({ length: COPIES }, (_, at) => beginPut(engine.socketPath, id, `first-${at}`));
    for (const at of puts.keys()) await appears(join(volume, `first-${at}`));

    for (const [at, put] of puts.entries()) assert.equal(await put.end(`second-${at}`), 200);

    const expected = ['first', 'second'].flatMap((name) => puts.map((_, at) => `${name}-${at}`));
    assert.deepEqual(readdirSync(volume).toSorted(), expected.toSorted());
    assert.deepEqual(errorsIn(engine.log), []);
  });

  test('a refusal has its own reason, and nothing fails in undoing it', async () => {
    const paths = ['/nowhere', '/v/nowhere', '/bin/busybox', '/v'];
    const statuses = new Set<string>();
    await Promise.all(
      Array.from({ length: COPIES * 2 }, async (_, client) => {
        for (let turn = 0; turn < 5; turn += 1) {
          const path = paths[(client + turn) % paths.length]!;
          const { status } = await engine.get(`/containers/${id}/archive?path=${path}`);
          statuses.add(`${path} ${status}`);
        }
      }),
    );

    assert.deepEqual([...statuses].toSorted(), ['/bin/busybox 200', '/nowhere 404', '/v 200', '/v/nowhere 404']);
    assert.deepEqual(errorsIn(engine.log), []);
  });
});

/** An archive for `/v` whose first file is sent, and whose end waits; `end` sends another file, and answers the status. */
function beginPut(socketPath: string, id: string, name: string): { end: (last: string) => Promise<number> } {
  const headers = { 'Content-Type': 'application/x-tar' };
  const put = request({ socketPath, method: 'PUT', path: `/containers/${id}/archive?path=/v`, headers, agent: false });
  const answered = Promise.withResolvers<number>();
  put.on('error', answered.reject).on('response', (response) => {
    response.resume().once('end', () => answered.resolve(response.statusCode ?? 0));
  });
  const archive = (last: string): Buffer => {
    return new TarWriter().add({ name, content: LARGE }).add({ name: last, content: last }).end();
  };
  put.write(archive('').subarray(0, LARGE.length));
  return {
    end: async (last) => {
      put.end(archive(last).subarray(LARGE.length));
      return await answered.promise;
    },
  };
}

async function appears(path: string): Promise<void> {
  const late = AbortSignal.timeout(60_000);
  while (!existsSync(path)) await setTimeout(10, undefined, { signal: late });
}

function errorsIn(log: string): string[] {
  return log.split('\n').filter((line) => line.includes('"level":50'));
}

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { Changes } from '../schema.ts';

suite('changes of a container', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => void (engine = await TestEngine.start()));
  after(async () => await engine[Symbol.asyncDispose]());

  test('that has changed nothing are null, as in dockerd', async () => {
    const id = await engine.create(['true']);

    const { raw, headers } = await engine.get(`/containers/${id}/changes`);

    assert.deepEqual([raw.toString(), headers['content-type']], ['null', 'application/json']);
  });

  test('that has made 5,000 files have each of them once, and names of any bytes', async () => {
    const script = 'mkdir /m && cd /m && seq 5000 | xargs touch && touch "$(printf "\\303\\274 \\377\\"")"';
    const id = await engine.run(['sh', '-c', script]);
    assert.equal(await engine.wait(id), 0);

    const { body } = await engine.get<NonNullable<Changes>>(`/containers/${id}/changes`);

    const expected = ['/m', '/m/ü \uFFFD"', ...Array.from({ length: 5000 }, (_, index) => `/m/${index + 1}`)];
    assert.deepEqual(body.map(({ Path }) => Path).toSorted(), expected.toSorted());
    assert.deepEqual(new Set(body.map(({ Kind }) => Kind)), new Set([1]));
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

/** For a while the same numbers are drawn, so that creations draw the same names. */
const UNLUCKY = `
  import crypto from 'node:crypto';
  import { syncBuiltinESMExports } from 'node:module';
  let drawn = 0;
  crypto.randomInt = (below) => Math.floor(drawn++ / 40) % below;
  syncBuiltinESMExports();
`;

test('creations without a name that draw the same one at the same time all succeed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-unlucky-'));
  using _folder = { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
  const unlucky = join(folder, 'unlucky.mjs');
  writeFileSync(unlucky, UNLUCKY);
  await using engine = await TestEngine.start({ within: ['env', `NODE_OPTIONS=--import=${unlucky}`] });

  const answers = await Promise.all(
    // The copy of the volume's first content takes a while.
    Array.from(
      { length: 8 },
      async () => await engine.post('/containers/create', { Image: 'busybox', Cmd: ['true'], Volumes: { '/bin': {} } }),
    ),
  );

  assert.deepEqual(
    answers.map(({ status, raw }) => `${status} ${status === 201 ? '' : raw.toString()}`),
    answers.map(() => '201 '),
  );
  const { body } = await engine.get<{ Names: string[] }[]>('/containers/json?all=1');
  assert.equal(new Set(body.flatMap(({ Names }) => Names)).size, 8);
});

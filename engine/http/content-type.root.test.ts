import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

test('JSON is named without a charset, so that docker shows the message of an error', async () => {
  await using engine = await TestEngine.start({ image: false });

  const answers = await Promise.all(
    ['/containers/json', '/containers/nope/json', '/nope'].map(async (path) => await engine.get(path)),
  );
  const shown = await engine.docker('inspect', '--type', 'container', 'nope');

  for (const { headers } of answers) assert.equal(headers['content-type'], 'application/json');
  assert.match(shown.stderr, /No such container: nope/);
  assert.doesNotMatch(shown.stderr, /\{"message"/);
});

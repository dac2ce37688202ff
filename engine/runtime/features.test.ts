import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { RuntimeFeatures } from './features.ts';

test('a runtime is asked for its features once; one that does not know the command has none', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'features-'));
  const program = async (name: string, script: string): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return path;
  };
  const asked = join(folder, 'asked');
  const known = await program('known', `echo "$1" >> ${asked}; echo '{ "ociVersionMin": "1.0.0" }'`);
  const old = await program('old', 'echo "unknown command features" >&2; exit 1');
  const chatty = await program('chatty', 'echo "usage: chatty"');
  const features = new RuntimeFeatures();

  const answers = await Promise.all([known, known, old, chatty, join(folder, 'none')].map((path) => features.of(path)));

  assert.deepEqual(answers, [
    '{"ociVersionMin":"1.0.0"}',
    '{"ociVersionMin":"1.0.0"}',
    undefined,
    undefined,
    undefined,
  ]);
  assert.equal(await readFile(asked, 'utf8'), 'features\n');
  await rm(folder, { recursive: true });
});

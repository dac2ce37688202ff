import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const DEADLINE_MS = 300_000;

test('a daemon writes its compile cache while it runs, so that the start after a crash finds it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-compile-cache-'));
  using undo = new DisposableStack();
  undo.defer(() => rmSync(folder, { recursive: true })); // when the daemon has ended
  const usual = process.env.NODE_COMPILE_CACHE;
  process.env.NODE_COMPILE_CACHE = folder;
  await using _engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
  if (usual === undefined) delete process.env.NODE_COMPILE_CACHE;
  else process.env.NODE_COMPILE_CACHE = usual;

  const written = await filesIn(folder);

  assert.ok(written > 0);
});

async function filesIn(folder: string): Promise<number> {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    if (files.length > 0 || Date.now() > deadline) return files.length;
    await setTimeout(200);
  }
}

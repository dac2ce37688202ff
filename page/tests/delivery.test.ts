import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { bundlePage } from '../../tools/bundle-page.ts';

const MAX_BYTES = 400_000;

test('all files of the page have at most 400 KB compressed, and name no other origin as a source', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-page-'));
  try {
    const bytes = await bundlePage(dirname(dirname(import.meta.dirname)), folder);

    assert.ok(bytes < MAX_BYTES, `${bytes} bytes`);
    const names = readdirSync(folder).filter((name) => !name.endsWith('.gz'));
    assert.ok(names.includes('index.html') && names.includes('main.js') && names.includes('main.css'));
    const styles = names
      .filter((name) => name.endsWith('.css'))
      .map((name) => readFileSync(join(folder, name), 'utf8'));
    assert.doesNotMatch(styles.join(''), /url\(|@import/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

import assert from 'node:assert/strict';
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';

import { systemClock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { Archives } from './archives.ts';

const FILES = 300_000;

test('the extraction of a layer ends with the pull that asked for it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-canceled-'));
  const [file, target] = [join(folder, 'layer'), join(folder, 'target')];
  mkdirSync(target);
  const tar = new TarWriter();
  for (let at = 0; at < FILES; at += 1) tar.add({ name: `${at % 10}` }); // each replaces another one
  writeFileSync(file, gzipSync(tar.end(), { level: 1 }));
  const fd = openSync(file, 'r');
  const client = new AbortController();
  try {
    await using archives = new Archives(new Background(systemClock, { error: console.error }));
    const lower = async (): Promise<string[]> => await Promise.resolve([]);
    const place = { target, lower, skeleton: join(folder, 'skeleton') };
    const extracted = archives.extract({ fd, digest: 'sha256:x' }, place, () => undefined, client.signal);
    extracted.catch(() => undefined);
    while (readdirSync(target).length === 0) await setImmediate();

    client.abort();

    await assert.rejects(extracted, { message: 'the extraction was canceled' });
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
});

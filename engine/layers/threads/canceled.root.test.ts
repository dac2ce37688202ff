import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempDisposableSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';

import { systemClock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { Archives } from './archives.ts';

const FILES = 300_000;
const GONE = new Error('the client has gone');

const small = new TarWriter().add({ name: 'file', content: 'x' }).end();
const bzip2 = (content: Buffer): Buffer => execFileSync('bzip2', ['-c'], { input: content });
const zeros = bzip2(Buffer.alloc(40_000_000));
/** Becomes 400 GB behind the mark of its end, of which nothing gets to the disk; long enough to be passed on at once. */
const bomb = Buffer.concat([bzip2(small), ...Array.from({ length: 10_000 }, () => zeros)]);
const files = (() => {
  const tar = new TarWriter();
  for (let at = 0; at < FILES; at += 1) tar.add({ name: `${at % 10}` }); // each replaces another one
  return tar.end();
})();

type Work = (archives: Archives, folder: string, signal: AbortSignal) => Promise<unknown>;

/** A client that sends this, and then nothing; it stays. */
async function* stalled(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
  await new Promise<never>(() => undefined);
}

/** Work that has begun when its folder has an entry. */
const ROWS: readonly (readonly [name: string, work: Work])[] = [
  [
    'an upload that is stored',
    async (archives, folder, signal) => await archives.receive(stalled(small), join(folder, 'a'), signal),
  ],
  ['a load', async (archives, folder, signal) => await archives.unpack(stalled(bomb), folder, signal)],
  [
    'the context of a build',
    async (archives, folder, signal) =>
      await archives.spoolContext(stalled(small), { file: join(folder, 'a') }, () => undefined, signal),
  ],
  [
    'the extraction of a context',
    async (archives, folder, signal) => {
      await archives.spoolContext(whole(files), { file: join(folder, '..', 'spool') }, () => undefined);
      await archives.extractContext(join(folder, '..', 'spool'), folder, { signal });
    },
  ],
  [
    'the extraction of a layer',
    async (archives, folder, signal) => {
      const file = join(folder, '..', 'layer');
      writeFileSync(file, gzipSync(files, { level: 1 }));
      using stack = new DisposableStack();
      const fd = stack.adopt(openSync(file, 'r'), closeSync);
      const lower = async (): Promise<string[]> => await Promise.resolve([]);
      const place = { target: folder, lower, skeleton: join(folder, '..', 'skeleton') };
      await archives.extract({ fd, digest: 'sha256:x' }, place, undefined, signal);
    },
  ],
  [
    'the archive of a writable layer',
    async (archives, folder, signal) => {
      const upper = join(folder, '..', 'upper');
      mkdirSync(upper);
      for (let at = 0; at < 20_000; at += 1) writeFileSync(join(upper, `${at}`), 'x');
      await archives.packLayer(upper, [], join(folder, 'layer'), 'none', signal);
    },
  ],
];

async function* whole(content: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(content);
}

suite('work on an archive ends with the client that asked for it', () => {
  for (const [name, work] of ROWS) {
    test(name, async () => {
      using parent = mkdtempDisposableSync(join(tmpdir(), 'gantry-canceled-'));
      const folder = join(parent.path, 'work');
      mkdirSync(folder);
      await using archives = new Archives(new Background(systemClock, { error: console.error }));
      const client = new AbortController();
      const done = work(archives, folder, client.signal);
      done.catch(() => undefined);
      while (readdirSync(folder).length === 0) await setImmediate();

      client.abort(GONE);

      await assert.rejects(done, /the archive is no longer wanted|the client has gone/);
    });
  }
});

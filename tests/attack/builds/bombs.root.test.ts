import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { answeredMeanwhile } from '@gantry/testing/streams/answered-meanwhile.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from '../../build/compared.ts';

const MB = 1024 * 1024;
/** Growth of the daemon, for an archive of four times the disk. */
const MAX_GROWTH_MB = 64;
const TAR = { headers: { 'Content-Type': 'application/x-tar' } };

const byTool =
  (tool: string, ...words: string[]): ((content: Buffer) => Buffer) =>
  (content) =>
    execFileSync(tool, [...words, '-c'], { input: content, maxBuffer: 2 ** 26 });
const forms: readonly (readonly [string, (content: Buffer) => Buffer])[] = [
  ['gzip', (content) => gzipSync(content, { level: 1 })],
  ['zstd', (content) => zstdCompressSync(content)],
  ['xz', byTool('xz', '-0')],
  ['bzip2', byTool('bzip2', '-1')],
];

suite('an archive of kilobytes that becomes larger than the disk', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  const large = Buffer.alloc(160 * MB);
  const layer = new TarWriter().add({ name: 'large', content: large }).end();
  const context = contextOf({ Dockerfile: 'FROM busybox\n', large: { content: large } });

  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'none', engine.dataRoot]);
    await engine.startAgain();
    await engine.loadBusybox();
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine.kill('SIGTERM');
    execFileSync('umount', [engine.dataRoot]);
    await engine.startAgain();
    await engine[Symbol.asyncDispose]();
  });

  const freeMB = (): number => {
    const { bavail, bsize } = statfsSync(engine.dataRoot);
    return (bavail * bsize) / MB;
  };

  /** Fails for its disk alone; others are answered, the memory is bounded, and nothing is left. */
  async function assertFails(attack: () => Promise<string>): Promise<void> {
    const free = freeMB();
    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      const { result } = await answeredMeanwhile(engine, attack);
      assert.match(result, /no space left on device/i);
      await eventually('its room is given back', () => freeMB() >= free - 1);
    });
    const small = contextOf({ Dockerfile: 'FROM busybox\nCOPY x /x\n', x: 'x' });
    const { id } = await build(engine, 'nocache=1', small);
    assert.ok(id, 'it builds afterwards');
    await engine.delete(`/images/${id}`);
  }

  for (const [form, compress] of forms) {
    test(`fails alone: context of a build (${form})`, async () => {
      const body = compress(context);
      await assertFails(async () => (await build(engine, '', body)).message ?? '');
    });

    test(`fails alone: ADD of an archive (${form})`, async () => {
      const files = { Dockerfile: 'FROM busybox\nADD bomb.tar /\n', 'bomb.tar': { content: compress(layer) } };
      await assertFails(async () => {
        const { lines } = await build(engine, '', contextOf(files));
        return lines.find(({ error }) => error !== undefined)?.error ?? '';
      });
    });

    test(`fails alone: import of a root file system (${form})`, async () => {
      const body = compress(layer);
      await assertFails(async () =>
        (await engine.post('/images/create?fromSrc=-&repo=bomb', body, TAR)).raw.toString(),
      );
    });

    test(`fails alone: load of an archive of images (${form})`, async () => {
      const body = compress(imageArchive(layer, ['bomb:x']));
      await assertFails(async () => (await engine.post('/images/load', body, TAR)).raw.toString());
    });
  }

  test('fails alone: pull of a layer', async () => {
    await registries.putImage('127.0.0.1:5000/v2/bomb', 'x', [layer]);
    await assertFails(async () => (await engine.post('/images/create?fromImage=127.0.0.1:5000/bomb:x')).raw.toString());
  });

  for (const [form, body, refusal] of [
    ['xz', byTool('xz', '-0', '--lzma2=dict=256MiB'), /its xz data needs more than 128 MiB/],
    ['zstd', byTool('zstd', '-1', '--long=27'), /its zstd data needs a window of more than 32 MiB/],
  ] as const) {
    test(`that asks for much memory is refused (${form})`, async () => {
      const { message } = await build(engine, '', body(context));

      assert.match(message ?? 'it is built', refusal);
    });
  }
});

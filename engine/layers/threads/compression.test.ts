import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes, type Hash } from 'node:crypto';
import { suite, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';

import { decompressed } from './compression.ts';

const noise = Buffer.concat([randomBytes(700_000), Buffer.alloc(700_000, 'text ')]);
const forms: readonly (readonly [string, (content: Buffer) => Buffer])[] = [
  ['gzip', (content) => gzipSync(content)],
  [
    'gzip in members',
    (content) => Buffer.concat([content.subarray(0, 9), content.subarray(9)].map((part) => gzipSync(part))),
  ],
  ['zstd', (content) => zstdCompressSync(content)],
  ['xz', (content) => execFileSync('xz', ['-c'], { input: content, maxBuffer: 2 ** 24 })],
  ['bzip2', (content) => execFileSync('bzip2', ['-c'], { input: content, maxBuffer: 2 ** 24 })],
];

/** Gives all pieces in the same memory, as readers of files do. */
async function* inOneMemory(content: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  const memory = Buffer.alloc(pieceBytes);
  for (let at = 0; at < content.length; at += pieceBytes) {
    yield memory.subarray(0, content.copy(memory, 0, at));
    memory.fill(0xff);
    await Promise.resolve();
  }
}

const sum = (hash: Hash): string => hash.digest('hex');
const wanted = sum(createHash('sha256').update(noise));

suite('decompression', () => {
  for (const [form, compress] of forms) {
    for (const pieceBytes of [500, 100_000]) {
      test(`from ${form} in pieces of ${pieceBytes} bytes of the same memory is right`, async () => {
        const hash = createHash('sha256');
        const chunks: Buffer[] = [];

        for await (const chunk of decompressed(inOneMemory(compress(noise), pieceBytes))) {
          hash.update(chunk);
          chunks.push(chunk);
        }

        assert.equal(sum(hash), wanted);
        const isOurs = /gzip|zstd/.test(form); // others come by a pipe
        if (isOurs)
          assert.ok(
            chunks.every(({ length }) => length === 0),
            'their memory is free',
          );
      });
    }
  }

  test('ends with the reason of its source', { timeout: 60_000 }, async () => {
    const broken = async function* (): AsyncGenerator<Buffer> {
      yield gzipSync(noise).subarray(0, 500_000);
      throw await Promise.resolve(new Error('the source broke'));
    };

    await assert.rejects(Array.fromAsync(decompressed(broken())), { message: 'the source broke' });
  });
});

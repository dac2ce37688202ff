import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32, gzipSync } from 'node:zlib';

import { readLog } from '../log-file.ts';

const FILES = 4;

/** A log whose rotated files can be compressed, as the shim does it. */
class PackedLog implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'gantry-log-'));
  readonly path = join(this.folder, 'x-json.log');

  append(...texts: string[]): void {
    for (const log of texts) {
      const entry = { log: `${log}\n`, stream: 'stdout', time: '2026-11-21T01:00:00Z' };
      appendFileSync(this.path, `${JSON.stringify(entry)}\n`);
    }
  }

  rotate(): void {
    for (let number = FILES - 1; number > 0; number -= 1) {
      for (const ending of number === 1 ? [''] : ['', '.gz']) {
        const from = number === 1 ? this.path : `${this.path}.${number - 1}${ending}`;
        if (existsSync(from)) renameSync(from, `${this.path}.${number}${ending}`);
      }
    }
    writeFileSync(this.path, '');
  }

  pack(number: number, { keepsPlain = false } = {}): void {
    const plain = `${this.path}.${number}`;
    const comment = Buffer.from(`inode ${statSync(plain).ino}\0`);
    const head = Buffer.from([0x1f, 0x8b, 8, 0x10, 0, 0, 0, 0, 0, 3]);
    const nothing = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert.equal(crc32(''), 0);
    writeFileSync(`${plain}.gz`, Buffer.concat([head, comment, nothing, gzipSync(readFileSync(plain))]));
    if (!keepsPlain) rmSync(plain);
  }

  async read(tail: number | 'all' = 'all'): Promise<string> {
    const query = { stdout: true, stderr: true, tail, timestamps: false, details: undefined, framed: false };
    return Buffer.concat(await Array.fromAsync(readLog(this.path, query))).toString();
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

function threeFiles(): PackedLog {
  const log = new PackedLog();
  log.append('1', '2');
  log.rotate();
  log.append('3', '4');
  log.rotate();
  log.append('5');
  return log;
}

test('compressed and plain files are one log', async () => {
  using log = threeFiles();
  log.pack(2);
  assert.equal(await log.read(), '1\n2\n3\n4\n5\n');

  log.pack(1);

  assert.equal(await log.read(), '1\n2\n3\n4\n5\n');
  const tails = await Promise.all([0, 1, 2, 3, 4, 5, 6].map(async (tail) => await log.read(tail)));
  assert.deepEqual(tails, ['', '5\n', '4\n5\n', '3\n4\n5\n', '2\n3\n4\n5\n', '1\n2\n3\n4\n5\n', '1\n2\n3\n4\n5\n']);
  assert.deepEqual(readdirSync(log.folder).toSorted(), ['x-json.log', 'x-json.log.1.gz', 'x-json.log.2.gz']);
});

test('of a file that is there in both forms the lines come once', async () => {
  using log = threeFiles();
  log.pack(1, { keepsPlain: true });

  assert.equal(await log.read(), '1\n2\n3\n4\n5\n');
});

test('a file that was cut off has the lines before the cut', async () => {
  using log = threeFiles();
  log.pack(2);
  const packed = readFileSync(`${log.path}.2.gz`);
  writeFileSync(`${log.path}.2.gz`, packed.subarray(0, packed.length - 8));

  assert.equal(await log.read(), '1\n2\n3\n4\n5\n');
});

test('a number that is missing amid a rotation hides nothing', async () => {
  using log = threeFiles();
  renameSync(`${log.path}.2`, `${log.path}.3`);
  renameSync(`${log.path}.1`, `${log.path}.2`);

  assert.equal(await log.read(), '1\n2\n3\n4\n5\n');
});

test('a follow goes on over files that are rotated and compressed before it has looked', async () => {
  using log = new PackedLog();
  const exit = Promise.withResolvers<void>();
  const query = {
    stdout: true,
    stderr: true,
    tail: 'all',
    timestamps: false,
    details: undefined,
    framed: false,
  } as const;
  const follow = { ended: exit.promise, signal: AbortSignal.timeout(60_000) };
  log.append('1');
  const pieces = readLog(log.path, query, follow);
  const read: string[] = [String((await pieces.next()).value)];

  log.append('2');
  log.rotate();
  log.append('3');
  log.rotate();
  log.append('4');
  log.pack(2);
  log.pack(1);
  log.rotate();
  log.append('5');
  exit.resolve();
  for await (const piece of pieces) read.push(String(piece));

  assert.equal(read.join(''), '1\n2\n3\n4\n5\n');
});

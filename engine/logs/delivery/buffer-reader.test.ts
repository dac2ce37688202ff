import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { BufferReader } from './buffer-reader.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import { lastNumber } from './last-number.ts';
import { START, type Line, type Position } from './line.ts';

const ALL = { lines: 1000, bytes: 1024 * 1024 };

/** A folder with a buffer, written and rotated as the shim does it. */
class Buffered implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'gantry-buffer-'));
  readonly path = join(this.folder, 'lines.log');

  write(from: number, to: number): void {
    for (let seq = from; seq <= to; seq += 1) this.line({ log: `${seq}\n`, seq });
  }

  line(entry: { log: string; seq: number; time?: string; stream?: string; raw?: string }): void {
    appendFileSync(this.path, `${JSON.stringify({ stream: 'stdout', time: '2026-01-01T00:00:00.5Z', ...entry })}\n`);
  }

  rotate(files: number): void {
    for (let number = files - 1; number > 0; number -= 1) {
      const from = number === 1 ? this.path : `${this.path}.${number - 1}`;
      try {
        renameSync(from, `${this.path}.${number}`);
      } catch {
        // there are fewer files yet
      }
    }
    writeFileSync(this.path, '');
  }

  reader(at: Position = START): BufferReader {
    return new BufferReader(this.path, 'c0ffee', at);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

function missing(lines: readonly Line[]): number {
  return lines.reduce((sum, line) => sum + line.missing, 0);
}

function texts(lines: readonly Line[]): string {
  return lines.map(({ string }) => string).join(' ');
}

test('lines are read in batches, and again from any position', async () => {
  using buffer = new Buffered();
  buffer.write(1, 6);
  const reader = buffer.reader();

  const first = await reader.next({ lines: 2, bytes: 1000 });
  const second = await reader.next({ lines: 100, bytes: 3 });
  const third = await reader.next(ALL);
  reader.seek(first[0]!.after);
  const again = await reader.next(ALL);
  reader.close();

  assert.deepEqual([first, second, third, again].map(texts), ['1 2', '3 4 5', '6', '2 3 4 5 6']);
});

test('a position is good over rotations, and rotated lines are missing', async () => {
  using buffer = new Buffered();
  buffer.write(1, 2);
  const reader = buffer.reader();
  await reader.next(ALL);

  for (const [from, to] of [
    [3, 4],
    [5, 6],
  ] as const) {
    buffer.write(from, to);
    buffer.rotate(3);
  }
  buffer.write(7, 7);
  const held = await reader.next(ALL);
  for (const seq of [8, 9, 10, 11]) {
    buffer.rotate(3);
    buffer.write(seq, seq);
  }
  const late = await buffer.reader(held.at(-1)!.after).next(ALL);
  const lateWithFile = await reader.next(ALL);
  reader.close();

  assert.deepEqual([texts(held), missing(held)], ['3 4 5 6 7', 0]);
  assert.deepEqual([texts(late), missing(late)], ['9 10 11', 1]);
  assert.deepEqual([texts(lateWithFile), missing(lateWithFile)], ['9 10 11', 1]);
});

test('a position in a file that is another one now is looked for from the beginning', async () => {
  using buffer = new Buffered();
  buffer.write(1, 5);
  const lines = await buffer.reader().next(ALL);
  const { after } = lines[2]!;

  writeFileSync(buffer.path, ''); // the same inode
  for (let seq = 2; seq <= 9; seq += 1) buffer.line({ log: `number ${seq}\n`, seq });
  const batch = await buffer.reader(after).next(ALL);

  assert.equal(texts(batch), 'number 4 number 5 number 6 number 7 number 8 number 9');
});

test('half a line that a crash has left is passed over', async () => {
  using buffer = new Buffered();
  buffer.write(1, 1);
  appendFileSync(buffer.path, '{"log":"ha');
  const reader = buffer.reader();
  const before = await reader.next(ALL);

  appendFileSync(buffer.path, '\n');
  buffer.write(3, 3);
  const after = await reader.next(ALL);
  reader.close();

  assert.deepEqual([texts(before), texts(after), missing(after)], ['1', '3', 1]);
  assert.equal(lastNumber(buffer.path), 3);
});

test('pieces of a long line are numbered, also from a position between them', async () => {
  using buffer = new Buffered();
  const time = '2026-01-01T00:00:01Z';
  buffer.line({ log: 'aa', seq: 1, time });
  buffer.line({ log: 'x\n', seq: 2, stream: 'stderr' });
  buffer.line({ log: 'bb', seq: 3, time });
  buffer.line({ log: 'cc\n', seq: 4, time });
  buffer.line({ log: 'end', seq: 5, time: '2026-01-01T00:00:02Z' });
  buffer.line({ log: 'new run\n', seq: 6, time: '2026-01-01T00:00:03Z' });

  const lines = await buffer.reader().next(ALL);
  const rest = await buffer.reader(lines[0]!.after).next(ALL);

  assert.deepEqual(
    lines.map(({ partial }) => partial && [partial.ordinal, partial.isLast]),
    [[1, false], undefined, [2, false], [3, true], [1, false], undefined],
  );
  assert.deepEqual(rest, lines.slice(1));
  assert.equal(new Set(lines.map(({ partial }) => partial?.id)).size, 3);
});

test('bytes that are no text stay as they are', async () => {
  using buffer = new Buffered();
  buffer.line({ log: 'a�\n', seq: 1, raw: Buffer.from([0x61, 0xff, 0x0a]).toString('base64') });

  const lines = await buffer.reader().next(ALL);

  assert.deepEqual([lines[0]!.text, lines[0]!.string], [Buffer.from([0x61, 0xff]), 'a�']);
});

test('a checkpoint is written over the last one, and one that cannot be read is the beginning', () => {
  using buffer = new Buffered();
  const path = join(buffer.folder, 'checkpoint');
  const position = {
    seq: 7,
    inode: 8,
    offset: 9,
    open: { stdout: { time: '2026-01-01T00:00:00.123456789Z', pieces: 2 } },
  };

  const none = readCheckpoint(path);
  writeCheckpoint(path, { position: { ...position, seq: 123_456_789 }, lost: 10 });
  writeCheckpoint(path, { position, lost: 3 });
  const written = readCheckpoint(path);
  writeFileSync(path, '{"position":{"se');

  assert.deepEqual(none, { position: START, lost: 0 });
  assert.deepEqual(written, { position, lost: 3 });
  assert.deepEqual(readCheckpoint(path), none);
});

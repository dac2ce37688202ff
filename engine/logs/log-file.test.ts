import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { FrameDecoder } from '../http/streams/frames.ts';
import { LogFile } from './files/one-file.ts';
import { type LogQuery, readLog } from './log-file.ts';
import { LogLines } from './log-line.ts';

const everything: LogQuery = {
  stdout: true,
  stderr: true,
  tail: 'all',
  timestamps: false,
  details: undefined,
  framed: true,
};

/** A log in a folder of its own. */
class TemporaryLog implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'gantry-log-'));
  readonly path = join(this.#folder, 'x-json.log');

  append(...lines: string[]): void {
    appendFileSync(this.path, lines.join(''));
  }

  rotate(files: number): void {
    for (let index = files - 1; index > 0; index -= 1) {
      const older = index === 1 ? this.path : `${this.path}.${index - 1}`;
      try {
        renameSync(older, `${this.path}.${index}`);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      }
    }
    writeFileSync(this.path, '');
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

function line(log: string, options: { stream?: string; second?: number; time?: string; extra?: object } = {}): string {
  const time = options.time ?? `2026-11-21T01:00:${String(options.second ?? 0).padStart(2, '0')}.5Z`;
  const { attrs, ...after } = { attrs: undefined, ...options.extra };
  return `${JSON.stringify({ log, stream: options.stream ?? 'stdout', attrs, time, ...after })}\n`;
}

function numbered(n: number): string {
  return line(String(n), { stream: n % 2 === 0 ? 'stdout' : 'stderr' });
}

async function read(path: string, query: Partial<LogQuery> = {}): Promise<string[]> {
  const texts: string[] = [];
  const decoder = new FrameDecoder((type, payload) => texts.push(`${type}:${payload.toString()}`));
  for await (const frames of readLog(path, { ...everything, ...query })) decoder.push(frames);
  assert.ok(decoder.atFrameStart);
  return texts;
}

test('each line becomes one frame of its stream', async () => {
  using log = new TemporaryLog();
  log.append(line('out\n'), line('err\n', { stream: 'stderr' }), line('no newline'));

  const texts = await read(log.path);

  assert.deepEqual(texts, ['1:out\n', '2:err\n', '1:no newline']);
});

test('the bare text is sent for a tty', async () => {
  using log = new TemporaryLog();
  log.append(line('a\r\n'), line('b'));

  const chunks = await Array.fromAsync(readLog(log.path, { ...everything, framed: false }));

  assert.equal(Buffer.concat(chunks).toString(), 'a\r\nb');
});

test('every escape of JSON is undone', async () => {
  using log = new TemporaryLog();
  const text = 'quote " slash \\ / \b\f\n\r\t \u0001 ü € 😀 \u2028';
  const units = text.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const ascii = units.join('').replace('\\u002f', '\\/');
  log.append(line(text), `{"log":"${ascii}","stream":"stdout","time":"2026-11-21T01:00:00Z"}\n`);

  const texts = await read(log.path);

  assert.deepEqual(texts, [`1:${text}`, `1:${text}`]);
});

test('bytes that are not UTF-8 come from the field raw', async () => {
  using log = new TemporaryLog();
  const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x0a]);
  log.append(line('\ufffd\ufffd\0\n', { extra: { raw: bytes.toString('base64') } }));

  const chunks = await Array.fromAsync(readLog(log.path, { ...everything, framed: false }));

  assert.deepEqual(Buffer.concat(chunks), bytes);
});

test('timestamps have nine digits, whatever the file has', async () => {
  using log = new TemporaryLog();
  log.append(
    line('a', { time: '2026-11-21T01:00:00Z' }),
    line('b', { time: '2026-11-21T01:00:00.12Z' }),
    line('c', { time: '2026-11-21T01:00:00.123456789Z' }),
    line('d', { time: '2026-11-21T02:00:00.5+01:00' }),
  );

  const texts = await read(log.path, { timestamps: true });

  assert.deepEqual(texts, [
    '1:2026-11-21T01:00:00.000000000Z a',
    '1:2026-11-21T01:00:00.120000000Z b',
    '1:2026-11-21T01:00:00.123456789Z c',
    '1:2026-11-21T01:00:00.500000000Z d',
  ]);
});

test('details are sorted, escaped and stand between timestamp and text', async () => {
  using log = new TemporaryLog();
  log.append(line('a\n', { extra: { attrs: { lab: 'v 1', b: '2,=x', FOO: '(*)' } } }), line('b\n'));

  const own = await read(log.path, { details: {}, timestamps: true });
  const given = await read(log.path, { details: { x: 'y' } });

  const time = '2026-11-21T01:00:00.500000000Z';
  const described = 'FOO=%28%2A%29,b=2%2C%3Dx,lab=v+1';
  assert.deepEqual(own, [`1:${time} ${described} a\n`, `1:${time}  b\n`]);
  assert.deepEqual(given, [`1:${described} a\n`, '1:x=y b\n']);
});

test('lines with the attributes of their container are read as those with others', async () => {
  using log = new TemporaryLog();
  const attrs = { a: 'b', c: 'd' };
  log.append(line('1', { extra: { attrs } }), line('2', { stream: 'stderr', extra: { attrs: { e: 'f' } } }), line('3'));

  const plain = await read(log.path);
  const detailed = await read(log.path, { details: attrs });

  assert.deepEqual(plain, ['1:1', '2:2', '1:3']);
  assert.deepEqual(detailed, ['1:a=b,c=d 1', '2:e=f 2', '1:a=b,c=d 3']);
});

test('attributes are not shown unless details are wanted', async () => {
  using log = new TemporaryLog();
  log.append(line('a\n', { extra: { attrs: { b: '2' } } }));

  const texts = await read(log.path);

  assert.deepEqual(texts, ['1:a\n']);
});

test('since leaves out earlier lines, until ends before later ones', async (t) => {
  using log = new TemporaryLog();
  log.append(...[0, 1, 2, 3, 4].map((second) => line(String(second), { second })));
  const cases: [string, Partial<LogQuery>, string[]][] = [
    ['since', { since: Temporal.Instant.from('2026-11-21T01:00:02.5Z') }, ['1:2', '1:3', '1:4']],
    ['since between two', { since: Temporal.Instant.from('2026-11-21T01:00:02.500000001Z') }, ['1:3', '1:4']],
    ['since the future', { since: Temporal.Instant.from('2100-01-01T00:00:00Z') }, []],
    [
      'since before the year 0',
      { since: Temporal.Instant.from('-000001-01-01T00:00:00Z') },
      ['1:0', '1:1', '1:2', '1:3', '1:4'],
    ],
    ['until', { until: Temporal.Instant.from('2026-11-21T01:00:01.5Z') }, ['1:0', '1:1']],
    ['tail first, then since', { tail: 4, since: Temporal.Instant.from('2026-11-21T01:00:03Z') }, ['1:3', '1:4']],
  ];
  for (const [name, query, expected] of cases) {
    await t.test(name, async () => {
      const texts = await read(log.path, query);

      assert.deepEqual(texts, expected);
    });
  }
});

test('tail counts lines of both streams, from the end, over the rotated files', async (t) => {
  using log = new TemporaryLog();
  log.append(numbered(1), numbered(2));
  log.rotate(3);
  log.append(numbered(3), numbered(4), numbered(5));
  log.rotate(3);
  log.append(numbered(6));
  const all = ['2:1', '1:2', '2:3', '1:4', '2:5', '1:6'];
  for (let count = 0; count <= 7; count += 1) {
    await t.test(`the last ${count}`, async () => {
      const texts = await read(log.path, { tail: count });

      assert.deepEqual(texts, count === 0 ? [] : all.slice(-count));
    });
  }
  await t.test('the choice of streams comes after the count', async () => {
    const texts = await read(log.path, { tail: 2, stderr: false });

    assert.deepEqual(texts, ['1:6']);
  });
  await t.test('an empty youngest file', async () => {
    log.rotate(4);

    const texts = await read(log.path, { tail: 2 });

    assert.deepEqual(texts, ['2:5', '1:6']);
  });
});

test('tail finds its lines where blocks begin and end, whatever the length of lines', async () => {
  using log = new TemporaryLog();
  const texts = Array.from({ length: 300 }, (_, i) => `${i}:${'x'.repeat((i * 7919) % 40_000)}\n`);
  log.append(...texts.map((text) => line(text)));

  for (const count of [1, 2, 5, 37, 150, 299, 300, 301]) {
    const got = await read(log.path, { tail: count });

    assert.equal(got.length, Math.min(count, 300));
    assert.ok(got.every((text, i) => text === `1:${texts[300 - got.length + i]}`));
  }
});

test('a file that is emptied while it is read back has no lines', async () => {
  using log = new TemporaryLog();
  log.append(numbered(1), numbered(2));
  using file = new LogFile(log.path);
  truncateSync(log.path);

  const missing = await file.seekBack(1);
  const pieces = await Array.fromAsync(file.drain(new LogLines(everything), file.size));

  assert.equal(missing, 1);
  assert.deepEqual(pieces, []);
});

test('a line of several megabytes is read', async () => {
  using log = new TemporaryLog();
  const huge = 'y'.repeat(3_000_000);
  log.append(line('a'), line(huge), line('b'));

  const all = await read(log.path);
  const last = await read(log.path, { tail: 2 });

  assert.deepEqual(all, ['1:a', `1:${huge}`, '1:b']);
  assert.deepEqual(last, [`1:${huge}`, '1:b']);
});

test('half a line, at the end or with the next one behind it, costs only itself', async () => {
  using log = new TemporaryLog();
  log.append(
    line('a'),
    '{"log":"never fin',
    line('b'),
    'rubbish\n',
    '[]\n',
    '{"log":"no time"}\n',
    line('c'),
    '{"log":"cut',
  );

  const texts = await read(log.path);

  assert.deepEqual(texts, ['1:a', '1:b', '1:c']);
});

test('an attribute called log is no entry of its own, whole or in half a line', async () => {
  using log = new TemporaryLog();
  const labelled = line('a', { extra: { attrs: { log: 'x' } } });
  log.append(labelled, labelled.slice(0, labelled.indexOf(',"time"')), labelled.replace('"a"', '"b"'));

  const texts = await read(log.path);

  assert.deepEqual(texts, ['1:a', '1:b']);
});

test('a log that does not exist is empty', async () => {
  using log = new TemporaryLog();

  const texts = await read(log.path);

  assert.deepEqual(texts, []);
});

/** Follows a log and lets a test wait for the n-th line. */
class Follower {
  readonly texts: string[] = [];
  readonly done: Promise<void>;
  readonly #end = Promise.withResolvers<void>();
  readonly #gone = new AbortController();
  #awaited: { count: number; reached: () => void } | undefined;

  constructor(path: string, query: Partial<LogQuery> = {}) {
    this.done = this.#run(path, query);
  }

  async reached(count: number): Promise<void> {
    if (this.texts.length >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaited = { count, reached: resolve };
    await promise;
  }

  exit(): void {
    this.#end.resolve();
  }

  leave(): void {
    this.#gone.abort();
  }

  async #run(path: string, query: Partial<LogQuery>): Promise<void> {
    const decoder = new FrameDecoder((_type, payload) => this.texts.push(payload.toString()));
    const follow = { ended: this.#end.promise, signal: this.#gone.signal };
    for await (const frames of readLog(path, { ...everything, ...query }, follow)) {
      decoder.push(frames);
      if (this.#awaited !== undefined && this.texts.length >= this.#awaited.count) this.#awaited.reached();
    }
  }
}

test('a follow gets present and new lines, and ends after the exit', async () => {
  using log = new TemporaryLog();
  log.append(line('a'), line('b'));
  const follower = new Follower(log.path, { tail: 1 });
  await follower.reached(1);

  log.append(line('c'));
  await follower.reached(2);
  log.append(line('d'));
  follower.exit();
  await follower.done;

  assert.deepEqual(follower.texts, ['b', 'c', 'd']);
});

test('a follow waits for the rest of a half-written line', async () => {
  using log = new TemporaryLog();
  const whole = line('whole');
  log.append(line('a'), whole.slice(0, 20));
  const follower = new Follower(log.path);
  await follower.reached(1);

  log.append(whole.slice(20), line('b'));
  follower.exit();
  await follower.done;

  assert.deepEqual(follower.texts, ['a', 'whole', 'b']);
});

test('a follow begins before there is a file', async () => {
  using log = new TemporaryLog();
  const follower = new Follower(log.path);

  log.append(line('a'));
  await follower.reached(1);
  follower.exit();
  await follower.done;

  assert.deepEqual(follower.texts, ['a']);
});

test('a follow across many rotations loses nothing and repeats nothing', async () => {
  using log = new TemporaryLog();
  const follower = new Follower(log.path);
  const expected = Array.from({ length: 400 }, (_, i) => String(i));

  for (const text of expected) {
    log.append(line(text));
    if (Number(text) % 7 === 6) log.rotate(100);
    // Now and then the reader gets its turn; in between several rotations happen behind its back.
    if (Number(text) % 25 === 0) await follower.reached(Number(text));
  }
  follower.exit();
  await follower.done;

  assert.deepEqual(follower.texts, expected);
});

test('a follow starts again when the only file is emptied', async () => {
  using log = new TemporaryLog();
  log.append(line('a long first line'), line('b'));
  const follower = new Follower(log.path);
  await follower.reached(2);

  truncateSync(log.path);
  log.append(line('c'));
  await follower.reached(3);
  follower.exit();
  await follower.done;

  assert.deepEqual(follower.texts, ['a long first line', 'b', 'c']);
});

test('a follow ends when the client leaves', async () => {
  using log = new TemporaryLog();
  log.append(line('a'));
  const follower = new Follower(log.path);
  await follower.reached(1);

  follower.leave();
  await follower.done;

  assert.deepEqual(follower.texts, ['a']);
});

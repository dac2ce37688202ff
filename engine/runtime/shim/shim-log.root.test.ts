import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';

import { unframe } from '@gantry/client/frames.ts';
import { OUTPUT, payload, seen, TestBundle } from '@gantry/testing/test-bundle.ts';

type Entry = { log: string; stream: string; time: string; attrs?: Record<string, string>; raw?: string };

const LOGS = { ...OUTPUT, logs: true };

async function run(bundle: TestBundle, script: string, wanted: Parameters<TestBundle['shim']>[1] = {}): Promise<void> {
  const shim = await bundle.shim(['sh', '-c', script], wanted);
  await shim.start();
  await shim.exited;
  shim.release();
  await shim.gone; // the next one has the same id
}

function entries(path: string): Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Entry);
}

function numbers(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\n`).join('');
}

test('lines are logged as docker writes them', async () => {
  await using bundle = new TestBundle();

  await run(bundle, String.raw`printf 'a"\\<é\t\001\342\200\250\177\n'; printf '\377x\n'; printf end >&2`);

  const lines = readFileSync(bundle.logPath, 'utf8').trimEnd().split('\n');
  const time = String.raw`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z"`;
  const first = String.raw`^\{"log":"a\\"\\\\\\u003cé\\u0009\\u0001\\u2028${'\x7f'}\\n","stream":"stdout",${time}\}$`;
  assert.match(lines[0]!, new RegExp(first));
  assert.match(lines[1]!, new RegExp(String.raw`^\{"log":"\\ufffdx\\n","stream":"stdout",${time},"raw":"/3gK"\}$`));
  assert.match(lines[2]!, new RegExp(String.raw`^\{"log":"end","stream":"stderr",${time}\}$`));
});

test('a long line is split after 16 KB, and all its pieces have the time of the first', async () => {
  await using bundle = new TestBundle();

  await run(bundle, "printf x; head -c 39999 /dev/zero | tr '\\0' 'a'; echo; echo next");

  const found = entries(bundle.logPath);
  assert.deepEqual(
    found.map(({ log }) => [log.length, log.endsWith('\n')]),
    [
      [16384, false],
      [16384, false],
      [7233, true],
      [5, true],
    ],
  );
  assert.equal(new Set(found.slice(0, 3).map(({ time }) => time)).size, 1);
});

test('a character on the border of two pieces stays whole', async () => {
  await using bundle = new TestBundle();

  await run(bundle, "head -c 16383 /dev/zero | tr '\\0' 'a'; echo é€");

  const found = entries(bundle.logPath);
  assert.deepEqual(
    found.map(({ log }) => log.length),
    [16383, 3],
  );
  assert.equal(found[1]?.log, 'é€\n');
  assert.ok(found.every(({ raw }) => raw === undefined));
});

test('bytes that are no text come back from the log as they were', async () => {
  await using bundle = new TestBundle();
  const script = String.raw`head -c 100000 /dev/zero | tr '\0' '\377'; printf '\303'; read x; printf '\251\n'; read x`;
  const log = { attributes: '{"a":"b","raw":"eA=="}' };
  const shim = await bundle.shim(['sh', '-c', script], { openStdin: true, log });
  await shim.start();
  const live = await bundle.attach(shim, { ...LOGS, stdin: true });
  await seen(live, '\u00c3');
  live.write('\n');
  await seen(live, '\u00a9\n');

  const logged = await payload(await bundle.attach(shim, { ...LOGS, stream: false }));

  assert.ok(logged.equals(Buffer.concat([Buffer.alloc(100_000, 0xff), Buffer.from('é\n')])));
});

test('a program that is written out comes back from the log as it was', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'cat /bin/busybox; read x'], { openStdin: true });
  await shim.start();
  const live = await bundle.attach(shim, { ...LOGS, stdin: true });
  const program = readFileSync('/bin/busybox');
  const logged = payload(await bundle.attach(shim, LOGS));
  live.end('\n');

  assert.ok((await logged).equals(program));
});

test("the attributes of the log's options stand in every line", async () => {
  await using bundle = new TestBundle();
  const attributes = { 'a.label': 'x"y', VAR: 'é' };

  await run(bundle, 'echo one; echo two', { log: { attributes: JSON.stringify(attributes) } });

  assert.match(
    readFileSync(bundle.logPath, 'utf8'),
    /^\{"log":"one\\n","stream":"stdout","attrs":\{"a.label":.*\},"time":"/,
  );
  assert.deepEqual(
    entries(bundle.logPath).map(({ attrs }) => attrs),
    [attributes, attributes],
  );
});

test('a line that an earlier crash cut off does not swallow the next one', async () => {
  await using bundle = new TestBundle();
  writeFileSync(bundle.logPath, '{"log":"half');

  await run(bundle, 'echo whole');

  const lines = readFileSync(bundle.logPath, 'utf8').split('\n');
  assert.equal(lines[0], '{"log":"half');
  assert.equal((JSON.parse(lines[1]!) as Entry).log, 'whole\n');
});

test('rotation keeps the wanted files, each a little over its size', async () => {
  await using bundle = new TestBundle();

  await run(bundle, 'seq 20000', { log: { maxBytes: 100_000, maxFiles: 3 } });

  const names = readdirSync(bundle.directory).filter((name) => name.startsWith(basename(bundle.logPath)));
  assert.deepEqual(names.toSorted(), ['log.json', 'log.json.1', 'log.json.2']);
  for (const name of ['.1', '.2']) {
    const { length } = readFileSync(bundle.logPath + name);
    assert.ok(length >= 100_000 && length < 100_200, `${name} has ${length} bytes`);
  }
  const kept = ['.2', '.1', ''].flatMap((name) => entries(bundle.logPath + name)).map(({ log }) => log);
  assert.equal(kept.join(''), numbers(20_001 - kept.length, 20_000));
});

test('one file only starts again when it is full', async () => {
  await using bundle = new TestBundle();

  await run(bundle, 'seq 20000', { log: { maxBytes: 100_000, maxFiles: 1 } });

  const kept = entries(bundle.logPath).map(({ log }) => log);
  assert.equal(kept.join(''), numbers(20_001 - kept.length, 20_000));
  assert.ok(readFileSync(bundle.logPath).length < 100_200);
});

for (const maxFiles of [1, 3]) {
  test(`a slow reader is caught up across rotations with ${maxFiles} files kept`, async () => {
    await using bundle = new TestBundle();
    const log = { maxBytes: 100_000, maxFiles };
    const shim = await bundle.shim(['seq', '300000'], { log });
    const slow = await bundle.attach(shim, OUTPUT);
    await shim.start();
    await shim.exited;

    assert.equal((await payload(slow)).toString(), numbers(1, 300_000));
  });
}

test('logs start with the oldest file, and end with the present end of the log', async () => {
  await using bundle = new TestBundle();
  const log = { maxBytes: 1_000_000, maxFiles: 5 };
  const shim = await bundle.shim(['sh', '-c', 'seq 30000; echo ready >&2; read x; echo more'], {
    log,
    openStdin: true,
  });
  const live = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  await shim.start();
  await seen(live, 'ready');

  const { stdout } = unframe(await buffer(await bundle.attach(shim, { ...LOGS, stream: false })));

  assert.equal(stdout, numbers(1, 30_000));
  assert.ok(readdirSync(bundle.directory).includes('log.json.2'));
});

test('logs and stream together have everything once, also of a line that is not finished', async () => {
  await using bundle = new TestBundle();
  const script = 'seq 1000; printf part; read x; echo ial; seq 1000';
  const shim = await bundle.shim(['sh', '-c', script], { openStdin: true });
  const first = await bundle.attach(shim, OUTPUT);
  await shim.start();
  await seen(first, 'part');

  const late = await bundle.attach(shim, { ...LOGS, stdin: true });
  late.write('\n');

  assert.equal((await payload(late)).toString(), `${numbers(1, 1000)}partial\n${numbers(1, 1000)}`);
});

test('an attach to logs and stream while the container writes gets everything once', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'seq 400000; cat'], { openStdin: true, stdinOnce: true });
  const last = await bundle.attach(shim, { ...OUTPUT, stdout: false, stdin: true });
  await shim.start();
  const readers: Promise<Buffer>[] = [];
  for (let i = 0; i < 8; i += 1) readers.push(payload(await bundle.attach(shim, LOGS)));
  last.end();

  const outputs = await Promise.all(readers);

  const expected = numbers(1, 400_000);
  for (const output of outputs) assert.ok(output.toString() === expected);
});

test('lines can be numbered, and the numbers go on with the next run', async () => {
  await using bundle = new TestBundle();
  const log = { maxBytes: 300, maxFiles: 3, firstNumber: 1 };
  const numbers = (): number[] =>
    ['.2', '.1', ''].flatMap((name) => {
      const path = bundle.logPath + name;
      const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
      return [...text.matchAll(/"seq":(\d+)\}$/gm)].map(([, number]) => Number(number));
    });

  await run(bundle, String.raw`printf '1,"seq":9}\n\377\n'; echo 3`, { log });
  const first = numbers();
  appendFileSync(bundle.logPath, '{"log":"half');
  await run(bundle, 'echo next', { log });
  const second = numbers();
  await run(bundle, 'echo far', { log: { ...log, firstNumber: 50 } });

  assert.deepEqual(
    [first, second, numbers()],
    [
      [1, 2, 3],
      [1, 2, 3, 4],
      [1, 2, 3, 4, 50],
    ],
  );
});

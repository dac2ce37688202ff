import assert from 'node:assert/strict';
import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './compared.ts';

const MB = 1024 * 1024;
const LARGE_MB = 32;
/** Megabytes that the daemon reads by the way: its own mappings, the cache of compiled code. */
const BY_THE_WAY_MB = 16;
const COPIES = 4;

/** A source that is copied by many steps, or again by another build, is read and hashed once. */
suite('the content of COPY', { concurrency: false }, () => {
  let engine: TestEngine;
  const large = randomFillSync(Buffer.alloc(LARGE_MB * MB));
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** Megabytes that the daemon reads, from files and sockets, while `work` is done. */
  async function readDuring(work: () => Promise<void>): Promise<number> {
    const read = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${engine.pid}/io`, 'utf8'))![1]);
    const before = read();
    await work();
    return (read() - before) / MB;
  }

  const copies = (from: string): string =>
    Array.from({ length: COPIES }, (_, at) => `COPY ${from}large /copies/${at}`).join('\n');
  async function built(file: string, files: Parameters<typeof contextOf>[0] = {}): Promise<string | undefined> {
    const { id, lines } = await build(engine, 'networkmode=none', contextOf({ Dockerfile: file, ...files }));
    assert.ok(id, JSON.stringify(lines.at(-1)));
    return id;
  }

  test('of a context is read as it arrives, and not by the steps that the cache has', async () => {
    const files = { large: { content: large } };
    const file = `FROM busybox\n${copies('')}`;
    const first = await built(file, files);

    const megabytes = await readDuring(async () => assert.equal(await built(file, files), first));

    assert.ok(megabytes >= LARGE_MB && megabytes < LARGE_MB + BY_THE_WAY_MB, `${megabytes} MB were read`);
  });

  test('of a stage is not read again by steps and builds that copy the same', async () => {
    const file = (more = ''): string =>
      `FROM busybox AS made\nRUN head -c ${LARGE_MB}m /dev/urandom >/large\nFROM busybox\n${copies('--from=made /')}\n${more}`;
    const first = await built(file());

    const again = await readDuring(async () => assert.equal(await built(file()), first));
    const longer = await readDuring(async () => void (await built(file('LABEL more=1'))));

    for (const megabytes of [again, longer]) assert.ok(megabytes < BY_THE_WAY_MB, `${megabytes} MB were read`);
  });

  test('of a stage that has changed is read again', async () => {
    const file = (text: string): string =>
      `FROM busybox AS made\nRUN echo ${text} >/text\nFROM busybox\nCOPY --from=made /text /\nRUN cat /text`;
    const saying = async (text: string): Promise<string> => {
      const { lines } = await build(engine, 'networkmode=none', contextOf({ Dockerfile: file(text) }));
      return lines.map(({ stream = '' }) => stream).join('');
    };

    assert.match(await saying('one'), /\none\n/);
    assert.match(await saying('two'), /\ntwo\n/);
    assert.equal((await saying('one')).match(/Using cache/g)?.length, 3);
  });

  test('of a missing file is looked for each time', async () => {
    const file = 'FROM busybox AS made\nRUN true\nFROM busybox\nCOPY --from=made /nowhere /\n';
    for (let time = 0; time < 2; time += 1) {
      const { lines } = await build(engine, 'networkmode=none', contextOf({ Dockerfile: file }));
      assert.match(lines.at(-1)?.error ?? '', /COPY failed: stat nowhere: file does not exist/);
    }
  });
});

import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { endProcess } from '@gantry/testing/daemon-process.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf, type Files } from './compared.ts';

const MB = 1024 * 1024;
/** 100,000 were tried too. */
/** By hand with 100,000, where the bound of the memory tells more. */
const FILES = Number(process.env['GANTRY_CONTEXT_FILES'] ?? 10_000);

/** Compressed a few kilobytes, extracted more than the disk has. */
const bomb = (): Buffer => gzipSync(new TarWriter().add({ name: 'large', content: Buffer.alloc(60 * MB) }).end());

/** `/endless` has no end, `/silent` no beginning, `/stalled` stops in the middle; others are what their query says. */
const SERVER = `
  require('node:http').createServer((request, response) => {
    if (request.url === '/silent') return;
    response.setHeader('Content-Type', 'application/x-tar');
    if (request.url === '/stalled') return response.write(Buffer.alloc(100000));
    const piece = Buffer.alloc(1 << 20, 'x');
    const more = () => { while (response.write(piece)); };
    response.on('drain', more);
    more();
  }).listen(8080, '127.0.0.1', () => process.send('listening'));
`;

suite('a build on a small disk', { concurrency: false }, () => {
  let engine: TestEngine;
  let server: ChildProcess;

  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    const words = [`--net=${join(engine.directory, 'netns')}`, process.execPath, '-e', SERVER];
    server = spawn('nsenter', words, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    await once(server, 'message');
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'none', engine.dataRoot]);
    await engine.startAgain();
    await engine.loadBusybox();
  });
  after(async () => {
    await endProcess(server, 'SIGKILL');
    await engine.kill('SIGTERM');
    execFileSync('umount', [engine.dataRoot]);
    await engine.startAgain();
    await engine[Symbol.asyncDispose]();
  });

  async function failureOf(file: string, files: Files = {}): Promise<string> {
    const context = contextOf({ Dockerfile: file, ...files });
    const { lines, message } = await build(engine, 'networkmode=none&forcerm=1', context);
    return message ?? lines.find(({ error }) => error !== undefined)?.error ?? 'it has not failed';
  }

  /** Nothing but the image `busybox`, and it still builds. */
  async function assertClear(): Promise<void> {
    const deadline = Date.now() + 60_000;
    const left = (): string[] => [
      ...['builds', 'blobs/arriving', 'writable', 'layers/.trash'].flatMap((name) =>
        existsSync(join(engine.dataRoot, name))
          ? readdirSync(join(engine.dataRoot, name))
              .filter((each) => each !== '.trash')
              .map((each) => `${name}/${each}`)
          : [],
      ),
    ];
    while (left().length > 0 && Date.now() < deadline) await setTimeout(20);
    assert.deepEqual(left(), []);
    assert.deepEqual((await engine.get('/containers/json?all=1')).body, []);
    assert.equal((await engine.get<unknown[]>('/images/json?all=1')).body.length, 1);
    const context = contextOf({ Dockerfile: 'FROM busybox\nCOPY x /x\nRUN cat /x', x: 'still\n' });
    const { id } = await build(engine, 'networkmode=none&nocache=1', context);
    assert.ok(id, 'it builds afterwards');
    assert.equal((await engine.delete(`/images/${id}`)).status, 200);
  }

  test('fails at a RUN that fills the disk, and leaves nothing', async () => {
    const file = 'FROM busybox\nRUN dd if=/dev/zero of=/large bs=1M count=60';

    assert.match(await failureOf(file), /returned a non-zero code: 1/);

    await assertClear();
  });

  test('fails at a layer for which there is no room, and leaves nothing', async () => {
    // The writable layer and its archive together have no room.
    const file = 'FROM busybox\nRUN dd if=/dev/urandom of=/large bs=1M count=22';

    assert.match(await failureOf(file), /no space left on device/);

    await assertClear();
  });

  test('refuses a context for which there is no room, also one that is compressed', async () => {
    const large = contextOf({ Dockerfile: 'FROM busybox', large: { content: Buffer.alloc(60 * MB) } });

    for (const context of [large, gzipSync(large)]) {
      const { status, message = '' } = await build(engine, '', context);
      assert.equal(status, 500);
      assert.match(message, /no space left on device/);
    }

    await assertClear();
  });

  test('fails at ADD of a file without end, and at a context without end, and leaves nothing', async () => {
    assert.match(await failureOf('FROM busybox\nADD http://127.0.0.1:8080/endless /'), /no space left on device/);
    await assertClear();

    const { lines, message } = await build(engine, 'remote=http://127.0.0.1:8080/endless', Buffer.alloc(0));
    assert.match(message ?? lines.at(-1)?.error ?? '', /no space left on device/);
    await assertClear();
  });

  for (const path of ['silent', 'stalled']) {
    test(`ends with its client while it waits for a ${path} server, and leaves nothing`, async () => {
      const context = contextOf({ Dockerfile: `FROM busybox\nADD http://127.0.0.1:8080/${path} /\n` });
      const stream = await engine.stream('POST', '/build?forcerm=1', {
        body: context,
        headers: { 'Content-Type': 'application/x-tar' },
      });
      let said = '';
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        said += chunk.toString();
        if (said.includes('Step 2/2')) break; // which closes the connection
      }

      assert.match(said, /Step 2\/2 : ADD/);
      await assertClear();
    });
  }

  test('fails at ADD of an archive for which there is no room, and leaves nothing', async () => {
    assert.match(
      await failureOf('FROM busybox\nADD bomb.tar.gz /', { 'bomb.tar.gz': { content: bomb() } }),
      /no space left/i,
    );

    await assertClear();
  });
});

suite('a build of very many files', { concurrency: false }, () => {
  test(`takes a context of ${FILES} files, of which it needs a few`, async () => {
    const tar = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\nCOPY folder-7 /seven\n' });
    for (let file = 0; file < FILES; file += 1) tar.add({ name: `folder-${file % 100}/${file}`, content: `${file}` });
    tar.add({ name: '.dockerignore', content: 'folder-1*\n' });
    const context = tar.end();
    await using engine = await TestEngine.start({ flags: ['--bridge=none'] });
    const residentMB = (field: 'VmRSS' | 'VmHWM'): number => {
      const status = readFileSync(`/proc/${engine.pid}/status`, 'utf8');
      return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)![1]) / 1024;
    };
    const before = residentMB('VmRSS');
    writeFileSync(`/proc/${engine.pid}/clear_refs`, '5'); // the peak begins anew

    const first = await build(engine, '', context);
    const second = await build(engine, '', context);

    assert.ok(first.id);
    assert.equal(second.id, first.id);
    // A removal of the files all at once takes 2 KB for each.
    const more = residentMB('VmHWM') - before;
    assert.ok(more < 80 + FILES / 1000, `${more.toFixed(0)} MB more`);
    const { body } = await engine.get<{ RootFS: { Layers: string[] } }>(`/images/${first.id}/json`);
    assert.equal(body.RootFS.Layers.length, 2);
  });
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { GetSecretRequest, GetSecretResponse } from '@gantry/engine/buildkit/messages/session.ts';
import { unary } from '@gantry/engine/buildkit/wire/service.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { FILE_SYNC, servedFiles, SessionClient, type Claimed } from './session-client.ts';

const SECRETS = '/moby.buildkit.secrets.v1.Secrets/GetSecret';
const SECRET = 'open-sesame-23421508';
const LINK = 2 ** 27;
const COPY = 'FROM busybox\nCOPY . /all/\n';
const plain = (path: string, more: Partial<Claimed> = {}): Claimed => ({
  path,
  mode: 0o644,
  size: 4,
  modified: 1n,
  content: 'evil',
  ...more,
});
const link = (path: string, linkName: string): Claimed => ({ path, mode: LINK + 0o777, linkName, modified: 1n });

suite('a hostile client of builds', { concurrency: false }, () => {
  let engine: TestEngine;
  let builds = 0;
  before(async () => (engine = await TestEngine.start({ flags: ['--bridge=none'] })));
  after(async () => await engine[Symbol.asyncDispose]());

  /** The digest of the image, or the failure. */
  async function built(context: readonly Claimed[], file = COPY): Promise<string> {
    const served = new Map([
      [FILE_SYNC, servedFiles(file, context)],
      [SECRETS, unary(GetSecretRequest, GetSecretResponse, () => ({ data: Buffer.from(SECRET) }))],
    ]);
    const client = await SessionClient.open(engine.socketPath, served);
    builds += 1;
    try {
      const options = new Map([['force-network-mode', 'none']]);
      const exporters = [{ type: 'moby', attributes: new Map([['name', `built-${builds}`]]) }];
      return (await client.solve({ ref: `build ${builds}`, frontendOptions: options, exporters })).exporter.get(
        'containerimage.digest',
      )!;
    } catch (error) {
      return String(error);
    } finally {
      client.vanish();
    }
  }

  const place = (): string => join(engine.directory, 'outside');
  const ESCAPES: Readonly<Record<string, () => readonly Claimed[]>> = {
    'a path that goes up': () => [plain(`../../../../../../../../..${place()}`)],
    'an absolute path': () => [plain(place())],
    'a path through a link': () => [link('l', engine.directory), plain('l/outside')],
    'a path through a link in place of a folder': () => [
      { path: 'l', mode: 2 ** 31 + 0o755, modified: 1n },
      link('l', engine.directory),
      plain('l/outside'),
    ],
  };
  for (const [name, context] of Object.entries(ESCAPES)) {
    test(`${name} leads to nothing outside of the build`, async () => {
      await built(context());

      assert.ok(!existsSync(place()));
    });
  }

  test('another name of a file of the machine is refused', async () => {
    const file = join(engine.directory, 'gantry.sock');

    assert.match(
      await built([plain('passwd', { linkName: '/etc/passwd', size: 0 })]),
      /which is not a file|leads out of the root/,
    );
    assert.match(
      await built([plain('up', { linkName: `../../../../../../..${file}`, size: 0 })]),
      /which is not a file|leads out of the root/,
    );
  });

  test('a link in the context shows files of the context alone', async () => {
    const result = await built([link('l', '/etc/passwd')], 'FROM busybox\nCOPY l /copied\n');

    assert.match(result, /not found/);
  });

  test('names and sizes that no file has end the build', async () => {
    for (const context of [[plain('a\0b')], [plain('')], [plain('f', { size: -1 })], [plain('n'.repeat(5000))]])
      assert.doesNotMatch(await built(context), /^sha256:/);
    assert.equal((await engine.get('/_ping')).status, 200);
  });

  test('a secret is in no file of the engine, no event and no line of its log', async () => {
    const file = 'FROM busybox\nRUN --mount=type=secret,id=s test -s /run/secrets/s && touch /used\n';

    const result = await built([], file);

    assert.match(result, /^sha256:/);
    const found = (words: readonly string[]): string => {
      try {
        return execFileSync('grep', words, { encoding: 'utf8' });
      } catch {
        return ''; // nothing was found
      }
    };
    assert.equal(found(['-rlaF', '-D', 'skip', SECRET, engine.dataRoot, join(engine.directory, 'log')]), '');
    const now = Math.ceil(Date.now() / 1000) + 1;
    const events = await engine.get(`/events?since=0&until=${now}`);
    assert.ok(!events.raw.includes(SECRET));
  });
});

suite('a build of a client on a small disk', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'none', engine.dataRoot]);
    await engine.startAgain();
    await engine.loadBusybox();
  });
  after(async () => {
    await engine.kill('SIGTERM');
    execFileSync('umount', [engine.dataRoot]);
    await engine.startAgain();
    await engine[Symbol.asyncDispose]();
  });

  async function solve(ref: string, file: string, bytes: number): Promise<unknown> {
    const files = [plain('f', { size: bytes, content: 'x'.repeat(bytes) })];
    const client = await SessionClient.open(engine.socketPath, new Map([[FILE_SYNC, servedFiles(file, files)]]));
    try {
      return await client.solve({ ref, frontendOptions: new Map([['force-network-mode', 'none']]) });
    } finally {
      client.vanish();
    }
  }

  const CASES: readonly (readonly [string, string, number])[] = [
    ['the context', COPY, 60_000_000],
    ['the copy of the context', COPY, 20_000_000],
    ['a step', 'FROM busybox\nRUN head -c 60000000 /dev/zero > /large\n', 1],
  ];
  for (const [name, file, bytes] of CASES) {
    test(`without room for ${name} fails, and the next one works`, async () => {
      await assert.rejects(solve(`no room for ${name}`, file, bytes), /space|exit code/);

      // The files of the failed step are removed in the background.
      let attempts = 0;
      await eventually('a build', async () => {
        attempts += 1;
        await solve(`room after ${name}, ${attempts}`, 'FROM busybox\nCOPY f /f\nRUN test -s /f\n', 1000);
        return true;
      });
    });
  }
});

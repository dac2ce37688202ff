import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Method } from '@gantry/engine/buildkit/wire/service.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { FILE_SYNC, servedFiles, SessionClient } from './session-client.ts';

const SECRETS = '/moby.buildkit.secrets.v1.Secrets/GetSecret';
const FILE_SEND = '/moby.filesync.v1.FileSend/DiffCopy';
const CREDENTIALS = '/moby.filesync.v1.Auth/Credentials';
const NETWORK = new Map([['force-network-mode', 'none']]);
const COPY = 'FROM busybox\nCOPY . /all\n';
/** More than the windows of a stream take. */
const LARGE = 'FROM busybox\nRUN head -c 30000000 /dev/zero > /large\n';
const FILES = ['a', 'b', 'c'].map((path) => ({
  path,
  mode: 0o644,
  size: 100_000,
  modified: 1n,
  content: path.repeat(100_000),
}));

type Stage = Readonly<{
  file?: string;
  /** The stage of a transfer, or the method that the engine calls. */
  reached: string;
  output?: string;
}>;

/** Where the client is when it vanishes. */
const STAGES: Readonly<Record<string, Stage>> = {
  'when it is asked for the Buildfile': { reached: 'dockerfile' },
  'when it is asked for the ignore file': { reached: 'ignore' },
  'before the names of its files': { reached: 'names' },
  'among the names of its files': { reached: 'more names' },
  'in the middle of a file': { reached: 'content' },
  'when it is asked for a secret': { file: 'FROM busybox\nRUN --mount=type=secret,id=s true\n', reached: SECRETS },
  'when it is asked for credentials': { file: 'FROM 127.0.0.1:1/nowhere\n', reached: CREDENTIALS },
  'in a step': { file: 'FROM busybox\nRUN echo has begun; sleep 1000\n', reached: 'step' },
  'when it gets the result': { file: LARGE, reached: FILE_SEND, output: 'tar' },
  'when it gets the files of the result': { file: LARGE, reached: FILE_SEND, output: 'local' },
};

suite('a client of a build that vanishes', { concurrency: false }, () => {
  let engine: TestEngine;
  let builds = 0;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    await vanishAt({ reached: 'content' }); // the parts for BuildKit are loaded
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** Begins a build, and leaves when the stage is reached. */
  async function vanishAt({ file = COPY, reached, output }: Stage): Promise<void> {
    const arrived = Promise.withResolvers<void>();
    const reach = async (stage: string): Promise<void> => {
      if (stage !== reached) return;
      arrived.resolve();
      await new Promise(() => undefined);
    };
    const silent = (path: string): readonly [string, Method] => [
      path,
      async function* never() {
        await reach(path);
        yield new Uint8Array();
      },
    ];
    const served = new Map([
      [FILE_SYNC, servedFiles(file, FILES, reach)],
      ...[SECRETS, FILE_SEND, CREDENTIALS].map((path) => silent(path)),
    ]);
    const client = await SessionClient.open(engine.socketPath, served);
    builds += 1;
    const ref = `build ${builds}`;
    const exporters = output === undefined ? [] : [{ type: output, attributes: new Map() }];
    const solving = client.solve({ ref, frontendOptions: NETWORK, exporters });
    solving.catch((error: unknown) => arrived.reject(error));
    if (reached === 'step') client.wrote(ref, 'has begun').then(arrived.resolve, arrived.reject);
    await arrived.promise;
    client.vanish();
    await assert.rejects(solving);
    await cleared();
  }

  async function cleared(): Promise<void> {
    await eventually('no container is left', async () => {
      const { body } = await engine.get<unknown[]>('/containers/json?all=1');
      return body.length === 0;
    });
    await eventually(
      'the folders of builds are removed',
      () => readdirSync(join(engine.dataRoot, 'builds')).length === 0,
    );
  }

  for (const [name, stage] of Object.entries(STAGES)) {
    test(`${name} ends the build, and leaves nothing`, async () => {
      await vanishAt(stage); // once for what stays open from then on, such as threads
      const files = (): number => readdirSync(`/proc/${engine.pid}/fd`).length;
      const before = files();

      await vanishAt(stage);

      await eventually('no file is left open', () => files() <= before);
    });
  }

  test('a client that stays builds afterwards', async () => {
    const client = await SessionClient.open(engine.socketPath, new Map([[FILE_SYNC, servedFiles(COPY, FILES)]]));
    const exporters = [{ type: 'moby', attributes: new Map([['name', 'stays']]) }];
    const { exporter } = await client.solve({ ref: 'stays', exporters });
    assert.match(exporter.get('containerimage.digest')!, /^sha256:/);
    client.vanish();
  });

  for (const [name, stage] of Object.entries({ 'a transfer': 'content', 'a step': 'step' })) {
    test(`a daemon that is killed in ${name} leaves nothing to the next one`, async () => {
      const file = stage === 'step' ? 'FROM busybox\nRUN echo has begun; sleep 1000\n' : COPY;
      const arrived = Promise.withResolvers<void>();
      const served = servedFiles(file, FILES, async (reached) => {
        if (reached !== stage) return;
        arrived.resolve();
        await new Promise(() => undefined);
      });
      const client = await SessionClient.open(engine.socketPath, new Map([[FILE_SYNC, served]]));
      const ref = `killed in ${stage}`;
      const solving = client.solve({ ref, frontendOptions: NETWORK });
      solving.catch((error: unknown) => arrived.reject(error));
      if (stage === 'step') client.wrote(ref, 'has begun').then(arrived.resolve, arrived.reject);
      await arrived.promise;

      await engine.kill();
      await assert.rejects(solving);
      client.vanish();
      await engine.startAgain();

      await eventually('no container is left', async () => {
        const { body } = await engine.get<unknown[]>('/containers/json?all=1');
        return body.length === 0;
      });
      assert.ok(
        !readdirSync(engine.dataRoot).includes('builds') || readdirSync(join(engine.dataRoot, 'builds')).length === 0,
      );
      const next = await SessionClient.open(engine.socketPath, new Map([[FILE_SYNC, servedFiles(COPY, FILES)]]));
      await next.solve({ ref });
      next.vanish();
    });
  }
});

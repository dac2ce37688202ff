import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';
import { gantry, refused as refusedBy, said as saidBy, type Outcome } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('commands of newer versions of the API', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: NEWEST });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const said = async (...words: string[]): Promise<string> => await saidBy(engine, ...words);
  const refused = async (...words: string[]): Promise<Outcome> => await refusedBy(engine, ...words);

  test('system df shows the sums of each kind of objects', async () => {
    await said('run', '-d', '--name', 'busy', '--network', 'none', '-v', 'kept:/v', 'busybox', 'sleep', '1000');

    const table = await said('system', 'df');

    assert.match(table, /^TYPE +TOTAL +ACTIVE +SIZE +RECLAIMABLE\nImages +1 +1 +1\.98MB +0B \(0%\)\nContainers +1 +1 /);
    assert.match(table, /\nLocal Volumes +1 +1 +0B +0B\nBuild Cache +0 +0 +0B +0B$/);
    assert.equal(
      await said('system', 'df', '--format', '{{.Type}}={{.TotalCount}}').then((text) => text.split('\n')[0]),
      'Images=1',
    );
    await said('rm', '-f', 'busy');
  });

  test('prune removes unused objects of each kind', async () => {
    const id = await said('create', '--name', 'ended', '--network', 'none', 'busybox');
    await said('tag', 'busybox', 'other');
    await said('volume', 'create');
    await said('network', 'create', 'unused');

    assert.match(
      await said('container', 'prune', '-f'),
      new RegExp(`^Deleted Containers:\n${id}\n\nTotal reclaimed space: 0B$`),
    );
    assert.equal(await said('container', 'prune', '-f'), 'Total reclaimed space: 0B');
    assert.match(await said('volume', 'prune', '-f'), /^Deleted Volumes:\n[0-9a-f]{64}\n\nTotal/);
    assert.match(await said('volume', 'prune', '-af'), /^Deleted Volumes:\nkept\n\nTotal/);
    assert.equal(await said('network', 'prune', '-f'), 'Deleted Networks:\nunused');
    assert.equal(await said('image', 'prune', '-f'), 'Total reclaimed space: 0B');
    assert.match(await said('builder', 'prune', '-f'), /^Total reclaimed space: 0B$/);
    assert.match(
      await said('image', 'prune', '-af', '--filter', 'until=1s'),
      /^Deleted Images:\nuntagged: [^]*deleted: sha256:/,
    );
    await engine.loadBusybox();
    await said('create', '--network', 'none', 'busybox');
    await said('volume', 'create');
    assert.match(
      await said('system', 'prune', '-af', '--volumes'),
      /^Deleted Containers:\n[^]*Deleted Volumes:\n[^]*Deleted Images:\n[^]*Total reclaimed space: /,
    );
    await engine.loadBusybox();
  });

  test('prune without --force asks, and is refused where it cannot ask', async () => {
    const { stderr } = await refused('system', 'prune');

    assert.match(stderr, /stdin is no terminal for a question: use --force/);
  });

  test('--platform is that of the image', async () => {
    const { stderr, code } = await refused('run', '--pull', 'never', '--platform', 'linux/arm64', 'busybox');

    assert.match(stderr, /platform/);
    assert.equal(code, 125);
    assert.equal(await said('run', '--rm', '--network', 'none', '--platform', 'linux', 'busybox', 'echo', 'x'), 'x');
  });

  test('--gpus is refused without a driver for them', async () => {
    const { stderr } = await refused('run', '--rm', '--network', 'none', '--gpus', 'all', 'busybox');

    assert.match(stderr, /could not select device driver/);
  });

  test('a context of docker names the engine', async () => {
    const folder = join(engine.directory, 'docker-config');
    const meta = join(folder, 'contexts/meta', createHash('sha256').update('mine').digest('hex'));
    await mkdir(meta, { recursive: true });
    const docker = { Host: `unix://${engine.socketPath}`, SkipTLSVerify: false };
    await writeFile(join(meta, 'meta.json'), JSON.stringify({ Name: 'mine', Metadata: {}, Endpoints: { docker } }));
    const ask = async (env: object, ...words: string[]): Promise<Outcome> =>
      await gantry(engine, [...words, 'version', '--format', '{{.Server.APIVersion}}'], {
        env: { DOCKER_CONFIG: folder, GANTRY_HOST: '', DOCKER_HOST: '', ...env },
      });

    const [named, flagged] = [await ask({ DOCKER_CONTEXT: 'mine' }), await ask({}, '--context', 'mine')];
    const overridden = await ask({ DOCKER_CONTEXT: 'none', DOCKER_HOST: `unix://${engine.socketPath}` });
    const unknown = await ask({ DOCKER_CONTEXT: 'none' });
    const both = await ask({}, '-c', 'mine', '-H', 'unix:///x');

    assert.deepEqual([named.stdout, flagged.stdout, overridden.stdout], [`${NEWEST}\n`, `${NEWEST}\n`, `${NEWEST}\n`]);
    assert.match(unknown.stderr, /^gantry: docker has no context "none"/);
    assert.match(both.stderr, /--host and --context name two engines/);
  });
});

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive, imageArchive } from '@gantry/testing/busybox-image.ts';
import { gantry } from '@gantry/testing/clients/own-client.ts';
import { unmountBelow } from '@gantry/testing/dockerd.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const OPEN = '127.0.0.1:5000';
const GUARDED = '127.0.0.1:5002';
const INDEX = '127.0.0.1:5010';
const PASSWORD = 'secret-of-alice';

type Inspect = { Id: string; RepoDigests: string[]; RootFS: { Layers: string[] } };
type Skopeo = { Digest: string; Layers: string[]; Labels: Record<string, string>; RepoTags: string[] };

/** Docker's command line, and skopeo, which shares no code with it, on images that go through registries and archives. */
suite('images and foreign clients', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  const folder = mkdtempSync(join(tmpdir(), 'gantry-images-'));

  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.registry(5002, { users: { alice: PASSWORD } });
    await registries.index(5010, [{ name: 'busybox', description: 'small', star_count: 7, is_official: true }]);
    writeFileSync(join(folder, 'busybox.tar'), await busyboxArchive());
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    await unmountBelow(folder); // podman leaves its storage mounted
    rmSync(folder, { recursive: true });
  });

  const docker = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await engine.docker(...words);
    assert.equal(code, 0, `docker ${words.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  const skopeo = async (...words: string[]): Promise<string> => {
    const netns = `--net=${join(engine.directory, 'netns')}`;
    const policy = ['--insecure-policy', '--tmpdir', folder];
    return (await execute('nsenter', [netns, 'skopeo', ...policy, ...words])).stdout.trim();
  };
  const inspect = async (name: string): Promise<Inspect> => (await engine.get<Inspect>(`/images/${name}/json`)).body;
  const file = (name: string): string => join(folder, name);

  test('docker loads, tags, pushes, removes and pulls, and it is the same image', async () => {
    assert.equal(await docker('load', '-q', '-i', file('busybox.tar')), 'Loaded image: busybox:latest');
    const { Id } = await inspect('busybox');
    await docker('tag', 'busybox', `${OPEN}/tools/busybox:1`);
    const pushed = await docker('push', `${OPEN}/tools/busybox:1`);
    const digest = /1: digest: (sha256:\w+) size: \d+/.exec(pushed)?.[1];
    assert.deepEqual((await inspect('busybox')).RepoDigests, [`${OPEN}/tools/busybox@${digest}`]);

    await docker('rmi', '-f', Id);
    const pulled = await docker('pull', `${OPEN}/tools/busybox:1`);

    assert.ok(pulled.includes(`Digest: ${digest}`), pulled);
    assert.equal((await inspect(`${OPEN}/tools/busybox:1`)).Id, Id);
    assert.match(await docker('pull', `${OPEN}/tools/busybox:1`), /Image is up to date/);
    assert.equal(await docker('pull', '-q', `${OPEN}/tools/busybox@${digest}`), `${OPEN}/tools/busybox@${digest}`);
    assert.equal(await docker('run', '--rm', '--network=none', `${OPEN}/tools/busybox:1`, 'echo', 'hello'), 'hello');
    await docker('tag', `${OPEN}/tools/busybox:1`, 'busybox');
  });

  test('docker saves and loads several images, shows their history, and lists by its filters', async () => {
    const layer = new TarWriter().add({ name: 'other', content: 'x' }).end();
    writeFileSync(file('other.tar'), imageArchive([layer], ['other:1', 'other:2'], { Labels: { kind: 'odd' } }));
    await docker('load', '-q', '-i', file('other.tar'));
    await docker('save', '-o', file('both.tar'), 'busybox', 'other');
    const { Id } = await inspect('other:1');
    await docker('rmi', 'other:1', 'other:2');
    assert.match(await docker('load', '-i', file('both.tar')), /Loaded image: other:1/);

    assert.equal((await inspect('other:2')).Id, Id);
    assert.match(
      await docker('history', '--no-trunc', '--format', '{{.CreatedBy}} {{.Size}}', 'other:1'),
      /^layer 0 1B$/,
    );
    assert.equal(await docker('images', '-q', '--no-trunc', '--filter', 'label=kind=odd', 'other'), `${Id}\n${Id}`);
    assert.equal(
      await docker('images', '--filter', 'reference=oth*:2', '--format', '{{.Repository}}:{{.Tag}}'),
      'other:2',
    );
    assert.equal(await docker('images', '-q', '--filter', 'dangling=true'), '');
  });

  test('docker logs in, and hears of forbidden actions', async () => {
    const login = ['login', '-u', 'alice', '-p'];
    assert.notEqual((await engine.docker(...login, 'wrong', GUARDED)).code, 0);
    const refused = await engine.docker('pull', `${GUARDED}/x`);
    assert.match(refused.stderr, /no basic auth credentials/);
    assert.match(await docker(...login, PASSWORD, GUARDED), /Login Succeeded/);
    await docker('tag', 'busybox', `${GUARDED}/mine`);
    await docker('push', `${GUARDED}/mine`);
    await docker('rmi', `${GUARDED}/mine`);

    assert.match(await docker('pull', `${GUARDED}/mine`), /Downloaded newer image/);
    await docker('logout', GUARDED);
    assert.match((await engine.docker('push', `${GUARDED}/mine`)).stderr, /no basic auth credentials/);
    assert.doesNotMatch(engine.log, /secret-of-alice|wrong/);
  });

  test('docker searches', async () => {
    const words = ['search', '--format', '{{.Name}} {{.StarCount}} {{.IsOfficial}}', '--filter', 'is-official=true'];

    assert.equal(await docker(...words, `${INDEX}/busy`), 'busybox 7 [OK]');
  });

  test('skopeo reads a pushed image, and its copy is the same image to us', async () => {
    const name = `${OPEN}/tools/busybox`;
    const { Id, RepoDigests, RootFS } = await inspect(`${name}:1`);
    const seen = JSON.parse(await skopeo('inspect', '--tls-verify=false', `docker://${name}:1`)) as Skopeo;

    assert.deepEqual(
      RepoDigests.filter((digest) => digest.startsWith(name)),
      [`${name}@${seen.Digest}`],
    );
    await skopeo('copy', '--src-tls-verify=false', `docker://${name}:1`, `docker-archive:${file('copy.tar')}:copied:1`);
    await docker('load', '-q', '-i', file('copy.tar'));
    const copied = await inspect('copied:1');
    assert.deepEqual([copied.Id, copied.RootFS.Layers], [Id, RootFS.Layers]);
  });

  test('skopeo reads a saved image, and its copy is the same image to us', async () => {
    const { Id, RootFS } = await inspect('busybox');
    await docker('save', '-o', file('saved.tar'), 'busybox:latest');
    const archive = `docker-archive:${file('saved.tar')}`;
    const seen = JSON.parse(await skopeo('inspect', archive)) as Skopeo;
    assert.deepEqual(seen.Layers, RootFS.Layers);

    await skopeo('copy', '--dest-tls-verify=false', archive, `docker://${OPEN}/by/skopeo:1`);
    await docker('pull', `${OPEN}/by/skopeo:1`);
    assert.equal((await inspect(`${OPEN}/by/skopeo:1`)).Id, Id);

    mkdirSync(file('oci'));
    await skopeo('copy', archive, `oci:${file('oci')}:made:1`);
    execFileSync('tar', ['-cf', file('oci.tar'), '-C', file('oci'), '.']);
    await docker('load', '-i', file('oci.tar'));
    // The form of the configuration may differ, the content does not.
    const listed = (await engine.get<{ Id: string }[]>('/images/json?all=1')).body;
    const chains = await Promise.all(listed.map(async (image) => (await inspect(image.Id)).RootFS.Layers.join()));
    assert.ok(chains.filter((chain) => chain === RootFS.Layers.join()).length >= 1);
  });

  test('podman loads saved images and pulls pushed ones, and we load its archives', async () => {
    const { Id, RootFS } = await inspect('busybox');
    await docker('save', '-o', file('for-podman.tar'), 'busybox:latest');
    const roots = ['--root', file('podman'), '--runroot', file('podman-run'), '--storage-driver=vfs'];
    const podman = async (...words: string[]): Promise<string> =>
      (
        await execute('nsenter', [`--net=${join(engine.directory, 'netns')}`, 'podman', ...roots, ...words])
      ).stdout.trim();
    type Seen = { Id: string; RootFS: { Layers: string[] } };
    const seen = async (): Promise<Seen> =>
      (JSON.parse(await podman('image', 'inspect', Id.replace('sha256:', ''))) as [Seen])[0];

    await podman('load', '-q', '-i', file('for-podman.tar'));
    const loaded = await seen();
    await podman('rmi', '-f', loaded.Id);
    await podman('pull', '-q', '--tls-verify=false', `${OPEN}/tools/busybox:1`);
    const pulled = await seen();
    for (const each of [loaded, pulled]) {
      assert.deepEqual([`sha256:${each.Id}`, each.RootFS.Layers], [Id, RootFS.Layers]);
    }

    await podman('tag', pulled.Id, 'localhost/from-podman:1');
    for (const format of ['docker-archive', 'oci-archive']) {
      await podman('save', '-q', `--format=${format}`, '-o', file(`${format}.tar`), 'localhost/from-podman:1');
      const said = await docker('load', '-q', '-i', file(`${format}.tar`));
      const [, name = ''] = /Loaded image(?: ID)?: (\S+)/.exec(said) ?? [];
      assert.deepEqual((await inspect(name)).RootFS.Layers, RootFS.Layers);
      await docker('rmi', '-f', name);
    }
  });

  test('save after load, and push after pull, give the same bytes', async () => {
    const save = async (name: string): Promise<Buffer> => (await engine.get(`/images/${name}/get`)).raw;
    const first = await save('busybox');
    await docker('rmi', '-f', (await inspect('busybox')).Id);
    writeFileSync(file('first.tar'), first);
    await docker('load', '-q', '-i', file('first.tar'));
    assert.ok((await save('busybox')).equals(first));

    await docker('pull', `${OPEN}/by/skopeo:1`);
    await docker('tag', `${OPEN}/by/skopeo:1`, `${GUARDED}/again:1`);
    await docker('login', '-u', 'alice', '-p', PASSWORD, GUARDED);
    await docker('push', `${GUARDED}/again:1`);
    const layersOf = async (name: string, ...words: string[]): Promise<unknown> =>
      (
        JSON.parse(await skopeo('inspect', '--raw', '--tls-verify=false', ...words, `docker://${name}`)) as {
          layers: { digest: string }[];
        }
      ).layers.map(({ digest }) => digest);
    assert.deepEqual(
      await layersOf(`${GUARDED}/again:1`, '--creds', `alice:${PASSWORD}`),
      await layersOf(`${OPEN}/by/skopeo:1`),
    );
  });

  test('the own command line does the same', async () => {
    const run = async (...words: string[]): Promise<string> => {
      const { code, stdout, stderr } = await gantry(engine, words);
      assert.equal(code, 0, `gantry ${words.join(' ')}: ${stderr}`);
      return stdout.trim();
    };
    await run('tag', 'busybox', `${OPEN}/own:1`);
    assert.match(await run('push', `${OPEN}/own:1`), /1: digest: sha256:/);
    await run('rmi', `${OPEN}/own:1`);
    assert.match(await run('image', 'pull', `${OPEN}/own:1`), /Downloaded newer image/);
    await run('save', '-o', file('own.tar'), `${OPEN}/own:1`);
    await run('image', 'rm', `${OPEN}/own:1`);
    assert.match(await run('load', '-i', file('own.tar')), /Loaded image/);
    assert.match(await run('history', `${OPEN}/own:1`), /IMAGE/);
    assert.match(await run('search', `${INDEX}/busy`), /busybox +small +7 +\[OK\]/);
  });
});

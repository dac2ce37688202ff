import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const PLAIN = '127.0.0.1:5000';
const PROXY = '127.0.0.1:5001';
/** An address of the engine's namespace that is not loopback's, so that proxies of the environment count. */
const OUTSIDE = '192.0.2.7:5000';
const ENVIRONMENT = [
  'env',
  'HTTP_PROXY=http://127.0.0.1:5009',
  'HTTPS_PROXY=http://127.0.0.1:5009',
  'NO_PROXY=direct.test,192.0.2.8',
];

const layer = (name: string, bytes = 2000): Buffer =>
  new TarWriter().add({ name, content: Buffer.alloc(bytes, `${name} `) }).end();
/** Bytes that gzip cannot make smaller. */
const noise = (name: string, bytes: number): Buffer => {
  const content = Buffer.alloc(bytes);
  let state = bytes + name.length;
  for (let at = 0; at < bytes; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    content[at] = state >> 16;
  }
  return new TarWriter().add({ name, content }).end();
};

suite('a pull on a bad day', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;

  before(async () => {
    const flags = ['--bridge=none', '--insecure-registry=192.0.2.0/24'];
    engine = await TestEngine.start({ image: false, flags, within: ENVIRONMENT });
    const netns = join(engine.directory, 'netns');
    for (const address of ['192.0.2.7', '192.0.2.8']) {
      execFileSync('nsenter', [`--net=${netns}`, 'ip', 'address', 'add', `${address}/32`, 'dev', 'lo']);
    }
    registries = await Registries.start(netns);
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
    await registries.forwarder(5009);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const pull = async (name: string): Promise<string> => {
    const { raw } = await engine.post(`/images/create?fromImage=${encodeURIComponent(name)}`);
    return raw.toString();
  };
  const left = (): string[] => [
    ...['blobs/sha256', 'blobs/skeletons', 'blobs/arriving'].flatMap((name) =>
      readdirSync(join(engine.dataRoot, name)),
    ),
    ...readdirSync(join(engine.dataRoot, 'layers')).filter((name) => !/^(\.trash$|common)/.test(name)),
  ];
  async function assertNothingLeft(): Promise<void> {
    for (const { Id } of (await engine.get<{ Id: string }[]>('/images/json?all=1')).body) {
      assert.equal((await engine.delete(`/images/${Id}?force=1`)).status, 200);
    }
    const deadline = Date.now() + 60_000;
    while (left().length > 0 && Date.now() < deadline) await setTimeout(20);
    assert.deepEqual(left(), []);
    assert.ok(!existsSync(join(engine.dataRoot, 'lost-and-found')), 'nothing has to be set aside');
  }

  test('a SIGKILL at any moment leaves nothing half, and the next daemon clears the rest away', async () => {
    const layers = Array.from({ length: 6 }, (_, index) => noise(`part-${index}`, 400_000));
    await registries.putImage(`${PLAIN}/v2/killed`, 'x', layers);
    const name = `${PLAIN}/killed:x`;
    let whole = 0;
    for (let kill = 0; kill < 6; kill += 1) {
      const stream = await engine.stream('POST', `/images/create?fromImage=${name}`);
      stream.on('error', () => undefined);
      let lines = 0;
      // Each time some lines later: downloads, unpacking, the names.
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        lines += chunk.toString().split('\n').length - 1;
        if (lines >= kill * 8 + 2) break;
      }
      await engine.kill('SIGKILL');
      await engine.startAgain();

      const { status } = await engine.get(`/images/${name}/json`);
      const listed = (await engine.get<unknown[]>('/images/json?all=1')).body.length;
      assert.deepEqual([status, listed], status === 200 ? [200, 1] : [404, 0]);
      if (status === 200) {
        whole += 1;
        assert.equal((await engine.get(`/images/${name}/get`)).status, 200);
      }
      await assertNothingLeft();
    }
    assert.match(await pull(name), /Downloaded newer image/);
    await assertNothingLeft();
    assert.ok(whole < 6);
  });

  /** Begins a load, and reads some lines; the daemon may die meanwhile. */
  async function readLines(archive: Buffer, most: number): Promise<void> {
    try {
      const stream = await engine.stream('POST', '/images/load', { body: archive });
      let lines = 0;
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        lines += chunk.toString().split('\n').length - 1;
        if (lines > most) break;
      }
    } catch (error) {
      assert.match(String(error), /ECONNRESET|socket hang up|aborted|EPIPE|terminated/);
    }
  }

  test('a SIGKILL in a load leaves nothing half either', async () => {
    const archive = imageArchive(
      Array.from({ length: 8 }, (_, index) => noise(`l-${index}`, 300_000)),
      ['loaded:1'],
    );
    for (let kill = 0; kill < 4; kill += 1) {
      const loading = readLines(archive, kill);
      if (kill === 0) await setTimeout(30);
      else await loading;
      await engine.kill('SIGKILL');
      await loading;
      await engine.startAgain();

      const { body } = await engine.get<{ RepoTags: string[] | null }[]>('/images/json?all=1');
      assert.ok(body.length <= 1);
      for (const { Id } of (await engine.get<{ Id: string }[]>('/images/json?all=1')).body) {
        assert.equal((await engine.get(`/images/${Id}/get`)).status, 200);
      }
      await assertNothingLeft();
    }
  });

  test('a full disk amid a pull is said, and leaves nothing', async () => {
    await registries.putImage(`${PLAIN}/v2/large`, 'x', [noise('small', 100_000), noise('large', 12_000_000)]);
    await registries.putImage(`${PLAIN}/v2/bomb`, 'x', [noise('small', 100_000), layer('bomb', 60_000_000)]);
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=14m', 'none', engine.dataRoot]);
    try {
      await engine.startAgain();

      assert.match(await pull(`${PLAIN}/large:x`), /no space left on device/);
      await assertNothingLeft();
      // A few kilobytes that become more than the disk has.
      assert.match(await pull(`${PLAIN}/bomb:x`), /no space left on device/);
      await assertNothingLeft();
      await engine.kill('SIGTERM');
    } finally {
      execFileSync('umount', [engine.dataRoot]);
      await engine.startAgain();
    }
  });

  test('all tags come, however many pages they have', async () => {
    for (const tag of ['a', 'b', 'c']) await registries.putImage(`${PLAIN}/v2/paged`, tag, [layer(tag)]);
    const page = (tags: string[], next?: string): object => ({
      status: 200,
      body: JSON.stringify({ name: 'paged', tags }),
      headers: next === undefined ? {} : { link: `</v2/paged/tags/list?last=${next}&n=1>; rel="next"` },
    });
    await registries.faults(
      { on: 'GET .*tags/list$', times: 1, ...page(['a'], 'a') } as never,
      { on: 'GET .*last=a', times: 1, ...page(['b'], 'b') } as never,
      { on: 'GET .*last=b', times: 1, ...page(['c']) } as never,
    );

    await pull(`${PROXY}/paged`);

    const { body } = await engine.get<{ RepoTags: string[] }[]>('/images/json');
    assert.deepEqual(
      body.flatMap(({ RepoTags }) => RepoTags).toSorted(),
      ['a', 'b', 'c'].map((tag) => `${PROXY}/paged:${tag}`),
    );
    await assertNothingLeft();
  });

  test('a foreign layer is not fetched from where its manifest says, which may be this machine', async () => {
    const image = await registries.putImage(`${PLAIN}/v2/foreign`, 'plain', [layer('foreign')]);
    const [there] = image.layers;
    const manifest = await registries.request('GET', `http://${PLAIN}/v2/foreign/manifests/plain`, {
      headers: { accept: 'application/vnd.docker.distribution.manifest.v2+json' },
    });
    const type = 'application/vnd.docker.distribution.manifest.v2+json';
    for (const mediaType of [there!.mediaType, 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip']) {
      for (const url of [`http://${PLAIN}/v2/foreign/blobs/${there!.digest}`, 'http://169.254.169.254/', 'unix:///x']) {
        const layers = [{ ...there!, mediaType, urls: [url] }];
        const body = JSON.stringify({ ...(JSON.parse(manifest.body.toString()) as object), layers });
        await registries.faults(
          { on: 'HEAD .*/manifests/', times: 1, status: 200, headers: { 'content-type': type } },
          { on: 'GET .*/manifests/', times: 1, status: 200, headers: { 'content-type': type }, body },
          { on: `GET .*${there!.digest}`, times: 1, status: 404, body: '{"errors":[{"code":"BLOB_UNKNOWN"}]}' },
        );

        assert.match(await pull(`${PROXY}/foreign:other`), /errorDetail/);
      }
    }
    await assertNothingLeft();
  });

  test('a proxy of the environment is used, and not for hosts that it is not for', async () => {
    await registries.registry(5000, { address: '192.0.2.7' });
    await registries.registry(5000, { address: '192.0.2.8' });
    for (const host of [OUTSIDE, '192.0.2.8:5000']) await registries.putImage(`${host}/v2/far`, 'x', [layer('far')]);
    await registries.seen();

    assert.match(await pull(`${OUTSIDE}/far:x`), /Downloaded newer image/);
    const proxied = await registries.seen();
    assert.deepEqual(
      new Set(proxied.map(({ path }) => path.replace(/^http:\/\//, '').split('/')[0])),
      new Set(['192.0.2.7:5000']),
    );
    assert.match(await pull('192.0.2.8:5000/far:x'), /Downloaded newer image/);
    assert.match(await pull(`${PLAIN}/killed:x`), /Downloaded newer image/);
    assert.deepEqual(await registries.seen(), []);
    await assertNothingLeft();
  });
});

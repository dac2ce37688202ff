import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { putMultiPlatform, type MultiPlatform } from '@gantry/testing/registries/multi-platform.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Inspected = { Id: string; Architecture: string; Variant?: string; RepoTags: string[]; RepoDigests: string[] };
type Listed = { Id: string; RepoTags: string[]; RepoDigests: string[] };
type Message = { message?: string };

/** A proxy before the registry. */
const REGISTRY = '127.0.0.1:5001';
const REPOSITORIES = '127.0.0.1:5000/v2';

suite('images of several platforms', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let index: MultiPlatform;
  before(async () => {
    engine = await TestEngine.start({ image: false, version: '1.55', flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
    index = await putMultiPlatform(registries, `${REPOSITORIES}/multi`, '1');
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    for (const { Id } of (await engine.get<{ Id: string }[]>('/containers/json?all=1')).body) {
      await engine.delete(`/containers/${Id}?force=1`);
    }
    await engine.post(`/images/prune?filters=${encodeURIComponent('{"dangling":["false"]}')}`);
    assert.deepEqual((await engine.get<Listed[]>('/images/json?all=1')).body, []);
  });

  async function pull(name: string, platform = ''): Promise<string> {
    const { raw } = await engine.post(`/images/create?fromImage=${REGISTRY}/${name}&platform=${platform}`);
    return raw.toString();
  }

  async function inspect(ref: string, platform?: object): Promise<Inspected & Message> {
    const query = platform === undefined ? '' : `?platform=${encodeURIComponent(JSON.stringify(platform))}`;
    return (await engine.get<Inspected & Message>(`/images/${ref}/json${query}`)).body;
  }

  async function create(ref: string, platform: string): Promise<[status: number, message?: string]> {
    const { status, body } = await engine.post<Message>(`/containers/create?platform=${platform}`, { Image: ref });
    return status === 201 ? [status] : [status, body.message ?? ''];
  }

  const NAME = `${REGISTRY}/multi:1`;
  const ARM = { os: 'linux', architecture: 'arm64' };
  const missing = (platform: string): [number, string] => [
    404,
    `image with reference ${NAME} was found but does not provide the specified platform (${platform})`,
  ];

  test('a pull keeps the index, and takes the layers of this machine alone', async () => {
    await pull('multi:1');

    const image = await inspect(NAME);
    assert.equal(image.Architecture, index.host.architecture);
    assert.deepEqual(image.RepoDigests, [`${REGISTRY}/multi@${index.digest}`]);
    assert.deepEqual(await create(NAME, 'linux/arm64'), missing('linux/arm64'));
    assert.equal((await inspect(NAME, ARM)).message, missing('linux/arm64')[1]);
  });

  test('pulls of further platforms join the index, in any order', async () => {
    assert.match(await pull('multi:1', 'linux/s390x'), /Downloaded newer image/);
    assert.equal((await inspect(NAME)).Architecture, 's390x');
    assert.match(await pull('multi:1', 'linux/arm64'), /Image is up to date/);
    assert.equal((await inspect(NAME)).Architecture, 'arm64'); // the first one of the index
    assert.match(await pull('multi:1'), /Pull complete.*Image is up to date/s);

    const image = await inspect(NAME);
    assert.equal(image.Architecture, index.host.architecture);
    const foreign = await inspect(NAME, ARM);
    assert.deepEqual([foreign.Architecture, foreign.Variant], ['arm64', 'v8']);
    assert.deepEqual(foreign.RepoTags, [NAME]);
    assert.deepEqual(foreign.RepoDigests, [`${REGISTRY}/multi@${index.digest}`]);
    assert.equal((await inspect(foreign.Id)).Id, foreign.Id);
    const { body } = await engine.get<Listed[]>('/images/json');
    assert.deepEqual(
      body.map(({ Id, RepoTags }) => [Id, RepoTags]),
      [[image.Id, [NAME]]],
    );
    const created = ['', 'linux/arm64', 'linux/arm64/v8', 'linux/s390x'].map(async (each) => await create(NAME, each));
    assert.deepEqual(await Promise.all(created), [[201], [201], [201], [201]]);
    assert.deepEqual(await create(NAME, 'linux/arm64/v9'), missing('linux/arm64/v9'));
    assert.deepEqual(await create(NAME, 'linux/ppc64le'), missing('linux/ppc64le'));
    assert.deepEqual(await create(NAME, 'unknown/unknown'), missing('unknown/unknown'));
  });

  test('a platform that the index does not list cannot be pulled', async () => {
    assert.match(await pull('multi:1', 'linux/ppc64le'), /no matching manifest for linux\/ppc64le/);
    assert.match(await pull('multi:1', 'unknown/unknown'), /no matching manifest for unknown\/unknown/);
  });

  test('a tag and a removal are of all platforms', async () => {
    await pull('multi:1');
    await pull('multi:1', 'linux/arm64');
    await engine.post(`/images/${NAME}/tag?repo=other&tag=1`);
    const foreign = await inspect('other:1', ARM);

    await engine.delete(`/images/${NAME}`);
    assert.equal((await inspect('other:1', ARM)).Id, foreign.Id);
    const { body: removed } = await engine.delete<{ Deleted?: string }[]>('/images/other:1');

    assert.ok(removed.some(({ Deleted }) => Deleted === foreign.Id));
    assert.match((await inspect(foreign.Id)).message ?? '', /No such image/);
  });

  test('a container of another platform keeps the image from being removed', async () => {
    await pull('multi:1');
    await pull('multi:1', 'linux/arm64');
    await create(NAME, 'linux/arm64');
    const { Id } = await inspect(NAME);
    await engine.post(`/images/${NAME}/tag?repo=other&tag=1`);

    assert.equal((await engine.delete(`/images/${Id}`)).status, 409);
    const pruned = await engine.post<{ ImagesDeleted: unknown }>(
      `/images/prune?filters=${encodeURIComponent('{"dangling":["false"]}')}`,
    );

    assert.equal((await inspect(NAME, ARM)).Architecture ?? (await inspect('other:1', ARM)).Architecture, 'arm64');
    assert.equal(pruned.status, 200);
  });

  test('an image of two indexes lives as long as one of them', async () => {
    const second = await putMultiPlatform(registries, `${REPOSITORIES}/second`, '1', { without: 's390x' });
    assert.notEqual(second.digest, index.digest);
    for (const name of ['multi:1', 'second:1']) for (const each of ['', 'linux/arm64']) await pull(name, each);
    await pull('multi:1', 'linux/s390x');

    await engine.delete(`/images/${NAME}`);

    const kept = `${REGISTRY}/second:1`;
    assert.deepEqual((await inspect(kept)).RepoTags, [kept]);
    assert.equal((await inspect(kept, ARM)).Architecture, 'arm64');
    const { body } = await engine.get<Listed[]>('/images/json?all=1');
    assert.equal(body.length, 1);
  });

  test('a moved tag leaves the earlier index with its digest', async () => {
    await pull('multi:1');
    await pull('multi:1', 'linux/arm64');
    const moved = await putMultiPlatform(registries, `${REPOSITORIES}/multi`, '1', { content: 'newer' });

    assert.match(await pull('multi:1'), /Downloaded newer image/);

    assert.deepEqual((await inspect(NAME)).RepoDigests, [`${REGISTRY}/multi@${moved.digest}`]);
    assert.deepEqual(await create(NAME, 'linux/arm64'), missing('linux/arm64'));
    const before = await inspect(`${REGISTRY}/multi@${index.digest}`, ARM);
    assert.deepEqual([before.Architecture, before.RepoTags], ['arm64', []]);
    await putMultiPlatform(registries, `${REPOSITORIES}/multi`, '1');
  });

  test('the index outlives the daemon, and one that was killed in a pull', async () => {
    await pull('multi:1');
    const paths = index.images.flatMap(({ layers }) => layers.map(({ digest }) => digest));
    await registries.faults({ on: `^GET .*/blobs/(${paths.join('|')})`, times: 1, hold: true });
    await registries.seen();
    const pulled = pull('multi:1', 'linux/arm64').catch(() => 'ended'); // with the daemon
    const asked: string[] = [];
    while (!asked.some((path) => path.includes('/blobs/')))
      asked.push(...(await registries.seen()).map(({ path }) => path));

    await engine.kill();
    await pulled;
    await registries.release();
    await registries.faults();
    await engine.startAgain();

    assert.equal((await inspect(NAME)).Architecture, index.host.architecture);
    assert.deepEqual(await create(NAME, 'linux/arm64'), missing('linux/arm64'));
    assert.match(await pull('multi:1', 'linux/arm64'), /Image is up to date/);
    assert.deepEqual(await create(NAME, 'linux/arm64'), [201]);
  });

  type Manifest = {
    ID: string;
    Kind: string;
    Available: boolean;
    Descriptor: { digest: string; platform?: object; annotations?: object };
    Size: { Content: number; Total: number };
    ImageData?: { Platform: object; Size: { Unpacked: number }; Containers: string[] | null };
    AttestationData?: { For: string };
  };
  type WithManifests = Listed & { Size: number; Descriptor: object; Identity?: object; Manifests?: Manifest[] };

  test('lists and inspects show the manifests of an index on request', async () => {
    await pull('multi:1');
    await pull('multi:1', 'linux/arm64');
    await create(NAME, 'linux/arm64');
    const containers = (await engine.get<{ Id: string; ImageManifestDescriptor: object }[]>('/containers/json?all=1'))
      .body;

    const [listed] = (await engine.get<WithManifests[]>('/images/json?manifests=1')).body;
    const [without] = (await engine.get<WithManifests[]>('/images/json')).body;
    const inspected = (await engine.get<WithManifests>(`/images/${NAME}/json?manifests=1`)).body;

    const ofIndex = { mediaType: 'application/vnd.oci.image.index.v1+json', digest: index.digest, size: index.size };
    for (const each of [listed!, without!, inspected]) assert.deepEqual(each.Descriptor, ofIndex);
    assert.equal(without!.Manifests, undefined);
    assert.deepEqual(inspected.Identity, { Pull: [{ Repository: `${REGISTRY}/multi` }] });
    const manifests = listed!.Manifests ?? [];
    assert.deepEqual(inspected.Manifests, manifests);
    assert.deepEqual(
      manifests.map(({ ID, Kind, Available }) => [ID, Kind, Available]),
      [
        ...index.images.map(({ digest, platform }) => [digest, 'image', platform.architecture !== 's390x']),
        [index.attestation.digest, 'attestation', false],
      ],
    );
    for (const [at, { platform, layers, id, ...rest }] of index.images.entries()) {
      const { ImageData, Size, Descriptor } = manifests[at]!;
      assert.deepEqual([ImageData!.Platform, Descriptor], [platform, { ...rest, platform }]);
      assert.deepEqual([Size.Content > 0, Size.Total - Size.Content], [Size.Total > 0, ImageData!.Size.Unpacked]);
      const isUsed = platform.architecture === 'arm64';
      assert.deepEqual(ImageData!.Containers, isUsed ? [containers[0]!.Id] : null);
      if (isUsed) assert.deepEqual(containers[0]!.ImageManifestDescriptor, Descriptor);
      assert.match(id, /^sha256:/);
      assert.equal(layers.length, 2);
    }
    assert.deepEqual(manifests.at(-1)!.AttestationData, { For: index.images.at(-1)!.digest });
    // The layer that both have in common counts once.
    const unpacked = manifests.map(({ ImageData }) => ImageData?.Size.Unpacked ?? 0);
    assert.ok(listed!.Size > Math.max(...unpacked) && listed!.Size < unpacked.reduce((sum, each) => sum + each));
    const { body: usage } = await engine.get<{ LayersSize: number; Images: WithManifests[] }>('/system/df?type=image');
    assert.deepEqual([usage.LayersSize, usage.Images.map(({ Size }) => Size)], [listed!.Size, [listed!.Size]]);
  });

  test('an image without a document has one manifest with a stable digest', async () => {
    const archive = imageArchive(new TarWriter().add({ name: 'file' }).end(), ['plain:1']);
    await engine.post('/images/load', archive);

    const { Manifests: first } = (await engine.get<WithManifests>('/images/plain:1/json?manifests=1')).body;
    const { Manifests: second } = (await engine.get<WithManifests>('/images/plain:1/json?manifests=1')).body;

    assert.deepEqual(
      first?.map(({ Kind, Available }) => [Kind, Available]),
      [['image', true]],
    );
    assert.deepEqual(second, first);
  });

  test('manifests beside a platform are refused', async () => {
    await pull('multi:1');
    const platform = encodeURIComponent(JSON.stringify(ARM));

    const { status, body } = await engine.get<Message>(`/images/${NAME}/json?manifests=1&platform=${platform}`);

    assert.equal(status, 400);
    assert.equal(body.message, 'conflicting options: manifests and platform options cannot both be set');
  });
});

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { PREDICATE, putMultiPlatform, type MultiPlatform } from '@gantry/testing/registries/multi-platform.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Summary = { RepoTags: string[]; RepoDigests: string[]; Manifests: { Kind: string; Available: boolean }[] };
type Part = Readonly<{ digest: string; mediaType: string }>;
type Message = { message?: string; Architecture?: string };

const FROM = '127.0.0.1:5000';
const NAME = `${FROM}/multi:1`;
const ALL = `/images/prune?filters=${encodeURIComponent('{"dangling":["false"]}')}`;
const of = (architecture: string): string => encodeURIComponent(JSON.stringify({ os: 'linux', architecture }));

suite('archives of several platforms', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let index: MultiPlatform;
  let saved: Buffer;
  let skopeo: Buffer;
  before(async () => {
    engine = await TestEngine.start({ image: false, version: '1.55', flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    index = await putMultiPlatform(registries, `${FROM}/v2/multi`, '1');
    for (const platform of ['', 'linux/arm64'])
      await engine.post(`/images/create?fromImage=${FROM}/multi&tag=1&platform=${platform}`);
    saved = (await engine.get(`/images/${NAME}/get`)).raw;
    const folder = join(engine.directory, 'layout');
    const copy = `skopeo copy --all --src-tls-verify=false docker://${NAME} oci:${folder}:${NAME} && tar -C ${folder} -c .`;
    await engine.onHost(['sh', '-c', `${copy} > ${folder}.tar`]);
    skopeo = await readFile(`${folder}.tar`);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  async function load(archive: Buffer, platform = ''): Promise<string> {
    const query = platform === '' ? '' : `?platform=${of(platform)}`;
    const headers = { 'Content-Type': 'application/x-tar' };
    return (await engine.post(`/images/load${query}`, archive, { headers })).raw.toString();
  }

  async function listed(): Promise<Summary[]> {
    return (await engine.get<Summary[]>('/images/json?all=1&manifests=1')).body;
  }

  /** The saved archive, with the attestation of the registry before its other files. */
  async function attested(): Promise<Buffer> {
    const archive = new TarWriter();
    const add = async (kind: string, { digest, mediaType }: Part): Promise<Buffer> => {
      const url = `http://${FROM}/v2/multi/${kind}/${digest}`;
      const { body } = await registries.request('GET', url, { headers: { Accept: mediaType } });
      archive.add({ name: `blobs/sha256/${digest.slice('sha256:'.length)}`, content: body });
      return body;
    };
    const manifest = JSON.parse((await add('manifests', index.attestation)).toString()) as { config: Part };
    for (const part of [manifest.config, index.layer]) await add('blobs', part);
    return Buffer.concat([archive.cut(), saved]);
  }

  const available = ({ Manifests }: Summary): boolean[] => Manifests.map((each) => each.Available);
  const isHere = (...architectures: string[]): boolean[] => [
    ...index.images.map(({ platform }) => architectures.includes(platform.architecture)),
    architectures.includes('attestation'),
  ];

  test('a saved index is loaded with the platforms that it had', async () => {
    await engine.post(ALL);

    assert.match(await load(saved), new RegExp(`Loaded image: ${NAME}`));

    const [image, ...others] = await listed();
    assert.deepEqual(others, []);
    assert.deepEqual(image!.RepoTags, [NAME]);
    assert.deepEqual(image!.RepoDigests, [`${FROM}/multi@${index.digest}`]);
    assert.deepEqual(available(image!), isHere(index.host.architecture, 'arm64'));
    assert.deepEqual((await engine.get(`/images/${NAME}/get`)).raw, saved);
  });

  test('one platform is saved and loaded alone', async () => {
    await engine.post(ALL);
    await load(saved);
    const { raw: foreign } = await engine.get(`/images/${NAME}/get?platform=${of('arm64')}`);
    const { status, body } = await engine.get<Message>(`/images/${NAME}/get?platform=${of('s390x')}`);
    await engine.post(ALL);

    assert.equal(status, 404);
    assert.match(body.message ?? '', /^no suitable export target found: .*does not provide the specified platform/);
    assert.match(await load(foreign), /Loaded image/);
    assert.equal((await engine.get<Message>(`/images/${NAME}/json`)).body.Architecture, 'arm64');
    await engine.post(ALL);
    assert.match(await load(saved, 'arm64'), /Loaded image/);
    assert.deepEqual((await listed()).map(available), [isHere('arm64')]);
    assert.match(
      await load(saved, 's390x'),
      /^\{"message":"the archive does not provide the requested platform \(linux\/s390x\)"\}/,
    );
  });

  test('an archive of skopeo keeps all platforms and the attestation, and a push sends them', async () => {
    await engine.post(ALL);

    assert.match(await load(skopeo), /Loaded image/);

    const architectures = index.images.map(({ platform }) => platform.architecture);
    assert.deepEqual((await listed()).map(available), [isHere(...architectures, 'attestation')]);
    await engine.post(`/images/${NAME}/tag?repo=${FROM}/pushed&tag=1`);
    const headers = { 'X-Registry-Auth': Buffer.from('{}').toString('base64') };
    const { raw } = await engine.post(`/images/${FROM}/pushed/push?tag=1`, undefined, { headers });
    // skopeo has written documents of its own.
    assert.match(raw.toString(), /1: digest: sha256:/);
    assert.doesNotMatch(raw.toString(), /manifestPushedInsteadOfIndex|error/);
  });

  test('the statements of an attestation are listed, by platform and type', async () => {
    await engine.post(ALL);
    await load(await attested());
    const statements = async (query: string): Promise<unknown> =>
      (await engine.get(`/images/${NAME}/attestations?${query}`)).body;

    const [plain, whole] = [await statements(''), await statements(`statement=1&type=other&type=${PREDICATE}`)];

    const { statement, layer } = index;
    const shown = { Descriptor: layer, PredicateType: PREDICATE };
    assert.deepEqual(plain, [shown]);
    assert.deepEqual(whole, [{ ...shown, Statement: statement }]);
    assert.deepEqual(await statements('type=other'), []);
    assert.deepEqual(await statements(`platform=${of('arm64')}`), []);
  });

  test('an attestation that the archive has not is 404', async () => {
    await engine.post(ALL);
    await load(saved);
    const { status, body } = await engine.get<Message>(`/images/${NAME}/attestations`);

    assert.equal(status, 404);
    assert.equal(body.message, `the attestation ${index.attestation.digest} is not here: pulls leave attestations out`);
  });

  test('a platform is removed alone, and the last one with the name', async () => {
    await engine.post(ALL);
    await load(saved);
    const remove = async (query: string): Promise<[number, string]> => {
      const { status, raw } = await engine.delete(`/images/${NAME}?${query}`);
      return [status, raw.toString()];
    };

    assert.equal((await remove(`platforms=${of('arm64')}`))[0], 400);
    assert.equal((await remove(`force=1&platforms=${of('s390x')}`))[0], 404);
    const [status, removed] = await remove(`force=1&platforms=${of('arm64')}`);
    const foreign = index.images.find(({ platform }) => platform.architecture === 'arm64')!;
    assert.deepEqual([status, JSON.parse(removed)], [200, [{ Deleted: foreign.digest }]]);
    assert.deepEqual((await listed()).map(available), [isHere(index.host.architecture)]);
    assert.equal((await remove(`force=1&platforms=${of(index.host.architecture)}`))[0], 200);
    assert.deepEqual(await listed(), []);
  });
});

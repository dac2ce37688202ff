import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { OCI_INDEX, OCI_MANIFEST } from '@gantry/engine/registry/manifests.ts';
import { HOST_ARCHITECTURE, putMultiPlatform, type MultiPlatform } from '@gantry/testing/registries/multi-platform.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Entry = Readonly<Record<string, unknown>>;
type Case = Readonly<{ name: string; documents: (index: MultiPlatform) => readonly unknown[]; told: RegExp }>;

const REGISTRY = '127.0.0.1:5001';
const DIGEST = `sha256:${'1'.repeat(64)}`;
const platform = { os: 'linux', architecture: HOST_ARCHITECTURE };

const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const indexOf = (...manifests: Entry[]): Entry => ({ schemaVersion: 2, mediaType: OCI_INDEX, manifests });
/** The entry of a document that the registry has. */
const entry = (document: unknown, more: Entry = {}): Entry => {
  const text = JSON.stringify(document);
  return { mediaType: OCI_MANIFEST, digest: sha256(text), size: text.length, platform, ...more };
};

/** The first document is that of the tag. */
const CASES: readonly Case[] = [
  {
    name: 'ten thousand manifests',
    documents: () => [indexOf(...Array.from({ length: 10_000 }, () => ({ digest: DIGEST, size: 1, platform })))],
    told: /invalid manifest .*manifests/,
  },
  {
    name: 'indexes in indexes beyond the limit',
    documents: () => {
      const documents: unknown[] = [indexOf()];
      for (let depth = 0; depth < 6; depth += 1) documents.unshift(indexOf(entry(documents[0])));
      return documents;
    },
    told: /indexes are nested deeper than 4/,
  },
  {
    name: 'a size that its manifest has not',
    documents: () => [indexOf(entry(indexOf(), { size: 7 })), indexOf()],
    told: /has \d+ bytes; its index says 7/,
  },
  {
    name: 'another manifest than the one of the digest',
    documents: () => [indexOf({ mediaType: OCI_MANIFEST, digest: DIGEST, size: 1, platform }), indexOf()],
    told: /manifest verification failed for digest sha256:1111/,
  },
  {
    name: 'a manifest of a foreign media type',
    documents: () => {
      const foreign = { schemaVersion: 2, mediaType: 'application/vnd.example+json' };
      return [indexOf(entry(foreign)), foreign];
    },
    told: /unsupported manifest media type: .*application\/vnd\.example\+json/,
  },
  {
    name: 'attestations alone, without a platform',
    documents: () => [
      indexOf({ digest: DIGEST, size: 1, annotations: { 'vnd.docker.reference.type': 'attestation-manifest' } }),
    ],
    told: /no matching manifest for linux/,
  },
  { name: 'no manifests', documents: () => [indexOf()], told: /no matching manifest for linux/ },
  {
    name: 'annotations that are no texts',
    documents: () => [indexOf({ digest: DIGEST, size: 1, annotations: { key: [] } })],
    told: /invalid manifest/,
  },
  {
    name: 'a digest of another kind',
    documents: () => [indexOf({ digest: 'sha512:00', size: 1, platform })],
    told: /invalid manifest/,
  },
];

suite('hostile indexes of a registry', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let index: MultiPlatform;
  before(async () => {
    engine = await TestEngine.start({ image: false, version: '1.55', flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
    index = await putMultiPlatform(registries, '127.0.0.1:5000/v2/multi', '1');
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  async function pull(documents: readonly unknown[]): Promise<string> {
    const texts = documents.map((document) => JSON.stringify(document));
    const answer = { status: 200, times: 100, headers: { 'content-type': OCI_INDEX } };
    const byDigest = texts.slice(1).map((body) => ({ ...answer, on: ` .*/manifests/${sha256(body)}`, body }));
    await registries.faults({ ...answer, on: ' .*/manifests/1$', body: texts[0]! }, ...byDigest, {
      ...answer,
      on: `GET .*/manifests/${DIGEST}`,
      body: texts.at(-1)!,
    });
    const { raw } = await engine.post(`/images/create?fromImage=${REGISTRY}/multi&tag=1`);
    await registries.faults();
    return raw.toString();
  }

  for (const { name, documents, told } of CASES) {
    test(`an index with ${name} is refused, and leaves nothing`, async () => {
      assert.match(await pull(documents(index)), told);

      assert.deepEqual((await engine.get<unknown[]>('/images/json?all=1')).body, []);
    });
  }

  test('addresses and content in descriptors are neither used nor shown', async () => {
    const { mediaType, digest, size } = index.images.at(-1)!;
    const urls = ['http://127.0.0.1:1/elsewhere'];
    const data = Buffer.from('another manifest').toString('base64');

    const lines = await pull([indexOf({ mediaType, digest, size, platform, urls, data })]);

    assert.match(lines, /Downloaded newer image/);
    const { raw } = await engine.get('/images/json?manifests=1');
    assert.doesNotMatch(raw.toString(), /elsewhere|"data"/);
    assert.match(raw.toString(), /"Available":true/);
  });
});

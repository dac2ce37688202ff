import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { Registries, type Descriptor } from '@gantry/testing/registries/registries.ts';
import type { Fault } from '@gantry/testing/registries/registry-worker.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const PLAIN = '127.0.0.1:5000';
const PROXY = '127.0.0.1:5001';
const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const HOST = { os: 'linux', architecture: process.arch === 'x64' ? 'amd64' : process.arch };

const digestOf = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const layerType = (type: string): string => `application/vnd.oci.image.layer.${type}`;

suite('a registry that means harm', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let image: Descriptor & { id: string; layers: Descriptor[] };
  let clean: string[];

  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
    image = await registries.putImage(`${PLAIN}/v2/x`, 'x', [new TarWriter().add({ name: 'a', content: 'a' }).end()]);
    clean = left();
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const left = (): string[] =>
    ['blobs/sha256', 'blobs/skeletons', 'blobs/arriving', 'layers'].flatMap((name) =>
      readdirSync(join(engine.dataRoot, name)).filter((each) => each !== '.trash'),
    );
  /** Returns the last message of a pull that met these faults; nothing of the image must be left. */
  async function refusalOf(...faults: Fault[]): Promise<string> {
    await registries.faults(...faults);
    const { raw } = await engine.post(`/images/create?fromImage=${PROXY}/x:x`);
    await registries.faults();
    const deadline = Date.now() + 60_000;
    while (left().length > clean.length && Date.now() < deadline) await setTimeout(20);
    assert.deepEqual(left(), clean);
    assert.deepEqual((await engine.get('/images/json?all=1')).body, []);
    const last = JSON.parse(raw.toString().trim().split('\r\n').at(-1)!) as { error?: string; message?: string };
    return last.error ?? last.message ?? JSON.stringify(last);
  }
  /** The manifest that the registry answers with instead of its own. */
  function manifest(content: object, type = MANIFEST): Fault[] {
    const body = JSON.stringify(content);
    const headers = { 'content-type': type };
    return [
      { on: 'HEAD .*/manifests/', times: 9, status: 404 },
      { on: 'GET .*/manifests/x$', times: 9, status: 200, headers, body },
    ];
  }
  const described = (layers: unknown, config: unknown = { mediaType: '', digest: image.id, size: 1 }): object => ({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config,
    layers,
  });

  const endless: [string, () => Fault, RegExp][] = [
    [
      'a manifest without end',
      () => ({ on: 'GET .*/manifests/', times: 9, endless: ' ', headers: { 'content-type': MANIFEST } }),
      /the manifest is larger than the limit of 4194304 bytes/,
    ],
    [
      'a manifest that says that it has 100 MB',
      () => ({
        on: 'GET .*/manifests/',
        times: 9,
        endless: ' ',
        headers: { 'content-type': MANIFEST, 'content-length': '100000000' },
      }),
      /the manifest is larger than the limit of 4194304 bytes/,
    ],
    [
      'a configuration without end',
      () => ({ on: `GET .*/blobs/${image.id}`, times: 9, endless: ' ' }),
      /the image configuration is larger than the limit of \d+ bytes/,
    ],
    [
      'a layer without end',
      () => ({ on: `GET .*/blobs/${image.layers[0]!.digest}`, times: 9, endless: 'x' }),
      /is larger than the \d+ bytes that its manifest states/,
    ],
    [
      'a refusal without end',
      () => ({ on: 'GET .*/manifests/', times: 9, endless: 'no', status: 403 }),
      /the refusal of the registry is larger than the limit/,
    ],
  ];
  for (const [what, fault, refusal] of endless) {
    test(`with ${what} is refused, and nothing is left`, async () => {
      assert.match(await refusalOf(fault()), refusal);
    });
  }

  test('with a list of tags without end is refused', async () => {
    await registries.faults({ on: 'GET .*/tags/list', times: 9, endless: ' ' });
    const { raw } = await engine.post(`/images/create?fromImage=${PROXY}/x`);
    await registries.faults();

    assert.match(raw.toString(), /the list of tags is larger than the limit/);
  });

  const page = (tags: number, length: number): Fault => ({
    on: 'GET .*/tags/list',
    times: 10_000,
    status: 200,
    headers: { link: '</v2/x/tags/list?last=a>; rel="next"' },
    body: JSON.stringify({ tags: Array.from({ length: tags }, (_, index) => String(index).padStart(length, 'a')) }),
  });
  const lists: [string, Fault, RegExp][] = [
    ['300,000 tags in one page', page(300_000, 10), /invalid list of tags: it has more than 100010 values/],
    ['pages of tags without end', page(30_000, 100), /more than 100000 tags: pull its tags one by one/],
    ['pages without tags and without end', page(0, 0), /more than 1000 pages: pull its tags one by one/],
    [
      'a list of tags of brackets',
      { ...page(0, 0), body: '{"tags":' + '['.repeat(4_000_000) },
      /invalid list of tags: it is nested deeper than 100 levels/,
    ],
  ];
  for (const [list, fault, refusal] of lists) {
    test(`with ${list} is refused`, async () => {
      await registries.faults(fault);
      const answer = await engine.post<{ message: string }>(`/images/create?fromImage=${PROXY}/x`);
      await registries.faults();

      assert.equal(answer.status, 500);
      assert.match(answer.body.message, refusal);
    });
  }

  const configurations: [string, string, RegExp][] = [
    ['7 MB of brackets', '['.repeat(7_000_000), /the image configuration cannot be read: it is nested deeper than 100/],
    [
      'a million values',
      `{"config":{"Env":[${'"",'.repeat(1_000_000)}""]}}`,
      /the image configuration cannot be read: it has more than 100000 values/,
    ],
  ];
  for (const [text, json, refusal] of configurations) {
    test(`with a configuration of ${text} is refused, and nothing is left`, async () => {
      const config = await registries.putBlob(`${PLAIN}/v2/x`, Buffer.from(json), '');

      assert.match(await refusalOf(...manifest(described([image.layers[0]], config))), refusal);
    });
  }

  test('with an index that is to contain itself is refused: digests are checked', async () => {
    const digest = digestOf('itself');
    const body = {
      schemaVersion: 2,
      mediaType: INDEX,
      manifests: [{ mediaType: INDEX, digest, size: 1, platform: HOST }],
    };
    const itself: Fault = {
      on: `GET .*/manifests/${digest}`,
      times: 99,
      status: 200,
      headers: { 'content-type': INDEX },
      body: JSON.stringify(body),
    };

    assert.match(await refusalOf(itself, ...manifest(body, INDEX)), /manifest verification failed for digest/);
  });

  test('with indexes in indexes is refused at a depth', async () => {
    const faults: Fault[] = [];
    let inner: { mediaType: string; digest: string; size: number } = image;
    let outermost: object = {};
    for (let depth = 0; depth < 50; depth += 1) {
      outermost = { schemaVersion: 2, mediaType: INDEX, manifests: [{ ...inner, platform: HOST }] };
      const body = JSON.stringify(outermost);
      inner = { mediaType: INDEX, digest: digestOf(body), size: body.length };
      const headers = { 'content-type': INDEX };
      faults.push({ on: `GET .*/manifests/${inner.digest}`, times: 9, status: 200, headers, body });
    }
    await registries.seen();

    assert.match(await refusalOf(...faults, ...manifest(outermost, INDEX)), /indexes are nested deeper than 4/);
    assert.ok((await registries.seen()).length < 12);
  });

  const refused: [string, () => Fault[], RegExp][] = [
    [
      'an unknown type',
      () => manifest({}, 'application/vnd.example'),
      /unsupported manifest media type: "application\/vnd.example"/,
    ],
    [
      'a type that says another thing',
      () => manifest({ schemaVersion: 2, mediaType: 'text/plain' }),
      /unsupported manifest media type/,
    ],
    [
      'layers of an unknown type',
      () => manifest(described([{ ...image.layers[0], mediaType: 'application/x' }])),
      /unsupported media type of a layer: "application\/x"/,
    ],
    [
      'encrypted layers',
      () => manifest(described([{ ...image.layers[0], mediaType: layerType('v1.tar+encrypted') }])),
      /unsupported media type of a layer/,
    ],
    [
      'a chart in the place of an image',
      () => manifest(described([], { ...image.layers[0], mediaType: 'application/vnd.cncf.helm.config.v1+json' })),
      /unsupported media type of the configuration/,
    ],
    ['sizes below zero', () => manifest(described([{ ...image.layers[0], size: -1 }])), /invalid manifest .*size/],
    [
      'sizes beyond numbers',
      () => manifest(described([{ ...image.layers[0], size: 1e300 }])),
      /size|larger|broke off|verification/,
    ],
    [
      'a configuration of 1 TB',
      () => manifest(described([], { digest: image.id, size: 2 ** 40 })),
      /the image configuration has 1099511627776 bytes; the limit/,
    ],
    [
      'digests that are paths',
      () => manifest(described([{ ...image.layers[0], digest: 'sha256:../../../../etc/passwd' }])),
      /invalid manifest .*digest/,
    ],
    [
      '10,000 layers',
      () => manifest(described(Array.from({ length: 10_000 }, () => image.layers[0]))),
      /invalid manifest .*layers/,
    ],
    ['layers that are none', () => manifest(described({ length: 3 })), /invalid manifest .*layers/],
    ['a tower of brackets', () => manifestText('['.repeat(1_000_000)), /invalid manifest: it is nested deeper than/],
    ['text that is not UTF-8', () => manifestText('\ufffe\ud800'), /invalid manifest/],
  ];
  const manifestText = (body: string): Fault[] => [
    { on: 'HEAD .*/manifests/', times: 9, status: 404 },
    { on: 'GET .*/manifests/x$', times: 9, status: 200, headers: { 'content-type': MANIFEST }, body },
  ];
  for (const [what, faults, refusal] of refused) {
    test(`with ${what} is refused, and nothing is left`, async () => {
      assert.match(await refusalOf(...faults()), refusal);
    });
  }

  test('that redirects without end, or to another protocol, is refused', async () => {
    const moved = (Location: string): Fault => ({
      on: 'GET .*/manifests/',
      times: 99,
      status: 302,
      headers: { Location },
    });
    const head: Fault = { on: 'HEAD .*/manifests/', times: 9, status: 404 };

    assert.match(await refusalOf(head, moved(`http://${PROXY}/v2/x/manifests/x`)), /redirected more than 10 times/);
    assert.match(await refusalOf(head, moved('file:///etc/passwd')), /redirected to an unsupported address/);
    assert.match(await refusalOf(head, moved('gopher://127.0.0.1/')), /redirected to an unsupported address/);
  });

  const tokens: [string, Fault, RegExp][] = [
    ['without end', { on: 'GET /token', times: 9, endless: ' ' }, /the answer of the token server is larger than the/],
    [
      'of brackets',
      { on: 'GET /token', times: 9, status: 200, body: '['.repeat(1_000_000) },
      /unable to decode token response/,
    ],
    [
      'that is elsewhere, without end',
      { on: 'GET /token', times: 99, status: 302, headers: { Location: `http://${PROXY}/token` } },
      /redirected|token/,
    ],
  ];
  for (const [what, token, refusal] of tokens) {
    test(`with a token ${what} is refused, and nothing is left`, async () => {
      const headers = { 'www-authenticate': `Bearer realm="http://${PROXY}/token",service="x",scope="x"` };
      const unauthorized: Fault = { on: '.* /v2/', times: 99, status: 401, headers };

      assert.match(await refusalOf(unauthorized, token), refusal);
    });
  }

  test('that is well again is pulled from', async () => {
    const { raw } = await engine.post(`/images/create?fromImage=${PROXY}/x:x`);

    assert.match(raw.toString(), /Downloaded newer image/);
    assert.equal((await engine.delete(`/images/${PROXY}/x:x`)).status, 200);
  });
});

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { pluginConfig, putPlugin } from '@gantry/testing/plugins/plugin-files.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { begin, leavesNothing, type ClientRequest } from './leaving.ts';

const [REGISTRY, PROXY] = [5000, 5001];
const IMAGE = `127.0.0.1:${PROXY}/image`;
const PLUGIN = `127.0.0.1:${PROXY}/plugin`;
const KEPT = `127.0.0.1:${PROXY}/kept`;
/** It asks for no permissions. */
const CONFIG = {
  ...pluginConfig('VolumeDriver'),
  Network: { Type: '' },
  Linux: { Capabilities: [], Devices: [] },
  Mounts: [],
};
const CONFIG_DIGEST = createHash('sha256').update(JSON.stringify(CONFIG)).digest('hex');
const PLUGIN_LAYER = `GET /v2/plugin/blobs/sha256:(?!${CONFIG_DIGEST})`;
const JSON_BODY = { headers: ['Content-Type: application/json'], body: Buffer.from('[]') };

const PUSH: ClientRequest = {
  line: `POST /v1.41/images/${IMAGE}/push?tag=latest`,
  headers: [`X-Registry-Auth: ${Buffer.from('{}').toString('base64')}`],
};
const PRIVILEGES = { line: `GET /v1.41/plugins/privileges?remote=${PLUGIN}` };
const INSTALL = { line: `POST /v1.41/plugins/pull?remote=${PLUGIN}&name=left`, ...JSON_BODY };
const UPGRADE = { line: `POST /v1.41/plugins/${KEPT}/upgrade?remote=${PLUGIN}`, ...JSON_BODY };
const PUSH_PLUGIN = { line: `POST /v1.41/plugins/${KEPT}/push` };

/** Where the registry is when the client leaves: it holds the answer to this request. */
const STAGES: readonly (readonly [name: string, request: ClientRequest, held: string])[] = [
  ['a push asks for the registry', PUSH, 'GET /v2/$'],
  ['a push asks for a layer', PUSH, 'HEAD /v2/image/blobs/'],
  ['a push begins an upload', PUSH, 'POST /v2/image/blobs/uploads/'],
  ['a push sends a layer', PUSH, '(PUT|PATCH) /v2/image/blobs/uploads/'],
  ['a push sends the manifest', PUSH, 'PUT /v2/image/manifests/'],
  ['privileges of a plugin are read', PRIVILEGES, 'GET /v2/plugin/manifests/'],
  ['a plugin is looked up', INSTALL, '(GET|HEAD) /v2/plugin/manifests/'],
  ["a plugin's configuration arrives", INSTALL, `GET /v2/plugin/blobs/sha256:${CONFIG_DIGEST}`],
  ["a plugin's layer arrives", INSTALL, PLUGIN_LAYER],
  ['an upgrade is looked up', UPGRADE, '(GET|HEAD) /v2/plugin/manifests/'],
  ["an upgrade's layer arrives", UPGRADE, PLUGIN_LAYER],
  ['a plugin is pushed', PUSH_PLUGIN, 'POST /v2/kept/blobs/uploads/'],
];

suite('clients that leave while a registry is silent', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'], version: '1.41' });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(REGISTRY);
    await registries.proxy(PROXY, REGISTRY);
    await putPlugin(registries, `127.0.0.1:${REGISTRY}/v2/plugin`, CONFIG, { plugin: Buffer.from('a program') });
    assert.equal((await engine.post(`/plugins/pull?remote=${PLUGIN}&name=${KEPT}`, [])).status, 200);
    assert.equal((await engine.get(`/plugins/${KEPT}/json`)).status, 200);
    assert.equal((await engine.post(`/images/busybox/tag?repo=${IMAGE}&tag=latest`)).status, 201);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** Begins the request, and leaves when the registry has the one to hold. */
  async function leave(request: ClientRequest, held: string): Promise<void> {
    const on = new RegExp(held);
    await registries.faults({ on: held, times: 1000, hold: true });
    await registries.seen();
    const socket = await begin(engine.socketPath, request);
    let answer = '';
    socket.on('data', (data) => (answer += String(data)));
    while (!(await registries.seen()).some(({ method, path }) => on.test(`${method} ${path}`))) {
      if (socket.closed) throw new Error(`it has ended: ${answer}`);
      await setTimeout(10);
    }
    socket.destroy();
  }

  for (const [name, request, held] of STAGES) {
    test(`${name}: nothing stays behind`, async () => {
      await leavesNothing(engine, async () => await leave(request, held));

      assert.equal((await engine.get('/_ping')).status, 200);
    });
  }
});

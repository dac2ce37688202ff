import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './compared.ts';

const BUILDS = 12;
const ROUNDS = Number(process.env['GANTRY_COPY_ROUNDS'] ?? 2);

const FILE = (round: number): string =>
  [
    'FROM busybox AS one',
    `COPY . /one/${round}/`,
    'FROM busybox AS two',
    'COPY --from=one /one /two',
    'COPY --from=one /bin/busybox /two/program',
    'ADD a.tar /two/added/',
    'FROM scratch',
    'COPY --from=two /two /three',
    'COPY --from=one /one/ /three/one/',
    `LABEL round=${round}`,
  ].join('\n');

/** Descriptors and mounts of copies are shared by the threads of the daemon: none may meet those of another one. */
suite('copies between stages of many builds at once', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    const alone = { HostConfig: { NetworkMode: 'none' } };
    await engine.create(['true'], alone, 'holder');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function builtAt(number: number, round: number): Promise<string> {
    const files = Object.fromEntries(
      Array.from({ length: 20 }, (_, at) => [`folder${at % 3}/file${at}`, `${number} ${round} ${at}`]),
    );
    const inner = contextOf({ 'deep/er/file': `${number}` });
    const context = contextOf({ Dockerfile: FILE(round), ...files, 'a.tar': { content: inner } });
    const { id, lines, message } = await build(engine, 'nocache=1', context);
    assert.ok(id, message ?? JSON.stringify(lines.slice(-2)));
    return id;
  }

  for (let round = 0; round < ROUNDS; round += 1) {
    test(`round ${round}: all are built, each of its own files, while containers are read and written`, async () => {
      const end = new AbortController();
      const others = Array.from({ length: 4 }, async (_, at) => {
        while (!end.signal.aborted) {
          const archive = await engine.get('/containers/holder/archive?path=/bin');
          assert.equal(archive.status, 200);
          const put = { headers: { 'Content-Type': 'application/x-tar' }, body: contextOf({ [`x${at}`]: `${round}` }) };
          assert.equal((await engine.request('PUT', '/containers/holder/archive?path=/', put)).status, 200);
        }
      });
      const ids = await Promise.all(Array.from({ length: BUILDS }, async (_, number) => await builtAt(number, round)));
      end.abort();
      await Promise.all(others);

      for (const [number, id] of ids.entries()) {
        const name = `copied${number}`;
        assert.equal((await engine.post(`/containers/create?name=${name}`, { Image: id, Cmd: ['x'] })).status, 201);
        const path = `/three/${round}/folder1/file1`;
        const { raw } = await engine.get(`/containers/${name}/archive?path=${path}`);
        assert.match(raw.toString('latin1', 512), new RegExp(`^${number} ${round} 1\0`));
        assert.equal((await engine.delete(`/containers/${name}`)).status, 204);
        await engine.delete(`/images/${id}?force=1`);
      }
      assert.deepEqual(readdirSync(join(engine.dataRoot, 'builds')), []);
    });
  }
});

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { gantry } from '@gantry/testing/clients/own-client.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const INDEX = '127.0.0.1:5010';
const HITS = [
  { name: 'busybox', description: 'Busybox base image.', star_count: 3000, is_official: true, is_automated: false },
  { name: 'alice/busybox', description: 'x'.repeat(60), star_count: 12, is_official: false, is_automated: true },
  { name: 'bob/busybox', star_count: 3 },
  { name: 'carol/busybox', description: null },
];
const AUTH = { username: 'alice', password: 'secret-of-alice' };

suite('search', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;

  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none', `--search-index=http://${INDEX}`] });
    const netns = join(engine.directory, 'netns');
    dockerd = await Dockerd.start(['--bridge=none', '--iptables=false'], netns);
    registries = await Registries.start(netns);
    await registries.index(5010, HITS);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await dockerd[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const queryOf = (query: Record<string, string>): string => new URLSearchParams(query).toString();
  const found = (filters: object): Record<string, string> => ({
    term: `${INDEX}/busybox`,
    filters: JSON.stringify(filters),
  });

  for (const query of [
    { term: `${INDEX}/busybox` },
    { term: `${INDEX}/nothing` },
    { term: `${INDEX}/busybox`, limit: '2' },
    { term: `${INDEX}/busybox`, limit: '' },
    { term: `${INDEX}/busybox`, limit: '0' },
    { term: `${INDEX}/busybox`, limit: '101' },
    { term: `http://${INDEX}/busybox` },
    { term: `${INDEX}/broken` },
    found({ stars: ['3'] }),
    found({ stars: ['3', '12'] }),
    found({ stars: { 12: true } }),
    found({ stars: ['many'] }),
    found({ 'is-official': ['true'] }),
    found({ 'is-official': ['false'] }),
    found({ 'is-official': ['1'] }),
    found({ 'is-automated': ['true'] }),
    found({ 'is-automated': ['false'], stars: ['3'] }),
    found({ label: ['x'] }),
  ] as Record<string, string>[]) {
    test(`${JSON.stringify(query)} has dockerd's answer`, async () => {
      const [ours, theirs] = await Promise.all(
        [engine, dockerd.api].map(async (api) => await api.get(`/images/search?${queryOf(query)}`)),
      );

      assert.deepEqual([ours!.status, ours!.body], [theirs!.status, theirs!.body]);
    });
  }

  test('a term without a host goes to the index of the settings', async () => {
    for (const term of ['busybox', 'docker.io/busybox', 'library/busybox', 'index.docker.io/busybox']) {
      const { body } = await engine.get<{ name: string }[]>(`/images/search?${queryOf({ term, limit: '1' })}`);

      assert.deepEqual(
        body.map(({ name }) => name),
        ['busybox'],
        term,
      );
    }
  });

  test('an invalid answer of an index, and an invalid limit, are refused with the reason', async () => {
    const refused = async (query: Record<string, string>) => {
      const { status, body } = await engine.get<{ message: string }>(`/images/search?${queryOf(query)}`);
      return [status, body.message];
    };

    assert.deepEqual(await refused({ term: 'garbage' }), [500, 'the answer of the index is not a list of results']);
    assert.deepEqual(await refused(found({ 'is-official': ['false', 'true'] })), [
      400,
      "Invalid filter 'is-official=[false true]'",
    ]);
    assert.deepEqual(await refused({ term: 'x', limit: 'many' }), [
      400,
      'query parameter limit: "many" is not a whole number',
    ]);
  });

  test('a name and a password go to the index, and not where it redirects to', async () => {
    const header = Buffer.from(JSON.stringify(AUTH)).toString('base64');
    await registries.seen();
    await engine.get('/images/search?term=redirect', { headers: { 'X-Registry-Auth': header } });

    const seen = await registries.seen();
    const basic = `Basic ${Buffer.from('alice:secret-of-alice').toString('base64')}`;
    assert.deepEqual(
      seen.map(({ authorization }) => authorization),
      [basic, ''],
    );
  });

  test('the command lines show the found images', async () => {
    const words = ['search', '--filter', 'stars=3', `${INDEX}/busybox`];
    const [ours, docker] = await Promise.all([gantry(engine, words), engine.docker(...words)]);

    const rows = (text: string): string[][] =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.trimEnd().split(/ {2,}/));
    assert.equal(ours.code, 0, ours.stderr);
    assert.deepEqual(rows(ours.stdout), rows(docker.stdout));
    assert.deepEqual(
      (await gantry(engine, ['search', '--limit', '1', '--format', '{{.Name}} {{.StarCount}}', 'busybox'])).stdout,
      'busybox 3000\n',
    );
  });
});

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Names that every JavaScript object has, and one that none has. */
const NAMES = ['ordinary', 'constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__'];
/** Names of networks, volumes and containers begin with a letter. */
const OBJECT_NAMES = NAMES.slice(0, -1);

suite('objects with names that every object has', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.run(['sleep', '1000'], {}, 'probe');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(command: readonly string[], body: object = {}): Promise<string> {
    const id = await engine.run(command, { ...body });
    await engine.wait(id);
    const { stdout, stderr } = await engine.output(id);
    await engine.delete(`/containers/${id}?v=1`);
    return stdout + stderr;
  }

  async function built(text: string, query = ''): Promise<string> {
    const archive = new TarWriter().add({ name: 'Dockerfile', content: text }).end();
    const headers = { 'Content-Type': 'application/x-tar' };
    const answer = await engine.post(`/build?q=1&nocache=1&t=built${query}`, archive, { headers });
    assert.equal(answer.status, 200);
    assert.doesNotMatch(answer.raw.toString(), /"error"/);
    return await said(['cat', '/out'], { Image: 'built' });
  }

  for (const name of OBJECT_NAMES) {
    test(`a network ${name} serves its containers by aliases and links`, async () => {
      await engine.post('/networks/create', { Name: name });
      const HostConfig = { NetworkMode: name };
      const attached = { EndpointsConfig: { [name]: { Aliases: [name] } } };
      const server = await engine.run(['sleep', '1000'], { HostConfig, NetworkingConfig: attached });
      const linked = { HostConfig: { ...HostConfig, Links: [`${server}:other`] } };

      const found = await said(['sh', '-c', `nslookup other && nslookup ${name.toLowerCase()}`], linked);
      await engine.post(`/networks/${name}/connect`, { Container: 'probe', EndpointConfig: { Aliases: ['again'] } });

      assert.equal(found.match(/^Address.*172/gm)?.length, 2, found);
      const { body } = await engine.get<Inspect>('/containers/probe/json');
      assert.ok(Object.hasOwn(body.NetworkSettings.Networks, name));
      assert.ok(body.NetworkSettings.Networks[name]!.Aliases?.includes('again'));
      await engine.post(`/networks/${name}/disconnect`, { Container: 'probe' });
      await engine.delete(`/containers/${server}?force=1`);
      assert.equal((await engine.delete(`/networks/${name}`)).status, 204);
    });

    test(`a volume ${name} is mounted and removed`, async () => {
      const output = await said(['ls', '/v'], { HostConfig: { Binds: [`${name}:/v`] } });

      assert.equal(output, '');
      assert.equal((await engine.delete(`/volumes/${name}`)).status, 204);
    });
  }

  test('an image constructor with tags of such names is saved and loaded with all of them', async () => {
    for (const tag of NAMES) await engine.post(`/images/busybox/tag?repo=constructor&tag=${tag}`);

    const { raw } = await engine.get('/images/constructor/get');
    for (const tag of NAMES) await engine.delete(`/images/constructor:${tag}`);
    await engine.post('/images/load', raw);

    const repositories = JSON.parse(tarList(raw).get('repositories')!.content.toString()) as Record<string, object>;
    assert.deepEqual(Object.keys(repositories), ['constructor']);
    assert.deepEqual(Object.keys(repositories['constructor']!).toSorted(), NAMES.toSorted());
    for (const tag of NAMES) assert.equal((await engine.get(`/images/constructor:${tag}/json`)).status, 200, tag);
  });

  for (const name of NAMES) {
    test(`the argument, variable and label ${name} of a build have their values`, async () => {
      const text = [
        'FROM busybox AS constructor',
        `ARG ${name}`,
        `RUN echo "\${${name}:-none}" > /out`,
        'FROM busybox',
        'COPY --from=constructor /out /out',
        `ENV ${name}=variable`,
        `LABEL ${name}=$${name}`,
      ].join('\n');
      const given = `&buildargs=${encodeURIComponent(`{"${name}":"given"}`)}`;

      assert.deepEqual([await built(text), await built(text, given)], ['none\n', 'given\n']);

      const filters = encodeURIComponent(JSON.stringify({ label: [name] }));
      const { body } = await engine.get<{ Labels: object }[]>(`/images/json?filters=${filters}`);
      assert.deepEqual(Object.entries(body[0]?.Labels ?? {}), [[name, 'variable']]);
    });
  }
});

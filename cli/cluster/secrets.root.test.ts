import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { gantry, refused, said as saidBy } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('secret and config', { concurrency: false }, () => {
  let engine: TestEngine;
  const said = async (...words: string[]): Promise<string> => await saidBy(engine, ...words);
  before(async () => {
    engine = await TestEngine.start({ image: false, version: '1.41' });
    await said('swarm', 'init', '--advertise-addr', '127.0.0.1', '--listen-addr', '127.0.0.1:2377');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const kind of ['secret', 'config']) {
    test(`${kind}: create from the standard input, list, inspect`, async () => {
      const words = [kind, 'create', '--label', 'a=b', '--template-driver', 'golang', `my-${kind}`, '-'];
      const { stdout, code } = await gantry(engine, words, { stdin: 'the value' });
      assert.equal(code, 0);
      const id = stdout.trim();

      assert.equal(await said(kind, 'ls', '-q', '--filter', 'label=a'), id);
      assert.equal(await said(kind, 'ls', '--format', '{{.Name}} {{.Labels}}'), `my-${kind} a=b`);
      assert.match(
        await said(kind, 'ls'),
        new RegExp(`^ID +NAME +CREATED +UPDATED\\n${id} +my-${kind} +.* ago +.* ago$`),
      );
      assert.equal(await said(kind, 'inspect', '--format', '{{.Spec.Templating.Name}}', `my-${kind}`), 'golang');
      assert.equal((await said(kind, 'inspect', id)).includes('dGhlIHZhbHVl'), kind === 'config');
      assert.match((await refused(engine, kind, 'inspect', 'nosuch')).stderr, new RegExp(`${kind} nosuch not found`));
    });
  }

  test('a service takes and loses them', async () => {
    const format =
      '{{range .Spec.TaskTemplate.ContainerSpec.Secrets}}{{.SecretName}}:{{.File.Name}}:{{.File.UID}}:{{.File.Mode}} {{end}}' +
      '{{range .Spec.TaskTemplate.ContainerSpec.Configs}}{{.ConfigName}}:{{.File.Name}}:{{.File.Mode}} {{end}}';
    const inspect = async (): Promise<string> => await said('service', 'inspect', '--format', format, 'web');
    const secret = 'source=my-secret,target=/x,uid=7,gid=8,mode=0400';
    await said(
      ...['service', 'create', '--name', 'web', '--replicas', '0', '--secret', 'my-secret', '--secret', secret],
      ...['--config', 'my-config', 'busybox'],
    );
    assert.equal(await inspect(), 'my-secret:my-secret:0:292 my-secret:/x:7:256 my-config:my-config:292');
    assert.match(
      (await refused(engine, 'secret', 'rm', 'my-secret')).stderr,
      /is in use by the following service: web/,
    );

    await said(
      'service',
      'update',
      '--secret-rm',
      'my-secret',
      '--config-rm',
      'my-config',
      '--secret-add',
      secret,
      'web',
    );
    assert.equal(await inspect(), 'my-secret:/x:7:256');
    for (const word of ['nosuch', 'source=', 'source=my-secret,mode=9', 'source=my-secret,odd=1']) {
      await refused(engine, 'service', 'create', '--secret', word, 'busybox');
    }

    await said('service', 'rm', 'web');
    assert.equal(await said('secret', 'rm', 'my-secret'), 'my-secret');
    assert.equal(await said('config', 'rm', 'my-config'), 'my-config');
  });
});

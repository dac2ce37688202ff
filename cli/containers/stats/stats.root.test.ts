import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, suite, test } from 'node:test';

import { ownClient, refused, said } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('gantry stats and update', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.run(['sleep', '1000'], { HostConfig: { Memory: 64 << 20 } }, 'web');
    await engine.run(['sleep', '1000'], {}, 'db');
    await engine.create(['true'], {}, 'idle');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('one sample of all that run, sorted by name', async () => {
    const table = await said(engine, 'stats', '--no-stream');

    const [head = '', ...rows] = table.split('\n');
    assert.match(head, /^CONTAINER ID +NAME +CPU % +MEM USAGE \/ LIMIT +MEM % +NET I\/O +BLOCK I\/O +PIDS$/);
    assert.deepEqual(
      rows.map((row) => row.split(/ +/)[1]),
      ['db', 'web'],
    );
    assert.match(rows[1]!, /^\w{12} +web +\d+\.\d\d% +\S+iB \/ 64MiB +\d+\.\d\d% +.* 1$/);
  });

  test('named ones, all, and templates', async () => {
    const format = '{{.Name}} {{.PIDs}}';

    assert.equal(await said(engine, 'stats', '--no-stream', '--format', format, 'web'), 'web 1');
    assert.equal(
      await said(engine, 'container', 'stats', '-a', '--no-stream', '--format', format),
      'db 1\nidle --\nweb 1',
    );
    assert.match(await said(engine, 'stats', '--no-stream', '--format', 'json', 'db'), /^\{"Container":"db",/);
  });

  test('an unknown container and an unknown column are refused', async () => {
    assert.match((await refused(engine, 'stats', 'nope')).stderr, /No such container: nope/);
    assert.match((await refused(engine, 'stats', '--no-stream', 'nope')).stderr, /No such container: nope/);
    assert.match((await refused(engine, 'stats', '--sort', 'colour')).stderr, /invalid column "colour"/);
  });

  test('the live table gains started containers and loses ended ones', async () => {
    const env = { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}` };
    const words = ['--', ownClient, 'stats', '--format', '{{.Name}}'];
    const live = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(live, 'exit');
    const lines = createInterface(live.stdout)[Symbol.asyncIterator]();
    const sees = async (fits: (names: string) => boolean): Promise<void> => {
      for (let last = ''; ;) {
        const { value, done } = await lines.next();
        assert.ok(done !== true);
        if (fits(`${last} ${value}`)) return;
        last = value;
      }
    };
    await sees((names) => names === 'db web');

    const id = await engine.run(['sleep', '1000'], {}, 'cache');
    await sees((names) => names === 'cache db');
    await engine.delete(`/containers/${id}?force=1`);
    await sees((names) => names === 'web db');
    live.kill();

    await ended;
  });

  test('the live table of named containers ends with them', async () => {
    const id = await engine.run(['sleep', '1000'], {}, 'brief');
    const table = said(engine, 'stats', '--format', '{{.Name}}', 'brief');
    await engine.delete(`/containers/${id}?force=1`);

    await table.catch((error: Error) => assert.match(error.message, /No such container/)); // it was gone before the first look
  });

  test('update changes limits and policy, and reports invalid values', async () => {
    assert.equal(
      await said(engine, 'update', '-m', '128m', '--memory-swap', '256m', '--restart', 'always', 'web'),
      'web',
    );
    assert.equal(
      await said(engine, 'inspect', '-f', '{{.HostConfig.Memory}} {{.HostConfig.RestartPolicy.Name}}', 'web'),
      '134217728 always',
    );
    assert.match((await refused(engine, 'update', 'web')).stderr, /give at least one limit/);
    assert.match((await refused(engine, 'update', '-m', '4m', 'web')).stderr, /Minimum memory limit allowed is 6MB/);
    assert.match((await refused(engine, 'container', 'update', '--pids-limit', '5', 'web')).stderr, /API 1\.24/);
    await said(engine, 'update', '--restart', 'no', 'web');
  });
});

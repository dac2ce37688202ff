import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Nothing } from '@gantry/engine/buildkit/messages/common.ts';
import { InfoResponse } from '@gantry/engine/buildkit/messages/control.ts';
import { GrpcClient } from '@gantry/engine/buildkit/wire/client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

suite('HTTP/2 from the first byte', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  test('the driver remote of buildx builds by the socket of the engine', async () => {
    const create = ['buildx', 'create', '--driver', 'remote', '--name', 'r', `unix://${engine.socketPath}`];
    assert.equal((await project.docker(create)).code, 0);
    await project.write({
      'p/Dockerfile': 'FROM busybox\nCOPY f /f\nRUN --network=none cat /f > /g\n',
      'p/f': 'sent\n'.repeat(1_000_000), // sessions go on behind the first megabytes
    });

    const words = ['buildx', 'build', '--builder', 'r', '--progress', 'plain', '--output', 'type=local,dest=out', 'p'];
    const { code, text } = await project.docker(words);

    assert.equal(code, 0, text);
    assert.match(text, /RUN --network=none cat/);
    assert.equal(await readFile(join(project.folder, 'out/g'), 'utf8'), 'sent\n'.repeat(1_000_000));
  });

  test('a connection serves the builder, and nothing else', async () => {
    const client = new GrpcClient(createConnection(engine.socketPath));
    const { signal } = new AbortController();
    const { version } = await client.call('/moby.buildkit.v1.Control/Info', Nothing, InfoResponse, {}, signal);
    assert.equal(version?.package, 'gantry');
    client.close();

    const other = connect('http://engine', { createConnection: () => createConnection(engine.socketPath) });
    const request = other.request({ ':method': 'GET', ':path': '/_ping' });
    request.resume();
    const [headers] = (await once(request, 'response')) as [{ ':status': number }];
    assert.equal(headers[':status'], 415);
    other.destroy();
    assert.equal((await engine.get('/_ping')).status, 200);
  });
});

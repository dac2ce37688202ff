import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ReturnRequest, SolveRequest, SolveResponse } from '@gantry/engine/buildkit/messages/bridge.ts';
import { Nothing } from '@gantry/engine/buildkit/messages/common.ts';
import * as results from '@gantry/engine/buildkit/messages/results.ts';
import type { Message } from '@gantry/engine/buildkit/wire/message.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { FILE_SYNC, servedFiles, SessionClient } from './session-client.ts';

const FILE = [
  'FROM busybox',
  'RUN mkdir /d && echo 0123456789 > /d/f && ln -s /d/f /d/link && ln -s ../../../../etc/passwd /d/out && mkdir -m 1777 /d/sub',
].join('\n');

suite('results of a build', { concurrency: false }, () => {
  let engine: TestEngine;
  let client: SessionClient;
  let ref: string;
  let solved: Promise<unknown>;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    client = await SessionClient.open(engine.socketPath, new Map([[FILE_SYNC, servedFiles(FILE, [])]]));
    solved = client.solve({ ref: 'build', frontend: '' });
    const options = new Map([['force-network-mode', 'none']]);
    const { result } = await call('Solve', SolveRequest, SolveResponse, { frontend: 'dockerfile.v0', options });
    ref = result!.ref!.id;
  });
  after(async () => {
    client.vanish();
    await engine[Symbol.asyncDispose]();
  });

  async function call<Request, Response>(
    method: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    value: Request,
  ): Promise<Response> {
    return await client.bridge('build', method, request, response, value);
  }
  const read = async (path: string, range?: { offset?: number; length?: number }): Promise<string> => {
    const { data } = await call('ReadFile', results.ReadFileRequest, results.ReadFileResponse, { ref, path, range });
    return Buffer.from(data).toString();
  };

  test('ReadFile gives a file or a part of it, and follows links within the result', async () => {
    assert.equal(await read('/d/f'), '0123456789\n');
    assert.equal(await read('d/link', { offset: 3, length: 4 }), '3456');
    assert.equal(await read('/d/f', { offset: 100, length: 4 }), '');
    assert.match(await read('/d/out'), /^root:x:0:0:root:\/root:\/bin\/sh\ndaemon/);
    assert.equal(await read('../../../etc/passwd'), await read('/etc/passwd'));
    await assert.rejects(read('/nope'), { code: 5, message: /open \/nope: no such file or directory/ });
    await assert.rejects(read('/d'), { message: /is not a plain file/ });
  });

  test('ReadDir and StatFile tell names, modes and links', async () => {
    const list = async (path: string, pattern = ''): Promise<string[]> => {
      const request = { ref, path, pattern };
      const { entries } = await call('ReadDir', results.ReadDirRequest, results.ReadDirResponse, request);
      return entries.map((each) => `${each.path} ${each.linkName}`.trim());
    };
    assert.deepEqual(await list('/d'), ['f', 'link /d/f', 'out ../../../../etc/passwd', 'sub']);
    assert.deepEqual(await list('/d', 'l*'), ['link /d/f']);
    await assert.rejects(list('/d/f'), { message: /is not a directory/ });
    await assert.rejects(list('/d', '['), { code: 2 });
    const stat = async (path: string): Promise<unknown> => {
      const { stat: found } = await call('StatFile', results.StatFileRequest, results.StatFileResponse, { ref, path });
      return [found!.path, found!.mode, found!.size];
    };
    assert.deepEqual(await stat('/d/f'), ['f', 0o644, 11]);
    assert.deepEqual(await stat('/d/sub'), ['sub', 2 ** 31 + 2 ** 20 + 0o777, 0]);
  });

  test('another result is refused', async () => {
    const other = call('ReadFile', results.ReadFileRequest, results.ReadFileResponse, { ref: 'x', path: '/d/f' });
    await assert.rejects(other, { code: 5, message: /no result "x"/ });
  });

  test('ResolveImageConfig gives the configuration of an image', async () => {
    const resolve = async (name: string): Promise<string> => {
      const { config } = await call('ResolveImageConfig', results.ResolveImageRequest, results.ResolveImageResponse, {
        name,
      });
      return Buffer.from(config).toString();
    };
    assert.deepEqual((JSON.parse(await resolve('busybox')) as { config: { Cmd: string[] } }).config.Cmd, ['sh']);
    await assert.rejects(resolve('127.0.0.1:1/none'));
  });

  test('the build ends when its client returns a result', async () => {
    await call('Return', ReturnRequest, Nothing, { result: { ref: { id: ref } } });
    await solved;
  });
});

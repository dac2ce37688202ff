import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';

import { upgraded } from '@gantry/testing/streams/upgraded.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { ReturnRequest, SolveRequest as BridgeRequest, SolveResponse as BridgeResponse } from '../messages/bridge.ts';
import { Nothing } from '../messages/common.ts';
import { SolveRequest, SolveResponse, StatusRequest, StatusResponse } from '../messages/control.ts';
import { GrpcClient } from '../wire/client.ts';
import type { Sent } from '../wire/message.ts';

const CONTROL = '/moby.buildkit.v1.Control/';
const BRIDGE = '/moby.buildkit.v1.frontend.LLBBridge/';

suite('a client of the builder', { concurrency: false }, () => {
  let engine: TestEngine;
  let client: GrpcClient;
  const { signal } = new AbortController();
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    client = new GrpcClient(await upgraded(engine.socketPath, '/grpc'));
  });
  after(async () => {
    client.close();
    await engine[Symbol.asyncDispose]();
  });

  let solves = 0;
  const solve = async (request: Sent<typeof SolveRequest>): Promise<unknown> => {
    const whole = { ref: `build-${(solves += 1)}`, session: 's', ...request };
    return await client.call(`${CONTROL}Solve`, SolveRequest, SolveResponse, whole, signal);
  };

  const ROWS: readonly (readonly [string, Sent<typeof SolveRequest>, number, RegExp])[] = [
    ['a graph of operations', { definition: Buffer.from('x') }, 12, /graphs of operations are not taken/],
    ['another frontend', { frontend: 'gateway.v0' }, 12, /"gateway\.v0" is not part of this builder/],
    ['an unknown output', { exporters: [{ type: 'vhd', attributes: new Map() }] }, 12, /the output "vhd"/],
    [
      'a push without a tag',
      { exporters: [{ type: 'moby', attributes: new Map([['push-by-digest', 'true']]) }] },
      12,
      /a push without a tag/,
    ],
    ['rights on the host', { entitlements: ['security.insecure'] }, 7, /security\.insecure is not allowed/],
    ['no ref', { ref: '' }, 3, /no ref/],
    [
      'a cache for others',
      { cache: { exports: [{ type: 'gha', attributes: new Map() }] } },
      12,
      /--cache-to type="gha" is not implemented: use inline, registry, local/,
    ],
    [
      'a cache without a place',
      { cache: { exports: [{ type: 'registry', attributes: new Map() }] } },
      3,
      /registry cache exporter requires ref/,
    ],
  ];
  for (const [name, request, code, message] of ROWS) {
    test(`is refused ${name} by name`, async () => {
      await assert.rejects(solve(request), { code, message });
    });
  }

  test('gets the end of the progress of a refused build, which it awaits', async () => {
    using progress = client.exchange(`${CONTROL}Status`, StatusRequest, StatusResponse, signal);
    await progress.send({ ref: 'refused' });
    progress.end();
    await assert.rejects(solve({ ref: 'refused', frontend: 'gateway.v0' }), { code: 12 });
    await Array.fromAsync(progress.responses); // throws for a build that nobody began
  });

  test('is refused methods that are not part of the builder, and builds that there are not', async () => {
    await assert.rejects(client.call(`${CONTROL}Nothing`, Nothing, Nothing, {}, signal), { code: 12 });
    await assert.rejects(client.call(`${CONTROL}Session`, Nothing, Nothing, {}, signal), /the session has no id/);
    const nope = client.call(`${BRIDGE}Return`, ReturnRequest, Nothing, {}, signal);
    await assert.rejects(nope, { code: 5, message: /no such build/ });
  });

  test('gets the failure of its own frontend, and the end of the progress', async () => {
    const solving = solve({ ref: 'probe' });
    solving.catch(() => undefined);
    using progress = client.exchange(`${CONTROL}Status`, StatusRequest, StatusResponse, signal);
    await progress.send({ ref: 'probe' });
    progress.end();
    using bridge = client.exchange(`${BRIDGE}Solve`, BridgeRequest, BridgeResponse, signal, {
      'buildkit-controlapi-buildid': 'probe',
    });
    await bridge.send({ frontend: 'other.v0' });
    bridge.end();
    await assert.rejects(Array.fromAsync(bridge.responses), { code: 12, message: /only the frontend dockerfile\.v0/ });
    using returned = client.exchange(`${BRIDGE}Return`, ReturnRequest, Nothing, signal, {
      'buildkit-controlapi-buildid': 'probe',
    });
    await returned.send({ error: { code: 12, message: 'in the words of the client' } });
    returned.end();
    await Array.fromAsync(returned.responses);
    await assert.rejects(solving, { code: 12, message: 'in the words of the client' });
    for await (const _status of progress.responses);
  });

  test('that is no client of HTTP/2 is closed, and the engine goes on', async () => {
    const socket = await upgraded(engine.socketPath, '/grpc');
    socket.write('GET / HTTP/1.1\r\n\r\n'.repeat(100));
    socket.resume();
    await once(socket, 'close');
    assert.equal((await engine.get('/_ping')).status, 200);
  });
});

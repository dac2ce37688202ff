import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const MB = 1024 * 1024;
/** More than what lies between a client and the daemon by itself. */
const GARBAGE = Buffer.alloc(8 * MB, 'A');

suite('a body that is refused keeps nothing waiting behind it', { timeout: 300_000 }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.create(['true'], { HostConfig: { NetworkMode: 'none' } }, 'target');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** On the one connection of the agent. */
  async function ask(agent: Agent, method: string, path: string, body?: Buffer): Promise<[number, string]> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { 'content-type': 'application/x-tar' };
    const asked = httpRequest({ socketPath: engine.socketPath, path, method, agent, headers }, resolve);
    asked.on('error', reject).end(body);
    const answer = await promise;
    return [answer.statusCode ?? 0, await text(answer)];
  }

  for (const [what, method, path, status] of [
    ['of no container', 'PUT', '/containers/nope/archive?path=/', 404],
    ['for a missing path', 'PUT', '/containers/target/archive?path=/nope', 404],
    ['without a path', 'PUT', '/containers/target/archive?path=', 400],
    ['that is no archive', 'PUT', '/containers/target/archive?path=/tmp', 400],
    ['that is no image', 'POST', '/images/load', 400],
  ] as const) {
    test(what, async () => {
      using agent = new DisposableAgent();

      const [refused] = await ask(agent, method, path, GARBAGE);
      const next = await ask(agent, 'GET', '/_ping');

      assert.deepEqual([refused, next], [status, [200, 'OK']]);
      assert.equal(agent.connections, 1, 'the connection was kept');
    });
  }

  test('one that is too long to be read in vain ends its connection', async () => {
    using agent = new DisposableAgent();

    const answer = ask(agent, 'PUT', '/containers/nope/archive?path=/', Buffer.alloc(200 * MB));
    const status = await answer.then(
      ([code]) => code,
      (error: NodeJS.ErrnoException) => error.code,
    );
    const next = await ask(agent, 'GET', '/_ping');

    assert.ok([404, 'EPIPE', 'ECONNRESET'].includes(status ?? ''), String(status));
    assert.deepEqual(next, [200, 'OK']);
  });
});

class DisposableAgent extends Agent implements Disposable {
  connections = 0;

  constructor() {
    super({ keepAlive: true, maxSockets: 1 });
  }

  override createConnection(
    ...parameters: Parameters<Agent['createConnection']>
  ): ReturnType<Agent['createConnection']> {
    this.connections += 1;
    return super.createConnection(...parameters);
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}

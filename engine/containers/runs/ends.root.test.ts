import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };

/** Says when it is ready, and ends with 3 on this signal. */
const endsOn = (signal: string) => ['sh', '-c', `trap "exit 3" ${signal}; echo ready; while true; do sleep 0.05; done`];

suite('ends of containers that do not simply run', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => void (engine = await TestEngine.start()));
  after(async () => await engine[Symbol.asyncDispose]());

  async function stateOf(id: string): Promise<Inspect['State']> {
    return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
  }

  async function paused(signal: string, body: Record<string, unknown> = {}): Promise<string> {
    const id = await engine.run(endsOn(signal), body);
    const { socket } = await engine.hijack(`/containers/${id}/attach?logs=1&stream=1&stdout=1`);
    await new Session(socket).saw('ready');
    assert.equal((await engine.post(`/containers/${id}/pause`)).status, 204);
    return id;
  }

  test('a paused container goes on to hear a signal, and ends of it', async () => {
    const id = await paused('TERM');
    const since = Math.floor(Date.now() / 1000) - 1;

    assert.equal((await engine.post(`/containers/${id}/kill?signal=TERM`)).status, 204);

    assert.equal(await engine.wait(id), 3);
    const filters = encodeURIComponent(JSON.stringify({ container: [id] }));
    const { raw } = await engine.get(`/events?since=${since}&until=${Date.now() / 1000}&filters=${filters}`);
    const told = [...raw.toString().matchAll(/"Action":"(\w+)"/g)].map(([, action]) => action);
    assert.deepEqual(told.slice(told.indexOf('kill')), ['kill', 'unpause', 'die']);
  });

  test('one with a stop signal of its own goes on for that alone', async () => {
    const id = await paused('USR1', { StopSignal: 'USR1' });

    await engine.post(`/containers/${id}/kill?signal=TERM`);
    assert.equal((await stateOf(id)).Status, 'paused');

    await engine.post(`/containers/${id}/kill?signal=USR1`);
    assert.equal(await engine.wait(id), 3);
  });

  test('a restarting container is removed by force only', async () => {
    const HostConfig = { RestartPolicy: { Name: 'always' } };
    const id = await engine.run(['false'], { HostConfig });
    // Each delay is twice as long as the one before: the fourth leaves time to ask.
    for (let runs = 0; runs < 4; runs += 1) await engine.wait(id);

    const refused = await engine.delete<Message>(`/containers/${id}`);
    const forced = await engine.delete(`/containers/${id}?force=1`);

    const advice = 'Stop the container before attempting removal or force remove';
    assert.deepEqual(
      [refused.status, refused.body.message],
      [409, `You cannot remove a restarting container ${id}. ${advice}`],
    );
    assert.equal(forced.status, 204);
    assert.equal((await engine.get(`/containers/${id}/json`)).status, 404);
  });
});

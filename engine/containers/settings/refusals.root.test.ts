import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };

suite('a refused or failed request changes nothing', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  async function volumes(): Promise<string[]> {
    const { body } = await engine.get<{ Volumes: { Name: string }[] }>('/volumes');
    return body.Volumes.map(({ Name }) => Name);
  }

  /** Resolves when an event of this kind has been told of the container. */
  async function told(id: string, action: string): Promise<void> {
    const filters = encodeURIComponent(JSON.stringify({ event: [action], container: [id] }));
    const events = await engine.stream('GET', `/events?since=1&filters=${filters}`);
    await new Promise((resolve) => void events.once('data', resolve));
    events.destroy();
  }

  test('a pause during a stop is refused, and the stop comes to its end', async () => {
    const id = await engine.run(['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done']);
    const stopping = engine.post(`/containers/${id}/stop?t=1`);
    await told(id, 'kill');

    const { body } = await engine.post<Message>(`/containers/${id}/pause`);

    assert.equal(body.message, 'a container that is stopping cannot become paused');
    assert.equal((await stopping).status, 204);
    assert.equal((await inspect(id)).State.ExitCode, 137);
  });

  test('a kill comes to its end whatever is paused meanwhile', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(async () => await engine.run(['sleep', '1000'])));

    const kills = await Promise.all(
      ids.map(async (id) => {
        const killed = engine.post(`/containers/${id}/kill`);
        for (let i = 0; i < 5; i += 1) await engine.post(`/containers/${id}/pause`);
        return (await killed).status;
      }),
    );

    assert.deepEqual(kills, [204, 204, 204, 204]);
  });

  test('on-failure gives up after its number of starts, also when none of them succeeds', async () => {
    const id = await engine.run(['sh', '-c', '/bin/busybox rm -f /bin/sh; exit 1'], {
      HostConfig: { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 3 } },
    });

    while ((await inspect(id)).State.Status !== 'exited') await setTimeout(20);

    const { RestartCount, State } = await inspect(id);
    assert.deepEqual([RestartCount, State.ExitCode], [3, 127]);
    assert.match(State.Error, /executable file not found/);
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 500, 'a user may try again');
    assert.equal((await inspect(id)).RestartCount, 0);
  });

  test('a removal that is refused leaves anonymous volumes to the one that succeeds', async () => {
    const before = await volumes();
    const id = await engine.run(['sleep', '1000'], { Volumes: { '/v': {} } });

    assert.equal((await engine.delete(`/containers/${id}`)).status, 409);
    assert.equal((await engine.delete(`/containers/${id}?v=1&force=1`)).status, 204);

    assert.deepEqual(await volumes(), before);
  });

  test('a removal without its volumes leaves them', async () => {
    const before = await volumes();
    const id = await engine.create(['true'], { Volumes: { '/v': {} } });

    await engine.delete(`/containers/${id}`);

    assert.equal((await volumes()).length, before.length + 1);
  });
});

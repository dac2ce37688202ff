import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Api } from '@gantry/testing/api.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const ENDS = { HostConfig: { AutoRemove: true } };

async function pidOf(engine: TestEngine, id: string): Promise<number> {
  return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Pid;
}

async function idsOf(engine: TestEngine): Promise<string[]> {
  return (await engine.get<{ Id: string }[]>('/containers/json?all=1')).body.map(({ Id }) => Id);
}

/** Resolves when the event of the container has been sent, also before. */
async function heard(engine: TestEngine, id: string, action: string): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ container: [id], event: [action] }));
  const path = `/v1.41/events?since=1&filters=${filters}`;
  const sent = request({ socketPath: engine.socketPath, path, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  await once(response, 'data');
  response.destroy();
}

test('AutoRemove: containers that ended without a daemon are removed by the next one', async () => {
  await using engine = await TestEngine.start({ version: '1.41' });
  const stays = await engine.run(['sleep', '1000'], ENDS);
  const ends = await engine.run(['sleep', '1000'], { ...ENDS, Volumes: { '/v': {} } });
  const lost = await engine.run(['sleep', '1000'], ENDS);
  const created = await engine.create(['true'], ENDS);
  const [pid, shim] = [await pidOf(engine, ends), shimOf(await pidOf(engine, lost))];
  await engine.kill('SIGKILL');
  process.kill(pid, 'SIGKILL');
  process.kill(shim, 'SIGKILL');

  await engine.startAgain();

  for (const id of [ends, lost, created]) await heard(engine, id, 'destroy');
  assert.deepEqual(await idsOf(engine), [stays]);
  assert.deepEqual((await engine.get<{ Volumes: unknown[] }>('/volumes')).body.Volumes, []);
});

test('AutoRemove: a daemon that dies at the end of a container leaves its removal to the next one', async () => {
  await using engine = await TestEngine.start({ version: '1.41' });
  const ids = await Promise.all([1, 2, 3, 4].map(async () => await engine.run(['sleep', '1000'], ENDS)));
  const pids = await Promise.all(ids.map(async (id) => await pidOf(engine, id)));
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await heard(engine, ids[0]!, 'die');
  await engine.kill('SIGKILL');

  await engine.startAgain();

  for (const id of ids) await heard(engine, id, 'destroy');
  assert.deepEqual(await idsOf(engine), []);
});

test('wait: the head is sent before the end from 1.30 on, and with the answer below', async () => {
  await using engine = await TestEngine.start({ version: '1.41' });
  const id = await engine.create(['true'], ENDS);
  const sent = request({
    socketPath: engine.socketPath,
    method: 'POST',
    path: `/v1.30/containers/${id}/wait?condition=removed`,
    agent: false,
  }).end();

  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  await engine.post(`/containers/${id}/start`);

  assert.equal(response.statusCode, 200);
  assert.deepEqual(JSON.parse((await response.toArray()).join('')), { StatusCode: 0 });
  const ended = await engine.create(['true']);
  using older = new Api(engine.socketPath, '/v1.29');
  assert.deepEqual((await older.post(`/containers/${ended}/wait?condition=removed`)).body, { StatusCode: 0 });
});

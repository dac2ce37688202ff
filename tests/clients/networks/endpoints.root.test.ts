import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';

import { BothEngines, normalised, type Side } from '../both-engines.ts';
import { differences } from '../differences.ts';
import { endpointBodies, type EndpointBody } from './endpoint-bodies.ts';

/** In the words of Go's decoder, and in ours. */
const WRONG_TYPE = /"(?:json: cannot unmarshal|invalid body field )[^"]*"/g;

type Message = { message?: string; Warnings?: string[] };

suite('bodies of NetworkingConfig, on our daemon and on dockerd', { concurrency: 4 }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start();
    await engines.both(async ({ api }) => {
      const subnet = (Subnet: string): object => ({ IPAM: { Config: [{ Subnet }] } });
      await api.post('/networks/create', { Name: 'one', ...subnet('10.91.0.0/24') });
      await api.post('/networks/create', { Name: 'two', ...subnet('10.92.0.0/24') });
      await api.post('/networks/create', { Name: 'free' });
      const other = { Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { NetworkMode: 'one' } };
      await api.post('/containers/create?name=other', other);
      await api.post('/containers/other/start');
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [index, [about, body]] of Object.entries(endpointBodies).entries()) {
    const what = body.chosen === undefined ? 'as with dockerd' : `differs from dockerd: ${body.chosen}`;
    test(`${about}: ${what}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await outcome(side, `c${index}`, body));

      const found = differences(ours, theirs);
      if (body.chosen === undefined) assert.deepEqual(found, []);
      else assert.notDeepEqual(found, [], 'there is no difference any more');
    });
  }
});

/** The answers to the creation and the start, and what an inspect shows after each. */
async function outcome(side: Side, name: string, body: EndpointBody): Promise<unknown> {
  const { api } = side;
  const { mode = 'one', EndpointsConfig, config } = body;
  const made = await api.post<Message>(`/containers/create?name=${name}`, {
    Image: 'busybox',
    Cmd: ['true'],
    ...config,
    HostConfig: { NetworkMode: mode },
    NetworkingConfig: 'whole' in body ? body.whole : { EndpointsConfig },
  });
  const created = { status: kindOf(made.status), message: made.body.message, warnings: made.body.Warnings ?? [] };
  if (made.status !== 201) return neutral(side, { created });
  const before = await networksOf(side, name);
  const answer = await api.post<Message | undefined>(`/containers/${name}/start`);
  const started = { status: kindOf(answer.status), message: answer.body?.message };
  if (answer.status === 204) await api.post(`/containers/${name}/wait`);
  // Remains of a failed start are not compared.
  const after = answer.status === 204 ? await networksOf(side, name) : undefined;
  await api.delete(`/containers/${name}?force=1`);
  return neutral(side, { created, before, started, after });
}

/** Without what is chosen by each engine. */
async function networksOf({ api }: Side, name: string): Promise<unknown> {
  const { body } = await api.get<Inspect>(`/containers/${name}/json`);
  return { mode: body.HostConfig.NetworkMode, networks: body.NetworkSettings.Networks };
}

/** The specification's statuses are ours; dockerd's differ within their class. */
function kindOf(status: number): string {
  return status < 400 ? String(status) : 'refused';
}

function neutral(side: Side, shown: unknown): unknown {
  return JSON.parse(normalised(side, JSON.stringify(shown)).replaceAll(WRONG_TYPE, '"<of a wrong type>"'));
}

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { BothEngines, type Side } from '../both-engines.ts';

const INIT = { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' };
type Method = 'GET' | 'POST' | 'DELETE';
type Row = readonly [method: Method, path: string, body?: object];

const entry = (over: object = {}): object => ({ Name: 'entry', Driver: 'overlay', Ingress: true, ...over });
const service = (over: object): object => ({
  Name: 'web',
  TaskTemplate: { ContainerSpec: { Image: 'busybox' }, Placement: { Constraints: ['node.labels.x==y'] } },
  ...over,
});
const published = { EndpointSpec: { Ports: [{ TargetPort: 80 }] } };

const ROWS: readonly Row[] = [
  ['GET', '/swarm/unlockkey'],
  ['POST', '/swarm/unlock', { UnlockKey: 'x' }],
  ['POST', '/networks/create', entry()],
  ['POST', '/networks/create', entry({ Driver: 'bridge' })],
  ['POST', '/networks/create', entry({ Attachable: true })],
  ['POST', '/services/create', service(published)],
  ['DELETE', '/networks/ingress'],
  ['DELETE', '/services/web'],
  ['DELETE', '/networks/ingress'],
  ['POST', '/networks/create', entry({ Attachable: true })],
  ['POST', '/services/create', service(published)],
  ['POST', '/services/create', service({ EndpointSpec: { Ports: [{ TargetPort: 80, PublishMode: 'host' }] } })],
  ['DELETE', '/services/web'],
  ['POST', '/networks/create', entry({ IPAM: { Config: [{ Subnet: '10.99.0.0/24' }] } })],
  ['POST', '/networks/create', entry({ Name: 'other' })],
  ['POST', '/services/create', service(published)],
  ['DELETE', '/networks/entry'],
  ['DELETE', '/services/web'],
  ['DELETE', '/networks/entry'],
];

/** Ranges that both engines use alike. */
const OTHERS = { DefaultAddrPool: ['20.20.0.0/16'], SubnetSize: 26 };
/** Bodies of an init, and the status of ours where it differs. */
const POOLS: readonly (readonly [body: object, ours?: number])[] = [
  [{ DefaultAddrPool: ['20.20.0.0/16', '30.0.0.0/8'], SubnetSize: 26 }],
  [{ DefaultAddrPool: ['20.20.0.0/23'], SubnetSize: 24 }],
  [{ DefaultAddrPool: ['x'] }, 400],
  [{ DefaultAddrPool: ['20.20.0.0/26'] }, 400],
  [{ DefaultAddrPool: ['20.20.0.0/16'], SubnetSize: 30 }, 400],
  ...[1023, 1024, 49_151, 49_152, 0, null, 4_294_967_295].map((port) => [{ ...OTHERS, DataPathPort: port }] as const),
  ...['0.0.0.0', '::', 'nowhere0', '127.0.0.1:4789', '[::1]', '::1', 'lo', '10.99.9.9', null].map(
    (address) => [{ ...OTHERS, DataPathAddr: address }] as const,
  ),
  [{ ...OTHERS, DataPathAddr: 'nowhere0', DataPathPort: 1 }],
];

suite('address pools, data paths, keys and networks of published ports, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.41');
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [body, ours] of POOLS) {
    test(`an init with ${JSON.stringify(body)}`, async () => {
      const seen = await engines.both(async ({ api }) => {
        const init = await api.post('/swarm/init', { ...INIT, ...body });
        if (init.status !== 200) return { status: init.status, said: init.raw.toString().trim() };
        const { DefaultAddrPool, SubnetSize, DataPathPort } = (await api.get<Record<string, unknown>>('/swarm')).body;
        await api.post('/networks/create', { Name: 'one', Driver: 'overlay' });
        const networks = [await rangeOf(api, 'ingress'), await rangeOf(api, 'one')];
        assert.equal((await api.post('/swarm/leave?force=1')).status, 200);
        return { status: 200, DefaultAddrPool, SubnetSize, DataPathPort, networks };
      });
      assert.deepEqual(seen.ours, { ...seen.theirs, ...(ours === undefined ? {} : { status: ours }) });
    });
  }

  test('removal, creation and use of the network of published ports', async () => {
    const all = await engines.both(async ({ api }) => {
      assert.equal((await api.post('/swarm/init', INIT)).status, 200);
      await eventually('the network ingress', async () =>
        (await api.get('/networks/ingress')).status === 200 ? true : undefined,
      );
      const answers: unknown[] = [];
      for (const [method, path, body] of ROWS)
        answers.push([method, path, body, ...(await ask(api, method, path, body))]);
      assert.equal((await api.post('/swarm/leave?force=1')).status, 200);
      return answers;
    });
    for (const [index, answer] of all.ours.entries()) assert.deepEqual(answer, all.theirs[index]);
  });
});

/** The status and the error. */
async function ask(api: Side['api'], method: Method, path: string, body?: object): Promise<[number, string]> {
  const { status, raw } = await api.request(method, path, { body });
  const said = status < 400 ? '' : raw.toString().trim();
  return [status, said.replaceAll(/\b[0-9a-z]{25}\b/g, '<id>')];
}

/** The range and the gateway; dockerd allocates them after the answer. */
async function rangeOf(api: Side['api'], name: string): Promise<unknown> {
  type Network = { IPAM: { Config: { Subnet: string; Gateway: string }[] | null } };
  return await eventually(`the range of ${name}`, async () => {
    const [first] = (await api.get<Network>(`/networks/${name}`)).body.IPAM?.Config ?? [];
    return first === undefined ? undefined : [first.Subnet, first.Gateway];
  });
}

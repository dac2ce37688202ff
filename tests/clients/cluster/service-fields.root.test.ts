import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { BothEngines, type Side } from '../both-engines.ts';
import { FIELDS, type FieldRow } from './service-fields.ts';

type Fields = Record<string, unknown>;
type TaskWire = Fields & {
  ServiceID: string;
  DesiredState: string;
  GenericResources?: object[];
  Spec: Fields;
  Status: { State: string; Err?: string; ContainerStatus?: { ContainerID: string } };
};
type Seen = Readonly<{ given: unknown; spec: object; task: object; error: string | undefined; container: object }>;

/** Differs from engine to engine, or from container to container. */
const OWN = ['Hostname', 'Labels', 'LogConfig', 'Runtime', 'CgroupnsMode', 'MaskedPaths', 'ReadonlyPaths', 'ShmSize'];

suite('fields of services since version 1.25, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  let seen: { ours: Seen[]; theirs: Seen[] };
  before(async () => {
    const resources = ['GPU=one', 'SSD=5'].map((word) => `--node-generic-resource=${word}`);
    engines = await BothEngines.start('1.41', '1.41', resources);
    seen = await engines.both(async (side) => {
      const body = { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' };
      assert.equal((await side.api.post('/swarm/init', body)).status, 200);
      for (const [at, row] of FIELDS.entries()) await create(side, row, `field${at}`);
      const tasks = await settled(side);
      const all: Seen[] = [];
      for (const [at, task] of tasks.entries()) all.push(await look(side, `field${at}`, task));
      return all;
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  test('the node and /info show the resources of the node', async () => {
    const { ours, theirs } = await engines.both(async ({ api }) => {
      type Node = { Description: { Resources: { GenericResources: object[] } } };
      const { body: nodes } = await api.get<Node[]>('/nodes');
      const { body: info } = await api.get<{ GenericResources: object[] }>('/info');
      const all = [nodes[0]!.Description.Resources.GenericResources, info.GenericResources];
      return all.map((resources) => resources.map((one) => JSON.stringify(one)).toSorted()); // dockerd: in any order
    });

    assert.deepEqual(ours, theirs);
  });

  for (const [at, { what, chosen }] of FIELDS.entries()) {
    test(chosen === undefined ? what : `${what}: ${chosen.reason}`, () => {
      const [ours, theirs] = [{ ...seen.ours[at]! }, { ...seen.theirs[at]! }];
      for (const part of chosen?.without ?? []) {
        assert.notDeepEqual(ours[part], theirs[part], 'there is no difference any more');
        ours[part] = theirs[part] as never;
      }
      assert.deepEqual(ours, theirs);
    });
  }
});

async function create(side: Side, { what, container, task, service }: FieldRow, name: string): Promise<void> {
  const created = await side.api.post('/services/create', {
    Name: name,
    TaskTemplate: {
      ContainerSpec: { Image: 'busybox', Command: ['sleep', '3600'], StopGracePeriod: 0, ...container },
      RestartPolicy: { Condition: 'none' },
      ...task,
    },
    ...service,
  });
  assert.equal(created.status, 201, `${side.name}: ${what}: ${created.raw.toString()}`);
}

/** The tasks of all rows, once each is in the state of its row. */
async function settled(side: Side): Promise<TaskWire[]> {
  const { body: services } = await side.api.get<{ ID: string; Spec: { Name: string } }[]>('/services');
  const ids = new Map(services.map(({ ID, Spec }) => [Spec.Name, ID]));
  return await eventually(`${side.name}: all tasks`, async () => {
    const { body: tasks } = await side.api.get<TaskWire[]>('/tasks');
    return FIELDS.map(({ what, state }, at) => {
      const own = tasks.filter(({ ServiceID }) => ServiceID === ids.get(`field${at}`));
      const found = own.find(
        ({ Status }) => Status.State === state && (state !== 'pending' || Status.Err !== undefined),
      );
      if (found !== undefined) return found;
      throw new Error(`${what}: ${JSON.stringify(own.map(({ Status }) => Status))}`);
    });
  });
}

async function look(side: Side, name: string, found: TaskWire): Promise<Seen> {
  const { body: inspect } = await side.api.get<{ Spec: Fields }>(`/services/${name}`);
  const id = found.Status.ContainerStatus?.ContainerID ?? '';
  const shown = id === '' ? {} : (await side.api.get<Fields>(`/containers/${id}/json`)).body;
  const { Spec, Status } = found;
  return {
    given: found.GenericResources,
    spec: inspect.Spec,
    task: Spec,
    error: Status.Err,
    container: {
      ...settings(shown['Config']),
      ...settings(shown['HostConfig']),
      mounts: mountsOf(shown['Mounts']),
      Env: ((shown['Config'] as Fields | undefined)?.['Env'] as string[] | undefined)?.toSorted(), // dockerd: in any order
    },
  };
}

function settings(fields: unknown): Fields {
  const { Hostname, ...rest } = { ...(fields as Fields) };
  const own = typeof Hostname === 'string' && !/^[0-9a-f]{12}$/.test(Hostname) ? { hostname: Hostname } : {};
  return { ...own, ...Object.fromEntries(Object.entries(rest).filter(([key]) => !OWN.includes(key))) };
}

function mountsOf(mounts: unknown): object[] {
  return ((mounts ?? []) as Fields[]).map(({ Source: _ofItsHost, ...mount }) => mount);
}

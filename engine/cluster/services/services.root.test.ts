import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Refusal = { message: string };
type ServiceWire = {
  ID: string;
  Version: { Index: number };
  Spec: { Name: string; Labels: Record<string, string>; Mode: object };
  PreviousSpec?: { Labels: object };
};
type TaskWire = { ID: string; NodeID?: string; Status: { State: string; Err?: string }; DesiredState: string };

const TaskTemplate = { ContainerSpec: { Image: 'busybox' } };
const none = { Replicated: { Replicas: 0 } };
const ENDPOINTS = [
  ['GET', '/services'],
  ['POST', '/services/create'],
  ['GET', '/services/web'],
  ['DELETE', '/services/web'],
  ['POST', '/services/web/update?version=1'],
  ['GET', '/tasks'],
  ['GET', '/tasks/one'],
] as const;

suite('services and tasks of a cluster', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let leader: ClusterHost;
  let follower: ClusterHost;
  let worker: ClusterHost;
  before(async () => {
    hosts = await ClusterHosts.start(3);
    [leader, follower, worker] = hosts.hosts as [ClusterHost, ClusterHost, ClusterHost];
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  const answers = async (host: ClusterHost): Promise<[number, string][]> =>
    await Promise.all(
      ENDPOINTS.map(async ([method, path]): Promise<[number, string]> => {
        const body = method === 'POST' ? { Name: 'web', TaskTemplate } : undefined;
        const answer = await host.engine.request<Refusal>(method, path, { body });
        return [answer.status, answer.body.message];
      }),
    );
  const create = async (body: object, host = leader): Promise<string> => {
    const answer = await host.engine.post<{ ID: string }>('/services/create', { TaskTemplate, Mode: none, ...body });
    assert.equal(answer.status, 201, answer.raw.toString());
    assert.deepEqual(Object.keys(answer.body), ['ID']);
    return answer.body.ID;
  };
  const service = async (ref: string, host = leader): Promise<ServiceWire> =>
    (await host.engine.get<ServiceWire>(`/services/${ref}`)).body;
  const update = async (ref: string, query: string, body: object, host = leader): Promise<[number, string]> => {
    const answer = await host.engine.post<Refusal>(`/services/${ref}/update?${query}`, body);
    return [answer.status, answer.body.message];
  };
  const names = async (filters: object): Promise<string[] | number> => {
    const answer = await leader.engine.get<ServiceWire[]>(
      `/services?filters=${encodeURIComponent(JSON.stringify(filters))}`,
    );
    return answer.status === 200 ? answer.body.map(({ Spec }) => Spec.Name) : answer.status;
  };
  const tasks = async (filters: object): Promise<TaskWire[]> => {
    const answer = await leader.engine.get<TaskWire[]>(`/tasks?filters=${encodeURIComponent(JSON.stringify(filters))}`);
    assert.equal(answer.status, 200, answer.raw.toString());
    return answer.body;
  };

  test('outside of a cluster and on a worker all seven are 406', async () => {
    for (const [status, message] of await answers(leader)) {
      assert.equal(status, 406);
      assert.match(message, /^This node is not a swarm manager\. Use "docker swarm init"/);
    }
    await leader.init();
    await follower.join(leader, 'Manager');
    await worker.join(leader, 'Worker');
    for (const [status, message] of await answers(worker)) {
      assert.equal(status, 406);
      assert.match(message, /^This node is not a swarm manager\. Worker nodes/);
    }
  });

  test('a service is found by id, name and beginning of an id, and listed by filters', async () => {
    const id = await create({ Name: 'web', Labels: { tier: 'front' } });
    await create({ Name: 'web-two', Mode: { Global: {} }, TaskTemplate: { ...TaskTemplate, Placement: nowhere() } });
    await create({ Name: 'db', Labels: { tier: 'back' } });

    for (const ref of [id, id.slice(0, 8), 'web']) assert.equal((await service(ref)).ID, id);
    const missing = await leader.engine.get<Refusal>('/services/nope');
    assert.deepEqual([missing.status, missing.body.message], [404, 'service nope not found']);
    for (const [filters, expected] of [
      [{}, ['db', 'web', 'web-two']],
      [{ name: ['web'] }, ['web', 'web-two']],
      [{ name: { db: true } }, ['db']],
      [{ id: [id.slice(0, 8)] }, ['web']],
      [{ id: ['zz'] }, []],
      [{ label: ['tier'] }, ['db', 'web']],
      [{ label: ['tier=back'] }, ['db']],
      [{ mode: ['global'] }, ['web-two']],
      [{ mode: ['odd'] }, []],
      [{ odd: ['x'] }, 400],
    ] as const) {
      assert.deepEqual(await names(filters), expected, JSON.stringify(filters));
    }
  });

  test('POST /services/create and update: unknown fields are ignored', async () => {
    const extra = {
      Foo: 1,
      EndpointSpec: { ExposedPorts: [{ Port: 80 }] },
      TaskTemplate: { ...TaskTemplate, Foo: ['x'] },
    };
    const id = await create({ Name: 'extra', ...extra });

    const { Spec, Version } = await service(id);
    assert.equal(JSON.stringify(Spec).includes('Foo'), false);
    const body = { Name: 'extra', Mode: none, ...extra };
    assert.equal((await update(id, `version=${Version.Index}`, body))[0], 200);
    await leader.engine.delete(`/services/${id}`);
  });

  test('a service without a name gets one; bad ones are refused as by dockerd', async () => {
    const { Spec } = await service(await create({}));
    assert.match(Spec.Name, /^[a-z]+_[a-z]+$/);
    for (const [body, status, message] of [
      [
        { Name: 'web' },
        409,
        /AlreadyExists desc = name conflicts with an existing object: service web already exists$/,
      ],
      [{ Name: 'a.b' }, 400, /name must be valid as a DNS name component$/],
      [{ Name: 'x', Networks: [{ Target: 'none' }] }, 403, /^The network none cannot be used with services\./],
      [{ Name: 'x', Networks: [{ Target: 'nope' }] }, 500, /^network nope not found$/],
      [
        { Name: 'x', TaskTemplate: { ...TaskTemplate, Placement: { Constraints: ['x'] } } },
        500,
        /expected one operator/,
      ],
      [
        { Name: 'x', TaskTemplate: { ContainerSpec: { Image: 'busybox', Configs: [{ Runtime: {} }] } } },
        501,
        /^a config with a Runtime is not implemented/,
      ],
      [{ Name: 'x', TaskTemplate: { ...TaskTemplate, RestartPolicy: { Delay: 1e25 } } }, 400, /Delay/],
      [{ Name: 'x', UpdateConfig: { Monitor: 1e300 } }, 400, /Monitor/],
      [{ Name: 'x', Mode: { Replicated: { Replicas: 1e25 } } }, 400, /Replicas/],
      [{ Name: 'x', Mode: { Replicated: { Replicas: 100_001 } } }, 400, /a service has 100000 replicas at most$/],
      [
        { Name: 'x', EndpointSpec: { Ports: [{ TargetPort: 80, PublishMode: 'odd' }] } },
        400,
        /^invalid publish mode: "odd"$/,
      ],
    ] as const) {
      const answer = await leader.engine.post<Refusal>('/services/create', { TaskTemplate, Mode: none, ...body });
      assert.equal(answer.status, status, JSON.stringify(body));
      assert.match(answer.body.message, message);
    }
  });

  test('a manager that does not lead writes too, sees it at once, and refuses in the same words', async () => {
    const id = await create({ Name: 'forwarded' }, follower);

    assert.equal((await service('forwarded', follower)).ID, id);
    assert.equal((await service('forwarded')).ID, id);
    const twice = await follower.engine.post<Refusal>('/services/create', { Name: 'forwarded', TaskTemplate });
    assert.equal(twice.status, 409);
    const { Version } = await service('forwarded', follower);
    assert.deepEqual(await update('forwarded', `version=${Version.Index - 1}`, { Name: 'forwarded', TaskTemplate }), [
      500,
      'rpc error: code = Unknown desc = update out of sequence',
    ]);
    assert.equal((await follower.engine.delete('/services/forwarded')).status, 200);
    assert.equal((await leader.engine.get('/services/forwarded')).status, 404);
  });

  test('an update has the present version, the name and the mode, or takes the last one back', async () => {
    const id = await create({ Name: 'updated', Labels: { was: '1' } });
    const now = async (): Promise<string> => `version=${(await service(id)).Version.Index}`;
    const body = { Name: 'updated', Labels: { is: '2' }, TaskTemplate, Mode: none };
    const failed = 'rpc error: code =';

    assert.deepEqual(await update(id, 'version=x', body), [
      400,
      `invalid service version 'x': strconv.ParseUint: parsing "x": invalid syntax`,
    ]);
    assert.deepEqual(await update('nope', await now(), body), [404, 'service nope not found']);
    assert.deepEqual(await update(id, await now(), { ...body, Name: 'other' }), [
      501,
      `${failed} Unimplemented desc = renaming services is not supported`,
    ]);
    assert.deepEqual(await update(id, await now(), { ...body, Mode: { Global: {} } }), [
      501,
      `${failed} Unimplemented desc = service mode change is not allowed`,
    ]);
    assert.deepEqual(await update(id, `${await now()}&rollback=previous`, body), [
      400,
      `${failed} FailedPrecondition desc = service ${id} does not have a previous spec`,
    ]);
    assert.equal((await update(id, await now(), body))[0], 200);
    assert.deepEqual((await service(id)).Spec.Labels, { is: '2' });
    assert.deepEqual((await service(id)).PreviousSpec?.Labels, { was: '1' });
    assert.equal((await update(id, `${await now()}&rollback=previous`, body))[0], 200);
    assert.deepEqual((await service(id)).Spec.Labels, { was: '1' });
  });

  test('a task without a node names the reason, and gets a node that fits later', async () => {
    await create({
      Name: 'picky',
      Mode: { Replicated: { Replicas: 2 } },
      TaskTemplate: { ...TaskTemplate, Placement: { Constraints: ['node.labels.disk==fast'] } },
    });

    const waiting = await eventually('the reason', async () => {
      const found = await tasks({ service: ['picky'] });
      return found.length === 2 && found.every(({ Status }) => Status.Err) ? found : undefined;
    });
    for (const { ID, Status, DesiredState, NodeID } of waiting) {
      assert.equal(Status.Err, 'no suitable node (scheduling constraints not satisfied on 3 nodes)');
      assert.deepEqual([Status.State, DesiredState, NodeID], ['pending', 'running', undefined]);
      assert.equal((await leader.engine.get<TaskWire>(`/tasks/${ID.slice(0, 9)}`)).body.ID, ID);
    }
    await leader.updateNode('host3', { Labels: { disk: 'fast' } });
    const { ID: node } = await leader.node('host3');
    await eventually('a node for both', async () => {
      const found = await tasks({ service: ['picky'], node: [node] });
      return found.length >= 2 ? true : undefined;
    });
  });

  test('tasks are listed by filters, and unknown ones refused', async () => {
    await create({
      Name: 'listed',
      Labels: { kind: 'x' },
      Mode: { Replicated: { Replicas: 1 } },
      TaskTemplate: { ...TaskTemplate, Placement: nowhere() },
    });
    const [task] = await eventually('its task', async () => {
      const found = await tasks({ service: ['listed'] });
      return found.length === 1 ? found : undefined;
    });

    for (const [filters, count] of [
      [{ id: [task!.ID] }, 1],
      [{ name: ['listed.1'] }, 1],
      [{ name: ['listed.2'] }, 0],
      [{ label: ['kind=x'] }, 1],
      [{ service: ['listed'], 'desired-state': ['RUNNING'] }, 1],
      [{ service: ['listed'], 'desired-state': ['shutdown'] }, 0],
      [{ service: ['listed'], 'desired-state': ['accepted'] }, 0],
    ] as const) {
      assert.equal((await tasks(filters)).length, count, JSON.stringify(filters));
    }
    for (const [filters, status, message] of [
      [{ odd: ['1'] }, 400, "Invalid filter 'odd'"],
      [{ 'desired-state': ['odd'] }, 500, "Invalid desired-state filter: 'odd'"],
      [{ node: ['nope'] }, 404, 'node nope not found'],
      [{ service: ['nope'] }, 404, 'service nope not found'],
    ] as const) {
      const answer = await leader.engine.get<Refusal>(`/tasks?filters=${encodeURIComponent(JSON.stringify(filters))}`);
      assert.deepEqual([answer.status, answer.body.message], [status, message]);
    }
    assert.equal((await leader.engine.get('/tasks/nope')).status, 404);
  });

  test('credentials of a registry are in no answer', async () => {
    const secret = Buffer.from(JSON.stringify({ username: 'me', password: 'hidden' })).toString('base64');
    const made = await leader.engine.post<{ ID: string }>(
      '/services/create',
      { Name: 'private', TaskTemplate: { ...TaskTemplate, Placement: nowhere() } },
      { headers: { 'X-Registry-Auth': secret } },
    );
    await eventually('its task', async () => ((await tasks({ service: ['private'] })).length === 1 ? true : undefined));

    for (const path of ['/services', `/services/${made.body.ID}`, '/tasks', '/swarm', '/info', '/nodes']) {
      const { raw } = await leader.engine.get(path);
      assert.ok(!raw.toString().includes(secret), path);
    }
  });

  test('a removed service takes its tasks along', async () => {
    for (const { ID } of (await leader.engine.get<ServiceWire[]>('/services')).body) {
      assert.equal((await leader.engine.delete(`/services/${ID}`)).status, 200);
    }

    assert.deepEqual(await names({}), []);
    await eventually('no task without a node', async () => {
      return (await tasks({})).every(({ NodeID }) => NodeID !== undefined) ? true : undefined;
    });
  });
});

function nowhere(): { Constraints: string[] } {
  return { Constraints: ['node.id==nowhere'] };
}

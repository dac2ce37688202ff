import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services, type TaskWire } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Ports = { TargetPort: number; PublishedPort?: number; PublishMode?: string; Protocol?: string }[];
type WithPorts = TaskWire & { Status: { PortStatus?: { Ports: Ports } } };

const Command = ['sh', '-c', 'mkdir /www; hostname > /www/index.html; exec httpd -f -p 80 -h /www'];
const SERVER = { Command, StopGracePeriod: 0 };

suite('ports of services in host mode', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two]: ClusterHost[] = [];
  let services: Services;
  before(async () => {
    all = await ClusterHosts.start(2, { image: true });
    [one, two] = all.hosts;
    await one!.init();
    await two!.join(one!, 'Worker');
    services = new Services(one!);
  });
  after(async () => await all[Symbol.asyncDispose]());

  const hostPort = (over: object = {}): object => {
    return { Ports: [{ TargetPort: 80, PublishedPort: 8080, PublishMode: 'host', ...over }] };
  };
  const page = async (host: ClusterHost, port: number): Promise<string> => {
    return (await one!.engine.onHost(['curl', '-sf', '-m', '10', `http://${host.ip}:${port}/`])).trim();
  };
  const hostOf = async ({ NodeID }: TaskWire): Promise<ClusterHost> => {
    return (await one!.info()).NodeID === NodeID ? one! : two!;
  };
  const containerOf = ({ Status }: TaskWire): string => Status.ContainerStatus!.ContainerID.slice(0, 12);

  test('each node leads to its own task, and a third one waits and says why', async () => {
    await services.create('web', SERVER, { Mode: { Replicated: { Replicas: 3 } }, EndpointSpec: hostPort() });
    const tasks = await services.running('web', 2);
    for (const task of tasks) {
      const host = await hostOf(task);
      await eventually('its page', async () => ((await page(host, 8080)) === containerOf(task) ? true : undefined));
    }

    const waiting = await services.task('web', ({ Status }) => Status.State === 'pending' && Status.Err !== undefined);

    assert.equal(waiting.Status.Err, 'no suitable node (host-mode port already in use on 2 nodes)');
    const { body } = await one!.engine.get<WithPorts>(`/tasks/${tasks[0]!.ID}`);
    assert.deepEqual(body.Status.PortStatus?.Ports, [
      { Protocol: 'tcp', TargetPort: 80, PublishedPort: 8080, PublishMode: 'host' },
    ]);
    const service = await one!.engine.get<{ Endpoint: { Ports: Ports; VirtualIPs?: object[] } }>('/services/web');
    assert.deepEqual(service.body.Endpoint.Ports, body.Status.PortStatus?.Ports);
    assert.equal(service.body.Endpoint.VirtualIPs, undefined);
  });

  test('no other service publishes the port on all nodes, and none on all nodes is published again', async () => {
    const make = async (Name: string, EndpointSpec: object): Promise<[number, string]> => {
      const TaskTemplate = { ContainerSpec: { Image: 'busybox' } };
      const body = { Name, TaskTemplate, EndpointSpec, Mode: { Replicated: { Replicas: 0 } } };
      const answer = await one!.engine.post<{ message?: string }>('/services/create', body);
      return [answer.status, answer.body.message ?? ''];
    };
    const inTheWay = await make('late', hostPort({ PublishMode: 'ingress' }));
    const same = await make('same', hostPort());
    const spread = await make('spread', hostPort({ PublishMode: 'ingress', PublishedPort: 8081 }));
    const over = await make('over', hostPort({ PublishedPort: 8081 }));

    assert.match(inTheWay[1], /port '8080' is already in use by service 'web' \(\w+\) as a host-published port$/);
    assert.match(over[1], /port '8081' is already in use by service 'spread' \(\w+\) as an ingress port$/);
    assert.deepEqual([inTheWay[0], same[0], spread[0], over[0]], [400, 201, 201, 400]);
    for (const name of ['same', 'spread']) await services.remove(name);
  });

  test('an update waits for the port that the old task has', async () => {
    await services.update('web', (spec) => ({ ...spec, Mode: { Replicated: { Replicas: 2 } } }));
    const before = new Set((await services.running('web', 2)).map(({ ID }) => ID));
    await services.update('web', (spec) => ({
      ...spec,
      TaskTemplate: { ...(spec.TaskTemplate as object), ForceUpdate: 1 },
    }));
    await eventually('the new tasks', async () => {
      const now = await services.running('web', 2);
      return now.every(({ ID }) => !before.has(ID)) ? true : undefined;
    });
    await services.remove('web');
  });

  test('by names that lead to tasks, with a port that each node chooses', async () => {
    const EndpointSpec = { Mode: 'dnsrr', ...hostPort({ PublishedPort: 0 }) };
    await services.create('any', SERVER, { Mode: { Replicated: { Replicas: 3 } }, EndpointSpec });

    for (const { ID } of await services.running('any', 3)) {
      const { body } = await one!.engine.get<WithPorts>(`/tasks/${ID}`);
      const port = body.Status.PortStatus!.Ports[0]!.PublishedPort!;
      const host = await hostOf(body);
      await eventually('its page', async () => ((await page(host, port)) === containerOf(body) ? true : undefined));
    }
    await services.remove('any');
  });
});

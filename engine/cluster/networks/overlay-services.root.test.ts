import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Container = { Id: string; Names: string[]; State: string };
type Task = {
  ID: string;
  Status: { State: string; Err?: string; ContainerStatus?: { ContainerID: string } };
  NodeID: string;
};

/** Serves its host name as a web page on port 80. */
const SERVER = ['sh', '-c', 'mkdir /www; hostname > /www/index.html; exec httpd -f -p 80 -h /www'];

suite('networks of a cluster, with services in them', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(3, { image: true });
    [one, two, three] = all.hosts;
    await one!.init({ Spec: { Dispatcher: { HeartbeatPeriod: 60e9 } } }); // daemons may start slowly: no node is to be down
    await two!.join(one!, 'Worker');
    await three!.join(one!, 'Worker');
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function serves(name: string, replicas: number, over: object = {}, container: object = {}): Promise<void> {
    const answer = await one!.engine.post('/services/create', {
      Name: name,
      TaskTemplate: { ContainerSpec: { Image: 'busybox', Command: SERVER, StopGracePeriod: 0, ...container } },
      Mode: { Replicated: { Replicas: replicas } },
      ...over,
    });
    assert.equal(answer.status, 201, answer.raw.toString());
    await eventually(`${replicas} tasks of ${name} run`, async () => {
      const running = (await tasksOf(name)).filter(({ Status }) => Status.State === 'running');
      return running.length === replicas ? true : undefined;
    });
  }

  async function tasksOf(service: string): Promise<Task[]> {
    const filters = encodeURIComponent(JSON.stringify({ service: [service], 'desired-state': ['running'] }));
    return (await one!.engine.get<Task[]>(`/tasks?filters=${filters}`)).body;
  }

  async function containersOn(host: ClusterHost, service: string): Promise<Container[]> {
    const { body } = await host.engine.get<Container[]>('/containers/json');
    return body.filter(({ Names }) => Names[0]!.startsWith(`/${service}.`));
  }

  async function hostOf(service: string): Promise<{ host: ClusterHost; id: string }> {
    for (const host of all.hosts) {
      const [container] = await containersOn(host, service);
      if (container !== undefined) return { host, id: container.Id };
    }
    throw new Error(`${service} runs nowhere`);
  }

  /** The output of a command in the container of a service. */
  async function said(service: string, ...Cmd: string[]): Promise<string> {
    const { host, id } = await hostOf(service);
    const { body } = await host.engine.post<{ Id: string }>(`/containers/${id}/exec`, {
      Cmd,
      AttachStdout: true,
      AttachStderr: true,
      Tty: true,
    });
    return (await host.engine.post(`/exec/${body.Id}/start`, { Tty: true })).raw.toString().replaceAll('\r', '');
  }

  /** The pages that a client in a container gets in many connections. */
  async function pages(from: string, name: string, count = 30): Promise<Set<string>> {
    const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc ${name} 80 | tail -n 1`;
    const lines = await said(from, 'sh', '-c', `for n in $(seq ${count}); do ${ask} || echo failed; done`);
    return new Set(lines.trim().split('\n'));
  }

  async function namesOf(service: string): Promise<Set<string>> {
    const ids = (await tasksOf(service)).map(({ Status }) => Status.ContainerStatus!.ContainerID.slice(0, 12));
    return new Set(ids);
  }

  const onHost = async (host: ClusterHost, port: number, count = 12): Promise<Set<string>> => {
    const script = `for n in $(seq ${count}); do curl -s -m 30 http://${host.ip}:${port}/ || echo failed; done`;
    return new Set((await host.engine.onHost(['sh', '-c', script])).trim().split('\n'));
  };

  test('a manager makes networks as dockerd shows them; others do not', async () => {
    const body = { Name: 'front', Driver: 'overlay', Labels: { a: 'b' }, Options: { x: 'y' } };
    const made = await one!.engine.post<{ Id: string; Warning: string }>('/networks/create', body);
    assert.equal(made.status, 201);
    const { body: seen } = await one!.engine.get<NetworkWire>('/networks/front');

    const { Created, ...rest } = seen;
    assert.match(Created, /^\d{4}-/);
    assert.deepEqual(rest, {
      Name: 'front',
      Id: made.body.Id,
      Scope: 'swarm',
      Driver: 'overlay',
      EnableIPv6: false,
      IPAM: { Driver: 'default', Options: null, Config: [{ Subnet: '10.0.0.0/24', Gateway: '10.0.0.1' }] },
      Internal: false,
      Attachable: false,
      Ingress: false,
      ConfigFrom: { Network: '' },
      ConfigOnly: false,
      Containers: {},
      Options: { 'com.docker.network.driver.overlay.vxlanid_list': '4097', x: 'y' },
      Labels: { a: 'b' },
    });
    const list = async (filters: object): Promise<string[]> => {
      const query = encodeURIComponent(JSON.stringify(filters));
      const answer = await one!.engine.get<NetworkWire[]>(`/networks?filters=${query}`);
      return answer.body.map(({ Name }) => Name).toSorted();
    };
    assert.deepEqual(await list({ scope: ['swarm'] }), ['front', 'ingress']);
    assert.deepEqual(await list({ driver: ['overlay'], label: ['a=b'] }), ['front']);
    assert.deepEqual(await list({ type: ['builtin'] }), ['bridge', 'host', 'none']);
    const refused: [ClusterHost, object, number, RegExp][] = [
      [one!, body, 409, /^network with name front already exists$/],
      [one!, { Name: 'front', Driver: 'bridge' }, 409, /^network with name front already exists$/],
      [one!, { Name: 'not good!', Driver: 'overlay' }, 400, /name must be valid as a DNS name component$/],
      [one!, { Name: 'a', Driver: 'overlay', Options: { encrypted: '' } }, 501, /encrypted/],
      [one!, { Name: 'a', Driver: 'overlay', EnableIPv6: true }, 501, /EnableIPv6/],
      [two!, { Name: 'a', Driver: 'overlay' }, 406, /^This node is not a swarm manager\. Worker/],
    ];
    for (const [host, wanted, status, message] of refused) {
      const answer = await host.engine.post<{ message: string }>('/networks/create', wanted);
      assert.equal(answer.status, status, JSON.stringify(wanted));
      assert.match(answer.body.message, message);
    }
    assert.equal((await two!.engine.get('/networks/front')).status, 404);
  });

  test('only tasks get into it', async () => {
    const id = await one!.engine.create(['true'], { HostConfig: { NetworkMode: 'front' } });
    const start = await one!.engine.post<{ message: string }>(`/containers/${id}/start`);
    const other = await one!.engine.run(['sleep', '100000']);
    const connect = await one!.engine.post<{ message: string }>('/networks/front/connect', { Container: other });

    const refusal = /network front not manually attachable$/;
    assert.deepEqual([start.status, connect.status], [403, 403]);
    assert.match(start.body.message, refusal);
    assert.match(connect.body.message, refusal);
    for (const ref of [id, other]) await one!.engine.delete(`/containers/${ref}?force=1`);
  });

  test("a service's name leads to all its tasks on all nodes in turn", async () => {
    const Networks = [{ Target: 'front' }];
    await serves('web', 3, { Networks });
    await serves('asking', 1, { Networks });

    assert.deepEqual(await pages('asking', 'web'), await namesOf('web'));
  });

  test('a task knows only its networks, and gets out of them', async () => {
    const { host, id } = await hostOf('asking');
    type Inspect = { NetworkSettings: { Networks: Record<string, { IPAddress: string; Gateway: string }> } };
    const { body } = await host.engine.get<Inspect>(`/containers/${id}/json`);
    const { Networks } = body.NetworkSettings;

    assert.deepEqual(Object.keys(Networks), ['front']);
    assert.match(Networks.front!.IPAddress, /^10\.0\.0\./);
    assert.match(await said('asking', 'ping', '-c', '1', '-W', '30', host.ip), /1 packets received/);
  });

  test('a published port is answered on each node, also where no task runs, by all tasks in turn', async () => {
    const EndpointSpec = { Ports: [{ Protocol: 'tcp', TargetPort: 80, PublishedPort: 8080 }] };
    await serves('shown', 2, { EndpointSpec });
    const names = await namesOf('shown');

    for (const host of all.hosts) {
      await eventually(`port 8080 of ${host.name}`, async () => {
        const seen = await onHost(host, 8080);
        return seen.size === 2 && [...seen].every((name) => names.has(name)) ? true : undefined;
      });
    }
    const { body } = await three!.engine.get<NetworkWire>('/networks/ingress');
    assert.equal(body.Containers['ingress-sbox']?.Name, 'ingress-endpoint');
    assert.equal(body.Ingress, true);
  });

  test('all of it goes on while the daemons are dead, and with the next ones', async () => {
    const [shown, web] = [await namesOf('shown'), await namesOf('web')];
    for (const host of all.hosts) await host.engine.kill();
    for (const host of all.hosts) assert.deepEqual(await onHost(host, 8080, 30), shown);

    for (const host of all.hosts) await host.engine.startAgain();
    assert.deepEqual(await pages('asking', 'web', 40), web);
    await one!.node('host3', ({ Status }) => Status.State === 'ready');
    for (const host of all.hosts) assert.deepEqual(await onHost(host, 8080, 30), shown);
  });

  test('ended services leave nothing: ports, names, namespaces', async () => {
    for (const name of ['shown', 'web', 'asking'])
      assert.equal((await one!.engine.delete(`/services/${name}`)).status, 200);

    for (const host of all.hosts) {
      await eventually(`port 8080 of ${host.name} is free`, async () => {
        try {
          await host.engine.onHost(['curl', '-s', '-m', '2', `http://${host.ip}:8080/`]);
          return undefined;
        } catch {
          return true;
        }
      });
      await eventually(`the networks of ${host.name} end`, async () => {
        const folder = join(host.engine.directory, 'exec/overlay');
        return (existsSync(folder) ? readdirSync(folder) : []).length === 0 ? true : undefined;
      });
    }
    assert.equal((await one!.engine.delete('/networks/front')).status, 204);
    assert.equal((await one!.engine.get('/networks/front')).status, 404);
  });

  test("a client's own network of published ports takes the place of the removed one", async () => {
    assert.equal((await one!.engine.delete('/networks/ingress')).status, 204);
    const body = { Name: 'entry', Driver: 'overlay', Ingress: true, IPAM: { Config: [{ Subnet: '10.99.0.0/24' }] } };
    assert.equal((await one!.engine.post('/networks/create', body)).status, 201);
    const inside = {
      Name: 'inside',
      TaskTemplate: { ContainerSpec: { Image: 'busybox' } },
      Networks: [{ Target: 'entry' }],
    };
    const attached = await one!.engine.post<{ message: string }>('/services/create', inside);
    assert.equal(attached.status, 400);
    assert.match(attached.body.message, /Service cannot be explicitly attached to the ingress network "entry"$/);
    const EndpointSpec = { Ports: [{ Protocol: 'tcp', TargetPort: 80, PublishedPort: 8081 }] };
    await serves('entered', 2, { EndpointSpec });
    const names = await namesOf('entered');

    for (const host of all.hosts) {
      await eventually(`port 8081 of ${host.name}`, async () => {
        const seen = await onHost(host, 8081);
        return seen.size === 2 && [...seen].every((name) => names.has(name)) ? true : undefined;
      });
    }
    const { body: seen } = await three!.engine.get<NetworkWire>('/networks/entry');
    assert.match(seen.Containers['ingress-sbox']!.IPv4Address, /^10\.99\.0\.\d+\/24$/);
    assert.equal((await one!.engine.delete('/services/entered')).status, 200);
  });
});

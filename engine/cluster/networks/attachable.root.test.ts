import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const SLEEP = ['sleep', '100000'];

suite('containers of no service in attachable networks', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(2, { image: true });
    [one, two] = all.hosts;
    await one!.init();
    await two!.join(one!, 'Worker');
    const IPAM = {
      Config: [{ Subnet: '10.50.0.0/29', AuxiliaryAddresses: { printer: '10.50.0.2' } }],
    };
    for (const body of [
      { Name: 'open', Driver: 'overlay', Attachable: true, IPAM },
      { Name: 'closed', Driver: 'overlay' },
    ]) {
      assert.equal((await one!.engine.post('/networks/create', body)).status, 201);
    }
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function said(host: ClusterHost, ref: string, ...Cmd: string[]): Promise<string> {
    const { body } = await host.engine.post<{ Id: string }>(`/containers/${ref}/exec`, {
      Cmd,
      AttachStdout: true,
      AttachStderr: true,
      Tty: true,
    });
    return (await host.engine.post(`/exec/${body.Id}/start`, { Tty: true })).raw.toString().replaceAll('\r', '');
  }

  async function addressOf(host: ClusterHost, ref: string): Promise<string> {
    const { body } = await host.engine.get<Inspect>(`/containers/${ref}/json`);
    return body.NetworkSettings.Networks['open']?.IPAddress ?? '';
  }

  const inOpen = (Aliases: string[] = [], IPv4Address?: string): Record<string, unknown> => ({
    HostConfig: { NetworkMode: 'open' },
    NetworkingConfig: {
      EndpointsConfig: { open: { Aliases, ...(IPv4Address !== undefined && { IPAMConfig: { IPv4Address } }) } },
    },
  });
  const reaches = async (host: ClusterHost, from: string, name: string): Promise<void> => {
    await eventually(`${name} from ${from}`, async () => {
      const answer = await said(host, from, 'ping', '-c', '1', '-W', '5', name);
      if (!answer.includes('1 packets received')) throw new Error(answer);
      return true;
    });
  };

  const nameGoes = async (name: string): Promise<void> => {
    await eventually(`the name ${name} is gone`, async () => {
      return (await said(one!, 'a', 'nslookup', name)).includes("can't resolve") ||
        (await said(one!, 'a', 'ping', '-c', '1', name)).includes('bad address')
        ? true
        : undefined;
    });
  };

  test('the network is shown as attachable, with the addresses that nobody gets', async () => {
    const { body } = await one!.engine.get<NetworkWire>('/networks/open');

    assert.equal(body.Attachable, true);
    assert.deepEqual(body.IPAM.Config, [
      { Subnet: '10.50.0.0/29', Gateway: '10.50.0.1', AuxiliaryAddresses: { printer: '10.50.0.2' } },
    ]);
  });

  test('containers on a manager and a worker reach each other by name, alias and short id, and get out', async () => {
    const a = await one!.engine.run(SLEEP, inOpen(['first']), 'a');
    await two!.engine.run(SLEEP, inOpen(['second'], '10.50.0.5'), 'b');

    assert.deepEqual([await addressOf(one!, 'a'), await addressOf(two!, 'b')], ['10.50.0.3', '10.50.0.5']);
    for (const name of ['b', 'second', '10.50.0.5']) await reaches(one!, 'a', name);
    for (const name of ['a', 'first', a.slice(0, 12)]) await reaches(two!, 'b', name);
    await reaches(two!, 'b', one!.ip);
    const { body } = await two!.engine.get<NetworkWire>('/networks/open');
    assert.deepEqual(
      Object.values(body.Containers).map(({ Name }) => Name),
      ['b'],
    );
  });

  test('they reach services there, and tasks reach them', async () => {
    const services = new Services(one!);
    const Command = ['sh', '-c', 'mkdir /www; echo served > /www/index.html; exec httpd -f -p 80 -h /www'];
    await services.create('web', { Command, StopGracePeriod: 0 }, { Networks: [{ Target: 'open', Aliases: ['www'] }] });
    const [task] = await services.running('web', 1);
    for (const [host, from] of [
      [one!, 'a'],
      [two!, 'b'],
    ] as const) {
      for (const name of ['web', 'www', 'tasks.web']) {
        await eventually(`${name} from ${from}`, async () => {
          const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc ${name} 80 | tail -n 1`;
          const page = await said(host, from, 'sh', '-c', ask);
          if (page !== 'served\n') throw new Error(page);
          return true;
        });
      }
    }
    const { ID } = await one!.node('host1');
    await reaches(task!.NodeID === ID ? one! : two!, task!.Status.ContainerStatus!.ContainerID, 'second');
    await services.remove('web');
  });

  test('the name of a service without a virtual address leads to its tasks, and to none that is gone', async () => {
    const services = new Services(one!);
    await services.create(
      'many',
      { StopGracePeriod: 0 },
      {
        Networks: [{ Target: 'open', Aliases: ['lot'] }],
        EndpointSpec: { Mode: 'dnsrr' },
        Mode: { Replicated: { Replicas: 2 } },
      },
    );
    await services.running('many', 2);
    const found = async (name: string): Promise<string[]> => {
      const answer = await said(one!, 'a', 'nslookup', name);
      return answer
        .split('\n')
        .flatMap((line) => /^Address(?: \d+)?: (10\.50\.0\.\d+)$/.exec(line)?.[1] ?? [])
        .toSorted();
    };
    const becomes = async (name: string, addresses: string[]): Promise<void> => {
      await eventually(`${name}: ${String(addresses)}`, async () => {
        const now = await found(name);
        if (String(now) !== String(addresses)) throw new Error(`${name} leads to ${String(now)}`);
        return true;
      });
    };
    for (const name of ['many', 'lot', 'tasks.many']) await becomes(name, ['10.50.0.4', '10.50.0.6']);

    await services.update('many', (spec) => ({ ...spec, Mode: { Replicated: { Replicas: 1 } } }));
    const [left] = await services.running('many', 1);
    type Addressed = { NetworksAttachments: { Addresses: string[] }[] };
    const { body } = await one!.engine.get<Addressed>(`/tasks/${left!.ID}`);
    for (const name of ['many', 'tasks.many'])
      await becomes(name, [body.NetworksAttachments[0]!.Addresses[0]!.split('/')[0]!]);
    await services.remove('many');
    await becomes('many', []);
    await eventually('the addresses of all tasks are free', async () =>
      (await one!.engine.get<unknown[]>('/tasks')).body.length === 0 ? true : undefined,
    );
  });

  test('one that runs is connected and disconnected, and its names come and go everywhere', async () => {
    await two!.engine.run(SLEEP, {}, 'late');
    const connect = { Container: 'late', EndpointConfig: { Aliases: ['later'] } };
    const answer = await two!.engine.post('/networks/open/connect', connect);
    assert.equal(answer.status, 200, answer.raw.toString());
    await reaches(one!, 'a', 'later');
    await reaches(two!, 'late', 'first');

    assert.equal((await two!.engine.post('/networks/open/disconnect', { Container: 'late' })).status, 200);
    await nameGoes('later');
    await two!.engine.delete('/containers/late?force=1');
  });

  test('one that does not run is connected at its start, and its new name counts everywhere', async () => {
    await two!.engine.create(SLEEP, {}, 'resting');
    assert.equal((await two!.engine.post('/networks/open/connect', { Container: 'resting' })).status, 200);
    assert.equal((await two!.engine.post('/containers/resting/start')).status, 204);
    await reaches(one!, 'a', 'resting');

    assert.equal((await two!.engine.post('/containers/resting/rename?name=awake')).status, 204);
    await reaches(one!, 'a', 'awake');
    await nameGoes('resting');
    await two!.engine.delete('/containers/awake?force=1');
  });

  test('a manager refuses to connect one that does not run with a network that lets nobody in', async () => {
    const Container = await one!.engine.create(SLEEP, {}, 'kept-out');
    const answer = await one!.engine.post<{ message: string }>('/networks/closed/connect', { Container });

    assert.equal(answer.status, 403, answer.raw.toString());
    assert.match(answer.body.message, /^Could not attach to network closed: .*network closed not manually attachable$/);
    assert.equal((await one!.engine.post(`/containers/${Container}/start`)).status, 204);
    await one!.engine.delete(`/containers/${Container}?force=1`);
  });

  test('a refusal has its reason, in dockerd words, and keeps no address', async () => {
    const rows: [string, string, number, RegExp][] = [
      ['closed', '', 403, /^Could not attach to network closed: .*PermissionDenied desc = network closed not manually/],
      ['nowhere', '', 404, /^(?:Could not attach to )?network nowhere/],
      ['open', '10.50.0.5', 500, /^Could not attach to network .*: Address already in use$/],
    ];
    for (const [network, ip, status, message] of rows) {
      const settings = { IPAMConfig: ip === '' ? null : { IPv4Address: ip } };
      const over = {
        HostConfig: { NetworkMode: network },
        NetworkingConfig: { EndpointsConfig: { [network]: settings } },
      };
      const id = await two!.engine.create(['true'], over);
      const start = await two!.engine.post<{ message: string }>(`/containers/${id}/start`);
      assert.equal(start.status, status, start.raw.toString());
      assert.match(start.body.message, message);
      await two!.engine.delete(`/containers/${id}`);
    }
    const outside = { open: { IPAMConfig: { IPv4Address: '10.9.9.9' } } };
    const body = { Image: 'busybox', NetworkingConfig: { EndpointsConfig: outside } };
    const created = await two!.engine.post<{ message: string }>('/containers/create', body);
    assert.equal(created.status, 400);
    assert.equal(created.body.message, 'no configured subnet or ip-range contain the IP address 10.9.9.9');
    // 10.50.0.4 and 10.50.0.6 are free: neither refusal has taken one.
    for (const name of ['c', 'd']) await one!.engine.run(SLEEP, inOpen(), name);
    const full = await two!.engine.create(['true'], inOpen());
    const start = await two!.engine.post<{ message: string }>(`/containers/${full}/start`);
    assert.match(start.body.message, /no available IPv4 addresses on this network's address pools: 10\.50\.0\.0\/29/);
    await two!.engine.delete(`/containers/${full}`);
    assert.equal((await one!.engine.delete('/networks/open')).status, 400);
    for (const name of ['c', 'd']) await one!.engine.delete(`/containers/${name}?force=1`);
  });

  test('they go on over kills of both daemons; one that ended meanwhile gives its address back', async () => {
    await two!.engine.run(SLEEP, inOpen(), 'brief');
    const { State } = (await two!.engine.get<Inspect>('/containers/brief/json')).body;
    const address = await addressOf(two!, 'brief');
    await two!.engine.kill();
    await one!.engine.kill();
    process.kill(State.Pid, 'SIGKILL');
    for (const host of all.hosts) await host.engine.startAgain();

    await two!.engine.delete('/containers/brief?force=1');
    await one!.node('host2', ({ Status }) => Status.State === 'ready');
    await reaches(one!, 'a', 'b');
    await eventually('the address is free', async () => {
      const id = await one!.engine.create(['true'], inOpen([], address));
      const { status } = await one!.engine.post(`/containers/${id}/start`);
      await one!.engine.delete(`/containers/${id}?force=1`);
      return status === 204 ? true : undefined;
    });
  });

  test('ended containers and networks leave nothing', async () => {
    await two!.engine.run(SLEEP, inOpen(), 'stays');
    for (const [host, name] of [
      [one!, 'a'],
      [two!, 'b'],
    ] as const) {
      await host.engine.delete(`/containers/${name}?force=1`);
    }
    assert.equal((await one!.engine.delete('/networks/open')).status, 400);
    await two!.engine.delete('/containers/stays?force=1');
    await eventually('the network is removed', async () => {
      const { status } = await one!.engine.delete('/networks/open');
      return status === 204 ? true : undefined;
    });
  });

  test('both nodes leave by force amid tasks in networks, and nothing of them stays', async () => {
    const services = new Services(one!);
    const more = {
      Networks: [{ Target: 'closed' }],
      Mode: { Global: {} },
      EndpointSpec: { Ports: [{ TargetPort: 80, PublishedPort: 8080 }] },
    };
    await services.create('web', { StopGracePeriod: 1e9 }, more);
    await services.running('web', 2);
    await Promise.all(
      all.hosts.map(async ({ engine }) => {
        assert.equal((await engine.post('/swarm/leave?force=1')).status, 200);
      }),
    );

    for (const { engine, name } of all.hosts) {
      const inFolder = (line: string): boolean => line.includes(`${engine.directory}/`);
      await eventually(`nothing is left on ${name}`, async () => {
        const { body: containers } = await engine.get<unknown[]>('/containers/json?all=1');
        const { body: networks } = await engine.get<NetworkWire[]>('/networks');
        const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter(inFolder);
        const shims = spawnSync('pgrep', ['-af', 'gantry-shim'], { encoding: 'utf8' }).stdout.split('\n');
        const left = {
          containers,
          networks: networks.filter(({ Driver }) => Driver === 'overlay').map(({ Name }) => Name),
          mounts: mounts.filter((line) => /exec\/overlay|merged|\/shm/.test(line)),
          processes: shims.filter(inFolder),
        };
        if (Object.values(left).some(({ length }) => length > 0)) throw new Error(JSON.stringify(left));
        return true;
      });
    }
  });
});

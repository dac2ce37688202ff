import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
type Side = Readonly<{ api: Api; pid: () => number; outside: ChildProcess; isOurs: boolean }>;
type Message = { message: string };

suite('networks of ipvlan, as with dockerd', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  let sides: readonly [Side, Side];

  before(async () => {
    execFileSync('modprobe', ['-a', 'ipvlan', 'macvlan', 'dummy']);
    engine = await TestEngine.start();
    dockerd = await Dockerd.start();
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
    sides = [
      { api: engine, pid: () => engine.pid, outside: await outside(), isOurs: true },
      { api: dockerd.api, pid: () => dockerd.pid, outside: await outside(), isOurs: false },
    ];
    for (const { pid, outside } of sides) {
      const peer = ['peer', 'name', 'eth0', 'netns', String(outside.pid)];
      await within(pid(), 'ip', 'link', 'add', 'out0', 'type', 'veth', ...peer);
      await within(pid(), 'ip', 'address', 'add', '10.39.0.2/24', 'dev', 'out0');
      await within(pid(), 'ip', 'link', 'set', 'out0', 'up');
      await within(pid(), 'ip', 'link', 'add', 'spare0', 'type', 'dummy');
      for (const words of [
        'link set eth0 up',
        'address add 10.39.0.1/24 dev eth0',
        'address add 10.40.0.1/24 dev eth0',
        'route add 10.41.0.0/24 via 10.39.0.2',
      ]) {
        await within(outside.pid!, 'ip', ...words.split(' '));
      }
    }
  });
  after(async () => {
    for (const { outside } of sides ?? []) outside.kill('SIGKILL');
    await dockerd?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
  });

  /** Returns the answer that both give; fails if they differ. */
  async function both<T>(work: (side: Side) => Promise<T>): Promise<T> {
    const [ours, theirs] = await Promise.all(sides.map(work));
    assert.deepEqual(ours, theirs);
    return ours!;
  }

  test('containers are at the hardware address of the parent, with addresses of their own', async () => {
    const Config = [{ Subnet: '10.40.0.0/24' }];
    assert.deepEqual(await both((side) => create(side, 'two', { parent: 'out0' }, { IPAM: { Config } })), [
      201,
      undefined,
    ]);
    const looks = await both(async (side) => {
      await runs(side, 'ca', 'two', { IPAMConfig: { IPv4Address: '10.40.0.7' } });
      await runs(side, 'cb', 'two');
      const parent = macIn(await within(side.pid(), 'ip', 'link', 'show', 'out0'));
      return {
        ...(await look(side, 'ca', 'two')),
        hasParents: macIn(await inside(side, 'ca', 'ip', 'link', 'show', 'eth0')) === parent,
        reaches: [await reaches(side, 'ca', '10.40.0.1'), await reaches(side, 'ca', '10.40.0.2')],
        // The machine itself is not reached, as with every link over another.
        isReached: await pings(side.outside.pid!, '10.40.0.7'),
      };
    });

    assert.match(looks.link, /ipvlan +mode l2/);
    assert.match(looks.routes, /^default via 10\.40\.0\.1 dev eth0/);
    assert.deepEqual(looks.place, ['10.40.0.7', 24, '10.40.0.1', '', '', '']);
    assert.deepEqual([looks.hasParents, looks.reaches, looks.isReached], [true, [true, true], true]);
  });

  test('a container that starts again at once has its address again', async () => {
    const again = await both(async (side) => {
      const found: unknown[] = [];
      for (let time = 0; time < 5; time += 1) {
        const { status } = await side.api.post('/containers/ca/restart?t=0');
        found.push(status, (await look(side, 'ca', 'two')).place, await reaches(side, 'ca', '10.40.0.1'));
      }
      return found;
    });

    assert.deepEqual(again.slice(0, 3), [204, ['10.40.0.7', 24, '10.40.0.1', '', '', ''], true]);
  });

  test('a running container is connected and disconnected, and keeps its way out', async () => {
    const moved = await both(async (side) => {
      await runs(side, 'moving', 'bridge');
      const { status } = await side.api.post('/networks/two/connect', { Container: 'moving' });
      const isThere = await reaches(side, 'moving', '10.40.0.1');
      const left = await side.api.post('/networks/two/disconnect', { Container: 'moving' });
      const gone = !(await inside(side, 'moving', 'ip', 'address')).includes('10.40.0.');
      const routes = await inside(side, 'moving', 'ip', 'route');
      await remove(side, 'moving');
      return [status, isThere, left.status, gone, routes.startsWith('default via 172')];
    });

    assert.deepEqual(moved, [200, true, 200, true, true]);
  });

  test("addresses are kept over a kill of the daemon, and free after the container's end", async () => {
    const [ours] = sides;
    await engine.kill();
    await engine.startAgain();
    await runs(ours, 'cc', 'two');

    assert.equal((await look(ours, 'cc', 'two')).place[0], '10.40.0.3');
    assert.equal(await reaches(ours, 'cb', '10.40.0.1'), true);
    await remove(ours, 'cb', 'cc');
    await runs(ours, 'cc', 'two');
    assert.equal((await look(ours, 'cc', 'two')).place[0], '10.40.0.2');
    await remove(ours, 'cc');
  });

  test('a hardware address is refused, at the start and at a connect', async () => {
    const MacAddress = '02:42:00:00:00:77';
    const said = await both(async ({ api }) => {
      const body = {
        ...{ Image: 'busybox', Cmd: ['true'], MacAddress },
        HostConfig: { NetworkMode: 'two' },
      };
      await api.post('/containers/create?name=own', body);
      const start = await api.post<Message>('/containers/own/start');
      await api.delete('/containers/own?force=1');
      return [start.status, start.body.message];
    });

    assert.deepEqual(said, [
      500,
      'failed to create endpoint own on network two: ipvlan interfaces do not support custom mac address assignment',
    ]);
  });

  test('a parent cannot have links of both kinds at the same time', async () => {
    const said = await both(async (side) => {
      const Config = [{ Subnet: '10.43.0.0/24' }];
      await create(side, 'mac', { parent: 'out0' }, { Driver: 'macvlan', IPAM: { Config } });
      await side.api.post('/containers/create?name=cm', { Image: 'busybox', HostConfig: { NetworkMode: 'mac' } });
      const start = await side.api.post<Message>('/containers/cm/start');
      await remove(side, 'cm');
      return [start.status, start.body.message, (await side.api.delete('/networks/mac')).status];
    });

    assert.deepEqual(said, [500, 'failed to create the macvlan port: device or resource busy', 204]);
  });

  test('in the mode l3 the parent routes: no gateway, the way out is the link', async () => {
    const looks = await both(async (side) => {
      await remove(side, 'ca', ...(side === sides[0] ? [] : ['cb']));
      const removed = await side.api.delete('/networks/two');
      const Config = [{ Subnet: '10.41.0.0/24' }, { Subnet: 'fd00:41::/64' }];
      const options = { parent: 'out0', ipvlan_mode: 'l3' };
      const made = await create(side, 'three', options, { EnableIPv6: true, IPAM: { Config } });
      await runs(side, 'ca', 'three');
      await runs(side, 'cb', 'three');
      const { link, routes, place } = await look(side, 'ca', 'three');
      return {
        ...{ removed: removed.status, made, link, routes, place },
        six: (await inside(side, 'ca', 'ip', '-6', 'route', 'show', 'default')).replace(/ metric.*/s, ''),
        reaches: [await reaches(side, 'ca', '10.41.0.3'), await reaches(side, 'ca', '10.39.0.1')],
        isReached: await pings(side.outside.pid!, '10.41.0.2'),
      };
    });

    assert.deepEqual([looks.removed, looks.made], [204, [201, undefined]]);
    assert.match(looks.link, /ipvlan +mode l3/);
    assert.match(looks.routes, /^default dev eth0 scope link/);
    assert.match(looks.six, /^default dev eth0/);
    assert.deepEqual(looks.place, ['10.41.0.2', 24, '', '', 'fd00:41::2', '']);
    assert.deepEqual([looks.reaches, looks.isReached], [[true, true], true]);
  });

  test('a container that joins a bridge leads out over the network that comes first', async () => {
    const [ours] = sides;
    assert.equal((await ours.api.post('/networks/bridge/connect', { Container: 'ca' })).status, 200);
    assert.match(await inside(ours, 'ca', 'ip', 'route'), /^default via 172/);

    assert.equal((await ours.api.post('/networks/bridge/disconnect', { Container: 'ca' })).status, 200);
    assert.match(await inside(ours, 'ca', 'ip', 'route'), /^default dev eth0 scope link/);
    assert.equal(await reaches(ours, 'ca', '10.39.0.1'), true);
  });

  test('without a parent there is no way out, and the link of its own goes with the network', async () => {
    const looks = await both(async (side) => {
      await remove(side, 'ca', 'cb');
      await side.api.delete('/networks/three');
      const made = await create(side, 'alone', {}, { IPAM: { Config: [{ Subnet: '10.42.0.0/24' }] } });
      const { Id } = (await side.api.get<{ Id: string }>('/networks/alone')).body;
      await runs(side, 'cc', 'alone');
      await runs(side, 'cd', 'alone');
      const own = `di-${Id.slice(0, 12)}`;
      const hasOwn = async (): Promise<boolean> => (await within(side.pid(), 'ip', '-br', 'link')).includes(own);
      const before = await hasOwn();
      const { routes, place } = await look(side, 'cc', 'alone');
      const isReached = await reaches(side, 'cc', '10.42.0.3');
      await remove(side, 'cc', 'cd');
      const removed = await side.api.delete('/networks/alone');
      for (const until = Date.now() + 60_000; (await hasOwn()) && Date.now() < until;);
      // dockerd gives it a default route over an address that nobody has.
      const leadsOut = side === sides[0] && routes.includes('default');
      return { made, before, leadsOut, place, isReached, removed: removed.status, after: await hasOwn() };
    });

    assert.deepEqual([looks.made, looks.before, looks.isReached], [[201, undefined], true, true]);
    assert.deepEqual([looks.leadsOut, looks.removed, looks.after], [false, 204, false]);
  });

  for (const options of [
    { parent: 'lo' },
    { parent: 'nolink' },
    { parent: 'spare0.5000' },
    { parent: 'spare0.x' },
    { parent: 'nolink.50' },
    { parent: 'spare0', ipvlan_mode: 'l3s' },
    { parent: 'taken0' },
  ]) {
    test(`${JSON.stringify(options)} is refused in dockerd’s words`, async () => {
      const [status] = await both(async (side) => {
        if (options.parent === 'taken0') {
          await within(side.pid(), 'ip', 'link', 'add', 'taken0', 'type', 'dummy');
          await create(side, 'taker', options, { IPAM: { Config: [{ Subnet: '10.45.0.0/24' }] } });
        }
        const [code, message] = await create(side, 'no', options, { IPAM: { Config: [{ Subnet: '10.44.0.0/24' }] } });
        return [code, message?.replace(/di-\w{12}/, 'di-<id>'), (await side.api.get('/networks/no')).status];
      });

      assert.equal(status, 500);
    });
  }
});

function macIn(shown: string): string | undefined {
  return /link\/ether (\S+)/.exec(shown)?.[1];
}

/** A machine in the network of a parent link. */
async function outside(): Promise<ChildProcess> {
  const machine = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(machine.stdout, 'data');
  return machine;
}

async function within(pid: number, ...command: string[]): Promise<string> {
  return (await execute('nsenter', ['-t', String(pid), '-n', ...command])).stdout;
}

async function create(
  { api }: Side,
  Name: string,
  Options: object,
  more: object,
): Promise<[number, string | undefined]> {
  const { status, body } = await api.post<Message>('/networks/create', { Name, Driver: 'ipvlan', Options, ...more });
  return [status, body.message];
}

async function runs({ api }: Side, name: string, NetworkMode: string, endpoint: object = {}): Promise<void> {
  const { status, raw } = await api.post(`/containers/create?name=${name}`, {
    ...{ Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { NetworkMode } },
    NetworkingConfig: { EndpointsConfig: { [NetworkMode]: endpoint } },
  });
  assert.equal(status, 201, raw.toString());
  const start = await api.post(`/containers/${name}/start`);
  assert.equal(start.status, 204, start.raw.toString());
}

/** On a slow machine dockerd gives up on a kill after ten seconds, and is asked again. */
async function remove({ api, isOurs }: Side, ...names: string[]): Promise<void> {
  const longest = isOurs ? 1 : 10;
  for (const name of names) {
    let last = await api.delete(`/containers/${name}?force=1`);
    for (let tries = 1; last.status === 500 && tries < longest; tries += 1) {
      last = await api.delete(`/containers/${name}?force=1`);
    }
    assert.ok(last.status === 204 || (!isOurs && last.status === 404), last.raw.toString());
  }
}

async function inside({ api }: Side, ref: string, ...command: string[]): Promise<string> {
  const { State } = (await api.get<Inspect>(`/containers/${ref}/json`)).body;
  return (await execute('nsenter', ['-t', String(State.Pid), '-n', ...command])).stdout;
}

/** A container's link, its routes, and its place in the network. */
async function look(
  side: Side,
  ref: string,
  network: string,
): Promise<{ link: string; routes: string; place: unknown[] }> {
  const { body } = await side.api.get<Inspect>(`/containers/${ref}/json`);
  const place = body.NetworkSettings.Networks[network]!;
  const { IPAddress, IPPrefixLen, Gateway, MacAddress, GlobalIPv6Address, IPv6Gateway } = place;
  const link = await inside(side, ref, 'ip', '-d', 'link', 'show', 'eth0');
  return {
    link: /ipvlan +mode \w+/.exec(link)?.[0] ?? link,
    routes: await inside(side, ref, 'ip', 'route'),
    place: [IPAddress, IPPrefixLen, Gateway, MacAddress, GlobalIPv6Address, IPv6Gateway],
  };
}

async function reaches({ api }: Side, from: string, ip: string): Promise<boolean> {
  return await pings((await api.get<Inspect>(`/containers/${from}/json`)).body.State.Pid, ip);
}

/** Whether one of 30 questions is answered: the first may be lost, as others know an earlier owner of the address. */
async function pings(pid: number, ip: string): Promise<boolean> {
  const script = `for n in $(seq 30); do busybox ping -c 1 -W 2 ${ip} && exit; done; exit 1`;
  return await execute('nsenter', ['-t', String(pid), '-n', 'sh', '-c', script]).then(
    () => true,
    () => false,
  );
}

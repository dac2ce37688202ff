import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { NetworkPlugin } from '@gantry/testing/plugins/network-plugin.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
type Message = { message: string };
type Asker = Pick<Api, 'get' | 'post' | 'delete'>;

const NOTHING = { endpoints: 0, networks: 0, addresses: 0, pools: 0 };

suite('networks and addresses of plugins', { concurrency: false }, () => {
  const place = mkdtempDisposableSync(join(tmpdir(), 'gantry-network-plugins-'));
  let engine: TestEngine;
  let net: NetworkPlugin;
  let addresses: NetworkPlugin;
  let netns: string;

  before(async () => {
    engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`] });
    netns = join(engine.directory, 'netns');
    net = await NetworkPlugin.start(join(place.path, 'net.sock'), netns, ['NetworkDriver']);
    addresses = await NetworkPlugin.start(join(place.path, 'shelf.sock'), netns, ['IpamDriver']);
  });
  after(async () => {
    await net[Symbol.asyncDispose]();
    await addresses[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    place.remove();
  });

  const create = async (Name: string, more: object = {}, on: Asker = engine): Promise<[number, string | undefined]> => {
    const { status, body } = await on.post<Message>('/networks/create', { Name, Driver: 'net', ...more });
    return [status, body.message];
  };
  const made = async (name: string, more: object = {}): Promise<void> => {
    assert.deepEqual(await create(name, more), [201, undefined]);
  };
  const drop = async (...networks: string[]): Promise<void> => {
    for (const name of networks) {
      const { status, body } = await engine.delete<Message>(`/networks/${name}`);
      assert.equal(status, 204, `${name}: ${JSON.stringify(body)}`);
    }
  };
  const run = async (name: string, NetworkMode: string, endpoint: object = {}): Promise<void> => {
    const NetworkingConfig = { EndpointsConfig: { [NetworkMode]: endpoint } };
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode }, NetworkingConfig }, name);
  };
  const remove = async (...names: string[]): Promise<void> => {
    for (const name of names) assert.equal((await engine.delete(`/containers/${name}?force=1`)).status, 204);
  };
  const inspect = async (ref: string): Promise<Inspect> => (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  const placeOf = async (ref: string, network: string) => (await inspect(ref)).NetworkSettings.Networks[network]!;
  const inside = async (ref: string, ...command: string[]): Promise<string> =>
    (await execute('nsenter', ['-t', String((await inspect(ref)).State.Pid), '-n', ...command])).stdout;
  const reaches = async (from: string, ip: string): Promise<boolean> =>
    await inside(from, 'busybox', 'ping', '-c', '1', '-w', '60', ip).then(
      () => true,
      () => false,
    );
  const resolve = async (from: string, name: string): Promise<string> =>
    await inside(
      from,
      ...[process.execPath, '-e'],
      `const r = new (require('node:dns').promises.Resolver)({ timeout: 60000, tries: 1 });
       r.setServers(['127.0.0.11']); r.resolve4('${name}').then((found) => process.stdout.write(String(found)));`,
    );
  const until = async (what: () => boolean | Promise<boolean>): Promise<void> => {
    const signal = AbortSignal.timeout(60_000);
    while (!(await what())) await setTimeout(20, undefined, { signal });
  };
  /** Everything was given back. */
  const allBack = async (): Promise<void> => {
    await until(() => JSON.stringify([net.held(), addresses.held()]) === JSON.stringify([NOTHING, NOTHING]));
    const links = await engine.onHost(['ip', '-brief', 'link']);
    assert.doesNotMatch(links, /^p[boi][0-9a-f]{10}/m);
  };

  test('containers of a plugin reach each other and the machine, by addresses and by names', async () => {
    const IPAM = { Config: [{ Subnet: '10.60.1.0/24', Gateway: '10.60.1.9' }] };
    await made('plain', { IPAM, Options: { route: '10.99.0.0/24' } });
    await run('a', 'plain', { IPAMConfig: { IPv4Address: '10.60.1.77' }, Aliases: ['first'] });
    await run('b', 'plain');
    const [a, b] = [await placeOf('a', 'plain'), await placeOf('b', 'plain')];

    assert.deepEqual([a.IPAddress, a.IPPrefixLen, a.Gateway], ['10.60.1.77', 24, '10.60.1.9']);
    assert.equal(b.IPAddress, '10.60.1.1');
    assert.equal(a.MacAddress.startsWith('02:77:'), true, a.MacAddress);
    assert.match(await inside('a', 'ip', 'address'), new RegExp(`net0[^]*${a.MacAddress}[^]*10\\.60\\.1\\.77/24`));
    const routes = await inside('a', 'ip', 'route');
    assert.match(routes, /default via 10\.60\.1\.9 dev net0/);
    assert.match(routes, /10\.99\.0\.0\/24 dev net0/);
    const believed = 'cd /proc/sys/net; cat ipv6/conf/net0/accept_ra ipv[46]/conf/net0/accept_redirects';
    assert.equal(await inside('a', 'sh', '-c', believed), '0\n0\n0\n');
    assert.deepEqual([await reaches('a', b.IPAddress), await reaches('b', '10.60.1.9')], [true, true]);
    assert.deepEqual([await resolve('b', 'a'), await resolve('b', 'first')], ['10.60.1.77', '10.60.1.77']);
    const { body } = await engine.get<NetworkWire>('/networks/plain');
    assert.deepEqual([body.Driver, body.Options, body.IPAM.Driver], ['net', { route: '10.99.0.0/24' }, 'default']);
    assert.deepEqual(
      Object.values(body.Containers).map(({ IPv4Address }) => IPv4Address),
      ['10.60.1.77/24', '10.60.1.1/24'],
    );
    assert.equal((await engine.delete('/networks/plain')).status, 403);
    await remove('a', 'b');
    await drop('plain');
    await allBack();
  });

  test('a neighbour hears at once that an address has another hardware address', async () => {
    await made('heard', { IPAM: { Config: [{ Subnet: '10.60.2.0/24' }] } });
    await run('a', 'heard');
    await run('b', 'heard');
    const { IPAddress, MacAddress } = await placeOf('b', 'heard');
    assert.equal(await reaches('a', IPAddress), true);

    await engine.post('/networks/heard/disconnect', { Container: 'b' });
    const EndpointConfig = { IPAMConfig: { IPv4Address: IPAddress } };
    assert.equal((await engine.post('/networks/heard/connect', { Container: 'b', EndpointConfig })).status, 200);

    const next = (await placeOf('b', 'heard')).MacAddress;
    assert.notEqual(next, MacAddress);
    // One packet: to the old hardware address it would be lost.
    assert.equal(await reaches('a', IPAddress), true, await inside('a', 'ip', 'neighbour', 'show'));
    await remove('a', 'b');
    await drop('heard');
    await allBack();
  });

  test('a plugin gives the addresses of its own networks, and of those of the engine', async () => {
    await made('both', { IPAM: { Driver: 'shelf', Options: { o: 'p' } } });
    const Config = [{ Subnet: '10.61.2.0/24', IPRange: '10.61.2.128/25', AuxiliaryAddresses: { kept: '10.61.2.7' } }];
    await made('bridged', { Driver: 'bridge', IPAM: { Driver: 'shelf', Config } });
    await run('a', 'both');
    await run('b', 'both');
    await run('c', 'bridged');
    await run('d', 'bridged', { IPAMConfig: { IPv4Address: '10.61.2.40' } });
    const pool = (await engine.get<NetworkWire>('/networks/both')).body.IPAM;

    assert.deepEqual([pool.Driver, pool.Options], ['shelf', { o: 'p' }]);
    assert.match(String(pool.Config[0]!.Subnet), /^10\.77\.\d+\.0\/24$/);
    const prefix = pool.Config[0]!.Subnet!.replace('0/24', '');
    assert.equal(pool.Config[0]!.Gateway, `${prefix}250`);
    assert.equal((await placeOf('a', 'both')).IPAddress, `${prefix}249`);
    assert.equal(await reaches('a', (await placeOf('b', 'both')).IPAddress), true);
    assert.deepEqual(
      [(await placeOf('c', 'bridged')).IPAddress, (await placeOf('d', 'bridged')).IPAddress],
      ['10.61.2.249', '10.61.2.40'],
    );
    assert.equal(await reaches('c', '10.61.2.40'), true);
    assert.equal(await resolve('c', 'd'), '10.61.2.40');
    const taken = await engine.create(['true'], {
      HostConfig: { NetworkMode: 'bridged' },
      NetworkingConfig: { EndpointsConfig: { bridged: { IPAMConfig: { IPv4Address: '10.61.2.7' } } } },
    });
    const refused = await engine.post<Message>(`/containers/${taken}/start`);
    assert.deepEqual([refused.status, refused.body.message], [500, 'remote: 10.61.2.7 is taken']);
    await remove('a', 'b', 'c', 'd', taken);
    await drop('both', 'bridged');
    await allBack();
  });

  test('running containers are connected and disconnected, and other networks go on beside', async () => {
    await made('side', { IPAM: { Driver: 'shelf', Config: [{ Subnet: '10.62.0.0/24' }] } });
    await run('moving', 'bridge');
    await run('there', 'side');
    const EndpointConfig = { IPAMConfig: { IPv4Address: '10.62.0.33' } };
    assert.equal((await engine.post('/networks/side/connect', { Container: 'moving', EndpointConfig })).status, 200);

    assert.equal(await reaches('there', '10.62.0.33'), true);
    assert.equal(await resolve('there', 'moving'), '10.62.0.33');
    assert.equal((await engine.post('/networks/side/disconnect', { Container: 'moving' })).status, 200);
    assert.doesNotMatch(await inside('moving', 'ip', 'address'), /10\.62|net0/);
    assert.match(await inside('moving', 'ip', 'route'), /^default via 172/);
    assert.deepEqual([net.held().endpoints, addresses.held().addresses], [1, 2]);
    assert.equal((await engine.post('/networks/side/connect', { Container: 'moving', EndpointConfig })).status, 200);
    await remove('moving', 'there');
    await drop('side');
    await allBack();
  });

  test('an impossible request is refused, and nothing is left with the plugins', async () => {
    const missing = [create('x', { Driver: 'nobody' }), create('y', { IPAM: { Driver: 'nobody' } })]; // these wait
    for (const answer of await Promise.all(missing)) assert.deepEqual(answer, [404, 'plugin "nobody" not found']);
    assert.deepEqual(await create('x', { Driver: 'shelf' }), [404, 'plugin "shelf" does not implement NetworkDriver']);
    assert.equal((await create('x', { IPAM: { Driver: 'net' } }))[0], 404);
    const Config = [{ Subnet: '10.66.1.0/24' }, { Subnet: '10.66.2.0/24' }];
    assert.equal((await create('x', { IPAM: { Config } }))[0], 403);
    assert.deepEqual(await create('x', { Options: { refuse: 'full' } }), [
      500,
      'NetworkDriver.CreateNetwork: refused: full',
    ]);
    for (const [method, words] of [
      ['RequestPool', 'remote: not now'],
      ['RequestAddress', 'failed to allocate gateway (): remote: not now'],
    ] as const) {
      addresses.instead.set(`IpamDriver.${method}`, () => ({ Error: 'not now' }));
      assert.deepEqual(await create('x', { IPAM: { Driver: 'shelf' } }), [500, words]);
      addresses.instead.clear();
    }
    await made('refusing', { IPAM: { Driver: 'shelf' } });
    const id = await engine.create(['sleep', '1000'], { HostConfig: { NetworkMode: 'refusing' } }, 'r');
    for (const [method, words] of [
      ['CreateEndpoint', 'failed to create endpoint r on network refusing: NetworkDriver.CreateEndpoint: no'],
      ['Join', 'NetworkDriver.Join: no'],
      [
        'ProgramExternalConnectivity',
        /^driver failed programming external connectivity on endpoint r \(\w+\): .*: no$/,
      ],
      ['EndpointOperInfo', 'Updating join info failed: NetworkDriver.EndpointOperInfo: no'],
    ] as const) {
      net.instead.set(`NetworkDriver.${method}`, () => ({ Err: 'no' }));
      const { status: code, body } = await engine.post<Message>(`/containers/${id}/start`);
      net.instead.clear();
      assert.equal(code, 500);
      if (typeof words === 'string') assert.equal(body.message, words);
      else assert.match(body.message, words);
      await until(() => net.held().endpoints === 0 && addresses.held().addresses === 1);
    }
    for (const method of ['RevokeExternalConnectivity', 'Leave', 'DeleteEndpoint']) {
      assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
      net.instead.set(`NetworkDriver.${method}`, () => ({ Err: 'no' }));
      assert.equal((await engine.post(`/containers/${id}/stop?t=0`)).status, 204);
      await until(() => addresses.held().addresses === 1);
      net.instead.clear();
      for (const { endpoints } of net.networks.values()) endpoints.clear();
    }
    await remove('r');
    await drop('refusing');
    await allBack();
  });

  test('optional calls may be unknown to a plugin, and other calls may have empty answers', async () => {
    const optional = ['EndpointOperInfo', 'ProgramExternalConnectivity', 'RevokeExternalConnectivity', 'Leave'];
    for (const reply of [404, 'null', '']) {
      for (const method of optional) net.instead.set(`NetworkDriver.${method}`, () => reply);
      await made('sparing');
      await run('sparing', 'sparing');
      assert.equal(await reaches('sparing', (await placeOf('sparing', 'sparing')).Gateway), true, String(reply));
      await remove('sparing');
      await until(() => net.held().endpoints === 0);
      net.instead.clear();
      await drop('sparing');
    }
    await allBack();
  });

  test('answers that are none are said, and taken back', async () => {
    await made('odd');
    const id = await engine.create(['sleep', '1000'], { HostConfig: { NetworkMode: 'odd' } });
    const links = { SrcName: 'nosuch', DstPrefix: 'eth' };
    for (const [method, answer, words] of [
      ['CreateEndpoint', { Interface: 'mine' }, /answered against its protocol/],
      ['CreateEndpoint', { Interface: { Address: '10.1.1.1/24' } }, /Cannot be modified with 10\.1\.1\.1\/24/],
      ['CreateEndpoint', { Interface: { MacAddress: 'odd' } }, /invalid MAC address: odd/],
      ['Join', { InterfaceName: links }, /named the link nosuch, which is not there/],
      ['Join', { Gateway: 'there' }, /unable to parse Gateway "there"/],
      ['Join', { StaticRoutes: [{ Destination: '10.0.0.0/8', RouteType: 0, NextHop: '' }] }, /nexthop/],
      ['Join', 503, /^NetworkDriver\.Join: /],
    ] as const) {
      const real = net.instead;
      real.set(`NetworkDriver.${method}`, () => answer);
      const { status, body } = await engine.post<Message>(`/containers/${id}/start`);
      real.clear();

      assert.equal(status >= 400, true, method);
      assert.match(body.message, words);
      await until(() => net.held().endpoints === 0);
    }
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
    await remove(id);
    await drop('odd');
    await allBack();
  });

  test('a container ends well while the plugin is dead, and the plugin is told when it is back', async () => {
    await made('left', { IPAM: { Driver: 'shelf' } });
    await run('ending', 'left');
    await run('staying', 'left');
    await net.leave();
    assert.equal((await engine.post('/containers/ending/stop?t=0')).status, 204);

    assert.equal((await inspect('ending')).State.Status, 'exited');
    const failed = await engine.post<Message>('/containers/ending/start');
    assert.deepEqual([failed.status, failed.body.message], [500, 'plugin "net" not found']);
    assert.equal(net.held().endpoints, 2);
    await engine.kill('SIGKILL');
    await engine.startAgain();
    assert.equal((await inspect('staying')).State.Status, 'running');
    await net.listen(join(place.path, 'net.sock'), ['NetworkDriver']);
    await until(() => net.held().endpoints === 1);

    assert.equal((await engine.post('/containers/ending/start')).status, 204);
    assert.equal(await reaches('ending', (await placeOf('staying', 'left')).IPAddress), true);
    await remove('ending', 'staying');
    await drop('left');
    await allBack();
  });

  test('a plugin that hangs holds up no end of a container, and its next start waits for it', async () => {
    await made('hung');
    await run('slow', 'hung');
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    net.instead.set('NetworkDriver.Leave', async () => {
      asked.resolve();
      await answered.promise;
      return {};
    });
    assert.equal((await engine.post('/containers/slow/stop?t=0')).status, 204);
    await asked.promise;
    assert.equal((await inspect('slow')).State.Status, 'exited');
    assert.equal(net.held().endpoints, 1);
    const start = engine.post('/containers/slow/start');
    net.instead.clear();
    answered.resolve();

    assert.equal((await start).status, 204);
    const order = net.calls.map(({ method }) => method);
    assert.ok(order.lastIndexOf('NetworkDriver.DeleteEndpoint') < order.lastIndexOf('NetworkDriver.CreateEndpoint'));
    assert.equal(net.held().endpoints, 1);
    await remove('slow');
    await drop('hung');
    await allBack();
  });

  test('a plugin that is about to listen is waited for', async () => {
    writeFileSync(join(place.path, 'late.spec'), `unix://${place.path}/late/plugin.sock`);
    const creation = create('slow', { Driver: 'late' });
    await using late = await NetworkPlugin.start(join(place.path, 'late/plugin.sock'), netns, ['NetworkDriver']);

    assert.deepEqual(await creation, [201, undefined]);
    await drop('slow');
    assert.deepEqual(late.held(), NOTHING);
  });

  test('a network goes while its plugin is away, and the plugin is told of it later', async () => {
    writeFileSync(join(place.path, 'far.spec'), `unix://${place.path}/far/plugin.sock`);
    const far = await NetworkPlugin.start(join(place.path, 'far/plugin.sock'), netns, ['NetworkDriver']);
    await made('afar', { Driver: 'far' });
    await far.leave();
    assert.equal((await engine.delete('/networks/afar')).status, 204);
    await engine.kill('SIGKILL');
    await engine.startAgain();
    assert.equal(far.held().networks, 1);
    await far.listen(join(place.path, 'far/plugin.sock'), ['NetworkDriver']);

    await until(() => far.held().networks === 0);
    await far[Symbol.asyncDispose]();
  });

  test('a daemon that is killed while a plugin works leaves nothing with it', async () => {
    await made('cut');
    const id = await engine.create(['sleep', '1000'], { HostConfig: { NetworkMode: 'cut' } });
    for (const method of ['CreateEndpoint', 'Join', 'EndpointOperInfo']) {
      const asked = Promise.withResolvers<void>();
      net.instead.set(`NetworkDriver.${method}`, async () => {
        asked.resolve();
        return await new Promise<never>(() => undefined);
      });
      const start = engine.post(`/containers/${id}/start`).catch(() => undefined);
      await asked.promise;
      await engine.kill('SIGKILL');
      await start;
      net.instead.clear();
      await engine.startAgain();

      await until(() => net.held().endpoints === 0);
      assert.notEqual((await inspect(id)).State.Status, 'running');
    }
    const asked = Promise.withResolvers<void>();
    net.instead.set('NetworkDriver.CreateNetwork', async ({ NetworkID = '' }) => {
      net.networks.set(NetworkID, { bridge: 'lo-none', gateway: '', routes: [], endpoints: new Set() });
      asked.resolve();
      return await new Promise<never>(() => undefined);
    });
    net.instead.set('NetworkDriver.DeleteNetwork', ({ NetworkID = '' }) => ({
      Err: net.networks.delete(NetworkID) ? '' : 'no',
    }));
    const creation = create('never').catch(() => undefined);
    await asked.promise;
    await engine.kill('SIGKILL');
    await creation;
    await engine.startAgain();
    await until(() => net.held().networks === 1);
    net.instead.clear();

    assert.equal((await engine.get('/networks/never')).status, 404);
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
    await remove(id);
    await drop('cut');
    await allBack();
  });

  test('the addresses of a plugin that forgets them are told again after a start of the daemon', async () => {
    const needsReplay = (): Record<string, unknown> => ({ RequiresRequestReplay: true, RequiresMACAddress: true });
    const shy = await NetworkPlugin.start(join(place.path, 'shy.sock'), netns, ['IpamDriver']);
    shy.instead.set('IpamDriver.GetCapabilities', needsReplay);
    await made('again', { IPAM: { Driver: 'shy' } });
    await run('kept', 'again');
    const before = (await placeOf('kept', 'again')).IPAddress;
    const first = shy.calls.findLast(({ method }) => method === 'IpamDriver.RequestAddress')!.body['Options'];
    assert.match(String((first as Record<string, string>)['com.docker.network.endpoint.macaddress']), /^02:42:/);
    await engine.kill('SIGKILL');
    shy.pools.clear();
    shy.restartCounting();
    await engine.startAgain();
    await run('next', 'again');

    assert.equal((await placeOf('kept', 'again')).IPAddress, before);
    assert.notEqual((await placeOf('next', 'again')).IPAddress, before);
    assert.equal(shy.held().addresses, 3);
    await remove('kept', 'next');
    await drop('again');
    await until(() => JSON.stringify(shy.held()) === JSON.stringify(NOTHING));
    await shy[Symbol.asyncDispose]();
    await allBack();
  });

  test('a network without addresses has those that its plugin gives', async () => {
    await made('free', { IPAM: { Driver: 'null' } });
    let last = 4;
    net.instead.set('NetworkDriver.CreateEndpoint', ({ EndpointID = '' }) => {
      void EndpointID;
      last += 1;
      return { Interface: { Address: `10.64.0.${last}/24`, MacAddress: `02:42:0a:40:00:0${last}` } };
    });
    net.instead.set('NetworkDriver.Join', () => ({}));
    await run('own', 'free');

    const own = await placeOf('own', 'free');
    assert.deepEqual([own.IPAddress, own.IPPrefixLen, own.MacAddress], ['10.64.0.5', 24, '02:42:0a:40:00:05']);
    assert.doesNotMatch(await inside('own', 'ip', 'route'), /default/);
    assert.equal((await create('x', { Driver: 'bridge', IPAM: { Driver: 'null' } }))[0], 400);
    await remove('own');
    net.instead.clear();
    await drop('free');
    await allBack();
  });

  test('plugins are asked the same as by dockerd, in the same order', async () => {
    const specs = join(place.path, 'specs');
    mkdirSync(specs);
    const ask = async (api: Asker, of: string): Promise<unknown[]> => {
      await using plugin = await NetworkPlugin.start(join(place.path, `judged-${of}.sock`), netns, ['NetworkDriver']);
      await using shelf = await NetworkPlugin.start(join(place.path, `ranges-${of}.sock`), netns, ['IpamDriver']);
      const statuses = await scenario(api, of);
      return [statuses, asked(plugin, of), asked(shelf, of)];
    };
    writeFileSync(join(specs, 'judged-theirs.spec'), `unix://${place.path}/judged-theirs.sock`);
    writeFileSync(join(specs, 'ranges-theirs.spec'), `unix://${place.path}/ranges-theirs.sock`);
    // dockerd looks for plugins in folders of the machine: it has others there. Its first start makes the outer one. It also
    // takes the machine's containerd where there is one, which sees none of the mounts made here.
    const script = `mkdir -p /etc/docker /run/containerd && mount -t tmpfs none /run/containerd &&
      mount -t tmpfs none /etc/docker && mkdir /etc/docker/plugins &&
      mount --bind ${specs} /etc/docker/plugins && exec "$@"`;
    const within = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh'];
    const flags = ['--bridge=none', '--iptables=false', '--ip-forward=false'];
    await using dockerd = await Dockerd.start(flags, netns, within);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());

    assert.deepEqual(await ask(engine, 'ours'), await ask(dockerd.api, 'theirs'));
  });

  /** One life of two networks; returns the statuses. */
  async function scenario(api: Asker, of: string): Promise<number[]> {
    const [Driver, Ranges] = [`judged-${of}`, `ranges-${of}`];
    const statuses: number[] = [];
    const post = async (path: string, body: object = {}) => statuses.push((await api.post(path, body)).status);
    const Config = [{ Subnet: '10.65.1.0/24', AuxiliaryAddresses: { kept: '10.65.1.7' } }];
    await post('/networks/create', { Name: `one-${of}`, Driver, Options: { a: 'b' }, IPAM: { Config } });
    const ranged = { Driver: Ranges, Options: { o: 'p' }, Config: [{ Subnet: '10.65.2.0/24', Gateway: '10.65.2.9' }] };
    await post('/networks/create', { Name: `two-${of}`, Driver, Internal: true, IPAM: ranged });
    const six = { Config: [{ Subnet: '10.65.3.0/24' }, { Subnet: 'fd65::/64' }] };
    await post('/networks/create', { Name: `six-${of}`, Driver, EnableIPv6: true, IPAM: six });
    await post(`/containers/create?name=asked-${of}`, {
      Image: 'busybox',
      Cmd: ['sleep', '1000'],
      MacAddress: '02:42:00:00:00:99',
      ExposedPorts: { '80/tcp': {} },
      HostConfig: { NetworkMode: `one-${of}`, PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '8080' }] } },
    });
    await post(`/containers/asked-${of}/start`);
    const EndpointConfig = { IPAMConfig: { IPv4Address: '10.65.2.50' } };
    await post(`/networks/two-${of}/connect`, { Container: `asked-${of}`, EndpointConfig });
    statuses.push((await api.delete(`/networks/two-${of}`)).status);
    await post(`/networks/two-${of}/disconnect`, { Container: `asked-${of}` });
    await post(`/containers/asked-${of}/stop?t=0`);
    statuses.push((await api.delete(`/containers/asked-${of}?force=1`)).status);
    for (const name of ['one', 'two', 'six']) statuses.push((await api.delete(`/networks/${name}-${of}`)).status);
    return statuses;
  }

  /** Calls of a plugin, with names for the ids; how often dockerd asks for its news of an endpoint does not count. */
  function asked(plugin: NetworkPlugin, of: string): unknown[] {
    const names = new Map<string, string>();
    const named = (id: string): string => {
      if (!names.has(id)) names.set(id, `id ${names.size}`);
      return names.get(id)!;
    };
    return plugin.calls
      .filter(({ method }) => method !== 'NetworkDriver.EndpointOperInfo')
      .map(({ method, body: { SandboxKey: _key, ...body } }) => {
        const text = JSON.stringify(body).replaceAll(/[0-9a-f]{64}/g, named);
        return [method, JSON.parse(text.replaceAll(`-${of}`, '')) as unknown];
      });
  }
});

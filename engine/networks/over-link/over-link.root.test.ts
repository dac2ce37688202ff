import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
type Message = { message: string };

suite('networks over a link of the machine', { concurrency: false }, () => {
  let engine: TestEngine;
  /** A machine in the network of the parent link. */
  let outside: ChildProcess;

  before(async () => {
    engine = await TestEngine.start();
    outside = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(outside.stdout!, 'data');
    const peer = ['peer', 'name', 'eth0', 'netns', String(outside.pid)];
    await host('ip', 'link', 'add', 'out0', 'type', 'veth', ...peer);
    await host('ip', 'link', 'set', 'out0', 'up');
    await host('ip', 'link', 'add', 'spare0', 'type', 'bridge');
    await beyond('ip', 'link', 'set', 'eth0', 'up');
    await beyond('ip', 'address', 'add', '10.30.0.1/24', 'dev', 'eth0');
  });
  after(async () => {
    outside.kill('SIGKILL');
    await engine[Symbol.asyncDispose]();
  });

  const host = async (...command: string[]): Promise<string> => await engine.onHost(command);
  const hasLink = async (name: string): Promise<boolean> =>
    (await host('sh', '-c', `ip -brief link show ${name} 2>/dev/null || true`)) !== '';

  async function beyond(...command: string[]): Promise<string> {
    return (await execute('nsenter', ['-t', String(outside.pid), '-n', ...command])).stdout;
  }

  async function create(Name: string, Options: object, Subnet: string, more: object = {}): Promise<[number, string]> {
    const body = { Name, Driver: 'macvlan', Options, IPAM: { Config: [{ Subnet }] }, ...more };
    const { status, body: answer } = await engine.post<Message>('/networks/create', body);
    return [status, answer.message];
  }

  async function runs(
    name: string,
    NetworkMode: string,
    { MacAddress = '', ...endpoint }: { MacAddress?: string; IPAMConfig?: object } = {},
  ): Promise<void> {
    const NetworkingConfig = { EndpointsConfig: { [NetworkMode]: endpoint } };
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode }, MacAddress, NetworkingConfig }, name);
  }

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  async function inside(ref: string, ...command: string[]): Promise<string> {
    return (await execute('nsenter', ['-t', String((await inspect(ref)).State.Pid), '-n', ...command])).stdout;
  }

  /** Whether an address answers one of 30 questions; the first may be lost, as others know its last owner for a second. */
  const reaches = async (from: string, ip: string): Promise<boolean> =>
    await inside(from, 'sh', '-c', `for n in $(seq 30); do busybox ping -c 1 -W 2 ${ip} && exit; done; exit 1`).then(
      () => true,
      () => false,
    );

  const remove = async (...names: string[]): Promise<void> => {
    for (const name of names) assert.equal((await engine.delete(`/containers/${name}?force=1`)).status, 204);
  };

  test('containers are in the network of the parent, with addresses and names of their own', async () => {
    assert.equal(
      (await create('outer', { parent: 'out0', 'com.docker.network.driver.mtu': '1400' }, '10.30.0.0/24'))[0],
      201,
    );
    await runs('a', 'outer', { IPAMConfig: { IPv4Address: '10.30.0.7' }, MacAddress: '02:42:00:00:00:77' });
    await runs('b', 'outer');
    const [a, b] = [(await inspect('a')).NetworkSettings, (await inspect('b')).NetworkSettings];

    assert.deepEqual([a.Networks['outer']!.IPAddress, a.Networks['outer']!.Gateway], ['10.30.0.7', '10.30.0.1']);
    assert.match(
      await inside('a', 'ip', '-d', 'link', 'show', 'eth0'),
      /mtu 1400[^]*02:42:00:00:00:77[^]*macvlan +mode bridge/,
    );
    assert.match(await inside('a', 'ip', 'route'), /^default via 10\.30\.0\.1 dev eth0/);
    assert.deepEqual(
      [await reaches('a', '10.30.0.1'), await reaches('a', b.Networks['outer']!.IPAddress)],
      [true, true],
    );
    assert.match(await beyond('busybox', 'ping', '-c', '1', '-w', '60', '10.30.0.7'), /1 packets received/);
    const { stdout } = await execute('nsenter', [
      ...['-t', String((await inspect('a')).State.Pid), '-n', process.execPath, '-e'],
      `const r = new (require('node:dns').promises.Resolver)({ timeout: 60000, tries: 1 });
       r.setServers(['127.0.0.11']); r.resolve4('b').then((found) => process.stdout.write(String(found)));`,
    ]);
    assert.equal(stdout, b.Networks['outer']!.IPAddress);
    await remove('a', 'b');
  });

  test('an address is given back, and kept over a kill of the daemon', async () => {
    await runs('staying', 'outer');
    const before = (await inspect('staying')).NetworkSettings.Networks;
    await engine.kill();
    await engine.startAgain();
    await runs('next', 'outer');

    assert.deepEqual((await inspect('staying')).NetworkSettings.Networks, before);
    assert.equal(before['outer']!.IPAddress, '10.30.0.2');
    assert.equal((await inspect('next')).NetworkSettings.Networks['outer']!.IPAddress, '10.30.0.3');
    assert.equal(await reaches('staying', '10.30.0.1'), true);
    await remove('staying');
    await runs('third', 'outer');
    assert.equal((await inspect('third')).NetworkSettings.Networks['outer']!.IPAddress, '10.30.0.2');
    await remove('next', 'third');
  });

  test('a running container is connected and disconnected', async () => {
    await runs('moving', 'bridge');
    assert.equal((await engine.post('/networks/outer/connect', { Container: 'moving' })).status, 200);

    assert.equal(await reaches('moving', '10.30.0.1'), true);
    assert.equal((await engine.post('/networks/outer/disconnect', { Container: 'moving' })).status, 200);
    assert.doesNotMatch(await inside('moving', 'ip', 'address'), /10\.30\.0/);
    assert.match(await inside('moving', 'ip', 'route'), /^default via 172/);
    const until = Date.now() + 60_000;
    while (/macvlan/.test(await inside('moving', 'ip', '-d', 'link')) && Date.now() < until) await setTimeout(50);
    assert.doesNotMatch(await inside('moving', 'ip', '-d', 'link'), /macvlan/);
    await remove('moving');
  });

  test('a container that starts again at once has its hardware address again', async () => {
    await runs('again', 'outer', { MacAddress: '02:42:00:00:00:88' });
    assert.equal((await engine.post('/containers/again/restart?t=0')).status, 204);

    const until = Date.now() + 60_000;
    const hasAddress = async (): Promise<boolean> =>
      (await inside('again', 'ip', 'link')).includes('02:42:00:00:00:88');
    while (!(await hasAddress()) && Date.now() < until) await setTimeout(20);
    assert.equal(await hasAddress(), true);
    assert.equal(await reaches('again', '10.30.0.1'), true);
    await remove('again');
  });

  test('without a parent there is no way out, and the link of its own goes with the network', async () => {
    assert.equal((await create('alone', {}, '10.31.0.0/24'))[0], 201);
    const { body } = await engine.get<{ Id: string }>('/networks/alone');
    const link = `dm-${body.Id.slice(0, 12)}`;
    await runs('c', 'alone');
    await runs('d', 'alone');

    assert.equal(await hasLink(link), true);
    assert.equal(await reaches('c', (await inspect('d')).NetworkSettings.Networks['alone']!.IPAddress), true);
    assert.doesNotMatch(await inside('c', 'ip', 'route'), /default/);
    await remove('c', 'd');
    assert.equal((await engine.delete('/networks/alone')).status, 204);
    const until = Date.now() + 60_000;
    while ((await hasLink(link)) && Date.now() < until) await setTimeout(50);
    assert.equal(await hasLink(link), false);
  });

  test('of several subnets the next serves when one is full, each with its own gateway, also after a kill', async () => {
    const Config = [
      { Subnet: '10.35.0.0/30' },
      { Subnet: '10.36.0.0/24', Gateway: '10.36.0.254' },
      { Subnet: 'fd00:35::/126' },
      { Subnet: 'fd00:36::/64', Gateway: 'fd00:36::ff' },
    ];
    const more = { EnableIPv6: true, IPAM: { Config } };
    assert.deepEqual(await create('wide', { parent: 'spare0' }, '', more), [201, undefined]);
    const addresses = async (ref: string): Promise<unknown[]> => {
      const place = (await inspect(ref)).NetworkSettings.Networks['wide']!;
      return [place.IPAddress, place.IPPrefixLen, place.Gateway, place.GlobalIPv6Address, place.IPv6Gateway];
    };
    await runs('w1', 'wide');
    await engine.kill();
    await engine.startAgain();
    await runs('w2', 'wide', { IPAMConfig: { IPv4Address: '10.36.0.9' } });
    await runs('w3', 'wide');

    assert.deepEqual(await addresses('w1'), ['10.35.0.2', 30, '10.35.0.1', 'fd00:35::2', 'fd00:35::1']);
    assert.deepEqual(await addresses('w2'), ['10.36.0.9', 24, '10.36.0.254', 'fd00:35::3', 'fd00:35::1']);
    assert.deepEqual(await addresses('w3'), ['10.36.0.1', 24, '10.36.0.254', 'fd00:36::1', 'fd00:36::ff']);
    assert.match(await inside('w3', 'ip', 'route'), /^default via 10\.36\.0\.254 dev eth0/);
    assert.match(await inside('w3', 'ip', '-6', 'route'), /^default via fd00:36::ff dev eth0/m);
    const shown = await engine.get<{ IPAM: { Config: object[] } }>('/networks/wide');
    assert.deepEqual(shown.body.IPAM.Config, Config);
    const overlapping = await engine.post('/networks/create', {
      Name: 'o',
      IPAM: { Config: [{ Subnet: '10.36.0.0/28' }] },
    });
    assert.equal(overlapping.status, 403);
    await remove('w1');
    await runs('w4', 'wide');
    assert.deepEqual((await addresses('w4'))[0], '10.35.0.2');
    await remove('w2', 'w3', 'w4');
    assert.equal((await engine.delete('/networks/wide')).status, 204);
  });

  test('a VLAN of the parent is made and removed, where the kernel has them', async () => {
    const [status, message] = await create('vlan', { parent: 'out0.50' }, '10.32.0.0/24');

    if (status === 201) {
      assert.match(await host('ip', '-d', 'link', 'show', 'out0.50'), /out0\.50@out0:[^]*vlan protocol 802\.1Q id 50/);
      await engine.delete('/networks/vlan');
      const until = Date.now() + 60_000;
      while ((await hasLink('out0.50')) && Date.now() < until) await setTimeout(50);
      assert.equal(await hasLink('out0.50'), false);
    } else {
      await assert.rejects(host('ip', 'link', 'add', 'link', 'out0', 'name', 'v1', 'type', 'vlan', 'id', '50'));
      assert.deepEqual([status, message], [500, 'failed to create out0.50 vlan link: operation not supported']);
    }
    assert.equal(await hasLink('out0'), true);
  });

  // Messages of dockerd 20.10.
  for (const [options, message] of [
    [{ parent: 'out0' }, /^network dm-\w{12} is already using parent interface out0$/],
    [{ parent: 'nolink' }, /^invalid subinterface vlan name nolink, example formatting is eth0\.10$/],
    [{ parent: 'spare0.5000' }, /^vlan id must be between 1-4094, received: 5000$/],
    [{ parent: 'spare0.x' }, /^unable to parse a valid vlan id from: x \(ex\. eth0\.10 for vlan 10\)$/],
    [{ parent: 'nolink.50' }, /^-o parent interface does was not found on the host: nolink$/],
    [{ parent: 'spare0', macvlan_mode: 'wild' }, /^requested macvlan mode 'wild' is not valid, 'bridge' mode is the /],
    [{ parent: 'lo' }, /^loopback interface is not a valid macvlan parent link$/],
  ] as const) {
    test(`${JSON.stringify(options)} is refused`, async () => {
      const [status, said] = await create('refused', options, '10.33.0.0/24');

      assert.equal(status, 500);
      assert.match(said, message);
      assert.equal((await engine.get('/networks/refused')).status, 404);
    });
  }

  test('a network of ipvlan needs a kernel with it at the start of a container, as with dockerd', async () => {
    const Options = { parent: 'spare0' };
    const made = { Name: 'shared', Driver: 'ipvlan', Options, IPAM: { Config: [{ Subnet: '10.37.0.0/24' }] } };
    assert.equal((await engine.post('/networks/create', made)).status, 201);
    const body = { Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { NetworkMode: 'shared' } };
    await engine.post('/containers/create?name=f', body);
    const start = await engine.post<Message>('/containers/f/start');

    // On kernels with it: tests/vm/ipvlan.vm.test.ts.
    const adding = ['ip', 'link', 'add', 'link', 'out0', 'name', 'iv0', 'type', 'ipvlan'];
    const hasIpvlan = await host(...adding).then(
      async () => (await host('ip', 'link', 'delete', 'iv0')) === '',
      () => false,
    );
    if (hasIpvlan) assert.equal(start.status, 204);
    else {
      assert.deepEqual(
        [start.status, start.body.message],
        [500, 'failed to create the ipvlan port: operation not supported'],
      );
    }
    await remove('f');
    assert.equal((await engine.delete('/networks/shared')).status, 204);
  });

  test('other modes are taken, and the parent stays when the network goes', async () => {
    assert.equal((await create('modes', { parent: 'spare0', macvlan_mode: 'private' }, '10.34.0.0/24'))[0], 201);
    await runs('e', 'modes');

    assert.match(await inside('e', 'ip', '-d', 'link', 'show', 'eth0'), /macvlan +mode private/);
    await remove('e');
    await engine.delete('/networks/modes');
    assert.equal(await hasLink('spare0'), true);
  });
});

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { NetworkWire } from './schema.ts';

type Message = { message: string };

suite('networks of users', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => void (engine = await TestEngine.start()));
  after(async () => await engine[Symbol.asyncDispose]());

  async function create(Name: string, more: object = {}): Promise<string> {
    const { status, body, raw } = await engine.post<{ Id: string }>('/networks/create', { Name, ...more });
    assert.equal(status, 201, raw.toString());
    return body.Id;
  }

  const ipam = (...Config: object[]): object => ({ IPAM: { Config } });

  async function network(ref: string): Promise<NetworkWire> {
    return (await engine.get<NetworkWire>(`/networks/${ref}`)).body;
  }

  async function runs(name: string, NetworkMode: string, body: object = {}): Promise<string> {
    return await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode }, ...body }, name);
  }

  async function settings(ref: string): Promise<Inspect['NetworkSettings']> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body.NetworkSettings;
  }

  /** The exit code of a command in a running container, and what it wrote. */
  async function exec(ref: string, ...Cmd: string[]): Promise<{ code: number; said: string }> {
    const created = await engine.post<{ Id: string }>(`/containers/${ref}/exec`, {
      Cmd,
      AttachStdout: true,
      Tty: true,
    });
    const { raw } = await engine.post(`/exec/${created.body.Id}/start`, { Tty: true });
    const { body } = await engine.get<{ ExitCode: number }>(`/exec/${created.body.Id}/json`);
    return { code: body.ExitCode, said: raw.toString().replaceAll('\r', '') };
  }

  const reaches = async (from: string, ip: string): Promise<boolean> =>
    (await exec(from, 'ping', '-c', '1', '-W', '1', ip)).code === 0;

  test('a network is listed, inspected by name and prefix, and removed', async () => {
    const Id = await create('plain', { Labels: { a: 'b' }, Options: { colour: 'red' } });

    const shown = await network(Id.slice(0, 10));
    const link = await engine.onHost(['ip', '-4', '-brief', 'address', 'show', `gn-${Id.slice(0, 12)}`]);

    assert.deepEqual([shown.Name, shown.Driver, shown.Scope, shown.Internal], ['plain', 'bridge', 'local', false]);
    assert.deepEqual([shown.Labels, shown.Options], [{ a: 'b' }, { colour: 'red' }]);
    const [pool] = shown.IPAM.Config;
    assert.ok(link.includes(`${pool?.Gateway}/`), link);
    assert.equal((await engine.delete('/networks/plain')).status, 204);
    assert.equal((await engine.get('/networks/plain')).status, 404);
  });

  test('two containers of a network reach each other, those of others and of the default one do not', async () => {
    await create('one', ipam({ Subnet: '10.1.0.0/24', Gateway: '10.1.0.254' }));
    await create('two', ipam({ Subnet: '10.2.0.0/24' }));
    await runs('one-a', 'one');
    await runs('one-b', 'one');
    await runs('two-a', 'two');
    await runs('default-a', 'default');
    const [b, other, usual] = await Promise.all(['one-b', 'two-a', 'default-a'].map(settings));

    const answers = await Promise.all([
      reaches('one-a', b!.Networks['one']!.IPAddress),
      reaches('one-a', other!.Networks['two']!.IPAddress),
      reaches('one-a', usual!.IPAddress),
      reaches('two-a', b!.Networks['one']!.IPAddress),
      reaches('default-a', b!.Networks['one']!.IPAddress),
      reaches('one-a', '10.1.0.254'),
    ]);

    assert.deepEqual(answers, [true, false, false, false, false, true]);
    assert.deepEqual([b!.IPAddress, b!.Gateway, b!.Networks['one']!.Gateway], ['', '', '10.1.0.254']);
    for (const name of ['one-a', 'one-b', 'two-a', 'default-a']) await engine.delete(`/containers/${name}?force=1`);
  });

  test('a container gets the address and the names that it asks for', async () => {
    const EndpointsConfig = {
      one: { IPAMConfig: { IPv4Address: '10.1.0.77' }, Aliases: ['web'] },
    };
    const id = await runs('fixed', 'one', { Hostname: 'own', NetworkingConfig: { EndpointsConfig } });

    const { Networks } = await settings('fixed');
    const inside = await exec('fixed', 'ip', 'addr', 'show', 'eth0');
    const again = await engine.create(['true'], {
      HostConfig: { NetworkMode: 'one' },
      NetworkingConfig: { EndpointsConfig },
    });
    const refused = await engine.post<Message>(`/containers/${again}/start`);

    assert.deepEqual(Networks['one']?.IPAMConfig, { IPv4Address: '10.1.0.77' });
    assert.deepEqual(Networks['one'].Aliases, ['web', id.slice(0, 12), 'own']);
    assert.match(inside.said, /10\.1\.0\.77\/24/);
    assert.deepEqual([refused.status, refused.body.message], [403, 'Address already in use']);
    const members = Object.values((await network('one')).Containers);
    assert.deepEqual(
      members.map(({ Name, IPv4Address }) => [Name, IPv4Address]),
      [['fixed', '10.1.0.77/24']],
    );
    for (const name of ['fixed', again]) await engine.delete(`/containers/${name}?force=1`);
  });

  test('a running container is connected and disconnected, also while it is paused', async () => {
    await runs('moving', 'one');
    await runs('near', 'two');
    const near = (await settings('near')).Networks['two']!.IPAddress;
    const connect = async (): Promise<number> =>
      (await engine.post('/networks/two/connect', { Container: 'moving' })).status;
    const leave = async (): Promise<number> =>
      (await engine.post('/networks/two/disconnect', { Container: 'moving' })).status;

    assert.equal(await reaches('moving', near), false);
    assert.equal(await connect(), 200);
    assert.equal(await reaches('moving', near), true);
    assert.deepEqual(Object.keys((await settings('moving')).Networks), ['one', 'two']);
    const hosts = (await exec('moving', 'cat', '/etc/hosts')).said;
    assert.ok(hosts.includes(`${(await settings('moving')).Networks['two']!.IPAddress}\t`));
    const twice = await engine.post<Message>('/networks/two/connect', { Container: 'moving' });
    assert.deepEqual(
      [twice.status, twice.body.message],
      [403, 'endpoint with name moving already exists in network two'],
    );
    assert.equal(await leave(), 200);
    assert.equal(await reaches('moving', near), false);
    await engine.post('/containers/moving/pause');
    assert.deepEqual([await connect(), await leave(), await connect()], [200, 200, 200]);
    await engine.post('/containers/moving/unpause');
    assert.equal(await reaches('moving', near), true);
    for (const name of ['moving', 'near']) await engine.delete(`/containers/${name}?force=1`);
  });

  test('connections of a stopped container count from its next start on', async () => {
    const id = await engine.create(['sleep', '1000'], { HostConfig: { NetworkMode: 'one' } }, 'resting');
    const body = { Container: 'resting', EndpointConfig: { IPAMConfig: { IPv4Address: '10.2.0.9' }, Aliases: ['x'] } };
    await engine.post('/networks/two/connect', body);
    const before = (await settings('resting')).Networks;
    await engine.post('/containers/resting/start');
    const running = (await settings('resting')).Networks;
    await engine.post('/containers/resting/stop?t=0');
    await engine.post('/networks/one/disconnect', { Container: 'resting', Force: true });
    const after = (await settings('resting')).Networks;

    assert.deepEqual([before['two']?.IPAddress, before['two']?.NetworkID], ['', '']);
    assert.deepEqual([running['two']?.IPAddress, Object.keys(running)], ['10.2.0.9', ['one', 'two']]);
    assert.deepEqual([Object.keys(after), after['two']?.IPAddress], [['two'], '']);
    assert.deepEqual(after['two']?.Aliases?.slice(0, 2), ['x', id.slice(0, 12)]);
    const left = await engine.post<Message>('/networks/one/disconnect', { Container: 'resting' });
    assert.deepEqual([left.status, left.body.message], [500, `container ${id} is not connected to network one`]);
    await engine.delete('/containers/resting?force=1');
  });

  test('several networks come from the creation, the first by name leads out', async () => {
    await create('aaa', ipam({ Subnet: '10.3.0.0/24' }));
    const EndpointsConfig = { one: {}, aaa: { IPAMConfig: { IPv4Address: '10.3.0.8' } } };
    const ports = {
      ExposedPorts: { '80/tcp': {} },
      HostConfig: { NetworkMode: 'one', PortBindings: { '80/tcp': [{ HostPort: '8101' }] } },
    };
    await engine.run(
      ['httpd', '-f', '-p', '80', '-h', '/etc'],
      { ...ports, NetworkingConfig: { EndpointsConfig } },
      'both',
    );
    const route = async (): Promise<string> => (await exec('both', 'ip', 'route', 'show', 'default')).said.trim();

    assert.match(await route(), /via 10\.3\.0\.1/);
    assert.match(await engine.fetchText(8101), /404/);
    await engine.post('/networks/aaa/disconnect', { Container: 'both' });
    assert.match(await route(), /via 10\.1\.0\.254/);
    assert.match(await engine.fetchText(8101), /404/);
    assert.equal((await settings('both')).Ports['80/tcp']?.[0]?.HostPort, '8101');
    await engine.post('/networks/aaa/connect', { Container: 'both' });
    assert.match(await route(), /via 10\.3\.0\.1/);
    assert.match(await engine.fetchText(8101), /404/);
    await engine.delete('/containers/both?force=1');
    await engine.delete('/networks/aaa');
  });

  test('an internal network has no way out and publishes nothing', async () => {
    await create('inner', { Internal: true, ...ipam({ Subnet: '10.4.0.0/24' }) });
    const HostConfig = { NetworkMode: 'inner', PortBindings: { '80/tcp': [{ HostPort: '8102' }] } };
    await engine.run(['sleep', '1000'], { HostConfig, ExposedPorts: { '81/tcp': {} } }, 'inner-a');
    await runs('inner-b', 'inner');
    await engine.onHost(['ip', 'address', 'add', '198.51.100.1/32', 'dev', 'lo']);

    assert.deepEqual((await settings('inner-a')).Ports, {});
    assert.doesNotMatch((await exec('inner-a', 'ip', 'route')).said, /default/);
    assert.equal(await reaches('inner-a', (await settings('inner-b')).Networks['inner']!.IPAddress), true);
    assert.equal(await reaches('inner-a', '198.51.100.1'), false);
    for (const name of ['inner-a', 'inner-b']) await engine.delete(`/containers/${name}?force=1`);
  });

  test('the options of a bridge count under both prefixes', async () => {
    const options = { 'bridge.name': 'named0', 'driver.mtu': '1400', 'bridge.enable_icc': 'false' };
    const Options = Object.fromEntries(
      Object.entries(options).map(([key, value]) => [`com.engine.network.${key}`, value]),
    );
    await create('options', { Options: { ...Options, 'com.docker.network.bridge.host_binding_ipv4': '127.0.0.1' } });
    const HostConfig = { NetworkMode: 'options', PortBindings: { '80/tcp': [{ HostPort: '8103' }] } };
    await engine.run(['sleep', '1000'], { HostConfig }, 'opt-a');
    await runs('opt-b', 'options');
    const { Networks, Ports } = await settings('opt-a');

    assert.match(await engine.onHost(['ip', 'link', 'show', 'named0']), /mtu 1400/);
    assert.match((await exec('opt-a', 'ip', 'link', 'show', 'eth0')).said, /mtu 1400/);
    assert.equal(Ports['80/tcp']?.[0]?.HostIp, '127.0.0.1');
    assert.equal(await reaches('opt-b', Networks['options']!.IPAddress), false);
    assert.equal(await reaches('opt-b', Networks['options']!.Gateway), true);
    const same = await engine.post<Message>('/networks/create', { Name: 'options2', Options });
    assert.equal(same.status, 403);
    for (const name of ['opt-a', 'opt-b']) await engine.delete(`/containers/${name}?force=1`);
    await engine.delete('/networks/options');
    assert.match(
      await engine.onHost([
        'sh',
        '-c',
        'for n in $(seq 600); do ip link show named0 2>/dev/null || exit 0; sleep 0.1; done',
      ]),
      /^$|named0/,
    );
  });

  test('a network in use stays, one without containers is dangling', async () => {
    await runs('user', 'one');
    const Id = (await network('one')).Id;

    const refused = await engine.delete<Message>('/networks/one');
    const lists = await Promise.all(
      [{ dangling: ['true'] }, { type: ['custom'], name: ['on'] }, { driver: ['null'] }, { dangling: ['false'] }].map(
        async (filters) =>
          (
            await engine.get<NetworkWire[]>(`/networks?filters=${encodeURIComponent(JSON.stringify(filters))}`)
          ).body.map(({ Name }) => Name),
      ),
    );

    const reason = `error while removing network: network one id ${Id} has active endpoints`;
    assert.deepEqual([refused.status, refused.body.message], [403, reason]);
    assert.deepEqual(lists, [['two', 'inner'], ['one'], ['none'], ['none', 'host', 'bridge', 'one']]);
    await engine.delete('/containers/user?force=1');
  });

  test('a name may be taken twice, unless the client asks for a check', async () => {
    const Id = await create('twin');
    const second = await engine.post<{ Id: string; Warning: string }>('/networks/create', { Name: 'twin' });
    const checked = await engine.post<Message>('/networks/create', { Name: 'twin', CheckDuplicate: true });

    assert.equal(second.body.Warning, `Network with name twin (id : ${Id}) already exists`);
    assert.deepEqual([checked.status, checked.body.message], [409, 'network with name twin already exists']);
    assert.equal((await engine.get<Message>('/networks/twin')).status, 400);
    for (const id of [Id, second.body.Id]) assert.equal((await engine.delete(`/networks/${id}`)).status, 204);
  });

  test('a kill of the daemon leaves networks and connections, and its successor goes on with them', async () => {
    const HostConfig = { NetworkMode: 'one', PortBindings: { '80/tcp': [{ HostPort: '8104' }] } };
    await engine.run(
      ['httpd', '-f', '-p', '80', '-h', '/etc'],
      { HostConfig, ExposedPorts: { '80/tcp': {} } },
      'lasting',
    );
    await engine.post('/networks/two/connect', { Container: 'lasting' });
    const before = await settings('lasting');
    await engine.kill();
    assert.match(await engine.fetchText(8104), /404/);
    await engine.onHost(['nft', 'flush', 'ruleset']);
    await engine.startAgain();

    const after = await settings('lasting');
    await runs('next', 'two');

    assert.deepEqual(after, before);
    assert.match(await engine.fetchText(8104), /404/);
    assert.equal(await reaches('next', after.Networks['two']!.IPAddress), true);
    assert.notEqual((await settings('next')).Networks['two']!.IPAddress, after.Networks['two']!.IPAddress);
    await engine.post('/networks/two/disconnect', { Container: 'lasting' });
    assert.equal(await reaches('next', after.Networks['two']!.IPAddress), false);
    for (const name of ['lasting', 'next']) await engine.delete(`/containers/${name}?force=1`);
  });

  test('a start fails when its network is gone, and says which', async () => {
    const gone = await create('gone');
    const id = await runs('orphan', 'gone');
    await engine.post(`/containers/${id}/stop?t=0`);
    await engine.delete('/networks/gone');
    await create('gone');

    const refused = await engine.post<Message>(`/containers/${id}/start`);

    assert.deepEqual([refused.status, refused.body.message], [404, `network ${gone} not found`]);
    await engine.delete(`/containers/${id}`);
    await engine.delete('/networks/gone');
  });
});

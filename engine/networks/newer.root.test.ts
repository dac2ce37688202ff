import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { NetworkWire } from './schema.ts';

type Message = { message: string };

suite('networks of newer clients', { concurrency: false }, () => {
  let engine: TestEngine;
  const apis = new Map<string, Api>();
  before(async () => {
    engine = await TestEngine.start({ version: '1.55' });
  });
  after(async () => {
    for (const api of apis.values()) api[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
  });

  function at(version: string): Api {
    const api = apis.get(version) ?? new Api(engine.socketPath, `/v${version}`);
    apis.set(version, api);
    return api;
  }

  const inspect = async (name: string, version = '1.55'): Promise<NetworkWire> =>
    (await at(version).get<NetworkWire>(`/networks/${name}`)).body;

  test('a second network of a name is 409 from 1.44 on, below with CheckDuplicate alone', async () => {
    await engine.post('/networks/create', { Name: 'twice' });
    const answers: number[] = [];
    for (const [version, body] of [
      ['1.44', {}],
      ['1.55', { CheckDuplicate: false }],
      ['1.43', { CheckDuplicate: true }],
      ['1.43', {}],
    ] as const) {
      const { status, body: made } = await at(version).post<{ Id: string }>('/networks/create', {
        Name: 'twice',
        ...body,
      });
      answers.push(status);
      if (status === 201) await engine.delete(`/networks/${made.Id}`);
    }
    await engine.delete('/networks/twice');

    assert.deepEqual(answers, [409, 409, 409, 201]);
  });

  test('an inspect with a scope finds networks of it alone', async () => {
    await engine.post('/networks/create', { Name: 'near' });
    const statuses: number[] = [];
    for (const scope of ['local', '', 'swarm', 'global']) {
      statuses.push((await engine.get(`/networks/near?scope=${scope}`)).status);
    }
    await engine.delete('/networks/near');

    assert.deepEqual(statuses, [200, 200, 404, 404]);
  });

  test('IPv6 without a subnet takes one of unique local addresses, which no two networks share', async () => {
    const body = { EnableIPv6: true };
    await engine.post('/networks/create', { Name: 'six', ...body });
    await engine.post('/networks/create', { Name: 'other', ...body });
    const older = await at('1.24').post<Message>('/networks/create', { Name: 'old', ...body });
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'six' } }, 'box');
    const configs = [await inspect('six'), await inspect('other')].map(({ IPAM }) => IPAM.Config);
    const address = (await engine.get<Inspect>('/containers/box/json')).body.NetworkSettings.Networks['six']!;
    await engine.delete('/containers/box?force=1');
    for (const name of ['six', 'other']) await engine.delete(`/networks/${name}`);

    assert.equal(older.status, 404);
    const subnets = configs.map((config) => config.at(-1)!.Subnet!);
    for (const subnet of subnets) assert.match(subnet, /^fd[0-9a-f]{2}:[0-9a-f:]+::\/64$/);
    assert.notEqual(subnets[0], subnets[1]);
    assert.equal(configs[0]!.length, 2);
    assert.equal(address.GlobalIPv6Address, subnets[0]!.replace('/64', '2'));
    assert.equal(address.IPv6Gateway, configs[0]![1]!.Gateway);
  });

  test('EnableIPv4: shown from 1.48 on; false needs IPv6 and a bridge, and is ignored below', async () => {
    const answers: unknown[] = [];
    for (const [version, EnableIPv6, Driver] of [
      ['1.48', false, 'bridge'],
      ['1.48', true, 'macvlan'],
      ['1.47', false, 'bridge'],
    ] as const) {
      const body = { Name: 'four', EnableIPv4: false, EnableIPv6, Driver };
      answers.push((await at(version).post('/networks/create', body)).status);
    }
    const shown = [await inspect('four', '1.47'), await inspect('four', '1.48')].map(({ EnableIPv4 }) => EnableIPv4);
    const listed = (await engine.get<NetworkWire[]>('/networks')).body.map(({ EnableIPv4 }) => EnableIPv4);
    await engine.delete('/networks/four');

    assert.deepEqual(answers, [400, 501, 201]);
    assert.deepEqual(shown, [undefined, true]);
    assert.deepEqual([...new Set(listed)], [true]);
  });

  test('containers of a network without IPv4 find each other, also under the next daemon', async () => {
    const body = { Name: 'six', EnableIPv4: false, EnableIPv6: true, IPAM: { Config: [{ Subnet: 'fd00:66::/64' }] } };
    const made = await at('1.48').post('/networks/create', body);
    const HostConfig = { NetworkMode: 'six' };
    await engine.run(['sleep', '1000'], { HostConfig }, 'one');
    await engine.run(['sleep', '1000'], {}, 'two');
    const connected = await engine.post('/networks/six/connect', { Container: 'two' });
    const names = async (): Promise<string> => {
      const exec = { Cmd: ['ping', '-6', '-c', '1', 'one'], AttachStdout: true, AttachStderr: true, Tty: true };
      const { Id } = (await engine.post<{ Id: string }>('/containers/two/exec', exec)).body;
      return (await engine.post(`/exec/${Id}/start`, { Tty: true })).raw.toString();
    };

    const said = [await names()];
    await engine.kill();
    await engine.startAgain();
    said.push(await names());
    const shown = await inspect('six', '1.48');
    const { NetworkSettings } = (await engine.get<Inspect>('/containers/one/json')).body;
    const { IPAddress, GlobalIPv6Address } = NetworkSettings.Networks['six']!;
    for (const name of ['one', 'two']) await engine.delete(`/containers/${name}?force=1`);
    const removed = await engine.delete('/networks/six');

    assert.deepEqual([made.status, connected.status, removed.status], [201, 200, 204]);
    for (const text of said) assert.match(text, /bytes from fd00:66::2/);
    assert.deepEqual(
      [shown.EnableIPv4, shown.EnableIPv6, IPAddress, GlobalIPv6Address],
      [false, true, '', 'fd00:66::2'],
    );
  });

  test('Status counts addresses from 1.52 on: reserved ones, the gateway, and those of containers', async () => {
    const Config = [
      { Subnet: '10.3.0.0/24', IPRange: '10.3.0.128/25', AuxiliaryAddresses: { a: '10.3.0.5' } },
      { Subnet: 'fd00:3::/64' },
    ];
    await engine.post('/networks/create', { Name: 'counted', EnableIPv6: true, IPAM: { Config } });
    const before = (await inspect('counted')).Status;
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'counted' } }, 'box');
    const during = (await inspect('counted')).Status;
    const older = (await inspect('counted', '1.51')).Status;
    await engine.delete('/containers/box?force=1');
    await engine.delete('/networks/counted');

    const ofSix = { DynamicIPsAvailable: Number.MAX_SAFE_INTEGER };
    assert.deepEqual(before?.IPAM.Subnets, {
      '10.3.0.0/24': { IPsInUse: 4, DynamicIPsAvailable: 126 },
      'fd00:3::/64': { IPsInUse: 2, ...ofSix },
    });
    assert.deepEqual(during?.IPAM.Subnets, {
      '10.3.0.0/24': { IPsInUse: 5, DynamicIPsAvailable: 125 },
      'fd00:3::/64': { IPsInUse: 3, ...ofSix },
    });
    assert.equal(older, undefined);
    assert.equal((await inspect('host')).Status, undefined);
  });

  test('an empty list of port bindings publishes any port from 1.52 on, with a warning', async () => {
    const results: unknown[] = [];
    for (const version of ['1.51', '1.52']) {
      const { body } = await at(version).post<{ Warnings: string[] }>('/containers/create?name=box', {
        ...{ Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { PortBindings: { '80/tcp': [], '81/tcp': null } } },
      });
      await engine.post('/containers/box/start');
      const { NetworkSettings } = (await engine.get<Inspect>('/containers/box/json')).body;
      const published = Object.entries(NetworkSettings.Ports).map(([port, hosts]) => [
        port,
        Number(hosts?.[0]?.HostPort) > 0,
      ]);
      results.push([body.Warnings.map((text) => text.includes('80/tcp, 81/tcp')), published]);
      await engine.delete('/containers/box?force=1');
    }

    assert.deepEqual(results, [
      [[], []],
      [
        [true],
        [
          ['80/tcp', true],
          ['81/tcp', true],
        ],
      ],
    ]);
  });

  test('options of bridges are checked at the creation', async () => {
    const answers: unknown[] = [];
    for (const [option, value] of [
      ['gateway_mode_ipv4', 'nat'],
      ['gateway_mode_ipv4', 'routed'],
      ['gateway_mode_ipv6', 'isolated'],
      ['gateway_mode_ipv4', 'nat-unprotected'],
      ['gateway_mode_ipv4', 'x'],
      ['inhibit_ipv4', 'false'],
      ['inhibit_ipv4', 'true'],
      ['inhibit_ipv4', 'x'],
      ['trusted_host_interfaces', 'eth0:eth1'],
      ['trusted_host_interfaces', 'eth0:"; drop'],
    ]) {
      const Options = { [`com.docker.network.bridge.${option}`]: value };
      answers.push((await engine.post('/networks/create', { Name: 'mode', Internal: true, Options })).status);
      await engine.delete('/networks/mode');
    }

    assert.deepEqual(answers, [201, 201, 201, 201, 400, 201, 201, 400, 201, 400]);
  });

  test('FirewallBackend of /info', async () => {
    const [newer, older] = await Promise.all(
      ['1.49', '1.48'].map(async (version) => (await at(version).get<{ FirewallBackend?: object }>('/info')).body),
    );

    assert.deepEqual([newer?.FirewallBackend, older?.FirewallBackend], [{ Driver: 'nftables' }, undefined]);
  });
});

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Made = { Id: string; Warnings: string[]; message?: string };
type Endpoints = Record<string, object | null>;

const MAC = '02:42:aa:bb:cc:01';
const OTHER_MAC = '02:42:aa:bb:cc:02';
const SYSCTLS = 'com.docker.network.endpoint.sysctls';
const IFNAME = 'com.docker.network.endpoint.ifname';

suite('endpoints of newer clients', { concurrency: false }, () => {
  let engine: TestEngine;
  const apis = new Map<string, Api>();
  before(async () => {
    engine = await TestEngine.start({ version: '1.55' });
    for (const [Name, Subnet] of [
      ['one', '10.1.0.0/24'],
      ['two', '10.2.0.0/24'],
    ]) {
      await engine.post('/networks/create', { Name, IPAM: { Config: [{ Subnet }] } });
    }
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

  const shown = async (version = '1.55'): Promise<Inspect> =>
    (await at(version).get<Inspect>('/containers/box/json')).body;

  const inside = async (...command: string[]): Promise<string> =>
    await engine.onHost(['nsenter', '-t', String((await shown()).State.Pid), '-n', ...command]);

  /** Runs the container `box` for the time of `look`; the message of a refusal is its result. */
  async function withBox<T>(
    version: string,
    { endpoints, ...body }: { endpoints?: Endpoints } & Record<string, unknown>,
    look: (made: Made) => Promise<T>,
  ): Promise<T | string> {
    const { status, body: made } = await at(version).post<Made>('/containers/create?name=box', {
      ...{ Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { NetworkMode: 'one' } },
      ...(endpoints !== undefined && { NetworkingConfig: { EndpointsConfig: endpoints } }),
      ...body,
    });
    if (status !== 201) return `${status} ${made.message}`;
    try {
      const started = await engine.post<{ message: string }>('/containers/box/start');
      return started.status === 204 ? await look(made) : `${started.status} ${started.body.message}`;
    } finally {
      await engine.delete('/containers/box?force=1');
    }
  }

  const macs = async (made: Made): Promise<unknown> => {
    const { Config, NetworkSettings } = await shown();
    const mac = NetworkSettings.Networks['one']!.MacAddress;
    return [made.Warnings.length, Config.MacAddress, mac.startsWith('02:42:0a:01') ? 'made' : mac];
  };

  for (const [version, body, result] of [
    ['1.43', { MacAddress: MAC }, [0, MAC, MAC]],
    ['1.44', { MacAddress: MAC }, [1, MAC, MAC]],
    ['1.51', { MacAddress: MAC }, [1, MAC, MAC]],
    ['1.52', { MacAddress: MAC }, [1, MAC, MAC]],
    ['1.43', { endpoints: { one: { MacAddress: MAC } } }, [0, undefined, 'made']],
    ['1.44', { endpoints: { one: { MacAddress: MAC } } }, [0, undefined, MAC]],
    ['1.43', { MacAddress: MAC, endpoints: { one: { MacAddress: OTHER_MAC } } }, [0, MAC, MAC]],
    ['1.44', { MacAddress: MAC, endpoints: { one: { MacAddress: MAC.toUpperCase() } } }, [1, MAC, MAC]],
    [
      '1.44',
      { MacAddress: MAC, endpoints: { one: { MacAddress: OTHER_MAC } } },
      '400 the container-wide MAC address must match the endpoint-specific MAC address for the main network, or be left empty',
    ],
  ] as const) {
    test(`hardware addresses of a creation at ${version}: ${JSON.stringify(body)}`, async () => {
      assert.deepEqual(await withBox(version, body, macs), result);
    });
  }

  test('a hardware address is shown before the first start, and not after the end', async () => {
    await engine.create(['sleep', '1000'], { HostConfig: { NetworkMode: 'one' } }, 'box');
    await engine.post('/networks/two/connect', { Container: 'box', EndpointConfig: { MacAddress: MAC } });
    const look = async (): Promise<string> => (await shown()).NetworkSettings.Networks['two']!.MacAddress;

    const created = await look();
    await engine.post('/containers/box/start');
    const running = await look();
    await engine.post('/containers/box/stop?t=0');

    assert.deepEqual([created, running, await look()], [MAC, MAC, '']);
    await engine.delete('/containers/box?force=1');
  });

  test('the hardware address of a connection counts from 1.54 on', async () => {
    const connected: unknown[] = [];
    for (const version of ['1.53', '1.54']) {
      await withBox('1.55', {}, async () => {
        const body = { Container: 'box', EndpointConfig: { MacAddress: MAC } };
        assert.equal((await at(version).post('/networks/two/connect', body)).status, 200);
        connected.push((await shown()).NetworkSettings.Networks['two']!.MacAddress === MAC);
      });
    }

    assert.deepEqual(connected, [false, true]);
  });

  test('names are DNSNames from 1.44 on, and no aliases from 1.45 on, before and after a rename', async () => {
    const names: unknown[] = [];
    await withBox('1.55', { endpoints: { one: { Aliases: ['web', 'web'] } }, Hostname: 'own' }, async ({ Id }) => {
      const short = Id.slice(0, 12);
      const look = async (): Promise<void> => {
        for (const version of ['1.43', '1.44', '1.45']) {
          const { Aliases, DNSNames } = (await shown(version)).NetworkSettings.Networks['one']!;
          const list =
            await at(version).get<{ Id: string; NetworkSettings: Inspect['NetworkSettings'] }[]>('/containers/json');
          const listed = list.body.find((one) => one.Id === Id)!.NetworkSettings.Networks['one']!;
          assert.deepEqual([listed.Aliases, listed.DNSNames], [Aliases, DNSNames]);
          names.push([Aliases, DNSNames].map((all) => all?.map((name) => name.replace(short, 'short'))));
        }
      };
      await look();
      await engine.post('/containers/box/rename?name=other');
      const { body } = await engine.get<Inspect>('/containers/other/json');
      names.push(body.NetworkSettings.Networks['one']!.DNSNames?.[0]);
      await engine.post('/containers/other/rename?name=box');
    });

    assert.deepEqual(names, [
      [['web', 'short', 'own'], undefined],
      [
        ['web', 'short', 'own'],
        ['box', 'web', 'short', 'own'],
      ],
      [
        ['web', 'web'],
        ['box', 'web', 'short', 'own'],
      ],
      'other',
    ]);
  });

  test('a container on the default bridge has no names, also by the name `default` of its network', async () => {
    const endpoints = { default: { MacAddress: MAC } };
    const networks = await withBox('1.55', { endpoints, HostConfig: {} }, async () => {
      return Object.entries((await shown()).NetworkSettings.Networks);
    });

    assert.ok(Array.isArray(networks));
    const [[name, { DNSNames, Aliases, MacAddress }]] = networks as [
      [string, Inspect['NetworkSettings']['Networks'][string]],
    ];
    assert.deepEqual([networks.length, name, DNSNames, Aliases, MacAddress], [1, 'bridge', null, null, MAC]);
  });

  test('the endpoint of the highest GwPriority leads out and publishes, also when it comes and goes', async () => {
    const ways: unknown[] = [];
    const look = async (): Promise<void> => {
      const [, gateway] = /default via (\S+)/.exec(await inside('ip', 'route')) ?? [];
      const { body } = await engine.get<Inspect>('/containers/box/json');
      ways.push([gateway, body.NetworkSettings.Networks['two']?.GwPriority]);
      assert.equal(await engine.fetchText(18_080), 'hi');
    };
    const Cmd = ['sh', '-c', 'mkdir /www; echo -n hi >/www/index.html; exec httpd -f -p 80 -h /www'];
    const HostConfig = { NetworkMode: 'one', PortBindings: { '80/tcp': [{ HostPort: '18080' }] } };
    await withBox('1.55', { Cmd, HostConfig, endpoints: { one: { GwPriority: -1 }, two: { GwPriority: 3 } } }, look);
    await withBox('1.55', { Cmd, HostConfig }, async () => {
      await look();
      await engine.post('/networks/two/connect', { Container: 'box', EndpointConfig: { GwPriority: 1 } });
      await look();
      await engine.post('/networks/two/disconnect', { Container: 'box' });
      await look();
    });

    assert.deepEqual(ways, [
      ['10.2.0.1', 3],
      ['10.1.0.1', undefined],
      ['10.2.0.1', 1],
      ['10.1.0.1', undefined],
    ]);
  });

  for (const network of ['one', 'bridge', 'lan']) {
    test(`an interface of ${network} has the name and the settings of its endpoint, at the start and by connect`, async () => {
      const isMade = network === 'lan';
      if (isMade) await engine.post('/networks/create', { Name: network, Driver: 'macvlan' });
      const settings = {
        DriverOpts: {
          [SYSCTLS]: 'net.ipv4.conf.IFNAME.log_martians=1,net.ipv4.neigh.ifname.app_solicit=7',
          [IFNAME]: 'wan0',
        },
      };
      const look = async (): Promise<string[]> => {
        const conf = await inside('cat', '/proc/sys/net/ipv4/conf/wan0/log_martians');
        const neigh = await inside('cat', '/proc/sys/net/ipv4/neigh/wan0/app_solicit');
        return [conf.trim(), neigh.trim(), ((await inside('ip', '-4', 'address')).match(/inet (?!127)/g) ?? []).join()];
      };

      const body = { HostConfig: { NetworkMode: network }, endpoints: { [network]: settings } };
      const started = await withBox('1.55', body, look);
      const connected = await withBox('1.55', { HostConfig: { NetworkMode: 'two' } }, async () => {
        const { status, body: refusal } = await engine.post<{ message: string } | undefined>(
          `/networks/${network}/connect`,
          { Container: 'box', EndpointConfig: settings },
        );
        assert.equal(status, 200, refusal?.message ?? '');
        return await look();
      });

      if (isMade) await engine.delete(`/networks/${network}`);
      assert.deepEqual(
        [started, connected],
        [
          ['1', '7', 'inet '],
          ['1', '7', 'inet ,inet '],
        ],
      );
    });
  }

  test('a second interface of a name is refused, and nothing of it stays', async () => {
    const endpoints = { one: { DriverOpts: { [IFNAME]: 'same' } }, two: { DriverOpts: { [IFNAME]: 'same' } } };

    const refused = await withBox('1.55', { endpoints }, async () => 'ran');
    const { body } = await engine.get<{ Containers: object }>('/networks/one');

    assert.match(refused, /^500 .*interface same/);
    assert.deepEqual(body.Containers, {});
  });

  test('the prefix of interface names of a network', async () => {
    const Options = { 'com.docker.network.container_iface_prefix': 'lan' };
    await engine.post('/networks/create', { Name: 'prefixed', Options });
    const names = await withBox('1.55', { HostConfig: { NetworkMode: 'prefixed' } }, async () => {
      await engine.post('/networks/one/connect', { Container: 'box' });
      return [...(await inside('ip', '-o', 'link')).matchAll(/^\d+: ([a-z]+\d)/gm)].map(([, name]) => name);
    });
    await engine.delete('/networks/prefixed');
    const bad = await engine.post('/networks/create', {
      Name: 'bad',
      Options: { 'com.docker.network.container_iface_prefix': 'a/b' },
    });

    assert.deepEqual(names, ['lan0', 'eth0']);
    assert.equal(bad.status, 400);
  });

  const UNKNOWN = 'unrecognised network interface sysctl';
  for (const [DriverOpts, refusal] of [
    [{ [SYSCTLS]: 'net.ipv4.conf.eth0.log_martians=1' }, `400 ${UNKNOWN}`],
    [{ [SYSCTLS]: '' }, `400 ${UNKNOWN}`],
    [{ [SYSCTLS]: 'net.ipv4.conf.IFNAME.log_martians' }, `400 ${UNKNOWN}`],
    [{ [SYSCTLS]: 'kernel.IFNAME.x=1' }, `400 ${UNKNOWN}`],
    [{ [SYSCTLS]: 'net.ipv4.conf.IFNAME./../../../kernel/hostname=x' }, `400 ${UNKNOWN}`],
    [{ [SYSCTLS]: 'net.ipv4.../conf.IFNAME.x=1' }, `400 ${UNKNOWN}`],
    [{ [SYSCTLS]: 'net.ipv4.conf.IFNAME.nope=1' }, '500 /proc/sys/net/ipv4/conf/eth0/nope is not a sysctl file'],
    [{ [SYSCTLS]: 'net.ipv4.conf.IFNAME.log_martians=abc' }, '500 the kernel refuses abc'],
    [{ [IFNAME]: 'a/b' }, `400 ${IFNAME}: a/b is not a valid`],
    [{ [IFNAME]: '..' }, `400 ${IFNAME}: .. is not a valid`],
    [{ [IFNAME]: 'lo' }, `400 ${IFNAME}: lo is not a valid`],
    [{ [IFNAME]: 'name-of-16-chars' }, `400 ${IFNAME}: name-of-16-chars is not a valid`],
  ] as const) {
    test(`DriverOpts ${JSON.stringify(DriverOpts)} are refused, and the address is free again`, async () => {
      const refused = await withBox('1.55', { endpoints: { one: { DriverOpts } } }, async () => 'ran');
      const address = await withBox('1.55', {}, async () => (await shown()).NetworkSettings.Networks['one']!.IPAddress);

      assert.ok(refused.startsWith(refusal), refused);
      assert.equal(address, '10.1.0.2');
    });
  }

  test('settings of eth0 in HostConfig count below 1.48, and are refused from then on', async () => {
    const HostConfig = { NetworkMode: 'one', Sysctls: { 'net.ipv4.conf.eth0.log_martians': '1' } };
    const results: unknown[] = [];
    for (const version of ['1.47', '1.48']) {
      const look = async (): Promise<string> => await inside('cat', '/proc/sys/net/ipv4/conf/eth0/log_martians');
      results.push((await withBox(version, { HostConfig }, look)).slice(0, 46));
    }

    assert.deepEqual(results, ['1\n', '400 interface specific sysctl setting "net.ipv']);
  });
});

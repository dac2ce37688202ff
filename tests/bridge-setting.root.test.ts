import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import type { Inspect, Summary } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { becomeTestHost } from '@gantry/testing/networks/network-host.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const machine = becomeTestHost();
const netns = `/proc/${process.pid}/fd/${machine.host}`;

/** Containers that are started, by their names. */
const CONTAINERS: Record<string, object> = {
  default: {},
  bridge: { HostConfig: { NetworkMode: 'bridge' } },
  published: { ExposedPorts: { '80/tcp': {} }, HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '8080' }] } } },
  none: { ExposedPorts: { '80/tcp': {} }, HostConfig: { NetworkMode: 'none' } },
  host: { ExposedPorts: { '80/tcp': {} }, HostConfig: { NetworkMode: 'host' } },
  disabled: { ExposedPorts: { '80/tcp': {} }, NetworkDisabled: true },
  unknown: { HostConfig: { NetworkMode: 'nope' } },
};

test('without a bridge everything is answered as by dockerd', async () => {
  const flags = ['--bridge=none'];
  let expected: unknown;
  {
    await using dockerd = await Dockerd.start(flags, netns);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
    expected = await answers(dockerd.api);
  }
  await using engine = await TestEngine.start({ flags, netns });

  assert.deepEqual(await answers(engine), expected);
});

for (const address of ['10.9.0.1/24', '']) {
  test(`a bridge with the address "${address}" is used as by dockerd, and stays`, async () => {
    const flags = ['--bridge=mine0'];
    let expected: unknown;
    {
      using _bridge = makeBridge(address);
      await using dockerd = await Dockerd.start(flags, netns);
      await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
      expected = await answers(dockerd.api);
    }
    using bridge = makeBridge(address);
    {
      await using engine = await TestEngine.start({ flags, netns });

      assert.deepEqual(await answers(engine), expected);
    }
    assert.match(bridge.shown(), /mine0: <[A-Z,-]*\bUP\b/);
  });
}

for (const range of ['fd00:17::/64', 'fd00:17::/112']) {
  test(`with IPv6 of ${range} everything is answered as by dockerd`, async () => {
    const flags = ['--bip=172.17.0.1/16', '--ipv6', `--fixed-cidr-v6=${range}`];
    let expected: unknown;
    {
      await using dockerd = await Dockerd.start(flags);
      await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
      expected = await answers(dockerd.api);
    }
    await using engine = await TestEngine.start({ flags: [...flags, '--bridge=docker0'] });

    assert.deepEqual(await answers(engine), expected);
  });
}

/**
 * Answers about networks and the containers in them, with one word for every id, and without the
 * differences that docs/compatibility.md lists.
 */
async function answers(api: Api): Promise<unknown> {
  const told: Record<string, unknown> = {};
  for (const path of ['/networks', '/networks/bridge', '/networks?filters={"name":["bridge"]}']) {
    const { status, body } = await api.get(encodeURI(path));
    told[path] = [status, Array.isArray(body) ? (body as NetworkWire[]).toSorted(byName) : body];
  }
  for (const [name, fields] of Object.entries(CONTAINERS)) {
    const create = { Image: 'busybox', Cmd: ['sleep', '1000'], ...fields };
    const created = await api.post(`/containers/create?name=${name}`, create);
    const started = await api.post(`/containers/${name}/start`);
    const { NetworkSettings, State } = (await api.get<Inspect>(`/containers/${name}/json`)).body;
    const { SandboxID: _id, Bridge: _bridge, ...settings } = NetworkSettings;
    const { Status, ExitCode, Error } = State;
    told[name] = [created.status, started.status, started.body, settings, { Status, ExitCode, Error }];
  }
  const { body: list } = await api.get<Summary[]>('/containers/json?all=1');
  told.list = list.map(({ Names, Ports, NetworkSettings, HostConfig }) => ({
    Names,
    Ports,
    NetworkSettings,
    HostConfig,
  }));
  const events = `/events?since=1&until=${Date.now() / 1000}&filters=${encodeURIComponent('{"type":["network"]}')}`;
  told.events = (await api.get(events)).raw
    .toString()
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { Action: string; Actor: object })
    .map(({ Action, Actor }) => ({ Action, Actor }));
  return JSON.parse(
    JSON.stringify(told)
      .replaceAll(/\b[0-9a-f]{64}\b/g, 'ID')
      .replaceAll(/"SandboxKey":"[^"]+"/g, '"SandboxKey":"PATH"')
      .replaceAll(/"Created":"[^"]+"/g, '"Created":"TIME"')
      .replaceAll(/(?<="Subnet":"[^"]+"),"Gateway":"[^"]+"/g, '')
      .replaceAll(/,\{"(IP|HostIp)":"::"[^}]+\}/g, '')
      // The specification's names of the options stand beside docker's.
      .replaceAll(/,"com\.engine\.[^"]+":"[^"]*"/g, ''),
  );
}

function byName(a: NetworkWire, b: NetworkWire): number {
  return a.Name < b.Name ? -1 : 1;
}

function makeBridge(address: string): Disposable & { shown: () => string } {
  const ip = (...words: string[]): string => execFileSync('ip', words, { encoding: 'utf8' });
  ip('link', 'add', 'mine0', 'type', 'bridge');
  ip('link', 'set', 'mine0', 'up');
  if (address !== '') ip('addr', 'add', address, 'dev', 'mine0');
  return { shown: () => ip('link', 'show', 'mine0'), [Symbol.dispose]: () => void ip('link', 'del', 'mine0') };
}

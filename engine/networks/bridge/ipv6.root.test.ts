import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect, Summary } from '@gantry/engine/containers/schema.ts';
import { page, pageCommand } from '@gantry/testing/networks/page.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { NetworkWire } from '../schema.ts';

const execute = promisify(execFile);
type Message = { message: string };

/** The machine, and one beyond it that knows no way to the containers. */
const MACHINE = '2001:db8::2';
const OUTSIDE = '2001:db8::1';

/** Addresses of a name, and the name of an address, asked as a program in the container does. */
const ASK = `
const { Resolver } = require('node:dns').promises;
const resolver = new Resolver({ timeout: 60000, tries: 1 });
resolver.setServers(['127.0.0.11']);
const [name, address] = process.argv.slice(1);
Promise.all([resolver.resolve6(name), resolver.resolve4(name), resolver.reverse(address)])
  .then((answers) => process.stdout.write(JSON.stringify(answers)));`;

const LISTEN = `
require('net').createServer().on('error', (error) => process.stdout.write(error.code))
  .listen({ host: '::', port: Number(process.argv[1]), ipv6Only: true }, () => process.exit());`;

suite('networks with IPv6', { concurrency: false }, () => {
  let engine: TestEngine;
  let outside: ChildProcess;

  before(async () => {
    engine = await TestEngine.start();
    outside = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(outside.stdout!, 'data');
    const pair = ['link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(outside.pid)];
    await engine.onHost(['ip', ...pair]);
    await engine.onHost(['ip', 'link', 'set', 'lo', 'up']);
    await engine.onHost(['ip', 'link', 'set', 'out0', 'up']);
    await engine.onHost(['ip', '-6', 'address', 'add', `${MACHINE}/64`, 'dev', 'out0', 'nodad']);
    await beyond('ip', 'link', 'set', 'eth0', 'up');
    await beyond('ip', '-6', 'address', 'add', `${OUTSIDE}/64`, 'dev', 'eth0', 'nodad');
    await create('six', { Subnet: '10.6.0.0/24' }, { Subnet: 'fd00:6::/64' });
    await create('other', { Subnet: 'fd00:7::/64', Gateway: 'fd00:7::9', IPRange: 'fd00:7::100/120' });
    await create('four', { Subnet: '10.8.0.0/24' }, { Subnet: 'fd00:8::/64' }, { EnableIPv6: false });
  });
  after(async () => {
    outside.kill('SIGKILL');
    await engine[Symbol.asyncDispose]();
  });

  async function create(Name: string, ...parts: Record<string, unknown>[]): Promise<void> {
    const Config = parts.filter((part) => 'Subnet' in part);
    const more = Object.assign({}, ...parts.filter((part) => !('Subnet' in part))) as object;
    const { status, raw } = await engine.post('/networks/create', {
      Name,
      EnableIPv6: true,
      IPAM: { Config },
      ...more,
    });
    assert.equal(status, 201, raw.toString());
  }

  async function beyond(...command: string[]): Promise<string> {
    return (await execute('nsenter', ['-t', String(outside.pid), '-n', ...command])).stdout;
  }

  async function serves(name: string, NetworkMode: string, body: object = {}, HostConfig: object = {}): Promise<void> {
    const command = ['sh', '-c', `mkdir /www; echo ${name} >/www/index.html; exec httpd -f -p 80 -h /www`];
    await engine.run(
      command,
      { ExposedPorts: { '80/tcp': {} }, HostConfig: { NetworkMode, ...HostConfig }, ...body },
      name,
    );
  }

  async function settings(ref: string): Promise<Inspect['NetworkSettings']> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body.NetworkSettings;
  }

  async function exec(ref: string, ...Cmd: string[]): Promise<string> {
    const { body } = await engine.post<{ Id: string }>(`/containers/${ref}/exec`, {
      Cmd,
      AttachStdout: true,
      Tty: true,
    });
    return (await engine.post(`/exec/${body.Id}/start`, { Tty: true })).raw.toString().replaceAll('\r', '');
  }

  async function pidOf(ref: string): Promise<number> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body.State.Pid;
  }

  const fromHost = async (url: string, tries?: number): Promise<string> => await engine.onHost(pageCommand(url, tries));
  const fromOutside = async (url: string, tries?: number): Promise<string> => await page(outside.pid!, url, tries);
  const from = async (ref: string, url: string, tries?: number): Promise<string> =>
    await page(await pidOf(ref), url, tries);

  const remove = async (...names: string[]): Promise<void> => {
    for (const name of names) assert.equal((await engine.delete(`/containers/${name}?force=1`)).status, 204);
  };

  test('containers get an address of each family, and reach each other by both', async () => {
    await serves('a', 'six');
    const EndpointsConfig = { six: { IPAMConfig: { IPv6Address: 'fd00:6::77' } } };
    await serves('b', 'six', { NetworkingConfig: { EndpointsConfig } });
    const [a, b] = [(await settings('a')).Networks['six']!, (await settings('b')).Networks['six']!];
    const { body: network } = await engine.get<NetworkWire>('/networks/six');

    assert.deepEqual(
      [a, b].map((one) => [one.IPAddress, one.GlobalIPv6Address, one.GlobalIPv6PrefixLen, one.IPv6Gateway]),
      [
        ['10.6.0.2', 'fd00:6::2', 64, 'fd00:6::1'],
        ['10.6.0.3', 'fd00:6::77', 64, 'fd00:6::1'],
      ],
    );
    assert.equal(network.EnableIPv6, true);
    assert.deepEqual(
      Object.values(network.Containers).map(({ IPv6Address }) => IPv6Address),
      ['fd00:6::2/64', 'fd00:6::77/64'],
    );
    assert.equal(await from('a', 'http://[fd00:6::77]/'), 'b');
    assert.equal(await from('b', 'http://[fd00:6::2]/'), 'a');
    assert.equal(await from('b', 'http://[::1]/'), 'b');
    assert.match(await exec('a', 'cat', '/etc/hosts'), /^10\.6\.0\.2\t\w+\nfd00:6::2\t\w+$/m);
    const netns = ['-t', String(await pidOf('a')), '-n'];
    const { stdout } = await execute('nsenter', [...netns, process.execPath, '-e', ASK, 'b', 'fd00:6::77']);
    assert.deepEqual(JSON.parse(stdout), [['fd00:6::77'], ['10.6.0.3'], ['b.six']]);
    await remove('a', 'b');
  });

  test('they get out under the address of the machine, and nobody gets in but by published ports', async () => {
    await serves('web', 'six', {}, { PortBindings: { '80/tcp': [{ HostPort: '8201' }] } });
    const { Ports } = await settings('web');
    const { body: list } = await engine.get<Summary[]>('/containers/json');
    await beyond('ip', '-6', 'route', 'add', 'fd00:6::/64', 'via', MACHINE);

    assert.deepEqual(Ports['80/tcp'], [
      { HostIp: '0.0.0.0', HostPort: '8201' },
      { HostIp: '::', HostPort: '8201' },
    ]);
    assert.deepEqual(
      list.find(({ Names }) => Names.includes('/web'))?.Ports.map(({ IP, PublicPort }) => [IP, PublicPort]),
      [
        ['0.0.0.0', 8201],
        ['::', 8201],
      ],
    );
    assert.equal(await fromOutside(`http://[${MACHINE}]:8201/`), 'web');
    assert.equal(await fromHost(`http://[${MACHINE}]:8201/`), 'web');
    assert.equal(await from('web', `http://[${MACHINE}]:8201/`), 'web');
    assert.equal(await fromHost('http://[fd00:6::2]/'), 'web');
    assert.equal(await fromOutside('http://[fd00:6::2]/', 1), 'nobody');
    await beyond('ip', '-6', 'route', 'del', 'fd00:6::/64');
    assert.match(await exec('web', 'ping', '-c', '1', '-w', '60', OUTSIDE), /1 packets received/);
    assert.equal(await engine.onHost([process.execPath, '-e', LISTEN, '8201']), 'EADDRINUSE');
    await remove('web');
    assert.equal(await fromOutside(`http://[${MACHINE}]:8201/`, 1), 'nobody');
  });

  test('ports are published on the address that is asked for, or refused', async () => {
    const bound = (HostIp: string): object => ({ PortBindings: { '80/tcp': [{ HostIp, HostPort: '8202' }] } });
    const refused = async (network: string, HostIp: string): Promise<[number, string]> => {
      const HostConfig = { NetworkMode: network, ...bound(HostIp) };
      const id = await engine.create(['true'], { HostConfig });
      const { status, body } = await engine.post<Message>(`/containers/${id}/start`);
      await remove(id);
      return [status, body.message.replace(/^.*\): /, '')];
    };
    await serves('web', 'six', {}, bound(MACHINE));

    assert.deepEqual((await settings('web')).Ports['80/tcp'], [{ HostIp: MACHINE, HostPort: '8202' }]);
    assert.equal(await fromOutside(`http://[${MACHINE}]:8202/`), 'web');
    assert.equal(await fromHost('http://127.0.0.1:8202/', 1), 'nobody');
    assert.deepEqual(await refused('six', MACHINE), [
      500,
      `Bind for ${MACHINE}:8202 failed: port is already allocated`,
    ]);
    assert.deepEqual(await refused('four', '::'), [400, 'ports cannot be published on ::: the network has no IPv6']);
    await remove('web');
  });

  test('networks are apart, and a range is chosen from', async () => {
    await serves('here', 'six');
    await serves('there', 'other');
    await serves('plain', 'four');
    const { body: four } = await engine.get<NetworkWire>('/networks/four');

    assert.equal((await settings('there')).Networks['other']!.GlobalIPv6Address, 'fd00:7::100');
    assert.equal(await from('here', 'http://[fd00:7::100]/', 1), 'nobody');
    assert.equal(await from('there', 'http://[fd00:7::100]/'), 'there');
    assert.equal((await settings('plain')).Networks['four']!.GlobalIPv6Address, '');
    assert.deepEqual(
      [four.EnableIPv6, four.IPAM.Config.map(({ Subnet }) => Subnet)],
      [false, ['10.8.0.0/24', 'fd00:8::/64']],
    );
    await remove('here', 'there', 'plain');
  });

  test('connect and disconnect move the default route, the names and the ports', async () => {
    await serves('moving', 'four', {}, { PortBindings: { '80/tcp': [{ HostPort: '8203' }] } });
    const routes = async (): Promise<string> => (await exec('moving', 'ip', '-6', 'route', 'show', 'default')).trim();
    const EndpointConfig = { IPAMConfig: { IPv6Address: 'fd00:7::5' } };

    assert.equal(await routes(), '');
    await engine.post('/networks/other/connect', { Container: 'moving', EndpointConfig });
    assert.match(await routes(), /via fd00:7::9 dev eth1/);
    assert.match(await exec('moving', 'cat', '/etc/hosts'), /^fd00:7::5\t/m);
    await engine.post('/networks/four/disconnect', { Container: 'moving' });
    assert.equal(await fromOutside(`http://[${MACHINE}]:8203/`), 'moving');
    assert.match(await engine.fetchText(8203), /^moving/);
    await engine.post('/networks/four/connect', { Container: 'moving' });
    await engine.post('/networks/other/disconnect', { Container: 'moving' });
    assert.equal(await routes(), '');
    assert.doesNotMatch(await exec('moving', 'cat', '/etc/hosts'), /fd00/);
    assert.equal(await fromOutside(`http://[${MACHINE}]:8203/`, 1), 'nobody');
    assert.match(await engine.fetchText(8203), /^moving/);
    await remove('moving');
  });

  test('a container that takes over an address with another hardware address is reached at once', async () => {
    const at = { NetworkingConfig: { EndpointsConfig: { six: { IPAMConfig: { IPv6Address: 'fd00:6::50' } } } } };
    await serves('asking', 'six');
    await serves('first', 'six', at);
    assert.equal(await from('asking', 'http://[fd00:6::50]/'), 'first');
    await remove('first');
    await serves('between', 'six');
    await serves('second', 'six', at);

    assert.equal(await from('asking', 'http://[fd00:6::50]/'), 'second');
    await remove('asking', 'between', 'second');
  });

  test('all of it is there after a kill of the daemon and a flush of the rules', async () => {
    await serves('lasting', 'six', {}, { PortBindings: { '80/tcp': [{ HostPort: '8204' }] } });
    const before = await settings('lasting');
    await engine.kill();
    await engine.onHost(['nft', 'flush', 'ruleset']);
    await engine.startAgain();
    await serves('next', 'six');

    assert.deepEqual(await settings('lasting'), before);
    assert.equal(await fromOutside(`http://[${MACHINE}]:8204/`), 'lasting');
    assert.equal((await settings('next')).Networks['six']!.GlobalIPv6Address, 'fd00:6::3');
    await remove('lasting', 'next');
  });

  test('from an internal network nothing leads out', async () => {
    await create('inner', { Subnet: 'fd00:9::/64' }, { Internal: true });
    await serves('shut', 'inner');

    assert.doesNotMatch(await exec('shut', 'ip', '-6', 'route'), /default/);
    assert.equal(await from('shut', 'http://[fd00:9::2]/'), 'shut');
    await remove('shut');
  });
});

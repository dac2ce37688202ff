import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { page } from '@gantry/testing/networks/page.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

const MACHINE = '2001:db8::2';
const OUTSIDE = '2001:db8::1';
const SIX = ['--bip=172.17.0.1/16', '--ipv6', '--fixed-cidr-v6=fd00:17::/64'];

suite('the network bridge with IPv6', { concurrency: false }, () => {
  let engine: TestEngine;
  let outside: ChildProcess;

  before(async () => {
    engine = await TestEngine.start({ flags: SIX });
    outside = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(outside.stdout!, 'data');
    const pair = ['link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(outside.pid)];
    await engine.onHost(['ip', ...pair]);
    await engine.onHost(['ip', 'link', 'set', 'out0', 'up']);
    await engine.onHost(['ip', '-6', 'address', 'add', `${MACHINE}/64`, 'dev', 'out0', 'nodad']);
    for (const words of [
      ['link', 'set', 'eth0', 'up'],
      ['-6', 'address', 'add', `${OUTSIDE}/64`, 'dev', 'eth0', 'nodad'],
    ]) {
      await execute('nsenter', ['-t', String(outside.pid), '-n', 'ip', ...words]);
    }
  });
  after(async () => {
    outside.kill('SIGKILL');
    await engine[Symbol.asyncDispose]();
  });

  async function serves(name: string, body: object = {}, HostConfig: object = {}): Promise<void> {
    const command = ['sh', '-c', `mkdir /www; echo ${name} >/www/index.html; exec httpd -f -p 80 -h /www`];
    await engine.run(command, { ExposedPorts: { '80/tcp': {} }, HostConfig, ...body }, name);
  }

  async function settings(ref: string): Promise<Inspect['NetworkSettings']> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body.NetworkSettings;
  }

  async function pidOf(ref: string): Promise<number> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body.State.Pid;
  }

  const remove = async (...names: string[]): Promise<void> => {
    for (const name of names) assert.equal((await engine.delete(`/containers/${name}?force=1`)).status, 204);
  };

  test('an address ends with the hardware address, leads out, and is reached by published ports', async () => {
    await serves('web', {}, { PortBindings: { '80/tcp': [{ HostPort: '8301' }] } });
    await serves('own', { MacAddress: '02:42:00:00:00:99' });
    const [web, own] = [await settings('web'), await settings('own')];
    const { body: network } = await engine.get<NetworkWire>('/networks/bridge');

    assert.equal(network.EnableIPv6, true);
    assert.deepEqual(
      [web.GlobalIPv6Address, web.Networks['bridge']!.GlobalIPv6Address, web.GlobalIPv6PrefixLen, web.IPv6Gateway],
      ['fd00:17::242:ac11:2', 'fd00:17::242:ac11:2', 64, 'fd00:17::1'],
    );
    assert.equal(own.GlobalIPv6Address, 'fd00:17::242:0:99');
    assert.equal(await page(await pidOf('own'), 'http://[fd00:17::242:ac11:2]/'), 'web');
    assert.equal(await page(outside.pid!, `http://[${MACHINE}]:8301/`), 'web');
    const ping = ['busybox', 'ping', '-c', '1', '-w', '60', OUTSIDE];
    const { stdout } = await execute('nsenter', ['-t', String(await pidOf('web')), '-n', ...ping]);
    assert.match(stdout, /1 packets received/);
    await remove('own');
  });

  test('it outlives the daemon, does not move beneath a container, and goes with the setting', async () => {
    const before = await settings('web');
    await engine.kill();
    await assert.rejects(engine.startAgain([...SIX.slice(0, 2), '--fixed-cidr-v6=fd00:18::/64']));
    assert.match(engine.log, /running containers are on gantry0 \(172\.17\.0\.0\/16, fd00:17::\/64\): stop them/);
    await engine.startAgain();

    assert.deepEqual(await settings('web'), before);
    assert.equal(await page(outside.pid!, `http://[${MACHINE}]:8301/`), 'web');
    await remove('web');
    await engine.kill('SIGTERM');
    await engine.startAgain(SIX.slice(0, 1));
    await serves('plain');
    const { body: network } = await engine.get<NetworkWire>('/networks/bridge');
    assert.deepEqual([network.EnableIPv6, (await settings('plain')).GlobalIPv6Address], [false, '']);
    assert.doesNotMatch(await engine.onHost(['ip', '-6', 'address', 'show', 'dev', 'gantry0']), /fd00/);
    await remove('plain');
  });

  test('of a range with less room for hardware addresses the lowest free address is taken', async () => {
    await engine.kill('SIGTERM');
    await engine.startAgain([...SIX.slice(0, 2), '--fixed-cidr-v6=fd00:19::/112']);
    await serves('first');
    await serves('second');

    assert.deepEqual(
      [(await settings('first')).GlobalIPv6Address, (await settings('second')).GlobalIPv6Address],
      ['fd00:19::2', 'fd00:19::3'],
    );
    await remove('first', 'second');
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
type Message = { message: string };

const ASK = `
const resolver = new (require('node:dns').promises.Resolver)({ timeout: 60000, tries: 1 });
resolver.setServers(['127.0.0.11']);
resolver.resolve4(process.argv[1]).then((found) => process.stdout.write(String(found)), (e) => process.stdout.write(e.code));`;

suite('connections of containers', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.post('/networks/create', { Name: 'one', IPAM: { Config: [{ Subnet: '10.1.0.0/24' }] } });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  async function inside(ref: string, ...command: string[]): Promise<string> {
    return (await execute('nsenter', ['-t', String((await inspect(ref)).State.Pid), '-n', ...command])).stdout;
  }

  async function said(
    answer: Promise<{ status: number; body: Message | undefined }>,
  ): Promise<[number, string | undefined]> {
    const { status, body } = await answer;
    return [status, body?.message];
  }

  const attached = (one: object): Record<string, unknown> => ({
    HostConfig: { NetworkMode: 'one' },
    NetworkingConfig: { EndpointsConfig: { one } },
  });
  const remove = async (...names: string[]): Promise<void> => {
    for (const name of names) assert.equal((await engine.delete(`/containers/${name}?force=1`)).status, 204);
  };

  test('link-local addresses are set at the start and by connect, and shown', async () => {
    const LinkLocalIPs = ['169.254.7.7', 'fe80::99'];
    await engine.run(['sleep', '1000'], { ...attached({ IPAMConfig: { LinkLocalIPs } }) }, 'local');
    await engine.run(['sleep', '1000'], {}, 'other');
    const EndpointConfig = { IPAMConfig: { LinkLocalIPs: ['169.254.7.8'] } };
    assert.equal((await engine.post('/networks/one/connect', { Container: 'other', EndpointConfig })).status, 200);

    assert.match(await inside('local', 'ip', 'address', 'show', 'eth0'), /169\.254\.7\.7\/16[^]*fe80::99\/64/);
    assert.match(await inside('other', 'ip', 'address', 'show', 'eth1'), /169\.254\.7\.8\/16/);
    assert.deepEqual((await inspect('local')).NetworkSettings.Networks['one']?.IPAMConfig, { LinkLocalIPs });
    await remove('local', 'other');
  });

  test('an invalid link-local address, or link, is refused', async () => {
    const refusals = [];
    for (const ip of ['x', '10.0.0.5']) {
      for (const network of ['bridge', 'none', 'host', 'one']) {
        const EndpointsConfig = { [network]: { IPAMConfig: { LinkLocalIPs: [ip] } } };
        const on = { HostConfig: { NetworkMode: network }, NetworkingConfig: { EndpointsConfig } };
        const [status, message] = await said(engine.post<Message>('/containers/create', { Image: 'busybox', ...on }));
        assert.equal(status, 400, network);
        assert.match(message!, ip === 'x' ? /^Invalid link-local IP address: \[x\]$/ : /^invalid link local IP/);
      }
    }
    for (const endpoint of [
      { IPAMConfig: { LinkLocalIPs: ['x'] } },
      { IPAMConfig: { LinkLocalIPs: ['10.0.0.5'] } },
      { Links: ['bad:a:b'] },
    ]) {
      const body = { Image: 'busybox', Cmd: ['true'], ...attached(endpoint) };
      refusals.push(await said(engine.post<Message>('/containers/create', body)));
    }

    assert.deepEqual(refusals, [
      [400, 'Invalid link-local IP address: [x]'],
      [400, 'invalid link local IP address: 10.0.0.5'],
      [400, 'bad format for links: bad:a:b'],
    ]);
  });

  test('links of HostConfig are aliases for the container in its user networks', async () => {
    await engine.run(['sleep', '1000'], attached({}), 'db');
    const HostConfig = { NetworkMode: 'one', Links: ['db:database'] };
    await engine.run(['sleep', '1000'], { HostConfig }, 'web');
    await engine.run(['sleep', '1000'], attached({ Links: ['db:store'] }), 'shop');
    const address = (await inspect('db')).NetworkSettings.Networks['one']!.IPAddress;

    const answers = await Promise.all([
      inside('web', process.execPath, '-e', ASK, 'database'),
      inside('shop', process.execPath, '-e', ASK, 'store'),
    ]);

    assert.deepEqual(answers, [address, address]);
    await remove('web', 'shop', 'db');
  });

  test('a link in a user network may precede its container, and resolves as soon as that runs', async () => {
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'one', Links: ['later:soon'] } }, 'early');
    const soon = async (): Promise<string> => await inside('early', process.execPath, '-e', ASK, 'soon');
    const before = await soon();

    await engine.run(['sleep', '1000'], attached({}), 'later');

    const address = (await inspect('later')).NetworkSettings.Networks['one']!.IPAddress;
    assert.notEqual(before, address);
    assert.equal(await soon(), address);
    const refused = { Image: 'busybox', HostConfig: { Links: ['nobody:soon'] } };
    assert.deepEqual(await said(engine.post<Message>('/containers/create', refused)), [
      400,
      'could not get container for nobody: No such container: nobody',
    ]);
    await remove('early', 'later');
  });

  // The words are dockerd's.
  test('a forced disconnect takes a container out of a network that is gone', async () => {
    await engine.post('/networks/create', { Name: 'gone' });
    const id = await engine.create(['true'], { HostConfig: { NetworkMode: 'one' } }, 'resting');
    await engine.post('/networks/gone/connect', { Container: 'resting' });
    await engine.delete('/networks/gone');
    const leave = async (network: string, Container: string, Force: boolean): Promise<[number, string | undefined]> =>
      await said(engine.post<Message>(`/networks/${network}/disconnect`, { Container, Force }));

    assert.deepEqual(await leave('gone', 'resting', false), [404, 'network gone not found']);
    assert.equal((await leave('gone', 'resting', true))[0], 200);
    assert.deepEqual(Object.keys((await inspect('resting')).NetworkSettings.Networks), ['one']);
    const reason = `container ${id} is not connected to the network gone`;
    assert.deepEqual(await leave('gone', 'resting', true), [500, reason]);
    assert.deepEqual(await leave('one', 'nobody', true), [404, 'endpoint nobody not found']);
    assert.deepEqual(await leave('gone', 'nobody', true), [404, 'network gone not found']);
    assert.equal((await leave('one', 'resting', true))[0], 200);
    await remove('resting');
  });
});

test('a connect that cannot announce its names changes nothing', async () => {
  const { GANTRY_RESOLVER } = process.env;
  process.env.GANTRY_RESOLVER = '/bin/false';
  await using engine = await TestEngine.start();
  if (GANTRY_RESOLVER === undefined) delete process.env.GANTRY_RESOLVER;
  else process.env.GANTRY_RESOLVER = GANTRY_RESOLVER;
  await engine.post('/networks/create', { Name: 'one' });
  const id = await engine.run(['sleep', '1000']);
  const seen = async (): Promise<unknown> => {
    const { State, NetworkSettings } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
    const within = ['-t', String(State.Pid), '-n', '-m'];
    const { stdout } = await execute('nsenter', [
      ...within,
      'sh',
      '-c',
      'cat /etc/resolv.conf /etc/hosts; ip addr; ip route',
    ]);
    const links = stdout.replaceAll(/^\d+: eth1.*\n(?: +link.*\n)?/gm, ''); // it goes when nobody waits for it
    return { links, NetworkSettings };
  };
  const before = await seen();

  const answer = await engine.post<Message>('/networks/one/connect', { Container: id });

  assert.equal(answer.status, 500);
  assert.match(answer.body.message, /^the name server of containers did not start/);
  assert.deepEqual(await seen(), before);
  assert.deepEqual((await engine.get<{ Containers: object }>('/networks/one')).body.Containers, {});
});

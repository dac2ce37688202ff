import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const PORT = 8302;
const TIMEOUT_MS = 60_000;
const PROGRAM = join(import.meta.dirname, '../../../../build/gantry-proxy');

/** Sends back what it gets, by TCP also after the end of it. */
const ECHO = `
  const udp = require('node:dgram').createSocket('udp4');
  udp.on('message', (text, { address, port }) => udp.send(text, port, address));
  const tcp = require('node:net').createServer({ allowHalfOpen: true }, (client) => client.pipe(client).on('error', () => {}));
  udp.bind(7, () => tcp.listen(7, '0.0.0.0', () => process.stdout.write('ready')));`;
/** Sends so many bytes, ends its side, and prints the checksums of what it has sent and got. */
const SEND_MUCH = `
  const { createHash, randomBytes } = require('node:crypto');
  const [sent, got] = [createHash('md5'), createHash('md5')];
  const client = require('node:net').connect({ host: '::1', port: ${PORT}, allowHalfOpen: true });
  client.on('data', (part) => got.update(part)).on('end', () => console.log(sent.digest('hex') === got.digest('hex')));
  let left = 200;
  const more = () => {
    while (left > 0) { left -= 1; const part = randomBytes(65536); sent.update(part); if (!client.write(part)) return; }
    client.end();
  };
  client.on('drain', more); client.on('connect', more);`;
const ASK_UDP = `
  const client = require('node:dgram').createSocket('udp6');
  const again = setInterval(() => client.send('hello', ${PORT}, '::1'), 500);
  client.send('hello', ${PORT}, '::1');
  client.on('message', (text) => { console.log(String(text)); clearInterval(again); client.close(); });`;

suite('published ports on the loopback of IPv6', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.post('/networks/create', {
      Name: 'six',
      EnableIPv6: true,
      IPAM: { Config: [{ Subnet: 'fd00:6::/64' }] },
    });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const serve = async (NetworkMode: string, HostIp: string, name: string): Promise<string> =>
    await engine.run(
      ['sh', '-c', `mkdir /www; echo ${name} > /www/index.html; exec httpd -f -p 80 -h /www`],
      { HostConfig: { NetworkMode, PortBindings: { '80/tcp': [{ HostIp, HostPort: String(PORT) }] } } },
      name,
    );
  /** Tried again until somebody answers. */
  const page = async (): Promise<string> => {
    const words = ['--retry', '600', '--retry-delay', '0', '--retry-all-errors', '--retry-max-time', '60'];
    return (await engine.onHost(['curl', '-s', '--max-time', '20', ...words, `http://[::1]:${PORT}/`])).trim();
  };
  const isRefused = async (): Promise<boolean> => {
    const code = `require('node:net').connect(${PORT}, '::1').on('connect', () => process.exit(1)).on('error', () => {})`;
    return await engine.onHost([process.execPath, '-e', code]).then(
      () => true,
      () => false,
    );
  };
  const proxies = (): string[] =>
    readdirSync('/proc').filter((pid) => {
      if (!/^\d+$/.test(pid)) return false;
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return command.startsWith(PROGRAM) && command.includes(engine.directory);
      } catch {
        return false; // it ended after it was listed
      }
    });
  /** The ports of a container that has ended are given back in the background. */
  const noneIsLeft = async (): Promise<void> => {
    const until = Date.now() + TIMEOUT_MS;
    while (proxies().length > 0 && Date.now() < until) await setTimeout(20);
    assert.deepEqual(proxies(), []);
  };
  const remove = async (name: string): Promise<void> => {
    assert.equal((await engine.delete(`/containers/${name}?force=1`)).status, 204);
  };

  for (const [network, hostIp] of [
    ['bridge', '::1'],
    ['six', '::1'],
    ['six', ''],
    ['six', '::'],
  ] as const) {
    test(`a port of a container on ${network} with the HostIp "${hostIp}" answers there`, async () => {
      await serve(network, hostIp, 'web');

      assert.equal(await page(), 'web');
      const { body } = await engine.get<{ NetworkSettings: { Ports: Record<string, unknown> } }>(
        '/containers/web/json',
      );
      const HostPort = String(PORT);
      const wanted = hostIp === '' ? ['0.0.0.0', '::'] : [hostIp];
      assert.deepEqual(
        body.NetworkSettings.Ports['80/tcp'],
        wanted.map((HostIp) => ({ HostIp, HostPort })),
      );
      await remove('web');
      await noneIsLeft();
      assert.equal(await isRefused(), true);
    });
  }

  test('the port is free for the next container as soon as the one before is gone', async () => {
    for (const name of ['first', 'second', 'third']) {
      await serve('bridge', '::1', name);
      assert.equal(await page(), name);
      await remove(name);
    }
  });

  test('it answers while there is no daemon, under the next one, and not after the container', async () => {
    await serve('bridge', '::1', 'web');
    const serving = proxies();
    await engine.kill();
    assert.equal(await page(), 'web');

    await engine.startAgain();

    assert.equal(await page(), 'web');
    assert.deepEqual(proxies(), serving);
    await remove('web');
    await noneIsLeft();
    await serve('bridge', '::1', 'web');
    assert.equal(await page(), 'web');
    await remove('web');
  });

  test('a process that has died is started again, also by the next daemon', async () => {
    await serve('bridge', '::1', 'web');
    process.kill(Number(proxies()[0]), 'SIGKILL');
    assert.equal(await page(), 'web');

    await engine.kill();
    process.kill(Number(proxies()[0]), 'SIGKILL');
    await engine.startAgain();

    assert.equal(await page(), 'web');
    await remove('web');
  });

  test('it is of a container that has ended while there was no daemon: the next one ends it', async () => {
    const id = await serve('bridge', '::1', 'web');
    const { body } = await engine.get<{ State: { Pid: number } }>(`/containers/${id}/json`);
    await engine.kill();
    process.kill(body.State.Pid, 'SIGKILL');

    await engine.startAgain();

    await noneIsLeft();
    await remove('web');
  });

  test('it goes along when the container leaves the network that led it out', async () => {
    await serve('six', '::1', 'web');
    const connected = await engine.post('/networks/bridge/connect', { Container: 'web' });
    assert.equal(connected.status, 200, connected.raw.toString());

    const left = await engine.post('/networks/six/disconnect', { Container: 'web' });

    assert.equal(left.status, 200, left.raw.toString());
    assert.equal(await page(), 'web');
    await remove('web');
    await noneIsLeft();
  });

  test('bytes that were sent before a side ended arrive, by TCP; datagrams find back', async () => {
    const HostPort = String(PORT);
    const PortBindings = { '7/tcp': [{ HostIp: '::1', HostPort }], '7/udp': [{ HostIp: '::1', HostPort }] };
    const id = await engine.run(['sleep', '1000'], { HostConfig: { PortBindings } }, 'echo');
    const { body } = await engine.get<{ State: { Pid: number } }>(`/containers/${id}/json`);
    const echo: ChildProcess = spawn('nsenter', ['-t', String(body.State.Pid), '-n', process.execPath, '-e', ECHO], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(echo.stdout!, 'data');

    const [tcp, udp] = await Promise.all(
      [SEND_MUCH, ASK_UDP].map(async (code) => await engine.onHost([process.execPath, '-e', code])),
    );

    assert.deepEqual([tcp, udp], ['true\n', 'hello\n']);
    assert.equal(proxies().length, 1);
    const status = readFileSync(`/proc/${proxies()[0]}/status`, 'utf8');
    assert.match(status, /^Uid:\t65534\t65534\t65534\t65534$/m);
    assert.match(status, /^CapEff:\t0+$/m);
    echo.kill();
    await once(echo, 'exit');
    await remove('echo');
  });
});

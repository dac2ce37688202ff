import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { unmountBelow } from '@gantry/testing/dockerd.ts';
import { becomeTestHost, HOST_IP, TestDaemon } from '@gantry/testing/networks/network-host.ts';
import { Peer } from '@gantry/testing/networks/peer.ts';

const machine = becomeTestHost();
const outside = new Peer(machine.outside);
await outside.serveTcp(9090, 'internet');
after(async () => await outside[Symbol.asyncDispose]());

const portBindings = { '80/tcp': [{ HostPort: '8080' }] };
const ALL_THROUGH = ['web sees 192.0.2.1', `internet sees ${HOST_IP}`, 'web sees 172.17.0.1'];

/** Requests from outside to a container and from the container to the outside; both are forwarded packets. */
async function traffic(web: Peer): Promise<string[]> {
  return await Promise.all([outside.tcp(HOST_IP, 8080), web.tcp('192.0.2.1', 9090), web.tcp(HOST_IP, 8080)]);
}

for (const iptables of ['iptables-nft', 'iptables-legacy']) {
  test(`a FORWARD policy of DROP, set by ${iptables} before the daemon starts, stops nothing`, async () => {
    using _policy = dropPolicy(iptables);
    await using daemon = await TestDaemon.start();
    const { peer } = await daemon.serve('web', { portBindings });
    await using _web = peer;

    assert.deepEqual(await traffic(peer), ALL_THROUGH);
  });

  test(`a FORWARD policy of DROP, set by ${iptables} after the daemon started, stops nothing`, async () => {
    await using daemon = await TestDaemon.start();
    using _policy = dropPolicy(iptables);
    const { peer } = await daemon.serve('web', { portBindings });
    await using _web = peer;

    assert.deepEqual(await traffic(peer), ALL_THROUGH);
  });

  test(`a FORWARD chain of ${iptables} that was flushed admits again from the next start on`, async () => {
    await using daemon = await TestDaemon.start();
    using _policy = dropPolicy(iptables);
    await daemon.attach('first');
    run(iptables, '-F', 'FORWARD');

    const { peer } = await daemon.serve('web', { portBindings });
    await using _web = peer;

    assert.deepEqual(await traffic(peer), ALL_THROUGH);
  });

  test(`the removal leaves the chain of ${iptables} as it was`, async () => {
    using _policy = dropPolicy(iptables);
    run(iptables, '-A', 'FORWARD', '-i', 'other0', '-j', 'ACCEPT');
    const before = run(iptables, '-S');
    {
      await using daemon = await TestDaemon.start();
      await daemon.attach('x');
      assert.notEqual(run(iptables, '-S'), before);
    }

    assert.equal(run(iptables, '-S'), before);
  });
}

test('a running container is not cut off by a DROP policy of iptables that comes later', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web', { portBindings });
  await using _web = peer;
  using _policy = dropPolicy('iptables-nft');

  assert.deepEqual(await traffic(peer), ALL_THROUGH);
});

test('dockerd and the daemon share a machine, in either order of their starts', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web', { portBindings });
  await using _web = peer;
  {
    await using _dockerd = await startDockerd();
    run('iptables', '-P', 'FORWARD', 'DROP'); // as dockerd does when forwarding was off

    assert.deepEqual(await traffic(peer), ALL_THROUGH);

    const subnet = run('ip', '-4', '-o', 'addr', 'show', 'docker0');
    assert.match(subnet, /inet 172\.18\.0\.1\/16/);
    await using second = await TestDaemon.start({ bridge: 'gantry1' });
    const late = await second.serve('late', { portBindings: { '80/tcp': [{ HostPort: '8081' }] } });
    await using _late = late.peer;
    assert.equal(await outside.tcp(HOST_IP, 8081), 'late sees 192.0.2.1');
  }
  assert.deepEqual(await traffic(peer), ALL_THROUGH);
  run('ip', 'link', 'del', 'docker0');
  run('iptables', '-P', 'FORWARD', 'ACCEPT');
});

function dropPolicy(iptables: string): Disposable {
  run(iptables, '-P', 'FORWARD', 'DROP');
  return {
    [Symbol.dispose]() {
      run(iptables, '-F', 'FORWARD');
      run(iptables, '-P', 'FORWARD', 'ACCEPT');
    },
  };
}

function run(command: string, ...words: string[]): string {
  return execFileSync(command, words, { encoding: 'utf8' });
}

/** dockerd in this machine's network namespace, with everything else of its own. */
async function startDockerd(): Promise<AsyncDisposable> {
  const directory = mkdtempSync(join(tmpdir(), 'gantry-dockerd-'));
  const socket = join(directory, 'docker.sock');
  const dockerd = spawn(
    '/usr/sbin/dockerd',
    [
      `-H`,
      `unix://${socket}`,
      `--data-root=${directory}/data`,
      `--exec-root=${directory}/exec`,
      `-p`,
      `${directory}/pid`,
    ],
    { stdio: 'ignore' },
  );
  for await (const _ of watch(directory)) if (existsSync(socket)) break;
  // The socket exists early, but answers only when the network is set up.
  using api = new Api(socket);
  await api.get('/_ping');
  return {
    async [Symbol.asyncDispose]() {
      dockerd.kill('SIGTERM');
      await once(dockerd, 'exit');
      await unmountBelow(directory);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Links and tables of the daemon's network namespace, which is kept when it has ended. */
function networkOf(engine: TestEngine): { links: string[]; tables: string } {
  const inside = (...command: string[]): string =>
    execFileSync('nsenter', [`--net=${join(engine.directory, 'netns')}`, ...command], { encoding: 'utf8' });
  const links = [...inside('ip', '-o', 'link').matchAll(/^\d+: ([^:@]+)/gm)].map(([, name]) => name!);
  return { links, tables: inside('nft', 'list', 'tables') };
}

/** The kernel takes away the links of a namespace that nobody has any more, a moment later. */
async function hasNoNetwork(engine: TestEngine): Promise<void> {
  while (networkOf(engine).links.some((name) => name.startsWith('veth'))) await setTimeout(20);
  assert.deepEqual(networkOf(engine), { links: ['lo'], tables: '' });
}

function mountsOf(engine: TestEngine): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return mounts.filter((line) => line.includes(engine.directory) && !line.includes('/netns '));
}

async function runs(engine: TestEngine, id: string): Promise<[boolean, number, number]> {
  const { State } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;
  return [State.Running, State.Pid, State.ExitCode];
}

test('a daemon that ends without running containers leaves no network, no rule and no mount', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.run(['true'], { HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '' }] } } });
  await engine.wait(id);

  await engine.kill('SIGTERM');

  await hasNoNetwork(engine);
  assert.deepEqual(mountsOf(engine), []);
  await engine.startAgain();
  assert.equal(await engine.wait(await engine.run(['true'])), 0);
});

test('a daemon that is told to end while it starts ends in order, however early that is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-test-'));
  const flags = ['data-root', 'exec-root', 'pidfile'].map((name) => `--${name}=${join(folder, name)}`);
  const socket = join(folder, 'gantry.sock');
  const command = [process.execPath, join(import.meta.dirname, 'main.ts'), `--host=unix://${socket}`, ...flags];
  for (const sign of ['pidfile', 'data-root/gantry.db', 'gantry.sock']) {
    const daemon = spawn('unshare', ['--net', ...command], { stdio: 'ignore' });
    const ended = once(daemon, 'exit');
    const until = Date.now() + 60_000;
    while (!existsSync(join(folder, sign)) && Date.now() < until) await setTimeout(1);
    daemon.kill('SIGTERM');

    assert.deepEqual(await ended, [0, null], sign);
    assert.deepEqual([existsSync(socket), existsSync(join(folder, 'pidfile'))], [false, false], sign);
    rmSync(join(folder, 'data-root'), { recursive: true });
  }
  rmSync(folder, { recursive: true });
});

test('a daemon that ends while links of networks are being removed says nothing of failures', async () => {
  await using engine = await TestEngine.start({ image: false });
  const names = Array.from({ length: 8 }, (_, n) => `net-${n}`);
  for (const Name of names) await engine.post('/networks/create', { Name });

  const removed = names.map(async (name) => (await engine.delete(`/networks/${name}`)).status);
  const statuses = await Promise.all(removed);
  await engine.kill('SIGTERM');

  assert.deepEqual(new Set(statuses), new Set([204]));
  assert.doesNotMatch(engine.log, /background work/);
  await engine.startAgain();
});

test('bridges of very many networks stay when the daemon ends, for the next one, which removes their rest', async () => {
  await using engine = await TestEngine.start();
  const names = Array.from({ length: 20 }, (_, n) => `net-${n}`);
  const bridges = (): string[] => networkOf(engine).links.filter((name) => /^(gn-|gantry0)/.test(name));
  for (const Name of names) await engine.post('/networks/create', { Name });
  const before = bridges();

  await engine.kill('SIGTERM');

  assert.deepEqual(bridges(), before);
  assert.equal(networkOf(engine).tables, '');
  await engine.startAgain();
  assert.deepEqual(bridges(), before);
  assert.equal(await engine.wait(await engine.run(['true'], { HostConfig: { NetworkMode: 'net-19' } })), 0);
  for (const name of names.slice(0, 10)) assert.equal((await engine.delete(`/networks/${name}`)).status, 204);
  await engine.kill('SIGTERM');
  await hasNoNetwork(engine);
  await engine.startAgain();
});

test('containers go on when the daemon ends', async () => {
  await using engine = await TestEngine.start();
  const id = await engine.run(['sleep', '1000']);
  const before = await runs(engine, id);

  await engine.kill('SIGTERM');

  process.kill(before[1], 0);
  assert.notEqual(networkOf(engine).tables, '');
  await engine.startAgain();
  assert.deepEqual(await runs(engine, id), before);
});

test('without live-restore containers are stopped with the daemon, and their network goes', async () => {
  await using engine = await TestEngine.start({ flags: ['--live-restore=false'] });
  const id = await engine.run(['sh', '-c', 'trap "exit 5" TERM; echo ready; while :; do sleep 0.02; done']);
  while ((await engine.output(id)).stdout !== 'ready\n') await setTimeout(10);

  await engine.kill('SIGTERM');

  await hasNoNetwork(engine);
  await engine.startAgain();
  assert.deepEqual(await runs(engine, id), [false, 0, 5]);
});

test('a container that the daemon stopped at its end is started again as its policy says', async () => {
  await using engine = await TestEngine.start({ flags: ['--live-restore=false', '--shutdown-timeout=1'] });
  const run = async (Name: string, ...command: string[]): Promise<string> =>
    await engine.run(command, { HostConfig: { NetworkMode: 'none', RestartPolicy: { Name } } });
  const kept = await run('unless-stopped', 'sleep', '1000');
  const stopped = await run('unless-stopped', 'sleep', '1000');
  const waiting = await run('always', 'sh', '-c', 'sleep 0.1; exit 3');
  await engine.call('POST', `/containers/${stopped}/stop`, { query: { t: '0' } });
  await engine.wait(waiting);

  await engine.kill('SIGTERM');
  await engine.startAgain();

  while (!(await runs(engine, kept))[0]) await setTimeout(10);
  while ((await engine.get<Inspect>(`/containers/${waiting}/json`)).body.RestartCount < 2) await setTimeout(10);
  assert.equal((await runs(engine, stopped))[0], false);
});

test('a daemon that ends answers pending requests, and waits for no follower', async () => {
  await using engine = await TestEngine.start();
  const script = 'trap "sleep 0.5; exit 4" TERM; echo ready; while :; do sleep 0.02; done';
  const id = await engine.run(['sh', '-c', script], { HostConfig: { NetworkMode: 'none' } });
  while ((await engine.output(id)).stdout !== 'ready\n') await setTimeout(10);
  const followers = [engine.wait(id), engine.get('/events'), engine.get(`/containers/${id}/logs?stdout=1&follow=1`)];
  for (const follower of followers) follower.catch(() => undefined); // they are cut off
  const stopping = engine.post(`/containers/${id}/stop?t=1000`);
  while (!(await engine.get('/events?since=1&until=0s')).raw.includes('"kill"')) await setTimeout(10);

  await engine.kill('SIGTERM');

  assert.equal((await stopping).status, 204);
  await engine.startAgain();
  assert.deepEqual(await runs(engine, id), [false, 0, 4]);
});

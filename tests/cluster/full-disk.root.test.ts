import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test, type TestContext } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const MEGABYTE = 1024 ** 2;
/** etcd's log alone takes 64 MB at a time. */
const DISK = '400m';

suite('the disk of a manager is full', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, , three]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.cluster(3, 0);
    [one, , three] = all.hosts;
    await three!.engine.kill('SIGTERM');
    ontoSmallDisk(three!.engine.dataRoot);
    await three!.engine.startAgain();
    await one!.node('host3', ({ ManagerStatus, Status }) => Status.State === 'ready' && ManagerStatus !== undefined);
  });
  after(async () => {
    await offSmallDisk(three!);
    await all[Symbol.asyncDispose]();
  });

  test('the others go on, it says why it does not, and follows as soon as there is room', async (context) => {
    const filler = join(three!.engine.dataRoot, 'filler');
    fill(three!.engine.dataRoot, filler, MEGABYTE);
    let longestMs = 0;
    let count = 0;

    // Versions of a large label, until its etcd cannot keep them any more.
    const etcdEnded = async (): Promise<true | undefined> => {
      const started = performance.now();
      await one!.updateNode('host1', { Labels: { count: String((count += 1)), large: 'x'.repeat(200_000) } });
      longestMs = Math.max(longestMs, performance.now() - started);
      return three!.engine.log.includes('no space left on device') ? true : undefined;
    };
    await eventually("the third's etcd ends", etcdEnded);
    for (let more = 0; more < 5; more += 1) await etcdEnded();

    tell(context, `${count} writes meanwhile, the longest took`, longestMs);
    assert.equal((await three!.engine.get('/info')).status, 200);
    const read = await three!.engine.get<{ message: string }>('/nodes');
    context.diagnostic(`a read there: ${read.status} ${read.raw.toString().slice(0, 200)}`);
    const { message } = (await three!.engine.post<{ message: string }>('/containers/create', { Image: 'none' })).body;
    context.diagnostic(`a create there: ${message}`);

    rmSync(filler);
    const freed = performance.now();
    await three!.node('host1', ({ Spec }) => Spec.Labels.count === String(count));
    await three!.updateNode('host3', { Labels: { has: 'room' } });
    tell(context, 'it follows and writes again after', performance.now() - freed);
    await one!.node('host3', ({ Status, Spec }) => Status.State === 'ready' && Spec.Labels.has === 'room');
  });
});

suite('the disk of a worker is full', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(3, { image: true });
    [one, two, three] = all.hosts;
    await two!.engine.kill('SIGTERM');
    ontoSmallDisk(two!.engine.dataRoot);
    await two!.engine.startAgain();
    await one!.init();
    await two!.join(one!, 'Worker');
    await one!.node('host2', ({ Status }) => Status.State === 'ready');
  });
  after(async () => {
    if (!two!.engine.hasEnded) await two!.engine.post('/swarm/leave?force=1');
    await offSmallDisk(two!);
    await all[Symbol.asyncDispose]();
  });

  test('it hears of another manager, says why it takes no tasks, and takes them as soon as there is room', async () => {
    const filler = join(two!.engine.dataRoot, 'filler');
    fill(two!.engine.dataRoot, filler, 0);
    await three!.join(one!, 'Manager');
    await one!.node('host3', ({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
    const services = new Services(one!);
    const Env = Array.from({ length: 50 }, (_, index) => `LARGE_${index}=${'x'.repeat(10_000)}`);
    const Placement = { Constraints: ['node.hostname == host2'] };
    const more = { TaskTemplate: { Placement }, Mode: { Replicated: { Replicas: 3 } } };
    await services.create('large', { Env }, more);

    await eventually('the reason', async () => (/full|ENOSPC/.test((await two!.info()).Error) ? true : undefined));
    assert.equal((await two!.engine.get('/containers/json')).status, 200);
    rmSync(filler);
    await services.running('large', 3);
    await eventually('no reason', async () => ((await two!.info()).Error === '' ? true : undefined));
    await services.remove('large');
  });
});

function tell(context: TestContext, what: string, milliseconds: number): void {
  context.diagnostic(`${what} ${(milliseconds / 1000).toFixed(1)} s`);
}

/** Moves a data root, which no daemon uses, onto a file system of its own. */
function ontoSmallDisk(folder: string): void {
  renameSync(folder, `${folder}.before`);
  mkdirSync(folder);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'gantry-test', folder]);
  execFileSync('cp', ['-a', `${folder}.before/.`, folder]);
  rmSync(`${folder}.before`, { recursive: true });
}

/** With nothing of what was there. */
async function offSmallDisk({ engine }: ClusterHost): Promise<void> {
  await engine.kill('SIGTERM');
  await eventually('nobody uses the disk', async () => {
    execFileSync('umount', [engine.dataRoot], { stdio: 'pipe' });
    return await Promise.resolve(true);
  });
  await engine.startAgain();
}

function fill(folder: string, path: string, leastSpare: number): void {
  writeFileSync(path, '');
  // The daemon and its etcd write meanwhile: there may be less room than a moment ago.
  for (let spare = leastSpare; ; spare += MEGABYTE) {
    const { bavail, bsize } = statfsSync(folder);
    const { status, stderr } = spawnSync('fallocate', ['-l', String(bavail * bsize - spare), path]);
    if (status === 0) return;
    assert.ok(spare < 20 * MEGABYTE, stderr.toString());
  }
}

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { EventMessage } from '@gantry/engine/events/schema.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

import { disorder, living, type Told } from './event-order.ts';

/** A parent of this process's own: everything below it is of this process. */
export const CGROUP_PARENT = `/gantry-contention-${process.pid}`;

/**
 * Asserts that the records, the kernel, the events and the logs of all containers agree; then ends and removes them, and
 * asserts that nothing is left. A container with the label `counts=true` says numbers from 0 in each run.
 */
export async function agree(engine: TestEngine, t: TestContext): Promise<void> {
  const { body: containers } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
  for (const { Id } of containers) await isAsSaid(engine, Id);
  for (const { Id } of containers) await engine.post(`/containers/${Id}/stop?t=1`);
  let lines = 0;
  for (const { Id } of containers) lines += await logIsWhole(engine, Id);
  assert.deepEqual(living(await eventsOf(engine)), new Set(containers.map(({ Id }) => Id)));
  for (const { Id } of containers) assert.equal((await engine.delete(`/containers/${Id}?v=1&force=1`)).status, 204);
  const events = await eventsOf(engine);
  t.diagnostic(`${events.length} events, ${lines} lines`);
  assert.deepEqual(disorder(events), []);
  assert.equal(living(events).size, 0);
  await nothingIsLeft(engine);
  assert.deepEqual(errorsIn(engine.log), []);
}

/** The kernel has what the record says. A restart policy changes both at any moment. */
async function isAsSaid(engine: TestEngine, id: string): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const before = await inspect(engine, id);
    const isThere = existsSync(`/proc/${before.State.Pid}`) && before.State.Pid > 0;
    const isFrozen = frozen(id);
    const weight = weightOf(id);
    const after = await inspect(engine, id);
    const { Running, Paused, Restarting } = before.State;
    const isWeighted = !isThere || weight === weightFor(before.HostConfig.CpuShares);
    if (isThere === (Running && !Restarting) && isFrozen === Paused && isWeighted) return;
    const isSame = JSON.stringify(before.State) === JSON.stringify(after.State);
    assert.ok(
      performance.now() < deadline,
      `${id} is ${isThere ? '' : 'not '}there, ${isFrozen ? '' : 'not '}frozen, weighs ${weight}, same ${isSame}: ${JSON.stringify(after.State)}`,
    );
    await setTimeout(20);
  }
}

async function inspect(engine: TestEngine, id: string): Promise<Inspect> {
  return (await engine.get<Inspect>(`/containers/${id}/json`)).body;
}

function frozen(id: string): boolean {
  const [first = ''] = globSync([
    `/sys/fs/cgroup/freezer${CGROUP_PARENT}/${id}/freezer.state`,
    `/sys/fs/cgroup${CGROUP_PARENT}/${id}/cgroup.freeze`,
  ]);
  return first !== '' && /^(FROZEN|FREEZING|1)$/.test(readFileSync(first, 'utf8').trim());
}

/** Weight of the CPU, as the kernel has it for a container that runs. */
function weightOf(id: string): number {
  const [first = ''] = globSync([
    `/sys/fs/cgroup/cpu,cpuacct${CGROUP_PARENT}/${id}/cpu.shares`,
    `/sys/fs/cgroup/cpu${CGROUP_PARENT}/${id}/cpu.shares`,
    `/sys/fs/cgroup${CGROUP_PARENT}/${id}/cpu.weight`,
  ]);
  return first === '' ? NaN : Number(readFileSync(first, 'utf8'));
}

/** The kernel's value for these shares: themselves, or on version 2 the runtimes' conversion of them. */
function weightFor(shares: number): number {
  if (!existsSync('/sys/fs/cgroup/cgroup.controllers')) return shares === 0 ? 1024 : shares;
  return shares === 0 ? 100 : 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

/** The lines of a container that counts: each is one more than the last, or the first of a run. Returns how many. */
async function logIsWhole(engine: TestEngine, id: string): Promise<number> {
  const { Config } = await inspect(engine, id);
  if (Config.Labels.counts !== 'true') return 0;
  const { stdout } = await engine.output(id);
  const lines = stdout.split('\n').filter(Boolean).map(Number);
  const wrong = lines.filter((line, index) => line !== 0 && line !== (lines[index - 1] ?? -1) + 1);
  assert.deepEqual(wrong, []);
  return lines.length;
}

async function eventsOf(engine: TestEngine): Promise<Told[]> {
  const filters = encodeURIComponent(JSON.stringify({ type: ['container'] }));
  const stream: Readable = await engine.stream(
    'GET',
    `/events?since=1&until=${Date.now() / 1000 + 0.1}&filters=${filters}`,
  );
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  const messages = text.split('\n').filter(Boolean);
  return messages.map((line) => {
    const { Action, Actor, timeNano } = JSON.parse(line) as EventMessage;
    return { action: Action, id: Actor.ID, timeNano };
  });
}

async function nothingIsLeft(engine: TestEngine): Promise<void> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const cgroups = globSync([`/sys/fs/cgroup${CGROUP_PARENT}/*/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/*/`]);
    const folders = ['exec/shims/*', 'data/containers/*', 'data/writable/*', 'data/writable/.trash/*'].flatMap((name) =>
      globSync(join(engine.directory, name)),
    );
    const { body } = await engine.get<{ Volumes: unknown[] | null }>('/volumes');
    const ports = await portsOfBridge(engine);
    if (cgroups.length + folders.length + (body.Volumes ?? []).length === 0 && ports <= STOCK) break;
    assert.ok(performance.now() < deadline, JSON.stringify({ cgroups, folders, volumes: body.Volumes, ports }));
    await setTimeout(50);
  }
  for (const parent of globSync([`/sys/fs/cgroup${CGROUP_PARENT}/`, `/sys/fs/cgroup/*${CGROUP_PARENT}/`]))
    rmdirSync(parent);
}

/** Network namespaces that are kept ready have one each. */
const STOCK = 8;

async function portsOfBridge(engine: TestEngine): Promise<number> {
  const links = await engine.onHost(['ip', '-o', 'link', 'show', 'type', 'veth']);
  return links.split('\n').filter(Boolean).length;
}

/** Errors that nobody meant to throw: the daemon logs them with a stack. */
function errorsIn(log: string): string[] {
  return log.split('\n').filter((line) => /"level":[56]0/.test(line) || /^\s+at /.test(line));
}

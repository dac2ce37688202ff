/**
 * `./gantry bench cluster [NODES] [TASKS] [mtls]`: the real leader, with its lease, over three members of etcd, and simulated
 * nodes in another process, over a socket or over mutual TLS with a certificate each. How long until all tasks run, until all
 * nodes are back under a new leader, and until all tasks are of another template; what each process takes for it.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { newAuthority } from '@gantry/engine/cluster/ca/certificates.ts';
import { Etcd } from '@gantry/engine/cluster/etcd/gateway.ts';
import type { ServiceBody } from '@gantry/engine/cluster/services/schema.ts';
import { readServiceSpec } from '@gantry/engine/cluster/services/spec.ts';
import type { Replica } from '@gantry/engine/cluster/state/replica.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';
import { Background } from '@gantry/engine/lib/concurrency/background.ts';
import { openLog } from '@gantry/engine/log.ts';

import { Etcds } from './etcds.ts';
import { clusterRecord, nodeIds, nodeRecord, SIMULATED } from './records.ts';
import { SimulatedLeader } from './simulated-leader.ts';
import { Usage } from './usage.ts';

const SERVICES = 100;
const DEADLINE_MS = 600_000;
/** A look counts all tasks, in the leader's own process. */
const CHECK_INTERVAL_MS = 500;
const SECURE_PLACE = '127.0.0.1:23777';

export async function main(nodes = '1000', tasks = '100000', how = ''): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'gantry-simulation-'));
  await using ending = new AsyncDisposableStack();
  ending.defer(() => rmSync(directory, { recursive: true, force: true }));
  const etcds = ending.use(new Etcds(directory, 3));
  const log = openLog('error');
  const background = ending.use(new Background(systemClock, log));
  const etcd = ending.use(new Etcd(etcds.socketPath, systemClock));
  await answering(etcd);
  const leader = new SimulatedLeader(background, log, etcd);
  ending.defer(async () => await leader[Symbol.asyncDispose]());
  await leader.lead();
  await leader.leadership!.turns.write((draft, now) => {
    draft.put('cluster', clusterRecord(now));
    for (const id of nodeIds(Number(nodes))) draft.put('node', nodeRecord(id, now));
  });
  const authority = how === 'mtls' ? newAuthority(SIMULATED, systemClock.now()) : undefined;
  const place = authority === undefined ? join(directory, 'sessions') : SECURE_PLACE;
  if (authority === undefined) await leader.listen(place);
  else await leader.listenSecurely(place, authority);
  const child = fork(join(import.meta.dirname, 'simulated-nodes.ts'), [place, nodes], { execArgv: [] });
  ending.defer(() => void child.kill('SIGKILL'));
  if (authority !== undefined) child.send(authority);
  const usage = new Usage([
    { name: 'leader', pids: () => [process.pid] },
    { name: 'etcd', pids: () => etcds.pids },
    { name: 'nodes', pids: () => [child.pid!] },
  ]);
  await rounds(leader, { nodes: Number(nodes), tasks: Number(tasks), usage });
  console.log(`leaderships lost: ${leader.losses}`);
}

type Round = Readonly<{ nodes: number; tasks: number; usage: Usage }>;

async function rounds(leader: SimulatedLeader, { nodes, tasks, usage }: Round): Promise<void> {
  const { replica } = leader;
  const each = tasks / SERVICES;
  const timed = async (what: string, count: number, isSo: () => boolean): Promise<void> => {
    const begun = performance.now();
    while (!isSo()) {
      if (performance.now() - begun > DEADLINE_MS) throw new Error(`${what}: not after ${DEADLINE_MS} ms`);
      await sleep(CHECK_INTERVAL_MS);
    }
    const seconds = (performance.now() - begun) / 1000;
    console.log(`${what}: ${seconds.toFixed(1)} s, ${(count / seconds).toFixed(0)} a second\n  ${usage.tell()}`);
    await sleep(CHECK_INTERVAL_MS); // the stall of that is over
    usage.begin();
  };
  const areReady = (): boolean =>
    [...replica.all('node')].filter(({ status }) => status.state === 'ready').length === nodes;

  await timed(`${nodes} nodes ready`, nodes, areReady);
  const created = Array.from({ length: SERVICES }, async (_, at) => {
    await leader.write('createService', { spec: specOf(`s${at}`, 'ROUND=1', each) });
  });
  await timed(`${tasks} tasks running`, tasks, () => running(replica, 'ROUND=1') === tasks);
  await Promise.all(created);
  await leader.lead();
  await timed(`${nodes} nodes back under a new leader`, nodes, () => leader.sessions === nodes && areReady());
  const updated = [...replica.all('service')].map(async ({ id, version, spec }) => {
    await leader.write('updateService', {
      ref: id,
      version,
      isRollback: false,
      spec: specOf(spec.name, 'ROUND=2', each),
    });
  });
  await timed(`${tasks} tasks of another template`, tasks, () => running(replica, 'ROUND=2') === tasks);
  await Promise.all(updated);
}

/** Tasks that are to run and do, of a template with this variable. */
function running(replica: Replica, variable: string): number {
  const wanted = new Set(
    [...replica.all('template')]
      .filter(({ template }) => template.container.env?.[0] === variable)
      .map(({ hash }) => hash),
  );
  let count = 0;
  for (const { template, status, desired } of replica.all('task')) {
    if (status.state === 'running' && desired === 'running' && wanted.has(template)) count += 1;
  }
  return count;
}

function specOf(name: string, variable: string, replicas: number): ReturnType<typeof readServiceSpec> {
  const body: ServiceBody = {
    Name: name,
    TaskTemplate: { ContainerSpec: { Image: 'busybox', Env: [variable] } },
    Mode: { Replicated: { Replicas: replicas } },
    UpdateConfig: { Parallelism: Math.ceil(replicas / 10), Delay: 0, FailureAction: 'continue' },
  };
  return readServiceSpec(body);
}

async function answering(etcd: Etcd): Promise<void> {
  const until = performance.now() + 60_000;
  for (;;) {
    try {
      await etcd.get('x', 1000);
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(100);
    }
  }
}

/**
 * `./gantry bench cluster [NODES] [TASKS] [mtls]`: the real leader over three members of etcd, and simulated nodes in another
 * process, over a socket or over mutual TLS with a certificate each. How long until all tasks run, until all nodes are back under a new leader, and until all tasks are of another
 * template; the memory of each process.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import { issue, newAuthority, newKey } from '@gantry/engine/cluster/ca/certificates.ts';
import { Etcd } from '@gantry/engine/cluster/etcd/gateway.ts';
import { Leadership } from '@gantry/engine/cluster/leader/leadership.ts';
import type { ServiceBody } from '@gantry/engine/cluster/services/schema.ts';
import { readServiceSpec } from '@gantry/engine/cluster/services/spec.ts';
import { Feed } from '@gantry/engine/cluster/state/feed.ts';
import { LEADER_KEY, SEQUENCE_KEY } from '@gantry/engine/cluster/state/keys.ts';
import type { Authority } from '@gantry/engine/cluster/state/records.ts';
import { Replica } from '@gantry/engine/cluster/state/replica.ts';
import { WireServer } from '@gantry/engine/cluster/wire/server.ts';
import { Background } from '@gantry/engine/lib/background.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';
import { openLog } from '@gantry/engine/log.ts';
import type { Logger } from 'pino';

import { Etcds, rssOf } from './etcds.ts';
import { clusterRecord, nodeIds, nodeRecord, SIMULATED } from './records.ts';

const SERVICES = 100;
const DEADLINE_MS = 600_000;
const LOOK_MS = 100;
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
  const memory = (): string => {
    const etcdMemory = etcds.rssBytes.map(megabytes).join(', ');
    return `leader ${megabytes(rssOf(process.pid))} MB, etcd ${etcdMemory} MB, nodes ${megabytes(rssOf(child.pid!))} MB`;
  };
  await rounds(leader, { nodes: Number(nodes), tasks: Number(tasks), memory });
}

type Round = Readonly<{ nodes: number; tasks: number; memory: () => string }>;

async function rounds(leader: SimulatedLeader, { nodes, tasks, memory }: Round): Promise<void> {
  const { replica } = leader;
  const each = tasks / SERVICES;
  const timed = async (what: string, isSo: () => boolean): Promise<void> => {
    const begun = performance.now();
    while (!isSo()) {
      if (performance.now() - begun > DEADLINE_MS) throw new Error(`${what}: not after ${DEADLINE_MS} ms`);
      await sleep(LOOK_MS);
    }
    console.log(`${what}: ${((performance.now() - begun) / 1000).toFixed(1)} s; ${memory()}`);
  };
  const areReady = (): boolean =>
    [...replica.all('node')].filter(({ status }) => status.state === 'ready').length === nodes;

  await timed(`${nodes} nodes ready`, areReady);
  const created = Array.from({ length: SERVICES }, async (_, at) => {
    await leader.write('createService', { spec: specOf(`s${at}`, 'ROUND=1', each) });
  });
  await timed(`${tasks} tasks running`, () => running(replica, 'ROUND=1') === tasks);
  await Promise.all(created);
  await leader.lead();
  await timed(`${nodes} nodes back under a new leader`, () => leader.sessions === nodes && areReady());
  const updated = [...replica.all('service')].map(async ({ id, version, spec }) => {
    await leader.write('updateService', { ref: id, version, spec: specOf(spec.name, 'ROUND=2', each) });
  });
  await timed(`${tasks} tasks of another template`, () => running(replica, 'ROUND=2') === tasks);
  await Promise.all(updated);
}

/** Tasks that are to run and do, of a template with this variable. */
function running(replica: Replica, variable: string): number {
  let count = 0;
  for (const { service, template, status, desired } of replica.all('task')) {
    if (status.state !== 'running' || desired !== 'running') continue;
    if (replica.get('template', `${service}/${template}`)?.template.container.env?.[0] === variable) count += 1;
  }
  return count;
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}

/** Leads, over and over again: each time as another manager would after the end of the last one. */
class SimulatedLeader implements AsyncDisposable {
  readonly replica = new Replica(systemClock);
  leadership: Leadership | undefined;
  /** Open ones. */
  sessions = 0;
  readonly #parts;
  readonly #feed: Feed;
  readonly #sockets = new Set<Duplex>();
  #server: Server | undefined;
  #wire: WireServer | undefined;

  constructor(background: Background, log: Logger, etcd: Etcd) {
    this.#parts = {
      background,
      clock: systemClock,
      log,
      etcd,
      replica: this.replica,
      node: 'leader',
      identity: () => ({ certificate: '', key: '' }),
      resign: async () => await Promise.resolve(),
    };
    this.#feed = new Feed(this.#parts);
  }

  async lead(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.leadership?.[Symbol.asyncDispose]();
    const ops = [
      { put: LEADER_KEY, value: JSON.stringify({ node: 'leader', address: '' }) },
      { put: SEQUENCE_KEY, value: 'first/0' },
    ];
    const { revision } = await this.#parts.etcd.store({}, ops, 5000);
    if (!(await this.replica.reached(revision, 60_000))) throw new Error('the records do not come');
    this.leadership = new Leadership(this.#parts, revision, (reason) => {
      throw reason;
    });
  }

  async write(name: string, args: unknown): Promise<void> {
    await this.leadership!.write(name, args);
  }

  /** The first line of a connection is the node's id, in place of its certificate. */
  async listen(path: string): Promise<void> {
    const server = createServer((socket) => {
      this.#count(socket);
      socket.once('readable', () => {
        const id = String(socket.read(26)).trim();
        this.leadership!.openSession({ id, role: 'worker' } as never, socket);
      });
    });
    this.#server = server;
    const listening = Promise.withResolvers<void>();
    server.listen(path, listening.resolve);
    await listening.promise;
  }

  /** The engine's own port 2377: nodes prove who they are. */
  async listenSecurely(place: string, authority: Authority): Promise<void> {
    const { publicKey, privateKey } = newKey();
    const subject = { name: 'leader', unit: 'swarm-manager', organization: SIMULATED };
    const wanted = { subject, publicKey, now: systemClock.now(), lifeSeconds: 86_400, dnsNames: ['swarm-manager'] };
    const certificate = issue(authority, wanted);
    const [ip = '', port = ''] = place.split(':');
    this.#wire = await WireServer.open({
      ip,
      port: Number(port),
      identity: { certificate, key: privateKey, root: authority.certificate, clusterId: SIMULATED },
      routes: {},
      admits: ({ id }) => this.replica.get('node', id) !== undefined,
      session: (peer, open) => {
        const socket = open();
        this.#count(socket);
        this.leadership!.openSession(peer, socket);
      },
      log: this.#parts.log,
    });
  }

  #count(socket: Duplex): void {
    socket.on('error', () => undefined);
    this.#sockets.add(socket);
    this.sessions += 1;
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.sessions -= 1;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.#wire?.[Symbol.asyncDispose]();
    this.#server?.close();
    await this.leadership?.[Symbol.asyncDispose]();
    await this.#feed[Symbol.asyncDispose]();
  }
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

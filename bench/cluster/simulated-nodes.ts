/**
 * Simulated nodes in a process of their own: `node simulated-nodes.ts PLACE COUNT`. Each is a session with the leader, and
 * runs its tasks by saying so after a while. PLACE is a socket, or `ip:port` for mutual TLS: then the first message of the parent
 * is the authority by which each node makes its own certificate.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import { issue, newKey } from '@gantry/engine/cluster/ca/certificates.ts';
import type { Authority } from '@gantry/engine/cluster/state/records.ts';
import { FROM_LEADER_LIMITS } from '@gantry/engine/cluster/wire/allowance.ts';
import { Channel } from '@gantry/engine/cluster/wire/channel.ts';
import { WireClient } from '@gantry/engine/cluster/wire/client.ts';
import { FromLeader, type FromNode } from '@gantry/engine/cluster/wire/schemas.ts';
import type { TaskStatus, TasksMessage } from '@gantry/engine/cluster/wire/task-messages.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';

import { nodeIds, SIMULATED } from './records.ts';

const [place = '', count = '0'] = process.argv.slice(2);
const isSecure = !place.startsWith('/');
const authority = isSecure ? ((await once(process, 'message'))[0] as Authority) : undefined;
const ANSWER_MS = 30_000;
const [LEAST_MS, MAX_MS] = [50, 500];
const RETRY_DELAY_MS = 100;
const FIRST_BEAT_MS = 4750;

/** One node; its tasks outlive its sessions. */
class SimulatedNode {
  readonly #id: string;
  readonly #tasks = new Map<string, string>();
  #waiting: { id: string; status: TaskStatus }[] = [];
  #underWay: { id: string; status: TaskStatus }[] = [];
  #number = 0;
  #channel: Channel<typeof FromLeader, FromNode> | undefined;

  readonly #client: WireClient | undefined;

  constructor(id: string) {
    this.#id = id;
    if (authority !== undefined) this.#client = new WireClient(trustOf(id, authority), systemClock);
  }

  /** Again after each end of the session. */
  async live(): Promise<never> {
    for (;;) {
      try {
        await once(await this.#begun(), 'close');
      } catch (error) {
        if (!(error instanceof Error)) throw error; // no leader takes it now
      }
      await sleep(RETRY_DELAY_MS + Math.random() * 1000);
    }
  }

  async #begun(): Promise<Duplex> {
    const socket =
      this.#client === undefined ? connect(place) : await this.#client.upgrade(place, '/v1/session', ANSWER_MS);
    socket.on('error', () => undefined);
    if (this.#client === undefined) socket.write(`${this.#id}\n`);
    const channel: Channel<typeof FromLeader, FromNode> = new Channel(socket, {
      schema: FromLeader,
      limits: FROM_LEADER_LIMITS,
      clock: systemClock,
      receive: (message) => {
        if (message.say === 'welcome') this.#begin();
        if (message.say === 'tasks') this.#take(message);
        if (message.say === 'ack') this.#stored();
      },
    });
    this.#channel = channel;
    channel.send({
      say: 'hello',
      address: '10.0.0.1',
      description: {
        hostname: this.#id,
        platform: { architecture: 'x86_64', os: 'linux' },
        resources: { nanoCpus: 64e9, memoryBytes: 256e9 },
        engine: { version: '1', labels: {}, plugins: [] },
      },
    });
    const beats = setInterval(() => channel.send({ say: 'beat' }), FIRST_BEAT_MS);
    socket.once('close', () => clearInterval(beats));
    return socket;
  }

  #begin(): void {
    this.#waiting.unshift(...this.#underWay);
    this.#underWay = [];
    this.#send();
  }

  #take({ tasks, gone }: TasksMessage): void {
    for (const { assignment } of tasks) {
      const { id, desired } = assignment;
      if (this.#tasks.get(id) === desired) continue;
      this.#tasks.set(id, desired);
      const state = desired === 'running' ? 'running' : desired === 'ready' ? 'ready' : 'shutdown';
      setTimeout(() => this.#say(id, desired, state), LEAST_MS + Math.random() * (MAX_MS - LEAST_MS));
    }
    for (const id of gone) this.#tasks.delete(id);
  }

  #say(id: string, desired: string, state: TaskStatus['state']): void {
    if (this.#tasks.get(id) !== desired) return;
    const timestamp = new Date().toISOString();
    const container = { id: id.padEnd(64, '0'), pid: 1234, exitCode: 0 };
    const started = state === 'running' ? { startedAt: timestamp } : {};
    this.#waiting.push({ id, status: { state, timestamp, message: 'started', ...started, container } });
    this.#send();
  }

  #stored(): void {
    this.#underWay = [];
    this.#send();
  }

  #send(): void {
    if (this.#underWay.length > 0 || this.#waiting.length === 0) return;
    this.#underWay = this.#waiting.splice(0, 200);
    this.#number += 1;
    this.#channel?.send({ say: 'report', number: this.#number, tasks: this.#underWay });
  }
}

function trustOf(id: string, by: Authority): ConstructorParameters<typeof WireClient>[0] {
  const { publicKey, privateKey } = newKey();
  const subject = { name: id, unit: 'swarm-worker', organization: SIMULATED };
  const wanted = { subject, publicKey, now: systemClock.now(), lifeSeconds: 86_400, dnsNames: [id, 'swarm-worker'] };
  return { root: by.certificate, certificate: issue(by, wanted), key: privateKey };
}

process.once('disconnect', () => process.exit()); // the leader is gone
await Promise.all(nodeIds(Number(count)).map(async (id) => await new SimulatedNode(id).live()));

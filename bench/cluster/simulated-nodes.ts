/**
 * Simulated nodes in a process of their own: `node simulated-nodes.ts SOCKET COUNT`. Each is a session with the leader, and
 * runs its tasks by saying so after a while.
 */
import { connect } from 'node:net';

import { Channel } from '@gantry/engine/cluster/wire/channel.ts';
import { FromLeader, type FromNode } from '@gantry/engine/cluster/wire/schemas.ts';
import type { TaskStatus, TasksMessage } from '@gantry/engine/cluster/wire/task-messages.ts';

import { nodeIds } from './records.ts';

const [socketPath = '', count = '0'] = process.argv.slice(2);
const [LEAST_MS, MOST_MS] = [50, 500];
const AGAIN_MS = 100;
const FIRST_BEAT_MS = 4750;

/** One node; its tasks outlive its sessions. */
class SimulatedNode {
  readonly #id: string;
  readonly #tasks = new Map<string, string>();
  #waiting: { id: string; status: TaskStatus }[] = [];
  #underWay: { id: string; status: TaskStatus }[] = [];
  #number = 0;
  #channel: Channel<typeof FromLeader, FromNode> | undefined;

  constructor(id: string) {
    this.#id = id;
  }

  connect(): void {
    const socket = connect(socketPath);
    socket.on('error', () => undefined);
    socket.write(`${this.#id}\n`);
    const channel: Channel<typeof FromLeader, FromNode> = new Channel(socket, FromLeader, (message: FromLeader) => {
      if (message.say === 'welcome') this.#begin();
      if (message.say === 'tasks') this.#take(message);
      if (message.say === 'ack') this.#stored();
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
    socket.once('close', () => {
      clearInterval(beats);
      setTimeout(() => this.connect(), AGAIN_MS + Math.random() * 1000);
    });
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
      setTimeout(() => this.#say(id, desired, state), LEAST_MS + Math.random() * (MOST_MS - LEAST_MS));
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

for (const id of nodeIds(Number(count))) new SimulatedNode(id).connect();

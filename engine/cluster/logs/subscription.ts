import type { Duplex, Writable } from 'node:stream';

import type { Engine } from '../../engine.ts';
import { isAssigned } from '../dispatcher/assignments.ts';
import type { Stored } from '../state/records.ts';
import type { Replica } from '../state/replica.ts';
import { isToRun } from '../state/task-states.ts';
import { LOG_LIMITS, PublishedLog, type LogRequest, type LogsMessage, type ReadLog } from '../wire/log-messages.ts';
import { readMessages } from '../wire/read-messages.ts';
import { SharedOutput } from './shared-output.ts';

type Needs = Pick<Engine, 'clock'> & Readonly<{ replica: Replica; log: Engine['log'] }>;
type Ask = (node: string, message: LogsMessage) => boolean;

/** A node that was asked for lines. */
type Source = {
  /** Time of the last line by task. */
  readonly tasks: Map<string, string | undefined>;
  /** Connection that brings them. */
  socket?: Duplex;
  isDone: boolean;
};

/** A reader of logs, and the nodes that send them: all of a service's tasks that have a node, also later ones where it follows. */
export class Subscription {
  readonly #needs: Needs;
  readonly #number: number;
  readonly #request: LogRequest;
  readonly #output: SharedOutput;
  readonly #ask: Ask;
  readonly #sources = new Map<string, Source>();
  readonly #missing: string[] = [];
  #service = '';

  constructor(needs: Needs, reader: Readonly<{ number: number; request: LogRequest; output: Writable; ask: Ask }>) {
    this.#needs = needs;
    this.#number = reader.number;
    this.#request = reader.request;
    this.#output = new SharedOutput(reader.output);
    this.#ask = reader.ask;
    reader.output.once('close', () => this.#endSources());
  }

  /** Asks the nodes of all tasks that there are. */
  begin(): void {
    const { service = '', task } = this.#request;
    const { replica } = this.#needs;
    const one = task === undefined ? undefined : replica.get('task', task);
    this.#service = one?.service ?? service;
    this.#follow(one === undefined ? [...replica.tasksOf(service)] : [one]);
    this.#endIfComplete();
  }

  /** Asks for the logs of tasks that have come, or have got a node, since. */
  take(changed: readonly string[]): void {
    if (!this.#isFollowing) return;
    const tasks: Stored<'task'>[] = [];
    for (const id of changed) {
      const task = this.#needs.replica.get('task', id);
      if (task === undefined) for (const source of this.#sources.values()) source.tasks.delete(id);
      else if (id === this.#request.task || task.service === this.#request.service) tasks.push(task);
    }
    this.#follow(tasks);
  }

  /** The session of a node begins: its tasks are asked for from the last line on. */
  askAgain(node: string): void {
    const source = this.#sources.get(node);
    if (source === undefined || !this.#isFollowing) return;
    this.#send(
      node,
      [...source.tasks].map(([id, after]) => ({ id, ...(after === undefined ? {} : { after }) })),
    );
  }

  /** The session of a node has ended. */
  lose(node: string): void {
    const source = this.#sources.get(node);
    if (source?.socket === undefined) this.#finish(node, `node ${node} disconnected unexpectedly`);
  }

  /** Whether this node was asked for lines. */
  expects(node: string): boolean {
    return this.#sources.has(node);
  }

  /** Passes on a node's lines of its own tasks. Throws `invalid` for a message against the schema. */
  async publish(node: string, socket: Duplex): Promise<void> {
    const source = this.#sources.get(node);
    if (source === undefined) return;
    source.socket?.destroy();
    source.socket = socket;
    try {
      await this.#passOn(node, source, socket);
    } finally {
      socket.destroy();
      if (source.socket === socket) {
        delete source.socket;
        this.#finish(node, `node ${node} disconnected unexpectedly`);
      }
    }
  }

  async #passOn(node: string, source: Source, socket: Duplex): Promise<void> {
    const reading = { schema: PublishedLog, limits: LOG_LIMITS, clock: this.#needs.clock };
    for await (const message of readMessages(socket, reading)) {
      if (message.say === 'sent') return this.#finish(node);
      const { task } = message;
      if (!source.tasks.has(task)) continue; // a task of another node, or one whose record is gone
      if (message.say === 'unreadable') this.#missing.push(`task ${task}: ${message.reason}`);
      else {
        source.tasks.set(task, message.time);
        await this.#write({ ...message, node, service: this.#service });
      }
    }
  }

  #follow(tasks: readonly Stored<'task'>[]): void {
    const fresh = new Map<string, { id: string }[]>();
    for (const task of tasks) {
      const { id, node, desired } = task;
      if (isAssigned(task)) {
        const source = this.#sources.get(node) ?? { tasks: new Map(), isDone: false };
        this.#sources.set(node, source);
        if (source.tasks.has(id)) continue;
        source.tasks.set(id, undefined);
        fresh.set(node, [...(fresh.get(node) ?? []), { id }]);
      } else if (isToRun(desired) && !this.#isFollowing) this.#missing.push(`task ${id} has not been scheduled`);
    }
    for (const [node, asked] of fresh) this.#send(node, asked);
  }

  #send(node: string, tasks: LogsMessage['tasks']): void {
    const { options } = this.#request;
    if (this.#ask(node, { say: 'logs', number: this.#number, options, tasks })) return;
    this.#finish(node, `node ${node} is not available`);
  }

  /** No more lines come from a node, for a reason; where somebody follows, it may come back. */
  #finish(node: string, reason?: string): void {
    const source = this.#sources.get(node);
    if (source === undefined || source.isDone || this.#isFollowing) return;
    source.isDone = true;
    if (reason !== undefined) this.#missing.push(reason);
    this.#endIfComplete();
  }

  #endIfComplete(): void {
    if (this.#isFollowing || !this.#output.isOpen) return;
    if (![...this.#sources.values()].every(({ isDone }) => isDone)) return;
    const end: ReadLog = { say: 'end', missing: this.#missing };
    this.#output.stream.end(`${JSON.stringify(end)}\n`);
  }

  async #write(line: ReadLog): Promise<void> {
    await this.#output.write(`${JSON.stringify(line)}\n`);
  }

  get #isFollowing(): boolean {
    return this.#request.options.follow;
  }

  #endSources(): void {
    for (const { socket } of this.#sources.values()) socket?.destroy();
  }
}

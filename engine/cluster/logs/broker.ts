import { randomInt } from 'node:crypto';
import type { Duplex, Writable } from 'node:stream';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Replica } from '../state/replica.ts';
import type { LogRequest, LogsMessage } from '../wire/log-messages.ts';
import { Subscription } from './subscription.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'log'> & Readonly<{ replica: Replica }>;
type Send = (message: LogsMessage) => void;

/** The leader's part in reading logs: asks nodes for the lines of their tasks, and passes them on to the readers. */
export class LogBroker implements Disposable {
  readonly #needs: Needs;
  /** Sessions of nodes that send logs. */
  readonly #nodes = new Map<string, Send>();
  readonly #readers = new Map<number, Readonly<{ subscription: Subscription; output: Writable }>>();
  readonly #commits: Disposable;
  /** Nodes may still serve readers of the last leader, whose numbers are others. */
  #number = randomInt(2 ** 47);

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#commits = needs.replica.onCommit(({ changes }) => {
      if (this.#readers.size === 0) return;
      const tasks = changes.filter(({ kind }) => kind === 'task').map(({ id }) => id);
      if (tasks.length > 0) for (const { subscription } of this.#readers.values()) subscription.take(tasks);
    });
  }

  /** A node's session begins, which knows the message `logs`. */
  begin(node: string, send: Send): void {
    this.#nodes.set(node, send);
    for (const { subscription } of this.#readers.values()) subscription.askAgain(node);
  }

  end(node: string): void {
    this.#nodes.delete(node);
    for (const { subscription } of this.#readers.values()) subscription.lose(node);
  }

  /** Writes the lines that a manager's client wants to a stream, until that closes. */
  read(request: LogRequest, output: Writable): void {
    this.#number += 1;
    const number = this.#number;
    const ask = (node: string, message: LogsMessage): boolean => {
      const send = this.#nodes.get(node);
      send?.(message);
      return send !== undefined;
    };
    const subscription = new Subscription(this.#needs, { number, request, output, ask });
    this.#readers.set(number, { subscription, output });
    output.once('close', () => this.#readers.delete(number));
    subscription.begin();
  }

  /** Takes the connection of a node with lines that it was asked for. Throws `notFound` where nobody reads them. */
  publish(node: string, number: number, open: () => Duplex): void {
    const subscription = this.#readers.get(number)?.subscription;
    if (subscription?.expects(node) !== true) throw new EngineError('notFound', 'these logs have no reader');
    const socket = open();
    this.#needs.background.run('pass on the logs of a node', { node }, async () => {
      try {
        await subscription.publish(node, socket);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        this.#needs.log.warn({ node, reason: error.message }, 'a node broke the protocol of logs');
      }
    });
  }

  [Symbol.dispose](): void {
    this.#commits[Symbol.dispose]();
    for (const { output } of this.#readers.values()) output.destroy();
  }
}

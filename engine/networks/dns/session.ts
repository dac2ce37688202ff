import type { Socket } from 'node:net';

import { EngineError } from '../../lib/errors.ts';
import type { Command } from './commands.ts';

type Pending = Readonly<{ command: Command; done: () => void; failed: (error: Error) => void }>;

/** The resolver has ended, or has closed its connection. */
export class SessionEnded extends EngineError {
  constructor() {
    super('failed', 'the name server of containers has ended');
  }
}

/** A connection to the resolver, whose answers come in the order of the commands. */
export class Session implements Disposable {
  readonly #socket: Socket;
  readonly closed: Promise<void>;
  #pending: Pending[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    let rest = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#settle(line);
    });
    socket.on('close', () => {
      this.#failPending();
      resolve();
    });
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  /** Resolves when the resolver has applied the commands. Throws `failed` with its reason, and `SessionEnded`. */
  async send(commands: readonly Command[]): Promise<void> {
    await Promise.all(this.#write(commands));
  }

  /** Like `send`, but a refusal fails no other command: a container may have ended meanwhile. */
  async sendLeniently(commands: readonly Command[]): Promise<void> {
    for (const result of await Promise.allSettled(this.#write(commands))) {
      if (result.status === 'rejected' && result.reason instanceof SessionEnded) throw result.reason;
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #write(commands: readonly Command[]): Promise<void>[] {
    if (!this.isOpen) return [Promise.reject(new SessionEnded())];
    const answers = commands.map(async (command) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#pending.push({ command, done: resolve, failed: reject });
      await promise;
    });
    if (commands.length > 0) this.#socket.write(commands.map(({ line }) => `${line}\n`).join(''));
    return answers;
  }

  #settle(answer: string): void {
    const first = this.#pending.shift();
    if (first === undefined) return;
    if (answer === 'ok') return first.done();
    const reason = `the name server of containers: ${answer.replace(/^error /, '')}`;
    first.failed(new EngineError('failed', reason, { cause: new Error(first.command.line) }));
  }

  #failPending(): void {
    const pending = this.#pending;
    this.#pending = [];
    for (const { failed } of pending) failed(new SessionEnded());
  }
}

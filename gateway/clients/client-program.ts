import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';

/** A client's account of an answer: the words and the numbers are its own. */
export type Outcome = {
  result?: string | number;
  /** The name of the client's type of error. */
  error?: string;
  status?: number;
  message?: string;
  limit: number;
  remaining: number;
  /** When the client says that it can go on, in UNIX seconds. */
  reset: number;
  /** How long the client says one has to wait. */
  retryAfterSeconds?: number;
};

/** A program around a client library that takes a command per line and answers with a line of JSON. */
export class ClientProgram implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;

  private constructor(child: ChildProcess, lines: Interface) {
    this.#child = child;
    this.#lines = lines;
    this.#answers = lines[Symbol.asyncIterator]();
  }

  static async start(command: string, args: readonly string[]): Promise<ClientProgram> {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child, 'spawn');
    return new ClientProgram(child, createInterface(child.stdout));
  }

  async ask(command: string): Promise<Outcome> {
    this.#child.stdin?.write(`${command}\n`);
    const { done, value } = await this.#answers.next();
    if (done === true) throw new Error(`the client has ended instead of answering to ${command}`);
    return JSON.parse(value) as Outcome;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.stdin?.end();
    this.#lines.close();
    await exited;
  }
}

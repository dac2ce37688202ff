import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, watch, type FSWatcher } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';

import { EngineError, hasCode } from '../../lib/errors.ts';

/** The path of gantry-resolver; tests choose another build by the environment. */
const RESOLVER_PROGRAM = process.env.GANTRY_RESOLVER ?? join(import.meta.dirname, '../../../build/gantry-resolver');

const DEADLINE_MS = 5000;

type Waiting = Readonly<{ line: string; done: () => void; failed: (error: Error) => void }>;

/**
 * The connection to the process that answers the containers, which is found by its socket or started.
 *
 * Every new connection begins with the complete state, so that no change is missed.
 */
export class Resolver implements Disposable {
  readonly #folder: string;
  readonly #everything: () => readonly string[];
  #connecting: Promise<Socket> | undefined;
  #waiting: Waiting[] = [];
  #isEnded = false;

  /** @param everything the commands for the complete state */
  constructor(folder: string, everything: () => readonly string[]) {
    this.#folder = folder;
    this.#everything = everything;
  }

  /** Sends commands, and resolves when the resolver has applied them. Throws `failed` with its reason. */
  async tell(lines: readonly string[]): Promise<void> {
    if (this.#isEnded) return;
    const socket = await this.#connected();
    await this.#write(socket, lines);
  }

  /** The same for commands that a missing resolver does not need. */
  async tellIfThere(lines: readonly string[]): Promise<void> {
    if (this.#connecting === undefined) {
      const socket = await this.#tryConnect();
      if (socket === undefined) return;
      socket.destroy();
    }
    await this.tell(lines);
  }

  /** Ends the resolver; a missing one is not an error. */
  async end(): Promise<void> {
    this.#isEnded = true;
    const socket = await this.#tryConnect();
    if (socket === undefined) return;
    const closed = once(socket, 'close');
    socket.resume().write('quit\n');
    await closed;
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#connecting?.then((socket) => socket.destroy()).catch(() => undefined);
    this.#connecting = undefined;
  }

  async #connected(): Promise<Socket> {
    this.#connecting ??= this.#connect().catch((error: unknown) => {
      this.#connecting = undefined;
      throw error;
    });
    return await this.#connecting;
  }

  async #connect(): Promise<Socket> {
    const socket = (await this.#tryConnect()) ?? (await this.#start());
    let rest = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#settle(line);
    });
    socket.on('close', () => this.#lost());
    const known = this.#write(socket, ['begin', ...this.#everything()], true);
    await Promise.all([known, this.#write(socket, ['end'])]);
    return socket;
  }

  async #tryConnect(): Promise<Socket | undefined> {
    const socket = createConnection({ path: join(this.#folder, 'socket') });
    try {
      await once(socket, 'connect');
      socket.on('error', () => undefined); // 'close' follows, which is what counts
      return socket;
    } catch (error) {
      if (hasCode(error, 'ENOENT') || hasCode(error, 'ECONNREFUSED')) return undefined;
      throw error;
    }
  }

  /**
   * The started process ends when its descendant listens. It fails while there is one whose worker has died: that one's
   * supervisor starts another, whose socket appears in the folder.
   */
  async #start(): Promise<Socket> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    using watching = new DisposableStack();
    const folder = watching.adopt(watch(this.#folder), (watcher) => watcher.close());
    const deadline = AbortSignal.timeout(DEADLINE_MS);
    for (;;) {
      const isLast = deadline.aborted;
      const changed = nextChange(folder, deadline);
      const child = spawn(RESOLVER_PROGRAM, [this.#folder], { stdio: 'ignore', detached: true, env: {}, cwd: '/' });
      const [code] = (await once(child, 'exit')) as [number | null];
      const socket = await this.#tryConnect();
      if (socket !== undefined) return socket;
      if (isLast) throw new EngineError('failed', `the name server of containers did not start (${code})`);
      await changed;
    }
  }

  /** `isLenient`: a container that has ended meanwhile does not fail the commands for others. */
  async #write(socket: Socket, lines: readonly string[], isLenient = false): Promise<void> {
    if (lines.length === 0) return;
    const answers = lines.map(async (line) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#waiting.push({ line, done: resolve, failed: isLenient ? () => resolve() : reject });
      await promise;
    });
    socket.write(`${lines.join('\n')}\n`);
    await Promise.all(answers);
  }

  #settle(answer: string): void {
    const first = this.#waiting.shift();
    if (first === undefined) return;
    if (answer === 'ok') first.done();
    else first.failed(new EngineError('failed', `the name server of containers: ${answer} (${first.line})`));
  }

  #lost(): void {
    this.#connecting = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { failed } of waiting) failed(new EngineError('failed', 'the name server of containers has ended'));
  }
}

/** Resolves at the next change in a watched folder, or at the deadline. */
async function nextChange(folder: FSWatcher, deadline: AbortSignal): Promise<void> {
  try {
    await once(folder, 'change', { signal: deadline });
  } catch (error) {
    if (!deadline.aborted) throw error;
  }
}

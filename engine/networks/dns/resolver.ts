import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, watch, type FSWatcher } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';

import { EngineError, hasCode } from '../../lib/errors.ts';
import { BEGIN, END, QUIT, type Command } from './commands.ts';
import { Session, SessionEnded } from './session.ts';

/** The path of gantry-resolver; tests choose another build by the environment. */
const RESOLVER_PROGRAM = process.env.GANTRY_RESOLVER ?? join(import.meta.dirname, '../../../build/gantry-resolver');

const START_TIMEOUT_MS = 5000;
const MAX_ATTEMPTS = 3;

/**
 * The process that answers the containers, which is found by its socket or started.
 *
 * Every session with it begins with the complete state, so that no change is missed.
 */
export class Resolver implements Disposable {
  readonly #folder: string;
  readonly #everything: () => readonly Command[];
  #session: Promise<Session> | undefined;
  #isEnded = false;

  /** @param everything the commands for the complete state */
  constructor(folder: string, everything: () => readonly Command[]) {
    this.#folder = folder;
    this.#everything = everything;
  }

  /**
   * Sends commands, and resolves when the resolver has applied them. Throws `failed` with its reason.
   *
   * If the resolver ends meanwhile, its successor gets them.
   */
  async tell(commands: readonly Command[]): Promise<void> {
    for (let attempt = 1; !this.#isEnded; attempt += 1) {
      try {
        const session = await this.#open();
        await session.send(commands);
        return;
      } catch (error) {
        if (!(error instanceof SessionEnded) || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Like `tell`, for commands that a missing resolver does not need. */
  async tellIfThere(commands: readonly Command[]): Promise<void> {
    const session = await this.#session?.catch(() => undefined);
    if (session?.isOpen !== true) {
      const socket = await this.#tryConnect();
      if (socket === undefined) return;
      socket.destroy();
    }
    await this.tell(commands);
  }

  /** Ends the resolver; ignores a missing one. */
  async end(): Promise<void> {
    this.#isEnded = true;
    const socket = await this.#tryConnect();
    if (socket === undefined) return;
    const session = new Session(socket);
    session.send([BEGIN, QUIT]).catch(() => undefined); // its end is the answer
    await session.closed;
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#session?.then((session) => session[Symbol.dispose]()).catch(() => undefined);
    this.#session = undefined;
  }

  async #open(): Promise<Session> {
    const opening = (this.#session ??= this.#begin());
    try {
      const session = await opening;
      if (!session.isOpen) throw new SessionEnded();
      return session;
    } catch (error) {
      if (this.#session === opening) this.#session = undefined;
      throw error;
    }
  }

  /** Containers that have ended meanwhile fail nothing for the others. */
  async #begin(): Promise<Session> {
    const session = new Session((await this.#tryConnect()) ?? (await this.#start()));
    try {
      const steps = [session.send([BEGIN]), session.sendLeniently(this.#everything()), session.send([END])];
      await Promise.all(steps);
      return session;
    } catch (error) {
      session[Symbol.dispose]();
      throw error;
    }
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
   * The started process ends when its descendant listens. It fails while another resolver is there without a worker:
   * that one's supervisor starts a new worker, whose socket appears in the folder.
   */
  async #start(): Promise<Socket> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    using watching = new DisposableStack();
    const folder = watching.adopt(watch(this.#folder), (watcher) => watcher.close());
    const deadline = AbortSignal.timeout(START_TIMEOUT_MS);
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
}

/** Resolves at the next change in a watched folder, or at the deadline. */
async function nextChange(folder: FSWatcher, deadline: AbortSignal): Promise<void> {
  try {
    await once(folder, 'change', { signal: deadline });
  } catch (error) {
    if (!deadline.aborted) throw error;
  }
}
